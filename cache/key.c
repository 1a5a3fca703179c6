/* cache/key.c: the canonical key; see decide.h. Pure; any thread; on the hit path. */
#include "cache/decide.h"

static char *put(char *at, struct slice s)
{
    if (s.len > 0)
        memcpy(at, s.ptr, s.len);
    return at + s.len;
}

static char *put_port(char *at, uint16_t port)
{
    char digits[5];
    size_t count = 0;
    for (unsigned rest = port; rest != 0; rest /= 10)
        digits[count++] = (char)('0' + rest % 10);
    *at++ = ':';
    while (count > 0)
        *at++ = digits[--count];
    return at;
}

size_t cache_key_write(const struct key_parts *parts, char *out, size_t capacity)
{
    enum { MARKS = 1 + 6 + 1 }; /* NUL, ":65535", '?' at most */
    /* no slash is in a host, so the path's first one tells where the host ends */
    if (parts->path.len == 0 || parts->path.ptr[0] != '/')
        return 0;
    size_t most = parts->site.len + parts->host.len + parts->path.len + parts->query.len + MARKS;
    if (most > capacity)
        return 0;
    char *at = put(out, parts->site);
    *at++ = '\0';
    at = put(at, parts->host);
    if (parts->port != 0)
        at = put_port(at, parts->port);
    at = put(at, parts->path);
    if (parts->query.ptr != NULL) { /* "/a?" is not "/a" (RFC 3986 6.2.3) */
        *at++ = '?';
        at = put(at, parts->query);
    }
    return (size_t)(at - out);
}
