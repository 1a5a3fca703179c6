/* tests/unit/admin/test_admin.c: the admin port over real sockets, with a real store, a real configuration and hooks that play
 * main.c: each path, who may ask, what is refused, and the commands that speak to it.
 */
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
static _Atomic int64_t *clock_shift; /* NULL in a build without the fake clock */

/* ---- hooks that play main.c -------------------------------------------------------------------------------------- */

static struct config *hook_config(void *arg)
{
    (void)arg;
    return config_ref(running);
}

static void hook_servers(void *arg, void (*visit)(void *to, const struct admin_server_state *s), void *to)
{
    (void)arg;
    const struct admin_server_state servers[] = {
        { .origin = "app", .server = "http://10.0.0.5:8080", .state = "up", .why = "", .requests = 100, .open = 3, .idle = 2,
          .head_us_sum = 500000, .head_count = 100 },
        { .origin = "app", .server = "http://10.0.0.6:8080", .state = "failing", .why = "the origin refused the <connection>",
          .requests = 7, .faults = 7, .last_fault_wall_s = 1 },
        { .origin = "we\"ird\\\n", .server = "/var/www", .state = "directory", .why = "" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(servers); i++)
        visit(to, &servers[i]);
}

static bool hook_reload(void *arg, struct config_mistakes *m)
{
    (void)arg;
    m->lines = xcalloc(1, sizeof *m->lines);
    m->lines[m->count++] = xstrdup(reload_works ? "workers: needs a restart" : "x.yaml:1:2: cache.memroy: unknown item");
    return reload_works;
}

/* "http://host.example/object/7" has store_help.h's key 7. */
static size_t hook_key_of_url(void *arg, struct slice url, struct slice host, char *out, size_t capacity, const char **why)
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

static const char *hook_h1_cause_word(unsigned cause)
{
    static const char *const words[] = { "none", "bare-lf", "length" };
    return cause < ARRAY_COUNT(words) ? words[cause] : NULL;
}

static struct admin *start_at(struct config_address where, char *token, char why[256])
{
    struct config config = { .has_admin = true, .admin = where, .admin_token = token };
    struct admin_hooks hooks = { .cache = store.cache, .config = hook_config, .servers = hook_servers, .reload = hook_reload,
                                 .key_of_url = hook_key_of_url, .h1_cause_word = hook_h1_cause_word, .worker_count = 2,
                                 .started_wall_s = clock_wall_s() };
    return admin_start(&config, &hooks, why);
}

static struct admin *start(char *token)
{
    char why[256] = "";
    struct admin *a = start_at((struct config_address){ .kind = ADDRESS_TCP, .text = "127.0.0.1:0", .host = "127.0.0.1" }, token, why);
    if (a == NULL)
        fail_msg("%s", why);
    return a;
}

/* ---- a raw client ------------------------------------------------------------------------------------------------ */

static int dial(const char *where)
{
    int fd, result;
    if (strncmp(where, "unix:", 5) == 0) {
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        strcpy(at.sun_path, where + 5);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        result = connect(fd, (struct sockaddr *)&at, sizeof at);
    } else {
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(strrchr(where, ':') + 1)),
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

static void say(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = send(fd, text, length, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* refused already: the answer says why */
        text += n;
        length -= (size_t)n;
    }
}

static char *hear(int fd)
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

static char *exchange(const char *where, const char *request)
{
    int fd = dial(where);
    assert_true(fd >= 0);
    say(fd, request, strlen(request));
    return hear(fd);
}

/* `fields`: whole lines, or "". */
static char *ask(const char *where, const char *method, const char *path, const char *fields, const char *body)
{
    char *request = NULL;
    const char *host = strstr(fields, "Host:") != NULL ? "" : "Host: localhost\r\n";
    assert_true(asprintf(&request, "%s %s HTTP/1.1\r\n%s%sContent-Length: %zu\r\n\r\n%s", method, path, host, fields, strlen(body), body) > 0);
    char *answer = exchange(where, request);
    free(request);
    return answer;
}

static int status_of(const char *answer)
{
    return strncmp(answer, "HTTP/1.", 7) == 0 ? atoi(answer + 9) : 0;
}

static char *body_of(char *answer)
{
    char *end = strstr(answer, "\r\n\r\n");
    return end == NULL ? answer + strlen(answer) : end + 4;
}

static void assert_status(char *answer, int status)
{
    if (status_of(answer) != status)
        fail_msg("expected %d, got: %s", status, answer);
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in: %s", part, text);
}

static void assert_answers(const char *where, const char *method, const char *path, const char *fields, const char *body, int status,
                           const char *part)
{
    char *answer = ask(where, method, path, fields, body);
    assert_status(answer, status);
    assert_has(answer, part);
    free(answer);
}

static json_t *json_of(char *answer)
{
    json_error_t error;
    json_t *json = json_loads(body_of(answer), JSON_REJECT_DUPLICATES, &error);
    if (json == NULL)
        fail_msg("%s in: %s", error.text, body_of(answer));
    return json;
}

/* ---- guards ------------------------------------------------------------------------------------------------------ */

static void test_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *authorization;
        bool matches;
    } rows[] = {
        { "Bearer secret", true },   { "bearer secret", true },  { "Bearer  secret ", true }, { "Bearer secre", false },
        { "Bearer secrets", false }, { "Bearer Secret", false }, { "Bearer ", false },        { "Bearer", false },
        { "secret", false },         { "Basic secret", false },  { "", false },               { NULL, false },
        { "Bearer secretsecret", false },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(admin_token_matches(rows[i].authorization, "secret"), rows[i].matches);
    assert_false(admin_token_matches("Bearer ", ""));
}

static void test_hosts(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        bool is_local;
    } rows[] = {
        { "localhost", true },       { "LocalHost:6081", true },      { "127.0.0.1", true },     { "127.0.0.1:80", true },
        { "[::1]", true },           { "[::1]:6081", true },          { "127.0.0.9:1", true }, /* where it is bound */
        { "evil.example", false },   { "localhost.evil.example", false }, { "127.0.0.1.evil.example:6081", false },
        { "127.0.0.2", false },      { "[::2]", false },              { "[::1", false },         { "[::1]evil", false },
        { "localhost:x", false },    { "localhost:", false },         { "localhost@evil", false }, { "", false }, { NULL, false },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(admin_host_is_local(rows[i].host, "127.0.0.9"), rows[i].is_local);
}

static void test_origins(void **state)
{
    (void)state;
    static const struct {
        const char *origin, *host;
        bool is_own;
    } rows[] = {
        { "http://localhost:6081", "localhost:6081", true }, { "https://admin.example", "Admin.Example", true },
        { "http://localhost:6082", "localhost:6081", false }, { "http://evil.example", "localhost:6081", false },
        { "null", "localhost:6081", false }, { "", "localhost", false }, { "http://", "", false }, { "http://a", NULL, false },
        { "file://localhost", "localhost", false },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(admin_origin_is_own(rows[i].origin, rows[i].host), rows[i].is_own);
}

static void test_loopback_addresses(void **state)
{
    (void)state;
    static const char *const loopback[] = { "127.0.0.1", "127.9.9.9", "::1", "localhost" };
    static const char *const others[] = { "", "0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "fe80::1", "localhost.example" };
    for (size_t i = 0; i < ARRAY_COUNT(loopback); i++)
        assert_true(admin_address_is_loopback(loopback[i]));
    for (size_t i = 0; i < ARRAY_COUNT(others); i++)
        assert_false(admin_address_is_loopback(others[i]));
}

/* ---- paths ------------------------------------------------------------------------------------------------------- */

static void test_each_path_answers(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path;
        int status;
        const char *part;
    } rows[] = {
        { "GET", "/", 200, "Content-Type: text/html; charset=utf-8" },
        { "GET", "/", 200, "the origin refused the &lt;connection&gt;" },
        { "GET", "/?refresh=2", 200, "<meta http-equiv=refresh content=2>" },
        { "GET", "/stats", 200, "Content-Type: application/json" },
        { "GET", "/metrics", 200, "Content-Type: text/plain; version=0.0.4; charset=utf-8" },
        { "GET", "/healthz", 200, "\r\n\r\nok\n" },
        { "GET", "/config", 200, "memory: 16MiB" },
        { "GET", "/config", 200, "Cache-Control: no-store" },
        { "HEAD", "/stats", 200, "Content-Type: application/json" },
        { "GET", "/nothing", 404, "\"/metrics\": \"all figures for Prometheus\"" },
        { "GET", "/stats/", 404, "there is no /stats/ here" },
        { "POST", "/stats", 405, "Allow: GET, HEAD\r\n" },
        { "DELETE", "/", 405, "Allow: GET, HEAD\r\n" },
        { "PUT", "/healthz", 405, "Allow: GET, HEAD\r\n" },
        { "OPTIONS", "/metrics", 405, "Allow: GET, HEAD\r\n" },
        { "GET", "/purge", 405, "Allow: POST\r\n" },
        { "HEAD", "/reload", 405, "Allow: POST\r\n" },
        { "PATCH", "/reload", 405, "\"error\": \"/reload takes POST\"" },
    };
    struct admin *a = start(NULL);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (strcmp(rows[i].method, "HEAD") != 0) {
            assert_answers(admin_where(a), rows[i].method, rows[i].path, "", "", rows[i].status, rows[i].part);
            continue;
        }
        char *answer = ask(admin_where(a), "HEAD", rows[i].path, "", "");
        assert_status(answer, rows[i].status);
        assert_has(answer, rows[i].part);
        assert_string_equal(body_of(answer), "");
        assert_null(strstr(answer, "Content-Length: 0"));
        free(answer);
    }
    char *answer = ask(admin_where(a), "GET", "/?refresh=99999", "", "");
    assert_null(strstr(answer, "http-equiv"));
    assert_null(strstr(answer, "<script"));
    free(answer);
    admin_stop(&a);
    assert_null(a);
}

static void test_a_token_is_wanted(void **state)
{
    (void)state;
    struct admin *a = start("secret");
    const char *where = admin_where(a), *good = "Authorization: Bearer secret\r\n";
    assert_answers(where, "GET", "/stats", "", "", 401, "WWW-Authenticate: Bearer realm=\"larder\"");
    assert_answers(where, "GET", "/nothing", "", "", 401, "Authorization: Bearer TOKEN");
    assert_answers(where, "POST", "/purge", "Authorization: Bearer wrong\r\n", "{}", 401, "error");
    assert_answers(where, "GET", "/", "Authorization: Bearer wrong\r\n", "", 401, "error");
    assert_answers(where, "GET", "/stats", good, "", 200, "hit_ratio");
    assert_answers(where, "GET", "/healthz", "", "", 200, "ok");
    /* with a token, any name will do: a page elsewhere does not know it */
    assert_answers(where, "GET", "/stats", "Host: larder.example\r\nAuthorization: Bearer secret\r\n", "", 200, "hit_ratio");
    admin_stop(&a);
}

static void test_other_names_and_other_sites(void **state)
{
    (void)state;
    struct admin *a = start(NULL);
    const char *where = admin_where(a);
    assert_answers(where, "GET", "/stats", "Host: evil.example\r\n", "", 403, "localhost, 127.0.0.1 or [::1] only");
    assert_answers(where, "POST", "/reload", "Host: evil.example:6081\r\n", "", 403, "error");
    assert_answers(where, "GET", "/healthz", "Host: evil.example\r\n", "", 200, "ok");
    assert_answers(where, "GET", "/stats", "Host: [::1]:6081\r\n", "", 200, "hit_ratio");
    char *answer = exchange(where, "GET /stats HTTP/1.0\r\n\r\n");
    assert_status(answer, 403);
    free(answer);

    reload_works = true;
    assert_answers(where, "POST", "/reload", "Origin: http://evil.example\r\n", "", 403, "a page of another site");
    assert_answers(where, "POST", "/reload", "Origin: null\r\n", "", 403, "a page of another site");
    assert_answers(where, "POST", "/reload", "Sec-Fetch-Site: cross-site\r\n", "", 403, "a page of another site");
    assert_answers(where, "POST", "/reload", "Sec-Fetch-Site: same-site\r\n", "", 403, "a page of another site");
    assert_answers(where, "POST", "/reload", "Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n", "", 200, "\"reloaded\": true");
    admin_stop(&a);
}

/* ---- purge and reload -------------------------------------------------------------------------------------------- */

static void test_purge(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int status;
        const char *part;
    } rows[] = {
        { "{\"url\": \"http://host.example/object/1\"}", 200, "\"purged\": 1" },
        { "{\"url\": \"http://host.example/object/1\"}", 404, "\"purged\": 0" },
        { "{\"url\": \"/object/2\", \"host\": \"host.example\"}", 200, "\"purged\": 1" },
        { "{\"url\": \"/object/3\"}", 400, "url: the host is missing or malformed" },
        { "", 400, "the body is empty" },
        { "{\"url\": ", 400, "the body is not JSON: line 1, column 8" },
        { "{\"url\": \"/a\", \"url\": \"/b\"}", 400, "duplicate" },
        { "[\"http://host.example/object/3\"]", 400, "the body is a JSON object" },
        { "{}", 400, "url: missing" },
        { "{\"host\": \"host.example\"}", 400, "url: missing" },
        { "{\"url\": 3}", 400, "url: this is a string" },
        { "{\"url\": \"\"}", 400, "url: this is a string, and not empty" },
        { "{\"url\": \"http://host.example/object/3\", \"host\": null}", 400, "host: this is a string" },
        { "{\"url\": \"http://host.example/object/3\", \"soft\": true}", 400, "soft: unknown member" },
        { "\xff\xfe", 400, "the body is not JSON" },
    };
    struct stats_sum before, after;
    stats_sum_all(&before);
    for (unsigned i = 1; i <= 3; i++)
        assert_true(put(&store, i, 100, true));
    struct admin *a = start(NULL);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_answers(admin_where(a), "POST", "/purge", "", rows[i].body, rows[i].status, rows[i].part);
    admin_stop(&a);
    assert_false(is_stored(&store, 1));
    assert_false(is_stored(&store, 2));
    assert_true(is_stored(&store, 3)); /* no mistaken purge purged anything */
    stats_sum_all(&after);
    assert_int_equal(after.purges - before.purges, 3);
    assert_int_equal(after.purged - before.purged, 2);
}

static void test_reload(void **state)
{
    (void)state;
    struct admin *a = start(NULL);
    reload_works = true;
    char *answer = ask(admin_where(a), "POST", "/reload", "", "");
    assert_status(answer, 200);
    json_t *json = json_of(answer);
    assert_true(json_is_true(json_object_get(json, "reloaded")));
    assert_int_equal(json_integer_value(json_object_get(json, "generation")), 4);
    assert_string_equal(json_string_value(json_array_get(json_object_get(json, "restart_needed"), 0)), "workers: needs a restart");
    json_decref(json);
    free(answer);

    reload_works = false;
    answer = ask(admin_where(a), "POST", "/reload", "", "");
    assert_status(answer, 422);
    json = json_of(answer);
    assert_true(json_is_false(json_object_get(json, "reloaded")));
    assert_string_equal(json_string_value(json_array_get(json_object_get(json, "mistakes"), 0)), "x.yaml:1:2: cache.memroy: unknown item");
    json_decref(json);
    free(answer);
    admin_stop(&a);
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static struct stats *some_worker(void)
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

static json_int_t at(const json_t *json, const char *a, const char *b)
{
    return json_integer_value(json_object_get(json_object_get(json, a), b));
}

static void test_stats_json(void **state)
{
    (void)state;
    struct admin *a = start(NULL);
    char *answer = ask(admin_where(a), "GET", "/stats", "", "");
    json_t *json = json_of(answer), *ratio = json_object_get(json, "hit_ratio"), *requests = json_object_get(json, "requests");
    assert_int_equal(at(requests, "by_outcome", "hit"), 6);
    assert_int_equal(at(requests, "by_outcome", "refused"), 4);
    assert_int_equal(at(requests, "by_reason", "fresh"), 6);
    assert_int_equal(at(requests, "by_status", "4xx"), 4);
    assert_int_equal(json_integer_value(json_object_get(requests, "total")), 12);
    assert_true(json_real_value(json_object_get(ratio, "requests")) == 0.75); /* refused ones had no answer to look up */
    assert_true(json_real_value(json_object_get(ratio, "bytes")) == 0.25);
    assert_int_equal(at(json, "connections", "open"), 5);
    assert_int_equal(at(json, "connections", "idle"), 3);
    assert_int_equal(at(json, "connections", "active"), 2);
    assert_int_equal(at(json, "fills", "followers"), 0); /* a gauge is never below zero */
    assert_int_equal(at(json, "malformed", "length"), 4);
    assert_int_equal(json_integer_value(json_object_get(json, "generation")), 4);
    json_t *memory = json_object_get(json_object_get(json, "cache"), "memory");
    json_int_t sum = 0;
    static const char *const kinds[] = { "body_memory_bytes", "body_file_bytes", "head_bytes", "index_bytes", "filling_bytes", "other_bytes" };
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        sum += json_integer_value(json_object_get(memory, kinds[i]));
    assert_int_equal(sum, json_integer_value(json_object_get(memory, "used_bytes")));
    assert_true(json_integer_value(json_object_get(memory, "rss_bytes")) > 100000);
    json_t *app = json_array_get(json_object_get(json, "origins"), 0), *servers = json_object_get(app, "servers");
    assert_int_equal(json_array_size(json_object_get(json, "origins")), 2);
    assert_int_equal(json_integer_value(json_object_get(app, "requests")), 107);
    assert_int_equal(json_array_size(servers), 2);
    assert_true(json_real_value(json_object_get(json_array_get(servers, 0), "head_mean_ms")) == 5.0);
    assert_true(json_is_null(json_object_get(json_array_get(servers, 1), "head_mean_ms")));
    assert_string_equal(json_string_value(json_object_get(json_array_get(servers, 1), "state")), "failing");
    /* every counter of the table is there, as a sum and for each worker */
    json_t *worker = json_array_get(json_object_get(json, "workers"), 0);
    assert_string_equal(json_string_value(json_object_get(worker, "worker")), "worker 0");
    for (size_t i = 0; i < stat_row_count; i++) {
        assert_true(json_is_integer(json_object_get(json_object_get(json, "counters"), stat_rows[i].name)));
        assert_true(json_is_integer(json_object_get(worker, stat_rows[i].name)));
    }
    json_decref(json);
    free(answer);
    admin_stop(&a);
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* One sample: name, labels with escaped values, a number. The end of the name is returned. */
static const char *assert_sample(const char *line)
{
    const char *at = line, *name_end;
    while (is_name_byte(*at))
        at++;
    name_end = at;
    assert_true(at > line);
    if (*at == '{') {
        do {
            at++;
            const char *label = at;
            while (is_name_byte(*at))
                at++;
            assert_true(at > label && at[0] == '=' && at[1] == '"');
            for (at += 2; *at != '"'; at++) {
                if (*at == '\\')
                    at++;
                assert_true(*at != '\0');
            }
            at++;
        } while (*at == ',');
        assert_int_equal(*at++, '}');
    }
    assert_int_equal(*at++, ' ');
    char *end;
    strtod(at, &end);
    if (end == at || *end != '\0')
        fail_msg("not a sample: %s", line);
    return name_end;
}

static void test_metrics_line_by_line(void **state)
{
    (void)state;
    struct admin *a = start(NULL);
    char *answer = ask(admin_where(a), "GET", "/metrics", "", ""), *text = body_of(answer);
    assert_has(text, "\nlarder_requests_total{outcome=\"hit\"} 6\n");
    assert_has(text, "\nlarder_request_reasons_total{reason=\"fresh\"} 6\n");
    assert_has(text, "\nlarder_responses_total{status=\"4xx\"} 4\n");
    assert_has(text, "\nlarder_malformed_requests_total{cause=\"length\"} 4\n");
    assert_has(text, "\nlarder_client_open 5\n");
    assert_has(text, "\nlarder_followers_live 0\n");
    assert_has(text, "\nlarder_origin_head_seconds_total 1.5\n");
    assert_has(text, "\nlarder_server_up{origin=\"app\",server=\"http://10.0.0.6:8080\"} 0\n");
    assert_has(text, "\nlarder_server_head_seconds_sum{origin=\"app\",server=\"http://10.0.0.5:8080\"} 0.5\n");
    assert_has(text, "origin=\"we\\\"ird\\\\\\n\",server=\"/var/www\"} 1\n");
    assert_has(text, "\nlarder_cache_memory_bytes{kind=\"head\"} ");
    assert_has(text, "\nprocess_resident_memory_bytes ");
    char family[128] = "", kind[16] = "";
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char name[128], help[8];
        if (sscanf(line, "# HELP %127s %7s", name, help) == 2) {
            strcpy(family, name);
        } else if (sscanf(line, "# TYPE %127s %15s", name, kind) == 2) {
            assert_string_equal(name, family); /* HELP and TYPE stand together, before the samples */
            size_t length = strlen(name);
            assert_int_equal(strcmp(kind, "counter") == 0, length > 6 && strcmp(name + length - 6, "_total") == 0);
        } else {
            const char *end = assert_sample(line);
            size_t length = (size_t)(end - line), stem = strlen(family);
            bool is_part = strcmp(kind, "summary") == 0 && length > stem;
            assert_true(strncmp(line, family, stem) == 0 && (is_part || length == stem));
        }
    }
    free(answer);
    admin_stop(&a);
}

/* ---- what is not nice -------------------------------------------------------------------------------------------- */

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
        "", "\r\n\r\n", "x", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\x01\x01", "PURGE / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET http://[::1 HTTP/1.1\r\n\r\n", "GET //..//\xff%00%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n{}",
        "POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
        "POST /purge HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{\"url\"",
        "CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /?refresh=%00&refresh HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n", ": \r\n: \r\n\r\n",
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

/* More connections than there are places: the others wait, and are answered when there is room; none of it stops the rest. */
static void test_connections_are_bounded(void **state)
{
    (void)state;
    enum { MANY = 150 };
    int fds[MANY];
    struct admin *a = start(NULL);
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
    assert_answers(admin_where(a), "GET", "/healthz", "", "", 200, "ok"); /* so the first was accepted */
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
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(strrchr(admin_where(a), ':') + 1)),
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

/* ---- where it listens -------------------------------------------------------------------------------------------- */

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
    assert_answers(admin_where(a), "GET", "/stats", "Authorization: Bearer secret\r\n", "", 200, "hit_ratio");
    admin_stop(&a);

    a = start(NULL);
    uint16_t port = (uint16_t)atoi(strrchr(admin_where(a), ':') + 1);
    snprintf(text, sizeof text, "127.0.0.1:%u", port);
    assert_string_equal(text, admin_where(a));
    assert_null(start_at((struct config_address){ .kind = ADDRESS_TCP, .text = text, .host = "127.0.0.1", .port = port }, NULL, why));
    assert_has(why, "Address already in use");
    assert_has(why, text);
    admin_stop(&a);
    assert_null(start_at((struct config_address){ .kind = ADDRESS_TCP, .text = "no.such.host.invalid:1", .host = "no.such.host.invalid" },
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
    assert_answers(text, "GET", "/stats", "Host: any.name\r\n", "", 200, "hit_ratio"); /* no browser gets here */
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
    assert_null(start_at((struct config_address){ .kind = ADDRESS_UNIX, .text = big, .path = big }, NULL, why));
    assert_has(why, "longer than 107 bytes");
}

/* ---- the commands ------------------------------------------------------------------------------------------------ */

/* Runs one with standard output and error in a file; the status. */
static int run(int (*command)(int argc, char **argv), char *output, size_t capacity, const char *const *words)
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

#define RUN(command, ...) run(command, output, sizeof output, (const char *const[]){ __VA_ARGS__, NULL })

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
    assert_has(output, "app http://10.0.0.6:8080  failing  requests 7  faults 7  head -  last fault: the origin refused");
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
    assert_has(output, "usage: larder purge URL");

    reload_works = true;
    assert_int_equal(RUN(admin_command_reload, "reload"), 0);
    assert_string_equal(output, "configuration 4 is in force\nnot in force yet: workers: needs a restart\n");
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

/* ---- around all of it -------------------------------------------------------------------------------------------- */

static void set_up_clock(void)
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

static int set_up(void **state)
{
    strcpy(folder, "/tmp/larder-admin-XXXXXX");
    if (mkdtemp(folder) == NULL || thread_setup(state) != 0)
        return -1;
    set_up_clock();
    store_open(&store, MiB(16), 0, 8);
    struct config_mistakes m = { 0 };
    running = config_load_text("test.yaml", SLICE("listen: [ \"127.0.0.1:0\" ]\ncache: { memory: 16MiB }\n"
                                                  "origins: { app: { servers: [ \"http://127.0.0.1:1\" ] } }\n"
                                                  "sites: [ { hosts: [ \"*\" ], origin: app } ]\n"), &m);
    if (running == NULL)
        fail_msg("%s", m.count > 0 ? m.lines[0] : "no configuration");
    running->generation = 4;
    log_set_level(LOG_WARN); /* a line about each purge would stand in the output of the commands */
    some_worker();
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    config_unref(&running);
    store_close(&store);
    thread_teardown(state);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_loopback_addresses),
        cmocka_unit_test(test_each_path_answers),
        cmocka_unit_test(test_a_token_is_wanted),
        cmocka_unit_test(test_other_names_and_other_sites),
        cmocka_unit_test(test_purge),
        cmocka_unit_test(test_reload),
        cmocka_unit_test(test_stats_json),
        cmocka_unit_test(test_metrics_line_by_line),
        cmocka_unit_test(test_sizes_are_bounded),
        cmocka_unit_test(test_nonsense_is_survived),
        cmocka_unit_test(test_connections_are_bounded),
        cmocka_unit_test(test_a_dribbling_connection_is_ended),
        cmocka_unit_test(test_no_descriptor_is_left),
        cmocka_unit_test(test_a_stop_does_not_wait_for_idlers),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_unix_socket),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_answers_that_the_client_reads),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
