/* proxy/resolve.c: threads that look names up, by their ttl; see resolve.h.
 *
 *   a name:  due --a thread takes it--> busy --answer: published, due again after its ttl
 *                                        '--failure: the last good addresses stay, due again soon
 *
 * There are several threads only because getaddrinfo() can hang for many seconds on one name, and
 * the others must not wait for it.
 */
#include "proxy/resolve.h"

#include "base/clock.h"
#include "base/log.h"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    TTL_LEAST_MS = 20,     /* bounds a wrong ttl; the configuration's own bound is higher */
    RETRY_MS = 5000,       /* after a failure, if the ttl is longer */
    HURRY_MS = 1000,       /* the least between two look-ups when connections fail */
    LEAVE_BEHIND_MS = 200, /* at the end, for threads that are in the middle of a look-up */
};

struct address {
    struct origin_address address;
    int64_t rests_until_ms;
    unsigned id;
};

struct resolve_name {
    /* fixed after new */
    struct resolver *resolver;
    char *text; /* for the log */
    char *host;
    uint16_t port;
    bool is_fixed; /* not in the list: never looked up */
    /* under resolver->lock */
    struct resolve_name *next, *prev;
    int64_t due_ms, looked_up_ms;
    uint32_t ttl_ms;
    bool is_busy, is_gone, was_tried, is_failing;
    /* under lock */
    pthread_mutex_t lock;
    struct address at[RESOLVE_ADDRESSES_MAX];
    unsigned turn, last_id;
    /* written under lock */
    _Atomic size_t count;
};

struct resolver {
    pthread_mutex_t lock;
    pthread_cond_t wake; /* a name was added, hurried or taken away, or all ends */
    pthread_cond_t told; /* a name was tried, or a thread ended */
    resolve_lookup_f lookup;
    struct resolve_name *names;
    size_t refs; /* sets and names */
    unsigned threads;
    unsigned holders; /* threads, and the refs together: who is last frees it */
};

/* ---- waiting --------------------------------------------------------------------------------- */

static void condition_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

static void wait_locked(struct resolver *r, pthread_cond_t *c, int64_t ms)
{
#ifdef LARDER_TEST_HOOKS
    if (ms > 200)
        ms = 200; /* a test may move the clock meanwhile */
#endif
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + (ms % 1000) * 1000000;
    until.tv_sec += (time_t)(ms / 1000 + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_cond_timedwait(c, &r->lock, &until);
}

/* ---- looking up ------------------------------------------------------------------------------ */

static bool address_equal(const struct origin_address *a, const struct origin_address *b)
{
    return a->length == b->length && memcmp(&a->at, &b->at, a->length) == 0;
}

static void answer_add(struct resolve_answer *out, const struct addrinfo *ai)
{
    struct origin_address a = { .length = ai->ai_addrlen };
    if (out->count == RESOLVE_ADDRESSES_MAX || ai->ai_addrlen > sizeof a.at)
        return;
    if (ai->ai_family != AF_INET && ai->ai_family != AF_INET6)
        return;
    memcpy(&a.at, ai->ai_addr, ai->ai_addrlen);
    for (size_t i = 0; i < out->count; i++)
        if (address_equal(&out->at[i], &a))
            return;
    out->at[out->count++] = a;
}

static int look_up(const char *host, uint16_t port, int flags, struct resolve_answer *out)
{
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    /* Not AI_ADDRCONFIG: it hides 127.0.0.1 on a machine that has no other address. One that cannot
     * be reached will rest. */
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    out->count = 0;
    int error = getaddrinfo(host, service, &hints, &found);
    if (error != 0)
        return error;
    for (const struct addrinfo *ai = found; ai != NULL; ai = ai->ai_next)
        answer_add(out, ai);
    freeaddrinfo(found);
    return out->count == 0 ? EAI_NONAME : 0;
}

bool resolve_lookup(const char *host, uint16_t port, struct resolve_answer *out, const char **why)
{
    int error = look_up(host, port, 0, out);
    if (error == 0)
        return true;
    *why = gai_strerror(error);
    return false;
}

/* ---- publishing ------------------------------------------------------------------------------ */

static struct address address_kept(struct resolve_name *n, const struct origin_address *a)
{
    for (size_t i = 0; i < n->count; i++)
        if (address_equal(&n->at[i].address, a))
            return n->at[i];
    return (struct address){ .address = *a, .id = ++n->last_id };
}

/* True when the addresses are others than before. */
static bool publish(struct resolve_name *n, const struct resolve_answer *answer)
{
    struct address at[RESOLVE_ADDRESSES_MAX];
    pthread_mutex_lock(&n->lock);
    unsigned before = n->last_id;
    bool changed = n->count != answer->count;
    for (size_t i = 0; i < answer->count; i++)
        at[i] = address_kept(n, &answer->at[i]);
    memcpy(n->at, at, answer->count * sizeof *at);
    atomic_store(&n->count, answer->count);
    changed = changed || n->last_id != before;
    pthread_mutex_unlock(&n->lock);
    return changed;
}

static void note_answer(struct resolve_name *n, const struct resolve_answer *answer)
{
    bool changed = publish(n, answer);
    if (changed && n->was_tried)
        log_info("origin server %s: now at %zu address%s", n->text, answer->count,
                 answer->count == 1 ? "" : "es");
    else if (n->is_failing)
        log_info("origin server %s: its name resolves again", n->text);
    n->is_failing = false;
    n->due_ms = n->looked_up_ms + n->ttl_ms;
}

static void note_failure(struct resolve_name *n, const char *why)
{
    stat_add(&stats_mine()->origin_resolve_failed, 1);
    if (!n->is_failing)
        log_warn("origin server %s: look-up failed: %s; %s", n->text, why,
                 n->count > 0 ? "the last good addresses stay in use" : "it has no address");
    n->is_failing = true;
    n->due_ms = n->looked_up_ms + (n->ttl_ms < RETRY_MS ? n->ttl_ms : RETRY_MS);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void name_destroy(struct resolve_name *n)
{
    pthread_mutex_destroy(&n->lock);
    free(n->host);
    free(n->text);
    free(n);
}

static void resolver_destroy(struct resolver *r)
{
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->wake);
    pthread_cond_destroy(&r->told);
    free(r);
}

/* Ends one holder's hold, and the lock's: true when it was the last. */
static bool let_go_and_unlock(struct resolver *r)
{
    bool is_last = --r->holders == 0;
    pthread_mutex_unlock(&r->lock);
    return is_last;
}

/* The name that is due longest, or NULL and how long until one is. */
static struct resolve_name *due_locked(struct resolver *r, int64_t now_ms, int64_t *wait_ms)
{
    struct resolve_name *first = NULL;
    for (struct resolve_name *n = r->names; n != NULL; n = n->next)
        if (!n->is_busy && (first == NULL || n->due_ms < first->due_ms))
            first = n;
    if (first != NULL && first->due_ms <= now_ms)
        return first;
    *wait_ms = first == NULL ? 3600000 : first->due_ms - now_ms;
    return NULL;
}

static void serve_locked(struct resolver *r, struct resolve_name *n, int64_t now_ms)
{
    struct resolve_answer answer = { 0 };
    const char *why = "no address";
    n->is_busy = true;
    n->looked_up_ms = now_ms;
    pthread_mutex_unlock(&r->lock);
    bool ok = r->lookup(n->host, n->port, &answer, &why) && answer.count > 0;
    stat_add(&stats_mine()->origin_resolves, 1);
    pthread_mutex_lock(&r->lock);
    n->is_busy = false;
    if (n->is_gone) {
        name_destroy(n);
        return;
    }
    n->looked_up_ms = clock_mono_ms(); /* a slow look-up is not repeated at once */
    if (ok)
        note_answer(n, &answer);
    else
        note_failure(n, why);
    n->was_tried = true;
    pthread_cond_broadcast(&r->told);
}

static void *resolver_main(void *arg)
{
    struct resolver *r = arg;
    pthread_setname_np(pthread_self(), "resolver");
    stats_use(stats_new("resolver"));
    pthread_mutex_lock(&r->lock);
    while (r->refs > 0) {
        int64_t wait_ms = 0;
        int64_t now_ms = clock_mono_ms();
        struct resolve_name *n = due_locked(r, now_ms, &wait_ms);
        if (n != NULL)
            serve_locked(r, n, now_ms);
        else
            wait_locked(r, &r->wake, wait_ms);
    }
    r->threads--;
    pthread_cond_broadcast(&r->told);
    if (let_go_and_unlock(r))
        resolver_destroy(r);
    return NULL;
}

/* One thread a name, up to RESOLVE_THREADS_MAX. Detached: at the end those that hang are left
 * behind. Signals are the main thread's. */
static void start_thread_locked(struct resolver *r)
{
    if (r->threads == RESOLVE_THREADS_MAX)
        return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    if (pthread_create(&thread, &attr, resolver_main, r) == 0) {
        r->threads++;
        r->holders++;
    } else if (r->threads == 0) {
        log_error("no thread for looking names up: servers given by name have no address");
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

/* ---- the resolver's life --------------------------------------------------------------------- */

struct resolver *resolver_new(resolve_lookup_f lookup)
{
    struct resolver *r = xcalloc(1, sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    condition_init(&r->wake);
    condition_init(&r->told);
    r->lookup = lookup;
    r->refs = r->holders = 1;
    return r;
}

struct resolver *resolver_ref(struct resolver *r)
{
    pthread_mutex_lock(&r->lock);
    CHECK(r->refs > 0);
    r->refs++;
    pthread_mutex_unlock(&r->lock);
    return r;
}

void resolver_unref(struct resolver **at)
{
    struct resolver *r = *at;
    *at = NULL;
    if (r == NULL)
        return;
    pthread_mutex_lock(&r->lock);
    CHECK(r->refs > 0);
    if (--r->refs > 0) {
        pthread_mutex_unlock(&r->lock);
        return;
    }
    pthread_cond_broadcast(&r->wake);
    int64_t until_ms = clock_mono_ms() + LEAVE_BEHIND_MS;
    for (int64_t left; r->threads > 0 && (left = until_ms - clock_mono_ms()) > 0;)
        wait_locked(r, &r->told, left);
    if (let_go_and_unlock(r))
        resolver_destroy(r);
}

static bool all_tried_locked(const struct resolver *r)
{
    for (const struct resolve_name *n = r->names; n != NULL; n = n->next)
        if (!n->was_tried)
            return false;
    return true;
}

void resolver_wait_first(struct resolver *r, int64_t most_ms)
{
    pthread_mutex_lock(&r->lock);
    int64_t until_ms = clock_mono_ms() + most_ms;
    for (int64_t left;
         r->threads > 0 && !all_tried_locked(r) && (left = until_ms - clock_mono_ms()) > 0;)
        wait_locked(r, &r->told, left);
    for (struct resolve_name *n = r->names; n != NULL; n = n->next)
        if (!n->was_tried && n->is_busy)
            log_warn("origin server %s: the look-up takes long; going on without its address",
                     n->text);
    pthread_mutex_unlock(&r->lock);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* True when no look-up will ever be needed, or can help. */
static bool is_literal(const struct config_address *server, struct resolve_answer *out)
{
    if (server->kind != ADDRESS_UNIX)
        return look_up(server->host, server->port, AI_NUMERICHOST, out) == 0;
    struct sockaddr_un *to = &out->at[0].at.path;
    size_t length = strlen(server->path);
    if (length >= sizeof to->sun_path) {
        log_error("origin server %s: the path of a unix socket has at most %zu bytes", server->path,
                  sizeof to->sun_path - 1);
        return true;
    }
    to->sun_family = AF_UNIX;
    memcpy(to->sun_path, server->path, length + 1);
    out->at[0].length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
    out->count = 1;
    return true;
}

struct resolve_name *resolve_name_new(struct resolver *r, const struct config_address *server,
                                      uint32_t ttl_ms)
{
    struct resolve_name *n = xcalloc(1, sizeof *n);
    const char *place = server->kind == ADDRESS_UNIX ? server->path : server->host;
    n->resolver = r;
    n->text = xstrdup(server->text == NULL ? place : server->text);
    n->host = xstrdup(place);
    n->port = server->port;
    n->ttl_ms = ttl_ms < TTL_LEAST_MS ? TTL_LEAST_MS : ttl_ms;
    pthread_mutex_init(&n->lock, NULL);
    struct resolve_answer answer = { 0 };
    n->is_fixed = is_literal(server, &answer);
    if (n->is_fixed)
        publish(n, &answer);

    pthread_mutex_lock(&r->lock);
    r->refs++;
    if (!n->is_fixed) {
        n->due_ms = clock_mono_ms();
        n->next = r->names;
        if (r->names != NULL)
            r->names->prev = n;
        r->names = n;
        start_thread_locked(r);
        pthread_cond_signal(&r->wake);
    }
    pthread_mutex_unlock(&r->lock);
    return n;
}

void resolve_name_free(struct resolve_name **at)
{
    struct resolve_name *n = *at;
    *at = NULL;
    if (n == NULL)
        return;
    struct resolver *r = n->resolver;
    pthread_mutex_lock(&r->lock);
    if (!n->is_fixed) {
        *(n->prev == NULL ? &r->names : &n->prev->next) = n->next;
        if (n->next != NULL)
            n->next->prev = n->prev;
    }
    n->is_gone = true;
    bool is_busy = n->is_busy; /* then the thread frees it */
    pthread_mutex_unlock(&r->lock);
    if (!is_busy)
        name_destroy(n);
    resolver_unref(&r);
}

void resolve_name_set_ttl(struct resolve_name *n, uint32_t ttl_ms)
{
    if (n->is_fixed)
        return;
    pthread_mutex_lock(&n->resolver->lock);
    n->ttl_ms = ttl_ms < TTL_LEAST_MS ? TTL_LEAST_MS : ttl_ms;
    if (n->was_tried && n->due_ms > n->looked_up_ms + n->ttl_ms) {
        n->due_ms = n->looked_up_ms + n->ttl_ms;
        pthread_cond_signal(&n->resolver->wake);
    }
    pthread_mutex_unlock(&n->resolver->lock);
}

void resolve_name_hurry(struct resolve_name *n)
{
    if (n->is_fixed)
        return;
    pthread_mutex_lock(&n->resolver->lock);
    int64_t soonest_ms = n->looked_up_ms + HURRY_MS;
    if (!n->is_busy && n->due_ms > soonest_ms) {
        n->due_ms = soonest_ms;
        pthread_cond_signal(&n->resolver->wake);
    }
    pthread_mutex_unlock(&n->resolver->lock);
}

bool resolve_name_has_address(const struct resolve_name *n)
{
    return atomic_load_explicit(&n->count, memory_order_relaxed) > 0;
}

size_t resolve_name_count(const struct resolve_name *n)
{
    return atomic_load_explicit(&n->count, memory_order_relaxed);
}

struct resolve_choice resolve_name_next(struct resolve_name *n, int64_t now_ms)
{
    struct resolve_choice choice = { 0 };
    pthread_mutex_lock(&n->lock);
    size_t count = n->count;
    if (count > 0) {
        size_t first = n->turn % count;
        size_t i = first;
        while (n->at[i].rests_until_ms > now_ms) {
            i = (i + 1) % count;
            if (i == first)
                break; /* all of them rest */
        }
        n->turn = (unsigned)(i + 1);
        choice = (struct resolve_choice){ .address = n->at[i].address, .id = n->at[i].id };
    }
    pthread_mutex_unlock(&n->lock);
    return choice;
}

void resolve_name_rest(struct resolve_name *n, unsigned id, int64_t now_ms)
{
    pthread_mutex_lock(&n->lock);
    for (size_t i = 0; i < n->count; i++)
        if (n->at[i].id == id)
            n->at[i].rests_until_ms = now_ms + RESOLVE_ADDRESS_REST_MS;
    pthread_mutex_unlock(&n->lock);
}
