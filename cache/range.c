/* cache/range.c: Range and If-Range against a stored response (RFC 9110 14, 13.1.5); see decide.h.
 * Pure; any thread. */
#include "cache/decide.h"

#include "base/dates.h"

/* ---- If-Range (13.1.5) ----------------------------------------------------------------------- */

/* "distinguished by examining the first three characters for a DQUOTE" */
static bool is_tag(struct slice s)
{
    struct slice front = { s.ptr, s.len < 3 ? s.len : 3 };
    return slice_find(front, '"') < front.len;
}

/* Strong comparison (8.8.3.2): a weak one on either side never matches. */
static bool tag_matches(struct slice tag, struct slice stored)
{
    return stored.len > 0 && stored.ptr[0] == '"' && slice_equal(tag, stored);
}

/* 8.8.2.2: a date is strong when the response was made at least a second after the change that it
 * names. */
static bool is_date_strong(const struct validators *v)
{
    return v->last_modified_s >= 0 && v->date_s >= 0 && v->date_s - v->last_modified_s >= 1;
}

bool cache_if_range_holds(const struct headers *request, const struct validators *v,
                          int64_t now_wall_s)
{
    const struct header *f = headers_find(request, HEADER_IF_RANGE);
    if (f == NULL)
        return true;
    if (f->next != 0)
        return false;
    if (is_tag(f->value))
        return tag_matches(f->value, v->etag);
    int64_t date_s;
    return date_parse(f->value, now_wall_s, &date_s) && is_date_strong(v) &&
           date_s == v->last_modified_s;
}

/* ---- Range (14.1) ---------------------------------------------------------------------------- */

enum spec { SPEC_INVALID, SPEC_UNSATISFIABLE, SPEC_RANGE };

static size_t digits_length(struct slice s)
{
    size_t len = 0;
    while (len < s.len && s.ptr[len] >= '0' && s.ptr[len] <= '9')
        len++;
    return len;
}

/* A position beyond 2^64 is beyond any length. */
static uint64_t position_of(struct slice digits)
{
    uint64_t value;
    return slice_to_u64(digits, &value) ? value : UINT64_MAX;
}

static enum spec read_suffix(struct slice digits, uint64_t length, struct byte_range *out)
{
    if (digits.len == 0 || digits_length(digits) != digits.len)
        return SPEC_INVALID;
    uint64_t count = position_of(digits);
    if (count == 0)
        return SPEC_UNSATISFIABLE; /* 14.1.2 */
    *out = (struct byte_range){ count >= length ? 0 : length - count, length - 1 };
    return SPEC_RANGE;
}

static enum spec read_spec(struct slice s, uint64_t length, struct byte_range *out)
{
    size_t first_len = digits_length(s);
    if (first_len == s.len || s.ptr[first_len] != '-')
        return SPEC_INVALID;
    struct slice after = { s.ptr + first_len + 1, s.len - first_len - 1 };
    if (first_len == 0)
        return read_suffix(after, length, out);
    if (digits_length(after) != after.len)
        return SPEC_INVALID;
    uint64_t first = position_of((struct slice){ s.ptr, first_len });
    uint64_t last = after.len == 0 ? UINT64_MAX : position_of(after);
    if (last < first)
        return SPEC_INVALID; /* 14.1.1 */
    if (first >= length)
        return SPEC_UNSATISFIABLE;
    *out = (struct byte_range){ first, last < length ? last : length - 1 };
    return SPEC_RANGE;
}

/* 14.2 lets us ignore what a broken client or an attacker sends: ranges that overlap, or that go
 * back more than once. A client that reads a catalogue at the end and then the rest goes back once.
 */
static bool is_abuse(const struct ranges *r)
{
    size_t back_count = 0;
    for (size_t i = 0; i < r->count; i++) {
        back_count += i > 0 && r->at[i].first < r->at[i - 1].first;
        for (size_t j = 0; j < i; j++)
            if (r->at[i].first <= r->at[j].last && r->at[j].first <= r->at[i].last)
                return true;
    }
    return back_count > 1;
}

static enum range_verdict read_set(struct slice set, uint64_t length, struct ranges *out)
{
    struct slice spec;
    size_t seen_count = 0;
    while (slice_next_in_list(&set, &spec)) {
        if (++seen_count > RANGES_MAX)
            return RANGE_WHOLE;
        struct byte_range range;
        switch (read_spec(spec, length, &range)) {
        case SPEC_INVALID:
            return RANGE_WHOLE; /* 14.1.1: one that is invalid makes all of it invalid */
        case SPEC_UNSATISFIABLE: break;
        case SPEC_RANGE: out->at[out->count++] = range; break;
        }
    }
    if (seen_count == 0 || is_abuse(out))
        return RANGE_WHOLE;
    return out->count == 0 ? RANGE_UNSATISFIABLE : RANGE_PARTS;
}

enum range_verdict cache_ranges(const struct headers *request, const struct validators *v,
                                uint64_t length, int64_t now_wall_s, struct ranges *out)
{
    static const struct slice unit = SLICE_INIT("bytes=");
    out->count = 0;
    const struct header *f = headers_find(request, HEADER_RANGE);
    if (f == NULL || f->next != 0 || length == 0) /* of nothing there are no parts (14.2) */
        return RANGE_WHOLE;
    if (!slice_has_prefix_nocase(f->value, unit)) /* 14.2: a unit that we do not know */
        return RANGE_WHOLE;
    if (!cache_if_range_holds(request, v, now_wall_s))
        return RANGE_WHOLE;
    enum range_verdict verdict =
        read_set((struct slice){ f->value.ptr + unit.len, f->value.len - unit.len }, length, out);
    if (verdict != RANGE_PARTS)
        out->count = 0;
    return verdict;
}
