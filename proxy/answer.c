/* proxy/answer.c: the heads of answers: from the store, from the origin, from a file, from
 * ourselves.
 *
 * A stored head goes out as it was kept; only what is new with each answer (length, age,
 * Cache-Status, Connection) is written, into the exchange's own `tail`.
 */
#include "base/clock.h"
#include "base/dates.h"
#include "proxy/exchange.h"
#include "proxy/fetch.h"
#include "proxy/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- writing
 * -----------------------------------------------------------------------------------------------------
 */

struct writer {
    char *at, *end;
};

static void put(struct writer *w, struct slice s)
{
    CHECK((size_t)(w->end - w->at) >= s.len);
    if (s.len > 0)
        memcpy(w->at, s.ptr, s.len);
    w->at += s.len;
}

static void put_number(struct writer *w, uint64_t n)
{
    char digits[20];
    char *at = digits + sizeof digits;
    do
        *--at = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    put(w, slice_from(at, digits + sizeof digits));
}

static void put_field(struct writer *w, struct slice name, struct slice value)
{
    put(w, name);
    put(w, SLICE(": "));
    put(w, value);
    put(w, SLICE("\r\n"));
}

/* Connection, by what the client speaks, and the empty line. */
static void put_end(struct writer *w, const struct exchange *x)
{
    if (!x->keeps_alive)
        put(w, SLICE("Connection: close\r\n"));
    else if (x->request.minor == 0)
        put(w, SLICE("Connection: keep-alive\r\n"));
    put(w, SLICE("\r\n"));
}

/* RFC 9211: what this cache did, and why. */
static void put_cache_status(struct writer *w, const struct exchange *x, int64_t ttl_s)
{
    put(w, SLICE("Cache-Status: larder"));
    if (x->outcome == OUTCOME_HIT) {
        put(w, SLICE("; hit; ttl="));
        put_number(w, ttl_s < 0 ? 0 : (uint64_t)ttl_s);
        put(w, SLICE("\r\n"));
        return;
    }
    const char *fwd = reason_fwd(x->reason);
    if (fwd[0] != '\0') {
        put(w, SLICE("; fwd="));
        put(w, slice_of(fwd));
    }
    if (x->outcome == OUTCOME_REVALIDATED)
        put(w, SLICE("; fwd-status=304; stored"));
    if (x->outcome == OUTCOME_MISS && x->object != NULL)
        put(w, SLICE("; stored"));
    if (x->outcome == OUTCOME_COLLAPSED)
        put(w, SLICE("; collapsed"));
    if (x->outcome == OUTCOME_FAULT || x->outcome == OUTCOME_REFUSED ||
        x->outcome == OUTCOME_PASS) {
        put(w, SLICE("; detail="));
        put(w, slice_of(reason_word(x->reason)));
    }
    put(w, SLICE("\r\n"));
}

/* ---- segments
 * ----------------------------------------------------------------------------------------------------
 */

static struct segment *add(struct exchange *x)
{
    if (x->segment_at == x->segment_count)
        x->segment_at = x->segment_count = 0;
    if (x->segment_count == x->segment_capacity) {
        struct segment *more = arena_alloc(&x->arena, 2 * x->segment_capacity * sizeof *more);
        memcpy(more, x->segments, x->segment_count * sizeof *more);
        x->segments = more;
        x->segment_capacity *= 2;
    }
    return &x->segments[x->segment_count++];
}

struct segment *exchange_add_memory(struct exchange *x, struct slice bytes)
{
    struct segment *s = add(x);
    *s = (struct segment){ .kind = SEGMENT_MEMORY, .mem = bytes.ptr, .to = bytes.len };
    return s;
}

void exchange_add_object(struct exchange *x, uint64_t from, uint64_t to)
{
    if (from < to)
        *add(x) =
            (struct segment){ .kind = SEGMENT_OBJECT, .is_body = true, .from = from, .to = to };
}

static bool must_close(const struct exchange *x)
{
    return x->conn->must_close || x->worker->is_draining;
}

/* ---- from the store -------------------------------------------------------------------------- */

static struct slice without_status_line(struct slice head)
{
    size_t line = slice_find(head, '\n') + 1;
    return (struct slice){ head.ptr + line, head.len - line };
}

/* Fields of a stored head that go into a 304 (RFC 9110 15.4.5) or into a multipart 206: all but
 * those of the body. */
static void put_other_fields(struct writer *w, struct slice head, bool is_304)
{
    struct slice rest = without_status_line(head);
    while (rest.len > 0) {
        size_t length = slice_find(rest, '\n') + 1;
        struct slice line = { rest.ptr, length };
        enum header_id id = header_id_of((struct slice){ line.ptr, slice_find(line, ':') });
        bool left_out =
            id == HEADER_CONTENT_TYPE ||
            (is_304 && (id == HEADER_CONTENT_ENCODING || id == HEADER_CONTENT_LANGUAGE));
        if (!left_out)
            put(w, line);
        rest.ptr += length;
        rest.len -= length;
    }
}

/* What is new with this answer: put behind the stored fields. */
static void put_tail(struct writer *w, struct exchange *x, const struct object_facts *facts)
{
    bool from_store = x->outcome == OUTCOME_HIT || x->outcome == OUTCOME_STALE ||
                      x->outcome == OUTCOME_REVALIDATED;
    if (from_store || x->age_s > 0) {
        put(w, SLICE("Age: "));
        put_number(w, (uint64_t)x->age_s);
        put(w, SLICE("\r\n"));
    }
    put_cache_status(w, x, (int64_t)facts->freshness.lifetime_s - x->age_s);
    put_end(w, x);
}

static void put_length(struct writer *w, uint64_t length)
{
    put(w, SLICE("Content-Length: "));
    put_number(w, length);
    put(w, SLICE("\r\n"));
}

static struct writer tail_writer(struct exchange *x)
{
    return (struct writer){ x->tail, x->tail + sizeof x->tail };
}

static void add_tail(struct exchange *x, const struct writer *w)
{
    exchange_add_memory(x, slice_from(x->tail, w->at));
}

static enum next answer_not_modified(struct exchange *x, const struct object_facts *facts)
{
    char *start = arena_alloc(&x->arena, facts->head.len + 64);
    struct writer head = { start, start + facts->head.len + 64 };
    put(&head, SLICE("HTTP/1.1 304 Not Modified\r\n"));
    put_other_fields(&head, facts->head, true);
    struct writer tail = tail_writer(x);
    put_tail(&tail, x, facts);
    exchange_add_memory(x, slice_from(start, head.at));
    add_tail(x, &tail);
    x->status = 304;
    stat_add(&x->worker->stats->not_modified, 1);
    return exchange_go(x, STEP_DELIVER);
}

static void put_unsatisfiable(struct writer *w, const struct exchange *x, uint64_t length)
{
    put(w, SLICE("HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */"));
    put_number(w, length);
    put(w, SLICE("\r\nContent-Length: 0\r\nDate: "));
    put(w, worker_date(x->worker));
    put(w, SLICE("\r\n"));
}

static enum next answer_unsatisfiable(struct exchange *x, const struct object_facts *facts,
                                      uint64_t length)
{
    struct writer tail = tail_writer(x);
    put_unsatisfiable(&tail, x, length);
    put_tail(&tail, x, facts);
    add_tail(x, &tail);
    x->status = 416;
    return exchange_go(x, STEP_DELIVER);
}

static void put_content_range(struct writer *w, const struct byte_range *r, uint64_t length)
{
    put(w, SLICE("Content-Range: bytes "));
    put_number(w, r->first);
    put(w, SLICE("-"));
    put_number(w, r->last);
    put(w, SLICE("/"));
    put_number(w, length);
    put(w, SLICE("\r\n"));
}

static enum next answer_part(struct exchange *x, const struct object_facts *facts,
                             const struct byte_range *r, uint64_t length)
{
    struct writer tail = tail_writer(x);
    put_content_range(&tail, r, length);
    put_length(&tail, r->last - r->first + 1);
    put_tail(&tail, x, facts);
    exchange_add_memory(x, SLICE("HTTP/1.1 206 Partial Content\r\n"));
    exchange_add_memory(x, without_status_line(facts->head));
    add_tail(x, &tail);
    if (!x->is_head)
        exchange_add_object(x, r->first, r->last + 1);
    return exchange_go(x, STEP_DELIVER);
}

/* multipart/byteranges (RFC 9110 14.6): every part with its own small head. */
static enum next answer_parts(struct exchange *x, const struct object_facts *facts,
                              const struct ranges *ranges, uint64_t length)
{
    char boundary[40];
    int boundary_length = snprintf(boundary, sizeof boundary, "larder-%016llx",
                                   (unsigned long long)(x->key.low ^ (uint64_t)x->begun_us));
    struct slice mark = { boundary, (size_t)boundary_length };
    struct slice parts[RANGES_MAX];
    uint64_t total = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        char *start = arena_alloc(&x->arena, 256 + facts->content_type.len);
        struct writer w = { start, start + 256 + facts->content_type.len };
        put(&w, SLICE("\r\n--"));
        put(&w, mark);
        put(&w, SLICE("\r\n"));
        if (facts->content_type.len > 0)
            put_field(&w, SLICE("Content-Type"), facts->content_type);
        put_content_range(&w, &ranges->at[i], length);
        put(&w, SLICE("\r\n"));
        parts[i] = slice_from(start, w.at);
        total += parts[i].len + ranges->at[i].last - ranges->at[i].first + 1;
    }
    struct slice closing = arena_printf(&x->arena, "\r\n--%s--\r\n", boundary);
    total += closing.len;

    char *start = arena_alloc(&x->arena, facts->head.len + 64);
    struct writer head = { start, start + facts->head.len + 64 };
    put(&head, SLICE("HTTP/1.1 206 Partial Content\r\n"));
    put_other_fields(&head, facts->head, false);
    struct writer tail = tail_writer(x);
    put(&tail, SLICE("Content-Type: multipart/byteranges; boundary="));
    put(&tail, mark);
    put(&tail, SLICE("\r\n"));
    put_length(&tail, total);
    put_tail(&tail, x, facts);
    exchange_add_memory(x, slice_from(start, head.at));
    add_tail(x, &tail);
    for (size_t i = 0; i < ranges->count && !x->is_head; i++) {
        exchange_add_memory(x, parts[i])->is_body = true;
        exchange_add_object(x, ranges->at[i].first, ranges->at[i].last + 1);
    }
    if (!x->is_head)
        exchange_add_memory(x, closing)->is_body = true;
    return exchange_go(x, STEP_DELIVER);
}

static enum next answer_whole(struct exchange *x, const struct object_facts *facts, int64_t length)
{
    bool has_body = facts->status != 204 && facts->status != 304;
    struct writer tail = tail_writer(x);
    if (length >= 0 && has_body) {
        put_length(&tail, (uint64_t)length);
    } else if (has_body && x->request.minor > 0) {
        x->framing = OUT_CHUNKED;
        put(&tail, SLICE("Transfer-Encoding: chunked\r\n"));
    } else if (has_body) {
        x->framing = OUT_CLOSE;
        x->keeps_alive = false;
    }
    put_tail(&tail, x, facts);
    exchange_add_memory(x, facts->head);
    add_tail(x, &tail);
    x->status = facts->status;
    if (x->is_head || !has_body)
        return exchange_go(x, STEP_DELIVER);
    /* it may have become complete only since its length was asked: the head then says chunked */
    if (length >= 0 && cache_object_state(x->object) == OBJECT_COMPLETE) {
        exchange_add_object(x, 0, (uint64_t)length);
    } else {
        x->source = SOURCE_OBJECT;
        x->object_position = 0;
        x->object_end = length >= 0 ? (uint64_t)length : UINT64_MAX;
    }
    return exchange_go(x, STEP_DELIVER);
}

enum next step_answer_object(struct exchange *x)
{
    const struct object_facts *facts = cache_object_facts(x->object);
    bool is_complete = cache_object_state(x->object) == OBJECT_COMPLETE; /* before the length */
    int64_t length = cache_object_length(x->object);
    x->keeps_alive = x->keeps_alive && !must_close(x);
    x->framing = OUT_LENGTH;
    const struct headers *h = &x->request.headers;
    bool has_condition =
        headers_has(h, HEADER_IF_NONE_MATCH) || headers_has(h, HEADER_IF_MODIFIED_SINCE);
    bool has_range = headers_has(h, HEADER_RANGE) && facts->status == 200 && !x->is_head;
    if (likely(!has_condition && !has_range))
        return answer_whole(x, facts, length);

    int64_t wall = clock_wall_s();
    if (has_condition && facts->status == 200 &&
        cache_conditional(h, &facts->validators, wall) == CONDITIONAL_NOT_MODIFIED)
        return answer_not_modified(x, facts);
    struct ranges ranges;
    if (!has_range || !is_complete) /* while it grows the whole is the simpler right answer (RFC
                                       9110 14.2: a server may ignore Range) */
        return answer_whole(x, facts, length);
    switch (cache_ranges(h, &facts->validators, (uint64_t)length, wall, &ranges)) {
    case RANGE_WHOLE: return answer_whole(x, facts, length);
    case RANGE_UNSATISFIABLE: return answer_unsatisfiable(x, facts, (uint64_t)length);
    case RANGE_PARTS: break;
    }
    x->status = 206;
    stat_add(&x->worker->stats->ranges, 1);
    return ranges.count == 1 ? answer_part(x, facts, &ranges.at[0], (uint64_t)length)
                             : answer_parts(x, facts, &ranges, (uint64_t)length);
}

/* ---- from the origin ------------------------------------------------------------------------- */

static bool goes_to_client(const struct headers *all, const struct header *h)
{
    return !header_is_hop_by_hop(h->id) && h->id != HEADER_CONTENT_LENGTH &&
           !headers_is_nominated(all, h->name);
}

/* An unsafe method that the origin did not refuse has changed what is stored (RFC 9111 4.4). */
static void invalidate(struct exchange *x, uint16_t status)
{
    if (h1_method_is_safe(x->request.method) || status < 200 || status >= 400)
        return;
    unsigned gone = cache_purge_key(x->worker->house->cache, &x->key);
    stat_add(&x->worker->stats->invalidated, gone);
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
    invalidate(x, r->status);

    size_t most = 512 + r->reason.len;
    for (unsigned i = 0; i < h->count; i++)
        most += h->at[i].name.len + h->at[i].value.len + 4;
    char *start = arena_alloc(&x->arena, most);
    struct writer w = { start, start + most };
    put(&w, SLICE("HTTP/1.1 "));
    put_number(&w, r->status);
    put(&w, SLICE(" "));
    put(&w, r->reason);
    put(&w, SLICE("\r\n"));
    for (unsigned i = 0; i < h->count; i++)
        if (goes_to_client(h, &h->at[i]))
            put_field(&w, h->at[i].name, h->at[i].value);
    if (!headers_has(h, HEADER_DATE))
        put_field(&w, SLICE("Date"), worker_date(x->worker));
    put(&w, r->minor == 0 ? SLICE("Via: 1.0 larder\r\n") : SLICE("Via: 1.1 larder\r\n"));

    x->status = r->status;
    x->keeps_alive = x->keeps_alive && !must_close(x);
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
            put_field(&w, SLICE("Content-Length"),
                      first_of(headers_value(h, HEADER_CONTENT_LENGTH)));
        else if (!no_body)
            put(&w, SLICE("Content-Length: 0\r\n"));
        break;
    case FRAMING_LENGTH: put_length(&w, r->length); break;
    case FRAMING_CHUNKED:
    case FRAMING_CLOSE:
        if (x->request.minor > 0) {
            x->framing = OUT_CHUNKED;
            put(&w, SLICE("Transfer-Encoding: chunked\r\n"));
        } else {
            x->framing = OUT_CLOSE;
            x->keeps_alive = false;
        }
        break;
    }
    put_cache_status(&w, x, 0);
    put_end(&w, x);
    exchange_add_memory(x, slice_from(start, w.at));
    return exchange_go(x, STEP_DELIVER);
}

/* ---- from ourselves -------------------------------------------------------------------------- */

static const char *reason_phrase(uint16_t status)
{
    switch (status) {
    case 200: return "OK";
    case 301: return "Moved Permanently";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return "Error";
    }
}

/* A small page that says what is wrong and who says so; nothing of the request is repeated in it.
 */
static void add_page(struct exchange *x, const char *text, const char *fields)
{
    uint16_t status = x->status;
    const char *phrase = reason_phrase(status);
    struct slice page = SLICE_NONE;
    if (status != 200)
        page = arena_printf(
            &x->arena,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%u "
            "%s</title></head>\n"
            "<body><h1>%u %s</h1>\n<p>%s</p>\n<hr><p><small>larder: %s</small></p></body></html>\n",
            status, phrase, status, phrase, text, reason_word(x->reason));
    char status_line[160];
    struct writer cs = { status_line, status_line + sizeof status_line };
    put_cache_status(&cs, x, 0);
    struct slice date = worker_date(x->worker);
    struct slice head =
        arena_printf(&x->arena,
                     "HTTP/1.1 %u %s\r\nDate: " SLICE_FMT
                     "\r\nServer: larder\r\n%sContent-Length: %zu\r\nCache-Control: no-store\r\n"
                     "%s" SLICE_FMT,
                     status, phrase, SLICE_ARG(date),
                     page.len > 0 ? "Content-Type: text/html; charset=utf-8\r\n" : "", page.len,
                     fields, (int)(cs.at - status_line), status_line);
    struct writer tail = tail_writer(x);
    put_end(&tail, x);
    exchange_add_memory(x, head);
    add_tail(x, &tail);
    if (!x->is_head && page.len > 0)
        exchange_add_memory(x, page)->is_body = true;
}

enum next step_refuse(struct exchange *x)
{
    const struct fault_row *row = fault_row(x->fault);
    x->outcome = row->outcome;
    x->reason = row->reason;
    x->status = row->status;
    const char *text = row->text;
    if (x->cause != H1_OK) {
        x->status = h1_cause_status(x->cause);
        text = h1_cause_text(x->cause);
        if (x->status == 413 || x->status == 414 || x->status == 431)
            x->reason = REASON_TOO_LARGE;
    }
    bool has_doubt = x->fault == FAULT_BAD_REQUEST || x->fault == FAULT_HEAD_SLOW ||
                     x->fault == FAULT_BODY_SLOW || x->fault == FAULT_BODY_LARGE ||
                     x->fault == FAULT_NOT_TUNNELLED || x->fault == FAULT_EXPECTATION;
    x->keeps_alive = x->keeps_alive && !has_doubt && !must_close(x);
    const char *fields = x->status == 405   ? "Allow: GET, HEAD\r\n"
                         : x->status == 503 ? "Retry-After: 1\r\n"
                                            : "";
    if (x->status == 405 && x->site != NULL && x->site->origin->kind == ORIGIN_SERVERS)
        fields = "Allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS\r\n";
    if (x->fault == FAULT_NONE)
        fields = "Allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS\r\n"; /* OPTIONS * */
    x->source = SOURCE_NONE;
    x->framing = OUT_LENGTH;
    add_page(x, text, fields);
    return exchange_go(x, STEP_DELIVER);
}

/* ---- from a directory ------------------------------------------------------------------------ */

enum { FILE_STORED_MAX = 1 << 20 };

static struct slice file_head(struct exchange *x, const struct files_answer *a)
{
    char modified[DATE_LENGTH], coding[64] = "";
    date_format(a->modified_s, modified);
    if (a->coding.len > 0)
        snprintf(coding, sizeof coding, "Content-Encoding: " SLICE_FMT "\r\n",
                 SLICE_ARG(a->coding));
    return arena_printf(
        &x->arena,
        "HTTP/1.1 200 OK\r\nServer: larder\r\nDate: " SLICE_FMT "\r\nContent-Type: " SLICE_FMT
        "\r\n%sETag: " SLICE_FMT "\r\nLast-Modified: %.*s\r\nAccept-Ranges: bytes\r\n%s",
        SLICE_ARG(worker_date(x->worker)), SLICE_ARG(a->type), coding, SLICE_ARG(a->etag),
        DATE_LENGTH, modified, a->varies ? "Vary: Accept-Encoding\r\n" : "");
}

static void file_facts(struct exchange *x, const struct files_answer *a, struct object_facts *facts)
{
    uint32_t check_s = x->site->origin->check_ms / 1000;
    struct slice field = SLICE("Accept-Encoding");
    *facts = (struct object_facts){ .status = 200,
                                    .freshness = { .lifetime_s = (int32_t)check_s,
                                                   .source = LIFETIME_DEFAULT },
                                    .received_ms = clock_mono_ms(),
                                    .head = file_head(x, a),
                                    .validators = { .etag = a->etag,
                                                    .last_modified_s = a->modified_s,
                                                    .date_s = clock_wall_s() },
                                    .content_encoding = a->coding,
                                    .content_type = a->type,
                                    .length_bytes = (int64_t)a->length };
    if (!a->varies)
        return;
    struct header vary;
    struct headers h;
    headers_init(&h, &vary, 1);
    CHECK(headers_add(&h, SLICE("Vary"), field));
    facts->selecting = cache_vary_make(&x->arena, &h, &x->request.headers);
}

/* Reads the whole of a small file into a fill. False when it broke. */
static bool read_file(struct exchange *x, struct cache_fill *fill, const struct files_answer *a)
{
    uint64_t done = 0;
    while (done < a->length) {
        ssize_t got = pread(a->fd, x->worker->origin_bytes, ORIGIN_SCRATCH, (off_t)done);
        if (got <= 0 || (uint64_t)got > a->length - done)
            return false; /* it changed while we read: the next request sees the new one */
        if (cache_fill_append(fill, (struct slice){ x->worker->origin_bytes, (size_t)got }) ==
            FILL_PAUSE)
            return false;
        done += (uint64_t)got;
    }
    return true;
}

/* A large file goes out from its descriptor: the system's page cache is its store. */
static enum next answer_from_descriptor(struct exchange *x, const struct files_answer *a)
{
    x->file_fd = a->fd;
    x->outcome = OUTCOME_PASS;
    if (a->length > FILE_STORED_MAX)
        x->reason = REASON_FILE;
    x->status = 200;
    x->framing = OUT_LENGTH;
    x->keeps_alive = x->keeps_alive && !must_close(x);
    struct validators v = { .etag = a->etag,
                            .last_modified_s = a->modified_s,
                            .date_s = clock_wall_s() };
    struct ranges ranges = { .count = 0 };
    struct byte_range whole = { 0, a->length == 0 ? 0 : a->length - 1 };
    struct slice head = file_head(x, a);
    struct writer tail = tail_writer(x);
    const struct byte_range *part = &whole;
    bool has_range = headers_has(&x->request.headers, HEADER_RANGE) && !x->is_head;
    enum range_verdict verdict =
        has_range ? cache_ranges(&x->request.headers, &v, a->length, v.date_s, &ranges)
                  : RANGE_WHOLE;
    if (verdict == RANGE_UNSATISFIABLE) {
        x->status = 416;
        put_unsatisfiable(&tail, x, a->length);
        put_cache_status(&tail, x, 0);
        put_end(&tail, x);
        add_tail(x, &tail);
        return exchange_go(x, STEP_DELIVER);
    }
    if (verdict == RANGE_PARTS && ranges.count == 1) {
        part = &ranges.at[0];
        x->status = 206;
        stat_add(&x->worker->stats->ranges, 1);
        exchange_add_memory(x, SLICE("HTTP/1.1 206 Partial Content\r\n"));
        head = without_status_line(head);
        put_content_range(&tail, part, a->length);
    }
    uint64_t length = a->length == 0 ? 0 : part->last - part->first + 1;
    put_length(&tail, length);
    put_cache_status(&tail, x, 0);
    put_end(&tail, x);
    exchange_add_memory(x, head);
    add_tail(x, &tail);
    if (!x->is_head && length > 0)
        *add(x) = (struct segment){
            .kind = SEGMENT_FILE, .is_body = true, .from = part->first, .to = part->first + length
        };
    return exchange_go(x, STEP_DELIVER);
}

static enum next answer_file_otherwise(struct exchange *x, const struct files_answer *a)
{
    switch (a->status) {
    case 301:
        x->status = 301;
        x->outcome = OUTCOME_LOCAL;
        x->reason = REASON_ANSWERED;
        x->keeps_alive = x->keeps_alive && !must_close(x);
        add_page(x, "The directory's address ends with a slash.",
                 arena_string(&x->arena,
                              arena_printf(&x->arena, "Location: " SLICE_FMT "%s" SLICE_FMT "\r\n",
                                           SLICE_ARG(a->location),
                                           x->request.query.ptr == NULL ? "" : "?",
                                           SLICE_ARG(x->request.query))));
        return exchange_go(x, STEP_DELIVER);
    case 400: return exchange_refuse(x, FAULT_BAD_REQUEST);
    case 403: return exchange_refuse(x, FAULT_FORBIDDEN);
    case 404: return exchange_refuse(x, FAULT_NOT_FOUND);
    default: return exchange_refuse(x, FAULT_FILE_FAILED);
    }
}

/* Stores the file as a fill of our own and answers from it. */
static enum next store_file(struct exchange *x, const struct files_answer *a)
{
    struct cache_fill *fill = NULL;
    struct object_facts facts;
    file_facts(x, a, &facts);
    if (cache_fill_begin(x->worker->house->cache, &x->key, &x->request.headers, NULL, &x->reader,
                         &fill) == FILL_FOLLOW) {
        cache_reader_detach(
            &x->reader); /* another worker is reading the same file: no reason to wait for it */
        return answer_from_descriptor(x, a);
    }
    cache_fill_head(fill, &facts);
    bool whole = read_file(x, fill, a);
    if (whole)
        cache_fill_seal(fill);
    else
        cache_fill_fail(fill, REASON_ORIGIN_CUT);
    struct cache_object *o = cache_fill_object(fill);
    if (whole && o != NULL) {
        x->object = cache_object_ref(o);
        x->owns_object = true;
        x->age_s = 0;
    }
    cache_reader_detach(&x->reader);
    cache_fill_done(&fill);
    if (!x->owns_object)
        return answer_from_descriptor(x, a);
    close(a->fd);
    return exchange_go(x, STEP_ANSWER_OBJECT);
}

static enum next confirm_file(struct exchange *x, struct cache_object *stale,
                              const struct files_answer *a)
{
    struct cache_fill *fill = NULL;
    struct object_facts facts;
    file_facts(x, a, &facts);
    if (cache_fill_begin(x->worker->house->cache, &x->key, &x->request.headers, stale, &x->reader,
                         &fill) == FILL_FOLLOW) {
        cache_reader_detach(&x->reader);
        return exchange_go(
            x, STEP_ANSWER_OBJECT); /* from the object that was just found to be right */
    }
    cache_fill_revalidated(fill, &facts);
    struct cache_object *o = cache_fill_object(fill);
    CHECK(o != NULL);
    cache_object_ref(o);
    cache_object_unref(&x->object);
    x->object = o;
    cache_reader_detach(&x->reader);
    cache_fill_done(&fill);
    x->age_s = 0;
    return exchange_go(x, STEP_ANSWER_OBJECT);
}

enum next step_file(struct exchange *x)
{
    struct files_answer a;
    files_open(x->site->origin, x->request.path, &x->request.headers, &x->arena, &a);
    struct cache_object *stale = x->owns_object ? x->object : NULL;
    bool has_changed =
        stale == NULL || !slice_equal(cache_object_facts(stale)->validators.etag, a.etag);
    if (stale != NULL && !has_changed && (a.status == 200 || a.status == 304)) {
        if (a.fd >= 0)
            close(a.fd);
        x->outcome = OUTCOME_REVALIDATED;
        x->reason = REASON_VALIDATED;
        return confirm_file(x, stale, &a);
    }
    if (x->owns_object) {
        x->owns_object = false;
        cache_object_unref(&x->object);
    }
    if (a.status == 304) { /* the client has it, and we do not: nothing to store */
        x->status = 304;
        x->outcome = OUTCOME_LOCAL;
        x->reason = REASON_ANSWERED;
        x->keeps_alive = x->keeps_alive && !must_close(x);
        struct slice head = file_head(x, &a);
        struct writer tail = tail_writer(x);
        put_end(&tail, x);
        exchange_add_memory(x, SLICE("HTTP/1.1 304 Not Modified\r\n"));
        exchange_add_memory(x, without_status_line(head));
        add_tail(x, &tail);
        return exchange_go(x, STEP_DELIVER);
    }
    if (a.status != 200)
        return answer_file_otherwise(x, &a);
    if (x->is_head || a.length > FILE_STORED_MAX || x->outcome == OUTCOME_PASS)
        return answer_from_descriptor(x, &a);
    return store_file(x, &a);
}
