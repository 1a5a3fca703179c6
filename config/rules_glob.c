/* config/rules_glob.c: patterns with '*': compiled once, matched on the hit
 * path against what clients send; see rules_internal.h. Pure; any thread.
 *
 * Most patterns are text, or text with one '*': those are compared in place.
 * The rest is tried the usual way, going back to the last '*' (or the last that
 * may cross a '/') when what follows does not fit. Patterns exist for which
 * that takes the square of the text's length, so the steps are counted, and
 * when they run out all positions of the pattern are carried along side by
 * side: their number times the length of the text, whatever either holds.
 */
#include "config/rules_internal.h"

/* ---- compiling ------------------------------------------------------------------------------- */

struct building {
    uint16_t tokens[3 * GLOB_MAX_BYTES];
    size_t count;
};

static void add(struct building *b, uint16_t token)
{
    if (token == GLOB_ANY || token == GLOB_STAR) {
        uint16_t *last = b->count == 0 ? NULL : &b->tokens[b->count - 1];
        if (last != NULL && (*last == GLOB_STAR || *last == GLOB_ANY)) {
            *last = *last > token ? *last : token; /* "***" is "**" */
            return;
        }
    }
    b->tokens[b->count++] = token;
}

static int hex_of(char c)
{
    char low = ascii_lower(c);
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/* A literal of a path goes in as rule_path_init() would write it. `*at` is
 * behind it afterwards. */
static void add_path_literal(struct building *b, struct slice text, size_t *at)
{
    static const char digits[] = "0123456789ABCDEF";
    unsigned char c = (unsigned char)text.ptr[(*at)++];
    bool is_escape = c == '%' && *at + 1 < text.len && hex_of(text.ptr[*at]) >= 0 &&
                     hex_of(text.ptr[*at + 1]) >= 0;
    if (is_escape) {
        c = (unsigned char)(hex_of(text.ptr[*at]) << 4 | hex_of(text.ptr[*at + 1]));
        *at += 2;
    }
    if (rule_path_is_plain((char)c) || (c == '/' && !is_escape)) {
        add(b, c);
        return;
    }
    add(b, '%');
    add(b, (unsigned char)digits[c >> 4]);
    add(b, (unsigned char)digits[c & 15]);
}

/* "[0-9]": other programs' globs have classes; here it would be looked for as
 * it stands. */
static bool has_class(struct slice text)
{
    for (size_t i = 0; i + 4 < text.len; i++)
        if (text.ptr[i] == '[' && text.ptr[i + 2] == '-' && text.ptr[i + 4] == ']' &&
            (i == 0 || text.ptr[i - 1] != '\\'))
            return true;
    return false;
}

static bool tokenise(struct slice text, const struct glob_options *options, struct building *b)
{
    for (size_t i = 0; i < text.len;) {
        char c = text.ptr[i];
        if (c == '*') {
            bool is_double = i + 1 < text.len && text.ptr[i + 1] == '*';
            bool crosses = is_double || options->kind == GLOB_VALUE;
            add(b, crosses ? GLOB_ANY : GLOB_STAR);
            i += is_double ? 2 : 1;
            continue;
        }
        if (c == '\\' && ++i == text.len)
            return false;
        if (options->kind == GLOB_PATH)
            add_path_literal(b, text, &i);
        else
            add(b, (unsigned char)text.ptr[i++]);
    }
    return true;
}

static bool is_wild(uint16_t token)
{
    return token >= GLOB_STAR;
}

static struct slice literal(struct arena *a, const struct building *b, size_t from, size_t to)
{
    char *text = arena_alloc(a, to - from + 1);
    for (size_t i = from; i < to; i++)
        text[i - from] = (char)b->tokens[i];
    return (struct slice){ text, to - from };
}

/* "*text*" is most of what is not simpler. */
static struct slice needle_of(struct arena *a, const struct building *b, size_t first, size_t end)
{
    if (end - first < 3 || b->tokens[first] != GLOB_ANY || b->tokens[end - 1] != GLOB_ANY)
        return SLICE_NONE;
    for (size_t i = first + 1; i + 1 < end; i++)
        if (is_wild(b->tokens[i]))
            return SLICE_NONE;
    return literal(a, b, first + 1, end - 1);
}

bool rule_glob_compile(struct arena *a, struct slice text, const struct glob_options *options,
                       struct rule_glob *out, const char **why)
{
    struct building b;
    b.count = 0;
    *why = "is longer than 512 bytes";
    if (text.len > GLOB_MAX_BYTES)
        return false;
    *why = "looks like it has a class of characters, which patterns do not have; "
           "use a regular "
           "expression, or write \\[ for a bracket";
    if (has_class(text))
        return false;
    *why = "ends in a \\, which takes the next character as it is";
    if (!tokenise(text, options, &b))
        return false;
    for (size_t i = 0; i < b.count && options->folds; i++)
        if (!is_wild(b.tokens[i]))
            b.tokens[i] = (unsigned char)ascii_lower((char)b.tokens[i]);
    size_t first = 0, end = b.count;
    while (first < b.count && !is_wild(b.tokens[first]))
        first++;
    while (end > first && !is_wild(b.tokens[end - 1]))
        end--;
    uint16_t *middle = arena_alloc(a, (end - first) * sizeof *middle);
    memcpy(middle, b.tokens + first, (end - first) * sizeof *middle);
    *out = (struct rule_glob){ .prefix = literal(a, &b, 0, first),
                               .suffix = literal(a, &b, end, b.count),
                               .needle = needle_of(a, &b, first, end),
                               .middle = middle,
                               .middle_count = (uint16_t)(end - first),
                               .folds = options->folds };
    return true;
}

/* ---- matching -------------------------------------------------------------------------------- */

static inline char fold(const struct rule_glob *g, char c)
{
    return g->folds ? ascii_lower(c) : c;
}

static bool equals_at(const struct rule_glob *g, const char *text, struct slice literal)
{
    if (!g->folds)
        return memcmp(text, literal.ptr, literal.len) == 0;
    for (size_t i = 0; i < literal.len; i++)
        if (ascii_lower(text[i]) != literal.ptr[i])
            return false;
    return true;
}

/* All positions side by side: position p is reached when the tokens before it
 * fit what was read. */
static bool match_side_by_side(const struct rule_glob *g, struct slice text)
{
    bool reached[3 * GLOB_MAX_BYTES + 1] = { true };
    size_t count = g->middle_count;
    for (size_t p = 0; p < count && is_wild(g->middle[p]); p++)
        reached[p + 1] = true;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)fold(g, text.ptr[i]);
        bool before = reached[0]; /* reached[p - 1] as it was before this character */
        reached[0] = false;
        for (size_t p = 0; p < count; p++) {
            uint16_t token = g->middle[p];
            bool here = before; /* position p, before this character */
            before = reached[p + 1];
            bool stays = is_wild(token) && (token == GLOB_ANY || c != '/');
            if (is_wild(token)) { /* p: in front of the star; what it takes leaves p
                                     reached */
                reached[p] = reached[p] || (here && stays);
                reached[p + 1] = reached[p];
            } else
                reached[p + 1] = here && token == c;
        }
    }
    return reached[count];
}

static bool match_middle(const struct rule_glob *g, struct slice text)
{
    size_t steps = 16 * (text.len + g->middle_count) + 256;
    size_t at = 0, p = 0, count = g->middle_count;
    size_t star_p = SIZE_MAX, star_at = 0, any_p = SIZE_MAX, any_at = 0; /* where to go back to */
    while (at < text.len || p < count) {
        if (steps-- == 0)
            return match_side_by_side(g, text);
        if (p < count && g->middle[p] == GLOB_ANY) {
            any_p = ++p;
            any_at = at;
            star_p = SIZE_MAX;
            if (p == count)
                return true;
            continue;
        }
        if (p < count && g->middle[p] == GLOB_STAR) {
            star_p = ++p;
            star_at = at;
            continue;
        }
        if (p < count && at < text.len && g->middle[p] == (unsigned char)fold(g, text.ptr[at])) {
            p++;
            at++;
            continue;
        }
        if (star_p != SIZE_MAX && star_at < text.len && text.ptr[star_at] != '/') {
            at = ++star_at;
            p = star_p;
        } else if (any_p != SIZE_MAX && any_at < text.len) {
            at = ++any_at;
            p = any_p;
            star_p = SIZE_MAX;
        } else
            return false;
    }
    return true;
}

bool rule_glob_matches(const struct rule_glob *g, struct slice text)
{
    if (text.ptr == NULL)
        text = SLICE("");
    if (g->middle_count == 0)
        return text.len == g->prefix.len && equals_at(g, text.ptr, g->prefix);
    if (text.len < g->prefix.len + g->suffix.len || !equals_at(g, text.ptr, g->prefix) ||
        !equals_at(g, text.ptr + text.len - g->suffix.len, g->suffix))
        return false;
    struct slice rest = { text.ptr + g->prefix.len, text.len - g->prefix.len - g->suffix.len };
    if (g->middle_count == 1)
        return g->middle[0] == GLOB_ANY || slice_find(rest, '/') == rest.len;
    if (g->needle.len > 0 && !g->folds)
        return memmem(rest.ptr, rest.len, g->needle.ptr, g->needle.len) != NULL;
    return match_middle(g, rest);
}
