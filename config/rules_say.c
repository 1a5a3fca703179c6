/* config/rules_say.c: which rule it is, in a line: for logs, explain and the
 * messages of tests. Any thread. */
#include "config/config_internal.h"
#include "config/rules_internal.h"

#include <stdlib.h>

const char *rule_where(const struct config_rule *r)
{
    return r->where;
}

const char *rule_name(const struct config_rule *r)
{
    return r->name == NULL ? "" : r->name;
}

const char *rule_summary(const struct config_rule *r)
{
    return r->summary;
}

const struct config_rule *rules_at(const struct config_site *site, size_t index)
{
    CHECK(index < site->rule_count);
    return &site->rules[index];
}

/* ---- the summary ----------------------------------------------------------------------------- */

static void say_list(const char *what, char *const *list, FILE *out)
{
    if (list == NULL || list[0] == NULL)
        return;
    fprintf(out, ", %s %s", what, list[0]);
    for (size_t i = 1; list[i] != NULL; i++)
        fprintf(out, " or %s", list[i]);
}

static void say_condition(const struct rule_condition *c, FILE *out)
{
    fputs(c->name, out);
    if (c->kind == CONDITION_ABSENT)
        fputs(" absent", out);
    if (c->kind == CONDITION_REGEX)
        fprintf(out, " ~ %s", c->values[0]);
    for (size_t i = 0; c->kind == CONDITION_GLOBS && c->values[i] != NULL; i++)
        fprintf(out, i == 0 ? " = %s" : " or %s", c->values[i]);
}

static void say_conditions(const char *what, const struct rule_conditions *list, FILE *out)
{
    for (size_t i = 0; i < list->count; i++) {
        if (i == 0)
            fprintf(out, ", %s ", what);
        else
            fputs(list->is_any ? " or " : " and ", out);
        say_condition(&list->rows[i], out);
    }
}

static void say_match(const struct rule_match *m, FILE *out)
{
    say_list("host", m->host, out);
    say_list("path", m->path, out);
    say_list("path ~", m->path_regex, out);
    say_list("method", m->method, out);
    say_list("scheme", m->scheme, out);
    say_conditions("query", &m->query, out);
    say_conditions("field", &m->fields, out);
    say_conditions("cookie", &m->cookies, out);
    say_list("client", m->client, out);
    say_list("status", m->status, out);
    say_conditions("response field", &m->response_fields, out);
}

static void say_seconds(const char *what, uint32_t seconds, FILE *out)
{
    if (seconds == RULE_NOT_GIVEN)
        return;
    fprintf(out, ", %s ", what);
    config_print_duration(seconds * UINT64_C(1000), out);
}

static void say_cache(const struct config_rule *r, FILE *out)
{
    if (r->cache.word != RULE_NOT_GIVEN)
        fputs(r->cache.word == RULE_CACHE_BYPASS ? ", bypass" : ", no_store", out);
    say_seconds("ttl", r->cache.ttl_s, out);
    if (r->cache.ttl_count > 0)
        fputs(", default_ttl", out);
    say_seconds("grace", r->cache.grace_s, out);
    say_seconds("stale_while_revalidate", r->cache.stale_while_revalidate_s, out);
    say_seconds("stale_if_error", r->cache.stale_if_error_s, out);
    say_seconds("keep", r->cache.keep_s, out);
    say_list("ignore", r->cache.ignore, out);
}

static void say_end(const struct config_rule *r, FILE *out)
{
    uint32_t status = r->end == RULE_REDIRECT ? r->redirect.status : r->answer.status;
    uint32_t usual = r->end == RULE_REDIRECT ? 302 : 200;
    if (status == RULE_NOT_GIVEN)
        status = usual;
    if (r->end == RULE_REDIRECT)
        fprintf(out, ", redirect %u to %s", status, r->redirect.to);
    if (r->end == RULE_ANSWER)
        fprintf(out, ", answer %u", status);
    if (r->end == RULE_DENY)
        fprintf(out, ", deny %u", r->deny);
}

static void say_deeds(const struct config_rule *r, FILE *out)
{
    say_cache(r, out);
    say_end(r, out);
    if ((r->does & RULE_DOES_KEY) != 0)
        fputs(", key", out);
    if ((r->does & RULE_DOES_COOKIES) != 0)
        fputs(", cookies", out);
    if ((r->does & RULE_DOES_REQUEST) != 0)
        fputs(", request fields", out);
    if ((r->does & RULE_DOES_RESPONSE) != 0)
        fputs(", response fields", out);
    if ((r->does & RULE_DOES_ORIGIN) != 0)
        fputs(", origin", out);
    if (r->rewrite.path != NULL)
        fprintf(out, ", rewrite to %s", r->rewrite.path);
    else if (r->rewrite.query != NULL)
        fputs(", rewrite the query", out);
    say_list("tags", r->tags, out);
    if (r->stops)
        fputs(", stop", out);
}

/* What was said, without the ", " that it begins with. */
static char *said(void (*say)(const struct config_rule *r, FILE *out), const struct config_rule *r)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    CHECK(out != NULL);
    say(r, out);
    CHECK(fclose(out) == 0);
    if (size >= 2)
        memmove(text, text + 2, size - 1);
    return text;
}

static void say_conditions_of(const struct config_rule *r, FILE *out)
{
    say_match(&r->match, out);
    if (r->match.opposite == NULL)
        return;
    char *text = NULL;
    size_t size;
    FILE *held = open_memstream(&text, &size);
    CHECK(held != NULL);
    say_match(r->match.opposite, held);
    CHECK(fclose(held) == 0);
    fprintf(out, ", not (%s)", size >= 2 ? text + 2 : "");
    free(text);
}

const char *config_rule_summary(struct config_loader *l, const struct config_rule *r)
{
    char *when = said(say_conditions_of, r), *what = said(say_deeds, r);
    struct slice line = arena_printf(l->arena, "%s: %s", when[0] == '\0' ? "always" : when, what);
    free(when);
    free(what);
    return line.ptr;
}
