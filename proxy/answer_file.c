/* proxy/answer_file.c: answers from a directory: small files through the store, large ones from
 * their descriptor.
 */
#include "base/clock.h"
#include "base/dates.h"
#include "proxy/exchange.h"
#include "proxy/files.h"

#include <stdio.h>
#include <unistd.h>

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
    uint32_t check_s = x->plan.origin->check_ms / 1000;
    struct slice field = SLICE("Accept-Encoding");
    *facts = (struct object_facts){ .status = 200,
                                    .freshness = { .lifetime_s = (int32_t)check_s,
                                                   .source = LIFETIME_DEFAULT,
                                                   .keep_s = CONTROL_MAX_S },
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
    x->keeps_alive = x->keeps_alive && !answer_must_close(x);
    struct validators v = { .etag = a->etag,
                            .last_modified_s = a->modified_s,
                            .date_s = clock_wall_s() };
    struct ranges ranges = { .count = 0 };
    struct byte_range whole = { 0, a->length == 0 ? 0 : a->length - 1 };
    struct slice head = file_head(x, a);
    struct writer tail = answer_tail(x);
    const char *start = tail.at;
    const struct byte_range *part = &whole;
    bool has_range = headers_has(&x->request.headers, HEADER_RANGE) && !x->is_head;
    enum range_verdict verdict =
        has_range ? cache_ranges(&x->request.headers, &v, a->length, v.date_s, &ranges)
                  : RANGE_WHOLE;
    if (verdict == RANGE_UNSATISFIABLE) {
        x->status = 416;
        answer_put_unsatisfiable(&tail, x, a->length);
        answer_put_end(&tail, x, 0);
        answer_add_tail(x, &tail, start);
        return exchange_go(x, STEP_DELIVER);
    }
    if (verdict == RANGE_PARTS && ranges.count == 1) {
        part = &ranges.at[0];
        x->status = 206;
        stat_add(&x->worker->stats->ranges, 1);
        exchange_add_memory(x, SLICE("HTTP/1.1 206 Partial Content\r\n"));
        head = answer_without_status_line(head);
        answer_put_content_range(&tail, part, (int64_t)a->length);
    }
    uint64_t length = a->length == 0 ? 0 : part->last - part->first + 1;
    answer_put_length(&tail, length);
    answer_put_end(&tail, x, 0);
    exchange_add_memory(x, head);
    answer_add_tail(x, &tail, start);
    if (!x->is_head && length > 0)
        *exchange_add_segment(x) = (struct segment){
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
        x->keeps_alive = x->keeps_alive && !answer_must_close(x);
        answer_add_page(
            x, "The directory's address ends with a slash.",
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
                         &fill) != FILL_LEAD) {
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
        x->is_stored = true;
        x->age_s = 0;
    }
    cache_reader_detach(&x->reader);
    cache_fill_done(&fill);
    if (!x->owns_object)
        return answer_from_descriptor(x, a);
    close(a->fd);
    return exchange_go(x, STEP_ANSWER_OBJECT);
}

/* Answers from `o`, with a reference of our own. */
static enum next answer_from(struct exchange *x, struct cache_object *o)
{
    x->object = cache_object_ref(o);
    x->owns_object = true;
    x->age_s = 0;
    return exchange_go(x, STEP_ANSWER_OBJECT);
}

/* What is stored was just found to be right. */
static enum next confirm_file(struct exchange *x, const struct files_answer *a)
{
    struct cache_fill *fill = NULL;
    struct object_facts facts;
    file_facts(x, a, &facts);
    enum fill_begun begun = cache_fill_begin(x->worker->house->cache, &x->key, &x->request.headers,
                                             x->stale, &x->reader, &fill);
    cache_reader_detach(&x->reader);
    if (begun != FILL_LEAD)
        return answer_from(x, x->stale);
    cache_fill_revalidated(fill, &facts);
    struct cache_object *o = cache_fill_object(fill);
    enum next next = answer_from(x, o == NULL ? x->stale : o);
    cache_fill_done(&fill);
    return next;
}

enum next step_file(struct exchange *x)
{
    struct files_answer a;
    files_open(x->plan.origin, x->plan.path, &x->request.headers, &x->arena, &a);
    struct cache_object *stale = x->stale;
    bool has_changed =
        stale == NULL || !slice_equal(cache_object_facts(stale)->validators.etag, a.etag);
    if (stale != NULL && !has_changed && (a.status == 200 || a.status == 304)) {
        if (a.fd >= 0)
            close(a.fd);
        x->outcome = OUTCOME_REVALIDATED;
        x->reason = REASON_VALIDATED;
        x->origin_status = 304; /* what a server would have said */
        x->is_stored = true;
        return confirm_file(x, &a);
    }
    if (a.status == 304) { /* the client has it, and we do not: nothing to store */
        x->status = 304;
        x->outcome = OUTCOME_LOCAL;
        x->reason = REASON_ANSWERED;
        x->keeps_alive = x->keeps_alive && !answer_must_close(x);
        struct slice head = file_head(x, &a);
        struct writer tail = answer_tail(x);
        const char *start = tail.at;
        answer_put_end(&tail, x, 0);
        exchange_add_memory(x, SLICE("HTTP/1.1 304 Not Modified\r\n"));
        exchange_add_memory(x, answer_without_status_line(head));
        answer_add_tail(x, &tail, start);
        return exchange_go(x, STEP_DELIVER);
    }
    if (a.status != 200)
        return answer_file_otherwise(x, &a);
    if (x->is_head || a.length > FILE_STORED_MAX || x->outcome == OUTCOME_PASS)
        return answer_from_descriptor(x, &a);
    return store_file(x, &a);
}
