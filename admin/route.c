/* admin/route.c: from a request to its handler: the table of paths, and who may ask for them.
 *
 * The order of refusals: token (401), Host (403), path (404), method (405), Origin (403). /healthz
 * answers everybody.
 */
#include "admin/admin_internal.h"

#include <event2/keyvalq_struct.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void healthz(const struct admin_context *c, struct evhttp_request *req);

static const struct route {
    const char *path;
    bool is_post, is_open; /* else GET and HEAD; open: no token, any Host */
    admin_handler_f handle;
    const char *help;
} routes[] = {
    { "/", false, false, admin_status_page, "the status page" },
    { "/stats", false, false, admin_stats_json, "all figures as JSON" },
    { "/metrics", false, false, admin_metrics, "all figures for Prometheus" },
    { "/healthz", false, true, healthz, "200 while this process answers" },
    { "/config", false, false, admin_config, "the configuration in force" },
    { "/purge", true, false, admin_purge,
      "POST {\"url\": \"http://host/path\"}: drop it from the store" },
    { "/explain", true, false, admin_explain,
      "POST {\"url\": \"http://host/path\"}: why it would be answered as it would be" },
    { "/reload", true, false, admin_reload, "POST: read the configuration anew" },
};

static const char *reason_of(int status)
{
    switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 422: return "Unprocessable Content";
    default: return "Internal Server Error";
    }
}

void admin_reply(struct evhttp_request *req, int status, const char *content_type,
                 struct evbuffer *body)
{
    struct evkeyvalq *out = evhttp_request_get_output_headers(req);
    char length[24];
    snprintf(length, sizeof length, "%zu", evbuffer_get_length(body));
    evhttp_add_header(out, "Content-Length", length);
    evhttp_add_header(out, "Content-Type", content_type);
    evhttp_add_header(out, "Cache-Control", "no-store");
    evhttp_add_header(out, "X-Content-Type-Options", "nosniff");
    evhttp_add_header(out, "Content-Security-Policy",
                      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
    /* One request a connection: a handful of places is then enough for everybody, and a stop has
     * nothing to wait for. */
    evhttp_add_header(out, "Connection", "close");
    if (evhttp_request_get_command(req) == EVHTTP_REQ_HEAD)
        evbuffer_drain(body, evbuffer_get_length(body));
    evhttp_send_reply(req, status, reason_of(status), body);
    evbuffer_free(body);
}

void admin_reply_json(struct evhttp_request *req, int status, json_t *body)
{
    char *text = json_dumps(body, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    CHECK(text != NULL);
    struct evbuffer *out = evbuffer_new();
    evbuffer_add(out, text, strlen(text));
    evbuffer_add(out, "\n", 1);
    free(text);
    json_decref(body);
    admin_reply(req, status, "application/json", out);
}

/* What came from outside may not be UTF-8, and then is not quoted in a message. */
static json_t *string_or(const char *text, const char *otherwise)
{
    json_t *s = json_string(text);
    return s != NULL ? s : json_string(otherwise);
}

void admin_reply_error(struct evhttp_request *req, int status, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    admin_reply_json(req, status,
                     json_pack("{s:o}", "error", string_or(text, "the request is not understood")));
}

static void healthz(const struct admin_context *c, struct evhttp_request *req)
{
    (void)c;
    struct evbuffer *body = evbuffer_new();
    evbuffer_add(body, "ok\n", 3);
    admin_reply(req, 200, "text/plain; charset=utf-8", body);
}

static void refuse_unknown(struct evhttp_request *req, const char *path)
{
    json_t *paths = json_object();
    for (size_t i = 0; i < ARRAY_COUNT(routes); i++)
        json_object_set_new(paths, routes[i].path, json_string(routes[i].help));
    char text[256];
    snprintf(text, sizeof text, "there is no %.200s here", path);
    admin_reply_json(req, 404,
                     json_pack("{s:o,s:o}", "error", string_or(text, "there is no such path here"),
                               "paths", paths));
}

static bool method_fits(const struct route *r, enum evhttp_cmd_type method)
{
    return r->is_post ? method == EVHTTP_REQ_POST
                      : method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD;
}

static void refuse_method(const struct route *r, struct evhttp_request *req)
{
    const char *allow = r->is_post ? "POST" : "GET, HEAD";
    evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", allow);
    admin_reply_error(req, 405, "%s takes %s", r->path, allow);
}

static const struct route *find_route(const char *path)
{
    for (size_t i = 0; i < ARRAY_COUNT(routes); i++)
        if (strcmp(routes[i].path, path) == 0)
            return &routes[i];
    return NULL;
}

/* Answers and returns false when this one may not ask. */
static bool may_ask(const struct admin_context *c, struct evhttp_request *req)
{
    const struct evkeyvalq *in = evhttp_request_get_input_headers(req);
    if (c->token != NULL &&
        !admin_token_matches(evhttp_find_header(in, "Authorization"), c->token)) {
        evhttp_add_header(evhttp_request_get_output_headers(req), "WWW-Authenticate",
                          "Bearer realm=\"larder\"");
        admin_reply_error(
            req, 401,
            "this wants the header Authorization: Bearer TOKEN, with the token of admin.token");
        return false;
    }
    const char *host = evhttp_find_header(in, "Host");
    if (c->checks_host && !admin_host_is_local(host, c->bound_host)) {
        admin_reply_error(req, 403,
                          "the admin port answers as localhost, 127.0.0.1 or [::1] only; to use "
                          "another name, set admin.token");
        return false;
    }
    return true;
}

/* A page of another site cannot make its visitor's browser purge or reload here. */
static bool may_change(struct evhttp_request *req)
{
    const struct evkeyvalq *in = evhttp_request_get_input_headers(req);
    const char *origin = evhttp_find_header(in, "Origin"),
               *fetch_site = evhttp_find_header(in, "Sec-Fetch-Site");
    bool is_foreign =
        origin != NULL && !admin_origin_is_own(origin, evhttp_find_header(in, "Host"));
    is_foreign |= fetch_site != NULL && strcmp(fetch_site, "same-origin") != 0 &&
                  strcmp(fetch_site, "none") != 0;
    if (is_foreign)
        admin_reply_error(req, 403, "a page of another site must not do this");
    return !is_foreign;
}

void admin_route(struct evhttp_request *req, void *context)
{
    const struct admin_context *c = context;
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *path = uri == NULL ? NULL : evhttp_uri_get_path(uri);
    if (path == NULL || path[0] == '\0')
        path = "/";
    const struct route *r = find_route(path);
    if ((r == NULL || !r->is_open) && !may_ask(c, req))
        return;
    if (r == NULL)
        refuse_unknown(req, path);
    else if (!method_fits(r, evhttp_request_get_command(req)))
        refuse_method(r, req);
    else if (!r->is_post || may_change(req))
        r->handle(c, req);
}
