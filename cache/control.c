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
#include "cache/directives.h"

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

static_assert(ARRAY_COUNT(directive_names) == DIRECTIVE_COUNT, "a name for each");

enum directive cache_directive_of(struct slice name)
{
    for (unsigned d = 1; d < ARRAY_COUNT(directive_names); d++)
        if (slice_equal_nocase(directive_names[d], name))
            return d;
    return DIRECTIVE_UNKNOWN;
}

/* delta-seconds, in both forms that recipients ought to accept (RFC 9111 5.2); anything but digits
 * is no number. */
static bool argument_seconds(const struct directive_argument *a, int32_t *seconds)
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
static int32_t seconds_or_zero(struct cache_control *c, const struct directive_argument *a)
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

static void keep_min_fresh(struct cache_control *c, const struct directive_argument *a)
{
    int32_t seconds = seconds_or_zero(c, a);
    if (seconds > c->min_fresh_s)
        c->min_fresh_s = seconds;
}

/* A field without which the rest would be read for something else, or given to others than it is
 * for. */
static bool is_indispensable(struct slice field)
{
    switch (header_id_of(field)) {
    case HEADER_CONTENT_ENCODING:
    case HEADER_CONTENT_RANGE:
    case HEADER_CONTENT_TYPE:
    case HEADER_VARY: return true;
    default: return false;
    }
}

/* #field-name (5.2.2.4, 5.2.2.7) of fields that can be left out. What is no such list is taken as
 * if there were none: about all of the answer. */
static bool is_name_list(struct slice text)
{
    struct slice field;
    bool has_any = false;
    while (slice_next_in_list(&text, &field)) {
        if (!is_token(field) || slice_equal(field, SLICE("*")) || is_indispensable(field))
            return false;
        has_any = true;
    }
    return has_any;
}

bool cache_directive_lists(struct slice argument, struct slice field)
{
    struct slice listed;
    if (!is_name_list(argument))
        return false;
    while (slice_next_in_list(&argument, &listed))
        if (slice_equal_nocase(listed, field))
            return true;
    return false;
}

static void apply_qualified(struct cache_control *c, const struct directive_argument *a,
                            bool *unqualified, bool *names)
{
    if (a->is_present && is_name_list(a->text)) {
        *names = true;
        return;
    }
    *unqualified = true;
    c->has_malformed |= a->is_present;
}

void cache_directive_apply(struct cache_control *c, enum directive d,
                           const struct directive_argument *a)
{
    switch (d) {
    case DIRECTIVE_UNKNOWN:
    case DIRECTIVE_COUNT: return; /* RFC 9111 5.2.3: ignored */
    case DIRECTIVE_NO_STORE: c->no_store = true; return;
    case DIRECTIVE_NO_CACHE: apply_qualified(c, a, &c->no_cache, &c->names_no_cache); return;
    case DIRECTIVE_PRIVATE: apply_qualified(c, a, &c->is_private, &c->names_private); return;
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

static bool read_argument(struct slice s, struct directive_argument *a)
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

bool cache_directive_split(struct slice element, struct slice *name, struct directive_argument *a)
{
    size_t len = token_length(element);
    *name = (struct slice){ element.ptr, len };
    *a = (struct directive_argument){ 0 };
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
    static const struct directive_argument malformed = { .is_present = true };
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
    cache_directive_apply(c, d, &malformed);
}

void cache_control_doubt(struct cache_control *c, struct slice s)
{
    c->has_malformed = true;
    while (s.len > 0) {
        size_t len = token_length(s);
        if (len > 0)
            apply_doubtful(c, cache_directive_of((struct slice){ s.ptr, len }));
        size_t taken = len > 0 ? len : 1;
        s.ptr += taken;
        s.len -= taken;
    }
}

static void read_line(struct cache_control *c, struct slice line)
{
    struct slice element, name;
    struct directive_argument a;
    while (slice_next_in_list(&line, &element)) {
        if (cache_directive_split(element, &name, &a))
            cache_directive_apply(c, cache_directive_of(name), &a);
        else
            cache_control_doubt(c, element);
    }
}

void cache_control_clear(struct cache_control *c)
{
    *c = (struct cache_control){
        .max_age_s = CONTROL_NONE,
        .s_maxage_s = CONTROL_NONE,
        .max_stale_s = CONTROL_NONE,
        .min_fresh_s = CONTROL_NONE,
        .stale_while_revalidate_s = CONTROL_NONE,
        .stale_if_error_s = CONTROL_NONE,
    };
}

void cache_control_read(const struct headers *h, enum header_id id, struct cache_control *out)
{
    cache_control_clear(out);
    out->is_present = headers_has(h, id);
    for (const struct header *f = headers_find(h, id); f != NULL; f = headers_next(h, f))
        read_line(out, f->value);
}

void cache_control_read_request(const struct headers *request, struct cache_control *out)
{
    cache_control_read(request, HEADER_CACHE_CONTROL, out);
    if (!out->is_present && headers_has_token(request, HEADER_PRAGMA, SLICE("no-cache")))
        out->no_cache = true;
}

static bool line_names(struct slice line, struct slice field)
{
    struct slice element, name;
    struct directive_argument a;
    while (slice_next_in_list(&line, &element)) {
        if (!cache_directive_split(element, &name, &a) || !a.is_present)
            continue;
        enum directive d = cache_directive_of(name);
        if ((d == DIRECTIVE_PRIVATE || d == DIRECTIVE_NO_CACHE) &&
            cache_directive_lists(a.text, field))
            return true;
    }
    return false;
}

bool cache_control_names(const struct headers *response, struct slice field)
{
    for (const struct header *f = headers_find(response, HEADER_CACHE_CONTROL); f != NULL;
         f = headers_next(response, f))
        if (line_names(f->value, field))
            return true;
    return false;
}

bool cache_control_forbids_stale(const struct cache_control *c)
{
    return c->must_revalidate || c->proxy_revalidate || c->s_maxage_s != CONTROL_NONE;
}
