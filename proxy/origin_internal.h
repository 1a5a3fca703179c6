/* proxy/origin_internal.h: what origin.c, pool.c and their tests share. */
#ifndef PROXY_ORIGIN_INTERNAL_H
#define PROXY_ORIGIN_INTERNAL_H
#include "proxy/resolve.h"

enum { ORIGIN_REST_MS = 1000, ORIGIN_FIRST_LOOKUP_MS = 2000 };

/* origins_new() with another way to look names up; `lookup` counts with the first set only. */
struct origins *origins_new_with(const struct config *config, struct origins *previous,
                                 resolve_lookup_f lookup);
/* origin_choose() at a given time. */
struct origin_server *origin_choose_at(struct origin *o, const struct origin_server *not_this,
                                       int64_t now_ms);

struct resolve_name *origin_server_addresses(struct origin_server *s);
uint32_t origin_server_idle_timeout_ms(const struct origin_server *s);
uint32_t origin_server_idle_max(const struct origin_server *s);
void origin_server_count_idle(struct origin_server *s, int delta);
#endif
