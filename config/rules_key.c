/* config/rules_key.c: what rules leave of a URL in its key, and what they add
 * to it; see rules.h. Any thread.
 *
 * What is not in the key is shared: two requests that differ only in what was
 * dropped get one answer. So when in doubt a parameter stays. Names are
 * compared as applications read them, decoded; where frameworks differ (PHP
 * reads a.b as a_b and a[1] as a, ASP.NET any case), `keep` keeps what any of
 * them could take for the name; and a parameter with a ';' in it always stays,
 * for some take that for another '&'. All that goes wrong then is that two keys
 * have the same answer.
 */
#include "config/rules_internal.h"

enum { NAME_ROOM = 256, SORTED_MAX = 256 };

/* ---- the query ------------------------------------------------------------------------------- */

struct parameter_name {
    struct slice exact, read; /* decoded; and as PHP would read it */
    char room[2][NAME_ROOM];
};

/* False: too long to be looked at; it stays. */
static bool name_of(struct slice parameter, struct parameter_name *out)
{
    struct slice raw = { parameter.ptr, slice_find(parameter, '=') };
    if (raw.len > NAME_ROOM)
        return false;
    out->exact = (struct slice){ out->room[0], rules_decode(raw, out->room[0]) };
    size_t len = 0;
    for (size_t i = 0; i < out->exact.len; i++) {
        char c = out->exact.ptr[i];
        if ((c == '[' && len > 0) || c == '\0')
            break;
        if (c == ' ' && len == 0)
            continue;
        out->room[1][len++] = c == '.' || c == ' ' || c == '[' ? '_' : c;
    }
    out->read = (struct slice){ out->room[1], len };
    return true;
}

static bool has_name(const struct rule_names *names, struct slice name)
{
    for (size_t i = 0; i < names->count; i++)
        if (rule_glob_matches(&names->globs[i], name))
            return true;
    return false;
}

/* The rule because of which it goes; NULL: it stays. */
static const struct config_rule *dropped_by(const struct rule_effects *e, struct slice parameter)
{
    struct parameter_name name;
    if (slice_find(parameter, ';') < parameter.len || !name_of(parameter, &name))
        return NULL;
    const struct config_rule *not_kept_by = NULL;
    bool is_kept = false;
    size_t at = 0;
    for (const struct config_rule *r; (r = rules_next_matched(e, &at)) != NULL;) {
        if ((r->does & RULE_DOES_KEY) == 0)
            continue;
        if (has_name(&r->key_ignore, name.exact))
            return r;
        if (r->key_keep.count == 0)
            continue;
        not_kept_by = not_kept_by == NULL ? r : not_kept_by;
        is_kept =
            is_kept || has_name(&r->key_keep, name.exact) || has_name(&r->key_keep, name.read);
    }
    return is_kept ? NULL : not_kept_by;
}

static bool edits_query(const struct rule_effects *e, bool *sorts)
{
    bool edits = false;
    size_t at = 0;
    *sorts = false;
    for (const struct config_rule *r; (r = rules_next_matched(e, &at)) != NULL;) {
        *sorts = *sorts || r->key.sorts;
        edits = edits || r->key.sorts || r->key_ignore.count + r->key_keep.count > 0;
    }
    return edits;
}

static int compare_names(struct slice a, struct slice b)
{
    return slice_compare((struct slice){ a.ptr, slice_find(a, '=') },
                         (struct slice){ b.ptr, slice_find(b, '=') });
}

/* Stable: of one name the first stays the first, which applications see. */
static void merge_sort(struct slice *list, size_t count, struct slice *spare)
{
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t from = 0; from < count; from += 2 * width) {
            size_t middle = from + width < count ? from + width : count;
            size_t end = from + 2 * width < count ? from + 2 * width : count;
            size_t a = from, b = middle;
            for (size_t to = from; to < end; to++) {
                bool takes_a = a < middle && (b >= end || compare_names(list[a], list[b]) <= 0);
                spare[to] = takes_a ? list[a++] : list[b++];
            }
        }
        memcpy(list, spare, count * sizeof *list);
    }
}

struct output {
    char *at;
    size_t len;
    bool is_begun;
};

static void put(struct output *o, struct slice parameter)
{
    if (o->is_begun)
        o->at[o->len++] = '&';
    o->is_begun = true;
    memmove(o->at + o->len, parameter.ptr, parameter.len);
    o->len += parameter.len;
}

size_t rules_key_query(const struct rule_effects *effects, struct slice query, char *out,
                       bool *has_query, rules_dropped_f *dropped, void *arg)
{
    struct slice sorted[SORTED_MAX], spare[SORTED_MAX], rest = query, parameter;
    struct output o = { .at = out };
    size_t count = 0;
    bool sorts = false;
    *has_query = query.ptr != NULL;
    if (query.ptr == NULL || !effects->edits_key || !edits_query(effects, &sorts)) {
        if (query.len > 0)
            memcpy(out, query.ptr, query.len);
        return query.len;
    }
    while (rules_next_parameter(&rest, &parameter)) {
        const struct config_rule *by = NULL;
        if (parameter.len == 0)
            continue; /* "a&&b" says no more than "a&b" */
        by = dropped_by(effects, parameter);
        if (by != NULL && dropped != NULL)
            dropped(arg, parameter, by);
        if (by != NULL)
            continue;
        if (sorts && count < SORTED_MAX)
            sorted[count++] = parameter;
        else {
            for (size_t i = 0; i < count; i++) /* too many to sort: in the order they came */
                put(&o, sorted[i]);
            count = 0;
            sorts = false;
            put(&o, parameter);
        }
    }
    merge_sort(sorted, count, spare);
    for (size_t i = 0; i < count; i++)
        put(&o, sorted[i]);
    *has_query = o.is_begun;
    return o.len;
}

bool rules_key_ignores_case(const struct rule_effects *effects)
{
    size_t at = 0;
    if (!effects->edits_key)
        return false;
    for (const struct config_rule *r; (r = rules_next_matched(effects, &at)) != NULL;)
        if (r->key.ignores_case)
            return true;
    return false;
}

/* ---- fields and cookies ---------------------------------------------------------------------- */

struct extra {
    char *at;
    size_t len, capacity;
};

static void add(struct extra *e, struct slice text)
{
    if (e->len + text.len <= e->capacity && text.len > 0)
        memcpy(e->at + e->len, text.ptr, text.len);
    e->len += text.len;
}

static void add_lower(struct extra *e, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = ascii_lower(text.ptr[i]);
        add(e, (struct slice){ &c, 1 });
    }
}

/* "name" when it is absent, "name=value" when it is there, several values as
 * the one that they mean. */
static void add_field(struct extra *e, const struct headers *h, struct slice name)
{
    bool is_first = true;
    add_lower(e, name);
    for (int i = 0; (i = headers_find_name(h, name, i)) >= 0; i++) {
        add(e, is_first ? SLICE("=") : SLICE(", "));
        add(e, h->at[i].value);
        is_first = false;
    }
    add(e, SLICE("\0"));
}

/* A name that no field can have, so that no field stands in for a cookie. Of
 * several with one name applications take one or the other: all count. */
static void add_cookie(struct extra *e, const struct headers *h, struct slice name)
{
    bool is_first = true;
    add(e, SLICE("cookie:"));
    add(e, name);
    for (const struct header *f = headers_find(h, HEADER_COOKIE); f != NULL;
         f = headers_next(h, f)) {
        struct slice rest = f->value;
        struct rule_cookie cookie;
        while (rules_next_cookie(&rest, &cookie)) {
            if (!slice_equal(cookie.name, name))
                continue;
            add(e, is_first ? SLICE("=") : SLICE("; "));
            add(e, cookie.value);
            is_first = false;
        }
    }
    add(e, SLICE("\0"));
}

size_t rules_key_extra(const struct rule_effects *effects, const struct rule_request *request,
                       char *out, size_t capacity)
{
    struct extra e = { .at = out, .capacity = capacity };
    size_t at = 0;
    if (!effects->edits_key)
        return 0;
    for (const struct config_rule *r; (r = rules_next_matched(effects, &at)) != NULL;) {
        for (char **name = r->key.fields; name != NULL && *name != NULL; name++)
            add_field(&e, request->headers, slice_of(*name));
        for (char **name = r->key.cookies; name != NULL && *name != NULL; name++)
            add_cookie(&e, request->headers, slice_of(*name));
    }
    return e.len;
}
