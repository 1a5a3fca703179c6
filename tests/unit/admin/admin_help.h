/* tests/unit/admin/admin_help.h: what the tests of the admin port share: hooks that play main.c
 * over a real store and a real configuration, a server on a port of its own, and a client that
 * sends whatever bytes it is given.
 */
#ifndef TESTS_ADMIN_HELP_H
#define TESTS_ADMIN_HELP_H
#include "admin/admin_internal.h"
#include "admin/client_internal.h"
#include "tests/unit/cache/store_help.h"

#include "base/clock.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

static char folder[64];
static struct store store;
static struct config *running;
static bool reload_works;
/* NULL in a build without the fake clock. */
static _Atomic int64_t *clock_shift __attribute__((unused));

/* ---- hooks that play main.c ------------------------------------------------------------------ */

static inline struct config *hook_config(void *arg)
{
    (void)arg;
    return config_ref(running);
}

static inline void
hook_servers(void *arg, void (*visit)(void *to, const struct admin_server_state *s), void *to)
{
    (void)arg;
    const struct admin_server_state servers[] = {
        { .origin = "app",
          .server = "http://10.0.0.5:8080",
          .state = "up",
          .why = "",
          .requests = 100,
          .open = 3,
          .idle = 2,
          .head_us_sum = 500000,
          .head_count = 100 },
        { .origin = "app",
          .server = "http://10.0.0.6:8080",
          .state = "failing",
          .why = "the origin refused the <connection>",
          .requests = 7,
          .faults = 7,
          .last_fault_wall_s = 1 },
        { .origin = "we\"ird\\\n", .server = "/var/www", .state = "directory", .why = "" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(servers); i++)
        visit(to, &servers[i]);
}

static inline bool hook_reload(void *arg, struct config_mistakes *m)
{
    (void)arg;
    m->lines = xcalloc(1, sizeof *m->lines);
    m->lines[m->count++] = xstrdup(reload_works ? "workers: needs a restart"
                                                : "x.yaml:1:2: cache.memroy: unknown item");
    return reload_works;
}

/* "http://host.example/object/7" has store_help.h's key 7. */
static inline size_t hook_key_of_url(void *arg, struct slice url, struct slice host, char *out,
                                     size_t capacity, const char **why)
{
    (void)arg;
    (void)capacity;
    struct slice path = url;
    if (slice_has_prefix(url, SLICE("http://host.example/"))) {
        path = (struct slice){ url.ptr + 19, url.len - 19 };
    } else if (!slice_equal(host, SLICE("host.example"))) {
        *why = "the host is missing or malformed";
        return 0;
    }
    return (size_t)sprintf(out, "site%chost.example" SLICE_FMT, 0, SLICE_ARG(path));
}

/* For these keys a prefix is written as a URL is. */
static inline size_t hook_prefix_of_url(void *arg, struct slice prefix, struct slice host,
                                        char *out, size_t capacity, const char **why)
{
    return hook_key_of_url(arg, prefix, host, out, capacity, why);
}

static const char *hook_h1_cause_word(unsigned cause)
{
    static const char *const words[] = { "none", "bare-lf", "length" };
    return cause < ARRAY_COUNT(words) ? words[cause] : NULL;
}

static inline struct admin *start_at(struct config_address where, char *token, char why[256])
{
    struct config config = { .has_admin = true, .admin = where, .admin_token = token };
    struct admin_hooks hooks = { .cache = store.cache,
                                 .config = hook_config,
                                 .servers = hook_servers,
                                 .reload = hook_reload,
                                 .key_of_url = hook_key_of_url,
                                 .prefix_of_url = hook_prefix_of_url,
                                 .h1_cause_word = hook_h1_cause_word,
                                 .worker_count = 2,
                                 .started_wall_s = clock_wall_s() };
    return admin_start(&config, &hooks, why);
}

static inline struct admin *start(char *token)
{
    char why[256] = "";
    struct admin *a = start_at(
        (struct config_address){ .kind = ADDRESS_TCP, .text = "127.0.0.1:0", .host = "127.0.0.1" },
        token, why);
    if (a == NULL)
        fail_msg("%s", why);
    return a;
}

/* ---- a raw client ---------------------------------------------------------------------------- */

static inline int dial(const char *where)
{
    int fd, result;
    if (strncmp(where, "unix:", 5) == 0) {
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        strcpy(at.sun_path, where + 5);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        result = connect(fd, (struct sockaddr *)&at, sizeof at);
    } else {
        struct sockaddr_in at = { .sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(strrchr(where, ':') + 1)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        result = connect(fd, (struct sockaddr *)&at, sizeof at);
    }
    if (result != 0) {
        close(fd);
        return -1;
    }
    struct timeval patience = { .tv_sec = 30 };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

static inline void say(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = send(fd, text, length, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* refused already: the answer says why */
        text += n;
        length -= (size_t)n;
    }
}

static inline char *hear(int fd)
{
    size_t length = 0, capacity = 1 << 20;
    char *text = xmalloc(capacity + 1);
    ssize_t n;
    while (length < capacity && (n = recv(fd, text + length, capacity - length, 0)) > 0)
        length += (size_t)n;
    text[length] = '\0';
    close(fd);
    return text;
}

static inline char *exchange(const char *where, const char *request)
{
    int fd = dial(where);
    assert_true(fd >= 0);
    say(fd, request, strlen(request));
    return hear(fd);
}

/* `fields`: whole lines, or "". */
static inline char *ask(const char *where, const char *method, const char *path, const char *fields,
                        const char *body)
{
    char *request = NULL;
    const char *host = strstr(fields, "Host:") != NULL ? "" : "Host: localhost\r\n";
    assert_true(asprintf(&request, "%s %s HTTP/1.1\r\n%s%sContent-Length: %zu\r\n\r\n%s", method,
                         path, host, fields, strlen(body), body) > 0);
    char *answer = exchange(where, request);
    free(request);
    return answer;
}

static inline int status_of(const char *answer)
{
    return strncmp(answer, "HTTP/1.", 7) == 0 ? atoi(answer + 9) : 0;
}

static inline char *body_of(char *answer)
{
    char *end = strstr(answer, "\r\n\r\n");
    return end == NULL ? answer + strlen(answer) : end + 4;
}

static inline void assert_status(char *answer, int status)
{
    if (status_of(answer) != status)
        fail_msg("expected %d, got: %s", status, answer);
}

static inline void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in: %s", part, text);
}

static inline void assert_answers(const char *where, const char *method, const char *path,
                                  const char *fields, const char *body, int status,
                                  const char *part)
{
    char *answer = ask(where, method, path, fields, body);
    assert_status(answer, status);
    assert_has(answer, part);
    free(answer);
}

static inline json_t *json_of(char *answer)
{
    json_error_t error;
    json_t *json = json_loads(body_of(answer), JSON_REJECT_DUPLICATES, &error);
    if (json == NULL)
        fail_msg("%s in: %s", error.text, body_of(answer));
    return json;
}

/* ---- around all of it ------------------------------------------------------------------------ */

static inline struct stats *some_worker(void)
{
    struct stats *s = stats_new("worker 0");
    stat_add(&s->exchanges, 12);
    stat_add(&s->outcome[OUTCOME_HIT], 6);
    stat_add(&s->outcome[OUTCOME_MISS], 2);
    stat_add(&s->outcome[OUTCOME_REFUSED], 4);
    stat_add(&s->reason[REASON_FRESH], 6);
    stat_add(&s->h1_cause[2], 4);
    stat_add(&s->status_class[4], 4);
    stat_add(&s->hit_sent_bytes, 100);
    stat_add(&s->body_sent_bytes, 400);
    stat_add(&s->client_open, 5);
    stat_add(&s->client_idle, 3);
    stat_add(&s->followers_live, -1); /* counted down by another worker than up, a moment ago */
    stat_add(&s->origin_head_us, 1500000);
    return s;
}

static inline void set_up_clock(void)
{
#ifdef LARDER_TEST_HOOKS
    char path[128];
    snprintf(path, sizeof path, "%s/clock", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, sizeof *clock_shift), 0);
    clock_shift = mmap(NULL, sizeof *clock_shift, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    setenv("LARDER_TEST_CLOCK", path, 1);
    clock_setup();
#endif
}

static inline int set_up(void **state)
{
    strcpy(folder, "/tmp/larder-admin-XXXXXX");
    if (mkdtemp(folder) == NULL || thread_setup(state) != 0)
        return -1;
    set_up_clock();
    store_open(&store, MiB(16), 0, 8);
    struct config_mistakes m = { 0 };
    running = config_load_text("test.yaml",
                               SLICE("listen: [ \"127.0.0.1:0\" ]\ncache: { memory: 16MiB }\n"
                                     "origins: { app: { servers: [ \"http://127.0.0.1:1\" ] } }\n"
                                     "sites: [ { hosts: [ \"*\" ], origin: app } ]\n"),
                               &m);
    if (running == NULL)
        fail_msg("%s", m.count > 0 ? m.lines[0] : "no configuration");
    running->generation = 4;
    log_set_level(LOG_WARN); /* a line about each purge would stand in the output of the commands */
    some_worker();
    return 0;
}

static inline int tear_down(void **state)
{
    char command[128];
    config_unref(&running);
    store_close(&store);
    thread_teardown(state);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}
#endif
