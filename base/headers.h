/* base/headers.h: a list of header fields, in the order they came, known names as small integers.
 *
 * Life     headers_init() on caller's storage -> headers_add() … -> read. Slices are borrowed: whoever filled the
 *          list says how long they live. No allocation here.
 * Threads  a list belongs to one thread; a list that nobody changes may be read by many.
 */
#ifndef BASE_HEADERS_H
#define BASE_HEADERS_H
#include "base/base.h"

/*    id                         name as we write it           */
#define HEADER_NAMES(X)                                         \
    X(ACCEPT,                    "Accept")                      \
    X(ACCEPT_ENCODING,           "Accept-Encoding")             \
    X(ACCEPT_LANGUAGE,           "Accept-Language")             \
    X(ACCEPT_RANGES,             "Accept-Ranges")               \
    X(AGE,                       "Age")                         \
    X(ALLOW,                     "Allow")                       \
    X(AUTHORIZATION,             "Authorization")               \
    X(CACHE_CONTROL,             "Cache-Control")               \
    X(CACHE_STATUS,              "Cache-Status")                \
    X(CDN_CACHE_CONTROL,         "CDN-Cache-Control")           \
    X(CONNECTION,                "Connection")                  \
    X(CONTENT_ENCODING,          "Content-Encoding")            \
    X(CONTENT_LANGUAGE,          "Content-Language")            \
    X(CONTENT_LENGTH,            "Content-Length")              \
    X(CONTENT_LOCATION,          "Content-Location")            \
    X(CONTENT_RANGE,             "Content-Range")               \
    X(CONTENT_TYPE,              "Content-Type")                \
    X(COOKIE,                    "Cookie")                      \
    X(DATE,                      "Date")                        \
    X(ETAG,                      "ETag")                        \
    X(EXPECT,                    "Expect")                      \
    X(EXPIRES,                   "Expires")                     \
    X(FORWARDED,                 "Forwarded")                   \
    X(HOST,                      "Host")                        \
    X(IF_MATCH,                  "If-Match")                    \
    X(IF_MODIFIED_SINCE,         "If-Modified-Since")           \
    X(IF_NONE_MATCH,             "If-None-Match")               \
    X(IF_RANGE,                  "If-Range")                    \
    X(IF_UNMODIFIED_SINCE,       "If-Unmodified-Since")         \
    X(KEEP_ALIVE,                "Keep-Alive")                  \
    X(LAST_MODIFIED,             "Last-Modified")               \
    X(LOCATION,                  "Location")                    \
    X(MAX_FORWARDS,              "Max-Forwards")                \
    X(ORIGIN,                    "Origin")                      \
    X(PRAGMA,                    "Pragma")                      \
    X(PROXY_AUTHENTICATE,        "Proxy-Authenticate")          \
    X(PROXY_AUTHENTICATION_INFO, "Proxy-Authentication-Info")   \
    X(PROXY_AUTHORIZATION,       "Proxy-Authorization")         \
    X(PROXY,                     "Proxy")                       \
    X(PROXY_CONNECTION,          "Proxy-Connection")            \
    X(RANGE,                     "Range")                       \
    X(REFERER,                   "Referer")                     \
    X(RETRY_AFTER,               "Retry-After")                 \
    X(SERVER,                    "Server")                      \
    X(SET_COOKIE,                "Set-Cookie")                  \
    X(SURROGATE_CONTROL,         "Surrogate-Control")           \
    X(TE,                        "TE")                          \
    X(TRAILER,                   "Trailer")                     \
    X(TRANSFER_ENCODING,         "Transfer-Encoding")           \
    X(UPGRADE,                   "Upgrade")                     \
    X(USER_AGENT,                "User-Agent")                  \
    X(VARY,                      "Vary")                        \
    X(VIA,                       "Via")                         \
    X(WARNING,                   "Warning")                     \
    X(WWW_AUTHENTICATE,          "WWW-Authenticate")            \
    X(X_FORWARDED_FOR,           "X-Forwarded-For")             \
    X(X_FORWARDED_HOST,          "X-Forwarded-Host")            \
    X(X_FORWARDED_PROTO,         "X-Forwarded-Proto")

enum header_id {
    HEADER_OTHER = 0, /* a name this table does not know */
#define X(id, name) HEADER_##id,
    HEADER_NAMES(X)
#undef X
        HEADER_ID_COUNT
};

enum { HEADERS_MAX = 250 }; /* so that a position fits a byte; the configured limit is at or below it */

struct header {
    struct slice name, value; /* value without white space at its ends */
    uint8_t id;               /* enum header_id */
    uint8_t next;             /* 1 + position of the next field of the same known id; 0 is none */
    uint8_t last;             /* of the first field of a known id only: 1 + position of the last; headers_add()'s own */
};

struct headers {
    struct header *at;
    uint16_t count, capacity;       /* fields */
    uint8_t first[HEADER_ID_COUNT]; /* 1 + position of the first field of that id; 0 is none */
};

/* The small integer for a name, any case; HEADER_OTHER for one that is not in the table. */
enum header_id header_id_of(struct slice name);
/* The name as we write it. `id` is not HEADER_OTHER. */
struct slice header_name(enum header_id id);
/* Hop-by-hop whatever Connection says (RFC 9110 7.6.1, and the Proxy-* fields). */
bool header_is_hop_by_hop(enum header_id id);

/* `storage` is the caller's and outlives the list. */
void headers_init(struct headers *h, struct header *storage, size_t capacity);
/* False when the list is full (a peer's doing: answer 431 or 502). */
must_check bool headers_add(struct headers *h, struct slice name, struct slice value);

/* Takes all fields of that id out; pointers to other fields do not hold any more. */
void headers_drop(struct headers *h, enum header_id id);

static inline bool headers_has(const struct headers *h, enum header_id id)
{
    return h->first[id] != 0;
}

/* First field of that id, or NULL; headers_next() goes on to its repeats. */
static inline const struct header *headers_find(const struct headers *h, enum header_id id)
{
    return h->first[id] == 0 ? NULL : &h->at[h->first[id] - 1];
}

static inline const struct header *headers_next(const struct headers *h, const struct header *f)
{
    return f->next == 0 ? NULL : &h->at[f->next - 1];
}

/* Value of the first field of that id, or an empty slice with ptr NULL. */
static inline struct slice headers_value(const struct headers *h, enum header_id id)
{
    const struct header *f = headers_find(h, id);
    return f == NULL ? SLICE_NONE : f->value;
}

/* First field with this name, known or not (any case), at or after position `from`; -1 is none. */
int headers_find_name(const struct headers *h, struct slice name, int from);
/* Whether a comma list over all fields of that id has this token, any case (parameters after ';' not looked at). */
bool headers_has_token(const struct headers *h, enum header_id id, struct slice token);
/* Whether a Connection field names this field (RFC 9110 7.6.1): it is then dropped before forwarding. */
bool headers_is_nominated(const struct headers *h, struct slice name);
#endif
