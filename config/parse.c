/* config/parse.c: YAML to items. libyaml makes a document whose nodes know their line and column;
 * this file walks it along the table of items. Every mistake is gathered, the walk goes on behind
 * it.
 *
 * Anchors, aliases and the merge key (<<) work. An alias is the same node again, so a few hundred
 * bytes can stand for billions of values or for a circle: the walk has a budget of visits, and it
 * only ever goes as deep as the table.
 */
#include "config/config_internal.h"

#include <stdlib.h>
#include <yaml.h>

enum {
    BUDGET_VISITS = 100000,
    MERGE_DEPTH_MAX = 16,
    KEYS_MAX = 4096, /* in one mapping; they are compared with each other */
    NAME_MAX_BYTES = 64,
};

struct reader {
    struct config_loader *l;
    yaml_document_t *document;
    size_t budget;
};

/* Where the walk stands: the path in the table, the path as shown, and what is being filled. */
struct spot {
    const char *pattern, *shown;
    struct config_origin *origin;
    struct config_site *site;
};

struct pair {
    struct slice key;
    const yaml_node_t *key_node, *value;
};

struct pairs {
    struct pair *rows;
    size_t count, room;
};

static void read_group(struct reader *r, const yaml_node_t *node, const struct spot *at);

/* ---- nodes ----------------------------------------------------------------------------------- */

static struct slice text_of(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE)
        return SLICE_NONE;
    return (struct slice){ (const char *)node->data.scalar.value, node->data.scalar.length };
}

static struct config_place place_of(const yaml_node_t *node, const char *path)
{
    return (struct config_place){ .path = path,
                                  .text = text_of(node),
                                  .line = node->start_mark.line + 1,
                                  .column = node->start_mark.column + 1 };
}

static const yaml_node_t *node_at(struct reader *r, int index)
{
    const yaml_node_t *node = yaml_document_get_node(r->document, index);
    CHECK(node != NULL);
    return node;
}

static bool is_null(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    struct slice text = text_of(node);
    return text.len == 0 || slice_equal(text, SLICE("~")) ||
           slice_equal_nocase(text, SLICE("null"));
}

static const char *kind_of(const yaml_node_t *node)
{
    if (is_null(node))
        return "has no value";
    switch (node->type) {
    case YAML_SEQUENCE_NODE: return "is a list";
    case YAML_MAPPING_NODE: return "is a mapping";
    default: return "is a single value";
    }
}

/* Everything that is left reads as empty, and what is missing by that is no mistake of its own. */
static void give_up(struct reader *r)
{
    r->budget = 0;
    r->l->is_unreadable = true;
}

static bool spend(struct reader *r, const yaml_node_t *node)
{
    if (r->budget == 0)
        return false;
    if (--r->budget > 0)
        return true;
    struct config_place at = place_of(node, NULL);
    config_mistake(r->l, &at,
                   "more than %d values once aliases are followed; is it an alias of aliases?",
                   BUDGET_VISITS);
    give_up(r);
    return false;
}

static void mistake_kind(struct reader *r, const yaml_node_t *node, const char *path,
                         const struct config_item *item)
{
    if (r->budget == 0)
        return;
    struct config_place at = place_of(node, path);
    char *allowed = NULL;
    size_t size;
    FILE *out = open_memstream(&allowed, &size);
    CHECK(out != NULL);
    config_item_print_shape(item, out);
    CHECK(fclose(out) == 0);
    config_mistake(r->l, &at, "%s; allowed: %s", kind_of(node), allowed);
    free(allowed);
}

/* `!secret` and the like come from other programs' loaders: here they would be read as plain text.
 */
static bool has_plain_tag(struct reader *r, const yaml_node_t *node, const char *path)
{
    const char *tag = (const char *)node->tag;
    if (tag == NULL || strncmp(tag, "tag:yaml.org,2002:", 18) == 0)
        return true;
    struct config_place at = place_of(node, path);
    config_mistake(r->l, &at, "has the tag %s; tags are not supported",
                   config_shown(r->l, slice_of(tag)));
    return false;
}

static bool is_name_char(char c)
{
    char low = ascii_lower(c);
    return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static bool is_name(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_name_char(text.ptr[i]) && (text.ptr[i] != '.' || i == 0))
            return false;
    return text.len > 0 && text.len <= NAME_MAX_BYTES;
}

static const char *path_below(struct reader *r, const char *shown, struct slice key)
{
    const char *dot = shown[0] == '\0' ? "" : ".";
    if (!is_name(key))
        return config_format(r->l, "%s%s%s", shown, dot, config_shown(r->l, key));
    return config_format(r->l, "%s%s" SLICE_FMT, shown, dot, SLICE_ARG(key));
}

/* ---- pairs of a mapping, with what it merges ------------------------------------------------- */

static struct pair *pair_find(struct pairs *p, struct slice key)
{
    for (size_t i = 0; i < p->count; i++)
        if (slice_equal(p->rows[i].key, key))
            return &p->rows[i];
    return NULL;
}

static void pair_add(struct reader *r, struct pairs *p, const struct pair *pair)
{
    if (p->count == p->room) {
        struct pair *old = p->rows;
        p->room = p->room == 0 ? 16 : p->room * 2;
        p->rows = arena_alloc(&r->l->own, p->room * sizeof *p->rows);
        if (p->count > 0)
            memcpy(p->rows, old, p->count * sizeof *p->rows);
    }
    p->rows[p->count++] = *pair;
}

static bool is_merge(const yaml_node_t *key)
{
    return key->type == YAML_SCALAR_NODE && slice_equal(text_of(key), SLICE("<<")) &&
           key->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static void own_pair(struct reader *r, struct pairs *p, const struct pair *pair, const char *shown)
{
    struct config_place at = place_of(pair->key_node, shown);
    if (pair->key_node->type != YAML_SCALAR_NODE) {
        config_mistake(r->l, &at, "has a key that is not a plain text");
        return;
    }
    const struct pair *first = pair_find(p, pair->key);
    if (first != NULL) {
        at.path = path_below(r, shown, pair->key);
        config_mistake(r->l, &at, "given twice; the first is in line %zu",
                       first->key_node->start_mark.line + 1);
        return;
    }
    if (p->count < KEYS_MAX)
        pair_add(r, p, pair);
    else if (p->count == KEYS_MAX) {
        config_mistake(r->l, &at, "more than %d keys in one mapping", KEYS_MAX);
        give_up(r);
    }
}

static void merge_node(struct reader *r, struct pairs *p, const yaml_node_t *from,
                       const char *shown, unsigned depth);

/* Keys that are there already win, whoever brought them: the mapping's own, then the earlier merge
 * (YAML merge key). */
static void merge_mapping(struct reader *r, struct pairs *p, const yaml_node_t *from,
                          const char *shown, unsigned depth)
{
    for (yaml_node_pair_t *n = from->data.mapping.pairs.start; n < from->data.mapping.pairs.top;
         n++) {
        const yaml_node_t *key = node_at(r, n->key);
        if (!spend(r, key))
            return;
        if (is_merge(key) || key->type != YAML_SCALAR_NODE || pair_find(p, text_of(key)) != NULL ||
            p->count >= KEYS_MAX)
            continue;
        pair_add(r, p, &(struct pair){ text_of(key), key, node_at(r, n->value) });
    }
    for (yaml_node_pair_t *n = from->data.mapping.pairs.start; n < from->data.mapping.pairs.top;
         n++)
        if (is_merge(node_at(r, n->key)))
            merge_node(r, p, node_at(r, n->value), shown, depth + 1);
}

static void merge_node(struct reader *r, struct pairs *p, const yaml_node_t *from,
                       const char *shown, unsigned depth)
{
    if (!spend(r, from))
        return;
    struct config_place at = place_of(from, shown);
    if (depth > MERGE_DEPTH_MAX) {
        config_mistake(r->l, &at, "merges (<<) nest deeper than %d; do they go in a circle?",
                       MERGE_DEPTH_MAX);
        give_up(r);
        return;
    }
    if (from->type == YAML_MAPPING_NODE) {
        merge_mapping(r, p, from, shown, depth);
        return;
    }
    bool is_list = from->type == YAML_SEQUENCE_NODE;
    if (!is_list) {
        config_mistake(r->l, &at, "the merge key << takes a mapping, or a list of mappings");
        return;
    }
    for (yaml_node_item_t *i = from->data.sequence.items.start; i < from->data.sequence.items.top;
         i++) {
        const yaml_node_t *one = node_at(r, *i);
        if (one->type == YAML_MAPPING_NODE) {
            merge_node(r, p, one, shown, depth);
            continue;
        }
        at = place_of(one, shown);
        config_mistake(r->l, &at, "the merge key << takes a mapping, or a list of mappings");
    }
}

static struct pairs pairs_of(struct reader *r, const yaml_node_t *node, const char *shown)
{
    struct pairs p = { 0 };
    yaml_node_pair_t *start = node->data.mapping.pairs.start, *top = node->data.mapping.pairs.top;
    bool merges = false;
    for (yaml_node_pair_t *n = start; n < top; n++) {
        const yaml_node_t *key = node_at(r, n->key);
        if (!spend(r, key))
            break;
        if (is_merge(key))
            merges = true;
        else
            own_pair(r, &p, &(struct pair){ text_of(key), key, node_at(r, n->value) }, shown);
    }
    for (yaml_node_pair_t *n = start; merges && n < top; n++)
        if (is_merge(node_at(r, n->key)))
            merge_node(r, &p, node_at(r, n->value), shown, 1);
    return p;
}

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
static const char *same_name_elsewhere(struct reader *r, struct slice key)
{
    for (size_t i = 0; i < config_item_count; i++) {
        struct slice path = slice_of(config_items[i].path);
        if (path.len <= key.len || !slice_has_suffix(path, key) ||
            path.ptr[path.len - key.len - 1] != '.')
            continue;
        size_t star = slice_find(path, '*');
        if (star == path.len)
            return config_format(r->l, "; did you mean " SLICE_FMT "?", SLICE_ARG(path));
        return config_format(r->l, "; did you mean " SLICE_FMT "NAME%s?", (int)star, path.ptr,
                             path.ptr + star + 1);
    }
    return "";
}

static void mistake_unknown(struct reader *r, const struct pair *pair, const struct spot *at)
{
    const char *path = path_below(r, at->shown, pair->key);
    struct config_place place = place_of(pair->key_node, path);
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
    const char *question = config_nearest_question(r->l, &near, prefix);
    if (question[0] == '\0' && pair->key.len > 0)
        question = same_name_elsewhere(r, pair->key);
    config_mistake(r->l, &place, "unknown item%s", question);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void *base_of(struct reader *r, const struct spot *at, const struct config_item *item)
{
    switch (item->where) {
    case IN_CONFIG: return r->l->config;
    case IN_ORIGIN: return at->origin;
    case IN_SITE: return at->site;
    }
    UNREACHABLE();
}

/* Remembers that the item was given, and that its mistake is told. */
static void remember_wrong(struct reader *r, const yaml_node_t *node, const char *path,
                           const void *field)
{
    struct config_place place = place_of(node, path);
    place.field = field;
    place.is_wrong = true;
    config_place_remember(r->l, &place);
}

struct target {
    const struct config_item *item;
    void *base;
    const char *path;
};

static const void *field_of(const struct target *to)
{
    return (char *)to->base + to->item->offset;
}

/* False with a mistake told. `path` is the node's own: "listen[1]". */
static bool read_text(struct reader *r, const yaml_node_t *node, const struct target *to,
                      const char *path, struct config_text *text)
{
    if (!spend(r, node) || !has_plain_tag(r, node, path))
        return false;
    *text = (struct config_text){ .text = text_of(node),
                                  .line = node->start_mark.line + 1,
                                  .column = node->start_mark.column + 1 };
    if (node->type == YAML_SCALAR_NODE && !is_null(node))
        return true;
    mistake_kind(r, node, path, to->item);
    return false;
}

static void set_texts(struct reader *r, const yaml_node_t *node, const struct target *to,
                      struct config_input *in)
{
    struct config_place place = place_of(node, to->path);
    in->path = to->path;
    in->line = place.line;
    in->column = place.column;
    config_set(r->l, to->item, to->base, in);
}

static void set_scalar(struct reader *r, const yaml_node_t *node, const struct target *to)
{
    struct config_text text;
    if (!read_text(r, node, to, to->path, &text)) {
        remember_wrong(r, node, to->path, field_of(to));
        return;
    }
    set_texts(r, node, to, &(struct config_input){ .texts = &text, .count = 1 });
}

static void set_sequence(struct reader *r, const yaml_node_t *node, const struct target *to)
{
    yaml_node_item_t *start = node->data.sequence.items.start;
    size_t count = (size_t)(node->data.sequence.items.top - start), wrong_count = 0;
    struct config_text *texts = arena_alloc(&r->l->own, count * sizeof(struct config_text));
    for (size_t i = 0; i < count && r->budget > 0; i++) {
        const char *path = config_format(r->l, "%s[%zu]", to->path, i);
        if (!read_text(r, node_at(r, start[i]), to, path, &texts[i]))
            wrong_count++;
    }
    if (wrong_count > 0 || r->budget == 0)
        remember_wrong(r, node, to->path, field_of(to));
    else
        set_texts(r, node, to,
                  &(struct config_input){ .texts = texts, .count = count, .is_sequence = true });
}

static void set_ttls(struct reader *r, const yaml_node_t *node, const struct target *to)
{
    struct pairs p = pairs_of(r, node, to->path);
    struct config_text *texts = arena_alloc(&r->l->own, p.count * 2 * sizeof(struct config_text));
    size_t count = 0;
    for (size_t i = 0; i < p.count; i++) {
        const char *path = path_below(r, to->path, p.rows[i].key);
        if (read_text(r, p.rows[i].key_node, to, path, &texts[count]) &&
            read_text(r, p.rows[i].value, to, path, &texts[count + 1]))
            count += 2;
    }
    set_texts(r, node, to, &(struct config_input){ .texts = texts, .count = count });
}

static void read_switch(struct reader *r, const yaml_node_t *node, const struct target *to)
{
    if (is_null(node))
        return; /* a heading whose items are all commented out */
    if (node->type != YAML_MAPPING_NODE) {
        set_scalar(r, node, to);
        return;
    }
    struct config_text on = { .text = SLICE("on") };
    set_texts(r, node, to, &(struct config_input){ .texts = &on, .count = 1 });
    read_group(r, node, &(struct spot){ .pattern = to->item->path, .shown = to->path });
}

static void read_origin(struct reader *r, const struct pair *pair, struct config_origin *o,
                        const char *path)
{
    *o = (struct config_origin){ .name = arena_string(r->l->arena, pair->key) };
    struct config_place place = place_of(pair->key_node, path);
    if (!is_name(pair->key))
        config_mistake(r->l, &place, "is not a name; allowed: up to 64 letters, digits, - _ and .");
    size_t first_place = r->l->place_count;
    place.field = &o->name;
    config_place_remember(r->l, &place);
    config_set_defaults(r->l, IN_ORIGIN, o);
    if (pair->value->type != YAML_MAPPING_NODE) {
        struct config_place at = place_of(pair->value, path);
        config_mistake(r->l, &at, "%s; allowed: a mapping with servers or root",
                       kind_of(pair->value));
        return;
    }
    read_group(r, pair->value,
               &(struct spot){ .pattern = "origins.*", .shown = path, .origin = o });
    config_check_origin(r->l, o, first_place);
}

static void read_origins(struct reader *r, const yaml_node_t *node, const struct target *to)
{
    struct config_place place = place_of(node, to->path);
    place.field = field_of(to);
    config_place_remember(r->l, &place);
    struct pairs p = pairs_of(r, node, to->path);
    struct config *c = r->l->config;
    c->origins = arena_alloc(r->l->arena, p.count * sizeof *c->origins);
    for (size_t i = 0; i < p.count && r->budget > 0; i++)
        read_origin(r, &p.rows[i], &c->origins[c->origin_count++],
                    path_below(r, to->path, p.rows[i].key));
}

static void read_site(struct reader *r, const yaml_node_t *node, struct config_site *s,
                      const char *path)
{
    struct config_place place = place_of(node, path);
    place.field = &s->name;
    bool is_mapping = node->type == YAML_MAPPING_NODE;
    place.is_wrong = !is_mapping;
    config_place_remember(r->l, &place);
    if (is_mapping)
        read_group(r, node, &(struct spot){ .pattern = "sites.*", .shown = path, .site = s });
    else
        config_mistake(r->l, &place, "%s; allowed: a mapping with hosts and origin", kind_of(node));
}

static void read_sites(struct reader *r, const yaml_node_t *node, const struct target *to)
{
    struct config_place place = place_of(node, to->path);
    place.field = field_of(to);
    config_place_remember(r->l, &place);
    yaml_node_item_t *start = node->data.sequence.items.start;
    size_t count = (size_t)(node->data.sequence.items.top - start);
    struct config *c = r->l->config;
    c->sites = arena_alloc(r->l->arena, count * sizeof *c->sites);
    for (size_t i = 0; i < count && spend(r, node_at(r, start[i])); i++) {
        struct config_site *s = &c->sites[c->site_count++];
        *s = (struct config_site){ 0 };
        read_site(r, node_at(r, start[i]), s, config_format(r->l, "%s[%zu]", to->path, i));
    }
}

static void read_item(struct reader *r, const yaml_node_t *node, const struct target *to)
{
    bool is_list = node->type == YAML_SEQUENCE_NODE, is_mapping = node->type == YAML_MAPPING_NODE;
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
        set_scalar(r, node, to);
    else {
        mistake_kind(r, node, to->path, to->item);
        remember_wrong(r, node, to->path, field_of(to));
    }
}

static void read_pair(struct reader *r, const struct pair *pair, const struct spot *at)
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
    const char *path = path_below(r, at->shown, key);
    if (item != NULL)
        read_item(r, pair->value,
                  &(struct target){ .item = item, .base = base_of(r, at, item), .path = path });
    else if (is_word && config_item_is_group(slice_of(pattern)))
        read_group(r, pair->value, &(struct spot){ .pattern = pattern, .shown = path });
    else
        mistake_unknown(r, pair, at);
}

static void read_group(struct reader *r, const yaml_node_t *node, const struct spot *at)
{
    if (is_null(node) || !has_plain_tag(r, node, at->shown))
        return; /* a heading whose items are all commented out, or told */
    if (node->type != YAML_MAPPING_NODE) {
        struct config_place place = place_of(node, at->shown);
        config_mistake(r->l, &place, "%s; allowed: a mapping of its items", kind_of(node));
        return;
    }
    struct pairs p = pairs_of(r, node, at->shown);
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
    struct reader r = { .l = l, .document = document, .budget = BUDGET_VISITS };
    const yaml_node_t *root = yaml_document_get_root_node(document);
    if (root == NULL || is_null(root))
        return; /* nothing but comments: check.c says what is missing */
    if (root->type == YAML_MAPPING_NODE) {
        read_group(&r, root, &(struct spot){ .pattern = "", .shown = "" });
        return;
    }
    struct config_place at = place_of(root, NULL);
    config_mistake(l, &at, "the file %s; allowed: a mapping of items", kind_of(root));
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
