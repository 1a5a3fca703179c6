/* cache/policy.h: the questions of every exchange, answered from plain values: what a request asks for (plan.c), what it is
 * answered with from what is stored (lookup.c), and what an answer may be kept for (judge.c). The event path, `explain`, and the tests of rules in a configuration file
 * ask these same functions. Pure but for the arena they are given; any thread.
 */
#ifndef CACHE_POLICY_H
#define CACHE_POLICY_H
#include "base/verdict.h"
#include "cache/cache.h"
#include "config/rules.h"

/* ---- plan.c: before look-up --------------------------------------------------------------------- */

enum plan_way {
    PLAN_LOOKUP, /* the store first */
    PLAN_PASS,   /* through to the origin, nothing looked up or stored; `why` says why */
    PLAN_LOCAL,  /* a rule answers: redirect, answer, deny (rules_answer) */
    PLAN_BROKEN, /* a rewrite gave no path, or edits gave more fields than fit: 500 */
};

struct plan_request {
    const struct config *config;
    const struct config_site *site;
    struct rule_request rule; /* headers: as they came; method is GET, HEAD or another */
    struct headers *headers;  /* the same list, to be edited */
    uint16_t port;            /* of the authority; 0 when none or the scheme's default */
    bool is_get, is_head;
    bool has_body;
};

struct plan {
    enum plan_way way;
    enum reason why; /* PLAN_PASS: METHOD, BYPASS, BODY, PRECONDITION */
    const struct config_origin *origin;
    struct slice path, query;    /* for the origin: after rewrites */
    struct slice key;            /* canonical; empty when way is PLAN_LOCAL or PLAN_BROKEN */
    struct rule_effects effects; /* only looked at when rules_has_any(site) */
};
/* `buffer` holds the key when it fits, else the arena does. The effects are reset when the site has rules. No allocation when no rule edits anything. */
void cache_plan(const struct plan_request *in, char *buffer, size_t capacity, struct arena *a, struct plan *out);
/* The same with each parameter dropped from the key told to `dropped`: for explain. */
void cache_plan_traced(const struct plan_request *in, char *buffer, size_t capacity, struct arena *a, struct plan *out,
                       rules_dropped_f *dropped, void *arg);

/* ---- lookup.c: what the store has -------------------------------------------------------------- */

enum lookup_way {
    LOOKUP_SERVE,             /* the object as it is */
    LOOKUP_SERVE_AND_REFRESH, /* the same, and a refresh behind it if cache_object_claim_refresh() says so */
    LOOKUP_FETCH,             /* the origin: by a fill, or with OUTCOME_PASS straight through */
    LOOKUP_REVALIDATE,        /* a fill that asks the origin whether the object still holds */
    LOOKUP_GATEWAY_TIMEOUT,   /* 504: only-if-cached */
};
struct lookup_facts {
    enum cache_found found;
    const struct freshness *freshness; /* CACHE_FOUND: of the object, as all below */
    int32_t age_s;    /* cache_object_age_s() */
    bool is_outdated; /* by a soft purge: cache_object_outdated_ms() is not 0 */
    bool is_paused;   /* cache_object_is_paused(): a pause is only begun after a failure in which the object might be served
                         (cache_may_serve_broken) or of a refresh behind the clients */
    bool lacks_part;  /* it is a part (206) without the bytes that are asked for */
    bool is_uncacheable;                 /* the key: cache_is_uncacheable() */
    const struct cache_control *request; /* NULL when clients' directives are not honoured */
};
/* What the request ends in if nothing goes wrong from here on. A variant whose coding the client does not take counts as
 * CACHE_OTHER_VARIANT. For a directory of files the uncacheable memory is not asked: leave is_uncacheable false. */
enum lookup_way cache_lookup_decide(const struct lookup_facts *f, enum outcome *outcome, enum reason *reason);
/* The last check before an encoded body goes out: of a page that varies, never a coding that this client did not ask for. */
bool cache_object_has_coding_for(const struct object_facts *o, const struct headers *request);
/* Of a stored part (206): whether the bytes that a GET asks for are among its own. */
bool cache_object_has_part_for(const struct object_facts *o, const struct headers *request, int64_t now_wall_s);

/* ---- judge.c: once the head is there ------------------------------------------------------------ */

struct judge_request {
    const struct config *config;
    const struct rule_effects *effects; /* with the answer's rules in it; NULL: no rules */
    const struct headers *request, *response;
    uint16_t status;
    bool is_get;       /* GET, or a POST whose answer says that it stands for GET (cache_post_is_get) */
    bool wants_part;   /* the request had a Range that went to the origin */
    struct response_times times;
};

struct judgement {
    enum storable storable;
    struct cache_control request_control; /* not read when clients' directives are ignored */
    struct cache_control response_control; /* of the field that counts */
    enum control_source control_source;
    const char *control_field; /* its name; NULL: nothing counts */
    struct freshness freshness;
    struct validators validators;
    /* Set-Cookie goes to nobody but the one who asked: IGNORE_SET_COOKIE, or private="set-cookie" */
    bool drops_set_cookie;
};
void cache_judge(const struct judge_request *in, struct judgement *out);
/* Where a field of the answer goes. FIELD_NOWHERE: hop-by-hop, nominated by Connection, Age and Content-Length (written
 * anew), Surrogate-Control, tags unless cache.send_tags. FIELD_ONLY_ASKER, not into what is stored (RFC 9111 5.2.2.4,
 * 5.2.2.7): named by private="f" or no-cache="f", Set-Cookie that is ignored. The Content-Range of a 200 says nothing and
 * is stored as any field; who stores a 206 writes that of each part anew. */
enum field_goes { FIELD_STORED, FIELD_ONLY_ASKER, FIELD_NOWHERE };
enum field_goes cache_field_goes(const struct judge_request *in, const struct judgement *j, const struct header *field);

/* ---- ruletest.c: `tests:` of the sites in a configuration ---------------------------------------- */

struct rule_test_result {
    unsigned passed, failed;
};
/* Runs all of them, a line to `out` for each expectation that fails ("larder.yaml:40: test \"login page\": ttl: expected 1d,
 * got 1m (Cache-Control: max-age)"). Counts tests. */
void cache_rule_tests_run(const struct config *c, FILE *out, struct rule_test_result *result);
#endif
