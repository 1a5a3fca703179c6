/* cache/part.c: Content-Range, and parts that make a whole (RFC 9110 14.4, 15.3.7; RFC
 * 9111 3.3, 3.4); see decide.h. Pure; any thread.
 *
 * Every position and length that leaves here is below INT64_MAX, so that sums of them do not
 * overflow and lengths fit the store's.
 */
#include "cache/decide.h"

enum { UNKNOWN = -1 };

static bool take_prefix(struct slice *rest, char c)
{
    if (rest->len == 0 || rest->ptr[0] != c)
        return false;
    rest->ptr++;
    rest->len--;
    return true;
}

static bool take_digits(struct slice *rest, struct slice *digits)
{
    *digits = (struct slice){ rest->ptr, 0 };
    while (digits->len < rest->len && rest->ptr[digits->len] >= '0' &&
           rest->ptr[digits->len] <= '9')
        digits->len++;
    rest->ptr += digits->len;
    rest->len -= digits->len;
    return digits->len > 0;
}

/* An answer's: one beyond what can be is of no representation that there is. */
static bool take_position(struct slice *rest, uint64_t *position)
{
    struct slice digits;
    return take_digits(rest, &digits) && slice_to_u64(digits, position) && *position < INT64_MAX;
}

/* A request's: one beyond what can be is beyond the end, as any other that is (17.5). */
static bool take_asked(struct slice *rest, uint64_t *position)
{
    struct slice digits;
    if (!take_digits(rest, &digits))
        return false;
    if (!slice_to_u64(digits, position) || *position >= INT64_MAX)
        *position = INT64_MAX - 1;
    return true;
}

/* Unit names are the same in any case (RFC 9110 14.1). */
static bool take_unit(struct slice *rest, struct slice unit)
{
    if (!slice_has_prefix_nocase(*rest, unit))
        return false;
    rest->ptr += unit.len;
    rest->len -= unit.len;
    return true;
}

/* ---- Content-Range (14.4) -----------------------------------------------------------------------
 */

static bool take_complete(struct slice *rest, int64_t *complete)
{
    uint64_t length;
    if (take_prefix(rest, '*')) {
        *complete = UNKNOWN;
        return true;
    }
    if (!take_position(rest, &length))
        return false;
    *complete = (int64_t)length;
    return true;
}

bool cache_content_range_read(const struct headers *response, struct content_range *out)
{
    const struct header *f = headers_find(response, HEADER_CONTENT_RANGE);
    if (f == NULL ||
        f->next != 0) /* RFC 9110 5.3: it is no list, two of them contradict each other */
        return false;
    struct slice rest = f->value;
    struct content_range r;
    /* 14.4: one space and no other; the unsatisfied form, with an asterisk for the range, is no
     * part */
    if (!take_unit(&rest, SLICE("bytes ")) || !take_position(&rest, &r.first) ||
        !take_prefix(&rest, '-') || !take_position(&rest, &r.last) || !take_prefix(&rest, '/') ||
        !take_complete(&rest, &r.complete) || rest.len > 0)
        return false;
    if (r.last < r.first || (r.complete != UNKNOWN && r.last >= (uint64_t)r.complete))
        return false; /* 14.4: "MUST NOT attempt to recombine" */
    *out = r;
    return true;
}

/* ---- parts of the same representation -----------------------------------------------------------
 */

static bool is_strong_tag(struct slice tag)
{
    return tag.len > 0 && tag.ptr[0] == '"';
}

/* 8.8.2.2: the response was made at least a second after the change that it names. */
static bool is_date_strong(const struct validators *v)
{
    return v->last_modified_s >= 0 && v->date_s >= 0 && v->date_s - v->last_modified_s >= 1;
}

bool cache_validators_strongly_equal(const struct validators *a, const struct validators *b)
{
    /* a tag on either side speaks for itself: the date of one that changed its tag proves nothing
     */
    if (a->etag.len > 0 || b->etag.len > 0)
        return is_strong_tag(a->etag) && slice_equal(a->etag, b->etag);
    return is_date_strong(a) && is_date_strong(b) && a->last_modified_s == b->last_modified_s;
}

/* One that knows the length speaks for one that does not, as long as both fit into it. */
static bool join_complete(const struct content_range *a, const struct content_range *b,
                          int64_t *complete)
{
    if (a->complete != UNKNOWN && b->complete != UNKNOWN && a->complete != b->complete)
        return false;
    *complete = a->complete != UNKNOWN ? a->complete : b->complete;
    return true;
}

bool cache_parts_join(const struct content_range *a, const struct content_range *b,
                      struct content_range *out)
{
    struct content_range r = { a->first < b->first ? a->first : b->first,
                               a->last > b->last ? a->last : b->last, UNKNOWN };
    uint64_t later_first = a->first > b->first ? a->first : b->first;
    uint64_t earlier_last = a->last < b->last ? a->last : b->last;
    if (later_first > earlier_last && later_first - earlier_last > 1)
        return false; /* a gap; side by side is none */
    if (!join_complete(a, b, &r.complete) ||
        (r.complete != UNKNOWN && r.last >= (uint64_t)r.complete))
        return false;
    *out = r;
    return true;
}

/* ---- what a request asks for (14.1.2) -----------------------------------------------------------
 */

/* The last `count` bytes. */
static bool resolve_suffix(struct slice digits, int64_t complete, struct content_range *out)
{
    uint64_t count, length = (uint64_t)complete;
    if (complete <= 0 || !take_asked(&digits, &count) || digits.len > 0 || count == 0)
        return false;
    *out = (struct content_range){ count >= length ? 0 : length - count, length - 1, complete };
    return true;
}

static bool resolve_spec(struct slice spec, int64_t complete, struct content_range *out)
{
    struct content_range r = { 0, 0, complete };
    if (take_prefix(&spec, '-'))
        return resolve_suffix(spec, complete, out);
    if (!take_asked(&spec, &r.first) || !take_prefix(&spec, '-'))
        return false;
    if (spec.len == 0) { /* to the end, wherever that is */
        if (complete == UNKNOWN)
            return false;
        r.last = INT64_MAX - 1;
    } else if (!take_asked(&spec, &r.last) || spec.len > 0) {
        return false;
    }
    if (r.last < r.first)
        return false; /* 14.1.1: invalid */
    if (complete != UNKNOWN) {
        if (r.first >= (uint64_t)complete)
            return false; /* unsatisfiable */
        if (r.last >= (uint64_t)complete)
            r.last = (uint64_t)complete - 1;
    }
    *out = r;
    return true;
}

bool cache_range_of(const struct headers *request, int64_t complete, struct content_range *out)
{
    const struct header *f = headers_find(request, HEADER_RANGE);
    if (f == NULL || f->next != 0)
        return false;
    struct slice set = f->value, spec, another;
    if (!take_unit(&set, SLICE("bytes=")))
        return false;
    if (!slice_next_in_list(&set, &spec) || slice_next_in_list(&set, &another))
        return false;
    return resolve_spec(spec, complete, out);
}
