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
static void read_age(const struct headers *response, int64_t date_s,
                     const struct response_times *times, struct freshness *out)
{
    out->apparent_age_s = saturate(times->now_wall_s - date_s);
    out->age_value_s = age_value(response);
    out->delay_s = saturate(times->delay_s);
    int32_t corrected = saturate((int64_t)out->age_value_s + out->delay_s);
    out->initial_age_s = out->apparent_age_s > corrected ? out->apparent_age_s : corrected;
}

/* ---- which lifetime -------------------------------------------------------------------------- */

static void set_lifetime(struct freshness *out, enum lifetime_source source, int32_t lifetime_s)
{
    out->source = source;
    out->lifetime_s = lifetime_s;
}

/* Counted from when the answer came, not from when somebody made it: an operator who writes 60 s
 * means 60 s here, also behind another cache that has had it for an hour. */
static void set_rule_lifetime(struct freshness *out, int32_t ttl_s)
{
    int32_t lifetime_s = ttl_s <= 0 ? 0 : saturate((int64_t)ttl_s + out->initial_age_s);
    set_lifetime(out, LIFETIME_RULE, lifetime_s);
}

static void read_lifetime(const struct headers *response, uint16_t status,
                          const struct cache_control *control, const struct response_times *times,
                          const struct freshness_policy *policy, int64_t date_s,
                          struct freshness *out)
{
    bool has_expires = !policy->ignores_origin && !policy->ignores_expires &&
                       headers_has(response, HEADER_EXPIRES);
    if (policy->has_ttl) {
        set_rule_lifetime(out, policy->ttl_s);
    } else if (control->s_maxage_s != CONTROL_NONE) {
        set_lifetime(out, LIFETIME_S_MAXAGE, control->s_maxage_s);
    } else if (control->max_age_s != CONTROL_NONE) {
        set_lifetime(out, LIFETIME_MAX_AGE, control->max_age_s);
    } else if (has_expires) {
        set_lifetime(out, LIFETIME_EXPIRES, expires_lifetime(response, date_s, times->now_wall_s));
    } else if (policy->default_ttl_s != CONTROL_NONE) {
        set_lifetime(out, LIFETIME_DEFAULT, saturate(policy->default_ttl_s));
    } else if (may_guess(status, control, policy)) {
        int32_t guess_s = heuristic_lifetime(response, date_s, times, policy);
        set_lifetime(out, guess_s > 0 ? LIFETIME_HEURISTIC : LIFETIME_NONE, guess_s);
    }
}

const char *lifetime_word(enum lifetime_source s)
{
    switch (s) {
    case LIFETIME_NONE: return "none";
    case LIFETIME_S_MAXAGE: return "s-maxage";
    case LIFETIME_MAX_AGE: return "max-age";
    case LIFETIME_EXPIRES: return "expires";
    case LIFETIME_DEFAULT: return "default";
    case LIFETIME_HEURISTIC: return "heuristic";
    case LIFETIME_RULE: return "rule";
    }
    UNREACHABLE();
}

/* ---- the clocks after it (RFC 9111 4.2.4, RFC 5861) ------------------------------------------ */

/* What the answer says itself; else the policy's. The policy is about answers that could be given
 * without asking for a while, and then no longer. One that was never fresh (max-age=0, or nothing
 * said and an ETag) is kept to be asked about: each client had it confirmed with its own cookies,
 * so it is nobody else's unless its author says so. */
static int32_t window(int32_t said_s, int32_t policy_s, const struct freshness *f)
{
    if (said_s != CONTROL_NONE)
        return said_s;
    return f->lifetime_s > 0 ? saturate(policy_s) : 0;
}

static void read_windows(const struct cache_control *control, const struct freshness_policy *policy,
                         struct freshness *out)
{
    int32_t behind_s = control->stale_while_revalidate_s, error_s = control->stale_if_error_s;
    out->stale_by_rule = out->must_revalidate && policy->overrides_revalidate;
    if (out->must_ask || (out->must_revalidate && !out->stale_by_rule))
        return; /* 4.2.4: forbidden outright */
    if (out->stale_by_rule)
        behind_s = error_s = CONTROL_NONE; /* beside must-revalidate these say nothing */
    out->stale_while_revalidate_s = window(behind_s, policy->stale_while_revalidate_s, out);
    out->stale_if_error_s = window(error_s, policy->stale_if_error_s, out);
    out->stale_if_unreachable_s = window(CONTROL_NONE, policy->stale_if_unreachable_s, out);
}

static int32_t longest_window(const struct freshness *f)
{
    int32_t longest = f->stale_while_revalidate_s;
    if (f->stale_if_error_s > longest)
        longest = f->stale_if_error_s;
    return f->stale_if_unreachable_s > longest ? f->stale_if_unreachable_s : longest;
}

void cache_freshness_read(const struct headers *response, uint16_t status,
                          const struct cache_control *control, const struct response_times *times,
                          const struct freshness_policy *policy, struct freshness *out)
{
    int64_t date_s;
    if (!read_date(response, HEADER_DATE, times->now_wall_s, &date_s))
        date_s = times->now_wall_s; /* RFC 9110 6.6.1: the time it was received stands for it */

    *out = (struct freshness){
        .must_ask = control->no_cache,
        .must_revalidate = cache_control_forbids_stale(control),
    };
    read_age(response, date_s, times, out);
    read_lifetime(response, status, control, times, policy, date_s, out);
    read_windows(control, policy, out);
    out->keep_s = saturate((int64_t)longest_window(out) + saturate(policy->keep_s));
}

int32_t cache_age_s(const struct freshness *f, int64_t received_ms, int64_t now_ms)
{
    return saturate((int64_t)f->initial_age_s + saturate((now_ms - received_ms) / 1000));
}

/* ---- is it? ---------------------------------------------------------------------------------- */

/* 5.2.1.2: what the client would take, if a stale answer may be given at all (4.2.4). A response
 * that was never fresh is kept for validation only. */
static bool takes_stale(const struct freshness *f, int32_t age_s,
                        const struct cache_control *request)
{
    if (request == NULL || request->max_stale_s == CONTROL_NONE)
        return false;
    if (f->must_revalidate || f->lifetime_s == 0)
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
