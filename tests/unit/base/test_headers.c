/* tests/unit/base/test_headers.c: header lists: known names, order, repeats, lists of tokens. */
#include "base/headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* In an allocation of exactly its size: looking a name up reads nothing around it. */
static enum header_id id_of_copy(const char *name, size_t len)
{
    char *copy = malloc(len == 0 ? 1 : len);
    memcpy(copy, name, len);
    enum header_id id = header_id_of((struct slice){ copy, len });
    free(copy);
    return id;
}

static void test_known_names_in_any_case(void **state)
{
    (void)state;
    for (unsigned id = 1; id < HEADER_ID_COUNT; id++) {
        struct slice name = header_name(id);
        char other[64];
        assert_int_equal(id_of_copy(name.ptr, name.len), id);
        for (size_t i = 0; i < name.len; i++)
            other[i] = name.ptr[i] >= 'a' && name.ptr[i] <= 'z' ? (char)(name.ptr[i] - 32)
                                                                : ascii_lower(name.ptr[i]);
        assert_int_equal(id_of_copy(other, name.len), id);
    }
}

/* Each byte of each known name changed in each bit: only the case of a letter may go unnoticed. */
static void test_near_misses_are_unknown(void **state)
{
    (void)state;
    for (unsigned id = 1; id < HEADER_ID_COUNT; id++) {
        struct slice name = header_name(id);
        char other[64];
        for (size_t i = 0; i < name.len * 8; i++) {
            memcpy(other, name.ptr, name.len);
            other[i / 8] = (char)(other[i / 8] ^ 1 << i % 8);
            bool is_same = slice_equal_nocase((struct slice){ other, name.len }, name);
            enum header_id got = id_of_copy(other, name.len);
            if (is_same
                    ? got != id
                    : got != HEADER_OTHER &&
                          !slice_equal_nocase(header_name(got), (struct slice){ other, name.len }))
                fail_msg("bit %zu of " SLICE_FMT ": %u", i, SLICE_ARG(name), got);
        }
        assert_int_equal(id_of_copy(name.ptr, name.len - 1) == id, false);
        memcpy(other, name.ptr, name.len);
        memcpy(other + name.len, name.ptr, name.len); /* begins and ends as the name does */
        assert_int_equal(id_of_copy(other, name.len * 2), HEADER_OTHER);
        other[name.len] = 'x';
        assert_int_equal(id_of_copy(other, name.len + 1) == id, false);
    }
    assert_int_equal(id_of_copy("", 0), HEADER_OTHER);
    assert_int_equal(id_of_copy("X", 1), HEADER_OTHER);
    assert_int_equal(id_of_copy("X-A-Name-Longer-Than-Any-That-We-Know-Of", 40), HEADER_OTHER);
}

static void test_order_and_repeats(void **state)
{
    (void)state;
    enum { FIELDS = HEADERS_MAX };
    struct header room[FIELDS];
    struct headers h;
    headers_init(&h, room, FIELDS);
    char values[FIELDS];
    for (int i = 0; i < FIELDS; i++) {
        values[i] = (char)i;
        static const char *const names[] = { "Cookie", "X-Own", "accept", "COOKIE" };
        assert_true(headers_add(&h, slice_of(names[i % 4]), (struct slice){ &values[i], 1 }));
    }
    assert_false(headers_add(&h, SLICE("A"), SLICE("b")));
    assert_int_equal(h.count, FIELDS);
    int seen = 0, last = -1;
    for (const struct header *f = headers_find(&h, HEADER_COOKIE); f != NULL;
         f = headers_next(&h, f), seen++) {
        assert_true((unsigned char)f->value.ptr[0] > last);
        last = (unsigned char)f->value.ptr[0];
        assert_true(last % 4 == 0 || last % 4 == 3);
    }
    assert_int_equal(seen, 125);
    seen = 0;
    for (const struct header *f = headers_find(&h, HEADER_ACCEPT); f != NULL;
         f = headers_next(&h, f))
        seen++;
    assert_int_equal(seen, 62);
    assert_null(headers_find(&h, HEADER_HOST));
    assert_int_equal(headers_find_name(&h, SLICE("x-own"), 2), 5);
    assert_int_equal(headers_find_name(&h, SLICE("x-none"), 0), -1);
    headers_init(&h, room, FIELDS);
    assert_false(headers_has(&h, HEADER_COOKIE));
    assert_null(headers_value(&h, HEADER_COOKIE).ptr);
}

/* RFC 9110 5.6.1, 7.6.1 */
static void test_drop(void **state)
{
    (void)state;
    struct header storage[8];
    struct headers h;
    headers_init(&h, storage, 8);
    static const char *const names[] = { "X-Forwarded-Host", "A", "Via", "x-forwarded-host",
                                         "Via", "B", "X-Forwarded-Host", "Via" };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        assert_true(headers_add(&h, slice_of(names[i]), slice_of(names[i])));
    headers_drop(&h, HEADER_RANGE); /* none there */
    assert_int_equal(h.count, 8);
    headers_drop(&h, HEADER_X_FORWARDED_HOST);
    assert_int_equal(h.count, 5);
    assert_false(headers_has(&h, HEADER_X_FORWARDED_HOST));
    assert_int_equal(headers_find_name(&h, SLICE("A"), 0), 0);
    assert_int_equal(headers_find_name(&h, SLICE("B"), 0), 3);
    const struct header *via = headers_find(&h, HEADER_VIA);
    assert_ptr_equal(via, &storage[1]);
    via = headers_next(&h, via);
    assert_ptr_equal(via, &storage[2]);
    via = headers_next(&h, via);
    assert_ptr_equal(via, &storage[4]);
    assert_null(headers_next(&h, via));
}

static void test_tokens(void **state)
{
    (void)state;
    struct header room[4];
    struct headers h;
    headers_init(&h, room, ARRAY_COUNT(room));
    assert_false(headers_is_nominated(&h, SLICE("a")));
    assert_true(headers_add(&h, SLICE("Connection"), SLICE(", a ,B;q=1,\"c,d\"")));
    assert_true(headers_add(&h, SLICE("connection"), SLICE("e")));
    assert_true(headers_has_token(&h, HEADER_CONNECTION, SLICE("A")));
    assert_true(headers_has_token(&h, HEADER_CONNECTION, SLICE("b")));
    assert_true(headers_is_nominated(&h, SLICE("E")));
    assert_false(headers_is_nominated(&h, SLICE("d")));
    assert_false(headers_is_nominated(&h, SLICE("q")));
}

/* RFC 9110 7.6.1 */
static void test_hop_by_hop(void **state)
{
    (void)state;
    assert_true(header_is_hop_by_hop(HEADER_CONNECTION) && header_is_hop_by_hop(HEADER_TE));
    assert_true(header_is_hop_by_hop(HEADER_TRANSFER_ENCODING) &&
                header_is_hop_by_hop(HEADER_UPGRADE));
    assert_true(header_is_hop_by_hop(HEADER_PROXY) && header_is_hop_by_hop(HEADER_KEEP_ALIVE));
    assert_false(header_is_hop_by_hop(HEADER_HOST) || header_is_hop_by_hop(HEADER_CONTENT_LENGTH));
    assert_false(header_is_hop_by_hop(HEADER_OTHER));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_names_in_any_case),
        cmocka_unit_test(test_near_misses_are_unknown),
        cmocka_unit_test(test_order_and_repeats),
        cmocka_unit_test(test_drop),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_hop_by_hop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
