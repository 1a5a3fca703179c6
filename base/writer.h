/* base/writer.h: bytes put one behind the other into room that was made for them. Room that is too small is a mistake of
 * ours (CHECK): whoever makes it counts first. One thread; no allocation.
 */
#ifndef BASE_WRITER_H
#define BASE_WRITER_H
#include "base/base.h"

struct writer {
    char *at, *end;
};

static inline struct writer writer_on(char *start, size_t capacity)
{
    return (struct writer){ start, start + capacity };
}

static inline void writer_put(struct writer *w, struct slice s)
{
    CHECK((size_t)(w->end - w->at) >= s.len);
    if (s.len > 0)
        memcpy(w->at, s.ptr, s.len);
    w->at += s.len;
}

static inline void writer_put_number(struct writer *w, uint64_t n)
{
    char digits[20];
    char *at = digits + sizeof digits;
    do
        *--at = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    writer_put(w, slice_from(at, digits + sizeof digits));
}

/* "name: value CRLF" */
static inline void writer_put_field(struct writer *w, struct slice name, struct slice value)
{
    writer_put(w, name);
    writer_put(w, SLICE(": "));
    writer_put(w, value);
    writer_put(w, SLICE("\r\n"));
}
#endif
