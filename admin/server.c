/* admin/server.c: the admin thread: one event loop, one listener, an evhttp, and a hand on its
 * connections.
 *
 * Life     admin_start() binds on the caller's thread, so that errors are told before anything runs
 *          -> the loop -> admin_stop().
 * Threads  everything belongs to the admin thread after admin_start(); admin_stop() only writes an
 *          eventfd and joins.
 *
 * evhttp bounds neither how many connections there are nor how long one may dribble. So each one's
 * bufferevent is ours too: we hold a second reference, and once evhttp has let go of it (its
 * callbacks are cleared then) a tick closes it. That is also what makes the close gentle: evhttp
 * has ended the sending side, the tick closes the descriptor a moment later.
 */
#include "admin/admin_internal.h"
#include "base/clock.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 64,
    HEAD_BYTES_MAX = 16 << 10,
    BODY_BYTES_MAX = 64 << 10,
    TIMEOUT_S = 10,  /* without progress */
    LIFE_MS = 30000, /* of a connection, whatever it does */
    TICK_MS = 100,
    DRAIN_MS = 1000,
};

struct connection {
    struct bufferevent *bufferevent; /* NULL: free */
    int64_t until_ms;
};

struct admin {
    struct admin_context context;
    char *where;
    struct event_base *base;
    struct evhttp *http;
    struct evhttp_bound_socket *bound;
    struct evconnlistener *listener; /* owned by `bound` once that is there */
    struct event *tick, *stop;
    int stop_fd;
    char *unix_path; /* removed at the end */
    struct connection connections[CONNECTIONS_MAX];
    size_t connection_count;
    int64_t drain_until_ms; /* 0: not stopping */
    pthread_t thread;
    struct stats *stats;
};

/* ---- connections ----------------------------------------------------------------------------- */

/* Whether evhttp has let go: bufferevent_free() clears the callbacks at once, and nothing else ever
 * does. */
static bool is_let_go(struct bufferevent *b)
{
    bufferevent_event_cb on_event = NULL;
    bufferevent_getcb(b, NULL, NULL, &on_event, NULL);
    return on_event == NULL;
}

static void sweep(struct admin *a)
{
    int64_t now_ms = clock_mono_ms();
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *c = &a->connections[i];
        if (c->bufferevent == NULL)
            continue;
        /* as if it had timed out: evhttp ends it */
        if (now_ms >= c->until_ms && !is_let_go(c->bufferevent))
            bufferevent_trigger_event(c->bufferevent, BEV_EVENT_TIMEOUT | BEV_EVENT_READING, 0);
        if (!is_let_go(c->bufferevent))
            continue;
        bufferevent_decref(c->bufferevent);
        c->bufferevent = NULL;
        a->connection_count--;
    }
}

static void arm_tick(struct admin *a)
{
    struct timeval wait = { .tv_usec = TICK_MS * 1000 };
    if (!event_pending(a->tick, EV_TIMEOUT, NULL))
        event_add(a->tick, &wait);
}

/* evhttp accepted a connection and wants a bufferevent for it. NULL is none of ours: evhttp makes
 * its own. */
static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
    struct admin *a = arg;
    struct bufferevent *b = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (b == NULL)
        return NULL;
    if (a->connection_count + 1 >= CONNECTIONS_MAX)
        sweep(a); /* before the new one is in: it has no callbacks yet */
    size_t i = 0;
    while (a->connections[i].bufferevent != NULL)
        i++; /* there is one: the listener is off while all are taken */
    bufferevent_incref(b);
    a->connections[i] = (struct connection){ b, clock_mono_ms() + LIFE_MS };
    if (++a->connection_count == CONNECTIONS_MAX)
        evconnlistener_disable(
            a->listener); /* others wait in the kernel's queue until the tick finds room */
    arm_tick(a);
    return b;
}

/* Out of descriptors, mostly: libevent would try again at once, and for ever. The argument is
 * evhttp's, so the admin is known by its thread. */
static _Thread_local struct admin *mine;
static void on_accept_error(struct evconnlistener *listener, void *http)
{
    (void)http;
    log_warn("the admin port cannot accept: %s", strerror(errno));
    evconnlistener_disable(listener);
    arm_tick(mine);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct admin *a = arg;
    sweep(a);
    if (a->drain_until_ms != 0) {
        if (a->connection_count == 0 || clock_mono_ms() >= a->drain_until_ms)
            event_base_loopbreak(a->base);
        else
            arm_tick(a);
        return;
    }
    if (a->connection_count < CONNECTIONS_MAX)
        evconnlistener_enable(a->listener);
    if (a->connection_count > 0)
        arm_tick(a);
}

/* ---- listening ------------------------------------------------------------------------------- */

/* -1 and a sentence; `fd` is closed. */
static int give_up(int fd, const char *where, const char *what, char why[256])
{
    snprintf(why, 256, "cannot %s %s: %s", what, where, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static int bind_to(const struct sockaddr *address, socklen_t length, const char *where,
                   char why[256])
{
    int on = 1, off = 0;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return give_up(fd, where, "make a socket for", why);
    if (address->sa_family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off); /* ":6081" is IPv4 too */
    if (bind(fd, address, length) < 0)
        return give_up(fd, where, "listen on", why);
    return fd;
}

static int bind_tcp(const struct config_address *where, char why[256])
{
    char port[8];
    snprintf(port, sizeof port, "%u", where->port);
    bool everywhere = where->host == NULL || where->host[0] == '\0';
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                              .ai_family = everywhere ? AF_INET6 : AF_UNSPEC };
    struct addrinfo *list = NULL;
    int error = getaddrinfo(everywhere ? NULL : where->host, port, &hints, &list);
    if (error != 0) {
        snprintf(why, 256, "cannot resolve %s: %s", where->host, gai_strerror(error));
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *i = list; i != NULL && fd < 0; i = i->ai_next)
        fd = bind_to(i->ai_addr, i->ai_addrlen, where->text, why);
    freeaddrinfo(list);
    if (fd >= 0 || !everywhere)
        return fd;
    /* a machine without IPv6 */
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(where->port) };
    return bind_to((const struct sockaddr *)(const void *)&any, sizeof any, where->text, why);
}

/* A socket file that a killed process left is removed; one that somebody answers on is not. */
static void remove_stale(const struct sockaddr_un *at)
{
    struct stat st;
    if (lstat(at->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (connect(fd, (const struct sockaddr *)(const void *)at, sizeof *at) < 0 &&
        errno == ECONNREFUSED)
        unlink(at->sun_path);
    close(fd);
}

static int bind_unix(const struct config_address *where, char why[256])
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    if (strlen(where->path) >= sizeof at.sun_path) {
        snprintf(why, 256, "the socket's path is longer than %zu bytes", sizeof at.sun_path - 1);
        return -1;
    }
    strcpy(at.sun_path, where->path);
    remove_stale(&at);
    int fd = bind_to((const struct sockaddr *)(const void *)&at, sizeof at, where->text, why);
    /* whoever may open the file may purge: owner and group. Nobody can connect before listen(). */
    if (fd >= 0 && chmod(where->path, 0660) < 0)
        return give_up(fd, where->text, "set the rights of", why);
    return fd;
}

static char *where_of(int fd, const struct config_address *configured)
{
    struct sockaddr_storage at;
    socklen_t length = sizeof at;
    char host[NI_MAXHOST], port[NI_MAXSERV], text[NI_MAXHOST + NI_MAXSERV + 8];
    if (configured->kind == ADDRESS_UNIX)
        snprintf(text, sizeof text, "unix:%s", configured->path);
    else if (getsockname(fd, (struct sockaddr *)&at, &length) == 0 &&
             getnameinfo((struct sockaddr *)&at, length, host, sizeof host, port, sizeof port,
                         NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(text, sizeof text, strchr(host, ':') == NULL ? "%s:%s" : "[%s]:%s", host, port);
    else
        snprintf(text, sizeof text, "%s", configured->text);
    return xstrdup(text);
}

static bool listen_on(struct admin *a, const struct config_address *where, char why[256])
{
    int fd = where->kind == ADDRESS_UNIX ? bind_unix(where, why) : bind_tcp(where, why);
    if (fd < 0)
        return false;
    if (where->kind == ADDRESS_UNIX)
        a->unix_path = xstrdup(where->path);
    a->where = where_of(fd, where);
    a->listener = evconnlistener_new(
        a->base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_DISABLED,
        SOMAXCONN, fd);
    if (a->listener == NULL) {
        give_up(fd, where->text, "listen on", why);
        return false;
    }
    evconnlistener_set_error_cb(a->listener, on_accept_error);
    a->bound = evhttp_bind_listener(a->http, a->listener);
    CHECK(a->bound != NULL);
    return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct admin *a = arg;
    evhttp_del_accept_socket(a->http, a->bound);
    a->bound = NULL;
    a->drain_until_ms = clock_mono_ms() + DRAIN_MS;
    event_del(a->stop);
    on_tick(-1, EV_TIMEOUT, a);
}

static void *admin_run(void *arg)
{
    struct admin *a = arg;
    mine = a;
    stats_use(a->stats);
    cache_thread_register();
    evconnlistener_enable(a->listener);
    event_base_dispatch(a->base);
    cache_thread_unregister();
    return NULL;
}

static void admin_free(struct admin **a)
{
    struct admin *s = *a;
    if (s->context.fetches != NULL)
        explain_fetches_free(&s->context.fetches);
    if (s->http != NULL)
        evhttp_free(s->http); /* lets go of every connection, the listener too */
    if (s->base != NULL)
        sweep(s);
    if (s->unix_path != NULL)
        unlink(s->unix_path);
    if (s->tick != NULL)
        event_free(s->tick);
    if (s->stop != NULL)
        event_free(s->stop);
    if (s->base != NULL)
        event_base_free(s->base);
    if (s->stop_fd >= 0)
        close(s->stop_fd);
    free(s->unix_path);
    free(s->where);
    free(s->context.token);
    free(s->context.bound_host);
    free(s);
    *a = NULL;
}

static void set_up_http(struct admin *a)
{
    a->http = evhttp_new(a->base);
    CHECK(a->http != NULL);
    evhttp_set_max_headers_size(a->http, HEAD_BYTES_MAX);
    evhttp_set_max_body_size(a->http, BODY_BYTES_MAX);
    evhttp_set_timeout(a->http, TIMEOUT_S);
    evhttp_set_flags(
        a->http,
        EVHTTP_SERVER_LINGERING_CLOSE); /* a refused body is read away, so that the 413 arrives */
    evhttp_set_bevcb(a->http, on_connection, a);
    evhttp_set_gencb(a->http, admin_route, &a->context);
    /* all of them: route.c answers 405 where evhttp would say 501 */
    evhttp_set_allowed_methods(a->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD |
                                            EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
                                            EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
                                            EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH);
}

static struct admin *admin_new(const struct config *config, const struct admin_hooks *hooks)
{
    struct admin *a = xcalloc(1, sizeof *a);
    const struct config_address *where = &config->admin;
    a->context.hooks = *hooks;
    a->context.token = config->admin_token == NULL ? NULL : xstrdup(config->admin_token);
    a->context.bound_host =
        where->kind == ADDRESS_UNIX ? NULL : xstrdup(where->host == NULL ? "" : where->host);
    a->context.checks_host = where->kind == ADDRESS_TCP && a->context.token == NULL;
    a->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    a->base = event_base_new();
    CHECK(a->stop_fd >= 0 && a->base != NULL);
    a->tick = event_new(a->base, -1, 0, on_tick, a);
    a->stop = event_new(a->base, a->stop_fd, EV_READ, on_stop, a);
    CHECK(a->tick != NULL && a->stop != NULL && event_add(a->stop, NULL) == 0);
    a->context.fetches = explain_fetches_new(a->base);
    set_up_http(a);
    return a;
}

struct admin *admin_start(const struct config *config, const struct admin_hooks *hooks,
                          char why[256])
{
    const struct config_address *where = &config->admin;
    bool has_token = config->admin_token != NULL && config->admin_token[0] != '\0';
    /* config says so too, with the line; this is the last door */
    if (where->kind == ADDRESS_TCP && !has_token &&
        !admin_address_is_loopback(where->host == NULL ? "" : where->host)) {
        snprintf(why, 256, "%s is not a loopback address: set admin.token", where->text);
        return NULL;
    }
    struct admin *a = admin_new(config, hooks);
    a->stats = stats_new("admin");
    if (!listen_on(a, where, why)) {
        admin_free(&a);
        return NULL;
    }
    sigset_t all, before;
    sigfillset(&all); /* signals are for the main thread */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&a->thread, NULL, admin_run, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        snprintf(why, 256, "cannot start the admin thread: %s", strerror(error));
        admin_free(&a);
        return NULL;
    }
    pthread_setname_np(a->thread, "larder-admin");
    return a;
}

const char *admin_where(const struct admin *a)
{
    return a->where;
}

void admin_stop(struct admin **a)
{
    if (*a == NULL)
        return;
    uint64_t one = 1;
    ssize_t n = write((*a)->stop_fd, &one, sizeof one);
    (void)n; /* an eventfd takes a one */
    pthread_join((*a)->thread, NULL);
    admin_free(a);
}
