/* proxy/fetch_internal.h: what fetch.c, fetch_request.c and fetch_fill.c share. */
#ifndef PROXY_FETCH_INTERNAL_H
#define PROXY_FETCH_INTERNAL_H
#include "proxy/fetch.h"

enum fetch_state {
    FETCH_CONNECTING, /* waits for: the socket, writable     */
    FETCH_AWAITING,   /* waits for: the origin's head; the request's body goes out meanwhile */
    FETCH_BODY,       /* waits for: the origin's body        */
    FETCH_ENDED,      /* all of the answer came              */
    FETCH_BROKEN,     /* see `fault`                         */
};

struct fetch {
    uint32_t magic;
    struct fetch *next, **prev; /* of the worker's list */
    struct worker *worker;
    struct snapshot *snapshot;
    const struct config_origin *config;
    struct origin *origin;
    struct origin_server *server;
    struct origin_conn *conn;  /* NULL before and after */
    struct exchange *exchange; /* pass: who pulls; fill: the leader while it is there */
    struct cache_fill *fill;   /* NULL for a pass */
    struct cache_key key;      /* fills */
    struct arena arena;
    struct deadline deadline;
    enum fetch_state state;
    enum fault fault;
    bool is_running; /* a fill's driver: events do not land in it again */
    bool is_reused;  /* this try's connection had been used before */
    bool is_retried;
    bool is_idempotent;
    bool has_request_body;
    bool body_is_chunked, body_is_done, body_begun;
    bool send_failed; /* the origin takes no more; it may still have answered */
    bool got_bytes;   /* any byte of an answer */
    bool gets_ranges; /* the request was the client's own, with its range */
    unsigned tries, interim_count;
    enum h1_method method;
    struct slice request; /* the head as sent; in the arena */
    size_t request_sent;
    char *out; /* request body bytes that the origin did not take yet */
    size_t out_at, out_length;
    uint64_t body_bytes;            /* of the request, so far */
    struct headers request_headers; /* fills: a copy for Vary and storing */
    int64_t sent_us, sent_wall_s;
    /* the answer */
    struct h1_response response;
    struct slice view; /* read and not yet used */
    char *own;         /* where `view` is when it outlives a turn */
    size_t own_capacity;
    struct h1_chunks chunks;
    uint64_t left; /* FRAMING_LENGTH */
    char *interim;
    size_t interim_length;
    struct post room; /* a paused fill may go on */
    bool is_paused, is_judged, is_conditional;
};

/* fetch_request.c: the head for the origin, written anew from the parsed form. */
struct slice fetch_write_request(struct fetch *f, const struct exchange *x,
                                 const struct validators *stale);
/* fetch_fill.c */
void fetch_run_fill(struct fetch *f);
struct fetch *fetch_new(struct exchange *x);
/* Starts, or starts again after a try that is known to have done nothing. */
void fetch_connect(struct fetch *f, const struct origin_server *not_this);
void fetch_break(struct fetch *f, enum fault fault);
/* A fill's fetch whose fill has ended. */
void fetch_leave_fill(struct fetch *f);
#endif
