/* tests/fuzz/fuzz_targeted.c: any lines as targeted cache-control fields (RFC 9213) and as
 * Surrogate-Control.
 *
 * Input: the field's lines. What must then be true: several lines mean what one line of them with
 * commas between means (but that a string over two lines names no fields); nothing that was not
 * said well permits; a name that is listed is in the text.
 */
#include "cache/decide.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { LINES = 50, JOINED_MAX = 1 << 16 };
static const char *const targeted[] = { "CDN-Cache-Control", NULL };

struct list {
    struct header storage[LINES];
    struct headers headers;
};

static bool is_field_text(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (((unsigned char)s.ptr[i] < 0x20 && s.ptr[i] != '\t') || s.ptr[i] == 0x7f)
            return false;
    return true;
}

static void read_lines(struct slice in, struct slice name, struct list *l)
{
    headers_init(&l->headers, l->storage, LINES);
    while (in.len > 0) {
        size_t len = slice_find(in, '\n');
        struct slice line = slice_trim((struct slice){ in.ptr, len });
        if (is_field_text(line))
            (void)!headers_add(&l->headers, name, line);
        size_t taken = len < in.len ? len + 1 : len;
        in.ptr += taken;
        in.len -= taken;
    }
}

/* As one field; false when it is too much. */
static bool join(const struct list *l, struct slice name, char *out, struct list *one)
{
    size_t used = 0;
    for (unsigned i = 0; i < l->headers.count; i++) {
        struct slice value = l->headers.at[i].value;
        if (used + value.len + 1 > JOINED_MAX)
            return false;
        if (i > 0)
            out[used++] = ',';
        memcpy(out + used, value.ptr == NULL ? "" : value.ptr, value.len);
        used += value.len;
    }
    headers_init(&one->headers, one->storage, LINES);
    return l->headers.count == 0 ||
           headers_add(&one->headers, name, slice_trim((struct slice){ out, used }));
}

static enum control_source read(const struct list *l, struct cache_control *c)
{
    enum control_source source;
    const char *field;
    cache_control_read_response(&l->headers, targeted, c, &source, &field);
    CHECK((source == CONTROL_FROM_NOTHING) == (field == NULL));
    CHECK(c->max_age_s >= CONTROL_NONE && c->s_maxage_s >= CONTROL_NONE);
    CHECK(c->stale_while_revalidate_s >= CONTROL_NONE && c->stale_if_error_s >= CONTROL_NONE);
    return source;
}

static void check_targeted(struct slice in)
{
    static char joined[JOINED_MAX];
    struct list lines, one;
    struct cache_control a, b;
    struct slice name = slice_of(targeted[0]);
    read_lines(in, name, &lines);
    if (!join(&lines, name, joined, &one))
        return;
    enum control_source source = read(&lines, &a);
    if (source != CONTROL_FROM_TARGETED && lines.headers.count > 1 &&
        lines.headers.at[lines.headers.count - 1].value.len == 0)
        return; /* the comma before an empty line was trimmed, or was not, with the joined text */
    CHECK(source == CONTROL_FROM_TARGETED || source == CONTROL_FROM_NOTHING);
    CHECK(read(&one, &b) == source);
    if (source == CONTROL_FROM_NOTHING)
        return;
    CHECK(a.no_store == b.no_store && a.is_public == b.is_public);
    CHECK(a.max_age_s == b.max_age_s && a.s_maxage_s == b.s_maxage_s);
    CHECK(a.no_cache == b.no_cache || a.has_malformed);
    CHECK(a.is_private == b.is_private || a.has_malformed);
    CHECK(!cache_targeted_names(&lines.headers, targeted[0], SLICE("a")) || a.names_private ||
          a.names_no_cache);
    CHECK(!cache_targeted_names(&lines.headers, targeted[0], SLICE("vary")));
}

static void check_surrogate(struct slice in)
{
    struct list lines;
    struct cache_control c;
    read_lines(in, header_name(HEADER_SURROGATE_CONTROL), &lines);
    enum control_source source = read(&lines, &c);
    CHECK(source == CONTROL_FROM_SURROGATE || source == CONTROL_FROM_NOTHING);
    CHECK(!c.names_private && !c.names_no_cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct slice in = { (const char *)bytes, len };
    check_targeted(in);
    check_surrogate(in);
    return 0;
}
