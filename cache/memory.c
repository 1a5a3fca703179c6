/* cache/memory.c: the one budget (cache.memory).
 *
 * Whatever the store holds is counted here, by what the allocator really gave and by whole pages of
 * the memfd. Taking evicts at once, in the taker's own turn, until it fits. What has been unlinked
 * but waits for its grace period is still used, yet no longer live, so that eviction does not go
 * on past what it needs. Dying memory may lift the use above the budget for a few milliseconds; a
 * bound keeps a stuck reader from lifting it without end.
 *
 * Threads  any; only atomics.
 */
#include "cache/cache_internal.h"

#include <malloc.h>
#include <stdlib.h>

enum { VICTIMS_MAX = 4096 }; /* that one call may evict */

static _Thread_local bool is_reaping;
static _Thread_local uint64_t reaped_bytes;

#ifdef LARDER_TEST_HOOKS
_Atomic int cache_test_faults[CACHE_FAULT_COUNT];

bool cache_test_fault(enum cache_fault which)
{
    int left = atomic_load(&cache_test_faults[which]);
    if (left <= 0)
        return left < 0;
    return atomic_fetch_sub(&cache_test_faults[which], 1) == 1;
}
#endif

/* How far above the budget dying memory may lift the use. */
static uint64_t slack_bytes(const struct memory *m)
{
    uint64_t quarter = m->budget_bytes / 4;
    return quarter > MiB(8) ? quarter : MiB(8);
}

static uint64_t excess_bytes(struct memory *m)
{
    uint64_t live = count_read(&m->live_bytes);
    return live > m->budget_bytes ? live - m->budget_bytes : 0;
}

static bool fits(struct memory *m)
{
    return excess_bytes(m) == 0 && count_read(&m->used_bytes) <= m->budget_bytes + slack_bytes(m);
}

static bool evict_until_fits(struct cache *c)
{
    for (unsigned victims = 0; victims < VICTIMS_MAX;) {
        uint64_t excess = excess_bytes(&c->memory);
        if (excess == 0)
            break;
        unsigned went = evict_some(c, excess);
        if (went == 0)
            break;
        victims += went;
    }
    return fits(&c->memory);
}

bool memory_take(struct cache *c, enum memory_kind kind, uint64_t bytes)
{
    if (bytes > c->memory.budget_bytes)
        return false;
    memory_add(c, kind, bytes);
    if (likely(fits(&c->memory)) || evict_until_fits(c))
        return true;
    memory_give(c, kind, bytes);
    return false;
}

void memory_add(struct cache *c, enum memory_kind kind, uint64_t bytes)
{
    count_add(&c->memory.used_bytes, bytes);
    count_add(&c->memory.live_bytes, bytes);
    count_add(&c->memory.kind_bytes[kind], bytes);
}

void memory_fit(struct cache *c)
{
    if (!fits(&c->memory))
        (void)evict_until_fits(c);
}

void memory_give(struct cache *c, enum memory_kind kind, uint64_t bytes)
{
    CHECK(atomic_fetch_sub_explicit(&c->memory.kind_bytes[kind], bytes, memory_order_relaxed) >=
          bytes);
    count_sub(&c->memory.used_bytes, bytes);
    if (is_reaping)
        reaped_bytes += bytes;
    else
        count_sub(&c->memory.live_bytes, bytes);
}

void memory_move(struct cache *c, enum memory_kind from, enum memory_kind to, uint64_t bytes)
{
    count_add(&c->memory.kind_bytes[to], bytes);
    CHECK(atomic_fetch_sub_explicit(&c->memory.kind_bytes[from], bytes, memory_order_relaxed) >=
          bytes);
}

void memory_dying(struct cache *c, uint64_t bytes)
{
    count_sub(&c->memory.live_bytes, bytes);
}

void memory_reap_begin(void)
{
    is_reaping = true;
    reaped_bytes = 0;
}

/* The two differ only when two heads over one body died at once and neither counted the body. */
void memory_reap_end(struct cache *c, uint64_t dying_bytes)
{
    is_reaping = false;
    if (reaped_bytes != dying_bytes)
        count_add(&c->memory.live_bytes, dying_bytes - reaped_bytes);
}

uint64_t memory_block_bytes(void *block)
{
    return block == NULL ? 0 : malloc_usable_size(block);
}

/* Counts what the allocator gave beyond `counted`. */
static void *block_of(struct cache *c, enum memory_kind kind, size_t bytes, size_t counted)
{
    void *block = cache_test_fault(CACHE_FAULT_ALLOC) ? NULL : malloc(bytes == 0 ? 1 : bytes);
    if (block == NULL) {
        memory_give(c, kind, counted);
        return NULL;
    }
    uint64_t given = memory_block_bytes(block);
    if (given >= counted)
        memory_add(c, kind, given - counted);
    else
        memory_give(c, kind, counted - given);
    return block;
}

void *memory_block(struct cache *c, enum memory_kind kind, size_t bytes)
{
    if (!memory_take(c, kind, bytes))
        return NULL;
    return block_of(c, kind, bytes, bytes);
}

void *memory_block_beyond(struct cache *c, enum memory_kind kind, size_t bytes)
{
    return block_of(c, kind, bytes, 0);
}

void *memory_block_small(struct cache *c, enum memory_kind kind, size_t bytes)
{
    void *block = xmalloc(bytes);
    memory_add(c, kind, memory_block_bytes(block));
    return block;
}

void memory_block_free(struct cache *c, enum memory_kind kind, void *block)
{
    if (block == NULL)
        return;
    memory_give(c, kind, memory_block_bytes(block));
    free(block);
}
