/* config/parse_internal.h: what the files share that read YAML: yaml.c (nodes and pairs), parse.c (the walk along the
 * table of items), parse_rules.c (what rules and tests have of their own). One thread, within a load.
 */
#ifndef CONFIG_PARSE_INTERNAL_H
#define CONFIG_PARSE_INTERNAL_H
#include "config/config_internal.h"
#include "config/rules_internal.h"
#include <yaml.h>

enum { BUDGET_VISITS = 100000 };

struct config_reader {
    struct config_loader *l;
    yaml_document_t *document;
    size_t budget;
};

/* ---- yaml.c ------------------------------------------------------------------------------------- */
struct config_pair {
    struct slice key;
    const yaml_node_t *key_node, *value;
};
struct config_pairs {
    struct config_pair *rows;
    size_t count, room;
};

/* Empty for what is no scalar. */
struct slice config_node_text(const yaml_node_t *node);
struct config_place config_node_place(const yaml_node_t *node, const char *path);
const yaml_node_t *config_node_at(struct config_reader *r, int index);
/* The entry of a list. */
const yaml_node_t *config_node_entry(struct config_reader *r, const yaml_node_t *node, size_t index);
size_t config_node_entry_count(const yaml_node_t *node);
bool config_node_is_null(const yaml_node_t *node);
/* "is a list" */
const char *config_node_kind(const yaml_node_t *node);
/* False with a mistake told. */
bool config_node_has_plain_tag(struct config_reader *r, const yaml_node_t *node, const char *path);
/* A visit of the budget; false when there is none left, which is told once. */
bool config_reader_spend(struct config_reader *r, const yaml_node_t *node);
void config_reader_give_up(struct config_reader *r);
void config_reader_mistake_kind(struct config_reader *r, const yaml_node_t *node, const char *path,
                                const struct config_item *item);
/* "cache.memory" of "cache" and "memory" */
const char *config_reader_path(struct config_reader *r, const char *shown, struct slice key);
bool config_is_name(struct slice text);
/* Keys that are given twice or are no texts are told. */
struct config_pairs config_pairs_of(struct config_reader *r, const yaml_node_t *node, const char *shown);

/* ---- parse.c ------------------------------------------------------------------------------------ */

/* Where the walk stands: the path in the table, the path as shown, and what is being filled. */
struct config_spot {
    const char *pattern, *shown;
    struct config_origin *origin;
    struct config_site *site;
    struct config_rule *rule;
    struct rule_match *match;
    struct config_rule_test *test;
};
struct config_target {
    const struct config_item *item;
    void *base;
    const char *path;
    const struct config_spot *at; /* of the mapping that has the item */
};
static inline void *config_target_field(const struct config_target *to)
{
    return (char *)to->base + to->item->offset;
}

void config_read_group(struct config_reader *r, const yaml_node_t *node, const struct config_spot *at);
/* False with a mistake told. `path` is the node's own: "listen[1]". */
bool config_read_text(struct config_reader *r, const yaml_node_t *node, const struct config_target *to,
                      const char *path, struct config_text *text);
void config_read_scalar(struct config_reader *r, const yaml_node_t *node, const struct config_target *to);
/* Remembers that the item was given, and that its mistake is told. */
void config_remember_wrong(struct config_reader *r, const yaml_node_t *node, const char *path, const void *field);

/* ---- parse_rules.c ------------------------------------------------------------------------------ */

/* For the types that only rules and tests have: false when the item is of another one. */
bool config_read_rule_item(struct config_reader *r, const yaml_node_t *node, const struct config_target *to);
/* The rules of its presets, before its own. */
void config_read_presets(struct config_loader *l, struct config_site *s);
#endif
