/* base/peer.h: addresses of clients: compact, comparable, as text. Pure; any thread. */
#ifndef BASE_PEER_H
#define BASE_PEER_H
#include "base/base.h"

struct sockaddr;

enum { PEER_TEXT = 48 };
struct peer {
    uint8_t bytes[16]; /* IPv4 as ::ffff:a.b.c.d; all zero for a unix socket */
    uint16_t port;
    bool is_unix;
};
void peer_from(struct peer *p, const struct sockaddr *address);
/* "192.0.2.1", "2001:db8::1", with brackets and a port or without, as X-Forwarded-For has them. False when it is none;
 * the port is not kept. */
must_check bool peer_parse(struct slice text, struct peer *p);
/* "192.0.2.1", "2001:db8::1" or "unix:"; the length. */
size_t peer_text(const struct peer *p, char out[PEER_TEXT]);
bool peer_is_v6(const struct peer *p);

struct network {
    uint8_t bytes[16];
    uint8_t bits; /* of 128 */
};
/* "10.0.0.0/8", "2001:db8::/32", "192.0.2.1". False when it does not read as one. */
must_check bool network_parse(const char *text, struct network *out);
bool network_has(const struct network *n, const struct peer *p);
#endif
