/* tests/fuzz/fuzz_part.c: any bytes as Content-Range, twice, and as Range.
 *
 * Input: three values, one a line: Content-Range of one answer, of another, Range of a request.
 */
#include "cache/decide.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static struct slice next_line(struct slice *in)
{
    struct slice line = { in->ptr, slice_find(*in, '\n') };
    size_t taken = line.len < in->len ? line.len + 1 : line.len;
    in->ptr += taken;
    in->len -= taken;
    return slice_trim(line);
}

static void check_range(const struct content_range *r)
{
    CHECK(r->first <= r->last && r->last < INT64_MAX && r->complete >= -1);
    CHECK(r->complete == -1 || r->last < (uint64_t)r->complete);
}

static bool read_part(struct slice value, struct content_range *out)
{
    struct header row;
    struct headers h;
    headers_init(&h, &row, 1);
    CHECK(headers_add(&h, SLICE("Content-Range"), value));
    if (!cache_content_range_read(&h, out))
        return false;
    check_range(out);
    return true;
}

static void check_join(const struct content_range *a, const struct content_range *b)
{
    struct content_range ab, ba, again;
    bool is = cache_parts_join(a, b, &ab);
    CHECK(is == cache_parts_join(b, a, &ba));
    CHECK(cache_parts_join(a, a, &again) && again.first == a->first && again.last == a->last);
    if (!is)
        return;
    check_range(&ab);
    CHECK(ab.first == ba.first && ab.last == ba.last && ab.complete == ba.complete);
    CHECK(ab.first <= a->first && ab.first <= b->first && ab.last >= a->last && ab.last >= b->last);
    /* no byte that neither has: together they are at least as long */
    CHECK(ab.last - ab.first + 1 <= (a->last - a->first + 1) + (b->last - b->first + 1));
}

/* What is asked for is what a stored whole would be cut to. */
static void check_asked(struct slice value)
{
    static const int64_t lengths[] = { -1, 0, 1, 10, 5000000, INT64_MAX - 1 };
    struct header row;
    struct headers h;
    headers_init(&h, &row, 1);
    CHECK(headers_add(&h, SLICE("Range"), value));
    for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
        const struct validators none = { SLICE_NONE, -1, -1 };
        struct content_range asked;
        struct ranges cut;
        if (!cache_range_of(&h, lengths[i], &asked))
            continue;
        check_range(&asked);
        CHECK(asked.complete == lengths[i]);
        if (lengths[i] < 0)
            continue;
        CHECK(cache_ranges(&h, &none, (uint64_t)lengths[i], 0, &cut) == RANGE_PARTS);
        CHECK(cut.count == 1 && cut.at[0].first == asked.first && cut.at[0].last == asked.last);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct slice in = { (const char *)bytes, len };
    struct content_range a, b;
    bool has_a = read_part(next_line(&in), &a), has_b = read_part(next_line(&in), &b);
    if (has_a && has_b)
        check_join(&a, &b);
    check_asked(next_line(&in));
    return 0;
}
