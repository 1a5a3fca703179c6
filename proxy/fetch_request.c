/* proxy/fetch_request.c: the request for the origin, written anew from the parsed form, never
 * copied through.
 *
 * Fields that Connection names and hop-by-hop fields go first (RFC 9110 7.6.1); ours are added
 * after, so that no client can have them taken off. Forwarding fields are ours unless the client is
 * a trusted proxy.
 */
#include "base/dates.h"
#include "proxy/fetch_internal.h"

#include <stdio.h>

struct writer {
    char *at, *end;
};

static void put(struct writer *w, struct slice s)
{
    CHECK((size_t)(w->end - w->at) >= s.len);
    if (s.len > 0)
        memcpy(w->at, s.ptr, s.len);
    w->at += s.len;
}

static void put_field(struct writer *w, struct slice name, struct slice value)
{
    put(w, name);
    put(w, SLICE(": "));
    put(w, value);
    put(w, SLICE("\r\n"));
}

static size_t bound(const struct exchange *x, const struct fetch *f, const struct validators *stale)
{
    size_t bytes =
        2048 + x->request.target.len + x->request.method_text.len + 4 * x->request.authority.len;
    for (unsigned i = 0; i < x->request.headers.count; i++)
        bytes += 2 * (x->request.headers.at[i].name.len + x->request.headers.at[i].value.len) + 8;
    if (f->config->host_header != NULL)
        bytes += strlen(f->config->host_header);
    return bytes + (stale == NULL ? 0 : stale->etag.len);
}

static bool is_trusted(const struct exchange *x)
{
    const struct shared_snapshot *s = x->snapshot->shared;
    for (size_t i = 0; i < s->trusted_count; i++)
        if (network_has(&s->trusted[i], &x->conn->peer))
            return true;
    return false;
}

/* Fields by which a client could make the origin see another request than the one we key and log
 * (user: IIS, Symfony, Zend). */
static bool is_override(struct slice name)
{
    static const struct slice names[] = {
        SLICE_INIT("X-Original-URL"),     SLICE_INIT("X-Rewrite-URL"),
        SLICE_INIT("X-Original-Host"),    SLICE_INIT("X-Forwarded-Server"),
        SLICE_INIT("X-Forwarded-Port"),   SLICE_INIT("X-Forwarded-Scheme"),
        SLICE_INIT("X-Forwarded-Prefix"), SLICE_INIT("X-Host"),
        SLICE_INIT("X-Real-IP")
    };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (slice_equal_nocase(name, names[i]))
            return true;
    return false;
}

/* Whether a field of the client's goes to the origin as it is. */
static bool goes_on(const struct fetch *f, const struct exchange *x, const struct header *h,
                    bool trusted)
{
    if (header_is_hop_by_hop(h->id) || headers_is_nominated(&x->request.headers, h->name))
        return false;
    switch ((enum header_id)h->id) {
    case HEADER_HOST:
    case HEADER_CONTENT_LENGTH:
    case HEADER_EXPECT:          /* we have said "continue" ourselves, or will */
    case HEADER_X_FORWARDED_FOR: /* written below */
    case HEADER_FORWARDED: return false;
    case HEADER_X_FORWARDED_HOST:
    case HEADER_X_FORWARDED_PROTO: return trusted;
    case HEADER_RANGE:
    case HEADER_IF_RANGE:
    case HEADER_IF_NONE_MATCH:
    case HEADER_IF_MODIFIED_SINCE:
        return f->gets_ranges; /* a fill asks for the whole, with conditions of its own */
    case HEADER_OTHER: return trusted || !is_override(h->name);
    default: return true;
    }
}

static void put_forwarded(struct writer *w, const struct exchange *x, bool trusted)
{
    char text[PEER_TEXT];
    struct slice client = { text, peer_text(&x->conn->peer, text) };
    const struct headers *h = &x->request.headers;

    put(w, SLICE("X-Forwarded-For: "));
    if (trusted)
        for (const struct header *f = headers_find(h, HEADER_X_FORWARDED_FOR); f != NULL;
             f = headers_next(h, f)) {
            put(w, f->value);
            put(w, SLICE(", "));
        }
    put(w, client);
    put(w, SLICE("\r\n"));
    if (!trusted || !headers_has(h, HEADER_X_FORWARDED_PROTO))
        put_field(w, SLICE("X-Forwarded-Proto"), SLICE("http"));
    if ((!trusted || !headers_has(h, HEADER_X_FORWARDED_HOST)) && x->request.authority.len > 0)
        put_field(w, SLICE("X-Forwarded-Host"), x->request.authority);
    if (!x->snapshot->config->sends_forwarded)
        return;
    bool v6 = peer_is_v6(&x->conn->peer); /* RFC 7239 6: an IPv6 address is quoted and bracketed */
    put(w, SLICE("Forwarded: for="));
    put(w, v6 ? SLICE("\"[") : SLICE(""));
    put(w, x->conn->peer.is_unix ? SLICE("unknown") : client);
    put(w, v6 ? SLICE("]\"") : SLICE(""));
    if (x->request.authority.len > 0) {
        put(w, SLICE(";host=\""));
        put(w, x->request.authority);
        put(w, SLICE("\""));
    }
    put(w, SLICE(";proto=http\r\n"));
}

static void put_conditions(struct writer *w, const struct validators *stale)
{
    if (stale->etag.len > 0)
        put_field(w, SLICE("If-None-Match"), stale->etag);
    if (stale->last_modified_s < 0)
        return;
    char date[DATE_LENGTH];
    date_format(stale->last_modified_s, date);
    put_field(w, SLICE("If-Modified-Since"), (struct slice){ date, DATE_LENGTH });
}

static void put_framing(struct writer *w, const struct exchange *x)
{
    char number[32];
    switch (x->request.framing) {
    case FRAMING_LENGTH: {
        int len = snprintf(number, sizeof number, "%llu", (unsigned long long)x->request.length);
        put_field(w, SLICE("Content-Length"), (struct slice){ number, (size_t)len });
        return;
    }
    case FRAMING_CHUNKED: put_field(w, SLICE("Transfer-Encoding"), SLICE("chunked")); return;
    case FRAMING_NONE:
    case FRAMING_CLOSE: return;
    }
}

struct slice fetch_write_request(struct fetch *f, const struct exchange *x,
                                 const struct validators *stale)
{
    size_t size = bound(x, f, stale);
    char *start = arena_alloc(&f->arena, size);
    struct writer w = { start, start + size };
    bool trusted = is_trusted(x);
    const struct h1_request *r = &x->request;

    put(&w, f->fill != NULL ? SLICE("GET") : r->method_text);
    put(&w, SLICE(" "));
    put(&w, r->path);
    if (r->query.ptr != NULL) {
        put(&w, SLICE("?"));
        put(&w, r->query);
    }
    put(&w, SLICE(" HTTP/1.1\r\n"));

    if (f->config->host_header != NULL)
        put_field(&w, SLICE("Host"), slice_of(f->config->host_header));
    else if (r->authority.len > 0)
        put_field(&w, SLICE("Host"), r->authority);
    else
        put_field(&w, SLICE("Host"), slice_of(origin_server_host(f->server)));

    for (unsigned i = 0; i < r->headers.count; i++)
        if (goes_on(f, x, &r->headers.at[i], trusted))
            put_field(&w, r->headers.at[i].name, r->headers.at[i].value);
    put_forwarded(&w, x, trusted);
    if (f->config->sends_via)
        put_field(&w, SLICE("Via"), r->minor == 0 ? SLICE("1.0 larder") : SLICE("1.1 larder"));
    if (stale != NULL)
        put_conditions(&w, stale);
    if (f->fill == NULL)
        put_framing(&w, x);
    put(&w, SLICE("\r\n"));
    return slice_from(start, w.at);
}
