/* config/rules_compile.c: from what was written to what is matched: globs,
 * regular expressions, networks, templates, and the gates that spare most rules
 * a closer look. What was written has been checked text by text
 * (rules_values.c), so nothing can fail here. One thread, within a load.
 */
#include "config/config_internal.h"
#include "config/rules_internal.h"

static size_t count_of(char *const *list)
{
    size_t count = 0;
    while (list != NULL && list[count] != NULL)
        count++;
    return count;
}

static struct rule_glob *globs_of(struct config_loader *l, char *const *list,
                                  const struct glob_options *options)
{
    const char *why;
    size_t count = count_of(list);
    struct rule_glob *globs = arena_alloc(l->arena, count * sizeof *globs);
    for (size_t i = 0; i < count; i++)
        CHECK(rule_glob_compile(l->arena, slice_of(list[i]), options, &globs[i], &why));
    return globs;
}

static struct rule_names names_of(struct config_loader *l, char *const *list, bool folds)
{
    struct glob_options options = { .kind = GLOB_VALUE, .folds = folds };
    return (struct rule_names){ globs_of(l, list, &options), count_of(list) };
}

static const struct rule_regex *regex_of(struct config_loader *l, const char *text, bool folds)
{
    const char *why;
    const struct rule_regex *r = rule_regex_compile(l->arena, slice_of(text), folds, &why);
    CHECK(r != NULL);
    return r;
}

static struct rule_template template_of(struct config_loader *l, const char *text)
{
    const char *why;
    struct rule_template t;
    CHECK(rule_template_compile(l->arena, slice_of(text), &t, &why));
    return t;
}

/* ---- gates ----------------------------------------------------------------------------------- */

/* What eight bytes of a path must be, as far as the pattern's literal beginning or end goes. */
struct literal {
    char bytes[8], mask[8];
};

static void literal_first(struct literal *l, struct slice text)
{
    *l = (struct literal){ 0 };
    for (size_t i = 0; i < text.len && i < sizeof l->bytes; i++) {
        l->bytes[i] = text.ptr[i];
        l->mask[i] = (char)0xff;
    }
}

static void literal_last(struct literal *l, struct slice text)
{
    *l = (struct literal){ 0 };
    for (size_t i = 0; i < text.len && i < sizeof l->bytes; i++) {
        l->bytes[7 - i] = text.ptr[text.len - 1 - i];
        l->mask[7 - i] = (char)0xff;
    }
}

/* Without the bit that makes a letter small: the pattern itself looks closer. */
static void literal_words(struct literal *l, bool folds, uint64_t *word, uint64_t *mask)
{
    for (size_t i = 0; i < sizeof l->bytes && folds; i++)
        if (l->bytes[i] >= 'a' && l->bytes[i] <= 'z')
            l->mask[i] &= (char)~0x20;
    memcpy(word, l->bytes, sizeof *word);
    memcpy(mask, l->mask, sizeof *mask);
    *word &= *mask;
}

static void compile_path_gate(const struct rule_glob *p, struct path_gate *g)
{
    struct literal first, last;
    literal_first(&first, p->prefix);
    literal_last(&last, rule_glob_is_literal(p) ? p->prefix : p->suffix);
    literal_words(&first, p->folds, &g->first, &g->first_mask);
    literal_words(&last, p->folds, &g->last, &g->last_mask);
}

/* What lets pass whatever one of the two does: bits in which they agree. */
static void widen(struct path_gate *g, const struct path_gate *other)
{
    g->first_mask &= other->first_mask & ~(g->first ^ other->first);
    g->last_mask &= other->last_mask & ~(g->last ^ other->last);
    g->first &= g->first_mask;
    g->last &= g->last_mask;
}

static void compile_gate(const struct rule_match *m, struct rule_gate *g)
{
    *g = (struct rule_gate){ .refuses = m->refuses };
    if (m->path_count > 0)
        g->path = m->path_gates[0];
    for (size_t i = 1; i < m->path_count; i++)
        widen(&g->path, &m->path_gates[i]);
}

void config_rules_open_gates(struct config_loader *l, struct config_site *s)
{
    s->gates = arena_alloc(l->arena, s->rule_count * sizeof *s->gates);
    for (size_t i = 0; i < s->rule_count; i++)
        compile_gate(&s->rules[i].match, &s->gates[i]);
}

/* ---- conditions ------------------------------------------------------------------------------ */

static void compile_conditions(struct config_loader *l, struct rule_conditions *list, bool is_field)
{
    struct glob_options names = { .kind = GLOB_VALUE, .folds = is_field };
    struct glob_options values = { .kind = GLOB_VALUE };
    const char *why;
    for (size_t i = 0; i < list->count; i++) {
        struct rule_condition *c = &list->rows[i];
        CHECK(rule_glob_compile(l->arena, slice_of(c->name), &names, &c->name_glob, &why));
        struct slice first = c->name_glob.prefix;
        c->first = rule_first_bytes(first);
        c->first_mask =
            rule_glob_is_literal(&c->name_glob) || first.len >= 8
                ? UINT64_MAX
                : rule_first_bytes((struct slice){ "\xff\xff\xff\xff\xff\xff\xff", first.len });
        c->id = is_field ? header_id_of(slice_of(c->name)) : HEADER_OTHER;
        if (c->kind == CONDITION_REGEX)
            c->regex = regex_of(l, c->values[0], false);
        if (c->kind != CONDITION_GLOBS)
            continue;
        c->globs = globs_of(l, c->values, &values);
        c->glob_count = count_of(c->values);
    }
}

/* Whether nothing can hold when there is nothing of the kind at all. */
static bool needs_something(const struct rule_conditions *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->rows[i].kind != CONDITION_ABSENT)
            return true;
    return false;
}

uint32_t rule_method_bit(struct slice method)
{
    static const struct {
        struct slice name;
        uint32_t bit;
    } known[] = {
        { SLICE_INIT("GET"), GATE_GET },       { SLICE_INIT("HEAD"), GATE_HEAD },
        { SLICE_INIT("POST"), GATE_POST },     { SLICE_INIT("PUT"), GATE_PUT },
        { SLICE_INIT("DELETE"), GATE_DELETE }, { SLICE_INIT("OPTIONS"), GATE_OPTIONS },
        { SLICE_INIT("PATCH"), GATE_PATCH },
    };
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        if (slice_equal(method, known[i].name))
            return known[i].bit;
    return GATE_OTHER_METHOD;
}

static void compile_refusals(struct rule_match *m)
{
    uint32_t methods = 0, schemes = 0;
    for (char **method = m->method; method != NULL && *method != NULL; method++)
        methods |= rule_method_bit(slice_of(*method));
    for (char **scheme = m->scheme; scheme != NULL && *scheme != NULL; scheme++)
        schemes |= strcmp(*scheme, "https") == 0 ? GATE_HTTPS : GATE_HTTP;
    m->has_other_method = (methods & GATE_OTHER_METHOD) != 0;
    m->refuses = (methods == 0 ? 0 : GATE_METHODS & ~methods) |
                 (schemes == 0 ? 0 : (GATE_HTTP | GATE_HTTPS) & ~schemes) |
                 (needs_something(&m->query) ? GATE_NO_QUERY : 0) |
                 (needs_something(&m->cookies) ? GATE_NO_COOKIE : 0) |
                 (m->client_count > 0 ? GATE_NO_CLIENT : 0);
}

static void compile_lists(struct config_loader *l, struct rule_match *m)
{
    struct glob_options hosts = { .kind = GLOB_VALUE, .folds = true };
    struct glob_options paths = { .kind = GLOB_PATH, .folds = m->ignores_case };
    m->host_count = (uint16_t)count_of(m->host);
    m->hosts = globs_of(l, m->host, &hosts);
    m->path_count = (uint16_t)count_of(m->path);
    m->paths = globs_of(l, m->path, &paths);
    m->path_gates = arena_alloc(l->arena, m->path_count * sizeof *m->path_gates);
    for (size_t i = 0; i < m->path_count; i++)
        compile_path_gate(&m->paths[i], &m->path_gates[i]);
    m->regex_count = (uint16_t)count_of(m->path_regex);
    m->regexes = arena_alloc(l->arena, m->regex_count * sizeof *m->regexes);
    for (size_t i = 0; i < m->regex_count; i++)
        m->regexes[i] = regex_of(l, m->path_regex[i], m->ignores_case);
    m->client_count = (uint16_t)count_of(m->client);
    m->clients = arena_alloc(l->arena, m->client_count * sizeof *m->clients);
    for (size_t i = 0; i < m->client_count; i++)
        CHECK(network_parse(m->client[i], &m->clients[i]));
    m->status_count = (uint16_t)count_of(m->status);
    m->statuses = arena_alloc(l->arena, m->status_count * sizeof *m->statuses);
    for (size_t i = 0; i < m->status_count; i++) {
        uint64_t status;
        uint16_t class = (uint16_t)((m->status[i][0] - '0') * 100);
        m->statuses[i] = (struct status_range){ class, (uint16_t)(class + 99) };
        if (slice_to_u64(slice_of(m->status[i]), &status))
            m->statuses[i] = (struct status_range){ (uint16_t)status, (uint16_t)status };
    }
}

static void compile_match(struct config_loader *l, struct rule_match *m)
{
    compile_lists(l, m);
    compile_conditions(l, &m->query, false);
    compile_conditions(l, &m->fields, true);
    compile_conditions(l, &m->cookies, false);
    compile_conditions(l, &m->response_fields, true);
    compile_refusals(m);
    m->asks_request = m->host_count + m->path_count + m->regex_count + m->client_count > 0 ||
                      m->query.count + m->fields.count + m->cookies.count > 0 || m->refuses != 0;
    m->asks_response = m->status_count > 0 || m->response_fields.count > 0;
    if (m->opposite != NULL)
        compile_match(l, m->opposite);
}

/* ---- what it does ---------------------------------------------------------------------------- */

static void compile_values(struct config_loader *l, const struct rule_fields *fields,
                           struct rule_template **out)
{
    *out = arena_alloc(l->arena, fields->count * sizeof **out);
    for (size_t i = 0; i < fields->count; i++)
        (*out)[i] = template_of(l, fields->rows[i].value);
}

static void compile_edits(struct config_loader *l, struct rule_edits *e)
{
    struct rule_names removes = names_of(l, e->remove, true);
    e->removes = removes.globs;
    e->remove_count = removes.count;
}

static uint32_t ignores_of(char *const *words)
{
    uint32_t ignores = 0;
    for (; words != NULL && *words != NULL; words++)
        ignores |= strcmp(*words, "cache-control") == 0 ? IGNORE_CACHE_CONTROL
                   : strcmp(*words, "set-cookie") == 0  ? IGNORE_SET_COOKIE
                   : strcmp(*words, "vary") == 0        ? IGNORE_VARY
                                                        : IGNORE_AUTHORIZATION;
    return ignores;
}

static bool edits_anything(const struct rule_edits *e)
{
    return e->set.count + e->append.count + e->remove_count > 0;
}

static uint32_t deeds_of(const struct config_rule *r)
{
    bool has_key = r->key_ignore.count + r->key_keep.count > 0 || r->key.fields != NULL ||
                   r->key.cookies != NULL || r->key.sorts || r->key.ignores_case;
    bool has_cache = r->cache.word != RULE_NOT_GIVEN || r->cache.ttl_s != RULE_NOT_GIVEN ||
                     r->cache.grace_s != RULE_NOT_GIVEN ||
                     r->cache.stale_while_revalidate_s != RULE_NOT_GIVEN ||
                     r->cache.stale_if_error_s != RULE_NOT_GIVEN ||
                     r->cache.keep_s != RULE_NOT_GIVEN || r->cache.ttl_count > 0 || r->ignores != 0;
    bool has_cookies = r->drop_cookies.count + r->keep_cookies.count > 0;
    return (has_key ? RULE_DOES_KEY : 0) | (has_cache ? RULE_DOES_CACHE : 0) |
           (has_cookies ? RULE_DOES_COOKIES : 0) |
           (edits_anything(&r->request) ? RULE_DOES_REQUEST : 0) |
           (edits_anything(&r->response) ? RULE_DOES_RESPONSE : 0) |
           (r->rewrite.path != NULL || r->rewrite.query != NULL ? RULE_DOES_REWRITE : 0) |
           (r->tag_count > 0 ? RULE_DOES_TAGS : 0) |
           (r->cache.ttl_count > 0 ? RULE_DOES_DEFAULT_TTLS : 0) |
           (r->origin_place != 0 ? RULE_DOES_ORIGIN : 0);
}

static void compile_texts(struct config_loader *l, struct config_rule *r)
{
    if (r->redirect.to != NULL)
        r->redirect_to = template_of(l, r->redirect.to);
    if (r->rewrite.path != NULL)
        r->rewrite_path = template_of(l, r->rewrite.path);
    if (r->rewrite.query != NULL)
        r->rewrite_query = template_of(l, r->rewrite.query);
    if (r->rewrite.regex != NULL)
        r->rewrite_regex = regex_of(l, r->rewrite.regex, r->match.ignores_case);
    r->tag_count = count_of(r->tags);
    r->tag_templates = arena_alloc(l->arena, r->tag_count * sizeof *r->tag_templates);
    for (size_t i = 0; i < r->tag_count; i++)
        r->tag_templates[i] = template_of(l, r->tags[i]);
}

void config_rule_compile(struct config_loader *l, struct config_rule *r,
                         const struct config_place *at, size_t first_mistake)
{
    const struct config_place *origin = config_place_find(l, &r->origin);
    r->origin_place = origin == NULL ? 0 : (size_t)(origin - l->places) + 1;
    compile_match(l, &r->match);
    r->awaits_response =
        r->match.asks_response || (r->match.opposite != NULL && r->match.opposite->asks_response);
    r->key_ignore = names_of(l, r->key.ignore, false);
    r->key_keep = names_of(l, r->key.keep, true); /* rules_key.c says why any case */
    r->drop_cookies = names_of(l, r->cookies.drop, false);
    r->keep_cookies = names_of(l, r->cookies.keep, false);
    compile_edits(l, &r->request);
    compile_values(l, &r->request.set, &r->request.set_values);
    compile_values(l, &r->request.append, &r->request.append_values);
    compile_edits(l, &r->response);
    compile_texts(l, r);
    r->ignores = ignores_of(r->cache.ignore);
    r->end = r->redirect.to != NULL                                         ? RULE_REDIRECT
             : r->answer.status != RULE_NOT_GIVEN || r->answer.body != NULL ? RULE_ANSWER
             : r->deny != RULE_NOT_GIVEN                                    ? RULE_DENY
                                                                            : RULE_GO_ON;
    r->does = deeds_of(r);
    r->summary = config_rule_summary(l, r);
    config_rule_check(l, r, at, first_mistake);
}
