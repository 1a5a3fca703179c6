/* tests/unit/proxy/test_h1_target.c: authorities in their canonical form (RFC 3986 3.2.2, 6.2.2).
 * The forms of a target are rows of test_h1.c. */
#include "proxy/h1.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct host_row {
    const char *authority, *host; /* host NULL: malformed */
    uint16_t port;
};
static const struct host_row host_rows[] = {
    { "example.com", "example.com", 0 },
    { "EXAMPLE.Com", "example.com", 0 },
    { "example.com.", "example.com", 0 },
    { "example.com.:8080", "example.com", 8080 },
    { "a:80", "a", 80 },
    { "a:", "a", 0 },
    { "a:00080", "a", 80 },
    { "a:65535", "a", 65535 },
    { "127.0.0.1:9", "127.0.0.1", 9 },
    { "[::1]", "[::1]", 0 },
    { "[2001:DB8::A]:443", "[2001:db8::a]", 443 },
    { "[::ffff:1.2.3.4]", "[::ffff:1.2.3.4]", 0 },
    { "a-b_c~d!$&'()*+;=", "a-b_c~d!$&'()*+;=", 0 },
    { "xn--bcher-kva.example", "xn--bcher-kva.example", 0 },
    { "", NULL, 0 },
    { ".", NULL, 0 },
    { "..", NULL, 0 },
    { ".a", NULL, 0 },
    { "a..", NULL, 0 },
    { "a..b", NULL, 0 },
    { ":80", NULL, 0 },
    { "a:0", NULL, 0 },
    { "a:65536", NULL, 0 },
    { "a:000080", NULL, 0 },
    { "a:8 0", NULL, 0 },
    { "a:+80", NULL, 0 },
    { "a:80:80", NULL, 0 },
    { "a,b", NULL, 0 },
    { "a b", NULL, 0 },
    { " a", NULL, 0 },
    { "u@a", NULL, 0 },
    { "a/", NULL, 0 },
    { "a%41", NULL, 0 },
    { "a\x80", NULL, 0 },
    { "::1", NULL, 0 },
    { "[::1", NULL, 0 },
    { "[]", NULL, 0 },
    { "[::1]x", NULL, 0 },
    { "[::1]:x", NULL, 0 },
    { "[::1%25eth0]", NULL, 0 },
    { "[v1.a]", NULL, 0 },
    { "[1.2.3.4]", NULL, 0 },
    { "[1:2:3:4:5:6:7:8:9]", NULL, 0 },
    { "[0000000000000000000000000000000000000000000000000000000::1]", NULL, 0 },
    { "a]", NULL, 0 },
};

static void test_canonical_host(void **state)
{
    (void)state;
    for (const struct host_row *row = host_rows; row < host_rows + ARRAY_COUNT(host_rows); row++) {
        char out[256];
        size_t len = 0;
        uint16_t port = 0;
        bool taken = h1_canonical_host(slice_of(row->authority), out, &len, &port);
        if (taken != (row->host != NULL))
            fail_msg("%s was %s", row->authority, taken ? "taken" : "refused");
        if (!taken)
            continue;
        assert_true(slice_equal((struct slice){ out, len }, slice_of(row->host)));
        assert_int_equal(port, row->port);
    }
}

static void test_canonical_host_length(void **state)
{
    (void)state;
    char text[260], out[256];
    size_t len;
    uint16_t port;
    memset(text, 'a', sizeof text);
    assert_true(h1_canonical_host((struct slice){ text, 255 }, out, &len, &port));
    assert_int_equal(len, 255);
    assert_false(h1_canonical_host((struct slice){ text, 256 }, out, &len, &port));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical_host),
        cmocka_unit_test(test_canonical_host_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
