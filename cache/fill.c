/* cache/fill.c: a fill (the fetch that makes an object) and those who wait for it or read from it.
 *
 *   WAITING --head--> STREAMING --seal--> COMPLETE: published, unless purged or outgrown meanwhile
 *      |                  '--fail, or a length that does not match--> FAILED: readers can see it
 *      |--revalidated--> COMPLETE      a new head over the stale object's body
 *      |--release------> RELEASED      cannot be shared: each on their own
 *      '--fail---------> FAILED        no object
 *
 * Owner    counted: the fetch holds one reference, each attached reader one. The object lives as
 *          long as the fill.
 * Threads  the fetch's side is one thread. Everything else: any, under the lock of the fill's
 *          shard, where reader lists, purges and publishing meet: a purge sees a fill either under
 *          way (and marks it) or already published (and drops the object). State and object are
 *          atomics, read without the lock.
 *
 * An outgrown fill (too large to store, or no memory) is delivered but not stored: what all readers
 * have taken is freed, and the fetch pauses while the slowest is more than a window behind.
 *
 * The fetch cannot be told of a failure of ours (no memory at all) other than by the fill's state:
 * its later calls on a FAILED fill do nothing.
 */
#include "cache/cache_internal.h"

#include <stdlib.h>

enum {
    FILL_MAGIC = 0x0f1115ed,
    WINDOW_BYTES =
        1024 * 1024, /* that an outgrown fill's arrivals may be ahead of the slowest reader */
    WINDOW_POOR_BYTES = 256 * 1024, /* the same when it was outgrown for want of memory */
    PURGED_TAGS_MAX = 4, /* remembered while no head has come; beyond, it is not stored anyway */
};
static_assert(WINDOW_BYTES * 2 < BODY_WINDOW_CHUNK * BODY_WINDOW_SLOTS,
              "an append of 1 MiB fits on top of a full window");

struct cache_fill {
    uint32_t magic;
    /* fixed after begin */
    struct cache *cache;
    struct fill_shard *shard;
    struct cache_key key;       /* bytes in text */
    struct cache_object *stale; /* counted */
    char *expected;             /* what the leader's request selects by the Vary known so far */
    size_t expected_length;
    /* atomics */
    _Atomic int state, fault;
    _Atomic(struct cache_object *) object; /* counted */
    _Atomic bool is_outgrown;
    /* the fetch only */
    uint64_t max_bytes;
    struct body_growth *leftover; /* segments that readers may still look at */
    /* under shard->lock */
    bool is_adopted; /* the fetch's: `stale` is another variant, and stays */
    bool is_listed, is_purged, is_paused, is_alone;
    unsigned refs, reader_count, follower_count, joined;
    unsigned purged_tag_count;
    uint64_t purged_tags[PURGED_TAGS_MAX]; /* hashes */
    struct cache_reader *readers;
    struct cache_fill *next, **prev;
    struct mailbox *room_mailbox;
    struct post *room_post;
    uint64_t window_bytes;
    char text[];
};

void fills_init(struct cache *c)
{
    for (unsigned i = 0; i < FILL_SHARDS; i++)
        CHECK(pthread_mutex_init(&c->fill_shards[i].lock, NULL) == 0);
}

void fills_fini(struct cache *c)
{
    for (unsigned i = 0; i < FILL_SHARDS; i++) {
        CHECK(c->fill_shards[i].fills == NULL);
        pthread_mutex_destroy(&c->fill_shards[i].lock);
    }
}

static struct fill_shard *fill_shard_of(struct cache *c, const struct cache_key *key)
{
    return &c->fill_shards[key->low % FILL_SHARDS];
}

/* ---- looking --------------------------------------------------------------------------------- */

enum fill_state cache_fill_state(struct cache_fill *f)
{
    return (enum fill_state)atomic_load_explicit(&f->state, memory_order_acquire);
}

enum reason cache_fill_fault(struct cache_fill *f)
{
    return (enum reason)atomic_load_explicit(&f->fault, memory_order_acquire);
}

struct cache_object *cache_fill_object(struct cache_fill *f)
{
    return atomic_load_explicit(&f->object, memory_order_acquire);
}

struct cache_object *cache_fill_stale(struct cache_fill *f)
{
    return f->stale;
}

struct slice cache_fill_key(const struct cache_fill *f)
{
    return f->key.bytes;
}

bool cache_fill_is_outgrown(struct cache_fill *f)
{
    return atomic_load(&f->is_outgrown);
}

bool cache_fill_suits(struct cache_fill *f, const struct headers *request)
{
    struct cache_object *o = cache_fill_object(f);
    struct slice selecting = { f->expected, f->expected_length };
    if (o != NULL)
        selecting = o->facts.selecting;
    return selecting.len == 0 || cache_vary_matches(selecting, request);
}

unsigned cache_fill_reader_count(struct cache_fill *f)
{
    pthread_mutex_lock(&f->shard->lock);
    unsigned count = f->reader_count;
    pthread_mutex_unlock(&f->shard->lock);
    return count;
}

static bool same_key(const struct cache_key *a, const struct cache_key *b)
{
    return a->high == b->high && a->low == b->low && slice_equal(a->bytes, b->bytes);
}

/* ---- readers: with the shard's lock held ----------------------------------------------------- */

static void wake_readers_locked(struct cache_fill *f)
{
    for (struct cache_reader *r = f->readers; r != NULL; r = r->next)
        mailbox_post_once(r->mailbox, &r->post);
}

static void attach_locked(struct cache_fill *f, struct cache_reader *r, bool is_leader)
{
    CHECK(r->fill == NULL && r->mailbox != NULL);
    r->fill = f;
    r->is_leader = is_leader;
    __atomic_store_n(&r->position, 0, __ATOMIC_SEQ_CST);
    r->next = f->readers;
    r->prev = &f->readers;
    if (f->readers != NULL)
        f->readers->prev = &r->next;
    f->readers = r;
    f->reader_count++;
    f->refs++;
    f->follower_count += !is_leader;
    f->joined += !is_leader;
}

static uint64_t slowest_locked(struct cache_fill *f, uint64_t arrived)
{
    uint64_t least = arrived;
    for (struct cache_reader *r = f->readers; r != NULL; r = r->next) {
        uint64_t position = __atomic_load_n(&r->position, __ATOMIC_SEQ_CST);
        least = position < least ? position : least;
    }
    return least;
}

/* Frees what all have taken, and says by how much the arrivals are ahead of the slowest, what had
 * come before it was outgrown apart. */
static uint64_t window_used_locked(struct cache_fill *f)
{
    struct cache_body *b = cache_fill_object(f)->body;
    uint64_t arrived = atomic_load_explicit(&b->arrived, memory_order_acquire);
    uint64_t slowest = slowest_locked(f, arrived);
    struct body_growth *g = atomic_load_explicit(&b->growth, memory_order_acquire);
    uint64_t from = atomic_load_explicit(&g->window_from, memory_order_relaxed);
    body_forget(f->cache, b, slowest);
    return arrived - (slowest > from ? slowest : from);
}

/* After a reader of an outgrown fill took something or left. Half a window of hysteresis: not a
 * post for each piece. */
static void make_room_locked(struct cache_fill *f)
{
    if (!atomic_load(&f->is_outgrown) || cache_fill_object(f) == NULL)
        return;
    uint64_t used = window_used_locked(f);
    if (!f->is_paused || used > f->window_bytes / 2)
        return;
    f->is_paused = false;
    if (f->room_post != NULL)
        mailbox_post_once(f->room_mailbox, f->room_post);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void fill_free(struct cache_fill *f)
{
    struct cache *c = f->cache;
    struct cache_object *object = cache_fill_object(f);
    CHECK(!f->is_listed && f->readers == NULL);
    body_growth_free(c, f->leftover, MEMORY_FILLING);
    cache_object_unref(&object);
    cache_object_unref(&f->stale);
    memory_block_free(c, MEMORY_OTHER, f->expected);
    f->magic = 0;
    memory_block_free(c, MEMORY_OTHER, f);
    count_sub(&c->fills, 1);
}

static bool unref_locked(struct cache_fill *f)
{
    CHECK(f->refs > 0);
    return --f->refs == 0;
}

static struct cache_fill *fill_new_locked(struct cache *c, struct fill_shard *s,
                                          const struct cache_key *key)
{
    struct cache_fill *f = memory_block_small(c, MEMORY_OTHER, sizeof *f + key->bytes.len);
    memset(f, 0, sizeof *f);
    f->magic = FILL_MAGIC;
    f->cache = c;
    f->shard = s;
    f->refs = 1;
    f->key = *key;
    f->key.bytes.ptr = f->text;
    if (key->bytes.len > 0)
        memcpy(f->text, key->bytes.ptr, key->bytes.len);
    atomic_init(&f->state, FILL_WAITING);
    f->is_listed = true;
    f->next = s->fills;
    f->prev = &s->fills;
    if (s->fills != NULL)
        s->fills->prev = &f->next;
    s->fills = f;
    count_add(&c->fills, 1);
    return f;
}

static void unlist_locked(struct cache_fill *f)
{
    if (!f->is_listed)
        return;
    *f->prev = f->next;
    if (f->next != NULL)
        f->next->prev = f->prev;
    f->is_listed = false;
}

/* The last state: nobody joins any more, all are woken. */
static void end_locked(struct cache_fill *f, enum fill_state state)
{
    unlist_locked(f);
    atomic_store_explicit(&f->state, (int)state, memory_order_release);
    wake_readers_locked(f);
}

static void fail_locked(struct cache_fill *f, enum reason why)
{
    struct cache_object *o = cache_fill_object(f);
    atomic_store_explicit(&f->fault, (int)why, memory_order_release);
    if (o != NULL)
        object_set_state(o, OBJECT_FAILED);
    end_locked(f, FILL_FAILED);
}

/* ---- begin ----------------------------------------------------------------------------------- */

/* Names in a selecting string ("name NUL value NUL" …) as the value of a Vary field. */
static struct slice vary_of(struct arena *a, struct slice selecting)
{
    char *text = arena_alloc(a, selecting.len + 1);
    size_t length = 0;
    bool is_name = true;
    while (selecting.len > 0) {
        size_t n = slice_find(selecting, '\0');
        if (is_name) {
            if (length > 0)
                text[length++] = ',';
            memcpy(text + length, selecting.ptr, n);
            length += n;
        }
        is_name = !is_name;
        n += n < selecting.len;
        selecting.ptr += n;
        selecting.len -= n;
    }
    return (struct slice){ text, length };
}

/* An object under the same key, stored or on its way. Within a read section. */
static struct cache_object *relative_locked(const struct cache_fill *f)
{
    if (f->stale != NULL)
        return f->stale;
    for (struct cache_fill *other = f->shard->fills; other != NULL; other = other->next)
        if (same_key(&other->key, &f->key) && cache_fill_object(other) != NULL)
            return cache_fill_object(other);
    return index_peek(f->cache, &f->key);
}

/* No head has come yet, but a relative tells what the origin varies on: two requests that differ
 * there are better fetched apart. Empty when nothing is known. */
static void expect_variant_locked(struct cache_fill *f, const struct headers *request)
{
    cache_read_begin();
    const struct cache_object *known = relative_locked(f);
    if (known != NULL && known->facts.selecting.len > 0 && request != NULL) {
        struct arena a;
        struct header field;
        struct headers varying;
        arena_init(&a);
        headers_init(&varying, &field, 1);
        bool added = headers_add(&varying, SLICE("Vary"), vary_of(&a, known->facts.selecting));
        CHECK(added);
        struct slice selecting = cache_vary_make(&a, &varying, request);
        f->expected = memory_block_small(f->cache, MEMORY_OTHER, selecting.len);
        f->expected_length = selecting.len;
        if (selecting.len > 0)
            memcpy(f->expected, selecting.ptr, selecting.len);
        arena_fini(&a);
    }
    cache_read_end();
}

static bool can_join_locked(struct cache_fill *f, const struct cache_key *key,
                            const struct headers *request)
{
    enum fill_state state = cache_fill_state(f);
    return (state == FILL_WAITING || state == FILL_STREAMING) && !f->is_purged && !f->is_alone &&
           !atomic_load(&f->is_outgrown) && same_key(&f->key, key) && cache_fill_suits(f, request);
}

static struct cache_fill *joinable_locked(struct fill_shard *s, const struct cache_key *key,
                                          const struct headers *request)
{
    struct cache_fill *f = s->fills;
    while (f != NULL && !can_join_locked(f, key, request))
        f = f->next;
    return f;
}

static struct cache_fill *lead_locked(struct cache *c, struct fill_shard *s,
                                      const struct cache_key *key, const struct headers *request,
                                      struct cache_object *stale)
{
    struct cache_fill *f = fill_new_locked(c, s, key);
    if (stale != NULL && cache_object_try_ref(stale))
        f->stale = stale;
    expect_variant_locked(f, request);
    return f;
}

static bool is_full_locked(const struct cache_fill *f)
{
    uint32_t max = atomic_load_explicit(&f->cache->collapse_max, memory_order_relaxed);
    return max != 0 && f->follower_count >= max;
}

enum fill_begun cache_fill_begin(struct cache *c, const struct cache_key *key,
                                 const struct headers *request, struct cache_object *stale,
                                 struct cache_reader *reader, struct cache_fill **fill)
{
    struct fill_shard *s = fill_shard_of(c, key);
    enum fill_begun begun = FILL_FOLLOW;
    pthread_mutex_lock(&s->lock);
    struct cache_fill *f = joinable_locked(s, key, request);
    if (f == NULL) {
        begun = FILL_LEAD;
        f = lead_locked(c, s, key, request, stale);
    } else if (is_full_locked(f)) {
        begun = FILL_FULL;
        f = NULL;
    }
    if (f != NULL)
        attach_locked(f, reader, begun == FILL_LEAD);
    pthread_mutex_unlock(&s->lock);
    *fill = f;
    if (begun == FILL_LEAD)
        memory_fit(c);
    return begun;
}

bool cache_fill_begin_behind(struct cache *c, const struct cache_key *key,
                             const struct headers *request, struct cache_object *stale,
                             struct cache_fill **fill)
{
    struct fill_shard *s = fill_shard_of(c, key);
    *fill = NULL;
    pthread_mutex_lock(&s->lock);
    if (joinable_locked(s, key, request) == NULL)
        *fill = lead_locked(c, s, key, request, stale);
    pthread_mutex_unlock(&s->lock);
    if (*fill == NULL)
        return false;
    memory_fit(c);
    return true;
}

enum fill_begun cache_fill_peek(struct cache *c, const struct cache_key *key,
                                const struct headers *request, unsigned *reader_count)
{
    struct fill_shard *s = fill_shard_of(c, key);
    pthread_mutex_lock(&s->lock);
    const struct cache_fill *f = joinable_locked(s, key, request);
    enum fill_begun would_be = f == NULL           ? FILL_LEAD
                               : is_full_locked(f) ? FILL_FULL
                                                   : FILL_FOLLOW;
    *reader_count = f == NULL ? 0 : f->reader_count;
    pthread_mutex_unlock(&s->lock);
    return would_be;
}

struct cache_fill *cache_fill_begin_alone(struct cache *c, const struct cache_key *key,
                                          const struct headers *request)
{
    struct fill_shard *s = fill_shard_of(c, key);
    pthread_mutex_lock(&s->lock);
    struct cache_fill *f = lead_locked(c, s, key, request, NULL);
    f->is_alone = true;
    pthread_mutex_unlock(&s->lock);
    memory_fit(c);
    return f;
}

unsigned cache_reader_detach(struct cache_reader *r)
{
    struct cache_fill *f = r->fill;
    if (f == NULL)
        return 0;
    CHECK_OBJ(f, FILL_MAGIC);
    pthread_mutex_t *lock = &f->shard->lock;
    pthread_mutex_lock(lock);
    *r->prev = r->next;
    if (r->next != NULL)
        r->next->prev = r->prev;
    r->fill = NULL;
    r->next = NULL;
    r->prev = NULL;
    unsigned left = --f->reader_count;
    f->follower_count -= !r->is_leader;
    make_room_locked(f);
    bool is_last = unref_locked(f);
    pthread_mutex_unlock(lock);
    if (is_last)
        fill_free(f);
    return left;
}

/* Both sides store first and then look at the other's (all sequentially consistent): either the
 * append sees the new position, or we see that the fill was outgrown and make room. */
void cache_reader_took(struct cache_reader *r, uint64_t position)
{
    struct cache_fill *f = r->fill;
    __atomic_store_n(&r->position, position, __ATOMIC_SEQ_CST);
    if (f == NULL || !atomic_load(&f->is_outgrown))
        return;
    pthread_mutex_lock(&f->shard->lock);
    make_room_locked(f);
    pthread_mutex_unlock(&f->shard->lock);
}

/* ---- the fetch's side ------------------------------------------------------------------------ */

static bool is_over(struct cache_fill *f)
{
    enum fill_state state = cache_fill_state(f);
    return state != FILL_WAITING && state != FILL_STREAMING;
}

static void broke(struct cache_fill *f, enum reason why)
{
    pthread_mutex_lock(&f->shard->lock);
    fail_locked(f, why);
    pthread_mutex_unlock(&f->shard->lock);
}

static bool new_object(struct cache_fill *f, const struct object_facts *facts,
                       struct cache_body *body, struct cache_object **object)
{
    *object = body == NULL ? NULL : object_new(f->cache, &f->key, facts, body);
    if (*object == NULL && body != NULL)
        body_unref(f->cache, body);
    return *object != NULL;
}

/* The head is there: has one of its tags been purged since the fill began? Two tags with one hash
 * cost a fetch. */
static void recall_tags_locked(struct cache_fill *f, struct slice tags)
{
    struct slice tag;
    while (f->purged_tag_count > 0 && !f->is_purged && cache_tags_next(&tags, &tag)) {
        uint64_t hash = tag_hash(f->cache, tag);
        for (unsigned i = 0; i < f->purged_tag_count; i++)
            f->is_purged |= f->purged_tags[i] == hash;
    }
}

void cache_fill_head(struct cache_fill *f, const struct object_facts *facts)
{
    CHECK_OBJ(f, FILL_MAGIC);
    CHECK(cache_fill_state(f) == FILL_WAITING);
    struct cache *c = f->cache;
    int64_t length = facts->length_bytes < 0 ? -1 : facts->length_bytes;
    f->max_bytes = count_read(&c->object_max_bytes);
    struct cache_body *body = NULL;
    bool is_too_large = length > 0 && (uint64_t)length > f->max_bytes;
    if (!is_too_large)
        body = body_new(c, length, f->max_bytes);
    bool is_outgrown = body == NULL;
    if (is_outgrown)
        body = body_new_window(c, length);
    struct cache_object *o;
    if (!new_object(f, facts, body, &o)) {
        broke(f, REASON_ORIGIN_BUSY);
        return;
    }
    pthread_mutex_lock(&f->shard->lock);
    recall_tags_locked(f, o->facts.tags);
    if (is_outgrown) {
        f->window_bytes = is_too_large ? WINDOW_BYTES : WINDOW_POOR_BYTES;
        atomic_store(&f->is_outgrown, true);
    }
    atomic_store_explicit(&f->object, o, memory_order_release);
    atomic_store_explicit(&f->state, FILL_STREAMING, memory_order_release);
    wake_readers_locked(f);
    pthread_mutex_unlock(&f->shard->lock);
    memory_fit(c);
}

/* Bytes beyond the announced length are a fault of whoever framed them: nothing of it is to be
 * trusted. */
static bool is_overrun(const struct cache_object *o, struct slice bytes)
{
    int64_t length = cache_object_length(o);
    return length >= 0 && bytes.len > (uint64_t)length - cache_object_arrived(o);
}

static bool outgrow_locked(struct cache_fill *f, uint64_t window_bytes)
{
    if (!body_outgrow(f->cache, cache_fill_object(f)->body))
        return false;
    f->window_bytes = window_bytes;
    atomic_store(&f->is_outgrown, true);
    return true;
}

/* What did not find room as part of an object to store. */
static enum fill_result append_outgrown_locked(struct cache_fill *f, struct slice bytes)
{
    struct cache_body *b = cache_fill_object(f)->body;
    (void)window_used_locked(f); /* what was taken since makes room */
    if (!body_window_append(f->cache, b, bytes)) {
        fail_locked(f, REASON_ORIGIN_BUSY);
        return FILL_OK;
    }
    if (window_used_locked(f) >= f->window_bytes)
        f->is_paused = true;
    return f->is_paused ? FILL_PAUSE : FILL_OK;
}

enum fill_result cache_fill_append(struct cache_fill *f, struct slice bytes)
{
    CHECK_OBJ(f, FILL_MAGIC);
    if (is_over(f) || bytes.len == 0)
        return FILL_OK;
    CHECK(cache_fill_state(f) == FILL_STREAMING);
    struct cache_object *o = cache_fill_object(f);
    if (is_overrun(o, bytes)) {
        broke(f, REASON_ORIGIN_MALFORMED);
        return FILL_OK;
    }
    bool was_outgrown = atomic_load(&f->is_outgrown);
    bool is_too_large = cache_object_arrived(o) + bytes.len > f->max_bytes;
    size_t taken = 0;
    if (!was_outgrown && !is_too_large)
        taken = body_append(f->cache, o->body, bytes);
    struct slice rest = { bytes.ptr + taken, bytes.len - taken };
    enum fill_result result = FILL_OK;
    pthread_mutex_lock(&f->shard->lock);
    if (rest.len > 0) {
        if (!was_outgrown && !outgrow_locked(f, is_too_large ? WINDOW_BYTES : WINDOW_POOR_BYTES))
            fail_locked(f, REASON_ORIGIN_BUSY);
        else
            result = append_outgrown_locked(f, rest);
    }
    wake_readers_locked(f);
    pthread_mutex_unlock(&f->shard->lock);
    return result;
}

void cache_fill_on_room(struct cache_fill *f, struct mailbox *m, struct post *post)
{
    pthread_mutex_lock(&f->shard->lock);
    f->room_mailbox = m;
    f->room_post = post;
    pthread_mutex_unlock(&f->shard->lock);
}

/* Purge and publishing meet under this lock: whichever comes second sees the first. */
static bool publish_locked(struct cache_fill *f, struct cache_object *o,
                           struct cache_object *replaces)
{
    if (f->is_purged || atomic_load(&f->is_outgrown))
        return false;
    if (f->joined > 0) /* asked for more than once already */
        atomic_store_explicit(&o->used, 1, memory_order_relaxed);
    return index_publish(f->cache, o, replaces);
}

bool cache_fill_seal(struct cache_fill *f)
{
    CHECK_OBJ(f, FILL_MAGIC);
    if (is_over(f))
        return false;
    CHECK(cache_fill_state(f) == FILL_STREAMING);
    struct cache_object *o = cache_fill_object(f);
    int64_t length = cache_object_length(o);
    if (length >= 0 && (uint64_t)length != cache_object_arrived(o)) {
        broke(f, REASON_ORIGIN_CUT);
        return false;
    }
    f->leftover = body_seal(f->cache, o->body);
    if (!atomic_load(&f->is_outgrown))
        body_stored(f->cache, o->body); /* before anybody can find it */
    pthread_mutex_lock(&f->shard->lock);
    object_set_state(o, OBJECT_COMPLETE);
    bool is_stored = publish_locked(f, o, NULL);
    end_locked(f, FILL_COMPLETE);
    pthread_mutex_unlock(&f->shard->lock);
    memory_fit(f->cache);
    return is_stored;
}

void cache_fill_adopt(struct cache_fill *f, struct cache_object *o)
{
    CHECK_OBJ(f, FILL_MAGIC);
    CHECK(cache_fill_state(f) == FILL_WAITING && f->stale == NULL);
    f->stale = cache_object_ref(o);
    f->is_adopted = true;
}

void cache_fill_revalidated(struct cache_fill *f, const struct object_facts *facts)
{
    CHECK_OBJ(f, FILL_MAGIC);
    CHECK(cache_fill_state(f) == FILL_WAITING && f->stale != NULL);
    struct object_facts fresh = *facts;
    fresh.length_bytes = cache_object_length(f->stale);
    struct cache_object *o;
    if (!new_object(f, &fresh, body_ref(f->stale->body), &o)) {
        broke(f, REASON_ORIGIN_BUSY);
        return;
    }
    object_set_state(o, OBJECT_COMPLETE);
    pthread_mutex_lock(&f->shard->lock);
    recall_tags_locked(f, o->facts.tags);
    atomic_store_explicit(&f->object, o, memory_order_release);
    (void)publish_locked(f, o, f->is_adopted ? NULL : f->stale);
    end_locked(f, FILL_COMPLETE);
    pthread_mutex_unlock(&f->shard->lock);
    memory_fit(f->cache);
}

void cache_fill_release(struct cache_fill *f)
{
    CHECK_OBJ(f, FILL_MAGIC);
    CHECK(cache_fill_state(f) == FILL_WAITING);
    pthread_mutex_lock(&f->shard->lock);
    end_locked(f, FILL_RELEASED);
    pthread_mutex_unlock(&f->shard->lock);
}

void cache_fill_fail(struct cache_fill *f, enum reason why)
{
    CHECK_OBJ(f, FILL_MAGIC);
    if (!is_over(f))
        broke(f, why);
}

void cache_fill_done(struct cache_fill **fill)
{
    struct cache_fill *f = *fill;
    *fill = NULL;
    CHECK_OBJ(f, FILL_MAGIC);
    CHECK(is_over(f));
    pthread_mutex_lock(&f->shard->lock);
    f->room_mailbox = NULL;
    f->room_post = NULL;
    bool is_last = unref_locked(f);
    pthread_mutex_unlock(&f->shard->lock);
    if (is_last)
        fill_free(f);
}

/* ---- purge ----------------------------------------------------------------------------------- */

void fills_purge(struct cache *c, const struct cache_key *key, unsigned *dropped)
{
    struct fill_shard *s = fill_shard_of(c, key);
    pthread_mutex_lock(&s->lock);
    for (struct cache_fill *f = s->fills; f != NULL; f = f->next)
        if (same_key(&f->key, key))
            f->is_purged = true;
    *dropped = index_purge(c, key);
    pthread_mutex_unlock(&s->lock);
}

/* By key, or by the tags of what it makes or revalidates. */
static bool is_hit_locked(struct cache_fill *f, const struct fill_mark *m)
{
    if (m->fits != NULL)
        return m->fits(m->arg, f->key.bytes);
    const struct cache_object *o = cache_fill_object(f);
    struct slice tags = m->tags, tag;
    while (cache_tags_next(&tags, &tag))
        if ((o != NULL && tags_have(o->facts.tags, tag)) ||
            (f->stale != NULL && tags_have(f->stale->facts.tags, tag)))
            return true;
    return false;
}

static void remember_tag_locked(struct cache_fill *f, uint64_t hash)
{
    for (unsigned i = 0; i < f->purged_tag_count; i++)
        if (f->purged_tags[i] == hash)
            return;
    if (f->purged_tag_count < PURGED_TAGS_MAX)
        f->purged_tags[f->purged_tag_count++] = hash;
    else
        f->is_purged = true;
}

static void remember_tags_locked(struct cache_fill *f, struct slice tags)
{
    struct slice tag;
    while (!f->is_purged && cache_tags_next(&tags, &tag))
        remember_tag_locked(f, tag_hash(f->cache, tag));
}

uint64_t fills_mark(struct cache *c, const struct fill_mark *m)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < FILL_SHARDS; i++) {
        struct fill_shard *s = &c->fill_shards[i];
        pthread_mutex_lock(&s->lock);
        for (struct cache_fill *f = s->fills; f != NULL; f = f->next) {
            bool is_hit = is_hit_locked(f, m);
            count += is_hit;
            if (m->is_dry)
                continue;
            if (is_hit)
                f->is_purged = true;
            else if (m->fits == NULL && cache_fill_state(f) == FILL_WAITING)
                remember_tags_locked(f, m->tags);
        }
        pthread_mutex_unlock(&s->lock);
    }
    return count;
}
