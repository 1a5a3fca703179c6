/* proxy/fetch.c: one request to an origin, from connecting to the last byte of its answer; see
 * fetch.h.
 *
 *   CONNECTING --writable--> AWAITING --head--> BODY --all of it--> ENDED
 *        any --fault--> BROKEN     (or once more from CONNECTING, when that is provably safe)
 *
 * Retried is only what cannot have done anything: a connection that was never made, or an
 * idempotent request without body on a kept-alive connection that died before its first byte of
 * answer (RFC 9110 9.2.2). Other requests get a fresh connection at once.
 */
#include "base/clock.h"
#include "base/log.h"
#include "proxy/fetch_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    FETCH_MAGIC = 0x48435446,
    TRIES_MAX = 3,
    INTERIM_MAX = 16,
    INTERIM_BYTES_MAX = 64 << 10,
    TURN_BYTES = 1 << 20, /* of a request's body */
    TRAILER_MAX = 16 << 10
};

static void on_origin(struct origin_conn *conn, short what);
static void on_due(struct deadline *d);

/* ---- life
 * --------------------------------------------------------------------------------------------------------
 */

struct fetch *fetch_new(struct exchange *x)
{
    struct fetch *f = xcalloc(1, sizeof *f);
    f->magic = FETCH_MAGIC;
    f->worker = x->worker;
    f->snapshot = snapshot_ref(x->snapshot);
    f->config = x->plan.origin;
    f->origin = origins_find(x->snapshot->shared->origins, f->config);
    f->exchange = x;
    f->method = x->request.method;
    f->is_idempotent = h1_method_is_idempotent(x->request.method);
    f->deadline.on_due = on_due;
    arena_init(&f->arena);
    f->next = f->worker->fetches;
    f->prev = &f->worker->fetches;
    if (f->next != NULL)
        f->next->prev = &f->next;
    f->worker->fetches = f;
    f->worker->fetch_count++;
    return f;
}

void fetch_free(struct fetch **at)
{
    struct fetch *f = *at;
    *at = NULL;
    if (f == NULL)
        return;
    CHECK_OBJ(f, FETCH_MAGIC);
    if (f->conn != NULL)
        origin_conn_close(&f->conn);
    deadline_clear(&f->deadline);
    fetch_drop_offers(f);
    if (f->server != NULL)
        origin_server_unref(&f->server);
    cache_object_unref(&f->base);
    struct worker *w = f->worker;
    snapshot_unref(&f->snapshot);
    arena_fini(&f->arena);
    free(f->out);
    free(f->own);
    free(f->interim);
    f->magic = 0;
    *f->prev = f->next;
    if (f->next != NULL)
        f->next->prev = f->prev;
    if (!atomic_load(&f->room.is_posted)) /* else its post is under way, and frees it */
        free(f);
    w->fetch_count--;
    worker_check_drained(w);
}

static void wait_for(struct fetch *f, uint32_t ms)
{
    deadline_set(&f->worker->wheel, &f->deadline, clock_mono_ms() + ms);
}

void fetch_break(struct fetch *f, enum fault fault)
{
    if (f->state == FETCH_BROKEN)
        return;
    f->state = FETCH_BROKEN;
    f->fault = fault;
    deadline_clear(&f->deadline);
    if (f->conn != NULL)
        origin_conn_close(&f->conn);
    const struct fault_row *row = fault_row(fault);
    if (row->outcome != OUTCOME_FAULT)
        return; /* the client's doing */
    if (f->server != NULL)
        origin_server_count_fault(f->server, row->reason);
    struct slice line = { f->request.ptr, slice_find(f->request, '\r') };
    log_warn("origin %s, server %s: %s (" SLICE_FMT ")", f->config->name,
             f->server == NULL ? "none" : origin_server_name(f->server), reason_text(row->reason),
             SLICE_ARG(line));
}

/* ---- connecting
 * --------------------------------------------------------------------------------------------------
 */

static void use_connection(struct fetch *f, struct origin_conn *conn)
{
    f->conn = conn;
    conn->user = f;
    conn->on_event = on_origin;
    f->request_sent = 0;
    f->send_failed = f->got_bytes = false;
}

/* For the log: it may outlive the server. */
static void note_server(struct exchange *x, const struct origin_server *server)
{
    const char *name = origin_server_name(server);
    size_t length = strnlen(name, sizeof x->server_name - 1);
    memcpy(x->server_name, name, length);
    x->server_name[length] = '\0';
}

void fetch_connect(struct fetch *f, const struct origin_server *not_this)
{
    struct origin_server *server = f->origin == NULL ? NULL : origin_choose(f->origin, not_this);
    if (server == NULL) {
        fetch_break(f, FAULT_ORIGIN_UNRESOLVED);
        return;
    }
    if (f->server != NULL)
        origin_server_unref(&f->server);
    f->server = server;
    f->tries++;
    if (f->exchange != NULL)
        note_server(f->exchange, server);

    /* A request that must not be sent twice gets a connection that cannot have died of old age. */
    struct origin_conn *conn = NULL;
    if (f->is_idempotent && !f->has_request_body && !f->is_retried)
        conn = origin_pool_take_conn(f->worker->pool, server);
    f->is_reused = conn != NULL;
    if (f->is_reused) {
        use_connection(f, conn);
        conn->can_read = false;
        conn->can_write = true;
        f->state = FETCH_AWAITING;
        return;
    }
    enum reason why = REASON_ORIGIN_REFUSED;
    conn = origin_conn_open(f->worker->pool, server, &why);
    if (conn == NULL) {
        fetch_break(f, fault_of_reason(why));
        return;
    }
    use_connection(f, conn);
    conn->can_read = conn->can_write = false;
    f->state = FETCH_CONNECTING;
    wait_for(f, f->config->connect_timeout_ms);
}

/* Nothing was sent: another server may be asked whatever the method. */
static void connect_elsewhere(struct fetch *f, enum fault fault)
{
    origin_conn_close(&f->conn);
    if (f->tries >= TRIES_MAX) {
        fetch_break(f, fault);
        return;
    }
    origin_server_count_fault(f->server, fault_row(fault)->reason);
    struct origin_server *tried = origin_server_ref(f->server);
    fetch_connect(f, tried); /* the same server again has perhaps another address (localhost: ::1
                                and 127.0.0.1) */
    if (f->server == tried && f->state != FETCH_BROKEN && fault == FAULT_ORIGIN_CONNECT_SLOW)
        fetch_break(f, fault); /* waiting for it once was enough */
    origin_server_unref(&tried);
}

/* The connection broke before any byte of an answer. */
static void lost_before_head(struct fetch *f)
{
    if (f->is_reused)
        stat_add(&f->worker->stats->origin_dead_idle, 1);
    if (!f->is_reused || f->is_retried || !f->is_idempotent || f->body_begun) {
        fetch_break(f, FAULT_ORIGIN_CLOSED);
        return;
    }
    f->is_retried = true;
    stat_add(&f->worker->stats->origin_retried, 1);
    origin_conn_close(&f->conn);
    fetch_connect(f, NULL);
}

static void finish_connecting(struct fetch *f)
{
    if (!f->conn->can_write)
        return;
    if (origin_conn_error(f->conn) != 0) {
        connect_elsewhere(f, FAULT_ORIGIN_REFUSED);
        return;
    }
    deadline_clear(&f->deadline);
    f->state = FETCH_AWAITING;
}

/* ---- sending
 * -----------------------------------------------------------------------------------------------------
 */

/* Bytes taken, 0 when it would block, -1 when the origin takes no more. */
static ssize_t send_some(struct fetch *f, const struct iovec *v, size_t count)
{
    struct msghdr m = { .msg_iov = (struct iovec *)v, .msg_iovlen = count };
    if (!f->conn->can_write)
        return 0;
    ssize_t sent = sendmsg(f->conn->fd, &m, MSG_NOSIGNAL);
    if (sent >= 0) {
        stat_add(&f->worker->stats->origin_sent_bytes, sent);
        if (f->state == FETCH_AWAITING)
            deadline_clear(&f->deadline); /* first_byte_timeout runs from the last that it took */
        return sent;
    }
    if (errno == EAGAIN || errno == EINTR) {
        f->conn->can_write = false;
        return 0;
    }
    f->send_failed = true;
    return -1;
}

static void keep_out(struct fetch *f, const struct iovec *v, size_t count, size_t sent)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += v[i].iov_len;
    f->out = xmalloc(total - sent);
    f->out_at = 0;
    f->out_length = 0;
    for (size_t i = 0; i < count; i++) {
        size_t skip = sent < v[i].iov_len ? sent : v[i].iov_len;
        sent -= skip;
        memcpy(f->out + f->out_length, (char *)v[i].iov_base + skip, v[i].iov_len - skip);
        f->out_length += v[i].iov_len - skip;
    }
}

/* True when nothing is left over. */
static bool flush_out(struct fetch *f)
{
    while (f->out != NULL) {
        struct iovec v = { f->out + f->out_at, f->out_length - f->out_at };
        ssize_t sent = send_some(f, &v, 1);
        if (sent <= 0)
            return false;
        f->out_at += (size_t)sent;
        if (f->out_at < f->out_length)
            continue;
        free(f->out);
        f->out = NULL;
    }
    return true;
}

/* Sends one piece of the request's body, in its framing; what does not go is kept. */
static void send_piece(struct fetch *f, struct slice piece)
{
    char head[24];
    struct iovec v[3];
    size_t count = 0;
    if (f->body_is_chunked) {
        int len = snprintf(head, sizeof head, "%zx\r\n", piece.len);
        v[count++] = (struct iovec){ head, (size_t)len };
    }
    if (piece.len > 0)
        v[count++] = (struct iovec){ (void *)piece.ptr, piece.len };
    if (f->body_is_chunked)
        v[count++] =
            (struct iovec){ "\r\n", 2 }; /* for the last chunk too: it ends the empty trailer */
    if (count == 0)
        return;
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += v[i].iov_len;
    ssize_t sent = send_some(f, v, count);
    if (sent >= 0 && (size_t)sent < total)
        keep_out(f, v, count, (size_t)sent);
}

static void send_body(struct fetch *f)
{
    uint64_t most = f->snapshot->config->body_max_bytes, stop = f->body_bytes + TURN_BYTES;
    while (!f->body_is_done && !f->send_failed && flush_out(f) && f->exchange != NULL) {
        struct slice piece;
        enum h1_cause cause = H1_OK;
        switch (conn_read_body(f->exchange->conn, &piece, &cause)) {
        case CONN_READ_DATA:
            f->body_begun = true;
            f->body_bytes += piece.len;
            if (most > 0 && f->body_bytes > most) {
                fetch_break(f, FAULT_BODY_LARGE);
                return;
            }
            send_piece(f, piece);
            if (f->body_bytes >= stop) { /* others first */
                worker_again(f->worker, f->exchange->conn);
                return;
            }
            break;
        case CONN_READ_END:
            f->body_is_done = true;
            if (f->body_is_chunked)
                send_piece(f, SLICE_NONE);
            break;
        case CONN_READ_WAIT: return;
        case CONN_READ_BAD:
            f->exchange->cause = cause;
            fetch_break(f, FAULT_BAD_REQUEST);
            return;
        case CONN_READ_GONE:
            fetch_break(f, FAULT_BODY_SLOW);
            return; /* the connection's end is noticed by its exchange */
        }
    }
}

static void send_request(struct fetch *f)
{
    while (f->request_sent < f->request.len && !f->send_failed) {
        struct iovec v = { (void *)(f->request.ptr + f->request_sent),
                           f->request.len - f->request_sent };
        ssize_t sent = send_some(f, &v, 1);
        if (sent <= 0)
            return;
        f->request_sent += (size_t)sent;
        if (f->request_sent < f->request.len)
            continue;
        f->sent_us = clock_mono_us();
        f->sent_wall_s = clock_wall_s();
        stat_add(&f->worker->stats->origin_requests, 1);
        origin_server_count_request(f->server);
    }
    if (f->request_sent == f->request.len && f->has_request_body)
        send_body(f);
}

/* ---- reading the head ------------------------------------------------------------------------ */

enum got { GOT_SOME, GOT_NONE_NOW, GOT_END, GOT_ERROR };

/* More bytes behind `view`. Without a `view` they go into the worker's scratch. */
static enum got read_more(struct fetch *f)
{
    if (!f->conn->can_read)
        return GOT_NONE_NOW;
    char *to = f->worker->origin_bytes;
    size_t space = ORIGIN_SCRATCH;
    if (f->view.len > 0) {
        fetch_settle(f);
        size_t used = (size_t)(f->view.ptr - f->own) + f->view.len;
        if (f->own_capacity - used < 4096) {
            memmove(f->own, f->view.ptr, f->view.len);
            f->own_capacity = f->view.len * 2 + 16384;
            f->own = xrealloc(f->own, f->own_capacity);
            f->view.ptr = f->own;
            used = f->view.len;
        }
        to = f->own + used;
        space = f->own_capacity - used;
    }
    ssize_t got = recv(f->conn->fd, to, space, 0);
    if (got > 0) {
        stat_add(&f->worker->stats->origin_received_bytes, got);
        f->got_bytes = true;
        if (f->view.len == 0)
            f->view.ptr = to;
        f->view.len += (size_t)got;
        return GOT_SOME;
    }
    if (got == 0)
        return GOT_END;
    if (errno != EAGAIN && errno != EINTR)
        return GOT_ERROR;
    f->conn->can_read = false;
    return GOT_NONE_NOW;
}

static void *moved(const void *ptr, const char *from, const char *to)
{
    return ptr == NULL ? NULL : (void *)((const char *)ptr - from + to);
}

/* The head's bytes and fields now live in the arena. */
static void keep_head(struct fetch *f)
{
    struct h1_response *r = &f->response;
    const char *from = f->view.ptr;
    struct slice copy = arena_copy(&f->arena, (struct slice){ from, r->head_bytes });
    struct header *fields = arena_alloc(&f->arena, r->headers.count * sizeof *fields);
    for (unsigned i = 0; i < r->headers.count; i++) {
        fields[i] = r->headers.at[i];
        fields[i].name.ptr = moved(fields[i].name.ptr, from, copy.ptr);
        fields[i].value.ptr = moved(fields[i].value.ptr, from, copy.ptr);
    }
    r->reason.ptr = moved(r->reason.ptr, from, copy.ptr);
    r->headers.at = fields;
    r->headers.capacity = r->headers.count;
}

/* An interim response (RFC 9110 15.2) is passed on to a client that can read it; never mistaken for
 * the answer. */
static void note_interim(struct fetch *f)
{
    const struct h1_response *r = &f->response;
    if (++f->interim_count > INTERIM_MAX || r->status == 101 ||
        f->interim_length + r->head_bytes > INTERIM_BYTES_MAX) {
        fetch_break(f, FAULT_ORIGIN_MALFORMED); /* 101 without our having asked for it is no HTTP */
        return;
    }
    deadline_clear(&f->deadline); /* it is at work */
    if (r->status == 100)
        return; /* between us and the origin: the client had its own */
    size_t most = f->interim_length + r->head_bytes + 64 + 4u * r->headers.count;
    f->interim = xrealloc(f->interim, most);
    char *at = f->interim + f->interim_length;
    at += sprintf(at, "HTTP/1.1 %u " SLICE_FMT "\r\n", r->status, SLICE_ARG(r->reason));
    for (unsigned i = 0; i < r->headers.count; i++) {
        const struct header *h = &r->headers.at[i];
        if (!header_is_hop_by_hop(h->id) && h->id != HEADER_CONTENT_LENGTH &&
            !headers_is_nominated(&r->headers, h->name))
            at += sprintf(at, SLICE_FMT ": " SLICE_FMT "\r\n", SLICE_ARG(h->name),
                          SLICE_ARG(h->value));
    }
    at += sprintf(at, "\r\n");
    f->interim_length = (size_t)(at - f->interim);
}

static void begin_body(struct fetch *f)
{
    f->state = FETCH_BODY;
    deadline_clear(&f->deadline); /* the body's runs while we wait for it, not for a client */
    f->left = f->response.framing == FRAMING_LENGTH ? f->response.length : 0;
    if (f->response.framing == FRAMING_CHUNKED)
        h1_chunks_init(&f->chunks, TRAILER_MAX);
    int64_t us = clock_mono_us() - f->sent_us;
    stat_add(&f->worker->stats->origin_head_us, us);
    origin_server_count_head(f->server, us);
}

/* True when something came of it: try again or look at the state. */
static bool read_head(struct fetch *f)
{
    if (f->view.len > 0) {
        enum h1_cause cause = H1_OK;
        headers_init(&f->response.headers, f->worker->origin_fields, HEADERS_MAX);
        enum h1_result result =
            h1_read_response(&f->response, f->view, f->fill != NULL ? METHOD_GET : f->method,
                             &f->snapshot->shared->origin_limits, &cause);
        if (result == H1_BAD) {
            stat_add(&f->worker->stats->h1_cause[cause], 1);
            log_warn("origin %s, server %s: %s", f->config->name, origin_server_name(f->server),
                     h1_cause_text(cause));
            fetch_break(f, FAULT_ORIGIN_MALFORMED);
            return true;
        }
        if (result == H1_DONE) {
            bool interim = f->response.status < 200;
            if (interim)
                note_interim(f);
            else
                keep_head(f);
            f->view.ptr += f->response.head_bytes;
            f->view.len -= f->response.head_bytes;
            f->response.scanned = 0;
            if (!interim && f->state != FETCH_BROKEN)
                begin_body(f);
            return true;
        }
    }
    enum got got = read_more(f);
    if (got == GOT_SOME)
        return true;
    if (got == GOT_NONE_NOW)
        return false;
    if (f->got_bytes)
        fetch_break(f, FAULT_ORIGIN_CUT);
    else
        lost_before_head(f);
    return true;
}

enum fetch_progress fetch_advance(struct fetch *f)
{
    CHECK_OBJ(f, FETCH_MAGIC);
    for (;;) {
        switch (f->state) {
        case FETCH_CONNECTING:
            finish_connecting(f);
            if (f->state == FETCH_CONNECTING)
                return FETCH_WAITS;
            break;
        case FETCH_AWAITING:
            send_request(f);
            if (f->state == FETCH_BROKEN)
                break;
            if (f->send_failed && !f->got_bytes)
                f->conn->can_read = true; /* an early answer, or the reset's reason */
            if (!read_head(f)) {
                if (!deadline_is_set(&f->deadline)) /* a turn alone gives the origin no more time */
                    wait_for(f, f->config->first_byte_timeout_ms);
                return FETCH_WAITS;
            }
            break;
        case FETCH_BODY:
        case FETCH_ENDED: return FETCH_HAS_HEAD;
        case FETCH_BROKEN: return FETCH_FAULTED;
        }
    }
}

/* ---- reading the body ------------------------------------------------------------------------ */

/* The answer is whole. The connection is good for another only when nothing is left on it, in
 * either direction. */
static void end_body(struct fetch *f)
{
    f->state = FETCH_ENDED;
    deadline_clear(&f->deadline);
    bool quiet = f->view.len == 0 && f->response.keeps_alive &&
                 f->response.framing != FRAMING_CLOSE && !f->send_failed && f->out == NULL &&
                 (!f->has_request_body || f->body_is_done) && f->request_sent == f->request.len;
    if (quiet)
        origin_pool_give_conn(f->worker->pool, &f->conn);
    else
        origin_conn_close(&f->conn);
}

static enum fetch_pulled piece_of_view(struct fetch *f, struct slice *piece)
{
    enum h1_cause cause = H1_OK;
    *piece = SLICE_NONE;
    switch (f->response.framing) {
    case FRAMING_NONE: end_body(f); return PULLED_END;
    case FRAMING_LENGTH:
        if (f->left == 0) {
            end_body(f);
            return PULLED_END;
        }
        piece->ptr = f->view.ptr;
        piece->len = f->view.len < f->left ? f->view.len : (size_t)f->left;
        f->left -= piece->len;
        break;
    case FRAMING_CHUNKED:
        switch (h1_chunks_read(&f->chunks, &f->view, piece, &cause)) {
        case H1_DONE: end_body(f); return PULLED_END;
        case H1_BAD:
            stat_add(&f->worker->stats->h1_cause[cause], 1);
            fetch_break(f, FAULT_ORIGIN_CUT);
            return PULLED_FAULT;
        case H1_MORE: return piece->len > 0 ? PULLED_DATA : PULLED_WAIT;
        }
        UNREACHABLE();
    case FRAMING_CLOSE: *piece = f->view; break;
    }
    f->view.ptr += piece->len;
    f->view.len -= piece->len;
    return piece->len > 0 ? PULLED_DATA : PULLED_WAIT;
}

enum fetch_pulled fetch_pull(struct fetch *f, enum fetch_read how, struct slice *piece)
{
    CHECK_OBJ(f, FETCH_MAGIC);
    for (;;) {
        if (f->state == FETCH_ENDED)
            return PULLED_END;
        if (f->state == FETCH_BROKEN)
            return PULLED_FAULT;
        enum fetch_pulled got = piece_of_view(f, piece);
        if (got != PULLED_WAIT)
            return got;
        if (how == FETCH_BUFFERED)
            return PULLED_WAIT;
        switch (read_more(f)) {
        case GOT_SOME: deadline_clear(&f->deadline); break;
        case GOT_NONE_NOW:
            if (!deadline_is_set(&f->deadline))
                wait_for(f, f->config->between_bytes_timeout_ms);
            return PULLED_WAIT;
        case GOT_END:
            if (f->response.framing == FRAMING_CLOSE) { /* RFC 9112 6.3: the close is the end */
                end_body(f);
                return PULLED_END;
            }
            fetch_break(f, FAULT_ORIGIN_CUT);
            return PULLED_FAULT;
        case GOT_ERROR: fetch_break(f, FAULT_ORIGIN_CUT); return PULLED_FAULT;
        }
    }
}

void fetch_settle(struct fetch *f)
{
    if (f->view.len == 0 ||
        (f->own != NULL && f->view.ptr >= f->own && f->view.ptr < f->own + f->own_capacity))
        return;
    if (f->own_capacity < f->view.len) {
        f->own_capacity = f->view.len + 4096;
        free(f->own);
        f->own = xmalloc(f->own_capacity);
    }
    memcpy(f->own, f->view.ptr, f->view.len);
    f->view.ptr = f->own;
}

/* ---- events
 * ------------------------------------------------------------------------------------------------------
 */

static void go_on(struct fetch *f)
{
    if (f->fill != NULL)
        fetch_run_fill(f);
    else if (f->exchange != NULL)
        conn_turn(f->exchange->conn);
}

static void on_origin(struct origin_conn *conn, short what)
{
    struct fetch *f = conn->user;
    CHECK_OBJ(f, FETCH_MAGIC);
    if (what & (EV_READ | EV_CLOSED))
        conn->can_read = true;
    if (what & EV_WRITE)
        conn->can_write = true;
    go_on(f);
}

static void on_due(struct deadline *d)
{
    struct fetch *f = CONTAINER_OF(d, struct fetch, deadline);
    CHECK_OBJ(f, FETCH_MAGIC);
    if (f->state == FETCH_CONNECTING)
        connect_elsewhere(f, FAULT_ORIGIN_CONNECT_SLOW);
    else if (f->state == FETCH_AWAITING)
        fetch_break(f, FAULT_ORIGIN_SLOW);
    else
        fetch_break(f, FAULT_ORIGIN_STALLED);
    go_on(f);
}

void fetch_end_all(struct worker *w)
{
    while (w->fetches != NULL) {
        struct fetch *f = w->fetches;
        if (f->fill != NULL) {
            cache_fill_fail(f->fill, REASON_OVERLOADED);
            stat_add(&w->stats->fills_live, -1);
            fetch_leave_fill(f);
        } else {
            fetch_free(&f);
        }
    }
}

void fetch_client_readable(struct fetch *f)
{
    if (f->has_request_body && !f->body_is_done && f->fill == NULL && f->conn != NULL &&
        f->state != FETCH_CONNECTING && f->state != FETCH_BROKEN)
        send_request(f);
}

bool fetch_takes_body(const struct fetch *f)
{
    return f->state == FETCH_AWAITING && f->request_sent == f->request.len && f->out == NULL &&
           !f->send_failed;
}

const struct h1_response *fetch_response(const struct fetch *f)
{
    return &f->response;
}

enum fault fetch_fault(const struct fetch *f)
{
    return f->fault;
}

bool fetch_is_conditional(const struct fetch *f)
{
    return f->is_conditional;
}

struct slice fetch_take_interim(struct fetch *f)
{
    struct slice all = { f->interim, f->interim_length };
    f->interim_length = 0;
    return all;
}

/* ---- a pass
 * ------------------------------------------------------------------------------------------------------
 */

void fetch_pass(struct exchange *x)
{
    struct fetch *f = fetch_new(x);
    f->gets_ranges = true;
    f->has_request_body = x->request.framing != FRAMING_NONE;
    f->body_is_chunked = x->request.framing == FRAMING_CHUNKED;
    x->fetch = f;
    fetch_connect(f, NULL);
    if (f->state != FETCH_BROKEN)
        f->request = fetch_write_request(f, x, NULL);
}
