/* tests/unit/config/test_config.c: whole snapshots: defaults, every item given, options, sites,
 * aliases, the printed form that reads back, what needs a restart, and the manual's page.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "config/config_internal.h"

#define APP "origins: { app: { servers: \"http://a:80\" } }\n"

static struct config *load(const char *yaml)
{
    struct config_mistakes mistakes;
    struct config *c = config_load_text("t.yaml", slice_of(yaml), &mistakes);
    if (c == NULL)
        fail_msg("%s", mistakes.lines[0]);
    assert_int_equal(mistakes.count, 0);
    config_mistakes_free(&mistakes);
    return c;
}

/* The caller frees it. */
static char *printed(const struct config *c)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    config_print(c, out);
    fclose(out);
    return text;
}

static void test_defaults(void **state)
{
    (void)state;
    struct config *c = load(APP);
    assert_int_equal(c->worker_count, 0);
    assert_int_equal(c->listen_count, 1);
    assert_int_equal(c->listen[0].port, 8080);
    assert_string_equal(c->listen[0].host, "");
    assert_null(c->user);
    assert_true(c->has_admin);
    assert_string_equal(c->admin.text, "127.0.0.1:6081");
    assert_null(c->admin_token);
    assert_int_equal(c->memory_bytes, MiB(512));
    assert_int_equal(c->object_max_bytes, 0);
    assert_true(c->has_heuristic);
    assert_int_equal(c->heuristic_max_s, 86400);
    assert_int_equal(c->ttl_count, 0);
    assert_false(c->honours_client);
    assert_int_equal(c->variants_max, 32);
    assert_int_equal(c->uncacheable_ms, 10000);
    assert_int_equal(c->collapse_timeout_ms, 30000);
    assert_int_equal(c->head_timeout_ms, 10000);
    assert_int_equal(c->body_timeout_ms, 30000);
    assert_int_equal(c->idle_timeout_ms, 65000);
    assert_int_equal(c->send_timeout_ms, 60000);
    assert_int_equal(c->head_max_bytes, KiB(32));
    assert_int_equal(c->target_max_bytes, KiB(8));
    assert_int_equal(c->field_max_count, 100);
    assert_int_equal(c->body_max_bytes, 0);
    assert_int_equal(c->connection_max, 0);
    assert_int_equal(c->address_connection_max, 0);
    assert_int_equal(c->trusted_count, 0);
    assert_null(c->trusted[0]);
    assert_false(c->sends_forwarded);
    assert_int_equal(c->shutdown_timeout_ms, 30000);
    assert_false(c->has_access_log);
    assert_int_equal(c->log_level, LOG_INFO);
    assert_string_equal(c->path, "t.yaml");
    const struct config_origin *o = &c->origins[0];
    assert_int_equal(o->kind, ORIGIN_SERVERS);
    assert_null(o->host_header);
    assert_int_equal(o->connect_timeout_ms, 3000);
    assert_int_equal(o->first_byte_timeout_ms, 60000);
    assert_int_equal(o->between_bytes_timeout_ms, 30000);
    assert_int_equal(o->idle_timeout_ms, 4000);
    assert_int_equal(o->idle_count, 64);
    assert_int_equal(o->resolve_ttl_ms, 30000);
    assert_true(o->sends_via);
    assert_int_equal(c->site_count, 1); /* one origin, no sites: "*" */
    assert_string_equal(c->sites[0].name, "*");
    assert_ptr_equal(c->sites[0].origin, o);
    config_unref(&c);
    assert_null(c);
}

static const char every_item[] =
    "workers: 2\n"
    "listen: [ \"127.0.0.1:8081\", \"[::1]:8081\", \"unix:/run/larder.sock\" ]\n"
    "user: root\n"
    "shutdown_timeout: 5s\n"
    "log_level: debug\n"
    "admin: { listen: \":6082\", token: s3cret }\n"
    "cache:\n"
    "  memory: 64MiB\n"
    "  max_object: 1MiB\n"
    "  heuristic: no\n"
    "  heuristic_max: 1h\n"
    "  default_ttl: { 200: 5m, 404: 10s }\n"
    "  honour_client_directives: yes\n"
    "  max_variants: 8\n"
    "  remember_uncacheable: 1s\n"
    "  collapse_timeout: 2s\n"
    "  collapse_max: 20\n"
    "  stale_while_revalidate: 3s\n"
    "  stale_if_error: 4s\n"
    "  stale_if_unreachable: 5s\n"
    "  keep: 6s\n"
    "  unsafe_share_set_cookie: true\n"
    "  targeted_fields: [ Larder-Cache-Control, CDN-Cache-Control ]\n"
    "  send_tags: true\n"
    "  range_whole: 1MiB\n"
    "  slice: 64KiB\n"
    "  tell_key: true\n"
    "  purge_from: 10.0.0.0/8\n"
    "clients:\n"
    "  head_timeout: 1s\n"
    "  body_timeout: 2s\n"
    "  idle_timeout: 3s\n"
    "  send_timeout: 4s\n"
    "  max_head: 16KiB\n"
    "  max_target: 4KiB\n"
    "  max_fields: 50\n"
    "  max_body: 10MiB\n"
    "  max_connections: 1000\n"
    "  max_connections_per_address: 10\n"
    "  trusted_proxies: [ 10.0.0.0/8, \"::1\" ]\n"
    "  send_forwarded: true\n"
    "access_log: { path: /tmp/access.log, format: \"{client} \\\"{request}\\\"\\t\\\\ é\\u2028\" "
    "}\n"
    "origins:\n"
    "  app:\n"
    "    servers: [ \"http://10.0.0.5:8080\", \"unix:/run/app.sock\" ]\n"
    "    host: www.example.com:8080\n"
    "    connect_timeout: 100ms\n"
    "    first_byte_timeout: 200ms\n"
    "    between_bytes_timeout: 300ms\n"
    "    idle_timeout: 400ms\n"
    "    idle_connections: 0\n"
    "    resolve_ttl: 1m\n"
    "    send_via: false\n"
    "  files:\n"
    "    root: /tmp\n"
    "    index: [ index.htm, index.html ]\n"
    "    follow_symlinks: true\n"
    "    check_interval: 0\n"
    "sites:\n"
    "  - { hosts: [ WWW.example.com, \"*.example.com\" ], origin: app }\n"
    "  - hosts: \"*\"\n"
    "    origin: files\n"
    "    presets: [ static ]\n"
    "    rules:\n"
    "      - name: every\n"
    "        match:\n"
    "          host: \"*.example.com\"\n"
    "          path: [ /a, \"/b/**\" ]\n"
    "          path_regex: \"^/([ab])\"\n"
    "          ignore_case: true\n"
    "          method: [ GET, HEAD ]\n"
    "          scheme: http\n"
    "          query: { a: \"*\", \"b*\": false, c: [ x, y ] }\n"
    "          fields: { User-Agent: { regex: Mobile } }\n"
    "          cookies: [ a, b ]\n"
    "          client: 10.0.0.0/8\n"
    "          not: { path: /b/c }\n"
    "        cache: { ttl: 1d, default_ttl: { 200: 5m }, grace: 1h, stale_while_revalidate: 2m, keep: "
    "30d, "
    "ignore: vary }\n"
    "        key: { ignore: \"utm_*\", keep: [ id, page ], sort: true, fields: X-A, cookies: lang, "
    "ignore_case: true }\n"
    "        cookies: { drop: \"_ga*\" }\n"
    "        request: { set: { X-A: $1 }, append: { X-B: [ b, c ] }, remove: X-C }\n"
    "        response: { set: { X-D: d }, append: { X-E: e }, remove: \"X-F*\" }\n"
    "        origin: files\n"
    "        rewrite: { path: /c, regex: \"^/a\", query: \"\" }\n"
    "        tags: [ t, \"u-$1\" ]\n"
    "        stop: true\n"
    "      - { match: { status: [ 404, 5xx ], response_fields: { Content-Type: \"text/*\" } }, cache: "
    "no_store }\n"
    "      - { match: { path: /d }, redirect: { to: \"https://$host$path\", status: 301 } }\n"
    "      - { match: { path: /e }, answer: { status: 410, body: \"gone\\n\", type: text/plain } }\n"
    "      - { match: { path: /f }, deny: 404 }\n"
    "    tests:\n"
    "      - name: one\n"
    "        request: { url: \"http://other.test/a\", method: GET, fields: { A: b }, client: 10.0.0.1 }\n"
    "        response: { status: 200, fields: { C: d } }\n"
    "        expect: { outcome: miss, key: k, ttl: 1d, stored: true, rule: every, why: absent, status: "
    "200, "
    "location: l, origin: files, tags: [ t ] }\n";

static void test_every_item(void **state)
{
    (void)state;
    struct config *c = load(every_item);
    assert_int_equal(c->worker_count, 2);
    assert_int_equal(c->listen_count, 3);
    assert_string_equal(c->listen[1].host, "::1");
    assert_int_equal(c->listen[2].kind, ADDRESS_UNIX);
    assert_string_equal(c->user, "root");
    assert_int_equal(c->shutdown_timeout_ms, 5000);
    assert_int_equal(c->log_level, LOG_DEBUG);
    assert_int_equal(c->admin.port, 6082);
    assert_string_equal(c->admin_token, "s3cret");
    assert_int_equal(c->memory_bytes, MiB(64));
    assert_int_equal(c->object_max_bytes, MiB(1));
    assert_false(c->has_heuristic);
    assert_int_equal(c->heuristic_max_s, 3600);
    assert_int_equal(c->ttl_count, 2);
    assert_int_equal(c->ttls[1].status, 404);
    assert_int_equal(c->ttls[1].ttl_s, 10);
    assert_true(c->honours_client);
    assert_int_equal(c->variants_max, 8);
    assert_int_equal(c->uncacheable_ms, 1000);
    assert_int_equal(c->collapse_timeout_ms, 2000);
    assert_int_equal(c->collapse_max, 20);
    assert_int_equal(c->stale_while_revalidate_s, 3);
    assert_int_equal(c->stale_if_error_s, 4);
    assert_int_equal(c->stale_if_unreachable_s, 5);
    assert_int_equal(c->keep_s, 6);
    assert_true(c->shares_set_cookie);
    assert_int_equal(c->targeted_count, 2);
    assert_string_equal(c->targeted[0], "Larder-Cache-Control");
    assert_true(c->sends_tags);
    assert_int_equal(c->range_whole_bytes, MiB(1));
    assert_int_equal(c->slice_bytes, KiB(64));
    assert_true(c->tells_key);
    assert_int_equal(c->purge_from_count, 1);
    assert_string_equal(c->purge_from[0], "10.0.0.0/8");
    assert_int_equal(c->head_timeout_ms, 1000);
    assert_int_equal(c->body_timeout_ms, 2000);
    assert_int_equal(c->idle_timeout_ms, 3000);
    assert_int_equal(c->send_timeout_ms, 4000);
    assert_int_equal(c->head_max_bytes, KiB(16));
    assert_int_equal(c->target_max_bytes, KiB(4));
    assert_int_equal(c->field_max_count, 50);
    assert_int_equal(c->body_max_bytes, MiB(10));
    assert_int_equal(c->connection_max, 1000);
    assert_int_equal(c->address_connection_max, 10);
    assert_int_equal(c->trusted_count, 2);
    assert_string_equal(c->trusted[1], "::1/128");
    assert_true(c->sends_forwarded);
    assert_true(c->has_access_log);
    assert_string_equal(c->access_log_path, "/tmp/access.log");
    assert_string_equal(c->access_log_format, "{client} \"{request}\"\t\\ é\u2028");
    const struct config_origin *app = &c->origins[0], *files = &c->origins[1];
    assert_string_equal(app->name, "app");
    assert_int_equal(app->server_count, 2);
    assert_string_equal(app->servers[1].path, "/run/app.sock");
    assert_string_equal(app->host_header, "www.example.com:8080");
    assert_int_equal(app->connect_timeout_ms, 100);
    assert_int_equal(app->first_byte_timeout_ms, 200);
    assert_int_equal(app->between_bytes_timeout_ms, 300);
    assert_int_equal(app->idle_timeout_ms, 400);
    assert_int_equal(app->idle_count, 0);
    assert_int_equal(app->resolve_ttl_ms, 60000);
    assert_false(app->sends_via);
    assert_int_equal(files->kind, ORIGIN_FILES);
    assert_string_equal(files->root, "/tmp");
    assert_string_equal(files->index_names[0], "index.htm");
    assert_string_equal(files->index_names[1], "index.html");
    assert_null(files->index_names[2]);
    assert_true(files->follows_symlinks);
    assert_int_equal(files->check_ms, 0);
    assert_string_equal(c->sites[0].name, "www.example.com");
    assert_ptr_equal(c->sites[0].origin, app);
    assert_ptr_equal(c->sites[1].origin, files);
    assert_int_equal(c->sites[0].rule_count, 0);
    assert_int_equal(c->sites[1].rule_count, 1 + 5); /* the preset's, and its own */
    assert_int_equal(c->sites[1].test_count, 1);
    config_unref(&c);
}

/* A new item that nobody sets above would slip through the round trip: each must stand there. */
static void test_every_item_is_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < config_item_count; i++) {
        const char *dot = strrchr(config_items[i].path, '.');
        char key[64];
        snprintf(key, sizeof key, "%s:", dot == NULL ? config_items[i].path : dot + 1);
        if (strstr(every_item, key) == NULL)
            fail_msg("%s", config_items[i].path);
    }
}

/* Printed, read and printed again: the same text. The secret is put back where "***" stands. */
static void check_round_trip(const char *yaml)
{
    struct config *c = load(yaml);
    char *first = printed(c);
    assert_null(strstr(first, "s3cret"));
    char *again = xstrdup(first);
    char *stars = strstr(again, "\"***\"");
    if (stars != NULL)
        memcpy(stars, "\"sss\"", 5);
    bool has_secret = stars != NULL;
    struct config *back = load(again);
    char *second = printed(back);
    assert_string_equal(first, second);
    struct config_mistakes items = config_restart_items(c, back);
    assert_int_equal(items.count, has_secret ? 1 : 0); /* the secret is another one */
    config_mistakes_free(&items);
    free(second);
    free(again);
    free(first);
    config_unref(&back);
    config_unref(&c);
}

static void test_round_trip(void **state)
{
    (void)state;
    static const char *const yamls[] = {
        APP,
        every_item,
        "admin: off\n" APP,
        "access_log: {}\n" APP,
        "access_log: on\nclients:\ncache: ~\nadmin: { listen: \"unix:/run/a\" }\n" APP,
        "origins: { \"1\": { root: /tmp, index: [] } }",
        "origins: { true: { root: /tmp } }\nsites: [ { hosts: [ \"[::1]\", \"*\" ], origin: "
        "\"true\" } ]",
        "access_log: { format: \"\\u0085\\u00a0\\ufeff\\U0001F600\\uFFFE\\x7e\" }\n" APP,
    };
    for (size_t i = 0; i < ARRAY_COUNT(yamls); i++)
        check_round_trip(yamls[i]);
}

static void test_printed_secret_is_refused(void **state)
{
    (void)state;
    struct config *c = load(every_item);
    char *text = printed(c);
    struct config_mistakes mistakes;
    assert_null(config_load_text("t", slice_of(text), &mistakes));
    assert_int_equal(mistakes.count, 1);
    assert_non_null(strstr(mistakes.lines[0], "admin.token: is what is printed in place of"));
    config_mistakes_free(&mistakes);
    free(text);
    config_unref(&c);
}

static void test_headings_without_items(void **state)
{
    (void)state;
    struct config *c = load("admin:\naccess_log:\ncache:\n  # memory: 1GiB\nclients:\n" APP);
    assert_true(c->has_admin);
    assert_false(c->has_access_log);
    config_unref(&c);
    c = load("access_log: {}\n" APP);
    assert_true(c->has_access_log);
    assert_string_equal(c->access_log_path, "-");
    assert_string_equal(c->access_log_format, "combined");
    config_unref(&c);
    c = load("admin: off\n" APP);
    assert_false(c->has_admin);
    config_unref(&c);
}

static void test_zero_is_its_word(void **state)
{
    (void)state;
    struct config *c = load("workers: 0\nclients: { max_body: 0, max_connections: Auto }\n" APP);
    assert_int_equal(c->worker_count, 0);
    assert_int_equal(c->body_max_bytes, 0);
    assert_int_equal(c->connection_max, 0);
    config_unref(&c);
}

static void test_anchors_and_merges(void **state)
{
    (void)state;
    struct config *c =
        load("x-near: &near { connect_timeout: 1s, first_byte_timeout: 2s }\n"
             "x-far: &far { <<: *near, first_byte_timeout: 9s, host: far.example }\n"
             "x-server: &server \"http://10.0.0.1\"\n"
             "origins:\n"
             "  a: { <<: *near, servers: *server }\n"
             "  b: { <<: [ *far, *near ], servers: [ *server ], connect_timeout: 3s }\n"
             "sites: [ { hosts: a, origin: a }, { hosts: \"*\", origin: b } ]\n");
    assert_int_equal(c->origins[0].connect_timeout_ms, 1000);
    assert_int_equal(c->origins[0].first_byte_timeout_ms, 2000);
    assert_string_equal(c->origins[0].servers[0].text, "http://10.0.0.1");
    assert_null(c->origins[0].host_header);
    assert_int_equal(c->origins[1].connect_timeout_ms, 3000);    /* its own wins */
    assert_int_equal(c->origins[1].first_byte_timeout_ms, 9000); /* the earlier merge wins */
    assert_string_equal(c->origins[1].host_header, "far.example");
    config_unref(&c);
}

/* A whole origin by alias is two origins. */
static void test_aliased_origin(void **state)
{
    (void)state;
    struct config *c = load("origins: { a: &a { root: /tmp }, b: *a }\n"
                            "sites: [ { hosts: \"*\", origin: b } ]");
    assert_int_equal(c->origin_count, 2);
    assert_string_equal(c->origins[1].name, "b");
    assert_string_equal(c->origins[1].root, "/tmp");
    assert_ptr_equal(c->sites[0].origin, &c->origins[1]);
    config_unref(&c);
}

static void test_byte_order_mark(void **state)
{
    (void)state;
    struct config *c = load("\xef\xbb\xbf" APP);
    config_unref(&c);
}

/* ---- sites ---- */

static void test_site_find(void **state)
{
    (void)state;
    struct config *c =
        load(APP "sites:\n"
                 "  - { hosts: [ exact, www.example.com, deep.a.example.com ], origin: app }\n"
                 "  - { hosts: [ two, \"*.example.com\" ], origin: app }\n"
                 "  - { hosts: [ three, \"*.a.example.com\", \"[::1]\" ], origin: app }\n"
                 "  - { hosts: [ rest, \"*\" ], origin: app }\n");
    static const struct {
        const char *host, *site;
    } rows[] = {
        { "www.example.com", "exact" },
        { "deep.a.example.com", "exact" },
        { "img.example.com", "two" },
        { "x.y.example.com", "two" },
        { "a.example.com", "two" },
        { "x.a.example.com", "three" }, /* the longest suffix */
        { "x.y.a.example.com", "three" },
        { "[::1]", "three" },
        { "example.com", "rest" }, /* "*." is for what lies below */
        { "notexample.com", "rest" },
        { ".example.com", "rest" },
        { "*.example.com", "two" },
        { "", "rest" },
        { "other", "rest" },
        { "example.com.evil", "rest" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const struct config_site *s = config_site_find(c, slice_of(rows[i].host));
        if (s == NULL || strcmp(s->name, rows[i].site) != 0)
            fail_msg("%s: %s", rows[i].host, s == NULL ? "none" : s->name);
    }
    char dots[4000];
    memset(dots, '.', sizeof dots);
    dots[0] = 'a';
    assert_string_equal(config_site_find(c, (struct slice){ dots, sizeof dots })->name, "rest");
    config_unref(&c);
}

static void test_no_site(void **state)
{
    (void)state;
    struct config *c =
        load(APP "sites: [ { hosts: [ a.example, \"*.b.example\" ], origin: app } ]");
    assert_non_null(config_site_find(c, SLICE("a.example")));
    assert_non_null(config_site_find(c, SLICE("x.b.example")));
    assert_null(config_site_find(c, SLICE("b.example")));
    assert_null(config_site_find(c, SLICE("x.a.example")));
    assert_null(config_site_find(c, SLICE("")));
    config_unref(&c);
}

static void test_many_sites(void **state)
{
    (void)state;
    char *yaml = NULL;
    size_t size;
    FILE *out = open_memstream(&yaml, &size);
    fputs(APP "sites:\n", out);
    for (int i = 0; i < 3000; i++)
        fprintf(out, "- { hosts: [ s%d.example, \"*.s%d.example\" ], origin: app }\n", i, i);
    fclose(out);
    struct config *c = load(yaml);
    assert_int_equal(c->site_count, 3000);
    for (int i = 0; i < 3000; i++) {
        char host[64];
        snprintf(host, sizeof host, "s%d.example", i);
        assert_ptr_equal(config_site_find(c, slice_of(host)), &c->sites[i]);
        snprintf(host, sizeof host, "www.s%d.example", i);
        assert_ptr_equal(config_site_find(c, slice_of(host)), &c->sites[i]);
    }
    assert_null(config_site_find(c, SLICE("s3000.example")));
    config_unref(&c);
    free(yaml);
}

/* ---- options ---- */

static const char *const two_places[] = { ":8081", "unix:/run/l.sock", NULL };
static const char *const bad_place[] = { ":8081", "8082", NULL };
static const char *const twice[] = { ":8081", ":8081", NULL };

static void test_options(void **state)
{
    (void)state;
    struct config_mistakes mistakes;
    struct config *c =
        config_from_options(&(struct config_options){ .listen = two_places,
                                                      .origin = "http://127.0.0.1:8000",
                                                      .workers = "3",
                                                      .memory = "64MiB",
                                                      .admin = "off" },
                            &mistakes);
    assert_non_null(c);
    assert_int_equal(mistakes.count, 0);
    assert_null(c->path);
    assert_int_equal(c->listen_count, 2);
    assert_string_equal(c->listen[1].path, "/run/l.sock");
    assert_int_equal(c->worker_count, 3);
    assert_int_equal(c->memory_bytes, MiB(64));
    assert_false(c->has_admin);
    assert_string_equal(c->origins[0].name, "origin");
    assert_string_equal(c->origins[0].servers[0].text, "http://127.0.0.1:8000");
    assert_int_equal(c->origins[0].connect_timeout_ms, 3000);
    assert_ptr_equal(config_site_find(c, SLICE("any"))->origin, &c->origins[0]);
    config_unref(&c);

    c = config_from_options(&(struct config_options){ .root = "/tmp", .admin = "127.0.0.1:7000" },
                            &mistakes);
    assert_non_null(c);
    assert_string_equal(c->origins[0].name, "files");
    assert_int_equal(c->origins[0].kind, ORIGIN_FILES);
    assert_string_equal(c->origins[0].index_names[0], "index.html");
    assert_int_equal(c->admin.port, 7000);
    assert_int_equal(c->listen[0].port, 8080);
    char *text = printed(c);
    struct config *back = load(text);
    assert_string_equal(back->origins[0].root, "/tmp");
    free(text);
    config_unref(&back);
    config_unref(&c);
}

static void test_wrong_options(void **state)
{
    (void)state;
    static const struct {
        struct config_options options;
        const char *said;
    } rows[] = {
        { { 0 },
          "--origin: not given; say where content comes from: --origin URL, --root DIR or -c "
          "FILE" },
        { { .origin = "http://a", .root = "/tmp" },
          "--root: --origin is given too; give one of the two" },
        { { .root = "/tmp", .memory = "64MB" },
          "--memory: \"64MB\" has a unit of two meanings; write KiB, MiB, GiB or TiB; allowed: a "
          "size from "
          "16MiB to 4TiB" },
        { { .root = "/tmp", .workers = "x" },
          "--workers: \"x\" is not a number; allowed: auto or a number from 1 to 256" },
        { { .root = "/tmp", .listen = bad_place },
          "--listen: \"8082\" is a number alone; a port has a colon before it; allowed: HOST:PORT, "
          ":PORT "
          "or unix:/PATH" },
        { { .root = "/tmp", .listen = twice }, "--listen: \":8081\" is in this list already" },
        { { .root = "/tmp", .admin = "x" },
          "--admin: \"x\" has no port; allowed: HOST:PORT, :PORT or unix:/PATH" },
        { { .root = "/tmp", .admin = ":6081" },
          "--admin: \":6081\" can be reached from other machines, which needs admin.token in a "
          "file" },
        { { .root = "/no/such" },
          "--root: \"/no/such\" cannot be used: No such file or directory" },
        { { .root = "" }, "--root: \"\" is empty; allowed: a path" },
        { { .origin = "a:80" },
          "--origin: \"a:80\" begins with neither http:// nor unix:; allowed: http://HOST[:PORT] "
          "or "
          "unix:/PATH" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct config_mistakes mistakes;
        assert_null(config_from_options(&rows[i].options, &mistakes));
        assert_string_equal(mistakes.lines[0], rows[i].said);
        assert_int_equal(mistakes.count, 1);
        config_mistakes_free(&mistakes);
    }
}

static void write_file(char *path, const char *text)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    fputs(text, file);
    fclose(file);
}

static void test_file_with_options(void **state)
{
    (void)state;
    char path[] = "/tmp/larder-test-XXXXXX";
    write_file(path, "workers: 8\ncache: { memory: 64MiB }\nadmin: off\n" APP);
    struct config_mistakes mistakes;
    struct config *c = config_load_file_with(
        path, &(struct config_options){ .workers = "1", .listen = two_places, .admin = "[::1]:1" },
        &mistakes);
    assert_non_null(c);
    assert_int_equal(c->worker_count, 1);
    assert_int_equal(c->listen_count, 2);
    assert_int_equal(c->memory_bytes, MiB(64));
    assert_true(c->has_admin);
    assert_int_equal(c->admin.port, 1);
    assert_string_equal(c->path, path);
    config_unref(&c);
    assert_null(config_load_file_with(
        path, &(struct config_options){ .memory = "1", .root = "/tmp" }, &mistakes));
    assert_int_equal(mistakes.count, 2);
    assert_string_equal(mistakes.lines[0],
                        "--memory: \"1\" is too small; allowed: a size from 16MiB to 4TiB");
    assert_non_null(
        strstr(mistakes.lines[1], "says where content comes from; give one of the two"));
    config_mistakes_free(&mistakes);
    c = config_load_file(path, &mistakes);
    assert_non_null(c);
    assert_int_equal(c->worker_count, 8);
    config_unref(&c);
    remove(path);
}

/* ---- life and reload ---- */

static void test_references(void **state)
{
    (void)state;
    struct config *c = load(APP);
    struct config *other = config_ref(c);
    assert_ptr_equal(other, c);
    config_unref(&c);
    assert_null(c);
    assert_string_equal(other->origins[0].name, "app"); /* the sanitizer would tell */
    config_unref(&other);
    config_unref(&other); /* of nothing: nothing */
}

static void test_restart_items(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *said;
    } rows[] = {
        { "workers: 1\n", "workers: 1\n", "" },
        { "log_level: info\n", "log_level: debug\ncache: { max_object: 1MiB }\n", "" },
        { "workers: 1\n", "workers: 2\n", "workers: needs a restart; 1 stays in force" },
        { "", "listen: \":81\"\n", "listen: needs a restart; [ \":8080\" ] stays in force" },
        { "", "cache: { memory: 1GiB }\n", "cache.memory: needs a restart; 512MiB stays in force" },
        { "", "cache: { memory: 512m }\n", "" },
        { "", "user: root\n", "user: needs a restart; what runs stays in force" },
        { "admin: off\n", "",
          "admin: needs a restart; off stays in force\n"
          "admin.listen: needs a restart; what runs stays in force" },
        { "admin: { token: a }\n", "admin: { token: b }\n",
          "admin.token: needs a restart; \"***\" stays in force" },
        { "admin: { token: a }\n", "admin: { token: a }\n", "" },
        { "admin: { token: a }\n", "", "admin.token: needs a restart; \"***\" stays in force" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char before[256], after[256], said[1024] = "";
        snprintf(before, sizeof before, "%s" APP, rows[i].before);
        snprintf(after, sizeof after, "%s" APP, rows[i].after);
        struct config *a = load(before), *b = load(after);
        struct config_mistakes items = config_restart_items(a, b);
        for (size_t j = 0; j < items.count; j++)
            snprintf(said + strlen(said), sizeof said - strlen(said), "%s%s", j == 0 ? "" : "\n",
                     items.lines[j]);
        assert_string_equal(said, rows[i].said);
        config_mistakes_free(&items);
        config_unref(&a);
        config_unref(&b);
    }
}

/* ---- the table and the manual ---- */

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < config_item_count; i++) {
        const struct config_item *item = &config_items[i];
        assert_ptr_equal(config_item_find(slice_of(item->path)), item); /* no path twice */
        assert_true(item->help[strlen(item->help) - 1] == '.');
        assert_true(strpbrk(item->help, "|\n") == NULL); /* cells of a table */
        assert_true(item->max <= UINT32_MAX || item->bytes == sizeof(uint64_t));
        assert_true(item->min <= item->max);
        assert_true(item->type != CONFIG_COUNT || item->unit != NULL);
        assert_true(item->type != CONFIG_CHOICE || item->choices != NULL);
    }
}

static void test_items_text(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    config_print_items(out);
    fclose(out);
    assert_non_null(strstr(text, "cache.memory\n    Memory for everything"));
    assert_non_null(strstr(text,
                           "Allowed: a size from 16MiB to 4TiB\n    Default: 512MiB. Changes by "
                           "restart.\n"));
    assert_non_null(strstr(text, "origins.NAME.root\n"));
    assert_non_null(strstr(text, "sites[].hosts\n"));
    free(text);
}

static char *whole_file(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = xcalloc(1, 65536);
    assert_true(fread(text, 1, 65535, file) < 65535);
    fclose(file);
    return text;
}

/* The page holds what the program says: after a change of the table of items, this test's message
 * is what belongs between the markers. */
static void test_manual_page(void **state)
{
    (void)state;
    char *page = whole_file("docs/configuration.md");
    char *table = NULL;
    size_t size;
    FILE *out = open_memstream(&table, &size);
    fputs("<!-- items -->\n", out);
    config_print_manual(out);
    fputs("<!-- /items -->\n", out);
    fclose(out);
    if (strstr(page, table) == NULL)
        fail_msg("docs/configuration.md does not hold this table:\n%s", table);
    free(table);
    free(page);
}

/* Its example is a file that works, but for the directory, the log and the user that it names. */
static void test_manual_example(void **state)
{
    (void)state;
    char *page = whole_file("docs/configuration.md");
    char *from = strstr(page, "```yaml\n");
    assert_non_null(from);
    from += strlen("```yaml\n");
    char *to = strstr(from, "```");
    assert_non_null(to);
    struct config_mistakes mistakes;
    struct config *c = config_load_text("example", slice_from(from, to), &mistakes);
    for (size_t i = 0; i < mistakes.count; i++)
        if (strstr(mistakes.lines[i], "cannot be used") == NULL &&
            strstr(mistakes.lines[i], "is no user") == NULL)
            fail_msg("%s", mistakes.lines[i]);
    config_mistakes_free(&mistakes);
    config_unref(&c);
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_every_item),
        cmocka_unit_test(test_every_item_is_there),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_printed_secret_is_refused),
        cmocka_unit_test(test_headings_without_items),
        cmocka_unit_test(test_zero_is_its_word),
        cmocka_unit_test(test_anchors_and_merges),
        cmocka_unit_test(test_aliased_origin),
        cmocka_unit_test(test_byte_order_mark),
        cmocka_unit_test(test_site_find),
        cmocka_unit_test(test_no_site),
        cmocka_unit_test(test_many_sites),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_file_with_options),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_restart_items),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_items_text),
        cmocka_unit_test(test_manual_page),
        cmocka_unit_test(test_manual_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
