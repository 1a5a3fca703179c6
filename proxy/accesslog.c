/* proxy/accesslog.c: from the workers to the file without a worker ever waiting.
 *
 *   worker: accesslog_write() -> its ring (one producer, one consumer, no lock)
 *   writer: gather() ring -> lines in `batch`, flush() batch -> file, pipe or socket
 *
 * The writer looks every WAIT_MS, and sooner only when a ring becomes half full (an eventfd,
 * written once until the writer has looked). An output that takes nothing (a full pipe, a full
 * disk) stops the writer, never a worker: the rings fill, and what finds no room is counted in
 * log_dropped. A format and an output come together in a `struct target`, which a reload makes on
 * its own thread and hands over.
 *
 * Threads  struct accesslog_ring: `head` by the worker, `tail` by the writer. `target`, `batch`:
 * the writer only.
 */
#include "proxy/accesslog.h"

#include "base/clock.h"
#include "base/log.h"
#include "proxy/accesslog_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    RING_BYTES = 256 << 10, /* a power of two */
    BATCH_BYTES = 64 << 10, /* lines gathered before they are written */
    WAIT_MS = 100,
    RETRY_MS = 1000, /* after an error of the output */
    STOP_MS = 2000,
    COMPLAIN_MS = 10000, /* between two words about dropped lines */
    PIPE_STEP = 4096,    /* POLLOUT promises room for PIPE_BUF: more could block */
};

/* ---- a record in a ring ---------------------------------------------------------------------- */

enum text {
    TEXT_CLIENT,
    TEXT_METHOD,
    TEXT_TARGET,
    TEXT_PROTOCOL,
    TEXT_HOST,
    TEXT_REFERER,
    TEXT_USER_AGENT,
    TEXT_SERVER,
    TEXT_SITE,
    TEXT_COUNT
};

/* Where each text is in a record, and how much of it is kept at most. */
static const struct {
    size_t offset;
    uint16_t max;
} texts[TEXT_COUNT] = {
    [TEXT_CLIENT] = { offsetof(struct access_record, client), 128 },
    [TEXT_METHOD] = { offsetof(struct access_record, method), 64 },
    [TEXT_TARGET] = { offsetof(struct access_record, target), 8192 },
    [TEXT_PROTOCOL] = { offsetof(struct access_record, protocol), 32 },
    [TEXT_HOST] = { offsetof(struct access_record, host), 256 },
    [TEXT_REFERER] = { offsetof(struct access_record, referer), 2048 },
    [TEXT_USER_AGENT] = { offsetof(struct access_record, user_agent), 1024 },
    [TEXT_SERVER] = { offsetof(struct access_record, server), 256 },
    [TEXT_SITE] = { offsetof(struct access_record, site), 256 },
};

/* A record as it lies in a ring: small, so that a ring holds many. The texts follow, one after the
 * other. */
struct packed {
    uint32_t bytes; /* with this header, a multiple of eight */
    bool is_pad;    /* nothing here: the next record is at the ring's start */
    uint8_t outcome, reason;
    uint16_t status;
    uint16_t lengths[TEXT_COUNT];
    int32_t age_s;
    int64_t wall_ms, first_byte_us, total_us;
    uint64_t body_bytes, sent_bytes;
};
static_assert(OUTCOME_COUNT <= UINT8_MAX && REASON_COUNT <= UINT8_MAX, "they fit");
static_assert(sizeof(struct packed) % 8 == 0, "records stay aligned");

struct accesslog_ring {
    /* the worker's line */
    _Alignas(64) _Atomic size_t head; /* never wraps: a place is head % RING_BYTES */
    size_t seen_tail;                 /* tail when last looked at */
    _Atomic int64_t dropped;          /* for the writer's warning; the counter is in stats */
    struct accesslog *log;
    /* the writer's line */
    _Alignas(64) _Atomic size_t tail;
    struct accesslog_ring *next; /* fixed once the ring is in the list */
    _Alignas(64) char bytes[RING_BYTES];
};

/* Where lines go, and how they look. Fixed after target_new(), but for what the writer does to the
 * output. */
struct target {
    char *path; /* NULL: off */
    struct access_format *format;
    int fd;                  /* -1: off */
    bool is_file, is_socket; /* else a pipe or a terminal */
};

struct accesslog {
    _Atomic(struct accesslog_ring *) rings; /* newest first */
    _Atomic(struct target *) next_target;   /* handed over by accesslog_change() */
    _Atomic bool is_on, is_reopening, is_stopping;
    _Atomic bool is_woken; /* the eventfd was written and the writer has not looked yet */
    _Atomic int64_t stop_at_ms;
    int wake_fd;
    pthread_t thread;
    /* the writer only */
    struct target *target;
    struct line_buffer batch;
    size_t sent; /* of batch */
    int64_t batch_lines;
    int last_errno; /* of the output; 0 while it works */
    int64_t retry_at_ms;
    int64_t dropped_told, dropped_told_at_ms;
    struct stats *stats;
};

/* ---- the worker's side ----------------------------------------------------------------------- */

struct accesslog_ring *accesslog_ring(struct accesslog *log)
{
    struct accesslog_ring *ring = aligned_alloc(64, sizeof *ring);
    CHECK(ring != NULL);
    /* the bytes are left untouched: a ring that is never used costs no memory */
    memset(ring, 0, offsetof(struct accesslog_ring, bytes));
    ring->log = log;
    ring->next = atomic_load(&log->rings);
    while (!atomic_compare_exchange_weak(&log->rings, &ring->next, ring))
        ;
    return ring;
}

static void wake(struct accesslog *log)
{
    if (atomic_load_explicit(&log->is_woken, memory_order_relaxed) ||
        atomic_exchange(&log->is_woken, true))
        return;
    uint64_t one = 1;
    ssize_t n = write(log->wake_fd, &one, sizeof one);
    (void)n; /* it can only be full, and then it wakes too */
}

/* Whether so many bytes are free. Reads the writer's line only when what was seen of it is too old.
 */
static bool has_room(struct accesslog_ring *ring, size_t head, size_t bytes)
{
    if (head + bytes - ring->seen_tail <= RING_BYTES)
        return true;
    ring->seen_tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    return head + bytes - ring->seen_tail <= RING_BYTES;
}

static void wake_when_half_full(struct accesslog_ring *ring, size_t head)
{
    if (head - ring->seen_tail < RING_BYTES / 2)
        return;
    ring->seen_tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    if (head - ring->seen_tail >= RING_BYTES / 2)
        wake(ring->log);
}

static void drop(struct accesslog_ring *ring)
{
    stat_add(&stats_mine()->log_dropped, 1);
    stat_add(&ring->dropped, 1);
    wake(ring->log);
}

static const struct slice *text_of(const struct access_record *r, enum text t)
{
    return (const struct slice *)(const void *)((const char *)r + texts[t].offset);
}

static struct packed pack(const struct access_record *r)
{
    struct packed p = {
        .outcome = (uint8_t)r->outcome,
        .reason = (uint8_t)r->reason,
        .status = r->status,
        .age_s = r->age_s,
        .wall_ms = r->wall_ms,
        .first_byte_us = r->first_byte_us,
        .total_us = r->total_us,
        .body_bytes = r->body_bytes,
        .sent_bytes = r->sent_bytes,
    };
    size_t bytes = sizeof p;
    for (enum text t = 0; t < TEXT_COUNT; t++) {
        size_t length = text_of(r, t)->len;
        p.lengths[t] = length < texts[t].max ? (uint16_t)length : texts[t].max;
        bytes += p.lengths[t];
    }
    p.bytes = (uint32_t)((bytes + 7) & ~(size_t)7);
    return p;
}

/* The other way; the texts are borrowed from behind `p`. */
static struct access_record unpack(const struct packed *p)
{
    struct access_record r = {
        .outcome = p->outcome,
        .reason = p->reason,
        .status = p->status,
        .age_s = p->age_s,
        .wall_ms = p->wall_ms,
        .first_byte_us = p->first_byte_us,
        .total_us = p->total_us,
        .body_bytes = p->body_bytes,
        .sent_bytes = p->sent_bytes,
    };
    const char *at = (const char *)(p + 1);
    for (enum text t = 0; t < TEXT_COUNT; t++) {
        *(struct slice *)(void *)((char *)&r + texts[t].offset) =
            (struct slice){ at, p->lengths[t] };
        at += p->lengths[t];
    }
    return r;
}

void accesslog_write(struct accesslog_ring *ring, const struct access_record *r)
{
    if (!atomic_load_explicit(&ring->log->is_on, memory_order_relaxed))
        return;

    struct packed p = pack(r);
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    size_t at = head % RING_BYTES, to_end = RING_BYTES - at;
    size_t skipped = p.bytes > to_end ? to_end : 0;
    if (!has_room(ring, head, skipped + p.bytes)) {
        drop(ring);
        return;
    }
    if (skipped > 0) {
        /* to_end is a multiple of eight, so the first two members fit */
        struct packed *pad = (struct packed *)(void *)(ring->bytes + at);
        pad->bytes = (uint32_t)skipped;
        pad->is_pad = true;
        at = 0;
    }
    char *out = ring->bytes + at;
    memcpy(out, &p, sizeof p);
    out += sizeof p;
    for (enum text t = 0; t < TEXT_COUNT; t++) {
        if (p.lengths[t] > 0)
            memcpy(out, text_of(r, t)->ptr, p.lengths[t]);
        out += p.lengths[t];
    }
    head += skipped + p.bytes;
    atomic_store_explicit(&ring->head, head, memory_order_release);
    wake_when_half_full(ring, head);
}

/* ---- targets --------------------------------------------------------------------------------- */

static int open_path(const char *path)
{
    if (strcmp(path, "-") == 0)
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    /* not blocking: a named pipe that nobody reads must not hold us; for a file it means nothing */
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
}

static bool target_open(struct target *t, char why[256])
{
    struct stat st;
    int fd = open_path(t->path);
    if (fd < 0 || fstat(fd, &st) < 0) {
        snprintf(why, 256, "cannot open the access log %s: %s", t->path,
                 errno == ENXIO ? "it is a pipe that nobody reads" : strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    if (t->fd >= 0)
        close(t->fd);
    t->fd = fd;
    t->is_file = S_ISREG(st.st_mode);
    t->is_socket = S_ISSOCK(st.st_mode);
    return true;
}

static void target_free(struct target **t)
{
    if (*t == NULL)
        return;
    if ((*t)->fd >= 0)
        close((*t)->fd);
    access_format_free(&(*t)->format);
    free((*t)->path);
    free(*t);
    *t = NULL;
}

static struct target *target_new(const char *path, const char *format, char why[256])
{
    struct target *t = xcalloc(1, sizeof *t);
    t->fd = -1;
    if (path == NULL)
        return t;
    t->path = xstrdup(path);
    t->format = access_format_new(format, why);
    if (t->format == NULL || !target_open(t, why))
        target_free(&t);
    return t;
}

/* ---- the writer: ring to batch --------------------------------------------------------------- */

/* The next record of a ring, NULL when it is empty; it stays until ring_took(). */
static const struct packed *ring_peek(struct accesslog_ring *ring)
{
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail == atomic_load_explicit(&ring->head, memory_order_acquire))
        return NULL;
    const struct packed *p = (const struct packed *)(const void *)(ring->bytes + tail % RING_BYTES);
    if (!p->is_pad)
        return p;
    /* the record at the start was published together with the pad */
    atomic_store_explicit(&ring->tail, tail + p->bytes, memory_order_release);
    return (const struct packed *)(const void *)ring->bytes;
}

static void ring_took(struct accesslog_ring *ring, const struct packed *p)
{
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    atomic_store_explicit(&ring->tail, tail + p->bytes, memory_order_release);
}

/* False when the batch is full before the ring is empty. */
static bool gather_ring(struct accesslog *log, struct accesslog_ring *ring)
{
    for (const struct packed *p; (p = ring_peek(ring)) != NULL; ring_took(ring, p)) {
        if (log->batch.length >= BATCH_BYTES)
            return false;
        struct access_record r = unpack(p);
        access_format_write(log->target->format, &r, &log->batch);
        log->batch_lines++;
    }
    return true;
}

/* True when the rings hold more than the batch took. */
static bool gather(struct accesslog *log)
{
    /* Off: a record here was written while a change was under way; it waits for the output that
     * comes. */
    if (log->target->fd < 0)
        return false;
    bool all = true;
    for (struct accesslog_ring *ring = atomic_load(&log->rings); ring != NULL; ring = ring->next)
        all &= gather_ring(log, ring);
    return !all;
}

/* ---- the writer: batch to output ------------------------------------------------------------- */

static ssize_t write_some(struct target *t, const char *bytes, size_t length)
{
    if (t->is_file)
        return write(t->fd, bytes, length);
    if (t->is_socket)
        return send(t->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    /* Standard output may be shared with others, so it is not made non-blocking: poll and a small
     * step instead. */
    struct pollfd p = { .fd = t->fd, .events = POLLOUT };
    if (poll(&p, 1, 0) <= 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(t->fd, bytes, length < PIPE_STEP ? length : PIPE_STEP);
}

static void note_output_failed(struct accesslog *log)
{
    log->retry_at_ms = clock_mono_ms() + RETRY_MS;
    if (log->last_errno == errno)
        return; /* said once, not once a second */
    log->last_errno = errno;
    log_error("the access log %s cannot be written: %s; tried again every second, lines may be "
              "lost meanwhile",
              log->target->path,
              log->last_errno == EPIPE ? "its reader has gone" : strerror(log->last_errno));
}

static void note_output_works(struct accesslog *log)
{
    if (log->last_errno != 0)
        log_info("the access log %s is being written again", log->target->path);
    log->last_errno = 0;
    log->retry_at_ms = 0;
}

static void batch_clear(struct accesslog *log)
{
    log->batch.length = log->sent = 0;
    log->batch_lines = 0;
    if (log->batch.capacity > 4 * BATCH_BYTES) /* a few monstrous lines must not be kept for ever */
        line_buffer_fini(&log->batch);
}

/* True when the batch has gone. */
static bool flush(struct accesslog *log)
{
    if (log->retry_at_ms > clock_mono_ms())
        return false;
    while (log->sent < log->batch.length) {
        ssize_t n =
            write_some(log->target, log->batch.ptr + log->sent, log->batch.length - log->sent);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                note_output_failed(log);
            return false;
        }
        log->sent += (size_t)n;
        note_output_works(log);
    }
    stat_add(&log->stats->log_written, log->batch_lines);
    batch_clear(log);
    return true;
}

/* The output is about to be replaced: a line cut by the old one begins anew in the new one. */
static void rewind_to_line(struct accesslog *log)
{
    while (log->sent > 0 && log->batch.ptr[log->sent - 1] != '\n')
        log->sent--;
    log->last_errno = 0;
    log->retry_at_ms = 0;
}

/* What was logged before now belongs to the output of before, as far as that still takes it. */
static void finish_old_output(struct accesslog *log)
{
    bool more;
    do
        more = gather(log);
    while (flush(log) && more);
    rewind_to_line(log);
}

static void reopen(struct accesslog *log)
{
    if (log->target->path == NULL)
        return;
    finish_old_output(log);
    char why[256];
    if (target_open(log->target, why))
        log_info("the access log %s was opened anew", log->target->path);
    else
        log_error("%s; the old file stays in use", why);
}

static void take_next_target(struct accesslog *log)
{
    struct target *next = atomic_exchange(&log->next_target, NULL);
    if (next == NULL)
        return;
    finish_old_output(log);
    target_free(&log->target);
    log->target = next;
    if (next->fd < 0)
        batch_clear(log);
}

/* ---- the writer: its loop -------------------------------------------------------------------- */

/* Until the output takes more, a ring is half full, somebody calls, or WAIT_MS have gone. */
static void wait_for_work(struct accesslog *log, bool output_is_stuck)
{
    bool poll_output = output_is_stuck && log->last_errno == 0 && log->target->fd >= 0;
    struct pollfd p[2] = {
        { .fd = log->wake_fd, .events = POLLIN },
        { .fd = poll_output ? log->target->fd : -1, .events = POLLOUT },
    };
    /* A stuck writer does not take the wake away, so that full rings do not wake it for nothing;
     * but for a stop. */
    bool listens = !output_is_stuck;
    if (!listens)
        p[0].fd = -1;
    if (poll(p, 2, WAIT_MS) > 0 && (p[0].revents & POLLIN) != 0) {
        uint64_t count;
        ssize_t n = read(log->wake_fd, &count, sizeof count);
        (void)n;
    }
    /* before the rings are looked at: a worker that writes later wakes anew */
    if (listens)
        atomic_store(&log->is_woken, false);
}

static void complain_about_drops(struct accesslog *log, int64_t now_ms)
{
    if (now_ms - log->dropped_told_at_ms < COMPLAIN_MS)
        return;
    int64_t sum = 0;
    for (struct accesslog_ring *ring = atomic_load(&log->rings); ring != NULL; ring = ring->next)
        sum += atomic_load_explicit(&ring->dropped, memory_order_relaxed);
    if (sum == log->dropped_told)
        return;
    log_warn("the access log %s is too slow: %lld lines were dropped",
             log->target->path == NULL ? "(off)" : log->target->path,
             (long long)(sum - log->dropped_told));
    log->dropped_told = sum;
    log->dropped_told_at_ms = now_ms;
}

/* The stop's time is up: what is left is lost, and counted. */
static void give_up(struct accesslog *log)
{
    int64_t lines = log->batch_lines;
    for (size_t i = 0; i < log->sent; i++)
        lines -= log->batch.ptr[i] == '\n';
    stat_add(&log->stats->log_written, log->batch_lines - lines);
    for (struct accesslog_ring *ring = atomic_load(&log->rings); ring != NULL; ring = ring->next)
        for (const struct packed *p; (p = ring_peek(ring)) != NULL; ring_took(ring, p))
            lines++;
    stat_add(&log->stats->log_dropped, lines);
    log_warn("the access log %s took no more: %lld lines were dropped at the end",
             log->target->path, (long long)lines);
}

static void *writer_run(void *arg)
{
    struct accesslog *log = arg;
    stats_use(log->stats);
    for (;;) {
        /* read before the rings: what was written before the stop is seen below */
        bool is_stopping = atomic_load(&log->is_stopping);
        take_next_target(log);
        if (atomic_exchange(&log->is_reopening, false))
            reopen(log);
        bool more = gather(log);
        bool has_gone = flush(log);
        int64_t now_ms = clock_mono_ms();
        complain_about_drops(log, now_ms);
        if (is_stopping && has_gone && !more)
            return NULL;
        if (is_stopping && now_ms >= atomic_load(&log->stop_at_ms)) {
            give_up(log);
            return NULL;
        }
        if (!has_gone || !more)
            wait_for_work(log, !has_gone);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

static void log_free(struct accesslog **log)
{
    struct accesslog *l = *log;
    for (struct accesslog_ring *ring = atomic_load(&l->rings), *next; ring != NULL; ring = next) {
        next = ring->next;
        free(ring);
    }
    struct target *never_used = atomic_load(&l->next_target);
    target_free(&never_used);
    target_free(&l->target);
    line_buffer_fini(&l->batch);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    free(l);
    *log = NULL;
}

/* Signals are for the main thread; SIGPIPE comes back as EPIPE. */
static bool start_thread(struct accesslog *log)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&log->thread, NULL, writer_run, log) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_setname_np(log->thread, "larder-log");
    return started;
}

struct accesslog *accesslog_start(const char *path, const char *format, char why[256])
{
    struct target *target = target_new(path, format, why);
    if (target == NULL)
        return NULL;
    struct accesslog *log = xcalloc(1, sizeof *log);
    log->target = target;
    log->is_on = path != NULL;
    log->stats = stats_new("log");
    log->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    log->dropped_told_at_ms = INT64_MIN / 2;
    if (log->wake_fd >= 0 && start_thread(log))
        return log;
    snprintf(why, 256, "cannot start the access log's thread: %s", strerror(errno));
    log_free(&log);
    return NULL;
}

/* Wakes the writer whether or not somebody did already. */
static void call(struct accesslog *log)
{
    uint64_t one = 1;
    atomic_store(&log->is_woken, true);
    ssize_t n = write(log->wake_fd, &one, sizeof one);
    (void)n;
}

bool accesslog_change(struct accesslog *log, const char *path, const char *format, char why[256])
{
    struct target *target = target_new(path, format, why);
    if (target == NULL)
        return false;
    struct target *never_used = atomic_exchange(&log->next_target, target);
    target_free(&never_used);
    atomic_store(&log->is_on, path != NULL);
    call(log);
    return true;
}

void accesslog_reopen(struct accesslog *log)
{
    atomic_store(&log->is_reopening, true);
    call(log);
}

void accesslog_stop(struct accesslog **log)
{
    struct accesslog *l = *log;
    if (l == NULL)
        return;
    atomic_store(&l->stop_at_ms, clock_mono_ms() + STOP_MS);
    atomic_store(&l->is_stopping, true);
    call(l);
    /* A write that the kernel does not return from (a dead network disk) must not hold the exit:
     * leave it behind. */
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2 * STOP_MS / 1000;
    if (pthread_timedjoin_np(l->thread, NULL, &until) != 0) {
        log_warn("the access log %s does not answer; its last lines are lost", l->target->path);
        pthread_detach(l->thread);
        *log = NULL;
        return;
    }
    log_free(log);
}
