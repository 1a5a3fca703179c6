/* proxy/route.c: the first step of an exchange: whose request is it, what do the rules say, is it
 * ours to answer.
 *
 *   who     canonical host -> site; a host that nobody serves is refused
 *   what    methods that end here: CONNECT, PURGE, OPTIONS *, TRACE and OPTIONS with Max-Forwards:
 * 0 plan    cache_plan(): rules, key, origin, rewritten path; whether the store is asked at all
 */
#include "proxy/exchange.h"

enum { FORWARDS_MAX = 255 }; /* our own bound on Max-Forwards */

/* ---- the client ------------------------------------------------------------------------------ */

static bool is_trusted(const struct exchange *x, const struct peer *peer)
{
    const struct shared_snapshot *s = x->snapshot->shared;
    for (size_t i = 0; i < s->trusted_count; i++)
        if (network_has(&s->trusted[i], peer))
            return true;
    return false;
}

bool exchange_trusts_client(const struct exchange *x)
{
    return is_trusted(x, &x->conn->peer);
}

/* What is not believed does not go to the origin, and so must not select a variant either. */
static void drop_unbelieved(struct exchange *x)
{
    struct headers *h = &x->request.headers;
    if (!headers_has(h, HEADER_X_FORWARDED_HOST) && !headers_has(h, HEADER_X_FORWARDED_PROTO))
        return;
    if (exchange_trusts_client(x))
        return;
    headers_drop(h, HEADER_X_FORWARDED_HOST);
    headers_drop(h, HEADER_X_FORWARDED_PROTO);
}

/* The last address of X-Forwarded-For that is not a proxy of ours: everything before it is only
 * said, by somebody we have no reason to believe. */
static void find_client(struct exchange *x)
{
    x->client = x->conn->peer;
    if (!exchange_trusts_client(x))
        return;
    const struct headers *h = &x->request.headers;
    for (const struct header *f = headers_find(h, HEADER_X_FORWARDED_FOR); f != NULL;
         f = headers_next(h, f)) {
        struct slice rest = f->value, address;
        while (slice_next_in_list(&rest, &address)) {
            struct peer named;
            if (peer_parse(address, &named) && !is_trusted(x, &named))
                x->client = named;
        }
    }
}

struct rule_request exchange_rule_request(const struct exchange *x)
{
    const struct h1_request *r = &x->request;
    struct slice scheme = SLICE("http");
    if (slice_equal_nocase(headers_value(&r->headers, HEADER_X_FORWARDED_PROTO), SLICE("https")))
        scheme = SLICE("https"); /* of a trusted proxy: others' is dropped by now */
    return (struct rule_request){ .method = r->method_text,
                                  .scheme = scheme,
                                  .host = { x->host, x->host_length },
                                  .path = r->path,
                                  .query = r->query,
                                  .headers = &r->headers,
                                  .client = &x->client };
}

/* ---- methods that end here ------------------------------------------------------------------- */

static bool may_purge(const struct exchange *x)
{
    const struct shared_snapshot *s = x->snapshot->shared;
    for (size_t i = 0; i < s->purge_from_count; i++)
        if (network_has(&s->purge_from[i], &x->client))
            return true;
    return false;
}

static enum next purge(struct exchange *x)
{
    if (!may_purge(x))
        return exchange_refuse(x, FAULT_PURGE);
    struct cache_purged purged = { 0 };
    const struct headers *h = &x->request.headers;
    int how = headers_find_name(h, SLICE("Larder-Purge"), 0);
    bool is_soft = how >= 0 && slice_equal_nocase(h->at[how].value, SLICE("soft"));
    exchange_purge_url(x, x->request.path, x->request.query, is_soft ? PURGE_SOFT : PURGE_HARD,
                       &purged);
    stat_add(&x->worker->stats->purges, 1);
    stat_add(&x->worker->stats->purged, (int64_t)purged.objects);
    return exchange_answer_purge(x, &purged);
}

static size_t digits_of(struct slice s)
{
    size_t n = 0;
    while (n < s.len && s.ptr[n] >= '0' && s.ptr[n] <= '9')
        n++;
    return n;
}

/* RFC 9110 7.6.2: for TRACE and OPTIONS, how often the request may still be forwarded. True: not
 * once more; else what is sent on is one less. */
static bool ends_here(struct exchange *x)
{
    struct header *f = NULL;
    struct headers *h = &x->request.headers;
    if (headers_has(h, HEADER_MAX_FORWARDS))
        f = &h->at[h->first[HEADER_MAX_FORWARDS] - 1];
    uint64_t left;
    if (f == NULL || f->value.len == 0 || digits_of(f->value) < f->value.len)
        return false;
    if (!slice_to_u64(f->value, &left) || left > FORWARDS_MAX)
        left = FORWARDS_MAX + 1;
    if (left == 0)
        return true;
    f->value = arena_printf(&x->arena, "%llu", (unsigned long long)(left - 1));
    return false;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static void make_plan(struct exchange *x)
{
    const struct h1_request *r = &x->request;
    struct plan_request in = { .config = x->snapshot->config,
                               .site = x->site,
                               .rule = exchange_rule_request(x),
                               .headers = &x->request.headers,
                               .port = x->host_port == 80 ? 0 : x->host_port,
                               .is_get = r->method == METHOD_GET,
                               .is_head = r->method == METHOD_HEAD,
                               .has_body = r->framing != FRAMING_NONE };
    cache_plan(&in, x->key_bytes, sizeof x->key_bytes, &x->arena, &x->plan);
}

static enum next follow_plan(struct exchange *x)
{
    bool is_directory = x->plan.origin->kind == ORIGIN_FILES;
    switch (x->plan.way) {
    case PLAN_BROKEN: return exchange_refuse(x, FAULT_RULE_BROKEN);
    case PLAN_LOCAL: return exchange_go(x, STEP_ANSWER_RULE);
    case PLAN_LOOKUP: return exchange_go(x, STEP_LOOKUP);
    case PLAN_PASS: break;
    }
    x->outcome = OUTCOME_PASS;
    x->reason = x->looked = x->plan.why;
    if (is_directory && x->plan.why == REASON_METHOD)
        return exchange_refuse(x, FAULT_METHOD);
    return exchange_go(x, is_directory ? STEP_FILE : STEP_PASS);
}

enum next step_route(struct exchange *x)
{
    const struct h1_request *r = &x->request;
    const struct config *config = x->snapshot->config;
    drop_unbelieved(x);
    if (r->method == METHOD_CONNECT)
        return exchange_refuse(x, FAULT_NOT_TUNNELLED);
    if (r->authority.len == 0)
        x->host_length = x->host_port = 0; /* HTTP/1.0 without Host: only a "*" site */
    else if (!h1_canonical_host(r->authority, x->host, &x->host_length, &x->host_port))
        return exchange_refuse(x, FAULT_BAD_REQUEST);
    x->site = config_site_find(config, (struct slice){ x->host, x->host_length });
    if (x->site == NULL)
        return exchange_refuse(x, FAULT_NO_SITE);
    if (r->has_unknown_expect)
        return exchange_refuse(x, FAULT_EXPECTATION);
    if (config->body_max_bytes > 0 && r->framing == FRAMING_LENGTH &&
        r->length > config->body_max_bytes)
        return exchange_refuse(x, FAULT_BODY_LARGE);
    if (r->form == FORM_ASTERISK)
        return exchange_answer_options(x);
    if (rules_has_any(x->site) || r->method == METHOD_PURGE)
        find_client(x);
    if (r->method == METHOD_PURGE)
        return purge(x);
    if ((r->method == METHOD_TRACE || r->method == METHOD_OPTIONS) && ends_here(x))
        return r->method == METHOD_TRACE ? exchange_answer_trace(x) : exchange_answer_options(x);
    make_plan(x);
    if (x->plan.way == PLAN_LOOKUP || x->plan.way == PLAN_PASS)
        x->key = cache_key_of(x->worker->house->cache, x->plan.key);
    return follow_plan(x);
}
