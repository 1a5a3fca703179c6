/* cache/object.c: one stored response: a head over a body, shared by everyone who reads it.
 *
 * Life     object_new() -> FILLING -> COMPLETE | FAILED -> last unref -> grace period -> freed
 * Owner    counted: the index holds one reference, the fill one, each reader beyond a read section
 *          one.
 * Threads  any thread may read. Everything but the count, the state, the use, and the two words
 *          about being outdated and refreshed is fixed by object_new().
 *
 * Head, key and the rest lie in one block behind the struct: a hit touches as few lines as can be.
 */
#include "cache/cache_internal.h"

static size_t text_length(const struct cache_key *key, const struct object_facts *f)
{
    return key->bytes.len + f->head.len + f->selecting.len + f->validators.etag.len +
           f->content_encoding.len + f->content_type.len + f->tags.len;
}

static struct slice copy_text(char **to, struct slice s)
{
    if (s.len == 0)
        return SLICE_NONE;
    memcpy(*to, s.ptr, s.len);
    struct slice copy = { *to, s.len };
    *to += s.len;
    return copy;
}

struct cache_object *object_new(struct cache *c, const struct cache_key *key,
                                const struct object_facts *facts, struct cache_body *body)
{
    size_t bytes = sizeof(struct cache_object) + text_length(key, facts);
    struct cache_object *o = memory_block_beyond(c, MEMORY_HEAD, bytes);
    if (o == NULL)
        return NULL;
    memset(o, 0, sizeof *o);
    o->magic = OBJECT_MAGIC;
    atomic_init(&o->refs, 1);
    atomic_init(&o->state, OBJECT_FILLING);
    o->cache = c;
    o->body = body;
    o->high = key->high;
    o->low = key->low;
    o->facts = *facts;
    char *to = o->text;
    o->key = copy_text(&to, key->bytes);
    o->facts.head = copy_text(&to, facts->head);
    o->facts.selecting = copy_text(&to, facts->selecting);
    o->facts.validators.etag = copy_text(&to, facts->validators.etag);
    o->facts.content_encoding = copy_text(&to, facts->content_encoding);
    o->facts.content_type = copy_text(&to, facts->content_type);
    o->facts.tags = copy_text(&to, facts->tags);
    return o;
}

uint64_t object_bytes(struct cache_object *o)
{
    return memory_block_bytes(o) + body_bytes(o->body);
}

void object_set_state(struct cache_object *o, enum object_state state)
{
    atomic_store_explicit(&o->state, (uint8_t)state, memory_order_release);
}

const struct object_facts *cache_object_facts(const struct cache_object *o)
{
    return &o->facts;
}

struct slice cache_object_key(const struct cache_object *o)
{
    return o->key;
}

enum object_state cache_object_state(const struct cache_object *o)
{
    return (enum object_state)atomic_load_explicit(&o->state, memory_order_acquire);
}

uint64_t cache_object_arrived(const struct cache_object *o)
{
    return atomic_load_explicit(&o->body->arrived, memory_order_acquire);
}

int64_t cache_object_length(const struct cache_object *o)
{
    return atomic_load_explicit(&o->body->length, memory_order_acquire);
}

struct object_piece cache_object_piece(const struct cache_object *o, uint64_t offset)
{
    return body_piece(o->cache, o->body, offset);
}

bool cache_object_try_ref(struct cache_object *o)
{
    uint32_t refs = atomic_load_explicit(&o->refs, memory_order_relaxed);
    do
        if (refs == 0)
            return false;
    while (!atomic_compare_exchange_weak_explicit(&o->refs, &refs, refs + 1, memory_order_acquire,
                                                  memory_order_relaxed));
    return true;
}

struct cache_object *cache_object_ref(struct cache_object *o)
{
    CHECK_OBJ(o, OBJECT_MAGIC);
    uint32_t before = atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
    CHECK(before > 0);
    return o;
}

static void object_free(struct rcu_head *head)
{
    cache_deferred(head);
    struct cache_object *o = caa_container_of(head, struct cache_object, rcu);
    struct cache *c = o->cache;
    uint64_t dying = o->dying_bytes;
    o->magic = 0;
    memory_reap_begin();
    body_unref(c, o->body);
    memory_block_free(c, MEMORY_INDEX, o->tag_nodes);
    memory_block_free(c, MEMORY_HEAD, o);
    memory_reap_end(c, dying);
}

void cache_object_unref(struct cache_object **object)
{
    struct cache_object *o = *object;
    *object = NULL;
    if (o == NULL)
        return;
    CHECK_OBJ(o, OBJECT_MAGIC);
    uint32_t before = atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel);
    CHECK(before > 0);
    if (before > 1)
        return;
    /* What the grace period will bring. Another head over the body keeps the body: then only this
     * head counts. */
    bool is_last_head = atomic_load_explicit(&o->body->refs, memory_order_acquire) == 1;
    o->dying_bytes = memory_block_bytes(o) + memory_block_bytes(o->tag_nodes) +
                     (is_last_head ? body_bytes(o->body) : 0);
    memory_dying(o->cache, o->dying_bytes);
    cache_defer(&o->rcu, object_free);
}

/* ---- what changes about a stored object ------------------------------------------------------ */

void object_outdate(struct cache_object *o, int64_t now_ms)
{
    int64_t none = 0;
    atomic_compare_exchange_strong_explicit(&o->outdated_ms, &none, now_ms > 0 ? now_ms : 1,
                                            memory_order_relaxed, memory_order_relaxed);
}

int64_t cache_object_outdated_ms(const struct cache_object *o)
{
    return atomic_load_explicit(&o->outdated_ms, memory_order_relaxed);
}

int32_t cache_object_age_s(const struct cache_object *o, int64_t now_ms)
{
    const struct freshness *f = &o->facts.freshness;
    int32_t age_s = cache_age_s(f, o->facts.received_ms, now_ms);
    int64_t outdated_ms = cache_object_outdated_ms(o);
    if (likely(outdated_ms == 0))
        return age_s;
    int64_t since_s = now_ms > outdated_ms ? (now_ms - outdated_ms) / 1000 : 0;
    int64_t over_s = f->lifetime_s + since_s;
    if (over_s <= age_s)
        return age_s; /* it was past its lifetime already when the purge came */
    return over_s < CONTROL_MAX_S ? (int32_t)over_s : CONTROL_MAX_S;
}

/* The word `refresh`: until when it holds (milliseconds, monotonic), how often in a row it failed,
 * and whether it holds because somebody refreshes it or because nobody is to. 0: neither. */
enum {
    CLAIM_MS = 60 * 1000,
    PAUSE_MS = 1000,
    PAUSE_DOUBLINGS_MAX = 6, /* 64 s: cut to a minute */
    PAUSE_MAX_MS = 60 * 1000,
    REFRESH_CLAIMED = 1,
    REFRESH_FAILED_SHIFT = 1,
    REFRESH_FAILED_MASK = 15,
    REFRESH_UNTIL_SHIFT = 8
};

static int64_t refresh_until(uint64_t word)
{
    return (int64_t)(word >> REFRESH_UNTIL_SHIFT);
}

static unsigned refresh_failures(uint64_t word)
{
    return (unsigned)(word >> REFRESH_FAILED_SHIFT) & REFRESH_FAILED_MASK;
}

static uint64_t refresh_word(int64_t until_ms, unsigned failures, unsigned flags)
{
    return (uint64_t)until_ms << REFRESH_UNTIL_SHIFT | failures << REFRESH_FAILED_SHIFT | flags;
}

static bool refresh_is_paused(uint64_t word, int64_t now_ms)
{
    return (word & REFRESH_CLAIMED) == 0 && refresh_until(word) > now_ms;
}

bool cache_object_claim_refresh(struct cache_object *o, int64_t now_ms)
{
    uint64_t word = atomic_load_explicit(&o->refresh, memory_order_relaxed);
    if (refresh_until(word) > now_ms)
        return false;
    uint64_t claimed = refresh_word(now_ms + CLAIM_MS, refresh_failures(word), REFRESH_CLAIMED);
    return atomic_compare_exchange_strong_explicit(&o->refresh, &word, claimed,
                                                   memory_order_relaxed, memory_order_relaxed);
}

/* Several who waited for one fetch tell of the same failure: the first of them counts. */
void cache_object_refresh_failed(struct cache_object *o, int64_t now_ms)
{
    uint64_t word = atomic_load_explicit(&o->refresh, memory_order_relaxed), paused;
    do {
        if (refresh_is_paused(word, now_ms))
            return;
        unsigned failures = refresh_failures(word);
        int64_t pause_ms = (int64_t)PAUSE_MS << failures;
        if (pause_ms > PAUSE_MAX_MS)
            pause_ms = PAUSE_MAX_MS;
        if (failures < PAUSE_DOUBLINGS_MAX)
            failures++;
        paused = refresh_word(now_ms + pause_ms, failures, 0);
    } while (!atomic_compare_exchange_weak_explicit(&o->refresh, &word, paused,
                                                    memory_order_relaxed, memory_order_relaxed));
}

bool cache_object_is_paused(const struct cache_object *o, int64_t now_ms)
{
    return refresh_is_paused(atomic_load_explicit(&o->refresh, memory_order_relaxed), now_ms);
}
