/* cache/glob.c: the patterns of purges: '*' is anything but '/', '**' is anything, '\' takes the
 * next character as it is, everything else stands for itself.
 *
 * A pattern is read once into a row of bytes and stars. Matching follows all ways through it at
 * once, a bit for each place in the row where a way has got to: the cost is bounded by text times
 * pattern whatever they are, where going back and trying again would not be (patterns are an
 * operator's, but what they are held against comes from clients).
 *
 * Pure; any thread.
 */
#include "cache/cache_internal.h"

enum {
    STAR = 256,  /* anything but '/' */
    STARS = 257, /* anything */
    WORD_BITS = 64,
    WORDS = (GLOB_MAX + WORD_BITS) / WORD_BITS + 1, /* places 0 .. GLOB_MAX */
};

/* ---- reading --------------------------------------------------------------------------------- */

static const char *read_star(struct slice pattern, size_t *i, uint16_t *token)
{
    size_t n = 1;
    while (*i + n < pattern.len && pattern.ptr[*i + n] == '*')
        n++;
    if (n > 2)
        return "three stars in a row: '*' is anything but '/', '**' is anything";
    *token = n == 2 ? STARS : STAR;
    *i += n;
    return NULL;
}

static const char *read_token(struct slice pattern, size_t *i, uint16_t *token)
{
    unsigned char c = (unsigned char)pattern.ptr[*i];
    if (c == '*')
        return read_star(pattern, i, token);
    if (c == '\\') {
        if (*i + 1 == pattern.len)
            return "a backslash at the end: it takes the next character as it is";
        c = (unsigned char)pattern.ptr[++*i];
    }
    if (c < ' ' || c == 127)
        return "a control character is in it";
    *token = c;
    ++*i;
    return NULL;
}

bool glob_read(struct slice pattern, struct glob *out, const char **why)
{
    bool has_path = false;
    out->count = 0;
    *why = NULL;
    if (pattern.len == 0)
        *why = "the pattern is empty";
    else if (pattern.len > GLOB_MAX)
        *why = "the pattern is longer than 1024 bytes";
    else if (slice_has_prefix_nocase(pattern, SLICE("http://")) ||
             slice_has_prefix_nocase(pattern, SLICE("https://")))
        *why = "a pattern begins with the host, without http://";
    for (size_t i = 0; *why == NULL && i < pattern.len;) {
        uint16_t *token = &out->at[out->count++];
        *why = read_token(pattern, &i, token);
        has_path |= *why == NULL && (*token == '/' || *token == STARS);
    }
    if (*why == NULL && !has_path)
        *why = "a pattern is for host and path, www.example.com/static/**: this one has no '/'";
    return *why == NULL;
}

size_t glob_literal(const struct glob *g, char *out)
{
    size_t n = 0;
    while (n < g->count && g->at[n] < STAR) {
        out[n] = (char)g->at[n];
        n++;
    }
    return n;
}

/* ---- matching -------------------------------------------------------------------------------- */

static void add_place(const struct glob *g, uint64_t *places, unsigned at)
{
    for (;; at++) { /* a star may be nothing at all */
        places[at / WORD_BITS] |= 1ull << at % WORD_BITS;
        if (at == g->count || g->at[at] < STAR)
            return;
    }
}

static void step_place(const struct glob *g, uint64_t *next, unsigned at, unsigned char c)
{
    if (at == g->count)
        return;
    uint16_t token = g->at[at];
    if (token == STARS || (token == STAR && c != '/'))
        add_place(g, next, at);
    else if (token == c)
        add_place(g, next, at + 1);
}

bool glob_matches_from(const struct glob *g, unsigned from, struct slice text)
{
    uint64_t rows[2][WORDS] = { { 0 } };
    unsigned words = g->count / WORD_BITS + 1;
    uint64_t *now = rows[0], *next = rows[1];
    add_place(g, now, from);
    for (size_t i = 0; i < text.len; i++) {
        uint64_t any = 0;
        memset(next, 0, words * sizeof *next);
        for (unsigned w = 0; w < words; w++)
            for (uint64_t left = now[w]; left != 0; left &= left - 1)
                step_place(g, next, w * WORD_BITS + (unsigned)__builtin_ctzll(left),
                           (unsigned char)text.ptr[i]);
        for (unsigned w = 0; w < words; w++)
            any |= next[w];
        if (any == 0)
            return false;
        uint64_t *was = now;
        now = next;
        next = was;
    }
    return (now[g->count / WORD_BITS] >> g->count % WORD_BITS & 1) != 0;
}

bool cache_glob_check(struct slice pattern, const char **why)
{
    struct glob g;
    return glob_read(pattern, &g, why);
}

bool cache_glob_matches(struct slice pattern, struct slice text)
{
    struct glob g;
    const char *why;
    return glob_read(pattern, &g, &why) && glob_matches_from(&g, 0, text);
}
