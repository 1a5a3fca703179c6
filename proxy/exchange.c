/* proxy/exchange.c: one request and its response.
 *
 *   ROUTE --> LOOKUP --fresh------------------------------> ANSWER_OBJECT --> DELIVER --> LOG
 *     |          |--miss, stale--> FILL --> JOIN --its object----^              ^
 *     |          |                  |         '--cannot be shared--> PASS       |
 *     |          |                  '--a directory--> FILE ---------------------|
 *     '--not cacheable, or so remembered--> PASS --head--> ANSWER_PASS ---------|
 *                                              any step --fault--> REFUSE ------'
 *
 * A hit runs all of this in one turn, inside one RCU read section, with nothing allocated. What is
 * borrowed (the head in the worker's scratch, the object) is made to last by exchange_settle() when
 * a step waits for the first time.
 */
#include "proxy/exchange.h"

#include "base/clock.h"
#include "proxy/fetch.h"

#include <stdlib.h>
#include <unistd.h>

enum { EXCHANGE_MAGIC = 0x48435845, SPARE_MAX = 256, PART_WORTH_ASKING = 1 << 20 };

static enum next step_route(struct exchange *x);
static enum next step_lookup(struct exchange *x);
static enum next step_fill(struct exchange *x);
static enum next step_join(struct exchange *x);
static enum next step_pass(struct exchange *x);
static enum next step_log(struct exchange *x);

static enum next (*const steps[STEP_COUNT])(struct exchange *x) = {
    [STEP_ROUTE] = step_route,                 /* waits not                      */
    [STEP_LOOKUP] = step_lookup,               /* waits not                      */
    [STEP_FILL] = step_fill,                   /* starts or joins; waits not     */
    [STEP_JOIN] = step_join,                   /* waits for: a fill's head       */
    [STEP_FILE] = step_file,                   /* waits not                      */
    [STEP_PASS] = step_pass,                   /* waits for: the origin's head   */
    [STEP_ANSWER_OBJECT] = step_answer_object, /* waits not                      */
    [STEP_ANSWER_PASS] = step_answer_pass,     /* waits not                      */
    [STEP_REFUSE] = step_refuse,               /* waits not                      */
    [STEP_DELIVER] = step_deliver,             /* waits for: the client, writable; more body */
    [STEP_LOG] = step_log,                     /* waits not; ends                */
};

enum next exchange_go(struct exchange *x, enum exchange_step step)
{
    x->step = step;
    return NEXT_STEP;
}

enum next exchange_refuse(struct exchange *x, enum fault fault)
{
    x->fault = fault;
    return exchange_go(x, STEP_REFUSE);
}

/* ---- life
 * --------------------------------------------------------------------------------------------------------
 */

static void on_reader_woken(struct post *post)
{
    struct exchange *x = CONTAINER_OF(post, struct exchange, reader.post);
    CHECK_OBJ(x, EXCHANGE_MAGIC);
    if (x->is_dead) {
        x->is_dead = false;
        exchange_give(x); /* it was only kept for this */
        return;
    }
    conn_turn(x->conn);
}

struct exchange *exchange_take(struct worker *w)
{
    struct exchange *x = w->spare;
    if (x != NULL) {
        w->spare = *(struct exchange **)(void *)x->key_bytes;
        w->spare_count--;
        return x;
    }
    x = xcalloc(1, sizeof *x);
    x->magic = EXCHANGE_MAGIC;
    x->worker = w;
    x->file_fd = -1;
    x->reader.post.run = on_reader_woken;
    x->reader.mailbox = w->mailbox;
    return x;
}

void exchange_give(struct exchange *x)
{
    CHECK_OBJ(x, EXCHANGE_MAGIC);
    struct worker *w = x->worker;
    CHECK(x->reader.fill == NULL && x->fetch == NULL && !x->in_read_section);
    x->conn = NULL;
    if (atomic_load(&x->reader.post.is_posted)) {
        x->is_dead = true; /* its wake-up is under way and will come here again */
        return;
    }
    if (w->spare_count >= SPARE_MAX) {
        x->magic = 0;
        free(x);
        return;
    }
    *(struct exchange **)(void *)x->key_bytes = w->spare;
    w->spare = x;
    w->spare_count++;
}

void exchange_free_spare(struct worker *w)
{
    while (w->spare != NULL)
        free(exchange_take(w));
}

/* Everything but the request is as new. */
static void begin(struct exchange *x, struct conn *c)
{
    x->conn = c;
    c->exchange = x;
    x->snapshot = snapshot_ref(x->worker->snapshot);
    x->site = NULL;
    x->kept = NULL;
    x->kept_fields = NULL;
    x->in_read_section = x->owns_object = false;
    x->keeps_alive = x->sent_any = x->was_cut = x->was_revalidated = false;
    x->object = NULL;
    x->reader.position = 0;
    x->reader.is_leader = false;
    x->outcome = OUTCOME_LOCAL;
    x->reason = REASON_ANSWERED;
    x->fault = FAULT_NONE;
    x->cause = H1_OK;
    x->status = 0;
    x->age_s = -1;
    x->source = SOURCE_NONE;
    x->is_source_done = x->has_pulled = false;
    x->segments = x->inline_segments;
    x->segment_at = x->segment_count = 0;
    x->segment_capacity = SEGMENTS_INLINE;
    x->spill = NULL;
    x->server_name[0] = '\0';
    x->body_sent = x->sent = 0;
    x->begun_us = clock_mono_us();
    x->begun_ms = x->begun_us / 1000;
    x->first_byte_us = -1;
    x->key.bytes = SLICE_NONE;
    arena_init(&x->arena);
    stat_add(&x->worker->stats->exchanges, 1);
    stat_add(&x->worker->stats->exchanges_live, 1);
}

void exchange_begin(struct exchange *x, struct conn *c)
{
    begin(x, c);
    x->is_head = x->request.method == METHOD_HEAD;
    x->keeps_alive = x->request.keeps_alive;
    x->step = STEP_ROUTE;
}

void exchange_begin_refused(struct exchange *x, struct conn *c, enum fault fault,
                            enum h1_cause cause)
{
    begin(x, c);
    memset(&x->request, 0, sizeof x->request);
    x->request.minor = 1;
    x->is_head = false;
    x->cause = cause;
    x->fault = fault;
    c->body = BODY_NONE;
    c->must_close = true;
    stat_add(&x->worker->stats->h1_cause[cause], cause == H1_OK ? 0 : 1);
    x->step = STEP_REFUSE;
}

static void detach_reader(struct exchange *x)
{
    if (x->reader.fill == NULL)
        return;
    stat_add(&x->worker->stats->followers_live, -1);
    cache_reader_detach(&x->reader);
}

/* Lets go of the store and the origin. */
static void let_go(struct exchange *x)
{
    if (x->fetch != NULL &&
        x->reader.fill != NULL) { /* a leader: the fill's fetch goes on by itself */
        detach_reader(x);
        fetch_leader_left(&x->fetch);
    }
    detach_reader(x);
    fetch_free(&x->fetch);
    if (x->owns_object)
        cache_object_unref(&x->object);
    x->owns_object = false;
    x->object = NULL;
    if (x->in_read_section) {
        x->in_read_section = false;
        cache_read_end();
    }
    if (x->file_fd >= 0) {
        close(x->file_fd);
        x->file_fd = -1;
    }
}

static void end(struct exchange *x)
{
    let_go(x);
    if (x->kept != NULL)
        free(x->kept);
    if (x->spill != NULL)
        free(x->spill);
    arena_fini(&x->arena);
    snapshot_unref(&x->snapshot);
    stat_add(&x->worker->stats->exchanges_live, -1);
}

enum exchange_end exchange_run(struct exchange *x)
{
    CHECK_OBJ(x, EXCHANGE_MAGIC);
    CHECK(!x->running);
    x->running = true;
    enum next next;
    do
        next = steps[x->step](x);
    while (next == NEXT_STEP);
    x->running = false;
    if (next == NEXT_WAIT) {
        exchange_settle(x);
        return EXCHANGE_WAITS;
    }
    end(x);
    return EXCHANGE_OVER;
}

/* An unsafe request that the origin may have had, without our knowing how it ended: what is stored
 * may be old (RFC 9111 4.4 asks for less; a page too many fetched anew is the lesser harm). */
static void invalidate_unsure(struct exchange *x)
{
    if (x->fetch == NULL || x->key.bytes.len == 0 || h1_method_is_safe(x->request.method))
        return;
    unsigned gone = cache_purge_key(x->worker->house->cache, &x->key);
    stat_add(&x->worker->stats->invalidated, gone);
}

void exchange_abort(struct exchange *x, enum reason why)
{
    struct conn *c = x->conn;
    CHECK(!x->running);
    invalidate_unsure(x);
    x->outcome = OUTCOME_ABORTED;
    x->reason = why;
    step_log(x);
    end(x);
    c->exchange = NULL;
    exchange_give(x);
}

bool exchange_timed_out(struct exchange *x, enum conn_wait wait)
{
    if (wait == CONN_FILL &&
        x->step == STEP_JOIN) { /* cache.collapse_timeout: no longer behind another's fill */
        detach_reader(x);
        x->reason = REASON_FILL_SLOW;
        x->step = STEP_PASS;
        return true;
    }
    if (wait == CONN_BODY && x->step == STEP_PASS) { /* but for a 1xx nothing has gone out */
        fetch_free(&x->fetch);
        x->conn->must_close = true;
        x->fault = FAULT_BODY_SLOW;
        x->step = STEP_REFUSE;
        return true;
    }
    return false;
}

/* ---- making things last ---------------------------------------------------------------------- */

static void move(struct slice *s, const char *from, const char *to)
{
    if (s->ptr != NULL)
        s->ptr = s->ptr - from + to;
}

static void settle_request(struct exchange *x)
{
    struct h1_request *r = &x->request;
    if (x->kept != NULL || r->head_bytes == 0)
        return;
    size_t fields = r->headers.count * sizeof(struct header);
    char *block = xmalloc(fields + r->head_bytes);
    /* the head's first byte: every slice of a request points behind it */
    const char *from = r->method_text.ptr;
    size_t length =
        r->head_bytes; /* leading empty lines make this a little more than there is: never less */
    const char *last = from;
    for (unsigned i = 0; i < r->headers.count; i++) {
        const char *e = r->headers.at[i].value.ptr + r->headers.at[i].value.len;
        const char *n = r->headers.at[i].name.ptr + r->headers.at[i].name.len;
        last = e > last ? e : last;
        last = n > last ? n : last;
    }
    const char *line_end = r->target.ptr + r->target.len;
    last = line_end > last ? line_end : last;
    length = (size_t)(last - from);
    x->kept = block;
    x->kept_fields = (struct header *)(void *)block;
    char *to = block + fields;
    memcpy(to, from, length);
    for (unsigned i = 0; i < r->headers.count; i++) {
        x->kept_fields[i] = r->headers.at[i];
        move(&x->kept_fields[i].name, from, to);
        move(&x->kept_fields[i].value, from, to);
    }
    r->headers.at = x->kept_fields;
    move(&r->target, from, to);
    move(&r->scheme, from, to);
    move(&r->query, from, to);
    if (r->path.ptr >= from &&
        r->path.ptr <= last) /* "/" for an absolute-form without path is a literal */
        move(&r->path, from, to);
    if (r->authority.ptr >= from && r->authority.ptr <= last)
        move(&r->authority, from, to);
    move(&r->method_text, from, to);
}

void exchange_leave_read_section(struct exchange *x)
{
    if (!x->in_read_section)
        return;
    if (x->object != NULL && !x->owns_object)
        x->owns_object = cache_object_try_ref(x->object);
    x->in_read_section = false;
    cache_read_end();
}

/* Bytes of borrowed memory, or of an object that has just gone, that are still to be sent. */
static void spill_segments(struct exchange *x)
{
    size_t total = 0;
    for (unsigned i = x->segment_at; i < x->segment_count; i++)
        total += (size_t)(x->segments[i].to - x->segments[i].from);
    char *at = x->spill = xmalloc(total);
    for (unsigned i = x->segment_at; i < x->segment_count; i++) {
        struct segment *s = &x->segments[i];
        size_t length = (size_t)(s->to - s->from);
        if (s->kind == SEGMENT_MEMORY) {
            memcpy(at, s->mem + s->from, length);
        } else {
            for (size_t done = 0; done < length;) {
                struct object_piece p = cache_object_piece(x->object, s->from + done);
                size_t n = p.length < length - done ? p.length : length - done;
                if (p.mem != NULL)
                    memcpy(at + done, p.mem, n);
                else
                    CHECK(pread(p.fd, at + done, n, (off_t)p.at) == (ssize_t)n);
                CHECK(n > 0);
                done += n;
            }
        }
        *s = (struct segment){
            .kind = SEGMENT_MEMORY, .is_body = s->is_body, .mem = at, .to = length
        };
        at += length;
    }
    x->object = NULL;
}

void exchange_settle(struct exchange *x)
{
    settle_request(x);
    if (!x->in_read_section)
        return;
    if (x->object != NULL && !x->owns_object) {
        x->owns_object = cache_object_try_ref(x->object);
        if (!x->owns_object)
            spill_segments(
                x); /* evicted under our hands; its bytes are still there until the section ends */
    }
    x->in_read_section = false;
    cache_read_end();
}

/* ---- routing
 * -----------------------------------------------------------------------------------------------------
 */

static bool make_key(struct exchange *x)
{
    struct key_parts parts = { .site = slice_of(x->site->name),
                               .host = { x->host, x->host_length },
                               .port = x->host_port == 80 ? 0 : x->host_port,
                               .path = x->request.path,
                               .query = x->request.query };
    char *to = x->key_bytes;
    size_t capacity = sizeof x->key_bytes;
    size_t length = cache_key_write(&parts, to, capacity);
    if (length == 0) {
        capacity = parts.site.len + parts.host.len + parts.path.len + parts.query.len + 32;
        to = arena_alloc(&x->arena, capacity);
        length = cache_key_write(&parts, to, capacity);
    }
    if (length == 0)
        return false;
    x->key = cache_key_of(x->worker->house->cache, (struct slice){ to, length });
    return true;
}

bool exchange_trusts_client(const struct exchange *x)
{
    const struct shared_snapshot *s = x->snapshot->shared;
    for (size_t i = 0; i < s->trusted_count; i++)
        if (network_has(&s->trusted[i], &x->conn->peer))
            return true;
    return false;
}

/* What is not believed does not go to the origin, and so must not select a variant either. */
static void drop_unbelieved(struct exchange *x)
{
    struct headers *h = &x->request.headers;
    if (!headers_has(h, HEADER_X_FORWARDED_HOST) && !headers_has(h, HEADER_X_FORWARDED_PROTO))
        return;
    if (exchange_trusts_client(x))
        return;
    headers_drop(h, HEADER_X_FORWARDED_HOST);
    headers_drop(h, HEADER_X_FORWARDED_PROTO);
}

static enum next step_route(struct exchange *x)
{
    const struct h1_request *r = &x->request;
    drop_unbelieved(x);
    const struct config *config = x->snapshot->config;
    if (r->method == METHOD_CONNECT)
        return exchange_refuse(x, FAULT_NOT_TUNNELLED);
    if (r->authority.len == 0)
        x->host_length = x->host_port = 0; /* HTTP/1.0 without Host: only a "*" site */
    else if (!h1_canonical_host(r->authority, x->host, &x->host_length, &x->host_port))
        return exchange_refuse(x, FAULT_BAD_REQUEST);
    x->site = config_site_find(config, (struct slice){ x->host, x->host_length });
    if (x->site == NULL)
        return exchange_refuse(x, FAULT_NO_SITE);
    if (r->has_unknown_expect)
        return exchange_refuse(x, FAULT_EXPECTATION);
    if (r->form == FORM_ASTERISK || r->method == METHOD_TRACE)
        return exchange_refuse(x, r->form == FORM_ASTERISK ? FAULT_NONE : FAULT_METHOD);
    if (config->body_max_bytes > 0 && r->framing == FRAMING_LENGTH &&
        r->length > config->body_max_bytes)
        return exchange_refuse(x, FAULT_BODY_LARGE);
    if (!make_key(x))
        return exchange_refuse(x, FAULT_BAD_REQUEST);

    bool is_read = r->method == METHOD_GET || r->method == METHOD_HEAD;
    if (x->site->origin->kind == ORIGIN_FILES && !is_read)
        return exchange_refuse(x, FAULT_METHOD);
    x->outcome = OUTCOME_PASS;
    if (!is_read) {
        x->reason = REASON_METHOD;
        return exchange_go(x, STEP_PASS);
    }
    if (r->framing != FRAMING_NONE || cache_request_has_precondition(&r->headers)) {
        x->reason = REASON_BYPASS; /* a body with GET may change the answer but not the key;
                                      If-Match is the origin's to judge */
        return exchange_go(x, x->site->origin->kind == ORIGIN_FILES ? STEP_FILE : STEP_PASS);
    }
    return exchange_go(x, STEP_LOOKUP);
}

/* ---- the store
 * ---------------------------------------------------------------------------------------------------
 */

static enum next hit(struct exchange *x, enum outcome outcome, enum reason reason)
{
    x->outcome = outcome;
    x->reason = reason;
    return exchange_go(x, STEP_ANSWER_OBJECT);
}

/* The last check before an encoded body goes out: of a page that varies, never a coding that this
 * client did not ask for. */
static bool may_have_coding(const struct exchange *x, const struct object_facts *facts)
{
    return facts->content_encoding.len == 0 || facts->selecting.len == 0 ||
           cache_coding_is_acceptable(facts->content_encoding, &x->request.headers);
}

static enum fresh_verdict judge_object(struct exchange *x, const struct object_facts *facts)
{
    struct cache_control asked;
    bool honours = x->snapshot->config->honours_client;
    if (honours)
        cache_control_read_request(&x->request.headers, &asked);
    x->age_s = cache_age_s(&facts->freshness, facts->received_ms, x->begun_ms);
    return cache_is_fresh(&facts->freshness, x->age_s, honours ? &asked : NULL);
}

static enum next step_lookup(struct exchange *x)
{
    struct cache *cache = x->worker->house->cache;
    cache_read_begin();
    x->in_read_section = true;
    x->outcome = OUTCOME_MISS;
    switch (cache_find(cache, &x->key, &x->request.headers, &x->object)) {
    case CACHE_FOUND: {
        const struct object_facts *facts = cache_object_facts(x->object);
        if (!may_have_coding(x, facts)) {
            x->reason = REASON_OTHER_VARIANT;
            x->object = NULL; /* nor may the origin be asked whether it still holds */
            break;
        }
        switch (judge_object(x, facts)) {
        case FRESH_YES: return hit(x, OUTCOME_HIT, REASON_FRESH);
        case FRESH_EXPIRED: x->reason = REASON_EXPIRED; break;
        case FRESH_MUST_ASK: x->reason = REASON_MUST_ASK; break;
        case FRESH_CLIENT_ASKED: x->reason = REASON_CLIENT_ASKED; break;
        }
        break;
    }
    case CACHE_OTHER_VARIANT: x->reason = REASON_OTHER_VARIANT; break;
    case CACHE_MISS: x->reason = REASON_ABSENT; break;
    }
    exchange_leave_read_section(x);
    if (!x->owns_object)
        x->object = NULL;
    if (x->site->origin->kind == ORIGIN_FILES)
        return exchange_go(x, STEP_FILE);
    if (cache_is_uncacheable(cache, &x->key, x->begun_ms)) {
        x->outcome = OUTCOME_PASS;
        x->reason = REASON_UNCACHEABLE;
        return exchange_go(x, STEP_PASS);
    }
    if (x->is_head) /* nothing to make an object of */
        return exchange_go(x, STEP_PASS);
    return exchange_go(x, STEP_FILL);
}

/* A fill that ended between our look at the store and our own beginning may have left what we want.
 */
static bool is_stored_meanwhile(struct exchange *x)
{
    struct cache_object *o;
    cache_read_begin();
    bool is =
        cache_find(x->worker->house->cache, &x->key, &x->request.headers, &o) == CACHE_FOUND &&
        may_have_coding(x, cache_object_facts(o)) &&
        judge_object(x, cache_object_facts(o)) == FRESH_YES;
    cache_read_end();
    return is;
}

static enum next step_fill(struct exchange *x)
{
    struct cache_fill *fill = NULL;
    struct cache_object *stale = x->owns_object ? x->object : NULL;
    x->begun = cache_fill_begin(x->worker->house->cache, &x->key, &x->request.headers, stale,
                                &x->reader, &fill);
    if (x->owns_object) {
        x->owns_object = false;
        cache_object_unref(&x->object);
    }
    x->object = NULL;
    x->step = STEP_JOIN; /* before the fetch begins: it may end at once and look at us */
    stat_add(&x->worker->stats->followers_live, 1);
    if (x->begun == FILL_FOLLOW) {
        x->outcome = OUTCOME_COLLAPSED;
        stat_add(&x->worker->stats->fill_joined, 1);
        return NEXT_STEP;
    }
    if (is_stored_meanwhile(x)) {
        cache_fill_fail(fill, REASON_CLIENT_LEFT); /* whoever joined looks again, as we do */
        detach_reader(x);
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
    detach_reader(x);
    if (x->begun != FILL_LEAD)
        x->reason = REASON_UNCACHEABLE;
    x->outcome = OUTCOME_PASS;
    if (x->fetch == NULL)
        return exchange_go(x, STEP_PASS);
    const struct h1_response *r = fetch_response(x->fetch);
    bool is_large = r->framing != FRAMING_LENGTH || r->length > PART_WORTH_ASKING;
    if ((r->status == 304 && fetch_is_conditional(x->fetch)) ||
        (r->status == 200 && is_large && headers_has(&x->request.headers, HEADER_RANGE)))
        fetch_free(&x->fetch); /* it asked with our condition, or for the whole: ask again as the
                                  client did */
    return exchange_go(x, STEP_PASS);
}

void exchange_note_interim(struct exchange *x, struct slice bytes)
{
    if (x->request.minor == 0 || x->step != STEP_JOIN)
        return;
    exchange_add_memory(x, arena_copy(&x->arena, bytes));
    mailbox_post_once(x->reader.mailbox, &x->reader.post);
}

static enum next step_join(struct exchange *x)
{
    struct cache_fill *fill = x->reader.fill;
    CHECK(fill != NULL);
    if (x->segment_at < x->segment_count) {
        step_deliver(x);
        if (x->step != STEP_JOIN)
            return NEXT_STEP; /* the client is gone */
    }
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
    case FILL_FAILED: {
        struct cache_object *o = cache_fill_object(fill);
        if (o == NULL) {
            enum fault fault = fault_of_reason(cache_fill_fault(fill));
            detach_reader(x);
            fetch_leader_left(&x->fetch); /* it frees itself, and must not look for us */
            if (fault == FAULT_NONE &&
                x->begun == FILL_FOLLOW) { /* its leader's doing, not the origin's */
                x->object = NULL;
                return exchange_go(x, STEP_FILL);
            }
            return exchange_refuse(x, fault == FAULT_NONE ? FAULT_ORIGIN_CLOSED : fault);
        }
        break;
    }
    case FILL_STREAMING:
    case FILL_COMPLETE: break;
    }
    if (x->begun == FILL_FOLLOW && !cache_fill_suits(fill, &x->request.headers)) {
        detach_reader(x);
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
    if (x->was_revalidated)
        return hit(x, OUTCOME_REVALIDATED, REASON_VALIDATED);
    return exchange_go(x, STEP_ANSWER_OBJECT);
}

/* ---- a pass
 * ------------------------------------------------------------------------------------------------------
 */

static void queue_interim(struct exchange *x)
{
    struct slice interim = fetch_take_interim(x->fetch);
    if (interim.len == 0 || x->request.minor == 0)
        return;
    exchange_add_memory(x, arena_copy(&x->arena, interim));
    step_deliver(x); /* comes back: this is not the answer */
}

/* Tells a client that waits for it to go on, once there is somebody to take its body (RFC
 * 9110 10.1.1). */
static void say_continue(struct exchange *x)
{
    if (!x->request.expects_continue || x->conn->rest.len > 0 || x->conn->body != BODY_UNREAD)
        return;
    x->request.expects_continue = false;
    exchange_add_memory(x, SLICE("HTTP/1.1 100 Continue\r\n\r\n"));
    step_deliver(x);
}

static enum next step_pass(struct exchange *x)
{
    if (x->fetch == NULL)
        fetch_pass(x);
    say_continue(x);
    switch (fetch_advance(x->fetch)) {
    case FETCH_WAITS:
        queue_interim(x);
        if (x->step != STEP_PASS)
            return NEXT_STEP; /* the client is gone */
        if (x->conn->body == BODY_UNREAD && fetch_takes_body(x->fetch) &&
            x->conn->wait != CONN_SEND && x->conn->wait != CONN_HALF_CLOSED)
            conn_wait(x->conn, CONN_BODY, x->snapshot->config->body_timeout_ms);
        else if (x->conn->wait == CONN_BODY)
            conn_wait_over(x->conn);
        return NEXT_WAIT;
    case FETCH_FAULTED: {
        enum fault fault = fetch_fault(x->fetch);
        invalidate_unsure(x);
        fetch_free(&x->fetch);
        if (x->conn->body == BODY_UNREAD)
            x->conn->must_close = true;
        return exchange_refuse(x, fault);
    }
    case FETCH_HAS_HEAD: break;
    }
    if (x->conn->wait == CONN_BODY)
        conn_wait_over(x->conn);
    queue_interim(x);
    return x->step == STEP_PASS ? exchange_go(x, STEP_ANSWER_PASS) : NEXT_STEP;
}

/* ---- the end
 * -----------------------------------------------------------------------------------------------------
 */

static enum next step_log(struct exchange *x)
{
    struct stats *s = x->worker->stats;
    unsigned class = x->status / 100;
    stat_add(&s->outcome[x->outcome], 1);
    stat_add(&s->reason[x->reason], 1);
    stat_add(&s->status_class[class < STATUS_CLASSES ? class : 0], 1);
    stat_add(&s->body_sent_bytes, (int64_t)x->body_sent);
    if (x->outcome == OUTCOME_HIT || x->outcome == OUTCOME_REVALIDATED ||
        x->outcome == OUTCOME_STALE)
        stat_add(&s->hit_sent_bytes, (int64_t)x->body_sent);
    if (!x->snapshot->config->has_access_log)
        return NEXT_END;

    char text[PEER_TEXT];
    const struct h1_request *r = &x->request;
    int64_t now_us = clock_mono_us();
    struct access_record record = { .wall_ms = clock_wall_ms(),
                                    .client = { text, peer_text(&x->conn->peer, text) },
                                    .method = r->method_text,
                                    .target = r->target,
                                    .protocol =
                                        r->minor == 0 ? SLICE("HTTP/1.0") : SLICE("HTTP/1.1"),
                                    .host = r->authority,
                                    .referer = headers_value(&r->headers, HEADER_REFERER),
                                    .user_agent = headers_value(&r->headers, HEADER_USER_AGENT),
                                    .server = slice_of(x->server_name),
                                    .site = x->site == NULL ? SLICE_NONE : slice_of(x->site->name),
                                    .status = x->status,
                                    .body_bytes = x->body_sent,
                                    .sent_bytes = x->sent,
                                    .outcome = x->outcome,
                                    .reason = x->reason,
                                    .age_s = x->age_s,
                                    .first_byte_us =
                                        x->first_byte_us < 0 ? -1 : x->first_byte_us - x->begun_us,
                                    .total_us = now_us - x->begun_us };
    accesslog_write(x->worker->log, &record);
    return NEXT_END;
}
