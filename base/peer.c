/* base/peer.c: see peer.h. */
#include "base/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

static const uint8_t v4_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

void peer_from(struct peer *p, const struct sockaddr *address)
{
    *p = (struct peer){ 0 };
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)address;
        memcpy(p->bytes, v4_prefix, sizeof v4_prefix);
        memcpy(p->bytes + 12, &v4->sin_addr, 4);
        p->port = ntohs(v4->sin_port);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)address;
        memcpy(p->bytes, &v6->sin6_addr, 16);
        p->port = ntohs(v6->sin6_port);
    } else {
        p->is_unix = true;
    }
}

bool peer_parse(struct slice text, struct peer *p)
{
    char host[PEER_TEXT];
    *p = (struct peer){ 0 };
    if (text.len > 0 && text.ptr[0] == '[') { /* [v6] or [v6]:port */
        size_t end = slice_find(text, ']');
        if (end == text.len)
            return false;
        text = (struct slice){ text.ptr + 1, end - 1 };
    } else if (slice_find(text, ':') < text.len && slice_find(text, '.') < slice_find(text, ':')) {
        text.len = slice_find(text, ':'); /* v4:port */
    }
    if (text.len == 0 || text.len >= sizeof host || slice_find(text, '\0') < text.len)
        return false;
    memcpy(host, text.ptr, text.len);
    host[text.len] = '\0';
    if (inet_pton(AF_INET, host, p->bytes + 12) == 1) {
        memcpy(p->bytes, v4_prefix, sizeof v4_prefix);
        return true;
    }
    return inet_pton(AF_INET6, host, p->bytes) == 1;
}

bool peer_is_v6(const struct peer *p)
{
    return !p->is_unix && memcmp(p->bytes, v4_prefix, sizeof v4_prefix) != 0;
}

size_t peer_text(const struct peer *p, char out[PEER_TEXT])
{
    if (p->is_unix) {
        memcpy(out, "unix:", 6);
        return 5;
    }
    bool v6 = peer_is_v6(p);
    const void *from = v6 ? p->bytes : p->bytes + 12;
    CHECK(inet_ntop(v6 ? AF_INET6 : AF_INET, from, out, PEER_TEXT) != NULL);
    return strlen(out);
}

/* The number after '/', or the whole when there is none; -1 when it is not one from 0 to `max`. */
static int prefix_bits(const char *slash, int max)
{
    uint64_t bits;
    if (slash == NULL)
        return max;
    if (!slice_to_u64(slice_of(slash + 1), &bits) || bits > (uint64_t)max)
        return -1;
    return (int)bits;
}

bool network_parse(const char *text, struct network *out)
{
    char host[PEER_TEXT];
    const char *slash = strchr(text, '/');
    size_t len = slash == NULL ? strlen(text) : (size_t)(slash - text);
    if (len == 0 || len >= sizeof host)
        return false;
    memcpy(host, text, len);
    host[len] = '\0';
    *out = (struct network){ 0 };
    if (inet_pton(AF_INET, host, out->bytes + 12) == 1) {
        int bits = prefix_bits(slash, 32);
        memcpy(out->bytes, v4_prefix, sizeof v4_prefix);
        out->bits = (uint8_t)(96 + bits);
        return bits >= 0;
    }
    int bits = prefix_bits(slash, 128);
    out->bits = (uint8_t)bits;
    return bits >= 0 && inet_pton(AF_INET6, host, out->bytes) == 1;
}

bool network_has(const struct network *n, const struct peer *p)
{
    if (p->is_unix)
        return false;
    unsigned whole = n->bits / 8, rest = n->bits % 8;
    if (memcmp(n->bytes, p->bytes, whole) != 0)
        return false;
    if (rest == 0)
        return true;
    unsigned mask = (0xffu << (8 - rest)) & 0xff;
    return ((n->bytes[whole] ^ p->bytes[whole]) & mask) == 0;
}
