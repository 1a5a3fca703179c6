/* admin/guard.c: who may ask: token, Host, Origin. Pure; see admin_internal.h. */
#include "admin/admin_internal.h"

#include <arpa/inet.h>

/* Without an early end: how far a guess is right must not show in the time it takes. */
static bool equal_slowly(struct slice guess, struct slice secret)
{
    unsigned char differs = guess.len != secret.len;
    for (size_t i = 0; i < guess.len; i++)
        differs |=
            (unsigned char)(guess.ptr[i] ^ (secret.len == 0 ? 0 : secret.ptr[i % secret.len]));
    volatile unsigned char result = differs; /* the compiler must not find the short way either */
    return result == 0;
}

bool admin_token_matches(const char *authorization, const char *token)
{
    struct slice given = slice_of(authorization);
    if (!slice_has_prefix_nocase(given, SLICE("Bearer ")))
        return false;
    given = slice_trim((struct slice){ given.ptr + 7, given.len - 7 });
    return !slice_is_empty(slice_of(token)) && equal_slowly(given, slice_of(token));
}

/* "[::1]:80" and "localhost:80" without port and brackets; empty when malformed. */
static struct slice host_of(struct slice authority)
{
    uint64_t port;
    struct slice host = { authority.ptr, slice_find(authority, ':') };
    if (authority.len > 0 && authority.ptr[0] == '[') {
        size_t end = slice_find(authority, ']');
        if (end == authority.len)
            return SLICE_NONE;
        host = (struct slice){ authority.ptr, end + 1 };
    }
    struct slice rest = { authority.ptr + host.len, authority.len - host.len };
    if (rest.len > 0 &&
        (rest.ptr[0] != ':' || !slice_to_u64((struct slice){ rest.ptr + 1, rest.len - 1 }, &port)))
        return SLICE_NONE;
    if (host.len > 0 && host.ptr[0] == '[')
        host = (struct slice){ host.ptr + 1, host.len - 2 };
    return host;
}

bool admin_host_is_local(const char *host, const char *bound)
{
    struct slice name = host_of(slice_trim(slice_of(host)));
    if (slice_is_empty(name))
        return false;
    return slice_equal_nocase(name, SLICE("localhost")) || slice_equal(name, SLICE("127.0.0.1")) ||
           slice_equal(name, SLICE("::1")) ||
           (bound != NULL && slice_equal_nocase(name, slice_of(bound)));
}

bool admin_origin_is_own(const char *origin, const char *host)
{
    struct slice from = slice_of(origin), own = slice_of(host);
    if (slice_has_prefix_nocase(from, SLICE("http://")))
        from = (struct slice){ from.ptr + 7, from.len - 7 };
    else if (slice_has_prefix_nocase(from, SLICE("https://")))
        from = (struct slice){ from.ptr + 8, from.len - 8 };
    else
        return false; /* "null" too: a sandboxed frame, a local file */
    return !slice_is_empty(own) && slice_equal_nocase(from, own);
}

bool admin_address_is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return slice_equal_nocase(slice_of(host), SLICE("localhost"));
}
