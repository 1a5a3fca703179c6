/* proxy/files.c: a directory as an origin; see files.h. How a path becomes a descriptor is in
 * files_path.c, types are in types.c.
 *
 *   path -> name -> open --a file------> sibling? -> conditions -> 200 or 304
 *                     '----a directory-> 301, or with a slash its index -> …
 *
 * All of it is for misses: the cache in front looks at a stored file again only every
 * check_interval.
 */
#include "proxy/files.h"

#include "base/clock.h"
#include "base/log.h"
#include "cache/decide.h"
#include "proxy/files_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the order of preference. */
static const struct coding {
    unsigned bit;
    char ending[FILES_ENDING_ROOM];
    const char *name;
} codings[] = {
    { CODING_BR, ".br", "br" },
    { CODING_ZSTD, ".zst", "zstd" },
    { CODING_GZIP, ".gz", "gzip" },
};

/* One answer in the making. */
struct serving {
    const struct config_origin *origin;
    const struct headers *request;
    struct arena *arena;
    struct files_answer *out;
    struct slice path;
    enum files_links links;
    int root;
};

static uint16_t status_of_errno(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ENXIO: /* a socket, or a device without its driver */
    case ENODEV:
    case EINVAL: return 404;
    case EACCES:
    case EPERM:
    case ELOOP:
    case EXDEV: return 403; /* there, but not to be had: a link that leads out, or in a circle */
    default: return 500;
    }
}

static void refuse_for_errno(struct serving *s, int error)
{
    s->out->status = status_of_errno(error);
    if (s->out->status == 500)
        log_error("origin %s: " SLICE_FMT ": %s", s->origin->name, SLICE_ARG(s->path),
                  strerror(error));
    else if (error == EXDEV)
        log_info("origin %s: " SLICE_FMT ": a link leaves the root; follow_symlinks would allow it",
                 s->origin->name, SLICE_ARG(s->path));
}

/* ---- one file -------------------------------------------------------------------------------- */

/* Not older than the file it was made from. Some packers keep a file's time in whole seconds only.
 */
static bool is_current(const struct stat *sibling, const struct stat *file)
{
    if (sibling->st_mtim.tv_sec != file->st_mtim.tv_sec)
        return sibling->st_mtim.tv_sec > file->st_mtim.tv_sec;
    return sibling->st_mtim.tv_nsec == 0 || sibling->st_mtim.tv_nsec >= file->st_mtim.tv_nsec;
}

/* The best sibling that the client accepts takes the place of the open file. All are looked for:
 * that one exists is enough for the answer to vary (RFC 9110 12.5.5). */
static const struct coding *use_sibling(struct serving *s, struct files_name *name, int *fd,
                                        struct stat *st)
{
    const struct coding *used = NULL;
    const struct stat file = *st;
    unsigned accepted = cache_codings_accepted(s->request);
    if (files_type_is_packed((struct slice){ name->text, name->length }))
        return NULL;
    for (size_t i = 0; i < ARRAY_COUNT(codings); i++) {
        const struct coding *c = &codings[i];
        memcpy(name->text + name->length, c->ending, strlen(c->ending) + 1);
        int sibling = files_open_beneath(s->root, name->text, O_RDONLY, s->links);
        name->text[name->length] = '\0';
        if (sibling < 0)
            continue;
        struct stat its;
        if (fstat(sibling, &its) != 0 || !S_ISREG(its.st_mode) || !is_current(&its, &file)) {
            close(sibling);
            continue;
        }
        s->out->varies = true;
        if (used != NULL || !(accepted & c->bit)) {
            close(sibling);
            continue;
        }
        close(*fd);
        *fd = sibling;
        *st = its;
        used = c;
    }
    return used;
}

/* Strong: another time (nanoseconds) or size is another file, another coding another representation
 * (RFC 9110 8.8.1, 8.8.3.3). */
static struct slice etag_of(struct arena *a, const struct stat *st, const struct coding *coding)
{
    return arena_printf(a, "\"%llx.%lx-%llx%s%s\"", (unsigned long long)st->st_mtim.tv_sec,
                        (unsigned long)st->st_mtim.tv_nsec, (unsigned long long)st->st_size,
                        coding == NULL ? "" : "-", coding == NULL ? "" : coding->name);
}

static bool is_not_modified(const struct serving *s)
{
    int64_t now_s = clock_wall_s();
    struct validators v = { .etag = s->out->etag,
                            .last_modified_s = s->out->modified_s,
                            .date_s = now_s };
    return cache_conditional(s->request, &v, now_s) == CONDITIONAL_NOT_MODIFIED;
}

/* Takes `fd`. */
static void answer_file(struct serving *s, struct files_name *name, int fd, struct stat *st)
{
    struct files_answer *out = s->out;
    const struct coding *coding = use_sibling(s, name, &fd, st);
    out->type = files_type_of((struct slice){ name->text, name->length });
    out->coding = slice_of(coding == NULL ? NULL : coding->name);
    if (coding == NULL &&
        slice_has_suffix((struct slice){ name->text, name->length }, SLICE(".svgz")))
        out->coding = SLICE("gzip"); /* it is nothing else, and browsers show it only so */
    out->etag = etag_of(s->arena, st, coding);
    out->modified_s = st->st_mtim.tv_sec;
    out->length = (uint64_t)st->st_size;
    if (is_not_modified(s)) {
        out->status = 304;
        close(fd);
        return;
    }
    out->status = 200;
    out->fd = fd;
}

/* ---- directories ----------------------------------------------------------------------------- */

/* 0 when it is a directory beneath the root, else an errno. */
static int directory_error(const struct serving *s, const char *name)
{
    int fd = files_open_beneath(s->root, name, O_PATH | O_DIRECTORY, s->links);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static struct files_name index_name(struct serving *s, const struct files_name *directory,
                                    const char *index)
{
    size_t length = directory->length + 1 + strlen(index);
    struct files_name name = { .text = arena_alloc(s->arena, length + FILES_ENDING_ROOM) };
    memcpy(name.text, directory->text, directory->length);
    name.length = directory->length;
    if (name.length > 0)
        name.text[name.length++] = '/';
    memcpy(name.text + name.length, index, strlen(index) + 1);
    name.length += strlen(index);
    return name;
}

/* The first index name that is a regular file. One that is there and cannot be opened says so;
 * none: nothing is listed. */
static void answer_directory(struct serving *s, const struct files_name *directory)
{
    static char *usual[] = { "index.html", NULL };
    char **names = s->origin->index_names == NULL ? usual : s->origin->index_names;
    for (size_t i = 0; names[i] != NULL; i++) {
        struct files_name name = index_name(s, directory, names[i]);
        int fd = files_open_beneath(s->root, name.text, O_RDONLY, s->links);
        struct stat st;
        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
            answer_file(s, &name, fd, &st);
            return;
        }
        int error = fd < 0 ? errno : ENOENT;
        if (fd >= 0)
            close(fd);
        if (status_of_errno(error) != 404) {
            refuse_for_errno(s, error);
            return;
        }
    }
    int error = directory_error(s, directory->text);
    if (error == 0)
        s->out->status = 403;
    else
        refuse_for_errno(s, error);
}

/* ---- a path ---------------------------------------------------------------------------------- */

static void redirect(struct serving *s)
{
    s->out->status = 301;
    s->out->location = files_location(s->path, s->arena);
}

static void answer_name(struct serving *s, struct files_name *name)
{
    if (name->has_slash) {
        answer_directory(s, name);
        return;
    }
    int fd = files_open_beneath(s->root, name->text, O_RDONLY, s->links);
    struct stat st;
    if (fd < 0) {
        int error = errno;
        if (error == EACCES && directory_error(s, name->text) == 0) /* may be entered, not listed */
            redirect(s);
        else
            refuse_for_errno(s, error);
        return;
    }
    if (fstat(fd, &st) != 0) {
        refuse_for_errno(s, errno);
    } else if (S_ISREG(st.st_mode)) {
        answer_file(s, name, fd, &st);
        return;
    } else if (S_ISDIR(st.st_mode)) {
        redirect(s);
    } else {
        s->out->status = 404; /* FIFOs, devices: nothing to be served */
    }
    close(fd);
}

void files_open(const struct config_origin *origin, struct slice path,
                const struct headers *request, struct arena *a, struct files_answer *out)
{
    *out = (struct files_answer){ .fd = -1, .status = 500 };
    struct serving s = {
        .origin = origin, .request = request, .arena = a, .out = out, .path = path, .root = -1
    };
    struct files_name name = { 0 };
    uint16_t refused = files_name_read(path, a, &name);
    if (refused != 0) {
        out->status = refused;
        return;
    }
    s.links = origin->follows_symlinks ? FILES_LINKS_ALL : FILES_LINKS_WITHIN;
    s.root =
        open(origin->root,
             O_PATH | O_DIRECTORY |
                 O_CLOEXEC); /* anew each time: it may be a link that a deployment turns round */
    if (s.root < 0) {
        log_error("origin %s: root %s: %s", origin->name, origin->root, strerror(errno));
        return; /* 500, not 404: a volume that is not there yet must not be remembered as missing
                   files */
    }
    answer_name(&s, &name);
    close(s.root);
}
