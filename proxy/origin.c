/* proxy/origin.c: sets of origins, the choice among an origin's servers, and what is counted for
 * each; see origin.h.
 *
 * A set is made from one configuration and never changes. What lasts is the server: a reload's set
 * takes over, counted, the servers that have the same place in the same origin, with their figures,
 * addresses and idle connections.
 */
#include "proxy/origin_internal.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { SERVER_MAGIC = 0x56525353 };

struct origin_server {
    /* fixed after new */
    uint32_t magic;
    enum address_kind kind;
    char *host; /* TCP; the path of a unix socket */
    uint16_t port;
    char *name, *host_value;
    struct resolve_name *addresses;
    /* any thread */
    _Atomic unsigned refs;
    _Atomic uint32_t idle_timeout_ms, idle_max; /* of the newest configuration */
    _Atomic uint64_t requests, faults, head_us_sum, head_count;
    _Atomic int64_t open, idle;
    _Atomic int64_t rests_until_ms; /* 0: does not rest */
    _Atomic int64_t last_fault_wall_s;
    _Atomic int last_fault; /* enum reason; -1: none */
};

struct origin {
    char *name, *root; /* root: a directory */
    struct origin_server **servers;
    size_t server_count;
    _Atomic unsigned turn;
};

struct origins {
    struct origin *at;
    size_t count;
    const struct config_origin *made_from; /* compared, never followed */
    struct resolver *resolver;
};

/* ---- servers --------------------------------------------------------------------------------- */

static const char *place_of(const struct config_address *a)
{
    const char *place = a->kind == ADDRESS_UNIX ? a->path : a->host;
    return place == NULL ? "" : place;
}

/* RFC 9110 7.2: as in the URI, so an IPv6 address in brackets; the default port is left out
 * (4.2.3). */
static char *host_value_of(const struct config_address *a)
{
    if (a->kind == ADDRESS_UNIX)
        return xstrdup("localhost");
    const char *host = place_of(a);
    size_t size = strlen(host) + sizeof "[]:65535";
    char *text = xmalloc(size);
    int len = snprintf(text, size, strchr(host, ':') != NULL ? "[%s]" : "%s", host);
    if (a->port != 80)
        snprintf(text + len, size - (size_t)len, ":%u", a->port);
    return text;
}

static char *name_of(const struct config_address *a)
{
    if (a->text != NULL)
        return xstrdup(a->text);
    char *host = host_value_of(a);
    const char *scheme = a->kind == ADDRESS_UNIX ? "unix:" : "http://";
    const char *place = a->kind == ADDRESS_UNIX ? place_of(a) : host;
    size_t size = strlen(scheme) + strlen(place) + 1;
    char *text = xmalloc(size);
    snprintf(text, size, "%s%s", scheme, place);
    free(host);
    return text;
}

static struct origin_server *server_new(struct resolver *r, const struct config_address *a,
                                        uint32_t ttl_ms)
{
    struct origin_server *s = xcalloc(1, sizeof *s);
    s->magic = SERVER_MAGIC;
    s->refs = 1;
    s->kind = a->kind;
    s->host = xstrdup(place_of(a));
    s->port = a->port;
    s->name = name_of(a);
    s->host_value = host_value_of(a);
    s->addresses = resolve_name_new(r, a, ttl_ms);
    s->last_fault = -1;
    return s;
}

struct origin_server *origin_server_ref(struct origin_server *s)
{
    CHECK_OBJ(s, SERVER_MAGIC);
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void origin_server_unref(struct origin_server **at)
{
    struct origin_server *s = *at;
    *at = NULL;
    if (s == NULL)
        return;
    CHECK_OBJ(s, SERVER_MAGIC);
    if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    resolve_name_free(&s->addresses);
    free(s->host);
    free(s->name);
    free(s->host_value);
    s->magic = 0;
    free(s);
}

const char *origin_server_name(const struct origin_server *s)
{
    return s->name;
}

const char *origin_server_host(const struct origin_server *s)
{
    return s->host_value;
}

struct origin_address origin_server_address(struct origin_server *s)
{
    return resolve_name_next(s->addresses, clock_mono_ms()).address;
}

struct resolve_name *origin_server_addresses(struct origin_server *s)
{
    return s->addresses;
}

uint32_t origin_server_idle_timeout_ms(const struct origin_server *s)
{
    return atomic_load_explicit(&s->idle_timeout_ms, memory_order_relaxed);
}

uint32_t origin_server_idle_max(const struct origin_server *s)
{
    return atomic_load_explicit(&s->idle_max, memory_order_relaxed);
}

/* ---- sets ------------------------------------------------------------------------------------ */

static struct origin_server *server_find(const struct origin *o, const struct config_address *a)
{
    for (size_t i = 0; o != NULL && i < o->server_count; i++) {
        struct origin_server *s = o->servers[i];
        if (s->kind == a->kind && strcmp(s->host, place_of(a)) == 0 &&
            (a->kind == ADDRESS_UNIX || s->port == a->port))
            return s;
    }
    return NULL;
}

static struct origin *find_by_name(struct origins *set, const char *name)
{
    for (size_t i = 0; set != NULL && i < set->count; i++)
        if (strcmp(set->at[i].name, name) == 0)
            return &set->at[i];
    return NULL;
}

static void origin_fill(struct origin *o, const struct config_origin *config, struct origin *before,
                        struct resolver *r)
{
    o->name = xstrdup(config->name);
    if (config->kind == ORIGIN_FILES) {
        o->root = xstrdup(config->root == NULL ? "" : config->root);
        return;
    }
    o->servers = xcalloc(config->server_count, sizeof(struct origin_server *));
    for (size_t i = 0; i < config->server_count; i++) {
        const struct config_address *a = &config->servers[i];
        struct origin_server *s = server_find(o, a); /* written twice: one server with two turns */
        if (s == NULL)
            s = server_find(before, a);
        s = s == NULL ? server_new(r, a, config->resolve_ttl_ms) : origin_server_ref(s);
        atomic_store(&s->idle_timeout_ms, config->idle_timeout_ms);
        atomic_store(&s->idle_max, config->idle_count);
        resolve_name_set_ttl(s->addresses, config->resolve_ttl_ms);
        o->servers[o->server_count++] = s;
    }
}

struct origins *origins_new_with(const struct config *config, struct origins *previous,
                                 resolve_lookup_f lookup)
{
    struct origins *set = xcalloc(1, sizeof *set);
    set->resolver = previous == NULL ? resolver_new(lookup) : resolver_ref(previous->resolver);
    set->made_from = config->origins;
    set->count = config->origin_count;
    set->at = xcalloc(set->count, sizeof *set->at);
    for (size_t i = 0; i < set->count; i++) {
        const struct config_origin *c = &config->origins[i];
        origin_fill(&set->at[i], c, find_by_name(previous, c->name), set->resolver);
    }
    resolver_wait_first(set->resolver, ORIGIN_FIRST_LOOKUP_MS);
    return set;
}

struct origins *origins_new(const struct config *config, struct origins *previous)
{
    return origins_new_with(config, previous, resolve_lookup);
}

void origins_free(struct origins **at)
{
    struct origins *set = *at;
    *at = NULL;
    if (set == NULL)
        return;
    for (size_t i = 0; i < set->count; i++) {
        struct origin *o = &set->at[i];
        for (size_t k = 0; k < o->server_count; k++)
            origin_server_unref(&o->servers[k]);
        free(o->servers);
        free(o->name);
        free(o->root);
    }
    free(set->at);
    resolver_unref(&set->resolver);
    free(set);
}

struct origin *origins_find(struct origins *set, const struct config_origin *config)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->made_from + i == config)
            return &set->at[i];
    return find_by_name(set, config->name); /* of another snapshot */
}

/* ---- choosing -------------------------------------------------------------------------------- */

enum eligible { NOT_AT_ALL, SAME_AGAIN, RESTING, READY };

static enum eligible eligible(const struct origin_server *s, const struct origin_server *not_this,
                              int64_t now_ms)
{
    if (!resolve_name_has_address(s->addresses))
        return NOT_AT_ALL;
    if (s == not_this)
        return SAME_AGAIN;
    return atomic_load_explicit(&s->rests_until_ms, memory_order_relaxed) > now_ms ? RESTING
                                                                                   : READY;
}

/* Turns go to the best of the servers only, evenly: the neighbour of one that rests does not get
 * its share on top. */
struct origin_server *origin_choose_at(struct origin *o, const struct origin_server *not_this,
                                       int64_t now_ms)
{
    enum eligible best = NOT_AT_ALL;
    size_t best_count = 0;
    for (size_t i = 0; i < o->server_count; i++) {
        enum eligible e = eligible(o->servers[i], not_this, now_ms);
        if (e > best) {
            best = e;
            best_count = 0;
        }
        best_count += e == best;
    }
    if (best == NOT_AT_ALL)
        return NULL;
    size_t turn = atomic_fetch_add_explicit(&o->turn, 1, memory_order_relaxed) % best_count;
    struct origin_server *last = NULL;
    for (size_t i = 0; i < o->server_count; i++) {
        if (eligible(o->servers[i], not_this, now_ms) != best)
            continue;
        last = o->servers[i];
        if (turn-- == 0)
            break;
    }
    /* NULL only if all of them changed between the two passes: then any that has an address will
     * do. */
    for (size_t i = 0; last == NULL && i < o->server_count; i++)
        if (resolve_name_has_address(o->servers[i]->addresses))
            last = o->servers[i];
    return last == NULL ? NULL : origin_server_ref(last);
}

struct origin_server *origin_choose(struct origin *o, const struct origin_server *not_this)
{
    return origin_choose_at(o, not_this, clock_mono_ms());
}

/* ---- figures --------------------------------------------------------------------------------- */

void origin_server_count_request(struct origin_server *s)
{
    atomic_fetch_add_explicit(&s->requests, 1, memory_order_relaxed);
}

void origin_server_count_head(struct origin_server *s, int64_t us)
{
    atomic_fetch_add_explicit(&s->head_us_sum, us > 0 ? (uint64_t)us : 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->head_count, 1, memory_order_relaxed);
    if (atomic_load_explicit(&s->rests_until_ms, memory_order_relaxed) != 0) /* it is back */
        atomic_store_explicit(&s->rests_until_ms, 0, memory_order_relaxed);
}

static bool is_connect_fault(enum reason why)
{
    return why == REASON_ORIGIN_REFUSED || why == REASON_ORIGIN_CONNECT_SLOW ||
           why == REASON_ORIGIN_UNRESOLVED;
}

void origin_server_count_fault(struct origin_server *s, enum reason why)
{
    atomic_fetch_add_explicit(&s->faults, 1, memory_order_relaxed);
    atomic_store_explicit(&s->last_fault, (int)why, memory_order_relaxed);
    atomic_store_explicit(&s->last_fault_wall_s, clock_wall_s(), memory_order_relaxed);
    if (!is_connect_fault(why))
        return; /* it does take connections */
    atomic_store_explicit(&s->rests_until_ms, clock_mono_ms() + ORIGIN_REST_MS,
                          memory_order_relaxed);
    resolve_name_hurry(s->addresses); /* it may have moved */
}

void origin_server_count_open(struct origin_server *s, int delta)
{
    atomic_fetch_add_explicit(&s->open, delta, memory_order_relaxed);
}

void origin_server_count_idle(struct origin_server *s, int delta)
{
    atomic_fetch_add_explicit(&s->idle, delta, memory_order_relaxed);
}

static uint64_t gauge(const _Atomic int64_t *value)
{
    int64_t v = atomic_load_explicit(value, memory_order_relaxed);
    return v > 0 ? (uint64_t)v : 0;
}

static struct origin_figures figures_of(const struct origin *o, const struct origin_server *s,
                                        int64_t now_ms)
{
    int why = atomic_load_explicit(&s->last_fault, memory_order_relaxed);
    enum eligible e = eligible(s, NULL, now_ms);
    return (struct origin_figures){
        .origin = o->name,
        .server = s->name,
        .state = e == NOT_AT_ALL ? "unresolved"
                 : e == RESTING  ? "failing"
                                 : "up",
        .why = why < 0 ? "" : reason_word((enum reason)why),
        .requests = atomic_load_explicit(&s->requests, memory_order_relaxed),
        .faults = atomic_load_explicit(&s->faults, memory_order_relaxed),
        .open = gauge(&s->open),
        .idle = gauge(&s->idle),
        .head_us_sum = atomic_load_explicit(&s->head_us_sum, memory_order_relaxed),
        .head_count = atomic_load_explicit(&s->head_count, memory_order_relaxed),
        .last_fault_wall_s = atomic_load_explicit(&s->last_fault_wall_s, memory_order_relaxed),
    };
}

static bool was_before(const struct origin *o, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (o->servers[i] == o->servers[index])
            return true;
    return false;
}

void origins_visit(struct origins *set, void (*visit)(void *to, const struct origin_figures *f),
                   void *to)
{
    int64_t now_ms = clock_mono_ms();
    for (size_t i = 0; i < set->count; i++) {
        const struct origin *o = &set->at[i];
        if (o->root != NULL) {
            struct origin_figures f = {
                .origin = o->name, .server = o->root, .state = "directory", .why = ""
            };
            visit(to, &f);
        }
        for (size_t k = 0; k < o->server_count; k++) {
            if (was_before(o, k))
                continue;
            struct origin_figures f = figures_of(o, o->servers[k], now_ms);
            visit(to, &f);
        }
    }
}
