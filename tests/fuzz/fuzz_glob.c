/* Patterns of purges: the bytes before the first NUL are a pattern, the rest is what it is held
 * against. */
#include "cache/cache_internal.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* By definition; takes for ever on long ones. */
static bool plainly(const struct glob *g, unsigned i, struct slice text)
{
    enum { STAR = 256, STARS = 257 };
    if (i == g->count)
        return text.len == 0;
    if (g->at[i] < STAR)
        return text.len > 0 && (unsigned char)text.ptr[0] == g->at[i] &&
               plainly(g, i + 1, (struct slice){ text.ptr + 1, text.len - 1 });
    if (plainly(g, i + 1, text))
        return true;
    return text.len > 0 && (g->at[i] == STARS || text.ptr[0] != '/') &&
           plainly(g, i, (struct slice){ text.ptr + 1, text.len - 1 });
}

static void check_literal(const struct glob *g, struct slice text, bool matches)
{
    char literal[GLOB_MAX];
    size_t length = glob_literal(g, literal);
    CHECK(length <= g->count);
    bool begins = slice_has_prefix(text, (struct slice){ literal, length });
    CHECK(!matches || begins);
    if (begins) {
        struct slice rest = { text.ptr + length, text.len - length };
        CHECK(glob_matches_from(g, (unsigned)length, rest) == matches);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { SHORT = 12 };
    struct slice all = { (const char *)data, size };
    struct slice pattern = { all.ptr, slice_find(all, '\0') };
    size_t from = pattern.len < size ? pattern.len + 1 : size;
    struct slice text = { all.ptr + from, size - from };
    struct glob g;
    const char *why = NULL;
    bool is_pattern = glob_read(pattern, &g, &why);
    CHECK(is_pattern == (why == NULL) && cache_glob_check(pattern, &why) == is_pattern);
    bool matches = cache_glob_matches(pattern, text);
    CHECK(is_pattern || !matches);
    if (!is_pattern)
        return 0;
    CHECK(g.count <= pattern.len);
    check_literal(&g, text, matches);
    if (g.count <= SHORT && text.len <= SHORT)
        CHECK(plainly(&g, 0, text) == matches);
    return 0;
}
