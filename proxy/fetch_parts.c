/* proxy/fetch_parts.c: fills that ask for less than the whole.
 *
 *   the rest   of what is stored from its beginning on (RFC 9111 3.4): `Range: bytes=N-` with
 * If-Range. 206 that fits: the whole is what is stored and what comes. 200: another version, or a
 * server without ranges, is the whole itself. Anything else about ranges: the whole is asked for,
 * on a new connection. a slice    of a large file, bound to the version of its record (slices.c).
 * What is not of that version, or not what was asked for, fails the fill, and says why. a record in
 * the place of a whole that is too large to be fetched for a part, or to be stored at all: its head
 * is kept without a byte of its body, and slices are fetched from then on.
 */
#include "proxy/fetch_internal.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- bytes that are stored ------------------------------------------------------------------- */

uint64_t fetch_append_stored(struct cache_fill *fill, const struct cache_object *o, uint64_t from,
                             uint64_t to, bool *pauses)
{
    enum { PIECE_MAX = 256 << 10 };
    struct object_piece p = cache_object_piece(o, from);
    size_t length = p.length < to - from ? p.length : (size_t)(to - from);
    if (length > PIECE_MAX)
        length = PIECE_MAX;
    char *read = NULL;
    if (length > 0 && p.mem == NULL) {
        read = xmalloc(length);
        if (pread(p.fd, read, length, (off_t)p.at) != (ssize_t)length)
            length = 0;
    }
    if (length == 0) /* it is not there, or the machine does not give it */
        cache_fill_fail(fill, REASON_ORIGIN_CUT);
    else
        *pauses = cache_fill_append(fill, (struct slice){ read != NULL ? read : p.mem, length }) ==
                  FILL_PAUSE;
    free(read);
    return length;
}

static uint64_t object_max(const struct config *c)
{
    return c->object_max_bytes > 0 ? c->object_max_bytes : c->memory_bytes / 8;
}

uint64_t fetch_object_max(const struct fetch *f)
{
    return object_max(f->snapshot->config);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* Whether the whole can be had by asking for the rest of what is stored. */
static bool may_ask_rest(const struct exchange *x)
{
    if (x->stale == NULL || cache_object_state(x->stale) != OBJECT_COMPLETE)
        return false;
    const struct object_facts *o = cache_object_facts(x->stale);
    if (o->status != 206 || cache_facts_are_sliced(o) || o->part.first != 0)
        return false;
    const struct config *c = x->snapshot->config;
    uint64_t most =
        headers_has(&x->request.headers, HEADER_RANGE) ? c->range_whole_bytes : object_max(c);
    return o->part.complete <= (int64_t)most &&
           cache_validators_strongly_equal(&o->validators, &o->validators);
}

void fetch_ask_rest(struct fetch *f, const struct exchange *x)
{
    if (!may_ask_rest(x))
        return;
    f->asks = ASKS_REST;
    f->base = cache_object_ref(x->stale);
    f->range = (struct byte_range){ cache_object_facts(x->stale)->part.last + 1, UINT64_MAX };
}

static bool is_framed_as(const struct h1_response *r, uint64_t length)
{
    return r->framing != FRAMING_LENGTH || r->length == length;
}

/* The rest is there. False: it is not what was asked for, or the two together may not be stored. */
static bool judge_rest(struct fetch *f, struct judged *j)
{
    const struct h1_response *r = &f->response;
    const struct object_facts *stored = cache_object_facts(f->base);
    struct content_range its, both;
    if (!cache_content_range_read(&r->headers, &its) || its.first != f->range.first ||
        its.complete < 0 || its.last + 1 != (uint64_t)its.complete ||
        !cache_parts_join(&stored->part, &its, &both) ||
        !is_framed_as(r, its.last - its.first + 1) || (uint64_t)its.complete > fetch_object_max(f))
        return false;
    if (fetch_judge(f, j) != STORABLE_YES ||
        !cache_validators_strongly_equal(&stored->validators, &j->facts.validators) ||
        !slice_equal(stored->selecting, j->facts.selecting))
        return false;
    if (!fetch_judge_update(f, f->base, j) || j->judgement.storable != STORABLE_YES)
        return false;
    struct slice fields = answer_without_status_line(j->facts.head);
    j->facts.head = arena_printf(&f->arena, "HTTP/1.1 200 OK\r\n" SLICE_FMT, SLICE_ARG(fields));
    j->facts.status = 200;
    j->facts.part = (struct content_range){ 0 };
    j->facts.length_bytes = its.complete;
    return true;
}

enum rest fetch_judge_rest(struct fetch *f, struct judged *j)
{
    uint16_t status = f->response.status;
    if (status == 206 && judge_rest(f, j)) {
        f->base_bytes = f->range.first;
        return REST_FITS;
    }
    f->asks = ASKS_WHOLE;
    *j = (struct judged){ 0 };
    return status == 206 || status == 416 ? REST_OF_NO_USE : REST_IS_WHOLE;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static bool is_strong(const struct validators *v)
{
    return cache_validators_strongly_equal(v, v);
}

/* Whether it is the version that the record tells of. */
static bool is_of_record(const struct fetch *f)
{
    struct validators its;
    cache_validators_read(&f->response.headers, f->sent_wall_s, &its);
    return cache_validators_strongly_equal(&cache_object_facts(f->base)->validators, &its);
}

static bool is_slice(const struct fetch *f, const struct content_range *its)
{
    return its->first == f->range.first && its->last == f->range.last &&
           its->complete == cache_object_facts(f->base)->part.complete &&
           is_framed_as(&f->response, its->last - its->first + 1);
}

/* The record speaks for how long: a slice that says less (RFC 9110 15.3.7 lets it, after If-Range)
 * is no worse. */
static bool may_be_stored(enum storable why)
{
    return why == STORABLE_YES || why == STORABLE_NO_LIFETIME;
}

enum reason fetch_judge_slice(struct fetch *f, struct judged *j)
{
    struct content_range its;
    uint16_t status = f->response.status;
    if (cache_status_is_error(status))
        return REASON_ORIGIN_ERROR;
    if (status == 200 && is_of_record(f))
        return REASON_RANGE; /* it does not do ranges */
    if (status != 206 || !is_of_record(f))
        return REASON_ORIGIN_CHANGED;
    if (!cache_content_range_read(&f->response.headers, &its) || !is_slice(f, &its))
        return REASON_RANGE;
    enum storable why = fetch_judge(f, j);
    if (!may_be_stored(why))
        return REASON_RANGE;
    if (why != STORABLE_YES)
        fetch_judge_facts(f, j);
    if (j->facts.tags.len == 0)
        j->facts.tags = cache_object_facts(f->base)->tags;
    j->facts.part = its;
    j->facts.length_bytes = (int64_t)(its.last - its.first + 1);
    stat_add(&f->worker->stats->slices_fetched, 1);
    return REASON_ANSWERED;
}

/* ---- records --------------------------------------------------------------------------------- */

static bool asks_for_part(const struct fetch *f)
{
    return headers_has(&f->request_headers, HEADER_RANGE);
}

bool fetch_is_too_large(const struct fetch *f)
{
    const struct config *c = f->snapshot->config;
    return f->response.status == 200 && f->response.framing == FRAMING_LENGTH &&
           f->response.length > c->range_whole_bytes && f->exchange != NULL && asks_for_part(f);
}

bool fetch_can_slice(const struct fetch *f)
{
    const struct config *c = f->snapshot->config;
    const struct h1_response *r = &f->response;
    struct validators its;
    cache_validators_read(&r->headers, f->sent_wall_s, &its);
    return r->status == 200 && r->framing == FRAMING_LENGTH && c->slice_bytes > 0 &&
           c->slice_bytes <= fetch_object_max(f) && r->length > c->slice_bytes && is_strong(&its) &&
           !headers_has_token(&r->headers, HEADER_ACCEPT_RANGES, SLICE("none"));
}

bool fetch_wants_slices(const struct fetch *f, const struct cache_object *stale)
{
    const struct config *c = f->snapshot->config;
    uint64_t length = f->response.length, most = fetch_object_max(f);
    if (!fetch_can_slice(f) || (length <= c->range_whole_bytes && length <= most))
        return false;
    return asks_for_part(f) || (length > most && !exchange_slices_are_too_many(c, length)) ||
           (stale != NULL && cache_facts_are_sliced(cache_object_facts(stale)));
}

void fetch_make_record(struct fetch *f, const struct cache_object *stale, struct judged *j)
{
    if (stale != NULL && cache_facts_are_sliced(cache_object_facts(stale)) &&
        !cache_validators_strongly_equal(&cache_object_facts(stale)->validators,
                                         &j->facts.validators))
        fetch_drop_slices(f->worker, cache_object_key(stale));
    j->facts.status = 206;
    j->facts.part = (struct content_range){ 1, 0, (int64_t)f->response.length };
    j->facts.length_bytes = 0;
}

void fetch_drop_slices(struct worker *w, struct slice key)
{
    struct cache_purged purged = { 0 };
    struct slice name = SLICES_KEY;
    char *text = xmalloc(key.len + name.len);
    memcpy(text, key.ptr, key.len);
    memcpy(text + key.len, name.ptr, name.len);
    struct cache_purge p = { .what = PURGE_PREFIX,
                             .how = PURGE_HARD,
                             .text = { text, key.len + name.len } };
    cache_purge(w->house->cache, &p, 0, &purged);
    stat_add(&w->stats->slices_healed, (int64_t)purged.objects);
    free(text);
}
