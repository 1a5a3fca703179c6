/* admin/stats_json.c: GET /stats: all figures as one JSON object; `larder stat` reads it. Members
 * are added, never renamed. */
#include "admin/admin_internal.h"

#include <stdio.h>
#include <unistd.h>

static void set_number(json_t *to, const char *name, int64_t value)
{
    json_object_set_new(to, name, json_integer(value));
}

/* Text that comes from the configuration or a server may not be UTF-8: JSON has no place for it. */
static void set_text(json_t *to, const char *name, const char *text)
{
    json_t *s = json_string(text);
    json_object_set_new(to, name, s != NULL ? s : json_string("?"));
}

/* Null while there is nothing to divide by. */
static void set_share(json_t *to, const char *name, double share)
{
    json_object_set_new(to, name, share < 0 ? json_null() : json_real(share));
}

static json_t *requests_of(const struct admin_figures *f)
{
    json_t *outcomes = json_object(), *reasons = json_object(), *classes = json_object(),
           *all = json_object();
    for (unsigned i = 0; i < OUTCOME_COUNT; i++)
        set_number(outcomes, outcome_word(i), f->sum.outcome[i]);
    for (unsigned i = 0; i < REASON_COUNT; i++)
        set_number(reasons, reason_word(i), f->sum.reason[i]);
    for (unsigned i = 1; i < STATUS_CLASSES; i++) {
        char name[4] = { (char)('0' + i), 'x', 'x', '\0' };
        set_number(classes, name, f->sum.status_class[i]);
    }
    set_number(all, "total", f->sum.exchanges);
    set_number(all, "live", f->sum.exchanges_live);
    json_object_set_new(all, "by_outcome", outcomes);
    json_object_set_new(all, "by_reason", reasons);
    json_object_set_new(all, "by_status", classes);
    return all;
}

static json_t *malformed_of(const struct admin_context *c, const struct admin_figures *f)
{
    json_t *causes = json_object();
    for (unsigned i = 0; i < STATS_CAUSES; i++) {
        const char *word = c->hooks.h1_cause_word(i);
        if (word == NULL)
            break;
        set_number(causes, word, f->sum.h1_cause[i]);
    }
    return causes;
}

static json_t *unstored_of(const struct admin_figures *f)
{
    json_t *why = json_object();
    for (enum storable s = STORABLE_YES + 1; s < STORABLE_COUNT; s++)
        set_number(why, storable_word(s), f->sum.unstored[s]);
    return why;
}

static json_t *memory_of(const struct admin_figures *f)
{
    json_t *memory = json_object();
    set_number(memory, "budget_bytes", (int64_t)f->cache.budget_bytes);
    set_number(memory, "used_bytes", (int64_t)f->cache.used_bytes);
    for (size_t i = 0; i < admin_memory_kind_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_bytes", admin_memory_kinds[i].name);
        set_number(memory, name, (int64_t)admin_memory_of(f, &admin_memory_kinds[i]));
    }
    set_number(memory, "rss_bytes", (int64_t)f->rss_bytes);
    return memory;
}

static json_t *cache_of(const struct admin_figures *f)
{
    json_t *cache = json_object();
    set_number(cache, "objects", (int64_t)f->cache.objects);
    set_number(cache, "variants", (int64_t)f->cache.variants);
    set_number(cache, "tags", (int64_t)f->cache.tags);
    set_number(cache, "evicted", (int64_t)f->cache.evicted);
    set_number(cache, "evicted_bytes", (int64_t)f->cache.evicted_bytes);
    set_number(cache, "uncacheable_known", (int64_t)f->cache.uncacheable_known);
    set_number(cache, "variant_cap_hits", (int64_t)f->cache.variant_cap_hits);
    json_object_set_new(cache, "memory", memory_of(f));
    return cache;
}

static json_t *fills_of(const struct stats_sum *s)
{
    json_t *fills = json_object();
    set_number(fills, "live", s->fills_live);
    set_number(fills, "followers", s->followers_live);
    set_number(fills, "started", s->fill_started);
    set_number(fills, "joined", s->fill_joined);
    set_number(fills, "stored", s->fill_stored);
    set_number(fills, "released", s->fill_released);
    set_number(fills, "failed", s->fill_failed);
    set_number(fills, "too_big", s->fill_too_big);
    return fills;
}

static json_t *connections_of(const struct stats_sum *s)
{
    json_t *connections = json_object();
    set_number(connections, "open", s->client_open);
    set_number(connections, "idle", s->client_idle);
    set_number(connections, "active",
               s->client_open > s->client_idle ? s->client_open - s->client_idle : 0);
    set_number(connections, "accepted", s->client_accepted);
    set_number(connections, "origin_open", s->origin_open);
    set_number(connections, "origin_idle", s->origin_idle);
    return connections;
}

static void set_mean_ms(json_t *to, uint64_t us, uint64_t count)
{
    json_object_set_new(to, "head_mean_ms",
                        count == 0 ? json_null() : json_real((double)us / (double)count / 1000.0));
}

static json_t *server_of(const struct admin_server_state *s)
{
    json_t *server = json_object();
    set_text(server, "server", s->server);
    set_text(server, "state", s->state);
    set_text(server, "why", s->why);
    set_number(server, "requests", (int64_t)s->requests);
    set_number(server, "faults", (int64_t)s->faults);
    set_number(server, "open", (int64_t)s->open);
    set_number(server, "idle", (int64_t)s->idle);
    set_mean_ms(server, s->head_us_sum, s->head_count);
    json_object_set_new(server, "last_fault",
                        s->last_fault_wall_s == 0 ? json_null()
                                                  : json_integer(s->last_fault_wall_s));
    return server;
}

/* The servers of one origin come one after the other. */
static json_t *origins_of(const struct admin_figures *f)
{
    json_t *origins = json_array();
    for (size_t i = 0; i < f->server_count;) {
        const struct admin_server_state *first = &f->servers[i];
        json_t *origin = json_object(), *servers = json_array();
        uint64_t requests = 0, faults = 0, us = 0, count = 0;
        for (; i < f->server_count && strcmp(f->servers[i].origin, first->origin) == 0; i++) {
            const struct admin_server_state *s = &f->servers[i];
            requests += s->requests;
            faults += s->faults;
            us += s->head_us_sum;
            count += s->head_count;
            json_array_append_new(servers, server_of(s));
        }
        set_text(origin, "origin", first->origin);
        set_number(origin, "requests", (int64_t)requests);
        set_number(origin, "faults", (int64_t)faults);
        set_mean_ms(origin, us, count);
        json_object_set_new(origin, "servers", servers);
        json_array_append_new(origins, origin);
    }
    return origins;
}

static json_t *counters_of_sum(const struct admin_figures *f)
{
    json_t *counters = json_object();
    for (size_t i = 0; i < stat_row_count; i++)
        set_number(counters, stat_rows[i].name, admin_figure(f, &stat_rows[i]));
    return counters;
}

static json_t *worker_of(const struct stats *s)
{
    json_t *worker = json_object(), *outcomes = json_object();
    set_text(worker, "worker", s->thread);
    for (unsigned i = 0; i < OUTCOME_COUNT; i++)
        set_number(outcomes, outcome_word(i),
                   atomic_load_explicit(&s->outcome[i], memory_order_relaxed));
    json_object_set_new(worker, "by_outcome", outcomes);
    /* as each worker counts them: one may close what another opened, so a gauge can be below zero
     * here */
#define X(name, kind, unit, help)                                                                  \
    set_number(worker, #name, atomic_load_explicit(&s->name, memory_order_relaxed));
    STATS(X)
#undef X
    return worker;
}

static json_t *workers_of(void)
{
    json_t *workers = json_array();
    for (const struct stats *s = stats_first(); s != NULL;
         s = __atomic_load_n(&s->next, __ATOMIC_ACQUIRE))
        if (slice_has_prefix(slice_of(s->thread), SLICE("worker")))
            json_array_append_new(workers, worker_of(s));
    return workers;
}

void admin_stats_json(const struct admin_context *c, struct evhttp_request *req)
{
    struct admin_figures f;
    admin_figures_read(c, &f);
    json_t *all = json_object(), *ratio = json_object(), *latency = json_object();
    set_text(all, "version", LARDER_VERSION);
    set_number(all, "pid", getpid());
    set_number(all, "time", f.now_wall_s);
    set_number(all, "started", f.started_wall_s);
    set_number(all, "uptime_s", f.uptime_s);
    set_number(all, "generation", (int64_t)f.generation);
    set_number(all, "worker_count", f.worker_count);
    json_object_set_new(all, "requests", requests_of(&f));
    set_share(ratio, "requests", f.hit_ratio_requests);
    set_share(ratio, "bytes", f.hit_ratio_bytes);
    json_object_set_new(all, "hit_ratio", ratio);
    json_object_set_new(all, "cache", cache_of(&f));
    json_object_set_new(all, "fills", fills_of(&f.sum));
    json_object_set_new(all, "connections", connections_of(&f.sum));
    json_object_set_new(all, "malformed", malformed_of(c, &f));
    json_object_set_new(all, "unstored", unstored_of(&f));
    uint64_t us = 0, count = 0;
    for (size_t i = 0; i < f.server_count; i++) {
        us += f.servers[i].head_us_sum;
        count += f.servers[i].head_count;
    }
    set_mean_ms(latency, us, count);
    json_object_set_new(all, "origin_latency", latency);
    json_object_set_new(all, "origins", origins_of(&f));
    json_object_set_new(all, "counters", counters_of_sum(&f));
    json_object_set_new(all, "workers", workers_of());
    admin_figures_fini(&f);
    admin_reply_json(req, 200, all);
}
