/* proxy/pool.c: connections to servers and, per worker, the idle ones among them; see origin.h.
 *
 *   open --connected--> in use --give--> idle --take--> in use …       each --close--> gone
 *                                         '--the server ends it or sends, idle_timeout--> gone
 *
 * A connection's event is added once, edge-triggered, for both directions and for the end of the
 * stream. Taking and giving only change whom it calls, so a request on a kept-alive connection
 * costs one peek and no epoll_ctl(). The end is seen (EV_CLOSED) even if it came while the last
 * answer was being read, so giving needs no peek of its own. What that cannot see is found by the
 * peek at taking.
 */
#include "proxy/origin_internal.h"

#include "base/clock.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    IDLE_CHAINS = 64,
    LIST_UNUSED_MS = 5000, /* an empty list is kept that long: a busy server's comes and goes */
    CONNECT_RETRY_MS = 10, /* a unix socket whose queue is full */
    CONNECT_HOPELESS_MS = 1000, /* given up after that long: the address rests */
};

/* The idle connections to one server. */
struct origin_idle {
    struct origin_idle *next; /* in its chain */
    struct origin_server *server;
    struct origin_conn *newest, *oldest;
    unsigned count;
    int64_t used_ms;
};

struct origin_pool {
    struct event_base *base;
    short watched; /* what a connection's event is for */
    size_t open_count;
    bool is_freed; /* with connections still in use: the last of them frees it */
    struct origin_idle *chains[IDLE_CHAINS];
};

/* ---- lists ----------------------------------------------------------------------------------- */

static struct origin_idle **chain_of(struct origin_pool *p, const struct origin_server *s)
{
    uintptr_t bits = (uintptr_t)s;
    return &p->chains[(bits >> 5 ^ bits >> 12) % IDLE_CHAINS];
}

static struct origin_idle *list_find(struct origin_pool *p, const struct origin_server *s)
{
    struct origin_idle *l = *chain_of(p, s);
    while (l != NULL && l->server != s)
        l = l->next;
    return l;
}

static struct origin_idle *list_of(struct origin_pool *p, struct origin_server *s)
{
    struct origin_idle *l = list_find(p, s);
    if (l != NULL)
        return l;
    struct origin_idle **chain = chain_of(p, s);
    l = xcalloc(1, sizeof *l);
    l->server = origin_server_ref(s);
    l->next = *chain;
    *chain = l;
    return l;
}

static void list_push(struct origin_idle *l, struct origin_conn *c)
{
    c->idle = l;
    c->newer = NULL;
    c->older = l->newest;
    *(l->newest == NULL ? &l->oldest : &l->newest->newer) = c;
    l->newest = c;
    l->count++;
    origin_server_count_idle(c->server, 1);
    stat_add(&stats_mine()->origin_idle, 1);
}

static void list_remove(struct origin_conn *c)
{
    struct origin_idle *l = c->idle;
    CHECK(l != NULL && l->count > 0);
    *(c->newer == NULL ? &l->newest : &c->newer->older) = c->older;
    *(c->older == NULL ? &l->oldest : &c->older->newer) = c->newer;
    l->count--;
    c->idle = NULL;
    c->newer = c->older = NULL;
    origin_server_count_idle(c->server, -1);
    stat_add(&stats_mine()->origin_idle, -1);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void on_conn(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    struct origin_conn *c = arg;
    CHECK(c->on_event != NULL);
    if (what & EV_CLOSED) {
        c->has_ended = true;
        what |= EV_READ;
    }
    c->can_read = c->can_read || (what & EV_READ);
    c->can_write = c->can_write || (what & EV_WRITE);
    c->on_event(c, what & (EV_READ | EV_WRITE)); /* `c` may be gone after this */
}

/* Quiet and not ended: nothing to read yet, nothing to read ever. */
static bool is_good(const struct origin_conn *c)
{
    char byte;
    return !c->has_ended && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EINTR);
}

static void close_dead(struct origin_conn *c)
{
    stat_add(&stats_mine()->origin_dead_idle, 1);
    origin_conn_close(&c);
}

static void on_idle(struct origin_conn *c, short what)
{
    if (!(what & EV_READ))
        return; /* an edge tells the other direction along with the one that changed */
    if (!is_good(c))
        close_dead(
            c); /* bytes that nobody asked for cannot belong to the next answer (RFC 9112 9.2) */
}

/* ---- opening --------------------------------------------------------------------------------- */

static void on_retry(evutil_socket_t fd, short what, void *arg);

/* 0 when connected or under way. */
static int connect_to(int fd, const struct origin_address *to)
{
    if (connect(fd, &to->at.any, to->length) == 0 || errno == EINPROGRESS || errno == EINTR)
        return 0;
    return errno;
}

static int socket_for(const struct origin_address *to)
{
    int fd = socket(to->at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;
    if (fd >= 0 && to->at.any.sa_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* only slower without */
    return fd;
}

static bool is_queue_full(const struct origin_address *to, int error)
{
    return to->at.any.sa_family == AF_UNIX &&
           error == EAGAIN; /* connect(2): of unix sockets alone */
}

/* Ours, not the server's: descriptors, ports, memory. IPv6 says EADDRNOTAVAIL also where it is
 * switched off. */
static bool is_exhaustion(const struct origin_address *to, int error)
{
    if (error == EADDRNOTAVAIL)
        return to->at.any.sa_family == AF_INET;
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
           error == EAGAIN;
}

/* Tries the server's addresses until one is under way. False when we have run out of something. */
static bool begin(struct origin_conn *c, enum reason *why)
{
    int64_t now_ms = clock_mono_ms();
    for (size_t left = resolve_name_count(origin_server_addresses(c->server)); left > 0; left--) {
        struct resolve_choice to = resolve_name_next(origin_server_addresses(c->server), now_ms);
        if (to.address.length == 0)
            break;
        c->address_id = to.id;
        c->fd = socket_for(&to.address);
        c->error = c->fd < 0 ? errno : connect_to(c->fd, &to.address);
        if (c->error == 0 || is_queue_full(&to.address, c->error))
            return true;
        if (is_exhaustion(&to.address, c->error)) {
            *why = REASON_ORIGIN_BUSY;
            return false;
        }
        resolve_name_rest(origin_server_addresses(c->server), to.id, now_ms);
        if (c->fd >= 0)
            close(c->fd);
        c->fd = -1;
    }
    *why = REASON_ORIGIN_UNRESOLVED;
    return c->error != 0; /* all of them failed at once: told at the first event */
}

static bool watch(struct origin_conn *c)
{
    struct origin_pool *p = c->pool;
    if (c->error == 0) {
        c->event = event_new(p->base, c->fd, p->watched, on_conn, c);
        return c->event != NULL && event_add(c->event, NULL) == 0;
    }
    if (c->fd >=
        0) { /* the queue is full; the caller's connect_timeout bounds how often this is tried */
        struct timeval soon = { .tv_usec = CONNECT_RETRY_MS * 1000 };
        c->retry = event_new(p->base, -1, 0, on_retry, c);
        return c->retry != NULL && event_add(c->retry, &soon) == 0;
    }
    c->event = event_new(p->base, -1, 0, on_conn, c);
    if (c->event == NULL)
        return false;
    event_active(c->event, EV_WRITE, 0);
    return true;
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct origin_conn *c = arg;
    struct origin_address to = origin_server_address(c->server);
    event_free(c->retry);
    c->retry = NULL;
    c->error = connect_to(c->fd, &to);
    if (c->error != 0 && !is_queue_full(&to, c->error)) {
        close(c->fd);
        c->fd = -1;
    }
    if (watch(c))
        return;
    c->error = ENOMEM; /* epoll has no room */
    on_conn(-1, EV_WRITE, c);
}

struct origin_conn *origin_conn_open(struct origin_pool *p, struct origin_server *s,
                                     enum reason *why)
{
    struct origin_conn *c = xcalloc(1, sizeof *c);
    c->fd = -1;
    c->pool = p;
    c->server = origin_server_ref(s);
    c->since_ms = clock_mono_ms();
    p->open_count++;
    origin_server_count_open(s, 1);
    stat_add(&stats_mine()->origin_open, 1);
    if (!begin(c, why)) {
        c->error = ECANCELED; /* says nothing about the address */
        origin_conn_close(&c);
        return NULL;
    }
    if (!watch(c)) {
        *why = REASON_ORIGIN_BUSY;
        origin_conn_close(&c);
        return NULL;
    }
    stat_add(&stats_mine()->origin_connects, 1);
    return c;
}

int origin_conn_error(struct origin_conn *c)
{
    if (c->is_connected || c->error != 0)
        return c->error;
    socklen_t size = sizeof c->error;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &c->error, &size) != 0)
        c->error = errno;
    if (c->error != 0)
        resolve_name_rest(origin_server_addresses(c->server), c->address_id, clock_mono_ms());
    c->is_connected = c->error == 0;
    return c->error;
}

/* ---- taking, giving, closing ----------------------------------------------------------------- */

static bool has_idled_too_long(const struct origin_conn *c, int64_t now_ms)
{
    return now_ms - c->since_ms >= origin_server_idle_timeout_ms(c->server);
}

struct origin_conn *origin_pool_take_conn(struct origin_pool *p, struct origin_server *s)
{
    struct origin_idle *l = list_find(p, s);
    if (l == NULL)
        return NULL;
    int64_t now_ms = clock_mono_ms();
    l->used_ms = now_ms;
    while (l->newest != NULL) {
        struct origin_conn *c = l->newest;
        if (has_idled_too_long(c, now_ms)) {
            origin_conn_close(&c); /* the tick is late; the server may be about to end it */
            continue;
        }
        if (!is_good(c)) {
            close_dead(c);
            continue;
        }
        list_remove(c);
        c->on_event = NULL;
        c->can_read = false;
        c->can_write = true;
        stat_add(&stats_mine()->origin_reused, 1);
        return c;
    }
    return NULL;
}

void origin_pool_give_conn(struct origin_pool *p, struct origin_conn **at)
{
    struct origin_conn *c = *at;
    *at = NULL;
    CHECK(c != NULL && c->pool == p && c->idle == NULL);
    if (c->has_ended) {
        close_dead(c);
        return;
    }
    struct origin_idle *l = list_of(p, c->server);
    if (!c->is_connected || p->is_freed || l->count >= origin_server_idle_max(c->server)) {
        origin_conn_close(&c);
        return;
    }
    c->on_event = on_idle;
    c->user = NULL;
    c->since_ms = l->used_ms = clock_mono_ms();
    list_push(l, c);
}

static void pool_destroy(struct origin_pool *p)
{
    CHECK(p->open_count == 0);
    free(p);
}

void origin_conn_close(struct origin_conn **at)
{
    struct origin_conn *c = *at;
    *at = NULL;
    if (c == NULL)
        return;
    struct origin_pool *p = c->pool;
    int64_t now_ms = clock_mono_ms();
    if (c->idle != NULL)
        list_remove(c);
    else if (!c->is_connected && c->error == 0 && now_ms - c->since_ms >= CONNECT_HOPELESS_MS)
        resolve_name_rest(origin_server_addresses(c->server), c->address_id, now_ms);
    if (c->event != NULL)
        event_free(c->event);
    if (c->retry != NULL)
        event_free(c->retry);
    if (c->fd >= 0)
        close(c->fd);
    origin_server_count_open(c->server, -1);
    stat_add(&stats_mine()->origin_open, -1);
    origin_server_unref(&c->server);
    free(c);
    CHECK(p->open_count > 0);
    if (--p->open_count == 0 && p->is_freed)
        pool_destroy(p);
}

/* ---- the pool -------------------------------------------------------------------------------- */

struct origin_pool *origin_pool_new(struct event_base *base)
{
    struct origin_pool *p = xcalloc(1, sizeof *p);
    p->base = base;
    p->watched = EV_READ | EV_WRITE | EV_ET | EV_PERSIST;
    if (event_base_get_features(base) & EV_FEATURE_EARLY_CLOSE)
        p->watched |= EV_CLOSED;
    return p;
}

static void list_free(struct origin_idle **at)
{
    struct origin_idle *l = *at;
    CHECK(l->count == 0);
    *at = l->next;
    origin_server_unref(&l->server);
    free(l);
}

static void list_close(struct origin_idle *l)
{
    while (l->newest != NULL) {
        struct origin_conn *c = l->newest;
        origin_conn_close(&c);
    }
}

void origin_pool_tick(struct origin_pool *p, int64_t now_ms)
{
    for (size_t i = 0; i < IDLE_CHAINS; i++) {
        struct origin_idle **at = &p->chains[i];
        while (*at != NULL) {
            struct origin_idle *l = *at;
            while (l->oldest != NULL && has_idled_too_long(l->oldest, now_ms)) {
                struct origin_conn *c = l->oldest;
                origin_conn_close(&c);
            }
            if (l->count == 0 && now_ms - l->used_ms >= LIST_UNUSED_MS)
                list_free(at);
            else
                at = &l->next;
        }
    }
}

void origin_pool_close_idle(struct origin_pool *p)
{
    for (size_t i = 0; i < IDLE_CHAINS; i++)
        for (struct origin_idle *l = p->chains[i]; l != NULL; l = l->next)
            list_close(l);
}

void origin_pool_free(struct origin_pool **at)
{
    struct origin_pool *p = *at;
    *at = NULL;
    if (p == NULL)
        return;
    origin_pool_close_idle(p);
    for (size_t i = 0; i < IDLE_CHAINS; i++)
        while (p->chains[i] != NULL)
            list_free(&p->chains[i]);
    p->is_freed = true;
    if (p->open_count == 0)
        pool_destroy(p);
}
