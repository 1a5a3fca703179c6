/* proxy/worker.h: a worker: one thread, one event loop, its listeners, connections and exchanges.
 *
 * Life     worker_new() -> worker_start() -> worker_publish() on reloads -> worker_drain() -> worker_join()
 * Threads  everything in `struct worker` belongs to its thread, but for the functions that say otherwise.
 */
#ifndef PROXY_WORKER_H
#define PROXY_WORKER_H
#include "base/deadline.h"
#include "base/post.h"
#include "base/stats.h"
#include "cache/cache.h"
#include "config/config.h"
#include "proxy/accesslog.h"
#include "proxy/h1.h"
#include "proxy/origin.h"
#include "base/peer.h"

#include <pthread.h>

enum { CLIENT_SCRATCH = 32 << 10, ORIGIN_SCRATCH = 256 << 10, OUT_PIECES = 64 };

/* A configuration in force with what was made from it; shared by all workers, freed with the last
 * reference. */
struct shared_snapshot {
    _Atomic unsigned refs;
    struct config *config;
    struct origins *origins;
    struct network *trusted;
    size_t trusted_count;
    struct network *purge_from;
    size_t purge_from_count;
    struct h1_limits client_limits, origin_limits;
};

/* One worker's hold on it: exchanges count themselves here, on their own thread, so a hit writes no
 * shared line. */
struct snapshot {
    struct shared_snapshot *shared;
    const struct config *config;
    unsigned users; /* exchanges and fetches, and the worker while it is in force */
};

struct conn;
struct exchange;
struct fetch;
struct listener;
struct address_table;

/* What all workers share. */
struct house {
    struct cache *cache;
    struct accesslog *log;
    struct address_table *addresses; /* connections per client address */
    _Atomic int64_t
        client_count; /* connections open, all workers; written on accept and close only */
    _Atomic uint32_t client_limit; /* what the descriptor limit allows */
};

struct worker {
    uint32_t magic;
    unsigned index;
    struct house *house;
    struct event_base *base;
    struct mailbox *mailbox;
    struct stats *stats;
    struct snapshot *snapshot; /* in force */
    struct origin_pool *pool;
    struct accesslog_ring *log;
    struct listener *listeners;
    struct event *tick, *again;
    struct wheel wheel;
    struct conn *conns;                     /* all */
    struct conn *again_first, **again_last; /* those whose turn was cut short */
    struct conn *again_now;                 /* of those, the ones that get theirs now */
    struct exchange *spare;                 /* free ones */
    unsigned spare_count;
    struct fetch *fetches; /* all */
    size_t conn_count, fetch_count;
    bool is_draining;
    int reserve_fd; /* given up for a moment to refuse a connection when descriptors are out */
    int64_t date_s; /* what `date` says */
    char date[32];
    pthread_t thread;
    struct header fields[HEADERS_MAX]; /* of the client's head being read */
    struct header origin_fields[HEADERS_MAX];
    char client_bytes[CLIENT_SCRATCH];
    char origin_bytes[ORIGIN_SCRATCH];
};

struct shared_snapshot *shared_snapshot_new(struct config *config, struct origins *previous);
struct shared_snapshot *shared_snapshot_ref(struct shared_snapshot *s);
void shared_snapshot_unref(struct shared_snapshot **s);

struct snapshot *snapshot_ref(struct snapshot *s);
void snapshot_unref(struct snapshot **s);

/* `listeners` were bound by listener.h; the worker owns them now. Takes a reference of `shared`. */
struct worker *worker_new(unsigned index, struct house *house, struct shared_snapshot *shared,
                          struct listener *listeners);
void worker_start(struct worker *w);
/* Any thread: the worker takes this configuration for all requests from its next turn on. */
void worker_publish(struct worker *w, struct shared_snapshot *shared);
/* Any thread: accept no more, end idle connections, finish what runs, then end the loop; at the
 * latest at `until_ms` (monotonic). */
void worker_drain(struct worker *w, int64_t until_ms);
/* Waits for the thread, frees the worker. */
void worker_join(struct worker **w);

/* On the worker's thread: this connection wants another turn soon, after others had theirs. */
void worker_again(struct worker *w, struct conn *c);
/* "Sun, 06 Nov 1994 08:49:37 GMT" for now. */
struct slice worker_date(struct worker *w);
/* A connection or fetch ended: a draining worker may be done. */
void worker_check_drained(struct worker *w);
#endif
