/* tests/fuzz/fuzz_files_path.c: any bytes as a request's path. Whatever is opened lies beneath the
 * root, and a redirect leads to this host. */
#include "proxy/files_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[] = "/tmp/larder-fuzz-XXXXXX";
static char root[PATH_MAX];

static void put(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");
    CHECK(f != NULL);
    fputs(text, f);
    fclose(f);
}

static void remove_tree(void)
{
    static const char *const names[] = { "root/a",       "root/a.gz", "root/index.html", "root/d/b",
                                         "root/in",      "root/out",  "root/outdir",     "root/up",
                                         "root/loop",    "root/abs",  "root/absin",      "root/d",
                                         "root/.hidden", "root",      "secret",          "" };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", top, names[i]);
        if (unlink(path) != 0)
            rmdir(path);
    }
}

/* root/ with a file, a directory, links that stay and links that leave; a secret beside it. */
static void make_tree(void)
{
    char real[PATH_MAX], here[PATH_MAX];
    CHECK(mkdtemp(top) != NULL && realpath(top, real) != NULL && getcwd(here, sizeof here) != NULL);
    CHECK(chdir(top) == 0);
    CHECK(mkdir("root", 0755) == 0 && mkdir("root/d", 0755) == 0);
    put("secret", "secret");
    put("root/a", "a");
    put("root/a.gz", "a.gz");
    put("root/.hidden", "hidden");
    put("root/index.html", "index");
    put("root/d/b", "b");
    CHECK(symlink("d/b", "root/in") == 0 && symlink("../secret", "root/out") == 0 &&
          symlink("..", "root/outdir") == 0);
    CHECK(symlink("d/../a", "root/up") == 0 && symlink("loop", "root/loop") == 0 &&
          symlink("/", "root/abs") == 0);
    snprintf(root, sizeof root, "%.4000s/root", real);
    CHECK(symlink(root, "root/absin") == 0);
    CHECK(chdir(here) == 0);
    atexit(remove_tree);
}

static void check_is_beneath(int fd)
{
    char link[64], place[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, place, sizeof place);
    size_t prefix = strlen(root);
    CHECK(length > (ssize_t)prefix && memcmp(place, root, prefix) == 0 && place[prefix] == '/');
    for (ssize_t i = 0; i + 1 < length; i++)
        CHECK((size_t)i < prefix || place[i] != '/' ||
              place[i + 1] != '.'); /* no hidden name is served */
    struct stat st;
    CHECK(fstat(fd, &st) == 0 && S_ISREG(st.st_mode));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (root[0] == '\0')
        make_tree();
    struct config_origin origin = { .name = (char *)"fuzz", .kind = ORIGIN_FILES, .root = root };
    struct header fields[1];
    struct headers request;
    struct arena arena;
    struct files_answer answer;
    headers_init(&request, fields, 1);
    CHECK(headers_add(&request, SLICE("Accept-Encoding"), SLICE("gzip")));
    arena_init(&arena);
    files_open(&origin, (struct slice){ (const char *)data, size }, &request, &arena, &answer);
    CHECK(answer.status >= 200 && answer.status <= 500 &&
          (answer.fd >= 0) == (answer.status == 200));
    if (answer.fd >= 0) {
        check_is_beneath(answer.fd);
        close(answer.fd);
    }
    if (answer.status == 301) {
        CHECK(answer.location.len > 1 && answer.location.ptr[0] == '/' &&
              answer.location.ptr[1] != '/' && answer.location.ptr[1] != '\\');
        for (size_t i = 0; i < answer.location.len; i++)
            CHECK(answer.location.ptr[i] > ' ' && answer.location.ptr[i] < 0x7f);
    }
    arena_fini(&arena);
    return 0;
}
