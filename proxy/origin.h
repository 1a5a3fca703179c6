/* proxy/origin.h: named origins at run time: their servers, addresses and kept-alive connections.
 *
 * Life     origins_new(snapshot) at start; a reload makes a new set that takes over the state of
 *          servers that stay.
 * Threads  `struct origins` and its servers' figures are shared by all workers (atomics); a
 *          `struct origin_pool` belongs to one worker: its idle connections are in that worker's
 *          loop.
 */
#ifndef PROXY_ORIGIN_H
#define PROXY_ORIGIN_H
#include "base/stats.h"
#include "config/config.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

struct event;
struct event_base;
struct origins;
struct origin;        /* one named origin */
struct origin_server; /* one server of it; counted: connections and fetches outlast a reload */
struct origin_pool;   /* one worker's idle connections, all origins */

struct origin_address {
    socklen_t length; /* 0: unresolved */
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un path;
    } at;
};

/* `previous` may be NULL. Starts the resolver's thread with the first set; names are looked up off
 * the workers' loops, again after resolve_ttl; a failed look-up keeps the last good addresses.
 * Names are first resolved before this returns, in parallel, for at most 2 s; those that take
 * longer come when they come. */
struct origins *origins_new(const struct config *config, struct origins *previous);
/* After an RCU grace period: no worker looks at it any more. */
void origins_free(struct origins **o);
struct origin *origins_find(struct origins *o, const struct config_origin *config); /* by name */

/* Round robin over the servers that have an address; servers whose last `connect` failed are left
 * out for a second while others are there. `not_this` may be NULL: a second try goes elsewhere if
 * there is an elsewhere. NULL when no server has an address. The caller gets a reference. */
struct origin_server *origin_choose(struct origin *o, const struct origin_server *not_this);
struct origin_server *origin_server_ref(struct origin_server *s);
void origin_server_unref(struct origin_server **s);
const char *origin_server_name(const struct origin_server *s); /* "http://10.0.0.5:8080" */
/* The server's own Host value when the client's is not passed on: "10.0.0.5:8080". */
const char *origin_server_host(const struct origin_server *s);
/* The next of its addresses in turn. length 0 when unresolved. */
struct origin_address origin_server_address(struct origin_server *s);
/* What a fetch learned. */
void origin_server_count_request(struct origin_server *s);
void origin_server_count_head(struct origin_server *s, int64_t us);
void origin_server_count_fault(struct origin_server *s, enum reason why);
void origin_server_count_open(struct origin_server *s, int delta); /* pool.c: each connection */

/* One connection to a server. Its event stays in the loop, edge-triggered, from open to close; only
 * whom it calls changes (a fetch, or the pool's watch while it is idle), so that a request on a
 * kept-alive connection costs no epoll_ctl().
 *
 * Life     origin_conn_open() or origin_pool_take_conn()
 *          -> the caller sets `on_event` and `user` right away
 *          -> origin_pool_give_conn() or origin_conn_close()
 */
struct origin_conn {
    int fd;
    bool can_read,
        can_write; /* set before on_event() is called; the caller clears them at EAGAIN */
    /* `what`: EV_READ, EV_WRITE. May close or give `c`. */
    void (*on_event)(struct origin_conn *c, short what);
    void *user;                   /* the caller's */
    struct origin_server *server; /* held until it is closed */
    /* pool.c only */
    struct event *event;
    struct origin_pool *pool;
    struct origin_idle *idle; /* the list it waits in, or NULL */
    struct origin_conn *newer, *older;
    struct event *retry; /* a unix socket whose queue is full: connects again soon */
    int64_t since_ms;    /* opened, then: idle since */
    unsigned address_id;
    int error; /* of a connect() that failed at once; told at the first event */
    bool is_connected;
    bool has_ended; /* the server will send no more */
};

/* One worker's pool. Idle sockets are watched: one that the server closes, or sends on, is closed
 * at once (origin_dead_idle); so is one that idles for idle_timeout. */
struct origin_pool *origin_pool_new(struct event_base *base);
void origin_pool_free(struct origin_pool **p);
/* Begins to connect to the server's next address, not blocking. The first event is EV_WRITE;
 * origin_conn_error() then says how it went: refusals are told there too, even those that connect()
 * knows at once. NULL: ORIGIN_UNRESOLVED or ORIGIN_BUSY (no descriptor, port or memory left). */
struct origin_conn *origin_conn_open(struct origin_pool *p, struct origin_server *s,
                                     enum reason *why);
/* 0 when connected, else an errno. */
int origin_conn_error(struct origin_conn *c);
/* An idle connection to that server that is still good (checked by a peek), or NULL. Newest first.
 * can_read is false, can_write true. */
struct origin_conn *origin_pool_take_conn(struct origin_pool *p, struct origin_server *s);
/* Gives a quiet connection back (its last answer read to the end); closed instead when the server
 * has ended it or the pool holds idle_connections of them already. Clears the pointer. */
void origin_pool_give_conn(struct origin_pool *p, struct origin_conn **c);
/* Clears the pointer; NULL is fine. Also within its own on_event(). */
void origin_conn_close(struct origin_conn **c);
/* Closes what has idled too long; called about once a second on the worker's loop. */
void origin_pool_tick(struct origin_pool *p, int64_t now_ms);
void origin_pool_close_idle(struct origin_pool *p); /* shutdown */

struct origin_figures {
    const char *origin, *server; /* server: the root of a directory */
    const char *state; /* "up", "failing" (left out for a second), "unresolved", "directory" */
    const char *why;   /* reason_word() of the last fault, "" when there was none */
    uint64_t requests, faults, open, idle, head_us_sum, head_count;
    int64_t last_fault_wall_s;
};
void origins_visit(struct origins *o, void (*visit)(void *to, const struct origin_figures *f),
                   void *to);
#endif
