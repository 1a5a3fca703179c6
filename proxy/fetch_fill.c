/* proxy/fetch_fill.c: a fetch whose answer is meant for the store: it judges the head once, then
 * feeds the fill until that ends.
 *
 * The fetch belongs to the fill, not to the client that caused it. When the head says that the
 * answer cannot be shared, the fill is released, and the leader, if it is still there, takes the
 * fetch over as its own pass.
 */
#include "base/clock.h"
#include "proxy/fetch_internal.h"

#include <stdlib.h>

enum { TURN_BYTES = 1 << 20, LITTLE_LEFT = 256 << 10 };

/* ---- a 304 to our own condition -------------------------------------------------------------- */

/* Publishes a new head over the stale body. False when the 304 is of no use: the client's own
 * request is then sent. */
static bool revalidate(struct fetch *f, struct cache_object *stale)
{
    struct judged j = { 0 };
    if (!fetch_is_about(cache_object_facts(stale), &f->response.headers) ||
        !fetch_judge_update(f, stale, &j))
        return false;
    if (j.judgement.storable != STORABLE_YES) {
        cache_drop(f->worker->house->cache,
                   stale); /* the 304 brought no-store, private, a cookie … */
        return false;
    }
    if (f->exchange != NULL) {
        f->exchange->was_revalidated = true;
        f->exchange->origin_status = 304;
        fetch_give_own_fields(f, &j);
    }
    cache_fill_revalidated(f->fill, &j.facts);
    return true;
}

/* RFC 9111 4.3.5: whether an answer to HEAD is about what is stored. */
static bool is_same(struct exchange *x, const struct h1_response *r)
{
    const struct object_facts *old = cache_object_facts(x->stale);
    struct validators its;
    uint64_t length;
    cache_validators_read(&r->headers, clock_wall_s(), &its);
    if (its.etag.len > 0 && !slice_equal(its.etag, old->validators.etag))
        return false;
    if (its.last_modified_s >= 0 && its.last_modified_s != old->validators.last_modified_s)
        return false;
    struct slice said = headers_value(&r->headers, HEADER_CONTENT_LENGTH);
    return said.len == 0 || !slice_to_u64(said, &length) ||
           (int64_t)length == cache_object_length(x->stale);
}

void fetch_freshen(struct exchange *x)
{
    struct fetch *f = x->fetch;
    struct cache *cache = x->worker->house->cache;
    const struct h1_response *r = &f->response;
    struct judged j = { 0 };
    if (r->status != 200 || cache_object_facts(x->stale)->status != 200)
        return;
    if (!is_same(x, r)) {
        cache_drop(cache, x->stale);
        return;
    }
    f->key = x->key;
    fetch_copy_request(f, x);
    if (!fetch_judge_update(f, x->stale, &j) || j.judgement.storable != STORABLE_YES)
        return;
    struct cache_fill *fill = NULL;
    enum fill_begun begun =
        cache_fill_begin(cache, &x->key, &x->request.headers, x->stale, &x->reader, &fill);
    cache_reader_detach(&x->reader);
    if (begun != FILL_LEAD)
        return; /* somebody asks for the whole already */
    cache_fill_revalidated(fill, &j.facts);
    cache_fill_done(&fill);
}

/* ---- judging the head ------------------------------------------------------------------------ */

static void count_end(struct fetch *f, _Atomic int64_t *how)
{
    stat_add(how, 1);
    stat_add(&f->worker->stats->fills_live, -1);
}

enum judged_as {
    JUDGED_FILL,     /* the body is to come */
    JUDGED_OVER,     /* all is there with the head (304) */
    JUDGED_RECORD,   /* all that is wanted is there with the head: the body is not */
    JUDGED_RELEASED, /* it cannot be shared */
    JUDGED_AGAIN,    /* the whole is to be asked for */
    JUDGED_FAILED,   /* of no use; what a reader may do instead is in *why */
};

/* An error is no reason to give up what is stored and may still be used (RFC 5861 4). */
static bool has_better(struct fetch *f, struct cache_object *stale)
{
    if (stale == NULL || !cache_status_is_error(f->response.status))
        return false;
    int64_t now_ms = clock_mono_ms();
    const struct freshness *fresh = &cache_object_facts(stale)->freshness;
    int32_t age_s = cache_object_age_s(stale, now_ms);
    return f->is_behind ||
           cache_may_serve_broken(fresh, age_s, STALE_ERROR,
                                  f->snapshot->config->honours_client ? &f->request_control : NULL);
}

/* Nobody learns anything about a key from an answer that another request would not have had. */
static bool is_about_key(const struct fetch *f, enum storable why)
{
    if (f->response.status == 304) /* that is about our condition, not about the page */
        return false;
    if (why == STORABLE_TOO_LARGE) /* a part of it is another thing */
        return !fetch_can_slice(f);
    if (why == STORABLE_NO_STORE)
        return !(f->snapshot->config->honours_client && f->request_control.no_store);
    return why != STORABLE_AUTHORIZATION;
}

/* A refresh behind the clients brought an answer that may not be kept. When that is because of
 * whose request it was, another's may fare better; else what is stored has had its time. */
static void give_up_stale(struct fetch *f, struct cache_object *stale, enum storable why)
{
    if (!f->is_behind || stale == NULL || f->response.status == 304)
        return;
    if (why != STORABLE_AUTHORIZATION && why != STORABLE_PRIVATE && why != STORABLE_SET_COOKIE)
        cache_drop(f->worker->house->cache, stale);
}

static void release(struct fetch *f, struct cache_object *stale, enum storable why)
{
    if (is_about_key(f, why))
        cache_remember_uncacheable(f->worker->house->cache, &f->key, clock_mono_ms());
    if (why != STORABLE_YES)
        stat_add(&f->worker->stats->unstored[why], 1);
    give_up_stale(f, stale, why);
    if (f->exchange != NULL)
        f->exchange->unstored = why;
    cache_fill_release(f->fill);
    count_end(f, &f->worker->stats->fill_released);
}

static void begin_body(struct fetch *f, struct judged *j)
{
    if (f->exchange != NULL) {
        f->exchange->origin_status = f->response.status;
        fetch_give_own_fields(f, j);
    }
    cache_fill_head(f->fill, &j->facts);
}

/* What asked for less than the whole. FILL, AGAIN, FAILED, or that the answer is to be judged as any (OVER). */
static enum judged_as judge_less(struct fetch *f, enum reason *why)
{
    struct judged j = { 0 };
    if (f->asks == ASKS_SLICE) {
        *why = fetch_judge_slice(f, &j);
        if (*why != REASON_ANSWERED)
            return JUDGED_FAILED;
        if (f->exchange != NULL)
            f->exchange->origin_status = f->response.status;
        cache_fill_head(f->fill, &j.facts); /* the record's fields are the answer's */
        return JUDGED_FILL;
    }
    switch (fetch_judge_rest(f, &j)) {
    case REST_FITS: begin_body(f, &j); return JUDGED_FILL;
    case REST_OF_NO_USE: return JUDGED_AGAIN;
    case REST_IS_WHOLE: break;
    }
    return JUDGED_OVER;
}

static enum judged_as judge_head(struct fetch *f, enum reason *instead)
{
    struct cache_object *stale = cache_fill_stale(f->fill);
    struct judged j = { 0 };
    f->is_judged = true;
    if (f->snapshot->config->honours_client)
        cache_control_read_request(&f->request_headers, &f->request_control);
    if (f->asks != ASKS_WHOLE) {
        enum judged_as less = judge_less(f, instead);
        if (less != JUDGED_OVER)
            return less;
    }
    if (f->response.status == 304 && (stale != NULL ? revalidate(f, stale) : fetch_adopt_variant(f)))
        return JUDGED_OVER;
    if (has_better(f, stale)) {
        *instead = REASON_ORIGIN_ERROR;
        return JUDGED_FAILED;
    }
    enum storable why = f->response.status == 304 ? STORABLE_STATUS : fetch_judge(f, &j);
    if (why == STORABLE_YES && fetch_wants_slices(f, stale)) {
        fetch_make_record(f, stale, &j);
        begin_body(f, &j);
        return JUDGED_RECORD;
    }
    if (why == STORABLE_YES && f->response.framing == FRAMING_LENGTH &&
        f->response.length > fetch_object_max(f))
        why = STORABLE_TOO_LARGE;
    if (why == STORABLE_YES && fetch_is_too_large(f) && cache_fill_reader_count(f->fill) <= 1) {
        *instead = REASON_RANGE; /* its own range does it; who joins meanwhile looks again */
        return JUDGED_FAILED;
    }
    if (why != STORABLE_YES) {
        release(f, stale, why);
        return JUDGED_RELEASED;
    }
    begin_body(f, &j);
    return JUDGED_FILL;
}

/* ---- the driver
 * --------------------------------------------------------------------------------------------------
 */

/* A refresh behind the clients: what came of it. One that failed is not begun again at once. */
static void end_refresh(struct fetch *f)
{
    struct cache_object *stale = cache_fill_stale(f->fill);
    bool is_done = cache_fill_state(f->fill) == FILL_COMPLETE;
    stat_add(is_done ? &f->worker->stats->refresh_done : &f->worker->stats->refresh_failed, 1);
    if (!is_done && stale != NULL)
        cache_object_refresh_failed(stale, clock_mono_ms());
}

/* The fill has ended one way or another: the fetch with it. */
void fetch_leave_fill(struct fetch *f)
{
    if (f->is_behind)
        end_refresh(f);
    if (f->exchange != NULL)
        f->exchange->fetch = NULL;
    cache_fill_done(&f->fill);
    fetch_free(&f);
}

/* The leader's exchange pulls the rest by itself; it is woken by the fill's release. */
static void hand_over(struct fetch *f)
{
    if (f->exchange == NULL) {
        fetch_leave_fill(f);
        return;
    }
    cache_fill_done(&f->fill);
    deadline_clear(&f->deadline);
    fetch_settle(f); /* what came behind the head is in the scratch; the leader comes later */
    f->is_running = false;
}

static bool is_wanted(struct fetch *f)
{
    if (f->is_behind || f->is_ahead || cache_fill_reader_count(f->fill) > 0)
        return true;
    if (f->state == FETCH_BODY && f->asks == ASKS_SLICE)
        return true; /* its client had what it wanted of it: the next one wants the rest */
    return f->state == FETCH_BODY && f->response.framing == FRAMING_LENGTH &&
           f->left <= LITTLE_LEFT;
}

static void fail_as(struct fetch *f, enum reason why)
{
    struct stats *s = f->worker->stats;
    cache_fill_fail(f->fill, why);
    count_end(f, why == REASON_RANGE ? &s->fill_released : &s->fill_failed);
    fetch_leave_fill(f);
}

static void fail(struct fetch *f)
{
    fail_as(f, fault_row(f->state == FETCH_BROKEN ? f->fault : FAULT_ORIGIN_CUT)->reason);
}

/* The rest could not be had: once more, from the beginning, on another connection. */
static void ask_whole(struct fetch *f)
{
    origin_conn_close(&f->conn);
    deadline_clear(&f->deadline);
    f->request = f->whole_request;
    f->response = (struct h1_response){ 0 };
    f->view = SLICE_NONE;
    f->is_judged = false;
    fetch_connect(f, NULL);
}

static void on_room(struct post *post)
{
    struct fetch *f = CONTAINER_OF(post, struct fetch, room);
    if (f->magic == 0) { /* ended while this was under way */
        free(f);
        return;
    }
    f->is_paused = false;
    if (f->fill == NULL)
        return; /* handed over to its leader */
    fetch_run_fill(f);
}

static void seal(struct fetch *f)
{
    struct stats *s = f->worker->stats;
    bool is_stored = cache_fill_seal(f->fill);
    stat_add(&s->parts_joined, is_stored && f->asks == ASKS_REST);
    if (cache_fill_is_outgrown(f->fill))
        count_end(f, &s->fill_too_big);
    else if (is_stored)
        count_end(f, &s->fill_stored);
    else /* purged while it came: delivered, not kept */
        count_end(f, cache_fill_state(f->fill) == FILL_FAILED ? &s->fill_failed : &s->fill_outrun);
    fetch_leave_fill(f);
}

/* The next piece of what is stored already, in front of the rest; *appended is nothing: it is in the fill. */
static uint64_t copy_base(struct fetch *f, struct slice *appended)
{
    bool pauses = false;
    uint64_t copied = fetch_append_stored(f->fill, f->base, f->copied, f->base_bytes, &pauses);
    f->copied += copied;
    f->is_paused |= pauses;
    *appended = SLICE_NONE;
    return copied;
}

/* One bounded turn of the body. True when the fill has ended. */
static bool feed(struct fetch *f)
{
    size_t taken = 0;
    while (!f->is_paused) {
        struct slice piece;
        if (taken > TURN_BYTES) { /* others first: come back by the loop */
            fetch_settle(f);
            f->is_paused = true;
            mailbox_post_once(f->worker->mailbox, &f->room);
            return false;
        }
        enum fetch_pulled pulled = PULLED_DATA;
        if (f->copied < f->base_bytes) {
            taken += copy_base(f, &piece);
        } else {
            pulled = fetch_pull(f, FETCH_READ, &piece);
            taken += pulled == PULLED_DATA ? piece.len : 0;
        }
        switch (pulled) {
        case PULLED_DATA:
            if (cache_fill_append(f->fill, piece) == FILL_PAUSE) {
                f->is_paused = true;
                deadline_clear(&f->deadline); /* the readers' pace now, and their timers */
            }
            if (cache_fill_state(f->fill) == FILL_FAILED) { /* of its own: no memory at all */
                count_end(f, &f->worker->stats->fill_failed);
                fetch_leave_fill(f);
                return true;
            }
            break;
        case PULLED_END: seal(f); return true;
        case PULLED_WAIT: return false;
        case PULLED_FAULT: fail(f); return true;
        }
    }
    fetch_settle(f);
    return false;
}

/* Interim responses are for the one who asked; followers come for the page only. */
static void pass_interim(struct fetch *f)
{
    struct slice interim = fetch_take_interim(f);
    if (interim.len > 0 && f->exchange != NULL)
        exchange_note_interim(f->exchange, interim);
}

void fetch_run_fill(struct fetch *f)
{
    if (f->is_running)
        return;
    f->is_running = true;
    if (!is_wanted(f) && f->state != FETCH_BROKEN) {
        cache_fill_fail(f->fill, REASON_CLIENT_LEFT);
        count_end(f, &f->worker->stats->fill_abandoned);
        fetch_leave_fill(f);
        return;
    }
    enum reason instead = REASON_ANSWERED;
    enum fetch_progress progress = fetch_advance(f);
    pass_interim(f);
    switch (progress) {
    case FETCH_WAITS: f->is_running = false; return;
    case FETCH_FAULTED: fail(f); return;
    case FETCH_HAS_HEAD: break;
    }
    if (!f->is_judged)
        switch (judge_head(f, &instead)) {
        case JUDGED_OVER: {
            struct slice none;
            /* a 304 has no body: this gives the connection back */
            (void)fetch_pull(f, FETCH_BUFFERED, &none);
            count_end(f, &f->worker->stats->fill_stored);
            fetch_leave_fill(f);
            return;
        }
        case JUDGED_RELEASED: hand_over(f); return;
        case JUDGED_RECORD: seal(f); return;
        case JUDGED_AGAIN:
            ask_whole(f);
            f->is_running = false;
            fetch_run_fill(f);
            return;
        case JUDGED_FAILED:
            if (f->exchange != NULL)
                f->exchange->origin_status = f->response.status;
            fail_as(f, instead);
            return;
        case JUDGED_FILL: break;
        }
    if (feed(f))
        return;
    f->is_running = false;
}

void fetch_leader_left(struct fetch **at)
{
    struct fetch *f = *at;
    *at = NULL;
    if (f == NULL)
        return;
    f->exchange = NULL;
    if (f->fill == NULL) { /* released to this leader, which never took it */
        fetch_free(&f);
        return;
    }
    if (!is_wanted(f))
        fetch_run_fill(f); /* notices, and ends */
}

/* The request as rules, Vary and storing will see it once the exchange is gone. */
void fetch_copy_request(struct fetch *f, const struct exchange *x)
{
    const struct headers *from = &x->request.headers;
    struct header *fields = arena_alloc(&f->arena, from->count * sizeof *fields);
    headers_init(&f->request_headers, fields, from->count);
    for (unsigned i = 0; i < from->count; i++)
        CHECK(headers_add(&f->request_headers, arena_copy(&f->arena, from->at[i].name),
                          arena_copy(&f->arena, from->at[i].value)));
    struct rule_request asked = exchange_rule_request(x);
    f->client = x->client;
    f->port = x->host_port;
    f->site = x->site;
    f->rule = (struct rule_request){ .method = arena_copy(&f->arena, asked.method),
                                     .scheme = asked.scheme, /* a literal */
                                     .host = arena_copy(&f->arena, asked.host),
                                     .path = arena_copy(&f->arena, asked.path),
                                     .query = asked.query.ptr == NULL
                                                  ? SLICE_NONE
                                                  : arena_copy(&f->arena, asked.query),
                                     .headers = &f->request_headers,
                                     .client = &f->client };
    if (rules_has_any(x->site))
        f->effects = x->plan.effects;
}

static struct fetch *new_fill(struct exchange *x, struct cache_fill *fill)
{
    struct fetch *f = fetch_new(x);
    f->fill = fill;
    f->key = cache_key_of(x->worker->house->cache, arena_copy(&f->arena, cache_fill_key(fill)));
    f->is_conditional = cache_fill_stale(fill) != NULL;
    if (!f->is_conditional && x->looked == REASON_OTHER_VARIANT)
        fetch_offer_variants(f);
    f->method = METHOD_GET;
    f->is_idempotent = true;
    f->room.run = on_room;
    fetch_copy_request(f, x);
    cache_fill_on_room(fill, x->worker->mailbox, &f->room);
    stat_add(&x->worker->stats->fill_started, 1);
    stat_add(&x->worker->stats->fills_live, 1);
    return f;
}

static void start(struct fetch *f, const struct exchange *x)
{
    struct cache_object *stale = cache_fill_stale(f->fill);
    const struct validators *its = stale == NULL ? NULL : &cache_object_facts(stale)->validators;
    fetch_connect(f, NULL);
    if (f->state != FETCH_BROKEN && f->asks == ASKS_REST) {
        f->asks = ASKS_WHOLE;
        f->whole_request = fetch_write_request(f, x, its);
        f->asks = ASKS_REST;
    }
    if (f->state != FETCH_BROKEN)
        f->request = fetch_write_request(f, x, its);
    fetch_run_fill(f);
}

void fetch_fill(struct exchange *x, struct cache_fill *fill)
{
    struct fetch *f = new_fill(x, fill);
    x->fetch = f;
    fetch_ask_rest(f, x);
    start(f, x);
}

static struct fetch *new_slice(struct exchange *x, struct cache_fill *fill,
                               struct cache_object *record, const struct byte_range *range)
{
    struct fetch *f = new_fill(x, fill);
    f->asks = ASKS_SLICE;
    f->base = cache_object_ref(record);
    f->range = *range;
    return f;
}

void fetch_slice(struct exchange *x, struct cache_fill *fill, struct cache_object *record,
                 const struct byte_range *range)
{
    struct fetch *f = new_slice(x, fill, record, range);
    x->fetch = f;
    start(f, x);
}

void fetch_slice_ahead(struct exchange *x, struct cache_fill *fill, struct cache_object *record,
                       const struct byte_range *range)
{
    struct fetch *f = new_slice(x, fill, record, range);
    f->exchange = NULL;
    f->is_ahead = true;
    start(f, x);
}

void fetch_behind(struct exchange *x, struct cache_fill *fill)
{
    struct fetch *f = new_fill(x, fill);
    f->exchange = NULL;
    f->is_behind = true;
    stat_add(&x->worker->stats->refresh_started, 1);
    start(f, x);
}
