/* cache/stale.c: what may be done with an object that is no longer fresh (RFC 9111 4.2.4, RFC
 * 5861); see decide.h. Pure; any thread.
 *
 * Three clocks run from the end of the lifetime: stale-while-revalidate, in which it is given at
 * once and refreshed behind; stale-if-error and stale-if-unreachable, in which it is given when the
 * origin cannot give a better one; and keep, in which it is asked about. freshness.c sets them,
 * with what forbids them taken into account.
 */
#include "cache/decide.h"

static bool is_stale_allowed(const struct freshness *f)
{
    return !f->must_ask && (!f->must_revalidate || f->stale_by_rule);
}

/* Seconds since the end of the lifetime; in the first of them it is 0. */
static bool is_within(const struct freshness *f, int32_t age_s, int32_t window_s)
{
    return (int64_t)age_s - f->lifetime_s < window_s;
}

/* RFC 5861 3. */
bool cache_may_refresh_behind(const struct freshness *f, int32_t age_s)
{
    return is_stale_allowed(f) && age_s >= f->lifetime_s &&
           is_within(f, age_s, f->stale_while_revalidate_s);
}

/* RFC 5861 4: an error is a status, and "any situation that would result in" one: what may be
 * served for an error may be served when there is no answer at all. For that, nobody's leave is
 * asked (RFC 9111 4.2.4), but an end is set. */
static int32_t broken_window(const struct freshness *f, enum stale_cause why,
                             const struct cache_control *request)
{
    int32_t window_s = f->stale_if_error_s;
    if (why == STALE_UNREACHABLE && f->stale_if_unreachable_s > window_s)
        window_s = f->stale_if_unreachable_s;
    /* the client's own counts where the origin forbids nothing; not for what was never fresh
     * (freshness.c) */
    bool may_extend = request != NULL && !f->must_revalidate && f->lifetime_s > 0;
    return may_extend && request->stale_if_error_s > window_s ? request->stale_if_error_s
                                                              : window_s;
}

bool cache_may_serve_broken(const struct freshness *f, int32_t age_s, enum stale_cause why,
                            const struct cache_control *request)
{
    if (f->must_ask)
        return false;
    if (age_s < f->lifetime_s)
        return true; /* a client asked for a newer one; the one it gets is good */
    return is_stale_allowed(f) && is_within(f, age_s, broken_window(f, why, request));
}

bool cache_status_is_error(uint16_t status)
{
    return status == 500 || status == 502 || status == 503 || status == 504;
}

bool cache_is_kept(const struct freshness *f, int32_t age_s)
{
    return f->keep_s == CONTROL_MAX_S || is_within(f, age_s, f->keep_s);
}
