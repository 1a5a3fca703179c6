/* cache/targeted.c: the fields that speak to this cache alone, before Cache-Control does:
 * CDN-Cache-Control and its like (RFC 9213), and the older Surrogate-Control; see decide.h. Pure;
 * any thread.
 *
 * A targeted field is a structured dictionary (RFC 9651 3.2): read to the letter, all of its lines
 * as one, and ignored as a whole when it does not read as one. In it the last of several values of
 * a directive counts, not the most restrictive; and a name in capitals is a mistake. A directive
 * that reads well and has a value of the wrong kind is not used for what it permits (RFC 9213 2.1),
 * but restricts all the same, as it would in Cache-Control: a lifetime counts as 0.
 *
 * The value is never put together from its lines: `struct input` reads across them.
 */
#include "cache/directives.h"

/* ---- several lines as one (RFC 9651 4.2) ----------------------------------------------------- */

enum { END = -1 };

struct input {
    const struct headers *h;
    struct slice name;
    struct slice line;
    size_t at;     /* in the line */
    int next_line; /* position of the next field of that name; -1 is none */
};

static void to_line(struct input *in, int position)
{
    in->line = in->h->at[position].value;
    in->at = 0;
    in->next_line = headers_find_name(in->h, in->name, position + 1);
}

/* False when there is no such field. */
static bool input_init(struct input *in, const struct headers *h, struct slice name)
{
    *in = (struct input){ .h = h, .name = name };
    int first = headers_find_name(h, name, 0);
    if (first < 0)
        return false;
    to_line(in, first);
    return true;
}

/* The next character, a comma between two lines, or END. */
static int peek(const struct input *in)
{
    if (in->at < in->line.len)
        return (unsigned char)in->line.ptr[in->at];
    return in->next_line < 0 ? END : ',';
}

static int take(struct input *in)
{
    int c = peek(in);
    if (in->at < in->line.len)
        in->at++;
    else if (in->next_line >= 0)
        to_line(in, in->next_line);
    return c;
}

static bool take_if(struct input *in, char c)
{
    if (peek(in) != c)
        return false;
    (void)take(in);
    return true;
}

static void skip_spaces(struct input *in)
{
    while (peek(in) == ' ')
        (void)take(in);
}

static void skip_white(struct input *in)
{
    while (peek(in) == ' ' || peek(in) == '\t')
        (void)take(in);
}

/* What was read since `from`; empty when it went over the end of a line. */
static struct slice text_since(const struct input *in, const struct input *from)
{
    if (in->line.ptr != from->line.ptr || in->at < from->at)
        return SLICE_NONE;
    return (struct slice){ from->line.ptr + from->at, in->at - from->at };
}

/* ---- bare items (RFC 9651 4.2.3.1) ----------------------------------------------------------- */

enum kind { KIND_NONE, KIND_TRUE, KIND_FALSE, KIND_INTEGER, KIND_STRING, KIND_OTHER };
struct value {
    enum kind kind;
    struct slice text; /* of an integer, or of a string without its quotes, escapes left in */
};

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower(int c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_alpha(int c)
{
    return is_lower(c) || (c >= 'A' && c <= 'Z');
}

static size_t take_digits(struct input *in)
{
    size_t count = 0;
    for (; is_digit(peek(in)); count++)
        (void)take(in);
    return count;
}

enum { INTEGER_DIGITS = 15, DECIMAL_DIGITS = 12, FRACTION_DIGITS = 3 }; /* 3.3.1, 3.3.2 */

static bool parse_number(struct input *in, struct value *out)
{
    struct input start = *in;
    (void)take_if(in, '-');
    size_t whole = take_digits(in);
    if (whole == 0)
        return false;
    if (take_if(in, '.')) {
        size_t fraction = take_digits(in);
        *out = (struct value){ .kind = KIND_OTHER };
        return whole <= DECIMAL_DIGITS && fraction > 0 && fraction <= FRACTION_DIGITS;
    }
    *out = (struct value){ KIND_INTEGER, text_since(in, &start) };
    return whole <= INTEGER_DIGITS;
}

static bool parse_string(struct input *in, struct value *out)
{
    (void)take(in);
    struct input start = *in;
    for (;;) {
        struct input here = *in;
        int c = take(in);
        if (c == '"') {
            *out = (struct value){ KIND_STRING, text_since(&here, &start) };
            return true;
        }
        if (c == '\\')
            c = peek(in) == '"' || peek(in) == '\\' ? take(in) : END;
        if (c < 0x20 || c > 0x7e) /* END, too */
            return false;
    }
}

static bool parse_token(struct input *in, struct value *out)
{
    int c = take(in);
    while ((c = peek(in)) != END && (is_token_char((char)c) || c == ':' || c == '/'))
        (void)take(in);
    *out = (struct value){ .kind = KIND_OTHER };
    return true;
}

/* base64 between colons; padding may be missing (4.2.7). */
static bool parse_bytes(struct input *in, struct value *out)
{
    size_t count = 0, padding = 0;
    (void)take(in);
    for (int c; (c = take(in)) != ':'; count++) {
        if (c == '=')
            padding++;
        else if (padding > 0 || !(is_alpha(c) || is_digit(c) || c == '+' || c == '/'))
            return false;
    }
    *out = (struct value){ .kind = KIND_OTHER };
    if (padding > 0)
        return padding <= 2 && count % 4 == 0;
    return count % 4 != 1;
}

static bool parse_boolean(struct input *in, struct value *out)
{
    (void)take(in);
    int c = take(in);
    *out = (struct value){ .kind = c == '1' ? KIND_TRUE : KIND_FALSE };
    return c == '1' || c == '0';
}

static bool parse_date(struct input *in, struct value *out)
{
    (void)take(in);
    if (!parse_number(in, out) || out->kind != KIND_INTEGER)
        return false;
    out->kind = KIND_OTHER;
    return true;
}

/* One byte more of UTF-8 (RFC 3629 3): how many are still to come, and between what the next one
 * is. */
struct utf8 {
    int due, low, high;
};

static bool utf8_take(struct utf8 *u, int c)
{
    if (u->due > 0) {
        bool is_good = c >= u->low && c <= u->high;
        *u = (struct utf8){ u->due - 1, 0x80, 0xbf };
        return is_good;
    }
    *u = (struct utf8){ 0, 0x80, 0xbf };
    if (c < 0x80)
        return true;
    if (c < 0xc2 || c > 0xf4)
        return false;
    u->due = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    if (c == 0xe0)
        u->low = 0xa0; /* no longer than it must be */
    if (c == 0xed)
        u->high = 0x9f; /* no surrogates */
    if (c == 0xf0)
        u->low = 0x90;
    if (c == 0xf4)
        u->high = 0x8f; /* no more than U+10FFFF */
    return true;
}

/* Only lower case (4.2.10). */
static int take_hex(struct input *in)
{
    int c = take(in);
    if (is_digit(c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : END;
}

static bool parse_display_string(struct input *in, struct value *out)
{
    struct utf8 u = { 0 };
    (void)take(in);
    if (!take_if(in, '"'))
        return false;
    *out = (struct value){ .kind = KIND_OTHER };
    for (;;) {
        int c = take(in);
        if (c == '"')
            return u.due == 0;
        if (c < 0x20 || c > 0x7e)
            return false;
        if (c == '%') {
            int high = take_hex(in), low = take_hex(in);
            if (high < 0 || low < 0)
                return false;
            c = high * 16 + low;
        }
        if (!utf8_take(&u, c))
            return false;
    }
}

static bool parse_bare(struct input *in, struct value *out)
{
    int c = peek(in);
    if (c == '-' || is_digit(c))
        return parse_number(in, out);
    if (c == '*' || is_alpha(c))
        return parse_token(in, out);
    switch (c) {
    case '"': return parse_string(in, out);
    case ':': return parse_bytes(in, out);
    case '?': return parse_boolean(in, out);
    case '@': return parse_date(in, out);
    case '%': return parse_display_string(in, out);
    default: return false;
    }
}

/* ---- what is made of them (RFC 9651 4.2.1.2, 4.2.2, 4.2.3.2) --------------------------------- */

static bool parse_key(struct input *in, struct slice *key)
{
    struct input start = *in;
    if (!is_lower(peek(in)) && peek(in) != '*')
        return false;
    for (int c; (c = peek(in)) != END; (void)take(in))
        if (!is_lower(c) && !is_digit(c) && c != '_' && c != '-' && c != '.' && c != '*')
            break;
    *key = text_since(in, &start);
    return true;
}

/* Read, and ignored: no directive has any (RFC 9213 2.1). */
static bool parse_parameters(struct input *in)
{
    while (take_if(in, ';')) {
        struct slice key;
        struct value ignored;
        skip_spaces(in);
        if (!parse_key(in, &key) || (take_if(in, '=') && !parse_bare(in, &ignored)))
            return false;
    }
    return true;
}

static bool parse_inner_list(struct input *in, struct value *out)
{
    (void)take(in);
    for (;;) {
        struct value ignored;
        skip_spaces(in);
        if (take_if(in, ')')) {
            *out = (struct value){ .kind = KIND_OTHER };
            return parse_parameters(in);
        }
        if (!parse_bare(in, &ignored) || !parse_parameters(in))
            return false;
        if (peek(in) != ' ' && peek(in) != ')')
            return false;
    }
}

static bool parse_member(struct input *in, struct slice *key, struct value *out)
{
    *out = (struct value){ .kind = KIND_TRUE };
    if (!parse_key(in, key))
        return false;
    if (take_if(in, '=')) {
        if (peek(in) == '(')
            return parse_inner_list(in, out);
        if (!parse_bare(in, out))
            return false;
    }
    return parse_parameters(in);
}

/* False when it is no dictionary, or an empty one: as if the field were absent (RFC 9213 2.1). */
static bool parse_dictionary(struct input *in, struct value values[DIRECTIVE_COUNT])
{
    skip_spaces(in);
    for (;;) {
        struct slice key;
        struct value value;
        if (!parse_member(in, &key, &value))
            return false;
        values[cache_directive_of(key)] = value; /* 4.2.2: the last one counts */
        skip_white(in);
        if (peek(in) == END)
            return true;
        if (!take_if(in, ','))
            return false;
        skip_white(in);
    }
}

/* ---- directives ------------------------------------------------------------------------------ */

static const struct directive_argument no_argument = { 0 };
static const struct directive_argument wrong_argument = { .is_present = true };

static void apply_flag(struct cache_control *c, enum directive d, const struct value *v)
{
    if (v->kind == KIND_FALSE)
        return;
    c->has_malformed |= v->kind != KIND_TRUE;
    cache_directive_apply(c, d, &no_argument);
}

/* True, or a string of field names. */
static void apply_list(struct cache_control *c, enum directive d, const struct value *v)
{
    const struct directive_argument names = { .is_present = true, .text = v->text };
    if (v->kind == KIND_STRING)
        cache_directive_apply(c, d, &names);
    else
        apply_flag(c, d, v);
}

static void apply_permission(struct cache_control *c, enum directive d, const struct value *v)
{
    cache_directive_apply(c, d, v->kind == KIND_TRUE ? &no_argument : &wrong_argument);
}

/* Its digits as they are: a sign is no delta-seconds. */
static void apply_seconds(struct cache_control *c, enum directive d, const struct value *v)
{
    const struct directive_argument digits = { .is_present = true, .text = v->text };
    cache_directive_apply(c, d, v->kind == KIND_INTEGER ? &digits : &wrong_argument);
}

static void apply_value(struct cache_control *c, enum directive d, const struct value *v)
{
    switch (d) {
    case DIRECTIVE_NO_STORE:
    case DIRECTIVE_MUST_REVALIDATE:
    case DIRECTIVE_PROXY_REVALIDATE:
    case DIRECTIVE_NO_TRANSFORM: apply_flag(c, d, v); return;
    case DIRECTIVE_NO_CACHE:
    case DIRECTIVE_PRIVATE: apply_list(c, d, v); return;
    case DIRECTIVE_PUBLIC:
    case DIRECTIVE_IMMUTABLE:
    case DIRECTIVE_MUST_UNDERSTAND: apply_permission(c, d, v); return;
    case DIRECTIVE_MAX_AGE:
    case DIRECTIVE_S_MAXAGE:
    case DIRECTIVE_STALE_WHILE_REVALIDATE:
    case DIRECTIVE_STALE_IF_ERROR: apply_seconds(c, d, v); return;
    case DIRECTIVE_UNKNOWN:
    case DIRECTIVE_ONLY_IF_CACHED: /* these are a request's */
    case DIRECTIVE_MAX_STALE:
    case DIRECTIVE_MIN_FRESH:
    case DIRECTIVE_COUNT: return;
    }
    UNREACHABLE();
}

static bool read_values(const struct headers *response, struct slice name,
                        struct value values[DIRECTIVE_COUNT])
{
    struct input in;
    return input_init(&in, response, name) && parse_dictionary(&in, values);
}

static bool read_targeted(const struct headers *response, struct slice name,
                          struct cache_control *out)
{
    struct value values[DIRECTIVE_COUNT] = { 0 };
    if (!read_values(response, name, values))
        return false;
    cache_control_clear(out);
    out->is_present = true;
    for (unsigned d = 0; d < DIRECTIVE_COUNT; d++)
        if (values[d].kind != KIND_NONE)
            apply_value(out, d, &values[d]);
    return true;
}

bool cache_targeted_names(const struct headers *response, const char *targeted, struct slice field)
{
    static const enum directive both[] = { DIRECTIVE_PRIVATE, DIRECTIVE_NO_CACHE };
    struct value values[DIRECTIVE_COUNT] = { 0 };
    if (!read_values(response, slice_of(targeted), values))
        return false;
    for (size_t i = 0; i < ARRAY_COUNT(both); i++) {
        const struct value *v = &values[both[i]];
        if (v->kind == KIND_STRING && cache_directive_lists(v->text, field))
            return true;
    }
    return false;
}

/* ---- Surrogate-Control (W3C Note, Edge Architecture, 2001) ----------------------------------- */

/* "directive;name" is for the surrogate of that name. We tell the origin none, so it is for
 * another. What comes behind the semicolon may also be a directive whose author meant a comma. */
enum aim { AIM_US, AIM_OTHER, AIM_DOUBT };

static enum aim aim_of(struct slice element, struct slice *directive)
{
    size_t at = 0;
    for (bool quoted = false; at < element.len && (quoted || element.ptr[at] != ';'); at++) {
        if (quoted && element.ptr[at] == '\\')
            at++;
        else if (element.ptr[at] == '"')
            quoted = !quoted;
    }
    if (at >= element.len) {
        *directive = element;
        return AIM_US;
    }
    struct slice target = slice_trim((struct slice){ element.ptr + at + 1, element.len - at - 1 });
    bool is_name = is_token(target) && cache_directive_of(target) == DIRECTIVE_UNKNOWN;
    return is_name ? AIM_OTHER : AIM_DOUBT;
}

/* max-age=N+M: fresh for N seconds, and for M more it may be used while the origin is asked, or
 * cannot be. */
static void apply_surrogate_age(struct cache_control *c, struct directive_argument a)
{
    size_t plus = slice_find(a.text, '+');
    struct directive_argument grace = a;
    if (plus < a.text.len) {
        grace.text = (struct slice){ a.text.ptr + plus + 1, a.text.len - plus - 1 };
        cache_directive_apply(c, DIRECTIVE_STALE_WHILE_REVALIDATE, &grace);
        cache_directive_apply(c, DIRECTIVE_STALE_IF_ERROR, &grace);
    }
    a.text.len = plus;
    cache_directive_apply(c, DIRECTIVE_MAX_AGE, &a);
}

/* False: it says nothing to us (content="…", something unknown). */
static bool apply_surrogate(struct cache_control *c, struct slice name,
                            const struct directive_argument *a)
{
    enum directive d = cache_directive_of(name);
    if (slice_equal_nocase(name, SLICE("no-store-remote")))
        d = DIRECTIVE_NO_STORE; /* whether we are near the origin, nobody has told us */
    switch (d) {
    case DIRECTIVE_UNKNOWN: return false;
    case DIRECTIVE_MAX_AGE: apply_surrogate_age(c, *a); return true;
    case DIRECTIVE_NO_CACHE:
    case DIRECTIVE_PRIVATE: /* lists of fields are not of that note */
        cache_directive_apply(c, d, a->is_present ? &wrong_argument : &no_argument);
        return true;
    default: cache_directive_apply(c, d, a); return true;
    }
}

static bool read_surrogate_line(struct cache_control *c, struct slice line)
{
    struct slice element, directive, name;
    struct directive_argument a;
    bool spoke = false;
    while (slice_next_in_list(&line, &element)) {
        enum aim aim = aim_of(element, &directive);
        if (aim == AIM_OTHER)
            continue;
        if (aim == AIM_US && cache_directive_split(directive, &name, &a)) {
            spoke |= apply_surrogate(c, name, &a);
            continue;
        }
        cache_control_doubt(c, element);
        spoke = true;
    }
    return spoke;
}

static bool read_surrogate(const struct headers *response, struct cache_control *out)
{
    bool spoke = false;
    cache_control_clear(out);
    out->is_present = true;
    for (const struct header *f = headers_find(response, HEADER_SURROGATE_CONTROL); f != NULL;
         f = headers_next(response, f))
        spoke |= read_surrogate_line(out, f->value);
    return spoke;
}

/* ---- which one counts (RFC 9213 2.2) --------------------------------------------------------- */

void cache_control_read_response(const struct headers *response, const char *const *targeted,
                                 struct cache_control *out, enum control_source *source,
                                 const char **field)
{
    for (; targeted != NULL && *targeted != NULL; targeted++) {
        if (!read_targeted(response, slice_of(*targeted), out))
            continue;
        *source = CONTROL_FROM_TARGETED;
        *field = *targeted;
        return;
    }
    if (read_surrogate(response, out)) {
        *source = CONTROL_FROM_SURROGATE;
        *field = "Surrogate-Control";
        return;
    }
    cache_control_read(response, HEADER_CACHE_CONTROL, out);
    *source = out->is_present ? CONTROL_FROM_CACHE_CONTROL : CONTROL_FROM_NOTHING;
    *field = out->is_present ? "Cache-Control" : NULL;
}
