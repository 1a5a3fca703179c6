/* tests/unit/base/test_base.c: slices and arenas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/arena.h"

static void test_equal(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool equal, equal_nocase;
        int order;
    } rows[] = {
        { "", "", true, true, 0 },       { "a", "a", true, true, 0 },
        { "a", "A", false, true, 1 },    { "a", "b", false, false, -1 },
        { "a", "ab", false, false, -1 }, { "ab", "a", false, false, 1 },
        { "", "a", false, false, -1 },   { "[", "{", false, false, -1 },
        { "@", "`", false, false, -1 },  { "\xc4", "\xe4", false, false, -1 }, /* ASCII only */
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct slice a = slice_of(rows[i].a), b = slice_of(rows[i].b);
        assert_int_equal(slice_equal(a, b), rows[i].equal);
        assert_int_equal(slice_equal_nocase(a, b), rows[i].equal_nocase);
        int order = slice_compare(a, b);
        assert_int_equal((order > 0) - (order < 0), rows[i].order);
    }
    assert_true(slice_equal(SLICE_NONE, SLICE("")));
    assert_true(slice_equal_nocase(SLICE_NONE, SLICE("")));
    assert_int_equal(slice_compare(SLICE_NONE, SLICE_NONE), 0);
    assert_true(slice_is_empty(slice_of(NULL)));
}

static void test_prefix_and_suffix(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
        bool prefix, prefix_nocase, suffix;
    } rows[] = {
        { "abc", "", true, true, true },     { "abc", "ab", true, true, false },
        { "abc", "AB", false, true, false }, { "abc", "bc", false, false, true },
        { "abc", "abc", true, true, true },  { "abc", "abcd", false, false, false },
        { "", "a", false, false, false },    { "", "", true, true, true },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct slice text = slice_of(rows[i].text), part = slice_of(rows[i].part);
        assert_int_equal(slice_has_prefix(text, part), rows[i].prefix);
        assert_int_equal(slice_has_prefix_nocase(text, part), rows[i].prefix_nocase);
        assert_int_equal(slice_has_suffix(text, part), rows[i].suffix);
    }
}

static void test_trim_and_find(void **state)
{
    (void)state;
    static const struct {
        const char *text, *trimmed;
    } rows[] = { { "", "" },    { " ", "" },    { " \t ", "" },         { "a", "a" },
                 { " a", "a" }, { "a\t", "a" }, { "\t a b \t", "a b" }, { "\na", "\na" } };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_true(slice_equal(slice_trim(slice_of(rows[i].text)), slice_of(rows[i].trimmed)));
    assert_int_equal(slice_find(SLICE("abca"), 'a'), 0);
    assert_int_equal(slice_find(SLICE("abca"), 'c'), 2);
    assert_int_equal(slice_find(SLICE("abca"), 'x'), 4);
    assert_int_equal(slice_find(SLICE_NONE, 'x'), 0);
}

/* RFC 9110 5.6.1: elements joined by '|'. */
static void test_list(void **state)
{
    (void)state;
    static const struct {
        const char *list, *elements, *section;
    } rows[] = {
        { "", "", "5.6.1" },
        { ",", "", "5.6.1.2 empty elements" },
        { " , ,\t", "", "5.6.1.2 empty elements" },
        { "a", "a|", "5.6.1" },
        { "a,b", "a|b|", "5.6.1" },
        { " a , b ", "a|b|", "5.6.3 white space" },
        { ",a,,b,", "a|b|", "5.6.1.2 empty elements" },
        { "a b,c", "a b|c|", "5.6.1" },
        { "\"a,b\",c", "\"a,b\"|c|", "5.6.4 quoted" },
        { "x=\"a, b\" ,c", "x=\"a, b\"|c|", "5.6.4 quoted" },
        { "\"a\\\",b\",c", "\"a\\\",b\"|c|", "5.6.4 escaped quote" },
        { "\"a\\\\\",c", "\"a\\\\\"|c|", "5.6.4 escaped backslash" },
        { "\"a,b", "\"a,b|", "5.6.4 left open" },
        { "\"a\\", "\"a\\|", "5.6.4 ends with an escape" },
        { "a\\,b", "a\\|b|", "5.6.4 no escape outside" },
        { "\"\",a", "\"\"|a|", "5.6.4 empty" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char joined[64] = "";
        struct slice rest = slice_of(rows[i].list), element;
        while (slice_next_in_list(&rest, &element)) {
            strncat(joined, element.ptr, element.len);
            strcat(joined, "|");
        }
        assert_string_equal(joined, rows[i].elements);
        assert_non_null(rows[i].section);
        assert_int_equal(rest.len, 0);
    }
}

static void test_to_u64(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool taken;
        uint64_t value;
    } rows[] = {
        { "0", true, 0 },
        { "00", true, 0 },
        { "42", true, 42 },
        { "18446744073709551615", true, UINT64_MAX },
        { "018446744073709551615", true, UINT64_MAX },
        { "18446744073709551616", false, 0 },
        { "18446744073709551620", false, 0 },
        { "99999999999999999999", false, 0 },
        { "184467440737095516150", false, 0 },
        { "", false, 0 },
        { "-1", false, 0 },
        { "+1", false, 0 },
        { " 1", false, 0 },
        { "1 ", false, 0 },
        { "1.0", false, 0 },
        { "0x1", false, 0 },
        { "1a", false, 0 },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t value = 0;
        assert_int_equal(slice_to_u64(slice_of(rows[i].text), &value), rows[i].taken);
        assert_true(value == rows[i].value);
    }
}

static void test_to_string(void **state)
{
    (void)state;
    char *text = slice_to_string((struct slice){ "abcdef", 3 });
    assert_string_equal(text, "abc");
    free(text);
    text = slice_to_string(SLICE_NONE);
    assert_string_equal(text, "");
    free(text);
}

/* Pieces of many sizes: aligned, apart from each other, and all still there at the end. */
static void test_arena_pieces(void **state)
{
    (void)state;
    enum { PIECES = 300 };
    static const size_t sizes[] = { 0, 1, 15, 16, 17, 100, 1000, 4000, 4096, 5000, 100000 };
    struct arena a;
    unsigned char *piece[PIECES];
    arena_init(&a);
    for (size_t i = 0; i < PIECES; i++) {
        size_t size = sizes[i % ARRAY_COUNT(sizes)];
        piece[i] = arena_alloc(&a, size);
        assert_int_equal((uintptr_t)piece[i] % _Alignof(max_align_t), 0);
        memset(piece[i], (int)(i & 0xff), size);
    }
    size_t sum = 0;
    for (size_t i = 0; i < PIECES; i++) {
        size_t size = sizes[i % ARRAY_COUNT(sizes)];
        sum += size;
        for (size_t c = 0; c < size; c++)
            assert_int_equal(piece[i][c], i & 0xff);
    }
    assert_true(a.used_bytes >= sum);
    arena_fini(&a);
    assert_int_equal(a.used_bytes, 0);
    assert_null(a.chunks);
    arena_fini(&a); /* once more does no harm */
}

static void test_arena_text(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    char from[] = "some text";
    struct slice copy = arena_copy(&a, slice_of(from));
    char *string = arena_string(&a, (struct slice){ from, 4 });
    struct slice printed = arena_printf(&a, "%d-%s", 42, from);
    memset(from, '#', sizeof from - 1);
    assert_true(slice_equal(copy, SLICE("some text")));
    assert_string_equal(string, "some");
    assert_true(slice_equal(printed, SLICE("42-some text")));
    assert_string_equal(printed.ptr, "42-some text");
    assert_int_equal(arena_copy(&a, SLICE_NONE).len, 0);
    assert_string_equal(arena_string(&a, SLICE_NONE), "");
    arena_fini(&a);
}

static char undone[8];
static void note_undo(void *ptr)
{
    strncat(undone, ptr, 1);
}

static void test_arena_undoes_newest_first(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    undone[0] = '\0';
    arena_own(&a, "1", note_undo);
    (void)arena_alloc(&a, 10000);
    arena_own(&a, "2", note_undo);
    arena_own(&a, arena_string(&a, SLICE("3")),
              note_undo); /* in the arena: still there when it is undone */
    arena_fini(&a);
    assert_string_equal(undone, "321");
    arena_fini(&a);
    assert_string_equal(undone, "321");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_prefix_and_suffix),
        cmocka_unit_test(test_trim_and_find),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_to_u64),
        cmocka_unit_test(test_to_string),
        cmocka_unit_test(test_arena_pieces),
        cmocka_unit_test(test_arena_text),
        cmocka_unit_test(test_arena_undoes_newest_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
