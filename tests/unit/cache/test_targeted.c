/* tests/unit/cache/test_targeted.c: CDN-Cache-Control and its like (RFC 9213), their syntax (RFC
 * 9651), and Surrogate-Control, as rows. */
#include "tests/unit/cache/decide_rows.h"

enum { N = CONTROL_NONE, MAX = CONTROL_MAX_S };
enum from {
    NOTHING = CONTROL_FROM_NOTHING,
    TARGETED = CONTROL_FROM_TARGETED,
    SURROGATE = CONTROL_FROM_SURROGATE,
    CACHE_CONTROL = CONTROL_FROM_CACHE_CONTROL
};
enum flag {
    NO_STORE = 1,
    NO_CACHE = 2,
    PRIVATE = 4,
    PUBLIC = 8,
    MUST_REVALIDATE = 16,
    PROXY_REVALIDATE = 32,
    IMMUTABLE = 64,
    MUST_UNDERSTAND = 128,
    NAMES_NO_CACHE = 256,
    NAMES_PRIVATE = 512,
    MALFORMED = 1024,
    NO_TRANSFORM = 2048,
};

static unsigned flags_of(const struct cache_control *c)
{
    return (c->no_store ? NO_STORE : 0u) | (c->no_cache ? NO_CACHE : 0u) |
           (c->is_private ? PRIVATE : 0u) | (c->is_public ? PUBLIC : 0u) |
           (c->must_revalidate ? MUST_REVALIDATE : 0u) |
           (c->proxy_revalidate ? PROXY_REVALIDATE : 0u) | (c->immutable ? IMMUTABLE : 0u) |
           (c->must_understand ? MUST_UNDERSTAND : 0u) | (c->names_no_cache ? NAMES_NO_CACHE : 0u) |
           (c->names_private ? NAMES_PRIVATE : 0u) | (c->has_malformed ? MALFORMED : 0u) |
           (c->no_transform ? NO_TRANSFORM : 0u);
}

static const char *const cdn[] = { "CDN-Cache-Control", NULL };

/* ---- which field counts ------------------------------------------------------------------------
 */

static const char *const two[] = { "Example-Cache-Control", "CDN-Cache-Control", NULL };
static const char *const empty_list[] = { NULL };

static const struct {
    const char *fields;
    const char *const *targets;
    enum from source;
    const char *field;
    int32_t max_age;
    const char *section;
} chosen[] = {
    { "", cdn, NOTHING, NULL, N, "nothing said" },
    { "Cache-Control: max-age=1", cdn, CACHE_CONTROL, "Cache-Control", 1, "RFC 9213 2.2" },
    { "Cache-Control:", cdn, CACHE_CONTROL, "Cache-Control", N, "RFC 9111 5.2 empty" },
    { "CDN-Cache-Control: max-age=5", cdn, TARGETED, "CDN-Cache-Control", 5, "RFC 9213 2.2" },
    { "Cache-Control: max-age=1\nCDN-Cache-Control: max-age=5", cdn, TARGETED, "CDN-Cache-Control",
      5, "RFC 9213 2.2 longer" },
    { "Cache-Control: max-age=5\nCDN-Cache-Control: max-age=1", cdn, TARGETED, "CDN-Cache-Control",
      1, "RFC 9213 2.2 shorter" },
    { "Cache-Control: no-store\nCDN-Cache-Control: max-age=5", cdn, TARGETED, "CDN-Cache-Control",
      5, "RFC 9213 3.1 others do not store" },
    { "Cache-Control: no-store\nCDN-Cache-Control: none", cdn, TARGETED, "CDN-Cache-Control", N,
      "RFC 9213 3.1 something unknown is something" },
    { "cdn-cache-control: max-age=5", cdn, TARGETED, "CDN-Cache-Control", 5, "RFC 9110 5.1" },
    { "CDN-Cache-Control: max-age=5", NULL, NOTHING, NULL, N, "RFC 9213 2.2 not in the list" },
    { "CDN-Cache-Control: max-age=5", empty_list, NOTHING, NULL, N,
      "RFC 9213 2.2 not in the list" },
    { "Other-Cache-Control: max-age=5\nCache-Control: max-age=1", cdn, CACHE_CONTROL,
      "Cache-Control", 1, "RFC 9213 2.2 not in the list" },
    { "CDN-Cache-Control: max-age=5\nExample-Cache-Control: max-age=9", two, TARGETED,
      "Example-Cache-Control", 9, "RFC 9213 2.2 the list's order" },
    { "CDN-Cache-Control: max-age=5\nExample-Cache-Control: max-age=", two, TARGETED,
      "CDN-Cache-Control", 5, "RFC 9213 2.2 the first that is valid" },
    { "CDN-Cache-Control:\nCache-Control: max-age=1", cdn, CACHE_CONTROL, "Cache-Control", 1,
      "RFC 9213 2.1 empty" },
    { "CDN-Cache-Control: max-age =5\nCache-Control: max-age=1", cdn, CACHE_CONTROL,
      "Cache-Control", 1, "RFC 9213 2.1 malformed" },
    { "CDN-Cache-Control: max-age=5, &&&\nCache-Control: no-store", cdn, CACHE_CONTROL,
      "Cache-Control", N, "RFC 9213 2.1 malformed" },
    { "CDN-Cache-Control: max-age=\"5\"\nCache-Control: max-age=9", cdn, TARGETED,
      "CDN-Cache-Control", 0, "RFC 9213 2.1 of the wrong kind" },
    /* Surrogate-Control */
    { "Surrogate-Control: max-age=7\nCache-Control: no-store", cdn, SURROGATE, "Surrogate-Control",
      7, "before Cache-Control" },
    { "Surrogate-Control: max-age=7\nCDN-Cache-Control: max-age=5", cdn, TARGETED,
      "CDN-Cache-Control", 5, "behind targeted fields" },
    { "Surrogate-Control: max-age=7\nCDN-Cache-Control: x y", cdn, SURROGATE, "Surrogate-Control",
      7, "behind those that are valid" },
    { "Surrogate-Control: content=\"ESI/1.0\"\nCache-Control: max-age=1", cdn, CACHE_CONTROL,
      "Cache-Control", 1, "says nothing about storing" },
    { "Surrogate-Control:\nCache-Control: max-age=1", cdn, CACHE_CONTROL, "Cache-Control", 1,
      "empty" },
    { "Surrogate-Control: max-age=7;other\nCache-Control: max-age=1", cdn, CACHE_CONTROL,
      "Cache-Control", 1, "for another surrogate" },
};

static void test_which_field_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(chosen); i++) {
        struct row_headers h;
        struct cache_control c;
        enum control_source source;
        const char *field;
        cache_control_read_response(row_headers(&h, chosen[i].fields), chosen[i].targets, &c,
                                    &source, &field);
        ROW_CHECK(chosen[i].fields, source, (int)chosen[i].source);
        ROW_CHECK(chosen[i].fields, c.max_age_s, chosen[i].max_age);
        ROW_CHECK(chosen[i].fields, c.is_present, chosen[i].source != NOTHING);
        if (chosen[i].field == NULL)
            assert_null(field);
        else
            assert_string_equal(field, chosen[i].field);
        assert_non_null(chosen[i].section);
    }
}

/* ---- directives --------------------------------------------------------------------------------
 */

static const struct {
    const char *value; /* a line break: another field */
    unsigned flags;
    int32_t max_age, s_maxage, behind, error;
    const char *section;
} directives[] = {
    { "max-age=60", 0, 60, N, N, N, "RFC 9213 2.1 an integer" },
    { "max-age=0", 0, 0, N, N, N, "RFC 9213 2.1" },
    { "max-age=0060", 0, 60, N, N, N, "RFC 9651 3.3.1 zeros in front" },
    { "max-age=2147483648", 0, MAX, N, N, N, "RFC 9111 1.2.2" },
    { "max-age=999999999999999", 0, MAX, N, N, N, "RFC 9651 3.3.1 fifteen digits" },
    { "s-maxage=60", 0, N, 60, N, N, "RFC 9111 5.2.2.10" },
    { "stale-while-revalidate=3, stale-if-error=4", 0, N, N, 3, 4, "RFC 5861" },
    { "no-store", NO_STORE, N, N, N, N, "RFC 9213 2.1 true" },
    { "no-store=?1", NO_STORE, N, N, N, N, "RFC 9651 3.3.6 true" },
    { "no-store=?0, max-age=5", 0, 5, N, N, N, "RFC 9651 3.3.6 false" },
    { "private, no-cache, must-revalidate, proxy-revalidate, public",
      PRIVATE | NO_CACHE | MUST_REVALIDATE | PROXY_REVALIDATE | PUBLIC, N, N, N, N,
      "RFC 9213 2.1" },
    { "immutable, must-understand, no-transform", IMMUTABLE | MUST_UNDERSTAND | NO_TRANSFORM, N, N,
      N, N, "RFC 9213 2.1" },
    { "foobar, max-age=60", 0, 60, N, N, N, "RFC 9213 2.2 unknown ones are ignored" },
    { "foobar=(1 2 \"x\");y, max-age=60", 0, 60, N, N, N, "RFC 9213 2.2 unknown, of any kind" },
    { "max-age=60;foo=bar", 0, 60, N, N, N, "RFC 9213 2.1 parameters are ignored" },
    { "no-store;max-age=5, max-age=60;a;b=?0; c=\"x\"", NO_STORE, 60, N, N, N,
      "RFC 9213 2.1 parameters are ignored" },
    { "no-cache=\"a, b\"", NAMES_NO_CACHE, N, N, N, N, "RFC 9213 2.1 a string of names" },
    { "private=\"set-cookie\", max-age=5", NAMES_PRIVATE, 5, N, N, N, "RFC 9111 5.2.2.7" },
    { "no-cache=\"\"", NO_CACHE | MALFORMED, N, N, N, N, "RFC 9111 5.2.2.4 no name" },
    { "private=\"a\\\\b\"", PRIVATE | MALFORMED, N, N, N, N, "RFC 9111 5.2.2.7 no name" },
    { "private=\"a b\"", PRIVATE | MALFORMED, N, N, N, N, "RFC 9111 5.2.2.7 no name" },
    { "private=\"a\nb\"", PRIVATE | MALFORMED, N, N, N, N, "RFC 9651 4.2 over two lines" },
    { "max-stale=5, min-fresh=5, only-if-cached", 0, N, N, N, N, "RFC 9111 5.2.1 a request's" },
    /* the last one counts */
    { "max-age=1, max-age=9", 0, 9, N, N, N, "RFC 9651 4.2.2 the last" },
    { "max-age=9, max-age=1", 0, 1, N, N, N, "RFC 9651 4.2.2 the last" },
    { "max-age=9\nmax-age=1", 0, 1, N, N, N, "RFC 9651 4.2 of all lines" },
    { "no-store, no-store=?0, max-age=5", 0, 5, N, N, N, "RFC 9651 4.2.2 the last" },
    { "private=\"a\", private", PRIVATE, N, N, N, N, "RFC 9651 4.2.2 the last" },
    { "max-age=60\nno-store", NO_STORE, 60, N, N, N, "RFC 9651 4.2 lines are one" },
    /* values of the wrong kind permit nothing, and restrict all the same */
    { "max-age", MALFORMED, 0, N, N, N, "RFC 9213 2.1 a boolean" },
    { "max-age=?1", MALFORMED, 0, N, N, N, "RFC 9213 2.1 a boolean" },
    { "max-age=60.0", MALFORMED, 0, N, N, N, "RFC 9213 2.1 a decimal" },
    { "max-age=\"60\"", MALFORMED, 0, N, N, N, "RFC 9213 2.1 a string" },
    { "max-age=a60", MALFORMED, 0, N, N, N, "RFC 9213 2.1 a token" },
    { "max-age=-60", MALFORMED, 0, N, N, N, "RFC 9111 1.2.2 negative" },
    { "max-age=(60)", MALFORMED, 0, N, N, N, "RFC 9213 2.1 an inner list" },
    { "max-age=@60", MALFORMED, 0, N, N, N, "RFC 9213 2.1 a date" },
    { "max-age=:NjA=:", MALFORMED, 0, N, N, N, "RFC 9213 2.1 bytes" },
    { "max-age=%\"60\"", MALFORMED, 0, N, N, N, "RFC 9213 2.1 a display string" },
    { "s-maxage=x", MALFORMED, N, 0, N, N, "RFC 9213 2.1 a token" },
    { "stale-while-revalidate=x, stale-if-error", MALFORMED, N, N, 0, 0, "RFC 9213 2.1" },
    { "no-store=1", NO_STORE | MALFORMED, N, N, N, N, "RFC 9213 2.1 an integer" },
    { "must-revalidate=x", MUST_REVALIDATE | MALFORMED, N, N, N, N, "RFC 9213 2.1 a token" },
    { "private=a", PRIVATE | MALFORMED, N, N, N, N, "RFC 9213 2.1 a token" },
    { "no-cache=(\"a\")", NO_CACHE | MALFORMED, N, N, N, N, "RFC 9213 2.1 an inner list" },
    { "private=?0, no-cache=?0", 0, N, N, N, N, "RFC 9651 3.3.6 false" },
    { "public=1, immutable=x, must-understand=\"y\"", 0, N, N, N, N, "RFC 9213 2.1" },
    { "public=?0", 0, N, N, N, N, "RFC 9651 3.3.6 false" },
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
    for (size_t i = 0; i < ARRAY_COUNT(directives); i++) {
        struct row_headers h;
        struct cache_control c;
        enum control_source source;
        const char *field;
        char text[512];
        cache_control_read_response(
            row_headers(&h, as_fields(cdn[0], directives[i].value, text, sizeof text)), cdn, &c,
            &source, &field);
        ROW_CHECK(directives[i].value, source, CONTROL_FROM_TARGETED);
        ROW_CHECK(directives[i].value, flags_of(&c), directives[i].flags);
        ROW_CHECK(directives[i].value, c.max_age_s, directives[i].max_age);
        ROW_CHECK(directives[i].value, c.s_maxage_s, directives[i].s_maxage);
        ROW_CHECK(directives[i].value, c.stale_while_revalidate_s, directives[i].behind);
        ROW_CHECK(directives[i].value, c.stale_if_error_s, directives[i].error);
        ROW_CHECK(directives[i].value, c.max_stale_s, N);
        assert_non_null(directives[i].section);
    }
}

/* ---- structured fields: does it read as a dictionary? -------------------------------------------
 */

static const struct {
    const char *value;
    bool is_dictionary;
    const char *section; /* RFC 9651 */
} syntax[] = {
    { "a", true, "4.2.2" },
    { "a, b", true, "4.2.2" },
    { "a,b", true, "4.2.2 no space" },
    { "a \t,\t b", true, "4.2.2 white space at commas" },
    { "a,", false, "4.2.2 a comma at the end" },
    { ",a", false, "4.2.2 a comma in front" },
    { "a,,b", false, "4.2.2 two commas" },
    { "a b", false, "4.2.2 no comma" },
    { "a;b, c", true, "4.2.3.2 parameters" },
    { "a\nb", true, "4.2 two lines" },
    { "a\n\nb", false, "4.2 an empty line between" },
    { "\na", false, "4.2 an empty line in front" },
    { "a\n", false, "4.2 an empty line behind" },
    { "a,\nb", false, "4.2 a comma at the end of a line" },
    /* keys */
    { "*a", true, "4.2.3.3" },
    { "a0_-.*", true, "4.2.3.3" },
    { "A", false, "4.2.3.3 capitals" },
    { "Max-Age=1", false, "4.2.3.3 capitals" },
    { "maX-age=1", false, "4.2.3.3 capitals" },
    { "0a", false, "4.2.3.3 a digit in front" },
    { "-a", false, "4.2.3.3" },
    { "=1", false, "4.2.3.3 none" },
    { "a/b", false, "4.2.3.3" },
    { "\"a\"", false, "4.2.3.3 in quotes" },
    /* numbers */
    { "a=1", true, "4.2.4" },
    { "a=-1", true, "4.2.4" },
    { "a=+1", false, "4.2.4 sign" },
    { "a=--1", false, "4.2.4" },
    { "a=-", false, "4.2.4" },
    { "a=", false, "4.2.3.1 no value" },
    { "a =1", false, "4.2.2 space" },
    { "a= 1", false, "4.2.3.1 space" },
    { "a=1 ", true, "4.2 spaces at the end" },
    { "a=1 2", false, "4.2.2" },
    { "a=123456789012345", true, "4.2.4 fifteen digits" },
    { "a=1234567890123456", false, "4.2.4 sixteen digits" },
    { "a=-123456789012345", true, "4.2.4 fifteen digits" },
    { "a=1.5", true, "4.2.4" },
    { "a=-0.123", true, "4.2.4" },
    { "a=1.", false, "4.2.4" },
    { "a=.5", false, "4.2.4" },
    { "a=1.2345", false, "4.2.4 four digits behind" },
    { "a=123456789012.1", true, "4.2.4 twelve digits" },
    { "a=1234567890123.1", false, "4.2.4 thirteen digits" },
    { "a=1.2.3", false, "4.2.4" },
    { "a=1e3", false, "4.2.4" },
    { "a=1a", false, "4.2.2 a letter behind" },
    /* strings */
    { "a=\"\"", true, "4.2.5" },
    { "a=\"b c, d;e\"", true, "4.2.5" },
    { "a=\"\\\"\\\\\"", true, "4.2.5 escapes" },
    { "a=\"\\n\"", false, "4.2.5 no such escape" },
    { "a=\"b", false, "4.2.5 left open" },
    { "a=\"b\\\"", false, "4.2.5 left open" },
    { "a=\"b\\", false, "4.2.5 left open" },
    { "a=\"b\tc\"", false, "4.2.5 a tab" },
    { "a=\"\xc3\xbc\"", false, "4.2.5 not ASCII" },
    { "a=\"b\nc\"", true, "4.2 a comma is between the lines" },
    { "a='b'", false, "4.2.3.1" },
    /* tokens */
    { "a=b", true, "4.2.6" },
    { "a=*b", true, "4.2.6" },
    { "a=b/c:d%e", true, "4.2.6" },
    { "a=b=c", false, "4.2.6" },
    { "a=b\"c", false, "4.2.6" },
    { "a=&&&", false, "4.2.6 does not begin so" },
    /* bytes */
    { "a=::", true, "4.2.7" },
    { "a=:aGk=:", true, "4.2.7" },
    { "a=:aGk:", true, "4.2.7 padding may be missing" },
    { "a=:aGkx:", true, "4.2.7" },
    { "a=:aGkxx:", false, "4.2.7 too short" },
    { "a=:aG=k:", false, "4.2.7 padding within" },
    { "a=:a===:", false, "4.2.7 padding" },
    { "a=:aGkxxx=:", false, "4.2.7 padding" },
    { "a=:a Gk:", false, "4.2.7 space" },
    { "a=:aGk-:", false, "4.2.7 of another alphabet" },
    { "a=:aGk", false, "4.2.7 left open" },
    { "a=:aGk\naGk:", false, "4.2.7 over two lines" },
    /* booleans */
    { "a=?1, b=?0", true, "4.2.8" },
    { "a=?2", false, "4.2.8" },
    { "a=?", false, "4.2.8" },
    { "a=?true", false, "4.2.8" },
    { "a=?10", false, "4.2.8" },
    /* dates */
    { "a=@1659578233", true, "4.2.9" },
    { "a=@-1", true, "4.2.9" },
    { "a=@1.5", false, "4.2.9" },
    { "a=@", false, "4.2.9" },
    { "a=@\"1\"", false, "4.2.9" },
    /* display strings */
    { "a=%\"\"", true, "4.2.10" },
    { "a=%\"f%c3%bcr\"", true, "4.2.10" },
    { "a=%\"%e2%82%ac %f0%9f%98%80\"", true, "4.2.10" },
    { "a=%\"%C3%BC\"", false, "4.2.10 capitals" },
    { "a=%\"%c3\"", false, "4.2.10 cut" },
    { "a=%\"%c3x\"", false, "4.2.10 cut" },
    { "a=%\"%bc\"", false, "4.2.10 begins in the middle" },
    { "a=%\"%c0%80\"", false, "RFC 3629 3 longer than it must be" },
    { "a=%\"%e0%80%80\"", false, "RFC 3629 3 longer than it must be" },
    { "a=%\"%f0%80%80%80\"", false, "RFC 3629 3 longer than it must be" },
    { "a=%\"%ed%a0%80\"", false, "RFC 3629 3 a surrogate" },
    { "a=%\"%f4%90%80%80\"", false, "RFC 3629 3 beyond" },
    { "a=%\"%f5%80%80%80\"", false, "RFC 3629 3 beyond" },
    { "a=%\"%4\"", false, "4.2.10" },
    { "a=%\"%\"", false, "4.2.10" },
    { "a=%\"x", false, "4.2.10 left open" },
    { "a=%x", false, "4.2.10" },
    { "a=%\"\xc3\xbc\"", false, "4.2.10 not ASCII" },
    /* inner lists */
    { "a=()", true, "4.2.1.2" },
    { "a=( )", true, "4.2.1.2" },
    { "a=(1)", true, "4.2.1.2" },
    { "a=( 1  \"b\" c )", true, "4.2.1.2" },
    { "a=(1;x 2;y=3);z", true, "4.2.1.2" },
    { "a=(1\t2)", false, "4.2.1.2 a tab" },
    { "a=(1,2)", false, "4.2.1.2 a comma" },
    { "a=(\"b\"\"c\")", false, "4.2.1.2 no space" },
    { "a=(1", false, "4.2.1.2 left open" },
    { "a=(", false, "4.2.1.2 left open" },
    { "a=((1))", false, "4.2.1.2 lists in lists" },
    { "a=1)", false, "4.2.2" },
    { "a=(1\n2)", false, "4.2 a comma is between the lines" },
    /* parameters */
    { "a;b=1;c", true, "4.2.3.2" },
    { "a=1; b", true, "4.2.3.2 spaces behind the semicolon" },
    { "a=1 ;b", false, "4.2.3.2 a space before it" },
    { "a;\tb", false, "4.2.3.2 a tab" },
    { "a;", false, "4.2.3.2 no key" },
    { "a;B", false, "4.2.3.3 capitals" },
    { "a;b=(1)", false, "4.2.3.2 a list" },
    { "a;b=", false, "4.2.3.2 no value" },
    { "max-age=30; public", true, "4.2.3.2 a parameter: ignored" },
};

static void test_syntax(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(syntax); i++) {
        struct row_headers h;
        struct cache_control c;
        enum control_source source;
        const char *field;
        char text[512];
        cache_control_read_response(
            row_headers(&h, as_fields(cdn[0], syntax[i].value, text, sizeof text)), cdn, &c,
            &source, &field);
        ROW_CHECK(syntax[i].value, source == CONTROL_FROM_TARGETED, syntax[i].is_dictionary);
        assert_non_null(syntax[i].section);
    }
}

static const struct {
    const char *fields, *name;
    bool is_named;
} names[] = {
    { "CDN-Cache-Control: private=\"a\"", "A", true },
    { "CDN-Cache-Control: no-cache=\"x, a\"", "a", true },
    { "CDN-Cache-Control: max-age=5\nCDN-Cache-Control: private=\"a\"", "a", true },
    { "CDN-Cache-Control: private=\"a\"", "b", false },
    { "CDN-Cache-Control: private=a", "a", false },
    { "CDN-Cache-Control: private=\"a\", private=\"b\"", "a", false },
    { "CDN-Cache-Control: private=\"a\", x y", "a", false },
    { "CDN-Cache-Control: private=\"a vary\"", "a", false },
    { "Cache-Control: private=\"a\"", "a", false },
    { "", "a", false },
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        struct row_headers h;
        ROW_CHECK(
            names[i].fields,
            cache_targeted_names(row_headers(&h, names[i].fields), cdn[0], slice_of(names[i].name)),
            names[i].is_named);
    }
}

/* ---- Surrogate-Control --------------------------------------------------------------------------
 */

static const struct {
    const char *value;
    enum from source;
    unsigned flags;
    int32_t max_age, behind, error;
    const char *why;
} surrogates[] = {
    { "max-age=60", SURROGATE, 0, 60, N, N, "" },
    { "Max-Age=60", SURROGATE, 0, 60, N, N, "any case" },
    { "max-age=60+30", SURROGATE, 0, 60, 30, 30, "grace" },
    { "max-age=60+0", SURROGATE, 0, 60, 0, 0, "no grace" },
    { "max-age=60+", SURROGATE, MALFORMED, 60, 0, 0, "malformed grace: none" },
    { "max-age=60+x", SURROGATE, MALFORMED, 60, 0, 0, "malformed grace: none" },
    { "max-age=+30", SURROGATE, MALFORMED, 0, 30, 30, "malformed lifetime: 0" },
    { "max-age=60+30+10", SURROGATE, MALFORMED, 60, 0, 0, "malformed grace: none" },
    { "max-age=x", SURROGATE, MALFORMED, 0, N, N, "malformed" },
    { "max-age", SURROGATE, MALFORMED, 0, N, N, "malformed" },
    { "max-age = 60", SURROGATE, MALFORMED, 0, N, N, "malformed" },
    { "no-store", SURROGATE, NO_STORE, N, N, N, "" },
    { "no-store-remote", SURROGATE, NO_STORE, N, N, N, "where we are, nobody has said" },
    { "no-store, max-age=5", SURROGATE, NO_STORE, 5, N, N, "" },
    { "max-age=5\nno-store", SURROGATE, NO_STORE, 5, N, N, "two fields" },
    { "max-age=60, max-age=5", SURROGATE, 0, 5, N, N, "the most restrictive" },
    { "max-age=60, stale-while-revalidate=5, stale-if-error=6", SURROGATE, 0, 60, 5, 6,
      "as some write it" },
    { "private, max-age=5", SURROGATE, PRIVATE, 5, N, N, "as some write it" },
    { "private=\"a\"", SURROGATE, PRIVATE | MALFORMED, N, N, N, "no lists here" },
    { "content=\"ESI/1.0\"", NOTHING, 0, N, N, N, "not about storing" },
    { "content=\"ESI/1.0 no-store, max-age=1\"", NOTHING, 0, N, N, N, "text" },
    { "content=\"ESI/1.0\", max-age=60", SURROGATE, 0, 60, N, N, "" },
    { "foo, bar=1", NOTHING, 0, N, N, N, "unknown" },
    { "", NOTHING, 0, N, N, N, "empty" },
    /* targets */
    { "max-age=60;abc", NOTHING, 0, N, N, N, "for another" },
    { "no-store;abc, max-age=60", SURROGATE, 0, 60, N, N, "for another" },
    { "max-age=5, max-age=600; abc", SURROGATE, 0, 5, N, N, "for another" },
    { "content=\"a;b\";abc", NOTHING, 0, N, N, N, "for another" },
    { "max-age=30;no-store", SURROGATE, NO_STORE | MALFORMED, 0, N, N, "a semicolon for a comma" },
    { "max-age=30; private", SURROGATE, PRIVATE | MALFORMED, 0, N, N, "a semicolon for a comma" },
    { "no-store;max-age=5", SURROGATE, NO_STORE | MALFORMED, 0, N, N, "a semicolon for a comma" },
    { "max-age=30;", SURROGATE, MALFORMED, 0, N, N, "nothing behind it" },
    { "max-age=\"30", SURROGATE, MALFORMED, 0, N, N, "left open" },
};

static void test_surrogate(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(surrogates); i++) {
        struct row_headers h;
        struct cache_control c;
        enum control_source source;
        const char *field;
        char text[512];
        cache_control_read_response(
            row_headers(&h, as_fields("Surrogate-Control", surrogates[i].value, text, sizeof text)),
            cdn, &c, &source, &field);
        ROW_CHECK(surrogates[i].value, source, (int)surrogates[i].source);
        ROW_CHECK(surrogates[i].value, flags_of(&c), surrogates[i].flags);
        ROW_CHECK(surrogates[i].value, c.max_age_s, surrogates[i].max_age);
        ROW_CHECK(surrogates[i].value, c.stale_while_revalidate_s, surrogates[i].behind);
        ROW_CHECK(surrogates[i].value, c.stale_if_error_s, surrogates[i].error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_field_counts),
        cmocka_unit_test(test_directives),
        cmocka_unit_test(test_syntax),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_surrogate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
