/* admin/client_stat.c: see client_stat.h. A table of rows: what a person looks for first, first. */
#include "admin/client_stat.h"

#include "base/base.h"

#include <inttypes.h>

enum { NAME_WIDTH = 24, VALUE_WIDTH = 16, RATE_WIDTH = 14 };
enum show { SHOW_COUNT, SHOW_BYTES };

/* "a.b.c" within `stats`; outcomes have dashes but no dots. */
static int64_t figure(const json_t *stats, const char *path)
{
    struct slice rest = slice_of(path);
    while (stats != NULL && rest.len > 0) {
        char name[64];
        size_t dot = slice_find(rest, '.');
        snprintf(name, sizeof name, "%.*s", (int)dot, rest.ptr);
        stats = json_object_get(stats, name);
        size_t taken = dot < rest.len ? dot + 1 : dot;
        rest = (struct slice){ rest.ptr + taken, rest.len - taken };
    }
    return json_integer_value(stats);
}

static void with_commas(int64_t n, char out[40])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && digits[i - 1] != '-' && (length - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

static void as_bytes(double bytes, char out[40])
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
    size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < ARRAY_COUNT(units); unit++)
        bytes /= 1024;
    snprintf(out, 40, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

/* Seconds between the two readings, by Larder's own clock. */
static double seconds_between(const json_t *before, const json_t *now)
{
    int64_t s = before == NULL ? 0 : figure(now, "time") - figure(before, "time");
    return s > 0 ? (double)s : 0;
}

static void print_rate(const json_t *now, const json_t *before, const char *path, enum show show,
                       FILE *out)
{
    double seconds = seconds_between(before, now);
    if (seconds <= 0)
        return;
    double rate = (double)(figure(now, path) - figure(before, path)) / seconds;
    char text[40];
    if (show == SHOW_BYTES)
        as_bytes(rate < 0 ? 0 : rate, text);
    else
        snprintf(text, sizeof text, "%.1f", rate);
    fprintf(out, "%*s/s", RATE_WIDTH, text);
}

static void print_counter(const json_t *now, const json_t *before, const char *name,
                          const char *path, enum show show, FILE *out)
{
    char text[40];
    if (show == SHOW_BYTES)
        as_bytes((double)figure(now, path), text);
    else
        with_commas(figure(now, path), text);
    fprintf(out, "  %-*s%*s", NAME_WIDTH, name, VALUE_WIDTH, text);
    print_rate(now, before, path, show, out);
    fputc('\n', out);
}

static void print_share(const json_t *now, const char *name, const char *member, FILE *out)
{
    const json_t *value = json_object_get(json_object_get(now, "hit_ratio"), member);
    char text[40] = "-";
    if (json_is_number(value))
        snprintf(text, sizeof text, "%.1f %%", json_number_value(value) * 100);
    fprintf(out, "  %-*s%*s\n", NAME_WIDTH, name, VALUE_WIDTH, text);
}

static void print_group(const json_t *now, const json_t *before, const char *group, FILE *out)
{
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(json_object_get(now, "requests"), group), name, value)
    {
        char path[128];
        snprintf(path, sizeof path, "requests.%s.%s", group, name);
        if (json_integer_value(value) != 0)
            print_counter(now, before, name, path, SHOW_COUNT, out);
    }
}

static void print_rows(const json_t *now, const json_t *before, FILE *out)
{
    static const struct {
        const char *name, *path; /* without a path: a heading */
        enum show show;
        bool has_rate;
    } rows[] = {
        { "traffic", NULL, 0, false },
        { "sent to clients", "counters.client_sent_bytes", SHOW_BYTES, true },
        { "from clients", "counters.client_received_bytes", SHOW_BYTES, true },
        { "from origins", "counters.origin_received_bytes", SHOW_BYTES, true },
        { "requests to origins", "counters.origin_requests", SHOW_COUNT, true },
        { "store", NULL, 0, false },
        { "objects", "cache.objects", SHOW_COUNT, false },
        { "used", "cache.memory.used_bytes", SHOW_BYTES, false },
        { "of cache.memory", "cache.memory.budget_bytes", SHOW_BYTES, false },
        { "resident (RSS)", "cache.memory.rss_bytes", SHOW_BYTES, false },
        { "evicted", "cache.evicted", SHOW_COUNT, true },
        { "fills stored", "fills.stored", SHOW_COUNT, true },
        { "fills joined", "fills.joined", SHOW_COUNT, true },
        { "fills failed", "fills.failed", SHOW_COUNT, true },
        { "now", NULL, 0, false },
        { "client connections", "connections.open", SHOW_COUNT, false },
        { "of them idle", "connections.idle", SHOW_COUNT, false },
        { "requests", "requests.live", SHOW_COUNT, false },
        { "fills", "fills.live", SHOW_COUNT, false },
        { "followers", "fills.followers", SHOW_COUNT, false },
        { "origin connections", "connections.origin_open", SHOW_COUNT, false },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (rows[i].path == NULL)
            fprintf(out, "%s\n", rows[i].name);
        else
            print_counter(now, rows[i].has_rate ? before : NULL, rows[i].name, rows[i].path,
                          rows[i].show, out);
    }
}

static void print_server(const char *origin, const json_t *s, FILE *out)
{
    const char *server = json_string_value(json_object_get(s, "server")),
               *state = json_string_value(json_object_get(s, "state")),
               *why = json_string_value(json_object_get(s, "why"));
    const json_t *mean = json_object_get(s, "head_mean_ms");
    char requests[40], faults[40], head[40] = "-";
    with_commas(figure(s, "requests"), requests);
    with_commas(figure(s, "faults"), faults);
    if (json_is_number(mean))
        snprintf(head, sizeof head, "%.2f ms", json_number_value(mean));
    fprintf(out, "  %s %s  %s  requests %s  faults %s  head %s", origin,
            server == NULL ? "?" : server, state == NULL ? "?" : state, requests, faults, head);
    if (why != NULL && why[0] != '\0')
        fprintf(out, "  last fault: %s", why);
    fputc('\n', out);
}

static void print_origins(const json_t *now, FILE *out)
{
    size_t i, j;
    json_t *origin, *server;
    json_array_foreach(json_object_get(now, "origins"), i, origin)
    {
        const char *name = json_string_value(json_object_get(origin, "origin"));
        json_array_foreach(json_object_get(origin, "servers"), j, server)
            print_server(name == NULL ? "?" : name, server, out);
    }
}

void client_print_stat(const json_t *now, const json_t *before, FILE *out)
{
    const char *version = json_string_value(json_object_get(now, "version"));
    int64_t up = figure(now, "uptime_s"), workers = figure(now, "worker_count");
    fprintf(out,
            "larder %s  pid %" PRId64 "  up %" PRId64 "d %02d:%02d:%02d  configuration %" PRId64
            "  %" PRId64 " worker%s\n",
            version == NULL ? "?" : version, figure(now, "pid"), up / 86400, (int)(up / 3600 % 24),
            (int)(up / 60 % 60), (int)(up % 60), figure(now, "generation"), workers,
            workers == 1 ? "" : "s");
    fprintf(out, "requests\n");
    print_counter(now, before, "total", "requests.total", SHOW_COUNT, out);
    print_share(now, "hit ratio", "requests", out);
    print_share(now, "hit ratio of bytes", "bytes", out);
    print_group(now, before, "by_outcome", out);
    fprintf(out, "why\n");
    print_group(now, before, "by_reason", out);
    print_rows(now, before, out);
    fprintf(out, "origins\n");
    print_origins(now, out);
}
