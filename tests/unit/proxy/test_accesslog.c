/* tests/unit/proxy/test_accesslog.c: the formats as rows, then rings, writer, rotation and pressure
 * with real files. */
#include "proxy/accesslog.h"
#include "proxy/accesslog_internal.h"

#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static char *path_of(const char *name)
{
    static char path[4][128];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static struct access_record usual(void)
{
    return (struct access_record){
        .wall_ms = 971211336007, /* 2000-10-10T20:55:36.007Z */
        .client = SLICE("192.0.2.7"),
        .method = SLICE("GET"),
        .target = SLICE("/a?b=1"),
        .protocol = SLICE("HTTP/1.1"),
        .host = SLICE("www.example.com:8080"),
        .site = SLICE("*.example.com"),
        .referer = SLICE("http://example.com/"),
        .user_agent = SLICE("Mozilla/5.0 (X11)"),
        .server = SLICE("http://10.0.0.5:8080"),
        .status = 200,
        .body_bytes = 2326,
        .sent_bytes = 2600,
        .outcome = OUTCOME_HIT,
        .reason = REASON_FRESH,
        .age_s = 12,
        .first_byte_us = 250,
        .total_us = 1234567,
    };
}

/* ---- formats --------------------------------------------------------------------------------- */

static void assert_line(const char *format, const struct access_record *r, const char *expected)
{
    char why[256] = "";
    struct access_format *f = access_format_new(format, why);
    if (f == NULL)
        fail_msg("%s: %s", format, why);
    struct line_buffer b = { 0 };
    access_format_write(f, r, &b);
    line_buffer_add(&b, "", 1);
    assert_string_equal(b.ptr, expected);
    line_buffer_fini(&b);
    access_format_free(&f);
}

static void test_each_field_and_format(void **state)
{
    (void)state;
    static const struct {
        const char *format, *line;
    } rows[] = {
        { "combined", "192.0.2.7 - - [10/Oct/2000:20:55:36 +0000] \"GET /a?b=1 HTTP/1.1\" 200 2326 "
                      "\"http://example.com/\" \"Mozilla/5.0 (X11)\"\n" },
        { "json",
          "{\"time\":\"2000-10-10T20:55:36.007Z\",\"client\":\"192.0.2.7\",\"method\":\"GET\","
          "\"target\":\"/a?b=1\","
          "\"protocol\":\"HTTP/"
          "1.1\",\"host\":\"www.example.com:8080\",\"site\":\"*.example.com\",\"status\":200,"
          "\"bytes\":2326,\"sent\":2600,\"referer\":\"http://example.com/"
          "\",\"user_agent\":\"Mozilla/5.0 (X11)\","
          "\"outcome\":\"hit\",\"reason\":\"fresh\",\"age\":12,\"server\":\"http://10.0.0.5:8080\","
          "\"first_byte_ms\":0.250,\"total_ms\":1234.567}\n" },
        { "{client}", "192.0.2.7\n" },
        { "[{time}]", "[10/Oct/2000:20:55:36 +0000]\n" },
        { "{time_iso}", "2000-10-10T20:55:36.007Z\n" },
        { "\"{request}\"", "\"GET /a?b=1 HTTP/1.1\"\n" },
        { "{method} {target} {protocol}", "GET /a?b=1 HTTP/1.1\n" },
        { "{host}|{site}", "www.example.com:8080|*.example.com\n" },
        { "{status} {bytes} {sent}", "200 2326 2600\n" },
        { "{referer}\t{user_agent}", "http://example.com/\tMozilla/5.0 (X11)\n" },
        { "{outcome}/{reason} {age}", "hit/fresh 12\n" },
        { "{server} {first_byte_ms} {total_ms}", "http://10.0.0.5:8080 0.250 1234.567\n" },
        { "{{{status}} {{status}", "{200} {status}\n" },
        { "{status}{{", "200{\n" },
    };
    struct access_record r = usual();
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_line(rows[i].format, &r, rows[i].line);
}

static void test_what_is_not_known_is_a_dash(void **state)
{
    (void)state;
    struct access_record r = { .outcome = OUTCOME_REFUSED,
                               .reason = REASON_BAD_REQUEST,
                               .status = 400,
                               .age_s = -1,
                               .first_byte_us = -1 };
    assert_line("combined", &r, "- - - [01/Jan/1970:00:00:00 +0000] \"-\" 400 - \"-\" \"-\"\n");
    assert_line("{client} {request} {host} {server} {age} {first_byte_ms} {total_ms}", &r,
                "- - - - - - 0.000\n");
    assert_line("json", &r,
                "{\"time\":\"1970-01-01T00:00:00.000Z\",\"client\":\"\",\"method\":\"\",\"target\":"
                "\"\",\"protocol\":\"\","
                "\"host\":\"\",\"site\":\"\",\"status\":400,\"bytes\":0,\"sent\":0,\"referer\":"
                "\"\",\"user_agent\":\"\","
                "\"outcome\":\"refused\",\"reason\":\"bad-request\",\"age\":null,\"server\":\"\","
                "\"first_byte_ms\":null,"
                "\"total_ms\":0.000}\n");
}

static void test_hostile_bytes_cannot_forge(void **state)
{
    (void)state;
    static const struct {
        struct slice sent;
        const char *text, *json;
    } rows[] = {
        { SLICE_INIT("a\"b"), "a\\x22b\n", "a\\\"b" },
        { SLICE_INIT("a\\x22"), "a\\x5Cx22\n", "a\\\\x22" },
        { SLICE_INIT("a\r\n1.2.3.4 - -"), "a\\x0D\\x0A1.2.3.4 - -\n",
          "a\\u000D\\u000A1.2.3.4 - -" },
        { SLICE_INIT("\x1b[2J\x7f"), "\\x1B[2J\\x7F\n", "\\u001B[2J\\u007F" },
        { SLICE_INIT("nul\0nul"), "nul\\x00nul\n", "nul\\u0000nul" },
        { SLICE_INIT("Gr\xc3\xbc\xc3\x9f"), "Gr\\xC3\\xBC\\xC3\\x9F\n", "Gr\xc3\xbc\xc3\x9f" },
        { SLICE_INIT("\xe2\x82\xac\xf0\x9f\x98\x80"), "\\xE2\\x82\\xAC\\xF0\\x9F\\x98\\x80\n",
          "\xe2\x82\xac\xf0\x9f\x98\x80" },
        { SLICE_INIT("\xff\xc3"), "\\xFF\\xC3\n", "\\u00FF\\u00C3" }, /* not UTF-8; cut short */
        { SLICE_INIT("\xc0\xaf"), "\\xC0\\xAF\n", "\\u00C0\\u00AF" }, /* overlong, RFC 3629 3 */
        { SLICE_INIT("\xe0\x80\xaf"), "\\xE0\\x80\\xAF\n", "\\u00E0\\u0080\\u00AF" },
        { SLICE_INIT("\xed\xa0\x80"), "\\xED\\xA0\\x80\n",
          "\\u00ED\\u00A0\\u0080" }, /* a surrogate */
        { SLICE_INIT("\xf4\x90\x80\x80"), "\\xF4\\x90\\x80\\x80\n",
          "\\u00F4\\u0090\\u0080\\u0080" }, /* above U+10FFFF */
        { SLICE_INIT("\xe2\x82"), "\\xE2\\x82\n", "\\u00E2\\u0082" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct access_record r = usual();
        r.user_agent = rows[i].sent;
        assert_line("{user_agent}", &r, rows[i].text);

        char why[256];
        struct access_format *f = access_format_new("json", why);
        struct line_buffer b = { 0 };
        access_format_write(f, &r, &b);
        json_error_t error;
        json_t *parsed =
            json_loadb(b.ptr, b.length, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
        if (parsed == NULL)
            fail_msg("row %zu is not JSON: %s", i, error.text);
        json_decref(parsed);
        char expected[128];
        snprintf(expected, sizeof expected, "\"user_agent\":\"%s\",", rows[i].json);
        assert_non_null(memmem(b.ptr, b.length, expected, strlen(expected)));
        assert_ptr_equal(memchr(b.ptr, '\n', b.length), b.ptr + b.length - 1);
        line_buffer_fini(&b);
        access_format_free(&f);
    }
}

static void test_time_has_the_zone_of_the_place(void **state)
{
    (void)state;
    struct access_record r = usual();
    setenv("TZ", "XYZ3:30", 1);
    tzset();
    assert_line("{time}", &r, "10/Oct/2000:17:25:36 -0330\n");
    assert_line("{time_iso}", &r, "2000-10-10T20:55:36.007Z\n");
    setenv("TZ", "UTC", 1);
    tzset();
}

static void test_wrong_formats_say_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *format, *says;
    } rows[] = {
        { "{statis}", "there is no field {statis}; the nearest is {status}" },
        { "{useragent}", "the nearest is {user_agent}" },
        { "{ip} {clent}", "there is no field {ip}" },
        { "{clent}", "the nearest is {client}" },
        { "{}", "there is no field {}" },
        { "{status} {", "the brace at position 10 is not closed" },
        { "{status", "the brace at position 1 is not closed" },
        { "combind", "did you mean combined?" },
        { "JSON {", "the brace at position 6 is not closed" },
        { "jsn", "did you mean json?" },
        { "", "a format is combined, json, or a string with {fields}" },
        { "{status}\n{host}", "no line break" },
        { "{status}\x1b", "no line break or other control byte" },
        { "{averyveryverylongnamethatnofieldeverhad}", "at most 32 letters" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char why[256] = "";
        assert_false(accesslog_format_check(rows[i].format, why));
        if (strstr(why, rows[i].says) == NULL)
            fail_msg("\"%s\" says \"%s\"", rows[i].format, why);
    }
    char why[256] = "", many[129 * 8 + 1] = "", big[4200];
    for (int i = 0; i < 129; i++)
        strcat(many, "{status}");
    assert_false(accesslog_format_check(many, why));
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    assert_false(accesslog_format_check(big, why));
    assert_true(accesslog_format_check("{status}", why));
}

/* ---- rings and the writer -------------------------------------------------------------------- */

static char *file_text(const char *path, size_t *length)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return NULL;
    char *text = NULL;
    *length = 0;
    for (size_t capacity = 1 << 16, n = 1; n > 0; capacity *= 2) {
        text = xrealloc(text, capacity + 1);
        n = fread(text + *length, 1, capacity - *length, file);
        *length += n;
    }
    text[*length] = '\0';
    fclose(file);
    return text;
}

static size_t line_count(const char *path)
{
    size_t length, count = 0;
    char *text = file_text(path, &length);
    for (size_t i = 0; text != NULL && i < length; i++)
        count += text[i] == '\n';
    free(text);
    return count;
}

/* Waits for the writer as one waits for a barrier; gives up after a generous while. */
static void wait_for_lines(const char *path, size_t count)
{
    time_t until = time(NULL) + 30;
    while (line_count(path) < count) {
        if (time(NULL) > until)
            fail_msg("%s has %zu lines instead of %zu", path, line_count(path), count);
        sched_yield();
    }
}

static struct stats_sum sum_now(void)
{
    struct stats_sum s;
    stats_sum_all(&s);
    return s;
}

static struct accesslog *start(const char *path, const char *format)
{
    char why[256] = "";
    struct accesslog *log = accesslog_start(path, format, why);
    if (log == NULL)
        fail_msg("%s", why);
    return log;
}

static void write_number(struct accesslog_ring *ring, uint64_t number, size_t target_length)
{
    static _Thread_local char target[16384];
    memset(target, 'x', target_length);
    struct access_record r = usual();
    r.target = (struct slice){ target, target_length };
    r.body_bytes = number;
    accesslog_write(ring, &r);
}

/* Targets of all lengths, so that the ring's end is met in every way; the numbers come out in
 * order, none is missing. */
static void test_a_ring_wraps(void **state)
{
    (void)state;
    const char *path = path_of("wrap.log");
    struct stats_sum before = sum_now();
    struct accesslog *log = start(path, "{bytes} {target}");
    struct accesslog_ring *ring = accesslog_ring(log);
    size_t written = 0;
    for (int round = 0; round < 40; round++) {
        for (size_t i = 0; i < 50; i++, written++)
            write_number(ring, written, (written * 37) % 1500);
        wait_for_lines(path, written);
    }
    accesslog_stop(&log);
    assert_null(log);
    size_t length;
    char *text = file_text(path, &length);
    size_t expected = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"), expected++) {
        size_t number, xs = 0;
        char dash = 0;
        assert_true(sscanf(line, "%zu %c", &number, &dash) == 2);
        assert_int_equal(number, expected);
        xs = strlen(strchr(line, ' ') + 1);
        assert_int_equal(xs, (number * 37) % 1500 == 0 ? 1 : (number * 37) % 1500);
    }
    free(text);
    assert_int_equal(expected, written);
    struct stats_sum after = sum_now();
    assert_int_equal(after.log_written - before.log_written, written);
    assert_int_equal(after.log_dropped - before.log_dropped, 0);
}

static void test_long_texts_are_cut(void **state)
{
    (void)state;
    const char *path = path_of("cut.log");
    struct accesslog *log = start(path, "{target}");
    write_number(accesslog_ring(log), 1, 16384);
    accesslog_stop(&log);
    size_t length;
    char *text = file_text(path, &length);
    assert_int_equal(length, 8192 + 1);
    free(text);
}

static void test_stop_writes_what_the_rings_hold(void **state)
{
    (void)state;
    const char *path = path_of("stop.log");
    struct accesslog *log = start(path, "combined");
    struct accesslog_ring *ring = accesslog_ring(log);
    for (int i = 0; i < 300; i++)
        write_number(ring, i, 100);
    accesslog_stop(&log);
    assert_int_equal(line_count(path), 300);
}

/* A pipe that nobody reads: the worker goes on, what found no room is counted, nothing is counted
 * twice; once somebody reads, the lines that were kept come whole. */
static void test_a_full_pipe_drops_and_never_blocks(void **state)
{
    (void)state;
    const char *path = path_of("pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    struct stats_sum before = sum_now();
    struct accesslog *log = start(path, "{bytes} {target}");
    struct accesslog_ring *ring = accesslog_ring(log);
    size_t written = 0;
    while (sum_now().log_dropped == before.log_dropped)
        write_number(ring, written++, 500);
    for (int i = 0; i < 1000; i++)
        write_number(ring, written++, 500);
    int64_t dropped = sum_now().log_dropped - before.log_dropped;
    assert_true(dropped >= 1);

    size_t lines = 0, expected = written - (size_t)dropped;
    char bytes[65536];
    time_t until = time(NULL) + 30;
    while (lines < expected && time(NULL) <= until) {
        ssize_t n = read(reader, bytes, sizeof bytes);
        for (ssize_t i = 0; i < n; i++)
            lines += bytes[i] == '\n';
        if (n <= 0)
            sched_yield();
    }
    assert_int_equal(lines, expected);
    accesslog_stop(&log);
    assert_int_equal(sum_now().log_written - before.log_written, expected);
    close(reader);
}

/* The stop does not wait for an output that takes nothing, and every line is counted once: written
 * or dropped. */
static void test_stop_is_bounded(void **state)
{
    (void)state;
    const char *path = path_of("stuck");
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stats_sum before = sum_now();
    struct accesslog *log = start(path, "{bytes} {target}");
    struct accesslog_ring *ring = accesslog_ring(log);
    for (int i = 0; i < 1500; i++)
        write_number(ring, i, 500);
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    accesslog_stop(&log);
    clock_gettime(CLOCK_MONOTONIC, &to);
    assert_true(to.tv_sec - from.tv_sec <= 6);
    struct stats_sum after = sum_now();
    assert_true(after.log_dropped > before.log_dropped);
    assert_int_equal(
        after.log_written - before.log_written + after.log_dropped - before.log_dropped, 1500);
    close(reader);
}

static void test_an_output_that_fails_is_tried_again(void **state)
{
    (void)state;
    const char *path = path_of("gone"), *moved = path_of("came-back.log");
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char why[256];
    struct accesslog *log = start(path, "{bytes}");
    struct accesslog_ring *ring = accesslog_ring(log);
    close(reader); /* EPIPE from now on */
    for (int i = 0; i < 10; i++)
        write_number(ring, i, 10);
    assert_true(accesslog_change(log, moved, "{bytes}", why));
    write_number(ring, 10, 10);
    wait_for_lines(moved, 11); /* what the pipe did not take is not lost */
    accesslog_stop(&log);
}

static void test_reopen_after_rename(void **state)
{
    (void)state;
    const char *path = path_of("access.log"), *old = path_of("access.log.1");
    struct accesslog *log = start(path, "{bytes}");
    struct accesslog_ring *ring = accesslog_ring(log);
    for (int i = 0; i < 5; i++)
        write_number(ring, i, 10);
    assert_int_equal(rename(path, old), 0);
    accesslog_reopen(log);
    time_t until = time(NULL) + 30;
    while (access(path, F_OK) != 0 && time(NULL) <= until)
        sched_yield();
    for (int i = 5; i < 8; i++)
        write_number(ring, i, 10);
    accesslog_stop(&log);
    assert_int_equal(line_count(old), 5);
    assert_int_equal(line_count(path), 3);
}

static void test_a_reopen_that_fails_keeps_the_old_file(void **state)
{
    (void)state;
    char path[160];
    const char *sub = path_of("sub");
    assert_int_equal(mkdir(sub, 0700), 0);
    snprintf(path, sizeof path, "%s/access.log", sub);
    struct accesslog *log = start(path, "{bytes}");
    struct accesslog_ring *ring = accesslog_ring(log);
    int kept = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(sub), 0);
    accesslog_reopen(log);
    write_number(ring, 7, 10);
    accesslog_stop(&log);
    char text[8] = "";
    assert_int_equal(read(kept, text, sizeof text), 2);
    assert_string_equal(text, "7\n");
    close(kept);
}

static void test_off_on_and_another_format(void **state)
{
    (void)state;
    const char *first = path_of("first.log"), *second = path_of("second.log");
    char why[256] = "";
    struct accesslog *log = start(NULL, NULL);
    struct accesslog_ring *ring = accesslog_ring(log);
    write_number(ring, 1, 10);
    assert_true(accesslog_change(log, first, "a{bytes}", why));
    write_number(ring, 2, 10);
    wait_for_lines(first, 1);
    assert_false(accesslog_change(log, second, "{nothing}", why));
    assert_non_null(strstr(why, "there is no field {nothing}"));
    assert_false(accesslog_change(log, "/nowhere/at/all", "json", why));
    assert_non_null(strstr(why, "/nowhere/at/all: No such file"));
    write_number(ring, 3, 10);
    assert_true(accesslog_change(log, second, "b{bytes}", why));
    size_t written = 2;
    time_t until = time(NULL) + 30;
    for (; line_count(second) == 0 && time(NULL) <= until; sched_yield(), written++)
        write_number(ring, 4, 10); /* the first few may still go to the old file */
    assert_true(line_count(second) > 0);
    assert_true(accesslog_change(log, NULL, NULL, why));
    write_number(ring, 5, 10);
    accesslog_stop(&log);
    assert_int_equal(line_count(first) + line_count(second), written);
}

static void test_what_cannot_be_opened(void **state)
{
    (void)state;
    char why[256] = "";
    assert_null(accesslog_start("/nowhere/access.log", "json", why));
    assert_non_null(strstr(why, "cannot open the access log /nowhere/access.log: No such file"));
    assert_null(accesslog_start(path_of("x"), "{nope}", why));
    assert_non_null(strstr(why, "there is no field {nope}"));
    const char *lonely = path_of("lonely");
    assert_int_equal(mkfifo(lonely, 0600), 0);
    assert_null(accesslog_start(lonely, "json", why));
    assert_non_null(strstr(why, "a pipe that nobody reads"));
}

enum { PRODUCERS = 4, EACH = 5000 };

static void *produce(void *arg)
{
    struct accesslog_ring *ring = arg;
    stats_use(stats_new("producer"));
    for (int i = 0; i < EACH; i++)
        write_number(ring, i, i % 300);
    return NULL;
}

static void test_four_workers_at_once(void **state)
{
    (void)state;
    const char *path = path_of("four.log");
    struct stats_sum before = sum_now();
    struct accesslog *log = start(path, "{bytes} {target}");
    pthread_t threads[PRODUCERS];
    for (int i = 0; i < PRODUCERS; i++)
        pthread_create(&threads[i], NULL, produce, accesslog_ring(log));
    accesslog_reopen(log);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    accesslog_stop(&log);
    struct stats_sum after = sum_now();
    int64_t written = after.log_written - before.log_written,
            dropped = after.log_dropped - before.log_dropped;
    assert_int_equal(written + dropped, PRODUCERS * EACH);
    assert_int_equal(line_count(path), written);
}

static int setup(void **state)
{
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    strcpy(folder, "/tmp/larder-accesslog-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_field_and_format),
        cmocka_unit_test(test_what_is_not_known_is_a_dash),
        cmocka_unit_test(test_hostile_bytes_cannot_forge),
        cmocka_unit_test(test_time_has_the_zone_of_the_place),
        cmocka_unit_test(test_wrong_formats_say_what_is_wrong),
        cmocka_unit_test(test_a_ring_wraps),
        cmocka_unit_test(test_long_texts_are_cut),
        cmocka_unit_test(test_stop_writes_what_the_rings_hold),
        cmocka_unit_test(test_a_full_pipe_drops_and_never_blocks),
        cmocka_unit_test(test_stop_is_bounded),
        cmocka_unit_test(test_an_output_that_fails_is_tried_again),
        cmocka_unit_test(test_reopen_after_rename),
        cmocka_unit_test(test_a_reopen_that_fails_keeps_the_old_file),
        cmocka_unit_test(test_off_on_and_another_format),
        cmocka_unit_test(test_what_cannot_be_opened),
        cmocka_unit_test(test_four_workers_at_once),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
