/* Sets of origins and the resolver: turns, rests, reloads, names that come and go. Names are looked
 * up by a function of the test's. */
#include "base/clock.h"
#include "proxy/origin_internal.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- what the names are ---------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned address_count; /* for every name but "…invalid"; 0: look-ups fail */
    unsigned last_byte;     /* 10.0.0.x of the first address */
    unsigned lookups, finished;
    bool is_held; /* look-ups wait */
} names = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static bool look_up(const char *host, uint16_t port, struct resolve_answer *out, const char **why)
{
    pthread_mutex_lock(&names.lock);
    names.lookups++;
    pthread_cond_broadcast(&names.changed);
    while (names.is_held)
        pthread_cond_wait(&names.changed, &names.lock);
    unsigned count = slice_has_suffix(slice_of(host), SLICE("invalid")) ? 0 : names.address_count;
    for (unsigned i = 0; i < count; i++) {
        struct sockaddr_in *v4 = &out->at[i].at.v4;
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        v4->sin_addr.s_addr = htonl(0x0a000000 + names.last_byte + i);
        out->at[i].length = sizeof *v4;
    }
    out->count = count;
    *why = "the test says so";
    names.finished++;
    pthread_cond_broadcast(&names.changed);
    pthread_mutex_unlock(&names.lock);
    return count > 0;
}

static void set_names(unsigned address_count, unsigned last_byte)
{
    pthread_mutex_lock(&names.lock);
    names.address_count = address_count;
    names.last_byte = last_byte;
    pthread_mutex_unlock(&names.lock);
}

static void hold_names(bool is_held)
{
    pthread_mutex_lock(&names.lock);
    names.is_held = is_held;
    pthread_cond_broadcast(&names.changed);
    pthread_mutex_unlock(&names.lock);
}

/* Until `more` look-ups that begin from now on have ended; the first of them may have begun before
 * a change. */
static void wait_for_lookups(unsigned more)
{
    pthread_mutex_lock(&names.lock);
    unsigned until = names.finished + more;
    while (names.finished < until)
        pthread_cond_wait(&names.changed, &names.lock);
    pthread_mutex_unlock(&names.lock);
}

/* ---- configurations -------------------------------------------------------------------------- */

enum { SERVERS_MAX = 4 };
struct made {
    struct config config;
    struct config_origin origin;
    struct config_address servers[SERVERS_MAX];
};

static void add_server(struct made *m, const char *host, uint16_t port)
{
    struct config_address *a = &m->servers[m->origin.server_count++];
    *a = (struct config_address){ .kind = port == 0 ? ADDRESS_UNIX : ADDRESS_TCP, .port = port };
    *(port == 0 ? &a->path : &a->host) = (char *)host;
    m->origin.servers = m->servers;
    m->config.origins = &m->origin;
    m->config.origin_count = 1;
}

static void make(struct made *m, const char *name)
{
    *m = (struct made){ .origin = { .name = (char *)name,
                                    .kind = ORIGIN_SERVERS,
                                    .idle_timeout_ms = 4000,
                                    .idle_count = 8,
                                    .resolve_ttl_ms = 3600000 } };
}

static const char *chosen(struct origin *o, const struct origin_server *not_this, int64_t now_ms)
{
    static char host[64];
    struct origin_server *s = origin_choose_at(o, not_this, now_ms);
    snprintf(host, sizeof host, "%s", s == NULL ? "none" : origin_server_host(s));
    origin_server_unref(&s);
    return host;
}

static struct origin_server *server_called(struct origin *o, const char *host)
{
    for (int i = 0; i < 100; i++) {
        struct origin_server *s = origin_choose(o, NULL);
        if (s != NULL && strcmp(origin_server_host(s), host) == 0)
            return s;
        origin_server_unref(&s);
    }
    return NULL;
}

static uint32_t v4_of(const struct origin_address *a)
{
    assert_int_equal(a->length, sizeof(struct sockaddr_in));
    return ntohl(a->at.v4.sin_addr.s_addr);
}

struct seen {
    size_t count;
    struct origin_figures at[8];
};

static void see(void *to, const struct origin_figures *f)
{
    struct seen *seen = to;
    seen->at[seen->count++] = *f;
}

/* ---- choosing -------------------------------------------------------------------------------- */

static void test_round_robin(void **state)
{
    (void)state;
    struct made m;
    make(&m, "app");
    add_server(&m, "10.0.0.1", 8080);
    add_server(&m, "10.0.0.2", 8080);
    add_server(&m, "::1", 80);
    struct origins *set = origins_new_with(&m.config, NULL, look_up);
    struct origin *o = origins_find(set, &m.origin);
    const char *expected[] = { "10.0.0.1:8080", "10.0.0.2:8080", "[::1]" };
    for (unsigned i = 0; i < 9; i++)
        assert_string_equal(chosen(o, NULL, 0), expected[i % 3]);
    pthread_mutex_lock(&names.lock);
    assert_int_equal(names.lookups, 0); /* literal addresses are not looked up */
    pthread_mutex_unlock(&names.lock);
    origins_free(&set);
}

static void test_refused_server_rests_for_a_second(void **state)
{
    (void)state;
    struct made m;
    make(&m, "app");
    add_server(&m, "10.0.0.1", 8080);
    add_server(&m, "10.0.0.2", 8080);
    add_server(&m, "10.0.0.3", 8080);
    struct origins *set = origins_new_with(&m.config, NULL, look_up);
    struct origin *o = origins_find(set, &m.origin);
    static const struct {
        enum reason why;
        bool rests;
    } rows[] = {
        { REASON_ORIGIN_REFUSED, true },    { REASON_ORIGIN_CONNECT_SLOW, true },
        { REASON_ORIGIN_UNRESOLVED, true }, { REASON_ORIGIN_SLOW, false },
        { REASON_ORIGIN_CUT, false },       { REASON_ORIGIN_BUSY, false },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct origin_server *bad = server_called(o, "10.0.0.2:8080");
        origin_server_count_fault(bad, rows[i].why);
        int64_t now_ms = clock_mono_ms();
        unsigned counts[4] = { 0 };
        for (unsigned k = 0; k < 12; k++)
            counts[chosen(o, NULL, now_ms)[7] - '0']++;
        assert_int_equal(counts[2], rows[i].rests ? 0 : 4);
        assert_int_equal(counts[1], counts[3]); /* its neighbour does not get all of its share */
        bool is_back = false;
        for (unsigned k = 0; k < 3; k++)
            is_back |= strcmp(chosen(o, NULL, now_ms + ORIGIN_REST_MS + 1), "10.0.0.2:8080") == 0;
        assert_true(is_back);
        origin_server_count_head(bad, 100); /* it answers: its rest ends */
        origin_server_unref(&bad);
        struct origin_server *again = server_called(o, "10.0.0.2:8080");
        assert_non_null(again);
        origin_server_unref(&again);
    }
    origins_free(&set);
}

static void test_second_try_goes_elsewhere(void **state)
{
    (void)state;
    struct made m;
    make(&m, "app");
    add_server(&m, "10.0.0.1", 8080);
    struct origins *set = origins_new_with(&m.config, NULL, look_up);
    struct origin *o = origins_find(set, &m.origin);
    struct origin_server *first = origin_choose(o, NULL);
    assert_string_equal(chosen(o, first, 0), "10.0.0.1:8080"); /* there is no elsewhere */
    origin_server_count_fault(first, REASON_ORIGIN_REFUSED);
    assert_string_equal(chosen(o, NULL, 0),
                        "10.0.0.1:8080"); /* all of them rest: tried all the same */
    origin_server_unref(&first);
    origins_free(&set);

    add_server(&m, "10.0.0.2", 8080);
    set = origins_new_with(&m.config, NULL, look_up);
    o = origins_find(set, &m.origin);
    first = server_called(o, "10.0.0.1:8080");
    for (unsigned i = 0; i < 4; i++)
        assert_string_equal(chosen(o, first, 0), "10.0.0.2:8080");
    struct origin_server *second = server_called(o, "10.0.0.2:8080");
    origin_server_count_fault(second, REASON_ORIGIN_REFUSED);
    assert_string_equal(chosen(o, first, clock_mono_ms()),
                        "10.0.0.2:8080"); /* even one that rests, before the same again */
    origin_server_unref(&first);
    origin_server_unref(&second);
    origins_free(&set);
}

static void test_same_server_twice_has_two_turns(void **state)
{
    (void)state;
    struct made m;
    make(&m, "app");
    add_server(&m, "10.0.0.1", 80);
    add_server(&m, "10.0.0.1", 80);
    add_server(&m, "10.0.0.2", 80);
    struct origins *set = origins_new_with(&m.config, NULL, look_up);
    struct origin *o = origins_find(set, &m.origin);
    unsigned first = 0;
    for (unsigned i = 0; i < 9; i++)
        first += strcmp(chosen(o, NULL, 0), "10.0.0.1") == 0;
    assert_int_equal(first, 6);
    struct seen seen = { 0 };
    origins_visit(set, see, &seen);
    assert_int_equal(seen.count, 2); /* shown once */
    origins_free(&set);
}

/* ---- reloads --------------------------------------------------------------------------------- */

static void test_reload_keeps_figures(void **state)
{
    (void)state;
    struct made before, after;
    make(&before, "app");
    add_server(&before, "10.0.0.1", 8080);
    add_server(&before, "10.0.0.2", 8080);
    make(&after, "app");
    add_server(&after, "10.0.0.3", 8080);
    add_server(&after, "10.0.0.2", 8080);
    after.origin.idle_timeout_ms = 9000;
    struct origins *old = origins_new_with(&before.config, NULL, look_up);
    struct origin_server *gone = server_called(origins_find(old, &before.origin), "10.0.0.1:8080");
    struct origin_server *stays = server_called(origins_find(old, &before.origin), "10.0.0.2:8080");
    origin_server_count_request(stays);
    origin_server_count_head(stays, 1500);
    origin_server_count_open(stays, 2);
    origin_server_count_fault(stays, REASON_ORIGIN_SLOW);

    struct origins *set = origins_new(&after.config, old);
    origins_free(&old);
    assert_string_equal(origin_server_name(gone), "http://10.0.0.1:8080"); /* held beyond its set */
    origin_server_unref(&gone);
    struct origin_server *same = server_called(origins_find(set, &after.origin), "10.0.0.2:8080");
    assert_ptr_equal(same, stays);
    assert_int_equal(origin_server_idle_timeout_ms(same), 9000); /* of the newest configuration */
    origin_server_count_open(stays, -1);
    origin_server_unref(&same);
    origin_server_unref(&stays);

    struct seen seen = { 0 };
    origins_visit(set, see, &seen);
    assert_int_equal(seen.count, 2);
    assert_string_equal(seen.at[0].server, "http://10.0.0.3:8080");
    assert_int_equal(seen.at[0].requests, 0);
    assert_string_equal(seen.at[0].why, "");
    const struct origin_figures *f = &seen.at[1];
    assert_string_equal(f->origin, "app");
    assert_string_equal(f->server, "http://10.0.0.2:8080");
    assert_string_equal(f->state, "up");
    assert_string_equal(f->why, "origin-slow");
    assert_int_equal(f->requests, 1);
    assert_int_equal(f->faults, 1);
    assert_int_equal(f->open, 1);
    assert_int_equal(f->head_us_sum, 1500);
    assert_int_equal(f->head_count, 1);
    assert_true(f->last_fault_wall_s > 0);
    origins_free(&set);
}

static void test_another_origin_does_not_inherit(void **state)
{
    (void)state;
    struct made before, after;
    make(&before, "app");
    add_server(&before, "10.0.0.1", 8080);
    make(&after, "other");
    add_server(&after, "10.0.0.1", 8080);
    struct origins *old = origins_new_with(&before.config, NULL, look_up);
    struct origin_server *s = origin_choose(origins_find(old, &before.origin), NULL);
    struct origins *set = origins_new(&after.config, old);
    struct origin_server *other = origin_choose(origins_find(set, &after.origin), NULL);
    assert_ptr_not_equal(s, other);
    assert_null(origins_find(set, &before.origin)); /* by name */
    origin_server_unref(&s);
    origin_server_unref(&other);
    origins_free(&old);
    origins_free(&set);
}

static void test_figures_of_a_directory_and_of_states(void **state)
{
    (void)state;
    struct config_address servers[] = {
        { .kind = ADDRESS_TCP,
          .host = (char *)"10.0.0.1",
          .port = 80,
          .text = (char *)"http://10.0.0.1" },
        { .kind = ADDRESS_TCP, .host = (char *)"name.invalid", .port = 80 }
    };
    struct config_origin origins[] = {
        { .name = (char *)"files", .kind = ORIGIN_FILES, .root = (char *)"/srv" },
        { .name = (char *)"app",
          .kind = ORIGIN_SERVERS,
          .servers = servers,
          .server_count = 2,
          .resolve_ttl_ms = 3600000 }
    };
    struct config config = { .origins = origins, .origin_count = 2 };
    struct origins *set = origins_new_with(&config, NULL, look_up);
    struct origin_server *s = origin_choose(origins_find(set, &origins[1]), NULL);
    origin_server_count_fault(s, REASON_ORIGIN_REFUSED);
    origin_server_unref(&s);
    struct seen seen = { 0 };
    origins_visit(set, see, &seen);
    assert_int_equal(seen.count, 3);
    assert_string_equal(seen.at[0].server, "/srv");
    assert_string_equal(seen.at[0].state, "directory");
    assert_string_equal(seen.at[1].server, "http://10.0.0.1"); /* as it was written */
    assert_string_equal(seen.at[1].state, "failing");
    assert_string_equal(seen.at[1].why, "origin-refused");
    assert_string_equal(seen.at[2].state, "unresolved");
    origins_free(&set);
}

/* ---- addresses ------------------------------------------------------------------------------- */

static void test_unix_sockets(void **state)
{
    (void)state;
    char long_path[200];
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[0] = '/';
    long_path[sizeof long_path - 1] = '\0';
    struct made m;
    make(&m, "app");
    add_server(&m, "/run/app.sock", 0);
    add_server(&m, long_path, 0); /* too long for an address: never chosen */
    struct origins *set = origins_new_with(&m.config, NULL, look_up);
    struct origin *o = origins_find(set, &m.origin);
    for (unsigned i = 0; i < 4; i++) {
        struct origin_server *s = origin_choose(o, NULL);
        assert_string_equal(origin_server_name(s), "unix:/run/app.sock");
        assert_string_equal(origin_server_host(s), "localhost");
        struct origin_address a = origin_server_address(s);
        assert_int_equal(a.at.path.sun_family, AF_UNIX);
        assert_string_equal(a.at.path.sun_path, "/run/app.sock");
        origin_server_unref(&s);
    }
    origins_free(&set);
}

static void test_addresses_take_turns_and_rest(void **state)
{
    (void)state;
    set_names(3, 1);
    struct made m;
    make(&m, "app");
    add_server(&m, "app.example", 8080);
    struct origins *set = origins_new_with(&m.config, NULL, look_up);
    struct origin_server *s = origin_choose(origins_find(set, &m.origin), NULL);
    assert_string_equal(origin_server_host(s), "app.example:8080");
    for (unsigned i = 0; i < 6; i++) {
        struct origin_address a = origin_server_address(s);
        assert_int_equal(v4_of(&a), 0x0a000001 + i % 3);
        assert_int_equal(ntohs(a.at.v4.sin_port), 8080);
    }
    struct resolve_name *n = origin_server_addresses(s);
    struct resolve_choice first = resolve_name_next(n, 1000);
    resolve_name_rest(n, first.id, 1000);
    for (unsigned i = 0; i < 6; i++)
        assert_int_not_equal(resolve_name_next(n, 1001).id, first.id);
    for (unsigned i = 0; i < 2; i++)
        resolve_name_rest(n, resolve_name_next(n, 1001).id, 1001);
    assert_int_not_equal(resolve_name_next(n, 1001).address.length,
                         0); /* all rest: tried all the same */
    bool is_back = false;
    for (unsigned i = 0; i < 3; i++)
        is_back |= resolve_name_next(n, 1000 + RESOLVE_ADDRESS_REST_MS).id == first.id;
    assert_true(is_back);
    origin_server_unref(&s);
    origins_free(&set);
}

static void test_unresolved_names(void **state)
{
    (void)state;
    set_names(1, 1);
    struct made m;
    make(&m, "app");
    add_server(&m, "name.invalid", 80);
    struct origins *set = origins_new_with(&m.config, NULL, look_up);
    assert_null(origin_choose(origins_find(set, &m.origin), NULL));
    origins_free(&set);
    add_server(&m, "name.example", 80);
    set = origins_new_with(&m.config, NULL, look_up);
    for (unsigned i = 0; i < 4; i++)
        assert_string_equal(chosen(origins_find(set, &m.origin), NULL, 0), "name.example");
    origins_free(&set);
}

static void test_last_good_addresses_stay(void **state)
{
    (void)state;
    set_names(1, 1);
    struct made m;
    make(&m, "app");
    m.origin.resolve_ttl_ms = 20;
    add_server(&m, "app.example", 80);
    struct origins *set = origins_new_with(&m.config, NULL, look_up);
    struct origin_server *s = origin_choose(origins_find(set, &m.origin), NULL);
    set_names(0, 0); /* look-ups fail from now on */
    wait_for_lookups(3);
    struct origin_address a = origin_server_address(s);
    assert_int_equal(v4_of(&a), 0x0a000001);
    set_names(1, 99);    /* it moved */
    wait_for_lookups(3); /* the second of them saw it, and was published before the third began */
    a = origin_server_address(s);
    assert_int_equal(v4_of(&a), 0x0a000063);
    struct stats_sum sum;
    stats_sum_all(&sum);
    assert_true(sum.origin_resolves > sum.origin_resolve_failed);
    assert_true(sum.origin_resolve_failed >= 2);
    origin_server_unref(&s);
    origins_free(&set);
}

static void test_reload_takes_a_new_ttl(void **state)
{
    (void)state;
    set_names(1, 1);
    struct made m;
    make(&m, "app");
    add_server(&m, "app.example", 80);
    struct origins *old = origins_new_with(&m.config, NULL, look_up);
    m.origin.resolve_ttl_ms = 20;
    struct origins *set = origins_new(&m.config, old);
    wait_for_lookups(2); /* would wait an hour */
    origins_free(&old);
    origins_free(&set);
}

/* A name that hangs holds up neither the others nor the workers, nor the end. */
static void test_a_look_up_that_hangs(void **state)
{
    (void)state;
    set_names(1, 1);
    hold_names(true);
    struct made m;
    make(&m, "app");
    add_server(&m, "slow.example", 80);
    add_server(&m, "10.0.0.9", 80);
    int64_t began_ms = clock_mono_ms();
    pthread_mutex_lock(&names.lock);
    unsigned lookups = names.lookups;
    pthread_mutex_unlock(&names.lock);
    struct resolver *r = resolver_new(look_up);
    struct resolve_name *n = resolve_name_new(r, &m.servers[0], 1000);
    resolver_wait_first(r, 50);
    assert_false(resolve_name_has_address(n));
    assert_int_equal(resolve_name_next(n, 0).address.length, 0);
    pthread_mutex_lock(&names.lock);
    while (names.lookups == lookups)
        pthread_cond_wait(&names.changed, &names.lock);
    unsigned finished = names.finished;
    pthread_mutex_unlock(&names.lock);
    resolve_name_free(&n);
    resolver_unref(&r); /* the thread is left behind */
    assert_true(clock_mono_ms() - began_ms < 5000);
    hold_names(false); /* and cleans up behind itself */
    pthread_mutex_lock(&names.lock);
    while (names.finished == finished)
        pthread_cond_wait(&names.changed, &names.lock);
    pthread_mutex_unlock(&names.lock);
}

/* For ThreadSanitizer: choosing, addresses and figures while names change and sets come and go. */
static _Atomic bool workers_end;

static void *work(void *arg)
{
    struct origin_server *s = arg;
    while (!workers_end) {
        struct origin_address a = origin_server_address(s);
        CHECK(a.length == sizeof(struct sockaddr_in));
        origin_server_count_request(s);
        origin_server_count_fault(s, REASON_ORIGIN_REFUSED);
        origin_server_count_head(s, 10);
        struct origin_server *mine = origin_server_ref(s);
        origin_server_unref(&mine);
    }
    origin_server_unref(&s);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    set_names(2, 1);
    struct made m;
    make(&m, "app");
    m.origin.resolve_ttl_ms = 20;
    add_server(&m, "app.example", 80);
    add_server(&m, "more.example", 80);
    struct origins *set = origins_new_with(&m.config, NULL, look_up);
    pthread_t threads[2];
    workers_end = false;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work,
                                        origin_choose(origins_find(set, &m.origin), NULL)),
                         0);
    for (unsigned i = 0; i < 10; i++) {
        set_names(1 + i % 4, 1 + i);
        wait_for_lookups(1);
        struct origins *next = origins_new(&m.config, set);
        struct seen seen = { 0 };
        origins_visit(next, see, &seen);
        assert_int_equal(seen.count, 2);
        origins_free(&set);
        set = next;
    }
    origins_free(&set);
    workers_end = true;
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void test_the_system_resolves_localhost(void **state)
{
    (void)state;
    struct resolve_answer answer = { 0 };
    const char *why = NULL;
    if (!resolve_lookup("localhost", 8080, &answer, &why))
        skip();
    for (size_t i = 0; i < answer.count; i++)
        for (size_t k = i + 1; k < answer.count; k++)
            assert_memory_not_equal(&answer.at[i], &answer.at[k], sizeof answer.at[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_robin),
        cmocka_unit_test(test_refused_server_rests_for_a_second),
        cmocka_unit_test(test_second_try_goes_elsewhere),
        cmocka_unit_test(test_same_server_twice_has_two_turns),
        cmocka_unit_test(test_reload_keeps_figures),
        cmocka_unit_test(test_another_origin_does_not_inherit),
        cmocka_unit_test(test_figures_of_a_directory_and_of_states),
        cmocka_unit_test(test_unix_sockets),
        cmocka_unit_test(test_addresses_take_turns_and_rest),
        cmocka_unit_test(test_unresolved_names),
        cmocka_unit_test(test_last_good_addresses_stay),
        cmocka_unit_test(test_reload_takes_a_new_ttl),
        cmocka_unit_test(test_a_look_up_that_hangs),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_the_system_resolves_localhost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
