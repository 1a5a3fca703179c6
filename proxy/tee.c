/* proxy/tee.c: a pass whose answer may be stored after all goes into the store, too, while it goes
 * to the client: at the client's pace, and never the other way about.
 *
 *   a part (206) that a client asked for   kept as a part (RFC 9111 3.3); put together with what is stored
 *                                          when both are of one version and nothing is missing between (3.4)
 *   the whole in its place (200)           kept as any whole
 *   an answer to POST that says it is      kept for GET (RFC 9110 9.3.3)
 *   what a GET would bring
 *
 * Life     exchange_tee_begin() when the head is there -> _take() each piece -> _end(), or _drop()
 *          when it broke or the client left: what has come is then thrown away.
 * Threads  its exchange's.
 */
#include "proxy/fetch_internal.h"

enum { JOIN_MAX = 8 << 20 }; /* bytes of parts put together: it is done in one go, on the worker */

struct tee {
    struct cache_fill *fill;
    struct cache_object *part; /* ours by reference: what it is joined with; or NULL */
    uint64_t behind;           /* bytes of it before are in front of, or within, what comes */
    bool is_part;
    int64_t ttl_s;
};

/* ---- what may be kept ------------------------------------------------------------------------ */

static bool is_part_or_whole(const struct exchange *x, uint16_t status)
{
    return x->request.method == METHOD_GET && x->plan.way == PLAN_LOOKUP &&
           headers_has(&x->request.headers, HEADER_RANGE) &&
           (status == 206 || (status == 200 && x->passes_range));
}

static bool is_post_for_get(struct exchange *x, const struct h1_response *r)
{
    if (x->request.method != METHOD_POST || !headers_has(&r->headers, HEADER_CONTENT_LOCATION))
        return false;
    struct rule_request asked = exchange_rule_request(x);
    struct target_base base = { .scheme = asked.scheme,
                                .host = asked.host,
                                .port = x->host_port == 80 ? 0 : x->host_port,
                                .path = asked.path };
    return cache_post_is_get(&base, asked.query, &r->headers, r->status, &x->arena);
}

static enum storable judge(struct exchange *x, struct judged *j)
{
    fetch_copy_request(x->fetch, x);
    enum storable why = fetch_judge(x->fetch, j);
    if (why == STORABLE_YES && j->facts.length_bytes > 0 &&
        (uint64_t)j->facts.length_bytes > fetch_object_max(x->fetch))
        why = STORABLE_TOO_LARGE;
    return why;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static uint64_t length_of(const struct content_range *r)
{
    return r->last - r->first + 1;
}

static bool is_whole(const struct content_range *r)
{
    return r->first == 0 && r->complete >= 0 && r->last + 1 == (uint64_t)r->complete;
}

/* The part that is stored, when the one that comes and it are of one version, in reach of each
 * other, and more than the one that comes (RFC 9111 3.4). */
static const struct object_facts *joinable(const struct exchange *x, const struct object_facts *its,
                                           struct content_range *both)
{
    const struct object_facts *stored = x->stale == NULL ? NULL : cache_object_facts(x->stale);
    if (stored == NULL || stored->status != 206 || cache_facts_are_sliced(stored) ||
        cache_object_state(x->stale) != OBJECT_COMPLETE ||
        !slice_equal(stored->selecting, its->selecting) ||
        !cache_validators_strongly_equal(&stored->validators, &its->validators) ||
        !cache_parts_join(&stored->part, &its->part, both))
        return NULL;
    return length_of(both) > length_of(&its->part) ? stored : NULL;
}

static struct slice with_status_200(struct exchange *x, struct slice head)
{
    struct slice fields = answer_without_status_line(head);
    return arena_printf(&x->arena, "HTTP/1.1 200 OK\r\n" SLICE_FMT, SLICE_ARG(fields));
}

/* What is stored of a 206: its own bytes, or together with those of x->stale (*joins). False: what
 * is stored is more than what comes, and too much to be put together. */
static bool plan_part(struct exchange *x, struct judged *j, struct content_range *its, bool *joins)
{
    struct content_range both;
    if (!cache_content_range_read(&x->fetch->response.headers, its))
        return false;
    j->facts.part = *its;
    const struct object_facts *stored = joinable(x, &j->facts, &both);
    if (stored != NULL && length_of(&both) <= JOIN_MAX) {
        if (!fetch_judge_update(x->fetch, x->stale, j) || j->judgement.storable != STORABLE_YES)
            return false;
        j->facts.part = both;
        *joins = true;
    } else if (stored != NULL && length_of(&stored->part) > length_of(its)) {
        return false;
    }
    j->facts.status = 206;
    j->facts.length_bytes = (int64_t)length_of(&j->facts.part);
    if (is_whole(&j->facts.part)) {
        j->facts.status = 200;
        j->facts.head = with_status_200(x, j->facts.head);
        j->facts.part = (struct content_range){ 0 };
    }
    return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void count_end(struct exchange *x, _Atomic int64_t *how)
{
    stat_add(how, 1);
    stat_add(&x->worker->stats->fills_live, -1);
}

static bool is_ended(const struct tee *t)
{
    return cache_fill_state(t->fill) != FILL_STREAMING || cache_fill_is_outgrown(t->fill);
}

/* Bytes of the stored part, from the `from`th on. */
static void append_stored(struct tee *t, uint64_t from, uint64_t to)
{
    while (from < to && !is_ended(t)) {
        bool pauses = false; /* nobody reads it: there is nothing to wait for */
        from += fetch_append_stored(t->fill, t->part, from, to, &pauses);
    }
}

static void start(struct exchange *x, const struct cache_key *key, const struct judged *j)
{
    struct tee *t = arena_alloc(&x->arena, sizeof *t);
    *t = (struct tee){
        .fill = cache_fill_begin_alone(x->worker->house->cache, key, &x->request.headers),
        .is_part = j->facts.status == 206,
        .ttl_s = (int64_t)j->facts.freshness.lifetime_s - j->facts.freshness.initial_age_s
    };
    stat_add(&x->worker->stats->fill_started, 1);
    stat_add(&x->worker->stats->fills_live, 1);
    x->tee = t;
    cache_fill_head(t->fill, &j->facts);
    x->is_stored = !is_ended(t);
}

static void begin_part(struct exchange *x, struct judged *j)
{
    struct content_range its;
    bool joins = false;
    if (j->facts.status != 206) {
        start(x, &x->key, j);
        return;
    }
    if (!plan_part(x, j, &its, &joins))
        return;
    start(x, &x->key, j);
    if (!joins)
        return;
    const struct content_range *stored = &cache_object_facts(x->stale)->part;
    x->tee->part = cache_object_ref(x->stale);
    x->tee->behind = its.last + 1 > stored->first ? its.last + 1 - stored->first : 0;
    if (stored->first < its.first)
        append_stored(x->tee, 0, its.first - stored->first);
}

void exchange_tee_begin(struct exchange *x)
{
    const struct h1_response *r = fetch_response(x->fetch);
    struct judged j = { 0 };
    struct cache_key key = x->key;
    bool is_post = is_post_for_get(x, r);
    if (!is_post && !is_part_or_whole(x, r->status))
        return;
    enum storable why = judge(x, &j);
    if (why != STORABLE_YES) {
        x->unstored = why;
        if (x->passes_range)
            x->reason = storable_reason(why);
        stat_add(&x->worker->stats->unstored[why], 1);
        return;
    }
    if (is_post) {
        struct slice bytes = exchange_key_of_get(x, x->request.path, x->request.query);
        if (bytes.len == 0)
            return;
        key = cache_key_of(x->worker->house->cache, bytes);
        start(x, &key, &j);
        return;
    }
    begin_part(x, &j);
    if (x->tee != NULL && x->outcome == OUTCOME_PASS)
        x->outcome = OUTCOME_MISS;
}

int64_t exchange_tee_ttl_s(const struct exchange *x)
{
    return x->tee == NULL ? 0 : x->tee->ttl_s;
}

static void end(struct exchange *x)
{
    struct tee *t = x->tee;
    x->tee = NULL;
    if (t->part != NULL)
        cache_object_unref(&t->part);
    cache_fill_done(&t->fill);
}

void exchange_tee_drop(struct exchange *x)
{
    if (x->tee == NULL)
        return;
    bool is_outgrown = cache_fill_is_outgrown(x->tee->fill);
    struct stats *s = x->worker->stats;
    cache_fill_fail(x->tee->fill, REASON_CLIENT_LEFT);
    count_end(x, is_outgrown ? &s->fill_too_big : &s->fill_failed);
    end(x);
}

void exchange_tee_take(struct exchange *x, struct slice piece)
{
    /* there is no reader whose pace it could be held to */
    if (cache_fill_append(x->tee->fill, piece) == FILL_PAUSE || is_ended(x->tee))
        exchange_tee_drop(x);
}

/* A part does not take the place of the whole that somebody stored meanwhile. */
static bool is_surpassed(struct exchange *x)
{
    struct cache_object *o;
    const struct object_facts *its = cache_object_facts(cache_fill_object(x->tee->fill));
    cache_read_begin();
    bool is =
        x->tee->is_part &&
        cache_find(x->worker->house->cache, &x->key, &x->request.headers, &o) == CACHE_FOUND &&
        cache_object_facts(o)->status == 200 &&
        cache_validators_strongly_equal(&cache_object_facts(o)->validators, &its->validators);
    cache_read_end();
    return is;
}

void exchange_tee_end(struct exchange *x)
{
    struct tee *t = x->tee;
    struct stats *s = x->worker->stats;
    if (t == NULL)
        return;
    if (t->part != NULL) {
        const struct content_range *stored = &cache_object_facts(t->part)->part;
        append_stored(t, t->behind, length_of(stored));
    }
    if (is_ended(t) || is_surpassed(x)) {
        exchange_tee_drop(x);
        return;
    }
    bool is_stored = cache_fill_seal(t->fill);
    bool failed = cache_fill_state(t->fill) == FILL_FAILED;
    count_end(x, is_stored ? &s->fill_stored : failed ? &s->fill_failed : &s->fill_outrun);
    stat_add(&s->parts_stored, is_stored && t->is_part);
    stat_add(&s->parts_joined, is_stored && t->part != NULL);
    end(x);
}
