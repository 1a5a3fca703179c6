/* tests/unit/cache/test_conditional.c: If-None-Match and If-Modified-Since against a stored
 * response, as rows (RFC 9110 13). */
#include "tests/unit/cache/decide_rows.h"

enum { NOW = 1750000000 };
#define D_9  "Sun, 15 Jun 2025 09:00:00 GMT"
#define D_10 "Sun, 15 Jun 2025 10:00:00 GMT"
#define D_11 "Sun, 15 Jun 2025 11:00:00 GMT"
enum { AT_9 = 1749978000, AT_10 = 1749981600, AT_11 = 1749985200 };

#define NONE CONDITIONAL_NONE
#define SEND CONDITIONAL_SEND
#define SAME CONDITIONAL_NOT_MODIFIED

static const struct {
    const char *stored, *request;
    enum conditional verdict;
    const char *section;
} rows[] = {
    { "ETag: \"a\"", "", NONE, "13.2.2" },
    { "ETag: \"a\"", "Range: bytes=0-1\nIf-Range: \"a\"", NONE, "13.1.5 is not for here" },
    /* If-None-Match */
    { "ETag: \"a\"", "If-None-Match: \"a\"", SAME, "13.1.2" },
    { "ETag: \"a\"", "If-None-Match: \"b\"", SEND, "13.1.2" },
    { "ETag: \"a\"", "If-None-Match: \"A\"", SEND, "8.8.3 case counts" },
    { "ETag: \"a\"", "If-None-Match: \"ab\"", SEND, "8.8.3" },
    { "ETag: \"ab\"", "If-None-Match: \"a\"", SEND, "8.8.3" },
    { "ETag: \"\"", "If-None-Match: \"\"", SAME, "8.8.3 empty between quotes" },
    { "ETag: \"a\"", "If-None-Match: \"a\", \"1\", \"5\"", SAME, "13.1.2 first" },
    { "ETag: \"a\"", "If-None-Match: \"1\", \"a\", \"5\"", SAME, "13.1.2 middle" },
    { "ETag: \"a\"", "If-None-Match: \"1\",\"5\",\"a\"", SAME, "13.1.2 last" },
    { "ETag: \"a\"", "If-None-Match: , \"1\" ,, \"a\",", SAME, "5.6.1 empty elements" },
    { "ETag: \"a\"", "If-None-Match: \"1\"\nIf-None-Match: \"a\"", SAME, "5.2 two fields" },
    { "ETag: \"a\"", "If-None-Match: \"1\"\nIf-None-Match: \"2\"", SEND, "5.2 two fields" },
    { "ETag: \"a\"", "If-None-Match:", SEND, "13.1.2 empty" },
    { "ETag: W/\"a\"", "If-None-Match: W/\"a\"", SAME, "8.8.3.2 weak" },
    { "ETag: W/\"a\"", "If-None-Match: \"a\"", SAME, "8.8.3.2 weak" },
    { "ETag: \"a\"", "If-None-Match: W/\"a\"", SAME, "8.8.3.2 weak" },
    { "ETag: W/\"a\"", "If-None-Match: W/\"b\"", SEND, "8.8.3.2 weak" },
    { "ETag: \"a,b\"", "If-None-Match: \"a,b\"", SAME, "8.8.3 a comma within" },
    { "ETag: \"a\"", "If-None-Match: \"a,b\"", SEND, "8.8.3 a comma within" },
    { "ETag: \"a\\\"", "If-None-Match: \"a\\\", \"b\"", SAME, "8.8.3 a backslash escapes nothing" },
    { "ETag: \"b\"", "If-None-Match: \"a\\\", \"b\"", SAME, "8.8.3 a backslash escapes nothing" },
    { "ETag: \"abc\xc3\xbc\"", "If-None-Match: \"abc\xc3\xbc\"", SAME, "8.8.3 obs-text" },
    { "ETag: \"a\"", "If-None-Match: *", SAME, "13.1.2 *" },
    { "", "If-None-Match: *", SAME, "13.1.2 * without a tag" },
    { "ETag: \"a\"", "If-None-Match: *, \"b\"", SEND, "13.1.2 * stands alone" },
    { "ETag: \"a\"", "If-None-Match: *, \"a\"", SAME, "13.1.2 the rest is read" },
    { "ETag: \"a\"", "If-None-Match: *\nIf-None-Match: \"b\"", SEND, "13.1.2 * stands alone" },
    { "ETag: \"a\"", "If-None-Match: \"*\"", SEND, "8.8.3 a tag like others" },
    { "", "If-None-Match: \"a\"", SEND, "13.1.2 no tag stored" },
    { "ETag:", "If-None-Match:", SEND, "13.1.2 no tag stored" },
    { "ETag:", "If-None-Match: \"\"", SEND, "13.1.2 no tag stored" },
    /* malformed tags: byte for byte */
    { "ETag: a", "If-None-Match: a", SAME, "8.8.3 what was sent comes back" },
    { "ETag: a", "If-None-Match: b, a", SAME, "8.8.3 what was sent comes back" },
    { "ETag: a", "If-None-Match: \"a\"", SEND, "8.8.3 no quotes are added" },
    { "ETag: \"a\"", "If-None-Match: a", SEND, "8.8.3 no quotes are added" },
    { "ETag: w/\"a\"", "If-None-Match: w/\"a\"", SAME, "8.8.3 what was sent comes back" },
    { "ETag: w/\"a\"", "If-None-Match: \"a\"", SEND, "8.8.3 W is a capital" },
    { "ETag: W\"a\"", "If-None-Match: W\"a\"", SAME, "8.8.3 what was sent comes back" },
    { "ETag: \"a", "If-None-Match: \"a", SAME, "8.8.3 what was sent comes back" },
    { "ETag: \"b\"", "If-None-Match: \"a, \"b\"", SEND, "8.8.3 a quote left open" },
    { "ETag: \"a\"\nETag: \"b\"", "If-None-Match: \"a\"", SEND, "8.8.3 two tags are none" },
    { "ETag: \"a\"\nETag: \"a\"", "If-None-Match: \"a\"", SAME, "8.8.3 the same twice" },
    /* If-Modified-Since */
    { "Last-Modified: " D_10, "If-Modified-Since: " D_10, SAME, "13.1.3 equal" },
    { "Last-Modified: " D_10, "If-Modified-Since: " D_11, SAME, "13.1.3 later" },
    { "Last-Modified: " D_10, "If-Modified-Since: " D_9, SEND, "13.1.3 earlier" },
    { "Last-Modified: " D_10, "If-Modified-Since: Sunday, 15-Jun-25 10:00:00 GMT", SAME,
      "5.6.7 rfc850" },
    { "Last-Modified: " D_10, "If-Modified-Since: Sun Jun 15 10:00:00 2025", SAME,
      "5.6.7 asctime" },
    { "Last-Modified: Sunday, 15-Jun-25 10:00:00 GMT", "If-Modified-Since: " D_10, SAME,
      "5.6.7 rfc850" },
    { "Last-Modified: " D_10, "If-Modified-Since: 0", NONE, "13.1.3 no date" },
    { "Last-Modified: " D_10, "If-Modified-Since:", NONE, "13.1.3 no date" },
    { "Last-Modified: " D_10, "If-Modified-Since: " D_10 "; length=5", NONE, "13.1.3 no date" },
    { "Last-Modified: " D_10, "If-Modified-Since: " D_11 "\nIf-Modified-Since: " D_11, NONE,
      "13.1.3 more than one" },
    { "Last-Modified: " D_10, "If-Modified-Since: " D_11 ", " D_11, NONE, "13.1.3 more than one" },
    { "Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT", "If-Modified-Since: " D_9, SAME,
      "13.1.3 the start of time" },
    { "Last-Modified: " D_10, "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT", SEND,
      "13.1.3 the start of time" },
    { "", "If-Modified-Since: " D_10, NONE, "13.1.3 nothing to compare with" },
    { "Date: " D_10, "If-Modified-Since: " D_10, SAME, "RFC 9111 4.3.2 Date stands for it" },
    { "Date: " D_10, "If-Modified-Since: " D_11, SAME, "RFC 9111 4.3.2 Date stands for it" },
    { "Date: " D_10, "If-Modified-Since: " D_9, SEND, "RFC 9111 4.3.2 Date stands for it" },
    { "Date: " D_11 "\nLast-Modified: " D_9, "If-Modified-Since: " D_10, SAME,
      "RFC 9111 4.3.2 only without" },
    { "Date: " D_9 "\nLast-Modified: x", "If-Modified-Since: " D_10, SAME,
      "RFC 9111 4.3.2 only without" },
    { "Last-Modified: " D_9 "\nLast-Modified: " D_10, "If-Modified-Since: " D_9, NONE,
      "8.8.2 two dates are none" },
    /* order */
    { "ETag: \"a\"\nLast-Modified: " D_10, "If-None-Match: \"a\"\nIf-Modified-Since: " D_9, SAME,
      "13.2.2" },
    { "ETag: \"a\"\nLast-Modified: " D_10, "If-None-Match: \"b\"\nIf-Modified-Since: " D_11, SEND,
      "13.2.2" },
    { "Last-Modified: " D_10, "If-None-Match: \"b\"\nIf-Modified-Since: " D_11, SEND,
      "13.1.3 ignored" },
    { "Last-Modified: " D_10, "If-None-Match:\nIf-Modified-Since: " D_11, SEND, "13.1.3 ignored" },
    /* not a cache's */
    { "ETag: \"a\"", "If-Match: \"b\"", NONE, "RFC 9111 4.3.2" },
    { "Last-Modified: " D_10, "If-Unmodified-Since: " D_9, NONE, "RFC 9111 4.3.2" },
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct row_headers stored, request;
        struct validators v;
        cache_validators_read(row_headers(&stored, rows[i].stored), NOW, &v);
        ROW_CHECK(rows[i].request,
                  cache_conditional(row_headers(&request, rows[i].request), &v, NOW),
                  rows[i].verdict);
        assert_non_null(rows[i].section);
    }
}

static const struct {
    const char *fields, *etag;
    int64_t last_modified, date;
    const char *section;
} validators[] = {
    { "", "", -1, -1, "8.8" },
    { "ETag: W/\"a\"", "W/\"a\"", -1, -1, "8.8.3 as it is" },
    { "Last-Modified: " D_9 "\nDate: " D_10, "", AT_9, AT_10, "8.8.2" },
    { "Last-Modified: x\nDate: 0", "", -1, -1, "8.8.2 malformed" },
    { "Last-Modified: " D_9 "\nLast-Modified: " D_9, "", AT_9, -1, "8.8.2 the same twice" },
    { "Last-Modified: " D_9 "\nLast-Modified: " D_11, "", -1, -1, "8.8.2 two" },
    { "Last-Modified: Wed, 31 Dec 1969 23:59:58 GMT", "", -1, -1,
      "8.8.2 before the start of time" },
    { "Date: Sunday, 15-Jun-25 11:00:00 GMT", "", -1, AT_11, "5.6.7" },
};

static void test_validators(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(validators); i++) {
        struct row_headers h;
        struct validators v;
        cache_validators_read(row_headers(&h, validators[i].fields), NOW, &v);
        ROW_CHECK(validators[i].fields, slice_equal(v.etag, slice_of(validators[i].etag)), true);
        ROW_CHECK(validators[i].fields, v.last_modified_s, validators[i].last_modified);
        ROW_CHECK(validators[i].fields, v.date_s, validators[i].date);
    }
}

static void test_preconditions(void **state)
{
    (void)state;
    struct row_headers h;
    assert_true(cache_request_has_precondition(row_headers(&h, "If-Match: *")));
    assert_true(cache_request_has_precondition(row_headers(&h, "If-Unmodified-Since: x")));
    assert_false(cache_request_has_precondition(
        row_headers(&h, "If-None-Match: *\nIf-Modified-Since: x\nIf-Range: x")));
    assert_false(cache_request_has_precondition(row_headers(&h, "")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_validators),
        cmocka_unit_test(test_preconditions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
