/* proxy/accesslog.h: one line per exchange, written by a thread of its own; a worker never waits for it.
 *
 * Life     accesslog_start() -> accesslog_ring() once per worker -> accesslog_write() … -> accesslog_stop() (flushes).
 * Threads  a ring belongs to its worker (one producer); the writer thread is the one consumer of all rings.
 */
#ifndef PROXY_ACCESSLOG_H
#define PROXY_ACCESSLOG_H
#include "base/stats.h"
#include "config/config.h"

struct accesslog;
struct accesslog_ring;

struct access_record {
    int64_t wall_ms;
    struct slice client;                   /* address as text */
    struct slice method, target, protocol; /* "GET", "/a?b", "HTTP/1.1" */
    struct slice host, referer, user_agent;
    struct slice server; /* the origin's server that was asked, or empty */
    struct slice site;
    uint16_t status;
    uint64_t body_bytes; /* sent */
    uint64_t sent_bytes; /* sent, head included */
    enum outcome outcome;
    enum reason reason;
    int32_t age_s;         /* of the stored object; -1 none */
    int64_t first_byte_us; /* until the first byte was sent; -1 none */
    int64_t total_us;
};

/* NULL and a sentence when the format is wrong or the file cannot be opened. `path` "-" is standard
 * output; NULL is a log that is off until accesslog_change() (rings may be made and written to:
 * nothing happens). */
struct accesslog *accesslog_start(const char *path, const char *format, char why[256]);
/* Writes what the rings hold, for at most two seconds, and frees the log with its rings: no worker
 * writes any more. */
void accesslog_stop(struct accesslog **log);
/* After a reload: another path, another format, on or off (NULL). What was written before goes to
 * the old file. False and a sentence leaves all as it was. Any thread. */
must_check bool accesslog_change(struct accesslog *log, const char *path, const char *format,
                                 char why[256]);
/* Opens the path anew (SIGUSR1: after a rotation); a failure is logged and the old file kept. Any
 * thread. */
void accesslog_reopen(struct accesslog *log);
/* A ring for one worker. */
struct accesslog_ring *accesslog_ring(struct accesslog *log);
/* Copies the record into the ring; drops it (and counts log_dropped) when the ring is full. Long
 * slices are cut. No system call beyond a rare wake of the writer. */
void accesslog_write(struct accesslog_ring *ring, const struct access_record *r);
/* Whether a format reads: for config's check. */
must_check bool accesslog_format_check(const char *format, char why[256]);
#endif
