/* tests/unit/cache/test_vary.c: selecting fields, variants and codings, as rows (RFC 9111 4.1, RFC
 * 9110 12.5). */
#include "tests/unit/cache/decide_rows.h"

#include <stdlib.h>

static const struct {
    const char *vary; /* fields of the response */
    bool is_all;
    const char *section;
} alls[] = {
    { "", false, "4.1" },
    { "Vary:", false, "4.1" },
    { "Vary: Accept", false, "4.1" },
    { "Vary: ,, Accept ,", false, "RFC 9110 5.6.1" },
    { "Vary: *", true, "4.1" },
    { "Vary: *, *", true, "4.1" },
    { "Vary: *\nVary: *", true, "4.1" },
    { "Vary: , *", true, "4.1" },
    { "Vary:\nVary: *", true, "4.1" },
    { "Vary: *, Foo", true, "4.1" },
    { "Vary: Foo, *", true, "4.1" },
    { "Vary: Foo\nVary: Bar, *", true, "4.1" },
    { "Vary: Foo*", false, "4.1 a name that has one in it" },
    { "Vary: Accept-Encoding; Cookie", true, "RFC 9110 12.5.5 no name: not guessed at" },
    { "Vary: Accept-Encoding Cookie", true, "RFC 9110 12.5.5 no name" },
    { "Vary: \"Cookie\"", true, "RFC 9110 12.5.5 no name" },
    { "Vary: Cookie:", true, "RFC 9110 12.5.5 no name" },
};

static void test_is_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(alls); i++) {
        struct row_headers h;
        ROW_CHECK(alls[i].vary, cache_vary_is_all(row_headers(&h, alls[i].vary)), alls[i].is_all);
        assert_non_null(alls[i].section);
    }
}

/* Selecting strings, with '|' for NUL. */
static const struct {
    const char *vary, *request, *selecting, *section;
} makes[] = {
    { "", "Foo: 1", "", "4.1 no Vary" },
    { "Vary:", "Foo: 1", "", "4.1 empty" },
    { "Vary: Foo", "Foo: 1", "foo|=1|", "4.1" },
    { "Vary: FOO", "foo: 1", "foo|=1|", "RFC 9110 5.1 any case" },
    { "Vary: Foo", "", "foo|-|", "4.1 absent" },
    { "Vary: Foo", "Foo:", "foo|=|", "4.1 empty is not absent" },
    { "Vary: Foo, Bar", "Foo: 1\nBar: abc", "bar|=abc|foo|=1|", "sorted" },
    { "Vary: Bar\nVary: foo", "Foo: 1\nBar: abc", "bar|=abc|foo|=1|", "RFC 9110 5.2 two fields" },
    { "Vary: Foo, foo, FOO", "Foo: 1", "foo|=1|", "without repeats" },
    { "Vary: User-Agent", "User-Agent: A (b; c)", "user-agent|=A (b; c)|", "a known name" },
    { "Vary: Foo", "Foo: 1,2", "foo|=1, 2|", "4.1 white space" },
    { "Vary: Foo", "Foo: 1 \t,\t 2", "foo|=1, 2|", "4.1 white space" },
    { "Vary: Foo", "Foo: 1\nFoo: 2", "foo|=1, 2|", "4.1 lines combined" },
    { "Vary: Foo", "Foo: 1\nX: y\nfOO: 2 ,3", "foo|=1, 2, 3|", "4.1 lines combined" },
    { "Vary: Foo", "Foo: \"a ,  b\" ,c", "foo|=\"a ,  b\", c|",
      "RFC 9110 5.6.4 quoted text is left alone" },
    { "Vary: Foo", "Foo: \"a\\\" , b\" ,c", "foo|=\"a\\\" , b\", c|",
      "RFC 9110 5.6.4 escaped quote" },
    { "Vary: Foo", "Foo: \"a\nFoo: b  ,c\" ,d", "foo|=\"a, b  ,c\", d|",
      "RFC 9110 5.2 a quote left open goes on" },
    { "Vary: Foo", "Foo: 1,,2", "foo|=1, , 2|", "4.1 what may mean something is kept" },
    { "Vary: Foo", "Foo: a  b", "foo|=a  b|", "4.1 only around commas" },
    { "Vary: Cookie", "Cookie: a=1; b=2", "cookie|=a=1; b=2|", "4.1 as it is" },
    { "Vary: Cookie", "Cookie: a=1\nConnection: close, cookie", "cookie|-|",
      "RFC 9110 7.6.1 the origin does not get it" },
    { "Vary: Foo", "Connection: Foo\nFoo: 1\nFoo: 2", "foo|-|",
      "RFC 9110 7.6.1 the origin does not get it" },
    { "Vary: *", "Foo: 1", "*|*|", "4.1 never matches" },
    /* Accept-Encoding */
    { "Vary: Accept-Encoding", "", "accept-encoding|-|", "4.1 absent" },
    { "Vary: Accept-Encoding", "Accept-Encoding:", "accept-encoding|=|",
      "RFC 9110 12.5.3 identity only" },
    { "Vary: Accept-Encoding", "Accept-Encoding: identity", "accept-encoding|=|",
      "RFC 9110 12.5.3" },
    { "Vary: Accept-Encoding", "Accept-Encoding: gzip", "accept-encoding|=gzip|",
      "RFC 9110 12.5.3" },
    { "Vary: Accept-Encoding", "Accept-Encoding: zstd;q=0.1, br, GZIP, deflate",
      "accept-encoding|=gzip, deflate, br, zstd|", "RFC 9110 12.5.3 one order" },
    { "Vary: Accept-Encoding", "Accept-Encoding: gzip;q=0, br", "accept-encoding|=br|",
      "RFC 9110 12.4.2 q=0" },
    { "Vary: Accept-Encoding", "Accept-Encoding: junk-123, gzip, sdch", "accept-encoding|=gzip|",
      "junk makes no variant" },
    { "Vary: Accept-Encoding", "Accept-Encoding: *", "accept-encoding|=gzip, deflate, br, zstd|",
      "RFC 9110 12.5.3 any" },
    { "Vary: Accept-Encoding", "Accept-Encoding: *;q=0, gzip",
      "accept-encoding|=gzip, identity;q=0|", "12.5.3 none else" },
    { "Vary: Accept-Encoding", "Accept-Encoding: identity;q=0", "accept-encoding|=identity;q=0|",
      "12.5.3 refused" },
    { "Vary: Accept-Encoding", "Accept-Encoding: br\nAccept-Encoding: gzip",
      "accept-encoding|=gzip, br|", "two fields" },
    /* Accept-Language */
    { "Vary: Accept-Language", "Accept-Language: en, de", "accept-language|=de, en|",
      "RFC 9110 12.5.4" },
    { "Vary: Accept-Language", "Accept-Language: eN,De", "accept-language|=de, en|",
      "RFC 9110 12.5.4 case" },
    { "Vary: Accept-Language", "Accept-Language: de;q=0.70, EN-us , fr ; q=0.5",
      "accept-language|=en-us, de;q=0.7, fr;q=0.5|", "RFC 9110 12.4.2 by weight" },
    { "Vary: Accept-Language", "Accept-Language: de;q=0, *;q=0.001",
      "accept-language|=*;q=0.001, de;q=0|", "12.4.2" },
    { "Vary: Accept-Language", "Accept-Language: de;q=1.000", "accept-language|=de|",
      "12.4.2 1 is the default" },
    { "Vary: Accept-Language", "Accept-Language: de;q=2, EN", "accept-language|=de;q=2, EN|",
      "12.4.2 malformed: as it is" },
    { "Vary: Accept-Language", "Accept-Language: de x,EN", "accept-language|=de x, EN|",
      "12.5.4 malformed: as it is" },
    { "Vary: Accept-Language", "Accept-Language: de\nAccept-Language: En",
      "accept-language|=de, en|", "two fields" },
    { "Vary: Accept-Language", "Accept-Language:", "accept-language|=|", "empty" },
};

static void test_make(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(makes); i++) {
        struct row_headers request, response;
        struct arena a;
        arena_init(&a);
        struct slice selecting = cache_vary_make(&a, row_headers(&response, makes[i].vary),
                                                 row_headers(&request, makes[i].request));
        char *shown = slice_to_string(selecting);
        for (size_t c = 0; c < selecting.len; c++)
            if (shown[c] == '\0')
                shown[c] = '|';
        if (strcmp(shown, makes[i].selecting) != 0)
            fail_msg("row %zu (%s): %s, not %s", i, makes[i].section, shown, makes[i].selecting);
        free(shown);
        arena_fini(&a);
    }
}

static const struct {
    const char *vary, *first, *second;
    bool matches;
    const char *section;
} pairs[] = {
    { "", "Foo: 1", "Foo: 2", true, "4.1 no Vary" },
    { "Vary: Foo", "Foo: 1", "Foo: 1", true, "4.1" },
    { "Vary: Foo", "Foo: 1", "Foo: 2", false, "4.1" },
    { "Vary: Foo", "Foo: 1", "Foo: 12", false, "4.1 longer" },
    { "Vary: Foo", "Foo: 12", "Foo: 1", false, "4.1 shorter" },
    { "Vary: Foo", "Foo: abc", "Foo: ABC", false, "4.1 case of an unknown field" },
    { "Vary: Foo", "", "Foo: 1", false, "4.1 absent" },
    { "Vary: Foo", "Foo: 1", "", false, "4.1 absent" },
    { "Vary: Foo", "", "", true, "4.1 absent from both" },
    { "Vary: Foo", "Foo:", "", false, "4.1 empty is not absent" },
    { "Vary: Foo", "", "Foo:", false, "4.1 empty is not absent" },
    { "Vary: Foo", "Foo: -", "", false, "no value looks like an absent one" },
    { "Vary: Foo", "", "Foo: -", false, "no value looks like an absent one" },
    { "Vary: Foo", "Foo: 1\nOther: 2", "Foo: 1\nOther: 3", true, "4.1 others do not select" },
    { "Vary: Foo, Bar", "Foo: 1\nBar: a", "Bar: a\nFoo: 1", true, "4.1 order of fields" },
    { "Vary: Foo, Bar", "Foo: 1\nBar: a", "Foo: 2\nBar: a", false, "4.1" },
    { "Vary: Foo, Bar", "Foo: 1\nBar: a", "Foo: 1", false, "4.1" },
    { "Vary: Foo, Bar", "Foo: 1\nBar: a", "Foo: a\nBar: 1", false, "4.1 changed about" },
    { "Vary: Foo, Bar, Baz", "Foo: 1\nBaz: 7", "Foo: 1\nBaz: 7", true, "4.1 one absent from both" },
    { "Vary: Foo, Bar, Baz", "Foo: 1\nBar: abc\nBaz: 7", "Foo: 1\nBaz: 7\nBar: abcde", false,
      "4.1" },
    { "Vary: Foo", "Foo: 1, 2", "Foo: 1\nFoo: 2", true, "4.1 combined" },
    { "Vary: Foo", "Foo: 1\nFoo: 2", "Foo: 1, 2", true, "4.1 combined" },
    { "Vary: Foo", "Foo: 1, 2", "Foo: 2\nFoo: 1", false, "4.1 order of an unknown field" },
    { "Vary: Foo", "Foo: 1", "Foo: 1\nFoo: 2", false, "4.1 the first alone is not enough" },
    { "Vary: Foo", "Foo: 1,2", "Foo:  1, 2 ", true, "4.1 white space" },
    { "Vary: Foo", "Foo: 12", "Foo: 1 2", false, "4.1 white space within" },
    { "Vary: Foo", "Foo: \"a, b\"", "Foo: \"a,b\"", false, "RFC 9110 5.6.4 within quotes" },
    { "Vary: *", "Foo: 1", "Foo: 1", false, "4.1 *" },
    { "Vary: Foo, *", "Foo: 1", "Foo: 1", false, "4.1 *" },
    { "Vary: *", "*: *", "*: *", false, "4.1 *" },
    { "Vary: Accept-Encoding", "Accept-Encoding: gzip, br", "Accept-Encoding: br,gzip", true,
      "RFC 9110 12.5.3" },
    { "Vary: Accept-Encoding", "Accept-Encoding: gzip, br", "Accept-Encoding: gzip", false,
      "RFC 9110 12.5.3" },
    { "Vary: Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: gzip, br", false,
      "RFC 9110 12.5.3" },
    { "Vary: Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: x-gzip", true,
      "RFC 9110 8.4.1.3" },
    { "Vary: Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: gzip;q=0.1, junk", true,
      "RFC 9110 12.5.3" },
    { "Vary: Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: gzip;q=0", false,
      "RFC 9110 12.4.2" },
    { "Vary: Accept-Encoding", "Accept-Encoding: gzip", "", false, "4.1 absent" },
    { "Vary: Accept-Encoding", "", "Accept-Encoding: *", false, "4.1 absent" },
    { "Vary: Accept-Encoding", "Accept-Encoding: gzip, identity;q=0", "Accept-Encoding: gzip",
      false, "identity refused" },
    { "Vary: Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: gzip, identity;q=0",
      false, "identity refused" },
    { "Vary: Accept-Language", "Accept-Language: en, de", "Accept-Language: de, en", true,
      "RFC 9110 12.5.4 order" },
    { "Vary: Accept-Language", "Accept-Language: en, de", "Accept-Language: eN, De", true,
      "RFC 9110 12.5.4 case" },
    { "Vary: Accept-Language", "Accept-Language: en, de", "Accept-Language:  en ,   de", true,
      "4.1 white space" },
    { "Vary: Accept-Language", "Accept-Language: en, de", "Accept-Language: en, de;q=0.5", false,
      "RFC 9110 12.4.2" },
    { "Vary: Accept-Language", "Accept-Language: en;q=0.5", "Accept-Language: en;Q=0.500", true,
      "RFC 9110 12.4.2" },
    { "Vary: Accept-Language", "Accept-Language: en", "Accept-Language: en-gb", false,
      "RFC 9110 12.5.4" },
    { "Vary: Accept-Language", "Accept-Language: en;q=x", "Accept-Language: EN;q=x", false,
      "12.5.4 malformed: as it is" },
};

static void test_matches(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++) {
        struct row_headers response, first, second;
        struct arena a;
        arena_init(&a);
        struct slice selecting = cache_vary_make(&a, row_headers(&response, pairs[i].vary),
                                                 row_headers(&first, pairs[i].first));
        ROW_CHECK(pairs[i].second,
                  cache_vary_matches(selecting, row_headers(&second, pairs[i].second)),
                  pairs[i].matches);
        ROW_CHECK(pairs[i].first, cache_vary_matches(selecting, &first.list),
                  !cache_vary_is_all(&response.list));
        assert_non_null(pairs[i].section);
        arena_fini(&a);
    }
}

/* A string that was not made here fails to match, whatever it is. */
static void test_broken_selecting(void **state)
{
    (void)state;
    struct row_headers h;
    const struct headers *request = row_headers(&h, "Foo: 1");
    assert_false(cache_vary_matches(SLICE("foo"), request));
    assert_false(cache_vary_matches(SLICE("foo\0=1"), request));
    assert_false(cache_vary_matches(SLICE("foo\0=1\0bar"), request));
    assert_false(cache_vary_matches(SLICE("foo\0\0"), request));
    assert_false(cache_vary_matches(SLICE("foo\0"
                                          "1\0"),
                                    request));
    assert_true(cache_vary_matches(SLICE("foo\0=1\0"), request));
    assert_true(cache_vary_matches(SLICE_NONE, request));
}

static void test_field_count(void **state)
{
    (void)state;
    char text[1024];
    for (unsigned count = VARY_FIELDS_MAX - 1; count <= VARY_FIELDS_MAX + 1; count++) {
        size_t used = (size_t)snprintf(text, sizeof text, "Vary: ");
        for (unsigned f = 0; f < count; f++)
            used += (size_t)snprintf(text + used, sizeof text - used, "f%u, F%u,", f, f);
        struct row_headers h;
        assert_int_equal(cache_vary_is_all(row_headers(&h, text)), count > VARY_FIELDS_MAX);
    }
}

/* More languages than are sorted: still told apart, and still the same as themselves. */
static void test_many_languages(void **state)
{
    (void)state;
    char text[512];
    size_t used = (size_t)snprintf(text, sizeof text, "Accept-Language: xx");
    for (unsigned f = 0; f < 20; f++)
        used += (size_t)snprintf(text + used, sizeof text - used, ",l%u", f);
    struct row_headers response, request, other;
    struct arena a;
    arena_init(&a);
    struct slice selecting = cache_vary_make(&a, row_headers(&response, "Vary: Accept-Language"),
                                             row_headers(&request, text));
    assert_true(cache_vary_matches(selecting, &request.list));
    text[used - 1] = 'x';
    assert_false(cache_vary_matches(selecting, row_headers(&other, text)));
    arena_fini(&a);
}

enum { ALL = CODING_GZIP | CODING_BR | CODING_ZSTD | CODING_DEFLATE };
static const struct {
    const char *request;
    unsigned codings;
    const char *section;
} accepts[] = {
    { "", 0, "RFC 9110 12.5.3 says nothing" },
    { "Accept-Encoding:", 0, "RFC 9110 12.5.3" },
    { "Accept-Encoding: identity", 0, "RFC 9110 12.5.3" },
    { "Accept-Encoding: gzip", CODING_GZIP, "RFC 9110 8.4.1.3" },
    { "Accept-Encoding: x-gzip", CODING_GZIP, "RFC 9110 8.4.1.3" },
    { "Accept-Encoding: br", CODING_BR, "RFC 7932" },
    { "Accept-Encoding: zstd", CODING_ZSTD, "RFC 8878" },
    { "Accept-Encoding: deflate", CODING_DEFLATE, "RFC 9110 8.4.1.2" },
    { "Accept-Encoding: gzip, deflate, br, zstd", ALL, "browsers" },
    { "Accept-Encoding: GZip,BR", CODING_GZIP | CODING_BR, "RFC 9110 8.4.1 any case" },
    { "Accept-Encoding: gzip\nAccept-Encoding: br", CODING_GZIP | CODING_BR, "two fields" },
    { "Accept-Encoding: gzip;q=0", 0, "RFC 9110 12.4.2" },
    { "Accept-Encoding: gzip;q=0.0", 0, "RFC 9110 12.4.2" },
    { "Accept-Encoding: gzip;q=0.000", 0, "RFC 9110 12.4.2" },
    { "Accept-Encoding: gzip;q=0.001", CODING_GZIP, "RFC 9110 12.4.2" },
    { "Accept-Encoding: gzip ; Q=0.5", CODING_GZIP, "RFC 9110 12.4.2" },
    { "Accept-Encoding: gzip;q=1.", CODING_GZIP, "RFC 9110 12.4.2" },
    { "Accept-Encoding: gzip;q=1.001", 0, "RFC 9110 12.4.2 malformed" },
    { "Accept-Encoding: gzip;q=0.0001", 0, "RFC 9110 12.4.2 malformed" },
    { "Accept-Encoding: gzip;q=-1", 0, "RFC 9110 12.4.2 malformed" },
    { "Accept-Encoding: gzip;q=", 0, "RFC 9110 12.4.2 malformed" },
    { "Accept-Encoding: gzip;x=1", 0, "RFC 9110 12.4.2 malformed" },
    { "Accept-Encoding: gzip;q=00.5", 0, "RFC 9110 12.4.2 malformed" },
    { "Accept-Encoding: *", ALL, "RFC 9110 12.5.3" },
    { "Accept-Encoding: *;q=0", 0, "RFC 9110 12.5.3" },
    { "Accept-Encoding: *, gzip;q=0", ALL & ~CODING_GZIP, "RFC 9110 12.5.3" },
    { "Accept-Encoding: gzip;q=0, *", ALL & ~CODING_GZIP, "RFC 9110 12.5.3" },
    { "Accept-Encoding: br, *;q=0", CODING_BR, "RFC 9110 12.5.3" },
    { "Accept-Encoding: gzipped, xgzip, bro", 0, "whole names" },
};

static void test_codings(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(accepts); i++) {
        struct row_headers h;
        ROW_CHECK(accepts[i].request, cache_codings_accepted(row_headers(&h, accepts[i].request)),
                  accepts[i].codings);
        assert_non_null(accepts[i].section);
    }
}

static const struct {
    const char *request, *coding;
    bool is_acceptable;
    const char *section;
} stored[] = {
    { "", "gzip", true, "RFC 9110 12.5.3 rule 1: any" },
    { "Accept-Encoding: gzip", "", true, "not coded" },
    { "Accept-Encoding: gzip", "gzip", true, "RFC 9110 12.5.3" },
    { "Accept-Encoding: gzip", "GZIP", true, "RFC 9110 8.4.1 any case" },
    { "Accept-Encoding: gzip", "x-gzip", true, "RFC 9110 8.4.1.3" },
    { "Accept-Encoding: gzip", "br", false, "RFC 9110 12.5.3" },
    { "Accept-Encoding:", "gzip", false, "RFC 9110 12.5.3 empty" },
    { "Accept-Encoding: gzip;q=0", "gzip", false, "RFC 9110 12.4.2" },
    { "Accept-Encoding: gzip, br", "gzip, br", true, "two codings" },
    { "Accept-Encoding: gzip", "gzip, br", false, "one of two" },
    { "Accept-Encoding: gzip", "identity", true, "RFC 9110 12.5.3" },
    { "Accept-Encoding: gzip, identity;q=0", "identity", false, "RFC 9110 12.5.3" },
    { "Accept-Encoding: *", "br", true, "RFC 9110 12.5.3" },
    { "Accept-Encoding: gzip", "dcb", false, "another coding" },
    { "Accept-Encoding: gzip, DCB", "dcb", true, "another coding, named" },
    { "Accept-Encoding: gzip, dcb;q=0, *", "dcb", false, "another coding, refused" },
    { "Accept-Encoding: *", "dcb", true, "another coding, any" },
    { "Accept-Encoding: *;q=0", "dcb", false, "another coding, none" },
};

static void test_coding_is_acceptable(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(stored); i++) {
        struct row_headers h;
        ROW_CHECK(stored[i].request,
                  cache_coding_is_acceptable(slice_of(stored[i].coding),
                                             row_headers(&h, stored[i].request)),
                  stored[i].is_acceptable);
        assert_non_null(stored[i].section);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_all),      cmocka_unit_test(test_make),
        cmocka_unit_test(test_matches),     cmocka_unit_test(test_broken_selecting),
        cmocka_unit_test(test_field_count), cmocka_unit_test(test_many_languages),
        cmocka_unit_test(test_codings),     cmocka_unit_test(test_coding_is_acceptable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
