/* tests/unit/cache/test_ruletest.c: the tests in a configuration: each thing that can be expected,
 * once as it is and once not, and what is then said.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cache/policy.h"
#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>

static struct config *load(const char *yaml)
{
    struct config_mistakes mistakes;
    struct config *c = config_load_text("t.yaml", slice_of(yaml), &mistakes);
    if (c == NULL)
        fail_msg("%s\n%s", mistakes.lines[0], yaml);
    config_mistakes_free(&mistakes);
    return c;
}

/* The caller frees it. */
static char *run(const char *yaml, struct rule_test_result *result)
{
    struct config *c = load(yaml);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    cache_rule_tests_run(c, out, result);
    fclose(out);
    config_unref(&c);
    return text;
}

#define SITE                                                                                       \
    "origins: { app: { servers: \"http://a:80\" }, other: { servers: \"http://b:80\" } }\n"        \
    "sites:\n"                                                                                     \
    "  - hosts: [ h ]\n"                                                                           \
    "    origin: app\n"                                                                            \
    "    rules:\n"                                                                                 \
    "      - { name: days, match: { path: \"/d/**\" }, cache: { ttl: 1d }, tags: [ day, d ] }\n"   \
    "      - { name: api, match: { path: \"/api/**\" }, cache: bypass }\n"                         \
    "      - { name: not, match: { path: \"/not/**\" }, cache: no_store }\n"                       \
    "      - { name: moved, match: { path: \"/old\" }, redirect: { to: \"http://h/new\" } }\n"     \
    "      - { name: gone, match: { path: \"/gone\" }, answer: { status: 410, body: gone } }\n"    \
    "      - { name: closed, match: { path: \"/closed\" }, deny: 403 }\n"                          \
    "      - { name: far, match: { path: \"/far/**\" }, origin: other }\n"                         \
    "      - { name: lang, match: { path: \"/d/l/**\" }, key: { fields: [ X-Lang ] } }\n"          \
    "      - { name: utm, match: { path: \"/d/**\" }, key: { ignore: [ \"utm_*\" ] } }\n"          \
    "      - { name: inside, match: { client: 10.0.0.0/8, path: \"/in\" }, deny: 403 }\n"          \
    "      - { name: error, match: { status: 5xx }, cache: { ttl: 5s } }\n"                        \
    "      - { name: hosted, match: { path: \"/hosted\", fields: { Host: \"h:81\" } }, deny: 403 " \
    "}\n"                                                                                          \
    "    tests:\n"

#define MAX_AGE "response: { fields: { Cache-Control: max-age=60 } }, "

static const struct {
    const char *test; /* an element of `tests` */
    const char *said; /* after "t.yaml:19: "; "": it passes */
} rows[] = {
    /* outcome */
    { "request: { url: \"http://h/\" }, expect: { outcome: miss }", "" },
    { "request: { url: \"http://h/\" }, " MAX_AGE "expect: { outcome: miss }", "" },
    { "request: { url: \"http://h/\" }, " MAX_AGE "expect: { outcome: hit }", "" },
    { "request: { url: \"http://h/d/a\" }, expect: { outcome: hit }", "" },
    { "request: { url: \"http://h/\" }, " MAX_AGE "expect: { outcome: pass }",
      "test 1: outcome: expected pass, got miss (Cache-Control: max-age)\n" },
    { "name: mine, request: { url: \"http://h/\" }, response: { fields: { Cache-Control: private } "
      "}, expect: { outcome: miss }",
      "test \"mine\": outcome: expected miss, got pass (the answer says private)\n" },
    { "request: { url: \"http://h/\" }, response: { fields: { Cache-Control: max-age=0, ETag: "
      "'\"a\"' } }, expect: { outcome: hit }",
      "test 1: outcome: expected hit, got miss (what is stored is stale at once)\n" },
    { "request: { url: \"http://h/api/x\" }, expect: { outcome: pass, why: bypass, rule: api }",
      "" },
    { "request: { url: \"http://h/api/x\" }, " MAX_AGE "expect: { outcome: miss }",
      "test 1: outcome: expected miss, got pass (a rule says not to look it up)\n" },
    { "request: { url: \"http://h/not/x\" }, expect: { outcome: pass, why: rule-no-store, stored: false }",
      "" },
    { "request: { url: \"http://h/not/x\" }, " MAX_AGE "expect: { why: rule-no-store }", "" },
    { "request: { url: \"http://h/\" }, expect: { stored: true }",
      "test 1: stored: expected true, got false (the answer would never be fresh, and has no "
      "validator to ask the origin with)\n" },
    { "request: { url: \"http://h/\", method: POST }, expect: { outcome: pass, why: method }", "" },
    { "request: { url: \"http://h/\", method: HEAD }, " MAX_AGE "expect: { outcome: pass }", "" },
    { "request: { url: \"http://h/\", fields: { Content-Length: 3 } }, expect: { why: "
      "request-body }",
      "" },
    { "request: { url: \"http://h/\", fields: { If-Match: '\"a\"' } }, expect: { why: "
      "precondition }",
      "" },
    { "request: { url: \"http://h/old\" }, expect: { outcome: local, why: rule, status: 302, "
      "location: \"http://h/new\" }",
      "" },
    { "request: { url: \"http://h/gone\" }, expect: { outcome: local, status: 410 }", "" },
    { "request: { url: \"http://h/closed\" }, expect: { outcome: local, status: 403 }", "" },
    { "request: { url: \"http://h/in\", client: 10.1.2.3 }, expect: { status: 403 }", "" },
    { "request: { url: \"http://h/in\", client: 192.0.2.1 }, expect: { status: 200 }", "" },
    { "request: { url: \"http://h/\", method: HEAD }, expect: { outcome: pass }", "" },
    { "request: { url: \"http://h:81/hosted\" }, expect: { status: 403 }", "" },
    { "request: { url: \"http://h:81/hosted\", fields: { Host: h } }, expect: { status: 200 }",
      "" },
    /* why */
    { "request: { url: \"http://h/\" }, " MAX_AGE "expect: { why: absent }", "" },
    { "request: { url: \"http://h/\" }, " MAX_AGE "expect: { outcome: hit, why: fresh }", "" },
    { "request: { url: \"http://h/\" }, response: { fields: { Cache-Control: no-store } }, expect: "
      "{ why: private }",
      "test 1: why: expected private, got no-store (the answer (or the honoured request) says "
      "no-store)\n" },
    /* stored, ttl */
    { "request: { url: \"http://h/\" }, " MAX_AGE "expect: { stored: true, ttl: 60s }", "" },
    { "request: { url: \"http://h/\" }, " MAX_AGE "expect: { stored: false }",
      "test 1: stored: expected false, got true (Cache-Control: max-age)\n" },
    { "request: { url: \"http://h/api/x\" }, " MAX_AGE "expect: { stored: true }",
      "test 1: stored: expected true, got false (a rule says not to look it up)\n" },
    { "name: login page, request: { url: \"http://h/\" }, " MAX_AGE "expect: { ttl: 1d }",
      "test \"login page\": ttl: expected 1d, got 1m (Cache-Control: max-age)\n" },
    { "request: { url: \"http://h/\" }, response: { fields: { CDN-Cache-Control: max-age=90 } }, "
      "expect: { ttl: 2h }",
      "test 1: ttl: expected 2h, got 90s (CDN-Cache-Control: max-age)\n" },
    { "request: { url: \"http://h/\" }, response: { fields: { Date: \"Sun, 15 Jun 2025 09:00:00 "
      "GMT\", Expires: \"Sun, 15 Jun 2025 10:00:00 GMT\" } }, expect: { ttl: 1h, outcome: hit }",
      "" },
    { "request: { url: \"http://h/d/a\" }, " MAX_AGE "expect: { ttl: 1d }", "" },
    { "request: { url: \"http://h/d/a\" }, " MAX_AGE "expect: { ttl: 60s }",
      "test 1: ttl: expected 1m, got 1d (rule t.yaml:6)\n" },
    { "request: { url: \"http://h/\" }, response: { status: 503 }, expect: { status: 503, ttl: 5s, "
      "rule: error }",
      "" },
    { "request: { url: \"http://h/\" }, response: { fields: { Cache-Control: private } }, expect: "
      "{ ttl: 60s }",
      "test 1: ttl: expected 1m, got nothing that is stored (the answer is private: meant for one "
      "user)\n" },
    { "request: { url: \"http://h/p\", method: POST }, response: { fields: { Cache-Control: "
      "max-age=60, Content-Location: /p } }, expect: { outcome: pass, stored: true, ttl: 60s }",
      "" },
    /* key */
    { "request: { url: \"http://h/d/a?x=1&utm_source=b\" }, expect: { key: \"h/d/a?x=1\" }", "" },
    { "request: { url: \"http://h:8080/a?b\" }, expect: { key: \"h:8080/a?b\" }", "" },
    { "request: { url: \"http://h:80/\" }, expect: { key: \"h/\" }", "" },
    { "request: { url: \"http://h/d/l/a\", fields: { X-Lang: de } }, expect: { key: \"h/d/l/a "
      "x-lang=de\" }",
      "" },
    { "request: { url: \"http://h/d/a?utm_x=1\" }, expect: { key: \"h/d/a?utm_x=1\" }",
      "test 1: key: expected h/d/a?utm_x=1, got h/d/a\n" },
    { "request: { url: \"http://h/old\" }, expect: { key: \"h/old\" }",
      "test 1: key: expected h/old, got none\n" },
    /* rule */
    { "request: { url: \"http://h/d/a\" }, expect: { rule: utm }", "" },
    { "request: { url: \"http://h/d/a\" }, expect: { rule: \"t.yaml:6\" }", "" },
    { "request: { url: \"http://h/d/a\" }, expect: { rule: api }",
      "test 1: rule: expected api, got days, utm\n" },
    { "request: { url: \"http://h/\" }, expect: { rule: api }",
      "test 1: rule: expected api, got none\n" },
    /* status, location, origin */
    { "request: { url: \"http://h/old\" }, expect: { status: 308 }",
      "test 1: status: expected 308, got 302\n" },
    { "request: { url: \"http://h/old\" }, expect: { location: \"http://h/\" }",
      "test 1: location: expected http://h/, got http://h/new\n" },
    { "request: { url: \"http://h/\" }, response: { status: 302, fields: { Location: /x } }, "
      "expect: { status: 302, location: /x }",
      "" },
    { "request: { url: \"http://h/\" }, expect: { location: /x }",
      "test 1: location: expected /x, got none\n" },
    { "request: { url: \"http://h/far/x\" }, expect: { origin: other }", "" },
    { "request: { url: \"http://h/\" }, expect: { origin: other }",
      "test 1: origin: expected other, got app\n" },
    /* tags */
    { "request: { url: \"http://h/d/a\" }, expect: { tags: [ d, day ] }", "" },
    { "request: { url: \"http://h/d/a\" }, response: { fields: { Cache-Tag: \"a, day\", "
      "Cache-Groups: '\"g\"' } }, expect: { tags: [ a, d, day ] }",
      "" },
    { "request: { url: \"http://h/d/a\" }, expect: { tags: [ day ] }",
      "test 1: tags: expected day, got day d\n" },
    { "request: { url: \"http://h/\" }, expect: { tags: [ x, y ] }",
      "test 1: tags: expected x y, got none\n" },
    /* several, and what cannot be asked */
    { "request: { url: \"http://h/\" }, " MAX_AGE "expect: { ttl: 1d, origin: other }",
      "test 1: ttl: expected 1d, got 1m (Cache-Control: max-age)\nt.yaml:19: test 1: origin: "
      "expected other, got app\n" },
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char yaml[4096], expected[512];
        struct rule_test_result result;
        snprintf(yaml, sizeof yaml, SITE "      - { %s }\n", rows[i].test);
        snprintf(expected, sizeof expected, "%s%s",
                 rows[i].said[0] == '\0' ? "" : "t.yaml:19: ", rows[i].said);
        char *said = run(yaml, &result);
        if (strcmp(said, expected) != 0)
            fail_msg("row %zu { %s }:\n%snot\n%s", i, rows[i].test, said, expected);
        assert_int_equal(result.passed, rows[i].said[0] == '\0');
        assert_int_equal(result.failed, rows[i].said[0] != '\0');
        free(said);
    }
}

/* All of them run, whichever fail, of all sites, with rules or without. */
static void test_all_run(void **state)
{
    (void)state;
    struct rule_test_result result;
    char *said =
        run(SITE "      - { request: { url: \"http://h/\" }, expect: { origin: other } }\n"
                 "      - { request: { url: \"http://h/\" }, expect: { origin: app } }\n"
                 "      - { request: { url: \"http://h/\" }, expect: { key: \"h/x\" } }\n"
                 "  - hosts: [ plain ]\n"
                 "    origin: app\n"
                 "    tests:\n"
                 "      - { request: { url: \"http://plain/\" }, expect: { key: \"plain/\" } }\n"
                 "      - { request: { url: \"http://plain/\" }, expect: { key: \"x\" } }\n",
            &result);
    assert_string_equal(said, "t.yaml:19: test 1: origin: expected other, got app\n"
                              "t.yaml:21: test 3: key: expected h/x, got h/\n"
                              "t.yaml:26: test 2: key: expected x, got plain/\n");
    assert_int_equal(result.passed, 2);
    assert_int_equal(result.failed, 3);
    free(said);
}

/* A head that no reader would take. */
static void test_too_many_fields(void **state)
{
    (void)state;
    struct rule_test_result result;
    char values[3 * HEADERS_MAX + 4] = "", yaml[4096];
    for (int i = 0; i <= HEADERS_MAX; i++)
        strcat(values, "v, ");
    snprintf(yaml, sizeof yaml,
             SITE "      - { request: { url: \"http://h/\" }, response: { fields: { A: [ %s ] } }, "
                  "expect: { outcome: pass } }\n",
             values);
    char *said = run(yaml, &result);
    assert_string_equal(said, "t.yaml:19: test 1: fields: more than 250\n");
    assert_int_equal(result.failed, 1);
    free(said);
}

static void test_none(void **state)
{
    (void)state;
    struct rule_test_result result = { 7, 7 };
    char *said = run("origins: { app: { servers: \"http://a:80\" } }\n", &result);
    assert_string_equal(said, "");
    assert_int_equal(result.passed, 0);
    assert_int_equal(result.failed, 0);
    free(said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_all_run),
        cmocka_unit_test(test_too_many_fields),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
