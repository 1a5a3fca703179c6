/* cache/purge.c: what is to go, or to be stale, before its time: by URL, beginning, host, pattern,
 * tag, or all of it.
 *
 *   cache_purge   1. mark: every fill under way that fits is not to be stored
 *                 2. walk: every stored object that fits goes, or is outdated, or is counted
 *
 * Why that beats every fill    A fill publishes under the lock of its fill shard, in the same
 * breath in which it leaves the shard's list (fill.c). The first step looks at each list under that
 * same lock. So a fill that began before the purge is either still listed: it is marked, and never
 * published; or it has been published before the second step begins: the walk meets its object. The
 * walk meets all that was stored when it began: it goes through the order of keys (or a tag's list)
 * from one end to the other, and what goes or comes in between two slices moves nothing that is
 * left. A fill that begins after its shard was looked at asks the origin after the purge was asked
 * for: what it brings is new.
 *
 * A fill whose head has not come has no tags yet: it remembers the purged ones, and is judged when
 * the head is there. Whoever joins it meanwhile is answered by it, too.
 *
 * Nothing of a purge is left behind when it ends: no generation, no list of patterns, nothing to
 * ask on a hit. A soft one sets one word of each object; the hit that reads it takes no lock.
 *
 * Locks are held for slices: SLICE_WORK of them in one store shard, then the next shard has its
 * turn, so that whoever waits for one has it to himself for fifteen slices. By tag: one object at a
 * time.
 *
 * Threads  any. Within a read section of the caller's nothing that goes can be freed: not for large
 * purges.
 */
#include "cache/cache_internal.h"

#include <stdlib.h>

enum {
    SLICE_WORK = 128, /* in one hold of a shard's lock, in these units: */
    WORK_LOOK = 1,    /* an entry that does not fit */
    WORK_COUNT = 4,   /* an object that is counted, or outdated */
    WORK_DROP = 16,   /* an object that goes: a hundred places of memory */
    TAG_BATCH = 64,   /* objects taken off a tag's list in one hold of its lock */
};

enum fit { FIT_NO, FIT_YES, FIT_PAST }; /* past: nothing behind it in the order fits, either */

struct purge {
    struct cache *cache;
    enum purge_what what;
    enum purge_how how;
    int64_t now_ms;
    uint32_t number;
    struct slice tags;      /* TAG */
    struct key_place place; /* URL, PREFIX: what to compare with */
    struct glob glob;       /* GLOB */
    /* How the rest of every key that fits begins: what is walked. A host has two: the one with a
     * port, and the one without. */
    struct slice beginnings[2];
    unsigned beginning_count;
    char *made; /* the memory behind beginnings that were made here */
    struct cache_purged *out;
};

#ifdef LARDER_TEST_HOOKS
void (*cache_test_between_slices)(void);
#endif

static void between_slices(void)
{
#ifdef LARDER_TEST_HOOKS
    if (cache_test_between_slices != NULL)
        cache_test_between_slices();
#endif
}

/* ---- what fits ------------------------------------------------------------------------------- */

static struct slice up_to_nul(struct slice s)
{
    return (struct slice){ s.ptr, slice_find(s, '\0') };
}

static struct slice behind(struct slice s, size_t n)
{
    return (struct slice){ s.ptr + n, s.len - n };
}

static bool same_site(const struct key_place *a, const struct key_place *b)
{
    return (a->site.ptr == NULL) == (b->site.ptr == NULL) && slice_equal(a->site, b->site);
}

/* Of a key as it lies in the order, against one of the beginnings. */
static enum fit fit_of(const struct purge *p, struct slice key, struct slice beginning)
{
    struct key_place at = key_place_of(key);
    if (!slice_has_prefix(at.rest, beginning))
        return FIT_PAST;
    struct slice more = behind(at.rest, beginning.len);
    switch (p->what) {
    case PURGE_URL: /* the same with fields or cookies comes next: a NUL sorts before all else */
        if (more.len > 0 && more.ptr[0] != '\0')
            return FIT_PAST;
        return same_site(&at, &p->place) ? FIT_YES : FIT_NO;
    case PURGE_PREFIX: return same_site(&at, &p->place) ? FIT_YES : FIT_NO;
    case PURGE_GLOB:
        return glob_matches_from(&p->glob, (unsigned)beginning.len, up_to_nul(more)) ? FIT_YES
                                                                                     : FIT_NO;
    case PURGE_HOST:
    case PURGE_EVERYTHING: return FIT_YES;
    case PURGE_TAG: break;
    }
    return FIT_NO;
}

static bool fits_any(void *arg, struct slice key)
{
    const struct purge *p = arg;
    for (unsigned i = 0; i < p->beginning_count; i++)
        if (fit_of(p, key, p->beginnings[i]) == FIT_YES)
            return true;
    return false;
}

static void begin_at(struct purge *p, struct slice beginning)
{
    p->beginnings[p->beginning_count++] = beginning;
}

static void begin_at_host(struct purge *p, struct slice host)
{
    size_t length = host.len + 1;
    p->made = xmalloc(2 * length);
    for (unsigned i = 0; i < 2; i++) {
        char *to = p->made + i * length;
        if (host.len > 0)
            memcpy(to, host.ptr, host.len);
        to[host.len] = "/:"[i];
        begin_at(p, (struct slice){ to, length });
    }
}

/* False: nothing can fit. */
static bool prepare(struct purge *p, struct slice text)
{
    const char *why;
    p->place = key_place_of(text);
    switch (p->what) {
    case PURGE_URL: begin_at(p, up_to_nul(p->place.rest)); return true;
    case PURGE_PREFIX: begin_at(p, p->place.rest); return true;
    case PURGE_HOST: begin_at_host(p, text); return true;
    case PURGE_EVERYTHING: begin_at(p, SLICE("")); return true;
    case PURGE_TAG: p->tags = text; return text.len > 0;
    case PURGE_GLOB:
        if (!glob_read(text, &p->glob, &why))
            return false;
        p->made = xmalloc(GLOB_MAX);
        begin_at(p, (struct slice){ p->made, glob_literal(&p->glob, p->made) });
        return true;
    }
    return false;
}

/* ---- walking the order of keys --------------------------------------------------------------- */

/* Where a walk through one shard has got to: the last key that was looked at. */
struct cursor {
    char *key;
    size_t length, capacity;
    bool has_begun, is_over;
};

static void cursor_set(struct cursor *at, const struct entry *e)
{
    if (at->capacity < e->key_length) {
        at->capacity = e->key_length + 256ull;
        at->key = xrealloc(at->key, at->capacity);
    }
    at->length = e->key_length;
    if (e->key_length > 0)
        memcpy(at->key, e->key, e->key_length);
    at->has_begun = true;
}

static void count_object(void *arg, struct cache_object *o)
{
    struct purge *p = arg;
    p->out->objects++;
    p->out->bytes += o->charge_bytes;
    if (p->how == PURGE_SOFT)
        object_outdate(o, p->now_ms);
}

/* What was done, in units of work. */
static unsigned purge_entry_locked(struct purge *p, struct shard *s, struct entry *e)
{
    uint64_t before = p->out->objects;
    p->out->keys++;
    index_entry_visit_locked(e, count_object, p);
    if (p->how == PURGE_HARD)
        index_entry_clear_locked(p->cache, s, e);
    unsigned weight = p->how == PURGE_HARD ? WORK_DROP : WORK_COUNT;
    return weight * (unsigned)(p->out->objects - before);
}

static void walk_slice(struct purge *p, struct shard *s, struct slice beginning, struct cursor *at)
{
    unsigned work = 0;
    cache_read_begin(); /* what goes can be read until the end of the slice */
    pthread_mutex_lock(&s->lock);
    struct entry *e = at->has_begun
                          ? ordered_behind_locked(s, (struct slice){ at->key, at->length })
                          : ordered_from_locked(s, beginning);
    struct entry *last = NULL;
    while (e != NULL && work < SLICE_WORK) {
        enum fit fit = fit_of(p, entry_key(e), beginning);
        if (fit == FIT_PAST) {
            e = NULL;
            break;
        }
        last = e;
        e = ordered_next_locked(e);
        work += fit == FIT_YES ? purge_entry_locked(p, s, last) : WORK_LOOK;
    }
    pthread_mutex_unlock(&s->lock);
    at->is_over = e == NULL;
    if (!at->is_over)
        cursor_set(at, last);
    cache_read_end();
}

static void walk(struct purge *p, struct slice beginning)
{
    struct cursor at[SHARD_COUNT] = { 0 };
    unsigned left = SHARD_COUNT;
    while (left > 0) {
        left = 0;
        for (unsigned i = 0; i < SHARD_COUNT; i++) {
            if (at[i].is_over)
                continue;
            walk_slice(p, &p->cache->shards[i], beginning, &at[i]);
            between_slices();
            left += !at[i].is_over;
        }
    }
    for (unsigned i = 0; i < SHARD_COUNT; i++)
        free(at[i].key);
}

/* ---- walking a tag --------------------------------------------------------------------------- */

/* Of a list of tags: counted under the first of them that it has. */
static bool is_counted(const struct purge *p, const struct cache_object *o, struct slice tag)
{
    struct slice earlier = { p->tags.ptr, (size_t)(tag.ptr - p->tags.ptr) }, one;
    while (cache_tags_next(&earlier, &one))
        if (tags_have(o->facts.tags, one))
            return true;
    return false;
}

static void purge_object(struct purge *p, struct cache_object *o)
{
    struct cache_key key = object_key(o);
    struct shard *s = shard_of(p->cache, &key);
    cache_read_begin();
    pthread_mutex_lock(&s->lock);
    struct entry *e = o->queue == QUEUE_NONE ? NULL : index_entry_find(p->cache, &key);
    if (e != NULL) {
        p->out->keys += e->counted_by != p->number;
        e->counted_by = p->number;
        count_object(p, o);
        if (p->how == PURGE_HARD)
            (void)index_unlink_locked(p->cache, s, o);
    }
    pthread_mutex_unlock(&s->lock);
    cache_read_end();
}

static void walk_tag(struct purge *p, struct slice tag)
{
    struct tag_walk w;
    struct cache_object *at[TAG_BATCH];
    unsigned count;
    if (!tag_walk_begin(p->cache, tag, &w))
        return;
    while ((count = tag_walk_next(&w, at, TAG_BATCH)) > 0) {
        for (unsigned i = 0; i < count; i++) {
            if (p->how == PURGE_HARD || !is_counted(p, at[i], tag))
                purge_object(p, at[i]);
            cache_object_unref(&at[i]);
        }
        between_slices();
    }
    tag_walk_end(&w);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void mark_fills(struct purge *p)
{
    struct fill_mark mark = { .fits = p->what == PURGE_TAG ? NULL : fits_any,
                              .arg = p,
                              .tags = p->tags,
                              .is_dry = p->how == PURGE_DRY };
    p->out->fills = fills_mark(p->cache, &mark);
}

void cache_purge(struct cache *c, const struct cache_purge *ask, int64_t now_ms,
                 struct cache_purged *out)
{
    struct purge p = { .cache = c,
                       .what = ask->what,
                       .how = ask->how,
                       .now_ms = now_ms,
                       .number = atomic_fetch_add(&c->purge_number, 1) + 1,
                       .out = out };
    *out = (struct cache_purged){ 0 };
    if (!prepare(&p, ask->text))
        return;
    mark_fills(&p); /* before anything goes: see above */
    struct slice rest = p.tags, tag;
    while (cache_tags_next(&rest, &tag))
        walk_tag(&p, tag);
    for (unsigned i = 0; i < p.beginning_count; i++)
        walk(&p, p.beginnings[i]);
    free(p.made);
}

/* ---- looking at a URL ------------------------------------------------------------------------ */

struct gathered {
    struct cache_object **at;
    size_t count, capacity;
};

static void gather(void *arg, struct cache_object *o)
{
    struct gathered *g = arg;
    if (g->count == g->capacity) {
        g->capacity = g->capacity == 0 ? 16 : 2 * g->capacity;
        g->at = xrealloc(g->at, g->capacity * sizeof *g->at);
    }
    g->at[g->count++] = o;
}

/* Gathered first: nothing is called with a lock held. The caller's read section keeps them. */
void cache_visit_url(struct cache *c, const struct cache_key *key, cache_visit_f *visit, void *arg)
{
    struct purge p = { .cache = c, .what = PURGE_URL };
    struct gathered g = { 0 };
    (void)prepare(&p, key->bytes);
    for (unsigned i = 0; i < SHARD_COUNT; i++) {
        struct shard *s = &c->shards[i];
        pthread_mutex_lock(&s->lock);
        struct entry *e = ordered_from_locked(s, p.beginnings[0]);
        for (; e != NULL; e = ordered_next_locked(e)) {
            enum fit fit = fit_of(&p, entry_key(e), p.beginnings[0]);
            if (fit == FIT_PAST)
                break;
            if (fit == FIT_YES)
                index_entry_visit_locked(e, gather, &g);
        }
        pthread_mutex_unlock(&s->lock);
    }
    for (size_t i = 0; i < g.count; i++)
        visit(arg, g.at[i]);
    free(g.at);
}
