/* proxy/fetch_variants.c: a request that selects none of the stored variants (Vary) offers all of them to the origin: their
 * tags go into If-None-Match, and a 304 says which of them answers this request, too (RFC 9111 4.1, 4.3.1). Its body
 * then gets a second head, for this request's selecting values; nothing is fetched twice.
 */
#include "base/clock.h"
#include "proxy/fetch_internal.h"

void fetch_offer_variants(struct fetch *f)
{
    cache_read_begin();
    f->offered_count =
        cache_find_tagged(f->worker->house->cache, &f->key, f->offered, ARRAY_COUNT(f->offered));
    cache_read_end();
    f->is_conditional = f->offered_count > 0;
}

void fetch_drop_offers(struct fetch *f)
{
    while (f->offered_count > 0)
        cache_object_unref(&f->offered[--f->offered_count]);
}

size_t fetch_offers_most(const struct fetch *f)
{
    size_t bytes = 32;
    for (unsigned i = 0; i < f->offered_count; i++)
        bytes += cache_object_facts(f->offered[i])->validators.etag.len + 2;
    return bytes;
}

void fetch_put_offers(struct writer *w, const struct fetch *f)
{
    if (f->offered_count == 0)
        return;
    writer_put(w, SLICE("If-None-Match: "));
    for (unsigned i = 0; i < f->offered_count; i++) {
        writer_put(w, i == 0 ? SLICE("") : SLICE(", "));
        writer_put(w, cache_object_facts(f->offered[i])->validators.etag);
    }
    writer_put(w, SLICE("\r\n"));
}

/* The one that a 304 is about: it has to name it (RFC 9110 15.4.5) by a strong tag, since a weak one may stand for every
 * coding of a page (nginx), and be of use to this client. */
static struct cache_object *named(const struct fetch *f)
{
    struct slice tag = headers_value(&f->response.headers, HEADER_ETAG);
    for (unsigned i = 0; i < f->offered_count; i++) {
        const struct object_facts *facts = cache_object_facts(f->offered[i]);
        if (slice_equal(facts->validators.etag, tag) &&
            cache_object_has_coding_for(facts, &f->request_headers))
            return f->offered[i];
    }
    return NULL;
}

bool fetch_adopt_variant(struct fetch *f)
{
    struct judged j = { 0 };
    struct cache_object *o = named(f);
    if (o == NULL || !fetch_judge_update(f, o, &j) || j.judgement.storable != STORABLE_YES)
        return false;
    j.facts.selecting = fetch_selecting(f, &j, j.asked.response);
    if (f->exchange != NULL) {
        f->exchange->was_revalidated = true;
        f->exchange->origin_status = 304;
        fetch_give_own_fields(f, &j);
    }
    cache_fill_adopt(f->fill, o);
    cache_fill_revalidated(f->fill, &j.facts);
    return true;
}
