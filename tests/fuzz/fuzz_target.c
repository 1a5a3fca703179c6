/* tests/fuzz/fuzz_target.c: any bytes as a reference, against a request's URL.
 *
 * Input: the base's path and query as a request's target, a line end, the reference.
 */
#include "cache/decide.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static bool has_any(struct slice s, const char *bytes)
{
    for (size_t i = 0; i < s.len; i++)
        if (strchr(bytes, s.ptr[i]) != NULL)
            return true;
    return false;
}

static bool has_dot_segment(struct slice path)
{
    while (path.len > 0) {
        struct slice segment = { path.ptr + 1, path.len - 1 };
        segment.len = slice_find(segment, '/');
        if (slice_equal(segment, SLICE(".")) || slice_equal(segment, SLICE("..")))
            return true;
        path.ptr += segment.len + 1;
        path.len -= segment.len + 1;
    }
    return false;
}

/* The result, written out with scheme and host, resolves to itself; with another's, to nothing. */
static void check_again(struct arena *a, const struct target_base *base, struct slice path,
                        struct slice query)
{
    static const struct {
        const char *origin;
        bool is_same;
    } origins[] = { { "http://h:81", true },   { "//H.:81", true },      { "https://h:81", false },
                    { "http://h", false },     { "http://g:81", false }, { "http://h:810", false },
                    { "http://u@h:81", false } };
    for (size_t i = 0; i < ARRAY_COUNT(origins); i++) {
        struct slice again, again_query;
        struct slice url = arena_printf(a, "%s" SLICE_FMT "%s" SLICE_FMT, origins[i].origin,
                                        SLICE_ARG(path), query.ptr == NULL ? "" : "?",
                                        (int)query.len, query.ptr == NULL ? "" : query.ptr);
        CHECK(cache_target_resolve(a, base, url, &again, &again_query) == origins[i].is_same);
        if (origins[i].is_same)
            CHECK(slice_equal(again, path) && slice_equal(again_query, query) &&
                  (again_query.ptr == NULL) == (query.ptr == NULL));
    }
}

static void check(const struct target_base *base, struct slice reference)
{
    struct arena a;
    struct slice path, query;
    arena_init(&a);
    if (cache_target_resolve(&a, base, reference, &path, &query)) {
        CHECK(path.len > 0 && path.ptr[0] == '/' && !has_any(path, "?# \r\n"));
        CHECK(!has_any(query, "# \r\n"));
        CHECK(path.len <= base->path.len + reference.len + 1);
        bool is_base =
            path.ptr == base->path.ptr; /* kept as it is, dots and all (RFC 3986 5.2.2) */
        CHECK(is_base || !has_dot_segment(path));
        if (!has_dot_segment(path))
            check_again(&a, base, path, query);
    }
    arena_fini(&a);
}

/* As the reader of requests does: '/' first, and VCHAR without '#'. */
static bool is_target(struct slice s)
{
    if (s.len == 0 || s.ptr[0] != '/')
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= 0x20 || s.ptr[i] >= 0x7f || s.ptr[i] == '#')
            return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct slice in = { (const char *)bytes, len };
    struct slice target = { in.ptr, slice_find(in, '\n') };
    if (target.len == in.len || !is_target(target))
        return 0;
    struct slice reference = { target.ptr + target.len + 1, in.len - target.len - 1 };
    size_t mark = slice_find(target, '?');
    struct target_base base = { SLICE("http"), SLICE("h"), 81, { target.ptr, mark }, { NULL, 0 } };
    if (mark < target.len)
        base.query = (struct slice){ target.ptr + mark + 1, target.len - mark - 1 };
    check(&base, reference);
    return 0;
}
