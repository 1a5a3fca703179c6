/* tests/unit/cache/test_storable.c: what may be stored, as rows (RFC 9111 3). */
#include "tests/unit/cache/decide_rows.h"

#define NOW_DATE  "Sun, 15 Jun 2025 15:06:40 GMT"
#define LAST_WEEK "Sun, 08 Jun 2025 15:06:40 GMT"
#define NEXT_WEEK "Sun, 22 Jun 2025 15:06:40 GMT"
enum { NOW = 1750000000, NO_TTL = CONTROL_NONE };

static const struct {
    uint16_t status;
    const char *request, *response;
    enum storable verdict;
    const char *section;
} rows[] = {
    { 200, "", "Cache-Control: max-age=60", STORABLE_YES, "3" },
    { 200, "", "Cache-Control: s-maxage=60", STORABLE_YES, "3" },
    { 200, "", "Expires: " NEXT_WEEK, STORABLE_YES, "3" },
    { 200, "", "Last-Modified: " LAST_WEEK, STORABLE_YES, "4.2.2" },
    { 200, "", "", STORABLE_NO_LIFETIME, "3 neither lifetime nor validator" },
    { 200, "", "Cache-Control: public", STORABLE_NO_LIFETIME, "3 nothing to guess from" },
    { 200, "", "ETag: \"a\"", STORABLE_YES, "4.3 can be asked for" },
    { 200, "", "ETag: \"a\"\nCache-Control: max-age=0", STORABLE_YES, "4.3 can be asked for" },
    { 200, "", "Cache-Control: max-age=0", STORABLE_NO_LIFETIME, "4.3 cannot be asked for" },
    { 200, "", "Cache-Control: no-cache", STORABLE_NO_LIFETIME, "5.2.2.4 cannot be asked for" },
    { 200, "", "Cache-Control: no-cache, max-age=60", STORABLE_NO_LIFETIME,
      "5.2.2.4 cannot be asked for" },
    { 200, "", "Cache-Control: no-cache\nETag: \"a\"", STORABLE_YES, "5.2.2.4" },
    { 200, "", "Cache-Control: no-cache, max-age=60\nLast-Modified: " LAST_WEEK, STORABLE_YES,
      "5.2.2.4" },
    { 200, "", "Expires: 0", STORABLE_NO_LIFETIME, "5.3 expired" },
    { 200, "", "Expires: 0\nETag: \"a\"", STORABLE_YES, "5.3 expired, can be asked for" },
    { 200, "", "Expires: " LAST_WEEK "\nLast-Modified: " LAST_WEEK "\nDate: " NOW_DATE,
      STORABLE_YES, "4.3" },
    { 200, "", "Cache-Control: max-age=60\nAge: 60", STORABLE_NO_LIFETIME, "4.2.3 came stale" },
    { 200, "", "Cache-Control: max-age=60\nAge: 59", STORABLE_YES, "4.2.3" },
    { 200, "", "Cache-Control: max-age=60\nAge: 90\nETag: \"a\"", STORABLE_YES,
      "4.2.3 came stale" },
    { 200, "", "Cache-Control: max-age=x", STORABLE_NO_LIFETIME, "4.2.1 malformed" },
    { 200, "", "Cache-Control: max-age=0, stale-while-revalidate=60", STORABLE_YES,
      "RFC 5861 3 may be given stale" },
    { 200, "", "Cache-Control: max-age=0, stale-if-error=60", STORABLE_YES,
      "RFC 5861 4 may be given stale" },
    { 200, "", "Cache-Control: max-age=0, stale-if-error=0", STORABLE_NO_LIFETIME, "RFC 5861 4" },
    { 200, "", "Cache-Control: max-age=0, stale-if-error=60, must-revalidate", STORABLE_NO_LIFETIME,
      "5.2.2.2 may not" },
    { 200, "", "Cache-Control: no-cache, stale-while-revalidate=60", STORABLE_NO_LIFETIME,
      "5.2.2.4 may not" },
    { 200, "", "Cache-Control: max-age=60, stale-if-error=60\nAge: 90", STORABLE_YES,
      "RFC 5861 4 came stale" },
    { 200, "", "Cache-Control: max-age=60, stale-if-error=60\nAge: 120", STORABLE_NO_LIFETIME,
      "RFC 5861 4 came too late" },
    { 503, "", "Cache-Control: stale-if-error=60", STORABLE_NO_LIFETIME, "3 none of the list" },
    /* forbidden */
    { 200, "", "Cache-Control: no-store", STORABLE_NO_STORE, "5.2.2.5" },
    { 200, "", "Cache-Control: No-StOrE", STORABLE_NO_STORE, "5.2.2.5 any case" },
    { 200, "", "Cache-Control: max-age=60, no-store\nExpires: " NEXT_WEEK, STORABLE_NO_STORE,
      "5.2.2.5" },
    { 200, "", "Cache-Control: public, max-age=60\nCache-Control: no-store", STORABLE_NO_STORE,
      "5.2.2.5" },
    { 200, "", "Cache-Control: no-store; max-age=60", STORABLE_NO_STORE, "5.2.2.5 semicolon" },
    { 200, "", "Cache-Control: private, max-age=60", STORABLE_PRIVATE, "5.2.2.7" },
    { 200, "", "Cache-Control: private", STORABLE_PRIVATE, "5.2.2.7" },
    { 200, "", "Cache-Control: private=\"x\", max-age=60", STORABLE_YES,
      "5.2.2.7 that field alone" },
    { 200, "", "Cache-Control: private=\"\", max-age=60", STORABLE_PRIVATE, "5.2.2.7 malformed" },
    { 200, "", "Cache-Control: private=\"x\", private, max-age=60", STORABLE_PRIVATE,
      "5.2.2.7 both forms" },
    { 200, "", "Cache-Control: no-cache=\"x\", max-age=60", STORABLE_YES,
      "5.2.2.4 that field alone" },
    { 200, "", "Cache-Control: public, private, max-age=60", STORABLE_PRIVATE, "4.2.1 conflict" },
    { 200, "", "Cache-Control: private; max-age=60", STORABLE_PRIVATE, "5.2.2.7 semicolon" },
    { 200, "", "Cache-Control: s-maxage=60, private", STORABLE_PRIVATE, "4.2.1 conflict" },
    { 200, "", "Set-Cookie: a=b\nCache-Control: max-age=60", STORABLE_SET_COOKIE, "7.3" },
    { 200, "", "Set-Cookie: a=b\nCache-Control: public, s-maxage=60", STORABLE_SET_COOKIE, "7.3" },
    { 200, "", "Set-Cookie: a=b\nLast-Modified: " LAST_WEEK, STORABLE_SET_COOKIE, "7.3" },
    { 200, "Cookie: a=b", "Cache-Control: max-age=60", STORABLE_YES,
      "3 a request's cookie says nothing" },
    { 200, "", "Vary: *\nCache-Control: max-age=60", STORABLE_VARY_ALL, "4.1" },
    { 200, "", "Vary: Accept, *\nCache-Control: max-age=60", STORABLE_VARY_ALL, "4.1" },
    { 200, "", "Vary:\nVary: *\nCache-Control: max-age=60", STORABLE_VARY_ALL, "4.1" },
    { 200, "", "Vary: Accept\nCache-Control: max-age=60", STORABLE_YES, "4.1" },
    /* authenticated */
    { 200, "Authorization: x", "Cache-Control: max-age=60", STORABLE_AUTHORIZATION, "3.5" },
    { 200, "Authorization: x", "Last-Modified: " LAST_WEEK, STORABLE_AUTHORIZATION, "3.5" },
    { 200, "Authorization:", "Cache-Control: max-age=60", STORABLE_AUTHORIZATION, "3.5 empty" },
    { 200, "Authorization: x", "Cache-Control: max-age=60, public", STORABLE_YES, "3.5 public" },
    { 200, "Authorization: x", "Cache-Control: max-age=60, must-revalidate", STORABLE_YES,
      "3.5 must-revalidate" },
    { 200, "Authorization: x", "Cache-Control: s-maxage=60", STORABLE_YES, "3.5 s-maxage" },
    { 200, "Authorization: x", "Cache-Control: s-maxage=0\nETag: \"a\"", STORABLE_YES, "5.2.2.10" },
    { 200, "Authorization: x", "Cache-Control: max-age=60, proxy-revalidate",
      STORABLE_AUTHORIZATION, "3.5 not this" },
    { 200, "Authorization: x", "Cache-Control: max-age=60, immutable", STORABLE_AUTHORIZATION,
      "3.5 not this" },
    { 200, "Authorization: x", "Cache-Control: max-age=60; public", STORABLE_AUTHORIZATION,
      "3.5 malformed" },
    { 200, "Authorization: x", "Cache-Control: must-revalidate; max-age=60\nETag: \"a\"",
      STORABLE_AUTHORIZATION, "3.5 malformed" },
    { 200, "Authorization: x", "Cache-Control: s-maxage=x\nETag: \"a\"", STORABLE_AUTHORIZATION,
      "3.5 malformed" },
    { 200, "Authorization: x", "Cache-Control: public, private, max-age=60", STORABLE_PRIVATE,
      "5.2.2.7" },
    /* status */
    { 100, "", "Cache-Control: max-age=60", STORABLE_STATUS, "3 not final" },
    { 101, "", "Cache-Control: max-age=60", STORABLE_STATUS, "3 not final" },
    { 103, "", "Cache-Control: max-age=60", STORABLE_STATUS, "3 not final" },
    { 199, "", "Cache-Control: max-age=60", STORABLE_STATUS, "3 not final" },
    { 206, "", "Cache-Control: max-age=60", STORABLE_PART, "3.3 nobody asked for a part" },
    { 206, "", "Cache-Control: no-store", STORABLE_NO_STORE, "5.2.2.5" },
    { 304, "", "Cache-Control: max-age=60", STORABLE_STATUS, "3" },
    { 412, "", "Cache-Control: max-age=60", STORABLE_STATUS, "RFC 9110 13.2 of that request only" },
    { 416, "", "Cache-Control: max-age=60", STORABLE_STATUS, "RFC 9110 14.2 of that request only" },
    { 417, "", "Cache-Control: max-age=60", STORABLE_STATUS,
      "RFC 9110 10.1.1 of that request only" },
    { 428, "", "Cache-Control: max-age=60", STORABLE_STATUS, "RFC 6585 3" },
    { 429, "", "Cache-Control: max-age=60", STORABLE_STATUS, "RFC 6585 4" },
    { 431, "", "Cache-Control: max-age=60", STORABLE_STATUS, "RFC 6585 5" },
    { 511, "", "Cache-Control: max-age=60", STORABLE_STATUS, "RFC 6585 6" },
    { 600, "", "Cache-Control: max-age=60", STORABLE_STATUS, "RFC 9110 15" },
    { 999, "", "Cache-Control: max-age=60", STORABLE_STATUS, "RFC 9110 15" },
    { 201, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 203, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 204, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 299, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 301, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 302, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 303, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 307, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 308, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 400, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 404, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 410, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 499, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 500, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 502, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 503, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 504, "", "Cache-Control: max-age=60", STORABLE_YES, "3 explicit" },
    { 599, "", "Expires: " NEXT_WEEK, STORABLE_YES, "3 explicit" },
    { 404, "", "Last-Modified: " LAST_WEEK, STORABLE_YES, "4.2.2" },
    { 410, "", "ETag: \"a\"", STORABLE_YES, "4.3 can be asked for" },
    { 302, "", "Last-Modified: " LAST_WEEK, STORABLE_NO_LIFETIME, "3 not heuristically cacheable" },
    { 302, "", "ETag: \"a\"", STORABLE_NO_LIFETIME, "3 not heuristically cacheable" },
    { 403, "", "ETag: \"a\"\nLast-Modified: " LAST_WEEK, STORABLE_NO_LIFETIME,
      "3 not heuristically cacheable" },
    { 500, "", "ETag: \"a\"", STORABLE_NO_LIFETIME, "3 not heuristically cacheable" },
    { 503, "", "Last-Modified: " LAST_WEEK, STORABLE_NO_LIFETIME, "3 not heuristically cacheable" },
    { 500, "", "ETag: \"a\"\nCache-Control: no-cache", STORABLE_NO_LIFETIME,
      "3 no-cache is none of the list" },
    { 599, "", "Last-Modified: " LAST_WEEK, STORABLE_NO_LIFETIME, "3 not understood" },
    { 599, "", "Last-Modified: " LAST_WEEK "\nCache-Control: public", STORABLE_YES, "5.2.2.9" },
    { 302, "", "Last-Modified: " LAST_WEEK "\nCache-Control: public", STORABLE_YES, "5.2.2.9" },
    /* must-understand */
    { 200, "", "Cache-Control: max-age=60, no-store, must-understand", STORABLE_YES, "5.2.2.3" },
    { 404, "", "Cache-Control: max-age=60, no-store, must-understand", STORABLE_YES, "5.2.2.3" },
    { 599, "", "Cache-Control: max-age=60, no-store, must-understand", STORABLE_STATUS, "5.2.2.3" },
    { 599, "", "Cache-Control: max-age=60, must-understand", STORABLE_STATUS, "5.2.2.3" },
    { 299, "", "Cache-Control: max-age=60, must-understand", STORABLE_STATUS, "5.2.2.3" },
    { 304, "", "Cache-Control: max-age=60, must-understand", STORABLE_STATUS, "5.2.2.3" },
    { 402, "", "Cache-Control: max-age=60, must-understand", STORABLE_STATUS, "5.2.2.3" },
    { 200, "", "Cache-Control: max-age=60, no-store, must-understand;", STORABLE_NO_STORE,
      "5.2.2.3 malformed" },
    { 200, "", "Cache-Control: max-age=60, no-store, must-understand, private", STORABLE_PRIVATE,
      "5.2.2.7" },
    /* a request's no-store, honoured */
    { 200, "Cache-Control: no-store", "Cache-Control: max-age=60", STORABLE_NO_STORE, "5.2.1.5" },
    { 200, "Cache-Control: no-store", "Cache-Control: max-age=60, must-understand",
      STORABLE_NO_STORE, "5.2.1.5" },
    { 200, "Cache-Control: no-cache", "Cache-Control: max-age=60", STORABLE_YES, "5.2.1.4" },
};

enum wish {
    IS_GET = 1,
    IS_HONOURED = 2,
    SHARES_SET_COOKIE = 4,
    IGNORES_SET_COOKIE = 8,
    IGNORES_AUTHORIZATION = 16,
    IGNORES_VARY = 32,
    WANTS_PART = 64,
    NO_VALIDATORS = 128
};

static enum storable judge(uint16_t status, const char *request_text, const char *response_text,
                           const struct freshness_policy *policy, unsigned wishes)
{
    struct row_headers request_rows, response_rows;
    struct cache_control request_control, response_control;
    struct freshness freshness;
    const struct headers *request = row_headers(&request_rows, request_text);
    const struct headers *response = row_headers(&response_rows, response_text);
    struct validators validators;
    cache_validators_read(response, NOW, &validators);
    cache_control_read_request(request, &request_control);
    cache_control_read(response, HEADER_CACHE_CONTROL, &response_control);
    cache_freshness_read(response, status, &response_control,
                         &(struct response_times){ .now_wall_s = NOW }, policy, &freshness);
    return cache_is_storable(&(struct storable_facts){
        .request = request,
        .response = response,
        .request_control = wishes & IS_HONOURED ? &request_control : NULL,
        .response_control = &response_control,
        .freshness = &freshness,
        .status = status,
        .is_get = wishes & IS_GET,
        .shares_set_cookie = wishes & SHARES_SET_COOKIE,
        .ignores_set_cookie = wishes & IGNORES_SET_COOKIE,
        .ignores_authorization = wishes & IGNORES_AUTHORIZATION,
        .ignores_vary = wishes & IGNORES_VARY,
        .wants_part = wishes & WANTS_PART,
        .validators = wishes & NO_VALIDATORS ? NULL : &validators,
    });
}

static const struct freshness_policy usual = { .has_heuristic = true,
                                               .heuristic_max_s = 86400,
                                               .default_ttl_s = NO_TTL };

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ROW_CHECK(
            rows[i].response,
            judge(rows[i].status, rows[i].request, rows[i].response, &usual, IS_GET | IS_HONOURED),
            rows[i].verdict);
        assert_non_null(rows[i].section);
    }
}

static void test_other_methods(void **state)
{
    (void)state;
    assert_int_equal(judge(200, "", "Cache-Control: max-age=60", &usual, 0), STORABLE_METHOD);
}

static void test_clients_are_not_honoured(void **state)
{
    (void)state;
    assert_int_equal(
        judge(200, "Cache-Control: no-store", "Cache-Control: max-age=60", &usual, IS_GET),
        STORABLE_YES);
}

/* The operator's default lets in what nothing else would; what forbids still does. */
static void test_default_ttl(void **state)
{
    (void)state;
    static const struct freshness_policy ttl = { .has_heuristic = true,
                                                 .heuristic_max_s = 86400,
                                                 .default_ttl_s = 300 };
    static const struct freshness_policy ttl_0 = { .has_heuristic = true,
                                                   .heuristic_max_s = 86400,
                                                   .default_ttl_s = 0 };
    assert_int_equal(judge(200, "", "", &ttl, IS_GET), STORABLE_YES);
    assert_int_equal(judge(503, "", "", &ttl, IS_GET), STORABLE_YES);
    assert_int_equal(judge(200, "", "", &ttl_0, IS_GET), STORABLE_NO_LIFETIME);
    assert_int_equal(judge(200, "", "Set-Cookie: a=b", &ttl, IS_GET), STORABLE_SET_COOKIE);
    assert_int_equal(judge(200, "", "Cache-Control: private", &ttl, IS_GET), STORABLE_PRIVATE);
    assert_int_equal(judge(200, "", "Cache-Control: no-store", &ttl, IS_GET), STORABLE_NO_STORE);
    assert_int_equal(judge(200, "", "Cache-Control: no-cache", &ttl, IS_GET), STORABLE_NO_LIFETIME);
    assert_int_equal(judge(200, "", "Cache-Control: max-age=0", &ttl, IS_GET),
                     STORABLE_NO_LIFETIME);
    assert_int_equal(judge(200, "Authorization: x", "", &ttl, IS_GET), STORABLE_AUTHORIZATION);
    assert_int_equal(judge(206, "", "", &ttl, IS_GET), STORABLE_PART);
}

/* A rule's ttl is a lifetime like others. */
static void test_rule_ttl(void **state)
{
    (void)state;
    static const struct freshness_policy ttl = { .has_heuristic = true,
                                                 .heuristic_max_s = 86400,
                                                 .default_ttl_s = NO_TTL,
                                                 .has_ttl = true,
                                                 .ttl_s = 60 };
    assert_int_equal(judge(200, "", "", &ttl, IS_GET), STORABLE_YES);
    assert_int_equal(judge(503, "", "Cache-Control: max-age=0", &ttl, IS_GET), STORABLE_YES);
    assert_int_equal(judge(200, "", "Age: 3600", &ttl, IS_GET), STORABLE_YES);
    assert_int_equal(judge(200, "", "Cache-Control: no-store", &ttl, IS_GET), STORABLE_NO_STORE);
    assert_int_equal(judge(200, "", "Cache-Control: private", &ttl, IS_GET), STORABLE_PRIVATE);
    assert_int_equal(judge(200, "", "Cache-Control: no-cache", &ttl, IS_GET), STORABLE_NO_LIFETIME);
    assert_int_equal(judge(200, "", "Set-Cookie: a=b", &ttl, IS_GET), STORABLE_SET_COOKIE);
    assert_int_equal(judge(200, "", "Set-Cookie: a=b", &ttl, IS_GET | SHARES_SET_COOKIE),
                     STORABLE_SET_COOKIE);
}

static const struct {
    const char *request, *response;
    unsigned wishes;
    enum storable verdict;
    const char *why;
} told[] = {
    { "", "Set-Cookie: a=b\nCache-Control: max-age=60", SHARES_SET_COOKIE, STORABLE_YES,
      "the operator shares them, the origin gave a lifetime" },
    { "", "Set-Cookie: a=b\nCache-Control: s-maxage=60", SHARES_SET_COOKIE, STORABLE_YES, "" },
    { "", "Set-Cookie: a=b\nExpires: " NEXT_WEEK, SHARES_SET_COOKIE, STORABLE_YES, "" },
    { "", "Set-Cookie: a=b\nLast-Modified: " LAST_WEEK, SHARES_SET_COOKIE, STORABLE_SET_COOKIE,
      "a guess is not the origin's word" },
    { "", "Set-Cookie: a=b\nETag: \"a\"", SHARES_SET_COOKIE, STORABLE_SET_COOKIE,
      "nothing is not the origin's word" },
    { "", "Set-Cookie: a=b\nCache-Control: private, max-age=60", SHARES_SET_COOKIE,
      STORABLE_PRIVATE, "private all the same" },
    { "", "Set-Cookie: a=b\nLast-Modified: " LAST_WEEK, IGNORES_SET_COOKIE, STORABLE_YES,
      "without the cookie" },
    { "", "Set-Cookie: a=b\nCache-Control: private", IGNORES_SET_COOKIE, STORABLE_PRIVATE, "" },
    { "Authorization: x", "Cache-Control: max-age=60", IGNORES_AUTHORIZATION, STORABLE_YES, "" },
    { "Authorization: x", "Cache-Control: private", IGNORES_AUTHORIZATION, STORABLE_PRIVATE, "" },
    { "", "Vary: *\nCache-Control: max-age=60", IGNORES_VARY, STORABLE_YES, "" },
    { "", "Vary: *\nCache-Control: no-store", IGNORES_VARY, STORABLE_NO_STORE, "" },
};

static void test_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(told); i++)
        ROW_CHECK(told[i].response,
                  judge(200, told[i].request, told[i].response, &usual, IS_GET | told[i].wishes),
                  told[i].verdict);
}

#define PART(range, rest) "Cache-Control: max-age=60\nContent-Range: " range "\n" rest
static const struct {
    const char *response;
    unsigned wishes;
    enum storable verdict;
    const char *section;
} parts[] = {
    { PART("bytes 0-4/10", "ETag: \"a\""), WANTS_PART, STORABLE_YES, "3.3" },
    { PART("bytes 0-4/*", "ETag: \"a\""), WANTS_PART, STORABLE_YES,
      "RFC 9110 14.4 length unknown" },
    { PART("bytes 0-4/10", "ETag: \"a\"\nContent-Length: 5"), WANTS_PART, STORABLE_YES, "3.3" },
    { PART("bytes 0-4/10", "ETag: \"a\""), 0, STORABLE_PART, "3.3 nobody asked" },
    { PART("bytes 0-4/10", "ETag: \"a\""), WANTS_PART | NO_VALIDATORS, STORABLE_PART, "3.4" },
    { PART("bytes 0-4/10", "ETag: W/\"a\""), WANTS_PART, STORABLE_PART, "3.4 weak" },
    { PART("bytes 0-4/10", "ETag: a"), WANTS_PART, STORABLE_PART, "RFC 9110 8.8.3 no tag" },
    { PART("bytes 0-4/10", "X: y"), WANTS_PART, STORABLE_PART, "3.4 no validator" },
    { PART("bytes 0-4/10", "Last-Modified: " LAST_WEEK "\nDate: " NOW_DATE), WANTS_PART,
      STORABLE_YES, "RFC 9110 8.8.2.2 a strong date" },
    { PART("bytes 0-4/10", "Last-Modified: " NOW_DATE "\nDate: " NOW_DATE), WANTS_PART,
      STORABLE_PART, "RFC 9110 8.8.2.2 a weak date" },
    { PART("bytes 0-4/10", "Last-Modified: " LAST_WEEK), WANTS_PART, STORABLE_PART,
      "RFC 9110 8.8.2.2 no Date" },
    { PART("bytes 4-9/10", "ETag: \"a\"\nContent-Length: 5"), WANTS_PART, STORABLE_PART,
      "RFC 9110 14.4 six bytes are not five" },
    { PART("bytes 0-10/10", "ETag: \"a\""), WANTS_PART, STORABLE_PART, "RFC 9110 14.4" },
    { PART("bytes 5-4/10", "ETag: \"a\""), WANTS_PART, STORABLE_PART, "RFC 9110 14.4" },
    { PART("bytes */10", "ETag: \"a\""), WANTS_PART, STORABLE_PART, "RFC 9110 14.4 of a 416" },
    { PART("lines 0-4/10", "ETag: \"a\""), WANTS_PART, STORABLE_PART, "RFC 9110 14.1" },
    { "Cache-Control: max-age=60\nETag: \"a\"\nContent-Type: multipart/byteranges; boundary=x",
      WANTS_PART, STORABLE_PART, "RFC 9110 15.3.7.2 several parts" },
    { "Content-Range: bytes 0-4/10\nETag: \"a\"", WANTS_PART, STORABLE_YES,
      "RFC 9110 15.1 as a 200 would be" },
    { "Content-Range: bytes 0-4/10\nETag: \"a\"\nCache-Control: private", WANTS_PART,
      STORABLE_PRIVATE, "5.2.2.7" },
    { "Content-Range: bytes 0-4/10\nETag: \"a\"\nCache-Control: no-store, must-understand, "
      "max-age=5",
      WANTS_PART, STORABLE_YES, "5.2.2.3" },
};

static void test_parts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        ROW_CHECK(
            parts[i].response,
            judge(206, "Range: bytes=0-4", parts[i].response, &usual, IS_GET | parts[i].wishes),
            parts[i].verdict);
        assert_non_null(parts[i].section);
    }
}

static void test_words(void **state)
{
    (void)state;
    for (enum storable s = STORABLE_YES; s < STORABLE_COUNT; s++)
        for (enum storable t = STORABLE_YES; t < s; t++) {
            assert_string_not_equal(storable_word(s), storable_word(t));
            assert_string_not_equal(storable_text(s), storable_text(t));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_other_methods),
        cmocka_unit_test(test_clients_are_not_honoured),
        cmocka_unit_test(test_default_ttl),
        cmocka_unit_test(test_rule_ttl),
        cmocka_unit_test(test_told),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
