/* cache/conditional.c: If-None-Match and If-Modified-Since against a stored response (RFC 9110 13);
 * see decide.h. Pure; any thread.
 *
 * Entity-tags are compared byte for byte, also those that are malformed: an origin that sends ETag:
 * abc gets back from its clients exactly that, and is served by taking it for what it is. Nothing
 * is ever added or removed to make two match.
 */
#include "cache/decide.h"

#include "base/dates.h"

/* A field that says two different things is not believed. */
static struct slice single_value(const struct headers *h, enum header_id id)
{
    const struct header *f = headers_find(h, id);
    if (f == NULL)
        return SLICE_NONE;
    for (const struct header *more = headers_next(h, f); more != NULL; more = headers_next(h, more))
        if (!slice_equal(more->value, f->value))
            return SLICE_NONE;
    return f->value;
}

static int64_t date_or_none(const struct headers *h, enum header_id id, int64_t now_wall_s)
{
    int64_t seconds;
    if (!date_parse(single_value(h, id), now_wall_s, &seconds) || seconds < 0)
        return -1;
    return seconds;
}

void cache_validators_read(const struct headers *response, int64_t now_wall_s,
                           struct validators *out)
{
    *out = (struct validators){
        .etag = single_value(response, HEADER_ETAG),
        .last_modified_s = date_or_none(response, HEADER_LAST_MODIFIED, now_wall_s),
        .date_s = date_or_none(response, HEADER_DATE, now_wall_s),
    };
}

/* The next member of a list of entity-tags: between quotes a backslash is a byte like any other
 * (RFC 9110 8.8.3), which the common list reader cannot know. */
static bool next_tag(struct slice *rest, struct slice *tag)
{
    while (rest->len > 0) {
        bool quoted = false;
        size_t len = 0;
        for (; len < rest->len && (quoted || rest->ptr[len] != ','); len++)
            if (rest->ptr[len] == '"')
                quoted = !quoted;
        *tag = slice_trim((struct slice){ rest->ptr, len });
        size_t taken = len < rest->len ? len + 1 : len;
        rest->ptr += taken;
        rest->len -= taken;
        if (tag->len > 0)
            return true;
    }
    return false;
}

static struct slice without_weakness(struct slice tag)
{
    if (slice_has_prefix(tag, SLICE("W/")))
        return (struct slice){ tag.ptr + 2, tag.len - 2 };
    return tag;
}

/* Weak comparison (RFC 9110 8.8.3.2). */
static bool lists_tag(struct slice list, struct slice stored)
{
    struct slice tag, plain = without_weakness(stored);
    while (next_tag(&list, &tag))
        if (slice_equal(without_weakness(tag), plain))
            return true;
    return false;
}

/* 13.1.2: "*" stands alone; in a list it is malformed and matches nothing. */
static bool is_star(const struct header *f)
{
    return f->next == 0 && slice_equal(f->value, SLICE("*"));
}

static enum conditional judge_none_match(const struct headers *request, const struct validators *v)
{
    const struct header *f = headers_find(request, HEADER_IF_NONE_MATCH);
    if (is_star(f))
        return CONDITIONAL_NOT_MODIFIED; /* the stored response is the current representation */
    if (v->etag.len == 0)
        return CONDITIONAL_SEND;
    for (; f != NULL; f = headers_next(request, f))
        if (lists_tag(f->value, v->etag))
            return CONDITIONAL_NOT_MODIFIED;
    return CONDITIONAL_SEND;
}

/* 13.1.3: not a date, or more than one, is ignored. Without Last-Modified the stored Date stands
 * for it (RFC 9111 4.3.2). */
static enum conditional judge_modified_since(const struct headers *request,
                                             const struct validators *v, int64_t now_wall_s)
{
    const struct header *f = headers_find(request, HEADER_IF_MODIFIED_SINCE);
    int64_t since_s;
    if (f->next != 0 || !date_parse(f->value, now_wall_s, &since_s))
        return CONDITIONAL_NONE;
    int64_t modified_s = v->last_modified_s >= 0 ? v->last_modified_s : v->date_s;
    if (modified_s < 0)
        return CONDITIONAL_NONE;
    return modified_s <= since_s ? CONDITIONAL_NOT_MODIFIED : CONDITIONAL_SEND;
}

enum conditional cache_conditional(const struct headers *request, const struct validators *v,
                                   int64_t now_wall_s)
{
    if (headers_has(request, HEADER_IF_NONE_MATCH))
        return judge_none_match(request, v); /* 13.1.3: If-Modified-Since is then not looked at */
    if (headers_has(request, HEADER_IF_MODIFIED_SINCE))
        return judge_modified_since(request, v, now_wall_s);
    return CONDITIONAL_NONE;
}

bool cache_request_has_precondition(const struct headers *request)
{
    return headers_has(request, HEADER_IF_MATCH) ||
           headers_has(request, HEADER_IF_UNMODIFIED_SINCE);
}
