/* proxy/invalidate.c: what a request of a client makes out of date (RFC 9111 4.4): the URL that an
 * unsafe method was sent to, those that its answer names, groups (RFC 9875); and the PURGE method.
 */
#include "proxy/exchange.h"

/* The key that a GET of that URL has. Rules may make it depend on fields and cookies: those are
 * left out here, and the purge finds all keys of the URL. Empty: no rule lets it be looked up. */
struct slice exchange_key_of_get(struct exchange *x, struct slice path, struct slice query)
{
    enum { KEY_LIKELY = 1024 };
    struct headers none;
    headers_init(&none, arena_alloc(&x->arena, HEADERS_MAX * sizeof(struct header)), HEADERS_MAX);
    struct plan_request in = { .config = x->snapshot->config,
                               .site = x->site,
                               .rule = exchange_rule_request(x),
                               .headers = &none,
                               .port = x->host_port == 80 ? 0 : x->host_port,
                               .is_get = true };
    in.rule.method = SLICE("GET");
    in.rule.path = path;
    in.rule.query = query;
    in.rule.headers = &none;
    struct plan plan;
    cache_plan(&in, arena_alloc(&x->arena, KEY_LIKELY), KEY_LIKELY, &x->arena, &plan);
    return plan.way == PLAN_LOOKUP ? plan.key : SLICE_NONE;
}

void exchange_purge_url(struct exchange *x, struct slice path, struct slice query,
                        enum purge_how how, struct cache_purged *purged)
{
    struct cache_purge p = { .what = PURGE_URL,
                             .how = how,
                             .text = exchange_key_of_get(x, path, query) };
    *purged = (struct cache_purged){ 0 };
    if (p.text.len > 0)
        cache_purge(x->worker->house->cache, &p, x->begun_ms, purged);
}

static void drop(struct exchange *x, struct slice path, struct slice query)
{
    struct cache_purged purged;
    exchange_purge_url(x, path, query, PURGE_HARD, &purged);
    stat_add(&x->worker->stats->invalidated, (int64_t)purged.objects);
}

static void drop_named(struct exchange *x, const struct target_base *base, struct slice reference)
{
    struct slice path, query;
    if (reference.len > 0 && cache_target_resolve(&x->arena, base, reference, &path, &query))
        drop(x, path, query);
}

static void drop_groups(struct exchange *x, const struct headers *answer)
{
    struct slice origin =
        x->host_port == 0 || x->host_port == 80
            ? (struct slice){ x->host, x->host_length }
            : arena_printf(&x->arena, "%.*s:%u", (int)x->host_length, x->host, x->host_port);
    struct slice rest = cache_groups_invalidated(&x->arena, answer, origin), tag;
    while (cache_tags_next(&rest, &tag)) {
        struct cache_purge p = { .what = PURGE_TAG, .how = PURGE_HARD, .text = tag };
        struct cache_purged purged = { 0 };
        cache_purge(x->worker->house->cache, &p, x->begun_ms, &purged);
        stat_add(&x->worker->stats->invalidated, (int64_t)purged.objects);
    }
}

void exchange_invalidate(struct exchange *x, const struct h1_response *r)
{
    if (h1_method_is_safe(x->request.method) || r->status < 200 || r->status >= 400)
        return;
    struct rule_request asked = exchange_rule_request(x);
    struct target_base base = { .scheme = asked.scheme,
                                .host = asked.host,
                                .port = x->host_port == 80 ? 0 : x->host_port,
                                .path = asked.path };
    drop(x, asked.path, asked.query);
    drop_named(x, &base, headers_value(&r->headers, HEADER_LOCATION));
    drop_named(x, &base, headers_value(&r->headers, HEADER_CONTENT_LOCATION));
    drop_groups(x, &r->headers);
}

/* What is stored may be old (RFC 9111 4.4 asks for less; a page too many fetched anew is the lesser
 * harm). */
void exchange_invalidate_unsure(struct exchange *x)
{
    if (x->fetch == NULL || x->key.bytes.len == 0 || h1_method_is_safe(x->request.method))
        return;
    drop(x, x->request.path, x->request.query);
}
