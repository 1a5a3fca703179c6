/* tests/unit/cache/test_key.c: the canonical key, as rows. */
#include "tests/unit/cache/decide_rows.h"

#define S(text) SLICE_INIT(text)

/* Keys with '|' for NUL. */
static const struct {
    struct key_parts parts;
    const char *key, *why;
} rows[] = {
    { { S("s"), S("example.com"), 0, S("/"), .query = { NULL, 0 } },
      "s|example.com/",
      "no port, no query" },
    { { S("s"), S("example.com"), 8080, S("/"), .query = { NULL, 0 } },
      "s|example.com:8080/",
      "a port" },
    { { S("s"), S("example.com"), 65535, S("/"), .query = { NULL, 0 } },
      "s|example.com:65535/",
      "the longest port" },
    { { S("s"), S("example.com"), 7, S("/"), .query = { NULL, 0 } },
      "s|example.com:7/",
      "the shortest port" },
    { { S("s"), S("[::1]"), 8080, S("/a"), .query = { NULL, 0 } }, "s|[::1]:8080/a", "an address" },
    { { S("s"), S("h"), 0, S("/a/b"), .query = S("x=1&y=2") }, "s|h/a/b?x=1&y=2", "a query" },
    { { S("s"), S("h"), 0, S("/a"), .query = S("") },
      "s|h/a?",
      "RFC 3986 6.2.3: an empty query is not none" },
    { { S("s"), S("h"), 0, S("/A%2f"), .query = S("Q") },
      "s|h/A%2f?Q",
      "RFC 9110 4.2.3: case is kept" },
    { { S("s"), S("h"), 0, S("//a"), .query = { NULL, 0 } },
      "s|h//a",
      "RFC 3986 6.2.2: empty segments are kept" },
    { { S("*"), S("h"), 0, S("/"), .query = { NULL, 0 } }, "*|h/", "the site of all hosts" },
    { { S("s"), S(""), 0, S("/"), .query = { NULL, 0 } }, "s|/", "no host: HTTP/1.0" },
    { { S("s"), S("h"), 0, S("/A/Bc.ASPX"), S("Q=A"), .ignores_case = true },
      "s|h/a/bc.aspx?Q=A",
      "the path alone in lower case" },
    { { S("S"), S("h"), 0, S("/ABCDEFGHIJKLMNOPQRSTUVWXYZ/@[`{/abc%2F"), .query = { NULL, 0 },
        .ignores_case = true },
      "S|h/abcdefghijklmnopqrstuvwxyz/@[`{/abc%2f",
      "all letters, and what stands beside them" },
    { { S("s"), S("h"), 0, S("/\xc3\x84\xc1\xda\xe1\xff\x80Z"), .query = { NULL, 0 },
        .ignores_case = true },
      "s|h/\xc3\x84\xc1\xda\xe1\xff\x80z",
      "ASCII alone" },
    { { S("s"), S("h"), 0, S("/n"), { NULL, 0 }, .extra = S("accept-language=de\0") },
      "s|h/n|accept-language=de|",
      "a field of the rules" },
    { { S("s"), S("h"), 8080, S("/n"), .query = S("q"), .extra = S("a=1\0b=\0") },
      "s|h:8080/n?q|a=1|b=|",
      "two of them" },
    { { S("s"), S("h"), 0, S("/n"), .query = S("q"), .extra = S("") }, "s|h/n?q", "none of them" },
    { { S("s"), S("h"), 0, S(""), .query = { NULL, 0 } }, "", "no path" },
    { { S("s"), S("h"), 0, S("*"), .query = { NULL, 0 } }, "", "no path" },
    { { S("s"), S("h"), 0, S("a/"), .query = { NULL, 0 } }, "", "no path" },
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char out[128];
        size_t length = cache_key_write(&rows[i].parts, out, sizeof out - 1);
        out[length] = '\0';
        for (size_t c = 0; c < length; c++)
            if (out[c] == '\0')
                out[c] = '|';
        if (strcmp(out, rows[i].key) != 0)
            fail_msg("row %zu (%s): %s, not %s", i, rows[i].why, out, rows[i].key);
    }
}

/* No two rows that have a key have the same one. */
static void test_all_differ(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        for (size_t j = 0; j < i; j++) {
            char a[128], b[128];
            struct slice first = { a, cache_key_write(&rows[i].parts, a, sizeof a) };
            struct slice second = { b, cache_key_write(&rows[j].parts, b, sizeof b) };
            assert_true(first.len == 0 || !slice_equal(first, second));
        }
}

/* Whatever the room is: the whole key or nothing, and never a byte beyond. */
static void test_room(void **state)
{
    (void)state;
    const struct key_parts parts = { S("site"),  S("example.com"), 65535,
                                     S("/path"), S("query"),       .extra = S("a=b\0") };
    char whole[64];
    size_t length = cache_key_write(&parts, whole, sizeof whole);
    assert_int_equal(length, strlen("site|example.com:65535/path?query|a=b|"));
    for (size_t room = 0; room <= sizeof whole; room++) {
        char out[sizeof whole + 1];
        memset(out, '#', sizeof out);
        size_t written = cache_key_write(&parts, out, room);
        assert_true(written == 0 || written == length);
        assert_true(written <= room);
        assert_true(room < length + 1 || written == length);
        for (size_t c = room; c < sizeof out; c++)
            assert_int_equal(out[c], '#');
    }
}

/* Eight at a time or one by one: the same for every byte at every place. */
static void test_lower_case(void **state)
{
    (void)state;
    for (unsigned byte = 1; byte < 256; byte++)
        for (size_t place = 1; place < 20; place++) {
            char path[20], key[64];
            memset(path, 'x', sizeof path);
            path[0] = '/';
            path[place] = (char)byte;
            const struct key_parts parts = {
                S("s"), S("h"), 0, { path, sizeof path }, .ignores_case = true
            };
            size_t length = cache_key_write(&parts, key, sizeof key);
            path[place] = ascii_lower(path[place]);
            assert_int_equal(length, 3 + sizeof path);
            assert_memory_equal(key + 3, path, sizeof path);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_all_differ),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_lower_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
