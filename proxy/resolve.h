/* proxy/resolve.h: names of servers to addresses, on threads of their own: a worker only ever
 * copies an address.
 *
 * Life     resolver_new() -> resolve_name_new() for each server -> resolver_wait_first() -> …
 *          -> the names and the sets let go of it; the last one ends its threads. A look-up that
 *          hangs in the system's resolver then is left behind, not waited for.
 * Threads  any; two locks, never held together: the resolver's (who is due) and a name's (its
 *          addresses).
 */
#ifndef PROXY_RESOLVE_H
#define PROXY_RESOLVE_H
#include "proxy/origin.h"

struct resolver;
struct resolve_name; /* one server's host and port, and the addresses that they have now */

enum { RESOLVE_ADDRESSES_MAX = 16, RESOLVE_THREADS_MAX = 4, RESOLVE_ADDRESS_REST_MS = 10000 };

struct resolve_answer {
    size_t count;
    struct origin_address at[RESOLVE_ADDRESSES_MAX];
};
/* Blocks as long as it likes. False and a sentence (static) when there is no address. */
typedef bool (*resolve_lookup_f)(const char *host, uint16_t port, struct resolve_answer *out,
                                 const char **why);
/* The system's: getaddrinfo(). */
bool resolve_lookup(const char *host, uint16_t port, struct resolve_answer *out, const char **why);

struct resolver *resolver_new(resolve_lookup_f lookup);
struct resolver *resolver_ref(struct resolver *r);
void resolver_unref(struct resolver **r);
/* Until every name has been looked up once, or for most_ms. */
void resolver_wait_first(struct resolver *r, int64_t most_ms);

/* Literal addresses and unix sockets are known at once and never looked up. */
struct resolve_name *resolve_name_new(struct resolver *r, const struct config_address *server,
                                      uint32_t ttl_ms);
void resolve_name_free(struct resolve_name **n);
void resolve_name_set_ttl(struct resolve_name *n, uint32_t ttl_ms);
/* Looked up again soon, whatever its ttl: a connection failed. At most once a second. */
void resolve_name_hurry(struct resolve_name *n);

struct resolve_choice {
    struct origin_address address; /* length 0: none */
    unsigned id;                   /* of this address as long as the name keeps it */
};
bool resolve_name_has_address(const struct resolve_name *n);
size_t resolve_name_count(const struct resolve_name *n);
/* The next in turn; those that rest are left out while there are others. */
struct resolve_choice resolve_name_next(struct resolve_name *n, int64_t now_ms);
/* This address did not take a connection: it rests for RESOLVE_ADDRESS_REST_MS. */
void resolve_name_rest(struct resolve_name *n, unsigned id, int64_t now_ms);
#endif
