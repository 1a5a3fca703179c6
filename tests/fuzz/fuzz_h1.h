/* tests/fuzz/fuzz_h1.h: what the two entries for HTTP/1 heads share. */
#ifndef FUZZ_H1_H
#define FUZZ_H1_H
#include "proxy/h1.h"

#include <stdlib.h>

enum { FUZZ_FIELDS = 100, FUZZ_EVERY_LENGTH_TO = 600, FUZZ_LENGTHS_BEYOND = 40 };

/* The ordinary ones, and ones that a short input reaches. */
static const struct h1_limits fuzz_limits[] = {
    { .head_bytes = 32 << 10, .target_bytes = 8 << 10, .field_count = FUZZ_FIELDS },
    { .head_bytes = 120, .target_bytes = 20, .field_count = 4 },
};

/* In an allocation of its own, so that a slice kept from an older buffer, or a byte past the end,
 * is seen. */
static inline char *fuzz_copy(const uint8_t *bytes, size_t len)
{
    char *copy = malloc(len == 0 ? 1 : len);
    CHECK(copy != NULL);
    if (len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

/* Short inputs are fed at every length, long ones in some forty steps that no line structure is in
 * time with. */
static inline size_t fuzz_next_length(size_t n, size_t len)
{
    size_t step = len <= FUZZ_EVERY_LENGTH_TO ? 1 : 1 + len / FUZZ_LENGTHS_BEYOND + n % 3;
    return n < len && len - n < step ? len : n + step;
}

static inline void fuzz_check_within(struct slice s, struct slice head)
{
    CHECK(s.len == 0 || (s.ptr >= head.ptr && s.ptr + s.len <= head.ptr + head.len));
}

/* What every accepted head is, by a second and simpler reading: lines that end in CRLF, no stray
 * CR, LF or NUL, one colon at least in each field line, no white space around the name, and nothing
 * but the last line empty after the first. */
static inline void fuzz_check_head(struct slice head, const struct headers *h)
{
    unsigned lines = 0;
    while (head.len > 0) {
        size_t cr = slice_find(head, '\r');
        CHECK(cr + 1 < head.len && head.ptr[cr + 1] == '\n');
        struct slice line = { head.ptr, cr };
        CHECK(slice_find(line, '\n') == cr && slice_find(line, '\0') == cr);
        bool is_start = lines == 0;
        if (cr > 0)
            lines++;
        head.ptr += cr + 2;
        head.len -= cr + 2;
        CHECK(cr > 0 || is_start || head.len == 0);
        if (cr == 0 || is_start)
            continue;
        size_t colon = slice_find(line, ':');
        CHECK(colon > 0 && colon < line.len &&
              slice_trim((struct slice){ line.ptr, colon }).len == colon);
        struct slice value = slice_trim(slice_from(line.ptr + colon + 1, line.ptr + line.len));
        const struct header *f = &h->at[lines - 2];
        CHECK(lines - 2 < h->count && slice_equal(f->name, (struct slice){ line.ptr, colon }));
        CHECK(slice_equal(f->value, value) && f->id == header_id_of(f->name));
    }
    CHECK(lines == h->count + 1u);
}
#endif
