/* tests/unit/cache/test_plan.c: what a request asks for, before look-up: without rules, as rows;
 * then with rules, which come from a configuration's text.
 */
#include "tests/unit/cache/decide_rows.h"

#include "cache/policy.h"

#include <stdlib.h>

static struct config *load(const char *yaml)
{
    struct config_mistakes mistakes;
    struct config *c = config_load_text("t.yaml", slice_of(yaml), &mistakes);
    if (c == NULL)
        fail_msg("%s", mistakes.lines[0]);
    config_mistakes_free(&mistakes);
    return c;
}

/* One request, planned; the fields are as the plan left them. */
struct planned {
    struct row_headers fields;
    struct arena arena;
    struct plan plan;
    char buffer[256];
    unsigned dropped_count;
};

struct asked {
    const char *method, *target, *fields;
    uint16_t port;
    bool has_body;
};

#define ASK(m, t, f)                                                                               \
    {                                                                                              \
        .method = m, .target = t, .fields = f                                                      \
    }
#define ASK_BODY(m, t, f)                                                                          \
    {                                                                                              \
        .method = m, .target = t, .fields = f, .has_body = true                                    \
    }
#define ASK_PORT(m, t, p)                                                                          \
    {                                                                                              \
        .method = m, .target = t, .fields = "", .port = p                                          \
    }

static void count_dropped(void *arg, struct slice parameter, const struct config_rule *by)
{
    struct planned *p = arg;
    assert_true(parameter.len > 0);
    assert_non_null(by);
    p->dropped_count++;
}

static void plan_begin(struct planned *p, const struct config *c, const struct asked *asked,
                       size_t capacity)
{
    const char *mark = strchr(asked->target, '?');
    size_t path_len = mark == NULL ? strlen(asked->target) : (size_t)(mark - asked->target);
    p->dropped_count = 0;
    arena_init(&p->arena);
    row_headers(&p->fields, asked->fields);
    const struct plan_request in = {
        .config = c,
        .site = &c->sites[0],
        .rule = { .method = slice_of(asked->method),
                  .scheme = SLICE("http"),
                  .host = SLICE("example.com"),
                  .path = { asked->target, path_len },
                  .query = slice_of(mark == NULL ? NULL : mark + 1),
                  .headers = &p->fields.list },
        .headers = &p->fields.list,
        .port = asked->port,
        .is_get = strcmp(asked->method, "GET") == 0,
        .is_head = strcmp(asked->method, "HEAD") == 0,
        .has_body = asked->has_body,
    };
    assert_true(capacity <= sizeof p->buffer);
    cache_plan_traced(&in, p->buffer, capacity, &p->arena, &p->plan, count_dropped, p);
}

static void plan_end(struct planned *p)
{
    arena_fini(&p->arena);
}

/* With '|' for NUL, without the site. */
static const char *key_text(const struct plan *p, char *out, size_t capacity)
{
    size_t from = slice_find(p->key, '\0');
    from = from < p->key.len ? from + 1 : 0;
    assert_true(p->key.len - from < capacity);
    for (size_t i = from; i < p->key.len; i++)
        out[i - from] = p->key.ptr[i] == '\0' ? '|' : p->key.ptr[i];
    out[p->key.len - from] = '\0';
    return out;
}

/* ---- without rules ------------------------------------------------------------------------------
 */

#define APP "origins: { app: { servers: \"http://a:80\" } }\n"

static const struct {
    struct asked asked;
    enum plan_way way;
    enum reason why;
    const char *key, *section;
} rows[] = {
    { ASK("GET", "/", ""), PLAN_LOOKUP, REASON_ABSENT, "example.com/", "" },
    { ASK("HEAD", "/", ""), PLAN_LOOKUP, REASON_ABSENT, "example.com/", "9.3.2: a GET's answer" },
    { ASK("GET", "/A?b", ""), PLAN_LOOKUP, REASON_ABSENT, "example.com/A?b", "" },
    { ASK("GET", "/a?", ""), PLAN_LOOKUP, REASON_ABSENT, "example.com/a?", "" },
    { ASK_PORT("GET", "/a", 8080), PLAN_LOOKUP, REASON_ABSENT, "example.com:8080/a", "a port" },
    { ASK("POST", "/a?b", ""), PLAN_PASS, REASON_METHOD, "example.com/a?b", "9.2.3: has a key" },
    { ASK("PUT", "/a", ""), PLAN_PASS, REASON_METHOD, "example.com/a", "9.2.3" },
    { ASK("DELETE", "/a", ""), PLAN_PASS, REASON_METHOD, "example.com/a", "9.2.3" },
    { ASK("OPTIONS", "/a", ""), PLAN_PASS, REASON_METHOD, "example.com/a", "9.2.3" },
    { ASK("get", "/a", ""), PLAN_PASS, REASON_METHOD, "example.com/a", "9.1: case" },
    { ASK_BODY("GET", "/a", ""), PLAN_PASS, REASON_BODY, "example.com/a", "9.3.1" },
    { ASK_BODY("HEAD", "/a", ""), PLAN_PASS, REASON_BODY, "example.com/a", "9.3.2" },
    { ASK("GET", "/a", "If-Match: \"x\""), PLAN_PASS, REASON_PRECONDITION, "example.com/a",
      "13.1.1" },
    { ASK("GET", "/a", "If-Unmodified-Since: Sun, 15 Jun 2025 09:00:00 GMT"), PLAN_PASS,
      REASON_PRECONDITION, "example.com/a", "13.1.4" },
    { ASK("GET", "/a", "If-None-Match: \"x\"\nRange: bytes=0-1"), PLAN_LOOKUP, REASON_ABSENT,
      "example.com/a", "13.1.2: the cache's to judge" },
    /* of several reasons, the first */
    { ASK_BODY("POST", "/a", "If-Match: \"x\""), PLAN_PASS, REASON_METHOD, "example.com/a",
      "method before body" },
    { ASK_BODY("GET", "/a", "If-Match: \"x\""), PLAN_PASS, REASON_BODY, "example.com/a",
      "body before precondition" },
    { ASK("GET", "*", ""), PLAN_BROKEN, REASON_RULE_BROKEN, "", "no path" },
};

static void test_rows(void **state)
{
    (void)state;
    struct config *c = load(APP);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct planned p;
        char key[256];
        plan_begin(&p, c, &rows[i].asked, sizeof p.buffer);
        ROW_CHECK(rows[i].section, p.plan.way, rows[i].way);
        ROW_CHECK(rows[i].section, p.plan.why, rows[i].why);
        if (strcmp(key_text(&p.plan, key, sizeof key), rows[i].key) != 0)
            fail_msg("row %zu (%s): %s, not %s", i, rows[i].section, key, rows[i].key);
        assert_ptr_equal(p.plan.origin, c->sites[0].origin);
        assert_int_equal(p.arena.used_bytes, 0); /* nothing is allocated */
        plan_end(&p);
    }
    config_unref(&c);
}

/* What does not fit the buffer is in the arena, and is the same. */
static void test_room(void **state)
{
    (void)state;
    struct config *c = load(APP);
    const struct asked asked = ASK("GET", "/path?query", "");
    for (size_t capacity = 0; capacity <= 64; capacity++) {
        struct planned p;
        char key[256];
        plan_begin(&p, c, &asked, capacity);
        assert_string_equal(key_text(&p.plan, key, sizeof key), "example.com/path?query");
        assert_int_equal(p.plan.key.ptr == p.buffer, p.arena.used_bytes == 0);
        assert_true(p.plan.key.ptr != p.buffer || p.plan.key.len <= capacity);
        plan_end(&p);
    }
    config_unref(&c);
}

/* ---- with rules
 * ---------------------------------------------------------------------------------- */

#define SITE                                                                                       \
    "origins: { app: { servers: \"http://a:80\" }, other: { servers: \"http://b:80\" } }\n"        \
    "sites:\n"                                                                                     \
    "  - hosts: [ example.com ]\n"                                                                 \
    "    origin: app\n"                                                                            \
    "    rules:\n"

static const char rules[] = SITE
    "      - { match: { path: \"/api/**\" }, cache: bypass }\n"
    "      - { match: { path: \"/unstored/**\" }, cache: no_store }\n"
    "      - { match: { path: \"/old\" }, redirect: { to: \"https://example.com/new\" } }\n"
    "      - { match: { path: \"/gone\" }, answer: { status: 410, body: gone } }\n"
    "      - { match: { path: \"/secret/**\" }, deny: 403 }\n"
    "      - { match: { path: \"/other/**\" }, origin: other }\n"
    "      - { match: { path: \"/iis/**\" }, key: { ignore_case: true } }\n"
    "      - { match: { path: \"/q/**\" }, key: { ignore: [ \"utm_*\", gclid ], sort: true } }\n"
    "      - { match: { path: \"/lang/**\" }, key: { fields: [ X-Lang ] } }\n"
    "      - { match: { path: \"/shop/**\" }, cookies: { drop: [ \"_ga*\" ] },\n"
    "          key: { cookies: [ currency, _ga ] } }\n"
    "      - { match: { path: \"/clean/**\" }, request: { remove: [ If-Match ] } }\n"
    "      - { match: { path: \"/rw/**\" }, rewrite: { path: \"/to$path\" } }\n";

static const struct {
    struct asked asked;
    enum plan_way way;
    enum reason why;
    const char *key, *path, *origin, *what;
} rule_rows[] = {
    { ASK("GET", "/", ""), PLAN_LOOKUP, REASON_ABSENT, "example.com/", "/", "app", "no rule" },
    { ASK("GET", "/api/x?y", ""), PLAN_PASS, REASON_BYPASS, "example.com/api/x?y", "/api/x", "app",
      "bypass has a key" },
    { ASK("POST", "/api/x", ""), PLAN_PASS, REASON_METHOD, "example.com/api/x", "/api/x", "app",
      "method before bypass" },
    { ASK_BODY("GET", "/api/x", ""), PLAN_PASS, REASON_BODY, "example.com/api/x", "/api/x", "app",
      "body before bypass" },
    { ASK("GET", "/api/x", "If-Match: \"a\""), PLAN_PASS, REASON_PRECONDITION, "example.com/api/x",
      "/api/x", "app", "precondition before bypass" },
    { ASK("GET", "/unstored/x", ""), PLAN_LOOKUP, REASON_ABSENT, "example.com/unstored/x",
      "/unstored/x", "app", "no_store is looked up" },
    { ASK("GET", "/old", ""), PLAN_LOCAL, REASON_RULE, "", NULL, "app", "redirect" },
    { ASK_BODY("POST", "/old", ""), PLAN_LOCAL, REASON_RULE, "", NULL, "app",
      "redirect, whatever the method" },
    { ASK("GET", "/gone", ""), PLAN_LOCAL, REASON_RULE, "", NULL, "app", "answer" },
    { ASK("GET", "/secret/x", ""), PLAN_LOCAL, REASON_RULE, "", NULL, "app", "deny" },
    { ASK("GET", "/other/x", ""), PLAN_LOOKUP, REASON_ABSENT, "example.com/other/x", "/other/x",
      "other", "the rule's origin" },
    { ASK("GET", "/iis/Default.ASPX?A=B", ""), PLAN_LOOKUP, REASON_ABSENT,
      "example.com/iis/default.aspx?A=B", "/iis/Default.ASPX", "app",
      "the origin is asked as the client did" },
    { ASK("GET", "/q/x?utm_source=a&b=2&gclid=c&a=1", ""), PLAN_LOOKUP, REASON_ABSENT,
      "example.com/q/x?a=1&b=2", "/q/x", "app", "parameters" },
    { ASK("GET", "/q/x?gclid=c", ""), PLAN_LOOKUP, REASON_ABSENT, "example.com/q/x", "/q/x", "app",
      "no parameter is left, nor '?'" },
    { ASK("GET", "/lang/x", "X-Lang: de"), PLAN_LOOKUP, REASON_ABSENT,
      "example.com/lang/x|x-lang=de|", "/lang/x", "app", "a field" },
    { ASK("GET", "/shop/x", "Cookie: _ga=1; currency=EUR"), PLAN_LOOKUP, REASON_ABSENT,
      "example.com/shop/x|cookie:currency=EUR|cookie:_ga|", "/shop/x", "app",
      "the key sees what is left" },
    { ASK("GET", "/clean/x", "If-Match: \"a\""), PLAN_LOOKUP, REASON_ABSENT, "example.com/clean/x",
      "/clean/x", "app", "the edited request is judged" },
    { ASK("GET", "/rw/x?y", ""), PLAN_LOOKUP, REASON_ABSENT, "example.com/to/rw/x?y", "/to/rw/x",
      "app", "the key is of what the origin is asked" },
};

static void test_rules(void **state)
{
    (void)state;
    struct config *c = load(rules);
    for (size_t i = 0; i < ARRAY_COUNT(rule_rows); i++) {
        struct planned p;
        char key[256];
        plan_begin(&p, c, &rule_rows[i].asked, sizeof p.buffer);
        ROW_CHECK(rule_rows[i].what, p.plan.way, rule_rows[i].way);
        ROW_CHECK(rule_rows[i].what, p.plan.why, rule_rows[i].why);
        if (strcmp(key_text(&p.plan, key, sizeof key), rule_rows[i].key) != 0)
            fail_msg("row %zu (%s): %s, not %s", i, rule_rows[i].what, key, rule_rows[i].key);
        if (rule_rows[i].path != NULL)
            assert_true(slice_equal(p.plan.path, slice_of(rule_rows[i].path)));
        assert_string_equal(p.plan.origin->name, rule_rows[i].origin);
        plan_end(&p);
    }
    config_unref(&c);
}

static void test_dropped(void **state)
{
    (void)state;
    struct config *c = load(rules);
    struct planned p;
    plan_begin(&p, c, &(struct asked)ASK("GET", "/q/x?utm_source=a&b=2&gclid=c", ""),
               sizeof p.buffer);
    assert_int_equal(p.dropped_count, 2);
    assert_true(slice_equal(p.plan.query, SLICE("utm_source=a&b=2&gclid=c"))); /* the origin's */
    plan_end(&p);
    config_unref(&c);
}

/* Query and fields too long for the stack are no other key. */
static void test_long(void **state)
{
    (void)state;
    enum { LONG = 5000 };
    struct config *c =
        load(SITE "      - { match: { path: \"/**\" }, key: { ignore: [ gone ], fields: "
                  "[ X-Long ] } }\n");
    char *target = malloc(LONG + 64), *field = malloc(LONG + 64), *expected = malloc(2 * LONG + 64),
         *key = malloc(2 * LONG + 64);
    memset(expected, 'x', LONG);
    expected[LONG] = '\0';
    sprintf(target, "/p?gone=1&a=%s", expected);
    sprintf(field, "X-Long: %s", expected);
    struct planned p;
    plan_begin(&p, c, &(struct asked)ASK("GET", target, field), sizeof p.buffer);
    memset(key, 'x', LONG);
    key[LONG] = '\0';
    sprintf(expected, "example.com/p?a=%s|x-long=%s|", key, key);
    assert_string_equal(key_text(&p.plan, key, 2 * LONG + 64), expected);
    plan_end(&p);
    free(target);
    free(field);
    free(expected);
    free(key);
    config_unref(&c);
}

/* A list that is full cannot take what a rule adds. */
static void test_full(void **state)
{
    (void)state;
    struct config *c =
        load(SITE "      - { match: { path: \"/**\" }, request: { append: { X-More: a } } }\n");
    char fields[HEADERS_MAX * 5 + 1];
    for (size_t i = 0; i < HEADERS_MAX; i++)
        memcpy(fields + i * 5, "A: b\n", 5);
    fields[HEADERS_MAX * 5] = '\0';
    struct planned p;
    plan_begin(&p, c, &(struct asked)ASK("GET", "/x", fields), sizeof p.buffer);
    assert_int_equal(p.plan.way, PLAN_BROKEN);
    assert_int_equal(p.plan.why, REASON_RULE_BROKEN);
    assert_int_equal(p.plan.key.len, 0);
    plan_end(&p);
    config_unref(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),    cmocka_unit_test(test_room), cmocka_unit_test(test_rules),
        cmocka_unit_test(test_dropped), cmocka_unit_test(test_long), cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
