/* tests/unit/admin/test_explain.c: the sentences about an object's clocks, as rows; and an
 * explanation in words. */
#include "admin/client_explain.h"
#include "admin/explain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

/* ---- clocks ---------------------------------------------------------------------------------- */

#define PLAIN .lifetime_s = 60, .source = LIFETIME_MAX_AGE, .keep_s = CONTROL_MAX_S

static const struct {
    const char *what;
    struct freshness freshness;
    int32_t here_s, outdated_s; /* in the store; since a soft purge, -1: none */
    bool is_paused;
    const char *has[3], *has_not;
} clocks[] = {
    { "new",
      { PLAIN },
      0,
      -1,
      false,
      { "age 0 = 0 in the store + 0 on arrival", "fresh for 60 more of 60 s (max-age)",
        "kept as long as there is room" },
      "stale" },
    { "Age and delay count (RFC 9111 4.2.3)",
      { PLAIN, .initial_age_s = 5, .age_value_s = 3, .delay_s = 2, .apparent_age_s = 1 },
      26,
      -1,
      false,
      { "age 31 = 26 in the store + 5 on arrival (Age 3 + delay 2)",
        "fresh for 29 more of 60 s (max-age)" },
      "Date" },
    { "an old Date counts more",
      { PLAIN, .initial_age_s = 30, .age_value_s = 3, .apparent_age_s = 30 },
      1,
      -1,
      false,
      { "age 31 = 1 in the store + 30 on arrival (now - Date)" },
      "delay" },
    { "past its lifetime",
      { PLAIN },
      70,
      -1,
      false,
      { "stale for 10 s: the lifetime was 60 s (max-age)" },
      "fresh for" },
    { "in the second of its end", { PLAIN }, 60, -1, false, { "stale for 0 s" }, "fresh for" },
    { "the times after",
      { PLAIN, .stale_while_revalidate_s = 30, .stale_if_error_s = 40,
        .stale_if_unreachable_s = 3600 },
      95,
      -1,
      false,
      { "stale-while-revalidate: served while it is refreshed until age 90: that is over",
        "stale-if-error: served when the origin fails until age 100",
        "stale-if-unreachable: served when the origin gives no answer until age 3660" },
      "never" },
    { "one without an end",
      { PLAIN, .stale_if_error_s = CONTROL_MAX_S },
      95,
      -1,
      false,
      { "served when the origin fails without an end" },
      "until age 2147" },
    { "must-revalidate (5.2.2.2)",
      { PLAIN, .must_revalidate = true },
      70,
      -1,
      false,
      { "never served stale: must-revalidate" },
      "stale-while" },
    { "a rule's times count against it",
      { PLAIN, .must_revalidate = true, .stale_by_rule = true, .stale_if_error_s = 9 },
      70,
      -1,
      false,
      { "stale-if-error: served when the origin fails until age 69: that is over" },
      "never served" },
    { "no-cache (5.2.2.4)",
      { PLAIN, .must_ask = true },
      1,
      -1,
      false,
      { "the origin is asked each time: no-cache", "never served stale: no-cache" },
      NULL },
    { "no lifetime at all",
      { .keep_s = CONTROL_MAX_S },
      1,
      -1,
      false,
      { "never fresh: the answer said nothing about how long" },
      "lifetime was" },
    { "a soft purge",
      { PLAIN },
      20,
      5,
      false,
      { "age 20 = 20 in the store + 0 on arrival",
        "made stale by a soft purge 5 s ago: counts as age 65" },
      "fresh for" },
    { "a pause", { PLAIN }, 61, -1, true, { "the last try to refresh it failed" }, NULL },
    { "kept for a while",
      { .lifetime_s = 60, .source = LIFETIME_EXPIRES, .keep_s = 100 },
      61,
      -1,
      false,
      { "the lifetime was 60 s (Expires)", "kept until age 160" },
      "no longer" },
    { "and no more",
      { .lifetime_s = 60, .source = LIFETIME_EXPIRES, .keep_s = 100 },
      160,
      -1,
      false,
      { "no longer kept: it counts as not stored" },
      "kept until" },
};

static char *joined(json_t *lines)
{
    char *text = json_dumps(lines, 0);
    assert_non_null(text);
    json_decref(lines);
    return text;
}

static void test_clocks(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(clocks); i++) {
        const int64_t now_ms = 1000000;
        const struct freshness *f = &clocks[i].freshness;
        struct explain_clocks c = { .freshness = f,
                                    .now_ms = now_ms,
                                    .received_ms = now_ms - clocks[i].here_s * 1000,
                                    .age_s = f->initial_age_s + clocks[i].here_s,
                                    .is_paused = clocks[i].is_paused };
        if (clocks[i].outdated_s >= 0) {
            c.outdated_ms = now_ms - clocks[i].outdated_s * 1000;
            c.age_s = f->lifetime_s + clocks[i].outdated_s;
        }
        char *text = joined(explain_clocks(&c));
        for (size_t n = 0; n < ARRAY_COUNT(clocks[i].has); n++)
            if (clocks[i].has[n] != NULL && strcasestr(text, clocks[i].has[n]) == NULL)
                fail_msg("%s: no \"%s\" in %s", clocks[i].what, clocks[i].has[n], text);
        if (clocks[i].has_not != NULL && strstr(text, clocks[i].has_not) != NULL)
            fail_msg("%s: \"%s\" in %s", clocks[i].what, clocks[i].has_not, text);
        free(text);
    }
}

/* ---- text -------------------------------------------------------------------------------------
 */

static void assert_json(json_t *got, const char *expected)
{
    char *text = json_dumps(got, JSON_COMPACT | JSON_ENCODE_ANY);
    assert_string_equal(text, expected);
    free(text);
    json_decref(got);
}

static void test_bytes_that_are_no_text(void **state)
{
    (void)state;
    assert_json(explain_text(SLICE("caf\xc3\xa9")), "\"caf\xc3\xa9\"");
    assert_json(explain_text(SLICE("caf\xe9!")), "\"caf\\\\xE9!\"");
    assert_json(explain_text(SLICE_NONE), "\"\"");
    assert_json(explain_list(SLICE("a=1\0b=2\0")), "[\"a=1\",\"b=2\"]");
    assert_json(explain_list(SLICE_NONE), "[]");
    assert_json(explain_selecting(SLICE("accept\0=text/html\0x-kind\0-\0x-none\0=\0")),
                "[{\"field\":\"accept\",\"value\":\"text/html\"},"
                "{\"field\":\"x-kind\",\"value\":null},{\"field\":\"x-none\",\"value\":\"\"}]");
    assert_json(explain_selecting(SLICE("cut")), "[]");
}

/* ---- in words ---------------------------------------------------------------------------------
 */

static char *words_of(const char *explanation)
{
    json_error_t error;
    json_t *x = json_loads(explanation, 0, &error);
    if (x == NULL)
        fail_msg("%s", error.text);
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    client_print_explanation(x, out);
    fclose(out);
    json_decref(x);
    return text;
}

static void assert_words(const char *explanation, const char *const *lines)
{
    char *text = words_of(explanation);
    for (; *lines != NULL; lines++)
        if (strstr(text, *lines) == NULL)
            fail_msg("no \"%s\" in:\n%s", *lines, text);
    free(text);
}

static void test_words(void **state)
{
    (void)state;
    assert_words(
        "{\"url\": \"http://a.test/x?y=1&z=2\", \"method\": \"GET\","
        " \"verdict\": {\"outcome\": \"hit\", \"reason\": \"fresh\", \"sentence\": \"so it is\","
        "   \"or\": [\"one\", \"two\"], \"change\": [\"three\"]},"
        " \"site\": {\"name\": \"a.test\", \"pattern\": \"*.test\", \"origin\": \"app\"},"
        " \"rules\": [{\"where\": \"l.yaml:3\", \"name\": \"static\", \"summary\": \"ttl 1d\"},"
        "   {\"where\": \"l.yaml:9\", \"name\": \"\", \"summary\": \"bypass\"}],"
        " \"plan\": {\"way\": \"lookup\", \"origin\": \"app\"},"
        " \"request_edits\": [{\"field\": \"Cookie\", \"before\": \"a; b\", \"after\": \"a\"},"
        "   {\"field\": \"X\", \"before\": \"1\", \"after\": null},"
        "   {\"field\": \"Y\", \"before\": null, \"after\": \"2\"}],"
        " \"key\": {\"site\": \"a.test\", \"url\": \"a.test/x?z=2\", \"extra\": [\"lang=de\"]},"
        " \"dropped_from_key\": [{\"parameter\": \"y=1\", \"by\": \"l.yaml:3\"}],"
        " \"stored\": [], \"stored_count\": 0, \"fill\": {\"readers\": 2}, \"uncacheable\": true}",
        (const char *const[]){ "GET http://a.test/x?y=1&z=2\nhit (fresh): so it is\n",
                               "or        one\n          two\n", "change    three\n",
                               "site      a.test, by \"*.test\"; origin app\n",
                               "rules     l.yaml:3  static: ttl 1d\n          l.yaml:9  bypass\n",
                               "way       the store first, then origin app\n",
                               "edits     Cookie: \"a; b\" becomes \"a\"\n",
                               "          X: \"1\" is removed\n", "          Y: \"2\" is added\n",
                               "key       a.test/x?z=2, in site a.test\n          and lang=de\n",
                               "dropped   y=1, by l.yaml:3\n", "stored    nothing",
                               "fill      under way; 2 read from it\n", "memory    the last answer",
                               NULL });
}

static void test_words_about_the_origin(void **state)
{
    (void)state;
    assert_words("{\"fetch\": {\"asked\": false, \"why\": \"because\"}}",
                 (const char *const[]){ "origin    not asked: because\n", NULL });
    assert_words(
        "{\"fetch\": {\"asked\": true, \"server\": \"http://s\", \"error\": \"origin-cut\","
        " \"why\": \"it broke\", \"detail\": \"a line\", \"outcome\": \"fault\","
        " \"reason\": \"origin-cut\"}}",
        (const char *const[]){ "origin    http://s: it broke: a line\n",
                               "so        a request now ends in fault (origin-cut)\n", NULL });
}

/* Whatever a server of another version leaves out. */
static void test_an_explanation_with_nothing_in_it(void **state)
{
    (void)state;
    free(words_of("{}"));
    free(words_of(
        "{\"verdict\": 1, \"stored\": [{}], \"rules\": [[]], \"fetch\": {\"asked\": true}}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_bytes_that_are_no_text),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_words_about_the_origin),
        cmocka_unit_test(test_an_explanation_with_nothing_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
