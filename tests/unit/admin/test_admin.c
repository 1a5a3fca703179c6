/* tests/unit/admin/test_admin.c: who may ask, what each path answers, purge and reload, and the
 * figures in each of their forms. */
#include "tests/unit/admin/admin_help.h"

/* ---- guards ---------------------------------------------------------------------------------- */

static void test_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *authorization;
        bool matches;
    } rows[] = {
        { "Bearer secret", true },
        { "bearer secret", true },
        { "Bearer  secret ", true },
        { "Bearer secre", false },
        { "Bearer secrets", false },
        { "Bearer Secret", false },
        { "Bearer ", false },
        { "Bearer", false },
        { "secret", false },
        { "Basic secret", false },
        { "", false },
        { NULL, false },
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
        { "localhost", true },
        { "LocalHost:6081", true },
        { "127.0.0.1", true },
        { "127.0.0.1:80", true },
        { "[::1]", true },
        { "[::1]:6081", true },
        { "127.0.0.9:1", true }, /* where it is bound */
        { "evil.example", false },
        { "localhost.evil.example", false },
        { "127.0.0.1.evil.example:6081", false },
        { "127.0.0.2", false },
        { "[::2]", false },
        { "[::1", false },
        { "[::1]evil", false },
        { "localhost:x", false },
        { "localhost:", false },
        { "localhost@evil", false },
        { "", false },
        { NULL, false },
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
        { "http://localhost:6081", "localhost:6081", true },
        { "https://admin.example", "Admin.Example", true },
        { "http://localhost:6082", "localhost:6081", false },
        { "http://evil.example", "localhost:6081", false },
        { "null", "localhost:6081", false },
        { "", "localhost", false },
        { "http://", "", false },
        { "http://a", NULL, false },
        { "file://localhost", "localhost", false },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(admin_origin_is_own(rows[i].origin, rows[i].host), rows[i].is_own);
}

static void test_loopback_addresses(void **state)
{
    (void)state;
    static const char *const loopback[] = { "127.0.0.1", "127.9.9.9", "::1", "localhost" };
    static const char *const others[] = {
        "", "0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "fe80::1", "localhost.example"
    };
    for (size_t i = 0; i < ARRAY_COUNT(loopback); i++)
        assert_true(admin_address_is_loopback(loopback[i]));
    for (size_t i = 0; i < ARRAY_COUNT(others); i++)
        assert_false(admin_address_is_loopback(others[i]));
}

/* ---- paths ----------------------------------------------------------------------------------- */

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
            assert_answers(admin_where(a), rows[i].method, rows[i].path, "", "", rows[i].status,
                           rows[i].part);
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
    assert_answers(where, "GET", "/stats", "", "", 401,
                   "WWW-Authenticate: Bearer realm=\"larder\"");
    assert_answers(where, "GET", "/nothing", "", "", 401, "Authorization: Bearer TOKEN");
    assert_answers(where, "POST", "/purge", "Authorization: Bearer wrong\r\n", "{}", 401, "error");
    assert_answers(where, "GET", "/", "Authorization: Bearer wrong\r\n", "", 401, "error");
    assert_answers(where, "GET", "/stats", good, "", 200, "hit_ratio");
    assert_answers(where, "GET", "/healthz", "", "", 200, "ok");
    /* with a token, any name will do: a page elsewhere does not know it */
    assert_answers(where, "GET", "/stats",
                   "Host: larder.example\r\nAuthorization: Bearer secret\r\n", "", 200,
                   "hit_ratio");
    admin_stop(&a);
}

static void test_other_names_and_other_sites(void **state)
{
    (void)state;
    struct admin *a = start(NULL);
    const char *where = admin_where(a);
    assert_answers(where, "GET", "/stats", "Host: evil.example\r\n", "", 403,
                   "localhost, 127.0.0.1 or [::1] only");
    assert_answers(where, "POST", "/reload", "Host: evil.example:6081\r\n", "", 403, "error");
    assert_answers(where, "GET", "/healthz", "Host: evil.example\r\n", "", 200, "ok");
    assert_answers(where, "GET", "/stats", "Host: [::1]:6081\r\n", "", 200, "hit_ratio");
    char *answer = exchange(where, "GET /stats HTTP/1.0\r\n\r\n");
    assert_status(answer, 403);
    free(answer);

    reload_works = true;
    assert_answers(where, "POST", "/reload", "Origin: http://evil.example\r\n", "", 403,
                   "a page of another site");
    assert_answers(where, "POST", "/reload", "Origin: null\r\n", "", 403, "a page of another site");
    assert_answers(where, "POST", "/reload", "Sec-Fetch-Site: cross-site\r\n", "", 403,
                   "a page of another site");
    assert_answers(where, "POST", "/reload", "Sec-Fetch-Site: same-site\r\n", "", 403,
                   "a page of another site");
    assert_answers(where, "POST", "/reload",
                   "Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n", "", 200,
                   "\"reloaded\": true");
    admin_stop(&a);
}

/* ---- purge and reload ------------------------------------------------------------------------ */

static void put_with_tags(unsigned number, struct slice tags)
{
    struct key_text k;
    struct request none;
    struct watcher w;
    struct cache_fill *f;
    struct object_facts facts = facts_make(100, SLICE_NONE);
    facts.tags = tags;
    watcher_init(&w, store.mailbox);
    assert_int_equal(cache_fill_begin(store.cache, key_make(&store, &k, number),
                                      request_make(&none, NULL, NULL), NULL, &w.reader, &f),
                     FILL_LEAD);
    cache_fill_head(f, &facts);
    append_bytes(f, number, 0, 100);
    assert_true(cache_fill_seal(f));
    watcher_done(&store, &w);
    cache_fill_done(&f);
}

/* The answer's JSON in one line. */
static void assert_purge(struct admin *a, const char *body, int status, const char *part)
{
    char *answer = ask(admin_where(a), "POST", "/purge", "", body), *to = answer;
    assert_status(answer, status);
    for (const char *from = answer; *from != '\0'; from++)
        if (*from != '\n' && (*from != ' ' || to == answer || to[-1] != ' '))
            *to++ = *from;
    *to = '\0';
    assert_has(answer, part);
    free(answer);
}

/* Objects 1 to 9 of host.example; 8 and 9 have the tag "t", 9 "u", too. */
static void test_purge(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int status;
        const char *part;
    } rows[] = {
        { "{\"url\": \"http://host.example/object/1\"}", 200,
          "\"mode\": \"url\", \"how\": \"hard\", \"objects\": 1, \"keys\": 1, \"fills\": 0" },
        { "{\"url\": \"http://host.example/object/1\"}", 404, "\"objects\": 0" },
        { "{\"url\": \"/object/2\", \"host\": \"host.example\"}", 200, "\"purged\": 1" },
        { "{\"tag\": \"u\", \"dry_run\": true}", 200,
          "\"mode\": \"tag\", \"how\": \"dry_run\", \"objects\": 1" },
        { "{\"tags\": [\"u\", \"t\"], \"dry_run\": true}", 200, "\"objects\": 2" },
        { "{\"tags\": [\"t\"], \"soft\": true, \"dry_run\": false}", 200,
          "\"mode\": \"tags\", \"how\": \"soft\", \"objects\": 2" },
        { "{\"tag\": \"u\"}", 200, "\"objects\": 1" },
        { "{\"prefix\": \"http://host.example/object/8\", \"soft\": false}", 200,
          "\"objects\": 1" },
        { "{\"prefix\": \"/object/\", \"host\": \"host.example\", \"dry_run\": true}", 200,
          "\"objects\": 5" },
        { "{\"glob\": \"http://HOST.example:80/object/*\", \"dry_run\": true}", 200,
          "\"objects\": 5" },
        { "{\"glob\": \"*.example/object/7\"}", 200, "\"objects\": 1" },
        { "{\"host\": \"HOST.example.\", \"dry_run\": true}", 200,
          "\"mode\": \"host\", \"how\": \"dry_run\", \"objects\": 4" },
        { "{\"host\": \"host.example:81\"}", 404, "\"objects\": 0" },
        { "{\"everything\": true, \"dry_run\": true}", 200,
          "\"mode\": \"everything\", \"how\": \"dry_run\", \"objects\": 4" },
        /* none of these may purge anything */
        { "{\"url\": \"/object/3\"}", 400, "url: the host is missing or malformed" },
        { "", 400, "the body is empty" },
        { "{\"url\": ", 400, "the body is not JSON: line 1, column 8" },
        { "{\"url\": \"/a\", \"url\": \"/b\"}", 400, "duplicate" },
        { "[\"http://host.example/object/3\"]", 400, "the body is a JSON object" },
        { "{}", 400, "a purge has one of url, host, prefix, glob, tag, tags, everything" },
        { "{\"soft\": true}", 400, "a purge has one of url, host," },
        { "{\"url\": 3}", 400, "url: this is a string" },
        { "{\"url\": \"\"}", 400, "url: this is a string, and not empty" },
        { "{\"tag\": \"a\\u0001\"}", 400, "tag: this is a string" },
        { "{\"tag\": [\"a\"]}", 400, "tag: this is a string" },
        { "{\"tags\": \"a\"}", 400, "tags: this is a list of 1 to 256 strings" },
        { "{\"tags\": []}", 400, "tags: this is a list" },
        { "{\"tags\": [\"a\", \"\"]}", 400, "tags: this is a list" },
        { "{\"everything\": false}", 400, "everything: this is true" },
        { "{\"everything\": \"yes\"}", 400, "everything: this is true" },
        { "{\"everything\": true, \"soft\": 1}", 400, "soft: this is true or false" },
        { "{\"everything\": true, \"soft\": true, \"dry_run\": true}", 400,
          "soft: a purge is soft, or a dry_run, or neither" },
        { "{\"everything\": true, \"tag\": \"t\"}", 400,
          "everything: a purge has one of url, host, prefix, glob, tag, tags, everything at a" },
        { "{\"url\": \"http://host.example/object/3\", \"host\": null}", 400,
          "host: this is a string" },
        { "{\"url\": \"http://host.example/object/3\", \"host\": \"host.example\"}", 400,
          "host: it goes with a url or prefix that is a path, or stands alone" },
        { "{\"tag\": \"t\", \"host\": \"host.example\"}", 400, "host: it goes with" },
        { "{\"host\": \"http://host.example\"}", 400, "host: this is a host such as" },
        { "{\"host\": \"*.example\"}", 400, "host: this is a host such as" },
        { "{\"glob\": \"host.example\"}", 400, "glob: a pattern is for host and path" },
        { "{\"glob\": \"host.example/***\"}", 400, "glob: three stars" },
        { "{\"everything\": true, \"sotf\": true}", 400,
          "sotf: unknown member; a purge has one of url" },
        { "\xff\xfe", 400, "the body is not JSON" },
    };
    struct stats_sum before, after;
    stats_sum_all(&before);
    for (unsigned i = 1; i <= 7; i++)
        assert_true(put(&store, i, 100, true));
    put_with_tags(8, (struct slice){ "t\0", 2 });
    put_with_tags(9, (struct slice){ "t\0u\0", 4 });
    struct admin *a = start(NULL);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_purge(a, rows[i].body, rows[i].status, rows[i].part);
    admin_stop(&a);
    for (unsigned i = 1; i <= 9; i++)
        assert_int_equal(is_stored(&store, i), i >= 3 && i <= 6);
    stats_sum_all(&after);
    assert_int_equal(after.purges - before.purges, 8); /* dry ones are none */
    assert_int_equal(after.purged - before.purged, 1 + 1 + 2 + 1 + 1 + 1);
    for (unsigned i = 3; i <= 6; i++) {
        struct key_text k;
        cache_purge_key(store.cache, key_make(&store, &k, i));
    }
}

/* A fetch under way is something that matched. */
static void test_purge_of_a_fill(void **state)
{
    (void)state;
    struct key_text k;
    struct request none;
    struct watcher w;
    struct cache_fill *f;
    watcher_init(&w, store.mailbox);
    assert_int_equal(cache_fill_begin(store.cache, key_make(&store, &k, 5),
                                      request_make(&none, NULL, NULL), NULL, &w.reader, &f),
                     FILL_LEAD);
    struct admin *a = start(NULL);
    assert_purge(a, "{\"host\": \"host.example\"}", 200,
                 "\"objects\": 0, \"keys\": 0, \"fills\": 1, \"bytes\": 0");
    admin_stop(&a);
    cache_fill_fail(f, REASON_CLIENT_LEFT);
    watcher_done(&store, &w);
    cache_fill_done(&f);
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
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(json, "restart_needed"), 0)),
        "workers: needs a restart");
    json_decref(json);
    free(answer);

    reload_works = false;
    answer = ask(admin_where(a), "POST", "/reload", "", "");
    assert_status(answer, 422);
    json = json_of(answer);
    assert_true(json_is_false(json_object_get(json, "reloaded")));
    assert_string_equal(json_string_value(json_array_get(json_object_get(json, "mistakes"), 0)),
                        "x.yaml:1:2: cache.memroy: unknown item");
    json_decref(json);
    free(answer);
    admin_stop(&a);
}

/* ---- figures --------------------------------------------------------------------------------- */

static json_int_t at(const json_t *json, const char *a, const char *b)
{
    return json_integer_value(json_object_get(json_object_get(json, a), b));
}

static void test_stats_json(void **state)
{
    (void)state;
    struct admin *a = start(NULL);
    char *answer = ask(admin_where(a), "GET", "/stats", "", "");
    json_t *json = json_of(answer), *ratio = json_object_get(json, "hit_ratio"),
           *requests = json_object_get(json, "requests");
    assert_int_equal(at(requests, "by_outcome", "hit"), 6);
    assert_int_equal(at(requests, "by_outcome", "refused"), 4);
    assert_int_equal(at(requests, "by_reason", "fresh"), 6);
    assert_int_equal(at(requests, "by_status", "4xx"), 4);
    assert_int_equal(json_integer_value(json_object_get(requests, "total")), 12);
    assert_true(json_real_value(json_object_get(ratio, "requests")) ==
                0.75); /* refused ones had no answer to look up */
    assert_true(json_real_value(json_object_get(ratio, "bytes")) == 0.25);
    assert_int_equal(at(json, "connections", "open"), 5);
    assert_int_equal(at(json, "connections", "idle"), 3);
    assert_int_equal(at(json, "connections", "active"), 2);
    assert_int_equal(at(json, "fills", "followers"), 0); /* a gauge is never below zero */
    assert_int_equal(at(json, "malformed", "length"), 4);
    assert_int_equal(json_integer_value(json_object_get(json, "generation")), 4);
    json_t *memory = json_object_get(json_object_get(json, "cache"), "memory");
    json_int_t sum = 0;
    static const char *const kinds[] = { "body_memory_bytes", "body_file_bytes", "head_bytes",
                                         "index_bytes",       "filling_bytes",   "other_bytes" };
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        sum += json_integer_value(json_object_get(memory, kinds[i]));
    assert_int_equal(sum, json_integer_value(json_object_get(memory, "used_bytes")));
    assert_true(json_integer_value(json_object_get(memory, "rss_bytes")) > 100000);
    json_t *app = json_array_get(json_object_get(json, "origins"), 0),
           *servers = json_object_get(app, "servers");
    assert_int_equal(json_array_size(json_object_get(json, "origins")), 2);
    assert_int_equal(json_integer_value(json_object_get(app, "requests")), 107);
    assert_int_equal(json_array_size(servers), 2);
    assert_true(json_real_value(json_object_get(json_array_get(servers, 0), "head_mean_ms")) ==
                5.0);
    assert_true(json_is_null(json_object_get(json_array_get(servers, 1), "head_mean_ms")));
    assert_string_equal(json_string_value(json_object_get(json_array_get(servers, 1), "state")),
                        "failing");
    /* every counter of the table is there, as a sum and for each worker */
    json_t *worker = json_array_get(json_object_get(json, "workers"), 0);
    assert_string_equal(json_string_value(json_object_get(worker, "worker")), "worker 0");
    for (size_t i = 0; i < stat_row_count; i++) {
        assert_true(
            json_is_integer(json_object_get(json_object_get(json, "counters"), stat_rows[i].name)));
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
    assert_has(
        text,
        "\nlarder_server_head_seconds_sum{origin=\"app\",server=\"http://10.0.0.5:8080\"} 0.5\n");
    assert_has(text, "origin=\"we\\\"ird\\\\\\n\",server=\"/var/www\"} 1\n");
    assert_has(text, "\nlarder_cache_memory_bytes{kind=\"head\"} ");
    assert_has(text, "\nprocess_resident_memory_bytes ");
    char family[128] = "", kind[16] = "";
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char name[128], help[8];
        if (sscanf(line, "# HELP %127s %7s", name, help) == 2) {
            strcpy(family, name);
        } else if (sscanf(line, "# TYPE %127s %15s", name, kind) == 2) {
            assert_string_equal(name,
                                family); /* HELP and TYPE stand together, before the samples */
            size_t length = strlen(name);
            assert_int_equal(strcmp(kind, "counter") == 0,
                             length > 6 && strcmp(name + length - 6, "_total") == 0);
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
        cmocka_unit_test(test_purge_of_a_fill),
        cmocka_unit_test(test_reload),
        cmocka_unit_test(test_stats_json),
        cmocka_unit_test(test_metrics_line_by_line),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
