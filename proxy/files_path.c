/* proxy/files_path.c: from a request's path to a descriptor that is certainly beneath the root.
 *
 * Two walls. The path's text: decoded once, strictly; dot-dot, NUL and encoded slashes never get
 * near open(). The kernel: openat2() with RESOLVE_BENEATH refuses what leaves the root by links,
 * whatever races with us. Absolute links are refused by it even when they point back in; those are
 * resolved by the kernel first and their real place is then opened beneath the root, by the same
 * wall.
 */
#include "proxy/files_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RACE_TRIES = 8 };

/* ---- text ------------------------------------------------------------------------------------ */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = ascii_lower(c);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* RFC 3986 2.1. An encoded slash would be data, not a separator; no file name has one. */
static uint16_t decode(struct slice path, char *out, size_t *length)
{
    size_t n = 0;
    for (size_t i = 0; i < path.len; i++) {
        char c = path.ptr[i];
        if (c == '%') {
            int high = i + 2 < path.len ? hex_digit(path.ptr[i + 1]) : -1;
            int low = i + 2 < path.len ? hex_digit(path.ptr[i + 2]) : -1;
            if (high < 0 || low < 0)
                return 400;
            c = (char)(high << 4 | low);
            if (c == '/')
                return 404;
            i += 2;
        }
        if (c == '\0')
            return 400;
        out[n++] = c;
    }
    *length = n;
    return 0;
}

static bool is_well_known(struct slice element, size_t at)
{
    return at == 0 && slice_equal(element, SLICE(".well-known")); /* RFC 8615: at the root only */
}

uint16_t files_name_read(struct slice path, struct arena *a, struct files_name *out)
{
    if (path.len == 0 || path.ptr[0] != '/')
        return 400;
    if (path.len >= 3 * PATH_MAX)
        return 404; /* not even all encoded could it be a name */
    char *decoded = arena_alloc(a, path.len + 1);
    size_t length = 0;
    uint16_t refused = decode(path, decoded, &length);
    if (refused != 0)
        return refused;

    out->text = arena_alloc(a, length + FILES_ENDING_ROOM);
    out->length = 0;
    out->has_slash = decoded[length - 1] == '/';
    uint16_t status = 0;
    for (size_t i = 0; i < length;) {
        size_t end = i;
        while (end < length && decoded[end] != '/')
            end++;
        struct slice element = { decoded + i, end - i };
        i = end + 1;
        if (element.len == 0)
            continue;
        if (slice_equal(element, SLICE("..")))
            return 400; /* before any 404: it is never harmless */
        if (element.ptr[0] == '.' && !is_well_known(element, out->length))
            status = 404;
        if (out->length > 0)
            out->text[out->length++] = '/';
        memcpy(out->text + out->length, element.ptr, element.len);
        out->length += element.len;
    }
    out->text[out->length] = '\0';
    return out->length >= PATH_MAX ? 404 : status;
}

static bool is_uri_byte(char c)
{
    return c > ' ' && c < 0x7f && strchr("\"<>\\^`{|}", c) == NULL;
}

struct slice files_location(struct slice path, struct arena *a)
{
    char *text = arena_alloc(a, path.len * 3 + 2);
    size_t n = 0;
    size_t from = 0;
    while (from < path.len && path.ptr[from] == '/')
        from++;
    text[n++] = '/';
    for (size_t i = from; i < path.len; i++) {
        char c = path.ptr[i];
        if (is_uri_byte(c)) {
            text[n++] = c;
            continue;
        }
        static const char digits[] = "0123456789ABCDEF";
        text[n++] = '%';
        text[n++] = digits[(unsigned char)c >> 4];
        text[n++] = digits[(unsigned char)c & 15];
    }
    if (text[n - 1] != '/')
        text[n++] = '/';
    return (struct slice){ text, n };
}

/* ---- opening --------------------------------------------------------------------------------- */

typedef int (*open_f)(int root, const char *name, int flags);

static int open_by_kernel(int root, const char *name, int flags)
{
    struct open_how how = { .flags = (uint64_t)flags,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
    int fd = -1;
    for (int i = 0; i < RACE_TRIES; i++) {
        fd = (int)syscall(SYS_openat2, root, name, &how, sizeof how);
        if (fd >= 0 ||
            (errno != EAGAIN && errno != EINTR)) /* EAGAIN: something was renamed meanwhile */
            break;
    }
    return fd;
}

/* Element by element, following no link. */
static int open_by_walking(int root, const char *name, int flags)
{
    int at = root;
    int fd = -1;
    while (true) {
        size_t length = strcspn(name, "/");
        char element[NAME_MAX + 1];
        bool is_last = name[length] == '\0';
        if (length > NAME_MAX) {
            errno = ENAMETOOLONG;
            fd = -1;
        } else {
            memcpy(element, name, length);
            element[length] = '\0';
            fd = openat(at, element,
                        O_NOFOLLOW | (is_last ? flags : O_PATH | O_DIRECTORY | O_CLOEXEC));
        }
        int error = errno;
        if (at != root)
            close(at);
        errno = error;
        if (fd < 0 || is_last)
            return fd;
        at = fd;
        name += length + 1;
    }
}

static bool real_place(int fd, char *out)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, out, PATH_MAX - 1);
    if (length <= 0 || length >= PATH_MAX - 1)
        return false;
    out[length] = '\0';
    return out[0] == '/';
}

/* A link is in the way. Where does it really lead? If that is within the root, its real name is
 * opened, by the same wall: should somebody exchange a directory for a link meanwhile, it fails. */
static int open_real(int root, const char *name, int flags, open_f open_within)
{
    int found = openat(root, name, O_PATH | O_CLOEXEC);
    if (found < 0)
        return -1;
    char *places = xmalloc(2 * PATH_MAX);
    char *base = places;
    char *place = places + PATH_MAX;
    int fd = -1;
    int error = EXDEV;
    if (real_place(root, base) && real_place(found, place)) {
        size_t length = strcmp(base, "/") == 0 ? 0 : strlen(base);
        if (strncmp(place, base, length) == 0 && (place[length] == '/' || place[length] == '\0')) {
            const char *rest = place[length] == '/' ? place + length + 1 : "";
            fd = open_within(root, *rest == '\0' ? "." : rest, flags);
            error = errno;
        }
    }
    free(places);
    close(found);
    errno = error;
    return fd;
}

static int open_checked(int root, const char *name, int flags, open_f open_within)
{
    int fd = open_within(root, name, flags);
    if (fd >= 0 || (errno != EXDEV && errno != ELOOP && errno != ENOTDIR))
        return fd;
    /* ENOTDIR: so O_DIRECTORY|O_NOFOLLOW calls a link, too; open_real() says the same for what is
     * none. */
    return open_real(root, name, flags, open_within);
}

/* O_NONBLOCK: opening a FIFO does not wait for its other end. openat2() takes neither with O_PATH.
 */
static int with_always(int flags)
{
    return flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY | O_NONBLOCK);
}

static int open_following(int root, const char *name, int flags)
{
    int fd;
    do
        fd = openat(root, name, flags);
    while (fd < 0 && errno == EINTR);
    return fd;
}

int files_open_walking(int root, const char *name, int flags, enum files_links links)
{
    if (*name == '\0')
        name = ".";
    if (links == FILES_LINKS_ALL)
        return open_following(root, name, with_always(flags));
    return open_checked(root, name, with_always(flags), open_by_walking);
}

int files_open_beneath(int root, const char *name, int flags, enum files_links links)
{
    static _Atomic bool has_no_openat2; /* before 5.6, or a container's filter of that time */
    if (*name == '\0')
        name = ".";
    if (links == FILES_LINKS_ALL)
        return open_following(root, name, with_always(flags));
    if (!atomic_load_explicit(&has_no_openat2, memory_order_relaxed)) {
        int fd = open_checked(root, name, with_always(flags), open_by_kernel);
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
            return fd;
        if (errno == ENOSYS)
            atomic_store_explicit(&has_no_openat2, true, memory_order_relaxed);
    }
    return open_checked(root, name, with_always(flags), open_by_walking);
}
