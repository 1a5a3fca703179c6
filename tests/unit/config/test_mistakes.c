/* tests/unit/config/test_mistakes.c: every kind of mistake and its exact message, as rows; then the
 * wrong example files beside this one, each with what Larder says about it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/config_internal.h"

#define APP                                                                                        \
    "origins: { app: { servers: \"http://a:80\" } }\n" /* one line that makes a file whole */
#define NOT_ADDRESS "; allowed: HOST:PORT, :PORT or unix:/PATH"
#define NOT_SERVER  "; allowed: http://HOST[:PORT] or unix:/PATH"
#define NOT_HOST    "; allowed: a host name, *.DOMAIN or *"

struct row {
    const char *yaml;
    const char *said; /* all lines, in order */
};

static const struct row rows[] = {
    /* unknown items and suggestions */
    { APP "cache: { memroy: 1GiB }",
      "t:2:10: cache.memroy: unknown item; did you mean cache.memory?" },
    { APP "cahce: { memory: 1GiB }", "t:2:1: cahce: unknown item; did you mean cache?" },
    { APP "memory: 1GiB", "t:2:1: memory: unknown item; did you mean cache.memory?" },
    { APP "follow_symlinks: true",
      "t:2:1: follow_symlinks: unknown item; did you mean origins.NAME.follow_symlinks?" },
    { APP "cache: { max_obj: 1MiB }",
      "t:2:10: cache.max_obj: unknown item; did you mean cache.max_object?" },
    { APP "zzz: 1", "t:2:1: zzz: unknown item" },
    { APP "cache.memory: 1GiB",
      "t:2:1: cache.memory: unknown item; a dot does not nest, write cache: { memory: … }" },
    { "origins: { app: { server: \"http://a\" } }",
      "t:1:12: origins.app: has neither servers nor root\n"
      "t:1:19: origins.app.server: unknown item; did you mean origins.app.servers?" },
    { APP "origins.*: 1", "t:2:1: \"origins.*\": unknown item; did you mean origins?" },
    { APP "sites: [ { hots: a, hosts: b, origin: app } ]",
      "t:2:12: sites[0].hots: unknown item; did you mean sites[0].hosts?" },
    { APP "cache: { x-base: 1 }", "t:2:10: cache.x-base: unknown item" },
    { APP "\"a\\nb\": 1", "t:2:1: \"a\\x0ab\": unknown item" },
    /* given twice, wrong keys */
    { APP "workers: 1\nworkers: 2", "t:3:1: workers: given twice; the first is in line 2" },
    { APP "cache: { memory: 1GiB, memory: 2GiB }",
      "t:2:24: cache.memory: given twice; the first is in line 2" },
    { "origins:\n  a: { servers: \"http://a\" }\n  a: { root: /tmp }",
      "t:3:3: origins.a: given twice; the first is in line 2" },
    { APP "? [ a ]\n: 1", "t:2:3: has a key that is not a plain text" },
    /* shapes */
    { APP "cache: 1GiB", "t:2:8: cache: is a single value; allowed: a mapping of its items" },
    { APP "cache: [ 1 ]", "t:2:8: cache: is a list; allowed: a mapping of its items" },
    { APP "workers: [ 1 ]", "t:2:10: workers: is a list; allowed: auto or a number from 1 to 256" },
    { APP "workers:", "t:2:9: workers: has no value; allowed: auto or a number from 1 to 256" },
    { APP "user: ~", "t:2:7: user: has no value; allowed: a text" },
    { APP "listen: { a: 1 }", "t:2:9: listen: is a mapping" NOT_ADDRESS ", or a list of them" },
    { APP "listen: [ \":80\", [ \":81\" ] ]",
      "t:2:18: listen[1]: is a list" NOT_ADDRESS ", or a list of them" },
    { APP "listen: []", "t:2:9: listen: is an empty list; it needs at least one" },
    { APP "cache: { default_ttl: 5m }", "t:2:23: cache.default_ttl: is a single value; allowed: a "
                                        "mapping of a status to a duration in "
                                        "whole seconds from 0s to 365d" },
    { APP "sites: { hosts: a }",
      "t:2:8: sites: is a mapping; allowed: a list of { hosts, origin }" },
    { APP "sites: [ app ]",
      "t:2:10: sites[0]: is a single value; allowed: a mapping with hosts and origin" },
    { "origins: [ a ]", "t:1:10: origins: is a list; allowed: a mapping of a name to an origin" },
    { "origins: { a: \"http://b\" }",
      "t:1:15: origins.a: is a single value; allowed: a mapping with servers or root" },
    { "- a", "t:1:1: the file is a list; allowed: a mapping of items" },
    { APP "workers: !secret 2",
      "t:2:10: workers: has the tag \"!secret\"; tags are not supported" },
    { APP "---\nworkers: 2", "t:2:1: a second document begins here; a configuration is one" },
    /* numbers */
    { APP "workers: many",
      "t:2:10: workers: \"many\" is not a number; allowed: auto or a number from 1 to 256" },
    { APP "workers: -1",
      "t:2:10: workers: \"-1\" is not a number; allowed: auto or a number from 1 to 256" },
    { APP "workers: 257",
      "t:2:10: workers: \"257\" is too large; allowed: auto or a number from 1 to 256" },
    { APP "clients: { max_fields: 9 }",
      "t:2:24: clients.max_fields: \"9\" is too small; allowed: a number from 10 to 250" },
    /* sizes */
    { APP "cache: { memory: 15MiB }",
      "t:2:18: cache.memory: \"15MiB\" is too small; allowed: a size from 16MiB to 4TiB" },
    { APP "cache: { memory: 1GB }", "t:2:18: cache.memory: \"1GB\" has a unit of two meanings; "
                                    "write KiB, MiB, GiB or TiB; allowed: a "
                                    "size from 16MiB to 4TiB" },
    { APP "cache: { memory: 1.5GiB }", "t:2:18: cache.memory: \"1.5GiB\" is not a whole number; "
                                       "write it in a smaller unit; allowed: a "
                                       "size from 16MiB to 4TiB" },
    { APP "cache: { max_object: huge }", "t:2:22: cache.max_object: \"huge\" does not begin with a "
                                         "number; allowed: auto or a size from 1KiB "
                                         "to 4TiB" },
    { APP "cache: { memory: 64MiB, max_object: 65MiB }",
      "t:2:37: cache.max_object: \"65MiB\" is more than cache.memory" },
    /* durations */
    { APP "shutdown_timeout: 30", "t:2:19: shutdown_timeout: \"30\" has no unit; units are ms, s, "
                                  "m, h and d; allowed: a duration from "
                                  "0s to 1d" },
    { APP "shutdown_timeout: 2d",
      "t:2:19: shutdown_timeout: \"2d\" is too large; allowed: a duration from 0s to 1d" },
    { APP "cache: { heuristic_max: 1500ms }", "t:2:25: cache.heuristic_max: \"1500ms\" is not in "
                                              "whole seconds; allowed: a duration in whole "
                                              "seconds from 0s to 365d" },
    { APP "cache: { default_ttl: { 200: soon, 99: 1s, ok: 1s } }",
      "t:2:30: cache.default_ttl.200: \"soon\" does not begin with a number; allowed: a duration "
      "in whole "
      "seconds from 0s to 365d\n"
      "t:2:36: cache.default_ttl: \"99\" is not a status from 200 to 599\n"
      "t:2:44: cache.default_ttl: \"ok\" is not a status from 200 to 599" },
    /* words */
    { APP "cache: { heuristic: maybe }",
      "t:2:21: cache.heuristic: \"maybe\" is neither; allowed: true or false" },
    { APP "log_level: warning", "t:2:12: log_level: \"warning\" is none of them; allowed: error, "
                                "warn, info or debug; did you mean "
                                "warn?" },
    { APP "log_level: loud",
      "t:2:12: log_level: \"loud\" is none of them; allowed: error, warn, info or debug" },
    { APP "access_log: { format: \"\" }",
      "t:2:23: access_log.format: \"\" is empty; allowed: a text" },
    { APP "access_log: { format: \"a\\nb\" }",
      "t:2:23: access_log.format: \"a\\x0ab\" has a control character; allowed: a text" },
    { APP "access_log: /var/log/x",
      "t:2:13: access_log: \"/var/log/x\" is neither; allowed: on, off or a mapping of its items" },
    { APP "access_log: { path: /no/such/x.log }",
      "t:2:21: access_log.path: the directory \"/no/such\" cannot be used: No such file or "
      "directory" },
    { APP "access_log: { path: /tmp }",
      "t:2:21: access_log.path: \"/tmp\" is a directory; it must name a file" },
    { APP "user: nobody-of-that-name",
      "t:2:7: user: \"nobody-of-that-name\" is no user of this machine" },
    /* addresses */
    { APP "listen: 8080",
      "t:2:9: listen: \"8080\" is a number alone; a port has a colon before it" NOT_ADDRESS },
    { APP "listen: localhost", "t:2:9: listen: \"localhost\" has no port" NOT_ADDRESS },
    { APP "listen: [ \":99999\" ]",
      "t:2:11: listen[0]: \":99999\" has a port that is not a number up to 65535" NOT_ADDRESS },
    { APP "listen: \"::1\"",
      "t:2:9: listen: \"::1\" has an IPv6 address without brackets; write [::1]:80" NOT_ADDRESS },
    { APP "listen: \"unix:x\"",
      "t:2:9: listen: \"unix:x\" has no absolute path after unix:" NOT_ADDRESS },
    { APP "listen: \"http://:80\"", "t:2:9: listen: \"http://:80\" is not an address, which has "
                                    "neither scheme nor path" NOT_ADDRESS },
    { APP "listen: [ \":80\", \"*:80\" ]", "t:2:18: listen[1]: \"*:80\" is in this list already" },
    { APP "listen: 127.0.0.1:6081", "t:2:9: listen: \"127.0.0.1:6081\" is where admin.listen is" },
    { APP "admin: { listen: \":6081\" }", "t:2:18: admin.listen: \":6081\" can be reached from "
                                          "other machines, which needs admin.token" },
    { APP "admin: { token: \"***\" }", "t:2:17: admin.token: is what is printed in place of the "
                                       "secret, not the secret; allowed: a text "
                                       "without spaces" },
    { APP "admin: { token: \"two words\" }", "t:2:17: admin.token: is empty or has a space or a "
                                             "character beyond ASCII; allowed: a text without "
                                             "spaces" },
    { APP "clients: { trusted_proxies: [ 10.0.0.0/33, 10.0.0.1/8, here ] }",
      "t:2:31: clients.trusted_proxies[0]: \"10.0.0.0/33\" has a prefix that is not a number up to "
      "32; "
      "allowed: a network such as 10.0.0.0/8\n"
      "t:2:44: clients.trusted_proxies[1]: \"10.0.0.1/8\" has bits set after its prefix; allowed: "
      "a network "
      "such as 10.0.0.0/8\n"
      "t:2:56: clients.trusted_proxies[2]: \"here\" is not a network; allowed: a network such as "
      "10.0.0.0/8" },
    /* origins */
    { "", "t: origins: not given; it says where content comes from" },
    { "# nothing\n", "t: origins: not given; it says where content comes from" },
    { "origins: {}", "t:1:10: origins: is empty; it needs at least one" },
    { "origins: { app: { servers: [] } }",
      "t:1:28: origins.app.servers: is an empty list; it needs at least one" },
    { "origins: { app: { servers: \"https://a\" } }",
      "t:1:28: origins.app.servers: \"https://a\" is https, which is not supported to origins in "
      "this "
      "version; use http:// or unix:" NOT_SERVER },
    { "origins: { app: { servers: \"http://a/b\" } }",
      "t:1:28: origins.app.servers: \"http://a/b\" has a path; a server gets the path that the "
      "client asked "
      "for" NOT_SERVER },
    { "origins: { app: { servers: \"a:80\" } }",
      "t:1:28: origins.app.servers: \"a:80\" begins with neither http:// nor unix:" NOT_SERVER },
    { "origins: { app: { servers: [ \"http://\", \"http://a:0\", \"http://u@a\", \"http://a?b\" ] "
      "} }",
      "t:1:30: origins.app.servers[0]: \"http://\" has no host" NOT_SERVER "\n"
      "t:1:41: origins.app.servers[1]: \"http://a:0\" has port 0, where no server can be" NOT_SERVER
      "\n"
      "t:1:55: origins.app.servers[2]: \"http://u@a\" has a user or password, which is not "
      "supported" NOT_SERVER "\n"
      "t:1:69: origins.app.servers[3]: \"http://a?b\" has a query; a server is a scheme, a host "
      "and a "
      "port" NOT_SERVER },
    { "origins: { app: { servers: \"http://a\", root: /tmp } }",
      "t:1:12: origins.app: has servers and root; an origin is one of the two" },
    { "origins: { app: { servers: \"http://a\", index: a.html } }",
      "t:1:47: origins.app.index: goes with root, and this origin has servers" },
    { "origins: { app: { root: /tmp, host: a } }",
      "t:1:37: origins.app.host: goes with servers, and this origin has root" },
    { "origins: { app: { root: /no/such } }",
      "t:1:25: origins.app.root: \"/no/such\" cannot be used: No such file or directory" },
    { "origins: { app: { root: /etc/passwd } }",
      "t:1:25: origins.app.root: \"/etc/passwd\" is not a directory" },
    { "origins: { app: { root: /tmp, index: [ a/b ] } }",
      "t:1:40: origins.app.index[0]: \"a/b\" is not the name of a file in the directory; allowed: "
      "a file "
      "name" },
    { "origins: { app: { servers: \"http://a\", host: \"http://b\" } }",
      "t:1:46: origins.app.host: \"http://b\" is not a host, which has neither scheme nor path; "
      "allowed: a "
      "host name, with :PORT or without" },
    { "origins: { \"a b\": { root: /tmp } }",
      "t:1:12: origins.\"a b\": is not a name; allowed: up to 64 letters, digits, - _ and ." },
    /* sites */
    { "origins: { a: { root: /tmp }, b: { root: /tmp } }",
      "t: sites: not given, and there is more than one origin to choose from" },
    { APP "sites: []", "t:2:8: sites: is an empty list; it needs at least one" },
    { APP "sites: [ { hosts: a } ]", "t:2:10: sites[0]: has no origin" },
    { APP "sites: [ { origin: app } ]", "t:2:10: sites[0]: has no hosts" },
    { APP "sites: [ { hosts: a, origin: ap } ]",
      "t:2:30: sites[0].origin: \"ap\" is no origin of this file; did you mean app?" },
    { APP "sites: [ { hosts: a, origin: other } ]",
      "t:2:30: sites[0].origin: \"other\" is no origin of this file" },
    { APP "sites: [ { hosts: [ a, A. ], origin: app } ]",
      "t:2:24: sites[0].hosts[1]: \"a\" is in this list already" },
    { APP "sites: [ { hosts: [ a, \"*\" ], origin: app }, { hosts: [ b, \"*\" ], origin: app } ]",
      "t:2:60: sites[1].hosts[1]: \"*\" is a host of sites[0] already" },
    { APP "sites: [ { hosts: \"a:80\", origin: app } ]",
      "t:2:19: sites[0].hosts: \"a:80\" has a port; a host is served on every port" NOT_HOST },
    { APP "sites: [ { hosts: \"*a\", origin: app } ]",
      "t:2:19: sites[0].hosts: \"*a\" has a * that is not the whole first part" NOT_HOST },
    { APP "sites: [ { hosts: \"a b\", origin: app } ]",
      "t:2:19: sites[0].hosts: \"a b\" is not a host name" NOT_HOST },
    /* not YAML */
    { "origins: { app", "t:2:1: not YAML: did not find expected ',' or '}' while parsing a flow "
                        "mapping that begins in line 1" },
    { APP "cache:\n\tmemory: 1GiB", "t:3:1: not YAML: found character that cannot start any token "
                                    "while scanning for the next token; "
                                    "indent with spaces, not with tabs" },
    { APP "cache: *base", "t:2:8: not YAML: found undefined alias" },
    { APP "user: \xff", "t:2:7: not YAML: invalid leading UTF-8 octet" },
    { APP "cache: { <<: 1 }",
      "t:2:14: cache: the merge key << takes a mapping, or a list of mappings" },
    /* all of them, in the order of the file; one that follows from another is left out */
    { "sites: [ { hosts: a, origin: ap } ]\nworkers: x\n" APP
      "cache: { memory: 1, max_object: 1GiB }",
      "t:1:30: sites[0].origin: \"ap\" is no origin of this file; did you mean app?\n"
      "t:2:10: workers: \"x\" is not a number; allowed: auto or a number from 1 to 256\n"
      "t:4:18: cache.memory: \"1\" is too small; allowed: a size from 16MiB to 4TiB" },
};

/* The caller frees it. */
static char *said_about(const char *name, struct slice yaml)
{
    struct config_mistakes mistakes;
    struct config *c = config_load_text(name, yaml, &mistakes);
    assert_true((c == NULL) == (mistakes.count > 0));
    config_unref(&c);
    char *said = NULL;
    size_t size;
    FILE *out = open_memstream(&said, &size);
    for (size_t i = 0; i < mistakes.count; i++)
        fprintf(out, "%s%s", i == 0 ? "" : "\n", mistakes.lines[i]);
    fclose(out);
    config_mistakes_free(&mistakes);
    assert_true(mistakes.lines == NULL && mistakes.count == 0);
    return said;
}

static void test_rows(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char *said = said_about("t", slice_of(rows[i].yaml));
        if (strcmp(said, rows[i].said) != 0) {
            print_error("row %zu:\n%s\nexpected: %s\nsaid:     %s\n", i, rows[i].yaml, rows[i].said,
                        said);
            wrong++;
        }
        free(said);
    }
    assert_int_equal(wrong, 0);
}

static char *whole_file(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        fail_msg("%s is not there", path);
    char *text = xcalloc(1, 16384);
    size_t bytes = fread(text, 1, 16383, file);
    assert_true(bytes < 16383);
    fclose(file);
    return text;
}

#define WRONG_FOLDER "tests/unit/config/wrong/"

static void check_wrong_file(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, WRONG_FOLDER "%s", name);
    char *yaml = whole_file(path);
    snprintf(path, sizeof path, WRONG_FOLDER "%.*s.txt", (int)(strlen(name) - 5), name);
    char *expected = whole_file(path);
    char *said = said_about(name, slice_of(yaml));
    size_t len = strlen(expected);
    if (len > 0 && expected[len - 1] == '\n')
        expected[len - 1] = '\0';
    assert_string_equal(said, expected);
    free(said);
    free(expected);
    free(yaml);
}

static void test_wrong_files(void **state)
{
    (void)state;
    size_t count = 0;
    DIR *folder = opendir(WRONG_FOLDER);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (!slice_has_suffix(slice_of(entry->d_name), SLICE(".yaml")))
            continue;
        check_wrong_file(entry->d_name);
        count++;
    }
    closedir(folder);
    assert_true(count >= 10);
}

static void test_files_that_cannot_be_read(void **state)
{
    (void)state;
    static const struct row files[] = {
        { "/no/such/larder.yaml", "/no/such/larder.yaml: No such file or directory" },
        { "/tmp", "/tmp: Is a directory" },
        { "/dev/zero", "/dev/zero: larger than 4MiB, which no configuration is" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        struct config_mistakes mistakes;
        assert_null(config_load_file(files[i].yaml, &mistakes));
        assert_int_equal(mistakes.count, 1);
        assert_string_equal(mistakes.lines[0], files[i].said);
        config_mistakes_free(&mistakes);
    }
}

/* Enough mistakes are enough: a screen is not filled, nothing overflows. */
static void test_many_mistakes(void **state)
{
    (void)state;
    struct config_mistakes mistakes;
    char *yaml = xcalloc(1, 65536);
    for (size_t i = 0; i < 1000; i++)
        sprintf(yaml + strlen(yaml), "unknown%zu: 1\n", i);
    assert_null(config_load_text("t", slice_of(yaml), &mistakes));
    assert_int_equal(mistakes.count, 100);
    assert_string_equal(mistakes.lines[99], "t:100:1: unknown99: unknown item");
    config_mistakes_free(&mistakes);
    free(yaml);
}

static void test_long_values_are_cut(void **state)
{
    (void)state;
    char yaml[256] = APP "workers: ";
    for (size_t i = 0; i < 40; i++)
        strcat(yaml, "é");
    char *said = said_about("t", slice_of(yaml));
    assert_non_null(strstr(said, "éé…\" is not a number"));
    assert_true(strlen(said) < 160);
    free(said);
}

/* A secret never shows, whatever is wrong with it. */
static void test_secrets_do_not_show(void **state)
{
    (void)state;
    static const char *const yamls[] = {
        APP "admin: { token: \"s3cret word\" }",
        APP "admin: { token: [ s3cret ] }",
        APP "admin: { token: \"s3cret\\n\" }",
    };
    for (size_t i = 0; i < ARRAY_COUNT(yamls); i++) {
        char *said = said_about("t", slice_of(yamls[i]));
        assert_true(said[0] != '\0');
        assert_null(strstr(said, "s3cret"));
        free(said);
    }
}

static void test_edit_distance(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        unsigned distance;
    } pairs[] = {
        { "", "", 0 },
        { "a", "", 1 },
        { "", "ab", 2 },
        { "memroy", "memory", 1 },
        { "memory", "memry", 1 },
        { "listen", "lsiten", 1 },
        { "abc", "xyz", 3 },
        { "ca", "abc", 3 }, /* each pair of letters is swapped at most once */
    };
    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++)
        assert_int_equal(config_edit_distance(slice_of(pairs[i].a), slice_of(pairs[i].b)),
                         pairs[i].distance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_wrong_files),
        cmocka_unit_test(test_files_that_cannot_be_read),
        cmocka_unit_test(test_many_mistakes),
        cmocka_unit_test(test_long_values_are_cut),
        cmocka_unit_test(test_secrets_do_not_show),
        cmocka_unit_test(test_edit_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
