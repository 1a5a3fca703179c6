/* proxy/listener.c: see listener.h.
 *
 * At a limit a new connection is taken and told so (503, Retry-After) rather than left in the
 * queue. When descriptors are out even that is not possible: a reserve descriptor is given up for a
 * moment to take and close one; the listener then rests until the next tick, so nothing spins.
 */
#include "proxy/listener.h"

#include "base/log.h"
#include "proxy/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 4096, ACCEPT_BATCH = 64 };

struct listener {
    struct listener *next;
    struct worker *worker;
    struct event *event;
    int fd;
    bool is_unix, is_resting;
    char *unlink_path; /* the one that bound a unix socket removes it */
};

/* ---- per-address counts ---------------------------------------------------------------------- */

enum { ADDRESS_SLOTS = 16384, ADDRESS_LOCKS = 64 };

struct address_entry {
    struct address_entry *next;
    uint8_t bytes[16];
    uint32_t count;
};

struct address_table {
    pthread_mutex_t locks[ADDRESS_LOCKS];
    struct address_entry *slots[ADDRESS_SLOTS];
};

struct address_table *address_table_new(void)
{
    struct address_table *t = xcalloc(1, sizeof *t);
    for (unsigned i = 0; i < ADDRESS_LOCKS; i++)
        pthread_mutex_init(&t->locks[i], NULL);
    return t;
}

void address_table_free(struct address_table **t)
{
    for (unsigned i = 0; i < ADDRESS_SLOTS; i++)
        CHECK((*t)->slots[i] == NULL);
    free(*t);
    *t = NULL;
}

/* One client has a /64 of IPv6 (RFC 6177): counted as one. */
static void address_key(const struct peer *p, uint8_t key[16])
{
    memcpy(key, p->bytes, 16);
    if (peer_is_v6(p))
        memset(key + 8, 0, 8);
}

static unsigned address_slot(const uint8_t key[16])
{
    uint32_t h = 2166136261u; /* spread, not defence: each slot is a short list */
    for (unsigned i = 0; i < 16; i++)
        h = (h ^ key[i]) * 16777619u;
    return (h ^ h >> 16) % ADDRESS_SLOTS;
}

bool address_table_add(struct address_table *t, const struct peer *p, uint32_t max)
{
    uint8_t key[16];
    address_key(p, key);
    unsigned slot = address_slot(key);
    pthread_mutex_lock(&t->locks[slot % ADDRESS_LOCKS]);
    struct address_entry *e = t->slots[slot];
    while (e != NULL && memcmp(e->bytes, key, 16) != 0)
        e = e->next;
    if (e == NULL) {
        e = xcalloc(1, sizeof *e);
        memcpy(e->bytes, key, 16);
        e->next = t->slots[slot];
        t->slots[slot] = e;
    }
    bool fits = e->count < max;
    e->count += fits;
    pthread_mutex_unlock(&t->locks[slot % ADDRESS_LOCKS]);
    return fits;
}

void address_table_remove(struct address_table *t, const struct peer *p)
{
    uint8_t key[16];
    address_key(p, key);
    unsigned slot = address_slot(key);
    pthread_mutex_lock(&t->locks[slot % ADDRESS_LOCKS]);
    struct address_entry **at = &t->slots[slot];
    while (*at != NULL && memcmp((*at)->bytes, key, 16) != 0)
        at = &(*at)->next;
    CHECK(*at != NULL && (*at)->count > 0);
    if (--(*at)->count == 0) {
        struct address_entry *gone = *at;
        *at = gone->next;
        free(gone);
    }
    pthread_mutex_unlock(&t->locks[slot % ADDRESS_LOCKS]);
}

/* ---- binding
 * -----------------------------------------------------------------------------------------------------
 */

static bool fail(char why[256], const struct config_address *a, const char *what)
{
    snprintf(why, 256, "listen: %s: %s: %s", a->text, what, strerror(errno));
    return false;
}

static void prepend(struct listener **list, int fd, bool is_unix, const char *path)
{
    struct listener *l = xcalloc(1, sizeof *l);
    l->fd = fd;
    l->is_unix = is_unix;
    l->unlink_path = path == NULL ? NULL : xstrdup(path);
    l->next = *list;
    *list = l;
}

/* A socket file that nobody serves any more is in the way; one that answers is not ours to take. */
static bool is_stale_socket(const struct sockaddr_un *at)
{
    struct stat s;
    if (stat(at->sun_path, &s) != 0 || !S_ISSOCK(s.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool stale = fd >= 0 && connect(fd, (const void *)at, sizeof *at) != 0 && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return stale;
}

static bool bind_unix(const struct config_address *a, struct listener **list, char why[256])
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    if (strlen(a->path) >= sizeof at.sun_path) {
        errno = ENAMETOOLONG;
        return fail(why, a, "cannot bind");
    }
    strcpy(at.sun_path, a->path);
    if (is_stale_socket(&at))
        unlink(at.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (void *)&at, sizeof at) != 0 || chmod(at.sun_path, 0666) != 0 ||
        listen(fd, BACKLOG) != 0) {
        fail(why, a, "cannot bind");
        if (fd >= 0)
            close(fd);
        return false;
    }
    prepend(list, fd, true, a->path);
    return true;
}

static bool bind_one(const struct config_address *a, const struct addrinfo *info,
                     struct listener **list, char why[256])
{
    int on = 1, fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(why, a, "cannot make a socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (info->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, info->ai_addr, info->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        fail(why, a, "cannot bind");
        close(fd);
        return false;
    }
    prepend(list, fd, false, NULL);
    return true;
}

static bool bind_tcp(const struct config_address *a, struct listener **list, char why[256])
{
    char port[8];
    bool everywhere = a->host[0] == '\0';
    struct addrinfo hints = { .ai_family = AF_UNSPEC,
                              .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_PASSIVE | AI_NUMERICSERV },
                    *all;
    snprintf(port, sizeof port, "%u", a->port);
    int error = getaddrinfo(everywhere ? NULL : a->host, port, &hints, &all);
    if (error != 0) {
        snprintf(why, 256, "listen: %s: %s", a->text, gai_strerror(error));
        return false;
    }
    unsigned bound = 0;
    for (const struct addrinfo *i = all; i != NULL; i = i->ai_next) {
        if (bind_one(a, i, list, why))
            bound++;
        else if (!(everywhere && i->ai_family == AF_INET6 && errno == EAFNOSUPPORT)) {
            bool lacks_v6 =
                everywhere && i->ai_family == AF_INET6; /* a machine without IPv6 serves IPv4 */
            if (!lacks_v6) {
                freeaddrinfo(all);
                return false;
            }
        }
    }
    freeaddrinfo(all);
    return bound > 0;
}

bool listener_bind(const struct config *config, const struct listener *first,
                   struct listener **list, char why[256])
{
    for (const struct listener *l = first; l != NULL; l = l->next)
        if (l->is_unix)
            prepend(list, fcntl(l->fd, F_DUPFD_CLOEXEC, 3), true, NULL);
    for (size_t i = 0; i < config->listen_count; i++) {
        const struct config_address *a = &config->listen[i];
        bool ok = a->kind == ADDRESS_TCP ? bind_tcp(a, list, why)
                                         : first != NULL || bind_unix(a, list, why);
        if (!ok)
            return false;
    }
    return true;
}

static void free_one(struct listener *l)
{
    if (l->event != NULL)
        event_free(l->event);
    close(l->fd);
    if (l->unlink_path != NULL)
        unlink(l->unlink_path);
    free(l->unlink_path);
    free(l);
}

void listener_free_list(struct listener **list)
{
    while (*list != NULL) {
        struct listener *next = (*list)->next;
        free_one(*list);
        *list = next;
    }
}

/* ---- accepting
 * ---------------------------------------------------------------------------------------------------
 */

static const char busy[] =
    "HTTP/1.1 503 Service Unavailable\r\nServer: larder\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    "Cache-Control: no-store\r\nCache-Status: larder; detail=overloaded\r\nConnection: "
    "close\r\n\r\n";

static void turn_away(int fd, _Atomic int64_t *counter)
{
    char drop[2048];
    stat_add(counter, 1);
    /* what has come is read, so that the close does not turn into a reset that eats the answer */
    ssize_t got = recv(fd, drop, sizeof drop, MSG_DONTWAIT),
            sent = send(fd, busy, sizeof busy - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)got;
    (void)sent;
    close(fd);
}

static void rest(struct listener *l)
{
    l->is_resting = true;
    event_del(l->event);
}

/* No descriptor is left: one waiting client is turned away by means of the reserve, the others wait
 * for the next tick. */
static void out_of_descriptors(struct listener *l)
{
    struct worker *w = l->worker;
    log_warn("no descriptors left (%s): connections are refused until some close", strerror(errno));
    if (w->reserve_fd >= 0) {
        close(w->reserve_fd);
        int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            turn_away(fd, &w->stats->client_refused_descriptors);
        w->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    rest(l);
}

static void take(struct listener *l, int fd, const struct sockaddr_storage *from)
{
    struct worker *w = l->worker;
    struct house *house = w->house;
    const struct config *config = w->snapshot->config;
    struct peer peer;
    peer_from(&peer, (const void *)from);
    uint32_t limit = atomic_load_explicit(&house->client_limit, memory_order_relaxed);
    bool is_asked = config->connection_max > 0 && config->connection_max < limit;
    if (is_asked)
        limit = config->connection_max;
    if (atomic_fetch_add_explicit(&house->client_count, 1, memory_order_relaxed) >= limit) {
        atomic_fetch_sub_explicit(&house->client_count, 1, memory_order_relaxed);
        turn_away(fd, is_asked ? &w->stats->client_refused_limit
                               : &w->stats->client_refused_descriptors);
        return;
    }
    bool counted = config->address_connection_max > 0 && !l->is_unix;
    if (counted && !address_table_add(house->addresses, &peer, config->address_connection_max)) {
        atomic_fetch_sub_explicit(&house->client_count, 1, memory_order_relaxed);
        turn_away(fd, &w->stats->client_refused_address);
        return;
    }
    int on = 1;
    if (!l->is_unix)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    stat_add(&w->stats->client_accepted, 1);
    conn_new(w, fd, &peer, counted);
}

static void on_listener(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct listener *l = arg;
    for (unsigned i = 0; i < ACCEPT_BATCH;
         i++) { /* level-triggered: what is left comes with the next turn */
        struct sockaddr_storage from;
        socklen_t length = sizeof from;
        int client = accept4(fd, (void *)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client >= 0) {
            if (length < sizeof(sa_family_t))
                from.ss_family = AF_UNIX;
            take(l, client, &from);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            out_of_descriptors(l);
        if (errno == ECONNABORTED || errno == EINTR || errno == EPERM || errno == EPROTO)
            continue;
        return;
    }
}

void listener_open(struct worker *w)
{
    for (struct listener *l = w->listeners; l != NULL; l = l->next) {
        l->worker = w;
        l->event = event_new(w->base, l->fd, EV_READ | EV_PERSIST, on_listener, l);
        CHECK(l->event != NULL && event_add(l->event, NULL) == 0);
    }
}

void listener_close(struct worker *w)
{
    for (struct listener *l = w->listeners; l != NULL; l = l->next)
        if (l->worker != NULL && !l->is_resting)
            on_listener(l->fd, EV_READ, l);
    listener_free_list(&w->listeners);
}

void listener_tick(struct worker *w)
{
    for (struct listener *l = w->listeners; l != NULL; l = l->next)
        if (l->is_resting) {
            l->is_resting = false;
            event_add(l->event, NULL);
        }
}
