/* tests/unit/config/test_rules_glob.c: what rules compare with: patterns, the form of paths,
 * regular expressions and their bounds, texts with variables.
 */
#include "rules_help.h"

#include <pthread.h>
#include <time.h>

/* ---- patterns ---- */

static const struct {
    const char *pattern, *text;
    enum glob_kind kind;
    bool folds, matches;
} globs[] = {
    { "/a", "/a", GLOB_PATH, false, true },
    { "/a", "/a/", GLOB_PATH, false, false },
    { "/a", "/A", GLOB_PATH, false, false },
    { "/a", "/A", GLOB_PATH, true, true },
    { "/A", "/a", GLOB_PATH, true, true },
    { "/a*", "/abc", GLOB_PATH, false, true },
    { "/a*", "/a", GLOB_PATH, false, true },
    { "/a*", "/abc/d", GLOB_PATH, false, false },
    { "/a/**", "/a/", GLOB_PATH, false, true },
    { "/a/**", "/a/b/c", GLOB_PATH, false, true },
    { "/a/**", "/a", GLOB_PATH, false, false }, /* the slash is part of it */
    { "/a**", "/a/b", GLOB_PATH, false, true },
    { "/**.css", "/a/b/c.css", GLOB_PATH, false, true },
    { "/**.css", "/.css", GLOB_PATH, false, true },
    { "/**.css", "/a.css/b", GLOB_PATH, false, false },
    { "/*/b", "/a/b", GLOB_PATH, false, true },
    { "/*/b", "/a/x/b", GLOB_PATH, false, false },
    { "/*/b", "//b", GLOB_PATH, false, true },
    { "/*/b/*", "/a/b/c", GLOB_PATH, false, true },
    { "/*/b/*", "/a/b/c/d", GLOB_PATH, false, false },
    { "/**/b/*", "/x/y/b/c", GLOB_PATH, false, true },
    { "/**/b/*", "/x/b/b/c", GLOB_PATH, false, true },
    { "/**/b/*/d", "/x/b/y/z/b/c/d", GLOB_PATH, false, true }, /* back to the last ** */
    { "/**/b/*/d", "/x/b/y/z/b/c/e", GLOB_PATH, false, false },
    { "**a*b**c", "xa/abyc", GLOB_PATH, false, true },
    { "**a*b/**c", "xayb/zac", GLOB_PATH, false, true },
    { "/aba*ba", "/aba", GLOB_PATH, false, false }, /* beginning and end do not overlap */
    { "/aba*ba", "/ababa", GLOB_PATH, false, true },
    { "***", "/a/b", GLOB_PATH, false, true },
    { "/a***b", "/a/x/b", GLOB_PATH, false, true },
    { "/a?b", "/a?b", GLOB_VALUE, false, true }, /* ? stands for itself */
    { "/a?b", "/axb", GLOB_VALUE, false, false },
    { "/\\*", "/*", GLOB_PATH, false, true },
    { "/\\*", "/a", GLOB_PATH, false, false },
    { "a\\\\b", "a\\b", GLOB_VALUE, false, true },
    { "*", "", GLOB_VALUE, false, true },
    { "*", "a/b", GLOB_VALUE, false, true },
    { "", "", GLOB_VALUE, false, true },
    { "", "a", GLOB_VALUE, false, false },
    { "*Mobile*", "x Mobile y", GLOB_VALUE, false, true },
    { "*Mobile*", "x mobile y", GLOB_VALUE, false, false },
    { "*Mobile*", "x mObIle y", GLOB_VALUE, true, true },
    { "a*b*c", "a/b/c", GLOB_VALUE, false, true },
    { "a*b*c", "acb", GLOB_VALUE, false, false },
    { "utm_*", "utm_source", GLOB_VALUE, false, true },
    { "utm_*", "utm", GLOB_VALUE, false, false },
    { "ids[]", "ids[]", GLOB_VALUE, false, true },
    /* paths are written either way */
    { "/caf\xc3\xa9/*", "/caf%C3%A9/x", GLOB_PATH, false, true },
    { "/caf%c3%a9/*", "/caf%C3%A9/x", GLOB_PATH, false, true },
    { "/a b", "/a%20b", GLOB_PATH, false, true },
    { "/%61", "/a", GLOB_PATH, false, true },
    { "/a%2fb", "/a%2Fb", GLOB_PATH, false, true },
    { "/a%2fb", "/a/b", GLOB_PATH, false, false },
    { "/%2a", "/*", GLOB_PATH, false, true },
    { "/100%", "/100%25", GLOB_PATH, false, true },
};

static bool matches(const char *pattern, struct slice text, enum glob_kind kind, bool folds)
{
    struct arena a;
    struct rule_glob g;
    const char *why;
    arena_init(&a);
    assert_true(
        rule_glob_compile(&a, slice_of(pattern), &(struct glob_options){ kind, folds }, &g, &why));
    bool result = rule_glob_matches(&g, text);
    arena_fini(&a);
    return result;
}

static void test_globs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(globs); i++)
        if (matches(globs[i].pattern, slice_of(globs[i].text), globs[i].kind, globs[i].folds) !=
            globs[i].matches)
            fail_msg("%s %s", globs[i].pattern, globs[i].text);
}

/* The plainest way to say what a pattern means. */
static bool means(const char *p, const char *t)
{
    if (p[0] == '\0')
        return t[0] == '\0';
    if (p[0] == '*' && p[1] == '*') {
        for (const char *at = t;; at++) {
            if (means(p + 2, at))
                return true;
            if (*at == '\0')
                return false;
        }
    }
    if (p[0] == '*') {
        for (const char *at = t;; at++) {
            if (means(p + 1, at))
                return true;
            if (*at == '\0' || *at == '/')
                return false;
        }
    }
    return p[0] == t[0] && t[0] != '\0' && means(p + 1, t + 1);
}

/* All short patterns and texts over a few characters. */
static void test_globs_against_meaning(void **state)
{
    (void)state;
    static const char in_pattern[] = "ab/*", in_text[] = "ab/";
    unsigned seed = 1;
    for (int round = 0; round < 60000; round++) {
        char pattern[12], text[14];
        size_t pattern_len = (size_t)(seed >> 16) % sizeof pattern,
               text_len = (size_t)(seed >> 8) % sizeof text;
        for (size_t i = 0; i < pattern_len; i++) {
            seed = seed * 1103515245 + 12345;
            pattern[i] = in_pattern[(seed >> 16) % 4];
        }
        for (size_t i = 0; i < text_len; i++) {
            seed = seed * 1103515245 + 12345;
            text[i] = in_text[(seed >> 16) % 3];
        }
        pattern[pattern_len == 0 ? 0 : pattern_len - 1] = '\0';
        text[text_len == 0 ? 0 : text_len - 1] = '\0';
        seed = seed * 1103515245 + 12345;
        if (matches(pattern, slice_of(text), GLOB_PATH, false) != means(pattern, text))
            fail_msg("%s %s", pattern, text);
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Patterns for which going back takes the square, or worse, of the text's length. */
static void test_globs_are_bounded(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "**a*a*a*a*a*a*b**c",
        "**a**a**a**a**a**b",
        "*a*a*a*a*a*a*a*a*b*",
        "**/*a*a*a*a/*b**x",
    };
    char text[8192];
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < ARRAY_COUNT(patterns); i++) {
        double before = seconds();
        assert_false(matches(patterns[i], (struct slice){ text, sizeof text }, GLOB_PATH, false));
        assert_true(seconds() - before < 0.5);
    }
    text[sizeof text - 2] = 'b'; /* side by side finds it, too */
    text[sizeof text - 1] = 'c';
    assert_true(
        matches("**a*a*a*a*a*a*b**c", (struct slice){ text, sizeof text }, GLOB_PATH, false));
}

static void test_globs_that_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *why;
    } rows[] = {
        { "a\\", "ends in a \\, which takes the next character as it is" },
        { "a[0-9]*", "looks like it has a class of characters, which patterns do not have; use a "
                     "regular expression, "
                     "or write \\[ for a bracket" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct arena a;
        struct rule_glob g;
        const char *why;
        arena_init(&a);
        assert_false(rule_glob_compile(&a, slice_of(rows[i].pattern), &(struct glob_options){ 0 },
                                       &g, &why));
        assert_string_equal(why, rows[i].why);
        arena_fini(&a);
    }
}

/* ---- the form of paths ---- */

static void test_paths(void **state)
{
    (void)state;
    static const struct {
        const char *path, *form;
    } rows[] = {
        { "/", "/" },
        { "/a/b", "/a/b" },
        { "/a/", "/a/" },
        { "/%61", "/a" }, /* RFC 3986 6.2.2.2 */
        { "/%41%7e%2D", "/A~-" },
        { "/%2f", "/%2F" }, /* another segment than a slash makes */
        { "/a%2F%2e%2e", "/a%2F.." },
        { "/%3f%23%25", "/%3F%23%25" },
        { "/%c3%a9", "/%C3%A9" }, /* 6.2.2.1 */
        { "/\xc3\xa9", "/%C3%A9" },
        { "/a b", "/a%20b" },
        { "/%28x%29", "/(x)" },
        { "//", "/" },
        { "//a///b//", "/a/b/" },
        { "/./a", "/a" }, /* 5.2.4 */
        { "/a/.", "/a/" },
        { "/a/./b", "/a/b" },
        { "/a/..", "/" },
        { "/a/../b", "/b" },
        { "/a/b/../../c", "/c" },
        { "/../../a", "/a" },
        { "/..", "/" },
        { "/a/%2e%2E/b", "/b" },
        { "/a//../b", "/b" },
        { "/.well-known/x", "/.well-known/x" },
        { "/a/...", "/a/..." },
        { "/..a/b..", "/..a/b.." },
        { "/a/.b/..c/", "/a/.b/..c/" },
        { "/100%", "/100%25" },
        { "/%4", "/%254" },
        { "/%zz", "/%25zz" },
        { "*", "*" },
        { "", "" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct rule_path p;
        rule_path_init(&p, slice_of(rows[i].path));
        if (!slice_equal(p.text, slice_of(rows[i].form)))
            fail_msg("%s: " SLICE_FMT, rows[i].path, SLICE_ARG(p.text));
        rule_path_fini(&p);
    }
    static const struct slice in_form[] = { SLICE_INIT("/a/b.c"), SLICE_INIT("/wp-content/x~1") };
    for (size_t i = 0; i < ARRAY_COUNT(in_form); i++) { /* nothing is copied */
        struct rule_path p;
        rule_path_init(&p, in_form[i]);
        assert_ptr_equal(p.text.ptr, in_form[i].ptr);
        rule_path_fini(&p);
    }
}

static void test_long_paths(void **state)
{
    (void)state;
    enum { LEN = 100000 };
    char *path = xmalloc(LEN);
    struct rule_path p;
    memset(path, '/', LEN);
    memcpy(path + LEN - 6, "/admin", 6);
    rule_path_init(&p, (struct slice){ path, LEN });
    assert_true(slice_equal(p.text, SLICE("/admin")));
    rule_path_fini(&p);
    memset(path + 1, ' ', LEN - 1);
    rule_path_init(&p, (struct slice){ path, LEN });
    assert_int_equal(p.text.len, 1 + 3 * (LEN - 1));
    rule_path_fini(&p);
    free(path);
}

/* ---- regular expressions ---- */

static void test_regex(void **state)
{
    (void)state;
    struct arena a;
    const char *why;
    struct rule_captures captures;
    arena_init(&a);
    struct rule_regex *r = rule_regex_compile(&a, SLICE("^/p/(\\d+)(?:-(x))?(.*)$"), false, &why);
    assert_int_equal(rule_regex_capture_count(r), 3);
    assert_int_equal(rule_regex_match(r, SLICE("/p/12/a"), &captures), REGEX_YES);
    assert_true(slice_equal(captures.at[0], SLICE("/p/12/a")));
    assert_true(slice_equal(captures.at[1], SLICE("12")));
    assert_null(captures.at[2].ptr);
    assert_true(slice_equal(captures.at[3], SLICE("/a")));
    assert_null(captures.at[4].ptr);
    assert_int_equal(rule_regex_match(r, SLICE("/q/12"), &captures), REGEX_NO);
    assert_int_equal(rule_regex_match(r, SLICE_NONE, NULL), REGEX_NO);
    r = rule_regex_compile(&a, SLICE("^/ABC$"), true, &why);
    assert_int_equal(rule_regex_match(r, SLICE("/abc"), NULL), REGEX_YES);
    r = rule_regex_compile(&a, SLICE("(1)(2)(3)(4)(5)(6)(7)(8)(9)(A)(B)"), false,
                           &why); /* more than $9 */
    assert_int_equal(rule_regex_match(r, SLICE("123456789AB"), &captures), REGEX_YES);
    assert_true(slice_equal(captures.at[9], SLICE("9")));
    assert_null(rule_regex_compile(&a, SLICE("a(b"), false, &why));
    assert_string_equal(why, "is no regular expression: missing closing parenthesis at offset 3");
    assert_null(
        rule_regex_compile(&a, SLICE("(*UTF)a"), false, &why)); /* what clients send is bytes */
    arena_fini(&a);
}

static void test_regex_is_bounded(void **state)
{
    (void)state;
    struct arena a;
    const char *why;
    char text[4096];
    memset(text, 'a', sizeof text);
    arena_init(&a);
    static const char *const costly[] = { "^(a+)+$", "^(a|a)*$", "(.*)(.*)(.*)(.*)(.*)(.*)x",
                                          "(?:a?){40}a{40}b" };
    for (size_t i = 0; i < ARRAY_COUNT(costly); i++) {
        struct rule_regex *r = rule_regex_compile(&a, slice_of(costly[i]), false, &why);
        text[sizeof text - 1] = 'c';
        double before = seconds();
        for (int round = 0; round < 3; round++)
            assert_int_not_equal(rule_regex_match(r, (struct slice){ text, sizeof text }, NULL),
                                 REGEX_YES);
        assert_true(seconds() - before < 3);
    }
    arena_fini(&a);
}

static void *match_elsewhere(void *arg)
{
    assert_int_equal(rule_regex_match(arg, SLICE("/p/1"), NULL), REGEX_YES);
    return NULL;
}

/* Each thread has memory of its own for it, which goes with the thread. */
static void test_regex_in_threads(void **state)
{
    (void)state;
    struct arena a;
    const char *why;
    pthread_t threads[4];
    arena_init(&a);
    struct rule_regex *r = rule_regex_compile(&a, SLICE("^/p/"), false, &why);
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, match_elsewhere, r), 0);
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    arena_fini(&a);
}

/* ---- texts with variables ---- */

static void test_templates(void **state)
{
    (void)state;
    struct peer peer = { .bytes = {
                             [10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 1 } };
    struct rule_request with = { SLICE("GET"), SLICE("https"), SLICE("h.example"),
                                 SLICE("/a"),  SLICE("b=c"),   NULL,
                                 &peer };
    struct rule_request without = { SLICE("GET"), SLICE("http"), SLICE_NONE, SLICE("/"),
                                    SLICE_NONE,   NULL,          NULL };
    struct rule_captures captures = { .at = { SLICE("zero"), SLICE("one"), SLICE_NONE } };
    static const struct {
        const char *text, *with, *without;
    } rows[] = {
        { "", "", "" },
        { "plain", "plain", "plain" },
        { "https://$host$path$query", "https://h.example/a?b=c", "https:///" },
        { "$scheme $method $args $client", "https GET b=c 192.0.2.1", "http GET  " },
        { "${host}x", "h.examplex", "x" },
        { "a$1b$2c$0", "aonebczero", "aonebczero" },
        { "$12", "one2", "one2" },
        { "$$1$$", "$1$", "$1$" },
        { "${1}2", "one2", "one2" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct arena a;
        struct rule_template t;
        const char *why;
        arena_init(&a);
        assert_true(rule_template_compile(&a, slice_of(rows[i].text), &t, &why));
        struct template_input in = { &with, &captures };
        struct slice made = rule_template_make(&t, &in, &a);
        if (!slice_equal(made, slice_of(rows[i].with)))
            fail_msg("%s: " SLICE_FMT, rows[i].text, SLICE_ARG(made));
        in.request = &without;
        made = rule_template_make(&t, &in, &a);
        if (!slice_equal(made, slice_of(rows[i].without)))
            fail_msg("%s: " SLICE_FMT, rows[i].text, SLICE_ARG(made));
        arena_fini(&a);
    }
    static const char *const wrong[] = { "$",      "a$",  "$foo", "$hostname",
                                         "${host", "${}", "$-",   "${10}" };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct arena a;
        struct rule_template t;
        const char *why;
        arena_init(&a);
        if (rule_template_compile(&a, slice_of(wrong[i]), &t, &why))
            fail_msg("%s", wrong[i]);
        arena_fini(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_globs),
        cmocka_unit_test(test_globs_against_meaning),
        cmocka_unit_test(test_globs_are_bounded),
        cmocka_unit_test(test_globs_that_are_none),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_long_paths),
        cmocka_unit_test(test_regex),
        cmocka_unit_test(test_regex_is_bounded),
        cmocka_unit_test(test_regex_in_threads),
        cmocka_unit_test(test_templates),
    };
    (void)try_request;
    (void)tried_fini;
    (void)rules_load;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
