/* cache/policy.h: the two questions of every exchange, answered from plain values: what a request asks for (plan.c), and
 * what an answer may be kept for (judge.c). The event path, `explain`, and the tests of rules in a configuration file
 * ask these same functions. Pure but for the arena they are given; any thread.
 */
#ifndef CACHE_POLICY_H
#define CACHE_POLICY_H
#include "base/verdict.h"
#include "cache/decide.h"
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
/* `buffer` holds the key when it fits, else the arena does. The effects are reset. No allocation when no rule edits anything. */
void cache_plan(const struct plan_request *in, char *buffer, size_t capacity, struct arena *a, struct plan *out);
/* The same with each parameter dropped from the key told to `dropped`: for explain. */
void cache_plan_traced(const struct plan_request *in, char *buffer, size_t capacity, struct arena *a, struct plan *out,
                       rules_dropped_f *dropped, void *arg);

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
    struct freshness freshness;
    struct validators validators;
    /* what must not reach anybody but the one who asked: fields named by private="f" and no-cache="f", Set-Cookie under
     * IGNORE_SET_COOKIE */
    bool drops_set_cookie;
};
void cache_judge(const struct judge_request *in, struct judgement *out);
/* Whether a field of the answer is left out of what is stored (RFC 9111 3.1, 5.2.2.4, 5.2.2.7): hop-by-hop, nominated,
 * named by a qualified directive, Set-Cookie that is ignored, tags and Surrogate-Control unless configured. `for_store`
 * false: for the one who asked (only what never leaves us). */
enum field_goes { FIELD_STORED, FIELD_ONLY_ASKER, FIELD_NOWHERE };
enum field_goes cache_field_goes(const struct judge_request *in, const struct judgement *j, const struct header *field);

/* ---- ruletest.c: `tests:` of the sites in a configuration ---------------------------------------- */

struct rule_test_result {
    unsigned passed, failed;
};
/* Runs all of them, a line to `out` for each that fails ("larder.yaml:40: test 3: expected ttl 1d, got 60 s: …"). */
void cache_rule_tests_run(const struct config *c, FILE *out, struct rule_test_result *result);
#endif
