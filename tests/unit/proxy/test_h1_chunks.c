/* tests/unit/proxy/test_h1_chunks.c: the chunked coding as rows (RFC 9112 7.1): bytes, verdict, the
 * body that came out and what was left. Every row is fed whole, a byte at a time, and in pieces of
 * three.
 */
#include "proxy/h1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TRAILER_MAX = 40 };

struct row {
    const char *section;
    struct slice bytes;
    enum h1_result result;
    enum h1_cause cause;
    struct slice body, left; /* `left` of a good one */
};
#define GOOD(section, bytes, body, left)                                                           \
    {                                                                                              \
        section, SLICE_INIT(bytes left), H1_DONE, H1_OK, SLICE_INIT(body), SLICE_INIT(left)        \
    }
#define FAULTY(section, bytes, id, body)                                                           \
    {                                                                                              \
        section, SLICE_INIT(bytes), H1_BAD, H1_##id, SLICE_INIT(body), SLICE_INIT("")              \
    }
#define SHORT(section, bytes, body)                                                                \
    {                                                                                              \
        section, SLICE_INIT(bytes), H1_MORE, H1_OK, SLICE_INIT(body), SLICE_INIT("")               \
    }
#define END "0\r\n\r\n"

static const struct row rows[] = {
    GOOD("9112 7.1", END, "", ""),
    GOOD("9112 7.1", "5\r\nhello\r\n" END, "hello", ""),
    GOOD("9112 7.1", "5\r\nhello\r\n6\r\n world\r\n" END, "hello world", "GET / HTTP/1.1\r\n"),
    GOOD("9112 7.1", "a\r\n0123456789\r\nA\r\n0123456789\r\n" END, "01234567890123456789", "\r\n"),
    GOOD("9112 7.1", "10\r\n0123456789abcdef\r\n" END, "0123456789abcdef", ""),
    GOOD("9112 7.1", "0000000000000003\r\na\r\n\r\n" END, "a\r\n", "x"),
    GOOD("9112 7.1", "000\r\n\r\n", "", "0"),
    /* sizes */
    FAULTY("9112 7.1", "\r\n", CHUNK, ""),
    FAULTY("9112 7.1", ";a\r\n", CHUNK, ""),
    FAULTY("9112 7.1", "0x5\r\nhello\r\n" END, CHUNK, ""),
    FAULTY("9112 7.1", "+5\r\nhello\r\n" END, CHUNK, ""),
    FAULTY("9112 7.1", "-5\r\nhello\r\n" END, CHUNK, ""),
    FAULTY("9112 7.1", " 5\r\nhello\r\n" END, CHUNK, ""),
    FAULTY("9112 7.1", "5 \r\nhello\r\n" END, CHUNK, ""),
    FAULTY("9112 7.1.1", "5 ;a\r\nhello\r\n" END, CHUNK, ""),
    FAULTY("9112 7.1", "5\t\r\nhello\r\n" END, CHUNK, ""),
    FAULTY("9112 7.1", "5g\r\nhello\r\n" END, CHUNK, ""),
    FAULTY("9112 7.1", "5,\r\nhello\r\n" END, CHUNK, ""),
    FAULTY("9112 7.1", "5h\r\nhello\r\n" END, CHUNK, ""),
    FAULTY("9112 7.1", "\x80\r\n", CHUNK, ""),
    FAULTY("9112 7.1", "0\x00\r\n\r\n", CHUNK, ""),
    FAULTY("9112 7.1", "00000000000000005\r\nhello\r\n" END, CHUNK, ""),
    FAULTY("9112 7.1", "8000000000000000\r\n", CHUNK, ""),
    FAULTY("9112 7.1", "ffffffffffffffff\r\n", CHUNK, ""),
    FAULTY("9112 7.1", "10000000000000005\r\nhello\r\n", CHUNK, ""),
    SHORT("9112 7.1", "7fffffffffffffff\r\nabc", "abc"),
    /* line ends */
    FAULTY("9112 2.2", "\n", BARE_LINE_END, ""),
    FAULTY("9112 7.1", "5\nhello\r\n" END, BARE_LINE_END, ""),
    FAULTY("9112 7.1", "5\rhello\r\n" END, BARE_LINE_END, ""),
    FAULTY("9112 7.1", "5\r\r\nhello\r\n" END, BARE_LINE_END, ""),
    FAULTY("9112 7.1", "5\r\nhello\n" END, BARE_LINE_END, "hello"),
    FAULTY("9112 7.1", "5\r\nhello\r" END, BARE_LINE_END, "hello"),
    FAULTY("9112 7.1", "5\r\nhello" END, CHUNK, "hello"),
    FAULTY("9112 7.1", "5\r\nhello!\r\n" END, CHUNK, "hello"),
    FAULTY("9112 7.1", "5\r\nhell\r\n" END, BARE_LINE_END, "hell\r"),
    FAULTY("9112 7.1", "0\r\n\n", BARE_LINE_END, ""),
    FAULTY("9112 7.1", "0\r\n\rx", BARE_LINE_END, ""),
    FAULTY("9112 7.1", "0\n\r\n", BARE_LINE_END, ""),
    /* extensions */
    GOOD("9112 7.1.1", "5;\r\nhello\r\n" END, "hello", ""),
    GOOD("9112 7.1.1", "5;a\r\nhello\r\n0;b=c\r\n\r\n", "hello", ""),
    GOOD("9112 7.1.1", "5;a = \"q;\x80\" ; b\r\nhello\r\n" END, "hello", ""),
    FAULTY("9112 7.1.1", "5;a\nhello\r\n" END, BARE_LINE_END, ""),
    FAULTY("9112 7.1.1", "5;a\rb\r\nhello\r\n" END, BARE_LINE_END, ""),
    FAULTY("9112 7.1.1", "5;a=\"\r\n\"\r\nhello\r\n" END, CHUNK, "\"\r\nhe"),
    FAULTY("9112 7.1.1", "5;a\x00\r\nhello\r\n" END, CHUNK, ""),
    FAULTY("9112 7.1.1", "5;a\t\r\nhello\r\n" END, CHUNK, ""),
    FAULTY("9112 7.1.1", "5;a\x7f\r\nhello\r\n" END, CHUNK, ""),
    /* trailers: 40 bytes of them, line ends included */
    GOOD("9112 7.1.2", "0\r\nX: y\r\n\r\n", "", "z"),
    GOOD("9112 7.1.2", "0\r\nX:\r\nContent-Length: 5\r\nHost: a\r\n\r\n", "", "z"),
    GOOD("9112 7.1.2", "0\r\nTransfer-Encoding: chunked\r\n\r\n", "", ""),
    GOOD("9112 7.1.2", "0\r\nX: 6789012345678901234567890123456789\x80\r\n\r\n", "", ""),
    FAULTY("9112 7.1.2", "0\r\nX: 67890123456789012345678901234567890\x80\r\n\r\n", TRAILER, ""),
    FAULTY("9112 7.1.2", "0\r\nA: 67890123456789\r\nB: 56789012345678901\r\n\r\n", TRAILER, ""),
    FAULTY("9112 7.1.2", "0\r\nX\r\n\r\n", TRAILER, ""),
    FAULTY("9112 7.1.2", "0\r\n: y\r\n\r\n", TRAILER, ""),
    FAULTY("9112 5.1", "0\r\nX : y\r\n\r\n", TRAILER, ""),
    FAULTY("9112 5.2", "0\r\nX: y\r\n z\r\n\r\n", TRAILER, ""),
    FAULTY("9112 2.2", "0\r\n X: y\r\n\r\n", TRAILER, ""),
    FAULTY("9110 5.5", "0\r\nX: \x00\r\n\r\n", TRAILER, ""),
    FAULTY("9112 7.1.2", "0\r\nX\x80: y\r\n\r\n", TRAILER, ""),
    FAULTY("9112 2.2", "0\r\nX: y\n\r\n", BARE_LINE_END, ""),
    FAULTY("9112 2.2", "0\r\nX: y\rz\r\n\r\n", BARE_LINE_END, ""),
    FAULTY("9112 2.2", "0\r\nX\n\r\n", BARE_LINE_END, ""),
    /* cut short */
    SHORT("9112 8", "", ""),
    SHORT("9112 8", "5", ""),
    SHORT("9112 8", "5\r\nhel", "hel"),
    SHORT("9112 8", "5\r\nhello", "hello"),
    SHORT("9112 8", "5\r\nhello\r\n", "hello"),
    SHORT("9112 8", "0\r\n", ""),
    SHORT("9112 8", "0\r\n\r", ""),
    SHORT("9112 8", "0\r\nX: y\r\n", ""),
};

struct decoded {
    enum h1_result result;
    enum h1_cause cause;
    size_t body_len, used;
    char body[256];
};

/* Feeds `bytes` in pieces of `piece`, each in an allocation of its own. */
static void decode(struct slice bytes, size_t piece, struct decoded *d)
{
    struct h1_chunks c;
    h1_chunks_init(&c, TRAILER_MAX);
    *d = (struct decoded){ .result = H1_MORE };
    while (d->used < bytes.len && d->result == H1_MORE) {
        size_t len = bytes.len - d->used < piece ? bytes.len - d->used : piece;
        char *copy = malloc(len);
        memcpy(copy, bytes.ptr + d->used, len);
        struct slice in = { copy, len }, data;
        do {
            d->result = h1_chunks_read(&c, &in, &data, &d->cause);
            assert_true(data.len == 0 || (data.ptr >= copy && data.ptr + data.len <= copy + len));
            assert_true(d->body_len + data.len <= sizeof d->body);
            if (data.len > 0)
                memcpy(d->body + d->body_len, data.ptr, data.len);
            d->body_len += data.len;
        } while (d->result == H1_MORE && data.len > 0);
        assert_true(d->result != H1_MORE || in.len == 0);
        d->used += len - in.len;
        free(copy);
    }
}

static int check(const struct row *row, size_t piece)
{
    struct decoded d;
    decode(row->bytes, piece, &d);
    bool right = d.result == row->result && d.cause == row->cause &&
                 slice_equal((struct slice){ d.body, d.body_len }, row->body) &&
                 (d.result != H1_DONE || d.used == row->bytes.len - row->left.len);
    if (!right)
        print_error("RFC %s, pieces of %zu: " SLICE_FMT "\n  got %d, %s, body " SLICE_FMT
                    ", %zu used\n",
                    row->section, piece, SLICE_ARG(row->bytes), d.result, h1_cause_text(d.cause),
                    (int)d.body_len, d.body, d.used);
    return !right;
}

static void test_rows(void **state)
{
    (void)state;
    int faults = 0;
    for (const struct row *row = rows; row < rows + ARRAY_COUNT(rows); row++)
        faults += check(row, row->bytes.len + 1) + check(row, 1) + check(row, 3);
    assert_int_equal(faults, 0);
}

/* One chunk line of "1;" and `extension` bytes, `count` times over. */
static enum h1_result read_extensions(size_t extension, unsigned size, unsigned count)
{
    struct h1_chunks c;
    enum h1_cause cause;
    enum h1_result result = H1_MORE;
    h1_chunks_init(&c, TRAILER_MAX);
    char *line = malloc(extension + size + 20);
    int len = snprintf(line, 20, "%x;", size);
    memset(line + len, 'e', extension);
    memcpy(line + len + extension, "\r\n", 2);
    memset(line + len + extension + 2, 'd', size);
    memcpy(line + len + extension + 2 + size, "\r\n", 2);
    for (unsigned i = 0; i < count && result == H1_MORE; i++) {
        struct slice in = { line, (size_t)len + extension + size + 4 }, data;
        do
            result = h1_chunks_read(&c, &in, &data, &cause);
        while (result == H1_MORE && data.len > 0);
    }
    free(line);
    return result;
}

/* RFC 9112 7.1.1: bounded each, and in total by what data they come with. */
static void test_extensions_are_bounded(void **state)
{
    (void)state;
    assert_int_equal(read_extensions(1024, 1, 1), H1_MORE);
    assert_int_equal(read_extensions(1025, 1, 1), H1_BAD);
    assert_int_equal(read_extensions(1024, 1, 16), H1_MORE);
    assert_int_equal(read_extensions(1024, 1, 17), H1_BAD);
    assert_int_equal(read_extensions(85, 4096, 1000), H1_MORE);
}

/* Once good or bad it stays so, and takes nothing more. */
static void test_end_is_final(void **state)
{
    (void)state;
    static const struct {
        struct slice bytes;
        enum h1_result result;
        enum h1_cause cause;
    } ends[] = { { SLICE_INIT(END), H1_DONE, H1_OK }, { SLICE_INIT("x"), H1_BAD, H1_CHUNK } };
    for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
        struct h1_chunks c;
        struct slice in = ends[i].bytes, data;
        enum h1_cause cause;
        h1_chunks_init(&c, TRAILER_MAX);
        assert_int_equal(h1_chunks_read(&c, &in, &data, &cause), ends[i].result);
        in = SLICE("5\r\nhello\r\n");
        assert_int_equal(h1_chunks_read(&c, &in, &data, &cause), ends[i].result);
        assert_int_equal(cause, ends[i].cause);
        assert_int_equal(in.len, 10);
        assert_int_equal(data.len, 0);
    }
}

/* RFC 9110 6.5: a limit of nothing takes a body without trailers only. */
static void test_no_trailers(void **state)
{
    (void)state;
    struct h1_chunks c;
    struct slice in = SLICE(END), data;
    enum h1_cause cause;
    h1_chunks_init(&c, 0);
    assert_int_equal(h1_chunks_read(&c, &in, &data, &cause), H1_DONE);
    h1_chunks_init(&c, 0);
    in = SLICE("0\r\nX:\r\n\r\n");
    assert_int_equal(h1_chunks_read(&c, &in, &data, &cause), H1_BAD);
    assert_int_equal(cause, H1_TRAILER);
}

/* Data comes out in place, not a byte at a time. */
static void test_data_is_in_place(void **state)
{
    (void)state;
    struct h1_chunks c;
    struct slice in = SLICE("b\r\nhello world\r\n"), data;
    const char *begin = in.ptr;
    enum h1_cause cause;
    h1_chunks_init(&c, 0);
    assert_int_equal(h1_chunks_read(&c, &in, &data, &cause), H1_MORE);
    assert_ptr_equal(data.ptr, begin + 3);
    assert_int_equal(data.len, 11);
    assert_int_equal(in.len, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_extensions_are_bounded),
        cmocka_unit_test(test_end_is_final),
        cmocka_unit_test(test_no_trailers),
        cmocka_unit_test(test_data_is_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
