/* proxy/answer.c: the heads of answers from the store and from the origin.
 *
 * A stored head goes out as it was kept; only what is new with each answer (length, age,
 * Cache-Status, Connection, what rules add) is written, into the exchange's own `tail`.
 */
#include "base/clock.h"
#include "proxy/exchange.h"
#include "proxy/fetch.h"

#include <stdio.h>

/* ---- heads ----------------------------------------------------------------------------------- */

bool answer_must_close(const struct exchange *x)
{
    return x->conn->must_close || x->worker->is_draining;
}

size_t answer_end_most(const struct exchange *x)
{
    return exchange_cache_status_most(x) + 64;
}

void answer_put_end(struct writer *w, struct exchange *x, int64_t ttl_s)
{
    exchange_put_cache_status(w, x, ttl_s);
    if (!x->keeps_alive)
        writer_put(w, SLICE("Connection: close\r\n"));
    else if (x->request.minor == 0)
        writer_put(w, SLICE("Connection: keep-alive\r\n"));
    writer_put(w, SLICE("\r\n"));
}

struct writer answer_tail(struct exchange *x)
{
    enum {
        OTHERS_MOST = 256
    }; /* Age, Content-Length, Content-Range, Content-Type of several parts */
    size_t most = answer_end_most(x) + OTHERS_MOST;
    if (likely(most <= sizeof x->tail))
        return writer_on(x->tail, sizeof x->tail);
    return writer_on(arena_alloc(&x->arena, most), most);
}

void answer_add_tail(struct exchange *x, const struct writer *w, const char *start)
{
    exchange_add_memory(x, slice_from(start, w->at));
}

struct slice answer_without_status_line(struct slice head)
{
    size_t line = slice_find(head, '\n') + 1;
    return (struct slice){ head.ptr + line, head.len - line };
}

/* Takes the next line, its end included, off `*rest`. */
static struct slice take_line(struct slice *rest)
{
    struct slice line = { rest->ptr, slice_find(*rest, '\n') + 1 };
    rest->ptr += line.len;
    rest->len -= line.len;
    return line;
}

static struct slice name_of(struct slice line)
{
    return (struct slice){ line.ptr, slice_find(line, ':') };
}

/* ---- what rules do to an answer ----------------------------------------------------------------
 */

/* Rules that wait for an answer now see it. */
static void rules_see(struct exchange *x, uint16_t status, const struct headers *fields)
{
    struct rule_request asked = exchange_rule_request(x);
    struct rule_response answer = { .status = status, .headers = fields };
    rules_on_response(&asked, &answer, &x->plan.effects);
}

static void rules_see_stored(struct exchange *x, const struct object_facts *facts)
{
    struct headers fields;
    struct slice rest = answer_without_status_line(facts->head);
    headers_init(&fields, arena_alloc(&x->arena, HEADERS_MAX * sizeof(struct header)), HEADERS_MAX);
    while (rest.len > 0) {
        struct slice line = take_line(&rest), name = name_of(line);
        struct slice value = { line.ptr + name.len + 1, line.len - name.len - 3 };
        if (!headers_add(&fields, name, slice_trim(value)))
            break;
    }
    rules_see(x, cache_facts_are_sliced(facts) ? 200 : facts->status, &fields);
}

/* The stored head as rules want it: unchanged, or a copy. */
static struct slice head_of(struct exchange *x, const struct object_facts *facts)
{
    if (likely(!rules_has_any(x->site)))
        return facts->head;
    struct rule_effects *effects = &x->plan.effects;
    if (effects->awaits_fields)
        rules_see_stored(x, facts);
    if (!effects->edits_response)
        return facts->head;
    struct slice lines = rules_response_lines(effects, &x->arena), rest = facts->head;
    char *start = arena_alloc(&x->arena, facts->head.len + lines.len);
    struct writer w = writer_on(start, facts->head.len + lines.len);
    writer_put(&w, take_line(&rest));
    while (rest.len > 0) {
        struct slice line = take_line(&rest);
        if (!rules_drops_response_field(effects, name_of(line)))
            writer_put(&w, line);
    }
    writer_put(&w, lines);
    return slice_from(start, w.at);
}

/* ---- from the store -------------------------------------------------------------------------- */

/* An answer cut from a stored one. */
struct stored {
    const struct object_facts *facts;
    struct slice head;
    int64_t length;   /* of the whole representation; -1: not known yet */
    uint64_t base;    /* where the object's bytes begin in it: not 0 for a part */
    uint16_t status;  /* of the whole: what is kept in slices is a 200 */
    bool is_complete; /* all of it has come */
    bool is_sliced;
};

enum fields_for { FOR_304, FOR_PART, FOR_PARTS };

/* Fields of a stored head that go into a 304 (RFC 9110 15.4.5) or a 206: all but those that
 * describe the whole body. */
static struct slice other_fields(struct exchange *x, const struct stored *s,
                                 struct slice status_line, enum fields_for what)
{
    char *start = arena_alloc(&x->arena, s->head.len + status_line.len);
    struct writer w = writer_on(start, s->head.len + status_line.len);
    struct slice rest = answer_without_status_line(s->head);
    writer_put(&w, status_line);
    while (rest.len > 0) {
        struct slice line = take_line(&rest);
        bool left_out = false;
        switch ((enum header_id)header_id_of(name_of(line))) {
        case HEADER_CONTENT_RANGE: left_out = true; break;
        case HEADER_CONTENT_TYPE: left_out = what != FOR_PART; break;
        case HEADER_CONTENT_ENCODING:
        case HEADER_CONTENT_LANGUAGE: left_out = what == FOR_304; break;
        default: break; /* few of many: all others go */
        }
        if (!left_out)
            writer_put(&w, line);
    }
    return slice_from(start, w.at);
}

/* What is new with this answer: put behind the stored fields. */
static void put_tail(struct writer *w, struct exchange *x, const struct object_facts *facts)
{
    bool from_store = x->outcome == OUTCOME_HIT || x->outcome == OUTCOME_STALE ||
                      x->outcome == OUTCOME_REVALIDATED;
    if (from_store || x->age_s > 0) {
        writer_put(w, SLICE("Age: "));
        writer_put_number(w, (uint64_t)x->age_s);
        writer_put(w, SLICE("\r\n"));
    }
    answer_put_end(w, x, (int64_t)facts->freshness.lifetime_s - x->age_s);
}

/* The lines of the tail, behind what is only for the one whose request fetched this. */
static void add_tail(struct exchange *x, const struct writer *w, const char *start)
{
    if (x->own_fields.len > 0)
        exchange_add_memory(x, x->own_fields);
    answer_add_tail(x, w, start);
}

void answer_put_length(struct writer *w, uint64_t length)
{
    writer_put(w, SLICE("Content-Length: "));
    writer_put_number(w, length);
    writer_put(w, SLICE("\r\n"));
}

static enum next answer_not_modified(struct exchange *x, const struct stored *s)
{
    struct writer tail = answer_tail(x);
    const char *start = tail.at;
    put_tail(&tail, x, s->facts);
    exchange_add_memory(x, other_fields(x, s, SLICE("HTTP/1.1 304 Not Modified\r\n"), FOR_304));
    answer_add_tail(x, &tail, start);
    x->status = 304;
    stat_add(&x->worker->stats->not_modified, 1);
    return exchange_go(x, STEP_DELIVER);
}

void answer_put_unsatisfiable(struct writer *w, const struct exchange *x, uint64_t length)
{
    writer_put(w, SLICE("HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */"));
    writer_put_number(w, length);
    writer_put(w, SLICE("\r\nContent-Length: 0\r\nDate: "));
    writer_put(w, worker_date(x->worker));
    writer_put(w, SLICE("\r\n"));
}

static enum next answer_unsatisfiable(struct exchange *x, const struct stored *s)
{
    struct writer tail = answer_tail(x);
    const char *start = tail.at;
    answer_put_unsatisfiable(&tail, x, (uint64_t)s->length);
    put_tail(&tail, x, s->facts);
    answer_add_tail(x, &tail, start);
    x->status = 416;
    return exchange_go(x, STEP_DELIVER);
}

void answer_put_content_range(struct writer *w, const struct byte_range *r, int64_t length)
{
    writer_put(w, SLICE("Content-Range: bytes "));
    writer_put_number(w, r->first);
    writer_put(w, SLICE("-"));
    writer_put_number(w, r->last);
    writer_put(w, SLICE("/"));
    if (length < 0)
        writer_put(w, SLICE("*"));
    else
        writer_put_number(w, (uint64_t)length);
    writer_put(w, SLICE("\r\n"));
}

/* One part. Of an object that still grows, too: its bytes go out as they come. */
static enum next answer_part(struct exchange *x, const struct stored *s, const struct byte_range *r)
{
    if (s->is_sliced && x->slices == NULL)
        return exchange_slices_begin(x, r->first, r->last + 1);
    struct writer tail = answer_tail(x);
    const char *start = tail.at;
    answer_put_content_range(&tail, r, s->length);
    answer_put_length(&tail, r->last - r->first + 1);
    put_tail(&tail, x, s->facts);
    exchange_add_memory(x, other_fields(x, s, SLICE("HTTP/1.1 206 Partial Content\r\n"), FOR_PART));
    add_tail(x, &tail, start);
    x->status = 206;
    stat_add(&x->worker->stats->ranges, 1);
    if (x->is_head)
        return exchange_go(x, STEP_DELIVER);
    if (s->is_sliced) {
        x->source = SOURCE_SLICES;
    } else if (s->is_complete) {
        exchange_add_object(x, r->first - s->base, r->last + 1 - s->base);
    } else {
        x->source = SOURCE_OBJECT;
        x->object_position = r->first;
        x->object_end = r->last + 1;
    }
    return exchange_go(x, STEP_DELIVER);
}

/* multipart/byteranges (RFC 9110 14.6): every part with its own small head. */
static enum next answer_parts(struct exchange *x, const struct stored *s,
                              const struct ranges *ranges)
{
    enum { PART_HEAD_MOST = 256 };
    char boundary[40];
    int boundary_length = snprintf(boundary, sizeof boundary, "larder-%016llx",
                                   (unsigned long long)(x->key.low ^ (uint64_t)x->begun_us));
    struct slice mark = { boundary, (size_t)boundary_length }, type = s->facts->content_type;
    struct slice parts[RANGES_MAX];
    uint64_t total = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        char *at = arena_alloc(&x->arena, PART_HEAD_MOST + type.len);
        struct writer w = writer_on(at, PART_HEAD_MOST + type.len);
        writer_put(&w, SLICE("\r\n--"));
        writer_put(&w, mark);
        writer_put(&w, SLICE("\r\n"));
        if (type.len > 0)
            writer_put_field(&w, SLICE("Content-Type"), type);
        answer_put_content_range(&w, &ranges->at[i], s->length);
        writer_put(&w, SLICE("\r\n"));
        parts[i] = slice_from(at, w.at);
        total += parts[i].len + ranges->at[i].last - ranges->at[i].first + 1;
    }
    struct slice closing = arena_printf(&x->arena, "\r\n--%s--\r\n", boundary);
    total += closing.len;

    struct writer tail = answer_tail(x);
    const char *start = tail.at;
    writer_put(&tail, SLICE("Content-Type: multipart/byteranges; boundary="));
    writer_put(&tail, mark);
    writer_put(&tail, SLICE("\r\n"));
    answer_put_length(&tail, total);
    put_tail(&tail, x, s->facts);
    exchange_add_memory(x,
                        other_fields(x, s, SLICE("HTTP/1.1 206 Partial Content\r\n"), FOR_PARTS));
    add_tail(x, &tail, start);
    x->status = 206;
    stat_add(&x->worker->stats->ranges, 1);
    for (size_t i = 0; i < ranges->count && !x->is_head; i++) {
        exchange_add_memory(x, parts[i])->is_body = true;
        exchange_add_object(x, ranges->at[i].first, ranges->at[i].last + 1);
    }
    if (!x->is_head)
        exchange_add_memory(x, closing)->is_body = true;
    return exchange_go(x, STEP_DELIVER);
}

/* What slices are not for: the client's own request goes to the origin. */
static enum next pass_sliced(struct exchange *x, enum reason why)
{
    x->outcome = OUTCOME_PASS;
    x->reason = why;
    exchange_leave_read_section(x);
    exchange_detach_reader(x);
    fetch_leader_left(&x->fetch);
    if (x->owns_object)
        cache_object_unref(&x->object);
    x->owns_object = false;
    x->object = NULL;
    return exchange_go(x, STEP_PASS);
}

static enum next answer_whole(struct exchange *x, const struct stored *s)
{
    const struct object_facts *facts = s->facts;
    bool has_body = s->status != 204 && s->status != 304;
    if (s->is_sliced && x->slices == NULL && !x->is_head)
        return exchange_slices_are_too_many(x->snapshot->config, (uint64_t)s->length)
                   ? pass_sliced(x, REASON_OBJECT_LARGE)
                   : exchange_slices_begin(x, 0, (uint64_t)s->length);
    struct writer tail = answer_tail(x);
    const char *start = tail.at;
    if (s->length >= 0 && has_body) {
        answer_put_length(&tail, (uint64_t)s->length);
    } else if (has_body && x->request.minor > 0) {
        x->framing = OUT_CHUNKED;
        writer_put(&tail, SLICE("Transfer-Encoding: chunked\r\n"));
    } else if (has_body) {
        x->framing = OUT_CLOSE;
        x->keeps_alive = false;
    }
    put_tail(&tail, x, facts);
    exchange_add_memory(x, s->head);
    add_tail(x, &tail, start);
    x->status = s->status;
    if (x->is_head || !has_body)
        return exchange_go(x, STEP_DELIVER);
    if (s->is_sliced) {
        x->source = SOURCE_SLICES;
        return exchange_go(x, STEP_DELIVER);
    }
    /* it may have become complete only since its length was asked: the head then says chunked */
    if (s->length >= 0 && cache_object_state(x->object) == OBJECT_COMPLETE) {
        exchange_add_object(x, 0, (uint64_t)s->length);
    } else {
        x->source = SOURCE_OBJECT;
        x->object_position = 0;
        x->object_end = s->length >= 0 ? (uint64_t)s->length : UINT64_MAX;
    }
    return exchange_go(x, STEP_DELIVER);
}

/* A stored part: the look-up has found that what is asked for lies in it. */
static enum next answer_from_part(struct exchange *x, struct stored *s)
{
    const struct content_range *part = &s->facts->part;
    struct content_range wanted;
    struct byte_range r = { part->first, part->last };
    s->length = part->complete;
    s->base = part->first;
    if (cache_range_of(&x->request.headers, part->complete, &wanted) &&
        wanted.first >= part->first && wanted.last <= part->last)
        r = (struct byte_range){ wanted.first, wanted.last };
    /* RFC 9110 13.2.2: the condition comes before the range */
    if (cache_conditional(&x->request.headers, &s->facts->validators, clock_wall_s()) ==
        CONDITIONAL_NOT_MODIFIED)
        return answer_not_modified(x, s);
    return answer_part(x, s, &r);
}

static struct stored stored_of(struct exchange *x)
{
    struct cache_object *o = unlikely(x->slices != NULL) ? exchange_slices_record(x) : x->object;
    const struct object_facts *facts = cache_object_facts(o);
    struct stored s = { .facts = facts,
                        .status = facts->status,
                        .is_complete = cache_object_state(o) == OBJECT_COMPLETE };
    s.length = cache_object_length(o); /* after the state */
    s.head = head_of(x, facts);
    if (unlikely(cache_facts_are_sliced(facts))) {
        s.is_sliced = true;
        s.status = 200;
        s.length = facts->part.complete;
    }
    return s;
}

enum next step_answer_object(struct exchange *x)
{
    struct stored s = stored_of(x);
    const struct object_facts *facts = s.facts;
    x->keeps_alive = x->keeps_alive && !answer_must_close(x);
    x->framing = OUT_LENGTH;
    if (unlikely(s.status == 206))
        return answer_from_part(x, &s);
    const struct headers *h = &x->request.headers;
    bool has_condition =
        headers_has(h, HEADER_IF_NONE_MATCH) || headers_has(h, HEADER_IF_MODIFIED_SINCE);
    bool has_range = headers_has(h, HEADER_RANGE) && s.status == 200 && !x->is_head;
    if (likely(!has_condition && !has_range))
        return answer_whole(x, &s);

    int64_t wall = clock_wall_s();
    if (has_condition && s.status == 200 &&
        cache_conditional(h, &facts->validators, wall) == CONDITIONAL_NOT_MODIFIED)
        return answer_not_modified(x, &s);
    if (!has_range || s.length < 0) /* of an unknown length no part can be named: the whole is as
                                       right (RFC 9110 14.2) */
        return answer_whole(x, &s);
    struct ranges ranges;
    switch (cache_ranges(h, &facts->validators, (uint64_t)s.length, wall, &ranges)) {
    case RANGE_WHOLE: return answer_whole(x, &s);
    case RANGE_UNSATISFIABLE: return answer_unsatisfiable(x, &s);
    case RANGE_PARTS: break;
    }
    if (ranges.count == 1)
        return answer_part(x, &s, &ranges.at[0]);
    if (s.is_sliced)
        return pass_sliced(x, REASON_RANGE); /* the origin puts them together */
    return s.is_complete ? answer_parts(x, &s, &ranges) : answer_whole(x, &s);
}

/* ---- from the origin ------------------------------------------------------------------------- */

static bool goes_to_client(const struct exchange *x, const struct headers *all,
                           const struct header *h)
{
    if (header_is_hop_by_hop(h->id) || h->id == HEADER_CONTENT_LENGTH ||
        h->id == HEADER_SURROGATE_CONTROL || headers_is_nominated(all, h->name))
        return false;
    if (!x->snapshot->config->sends_tags && cache_is_tag_field(h->name))
        return false;
    return !rules_has_any(x->site) || !rules_drops_response_field(&x->plan.effects, h->name);
}

/* "5, 5" was read as 5 (RFC 9110 8.6), and is not sent on as it came. */
static struct slice first_of(struct slice list)
{
    return slice_trim((struct slice){ list.ptr, slice_find(list, ',') });
}

enum next step_answer_pass(struct exchange *x)
{
    const struct h1_response *r = fetch_response(x->fetch);
    const struct headers *h = &r->headers;
    x->origin_status = r->status;
    if (exchange_has_better(x, r->status)) {
        fetch_free(&x->fetch);
        return exchange_origin_failed(x, FAULT_ORIGIN_ERROR);
    }
    exchange_invalidate(x, r);
    if (x->is_head && x->stale != NULL)
        fetch_freshen(x);
    exchange_tee_begin(x);
    struct slice lines = SLICE_NONE;
    if (rules_has_any(x->site)) {
        if (x->plan.effects.awaits_fields)
            rules_see(x, r->status, h);
        if (x->plan.effects.edits_response)
            lines = rules_response_lines(&x->plan.effects, &x->arena);
    }

    size_t most = 512 + r->reason.len + lines.len + answer_end_most(x);
    for (unsigned i = 0; i < h->count; i++)
        most += h->at[i].name.len + h->at[i].value.len + 4;
    char *start = arena_alloc(&x->arena, most);
    struct writer w = writer_on(start, most);
    writer_put(&w, SLICE("HTTP/1.1 "));
    writer_put_number(&w, r->status);
    writer_put(&w, SLICE(" "));
    writer_put(&w, r->reason);
    writer_put(&w, SLICE("\r\n"));
    for (unsigned i = 0; i < h->count; i++)
        if (goes_to_client(x, h, &h->at[i]))
            writer_put_field(&w, h->at[i].name, h->at[i].value);
    if (!headers_has(h, HEADER_DATE))
        writer_put_field(&w, SLICE("Date"), worker_date(x->worker));
    writer_put(&w, r->minor == 0 ? SLICE("Via: 1.0 larder\r\n") : SLICE("Via: 1.1 larder\r\n"));
    writer_put(&w, lines);

    x->status = r->status;
    x->keeps_alive = x->keeps_alive && !answer_must_close(x);
    /* The origin answered before it had the whole request: what is left of that is of no use, and
     * the client learns it by the close. */
    if (x->conn->body == BODY_UNREAD)
        x->keeps_alive = false;
    x->framing = OUT_LENGTH;
    x->source = SOURCE_FETCH;
    bool no_body = x->is_head || r->status == 204 || r->status == 304;
    switch (r->framing) {
    case FRAMING_NONE: /* HEAD, 204, 304: the length is that of what GET would give (RFC 9110 8.6)
                        */
        if (no_body && r->status != 204 && headers_has(h, HEADER_CONTENT_LENGTH))
            writer_put_field(&w, SLICE("Content-Length"),
                             first_of(headers_value(h, HEADER_CONTENT_LENGTH)));
        else if (!no_body)
            writer_put(&w, SLICE("Content-Length: 0\r\n"));
        break;
    case FRAMING_LENGTH: answer_put_length(&w, r->length); break;
    case FRAMING_CHUNKED:
    case FRAMING_CLOSE:
        if (x->request.minor > 0) {
            x->framing = OUT_CHUNKED;
            writer_put(&w, SLICE("Transfer-Encoding: chunked\r\n"));
        } else {
            x->framing = OUT_CLOSE;
            x->keeps_alive = false;
        }
        break;
    }
    answer_put_end(&w, x, exchange_tee_ttl_s(x));
    exchange_add_memory(x, slice_from(start, w.at));
    return exchange_go(x, STEP_DELIVER);
}
