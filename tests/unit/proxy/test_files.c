/* A directory as an origin, in a tree made for it:
 *
 *   outside.txt, outside/secret.txt, root2/near.txt      beside the root
 *   root/  index.html a.txt "sp ace.html" empty .hidden .well-known/x.txt café.txt fifo
 *          sub/ (index.html page.html deep/file.css)   bare/ (no index)   second/ (index.htm)
 *          links that stay:   in.txt indir sub/up.txt; absolute: abs.txt absdir absroot
 *          links that leave:  out.txt outdir sub/out2.txt; absolute: absout.txt absnear
 *          siblings:          app.js (.br .gz) old.css (.gz, older) photo.jpg (.gz) z.txt (.zst)
 */
#include "base/dates.h"
#include "proxy/files_internal.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MADE_S = 1700000000 }; /* every file's time, but where a row says otherwise */

static char top[PATH_MAX], root[PATH_MAX + 8];
static char *index_names[] = { "index.html", "index.htm", NULL };

static const char *path_in(const char *name)
{
    static char path[2][PATH_MAX * 2];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", top, name);
    return path[turn];
}

static void set_time(const char *name, int64_t s, long ns)
{
    struct timespec times[2] = { { .tv_sec = s, .tv_nsec = ns }, { .tv_sec = s, .tv_nsec = ns } };
    assert_int_equal(utimensat(AT_FDCWD, path_in(name), times, 0), 0);
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(path_in(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    set_time(name, MADE_S, 500);
}

static void make_dir(const char *name)
{
    assert_int_equal(mkdir(path_in(name), 0755), 0);
}

static void make_link(const char *to, const char *name)
{
    assert_int_equal(symlink(to, path_in(name)), 0);
}

static int set_up(void **state)
{
    (void)state;
    char made[] = "/tmp/larder-files-XXXXXX";
    assert_non_null(mkdtemp(made));
    assert_non_null(realpath(made, top));
    snprintf(root, sizeof root, "%s/root", top);
    static const char *const dirs[] = { "root",      "root/sub",    "root/sub/deep",
                                        "root/bare", "root/second", "root/.well-known",
                                        "outside",   "root2" };
    for (size_t i = 0; i < ARRAY_COUNT(dirs); i++)
        make_dir(dirs[i]);
    static const char *const files[][2] = {
        { "outside.txt", "outside" },
        { "outside/secret.txt", "secret" },
        { "root2/near.txt", "near" },
        { "root/index.html", "home" },
        { "root/a.txt", "a file" },
        { "root/sp ace.html", "space" },
        { "root/empty", "" },
        { "root/.hidden", "hidden" },
        { "root/.well-known/x.txt", "known" },
        { "root/.well-known/.y", "no" },
        { "root/caf\xc3\xa9.txt", "cafe" },
        { "root/sub/index.html", "sub home" },
        { "root/sub/page.html", "page" },
        { "root/sub/deep/file.css", "css" },
        { "root/sub/.well-known", "no" },
        { "root/second/index.htm", "second" },
        { "root/app.js", "plain script" },
        { "root/app.js.br", "br" },
        { "root/app.js.gz", "gzipped" },
        { "root/old.css", "plain style" },
        { "root/old.css.gz", "old" },
        { "root/photo.jpg", "photo" },
        { "root/photo.jpg.gz", "packed" },
        { "root/z.txt", "plain z" },
        { "root/z.txt.zst", "zst" },
        { "root/100%.txt", "percent" },
        { "root/drawing.svgz", "svgz" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(files); i++)
        put(files[i][0], files[i][1]);
    set_time("root/old.css.gz", MADE_S, 400);
    set_time("root/z.txt.zst", MADE_S, 0);
    make_link("sub/page.html", "root/in.txt");
    make_link("sub", "root/indir");
    make_link("../a.txt", "root/sub/up.txt");
    make_link("../outside.txt", "root/out.txt");
    make_link("../outside", "root/outdir");
    make_link("../../outside.txt", "root/sub/out2.txt");
    make_link("loop", "root/loop");
    make_link("nowhere", "root/dangling");
    make_link(path_in("outside.txt"), "root/absout.txt");
    make_link(path_in("root2"), "root/absnear"); /* begins with the root's name, is not in it */
    make_link(path_in("root/a.txt"), "root/abs.txt");
    make_link(path_in("root/sub"), "root/absdir");
    make_link(root, "root/absroot");
    make_link("root", "current");
    assert_int_equal(mkfifo(path_in("root/fifo"), 0644), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[PATH_MAX + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    return system(command);
}

/* ---- asking ---------------------------------------------------------------------------------- */

struct asked {
    struct arena arena;
    struct files_answer answer;
    char body[64];
};

struct ask {
    const char *path, *accept_encoding, *if_none_match, *if_modified_since, *root;
    size_t path_length; /* 0: strlen */
    bool follows;
};

static struct asked ask_with(struct ask q)
{
    struct asked got;
    struct header fields[4];
    struct headers request;
    char *used_root = q.root == NULL ? root : (char *)q.root;
    struct config_origin origin = { .name = (char *)"files",
                                    .kind = ORIGIN_FILES,
                                    .root = used_root,
                                    .index_names = index_names,
                                    .follows_symlinks = q.follows };
    headers_init(&request, fields, 4);
    if (q.accept_encoding != NULL)
        assert_true(headers_add(&request, SLICE("Accept-Encoding"), slice_of(q.accept_encoding)));
    if (q.if_none_match != NULL)
        assert_true(headers_add(&request, SLICE("If-None-Match"), slice_of(q.if_none_match)));
    if (q.if_modified_since != NULL)
        assert_true(
            headers_add(&request, SLICE("If-Modified-Since"), slice_of(q.if_modified_since)));
    arena_init(&got.arena);
    /* an exact copy, so that a byte read behind its end is noticed */
    size_t length = q.path_length > 0 ? q.path_length : strlen(q.path);
    char *path = malloc(length + 1);
    memcpy(path, q.path, length);
    path = realloc(path, length > 0 ? length : 1);
    files_open(&origin, (struct slice){ path, length }, &request, &got.arena, &got.answer);
    memset(got.body, 0, sizeof got.body);
    assert_int_equal(got.answer.fd >= 0, got.answer.status == 200);
    if (got.answer.fd >= 0) {
        ssize_t n = read(got.answer.fd, got.body, sizeof got.body - 1);
        assert_int_equal(n, got.answer.length);
        close(got.answer.fd);
    }
    free(path);
    return got;
}

static struct asked ask(const char *path)
{
    return ask_with((struct ask){ .path = path });
}

static void done(struct asked *got)
{
    arena_fini(&got->arena);
}

static void assert_slice(struct slice got, const char *expected)
{
    char *text = slice_to_string(got);
    assert_string_equal(text, expected);
    free(text);
}

/* ---- paths ----------------------------------------------------------------------------------- */

struct path_row {
    const char *path;
    uint16_t status;
    const char *body; /* of a 200, or the Location of a 301 */
};

static const struct path_row path_rows[] = {
    { "/a.txt", 200, "a file" },
    { "/%61.txt", 200, "a file" },
    { "/sp%20ace.html", 200, "space" },
    { "/caf%C3%A9.txt", 200, "cafe" },
    { "/100%25.txt", 200, "percent" },
    { "/empty", 200, "" },
    { "/sub/page.html", 200, "page" },
    { "//sub//page.html", 200, "page" },
    { "/nothing", 404, NULL },
    { "/a.txt/", 404, NULL },
    { "/a.txt/b", 404, NULL },
    /* index files */
    { "/", 200, "home" },
    { "/sub/", 200, "sub home" },
    { "/second/", 200, "second" },
    { "/bare/", 403, NULL },
    { "/nothing/", 404, NULL },
    /* a directory without its slash: the path as it was sent, never another host's */
    { "/sub", 301, "/sub/" },
    { "/s%75b", 301, "/s%75b/" },
    { "//sub", 301, "/sub/" },
    { "/sub/deep", 301, "/sub/deep/" },
    { "///sub/deep", 301, "/sub/deep/" },
    { "/bare", 301, "/bare/" },
    { "/indir", 301, "/indir/" },
    /* dot-dot, in every dress */
    { "/../outside.txt", 400, NULL },
    { "/sub/../a.txt", 400, NULL },
    { "/sub/..", 400, NULL },
    { "/..", 400, NULL },
    { "/%2e%2e/outside.txt", 400, NULL },
    { "/%2E%2e/outside.txt", 400, NULL },
    { "/.%2e/outside.txt", 400, NULL },
    { "/sub/%2e./%2e./outside.txt", 400, NULL },
    { "/nothing/../../outside.txt", 400, NULL },
    { "/.hidden/../a.txt", 400, NULL },
    { "/..%2foutside.txt", 404, NULL },
    { "/%252e%252e/outside.txt", 404, NULL }, /* decoded once only */
    { "/..\\outside.txt", 404, NULL },
    { "/...", 404, NULL },
    /* encodings that are none */
    { "/%00", 400, NULL },
    { "/a.txt%00.html", 400, NULL },
    { "/%", 400, NULL },
    { "/%6", 400, NULL },
    { "/a%zz", 400, NULL },
    { "/a%6", 400, NULL },
    { "/%-1", 400, NULL },
    { "/sub%2fpage.html", 404, NULL },
    { "/sub%2Fpage.html", 404, NULL },
    { "a.txt", 400, NULL },
    { "*", 400, NULL },
    /* names with a dot in front */
    { "/.hidden", 404, NULL },
    { "/%2ehidden", 404, NULL },
    { "/./a.txt", 404, NULL },
    { "/sub/.", 404, NULL },
    { "/.well-known/x.txt", 200, "known" },
    { "/.well-known/.y", 404, NULL },
    { "/sub/.well-known", 404, NULL },
    /* links */
    { "/in.txt", 200, "page" },
    { "/indir/page.html", 200, "page" },
    { "/indir/", 200, "sub home" },
    { "/sub/up.txt", 200, "a file" },
    { "/abs.txt", 200, "a file" },
    { "/absdir/page.html", 200, "page" },
    { "/absdir", 301, "/absdir/" },
    { "/absroot/a.txt", 200, "a file" },
    { "/absroot", 301, "/absroot/" },
    { "/out.txt", 403, NULL },
    { "/outdir/secret.txt", 403, NULL },
    { "/outdir", 403, NULL },
    { "/outdir/", 403, NULL },
    { "/sub/out2.txt", 403, NULL },
    { "/absout.txt", 403, NULL },
    { "/absnear/near.txt", 403, NULL },
    { "/absroot/out.txt", 403, NULL },
    { "/loop", 403, NULL },
    { "/dangling", 404, NULL },
    /* not files */
    { "/fifo", 404, NULL },
    { "/socket", 404, NULL },
};

static void test_paths(void **state)
{
    (void)state;
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path_in("root/socket"));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    for (size_t i = 0; i < ARRAY_COUNT(path_rows); i++) {
        const struct path_row *row = &path_rows[i];
        struct asked got = ask(row->path);
        if (got.answer.status != row->status)
            fail_msg("%s: %u, not %u", row->path, got.answer.status, row->status);
        if (row->status == 200)
            assert_string_equal(got.body, row->body);
        if (row->status == 301)
            assert_slice(got.answer.location, row->body);
        done(&got);
    }
    close(fd);
}

static void test_raw_nul_is_refused(void **state)
{
    (void)state;
    struct asked got = ask_with((struct ask){ .path = "/a.txt\0.html", .path_length = 12 });
    assert_int_equal(got.answer.status, 400);
    done(&got);
}

static void test_long_names(void **state)
{
    (void)state;
    static const size_t lengths[] = { 255, 256, 4095, 4096, 5000, 20000 };
    for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
        char *path = malloc(lengths[i] + 2);
        memset(path, 'x', lengths[i] + 1);
        path[0] = '/';
        path[lengths[i] + 1] = '\0';
        struct asked got = ask(path);
        assert_int_equal(got.answer.status, 404);
        done(&got);
        free(path);
    }
}

static void test_links_may_be_followed(void **state)
{
    (void)state;
    static const struct path_row rows[] = {
        { "/out.txt", 200, "outside" },       { "/outdir/secret.txt", 200, "secret" },
        { "/absout.txt", 200, "outside" },    { "/../outside.txt", 400, NULL },
        { "/%2e%2e/outside.txt", 400, NULL }, { "/.hidden", 404, NULL },
        { "/outdir", 301, "/outdir/" },       { "/bare/", 403, NULL },
        { "/a.txt", 200, "a file" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct asked got = ask_with((struct ask){ .path = rows[i].path, .follows = true });
        assert_int_equal(got.answer.status, rows[i].status);
        if (rows[i].status == 200)
            assert_string_equal(got.body, rows[i].body);
        done(&got);
    }
}

/* A kernel without openat2() says the same to each path that ends in a file. */
static void test_walking_is_the_same_wall(void **state)
{
    (void)state;
    int at = open(root, O_PATH | O_DIRECTORY);
    assert_true(at >= 0);
    for (size_t i = 0; i < ARRAY_COUNT(path_rows); i++) {
        struct arena a;
        struct files_name name = { 0 };
        arena_init(&a);
        if (files_name_read(slice_of(path_rows[i].path), &a, &name) == 0) {
            int one = files_open_beneath(at, name.text, O_RDONLY, FILES_LINKS_WITHIN);
            int one_error = errno;
            int other = files_open_walking(at, name.text, O_RDONLY, FILES_LINKS_WITHIN);
            int other_error = errno;
            assert_int_equal(one >= 0, other >= 0);
            if (one >= 0) {
                struct stat x, y;
                assert_int_equal(fstat(one, &x) | fstat(other, &y), 0);
                assert_int_equal(x.st_ino, y.st_ino);
                close(one);
                close(other);
            } else {
                assert_int_equal(one_error, other_error);
            }
        }
        arena_fini(&a);
    }
    close(at);
}

static void test_location_is_no_other_host(void **state)
{
    (void)state;
    static const struct {
        const char *path, *location;
    } rows[] = {
        { "//evil.example/x", "/evil.example/x/" },
        { "/\\evil.example", "/%5Cevil.example/" },
        { "/a\r\nSet-Cookie: x", "/a%0D%0ASet-Cookie:%20x/" },
        { "/caf\xc3\xa9", "/caf%C3%A9/" },
        { "/%5Cevil", "/%5Cevil/" },
        { "/a/", "/a/" },
        { "/a<b>\"c", "/a%3Cb%3E%22c/" },
        { "/", "/" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct arena a;
        arena_init(&a);
        assert_slice(files_location(slice_of(rows[i].path), &a), rows[i].location);
        arena_fini(&a);
    }
}

static void test_root_that_is_missing_is_500(void **state)
{
    (void)state;
    struct asked got = ask_with((struct ask){ .path = "/a.txt", .root = path_in("nowhere") });
    assert_int_equal(got.answer.status, 500); /* not a 404, which would be remembered */
    done(&got);
    got = ask_with((struct ask){ .path = "/a.txt",
                                 .root = path_in("current") }); /* the root itself may be a link */
    assert_string_equal(got.body, "a file");
    done(&got);
}

static void test_no_rights_is_403(void **state)
{
    (void)state;
    put("root/private.txt", "private");
    assert_int_equal(chmod(path_in("root/private.txt"), 0), 0);
    assert_int_equal(chmod(top, 0755), 0);
    if (geteuid() == 0 && seteuid(65534) != 0) /* root may read everything */
        skip();
    struct asked got = ask("/private.txt");
    int status = got.answer.status;
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(status, 403);
    done(&got);
}

/* Out of descriptors is our own trouble: 500, which nobody stores as a missing file. */
static void test_no_descriptor_is_500(void **state)
{
    (void)state;
    struct rlimit limit, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int next = dup(0);
    close(next);
    low = limit;
    low.rlim_cur = (rlim_t)next + 1; /* one for the root, none for the file */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    struct asked got = ask("/a.txt");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(got.answer.status, 500);
    done(&got);
}

/* ---- heads ----------------------------------------------------------------------------------- */

static void test_head_of_a_file(void **state)
{
    (void)state;
    struct asked got = ask("/a.txt");
    assert_slice(got.answer.type, "text/plain; charset=utf-8");
    assert_int_equal(got.answer.length, 6);
    assert_int_equal(got.answer.modified_s, MADE_S);
    assert_slice(got.answer.etag, "\"6553f100.1f4-6\"");
    assert_int_equal(got.answer.coding.len, 0);
    assert_false(got.answer.varies);
    done(&got);
    got = ask("/drawing.svgz");
    assert_slice(got.answer.coding, "gzip");
    assert_slice(got.answer.type, "image/svg+xml");
    done(&got);
}

static void test_etag_follows_nanoseconds(void **state)
{
    (void)state;
    put("root/changing.txt", "one");
    struct asked before = ask("/changing.txt");
    put("root/changing.txt", "two");
    set_time("root/changing.txt", MADE_S, 501);
    struct asked after = ask("/changing.txt");
    assert_false(slice_equal(before.answer.etag, after.answer.etag));
    done(&before);
    done(&after);
}

static void test_siblings(void **state)
{
    (void)state;
    static const struct {
        const char *path, *accepts, *body, *coding, *type;
        bool varies;
    } rows[] = {
        { "/app.js", NULL, "plain script", "", "text/javascript; charset=utf-8", true },
        { "/app.js", "gzip", "gzipped", "gzip", "text/javascript; charset=utf-8", true },
        { "/app.js", "gzip, deflate, br, zstd", "br", "br", "text/javascript; charset=utf-8",
          true },
        { "/app.js", "br;q=0, gzip", "gzipped", "gzip", "text/javascript; charset=utf-8", true },
        { "/app.js", "identity", "plain script", "", "text/javascript; charset=utf-8", true },
        { "/app.js", "deflate", "plain script", "", "text/javascript; charset=utf-8", true },
        { "/z.txt", "zstd", "zst", "zstd", "text/plain; charset=utf-8",
          true }, /* its time in whole seconds */
        { "/old.css", "gzip", "plain style", "", "text/css; charset=utf-8",
          false }, /* made from an older file */
        { "/photo.jpg", "gzip", "photo", "", "image/jpeg", false },
        { "/app.js.gz", "gzip", "gzipped", "", "application/gzip",
          false }, /* asked for by name: as it is */
        { "/a.txt", "gzip, br", "a file", "", "text/plain; charset=utf-8", false },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct asked got =
            ask_with((struct ask){ .path = rows[i].path, .accept_encoding = rows[i].accepts });
        assert_int_equal(got.answer.status, 200);
        assert_string_equal(got.body, rows[i].body);
        assert_slice(got.answer.coding, rows[i].coding);
        assert_slice(got.answer.type, rows[i].type);
        if (got.answer.varies != rows[i].varies)
            fail_msg("%s for %s: varies", rows[i].path, rows[i].accepts);
        done(&got);
    }
}

static void test_siblings_have_tags_of_their_own(void **state)
{
    (void)state;
    put("root/same.js", "four");
    put("root/same.js.gz", "gzip"); /* the same time and size */
    struct asked plain = ask("/same.js");
    struct asked packed = ask_with((struct ask){ .path = "/same.js", .accept_encoding = "gzip" });
    assert_slice(packed.answer.coding, "gzip");
    assert_false(slice_equal(plain.answer.etag, packed.answer.etag));
    done(&plain);
    done(&packed);
}

static void test_sibling_that_leads_out_is_not_used(void **state)
{
    (void)state;
    put("root/led.js", "plain");
    make_link("../outside.txt", "root/led.js.gz");
    make_dir("root/led.js.br");
    struct asked got = ask_with((struct ask){ .path = "/led.js", .accept_encoding = "gzip, br" });
    assert_string_equal(got.body, "plain");
    assert_false(got.answer.varies);
    done(&got);
}

static void test_index_has_siblings(void **state)
{
    (void)state;
    put("root/second/index.htm.gz", "second, packed");
    struct asked got = ask_with((struct ask){ .path = "/second/", .accept_encoding = "gzip" });
    assert_string_equal(got.body, "second, packed");
    assert_slice(got.answer.type, "text/html; charset=utf-8");
    done(&got);
}

/* RFC 9110 13.1.2, 13.1.3, 13.2.2 */
static void test_conditional(void **state)
{
    (void)state;
    char made[DATE_LENGTH + 1] = "", before[DATE_LENGTH + 1] = "";
    date_format(MADE_S, made);
    date_format(MADE_S - 1, before);
    const struct {
        const char *none_match, *modified_since;
        uint16_t status;
    } rows[] = {
        { "\"6553f100.1f4-6\"", NULL, 304 },
        { "W/\"6553f100.1f4-6\"", NULL, 304 }, /* weak comparison */
        { "\"x\", \"6553f100.1f4-6\"", NULL, 304 },
        { "*", NULL, 304 },
        { "\"x\"", NULL, 200 },
        { NULL, made, 304 },
        { NULL, before, 200 },
        { NULL, "not a date", 200 },
        { "\"x\"", made, 200 }, /* If-None-Match decides alone */
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct asked got = ask_with((struct ask){ .path = "/a.txt",
                                                  .if_none_match = rows[i].none_match,
                                                  .if_modified_since = rows[i].modified_since });
        assert_int_equal(got.answer.status, rows[i].status);
        assert_slice(got.answer.etag,
                     "\"6553f100.1f4-6\""); /* RFC 9110 15.4.5: in the 304 as well */
        done(&got);
    }
    /* another coding's tag is another representation's */
    struct asked got = ask_with((struct ask){ .path = "/app.js", .accept_encoding = "br" });
    char *tag = slice_to_string(got.answer.etag);
    done(&got);
    got = ask_with(
        (struct ask){ .path = "/app.js", .accept_encoding = "gzip", .if_none_match = tag });
    assert_int_equal(got.answer.status, 200);
    done(&got);
    got =
        ask_with((struct ask){ .path = "/app.js", .accept_encoding = "br", .if_none_match = tag });
    assert_int_equal(got.answer.status, 304);
    assert_true(got.answer.varies);
    done(&got);
    free(tag);
}

static void test_types(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "index.html", "text/html; charset=utf-8" },
        { "A.HTM", "text/html; charset=utf-8" },
        { "x.css", "text/css; charset=utf-8" },
        { "x.mjs", "text/javascript; charset=utf-8" },
        { "x.json", "application/json" },
        { "x.svg", "image/svg+xml" },
        { "x.tar.gz", "application/gzip" },
        { "dir.html/x.woff2", "font/woff2" },
        { "x.wasm", "application/wasm" },
        { "x.webp", "image/webp" },
        { "x.3gp", "video/3gpp" },
        { "x.zst", "application/zstd" },
        { "README", "application/octet-stream" },
        { "x.", "application/octet-stream" },
        { "html", "application/octet-stream" },
        { "", "application/octet-stream" },
        { "x.averyveryverylongending", "application/octet-stream" },
        { "x.unknown", "application/octet-stream" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_slice(files_type_of(slice_of(rows[i][0])), rows[i][1]);
    assert_true(files_types_are_sorted());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_raw_nul_is_refused),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_links_may_be_followed),
        cmocka_unit_test(test_walking_is_the_same_wall),
        cmocka_unit_test(test_location_is_no_other_host),
        cmocka_unit_test(test_root_that_is_missing_is_500),
        cmocka_unit_test(test_no_rights_is_403),
        cmocka_unit_test(test_no_descriptor_is_500),
        cmocka_unit_test(test_head_of_a_file),
        cmocka_unit_test(test_etag_follows_nanoseconds),
        cmocka_unit_test(test_siblings),
        cmocka_unit_test(test_siblings_have_tags_of_their_own),
        cmocka_unit_test(test_sibling_that_leads_out_is_not_used),
        cmocka_unit_test(test_index_has_siblings),
        cmocka_unit_test(test_conditional),
        cmocka_unit_test(test_types),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
