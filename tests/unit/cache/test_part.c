/* tests/unit/cache/test_part.c: Content-Range, parts that make a whole, and what a Range asks for,
 * as rows (RFC 9110 14.1.2, 14.4, 15.3.7.3; RFC 9111 3.4). */
#include "tests/unit/cache/decide_rows.h"

#include <inttypes.h>

/* "first-last/complete", or "-" */
static const char *range_text(bool is, const struct content_range *r, char out[64])
{
    if (!is)
        strcpy(out, "-");
    else if (r->complete < 0)
        snprintf(out, 64, "%" PRIu64 "-%" PRIu64 "/*", r->first, r->last);
    else
        snprintf(out, 64, "%" PRIu64 "-%" PRIu64 "/%" PRId64, r->first, r->last, r->complete);
    return out;
}

static void check_text(const char *row, const char *why, const char *got, const char *expected)
{
    if (strcmp(got, expected) != 0)
        fail_msg("\"%s\" (%s): %s, not %s", row, why, got, expected);
}

/* ---- Content-Range ------------------------------------------------------------------------------
 */

static const struct {
    const char *fields, *range, *section;
} content_ranges[] = {
    { "Content-Range: bytes 0-499/1234", "0-499/1234", "14.4" },
    { "Content-Range: bytes 734-1233/1234", "734-1233/1234", "14.4 the last" },
    { "Content-Range: bytes 42-1233/*", "42-1233/*", "14.4 unknown length" },
    { "Content-Range: bytes 0-0/1", "0-0/1", "14.4" },
    { "Content-Range: BYTES 0-0/1", "0-0/1", "14.1 any case" },
    { "Content-Range:   bytes 00-01/002", "0-1/2", "14.4 digits" },
    { "content-range: bytes 0-9223372036854775805/9223372036854775806",
      "0-9223372036854775805/9223372036854775806", "17.5 the longest" },
    /* not consistent: never to be recombined */
    { "Content-Range: bytes 5-4/10", "-", "14.4 last before first" },
    { "Content-Range: bytes 0-10/10", "-", "14.4 last at the length" },
    { "Content-Range: bytes 10-19/10", "-", "14.4 beyond the length" },
    { "Content-Range: bytes 0-0/0", "-", "14.4 of nothing" },
    { "Content-Range: bytes 0-9223372036854775807/*", "-", "17.5 beyond what a length can be" },
    { "Content-Range: bytes 0-18446744073709551616/*", "-", "17.5 beyond 64 bits" },
    { "Content-Range: bytes 18446744073709551616-18446744073709551617/*", "-", "17.5" },
    { "Content-Range: bytes 0-1/99999999999999999999", "-", "17.5" },
    /* no part */
    { "Content-Range: bytes */1234", "-", "14.4 unsatisfied" },
    { "Content-Range: bytes */*", "-", "14.4" },
    { "Content-Range: items 0-1/2", "-", "14.4 another unit" },
    { "Content-Range: bytess 0-1/2", "-", "14.4 another unit" },
    { "", "-", "absent" },
    { "Content-Range:", "-", "14.4 empty" },
    { "Content-Range: bytes", "-", "14.4" },
    { "Content-Range: bytes 0-1/2\nContent-Range: bytes 0-1/2", "-", "5.3 repeated" },
    { "Content-Range: bytes 0-1/2, bytes 0-1/2", "-", "5.3 repeated" },
    { "Content-Range: bytes 0-1/2;", "-", "14.4" },
    { "Content-Range: bytes 0-1", "-", "14.4 no length" },
    { "Content-Range: bytes 0-1/", "-", "14.4 no length" },
    { "Content-Range: bytes 0-1/x", "-", "14.4" },
    { "Content-Range: bytes 0-1/**", "-", "14.4" },
    { "Content-Range: bytes 0-1/2x", "-", "14.4" },
    { "Content-Range: bytes -1/2", "-", "14.4" },
    { "Content-Range: bytes 0-/2", "-", "14.4" },
    { "Content-Range: bytes 0/2", "-", "14.4" },
    { "Content-Range: bytes +0-1/2", "-", "14.4" },
    { "Content-Range: bytes 0 - 1/2", "-", "14.4" },
    { "Content-Range: bytes 0-1 /2", "-", "14.4" },
    { "Content-Range: bytes  0-1/2", "-", "14.4 one space" },
    { "Content-Range: bytes\t0-1/2", "-", "14.4 one space" },
    { "Content-Range: bytes=0-1/2", "-", "14.4" },
    { "Content-Range: bytes: 0-1/2", "-", "14.4" },
    { "Content-Range: 0-1/2", "-", "14.4 no unit" },
};

static void test_content_range(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(content_ranges); i++) {
        struct row_headers h;
        struct content_range r = { 7, 7, 7 };
        char text[64];
        bool is = cache_content_range_read(row_headers(&h, content_ranges[i].fields), &r);
        check_text(content_ranges[i].fields, content_ranges[i].section, range_text(is, &r, text),
                   content_ranges[i].range);
        assert_true(is || (r.first == 7 && r.last == 7 && r.complete == 7));
    }
}

/* ---- joining ------------------------------------------------------------------------------------
 */

static const struct {
    struct content_range a, b;
    const char *joined, *why;
} joins[] = {
    { { 0, 4, 10 }, { 5, 9, 10 }, "0-9/10", "RFC 9111 3.4 side by side: the whole" },
    { { 0, 4, 10 }, { 3, 9, 10 }, "0-9/10", "overlapping" },
    { { 0, 9, 10 }, { 3, 4, 10 }, "0-9/10", "one within another" },
    { { 2, 4, 10 }, { 2, 4, 10 }, "2-4/10", "the same" },
    { { 2, 4, 10 }, { 4, 4, 10 }, "2-4/10", "one byte" },
    { { 0, 0, 3 }, { 1, 1, 3 }, "0-1/3", "single bytes" },
    { { 0, 4, 10 }, { 6, 9, 10 }, "-", "a gap of one" },
    { { 0, 0, 10 }, { 9, 9, 10 }, "-", "a gap" },
    { { 0, 4, 10 }, { 5, 9, 11 }, "-", "the lengths differ" },
    { { 0, 4, 10 }, { 0, 4, 11 }, "-", "the lengths differ" },
    { { 0, 4, -1 }, { 5, 9, -1 }, "0-9/*", "nobody knows the length" },
    { { 0, 4, -1 }, { 5, 9, 10 }, "0-9/10", "one of them knows it" },
    { { 0, 9, -1 }, { 5, 6, 8 }, "-", "one goes beyond what the other knows" },
    { { 0, INT64_MAX - 1, -1 }, { 1, 1, -1 }, "0-9223372036854775806/*", "the longest" },
};

static void test_join(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(joins); i++) {
        struct content_range r;
        char text[64];
        bool is = cache_parts_join(&joins[i].a, &joins[i].b, &r);
        check_text("a+b", joins[i].why, range_text(is, &r, text), joins[i].joined);
        is = cache_parts_join(&joins[i].b, &joins[i].a, &r);
        check_text("b+a", joins[i].why, range_text(is, &r, text), joins[i].joined);
    }
}

/* The result may be written over one of the two. */
static void test_join_in_place(void **state)
{
    (void)state;
    struct content_range whole = { 0, 4, 10 }, next = { 5, 9, -1 };
    assert_true(cache_parts_join(&whole, &next, &whole));
    assert_int_equal(whole.last, 9);
    assert_int_equal(whole.complete, 10);
}

/* ---- the same representation --------------------------------------------------------------------
 */

#define D_9        "Sun, 15 Jun 2025 09:00:00 GMT"
#define D_9_AND_1S "Sun, 15 Jun 2025 09:00:01 GMT"
#define D_10       "Sun, 15 Jun 2025 10:00:00 GMT"
enum { NOW = 1750000000 };

static const struct {
    const char *a, *b;
    bool equal;
    const char *section;
} validators[] = {
    { "ETag: \"a\"", "ETag: \"a\"", true, "8.8.3.2" },
    { "ETag: \"\"", "ETag: \"\"", true, "8.8.3 an empty one is one" },
    { "ETag: \"a\"", "ETag: \"b\"", false, "8.8.3.2" },
    { "ETag: \"a\"", "ETag: \"A\"", false, "8.8.3.2 case" },
    { "ETag: W/\"a\"", "ETag: W/\"a\"", false, "8.8.3.2 weak" },
    { "ETag: \"a\"", "ETag: W/\"a\"", false, "8.8.3.2 one is weak" },
    { "ETag: \"a\"", "", false, "15.3.7.3 one has none" },
    { "", "", false, "15.3.7.3 none at all" },
    { "Last-Modified: " D_9 "\nDate: " D_10, "Last-Modified: " D_9 "\nDate: " D_9_AND_1S, true,
      "8.8.2.2 a second after" },
    { "Last-Modified: " D_9 "\nDate: " D_10, "Last-Modified: " D_9 "\nDate: " D_9, false,
      "8.8.2.2 the same second" },
    { "Last-Modified: " D_9 "\nDate: " D_10, "Last-Modified: " D_9, false, "8.8.2.2 no Date" },
    { "Last-Modified: " D_9 "\nDate: " D_10, "Last-Modified: " D_9_AND_1S "\nDate: " D_10, false,
      "8.8.2 another date" },
    { "Last-Modified: " D_10 "\nDate: " D_9, "Last-Modified: " D_10 "\nDate: " D_9, false,
      "8.8.2.2 changed after it was sent" },
    { "ETag: \"a\"\nLast-Modified: " D_9 "\nDate: " D_10,
      "ETag: \"b\"\nLast-Modified: " D_9 "\nDate: " D_10, false, "8.8.3 the tag comes first" },
    { "ETag: W/\"a\"\nLast-Modified: " D_9 "\nDate: " D_10,
      "ETag: W/\"a\"\nLast-Modified: " D_9 "\nDate: " D_10, false,
      "8.8.1 what says that it is weak is taken at its word" },
    { "ETag: \"a\"\nLast-Modified: " D_9 "\nDate: " D_10, "Last-Modified: " D_9 "\nDate: " D_10,
      false, "15.3.7.3 one has a tag" },
    { "ETag: \"a\"\nLast-Modified: " D_9, "ETag: \"a\"\nLast-Modified: " D_10, true,
      "8.8.3 the tag comes first" },
};

static void test_validators(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(validators); i++) {
        struct row_headers first, second;
        struct validators a, b;
        cache_validators_read(row_headers(&first, validators[i].a), NOW, &a);
        cache_validators_read(row_headers(&second, validators[i].b), NOW, &b);
        ROW_CHECK(validators[i].section, cache_validators_strongly_equal(&a, &b),
                  validators[i].equal);
        ROW_CHECK(validators[i].section, cache_validators_strongly_equal(&b, &a),
                  validators[i].equal);
    }
}

/* ---- what a request asks for --------------------------------------------------------------------
 */

static const struct {
    const char *fields;
    int64_t complete;
    const char *range, *section;
} asked[] = {
    { "Range: bytes=0-499", 1000, "0-499/1000", "14.1.2" },
    { "Range: bytes=0-", 1000, "0-999/1000", "14.1.2 open" },
    { "Range: bytes=999-", 1000, "999-999/1000", "14.1.2 open" },
    { "Range: bytes=500-2000", 1000, "500-999/1000", "14.1.2 clamped" },
    { "Range: bytes=500-99999999999999999999", 1000, "500-999/1000", "17.5 beyond 64 bits" },
    { "Range: bytes=-5", 10, "5-9/10", "14.1.2 suffix" },
    { "Range: bytes=-10", 10, "0-9/10", "14.1.2 suffix" },
    { "Range: bytes=-500", 10, "0-9/10", "14.1.2 longer than all" },
    { "Range: bytes=-99999999999999999999", 10, "0-9/10", "17.5 beyond 64 bits" },
    { "Range: Bytes=2-3", 10, "2-3/10", "14.1 any case" },
    { "Range: bytes= 2-3 ,", 10, "2-3/10", "5.6.1 empty elements" },
    /* the length is not known */
    { "Range: bytes=2-3", -1, "2-3/*", "as asked" },
    { "Range: bytes=0-99999999999999999999", -1, "0-9223372036854775806/*", "more than any has" },
    { "Range: bytes=2-", -1, "-", "to an end that nobody knows" },
    { "Range: bytes=-5", -1, "-", "from an end that nobody knows" },
    /* not one */
    { "", 10, "-", "none" },
    { "Range: bytes=0-1, 3-4", 10, "-", "several" },
    { "Range: bytes=0-1, 0-1", 10, "-", "several" },
    { "Range: bytes=0-1, 100-", 10, "-", "several" },
    { "Range: bytes=0-1\nRange: bytes=0-1", 10, "-", "5.3 repeated" },
    { "Range: items=0-1", 10, "-", "14.2 another unit" },
    { "Range: bytes 0-1", 10, "-", "14.1.1" },
    { "Range: bytes=", 10, "-", "14.1.1" },
    { "Range: bytes", 10, "-", "14.1.1" },
    { "Range:", 10, "-", "14.1.1" },
    /* unsatisfiable */
    { "Range: bytes=10-", 10, "-", "14.1.2" },
    { "Range: bytes=10-10", 10, "-", "14.1.2" },
    { "Range: bytes=99999999999999999999-", 10, "-", "17.5" },
    { "Range: bytes=-0", 10, "-", "14.1.2 suffix of none" },
    { "Range: bytes=0-", 0, "-", "14.2 of nothing" },
    { "Range: bytes=-1", 0, "-", "14.2 of nothing" },
    /* invalid */
    { "Range: bytes=5-4", 10, "-", "14.1.1 last before first" },
    { "Range: bytes=-", 10, "-", "14.1.1" },
    { "Range: bytes=1", 10, "-", "14.1.1" },
    { "Range: bytes=--1", 10, "-", "14.1.1" },
    { "Range: bytes=-1x", 10, "-", "14.1.1" },
    { "Range: bytes=0-1x", 10, "-", "14.1.1" },
    { "Range: bytes=a-b", 10, "-", "14.1.1" },
    { "Range: bytes=0 -1", 10, "-", "14.1.1" },
    { "Range: bytes=0-1-2", 10, "-", "14.1.1" },
};

static void test_asked(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(asked); i++) {
        struct row_headers h;
        struct content_range r = { 7, 7, 7 };
        char text[64];
        bool is = cache_range_of(row_headers(&h, asked[i].fields), asked[i].complete, &r);
        check_text(asked[i].fields, asked[i].section, range_text(is, &r, text), asked[i].range);
        assert_true(is || (r.first == 7 && r.last == 7 && r.complete == 7));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_content_range), cmocka_unit_test(test_join),
        cmocka_unit_test(test_join_in_place), cmocka_unit_test(test_validators),
        cmocka_unit_test(test_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
