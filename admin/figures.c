/* admin/figures.c: one reading of all counters, for the three pages that show them. Stops nobody:
 * it reads. */
#include "admin/admin_internal.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const struct admin_memory_kind admin_memory_kinds[] = {
    { "body_memory", "Bodies in ordinary memory.",
      offsetof(struct cache_usage, body_memory_bytes) },
    { "body_file", "Bodies in memory files, sent without a copy.",
      offsetof(struct cache_usage, body_file_bytes) },
    { "head", "Stored heads.", offsetof(struct cache_usage, head_bytes) },
    { "index", "Keys and the table of objects.", offsetof(struct cache_usage, index_bytes) },
    { "filling", "Bodies that are still arriving.", offsetof(struct cache_usage, filling_bytes) },
    { "other", "All else that counts against cache.memory.",
      offsetof(struct cache_usage, other_bytes) },
};
const size_t admin_memory_kind_count = ARRAY_COUNT(admin_memory_kinds);

uint64_t admin_memory_of(const struct admin_figures *f, const struct admin_memory_kind *kind)
{
    return *(const uint64_t *)(const void *)((const char *)&f->cache + kind->offset);
}

bool admin_server_is_up(const struct admin_server_state *s)
{
    return strcmp(s->state, "up") == 0 || strcmp(s->state, "directory") == 0;
}

int64_t admin_figure(const struct admin_figures *f, const struct stat_row *row)
{
    return *(const int64_t *)(const void *)((const char *)&f->sum + row->offset);
}

static uint64_t rss_bytes(void)
{
    unsigned long long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (statm == NULL)
        return 0;
    if (fscanf(statm, "%*u %llu", &pages) != 1)
        pages = 0;
    fclose(statm);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The threads are read one after the other, so what one opened and another closed may look like
 * less than nothing for a moment. */
static void lift_gauges(struct stats_sum *sum)
{
    for (size_t i = 0; i < stat_row_count; i++) {
        int64_t *value = (int64_t *)(void *)((char *)sum + stat_rows[i].offset);
        if (stat_rows[i].kind == STAT_GAUGE && *value < 0)
            *value = 0;
    }
}

static void add_server(void *to, const struct admin_server_state *s)
{
    struct admin_figures *f = to;
    f->servers = xrealloc(f->servers, (f->server_count + 1) * sizeof *f->servers);
    struct admin_server_state *copy = &f->servers[f->server_count++];
    *copy = *s;
    copy->origin = xstrdup(s->origin);
    copy->server = xstrdup(s->server);
    copy->state = xstrdup(s->state);
    copy->why = xstrdup(s->why == NULL ? "" : s->why);
}

static double share(int64_t part, int64_t whole)
{
    if (whole <= 0)
        return -1;
    return part <= 0 ? 0 : part >= whole ? 1 : (double)part / (double)whole;
}

static void set_ratios(struct admin_figures *f)
{
    const int64_t *o = f->sum.outcome;
    int64_t stored = o[OUTCOME_HIT] + o[OUTCOME_REVALIDATED] + o[OUTCOME_STALE];
    int64_t fetched = o[OUTCOME_MISS] + o[OUTCOME_COLLAPSED] + o[OUTCOME_PASS] + o[OUTCOME_FAULT];
    f->hit_ratio_requests = share(stored, stored + fetched);
    f->hit_ratio_bytes = share(f->sum.hit_sent_bytes, f->sum.body_sent_bytes);
}

static uint64_t generation_of(const struct admin_hooks *hooks)
{
    struct config *config = hooks->config(hooks->arg);
    uint64_t generation = config == NULL ? 0 : config->generation;
    if (config != NULL)
        config_unref(&config);
    return generation;
}

void admin_figures_read(const struct admin_context *c, struct admin_figures *f)
{
    *f = (struct admin_figures){ .worker_count = c->hooks.worker_count,
                                 .started_wall_s = c->hooks.started_wall_s };
    stats_sum_all(&f->sum);
    lift_gauges(&f->sum);
    if (c->hooks.cache != NULL)
        cache_usage_read(c->hooks.cache, &f->cache);
    f->rss_bytes = rss_bytes();
    f->now_wall_s = clock_wall_s();
    f->uptime_s = f->now_wall_s > f->started_wall_s ? f->now_wall_s - f->started_wall_s : 0;
    f->generation = generation_of(&c->hooks);
    c->hooks.servers(c->hooks.arg, add_server, f);
    set_ratios(f);
}

void admin_figures_fini(struct admin_figures *f)
{
    for (size_t i = 0; i < f->server_count; i++) {
        free((char *)f->servers[i].origin);
        free((char *)f->servers[i].server);
        free((char *)f->servers[i].state);
        free((char *)f->servers[i].why);
    }
    free(f->servers);
    *f = (struct admin_figures){ 0 };
}
