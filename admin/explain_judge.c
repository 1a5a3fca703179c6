/* admin/explain_judge.c: what would become of the origin's answer: whether it would be stored, for
 * how long, by which field; and how a request would then end. See explain.h. */
#include "admin/explain.h"

#include "base/clock.h"

#include <stdlib.h>

/* ---- why not, and what would change it ---------------------------------------------------------
 */

static const char *change_of(enum storable s)
{
    switch (s) {
    case STORABLE_NO_STORE:
    case STORABLE_PRIVATE:
        return "the origin's Cache-Control; or, against its word, a rule with "
               "`cache: { ignore: cache-control, ttl: … }`";
    case STORABLE_AUTHORIZATION:
        return "`public`, `s-maxage` or `must-revalidate` from the origin says that others may "
               "have "
               "it; or a rule with `cache: { ignore: authorization }`";
    case STORABLE_SET_COOKIE:
        return "no Set-Cookie on this answer; or a rule with `cache: { ignore: set-cookie }`, "
               "which stores it without the cookie";
    case STORABLE_STATUS: return "another status: this one is not stored";
    case STORABLE_NO_LIFETIME:
        return "`Cache-Control: max-age=…` from the origin; a rule with `cache: { ttl: … }`; or "
               "cache.default_ttl for this status";
    case STORABLE_VARY_ALL:
        return "a Vary that names fields; or a rule with `cache: { ignore: vary }`";
    case STORABLE_METHOD: return "only answers to GET are stored";
    case STORABLE_PART: return "a strong ETag, so that parts can be told to belong together";
    case STORABLE_RULE: return "the rule that says so";
    case STORABLE_TOO_LARGE: return "a larger cache.max_object";
    case STORABLE_YES:
    case STORABLE_COUNT: break;
    }
    return "";
}

/* ---- the end that it would have -----------------------------------------------------------------
 */

/* As proxy/lookup.c does when the origin fails. */
static bool may_serve_stale(const struct explain *e, enum stale_cause why)
{
    struct cache_control asked;
    bool honours = e->config->honours_client;
    if (!e->stored.is_there || e->verdict.reason == REASON_CLIENT_ASKED)
        return false;
    if (honours)
        cache_control_read_request(&e->request.headers, &asked);
    return cache_may_serve_broken(&e->stored.freshness, e->stored.age_s, why,
                                  honours ? &asked : NULL);
}

static void add_end(json_t *fetch, enum outcome outcome, enum reason reason)
{
    json_object_set_new(fetch, "outcome", json_string(outcome_word(outcome)));
    json_object_set_new(fetch, "reason", json_string(reason_word(reason)));
}

void explain_failed(struct explain *e, json_t *fetch, enum reason why)
{
    const struct explain_verdict *v = &e->verdict;
    json_object_set_new(fetch, "error", json_string(reason_word(why)));
    json_object_set_new(fetch, "why", json_string(reason_text(why)));
    if (!v->asks_origin)
        add_end(fetch, v->outcome, v->reason);
    else
        add_end(fetch, may_serve_stale(e, STALE_UNREACHABLE) ? OUTCOME_STALE : OUTCOME_FAULT, why);
}

/* Of the answer to a fill: what proxy/fetch_fill.c makes of a large one. */
struct large {
    bool is_above_range_whole, is_above_max, is_sliced;
};

static struct large large_of(const struct explain *e, const struct admin_response *r,
                             const struct judgement *j)
{
    const struct config *c = e->config;
    uint64_t most = c->object_max_bytes > 0 ? c->object_max_bytes : c->memory_bytes / 8;
    uint64_t length = r->length_bytes < 0 ? 0 : (uint64_t)r->length_bytes;
    struct large l = { .is_above_range_whole = r->status == 200 && length > c->range_whole_bytes,
                       .is_above_max = length > most };
    l.is_sliced = l.is_above_range_whole && c->slice_bytes > 0 && length > c->slice_bytes &&
                  cache_validators_strongly_equal(&j->validators, &j->validators) &&
                  !headers_has_token(&r->headers, HEADER_ACCEPT_RANGES, SLICE("none")) &&
                  (headers_has(&e->request.headers, HEADER_RANGE) || l.is_above_max);
    return l;
}

static void add_answered_end(struct explain *e, json_t *fetch, uint16_t status,
                             const struct judgement *j, const struct large *large)
{
    const struct explain_verdict *v = &e->verdict;
    bool is_lookup = e->plan.way == PLAN_LOOKUP && v->asks_origin && !e->request.is_head;
    bool is_same = e->stored.is_there && e->stored.etag.len > 0 &&
                   slice_equal(e->stored.etag, j->validators.etag);
    bool is_range = headers_has(&e->request.headers, HEADER_RANGE);
    if (!is_lookup)
        add_end(fetch, v->outcome, v->reason);
    else if (cache_status_is_error(status) && may_serve_stale(e, STALE_ERROR))
        add_end(fetch, OUTCOME_STALE, REASON_ORIGIN_ERROR);
    else if (j->storable != STORABLE_YES)
        add_end(fetch, OUTCOME_PASS,
                v->outcome == OUTCOME_COLLAPSED ? REASON_UNCACHEABLE
                                                : storable_reason(j->storable));
    else if (v->way == LOOKUP_REVALIDATE && is_same)
        add_end(fetch, OUTCOME_REVALIDATED, REASON_VALIDATED);
    else if (is_range && large->is_above_range_whole && !large->is_sliced)
        add_end(fetch, v->outcome, REASON_RANGE); /* and what comes is kept as a part */
    else
        add_end(fetch, v->outcome, v->reason);
}

/* ---- the judgement -----------------------------------------------------------------------------
 */

static void add_fields(struct explain *e, json_t *fetch, const struct judge_request *in,
                       const struct judgement *j)
{
    json_t *fields = json_array(), *dropped = json_array();
    for (unsigned i = 0; i < in->response->count; i++) {
        const struct header *f = &in->response->at[i];
        json_array_append_new(fields,
                              explain_text(arena_printf(&e->arena, SLICE_FMT ": " SLICE_FMT,
                                                        SLICE_ARG(f->name), SLICE_ARG(f->value))));
        if (j->storable == STORABLE_YES && cache_field_goes(in, j, f) != FIELD_STORED)
            json_array_append_new(dropped, explain_text(f->name));
    }
    json_object_set_new(fetch, "fields", fields);
    json_object_set_new(fetch, "fields_not_stored", dropped);
}

static void add_tags(struct explain *e, json_t *fetch, const struct admin_response *r)
{
    struct slice rules =
        rules_has_any(e->site) ? rules_tags(&e->plan.effects, &e->arena) : SLICE_NONE;
    struct slice host = { e->request.host, e->request.host_length };
    struct slice tags = cache_tags_make(&e->arena, &r->headers, host, rules), tag;
    json_t *out = json_array();
    while (cache_tags_next(&tags, &tag))
        if (tag.len > 0 && tag.ptr[0] != '\1')
            json_array_append_new(out, explain_text(tag));
    json_object_set_new(fetch, "tags", out);
}

static void add_lifetime(struct explain *e, json_t *fetch, const struct admin_response *r,
                         const struct judgement *j)
{
    const struct freshness *f = &j->freshness;
    struct explain_clocks clocks = { .freshness = f, .age_s = f->initial_age_s };
    const char *source = j->control_field == NULL ? "" : j->control_field;
    json_object_set_new(fetch, "lifetime_s", json_integer(f->lifetime_s));
    json_object_set_new(fetch, "lifetime_from", json_string(lifetime_word(f->source)));
    json_object_set_new(fetch, "age_s", json_integer(f->initial_age_s));
    json_object_set_new(fetch, "control_from", json_string(source));
    json_object_set_new(fetch, "clocks", explain_clocks(&clocks));
    json_object_set_new(
        fetch, "selecting",
        explain_selecting(cache_vary_make(&e->arena, &r->headers, &e->request.headers)));
    if (f->source == LIFETIME_RULE && e->plan.effects.ttl_by != NULL)
        json_object_set_new(fetch, "lifetime_rule",
                            explain_text(slice_of(rule_where(e->plan.effects.ttl_by))));
}

void explain_judge(struct explain *e, json_t *fetch, const struct admin_response *r,
                   int64_t delay_ms)
{
    bool has_rules = rules_has_any(e->site);
    struct rule_response answer = { r->status, &r->headers };
    if (has_rules)
        rules_on_response(&e->plan_in.rule, &answer, &e->plan.effects);
    struct judge_request in = { .config = e->config,
                                .effects = has_rules ? &e->plan.effects : NULL,
                                .request = &e->request.headers,
                                .response = &r->headers,
                                .status = r->status,
                                .is_get = true,
                                .times = { clock_wall_s(), delay_ms / 1000 } };
    struct judgement j;
    cache_judge(&in, &j);
    struct large large = large_of(e, r, &j);
    if (j.storable == STORABLE_YES && large.is_above_max && !large.is_sliced)
        j.storable = STORABLE_TOO_LARGE;
    bool is_stored = j.storable == STORABLE_YES;
    json_object_set_new(fetch, "status", json_integer(r->status));
    json_object_set_new(fetch, "delay_ms", json_integer(delay_ms));
    json_object_set_new(fetch, "stored", json_boolean(is_stored));
    json_object_set_new(fetch, "storable", json_string(storable_word(j.storable)));
    json_object_set_new(fetch, "why", json_string(storable_text(j.storable)));
    if (!is_stored)
        json_object_set_new(fetch, "change", json_string(change_of(j.storable)));
    if (e->plan.effects.unstored_by != NULL && j.storable == STORABLE_RULE)
        json_object_set_new(fetch, "rule",
                            explain_text(slice_of(rule_where(e->plan.effects.unstored_by))));
    add_fields(e, fetch, &in, &j);
    if (is_stored) {
        add_lifetime(e, fetch, r, &j);
        add_tags(e, fetch, r);
    }
    if (is_stored && large.is_sliced)
        json_object_set_new(fetch, "sliced", json_true());
    add_answered_end(e, fetch, r->status, &j, &large);
}
