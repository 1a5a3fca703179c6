/* admin/client_explanation.c: an explanation in words; see client_explain.h.
 *
 * First the end and its reason, then what it depends on and what would change it, then what led
 * there, in the order of a request. A block has its name at the left and its lines behind it.
 */
#include "admin/client_explain.h"

#include <stdarg.h>
#include <stdlib.h>

enum { NAME_WIDTH = 10 };

static const char *text_of(const json_t *one)
{
    const char *s = json_string_value(one);
    return s == NULL ? "" : s;
}

static const char *text(const json_t *of, const char *member)
{
    return text_of(json_object_get(of, member));
}

static long long number(const json_t *of, const char *member)
{
    return (long long)json_integer_value(json_object_get(of, member));
}

/* A line of a block: its name the first time, then the same width of nothing. */
struct block {
    FILE *out;
    const char *name;
};
static void line(struct block *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void line(struct block *b, const char *format, ...)
{
    char *all = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&all, format, args);
    va_end(args);
    CHECK(length >= 0);
    /* an origin's fields, among others: nothing of them is to reach the terminal as a command */
    for (char *c = all; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f ||
            (c > all && (unsigned char)c[-1] == 0xc2 && (unsigned char)*c < 0xa0))
            *c = '?';
    fprintf(b->out, "%-*s%s\n", NAME_WIDTH, b->name, all);
    free(all);
    b->name = "";
}

static void lines(struct block *b, const json_t *list)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)list, i, one) line(b, "%s", text_of(one));
}

/* "a, b and c" without the "and". */
static char *joined(const json_t *list)
{
    char *all = NULL;
    size_t length = 0, i;
    json_t *one;
    FILE *out = open_memstream(&all, &length);
    CHECK(out != NULL);
    json_array_foreach((json_t *)list, i, one)
        fprintf(out, "%s%s", i > 0 ? ", " : "", text_of(one));
    fclose(out);
    return all;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void print_verdict(const json_t *x, FILE *out)
{
    const json_t *v = json_object_get(x, "verdict");
    fprintf(out, "%s %s\n", text(x, "method"), text(x, "url"));
    fprintf(out, "%s (%s): %s\n", text(v, "outcome"), text(v, "reason"), text(v, "sentence"));
    struct block status = { out, "status" }, or = { out, "or" }, change = { out, "change" };
    if (json_object_get(v, "status") != NULL)
        line(&status, "%lld", number(v, "status"));
    lines(& or, json_object_get(v, "or"));
    lines(&change, json_object_get(v, "change"));
    fputc('\n', out);
}

/* ---- the request ----------------------------------------------------------------------------- */

static void print_site(const json_t *x, FILE *out)
{
    const json_t *site = json_object_get(x, "site"), *hosts = json_object_get(x, "hosts");
    struct block b = { out, "site" };
    if (site != NULL)
        line(&b, "%s, by \"%s\"; origin %s", text(site, "name"), text(site, "pattern"),
             text(site, "origin"));
    if (hosts == NULL)
        return;
    char *all = joined(hosts);
    line(&b, "none; there are %s", all);
    free(all);
}

static void print_rules(const json_t *x, FILE *out)
{
    struct block b = { out, "rules" };
    const json_t *rules = json_object_get(x, "rules");
    size_t i;
    json_t *r;
    json_array_foreach((json_t *)rules, i, r)
    {
        bool has_name = text(r, "name")[0] != '\0';
        line(&b, "%s  %s%s%s", text(r, "where"), has_name ? text(r, "name") : "",
             has_name ? ": " : "", text(r, "summary"));
    }
    if (rules != NULL && json_array_size(rules) == 0)
        line(&b, "none matches");
}

static void print_plan(const json_t *x, FILE *out)
{
    const json_t *plan = json_object_get(x, "plan");
    struct block b = { out, "way" }, a = { out, "answer" };
    const json_t *answer = json_object_get(x, "answer");
    const char *way = text(plan, "way");
    if (strcmp(way, "lookup") == 0)
        line(&b, "the store first, then origin %s", text(plan, "origin"));
    else if (strcmp(way, "pass") == 0)
        line(&b, "straight to origin %s", text(plan, "origin"));
    if (json_object_get(x, "rewritten") != NULL)
        line(&b, "asked as %s", text(x, "rewritten"));
    if (answer != NULL && text(answer, "location")[0] != '\0')
        line(&a, "%lld, to %s", number(answer, "status"), text(answer, "location"));
    else if (answer != NULL)
        line(&a, "%lld, %s, %lld bytes", number(answer, "status"), text(answer, "type"),
             number(answer, "bytes"));
}

static void print_edits(const json_t *x, FILE *out)
{
    struct block b = { out, "edits" }, r = { out, "adds" };
    size_t i;
    json_t *e;
    json_array_foreach(json_object_get(x, "request_edits"), i, e)
    {
        if (json_is_null(json_object_get(e, "after")))
            line(&b, "%s: \"%s\" is removed", text(e, "field"), text(e, "before"));
        else if (json_is_null(json_object_get(e, "before")))
            line(&b, "%s: \"%s\" is added", text(e, "field"), text(e, "after"));
        else
            line(&b, "%s: \"%s\" becomes \"%s\"", text(e, "field"), text(e, "before"),
                 text(e, "after"));
    }
    lines(&r, json_object_get(x, "response_fields"));
}

static void print_key(const json_t *x, FILE *out)
{
    struct block k = { out, "key" }, d = { out, "dropped" };
    const json_t *key = json_object_get(x, "key");
    size_t i;
    json_t *one;
    if (key == NULL)
        return;
    line(&k, "%s, in site %s", text(key, "url"), text(key, "site"));
    json_array_foreach(json_object_get(key, "extra"), i, one) line(&k, "and %s", text_of(one));
    json_array_foreach(json_object_get(x, "dropped_from_key"), i, one)
        line(&d, "%s, by %s", text(one, "parameter"), text(one, "by"));
}

static void print_selecting(struct block *b, const json_t *selecting)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)selecting, i, one)
    {
        bool is_there = json_is_string(json_object_get(one, "value"));
        line(b, "%s: %s", text(one, "field"), is_there ? text(one, "value") : "(not sent)");
    }
}

/* ---- the store ------------------------------------------------------------------------------- */

static void print_object(const json_t *o, FILE *out)
{
    struct block b = { out, json_is_true(json_object_get(o, "selected")) ? "stored" : "also" };
    line(&b, "status %lld, %lld bytes%s%s%s%s, stored %lld s ago", number(o, "status"),
         number(o, "bytes"), text(o, "type")[0] != '\0' ? ", " : "", text(o, "type"),
         text(o, "coding")[0] != '\0' ? ", " : "", text(o, "coding"), number(o, "stored_s_ago"));
    if (json_is_true(json_object_get(o, "sliced")))
        line(&b, "in slices: those that are missing are fetched when they are asked for");
    if (json_object_get(o, "part") != NULL)
        line(&b, "a part: bytes %s", text(o, "part"));
    if (strcmp(text(o, "state"), "complete") != 0)
        line(&b, "%s", text(o, "state"));
    const json_t *extra = json_object_get(o, "key_extra"), *tags = json_object_get(o, "tags");
    if (extra != NULL)
        line(&b, "another key of the same URL:");
    lines(&b, extra);
    print_selecting(&b, json_object_get(o, "selecting"));
    if (json_array_size(tags) > 0) {
        char *all = joined(tags);
        line(&b, "tags %s", all);
        free(all);
    }
    lines(&b, json_object_get(o, "clocks"));
}

static void print_stored(const json_t *x, FILE *out)
{
    const json_t *stored = json_object_get(x, "stored"), *fill = json_object_get(x, "fill");
    struct block v = { out, "variant" }, b = { out, "stored" }, f = { out, "fill" },
                 u = { out, "memory" };
    size_t i;
    json_t *o;
    print_selecting(&v, json_object_get(x, "variant"));
    json_array_foreach((json_t *)stored, i, o) print_object(o, out);
    if (stored != NULL && json_array_size(stored) == 0)
        line(&b, "nothing under this URL");
    if ((long long)json_array_size(stored) < number(x, "stored_count"))
        line(&b, "and more: %lld in all", number(x, "stored_count"));
    if (json_is_object(fill))
        line(&f, "under way; %lld read from it", number(fill, "readers"));
    if (json_is_true(json_object_get(x, "uncacheable")))
        line(&u, "the last answer for this key could not be shared");
}

/* ---- the origin ------------------------------------------------------------------------------ */

static void print_fetch(const json_t *x, FILE *out)
{
    const json_t *f = json_object_get(x, "fetch"), *dropped;
    struct block b = { out, "origin" };
    if (f == NULL)
        return;
    fputc('\n', out);
    if (!json_is_true(json_object_get(f, "asked"))) {
        line(&b, "not asked: %s", text(f, "why"));
        return;
    }
    if (json_object_get(f, "error") != NULL) {
        line(&b, "%s: %s%s%s", text(f, "server"), text(f, "why"),
             text(f, "detail")[0] != '\0' ? ": " : "", text(f, "detail"));
    } else {
        line(&b, "%s answered %lld after %lld ms", text(f, "server"), number(f, "status"),
             number(f, "delay_ms"));
        lines(&b, json_object_get(f, "fields"));
        struct block s = { out, "kept" };
        bool is_stored = json_is_true(json_object_get(f, "stored"));
        if (is_stored)
            line(&s, "yes: %s", text(f, "why"));
        if (json_is_true(json_object_get(f, "sliced")))
            line(&s, "in slices");
        else
            line(&s, "no (%s): %s", text(f, "storable"), text(f, "why"));
        if (is_stored && text(f, "control_from")[0] != '\0')
            line(&s, "what counts is %s", text(f, "control_from"));
        if (json_object_get(f, "rule") != NULL || json_object_get(f, "lifetime_rule") != NULL)
            line(&s, "by the rule at %s%s", text(f, "rule"), text(f, "lifetime_rule"));
        print_selecting(&s, json_object_get(f, "selecting"));
        lines(&s, json_object_get(f, "clocks"));
        dropped = json_object_get(f, "fields_not_stored");
        if (json_array_size(dropped) > 0) {
            char *all = joined(dropped);
            line(&s, "without %s", all);
            free(all);
        }
        struct block c = { out, "change" };
        if (json_object_get(f, "change") != NULL)
            line(&c, "%s", text(f, "change"));
    }
    struct block e = { out, "so" };
    line(&e, "a request now ends in %s (%s)", text(f, "outcome"), text(f, "reason"));
}

void client_print_explanation(const json_t *x, FILE *out)
{
    print_verdict(x, out);
    print_site(x, out);
    print_rules(x, out);
    print_plan(x, out);
    print_edits(x, out);
    print_key(x, out);
    print_stored(x, out);
    print_fetch(x, out);
}
