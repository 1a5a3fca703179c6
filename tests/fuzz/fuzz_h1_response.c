/* tests/fuzz/fuzz_h1_response.c: any bytes as a response head, to GET, HEAD and CONNECT. The
 * properties are those of fuzz_h1_request.c. */
#include "tests/fuzz/fuzz_h1.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct reading {
    struct header fields[FUZZ_FIELDS];
    struct h1_response response;
    enum h1_result result;
    enum h1_cause cause;
};

static void read_head(struct reading *x, struct slice bytes, enum h1_method method,
                      const struct h1_limits *limits)
{
    headers_init(&x->response.headers, x->fields, FUZZ_FIELDS);
    x->result = h1_read_response(&x->response, bytes, method, limits, &x->cause);
    CHECK((x->result == H1_BAD) == (x->cause != H1_OK));
}

static void check_good(const struct h1_response *r, struct slice bytes, enum h1_method method)
{
    struct slice head = { bytes.ptr, r->head_bytes };
    const struct headers *h = &r->headers;
    bool has_length = headers_has(h, HEADER_CONTENT_LENGTH),
         has_coding = headers_has(h, HEADER_TRANSFER_ENCODING);
    CHECK(r->head_bytes <= bytes.len && r->status >= 100 && r->status <= 999 && r->minor <= 1);
    fuzz_check_within(r->reason, head);
    fuzz_check_head(head, h);
    bool bodiless = r->status < 200 || r->status == 204 || r->status == 304 ||
                    method == METHOD_HEAD || (method == METHOD_CONNECT && r->status < 300);
    CHECK((r->framing == FRAMING_NONE) == bodiless);
    CHECK(bodiless ||
          (r->framing == FRAMING_CHUNKED) == (has_coding && !has_length && r->minor == 1));
    CHECK(bodiless || (r->framing == FRAMING_LENGTH) == (has_length && !has_coding));
    CHECK(r->framing != FRAMING_CLOSE || !r->keeps_alive);
    CHECK(r->framing == FRAMING_LENGTH || r->length == 0);
}

static void check_agree(const struct reading *a, const struct reading *b)
{
    CHECK(a->result == b->result && a->cause == b->cause);
    CHECK(a->result != H1_DONE ||
          (a->response.head_bytes == b->response.head_bytes &&
           a->response.status == b->response.status && a->response.framing == b->response.framing &&
           a->response.length == b->response.length &&
           a->response.keeps_alive == b->response.keeps_alive));
}

static void check_lengths(const uint8_t *bytes, size_t len, enum h1_method method,
                          const struct h1_limits *limits, const struct reading *whole)
{
    static struct reading dripping, fresh;
    dripping.response.scanned = 0;
    for (size_t n = 0; n <= len; n = fuzz_next_length(n, len)) {
        char *copy = fuzz_copy(bytes, n);
        read_head(&dripping, (struct slice){ copy, n }, method, limits);
        fresh.response.scanned = 0;
        read_head(&fresh, (struct slice){ copy, n }, method, limits);
        check_agree(&dripping, &fresh);
        free(copy);
        if (dripping.result != H1_MORE)
            break;
    }
    check_agree(&dripping, whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const enum h1_method methods[] = { METHOD_GET, METHOD_HEAD, METHOD_CONNECT };
    static struct reading whole;
    for (size_t i = 0; i < ARRAY_COUNT(methods); i++) {
        const struct h1_limits *limits = &fuzz_limits[i % ARRAY_COUNT(fuzz_limits)];
        char *copy = fuzz_copy(bytes, len);
        struct slice input = { copy, len };
        whole.response.scanned = 0;
        read_head(&whole, input, methods[i], limits);
        if (whole.result == H1_DONE)
            check_good(&whole.response, input, methods[i]);
        check_lengths(bytes, len, methods[i], limits, &whole);
        free(copy);
    }
    return 0;
}
