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

/* ---- the stored head ------------------------------------------------------------------------- */

struct writer {
    char *at;
};

static void put(struct writer *w, struct slice s)
{
    if (s.len > 0)
        memcpy(w->at, s.ptr, s.len);
    w->at += s.len;
}

static void put_field(struct writer *w, struct slice name, struct slice value)
{
    put(w, name);
    put(w, SLICE(": "));
    put(w, value);
    put(w, SLICE("\r\n"));
}

/* Fields that are never stored (RFC 9111 3.1), or that we write anew with each answer. */
static bool is_stored(const struct headers *from, const struct header *h)
{
    if (header_is_hop_by_hop(h->id) || h->id == HEADER_CONTENT_LENGTH || h->id == HEADER_AGE ||
        h->id == HEADER_CONTENT_RANGE) /* of a whole it says nothing, and our own 206s have one */
        return false;
    return !headers_is_nominated(from, h->name);
}

/* RFC 9111 3.2: a 304 does not change what describes the stored body. */
static bool updates(enum header_id id)
{
    return id != HEADER_CONTENT_ENCODING && id != HEADER_CONTENT_RANGE && id != HEADER_CONTENT_TYPE;
}

static size_t size_of(const struct headers *h)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < h->count; i++)
        bytes += h->at[i].name.len + h->at[i].value.len + 4;
    return bytes;
}

/* `newer` (may be NULL) are a 304's fields: each replaces all of the same name in `stored`. */
static struct slice write_head(struct fetch *f, struct slice status_line,
                               const struct headers *stored, const struct headers *newer)
{
    size_t most = status_line.len + size_of(stored) + (newer == NULL ? 0 : size_of(newer)) + 128;
    char *start = arena_alloc(&f->arena, most);
    struct writer w = { start };
    put(&w, status_line);
    bool has_date = false;
    for (unsigned i = 0; i < stored->count; i++) {
        const struct header *h = &stored->at[i];
        bool replaced =
            newer != NULL && updates(h->id) && headers_find_name(newer, h->name, 0) >= 0;
        if (replaced || !is_stored(stored, h))
            continue;
        if (h->id == HEADER_DATE && newer != NULL)
            continue; /* the 304 without a Date was made now, not when the body was */
        has_date |= h->id == HEADER_DATE;
        put_field(&w, h->name, h->value);
    }
    for (unsigned i = 0; newer != NULL && i < newer->count; i++) {
        const struct header *h = &newer->at[i];
        if (!updates(h->id) || !is_stored(newer, h) ||
            (h->id == HEADER_VIA && headers_has(stored, HEADER_VIA)))
            continue;
        has_date |= h->id == HEADER_DATE;
        put_field(&w, h->name, h->value);
    }
    if (!has_date) /* RFC 9110 6.6.1: who receives a response without Date adds one */
        put_field(&w, SLICE("Date"), worker_date(f->worker));
    if (newer == NULL)
        put_field(&w, SLICE("Via"),
                  f->response.minor == 0 ? SLICE("1.0 larder") : SLICE("1.1 larder"));
    return slice_from(start, w.at);
}

static int32_t default_ttl(const struct config *c, uint16_t status)
{
    for (size_t i = 0; i < c->ttl_count; i++)
        if (c->ttls[i].status == status)
            return (int32_t)c->ttls[i].ttl_s;
    return CONTROL_NONE;
}

struct judged {
    struct cache_control request_control, response_control;
    struct object_facts facts;
};

static void judge_freshness(struct fetch *f, const struct headers *fields, uint16_t status,
                            struct judged *j)
{
    const struct config *c = f->snapshot->config;
    int64_t wall = clock_wall_s();
    struct freshness_policy policy = { .has_heuristic = c->has_heuristic,
                                       .heuristic_max_s = (int32_t)c->heuristic_max_s,
                                       .default_ttl_s = default_ttl(c, status) };
    struct response_times times = { .now_wall_s = wall,
                                    .delay_s = wall > f->sent_wall_s ? wall - f->sent_wall_s : 0 };
    cache_control_read(fields, HEADER_CACHE_CONTROL, &j->response_control);
    cache_freshness_read(fields, status, &j->response_control, &times, &policy,
                         &j->facts.freshness);
    cache_validators_read(fields, wall, &j->facts.validators);
    j->facts.status = status;
    j->facts.received_ms = clock_mono_ms();
    j->facts.content_encoding = headers_value(fields, HEADER_CONTENT_ENCODING);
    j->facts.content_type = headers_value(fields, HEADER_CONTENT_TYPE);
}

static struct slice status_line(struct fetch *f, uint16_t status, struct slice reason)
{
    return arena_printf(&f->arena, "HTTP/1.1 %u " SLICE_FMT "\r\n", status, SLICE_ARG(reason));
}

static enum storable judge_fields(struct fetch *f, const struct headers *fields, uint16_t status,
                                  struct judged *j)
{
    judge_freshness(f, fields, status, j);
    bool honours = f->snapshot->config->honours_client;
    if (honours)
        cache_control_read_request(&f->request_headers, &j->request_control);
    struct storable_facts facts = { .request = &f->request_headers,
                                    .response = fields,
                                    .request_control = honours ? &j->request_control : NULL,
                                    .response_control = &j->response_control,
                                    .freshness = &j->facts.freshness,
                                    .status = status,
                                    .is_get = true };
    return cache_is_storable(&facts);
}

/* ---- a 304 to our own condition -------------------------------------------------------------- */

/* A 304 that names another tag than the one we asked about is not about our object (RFC 9111 4.3.4). */
static bool is_about(const struct object_facts *old, const struct headers *fields)
{
    struct validators its;
    cache_validators_read(fields, clock_wall_s(), &its);
    struct slice a = old->validators.etag, b = its.etag;
    if (a.len == 0 || b.len == 0)
        return true;
    if (slice_has_prefix(a, SLICE("W/")))
        a = (struct slice){ a.ptr + 2, a.len - 2 };
    if (slice_has_prefix(b, SLICE("W/")))
        b = (struct slice){ b.ptr + 2, b.len - 2 };
    return slice_equal(a, b);
}

/* Publishes a new head over the stale body. False when the 304 is of no use: the client's own request is then sent. */
static bool revalidate(struct fetch *f, struct cache_object *stale)
{
    const struct object_facts *old = cache_object_facts(stale);
    if (!is_about(old, &f->response.headers))
        return false;
    struct h1_response stored = { 0 };
    struct h1_limits limits = { .head_bytes = UINT32_MAX, .field_count = HEADERS_MAX };
    struct header *fields = arena_alloc(&f->arena, HEADERS_MAX * sizeof *fields);
    enum h1_cause cause = H1_OK;
    struct slice whole = arena_printf(&f->arena, SLICE_FMT "\r\n", SLICE_ARG(old->head));
    headers_init(&stored.headers, fields, HEADERS_MAX);
    if (h1_read_response(&stored, whole, METHOD_HEAD, &limits, &cause) != H1_DONE)
        return false;

    struct judged j = { 0 };
    struct slice line = status_line(f, stored.status, stored.reason);
    j.facts.head = write_head(f, line, &stored.headers, &f->response.headers);

    /* judged as one response: the updated fields */
    struct h1_response updated = { 0 };
    struct header *updated_fields = arena_alloc(&f->arena, HEADERS_MAX * sizeof *fields);
    struct slice again = arena_printf(&f->arena, SLICE_FMT "\r\n", SLICE_ARG(j.facts.head));
    headers_init(&updated.headers, updated_fields, HEADERS_MAX);
    if (h1_read_response(&updated, again, METHOD_HEAD, &limits, &cause) != H1_DONE)
        return false;
    /* Age is not among the stored fields: the 304's own counts. */
    for (const struct header *h = headers_find(&f->response.headers, HEADER_AGE); h != NULL;
         h = headers_next(&f->response.headers, h))
        if (!headers_add(&updated.headers, h->name, h->value))
            return false;
    if (judge_fields(f, &updated.headers, old->status, &j) != STORABLE_YES) {
        cache_drop(f->worker->house->cache, stale); /* the 304 brought no-store, private, a cookie … */
        return false;
    }
    j.facts.selecting = old->selecting;
    j.facts.length_bytes = old->length_bytes;
    if (f->exchange != NULL)
        f->exchange->was_revalidated = true;
    cache_fill_revalidated(f->fill, &j.facts);
    return true;
}

/* ---- judging the head ------------------------------------------------------------------------ */

/* What the answer depends on. A trusted proxy's X-Forwarded-Host and -Proto go on to the origin,
 * which makes redirects and links of them, seldom saying so in Vary: they select in any case. */
static struct slice selecting_of(struct fetch *f)
{
    const struct headers *h = &f->response.headers;
    if (f->snapshot->shared->trusted_count == 0)
        return cache_vary_make(&f->arena, h, &f->request_headers);
    struct headers varying;
    headers_init(&varying, arena_alloc(&f->arena, HEADERS_MAX * sizeof(struct header)),
                 HEADERS_MAX);
    bool fits =
        headers_add(&varying, SLICE("Vary"), SLICE("X-Forwarded-Host, X-Forwarded-Proto"));
    for (const struct header *v = headers_find(h, HEADER_VARY); v != NULL && fits;
         v = headers_next(h, v))
        fits = headers_add(&varying, v->name, v->value);
    return fits ? cache_vary_make(&f->arena, &varying, &f->request_headers)
                : arena_copy(&f->arena, SLICE("*\0*\0")); /* matches nothing */
}

/* Whether what the origin answered may be stored, with its own fields; facts are complete when it may. */
static enum storable judge(struct fetch *f, struct judged *j)
{
    const struct h1_response *r = &f->response;
    enum storable verdict = judge_fields(f, &r->headers, r->status, j);
    if (verdict != STORABLE_YES)
        return verdict;
    j->facts.head = write_head(f, status_line(f, r->status, r->reason), &r->headers, NULL);
    j->facts.selecting = selecting_of(f);
    j->facts.length_bytes = r->framing == FRAMING_LENGTH ? (int64_t)r->length
                            : r->framing == FRAMING_NONE ? 0
                                                         : -1;
    return STORABLE_YES;
}

static uint64_t object_max(const struct config *c)
{
    return c->object_max_bytes > 0 ? c->object_max_bytes : c->memory_bytes / 8;
}

static void count_end(struct fetch *f, _Atomic int64_t *how)
{
    stat_add(how, 1);
    stat_add(&f->worker->stats->fills_live, -1);
}

enum judgement { JUDGED_FILL, JUDGED_OVER, JUDGED_RELEASED };

static enum judgement judge_head(struct fetch *f)
{
    struct cache_object *stale = cache_fill_stale(f->fill);
    struct judged j = { 0 };
    f->is_judged = true;
    if (f->response.status == 304 && stale != NULL && revalidate(f, stale))
        return JUDGED_OVER;
    bool too_big = f->response.framing == FRAMING_LENGTH &&
                   f->response.length > object_max(f->snapshot->config);
    if (f->response.status == 304 || too_big || judge(f, &j) != STORABLE_YES) {
        if (f->response.status != 304) /* that is about our condition, not about the page */
            cache_remember_uncacheable(f->worker->house->cache, &f->key, clock_mono_ms());
        cache_fill_release(f->fill);
        count_end(f, &f->worker->stats->fill_released);
        return JUDGED_RELEASED;
    }
    cache_fill_head(f->fill, &j.facts);
    return JUDGED_FILL;
}

/* ---- the driver
 * --------------------------------------------------------------------------------------------------
 */

/* The fill has ended one way or another: the fetch with it. */
void fetch_leave_fill(struct fetch *f)
{
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
    if (cache_fill_reader_count(f->fill) > 0)
        return true;
    return f->state == FETCH_BODY && f->response.framing == FRAMING_LENGTH &&
           f->left <= LITTLE_LEFT;
}

static void fail(struct fetch *f)
{
    enum fault fault = f->state == FETCH_BROKEN ? f->fault : FAULT_ORIGIN_CUT;
    cache_fill_fail(f->fill, fault_row(fault)->reason);
    count_end(f, &f->worker->stats->fill_failed);
    fetch_leave_fill(f);
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
    if (cache_fill_is_outgrown(f->fill))
        count_end(f, &s->fill_too_big);
    else if (is_stored)
        count_end(f, &s->fill_stored);
    else /* purged while it came: delivered, not kept */
        count_end(f, cache_fill_state(f->fill) == FILL_FAILED ? &s->fill_failed : &s->fill_outrun);
    fetch_leave_fill(f);
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
        switch (fetch_pull(f, FETCH_READ, &piece)) {
        case PULLED_DATA:
            taken += piece.len;
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
        case PULLED_END:
            seal(f);
            return true;
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
    enum fetch_progress progress = fetch_advance(f);
    pass_interim(f);
    switch (progress) {
    case FETCH_WAITS: f->is_running = false; return;
    case FETCH_FAULTED: fail(f); return;
    case FETCH_HAS_HEAD: break;
    }
    if (!f->is_judged)
        switch (judge_head(f)) {
        case JUDGED_OVER: {
            struct slice none;
            /* a 304 has no body: this gives the connection back */
            (void)fetch_pull(f, FETCH_BUFFERED, &none);
            count_end(f, &f->worker->stats->fill_stored);
            fetch_leave_fill(f);
            return;
        }
        case JUDGED_RELEASED: hand_over(f); return;
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

static void copy_request(struct fetch *f, const struct headers *from)
{
    struct header *fields = arena_alloc(&f->arena, from->count * sizeof *fields);
    headers_init(&f->request_headers, fields, from->count);
    for (unsigned i = 0; i < from->count; i++)
        CHECK(headers_add(&f->request_headers, arena_copy(&f->arena, from->at[i].name),
                          arena_copy(&f->arena, from->at[i].value)));
}

void fetch_fill(struct exchange *x, struct cache_fill *fill)
{
    struct fetch *f = fetch_new(x);
    struct cache_object *stale = cache_fill_stale(fill);
    f->fill = fill;
    f->key = x->key;
    f->key.bytes = arena_copy(&f->arena, x->key.bytes);
    stat_add(&x->worker->stats->fill_started, 1);
    stat_add(&x->worker->stats->fills_live, 1);
    f->is_conditional = stale != NULL;
    f->method = METHOD_GET;
    f->is_idempotent = true;
    f->room.run = on_room;
    x->fetch = f;
    copy_request(f, &x->request.headers);
    cache_fill_on_room(fill, x->worker->mailbox, &f->room);
    fetch_connect(f, NULL);
    if (f->state != FETCH_BROKEN)
        f->request = fetch_write_request(
            f, x, stale == NULL ? NULL : &cache_object_facts(stale)->validators);
    fetch_run_fill(f);
}
