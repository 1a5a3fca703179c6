/* cache/freshness.c: how long a response is fresh and how old it is (RFC 9111 4.2); see decide.h.
 * Pure; any thread. */
#include "cache/decide.h"

#include "base/dates.h"

static int32_t saturate(int64_t seconds)
{
    if (seconds < 0)
        return 0;
    return seconds > CONTROL_MAX_S ? CONTROL_MAX_S : (int32_t)seconds;
}

/* The first field of that id as a date. */
static bool read_date(const struct headers *h, enum header_id id, int64_t now_s, int64_t *seconds)
{
    const struct header *f = headers_find(h, id);
    return f != NULL && date_parse(f->value, now_s, seconds);
}

/* ---- lifetime (RFC 9111 4.2.1) --------------------------------------------------------------- */

/* Expires less Date. One that is no date has passed (5.3); of several, the most restrictive counts.
 */
static int32_t expires_lifetime(const struct headers *response, int64_t date_s, int64_t now_s)
{
    int32_t lifetime = CONTROL_MAX_S;
    for (const struct header *f = headers_find(response, HEADER_EXPIRES); f != NULL;
         f = headers_next(response, f)) {
        int64_t expires_s;
        if (!date_parse(f->value, now_s, &expires_s))
            return 0;
        int32_t this_one = saturate(expires_s - date_s);
        if (this_one < lifetime)
            lifetime = this_one;
    }
    return lifetime;
}

/* 4.2.2: a tenth of the time since Last-Modified. */
static int32_t heuristic_lifetime(const struct headers *response, int64_t date_s,
                                  const struct response_times *times,
                                  const struct freshness_policy *policy)
{
    int64_t modified_s;
    if (!read_date(response, HEADER_LAST_MODIFIED, times->now_wall_s, &modified_s))
        return 0;
    int32_t lifetime = saturate((date_s - modified_s) / 10);
    return lifetime < policy->heuristic_max_s ? lifetime : policy->heuristic_max_s;
}

static bool may_guess(uint16_t status, const struct cache_control *control,
                      const struct freshness_policy *policy)
{
    return policy->has_heuristic && (control->is_public || cache_status_is_heuristic(status));
}

/* ---- age (RFC 9111 4.2.3) -------------------------------------------------------------------- */

/* 5.1: the first member of a list; anything but digits is ignored. Above 2^31 - 1 it stays there
 * (1.2.2). */
static int32_t age_value(const struct headers *response)
{
    struct slice rest = headers_value(response, HEADER_AGE), first;
    if (!slice_next_in_list(&rest, &first))
        return 0;
    int64_t sum = 0;
    for (size_t i = 0; i < first.len; i++) {
        if (first.ptr[i] < '0' || first.ptr[i] > '9')
            return 0;
        sum = saturate(sum * 10 + (first.ptr[i] - '0'));
    }
    return (int32_t)sum;
}

/* The conservative sum: also when a cache on the way did not say how old its answer was. */
static int32_t corrected_initial_age(const struct headers *response, int64_t date_s,
                                     const struct response_times *times)
{
    int32_t apparent = saturate(times->now_wall_s - date_s);
    int32_t corrected = saturate((int64_t)age_value(response) + saturate(times->delay_s));
    return apparent > corrected ? apparent : corrected;
}

void cache_freshness_read(const struct headers *response, uint16_t status,
                          const struct cache_control *control, const struct response_times *times,
                          const struct freshness_policy *policy, struct freshness *out)
{
    int64_t date_s;
    if (!read_date(response, HEADER_DATE, times->now_wall_s, &date_s))
        date_s = times->now_wall_s; /* RFC 9110 6.6.1: the time it was received stands for it */

    *out = (struct freshness){
        .initial_age_s = corrected_initial_age(response, date_s, times),
        .must_ask = control->no_cache,
        .must_revalidate = control->must_revalidate || control->proxy_revalidate ||
                           control->s_maxage_s != CONTROL_NONE, /* 5.2.2.10 */
    };
    if (control->s_maxage_s != CONTROL_NONE) {
        out->source = LIFETIME_S_MAXAGE;
        out->lifetime_s = control->s_maxage_s;
    } else if (control->max_age_s != CONTROL_NONE) {
        out->source = LIFETIME_MAX_AGE;
        out->lifetime_s = control->max_age_s;
    } else if (headers_has(response, HEADER_EXPIRES)) {
        out->source = LIFETIME_EXPIRES;
        out->lifetime_s = expires_lifetime(response, date_s, times->now_wall_s);
    } else if (policy->default_ttl_s != CONTROL_NONE) {
        out->source = LIFETIME_DEFAULT;
        out->lifetime_s = saturate(policy->default_ttl_s);
    } else if (may_guess(status, control, policy)) {
        out->lifetime_s = heuristic_lifetime(response, date_s, times, policy);
        out->source = out->lifetime_s > 0 ? LIFETIME_HEURISTIC : LIFETIME_NONE;
    }
}

int32_t cache_age_s(const struct freshness *f, int64_t received_ms, int64_t now_ms)
{
    return saturate((int64_t)f->initial_age_s + saturate((now_ms - received_ms) / 1000));
}

/* ---- is it? ---------------------------------------------------------------------------------- */

/* 5.2.1.2: what the client would take, if a stale answer may be given at all (4.2.4). A response
 * that never had a lifetime is kept for validation only. */
static bool takes_stale(const struct freshness *f, int32_t age_s,
                        const struct cache_control *request)
{
    if (request == NULL || request->max_stale_s == CONTROL_NONE)
        return false;
    if (f->must_revalidate || f->source == LIFETIME_NONE)
        return false;
    return (int64_t)age_s - f->lifetime_s <= request->max_stale_s;
}

/* 5.2.1: a limit on the age (0 is a reload: ask, whatever the age), time left that the client
 * wants, or no-cache. */
static bool client_asks(const struct freshness *f, int32_t age_s,
                        const struct cache_control *request)
{
    if (request->no_cache)
        return true;
    if (request->max_age_s != CONTROL_NONE &&
        (request->max_age_s == 0 || age_s > request->max_age_s))
        return true;
    return request->min_fresh_s != CONTROL_NONE &&
           (int64_t)f->lifetime_s - age_s < request->min_fresh_s;
}

enum fresh_verdict cache_is_fresh(const struct freshness *f, int32_t age_s,
                                  const struct cache_control *request)
{
    if (f->must_ask)
        return FRESH_MUST_ASK;
    if (age_s >= f->lifetime_s && !takes_stale(f, age_s, request))
        return FRESH_EXPIRED;
    if (request != NULL && client_asks(f, age_s, request))
        return FRESH_CLIENT_ASKED;
    return FRESH_YES;
}
