/* admin/admin_internal.h: what the admin floor's own files share. Everything but the guards runs on
 * the admin thread.
 *
 *   server.c   the thread, its listener, its connections      route.c    who may ask for what
 *   purge.c    purges                                         actions.c  reload, config
 *   figures.c  one consistent reading of all counters
 *   stats_json.c, metrics.c, status.c                         three ways to show it
 */
#ifndef ADMIN_ADMIN_INTERNAL_H
#define ADMIN_ADMIN_INTERNAL_H
#include "admin/admin.h"
#include "base/stats.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <jansson.h>

/* ---- guards: pure, any thread ---------------------------------------------------------------- */

/* Takes as long for a wrong token as for the right one. `authorization` is the header's value or
 * NULL. */
bool admin_token_matches(const char *authorization, const char *token);
/* Whether a Host value may be answered on a loopback address without a token: a page that a browser
 * loaded from elsewhere can make its own name point here (DNS rebinding), but it cannot send
 * another Host than that name. `bound` is the configured address, good as well. */
bool admin_host_is_local(const char *host, const char *bound);
/* Whether an Origin value is of this very host: a form on another site can POST here, but the
 * browser says where it is from. */
bool admin_origin_is_own(const char *origin, const char *host);
/* 127.0.0.0/8, ::1, localhost. */
bool admin_address_is_loopback(const char *host);

/* ---- requests -------------------------------------------------------------------------------- */

/* What the handlers need of the server; fixed while it runs. */
struct admin_context {
    struct admin_hooks hooks;
    char *token;      /* NULL: none needed */
    char *bound_host; /* "127.0.0.1"; NULL for a unix socket */
    bool checks_host;
    struct explain_fetches *fetches; /* origins that explain is asking */
};

/* Everything that arrives. */
void admin_route(struct evhttp_request *req, void *context);

/* Answers. The last argument is consumed; a HEAD request gets the head alone. */
void admin_reply(struct evhttp_request *req, int status, const char *content_type,
                 struct evbuffer *body);
void admin_reply_json(struct evhttp_request *req, int status, json_t *body);
/* {"error": "…"} */
void admin_reply_error(struct evhttp_request *req, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

typedef void (*admin_handler_f)(const struct admin_context *c, struct evhttp_request *req);
void admin_status_page(const struct admin_context *c, struct evhttp_request *req);
void admin_stats_json(const struct admin_context *c, struct evhttp_request *req);
void admin_metrics(const struct admin_context *c, struct evhttp_request *req);
void admin_config(const struct admin_context *c, struct evhttp_request *req);
void admin_purge(const struct admin_context *c, struct evhttp_request *req);
void admin_reload(const struct admin_context *c, struct evhttp_request *req);
void admin_explain(const struct admin_context *c, struct evhttp_request *req);

/* Of explain.h: the one begins with the server, the other gives up what is under way before the
 * server's connections are closed. */
struct explain_fetches *explain_fetches_new(struct event_base *base);
void explain_fetches_free(struct explain_fetches **fetches);

/* ---- figures --------------------------------------------------------------------------------- */

struct admin_figures {
    struct stats_sum sum; /* gauges are not below zero here */
    struct cache_usage cache;
    uint64_t rss_bytes;
    int64_t now_wall_s, started_wall_s, uptime_s;
    uint64_t generation; /* of the configuration */
    unsigned worker_count;
    struct admin_server_state *servers; /* copies */
    size_t server_count;
    /* Shares between 0 and 1, -1 when nothing was answered yet. Of the requests that had an answer
     * to be looked up or fetched (refused, aborted and local ones are not counted), those answered
     * from the store; and the same of the body bytes. */
    double hit_ratio_requests, hit_ratio_bytes;
};
void admin_figures_read(const struct admin_context *c, struct admin_figures *f);
void admin_figures_fini(struct admin_figures *f);
/* Whether it is asked at all. */
bool admin_server_is_up(const struct admin_server_state *s);
int64_t admin_figure(const struct admin_figures *f, const struct stat_row *row);

/* The kinds of memory that cache.memory holds. */
struct admin_memory_kind {
    const char *name, *help;
    size_t offset; /* of a uint64_t in struct cache_usage */
};
extern const struct admin_memory_kind admin_memory_kinds[];
extern const size_t admin_memory_kind_count;
uint64_t admin_memory_of(const struct admin_figures *f, const struct admin_memory_kind *kind);
#endif
