/* proxy/accesslog_format.c: from a record to a line: combined, json, or a string with {fields}.
 *
 * All three come from one table of fields. What a client sent must not forge a line, end a quoted
 * string or move a terminal: in combined and in format strings `"`, `\`, control bytes and bytes
 * above 0x7e become \xHH, as nginx writes them; in json the line is valid JSON and valid UTF-8
 * whatever came.
 *
 * The json line is written by hand: jansson's json_pack and json_dumpb made 146,000 such lines a
 * second on one processor here, and the writer has to keep up with several workers (this makes more
 * than a million).
 */
#include "proxy/accesslog_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { FORMAT_BYTES_MAX = 4096, PIECES_MAX = 128, NAME_MAX_BYTES = 32 };

/* TEXT   a slice, "-" when empty          COUNT  a number                  AGE  seconds, "-" when
 * negative MS     microseconds, written as milliseconds with three decimals, "-" when negative the
 * others are what their name says */
enum field_kind {
    KIND_TEXT,
    KIND_COUNT,
    KIND_STATUS,
    KIND_AGE,
    KIND_MS,
    KIND_OUTCOME,
    KIND_REASON,
    KIND_TIME,
    KIND_TIME_ISO,
    KIND_REQUEST
};

struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;    /* in struct access_record, for the kinds that read a member */
    const char *json; /* its name in a json line; NULL leaves it out */
};

#define AT(member) offsetof(struct access_record, member)
static const struct field fields[] = {
    { "time_iso", KIND_TIME_ISO, 0, "time" },
    { "client", KIND_TEXT, AT(client), "client" },
    { "method", KIND_TEXT, AT(method), "method" },
    { "target", KIND_TEXT, AT(target), "target" },
    { "protocol", KIND_TEXT, AT(protocol), "protocol" },
    { "host", KIND_TEXT, AT(host), "host" },
    { "site", KIND_TEXT, AT(site), "site" },
    { "status", KIND_STATUS, AT(status), "status" },
    { "bytes", KIND_COUNT, AT(body_bytes), "bytes" },
    { "sent", KIND_COUNT, AT(sent_bytes), "sent" },
    { "referer", KIND_TEXT, AT(referer), "referer" },
    { "user_agent", KIND_TEXT, AT(user_agent), "user_agent" },
    { "outcome", KIND_OUTCOME, 0, "outcome" },
    { "reason", KIND_REASON, 0, "reason" },
    { "age", KIND_AGE, AT(age_s), "age" },
    { "server", KIND_TEXT, AT(server), "server" },
    { "first_byte_ms", KIND_MS, AT(first_byte_us), "first_byte_ms" },
    { "total_ms", KIND_MS, AT(total_us), "total_ms" },
    { "time", KIND_TIME, 0, NULL },
    { "request", KIND_REQUEST, 0, NULL },
};

struct piece {
    const struct field *field; /* NULL: the text */
    struct slice text;
};

struct access_format {
    bool is_json, is_combined;
    char *text; /* the pieces' literal text */
    struct piece pieces[PIECES_MAX];
    size_t piece_count;
    int64_t second;         /* what the two below say; -1 none yet */
    char time[48], iso[24]; /* "10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36" */
    size_t time_length;
};

/* ---- the buffer ------------------------------------------------------------------------------ */

static char *reserve(struct line_buffer *b, size_t more)
{
    if (b->capacity - b->length < more) {
        b->capacity = (b->capacity + more) * 2;
        b->ptr = xrealloc(b->ptr, b->capacity);
    }
    return b->ptr + b->length;
}

void line_buffer_add(struct line_buffer *b, const char *bytes, size_t length)
{
    if (length == 0)
        return;
    memcpy(reserve(b, length), bytes, length);
    b->length += length;
}

void line_buffer_fini(struct line_buffer *b)
{
    free(b->ptr);
    *b = (struct line_buffer){ 0 };
}

static void add_text(struct line_buffer *b, const char *text)
{
    line_buffer_add(b, text, strlen(text));
}

static void add_number(struct line_buffer *b, uint64_t n)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    line_buffer_add(b, digits + at, sizeof digits - at);
}

static void add_ms(struct line_buffer *b, uint64_t us)
{
    unsigned rest = (unsigned)(us % 1000);
    char decimals[4] = { '.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
                         (char)('0' + rest % 10) };
    add_number(b, us / 1000);
    line_buffer_add(b, decimals, sizeof decimals);
}

/* ---- escaping -------------------------------------------------------------------------------- */

static const char hex_digits[] = "0123456789ABCDEF";

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static size_t plain_run(struct slice s)
{
    size_t n = 0;
    while (n < s.len && is_plain((unsigned char)s.ptr[n]))
        n++;
    return n;
}

static void add_escaped(struct line_buffer *b, struct slice s)
{
    while (s.len > 0) {
        size_t run = plain_run(s);
        line_buffer_add(b, s.ptr, run);
        if (run == s.len)
            return;
        unsigned char c = (unsigned char)s.ptr[run];
        char code[4] = { '\\', 'x', hex_digits[c >> 4], hex_digits[c & 15] };
        line_buffer_add(b, code, sizeof code);
        s = (struct slice){ s.ptr + run + 1, s.len - run - 1 };
    }
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Length of the UTF-8 sequence at the start, 0 when it is none (RFC 3629: no overlong form, no
 * surrogate, nothing above U+10FFFF). */
static size_t utf8_length(struct slice s)
{
    unsigned char c = (unsigned char)s.ptr[0], second = s.len > 1 ? (unsigned char)s.ptr[1] : 0;
    if (c >= 0xc2 && c <= 0xdf)
        return s.len > 1 && is_continuation(s.ptr[1]) ? 2 : 0;
    if (c >= 0xe0 && c <= 0xef) {
        if (s.len < 3 || !is_continuation(s.ptr[1]) || !is_continuation(s.ptr[2]))
            return 0;
        return (c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) ? 0 : 3;
    }
    if (c >= 0xf0 && c <= 0xf4) {
        if (s.len < 4 || !is_continuation(s.ptr[1]) || !is_continuation(s.ptr[2]) ||
            !is_continuation(s.ptr[3]))
            return 0;
        return (c == 0xf0 && second < 0x90) || (c == 0xf4 && second > 0x8f) ? 0 : 4;
    }
    return 0;
}

static size_t add_json_special(struct line_buffer *b, struct slice s)
{
    unsigned char c = (unsigned char)s.ptr[0];
    if (c == '"' || c == '\\') {
        char code[2] = { '\\', (char)c };
        line_buffer_add(b, code, sizeof code);
        return 1;
    }
    size_t length = c >= 0x80 ? utf8_length(s) : 0;
    if (length > 0) {
        line_buffer_add(b, s.ptr, length);
        return length;
    }
    /* a control byte; or a byte that is not UTF-8, which reads as the Latin-1 character so that
     * nothing is lost */
    char code[6] = { '\\', 'u', '0', '0', hex_digits[c >> 4], hex_digits[c & 15] };
    line_buffer_add(b, code, sizeof code);
    return 1;
}

static void add_json_string(struct line_buffer *b, struct slice s)
{
    line_buffer_add(b, "\"", 1);
    while (s.len > 0) {
        size_t taken = plain_run(s);
        line_buffer_add(b, s.ptr, taken);
        if (taken < s.len)
            taken += add_json_special(b, (struct slice){ s.ptr + taken, s.len - taken });
        s = (struct slice){ s.ptr + taken, s.len - taken };
    }
    line_buffer_add(b, "\"", 1);
}

/* ---- times ----------------------------------------------------------------------------------- */

static void set_second(struct access_format *f, int64_t second)
{
    if (f->second == second)
        return;
    time_t t = (time_t)second;
    struct tm tm;
    /* by hand: strftime's %b would follow the locale, and log analysers know the English names only
     */
    static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    localtime_r(&t, &tm);
    long offset = tm.tm_gmtoff < 0 ? -tm.tm_gmtoff : tm.tm_gmtoff;
    int n = snprintf(f->time, sizeof f->time, "%02d/%s/%d:%02d:%02d:%02d %c%02ld%02ld", tm.tm_mday,
                     months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec,
                     tm.tm_gmtoff < 0 ? '-' : '+', offset / 3600, offset / 60 % 60);
    f->time_length = n < 0 ? 0 : (size_t)n < sizeof f->time ? (size_t)n : sizeof f->time - 1;
    gmtime_r(&t, &tm);
    strftime(f->iso, sizeof f->iso, "%Y-%m-%dT%H:%M:%S", &tm);
    f->second = second;
}

static void add_iso(struct access_format *f, const struct access_record *r, struct line_buffer *out)
{
    unsigned ms = (unsigned)(r->wall_ms % 1000);
    char rest[5] = { '.', (char)('0' + ms / 100), (char)('0' + ms / 10 % 10), (char)('0' + ms % 10),
                     'Z' };
    add_text(out, f->iso);
    line_buffer_add(out, rest, sizeof rest);
}

/* ---- fields ---------------------------------------------------------------------------------- */

#define MEMBER(type, r, f) (*(const type *)(const void *)((const char *)(r) + (f)->offset))

/* "GET / HTTP/1.1"; empty when not even a method was read. */
static void add_request(const struct access_record *r, struct line_buffer *out)
{
    if (slice_is_empty(r->method)) {
        line_buffer_add(out, "-", 1);
        return;
    }
    add_escaped(out, r->method);
    line_buffer_add(out, " ", 1);
    add_escaped(out, slice_is_empty(r->target) ? SLICE("-") : r->target);
    if (slice_is_empty(r->protocol))
        return;
    line_buffer_add(out, " ", 1);
    add_escaped(out, r->protocol);
}

/* The kinds that are written alike in every format. `none` stands for a negative number. */
static void add_plain_field(const struct field *field, const struct access_record *r,
                            const char *none, struct line_buffer *out)
{
    int64_t signed_value = field->kind == KIND_AGE  ? MEMBER(int32_t, r, field)
                           : field->kind == KIND_MS ? MEMBER(int64_t, r, field)
                                                    : 0;
    if (signed_value < 0)
        add_text(out, none);
    else if (field->kind == KIND_MS)
        add_ms(out, (uint64_t)signed_value);
    else if (field->kind == KIND_AGE)
        add_number(out, (uint64_t)signed_value);
    else if (field->kind == KIND_STATUS)
        add_number(out, MEMBER(uint16_t, r, field));
    else
        add_number(out, MEMBER(uint64_t, r, field));
}

static void add_field(struct access_format *f, const struct field *field,
                      const struct access_record *r, struct line_buffer *out)
{
    switch (field->kind) {
    case KIND_TEXT: {
        struct slice text = MEMBER(struct slice, r, field);
        add_escaped(out, slice_is_empty(text) ? SLICE("-") : text);
        return;
    }
    case KIND_OUTCOME: add_text(out, outcome_word(r->outcome)); return;
    case KIND_REASON: add_text(out, reason_word(r->reason)); return;
    case KIND_TIME: line_buffer_add(out, f->time, f->time_length); return;
    case KIND_TIME_ISO: add_iso(f, r, out); return;
    case KIND_REQUEST: add_request(r, out); return;
    case KIND_COUNT:
    case KIND_STATUS:
    case KIND_AGE:
    case KIND_MS: add_plain_field(field, r, "-", out); return;
    }
    UNREACHABLE();
}

static void add_json_value(struct access_format *f, const struct field *field,
                           const struct access_record *r, struct line_buffer *out)
{
    switch (field->kind) {
    case KIND_TEXT: add_json_string(out, MEMBER(struct slice, r, field)); return;
    case KIND_COUNT:
    case KIND_STATUS:
    case KIND_AGE:
    case KIND_MS: add_plain_field(field, r, "null", out); return;
    case KIND_OUTCOME:
    case KIND_REASON:
    case KIND_TIME:
    case KIND_TIME_ISO:
    case KIND_REQUEST:
        line_buffer_add(out, "\"", 1);
        add_field(f, field, r, out); /* our own words only */
        line_buffer_add(out, "\"", 1);
        return;
    }
    UNREACHABLE();
}

static void write_json(struct access_format *f, const struct access_record *r,
                       struct line_buffer *out)
{
    char before = '{';
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        if (fields[i].json == NULL)
            continue;
        line_buffer_add(out, &before, 1);
        line_buffer_add(out, "\"", 1);
        add_text(out, fields[i].json);
        line_buffer_add(out, "\":", 2);
        add_json_value(f, &fields[i], r, out);
        before = ',';
    }
    line_buffer_add(out, "}", 1);
}

/* Apache's combined: %h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i", where %b is "-" for no
 * bytes. */
static void write_combined(struct access_format *f, const struct access_record *r,
                           struct line_buffer *out)
{
    add_escaped(out, slice_is_empty(r->client) ? SLICE("-") : r->client);
    add_text(out, " - - [");
    line_buffer_add(out, f->time, f->time_length);
    add_text(out, "] \"");
    add_request(r, out);
    add_text(out, "\" ");
    add_number(out, r->status);
    line_buffer_add(out, " ", 1);
    if (r->body_bytes == 0)
        line_buffer_add(out, "-", 1);
    else
        add_number(out, r->body_bytes);
    add_text(out, " \"");
    add_escaped(out, slice_is_empty(r->referer) ? SLICE("-") : r->referer);
    add_text(out, "\" \"");
    add_escaped(out, slice_is_empty(r->user_agent) ? SLICE("-") : r->user_agent);
    line_buffer_add(out, "\"", 1);
}

void access_format_write(struct access_format *f, const struct access_record *r,
                         struct line_buffer *out)
{
    set_second(f, r->wall_ms / 1000);
    if (f->is_combined)
        write_combined(f, r, out);
    else if (f->is_json)
        write_json(f, r, out);
    for (size_t i = 0; i < f->piece_count; i++) {
        const struct piece *p = &f->pieces[i];
        if (p->field == NULL)
            line_buffer_add(out, p->text.ptr, p->text.len);
        else
            add_field(f, p->field, r, out);
    }
    line_buffer_add(out, "\n", 1);
}

/* ---- reading a format ------------------------------------------------------------------------ */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edit distance (Levenshtein); both are short. */
static size_t distance(struct slice a, struct slice b)
{
    size_t row[NAME_MAX_BYTES + 1];
    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t replaced = diagonal + (a.ptr[i - 1] != b.ptr[j - 1]);
            diagonal = row[j];
            row[j] = least(replaced, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[b.len];
}

static const struct field *field_named(struct slice name)
{
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++)
        if (slice_equal(slice_of(fields[i].name), name))
            return &fields[i];
    return NULL;
}

static const char *nearest_field(struct slice name)
{
    size_t best = 0, best_distance = SIZE_MAX;
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        size_t d = distance(slice_of(fields[i].name), name);
        if (d < best_distance) {
            best = i;
            best_distance = d;
        }
    }
    return fields[best].name;
}

static bool is_near(const char *word, struct slice text)
{
    return text.len <= NAME_MAX_BYTES && distance(slice_of(word), text) <= 2;
}

static void say_unknown(struct slice name, char why[256])
{
    if (name.len > NAME_MAX_BYTES) {
        snprintf(why, 256, "a field's name has at most %d letters", NAME_MAX_BYTES);
        return;
    }
    char shown[NAME_MAX_BYTES + 1];
    for (size_t i = 0; i < name.len; i++)
        shown[i] = is_plain((unsigned char)name.ptr[i]) ? name.ptr[i] : '?';
    shown[name.len] = '\0';
    snprintf(why, 256,
             "there is no field {%s}; the nearest is {%s}; a brace of its own is written {{", shown,
             nearest_field(name));
}

static bool add_piece(struct access_format *f, struct piece p, char why[256])
{
    if (p.field == NULL && p.text.len == 0)
        return true;
    if (f->piece_count == PIECES_MAX) {
        snprintf(why, 256, "a format has at most %d fields and stretches of text", PIECES_MAX);
        return false;
    }
    f->pieces[f->piece_count++] = p;
    return true;
}

/* One field at `*rest`, which begins with its brace. */
static bool read_field(struct access_format *f, struct slice *rest, char why[256])
{
    struct slice inside = { rest->ptr + 1, rest->len - 1 };
    size_t end = slice_find(inside, '}');
    if (end == inside.len) {
        snprintf(why, 256,
                 "the brace at position %td is not closed; a brace of its own is written {{",
                 rest->ptr - f->text + 1);
        return false;
    }
    struct slice name = { inside.ptr, end };
    const struct field *field = field_named(name);
    if (field == NULL) {
        say_unknown(name, why);
        return false;
    }
    *rest = (struct slice){ inside.ptr + end + 1, inside.len - end - 1 };
    return add_piece(f, (struct piece){ .field = field }, why);
}

static bool read_pieces(struct access_format *f, struct slice rest, char why[256])
{
    while (rest.len > 0) {
        size_t brace = slice_find(rest, '{');
        bool doubled = brace + 1 < rest.len && rest.ptr[brace + 1] == '{';
        struct slice text = { rest.ptr, doubled ? brace + 1 : brace };
        size_t taken = doubled ? brace + 2 : brace;
        if (!add_piece(f, (struct piece){ .text = text }, why))
            return false;
        rest = (struct slice){ rest.ptr + taken, rest.len - taken };
        if (rest.len > 0 && !doubled && !read_field(f, &rest, why))
            return false;
    }
    return true;
}

static bool has_field(const struct access_format *f)
{
    for (size_t i = 0; i < f->piece_count; i++)
        if (f->pieces[i].field != NULL)
            return true;
    return false;
}

static bool has_control(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (((unsigned char)s.ptr[i] < 0x20 && s.ptr[i] != '\t') || s.ptr[i] == 0x7f)
            return true;
    return false;
}

static bool read_format(struct access_format *f, struct slice text, char why[256])
{
    if (slice_equal(text, SLICE("combined")))
        return f->is_combined = true;
    if (slice_equal(text, SLICE("json")))
        return f->is_json = true;
    if (text.len > FORMAT_BYTES_MAX) {
        snprintf(why, 256, "a format has at most %d bytes", FORMAT_BYTES_MAX);
        return false;
    }
    if (has_control(text)) {
        snprintf(why, 256,
                 "a format holds no line break or other control byte (a tab may be there)");
        return false;
    }
    if (!read_pieces(f, text, why))
        return false;
    if (has_field(f))
        return true;
    const char *near = is_near("combined", text) ? "; did you mean combined?"
                       : is_near("json", text)   ? "; did you mean json?"
                                                 : "";
    snprintf(
        why, 256,
        "a format is combined, json, or a string with {fields}, such as \"{client} {status}\"%s",
        near);
    return false;
}

struct access_format *access_format_new(const char *format, char why[256])
{
    struct access_format *f = xcalloc(1, sizeof *f);
    f->second = -1;
    f->text = xstrdup(format);
    if (!read_format(f, slice_of(f->text), why))
        access_format_free(&f);
    return f;
}

void access_format_free(struct access_format **f)
{
    if (*f == NULL)
        return;
    free((*f)->text);
    free(*f);
    *f = NULL;
}

bool accesslog_format_check(const char *format, char why[256])
{
    struct access_format *f = access_format_new(format, why);
    bool reads = f != NULL;
    access_format_free(&f);
    return reads;
}
