/* proxy/h1.h: the HTTP/1 reader (RFC 9112): strict, incremental, in place. Pure: no sockets, clocks, locks or heap.
 *
 * A head is read from one contiguous buffer: h1_read_request() is called with all the bytes there are, again with more
 * of the same buffer after H1_MORE (the buffer may have moved: nothing but `scanned` is remembered between calls, and
 * the total work stays linear however the bytes drip in). After H1_DONE the slices in the request point into that
 * buffer and live as long as it does. Any framing doubt is H1_BAD with its cause: answer faults' status, close.
 */
#ifndef PROXY_H1_H
#define PROXY_H1_H
#include "base/headers.h"

/* One row per way a peer's HTTP/1 can be wrong; the counter is h1_<id in lower case>.
 *    cause               status  sentence                                                                   */
#define H1_CAUSES(X)                                                                                           \
    X(REQUEST_LINE,       400, "the request line is not METHOD SP target SP HTTP/1.x")                          \
    X(METHOD_LONG,        501, "the method is longer than any we know")                                         \
    X(TARGET,             400, "the request target has a form or byte that is not allowed")                     \
    X(TARGET_LONG,        414, "the request target is longer than clients.max_target")                          \
    X(VERSION,            505, "the version is not HTTP/1.0 or HTTP/1.1")                                       \
    X(BARE_LINE_END,      400, "a line ends with a bare LF, or a CR stands alone")                              \
    X(FOLD,               400, "a field line begins with white space (obs-fold)")                               \
    X(FIELD_NAME,         400, "a field name is empty, has a byte that is not a token, or white space before the colon") \
    X(FIELD_VALUE,        400, "a field value has NUL or another control byte")                                 \
    X(HEAD_LONG,          431, "the head is longer than clients.max_head")                                      \
    X(FIELDS_MANY,        431, "there are more fields than clients.max_fields")                                 \
    X(HOST,               400, "Host is missing, doubled or malformed")                                         \
    X(LENGTH,             400, "Content-Length is malformed, or differs between fields")                        \
    X(LENGTH_AND_CHUNKED, 400, "both Content-Length and Transfer-Encoding")                                     \
    X(CODING,             501, "a transfer coding other than chunked")                                          \
    X(CHUNKED_PLACE,      400, "Transfer-Encoding is malformed, chunked is not last, or HTTP/1.0 sent it")      \
    X(CHUNK,              400, "a chunk size or chunk line is malformed, or too large")                         \
    X(TRAILER,            400, "a trailer field is malformed, or the trailers are too large")                   \
    X(STATUS_LINE,        502, "the status line is not HTTP/1.x SP three digits")

enum h1_cause {
    H1_OK,
#define X(id, status, text) H1_##id,
    H1_CAUSES(X)
#undef X
        H1_CAUSE_COUNT
};
uint16_t h1_cause_status(enum h1_cause cause);
const char *h1_cause_text(enum h1_cause cause);

enum h1_result { H1_DONE, H1_MORE, H1_BAD };

#define H1_METHODS(X) \
    X(GET) X(HEAD) X(POST) X(PUT) X(DELETE) X(CONNECT) X(OPTIONS) X(TRACE) X(PATCH) X(PURGE)
enum h1_method {
    METHOD_OTHER,
#define X(m) METHOD_##m,
    H1_METHODS(X)
#undef X
};
/* RFC 9110 9.2: what a method promises. An unknown method promises nothing. */
bool h1_method_is_safe(enum h1_method m);
bool h1_method_is_idempotent(enum h1_method m);

enum h1_form { FORM_ORIGIN, FORM_ABSOLUTE, FORM_AUTHORITY, FORM_ASTERISK }; /* RFC 9112 3.2 */
enum h1_framing { FRAMING_NONE, FRAMING_LENGTH, FRAMING_CHUNKED, FRAMING_CLOSE };

struct h1_limits {
    uint32_t head_bytes, target_bytes;
    uint16_t field_count; /* at most HEADERS_MAX */
};

struct h1_request {
    struct headers headers;         /* storage given by the caller through headers_init() before each read */
    struct slice method_text;
    enum h1_method method;
    enum h1_form form;
    uint8_t minor;                  /* HTTP/1.<minor>: 0 or 1 */
    struct slice target;            /* as sent */
    struct slice scheme;            /* absolute-form only */
    struct slice authority;         /* absolute-form's (it replaces Host, RFC 9112 3.2.2), else Host's value; may be empty */
    struct slice path;              /* begins with '/': "/" for an absolute-form without path; "*" for FORM_ASTERISK, which
                                     * OPTIONS of an absolute-form without path and query is too (RFC 9112 3.2.4) */
    struct slice query;             /* after '?', without it; ptr NULL when there is no '?' */
    enum h1_framing framing;        /* NONE, LENGTH or CHUNKED */
    uint64_t length;                /* FRAMING_LENGTH, bytes; at most INT64_MAX, as a chunk's size is */
    bool keeps_alive;               /* by version and Connection (RFC 9112 9.3); `Connection: close` wins */
    bool expects_continue;          /* Expect: 100-continue from an HTTP/1.1 client */
    bool has_unknown_expect;        /* any other expectation: 417 */
    bool is_upgrade;                /* Connection: upgrade together with an Upgrade field */
    uint32_t head_bytes;            /* up to and including the empty line */
    uint32_t scanned;               /* the reader's mark of how far it got; 0 before the first call, else left alone */
};

struct h1_response {
    struct headers headers;
    uint16_t status;
    struct slice reason;
    uint8_t minor;
    enum h1_framing framing;        /* by request method and status too (RFC 9112 6.3) */
    uint64_t length;
    bool keeps_alive;
    uint32_t head_bytes, scanned;
};

/* `r->headers` was initialised and `r->scanned` is 0 before the first call for a head. Empty lines before the request
 * line are skipped (RFC 9112 2.2; at most two). On H1_MORE nothing in `r` but `scanned` means anything, and the caller
 * calls headers_init() again before the next try (or lets the reader do it: it resets count and first itself).
 * head_bytes that have come without the head's end are H1_HEAD_LONG: a buffer of that size never has to grow. Whatever
 * is taken as a non-empty `authority` is taken by h1_canonical_host() too. */
enum h1_result h1_read_request(struct h1_request *r, struct slice bytes, const struct h1_limits *limits, enum h1_cause *cause);
/* `request_method`: HEAD and CONNECT change the framing. A response is a peer's too: equally strict, except that a
 * missing reason phrase (with or without its SP) is taken. Equal repeated Content-Length values ("5, 5" or two fields) are
 * refused for requests and taken as one for responses. 1xx come out as responses with FRAMING_NONE. */
enum h1_result h1_read_response(struct h1_response *r, struct slice bytes, enum h1_method request_method,
                                const struct h1_limits *limits, enum h1_cause *cause);

/* Canonical host of an authority: lower case, port split off, one trailing dot dropped; "[v6]" keeps its brackets.
 * Writes at most 255 bytes to `out`. False when malformed. `port` 0 when none. */
must_check bool h1_canonical_host(struct slice authority, char out[256], size_t *len, uint16_t *port);

/* The chunked coding (RFC 9112 7.1). Fed with what arrived; hands out the data in place, piece by piece. */
struct h1_chunks {
    uint8_t state;
    uint8_t digit_count;
    uint16_t extension_bytes; /* of the current chunk; bounded */
    uint32_t trailer_bytes;   /* bounded by limits given to init */
    uint32_t trailer_max;
    uint32_t extension_debt;  /* extension bytes that no data has paid for; bounded */
    uint64_t left;            /* of the current chunk */
    uint8_t cause;            /* enum h1_cause, once bad */
};
void h1_chunks_init(struct h1_chunks *c, uint32_t trailer_max_bytes);
/* Takes bytes off `*in`. H1_MORE with data->len > 0: that much body, in place, call again; H1_MORE with data->len == 0:
 * `*in` is used up. H1_DONE: the last chunk and the trailers are through (checked and dropped: RFC 9110 6.5.1 lets us);
 * what is left in `*in` is not ours. H1_BAD: refuse and close. */
enum h1_result h1_chunks_read(struct h1_chunks *c, struct slice *in, struct slice *data, enum h1_cause *cause);
#endif
