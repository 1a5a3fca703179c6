/* proxy/judge_head.c: the head of an origin's answer, judged: may it be stored, as what, with which
 * fields. For fills (fetch_fill.c), parts of them (fetch_parts.c), and passes that are kept after
 * all (tee.c).
 */
#include "base/clock.h"
#include "proxy/fetch_internal.h"

/* ---- the stored head ------------------------------------------------------------------------- */

/* RFC 9111 3.2: a 304 does not change what describes the stored body. */
static bool updates(enum header_id id)
{
    return id != HEADER_CONTENT_ENCODING && id != HEADER_CONTENT_RANGE;
}

static size_t size_of(const struct headers *h)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < h->count; i++)
        bytes += h->at[i].name.len + h->at[i].value.len + 4;
    return bytes;
}

static bool is_stored(const struct judged *j, const struct header *h)
{
    if (h->id == HEADER_CONTENT_RANGE && j->facts.status == 206)
        return false; /* written anew for each part that is cut from it */
    return cache_field_goes(&j->asked, &j->judgement, h) == FIELD_STORED;
}

/* `newer` (may be NULL) are a 304's fields: each replaces all of the same name in `stored`. */
static struct slice write_head(struct fetch *f, const struct judged *j, struct slice status_line,
                               const struct headers *stored, const struct headers *newer)
{
    size_t most = status_line.len + size_of(stored) + (newer == NULL ? 0 : size_of(newer)) + 128;
    char *start = arena_alloc(&f->arena, most);
    struct writer w = writer_on(start, most);
    writer_put(&w, status_line);
    bool has_date = false;
    for (unsigned i = 0; i < stored->count; i++) {
        const struct header *h = &stored->at[i];
        bool replaced =
            newer != NULL && updates(h->id) && headers_find_name(newer, h->name, 0) >= 0;
        if (replaced || !is_stored(j, h))
            continue;
        if (h->id == HEADER_DATE && newer != NULL)
            continue; /* the 304 without a Date was made now, not when the body was */
        has_date |= h->id == HEADER_DATE;
        writer_put_field(&w, h->name, h->value);
    }
    for (unsigned i = 0; newer != NULL && i < newer->count; i++) {
        const struct header *h = &newer->at[i];
        if (!updates(h->id) || !is_stored(j, h) ||
            (h->id == HEADER_VIA && headers_has(stored, HEADER_VIA)))
            continue;
        has_date |= h->id == HEADER_DATE;
        writer_put_field(&w, h->name, h->value);
    }
    if (!has_date) /* RFC 9110 6.6.1: who receives a response without Date adds one */
        writer_put_field(&w, SLICE("Date"), worker_date(f->worker));
    if (newer == NULL)
        writer_put_field(&w, SLICE("Via"),
                         f->response.minor == 0 ? SLICE("1.0 larder") : SLICE("1.1 larder"));
    return slice_from(start, w.at);
}

/* What is for the client alone that caused this fetch: private="f" and its like. */
void fetch_give_own_fields(struct fetch *f, const struct judged *j)
{
    const struct headers *h = &f->response.headers;
    if (f->exchange == NULL)
        return;
    char *start = arena_alloc(&f->exchange->arena, size_of(h));
    struct writer w = writer_on(start, size_of(h));
    for (unsigned i = 0; i < h->count; i++)
        if (cache_field_goes(&j->asked, &j->judgement, &h->at[i]) == FIELD_ONLY_ASKER)
            writer_put_field(&w, h->at[i].name, h->at[i].value);
    f->exchange->own_fields = slice_from(start, w.at);
}

static struct slice status_line(struct fetch *f, uint16_t status, struct slice reason)
{
    return arena_printf(&f->arena, "HTTP/1.1 %u " SLICE_FMT "\r\n", status, SLICE_ARG(reason));
}

static struct slice origin_of(struct fetch *f)
{
    if (f->port == 0 || f->port == 80)
        return f->rule.host;
    return arena_printf(&f->arena, SLICE_FMT ":%u", SLICE_ARG(f->rule.host), f->port);
}

static void judge_fields(struct fetch *f, const struct headers *fields, uint16_t status,
                         struct judged *j)
{
    bool has_rules = rules_has_any(f->site);
    int64_t wall = clock_wall_s();
    j->effects = f->effects;
    if (has_rules && j->effects.awaits_response) {
        struct rule_response answer = { .status = status, .headers = fields };
        rules_on_response(&f->rule, &answer, &j->effects);
    }
    j->asked = (struct judge_request){
        .config = f->snapshot->config,
        .effects = has_rules ? &j->effects : NULL,
        .request = &f->request_headers,
        .response = fields,
        .status = status,
        .is_get = true,
        .wants_part = f->asks != ASKS_WHOLE ||
                      (f->gets_ranges && headers_has(&f->request_headers, HEADER_RANGE)),
        .times = { .now_wall_s = wall, .delay_s = (clock_mono_us() - f->sent_us) / 1000000 }
    };
    cache_judge(&j->asked, &j->judgement);
    struct slice tags =
        has_rules && j->effects.has_tags ? rules_tags(&j->effects, &f->arena) : SLICE_NONE;
    j->facts.status = status;
    j->facts.freshness = j->judgement.freshness;
    j->facts.validators = j->judgement.validators;
    j->facts.received_ms = clock_mono_ms();
    j->facts.content_encoding = headers_value(fields, HEADER_CONTENT_ENCODING);
    j->facts.content_type = headers_value(fields, HEADER_CONTENT_TYPE);
    j->facts.tags = cache_tags_make(&f->arena, fields, origin_of(f), tags);
}

/* ---- a 304 to our own condition -------------------------------------------------------------- */

/* A 304 that names another tag than the one we asked about is not about our object (RFC
 * 9111 4.3.4). */
bool fetch_is_about(const struct object_facts *old, const struct headers *fields)
{
    struct validators its;
    cache_validators_read(fields, clock_wall_s(), &its);
    struct slice a = old->validators.etag, b = its.etag;
    if (b.len == 0)
        return true;
    if (a.len == 0)
        return slice_has_prefix(b, SLICE("W/")); /* a strong one is another representation's */
    if (slice_has_prefix(a, SLICE("W/")))
        a = (struct slice){ a.ptr + 2, a.len - 2 };
    if (slice_has_prefix(b, SLICE("W/")))
        b = (struct slice){ b.ptr + 2, b.len - 2 };
    return slice_equal(a, b);
}

/* The fields of a head as it is stored. False when it does not read as one, which only a mistake of
 * ours could do. */
static bool read_stored(struct fetch *f, struct slice head, struct h1_response *out)
{
    struct h1_limits limits = { .head_bytes = UINT32_MAX, .field_count = HEADERS_MAX };
    struct header *fields = arena_alloc(&f->arena, HEADERS_MAX * sizeof *fields);
    enum h1_cause cause = H1_OK;
    *out = (struct h1_response){ 0 };
    headers_init(&out->headers, fields, HEADERS_MAX);
    struct slice whole = arena_printf(&f->arena, SLICE_FMT "\r\n", SLICE_ARG(head));
    return h1_read_response(out, whole, METHOD_HEAD, &limits, &cause) == H1_DONE;
}

/* Judged as the whole that it is of; what is stored stays what it is. */
static void judge_as_stored(struct fetch *f, const struct headers *fields,
                            const struct object_facts *old, struct judged *j)
{
    judge_fields(f, fields, old->status == 206 ? 200 : old->status, j);
    j->facts.status = old->status;
}

/* The stored head with the fields of an answer that confirms it, judged as one response. False when
 * it is of no use. */
bool fetch_judge_update(struct fetch *f, struct cache_object *stale, struct judged *j)
{
    const struct object_facts *old = cache_object_facts(stale);
    struct h1_response stored, *updated = arena_alloc(&f->arena, sizeof *updated);
    if (!read_stored(f, old->head, &stored))
        return false;
    /* what is stored has been through cache_field_goes() once: only the answer's own fields are
     * looked at now */
    j->asked = (struct judge_request){ .config = f->snapshot->config,
                                       .request = &f->request_headers,
                                       .response = &f->response.headers,
                                       .status = old->status,
                                       .is_get = true };
    judge_as_stored(f, &f->response.headers, old, j);
    struct slice line = status_line(f, stored.status, stored.reason);
    struct slice head = write_head(f, j, line, &stored.headers, &f->response.headers);
    if (!read_stored(f, head, updated))
        return false;
    /* Age is not among the stored fields: the answer's own counts. Nor are those that speak to us
     * alone. */
    const struct headers *h = &f->response.headers;
    for (unsigned i = 0; i < h->count; i++)
        if ((h->at[i].id == HEADER_AGE || h->at[i].id == HEADER_SURROGATE_CONTROL) &&
            !headers_add(&updated->headers, h->at[i].name, h->at[i].value))
            return false;
    struct slice tags = j->facts.tags;
    judge_as_stored(f, &updated->headers, old, j);
    j->facts.head = head;
    j->facts.tags = tags.len > 0 ? tags : old->tags;
    if (j->facts.content_type.len == 0)
        j->facts.content_type = old->content_type;
    j->facts.selecting = old->selecting;
    j->facts.length_bytes = old->length_bytes;
    j->facts.part = old->part;
    return true;
}

/* ---- the whole of it ------------------------------------------------------------------------- */

/* What the answer depends on. A trusted proxy's X-Forwarded-Host and -Proto go on to the origin,
 * which makes redirects and links of them, seldom saying so in Vary: they select in any case. */
struct slice fetch_selecting(struct fetch *f, const struct judged *j, const struct headers *h)
{
    struct headers none;
    if ((j->effects.ignores & IGNORE_VARY) != 0 && rules_has_any(f->site)) {
        headers_init(&none, NULL, 0);
        h = &none;
    }
    if (f->snapshot->shared->trusted_count == 0)
        return cache_vary_make(&f->arena, h, &f->request_headers);
    struct headers varying;
    headers_init(&varying, arena_alloc(&f->arena, HEADERS_MAX * sizeof(struct header)),
                 HEADERS_MAX);
    bool fits = headers_add(&varying, SLICE("Vary"), SLICE("X-Forwarded-Host, X-Forwarded-Proto"));
    for (const struct header *v = headers_find(h, HEADER_VARY); v != NULL && fits;
         v = headers_next(h, v))
        fits = headers_add(&varying, v->name, v->value);
    return fits ? cache_vary_make(&f->arena, &varying, &f->request_headers)
                : arena_copy(&f->arena, SLICE("*\0*\0")); /* matches nothing */
}

/* Whether what the origin answered may be stored, with its own fields; facts are complete when it
 * may. */
enum storable fetch_judge(struct fetch *f, struct judged *j)
{
    const struct h1_response *r = &f->response;
    judge_fields(f, &r->headers, r->status, j);
    if (j->judgement.storable == STORABLE_YES)
        fetch_judge_facts(f, j);
    return j->judgement.storable;
}

void fetch_judge_facts(struct fetch *f, struct judged *j)
{
    const struct h1_response *r = &f->response;
    j->facts.head = write_head(f, j, status_line(f, r->status, r->reason), &r->headers, NULL);
    j->facts.selecting = fetch_selecting(f, j, &r->headers);
    j->facts.length_bytes = r->framing == FRAMING_LENGTH ? (int64_t)r->length
                            : r->framing == FRAMING_NONE ? 0
                                                         : -1;
}
