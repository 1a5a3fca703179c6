/* proxy/conn.h: one client's connection: reads heads, hands them to an exchange, one at a time, in order.
 *
 * Life     conn_new() on accept -> turns (conn_turn) as events come -> conn_cut() or a clean close, which free it.
 * Threads  its worker's.
 * Memory   an idle connection owns no buffer: reads go into the worker's scratch; only what is left over when a turn
 *          ends (an incomplete head, pipelined requests) is copied into `own`.
 */
#ifndef PROXY_CONN_H
#define PROXY_CONN_H
#include "proxy/worker.h"

#include <event2/event.h>
#include <event2/event_struct.h>

/* What the connection's one deadline is for. A wait for the origin has the fetch's own (fetch.c). */
enum conn_wait {
    CONN_WAITS_NOT,   /* something is being done, or the origin is waited for */
    CONN_IDLE,        /* clients.idle_timeout: for a request; ends with its first byte */
    CONN_HEAD,        /* clients.head_timeout: absolute, from the head's first byte */
    CONN_BODY,        /* clients.body_timeout: for the client's body, while the origin takes it */
    CONN_SEND,        /* clients.send_timeout: until the client takes something */
    CONN_LINGER,      /* LINGER_MS: what a refused client still sends is dropped */
    CONN_HALF_CLOSED, /* HALF_CLOSED_MS: for an answer to a client that has sent a FIN */
    CONN_FILL,        /* cache.collapse_timeout: for the head of a fill that another leads */
};

enum body_state { BODY_NONE, BODY_UNREAD, BODY_DONE }; /* of the request under way */

struct conn {
    uint32_t magic;
    int fd;
    struct worker *worker;
    struct event event;
    struct deadline deadline;
    struct conn *next, **prev;             /* of the worker's list */
    struct conn *again_next, **again_prev; /* NULL when not on the again list */
    struct exchange *exchange;             /* NULL between requests */
    struct slice rest; /* read but not yet used: in the worker's scratch or in `own` */
    char *own;
    uint32_t own_capacity;
    uint32_t scanned;   /* of an incomplete head */
    uint64_t body_left; /* FRAMING_LENGTH */
    struct h1_chunks chunks;
    struct peer peer;
    uint8_t wait; /* enum conn_wait: what `deadline` is for */
    uint8_t body; /* enum body_state */
    bool body_is_chunked;
    bool can_read, can_write; /* until EAGAIN says otherwise */
    bool peer_closed;         /* a FIN was seen: read until 0 */
    bool was_reset;
    bool saw_end;    /* read returned 0 or failed */
    bool must_close; /* after the exchange under way */
    bool is_lingering;
    bool watches_write; /* from its first blocked send on: most never need it */
    bool is_corked;     /* the last send said MSG_MORE */
    bool is_in_turn;
    bool is_counted_idle;
    bool is_counted_by_address;
    bool has_served; /* at least one request */
    bool head_begun; /* head_timeout runs from here */
};

void conn_new(struct worker *w, int fd, const struct peer *peer, bool counted_by_address);
/* Goes on with whatever can go on. After it returns the connection may be gone. */
void conn_turn(struct conn *c);
/* A turn for each of those that asked for another. */
void conn_run_again(struct worker *w);
/* At once, with a reset: what was under way must not look whole. */
void conn_cut(struct conn *c);
/* Idle ones close now, the others after their exchange. */
void conn_drain_all(struct worker *w);

/* For the exchange. */
/* A send said EAGAIN: from now on the loop tells when there is room. */
void conn_blocked(struct conn *c);
void conn_wait(struct conn *c, enum conn_wait wait, uint32_t ms);
void conn_wait_over(struct conn *c);

enum conn_read { CONN_READ_DATA, CONN_READ_WAIT, CONN_READ_END, CONN_READ_BAD, CONN_READ_GONE };
/* The next piece of the request's body, in place; used up before the next call. END: the body is
 * complete. GONE: the client closed first. */
enum conn_read conn_read_body(struct conn *c, struct slice *piece, enum h1_cause *cause);
/* Takes note of a client that leaves while it waits; false once it has gone for good. */
bool conn_check_peer(struct conn *c);
/* What is left in the worker's scratch is copied: the scratch is about to be used by others. */
void conn_keep_rest(struct conn *c);
#endif
