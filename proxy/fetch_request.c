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

static size_t bound(const struct exchange *x, const struct fetch *f, const struct validators *stale)
{
    size_t bytes =
        2048 + x->plan.path.len + x->plan.query.len + x->request.method_text.len + 4 * x->request.authority.len;
    for (unsigned i = 0; i < x->request.headers.count; i++)
        bytes += 2 * (x->request.headers.at[i].name.len + x->request.headers.at[i].value.len) + 8;
    if (f->config->host_header != NULL)
        bytes += strlen(f->config->host_header);
    if (f->base != NULL)
        bytes += cache_object_facts(f->base)->validators.etag.len;
    return bytes + fetch_offers_most(f) + (stale == NULL ? 0 : stale->etag.len);
}

/* Begins as `text` does, whatever the case, and with '_' for '-': CGI and WSGI make one variable of
 * both, so that X_Forwarded_Host would stand in for ours. */
static bool begins_as(struct slice name, struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (i >= name.len ||
            ascii_lower(name.ptr[i] == '_' ? '-' : name.ptr[i]) != ascii_lower(text.ptr[i]))
            return false;
    return true;
}

static bool is_one_of(struct slice name, const struct slice *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (name.len == names[i].len && begins_as(name, names[i]))
            return true;
    return false;
}

/* Fields by which a client could make the origin see another request than the one we key and log
 * (user: IIS, Symfony, Zend). */
static bool is_override(struct slice name)
{
    static const struct slice names[] = { SLICE_INIT("X-Rewrite-URL"), SLICE_INIT("X-Host"),
                                          SLICE_INIT("X-Real-IP"), SLICE_INIT("X-URL-Scheme"),
                                          SLICE_INIT("Front-End-Https") };
    return begins_as(name, SLICE("X-Forwarded-")) || begins_as(name, SLICE("X-Original-")) ||
           is_one_of(name, names, ARRAY_COUNT(names));
}

/* Fields by which a GET would be taken for something else, and its answer be kept as GET's. */
static bool is_other_method(struct slice name)
{
    static const struct slice names[] = { SLICE_INIT("X-HTTP-Method-Override"),
                                          SLICE_INIT("X-HTTP-Method"),
                                          SLICE_INIT("X-Method-Override") };
    return is_one_of(name, names, ARRAY_COUNT(names));
}

static bool is_by_rule(const struct exchange *x, struct slice name)
{
    const struct rule_effects *effects = &x->plan.effects;
    return rules_has_any(x->site) && effects->edits_request &&
           rules_sets_request_field(effects, name);
}

/* Whether a field of the client's goes to the origin as it is. */
static bool goes_on(const struct fetch *f, const struct exchange *x, const struct header *h,
                    bool trusted)
{
    if (header_is_hop_by_hop(h->id))
        return false;
    if (is_by_rule(x, h->name)) /* the operator's: no client has it taken off */
        return true;
    if (headers_is_nominated(&x->request.headers, h->name))
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
    case HEADER_OTHER:
        return (trusted || !is_override(h->name)) && (f->fill == NULL || !is_other_method(h->name));
    default: return true;
    }
}

/* The host as the origin is told it. A fill's answer goes to all who mean this host, however they
 * spell it, so they are told the key's spelling: no "h.test.", no "H.TEST:80". */
static struct slice authority_of(struct fetch *f, const struct exchange *x)
{
    if (f->fill == NULL || x->request.authority.len == 0)
        return x->request.authority;
    struct slice host = { x->host, x->host_length };
    if (x->host_port == 0 || x->host_port == 80)
        return host;
    return arena_printf(&f->arena, SLICE_FMT ":%u", SLICE_ARG(host), x->host_port);
}

static void put_forwarded(struct writer *w, const struct exchange *x, bool trusted,
                          struct slice authority)
{
    char text[PEER_TEXT];
    struct slice client = { text, peer_text(&x->conn->peer, text) };
    const struct headers *h = &x->request.headers;

    writer_put(w, SLICE("X-Forwarded-For: "));
    if (trusted)
        for (const struct header *f = headers_find(h, HEADER_X_FORWARDED_FOR); f != NULL;
             f = headers_next(h, f)) {
            writer_put(w, f->value);
            writer_put(w, SLICE(", "));
        }
    writer_put(w, client);
    writer_put(w, SLICE("\r\n"));
    if (!trusted || !headers_has(h, HEADER_X_FORWARDED_PROTO))
        writer_put_field(w, SLICE("X-Forwarded-Proto"), SLICE("http"));
    if ((!trusted || !headers_has(h, HEADER_X_FORWARDED_HOST)) && authority.len > 0)
        writer_put_field(w, SLICE("X-Forwarded-Host"), authority);
    if (!x->snapshot->config->sends_forwarded)
        return;
    bool v6 = peer_is_v6(&x->conn->peer); /* RFC 7239 6: an IPv6 address is quoted and bracketed */
    writer_put(w, SLICE("Forwarded: for="));
    writer_put(w, v6 ? SLICE("\"[") : SLICE(""));
    writer_put(w, x->conn->peer.is_unix ? SLICE("unknown") : client);
    writer_put(w, v6 ? SLICE("]\"") : SLICE(""));
    if (authority.len > 0) {
        writer_put(w, SLICE(";host=\""));
        writer_put(w, authority);
        writer_put(w, SLICE("\""));
    }
    writer_put(w, SLICE(";proto=http\r\n"));
}

static void put_conditions(struct writer *w, const struct validators *stale)
{
    if (stale->etag.len > 0)
        writer_put_field(w, SLICE("If-None-Match"), stale->etag);
    if (stale->last_modified_s < 0)
        return;
    char date[DATE_LENGTH];
    date_format(stale->last_modified_s, date);
    writer_put_field(w, SLICE("If-Modified-Since"), (struct slice){ date, DATE_LENGTH });
}

/* Less than the whole, of the version that is stored, or else the whole (RFC 9110 13.1.5): a tag, or without one the date,
 * which is a strong one (fetch_parts.c saw to it). */
static void put_range(struct writer *w, const struct fetch *f)
{
    const struct validators *v = &cache_object_facts(f->base)->validators;
    char date[DATE_LENGTH];
    writer_put(w, SLICE("Range: bytes="));
    writer_put_number(w, f->range.first);
    writer_put(w, SLICE("-"));
    if (f->range.last != UINT64_MAX)
        writer_put_number(w, f->range.last);
    writer_put(w, SLICE("\r\n"));
    if (v->etag.len > 0) {
        writer_put_field(w, SLICE("If-Range"), v->etag);
        return;
    }
    date_format(v->last_modified_s, date);
    writer_put_field(w, SLICE("If-Range"), (struct slice){ date, DATE_LENGTH });
}

static void put_framing(struct writer *w, const struct exchange *x)
{
    char number[32];
    switch (x->request.framing) {
    case FRAMING_LENGTH: {
        int len = snprintf(number, sizeof number, "%llu", (unsigned long long)x->request.length);
        writer_put_field(w, SLICE("Content-Length"), (struct slice){ number, (size_t)len });
        return;
    }
    case FRAMING_CHUNKED: writer_put_field(w, SLICE("Transfer-Encoding"), SLICE("chunked")); return;
    case FRAMING_NONE:
    case FRAMING_CLOSE: return;
    }
}

struct slice fetch_write_request(struct fetch *f, const struct exchange *x,
                                 const struct validators *stale)
{
    size_t size = bound(x, f, stale);
    char *start = arena_alloc(&f->arena, size);
    struct writer w = writer_on(start, size);
    bool trusted = exchange_trusts_client(x);
    const struct h1_request *r = &x->request;
    struct slice authority = authority_of(f, x);

    writer_put(&w, f->fill != NULL ? SLICE("GET") : r->method_text);
    writer_put(&w, SLICE(" "));
    writer_put(&w, x->plan.path);
    if (x->plan.query.ptr != NULL) {
        writer_put(&w, SLICE("?"));
        writer_put(&w, x->plan.query);
    }
    writer_put(&w, SLICE(" HTTP/1.1\r\n"));

    if (f->config->host_header != NULL)
        writer_put_field(&w, SLICE("Host"), slice_of(f->config->host_header));
    else if (authority.len > 0)
        writer_put_field(&w, SLICE("Host"), authority);
    else
        writer_put_field(&w, SLICE("Host"), slice_of(origin_server_host(f->server)));

    for (unsigned i = 0; i < r->headers.count; i++)
        if (goes_on(f, x, &r->headers.at[i], trusted))
            writer_put_field(&w, r->headers.at[i].name, r->headers.at[i].value);
    put_forwarded(&w, x, trusted, authority);
    if (f->config->sends_via)
        writer_put_field(&w, SLICE("Via"), r->minor == 0 ? SLICE("1.0 larder") : SLICE("1.1 larder"));
    if (stale != NULL)
        put_conditions(&w, stale);
    fetch_put_offers(&w, f);
    if (f->asks != ASKS_WHOLE)
        put_range(&w, f);
    if (f->fill == NULL)
        put_framing(&w, x);
    writer_put(&w, SLICE("\r\n"));
    return slice_from(start, w.at);
}
