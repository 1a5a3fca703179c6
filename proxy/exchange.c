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

static enum next step_pass(struct exchange *x);
static enum next step_log(struct exchange *x);

static enum next (*const steps[STEP_COUNT])(struct exchange *x) = {
    [STEP_ROUTE] = step_route,                 /* waits not                      */
    [STEP_LOOKUP] = step_lookup,               /* waits not                      */
    [STEP_FILL] = step_fill,                   /* starts or joins; waits not     */
    [STEP_JOIN] = step_join,                   /* waits for: a fill's head       */
    [STEP_FILE] = step_file,                   /* waits not                      */
    [STEP_PASS] = step_pass,                   /* waits for: the origin's head   */
    [STEP_ANSWER_RULE] = step_answer_rule,     /* waits not                      */
    [STEP_ANSWER_OBJECT] = step_answer_object, /* waits not                      */
    [STEP_ANSWER_PASS] = step_answer_pass,     /* waits not                      */
    [STEP_SLICES] = step_slices,               /* waits for: a slice's head      */
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
    x->object = x->stale = NULL;
    x->slices = NULL;
    x->tee = NULL;
    x->passes_range = x->was_restarted = false;
    x->reader.position = 0;
    x->reader.is_leader = false;
    x->outcome = OUTCOME_LOCAL;
    x->reason = REASON_ANSWERED;
    x->looked = REASON_ANSWERED;
    x->unstored = STORABLE_YES;
    x->is_stored = false;
    x->origin_status = 0;
    x->own_fields = SLICE_NONE;
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

enum next exchange_serve(struct exchange *x, enum outcome outcome, enum reason reason)
{
    x->outcome = outcome;
    x->reason = reason;
    return exchange_go(x, STEP_ANSWER_OBJECT);
}

void exchange_detach_reader(struct exchange *x)
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
        exchange_detach_reader(x);
        fetch_leader_left(&x->fetch);
    }
    exchange_detach_reader(x);
    exchange_tee_drop(x);
    fetch_free(&x->fetch);
    exchange_slices_drop(x);
    if (x->owns_object)
        cache_object_unref(&x->object);
    x->owns_object = false;
    x->object = NULL;
    if (x->stale != NULL)
        cache_object_unref(&x->stale);
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

void exchange_abort(struct exchange *x, enum reason why)
{
    struct conn *c = x->conn;
    CHECK(!x->running);
    exchange_invalidate_unsure(x);
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
        exchange_detach_reader(x);
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

/* Of the head's bytes; what rules have put there instead lies in the arena already. */
struct shift {
    const char *from, *end, *to;
};

static void move(struct slice *s, const struct shift *by)
{
    if (s->ptr >= by->from && s->ptr <= by->end)
        s->ptr = s->ptr - by->from + by->to;
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
    const char *last = r->target.ptr + r->target.len, *most = from + length;
    for (unsigned i = 0; i < r->headers.count; i++) {
        const char *e = r->headers.at[i].value.ptr + r->headers.at[i].value.len;
        const char *n = r->headers.at[i].name.ptr + r->headers.at[i].name.len;
        last = e > last && e <= most && e >= from ? e : last;
        last = n > last && n <= most && n >= from ? n : last;
    }
    length = (size_t)(last - from);
    x->kept = block;
    x->kept_fields = (struct header *)(void *)block;
    struct shift by = { from, last, block + fields };
    memcpy(block + fields, from, length);
    for (unsigned i = 0; i < r->headers.count; i++) {
        x->kept_fields[i] = r->headers.at[i];
        move(&x->kept_fields[i].name, &by);
        move(&x->kept_fields[i].value, &by);
    }
    r->headers.at = x->kept_fields;
    r->headers.capacity = r->headers.count;
    struct slice *const slices[] = { &r->target, &r->scheme,       &r->query,      &r->path,
                                     &r->authority, &r->method_text, &x->plan.path, &x->plan.query };
    for (size_t i = 0; i < ARRAY_COUNT(slices); i++)
        move(slices[i], &by);
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

/* ---- a pass
 * ------------------------------------------------------------------------------------------------------
 */

/* False: the client is gone. */
static bool send_interim(struct exchange *x)
{
    struct slice interim = fetch_take_interim(x->fetch);
    if (interim.len > 0 && x->request.minor > 0)
        exchange_add_memory(x, arena_copy(&x->arena, interim));
    return exchange_send_interim(x);
}

/* For a leader that waits for its fill. */
void exchange_note_interim(struct exchange *x, struct slice bytes)
{
    if (x->request.minor == 0 || x->step != STEP_JOIN)
        return;
    exchange_add_memory(x, arena_copy(&x->arena, bytes));
    mailbox_post_once(x->reader.mailbox, &x->reader.post);
}

/* Tells a client that waits for it to go on, once there is somebody to take its body (RFC
 * 9110 10.1.1). */
static void say_continue(struct exchange *x)
{
    if (!x->request.expects_continue || x->conn->rest.len > 0 || x->conn->body != BODY_UNREAD)
        return;
    x->request.expects_continue = false;
    exchange_add_memory(x, SLICE("HTTP/1.1 100 Continue\r\n\r\n"));
}

static enum next step_pass(struct exchange *x)
{
    if (x->fetch == NULL)
        fetch_pass(x);
    say_continue(x);
    switch (fetch_advance(x->fetch)) {
    case FETCH_WAITS:
        if (!send_interim(x))
            return NEXT_STEP;
        if (x->conn->body == BODY_UNREAD && fetch_takes_body(x->fetch) &&
            x->conn->wait != CONN_SEND && x->conn->wait != CONN_HALF_CLOSED)
            conn_wait(x->conn, CONN_BODY, x->snapshot->config->body_timeout_ms);
        else if (x->conn->wait == CONN_BODY)
            conn_wait_over(x->conn);
        return NEXT_WAIT;
    case FETCH_FAULTED: {
        enum fault fault = fetch_fault(x->fetch);
        exchange_invalidate_unsure(x);
        fetch_free(&x->fetch);
        if (x->conn->body == BODY_UNREAD)
            x->conn->must_close = true;
        return exchange_origin_failed(x, fault);
    }
    case FETCH_HAS_HEAD: break;
    }
    if (x->conn->wait == CONN_BODY)
        conn_wait_over(x->conn);
    return send_interim(x) ? exchange_go(x, STEP_ANSWER_PASS) : NEXT_STEP;
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
