/* config/rules_match.c: which rules match, and the sum of what they say. On the
 * hit path: no allocation but for paths and values that are long and oddly
 * spelt; see rules.h. Any thread.
 *
 * For each rule a gate is tried first, a few nanoseconds each (struct
 * rule_gate): most rules end there. What passes is looked at in full, cheap
 * conditions before dear ones.
 */
#include "config/rules_internal.h"

#include "base/log.h"

/* ---- conditions ------------------------------------------------------------------------------ */

static bool value_fits(const struct rule_condition *c, struct slice value, struct rule_view *v)
{
    switch (c->kind) {
    case CONDITION_PRESENT:
    case CONDITION_ABSENT: return true;
    case CONDITION_GLOBS:
        for (size_t i = 0; i < c->glob_count; i++)
            if (rule_glob_matches(&c->globs[i], value))
                return true;
        return false;
    case CONDITION_REGEX: {
        enum regex_result result = rule_regex_match(c->regex, value, NULL);
        v->has_broken = v->has_broken || result == REGEX_LIMIT;
        return result == REGEX_YES;
    }
    }
    UNREACHABLE();
}

/* A cookie or parameter; `decodes`: its value is percent-encoded. */
static bool entry_fits(const struct rule_condition *c, const struct view_entry *entry, bool decodes,
                       struct rule_view *v)
{
    if (((entry->first ^ c->first) & c->first_mask) != 0 ||
        !rule_glob_matches(&c->name_glob, entry->name))
        return false;
    if (!decodes || c->kind == CONDITION_PRESENT || c->kind == CONDITION_ABSENT)
        return value_fits(c, entry->value, v);
    struct rule_decoded value;
    rule_decoded_init(&value, entry->value);
    bool fits = value_fits(c, value.text, v);
    rule_decoded_fini(&value);
    return fits;
}

static bool entries_have(const struct rule_condition *c, struct view_entries *entries, bool decodes,
                         struct rule_view *v)
{
    for (unsigned i = 0; i < entries->count; i++)
        if (entry_fits(c, &entries->at[i], decodes, v))
            return true;
    return false;
}

/* More of them than a view holds are looked at one by one. */
static bool rest_has(const struct rule_condition *c, const struct view_entries *entries,
                     bool decodes, struct rule_view *v)
{
    struct view_rest rest = entries->rest;
    struct view_entry entry;
    while (rule_view_next(&rest, &entry)) {
        bool fits = entry_fits(c, &entry, decodes, v);
        rule_decoded_fini(&rest.name);
        if (fits)
            return true;
    }
    return false;
}

static bool query_has(const struct rule_condition *c, struct rule_view *v)
{
    struct view_entries *entries = rule_view_query(v);
    return entries_have(c, entries, true, v) ||
           (entries->has_more && rest_has(c, entries, true, v));
}

static bool cookies_have(const struct rule_condition *c, struct rule_view *v)
{
    struct view_entries *entries = rule_view_cookies(v);
    return entries_have(c, entries, false, v) ||
           (entries->has_more && rest_has(c, entries, false, v));
}

static bool fields_have(const struct rule_condition *c, const struct headers *h,
                        struct rule_view *v)
{
    if (c->id != HEADER_OTHER) {
        for (const struct header *f = headers_find(h, c->id); f != NULL; f = headers_next(h, f))
            if (value_fits(c, f->value, v))
                return true;
        return false;
    }
    for (uint16_t i = 0; i < h->count; i++)
        if (rule_glob_matches(&c->name_glob, h->at[i].name) && value_fits(c, h->at[i].value, v))
            return true;
    return false;
}

enum where { IN_QUERY, IN_COOKIES, IN_FIELDS };
struct place {
    enum where where;
    const struct headers *fields;
};

static bool condition_holds(const struct rule_condition *c, const struct place *in,
                            struct rule_view *v)
{
    bool has = in->where == IN_QUERY     ? query_has(c, v)
               : in->where == IN_COOKIES ? cookies_have(c, v)
                                         : fields_have(c, in->fields, v);
    return has != (c->kind == CONDITION_ABSENT);
}

static bool conditions_hold(const struct rule_conditions *list, const struct place *in,
                            struct rule_view *v)
{
    for (size_t i = 0; i < list->count; i++)
        if (condition_holds(&list->rows[i], in, v) == list->is_any)
            return list->is_any;
    return !list->is_any;
}

static bool any_glob(const struct rule_glob *globs, size_t count, struct slice text)
{
    for (size_t i = 0; i < count; i++)
        if (rule_glob_matches(&globs[i], text))
            return true;
    return false;
}

static bool any_path(const struct rule_match *m, const struct rule_view *v)
{
    for (size_t i = 0; i < m->path_count; i++)
        if (rule_gate_lets_path(&m->path_gates[i], v) &&
            rule_glob_matches(&m->paths[i], v->path.text))
            return true;
    return false;
}

static bool any_regex(const struct rule_match *m, struct rule_view *v)
{
    for (size_t i = 0; i < m->regex_count; i++) {
        enum regex_result result = rule_regex_match(m->regexes[i], v->path.text, NULL);
        v->has_broken = v->has_broken || result == REGEX_LIMIT;
        if (result == REGEX_YES)
            return true;
    }
    return false;
}

static bool any_network(const struct rule_match *m, const struct peer *client)
{
    for (size_t i = 0; i < m->client_count; i++)
        if (client != NULL && network_has(&m->clients[i], client))
            return true;
    return false;
}

/* A method that has no bit of its own. */
static bool other_method_fits(const struct rule_match *m, const struct rule_view *v)
{
    if (!m->has_other_method || (v->bits & GATE_OTHER_METHOD) == 0)
        return true;
    for (char **method = m->method; *method != NULL; method++)
        if (slice_equal(v->request->method, slice_of(*method)))
            return true;
    return false;
}

/* Cheap ones first; what a rule does not ask costs a glance. */
static bool request_fits(const struct rule_match *m, struct rule_view *v)
{
    if ((v->bits & m->refuses) != 0 || !other_method_fits(m, v))
        return false;
    if (m->path_count > 0 && !any_path(m, v))
        return false;
    if (m->host_count > 0 && !any_glob(m->hosts, m->host_count, v->request->host))
        return false;
    if (m->client_count > 0 && !any_network(m, v->request->client))
        return false;
    if (m->fields.count > 0 &&
        !conditions_hold(&m->fields, &(struct place){ IN_FIELDS, v->request->headers }, v))
        return false;
    if (m->query.count > 0 && !conditions_hold(&m->query, &(struct place){ IN_QUERY, NULL }, v))
        return false;
    if (m->cookies.count > 0 &&
        !conditions_hold(&m->cookies, &(struct place){ IN_COOKIES, NULL }, v))
        return false;
    return m->regex_count == 0 || any_regex(m, v);
}

static bool response_fits(const struct rule_match *m, const struct rule_response *r,
                          struct rule_view *v)
{
    bool has_status = m->status_count == 0;
    for (size_t i = 0; i < m->status_count && !has_status; i++)
        has_status = r->status >= m->statuses[i].first && r->status <= m->statuses[i].last;
    if (!has_status || m->response_fields.count == 0)
        return has_status;
    return conditions_hold(&m->response_fields, &(struct place){ IN_FIELDS, r->headers }, v);
}

/* ---- the sum --------------------------------------------------------------------------------- */

/* A tag with variables is filled in now: when it is wanted, the request may be
 * gone. */
static void make_tags(const struct config_rule *r, const struct rule_view *v,
                      struct rule_effects *out)
{
    struct rule_captures captures;
    rules_captures_of(r, v->path.text, &captures);
    struct template_input in = { v->request, &captures };
    for (size_t i = 0; i < r->tag_count; i++) {
        if (!r->tag_templates[i].has_variables)
            continue;
        size_t room = sizeof out->made_tags - out->made_tags_bytes;
        char *to = out->made_tags + out->made_tags_bytes;
        size_t len = rule_template_write(&r->tag_templates[i], &in, to, room);
        if (len >= room) {
            log_warn("%s: the tags of one answer are longer than %d bytes; %s is left out",
                     r->where, RULES_MADE_TAGS_MAX, r->tags[i]);
            continue;
        }
        len = rules_clean_tag(to, len);
        to[len] = '\0';
        out->made_tags_bytes = (uint16_t)(out->made_tags_bytes + (len == 0 ? 0 : len + 1));
    }
}

static void add_seconds(uint32_t given, int32_t *out)
{
    if (given != RULE_NOT_GIVEN)
        *out = (int32_t)given; /* at most a year */
}

static void add_cache(const struct config_rule *r, struct rule_effects *out)
{
    if (r->cache.word == RULE_CACHE_BYPASS && out->bypassed_by == NULL)
        out->bypassed_by = r;
    if (r->cache.word == RULE_CACHE_NO_STORE && out->unstored_by == NULL)
        out->unstored_by = r;
    if (r->cache.ttl_s != RULE_NOT_GIVEN)
        out->ttl_by = r;
    add_seconds(r->cache.ttl_s, &out->ttl_s);
    add_seconds(r->cache.grace_s, &out->stale_while_revalidate_s);
    add_seconds(r->cache.grace_s, &out->stale_if_error_s);
    add_seconds(r->cache.stale_while_revalidate_s, &out->stale_while_revalidate_s);
    add_seconds(r->cache.stale_if_error_s, &out->stale_if_error_s);
    add_seconds(r->cache.keep_s, &out->keep_s);
    out->ignores |= r->ignores;
}

static void add_rule(const struct config_rule *r, size_t index, const struct rule_view *v,
                     struct rule_effects *out)
{
    uint32_t does = r->does;
    out->matched[index / 64] |= UINT64_C(1) << (index % 64);
    out->matched_count++;
    out->edits_key = out->edits_key || (does & RULE_DOES_KEY) != 0;
    out->edits_cookies = out->edits_cookies || (does & RULE_DOES_COOKIES) != 0;
    out->edits_request = out->edits_request || (does & RULE_DOES_REQUEST) != 0;
    out->edits_response = out->edits_response || (does & RULE_DOES_RESPONSE) != 0;
    out->rewrites = out->rewrites || (does & RULE_DOES_REWRITE) != 0;
    out->has_tags = out->has_tags || (does & RULE_DOES_TAGS) != 0;
    out->has_default_ttls = out->has_default_ttls || (does & RULE_DOES_DEFAULT_TTLS) != 0;
    if ((does & RULE_DOES_ORIGIN) != 0)
        out->origin = r->origin;
    if ((does & RULE_DOES_CACHE) != 0)
        add_cache(r, out);
    if ((does & RULE_DOES_TAGS) != 0)
        make_tags(r, v, out);
}

/* ---- the walks ------------------------------------------------------------------------------- */

static void effects_init(struct rule_effects *out, const struct config_site *site)
{
    memset(out, 0, offsetof(struct rule_effects, made_tags));
    out->site = site;
    out->ttl_s = out->default_ttl_s = RULE_UNSET;
    out->stale_while_revalidate_s = out->stale_if_error_s = out->keep_s = RULE_UNSET;
}

/* In full; it has passed its gate. */
static bool rule_fits(const struct config_rule *r, struct rule_view *v)
{
    const struct rule_match *no = r->match.opposite;
    v->has_broken = false;
    bool fits =
        request_fits(&r->match, v) && (no == NULL || no->asks_response || !request_fits(no, v));
    return fits && !v->has_broken;
}

/* Whether the walk goes on. */
static bool take_rule(const struct config_site *site, size_t index, const struct rule_view *v,
                      struct rule_effects *out)
{
    const struct config_rule *r = &site->rules[index];
    if (r->awaits_response) {
        out->pending[index / 64] |= UINT64_C(1) << (index % 64);
        out->awaits_response = true;
        out->awaits_fields = out->awaits_fields || (r->does & RULE_DOES_RESPONSE) != 0;
        return true;
    }
    add_rule(r, index, v, out);
    if (r->end != RULE_GO_ON) {
        out->end = r->end;
        out->ended_by = r;
    }
    return r->end == RULE_GO_ON && !r->stops;
}

static void keep_asked(struct rule_effects *e)
{
    e->asked = (struct rule_asked){ .unstored_by = e->unstored_by,
                                    .ttl_by = e->ttl_by,
                                    .ttl_s = e->ttl_s,
                                    .stale_while_revalidate_s = e->stale_while_revalidate_s,
                                    .stale_if_error_s = e->stale_if_error_s,
                                    .keep_s = e->keep_s,
                                    .ignores = e->ignores,
                                    .matched_count = e->matched_count,
                                    .edits_response = e->edits_response,
                                    .has_tags = e->has_tags,
                                    .has_default_ttls = e->has_default_ttls,
                                    .made_tags_bytes = e->made_tags_bytes };
}

void rules_on_request(const struct config_site *site, const struct rule_request *request,
                      struct rule_effects *out)
{
    effects_init(out, site);
    if (site->rule_count == 0)
        return;
    struct rule_view v;
    rule_view_init(&v, request);
    const struct rule_gate *gates = site->gates;
    for (size_t i = 0; i < site->rule_count; i++) {
        if ((v.bits & gates[i].refuses) != 0 || !rule_gate_lets_path(&gates[i].path, &v))
            continue;
        if (rule_fits(&site->rules[i], &v) && !take_rule(site, i, &v, out))
            break;
    }
    if (out->awaits_response)
        keep_asked(out);
    rule_path_fini(&v.path);
}

/* What an earlier answer brought is taken back: of a stale one, say, before the
 * new one. */
static void forget_response(struct rule_effects *e)
{
    const struct rule_asked *a = &e->asked;
    for (size_t i = 0; i < RULES_WORDS; i++)
        e->matched[i] &= ~e->pending[i];
    e->unstored_by = a->unstored_by;
    e->ttl_by = a->ttl_by;
    e->ttl_s = a->ttl_s;
    e->stale_while_revalidate_s = a->stale_while_revalidate_s;
    e->stale_if_error_s = a->stale_if_error_s;
    e->keep_s = a->keep_s;
    e->ignores = a->ignores;
    e->matched_count = a->matched_count;
    e->edits_response = a->edits_response;
    e->has_tags = a->has_tags;
    e->has_default_ttls = a->has_default_ttls;
    e->made_tags_bytes = a->made_tags_bytes;
}

void rules_on_response(const struct rule_request *request, const struct rule_response *response,
                       struct rule_effects *effects)
{
    if (effects->awaits_response) {
        struct rule_view v;
        forget_response(effects);
        rule_view_init(&v, request);
        for (size_t i = 0; i < effects->site->rule_count; i++) {
            const struct config_rule *r = &effects->site->rules[i];
            const struct rule_match *no = r->match.opposite;
            if ((effects->pending[i / 64] >> (i % 64) & 1) == 0)
                continue;
            v.has_broken = false;
            bool fits = response_fits(&r->match, response, &v) &&
                        (no == NULL || !no->asks_response || !response_fits(no, response, &v));
            if (!fits || v.has_broken)
                continue;
            add_rule(r, i, &v, effects);
            if (r->stops)
                break;
        }
        rule_path_fini(&v.path);
    }
    effects->default_ttl_s = rules_default_ttl(effects, response->status);
}

const struct config_rule *rules_next_matched(const struct rule_effects *e, size_t *index)
{
    for (; *index < e->site->rule_count; (*index)++) {
        uint64_t rest = e->matched[*index / 64] >> (*index % 64);
        if (rest == 0) {
            *index |= 63; /* the loop's step leads to the next word */
            continue;
        }
        *index += (size_t)__builtin_ctzll(rest);
        return &e->site->rules[(*index)++];
    }
    return NULL;
}

int32_t rules_default_ttl(const struct rule_effects *effects, uint16_t status)
{
    int32_t ttl_s = RULE_UNSET;
    size_t at = 0;
    if (!effects->has_default_ttls)
        return RULE_UNSET;
    for (const struct config_rule *r; (r = rules_next_matched(effects, &at)) != NULL;)
        for (size_t i = 0; i < r->cache.ttl_count; i++)
            if (r->cache.ttls[i].status == status)
                ttl_s = (int32_t)r->cache.ttls[i].ttl_s;
    return ttl_s;
}

void rules_captures_of(const struct config_rule *r, struct slice path, struct rule_captures *out)
{
    *out = (struct rule_captures){ 0 };
    for (size_t i = 0; i < r->match.regex_count; i++)
        if (rule_regex_match(r->match.regexes[i], path, out) == REGEX_YES)
            return;
}
