/* tests/unit/proxy/h1_rows.h: heads as rows: bytes, verdict, and for a good one what was read.
 *
 * Every row is also fed one byte longer at a time, each time from a fresh allocation (so that the
 * sanitizer sees any reading past the end, and nothing of the old buffer can be used): at each
 * length the verdict must be that of a first reading of the same bytes, and the last one that of
 * the whole. The test that includes this brings read_head() and describe_head() for its kind of
 * head.
 */
#ifndef TEST_H1_ROWS_H
#define TEST_H1_ROWS_H
#include "proxy/h1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { FIELDS_MAX = 20, TEXT_MAX = 1024 };
/* Small, so that rows reach them; `wide` for what is long. */
static const struct h1_limits limits = { .head_bytes = 600, .target_bytes = 60, .field_count = 8 };
static const struct h1_limits wide_limits = { .head_bytes = 256 << 10,
                                              .target_bytes = 256 << 10,
                                              .field_count = 8 };

struct row {
    const char *section;
    struct slice bytes;
    enum h1_result result;
    enum h1_cause cause;
    const char *text; /* of a good one, see describe_…() */
    size_t known_by;  /* of a bad one: with so many bytes it is refused at the latest; 0 is all of
                         them */
    enum h1_method asked; /* of a response */
    bool is_wide;
};
#define GOOD(section, bytes, text)                                                                 \
    {                                                                                              \
        section, SLICE_INIT(bytes), H1_DONE, H1_OK, text, 0, METHOD_GET, false                     \
    }
#define FAULTY(section, bytes, id)                                                                 \
    {                                                                                              \
        section, SLICE_INIT(bytes), H1_BAD, H1_##id, NULL, 0, METHOD_GET, false                    \
    }
#define FAULTY_BY(section, early, rest, id)                                                        \
    {                                                                                              \
        section, SLICE_INIT(early rest), H1_BAD, H1_##id, NULL, sizeof(early) - 1, METHOD_GET,     \
            false                                                                                  \
    }
#define SHORT(section, bytes)                                                                      \
    {                                                                                              \
        section, SLICE_INIT(bytes), H1_MORE, H1_OK, NULL, 0, METHOD_GET, false                     \
    }
/* One reading by either reader; `bytes` are its own allocation. */
struct reading {
    struct header fields[FIELDS_MAX];
    struct h1_request request;
    struct h1_response response;
    enum h1_result result;
    enum h1_cause cause;
};

/* Into x->request or x->response, with the limits above. `scanned` is as it was left. */
static void read_head(struct reading *x, struct slice bytes, const struct row *row);
static void describe_head(const struct reading *x, char out[TEXT_MAX]);

static void describe_body(char *out, size_t size, enum h1_framing framing, uint64_t length)
{
    static const char *const words[] = { "none", "", "chunked", "close" };
    if (framing == FRAMING_LENGTH)
        snprintf(out, size, "%llu", (unsigned long long)length);
    else
        snprintf(out, size, "%s", words[framing]);
}

static void show(const struct row *row, const char *what, size_t bytes, const struct reading *got)
{
    print_error("RFC %s: %s, after %zu bytes of: " SLICE_FMT "\n  got %s, %s\n", row->section, what,
                bytes, SLICE_ARG(row->bytes),
                got->result == H1_DONE   ? "done"
                : got->result == H1_MORE ? "more"
                                         : "bad",
                h1_cause_text(got->cause));
}

static int check_whole(const struct row *row, const struct reading *x)
{
    char text[TEXT_MAX];
    if (x->result != row->result || x->cause != row->cause) {
        show(row, "whole", row->bytes.len, x);
        return 1;
    }
    if (row->text == NULL)
        return 0;
    describe_head(x, text);
    if (strcmp(text, row->text) == 0)
        return 0;
    show(row, "whole", row->bytes.len, x);
    print_error("  read %s\n  want %s\n", text, row->text);
    return 1;
}

/* One byte more each time; the verdict at each length is that of a fresh reading. */
static int check_dripping(const struct row *row)
{
    static struct reading dripping, fresh;
    dripping.request.scanned = dripping.response.scanned = 0;
    for (size_t n = 0; n <= row->bytes.len; n++) {
        char *copy = malloc(n);
        if (n > 0)
            memcpy(copy, row->bytes.ptr, n);
        read_head(&dripping, (struct slice){ copy, n }, row);
        fresh.request.scanned = fresh.response.scanned = 0;
        read_head(&fresh, (struct slice){ copy, n }, row);
        int faults = dripping.result != fresh.result || dripping.cause != fresh.cause;
        if (!faults && dripping.result != H1_MORE) {
            faults = check_whole(row, &dripping);
            if (row->result == H1_BAD && row->known_by != 0 && n != row->known_by)
                faults = 1;
        }
        free(copy);
        if (faults)
            show(row, "dripping", n, &dripping);
        if (faults || dripping.result != H1_MORE)
            return faults;
    }
    return row->result != H1_MORE;
}

static int check_rows(const struct row *rows, size_t count)
{
    static struct reading x;
    int faults = 0;
    for (const struct row *row = rows; row < rows + count; row++) {
        char *copy = malloc(row->bytes.len);
        memcpy(copy, row->bytes.ptr, row->bytes.len);
        x.request.scanned = x.response.scanned = 0;
        read_head(&x, (struct slice){ copy, row->bytes.len }, row);
        faults += check_whole(row, &x);
        free(copy);
        faults += check_dripping(row);
    }
    return faults;
}

/* A byte at a time costs what the bytes cost, not their square: a quarter of a megabyte of one
 * target, name, value or reason would be 3e10 steps. Processor time, with room for sanitizers. */
static void check_drip_is_linear(const char *begin, char fill)
{
    enum { BYTES = 250 * 1000 };
    static struct reading x;
    static const struct row wide = { .section = "wide", .asked = METHOD_GET, .is_wide = true };
    char *bytes = malloc(BYTES);
    memset(bytes, fill, BYTES);
    memcpy(bytes, begin, strlen(begin));
    x.request.scanned = x.response.scanned = 0;
    clock_t before = clock();
    for (size_t n = 1; n <= BYTES; n++) {
        read_head(&x, (struct slice){ bytes, n }, &wide);
        assert_int_equal(x.result, H1_MORE);
    }
    assert_true((clock() - before) / CLOCKS_PER_SEC < 3);
    free(bytes);
}

#endif
