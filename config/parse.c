/* config/parse.c: YAML to items. libyaml makes a document whose nodes know their line and column;
 * this file walks it along the table of items. Every mistake is gathered, the walk goes on behind
 * it.
 *
 * Anchors, aliases and the merge key (<<) work. An alias is the same node again, so a few hundred
 * bytes can stand for billions of values or for a circle: the walk has a budget of visits, and it
 * only ever goes as deep as the table.
 */
#include "config/parse_internal.h"

#include <stdlib.h>

/* ---- unknown items --------------------------------------------------------------------------- */

/* The names that may stand below `pattern`: "memory", "max_object" … below "cache". */
static void offer_siblings(struct config_nearest *near, struct slice pattern)
{
    for (size_t i = 0; i < config_item_count; i++) {
        struct slice path = slice_of(config_items[i].path);
        if (pattern.len > 0) {
            if (!slice_has_prefix(path, pattern) || path.len <= pattern.len ||
                path.ptr[pattern.len] != '.')
                continue;
            path = (struct slice){ path.ptr + pattern.len + 1, path.len - pattern.len - 1 };
        }
        path.len = slice_find(path, '.');
        config_nearest_offer(near, path);
    }
}

/* The same name in another place: `memory` at the top for cache.memory. */
static const char *same_name_elsewhere(struct config_reader *r, struct slice key)
{
    for (size_t i = 0; i < config_item_count; i++) {
        struct slice path = slice_of(config_items[i].path);
        if (path.len <= key.len || !slice_has_suffix(path, key) ||
            path.ptr[path.len - key.len - 1] != '.')
            continue;
        return config_format(r->l, "; did you mean %s?",
                             config_item_shown_path(r->l, &config_items[i]));
    }
    return "";
}

/* The same name one level below: `path` beside match for match.path. */
static const char *same_name_below(struct config_reader *r, struct slice key,
                                   const struct config_spot *at)
{
    struct slice above = slice_of(at->pattern);
    for (size_t i = 0; i < config_item_count && above.len > 0; i++) {
        struct slice path = slice_of(config_items[i].path);
        if (!slice_has_prefix(path, above) || path.len <= above.len + 1 + key.len ||
            path.ptr[above.len] != '.' || !slice_has_suffix(path, key))
            continue;
        struct slice group = { path.ptr + above.len + 1, path.len - above.len - 1 - key.len - 1 };
        if (path.ptr[path.len - key.len - 1] == '.' && slice_find(group, '.') == group.len &&
            slice_find(group, '*') == group.len)
            return config_format(r->l, "; did you mean %s." SLICE_FMT "." SLICE_FMT "?", at->shown,
                                 SLICE_ARG(group), SLICE_ARG(key));
    }
    return "";
}

static void mistake_unknown(struct config_reader *r, const struct config_pair *pair,
                            const struct config_spot *at)
{
    const char *path = config_reader_path(r, at->shown, pair->key);
    struct config_place place = config_node_place(pair->key_node, path);
    size_t dot = slice_find(pair->key, '.');
    if (dot < pair->key.len && config_item_find(slice_of(path)) != NULL) {
        config_mistake(
            r->l, &place,
            "unknown item; a dot does not nest, write " SLICE_FMT ": { " SLICE_FMT ": … }",
            (int)dot, pair->key.ptr, (int)(pair->key.len - dot - 1), pair->key.ptr + dot + 1);
        return;
    }
    struct config_nearest near;
    config_nearest_init(&near, pair->key);
    offer_siblings(&near, slice_of(at->pattern));
    const char *prefix = at->shown[0] == '\0' ? "" : config_format(r->l, "%s.", at->shown);
    const char *question = pair->key.len > 0 ? same_name_below(r, pair->key, at) : "";
    if (question[0] == '\0')
        question = config_nearest_question(r->l, &near, prefix);
    if (question[0] == '\0' && pair->key.len > 0)
        question = same_name_elsewhere(r, pair->key);
    config_mistake(r->l, &place, "unknown item%s", question);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void *base_of(struct config_reader *r, const struct config_spot *at,
                     const struct config_item *item)
{
    switch (item->where) {
    case IN_CONFIG: return r->l->config;
    case IN_ORIGIN: return at->origin;
    case IN_SITE: return at->site;
    case IN_RULE: return at->rule;
    case IN_MATCH: return at->match;
    case IN_TEST: return at->test;
    }
    UNREACHABLE();
}

/* Remembers that the item was given, and that its mistake is told. */
void config_remember_wrong(struct config_reader *r, const yaml_node_t *node, const char *path,
                           const void *field)
{
    struct config_place place = config_node_place(node, path);
    place.field = field;
    place.is_wrong = true;
    config_place_remember(r->l, &place);
}

/* False with a mistake told. `path` is the node's own: "listen[1]". */
bool config_read_text(struct config_reader *r, const yaml_node_t *node,
                      const struct config_target *to, const char *path, struct config_text *text)
{
    if (!config_reader_spend(r, node) || !config_node_has_plain_tag(r, node, path))
        return false;
    *text = (struct config_text){ .text = config_node_text(node),
                                  .line = node->start_mark.line + 1,
                                  .column = node->start_mark.column + 1 };
    if (node->type == YAML_SCALAR_NODE && !config_node_is_null(node))
        return true;
    config_reader_mistake_kind(r, node, path, to->item);
    return false;
}

static void set_texts(struct config_reader *r, const yaml_node_t *node,
                      const struct config_target *to, struct config_input *in)
{
    struct config_place place = config_node_place(node, to->path);
    in->path = to->path;
    in->line = place.line;
    in->column = place.column;
    config_set(r->l, to->item, to->base, in);
}

void config_read_scalar(struct config_reader *r, const yaml_node_t *node,
                        const struct config_target *to)
{
    struct config_text text;
    if (!config_read_text(r, node, to, to->path, &text)) {
        config_remember_wrong(r, node, to->path, config_target_field(to));
        return;
    }
    set_texts(r, node, to, &(struct config_input){ .texts = &text, .count = 1 });
}

static void set_sequence(struct config_reader *r, const yaml_node_t *node,
                         const struct config_target *to)
{
    yaml_node_item_t *start = node->data.sequence.items.start;
    size_t count = (size_t)(node->data.sequence.items.top - start), wrong_count = 0;
    struct config_text *texts = arena_alloc(&r->l->own, count * sizeof(struct config_text));
    for (size_t i = 0; i < count && r->budget > 0; i++) {
        const char *path = config_format(r->l, "%s[%zu]", to->path, i);
        if (!config_read_text(r, config_node_at(r, start[i]), to, path, &texts[i]))
            wrong_count++;
    }
    if (wrong_count > 0 || r->budget == 0)
        config_remember_wrong(r, node, to->path, config_target_field(to));
    else
        set_texts(r, node, to,
                  &(struct config_input){ .texts = texts, .count = count, .is_sequence = true });
}

static void set_ttls(struct config_reader *r, const yaml_node_t *node,
                     const struct config_target *to)
{
    struct config_pairs p = config_pairs_of(r, node, to->path);
    struct config_text *texts = arena_alloc(&r->l->own, p.count * 2 * sizeof(struct config_text));
    size_t count = 0;
    for (size_t i = 0; i < p.count; i++) {
        const char *path = config_reader_path(r, to->path, p.rows[i].key);
        if (config_read_text(r, p.rows[i].key_node, to, path, &texts[count]) &&
            config_read_text(r, p.rows[i].value, to, path, &texts[count + 1]))
            count += 2;
    }
    set_texts(r, node, to, &(struct config_input){ .texts = texts, .count = count });
}

static void read_switch(struct config_reader *r, const yaml_node_t *node,
                        const struct config_target *to)
{
    if (config_node_is_null(node))
        return; /* a heading whose items are all commented out */
    if (node->type != YAML_MAPPING_NODE) {
        config_read_scalar(r, node, to);
        return;
    }
    struct config_text on = { .text = SLICE("on") };
    set_texts(r, node, to, &(struct config_input){ .texts = &on, .count = 1 });
    config_read_group(r, node,
                      &(struct config_spot){ .pattern = to->item->path, .shown = to->path });
}

static void read_origin(struct config_reader *r, const struct config_pair *pair,
                        struct config_origin *o, const char *path)
{
    *o = (struct config_origin){ .name = arena_string(r->l->arena, pair->key) };
    struct config_place place = config_node_place(pair->key_node, path);
    if (!config_is_name(pair->key))
        config_mistake(r->l, &place, "is not a name; allowed: up to 64 letters, digits, - _ and .");
    size_t first_place = r->l->place_count;
    place.field = &o->name;
    config_place_remember(r->l, &place);
    config_set_defaults(r->l, IN_ORIGIN, o);
    if (pair->value->type != YAML_MAPPING_NODE) {
        struct config_place at = config_node_place(pair->value, path);
        config_mistake(r->l, &at, "%s; allowed: a mapping with servers or root",
                       config_node_kind(pair->value));
        return;
    }
    config_read_group(r, pair->value,
                      &(struct config_spot){ .pattern = "origins.*", .shown = path, .origin = o });
    config_check_origin(r->l, o, first_place);
}

static void read_origins(struct config_reader *r, const yaml_node_t *node,
                         const struct config_target *to)
{
    struct config_place place = config_node_place(node, to->path);
    place.field = config_target_field(to);
    config_place_remember(r->l, &place);
    struct config_pairs p = config_pairs_of(r, node, to->path);
    struct config *c = r->l->config;
    c->origins = arena_alloc(r->l->arena, p.count * sizeof *c->origins);
    for (size_t i = 0; i < p.count && r->budget > 0; i++)
        read_origin(r, &p.rows[i], &c->origins[c->origin_count++],
                    config_reader_path(r, to->path, p.rows[i].key));
}

static void read_site(struct config_reader *r, const yaml_node_t *node, struct config_site *s,
                      const char *path)
{
    struct config_place place = config_node_place(node, path);
    place.field = &s->name;
    bool is_mapping = node->type == YAML_MAPPING_NODE;
    place.is_wrong = !is_mapping;
    config_place_remember(r->l, &place);
    if (!is_mapping) {
        config_mistake(r->l, &place, "%s; allowed: a mapping with hosts and origin",
                       config_node_kind(node));
        return;
    }
    config_read_group(r, node,
                      &(struct config_spot){ .pattern = "sites.*", .shown = path, .site = s });
    config_read_presets(r->l, s);
}

static void read_sites(struct config_reader *r, const yaml_node_t *node,
                       const struct config_target *to)
{
    struct config_place place = config_node_place(node, to->path);
    place.field = config_target_field(to);
    config_place_remember(r->l, &place);
    yaml_node_item_t *start = node->data.sequence.items.start;
    size_t count = (size_t)(node->data.sequence.items.top - start);
    struct config *c = r->l->config;
    c->sites = arena_alloc(r->l->arena, count * sizeof *c->sites);
    for (size_t i = 0; i < count && config_reader_spend(r, config_node_at(r, start[i])); i++) {
        struct config_site *s = &c->sites[c->site_count++];
        *s = (struct config_site){ 0 };
        read_site(r, config_node_at(r, start[i]), s, config_format(r->l, "%s[%zu]", to->path, i));
    }
}

static void read_item(struct config_reader *r, const yaml_node_t *node,
                      const struct config_target *to)
{
    bool is_list = node->type == YAML_SEQUENCE_NODE, is_mapping = node->type == YAML_MAPPING_NODE;
    if (config_read_rule_item(r, node, to))
        return;
    if (to->item->type == CONFIG_SWITCH)
        read_switch(r, node, to);
    else if (to->item->type == CONFIG_ORIGINS && is_mapping)
        read_origins(r, node, to);
    else if (to->item->type == CONFIG_SITES && is_list)
        read_sites(r, node, to);
    else if (to->item->type == CONFIG_TTLS && is_mapping)
        set_ttls(r, node, to);
    else if (config_type_is_list(to->item->type) && is_list)
        set_sequence(r, node, to);
    else if (to->item->type != CONFIG_ORIGINS && to->item->type != CONFIG_SITES &&
             to->item->type != CONFIG_TTLS)
        config_read_scalar(r, node, to);
    else {
        config_reader_mistake_kind(r, node, to->path, to->item);
        config_remember_wrong(r, node, to->path, config_target_field(to));
    }
}

static void read_pair(struct config_reader *r, const struct config_pair *pair,
                      const struct config_spot *at)
{
    struct slice key = pair->key;
    bool is_top = at->pattern[0] == '\0';
    if (is_top && slice_has_prefix(key, SLICE("x-")))
        return; /* room for anchors */
    /* a key's own dot or star must not walk the table */
    bool is_word = slice_find(key, '.') == key.len && slice_find(key, '*') == key.len;
    const char *pattern =
        config_format(r->l, "%s%s" SLICE_FMT, at->pattern, is_top ? "" : ".", SLICE_ARG(key));
    const struct config_item *item = is_word ? config_item_find(slice_of(pattern)) : NULL;
    const char *path = config_reader_path(r, at->shown, key);
    if (item != NULL) {
        read_item(r, pair->value,
                  &(struct config_target){
                      .item = item, .base = base_of(r, at, item), .path = path, .at = at });
    } else if (is_word && config_item_is_group(slice_of(pattern))) {
        struct config_spot below = *at;
        below.pattern = pattern;
        below.shown = path;
        config_read_group(r, pair->value, &below);
    } else
        mistake_unknown(r, pair, at);
}

void config_read_group(struct config_reader *r, const yaml_node_t *node,
                       const struct config_spot *at)
{
    if (config_node_is_null(node) || !config_node_has_plain_tag(r, node, at->shown))
        return; /* a heading whose items are all commented out, or told */
    if (node->type != YAML_MAPPING_NODE) {
        struct config_place place = config_node_place(node, at->shown);
        config_mistake(r->l, &place, "%s; allowed: a mapping of its items", config_node_kind(node));
        return;
    }
    struct config_pairs p = config_pairs_of(r, node, at->shown);
    for (size_t i = 0; i < p.count && r->budget > 0; i++)
        read_pair(r, &p.rows[i], at);
}

/* ---- the document ---------------------------------------------------------------------------- */

static struct config_place place_at_offset(struct slice yaml, size_t offset)
{
    struct config_place at = { .line = 1, .column = 1 };
    for (size_t i = 0; i < offset && i < yaml.len; i++) {
        at.column++;
        if (yaml.ptr[i] == '\n') {
            at.line++;
            at.column = 1;
        }
    }
    return at;
}

/* Whether the line up to the mark holds a tab in its indentation: the usual cause, which libyaml
 * does not name. */
static bool has_tab_indent(struct slice yaml, size_t line)
{
    for (size_t at = 1; at < line && yaml.len > 0; at++) {
        size_t end = slice_find(yaml, '\n');
        size_t taken = end < yaml.len ? end + 1 : end;
        yaml = (struct slice){ yaml.ptr + taken, yaml.len - taken };
    }
    for (size_t i = 0; i < yaml.len && (yaml.ptr[i] == ' ' || yaml.ptr[i] == '\t'); i++)
        if (yaml.ptr[i] == '\t')
            return true;
    return false;
}

static void mistake_syntax(struct config_loader *l, const yaml_parser_t *parser, struct slice yaml)
{
    const char *problem = parser->problem == NULL ? "it cannot be read" : parser->problem;
    l->is_unreadable = true;
    if (parser->error == YAML_READER_ERROR) {
        struct config_place at = place_at_offset(yaml, parser->problem_offset);
        config_mistake(l, &at, "not YAML: %s", problem);
        return;
    }
    struct config_place at = { .line = parser->problem_mark.line + 1,
                               .column = parser->problem_mark.column + 1 };
    const char *hint = has_tab_indent(yaml, at.line) ? "; indent with spaces, not with tabs" : "";
    if (parser->context == NULL)
        config_mistake(l, &at, "not YAML: %s%s", problem, hint);
    else if (parser->context_mark.line == parser->problem_mark.line)
        config_mistake(l, &at, "not YAML: %s %s%s", problem, parser->context, hint);
    else
        config_mistake(l, &at, "not YAML: %s %s that begins in line %zu%s", problem,
                       parser->context, parser->context_mark.line + 1, hint);
}

static void read_root(struct config_loader *l, yaml_document_t *document)
{
    struct config_reader r = { .l = l, .document = document, .budget = BUDGET_VISITS };
    const yaml_node_t *root = yaml_document_get_root_node(document);
    if (root == NULL || config_node_is_null(root))
        return; /* nothing but comments: check.c says what is missing */
    if (root->type == YAML_MAPPING_NODE) {
        config_read_group(&r, root, &(struct config_spot){ .pattern = "", .shown = "" });
        return;
    }
    struct config_place at = config_node_place(root, NULL);
    config_mistake(l, &at, "the file %s; allowed: a mapping of items", config_node_kind(root));
    l->is_unreadable = true;
}

/* A second document would be left out without a word. */
static void read_rest(struct config_loader *l, yaml_parser_t *parser, struct slice yaml)
{
    yaml_document_t document;
    if (!yaml_parser_load(parser, &document)) {
        mistake_syntax(l, parser, yaml);
        return;
    }
    if (yaml_document_get_root_node(&document) != NULL) {
        struct config_place at = { .line = document.start_mark.line + 1,
                                   .column = document.start_mark.column + 1 };
        config_mistake(l, &at, "a second document begins here; a configuration is one");
    }
    yaml_document_delete(&document);
}

static void undo_document(void *ptr)
{
    yaml_document_delete(ptr);
}

void config_parse_yaml(struct config_loader *l, struct slice yaml)
{
    yaml_parser_t parser;
    yaml_document_t *document = arena_alloc(&l->own, sizeof *document);
    CHECK(yaml_parser_initialize(&parser)); /* fails for want of memory only */
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)yaml.ptr, yaml.len);
    if (!yaml_parser_load(&parser, document)) {
        mistake_syntax(l, &parser, yaml);
        yaml_parser_delete(&parser);
        return;
    }
    arena_own(&l->own, document, undo_document); /* places show its texts to the end of the load */
    bool has_root = yaml_document_get_root_node(document) != NULL;
    read_root(l, document);
    if (has_root)
        read_rest(l, &parser, yaml);
    yaml_parser_delete(&parser);
}
