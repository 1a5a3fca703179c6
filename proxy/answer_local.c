/* proxy/answer_local.c: answers that Larder gives by itself: errors, what rules say, OPTIONS,
 * TRACE, PURGE.
 */
#include "proxy/exchange.h"

#define ALLOW "Allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS\r\n"

static const char *reason_phrase(uint16_t status)
{
    switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 410: return "Gone";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return "Error";
    }
}

/* A small page that says what is wrong and who says so; nothing of the request is repeated in it.
 */
void answer_add_page(struct exchange *x, const char *text, const char *fields)
{
    uint16_t status = x->status;
    const char *phrase = reason_phrase(status);
    struct slice page = SLICE_NONE;
    if (status != 200)
        page = arena_printf(
            &x->arena,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%u "
            "%s</title></head>\n"
            "<body><h1>%u %s</h1>\n<p>%s</p>\n<hr><p><small>larder: %s</small></p></body></html>\n",
            status, phrase, status, phrase, text, reason_word(x->reason));
    struct slice date = worker_date(x->worker);
    struct slice head = arena_printf(
        &x->arena,
        "HTTP/1.1 %u %s\r\nDate: " SLICE_FMT
        "\r\nServer: larder\r\n%sContent-Length: %zu\r\nCache-Control: no-store\r\n%s",
        status, phrase, SLICE_ARG(date),
        page.len > 0 ? "Content-Type: text/html; charset=utf-8\r\n" : "", page.len, fields);
    struct writer tail = answer_tail(x);
    const char *start = tail.at;
    answer_put_end(&tail, x, 0);
    exchange_add_memory(x, head);
    answer_add_tail(x, &tail, start);
    if (!x->is_head && page.len > 0)
        exchange_add_memory(x, page)->is_body = true;
}

static bool is_proxied(const struct exchange *x)
{
    return x->site != NULL && x->site->origin->kind == ORIGIN_SERVERS;
}

enum next step_refuse(struct exchange *x)
{
    const struct fault_row *row = fault_row(x->fault);
    x->outcome = row->outcome;
    x->reason = row->reason;
    x->status = row->status;
    const char *text = row->text;
    if (x->cause != H1_OK) {
        x->status = h1_cause_status(x->cause);
        text = h1_cause_text(x->cause);
        if (x->status == 413 || x->status == 414 || x->status == 431)
            x->reason = REASON_TOO_LARGE;
    }
    bool has_doubt = x->fault == FAULT_BAD_REQUEST || x->fault == FAULT_HEAD_SLOW ||
                     x->fault == FAULT_BODY_SLOW || x->fault == FAULT_BODY_LARGE ||
                     x->fault == FAULT_NOT_TUNNELLED || x->fault == FAULT_EXPECTATION;
    x->keeps_alive = x->keeps_alive && !has_doubt && !answer_must_close(x);
    const char *fields = x->status == 405   ? "Allow: GET, HEAD\r\n"
                         : x->status == 503 ? "Retry-After: 1\r\n"
                                            : "";
    if (x->status == 405 && is_proxied(x))
        fields = ALLOW;
    x->source = SOURCE_NONE;
    x->framing = OUT_LENGTH;
    answer_add_page(x, text, fields);
    return exchange_go(x, STEP_DELIVER);
}

/* ---- what rules say ----------------------------------------------------------------------------
 */

static void begin_local(struct exchange *x, uint16_t status, enum reason reason)
{
    x->outcome = OUTCOME_LOCAL;
    x->reason = reason;
    x->status = status;
    x->keeps_alive = x->keeps_alive && !answer_must_close(x);
    x->source = SOURCE_NONE;
    x->framing = OUT_LENGTH;
}

/* Head and body with a content type of their own. */
static enum next add_answer(struct exchange *x, struct slice fields, struct slice type,
                            struct slice body)
{
    bool has_body = x->status != 204 && x->status != 304;
    struct slice about = SLICE_NONE;
    if (has_body && body.len > 0)
        about = arena_printf(&x->arena, "Content-Type: " SLICE_FMT "\r\n", SLICE_ARG(type));
    if (has_body)
        about = arena_printf(&x->arena, SLICE_FMT "Content-Length: %zu\r\n", SLICE_ARG(about),
                             body.len);
    struct slice head = arena_printf(
        &x->arena,
        "HTTP/1.1 %u %s\r\nDate: " SLICE_FMT "\r\nServer: larder\r\n" SLICE_FMT SLICE_FMT,
        x->status, reason_phrase(x->status), SLICE_ARG(worker_date(x->worker)), SLICE_ARG(about),
        SLICE_ARG(fields));
    struct writer tail = answer_tail(x);
    const char *start = tail.at;
    answer_put_end(&tail, x, 0);
    exchange_add_memory(x, head);
    answer_add_tail(x, &tail, start);
    if (!x->is_head && has_body && body.len > 0)
        exchange_add_memory(x, body)->is_body = true;
    return exchange_go(x, STEP_DELIVER);
}

enum next step_answer_rule(struct exchange *x)
{
    struct rule_answer answer;
    struct rule_request asked = exchange_rule_request(x);
    const struct rule_effects *effects = &x->plan.effects;
    rules_answer(effects, &asked, &x->arena, &answer);
    begin_local(x, answer.status, REASON_RULE);
    if (x->conn->body == BODY_UNREAD)
        x->keeps_alive = false;
    struct slice lines =
        effects->edits_response ? rules_response_lines(effects, &x->arena) : SLICE_NONE;
    if (answer.location.len > 0)
        lines = arena_printf(&x->arena, "Location: " SLICE_FMT "\r\n" SLICE_FMT,
                             SLICE_ARG(answer.location), SLICE_ARG(lines));
    if (answer.body.len > 0)
        return add_answer(x, lines, answer.type, answer.body);
    if (answer.location.len > 0 || answer.status < 400)
        return add_answer(x, lines, SLICE_NONE, SLICE_NONE);
    answer_add_page(x, "A rule of this site says so.", arena_string(&x->arena, lines));
    return exchange_go(x, STEP_DELIVER);
}

/* ---- methods that end here ------------------------------------------------------------------- */

enum next exchange_answer_options(struct exchange *x)
{
    begin_local(x, 200, REASON_ANSWERED);
    if (x->conn->body == BODY_UNREAD)
        x->keeps_alive = false;
    return add_answer(x, SLICE(ALLOW), SLICE_NONE, SLICE_NONE);
}

static bool is_secret(enum header_id id)
{
    return id == HEADER_AUTHORIZATION || id == HEADER_COOKIE || id == HEADER_PROXY_AUTHORIZATION;
}

enum next exchange_answer_trace(struct exchange *x)
{
    const struct h1_request *r = &x->request;
    size_t most = r->method_text.len + r->target.len + 16;
    for (unsigned i = 0; i < r->headers.count; i++)
        most += r->headers.at[i].name.len + r->headers.at[i].value.len + 4;
    char *start = arena_alloc(&x->arena, most);
    struct writer w = writer_on(start, most);
    writer_put(&w, r->method_text);
    writer_put(&w, SLICE(" "));
    writer_put(&w, r->target);
    writer_put(&w, r->minor == 0 ? SLICE(" HTTP/1.0\r\n") : SLICE(" HTTP/1.1\r\n"));
    for (unsigned i = 0; i < r->headers.count; i++)
        if (!is_secret((enum header_id)r->headers.at[i].id))
            writer_put_field(&w, r->headers.at[i].name, r->headers.at[i].value);
    writer_put(&w, SLICE("\r\n"));
    begin_local(x, 200, REASON_ANSWERED);
    if (x->conn->body == BODY_UNREAD)
        x->keeps_alive = false;
    return add_answer(x, SLICE_NONE, SLICE("message/http"), slice_from(start, w.at));
}

enum next exchange_answer_purge(struct exchange *x, const struct cache_purged *purged)
{
    begin_local(x, purged->objects + purged->fills > 0 ? 200 : 404, REASON_PURGE_ASKED);
    if (x->conn->body == BODY_UNREAD)
        x->keeps_alive = false;
    struct slice text =
        arena_printf(&x->arena, "purged: %llu objects, %llu fills under way\n",
                     (unsigned long long)purged->objects, (unsigned long long)purged->fills);
    return add_answer(x, SLICE("Cache-Control: no-store\r\n"), SLICE("text/plain; charset=utf-8"),
                      text);
}
