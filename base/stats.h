/* base/stats.h: every counter of the program, in one table.
 *
 * Each thread that counts owns a `struct stats` (registered once) and alone writes it; readers sum all of them without
 * stopping anybody. Gauges are sums too (each thread adds what it opens and subtracts what it closes), so one thread's
 * own value may be below zero while the sum is right.
 */
#ifndef BASE_STATS_H
#define BASE_STATS_H
#include "base/verdict.h"

enum stat_kind { STAT_COUNTER, STAT_GAUGE };
enum stat_unit { STAT_COUNT, STAT_BYTES, STAT_MICROSECONDS };

/*    name                    kind     unit          help (ends in the metrics page and the manual)                 */
#define STATS(X)                                                                                                      \
    X(client_accepted,        COUNTER, COUNT,        "Client connections accepted.")                                  \
    X(client_open,            GAUGE,   COUNT,        "Client connections open now.")                                  \
    X(client_idle,            GAUGE,   COUNT,        "Client connections that wait for a request.")                   \
    X(client_refused_limit,   COUNTER, COUNT,        "Connections refused: clients.max_connections.")                 \
    X(client_refused_address, COUNTER, COUNT,        "Connections refused: clients.max_connections_per_address.")     \
    X(client_refused_descriptors, COUNTER, COUNT,    "Connections refused: no descriptor was left.")                  \
    X(client_timeout_head,    COUNTER, COUNT,        "Connections closed: clients.head_timeout.")                     \
    X(client_timeout_body,    COUNTER, COUNT,        "Connections closed: clients.body_timeout.")                     \
    X(client_timeout_idle,    COUNTER, COUNT,        "Connections closed: clients.idle_timeout.")                     \
    X(client_timeout_send,    COUNTER, COUNT,        "Connections closed: clients.send_timeout.")                     \
    X(client_received_bytes,  COUNTER, BYTES,        "Bytes received from clients.")                                  \
    X(client_sent_bytes,      COUNTER, BYTES,        "Bytes sent to clients, heads included.")                        \
    X(hit_sent_bytes,         COUNTER, BYTES,        "Body bytes of answers from the store.")                         \
    X(body_sent_bytes,        COUNTER, BYTES,        "Body bytes of all answers.")                                    \
    X(exchanges,              COUNTER, COUNT,        "Requests read, the refused ones included.")                     \
    X(exchanges_live,         GAUGE,   COUNT,        "Requests being worked on now.")                                 \
    X(not_modified,           COUNTER, COUNT,        "304 answers given from the store.")                             \
    X(ranges,                 COUNTER, COUNT,        "206 answers cut from the store.")                               \
    X(fill_started,           COUNTER, COUNT,        "Fills begun.")                                                  \
    X(fill_joined,            COUNTER, COUNT,        "Requests that followed a fill begun by another.")               \
    X(fill_stored,            COUNTER, COUNT,        "Fills that ended with a stored object.")                        \
    X(fill_released,          COUNTER, COUNT,        "Fills whose head said that the answer cannot be shared.")       \
    X(fill_failed,            COUNTER, COUNT,        "Fills that broke; nothing was stored.")                         \
    X(fill_too_big,           COUNTER, COUNT,        "Fills that outgrew cache.max_object or the memory.")            \
    X(fill_abandoned,         COUNTER, COUNT,        "Fills given up because nobody wanted them any more.")           \
    X(fill_outrun,            COUNTER, COUNT,        "Fills delivered but not kept: a purge or a newer object came first.") \
    X(fills_live,             GAUGE,   COUNT,        "Fills under way.")                                              \
    X(followers_live,         GAUGE,   COUNT,        "Requests that follow a fill now.")                              \
    X(refresh_started,        COUNTER, COUNT,        "Refreshes begun behind the clients (stale-while-revalidate).")  \
    X(refresh_done,           COUNTER, COUNT,        "Of these, the ones that ended with a fresh object.")            \
    X(refresh_failed,         COUNTER, COUNT,        "Of these, the ones that came to nothing; the next waits a while.") \
    X(stale_served,           COUNTER, COUNT,        "Answers past their lifetime given because the origin was in trouble.") \
    X(parts_stored,           COUNTER, COUNT,        "Parts (206) stored.")                                           \
    X(parts_joined,           COUNTER, COUNT,        "Parts joined with ones that were stored.")                      \
    X(slices_fetched,         COUNTER, COUNT,        "Slices of large answers fetched.")                              \
    X(slices_healed,          COUNTER, COUNT,        "Slices dropped because the origin's file had changed.")         \
    X(invalidated,            COUNTER, COUNT,        "Objects dropped because an unsafe method changed them.")        \
    X(purged,                 COUNTER, COUNT,        "Objects dropped by purges.")                                    \
    X(purges,                 COUNTER, COUNT,        "Purges asked for.")                                             \
    X(origin_requests,        COUNTER, COUNT,        "Requests sent to origins.")                                     \
    X(origin_connects,        COUNTER, COUNT,        "Connections opened to origins.")                                \
    X(origin_reused,          COUNTER, COUNT,        "Requests sent on a kept-alive connection.")                     \
    X(origin_retried,         COUNTER, COUNT,        "Requests sent again on a fresh connection, safely.")            \
    X(origin_dead_idle,       COUNTER, COUNT,        "Kept-alive connections that the origin had closed.")            \
    X(origin_open,            GAUGE,   COUNT,        "Connections to origins open now.")                              \
    X(origin_idle,            GAUGE,   COUNT,        "Connections to origins that wait to be used again.")            \
    X(origin_received_bytes,  COUNTER, BYTES,        "Bytes received from origins.")                                  \
    X(origin_sent_bytes,      COUNTER, BYTES,        "Bytes sent to origins.")                                        \
    X(origin_head_us,         COUNTER, MICROSECONDS, "Time from sending requests to the origins' heads, in sum.")     \
    X(origin_resolves,        COUNTER, COUNT,        "Names of origins looked up.")                                   \
    X(origin_resolve_failed,  COUNTER, COUNT,        "Look-ups that failed; the last good addresses stay in use.")    \
    X(log_written,            COUNTER, COUNT,        "Access log lines written.")                                     \
    X(log_dropped,            COUNTER, COUNT,        "Access log lines dropped under pressure.")                      \
    X(reloads,                COUNTER, COUNT,        "Configurations put in force by a reload.")                      \
    X(reloads_refused,        COUNTER, COUNT,        "Reloads refused: the file had mistakes.")

enum { STATUS_CLASSES = 6 };   /* 1xx .. 5xx at 1 .. 5 */
enum { STATS_CAUSES = 32 };    /* room for proxy/h1.h's causes, which this floor does not know */
enum { STATS_UNSTORED = 16 };  /* room for cache/decide.h's enum storable */

struct stats {
#define X(name, kind, unit, help) _Atomic int64_t name;
    STATS(X)
#undef X
    _Atomic int64_t outcome[OUTCOME_COUNT];
    _Atomic int64_t reason[REASON_COUNT];
    _Atomic int64_t status_class[STATUS_CLASSES];
    _Atomic int64_t h1_cause[STATS_CAUSES];
    _Atomic int64_t unstored[STATS_UNSTORED]; /* answers from origins that were not stored, by why; [0] stays 0 */
    struct stats *next;   /* registry only */
    const char *thread;   /* "worker 0", "admin" */
};

/* A plain copy: the sum over all threads. */
struct stats_sum {
#define X(name, kind, unit, help) int64_t name;
    STATS(X)
#undef X
    int64_t outcome[OUTCOME_COUNT];
    int64_t reason[REASON_COUNT];
    int64_t status_class[STATUS_CLASSES];
    int64_t h1_cause[STATS_CAUSES];
    int64_t unstored[STATS_UNSTORED];
};

/* By the owner only: no locked instruction. */
static inline void stat_add(_Atomic int64_t *s, int64_t n)
{
    atomic_store_explicit(s, atomic_load_explicit(s, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Zeroed, registered, never freed: counters outlive their thread. `thread` is copied. */
struct stats *stats_new(const char *thread);
/* The calling thread's own (made on first use, named "other"); workers set theirs with stats_use(). */
struct stats *stats_mine(void);
void stats_use(struct stats *s);
void stats_sum_all(struct stats_sum *sum);
/* All registered, in order of registration: for a figure per worker. */
const struct stats *stats_first(void);

/* For the metrics page: the table as data. */
struct stat_row {
    const char *name;
    enum stat_kind kind;
    enum stat_unit unit;
    const char *help;
    size_t offset; /* of an int64_t in struct stats_sum */
};
extern const struct stat_row stat_rows[];
extern const size_t stat_row_count;
#endif
