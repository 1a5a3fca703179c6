/* cache/control.c: Cache-Control read once into numbers and flags; see decide.h. Pure; any thread.
 *
 * What reads as a directive (RFC 9111 5.2: a token, and "=" with a token or a quoted string,
 * nothing else) is taken as the RFC says. What does not, because of a semicolon for a comma, a
 * space around "=" or a quote left open, is never allowed to make a response fresh for longer or
 * more widely shared than its author can have meant: the words in it are searched, those that
 * restrict are obeyed, a lifetime among them counts as 0 (4.2.1: invalid freshness information is
 * stale), and those that permit (public, immutable, must-understand, the stale windows) are not
 * believed.
 */
#include "cache/decide.h"

enum directive {
    DIRECTIVE_UNKNOWN,
    DIRECTIVE_NO_STORE,
    DIRECTIVE_NO_CACHE,
    DIRECTIVE_PRIVATE,
    DIRECTIVE_PUBLIC,
    DIRECTIVE_MUST_REVALIDATE,
    DIRECTIVE_PROXY_REVALIDATE,
    DIRECTIVE_NO_TRANSFORM,
    DIRECTIVE_ONLY_IF_CACHED,
    DIRECTIVE_IMMUTABLE,
    DIRECTIVE_MUST_UNDERSTAND,
    DIRECTIVE_MAX_AGE,
    DIRECTIVE_S_MAXAGE,
    DIRECTIVE_MAX_STALE,
    DIRECTIVE_MIN_FRESH,
    DIRECTIVE_STALE_WHILE_REVALIDATE,
    DIRECTIVE_STALE_IF_ERROR,
};

static const struct slice directive_names[] = {
    [DIRECTIVE_NO_STORE] = SLICE_INIT("no-store"),
    [DIRECTIVE_NO_CACHE] = SLICE_INIT("no-cache"),
    [DIRECTIVE_PRIVATE] = SLICE_INIT("private"),
    [DIRECTIVE_PUBLIC] = SLICE_INIT("public"),
    [DIRECTIVE_MUST_REVALIDATE] = SLICE_INIT("must-revalidate"),
    [DIRECTIVE_PROXY_REVALIDATE] = SLICE_INIT("proxy-revalidate"),
    [DIRECTIVE_NO_TRANSFORM] = SLICE_INIT("no-transform"),
    [DIRECTIVE_ONLY_IF_CACHED] = SLICE_INIT("only-if-cached"),
    [DIRECTIVE_IMMUTABLE] = SLICE_INIT("immutable"),
    [DIRECTIVE_MUST_UNDERSTAND] = SLICE_INIT("must-understand"),
    [DIRECTIVE_MAX_AGE] = SLICE_INIT("max-age"),
    [DIRECTIVE_S_MAXAGE] = SLICE_INIT("s-maxage"),
    [DIRECTIVE_MAX_STALE] = SLICE_INIT("max-stale"),
    [DIRECTIVE_MIN_FRESH] = SLICE_INIT("min-fresh"),
    [DIRECTIVE_STALE_WHILE_REVALIDATE] = SLICE_INIT("stale-while-revalidate"),
    [DIRECTIVE_STALE_IF_ERROR] = SLICE_INIT("stale-if-error"),
};

static enum directive directive_of(struct slice name)
{
    for (unsigned d = 1; d < ARRAY_COUNT(directive_names); d++)
        if (slice_equal_nocase(directive_names[d], name))
            return d;
    return DIRECTIVE_UNKNOWN;
}

struct argument {
    bool is_present;
    struct slice
        text; /* without quotes; escapes are left in: no number and no field name has any */
};

/* delta-seconds, in both forms that recipients ought to accept (RFC 9111 5.2); anything but digits
 * is no number. */
static bool argument_seconds(const struct argument *a, int32_t *seconds)
{
    if (!a->is_present || a->text.len == 0)
        return false;
    int64_t sum = 0;
    for (size_t i = 0; i < a->text.len; i++) {
        char c = a->text.ptr[i];
        if (c < '0' || c > '9')
            return false;
        sum = sum * 10 + (c - '0');
        if (sum > CONTROL_MAX_S)
            sum = CONTROL_MAX_S; /* RFC 9111 1.2.2; the rest must still be digits */
    }
    *seconds = (int32_t)sum;
    return true;
}

/* RFC 9111 4.2.1: what is no number is stale. */
static int32_t seconds_or_zero(struct cache_control *c, const struct argument *a)
{
    int32_t seconds = 0;
    if (!argument_seconds(a, &seconds))
        c->has_malformed = true;
    return seconds;
}

/* RFC 9111 4.2.1: of several, the most restrictive. */
static void keep_least(int32_t *kept, int32_t seconds)
{
    if (*kept == CONTROL_NONE || seconds < *kept)
        *kept = seconds;
}

static void keep_min_fresh(struct cache_control *c, const struct argument *a)
{
    int32_t seconds = seconds_or_zero(c, a);
    if (seconds > c->min_fresh_s)
        c->min_fresh_s = seconds;
}

static void apply(struct cache_control *c, enum directive d, const struct argument *a)
{
    switch (d) {
    case DIRECTIVE_UNKNOWN: return; /* RFC 9111 5.2.3: ignored */
    case DIRECTIVE_NO_STORE: c->no_store = true; return;
    case DIRECTIVE_NO_CACHE:
        c->no_cache = true;
        c->has_field_list |= a->is_present;
        return;
    case DIRECTIVE_PRIVATE:
        c->is_private = true;
        c->has_field_list |= a->is_present;
        return;
    case DIRECTIVE_MUST_REVALIDATE: c->must_revalidate = true; return;
    case DIRECTIVE_PROXY_REVALIDATE: c->proxy_revalidate = true; return;
    case DIRECTIVE_NO_TRANSFORM: c->no_transform = true; return;
    case DIRECTIVE_ONLY_IF_CACHED: c->only_if_cached = true; return;
    /* these three permit; none has an argument (5.2), so one with an argument is something else */
    case DIRECTIVE_PUBLIC: c->is_public |= !a->is_present; return;
    case DIRECTIVE_IMMUTABLE: c->immutable |= !a->is_present; return;
    case DIRECTIVE_MUST_UNDERSTAND: c->must_understand |= !a->is_present; return;
    case DIRECTIVE_MAX_AGE: keep_least(&c->max_age_s, seconds_or_zero(c, a)); return;
    case DIRECTIVE_S_MAXAGE: keep_least(&c->s_maxage_s, seconds_or_zero(c, a)); return;
    case DIRECTIVE_MAX_STALE: /* 5.2.1.2: without a value, of any age */
        keep_least(&c->max_stale_s, a->is_present ? seconds_or_zero(c, a) : CONTROL_MAX_S);
        return;
    case DIRECTIVE_MIN_FRESH: keep_min_fresh(c, a); return;
    case DIRECTIVE_STALE_WHILE_REVALIDATE:
        keep_least(&c->stale_while_revalidate_s, seconds_or_zero(c, a));
        return;
    case DIRECTIVE_STALE_IF_ERROR: keep_least(&c->stale_if_error_s, seconds_or_zero(c, a)); return;
    }
    UNREACHABLE();
}

static bool is_token_char(char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return true;
    return c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static size_t token_length(struct slice s)
{
    size_t len = 0;
    while (len < s.len && is_token_char(s.ptr[len]))
        len++;
    return len;
}

/* Length of the quoted string at the front, quotes included; 0 when it does not end (RFC
 * 9110 5.6.4). */
static size_t quoted_length(struct slice s)
{
    for (size_t i = 1; i < s.len; i++) {
        if (s.ptr[i] == '\\')
            i++;
        else if (s.ptr[i] == '"')
            return i + 1;
    }
    return 0;
}

static bool read_argument(struct slice s, struct argument *a)
{
    a->is_present = true;
    if (s.len > 0 && s.ptr[0] == '"') {
        if (quoted_length(s) != s.len)
            return false;
        a->text = (struct slice){ s.ptr + 1, s.len - 2 };
        return true;
    }
    a->text = s;
    return s.len > 0 && token_length(s) == s.len;
}

/* cache-directive = token [ "=" ( token / quoted-string ) ], and nothing else. */
static bool read_directive(struct slice element, struct slice *name, struct argument *a)
{
    size_t len = token_length(element);
    *name = (struct slice){ element.ptr, len };
    *a = (struct argument){ 0 };
    if (len == 0)
        return false;
    if (len == element.len)
        return true;
    if (element.ptr[len] != '=')
        return false;
    return read_argument((struct slice){ element.ptr + len + 1, element.len - len - 1 }, a);
}

static void apply_doubtful(struct cache_control *c, enum directive d)
{
    static const struct argument malformed = { .is_present = true };
    switch (d) {
    case DIRECTIVE_UNKNOWN:
    case DIRECTIVE_PUBLIC:
    case DIRECTIVE_IMMUTABLE:
    case DIRECTIVE_MUST_UNDERSTAND:
    case DIRECTIVE_STALE_WHILE_REVALIDATE:
    case DIRECTIVE_STALE_IF_ERROR:
    case DIRECTIVE_MIN_FRESH: return;
    default: break;
    }
    bool had_field_list = c->has_field_list;
    apply(c, d, &malformed);
    c->has_field_list = had_field_list; /* there is no list to read */
}

static void search_words(struct cache_control *c, struct slice s)
{
    c->has_malformed = true;
    while (s.len > 0) {
        size_t len = token_length(s);
        if (len > 0)
            apply_doubtful(c, directive_of((struct slice){ s.ptr, len }));
        size_t taken = len > 0 ? len : 1;
        s.ptr += taken;
        s.len -= taken;
    }
}

static void read_line(struct cache_control *c, struct slice line)
{
    struct slice element, name;
    struct argument a;
    while (slice_next_in_list(&line, &element)) {
        if (read_directive(element, &name, &a))
            apply(c, directive_of(name), &a);
        else
            search_words(c, element);
    }
}

void cache_control_read(const struct headers *h, enum header_id id, struct cache_control *out)
{
    *out = (struct cache_control){
        .is_present = headers_has(h, id),
        .max_age_s = CONTROL_NONE,
        .s_maxage_s = CONTROL_NONE,
        .max_stale_s = CONTROL_NONE,
        .min_fresh_s = CONTROL_NONE,
        .stale_while_revalidate_s = CONTROL_NONE,
        .stale_if_error_s = CONTROL_NONE,
    };
    for (const struct header *f = headers_find(h, id); f != NULL; f = headers_next(h, f))
        read_line(out, f->value);
}

void cache_control_read_request(const struct headers *request, struct cache_control *out)
{
    cache_control_read(request, HEADER_CACHE_CONTROL, out);
    if (!out->is_present && headers_has_token(request, HEADER_PRAGMA, SLICE("no-cache")))
        out->no_cache = true;
}
