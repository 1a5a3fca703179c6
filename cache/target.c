/* cache/target.c: which other URLs an unsafe request has changed (RFC 9111 4.4): references
 * resolved against the request's URL (RFC 3986 5); see decide.h. Pure; any thread.
 *
 * Strict on purpose: what does not read as a URL names nothing, and nothing of another origin is
 * touched (RFC 9111 4.4: else one site could empty another's cache). Percent-encoding is left as it
 * is: the key has the path as it was asked for, and two spellings are two keys.
 */
#include "cache/decide.h"

/* ---- the parts of a reference (RFC 3986 4.1, appendix B)
 * ----------------------------------------- */

struct reference {
    struct slice scheme, authority, query; /* ptr NULL: not there */
    struct slice path;
};

/* VCHAR, as a request's target: anything else would have come percent-encoded. */
static bool is_uri_text(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= 0x20 || s.ptr[i] >= 0x7f)
            return false;
    return true;
}

/* The first of the bytes of `stops`, or the length. */
static size_t find_any(struct slice s, const char *stops)
{
    size_t i = 0;
    while (i < s.len && strchr(stops, s.ptr[i]) == NULL)
        i++;
    return i;
}

static struct slice skip(struct slice s, size_t bytes)
{
    return (struct slice){ s.ptr + bytes, s.len - bytes };
}

static bool reference_split(struct slice text, struct reference *out)
{
    *out = (struct reference){ .path = SLICE_NONE };
    if (!is_uri_text(text))
        return false;
    text.len = slice_find(text, '#'); /* a fragment is the client's business (RFC 9110 4.2.5) */
    /* a colon in the first segment always ends a scheme (RFC 3986 4.2) */
    size_t colon = find_any(text, ":/?");
    if (colon < text.len && text.ptr[colon] == ':') {
        out->scheme = (struct slice){ text.ptr, colon };
        text = skip(text, colon + 1);
    }
    if (slice_has_prefix(text, SLICE("//"))) {
        text = skip(text, 2);
        out->authority = (struct slice){ text.ptr, find_any(text, "/?") };
        text = skip(text, out->authority.len);
    }
    out->path = (struct slice){ text.ptr, slice_find(text, '?') };
    if (out->path.len < text.len)
        out->query = skip(text, out->path.len + 1);
    return true;
}

/* ---- the same origin (RFC 9110 4.3.1)
 * ------------------------------------------------------------ */

static bool is_scheme(struct slice scheme)
{
    return slice_equal_nocase(scheme, SLICE("http")) || slice_equal_nocase(scheme, SLICE("https"));
}

static uint16_t default_port(struct slice scheme)
{
    return slice_equal_nocase(scheme, SLICE("https")) ? 443 : 80;
}

/* After its ':'. Nothing is the default's (RFC 3986 3.2.3). */
static bool read_port(struct slice text, uint16_t *port)
{
    uint64_t value;
    if (text.len == 0)
        return true;
    if (!slice_to_u64(text, &value) || value == 0 || value > UINT16_MAX)
        return false;
    *port = (uint16_t)value;
    return true;
}

/* host [":" port]; the host as it is keyed: without the dot at its end. `port` has the default.
 * With userinfo, which is for those who deceive (RFC 9110 4.2.4), it is no host that any request
 * has. */
static bool authority_split(struct slice text, struct slice *host, uint16_t *port)
{
    size_t from = 0;
    if (text.len > 0 && text.ptr[0] == '[') {
        from = slice_find(text, ']');
        if (from == text.len)
            return false;
    }
    struct slice after = skip(text, from);
    size_t colon = slice_find(after, ':');
    *host = (struct slice){ text.ptr, from + colon };
    if (colon < after.len && !read_port(skip(after, colon + 1), port))
        return false;
    if (host->len > 0 && host->ptr[host->len - 1] == '.')
        host->len--;
    return host->len > 0; /* RFC 9110 4.2.1: an empty one is invalid */
}

static bool is_same_origin(const struct target_base *base, const struct reference *r)
{
    if (r->scheme.ptr != NULL &&
        (!is_scheme(r->scheme) || !slice_equal_nocase(r->scheme, base->scheme)))
        return false;
    if (r->authority.ptr == NULL)
        return r->scheme.ptr == NULL; /* "http:path": no URL of this scheme is without a host */
    struct slice host;
    uint16_t port = default_port(base->scheme);
    uint16_t base_port = base->port == 0 ? port : base->port;
    return authority_split(r->authority, &host, &port) && port == base_port &&
           slice_equal_nocase(host, base->host);
}

/* ---- the path (5.2.3, 5.2.4)
 * --------------------------------------------------------------------- */

/* In place; `path` begins with '/'. What is written never overtakes what is read. */
static size_t remove_dot_segments(char *path, size_t len)
{
    size_t used = 0;
    for (size_t at = 0; at < len;) {
        struct slice segment = { path + at + 1, len - at - 1 };
        segment.len = slice_find(segment, '/');
        bool is_last = at + 1 + segment.len == len;
        bool goes_up = slice_equal(segment, SLICE(".."));
        if (goes_up)
            while (used > 0 && path[--used] != '/')
                ;
        if (goes_up || slice_equal(segment, SLICE("."))) {
            if (is_last)
                path[used++] = '/';
        } else {
            memmove(path + used, path + at, segment.len + 1);
            used += segment.len + 1;
        }
        at += segment.len + 1;
    }
    return used;
}

/* 5.2.3: all of the base's path up to its last '/', then the reference's. */
static bool merge(struct arena *a, struct slice base, struct slice relative, struct slice *out)
{
    if (relative.len > 0 && relative.ptr[0] == '/')
        base.len = 0;
    while (base.len > 0 && base.ptr[base.len - 1] != '/')
        base.len--;
    size_t len = base.len + relative.len;
    char *path = arena_alloc(a, len);
    if (base.len > 0)
        memcpy(path, base.ptr, base.len);
    memcpy(path + base.len, relative.ptr, relative.len);
    if (path[0] != '/') /* a base without a path that could be merged with */
        return false;
    *out = (struct slice){ path, remove_dot_segments(path, len) };
    return true;
}

bool cache_target_resolve(struct arena *a, const struct target_base *base, struct slice reference,
                          struct slice *path, struct slice *query)
{
    struct reference r;
    if (!reference_split(reference, &r) || !is_same_origin(base, &r))
        return false;
    struct slice base_path = base->path.len == 0 ? SLICE("/") : base->path;
    *query = r.query;
    if (r.path.len > 0)
        return merge(a, base_path, r.path, path);
    if (r.authority.ptr != NULL) {
        *path = SLICE("/"); /* RFC 9110 4.2.3: an empty path is the same */
        return true;
    }
    *path = base_path;
    if (r.query.ptr == NULL)
        *query = base->query;
    return path->len > 0 && path->ptr[0] == '/';
}

/* ---- POST (RFC 9110 9.3.3, 8.7)
 * ------------------------------------------------------------------ */

static bool is_freshness_explicit(const struct headers *response)
{
    struct cache_control control;
    cache_control_read(response, HEADER_CACHE_CONTROL, &control);
    return control.max_age_s != CONTROL_NONE || control.s_maxage_s != CONTROL_NONE ||
           headers_has(response, HEADER_EXPIRES);
}

bool cache_post_is_get(const struct target_base *base, struct slice query,
                       const struct headers *response, uint16_t status, struct arena *a)
{
    /* other statuses do not say "here is what a GET would have brought", whatever they are located
     * at: a 201 is about what was made, a 204 and an error have no representation */
    if (status != 200 && status != 203)
        return false;
    const struct header *f = headers_find(response, HEADER_CONTENT_LOCATION);
    if (f == NULL || f->next != 0 || !is_freshness_explicit(response))
        return false;
    struct target_base asked = *base;
    struct slice path, located_query;
    asked.query = query;
    return cache_target_resolve(a, &asked, f->value, &path, &located_query) &&
           slice_equal(path, base->path) && (located_query.ptr == NULL) == (query.ptr == NULL) &&
           slice_equal(located_query, query);
}
