/* tests/unit/config/test_values.c: each kind of value, as rows of text and what it reads as. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/config_internal.h"

#define REFUSED UINT64_MAX

struct number_row {
    const char *text;
    uint64_t value;      /* REFUSED */
    const char *printed; /* or the start of the reason */
};

static const struct number_row sizes[] = {
    { "0", 0, "0" },
    { "1", 1, "1" },
    { "1000", 1000, "1000" },
    { "1024", 1024, "1KiB" },
    { "64k", KiB(64), "64KiB" },
    { "64K", KiB(64), "64KiB" },
    { "64KiB", KiB(64), "64KiB" },
    { "64kib", KiB(64), "64KiB" },
    { "512MiB", MiB(512), "512MiB" },
    { "512 MiB", MiB(512), "512MiB" },
    { " 512m ", MiB(512), "512MiB" },
    { "1024MiB", GiB(1), "1GiB" },
    { "1GiB", GiB(1), "1GiB" },
    { "3g", GiB(3), "3GiB" },
    { "4T", TiB(4), "4TiB" },
    { "10B", 10, "10" },
    { "16777215TiB", 16777215 * TiB(1), "16777215TiB" },
    { "16777216TiB", REFUSED, "is too large" },
    { "18446744073709551616", REFUSED, "is too large" },
    { "", REFUSED, "does not begin with a number" },
    { "MiB", REFUSED, "does not begin with a number" },
    { "-1", REFUSED, "does not begin with a number" },
    { "+1", REFUSED, "does not begin with a number" },
    { "1.5GiB", REFUSED, "is not a whole number" },
    { "1GB", REFUSED, "has a unit of two meanings" },
    { "1kb", REFUSED, "has a unit of two meanings" },
    { "1GiBs", REFUSED, "has an unknown unit" },
    { "1GiB2", REFUSED, "has an unknown unit" },
    { "0x10", REFUSED, "has an unknown unit" },
};

static const struct number_row durations[] = {
    { "0", 0, "0s" },
    { "0s", 0, "0s" },
    { "250ms", 250, "250ms" },
    { "10s", 10000, "10s" },
    { "5m", 300000, "5m" },
    { "1h", 3600000, "1h" },
    { "1d", 86400000, "1d" },
    { "1h30m", 5400000, "90m" },
    { "1d12h", 129600000, "36h" },
    { "1s500ms", 1500, "1500ms" },
    { "120s", 120000, "2m" },
    { "10", REFUSED, "has no unit" },
    { "00", 0, "0s" },
    { "1m30", REFUSED, "has no unit" },
    { "1m0", REFUSED, "has no unit" },
    { "30s1m", REFUSED, "has its units out of order" },
    { "1m1m", REFUSED, "has its units out of order" },
    { "1.5s", REFUSED, "is not a whole number" },
    { "10 s", REFUSED, "has an unknown unit" },
    { "10S", REFUSED, "has an unknown unit" },
    { "1y", REFUSED, "has an unknown unit" },
    { "", REFUSED, "does not begin with a number" },
    { "s", REFUSED, "does not begin with a number" },
    { "-1s", REFUSED, "does not begin with a number" },
    { "18446744073709551615d", REFUSED, "is too large" },
    { "213503982334d18446744073709551615ms", REFUSED, "is too large" },
};

struct numbers {
    const struct number_row *rows;
    size_t count;
    bool (*parse)(struct slice text, uint64_t *value, const char **why);
    void (*print)(uint64_t value, FILE *out);
};

static void check_number(const struct numbers *n, const struct number_row *row)
{
    uint64_t value = 0;
    const char *why = NULL;
    bool ok = n->parse(slice_of(row->text), &value, &why);
    if (ok != (row->value != REFUSED) || (ok && value != row->value))
        fail_msg("\"%s\": %s, %llu", row->text, ok ? "read" : why, (unsigned long long)value);
    if (!ok) {
        if (!slice_has_prefix(slice_of(why), slice_of(row->printed)))
            fail_msg("\"%s\": %s", row->text, why);
        return;
    }
    char *printed = NULL;
    size_t size;
    FILE *out = open_memstream(&printed, &size);
    n->print(value, out);
    fclose(out);
    assert_string_equal(printed, row->printed);
    assert_true(n->parse(slice_of(printed), &value, &why) && value == row->value);
    free(printed);
}

static void test_sizes(void **state)
{
    (void)state;
    const struct numbers n = { sizes, ARRAY_COUNT(sizes), config_parse_bytes, config_print_bytes };
    for (size_t i = 0; i < n.count; i++)
        check_number(&n, &n.rows[i]);
}

static void test_durations(void **state)
{
    (void)state;
    const struct numbers n = { durations, ARRAY_COUNT(durations), config_parse_duration,
                               config_print_duration };
    for (size_t i = 0; i < n.count; i++)
        check_number(&n, &n.rows[i]);
}

static void test_bools(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int value; /* -1 refused */
    } rows[] = {
        { "true", 1 }, { "yes", 1 }, { "on", 1 }, { "True", 1 }, { "OFF", 0 },     { "false", 0 },
        { "no", 0 },   { "off", 0 }, { "1", -1 }, { "", -1 },    { "truely", -1 },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        bool value = false;
        bool ok = config_parse_bool(slice_of(rows[i].text), &value);
        assert_int_equal(ok ? value : -1, rows[i].value);
    }
}

struct address_row {
    const char *text;
    const char *host; /* NULL is refused; "/…" is a unix socket's path */
    unsigned port;
    const char *text_kept; /* NULL: as written */
};

/* 107 bytes of path: what a unix socket can have */
#define TEN       "aaaaaaaaaa"
#define LONG_PATH "unix:/aaaaaa" TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static const struct address_row addresses[] = {
    { "127.0.0.1:8080", "127.0.0.1", 8080, NULL },
    { ":8080", "", 8080, NULL },
    { "*:8080", "", 8080, NULL },
    { "0.0.0.0:80", "0.0.0.0", 80, NULL },
    { "[::1]:80", "::1", 80, NULL },
    { "[::]:80", "::", 80, NULL },
    { "localhost:65535", "localhost", 65535, NULL },
    { "127.0.0.1:0", "127.0.0.1", 0, NULL }, /* the kernel chooses */
    { "unix:/run/larder.sock", "/run/larder.sock", 0, NULL },
    { "unix:run", NULL, 0, NULL },
    { "unix:", NULL, 0, NULL },
    { LONG_PATH, &LONG_PATH[5], 0, NULL },
    { LONG_PATH "a", NULL, 0, NULL }, /* leaves no room for the end */
    { "127.0.0.1", NULL, 0, NULL },
    { "8080", NULL, 0, NULL },
    { ":", NULL, 0, NULL },
    { ":80a", NULL, 0, NULL },
    { ":65536", NULL, 0, NULL },
    { "::1", NULL, 0, NULL },
    { "::1:80", NULL, 0, NULL },
    { "[::1]", NULL, 0, NULL },
    { "[::1:80", NULL, 0, NULL },
    { "[::1]x:80", NULL, 0, NULL },
    { "[127.0.0.1]:80", NULL, 0, NULL },
    { "a b:80", NULL, 0, NULL },
    { "a..b:80", NULL, 0, NULL },
    { "", NULL, 0, NULL },
};

static const struct address_row servers[] = {
    { "http://10.0.0.5", "10.0.0.5", 80, NULL },
    { "http://10.0.0.5:8080", "10.0.0.5", 8080, NULL },
    { "http://10.0.0.5:8080/", "10.0.0.5", 8080, "http://10.0.0.5:8080" },
    { "HTTP://app.internal", "app.internal", 80, NULL },
    { "http://under_score:81", "under_score", 81, NULL },
    { "http://[::1]:8080", "::1", 8080, NULL },
    { "http://[::1]", "::1", 80, NULL },
    { "unix:/run/app.sock", "/run/app.sock", 0, NULL },
    { "https://a", NULL, 0, NULL },
    { "ftp://a", NULL, 0, NULL },
    { "a:80", NULL, 0, NULL },
    { "http://", NULL, 0, NULL },
    { "http:///", NULL, 0, NULL },
    { "http://:80", NULL, 0, NULL },
    { "http://a:0", NULL, 0, NULL },
    { "http://a:", NULL, 0, NULL },
    { "http://a/b", NULL, 0, NULL },
    { "http://a//", NULL, 0, NULL },
    { "http://a?b", NULL, 0, NULL },
    { "http://a#b", NULL, 0, NULL },
    { "http://u:p@a", NULL, 0, NULL },
    { "http://::1", NULL, 0, NULL },
    { "http://[::1", NULL, 0, NULL },
    { "http://[x]", NULL, 0, NULL },
};

typedef bool parse_address_f(struct arena *a, struct slice text, struct config_address *address,
                             const char **why);

static void check_address(parse_address_f *parse, const struct address_row *row)
{
    struct arena a;
    arena_init(&a);
    struct config_address address;
    const char *why = NULL;
    bool ok = parse(&a, slice_of(row->text), &address, &why);
    if (ok != (row->host != NULL))
        fail_msg("\"%s\": %s", row->text, ok ? "was read" : why);
    if (ok) {
        bool is_unix = row->host[0] == '/';
        assert_int_equal(address.kind, is_unix ? ADDRESS_UNIX : ADDRESS_TCP);
        assert_string_equal(is_unix ? address.path : address.host, row->host);
        assert_int_equal(address.port, row->port);
        assert_string_equal(address.text, row->text_kept != NULL ? row->text_kept : row->text);
    } else
        assert_non_null(why);
    arena_fini(&a);
}

static void test_addresses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(addresses); i++)
        check_address(config_parse_address, &addresses[i]);
    for (size_t i = 0; i < ARRAY_COUNT(servers); i++)
        check_address(config_parse_server, &servers[i]);
}

static void test_loopback(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_loopback;
    } rows[] = {
        { "127.0.0.1:1", true },
        { "127.9.9.9:1", true },
        { "[::1]:1", true },
        { "localhost:1", true },
        { "unix:/a", true },
        { ":1", false },
        { "0.0.0.0:1", false },
        { "[::]:1", false },
        { "10.0.0.1:1", false },
        { "example.com:1", false },
        { "127.0.0.1.example.com:1", false },
    };
    struct arena a;
    arena_init(&a);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct config_address address;
        const char *why;
        assert_true(config_parse_address(&a, slice_of(rows[i].text), &address, &why));
        assert_int_equal(config_address_is_loopback(&address), rows[i].is_loopback);
    }
    arena_fini(&a);
}

struct string_row {
    const char *text, *value; /* NULL is refused */
};
typedef bool parse_string_f(struct arena *a, struct slice text, char **value, const char **why);

static void check_strings(parse_string_f *parse, const struct string_row *rows, size_t count)
{
    struct arena a;
    arena_init(&a);
    for (size_t i = 0; i < count; i++) {
        char *value = NULL;
        const char *why = NULL;
        bool ok = parse(&a, slice_of(rows[i].text), &value, &why);
        if (ok != (rows[i].value != NULL))
            fail_msg("\"%s\": %s", rows[i].text, ok ? "was read" : why);
        if (ok)
            assert_string_equal(value, rows[i].value);
    }
    arena_fini(&a);
}

static void test_site_hosts(void **state)
{
    (void)state;
    static const struct string_row rows[] = {
        { "www.example.com", "www.example.com" },
        { "WWW.Example.COM.", "www.example.com" },
        { "*.Example.com", "*.example.com" },
        { "*", "*" },
        { "localhost", "localhost" },
        { "10.0.0.1", "10.0.0.1" },
        { "[::1]", "[::1]" },
        { "[FE80::1]", "[fe80::1]" },
        { "xn--bcher-kva.example", "xn--bcher-kva.example" },
        { "", NULL },
        { ".", NULL },
        { ".example.com", NULL },
        { "a..b", NULL },
        { "*.", NULL },
        { "**", NULL },
        { "*a.example.com", NULL },
        { "a.*.com", NULL },
        { "a:80", NULL },
        { "[::1]:80", NULL },
        { "::1", NULL },
        { "http://a", NULL },
        { "a/b", NULL },
        { "b\xc3\xbc"
          "cher.example",
          NULL },
        { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
          NULL }, /* 64 in a label */
    };
    check_strings(config_parse_site_host, rows, ARRAY_COUNT(rows));
}

static void test_networks(void **state)
{
    (void)state;
    static const struct string_row rows[] = {
        { "10.0.0.0/8", "10.0.0.0/8" },
        { "10.0.0.1", "10.0.0.1/32" },
        { "0.0.0.0/0", "0.0.0.0/0" },
        { "fd00::/8", "fd00::/8" },
        { "::1", "::1/128" },
        { "10.0.0.1/8", NULL },
        { "10.0.0.0/33", NULL },
        { "10.0.0.0/", NULL },
        { "10.0.0.0/-1", NULL },
        { "fd00::/129", NULL },
        { "10.0.0/8", NULL },
        { "example.com", NULL },
        { "", NULL },
        { "/8", NULL },
    };
    check_strings(config_parse_network, rows, ARRAY_COUNT(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),    cmocka_unit_test(test_durations),
        cmocka_unit_test(test_bools),    cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_loopback), cmocka_unit_test(test_site_hosts),
        cmocka_unit_test(test_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
