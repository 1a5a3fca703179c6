/* proxy/deliver.c: sends an answer: what is in memory by sendmsg, head and body together; what is
 * in a file by sendfile, without a copy.
 *
 * The answer is a list of segments, refilled from its source (a growing object, an origin) when it
 * runs out. One turn sends a bounded amount; a client that takes no more is waited for, and nothing
 * is read from its origin meanwhile.
 */
#include "base/clock.h"
#include "proxy/exchange.h"
#include "proxy/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

enum { TURN_BYTES = 4 << 20, IOV_MAX_HERE = 16, BORROW_MAX = 128 << 10 };

enum sent { SENT_ALL, SENT_BLOCKED, SENT_ENOUGH, SENT_FAILED };

/* ---- segments -------------------------------------------------------------------------------- */

struct segment *exchange_add_segment(struct exchange *x)
{
    if (x->segment_at == x->segment_count)
        x->segment_at = x->segment_count = 0;
    if (x->segment_count == x->segment_capacity) {
        struct segment *more = arena_alloc(&x->arena, 2 * x->segment_capacity * sizeof *more);
        memcpy(more, x->segments, x->segment_count * sizeof *more);
        x->segments = more;
        x->segment_capacity *= 2;
    }
    return &x->segments[x->segment_count++];
}

struct segment *exchange_add_memory(struct exchange *x, struct slice bytes)
{
    struct segment *s = exchange_add_segment(x);
    *s = (struct segment){ .kind = SEGMENT_MEMORY, .mem = bytes.ptr, .to = bytes.len };
    return s;
}

void exchange_add_object(struct exchange *x, uint64_t from, uint64_t to)
{
    if (from < to)
        *exchange_add_segment(x) =
            (struct segment){ .kind = SEGMENT_OBJECT, .is_body = true, .from = from, .to = to };
}

/* ---- sending
 * -----------------------------------------------------------------------------------------------------
 */

static void note_sent(struct exchange *x, uint64_t bytes)
{
    x->sent += bytes;
    x->sent_any = true;
    if (x->conn->wait == CONN_SEND || x->conn->wait == CONN_HALF_CLOSED)
        conn_wait_over(x->conn); /* the client takes: its time begins anew with the next wait */
    if (x->first_byte_us < 0 && x->snapshot->config->has_access_log)
        x->first_byte_us = clock_mono_us();
    stat_add(&x->worker->stats->client_sent_bytes, (int64_t)bytes);
}

/* Takes bytes off the front of the segments. */
static void advance(struct exchange *x, uint64_t bytes)
{
    note_sent(x, bytes);
    while (bytes > 0) {
        struct segment *s = &x->segments[x->segment_at];
        uint64_t left = s->to - s->from, taken = bytes < left ? bytes : left;
        s->from += taken;
        bytes -= taken;
        if (s->is_body)
            x->body_sent += taken;
        if (s->from == s->to)
            x->segment_at++;
    }
}

static enum sent failed(struct exchange *x)
{
    if (errno == EAGAIN || errno == EINTR) {
        conn_blocked(x->conn);
        return SENT_BLOCKED;
    }
    return SENT_FAILED;
}

/* Gathers what lies in memory from the front on; true when a file follows. */
static bool gather(struct exchange *x, struct iovec *v, size_t *count)
{
    *count = 0;
    for (unsigned i = x->segment_at; i < x->segment_count; i++) {
        const struct segment *s = &x->segments[i];
        uint64_t at = s->from;
        while (at < s->to) {
            if (*count == IOV_MAX_HERE)
                return false;
            struct iovec piece = { NULL, (size_t)(s->to - at) };
            if (s->kind == SEGMENT_MEMORY) {
                piece.iov_base = (void *)(s->mem + at);
            } else if (s->kind == SEGMENT_FILE) {
                return true;
            } else {
                struct object_piece p = cache_object_piece(x->object, at);
                if (p.mem == NULL)
                    return true;
                piece.iov_base = (void *)p.mem;
                if (p.length < piece.iov_len)
                    piece.iov_len = p.length;
            }
            v[(*count)++] = piece;
            at += piece.iov_len;
        }
    }
    return false;
}

static enum sent send_memory(struct exchange *x, struct iovec *v, size_t count, bool more_follows)
{
    struct msghdr m = { .msg_iov = v, .msg_iovlen = count };
    int flags = MSG_NOSIGNAL | (more_follows ? MSG_MORE : 0);
    ssize_t sent = sendmsg(x->conn->fd, &m, flags);
    if (sent < 0)
        return failed(x);
    x->conn->is_corked = more_follows;
    advance(x, (uint64_t)sent);
    return SENT_ALL; /* the next round finds out whether it was all */
}

static enum sent send_file(struct exchange *x, const struct segment *s)
{
    struct object_piece p = { .fd = x->file_fd,
                              .at = s->from,
                              .length = (size_t)(s->to - s->from) };
    if (s->kind == SEGMENT_OBJECT) {
        p = cache_object_piece(x->object, s->from);
        if (p.length > s->to - s->from)
            p.length = (size_t)(s->to - s->from);
    }
    off_t at = (off_t)p.at;
    if (p.length > TURN_BYTES)
        p.length = TURN_BYTES;
    ssize_t sent = sendfile(x->conn->fd, p.fd, &at, p.length);
    if (sent < 0)
        return failed(x);
    if (sent == 0)
        return SENT_FAILED; /* the file has shrunk */
    x->conn->is_corked = false;
    advance(x, (uint64_t)sent);
    return SENT_ALL;
}

static enum sent send_segments(struct exchange *x)
{
    uint64_t start = x->sent;
    while (x->segment_at < x->segment_count) {
        if (x->segments[x->segment_at].from == x->segments[x->segment_at].to) {
            x->segment_at++;
            continue;
        }
        if (!x->conn->can_write)
            return SENT_BLOCKED;
        if (x->sent - start >= TURN_BYTES)
            return SENT_ENOUGH;
        struct iovec v[IOV_MAX_HERE];
        size_t count;
        bool file_follows = gather(x, v, &count);
        enum sent sent = count > 0 ? send_memory(x, v, count, file_follows)
                                   : send_file(x, &x->segments[x->segment_at]);
        if (sent != SENT_ALL)
            return sent;
    }
    x->segment_at = x->segment_count = 0;
    return SENT_ALL;
}

/* ---- refilling
 * ---------------------------------------------------------------------------------------------------
 */

enum refill { REFILLED, REFILL_WAITS, REFILL_DONE, REFILL_BROKEN };

static void add_chunk_head(struct exchange *x, unsigned index, uint64_t bytes)
{
    if (x->framing != OUT_CHUNKED)
        return;
    char *head = x->chunk_heads[index];
    int length =
        snprintf(head, sizeof x->chunk_heads[index], "%llx\r\n", (unsigned long long)bytes);
    exchange_add_memory(x, (struct slice){ head, (size_t)length });
}

static void add_chunk_end(struct exchange *x)
{
    if (x->framing == OUT_CHUNKED)
        exchange_add_memory(x, SLICE("\r\n"));
}

static enum refill end_source(struct exchange *x)
{
    x->is_source_done = true;
    if (x->framing != OUT_CHUNKED)
        return REFILL_DONE;
    exchange_add_memory(x, SLICE("0\r\n\r\n"));
    return REFILLED;
}

/* From an object that grows. The state is read before the length: COMPLETE then means that the
 * length is final. */
static enum refill refill_from_object(struct exchange *x)
{
    enum object_state state = cache_object_state(x->object);
    uint64_t arrived = cache_object_arrived(x->object);
    uint64_t end = arrived < x->object_end ? arrived : x->object_end;
    if (x->reader.fill != NULL) /* of a part further on, what comes before it is not waited for */
        cache_reader_took(&x->reader, arrived < x->object_position ? arrived : x->object_position);
    if (x->object_position < end) {
        add_chunk_head(x, 0, end - x->object_position);
        exchange_add_object(x, x->object_position, end);
        add_chunk_end(x);
        x->object_position = end;
        if (state == OBJECT_COMPLETE && end == arrived)
            end_source(x);
        return REFILLED;
    }
    if (state == OBJECT_COMPLETE || x->object_position == x->object_end)
        return end_source(x);
    return state == OBJECT_FAILED ? REFILL_BROKEN : REFILL_WAITS;
}

/* From the origin: everything that one read brought goes out with one call. */
static enum refill refill_from_fetch(struct exchange *x)
{
    enum fetch_read how = FETCH_READ;
    for (unsigned i = 0; i < REFILL_PIECES; i++) {
        struct slice piece;
        switch (fetch_pull(x->fetch, how, &piece)) {
        case PULLED_DATA:
            add_chunk_head(x, i, piece.len);
            exchange_add_memory(x, piece)->is_body = true;
            add_chunk_end(x);
            if (unlikely(x->tee != NULL))
                exchange_tee_take(x, piece);
            how = FETCH_BUFFERED;
            break;
        case PULLED_WAIT: return i > 0 ? REFILLED : REFILL_WAITS;
        case PULLED_END:
            exchange_tee_end(x);
            return end_source(x) == REFILL_DONE && i == 0 ? REFILL_DONE : REFILLED;
        case PULLED_FAULT: return REFILL_BROKEN;
        }
    }
    return REFILLED;
}

/* From slices, each an object of its own: one at a time is x->object. */
static enum refill refill_from_slices(struct exchange *x)
{
    uint64_t from, to;
    switch (exchange_slices_pull(x, &from, &to)) {
    case SLICES_DATA: exchange_add_object(x, from, to); return REFILLED;
    case SLICES_WAIT: return REFILL_WAITS;
    case SLICES_END: return end_source(x);
    case SLICES_BROKEN: return REFILL_BROKEN;
    }
    UNREACHABLE();
}

static enum refill refill(struct exchange *x)
{
    if (x->is_source_done)
        return REFILL_DONE;
    switch (x->source) {
    case SOURCE_NONE: return REFILL_DONE;
    case SOURCE_OBJECT: return refill_from_object(x);
    case SOURCE_SLICES: return refill_from_slices(x);
    case SOURCE_FETCH: return refill_from_fetch(x);
    }
    UNREACHABLE();
}

/* ---- the step
 * ----------------------------------------------------------------------------------------------------
 */

/* What the worker's scratch holds of a pass must outlive this turn: one block, bounded by one read.
 */
static void keep_scratch(struct exchange *x)
{
    if (x->source != SOURCE_FETCH || x->fetch == NULL)
        return;
    fetch_settle(x->fetch);
    size_t total = 0;
    const char *scratch = x->worker->origin_bytes;
    for (unsigned i = x->segment_at; i < x->segment_count; i++) {
        struct segment *s = &x->segments[i];
        if (s->mem >= scratch && s->mem < scratch + ORIGIN_SCRATCH)
            total += (size_t)(s->to - s->from);
    }
    if (total == 0)
        return;
    char *old = x->spill, *at = x->spill = xmalloc(total);
    for (unsigned i = x->segment_at; i < x->segment_count; i++) {
        struct segment *s = &x->segments[i];
        if (s->mem < scratch || s->mem >= scratch + ORIGIN_SCRATCH)
            continue;
        size_t length = (size_t)(s->to - s->from);
        memcpy(at, s->mem + s->from, length);
        *s = (struct segment){
            .kind = SEGMENT_MEMORY, .is_body = s->is_body, .mem = at, .to = length
        };
        at += length;
    }
    free(old);
}

static enum next wait_for_client(struct exchange *x)
{
    keep_scratch(x);
    if (x->conn->wait != CONN_SEND)
        conn_wait(x->conn, CONN_SEND, x->snapshot->config->send_timeout_ms);
    return NEXT_WAIT;
}

static enum next cut(struct exchange *x)
{
    x->was_cut = true;
    x->keeps_alive = false;
    if (x->outcome != OUTCOME_ABORTED) {
        enum fault fault = x->source == SOURCE_FETCH ? fetch_fault(x->fetch) : FAULT_ORIGIN_CUT;
        if (x->source == SOURCE_SLICES)
            fault = exchange_slices_fault(x);
        if (x->source == SOURCE_OBJECT && x->reader.fill != NULL &&
            fault_of_reason(cache_fill_fault(x->reader.fill)) != FAULT_NONE)
            fault = fault_of_reason(cache_fill_fault(x->reader.fill));
        x->outcome = OUTCOME_FAULT;
        x->reason = fault_row(fault)->reason;
    }
    return exchange_go(x, STEP_LOG);
}

/* A body that may block the client is kept by reference before its first byte goes: an evicted one
 * is then looked up as a miss. */
static bool keep_large(struct exchange *x)
{
    if (!x->in_read_section || x->sent_any || x->owns_object || x->object == NULL)
        return true;
    if (cache_object_length(x->object) <= BORROW_MAX)
        return true;
    x->owns_object = cache_object_try_ref(x->object);
    return x->owns_object;
}

bool exchange_send_interim(struct exchange *x)
{
    bool sent_any = x->sent_any; /* of the answer itself */
    if (x->segment_at == x->segment_count)
        return true;
    enum sent sent = send_segments(x);
    x->sent_any = sent_any;
    if (sent != SENT_FAILED)
        return true; /* what the client did not take goes before the answer */
    x->outcome = OUTCOME_ABORTED;
    x->reason = REASON_CLIENT_LEFT;
    (void)cut(x);
    return false;
}

enum next step_deliver(struct exchange *x)
{
    if (!keep_large(x)) {
        x->object = NULL;
        exchange_leave_read_section(x);
        x->segment_at = x->segment_count = 0;
        return exchange_go(x, STEP_LOOKUP);
    }
    if (x->source == SOURCE_FETCH)
        fetch_client_readable(x->fetch); /* an early answer: the request's body still goes on */
    /* The head goes out together with what has already come of the body; when nothing has gone out
     * yet and the body broke, the client gets an error instead of half an answer. Once only: what
     * comes while the client takes nothing waits at the origin. */
    bool is_first = x->source == SOURCE_FETCH && !x->sent_any && !x->has_pulled;
    x->has_pulled |= is_first;
    if (is_first && refill(x) == REFILL_BROKEN) {
        enum fault fault = fetch_fault(x->fetch);
        exchange_tee_drop(x);
        fetch_free(&x->fetch);
        x->segment_at = x->segment_count = 0;
        return exchange_origin_failed(x, fault);
    }
    uint64_t start = x->sent;
    for (;;) {
        if (x->sent - start >= TURN_BYTES) {
            keep_scratch(x);
            worker_again(x->worker, x->conn);
            return NEXT_WAIT;
        }
        switch (send_segments(x)) {
        case SENT_ALL: break;
        case SENT_BLOCKED: return wait_for_client(x);
        case SENT_ENOUGH:
            keep_scratch(x);
            worker_again(x->worker, x->conn);
            return NEXT_WAIT;
        case SENT_FAILED:
            x->outcome = OUTCOME_ABORTED;
            x->reason = REASON_CLIENT_LEFT;
            return cut(x);
        }
        switch (refill(x)) {
        case REFILLED: break;
        case REFILL_WAITS: return NEXT_WAIT;
        case REFILL_DONE: return exchange_go(x, STEP_LOG);
        case REFILL_BROKEN: return cut(x);
        }
    }
}
