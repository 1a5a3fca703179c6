/* proxy/probe.c: questions about requests that nobody has sent; see probe.h. What is asked here in
 * a few lines is what proxy/conn.c and proxy/route.c do with those of clients, in the same order.
 */
#include "proxy/probe.h"

#include "cache/policy.h"

#include <stdlib.h>

/* ---- a request ------------------------------------------------------------------------------- */

static void refuse(struct probe *p, enum fault fault, const char *why)
{
    p->is_refused = true;
    p->fault = fault;
    p->reason = fault_row(fault)->reason;
    p->status = fault_row(fault)->status;
    p->why = why;
}

static void answer(struct probe *p, enum fault fault)
{
    p->is_answered = true;
    p->fault = fault;
    p->reason = fault_row(fault)->reason;
    p->status = fault == FAULT_NONE ? 0 : fault_row(fault)->status;
    p->why = fault == FAULT_NONE ? "Larder answers this method itself" : fault_row(fault)->text;
}

/* RFC 9110 7.6.2: not to be forwarded once more. */
static bool ends_here(const struct h1_request *r)
{
    uint64_t left;
    return (r->method == METHOD_TRACE || r->method == METHOD_OPTIONS) &&
           slice_to_u64(headers_value(&r->headers, HEADER_MAX_FORWARDS), &left) && left == 0;
}

void probe_read(const struct config *config, struct slice head, struct probe *p)
{
    const struct h1_limits limits = { .head_bytes = config->head_max_bytes,
                                      .target_bytes = config->target_max_bytes,
                                      .field_count = (uint16_t)config->field_max_count };
    struct h1_request *r = &p->request;
    enum h1_cause cause = H1_OK;
    memset(p, 0, sizeof *p);
    headers_init(&r->headers, p->storage, HEADERS_MAX);
    if (h1_read_request(r, head, &limits, &cause) != H1_DONE) {
        refuse(p, FAULT_BAD_REQUEST, cause == H1_OK ? "the head has no end" : h1_cause_text(cause));
        p->status = cause == H1_OK ? p->status : h1_cause_status(cause);
        if (p->status == 413 || p->status == 414 || p->status == 431)
            p->reason = REASON_TOO_LARGE;
        return;
    }
    if (r->method == METHOD_CONNECT) {
        refuse(p, FAULT_NOT_TUNNELLED, fault_row(FAULT_NOT_TUNNELLED)->text);
        return;
    }
    if (r->authority.len > 0 &&
        !h1_canonical_host(r->authority, p->host, &p->host_length, &p->port)) {
        refuse(p, FAULT_BAD_REQUEST, "the host is malformed");
        return;
    }
    p->port = p->port == 80 ? 0 : p->port;
    if (r->has_unknown_expect)
        answer(p, FAULT_EXPECTATION);
    else if (config->body_max_bytes > 0 && r->framing == FRAMING_LENGTH &&
             r->length > config->body_max_bytes)
        answer(p, FAULT_BODY_LARGE);
    else if (r->form == FORM_ASTERISK || ends_here(r))
        answer(p, FAULT_NONE);
}

enum h1_result probe_response(struct slice bytes, struct header *storage, struct h1_response *out,
                              enum h1_cause *cause)
{
    static const struct h1_limits limits = { .head_bytes = 128 << 10,
                                             .target_bytes = 0,
                                             .field_count = HEADERS_MAX };
    for (;;) {
        memset(out, 0, sizeof *out);
        headers_init(&out->headers, storage, HEADERS_MAX);
        enum h1_result result = h1_read_response(out, bytes, METHOD_GET, &limits, cause);
        if (result != H1_DONE || out->status >= 200)
            return result;
        bytes = (struct slice){ bytes.ptr + out->head_bytes, bytes.len - out->head_bytes };
    }
}

/* ---- a URL ----------------------------------------------------------------------------------- */

static bool has_space_or_control(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] <= ' ' || s.ptr[i] == 0x7f)
            return true;
    return false;
}

struct slice probe_head_of_url(struct arena *a, struct slice url, struct slice host,
                               const char **why)
{
    struct slice authority = host, target = url;
    size_t scheme = slice_has_prefix_nocase(url, SLICE("http://"))    ? 7
                    : slice_has_prefix_nocase(url, SLICE("https://")) ? 8
                                                                      : 0;
    target.len = slice_find(target, '#');
    if (scheme > 0) {
        const char *at = url.ptr + scheme, *end = target.ptr + target.len;
        authority.ptr = at;
        while (at < end && *at != '/' && *at != '?')
            at++;
        authority.len = (size_t)(at - authority.ptr);
        target = slice_from(at, end);
        if (scheme == 8 && slice_has_suffix(authority, SLICE(":443")))
            authority.len -= 4; /* the scheme's own: browsers leave it out of Host */
    }
    *why = NULL;
    if (scheme == 0 && (target.len == 0 || target.ptr[0] != '/'))
        *why = "a URL is http://host/path, or /path together with a host";
    else if (authority.len == 0)
        *why = "the host is missing or malformed";
    else if (has_space_or_control(url) || has_space_or_control(authority))
        *why = "it has a space or a control byte; those are written as %XX";
    if (*why != NULL)
        return SLICE_NONE;
    bool has_path = target.len > 0 && target.ptr[0] == '/';
    return arena_printf(a, "GET %s" SLICE_FMT " HTTP/1.1\r\nHost: " SLICE_FMT "\r\n\r\n",
                        has_path ? "" : "/", SLICE_ARG(target), SLICE_ARG(authority));
}

static size_t key_of(const struct config *config, struct probe *p, struct arena *a, char *out,
                     size_t capacity, const char **why)
{
    struct h1_request *r = &p->request;
    const struct config_site *site =
        config_site_find(config, (struct slice){ p->host, p->host_length });
    if (site == NULL) {
        *why = "no site serves this host";
        return 0;
    }
    struct plan_request in = { .config = config,
                               .site = site,
                               .rule = { .method = r->method_text,
                                         .scheme = SLICE("http"),
                                         .host = { p->host, p->host_length },
                                         .path = r->path,
                                         .query = r->query,
                                         .headers = &r->headers },
                               .headers = &r->headers,
                               .port = p->port,
                               .is_get = true };
    struct plan plan;
    cache_plan(&in, out, capacity, a, &plan);
    *why = plan.way == PLAN_LOCAL    ? "a rule answers this URL: nothing is stored under it"
           : plan.way == PLAN_BROKEN ? "the site's rules make no valid request of this URL"
                                     : "the URL is too long";
    if (plan.key.len == 0 || plan.key.len > capacity)
        return 0;
    if (plan.key.ptr != out)
        memcpy(out, plan.key.ptr, plan.key.len);
    return plan.key.len;
}

size_t probe_key_of_url(const struct config *config, struct slice url, struct slice host, char *out,
                        size_t capacity, const char **why)
{
    struct arena a;
    size_t length = 0;
    arena_init(&a);
    struct slice head = probe_head_of_url(&a, url, host, why);
    if (head.len > 0) {
        struct probe *p = arena_alloc(&a, sizeof *p);
        probe_read(config, head, p);
        *why = p->why;
        if (!p->is_refused)
            length = key_of(config, p, &a, out, capacity, why);
    }
    arena_fini(&a);
    return length;
}
