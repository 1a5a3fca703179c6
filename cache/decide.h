/* cache/decide.h: the decisions of an HTTP cache (RFC 9110, RFC 9111) as pure functions: plain values and `now` in, an
 * enum out. They never see a socket, a lock or a clock, and are tested as rows of tables (tests/unit/cache).
 *
 *   control.c      Cache-Control of a request or response, read once into numbers and flags
 *   targeted.c     CDN-Cache-Control and its like (RFC 9213), Surrogate-Control
 *   freshness.c    how long a response is fresh, how old it is (RFC 9111 4.2)
 *   stale.c        what may be done with one that is not (RFC 9111 4.2.4, RFC 5861)
 *   storable.c     may this response be stored (RFC 9111 3)
 *   tags.c         what an answer is tagged with: Cache-Tag, Surrogate-Key, xkey, Cache-Groups (RFC 9875)
 *   target.c       which other URLs an unsafe request has changed (RFC 9111 4.4)
 *   part.c         Content-Range, and parts that make a whole (RFC 9111 3.3, 3.4)
 *   vary.c         selecting fields and the variant a request selects (RFC 9111 4.1)
 *   key.c          the canonical key
 *   conditional.c  If-None-Match, If-Modified-Since against a stored response (RFC 9110 13)
 *   range.c        Range, If-Range against a stored response (RFC 9110 14)
 */
#ifndef CACHE_DECIDE_H
#define CACHE_DECIDE_H
#include "base/arena.h"
#include "base/headers.h"
#include "base/verdict.h"

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
    bool names_private, names_no_cache; /* private="f", no-cache="f": about those fields alone (RFC 9111 5.2.2.4,
                                           5.2.2.7): cache_control_names(). is_private and no_cache are then not set,
                                           unless they were said without a list, or with one that is no list of names
                                           or names what the rest cannot do without (Content-Encoding, Vary …) */
    bool has_malformed;  /* something in it does not read as a directive or number: taken as
                            restrictively as it can be (control.c) */
    int32_t
        max_age_s; /* CONTROL_NONE when absent; a malformed value is 0: stale (RFC 9111 4.2.1) */
    int32_t s_maxage_s;
    int32_t max_stale_s; /* requests; without a value CONTROL_MAX_S */
    int32_t min_fresh_s; /* requests */
    int32_t stale_while_revalidate_s, stale_if_error_s;
};
enum control_source { CONTROL_FROM_NOTHING, CONTROL_FROM_TARGETED, CONTROL_FROM_SURROGATE, CONTROL_FROM_CACHE_CONTROL };
/* The field that counts for this cache: the first of `targeted` (names, NULL-terminated, in the order of preference;
 * NULL: none) that is there and reads as a structured dictionary (RFC 9213 2.2); then Surrogate-Control, if it says
 * anything to us; then Cache-Control. An empty or malformed targeted field is as if absent. Expires counts only with
 * CONTROL_FROM_CACHE_CONTROL or nothing. `*field` is the name of the one that counts, or NULL. */
void cache_control_read_response(const struct headers *response, const char *const *targeted,
                                 struct cache_control *out, enum control_source *source,
                                 const char **field);
/* Whether private="…" (or no-cache="…") of Cache-Control names this field. */
bool cache_control_names(const struct headers *response, struct slice field);
/* The same of a targeted field. */
bool cache_targeted_names(const struct headers *response, const char *targeted, struct slice field);
/* must-revalidate, proxy-revalidate or s-maxage: no stale answers (RFC 9111 4.2.4), whichever field it came in. */
bool cache_control_forbids_stale(const struct cache_control *c);
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
    LIFETIME_HEURISTIC,
    LIFETIME_RULE /* the operator's, instead of what the origin says */
};
/* "s-maxage", "heuristic" … */
const char *lifetime_word(enum lifetime_source s);

struct freshness_policy { /* from the snapshot */
    bool has_heuristic;
    int32_t heuristic_max_s;
    int32_t default_ttl_s; /* for this status; CONTROL_NONE when the operator set none */
    bool has_ttl;          /* a rule's ttl_s instead of what the origin says. It counts from when the answer came: the
                              age that it has by then is added, so that Age goes on telling the truth */
    int32_t ttl_s;
    bool ignores_origin;   /* Expires, Cache-Control count as absent (`control` is then empty, too) */
    bool ignores_expires;  /* a targeted field spoke (RFC 9213 2.2) */
    /* for answers that do not say themselves, and that had a lifetime at all: one that was never fresh is kept to be
     * asked about, and was never for anybody without asking; 0 is none */
    int32_t stale_while_revalidate_s, stale_if_error_s, stale_if_unreachable_s;
    int32_t keep_s;        /* CONTROL_MAX_S: as long as there is room */
    bool overrides_revalidate; /* the three above are a rule's own, and count against must-revalidate: the operator said
                                  so, loudly */
};

struct freshness {         /* fixed when the response came */
    int32_t lifetime_s;    /* 0 is: always stale. LIFETIME_RULE: the rule's ttl and initial_age_s */
    int32_t initial_age_s; /* corrected_initial_age, RFC 9111 4.2.3 */
    enum lifetime_source source;
    bool must_ask;        /* no-cache: never without validation */
    bool must_revalidate; /* must-revalidate, proxy-revalidate or s-maxage: no stale answers */
    bool stale_by_rule;   /* the stale_… times are a rule's, and count against must_revalidate */
    /* the clocks after the lifetime, in seconds from its end; 0 is none. keep_s is the last of them, with what the
     * policy adds to the longest of the others; CONTROL_MAX_S never ends */
    int32_t stale_while_revalidate_s, stale_if_error_s, stale_if_unreachable_s, keep_s;
    /* how initial_age_s came about, for those who ask: the larger of apparent and (age + delay) */
    int32_t apparent_age_s, age_value_s, delay_s;
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

/* ---- stale.c --------------------------------------------------------------------------------- */

/* All for an object that cache_is_fresh() found expired, `age_s` old. must_ask and must_revalidate (unless
 * stale_by_rule) forbid both. A fresh object, whatever the client asked for, may be served when nothing better is to be
 * had. */
bool cache_may_refresh_behind(const struct freshness *f, int32_t age_s); /* stale-while-revalidate */
enum stale_cause { STALE_UNREACHABLE, STALE_ERROR }; /* no answer at all; an answer that says 500, 502, 503 or 504 */
/* `request` (NULL when not honoured): a client's own stale-if-error counts too (RFC 5861 4). */
bool cache_may_serve_broken(const struct freshness *f, int32_t age_s, enum stale_cause why,
                            const struct cache_control *request);
bool cache_status_is_error(uint16_t status); /* 500, 502, 503, 504 (RFC 5861 4) */
/* Whether it may still be asked about; else it counts as not stored. */
bool cache_is_kept(const struct freshness *f, int32_t age_s);

/* ---- storable.c ------------------------------------------------------------------------------ */

enum storable {
    STORABLE_YES,
    STORABLE_NO_STORE, /* no-store in the response (or the honoured request) */
    STORABLE_PRIVATE,
    STORABLE_AUTHORIZATION, /* RFC 9111 3.5 */
    STORABLE_SET_COOKIE,
    STORABLE_STATUS, /* not final, 304, not understood, or one that no cache may store (RFC 6585) */
    STORABLE_NO_LIFETIME, /* no explicit freshness, no heuristic allowed, and no validator to ask
                             with */
    STORABLE_VARY_ALL,    /* Vary: * */
    STORABLE_METHOD,
    STORABLE_PART,   /* a 206 that cannot be used: nobody asked for a part, no strong validator, or a Content-Range that
                        does not fit */
    STORABLE_RULE,   /* a rule says no_store or bypass */
    STORABLE_TOO_LARGE, /* the event path's: above cache.max_object */
    STORABLE_COUNT
};
const char *storable_word(enum storable s);
/* The same as a reason for an exchange; STORABLE_YES has none: REASON_ABSENT. */
enum reason storable_reason(enum storable s);
/* A sentence: "the answer sets a cookie". */
const char *storable_text(enum storable s);

struct validators; /* conditional.c, below */
struct storable_facts {
    const struct headers *request, *response;
    const struct cache_control *request_control; /* NULL when not honoured */
    const struct cache_control *response_control;
    const struct freshness *freshness;
    uint16_t status;
    bool is_get; /* only answers to GET are stored here */
    bool shares_set_cookie; /* cache.unsafe_share_set_cookie: stored when the lifetime is explicit */
    bool ignores_set_cookie, ignores_authorization, ignores_vary; /* by rule */
    bool wants_part; /* the request had a Range that went to the origin */
    const struct validators *validators; /* of a 206; NULL: none */
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

/* ---- tags.c ---------------------------------------------------------------------------------- */

enum { TAGS_MAX = 256, TAGS_BYTES_MAX = 16 << 10 }; /* of one object; more are left out, and counted by the caller */
/* Cache-Tag (commas), Surrogate-Key (spaces), xkey (both), each tag once, each with a NUL behind it, those of `more`
 * (same form) first. Cache-Groups (RFC 9875: a structured list of strings) become tags with '\1', the origin ("host" or
 * "host:port") and '\1' before the name, so that no tag of another kind is one. */
struct slice cache_tags_make(struct arena *a, const struct headers *response, struct slice origin, struct slice more);
/* The same, and how many were left out. */
struct slice cache_tags_make_counted(struct arena *a, const struct headers *response, struct slice origin,
                                     struct slice more, unsigned *left_out);
/* Cache-Group-Invalidation of an answer to an unsafe request, in the same form. */
struct slice cache_groups_invalidated(struct arena *a, const struct headers *response, struct slice origin);
/* Takes the next tag off `*rest`. */
bool cache_tags_next(struct slice *rest, struct slice *tag);
bool cache_is_tag_field(struct slice name); /* Cache-Tag, Surrogate-Key, xkey: not for clients */

/* ---- target.c -------------------------------------------------------------------------------- */

struct target_base {
    struct slice scheme, host; /* canonical */
    uint16_t port;             /* 0: none or the scheme's default */
    struct slice path;
    struct slice query;        /* what an empty reference stands for; ptr NULL: no '?' */
};
/* Resolves a Location or Content-Location (RFC 3986 5) against the request's URL. False when it does not read as a URL,
 * or is of another origin (scheme, host or port differ): it is then none of this request's business. Slices in `a`. */
bool cache_target_resolve(struct arena *a, const struct target_base *base, struct slice reference,
                          struct slice *path, struct slice *query);
/* RFC 9110 9.3.3: an answer to POST with explicit freshness and a Content-Location that is the request's own URL. */
bool cache_post_is_get(const struct target_base *base, struct slice query, const struct headers *response,
                       uint16_t status, struct arena *a);

/* ---- key.c ----------------------------------------------------------------------------------- */

struct key_parts {
    struct slice site;  /* the site's name */
    struct slice host;  /* canonical: lower case, no dot at the end */
    uint16_t port;      /* 0 when none or the scheme's default */
    struct slice path;  /* as the origin will get it */
    struct slice query; /* ptr NULL: no '?' */
    bool ignores_case;  /* the path is written in lower case */
    struct slice extra; /* fields and cookies of the rules, "name=value" NUL …; empty: none */
};
/* Writes site, NUL, host[:port], path, [?query], and with an extra NUL, extra, to `out`, nothing between host and path; the
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
/* Whether the range counts for what is stored: no If-Range, or one that names it (RFC 9110 13.1.5). */
bool cache_if_range_holds(const struct headers *request, const struct validators *v,
                          int64_t now_wall_s);
/* For a GET and a stored 200 of `length` bytes. If-Range compared strongly; a date only when
 * Last-Modified is strong enough. */
enum range_verdict cache_ranges(const struct headers *request, const struct validators *v,
                                uint64_t length, int64_t now_wall_s, struct ranges *out);

/* ---- part.c ---------------------------------------------------------------------------------- */

struct content_range {
    uint64_t first, last; /* inclusive */
    int64_t complete;     /* -1: "*" */
};
/* False when absent, repeated, not bytes, or not consistent. */
bool cache_content_range_read(const struct headers *response, struct content_range *out);
/* Whether two answers are parts of the same representation: equal strong ETags; without any, equal Last-Modified that
 * are strong by their Dates (RFC 9110 8.8.2.2). */
bool cache_validators_strongly_equal(const struct validators *a, const struct validators *b);
/* What the two together cover. False when there is a gap between them, or the complete lengths differ. */
bool cache_parts_join(const struct content_range *a, const struct content_range *b, struct content_range *out);
/* The one range of bytes that a request asks for, against a representation whose complete length may be unknown (-1):
 * false when it has none, several, or one that cannot be resolved. */
bool cache_range_of(const struct headers *request, int64_t complete, struct content_range *out);
#endif
