/* tests/unit/cache/test_freshness.c: lifetime, age, and whether an answer may be given, as rows
 * (RFC 9111 4.2). */
#include "tests/unit/cache/decide_rows.h"

#define AT_0 "Sun, 15 Jun 2025 15:06:40 GMT" /* the response came then */
enum { NOW = 1750000000 };
#define BEFORE_10 "Sun, 15 Jun 2025 15:06:30 GMT"
#define BEFORE_1H "Sun, 15 Jun 2025 14:06:40 GMT"
#define BEFORE_1D "Sat, 14 Jun 2025 15:06:40 GMT"
#define BEFORE_1Y "Sat, 15 Jun 2024 15:06:40 GMT"
#define AFTER_10  "Sun, 15 Jun 2025 15:06:50 GMT"
#define AFTER_20  "Sun, 15 Jun 2025 15:07:00 GMT"
#define AFTER_1H  "Sun, 15 Jun 2025 16:06:40 GMT"
#define AFTER_2H  "Sun, 15 Jun 2025 17:06:40 GMT"

enum { MAX = CONTROL_MAX_S, DAY = 86400, NO_TTL = CONTROL_NONE };
enum { MUST_ASK = 1, MUST_REVALIDATE = 2 };
static const struct freshness_policy guessing = { .has_heuristic = true,
                                                  .heuristic_max_s = DAY,
                                                  .default_ttl_s = NO_TTL };
static const struct freshness_policy strict = { .has_heuristic = false,
                                                .heuristic_max_s = DAY,
                                                .default_ttl_s = NO_TTL };
static const struct freshness_policy with_ttl = { .has_heuristic = true,
                                                  .heuristic_max_s = DAY,
                                                  .default_ttl_s = 300 };
static const struct freshness_policy ttl_0 = { .has_heuristic = true,
                                               .heuristic_max_s = DAY,
                                               .default_ttl_s = 0 };

static const struct freshness_policy by_rule = { .has_heuristic = true,
                                                 .heuristic_max_s = DAY,
                                                 .default_ttl_s = 300,
                                                 .has_ttl = true,
                                                 .ttl_s = 90 };
static const struct freshness_policy by_rule_never = {
    .has_heuristic = true, .heuristic_max_s = DAY, .default_ttl_s = 300, .has_ttl = true
};
static const struct freshness_policy deaf = {
    .has_heuristic = true, .heuristic_max_s = DAY, .default_ttl_s = NO_TTL, .ignores_origin = true
};
static const struct freshness_policy targeted = {
    .has_heuristic = true, .heuristic_max_s = DAY, .default_ttl_s = NO_TTL, .ignores_expires = true
};

static const struct {
    const char *fields;
    uint16_t status;
    const struct freshness_policy *policy;
    int32_t lifetime;
    enum lifetime_source source;
    unsigned must;
    const char *section;
} rows[] = {
    /* explicit: the first of s-maxage, max-age, Expires */
    { "", 200, &guessing, 0, LIFETIME_NONE, 0, "4.2.1 nothing said" },
    { "Date: " AT_0, 200, &guessing, 0, LIFETIME_NONE, 0, "4.2.1 nothing said" },
    { "Cache-Control: max-age=60", 200, &guessing, 60, LIFETIME_MAX_AGE, 0, "4.2.1" },
    { "Cache-Control: max-age=0", 200, &guessing, 0, LIFETIME_MAX_AGE, 0, "4.2.1" },
    { "Cache-Control: max-age=99999999999", 200, &guessing, MAX, LIFETIME_MAX_AGE, 0, "1.2.2" },
    { "Cache-Control: s-maxage=60", 200, &guessing, 60, LIFETIME_S_MAXAGE, MUST_REVALIDATE,
      "5.2.2.10" },
    { "Cache-Control: max-age=1, s-maxage=60", 200, &guessing, 60, LIFETIME_S_MAXAGE,
      MUST_REVALIDATE, "4.2.1" },
    { "Cache-Control: max-age=60, s-maxage=1", 200, &guessing, 1, LIFETIME_S_MAXAGE,
      MUST_REVALIDATE, "4.2.1" },
    { "Cache-Control: max-age=0, s-maxage=15", 200, &guessing, 15, LIFETIME_S_MAXAGE,
      MUST_REVALIDATE, "4.2.1" },
    { "Cache-Control: max-age=60, s-maxage=0", 200, &guessing, 0, LIFETIME_S_MAXAGE,
      MUST_REVALIDATE, "4.2.1" },
    { "Cache-Control: max-age=60, s-maxage=x", 200, &guessing, 0, LIFETIME_S_MAXAGE,
      MUST_REVALIDATE, "4.2.1 malformed" },
    { "Expires: " AFTER_1H "\nDate: " AT_0, 200, &guessing, 3600, LIFETIME_EXPIRES, 0, "4.2.1" },
    { "Expires: " BEFORE_1H "\nDate: " AT_0, 200, &guessing, 0, LIFETIME_EXPIRES, 0, "4.2.1 past" },
    { "Expires: " AT_0 "\nDate: " AT_0, 200, &guessing, 0, LIFETIME_EXPIRES, 0, "4.2.1 present" },
    { "Expires: " AFTER_1H "\nDate: " AFTER_2H, 200, &guessing, 0, LIFETIME_EXPIRES, 0,
      "4.2.1 less than Date" },
    { "Expires: " AFTER_10 "\nDate: " BEFORE_10, 200, &guessing, 20, LIFETIME_EXPIRES, 0,
      "4.2.1 slow clock" },
    { "Expires: " AFTER_20 "\nDate: " AFTER_10, 200, &guessing, 10, LIFETIME_EXPIRES, 0,
      "4.2.1 fast clock" },
    { "Expires: " AFTER_1H, 200, &guessing, 3600, LIFETIME_EXPIRES, 0, "RFC 9110 6.6.1 no Date" },
    { "Expires: " AFTER_1H "\nDate: foo", 200, &guessing, 3600, LIFETIME_EXPIRES, 0,
      "RFC 9110 6.6.1 no valid Date" },
    { "Expires: 0\nDate: " AT_0, 200, &guessing, 0, LIFETIME_EXPIRES, 0, "5.3 invalid" },
    { "Expires: -1", 200, &guessing, 0, LIFETIME_EXPIRES, 0, "5.3 invalid" },
    { "Expires:", 200, &guessing, 0, LIFETIME_EXPIRES, 0, "5.3 empty" },
    { "Expires: Sun, 15 Jun 2025 16:06:40 UTC", 200, &guessing, 0, LIFETIME_EXPIRES, 0,
      "4.2 zone" },
    { "Expires: sun, 15 jun 2025 16:06:40 gmt", 200, &guessing, 3600, LIFETIME_EXPIRES, 0,
      "4.2 any case" },
    { "Expires: Sunday, 15-Jun-25 16:06:40 GMT", 200, &guessing, 3600, LIFETIME_EXPIRES, 0,
      "RFC 9110 5.6.7 rfc850" },
    { "Expires: Sun Jun 15 16:06:40 2025", 200, &guessing, 3600, LIFETIME_EXPIRES, 0,
      "RFC 9110 5.6.7 asctime" },
    { "Expires: Sun, 21 Nov 2286 04:46:39 GMT", 200, &guessing, MAX, LIFETIME_EXPIRES, 0,
      "5.3 far ahead" },
    { "Expires: Tue, 19 Jan 2038 14:14:08 GMT\nDate: " AT_0, 200, &guessing, 397523248,
      LIFETIME_EXPIRES, 0, "5.3 32 bits" },
    { "Expires: " AFTER_1H "\nExpires: " AFTER_2H, 200, &guessing, 3600, LIFETIME_EXPIRES, 0,
      "4.2.1 the least of two" },
    { "Expires: " AFTER_2H "\nExpires: " AFTER_1H, 200, &guessing, 3600, LIFETIME_EXPIRES, 0,
      "4.2.1 the least of two" },
    { "Expires: " AFTER_2H "\nExpires: 0", 200, &guessing, 0, LIFETIME_EXPIRES, 0,
      "4.2.1 one invalid" },
    { "Expires: " AFTER_1H ", " AFTER_1H, 200, &guessing, 0, LIFETIME_EXPIRES, 0,
      "4.2.1 two in one field" },
    { "Cache-Control: max-age=60\nExpires: " BEFORE_1H, 200, &guessing, 60, LIFETIME_MAX_AGE, 0,
      "5.3 ignored" },
    { "Cache-Control: max-age=60\nExpires: 0", 200, &guessing, 60, LIFETIME_MAX_AGE, 0,
      "5.3 ignored" },
    { "Cache-Control: max-age=0\nExpires: " AFTER_1H, 200, &guessing, 0, LIFETIME_MAX_AGE, 0,
      "5.3 ignored" },
    { "Cache-Control: s-maxage=60\nExpires: " BEFORE_1H, 200, &guessing, 60, LIFETIME_S_MAXAGE,
      MUST_REVALIDATE, "5.3" },
    { "Cache-Control: max-age=30; public\nExpires: " AFTER_2H, 200, &guessing, 0, LIFETIME_MAX_AGE,
      0, "4.2.1 semicolon" },
    { "Cache-Control: max-age =60\nLast-Modified: " BEFORE_1D, 200, &guessing, 0, LIFETIME_MAX_AGE,
      0, "4.2.1 space" },
    /* what goes with it */
    { "Cache-Control: no-cache", 200, &guessing, 0, LIFETIME_NONE, MUST_ASK, "5.2.2.4" },
    { "Cache-Control: no-cache, max-age=60", 200, &guessing, 60, LIFETIME_MAX_AGE, MUST_ASK,
      "5.2.2.4" },
    { "Cache-Control: no-cache=\"a\", max-age=60", 200, &guessing, 60, LIFETIME_MAX_AGE, 0,
      "5.2.2.4 about that field" },
    { "Cache-Control: no-cache=\"\", max-age=60", 200, &guessing, 60, LIFETIME_MAX_AGE, MUST_ASK,
      "5.2.2.4 malformed: about all" },
    { "Cache-Control: max-age=2, must-revalidate", 200, &guessing, 2, LIFETIME_MAX_AGE,
      MUST_REVALIDATE, "5.2.2.2" },
    { "Cache-Control: max-age=2, proxy-revalidate", 200, &guessing, 2, LIFETIME_MAX_AGE,
      MUST_REVALIDATE, "5.2.2.8" },
    { "Pragma: no-cache\nCache-Control: max-age=60", 200, &guessing, 60, LIFETIME_MAX_AGE, 0,
      "5.4 not in responses" },
    /* heuristic */
    { "Last-Modified: " BEFORE_1H "\nDate: " AT_0, 200, &guessing, 360, LIFETIME_HEURISTIC, 0,
      "4.2.2 a tenth" },
    { "Last-Modified: " BEFORE_1D "\nDate: " AT_0, 200, &guessing, 8640, LIFETIME_HEURISTIC, 0,
      "4.2.2 a tenth" },
    { "Last-Modified: " BEFORE_1Y "\nDate: " AT_0, 200, &guessing, DAY, LIFETIME_HEURISTIC, 0,
      "4.2.2 capped" },
    { "Last-Modified: " BEFORE_1H, 200, &guessing, 360, LIFETIME_HEURISTIC, 0,
      "RFC 9110 6.6.1 no Date" },
    { "Last-Modified: " BEFORE_1H "\nDate: " BEFORE_1H, 200, &guessing, 0, LIFETIME_NONE, 0,
      "4.2.2 just changed" },
    { "Last-Modified: " AFTER_1H "\nDate: " AT_0, 200, &guessing, 0, LIFETIME_NONE, 0,
      "4.2.2 in the future" },
    { "Last-Modified: 0\nDate: " AT_0, 200, &guessing, 0, LIFETIME_NONE, 0, "4.2.2 no date" },
    { "Last-Modified: " BEFORE_1H "\nPragma: no-cache", 200, &guessing, 360, LIFETIME_HEURISTIC, 0,
      "5.4 not in responses" },
    { "Last-Modified: " BEFORE_1H "\nCache-Control: foo=1", 200, &guessing, 360, LIFETIME_HEURISTIC,
      0, "5.2.3" },
    { "Last-Modified: " BEFORE_1H, 200, &strict, 0, LIFETIME_NONE, 0, "4.2.2 is a MAY" },
    { "Last-Modified: " BEFORE_1D "\nExpires: 0", 200, &guessing, 0, LIFETIME_EXPIRES, 0,
      "4.2.2 not when explicit" },
    { "Last-Modified: " BEFORE_1D "\nCache-Control: max-age=x", 200, &guessing, 0, LIFETIME_MAX_AGE,
      0, "4.2.2" },
    { "ETag: \"a\"", 200, &guessing, 0, LIFETIME_NONE, 0, "4.2.2 nothing to guess from" },
    { "Last-Modified: " BEFORE_1H, 203, &guessing, 360, LIFETIME_HEURISTIC, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 204, &guessing, 360, LIFETIME_HEURISTIC, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 300, &guessing, 360, LIFETIME_HEURISTIC, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 301, &guessing, 360, LIFETIME_HEURISTIC, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 308, &guessing, 360, LIFETIME_HEURISTIC, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 404, &guessing, 360, LIFETIME_HEURISTIC, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 405, &guessing, 360, LIFETIME_HEURISTIC, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 410, &guessing, 360, LIFETIME_HEURISTIC, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 414, &guessing, 360, LIFETIME_HEURISTIC, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 451, &guessing, 360, LIFETIME_HEURISTIC, 0, "RFC 7725 3" },
    { "Last-Modified: " BEFORE_1H, 501, &guessing, 360, LIFETIME_HEURISTIC, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 201, &guessing, 0, LIFETIME_NONE, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 202, &guessing, 0, LIFETIME_NONE, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 302, &guessing, 0, LIFETIME_NONE, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 303, &guessing, 0, LIFETIME_NONE, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 307, &guessing, 0, LIFETIME_NONE, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 400, &guessing, 0, LIFETIME_NONE, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 403, &guessing, 0, LIFETIME_NONE, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 500, &guessing, 0, LIFETIME_NONE, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 502, &guessing, 0, LIFETIME_NONE, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 503, &guessing, 0, LIFETIME_NONE, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 504, &guessing, 0, LIFETIME_NONE, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H, 599, &guessing, 0, LIFETIME_NONE, 0, "RFC 9110 15.1" },
    { "Last-Modified: " BEFORE_1H "\nCache-Control: public", 599, &guessing, 360,
      LIFETIME_HEURISTIC, 0, "5.2.2.9" },
    { "Last-Modified: " BEFORE_1H "\nCache-Control: public", 302, &guessing, 360,
      LIFETIME_HEURISTIC, 0, "5.2.2.9" },
    { "Last-Modified: " BEFORE_1H "\nCache-Control: public; x", 302, &guessing, 0, LIFETIME_NONE, 0,
      "5.2.2.9 malformed" },
    /* explicit for any status */
    { "Cache-Control: max-age=60", 599, &guessing, 60, LIFETIME_MAX_AGE, 0, "4.2.1" },
    { "Cache-Control: max-age=60", 302, &guessing, 60, LIFETIME_MAX_AGE, 0, "4.2.1" },
    { "Cache-Control: max-age=60", 500, &strict, 60, LIFETIME_MAX_AGE, 0, "4.2.1" },
    /* the operator's default: only where nothing is said, and then before a guess */
    { "", 200, &with_ttl, 300, LIFETIME_DEFAULT, 0, "4.2.4 out of band" },
    { "", 500, &with_ttl, 300, LIFETIME_DEFAULT, 0, "4.2.4 out of band" },
    { "Last-Modified: " BEFORE_1D, 200, &with_ttl, 300, LIFETIME_DEFAULT, 0, "4.2.2 a MAY" },
    { "Last-Modified: " BEFORE_1D, 200, &ttl_0, 0, LIFETIME_DEFAULT, 0, "4.2.2 told not to" },
    { "Cache-Control: max-age=60", 200, &with_ttl, 60, LIFETIME_MAX_AGE, 0, "4.2.1 explicit" },
    { "Cache-Control: max-age=0", 200, &with_ttl, 0, LIFETIME_MAX_AGE, 0, "4.2.1 explicit" },
    { "Cache-Control: max-age=x", 200, &with_ttl, 0, LIFETIME_MAX_AGE, 0, "4.2.1 malformed" },
    { "Expires: 0", 200, &with_ttl, 0, LIFETIME_EXPIRES, 0, "5.3 explicit" },
    { "Cache-Control: no-cache", 200, &with_ttl, 300, LIFETIME_DEFAULT, MUST_ASK, "5.2.2.4 holds" },
    /* a rule's ttl: instead of whatever is said, from when the answer came */
    { "", 200, &by_rule, 90, LIFETIME_RULE, 0, "4.2.4 out of band" },
    { "", 503, &by_rule, 90, LIFETIME_RULE, 0, "4.2.4 out of band" },
    { "Cache-Control: max-age=60", 200, &by_rule, 90, LIFETIME_RULE, 0, "4.2.4 out of band" },
    { "Cache-Control: max-age=600", 200, &by_rule, 90, LIFETIME_RULE, 0, "4.2.4 shorter, too" },
    { "Cache-Control: max-age=x", 200, &by_rule, 90, LIFETIME_RULE, 0, "4.2.4 out of band" },
    { "Expires: 0", 200, &by_rule, 90, LIFETIME_RULE, 0, "4.2.4 out of band" },
    { "Cache-Control: no-cache", 200, &by_rule, 90, LIFETIME_RULE, MUST_ASK, "5.2.2.4 holds" },
    { "Cache-Control: s-maxage=5", 200, &by_rule, 90, LIFETIME_RULE, MUST_REVALIDATE,
      "5.2.2.10 holds" },
    { "Age: 30", 200, &by_rule, 120, LIFETIME_RULE, 0, "4.2.3 the age on arrival is added" },
    { "Date: " BEFORE_1H, 200, &by_rule, 3690, LIFETIME_RULE, 0, "4.2.3 the same by Date" },
    { "Age: 2147483647", 200, &by_rule, MAX, LIFETIME_RULE, 0, "1.2.2 saturates" },
    { "Cache-Control: max-age=60\nAge: 30", 200, &by_rule_never, 0, LIFETIME_RULE, 0,
      "4.2.4 never fresh" },
    /* Expires where it does not count */
    { "Expires: " AFTER_1H, 200, &deaf, 0, LIFETIME_NONE, 0, "a rule ignores it" },
    { "Expires: 0\nLast-Modified: " BEFORE_1H, 200, &deaf, 360, LIFETIME_HEURISTIC, 0,
      "a rule ignores it" },
    { "Expires: " AFTER_1H, 200, &targeted, 0, LIFETIME_NONE, 0, "RFC 9213 2.2" },
    { "Expires: 0\nLast-Modified: " BEFORE_1H, 200, &targeted, 360, LIFETIME_HEURISTIC, 0,
      "RFC 9213 2.2" },
};

static void read_row(const char *fields, uint16_t status, const struct freshness_policy *policy,
                     int64_t delay_s, struct freshness *f)
{
    struct row_headers h;
    struct cache_control control;
    const struct headers *response = row_headers(&h, fields);
    cache_control_read(response, HEADER_CACHE_CONTROL, &control);
    cache_freshness_read(response, status, &control,
                         &(struct response_times){ .now_wall_s = NOW, .delay_s = delay_s }, policy,
                         f);
}

static void test_lifetime(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct freshness f;
        read_row(rows[i].fields, rows[i].status, rows[i].policy, 0, &f);
        ROW_CHECK(rows[i].fields, f.lifetime_s, rows[i].lifetime);
        ROW_CHECK(rows[i].fields, f.source, rows[i].source);
        ROW_CHECK(rows[i].fields,
                  (f.must_ask ? MUST_ASK : 0) | (f.must_revalidate ? MUST_REVALIDATE : 0),
                  rows[i].must);
        assert_non_null(rows[i].section);
    }
}

static const struct {
    const char *fields;
    int64_t delay;
    int32_t age;
    const char *section;
} ages[] = {
    { "", 0, 0, "4.2.3" },
    { "Date: " AT_0, 0, 0, "4.2.3" },
    { "Age: 30", 0, 30, "4.2.3 age_value" },
    { "Age: 0030", 0, 30, "1.2.2" },
    { "", 5, 5, "4.2.3 response_delay" },
    { "Age: 30", 5, 35, "4.2.3 corrected_age_value" },
    { "Age: 30", -5, 30, "4.2.3 a delay is not negative" },
    { "Date: " BEFORE_10, 0, 10, "4.2.3 apparent_age" },
    { "Date: " BEFORE_1H, 5, 3600, "4.2.3 the greater" },
    { "Date: " BEFORE_10 "\nAge: 30", 5, 35, "4.2.3 the greater" },
    { "Date: " BEFORE_10 "\nAge: 3", 4, 10, "4.2.3 the greater" },
    { "Date: " AFTER_1H, 0, 0, "4.2.3 a fast clock" },
    { "Date: " AFTER_1H "\nAge: 7", 0, 7, "4.2.3 a fast clock" },
    { "Date: foo\nAge: 7", 0, 7, "RFC 9110 6.6.1" },
    { "Date: Fri, 01 Jan 1904 00:00:00 GMT", 0, MAX, "1.2.2 more than 2^31 seconds ago" },
    { "Age: abc", 0, 0, "5.1 ignored" },
    { "Age:", 0, 0, "5.1 ignored" },
    { "Age: -7200", 0, 0, "5.1 ignored" },
    { "Age: +7200", 0, 0, "5.1 ignored" },
    { "Age: 7200.0", 0, 0, "5.1 ignored" },
    { "Age: \"7200\"", 0, 0, "5.1 ignored" },
    { "Age: 7200a", 0, 0, "5.1 ignored" },
    { "Age: 72 00", 0, 0, "5.1 ignored" },
    { "Age: 7200;foo=bar", 0, 0, "5.1 ignored" },
    { "Age: 7200;foo=111", 0, 0, "5.1 ignored" },
    { "Age: 99999999999x", 0, 0, "5.1 ignored" },
    { "Age: 2147483646", 0, 2147483646, "1.2.2" },
    { "Age: 2147483647", 0, MAX, "1.2.2" },
    { "Age: 2147483648", 0, MAX, "1.2.2" },
    { "Age: 2147483649", 0, MAX, "1.2.2" },
    { "Age: 99999999999999999999999999", 0, MAX, "1.2.2" },
    { "Age: 2147483647", 10, MAX, "1.2.2 the sum too" },
    { "Age: 7200, 0", 0, 7200, "5.1 the first" },
    { "Age: 0, 7200", 0, 0, "5.1 the first" },
    { "Age: 7200\nAge: 0", 0, 7200, "5.1 the first" },
    { "Age: 0\nAge: 7200", 0, 0, "5.1 the first" },
    { "Age: abc, 7200", 0, 0, "5.1 the first, invalid" },
    { "Age: 3600\nAge: 3600", 0, 3600, "5.1 the first" },
};

static void test_initial_age(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ages); i++) {
        struct freshness f;
        read_row(ages[i].fields, 200, &guessing, ages[i].delay, &f);
        ROW_CHECK(ages[i].fields, f.initial_age_s, ages[i].age);
        assert_non_null(ages[i].section);
    }
}

static const struct {
    const char *fields;
    int64_t delay;
    int32_t apparent, value, kept_delay, age;
} sums[] = {
    { "", 0, 0, 0, 0, 0 },
    { "Date: " BEFORE_10 "\nAge: 28", 3, 10, 28, 3, 31 },
    { "Date: " BEFORE_1H "\nAge: 28", 3, 3600, 28, 3, 3600 },
    { "Date: " AFTER_1H "\nAge: x", 2, 0, 0, 2, 2 },
    { "Age: 99999999999", 7, 0, MAX, 7, MAX },
};

/* What explain writes as "age 31 = Age 28 + delay 3". */
static void test_sums(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(sums); i++) {
        struct freshness f;
        read_row(sums[i].fields, 200, &guessing, sums[i].delay, &f);
        ROW_CHECK(sums[i].fields, f.apparent_age_s, sums[i].apparent);
        ROW_CHECK(sums[i].fields, f.age_value_s, sums[i].value);
        ROW_CHECK(sums[i].fields, f.delay_s, sums[i].kept_delay);
        ROW_CHECK(sums[i].fields, f.initial_age_s, sums[i].age);
    }
}

/* An operator's minute is a minute here, however old the answer came; Age says how old it is. */
static void test_rule_lifetime_counts_from_arrival(void **state)
{
    (void)state;
    struct freshness f;
    read_row("Age: 7200\nCache-Control: max-age=60", 200, &by_rule, 5, &f);
    int32_t age = cache_age_s(&f, 1000, 1000);
    assert_int_equal(age, 7205);
    assert_int_equal(cache_is_fresh(&f, age, NULL), FRESH_YES);
    assert_int_equal(f.lifetime_s - age, 90);
    age = cache_age_s(&f, 1000, 1000 + 89999);
    assert_int_equal(cache_is_fresh(&f, age, NULL), FRESH_YES);
    age = cache_age_s(&f, 1000, 1000 + 90000);
    assert_int_equal(age, 7295);
    assert_int_equal(cache_is_fresh(&f, age, NULL), FRESH_EXPIRED);
}

static const struct freshness_policy windowed = { .has_heuristic = true,
                                                  .heuristic_max_s = DAY,
                                                  .default_ttl_s = NO_TTL,
                                                  .stale_while_revalidate_s = 10,
                                                  .stale_if_error_s = 20,
                                                  .stale_if_unreachable_s = 30,
                                                  .keep_s = 100 };
static const struct freshness_policy kept = { .default_ttl_s = NO_TTL,
                                              .stale_if_error_s = 20,
                                              .keep_s = CONTROL_MAX_S };
static const struct freshness_policy loud = { .default_ttl_s = NO_TTL,
                                              .stale_while_revalidate_s = 10,
                                              .stale_if_error_s = 20,
                                              .keep_s = 100,
                                              .overrides_revalidate = true };

static const struct {
    const char *fields;
    const struct freshness_policy *policy;
    int32_t behind, error, unreachable, keep;
    bool by_rule;
    const char *section;
} windows[] = {
    { "Cache-Control: max-age=60", &guessing, 0, 0, 0, 0, false, "RFC 5861 nothing said" },
    { "Cache-Control: max-age=60", &windowed, 10, 20, 30, 130, false, "4.2.4 out of band" },
    { "Cache-Control: max-age=60, stale-while-revalidate=7", &windowed, 7, 20, 30, 130, false,
      "RFC 5861 3 the answer's own" },
    { "Cache-Control: max-age=60, stale-if-error=70", &windowed, 10, 70, 30, 170, false,
      "RFC 5861 4 the answer's own" },
    { "Cache-Control: max-age=60, stale-while-revalidate=0, stale-if-error=0", &windowed, 0, 0, 30,
      130, false, "RFC 5861 none" },
    { "Cache-Control: max-age=60, stale-if-error=x", &windowed, 10, 0, 30, 130, false,
      "RFC 5861 malformed: none" },
    { "Cache-Control: max-age=60, stale-if-error=99999999999", &windowed, 10, MAX, 30, MAX, false,
      "1.2.2" },
    { "Last-Modified: " BEFORE_1H, &windowed, 10, 20, 30, 130, false, "4.2.2 a guess is one" },
    { "Expires: " AFTER_1H, &windowed, 10, 20, 30, 130, false, "4.2.4" },
    { "Cache-Control: max-age=60\nAge: 90", &windowed, 10, 20, 30, 130, false,
      "4.2.3 stale on arrival" },
    /* never fresh: kept to be asked about */
    { "ETag: \"a\"", &windowed, 0, 0, 0, 100, false, "4.3 nothing said" },
    { "Cache-Control: max-age=0", &windowed, 0, 0, 0, 100, false, "4.3 never fresh" },
    { "Expires: 0", &windowed, 0, 0, 0, 100, false, "5.3 never fresh" },
    { "Cache-Control: max-age=0, stale-while-revalidate=7", &windowed, 7, 0, 0, 107, false,
      "RFC 5861 3 but allowed" },
    { "Cache-Control: max-age=0, stale-if-error=7", &windowed, 0, 7, 0, 107, false,
      "RFC 5861 4 but allowed" },
    { "Cache-Control: stale-if-error=7\nETag: \"a\"", &windowed, 0, 7, 0, 107, false,
      "RFC 5861 4 but allowed" },
    /* forbidden */
    { "Cache-Control: max-age=60, must-revalidate", &windowed, 0, 0, 0, 100, false, "5.2.2.2" },
    { "Cache-Control: max-age=60, proxy-revalidate", &windowed, 0, 0, 0, 100, false, "5.2.2.8" },
    { "Cache-Control: s-maxage=60", &windowed, 0, 0, 0, 100, false, "5.2.2.10" },
    { "Cache-Control: s-maxage=60, stale-while-revalidate=9, stale-if-error=9", &windowed, 0, 0, 0,
      100, false, "5.2.2.10 wins" },
    { "Cache-Control: max-age=60, no-cache, stale-if-error=9", &windowed, 0, 0, 0, 100, false,
      "5.2.2.4 even caches that are configured to" },
    { "Cache-Control: max-age=60, no-cache=\"a\"", &windowed, 10, 20, 30, 130, false,
      "5.2.2.4 about that field" },
    /* a rule's own */
    { "Cache-Control: max-age=60", &loud, 10, 20, 0, 120, false, "4.2.4 out of band" },
    { "Cache-Control: max-age=60, must-revalidate", &loud, 10, 20, 0, 120, true, "loudly" },
    { "Cache-Control: s-maxage=60, stale-if-error=70", &loud, 10, 20, 0, 120, true,
      "the answer's own says nothing there" },
    { "Cache-Control: max-age=60, no-cache", &loud, 0, 0, 0, 100, false, "5.2.2.4 holds" },
    { "Cache-Control: max-age=0, must-revalidate", &loud, 0, 0, 0, 100, true, "never fresh" },
    /* for ever */
    { "Cache-Control: max-age=60", &kept, 0, 20, 0, MAX, false, "as long as there is room" },
};

static void test_windows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(windows); i++) {
        struct freshness f;
        read_row(windows[i].fields, 200, windows[i].policy, 0, &f);
        ROW_CHECK(windows[i].fields, f.stale_while_revalidate_s, windows[i].behind);
        ROW_CHECK(windows[i].fields, f.stale_if_error_s, windows[i].error);
        ROW_CHECK(windows[i].fields, f.stale_if_unreachable_s, windows[i].unreachable);
        ROW_CHECK(windows[i].fields, f.keep_s, windows[i].keep);
        ROW_CHECK(windows[i].fields, f.stale_by_rule, windows[i].by_rule);
        assert_non_null(windows[i].section);
    }
}

static void test_words(void **state)
{
    (void)state;
    for (enum lifetime_source s = LIFETIME_NONE; s <= LIFETIME_RULE; s++)
        for (enum lifetime_source t = LIFETIME_NONE; t < s; t++)
            assert_string_not_equal(lifetime_word(s), lifetime_word(t));
    assert_string_equal(lifetime_word(LIFETIME_S_MAXAGE), "s-maxage");
}

static const struct {
    const char *what;
    int32_t initial;
    int64_t received_ms, now_ms;
    int32_t age;
} currents[] = {
    { "at once", 0, 5000, 5000, 0 },
    { "just under a second", 0, 5000, 5999, 0 },
    { "a second", 0, 5000, 6000, 1 },
    { "three", 0, 5000, 8000, 3 },
    { "on top of what it had", 30, 5000, 8000, 33 },
    { "another thread's clock is a little behind", 30, 5000, 4990, 30 },
    { "years", 0, 0, (int64_t)1000 * 86400 * 365 * 10, 315360000 },
    { "saturated", MAX, 0, 1000, MAX },
    { "saturates", MAX - 1, 0, 5000, MAX },
    { "longer than 2^31 seconds", 0, 0, INT64_MAX, MAX },
};

static void test_current_age(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(currents); i++) {
        struct freshness f = { .initial_age_s = currents[i].initial };
        ROW_CHECK(currents[i].what, cache_age_s(&f, currents[i].received_ms, currents[i].now_ms),
                  currents[i].age);
    }
}

static const struct {
    const char *response, *request; /* Cache-Control; a NULL request: not honoured */
    int32_t age;
    enum fresh_verdict verdict;
    const char *section;
} verdicts[] = {
    { "max-age=60", NULL, 0, FRESH_YES, "4.2" },
    { "max-age=60", NULL, 59, FRESH_YES, "4.2" },
    { "max-age=60", NULL, 60, FRESH_EXPIRED, "4.2 lifetime > age" },
    { "max-age=60", NULL, 61, FRESH_EXPIRED, "4.2" },
    { "max-age=0", NULL, 0, FRESH_EXPIRED, "4.2" },
    { "max-age=2147483647", NULL, 0, FRESH_YES, "4.2" },
    { "max-age=2147483647", NULL, MAX, FRESH_EXPIRED, "1.2.2" },
    { "max-age=60, no-cache", NULL, 0, FRESH_MUST_ASK, "5.2.2.4" },
    { "no-cache", NULL, 99, FRESH_MUST_ASK, "5.2.2.4" },
    { "max-age=60, no-cache", "max-stale", 0, FRESH_MUST_ASK, "5.2.2.4 whatever the client takes" },
    { "max-age=60, immutable", NULL, 60, FRESH_EXPIRED, "RFC 8246 2" },
    { "max-age=60", "", 0, FRESH_YES, "5.2.1" },
    { "max-age=60", "foo, bar=1", 0, FRESH_YES, "5.2.3" },
    { "max-age=60", "no-cache", 0, FRESH_CLIENT_ASKED, "5.2.1.4" },
    { "max-age=60", "max-age=0", 0, FRESH_CLIENT_ASKED, "5.2.1.1 a reload" },
    { "max-age=60", "max-age=5", 5, FRESH_YES, "5.2.1.1 no more than" },
    { "max-age=60", "max-age=5", 6, FRESH_CLIENT_ASKED, "5.2.1.1" },
    { "max-age=3600", "max-age=600", 1800, FRESH_CLIENT_ASKED, "5.2.1.1" },
    { "max-age=60", "max-age=600", 60, FRESH_EXPIRED, "5.2.1.1 cannot make it longer" },
    { "max-age=60", "max-age=x", 1, FRESH_CLIENT_ASKED, "5.2.1.1 malformed" },
    { "max-age=60", "min-fresh=60", 0, FRESH_YES, "5.2.1.3 no less than" },
    { "max-age=60", "min-fresh=60", 1, FRESH_CLIENT_ASKED, "5.2.1.3" },
    { "max-age=1500", "min-fresh=1000", 1000, FRESH_CLIENT_ASKED, "5.2.1.3" },
    { "max-age=60", "max-stale=10", 60, FRESH_YES, "5.2.1.2" },
    { "max-age=60", "max-stale=10", 70, FRESH_YES, "5.2.1.2 no more than" },
    { "max-age=60", "max-stale=10", 71, FRESH_EXPIRED, "5.2.1.2" },
    { "max-age=60", "max-stale", MAX, FRESH_YES, "5.2.1.2 any age" },
    { "max-age=60", "max-stale=x", 60, FRESH_YES, "5.2.1.2 malformed is 0: at the very end" },
    { "max-age=60", "max-stale=x", 61, FRESH_EXPIRED, "5.2.1.2 malformed" },
    { "max-age=60, must-revalidate", "max-stale", 61, FRESH_EXPIRED, "4.2.4" },
    { "max-age=60, proxy-revalidate", "max-stale", 61, FRESH_EXPIRED, "4.2.4" },
    { "s-maxage=60", "max-stale", 61, FRESH_EXPIRED, "4.2.4" },
    { "", "max-stale", 1, FRESH_EXPIRED, "4.2.4 never had a lifetime" },
    { "max-age=0", "max-stale", 1, FRESH_EXPIRED, "4.2.4 never fresh" },
    { "max-age=60, no-cache=\"a\"", NULL, 1, FRESH_YES, "5.2.2.4 about that field" },
    { "max-age=60, immutable", "max-age=0", 1, FRESH_CLIENT_ASKED,
      "RFC 8246 2 is the clients' to keep" },
    { "max-age=60, immutable", "no-cache", 1, FRESH_CLIENT_ASKED,
      "RFC 8246 2 is the clients' to keep" },
    { "max-age=100", "min-fresh=10, max-stale=50", 95, FRESH_CLIENT_ASKED, "5.2.1.3 both" },
    { "max-age=100", "min-fresh=0, max-stale=50", 110, FRESH_CLIENT_ASKED, "5.2.1.3 both" },
    { "max-age=60", "max-stale, no-cache", 61, FRESH_CLIENT_ASKED, "5.2.1.4" },
    { "max-age=60", "max-stale=10, max-age=30", 65, FRESH_CLIENT_ASKED, "5.2.1.1" },
    { "max-age=60", "max-stale=10, max-age=80", 65, FRESH_YES, "5.2.1.1 with max-stale" },
    { "max-age=60", "no-store", 0, FRESH_YES, "5.2.1.5 not about what is stored" },
    { "max-age=60", "only-if-cached", 0, FRESH_YES, "5.2.1.7" },
};

static void test_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(verdicts); i++) {
        char fields[128];
        struct freshness f;
        snprintf(fields, sizeof fields, "Cache-Control: %s", verdicts[i].response);
        read_row(fields, 200, &guessing, 0, &f);
        struct row_headers h;
        struct cache_control request;
        snprintf(fields, sizeof fields, "Cache-Control: %s",
                 verdicts[i].request == NULL ? "" : verdicts[i].request);
        cache_control_read_request(row_headers(&h, fields), &request);
        ROW_CHECK(
            verdicts[i].response,
            cache_is_fresh(&f, verdicts[i].age, verdicts[i].request == NULL ? NULL : &request),
            verdicts[i].verdict);
        assert_non_null(verdicts[i].section);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lifetime),
        cmocka_unit_test(test_initial_age),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_rule_lifetime_counts_from_arrival),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_current_age),
        cmocka_unit_test(test_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
