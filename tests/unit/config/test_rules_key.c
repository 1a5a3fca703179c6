/* tests/unit/config/test_rules_key.c: what rules leave of a query in the key, and what they add to
 * it. */
#include "rules_help.h"

#define KEY(edits) "[ { key: { " edits " } } ]"

static const struct {
    const char *rules, *query, *key; /* NULL: none, not even a '?' */
} rows[] = {
    /* untouched without edits of the query */
    { "[ { cache: bypass } ]", "b=1&&a=2", "b=1&&a=2" },
    { KEY("ignore_case: true"), "b=1&&a=2&", "b=1&&a=2&" },
    { "[ { match: { path: /other }, key: { ignore: a } } ]", "a=1", "a=1" },
    /* ignore */
    { KEY("ignore: [ utm_*, gclid ]"), "utm_source=x&id=1&gclid=y&page=2", "id=1&page=2" },
    { KEY("ignore: [ utm_*, gclid ]"), "utm_source=x", NULL },
    { KEY("ignore: [ utm_*, gclid ]"), "utm_source", NULL },
    { KEY("ignore: [ utm_*, gclid ]"), "", NULL },
    { KEY("ignore: [ utm_*, gclid ]"), NULL, NULL },
    { KEY("ignore: a"), "ab=1&A=2&a=3&a", "ab=1&A=2" }, /* in its own case */
    { KEY("ignore: a"), "b=a&c=?a=1", "b=a&c=?a=1" },
    { KEY("ignore: a"), "b=1&&c=2&", "b=1&c=2" }, /* empty ones say nothing */
    { KEY("ignore: a"), "&&", NULL },
    { KEY("ignore: a"), "=1&b", "=1&b" },
    { KEY("ignore: \"utm_*\""), "utm%5fsource=x&b=1", "b=1" }, /* as applications read names */
    { KEY("ignore: \"a b\""), "a+b=x&a%20b=y&c", "c" },
    { "[ { key: { ignore: a } }, { key: { ignore: b } } ]", "a=1&b=2&c=3", "c=3" },
    { KEY("ignore: \"utm_*\""), "utm_content=x;id=5&b=1",
      "utm_content=x;id=5&b=1" }, /* some see a parameter behind the ; */
    { KEY("ignore: id"), "i.d=1&id[]=2&ID=3", "i.d=1&id[]=2&ID=3" }, /* when in doubt it stays */
    /* keep */
    { KEY("keep: [ id, page ]"), "x=1&page=2&id=3&y", "page=2&id=3" },
    { KEY("keep: [ id, page ]"), "x=1", NULL },
    { KEY("keep: page_id"), "page_id=1&page.id=2&page%20id=3&page[id=4&Page_ID=5&pageid=6",
      "page_id=1&page.id=2&page%20id=3&Page_ID=5" },
    { KEY("keep: page_id"), "page%5fid=1&x=2", "page%5fid=1" },
    { KEY("keep: ids"), "ids[]=1&ids[a]=2&ids%5B%5D=3&x[ids]=4", "ids[]=1&ids[a]=2&ids%5B%5D=3" },
    { KEY("keep: id"), "x=1;id=2&y=3", "x=1;id=2" },
    { KEY("keep: id"), "+id=1&%20id=2&id%00x=3",
      "+id=1&%20id=2&id%00x=3" }, /* PHP trims, and ends at the NUL */
    { "[ { key: { keep: id } }, { key: { keep: page } } ]", "x=1&page=2&id=3", "page=2&id=3" },
    { KEY("keep: [ id, utm_a ], ignore: \"utm_*\""), "x=1&utm_a=2&id=3",
      "id=3" }, /* ignored all the same */
    /* sort: by name, stable */
    { KEY("sort: true"), "b=2&a=1&c", "a=1&b=2&c" },
    { KEY("sort: true"), "b=2&a=2&b=1&a=1", "a=2&a=1&b=2&b=1" },
    { KEY("sort: true"), "ab=1&a=2&a-b=3", "a=2&a-b=3&ab=1" },
    { KEY("sort: true"), "a=1", "a=1" },
    { KEY("sort: true, ignore: b"), "c=1&b=2&a=3", "a=3&c=1" },
    { KEY("sort: true, keep: [ a, c ]"), "c=1&b=2&a=3", "a=3&c=1" },
};

struct told {
    unsigned count;
    struct slice last;
    const struct config_rule *by;
};

static void tell(void *arg, struct slice parameter, const struct config_rule *by)
{
    struct told *told = arg;
    told->count++;
    told->last = parameter;
    told->by = by;
}

static void test_queries(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct config *c = rules_load(rows[i].rules);
        struct tried t;
        bool has_query;
        try_request(&t, c, "/", NULL);
        struct slice query = slice_of(rows[i].query);
        char *out = xmalloc(query.len); /* no byte more */
        size_t len = rules_key_query(&t.effects, query, out, &has_query, NULL, NULL);
        if (has_query != (rows[i].key != NULL) ||
            !slice_equal((struct slice){ out, len }, slice_of(rows[i].key)))
            fail_msg("%s %s: %.*s", rows[i].rules, rows[i].query, (int)len, out);
        free(out);
        tried_fini(&t);
        config_unref(&c);
    }
}

static void test_dropped_are_told(void **state)
{
    (void)state;
    struct config *c =
        rules_load("[ { tags: a }, { key: { ignore: \"utm_*\" } }, { key: { keep: [ a, b ] } } ]");
    struct tried t;
    struct told told = { 0 };
    bool has_query;
    char out[64];
    try_request(&t, c, "/", NULL);
    rules_key_query(&t.effects, SLICE("a=1&utm_x=2&b=3"), out, &has_query, tell, &told);
    assert_int_equal(told.count, 1);
    assert_true(slice_equal(told.last, SLICE("utm_x=2")));
    assert_ptr_equal(told.by, rules_at(&c->sites[0], 1));
    rules_key_query(&t.effects, SLICE("a=1&c=2"), out, &has_query, tell, &told);
    assert_int_equal(told.count, 2);
    assert_ptr_equal(told.by, rules_at(&c->sites[0], 2));
    tried_fini(&t);
    config_unref(&c);
}

/* More than are sorted stay as they came; none is lost. */
static void test_many_parameters(void **state)
{
    (void)state;
    struct config *c = rules_load(KEY("sort: true, ignore: x"));
    static const unsigned counts[] = { 2, 3, 255, 256, 257, 2000 };
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
        char *query = xmalloc(20000), *out = xmalloc(20000), *expected = xmalloc(20000);
        size_t len = 0, expected_len = 0;
        for (unsigned n = 0; n < counts[i]; n++)
            len += (size_t)sprintf(query + len, "%sp%05u&x", n == 0 ? "" : "&", counts[i] - n);
        for (unsigned n = 0; n < counts[i]; n++)
            expected_len += (size_t)sprintf(expected + expected_len, "%sp%05u", n == 0 ? "" : "&",
                                            counts[i] <= 256 ? n + 1 : counts[i] - n);
        struct tried t;
        bool has_query;
        try_request(&t, c, "/", NULL);
        size_t got =
            rules_key_query(&t.effects, (struct slice){ query, len }, out, &has_query, NULL, NULL);
        assert_true(has_query);
        assert_true(
            slice_equal((struct slice){ out, got }, (struct slice){ expected, expected_len }));
        tried_fini(&t);
        free(query);
        free(out);
        free(expected);
    }
    config_unref(&c);
}

static void test_case(void **state)
{
    (void)state;
    struct config *c = rules_load(
        "[ { match: { path: \"/a/**\" }, key: { ignore_case: true } }, { key: { sort: true } } ]");
    struct tried t;
    try_request(&t, c, "/a/B", NULL);
    assert_true(rules_key_ignores_case(&t.effects));
    tried_fini(&t);
    try_request(&t, c, "/b", NULL);
    assert_false(rules_key_ignores_case(&t.effects));
    tried_fini(&t);
    config_unref(&c);
}

static const struct {
    const char *rules, *fields, *extra; /* ' ' for the NULs */
} extras[] = {
    { KEY("fields: [ X-Device ]"), "x-device: phone", "x-device=phone " },
    { KEY("fields: [ X-Device ]"), "X-Other: a",
      "x-device " }, /* none, and an empty one, are not the same */
    { KEY("fields: [ X-Device ]"), "X-Device:", "x-device= " },
    { KEY("fields: [ Accept ]"), "Accept: a\nX: y\nAccept: b", "accept=a, b " },
    { KEY("cookies: [ lang ]"), "Cookie: a=b; lang=de", "cookie:lang=de " },
    { KEY("cookies: [ lang ]"), "Cookie: a=b", "cookie:lang " },
    { KEY("cookies: [ Lang ]"), "Cookie: lang=de; Lang=en", "cookie:Lang=en " },
    { KEY("cookies: [ lang ]"), "Cookie: lang=de; lang=en\nCookie: lang=fr",
      "cookie:lang=de; en; fr " }, /* whichever is meant */
    { "[ { key: { cookies: [ b, a ], fields: [ Z, A ] } }, { key: { cookies: c } } ]",
      "Z: 1\nA: 2\nCookie: a=3; b=4; c=5", "z=1 a=2 cookie:b=4 cookie:a=3 cookie:c=5 " },
    { "[ { match: { path: /b }, key: { cookies: c } } ]", "Cookie: c=1", "" },
};

static void test_extras(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(extras); i++) {
        struct config *c = rules_load(extras[i].rules);
        struct tried t;
        try_request(&t, c, "/", extras[i].fields);
        size_t len = rules_key_extra(&t.effects, &t.request, NULL, 0);
        char *out = xcalloc(1, len + 1);
        assert_int_equal(rules_key_extra(&t.effects, &t.request, out, len), len);
        for (size_t at = 0; at < len; at++)
            if (out[at] == '\0')
                out[at] = ' ';
        if (strcmp(out, extras[i].extra) != 0)
            fail_msg("%s %s: %s", extras[i].rules, extras[i].fields, out);
        free(out);
        tried_fini(&t);
        config_unref(&c);
    }
}

/* Too little room: nothing beyond it is written, and the length is told. */
static void test_little_room(void **state)
{
    (void)state;
    struct config *c = rules_load(KEY("fields: [ A, B ]"));
    struct tried t;
    char out[16];
    try_request(&t, c, "/", "A: 12345678\nB: 1");
    memset(out, '#', sizeof out);
    assert_int_equal(rules_key_extra(&t.effects, &t.request, out, 8), 15);
    assert_int_equal(out[8], '#');
    tried_fini(&t);
    config_unref(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queries),         cmocka_unit_test(test_dropped_are_told),
        cmocka_unit_test(test_many_parameters), cmocka_unit_test(test_case),
        cmocka_unit_test(test_extras),          cmocka_unit_test(test_little_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
