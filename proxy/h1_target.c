/* proxy/h1_target.c: the forms of a request target and the authority (RFC 9112 3.2, RFC 3986 3.2);
 * see h1.h. Pure. */
#include "proxy/h1_internal.h"

#include <arpa/inet.h>

/* DNS ends at 253; this is what fits the byte-counted keys above us. */
enum { HOST_MAX = 255, PORT_DIGITS_MAX = 5 };

/* The port after its ':'. An empty one is in the grammar and says nothing; port 0 cannot be
 * connected to. */
static bool read_port(const char *p, const char *end, struct authority *a)
{
    unsigned port = 0;
    if (p == end)
        return true;
    if (end - p > PORT_DIGITS_MAX)
        return false;
    for (; p < end; p++) {
        if (!byte_is_digit(*p))
            return false;
        port = port * 10 + (unsigned)(*p - '0');
    }
    a->port = (uint16_t)port;
    a->has_port = true;
    return port > 0 && port <= UINT16_MAX;
}

static bool is_ipv6(struct slice text)
{
    char terminated[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (text.len >= sizeof terminated || slice_find(text, '\0') < text.len)
        return false;
    memcpy(terminated, text.ptr, text.len);
    terminated[text.len] = '\0';
    return inet_pton(AF_INET6, terminated, &address) == 1;
}

/* "[v6]" [":" port]. No zone (RFC 6874 is for local use) and no IPvFuture: nobody speaks them over
 * the wire. */
static bool split_bracketed(struct slice text, struct authority *a)
{
    size_t close = slice_find(text, ']');
    if (close == text.len || !is_ipv6((struct slice){ text.ptr + 1, close - 1 }))
        return false;
    a->host = (struct slice){ text.ptr, close + 1 };
    if (text.len == a->host.len)
        return true;
    if (text.ptr[a->host.len] != ':')
        return false;
    return read_port(text.ptr + a->host.len + 1, text.ptr + text.len, a);
}

/* The grammar has more than we take. '%': a percent-encoded host would be a second spelling of the
 * name that we route and key by. ',': what a joined pair of Host fields looks like. An empty label
 * ("a..b", ".a", "."): no name, and one host would have two canonical forms. */
bool h1_authority_split(struct slice text, struct authority *a)
{
    *a = (struct authority){ .host = SLICE_NONE };
    if (text.len == 0)
        return false;
    if (text.ptr[0] == '[')
        return split_bracketed(text, a);
    const char *p = text.ptr, *end = text.ptr + text.len;
    for (char before = '.'; p < end && byte_is(*p, BYTE_HOST); before = *p++)
        if (*p == '.' && before == '.')
            return false;
    a->host = slice_from(text.ptr, p);
    if (a->host.len == 0 || a->host.len > HOST_MAX)
        return false;
    if (p == end)
        return true;
    return *p == ':' && read_port(p + 1, end, a);
}

bool h1_canonical_host(struct slice authority, char out[256], size_t *len, uint16_t *port)
{
    struct authority a;
    if (!h1_authority_split(authority, &a))
        return false;
    if (a.host.ptr[a.host.len - 1] == '.')
        a.host.len--;
    for (size_t i = 0; i < a.host.len; i++)
        out[i] = ascii_lower(a.host.ptr[i]);
    *len = a.host.len;
    *port = a.port;
    return true;
}

/* `text` begins with '/' . */
static void split_path(struct h1_request *r, struct slice text)
{
    size_t mark = slice_find(text, '?');
    r->path = (struct slice){ text.ptr, mark };
    r->query = mark == text.len ? SLICE_NONE : slice_from(text.ptr + mark + 1, text.ptr + text.len);
}

/* RFC 9112 3.2.2. */
static bool split_absolute(struct h1_request *r)
{
    size_t scheme_len = slice_has_prefix_nocase(r->target, SLICE("http://"))    ? 4
                        : slice_has_prefix_nocase(r->target, SLICE("https://")) ? 5
                                                                                : 0;
    if (scheme_len == 0)
        return false;
    r->form = FORM_ABSOLUTE;
    r->scheme = (struct slice){ r->target.ptr, scheme_len };
    const char *end = r->target.ptr + r->target.len;
    const char *p = r->target.ptr + scheme_len + 3;
    r->authority.ptr = p;
    while (p < end && *p != '/' && *p != '?')
        p++;
    r->authority.len = (size_t)(p - r->authority.ptr);
    struct authority parts;
    if (!h1_authority_split(r->authority,
                            &parts)) /* an empty one and userinfo too: RFC 9110 4.2.1, 4.2.4 */
        return false;
    if (p < end && *p == '/') {
        split_path(r, slice_from(p, end));
        return true;
    }
    r->path = SLICE("/");
    r->query = p < end ? slice_from(p + 1, end) : SLICE_NONE;
    if (p == end &&
        r->method == METHOD_OPTIONS) { /* RFC 9112 3.2.4: this means the server as a whole */
        r->form = FORM_ASTERISK;
        r->path = SLICE("*");
    }
    return true;
}

/* RFC 9112 3.2.3: CONNECT alone, which has no other form, and always with a port. */
static bool split_authority_form(struct h1_request *r)
{
    struct authority parts;
    r->form = FORM_AUTHORITY;
    r->authority = r->target;
    r->path = r->query = SLICE_NONE;
    return h1_authority_split(r->target, &parts) && parts.has_port;
}

bool h1_target_split(struct h1_request *r)
{
    r->scheme = r->authority = SLICE_NONE;
    if (unlikely(r->method == METHOD_CONNECT))
        return split_authority_form(r);
    if (likely(r->target.ptr[0] == '/')) {
        r->form = FORM_ORIGIN;
        split_path(r, r->target);
        return true;
    }
    if (r->target.ptr[0] != '*')
        return split_absolute(r);
    r->form = FORM_ASTERISK; /* RFC 9112 3.2.4: OPTIONS alone */
    r->path = r->target;
    r->query = SLICE_NONE;
    return r->target.len == 1 && r->method == METHOD_OPTIONS;
}
