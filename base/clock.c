/* base/clock.c: see clock.h. */
#include "base/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef LARDER_TEST_HOOKS
static const _Atomic int64_t no_shift;
static const _Atomic int64_t *shift_ms = &no_shift;

void clock_setup(void)
{
    const char *path = getenv("LARDER_TEST_CLOCK");
    if (path == NULL)
        return;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    void *map = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    close(fd);
    shift_ms = map;
}

static int64_t shift(void)
{
    return atomic_load_explicit(shift_ms, memory_order_relaxed);
}
#else
void clock_setup(void)
{
}

static int64_t shift(void)
{
    return 0;
}
#endif

int64_t clock_mono_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 + shift() * 1000;
}

int64_t clock_mono_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000 + shift();
}

int64_t clock_wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t clock_wall_s(void)
{
    return clock_wall_ms() / 1000;
}
