/* tests/unit/cache/test_range.c: Range and If-Range against a stored response, as rows (RFC 9110
 * 14, 13.1.5). */
#include "tests/unit/cache/decide_rows.h"

enum { NOW = 1750000000, WHOLE = -1, UNSATISFIABLE = 0 };
#define D_9        "Sun, 15 Jun 2025 09:00:00 GMT"
#define D_9_AND_1S "Sun, 15 Jun 2025 09:00:01 GMT"
#define D_10       "Sun, 15 Jun 2025 10:00:00 GMT"

static const struct {
    uint64_t length;
    const char *range; /* without the field's name; a line break: another field */
    int verdict;       /* WHOLE, UNSATISFIABLE, or how many parts */
    const char *parts; /* "first-last" of each */
    const char *section;
} rows[] = {
    { 100, "bytes=0-0", 1, "0-0", "14.1.2" },
    { 100, "bytes=0-49", 1, "0-49", "14.1.2" },
    { 100, "bytes=50-99", 1, "50-99", "14.1.2" },
    { 100, "bytes=99-99", 1, "99-99", "14.1.2" },
    { 100, "bytes=0-99", 1, "0-99", "14.1.2 all of it" },
    { 100, "bytes=0-", 1, "0-99", "14.1.2 open" },
    { 100, "bytes=50-", 1, "50-99", "14.1.2 open" },
    { 100, "bytes=99-", 1, "99-99", "14.1.2 open" },
    { 100, "bytes=50-1000", 1, "50-99", "14.1.2 clamped" },
    { 100, "bytes=0-18446744073709551615", 1, "0-99", "14.1.2 clamped" },
    { 100, "bytes=0-99999999999999999999999", 1, "0-99", "17.5 beyond 64 bits" },
    { 100, "bytes=-1", 1, "99-99", "14.1.2 suffix" },
    { 100, "bytes=-100", 1, "0-99", "14.1.2 suffix" },
    { 100, "bytes=-101", 1, "0-99", "14.1.2 longer than all" },
    { 100, "bytes=-99999999999999999999999", 1, "0-99", "17.5 beyond 64 bits" },
    { 1, "bytes=0-", 1, "0-0", "14.1.2" },
    { 1, "bytes=-5", 1, "0-0", "14.1.2" },
    { UINT64_MAX, "bytes=-1", 1, "18446744073709551614-18446744073709551614", "17.5" },
    { 100, "BYTES=0-1", 1, "0-1", "14.1 any case" },
    { 100, "Bytes=0-1", 1, "0-1", "14.1 any case" },
    { 100, "bytes=00-01", 1, "0-1", "14.1.1 digits" },
    { 100, "bytes= 0-1", 1, "0-1", "14.1.2 white space in the list" },
    { 100, "bytes=0-1,", 1, "0-1", "5.6.1 empty elements" },
    { 100, "bytes=,,0-1", 1, "0-1", "5.6.1 empty elements" },
    /* unsatisfiable */
    { 100, "bytes=100-", UNSATISFIABLE, "", "14.1.2 at the end" },
    { 100, "bytes=100-200", UNSATISFIABLE, "", "14.1.2 beyond" },
    { 100, "bytes=99999999999999999999999-", UNSATISFIABLE, "", "17.5 beyond 64 bits" },
    { 100, "bytes=-0", UNSATISFIABLE, "", "14.1.2 suffix of none" },
    { 100, "bytes=-000", UNSATISFIABLE, "", "14.1.2 suffix of none" },
    { 100, "bytes=100-, 200-300, -0", UNSATISFIABLE, "", "14.1.1 none of them" },
    /* invalid: all of it ignored */
    { 100, "bytes=5-4", WHOLE, "", "14.1.1 last before first" },
    { 100, "bytes=500-400", WHOLE, "", "14.1.1 last before first" },
    { 100, "bytes=0-1, 5-4", WHOLE, "", "14.1.1 one of two" },
    { 100, "bytes=", WHOLE, "", "14.1.1 1#range-spec" },
    { 100, "bytes=,", WHOLE, "", "14.1.1 1#range-spec" },
    { 100, "bytes", WHOLE, "", "14.1.1" },
    { 100, "", WHOLE, "", "14.1.1" },
    { 100, "0-1", WHOLE, "", "14.1.1 no unit" },
    { 100, "bytes 0-1", WHOLE, "", "14.1.1" },
    { 100, "bytes =0-1", WHOLE, "", "14.1.1" },
    { 100, "bytes:0-1", WHOLE, "", "14.1.1" },
    { 100, "bytes=-", WHOLE, "", "14.1.1" },
    { 100, "bytes=1", WHOLE, "", "14.1.1" },
    { 100, "bytes=a-b", WHOLE, "", "14.1.1" },
    { 100, "bytes=0-a", WHOLE, "", "14.1.1" },
    { 100, "bytes=a-1", WHOLE, "", "14.1.1" },
    { 100, "bytes=0x0-1", WHOLE, "", "14.1.1" },
    { 100, "bytes=+0-1", WHOLE, "", "14.1.1" },
    { 100, "bytes=0- 1", WHOLE, "", "14.1.1" },
    { 100, "bytes=0 -1", WHOLE, "", "14.1.1" },
    { 100, "bytes=--1", WHOLE, "", "14.1.1" },
    { 100, "bytes=0--1", WHOLE, "", "14.1.1" },
    { 100, "bytes=0-1-2", WHOLE, "", "14.1.1" },
    { 100, "bytes=0-1;2-3", WHOLE, "", "14.1.1" },
    { 100, "bytes=\"0-1\"", WHOLE, "", "14.1.1" },
    { 100, "items=0-1", WHOLE, "", "14.2 another unit" },
    { 100, "bytess=0-1", WHOLE, "", "14.2 another unit" },
    { 100, "bytes=0-1\nbytes=2-3", WHOLE, "", "5.3 repeated" },
    { 100, "bytes=0-1\nbytes=0-1", WHOLE, "", "5.3 repeated" },
    /* nothing there */
    { 0, "bytes=0-", WHOLE, "", "14.2 no content" },
    { 0, "bytes=0-0", WHOLE, "", "14.2 no content" },
    { 0, "bytes=-1", WHOLE, "", "14.2 no content" },
    { 0, "bytes=-0", WHOLE, "", "14.2 no content" },
    /* several */
    { 100, "bytes=0-0,-1", 2, "0-0 99-99", "14.1.2 first and last" },
    { 100, "bytes= 0-9, 45-54, -10", 3, "0-9 45-54 90-99", "14.1.2" },
    { 100, "bytes=0-9,10-19", 2, "0-9 10-19", "14.1.2 side by side" },
    { 100, "bytes=0-9, 100-", 1, "0-9", "14.1.1 what is satisfiable" },
    { 100, "bytes=200-, 0-9, -0", 1, "0-9", "14.1.1 what is satisfiable" },
    { 100, "bytes=90-99,0-9", 2, "90-99 0-9", "14.2 a catalogue at the end, in the order asked" },
    { 100, "bytes=90-99,0-9,20-29,40-49", 4, "90-99 0-9 20-29 40-49", "14.2 goes back once" },
    { 100, "bytes=90-99,50-59,0-9", WHOLE, "", "14.2 goes back twice" },
    { 100, "bytes=0-9,5-14", WHOLE, "", "14.2 overlap" },
    { 100, "bytes=0-9,9-10", WHOLE, "", "14.2 overlap by one" },
    { 100, "bytes=0-,0-", WHOLE, "", "14.2 the same" },
    { 100, "bytes=20-29,0-99", WHOLE, "", "14.2 one within another" },
    { 100, "bytes=0-,-1", WHOLE, "", "14.2 suffix overlaps" },
    { 100, "bytes=0-0,1-1,2-2,3-3,4-4,5-5,6-6,7-7,8-8,9-9,10-10,11-11,12-12,13-13,14-14,15-15", 16,
      "0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-7 8-8 9-9 10-10 11-11 12-12 13-13 14-14 15-15",
      "14.2 sixteen" },
    { 100,
      "bytes=0-0,1-1,2-2,3-3,4-4,5-5,6-6,7-7,8-8,9-9,10-10,11-11,12-12,13-13,14-14,15-15,16-16",
      WHOLE, "", "14.2 seventeen" },
    { 100,
      "bytes=200-,200-,200-,200-,200-,200-,200-,200-,200-,200-,200-,200-,200-,200-,200-,200-,200-",
      WHOLE, "", "14.2 seventeen, also when none can be had" },
};

static enum range_verdict ask(const char *fields, const char *stored, uint64_t length,
                              struct ranges *out)
{
    struct row_headers request, response;
    struct validators v;
    cache_validators_read(row_headers(&response, stored), NOW, &v);
    return cache_ranges(row_headers(&request, fields), &v, length, NOW, out);
}

static int verdict_of(enum range_verdict verdict, const struct ranges *r)
{
    switch (verdict) {
    case RANGE_WHOLE: return WHOLE;
    case RANGE_UNSATISFIABLE: return UNSATISFIABLE;
    case RANGE_PARTS: return (int)r->count;
    }
    UNREACHABLE();
}

static const char *parts_text(const struct ranges *r, char *out, size_t capacity)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < r->count; i++)
        used +=
            (size_t)snprintf(out + used, capacity - used, "%s%llu-%llu", i == 0 ? "" : " ",
                             (unsigned long long)r->at[i].first, (unsigned long long)r->at[i].last);
    return out;
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char fields[256], parts[512];
        const char *second = strchr(rows[i].range, '\n');
        int first_len = second == NULL ? (int)strlen(rows[i].range) : (int)(second - rows[i].range);
        snprintf(fields, sizeof fields, "Range: %.*s%s%s", first_len, rows[i].range,
                 second == NULL ? "" : "\nRange: ", second == NULL ? "" : second + 1);
        struct ranges r;
        enum range_verdict verdict = ask(fields, "", rows[i].length, &r);
        ROW_CHECK(rows[i].range, verdict_of(verdict, &r), rows[i].verdict);
        if (strcmp(parts_text(&r, parts, sizeof parts), rows[i].parts) != 0)
            fail_msg("row %zu \"%s\" (%s): %s, not %s", i, rows[i].range, rows[i].section, parts,
                     rows[i].parts);
    }
}

static void test_no_range(void **state)
{
    (void)state;
    struct ranges r;
    assert_int_equal(ask("", "ETag: \"a\"", 100, &r), RANGE_WHOLE);
    assert_int_equal(ask("If-Range: \"a\"", "ETag: \"a\"", 100, &r), RANGE_WHOLE);
    assert_int_equal(r.count, 0);
}

static const struct {
    const char *if_range, *stored;
    bool holds;
    const char *section;
} conditions[] = {
    { "If-Range: \"a\"", "ETag: \"a\"", true, "13.1.5" },
    { "If-Range: \"b\"", "ETag: \"a\"", false, "13.1.5" },
    { "If-Range: \"a\"", "", false, "13.1.5 nothing to compare with" },
    { "If-Range: W/\"a\"", "ETag: W/\"a\"", false, "8.8.3.2 strong" },
    { "If-Range: \"a\"", "ETag: W/\"a\"", false, "8.8.3.2 strong" },
    { "If-Range: W/\"a\"", "ETag: \"a\"", false, "8.8.3.2 strong" },
    { "If-Range: \"a\", \"b\"", "ETag: \"a\"", false, "13.1.5 no list" },
    { "If-Range: \"a\"\nIf-Range: \"a\"", "ETag: \"a\"", false, "5.3 repeated" },
    { "If-Range: *", "ETag: \"a\"", false, "13.1.5 no star" },
    { "If-Range: a", "ETag: a", false, "13.1.5 neither tag nor date" },
    { "If-Range:", "ETag: \"a\"", false, "13.1.5 empty" },
    { "If-Range: " D_9, "Last-Modified: " D_9 "\nDate: " D_10, true, "13.1.5 date" },
    { "If-Range: " D_9, "Last-Modified: " D_9 "\nDate: " D_9_AND_1S, true,
      "8.8.2.2 a second after" },
    { "If-Range: " D_9, "Last-Modified: " D_9 "\nDate: " D_9, false, "8.8.2.2 the same second" },
    { "If-Range: " D_10, "Last-Modified: " D_10 "\nDate: " D_9, false, "8.8.2.2 before" },
    { "If-Range: " D_9, "Last-Modified: " D_9, false, "8.8.2.2 no Date" },
    { "If-Range: " D_10, "Last-Modified: " D_9 "\nDate: " D_10, false,
      "13.1.5 later is not equal" },
    { "If-Range: " D_9, "Last-Modified: " D_9_AND_1S "\nDate: " D_10, false, "13.1.5 earlier" },
    { "If-Range: Sunday, 15-Jun-25 09:00:00 GMT", "Last-Modified: " D_9 "\nDate: " D_10, true,
      "5.6.7 rfc850" },
    { "If-Range: " D_9, "ETag: \"a\"\nDate: " D_10, false, "13.1.5 no date stored" },
    { "If-Range: " D_9, "ETag: \"a\"\nLast-Modified: " D_9 "\nDate: " D_10, true, "13.1.5" },
    { "If-Range: \"a\"", "ETag: \"a\"\nETag: \"b\"", false, "8.8.3 two tags are none" },
};

static void test_if_range(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(conditions); i++) {
        char fields[256];
        struct ranges r;
        snprintf(fields, sizeof fields, "Range: bytes=10-19\n%s", conditions[i].if_range);
        ROW_CHECK(conditions[i].if_range,
                  verdict_of(ask(fields, conditions[i].stored, 100, &r), &r),
                  conditions[i].holds ? 1 : WHOLE);
        /* a condition that fails is no 416 either (13.1.5) */
        snprintf(fields, sizeof fields, "Range: bytes=100-\n%s", conditions[i].if_range);
        ROW_CHECK(conditions[i].if_range,
                  verdict_of(ask(fields, conditions[i].stored, 100, &r), &r),
                  conditions[i].holds ? UNSATISFIABLE : WHOLE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_no_range),
        cmocka_unit_test(test_if_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
