/* cache/tags.c: what an answer is tagged with: Cache-Tag, Surrogate-Key, xkey, Cache-Groups (RFC
 * 9875); see decide.h. Pure but for the arena; any thread.
 *
 * Tags are compared byte by byte, case and all. The first three fields have no grammar that all who
 * send them share: a tag is what stands between separators. A tag that has a control byte is none,
 * so that the NUL behind each and the
 * '\1' of groups are ours alone. Cache-Groups has a grammar (RFC 9651), and is read to its letter:
 * a field that does not read is as if absent, all of it.
 */
#include "cache/decide.h"

/* ---- a set of tags, bounded
 * ---------------------------------------------------------------------- */

enum { SLOTS = 2 * TAGS_MAX };
static_assert(TAGS_BYTES_MAX <= UINT16_MAX, "places of tags are kept in 16 bits");

struct tags {
    size_t used, count;
    unsigned left_out;
    uint16_t slots[SLOTS]; /* 1 + place of a tag in `bytes`; 0: free */
    char bytes[TAGS_BYTES_MAX];
};

/* Not cleared as a whole: the bytes are many, and nobody reads what was not written. */
static void tags_init(struct tags *t)
{
    t->used = t->count = 0;
    t->left_out = 0;
    memset(t->slots, 0, sizeof t->slots);
}

static uint32_t hash_of(struct slice s)
{
    uint32_t hash =
        2166136261u; /* FNV-1a: a few short words, and an attacker gains 256 steps at most */
    for (size_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.ptr[i]) * 16777619u;
    return hash;
}

/* `tag` has no NUL. Half of the slots stay free, so the walk ends. */
static void tags_add(struct tags *t, struct slice tag)
{
    uint32_t slot = hash_of(tag) % SLOTS;
    for (; t->slots[slot] != 0; slot = (slot + 1) % SLOTS) {
        size_t at = t->slots[slot] - 1;
        if (tag.len < t->used - at && memcmp(t->bytes + at, tag.ptr, tag.len) == 0 &&
            t->bytes[at + tag.len] == '\0')
            return;
    }
    if (t->count == TAGS_MAX || tag.len >= sizeof t->bytes - t->used) {
        t->left_out++;
        return;
    }
    t->slots[slot] = (uint16_t)(t->used + 1);
    memcpy(t->bytes + t->used, tag.ptr, tag.len);
    t->used += tag.len;
    t->bytes[t->used++] = '\0';
    t->count++;
}

static struct slice tags_end(struct arena *a, const struct tags *t)
{
    return t->used == 0 ? SLICE_NONE : arena_copy(a, (struct slice){ t->bytes, t->used });
}

static bool has_control(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f)
            return true;
    return false;
}

/* ---- Cache-Tag, Surrogate-Key, xkey
 * -------------------------------------------------------------- */

static const struct tag_field {
    struct slice name;
    const char *separators; /* besides the white space that is trimmed */
} tag_fields[] = {
    { SLICE_INIT("Cache-Tag"), "," },       /* Akamai's and Cloudflare's: a comma list */
    { SLICE_INIT("Surrogate-Key"), " \t" }, /* Fastly's: words */
    { SLICE_INIT("xkey"), ", \t" },         /* the Varnish module's: both */
};

static const struct tag_field *tag_field_of(struct slice name)
{
    for (size_t i = 0; i < ARRAY_COUNT(tag_fields); i++)
        if (slice_equal_nocase(name, tag_fields[i].name))
            return &tag_fields[i];
    return NULL;
}

static size_t find_separator(struct slice s, const char *separators)
{
    size_t i = 0;
    while (i < s.len && (s.ptr[i] == '\0' || strchr(separators, s.ptr[i]) == NULL))
        i++;
    return i;
}

static void add_separated(struct tags *t, struct slice text, const char *separators)
{
    while (text.len > 0) {
        size_t len = find_separator(text, separators);
        struct slice tag = slice_trim((struct slice){ text.ptr, len });
        if (tag.len > 0 && !has_control(tag))
            tags_add(t, tag);
        size_t taken = len < text.len ? len + 1 : len;
        text.ptr += taken;
        text.len -= taken;
    }
}

static void add_more(struct tags *t, struct slice more)
{
    struct slice tag;
    while (cache_tags_next(&more, &tag))
        if (!has_control(tag))
            tags_add(t, tag);
}

/* ---- structured lists of strings (RFC 9651 4.2)
 * --------------------------------------------------- */

static bool take(struct slice *rest, char c)
{
    if (rest->len == 0 || rest->ptr[0] != c)
        return false;
    rest->ptr++;
    rest->len--;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_alpha(char c)
{
    return is_lower(ascii_lower(c));
}

/* Whether `c` is one of `set`, or a letter or digit. */
static bool is_word(char c, const char *set)
{
    return is_digit(c) || is_alpha(c) || (c != '\0' && strchr(set, c) != NULL);
}

static size_t word_length(struct slice s, const char *set)
{
    size_t len = 0;
    while (len < s.len && is_word(s.ptr[len], set))
        len++;
    return len;
}

static void drop(struct slice *rest, size_t bytes)
{
    rest->ptr += bytes;
    rest->len -= bytes;
}

/* 4.2.5, after the opening quote. The value, without its escapes, goes to `out` (rest->len bytes of
 * room; NULL: nobody wants it). */
static bool take_string(struct slice *rest, char *out, size_t *len)
{
    *len = 0;
    while (rest->len > 0) {
        char c = rest->ptr[0];
        drop(rest, 1);
        if (c == '"')
            return true;
        if (c == '\\') {
            if (rest->len == 0 || (rest->ptr[0] != '"' && rest->ptr[0] != '\\'))
                return false;
            c = rest->ptr[0];
            drop(rest, 1);
        } else if ((unsigned char)c < 0x20 || (unsigned char)c > 0x7e) {
            return false;
        }
        if (out != NULL)
            out[*len] = c;
        ++*len;
    }
    return false;
}

/* 4.2.4: up to 15 digits, or up to 12, a dot and 1 to 3 more. */
static bool take_number(struct slice *rest, bool *is_integer)
{
    (void)take(rest, '-');
    size_t whole = 0, part = 0;
    while (whole < rest->len && is_digit(rest->ptr[whole]))
        whole++;
    drop(rest, whole);
    *is_integer = !take(rest, '.');
    if (*is_integer)
        return whole >= 1 && whole <= 15;
    while (part < rest->len && is_digit(rest->ptr[part]))
        part++;
    drop(rest, part);
    return whole >= 1 && whole <= 12 && part >= 1 && part <= 3;
}

/* 4.2.7, after the opening colon. What is between is not decoded: nobody asks for it. */
static bool take_bytes(struct slice *rest)
{
    drop(rest, word_length(*rest, "+/="));
    return take(rest, ':');
}

static bool is_lower_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool take_hex_pair(struct slice *rest)
{
    if (rest->len < 2 || !is_lower_hex(rest->ptr[0]) || !is_lower_hex(rest->ptr[1]))
        return false;
    drop(rest, 2);
    return true;
}

/* 4.2.10, after the '%': quoted, lower-case percent-encoding for all but ASCII. That it is UTF-8 is
 * not looked at. */
static bool take_display_string(struct slice *rest)
{
    if (!take(rest, '"'))
        return false;
    while (rest->len > 0) {
        char c = rest->ptr[0];
        drop(rest, 1);
        if (c == '"')
            return true;
        if ((unsigned char)c < 0x20 || (unsigned char)c > 0x7e)
            return false;
        if (c == '%' && !take_hex_pair(rest))
            return false;
    }
    return false;
}

/* 4.2.3.1, of a parameter: read over, whatever its type. */
static bool take_bare_item(struct slice *rest)
{
    size_t len;
    bool is_integer;
    if (rest->len == 0)
        return false;
    char c = rest->ptr[0];
    if (is_digit(c) || c == '-')
        return take_number(rest, &is_integer);
    if (is_alpha(c) || c == '*') {
        drop(rest, word_length(*rest, "!#$%&'*+-.^_`|~:/"));
        return true;
    }
    drop(rest, 1);
    switch (c) {
    case '"': return take_string(rest, NULL, &len);
    case ':': return take_bytes(rest);
    case '?': return take(rest, '0') || take(rest, '1');
    case '%': return take_display_string(rest);
    case '@': return take_number(rest, &is_integer) && is_integer; /* 4.2.9 */
    }
    return false;
}

/* 4.2.3.2, 4.2.3.3. Parameters mean nothing here (RFC 9875 2). */
static bool take_parameters(struct slice *rest)
{
    while (take(rest, ';')) {
        while (take(rest, ' '))
            ;
        if (rest->len == 0 || !(is_lower(rest->ptr[0]) || rest->ptr[0] == '*'))
            return false;
        size_t len = 0;
        while (len < rest->len && is_word(rest->ptr[len], "_-.*") &&
               !(rest->ptr[len] >= 'A' && rest->ptr[len] <= 'Z'))
            len++;
        drop(rest, len);
        if (take(rest, '=') && !take_bare_item(rest))
            return false;
    }
    return true;
}

static void skip_blanks(struct slice *rest)
{
    while (take(rest, ' ') || take(rest, '\t'))
        ;
}

/* ---- Cache-Groups (RFC 9875)
 * ---------------------------------------------------------------------- */

/* One field line; a `prefix` (with room behind it for the line) goes before each name. `t` NULL:
 * only whether it reads. */
static bool read_groups_line(struct slice rest, char *tag, size_t prefix_len, struct tags *t)
{
    while (take(&rest, ' '))
        ;
    while (rest.len > 0) {
        size_t len;
        if (!take(&rest, '"') || !take_string(&rest, tag + prefix_len, &len) ||
            !take_parameters(&rest))
            return false;
        if (t != NULL)
            tags_add(t, (struct slice){ tag, prefix_len + len });
        skip_blanks(&rest);
        if (rest.len == 0)
            return true;
        if (!take(&rest, ','))
            return false;
        skip_blanks(&rest);
        if (rest.len == 0) /* 4.2.1: a comma at the end */
            return false;
    }
    return true;
}

/* All lines are one list (4.2): when one does not read, none counts; and one that is empty among
 * others is a comma too many. */
static void add_groups(struct arena *a, struct tags *t, const struct headers *h, struct slice field,
                       struct slice origin)
{
    size_t longest = 0, line_count = 0;
    bool has_empty = false;
    for (int i = headers_find_name(h, field, 0); i >= 0; i = headers_find_name(h, field, i + 1)) {
        size_t len = h->at[i].value.len;
        longest = len > longest ? len : longest;
        has_empty |= len == 0;
        line_count++;
    }
    if (longest == 0 || (has_empty && line_count > 1))
        return;
    char *tag = arena_alloc(a, origin.len + 2 + longest);
    struct slice prefix = { tag, origin.len + 2 };
    tag[0] = tag[prefix.len - 1] = '\1';
    if (origin.len > 0)
        memcpy(tag + 1, origin.ptr, origin.len);
    for (int adds = 0; adds < 2; adds++) /* first whether all of it reads */
        for (int i = headers_find_name(h, field, 0); i >= 0; i = headers_find_name(h, field, i + 1))
            if (!read_groups_line(h->at[i].value, tag, prefix.len, adds ? t : NULL))
                return;
}

/* ---- what decide.h says
 * --------------------------------------------------------------------------- */

struct slice cache_tags_make_counted(struct arena *a, const struct headers *response,
                                     struct slice origin, struct slice more, unsigned *left_out)
{
    struct tags t;
    tags_init(&t);
    add_more(&t, more);
    for (unsigned i = 0; i < response->count; i++) {
        const struct header *f = &response->at[i];
        const struct tag_field *kind = tag_field_of(f->name);
        if (kind != NULL)
            add_separated(&t, f->value, kind->separators);
    }
    add_groups(a, &t, response, SLICE("Cache-Groups"), origin);
    *left_out = t.left_out;
    return tags_end(a, &t);
}

struct slice cache_tags_make(struct arena *a, const struct headers *response, struct slice origin,
                             struct slice more)
{
    unsigned left_out;
    return cache_tags_make_counted(a, response, origin, more, &left_out);
}

struct slice cache_groups_invalidated(struct arena *a, const struct headers *response,
                                      struct slice origin)
{
    struct tags t;
    tags_init(&t);
    add_groups(a, &t, response, SLICE("Cache-Group-Invalidation"), origin);
    return tags_end(a, &t);
}

bool cache_tags_next(struct slice *rest, struct slice *tag)
{
    while (rest->len > 0) {
        size_t len = slice_find(*rest, '\0');
        *tag = (struct slice){ rest->ptr, len };
        drop(rest, len < rest->len ? len + 1 : len);
        if (len > 0)
            return true;
    }
    return false;
}

bool cache_is_tag_field(struct slice name)
{
    return tag_field_of(name) != NULL;
}
