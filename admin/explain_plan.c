/* admin/explain_plan.c: the site, the rules that match, the way they send the request, its key, and
 * what they change in it. See explain.h. */
#include "admin/explain.h"

#include <stdio.h>
#include <stdlib.h>

static void end(struct explain *e, enum outcome outcome, enum reason reason)
{
    e->verdict = (struct explain_verdict){ .outcome = outcome, .reason = reason };
}

/* ---- the site -------------------------------------------------------------------------------- */

/* Which of the site's patterns brings this host here: itself, else the longest suffix, else "*". */
static const char *pattern_of(const struct config_site *site, struct slice host)
{
    const char *best = "*";
    for (char **p = site->hosts; *p != NULL; p++) {
        struct slice pattern = slice_of(*p);
        if (slice_equal(pattern, host))
            return *p;
        if (pattern.len > 1 && pattern.ptr[0] == '*' &&
            slice_has_suffix(host, (struct slice){ pattern.ptr + 1, pattern.len - 1 }) &&
            pattern.len > strlen(best))
            best = *p;
    }
    return best;
}

static void list_hosts(struct explain *e)
{
    json_t *hosts = json_array();
    for (size_t i = 0; i < e->config->site_count; i++)
        for (char **p = e->config->sites[i].hosts; *p != NULL; p++)
            json_array_append_new(hosts, explain_text(slice_of(*p)));
    json_object_set_new(e->out, "hosts", hosts);
}

bool explain_site(struct explain *e)
{
    const struct admin_request *r = &e->request;
    struct slice host = { r->host, r->host_length };
    e->site = config_site_find(e->config, host);
    if (e->site == NULL) {
        list_hosts(e);
        end(e, OUTCOME_REFUSED, REASON_NO_SITE);
        return false;
    }
    json_object_set_new(e->out, "site",
                        json_pack("{s:o,s:o,s:o}", "name", explain_text(slice_of(e->site->name)),
                                  "pattern", explain_text(slice_of(pattern_of(e->site, host))),
                                  "origin", explain_text(slice_of(e->site->origin->name))));
    if (!r->is_answered)
        return true;
    e->verdict = (struct explain_verdict){
        .outcome = r->outcome, .reason = r->reason, .sentence = r->why, .status = r->status
    };
    return false;
}

/* ---- the rules ------------------------------------------------------------------------------- */

static json_t *rule_json(const struct config_rule *rule)
{
    return json_pack("{s:o,s:o,s:o}", "where", explain_text(slice_of(rule_where(rule))), "name",
                     explain_text(slice_of(rule_name(rule))), "summary",
                     explain_text(slice_of(rule_summary(rule))));
}

static void add_rules(struct explain *e)
{
    json_t *rules = json_array();
    for (size_t i = 0; i < e->site->rule_count; i++)
        if (rules_matched(&e->plan.effects, i))
            json_array_append_new(rules, rule_json(rules_at(e->site, i)));
    json_object_set_new(e->out, "rules", rules);
}

/* ---- what they change in the request ----------------------------------------------------------
 */

/* All values of a name, as one; ptr NULL: there is none. */
static struct slice values_of(struct explain *e, const struct headers *h, struct slice name)
{
    struct slice all = SLICE_NONE;
    for (int i = headers_find_name(h, name, 0); i >= 0; i = headers_find_name(h, name, i + 1))
        all = all.ptr == NULL ? arena_copy(&e->arena, h->at[i].value)
                              : arena_printf(&e->arena, SLICE_FMT ", " SLICE_FMT, SLICE_ARG(all),
                                             SLICE_ARG(h->at[i].value));
    if (all.ptr == NULL && headers_find_name(h, name, 0) >= 0)
        all.ptr = "";
    return all;
}

static json_t *value_json(struct slice value)
{
    return value.ptr == NULL ? json_null() : explain_text(value);
}

/* Fields of `these` whose values before and after differ; those that `seen` has too were told. */
static void add_differences(struct explain *e, json_t *edits, const struct headers *these,
                            const struct headers *seen)
{
    for (unsigned i = 0; i < these->count; i++) {
        struct slice name = these->at[i].name;
        bool is_repeat = headers_find_name(these, name, 0) != (int)i;
        if (is_repeat || (seen != NULL && headers_find_name(seen, name, 0) >= 0))
            continue;
        struct slice before = values_of(e, &e->sent, name),
                     after = values_of(e, &e->request.headers, name);
        if ((before.ptr == NULL) == (after.ptr == NULL) && slice_equal(before, after))
            continue;
        json_array_append_new(edits,
                              json_pack("{s:o,s:o,s:o}", "field", explain_text(name), "before",
                                        value_json(before), "after", value_json(after)));
    }
}

static struct slice target_of(struct explain *e, struct slice path, struct slice query)
{
    if (query.ptr == NULL)
        return path;
    return arena_printf(&e->arena, SLICE_FMT "?" SLICE_FMT, SLICE_ARG(path), SLICE_ARG(query));
}

static void add_edits(struct explain *e)
{
    json_t *edits = json_array();
    struct slice before = target_of(e, e->request.path, e->request.query),
                 after = target_of(e, e->plan.path, e->plan.query);
    add_differences(e, edits, &e->sent, NULL);
    add_differences(e, edits, &e->request.headers, &e->sent);
    json_object_set_new(e->out, "request_edits", edits);
    if ((e->plan.way == PLAN_LOOKUP || e->plan.way == PLAN_PASS) && !slice_equal(before, after))
        json_object_set_new(e->out, "rewritten", explain_text(after));
    if (e->plan.effects.edits_response) {
        json_t *lines = json_array();
        struct slice rest = rules_response_lines(&e->plan.effects, &e->arena);
        while (rest.len > 0) {
            size_t length = slice_find(rest, '\r');
            json_array_append_new(lines, explain_text((struct slice){ rest.ptr, length }));
            size_t taken = length + 2 < rest.len ? length + 2 : rest.len;
            rest = (struct slice){ rest.ptr + taken, rest.len - taken };
        }
        json_object_set_new(e->out, "response_fields", lines);
    }
}

/* ---- the key --------------------------------------------------------------------------------- */

static void on_dropped(void *arg, struct slice parameter, const struct config_rule *by)
{
    json_array_append_new(
        arg, json_pack("{s:o,s:o}", "parameter", explain_text(parameter), "by",
                       by == NULL ? json_null() : explain_text(slice_of(rule_where(by)))));
}

/* "site NUL host/path?query", with an extra of fields and cookies "NUL name=value NUL …". */
static json_t *key_json(struct slice key)
{
    size_t n = slice_find(key, '\0');
    struct slice site = { key.ptr, n },
                 rest =
                     n < key.len ? (struct slice){ key.ptr + n + 1, key.len - n - 1 } : SLICE_NONE;
    n = slice_find(rest, '\0');
    struct slice url = { rest.ptr, n },
                 extra = n < rest.len ? (struct slice){ rest.ptr + n + 1, rest.len - n - 1 }
                                      : SLICE_NONE;
    return json_pack("{s:o,s:o,s:o}", "site", explain_text(site), "url", explain_text(url), "extra",
                     explain_list(extra));
}

static void add_key(struct explain *e, json_t *dropped)
{
    if (e->plan.key.len == 0) {
        json_decref(dropped);
        return;
    }
    json_object_set_new(e->out, "key", key_json(e->plan.key));
    json_object_set_new(e->out, "dropped_from_key", dropped);
    e->key = cache_key_of(e->context->hooks.cache, e->plan.key);
}

/* ---- the way --------------------------------------------------------------------------------- */

static void make_plan(struct explain *e, json_t *dropped)
{
    const struct admin_request *r = &e->request;
    e->plan_in = (struct plan_request){
        .config = e->config,
        .site = e->site,
        .rule = { .method = r->method,
                  .scheme = e->scheme,
                  .host = { r->host, r->host_length },
                  .path = r->path,
                  .query = r->query,
                  .headers = &e->request.headers,
                  .client = e->question.has_client ? &e->client : NULL },
        .headers = &e->request.headers,
        .port = r->port,
        .is_get = r->is_get,
        .is_head = r->is_head,
        .has_body = r->has_body,
    };
    cache_plan_traced(&e->plan_in, e->key_buffer, sizeof e->key_buffer, &e->arena, &e->plan,
                      on_dropped, dropped);
}

static void end_by_rule(struct explain *e)
{
    struct rule_answer answer = { 0 };
    end(e, OUTCOME_LOCAL, REASON_RULE);
    rules_answer(&e->plan.effects, &e->plan_in.rule, &e->arena, &answer);
    e->verdict.status = answer.status;
    json_t *out =
        json_pack("{s:i,s:I}", "status", (int)answer.status, "bytes", (json_int_t)answer.body.len);
    if (answer.location.len > 0)
        json_object_set_new(out, "location", explain_text(answer.location));
    if (answer.type.len > 0)
        json_object_set_new(out, "type", explain_text(answer.type));
    json_object_set_new(e->out, "answer", out);
}

/* False when no look-up follows. */
static bool follow_plan(struct explain *e)
{
    switch (e->plan.way) {
    case PLAN_LOOKUP: return true;
    case PLAN_BROKEN:
        end(e, OUTCOME_LOCAL, REASON_RULE_BROKEN);
        e->verdict.status = 500;
        return false;
    case PLAN_LOCAL: end_by_rule(e); return false;
    case PLAN_PASS: break;
    }
    end(e, OUTCOME_PASS, e->plan.why);
    e->verdict.asks_origin = true;
    if (e->plan.origin->kind != ORIGIN_FILES || e->plan.why != REASON_METHOD)
        return false;
    e->verdict = (struct explain_verdict){ .outcome = OUTCOME_LOCAL,
                                           .reason = REASON_ANSWERED,
                                           .status = 405,
                                           .sentence = "a directory of files answers GET and HEAD "
                                                       "only" };
    return false;
}

static bool may_purge(const struct explain *e)
{
    struct network n;
    for (char **p = e->config->purge_from; e->question.has_client && p != NULL && *p != NULL; p++)
        if (network_parse(*p, &n) && network_has(&n, &e->client))
            return true;
    return false;
}

static bool is_purge(struct explain *e)
{
    if (!e->request.is_purge)
        return false;
    end(e, OUTCOME_LOCAL, REASON_ANSWERED);
    e->verdict.status = 405;
    e->verdict.sentence = "PURGE is for the networks of cache.purge_from only";
    if (may_purge(e))
        e->verdict =
            (struct explain_verdict){ .outcome = OUTCOME_LOCAL, .reason = REASON_PURGE_ASKED };
    return true;
}

bool explain_plan(struct explain *e)
{
    static const char *const ways[] = { "lookup", "pass", "local", "broken" };
    if (is_purge(e))
        return false;
    json_t *dropped = json_array();
    make_plan(e, dropped);
    json_t *plan = json_pack("{s:s}", "way", ways[e->plan.way]);
    if (e->plan.way == PLAN_PASS)
        json_object_set_new(plan, "reason", json_string(reason_word(e->plan.why)));
    if (e->plan.way == PLAN_PASS || e->plan.way == PLAN_LOOKUP)
        json_object_set_new(plan, "origin", explain_text(slice_of(e->plan.origin->name)));
    json_object_set_new(e->out, "plan", plan);
    add_key(e, dropped);
    if (rules_has_any(e->site)) {
        add_rules(e);
        add_edits(e);
    }
    return follow_plan(e);
}
