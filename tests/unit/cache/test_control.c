/* tests/unit/cache/test_control.c: Cache-Control as rows (RFC 9111 5.2). */
#include "tests/unit/cache/decide_rows.h"

enum flag {
    NO_STORE = 1 << 0,
    NO_CACHE = 1 << 1,
    PRIVATE = 1 << 2,
    PUBLIC = 1 << 3,
    MUST_REVALIDATE = 1 << 4,
    PROXY_REVALIDATE = 1 << 5,
    NO_TRANSFORM = 1 << 6,
    ONLY_IF_CACHED = 1 << 7,
    IMMUTABLE = 1 << 8,
    MUST_UNDERSTAND = 1 << 9,
    NAMES_NO_CACHE = 1 << 10,
    MALFORMED = 1 << 11,
    NAMES_PRIVATE = 1 << 12,
};

static unsigned flags_of(const struct cache_control *c)
{
    return (c->no_store ? NO_STORE : 0u) | (c->no_cache ? NO_CACHE : 0u) |
           (c->is_private ? PRIVATE : 0u) | (c->is_public ? PUBLIC : 0u) |
           (c->must_revalidate ? MUST_REVALIDATE : 0u) |
           (c->proxy_revalidate ? PROXY_REVALIDATE : 0u) | (c->no_transform ? NO_TRANSFORM : 0u) |
           (c->only_if_cached ? ONLY_IF_CACHED : 0u) | (c->immutable ? IMMUTABLE : 0u) |
           (c->must_understand ? MUST_UNDERSTAND : 0u) | (c->names_no_cache ? NAMES_NO_CACHE : 0u) |
           (c->names_private ? NAMES_PRIVATE : 0u) | (c->has_malformed ? MALFORMED : 0u);
}

enum { N = CONTROL_NONE, MAX = CONTROL_MAX_S };

/* max-age and s-maxage with flags: the rest of the numbers have a table of their own. */
static const struct {
    const char *value; /* a line break: another field */
    unsigned flags;
    int32_t max_age, s_maxage;
    const char *section;
} rows[] = {
    { "", 0, N, N, "5.2 empty" },
    { ",", 0, N, N, "RFC 9110 5.6.1 empty elements" },
    { "max-age=60", 0, 60, N, "5.2.2.1" },
    { "max-age=0", 0, 0, N, "5.2.2.1" },
    { "s-maxage=60", 0, N, 60, "5.2.2.10" },
    { "max-age=1, s-maxage=3600", 0, 1, 3600, "5.2.2.10" },
    { "s-maxage=1,max-age=3600", 0, 3600, 1, "5.2.2.10 no space" },
    { "MaX-aGe=60", 0, 60, N, "5.2 any case" },
    { "No-StOrE", NO_STORE, N, N, "5.2 any case" },
    { "no-store", NO_STORE, N, N, "5.2.2.5" },
    { "no-cache", NO_CACHE, N, N, "5.2.2.4" },
    { "private", PRIVATE, N, N, "5.2.2.7" },
    { "public", PUBLIC, N, N, "5.2.2.9" },
    { "must-revalidate", MUST_REVALIDATE, N, N, "5.2.2.2" },
    { "proxy-revalidate", PROXY_REVALIDATE, N, N, "5.2.2.8" },
    { "no-transform", NO_TRANSFORM, N, N, "5.2.2.6" },
    { "only-if-cached", ONLY_IF_CACHED, N, N, "5.2.1.7" },
    { "immutable", IMMUTABLE, N, N, "RFC 8246 2" },
    { "must-understand", MUST_UNDERSTAND, N, N, "5.2.2.3" },
    { "no-store, must-understand, max-age=5", NO_STORE | MUST_UNDERSTAND, 5, N, "5.2.2.3" },
    { "public, max-age=60, must-revalidate", PUBLIC | MUST_REVALIDATE, 60, N, "5.2" },
    { " ,, max-age=60 , ,no-transform,", NO_TRANSFORM, 60, N, "RFC 9110 5.6.1 empty elements" },
    { "\tmax-age=60\t,\tno-cache\t", NO_CACHE, 60, N, "RFC 9110 5.6.3 tabs" },
    /* extensions */
    { "foobar, max-age=60", 0, 60, N, "5.2.3 unknown name" },
    { "foobar=1, max-age=60", 0, 60, N, "5.2.3 unknown with token" },
    { "foobar=\"a, b\", max-age=60", 0, 60, N, "5.2.3 unknown with string" },
    { "extension=\"max-age=3600\", max-age=1", 0, 1, N, "5.2 a directive within quotes is text" },
    { "max-age=1, extension=\"max-age=3600\"", 0, 1, N, "5.2 the same after" },
    { "extension=\"no-store\", max-age=60", 0, 60, N, "5.2 the same for a flag" },
    { "extension=\"a\\\", no-store\", max-age=60", 0, 60, N, "RFC 9110 5.6.4 escaped quote" },
    { "no-storey, xno-store, max-ages=5", 0, N, N, "5.2 whole names only" },
    { "x-max-age=60", 0, N, N, "5.2 whole names only" },
    /* numbers (1.2.2) */
    { "max-age=\"60\"", 0, 60, N, "5.2 both forms are accepted" },
    { "s-maxage=\"60\"", 0, N, 60, "5.2 both forms are accepted" },
    { "max-age=003600", 0, 3600, N, "1.2.2 leading zeros" },
    { "max-age=2147483646", 0, 2147483646, N, "1.2.2" },
    { "max-age=2147483647", 0, MAX, N, "1.2.2" },
    { "max-age=2147483648", 0, MAX, N, "1.2.2 overflow" },
    { "max-age=2147483649", 0, MAX, N, "1.2.2 overflow" },
    { "max-age=99999999999", 0, MAX, N, "1.2.2 overflow" },
    { "max-age=99999999999999999999999999999999999", 0, MAX, N, "1.2.2 overflow of 64 bits" },
    { "max-age=99999999999999999999999999999999999x", MALFORMED, 0, N, "4.2.1 digits to the end" },
    { "max-age", MALFORMED, 0, N, "4.2.1 no value" },
    { "max-age=", MALFORMED, 0, N, "4.2.1 empty value" },
    { "max-age=\"\"", MALFORMED, 0, N, "4.2.1 empty string" },
    { "max-age=-3600", MALFORMED, 0, N, "4.2.1 negative" },
    { "max-age=+3600", MALFORMED, 0, N, "4.2.1 sign" },
    { "max-age=3600.0", MALFORMED, 0, N, "4.2.1 float" },
    { "max-age=3600.5", MALFORMED, 0, N, "4.2.1 float" },
    { "max-age=1e3", MALFORMED, 0, N, "4.2.1 float" },
    { "max-age=0x10", MALFORMED, 0, N, "4.2.1 hexadecimal" },
    { "max-age=a3600", MALFORMED, 0, N, "4.2.1 letter in front" },
    { "max-age=3600a", MALFORMED, 0, N, "4.2.1 letter behind" },
    { "max-age='3600'", MALFORMED, 0, N, "4.2.1 single quotes" },
    { "max-age=\" 3600\"", MALFORMED, 0, N, "4.2.1 space within quotes" },
    { "max-age=\"36\\00\"", MALFORMED, 0, N, "4.2.1 escape within quotes" },
    { "s-maxage=abc", MALFORMED, N, 0, "4.2.1" },
    { "s-maxage", MALFORMED, N, 0, "4.2.1" },
    /* spaces around "=": no directive (5.2) */
    { "max-age =3600", MALFORMED, 0, N, "5.2 space before" },
    { "max-age= 3600", MALFORMED, 0, N, "5.2 space after" },
    { "max-age = 3600", MALFORMED, 0, N, "5.2 both" },
    { "max-age\t=3600", MALFORMED, 0, N, "5.2 tab" },
    { "max-age==3600", MALFORMED, 0, N, "5.2 twice" },
    { "max-age=36=00", MALFORMED, 0, N, "5.2 '=' is no token" },
    { "max-age 3600", MALFORMED, 0, N, "5.2 no '='" },
    { "max-age=3600 60", MALFORMED, 0, N, "5.2 two values" },
    { "max-age:3600", MALFORMED, 0, N, "5.2 colon" },
    { "=3600", MALFORMED, N, N, "5.2 no name" },
    { "\"max-age=3600\"", MALFORMED, 0, N, "5.2 all in quotes" },
    /* semicolons for commas: never longer, never wider */
    { "max-age=30; public", MALFORMED, 0, N, "4.2.1 semicolon" },
    { "public; max-age=3600", MALFORMED, 0, N, "4.2.1 semicolon" },
    { "max-age=30; s-maxage=3600", MALFORMED, 0, 0, "4.2.1 semicolon" },
    { "max-age=30;max-age=3600", MALFORMED, 0, N, "4.2.1 semicolon" },
    { "max-age=30, public; s-maxage=86400", MALFORMED, 30, 0, "4.2.1 semicolon" },
    { "private; max-age=60", MALFORMED | PRIVATE, 0, N, "5.2.2.7 semicolon" },
    { "max-age=60; private", MALFORMED | PRIVATE, 0, N, "5.2.2.7 semicolon" },
    { "no-store; max-age=60", MALFORMED | NO_STORE, 0, N, "5.2.2.5 semicolon" },
    { "max-age=60 no-store", MALFORMED | NO_STORE, 0, N, "5.2.2.5 space" },
    { "no-cache;no-store;must-revalidate", MALFORMED | NO_CACHE | NO_STORE | MUST_REVALIDATE, N, N,
      "5.2.2 semicolons" },
    { "immutable; must-understand", MALFORMED, N, N, "5.2.2.3 what permits is not believed" },
    { "no-store, must-understand;", MALFORMED | NO_STORE, N, N,
      "5.2.2.3 what permits is not believed" },
    /* quotes left open */
    { "max-age=\"3600", MALFORMED, 0, N, "RFC 9110 5.6.4" },
    { "foo=\"bar, no-store", MALFORMED | NO_STORE, N, N, "RFC 9110 5.6.4" },
    { "foo=\"bar, max-age=60, public", MALFORMED, 0, N, "RFC 9110 5.6.4" },
    { "max-age=\"60\"x", MALFORMED, 0, N, "RFC 9110 5.6.4 more behind" },
    { "max-age=\"60\\", MALFORMED, 0, N, "RFC 9110 5.6.4 ends with an escape" },
    { "max-age=\"", MALFORMED, 0, N, "RFC 9110 5.6.4 a quote alone" },
    /* arguments where there is none */
    { "no-store=1", NO_STORE, N, N, "5.2 restricts all the same" },
    { "must-revalidate=\"x\"", MUST_REVALIDATE, N, N, "5.2 restricts all the same" },
    { "public=1", 0, N, N, "5.2 something else" },
    { "must-understand=1", 0, N, N, "5.2 something else" },
    { "immutable=1", 0, N, N, "5.2 something else" },
    /* field lists */
    { "no-cache=\"set-cookie\"", NAMES_NO_CACHE, N, N, "5.2.2.4 that field alone" },
    { "no-cache=\"a, b\", max-age=3600", NAMES_NO_CACHE, 3600, N, "5.2.2.4 commas within" },
    { "private=\"x\", max-age=60", NAMES_PRIVATE, 60, N, "5.2.2.7 that field alone" },
    { "private=\" x ,, Y-z \"", NAMES_PRIVATE, N, N, "RFC 9110 5.6.1 empty elements" },
    { "no-cache=a", NAMES_NO_CACHE, N, N, "5.2 the token form is accepted" },
    { "private=a", NAMES_PRIVATE, N, N, "5.2 the token form is accepted" },
    { "No-Cache=\"A\", PRIVATE=\"b\"", NAMES_NO_CACHE | NAMES_PRIVATE, N, N, "5.2 any case" },
    { "no-cache=\"\"", NO_CACHE | MALFORMED, N, N, "5.2.2.4 no name in it" },
    { "private=\"\"", PRIVATE | MALFORMED, N, N, "5.2.2.7 no name in it" },
    { "private=\",\"", PRIVATE | MALFORMED, N, N, "5.2.2.7 no name in it" },
    { "private=", PRIVATE | MALFORMED, N, N, "5.2.2.7 empty" },
    { "private=\"a b\"", PRIVATE | MALFORMED, N, N, "5.2.2.7 no list of names" },
    { "private=\"a;b\"", PRIVATE | MALFORMED, N, N, "5.2.2.7 no list of names" },
    { "private=\"a, b c\"", PRIVATE | MALFORMED, N, N, "5.2.2.7 one of them is none" },
    { "private=\"*\"", PRIVATE | MALFORMED, N, N, "5.2.2.7 all fields are all of it" },
    { "private=\"\\\"a\\\"\"", PRIVATE | MALFORMED, N, N, "5.2.2.7 quotes within" },
    { "private=\"a", PRIVATE | MALFORMED, N, N, "RFC 9110 5.6.4 left open" },
    { "private = \"a\"", PRIVATE | MALFORMED, N, N, "5.2 space" },
    { "no-cache =\"a\"", NO_CACHE | MALFORMED, N, N, "5.2 space" },
    { "private=\"content-encoding\"", PRIVATE | MALFORMED, N, N, "5.2.2.7 the rest needs it" },
    { "no-cache=\"a, Content-Type\"", NO_CACHE | MALFORMED, N, N, "5.2.2.4 the rest needs it" },
    { "no-cache=\"Vary\"", NO_CACHE | MALFORMED, N, N, "5.2.2.4 the rest needs it" },
    { "no-cache=\"a\", no-cache=\"b\"", NAMES_NO_CACHE, N, N, "5.2.2.4 two lists" },
    { "private=\"a\", private", NAMES_PRIVATE | PRIVATE, N, N, "5.2.2.7 both forms" },
    { "private=\"a\", private=\"\"", NAMES_PRIVATE | PRIVATE | MALFORMED, N, N, "5.2.2.7" },
    /* repeated: the most restrictive */
    { "max-age=1800, max-age=1", 0, 1, N, "4.2.1" },
    { "max-age=1, max-age=1800", 0, 1, N, "4.2.1" },
    { "max-age=1800\nmax-age=1", 0, 1, N, "4.2.1 two fields" },
    { "max-age=1\nmax-age=1800", 0, 1, N, "4.2.1 two fields" },
    { "max-age=1800, max-age=x", MALFORMED, 0, N, "4.2.1 one malformed" },
    { "s-maxage=9\ns-maxage=8, s-maxage=10", 0, N, 8, "4.2.1 three" },
    { "max-age=60\nno-store", NO_STORE, 60, N, "RFC 9110 5.2 fields are one list" },
    { "public\nprivate", PUBLIC | PRIVATE, N, N, "4.2.1 conflicts are the reader's" },
    { "no-cache\nno-cache=\"x\"", NO_CACHE | NAMES_NO_CACHE, N, N, "5.2.2.4 both forms" },
};

static const char *as_fields(const char *name, const char *values, char *out, size_t capacity)
{
    size_t used = 0;
    out[0] = '\0';
    for (struct slice rest = slice_of(values);;) {
        size_t len = slice_find(rest, '\n');
        used += (size_t)snprintf(out + used, capacity - used, "%s%s: %.*s", used == 0 ? "" : "\n",
                                 name, (int)len, rest.ptr);
        assert_true(used < capacity);
        if (len == rest.len)
            return out;
        rest.ptr += len + 1;
        rest.len -= len + 1;
    }
}

static void test_directives(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct row_headers h;
        struct cache_control c;
        char text[512];
        cache_control_read(
            row_headers(&h, as_fields("Cache-Control", rows[i].value, text, sizeof text)),
            HEADER_CACHE_CONTROL, &c);
        ROW_CHECK(rows[i].value, flags_of(&c), rows[i].flags);
        ROW_CHECK(rows[i].value, c.max_age_s, rows[i].max_age);
        ROW_CHECK(rows[i].value, c.s_maxage_s, rows[i].s_maxage);
        ROW_CHECK(rows[i].value, c.is_present, true);
        assert_non_null(rows[i].section);
    }
}

static const struct {
    const char *value;
    int32_t max_stale, min_fresh, while_revalidate, if_error;
    const char *section;
} windows[] = {
    { "", N, N, N, N, "5.2" },
    { "max-stale", MAX, N, N, N, "5.2.1.2 of any age" },
    { "max-stale=60", 60, N, N, N, "5.2.1.2" },
    { "max-stale=\"60\"", 60, N, N, N, "5.2.1.2" },
    { "max-stale=x", 0, N, N, N, "5.2.1.2 malformed: none" },
    { "max-stale, max-stale=5", 5, N, N, N, "4.2.1" },
    { "max-stale; foo", 0, N, N, N, "5.2 malformed: none" },
    { "min-fresh=60", N, 60, N, N, "5.2.1.3" },
    { "min-fresh=60, min-fresh=90", N, 90, N, N, "4.2.1" },
    { "min-fresh", N, 0, N, N, "5.2.1.3 malformed" },
    { "min-fresh=60; foo", N, N, N, N, "5.2 malformed" },
    { "stale-while-revalidate=30", N, N, 30, N, "RFC 5861 3" },
    { "stale-while-revalidate", N, N, 0, N, "RFC 5861 3 malformed: none" },
    { "stale-while-revalidate=30, stale-while-revalidate=10", N, N, 10, N, "4.2.1" },
    { "stale-while-revalidate=30; foo", N, N, N, N, "5.2 what permits is not believed" },
    { "stale-if-error=30", N, N, N, 30, "RFC 5861 4" },
    { "stale-if-error=1.5", N, N, N, 0, "RFC 5861 4 malformed: none" },
    { "stale-if-error=99999999999", N, N, N, MAX, "1.2.2" },
    { "max-age=1, stale-while-revalidate=3, stale-if-error=4", N, N, 3, 4, "RFC 5861" },
};

static void test_windows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(windows); i++) {
        struct row_headers h;
        struct cache_control c;
        char text[512];
        cache_control_read(
            row_headers(&h, as_fields("Cache-Control", windows[i].value, text, sizeof text)),
            HEADER_CACHE_CONTROL, &c);
        ROW_CHECK(windows[i].value, c.max_stale_s, windows[i].max_stale);
        ROW_CHECK(windows[i].value, c.min_fresh_s, windows[i].min_fresh);
        ROW_CHECK(windows[i].value, c.stale_while_revalidate_s, windows[i].while_revalidate);
        ROW_CHECK(windows[i].value, c.stale_if_error_s, windows[i].if_error);
    }
}

static const struct {
    const char *fields, *name;
    bool is_named;
    const char *section;
} names[] = {
    { "", "a", false, "5.2.2.4 nothing" },
    { "Cache-Control: no-cache=\"a\"", "a", true, "5.2.2.4" },
    { "Cache-Control: no-cache=\"a\"", "A", true, "5.2.2.4 any case" },
    { "Cache-Control: no-cache=\"a\"", "b", false, "5.2.2.4" },
    { "Cache-Control: no-cache=\"ab\"", "a", false, "5.2.2.4 whole names" },
    { "Cache-Control: no-cache=\"a, b\"", "b", true, "5.2.2.4 two" },
    { "Cache-Control: max-age=1, private=\"Set-Cookie\"", "set-cookie", true, "5.2.2.7" },
    { "Cache-Control: private=a", "a", true, "5.2" },
    { "Cache-Control: max-age=1\nCache-Control: private=\"x\"", "x", true, "RFC 9110 5.2 second" },
    { "Cache-Control: private=\"x\", private=\"y\"", "y", true, "5.2.2.7 two lists" },
    { "Cache-Control: private", "a", false, "5.2.2.7 without a list" },
    { "Cache-Control: private=\"a b\"", "a", false, "5.2.2.7 no list: about all of it" },
    { "Cache-Control: private=\"a, vary\"", "a", false, "5.2.2.7 about all of it" },
    { "Cache-Control: foo=\"a\"", "a", false, "5.2.3 something else" },
    { "Cache-Control: foo=\"private=a\"", "a", false, "5.2 text" },
    { "CDN-Cache-Control: private=\"a\"", "a", false, "RFC 9213 2.1 another field" },
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        struct row_headers h;
        ROW_CHECK(names[i].fields,
                  cache_control_names(row_headers(&h, names[i].fields), slice_of(names[i].name)),
                  names[i].is_named);
        assert_non_null(names[i].section);
    }
}

static const struct {
    const char *value;
    bool forbids;
    const char *section;
} forbidding[] = {
    { "max-age=60", false, "4.2.4" },
    { "must-revalidate", true, "5.2.2.2" },
    { "proxy-revalidate", true, "5.2.2.8" },
    { "s-maxage=60", true, "5.2.2.10" },
    { "s-maxage=x", true, "5.2.2.10 malformed" },
    { "public, immutable, no-transform", false, "4.2.4" },
};

static void test_forbids_stale(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(forbidding); i++) {
        struct row_headers h;
        struct cache_control c;
        char text[512];
        cache_control_read(
            row_headers(&h, as_fields("Cache-Control", forbidding[i].value, text, sizeof text)),
            HEADER_CACHE_CONTROL, &c);
        ROW_CHECK(forbidding[i].value, cache_control_forbids_stale(&c), forbidding[i].forbids);
    }
}

static const struct {
    const char *fields;
    bool is_present, no_cache;
    const char *section;
} pragmas[] = {
    { "", false, false, "5.4" },
    { "Pragma: no-cache", false, true, "5.4" },
    { "Pragma: No-Cache", false, true, "5.4 any case" },
    { "Pragma: foo, no-cache", false, true, "5.4 in a list" },
    { "Pragma: foo\nPragma: no-cache", false, true, "5.4 in another field" },
    { "Pragma: foo", false, false, "5.4 something else" },
    { "Pragma: foo=\"no-cache\"", false, false, "5.4 text" },
    { "Pragma: no-cache\nCache-Control: max-age=60", true, false, "5.4 Cache-Control is newer" },
    { "Pragma: no-cache\nCache-Control:", true, false, "5.4 Cache-Control is newer" },
    { "Cache-Control: no-cache", true, true, "5.2.1.4" },
};

static void test_pragma(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(pragmas); i++) {
        struct row_headers h;
        struct cache_control c;
        cache_control_read_request(row_headers(&h, pragmas[i].fields), &c);
        ROW_CHECK(pragmas[i].fields, c.is_present, pragmas[i].is_present);
        ROW_CHECK(pragmas[i].fields, c.no_cache, pragmas[i].no_cache);
    }
}

static void test_other_fields_are_not_read(void **state)
{
    (void)state;
    struct row_headers h;
    struct cache_control c;
    const struct headers *list = row_headers(
        &h, "CDN-Cache-Control: max-age=5\nX-Cache-Control: no-store\nPragma: no-cache");
    cache_control_read(list, HEADER_CACHE_CONTROL, &c);
    assert_false(c.is_present || c.no_store || c.no_cache);
    assert_int_equal(c.max_age_s, CONTROL_NONE);
    cache_control_read(list, HEADER_CDN_CACHE_CONTROL, &c);
    assert_true(c.is_present);
    assert_int_equal(c.max_age_s, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directives), cmocka_unit_test(test_windows),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_forbids_stale),
        cmocka_unit_test(test_pragma),     cmocka_unit_test(test_other_fields_are_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
