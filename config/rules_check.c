/* config/rules_check.c: what no text of a rule can know alone: what excludes
 * each other, what cannot come about, what must not be touched; and what is
 * allowed but should be said aloud. One thread, within a load.
 */
#include "config/config_internal.h"
#include "config/rules_internal.h"

enum { LOUD_TTL_S = 30 * 86400 };

struct checking {
    struct config_loader *l;
    struct config_rule *r;
    const struct config_place *at; /* of the whole rule */
    bool is_sound;                 /* no mistake in it so far: what is missing is one of its own */
};

/* Where the item was given, or the rule itself. */
static struct config_place place_of(const struct checking *c, const void *field)
{
    const struct config_place *found = config_place_find(c->l, field);
    return found != NULL ? *found : *c->at;
}

static void mistake(const struct checking *c, const void *field, const char *sentence)
{
    struct config_place at = place_of(c, field);
    config_mistake(c->l, &at, "%s", sentence);
}

/* ---- what goes together ---------------------------------------------------------------------- */

static void check_ends(const struct checking *c)
{
    const struct config_rule *r = c->r;
    bool answers = r->answer.status != RULE_NOT_GIVEN || r->answer.body != NULL;
    bool redirects = r->redirect.to != NULL, denies = r->deny != RULE_NOT_GIVEN;
    if (redirects + answers + denies > 1)
        mistake(c, c->r,
                "has more than one of redirect, answer and deny; each is all of an "
                "answer");
    if (!redirects && r->redirect.status != RULE_NOT_GIVEN)
        mistake(c, &r->redirect.status, "has no redirect.to that it goes with");
    if (!answers && r->answer.type != NULL)
        mistake(c, &r->answer.type, "has no answer.body that it goes with");
    uint32_t status = r->answer.status;
    if (r->answer.body != NULL && (status == 204 || status == 205 || status == 304))
        mistake(c, &r->answer.body, "goes with a status that has no body");
    uint32_t to = r->redirect.status;
    if (to != RULE_NOT_GIVEN && to >= 304 && to <= 306)
        mistake(c, &r->redirect.status, "is no redirect; allowed: 301, 302, 303, 307 or 308");
}

/* Behind redirect, answer and deny there is nothing that the rest could change.
 */
static void check_idle(const struct checking *c)
{
    const struct config_rule *r = c->r;
    uint32_t idle = r->does & ~(uint32_t)RULE_DOES_RESPONSE;
    bool bypasses = r->cache.word == RULE_CACHE_BYPASS;
    if (r->end != RULE_GO_ON && idle != 0)
        mistake(c, r,
                "redirect, answer and deny answer at once: beside them only "
                "response and stop have an effect");
    if (bypasses && (r->does & (RULE_DOES_KEY | RULE_DOES_TAGS)) != 0)
        mistake(c, &r->cache.word, "bypass stores nothing: key and tags have no effect beside it");
    if (r->cache.word == RULE_CACHE_NO_STORE && (r->does & RULE_DOES_TAGS) != 0)
        mistake(c, &r->cache.word, "no_store stores nothing: tags have no effect beside it");
}

/* What was asked is past when the answer is there. */
static void check_phase(const struct checking *c)
{
    const struct config_rule *r = c->r;
    const uint32_t fitting =
        RULE_DOES_CACHE | RULE_DOES_DEFAULT_TTLS | RULE_DOES_TAGS | RULE_DOES_RESPONSE;
    const struct rule_match *no = r->match.opposite;
    if (no != NULL && !no->asks_request && !no->asks_response && c->is_sound)
        mistake(c, no, "is empty: nothing is what it does not match");
    if (no != NULL && no->asks_request && no->asks_response)
        mistake(c, no,
                "mixes what the request says with what the answer says; make it "
                "two rules");
    if (!r->awaits_response)
        return;
    if (r->end != RULE_GO_ON || (r->does & ~fitting) != 0)
        mistake(c, r,
                "has a condition on the answer: it can only have cache, tags, "
                "response and stop");
    if (r->cache.word == RULE_CACHE_BYPASS)
        mistake(c, &r->cache.word,
                "comes too late with a condition on the answer; no_store is in time");
}

static bool has_capture(const struct rule_template *t)
{
    return t->part_count > 0 && t->has_captures;
}

/* $N that nothing fills would silently be empty. */
static void check_captures(const struct checking *c, const struct rule_template *t,
                           const void *field, const struct rule_regex *own)
{
    const struct rule_match *m = &c->r->match;
    struct config_place at = place_of(c, field);
    if (!has_capture(t))
        return;
    if (own == NULL && m->regex_count == 0) {
        config_mistake(c->l, &at, "has $%u, and the rule has no path_regex to fill it",
                       t->capture_max);
        return;
    }
    unsigned most = own == NULL ? UINT32_MAX : rule_regex_capture_count(own);
    for (size_t i = 0; i < m->regex_count && own == NULL; i++) {
        unsigned count = rule_regex_capture_count(m->regexes[i]);
        most = count < most ? count : most;
    }
    if (t->capture_max > most)
        config_mistake(c->l, &at, "has $%u, and the regular expression has %u group%s",
                       t->capture_max, most, most == 1 ? "" : "s");
}

static void check_templates(const struct checking *c)
{
    const struct config_rule *r = c->r;
    check_captures(c, &r->redirect_to, &r->redirect.to, NULL);
    check_captures(c, &r->rewrite_path, &r->rewrite.path, r->rewrite_regex);
    check_captures(c, &r->rewrite_query, &r->rewrite.query, r->rewrite_regex);
    for (size_t i = 0; i < r->tag_count; i++)
        check_captures(c, &r->tag_templates[i], r->tags[i], NULL);
    for (size_t i = 0; i < r->request.set.count; i++)
        check_captures(c, &r->request.set_values[i], r->request.set.rows[i].name, NULL);
    for (size_t i = 0; i < r->request.append.count; i++)
        check_captures(c, &r->request.append_values[i], r->request.append.rows[i].name, NULL);
}

static bool is_target(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~')
            return false;
    return true;
}

static void check_rewrite(const struct checking *c)
{
    const struct config_rule *r = c->r;
    struct slice path = r->rewrite_path.text, query = r->rewrite_query.text;
    struct slice first = rule_template_first(&r->rewrite_path);
    if (r->rewrite.regex != NULL && r->rewrite.path == NULL && r->rewrite.query == NULL)
        mistake(c, &r->rewrite.regex, "has neither path nor query to go with it");
    if (r->rewrite.path != NULL && (path.len == 0 || (path.ptr[0] != '/' && first.len > 0)))
        mistake(c, &r->rewrite.path, "does not begin with /");
    else if (slice_find(path, '?') < path.len || slice_find(path, '#') < path.len ||
             !is_target(path))
        mistake(c, &r->rewrite.path,
                "has a ?, a #, a space or a character beyond ASCII; a query has "
                "its own item");
    if (slice_find(query, '#') < query.len || !is_target(query))
        mistake(c, &r->rewrite.query, "has a #, a space or a character beyond ASCII");
    if (query.len > 0 && query.ptr[0] == '?')
        mistake(c, &r->rewrite.query, "begins with the ?, which is put there by itself");
}

static void check_redirect(const struct checking *c)
{
    struct slice to = c->r->redirect_to.text, first = rule_template_first(&c->r->redirect_to);
    if (c->r->redirect.to == NULL)
        return;
    if (to.len == 0 || !is_target(to))
        mistake(c, &c->r->redirect.to, "is empty or has a space or a character beyond ASCII");
    else if (first.len > 0 && first.ptr[0] != '/' &&
             !slice_has_prefix_nocase(first, SLICE("http://")) &&
             !slice_has_prefix_nocase(first, SLICE("https://")))
        mistake(c, &c->r->redirect.to, "begins with neither https://, http://, / nor a variable");
}

static void check_case(const struct checking *c, const struct rule_match *m)
{
    if (m == NULL)
        return;
    if (m->ignores_case && m->path_count + m->regex_count == 0 && c->r->rewrite.regex == NULL)
        mistake(c, &m->ignores_case, "has no path or path_regex that it goes with");
    check_case(c, m->opposite);
}

static void check_cache(const struct checking *c)
{
    const struct config_rule *r = c->r;
    if (r->cache.grace_s != RULE_NOT_GIVEN && r->cache.stale_while_revalidate_s != RULE_NOT_GIVEN &&
        r->cache.stale_if_error_s != RULE_NOT_GIVEN)
        mistake(c, &r->cache.grace_s,
                "sets stale_while_revalidate and stale_if_error, which are both given");
    if (r->cookies.drop != NULL && r->cookies.keep != NULL)
        mistake(c, &r->cookies.keep, "is all that is left; drop has no effect beside it");
}

/* ---- fields that are not a rule's to touch --------------------------------------------------- */

bool rule_field_is_ours(enum header_id id, bool in_request)
{
    if (header_is_hop_by_hop(id) || id == HEADER_CONTENT_LENGTH || id == HEADER_VIA)
        return true;
    switch (id) {
    case HEADER_HOST:
    case HEADER_EXPECT:
    case HEADER_FORWARDED:
    case HEADER_X_FORWARDED_FOR:
    case HEADER_X_FORWARDED_HOST:
    case HEADER_X_FORWARDED_PROTO: return in_request;
    case HEADER_AGE:
    case HEADER_DATE:
    case HEADER_CACHE_STATUS:
    case HEADER_CONTENT_RANGE:
    case HEADER_CONTENT_ENCODING: return !in_request;
    default: return false;
    }
}

/* May go, but not be made up: Larder has read them by then, or would answer
 * what nobody asked. */
static bool is_condition(enum header_id id)
{
    return id == HEADER_RANGE || id == HEADER_IF_RANGE || id == HEADER_IF_MATCH ||
           id == HEADER_IF_NONE_MATCH || id == HEADER_IF_MODIFIED_SINCE ||
           id == HEADER_IF_UNMODIFIED_SINCE;
}

static void check_fields(const struct checking *c, const struct rule_fields *list, bool in_request)
{
    for (size_t i = 0; i < list->count; i++) {
        enum header_id id = header_id_of(slice_of(list->rows[i].name));
        struct config_place at = place_of(c, list->rows[i].name);
        if (id == HEADER_HOST && in_request)
            config_mistake(c->l, &at,
                           "is not a rule's to set; the Host that servers are sent "
                           "is origins.NAME.host");
        else if (rule_field_is_ours(id, in_request) || (in_request && is_condition(id)))
            config_mistake(c->l, &at, "is not a rule's to set: Larder itself writes or reads it");
    }
}

static void check_removes(const struct checking *c, char *const *names, bool in_request)
{
    for (; names != NULL && *names != NULL; names++)
        if (rule_field_is_ours(header_id_of(slice_of(*names)), in_request))
            mistake(c, *names, "is not a rule's to remove: Larder itself writes it");
}

/* ---- one rule -------------------------------------------------------------------------------- */

static void warn_ignores(const struct checking *c)
{
    static const struct {
        uint32_t bit;
        const char *sentence;
    } rows[] = {
        { IGNORE_CACHE_CONTROL, "cache-control: what the origin marks private, "
                                "no-store or no-cache is stored and "
                                "given to everybody, as long as the rules say" },
        { IGNORE_SET_COOKIE, "set-cookie: answers that set cookies are stored, "
                             "without the cookie: who is answered "
                             "from the store starts no session" },
        { IGNORE_VARY, "vary: one stored answer is given to all, whatever their "
                       "language, encoding or device" },
        { IGNORE_AUTHORIZATION, "authorization: what one user was shown after a "
                                "login is given to everybody" },
    };
    struct config_place at = place_of(c, &c->r->cache.ignore);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        if ((c->r->ignores & rows[i].bit) != 0)
            config_warn(c->l, &at, "ignores %s", rows[i].sentence);
    at = place_of(c, &c->r->cache.ttl_s);
    if (c->r->cache.ttl_s != RULE_NOT_GIVEN && c->r->cache.ttl_s > LOUD_TTL_S)
        config_warn(c->l, &at,
                    "keeps answers for more than 30 days whatever the origin says; "
                    "only a purge gets a "
                    "wrong one out");
}

void config_rule_check(struct config_loader *l, struct config_rule *r,
                       const struct config_place *at, size_t first_mistake)
{
    struct checking c = { l, r, at, .is_sound = l->mistake_count == first_mistake };
    check_ends(&c);
    check_idle(&c);
    check_phase(&c);
    check_case(&c, &r->match);
    check_templates(&c);
    check_rewrite(&c);
    check_redirect(&c);
    check_cache(&c);
    check_fields(&c, &r->request.set, true);
    check_fields(&c, &r->request.append, true);
    check_fields(&c, &r->response.set, false);
    check_fields(&c, &r->response.append, false);
    check_removes(&c, r->request.remove, true);
    check_removes(&c, r->response.remove, false);
    if (c.is_sound && r->does == 0 && r->end == RULE_GO_ON && !r->stops && r->rewrite.regex == NULL)
        mistake(&c, r,
                "does nothing: it has no cache, key, cookies, request, response, "
                "redirect, answer, deny, "
                "origin, rewrite, tags or stop");
    if (!slice_has_prefix(slice_of(r->where), SLICE("preset "))) /* their manual says it */
        warn_ignores(&c);
}

/* ---- the rules of a site --------------------------------------------------------------------- */

static bool has_conditions(const struct config_rule *r)
{
    return r->match.asks_request || r->awaits_response || r->match.opposite != NULL;
}

static bool serves(const struct config_site *s, struct slice host)
{
    for (char **own = s->hosts; own != NULL && *own != NULL; own++) {
        struct slice name = slice_of(*own);
        bool is_below = slice_has_prefix(name, SLICE("*.")) && host.len > name.len - 1 &&
                        slice_has_suffix(host, (struct slice){ name.ptr + 1, name.len - 1 });
        if (slice_equal(name, SLICE("*")) || slice_equal(name, host) || is_below)
            return true;
    }
    return false;
}

static void check_hosts(struct config_loader *l, const struct config_site *s,
                        const struct config_rule *r)
{
    for (size_t i = 0; i < r->match.host_count; i++) {
        const struct rule_glob *g = &r->match.hosts[i];
        if (!rule_glob_is_literal(g) || serves(s, g->prefix))
            continue;
        struct config_place at = config_place_or(l, r->match.host[i], "sites");
        config_mistake(l, &at, "%s can never match: the site does not have that host",
                       config_shown(l, slice_of(r->match.host[i])));
    }
}

static void check_names(struct config_loader *l, const struct config_site *s, size_t index)
{
    const struct config_rule *r = &s->rules[index];
    for (size_t i = 0; i < index && r->name != NULL; i++)
        if (s->rules[i].name != NULL && strcmp(s->rules[i].name, r->name) == 0) {
            struct config_place at = l->places[r->place - 1];
            config_mistake(l, &at, "has the name %s, which the rule at %s has already",
                           config_shown(l, slice_of(r->name)), s->rules[i].where);
            return;
        }
}

void config_site_rules_check(struct config_loader *l, struct config_site *s)
{
    const struct config_rule *last = NULL; /* one that ends the walk for every request */
    for (size_t i = 0; i < s->rule_count; i++) {
        struct config_rule *r = &s->rules[i];
        struct config_place at = l->places[r->place - 1];
        if (r->origin_place != 0)
            config_origin_resolve(l, r->origin_place - 1, &r->origin);
        if (r->preset != NULL)
            continue;
        if (last != NULL)
            config_mistake(l, &at,
                           "never gets its turn: the rule at %s ends the walk for every request",
                           last->where);
        check_hosts(l, s, r);
        check_names(l, s, i);
        bool ends = r->stops || r->end != RULE_GO_ON;
        if (last == NULL && ends && !has_conditions(r) && l->mistake_count == 0)
            last = r;
    }
    config_rules_open_gates(l, s);
}
