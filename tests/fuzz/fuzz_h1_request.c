/* tests/fuzz/fuzz_h1_request.c: any bytes as a request head. At every length the dripping reader
 * and a fresh one agree, the first verdict is the whole's, slices lie within the head, and what is
 * accepted is sound by a simpler reading. */
#include "tests/fuzz/fuzz_h1.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct reading {
    struct header fields[FUZZ_FIELDS];
    struct h1_request request;
    enum h1_result result;
    enum h1_cause cause;
};

static void read_head(struct reading *x, struct slice bytes, const struct h1_limits *limits)
{
    headers_init(&x->request.headers, x->fields, FUZZ_FIELDS);
    x->result = h1_read_request(&x->request, bytes, limits, &x->cause);
    CHECK((x->result == H1_BAD) == (x->cause != H1_OK));
}

/* Exactly one reading of the body is possible, whoever reads. */
static void check_framing(const struct h1_request *r)
{
    const struct headers *h = &r->headers;
    const struct header *length = headers_find(h, HEADER_CONTENT_LENGTH);
    const struct header *coding = headers_find(h, HEADER_TRANSFER_ENCODING);
    uint64_t value;
    CHECK(length == NULL || (coding == NULL && length->next == 0));
    CHECK((r->framing == FRAMING_LENGTH) == (length != NULL));
    CHECK((r->framing == FRAMING_CHUNKED) == (coding != NULL));
    CHECK(length == NULL || (slice_to_u64(length->value, &value) && value == r->length));
    CHECK(coding == NULL || (coding->next == 0 && r->minor == 1 &&
                             slice_equal_nocase(coding->value, SLICE("chunked"))));
}

static void check_target(const struct h1_request *r, struct slice head)
{
    char host[256];
    size_t host_len;
    uint16_t port;
    fuzz_check_within(r->method_text, head);
    fuzz_check_within(r->target, head);
    fuzz_check_within(r->scheme, head);
    fuzz_check_within(r->authority, head);
    fuzz_check_within(r->query, head);
    CHECK(r->target.len > 0 && r->method_text.len > 0);
    CHECK(r->form == FORM_AUTHORITY || r->path.ptr[0] == (r->form == FORM_ASTERISK ? '*' : '/'));
    CHECK(slice_equal(r->path, SLICE("/")) || slice_equal(r->path, SLICE("*")) ||
          r->path.len <= r->target.len);
    CHECK(r->authority.len > 0 || r->minor == 0 || r->form == FORM_ASTERISK);
    CHECK(r->authority.len == 0 || h1_canonical_host(r->authority, host, &host_len, &port));
}

static void check_good(const struct h1_request *r, struct slice bytes)
{
    struct slice head = { bytes.ptr, r->head_bytes };
    CHECK(r->head_bytes <= bytes.len);
    check_target(r, head);
    check_framing(r);
    while (head.ptr[0] == '\r') { /* the empty lines before */
        head.ptr += 2;
        head.len -= 2;
    }
    fuzz_check_head(head, &r->headers);
}

static void check_agree(const struct reading *a, const struct reading *b)
{
    CHECK(a->result == b->result && a->cause == b->cause);
    CHECK(a->result != H1_DONE ||
          (a->request.head_bytes == b->request.head_bytes &&
           a->request.headers.count == b->request.headers.count &&
           a->request.framing == b->request.framing && a->request.length == b->request.length &&
           a->request.keeps_alive == b->request.keeps_alive));
}

static void check_lengths(const uint8_t *bytes, size_t len, const struct h1_limits *limits,
                          const struct reading *whole)
{
    static struct reading dripping, fresh;
    dripping.request.scanned = 0;
    for (size_t n = 0; n <= len; n = fuzz_next_length(n, len)) {
        char *copy = fuzz_copy(bytes, n);
        read_head(&dripping, (struct slice){ copy, n }, limits);
        fresh.request.scanned = 0;
        read_head(&fresh, (struct slice){ copy, n }, limits);
        check_agree(&dripping, &fresh);
        free(copy);
        if (dripping.result != H1_MORE)
            break;
    }
    check_agree(&dripping, whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct reading whole;
    for (size_t i = 0; i < ARRAY_COUNT(fuzz_limits); i++) {
        char *copy = fuzz_copy(bytes, len);
        struct slice input = { copy, len };
        whole.request.scanned = 0;
        read_head(&whole, input, &fuzz_limits[i]);
        if (whole.result == H1_DONE)
            check_good(&whole.request, input);
        check_lengths(bytes, len, &fuzz_limits[i], &whole);
        free(copy);
    }
    return 0;
}
