/* cache/decide.h: the decisions of an HTTP cache (RFC 9110, RFC 9111) as pure functions: plain values and `now` in, an
 * enum out. They never see a socket, a lock or a clock, and are tested as rows of tables (tests/unit/cache).
 *
 *   control.c      Cache-Control of a request or response, read once into numbers and flags
 *   freshness.c    how long a response is fresh, how old it is (RFC 9111 4.2)
 *   storable.c     may this response be stored, and may this request be looked up (RFC 9111 3)
 *   vary.c         selecting fields and the variant a request selects (RFC 9111 4.1)
 *   key.c          the canonical key
 *   conditional.c  If-None-Match, If-Modified-Since against a stored response (RFC 9110 13)
 *   range.c        Range, If-Range against a stored response (RFC 9110 14)
 */
#ifndef CACHE_DECIDE_H
#define CACHE_DECIDE_H
#include "base/arena.h"
#include "base/headers.h"

/* ---- control.c ------------------------------------------------------------------------------- */

enum {
    CONTROL_NONE = -1,
    CONTROL_MAX_S = INT32_MAX
}; /* delta-seconds above are taken as 2^31 - 1 (RFC 9111 1.2.2) */

struct cache_control {
    bool is_present;
    bool no_store, no_cache, is_private, is_public, must_revalidate, proxy_revalidate, no_transform,
        only_if_cached;
    bool immutable, must_understand;
    bool has_field_list; /* private="f" or no-cache="f": taken as the unqualified directive here */
    bool has_malformed;  /* something in it does not read as a directive or number: taken as
                            restrictively as it can be (control.c) */
    int32_t
        max_age_s; /* CONTROL_NONE when absent; a malformed value is 0: stale (RFC 9111 4.2.1) */
    int32_t s_maxage_s;
    int32_t max_stale_s; /* requests; without a value CONTROL_MAX_S */
    int32_t min_fresh_s; /* requests */
    int32_t stale_while_revalidate_s, stale_if_error_s;
};
/* All fields of that id together; duplicated directives: the most restrictive wins. */
void cache_control_read(const struct headers *h, enum header_id id, struct cache_control *out);
/* A request's: its Cache-Control, or without any, what Pragma: no-cache asks for (RFC 9111 5.4). */
void cache_control_read_request(const struct headers *request, struct cache_control *out);

/* ---- freshness.c ----------------------------------------------------------------------------- */

enum lifetime_source {
    LIFETIME_NONE,
    LIFETIME_S_MAXAGE,
    LIFETIME_MAX_AGE,
    LIFETIME_EXPIRES,
    LIFETIME_DEFAULT,
    LIFETIME_HEURISTIC
};

struct freshness_policy { /* from the snapshot */
    bool has_heuristic;
    int32_t heuristic_max_s;
    int32_t default_ttl_s; /* for this status; CONTROL_NONE when the operator set none */
};

struct freshness {         /* fixed when the response came */
    int32_t lifetime_s;    /* 0 is: always stale */
    int32_t initial_age_s; /* corrected_initial_age, RFC 9111 4.2.3 */
    enum lifetime_source source;
    bool must_ask;        /* no-cache: never without validation */
    bool must_revalidate; /* must-revalidate, proxy-revalidate or s-maxage: no stale answers */
};

struct response_times {
    int64_t now_wall_s; /* when the head came */
    int64_t delay_s;    /* response_time - request_time */
};

void cache_freshness_read(const struct headers *response, uint16_t status,
                          const struct cache_control *control, const struct response_times *times,
                          const struct freshness_policy *policy, struct freshness *out);
/* current_age: `received_ms` and `now_ms` are monotonic (clock.h). Saturates at CONTROL_MAX_S. */
int32_t cache_age_s(const struct freshness *f, int64_t received_ms, int64_t now_ms);

enum fresh_verdict { FRESH_YES, FRESH_EXPIRED, FRESH_MUST_ASK, FRESH_CLIENT_ASKED };
/* `request` is NULL when requests' directives are not honoured. FRESH_YES also when the client's
 * max-stale takes a stale answer that may be given: age_s is then at or above the lifetime. */
enum fresh_verdict cache_is_fresh(const struct freshness *f, int32_t age_s,
                                  const struct cache_control *request);

/* ---- storable.c ------------------------------------------------------------------------------ */

enum storable {
    STORABLE_YES,
    STORABLE_NO_STORE, /* no-store in the response (or the honoured request) */
    STORABLE_PRIVATE,
    STORABLE_AUTHORIZATION, /* RFC 9111 3.5 */
    STORABLE_SET_COOKIE,
    STORABLE_STATUS, /* not final, 206, 304, not understood, or one that no cache may store (RFC
                        6585) */
    STORABLE_NO_LIFETIME, /* no explicit freshness, no heuristic allowed, and no validator to ask
                             with */
    STORABLE_VARY_ALL,    /* Vary: * */
    STORABLE_METHOD,
};
const char *storable_word(enum storable s);

struct storable_facts {
    const struct headers *request, *response;
    const struct cache_control *request_control; /* NULL when not honoured */
    const struct cache_control *response_control;
    const struct freshness *freshness;
    uint16_t status;
    bool is_get; /* only answers to GET are stored here */
};
enum storable cache_is_storable(const struct storable_facts *f);
/* Whether this status may be given heuristic freshness (RFC 9110 15.1). */
bool cache_status_is_heuristic(uint16_t status);
/* Whether what this status asks of caches is known and done here: what must-understand asks (RFC
 * 9111 5.2.2.3). */
bool cache_status_is_understood(uint16_t status);

/* ---- vary.c ---------------------------------------------------------------------------------- */

enum {
    VARY_FIELDS_MAX = 32
}; /* a response that varies on more is taken as varying on everything */

/* The variant's selecting values in one flat, self-contained string, made from the response's Vary
 * and the request that it answered: for each selecting field, in lower case, sorted by name without
 * repeats, "name NUL value NUL", where value is "-" when the request had no such field, else "="
 * and the value: repeated lines joined by ", ", white space around commas folded, Accept-Encoding
 * reduced to the codings that we tell apart, Accept-Language put in order (see vary.c). Empty: no
 * Vary. One that no request matches when cache_vary_is_all(). */
struct slice cache_vary_make(struct arena *a, const struct headers *response,
                             const struct headers *request);
/* Whether `request` selects the variant that `selecting` describes: every value compared in full.
 * No allocation. */
bool cache_vary_matches(struct slice selecting, const struct headers *request);
/* `*` anywhere in Vary, a member that is not a field name, or too many members. */
bool cache_vary_is_all(const struct headers *response);

/* Which content codings a request accepts, by Accept-Encoding (RFC 9110 12.5.3); none when it has
 * no such field. */
enum { CODING_GZIP = 1, CODING_BR = 2, CODING_ZSTD = 4, CODING_DEFLATE = 8 };
unsigned cache_codings_accepted(const struct headers *request);
/* Last line of defence: false when a stored Content-Encoding is one that this client did not accept
 * although the response varied on Accept-Encoding. */
bool cache_coding_is_acceptable(struct slice content_encoding, const struct headers *request);

/* ---- key.c ----------------------------------------------------------------------------------- */

struct key_parts {
    struct slice site;  /* the site's name */
    struct slice host;  /* canonical: lower case, no dot at the end */
    uint16_t port;      /* 0 when none or the scheme's default */
    struct slice path;  /* as the origin will get it */
    struct slice query; /* ptr NULL: no '?' */
};
/* Writes site, NUL, host[:port], path, [?query] to `out`, nothing between host and path; the
 * length, or 0 when it does not fit or the path does not begin with '/'. No allocation; on the hit
 * path. */
size_t cache_key_write(const struct key_parts *parts, char *out, size_t capacity);

/* ---- conditional.c --------------------------------------------------------------------------- */

enum conditional {
    CONDITIONAL_NONE,
    CONDITIONAL_SEND,
    CONDITIONAL_NOT_MODIFIED,
    CONDITIONAL_FAILED
};
struct validators {
    struct slice etag;       /* as stored, with W/ and quotes; empty when none */
    int64_t last_modified_s; /* -1 when none or malformed */
    int64_t date_s;          /* -1 when none */
};
void cache_validators_read(const struct headers *response, int64_t now_wall_s,
                           struct validators *out);
/* RFC 9110 13.2.2 for GET and HEAD on a stored 200 response: If-None-Match before
 * If-Modified-Since. If-Match and If-Unmodified-Since are the origin's to judge: such requests are
 * not answered from the store (see cache_request_has_precondition). Conditions do not apply to
 * other statuses (13.2.1). CONDITIONAL_NONE: there is no condition, or none that can be judged:
 * send. */
enum conditional cache_conditional(const struct headers *request, const struct validators *v,
                                   int64_t now_wall_s);
bool cache_request_has_precondition(
    const struct headers *request); /* If-Match or If-Unmodified-Since */

/* ---- range.c --------------------------------------------------------------------------------- */

enum {
    RANGES_MAX = 16
}; /* more, or overlapping ones, are answered with the whole (RFC 9110 14.2 lets us) */
struct byte_range {
    uint64_t first, last; /* inclusive; within the representation */
};
enum range_verdict { RANGE_WHOLE, RANGE_PARTS, RANGE_UNSATISFIABLE };
struct ranges {
    size_t count; /* RANGE_PARTS: 1 is a plain 206, more are multipart/byteranges, in the order
                     asked */
    struct byte_range at[RANGES_MAX];
};
/* For a GET and a stored 200 of `length` bytes. If-Range compared strongly; a date only when
 * Last-Modified is strong enough. */
enum range_verdict cache_ranges(const struct headers *request, const struct validators *v,
                                uint64_t length, int64_t now_wall_s, struct ranges *out);
#endif
