/* Patterns of purges. */
#include "tests/unit/cache/store_help.h"

static void what_matches(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool matches;
    } rows[] = {
        { "a/b", "a/b", true },
        { "a/b", "a/bc", false },
        { "a/b", "a/", false },
        { "a/*", "a/", true },
        { "a/*", "a/bcd", true },
        { "a/*", "a/b/c", false },
        { "a/*/c", "a/b/c", true },
        { "a/*/c", "a//c", true },
        { "a/*/c", "a/b/b/c", false },
        { "a/**", "a/", true },
        { "a/**", "a/b/c?d=e/f", true },
        { "a/**/c", "a/b/b/c", true },
        { "a/**/c", "a/c", false }, /* both slashes stand for themselves */
        { "a/**c", "a/c", true },
        { "**", "", true },
        { "**", "anything/at/all", true },
        { "**/x", "/x", true },
        { "*/x", "/x", true },
        { "*.css/", "a.css/", true },
        { "h/*.css", "h/a.css.css", true },
        { "h/*.css", "h/a.css.map", false },
        { "h/**/*.css", "h/a/b/c.css", true },
        { "h/**/*.css", "h/a/b.css/c", false },
        { "h/**a*b/c", "h/a/ab/ab/c", true },
        { "h/**a*b/c", "h/ab/ax/c", false },
        { "h/*a*a*a", "h/aa", false },
        { "h/*a*a*a", "h/xaxaxa", true },
        { "h/a?b", "h/a?b", true }, /* a query begins so: it stands for itself */
        { "h/a?b", "h/axb", false },
        { "h/[ab]", "h/[ab]", true },
        { "h/[ab]", "h/a", false },
        { "h/\\*", "h/*", true },
        { "h/\\*", "h/x", false },
        { "h/\\**", "h/*xy", true },
        { "h/\\\\", "h/\\", true },
        { "h/\xc3\xa4*", "h/\xc3\xa4\xc3\xb6", true },
        { "h/***", "h/", false }, /* no pattern */
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        if (cache_glob_matches(slice_of(rows[i].pattern), slice_of(rows[i].text)) !=
            rows[i].matches)
            fail_msg("%s: %s", rows[i].pattern, rows[i].text);
}

static void what_is_no_pattern(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *why;
    } rows[] = {
        { "", "empty" },
        { "www.example.com", "no '/'" },
        { "*.example.com", "no '/'" },
        { "h/***", "three stars" },
        { "h/\\", "backslash at the end" },
        { "h/\x01", "control character" },
        { "h/\\\x7f", "control character" },
        { "HTTP://www.example.com/*", "without http://" },
        { "https://www.example.com/*", "without http://" },
    };
    const char *why;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_false(cache_glob_check(slice_of(rows[i].pattern), &why));
        if (strstr(why, rows[i].why) == NULL)
            fail_msg("%s: %s", rows[i].pattern, why);
    }
    static char longest[GLOB_MAX + 1];
    memset(longest, '/', sizeof longest);
    assert_true(cache_glob_check((struct slice){ longest, GLOB_MAX }, &why));
    assert_true(cache_glob_matches((struct slice){ longest, GLOB_MAX },
                                   (struct slice){ longest, GLOB_MAX }));
    assert_false(cache_glob_matches((struct slice){ longest, GLOB_MAX },
                                    (struct slice){ longest, GLOB_MAX - 1 }));
    assert_false(cache_glob_check((struct slice){ longest, sizeof longest }, &why));
    assert_non_null(strstr(why, "1024"));
}

static void what_comes_before_the_first_star(void **state)
{
    (void)state;
    struct glob g;
    const char *why;
    char out[GLOB_MAX];
    assert_true(glob_read(SLICE("h/a\\*b*c"), &g, &why));
    assert_int_equal(glob_literal(&g, out), 5);
    assert_memory_equal(out, "h/a*b", 5);
    assert_true(glob_matches_from(&g, 5, SLICE("xyzc")));
    assert_false(glob_matches_from(&g, 5, SLICE("x/c")));
    assert_true(glob_read(SLICE("**"), &g, &why));
    assert_int_equal(glob_literal(&g, out), 0);
}

/* Going back and trying again would take longer than the world is old. */
static void the_worst_is_bounded(void **state)
{
    (void)state;
    static char pattern[GLOB_MAX], text[8192];
    for (size_t i = 0; i < sizeof pattern; i += 4)
        memcpy(pattern + i, "**a/", 4);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 2 == 0 ? 'a' : '/';
    text[sizeof text - 1] = 'b';
    assert_false(cache_glob_matches((struct slice){ pattern, sizeof pattern },
                                    (struct slice){ text, sizeof text }));
    text[sizeof text - 1] = '/';
    assert_true(cache_glob_matches((struct slice){ pattern, sizeof pattern },
                                   (struct slice){ text, sizeof text }));
}

/* By definition, for short ones. */
static bool plainly(const char *p, const char *t)
{
    if (*p == '\0')
        return *t == '\0';
    if (*p != '*')
        return *t == *p && plainly(p + 1, t + 1);
    bool is_two = p[1] == '*';
    const char *rest = p + 1 + is_two;
    for (;; t++) {
        if (plainly(rest, t))
            return true;
        if (*t == '\0' || (!is_two && *t == '/'))
            return false;
    }
}

static void short_ones_match_as_defined(void **state)
{
    (void)state;
    unsigned seed = 3, matched = 0;
    for (unsigned i = 0; i < 200000; i++) {
        char p[10], t[10], words[2][10];
        for (unsigned side = 0; side < 2; side++) {
            unsigned n = 0, length = (seed = seed * 1664525u + 1013904223u) >> 24 & 7;
            for (; n < length; n++)
                words[side][n] =
                    (side == 0 ? "ab/**b/a"
                               : "ab/ab/aa")[(seed = seed * 1664525u + 1013904223u) >> 24 & 7];
            words[side][n] = '\0';
        }
        strcpy(p, words[0]);
        strcpy(t, words[1]);
        const char *why;
        if (!cache_glob_check(slice_of(p), &why))
            continue;
        bool is = cache_glob_matches(slice_of(p), slice_of(t));
        matched += is;
        if (is != plainly(p, t))
            fail_msg("%s: %s", p, t);
    }
    assert_true(matched > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_matches),
        cmocka_unit_test(what_is_no_pattern),
        cmocka_unit_test(what_comes_before_the_first_star),
        cmocka_unit_test(the_worst_is_bounded),
        cmocka_unit_test(short_ones_match_as_defined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
