/* tests/unit/config/rules_help.h: a site's rules from a few lines of YAML, and requests to try them with. */
#ifndef TESTS_RULES_HELP_H
#define TESTS_RULES_HELP_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/config_internal.h"
#include "base/verdict.h"
#include "config/rules_internal.h"

#define ORIGINS "origins: { app: { servers: \"http://a:80\" }, files: { root: /tmp } }\n"
#define RULES   ORIGINS "sites:\n- hosts: \"*\"\n  origin: app\n  rules: " /* line 5 */

/* The configuration of a site with these rules, a YAML list; mistakes fail the test. */
static struct config *rules_load(const char *rules)
{
    size_t bytes = strlen(RULES) + strlen(rules) + 1;
    char *yaml = xmalloc(bytes);
    snprintf(yaml, bytes, "%s%s", RULES, rules);
    struct config_mistakes mistakes;
    struct config *c = config_load_text("t", slice_of(yaml), &mistakes);
    if (c == NULL)
        fail_msg("%s: %s", rules, mistakes.lines[0]);
    config_mistakes_free(&mistakes);
    free(yaml);
    return c;
}

enum { TRIED_FIELDS = 16 };
struct tried {
    struct arena a;
    struct header storage[TRIED_FIELDS], answer_storage[TRIED_FIELDS];
    struct headers headers, answer;
    struct peer peer;
    struct rule_request request;
    struct rule_response response;
    struct rule_effects effects;
};

/* "Name: value\nName: value" */
static void fill_headers(struct headers *h, const char *lines)
{
    struct slice rest = slice_of(lines);
    while (rest.len > 0) {
        size_t line = slice_find(rest, '\n');
        struct slice one = { rest.ptr, line };
        size_t colon = slice_find(one, ':');
        struct slice value = { one.ptr + colon + 1, one.len - colon - 1 };
        assert_true(headers_add(h, (struct slice){ one.ptr, colon }, slice_trim(value)));
        size_t taken = line < rest.len ? line + 1 : line;
        rest = (struct slice){ rest.ptr + taken, rest.len - taken };
    }
}

/* "GET http://host/path?query", or "/path?query" for GET and http://www.example.com. `fields` may be NULL. What it points
 * to is in `t`, whose effects are those of the first site. */
static void try_request(struct tried *t, const struct config *c, const char *line, const char *fields)
{
    struct slice rest = slice_of(line), method = SLICE("GET"), scheme = SLICE("http"), host = SLICE("www.example.com");
    arena_init(&t->a);
    headers_init(&t->headers, t->storage, TRIED_FIELDS);
    headers_init(&t->answer, t->answer_storage, TRIED_FIELDS);
    t->peer = (struct peer){ 0 };
    size_t space = slice_find(rest, ' ');
    if (space < rest.len) {
        method = (struct slice){ rest.ptr, space };
        rest = (struct slice){ rest.ptr + space + 1, rest.len - space - 1 };
    }
    if (rest.len > 0 && rest.ptr[0] != '/' && rest.ptr[0] != '*') {
        size_t colon = slice_find(rest, ':');
        scheme = (struct slice){ rest.ptr, colon };
        rest = (struct slice){ rest.ptr + colon + 3, rest.len - colon - 3 };
        size_t slash = slice_find(rest, '/');
        host = (struct slice){ rest.ptr, slash };
        rest = (struct slice){ rest.ptr + slash, rest.len - slash };
    }
    size_t mark = slice_find(rest, '?');
    fill_headers(&t->headers, fields == NULL ? "" : fields);
    t->request = (struct rule_request){
        .method = method,
        .scheme = scheme,
        .host = host,
        .path = { rest.ptr, mark },
        .query = mark == rest.len ? SLICE_NONE : (struct slice){ rest.ptr + mark + 1, rest.len - mark - 1 },
        .headers = &t->headers,
    };
    rules_on_request(&c->sites[0], &t->request, &t->effects);
}

static inline void tried_fini(struct tried *t)
{
    arena_fini(&t->a);
}
#endif
