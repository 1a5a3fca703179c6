/* cache/ruletest.c: the `tests:` of the sites in a configuration: a request and the origin's answer
 * to it, and what is to become of them. Run by `larder check`, with the very functions that decide
 * for real; see policy.h. One thread; needs no cache and no network.
 *
 * Life     one `struct run` a test, on the heap: plan, then the answer judged, then each thing
 * expected compared.
 */
#include "base/clock.h"
#include "base/dates.h"
#include "cache/policy.h"
#include "config/config.h"
#include "config/rule_test.h"

#include <stdio.h>
#include <stdlib.h>

struct run {
    const struct config *config;
    const struct config_site *site;
    const struct config_rule_test *test;
    size_t number; /* of the test in its site, from 1 */
    FILE *out;
    unsigned failed; /* of what was expected */

    struct arena arena;
    struct header request_rows[HEADERS_MAX], response_rows[HEADERS_MAX];
    struct headers request, response;
    struct rule_request rule;
    struct plan plan;
    char key[1024];
    bool has_answer; /* rules answer instead of an origin */
    struct rule_answer answer;
    uint16_t status; /* of the origin's answer */
    bool is_judged;  /* an answer would come and be judged */
    struct judgement judged;
};

/* ---- saying what is wrong
 * ------------------------------------------------------------------------ */

static void begin_line(struct run *r, const char *what)
{
    r->failed++;
    if (r->test->name != NULL)
        fprintf(r->out, "%s: test \"%s\": %s", r->test->where, r->test->name, what);
    else
        fprintf(r->out, "%s: test %zu: %s", r->test->where, r->number, what);
}

static void say(struct run *r, const char *what, const char *expected, struct slice got,
                const char *because)
{
    begin_line(r, what);
    fprintf(r->out, ": expected %s, got ", expected);
    fwrite(got.ptr, 1, got.len, r->out);
    if (because[0] != '\0')
        fprintf(r->out, " (%s)", because);
    fputc('\n', r->out);
}

/* In the largest unit that gives a whole number, as durations are written in the file. */
static struct slice seconds_text(struct arena *a, int64_t seconds)
{
    static const struct {
        int64_t seconds;
        const char *unit;
    } units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "m" } };
    for (size_t i = 0; i < ARRAY_COUNT(units); i++)
        if (seconds > 0 && seconds % units[i].seconds == 0)
            return arena_printf(a, "%lld%s", (long long)(seconds / units[i].seconds),
                                units[i].unit);
    return arena_printf(a, "%llds", (long long)seconds);
}

/* ---- the request and the answer
 * ------------------------------------------------------------------ */

static bool add_fields(struct headers *h, const struct rule_fields *fields)
{
    for (size_t i = 0; i < fields->count; i++)
        if (!headers_add(h, slice_of(fields->rows[i].name), slice_of(fields->rows[i].value)))
            return false;
    return true;
}

static bool make_request(struct run *r)
{
    const struct config_rule_test *t = r->test;
    headers_init(&r->request, r->request_rows, HEADERS_MAX);
    if (!add_fields(&r->request, &t->request.fields))
        return false;
    if (t->host.len > 0 && !headers_has(&r->request, HEADER_HOST)) {
        struct slice host =
            t->port == 0 ? t->host
                         : arena_printf(&r->arena, SLICE_FMT ":%u", SLICE_ARG(t->host), t->port);
        if (!headers_add(&r->request, SLICE("Host"), host))
            return false;
    }
    r->rule =
        (struct rule_request){ .method = t->request.method == NULL ? SLICE("GET")
                                                                   : slice_of(t->request.method),
                               .scheme = t->scheme,
                               .host = t->host,
                               .path = t->path,
                               .query = t->query,
                               .headers = &r->request,
                               .client = t->has_peer ? &t->peer : NULL };
    return true;
}

static bool has_body(const struct headers *h)
{
    struct slice length = headers_value(h, HEADER_CONTENT_LENGTH);
    return headers_has(h, HEADER_TRANSFER_ENCODING) ||
           (length.len > 0 && !slice_equal(length, SLICE("0")));
}

static void make_plan(struct run *r)
{
    const struct plan_request in = { .config = r->config,
                                     .site = r->site,
                                     .rule = r->rule,
                                     .headers = &r->request,
                                     .port = r->test->port,
                                     .is_get = slice_equal(r->rule.method, SLICE("GET")),
                                     .is_head = slice_equal(r->rule.method, SLICE("HEAD")),
                                     .has_body = has_body(&r->request) };
    cache_plan(&in, r->key, sizeof r->key, &r->arena, &r->plan);
    r->has_answer = r->plan.way == PLAN_LOCAL;
    if (r->has_answer)
        rules_answer(&r->plan.effects, &r->rule, &r->arena, &r->answer);
}

/* The answer's own date, so that the same file gives the same result on any day; today without one.
 */
static int64_t now_of(const struct headers *response)
{
    int64_t today_s = clock_wall_s(), date_s;
    const struct header *date = headers_find(response, HEADER_DATE);
    return date != NULL && date_parse(date->value, today_s, &date_s) ? date_s : today_s;
}

static bool stands_for_get(struct run *r)
{
    if (slice_equal(r->rule.method, SLICE("GET")))
        return true;
    const struct target_base base = {
        .scheme = r->rule.scheme, .host = r->rule.host, .port = r->test->port, .path = r->plan.path
    };
    return slice_equal(r->rule.method, SLICE("POST")) &&
           cache_post_is_get(&base, r->plan.query, &r->response, r->status, &r->arena);
}

/* Nothing that passes is stored, but for a POST whose answer stands for a GET's. */
static void judge(struct run *r)
{
    bool is_get = stands_for_get(r);
    r->is_judged = r->plan.way == PLAN_LOOKUP ||
                   (r->plan.way == PLAN_PASS && r->plan.why == REASON_METHOD && is_get);
    if (!r->is_judged)
        return;
    const struct rule_effects *effects = NULL;
    if (rules_has_any(r->site)) {
        const struct rule_response answer = { r->status, &r->response };
        rules_on_response(&r->rule, &answer, &r->plan.effects);
        effects = &r->plan.effects;
    }
    const struct judge_request in = {
        .config = r->config,
        .effects = effects,
        .request = &r->request,
        .response = &r->response,
        .status = r->status,
        .is_get = is_get,
        .wants_part = headers_has(&r->request, HEADER_RANGE),
        .times = { .now_wall_s = now_of(&r->response) },
    };
    cache_judge(&in, &r->judged);
}

static bool is_answer_given(const struct config_rule_test *t)
{
    return t->response.status != RULE_NOT_GIVEN || t->response.fields.count > 0;
}

static bool is_stored(const struct run *r)
{
    return r->is_judged && r->judged.storable == STORABLE_YES;
}

/* ---- why
 * ------------------------------------------------------------------------------------------ */

static const char *control_field(const struct run *r)
{
    return r->judged.control_field == NULL ? "Cache-Control" : r->judged.control_field;
}

/* Where the lifetime comes from: "Cache-Control: max-age", "rule larder.yaml:12". */
static const char *lifetime_text(struct run *r)
{
    switch (r->judged.freshness.source) {
    case LIFETIME_S_MAXAGE:
    case LIFETIME_MAX_AGE:
        return arena_printf(&r->arena, "%s: %s", control_field(r),
                            lifetime_word(r->judged.freshness.source))
            .ptr;
    case LIFETIME_RULE:
        if (!rules_has_any(r->site) || r->plan.effects.ttl_by == NULL)
            return "a rule";
        return arena_printf(&r->arena, "rule %s", rule_where(r->plan.effects.ttl_by)).ptr;
    case LIFETIME_EXPIRES: return "Expires";
    case LIFETIME_DEFAULT: return "cache.default_ttl";
    case LIFETIME_HEURISTIC: return "Last-Modified: heuristic";
    case LIFETIME_NONE: break;
    }
    return "nothing gives it a lifetime";
}

/* Without an answer in the test, nothing but rules and the method say that none would be stored. */
static bool is_let_go(const struct run *r)
{
    if (r->plan.way != PLAN_LOOKUP || is_stored(r))
        return false;
    return is_answer_given(r->test) || r->judged.storable == STORABLE_RULE ||
           r->judged.storable == STORABLE_METHOD;
}

/* What the log would say of the first such request. */
static enum reason reason_of(const struct run *r)
{
    return is_let_go(r) ? storable_reason(r->judged.storable) : r->plan.why;
}

static const char *unstored_text(const struct run *r)
{
    return r->plan.way == PLAN_LOOKUP ? storable_text(r->judged.storable)
                                      : reason_text(r->plan.why);
}

/* ---- what is expected, in the order of the manual
 * -------------------------------------------------- */

/* A miss is what would be fetched and stored. */
static enum outcome outcome_of(const struct run *r)
{
    switch (r->plan.way) {
    case PLAN_LOCAL:
    case PLAN_BROKEN: return OUTCOME_LOCAL;
    case PLAN_PASS: return OUTCOME_PASS;
    case PLAN_LOOKUP: return is_let_go(r) ? OUTCOME_PASS : OUTCOME_MISS;
    }
    UNREACHABLE();
}

/* Asked for again at once, it would come from the store. */
static bool would_hit(const struct run *r)
{
    const struct freshness *f = &r->judged.freshness;
    return r->plan.way == PLAN_LOOKUP && is_stored(r) &&
           cache_is_fresh(f, f->initial_age_s, NULL) == FRESH_YES;
}

static const char *outcome_text(struct run *r, bool is_hit_expected)
{
    if (!is_stored(r))
        return reason_text(reason_of(r));
    return is_hit_expected ? "what is stored is stale at once" : lifetime_text(r);
}

static void expect_outcome(struct run *r)
{
    uint32_t expected = r->test->expect.outcome;
    enum outcome got = outcome_of(r);
    if (expected == RULE_NOT_GIVEN || expected == got)
        return;
    if (expected != OUTCOME_HIT || !would_hit(r))
        say(r, "outcome", outcome_word(expected), slice_of(outcome_word(got)),
            outcome_text(r, expected == OUTCOME_HIT));
}

/* The word of the log, or the one that says why nothing is stored; of a hit, what the log says
 * then. */
static bool is_why(const struct run *r, const char *word)
{
    return strcmp(word, reason_word(reason_of(r))) == 0 ||
           (is_let_go(r) && strcmp(word, storable_word(r->judged.storable)) == 0) ||
           (would_hit(r) && strcmp(word, reason_word(REASON_FRESH)) == 0);
}

static void expect_why(struct run *r)
{
    const char *expected = r->test->expect.why;
    if (expected != NULL && !is_why(r, expected))
        say(r, "why", expected, slice_of(reason_word(reason_of(r))), reason_text(reason_of(r)));
}

static void expect_stored(struct run *r)
{
    uint32_t expected = r->test->expect.stored;
    if (expected != RULE_NOT_GIVEN && (expected != 0) != is_stored(r))
        say(r, "stored", expected != 0 ? "true" : "false",
            slice_of(is_stored(r) ? "true" : "false"),
            is_stored(r) ? lifetime_text(r) : unstored_text(r));
}

static void expect_ttl(struct run *r)
{
    uint32_t expected = r->test->expect.ttl_s;
    if (expected == RULE_NOT_GIVEN)
        return;
    const char *text = seconds_text(&r->arena, expected).ptr;
    if (!is_stored(r))
        say(r, "ttl", text, SLICE("nothing that is stored"), unstored_text(r));
    else if (r->judged.freshness.lifetime_s != (int64_t)expected)
        say(r, "ttl", text, seconds_text(&r->arena, r->judged.freshness.lifetime_s),
            lifetime_text(r));
}

/* "host/path?query", then what rules add, each after a space. */
static struct slice shown_key(struct run *r)
{
    struct slice key = r->plan.key;
    size_t site_len = slice_find(key, '\0');
    if (site_len == key.len)
        return SLICE("none");
    char *text = arena_alloc(&r->arena, key.len);
    size_t len = key.len - site_len - 1;
    memcpy(text, key.ptr + site_len + 1, len);
    while (len > 0 && text[len - 1] == '\0')
        len--;
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    return (struct slice){ text, len };
}

static void expect_key(struct run *r)
{
    const char *expected = r->test->expect.key;
    if (expected != NULL && !slice_equal(slice_of(expected), shown_key(r)))
        say(r, "key", expected, shown_key(r), "");
}

static bool is_called(const struct config_rule *rule, const char *text)
{
    return strcmp(rule_where(rule), text) == 0 ||
           (rule_name(rule)[0] != '\0' && strcmp(rule_name(rule), text) == 0);
}

static void expect_rule(struct run *r)
{
    const char *expected = r->test->expect.rule;
    struct slice got = SLICE("none");
    bool is_first = true;
    if (expected == NULL)
        return;
    for (size_t i = 0; i < r->site->rule_count; i++) {
        const struct config_rule *rule = rules_at(r->site, i);
        if (!rules_matched(&r->plan.effects, i))
            continue;
        if (is_called(rule, expected))
            return;
        const char *name = rule_name(rule)[0] == '\0' ? rule_where(rule) : rule_name(rule);
        got = is_first ? slice_of(name)
                       : arena_printf(&r->arena, SLICE_FMT ", %s", SLICE_ARG(got), name);
        is_first = false;
    }
    say(r, "rule", expected, got, "");
}

static uint16_t status_of(const struct run *r)
{
    switch (r->plan.way) {
    case PLAN_LOCAL: return r->answer.status;
    case PLAN_BROKEN: return 500;
    case PLAN_LOOKUP:
    case PLAN_PASS: break;
    }
    return r->status;
}

static void expect_status(struct run *r)
{
    uint32_t expected = r->test->expect.status;
    if (expected == RULE_NOT_GIVEN || expected == status_of(r))
        return;
    say(r, "status", arena_printf(&r->arena, "%u", expected).ptr,
        arena_printf(&r->arena, "%u", status_of(r)), "");
}

static void expect_location(struct run *r)
{
    const char *expected = r->test->expect.location;
    struct slice got =
        r->has_answer ? r->answer.location : headers_value(&r->response, HEADER_LOCATION);
    if (expected != NULL && !slice_equal(slice_of(expected), got))
        say(r, "location", expected, got.len == 0 ? SLICE("none") : got, "");
}

static void expect_origin(struct run *r)
{
    const char *expected = r->test->expect.origin;
    if (expected != NULL && strcmp(expected, r->plan.origin->name) != 0)
        say(r, "origin", expected, slice_of(r->plan.origin->name), "");
}

/* ---- tags
 * ----------------------------------------------------------------------------------------- */

/* What a group of RFC 9875 became is no tag that anybody could write down. */
static bool next_tag(struct slice *rest, struct slice *tag)
{
    while (cache_tags_next(rest, tag))
        if (tag->ptr[0] != '\1')
            return true;
    return false;
}

static bool list_has(char **list, struct slice tag)
{
    for (; *list != NULL; list++)
        if (slice_equal(slice_of(*list), tag))
            return true;
    return false;
}

static bool tags_have(struct slice tags, struct slice wanted)
{
    struct slice tag;
    while (next_tag(&tags, &tag))
        if (slice_equal(tag, wanted))
            return true;
    return false;
}

static bool are_tags_as(char **expected, struct slice tags)
{
    struct slice rest = tags, tag;
    while (next_tag(&rest, &tag))
        if (!list_has(expected, tag))
            return false;
    for (; *expected != NULL; expected++)
        if (!tags_have(tags, slice_of(*expected)))
            return false;
    return true;
}

static struct slice joined(struct arena *a, struct slice list, struct slice one)
{
    return list.len == 0
               ? one
               : arena_printf(a, SLICE_FMT " " SLICE_FMT, SLICE_ARG(list), SLICE_ARG(one));
}

static void expect_tags(struct run *r)
{
    char **expected = r->test->expect.tags;
    if (expected == NULL)
        return;
    struct slice more =
        rules_has_any(r->site) ? rules_tags(&r->plan.effects, &r->arena) : SLICE_NONE;
    struct slice tags =
        r->is_judged ? cache_tags_make(&r->arena, &r->response, r->test->host, more) : SLICE_NONE;
    if (are_tags_as(expected, tags))
        return;
    struct slice wanted = SLICE_NONE, got = SLICE_NONE, tag;
    for (char **e = expected; *e != NULL; e++)
        wanted = joined(&r->arena, wanted, slice_of(*e));
    while (next_tag(&tags, &tag))
        got = joined(&r->arena, got, tag);
    say(r, "tags", wanted.len == 0 ? "none" : arena_string(&r->arena, wanted),
        got.len == 0 ? SLICE("none") : got, r->is_judged ? "" : unstored_text(r));
}

/* ---- one test, all tests
 * --------------------------------------------------------------------------- */

static void compare(struct run *r)
{
    expect_outcome(r);
    expect_why(r);
    expect_stored(r);
    expect_ttl(r);
    expect_key(r);
    expect_rule(r);
    expect_status(r);
    expect_location(r);
    expect_origin(r);
    expect_tags(r);
}

static void run(struct run *r)
{
    const struct config_rule_test *t = r->test;
    headers_init(&r->response, r->response_rows, HEADERS_MAX);
    if (!make_request(r) || !add_fields(&r->response, &t->response.fields)) {
        begin_line(r, "fields");
        fprintf(r->out, ": more than %d\n", HEADERS_MAX);
        return;
    }
    r->status = t->response.status == RULE_NOT_GIVEN ? 200 : (uint16_t)t->response.status;
    make_plan(r);
    judge(r);
    compare(r);
}

void cache_rule_tests_run(const struct config *c, FILE *out, struct rule_test_result *result)
{
    *result = (struct rule_test_result){ 0, 0 };
    for (size_t s = 0; s < c->site_count; s++)
        for (size_t i = 0; i < c->sites[s].test_count; i++) {
            struct run *r = xcalloc(1, sizeof *r);
            r->config = c;
            r->site = &c->sites[s];
            r->test = &r->site->tests[i];
            r->number = i + 1;
            r->out = out;
            arena_init(&r->arena);
            run(r);
            arena_fini(&r->arena);
            result->passed += r->failed == 0;
            result->failed += r->failed > 0;
            free(r);
        }
}
