/* tests/unit/cache/test_lookup.c: what a request is answered with from what is stored, as rows
 * (RFC 9111 4, RFC 5861). */
#include "tests/unit/cache/decide_rows.h"

#include "cache/policy.h"

/* The stored object: what is not said is as with `Cache-Control: max-age=60`, kept for as long as
 * there is room. */
#define OBJECT(...)                                                                                \
    {                                                                                              \
        .lifetime_s = 60, .source = LIFETIME_MAX_AGE, .keep_s = CONTROL_MAX_S, __VA_ARGS__         \
    }
enum { FOUND = CACHE_FOUND, OTHER = CACHE_OTHER_VARIANT, NOTHING = CACHE_MISS };
enum { OUTDATED = 1, PAUSED = 2, PART = 4, UNCACHEABLE = 8 };

static const struct freshness plain = OBJECT(),
                              while_revalidate = OBJECT(.stale_while_revalidate_s = 30),
                              if_error =
                                  OBJECT(.stale_if_error_s = 30, .stale_if_unreachable_s = 30),
                              must_revalidate =
                                  OBJECT(.must_revalidate = true, .stale_while_revalidate_s = 30,
                                         .stale_if_unreachable_s = 30),
                              no_cache = OBJECT(.must_ask = true, .stale_while_revalidate_s = 30),
                              kept_briefly = { .lifetime_s = 60,
                                               .source = LIFETIME_MAX_AGE,
                                               .keep_s = 10 };

static const struct row {
    const char *what;
    int found, age_s;
    const struct freshness *object;
    unsigned flags;
    const char *asks; /* Cache-Control of a request that is honoured; NULL: not honoured */
    enum lookup_way way;
    enum outcome outcome;
    enum reason reason;
} rows[] = {
    /* nothing to serve */
    { "nothing stored", NOTHING, 0, NULL, 0, NULL, LOOKUP_FETCH, OUTCOME_MISS, REASON_ABSENT },
    { "other variants only (4.1)", OTHER, 0, NULL, 0, NULL, LOOKUP_FETCH, OUTCOME_MISS,
      REASON_OTHER_VARIANT },
    { "remembered as uncacheable", NOTHING, 0, NULL, UNCACHEABLE, NULL, LOOKUP_FETCH, OUTCOME_PASS,
      REASON_UNCACHEABLE },
    { "other variants, and uncacheable", OTHER, 0, NULL, UNCACHEABLE, NULL, LOOKUP_FETCH,
      OUTCOME_PASS, REASON_UNCACHEABLE },
    /* fresh (4.2) */
    { "new", FOUND, 0, &plain, 0, NULL, LOOKUP_SERVE, OUTCOME_HIT, REASON_FRESH },
    { "in its last second", FOUND, 59, &plain, 0, NULL, LOOKUP_SERVE, OUTCOME_HIT, REASON_FRESH },
    { "fresh, whatever is remembered", FOUND, 59, &plain, UNCACHEABLE, NULL, LOOKUP_SERVE,
      OUTCOME_HIT, REASON_FRESH },
    { "fresh, whatever failed", FOUND, 59, &plain, PAUSED, NULL, LOOKUP_SERVE, OUTCOME_HIT,
      REASON_FRESH },
    { "at its lifetime it is stale", FOUND, 60, &plain, 0, NULL, LOOKUP_REVALIDATE, OUTCOME_MISS,
      REASON_EXPIRED },
    { "a soft purge", FOUND, 60, &plain, OUTDATED, NULL, LOOKUP_REVALIDATE, OUTCOME_MISS,
      REASON_OUTDATED },
    { "expired and uncacheable since", FOUND, 60, &plain, UNCACHEABLE, NULL, LOOKUP_FETCH,
      OUTCOME_PASS, REASON_UNCACHEABLE },
    { "no-cache, though fresh (5.2.2.4)", FOUND, 1, &no_cache, 0, NULL, LOOKUP_REVALIDATE,
      OUTCOME_MISS, REASON_MUST_ASK },
    { "no-cache is never served in a pause", FOUND, 61, &no_cache, PAUSED, NULL, LOOKUP_REVALIDATE,
      OUTCOME_MISS, REASON_MUST_ASK },
    /* past cache.keep */
    { "still kept", FOUND, 69, &kept_briefly, 0, NULL, LOOKUP_REVALIDATE, OUTCOME_MISS,
      REASON_EXPIRED },
    { "no longer kept", FOUND, 3600, &kept_briefly, 0, NULL, LOOKUP_FETCH, OUTCOME_MISS,
      REASON_ABSENT },
    { "another part than is asked for (3.3)", FOUND, 1, &plain, PART, NULL, LOOKUP_FETCH,
      OUTCOME_MISS, REASON_ABSENT },
    /* stale-while-revalidate (RFC 5861 3) */
    { "stale, refreshed behind", FOUND, 60, &while_revalidate, 0, NULL, LOOKUP_SERVE_AND_REFRESH,
      OUTCOME_STALE, REASON_REFRESHING },
    { "the same after a soft purge", FOUND, 60, &while_revalidate, OUTDATED, NULL,
      LOOKUP_SERVE_AND_REFRESH, OUTCOME_STALE, REASON_REFRESHING },
    { "the last refresh failed", FOUND, 60, &while_revalidate, PAUSED, NULL, LOOKUP_SERVE,
      OUTCOME_STALE, REASON_PAUSED },
    { "after that time", FOUND, 3600, &while_revalidate, 0, NULL, LOOKUP_REVALIDATE, OUTCOME_MISS,
      REASON_EXPIRED },
    { "must-revalidate forbids it (5.2.2.2)", FOUND, 60, &must_revalidate, 0, NULL,
      LOOKUP_REVALIDATE, OUTCOME_MISS, REASON_EXPIRED },
    { "must-revalidate, in a pause", FOUND, 60, &must_revalidate, PAUSED, NULL, LOOKUP_REVALIDATE,
      OUTCOME_MISS, REASON_EXPIRED },
    /* stale-if-error (RFC 5861 4): only once something failed */
    { "no failure yet", FOUND, 61, &if_error, 0, NULL, LOOKUP_REVALIDATE, OUTCOME_MISS,
      REASON_EXPIRED },
    { "a failure a moment ago", FOUND, 61, &if_error, PAUSED, NULL, LOOKUP_SERVE, OUTCOME_STALE,
      REASON_PAUSED },
    { "a failure, and too old", FOUND, 3600, &if_error, PAUSED, NULL, LOOKUP_REVALIDATE,
      OUTCOME_MISS, REASON_EXPIRED },
    /* what clients ask for (5.2.1), where it is honoured */
    { "honoured, asks nothing", FOUND, 10, &plain, 0, "", LOOKUP_SERVE, OUTCOME_HIT, REASON_FRESH },
    { "a reload", FOUND, 10, &plain, 0, "no-cache", LOOKUP_REVALIDATE, OUTCOME_MISS,
      REASON_CLIENT_ASKED },
    { "max-age=5 at 10 s", FOUND, 10, &plain, 0, "max-age=5", LOOKUP_REVALIDATE, OUTCOME_MISS,
      REASON_CLIENT_ASKED },
    { "min-fresh=55 at 10 s", FOUND, 10, &plain, 0, "min-fresh=55", LOOKUP_REVALIDATE, OUTCOME_MISS,
      REASON_CLIENT_ASKED },
    { "max-stale takes it", FOUND, 70, &plain, 0, "max-stale=20", LOOKUP_SERVE, OUTCOME_STALE,
      REASON_CLIENT_TAKES_STALE },
    { "max-stale does not", FOUND, 90, &plain, 0, "max-stale=20", LOOKUP_REVALIDATE, OUTCOME_MISS,
      REASON_EXPIRED },
    { "only-if-cached and there", FOUND, 10, &plain, 0, "only-if-cached", LOOKUP_SERVE, OUTCOME_HIT,
      REASON_FRESH },
    { "only-if-cached and absent (5.2.1.7)", NOTHING, 0, NULL, 0, "only-if-cached",
      LOOKUP_GATEWAY_TIMEOUT, OUTCOME_LOCAL, REASON_ONLY_IF_CACHED },
    { "only-if-cached and expired", FOUND, 60, &plain, 0, "only-if-cached", LOOKUP_GATEWAY_TIMEOUT,
      OUTCOME_LOCAL, REASON_ONLY_IF_CACHED },
    { "only-if-cached and uncacheable", NOTHING, 0, NULL, UNCACHEABLE, "only-if-cached",
      LOOKUP_GATEWAY_TIMEOUT, OUTCOME_LOCAL, REASON_ONLY_IF_CACHED },
    { "only-if-cached takes what may be stale", FOUND, 60, &while_revalidate, 0, "only-if-cached",
      LOOKUP_SERVE_AND_REFRESH, OUTCOME_STALE, REASON_REFRESHING },
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const struct row *r = &rows[i];
        struct cache_control asks;
        struct row_headers h;
        char line[128];
        snprintf(line, sizeof line, "Cache-Control: %s", r->asks == NULL ? "" : r->asks);
        cache_control_read(row_headers(&h, line), HEADER_CACHE_CONTROL, &asks);
        struct lookup_facts facts = { .found = (enum cache_found)r->found,
                                      .freshness = r->object,
                                      .age_s = r->age_s,
                                      .is_outdated = (r->flags & OUTDATED) != 0,
                                      .is_paused = (r->flags & PAUSED) != 0,
                                      .lacks_part = (r->flags & PART) != 0,
                                      .is_uncacheable = (r->flags & UNCACHEABLE) != 0,
                                      .request = r->asks == NULL ? NULL : &asks };
        enum outcome outcome = OUTCOME_COUNT;
        enum reason reason = REASON_COUNT;
        ROW_CHECK(r->what, cache_lookup_decide(&facts, &outcome, &reason), r->way);
        ROW_CHECK(r->what, outcome, r->outcome);
        ROW_CHECK(r->what, reason, r->reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
