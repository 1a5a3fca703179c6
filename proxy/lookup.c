/* proxy/lookup.c: the store: what is there, the fill that fetches what is not, and what is there
 * when the origin fails.
 *
 *   LOOKUP --serve-------------------------------------------> ANSWER_OBJECT
 *     |    --serve and refresh: a fill that nobody waits for----^
 *     |--fetch, revalidate--> FILL --> JOIN --its object--------^
 *     |                         |        |--fault, error: what is stored, if it may be used--^ else
 * REFUSE |                         |        '--cannot be shared--> PASS | '--too many wait for it
 * already--> PASS
 *     '--remembered as uncacheable, HEAD--> PASS                    a directory --> FILE
 *
 * What is stored and not served at once stays in x->stale, by reference, until the exchange ends.
 */
#include "base/clock.h"
#include "proxy/exchange.h"
#include "proxy/fetch.h"

enum { PART_WORTH_ASKING = 1 << 20 };

/* ---- what is stored -------------------------------------------------------------------------- */

/* Of a stored part (206): whether the bytes that are asked for are among its own. HEAD asks for no part (RFC 9110 14.2). */
static bool has_part(const struct exchange *x, const struct object_facts *facts)
{
    bool is_part = facts->status == 206 && !cache_facts_are_sliced(facts);
    return !(is_part && x->is_head) &&
           cache_object_has_part_for(facts, &x->request.headers, clock_wall_s());
}

/* The decision, with the object that it is about in x->object. Within a read section. */
static enum lookup_way decide(struct exchange *x, enum outcome *outcome, enum reason *reason)
{
    struct cache *cache = x->worker->house->cache;
    struct cache_control asked;
    struct lookup_facts facts = { .found =
                                      cache_find(cache, &x->key, &x->request.headers, &x->object) };
    bool is_fresh = false;
    if (x->snapshot->config->honours_client) {
        cache_control_read_request(&x->request.headers, &asked);
        facts.request = &asked;
    }
    if (facts.found == CACHE_FOUND) {
        const struct object_facts *o = cache_object_facts(x->object);
        if (!cache_object_has_coding_for(o, &x->request.headers)) { /* nor may the origin be asked
                                                                       whether it still holds */
            facts.found = CACHE_OTHER_VARIANT;
            x->object = NULL;
        } else {
            facts.freshness = &o->freshness;
            facts.age_s = x->age_s = cache_object_age_s(x->object, x->begun_ms);
            is_fresh = facts.age_s < o->freshness.lifetime_s && !o->freshness.must_ask;
            facts.is_outdated = !is_fresh && cache_object_outdated_ms(x->object) != 0;
            facts.is_paused = !is_fresh && cache_object_is_paused(x->object, x->begun_ms);
            facts.lacks_part = o->status == 206 && !has_part(x, o);
        }
    }
    if (!is_fresh && x->plan.origin->kind == ORIGIN_SERVERS)
        facts.is_uncacheable = cache_is_uncacheable(cache, &x->key, x->begun_ms);
    return cache_lookup_decide(&facts, outcome, reason);
}

/* A fill behind the clients: one for each object, over all workers. */
static void refresh_behind(struct exchange *x)
{
    struct cache_fill *fill;
    if (!cache_object_claim_refresh(x->object, x->begun_ms))
        return;
    if (cache_fill_begin_behind(x->worker->house->cache, &x->key, &x->request.headers, x->object,
                                &fill))
        fetch_behind(x, fill);
}

static void give_up_stale(struct exchange *x)
{
    if (x->stale != NULL)
        cache_object_unref(&x->stale);
}

/* Out of the read section, with what was found in x->stale. */
static void keep_stale(struct exchange *x)
{
    give_up_stale(x);
    exchange_leave_read_section(x);
    if (x->owns_object)
        x->stale = x->object;
    x->owns_object = false;
    x->object = NULL;
    if (x->stale == NULL || x->reason != REASON_ABSENT)
        return;
    const struct object_facts *facts = cache_object_facts(x->stale);
    if (facts->status != 206 || !cache_is_kept(&facts->freshness, x->age_s))
        give_up_stale(x); /* past cache.keep: as if it were not there */
}

static bool is_part(const struct cache_object *o)
{
    const struct object_facts *facts = cache_object_facts(o);
    return facts->status == 206 && !cache_facts_are_sliced(facts);
}

/* Whether the client's range goes to the origin as it is: what comes is kept as a part (tee.c). By configuration, or
 * because a part that is stored tells that the whole is too large to be fetched for it. */
static bool passes_range(const struct exchange *x)
{
    const struct config *c = x->snapshot->config;
    const struct header *range = headers_find(&x->request.headers, HEADER_RANGE);
    if (x->is_head || range == NULL || range->next != 0 ||
        !slice_has_prefix_nocase(range->value, SLICE("bytes=")))
        return false;
    if (x->stale != NULL && !is_part(x->stale))
        return false; /* the origin is asked whether that still holds */
    if (c->range_whole_bytes == 0)
        return true;
    return x->stale != NULL && c->slice_bytes == 0 &&
           cache_object_facts(x->stale)->part.complete > (int64_t)c->range_whole_bytes;
}

enum next step_lookup(struct exchange *x)
{
    cache_read_begin();
    x->in_read_section = true;
    enum lookup_way way = decide(x, &x->outcome, &x->reason);
    switch (way) {
    case LOOKUP_SERVE: return exchange_go(x, STEP_ANSWER_OBJECT);
    case LOOKUP_SERVE_AND_REFRESH: refresh_behind(x); return exchange_go(x, STEP_ANSWER_OBJECT);
    case LOOKUP_FETCH:
    case LOOKUP_REVALIDATE:
    case LOOKUP_GATEWAY_TIMEOUT: break;
    }
    x->looked = x->reason;
    keep_stale(x);
    if (way == LOOKUP_GATEWAY_TIMEOUT)
        return exchange_refuse(x, FAULT_ONLY_IF_CACHED);
    if (x->plan.origin->kind == ORIGIN_FILES)
        return exchange_go(x, STEP_FILE);
    if (x->outcome == OUTCOME_PASS ||
        x->is_head) /* of HEAD there is nothing to make an object of */
        return exchange_go(x, STEP_PASS);
    if (passes_range(x)) {
        x->passes_range = true;
        x->outcome = OUTCOME_PASS; /* unless it is kept */
        return exchange_go(x, STEP_PASS);
    }
    return exchange_go(x, STEP_FILL);
}

/* ---- a fill ---------------------------------------------------------------------------------- */

/* A fill that ended between our look at the store and our own beginning may have left what we want.
 */
static bool is_stored_meanwhile(struct exchange *x)
{
    enum outcome outcome;
    enum reason reason;
    int32_t age_s = x->age_s;
    cache_read_begin();
    enum lookup_way way = decide(x, &outcome, &reason);
    x->object = NULL;
    x->age_s = age_s;
    cache_read_end();
    return way == LOOKUP_SERVE && outcome == OUTCOME_HIT;
}

/* What the fill may ask the origin about: a whole object. Of a part nothing would come of a 304. */
static struct cache_object *asked_about(struct exchange *x)
{
    return x->stale != NULL && !is_part(x->stale) ? x->stale : NULL;
}

enum next step_fill(struct exchange *x)
{
    struct cache_fill *fill = NULL;
    x->begun = cache_fill_begin(x->worker->house->cache, &x->key, &x->request.headers,
                                asked_about(x), &x->reader, &fill);
    if (x->begun == FILL_FULL) {
        x->outcome = OUTCOME_PASS;
        x->reason = REASON_QUEUE_FULL;
        return exchange_go(x, STEP_PASS);
    }
    x->step = STEP_JOIN; /* before the fetch begins: it may end at once and look at us */
    stat_add(&x->worker->stats->followers_live, 1);
    if (x->begun == FILL_FOLLOW) {
        x->outcome = OUTCOME_COLLAPSED;
        stat_add(&x->worker->stats->fill_joined, 1);
        return NEXT_STEP;
    }
    if (is_stored_meanwhile(x)) {
        cache_fill_fail(fill, REASON_CLIENT_LEFT); /* whoever joined looks again, as we do */
        exchange_detach_reader(x);
        cache_fill_done(&fill);
        return exchange_go(x, STEP_LOOKUP);
    }
    x->outcome = OUTCOME_MISS;
    fetch_fill(x, fill);
    return NEXT_STEP;
}

/* The fill's answer cannot be shared: the leader goes on with the fetch that it has, the others
 * fetch for themselves. */
static enum next part_from_fill(struct exchange *x)
{
    exchange_detach_reader(x);
    if (x->begun != FILL_LEAD)
        x->reason = REASON_UNCACHEABLE;
    else if (x->unstored != STORABLE_YES)
        x->reason = storable_reason(x->unstored);
    x->outcome = OUTCOME_PASS;
    if (x->fetch == NULL)
        return exchange_go(x, STEP_PASS);
    const struct h1_response *r = fetch_response(x->fetch);
    bool is_large = r->framing != FRAMING_LENGTH || r->length > PART_WORTH_ASKING ||
                    r->length > x->snapshot->config->range_whole_bytes;
    if ((r->status == 304 && fetch_is_conditional(x->fetch)) ||
        (r->status == 200 && is_large && headers_has(&x->request.headers, HEADER_RANGE)))
        fetch_free(&x->fetch); /* it asked with our condition, or for the whole: ask again as the
                                  client did */
    return exchange_go(x, STEP_PASS);
}

/* The fill broke before its head. */
static enum next fill_failed(struct exchange *x, struct cache_fill *fill)
{
    enum reason why = cache_fill_fault(fill);
    enum fault fault = fault_of_reason(why);
    exchange_detach_reader(x);
    fetch_leader_left(&x->fetch); /* it frees itself, and must not look for us */
    if (why == REASON_RANGE && headers_has(&x->request.headers, HEADER_RANGE)) {
        x->outcome = OUTCOME_PASS;
        x->reason = REASON_RANGE;
        return exchange_go(x, STEP_PASS);
    }
    if (fault == FAULT_NONE && x->begun == FILL_FOLLOW) /* its leader's doing, not the origin's */
        return exchange_go(x, STEP_LOOKUP);
    return exchange_origin_failed(x, fault == FAULT_NONE ? FAULT_ORIGIN_CLOSED : fault);
}

enum next step_join(struct exchange *x)
{
    struct cache_fill *fill = x->reader.fill;
    CHECK(fill != NULL);
    if (!exchange_send_interim(x))
        return NEXT_STEP; /* the client is gone */
    enum fill_state state = cache_fill_state(fill);
    if (state != FILL_WAITING)
        conn_wait_over(x->conn); /* collapse_timeout is for this wait alone */
    switch (state) {
    case FILL_WAITING:
        if (x->conn->wait != CONN_FILL && x->conn->wait != CONN_HALF_CLOSED &&
            x->begun == FILL_FOLLOW)
            conn_wait(x->conn, CONN_FILL, x->snapshot->config->collapse_timeout_ms);
        return NEXT_WAIT;
    case FILL_RELEASED: return part_from_fill(x);
    case FILL_FAILED:
        if (cache_fill_object(fill) == NULL)
            return fill_failed(x, fill);
        break;
    case FILL_STREAMING:
    case FILL_COMPLETE: break;
    }
    if (x->begun == FILL_FOLLOW && !cache_fill_suits(fill, &x->request.headers)) {
        exchange_detach_reader(x);
        return exchange_go(x, STEP_FILL);
    }
    struct cache_object *o = cache_fill_object(fill);
    CHECK(o != NULL);
    const struct object_facts *facts = cache_object_facts(o);
    x->age_s = cache_age_s(&facts->freshness, facts->received_ms, clock_mono_ms());
    /* An answer that may be stored, but not used again unasked, answers only the request that
     * fetched it (RFC 9111 4). */
    if (x->begun == FILL_FOLLOW && cache_is_fresh(&facts->freshness, x->age_s, NULL) != FRESH_YES)
        return part_from_fill(x);
    x->object = o;
    x->is_stored = !cache_fill_is_outgrown(fill);
    if (x->was_revalidated)
        return exchange_serve(x, OUTCOME_REVALIDATED, REASON_VALIDATED);
    return exchange_go(x, STEP_ANSWER_OBJECT);
}

/* ---- when the origin fails ------------------------------------------------------------------- */

static bool may_serve_stale(const struct exchange *x, enum stale_cause why)
{
    if (x->stale == NULL || x->looked == REASON_CLIENT_ASKED || x->sent_any)
        return false;
    const struct object_facts *facts = cache_object_facts(x->stale);
    struct cache_control asked;
    bool honours = x->snapshot->config->honours_client;
    if (honours)
        cache_control_read_request(&x->request.headers, &asked);
    return cache_object_state(x->stale) == OBJECT_COMPLETE && has_part(x, facts) &&
           cache_may_serve_broken(&facts->freshness, cache_object_age_s(x->stale, clock_mono_ms()),
                                  why, honours ? &asked : NULL);
}

bool exchange_has_better(const struct exchange *x, uint16_t status)
{
    return cache_status_is_error(status) && may_serve_stale(x, STALE_ERROR);
}

enum next exchange_origin_failed(struct exchange *x, enum fault fault)
{
    const struct fault_row *row = fault_row(fault);
    enum stale_cause why = fault == FAULT_ORIGIN_ERROR ? STALE_ERROR : STALE_UNREACHABLE;
    if (row->outcome != OUTCOME_FAULT || !may_serve_stale(x, why))
        return exchange_refuse(x, fault);
    int64_t now_ms = clock_mono_ms();
    if (!cache_object_is_paused(x->stale, now_ms)) /* the first of many who fail together */
        cache_object_refresh_failed(x->stale, now_ms);
    x->object = x->stale;
    x->owns_object = true;
    x->stale = NULL;
    x->age_s = cache_object_age_s(x->object, now_ms);
    stat_add(&x->worker->stats->stale_served, 1);
    return exchange_serve(x, OUTCOME_STALE, row->reason);
}
