/* admin/actions.c: what changes something (purge, reload), and the configuration as it is. */
#include "admin/admin_internal.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

enum { KEY_BYTES_MAX = 64 << 10 };

void admin_config(const struct admin_context *c, struct evhttp_request *req)
{
    struct config *config = c->hooks.config(c->hooks.arg);
    if (config == NULL) {
        admin_reply_error(req, 404, "no configuration is in force");
        return;
    }
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    CHECK(out != NULL);
    config_print(config, out);
    fclose(out);
    config_unref(&config);
    struct evbuffer *body = evbuffer_new();
    evbuffer_add(body, text, length);
    free(text);
    admin_reply(req, 200, "text/plain; charset=utf-8", body);
}

/* ---- purge ----------------------------------------------------------------------------------- */

/* The body as JSON; NULL after a refusal was sent. */
static json_t *read_body(struct evhttp_request *req)
{
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    size_t length = evbuffer_get_length(in);
    if (length == 0) {
        admin_reply_error(req, 400,
                          "the body is empty; it is a JSON object such as {\"url\": "
                          "\"http://www.example.com/path\"}");
        return NULL;
    }
    json_error_t error;
    json_t *body =
        json_loadb((const char *)evbuffer_pullup(in, -1), length, JSON_REJECT_DUPLICATES, &error);
    if (body == NULL)
        admin_reply_error(req, 400, "the body is not JSON: line %d, column %d: %s", error.line,
                          error.column, error.text);
    return body;
}

static struct slice member(const json_t *body, const char *name)
{
    const json_t *value = json_object_get(body, name);
    return value == NULL ? SLICE_NONE
                         : (struct slice){ json_string_value(value), json_string_length(value) };
}

/* NULL, or why this is no purge. `name` is set to the member that it is about. */
static const char *check_purge(json_t *body, const char **name)
{
    const char *key;
    json_t *value;
    *name = "";
    if (!json_is_object(body))
        return "the body is a JSON object such as {\"url\": \"http://www.example.com/path\"}";
    json_object_foreach(body, key, value)
    {
        *name = key;
        if (strcmp(key, "url") != 0 && strcmp(key, "host") != 0)
            return "unknown member; a purge has \"url\" and, when that is a path, \"host\"";
        if (!json_is_string(value) || json_string_length(value) == 0)
            return "this is a string, and not empty";
    }
    *name = "url";
    return json_object_get(body, "url") == NULL ? "missing" : NULL;
}

static void purge(const struct admin_context *c, struct evhttp_request *req, const json_t *body)
{
    const char *why = "it is malformed";
    struct slice url = member(body, "url");
    char *key = xmalloc(KEY_BYTES_MAX);
    size_t length =
        c->hooks.key_of_url(c->hooks.arg, url, member(body, "host"), key, KEY_BYTES_MAX, &why);
    if (length == 0) {
        admin_reply_error(req, 400, "url: %s", why);
    } else {
        struct cache_key cache_key = cache_key_of(c->hooks.cache, (struct slice){ key, length });
        unsigned purged = cache_purge_key(c->hooks.cache, &cache_key);
        stat_add(&stats_mine()->purges, 1);
        stat_add(&stats_mine()->purged, purged);
        log_info("purge of " SLICE_FMT ": %u object%s", SLICE_ARG(url), purged,
                 purged == 1 ? "" : "s");
        admin_reply_json(req, purged > 0 ? 200 : 404,
                         json_pack("{s:I}", "purged", (json_int_t)purged));
    }
    free(key);
}

void admin_purge(const struct admin_context *c, struct evhttp_request *req)
{
    json_t *body = read_body(req);
    if (body == NULL)
        return;
    const char *name, *why = check_purge(body, &name);
    if (why == NULL)
        purge(c, req, body);
    else if (name[0] == '\0')
        admin_reply_error(req, 400, "%s", why);
    else
        admin_reply_error(req, 400, "%.200s: %s", name, why);
    json_decref(body);
}

/* ---- reload ---------------------------------------------------------------------------------- */

static json_t *lines_of(const struct config_mistakes *m)
{
    json_t *lines = json_array();
    for (size_t i = 0; i < m->count; i++) {
        json_t *line = json_string(m->lines[i]);
        json_array_append_new(
            lines, line != NULL ? line : json_string("(a line that is not UTF-8; the log has it)"));
    }
    return lines;
}

void admin_reload(const struct admin_context *c, struct evhttp_request *req)
{
    struct config_mistakes m = { 0 };
    if (!c->hooks.reload(c->hooks.arg, &m)) {
        admin_reply_json(req, 422, json_pack("{s:b,s:o}", "reloaded", 0, "mistakes", lines_of(&m)));
        config_mistakes_free(&m);
        return;
    }
    struct config *config = c->hooks.config(c->hooks.arg);
    json_int_t generation = config == NULL ? 0 : (json_int_t)config->generation;
    if (config != NULL)
        config_unref(&config);
    admin_reply_json(req, 200,
                     json_pack("{s:b,s:I,s:o}", "reloaded", 1, "generation", generation,
                               "restart_needed", lines_of(&m)));
    config_mistakes_free(&m);
}
