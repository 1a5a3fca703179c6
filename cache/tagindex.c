/* cache/tagindex.c: from a tag to the stored objects that have it, so that a purge by tag costs
 * what it finds.
 *
 * Tags are sharded by their own hash, not by the keys of their objects: so each is there once, and
 * can be counted. Every tag is a list of nodes, newest first; an object's nodes lie in one block
 * that it gets when it enters the index; all leave with it. A tag goes with its last node.
 *
 * A walk puts a node of its own into the list as a bookmark and lets go of the lock. What is stored
 * meanwhile comes in at the front and is not met; what goes takes its own node out and leaves the
 * bookmark alone. So nothing is copied, and a walk ends however busy the tag is.
 *
 * Threads  any. Lock order: the store shard's lock is held when objects enter and leave, then the
 * tag shard's. A walk holds the tag shard's alone: a node in the list means that the index holds
 * its reference still, so another may be taken.
 */
#include "cache/cache_internal.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

struct tag {
    RB_ENTRY(tag) tree;
    uint64_t hash;
    struct tag_node *first;
    uint32_t length;
    char text[];
};

static int compare_tags(const struct tag *a, const struct tag *b)
{
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return slice_compare((struct slice){ a->text, a->length },
                         (struct slice){ b->text, b->length });
}

RB_GENERATE_INTERNAL(tag_tree, tag, tree, compare_tags, static __attribute__((unused)))

void tags_init(struct cache *c)
{
    for (unsigned i = 0; i < TAG_SHARDS; i++) {
        CHECK(pthread_mutex_init(&c->tag_shards[i].lock, NULL) == 0);
        RB_INIT(&c->tag_shards[i].tags);
    }
}

void tags_fini(struct cache *c)
{
    for (unsigned i = 0; i < TAG_SHARDS; i++) {
        CHECK(RB_EMPTY(&c->tag_shards[i].tags));
        pthread_mutex_destroy(&c->tag_shards[i].lock);
    }
    CHECK(count_read(&c->tags) == 0);
}

/* ---- lists of tags --------------------------------------------------------------------------- */

bool tags_have(struct slice tags, struct slice tag)
{
    struct slice one;
    while (cache_tags_next(&tags, &one))
        if (slice_equal(one, tag))
            return true;
    return false;
}

uint64_t tag_hash(struct cache *c, struct slice tag)
{
    return XXH3_64bits_withSeed(tag.ptr, tag.len, c->seed);
}

/* ---- one tag: its shard's lock is held ------------------------------------------------------- */

static struct tag_shard *tag_shard_of(struct cache *c, uint64_t hash)
{
    return &c->tag_shards[hash % TAG_SHARDS];
}

static struct tag *find_locked(struct tag_shard *s, struct slice text, uint64_t hash)
{
    struct tag *t = RB_ROOT(&s->tags);
    while (t != NULL) {
        struct slice here = { t->text, t->length };
        if (t->hash == hash && slice_equal(here, text))
            return t;
        bool is_left = hash != t->hash ? hash < t->hash : slice_compare(text, here) < 0;
        t = is_left ? RB_LEFT(t, tree) : RB_RIGHT(t, tree);
    }
    return NULL;
}

static struct tag *add_locked(struct cache *c, struct tag_shard *s, struct slice text,
                              uint64_t hash)
{
    struct tag *t = memory_block_small(c, MEMORY_INDEX, sizeof *t + text.len);
    t->hash = hash;
    t->first = NULL;
    t->length = (uint32_t)text.len;
    if (text.len > 0)
        memcpy(t->text, text.ptr, text.len);
    struct tag *equal = RB_INSERT(tag_tree, &s->tags, t);
    CHECK(equal == NULL);
    count_add(&c->tags, 1);
    return t;
}

static void link_locked(struct tag_node *n, struct tag *t, struct tag_node **before)
{
    n->tag = t;
    n->prev = before;
    n->next = *before;
    if (n->next != NULL)
        n->next->prev = &n->next;
    *before = n;
}

static void unlink_locked(struct tag_node *n)
{
    *n->prev = n->next;
    if (n->next != NULL)
        n->next->prev = n->prev;
}

/* With its last node a tag goes, too. */
static void leave_locked(struct cache *c, struct tag_shard *s, struct tag_node *n)
{
    struct tag *t = n->tag;
    unlink_locked(n);
    if (t->first != NULL)
        return;
    RB_REMOVE(tag_tree, &s->tags, t);
    memory_block_free(c, MEMORY_INDEX, t);
    count_sub(&c->tags, 1);
}

/* ---- objects --------------------------------------------------------------------------------- */

static uint32_t count_tags(struct slice tags)
{
    struct slice tag;
    uint32_t count = 0;
    while (count < TAGS_MAX && cache_tags_next(&tags, &tag))
        count++;
    return count;
}

void tags_enter_locked(struct cache *c, struct cache_object *o)
{
    o->tag_count = count_tags(o->facts.tags);
    if (o->tag_count == 0)
        return;
    o->tag_nodes = memory_block_small(c, MEMORY_INDEX, o->tag_count * sizeof *o->tag_nodes);
    struct slice rest = o->facts.tags, text;
    for (uint32_t i = 0; i < o->tag_count && cache_tags_next(&rest, &text); i++) {
        uint64_t hash = tag_hash(c, text);
        struct tag_shard *s = tag_shard_of(c, hash);
        pthread_mutex_lock(&s->lock);
        struct tag *t = find_locked(s, text, hash);
        if (t == NULL)
            t = add_locked(c, s, text, hash);
        o->tag_nodes[i].object = o;
        link_locked(&o->tag_nodes[i], t, &t->first);
        pthread_mutex_unlock(&s->lock);
    }
}

void tags_leave_locked(struct cache *c, struct cache_object *o)
{
    for (uint32_t i = 0; i < o->tag_count; i++) {
        struct tag_node *n = &o->tag_nodes[i]; /* its tag lives as long as it is linked */
        struct tag_shard *s = tag_shard_of(c, n->tag->hash);
        pthread_mutex_lock(&s->lock);
        leave_locked(c, s, n);
        pthread_mutex_unlock(&s->lock);
    }
    o->tag_count = 0; /* the block goes with the object: not now, with locks held */
}

/* ---- walking --------------------------------------------------------------------------------- */

bool tag_walk_begin(struct cache *c, struct slice tag, struct tag_walk *w)
{
    uint64_t hash = tag_hash(c, tag);
    *w = (struct tag_walk){ .cache = c, .shard = tag_shard_of(c, hash) };
    pthread_mutex_lock(&w->shard->lock);
    struct tag *t = find_locked(w->shard, tag, hash);
    if (t != NULL)
        link_locked(&w->place, t, &t->first);
    pthread_mutex_unlock(&w->shard->lock);
    return t != NULL;
}

unsigned tag_walk_next(struct tag_walk *w, struct cache_object **at, unsigned max)
{
    unsigned count = 0;
    pthread_mutex_lock(&w->shard->lock);
    struct tag_node **before = w->place.prev;
    struct tag_node *n = w->place.next;
    while (n != NULL && count < max) {
        if (n->object != NULL)
            at[count++] = cache_object_ref(n->object);
        before = &n->next;
        n = n->next;
    }
    if (before != w->place.prev) { /* the bookmark goes behind the last one seen */
        unlink_locked(&w->place);
        link_locked(&w->place, w->place.tag, before);
    }
    pthread_mutex_unlock(&w->shard->lock);
    return count;
}

void tag_walk_end(struct tag_walk *w)
{
    pthread_mutex_lock(&w->shard->lock);
    leave_locked(w->cache, w->shard, &w->place);
    pthread_mutex_unlock(&w->shard->lock);
}
