/* tests/unit/cache/test_tags.c: what an answer is tagged with, as rows: the fields of habit, and
 * the groups of RFC 9875, whose list is read to the letter of RFC 9651. */
#include "tests/unit/cache/decide_rows.h"

#include <stdlib.h>

/* Tags with '|' behind each, and '!' for what marks groups. */
static const char *tags_text(struct slice tags, char *out, size_t capacity)
{
    assert_true(tags.len < capacity);
    for (size_t i = 0; i < tags.len; i++)
        out[i] = tags.ptr[i] == '\0' ? '|' : tags.ptr[i] == '\1' ? '!' : tags.ptr[i];
    out[tags.len] = '\0';
    return out;
}

static void check_tags(size_t i, const char *fields, const char *why, struct slice tags,
                       const char *expected)
{
    char text[512];
    if (strcmp(tags_text(tags, text, sizeof text), expected) != 0)
        fail_msg("row %zu \"%s\" (%s): %s, not %s", i, fields, why, text, expected);
}

static const struct {
    const char *fields, *tags, *why;
} rows[] = {
    { "", "", "none" },
    { "Content-Type: text/html\nVary: Cookie", "", "none" },
    { "Cache-Tag: a", "a|", "one" },
    { "Cache-Tag: a,b, c ,d", "a|b|c|d|", "commas" },
    { "Cache-Tag: a b, c", "a b|c|", "a space is part of it" },
    { "Cache-Tag: ,,a,,", "a|", "nothing is none" },
    { "Cache-Tag: , \t ,", "", "white space is none" },
    { "Cache-Tag:", "", "empty" },
    { "Cache-Tag: a\nCache-Tag: b", "a|b|", "several fields" },
    { "cache-tag: a\nCACHE-TAG: b", "a|b|", "any case of the name" },
    { "Cache-Tag: a,b,a\nCache-Tag: b,A", "a|b|A|", "each once, case and all" },
    { "Cache-Tag: \"a, b\", c", "\"a|b\"|c|", "no quoting" },
    { "Cache-Tag: \xc3\xa4,post-1:2/3?4", "\xc3\xa4|post-1:2/3?4|", "any other byte" },
    { "Cache-Tag: a\x01, \x01h\x01g, b", "b|", "control bytes: none can be a group's" },
    { "Cache-Tag: a\x7f, b\tc, d", "d|", "control bytes" },
    { "Surrogate-Key: a b  c\td", "a|b|c|d|", "words" },
    { "Surrogate-Key: a,b c", "a,b|c|", "a comma is part of it" },
    { "surrogate-key:  a ", "a|", "white space at the ends" },
    { "xkey: a b, c,d\te , ,", "a|b|c|d|e|", "both" },
    { "XKey: a\nxkey: b", "a|b|", "several fields" },
    { "Surrogate-Key: a b\nCache-Tag: b, c\nxkey: c d", "a|b|c|d|", "all of them, each once" },
    { "Cache-Tags: a\nX-Cache-Tag: b\nSurrogate-Keys: c\nSurrogate-Control: d\nxkeys: e", "",
      "other fields" },
    /* RFC 9875 */
    { "Cache-Groups: \"a\"", "!h:81!a|", "RFC 9875 2" },
    { "Cache-Groups: \"a\", \"b\"", "!h:81!a|!h:81!b|", "RFC 9875 2" },
    { "cache-groups: \"a\",\"b\"", "!h:81!a|!h:81!b|", "RFC 9651 4.2.1 no white space" },
    { "Cache-Groups: \"a\"\nCache-Groups: \"b\"", "!h:81!a|!h:81!b|", "RFC 9651 4.2 lines" },
    { "Cache-Groups: \"a\" \t,\t \"b\"", "!h:81!a|!h:81!b|", "RFC 9651 4.2.1 OWS" },
    { "Cache-Groups: \"a\", \"a\", \"A\"", "!h:81!a|!h:81!A|", "RFC 9875 2.1 case and all" },
    { "Cache-Groups: \"a b, c\"", "!h:81!a b, c|", "RFC 9651 3.3.3" },
    { "Cache-Groups: \"\"", "!h:81!|", "RFC 9651 3.3.3 an empty one is one" },
    { "Cache-Groups: \"\\\"a\\\\\"", "!h:81!\"a\\|", "RFC 9651 4.2.5 escapes" },
    { "Cache-Groups: \"a\";x, \"b\";y=1;z=\"q,\\\"\"", "!h:81!a|!h:81!b|",
      "RFC 9875 2 parameters mean nothing" },
    { "Cache-Groups: \"a\"; x=?1; *y-_.*=-1.5;k=:YQ==:;t=*/a;d=@1659578233;s=%\"f%c3\"", "!h:81!a|",
      "RFC 9651 4.2.3.1 every type of parameter" },
    { "Cache-Tag: a\nCache-Groups: \"a\"", "a|!h:81!a|", "a group is not a tag" },
    { "Cache-Groups: \"a\"\nCache-Tag: !h:81!a", "!h:81!a|!h:81!a|", "nor is any tag a group" },
    /* does not read: as if absent, all of it */
    { "Cache-Groups: a", "", "RFC 9651 4.2: a token" },
    { "Cache-Groups: 1", "", "a number" },
    { "Cache-Groups: ?1", "", "a boolean" },
    { "Cache-Groups: :YQ==:", "", "bytes" },
    { "Cache-Groups: (\"a\")", "", "an inner list" },
    { "Cache-Groups: \"a\", b", "", "one of two" },
    { "Cache-Groups: \"a\",", "", "RFC 9651 4.2.1: a comma at the end" },
    { "Cache-Groups: ,\"a\"", "", "a comma at the beginning" },
    { "Cache-Groups: \"a\",,\"b\"", "", "two commas" },
    { "Cache-Groups: \"a\" \"b\"", "", "no comma" },
    { "Cache-Groups: \"a\" ;x", "", "RFC 9651 4.2.3.2: no space before a parameter" },
    { "Cache-Groups: \"a", "", "no end" },
    { "Cache-Groups: \"a\\", "", "RFC 9651 4.2.5" },
    { "Cache-Groups: \"a\\b\"", "", "RFC 9651 4.2.5: no such escape" },
    { "Cache-Groups: \"a\tb\"", "", "RFC 9651 4.2.5: a tab" },
    { "Cache-Groups: \"\xc3\xa4\"", "", "RFC 9651 4.2.5: ASCII alone" },
    { "Cache-Groups: 'a'", "", "other quotes" },
    { "Cache-Groups: \"a\";", "", "RFC 9651 4.2.3.3: a key" },
    { "Cache-Groups: \"a\";X", "", "RFC 9651 4.2.3.3: in lower case" },
    { "Cache-Groups: \"a\";xY", "", "RFC 9651 4.2.3.3: in lower case" },
    { "Cache-Groups: \"a\";x=", "", "RFC 9651 4.2.3.1" },
    { "Cache-Groups: \"a\";x=\"b", "", "RFC 9651 4.2.5" },
    { "Cache-Groups: \"a\";x=1.", "", "RFC 9651 4.2.4" },
    { "Cache-Groups: \"a\";x=1.2345", "", "RFC 9651 4.2.4" },
    { "Cache-Groups: \"a\";x=-", "", "RFC 9651 4.2.4" },
    { "Cache-Groups: \"a\";x=1234567890123456", "", "RFC 9651 4.2.4" },
    { "Cache-Groups: \"a\";x=1234567890123.1", "", "RFC 9651 4.2.4" },
    { "Cache-Groups: \"a\";x=?2", "", "RFC 9651 4.2.8" },
    { "Cache-Groups: \"a\";x=:YQ==", "", "RFC 9651 4.2.7" },
    { "Cache-Groups: \"a\";x=:Y!:", "", "RFC 9651 4.2.7" },
    { "Cache-Groups: \"a\";x=@1.5", "", "RFC 9651 4.2.9" },
    { "Cache-Groups: \"a\";x=%f", "", "RFC 9651 4.2.10" },
    { "Cache-Groups: \"a\";x=%\"%C3\"", "", "RFC 9651 4.2.10" },
    { "Cache-Groups: \"a\";x=%\"%c\"", "", "RFC 9651 4.2.10" },
    { "Cache-Groups: \"a\";x=%\"a", "", "RFC 9651 4.2.10" },
    { "Cache-Groups: \"a\";x=(1)", "", "RFC 9651 4.2.3.1" },
    { "Cache-Groups: \"a\"\nCache-Groups: b", "", "RFC 9651 4.2: all lines are one" },
    { "Cache-Groups: b\nCache-Groups: \"a\"", "", "RFC 9651 4.2: all lines are one" },
    { "Cache-Groups: \"a\"\nCache-Groups:", "", "RFC 9651 4.2: a comma at the end" },
    { "Cache-Groups:\nCache-Groups: \"a\"", "", "RFC 9651 4.2: a comma at the beginning" },
    { "Cache-Groups:", "", "an empty list is one" },
    { "Cache-Tag: a\nCache-Groups: b", "a|", "the others are not touched" },
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct row_headers h;
        struct arena a;
        arena_init(&a);
        unsigned left_out;
        struct slice tags = cache_tags_make_counted(&a, row_headers(&h, rows[i].fields),
                                                    SLICE("h:81"), SLICE_NONE, &left_out);
        check_tags(i, rows[i].fields, rows[i].why, tags, rows[i].tags);
        assert_int_equal(left_out, 0);
        arena_fini(&a);
    }
}

/* The same list in the other field, and nothing else in it. */
static void test_invalidated(void **state)
{
    (void)state;
    static const struct {
        const char *fields, *tags;
    } cases[] = {
        { "Cache-Group-Invalidation: \"a\", \"b\";x", "!h!a|!h!b|" },
        { "Cache-Group-Invalidation: \"a\"\nCache-Group-Invalidation: c", "" },
        { "Cache-Groups: \"a\"\nCache-Tag: b\nSurrogate-Key: c\nxkey: d", "" },
        { "Cache-Groups-Invalidation: \"a\"", "" },
        { "", "" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct row_headers h;
        struct arena a;
        arena_init(&a);
        struct slice tags =
            cache_groups_invalidated(&a, row_headers(&h, cases[i].fields), SLICE("h"));
        check_tags(i, cases[i].fields, "RFC 9875 3", tags, cases[i].tags);
        arena_fini(&a);
    }
}

static void test_more(void **state)
{
    (void)state;
    struct row_headers h;
    struct arena a;
    arena_init(&a);
    struct slice more = SLICE("rule\0b\0rule\0\1h\1g\0\0last");
    struct slice tags =
        cache_tags_make(&a, row_headers(&h, "Cache-Tag: a, b, rule"), SLICE(""), more);
    check_tags(0, "", "the rules' first; no group among them", tags, "rule|b|last|a|");
    tags = cache_tags_make(&a, row_headers(&h, ""), SLICE(""), SLICE("x\0"));
    check_tags(1, "", "the rules' alone", tags, "x|");
    tags = cache_tags_make(&a, row_headers(&h, "Cache-Groups: \"g\""), SLICE(""), SLICE_NONE);
    check_tags(2, "", "HTTP/1.0 without Host", tags, "!!g|");
    arena_fini(&a);
}

static unsigned count_tags(struct slice tags)
{
    struct slice tag;
    unsigned count = 0;
    while (cache_tags_next(&tags, &tag))
        count++;
    return count;
}

static void test_bounds(void **state)
{
    (void)state;
    enum { MANY = 400, LONG = 1000 };
    char *value = malloc((size_t)MANY * (LONG + 8) + 1);
    struct header storage[2];
    struct headers h;
    struct arena a;
    unsigned left_out;
    arena_init(&a);

    size_t len = 0;
    for (int i = 0; i < MANY; i++)
        len += (size_t)sprintf(value + len, "t%d,", i);
    headers_init(&h, storage, 2);
    assert_true(headers_add(&h, SLICE("Cache-Tag"), (struct slice){ value, len }));
    assert_true(headers_add(&h, SLICE("xkey"), SLICE("t0 t399 t255 t256")));
    struct slice tags = cache_tags_make_counted(&a, &h, SLICE("h"), SLICE_NONE, &left_out);
    assert_int_equal(count_tags(tags), TAGS_MAX);
    assert_int_equal(left_out, MANY - TAGS_MAX + 2); /* the known ones among them are no loss */

    len = 0;
    for (int i = 0; i < MANY; i++)
        len += (size_t)sprintf(value + len, "%0*d,", LONG, i);
    headers_init(&h, storage, 2);
    assert_true(headers_add(&h, SLICE("Cache-Tag"), (struct slice){ value, len }));
    assert_true(headers_add(&h, SLICE("xkey"), SLICE("short")));
    tags = cache_tags_make_counted(&a, &h, SLICE("h"), SLICE_NONE, &left_out);
    assert_true(tags.len <= TAGS_BYTES_MAX);
    assert_int_equal(count_tags(tags),
                     TAGS_BYTES_MAX / (LONG + 1) + 1); /* a short one still fits */
    assert_int_equal(left_out, MANY - TAGS_BYTES_MAX / (LONG + 1));

    /* one that fills all of it, and one that would be a byte more */
    memset(value, 'x', TAGS_BYTES_MAX);
    for (size_t size = TAGS_BYTES_MAX - 1; size <= TAGS_BYTES_MAX; size++) {
        headers_init(&h, storage, 2);
        assert_true(headers_add(&h, SLICE("xkey"), (struct slice){ value, size }));
        tags = cache_tags_make_counted(&a, &h, SLICE("h"), SLICE_NONE, &left_out);
        assert_int_equal(tags.len, size < TAGS_BYTES_MAX ? TAGS_BYTES_MAX : 0);
        assert_int_equal(left_out, size < TAGS_BYTES_MAX ? 0 : 1);
    }

    /* RFC 9875 2: at least 32 groups of 32 characters */
    len = 0;
    for (int i = 0; i < 32; i++)
        len += (size_t)sprintf(value + len, "%s\"%032d\"", i == 0 ? "" : ", ", i);
    headers_init(&h, storage, 2);
    assert_true(headers_add(&h, SLICE("Cache-Groups"), (struct slice){ value, len }));
    tags = cache_tags_make_counted(&a, &h, SLICE("www.example.com"), SLICE_NONE, &left_out);
    assert_int_equal(count_tags(tags), 32);
    assert_int_equal(left_out, 0);
    arena_fini(&a);
    free(value);
}

/* One that begins another is not that one, wherever the two are kept. */
static void test_prefixes(void **state)
{
    (void)state;
    enum { LONGEST = 170 }; /* all of them fit TAGS_BYTES_MAX */
    char value[LONGEST * (LONGEST + 3) / 2 + 1];
    size_t len = 0;
    for (int length = LONGEST; length > 0; length--) {
        for (int i = 0; i < length; i++)
            value[len + (size_t)i] = (char)('a' + i * (i + 7) % 26);
        value[len + (size_t)length] = ' ';
        len += (size_t)length + 1;
    }
    struct header storage[1];
    struct headers h;
    struct arena a;
    headers_init(&h, storage, 1);
    assert_true(headers_add(&h, SLICE("xkey"), (struct slice){ value, len }));
    arena_init(&a);
    assert_int_equal(count_tags(cache_tags_make(&a, &h, SLICE("h"), SLICE_NONE)), LONGEST);
    arena_fini(&a);
}

static void test_nothing_costs_nothing(void **state)
{
    (void)state;
    struct row_headers h;
    struct arena a;
    arena_init(&a);
    struct slice tags =
        cache_tags_make(&a, row_headers(&h, "Cache-Control: max-age=60"), SLICE("h"), SLICE_NONE);
    assert_null(tags.ptr);
    assert_int_equal(a.used_bytes, 0);
    arena_fini(&a);
}

static void test_next(void **state)
{
    (void)state;
    struct slice rest = SLICE("\0a\0\0bc\0d"), tag;
    static const char *const expected[] = { "a", "bc", "d" };
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++) {
        assert_true(cache_tags_next(&rest, &tag));
        assert_true(slice_equal(tag, slice_of(expected[i])));
    }
    assert_false(cache_tags_next(&rest, &tag));
    assert_false(cache_tags_next(&rest, &tag));
}

static void test_fields(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is;
    } cases[] = { { "Cache-Tag", true },      { "cache-tag", true },
                  { "Surrogate-Key", true },  { "XKEY", true },
                  { "Cache-Groups", false },  { "Cache-Group-Invalidation", false },
                  { "Cache-Tags", false },    { "Cache-Control", false },
                  { "Surrogate-Kez", false }, { "", false } };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        ROW_CHECK(cases[i].name, cache_is_tag_field(slice_of(cases[i].name)), cases[i].is);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),   cmocka_unit_test(test_invalidated),
        cmocka_unit_test(test_more),   cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_next),   cmocka_unit_test(test_nothing_costs_nothing),
        cmocka_unit_test(test_fields), cmocka_unit_test(test_prefixes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
