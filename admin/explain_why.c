/* admin/explain_why.c: the sentences: why a request now would end so, what its end still depends
 * on, and which field or rule would change it. See explain.h.
 *
 * The words are base/verdict.h's, so that they can be searched for in the access log.
 */
#include "admin/explain.h"

static void say(json_t *lines, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(json_t *lines, const char *format, ...)
{
    char text[768];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_array_append_new(lines, explain_text(slice_of(text)));
}

/* ---- what it depends on -----------------------------------------------------------------------
 */

static bool has_rule_on_answer(const struct explain *e)
{
    return e->plan.way == PLAN_LOOKUP && rules_has_any(e->site) && e->plan.effects.awaits_response;
}

static void add_depends(struct explain *e, json_t *lines)
{
    const struct explain_verdict *v = &e->verdict;
    bool is_directory = e->plan.origin != NULL && e->plan.origin->kind == ORIGIN_FILES;
    if (!v->asks_origin)
        return;
    if (v->way == LOOKUP_REVALIDATE)
        say(lines, "revalidated, if %s",
            is_directory ? "the file has not changed" : "the origin answers 304");
    if (e->plan.way == PLAN_LOOKUP && v->outcome == OUTCOME_MISS && !is_directory)
        say(lines, "pass, if the answer may not be stored (--fetch asks, and says)");
    if (v->outcome == OUTCOME_COLLAPSED)
        say(lines, "pass, if the answer under way cannot be shared");
    if (is_directory)
        say(lines, "local, if there is no such file, or it may not be read");
    else
        say(lines, "fault, if the origin fails%s",
            v->way == LOOKUP_REVALIDATE ? "; or stale, within the times below" : "");
    if (has_rule_on_answer(e))
        say(lines,
            "a rule that waits for the answer's status or fields may change how long it is kept");
}

/* ---- what would change it -------------------------------------------------------------------- */

static const char *where(const struct config_rule *rule)
{
    return rule == NULL ? "a rule" : rule_where(rule);
}

static void change_expired(struct explain *e, json_t *lines)
{
    if (e->plan.effects.ttl_by != NULL)
        say(lines, "the lifetime is the rule's at %s: a longer `ttl` there",
            where(e->plan.effects.ttl_by));
    else
        say(lines, "a longer lifetime: `Cache-Control: max-age=…` from the origin, or a rule "
                   "with `cache: { ttl: … }`");
    say(lines, "`stale-while-revalidate=…` from the origin, or cache.stale_while_revalidate: "
               "answered at once, refreshed behind it");
}

static void change_absent(struct explain *e, json_t *lines)
{
    const struct rule_effects *r = &e->plan.effects;
    if (r->ttl_by != NULL)
        say(lines,
            "the next request fetches it; if the answer may be stored, it is fresh for %d s, by "
            "the rule at %s",
            r->ttl_s, where(r->ttl_by));
    else
        say(lines,
            "the next request fetches it; it is then stored if the answer may be: "
            "`Cache-Control: max-age=…` from the origin, or a rule with `cache: { ttl: … }`");
    if (e->plan.query.ptr != NULL && !e->plan.effects.edits_key)
        say(lines, "each query string is stored on its own: a rule with "
                   "`key: { ignore: [ … ] }` leaves parameters out");
}

static void change_pass(struct explain *e, json_t *lines, enum reason reason)
{
    switch (reason) {
    case REASON_METHOD: say(lines, "only GET and HEAD are answered from the store"); return;
    case REASON_BYPASS:
        say(lines, "the rule at %s says `cache: bypass`", where(e->plan.effects.bypassed_by));
        return;
    case REASON_RULE_NO_STORE:
        say(lines, "the rule at %s says `cache: no_store`", where(e->plan.effects.unstored_by));
        return;
    case REASON_BODY: say(lines, "without a body it would be looked up"); return;
    case REASON_PRECONDITION:
        say(lines, "without If-Match and If-Unmodified-Since it would be looked up");
        return;
    case REASON_UNCACHEABLE:
        say(lines,
            "remembered for %u s at most (cache.remember_uncacheable); --fetch says why "
            "the answer is not stored",
            (e->config->uncacheable_ms + 999) / 1000);
        return;
    default: return;
    }
}

static void change_fresh(struct explain *e, json_t *lines)
{
    say(lines, "`larder purge` drops it; `larder purge --soft` makes it stale");
    if (!e->config->honours_client)
        say(lines, "a client's own Cache-Control changes nothing while "
                   "cache.honour_client_directives is false");
}

static void change_no_site(json_t *lines)
{
    say(lines, "a site with this host in `hosts`, or with \"*\"");
}

static void add_changes(struct explain *e, json_t *lines)
{
    enum reason reason = e->verdict.reason;
    switch (reason) {
    case REASON_FRESH: change_fresh(e, lines); return;
    case REASON_REFRESHING:
    case REASON_EXPIRED: change_expired(e, lines); return;
    case REASON_ABSENT: change_absent(e, lines); return;
    case REASON_PAUSED: say(lines, "the origin's health: status page, `larder stat`"); return;
    case REASON_OUTDATED:
        say(lines, "the next answer takes its place; `stale-while-revalidate` would have "
                   "answered with the old one at once");
        return;
    case REASON_OTHER_VARIANT:
        say(lines, "fewer variants: a rule that sets or removes the selecting field of requests, "
                   "or `cache: { ignore: vary }`");
        return;
    case REASON_MUST_ASK:
        say(lines, "the origin's `no-cache` asks for this; without it, `max-age` counts");
        return;
    case REASON_CLIENT_ASKED:
    case REASON_ONLY_IF_CACHED:
    case REASON_CLIENT_TAKES_STALE:
        say(lines, "cache.honour_client_directives: false would not listen to the client");
        return;
    case REASON_RULE: say(lines, "the rule at %s answers", where(e->plan.effects.ended_by)); return;
    case REASON_RULE_BROKEN:
        say(lines, "the rules above: a rewrite that gives no path, or more fields than fit");
        return;
    case REASON_NO_SITE: change_no_site(lines); return;
    default: change_pass(e, lines, reason); return;
    }
}

void explain_why(struct explain *e)
{
    const struct explain_verdict *v = &e->verdict;
    const char *text = v->sentence != NULL ? v->sentence : reason_text(v->reason);
    json_t *depends = json_array(), *changes = json_array();
    add_depends(e, depends);
    add_changes(e, changes);
    json_t *out = json_pack("{s:s,s:s,s:o,s:o,s:o}", "outcome", outcome_word(v->outcome), "reason",
                            reason_word(v->reason), "sentence", explain_text(slice_of(text)), "or",
                            depends, "change", changes);
    if (v->status != 0)
        json_object_set_new(out, "status", json_integer(v->status));
    json_object_set_new(e->out, "verdict", out);
}
