/* config/parse_rules.c: YAML to rules and their tests: the shapes that only
 * they have (conditions, header fields, lists of mappings), and the presets,
 * which are YAML, too. See parse_internal.h. One thread, within a load.
 */
#include "config/parse_internal.h"

#include <stdlib.h>

/* ---- one text -------------------------------------------------------------------------------- */

/* What no line of a head can hold, wherever it comes from. */
static bool is_clean(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

struct checked {
    const struct config_target *to;
    enum config_type type; /* to be checked as */
    const char *path;
};

/* NULL with a mistake told. */
static char *read_string(struct config_reader *r, const yaml_node_t *node, const struct checked *as)
{
    struct config_text text;
    if (!config_read_text(r, node, as->to, as->path, &text))
        return NULL;
    struct config_item item = *as->to->item;
    item.type = as->type;
    const char *why = "has a control character";
    if (is_clean(text.text) && config_check_text(r->l, &item, text.text, &why))
        return arena_string(r->l->arena, text.text);
    struct config_place place = config_node_place(node, as->path);
    config_mistake(r->l, &place, "%s %s", config_shown(r->l, text.text), why);
    return NULL;
}

/* One text or a list of them; NULL with mistakes told. */
static char **read_strings(struct config_reader *r, const yaml_node_t *node,
                           const struct checked *as, size_t *count)
{
    bool is_list = node->type == YAML_SEQUENCE_NODE, is_whole = true;
    size_t room = is_list ? config_node_entry_count(node) : 1;
    char **list = arena_alloc(r->l->arena, (room + 1) * sizeof *list);
    *count = 0;
    for (size_t i = 0; i < room && r->budget > 0; i++) {
        struct checked one = *as;
        one.path = is_list ? config_format(r->l, "%s[%zu]", as->path, i) : as->path;
        list[*count] = read_string(r, is_list ? config_node_entry(r, node, i) : node, &one);
        is_whole = is_whole && list[*count] != NULL;
        *count += list[*count] != NULL;
    }
    list[*count] = NULL;
    struct config_place place = config_node_place(node, as->path);
    if (room == 0)
        config_mistake(r->l, &place, "is an empty list; it needs at least one");
    return is_whole && *count > 0 ? list : NULL;
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* { regex: TEXT } */
static void read_regex(struct config_reader *r, const yaml_node_t *node, const struct checked *as,
                       struct rule_condition *c)
{
    struct config_pairs p = config_pairs_of(r, node, as->path);
    struct checked inner = *as;
    size_t count;
    for (size_t i = 0; i < p.count; i++) {
        inner.path = config_reader_path(r, as->path, p.rows[i].key);
        if (slice_equal(p.rows[i].key, SLICE("regex"))) {
            inner.type = CONFIG_REGEX;
            c->kind = CONDITION_REGEX;
            if (p.rows[i].value->type == YAML_SCALAR_NODE)
                c->values = read_strings(r, p.rows[i].value, &inner, &count);
            else
                config_reader_mistake_kind(r, p.rows[i].value, inner.path, as->to->item);
            continue;
        }
        struct config_place place = config_node_place(p.rows[i].key_node, inner.path);
        config_mistake(r->l, &place, "unknown item; a condition has a pattern, or { regex: … }");
    }
    struct config_place place = config_node_place(node, as->path);
    if (p.count == 0)
        config_mistake(r->l, &place, "is an empty mapping; a condition has { regex: … }");
}

static bool is_plain(const yaml_node_t *node, const char *word)
{
    return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           slice_equal(config_node_text(node), slice_of(word));
}

static void read_condition_value(struct config_reader *r, const yaml_node_t *node,
                                 const struct checked *as, struct rule_condition *c)
{
    size_t ignored;
    if (is_plain(node, "true"))
        c->kind = CONDITION_PRESENT;
    else if (is_plain(node, "false"))
        c->kind = CONDITION_ABSENT;
    else if (node->type == YAML_MAPPING_NODE)
        read_regex(r, node, as, c);
    else {
        c->kind = CONDITION_GLOBS;
        c->values = read_strings(r, node, as, &ignored);
    }
}

static bool check_condition_name(struct config_reader *r, const yaml_node_t *node,
                                 const struct checked *as)
{
    struct config_place place = config_node_place(node, as->path);
    struct slice text = config_node_text(node);
    struct config_item item = { .type = CONFIG_NAME_GLOBS };
    const char *why = "has a control character";
    bool is_field = strstr(as->to->item->path, "fields") != NULL;
    if (is_clean(text) && config_check_text(r->l, &item, text, &why)) {
        if (!is_field || config_is_token(text))
            return true;
        why = "is not the name of a header field (RFC 9110, 5.1)";
    }
    config_mistake(r->l, &place, "%s %s", config_shown(r->l, text), why);
    return false;
}

static void read_condition_mapping(struct config_reader *r, const yaml_node_t *node,
                                   const struct config_target *to, struct rule_conditions *out)
{
    struct config_pairs p = config_pairs_of(r, node, to->path);
    struct config_place place = config_node_place(node, to->path);
    if (p.count == 0)
        config_mistake(r->l, &place, "is an empty mapping; it needs at least one");
    out->rows = arena_alloc(r->l->arena, p.count * sizeof *out->rows);
    for (size_t i = 0; i < p.count && r->budget > 0; i++) {
        struct checked as = { .to = to,
                              .type = CONFIG_NAME_GLOBS, /* of values; empty ones are checked for */
                              .path = config_reader_path(r, to->path, p.rows[i].key) };
        struct rule_condition c = { .name = arena_string(r->l->arena, p.rows[i].key) };
        if (!check_condition_name(r, p.rows[i].key_node, &as))
            continue;
        as.type = CONFIG_VALUE_GLOB;
        read_condition_value(r, p.rows[i].value, &as, &c);
        bool needs_values = c.kind == CONDITION_GLOBS || c.kind == CONDITION_REGEX;
        if (!needs_values || c.values != NULL)
            out->rows[out->count++] = c;
    }
}

static void read_conditions(struct config_reader *r, const yaml_node_t *node,
                            const struct config_target *to)
{
    struct rule_conditions *out = config_target_field(to);
    struct config_place place = config_node_place(node, to->path);
    place.field = out;
    config_place_remember(r->l, &place);
    if (node->type == YAML_MAPPING_NODE) {
        read_condition_mapping(r, node, to, out);
        return;
    }
    size_t count;
    struct checked as = { .to = to, .type = CONFIG_NAME_GLOBS, .path = to->path };
    char **names = read_strings(r, node, &as, &count);
    out->is_any = true;
    out->rows = arena_alloc(r->l->arena, count * sizeof *out->rows);
    for (size_t i = 0; names != NULL && i < count; i++)
        out->rows[out->count++] =
            (struct rule_condition){ .name = names[i], .kind = CONDITION_PRESENT };
}

/* ---- header fields --------------------------------------------------------------------------- */

static void add_field(struct config_reader *r, const struct config_pair *pair,
                      const struct config_target *to, struct rule_fields *out)
{
    const char *path = config_reader_path(r, to->path, pair->key);
    struct config_place place = config_node_place(pair->key_node, path);
    if (!config_is_token(pair->key)) {
        config_mistake(r->l, &place, "%s is not the name of a header field (RFC 9110, 5.1)",
                       config_shown(r->l, pair->key));
        return;
    }
    size_t count;
    bool is_template = slice_has_prefix(slice_of(to->item->path), SLICE("sites.*.rules.*.request"));
    struct checked as = { .to = to,
                          .type = is_template ? CONFIG_TEMPLATE : CONFIG_TEXT,
                          .path = path };
    char **values = read_strings(r, pair->value, &as, &count);
    if (values == NULL)
        return;
    struct rule_field *rows = arena_alloc(r->l->arena, (out->count + count) * sizeof *rows);
    if (out->count > 0)
        memcpy(rows, out->rows, out->count * sizeof *rows);
    out->rows = rows;
    for (size_t i = 0; i < count; i++) {
        out->rows[out->count] =
            (struct rule_field){ .name = arena_string(r->l->arena, pair->key), .value = values[i] };
        place.field = out->rows[out->count++].name;
        config_place_remember(r->l, &place);
    }
}

static void read_fields(struct config_reader *r, const yaml_node_t *node,
                        const struct config_target *to)
{
    struct rule_fields *out = config_target_field(to);
    struct config_place place = config_node_place(node, to->path);
    place.field = out;
    config_place_remember(r->l, &place);
    struct config_pairs p = config_pairs_of(r, node, to->path);
    for (size_t i = 0; i < p.count && r->budget > 0; i++)
        add_field(r, &p.rows[i], to, out);
}

/* ---- match ----------------------------------------------------------------------------------- */

static void read_opposite(struct config_reader *r, const yaml_node_t *node,
                          const struct config_target *to)
{
    struct config_place place = config_node_place(node, to->path);
    if (to->at->match != &to->at->rule->match) {
        config_mistake(r->l, &place, "not in a not; write what it comes to");
        return;
    }
    struct rule_match *m = arena_alloc(r->l->arena, sizeof *m);
    *m = (struct rule_match){ 0 };
    to->at->match->opposite = m;
    place.field = m;
    config_place_remember(r->l, &place);
    struct config_spot at = *to->at;
    at.pattern = "sites.*.rules.*.match";
    at.shown = to->path;
    at.match = m;
    config_read_group(r, node, &at);
}

static void read_cache(struct config_reader *r, const yaml_node_t *node,
                       const struct config_target *to)
{
    if (node->type != YAML_MAPPING_NODE) {
        config_read_scalar(r, node, to);
        return;
    }
    struct config_spot at = *to->at;
    at.pattern = to->item->path;
    at.shown = to->path;
    config_read_group(r, node, &at);
}

/* ---- rules and tests ------------------------------------------------------------------------- */

/* Numbers and choices that are not given say so. */
static void forget_numbers(enum config_where where, void *base)
{
    const uint32_t none = RULE_NOT_GIVEN;
    for (size_t i = 0; i < config_item_count; i++) {
        const struct config_item *item = &config_items[i];
        if (item->where == where && config_item_is_optional_number(item))
            memcpy((char *)base + item->offset, &none, sizeof none);
    }
}

static const char *where_of(struct config_reader *r, const yaml_node_t *node)
{
    return arena_printf(r->l->arena, "%s:%zu", r->l->name, node->start_mark.line + 1).ptr;
}

static void read_rule(struct config_reader *r, const yaml_node_t *node, struct config_rule *rule,
                      const char *path)
{
    struct config_place place = config_node_place(node, path);
    size_t first_mistake = r->l->mistake_count;
    *rule = (struct config_rule){ .where = where_of(r, node), .summary = "" };
    forget_numbers(IN_RULE, rule);
    place.field = rule;
    config_place_remember(r->l, &place);
    rule->place = r->l->place_count;
    if (node->type != YAML_MAPPING_NODE)
        config_mistake(r->l, &place, "%s; allowed: a mapping with match and what to do",
                       config_node_kind(node));
    else
        config_read_group(
            r, node,
            &(struct config_spot){
                .pattern = "sites.*.rules.*", .shown = path, .rule = rule, .match = &rule->match });
    config_rule_compile(r->l, rule, &place, first_mistake);
}

static void read_test(struct config_reader *r, const yaml_node_t *node, struct config_rule_test *t,
                      const char *path)
{
    struct config_place place = config_node_place(node, path);
    size_t first_mistake = r->l->mistake_count;
    *t = (struct config_rule_test){ .where = where_of(r, node) };
    forget_numbers(IN_TEST, t);
    place.field = t;
    config_place_remember(r->l, &place);
    if (node->type != YAML_MAPPING_NODE)
        config_mistake(r->l, &place, "%s; allowed: a mapping with request, response and expect",
                       config_node_kind(node));
    else
        config_read_group(
            r, node,
            &(struct config_spot){ .pattern = "sites.*.tests.*", .shown = path, .test = t });
    config_rule_test_compile(r->l, t, &place, first_mistake);
}

static void read_rules(struct config_reader *r, const yaml_node_t *node,
                       const struct config_target *to)
{
    struct config_site *s = to->base;
    struct config_place place = config_node_place(node, to->path);
    place.field = config_target_field(to);
    config_place_remember(r->l, &place);
    size_t count = config_node_entry_count(node);
    if (count > RULES_MAX) {
        config_mistake(r->l, &place, "has %zu rules; a site can have %d", count, RULES_MAX);
        return;
    }
    s->rules = arena_alloc(r->l->arena, count * sizeof *s->rules);
    for (size_t i = 0; i < count && config_reader_spend(r, config_node_entry(r, node, i)); i++)
        read_rule(r, config_node_entry(r, node, i), &s->rules[s->rule_count++],
                  config_format(r->l, "%s[%zu]", to->path, i));
}

static void read_tests(struct config_reader *r, const yaml_node_t *node,
                       const struct config_target *to)
{
    struct config_site *s = to->base;
    size_t count = config_node_entry_count(node);
    s->tests = arena_alloc(r->l->arena, count * sizeof *s->tests);
    for (size_t i = 0; i < count && config_reader_spend(r, config_node_entry(r, node, i)); i++)
        read_test(r, config_node_entry(r, node, i), &s->tests[s->test_count++],
                  config_format(r->l, "%s[%zu]", to->path, i));
}

bool config_read_rule_item(struct config_reader *r, const yaml_node_t *node,
                           const struct config_target *to)
{
    bool is_list = node->type == YAML_SEQUENCE_NODE, is_mapping = node->type == YAML_MAPPING_NODE;
    bool is_scalar = node->type == YAML_SCALAR_NODE && !config_node_is_null(node);
    switch (to->item->type) {
    case CONFIG_CONDITIONS: is_list = is_list || is_mapping || is_scalar; break;
    case CONFIG_RULE_CACHE: is_list = is_mapping || is_scalar; break;
    case CONFIG_FIELDS:
    case CONFIG_MATCH: is_list = is_mapping; break;
    case CONFIG_RULES:
    case CONFIG_TESTS: break;
    default: return false; /* few of many: the rest is parse.c's */
    }
    if (config_node_is_null(node))
        return true; /* a heading whose items are all commented out */
    if (!is_list) {
        config_reader_mistake_kind(r, node, to->path, to->item);
        config_remember_wrong(r, node, to->path, config_target_field(to));
        return true;
    }
    if (!config_node_has_plain_tag(r, node, to->path))
        return true;
    switch (to->item->type) {
    case CONFIG_CONDITIONS: read_conditions(r, node, to); break;
    case CONFIG_RULE_CACHE: read_cache(r, node, to); break;
    case CONFIG_FIELDS: read_fields(r, node, to); break;
    case CONFIG_MATCH: read_opposite(r, node, to); break;
    case CONFIG_RULES: read_rules(r, node, to); break;
    default: read_tests(r, node, to); break;
    }
    return true;
}

/* ---- presets --------------------------------------------------------------------------------- */

static void undo_document(void *ptr)
{
    yaml_document_delete(ptr);
}

/* The text of a preset is read as a site is; a test loads all of them, so that
 * none has a mistake. */
static void read_preset(struct config_loader *l, const char *name, struct config_site *out)
{
    const char *text = rules_preset_text(slice_of(name)), *file = l->name;
    yaml_parser_t parser;
    yaml_document_t *document = arena_alloc(&l->own, sizeof *document);
    CHECK(text != NULL && yaml_parser_initialize(&parser));
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
    CHECK(yaml_parser_load(&parser, document));
    yaml_parser_delete(&parser);
    arena_own(&l->own, document, undo_document);
    struct config_reader r = { .l = l, .document = document, .budget = BUDGET_VISITS };
    l->name = config_format(l, "preset %s", name);
    config_read_group(&r, yaml_document_get_root_node(document),
                      &(struct config_spot){ .pattern = "sites.*", .shown = "", .site = out });
    l->name = file;
    for (size_t i = 0; i < out->rule_count; i++)
        out->rules[i].preset = arena_string(l->arena, slice_of(name));
}

static void add_rules(struct config_loader *l, struct config_site *s,
                      const struct config_site *more)
{
    struct config_rule *rules =
        arena_alloc(l->arena, (s->rule_count + more->rule_count) * sizeof *rules);
    if (s->rule_count > 0)
        memcpy(rules, s->rules, s->rule_count * sizeof *rules);
    if (more->rule_count > 0)
        memcpy(rules + s->rule_count, more->rules, more->rule_count * sizeof *rules);
    s->rules = rules;
    s->rule_count += more->rule_count;
}

void config_read_presets(struct config_loader *l, struct config_site *s)
{
    struct config_site all = { 0 };
    if (s->preset_count == 0)
        return;
    for (size_t i = 0; i < s->preset_count; i++) {
        struct config_site one = { 0 };
        read_preset(l, s->presets[i], &one);
        add_rules(l, &all, &one);
    }
    const struct config_place *at = config_place_find(l, &s->presets);
    if (all.rule_count + s->rule_count > RULES_MAX)
        config_mistake(l, at, "has %zu rules with those of its presets; a site can have %d",
                       all.rule_count + s->rule_count, RULES_MAX);
    add_rules(l, &all, s);
    s->rules = all.rules;
    s->rule_count = all.rule_count;
}
