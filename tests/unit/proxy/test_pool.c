/* Connections to servers and the pool of idle ones, over real loopback sockets and a loop that the
 * test turns. */
#include "base/clock.h"
#include "proxy/origin_internal.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { IDLE_MAX = 3, IDLE_MS = 4000 };

/* The server's side, the loop's, and what stats say at the start. */
struct fixture {
    struct event_base *base;
    struct origin_pool *pool;
    struct origins *set;
    struct origin_server *server;
    int listening;
    struct stats_sum before;
    char dir[64], path[96];
};

static struct stats_sum counted(const struct fixture *f)
{
    struct stats_sum now;
    stats_sum_all(&now);
    now.origin_connects -= f->before.origin_connects;
    now.origin_reused -= f->before.origin_reused;
    now.origin_dead_idle -= f->before.origin_dead_idle;
    now.origin_open -= f->before.origin_open;
    now.origin_idle -= f->before.origin_idle;
    return now;
}

static void make_set(struct fixture *f, struct config_address *servers, size_t count)
{
    struct config_origin origin = { .name = (char *)"app",
                                    .kind = ORIGIN_SERVERS,
                                    .servers = servers,
                                    .server_count = count,
                                    .idle_timeout_ms = IDLE_MS,
                                    .idle_count = IDLE_MAX,
                                    .resolve_ttl_ms = 3600000 };
    struct config config = { .origins = &origin, .origin_count = 1 };
    f->set = origins_new_with(&config, NULL, resolve_lookup);
    f->server = origin_choose(origins_find(f->set, &origin), NULL);
    assert_non_null(f->server);
}

static void begin(struct fixture *f)
{
    *f = (struct fixture){ .listening = -1 };
    stats_sum_all(&f->before);
    struct event_config *options = event_config_new();
    event_config_require_features(options, EV_FEATURE_ET);
    f->base = event_base_new_with_config(options);
    event_config_free(options);
    assert_non_null(f->base);
    f->pool = origin_pool_new(f->base);
}

static struct fixture *begin_tcp(struct fixture *f)
{
    begin(f);
    f->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    assert_int_equal(bind(f->listening, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(f->listening, 64), 0);
    assert_int_equal(getsockname(f->listening, (struct sockaddr *)&at, &size), 0);
    struct config_address server = { .kind = ADDRESS_TCP,
                                     .host = (char *)"127.0.0.1",
                                     .port = ntohs(at.sin_port) };
    make_set(f, &server, 1);
    return f;
}

static struct fixture *begin_unix(struct fixture *f, int backlog)
{
    begin(f);
    snprintf(f->dir, sizeof f->dir, "/tmp/larder-pool-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof f->path, "%s/s", f->dir);
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    snprintf(at.sun_path, sizeof at.sun_path, "%s", f->path);
    f->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->listening, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(f->listening, backlog), 0);
    struct config_address server = { .kind = ADDRESS_UNIX, .path = f->path };
    make_set(f, &server, 1);
    return f;
}

/* Nothing may be left: no descriptor, no count. */
static void end(struct fixture *f)
{
    origin_pool_free(&f->pool);
    struct stats_sum left = counted(f);
    assert_int_equal(left.origin_open, 0);
    assert_int_equal(left.origin_idle, 0);
    origin_server_unref(&f->server);
    origins_free(&f->set);
    event_base_free(f->base);
    if (f->listening >= 0)
        close(f->listening);
    if (f->path[0] != '\0') {
        unlink(f->path);
        rmdir(f->dir);
    }
}

/* ---- driving --------------------------------------------------------------------------------- */

struct watch {
    unsigned events;
    short what;
    bool closes;
};

static void on_event(struct origin_conn *c, short what)
{
    struct watch *w = c->user;
    w->events++;
    w->what |= what;
    if (w->closes)
        origin_conn_close(&c);
}

static void listen_to(struct origin_conn *c, struct watch *w)
{
    *w = (struct watch){ 0 };
    c->user = w;
    c->on_event = on_event;
}

/* Turns the loop until `what` was told. */
static void turn_until(struct fixture *f, struct watch *w, short what)
{
    while (!(w->what & what))
        assert_true(event_base_loop(f->base, EVLOOP_ONCE) >= 0);
}

static void turn(struct fixture *f)
{
    assert_true(event_base_loop(f->base, EVLOOP_NONBLOCK) >= 0);
}

static struct origin_conn *open_one(struct fixture *f, struct watch *w)
{
    enum reason why = REASON_FRESH;
    struct origin_conn *c = origin_conn_open(f->pool, f->server, &why);
    assert_non_null(c);
    listen_to(c, w);
    return c;
}

/* A connection that is there, and the server's end of it. */
static struct origin_conn *connected(struct fixture *f, struct watch *w, int *peer)
{
    struct origin_conn *c = open_one(f, w);
    turn_until(f, w, EV_WRITE);
    assert_int_equal(origin_conn_error(c), 0);
    *peer = accept(f->listening, NULL, NULL);
    assert_true(*peer >= 0);
    return c;
}

static void wait_readable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    assert_int_equal(poll(&p, 1, 10000), 1);
}

static bool is_closed(int peer)
{
    char byte;
    wait_readable(peer);
    return recv(peer, &byte, 1, 0) <= 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_reuse(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    int peer;
    begin_tcp(&f);
    assert_null(origin_pool_take_conn(f.pool, f.server));
    struct origin_conn *c = connected(&f, &w, &peer);
    struct origin_conn *first = c;
    for (int i = 0; i < 3; i++) {
        char bytes[8];
        assert_int_equal(send(c->fd, "ask", 3, 0), 3);
        assert_int_equal(recv(peer, bytes, sizeof bytes, 0), 3);
        w.what = 0;
        assert_int_equal(send(peer, "answer", 6, 0), 6);
        turn_until(&f, &w, EV_READ); /* the same event serves each time */
        assert_true(c->can_read);
        assert_int_equal(recv(c->fd, bytes, sizeof bytes, 0), 6);
        origin_pool_give_conn(f.pool, &c);
        assert_null(c);
        turn(&f);
        assert_int_equal(counted(&f).origin_idle, 1);
        c = origin_pool_take_conn(f.pool, f.server);
        assert_ptr_equal(c, first);
        assert_false(c->can_read);
        assert_true(c->can_write);
        listen_to(c, &w);
    }
    struct stats_sum n = counted(&f);
    assert_int_equal(n.origin_connects, 1);
    assert_int_equal(n.origin_reused, 3);
    assert_int_equal(n.origin_dead_idle, 0);
    assert_int_equal(n.origin_open, 1);
    assert_int_equal(n.origin_idle, 0);
    origin_conn_close(&c);
    assert_null(c);
    assert_true(is_closed(peer));
    close(peer);
    end(&f);
}

static void test_newest_first(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    int peers[2];
    begin_tcp(&f);
    struct origin_conn *a = connected(&f, &w, &peers[0]), *b = connected(&f, &w, &peers[1]);
    struct origin_conn *newest = b;
    origin_pool_give_conn(f.pool, &a);
    origin_pool_give_conn(f.pool, &b);
    struct origin_conn *c = origin_pool_take_conn(f.pool, f.server);
    assert_ptr_equal(c, newest);
    origin_conn_close(&c);
    close(peers[0]);
    close(peers[1]);
    end(&f);
}

static void test_server_ends_an_idle_one(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    int peer;
    begin_tcp(&f);
    struct origin_conn *c = connected(&f, &w, &peer);
    int fd = c->fd;
    origin_pool_give_conn(f.pool, &c);
    close(peer);
    wait_readable(fd);
    turn(&f); /* at once, not at the next use */
    struct stats_sum n = counted(&f);
    assert_int_equal(n.origin_dead_idle, 1);
    assert_int_equal(n.origin_open, 0);
    assert_int_equal(n.origin_idle, 0);
    assert_null(origin_pool_take_conn(f.pool, f.server));
    end(&f);
}

static void test_server_resets_an_idle_one(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    int peer;
    begin_tcp(&f);
    struct origin_conn *c = connected(&f, &w, &peer);
    int fd = c->fd;
    origin_pool_give_conn(f.pool, &c);
    struct linger hard = { .l_onoff = 1 };
    setsockopt(peer, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(peer);
    wait_readable(fd);
    turn(&f);
    assert_int_equal(counted(&f).origin_dead_idle, 1);
    assert_int_equal(counted(&f).origin_open, 0);
    end(&f);
}

static void test_garbage_on_an_idle_one(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    int peer;
    begin_tcp(&f);
    struct origin_conn *c = connected(&f, &w, &peer);
    int fd = c->fd;
    origin_pool_give_conn(f.pool, &c);
    assert_int_equal(send(peer, "HTTP/1.1 408 ", 13, 0), 13);
    wait_readable(fd);
    turn(&f);
    assert_int_equal(counted(&f).origin_dead_idle, 1);
    assert_true(is_closed(peer));
    close(peer);
    end(&f);
}

/* What the loop has not told yet is found by the peek. */
static void test_take_looks_before_it_hands_out(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    int peers[3];
    struct origin_conn *c[3];
    begin_tcp(&f);
    for (int i = 0; i < 3; i++)
        c[i] = connected(&f, &w, &peers[i]);
    struct origin_conn *good = c[0];
    int fds[3] = { c[0]->fd, c[1]->fd, c[2]->fd };
    for (int i = 0; i < 3; i++)
        origin_pool_give_conn(f.pool, &c[i]);
    assert_int_equal(send(peers[1], "x", 1, 0), 1);
    close(peers[2]);
    wait_readable(fds[1]);
    wait_readable(fds[2]);
    struct origin_conn *got = origin_pool_take_conn(f.pool, f.server);
    assert_ptr_equal(got, good);
    assert_int_equal(counted(&f).origin_dead_idle, 2);
    assert_int_equal(counted(&f).origin_open, 1);
    origin_conn_close(&got);
    close(peers[0]);
    close(peers[1]);
    end(&f);
}

/* The end came with the last answer, in one event: a peek at giving is not needed to know it. */
static void test_ended_while_in_use_is_not_kept(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    int peer;
    char bytes[8];
    begin_tcp(&f);
    struct origin_conn *c = connected(&f, &w, &peer);
    int fd = c->fd;
    turn(&f);
    w.what = 0;
    assert_int_equal(send(peer, "answer", 6, 0), 6);
    close(peer);
    do { /* until the end has come, too */
        struct pollfd p = { .fd = fd, .events = POLLRDHUP };
        poll(&p, 1, 10000);
        if (p.revents & POLLRDHUP)
            break;
    } while (true);
    turn_until(&f, &w, EV_READ);
    assert_int_equal(recv(fd, bytes, 6, 0), 6); /* and no more: the fetch knows the length */
    origin_pool_give_conn(f.pool, &c);
    assert_null(c);
    assert_int_equal(counted(&f).origin_idle, 0);
    assert_int_equal(counted(&f).origin_open, 0);
    end(&f);
}

/* An edge for the other direction, or for bytes that were read already, is no sign of death. */
static void test_stray_edges_do_no_harm(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    int peer;
    char byte;
    begin_tcp(&f);
    struct origin_conn *c = connected(&f, &w, &peer);
    int fd = c->fd;
    assert_int_equal(send(peer, "x", 1, 0), 1);
    wait_readable(fd);
    assert_int_equal(recv(fd, &byte, 1, 0), 1); /* read before the loop tells */
    origin_pool_give_conn(f.pool, &c);
    turn(&f);
    turn(&f);
    assert_int_equal(counted(&f).origin_idle, 1);
    assert_int_equal(w.what & EV_READ, 0);
    close(peer);
    end(&f);
}

static void test_idle_timeout(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    int peer;
    begin_tcp(&f);
    struct origin_conn *c = connected(&f, &w, &peer);
    int64_t before_ms = clock_mono_ms();
    origin_pool_give_conn(f.pool, &c);
    int64_t after_ms = clock_mono_ms();
    origin_pool_tick(f.pool, before_ms + IDLE_MS - 1);
    assert_int_equal(counted(&f).origin_idle, 1);
    origin_pool_tick(f.pool, after_ms + IDLE_MS);
    assert_int_equal(counted(&f).origin_idle, 0);
    assert_int_equal(counted(&f).origin_dead_idle, 0); /* our doing, not the server's */
    assert_true(is_closed(peer));
    origin_pool_tick(f.pool, after_ms + 3600000); /* the empty list goes, too */
    close(peer);
    end(&f);
}

static void test_no_more_than_idle_connections(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    int peers[IDLE_MAX + 1];
    struct origin_conn *c[IDLE_MAX + 1];
    begin_tcp(&f);
    for (int i = 0; i <= IDLE_MAX; i++)
        c[i] = connected(&f, &w, &peers[i]);
    for (int i = 0; i <= IDLE_MAX; i++)
        origin_pool_give_conn(f.pool, &c[i]);
    assert_int_equal(counted(&f).origin_idle, IDLE_MAX);
    assert_true(is_closed(peers[IDLE_MAX]));
    origin_pool_close_idle(f.pool);
    assert_int_equal(counted(&f).origin_idle, 0);
    for (int i = 0; i <= IDLE_MAX; i++)
        close(peers[i]);
    end(&f);
}

static void test_closing_within_its_own_event(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    begin_tcp(&f);
    open_one(&f, &w);
    w.closes = true;
    turn_until(&f, &w, EV_WRITE);
    turn(&f);
    assert_int_equal(w.events, 1);
    assert_int_equal(counted(&f).origin_open, 0);
    end(&f);
}

static void test_refused(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    begin_tcp(&f);
    close(f.listening);
    f.listening = -1;
    struct origin_conn *c = open_one(&f, &w);
    turn_until(&f, &w, EV_WRITE);
    assert_int_equal(origin_conn_error(c), ECONNREFUSED);
    assert_int_equal(origin_conn_error(c), ECONNREFUSED); /* asked twice: still so */
    origin_conn_close(&c);
    end(&f);
}

static void test_refused_at_once(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    begin_unix(&f, 8);
    unlink(f.path); /* connect() says ENOENT by itself; the caller learns it like any refusal */
    struct origin_conn *c = open_one(&f, &w);
    turn_until(&f, &w, EV_WRITE);
    assert_int_equal(origin_conn_error(c), ENOENT);
    origin_conn_close(&c);
    end(&f);
}

static void test_unix_socket(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    int peer;
    begin_unix(&f, 8);
    struct origin_conn *c = connected(&f, &w, &peer);
    origin_pool_give_conn(f.pool, &c);
    turn(&f);
    c = origin_pool_take_conn(f.pool, f.server);
    assert_non_null(c);
    listen_to(c, &w);
    assert_int_equal(send(peer, "x", 1, 0), 1);
    turn_until(&f, &w, EV_READ);
    origin_conn_close(&c);
    close(peer);
    end(&f);
}

/* A unix socket's queue is short and connect() does not wait for it: it is tried again until there
 * is room. */
static void test_unix_socket_with_a_full_queue(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w[3];
    struct origin_conn *c[3];
    begin_unix(&f, 0); /* room for one */
    for (int i = 0; i < 3; i++)
        c[i] = open_one(&f, &w[i]);
    turn_until(&f, &w[0], EV_WRITE);
    assert_int_equal(w[2].events, 0);
    int peers[3];
    for (int i = 0; i < 3; i++) {
        wait_readable(f.listening);
        peers[i] = accept(f.listening, NULL, NULL);
        while (i < 2 && w[1].events + w[2].events <= (unsigned)i)
            event_base_loop(f.base, EVLOOP_ONCE);
    }
    turn_until(&f, &w[1], EV_WRITE);
    turn_until(&f, &w[2], EV_WRITE);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(origin_conn_error(c[i]), 0);
        origin_conn_close(&c[i]);
        close(peers[i]);
    }
    /* given up while it waits for room */
    c[0] = open_one(&f, &w[0]);
    c[1] = open_one(&f, &w[1]);
    origin_conn_close(&c[1]);
    origin_conn_close(&c[0]);
    end(&f);
}

static void test_no_descriptor_is_busy(void **state)
{
    (void)state;
    struct fixture f;
    struct rlimit limit, none;
    enum reason why = REASON_FRESH;
    begin_tcp(&f);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct origin_conn *c = origin_conn_open(f.pool, f.server, &why);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_null(c);
    assert_int_equal(why, REASON_ORIGIN_BUSY);
    assert_int_equal(counted(&f).origin_connects, 0);
    end(&f);
}

/* A name with two addresses, of which one refuses, like localhost with a server on 127.0.0.1 only:
 * it costs one try, then it rests. */
static uint16_t two_addresses_port;

static bool two_addresses(const char *host, uint16_t port, struct resolve_answer *out,
                          const char **why)
{
    (void)host;
    (void)port;
    (void)why;
    out->count = 2;
    for (int i = 0; i < 2; i++) {
        out->at[i].length = sizeof(struct sockaddr_in);
        out->at[i].at.v4 =
            (struct sockaddr_in){ .sin_family = AF_INET,
                                  .sin_port = htons(two_addresses_port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (i == 0)) };
    }
    return true;
}

static void test_address_that_refuses_rests(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    begin_tcp(&f);
    two_addresses_port = ntohs(origin_server_address(f.server).at.v4.sin_port);
    struct config_address server = { .kind = ADDRESS_TCP,
                                     .host = (char *)"two.example",
                                     .port = 80 };
    struct config_origin origin = { .name = (char *)"app",
                                    .servers = &server,
                                    .server_count = 1,
                                    .idle_count = IDLE_MAX,
                                    .resolve_ttl_ms = 3600000 };
    struct config config = { .origins = &origin, .origin_count = 1 };
    struct origins *set = origins_new_with(&config, NULL, two_addresses);
    origin_server_unref(&f.server);
    f.server = origin_choose(origins_find(set, &origin), NULL);
    unsigned refused = 0;
    for (int i = 0; i < 6; i++) {
        struct origin_conn *c = open_one(&f, &w);
        turn_until(&f, &w, EV_WRITE);
        refused += origin_conn_error(c) != 0;
        origin_conn_close(&c);
    }
    assert_int_equal(refused, 1);
    origins_free(&set);
    end(&f);
}

/* The end of a worker: a fetch may let go of its connection after the pool went. */
static void test_pool_outlived_by_a_connection(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    int peer;
    begin_tcp(&f);
    struct origin_conn *c = connected(&f, &w, &peer);
    origin_pool_free(&f.pool);
    origin_conn_close(&c);
    close(peer);
    end(&f);
}

/* Idle connections hold their server beyond a reload that drops it, until they have idled too long.
 */
static void test_server_dropped_by_a_reload(void **state)
{
    (void)state;
    struct fixture f;
    struct watch w;
    int peer;
    begin_tcp(&f);
    struct origin_conn *c = connected(&f, &w, &peer);
    origin_pool_give_conn(f.pool, &c);
    origin_server_unref(&f.server);
    struct config nothing = { 0 };
    struct origins *set = origins_new(&nothing, f.set);
    origins_free(&f.set);
    f.set = set;
    turn(&f);
    assert_int_equal(counted(&f).origin_idle, 1);
    origin_pool_tick(f.pool, clock_mono_ms() + IDLE_MS);
    assert_true(is_closed(peer));
    close(peer);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_newest_first),
        cmocka_unit_test(test_server_ends_an_idle_one),
        cmocka_unit_test(test_server_resets_an_idle_one),
        cmocka_unit_test(test_garbage_on_an_idle_one),
        cmocka_unit_test(test_take_looks_before_it_hands_out),
        cmocka_unit_test(test_ended_while_in_use_is_not_kept),
        cmocka_unit_test(test_stray_edges_do_no_harm),
        cmocka_unit_test(test_idle_timeout),
        cmocka_unit_test(test_no_more_than_idle_connections),
        cmocka_unit_test(test_closing_within_its_own_event),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_at_once),
        cmocka_unit_test(test_unix_socket),
        cmocka_unit_test(test_unix_socket_with_a_full_queue),
        cmocka_unit_test(test_no_descriptor_is_busy),
        cmocka_unit_test(test_address_that_refuses_rests),
        cmocka_unit_test(test_pool_outlived_by_a_connection),
        cmocka_unit_test(test_server_dropped_by_a_reload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
