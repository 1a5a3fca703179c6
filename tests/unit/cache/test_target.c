/* tests/unit/cache/test_target.c: references against the request's URL, as rows (RFC 3986 5, RFC
 * 9111 4.4), and POSTs whose answer is a GET's (RFC 9110 9.3.3). */
#include "tests/unit/cache/decide_rows.h"

#define S(text) SLICE_INIT(text)

/* "/path?query", "-" when it is none of this request's business */
static void check(size_t i, const struct target_base *base, const char *reference,
                  const char *expected, const char *why)
{
    struct arena a;
    struct slice path, query;
    char got[256] = "-";
    arena_init(&a);
    if (cache_target_resolve(&a, base, slice_of(reference), &path, &query))
        snprintf(got, sizeof got, SLICE_FMT "%s" SLICE_FMT, SLICE_ARG(path),
                 query.ptr == NULL ? "" : "?", (int)query.len, query.ptr == NULL ? "" : query.ptr);
    if (strcmp(got, expected) != 0)
        fail_msg("row %zu \"%s\" (%s): %s, not %s", i, reference, why, got, expected);
    arena_fini(&a);
}

/* The examples of RFC 3986 5.4, of which "a" is the host; those of another scheme or host are
 * nobody's business. */
static const struct target_base rfc_base = { S("http"), S("a"), 0, S("/b/c/d;p"), S("q") };
static const struct {
    const char *reference, *target, *section;
} rfc_rows[] = {
    { "g:h", "-", "5.4.1" },
    { "g", "/b/c/g", "5.4.1" },
    { "./g", "/b/c/g", "5.4.1" },
    { "g/", "/b/c/g/", "5.4.1" },
    { "/g", "/g", "5.4.1" },
    { "//g", "-", "5.4.1" },
    { "?y", "/b/c/d;p?y", "5.4.1" },
    { "g?y", "/b/c/g?y", "5.4.1" },
    { "#s", "/b/c/d;p?q", "5.4.1" },
    { "g#s", "/b/c/g", "5.4.1" },
    { "g?y#s", "/b/c/g?y", "5.4.1" },
    { ";x", "/b/c/;x", "5.4.1" },
    { "g;x", "/b/c/g;x", "5.4.1" },
    { "g;x?y#s", "/b/c/g;x?y", "5.4.1" },
    { "", "/b/c/d;p?q", "5.4.1" },
    { ".", "/b/c/", "5.4.1" },
    { "./", "/b/c/", "5.4.1" },
    { "..", "/b/", "5.4.1" },
    { "../", "/b/", "5.4.1" },
    { "../g", "/b/g", "5.4.1" },
    { "../..", "/", "5.4.1" },
    { "../../", "/", "5.4.1" },
    { "../../g", "/g", "5.4.1" },
    { "../../../g", "/g", "5.4.2" },
    { "../../../../g", "/g", "5.4.2" },
    { "/./g", "/g", "5.4.2" },
    { "/../g", "/g", "5.4.2" },
    { "g.", "/b/c/g.", "5.4.2" },
    { ".g", "/b/c/.g", "5.4.2" },
    { "g..", "/b/c/g..", "5.4.2" },
    { "..g", "/b/c/..g", "5.4.2" },
    { "./../g", "/b/g", "5.4.2" },
    { "./g/.", "/b/c/g/", "5.4.2" },
    { "g/./h", "/b/c/g/h", "5.4.2" },
    { "g/../h", "/b/c/h", "5.4.2" },
    { "g;x=1/./y", "/b/c/g;x=1/y", "5.4.2" },
    { "g;x=1/../y", "/b/c/y", "5.4.2" },
    { "g?y/./x", "/b/c/g?y/./x", "5.4.2" },
    { "g?y/../x", "/b/c/g?y/../x", "5.4.2" },
    { "g#s/./x", "/b/c/g", "5.4.2" },
    { "g#s/../x", "/b/c/g", "5.4.2" },
    { "http:g", "-", "5.4.2 strict" },
};

static void test_rfc(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rfc_rows); i++)
        check(i, &rfc_base, rfc_rows[i].reference, rfc_rows[i].target, rfc_rows[i].section);
}

static const struct target_base
    plain = { S("http"), S("example.com"), 0, S("/a/b"), { NULL, 0 } },
    ported = { S("http"), S("example.com"), 8080, S("/a/b"), { NULL, 0 } },
    told = { S("http"), S("example.com"), 80, S("/a/b"), { NULL, 0 } },
    secure = { S("https"), S("example.com"), 0, S("/a/b"), { NULL, 0 } },
    address = { S("http"), S("[::1]"), 8080, S("/a/b"), { NULL, 0 } },
    nameless = { S("http"), S(""), 0, S("/a/b"), { NULL, 0 } },
    pathless = { S("http"), S("example.com"), 0, S(""), { NULL, 0 } },
    star = { S("http"), S("example.com"), 0, S("*"), { NULL, 0 } };
static const struct {
    const struct target_base *base;
    const char *reference, *target, *why;
} rows[] = {
    { &plain, "http://example.com/x", "/x", "RFC 9111 4.4: the same origin" },
    { &plain, "http://example.com/x?y", "/x?y", "a query" },
    { &plain, "http://example.com/x?", "/x?", "RFC 3986 6.2.3: an empty query is not none" },
    { &plain, "?", "/a/b?", "an empty query alone" },
    { &plain, "", "/a/b", "no query in the base" },
    { &plain, "http://example.com", "/", "RFC 9110 4.2.3: an empty path" },
    { &plain, "http://example.com?q", "/?q", "RFC 9110 4.2.3: an empty path" },
    { &plain, "http://example.com#f", "/", "an empty path and a fragment" },
    { &plain, "http://example.com/a/../b/./c", "/b/c", "RFC 3986 5.2.4" },
    { &plain, "http://example.com/..", "/", "RFC 3986 5.2.4" },
    { &plain, "/a//../b", "/a/b", "RFC 3986 5.2.4: an empty segment is one" },
    { &plain, "/a//b", "/a//b", "RFC 3986 6.2.2.3" },
    { &plain, "/..//b", "//b", "RFC 3986 5.2.4" },
    { &plain, "//example.com/x", "/x", "RFC 3986 4.2: network path" },
    { &plain, "//example.com", "/", "RFC 3986 4.2: network path" },
    { &plain, "///x", "-", "RFC 9110 4.2.1: no host" },
    { &plain, "//", "-", "RFC 9110 4.2.1: no host" },
    { &plain, "HTTP://EXAMPLE.com/X", "/X", "RFC 9110 4.2.3: case of scheme and host" },
    { &plain, "http://example.com./x", "/x", "a dot at the end" },
    { &plain, "http://example.com:80/x", "/x", "the scheme's port" },
    { &plain, "http://example.com:/x", "/x", "RFC 3986 3.2.3: an empty port" },
    { &plain, "http://example.com:080/x", "/x", "digits" },
    { &told, "http://example.com/x", "/x", "the scheme's port, in the base" },
    { &told, "http://example.com:80/x", "/x", "the scheme's port, in both" },
    { &ported, "http://example.com:8080/x", "/x", "another port" },
    { &ported, "//example.com:8080/x", "/x", "another port" },
    { &ported, "x", "/a/x", "relative, whatever the port" },
    { &ported, "http://example.com/x", "-", "not the same port" },
    { &ported, "//example.com/x", "-", "not the same port" },
    { &plain, "http://example.com:8080/x", "-", "not the same port" },
    { &plain, "http://example.com:443/x", "-", "not the same port" },
    { &plain, "https://example.com/x", "-", "not the same scheme" },
    { &plain, "https://example.com:80/x", "-", "not the same scheme" },
    { &secure, "http://example.com:443/x", "-", "not the same scheme" },
    { &secure, "https://example.com:443/x", "/x", "the scheme's port" },
    { &secure, "https://example.com:80/x", "-", "not the same port" },
    { &secure, "//example.com/x", "/x", "the base's scheme" },
    { &plain, "http://www.example.com/x", "-", "not the same host" },
    { &plain, "http://example.com.evil.test/x", "-", "not the same host" },
    { &plain, "http://example.co/x", "-", "not the same host" },
    { &plain, "//evil.test/x", "-", "not the same host" },
    { &address, "http://[::1]:8080/x", "/x", "an address" },
    { &address, "http://[::1]/x", "-", "not the same port" },
    { &address, "http://[::2]:8080/x", "-", "not the same host" },
    { &address, "http://[::1:8080/x", "-", "malformed" },
    { &address, "http://[::1]y:8080/x", "-", "malformed" },
    { &nameless, "x", "/a/x", "HTTP/1.0 without Host" },
    { &nameless, "http:///x", "-", "RFC 9110 4.2.1: no host" },
    { &nameless, "http://:80/x", "-", "RFC 9110 4.2.1: no host" },
    { &nameless, "http://./x", "-", "RFC 9110 4.2.1: no host" },
    { &plain, "http://user@example.com/x", "-", "RFC 9110 4.2.4: userinfo" },
    { &plain, "http://@example.com/x", "-", "RFC 9110 4.2.4: userinfo" },
    { &plain, "//user:pw@example.com/x", "-", "RFC 9110 4.2.4: userinfo" },
    { &plain, "http://example.com@evil.test/x", "-", "RFC 9110 4.2.4: userinfo" },
    { &plain, "/x@y", "/x@y", "no userinfo in a path" },
    { &plain, "http://example.com:0/x", "-", "no port" },
    { &plain, "http://example.com:65616/x", "-", "no port: 80 above 2^16" },
    { &plain, "http://example.com:8a/x", "-", "no port" },
    { &plain, "http://example.com:-80/x", "-", "no port" },
    { &plain, "http://example.com:80:80/x", "-", "no port" },
    { &plain, "http:/x", "-", "RFC 3986 5.2.2 strict" },
    { &plain, "http:", "-", "RFC 3986 5.2.2 strict" },
    { &plain, ":x", "-", "no scheme" },
    { &plain, "1:x", "-", "RFC 3986 4.2: a colon in the first segment" },
    { &plain, "./1:x", "/a/1:x", "RFC 3986 4.2: how it may be written" },
    { &plain, "x/1:y", "/a/x/1:y", "a colon further on" },
    { &plain, "?a:b", "/a/b?a:b", "a colon in a query" },
    { &plain, "javascript:alert(1)", "-", "another scheme" },
    { &plain, "mailto:a@b", "-", "another scheme" },
    { &plain, "/%7Euser/%2e%2e/%2F", "/%7Euser/%2e%2e/%2F", "percent-encoding left alone" },
    { &plain, "/x y", "-", "no URL" },
    { &plain, "/x\ty", "-", "no URL" },
    { &plain, "/x\x01", "-", "no URL" },
    { &plain, "/x\x7f", "-", "no URL" },
    { &plain, "/\xc3\xa4", "-", "no URL" },
    { &plain, "/x#\xc3\xa4", "-", "no URL" },
    { &plain, "/x?a?b/c", "/x?a?b/c", "RFC 3986 3.4" },
    { &pathless, "x", "/x", "RFC 3986 5.2.3: a base without a path" },
    { &pathless, "", "/", "RFC 9110 4.2.3" },
    { &pathless, "?q", "/?q", "RFC 9110 4.2.3" },
    { &star, "", "-", "no path" },
    { &star, "x", "-", "no path" },
    { &star, "/x", "/x", "the base's path does not matter" },
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        check(i, rows[i].base, rows[i].reference, rows[i].target, rows[i].why);
}

/* What the base's own slices are is not changed, whatever is done to the path. */
static void test_base_is_kept(void **state)
{
    (void)state;
    char path[] = "/a/b/c";
    const struct target_base base = { S("http"), S("h"), 0, { path, 6 }, { NULL, 0 } };
    check(0, &base, "../x", "/a/x", "relative");
    assert_string_equal(path, "/a/b/c");
}

/* ---- POST ---------------------------------------------------------------------------------------
 */

#define HERE  "Content-Location: /a/b\n"
#define FRESH "Cache-Control: max-age=60\n"
static const struct {
    uint16_t status;
    const char *query; /* NULL: none */
    const char *fields;
    bool is_get;
    const char *section;
} posts[] = {
    { 200, NULL, HERE FRESH, true, "9.3.3" },
    { 203, NULL, HERE FRESH, true, "9.3.3" },
    { 200, NULL, HERE "Cache-Control: s-maxage=60", true, "9.3.3" },
    { 200, NULL, HERE "Expires: Sun, 15 Jun 2025 09:00:00 GMT", true, "9.3.3" },
    { 200, NULL, HERE "Expires: 0", true, "9.3.3 explicit, and stale" },
    { 200, NULL, "Content-Location: http://example.com/a/b\n" FRESH, true, "8.7 absolute" },
    { 200, NULL, "Content-Location: b\n" FRESH, true, "8.7 relative" },
    { 200, NULL, "Content-Location:\n" FRESH, true, "8.7 the request's own" },
    { 200, "q", "Content-Location: /a/b?q\n" FRESH, true, "8.7 query" },
    { 200, "q", "Content-Location: ?q\n" FRESH, true, "8.7 query" },
    { 200, "q", "Content-Location:\n" FRESH, true, "8.7 the request's own" },
    { 200, "", "Content-Location: /a/b?\n" FRESH, true, "8.7 empty query" },
    { 200, NULL, FRESH, false, "9.3.3 not located" },
    { 200, NULL, HERE, false, "9.3.3 not explicit" },
    { 200, NULL, HERE "Cache-Control: public", false, "9.3.3 not explicit" },
    { 200, NULL, HERE "Last-Modified: Sun, 15 Jun 2025 09:00:00 GMT", false, "9.3.3" },
    { 200, NULL, "Content-Location: /a/c\n" FRESH, false, "9.3.3 elsewhere" },
    { 200, NULL, "Content-Location: /A/b\n" FRESH, false, "9.3.3 elsewhere" },
    { 200, NULL, "Content-Location: /a/b?q\n" FRESH, false, "9.3.3 elsewhere" },
    { 200, NULL, "Content-Location: /a/b?\n" FRESH, false, "9.3.3 elsewhere" },
    { 200, "q", HERE FRESH, false, "9.3.3 elsewhere" },
    { 200, "", HERE FRESH, false, "9.3.3 elsewhere" },
    { 200, "q", "Content-Location: ?r\n" FRESH, false, "9.3.3 elsewhere" },
    { 200, NULL, "Content-Location: http://evil.test/a/b\n" FRESH, false, "9.3.3 elsewhere" },
    { 200, NULL, "Content-Location: https://example.com/a/b\n" FRESH, false, "9.3.3 elsewhere" },
    { 200, NULL, HERE HERE FRESH, false, "5.3 repeated" },
    { 200, NULL, "Location: /a/b\n" FRESH, false, "10.2.2 another field" },
    { 201, NULL, HERE FRESH, false, "15.3.2 about what was made" },
    { 204, NULL, HERE FRESH, false, "15.3.5 no representation" },
    { 206, NULL, HERE FRESH, false, "15.3.7" },
    { 303, NULL, HERE FRESH, false, "15.4.4" },
    { 404, NULL, HERE FRESH, false, "15.5.5" },
};

static void test_post(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(posts); i++) {
        struct row_headers h;
        struct arena a;
        arena_init(&a);
        ROW_CHECK(posts[i].fields,
                  cache_post_is_get(&plain, slice_of(posts[i].query),
                                    row_headers(&h, posts[i].fields), posts[i].status, &a),
                  posts[i].is_get);
        arena_fini(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rfc),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_base_is_kept),
        cmocka_unit_test(test_post),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
