/* cache/judge.c: what an answer may be kept for, once its head is there: reads the field that
 * counts, lets the rules have their say, and asks freshness.c and storable.c; see policy.h. Pure;
 * any thread.
 */
#include "cache/directives.h"
#include "cache/policy.h"

static int32_t seconds(uint32_t s)
{
    return s > CONTROL_MAX_S ? CONTROL_MAX_S : (int32_t)s;
}

static uint32_t ignores(const struct judge_request *in)
{
    return in->effects == NULL ? 0 : in->effects->ignores;
}

/* ---- what is said ---------------------------------------------------------------------------- */

static void read_controls(const struct judge_request *in, struct judgement *out)
{
    if (in->config->honours_client)
        cache_control_read_request(in->request, &out->request_control);
    if (ignores(in) & IGNORE_CACHE_CONTROL) {
        cache_control_clear(&out->response_control);
        out->control_source = CONTROL_FROM_NOTHING;
        return;
    }
    cache_control_read_response(in->response, (const char *const *)in->config->targeted,
                                &out->response_control, &out->control_source, &out->control_field);
}

/* ---- for how long ---------------------------------------------------------------------------- */

static int32_t default_ttl(const struct judge_request *in)
{
    const struct rule_effects *e = in->effects;
    if (e != NULL && (e->has_default_ttls || e->default_ttl_s != RULE_UNSET)) {
        int32_t by_rule = rules_default_ttl(e, in->status);
        if (by_rule != RULE_UNSET)
            return by_rule;
    }
    const struct config *c = in->config;
    for (size_t i = 0; i < c->ttl_count; i++)
        if (c->ttls[i].status == in->status)
            return seconds(c->ttls[i].ttl_s);
    return CONTROL_NONE;
}

static int32_t by_rule_or(int32_t by_rule, int32_t otherwise)
{
    return by_rule == RULE_UNSET ? otherwise : by_rule;
}

/* A rule's stale_… are said for these very pages, and count although the origin forbids stale
 * answers. The configuration's, said for all pages at once, never do: no price is old because of a
 * default. */
static void set_windows(const struct judge_request *in, const struct cache_control *control,
                        struct freshness_policy *p)
{
    const struct config *c = in->config;
    const struct rule_effects *e = in->effects;
    bool is_forbidden = cache_control_forbids_stale(control);
    p->stale_while_revalidate_s = is_forbidden ? 0 : seconds(c->stale_while_revalidate_s);
    p->stale_if_error_s = is_forbidden ? 0 : seconds(c->stale_if_error_s);
    p->stale_if_unreachable_s = is_forbidden ? 0 : seconds(c->stale_if_unreachable_s);
    p->keep_s = c->keep_s == 0 ? CONTROL_MAX_S : seconds(c->keep_s);
    if (e == NULL)
        return;
    p->stale_while_revalidate_s =
        by_rule_or(e->stale_while_revalidate_s, p->stale_while_revalidate_s);
    p->stale_if_error_s = by_rule_or(e->stale_if_error_s, p->stale_if_error_s);
    p->keep_s = by_rule_or(e->keep_s, p->keep_s);
    p->overrides_revalidate =
        e->stale_while_revalidate_s != RULE_UNSET || e->stale_if_error_s != RULE_UNSET;
}

static void read_freshness(const struct judge_request *in, struct judgement *out)
{
    const struct config *c = in->config;
    const struct rule_effects *e = in->effects;
    struct freshness_policy policy = {
        .has_heuristic = c->has_heuristic,
        .heuristic_max_s = seconds(c->heuristic_max_s),
        .default_ttl_s = default_ttl(in),
        .has_ttl = e != NULL && e->ttl_s != RULE_UNSET,
        .ttl_s = e == NULL ? 0 : e->ttl_s,
        .ignores_origin = (ignores(in) & IGNORE_CACHE_CONTROL) != 0,
        .ignores_expires = out->control_source == CONTROL_FROM_TARGETED ||
                           out->control_source == CONTROL_FROM_SURROGATE,
    };
    set_windows(in, &out->response_control, &policy);
    cache_freshness_read(in->response, in->status, &out->response_control, &in->times, &policy,
                         &out->freshness);
}

/* ---- whether at all -------------------------------------------------------------------------- */

/* private="…" or no-cache="…" of the field that counts. */
static bool is_named(const struct judge_request *in, const struct judgement *j, struct slice field)
{
    if (!j->response_control.names_private && !j->response_control.names_no_cache)
        return false;
    if (j->control_source == CONTROL_FROM_TARGETED)
        return cache_targeted_names(in->response, j->control_field, field);
    return cache_control_names(in->response, field);
}

static enum storable judge_storable(const struct judge_request *in, const struct judgement *j)
{
    const struct storable_facts facts = {
        .request = in->request,
        .response = in->response,
        .request_control = in->config->honours_client ? &j->request_control : NULL,
        .response_control = &j->response_control,
        .freshness = &j->freshness,
        .status = in->status,
        .is_get = in->is_get,
        .shares_set_cookie = in->config->shares_set_cookie,
        .ignores_set_cookie = j->drops_set_cookie,
        .ignores_authorization = (ignores(in) & IGNORE_AUTHORIZATION) != 0,
        .ignores_vary = (ignores(in) & IGNORE_VARY) != 0,
        .wants_part = in->wants_part,
        .validators = &j->validators,
    };
    const struct rule_effects *e = in->effects;
    if (e != NULL && (e->bypassed_by != NULL || e->unstored_by != NULL))
        return STORABLE_RULE;
    return cache_is_storable(&facts);
}

void cache_judge(const struct judge_request *in, struct judgement *out)
{
    *out = (struct judgement){ 0 };
    cache_control_clear(&out->request_control);
    read_controls(in, out);
    read_freshness(in, out);
    cache_validators_read(in->response, in->times.now_wall_s, &out->validators);
    out->drops_set_cookie =
        (ignores(in) & IGNORE_SET_COOKIE) || is_named(in, out, header_name(HEADER_SET_COOKIE));
    out->storable = judge_storable(in, out);
}

/* ---- which fields ---------------------------------------------------------------------------- */

/* Fields that end here, or that are written anew for each answer. */
static bool ends_here(const struct judge_request *in, const struct header *f)
{
    switch (f->id) {
    case HEADER_AGE:
    case HEADER_CONTENT_LENGTH:
    case HEADER_SURROGATE_CONTROL: return true;
    default: break;
    }
    if (header_is_hop_by_hop(f->id) || headers_is_nominated(in->response, f->name))
        return true; /* RFC 9110 7.6.1 */
    return !in->config->sends_tags && cache_is_tag_field(f->name);
}

enum field_goes cache_field_goes(const struct judge_request *in, const struct judgement *j,
                                 const struct header *f)
{
    if (ends_here(in, f))
        return FIELD_NOWHERE;
    if (f->id == HEADER_SET_COOKIE && j->drops_set_cookie)
        return FIELD_ONLY_ASKER;
    return is_named(in, j, f->name) ? FIELD_ONLY_ASKER : FIELD_STORED;
}
