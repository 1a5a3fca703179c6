/* config/rules_edit.c: what the rules that matched change: cookies and fields
 * of the request, path and query, fields of the answer, tags, and the answers
 * that rules give themselves; see rules.h. New bytes are in the caller's arena.
 * Any thread.
 */
#include "config/rules_internal.h"

/* ---- the request ----------------------------------------------------------------------------- */

static bool has_name(const struct rule_glob *globs, size_t count, struct slice name)
{
    for (size_t i = 0; i < count; i++)
        if (rule_glob_matches(&globs[i], name))
            return true;
    return false;
}

static bool cookie_goes(const struct config_rule *r, struct slice name)
{
    if (r->keep_cookies.count > 0)
        return !has_name(r->keep_cookies.globs, r->keep_cookies.count, name);
    return has_name(r->drop_cookies.globs, r->drop_cookies.count, name);
}

/* Those that stay, byte for byte, and with what stood between them. */
static struct slice edit_cookie_value(const struct config_rule *r, struct slice value,
                                      struct arena *a)
{
    struct slice rest = value;
    struct rule_cookie cookie;
    bool any_goes = false;
    while (!any_goes && rules_next_cookie(&rest, &cookie))
        any_goes = cookie_goes(r, cookie.name);
    if (!any_goes)
        return value;
    char *out = arena_alloc(a, value.len);
    size_t len = 0;
    bool is_first = true, has_any = false;
    rest = value;
    while (rules_next_cookie(&rest, &cookie)) {
        if (cookie_goes(r, cookie.name))
            continue;
        if (!is_first)
            out[len++] = ';';
        is_first = false;
        has_any = has_any || cookie.name.len > 0;
        if (cookie.whole.len > 0)
            memcpy(out + len, cookie.whole.ptr, cookie.whole.len);
        len += cookie.whole.len;
    }
    return has_any ? slice_trim((struct slice){ out, len }) : SLICE_NONE;
}

/* A list is filled anew with what stays of it: positions and chains of the same
 * name follow. */
struct refill {
    struct headers *h;
    uint16_t count;
};

static struct refill refill_begin(struct headers *h)
{
    struct refill f = { h, h->count };
    h->count = 0;
    memset(h->first, 0, sizeof h->first);
    return f;
}

static void refill_add(struct refill *f, struct slice name, struct slice value)
{
    CHECK(f->h->count < f->count); /* never past the one that is being read */
    CHECK(headers_add(f->h, name, value));
}

static void edit_cookies(const struct config_rule *r, struct headers *h, struct arena *a)
{
    if (!headers_has(h, HEADER_COOKIE))
        return;
    struct refill f = refill_begin(h);
    for (uint16_t i = 0; i < f.count; i++) {
        struct header one = h->at[i];
        struct slice value =
            one.id == HEADER_COOKIE ? edit_cookie_value(r, one.value, a) : one.value;
        if (one.id != HEADER_COOKIE || value.len > 0 || one.value.len == 0)
            refill_add(&f, one.name, value);
    }
}

static bool sets(const struct rule_fields *set, struct slice name)
{
    for (size_t i = 0; i < set->count; i++)
        if (slice_equal_nocase(slice_of(set->rows[i].name), name))
            return true;
    return false;
}

/* Whether this rule takes the field off: to remove it, or to set it anew. */
static bool takes_off(const struct rule_edits *e, struct slice name, bool in_request)
{
    if (sets(&e->set, name))
        return true;
    return e->remove_count > 0 && has_name(e->removes, e->remove_count, name) &&
           !rule_field_is_ours(header_id_of(name), in_request);
}

static void take_off(const struct rule_edits *e, struct headers *h)
{
    struct refill f = refill_begin(h);
    for (uint16_t i = 0; i < f.count; i++) {
        struct header one = h->at[i];
        if (!takes_off(e, one.name, true))
            refill_add(&f, one.name, one.value);
    }
}

/* A client's bytes may be in it, decoded by nobody: what would end the line is
 * made harmless all the same. */
static struct slice clean_value(struct slice value)
{
    char *text = (char *)value.ptr;
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            text[i] = ' ';
    return slice_trim(value);
}

struct editing {
    const struct rule_request *request;
    struct slice path; /* in the form of rule_path_init() */
    struct arena *a;
};

static bool add_fields(const struct rule_fields *fields, const struct rule_template *values,
                       const struct template_input *in, const struct editing *to, struct headers *h)
{
    for (size_t i = 0; i < fields->count; i++) {
        struct slice value = slice_of(fields->rows[i].value);
        if (values[i].has_variables)
            value = clean_value(rule_template_make(&values[i], in, to->a));
        else
            value = rule_template_make(&values[i], in, to->a);
        if (!headers_add(h, slice_of(fields->rows[i].name), value))
            return false;
    }
    return true;
}

static bool edit_fields(const struct config_rule *r, const struct editing *to, struct headers *h)
{
    struct rule_captures captures;
    rules_captures_of(r, to->path, &captures);
    struct template_input in = { to->request, &captures };
    const struct rule_edits *e = &r->request;
    if (e->set.count + e->remove_count > 0)
        take_off(e, h);
    return add_fields(&e->set, e->set_values, &in, to, h) &&
           add_fields(&e->append, e->append_values, &in, to, h);
}

/* The path in the form in which it is compared, for captures; in `a`. */
static struct slice path_of(const struct rule_request *request, struct arena *a)
{
    struct rule_path p;
    rule_path_init(&p, request->path);
    struct slice path = p.text.ptr == request->path.ptr ? p.text : arena_copy(a, p.text);
    rule_path_fini(&p);
    return path;
}

bool rules_edit_request(const struct rule_effects *effects, const struct rule_request *request,
                        struct headers *headers, struct arena *a)
{
    size_t at = 0;
    struct editing to = { request, SLICE_NONE, a };
    if (effects->edits_request)
        to.path = path_of(request, a);
    for (const struct config_rule *r; (r = rules_next_matched(effects, &at)) != NULL;) {
        if ((r->does & RULE_DOES_COOKIES) != 0)
            edit_cookies(r, headers, a);
        if ((r->does & RULE_DOES_REQUEST) != 0 && !edit_fields(r, &to, headers))
            return false;
    }
    return true;
}

bool rules_sets_request_field(const struct rule_effects *effects, struct slice name)
{
    size_t at = 0;
    if (!effects->edits_request)
        return false;
    for (const struct config_rule *r; (r = rules_next_matched(effects, &at)) != NULL;)
        if (sets(&r->request.set, name) || sets(&r->request.append, name))
            return true;
    return false;
}

/* ---- path and query -------------------------------------------------------------------------- */

static bool is_target(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~' || text.ptr[i] == '#')
            return false;
    return true;
}

bool rules_rewrite(const struct rule_effects *effects, const struct rule_request *request,
                   struct arena *a, struct slice *path, struct slice *query)
{
    size_t at = 0;
    struct slice form = path_of(request, a);
    *path = request->path;
    *query = request->query;
    for (const struct config_rule *r; (r = rules_next_matched(effects, &at)) != NULL;) {
        struct rule_captures captures;
        if ((r->does & RULE_DOES_REWRITE) == 0)
            continue;
        if (r->rewrite_regex == NULL)
            rules_captures_of(r, form, &captures);
        else if (rule_regex_match(r->rewrite_regex, form, &captures) != REGEX_YES)
            continue;
        struct template_input in = { request, &captures };
        if (r->rewrite.path != NULL)
            *path = rule_template_make(&r->rewrite_path, &in, a);
        if (r->rewrite.query != NULL)
            *query = rule_template_make(&r->rewrite_query, &in, a);
        if (r->rewrite.query != NULL && query->len == 0)
            *query = SLICE_NONE;
    }
    return path->len > 0 && path->ptr[0] == '/' && slice_find(*path, '?') == path->len &&
           is_target(*path) && is_target(*query);
}

/* ---- the answer's fields --------------------------------------------------------------------- */

bool rules_drops_response_field(const struct rule_effects *effects, struct slice name)
{
    size_t at = 0;
    if (!effects->edits_response)
        return false;
    for (const struct config_rule *r; (r = rules_next_matched(effects, &at)) != NULL;)
        if ((r->does & RULE_DOES_RESPONSE) != 0 && takes_off(&r->response, name, false))
            return true;
    return false;
}

/* Whether a rule from `at` on takes off what an earlier one added. */
static bool is_taken_back(const struct rule_effects *effects, size_t at, struct slice name)
{
    for (const struct config_rule *r; (r = rules_next_matched(effects, &at)) != NULL;)
        if ((r->does & RULE_DOES_RESPONSE) != 0 && takes_off(&r->response, name, false))
            return true;
    return false;
}

static size_t put_lines(const struct rule_fields *fields, const struct rule_effects *effects,
                        size_t behind, char *out)
{
    size_t len = 0;
    for (size_t i = 0; i < fields->count; i++) {
        struct slice name = slice_of(fields->rows[i].name), value = slice_of(fields->rows[i].value);
        if (is_taken_back(effects, behind, name))
            continue;
        if (out != NULL) {
            memcpy(out + len, name.ptr, name.len);
            memcpy(out + len + name.len, ": ", 2);
            memcpy(out + len + name.len + 2, value.ptr, value.len);
            memcpy(out + len + name.len + 2 + value.len, "\r\n", 2);
        }
        len += name.len + value.len + 4;
    }
    return len;
}

static size_t put_all_lines(const struct rule_effects *effects, char *out)
{
    size_t at = 0, len = 0;
    for (const struct config_rule *r; (r = rules_next_matched(effects, &at)) != NULL;) {
        if ((r->does & RULE_DOES_RESPONSE) == 0)
            continue;
        len += put_lines(&r->response.set, effects, at, out == NULL ? NULL : out + len);
        len += put_lines(&r->response.append, effects, at, out == NULL ? NULL : out + len);
    }
    return len;
}

struct slice rules_response_lines(const struct rule_effects *effects, struct arena *a)
{
    if (!effects->edits_response)
        return SLICE_NONE;
    size_t len = put_all_lines(effects, NULL);
    if (len == 0)
        return SLICE_NONE;
    char *text = arena_alloc(a, len);
    return (struct slice){ text, put_all_lines(effects, text) };
}

/* ---- tags ------------------------------------------------------------------------------------ */

size_t rules_clean_tag(char *text, size_t len)
{
    size_t kept = 0;
    for (size_t i = 0; i < len; i++)
        if (text[i] > ' ' && text[i] <= '~' && text[i] != ',')
            text[kept++] = text[i];
    return kept;
}

static size_t put_tags(const struct rule_effects *effects, char *out)
{
    size_t at = 0, len = 0;
    for (const struct config_rule *r; (r = rules_next_matched(effects, &at)) != NULL;)
        for (size_t i = 0; i < r->tag_count; i++) {
            const struct rule_template *t = &r->tag_templates[i];
            if (t->has_variables)
                continue; /* made when the rule matched */
            size_t bytes = rule_template_write(t, NULL, out == NULL ? NULL : out + len,
                                               out == NULL ? 0 : SIZE_MAX);
            if (out != NULL)
                out[len + bytes] = '\0';
            len += bytes + 1;
        }
    if (out != NULL && effects->made_tags_bytes > 0)
        memcpy(out + len, effects->made_tags, effects->made_tags_bytes);
    return len + effects->made_tags_bytes;
}

struct slice rules_tags(const struct rule_effects *effects, struct arena *a)
{
    if (!effects->has_tags)
        return SLICE_NONE;
    size_t len = put_tags(effects, NULL);
    char *text = arena_alloc(a, len);
    return (struct slice){ text, put_tags(effects, text) };
}

/* ---- answers of rules ------------------------------------------------------------------------ */

/* What cannot stand in a URL is %XX (RFC 3986 2): quotes, brackets, and all
 * that could end the line. */
static struct slice escape_location(struct slice text, struct arena *a)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = arena_alloc(a, text.len * 3);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c > ' ' && c < 0x7f && strchr("\"<>\\^`{|}", c) == NULL) {
            out[len++] = (char)c;
            continue;
        }
        out[len++] = '%';
        out[len++] = digits[c >> 4];
        out[len++] = digits[c & 15];
    }
    return (struct slice){ out, len };
}

static struct slice make_location(const struct config_rule *r, const struct rule_request *request,
                                  struct arena *a)
{
    struct rule_captures captures;
    rules_captures_of(r, path_of(request, a), &captures);
    struct template_input in = { request, &captures };
    struct slice to = escape_location(rule_template_make(&r->redirect_to, &in, a), a);
    /* "$path" of "//elsewhere.example/" would lead to another host (RFC 3986 4.2)
     */
    bool is_path = rule_template_first(&r->redirect_to).len <= 1;
    while (is_path && to.len > 1 && to.ptr[0] == '/' && to.ptr[1] == '/')
        to = (struct slice){ to.ptr + 1, to.len - 1 };
    return to;
}

void rules_answer(const struct rule_effects *effects, const struct rule_request *request,
                  struct arena *a, struct rule_answer *out)
{
    const struct config_rule *r = effects->ended_by;
    CHECK(r != NULL);
    *out = (struct rule_answer){ .type = SLICE("text/plain; charset=utf-8") };
    switch (r->end) {
    case RULE_REDIRECT:
        out->status = (uint16_t)(r->redirect.status == RULE_NOT_GIVEN ? 302 : r->redirect.status);
        out->location = make_location(r, request, a);
        return;
    case RULE_ANSWER:
        out->status = (uint16_t)(r->answer.status == RULE_NOT_GIVEN ? 200 : r->answer.status);
        out->body = slice_of(r->answer.body);
        if (r->answer.type != NULL)
            out->type = slice_of(r->answer.type);
        return;
    case RULE_DENY: out->status = (uint16_t)r->deny; return;
    case RULE_GO_ON: break;
    }
    UNREACHABLE();
}
