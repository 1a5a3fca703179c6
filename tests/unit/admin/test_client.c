/* tests/unit/admin/test_client.c: stat, reload and purge as a person types them, against a real
 * server; and the answers they read. */
#include "tests/unit/admin/admin_help.h"

/* ---- the commands ---------------------------------------------------------------------------- */

/* Runs one with standard output and error in a file; the status. */
static int run(int (*command)(int argc, char **argv), char *output, size_t capacity,
               const char *const *words)
{
    char *argv[16];
    int argc = 0, saved[2] = { dup(1), dup(2) };
    for (; words[argc] != NULL; argc++)
        argv[argc] = (char *)words[argc];
    argv[argc] = NULL;
    fflush(stdout);
    FILE *file = tmpfile();
    dup2(fileno(file), 1);
    dup2(fileno(file), 2);
    int status = command(argc, argv);
    fflush(stdout);
    dup2(saved[0], 1);
    dup2(saved[1], 2);
    close(saved[0]);
    close(saved[1]);
    rewind(file);
    output[fread(output, 1, capacity - 1, file)] = '\0';
    fclose(file);
    return status;
}

#define RUN(command, ...)                                                                          \
    run(command, output, sizeof output, (const char *const[]){ __VA_ARGS__, NULL })

static void test_commands(void **state)
{
    (void)state;
    static char output[1 << 16];
    unsetenv("LARDER_ADMIN");
    unsetenv("LARDER_ADMIN_TOKEN");
    struct admin *a = start("secret");
    const char *where = admin_where(a);
    assert_int_equal(RUN(admin_command_stat, "stat", "--admin", where), 1);
    assert_has(output, "Authorization: Bearer TOKEN");
    assert_has(output, "--token or LARDER_ADMIN_TOKEN");
    assert_int_equal(RUN(admin_command_stat, "stat", "--admin", where, "--token=secret"), 0);
    assert_has(output, "larder " LARDER_VERSION);
    assert_has(output, "hit ratio                         75.0 %");
    assert_has(output, "app http://10.0.0.6:8080  failing  requests 7  faults 7  head -  last "
                       "fault: the origin refused");
    setenv("LARDER_ADMIN", where, 1);
    setenv("LARDER_ADMIN_TOKEN", "secret", 1);
    assert_int_equal(RUN(admin_command_stat, "stat", "--json"), 0);
    json_t *json = json_loads(output, 0, NULL);
    assert_non_null(json);
    json_decref(json);

    assert_true(put(&store, 9, 100, true));
    assert_int_equal(RUN(admin_command_purge, "purge", "http://host.example/object/9"), 0);
    assert_string_equal(output, "1 object purged\n");
    assert_int_equal(RUN(admin_command_purge, "purge", "/object/9", "--host", "host.example"), 1);
    assert_string_equal(output, "0 objects purged\n");
    assert_int_equal(RUN(admin_command_purge, "purge", "/object/9"), 1);
    assert_has(output, "url: the host is missing or malformed");
    assert_int_equal(RUN(admin_command_purge, "purge", "\xff"), 2);
    assert_has(output, "not UTF-8");
    assert_int_equal(RUN(admin_command_purge, "purge"), 2);
    assert_has(output, "usage: larder purge [--soft");
    static const char *const wrong[][4] = {
        { "--tag" },  { "--sotf", "/a" },   { "/a", "/b" },
        { "--host" }, { "--glob", "\xff" }, { "--tag", "a", "--tag", "\xff" }
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++)
        assert_int_equal(
            RUN(admin_command_purge, "purge", wrong[i][0], wrong[i][1], wrong[i][2], wrong[i][3]),
            2);
    assert_true(put(&store, 9, 100, true));
    assert_int_equal(RUN(admin_command_purge, "purge", "--dry-run", "--host=host.example"), 0);
    assert_string_equal(output, "1 object would be purged\n");
    assert_int_equal(RUN(admin_command_purge, "purge", "--glob", "host.example/**", "--soft"), 0);
    assert_string_equal(output, "1 object made stale\n");
    assert_int_equal(RUN(admin_command_purge, "purge", "--tag", "a"), 1);
    assert_int_equal(RUN(admin_command_purge, "purge", "--json", "--tag", "a", "--tag=b"), 1);
    assert_has(output, "\"mode\": \"tags\"");
    assert_int_equal(RUN(admin_command_purge, "purge", "--prefix", "http://host.example/object/",
                         "--everything"),
                     1);
    assert_has(output,
               "a purge has one of url, host, prefix, glob, tag, tags, everything at a time");
    assert_int_equal(RUN(admin_command_purge, "purge", "--prefix", "/object/", "--host",
                         "host.example", "--dry-run"),
                     0);
    assert_int_equal(RUN(admin_command_purge, "purge", "--everything"), 0);
    assert_string_equal(output, "1 object purged\n");

    reload_works = true;
    assert_int_equal(RUN(admin_command_reload, "reload"), 0);
    assert_string_equal(
        output, "configuration 4 is in force\nnot in force yet: workers: needs a restart\n");
    reload_works = false;
    assert_int_equal(RUN(admin_command_reload, "reload"), 1);
    assert_has(output, "stays in force:\nx.yaml:1:2: cache.memroy: unknown item\n");

    assert_int_equal(RUN(admin_command_stat, "stat", "--help"), 0);
    assert_has(output, "usage: larder stat");
    assert_int_equal(RUN(admin_command_stat, "stat", "--nonsense"), 2);
    assert_has(output, "cannot use \"--nonsense\"");
    assert_int_equal(RUN(admin_command_stat, "stat", "--watch", "0"), 2);
    assert_int_equal(RUN(admin_command_stat, "stat", "--json", "--watch"), 2);
    assert_int_equal(RUN(admin_command_stat, "stat", "--admin"), 2);
    assert_int_equal(RUN(admin_command_stat, "stat", "--admin", "nonsense"), 2);
    assert_has(output, "\"nonsense\" is no address");
    admin_stop(&a);
    assert_int_equal(RUN(admin_command_stat, "stat"), 2);
    assert_has(output, "cannot reach the admin port at 127.0.0.1:");
    assert_has(output, "Connection refused; is larder running, and is admin.listen the same?");
    assert_int_equal(RUN(admin_command_stat, "stat", "--admin", "unix:/nowhere/x.sock"), 2);
    assert_has(output, "No such file or directory");
    unsetenv("LARDER_ADMIN");
    unsetenv("LARDER_ADMIN_TOKEN");
}

static void test_answers_that_the_client_reads(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool at_end;
        int result, status;
        const char *says; /* body, or sentence */
    } rows[] = {
        { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false, 1, 200, "ok" },
        { "HTTP/1.1 200 OK\r\ncontent-length:  2 \r\n\r\nokmore", false, 1, 200, "ok" },
        { "HTTP/1.0 404 Not Found\r\n\r\nuntil the end", true, 1, 404, "until the end" },
        { "HTTP/1.0 404 Not Found\r\n\r\nuntil the end", false, 0, 0, "" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", false, 0, 0, "" },
        { "HTTP/1.1 200 OK\r\nContent-Le", false, 0, 0, "" },
        { "", false, 0, 0, "" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", true, -1, 0, "closed in the middle" },
        { "", true, -1, 0, "not Larder's admin port" },
        { "SSH-2.0-OpenSSH\r\n\r\n", true, -1, 0, "first line is not HTTP" },
        { "HTTP/1.1 xx\r\n\r\n", true, -1, 0, "first line is not HTTP" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false, -1, 0, "chunks" },
        { "HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n", false, -1, 0, "no number" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", false, -1, 0, "above 8 MiB" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char bytes[256], why[CLIENT_WHY_BYTES] = "";
        struct client_answer answer = { 0 };
        strcpy(bytes, rows[i].bytes);
        int result = client_read_answer(bytes, strlen(bytes), rows[i].at_end, &answer, why);
        assert_int_equal(result, rows[i].result);
        if (result == 1)
            assert_string_equal(answer.body, rows[i].says);
        else
            assert_has(why, rows[i].says);
        assert_int_equal(answer.status, rows[i].status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_answers_that_the_client_reads),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
