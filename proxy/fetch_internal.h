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

enum fetch_asks { ASKS_WHOLE, ASKS_REST, ASKS_SLICE }; /* fetch_variants.c */
/* Offers what is stored under the key, though this request selects none of it. */
void fetch_offer_variants(struct fetch *f);
void fetch_drop_offers(struct fetch *f);
size_t fetch_offers_most(const struct fetch *f);
void fetch_put_offers(struct writer *w, const struct fetch *f);
/* A 304 that names one of them: it is now this request's, too. */
bool fetch_adopt_variant(struct fetch *f);

/* fetch_parts.c */

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
    /* fills: copies for rules, Vary and storing */
    struct headers request_headers;
    struct rule_request rule;
    struct rule_effects effects;
    struct cache_control request_control;
    const struct config_site *site;
    struct peer client;
    uint16_t port;
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
    struct cache_object *offered[8]; /* other variants, by reference: If-None-Match */
    unsigned offered_count;
    bool is_paused, is_judged, is_conditional;
    bool is_behind; /* a refresh that no client waits for */
    bool is_ahead;  /* a slice that no client waits for yet */
    enum fetch_asks asks;
    struct byte_range range;    /* REST: to UINT64_MAX, the end */
    struct cache_object *base;  /* ours by reference: REST: what is stored; SLICE: the record; else NULL */
    uint64_t copied, base_bytes; /* of the base's body, in front of the rest */
    struct slice whole_request; /* REST: what is asked when that is of no use */
};

/* fetch_request.c: the head for the origin, written anew from the parsed form. */
struct slice fetch_write_request(struct fetch *f, const struct exchange *x,
                                 const struct validators *stale);
/* judge_head.c */
/* What was asked, what the answer is judged by, and what came of it. */
struct judged {
    struct judge_request asked;
    struct rule_effects effects;
    struct judgement judgement;
    struct object_facts facts; /* its slices are in the fetch's arena, or those of what was stored */
};
/* Whether what the origin answered may be stored, with its own fields; facts are complete when it may. */
enum storable fetch_judge(struct fetch *f, struct judged *j);
/* The second half of it, for what is stored although it says less than it has to. */
void fetch_judge_facts(struct fetch *f, struct judged *j);
/* The stored head with the fields of an answer that confirms it, judged as one response. False when it is of no use. */
bool fetch_judge_update(struct fetch *f, struct cache_object *stale, struct judged *j);
/* A 304 that names another tag than the one we asked about is not about our object (RFC 9111 4.3.4). */
bool fetch_is_about(const struct object_facts *old, const struct headers *fields);
/* The selecting values of this fetch's request, by the Vary of an answer. */
struct slice fetch_selecting(struct fetch *f, const struct judged *j, const struct headers *answer);
/* What is for the client alone that caused this fetch: private="f" and its like. */
void fetch_give_own_fields(struct fetch *f, const struct judged *j);

/* fetch_parts.c */
/* cache.max_object */
uint64_t fetch_object_max(const struct fetch *f);
#define SLICES_KEY SLICE("\0slice=") /* behind the main key; "<size>:<number>" follows */
/* Bytes of a stored object, from the `from`th on: how many it were this time; 0: the fill has failed. */
uint64_t fetch_append_stored(struct cache_fill *fill, const struct cache_object *o, uint64_t from,
                             uint64_t to, bool *pauses);
/* When a part is stored that has only its end missing. */
void fetch_ask_rest(struct fetch *f, const struct exchange *x);
enum rest { REST_FITS, REST_IS_WHOLE, REST_OF_NO_USE };
enum rest fetch_judge_rest(struct fetch *f, struct judged *j);
/* ANSWERED: it is the slice; else what the fill fails with. */
enum reason fetch_judge_slice(struct fetch *f, struct judged *j);
/* Whether the whole is too much for the part that its client asked for. */
bool fetch_is_too_large(const struct fetch *f);
/* Whether the answer is one that slices can be had of; and whether they are wanted instead of it. */
bool fetch_can_slice(const struct fetch *f);
bool fetch_wants_slices(const struct fetch *f, const struct cache_object *stale);
/* The facts of a record, instead of the whole's. */
void fetch_make_record(struct fetch *f, const struct cache_object *stale, struct judged *j);
/* All slices under a main key. */
void fetch_drop_slices(struct worker *w, struct slice key);

/* fetch_fill.c */
void fetch_run_fill(struct fetch *f);
struct fetch *fetch_new(struct exchange *x);
/* Starts, or starts again after a try that is known to have done nothing. */
void fetch_connect(struct fetch *f, const struct origin_server *not_this);
void fetch_break(struct fetch *f, enum fault fault);
/* A fill's fetch whose fill has ended. */
void fetch_leave_fill(struct fetch *f);
void fetch_copy_request(struct fetch *f, const struct exchange *x);
#endif
