/* cache/key.c: the canonical key; see decide.h. Pure; any thread; on the hit path. */
#include "cache/decide.h"

static char *put(char *at, struct slice s)
{
    if (s.len > 0)
        memcpy(at, s.ptr, s.len);
    return at + s.len;
}

/* Eight bytes at a time, without branches: a path is most of a key. Bytes above 0x7f stay as they
 * are. */
static char *put_lower(char *at, struct slice s)
{
    const uint64_t ones = 0x0101010101010101;
    size_t i = 0;
    for (; s.len - i >= 8; i += 8) {
        uint64_t word;
        memcpy(&word, s.ptr + i, 8);
        uint64_t low = word & ~(ones * 0x80);
        uint64_t from_a = low + ones * (0x80 - 'A'), above_z = low + ones * (0x80 - 'Z' - 1);
        uint64_t is_upper = from_a & ~above_z & ~word & ones * 0x80;
        word |= is_upper >> 2; /* 0x80 to 0x20, the bit of case */
        memcpy(at + i, &word, 8);
    }
    for (; i < s.len; i++)
        at[i] = ascii_lower(s.ptr[i]);
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
    enum { MARKS = 1 + 6 + 1 + 1 }; /* NUL, ":65535", '?', NUL at most */
    /* no slash is in a host, so the path's first one tells where the host ends; no NUL is in a path
     * or query, so the second one tells where the URL ends */
    if (parts->path.len == 0 || parts->path.ptr[0] != '/')
        return 0;
    size_t most = parts->site.len + parts->host.len + parts->path.len + parts->query.len +
                  parts->extra.len + MARKS;
    if (most > capacity)
        return 0;
    char *at = put(out, parts->site);
    *at++ = '\0';
    at = put(at, parts->host);
    if (parts->port != 0)
        at = put_port(at, parts->port);
    at = parts->ignores_case ? put_lower(at, parts->path) : put(at, parts->path);
    if (parts->query.ptr != NULL) { /* "/a?" is not "/a" (RFC 3986 6.2.3) */
        *at++ = '?';
        at = put(at, parts->query);
    }
    if (parts->extra.len > 0) {
        *at++ = '\0';
        at = put(at, parts->extra);
    }
    return (size_t)(at - out);
}
