/* config/yaml.c: nodes of a YAML document and the pairs of its mappings; see
 * parse_internal.h. One thread, within a load.
 */
#include "config/parse_internal.h"

#include <stdlib.h>

enum {
    MERGE_DEPTH_MAX = 16,
    KEYS_MAX = 4096, /* in one mapping; they are compared with each other */
    NAME_MAX_BYTES = 64,
};

/* ---- nodes ----------------------------------------------------------------------------------- */

struct slice config_node_text(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE)
        return SLICE_NONE;
    return (struct slice){ (const char *)node->data.scalar.value, node->data.scalar.length };
}

struct config_place config_node_place(const yaml_node_t *node, const char *path)
{
    return (struct config_place){ .path = path,
                                  .text = config_node_text(node),
                                  .line = node->start_mark.line + 1,
                                  .column = node->start_mark.column + 1 };
}

const yaml_node_t *config_node_at(struct config_reader *r, int index)
{
    const yaml_node_t *node = yaml_document_get_node(r->document, index);
    CHECK(node != NULL);
    return node;
}

const yaml_node_t *config_node_entry(struct config_reader *r, const yaml_node_t *node, size_t index)
{
    return config_node_at(r, node->data.sequence.items.start[index]);
}

size_t config_node_entry_count(const yaml_node_t *node)
{
    return (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
}

bool config_node_is_null(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    struct slice text = config_node_text(node);
    return text.len == 0 || slice_equal(text, SLICE("~")) ||
           slice_equal_nocase(text, SLICE("null"));
}

const char *config_node_kind(const yaml_node_t *node)
{
    if (config_node_is_null(node))
        return "has no value";
    switch (node->type) {
    case YAML_SEQUENCE_NODE: return "is a list";
    case YAML_MAPPING_NODE: return "is a mapping";
    default: return "is a single value";
    }
}

/* Everything that is left reads as empty, and what is missing by that is no mistake of its own. */
void config_reader_give_up(struct config_reader *r)
{
    r->budget = 0;
    r->l->is_unreadable = true;
}

bool config_reader_spend(struct config_reader *r, const yaml_node_t *node)
{
    if (r->budget == 0)
        return false;
    if (--r->budget > 0)
        return true;
    struct config_place at = config_node_place(node, NULL);
    config_mistake(r->l, &at,
                   "more than %d values once aliases are followed; is it an "
                   "alias of aliases?",
                   BUDGET_VISITS);
    config_reader_give_up(r);
    return false;
}

void config_reader_mistake_kind(struct config_reader *r, const yaml_node_t *node, const char *path,
                                const struct config_item *item)
{
    if (r->budget == 0)
        return;
    struct config_place at = config_node_place(node, path);
    char *allowed = NULL;
    size_t size;
    FILE *out = open_memstream(&allowed, &size);
    CHECK(out != NULL);
    config_item_print_shape(item, out);
    CHECK(fclose(out) == 0);
    config_mistake(r->l, &at, "%s; allowed: %s", config_node_kind(node), allowed);
    free(allowed);
}

/* `!secret` and the like come from other programs' loaders: here they would be read as plain text.
 */
bool config_node_has_plain_tag(struct config_reader *r, const yaml_node_t *node, const char *path)
{
    const char *tag = (const char *)node->tag;
    if (tag == NULL || strncmp(tag, "tag:yaml.org,2002:", 18) == 0)
        return true;
    struct config_place at = config_node_place(node, path);
    config_mistake(r->l, &at, "has the tag %s; tags are not supported",
                   config_shown(r->l, slice_of(tag)));
    return false;
}

static bool is_name_char(char c)
{
    char low = ascii_lower(c);
    return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool config_is_name(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_name_char(text.ptr[i]) && (text.ptr[i] != '.' || i == 0))
            return false;
    return text.len > 0 && text.len <= NAME_MAX_BYTES;
}

const char *config_reader_path(struct config_reader *r, const char *shown, struct slice key)
{
    const char *dot = shown[0] == '\0' ? "" : ".";
    if (!config_is_name(key))
        return config_format(r->l, "%s%s%s", shown, dot, config_shown(r->l, key));
    return config_format(r->l, "%s%s" SLICE_FMT, shown, dot, SLICE_ARG(key));
}

/* ---- pairs of a mapping, with what it merges ------------------------------------------------- */

static struct config_pair *pair_find(struct config_pairs *p, struct slice key)
{
    for (size_t i = 0; i < p->count; i++)
        if (slice_equal(p->rows[i].key, key))
            return &p->rows[i];
    return NULL;
}

static void pair_add(struct config_reader *r, struct config_pairs *p,
                     const struct config_pair *pair)
{
    if (p->count == p->room) {
        struct config_pair *old = p->rows;
        p->room = p->room == 0 ? 16 : p->room * 2;
        p->rows = arena_alloc(&r->l->own, p->room * sizeof *p->rows);
        if (p->count > 0)
            memcpy(p->rows, old, p->count * sizeof *p->rows);
    }
    p->rows[p->count++] = *pair;
}

static bool is_merge(const yaml_node_t *key)
{
    return key->type == YAML_SCALAR_NODE && slice_equal(config_node_text(key), SLICE("<<")) &&
           key->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static void own_pair(struct config_reader *r, struct config_pairs *p,
                     const struct config_pair *pair, const char *shown)
{
    struct config_place at = config_node_place(pair->key_node, shown);
    if (pair->key_node->type != YAML_SCALAR_NODE) {
        config_mistake(r->l, &at, "has a key that is not a plain text");
        return;
    }
    const struct config_pair *first = pair_find(p, pair->key);
    if (first != NULL) {
        at.path = config_reader_path(r, shown, pair->key);
        config_mistake(r->l, &at, "given twice; the first is in line %zu",
                       first->key_node->start_mark.line + 1);
        return;
    }
    if (p->count < KEYS_MAX)
        pair_add(r, p, pair);
    else if (p->count == KEYS_MAX) {
        config_mistake(r->l, &at, "more than %d keys in one mapping", KEYS_MAX);
        config_reader_give_up(r);
    }
}

static void merge_node(struct config_reader *r, struct config_pairs *p, const yaml_node_t *from,
                       const char *shown, unsigned depth);

/* Keys that are there already win, whoever brought them: the mapping's own, then the earlier merge
 * (YAML merge key). */
static void merge_mapping(struct config_reader *r, struct config_pairs *p, const yaml_node_t *from,
                          const char *shown, unsigned depth)
{
    for (yaml_node_pair_t *n = from->data.mapping.pairs.start; n < from->data.mapping.pairs.top;
         n++) {
        const yaml_node_t *key = config_node_at(r, n->key);
        if (!config_reader_spend(r, key))
            return;
        if (is_merge(key) || key->type != YAML_SCALAR_NODE ||
            pair_find(p, config_node_text(key)) != NULL || p->count >= KEYS_MAX)
            continue;
        pair_add(r, p,
                 &(struct config_pair){ config_node_text(key), key, config_node_at(r, n->value) });
    }
    for (yaml_node_pair_t *n = from->data.mapping.pairs.start; n < from->data.mapping.pairs.top;
         n++)
        if (is_merge(config_node_at(r, n->key)))
            merge_node(r, p, config_node_at(r, n->value), shown, depth + 1);
}

static void merge_node(struct config_reader *r, struct config_pairs *p, const yaml_node_t *from,
                       const char *shown, unsigned depth)
{
    if (!config_reader_spend(r, from))
        return;
    struct config_place at = config_node_place(from, shown);
    if (depth > MERGE_DEPTH_MAX) {
        config_mistake(r->l, &at, "merges (<<) nest deeper than %d; do they go in a circle?",
                       MERGE_DEPTH_MAX);
        config_reader_give_up(r);
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
        const yaml_node_t *one = config_node_at(r, *i);
        if (one->type == YAML_MAPPING_NODE) {
            merge_node(r, p, one, shown, depth);
            continue;
        }
        at = config_node_place(one, shown);
        config_mistake(r->l, &at, "the merge key << takes a mapping, or a list of mappings");
    }
}

struct config_pairs config_pairs_of(struct config_reader *r, const yaml_node_t *node,
                                    const char *shown)
{
    struct config_pairs p = { 0 };
    yaml_node_pair_t *start = node->data.mapping.pairs.start, *top = node->data.mapping.pairs.top;
    bool merges = false;
    for (yaml_node_pair_t *n = start; n < top; n++) {
        const yaml_node_t *key = config_node_at(r, n->key);
        if (!config_reader_spend(r, key))
            break;
        if (is_merge(key))
            merges = true;
        else
            own_pair(
                r, &p,
                &(struct config_pair){ config_node_text(key), key, config_node_at(r, n->value) },
                shown);
    }
    for (yaml_node_pair_t *n = start; merges && n < top; n++)
        if (is_merge(config_node_at(r, n->key)))
            merge_node(r, &p, config_node_at(r, n->value), shown, 1);
    return p;
}
