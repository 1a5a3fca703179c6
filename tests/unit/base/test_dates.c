/* tests/unit/base/test_dates.c: HTTP dates, as rows (RFC 9110 5.6.7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/dates.h"

enum { NOW_2025 = 1750000000 }; /* 15 June 2025 15:06:40 */

static const struct {
    const char *text;
    int64_t seconds; /* -1 is refused */
    const char *why;
} rows[] = {
    { "Sun, 06 Nov 1994 08:49:37 GMT", 784111777, "5.6.7 IMF-fixdate" },
    { "Sunday, 06-Nov-94 08:49:37 GMT", 784111777, "5.6.7 rfc850-date" },
    { "Sun Nov  6 08:49:37 1994", 784111777, "5.6.7 asctime-date" },
    { "Sun Nov 06 08:49:37 1994", 784111777, "5.6.7 asctime, two digits" },
    { "Wed Nov 16 08:49:37 1994", 784975777, "5.6.7 asctime, day above 9" },
    { "Thu, 01 Jan 1970 00:00:00 GMT", 0, "the start" },
    { "Tue, 19 Jan 2038 03:14:08 GMT", 2147483648, "beyond 32 bits" },
    { "Sun, 21 Nov 2286 04:46:39 GMT", 10000039599, "far ahead" },
    { "Fri, 31 Dec 9999 23:59:59 GMT", 253402300799, "the last" },
    { "Tue, 29 Feb 2000 12:00:00 GMT", 951825600, "leap by 400" },
    { "Thu, 29 Feb 2024 12:00:00 GMT", 1709208000, "leap by 4" },
    { "Sat, 31 Dec 2016 23:59:60 GMT", 1483228800, "5.6.7 leap second" },
    /* RFC 9111 4.2: matched without regard to case */
    { "THU, 18 Aug 2050 02:01:18 GMT", 2544400878, "4.2 day in capitals" },
    { "thu, 18 AUG 2050 02:01:18 GMT", 2544400878, "4.2 month in capitals" },
    { "Thu, 18 Aug 2050 02:01:18 gMT", 2544400878, "4.2 zone in small letters" },
    { "THURSDAY, 18-aug-50 02:01:18 gmt", 2544400878, "4.2 rfc850" },
    { "thu aug 18 02:01:18 2050", 2544400878, "4.2 asctime" },
    { "Mon, 18 Aug 2050 02:01:18 GMT", 2544400878, "the day's name is not held against the date" },
    /* RFC 9110 5.6.7: two digits of a year, as seen from 2025 */
    { "Thursday, 18-Aug-50 02:01:18 GMT", 2544400878, "25 years ahead" },
    { "Monday, 18-Aug-74 02:01:18 GMT", 3301783278, "49 years ahead" },
    { "Saturday, 15-Jun-75 15:06:40 GMT", 3327836800, "50 years ahead to the second" },
    { "Sunday, 15-Jun-75 15:06:41 GMT", 172076801, "a second more: of the past" },
    { "Wednesday, 18-Aug-76 02:01:18 GMT", 209181678, "51 years ahead: of the past" },
    { "Wednesday, 18-Aug-99 02:01:18 GMT", 934941678, "of the past" },
    { "Tuesday, 01-Jan-00 00:00:00 GMT", 946684800, "of the century's first year" },
    /* refused */
    { "", -1, "nothing" },
    { "0", -1, "RFC 9111 5.3" },
    { "-1", -1, "RFC 9111 5.3" },
    { "784111777", -1, "seconds are no date" },
    { "1994-11-06T08:49:37Z", -1, "another standard's" },
    { "Thu, 18 Aug 2050 02:01:18 UTC", -1, "RFC 9111 4.2 zone" },
    { "Thu, 18 Aug 2050 02:01:18 AEST", -1, "RFC 9111 4.2 zone" },
    { "Thu, 18 Aug 2050 02:01:18 +0000", -1, "RFC 9111 4.2 zone" },
    { "Thu, 18 Aug 2050 02:01:18", -1, "no zone" },
    { "Thu, 18 Aug 2050 02:01:18 GMT ", -1, "a space at the end" },
    { " Thu, 18 Aug 2050 02:01:18 GMT", -1, "a space at the front" },
    { "Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:18 GMT", -1, "two" },
    { "Thu, 18 Aug 50 02:01:18 GMT", -1, "two digits in an IMF-fixdate" },
    { "Thu 18 Aug 2050 02:01:18 GMT", -1, "no comma" },
    { "Thu,18 Aug 2050 02:01:18 GMT", -1, "no space" },
    { "Thu, 18  Aug  2050 02:01:18 GMT", -1, "spaces" },
    { "Thu, 18-Aug-2050 02:01:18 GMT", -1, "dashes" },
    { "Thu, 18 Aug 2050 02.01.18 GMT", -1, "periods" },
    { "Thu, 18 Aug 2050 2:01:18 GMT", -1, "one digit of hour" },
    { "Thu, 8 Aug 2050 02:01:18 GMT", -1, "one digit of day" },
    { "Thu, 18 Aug 2050 02:1:18 GMT", -1, "one digit of minute" },
    { "Thu, 18 August 2050 02:01:18 GMT", -1, "a long month" },
    { "Thursday, 18 Aug 2050 02:01:18 GMT", -1, "a long day" },
    { "Thu, 18-Aug-50 02:01:18 GMT", -1, "a short day in rfc850" },
    { "Thursday, 18-Aug-2050 02:01:18 GMT", -1, "four digits in rfc850" },
    { "Xyz, 18 Aug 2050 02:01:18 GMT", -1, "no such day" },
    { "Thu, 18 Xyz 2050 02:01:18 GMT", -1, "no such month" },
    { "Thu, 00 Aug 2050 02:01:18 GMT", -1, "day 0" },
    { "Thu, 32 Aug 2050 02:01:18 GMT", -1, "day 32" },
    { "Thu, 31 Feb 2050 02:01:18 GMT", -1, "31 February" },
    { "Thu, 31 Apr 2050 02:01:18 GMT", -1, "31 April" },
    { "Tue, 29 Feb 2023 12:00:00 GMT", -1, "no leap year" },
    { "Mon, 29 Feb 2100 12:00:00 GMT", -1, "no leap year by 100" },
    { "Thu, 18 Aug 2050 24:00:00 GMT", -1, "hour 24" },
    { "Thu, 18 Aug 2050 02:60:00 GMT", -1, "minute 60" },
    { "Thu, 18 Aug 2050 02:00:61 GMT", -1, "second 61" },
    { "Thu, 18 Aug 205x 02:01:18 GMT", -1, "a letter in the year" },
    { "Thu, +8 Aug 2050 02:01:18 GMT", -1, "a sign" },
    { "Thu Aug 18 02:01:18 2050 GMT", -1, "asctime has no zone" },
    { "Thu Aug  18 02:01:18 2050", -1, "asctime, two digits and two spaces" },
    { "Thu Aug 8 02:01:18 2050", -1, "asctime, one digit and one space" },
    { "Thu Aug  8 02:01:18 50", -1, "asctime, two digits of year" },
    { "Thu, 18 Aug 2050 02:01:1", -1, "cut" },
};

static void test_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        int64_t seconds = -1;
        bool taken = date_parse(slice_of(rows[i].text), NOW_2025, &seconds);
        if (taken != (rows[i].seconds != -1) || seconds != rows[i].seconds)
            fail_msg("\"%s\" (%s): %lld", rows[i].text, rows[i].why, (long long)seconds);
    }
}

/* Every cut of a good date is refused and read no further than its end. */
static void test_cuts(void **state)
{
    (void)state;
    static const char *const whole[] = { "Sun, 06 Nov 1994 08:49:37 GMT",
                                         "Sunday, 06-Nov-94 08:49:37 GMT",
                                         "Sun Nov  6 08:49:37 1994" };
    for (size_t i = 0; i < ARRAY_COUNT(whole); i++)
        for (size_t len = 0; len < strlen(whole[i]); len++) {
            char *exact = slice_to_string((struct slice){ whole[i], len });
            int64_t seconds;
            assert_false(date_parse((struct slice){ exact, len }, NOW_2025, &seconds));
            free(exact);
        }
}

static void test_format(void **state)
{
    (void)state;
    static const struct {
        int64_t seconds;
        const char *text;
    } forms[] = {
        { 784111777, "Sun, 06 Nov 1994 08:49:37 GMT" },
        { 0, "Thu, 01 Jan 1970 00:00:00 GMT" },
        { 951782400, "Tue, 29 Feb 2000 00:00:00 GMT" },
        { 1483228799, "Sat, 31 Dec 2016 23:59:59 GMT" },
        { 2147483648, "Tue, 19 Jan 2038 03:14:08 GMT" },
        { 4107542400, "Mon, 01 Mar 2100 00:00:00 GMT" },
        { 253402300799, "Fri, 31 Dec 9999 23:59:59 GMT" },
        { 253402300800, "Fri, 31 Dec 9999 23:59:59 GMT" },
        { -1, "Thu, 01 Jan 1970 00:00:00 GMT" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(forms); i++) {
        char out[DATE_LENGTH];
        date_format(forms[i].seconds, out);
        assert_memory_equal(out, forms[i].text, DATE_LENGTH);
    }
}

/* What is written reads back, over many days and times of day. */
static void test_round_trip(void **state)
{
    (void)state;
    for (int64_t at = 0; at < 253402300799; at += 86399 * 997) {
        char out[DATE_LENGTH];
        int64_t seconds;
        date_format(at, out);
        assert_true(date_parse((struct slice){ out, DATE_LENGTH }, NOW_2025, &seconds));
        assert_int_equal(seconds, at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
