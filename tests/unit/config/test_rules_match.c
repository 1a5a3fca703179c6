/* tests/unit/config/test_rules_match.c: which rules match which requests and answers, and what the
 * sum of them is. */
#include "rules_help.h"

#define DENY ", deny: true } ]"

/* One rule that denies: whether it got the request. */
static const struct {
    const char *match, *request, *fields;
    bool matches;
} rows[] = {
    /* nothing asked */
    { "{}", "/", NULL, true },
    /* path */
    { "{ path: /a }", "/a", NULL, true },
    { "{ path: /a }", "/b", NULL, false },
    { "{ path: [ /b, /a ] }", "/a", NULL, true },
    { "{ path: [ /abcdefghij, /abcdefgxyz ] }", "/abcdefgxyz", NULL, true },
    { "{ path: [ /abcdefghij, /abcdefgxyz ] }", "/abcdefghi", NULL, false },
    { "{ path: \"/static/**\" }", "/static/a/b.css", NULL, true },
    { "{ path: \"/**.css\" }", "/a.css", NULL, true },
    { "{ path: \"/**.css\" }", "/a.csx", NULL, false },
    { "{ path: \"/a*a\" }", "/a", NULL, false },
    { "{ path: / }", "/", NULL, true },
    { "{ path: / }", "/a", NULL, false },
    { "{ path: \"*\" }", "OPTIONS *", NULL, true },
    { "{ path: /admin }", "//x/../%61dmin", NULL, true }, /* however it is spelt */
    { "{ path: \"/caf\xc3\xa9\" }", "/caf%c3%a9", NULL, true },
    { "{ path: /Static/A.CSS, ignore_case: true }", "/sTATIC/a.css", NULL, true },
    { "{ path: \"/Static/**\", ignore_case: true }", "/STATIC/x", NULL, true },
    { "{ path: \"/static/**\" }", "/STATIC/x", NULL, false },
    { "{ path_regex: \"^/p/[0-9]+$\" }", "/p/12", NULL, true },
    { "{ path_regex: \"^/p/[0-9]+$\" }", "/p/x", NULL, false },
    { "{ path_regex: [ \"^/q\", \"/x$\" ] }", "/p/x", NULL, true },
    { "{ path_regex: \"^/P/\", ignore_case: true }", "/p/x", NULL, true },
    { "{ path: \"/p/**\", path_regex: \"x$\" }", "/p/x", NULL, true }, /* both */
    { "{ path: \"/p/**\", path_regex: \"x$\" }", "/q/x", NULL, false },
    /* host */
    { "{ host: www.example.com }", "/", NULL, true },
    { "{ host: WWW.Example.com }", "/", NULL, true },
    { "{ host: \"*.example.com\" }", "/", NULL, true },
    { "{ host: \"*.example.com\" }", "GET http://example.com/", NULL, false },
    { "{ host: [ a.example, b.example ] }", "GET http://b.example/", NULL, true },
    { "{ host: \"[::1]\" }", "GET http://a/", NULL, false },
    /* method, scheme */
    { "{ method: GET }", "/", NULL, true },
    { "{ method: GET }", "HEAD /", NULL, false },
    { "{ method: [ GET, HEAD ] }", "HEAD /", NULL, true },
    { "{ method: REPORT }", "REPORT /", NULL, true },
    { "{ method: REPORT }", "SEARCH /", NULL, false },
    { "{ method: [ REPORT, POST ] }", "POST /", NULL, true },
    { "{ method: [ GET ] }", "get /", NULL, false }, /* RFC 9110 9.1: case-sensitive */
    { "{ scheme: https }", "GET https://a/", NULL, true },
    { "{ scheme: https }", "GET http://a/", NULL, false },
    { "{ scheme: [ http, https ] }", "GET http://a/", NULL, true },
    /* query */
    { "{ query: { a: true } }", "/?a", NULL, true },
    { "{ query: { a: true } }", "/?b&a=1", NULL, true },
    { "{ query: { a: true } }", "/?ab=1", NULL, false },
    { "{ query: { a: true } }", "/", NULL, false },
    { "{ query: { a: \"*\" } }", "/?a=", NULL, true },
    { "{ query: { a: false } }", "/", NULL, true },
    { "{ query: { a: false } }", "/?b=1", NULL, true },
    { "{ query: { a: false } }", "/?a=1", NULL, false },
    { "{ query: { a: \"true\" } }", "/?a=true", NULL, true }, /* in quotes: the text */
    { "{ query: { a: \"true\" } }", "/?a=1", NULL, false },
    { "{ query: { a: [ \"1\", \"2*\" ] } }", "/?a=23", NULL, true },
    { "{ query: { a: [ \"1\", \"2*\" ] } }", "/?a=3", NULL, false },
    { "{ query: { a: \"1\" } }", "/?a=2&a=1", NULL, true }, /* any of that name */
    { "{ query: { a: { regex: \"^[0-9]+$\" } } }", "/?a=12", NULL, true },
    { "{ query: { a: { regex: \"^[0-9]+$\" } } }", "/?a=12x", NULL, false },
    { "{ query: { a: \"1\", b: \"2\" } }", "/?b=2&a=1", NULL, true }, /* a mapping: all */
    { "{ query: { a: \"1\", b: \"2\" } }", "/?a=1", NULL, false },
    { "{ query: [ a, b ] }", "/?b=2", NULL, true }, /* a list: any */
    { "{ query: [ a, b ] }", "/?c=2", NULL, false },
    { "{ query: \"utm_*\" }", "/?utm_source=x", NULL, true },
    { "{ query: { \"utm_*\": mail } }", "/?utm_a=x&utm_b=mail", NULL, true },
    { "{ query: { \"a b\": \"c d\" } }", "/?a+b=c%20d", NULL, true }, /* as applications read it */
    { "{ query: { preview: true } }", "/?pre%76iew=1", NULL, true },
    { "{ query: { a: \"*/etc/*\" } }", "/?a=..%2fetc%2fpasswd", NULL, true },
    { "{ query: { a: true } }", "/?", NULL, false },
    { "{ query: { a: true } }", "/?&&a", NULL, true },
    /* fields */
    { "{ fields: { X-Requested-With: XMLHttpRequest } }", "/", "x-requested-with: XMLHttpRequest",
      true },
    { "{ fields: { X-Requested-With: XMLHttpRequest } }", "/", "X-Requested-With: xmlhttprequest",
      false },
    { "{ fields: { User-Agent: { regex: \"(?i)mobile\" } } }", "/", "User-Agent: A Mobile B",
      true },
    { "{ fields: { User-Agent: \"*Mobile*\" } }", "/", "User-Agent: A Mobile B", true },
    { "{ fields: { Authorization: true } }", "/", "Authorization: Basic x", true },
    { "{ fields: { Authorization: true } }", "/", NULL, false },
    { "{ fields: { Authorization: false } }", "/", NULL, true },
    { "{ fields: { Accept: \"b\" } }", "/", "Accept: a\nAccept: b", true }, /* any line */
    { "{ fields: { X-A: \"b\" } }", "/", "X-A: a\nx-a: b", true },
    { "{ fields: { \"X-Debug-*\": true } }", "/", "x-debug-level: 1", true },
    { "{ fields: [ X-A, X-B ] }", "/", "X-B: 1", true },
    /* cookies */
    { "{ cookies: { \"wordpress_logged_in_*\": \"*\" } }", "/",
      "Cookie: a=b; wordpress_logged_in_12=x", true },
    { "{ cookies: { \"wordpress_logged_in_*\": \"*\" } }", "/", "Cookie: a=wordpress_logged_in_12",
      false },
    { "{ cookies: [ a, b ] }", "/", "Cookie: c=1;b=2", true },
    { "{ cookies: [ a, b ] }", "/", "Cookie: c=1\nCookie: b=2",
      true },                                            /* all fields (RFC 9113 8.2.3) */
    { "{ cookies: [ a ] }", "/", "Cookie: A=1", false }, /* names are case-sensitive */
    { "{ cookies: [ a ] }", "/", "Cookie:  a = 1 ", true },
    { "{ cookies: [ a ] }", "/", "Cookie: a", true },
    { "{ cookies: [ a ] }", "/", "Cookie: ;;;a=1", true },
    { "{ cookies: { a: \"x=y\" } }", "/", "Cookie: a=x=y", true },
    { "{ cookies: { a: false } }", "/", NULL, true },
    { "{ cookies: { a: false } }", "/", "Cookie: a=1", false },
    { "{ cookies: { a: \"\" } }", "/", "Cookie: a=", true },
    { "{ cookies: [ a ] }", "/", NULL, false },
    /* client */
    { "{ client: 10.0.0.0/8 }", "/", NULL, false },
    /* not */
    { "{ not: { path: /a } }", "/b", NULL, true },
    { "{ not: { path: /a } }", "/a", NULL, false },
    { "{ not: { path: /a, method: POST } }", "/a", NULL, true }, /* not both */
    { "{ not: { path: /a, method: POST } }", "POST /a", NULL, false },
    { "{ path: \"/a/**\", not: { path: \"/**.css\" } }", "/a/b", NULL, true },
    { "{ path: \"/a/**\", not: { path: \"/**.css\" } }", "/a/b.css", NULL, false },
    { "{ not: { cookies: [ a, b ] } }", "/", "Cookie: b=1", false },
    { "{ not: { cookies: [ a, b ] } }", "/", NULL, true },
};

static void test_requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char rules[512];
        struct tried t;
        snprintf(rules, sizeof rules, "[ { match: %s" DENY, rows[i].match);
        struct config *c = rules_load(rules);
        try_request(&t, c, rows[i].request, rows[i].fields);
        bool matches = t.effects.end == RULE_DENY;
        if (matches != rows[i].matches || t.effects.matched_count != matches ||
            rules_matched(&t.effects, 0) != matches)
            fail_msg("%s %s %s", rows[i].match, rows[i].request, rows[i].fields);
        tried_fini(&t);
        config_unref(&c);
    }
}

static void test_clients(void **state)
{
    (void)state;
    struct config *c =
        rules_load("[ { match: { client: [ 10.0.0.0/8, \"2001:db8::/32\" ] }, deny: true } ]");
    static const struct {
        const char *address;
        bool matches;
    } clients[] = { { "10.1.2.3", true },
                    { "11.1.2.3", false },
                    { "2001:db8::1", true },
                    { "2001:db9::1", false } };
    for (size_t i = 0; i < ARRAY_COUNT(clients); i++) {
        struct tried t;
        struct network n;
        try_request(&t, c, "/", NULL);
        assert_true(network_parse(clients[i].address, &n));
        memcpy(t.peer.bytes, n.bytes, sizeof t.peer.bytes);
        t.request.client = &t.peer;
        rules_on_request(&c->sites[0], &t.request, &t.effects);
        assert_int_equal(t.effects.end == RULE_DENY, clients[i].matches);
        t.peer = (struct peer){ .is_unix = true };
        rules_on_request(&c->sites[0], &t.request, &t.effects);
        assert_int_equal(t.effects.end, RULE_GO_ON);
        tried_fini(&t);
    }
    config_unref(&c);
}

/* More parameters and cookies than a view holds, and names that are longer than its room. */
static void test_many_entries(void **state)
{
    (void)state;
    struct config *c = rules_load(
        "[ { match: { query: { last: \"x y\" } }, tags: q }, { match: { cookies: { last: x } }, "
        "tags: c }, { match: { query: { \"%*%\": true } }, tags: p } ]");
    char *line = xmalloc(100000), *fields = xmalloc(100000);
    size_t line_len = 0, fields_len = 0;
    line_len += (size_t)sprintf(line, "/?");
    fields_len += (size_t)sprintf(fields, "Cookie: ");
    for (int i = 0; i < 500; i++) {
        line_len +=
            (size_t)sprintf(line + line_len, "%%61%%62%%63%%64%%65_a_name_of_some_length_%d=1&", i);
        fields_len += (size_t)sprintf(fields + fields_len, "c%d=1; ", i);
    }
    sprintf(line + line_len, "la%%73t=x%%20y");
    sprintf(fields + fields_len, "last=x");
    struct tried t;
    try_request(&t, c, line, fields);
    assert_true(rules_matched(&t.effects, 0) && rules_matched(&t.effects, 1) &&
                !rules_matched(&t.effects, 2));
    tried_fini(&t);
    sprintf(line, "/?");
    memset(line + 2, 'a', 3000);
    sprintf(line + 3002, "+%%20=1&last=x+y");
    try_request(&t, c, line, "Cookie: a=1\nCookie: last=x");
    assert_true(rules_matched(&t.effects, 0) && rules_matched(&t.effects, 1));
    tried_fini(&t);
    free(line);
    free(fields);
    config_unref(&c);
}

/* ---- the sum ---- */

static void test_order(void **state)
{
    (void)state;
    struct config *c = rules_load(
        "[ { cache: { ttl: 1m, grace: 1h } }, { match: { path: \"/a/**\" }, cache: { ttl: 1d, "
        "stale_if_error: 7d, keep: 0 } }, { match: { path: /a/b }, stop: true }, { cache: no_store "
        "} ]");
    struct tried t;
    try_request(&t, c, "/a/c", NULL);
    const struct config_rule *r = c->sites[0].rules;
    assert_int_equal(t.effects.ttl_s, 86400); /* the later one counts */
    assert_ptr_equal(t.effects.ttl_by, &r[1]);
    assert_int_equal(t.effects.stale_while_revalidate_s, 3600);
    assert_int_equal(t.effects.stale_if_error_s, 7 * 86400);
    assert_int_equal(t.effects.keep_s, 0);
    assert_ptr_equal(t.effects.unstored_by, &r[3]);
    assert_null(t.effects.bypassed_by);
    assert_int_equal(t.effects.matched_count, 3);
    tried_fini(&t);
    try_request(&t, c, "/a/b", NULL);
    assert_int_equal(t.effects.matched_count, 3); /* stop */
    assert_null(t.effects.unstored_by);
    tried_fini(&t);
    try_request(&t, c, "/b", NULL);
    assert_int_equal(t.effects.ttl_s, 60);
    assert_int_equal(t.effects.keep_s, RULE_UNSET);
    tried_fini(&t);
    config_unref(&c);
}

static void test_no_rules(void **state)
{
    (void)state;
    struct config *c = rules_load("[]");
    struct tried t;
    try_request(&t, c, "/a", NULL);
    assert_false(rules_has_any(&c->sites[0]));
    assert_int_equal(t.effects.ttl_s, RULE_UNSET);
    assert_int_equal(t.effects.default_ttl_s, RULE_UNSET);
    assert_int_equal(t.effects.matched_count, 0);
    assert_int_equal(t.effects.end, RULE_GO_ON);
    assert_false(t.effects.awaits_response);
    tried_fini(&t);
    config_unref(&c);
}

/* What a cookie of one's own asks for cannot be taken back further down. */
static void test_bypass_stays(void **state)
{
    (void)state;
    struct config *c = rules_load(
        "[ { match: { cookies: [ session ] }, cache: bypass }, { cache: { ttl: 1d } }, { cache: "
        "bypass, match: { path: /b } } ]");
    struct tried t;
    try_request(&t, c, "/b", "Cookie: session=1");
    assert_ptr_equal(t.effects.bypassed_by, &c->sites[0].rules[0]); /* the first that said so */
    assert_int_equal(t.effects.ttl_s, 86400);
    tried_fini(&t);
    config_unref(&c);
}

static void test_end_of_the_walk(void **state)
{
    (void)state;
    struct config *c = rules_load(
        "[ { match: { path: /a }, deny: 404 }, { match: { path: \"/a*\" }, redirect: { to: /x } }, "
        "{ match: { path: /c }, answer: { body: hi } }, { origin: files } ]");
    struct tried t;
    static const struct {
        const char *path;
        enum rule_end end;
    } paths[] = {
        { "/a", RULE_DENY }, { "/ab", RULE_REDIRECT }, { "/c", RULE_ANSWER }, { "/d", RULE_GO_ON }
    };
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        try_request(&t, c, paths[i].path, NULL);
        assert_int_equal(t.effects.end, paths[i].end);
        bool goes_on = paths[i].end == RULE_GO_ON;
        assert_int_equal(t.effects.ended_by == NULL, goes_on);
        assert_ptr_equal(t.effects.origin, goes_on ? &c->origins[1] : NULL);
        assert_int_equal(t.effects.matched_count, 1);
        tried_fini(&t);
    }
    config_unref(&c);
}

/* A pattern that takes too long is no reason to take the rule, whichever way round it asks. */
static void test_costly_regex_is_no_match(void **state)
{
    (void)state;
    struct config *c = rules_load("[ { match: { query: { a: { regex: \"^(a+)+$\" } } }, deny: true "
                                  "}, { match: { not: { query: "
                                  "{ a: { regex: \"^(a+)+$\" } } } }, deny: true } ]");
    char line[2048];
    memset(line, 'a', sizeof line);
    memcpy(line, "/?a=", 4);
    memcpy(line + sizeof line - 2, "c", 2);
    struct tried t;
    try_request(&t, c, line, NULL);
    assert_int_equal(t.effects.end, RULE_GO_ON);
    tried_fini(&t);
    config_unref(&c);
}

/* ---- answers ---- */

static void answer(struct tried *t, uint16_t status, const char *fields)
{
    headers_init(&t->answer, t->answer_storage, TRIED_FIELDS);
    fill_headers(&t->answer, fields);
    t->response = (struct rule_response){ status, &t->answer };
    rules_on_response(&t->request, &t->response, &t->effects);
}

static void test_answers(void **state)
{
    (void)state;
    static const struct {
        const char *match;
        uint16_t status;
        const char *fields;
        bool matches;
    } answers[] = {
        { "{ status: 404 }", 404, "", true },
        { "{ status: 404 }", 403, "", false },
        { "{ status: [ 200, 5xx ] }", 503, "", true },
        { "{ status: [ 200, 5XX ] }", 404, "", false },
        { "{ response_fields: { Content-Type: \"text/html*\" } }", 200,
          "content-type: text/html; charset=x", true },
        { "{ response_fields: { Content-Type: \"text/html*\" } }", 200, "Content-Type: text/plain",
          false },
        { "{ response_fields: { Content-Type: \"text/html*\" } }", 200, "", false },
        { "{ response_fields: { X-A: false } }", 200, "", true },
        { "{ status: 200, response_fields: [ X-A ] }", 200, "X-A: 1", true },
        { "{ status: 200, response_fields: [ X-A ] }", 201, "X-A: 1", false },
        { "{ path: /a, status: 200 }", 200, "", true },
        { "{ path: /b, status: 200 }", 200, "", false },
        { "{ not: { status: 200 } }", 200, "", false },
        { "{ not: { status: 200 } }", 404, "", true },
        { "{ path: /b, not: { status: 200 } }", 404, "", false },
    };
    for (size_t i = 0; i < ARRAY_COUNT(answers); i++) {
        char rules[256];
        struct tried t;
        snprintf(rules, sizeof rules, "[ { match: %s, cache: { ttl: 1m } } ]", answers[i].match);
        struct config *c = rules_load(rules);
        try_request(&t, c, "/a", NULL);
        assert_int_equal(t.effects.ttl_s, RULE_UNSET); /* it waits */
        assert_false(rules_matched(&t.effects, 0));
        answer(&t, answers[i].status, answers[i].fields);
        if ((t.effects.ttl_s == 60) != answers[i].matches ||
            rules_matched(&t.effects, 0) != answers[i].matches)
            fail_msg("%s %u %s", answers[i].match, answers[i].status, answers[i].fields);
        tried_fini(&t);
        config_unref(&c);
    }
}

/* A stale answer first, then the new one: each is judged by itself. */
static void test_two_answers(void **state)
{
    (void)state;
    struct config *c = rules_load("[ { cache: { ttl: 1h, default_ttl: { 200: 5m, 404: 1s } }, "
                                  "tags: a }, { match: { status: 404 }, cache: "
                                  "{ ttl: 10s, ignore: vary }, tags: \"gone-$path\", response: { "
                                  "set: { X-Gone: y } } }, { match: { status: 404, "
                                  "path: /b }, cache: no_store, stop: true }, { match: { status: "
                                  "404 }, cache: { keep: 1s } } ]");
    struct tried t;
    try_request(&t, c, "/a", NULL);
    assert_true(t.effects.awaits_response && t.effects.awaits_fields);
    answer(&t, 404, "");
    assert_int_equal(t.effects.ttl_s, 10);
    assert_int_equal(t.effects.ignores, IGNORE_VARY);
    assert_int_equal(t.effects.default_ttl_s, 1);
    assert_true(t.effects.edits_response);
    assert_int_equal(t.effects.keep_s, 1);
    assert_int_equal(t.effects.matched_count, 3);
    assert_int_equal(rules_tags(&t.effects, &t.a).len, 2 + 8); /* "a", "gone-/a" */
    answer(&t, 200, "");
    assert_int_equal(t.effects.ttl_s, 3600);
    assert_int_equal(t.effects.ignores, 0);
    assert_int_equal(t.effects.default_ttl_s, 300);
    assert_int_equal(rules_default_ttl(&t.effects, 404), 1);
    assert_int_equal(rules_default_ttl(&t.effects, 500), RULE_UNSET);
    assert_false(t.effects.edits_response);
    assert_int_equal(t.effects.matched_count, 1);
    assert_int_equal(rules_tags(&t.effects, &t.a).len, 2);
    tried_fini(&t);
    try_request(&t, c, "/b", NULL);
    answer(&t, 404, "");
    assert_ptr_equal(t.effects.unstored_by, &c->sites[0].rules[2]);
    assert_int_equal(t.effects.keep_s, RULE_UNSET); /* stop */
    tried_fini(&t);
    config_unref(&c);
}

static void test_which_rule(void **state)
{
    (void)state;
    struct config *c = rules_load("\n    - name: first\n      match: { path: /a, method: [ GET, "
                                  "HEAD ], cookies: [ x, y ], not: { "
                                  "scheme: https } }\n      cache: { ttl: 1d, grace: 90s }\n    - "
                                  "redirect: { to: \"https://$host$path\" }\n");
    const struct config_site *s = &c->sites[0];
    assert_string_equal(rule_name(rules_at(s, 0)), "first");
    assert_string_equal(rule_where(rules_at(s, 0)), "t:6");
    assert_string_equal(
        rule_summary(rules_at(s, 0)),
        "path /a, method GET or HEAD, cookie x or y, not (scheme https): ttl 1d, grace 90s");
    assert_string_equal(rule_name(rules_at(s, 1)), "");
    assert_string_equal(rule_where(rules_at(s, 1)), "t:9");
    assert_string_equal(rule_summary(rules_at(s, 1)), "always: redirect 302 to https://$host$path");
    config_unref(&c);
}

/* As many as a site can have, over the words of the bit set. */
static void test_many_rules(void **state)
{
    (void)state;
    char *yaml = NULL;
    size_t size;
    FILE *out = open_memstream(&yaml, &size);
    fputs("[", out);
    for (int i = 0; i < RULES_MAX; i++)
        fprintf(out, "%s{ match: { path: \"/%d/**\" }, tags: t%d }", i == 0 ? "" : ", ", i % 700,
                i);
    fputs("]", out);
    fclose(out);
    struct config *c = rules_load(yaml);
    for (int i = 0; i < 700; i += 33) {
        char path[32];
        struct tried t;
        snprintf(path, sizeof path, "/%d/x", i);
        try_request(&t, c, path, NULL);
        assert_int_equal(t.effects.matched_count, i < RULES_MAX - 700 ? 2 : 1);
        assert_true(rules_matched(&t.effects, (size_t)i));
        size_t at = 0;
        assert_ptr_equal(rules_next_matched(&t.effects, &at), rules_at(&c->sites[0], (size_t)i));
        tried_fini(&t);
    }
    free(yaml);
    config_unref(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_many_entries),    cmocka_unit_test(test_order),
        cmocka_unit_test(test_no_rules),        cmocka_unit_test(test_bypass_stays),
        cmocka_unit_test(test_end_of_the_walk), cmocka_unit_test(test_costly_regex_is_no_match),
        cmocka_unit_test(test_answers),         cmocka_unit_test(test_two_answers),
        cmocka_unit_test(test_which_rule),      cmocka_unit_test(test_many_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
