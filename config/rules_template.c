/* config/rules_template.c: texts with variables: "https://$host$path",
 * "page-$1"; see rules_internal.h. Pure; any thread.
 */
#include "config/rules_internal.h"

enum variable { LITERAL, HOST, PATH, QUERY, ARGS, SCHEME, METHOD, CLIENT, CAPTURE };

struct template_part {
    enum variable what;
    unsigned capture;
    struct slice literal;
};

static const struct {
    struct slice name;
    enum variable what;
} variables[] = {
    { SLICE_INIT("host"), HOST },     { SLICE_INIT("path"), PATH },
    { SLICE_INIT("query"), QUERY },   { SLICE_INIT("args"), ARGS },
    { SLICE_INIT("scheme"), SCHEME }, { SLICE_INIT("method"), METHOD },
    { SLICE_INIT("client"), CLIENT },
};

static bool is_word_char(char c)
{
    char low = ascii_lower(c);
    return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* The name behind a '$', in braces or without; 0 when there is none. `*taken`:
 * with its braces. */
static struct slice variable_name(struct slice rest, size_t *taken)
{
    if (rest.len > 0 && rest.ptr[0] == '{') {
        size_t close = slice_find(rest, '}');
        *taken = close + 1;
        return close == rest.len ? SLICE_NONE : (struct slice){ rest.ptr + 1, close - 1 };
    }
    size_t len = 0;
    if (rest.len > 0 && rest.ptr[0] >= '0' && rest.ptr[0] <= '9')
        len = 1; /* $12 is $1 and a 2 */
    else
        while (len < rest.len && is_word_char(rest.ptr[len]))
            len++;
    *taken = len;
    return (struct slice){ rest.ptr, len };
}

static bool read_variable(struct slice name, struct template_part *part)
{
    if (name.len == 1 && name.ptr[0] >= '0' && name.ptr[0] <= '9') {
        *part = (struct template_part){ .what = CAPTURE, .capture = (unsigned)(name.ptr[0] - '0') };
        return true;
    }
    for (size_t i = 0; i < ARRAY_COUNT(variables); i++)
        if (slice_equal(name, variables[i].name)) {
            *part = (struct template_part){ .what = variables[i].what };
            return true;
        }
    return false;
}

/* Takes one part off `*rest`. */
static bool next_part(struct slice *rest, struct template_part *part)
{
    size_t taken = slice_find(*rest, '$');
    if (taken > 0) {
        *part = (struct template_part){ .what = LITERAL, .literal = { rest->ptr, taken } };
        *rest = (struct slice){ rest->ptr + taken, rest->len - taken };
        return true;
    }
    struct slice behind = { rest->ptr + 1, rest->len - 1 };
    if (behind.len > 0 && behind.ptr[0] == '$') {
        *part = (struct template_part){ .what = LITERAL, .literal = { behind.ptr, 1 } };
        *rest = (struct slice){ behind.ptr + 1, behind.len - 1 };
        return true;
    }
    struct slice name = variable_name(behind, &taken);
    if (name.len == 0 || !read_variable(name, part))
        return false;
    *rest = (struct slice){ behind.ptr + taken, behind.len - taken };
    return true;
}

bool rule_template_compile(struct arena *a, struct slice text, struct rule_template *out,
                           const char **why)
{
    struct slice copy = { arena_string(a, text), text.len }, rest = copy;
    size_t room = 1;
    for (size_t i = 0; i < text.len; i++)
        room += text.ptr[i] == '$' ? 2 : 0;
    *out =
        (struct rule_template){ .text = copy, .parts = arena_alloc(a, room * sizeof *out->parts) };
    *why = "has a $ before something that is no variable; write $$ for a plain one";
    while (rest.len > 0) {
        CHECK(out->part_count < room);
        struct template_part *part = &out->parts[out->part_count];
        if (!next_part(&rest, part))
            return false;
        out->part_count++;
        out->has_variables = out->has_variables || part->what != LITERAL;
        if (part->what == CAPTURE && part->capture > out->capture_max)
            out->capture_max = part->capture;
        out->has_captures = out->has_captures || part->what == CAPTURE;
    }
    return true;
}

struct slice rule_template_first(const struct rule_template *t)
{
    return t->part_count > 0 && t->parts[0].what == LITERAL ? t->parts[0].literal : SLICE_NONE;
}

static struct slice value_of(const struct template_part *part, const struct template_input *in,
                             char client[PEER_TEXT])
{
    if (part->what == LITERAL)
        return part->literal;
    const struct rule_request *r = in->request;
    switch (part->what) {
    case LITERAL: break;
    case HOST: return r->host;
    case PATH: return r->path;
    case QUERY:
    case ARGS: return r->query;
    case SCHEME: return r->scheme;
    case METHOD: return r->method;
    case CLIENT:
        if (r->client == NULL)
            return SLICE_NONE;
        return (struct slice){ client, peer_text(r->client, client) };
    case CAPTURE: return in->captures == NULL ? SLICE_NONE : in->captures->at[part->capture];
    }
    UNREACHABLE();
}

static void put(char *out, size_t capacity, size_t *len, struct slice text)
{
    size_t room = *len < capacity ? capacity - *len : 0;
    size_t fits = text.len < room ? text.len : room;
    if (fits > 0)
        memcpy(out + *len, text.ptr, fits);
    *len += text.len;
}

size_t rule_template_write(const struct rule_template *t, const struct template_input *in,
                           char *out, size_t capacity)
{
    size_t len = 0;
    char client[PEER_TEXT];
    for (size_t i = 0; i < t->part_count; i++) {
        if (t->parts[i].what == QUERY && in->request->query.ptr != NULL)
            put(out, capacity, &len, SLICE("?"));
        put(out, capacity, &len, value_of(&t->parts[i], in, client));
    }
    return len;
}

struct slice rule_template_make(const struct rule_template *t, const struct template_input *in,
                                struct arena *a)
{
    if (!t->has_variables && t->part_count == 1)
        return t->parts[0].literal;
    size_t len = rule_template_write(t, in, NULL, 0);
    char *text = arena_alloc(a, len);
    return (struct slice){ text, rule_template_write(t, in, text, len) };
}
