/* proxy/status.c: Cache-Status (RFC 9211): what this cache did with the request, and why, from the
 * exchange's decision record. The words are base/verdict.h's and storable_word()'s, the same as the
 * access log's and the counters'.
 *
 *   larder; hit; ttl=31                                   a fresh object
 *   larder; hit; ttl=-4; detail=refreshing                a stale one, and why it was good enough
 *   larder; fwd=stale; fwd-status=503; detail=origin-error  a stale one, after the origin was asked
 * in vain larder; fwd=uri-miss; fwd-status=200; stored; ttl=60  fetched and kept larder; fwd=stale;
 * fwd-status=304; stored; ttl=60     the origin said that it still holds larder; fwd=uri-miss;
 * fwd-status=200; detail=private  fetched and not kept, and why
 */
#include "proxy/exchange.h"

enum { STATUS_MOST = 192 };

size_t exchange_cache_status_most(const struct exchange *x)
{
    return STATUS_MOST + (x->snapshot->config->tells_key ? 4 * x->key.bytes.len + 16 : 0);
}

static void put_ttl(struct writer *w, int64_t ttl_s)
{
    writer_put(w, SLICE("; ttl="));
    if (ttl_s < 0)
        writer_put(w, SLICE("-"));
    writer_put_number(w, (uint64_t)(ttl_s < 0 ? -ttl_s : ttl_s));
}

/* A structured string (RFC 8941 3.3.3): what it cannot hold is written as a URL would. */
static void put_key(struct writer *w, struct slice key)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t site = slice_find(key, '\0');
    writer_put(w, SLICE("; key=\""));
    for (size_t i = site + 1; i < key.len; i++) {
        unsigned char c = (unsigned char)key.ptr[i];
        char coded[3] = { '%', hex[c >> 4], hex[c & 15] };
        if (c == '\0')
            writer_put(w, SLICE(" "));
        else if (c < 0x20 || c > 0x7e)
            writer_put(w, (struct slice){ coded, 3 });
        else if (c == '"' || c == '\\')
            writer_put(w, (struct slice){ (const char[]){ '\\', (char)c }, 2 });
        else
            writer_put(w, (struct slice){ &key.ptr[i], 1 });
    }
    writer_put(w, SLICE("\""));
}

static void put_forwarded(struct writer *w, const struct exchange *x, int64_t ttl_s)
{
    const char *fwd = reason_fwd(x->looked);
    if (fwd[0] == '\0')
        fwd = reason_fwd(x->reason);
    if (fwd[0] != '\0') {
        writer_put(w, SLICE("; fwd="));
        writer_put(w, slice_of(fwd));
    }
    if (x->origin_status != 0) {
        writer_put(w, SLICE("; fwd-status="));
        writer_put_number(w, x->origin_status);
    }
    if (x->outcome == OUTCOME_COLLAPSED)
        writer_put(w, SLICE("; collapsed"));
    if (x->is_stored) {
        writer_put(w, SLICE("; stored"));
        put_ttl(w, ttl_s);
    }
}

/* What the parameters before do not say. */
static const char *detail(const struct exchange *x)
{
    switch (x->outcome) {
    case OUTCOME_HIT:
    case OUTCOME_REVALIDATED:
    case OUTCOME_MISS:
    case OUTCOME_COLLAPSED: return "";
    case OUTCOME_PASS:
    case OUTCOME_STALE:
    case OUTCOME_LOCAL:
    case OUTCOME_REFUSED:
    case OUTCOME_FAULT:
    case OUTCOME_ABORTED: return reason_word(x->reason);
    case OUTCOME_COUNT: break;
    }
    UNREACHABLE();
}

void exchange_put_cache_status(struct writer *w, const struct exchange *x, int64_t ttl_s)
{
    writer_put(w, SLICE("Cache-Status: larder"));
    bool was_forwarded = reason_fwd(x->looked)[0] != '\0'; /* RFC 9211 2.1: then it is no hit */
    if (x->outcome == OUTCOME_HIT || (x->outcome == OUTCOME_STALE && !was_forwarded)) {
        writer_put(w, SLICE("; hit"));
        put_ttl(w, ttl_s);
    } else {
        put_forwarded(w, x, ttl_s);
    }
    if (x->snapshot->config->tells_key && x->key.bytes.len > 0)
        put_key(w, x->key.bytes);
    const char *why = detail(x);
    if (why[0] != '\0') {
        writer_put(w, SLICE("; detail="));
        writer_put(w, slice_of(why));
    }
    writer_put(w, SLICE("\r\n"));
}
