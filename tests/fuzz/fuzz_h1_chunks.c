/* tests/fuzz/fuzz_h1_chunks.c: any bytes as a chunked body: whole, a byte at a time and in uneven
 * pieces give the same verdict, cause, body and end; data lies within what was fed. The first byte
 * sets the limit for trailers. */
#include "proxy/h1.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct decoded {
    enum h1_result result;
    enum h1_cause cause;
    size_t body_len, used;
    char *body;
};

static void take_data(struct decoded *d, struct slice data, struct slice fed)
{
    CHECK(data.len == 0 || (data.ptr >= fed.ptr && data.ptr + data.len <= fed.ptr + fed.len));
    if (data.len > 0)
        memcpy(d->body + d->body_len, data.ptr, data.len);
    d->body_len += data.len;
}

/* Each piece in an allocation of its own. `stride` 0 is all at once. */
static struct decoded decode(struct slice bytes, size_t stride, uint32_t trailer_max)
{
    struct h1_chunks c;
    struct decoded d = { .result = H1_MORE, .body = xmalloc(bytes.len) };
    h1_chunks_init(&c, trailer_max);
    while (d.used < bytes.len && d.result == H1_MORE) {
        size_t left = bytes.len - d.used, piece = stride == 0 ? left : 1 + d.used * 7 % stride;
        piece = piece < left ? piece : left;
        char *copy = xmalloc(piece);
        memcpy(copy, bytes.ptr + d.used, piece);
        struct slice fed = { copy, piece };
        struct slice in = fed, data;
        do {
            d.result = h1_chunks_read(&c, &in, &data, &d.cause);
            take_data(&d, data, fed);
        } while (d.result == H1_MORE && data.len > 0);
        CHECK(d.result != H1_MORE || in.len == 0);
        CHECK((d.result == H1_BAD) == (d.cause != H1_OK));
        d.used += fed.len - in.len;
        free(copy);
    }
    return d;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const size_t strides[] = { 1, 5, 64 };
    if (len == 0)
        return 0;
    struct slice input = { (const char *)bytes + 1, len - 1 };
    struct decoded whole = decode(input, 0, bytes[0]);
    for (size_t i = 0; i < ARRAY_COUNT(strides); i++) {
        struct decoded d = decode(input, strides[i], bytes[0]);
        CHECK(d.result == whole.result && d.cause == whole.cause && d.body_len == whole.body_len &&
              d.used == whole.used);
        CHECK(d.body_len == 0 || memcmp(d.body, whole.body, d.body_len) == 0);
        free(d.body);
    }
    free(whole.body);
    return 0;
}
