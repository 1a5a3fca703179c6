/* config/rules_path.c: the one form in which rules compare paths; see
 * rules_internal.h. Pure; any thread.
 *
 * A client can spell one path in many ways (/a%64min, //admin, /x/../admin),
 * and most origins take them for the same. A rule that denies or bypasses must
 * not depend on the spelling. So (RFC 3986 6.2.2, and slashes as Apache and
 * nginx merge them): what may stand in a path as it is, is decoded; every other
 * byte is %XX in upper case, '/' that came encoded included; dot segments and
 * empty segments are resolved. What comes out is a valid path again, in which
 * captures can be put into a redirect or a rewrite as they are.
 */
#include "config/rules_internal.h"

#include <stdlib.h>

/* pchar without its percent-encoded form (RFC 3986 3.3). */
static const bool plain[256] = {
    ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['0' ... '9'] = true, ['-'] = true, ['.'] = true,
    ['_'] = true,         ['~'] = true,         ['!'] = true,         ['$'] = true, ['&'] = true,
    ['\''] = true,        ['('] = true,         [')'] = true,         ['*'] = true, ['+'] = true,
    [','] = true,         [';'] = true,         ['='] = true,         [':'] = true, ['@'] = true,
};

bool rule_path_is_plain(char c)
{
    return plain[(unsigned char)c];
}

static bool is_in_form(struct slice path)
{
    for (size_t i = 0; i < path.len; i++) {
        char c = path.ptr[i];
        if (plain[(unsigned char)c])
            continue;
        if (c != '/')
            return false;
        char next = i + 1 < path.len ? path.ptr[i + 1] : 'a';
        if (next == '/' || next == '.')
            return false; /* perhaps: "/.well-known" is only looked at more closely */
    }
    return true;
}

static int hex_of(char c)
{
    char low = ascii_lower(c);
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

struct output {
    char *at;
    size_t len, segment; /* the last segment begins there */
};

/* What stands behind the last '/' is resolved; whether another '/' may follow
 * it. */
static bool end_segment(struct output *o)
{
    struct slice last = { o->at + o->segment, o->len - o->segment };
    if (o->segment == 0)
        return true; /* "*", which is no path */
    if (last.len == 0)
        return false;
    if (slice_equal(last, SLICE("."))) {
        o->len = o->segment;
        return false;
    }
    if (!slice_equal(last, SLICE("..")))
        return true;
    o->len = o->segment;
    if (o->len > 1) {
        o->len--; /* the '/' */
        while (o->len > 0 && o->at[o->len - 1] != '/')
            o->len--;
    }
    o->segment = o->len;
    return false;
}

static void put_slash(struct output *o)
{
    if (o->len > 0 && !end_segment(o))
        return;
    o->at[o->len++] = '/';
    o->segment = o->len;
}

static void put_byte(struct output *o, unsigned char c)
{
    static const char digits[] = "0123456789ABCDEF";
    if (plain[c]) {
        o->at[o->len++] = (char)c;
        return;
    }
    o->at[o->len++] = '%';
    o->at[o->len++] = digits[c >> 4];
    o->at[o->len++] = digits[c & 15];
}

void rule_path_init(struct rule_path *p, struct slice path)
{
    p->text = path;
    p->grown = NULL;
    if (likely(is_in_form(path)))
        return;
    struct output o = { .at = p->room };
    if (path.len > sizeof p->room / 3) /* bounded by clients.max_target */
        o.at = p->grown = xmalloc(path.len * 3);
    for (size_t i = 0; i < path.len; i++) {
        char c = path.ptr[i];
        bool is_escape = c == '%' && i + 2 < path.len && hex_of(path.ptr[i + 1]) >= 0 &&
                         hex_of(path.ptr[i + 2]) >= 0;
        if (c == '/')
            put_slash(&o);
        else if (is_escape) {
            put_byte(&o, (unsigned char)(hex_of(path.ptr[i + 1]) << 4 | hex_of(path.ptr[i + 2])));
            i += 2;
        } else
            put_byte(&o, (unsigned char)c);
    }
    if (o.len > 0)
        end_segment(&o);
    p->text = (struct slice){ o.at, o.len };
}

void rule_path_fini(struct rule_path *p)
{
    free(p->grown);
    p->grown = NULL;
}
