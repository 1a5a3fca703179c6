/* cache/uncacheable.c: remembers for a short while which keys had answers that cannot be shared, so
 * that their requests do not queue behind one another.
 *
 * A table with one slot of 8 bytes per place, made at the start: half is bits of the key's hash,
 * half the time until which it holds. A new key overwrites the old: forgetting costs one collapsed
 * request, and memory never grows.
 *
 * Threads  any; relaxed atomics, since a slot is one word.
 */
#include "cache/cache_internal.h"

#include <stdlib.h>

enum {
    TICK_SHIFT = 6,
    SLOT_BYTES = 8
}; /* time in steps of 64 ms: 32 bits go round after eight years */

void uncacheable_init(struct cache *c)
{
    uint64_t count = power_of_two(c->memory.budget_bytes / 8192, 4096, 262144);
    c->uncacheable.slots = xcalloc(count, SLOT_BYTES);
    c->uncacheable.mask = count - 1;
    memory_add(c, MEMORY_OTHER, count * SLOT_BYTES);
}

void uncacheable_fini(struct cache *c)
{
    memory_give(c, MEMORY_OTHER, (c->uncacheable.mask + 1) * SLOT_BYTES);
    free(c->uncacheable.slots);
    c->uncacheable.slots = NULL;
}

static uint32_t tick_of(int64_t ms)
{
    return (uint32_t)((uint64_t)ms >> TICK_SHIFT);
}

static bool slot_is_live(uint64_t slot, int64_t now_ms)
{
    return slot != 0 && (int32_t)((uint32_t)slot - tick_of(now_ms)) > 0;
}

static _Atomic uint64_t *slot_of(struct cache *c, const struct cache_key *key)
{
    return &c->uncacheable.slots[key->low & c->uncacheable.mask];
}

bool cache_is_uncacheable(struct cache *c, const struct cache_key *key, int64_t now_ms)
{
    uint64_t slot = atomic_load_explicit(slot_of(c, key), memory_order_relaxed);
    return slot >> 32 == (uint32_t)key->high && slot_is_live(slot, now_ms);
}

void cache_remember_uncacheable(struct cache *c, const struct cache_key *key, int64_t now_ms)
{
    uint32_t hold_ms = atomic_load_explicit(&c->uncacheable_ms, memory_order_relaxed);
    if (hold_ms == 0)
        return;
    uint32_t until = tick_of(now_ms + hold_ms) + 1; /* rounded up: never shorter than asked */
    uint64_t slot = (uint64_t)(uint32_t)key->high << 32 | until;
    atomic_store_explicit(slot_of(c, key), slot, memory_order_relaxed);
}

uint64_t uncacheable_count(struct cache *c, int64_t now_ms)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i <= c->uncacheable.mask; i++) {
        uint64_t slot = atomic_load_explicit(&c->uncacheable.slots[i], memory_order_relaxed);
        count += slot_is_live(slot, now_ms);
    }
    return count;
}
