/* admin/metrics.c: GET /metrics: the same figures in Prometheus's text format 0.0.4.
 *
 * Counters end in _total, times are in seconds, all samples of one name stand together under its
 * HELP and TYPE. The names come from the tables of base/stats.h and base/verdict.h; so a counter
 * that is added there appears here by itself.
 */
#include "admin/admin_internal.h"

#include <stdio.h>

static const char content_type[] = "text/plain; version=0.0.4; charset=utf-8";

static void add(struct evbuffer *out, const char *text)
{
    evbuffer_add(out, text, strlen(text));
}

static void begin(struct evbuffer *out, const char *name, const char *type, const char *help)
{
    evbuffer_add_printf(out, "# HELP larder_%s %s\n# TYPE larder_%s %s\n", name, help, name, type);
}

static void add_label(struct evbuffer *out, char before, const char *name, const char *value)
{
    evbuffer_add_printf(out, "%c%s=\"", before, name);
    for (; *value != '\0'; value++) {
        if (*value == '\n')
            add(out, "\\n");
        else if (*value == '"' || *value == '\\')
            evbuffer_add_printf(out, "\\%c", *value);
        else
            evbuffer_add(out, value, 1);
    }
    add(out, "\"");
}

static void add_plain(struct evbuffer *out, const char *name, const char *type, const char *help,
                      double value)
{
    begin(out, name, type, help);
    evbuffer_add_printf(out, "larder_%s %.15g\n", name, value);
}

static void add_labelled(struct evbuffer *out, const char *name, const char *label,
                         const char *word, int64_t value)
{
    evbuffer_add_printf(out, "larder_%s", name);
    add_label(out, '{', label, word);
    evbuffer_add_printf(out, "} %lld\n", (long long)value);
}

/* ---- the table of counters ------------------------------------------------------------------- */

/* "origin_head_us" is "origin_head_seconds_total": Prometheus wants base units, and the unit in the
 * name. */
static void add_row(struct evbuffer *out, const struct admin_figures *f, const struct stat_row *row)
{
    bool is_time = row->unit == STAT_MICROSECONDS, is_counter = row->kind == STAT_COUNTER;
    struct slice stem = slice_of(row->name);
    if (is_time && slice_has_suffix(stem, SLICE("_us")))
        stem.len -= 3;
    char name[96];
    snprintf(name, sizeof name, SLICE_FMT "%s%s", SLICE_ARG(stem), is_time ? "_seconds" : "",
             is_counter ? "_total" : "");
    int64_t value = admin_figure(f, row);
    if (is_time)
        add_plain(out, name, is_counter ? "counter" : "gauge", row->help, (double)value / 1e6);
    else {
        begin(out, name, is_counter ? "counter" : "gauge", row->help);
        evbuffer_add_printf(out, "larder_%s %lld\n", name, (long long)value);
    }
}

static void add_verdicts(struct evbuffer *out, const struct admin_figures *f)
{
    begin(out, "requests_total", "counter", "Requests by how they ended; each is counted once.");
    for (unsigned i = 0; i < OUTCOME_COUNT; i++)
        add_labelled(out, "requests_total", "outcome", outcome_word(i), f->sum.outcome[i]);
    begin(out, "request_reasons_total", "counter",
          "Requests by the reason for their outcome; each is counted once.");
    for (unsigned i = 0; i < REASON_COUNT; i++)
        add_labelled(out, "request_reasons_total", "reason", reason_word(i), f->sum.reason[i]);
    begin(out, "responses_total", "counter", "Responses to clients by class of status.");
    for (unsigned i = 1; i < STATUS_CLASSES; i++) {
        char word[4] = { (char)('0' + i), 'x', 'x', '\0' };
        add_labelled(out, "responses_total", "status", word, f->sum.status_class[i]);
    }
}

static void add_causes(struct evbuffer *out, const struct admin_context *c,
                       const struct admin_figures *f)
{
    const char *word;
    begin(out, "malformed_requests_total", "counter",
          "Requests refused by the HTTP/1 reader, by cause.");
    for (unsigned i = 0; i < STATS_CAUSES && (word = c->hooks.h1_cause_word(i)) != NULL; i++)
        add_labelled(out, "malformed_requests_total", "cause", word, f->sum.h1_cause[i]);
}

static void add_unstored(struct evbuffer *out, const struct admin_figures *f)
{
    begin(out, "unstored_total", "counter", "Answers of origins that were not stored, by why.");
    for (enum storable s = STORABLE_YES + 1; s < STORABLE_COUNT; s++)
        add_labelled(out, "unstored_total", "why", storable_word(s), f->sum.unstored[s]);
}

/* ---- the store ------------------------------------------------------------------------------- */

static void add_cache(struct evbuffer *out, const struct admin_figures *f)
{
    const struct cache_usage *u = &f->cache;
    const struct {
        const char *name, *type, *help;
        uint64_t value;
    } rows[] = {
        { "cache_objects", "gauge", "Objects stored.", u->objects },
        { "cache_tags", "gauge", "Different tags that stored objects have.", u->tags },
        { "cache_variants", "gauge",
          "Stored objects that Vary tells apart from others of their key.", u->variants },
        { "cache_budget_bytes", "gauge", "cache.memory.", u->budget_bytes },
        { "cache_used_bytes", "gauge", "What of cache.memory is used.", u->used_bytes },
        { "cache_uncacheable_keys", "gauge", "Keys remembered as uncacheable.",
          u->uncacheable_known },
        { "cache_evicted_total", "counter", "Objects that made room for others.", u->evicted },
        { "cache_evicted_bytes_total", "counter", "Bytes of objects that made room for others.",
          u->evicted_bytes },
        { "cache_variant_cap_hits_total", "counter", "Variants not stored: cache.max_variants.",
          u->variant_cap_hits },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        add_plain(out, rows[i].name, rows[i].type, rows[i].help, (double)rows[i].value);
    begin(out, "cache_memory_bytes", "gauge", "What the used bytes of cache.memory hold.");
    for (size_t i = 0; i < admin_memory_kind_count; i++)
        add_labelled(out, "cache_memory_bytes", "kind", admin_memory_kinds[i].name,
                     (int64_t)admin_memory_of(f, &admin_memory_kinds[i]));
}

/* ---- servers --------------------------------------------------------------------------------- */

static void add_server_sample(struct evbuffer *out, const char *name,
                              const struct admin_server_state *s, double value)
{
    evbuffer_add_printf(out, "larder_%s", name);
    add_label(out, '{', "origin", s->origin);
    add_label(out, ',', "server", s->server);
    evbuffer_add_printf(out, "} %.15g\n", value);
}

static double is_up(const struct admin_server_state *s)
{
    return admin_server_is_up(s);
}
static double requests(const struct admin_server_state *s)
{
    return (double)s->requests;
}
static double faults(const struct admin_server_state *s)
{
    return (double)s->faults;
}
static double open_now(const struct admin_server_state *s)
{
    return (double)s->open;
}
static double idle_now(const struct admin_server_state *s)
{
    return (double)s->idle;
}

static void add_servers(struct evbuffer *out, const struct admin_figures *f)
{
    static const struct {
        const char *name, *type, *help;
        double (*value)(const struct admin_server_state *s);
    } rows[] = {
        { "server_up", "gauge", "1 while the server is asked, 0 while it is left out.", is_up },
        { "server_requests_total", "counter", "Requests sent to the server.", requests },
        { "server_faults_total", "counter", "Requests to the server that failed.", faults },
        { "server_connections_open", "gauge", "Connections open to the server.", open_now },
        { "server_connections_idle", "gauge",
          "Connections to the server that wait to be used again.", idle_now },
    };
    if (f->server_count == 0)
        return;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        begin(out, rows[i].name, rows[i].type, rows[i].help);
        for (size_t s = 0; s < f->server_count; s++)
            add_server_sample(out, rows[i].name, &f->servers[s], rows[i].value(&f->servers[s]));
    }
    begin(out, "server_head_seconds", "summary",
          "Time from sending a request to the head of the answer.");
    for (size_t s = 0; s < f->server_count; s++) {
        add_server_sample(out, "server_head_seconds_sum", &f->servers[s],
                          (double)f->servers[s].head_us_sum / 1e6);
        add_server_sample(out, "server_head_seconds_count", &f->servers[s],
                          (double)f->servers[s].head_count);
    }
}

static void add_process(struct evbuffer *out, const struct admin_figures *f)
{
    begin(out, "build_info", "gauge", "Always 1; the version is in the label.");
    add_labelled(out, "build_info", "version", LARDER_VERSION, 1);
    add_plain(out, "config_generation", "gauge", "How often a configuration was put in force.",
              (double)f->generation);
    add_plain(out, "workers", "gauge", "Worker threads.", f->worker_count);
    /* the names that every Prometheus client library uses */
    evbuffer_add_printf(
        out,
        "# HELP process_resident_memory_bytes Resident memory size in bytes.\n"
        "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes %llu\n",
        (unsigned long long)f->rss_bytes);
    evbuffer_add_printf(
        out,
        "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.\n"
        "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %lld\n",
        (long long)f->started_wall_s);
}

void admin_metrics(const struct admin_context *c, struct evhttp_request *req)
{
    struct admin_figures f;
    admin_figures_read(c, &f);
    struct evbuffer *out = evbuffer_new();
    add_verdicts(out, &f);
    for (size_t i = 0; i < stat_row_count; i++)
        add_row(out, &f, &stat_rows[i]);
    add_causes(out, c, &f);
    add_unstored(out, &f);
    add_cache(out, &f);
    add_servers(out, &f);
    add_process(out, &f);
    admin_figures_fini(&f);
    admin_reply(req, 200, content_type, out);
}
