/* admin/explain.c: POST /explain: why a request now would be answered as it would be. See
 * explain.h. */
#include "admin/explain.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- text ------------------------------------------------------------------------------------ */

json_t *explain_text(struct slice s)
{
    json_t *text = json_stringn(s.ptr == NULL ? "" : s.ptr, s.len);
    if (text != NULL)
        return text;
    char *out = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&out, &length);
    CHECK(to != NULL);
    for (size_t i = 0; i < s.len; i++)
        fprintf(to, (unsigned char)s.ptr[i] < 0x80 ? "%c" : "\\x%02X", (unsigned char)s.ptr[i]);
    fclose(to);
    text = json_stringn(out, length);
    free(out);
    return text;
}

json_t *explain_list(struct slice list)
{
    json_t *out = json_array();
    while (list.len > 0) {
        size_t n = slice_find(list, '\0');
        json_array_append_new(out, explain_text((struct slice){ list.ptr, n }));
        n += n < list.len;
        list = (struct slice){ list.ptr + n, list.len - n };
    }
    return out;
}

/* A value is "-" for none, or "=" and what it is (cache_vary_make). */
json_t *explain_selecting(struct slice selecting)
{
    json_t *out = json_array();
    struct slice name = SLICE_NONE;
    for (bool is_name = true; selecting.len > 0; is_name = !is_name) {
        size_t n = slice_find(selecting, '\0');
        struct slice text = { selecting.ptr, n };
        n += n < selecting.len;
        selecting = (struct slice){ selecting.ptr + n, selecting.len - n };
        if (is_name) {
            name = text;
            continue;
        }
        bool is_there = text.len > 0 && text.ptr[0] == '=';
        struct slice value = { text.ptr + 1, is_there ? text.len - 1 : 0 };
        json_array_append_new(out, json_pack("{s:o,s:o}", "field", explain_text(name), "value",
                                             is_there ? explain_text(value) : json_null()));
    }
    return out;
}

/* ---- the question ---------------------------------------------------------------------------- */

/* NULL after a refusal was sent. */
static json_t *read_body(struct evhttp_request *req)
{
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    size_t length = evbuffer_get_length(in);
    json_error_t error = { .text = "it is empty" };
    const char *bytes = (const char *)evbuffer_pullup(in, -1);
    json_t *body = length == 0 ? NULL : json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &error);
    if (body == NULL)
        admin_reply_error(req, 400,
                          "the body is a JSON object such as {\"url\": "
                          "\"http://www.example.com/path\"}; line %d, column %d: %s",
                          error.line, error.column, error.text);
    return body;
}

/* {"Name": "value"} or {"Name": ["a", "b"]} as lines; a list of lines as it is. NULL: neither. */
static json_t *lines_of(json_t *headers)
{
    if (json_is_array(headers))
        return json_incref(headers);
    if (!json_is_object(headers))
        return NULL;
    json_t *lines = json_array(), *value, *one;
    const char *name;
    size_t i;
    json_object_foreach(headers, name, value)
    {
        json_t *list = json_is_array(value) ? json_incref(value) : json_pack("[O]", value);
        json_array_foreach(list, i, one)
        {
            json_t *line = json_is_string(one)
                               ? json_sprintf("%s: %s", name, json_string_value(one))
                               : json_null();
            json_array_append_new(lines, line);
        }
        json_decref(list);
    }
    return lines;
}

static bool is_member(const char *name)
{
    static const char *const names[] = { "url", "method", "headers", "client", "fetch" };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static struct slice text_member(const json_t *body, const char *name)
{
    const json_t *value = json_object_get(body, name);
    return (struct slice){ json_string_value(value), json_string_length(value) };
}

/* NULL, or what is wrong; `name` is set to the member that it is about. */
static const char *read_question(json_t *body, struct explain_question *q, const char **name)
{
    const char *key;
    json_t *value;
    *name = "";
    if (!json_is_object(body))
        return "the body is a JSON object such as {\"url\": \"http://www.example.com/path\"}";
    json_object_foreach(body, key, value)
    {
        *name = key;
        if (!is_member(key))
            return "unknown member; there are url, method, headers, client and fetch";
    }
    *q = (struct explain_question){ .url = text_member(body, "url"),
                                    .method = text_member(body, "method"),
                                    .wants_fetch = json_is_true(json_object_get(body, "fetch")) };
    *name = "url";
    if (q->url.len == 0)
        return "this is a string, such as \"http://www.example.com/path\"";
    *name = "method";
    if (json_object_get(body, "method") == NULL)
        q->method = SLICE("GET");
    if (q->method.len == 0)
        return "this is a string, such as \"GET\"";
    *name = "client";
    struct slice client = text_member(body, "client");
    q->has_client = json_object_get(body, "client") != NULL;
    if (q->has_client && !peer_parse(client, &q->client))
        return "this is an IP address";
    *name = "fetch";
    value = json_object_get(body, "fetch");
    if (value != NULL && !json_is_boolean(value))
        return "this is true or false";
    *name = "headers";
    value = json_object_get(body, "headers");
    if (value != NULL && (q->fields = lines_of(value)) == NULL)
        return "this is an object of names and values, or a list of lines \"Name: value\"";
    return NULL;
}

/* ---- from beginning to end --------------------------------------------------------------------
 */

static struct explain *explain_new(const struct admin_context *c)
{
    struct explain *e = xcalloc(1, sizeof *e);
    e->context = c;
    arena_init(&e->arena);
    e->out = json_object();
    e->now_ms = clock_mono_ms();
    e->config = c->hooks.config(c->hooks.arg);
    return e;
}

void explain_free(struct explain **explain)
{
    struct explain *e = *explain;
    *explain = NULL;
    json_decref(e->out);
    json_decref(e->question.fields);
    json_decref(e->body);
    config_unref(&e->config);
    arena_fini(&e->arena);
    free(e);
}

/* All but the origin. False: the question is malformed. */
static bool answer(struct explain *e, const char **why)
{
    json_object_set_new(e->out, "url", explain_text(e->question.url));
    json_object_set_new(e->out, "method", explain_text(e->question.method));
    if (!explain_read_request(e, why)) {
        if (*why != NULL)
            return false;
    } else if (explain_site(e)) {
        bool is_looked_up = explain_plan(e);
        /* a pass changes or ignores what is stored: it is shown all the same */
        if (is_looked_up || (e->plan.way == PLAN_PASS && e->plan.key.len > 0))
            explain_store(e);
    }
    explain_why(e);
    return true;
}

static void explain(const struct admin_context *c, struct evhttp_request *req, json_t *body)
{
    const char *name, *why;
    struct explain *e = explain_new(c);
    e->body = json_incref(body);
    if ((why = read_question(body, &e->question, &name)) != NULL) {
        if (name[0] == '\0')
            admin_reply_error(req, 400, "%s", why);
        else
            admin_reply_error(req, 400, "%.200s: %s", name, why);
    } else if (!answer(e, &why)) {
        admin_reply_error(req, 400, "%s", why);
    } else if (!e->question.wants_fetch || !explain_fetch(e, req)) {
        admin_reply_json(req, 200, json_incref(e->out));
    } else {
        return; /* `e` is the fetch's now, and the answer comes later */
    }
    explain_free(&e);
}

void admin_explain(const struct admin_context *c, struct evhttp_request *req)
{
    json_t *body = read_body(req);
    if (body == NULL)
        return;
    explain(c, req, body);
    json_decref(body);
}
