/* proxy/h1.c: reading request and response heads (RFC 9112 2 to 5); see h1.h. Pure, any thread.
 *
 *   request line | status line --> fields ... --> empty line --> settle (h1_framing.c)
 *
 * A head that is there whole is read in one pass. When bytes run out, `scanned` keeps a mark: how
 * far we were and what we were in. The next call only skims on from the mark, with the same rules,
 * and reads from the start again when something is decided: the end, a fault, a limit, or the end
 * of the request line (whose parts are judged together). That is at most three readings of any byte
 * beside the skimming, and at every length the verdict is that of a fresh reading.
 */
#include "proxy/h1_internal.h"

enum {
    METHOD_MAX = 32,
    EMPTY_LINES_MAX = 2, /* RFC 9112 2.2 asks for at least one */
    VERSION_LEN = 8,     /* "HTTP/1.1" */
    LINE_END_LEN = 2
};

/* Where the bytes ran out. START: before the target; near enough to begin again. */
enum place {
    PLACE_START,
    PLACE_TARGET,
    PLACE_VERSION,
    PLACE_REASON,
    PLACE_LINE,
    PLACE_NAME,
    PLACE_VALUE
};

/* `scanned`, from the low end: offset, place, fields begun before. */
enum { OFFSET_BITS = 21, PLACE_BITS = 3, OFFSET_MAX = (1 << OFFSET_BITS) - 1 };
static_assert(PLACE_VALUE < 1 << PLACE_BITS, "a place fits the mark");
static_assert(HEADERS_MAX < 1 << (32 - OFFSET_BITS - PLACE_BITS), "a field count fits the mark");

/* One call's reading. A step returns where it got to, or NULL when it stopped: `cause` says why,
 * and if that is H1_OK, `at`, `place` and `field_count` say where the bytes ran out. */
struct walk {
    const char *start, *end; /* cut at limits.head_bytes */
    const char *at;
    uint32_t target_max;
    uint16_t field_count, field_max;
    uint8_t place;
    uint8_t cause;
};

#define V BYTE_VALUE
#define T (BYTE_TOKEN | BYTE_VALUE | BYTE_TARGET | BYTE_EXTENSION)
#define N (BYTE_VALUE | BYTE_TARGET | BYTE_EXTENSION)
#define H BYTE_HOST
/* clang-format off */
const uint8_t h1_bytes[256] = {
    ['\t'] = V,       [' '] = V | BYTE_EXTENSION,
    ['!'] = T | H,    ['"'] = N,
    ['#'] = BYTE_TOKEN | BYTE_VALUE | BYTE_EXTENSION,
    ['$'] = T | H,    ['%'] = T,
    ['&'] = T | H,    ['\''] = T | H,
    ['('] = N | H,    [')'] = N | H,
    ['*'] = T | H,    ['+'] = T | H,
    [','] = N,        ['-'] = T | H,
    ['.'] = T | H,    ['/'] = N,
    ['0' ... '9'] = T | H,
    [':'] = N,        [';'] = N | H,
    ['<'] = N,        ['='] = N | H,
    ['>' ... '@'] = N,
    ['A' ... 'Z'] = T | H,
    ['[' ... ']'] = N,
    ['^'] = T,        ['_'] = T | H,
    ['`'] = T,
    ['a' ... 'z'] = T | H,
    ['{'] = N,        ['|'] = T,
    ['}'] = N,        ['~'] = T | H,
    [0x80 ... 0xff] = V | BYTE_EXTENSION,
};
/* clang-format on */
#undef V
#undef T
#undef N
#undef H

__attribute__((cold, noinline)) static const char *bad(struct walk *w, enum h1_cause cause)
{
    w->cause = (uint8_t)cause;
    return NULL;
}

/* Bytes run out at `p`. Where little has been read, the next call goes back to where that little
 * begins. */
__attribute__((cold, noinline)) static const char *more(struct walk *w, const char *p,
                                                        enum place place)
{
    if (place == PLACE_START)
        p = w->start;
    while (place == PLACE_VERSION && p[-1] != ' ')
        p--;
    w->cause = H1_OK;
    w->at = p;
    w->place = (uint8_t)place;
    return NULL;
}

/* The byte at `p` does not belong there, or the bytes end there. A line end of the wrong kind has a
 * name of its own, so after a CR one byte more is waited for; a good line end comes too early and
 * is `cause`. */
__attribute__((cold, noinline)) static const char *wrong(struct walk *w, const char *p,
                                                         enum place place, enum h1_cause cause)
{
    if (p == w->end || (*p == '\r' && p + 1 == w->end))
        return more(w, p, place);
    bool is_bare = *p == '\n' || (*p == '\r' && p[1] != '\n');
    return bad(w, is_bare ? H1_BARE_LINE_END : cause);
}

/* The line's text stopped at `p`: CRLF, or `cause` for a byte that the text may not have. */
static inline const char *read_line_end(struct walk *w, const char *p, enum place place,
                                        enum h1_cause cause)
{
    if (likely(w->end - p >= LINE_END_LEN && p[0] == '\r' && p[1] == '\n'))
        return p + LINE_END_LEN;
    return wrong(w, p, place, cause);
}

static const char *skip_empty_lines(struct walk *w, const char *p)
{
    for (int i = 0; i < EMPTY_LINES_MAX && p < w->end && *p == '\r'; i++) {
        p = read_line_end(w, p, PLACE_START, H1_REQUEST_LINE);
        if (p == NULL)
            return NULL;
    }
    return p;
}

static enum h1_method method_of(struct slice text)
{
#define X(m)                                                                                       \
    if (text.len == sizeof #m - 1 && memcmp(text.ptr, #m, sizeof #m - 1) == 0)                     \
        return METHOD_##m;
    H1_METHODS(X)
#undef X
    return METHOD_OTHER;
}

/* RFC 9112 3.1, with the SP after it. */
static inline const char *read_method(struct walk *w, const char *p, struct h1_request *r)
{
    if (likely(w->end - p >= 4 && memcmp(p, "GET ", 4) == 0)) {
        r->method_text = (struct slice){ p, 3 };
        r->method = METHOD_GET;
        return p + 4;
    }
    const char *stop = w->end - p > METHOD_MAX ? p + METHOD_MAX : w->end;
    const char *q = skip_class(p, stop, BYTE_TOKEN);
    if (q == w->end || *q != ' ' || q == p) {
        bool is_long = q < w->end && byte_is(*q, BYTE_TOKEN);
        return is_long ? bad(w, H1_METHOD_LONG) : wrong(w, q, PLACE_START, H1_REQUEST_LINE);
    }
    r->method_text = slice_from(p, q);
    r->method = method_of(r->method_text);
    return q + 1;
}

/* RFC 9112 3.2, with the SP after it; goes on at `p` in a target that began at `target`. */
static inline const char *read_target(struct walk *w, const char *target, const char *p)
{
    bool can_be_long = (size_t)(w->end - target) > w->target_max;
    const char *stop = can_be_long ? target + w->target_max : w->end;
    p = skip_class(p, stop, BYTE_TARGET);
    if (likely(p < w->end && *p == ' ' && p > target))
        return p + 1;
    if (can_be_long && (p > stop || (p == stop && byte_is(*p, BYTE_TARGET))))
        return bad(w, H1_TARGET_LONG);
    /* A second SP, or a line end: the line is not of three parts. Any other byte is the target's
     * own fault. */
    bool is_parts = p < w->end && (*p == ' ' || *p == '\r' || *p == '\t');
    return wrong(w, p, PLACE_TARGET, is_parts ? H1_REQUEST_LINE : H1_TARGET);
}

/* HTTP/1.<minor>, up to the byte after it. RFC 9112 2.3; 9110 2.5: a higher minor is read as the
 * highest we know. */
static const char *read_version(struct walk *w, const char *p, enum place place, uint8_t *minor)
{
    static const char pattern[VERSION_LEN + 1] = "HTTP/1.1";
    bool is_request = place == PLACE_VERSION;
    for (unsigned i = 0; i < VERSION_LEN; i++, p++) {
        bool is_digit_place = i == 5 || i == 7;
        if (p == w->end)
            return more(w, p, place);
        if (is_digit_place ? !byte_is_digit(*p) : *p != pattern[i])
            return wrong(w, p, place, is_request ? H1_REQUEST_LINE : H1_STATUS_LINE);
        if (i == 5 && *p != '1')
            return bad(w, is_request ? H1_VERSION : H1_STATUS_LINE);
    }
    *minor = p[-1] != '0';
    return p;
}

static inline const char *read_request_version(struct walk *w, const char *p, uint8_t *minor)
{
    enum { LEN = VERSION_LEN + LINE_END_LEN };
    if (likely(w->end - p >= LEN && memcmp(p, "HTTP/1.1\r\n", LEN) == 0)) {
        *minor = 1;
        return p + LEN;
    }
    p = read_version(w, p, PLACE_VERSION, minor);
    return p == NULL ? NULL : read_line_end(w, p, PLACE_VERSION, H1_REQUEST_LINE);
}

static inline const char *read_request_line(struct walk *w, struct h1_request *r)
{
    const char *p = skip_empty_lines(w, w->start);
    if (p == NULL)
        return NULL;
    const char *target = read_method(w, p, r);
    if (target == NULL)
        return NULL;
    p = read_target(w, target, target);
    if (p == NULL)
        return NULL;
    r->target = slice_from(target, p - 1);
    p = read_request_version(w, p, &r->minor);
    if (p == NULL)
        return NULL;
    return likely(h1_target_split(r)) ? p : bad(w, H1_TARGET);
}

/* RFC 9112 4. The reason is for people; a missing one, with or without its SP, is taken. */
static const char *read_status_line(struct walk *w, struct h1_response *r)
{
    const char *p = read_version(w, w->start, PLACE_START, &r->minor);
    if (p == NULL)
        return NULL;
    unsigned status = 0;
    for (int i = 0; i < 4; i++, p++) {
        if (p == w->end)
            return more(w, p, PLACE_START);
        bool fits = i == 0 ? *p == ' ' : byte_is_digit(*p) && !(i == 1 && *p == '0');
        if (!fits)
            return wrong(w, p, PLACE_START, H1_STATUS_LINE);
        status = i == 0 ? 0 : status * 10 + (unsigned)(*p - '0');
    }
    r->status = (uint16_t)status;
    r->reason = (struct slice){ p, 0 };
    if (p == w->end || *p != ' ')
        return read_line_end(w, p, PLACE_START, H1_STATUS_LINE);
    const char *q = skip_value(p + 1, w->end);
    r->reason = slice_from(p + 1, q);
    return read_line_end(w, q, PLACE_REASON, H1_STATUS_LINE);
}

/* What a line that is no field can be: the empty line (returned), or a fault. */
static const char *read_empty_line(struct walk *w, const char *p)
{
    if (p < w->end && (*p == ' ' || *p == '\t'))
        return bad(w, H1_FOLD); /* RFC 9112 2.2 after the first line, 5.2 after the others */
    return read_line_end(w, p, PLACE_LINE, H1_FIELD_NAME);
}

/* Begins the field whose first byte is at `p`. */
static inline bool may_begin_field(struct walk *w)
{
    if (likely(w->field_count < w->field_max)) {
        w->field_count++;
        return true;
    }
    bad(w, H1_FIELDS_MANY);
    return false;
}

/* RFC 9112 5: fields up to and including the empty line. */
static inline const char *read_fields(struct walk *w, const char *p, struct headers *h)
{
    for (;;) {
        if (unlikely(p == w->end) || !byte_is(*p, BYTE_TOKEN))
            return read_empty_line(w, p);
        if (!may_begin_field(w))
            return NULL;
        struct slice name = { p, 0 }, value;
        p = skip_class(p + 1, w->end, BYTE_TOKEN);
        if (unlikely(p == w->end || *p != ':'))
            return wrong(w, p, PLACE_NAME, H1_FIELD_NAME);
        name.len = (size_t)(p - name.ptr);
        p++;
        while (p < w->end && (*p == ' ' || *p == '\t'))
            p++;
        value.ptr = p;
        p = skip_value(p, w->end);
        const char *value_end = p;
        p = read_line_end(w, p, PLACE_VALUE, H1_FIELD_VALUE);
        if (unlikely(p == NULL))
            return NULL;
        while (value_end > value.ptr && (value_end[-1] == ' ' || value_end[-1] == '\t'))
            value_end--;
        value.len = (size_t)(value_end - value.ptr);
        if (unlikely(!headers_add(h, name, value)))
            return bad(w, H1_FIELDS_MANY);
    }
}

/* As read_fields(), from within a line, noting nothing. Never returns the end: only whether bytes
 * ran out (true) or something is decided. */
static bool skim_fields(struct walk *w, const char *p, enum place place)
{
    for (;;) {
        if (place == PLACE_LINE) {
            if (p == w->end || !byte_is(*p, BYTE_TOKEN))
                return read_empty_line(w, p) == NULL && w->cause == H1_OK;
            if (!may_begin_field(w))
                return false;
            place = PLACE_NAME;
        }
        if (place == PLACE_NAME) {
            p = skip_class(p, w->end, BYTE_TOKEN);
            if (p == w->end || *p != ':')
                return wrong(w, p, PLACE_NAME, H1_FIELD_NAME) == NULL && w->cause == H1_OK;
            p++;
            place = PLACE_VALUE;
        }
        p = read_line_end(w, skip_value(p, w->end), place, H1_FIELD_VALUE);
        if (p == NULL)
            return w->cause == H1_OK;
        place = PLACE_LINE;
    }
}

/* Where the target begins that `p` is in: after the first SP, a few steps at most. */
static const char *find_target(const struct walk *w, const char *p)
{
    const char *space = memchr(w->start, ' ', (size_t)(p - w->start));
    return space == NULL ? p : space + 1;
}

/* As the end of read_request_line(); the line's end is decided by its parts together. */
static bool skim_request_line(struct walk *w, const char *p, enum place place)
{
    uint8_t minor;
    if (place == PLACE_TARGET)
        p = read_target(w, find_target(w, p), p);
    if (p != NULL)
        p = read_request_version(w, p, &minor);
    return p == NULL && w->cause == H1_OK;
}

/* Goes on from the mark of the last call. True: bytes ran out again. False: read from the start. */
static bool skim(struct walk *w, uint32_t mark)
{
    size_t offset = mark & OFFSET_MAX;
    enum place place = mark >> OFFSET_BITS & ((1 << PLACE_BITS) - 1);
    w->field_count = (uint16_t)(mark >> (OFFSET_BITS + PLACE_BITS));
    if (offset > (size_t)(w->end - w->start)) /* a reload made head_bytes smaller */
        return false;
    const char *p = w->start + offset;
    switch (place) {
    case PLACE_START: return false;
    case PLACE_TARGET:
    case PLACE_VERSION: return skim_request_line(w, p, place);
    case PLACE_REASON: /* nothing of it is judged later: straight on */
    case PLACE_LINE:
    case PLACE_NAME:
    case PLACE_VALUE: return skim_fields(w, p, place);
    }
    return false;
}

static inline void begin(struct walk *w, struct slice bytes, const struct h1_limits *limits,
                         const struct headers *h)
{
    size_t max = limits->head_bytes < OFFSET_MAX ? limits->head_bytes : OFFSET_MAX;
    *w = (struct walk){
        .start = bytes.ptr,
        .end = bytes.ptr + (bytes.len < max ? bytes.len : max),
        .target_max = limits->target_bytes,
        .field_max = limits->field_count < h->capacity ? limits->field_count : h->capacity,
    };
}

static inline void forget_fields(struct headers *h)
{
    h->count = 0;
    memset(h->first, 0, sizeof h->first);
}

/* The bytes ran out or something is wrong. A head that fills head_bytes without its end is too
 * long: nothing that comes could mend it. */
__attribute__((cold, noinline)) static enum h1_result
stop(const struct walk *w, const struct h1_limits *limits, uint32_t *scanned, enum h1_cause *cause)
{
    *cause = w->cause;
    if (w->cause != H1_OK)
        return H1_BAD;
    size_t seen = (size_t)(w->end - w->start);
    if (seen >= limits->head_bytes || seen >= OFFSET_MAX) {
        *cause = H1_HEAD_LONG;
        return H1_BAD;
    }
    *scanned = (uint32_t)(w->at - w->start) | (uint32_t)w->place << OFFSET_BITS |
               (uint32_t)w->field_count << (OFFSET_BITS + PLACE_BITS);
    return H1_MORE;
}

/* No bytes, and perhaps no pointer to reckon with. */
static enum h1_result nothing_yet(enum h1_cause *cause)
{
    *cause = H1_OK;
    return H1_MORE;
}

enum h1_result h1_read_request(struct h1_request *r, struct slice bytes,
                               const struct h1_limits *limits, enum h1_cause *cause)
{
    struct walk w;
    if (bytes.len == 0)
        return nothing_yet(cause);
    begin(&w, bytes, limits, &r->headers);
    if (unlikely(r->scanned != 0) && skim(&w, r->scanned))
        return stop(&w, limits, &r->scanned, cause);
    w.field_count = 0;
    forget_fields(&r->headers);
    const char *p = read_request_line(&w, r);
    if (likely(p != NULL))
        p = read_fields(&w, p, &r->headers);
    if (unlikely(p == NULL))
        return stop(&w, limits, &r->scanned, cause);
    r->head_bytes = (uint32_t)(p - w.start);
    *cause = h1_request_settle(r);
    return likely(*cause == H1_OK) ? H1_DONE : H1_BAD;
}

enum h1_result h1_read_response(struct h1_response *r, struct slice bytes,
                                enum h1_method request_method, const struct h1_limits *limits,
                                enum h1_cause *cause)
{
    struct walk w;
    if (bytes.len == 0)
        return nothing_yet(cause);
    begin(&w, bytes, limits, &r->headers);
    if (unlikely(r->scanned != 0) && skim(&w, r->scanned))
        return stop(&w, limits, &r->scanned, cause);
    w.field_count = 0;
    forget_fields(&r->headers);
    const char *p = read_status_line(&w, r);
    if (likely(p != NULL))
        p = read_fields(&w, p, &r->headers);
    if (unlikely(p == NULL))
        return stop(&w, limits, &r->scanned, cause);
    r->head_bytes = (uint32_t)(p - w.start);
    *cause = h1_response_settle(r, request_method);
    return likely(*cause == H1_OK) ? H1_DONE : H1_BAD;
}

uint16_t h1_cause_status(enum h1_cause cause)
{
    static const uint16_t statuses[H1_CAUSE_COUNT] = {
#define X(id, status, text) [H1_##id] = status,
        H1_CAUSES(X)
#undef X
            [H1_OK] = 200
    };
    CHECK(cause < H1_CAUSE_COUNT);
    return statuses[cause];
}

const char *h1_cause_text(enum h1_cause cause)
{
    static const char *const texts[H1_CAUSE_COUNT] = {
#define X(id, status, text) [H1_##id] = text,
        H1_CAUSES(X)
#undef X
            [H1_OK] = "nothing is wrong"
    };
    CHECK(cause < H1_CAUSE_COUNT);
    return texts[cause];
}

/* RFC 9110 9.2.1. PURGE is nobody's standard and changes what we keep. */
bool h1_method_is_safe(enum h1_method m)
{
    return m == METHOD_GET || m == METHOD_HEAD || m == METHOD_OPTIONS || m == METHOD_TRACE;
}

/* RFC 9110 9.2.2. */
bool h1_method_is_idempotent(enum h1_method m)
{
    return h1_method_is_safe(m) || m == METHOD_PUT || m == METHOD_DELETE;
}
