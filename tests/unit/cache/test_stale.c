/* tests/unit/cache/test_stale.c: what may be done with an object that is no longer fresh, as rows
 * (RFC 9111 4.2.4, RFC 5861). */
#include "tests/unit/cache/decide_rows.h"

enum { NOW = 1750000000, MAX = CONTROL_MAX_S };

/* One row, asked at one age: all that may be done with it then. */
enum may {
    NOTHING = 0,
    BEHIND = 1,
    ERROR = 2,
    UNREACHABLE = 4,
    BROKEN = ERROR | UNREACHABLE,
    ALL = BEHIND | BROKEN
};

static const struct freshness_policy none = { .default_ttl_s = CONTROL_NONE };
static const struct freshness_policy usual = { .default_ttl_s = CONTROL_NONE,
                                               .stale_if_unreachable_s = 1000,
                                               .keep_s = CONTROL_MAX_S };
static const struct freshness_policy generous = { .default_ttl_s = CONTROL_NONE,
                                                  .stale_while_revalidate_s = 10,
                                                  .stale_if_error_s = 20,
                                                  .stale_if_unreachable_s = 30,
                                                  .keep_s = 100 };
static const struct freshness_policy loud = { .default_ttl_s = CONTROL_NONE,
                                              .stale_while_revalidate_s = 10,
                                              .stale_if_error_s = 20,
                                              .overrides_revalidate = true };

static const struct {
    const char *response, *request; /* Cache-Control; a NULL request: not honoured */
    const struct freshness_policy *policy;
    int32_t age;
    unsigned may;
    const char *section;
} rows[] = {
    /* stale-while-revalidate */
    { "max-age=60, stale-while-revalidate=10", NULL, &none, 60, BEHIND, "RFC 5861 3" },
    { "max-age=60, stale-while-revalidate=10", NULL, &none, 69, BEHIND,
      "RFC 5861 3 the last second" },
    { "max-age=60, stale-while-revalidate=10", NULL, &none, 70, NOTHING, "RFC 5861 3 over" },
    { "max-age=60, stale-while-revalidate=10", NULL, &none, 59, BROKEN, "4.2 fresh" },
    { "max-age=60, stale-while-revalidate=0", NULL, &generous, 60, BROKEN, "RFC 5861 3 none" },
    { "max-age=60, stale-while-revalidate=99999999999", NULL, &none, MAX, BEHIND, "1.2.2" },
    { "max-age=0, stale-while-revalidate=10", NULL, &none, 5, BEHIND, "RFC 5861 3 never fresh" },
    { "max-age=1, stale-while-revalidate=4", NULL, &none, 3, BEHIND, "RFC 5861 3 within" },
    { "max-age=1, stale-while-revalidate=4", NULL, &none, 7, NOTHING, "RFC 5861 3 after" },
    { "max-age=60", NULL, &generous, 65, ALL, "4.2.4 out of band" },
    { "max-age=60", NULL, &generous, 75, BROKEN, "4.2.4 out of band" },
    { "max-age=60", NULL, &generous, 85, UNREACHABLE, "4.2.4 out of band" },
    { "max-age=60", NULL, &generous, 90, NOTHING, "4.2.4 out of band" },
    /* stale-if-error, for no answer at all as well */
    { "max-age=60, stale-if-error=10", NULL, &none, 60, BROKEN, "RFC 5861 4" },
    { "max-age=60, stale-if-error=10", NULL, &none, 69, BROKEN, "RFC 5861 4 the last second" },
    { "max-age=60, stale-if-error=10", NULL, &none, 70, NOTHING, "RFC 5861 4 over" },
    { "max-age=60, stale-if-error=10", NULL, &usual, 70, UNREACHABLE, "4.2.4 disconnected" },
    { "max-age=60", NULL, &usual, 60, UNREACHABLE, "4.2.4 disconnected" },
    { "max-age=60", NULL, &usual, 1059, UNREACHABLE, "4.2.4 disconnected, with an end" },
    { "max-age=60", NULL, &usual, 1060, NOTHING, "4.2.4 disconnected, with an end" },
    { "max-age=60, stale-if-error=2000", NULL, &usual, 1060, BROKEN, "RFC 5861 4 longer" },
    { "max-age=60", NULL, &none, 60, NOTHING, "4.2.4 told not to" },
    /* forbidden */
    { "max-age=60, must-revalidate", NULL, &generous, 61, NOTHING, "5.2.2.2" },
    { "max-age=60, proxy-revalidate", NULL, &generous, 61, NOTHING, "5.2.2.8" },
    { "s-maxage=60", NULL, &generous, 61, NOTHING, "5.2.2.10" },
    { "max-age=60, s-maxage=60, stale-if-error=90, stale-while-revalidate=90", NULL, &generous, 61,
      NOTHING, "5.2.2.10 wins" },
    { "max-age=60, no-cache, stale-if-error=90", NULL, &generous, 61, NOTHING, "5.2.2.4" },
    { "max-age=60, no-cache, stale-if-error=90", NULL, &generous, 1, NOTHING, "5.2.2.4 never" },
    { "max-age=60, no-cache=\"a\"", NULL, &generous, 61, ALL, "5.2.2.4 about that field" },
    { "max-age=60; must-revalidate", NULL, &generous, 1, NOTHING, "5.2.2.2 malformed" },
    /* never fresh, nothing allowed: others had it only after the origin was asked */
    { "", NULL, &generous, 1, NOTHING, "4.3" },
    { "max-age=0", NULL, &generous, 1, NOTHING, "4.3" },
    { "max-age=0, stale-if-error=10", NULL, &generous, 1, BROKEN, "RFC 5861 4 allowed" },
    /* a rule that says so */
    { "max-age=60, must-revalidate", NULL, &loud, 65, ALL, "4.2.4 loudly" },
    { "max-age=60, must-revalidate", NULL, &loud, 75, BROKEN, "4.2.4 loudly" },
    { "max-age=60, must-revalidate", NULL, &loud, 80, NOTHING, "4.2.4 loudly, with an end" },
    { "max-age=60, no-cache", NULL, &loud, 65, NOTHING, "5.2.2.4 holds" },
    /* the client's */
    { "max-age=60", "stale-if-error=10", &none, 65, BROKEN, "RFC 5861 4 a request's" },
    { "max-age=60", "stale-if-error=10", &none, 70, NOTHING, "RFC 5861 4 a request's" },
    { "max-age=60, stale-if-error=30", "stale-if-error=10", &none, 80, BROKEN,
      "RFC 5861 4 either" },
    { "max-age=60, must-revalidate", "stale-if-error=10", &none, 65, NOTHING, "5.2.2.2" },
    { "max-age=60, must-revalidate", "stale-if-error=90", &loud, 85, NOTHING, "5.2.2.2" },
    { "max-age=60, no-cache", "stale-if-error=10", &none, 1, NOTHING, "5.2.2.4" },
    { "max-age=0", "stale-if-error=10", &none, 1, NOTHING, "4.3" },
    { "max-age=60", "stale-while-revalidate=10", &none, 65, NOTHING,
      "RFC 5861 3 an answer's only" },
    /* fresh: a client that asked for a newer one gets it when there is none */
    { "max-age=60", "no-cache", &none, 10, BROKEN, "5.2.1.4 prefers" },
    { "max-age=60, must-revalidate", "max-age=0", &none, 10, BROKEN, "5.2.2.2 once stale" },
};

static void read_row(const char *response, const struct freshness_policy *policy,
                     struct freshness *f)
{
    struct row_headers h;
    struct cache_control control;
    char fields[256];
    snprintf(fields, sizeof fields, "Cache-Control: %s", response);
    const struct headers *list = row_headers(&h, fields);
    cache_control_read(list, HEADER_CACHE_CONTROL, &control);
    cache_freshness_read(list, 200, &control, &(struct response_times){ .now_wall_s = NOW }, policy,
                         f);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct freshness f;
        struct row_headers h;
        struct cache_control asked;
        char fields[256];
        read_row(rows[i].response, rows[i].policy, &f);
        snprintf(fields, sizeof fields, "Cache-Control: %s",
                 rows[i].request == NULL ? "" : rows[i].request);
        cache_control_read_request(row_headers(&h, fields), &asked);
        const struct cache_control *request = rows[i].request == NULL ? NULL : &asked;
        unsigned may =
            (cache_may_refresh_behind(&f, rows[i].age) ? BEHIND : 0u) |
            (cache_may_serve_broken(&f, rows[i].age, STALE_ERROR, request) ? ERROR : 0u) |
            (cache_may_serve_broken(&f, rows[i].age, STALE_UNREACHABLE, request) ? UNREACHABLE
                                                                                 : 0u);
        ROW_CHECK(rows[i].response, may, rows[i].may);
        assert_non_null(rows[i].section);
    }
}

/* By hand, without what freshness.c makes of it: the flags alone forbid. */
static void test_flags_forbid(void **state)
{
    (void)state;
    struct freshness f = { .lifetime_s = 10,
                           .source = LIFETIME_MAX_AGE,
                           .stale_while_revalidate_s = 10,
                           .stale_if_error_s = 10,
                           .stale_if_unreachable_s = 10 };
    assert_true(cache_may_refresh_behind(&f, 12));
    assert_true(cache_may_serve_broken(&f, 12, STALE_ERROR, NULL));
    f.must_revalidate = true;
    assert_false(cache_may_refresh_behind(&f, 12));
    assert_false(cache_may_serve_broken(&f, 12, STALE_ERROR, NULL));
    assert_false(cache_may_serve_broken(&f, 12, STALE_UNREACHABLE, NULL));
    f.stale_by_rule = true;
    assert_true(cache_may_refresh_behind(&f, 12));
    f.must_ask = true;
    assert_false(cache_may_refresh_behind(&f, 12));
    assert_false(cache_may_serve_broken(&f, 12, STALE_UNREACHABLE, NULL));
}

static void test_errors(void **state)
{
    (void)state;
    for (unsigned status = 100; status < 600; status++)
        assert_int_equal(cache_status_is_error((uint16_t)status),
                         status == 500 || status == 502 || status == 503 || status == 504);
}

static const struct {
    const char *response;
    const struct freshness_policy *policy;
    int32_t age;
    bool is_kept;
    const char *why;
} keeps[] = {
    { "max-age=60", &none, 59, true, "fresh" },
    { "max-age=60", &none, 60, false, "nothing said" },
    { "max-age=60", &generous, 60, true, "the longest window and 100 s more" },
    { "max-age=60", &generous, 189, true, "the longest window and 100 s more" },
    { "max-age=60", &generous, 190, false, "the longest window and 100 s more" },
    { "max-age=60, must-revalidate", &generous, 159, true, "no window: 100 s" },
    { "max-age=60, must-revalidate", &generous, 160, false, "no window: 100 s" },
    { "max-age=0", &generous, 99, true, "never fresh: 100 s" },
    { "max-age=0", &generous, 100, false, "never fresh: 100 s" },
    { "max-age=60, stale-if-error=500", &generous, 659, true, "the answer's own window" },
    { "max-age=60, stale-if-error=500", &generous, 660, false, "the answer's own window" },
    { "no-cache", &usual, 99999, true, "as long as there is room" },
    { "max-age=60", &usual, MAX, true, "as long as there is room" },
};

static void test_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(keeps); i++) {
        struct freshness f;
        read_row(keeps[i].response, keeps[i].policy, &f);
        ROW_CHECK(keeps[i].response, cache_is_kept(&f, keeps[i].age), keeps[i].is_kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_flags_forbid),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
