/* config/site.c: which site serves a host: a table made once in a load and only read afterwards, on
 * the hit path. Any thread may look; there is no allocation and no lock.
 */
#include "config/config_internal.h"

enum {
    HOST_MAX_BYTES = 253
}; /* no configured host is longer, so a longer one is only served by "*" */

static uint32_t hash_host(struct slice host)
{
    uint32_t hash =
        2166136261u; /* FNV-1a: hosts are short, and the operator chose those in the table */
    for (size_t i = 0; i < host.len; i++)
        hash = (hash ^ (unsigned char)host.ptr[i]) * 16777619u;
    return hash ^ hash >> 15;
}

/* The slot that has the host, or the free one where it belongs: at least half of the slots are
 * free. */
static struct config_host_slot *slot_of(const struct config_private *own, struct slice host)
{
    uint32_t at = hash_host(host);
    for (;; at++) {
        struct config_host_slot *slot = &own->slots[at & own->slot_mask];
        if (slot->site == NULL || slice_equal(slot->host, host))
            return slot;
    }
}

void config_hosts_init(struct config_private *own, size_t host_count)
{
    size_t count = 4;
    while (count < host_count * 2)
        count *= 2;
    own->slots = arena_alloc(&own->arena, count * sizeof *own->slots);
    memset(own->slots, 0, count * sizeof *own->slots);
    own->slot_mask = (uint32_t)(count - 1);
}

const struct config_site *config_hosts_add(struct config_private *own, struct slice host,
                                           const struct config_site *site)
{
    if (slice_equal(host, SLICE("*"))) {
        const struct config_site *before = own->any_site;
        own->any_site = before == NULL ? site : before;
        return before;
    }
    if (slice_has_prefix(host, SLICE("*."))) {
        own->has_wildcards = true;
        host = (struct slice){ host.ptr + 1, host.len - 1 };
    }
    struct config_host_slot *slot = slot_of(own, host);
    if (slot->site != NULL)
        return slot->site;
    *slot = (struct config_host_slot){ .host = host, .site = site };
    return NULL;
}

const struct config_site *config_site_find(const struct config *c, struct slice host)
{
    const struct config_private *own = c->own;
    if (host.len == 0 || host.len > HOST_MAX_BYTES || host.ptr[0] == '.')
        return own->any_site;
    const struct config_site *site = slot_of(own, host)->site;
    if (site != NULL || !own->has_wildcards)
        return site != NULL ? site : own->any_site;
    for (size_t i = 1; i < host.len; i++) { /* from the left: the longest suffix first */
        if (host.ptr[i] != '.')
            continue;
        site = slot_of(own, (struct slice){ host.ptr + i, host.len - i })->site;
        if (site != NULL)
            return site;
    }
    return own->any_site;
}
