/* tests/unit/cache/test_judge.c: configuration, rules, control fields and storing put together, as
 * rows: what an answer is kept for, and which of its fields go where (RFC 9111 3). */
#include "tests/unit/cache/decide_rows.h"

#include "cache/policy.h"

#define NOW_DATE  "Sun, 15 Jun 2025 15:06:40 GMT"
#define LAST_WEEK "Sun, 08 Jun 2025 15:06:40 GMT"
#define NEXT_WEEK "Sun, 22 Jun 2025 15:06:40 GMT"
enum { NOW = 1750000000, WEEK = 7 * 86400, MAX = CONTROL_MAX_S, NONE = RULE_UNSET };

static char *cdn_names[] = { (char *)"CDN-Cache-Control", NULL };
static struct config_ttl ttls[] = { { 200, 300 }, { 404, 10 }, { 599, UINT32_MAX } };

static const struct config plain = { .has_heuristic = true,
                                     .heuristic_max_s = 86400,
                                     .targeted = cdn_names,
                                     .targeted_count = 1,
                                     .stale_if_unreachable_s = 86400 };
static const struct config with_ttls = { .targeted = cdn_names,
                                         .ttls = ttls,
                                         .ttl_count = ARRAY_COUNT(ttls),
                                         .keep_s = 1000,
                                         .stale_while_revalidate_s = 1,
                                         .stale_if_error_s = 2,
                                         .stale_if_unreachable_s = 3 };
static const struct config honouring = { .targeted = cdn_names, .honours_client = true };
static const struct config sharing = { .targeted = cdn_names, .shares_set_cookie = true };
static const struct config untargeted = { .has_heuristic = true };
static const struct config huge = { .keep_s = UINT32_MAX,
                                    .stale_while_revalidate_s = UINT32_MAX,
                                    .stale_if_error_s = UINT32_MAX,
                                    .stale_if_unreachable_s = UINT32_MAX };

/* ---- without rules --------------------------------------------------------------------------- */

static const struct {
    const struct config *config;
    uint16_t status;
    const char *request, *response;
    enum storable storable;
    enum control_source source;
    enum lifetime_source lifetime_source;
    int32_t lifetime;
    const char *section;
} rows[] = {
    { &plain, 200, "", "Cache-Control: max-age=60", STORABLE_YES, CONTROL_FROM_CACHE_CONTROL,
      LIFETIME_MAX_AGE, 60, "RFC 9111 4.2.1" },
    { &plain, 200, "", "Last-Modified: " LAST_WEEK, STORABLE_YES, CONTROL_FROM_NOTHING,
      LIFETIME_HEURISTIC, WEEK / 10, "RFC 9111 4.2.2" },
    { &plain, 200, "", "", STORABLE_NO_LIFETIME, CONTROL_FROM_NOTHING, LIFETIME_NONE, 0,
      "RFC 9111 3" },
    /* targeted fields */
    { &plain, 200, "", "CDN-Cache-Control: max-age=60", STORABLE_YES, CONTROL_FROM_TARGETED,
      LIFETIME_MAX_AGE, 60, "RFC 9213 2.2" },
    { &plain, 200, "", "CDN-Cache-Control: max-age=99999999999", STORABLE_YES,
      CONTROL_FROM_TARGETED, LIFETIME_MAX_AGE, MAX, "RFC 9111 1.2.2" },
    { &plain, 200, "", "CDN-Cache-Control: max-age=60\nAge: 90", STORABLE_NO_LIFETIME,
      CONTROL_FROM_TARGETED, LIFETIME_MAX_AGE, 60, "RFC 9213 2.3 one age for all" },
    { &plain, 200, "", "CDN-Cache-Control: max-age=60\nExpires: " LAST_WEEK, STORABLE_YES,
      CONTROL_FROM_TARGETED, LIFETIME_MAX_AGE, 60, "RFC 9213 2.2 Expires is ignored" },
    { &plain, 200, "", "CDN-Cache-Control: max-age=0\nExpires: " NEXT_WEEK, STORABLE_NO_LIFETIME,
      CONTROL_FROM_TARGETED, LIFETIME_MAX_AGE, 0, "RFC 9213 2.2 Expires is ignored" },
    { &plain, 200, "", "CDN-Cache-Control: foo\nExpires: " NEXT_WEEK, STORABLE_NO_LIFETIME,
      CONTROL_FROM_TARGETED, LIFETIME_NONE, 0, "RFC 9213 2.2 Expires is ignored" },
    { &plain, 302, "", "CDN-Cache-Control: foo\nExpires: " NEXT_WEEK "\nETag: \"a\"",
      STORABLE_NO_LIFETIME, CONTROL_FROM_TARGETED, LIFETIME_NONE, 0,
      "RFC 9213 2.2 nor does it make a 302 storable" },
    { &plain, 200, "", "CDN-Cache-Control: private\nCache-Control: max-age=60", STORABLE_PRIVATE,
      CONTROL_FROM_TARGETED, LIFETIME_NONE, 0, "RFC 9213 2.2" },
    { &plain, 200, "", "CDN-Cache-Control: no-store\nCache-Control: max-age=60", STORABLE_NO_STORE,
      CONTROL_FROM_TARGETED, LIFETIME_NONE, 0, "RFC 9213 2.2" },
    { &plain, 200, "", "CDN-Cache-Control: no-cache\nCache-Control: max-age=60",
      STORABLE_NO_LIFETIME, CONTROL_FROM_TARGETED, LIFETIME_NONE, 0, "RFC 9213 2.2" },
    { &plain, 200, "", "CDN-Cache-Control: max-age=60\nCache-Control: no-store, private",
      STORABLE_YES, CONTROL_FROM_TARGETED, LIFETIME_MAX_AGE, 60, "RFC 9213 2.2" },
    { &plain, 200, "", "CDN-Cache-Control: max-age=60, &\nCache-Control: no-store",
      STORABLE_NO_STORE, CONTROL_FROM_CACHE_CONTROL, LIFETIME_NONE, 0, "RFC 9213 2.1" },
    { &plain, 200, "", "CDN-Cache-Control: max-age=\"60\"\nCache-Control: max-age=60",
      STORABLE_NO_LIFETIME, CONTROL_FROM_TARGETED, LIFETIME_MAX_AGE, 0, "RFC 9213 2.1" },
    { &plain, 200, "Authorization: x", "CDN-Cache-Control: public, max-age=60", STORABLE_YES,
      CONTROL_FROM_TARGETED, LIFETIME_MAX_AGE, 60, "RFC 9213 2.2 means the same" },
    { &plain, 200, "Authorization: x",
      "CDN-Cache-Control: max-age=60\nCache-Control: public, max-age=60", STORABLE_AUTHORIZATION,
      CONTROL_FROM_TARGETED, LIFETIME_MAX_AGE, 60, "RFC 9213 2.2 the other is ignored" },
    { &untargeted, 200, "", "CDN-Cache-Control: max-age=60", STORABLE_NO_LIFETIME,
      CONTROL_FROM_NOTHING, LIFETIME_NONE, 0, "RFC 9213 2.2 not in the list" },
    { &plain, 200, "", "Surrogate-Control: max-age=60\nCache-Control: no-store", STORABLE_YES,
      CONTROL_FROM_SURROGATE, LIFETIME_MAX_AGE, 60, "for surrogates" },
    { &plain, 200, "", "Surrogate-Control: max-age=60\nExpires: 0", STORABLE_YES,
      CONTROL_FROM_SURROGATE, LIFETIME_MAX_AGE, 60, "for surrogates" },
    { &plain, 200, "", "Surrogate-Control: must-revalidate\nExpires: " NEXT_WEEK,
      STORABLE_NO_LIFETIME, CONTROL_FROM_SURROGATE, LIFETIME_NONE, 0, "Expires is ignored" },
    { &plain, 200, "", "Surrogate-Control: content=\"ESI/1.0\"\nExpires: " NEXT_WEEK, STORABLE_YES,
      CONTROL_FROM_NOTHING, LIFETIME_EXPIRES, WEEK, "not about storing" },
    /* cache.default_ttl */
    { &with_ttls, 200, "", "", STORABLE_YES, CONTROL_FROM_NOTHING, LIFETIME_DEFAULT, 300,
      "RFC 9111 4.2.4" },
    { &with_ttls, 404, "", "Last-Modified: " LAST_WEEK, STORABLE_YES, CONTROL_FROM_NOTHING,
      LIFETIME_DEFAULT, 10, "by status" },
    { &with_ttls, 410, "", "", STORABLE_NO_LIFETIME, CONTROL_FROM_NOTHING, LIFETIME_NONE, 0,
      "by status" },
    { &with_ttls, 599, "", "", STORABLE_YES, CONTROL_FROM_NOTHING, LIFETIME_DEFAULT, MAX,
      "saturated" },
    { &with_ttls, 200, "", "Cache-Control: max-age=60", STORABLE_YES, CONTROL_FROM_CACHE_CONTROL,
      LIFETIME_MAX_AGE, 60, "not where something is said" },
    { &with_ttls, 200, "", "CDN-Cache-Control: foo\nExpires: 0", STORABLE_YES,
      CONTROL_FROM_TARGETED, LIFETIME_DEFAULT, 300, "nothing that counts is said" },
    /* clients */
    { &honouring, 200, "Cache-Control: no-store", "Cache-Control: max-age=60", STORABLE_NO_STORE,
      CONTROL_FROM_CACHE_CONTROL, LIFETIME_MAX_AGE, 60, "RFC 9111 5.2.1.5" },
    { &plain, 200, "Cache-Control: no-store", "Cache-Control: max-age=60", STORABLE_YES,
      CONTROL_FROM_CACHE_CONTROL, LIFETIME_MAX_AGE, 60, "not honoured" },
    /* cookies */
    { &plain, 200, "", "Set-Cookie: a=b\nCache-Control: max-age=60", STORABLE_SET_COOKIE,
      CONTROL_FROM_CACHE_CONTROL, LIFETIME_MAX_AGE, 60, "RFC 9111 7.3" },
    { &sharing, 200, "", "Set-Cookie: a=b\nCache-Control: max-age=60", STORABLE_YES,
      CONTROL_FROM_CACHE_CONTROL, LIFETIME_MAX_AGE, 60, "the operator said so" },
    { &plain, 200, "", "Set-Cookie: a=b\nCache-Control: max-age=60, private=\"set-cookie\"",
      STORABLE_YES, CONTROL_FROM_CACHE_CONTROL, LIFETIME_MAX_AGE, 60,
      "RFC 9111 5.2.2.7 without the cookie" },
    { &plain, 200, "", "Set-Cookie: a=b\nCache-Control: max-age=60, no-cache=\"Set-Cookie\"",
      STORABLE_YES, CONTROL_FROM_CACHE_CONTROL, LIFETIME_MAX_AGE, 60,
      "RFC 9111 5.2.2.4 without the cookie" },
    { &plain, 200, "", "Set-Cookie: a=b\nCDN-Cache-Control: max-age=60, private=\"set-cookie\"",
      STORABLE_YES, CONTROL_FROM_TARGETED, LIFETIME_MAX_AGE, 60, "RFC 9111 5.2.2.7" },
    { &plain, 200, "",
      "Set-Cookie: a=b\nCDN-Cache-Control: max-age=60\nCache-Control: private=\"set-cookie\"",
      STORABLE_SET_COOKIE, CONTROL_FROM_TARGETED, LIFETIME_MAX_AGE, 60,
      "RFC 9213 2.2 the other is ignored" },
    { &plain, 206, "Range: bytes=0-1",
      "Cache-Control: max-age=60\nContent-Range: bytes 0-1/9\nETag: \"a\"", STORABLE_YES,
      CONTROL_FROM_CACHE_CONTROL, LIFETIME_MAX_AGE, 60, "RFC 9111 3.3" },
    { &plain, 206, "", "Cache-Control: max-age=60\nContent-Range: bytes 0-1/9\nETag: \"a\"",
      STORABLE_PART, CONTROL_FROM_CACHE_CONTROL, LIFETIME_MAX_AGE, 60, "RFC 9111 3.3 unasked" },
};

struct row {
    struct row_headers request, response;
    struct judge_request in;
    struct judgement out;
};

static void judge(struct row *r, const struct config *config, const struct rule_effects *effects,
                  uint16_t status, const char *request, const char *response)
{
    const struct headers *request_list = row_headers(&r->request, request);
    r->in = (struct judge_request){ .config = config,
                                    .effects = effects,
                                    .request = request_list,
                                    .response = row_headers(&r->response, response),
                                    .status = status,
                                    .is_get = true,
                                    .wants_part = headers_has(request_list, HEADER_RANGE),
                                    .times = { .now_wall_s = NOW } };
    cache_judge(&r->in, &r->out);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct row r;
        judge(&r, rows[i].config, NULL, rows[i].status, rows[i].request, rows[i].response);
        ROW_CHECK(rows[i].response, r.out.storable, rows[i].storable);
        ROW_CHECK(rows[i].response, r.out.control_source, rows[i].source);
        ROW_CHECK(rows[i].response, r.out.freshness.source, rows[i].lifetime_source);
        ROW_CHECK(rows[i].response, r.out.freshness.lifetime_s, rows[i].lifetime);
        assert_non_null(rows[i].section);
    }
}

/* ---- with rules ------------------------------------------------------------------------------ */

static const struct config_site no_site;
#define EFFECTS(ttl, behind, error, keep, ...)                                                     \
    {                                                                                              \
        .site = &no_site, .ttl_s = (ttl), .default_ttl_s = NONE,                                   \
        .stale_while_revalidate_s = (behind), .stale_if_error_s = (error), .keep_s = (keep),       \
        __VA_ARGS__                                                                                \
    }
#define NO_EFFECTS   EFFECTS(NONE, NONE, NONE, NONE, .ignores = 0)
#define IGNORE(what) EFFECTS(NONE, NONE, NONE, NONE, .ignores = (what))
#define TTL(seconds) EFFECTS(seconds, NONE, NONE, NONE, .ignores = 0)
static const char some_rule;
#define A_RULE ((const struct config_rule *)(const void *)&some_rule) /* never looked into */

static const struct {
    struct rule_effects effects;
    const char *request, *response;
    enum storable storable;
    enum lifetime_source source;
    int32_t lifetime;
    const char *why;
} ruled[] = {
    { NO_EFFECTS, "", "Cache-Control: max-age=60", STORABLE_YES, LIFETIME_MAX_AGE, 60,
      "nothing set" },
    { TTL(5), "", "Cache-Control: max-age=60", STORABLE_YES, LIFETIME_RULE, 5,
      "instead of what is said" },
    { TTL(5), "", "", STORABLE_YES, LIFETIME_RULE, 5, "where nothing is said" },
    { TTL(5), "", "Age: 100", STORABLE_YES, LIFETIME_RULE, 105, "from arrival" },
    { TTL(0), "", "Cache-Control: max-age=60", STORABLE_NO_LIFETIME, LIFETIME_RULE, 0,
      "never fresh" },
    { TTL(5), "", "Cache-Control: no-store", STORABLE_NO_STORE, LIFETIME_RULE, 5,
      "not over no-store" },
    { TTL(5), "", "Cache-Control: private", STORABLE_PRIVATE, LIFETIME_RULE, 5,
      "not over private" },
    { TTL(5), "", "Set-Cookie: a=b", STORABLE_SET_COOKIE, LIFETIME_RULE, 5, "not over a cookie" },
    { IGNORE(IGNORE_CACHE_CONTROL), "", "Cache-Control: no-store\nETag: \"a\"", STORABLE_YES,
      LIFETIME_NONE, 0, "as if absent" },
    { IGNORE(IGNORE_CACHE_CONTROL), "", "Cache-Control: max-age=60", STORABLE_NO_LIFETIME,
      LIFETIME_NONE, 0, "as if absent" },
    { IGNORE(IGNORE_CACHE_CONTROL), "", "CDN-Cache-Control: private, max-age=60",
      STORABLE_NO_LIFETIME, LIFETIME_NONE, 0, "targeted fields, too" },
    { IGNORE(IGNORE_CACHE_CONTROL), "", "Expires: 0\nLast-Modified: " LAST_WEEK, STORABLE_YES,
      LIFETIME_HEURISTIC, WEEK / 10, "Expires, too" },
    { EFFECTS(5, NONE, NONE, NONE, .ignores = IGNORE_CACHE_CONTROL), "",
      "Cache-Control: private, no-cache, no-store", STORABLE_YES, LIFETIME_RULE, 5,
      "the usual pair" },
    { EFFECTS(5, NONE, NONE, NONE, .ignores = IGNORE_CACHE_CONTROL), "",
      "Cache-Control: private=\"set-cookie\"\nSet-Cookie: a=b", STORABLE_SET_COOKIE, LIFETIME_RULE,
      5, "cookies are another thing" },
    { EFFECTS(5, NONE, NONE, NONE, .ignores = IGNORE_CACHE_CONTROL), "Authorization: x", "",
      STORABLE_AUTHORIZATION, LIFETIME_RULE, 5, "authorization is another thing" },
    { IGNORE(IGNORE_SET_COOKIE), "", "Set-Cookie: a=b\nCache-Control: max-age=60", STORABLE_YES,
      LIFETIME_MAX_AGE, 60, "" },
    { IGNORE(IGNORE_VARY), "", "Vary: *\nCache-Control: max-age=60", STORABLE_YES, LIFETIME_MAX_AGE,
      60, "" },
    { IGNORE(IGNORE_AUTHORIZATION), "Authorization: x", "Cache-Control: max-age=60", STORABLE_YES,
      LIFETIME_MAX_AGE, 60, "" },
    { EFFECTS(NONE, NONE, NONE, NONE, .bypassed_by = A_RULE), "", "Cache-Control: max-age=60",
      STORABLE_RULE, LIFETIME_MAX_AGE, 60, "bypass" },
    { EFFECTS(NONE, NONE, NONE, NONE, .unstored_by = A_RULE), "", "Cache-Control: max-age=60",
      STORABLE_RULE, LIFETIME_MAX_AGE, 60, "no_store" },
};

static void test_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ruled); i++) {
        struct row r;
        judge(&r, &plain, &ruled[i].effects, 200, ruled[i].request, ruled[i].response);
        ROW_CHECK(ruled[i].response, r.out.storable, ruled[i].storable);
        ROW_CHECK(ruled[i].response, r.out.freshness.source, ruled[i].source);
        ROW_CHECK(ruled[i].response, r.out.freshness.lifetime_s, ruled[i].lifetime);
    }
}

/* A real rule's default_ttl, by status, before the configuration's. */
static void test_default_ttl_of_a_rule(void **state)
{
    (void)state;
    struct config_mistakes mistakes;
    struct config *c = config_load_text("t",
                                        SLICE("origins: { o: { root: / } }\n"
                                              "cache: { default_ttl: { 200: 5m, 404: 10s } }\n"
                                              "sites:\n"
                                              "  - hosts: [ \"*\" ]\n"
                                              "    origin: o\n"
                                              "    rules:\n"
                                              "      - match: { path: \"/a/**\" }\n"
                                              "        cache: { default_ttl: { 404: 7s } }\n"),
                                        &mistakes);
    for (size_t i = 0; i < mistakes.count; i++)
        print_error("%s\n", mistakes.lines[i]);
    assert_non_null(c);
    struct headers none = { 0 };
    static const struct {
        struct slice path;
        uint16_t status;
        int32_t lifetime_s;
    } asked[] = { { SLICE_INIT("/a/b"), 404, 7 },
                  { SLICE_INIT("/a/b"), 200, 300 },
                  { SLICE_INIT("/b"), 404, 10 } };
    for (size_t i = 0; i < ARRAY_COUNT(asked); i++) {
        struct rule_request request = {
            .method = SLICE("GET"), .scheme = SLICE("http"), .path = asked[i].path, .headers = &none
        };
        struct rule_effects effects;
        struct row r;
        rules_on_request(&c->sites[0], &request, &effects);
        judge(&r, c, &effects, asked[i].status, "", "");
        assert_int_equal(r.out.freshness.source, LIFETIME_DEFAULT);
        assert_int_equal(r.out.freshness.lifetime_s, asked[i].lifetime_s);
    }
    config_mistakes_free(&mistakes);
    config_unref(&c);
}

/* ---- the clocks ------------------------------------------------------------------------------ */

static const struct {
    const struct config *config;
    struct rule_effects effects;
    const char *response;
    int32_t behind, error, unreachable, keep;
    const char *why;
} clocks[] = {
    { &plain, NO_EFFECTS, "max-age=60", 0, 0, 86400, MAX, "the defaults" },
    { &with_ttls, NO_EFFECTS, "max-age=60", 1, 2, 3, 1003, "the configuration's" },
    { &with_ttls, EFFECTS(NONE, NONE, NONE, 50, .ignores = 0), "max-age=60", 1, 2, 3, 53,
      "a rule's keep" },
    { &with_ttls, EFFECTS(NONE, 7, 8, NONE, .ignores = 0), "max-age=60", 7, 8, 3, 1008,
      "a rule's" },
    { &with_ttls, EFFECTS(NONE, NONE, 8, NONE, .ignores = 0), "max-age=60, stale-if-error=9", 1, 9,
      3, 1009, "the answer's own" },
    { &with_ttls, NO_EFFECTS, "max-age=60, must-revalidate", 0, 0, 0, 1000, "RFC 9111 5.2.2.2" },
    { &with_ttls, NO_EFFECTS, "s-maxage=60", 0, 0, 0, 1000, "RFC 9111 5.2.2.10" },
    { &with_ttls, EFFECTS(NONE, NONE, 8, NONE, .ignores = 0), "max-age=60, must-revalidate", 0, 8,
      0, 1008, "a rule's alone, loudly" },
    { &with_ttls, EFFECTS(NONE, 8, NONE, NONE, .ignores = 0), "s-maxage=60, stale-if-error=99", 8,
      0, 0, 1008, "a rule's alone, loudly" },
    { &with_ttls, EFFECTS(NONE, NONE, 0, NONE, .ignores = 0), "max-age=60", 1, 0, 3, 1003,
      "a rule's none" },
    { &huge, NO_EFFECTS, "max-age=60", MAX, MAX, MAX, MAX, "saturated" },
};

static void test_clocks(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(clocks); i++) {
        struct row r;
        char fields[256];
        snprintf(fields, sizeof fields, "Cache-Control: %s", clocks[i].response);
        judge(&r, clocks[i].config, &clocks[i].effects, 200, "", fields);
        const struct freshness *f = &r.out.freshness;
        ROW_CHECK(clocks[i].response, f->stale_while_revalidate_s, clocks[i].behind);
        ROW_CHECK(clocks[i].response, f->stale_if_error_s, clocks[i].error);
        ROW_CHECK(clocks[i].response, f->stale_if_unreachable_s, clocks[i].unreachable);
        ROW_CHECK(clocks[i].response, f->keep_s, clocks[i].keep);
    }
}

static void test_targeted_s_maxage_forbids_stale(void **state)
{
    (void)state;
    struct row r;
    judge(&r, &plain, NULL, 200, "", "CDN-Cache-Control: s-maxage=60");
    assert_true(r.out.freshness.must_revalidate); /* RFC 9213 2.2: it means the same there */
    assert_int_equal(r.out.freshness.stale_if_unreachable_s, 0);
    judge(&r, &plain, NULL, 200, "", "CDN-Cache-Control: max-age=60\nCache-Control: s-maxage=60");
    assert_false(r.out.freshness.must_revalidate);
}

static void test_other_methods(void **state)
{
    (void)state;
    struct row r;
    judge(&r, &plain, NULL, 200, "", "Cache-Control: max-age=60");
    r.in.is_get = false;
    cache_judge(&r.in, &r.out);
    assert_int_equal(r.out.storable, STORABLE_METHOD);
}

static void test_validators_and_client(void **state)
{
    (void)state;
    struct row r;
    const char *answer = "Cache-Control: max-age=60\nETag: \"a\"\nLast-Modified: " LAST_WEEK;
    judge(&r, &honouring, NULL, 200, "Pragma: no-cache", answer);
    assert_true(slice_equal(r.out.validators.etag, SLICE("\"a\"")));
    assert_int_equal(r.out.validators.last_modified_s, NOW - WEEK);
    assert_true(r.out.request_control.no_cache);
    judge(&r, &plain, NULL, 200, "Pragma: no-cache", answer);
    assert_false(r.out.request_control.no_cache);
    assert_int_equal(r.out.request_control.max_stale_s, CONTROL_NONE);
}

/* ---- fields ---------------------------------------------------------------------------------- */

static const struct config tagging = { .sends_tags = true };

static const struct {
    const struct config *config;
    struct rule_effects effects;
    uint16_t status;
    const char *response; /* the first field is asked about */
    enum field_goes goes;
    const char *section;
} fields[] = {
    { &plain, NO_EFFECTS, 200, "X: y", FIELD_STORED, "RFC 9111 3.1" },
    { &plain, NO_EFFECTS, 200, "Cache-Control: max-age=1", FIELD_STORED, "3.1" },
    { &plain, NO_EFFECTS, 200, "CDN-Cache-Control: max-age=1", FIELD_STORED,
      "RFC 9213 3 other CDNs behind us" },
    { &plain, NO_EFFECTS, 200, "Content-Encoding: gzip", FIELD_STORED, "3.1" },
    { &plain, NO_EFFECTS, 200, "Content-MD5: x", FIELD_STORED, "3.1" },
    { &plain, NO_EFFECTS, 200, "Set-Cookie2: x", FIELD_STORED, "3.1" },
    { &plain, NO_EFFECTS, 200, "Cache-Groups: \"a\"", FIELD_STORED, "RFC 9875 other caches" },
    { &plain, NO_EFFECTS, 200, "Warning: 110", FIELD_STORED, "5.5 obsolete" },
    /* of this connection only */
    { &plain, NO_EFFECTS, 200, "Connection: x", FIELD_NOWHERE, "RFC 9110 7.6.1" },
    { &plain, NO_EFFECTS, 200, "Keep-Alive: x", FIELD_NOWHERE, "RFC 9110 7.6.1" },
    { &plain, NO_EFFECTS, 200, "Transfer-Encoding: chunked", FIELD_NOWHERE, "RFC 9110 7.6.1" },
    { &plain, NO_EFFECTS, 200, "TE: x", FIELD_NOWHERE, "RFC 9110 7.6.1" },
    { &plain, NO_EFFECTS, 200, "Upgrade: x", FIELD_NOWHERE, "RFC 9110 7.6.1" },
    { &plain, NO_EFFECTS, 200, "Proxy-Connection: x", FIELD_NOWHERE, "RFC 9110 7.6.1" },
    { &plain, NO_EFFECTS, 200, "Proxy-Authenticate: x", FIELD_NOWHERE, "3.1" },
    { &plain, NO_EFFECTS, 200, "Proxy-Authentication-Info: x", FIELD_NOWHERE, "3.1" },
    { &plain, NO_EFFECTS, 200, "Proxy-Authorization: x", FIELD_NOWHERE, "3.1" },
    { &plain, NO_EFFECTS, 200, "a: 1\nConnection: b, A", FIELD_NOWHERE,
      "RFC 9110 7.6.1 nominated" },
    { &plain, NO_EFFECTS, 200, "c: 1\nConnection: b, A", FIELD_STORED,
      "RFC 9110 7.6.1 not nominated" },
    /* written anew */
    { &plain, NO_EFFECTS, 200, "Age: 5", FIELD_NOWHERE, "RFC 9111 4" },
    { &plain, NO_EFFECTS, 200, "Content-Length: 5", FIELD_NOWHERE, "framing" },
    /* ours to take off */
    { &plain, NO_EFFECTS, 200, "Surrogate-Control: max-age=5", FIELD_NOWHERE, "for surrogates" },
    { &tagging, NO_EFFECTS, 200, "Surrogate-Control: max-age=5", FIELD_NOWHERE, "for surrogates" },
    { &plain, NO_EFFECTS, 200, "Cache-Tag: a", FIELD_NOWHERE, "not for clients" },
    { &plain, NO_EFFECTS, 200, "surrogate-key: a", FIELD_NOWHERE, "not for clients" },
    { &plain, NO_EFFECTS, 200, "xkey: a", FIELD_NOWHERE, "not for clients" },
    { &tagging, NO_EFFECTS, 200, "Cache-Tag: a", FIELD_STORED, "cache.send_tags" },
    /* for the one who asked */
    { &plain, NO_EFFECTS, 200, "a: 1\nCache-Control: private=\"A, b\"", FIELD_ONLY_ASKER,
      "RFC 9111 5.2.2.7" },
    { &plain, NO_EFFECTS, 200, "a: 1\nCache-Control: no-cache=\"A, b\"", FIELD_ONLY_ASKER,
      "RFC 9111 5.2.2.4" },
    { &plain, NO_EFFECTS, 200, "c: 1\nCache-Control: no-cache=\"A, b\"", FIELD_STORED,
      "RFC 9111 5.2.2.4" },
    { &plain, NO_EFFECTS, 200, "a: 1\nCDN-Cache-Control: private=\"a\"", FIELD_ONLY_ASKER,
      "RFC 9213 2.2" },
    { &plain, NO_EFFECTS, 200, "a: 1\nCDN-Cache-Control: max-age=5\nCache-Control: private=\"a\"",
      FIELD_STORED, "RFC 9213 2.2 the other is ignored" },
    { &plain, IGNORE(IGNORE_CACHE_CONTROL), 200, "a: 1\nCache-Control: private=\"a\"", FIELD_STORED,
      "a rule ignores it" },
    { &plain, IGNORE(IGNORE_SET_COOKIE), 200, "Set-Cookie: a=b", FIELD_ONLY_ASKER,
      "a rule ignores it: nobody gets another's" },
    { &plain, NO_EFFECTS, 200, "Set-Cookie: a=b\nCache-Control: no-cache=\"set-cookie\"",
      FIELD_ONLY_ASKER, "RFC 9111 5.2.2.4" },
    { &plain, NO_EFFECTS, 200, "Set-Cookie: a=b", FIELD_STORED,
      "RFC 9111 3.1 if it is stored at all" },
    { &plain, IGNORE(IGNORE_SET_COOKIE), 200, "X: y", FIELD_STORED, "" },
    /* Content-Range */
    { &plain, NO_EFFECTS, 200, "Content-Range: x", FIELD_STORED,
      "RFC 9110 14.4 without a meaning" },
    { &plain, NO_EFFECTS, 206, "Content-Range: bytes 0-1/9", FIELD_STORED,
      "RFC 9110 14.4 whoever cuts parts writes it anew" },
};

static void test_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        struct row r;
        judge(&r, fields[i].config, &fields[i].effects, fields[i].status, "", fields[i].response);
        ROW_CHECK(fields[i].response, cache_field_goes(&r.in, &r.out, &r.response.list.at[0]),
                  fields[i].goes);
        assert_non_null(fields[i].section);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_default_ttl_of_a_rule),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_targeted_s_maxage_forbids_stale),
        cmocka_unit_test(test_other_methods),
        cmocka_unit_test(test_validators_and_client),
        cmocka_unit_test(test_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
