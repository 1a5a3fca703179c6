/* proxy/slices.c: an answer put together of slices: of a file too large to be fetched for a part of
 * it, or to be stored at all, aligned slices are kept, each an object of its own under the main key
 * with "NUL slice=<size>:<number>" behind it.
 *
 *   the record   the object under the main key: the head of the whole, its length and its strong
 * validator. It is fresh, stale, asked about and purged as any object; as long as it holds, so do
 * the slices of its version. a slice      found in the store, or fetched by a fill as any other,
 * with If-Range: whoever wants it follows that.
 *
 * While one slice goes to the client, at the client's pace, the next is fetched ahead; no more than
 * that one.
 *
 * A slice that turns out to be of another version than the record ends the old one: record and
 * slices are dropped. When nothing has gone out yet, the client's request is looked up anew, once;
 * else its connection is cut, and the next client gets the new version. Bytes of two versions are
 * never put together.
 *
 *   ANSWER_OBJECT --a record, bytes are wanted--> SLICES --the first slice's head is there-->
 * ANSWER_OBJECT --> DELIVER
 *                                                   |--another version--> LOOKUP
 *                                                   '--not to be had in slices--> PASS
 */
#include "proxy/fetch_internal.h"

#include <stdio.h>

enum { TRIES_MAX = 8, RETRIES_MAX = 1, KEY_MORE = 64, LOOKS_MAX = 1024 };

struct slices {
    struct cache_object *record; /* ours by reference */
    uint64_t position, end;      /* of the representation: what is to be sent yet */
    uint64_t size, number;       /* the slice that is open or wanted */
    char *key;                   /* the main key, with room behind it */
    unsigned tries;              /* fills that came to nothing through their leaders' doing */
    enum reason why;             /* it failed */
    bool is_open;                /* the slice is x->object */
    bool has_looked_ahead;
};

struct cache_object *exchange_slices_record(const struct exchange *x)
{
    return x->slices->record;
}

bool exchange_slices_are_too_many(const struct config *c, uint64_t length)
{
    return length > c->memory_bytes / 2;
}

/* ---- one slice ------------------------------------------------------------------------------- */

static struct content_range place_of(const struct slices *s, uint64_t number)
{
    int64_t complete = cache_object_facts(s->record)->part.complete;
    uint64_t first = number * s->size, end = first + s->size;
    return (struct content_range){ first, (end < (uint64_t)complete ? end : (uint64_t)complete) - 1,
                                   complete };
}

/* Valid until the next call. */
static struct cache_key key_of(struct exchange *x, uint64_t number)
{
    struct slices *s = x->slices;
    struct slice name = SLICES_KEY;
    size_t length = x->key.bytes.len;
    memcpy(s->key + length, name.ptr, name.len);
    length += name.len;
    length += (size_t)snprintf(s->key + length, KEY_MORE - name.len, "%llu:%llu",
                               (unsigned long long)s->size, (unsigned long long)number);
    return cache_key_of(x->worker->house->cache, (struct slice){ s->key, length });
}

static bool is_of_record(const struct slices *s, uint64_t number, const struct object_facts *o)
{
    struct content_range place = place_of(s, number);
    return o->status == 206 && o->part.first == place.first && o->part.last == place.last &&
           o->part.complete == place.complete &&
           cache_validators_strongly_equal(&o->validators,
                                           &cache_object_facts(s->record)->validators);
}

/* By reference, or NULL. */
static struct cache_object *find(struct exchange *x, uint64_t number)
{
    struct cache_key key = key_of(x, number);
    struct cache_object *o;
    cache_read_begin();
    if (cache_find(x->worker->house->cache, &key, &x->request.headers, &o) != CACHE_FOUND ||
        !is_of_record(x->slices, number, cache_object_facts(o)) || !cache_object_try_ref(o))
        o = NULL;
    cache_read_end();
    return o;
}

static struct byte_range range_of(const struct slices *s, uint64_t number)
{
    struct content_range place = place_of(s, number);
    return (struct byte_range){ place.first, place.last };
}

static void let_go_of_fill(struct exchange *x)
{
    exchange_detach_reader(x);
    fetch_leader_left(&x->fetch);
}

static void close_slice(struct exchange *x)
{
    let_go_of_fill(x);
    if (x->owns_object)
        cache_object_unref(&x->object);
    x->owns_object = false;
    x->object = NULL;
    x->slices->is_open = false;
    x->slices->has_looked_ahead = false;
}

static void open_stored(struct exchange *x, struct cache_object *o)
{
    x->object = o;
    x->owns_object = true;
    x->slices->is_open = true;
}

/* Leads or follows a fill of the slice. False: too many wait for it. */
static bool begin_fill(struct exchange *x)
{
    struct slices *s = x->slices;
    struct cache_fill *fill = NULL;
    struct cache_key key = key_of(x, s->number);
    x->begun = cache_fill_begin(x->worker->house->cache, &key, &x->request.headers, NULL,
                                &x->reader, &fill);
    if (x->begun == FILL_FULL)
        return false;
    stat_add(&x->worker->stats->followers_live, 1);
    if (x->begun == FILL_FOLLOW) {
        stat_add(&x->worker->stats->fill_joined, 1);
        return true;
    }
    struct cache_object *o = find(x, s->number); /* a fill may have ended since we looked */
    if (o == NULL) {
        struct byte_range range = range_of(s, s->number);
        fetch_slice(x, fill, s->record, &range);
        return true;
    }
    cache_fill_fail(fill, REASON_CLIENT_LEFT);
    exchange_detach_reader(x);
    cache_fill_done(&fill);
    open_stored(x, o);
    return true;
}

enum opened { OPENED, OPEN_WAITS, OPEN_AGAIN, OPEN_FAILED };

static enum opened failed(struct exchange *x, enum reason why)
{
    let_go_of_fill(x);
    x->slices->why = why;
    return OPEN_FAILED;
}

/* The fill broke before its head. When that was its leader's doing, or it is not ours after all:
 * another one. */
static enum opened again(struct exchange *x, enum reason why)
{
    if (++x->slices->tries > TRIES_MAX)
        return failed(x, why);
    let_go_of_fill(x);
    return OPEN_AGAIN;
}

static enum opened look_at_fill(struct exchange *x)
{
    struct slices *s = x->slices;
    struct cache_fill *fill = x->reader.fill;
    enum fill_state state = cache_fill_state(fill);
    struct cache_object *o = cache_fill_object(fill);
    bool follows = x->begun == FILL_FOLLOW;
    if (state == FILL_WAITING)
        return OPEN_WAITS;
    if (o == NULL) {
        enum reason why = state == FILL_FAILED ? cache_fill_fault(fill) : REASON_RANGE;
        return follows && why == REASON_CLIENT_LEFT ? again(x, why) : failed(x, why);
    }
    if (follows && !cache_fill_suits(fill, &x->request.headers))
        return again(x, REASON_CLIENT_LEFT);
    if (!is_of_record(s, s->number, cache_object_facts(o)))
        return failed(x, REASON_ORIGIN_CHANGED);
    x->object = o;
    s->is_open = true;
    return OPENED;
}

static enum opened open_slice(struct exchange *x)
{
    enum opened opened;
    do {
        if (x->reader.fill == NULL) {
            struct cache_object *o = find(x, x->slices->number);
            if (o != NULL)
                open_stored(x, o);
            else if (!begin_fill(x))
                return failed(x, REASON_QUEUE_FULL);
            if (x->slices->is_open)
                return OPENED;
        }
        opened = look_at_fill(x);
    } while (opened == OPEN_AGAIN);
    return opened;
}

/* The one behind it, for when the client comes to it. */
static void look_ahead(struct exchange *x)
{
    struct slices *s = x->slices;
    uint64_t next = s->number + 1;
    if (s->has_looked_ahead || next * s->size >= s->end)
        return;
    s->has_looked_ahead = true;
    struct cache_object *o = find(x, next);
    if (o != NULL) {
        cache_object_unref(&o);
        return;
    }
    struct cache_fill *fill;
    struct cache_key key = key_of(x, next);
    struct byte_range range = range_of(s, next);
    if (cache_fill_begin_behind(x->worker->house->cache, &key, &x->request.headers, NULL, &fill))
        fetch_slice_ahead(x, fill, s->record, &range);
}

/* ---- when it fails --------------------------------------------------------------------------- */

/* The record, if it is still what is stored, and with it all slices of its version. */
static void drop_record(struct exchange *x)
{
    struct cache *cache = x->worker->house->cache;
    struct cache_object *o;
    cache_read_begin();
    bool is_stored = cache_find(cache, &x->key, &x->request.headers, &o) == CACHE_FOUND &&
                     o == x->slices->record;
    cache_read_end();
    if (!is_stored)
        return; /* somebody was here before */
    cache_drop(cache, x->slices->record);
    fetch_drop_slices(x->worker, x->key.bytes);
}

static void note_failure(struct exchange *x)
{
    enum reason why = x->slices->why;
    if (why != REASON_ORIGIN_CHANGED && why != REASON_RANGE)
        return;
    drop_record(x);
    if (why == REASON_RANGE) /* the origin does not give ranges: not tried again for a while */
        cache_remember_uncacheable(x->worker->house->cache, &x->key, x->begun_ms);
}

enum fault exchange_slices_fault(const struct exchange *x)
{
    enum fault fault = fault_of_reason(x->slices->why);
    return fault == FAULT_NONE ? FAULT_ORIGIN_CUT : fault;
}

void exchange_slices_drop(struct exchange *x)
{
    if (x->slices == NULL)
        return;
    cache_object_unref(&x->slices->record);
    x->slices = NULL;
}

/* Nothing has gone out yet. */
static enum next go_elsewhere(struct exchange *x)
{
    if (x->slices->why == REASON_ORIGIN_CHANGED && x->was_restarted)
        x->slices->why = REASON_RANGE; /* its slices are never of the version that it says it has */
    enum reason why = x->slices->why;
    enum fault fault = exchange_slices_fault(x);
    note_failure(x);
    exchange_slices_drop(x);
    if (why == REASON_ORIGIN_CHANGED) {
        x->was_restarted = true;
        return exchange_go(x, STEP_LOOKUP);
    }
    if (why == REASON_ONLY_IF_CACHED)
        return exchange_refuse(x, FAULT_ONLY_IF_CACHED);
    if (why != REASON_RANGE && why != REASON_QUEUE_FULL)
        return exchange_origin_failed(x, fault);
    x->outcome = OUTCOME_PASS;
    x->reason = why;
    return exchange_go(x, STEP_PASS);
}

/* ---- the steps ------------------------------------------------------------------------------- */

/* The record as our own, whoever it is borrowed from. False: it has just gone. */
static bool take_record(struct exchange *x, struct slices *s)
{
    if (x->reader.fill != NULL) {
        s->record = cache_object_ref(x->object);
        let_go_of_fill(x);
    } else {
        exchange_leave_read_section(x);
        s->record = x->owns_object ? x->object : NULL;
    }
    x->object = NULL;
    x->owns_object = false;
    return s->record != NULL;
}

enum next exchange_slices_begin(struct exchange *x, uint64_t first, uint64_t end)
{
    struct slices *s = arena_alloc(&x->arena, sizeof *s);
    *s = (struct slices){ .position = first,
                          .end = end,
                          .size = x->snapshot->config->slice_bytes,
                          .why = REASON_ANSWERED };
    if (!take_record(x, s))
        return exchange_go(x, STEP_LOOKUP);
    if (s->size == 0) { /* turned off since the record was made */
        x->slices = s;
        s->why = REASON_RANGE;
        return go_elsewhere(x);
    }
    s->number = first / s->size;
    s->key = arena_alloc(&x->arena, x->key.bytes.len + KEY_MORE);
    memcpy(s->key, x->key.bytes.ptr, x->key.bytes.len);
    x->slices = s;
    return exchange_go(x, STEP_SLICES);
}

/* What is said of the whole of it is said by its first slice: it was there, somebody else fetched
 * it, or we did. */
static void note_opened(struct exchange *x)
{
    if (x->reader.fill == NULL || (x->outcome != OUTCOME_HIT && x->outcome != OUTCOME_STALE))
        return;
    x->outcome = x->begun == FILL_FOLLOW ? OUTCOME_COLLAPSED : OUTCOME_MISS;
    x->reason = x->looked = REASON_ABSENT;
    x->is_stored = true;
}

/* RFC 9111 5.2.1.7: the client wants what is stored, or nothing. */
static bool wants_only_stored(const struct exchange *x)
{
    struct cache_control asked;
    if (!x->snapshot->config->honours_client)
        return false;
    cache_control_read_request(&x->request.headers, &asked);
    return asked.only_if_cached;
}

static bool has_all(struct exchange *x)
{
    const struct slices *s = x->slices;
    if ((s->end - s->position) / s->size > LOOKS_MAX)
        return false;
    for (uint64_t n = s->number; n * s->size < s->end; n++) {
        struct cache_object *o = find(x, n);
        if (o == NULL)
            return false;
        cache_object_unref(&o);
    }
    return true;
}

enum next step_slices(struct exchange *x)
{
    if (x->reader.fill == NULL && wants_only_stored(x) && !has_all(x)) {
        x->slices->why = REASON_ONLY_IF_CACHED;
        return go_elsewhere(x);
    }
    switch (open_slice(x)) {
    case OPEN_WAITS: return NEXT_WAIT;
    case OPEN_FAILED: return go_elsewhere(x);
    case OPENED:
    case OPEN_AGAIN: break;
    }
    note_opened(x);
    return exchange_go(x, STEP_ANSWER_OBJECT);
}

static enum slices_pulled broken(struct exchange *x)
{
    note_failure(x);
    return SLICES_BROKEN;
}

/* Of the open slice. END: it is through, or broke and is to be fetched once more. */
static enum slices_pulled pull_open(struct exchange *x, uint64_t *from, uint64_t *to)
{
    struct slices *s = x->slices;
    enum object_state state = cache_object_state(x->object); /* before the length */
    uint64_t base = s->number * s->size, arrived = base + cache_object_arrived(x->object);
    uint64_t end = arrived < s->end ? arrived : s->end;
    if (x->reader.fill != NULL)
        cache_reader_took(&x->reader, (arrived < s->position ? arrived : s->position) - base);
    if (state == OBJECT_COMPLETE)
        look_ahead(x);
    if (s->position < end) {
        *from = s->position - base;
        *to = end - base;
        s->position = end;
        return SLICES_DATA;
    }
    if (s->position == s->end || s->position == base + s->size)
        return SLICES_END;
    if (state == OBJECT_FILLING)
        return SLICES_WAIT;
    s->why = x->reader.fill == NULL ? REASON_ORIGIN_CUT : cache_fill_fault(x->reader.fill);
    if (s->tries++ >= RETRIES_MAX)
        return broken(x);
    return SLICES_END; /* once more: it goes on behind what was sent of it */
}

enum slices_pulled exchange_slices_pull(struct exchange *x, uint64_t *from, uint64_t *to)
{
    struct slices *s = x->slices;
    for (;;) {
        if (s->position == s->end)
            return SLICES_END;
        if (!s->is_open) {
            enum opened opened = open_slice(x);
            if (opened == OPEN_WAITS)
                return SLICES_WAIT;
            if (opened == OPEN_FAILED)
                return broken(x);
        }
        enum slices_pulled pulled = pull_open(x, from, to);
        if (pulled != SLICES_END || s->position == s->end)
            return pulled;
        close_slice(x);
        if (s->position < (s->number + 1) * s->size)
            continue;
        s->number++;
        s->tries = 0;
    }
}
