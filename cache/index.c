/* cache/index.c: from a key to the objects stored under it.
 *
 * One lock-free table (liburcu cds_lfht) of fixed size, made for the budget: an entry per key,
 * whose objects are published as one word: nothing, one object, or the address of a list (copy on
 * write; the old list is freed after a grace period). The table is searched by 64 bits of the hash;
 * an entry fits when all 128 bits and every byte of the key agree, so no chosen collision can
 * answer with another key's page.
 *
 * Threads  cache_find() within a read section: no lock, no heap, and one store only while an
 * object's use counter is below its top. Changes hold the lock of the key's store shard.
 */
#include "cache/cache_internal.h"

#include <stdlib.h>

enum { BUDGET_PER_BUCKET = 2048, BUCKETS_LEAST = 256, IS_LIST = 1 };

/* What a published word holds. */
struct view {
    uint32_t count;
    struct cache_object *const *at;
    struct cache_object *single;
};

void index_init(struct cache *c)
{
    uint64_t n = power_of_two(c->memory.budget_bytes / BUDGET_PER_BUCKET, BUCKETS_LEAST, 1u << 31);
    c->bucket_count = n;
    c->table = cds_lfht_new(n, n, n, 0, NULL);
    CHECK(c->table != NULL);
    memory_add(c, MEMORY_INDEX, n * sizeof(struct cds_lfht_node));
}

/* ---- reading --------------------------------------------------------------------------------- */

static uintptr_t entry_load(struct entry *e)
{
    return atomic_load_explicit(&e->variants, memory_order_acquire);
}

/* Called for entries whose low 64 bits agree (the table compares them). The load comes first: it
 * orders the rest of the entry as well. */
static int entry_matches(struct cds_lfht_node *node, const void *wanted)
{
    struct entry *e = caa_container_of(node, struct entry, node);
    const struct cache_key *key = wanted;
    (void)entry_load(e);
    return e->high == key->high && e->key_length == key->bytes.len &&
           memcmp(e->key, key->bytes.ptr, key->bytes.len) == 0;
}

struct entry *index_entry_find(struct cache *c, const struct cache_key *key)
{
    struct cds_lfht_iter iter;
    cds_lfht_lookup(c->table, key->low, entry_matches, key, &iter);
    struct cds_lfht_node *node = cds_lfht_iter_get_node(&iter);
    return node == NULL ? NULL : caa_container_of(node, struct entry, node);
}

static struct variants *word_list(uintptr_t word)
{
    return (word & IS_LIST) == 0 ? NULL : (struct variants *)(word - IS_LIST);
}

static inline bool selects(const struct cache_object *o, const struct headers *request)
{
    return o->facts.selecting.len == 0 || cache_vary_matches(o->facts.selecting, request);
}

static inline void mark_used(struct cache_object *o)
{
    uint8_t used = atomic_load_explicit(&o->used, memory_order_relaxed);
    if (used < USED_MAX) /* two hits at once may count as one */
        atomic_store_explicit(&o->used, (uint8_t)(used + 1), memory_order_relaxed);
}

static struct cache_object *choose(uintptr_t word, const struct headers *request)
{
    const struct variants *list = word_list(word);
    if (list == NULL) {
        struct cache_object *o = (struct cache_object *)word;
        return selects(o, request) ? o : NULL;
    }
    for (uint32_t i = 0; i < list->count; i++)
        if (selects(list->at[i], request))
            return list->at[i];
    return NULL;
}

enum cache_found cache_find(struct cache *c, const struct cache_key *key,
                            const struct headers *request, struct cache_object **object)
{
    *object = NULL;
    struct entry *e = index_entry_find(c, key);
    if (e == NULL)
        return CACHE_MISS;
    uintptr_t word = entry_load(e);
    if (word == 0)
        return CACHE_MISS; /* its last object is just going */
    struct cache_object *o = choose(word, request);
    if (o == NULL)
        return CACHE_OTHER_VARIANT;
    mark_used(o);
    *object = o;
    return CACHE_FOUND;
}

struct cache_object *index_peek(struct cache *c, const struct cache_key *key)
{
    struct entry *e = index_entry_find(c, key);
    uintptr_t word = e == NULL ? 0 : entry_load(e);
    const struct variants *list = word_list(word);
    return list != NULL ? list->at[0] : (struct cache_object *)word;
}

static struct view view_of(uintptr_t word)
{
    struct variants *list = word_list(word);
    if (list != NULL)
        return (struct view){ .count = list->count, .at = list->at };
    return (struct view){ .count = word != 0, .single = (struct cache_object *)word };
}

static struct cache_object *view_at(const struct view *v, uint32_t i)
{
    return v->at != NULL ? v->at[i] : v->single;
}

unsigned cache_find_tagged(struct cache *c, const struct cache_key *key, struct cache_object **at,
                           unsigned most)
{
    unsigned count = 0;
    struct entry *e = index_entry_find(c, key);
    struct view v = view_of(e == NULL ? 0 : entry_load(e));
    for (uint32_t i = 0; i < v.count && count < most; i++) {
        struct cache_object *o = view_at(&v, i);
        struct slice tag = o->facts.validators.etag;
        bool is_strong = tag.len > 0 && tag.ptr[0] == '"';
        if (is_strong && o->facts.status == 200 && cache_object_try_ref(o))
            at[count++] = o;
    }
    return count;
}

/* ---- changing: the shard's lock is held ------------------------------------------------------ */

static void entry_free(struct rcu_head *head)
{
    cache_deferred(head);
    struct entry *e = caa_container_of(head, struct entry, rcu);
    memory_block_free(e->cache, MEMORY_INDEX, e);
}

static void list_free(struct rcu_head *head)
{
    cache_deferred(head);
    struct variants *list = caa_container_of(head, struct variants, rcu);
    memory_block_free(list->cache, MEMORY_INDEX, list);
}

/* Publishes `count` objects as an entry's, whose old list goes. With none, the entry goes too. */
static void entry_set_locked(struct cache *c, struct shard *s, struct entry *e,
                             struct cache_object *const *at, uint32_t count)
{
    uintptr_t old = entry_load(e);
    uintptr_t word = count == 1 ? (uintptr_t)at[0] : 0;
    if (count > 1) {
        struct variants *list =
            memory_block_small(c, MEMORY_INDEX, sizeof *list + count * sizeof at[0]);
        list->cache = c;
        list->count = count;
        memcpy(list->at, at, count * sizeof at[0]);
        word = (uintptr_t)list + IS_LIST;
    }
    atomic_store_explicit(&e->variants, word, memory_order_release);
    if (word_list(old) != NULL)
        cache_defer(&word_list(old)->rcu, list_free);
    if (count > 0)
        return;
    ordered_remove_locked(s, e);
    int missing = cds_lfht_del(c->table, &e->node);
    CHECK(missing == 0);
    cache_defer(&e->rcu, entry_free);
}

static void entry_add_locked(struct cache *c, struct shard *s, struct cache_object *o)
{
    struct entry *e = memory_block_small(c, MEMORY_INDEX, sizeof *e + o->key.len);
    cds_lfht_node_init(&e->node);
    e->cache = c;
    e->high = o->high;
    e->key_length = (uint32_t)o->key.len;
    e->counted_by = 0;
    if (o->key.len > 0)
        memcpy(e->key, o->key.ptr, o->key.len);
    atomic_store_explicit(&e->variants, (uintptr_t)o, memory_order_release);
    ordered_insert_locked(s, e);
    cds_lfht_add(c->table, o->low, &e->node);
}

/* Out of its queue and the figures; the index's reference goes. */
static void object_leave_locked(struct cache *c, struct shard *s, struct cache_object *o)
{
    queue_remove_locked(s, o);
    tags_leave_locked(c, o);
    count_sub(&c->objects, 1);
    if (o->facts.selecting.len > 0)
        count_sub(&c->varying, 1);
    cache_object_unref(&o);
}

static void object_enter_locked(struct cache *c, struct shard *s, struct cache_object *o)
{
    o->charge_bytes = object_bytes(o);
    queue_insert_locked(s, cache_object_ref(o));
    tags_enter_locked(c, o);
    count_add(&c->objects, 1);
    if (o->facts.selecting.len > 0)
        count_add(&c->varying, 1);
}

static struct cache_object *equal_variant(const struct view *v, struct slice selecting)
{
    for (uint32_t i = 0; i < v->count; i++)
        if (slice_equal(view_at(v, i)->facts.selecting, selecting))
            return view_at(v, i);
    return NULL;
}

/* Who goes when a key has variants_max of them: the least used, among equals the oldest. */
static uint32_t least_used(struct cache_object *const *at, uint32_t count)
{
    uint32_t least = count - 1;
    for (uint32_t i = count - 1; i-- > 0;)
        if (atomic_load_explicit(&at[i]->used, memory_order_relaxed) <
            atomic_load_explicit(&at[least]->used, memory_order_relaxed))
            least = i;
    return least;
}

static void cap_variants(struct cache *c, struct cache_object **kept, uint32_t *count,
                         struct cache_object **going, uint32_t *going_count)
{
    uint32_t max = atomic_load_explicit(&c->variants_max, memory_order_relaxed);
    while (*count + 1 > max && *count > 0) {
        uint32_t i = least_used(kept, *count);
        going[(*going_count)++] = kept[i];
        memmove(&kept[i], &kept[i + 1], (*count - i - 1) * sizeof kept[0]);
        (*count)--;
        count_add(&c->variant_cap_hits, 1);
    }
}

static bool join_entry_locked(struct cache *c, struct shard *s, struct entry *e,
                              struct cache_object *o, struct cache_object *replaces)
{
    struct view old = view_of(entry_load(e));
    struct cache_object *equal = equal_variant(&old, o->facts.selecting);
    if (replaces != NULL && equal != NULL && equal != replaces)
        return false;
    struct cache_object **at = xmalloc((2 * (size_t)old.count + 1) * sizeof *at);
    struct cache_object **going = at + old.count + 1;
    uint32_t count = 0, going_count = 0;
    at[0] = o;
    for (uint32_t i = 0; i < old.count; i++) {
        struct cache_object *other = view_at(&old, i);
        if (other == equal || other == replaces)
            going[going_count++] = other;
        else
            at[1 + count++] = other;
    }
    cap_variants(c, at + 1, &count, going, &going_count);
    entry_set_locked(c, s, e, at, count + 1);
    for (uint32_t i = 0; i < going_count; i++)
        object_leave_locked(c, s, going[i]);
    free(at);
    return true;
}

bool index_publish(struct cache *c, struct cache_object *o, struct cache_object *replaces)
{
    struct cache_key key = object_key(o);
    struct shard *s = shard_of(c, &key);
    bool is_published = true;
    cache_read_begin();
    pthread_mutex_lock(&s->lock);
    struct entry *e = index_entry_find(c, &key);
    if (e == NULL)
        entry_add_locked(c, s, o);
    else
        is_published = join_entry_locked(c, s, e, o, replaces);
    if (is_published)
        object_enter_locked(c, s, o);
    pthread_mutex_unlock(&s->lock);
    cache_read_end();
    return is_published;
}

bool index_unlink_locked(struct cache *c, struct shard *s, struct cache_object *o)
{
    if (o->queue == QUEUE_NONE)
        return false;
    struct cache_key key = object_key(o);
    cache_read_begin();
    struct entry *e = index_entry_find(c, &key);
    CHECK(e != NULL);
    struct view old = view_of(entry_load(e));
    struct cache_object **at = xmalloc(old.count * sizeof *at);
    uint32_t count = 0;
    for (uint32_t i = 0; i < old.count; i++)
        if (view_at(&old, i) != o)
            at[count++] = view_at(&old, i);
    CHECK(count + 1 == old.count);
    entry_set_locked(c, s, e, at, count);
    free(at);
    object_leave_locked(c, s, o);
    cache_read_end();
    return true;
}

static unsigned entry_clear_locked(struct cache *c, struct shard *s, struct entry *e)
{
    struct view old = view_of(entry_load(e));
    entry_set_locked(c, s, e, NULL, 0); /* the old list stays readable: we are in a read section */
    for (uint32_t i = 0; i < old.count; i++)
        object_leave_locked(c, s, view_at(&old, i));
    return old.count;
}

unsigned index_purge(struct cache *c, const struct cache_key *key)
{
    struct shard *s = shard_of(c, key);
    cache_read_begin();
    pthread_mutex_lock(&s->lock);
    struct entry *e = index_entry_find(c, key);
    unsigned count = e == NULL ? 0 : entry_clear_locked(c, s, e);
    pthread_mutex_unlock(&s->lock);
    cache_read_end();
    return count;
}

void index_entry_visit_locked(struct entry *e, cache_visit_f *visit, void *arg)
{
    struct view v = view_of(entry_load(e));
    for (uint32_t i = 0; i < v.count; i++)
        visit(arg, view_at(&v, i));
}

void index_entry_clear_locked(struct cache *c, struct shard *s, struct entry *e)
{
    (void)entry_clear_locked(c, s, e);
}

void cache_drop(struct cache *c, struct cache_object *o)
{
    struct cache_key key = object_key(o);
    struct shard *s = shard_of(c, &key);
    pthread_mutex_lock(&s->lock);
    (void)index_unlink_locked(c, s, o);
    pthread_mutex_unlock(&s->lock);
}

void index_fini(struct cache *c)
{
    struct cds_lfht_iter iter;
    struct cds_lfht_node *node;
    cache_read_begin();
    cds_lfht_for_each(c->table, &iter, node)
    {
        struct entry *e = caa_container_of(node, struct entry, node);
        struct cache_key key = cache_key_of(c, (struct slice){ e->key, e->key_length });
        (void)index_purge(c, &key);
    }
    cache_read_end();
    cache_settle();
    int failed = cds_lfht_destroy(c->table, NULL);
    CHECK(failed == 0);
    memory_give(c, MEMORY_INDEX, c->bucket_count * sizeof(struct cds_lfht_node));
}
