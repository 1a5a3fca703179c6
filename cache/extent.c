/* cache/extent.c: the memfd in which large bodies live, so that sendfile can send them without a
 * copy.
 *
 * One sparse file for the whole process. Its addresses are handed out once and never again: pages
 * that wait in a socket's queue are still the file's pages, so a write to a freed range would
 * change what a client has yet to read (tried: of 1 MiB queued, every byte changed). A freed range
 * gets a hole instead: the file lets go of the pages, the socket keeps them. Half of a file's
 * addresses, 2^62 bytes, last for 136 years at 1 GiB/s.
 *
 * Threads  any.
 */
#include "cache/cache_internal.h"

#include "base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint64_t ADDRESS_END = (uint64_t)1 << 62;

void extents_init(struct extents *x)
{
    x->fd = cache_test_fault(CACHE_FAULT_MEMFD) ? -1 : memfd_create("larder-bodies", MFD_CLOEXEC);
    atomic_init(&x->next, 0);
    if (x->fd < 0)
        log_warn("no memfd for bodies of 64 KiB and above (errno %d): they will not be stored",
                 errno);
}

void extents_fini(struct extents *x)
{
    if (x->fd >= 0)
        close(x->fd);
    x->fd = -1;
}

bool extent_reserve(struct extents *x, uint64_t bytes, uint64_t *at)
{
    if (x->fd < 0 || bytes > ADDRESS_END)
        return false;
    *at = atomic_fetch_add_explicit(&x->next, extent_round(bytes), memory_order_relaxed);
    return *at < ADDRESS_END;
}

bool extent_write(struct extents *x, uint64_t at, struct slice bytes)
{
    while (bytes.len > 0) {
        ssize_t n = -1;
        if (cache_test_fault(CACHE_FAULT_WRITE))
            errno = ENOSPC;
        else
            n = pwrite(x->fd, bytes.ptr, bytes.len, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            log_warn("the memfd took no more bytes (errno %d): a body is not stored", errno);
            return false;
        }
        bytes.ptr += n;
        bytes.len -= (size_t)n;
        at += (uint64_t)n;
    }
    return true;
}

bool extent_punch(struct extents *x, uint64_t at, uint64_t bytes)
{
    int result;
    if (bytes == 0)
        return true;
    do
        result =
            fallocate(x->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)bytes);
    while (result < 0 && errno == EINTR);
    if (result < 0)
        log_error("a hole in the memfd was refused (errno %d): %llu bytes stay in use", errno,
                  (unsigned long long)bytes);
    return result == 0;
}
