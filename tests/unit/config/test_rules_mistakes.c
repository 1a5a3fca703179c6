/* tests/unit/config/test_rules_mistakes.c: what is no rule and no test of one, with the exact
 * message; what is said aloud; and that rules print as they read.
 */
#include "rules_help.h"

#include <unistd.h>

#define R "sites[0].rules[0]"

/* What stands behind "rules: " in line 5, column 10. */
static const struct {
    const char *rules, *said;
} rows[] = {
    /* names of items */
    { "[ { match: { pth: /a }, deny: true } ]",
      "t:5:23: " R ".match.pth: unknown item; did you mean " R ".match.path?" },
    { "[ { mach: { path: /a }, deny: true } ]",
      "t:5:14: " R ".mach: unknown item; did you mean " R ".match?" },
    { "[ { cache: { tll: 1d } } ]",
      "t:5:23: " R ".cache.tll: unknown item; did you mean " R ".cache.ttl?" },
    { "[ { path: /a, deny: true } ]",
      "t:5:14: " R ".path: unknown item; did you mean " R ".match.path?" },
    { "[ { deny: true, deny: 404 } ]", "t:5:26: " R ".deny: given twice; the first is in line 5" },
    { "[ { match: { not: { pth: /a } }, deny: true } ]",
      "t:5:30: " R ".match.not.pth: unknown item; did you mean " R ".match.not.path?" },
    /* shapes */
    { "{ deny: true }", "t:5:10: sites[0].rules: is a mapping; allowed: a list of { match, … }" },
    { "[ deny ]",
      "t:5:12: " R ": is a single value; allowed: a mapping with match and what to do" },
    { "[ { match: /a, deny: true } ]",
      "t:5:21: " R ".match: is a single value; allowed: a mapping of its items" },
    { "[ { cache: [ bypass ] } ]",
      "t:5:21: " R ".cache: is a list; allowed: bypass or no_store, or a mapping of its items" },
    { "[ { match: { path: [] }, deny: true } ]",
      "t:5:29: " R ".match.path: is an empty list; it needs at least one" },
    { "[ { match: { query: {} }, deny: true } ]",
      "t:5:30: " R ".match.query: is an empty mapping; it needs at least one" },
    { "[ { match: { query: { a: [] } }, deny: true } ]",
      "t:5:35: " R ".match.query.a: is an empty list; it needs at least one" },
    { "[ { match: { query: { a: { regx: b } } }, deny: true } ]",
      "t:5:37: " R
      ".match.query.a.regx: unknown item; a condition has a pattern, or { regex: … }" },
    { "[ { match: { not: /a }, deny: true } ]",
      "t:5:28: " R ".match.not: is a single value; allowed: a mapping of the items of match" },
    { "[ { match: { not: { not: { path: /a } } }, deny: true } ]",
      "t:5:35: " R ".match.not.not: not in a not; write what it comes to" },
    { "[ { request: { set: [ a ] } } ]",
      "t:5:30: " R ".request.set: is a list; allowed: a mapping of a field's name to a text, or a "
                   "list of them" },
    /* values */
    { "[ { match: { path: a }, deny: true } ]",
      "t:5:29: " R ".match.path: \"a\" begins with neither / nor *; allowed: a pattern that begins "
                   "with / or *" },
    { "[ { match: { path: [ /a, \"/b?c\" ] }, deny: true } ]",
      "t:5:35: " R ".match.path[1]: \"/b?c\" has a ?, which no path has; match the query with "
                   "query; allowed: a pattern that begins with / or *" },
    { "[ { match: { path: /a//b }, deny: true } ]",
      "t:5:29: " R ".match.path: \"/a//b\" can never match: paths are compared with // made /; "
                   "allowed: a pattern that begins with / or *" },
    { "[ { match: { path: /a/../b }, deny: true } ]",
      "t:5:29: " R ".match.path: \"/a/../b\" can never match: paths are compared with . and .. "
                   "resolved; allowed: a pattern that begins with / or *" },
    { "[ { match: { path: [ /a, /a ] }, deny: true } ]",
      "t:5:35: " R ".match.path[1]: \"/a\" is in this list already" },
    { "[ { match: { path_regex: \"a(b\" }, deny: true } ]",
      "t:5:35: " R ".match.path_regex: \"a(b\" is no regular expression: missing closing "
                   "parenthesis at offset 3; allowed: a regular expression (PCRE2)" },
    { "[ { match: { fields: { A: { regex: \"[\" } } }, deny: true } ]",
      "t:5:45: " R ".match.fields.A.regex: \"[\" is no regular expression: missing terminating ] "
                   "for character class at offset 1" },
    { "[ { match: { query: { a: \"[0-9]*\" } }, deny: true } ]",
      "t:5:35: " R ".match.query.a: \"[0-9]*\" looks like it has a class of characters, which "
                   "patterns do not have; use a regular expression, or write \\[ for a bracket" },
    { "[ { match: { method: get }, deny: true } ]",
      "t:5:31: " R ".match.method: \"get\" is not in capitals, in which this method is sent; "
                   "allowed: a method such as GET" },
    { "[ { match: { scheme: htps }, deny: true } ]",
      "t:5:31: " R
      ".match.scheme: \"htps\" is none of them; allowed: http or https; did you mean https?" },
    { "[ { match: { host: \"a:80\" }, deny: true } ]",
      "t:5:29: " R ".match.host: \"a:80\" has a port; a host is served on every port; allowed: a "
                   "host name, with * for any part of it" },
    { "[ { match: { client: 10.0.0.1/8 }, deny: true } ]",
      "t:5:31: " R ".match.client: \"10.0.0.1/8\" has bits set after its prefix; allowed: a "
                   "network such as 10.0.0.0/8" },
    { "[ { match: { status: 99 }, cache: no_store } ]",
      "t:5:31: " R ".match.status: \"99\" is no status from 200 to 599; allowed: a status such as "
                   "404, or a class such as 5xx" },
    { "[ { match: { fields: { \"a b\": c } }, deny: true } ]",
      "t:5:33: " R
      ".match.fields.\"a b\": \"a b\" is not the name of a header field (RFC 9110, 5.1)" },
    { "[ { cache: bypas } ]",
      "t:5:21: " R ".cache: \"bypas\" is none of them; allowed: bypass or no_store, or a mapping "
                   "of its items; did you mean bypass?" },
    { "[ { cache: { ttl: 30 } } ]",
      "t:5:28: " R ".cache.ttl: \"30\" has no unit; units are ms, s, m, h and d; allowed: a "
                   "duration in whole seconds from 0s to 365d" },
    { "[ { cache: { ignore: [ vary, cookies ] } } ]",
      "t:5:39: " R ".cache.ignore[1]: \"cookies\" is none of them; allowed: cache-control, "
                   "set-cookie, vary or authorization" },
    { "[ { redirect: { to: \"https://$hst/\" } } ]",
      "t:5:30: " R ".redirect.to: \"https://$hst/\" has a $ before something that is no variable; "
                   "write $$ for a plain one; allowed: a text with $host, $path, $query, $args, "
      "$scheme, $method, $client, $0 to $9" },
    { "[ { deny: 200 } ]",
      "t:5:20: " R ".deny: \"200\" is too small; allowed: true or a status from 400 to 599" },
    { "[ { deny: false } ]",
      "t:5:20: " R ".deny: \"false\" is neither; allowed: true or a status from 400 to 599" },
    { "[ { tags: [ \"a b\" ] } ]",
      "t:5:22: " R ".tags[0]: \"a b\" has a space, a comma or a character beyond ASCII; allowed: a "
                   "tag without spaces and commas" },
    { "[ { response: { set: { X-A: \"a\\r\\nb\" } } } ]",
      "t:5:38: " R ".response.set.X-A: \"a\\x0d\\x0ab\" has a control character" },
    { "[ { request: { set: { X-A: \"a\\0\" } } } ]",
      "t:5:37: " R ".request.set.X-A: \"a\\x00\" has a control character" },
    { "[ { response: { set: { \"X A\": b } } } ]",
      "t:5:33: " R
      ".response.set.\"X A\": \"X A\" is not the name of a header field (RFC 9110, 5.1)" },
    { "[ { key: { cookies: [ \"a*\" ] } } ]",
      "t:5:32: " R
      ".key.cookies[0]: \"a*\" has a *; the key has cookies by their full name; allowed: a name" },
    { "[ { origin: fils } ]",
      "t:5:22: " R ".origin: \"fils\" is no origin of this file; did you mean files?" },
    /* what comes to nothing */
    { "[ { match: { path: /a } } ]",
      "t:5:12: " R ": does nothing: it has no cache, key, cookies, request, response, redirect, "
                   "answer, deny, origin, rewrite, tags or stop" },
    { "[ { cache: {} } ]",
      "t:5:12: " R ": does nothing: it has no cache, key, cookies, request, response, redirect, "
                   "answer, deny, origin, rewrite, tags or stop" },
    { "[ { match: { ignore_case: true }, deny: true } ]",
      "t:5:36: " R ".match.ignore_case: has no path or path_regex that it goes with" },
    { "[ { match: { not: {} }, deny: true } ]",
      "t:5:28: " R ".match.not: is empty: nothing is what it does not match" },
    { "[ { deny: true }, { tags: a } ]", "t:5:28: sites[0].rules[1]: never gets its turn: the rule "
                                         "at t:5 ends the walk for every request" },
    { "[ { name: a, tags: b }, { name: a, tags: c } ]",
      "t:5:34: sites[0].rules[1]: has the name \"a\", which the rule at t:5 has already" },
    /* what does not go together */
    { "[ { deny: true, redirect: { to: /a } } ]",
      "t:5:12: " R ": has more than one of redirect, answer and deny; each is all of an answer" },
    { "[ { deny: true, cache: bypass } ]",
      "t:5:12: " R ": redirect, answer and deny answer at once: beside them only response and stop "
                   "have an effect" },
    { "[ { redirect: { to: /a }, tags: b } ]",
      "t:5:12: " R ": redirect, answer and deny answer at once: beside them only response and stop "
                   "have an effect" },
    { "[ { redirect: { status: 301 } } ]",
      "t:5:12: " R ": does nothing: it has no cache, key, cookies, request, response, redirect, "
                   "answer, deny, origin, rewrite, tags or stop\n"
      "t:5:34: " R ".redirect.status: has no redirect.to that it goes with" },
    { "[ { redirect: { to: /a, status: 304 } } ]",
      "t:5:42: " R ".redirect.status: is no redirect; allowed: 301, 302, 303, 307 or 308" },
    { "[ { redirect: { to: a } } ]",
      "t:5:30: " R ".redirect.to: begins with neither https://, http://, / nor a variable" },
    { "[ { redirect: { to: \"/a b\" } } ]",
      "t:5:30: " R ".redirect.to: is empty or has a space or a character beyond ASCII" },
    { "[ { answer: { status: 204, body: a } } ]",
      "t:5:43: " R ".answer.body: goes with a status that has no body" },
    { "[ { deny: true, answer: { type: a/b } } ]",
      "t:5:42: " R ".answer.type: has no answer.body that it goes with" },
    { "[ { cache: bypass, tags: a } ]",
      "t:5:21: " R ".cache: bypass stores nothing: key and tags have no effect beside it" },
    { "[ { cache: bypass, key: { sort: true } } ]",
      "t:5:21: " R ".cache: bypass stores nothing: key and tags have no effect beside it" },
    { "[ { cache: no_store, tags: a } ]",
      "t:5:21: " R ".cache: no_store stores nothing: tags have no effect beside it" },
    { "[ { cache: { grace: 1h, stale_while_revalidate: 1h, stale_if_error: 1h } } ]",
      "t:5:30: " R
      ".cache.grace: sets stale_while_revalidate and stale_if_error, which are both given" },
    { "[ { cookies: { drop: a, keep: b } } ]",
      "t:5:40: " R ".cookies.keep: is all that is left; drop has no effect beside it" },
    { "[ { match: { status: 404 }, deny: true } ]",
      "t:5:12: " R
      ": has a condition on the answer: it can only have cache, tags, response and stop" },
    { "[ { match: { status: 404 }, key: { sort: true } } ]",
      "t:5:12: " R
      ": has a condition on the answer: it can only have cache, tags, response and stop" },
    { "[ { match: { not: { status: 404 } }, origin: files } ]",
      "t:5:12: " R
      ": has a condition on the answer: it can only have cache, tags, response and stop" },
    { "[ { match: { status: 404 }, cache: bypass } ]",
      "t:5:45: " R ".cache: comes too late with a condition on the answer; no_store is in time" },
    { "[ { match: { not: { path: /a, status: 404 } }, cache: no_store } ]",
      "t:5:28: " R
      ".match.not: mixes what the request says with what the answer says; make it two rules" },
    { "[ { tags: \"a-$1\" } ]",
      "t:5:20: " R ".tags: has $1, and the rule has no path_regex to fill it" },
    { "[ { match: { path_regex: [ \"(a)(b)\", \"(a)\" ] }, tags: \"a-$2\" } ]",
      "t:5:64: " R ".tags: has $2, and the regular expression has 1 group" },
    { "[ { rewrite: { path: \"/a/$1\" } } ]",
      "t:5:31: " R ".rewrite.path: has $1, and the rule has no path_regex to fill it" },
    { "[ { rewrite: { regex: a, path: \"/a/$1\" } } ]",
      "t:5:41: " R ".rewrite.path: has $1, and the regular expression has 0 groups" },
    { "[ { request: { set: { A: \"$1\" } } } ]",
      "t:5:32: " R ".request.set.A: has $1, and the rule has no path_regex to fill it" },
    { "[ { rewrite: { path: a } } ]", "t:5:31: " R ".rewrite.path: does not begin with /" },
    { "[ { rewrite: { path: \"/a?b\" } } ]",
      "t:5:31: " R ".rewrite.path: has a ?, a #, a space or a character beyond ASCII; a query has "
                   "its own item" },
    { "[ { rewrite: { query: \"?b\" } } ]",
      "t:5:32: " R ".rewrite.query: begins with the ?, which is put there by itself" },
    { "[ { rewrite: { regex: a } } ]",
      "t:5:32: " R ".rewrite.regex: has neither path nor query to go with it" },
    /* fields that are not theirs */
    { "[ { request: { set: { Host: a } } } ]",
      "t:5:32: " R ".request.set.Host: is not a rule's to set; the Host that servers are sent is "
                   "origins.NAME.host" },
    { "[ { request: { append: { connection: close } } } ]",
      "t:5:35: " R
      ".request.append.connection: is not a rule's to set: Larder itself writes or reads it" },
    { "[ { request: { set: { Content-Length: \"1\" } } } ]",
      "t:5:32: " R
      ".request.set.Content-Length: is not a rule's to set: Larder itself writes or reads it" },
    { "[ { request: { set: { X-Forwarded-For: a } } } ]",
      "t:5:32: " R
      ".request.set.X-Forwarded-For: is not a rule's to set: Larder itself writes or reads it" },
    { "[ { request: { set: { Range: a } } } ]",
      "t:5:32: " R ".request.set.Range: is not a rule's to set: Larder itself writes or reads it" },
    { "[ { response: { set: { Transfer-Encoding: a } } } ]",
      "t:5:33: " R
      ".response.set.Transfer-Encoding: is not a rule's to set: Larder itself writes or reads it" },
    { "[ { response: { set: { Age: \"1\" } } } ]",
      "t:5:33: " R ".response.set.Age: is not a rule's to set: Larder itself writes or reads it" },
    { "[ { response: { remove: [ content-length ] } } ]",
      "t:5:36: " R ".response.remove[0]: is not a rule's to remove: Larder itself writes it" },
    /* tests */
    { "[]\n  tests: [ { expect: { outcome: hit } } ]",
      "t:6:12: sites[0].tests[0]: has no request.url" },
    { "[]\n  tests: [ { request: { url: \"http://a/\" } } ]",
      "t:6:12: sites[0].tests[0]: expects nothing; give it expect: { outcome: … }" },
    { "[]\n  tests: [ { request: { url: a }, expect: { outcome: hit } } ]",
      "t:6:30: sites[0].tests[0].request.url: \"a\" begins with neither http:// nor https://" },
    { "[]\n  tests: [ { request: { url: \"http:///a\" }, expect: { outcome: hit } } ]",
      "t:6:30: sites[0].tests[0].request.url: \"http:///a\" has no host" },
    { "[]\n  tests: [ { request: { url: \"http://a/b c\" }, expect: { outcome: hit } } ]",
      "t:6:30: sites[0].tests[0].request.url: \"http://a/b c\" has a space, a # or a character "
      "beyond ASCII" },
    { "[]\n  tests: [ { request: { url: \"http://a/\", client: x }, expect: { outcome: hit } } ]",
      "t:6:51: sites[0].tests[0].request.client: \"x\" is no address; allowed: an address such as "
      "192.0.2.1" },
    { "[]\n  tests: [ { request: { url: \"http://a/\" }, expect: { outcome: hitt } } ]",
      "t:6:64: sites[0].tests[0].expect.outcome: \"hitt\" is none of them; allowed: hit, "
      "revalidated, stale, miss, collapsed, pass, local, refused, fault or aborted; did you mean "
      "hit?" },
    { "[ { name: login, tags: a } ]\n  tests: [ { request: { url: \"http://a/\" }, expect: { rule: "
      "logn } } ]",
      "t:6:61: sites[0].tests[0].expect.rule: \"logn\" is no rule of this site; did you mean "
      "login?" },
    { "[]\n  tests: [ { request: { url: \"http://a/\" }, expect: { origin: x } } ]",
      "t:6:63: sites[0].tests[0].expect.origin: \"x\" is no origin of this file" },
};

/* All lines of a load's mistakes; "" without any. The caller frees it. */
static char *mistakes_of(const char *yaml)
{
    struct config_mistakes mistakes;
    struct config *c = config_load_text("t", slice_of(yaml), &mistakes);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < mistakes.count; i++)
        fprintf(out, "%s%s", i == 0 ? "" : "\n", mistakes.lines[i]);
    fclose(out);
    config_mistakes_free(&mistakes);
    config_unref(&c);
    return text;
}

static void test_rows(void **state)
{
    (void)state;
    bool all_as_said = true;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char yaml[2048];
        snprintf(yaml, sizeof yaml, "%s%s", RULES, rows[i].rules);
        char *said = mistakes_of(yaml);
        if (strcmp(said, rows[i].said) != 0) {
            print_error("%s\nsays %s\nnot  %s\n", rows[i].rules, said, rows[i].said);
            all_as_said = false;
        }
        free(said);
    }
    assert_true(all_as_said);
}

static void test_hosts_of_the_site(void **state)
{
    (void)state;
    char *said = mistakes_of(
        ORIGINS
        "sites:\n- hosts: [ a.example, \"*.b.example\" ]\n  origin: app\n"
        "  rules: [ { match: { host: [ a.example, x.b.example, \"*.c\" ] }, tags: a }, { match: { "
        "host: b.example }, tags: a } ]\n"
        "  tests: [ { request: { url: \"http://c.example/\" }, expect: { outcome: hit } } ]\n");
    assert_string_equal(said, "t:5:94: sites[0].rules[1].match.host: \"b.example\" can never "
                              "match: the site does not have that host\n"
                              "t:6:30: sites[0].tests[0].request.url: \"http://c.example/\" is no "
                              "URL of this site, whose hosts are others");
    free(said);
}

static void test_too_many(void **state)
{
    (void)state;
    char *yaml = NULL;
    size_t size;
    FILE *out = open_memstream(&yaml, &size);
    fputs(RULES "[", out);
    for (int i = 0; i < RULES_MAX + 1; i++)
        fprintf(out, "%s{ match: { path: \"/%d\" }, tags: a }", i == 0 ? "" : ", ", i);
    fputs("]", out);
    fclose(out);
    char *said = mistakes_of(yaml);
    assert_string_equal(said, "t:5:10: sites[0].rules: has 1025 rules; a site can have 1024");
    free(said);
    /* one fewer, and those of a preset */
    char *cut = strstr(yaml, ", { match: { path: \"/1024\"");
    strcpy(cut, "]\n  presets: static");
    said = mistakes_of(yaml);
    assert_string_equal(
        said,
        "t:6:12: sites[0].presets: has 1025 rules with those of its presets; a site can have 1024");
    free(said);
    free(yaml);
}

/* ---- aloud ---- */

/* What a load says on standard error. The caller frees it. */
static char *said_aloud(const char *yaml)
{
    int ends[2], kept = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    free(mistakes_of(yaml));
    dup2(kept, STDERR_FILENO);
    close(ends[1]);
    close(kept);
    char *text = xcalloc(1, 8192);
    size_t len = 0;
    for (ssize_t got; len < 8191 && (got = read(ends[0], text + len, 8191 - len)) > 0;)
        len += (size_t)got;
    close(ends[0]);
    return text;
}

static void test_aloud(void **state)
{
    (void)state;
    static const struct {
        const char *rules, *word; /* NULL: nothing is said */
    } aloud[] = {
        { "[ { cache: { ignore: cache-control } } ]",
          "warn t:5:31: " R ".cache.ignore: ignores cache-control: what the origin marks private" },
        { "[ { cache: { ignore: [ vary, authorization ] } } ]",
          "ignores authorization: what one user was shown" },
        { "[ { cache: { ignore: set-cookie } } ]", "ignores set-cookie: " },
        { "[ { cache: { ttl: 31d } } ]",
          "warn t:5:28: " R ".cache.ttl: keeps answers for more than 30 days" },
        { "[ { cache: { ttl: 30d } } ]", NULL },
        { "[]\n  presets: [ magento, static ]", NULL }, /* docs/rules.md says it of them */
        { "[ { cache: { ignore: vary }, deny: true } ]",
          NULL }, /* with a mistake, that is what is told */
    };
    for (size_t i = 0; i < ARRAY_COUNT(aloud); i++) {
        char yaml[512];
        snprintf(yaml, sizeof yaml, "%s%s", RULES, aloud[i].rules);
        char *said = said_aloud(yaml);
        if (aloud[i].word == NULL ? said[0] != '\0' : strstr(said, aloud[i].word) == NULL)
            fail_msg("%s: %s", aloud[i].rules, said);
        free(said);
    }
}

/* ---- printed ---- */

static char *printed(const struct config *c)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    config_print(c, out);
    fclose(out);
    return text;
}

static void test_round_trip(void **state)
{
    (void)state;
    static const char *const rules[] = {
        "[]",
        "[ { deny: true }  ]",
        "[ { match: { path: /a }, stop: true }, { match: { query: [ a, \"b*\" ], cookies: { c: "
        "false, d: true, e: [ \"1\", \"true\" ] } }, cache: bypass } ]",
        "[ { match: { path_regex: \"\\\\d\\\"(x)\", not: { path: [ /b, \"/c\\\\*\" ], fields: { A: "
        "{ regex: \"'\" } } } }, tags: [ \"a-$1\", b ] } ]",
        "[ { match: { ignore_case: true, path: /A, not: { path: /B, ignore_case: true } }, key: { "
        "fields: [ A ], ignore_case: true } } ]",
        "[ { answer: { body: \"a\\tb\\n\\\"c\\\" \\u00e9\" } } ]",
        "[ { request: { set: { A: [ a, b ], B: \"\" }, append: { A: c }, remove: [ \"x-*\" ] }, "
        "response: { append: { a: b, A: c } } } ]",
        "[ { rewrite: { query: \"\" } }, { redirect: { to: \"/$$\", status: 307 } } ]",
        "[ { cache: { ttl: 0, keep: 0, default_ttl: { 200: 1d, 404: 0 }, grace: 90s, ignore: [ "
        "vary, set-cookie ] }, origin: files } ]",
        "[]\n  presets: [ wordpress, static ]",
        "[ { name: x, tags: a } ]\n  tests: [ { name: \"a: b\", request: { url: "
        "\"https://a:8443/b?c\", method: HEAD, fields: { Cookie: a=b } }, response: { status: 404, "
        "fields: { A: [ b, c ] } }, expect: { outcome: pass, key: k, ttl: 0, stored: true, rule: "
        "x, why: w, status: 404, location: l, origin: app, tags: [] } } ]",
    };
    for (size_t i = 0; i < ARRAY_COUNT(rules); i++) {
        struct config *c = rules_load(rules[i]);
        struct config_mistakes mistakes;
        char *first = printed(c);
        struct config *back = config_load_text("t", slice_of(first), &mistakes);
        if (back == NULL)
            fail_msg("%s\n%s\n%s", rules[i], mistakes.lines[0], first);
        char *second = printed(back);
        assert_string_equal(first, second);
        assert_int_equal(c->sites[0].rule_count, back->sites[0].rule_count);
        for (size_t r = 0; r < c->sites[0].rule_count; r++)
            assert_string_equal(rule_summary(&c->sites[0].rules[r]),
                                rule_summary(&back->sites[0].rules[r]));
        assert_int_equal(c->sites[0].test_count, back->sites[0].test_count);
        free(first);
        free(second);
        config_unref(&back);
        config_unref(&c);
    }
}

/* What the runner of tests is given. */
static void test_tests(void **state)
{
    (void)state;
    struct config *c = rules_load(
        "[ { name: x, tags: a } ]\n  tests:\n  - { request: { url: "
        "\"HTTPS://A.Example:8443/b?c=d\", client: 10.0.0.1, fields: { Cookie: [ a=b, c=d ] } }, "
        "expect: { stored: false, tags: [ a ] } }\n  - { request: { url: \"http://[::1]:80\" }, "
        "expect: { outcome: local, ttl: 1m } }\n");
    const struct config_rule_test *t = c->sites[0].tests;
    assert_string_equal(t[0].where, "t:7");
    assert_null(t[0].name);
    assert_true(slice_equal(t[0].scheme, SLICE("https")));
    assert_true(slice_equal(t[0].host, SLICE("a.example")));
    assert_int_equal(t[0].port, 8443);
    assert_true(slice_equal(t[0].path, SLICE("/b")));
    assert_true(slice_equal(t[0].query, SLICE("c=d")));
    assert_true(t[0].has_peer);
    assert_int_equal(t[0].peer.bytes[12], 10);
    assert_int_equal(t[0].request.fields.count, 2);
    assert_string_equal(t[0].request.fields.rows[1].value, "c=d");
    assert_int_equal(t[0].expect.stored, 0);
    assert_int_equal(t[0].expect.outcome, RULE_NOT_GIVEN);
    assert_int_equal(t[0].response.status, RULE_NOT_GIVEN);
    assert_string_equal(t[0].expect.tags[0], "a");
    assert_true(slice_equal(t[1].host, SLICE("[::1]")));
    assert_int_equal(t[1].port, 0);
    assert_true(slice_equal(t[1].path, SLICE("/")));
    assert_null(t[1].query.ptr);
    assert_int_equal(t[1].expect.outcome, OUTCOME_LOCAL);
    assert_int_equal(t[1].expect.ttl_s, 60);
    assert_false(t[1].has_peer);
    config_unref(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),       cmocka_unit_test(test_hosts_of_the_site),
        cmocka_unit_test(test_too_many),   cmocka_unit_test(test_aloud),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_tests),
    };
    (void)try_request;
    (void)tried_fini;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
