/* Addresses as text, and the networks that hold them. */
#include "base/peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct peer peer_of(const char *text)
{
    struct peer p;
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(80) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(80) };
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        peer_from(&p, (void *)&v4);
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
        peer_from(&p, (void *)&v6);
    }
    return p;
}

static void text_goes_round(void **state)
{
    (void)state;
    static const char *const rows[] = { "192.0.2.1", "0.0.0.0", "255.255.255.255", "2001:db8::1", "::1" };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[PEER_TEXT];
        struct peer p = peer_of(rows[i]);
        assert_int_equal(peer_text(&p, text), strlen(rows[i]));
        assert_string_equal(text, rows[i]);
        assert_int_equal(p.port, 80);
    }
    struct sockaddr_un path = { .sun_family = AF_UNIX };
    struct peer p;
    char text[PEER_TEXT];
    peer_from(&p, (void *)&path);
    assert_int_equal(peer_text(&p, text), 5);
    assert_string_equal(text, "unix:");
}

static void networks_hold_what_they_say(void **state)
{
    (void)state;
    static const struct {
        const char *network, *address;
        bool holds;
    } rows[] = {
        { "10.0.0.0/8", "10.255.0.1", true },      { "10.0.0.0/8", "11.0.0.1", false },
        { "192.0.2.128/25", "192.0.2.129", true }, { "192.0.2.128/25", "192.0.2.127", false },
        { "192.0.2.1", "192.0.2.1", true },        { "192.0.2.1", "192.0.2.2", false },
        { "0.0.0.0/0", "203.0.113.9", true },      { "0.0.0.0/0", "2001:db8::1", false },
        { "2001:db8::/32", "2001:db8:1::1", true }, { "2001:db8::/32", "2001:db9::1", false },
        { "::1/128", "::1", true },                { "::/0", "2001:db8::1", true },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct network n;
        struct peer p = peer_of(rows[i].address);
        assert_true(network_parse(rows[i].network, &n));
        assert_int_equal(network_has(&n, &p), rows[i].holds);
    }
}

static void wrong_networks_are_refused(void **state)
{
    (void)state;
    static const char *const rows[] = { "", "/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0/8", "::/129", "host/8", "10.0.0.0/8x" };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct network n;
        assert_false(network_parse(rows[i], &n));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_goes_round),
        cmocka_unit_test(networks_hold_what_they_say),
        cmocka_unit_test(wrong_networks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
