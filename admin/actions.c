/* admin/actions.c: reload, and the configuration as it is. */
#include "admin/admin_internal.h"

#include <stdio.h>
#include <stdlib.h>

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
