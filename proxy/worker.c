/* proxy/worker.c: see worker.h. */
#include "proxy/worker.h"

#include "base/clock.h"
#include "base/dates.h"
#include "base/log.h"
#include "proxy/conn.h"
#include "proxy/exchange.h"
#include "proxy/fetch.h"
#include "proxy/listener.h"

#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORKER_MAGIC = 0x4b524f57, SPARE_MAX = 256 };

/* ---- snapshots
 * ---------------------------------------------------------------------------------------------------
 */

/* As config_parse_network() has let them through. */
static struct network *read_networks(char *const *texts, size_t text_count, size_t *count)
{
    struct network *list = xcalloc(text_count, sizeof *list);
    *count = 0;
    for (size_t i = 0; i < text_count; i++)
        if (network_parse(texts[i], &list[*count]))
            (*count)++;
        else
            log_warn("%s is not a network; left out", texts[i]);
    return list;
}

struct shared_snapshot *shared_snapshot_new(struct config *config, struct origins *previous)
{
    struct shared_snapshot *s = xcalloc(1, sizeof *s);
    s->refs = 1;
    s->config = config;
    s->origins = origins_new(config, previous);
    s->trusted = read_networks(config->trusted, config->trusted_count, &s->trusted_count);
    s->purge_from = read_networks(config->purge_from, config->purge_from_count, &s->purge_from_count);
    s->client_limits = (struct h1_limits){ .head_bytes = config->head_max_bytes,
                                           .target_bytes = config->target_max_bytes,
                                           .field_count = (uint16_t)config->field_max_count };
    /* origins are trusted a little further than clients */
    s->origin_limits = (struct h1_limits){ .head_bytes = 128 << 10,
                                           .target_bytes = 0,
                                           .field_count = HEADERS_MAX };
    return s;
}

struct shared_snapshot *shared_snapshot_ref(struct shared_snapshot *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void shared_snapshot_unref(struct shared_snapshot **at)
{
    struct shared_snapshot *s = *at;
    *at = NULL;
    if (s == NULL || atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    origins_free(&s->origins);
    config_unref(&s->config);
    free(s->trusted);
    free(s->purge_from);
    free(s);
}

static struct snapshot *snapshot_new(struct shared_snapshot *shared)
{
    struct snapshot *s = xcalloc(1, sizeof *s);
    s->shared = shared_snapshot_ref(shared);
    s->config = shared->config;
    s->users = 1;
    return s;
}

struct snapshot *snapshot_ref(struct snapshot *s)
{
    s->users++;
    return s;
}

void snapshot_unref(struct snapshot **at)
{
    struct snapshot *s = *at;
    *at = NULL;
    if (s == NULL || --s->users > 0)
        return;
    shared_snapshot_unref(&s->shared);
    free(s);
}

/* ---- life
 * --------------------------------------------------------------------------------------------------------
 */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct worker *w = arg;
    int64_t now = clock_mono_ms();
    wheel_turn(&w->wheel, now);
    origin_pool_tick(w->pool, now);
    listener_tick(w);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    conn_run_again(arg);
}

struct worker *worker_new(unsigned index, struct house *house, struct shared_snapshot *shared,
                          struct listener *listeners)
{
    char name[32];
    struct worker *w = xcalloc(1, sizeof *w);
    w->magic = WORKER_MAGIC;
    w->index = index;
    w->house = house;
    snprintf(name, sizeof name, "worker %u", index);
    w->stats = stats_new(name);

    struct event_config *options = event_config_new();
    CHECK(options != NULL);
    event_config_require_features(options, EV_FEATURE_ET);
    /* PRECISE_TIMER would add a timerfd call per turn; one cached clock per turn is enough for a
     * 100 ms wheel. */
    event_config_set_flag(options,
                          EVENT_BASE_FLAG_NOLOCK); /* other threads only post to the mailbox */
    w->base = event_base_new_with_config(options);
    event_config_free(options);
    CHECK(w->base != NULL);

    w->mailbox = mailbox_new(w->base);
    w->pool = origin_pool_new(w->base);
    w->snapshot = snapshot_new(shared);
    w->log = accesslog_ring(house->log);
    w->again_last = &w->again_first;
    w->listeners = listeners;
    w->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    wheel_init(&w->wheel, clock_mono_ms());
    w->tick = event_new(w->base, -1, EV_PERSIST, on_tick, w);
    w->again = event_new(w->base, -1, 0, on_again, w);
    CHECK(w->tick != NULL && w->again != NULL);
    struct timeval step = { .tv_usec = WHEEL_STEP_MS * 1000 };
    CHECK(event_add(w->tick, &step) == 0);
    return w;
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    char name[16];
    snprintf(name, sizeof name, "worker-%u", w->index);
    pthread_setname_np(pthread_self(), name);
    stats_use(w->stats);
    cache_thread_register();
    listener_open(w);
    event_base_loop(w->base, EVLOOP_NO_EXIT_ON_EMPTY);
    /* past the drain's bound: what is left is cut */
    while (w->conns != NULL)
        conn_cut(w->conns);
    fetch_end_all(w);
    origin_pool_close_idle(w->pool);
    mailbox_run(w->mailbox);
    cache_thread_unregister();
    return NULL;
}

void worker_start(struct worker *w)
{
    CHECK(pthread_create(&w->thread, NULL, worker_main, w) == 0);
}

void worker_join(struct worker **at)
{
    struct worker *w = *at;
    *at = NULL;
    pthread_join(w->thread, NULL);
    listener_close(w);
    origin_pool_free(&w->pool);
    mailbox_free(&w->mailbox);
    snapshot_unref(&w->snapshot);
    event_free(w->tick);
    event_free(w->again);
    event_base_free(w->base);
    exchange_free_spare(w);
    if (w->reserve_fd >= 0)
        close(w->reserve_fd);
    free(w);
}

/* ---- messages from other threads ------------------------------------------------------------- */

struct message {
    struct post post;
    struct worker *worker;
    struct shared_snapshot *shared;
    int64_t until_ms;
};

static void on_publish(struct post *post)
{
    struct message *m = CONTAINER_OF(post, struct message, post);
    snapshot_unref(&m->worker->snapshot);
    m->worker->snapshot = snapshot_new(m->shared);
    shared_snapshot_unref(&m->shared);
    free(m);
}

void worker_publish(struct worker *w, struct shared_snapshot *shared)
{
    struct message *m = xcalloc(1, sizeof *m);
    m->post.run = on_publish;
    m->worker = w;
    m->shared = shared_snapshot_ref(shared);
    mailbox_post(w->mailbox, &m->post);
}

static void on_drain(struct post *post)
{
    struct message *m = CONTAINER_OF(post, struct message, post);
    struct worker *w = m->worker;
    w->is_draining = true;
    listener_close(w);
    conn_drain_all(w);
    int64_t left = m->until_ms - clock_mono_ms();
    struct timeval bound = { .tv_sec = left > 0 ? left / 1000 : 0,
                             .tv_usec = left > 0 ? left % 1000 * 1000 : 0 };
    event_base_loopexit(w->base, &bound);
    free(m);
    worker_check_drained(w);
}

void worker_drain(struct worker *w, int64_t until_ms)
{
    struct message *m = xcalloc(1, sizeof *m);
    m->post.run = on_drain;
    m->worker = w;
    m->until_ms = until_ms;
    mailbox_post(w->mailbox, &m->post);
}

void worker_check_drained(struct worker *w)
{
    if (w->is_draining && w->conn_count == 0 && w->fetch_count == 0)
        event_base_loopbreak(w->base);
}

/* ---- small services -------------------------------------------------------------------------- */

void worker_again(struct worker *w, struct conn *c)
{
    if (c->again_prev != NULL)
        return;
    if (w->again_first == NULL) {
        struct timeval soon = { 0 };
        event_add(w->again, &soon);
    }
    c->again_next = NULL;
    c->again_prev = w->again_last;
    *w->again_last = c;
    w->again_last = &c->again_next;
}

struct slice worker_date(struct worker *w)
{
    int64_t now = clock_wall_s();
    if (now != w->date_s) {
        w->date_s = now;
        date_format(now, w->date);
    }
    return (struct slice){ w->date, DATE_LENGTH };
}
