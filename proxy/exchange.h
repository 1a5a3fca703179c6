/* proxy/exchange.h: one request and its response, from the parsed head to the access log's line.
 *
 * Life     exchange_take() (a spare one) -> the head is read into x->request -> exchange_begin() -> exchange_run() until it says OVER.
 * Threads  its worker's. A wake-up from another thread's fill arrives as a post to the worker's mailbox.
 */
#ifndef PROXY_EXCHANGE_H
#define PROXY_EXCHANGE_H
#include "proxy/conn.h"
#include "proxy/faults.h"

#include <sys/uio.h>

struct fetch;

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
    STEP_ANSWER_OBJECT,
    STEP_ANSWER_PASS,
    STEP_REFUSE,
    STEP_DELIVER,
    STEP_LOG,
    STEP_COUNT
};
enum source {
    SOURCE_NONE,
    SOURCE_OBJECT,
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
    struct cache_key key;
    char host[256];
    size_t host_length;
    uint16_t host_port;
    int64_t begun_us, begun_ms, first_byte_us;

    struct cache_object *
        object; /* borrowed while in_read_section, else ours by reference or by the reader's fill */
    struct cache_reader reader;
    enum fill_begun begun;
    struct fetch *fetch; /* pass: ours */
    int file_fd;

    /* the answer */
    uint16_t status;
    enum outcome outcome;
    enum reason reason;
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
    struct arena arena; /* heads of passes, pages, multipart parts */
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

/* ---- between exchange.c, answer.c and deliver.c ---------------------------------------------- */

enum next { NEXT_STEP, NEXT_WAIT, NEXT_END };
enum next exchange_go(struct exchange *x, enum exchange_step step);
enum next exchange_refuse(struct exchange *x, enum fault fault);
struct segment *exchange_add_memory(struct exchange *x, struct slice bytes);
void exchange_add_object(struct exchange *x, uint64_t from, uint64_t to);
enum next step_answer_object(struct exchange *x);
enum next step_answer_pass(struct exchange *x);
enum next step_refuse(struct exchange *x);
enum next step_file(struct exchange *x);
enum next step_deliver(struct exchange *x);
/* Whether the client is among clients.trusted_proxies. */
bool exchange_trusts_client(const struct exchange *x);
/* Makes what is borrowed last beyond this turn. */
void exchange_settle(struct exchange *x);
void exchange_leave_read_section(struct exchange *x);
#endif
