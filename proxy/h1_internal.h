/* proxy/h1_internal.h: what the files of the HTTP/1 reader share: classes of bytes and the meaning
 * of fields. Nobody else includes this. Pure, any thread.
 */
#ifndef PROXY_H1_INTERNAL_H
#define PROXY_H1_INTERNAL_H
#include "proxy/h1.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Classes of bytes, one table look-up each. */
enum {
    BYTE_TOKEN = 1,  /* tchar, RFC 9110 5.6.2 */
    BYTE_VALUE = 2,  /* HTAB, SP, VCHAR, obs-text: RFC 9110 5.5 */
    BYTE_TARGET = 4, /* VCHAR without '#': a fragment is never sent (RFC 9112 3.2) */
    BYTE_HOST = 8,   /* reg-name (RFC 3986 3.2.2) without ',' and '%': see h1_authority_split() */
    BYTE_EXTENSION = 16 /* of a chunk: SP, VCHAR, obs-text; no control byte at all */
};
extern const uint8_t h1_bytes[256];

static inline bool byte_is(char c, unsigned class)
{
    return (h1_bytes[(unsigned char)c] & class) != 0;
}

static inline bool byte_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline const char *skip_class(const char *p, const char *end, unsigned class)
{
    while (p < end && byte_is(*p, class))
        p++;
    return p;
}

/* The first byte at or after `p` that may not stand in a field value, or `end`. Values are most of
 * a head: sixteen at a time where the machine can (x86-64 always can), which is twice as fast as
 * the table on a browser's head. */
static inline const char *skip_value(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i last_control = _mm_set1_epi8(0x1f), tab = _mm_set1_epi8('\t'),
                  del = _mm_set1_epi8(0x7f);
    while (end - p >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes);
        __m128i wrong = _mm_or_si128(_mm_andnot_si128(_mm_cmpeq_epi8(bytes, tab), control),
                                     _mm_cmpeq_epi8(bytes, del));
        unsigned mask = (unsigned)_mm_movemask_epi8(wrong);
        if (mask != 0)
            return p + __builtin_ctz(mask);
        p += 16;
    }
#endif
    return skip_class(p, end, BYTE_VALUE);
}

/* An authority without userinfo in its parts. `host` keeps the brackets of an IPv6 address. */
struct authority {
    struct slice host;
    uint16_t port;
    bool has_port;
};
/* False when malformed or empty. A host that this takes is one that h1_canonical_host() takes. */
must_check bool h1_authority_split(struct slice text, struct authority *a);

/* Method, target and version are in `r`: sets form, scheme, authority (not from Host), path and
 * query (RFC 9112 3.2). False: TARGET. */
must_check bool h1_target_split(struct h1_request *r);

/* What the fields of a whole head say about framing and the connection. H1_OK or why the message is
 * refused. */
enum h1_cause h1_request_settle(struct h1_request *r);
enum h1_cause h1_response_settle(struct h1_response *r, enum h1_method request_method);
#endif
