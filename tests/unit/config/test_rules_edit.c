/* tests/unit/config/test_rules_edit.c: what rules change: cookies and fields of requests, paths,
 * fields of answers, tags; and the answers that they give themselves.
 */
#include "rules_help.h"

/* "Name: value\n…"; the caller frees it. */
static char *shown(const struct headers *h)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (uint16_t i = 0; i < h->count; i++)
        fprintf(out, "%s" SLICE_FMT ": " SLICE_FMT, i == 0 ? "" : "\n", SLICE_ARG(h->at[i].name),
                SLICE_ARG(h->at[i].value));
    fclose(out);
    return text;
}

/* The chains of names must hold after each edit. */
static void check_chains(const struct headers *h)
{
    for (uint16_t i = 0; i < h->count; i++) {
        enum header_id id = header_id_of(h->at[i].name);
        assert_int_equal(h->at[i].id, id);
        bool is_found = id == HEADER_OTHER;
        for (const struct header *f = is_found ? NULL : headers_find(h, id); f != NULL;
             f = headers_next(h, f))
            is_found = is_found || f == &h->at[i];
        assert_true(is_found);
    }
}

static const struct {
    const char *rules, *request, *before, *after;
} requests[] = {
    /* cookies: the rest byte for byte */
    { "[ { cookies: { drop: [ \"_ga*\", _gid ] } } ]", "/",
      "Cookie: _ga=1; a=b; _gid=2; c=d;_gat=3", "Cookie: a=b; c=d" },
    { "[ { cookies: { drop: \"_ga*\" } } ]", "/", "Cookie: a=b;  c = d ;e",
      "Cookie: a=b;  c = d ;e" },
    { "[ { cookies: { drop: \"_ga*\" } } ]", "/", "Cookie: a=b; _ga=1", "Cookie: a=b" },
    { "[ { cookies: { drop: \"_ga*\" } } ]", "/", "Host: x\nCookie: _ga=1\nAccept: y",
      "Host: x\nAccept: y" }, /* empty: it goes */
    { "[ { cookies: { drop: \"*\" } } ]", "/", "Cookie: a=b; c\nX: y\nCookie: d=e", "X: y" },
    { "[ { cookies: { keep: [ SESS* ] } } ]", "/", "Cookie: a=b; SESS1=x; _ga=1",
      "Cookie: SESS1=x" },
    { "[ { cookies: { keep: [ SESS* ] } } ]", "/", "Cookie: a=b\nCookie: SESS1=x",
      "Cookie: SESS1=x" },
    { "[ { cookies: { drop: a } } ]", "/", "Cookie: a=1; A=2; aa=3", "Cookie: A=2; aa=3" },
    { "[ { cookies: { drop: a } }, { cookies: { drop: b } } ]", "/", "Cookie: a=1; b=2; c=3",
      "Cookie: c=3" },
    { "[ { cookies: { drop: a } } ]", "/", "X: y", "X: y" },
    { "[ { match: { path: /b }, cookies: { drop: a } } ]", "/", "Cookie: a=1", "Cookie: a=1" },
    { "[ { cookies: { drop: a } } ]", "/", "Cookie: ; ;a=1;;", "" },
    { "[ { cookies: { drop: a } } ]", "/", "Cookie: ; ;a=1;b", "Cookie: ; ;b" },
    /* fields */
    { "[ { request: { set: { X-Site: a } } } ]", "/", "Host: x", "Host: x\nX-Site: a" },
    { "[ { request: { set: { X-Site: a } } } ]", "/", "x-site: c\nHost: x\nX-SITE: d",
      "Host: x\nX-Site: a" },
    { "[ { request: { set: { Accept: [ a, b ] } } } ]", "/", "Accept: c", "Accept: a\nAccept: b" },
    { "[ { request: { append: { Accept: b } } } ]", "/", "Accept: a", "Accept: a\nAccept: b" },
    { "[ { request: { remove: [ Range, X-Debug-* ] } } ]", "/",
      "Range: bytes=0-1\nx-debug-a: 1\nX-Debugger: 2", "X-Debugger: 2" },
    { "[ { request: { remove: \"*\" } } ]", "/", "Host: x\nX: y\nContent-Length: 3\nTE: trailers",
      "Host: x\nContent-Length: 3\nTE: trailers" },
    { "[ { request: { remove: A, set: { A: \"1\" }, append: { A: \"2\" } } } ]", "/", "A: 0",
      "A: 1\nA: 2" },
    { "[ { request: { set: { A: \"1\" } } }, { request: { set: { A: \"2\" } } } ]", "/", "",
      "A: 2" },
    { "[ { request: { set: { A: \"1\" } } }, { request: { remove: a } } ]", "/", "B: 1", "B: 1" },
    { "[ { match: { path_regex: \"^/(\\\\w+)/(.*)\" }, request: { set: { X-Was: \"$host$path$query "
      "$1 $2 $$\" } } } ]",
      "/ab//c%64?e=f", "", "X-Was: www.example.com/ab//c%64?e=f ab cd $" },
    { "[ { request: { set: { X-Client: $client } } } ]", "/", "", "X-Client: " },
    { "[ { request: { remove: Cookie } } ]", "/", "Cookie: a=b", "" },
};

static void test_requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(requests); i++) {
        struct config *c = rules_load(requests[i].rules);
        struct tried t;
        try_request(&t, c, requests[i].request, requests[i].before);
        assert_true(rules_edit_request(&t.effects, &t.request, &t.headers, &t.a));
        char *after = shown(&t.headers);
        if (strcmp(after, requests[i].after) != 0)
            fail_msg("%s %s: %s", requests[i].rules, requests[i].before, after);
        check_chains(&t.headers);
        free(after);
        tried_fini(&t);
        config_unref(&c);
    }
}

static void test_full_list(void **state)
{
    (void)state;
    struct config *c = rules_load("[ { request: { append: { A: [ \"1\", \"2\", \"3\", \"4\", "
                                  "\"5\", \"6\", \"7\", \"8\", \"9\", \"10\", \"11\", \"12\", "
                                  "\"13\", \"14\", \"15\", \"16\", \"17\" ] } } } ]");
    struct tried t;
    try_request(&t, c, "/", NULL);
    assert_false(rules_edit_request(&t.effects, &t.request, &t.headers, &t.a));
    tried_fini(&t);
    config_unref(&c);
}

static void test_whose_field_it_is(void **state)
{
    (void)state;
    struct config *c = rules_load(
        "[ { request: { set: { X-Real-IP: $client }, append: { X-A: b }, remove: X-C } } ]");
    struct tried t;
    try_request(&t, c, "/", NULL);
    assert_true(rules_sets_request_field(&t.effects, SLICE("x-real-ip")));
    assert_true(rules_sets_request_field(&t.effects, SLICE("X-A")));
    assert_false(rules_sets_request_field(&t.effects, SLICE("X-C")));
    tried_fini(&t);
    config_unref(&c);
}

/* ---- paths ---- */

static const struct {
    const char *rules, *request, *path,
        *query; /* query NULL: none; path NULL: no path came of it */
} rewrites[] = {
    { "[ { match: { path_regex: \"^/old/(.*)$\" }, rewrite: { path: \"/new/$1\" } } ]",
      "/old/a/b?c=d", "/new/a/b", "c=d" },
    { "[ { match: { path_regex: \"^/old/(.*)$\" }, rewrite: { path: \"/new/$1\" } } ]", "/old/",
      "/new/", NULL },
    { "[ { rewrite: { regex: \"^/old/(.*)$\", path: \"/new/$1\" } } ]", "/old/a?", "/new/a", "" },
    { "[ { rewrite: { regex: \"^/old/(.*)$\", path: \"/new/$1\" } } ]", "/other", "/other",
      NULL }, /* no match: as it was */
    { "[ { rewrite: { path: /one.php } } ]", "/a?b", "/one.php", "b" },
    { "[ { rewrite: { path: /one.php, query: \"p=$path\" } } ]", "/a?b", "/one.php", "p=/a" },
    { "[ { rewrite: { path: /one.php, query: \"p=$path&$args\" } } ]", "/a?b", "/one.php",
      "p=/a&b" },
    { "[ { rewrite: { query: \"\" } } ]", "/a?b", "/a", NULL }, /* an empty one takes it off */
    { "[ { rewrite: { path: /a } }, { rewrite: { path: /b } } ]", "/", "/b", NULL },
    { "[ { rewrite: { regex: \"^/(.)\", path: \"/x$1\" } }, { rewrite: { regex: \"^/x\", path: /no "
      "} } ]",
      "/a", "/xa", NULL }, /* each of the path that came */
    /* captures are of the form in which paths are compared: nothing in them can end the path */
    { "[ { rewrite: { regex: \"^/old/(.*)$\", path: \"/new/$1\" } } ]", "/old//%61%3fb%20c/../d",
      "/new/d", NULL },
    { "[ { rewrite: { regex: \"^/old/(.*)$\", path: \"/new/$1\" } } ]", "/old/a%3fb%0d%0ac",
      "/new/a%3Fb%0D%0Ac", NULL },
    { "[ { rewrite: { regex: \"^/(.*)$\", path: \"$1\" } } ]", "/old", NULL,
      NULL }, /* begins with no slash */
    { "[ { rewrite: { path: \"/x$query\" } } ]", "/a?b", NULL, NULL },
    { "[ { rewrite: { path: \"/x$query\" } } ]", "/a", "/x", NULL },
};

static void test_rewrites(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rewrites); i++) {
        struct config *c = rules_load(rewrites[i].rules);
        struct tried t;
        struct slice path, query;
        try_request(&t, c, rewrites[i].request, NULL);
        assert_true(t.effects.rewrites);
        bool is_path = rules_rewrite(&t.effects, &t.request, &t.a, &path, &query);
        if (is_path != (rewrites[i].path != NULL))
            fail_msg("%s %s", rewrites[i].rules, rewrites[i].request);
        if (is_path && (!slice_equal(path, slice_of(rewrites[i].path)) ||
                        (query.ptr == NULL) != (rewrites[i].query == NULL) ||
                        !slice_equal(query, slice_of(rewrites[i].query))))
            fail_msg("%s %s: " SLICE_FMT " " SLICE_FMT, rewrites[i].rules, rewrites[i].request,
                     SLICE_ARG(path), SLICE_ARG(query));
        tried_fini(&t);
        config_unref(&c);
    }
}

/* ---- answers' fields ---- */

static const struct {
    const char *rules, *lines;
    const char *dropped, *kept; /* names, one each */
} responses[] = {
    { "[ { response: { set: { X-Frame-Options: DENY } } } ]", "X-Frame-Options: DENY\r\n",
      "x-frame-options", "X-Frame" },
    { "[ { response: { append: { Link: [ a, b ] } } } ]", "Link: a\r\nLink: b\r\n", NULL, "Link" },
    { "[ { response: { remove: [ X-Powered-By, \"x-amz-*\" ] } } ]", "", "X-Amz-Id-2",
      "X-Powered" },
    { "[ { response: { remove: \"*\" } } ]", "", "Server",
      "Content-Length" }, /* what is Larder's stays */
    { "[ { response: { remove: \"*\" } } ]", "", "Set-Cookie", "Transfer-Encoding" },
    { "[ { response: { remove: \"*\" } } ]", "", "ETag", "Age" },
    { "[ { response: { set: { A: \"1\" } } }, { response: { set: { a: \"2\" } } } ]", "a: 2\r\n",
      "A", "B" },
    { "[ { response: { set: { A: \"1\" } } }, { response: { append: { A: \"2\" } } } ]",
      "A: 1\r\nA: 2\r\n", "A", "B" },
    { "[ { response: { append: { A: \"1\" } } }, { response: { remove: A } } ]", "", "A", "B" },
    { "[ { response: { remove: A, set: { A: \"1\" } } } ]", "A: 1\r\n", "A", "B" },
    { "[ { response: { set: { A: \"$host $1\" } } } ]", "A: $host $1\r\n", "A",
      "B" }, /* no variables there */
    { "[ { match: { path: /b }, response: { set: { A: \"1\" } } } ]", "", NULL, "A" },
};

static void test_responses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(responses); i++) {
        struct config *c = rules_load(responses[i].rules);
        struct tried t;
        try_request(&t, c, "/", NULL);
        struct slice lines = rules_response_lines(&t.effects, &t.a);
        if (!slice_equal(lines, slice_of(responses[i].lines)))
            fail_msg("%s: " SLICE_FMT, responses[i].rules, SLICE_ARG(lines));
        if (responses[i].dropped != NULL &&
            !rules_drops_response_field(&t.effects, slice_of(responses[i].dropped)))
            fail_msg("%s: %s", responses[i].rules, responses[i].dropped);
        if (rules_drops_response_field(&t.effects, slice_of(responses[i].kept)))
            fail_msg("%s: %s", responses[i].rules, responses[i].kept);
        tried_fini(&t);
        config_unref(&c);
    }
}

/* ---- tags ---- */

static void check_tags(const char *rules, const char *request, const char *expected)
{
    struct config *c = rules_load(rules);
    struct tried t;
    try_request(&t, c, request, NULL);
    struct slice tags = rules_tags(&t.effects, &t.a);
    char *text = slice_to_string(tags);
    for (size_t i = 0; i < tags.len; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    if (strcmp(text, expected) != 0)
        fail_msg("%s: %s", rules, text);
    free(text);
    tried_fini(&t);
    config_unref(&c);
}

static void test_tags(void **state)
{
    (void)state;
    check_tags("[ { tags: [ product, all ] }, { tags: b } ]", "/", "product all b ");
    check_tags("[ { match: { path_regex: \"^/p/(\\\\d+)$\" }, tags: [ product, \"page-$1\" ] } ]",
               "/p/12", "product page-12 ");
    check_tags("[ { match: { path_regex: \"^/p/(\\\\d+)$\" }, tags: [ product, \"page-$1\" ] } ]",
               "/q/12", "");
    check_tags("[ { match: { path_regex: \"^/p/(.*)$\" }, tags: \"page-$1\" } ]", "/p/a,b%20c",
               "page-ab%20c "); /* no tag has a comma */
    check_tags("[ { match: { path_regex: \"^/p/(x)?\" }, tags: \"$1\" } ]", "/p/",
               ""); /* nor is one empty */
    check_tags("[ { tags: \"a$$b\" } ]", "/", "a$b ");
    check_tags("[ { tags: \"host-$host\" }, { tags: \"$scheme\" } ]", "/",
               "host-www.example.com http ");
}

/* What a client can make long is bounded. */
static void test_long_tags(void **state)
{
    (void)state;
    char path[600], expected[16];
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    snprintf(expected, sizeof expected, "a b ");
    check_tags("[ { tags: [ a, \"$path\", b ] } ]", path, expected);
}

/* ---- answers of rules ---- */

static const struct {
    const char *rules, *request;
    uint16_t status;
    const char *location, *type, *body;
} answers[] = {
    { "[ { redirect: { to: \"https://$host$path$query\", status: 301 } } ]", "/a?b=c", 301,
      "https://www.example.com/a?b=c", NULL, "" },
    { "[ { redirect: { to: /x } } ]", "/a", 302, "/x", NULL, "" },
    { "[ { match: { path_regex: \"^/old/(.*)$\" }, redirect: { to: \"/new/$1\", status: 308 } } ]",
      "/old/a%20b", 308, "/new/a%20b", NULL, "" },
    { "[ { redirect: { to: \"https://x.example$path\" } } ]", "/a\"<b>", 302,
      "https://x.example/a%22%3Cb%3E", NULL, "" },
    { "[ { redirect: { to: \"$path\" } } ]", "//evil.example/", 302, "/evil.example/", NULL,
      "" }, /* RFC 3986 4.2: not to another host */
    { "[ { redirect: { to: \"/$1\" }, match: { path_regex: \"(.*)\" } } ]", "/evil.example/", 302,
      "/evil.example/", NULL, "" },
    { "[ { answer: { status: 410, body: gone, type: text/html } } ]", "/", 410, NULL, "text/html",
      "gone" },
    { "[ { answer: { body: \"User-agent: *\\nDisallow: /\\n\" } } ]", "/robots.txt", 200, NULL,
      "text/plain; charset=utf-8", "User-agent: *\nDisallow: /\n" },
    { "[ { answer: { status: 204 } } ]", "/", 204, NULL, "text/plain; charset=utf-8", "" },
    { "[ { deny: true } ]", "/", 403, NULL, NULL, "" },
    { "[ { deny: 404 } ]", "/", 404, NULL, NULL, "" },
};

static void test_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(answers); i++) {
        struct config *c = rules_load(answers[i].rules);
        struct tried t;
        struct rule_answer answer;
        try_request(&t, c, answers[i].request, NULL);
        rules_answer(&t.effects, &t.request, &t.a, &answer);
        assert_int_equal(answer.status, answers[i].status);
        if (!slice_equal(answer.location, slice_of(answers[i].location)))
            fail_msg("%s: " SLICE_FMT, answers[i].rules, SLICE_ARG(answer.location));
        if (answers[i].type != NULL)
            assert_true(slice_equal(answer.type, slice_of(answers[i].type)));
        assert_true(slice_equal(answer.body, slice_of(answers[i].body)));
        tried_fini(&t);
        config_unref(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),          cmocka_unit_test(test_full_list),
        cmocka_unit_test(test_whose_field_it_is), cmocka_unit_test(test_rewrites),
        cmocka_unit_test(test_responses),         cmocka_unit_test(test_tags),
        cmocka_unit_test(test_long_tags),         cmocka_unit_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
