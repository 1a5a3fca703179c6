/* cache/cache_internal.h: what the files of the memory store share. No other floor includes it
 * (tests do).
 *
 *   memory.c       the one budget: who takes, who gives, what is still dying
 *   extent.c       the memfd in which large bodies live
 *   body.c         bytes of one body, shared by the heads over it
 *   object.c       a head over a body, counted
 *   index.c        key -> variants, lock-free to read
 *   ordered.c      the same entries in order, for purges
 *   tagindex.c     tag -> objects, for purges
 *   evict.c        S3-FIFO, sharded
 *   uncacheable.c  the short memory for keys whose answers cannot be shared
 *   fill.c         fills and those who follow them
 *   purge.c        what is to go before its time
 *   glob.c         the patterns of purges
 *
 * Locks: fill shard, then store shard, then tag shard. A store shard's lock guards its queues, its
 * order, and every change to the index under the keys that fall to it. Reading takes none. Nothing
 * is freed under a reader: cache_defer() waits for a grace period.
 */
#ifndef CACHE_CACHE_INTERNAL_H
#define CACHE_CACHE_INTERNAL_H
#include "cache/cache.h"

#include <bsd/sys/tree.h>
#include <pthread.h>
#include <stdalign.h>
#define URCU_INLINE_SMALL_FUNCTIONS
#include <urcu.h>
#include <urcu/rculfhash.h>

/* ---- ThreadSanitizer ------------------------------------------------------------------------- */

/* ThreadSanitizer does not see into liburcu, so the two orders that a grace period gives are told
 * to it in its builds: the end of a read section, and the call of cache_defer(), come before the
 * callback. Everything else is ordered by atomics of ours. */
#if defined(__SANITIZE_THREAD__)
#define CACHE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CACHE_TSAN 1
#endif
#endif
#ifdef CACHE_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define ORDER_ACQUIRE(address) __tsan_acquire(address)
#define ORDER_RELEASE(address) __tsan_release(address)
#else
#define ORDER_ACQUIRE(address) ((void)(address))
#define ORDER_RELEASE(address) ((void)(address))
#endif

/* Runs `run` once no reader can still see what it frees; `run` opens with cache_deferred(). */
void cache_defer(struct rcu_head *head, void (*run)(struct rcu_head *head));
void cache_deferred(struct rcu_head *head);
/* Until everything deferred so far is freed. Not within a read section. */
void cache_settle(void);

/* ---- injected faults ------------------------------------------------------------------------- */

enum cache_fault { CACHE_FAULT_MEMFD, CACHE_FAULT_WRITE, CACHE_FAULT_ALLOC, CACHE_FAULT_COUNT };
#ifdef LARDER_TEST_HOOKS
/* 0: none. n > 0: the n-th such call from now on fails, once. -1: every one fails. */
extern _Atomic int cache_test_faults[CACHE_FAULT_COUNT];
bool cache_test_fault(enum cache_fault which);
/* Called between two slices of a purge, with no lock held. NULL: none. */
extern void (*cache_test_between_slices)(void);
#else
#define cache_test_fault(which) false
#endif

/* ---- memory.c -------------------------------------------------------------------------------- */

enum memory_kind {
    MEMORY_BODY,    /* stored bodies in ordinary memory */
    MEMORY_FILE,    /* stored bodies in the memfd, by whole pages */
    MEMORY_HEAD,    /* heads, keys and bookkeeping of objects */
    MEMORY_INDEX,   /* table, entries, lists of variants, tags, ghosts */
    MEMORY_FILLING, /* bodies still arriving, in memory or memfd */
    MEMORY_OTHER,   /* fills, the uncacheable table, the cache itself */
    MEMORY_KIND_COUNT
};

struct memory {
    uint64_t budget_bytes; /* fixed after new */
    alignas(64) _Atomic uint64_t used_bytes;
    _Atomic uint64_t
        live_bytes; /* of used: not what waits for its grace period and is then freed */
    _Atomic uint64_t kind_bytes[MEMORY_KIND_COUNT];
};

/* Room for `bytes`, evicting as needed. False when it cannot be had: everything left is in use or
 * in flight. */
must_check bool memory_take(struct cache *c, enum memory_kind kind, uint64_t bytes);
/* For small bookkeeping that must succeed; the caller then calls memory_fit() when it holds no
 * lock. */
void memory_add(struct cache *c, enum memory_kind kind, uint64_t bytes);
void memory_fit(struct cache *c);
void memory_give(struct cache *c, enum memory_kind kind, uint64_t bytes);
void memory_move(struct cache *c, enum memory_kind from, enum memory_kind to, uint64_t bytes);
/* `bytes` will be freed after a grace period: eviction no longer needs to find them. What is given
 * between _reap_begin() and _reap_end() on this thread is what became of them. */
void memory_dying(struct cache *c, uint64_t bytes);
void memory_reap_begin(void);
void memory_reap_end(struct cache *c, uint64_t dying_bytes);
/* A block counted by what the allocator really gave. NULL when the budget or the system has none.
 */
must_check void *memory_block(struct cache *c, enum memory_kind kind, size_t bytes);
/* The same beyond the budget when need be; NULL only when the system has none. */
must_check void *memory_block_beyond(struct cache *c, enum memory_kind kind, size_t bytes);
/* For small fixed sizes: never NULL. */
void *memory_block_small(struct cache *c, enum memory_kind kind, size_t bytes);
void memory_block_free(struct cache *c, enum memory_kind kind, void *block);
uint64_t memory_block_bytes(void *block); /* NULL is 0 */

/* ---- extent.c -------------------------------------------------------------------------------- */

enum { EXTENT_PAGE = 4096 };
struct extents {
    int fd;                /* -1: none could be made; large bodies are then not stored */
    _Atomic uint64_t next; /* where the next range begins; an address is never handed out twice */
};
void extents_init(struct extents *x);
void extents_fini(struct extents *x);
/* Reserves addresses, not memory. False when there is no memfd. */
must_check bool extent_reserve(struct extents *x, uint64_t bytes, uint64_t *at);
/* All of `bytes` or false. */
must_check bool extent_write(struct extents *x, uint64_t at, struct slice bytes);
/* Gives pages back by a hole; both are multiples of a page. False when the system would not. */
bool extent_punch(struct extents *x, uint64_t at, uint64_t bytes);

static inline uint64_t extent_round(uint64_t bytes)
{
    return (bytes + EXTENT_PAGE - 1) & ~(uint64_t)(EXTENT_PAGE - 1);
}

/* ---- body.c ---------------------------------------------------------------------------------- */

enum {
    BODY_MEMORY_MAX = 64 * 1024, /* below: ordinary memory; from here on the memfd */
    BODY_SEGMENTS = 5, /* 4, 4, 8, 16, 32 KiB: a body of unknown length grows without ever moving */
    BODY_SEGMENT_MIN = 4096,
    BODY_WINDOW_CHUNK = 64 * 1024,
    BODY_WINDOW_SLOTS =
        48, /* 3 MiB: the window is at most 1 MiB, the rest is room for one large append */
};

/* What only a body has that grows without a known end, or that is no longer to be stored. */
struct body_growth {
    char *segments[BODY_SEGMENTS];
    _Atomic uint64_t window_from; /* from here on bytes lie in `window`; UINT64_MAX: not outgrown */
    uint64_t forgotten;           /* everything before is freed (outgrown only) */
    uint64_t file_punched;        /* pages given back already, from file_at (outgrown only) */
    char *window[BODY_WINDOW_SLOTS];
};

struct cache_body {
    _Atomic uint32_t refs; /* objects over it */
    bool is_stored;        /* counted as body or file, no longer as filling */
    _Atomic uint64_t arrived;
    _Atomic int64_t length;
    _Atomic(char *) whole;                /* the part in memory as one block */
    _Atomic(struct body_growth *) growth; /* or as segments */
    uint64_t memory_end;                  /* bytes before lie in memory, bytes after in the memfd */
    uint64_t file_at, file_capacity;      /* the range: addresses only */
    uint64_t file_bytes;                  /* whole pages that are held */
};

/* NULL when there is no room. `max` bounds a body of unknown length. */
must_check struct cache_body *body_new(struct cache *c, int64_t length, uint64_t max);
/* A body that is not to be stored: outgrown from its first byte. NULL when the system has no
 * memory. */
must_check struct cache_body *body_new_window(struct cache *c, int64_t length);
struct cache_body *body_ref(struct cache_body *b);
void body_unref(struct cache *c, struct cache_body *b);
/* How many bytes found room. */
must_check size_t body_append(struct cache *c, struct cache_body *b, struct slice bytes);
/* From here on bytes go to the window. False when the system has no memory. */
must_check bool body_outgrow(struct cache *c, struct cache_body *b);
must_check bool body_window_append(struct cache *c, struct cache_body *b, struct slice bytes);
/* Frees what lies before `until`, of an outgrown body. */
void body_forget(struct cache *c, struct cache_body *b, uint64_t until);
/* Held in the window or, before it was outgrown, in memory and memfd. */
uint64_t body_held_bytes(const struct cache_body *b);
/* The length is known now; puts the part in memory into one block. Segments that readers may still
 * look at are handed to the caller, who frees them (body_growth_free) when those readers are gone.
 */
struct body_growth *body_seal(struct cache *c, struct cache_body *b);
void body_growth_free(struct cache *c, struct body_growth *g, enum memory_kind kind);
/* Counts it among what is stored. */
void body_stored(struct cache *c, struct cache_body *b);
uint64_t body_bytes(struct cache_body *b);
struct object_piece body_piece(const struct cache *c, const struct cache_body *b, uint64_t offset);

/* ---- object.c -------------------------------------------------------------------------------- */

enum { OBJECT_MAGIC = 0x0b7ec75a, USED_MAX = 3 };
enum queue_id { QUEUE_NONE, QUEUE_SMALL, QUEUE_MAIN };

struct tag_node;

struct cache_object {
    uint32_t magic;
    _Atomic uint8_t used; /* hits, saturating: a hot hit writes nothing */
    _Atomic uint8_t state;
    _Atomic int64_t outdated_ms; /* 0: no soft purge met it */
    _Atomic uint64_t refresh;    /* who may refresh it: see object.c */
    struct object_facts facts;
    struct cache_body *body;
    struct cache *cache;
    struct slice key;
    uint64_t high, low;

    _Atomic uint32_t refs;
    uint64_t dying_bytes;
    struct rcu_head rcu;

    /* under the store shard's lock */
    enum queue_id queue; /* NONE: not stored */
    uint64_t charge_bytes;
    struct cache_object *older, *newer;
    struct tag_node *tag_nodes; /* one block, NULL when it has no tags; links: the tag shards' */
    uint32_t tag_count;
    char text[]; /* key, head, selecting, etag, codings, tags */
};

/* Takes over the reference to `body`. FILLING, one reference. NULL when the system has no memory
 * (`body` is then the caller's still). */
must_check struct cache_object *object_new(struct cache *c, const struct cache_key *key,
                                           const struct object_facts *facts,
                                           struct cache_body *body);
uint64_t object_bytes(struct cache_object *o);
void object_set_state(struct cache_object *o, enum object_state state);
/* A soft purge's; the first one's time counts. */
void object_outdate(struct cache_object *o, int64_t now_ms);

static inline struct cache_key object_key(const struct cache_object *o)
{
    return (struct cache_key){ .bytes = o->key, .high = o->high, .low = o->low };
}

/* ---- evict.c --------------------------------------------------------------------------------- */

enum { SHARD_COUNT = 16, SHARD_SHIFT = 60 };

struct queue {
    struct cache_object *oldest, *newest;
    uint64_t count, bytes;
};

struct ghost { /* a key that the small queue let go of, a few bytes, lossy */
    uint32_t tag, sequence;
};

RB_HEAD(order, entry);

struct shard {
    alignas(64) pthread_mutex_t lock;
    struct queue small, main;
    struct order order; /* the entries under the keys that fall to it */
    _Atomic uint64_t bytes; /* of both; read without the lock */
    struct ghost *ghosts;
    uint32_t ghost_mask, ghost_sequence;
};

static inline struct shard *shard_of(struct cache *c, const struct cache_key *key);
void shards_init(struct cache *c);
void shards_fini(struct cache *c);
/* With the shard's lock held. */
void queue_insert_locked(struct shard *s, struct cache_object *o);
void queue_remove_locked(struct shard *s, struct cache_object *o);
/* Unlinks objects until about `bytes` more are dying. How many objects went; 0: nothing can. */
unsigned evict_some(struct cache *c, uint64_t bytes);

/* ---- index.c --------------------------------------------------------------------------------- */

/* `variants` holds nothing (0), one object (its address), or a list (its address with the lowest
 * bit set). */
struct variants {
    struct rcu_head rcu;
    struct cache *cache;
    uint32_t count;
    struct cache_object *at[]; /* newest first */
};

struct entry {
    struct rcu_head rcu;
    struct cache *cache;
    /* What a look-up touches, side by side. The low half of the hash is in the node. */
    struct cds_lfht_node node;
    _Atomic uintptr_t variants;
    uint64_t high;
    uint32_t key_length;
    /* under the store shard's lock */
    uint32_t counted_by; /* the last purge that counted this key */
    RB_ENTRY(entry) order;
    char key[];
};

void index_init(struct cache *c);
void index_fini(struct cache *c);
/* Publishes `o` (COMPLETE): the index takes a reference of its own. `replaces` (may be NULL) is
 * what it was made from: it goes, and when a newer object has taken its place meanwhile, that one
 * stays and false comes back. The fill shard's lock may be held. */
bool index_publish(struct cache *c, struct cache_object *o, struct cache_object *replaces);
/* With the shard's lock held: out of the index and its queue; gives the index's reference back.
 * False when it was not stored. */
bool index_unlink_locked(struct cache *c, struct shard *s, struct cache_object *o);
unsigned index_purge(struct cache *c, const struct cache_key *key);
/* For purges. In a read section, and all but the first with the shard's lock held. */
struct entry *index_entry_find(struct cache *c, const struct cache_key *key);
void index_entry_visit_locked(struct entry *e, cache_visit_f *visit, void *arg);
void index_entry_clear_locked(struct cache *c, struct shard *s, struct entry *e);
/* Any object under this key, the newest. Within a read section. */
struct cache_object *index_peek(struct cache *c, const struct cache_key *key);

/* ---- ordered.c ------------------------------------------------------------------------------- */

/* Where a key stands in the order: by what is behind its first NUL (host, path, query, extra), then
 * by its site. So what has a host, a URL or a beginning in common lies side by side, whatever site
 * it is of. */
struct key_place {
    struct slice rest;
    struct slice site; /* ptr NULL: the key has no NUL */
};
struct key_place key_place_of(struct slice key);

static inline struct slice entry_key(const struct entry *e)
{
    return (struct slice){ e->key, e->key_length };
}

/* All with the shard's lock held. */
void ordered_insert_locked(struct shard *s, struct entry *e);
void ordered_remove_locked(struct shard *s, struct entry *e);
/* The first whose rest is `rest` or comes after it; the first behind `key`; the one behind `e`. */
struct entry *ordered_from_locked(struct shard *s, struct slice rest);
struct entry *ordered_behind_locked(struct shard *s, struct slice key);
struct entry *ordered_next_locked(struct entry *e);

/* ---- tagindex.c ------------------------------------------------------------------------------ */

enum { TAG_SHARDS = 64 };
struct tag;
RB_HEAD(tag_tree, tag);

struct tag_node { /* one tag of one stored object, or where a walk has got to */
    struct tag *tag;
    struct cache_object *object; /* NULL: a walk's */
    struct tag_node *next, **prev;
};

struct tag_shard {
    alignas(64) pthread_mutex_t lock;
    struct tag_tree tags;
};

void tags_init(struct cache *c);
void tags_fini(struct cache *c);
/* With the object's store shard locked: when it enters the index and when it leaves. */
void tags_enter_locked(struct cache *c, struct cache_object *o);
void tags_leave_locked(struct cache *c, struct cache_object *o);
uint64_t tag_hash(struct cache *c, struct slice tag);
/* Of a list as cache_tags_make() writes it. */
bool tags_have(struct slice tags, struct slice tag);

/* The objects with a tag, the ones stored when the walk began, some at a time. No lock is held in between. */
struct tag_walk {
    struct cache *cache;
    struct tag_shard *shard;
    struct tag_node place;
};
/* False: no stored object has it; the walk is over. */
must_check bool tag_walk_begin(struct cache *c, struct slice tag, struct tag_walk *w);
/* Up to `max` objects, each with a reference for the caller; 0 at the end. */
unsigned tag_walk_next(struct tag_walk *w, struct cache_object **at, unsigned max);
void tag_walk_end(struct tag_walk *w);

/* ---- glob.c ---------------------------------------------------------------------------------- */

enum { GLOB_MAX = 1024 }; /* bytes of a pattern */
struct glob {
    unsigned count;
    uint16_t at[GLOB_MAX]; /* a byte, or one of the two stars */
};
/* False and a sentence when it is no pattern. */
must_check bool glob_read(struct slice pattern, struct glob *out, const char **why);
/* The bytes that everything it matches begins with, copied to `out` (GLOB_MAX); how many. */
size_t glob_literal(const struct glob *g, char *out);
/* From `from` on: the caller has seen to what is before. Costs at most text times pattern. */
bool glob_matches_from(const struct glob *g, unsigned from, struct slice text);

/* ---- uncacheable.c --------------------------------------------------------------------------- */

struct uncacheable {
    _Atomic uint64_t *slots;
    uint64_t mask;
};
void uncacheable_init(struct cache *c);
void uncacheable_fini(struct cache *c);
uint64_t uncacheable_count(struct cache *c, int64_t now_ms);

/* ---- fill.c ---------------------------------------------------------------------------------- */

enum { FILL_SHARDS = 256 };
struct fill_shard {
    alignas(64) pthread_mutex_t lock;
    struct cache_fill *fills; /* under way */
};
void fills_init(struct cache *c);
void fills_fini(struct cache *c);
void fills_purge(struct cache *c, const struct cache_key *key, unsigned *dropped);

/* Which fills a purge hits: those whose key fits, or with `tags`, those of which something is known
 * to have one of them. What nothing is known of yet remembers them until its head comes. */
struct fill_mark {
    bool (*fits)(void *arg, struct slice key); /* NULL: by tags */
    void *arg;
    struct slice tags;
    bool is_dry;
};
/* How many are hit. Each shard's lock is held only while its own fills are looked at. */
uint64_t fills_mark(struct cache *c, const struct fill_mark *m);

/* ---- the cache ------------------------------------------------------------------------------- */

struct cache {
    /* fixed after new */
    struct cds_lfht *table;
    uint64_t seed;
    uint64_t bucket_count;
    struct uncacheable uncacheable;
    struct extents extents;
    /* live */
    _Atomic uint64_t object_max_bytes;
    _Atomic uint32_t variants_max, uncacheable_ms, collapse_max;

    struct memory memory;
    alignas(64) _Atomic uint32_t next_shard; /* whose turn it is to evict */
    _Atomic uint64_t objects, varying, fills, evicted, evicted_bytes, variant_cap_hits, tags;
    _Atomic uint32_t purge_number;
    struct shard shards[SHARD_COUNT];
    struct tag_shard tag_shards[TAG_SHARDS];
    struct fill_shard fill_shards[FILL_SHARDS];
};

static inline struct shard *shard_of(struct cache *c, const struct cache_key *key)
{
    return &c->shards[key->high >> SHARD_SHIFT];
}

static inline void count_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline void count_sub(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_sub_explicit(counter, n, memory_order_relaxed);
}

static inline uint64_t count_read(_Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* The power of two at or above `n`, within bounds that are powers of two. */
static inline uint64_t power_of_two(uint64_t n, uint64_t least, uint64_t most)
{
    uint64_t p = least;
    while (p < n && p < most)
        p *= 2;
    return p;
}
#endif
