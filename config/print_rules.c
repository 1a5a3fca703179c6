/* config/print_rules.c: rules and tests as YAML, from what was written: it
 * reads back to the same. See print.c. */
#include "config/config_internal.h"
#include "config/rules_internal.h"

#include <stdlib.h>

/* ---- values of their own kind ---------------------------------------------------------------- */

static void print_condition(const struct rule_condition *c, FILE *out)
{
    switch (c->kind) {
    case CONDITION_PRESENT: fputs("true", out); return;
    case CONDITION_ABSENT: fputs("false", out); return;
    case CONDITION_GLOBS: config_print_strings(c->values, out); return;
    case CONDITION_REGEX:
        fputs("{ regex: ", out);
        config_print_quoted(c->values[0], out);
        fputs(" }", out);
        return;
    }
    UNREACHABLE();
}

static bool print_conditions(const struct rule_conditions *list, FILE *out)
{
    if (list->count == 0)
        return false;
    fputs(list->is_any ? "[" : "{", out);
    for (size_t i = 0; i < list->count; i++) {
        fputs(i == 0 ? " " : ", ", out);
        config_print_quoted(list->rows[i].name, out);
        if (list->is_any)
            continue;
        fputs(": ", out);
        print_condition(&list->rows[i], out);
    }
    fputs(list->is_any ? " ]" : " }", out);
    return true;
}

/* Rows of one name are one list. */
static bool print_fields(const struct rule_fields *fields, FILE *out)
{
    for (size_t i = 0; i < fields->count; i++) {
        bool is_first = i == 0 || strcmp(fields->rows[i].name, fields->rows[i - 1].name) != 0;
        if (is_first) {
            fputs(i == 0 ? "{ " : " ], ", out);
            config_print_quoted(fields->rows[i].name, out);
        }
        fputs(is_first ? ": [ " : ", ", out);
        config_print_quoted(fields->rows[i].value, out);
    }
    fputs(fields->count > 0 ? " ] }" : "", out);
    return fields->count > 0;
}

bool config_item_print_rule_value(const struct config_item *item, const void *field, FILE *out)
{
    uint32_t number;
    if (item->type == CONFIG_CONDITIONS)
        return print_conditions(field, out);
    if (item->type == CONFIG_FIELDS)
        return print_fields(field, out);
    if (item->type != CONFIG_RULE_CACHE && item->type != CONFIG_DENY)
        return false;
    memcpy(&number, field, sizeof number);
    if (number == RULE_NOT_GIVEN)
        return false;
    if (item->type == CONFIG_DENY)
        fprintf(out, "%u", number);
    else
        fputs(item->choices[number], out);
    return true;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct printing {
    FILE *out;
    const char *first; /* what the next line begins with, in place of its last
                          spaces: "- ", or "" */
    int indent;
};

static void begin_line(struct printing *p)
{
    int len = (int)strlen(p->first);
    fprintf(p->out, "%*s%s", p->indent - len, "", p->first);
    p->first = "";
}

/* "match" of "sites.*.rules.*.match.path" below "sites.*.rules.*". Empty at
 * that level. */
static struct slice group_of(const struct config_item *item, size_t below)
{
    struct slice rest = { item->path + below + 1, strlen(item->path) - below - 1 };
    size_t dot = slice_find(rest, '.');
    return dot == rest.len ? SLICE_NONE : (struct slice){ rest.ptr, dot };
}

static bool is_set(const struct config_item *item, const void *base, char **value)
{
    size_t size;
    FILE *held = open_memstream(value, &size);
    CHECK(held != NULL);
    bool has_value = config_item_print_value(item, base, held);
    CHECK(fclose(held) == 0);
    bool is_off = item->type == CONFIG_BOOL && strcmp(*value, "false") == 0;
    return has_value && !is_off;
}

/* All that is set of the items below `prefix` ("sites.*.rules.*",
 * "sites.*.rules.*.match") in that place. */
struct block {
    const char *prefix;
    const void *base;
    enum config_where where;
};
static void print_block(struct printing *p, const struct block *b)
{
    size_t below = strlen(b->prefix);
    struct slice group = SLICE_NONE;
    for (size_t i = 0; i < config_item_count; i++) {
        const struct config_item *item = &config_items[i];
        char *value;
        if (item->where != b->where || !slice_has_prefix(slice_of(item->path), slice_of(b->prefix)))
            continue;
        struct slice mine = group_of(item, below);
        if (is_set(item, b->base, &value)) {
            if (mine.len > 0 && !slice_equal(mine, group)) {
                begin_line(p);
                fprintf(p->out, SLICE_FMT ":\n", SLICE_ARG(mine));
                group = mine;
            }
            p->indent += mine.len > 0 ? 2 : 0;
            begin_line(p);
            fprintf(p->out, "%s: %s\n", config_item_name(item), value);
            p->indent -= mine.len > 0 ? 2 : 0;
        }
        free(value);
    }
}

static const char in_match[] = "sites.*.rules.*.match";

static void print_match(struct printing *p, const struct rule_match *m, const char *name)
{
    if (!m->asks_request && !m->asks_response && !m->ignores_case && m->opposite == NULL)
        return;
    begin_line(p);
    fprintf(p->out, "%s:\n", name);
    p->indent += 2;
    print_block(p, &(struct block){ in_match, m, IN_MATCH });
    if (m->opposite != NULL)
        print_match(p, m->opposite, "not");
    p->indent -= 2;
}

static void print_rule(struct printing *p, const struct config_rule *r)
{
    p->first = "- ";
    print_match(p, &r->match, "match");
    print_block(p, &(struct block){ "sites.*.rules.*", r, IN_RULE });
}

void config_print_rules(const struct config_site *s, FILE *out)
{
    struct printing p = { .out = out, .first = "", .indent = 8 };
    bool is_begun = false;
    for (size_t i = 0; i < s->rule_count; i++) {
        if (s->rules[i].preset != NULL)
            continue; /* `presets` says it */
        if (!is_begun)
            fputs("    rules:\n", out);
        is_begun = true;
        print_rule(&p, &s->rules[i]);
    }
    if (s->test_count > 0)
        fputs("    tests:\n", out);
    for (size_t i = 0; i < s->test_count; i++) {
        p.first = "- ";
        print_block(&p, &(struct block){ "sites.*.tests.*", &s->tests[i], IN_TEST });
    }
}
