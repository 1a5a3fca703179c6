/* admin/explain_request.c: the question as a request's head, read as the public side reads one;
 * and who the client is. See explain.h. */
#include "admin/explain.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the head -------------------------------------------------------------------------------- */

struct url {
    struct slice authority, target; /* target: begins with '/' or '?', or is empty */
    bool is_absolute;
};

/* "http://host:port/path?query#part", or "/path": the host is then a field's. */
static struct url split_url(struct explain *e, struct slice url)
{
    struct url u = { .target = { url.ptr, slice_find(url, '#') } };
    bool is_https = slice_has_prefix_nocase(url, SLICE("https://"));
    e->scheme = is_https ? SLICE("https") : SLICE("http");
    if (!is_https && !slice_has_prefix_nocase(url, SLICE("http://")))
        return u;
    const char *at = url.ptr + (is_https ? 8 : 7), *end = u.target.ptr + u.target.len;
    u.is_absolute = true;
    u.authority.ptr = at;
    while (at < end && *at != '/' && *at != '?')
        at++;
    u.authority.len = (size_t)(at - u.authority.ptr);
    u.target = slice_from(at, end);
    if (is_https && slice_has_suffix(u.authority, SLICE(":443")))
        u.authority.len -= 4; /* the scheme's own: browsers leave it out of Host */
    return u;
}

static bool is_host_field(struct slice line)
{
    return slice_has_prefix_nocase(line, SLICE("Host:"));
}

static bool has_host_field(const json_t *fields)
{
    size_t i;
    json_t *line;
    json_array_foreach((json_t *)fields, i, line)
    {
        if (is_host_field((struct slice){ json_string_value(line), json_string_length(line) }))
            return true;
    }
    return false;
}

/* A field Host stands in for the URL's, as with curl: what is asked at an address by its name. */
static struct slice compose(struct explain *e, const struct url *u)
{
    const struct explain_question *q = &e->question;
    char *text = NULL;
    size_t length = 0, i;
    FILE *out = open_memstream(&text, &length);
    CHECK(out != NULL);
    fprintf(out, SLICE_FMT " %s" SLICE_FMT " HTTP/1.1\r\n", SLICE_ARG(q->method),
            u->is_absolute && (u->target.len == 0 || u->target.ptr[0] == '?') ? "/" : "",
            SLICE_ARG(u->target));
    if (!has_host_field(q->fields))
        fprintf(out, "Host: " SLICE_FMT "\r\n", SLICE_ARG(u->authority));
    json_t *line;
    json_array_foreach(q->fields, i, line)
    {
        fwrite(json_string_value(line), 1, json_string_length(line), out);
        fputs("\r\n", out);
    }
    fputs("\r\n", out);
    fclose(out);
    struct slice head = arena_copy(&e->arena, (struct slice){ text, length });
    free(text);
    return head;
}

/* One line each: else a field would smuggle in others, or end the head. */
static bool are_lines(const json_t *fields)
{
    size_t i;
    json_t *line;
    json_array_foreach((json_t *)fields, i, line)
    {
        const char *text = json_string_value(line);
        if (text == NULL || json_string_length(line) == 0 || strpbrk(text, "\r\n") != NULL ||
            strlen(text) != json_string_length(line))
            return false;
    }
    return true;
}

static bool is_one_word(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] <= ' ')
            return false;
    return s.len > 0;
}

/* ---- the client ------------------------------------------------------------------------------ */

static bool is_among(char **networks, const struct peer *p)
{
    struct network n;
    for (char **text = networks; text != NULL && *text != NULL; text++)
        if (network_parse(*text, &n) && network_has(&n, p))
            return true;
    return false;
}

/* The same as of a request (proxy/route.c): fields that only a trusted proxy may send, and the
 * address that it names. */
static void find_client(struct explain *e)
{
    struct headers *h = &e->request.headers;
    e->client = e->question.client;
    if (!e->question.has_client || !is_among(e->config->trusted, &e->client)) {
        headers_drop(h, HEADER_X_FORWARDED_HOST);
        headers_drop(h, HEADER_X_FORWARDED_PROTO);
        return;
    }
    if (slice_equal_nocase(headers_value(h, HEADER_X_FORWARDED_PROTO), SLICE("https")))
        e->scheme = SLICE("https");
    for (const struct header *f = headers_find(h, HEADER_X_FORWARDED_FOR); f != NULL;
         f = headers_next(h, f)) {
        struct slice rest = f->value, address;
        while (slice_next_in_list(&rest, &address)) {
            struct peer named;
            if (peer_parse(address, &named) && !is_among(e->config->trusted, &named))
                e->client = named;
        }
    }
}

static void refuse(struct explain *e)
{
    const struct admin_request *r = &e->request;
    e->verdict = (struct explain_verdict){
        .outcome = r->outcome, .reason = r->reason, .sentence = r->why, .status = r->status
    };
}

bool explain_read_request(struct explain *e, const char **why)
{
    struct url u = split_url(e, e->question.url);
    *why = NULL;
    if (u.is_absolute && u.authority.len == 0)
        *why = "url: the host is missing";
    else if (!u.is_absolute && (u.target.len == 0 || u.target.ptr[0] != '/') &&
             !slice_equal(u.target, SLICE("*")))
        *why = "url: a URL is http://host/path, or /path together with a field Host";
    else if (!u.is_absolute && !has_host_field(e->question.fields))
        *why = "url: a path alone needs a field Host: -H \"Host: www.example.com\"";
    else if (!is_one_word(e->question.url))
        *why = "url: a space or control byte; write it as %20";
    else if (!is_one_word(e->question.method))
        *why = "method: this is one word, such as GET";
    else if (!are_lines(e->question.fields))
        *why = "headers: each is one line, \"Name: value\"";
    if (*why != NULL)
        return false;
    struct slice head = compose(e, &u);
    if (!e->context->hooks.read_request(e->context->hooks.arg, e->config, head, &e->request)) {
        refuse(e);
        return false;
    }
    find_client(e);
    e->sent = e->request.headers;
    e->sent.at = e->sent_storage;
    memcpy(e->sent_storage, e->request.headers.at, e->sent.count * sizeof(struct header));
    return true;
}
