/* cache/cache.c: the store as a whole: made, changed, measured, freed; threads and read sections.
 * See cache.h. */
#include "cache/cache_internal.h"

#include "base/clock.h"
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/random.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { OBJECT_SHARE = 8 }; /* one object has at most an eighth of the budget */

/* ---- threads and grace periods --------------------------------------------------------------- */

static char section_end; /* an address for ThreadSanitizer: see cache_internal.h */

void cache_thread_register(void)
{
    rcu_register_thread();
}

void cache_thread_unregister(void)
{
    rcu_unregister_thread();
}

void cache_read_begin(void)
{
    rcu_read_lock();
}

void cache_read_end(void)
{
    ORDER_RELEASE(&section_end);
    rcu_read_unlock();
}

void cache_defer(struct rcu_head *head, void (*run)(struct rcu_head *head))
{
    ORDER_RELEASE(head);
    call_rcu(head, run);
}

void cache_deferred(struct rcu_head *head)
{
    ORDER_ACQUIRE(head);
    ORDER_ACQUIRE(&section_end);
}

/* liburcu calls back on one thread, in the order of the calls: when this one has run, all before it
 * have. (Its own rcu_barrier() does the same with memory of its own that ThreadSanitizer takes for
 * a race.) */
struct settling {
    struct rcu_head rcu;
    sem_t done;
};

static void on_settled(struct rcu_head *head)
{
    cache_deferred(head);
    sem_post(&caa_container_of(head, struct settling, rcu)->done);
}

void cache_settle(void)
{
    struct settling s;
    CHECK(sem_init(&s.done, 0, 0) == 0);
    cache_defer(&s.rcu, on_settled);
    while (sem_wait(&s.done) != 0)
        CHECK(errno == EINTR);
    sem_destroy(&s.done);
}

/* ---- life ------------------------------------------------------------------------------------ */

void cache_change(struct cache *c, const struct cache_settings *settings)
{
    uint64_t object_max = settings->object_max_bytes;
    if (object_max == 0)
        object_max = c->memory.budget_bytes / OBJECT_SHARE;
    uint32_t variants_max = settings->variants_max == 0 ? 1 : settings->variants_max;
    atomic_store_explicit(&c->object_max_bytes, object_max, memory_order_relaxed);
    atomic_store_explicit(&c->variants_max, variants_max, memory_order_relaxed);
    atomic_store_explicit(&c->uncacheable_ms, settings->uncacheable_ms, memory_order_relaxed);
    atomic_store_explicit(&c->collapse_max, settings->collapse_max, memory_order_relaxed);
}

/* Chosen collisions need the seed. */
static uint64_t random_seed(void)
{
    uint64_t seed;
    ssize_t n = getrandom(&seed, sizeof seed, 0);
    CHECK(n == (ssize_t)sizeof seed);
    return seed;
}

struct cache *cache_new(const struct cache_settings *settings)
{
    struct cache *c = aligned_alloc(alignof(struct cache), sizeof *c);
    CHECK(c != NULL);
    memset(c, 0, sizeof *c);
    c->memory.budget_bytes = settings->memory_bytes;
    c->seed = random_seed();
    cache_change(c, settings);
    memory_add(c, MEMORY_OTHER, sizeof *c);
    extents_init(&c->extents);
    uncacheable_init(c);
    shards_init(c);
    tags_init(c);
    fills_init(c);
    index_init(c);
    return c;
}

void cache_free(struct cache **cache)
{
    struct cache *c = *cache;
    *cache = NULL;
    if (c == NULL)
        return;
    CHECK(count_read(&c->fills) == 0);
    index_fini(c);
    CHECK(count_read(&c->objects) == 0);
    fills_fini(c);
    tags_fini(c);
    shards_fini(c);
    uncacheable_fini(c);
    extents_fini(&c->extents);
    memory_give(c, MEMORY_OTHER, sizeof *c);
    /* Whatever was taken was given back. */
    CHECK(count_read(&c->memory.used_bytes) == 0 && count_read(&c->memory.live_bytes) == 0);
    free(c);
}

struct cache_key cache_key_of(struct cache *c, struct slice bytes)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.ptr, bytes.len, c->seed);
    return (struct cache_key){ .bytes = bytes, .high = hash.high64, .low = hash.low64 };
}

unsigned cache_purge_key(struct cache *c, const struct cache_key *key)
{
    unsigned dropped = 0;
    fills_purge(c, key, &dropped);
    return dropped;
}

/* ---- figures --------------------------------------------------------------------------------- */

void cache_usage_read(struct cache *c, struct cache_usage *out)
{
    _Atomic uint64_t *kind = c->memory.kind_bytes;
    *out = (struct cache_usage){
        .budget_bytes = c->memory.budget_bytes,
        .body_memory_bytes = count_read(&kind[MEMORY_BODY]),
        .body_file_bytes = count_read(&kind[MEMORY_FILE]),
        .head_bytes = count_read(&kind[MEMORY_HEAD]),
        .index_bytes = count_read(&kind[MEMORY_INDEX]),
        .filling_bytes = count_read(&kind[MEMORY_FILLING]),
        .other_bytes = count_read(&kind[MEMORY_OTHER]),
        .objects = count_read(&c->objects),
        .variants = count_read(&c->varying),
        .fills = count_read(&c->fills),
        .evicted = count_read(&c->evicted),
        .evicted_bytes = count_read(&c->evicted_bytes),
        .uncacheable_known = uncacheable_count(c, clock_mono_ms()),
        .variant_cap_hits = count_read(&c->variant_cap_hits),
        .tags = count_read(&c->tags),
    };
    /* A sum of what is shown, so that the page adds up however it is timed. */
    out->used_bytes = out->body_memory_bytes + out->body_file_bytes + out->head_bytes +
                      out->index_bytes + out->filling_bytes + out->other_bytes;
}
