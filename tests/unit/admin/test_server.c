/* tests/unit/admin/test_server.c: the admin port against clients that are not nice, and the
 * addresses it listens on. */
#include "tests/unit/admin/admin_help.h"

/* ---- what is not nice ------------------------------------------------------------------------ */

static void test_sizes_are_bounded(void **state)
{
    (void)state;
    struct admin *a = start(NULL);
    size_t big = 65 << 10;
    char *body = xmalloc(big + 1), *fields = xmalloc(big + 64);
    memset(body, ' ', big);
    body[big] = '\0';
    assert_answers(admin_where(a), "POST", "/purge", "", body, 413, "");
    memset(body, 'x', big);
    sprintf(fields, "X-Big: %.*s\r\n", 17 << 10, body);
    char *answer = ask(admin_where(a), "GET", "/stats", fields, "");
    assert_true(status_of(answer) == 400 || status_of(answer) == 0);
    free(answer);
    free(body);
    free(fields);
    assert_answers(admin_where(a), "GET", "/healthz", "", "", 200, "ok");
    admin_stop(&a);
}

static void test_nonsense_is_survived(void **state)
{
    (void)state;
    static const char *const nonsense[] = {
        "",
        "\r\n\r\n",
        "x",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\x16\x03\x01\x02\x01\x01",
        "PURGE / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET http://[::1 HTTP/1.1\r\n\r\n",
        "GET //..//\xff%00%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n{}",
        "POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
        "POST /purge HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{\"url\"",
        "CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /?refresh=%00&refresh HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        ": \r\n: \r\n\r\n",
    };
    struct admin *a = start(NULL);
    for (size_t i = 0; i < ARRAY_COUNT(nonsense); i++) {
        int fd = dial(admin_where(a));
        say(fd, nonsense[i], strlen(nonsense[i]));
        shutdown(fd, SHUT_WR);
        char *answer = hear(fd);
        assert_int_not_equal(status_of(answer), 500);
        free(answer);
        assert_answers(admin_where(a), "GET", "/healthz", "", "", 200, "ok");
    }
    admin_stop(&a);
}

static size_t descriptor_count(void)
{
    size_t count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* More connections than there are places: the others wait, and are answered when there is room;
 * none of it stops the rest. */
static void test_connections_are_bounded(void **state)
{
    (void)state;
    enum { MANY = 150 };
    int fds[MANY];
    struct admin *a = start(NULL);
    size_t before = descriptor_count();
    for (int i = 0; i < MANY; i++) {
        fds[i] = dial(admin_where(a));
        assert_true(fds[i] >= 0);
    }
    for (int i = 0; i < MANY; i++) {
        const char *request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
        say(fds[i], request, strlen(request));
        char *answer = hear(fds[i]);
        assert_status(answer, 200);
        free(answer);
        if (i == 0) /* the server took no more of them than it has places for */
            assert_true(descriptor_count() <= before + MANY - 1 + 64);
    }
    admin_stop(&a);
}

static void test_a_dribbling_connection_is_ended(void **state)
{
    (void)state;
    if (clock_shift == NULL)
        return;
    struct admin *a = start(NULL);
    int fd = dial(admin_where(a));
    say(fd, "GET /st", 7);
    assert_answers(admin_where(a), "GET", "/healthz", "", "", 200,
                   "ok"); /* so the first was accepted */
    *clock_shift += 31000;
    char *answer = hear(fd);
    assert_string_equal(answer, "");
    free(answer);
    admin_stop(&a);
}

/* Out of descriptors: the port waits without spinning, and goes on when there are some again. */
static void test_no_descriptor_is_left(void **state)
{
    (void)state;
    struct rlimit before, none;
    struct timespec from, to;
    const char *request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct admin *a = start(NULL);
    getrlimit(RLIMIT_NOFILE, &before);
    char *answer;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    none = (struct rlimit){ .rlim_cur = 3, .rlim_max = before.rlim_max };
    setrlimit(RLIMIT_NOFILE, &none);
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)atoi(strrchr(admin_where(a), ':') + 1)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval patience = { .tv_usec = 400000 };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    say(fd, request, strlen(request));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), -1);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_true((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000 < 200);
    patience = (struct timeval){ .tv_sec = 30 };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    answer = hear(fd);
    assert_status(answer, 200);
    free(answer);
    admin_stop(&a);
}

static void test_a_stop_does_not_wait_for_idlers(void **state)
{
    (void)state;
    struct admin *a = start(NULL);
    int fd = dial(admin_where(a));
    assert_answers(admin_where(a), "GET", "/healthz", "", "", 200, "ok");
    int64_t from = clock_mono_ms();
    admin_stop(&a);
    assert_true(clock_mono_ms() - from < 5000);
    close(fd);
}

/* ---- where it listens ------------------------------------------------------------------------ */

static void test_addresses(void **state)
{
    (void)state;
    char why[256] = "", text[32];
    struct config_address everywhere = { .kind = ADDRESS_TCP, .text = ":0", .host = "" };
    assert_null(start_at(everywhere, NULL, why));
    assert_has(why, ":0 is not a loopback address: set admin.token");
    assert_null(start_at(everywhere, "", why));
    struct admin *a = start_at(everywhere, "secret", why);
    assert_non_null(a);
    assert_answers(admin_where(a), "GET", "/stats", "Authorization: Bearer secret\r\n", "", 200,
                   "hit_ratio");
    admin_stop(&a);

    a = start(NULL);
    uint16_t port = (uint16_t)atoi(strrchr(admin_where(a), ':') + 1);
    snprintf(text, sizeof text, "127.0.0.1:%u", port);
    assert_string_equal(text, admin_where(a));
    assert_null(start_at(
        (struct config_address){
            .kind = ADDRESS_TCP, .text = text, .host = "127.0.0.1", .port = port },
        NULL, why));
    assert_has(why, "Address already in use");
    assert_has(why, text);
    admin_stop(&a);
    assert_null(start_at((struct config_address){ .kind = ADDRESS_TCP,
                                                  .text = "no.such.host.invalid:1",
                                                  .host = "no.such.host.invalid" },
                         "secret", why));
    assert_has(why, "cannot resolve no.such.host.invalid");
}

static void test_unix_socket(void **state)
{
    (void)state;
    char why[256] = "", path[128], text[160], big[300];
    snprintf(path, sizeof path, "%s/admin.sock", folder);
    snprintf(text, sizeof text, "unix:%s", path);
    struct config_address where = { .kind = ADDRESS_UNIX, .text = text, .path = path };
    struct admin *a = start_at(where, NULL, why);
    assert_non_null(a);
    assert_string_equal(admin_where(a), text);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    assert_answers(text, "GET", "/stats", "Host: any.name\r\n", "", 200,
                   "hit_ratio"); /* no browser gets here */
    assert_null(start_at(where, NULL, why));
    assert_has(why, "Address already in use");
    assert_answers(text, "GET", "/healthz", "", "", 200, "ok");
    admin_stop(&a);
    assert_int_not_equal(access(path, F_OK), 0);

    /* what a killed process left behind */
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un left = { .sun_family = AF_UNIX };
    strcpy(left.sun_path, path);
    assert_int_equal(bind(fd, (struct sockaddr *)&left, sizeof left), 0);
    close(fd);
    a = start_at(where, NULL, why);
    assert_non_null(a);
    admin_stop(&a);

    memset(big, 'a', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    assert_null(start_at((struct config_address){ .kind = ADDRESS_UNIX, .text = big, .path = big },
                         NULL, why));
    assert_has(why, "longer than 107 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_are_bounded),
        cmocka_unit_test(test_nonsense_is_survived),
        cmocka_unit_test(test_connections_are_bounded),
        cmocka_unit_test(test_a_dribbling_connection_is_ended),
        cmocka_unit_test(test_no_descriptor_is_left),
        cmocka_unit_test(test_a_stop_does_not_wait_for_idlers),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_unix_socket),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
