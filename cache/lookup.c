/* cache/lookup.c: from what the store holds to what a request is answered with; see policy.h.
 * Pure; any thread.
 *
 * The event path acts on this, and explain tells it: both ask here, so that they cannot differ.
 */
#include "cache/policy.h"

struct verdict {
    enum lookup_way way;
    enum outcome outcome;
    enum reason reason;
};

static struct verdict expired(const struct lookup_facts *f)
{
    const struct verdict refresh = { LOOKUP_SERVE_AND_REFRESH, OUTCOME_STALE, REASON_REFRESHING },
                         paused = { LOOKUP_SERVE, OUTCOME_STALE, REASON_PAUSED };
    bool may_refresh_behind = cache_may_refresh_behind(f->freshness, f->age_s);
    /* the pause begins only after a failure for which this object may stand in (policy.h), so that
     * the widest of the two times counts */
    if (f->is_paused &&
        (may_refresh_behind ||
         cache_may_serve_broken(f->freshness, f->age_s, STALE_UNREACHABLE, f->request)))
        return paused;
    if (may_refresh_behind)
        return refresh;
    return (struct verdict){ LOOKUP_REVALIDATE, OUTCOME_MISS,
                             f->is_outdated ? REASON_OUTDATED : REASON_EXPIRED };
}

static struct verdict found(const struct lookup_facts *f)
{
    /* past cache.keep, or a part without the bytes that are asked for: as if it were not there */
    if (!cache_is_kept(f->freshness, f->age_s) || f->lacks_part)
        return (struct verdict){ LOOKUP_FETCH, OUTCOME_MISS, REASON_ABSENT };
    switch (cache_is_fresh(f->freshness, f->age_s, f->request)) {
    case FRESH_YES:
        if (f->age_s >= f->freshness->lifetime_s) /* RFC 9111 5.2.1.2 */
            return (struct verdict){ LOOKUP_SERVE, OUTCOME_STALE, REASON_CLIENT_TAKES_STALE };
        return (struct verdict){ LOOKUP_SERVE, OUTCOME_HIT, REASON_FRESH };
    case FRESH_EXPIRED: return expired(f);
    case FRESH_MUST_ASK:
        return (struct verdict){ LOOKUP_REVALIDATE, OUTCOME_MISS, REASON_MUST_ASK };
    case FRESH_CLIENT_ASKED:
        return (struct verdict){ LOOKUP_REVALIDATE, OUTCOME_MISS, REASON_CLIENT_ASKED };
    }
    UNREACHABLE();
}

static struct verdict looked_up(const struct lookup_facts *f)
{
    switch (f->found) {
    case CACHE_FOUND: return found(f);
    case CACHE_OTHER_VARIANT:
        return (struct verdict){ LOOKUP_FETCH, OUTCOME_MISS, REASON_OTHER_VARIANT };
    case CACHE_MISS: return (struct verdict){ LOOKUP_FETCH, OUTCOME_MISS, REASON_ABSENT };
    }
    UNREACHABLE();
}

enum lookup_way cache_lookup_decide(const struct lookup_facts *f, enum outcome *outcome,
                                    enum reason *reason)
{
    struct verdict v = looked_up(f);
    bool asks_origin = v.way == LOOKUP_FETCH || v.way == LOOKUP_REVALIDATE;
    if (asks_origin && f->request != NULL && f->request->only_if_cached) /* RFC 9111 5.2.1.7 */
        v = (struct verdict){ LOOKUP_GATEWAY_TIMEOUT, OUTCOME_LOCAL, REASON_ONLY_IF_CACHED };
    else if (asks_origin && f->is_uncacheable) /* waiting for another's fill would be for nothing */
        v = (struct verdict){ LOOKUP_FETCH, OUTCOME_PASS, REASON_UNCACHEABLE };
    *outcome = v.outcome;
    *reason = v.reason;
    return v.way;
}

/* ---- whether what is found is of use to this request ------------------------------------------
 */

bool cache_object_has_coding_for(const struct object_facts *o, const struct headers *request)
{
    return o->content_encoding.len == 0 || o->selecting.len == 0 ||
           cache_coding_is_acceptable(o->content_encoding, request);
}

bool cache_object_has_part_for(const struct object_facts *o, const struct headers *request,
                               int64_t now_wall_s)
{
    struct content_range wanted;
    if (o->status != 206 || cache_facts_are_sliced(o))
        return true;
    return cache_range_of(request, o->part.complete, &wanted) && wanted.first >= o->part.first &&
           wanted.last <= o->part.last && cache_if_range_holds(request, &o->validators, now_wall_s);
}
