/* admin/status.c: GET /: the status page: the main figures in plain HTML, without scripts.
 * ?refresh=N reloads it every N seconds. */
#include "admin/admin_internal.h"

#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char style[] = "body{font:15px/1.45 system-ui,sans-serif;margin:1.5em "
                            "auto;max-width:62em;padding:0 1em;color:#222;background:#fff}"
                            "h1{font-size:1.4em;margin:0}h2{font-size:1.05em;margin:1.6em 0 "
                            ".3em}p{margin:.3em 0;color:#555}"
                            "table{border-collapse:collapse}th,td{padding:.18em .9em .18em "
                            "0;text-align:left;vertical-align:top}"
                            "th{font-weight:600;border-bottom:1px solid "
                            "#ccc}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
                            "td.h{color:#666}.bad{color:#b00020;font-weight:600}"
                            "@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}"
                            "p,td.h{color:#999}a{color:#8ab4f8}.bad{color:#ff6b6b}}";

static void add_escaped(struct evbuffer *out, const char *text)
{
    char *safe = evhttp_htmlescape(text);
    CHECK(safe != NULL);
    evbuffer_add(out, safe, strlen(safe));
    free(safe);
}

/* "1,234,567": a person has to read it. */
static void add_count(struct evbuffer *out, int64_t n)
{
    char digits[32], text[48];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && digits[i - 1] != '-' && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    evbuffer_add(out, text, (size_t)at);
}

static void add_bytes(struct evbuffer *out, uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < ARRAY_COUNT(units); unit++)
        value /= 1024;
    evbuffer_add_printf(out, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

static void add_share(struct evbuffer *out, double share)
{
    if (share < 0)
        evbuffer_add_printf(out, "–");
    else
        evbuffer_add_printf(out, "%.1f %%", share * 100);
}

static void row_begin(struct evbuffer *out, const char *name)
{
    evbuffer_add_printf(out, "<tr><td>%s</td><td class=n>", name);
}

static void row_end(struct evbuffer *out, const char *help)
{
    evbuffer_add_printf(out, "</td><td class=h>");
    add_escaped(out, help);
    evbuffer_add_printf(out, "</td></tr>\n");
}

static void count_row(struct evbuffer *out, const char *name, int64_t n, const char *help)
{
    row_begin(out, name);
    add_count(out, n);
    row_end(out, help);
}

static void bytes_row(struct evbuffer *out, const char *name, uint64_t bytes, const char *help)
{
    row_begin(out, name);
    add_bytes(out, bytes);
    row_end(out, help);
}

static void share_row(struct evbuffer *out, const char *name, double share, const char *help)
{
    row_begin(out, name);
    add_share(out, share);
    row_end(out, help);
}

static void table(struct evbuffer *out, const char *title)
{
    evbuffer_add_printf(out, "<h2>%s</h2>\n<table>\n", title);
}

static void add_requests(struct evbuffer *out, const struct admin_figures *f)
{
    table(out, "Requests");
    count_row(out, "total", f->sum.exchanges, "");
    share_row(out, "hit ratio", f->hit_ratio_requests,
              "of the requests that had an answer to give, those answered from the store");
    share_row(out, "hit ratio, bytes", f->hit_ratio_bytes, "the same of the body bytes");
    for (unsigned i = 0; i < OUTCOME_COUNT; i++)
        count_row(out, outcome_word(i), f->sum.outcome[i], outcome_help(i));
    evbuffer_add_printf(out, "</table>\n");
    table(out, "Why");
    for (unsigned i = 0; i < REASON_COUNT; i++)
        if (f->sum.reason[i] != 0)
            count_row(out, reason_word(i), f->sum.reason[i], reason_text(i));
    evbuffer_add_printf(out, "</table>\n");
}

static void add_memory(struct evbuffer *out, const struct admin_figures *f)
{
    table(out, "Store");
    count_row(out, "objects", (int64_t)f->cache.objects, "");
    count_row(out, "evicted", (int64_t)f->cache.evicted, "objects that made room for others");
    bytes_row(out, "used", f->cache.used_bytes, "");
    bytes_row(out, "cache.memory", f->cache.budget_bytes, "");
    for (size_t i = 0; i < admin_memory_kind_count; i++)
        bytes_row(out, admin_memory_kinds[i].name, admin_memory_of(f, &admin_memory_kinds[i]),
                  admin_memory_kinds[i].help);
    bytes_row(out, "RSS", f->rss_bytes, "this process's resident memory, all of it");
    evbuffer_add_printf(out, "</table>\n");
    table(out, "Now");
    count_row(out, "clients", f->sum.client_open, "connections open");
    count_row(out, "idle clients", f->sum.client_idle, "of them, waiting for a request");
    count_row(out, "requests", f->sum.exchanges_live, "being worked on");
    count_row(out, "fills", f->sum.fills_live, "fetches that make an object");
    count_row(out, "followers", f->sum.followers_live, "requests that follow another's fill");
    evbuffer_add_printf(out, "</table>\n");
}

static void add_origins(struct evbuffer *out, const struct admin_figures *f)
{
    table(out, "Origins");
    evbuffer_add_printf(out, "<tr><th>origin</th><th>server</th><th>state</th><th "
                             "class=n>requests</th><th class=n>faults</th>"
                             "<th class=n>open</th><th class=n>idle</th><th class=n>head, "
                             "mean</th><th>last fault</th></tr>\n");
    for (size_t i = 0; i < f->server_count; i++) {
        const struct admin_server_state *s = &f->servers[i];
        evbuffer_add_printf(out, "<tr><td>");
        add_escaped(out, s->origin);
        evbuffer_add_printf(out, "</td><td>");
        add_escaped(out, s->server);
        evbuffer_add_printf(out, "</td><td%s>", admin_server_is_up(s) ? "" : " class=bad");
        add_escaped(out, s->state);
        evbuffer_add_printf(out, "</td><td class=n>");
        add_count(out, (int64_t)s->requests);
        evbuffer_add_printf(out, "</td><td class=n>");
        add_count(out, (int64_t)s->faults);
        evbuffer_add_printf(out, "</td><td class=n>%llu</td><td class=n>%llu</td><td class=n>",
                            (unsigned long long)s->open, (unsigned long long)s->idle);
        if (s->head_count > 0)
            evbuffer_add_printf(out, "%.2f ms",
                                (double)s->head_us_sum / (double)s->head_count / 1000);
        evbuffer_add_printf(out, "</td><td class=h>");
        if (s->last_fault_wall_s != 0)
            evbuffer_add_printf(out,
                                "%lld s ago: ", (long long)(f->now_wall_s - s->last_fault_wall_s));
        add_escaped(out, s->why);
        evbuffer_add_printf(out, "</td></tr>\n");
    }
    evbuffer_add_printf(out, "</table>\n");
}

static void add_workers(struct evbuffer *out)
{
    table(out, "Workers");
    evbuffer_add_printf(
        out,
        "<tr><th>worker</th><th class=n>requests</th><th class=n>hits</th><th class=n>clients</th>"
        "<th class=n>sent</th></tr>\n");
    for (const struct stats *s = stats_first(); s != NULL;
         s = __atomic_load_n(&s->next, __ATOMIC_ACQUIRE)) {
        if (!slice_has_prefix(slice_of(s->thread), SLICE("worker")))
            continue;
        evbuffer_add_printf(out, "<tr><td>");
        add_escaped(out, s->thread);
        evbuffer_add_printf(out, "</td><td class=n>");
        add_count(out, atomic_load_explicit(&s->exchanges, memory_order_relaxed));
        evbuffer_add_printf(out, "</td><td class=n>");
        add_count(out, atomic_load_explicit(&s->outcome[OUTCOME_HIT], memory_order_relaxed));
        evbuffer_add_printf(out, "</td><td class=n>");
        add_count(out, atomic_load_explicit(&s->client_open, memory_order_relaxed));
        evbuffer_add_printf(out, "</td><td class=n>");
        add_bytes(out, (uint64_t)atomic_load_explicit(&s->client_sent_bytes, memory_order_relaxed));
        evbuffer_add_printf(out, "</td></tr>\n");
    }
    evbuffer_add_printf(out, "</table>\n");
}

/* 0: none asked for. */
static unsigned refresh_of(struct evhttp_request *req)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *query = uri == NULL ? NULL : evhttp_uri_get_query(uri);
    struct evkeyvalq pairs;
    uint64_t seconds = 0;
    if (query == NULL || evhttp_parse_query_str(query, &pairs) < 0)
        return 0;
    if (!slice_to_u64(slice_of(evhttp_find_header(&pairs, "refresh")), &seconds) || seconds > 3600)
        seconds = 0;
    evhttp_clear_headers(&pairs);
    return (unsigned)seconds;
}

static void add_head(struct evbuffer *out, const struct admin_figures *f, unsigned refresh_s)
{
    char now[40];
    time_t t = (time_t)f->now_wall_s;
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(now, sizeof now, "%Y-%m-%d %H:%M:%S UTC", &tm);
    evbuffer_add_printf(out,
                        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
                        "<meta name=viewport content=\"width=device-width\"><title>Larder</title>");
    if (refresh_s > 0)
        evbuffer_add_printf(out, "<meta http-equiv=refresh content=%u>", refresh_s);
    evbuffer_add_printf(out, "<style>%s</style></head><body>\n<h1>Larder " LARDER_VERSION "</h1>\n",
                        style);
    evbuffer_add_printf(
        out, "<p>%s · up %lldd %lldh %lldm %llds · configuration %llu · %u worker%s</p>\n", now,
        (long long)(f->uptime_s / 86400), (long long)(f->uptime_s / 3600 % 24),
        (long long)(f->uptime_s / 60 % 60), (long long)(f->uptime_s % 60),
        (unsigned long long)f->generation, f->worker_count, f->worker_count == 1 ? "" : "s");
    evbuffer_add_printf(
        out, "<p><a href=\"/?refresh=2\">refresh every 2 s</a> · <a href=\"/stats\">JSON</a> · "
             "<a href=\"/metrics\">Prometheus</a> · <a href=\"/config\">configuration</a></p>\n");
}

void admin_status_page(const struct admin_context *c, struct evhttp_request *req)
{
    struct admin_figures f;
    admin_figures_read(c, &f);
    struct evbuffer *out = evbuffer_new();
    add_head(out, &f, refresh_of(req));
    add_requests(out, &f);
    add_memory(out, &f);
    add_origins(out, &f);
    add_workers(out);
    evbuffer_add_printf(out, "</body></html>\n");
    admin_figures_fini(&f);
    admin_reply(req, 200, "text/html; charset=utf-8", out);
}
