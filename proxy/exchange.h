/* proxy/exchange.h: one request and its response, from the parsed head to the access log's line.
 *
 * Life     exchange_take() (a spare one) -> the head is read into x->request -> exchange_begin() -> exchange_run() until it says OVER.
 * Threads  its worker's. A wake-up from another thread's fill arrives as a post to the worker's mailbox.
 */
#ifndef PROXY_EXCHANGE_H
#define PROXY_EXCHANGE_H
#include "base/writer.h"
#include "cache/policy.h"
#include "proxy/conn.h"
#include "proxy/faults.h"

#include <sys/uio.h>

struct fetch;
struct slices;
struct tee;

/* A stretch of the answer still to be sent, in order. */
enum segment_kind { SEGMENT_MEMORY, SEGMENT_OBJECT, SEGMENT_FILE };
struct segment {
    enum segment_kind kind;
    bool is_body;    /* counts as body bytes */
    const char *mem; /* MEMORY */
    uint64_t from,
        to; /* MEMORY: to - from bytes at mem + from; OBJECT: of x->object; FILE: of x->file_fd */
};
enum { SEGMENTS_INLINE = 8, TAIL_BYTES = 512, REFILL_PIECES = 8 };

enum exchange_step {
    STEP_ROUTE,
    STEP_LOOKUP,
    STEP_FILL,
    STEP_JOIN,
    STEP_FILE,
    STEP_PASS,
    STEP_ANSWER_RULE,
    STEP_ANSWER_OBJECT,
    STEP_ANSWER_PASS,
    STEP_SLICES,
    STEP_REFUSE,
    STEP_DELIVER,
    STEP_LOG,
    STEP_COUNT
};
enum source {
    SOURCE_NONE,
    SOURCE_OBJECT,
    SOURCE_SLICES,
    SOURCE_FETCH
}; /* what refills the segments when they have run out */
enum framing_out { OUT_LENGTH, OUT_CHUNKED, OUT_CLOSE };

struct exchange {
    uint32_t magic;
    struct conn *conn; /* NULL once it is dead and only waits for its post */
    struct worker *worker;
    struct snapshot *snapshot;
    const struct config_site *site;
    struct h1_request
        request; /* slices: into the connection's bytes until settled, then into `kept` */
    struct header *kept_fields; /* with `kept` one block */
    char *kept;                 /* NULL while not settled */
    enum exchange_step step;
    bool running, is_dead;
    bool in_read_section;
    bool owns_object;
    bool is_head;     /* HEAD: no body goes out */
    bool keeps_alive; /* what the answer says */
    bool sent_any;
    bool was_cut;         /* the answer ended short: reset the connection */
    bool was_revalidated; /* the origin answered our condition with 304 */
    struct plan plan; /* what the rules say; the key; where the origin is asked what */
    struct peer client; /* whom the rules see: behind trusted proxies the one that they name */
    struct cache_key key;
    char host[256];
    size_t host_length;
    uint16_t host_port;
    int64_t begun_us, begun_ms, first_byte_us;

    struct cache_object *
        object; /* borrowed while in_read_section, else ours by reference or by the reader's fill */
    struct cache_object *stale; /* ours by reference: what is stored, past its use unless the origin is in trouble */
    struct cache_reader reader;
    enum fill_begun begun;
    struct fetch *fetch; /* pass: ours */
    struct slices *slices; /* slices.c: what is sent is put together of slices; NULL: not */
    struct tee *tee;       /* tee.c: the pass is kept, too; NULL: not */
    bool passes_range;     /* the client's range goes to the origin by configuration, not by what an answer said */
    bool was_restarted;    /* the file had changed before anything was sent of it: once only */
    int file_fd;

    /* the answer */
    uint16_t status;
    /* the decision record: all that is said of this exchange comes from here */
    enum outcome outcome;
    enum reason reason;
    enum reason looked;     /* what the look-up said when it did not answer */
    enum storable unstored; /* why the origin's answer was not kept; STORABLE_YES: it was, or nothing was judged */
    bool is_stored;
    uint16_t origin_status; /* 0: the origin was not asked, or said nothing */
    enum fault fault;
    enum h1_cause cause;
    int32_t age_s;
    enum source source;
    enum framing_out framing;
    bool is_source_done;
    bool has_pulled; /* the first of a pass's body was looked for, so that it goes out with the head
                      */
    uint64_t object_position,
        object_end;           /* SOURCE_OBJECT: what is to be refilled; UINT64_MAX: to its end */
    struct segment *segments; /* inline_segments or a block in arena */
    unsigned segment_at, segment_count, segment_capacity;
    struct segment inline_segments[SEGMENTS_INLINE];
    struct slice own_fields; /* lines of the origin's answer that are for this client alone; in the arena */
    struct arena arena;      /* heads of passes, pages, multipart parts, what rules have edited */
    char *spill;        /* what a blocked client left over of borrowed bytes */
    char tail[TAIL_BYTES];
    char chunk_heads[REFILL_PIECES][24];
    char server_name[64]; /* that was asked */
    uint64_t body_sent, sent;
    char key_bytes[512]; /* the canonical key; a longer one is in the arena */
};

struct exchange *exchange_take(struct worker *w);
void exchange_give(struct exchange *x);
void exchange_free_spare(struct worker *w);

enum exchange_end { EXCHANGE_WAITS, EXCHANGE_OVER };
/* The head is in x->request. */
void exchange_begin(struct exchange *x, struct conn *c);
/* A head that did not parse, or did not come in time: refuses it. */
void exchange_begin_refused(struct exchange *x, struct conn *c, enum fault fault,
                            enum h1_cause cause);
enum exchange_end exchange_run(struct exchange *x);
/* The client is gone: let go of everything, count, log. */
void exchange_abort(struct exchange *x, enum reason why);
/* Interim responses (1xx) for a leader that waits for its fill: copied, sent at its next turn. */
void exchange_note_interim(struct exchange *x, struct slice bytes);
/* A deadline of the connection's came while this exchange was waiting. False: nothing to be done
 * but cut the connection. */
bool exchange_timed_out(struct exchange *x, enum conn_wait wait);

/* ---- between the files of an exchange -------------------------------------------------------- */

enum next { NEXT_STEP, NEXT_WAIT, NEXT_END };
enum next exchange_go(struct exchange *x, enum exchange_step step);
enum next exchange_refuse(struct exchange *x, enum fault fault);
/* Answers from x->object. */
enum next exchange_serve(struct exchange *x, enum outcome outcome, enum reason reason);
/* Makes what is borrowed last beyond this turn. */
void exchange_settle(struct exchange *x);
void exchange_leave_read_section(struct exchange *x);
void exchange_detach_reader(struct exchange *x);

/* route.c */
enum next step_route(struct exchange *x);
/* Whether the client is among clients.trusted_proxies. */
bool exchange_trusts_client(const struct exchange *x);
/* What rules see; borrows from `x`. */
struct rule_request exchange_rule_request(const struct exchange *x);

/* lookup.c */
enum next step_lookup(struct exchange *x);
enum next step_fill(struct exchange *x);
enum next step_join(struct exchange *x);
/* The origin gave no answer, or an error: what is stored, if that may be used now, else the fault. Nothing of an answer
 * has gone out. */
enum next exchange_origin_failed(struct exchange *x, enum fault fault);
/* Whether an error (500, 502, 503, 504) of the origin is better answered with what is stored. */
bool exchange_has_better(const struct exchange *x, uint16_t status);

/* invalidate.c */
/* An unsafe method that the origin did not refuse has changed what is stored (RFC 9111 4.4). */
void exchange_invalidate(struct exchange *x, const struct h1_response *r);
/* The same when its end was not seen. */
void exchange_invalidate_unsure(struct exchange *x);
/* The key that a GET of that URL has; empty: no rule lets it be looked up. */
struct slice exchange_key_of_get(struct exchange *x, struct slice path, struct slice query);
/* Purges a URL of this host, all that is stored for it. */
void exchange_purge_url(struct exchange *x, struct slice path, struct slice query, enum purge_how how,
                        struct cache_purged *purged);

/* answer.c: from the store, from the origin */
enum next step_answer_object(struct exchange *x);
enum next step_answer_pass(struct exchange *x);
/* What every answer's head ends with: rules' lines, Cache-Status, Connection and the empty line. */
size_t answer_end_most(const struct exchange *x);
void answer_put_end(struct writer *w, struct exchange *x, int64_t ttl_s);
/* In x->tail when it fits there. */
struct writer answer_tail(struct exchange *x);
void answer_add_tail(struct exchange *x, const struct writer *w, const char *start);
struct slice answer_without_status_line(struct slice head);
bool answer_must_close(const struct exchange *x);
void answer_put_length(struct writer *w, uint64_t length);
void answer_put_content_range(struct writer *w, const struct byte_range *r, int64_t length);
void answer_put_unsatisfiable(struct writer *w, const struct exchange *x, uint64_t length);

/* slices.c: what is kept in slices (cache_facts_are_sliced) */
/* x->object is the record of what the bytes from `first` to before `end` are wanted of: step_slices() opens the first slice
 * of them and goes to STEP_ANSWER_OBJECT again, with x->slices. */
enum next exchange_slices_begin(struct exchange *x, uint64_t first, uint64_t end);
enum next step_slices(struct exchange *x);
/* A whole that would push most of what is stored out, and be gone itself by its next request: it goes through. */
bool exchange_slices_are_too_many(const struct config *c, uint64_t length);
struct cache_object *exchange_slices_record(const struct exchange *x);
enum slices_pulled { SLICES_DATA, SLICES_WAIT, SLICES_END, SLICES_BROKEN };
/* The next stretch, of x->object; all that was pulled before has been sent. */
enum slices_pulled exchange_slices_pull(struct exchange *x, uint64_t *from, uint64_t *to);
enum fault exchange_slices_fault(const struct exchange *x);
void exchange_slices_drop(struct exchange *x);

/* tee.c: a pass whose answer may be stored after all goes into the store, too, while it goes to the client */
/* The head is there. What it says about storing is in the decision record then. */
void exchange_tee_begin(struct exchange *x);
/* How long it is fresh; 0 when nothing is kept. */
int64_t exchange_tee_ttl_s(const struct exchange *x);
void exchange_tee_take(struct exchange *x, struct slice piece);
void exchange_tee_end(struct exchange *x);
/* Of no use after all: broken, or the client is gone. */
void exchange_tee_drop(struct exchange *x);

/* answer_file.c: from a directory */
enum next step_file(struct exchange *x);

/* answer_local.c: from ourselves */
enum next step_refuse(struct exchange *x);
enum next step_answer_rule(struct exchange *x);
/* TRACE that has come to its end here: the request as it came, without what is secret (RFC 9110 9.3.8). */
enum next exchange_answer_trace(struct exchange *x);
/* OPTIONS that is about us: `*`, or Max-Forwards: 0. */
enum next exchange_answer_options(struct exchange *x);
/* PURGE: how many went. */
enum next exchange_answer_purge(struct exchange *x, const struct cache_purged *purged);
/* A small page of ours with x->status; `fields` are whole lines. */
void answer_add_page(struct exchange *x, const char *text, const char *fields);

/* status.c: Cache-Status (RFC 9211) from the decision record. */
size_t exchange_cache_status_most(const struct exchange *x);
void exchange_put_cache_status(struct writer *w, const struct exchange *x, int64_t ttl_s);

/* deliver.c */
struct segment *exchange_add_memory(struct exchange *x, struct slice bytes);
void exchange_add_object(struct exchange *x, uint64_t from, uint64_t to);
struct segment *exchange_add_segment(struct exchange *x);
enum next step_deliver(struct exchange *x);
/* Interim responses that wait: sent as far as the client takes them. False: it is gone (x->step says so). */
bool exchange_send_interim(struct exchange *x);
#endif
