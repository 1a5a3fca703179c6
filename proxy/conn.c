/* proxy/conn.c: see conn.h.
 *
 *   IDLE --bytes--> HEAD --head complete--> (exchange) --over--> IDLE …     any --fault, timeout,
 * end--> LINGER --> closed
 *
 * Edge-triggered: `can_read` and `can_write` stand until a call says EAGAIN. A short read means
 * drained, unless a FIN was announced with the same edge: then we read on until it shows (no second
 * edge would come).
 */
#include "proxy/conn.h"

#include "base/clock.h"
#include "proxy/exchange.h"
#include "proxy/fetch.h"
#include "proxy/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONN_MAGIC = 0x4e4e4f43,
    TURN_REQUESTS = 32,    /* pipelined requests answered before others get their turn */
    LINGER_MS = 2000,      /* how long what a refused client still sends is read and dropped */
    DRAIN_GRACE_MS = 500,      /* for the first request of a client that has just connected */
    HALF_CLOSED_MS = 2000, /* how long an answer may still come for a client that has sent a FIN */
    BODY_DRAIN_MAX =
        64 << 10, /* an unread request body up to this is read to keep the connection */
    TRAILER_MAX = 16 << 10,
};

static void on_client(evutil_socket_t fd, short what, void *arg);
static void on_due(struct deadline *d);

/* ---- life
 * --------------------------------------------------------------------------------------------------------
 */

static void set_idle(struct conn *c, int delta)
{
    c->is_counted_idle = delta > 0;
    stat_add(&c->worker->stats->client_idle, delta);
}

void conn_new(struct worker *w, int fd, const struct peer *peer, bool counted_by_address)
{
    struct conn *c = xcalloc(1, sizeof *c);
    c->magic = CONN_MAGIC;
    c->fd = fd;
    c->worker = w;
    c->peer = *peer;
    c->is_counted_by_address = counted_by_address;
    c->deadline.on_due = on_due;
    c->can_write = true;
    c->can_read = true; /* the request is often there already */
    c->next = w->conns;
    c->prev = &w->conns;
    if (c->next != NULL)
        c->next->prev = &c->next;
    w->conns = c;
    w->conn_count++;
    stat_add(&w->stats->client_open, 1);
    set_idle(c, 1);
    CHECK(event_assign(&c->event, w->base, fd, EV_READ | EV_CLOSED | EV_ET | EV_PERSIST, on_client,
                       c) == 0);
    if (event_add(&c->event, NULL) != 0) {
        conn_cut(c);
        return;
    }
    conn_turn(c);
}

static void leave_again(struct conn *c)
{
    if (c->again_prev == NULL)
        return;
    *c->again_prev = c->again_next;
    if (c->again_next != NULL)
        c->again_next->again_prev = c->again_prev;
    else if (c->worker->again_last == &c->again_next)
        c->worker->again_last = c->again_prev;
    c->again_prev = NULL;
}

static void conn_free(struct conn *c)
{
    struct worker *w = c->worker;
    CHECK_OBJ(c, CONN_MAGIC);
    CHECK(c->exchange == NULL);
    if (c->is_counted_idle)
        set_idle(c, -1);
    leave_again(c);
    deadline_clear(&c->deadline);
    event_del(&c->event);
    close(c->fd);
    *c->prev = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    if (c->is_counted_by_address)
        address_table_remove(w->house->addresses, &c->peer);
    atomic_fetch_sub_explicit(&w->house->client_count, 1, memory_order_relaxed);
    stat_add(&w->stats->client_open, -1);
    free(c->own);
    c->magic = 0;
    free(c);
    w->conn_count--;
    worker_check_drained(w);
}

void conn_cut(struct conn *c)
{
    struct linger reset = { .l_onoff = 1, .l_linger = 0 };
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (c->exchange != NULL)
        exchange_abort(c->exchange, REASON_CLIENT_LEFT);
    conn_free(c);
}

static void gone(struct conn *c)
{
    if (c->exchange != NULL)
        exchange_abort(c->exchange, REASON_CLIENT_LEFT);
    conn_free(c);
}

/* Ends our side and drops what the client still sends for a moment: closing at once with bytes
 * unread would reset the connection, and the client would lose the answer (RFC 9112 9.6). */
static void conn_linger(struct conn *c)
{
    c->is_lingering = true;
    c->rest = SLICE_NONE;
    free(c->own);
    c->own = NULL;
    c->own_capacity = 0;
    shutdown(c->fd, SHUT_WR);
    conn_wait(c, CONN_LINGER, LINGER_MS);
}

/* True when the connection is gone. */
static bool linger_on(struct conn *c)
{
    for (unsigned i = 0; i < 16 && c->can_read; i++) {
        ssize_t got = recv(c->fd, c->worker->client_bytes, CLIENT_SCRATCH, 0);
        if (got > 0)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            c->can_read = false;
            return false;
        }
        conn_free(c);
        return true;
    }
    if (c->can_read)
        worker_again(c->worker, c);
    return false;
}

/* ---- waiting
 * -----------------------------------------------------------------------------------------------------
 */

void conn_wait(struct conn *c, enum conn_wait wait, uint32_t ms)
{
    c->wait = (uint8_t)wait;
    deadline_set(&c->worker->wheel, &c->deadline, clock_mono_ms() + ms);
}

void conn_wait_over(struct conn *c)
{
    c->wait = CONN_WAITS_NOT;
    deadline_clear(&c->deadline);
}

static void count_timeout(struct conn *c)
{
    struct stats *s = c->worker->stats;
    switch ((enum conn_wait)c->wait) {
    case CONN_IDLE: stat_add(&s->client_timeout_idle, 1); return;
    case CONN_HEAD: stat_add(&s->client_timeout_head, 1); return;
    case CONN_BODY: stat_add(&s->client_timeout_body, 1); return;
    case CONN_SEND: stat_add(&s->client_timeout_send, 1); return;
    case CONN_WAITS_NOT:
    case CONN_LINGER:
    case CONN_HALF_CLOSED:
    case CONN_FILL: return;
    }
}

static void on_due(struct deadline *d)
{
    struct conn *c = CONTAINER_OF(d, struct conn, deadline);
    CHECK_OBJ(c, CONN_MAGIC);
    count_timeout(c);
    switch ((enum conn_wait)c->wait) {
    case CONN_WAITS_NOT: return;
    case CONN_IDLE:
    case CONN_LINGER: conn_free(c); return;
    case CONN_HEAD: {
        struct exchange *x = exchange_take(c->worker);
        set_idle(c, -1);
        exchange_begin_refused(x, c, FAULT_HEAD_SLOW, H1_OK);
        conn_turn(c);
        return;
    }
    case CONN_SEND:
        exchange_abort(c->exchange, REASON_CLIENT_STALLED);
        conn_cut(c);
        return;
    case CONN_HALF_CLOSED: gone(c); return;
    case CONN_BODY:
    case CONN_FILL:
        if (exchange_timed_out(c->exchange, (enum conn_wait)c->wait))
            conn_turn(c);
        else
            conn_cut(c);
        return;
    }
}

void conn_blocked(struct conn *c)
{
    c->can_write = false;
    if (c->watches_write)
        return;
    c->watches_write = true;
    event_del(&c->event);
    event_assign(&c->event, c->worker->base, c->fd,
                 EV_READ | EV_WRITE | EV_CLOSED | EV_ET | EV_PERSIST, on_client, c);
    if (event_add(&c->event, NULL) != 0)
        c->must_close = true; /* its send timer ends it */
}

/* ---- reading
 * -----------------------------------------------------------------------------------------------------
 */

enum got { GOT_SOME, GOT_NONE_NOW, GOT_END };

static bool is_own(const struct conn *c)
{
    return c->own != NULL && c->rest.ptr >= c->own && c->rest.ptr < c->own + c->own_capacity;
}

void conn_keep_rest(struct conn *c)
{
    if (c->rest.len == 0) {
        if (c->own != NULL && c->exchange == NULL) {
            free(c->own);
            c->own = NULL;
            c->own_capacity = 0;
        }
        return;
    }
    if (is_own(c))
        return;
    if (c->own_capacity < c->rest.len) {
        free(c->own);
        c->own_capacity = (uint32_t)c->rest.len + 512;
        c->own = xmalloc(c->own_capacity);
    }
    memcpy(c->own, c->rest.ptr, c->rest.len);
    c->rest.ptr = c->own;
}

/* Room behind `rest`, which is kept whole and in one piece. */
static char *room_behind_rest(struct conn *c, size_t *space)
{
    if (c->rest.len == 0) {
        *space = CLIENT_SCRATCH;
        return c->worker->client_bytes;
    }
    conn_keep_rest(c);
    if (c->rest.ptr != c->own) {
        memmove(c->own, c->rest.ptr, c->rest.len);
        c->rest.ptr = c->own;
    }
    if (c->own_capacity - c->rest.len < 1024) {
        c->own_capacity = (uint32_t)c->rest.len * 2 + 1024;
        c->own = xrealloc(c->own, c->own_capacity);
        c->rest.ptr = c->own;
    }
    *space = c->own_capacity - c->rest.len;
    return c->own + c->rest.len;
}

static enum got read_more(struct conn *c)
{
    if (!c->can_read || c->saw_end)
        return c->saw_end ? GOT_END : GOT_NONE_NOW;
    size_t space;
    char *to = room_behind_rest(c, &space);
    ssize_t got = recv(c->fd, to, space, 0);
    if (got > 0) {
        stat_add(&c->worker->stats->client_received_bytes, got);
        if (c->rest.len == 0)
            c->rest.ptr = to;
        c->rest.len += (size_t)got;
        if ((size_t)got < space)
            c->can_read = c->peer_closed;
        return GOT_SOME;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        c->can_read = false;
        return GOT_NONE_NOW;
    }
    c->saw_end = true;
    return GOT_END;
}

enum head_read { HEAD_DONE, HEAD_WAITS, HEAD_BAD, HEAD_END };

static enum head_read read_head(struct conn *c, struct exchange *x, enum h1_cause *cause)
{
    for (;;) {
        if (c->rest.len > 0) {
            headers_init(&x->request.headers, c->worker->fields, HEADERS_MAX);
            x->request.scanned = c->scanned;
            switch (h1_read_request(&x->request, c->rest,
                                    &c->worker->snapshot->shared->client_limits, cause)) {
            case H1_DONE: c->scanned = 0; return HEAD_DONE;
            case H1_BAD: return HEAD_BAD;
            case H1_MORE: c->scanned = x->request.scanned; break;
            }
        }
        switch (read_more(c)) {
        case GOT_SOME: break;
        case GOT_NONE_NOW: return HEAD_WAITS;
        case GOT_END: return HEAD_END;
        }
    }
}

static void wait_for_head(struct conn *c)
{
    const struct config *config = c->worker->snapshot->config;
    conn_keep_rest(c);
    if (c->rest.len == 0) {
        c->head_begun = false;
        /* a client that connected just before a drain has its request on the way: it gets its answer */
        conn_wait(c, CONN_IDLE, c->worker->is_draining ? DRAIN_GRACE_MS : config->idle_timeout_ms);
    } else if (!c->head_begun) { /* absolute: a dribbling head does not move it */
        c->head_begun = true;
        conn_wait(c, CONN_HEAD, config->head_timeout_ms);
    }
}

static void begin_body(struct conn *c, const struct h1_request *r)
{
    c->body = r->framing == FRAMING_NONE ? BODY_NONE : BODY_UNREAD;
    c->body_is_chunked = r->framing == FRAMING_CHUNKED;
    c->body_left = r->framing == FRAMING_LENGTH ? r->length : 0;
    if (c->body_is_chunked)
        h1_chunks_init(&c->chunks, TRAILER_MAX);
}

enum started { STARTED, STARTED_NOT, STARTED_CLOSED };

/* The next request, if its head is there. */
static enum started start_request(struct conn *c)
{
    enum h1_cause cause = H1_OK;
    struct exchange *x = exchange_take(c->worker);
    enum head_read got = read_head(c, x, &cause);
    if (got == HEAD_WAITS) {
        exchange_give(x);
        if (c->worker->is_draining && c->rest.len == 0 && c->has_served) {
            conn_free(c);
            return STARTED_CLOSED;
        }
        wait_for_head(c);
        return STARTED_NOT;
    }
    if (got == HEAD_END) {
        exchange_give(x);
        conn_free(c);
        return STARTED_CLOSED;
    }
    if (c->is_counted_idle)
        set_idle(c, -1);
    c->head_begun = false;
    c->has_served = true;
    c->wait = CONN_WAITS_NOT; /* the deadline itself stays linked: moving it once, at the next wait,
                                 is enough */
    if (got == HEAD_BAD) {
        exchange_begin_refused(x, c, FAULT_BAD_REQUEST, cause);
        return STARTED;
    }
    c->rest.ptr += x->request.head_bytes;
    c->rest.len -= x->request.head_bytes;
    begin_body(c, &x->request);
    exchange_begin(x, c);
    return STARTED;
}

enum conn_read conn_read_body(struct conn *c, struct slice *piece, enum h1_cause *cause)
{
    *piece = SLICE_NONE;
    if (c->body != BODY_UNREAD)
        return CONN_READ_END;
    for (;;) {
        if (!c->body_is_chunked && c->body_left == 0) {
            c->body = BODY_DONE;
            return CONN_READ_END;
        }
        if (c->rest.len > 0) {
            if (!c->body_is_chunked) {
                piece->ptr = c->rest.ptr;
                piece->len = c->rest.len < c->body_left ? c->rest.len : (size_t)c->body_left;
                c->body_left -= piece->len;
                c->rest.ptr += piece->len;
                c->rest.len -= piece->len;
                return CONN_READ_DATA;
            }
            switch (h1_chunks_read(&c->chunks, &c->rest, piece, cause)) {
            case H1_DONE: c->body = BODY_DONE; return CONN_READ_END;
            case H1_BAD: stat_add(&c->worker->stats->h1_cause[*cause], 1); return CONN_READ_BAD;
            case H1_MORE:
                if (piece->len > 0)
                    return CONN_READ_DATA;
                break;
            }
        }
        switch (read_more(c)) {
        case GOT_SOME: break;
        case GOT_NONE_NOW: return CONN_READ_WAIT;
        case GOT_END: return CONN_READ_GONE;
        }
    }
}

bool conn_check_peer(struct conn *c)
{
    if (c->was_reset)
        return false;
    /* A FIN is either a client that left or one that has only finished sending: a moment's grace
     * serves the second. */
    if (c->peer_closed && c->wait != CONN_HALF_CLOSED && c->wait != CONN_SEND)
        conn_wait(c, CONN_HALF_CLOSED, HALF_CLOSED_MS);
    return true;
}

/* ---- turns
 * -------------------------------------------------------------------------------------------------------
 */

/* Reads what is left of the request's body, so that the next request is found behind it. False:
 * close instead. */
static bool drain_body(struct conn *c)
{
    size_t dropped = 0;
    enum h1_cause cause = H1_OK;
    while (dropped <= BODY_DRAIN_MAX) {
        struct slice piece;
        switch (conn_read_body(c, &piece, &cause)) {
        case CONN_READ_DATA: dropped += piece.len; break;
        case CONN_READ_END: return true;
        case CONN_READ_WAIT: /* a client that still sends an unwanted body gets a close: no state
                                for it */
        case CONN_READ_BAD:
        case CONN_READ_GONE: return false;
        }
    }
    return false;
}

enum after { AFTER_NEXT, AFTER_WAITS, AFTER_GONE };

static enum after exchange_over(struct conn *c)
{
    struct exchange *x = c->exchange;
    bool cut = x->was_cut, keeps = x->keeps_alive && !c->must_close && !c->worker->is_draining;
    c->exchange = NULL;
    c->wait = CONN_WAITS_NOT; /* whatever it waited for */
    exchange_give(x);
    if (cut) {
        conn_cut(c);
        return AFTER_GONE;
    }
    if (keeps && c->body == BODY_UNREAD && !drain_body(c))
        keeps = false;
    if (!keeps && c->body != BODY_UNREAD && c->rest.len == 0 && !c->is_lingering && !c->can_read) {
        conn_free(c); /* nothing is on its way that a close could turn into a reset */
        return AFTER_GONE;
    }
    if (!keeps) {
        conn_linger(c);
        return linger_on(c) ? AFTER_GONE : AFTER_WAITS;
    }
    c->body = BODY_NONE;
    set_idle(c, 1);
    return AFTER_NEXT;
}

static void uncork(struct conn *c)
{
    if (!c->is_corked)
        return;
    int on = 1; /* setting it anew pushes what MSG_MORE held back */
    c->is_corked = false;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static bool wait_in_exchange(struct conn *c)
{
    conn_keep_rest(c);
    uncork(c);
    if (conn_check_peer(c))
        return true;
    gone(c);
    return false;
}

void conn_turn(struct conn *c)
{
    CHECK_OBJ(c, CONN_MAGIC);
    if (c->is_in_turn)
        return;
    if (c->is_lingering) {
        linger_on(c);
        return;
    }
    c->is_in_turn = true;
    for (unsigned n = 0;; n++) {
        if (c->exchange == NULL) {
            if (n >= TURN_REQUESTS) {
                conn_keep_rest(c);
                worker_again(c->worker, c);
                break;
            }
            enum started started = start_request(c);
            if (started == STARTED_CLOSED)
                return;
            if (started == STARTED_NOT)
                break;
        }
        if (exchange_run(c->exchange) == EXCHANGE_WAITS) {
            if (!wait_in_exchange(c))
                return;
            break;
        }
        enum after after = exchange_over(c);
        if (after == AFTER_GONE)
            return;
        if (after == AFTER_WAITS)
            break;
    }
    uncork(c);
    c->is_in_turn = false;
}

void conn_run_again(struct worker *w)
{
    w->again_now = w->again_first;
    if (w->again_now != NULL)
        w->again_now->again_prev = &w->again_now;
    w->again_first = NULL;
    w->again_last = &w->again_first;
    while (w->again_now != NULL) {
        struct conn *c = w->again_now;
        leave_again(c);
        conn_turn(c);
    }
}

/* A reset may come as "readable" alone; nobody reads while an exchange waits, so look. */
static void note_end(struct conn *c)
{
    char byte;
    ssize_t got = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        c->peer_closed = true;
    if (got < 0 && c->peer_closed)
        c->was_reset = true;
}

static void on_client(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    struct conn *c = arg;
    CHECK_OBJ(c, CONN_MAGIC);
    if (what & EV_CLOSED)
        c->peer_closed = true;
    if (what & (EV_READ | EV_CLOSED))
        c->can_read = true;
    if (c->exchange != NULL && (what & EV_READ) && c->body != BODY_UNREAD)
        note_end(c);
    if (what & EV_WRITE)
        c->can_write = true;
    conn_turn(c);
}

void conn_drain_all(struct worker *w)
{
    struct conn *next;
    for (struct conn *c = w->conns; c != NULL; c = next) {
        next = c->next;
        c->must_close = true;
        if (c->exchange != NULL || c->rest.len > 0 || c->is_lingering)
            continue;
        if (c->has_served)
            conn_free(c);
        else
            conn_wait(c, CONN_IDLE, DRAIN_GRACE_MS);
    }
}
