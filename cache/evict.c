/* cache/evict.c: which object goes when memory is short: S3-FIFO (Yang and others, SOSP 2023), by
 * bytes, sharded.
 *
 *   new object --> small queue (a tenth) --used again--> main queue --used--> once more round main
 *                    '--not used--> gone, a ghost stays      '--not used--> gone
 *   new object whose ghost is known ------------------------^
 *
 * A page that is asked for once never reaches the main queue, so a crawler or a big download does
 * not flush what is hot. A hit moves nothing: it raises a counter up to USED_MAX, and queues are
 * looked at only when something must go. An object that somebody holds gives no memory back, so it
 * is passed by as if it were used.
 *
 * Threads  any; each shard has a lock, taken by misses only. Which shard gives is chosen between
 * two by their bytes: going round alone would let those dwindle to which fewer keys happen to fall.
 */
#include "cache/cache_internal.h"

#include <stdlib.h>

enum {
    SMALL_SHARE = 10, /* the small queue holds a tenth of the bytes */
    SCAN_MAX = 256,   /* objects looked at for one victim */
    VISIT_MAX = 8,    /* victims of one shard before the next has its turn */
    GHOST_LEAST = 64,
};

void shards_init(struct cache *c)
{
    uint64_t ghosts =
        power_of_two(c->memory.budget_bytes / 8192 / SHARD_COUNT, GHOST_LEAST, 1u << 20);
    for (unsigned i = 0; i < SHARD_COUNT; i++) {
        struct shard *s = &c->shards[i];
        CHECK(pthread_mutex_init(&s->lock, NULL) == 0);
        RB_INIT(&s->order);
        s->ghosts = xcalloc(ghosts, sizeof *s->ghosts);
        s->ghost_mask = (uint32_t)ghosts - 1;
        memory_add(c, MEMORY_INDEX, ghosts * sizeof *s->ghosts);
    }
}

void shards_fini(struct cache *c)
{
    for (unsigned i = 0; i < SHARD_COUNT; i++) {
        struct shard *s = &c->shards[i];
        CHECK(s->small.count == 0 && s->main.count == 0 && RB_EMPTY(&s->order));
        memory_give(c, MEMORY_INDEX, (s->ghost_mask + 1ull) * sizeof *s->ghosts);
        free(s->ghosts);
        pthread_mutex_destroy(&s->lock);
    }
}

/* ---- queues ---------------------------------------------------------------------------------- */

static struct queue *queue_of(struct shard *s, enum queue_id id)
{
    return id == QUEUE_SMALL ? &s->small : &s->main;
}

static void queue_push(struct shard *s, enum queue_id id, struct cache_object *o)
{
    struct queue *q = queue_of(s, id);
    o->queue = id;
    o->newer = NULL;
    o->older = q->newest;
    if (q->newest != NULL)
        q->newest->newer = o;
    else
        q->oldest = o;
    q->newest = o;
    q->count++;
    q->bytes += o->charge_bytes;
    count_add(&s->bytes, o->charge_bytes);
}

void queue_remove_locked(struct shard *s, struct cache_object *o)
{
    struct queue *q = queue_of(s, o->queue);
    CHECK(o->queue != QUEUE_NONE && q->count > 0);
    if (o->older != NULL)
        o->older->newer = o->newer;
    else
        q->oldest = o->newer;
    if (o->newer != NULL)
        o->newer->older = o->older;
    else
        q->newest = o->older;
    q->count--;
    q->bytes -= o->charge_bytes;
    count_sub(&s->bytes, o->charge_bytes);
    o->queue = QUEUE_NONE;
    o->older = o->newer = NULL;
}

static void queue_move(struct shard *s, enum queue_id to, struct cache_object *o)
{
    queue_remove_locked(s, o);
    queue_push(s, to, o);
}

/* ---- ghosts ---------------------------------------------------------------------------------- */

static struct ghost *ghost_of(struct shard *s, const struct cache_object *o)
{
    return &s->ghosts[(uint32_t)o->low & s->ghost_mask];
}

static void ghost_remember(struct shard *s, const struct cache_object *o)
{
    *ghost_of(s, o) = (struct ghost){ .tag = (uint32_t)o->high, .sequence = ++s->ghost_sequence };
}

/* A ghost counts for as many removals as the shard has objects: older ones say nothing about now.
 */
static bool ghost_take(struct shard *s, const struct cache_object *o)
{
    struct ghost *g = ghost_of(s, o);
    if (g->sequence == 0 || g->tag != (uint32_t)o->high)
        return false;
    uint64_t age = s->ghost_sequence - g->sequence;
    g->sequence = 0;
    uint64_t span = s->small.count + s->main.count;
    return age <= (span < GHOST_LEAST ? GHOST_LEAST : span);
}

void queue_insert_locked(struct shard *s, struct cache_object *o)
{
    CHECK(o->queue == QUEUE_NONE);
    queue_push(s, ghost_take(s, o) ? QUEUE_MAIN : QUEUE_SMALL, o);
}

/* ---- victims --------------------------------------------------------------------------------- */

static uint8_t used_of(struct cache_object *o)
{
    return atomic_load_explicit(&o->used, memory_order_relaxed);
}

static void used_set(struct cache_object *o, unsigned used)
{
    atomic_store_explicit(&o->used, (uint8_t)used, memory_order_relaxed);
}

/* Held by more than the index: taking it out would free nothing now. */
static bool is_held(struct cache_object *o)
{
    return atomic_load_explicit(&o->refs, memory_order_relaxed) > 1;
}

static void evict_locked(struct cache *c, struct shard *s, struct cache_object *o)
{
    count_add(&c->evicted, 1);
    count_add(&c->evicted_bytes, o->charge_bytes);
    bool was_stored = index_unlink_locked(c, s, o);
    CHECK(was_stored);
}

static bool is_small_turn(const struct shard *s)
{
    if (s->small.count == 0)
        return false;
    return s->main.count == 0 || s->small.bytes * SMALL_SHARE > s->small.bytes + s->main.bytes;
}

/* One step through a queue: true when its oldest object went. */
static bool step_small(struct cache *c, struct shard *s)
{
    struct cache_object *o = s->small.oldest;
    if (used_of(o) > 0 || is_held(o)) {
        used_set(o, 0);
        queue_move(s, QUEUE_MAIN, o);
        return false;
    }
    ghost_remember(s, o);
    evict_locked(c, s, o);
    return true;
}

/* Without patience its use no longer counts. */
static bool step_main(struct cache *c, struct shard *s, bool has_patience)
{
    struct cache_object *o = s->main.oldest;
    unsigned used = used_of(o);
    if ((used > 0 && has_patience) || is_held(o)) {
        if (used > 0)
            used_set(o, used - 1);
        queue_move(s, QUEUE_MAIN, o);
        return false;
    }
    evict_locked(c, s, o);
    return true;
}

/* The last part of the scan asks only whether somebody holds it: work for one victim is bounded. */
static bool evict_one_locked(struct cache *c, struct shard *s)
{
    for (unsigned scanned = 0; scanned < SCAN_MAX; scanned++) {
        bool went;
        if (is_small_turn(s))
            went = step_small(c, s);
        else if (s->main.count > 0)
            went = step_main(c, s, scanned < SCAN_MAX * 3 / 4);
        else
            return false;
        if (went)
            return true;
    }
    return false;
}

/* Two shards, another pair each time; the fuller of them. */
static unsigned choose_shard(struct cache *c)
{
    unsigned turn = atomic_fetch_add_explicit(&c->next_shard, 1, memory_order_relaxed);
    unsigned one = turn % SHARD_COUNT;
    unsigned other = (one + 1 + turn / SHARD_COUNT % (SHARD_COUNT - 1)) % SHARD_COUNT;
    return count_read(&c->shards[one].bytes) >= count_read(&c->shards[other].bytes) ? one : other;
}

unsigned evict_some(struct cache *c, uint64_t bytes)
{
    unsigned first = choose_shard(c);
    for (unsigned i = 0; i < SHARD_COUNT; i++) {
        struct shard *s = &c->shards[(first + i) % SHARD_COUNT];
        unsigned went = 0;
        pthread_mutex_lock(&s->lock);
        uint64_t goal = s->small.bytes + s->main.bytes;
        goal = goal > bytes ? goal - bytes : 0;
        while (went < VISIT_MAX && evict_one_locked(c, s)) {
            went++;
            if (s->small.bytes + s->main.bytes <= goal)
                break;
        }
        pthread_mutex_unlock(&s->lock);
        if (went > 0)
            return went;
    }
    return 0;
}
