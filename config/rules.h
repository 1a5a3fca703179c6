/* config/rules.h: the rules of a site: what they match, and what they then do. Compiled at load, immutable with the
 * snapshot; any thread.
 *
 * All rules of a site are tried in order, its presets' before its own. Each one that matches acts; of two that set the
 * same thing the later one counts, lists (fields, key edits, cookies, tags) add up. redirect, answer and deny end the
 * walk, and so does `stop: true`. A rule with conditions on the answer (status, response fields) waits for that:
 * it can change what is stored and what goes out, not what was asked.
 *
 *   rules_on_request()  before look-up: what matches, the numbers and switches of it all
 *   rules_edit_…()      the lists: each walks the rules that matched
 *   rules_on_response() once the origin's head is there (fills and passes), or a stored one is about to go out
 */
#ifndef CONFIG_RULES_H
#define CONFIG_RULES_H
#include "base/arena.h"
#include "base/headers.h"
#include "base/peer.h"
#include "config/config.h"

/* What rules see of a request: borrowed. The same one for both phases: as the client sent it. */
struct rule_request {
    struct slice method;      /* as sent */
    struct slice scheme;      /* "http" or "https" */
    struct slice host;        /* canonical; empty for HTTP/1.0 without Host */
    struct slice path, query; /* query.ptr NULL: no '?' */
    const struct headers *headers;
    const struct peer *client; /* NULL: matches no network */
};
struct rule_response {
    uint16_t status;
    const struct headers *headers;
};

struct config_rule; /* rules_internal.h */

enum {
    RULES_MAX = 1024, /* per site, presets' included; more is a mistake at load */
    RULES_WORDS = RULES_MAX / 64,
    RULES_MADE_TAGS_MAX = 512, /* of one exchange; those beyond are left out, said in the log */
    RULE_UNSET = -1
};
enum rule_end { RULE_GO_ON, RULE_REDIRECT, RULE_ANSWER, RULE_DENY };

/* What the origin says and the operator chose not to hear. */
enum rule_ignores {
    IGNORE_CACHE_CONTROL = 1, /* Cache-Control, Expires, Pragma, targeted fields: as if absent */
    IGNORE_SET_COOKIE = 2,    /* stored all the same, without the Set-Cookie: nobody gets another's */
    IGNORE_VARY = 4,          /* as if absent */
    IGNORE_AUTHORIZATION = 8, /* the request's: as if absent (RFC 9111 3.5 is not asked for) */
};

/* The sum of all that matched. Filled by rules_on_request(), added to by rules_on_response(). */
struct rule_effects {
    const struct config_site *site;
    uint64_t matched[RULES_WORDS]; /* by position in site->rules */
    unsigned matched_count;

    enum rule_end end;
    const struct config_rule *ended_by; /* NULL: nothing ended it */
    const struct config_rule *bypassed_by;  /* cache: bypass: neither look-up nor storing */
    const struct config_rule *unstored_by;  /* cache: no_store: look-up, but nothing new is stored */
    const struct config_rule *ttl_by;
    const struct config_origin *origin; /* NULL: the site's */
    int32_t ttl_s;         /* RULE_UNSET; else instead of what the origin says (not over no-store, private …: ignore) */
    int32_t default_ttl_s; /* RULE_UNSET; for an answer without explicit freshness; by status (rules_default_ttl) */
    int32_t stale_while_revalidate_s, stale_if_error_s, keep_s; /* RULE_UNSET: the configuration's */
    uint32_t ignores; /* enum rule_ignores */
    /* which lists there are among the rules that matched: the walk is left out when there are none */
    bool edits_key, edits_cookies, edits_request, edits_response, rewrites, has_tags, has_default_ttls;
    bool awaits_response; /* the site has rules with conditions on the answer that match so far */
    bool awaits_fields;   /* and one of them changes fields of the answer: nothing else of them matters on a hit */

    /* the floor's own: */
    uint64_t pending[RULES_WORDS]; /* match but for their conditions on the answer */
    struct rule_asked {            /* as it stood before an answer was looked at: the next one begins from here */
        const struct config_rule *unstored_by, *ttl_by;
        int32_t ttl_s, stale_while_revalidate_s, stale_if_error_s, keep_s;
        uint32_t ignores;
        unsigned matched_count;
        bool edits_response, has_tags, has_default_ttls;
        uint16_t made_tags_bytes;
    } asked;
    uint16_t made_tags_bytes;
    char made_tags[RULES_MADE_TAGS_MAX]; /* tags with variables in them, filled in; not initialised beyond its length */
};

/* Whether a site has rules at all: the hit path asks this first. */
static inline bool rules_has_any(const struct config_site *site)
{
    return site->rule_count > 0;
}

/* No allocation; on the hit path: a rule that does not match costs a few nanoseconds. */
void rules_on_request(const struct config_site *site, const struct rule_request *request,
                      struct rule_effects *out);
/* Adds the rules that wait for an answer. ttl, ignores, stale_…, tags and response fields take effect; nothing else of
 * them can be given (a mistake at load). */
void rules_on_response(const struct rule_request *request, const struct rule_response *response,
                       struct rule_effects *effects);

/* default_ttl of what matched, for this status; RULE_UNSET. */
int32_t rules_default_ttl(const struct rule_effects *effects, uint16_t status);

/* ---- the lists; each needs rules_on_request() before ------------------------------------------- */

/* Drops cookies and changes fields of the request, in place: before look-up, so that Vary and key see the result.
 * New bytes are in `a`. False when the list is full. */
must_check bool rules_edit_request(const struct rule_effects *effects, const struct rule_request *request,
                                   struct headers *headers, struct arena *a);
/* The path and query for the origin and the key after `rewrite`: slices in `a`, or as they were. False: a rewrite gave
 * what is no path (logged once by the caller, the request refused with 500). */
must_check bool rules_rewrite(const struct rule_effects *effects, const struct rule_request *request, struct arena *a,
                              struct slice *path, struct slice *query);

/* The query as the key has it: parameters ignored, kept alone, sorted. Writes at most query.len bytes to `out`;
 * *has_query false: not even the '?' is left. Every parameter that goes is told to `dropped` (may be NULL). */
typedef void rules_dropped_f(void *arg, struct slice parameter, const struct config_rule *by);
size_t rules_key_query(const struct rule_effects *effects, struct slice query, char *out, bool *has_query,
                       rules_dropped_f *dropped, void *arg);
/* Whether the key has the path in lower case (IIS). */
bool rules_key_ignores_case(const struct rule_effects *effects);
/* Fields and cookies that the key has beside the URL: "name=value" NUL …, names in lower case, in the order of the
 * rules. Returns the length; more than `capacity`: nothing was written, call again with room. */
size_t rules_key_extra(const struct rule_effects *effects, const struct rule_request *request, char *out,
                       size_t capacity);

/* Tags that rules give to what is stored, each with a NUL behind it, in `a`. */
struct slice rules_tags(const struct rule_effects *effects, struct arena *a);

/* Whether a rule gives the request that field itself (`request: set`, `append`): it is then the operator's word, not the
 * client's, and goes to the origin even if a client's own would not (X-Real-IP and its like). */
bool rules_sets_request_field(const struct rule_effects *effects, struct slice name);

/* What goes out: whether the field is left out (removed or set anew), and the lines ("Name: value\r\n" …) to be added. */
bool rules_drops_response_field(const struct rule_effects *effects, struct slice name);
struct slice rules_response_lines(const struct rule_effects *effects, struct arena *a);

/* Redirect: status and Location (with $1 …, $host, $path, $query put in). Answer and deny: status, type and body. */
struct rule_answer {
    uint16_t status;
    struct slice location, type, body; /* in the snapshot or in `a` */
};
void rules_answer(const struct rule_effects *effects, const struct rule_request *request, struct arena *a,
                  struct rule_answer *out);

/* ---- saying which ------------------------------------------------------------------------------ */

/* "larder.yaml:12", or "preset wordpress:3". As long as the snapshot. */
const char *rule_where(const struct config_rule *r);
/* Its `name`, or "" */
const char *rule_name(const struct config_rule *r);
/* One line: "path /static/..: ttl 1d". As long as the snapshot. */
const char *rule_summary(const struct config_rule *r);
const struct config_rule *rules_at(const struct config_site *site, size_t index);
static inline bool rules_matched(const struct rule_effects *e, size_t index)
{
    return (e->matched[index / 64] >> (index % 64) & 1) != 0;
}

/* A preset as YAML: `larder config --preset NAME`; NULL when there is none. Names for messages: NULL-terminated. */
const char *rules_preset_text(struct slice name);
extern const char *const rules_preset_names[];
#endif
