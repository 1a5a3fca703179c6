/* tests/fuzz/fuzz_rules.c: hostile requests and answers against rules of every kind: which match,
 * what they make of the request, its key, path and answer. Nothing that comes out may hold what no
 * head or request line can.
 *
 * The input is lines: the first is the path and query, the rest are fields of the request, and
 * behind an empty line those of the answer, whose status is the first digit's class.
 */
#include "config/config.h"
#include "config/rules.h"

#include <stdlib.h>

static const char yaml[] =
    "origins: { app: { servers: \"http://a:80\" }, files: { servers: \"http://b:80\" } }\n"
    "sites:\n"
    "- hosts: \"*\"\n"
    "  origin: app\n"
    "  presets: [ wordpress, woocommerce, drupal, magento, static, aspnet ]\n"
    "  rules:\n"
    "  - { match: { path: \"**a*b**/c*d**\" }, tags: [ a, \"x-$path\" ] }\n"
    "  - { match: { path: [ \"/*/*\", \"/Q/**\" ], ignore_case: true }, key: { ignore: [ \"u*_*\", "
    "\"*x*y*\" ], sort: true } }\n"
    "  - { match: { path_regex: \"^/(a+)+(.*)$\" }, rewrite: { path: \"/new/$2\", query: "
    "\"$args&a=$1\" }, tags: \"r-$1-$2\" }\n"
    "  - { match: { query: { \"*a\": { regex: \"(b|c)+\" }, z: false } }, key: { keep: [ id, "
    "page_id, \"*[]\" ] } }\n"
    "  - { match: { cookies: { \"s*\": \"*1*\" } }, cookies: { drop: [ \"s*\", \"*a\" ] }, key: { "
    "cookies: [ lang, s ] } }\n"
    "  - { match: { fields: { User-Agent: \"*M*b*\" } }, cookies: { keep: [ lang ] } }\n"
    "  - { request: { set: { X-A: \"$host$path$query$args\", Accept: [ a, b ] }, append: { X-B: "
    "\"$method\" }, remove: [ \"x-c*\", Cookie2 ] } }\n"
    "  - { response: { set: { X-D: d }, append: { X-E: e }, remove: [ \"x-*\", Server ] }, key: { "
    "fields: [ X-A, Accept ] } }\n"
    "  - { match: { status: [ 404, 5xx ], response_fields: { \"X-*\": \"*a*\" } }, cache: { ttl: "
    "1s }, tags: \"w-$path\" }\n"
    "  - { match: { not: { response_fields: [ A, B ] } }, cache: no_store }\n"
    "  - { match: { path: \"/r/**\", path_regex: \"^/r/(.*)$\" }, redirect: { to: "
    "\"$scheme://$host/$1$query\" } }\n"
    "  - { match: { path_regex: \"^(.*)/s$\" }, redirect: { to: \"$1\" } }\n"
    "  - { match: { path: \"/d*\", query: [ d ] }, deny: true }\n"
    "  - { match: { host: \"a*.b*\", client: 10.0.0.0/8, scheme: https }, origin: files }\n";

enum { FIELDS_MAX = 64 };

static const struct config_site *site(void)
{
    static struct config *c;
    struct config_mistakes mistakes;
    if (c == NULL)
        c = config_load_text("fuzz", slice_of(yaml), &mistakes);
    CHECK(c != NULL);
    return &c->sites[0];
}

static struct slice take_line(struct slice *rest)
{
    size_t end = slice_find(*rest, '\n');
    struct slice line = { rest->ptr, end };
    size_t taken = end < rest->len ? end + 1 : end;
    *rest = (struct slice){ rest->ptr + taken, rest->len - taken };
    return line;
}

static bool is_clean(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '\r' || text.ptr[i] == '\n' || text.ptr[i] == '\0')
            return false;
    return true;
}

/* What the reader of heads lets through: lines with a name, without control characters. */
static void take_fields(struct slice *rest, struct headers *h)
{
    while (rest->len > 0) {
        struct slice line = take_line(rest);
        size_t colon = slice_find(line, ':');
        if (line.len == 0)
            return;
        struct slice value = { line.ptr + colon, line.len - colon };
        if (value.len > 0)
            value = slice_trim((struct slice){ value.ptr + 1, value.len - 1 });
        if (colon > 0 && is_clean(line) && h->count < h->capacity)
            CHECK(headers_add(h, (struct slice){ line.ptr, colon }, value));
    }
}

static void check_request(const struct rule_effects *e, const struct rule_request *r,
                          struct headers *h, struct arena *a)
{
    struct slice path, query;
    if (rules_rewrite(e, r, a, &path, &query)) {
        CHECK(path.len > 0 && path.ptr[0] == '/' && is_clean(path) && is_clean(query));
        CHECK(slice_find(path, ' ') == path.len && slice_find(path, '?') == path.len &&
              slice_find(query, ' ') == query.len);
    }
    char *out = arena_alloc(a, r->query.len);
    bool has_query;
    size_t len = rules_key_query(e, r->query, out, &has_query, NULL, NULL);
    CHECK(len <= r->query.len && (has_query || len == 0));
    char *again = arena_alloc(a, len);
    bool has_again;
    if (has_query) /* what is left is left as it is */
        CHECK(rules_key_query(e, (struct slice){ out, len }, again, &has_again, NULL, NULL) ==
                  len &&
              memcmp(out, again, len) == 0);
    size_t extra = rules_key_extra(e, r, NULL, 0);
    CHECK(rules_key_extra(e, r, arena_alloc(a, extra), extra) == extra);
    if (rules_edit_request(e, r, h, a))
        for (uint16_t i = 0; i < h->count; i++)
            CHECK(is_clean(h->at[i].name) && is_clean(h->at[i].value) &&
                  h->at[i].id == header_id_of(h->at[i].name));
}

static void check_answer(const struct rule_effects *e, const struct rule_request *r,
                         struct arena *a)
{
    struct rule_answer answer;
    struct slice tags = rules_tags(e, a), lines = rules_response_lines(e, a);
    CHECK(tags.len == 0 || tags.ptr[tags.len - 1] == '\0');
    for (size_t i = 0; i < tags.len; i++)
        CHECK(tags.ptr[i] == '\0' ||
              (tags.ptr[i] > ' ' && tags.ptr[i] <= '~' && tags.ptr[i] != ','));
    CHECK(lines.len == 0 || slice_has_suffix(lines, SLICE("\r\n")));
    CHECK(!rules_drops_response_field(e, SLICE("Content-Length")));
    if (e->end == RULE_GO_ON)
        return;
    rules_answer(e, r, a, &answer);
    CHECK(answer.status >= 200 && answer.status <= 599 && is_clean(answer.location));
    for (size_t i = 0; i < answer.location.len; i++)
        CHECK(answer.location.ptr[i] > ' ' && answer.location.ptr[i] <= '~');
    CHECK(!slice_has_prefix(answer.location, SLICE("//")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = { (const char *)data, size }, target = take_line(&rest);
    struct header storage[FIELDS_MAX + 8], answer_storage[FIELDS_MAX];
    struct headers h, answer;
    struct peer peer = { .bytes = { [10] = 0xff, [11] = 0xff, [12] = 10 } };
    struct arena a;
    if (size > 16384 || target.len == 0 || !is_clean(target))
        return 0;
    size_t mark = slice_find(target, '?');
    headers_init(&h, storage, FIELDS_MAX + 8);
    headers_init(&answer, answer_storage, FIELDS_MAX);
    h.capacity = FIELDS_MAX;
    take_fields(&rest, &h);
    h.capacity = FIELDS_MAX + 8;
    struct rule_response response = { 200, &answer };
    if (rest.len > 0 && rest.ptr[0] >= '2' && rest.ptr[0] <= '5')
        response.status = (uint16_t)((rest.ptr[0] - '0') * 100 + 4);
    take_fields(&rest, &answer);
    struct rule_request request = {
        .method = size % 3 == 0   ? SLICE("GET")
                  : size % 3 == 1 ? SLICE("HEAD")
                                  : SLICE("REPORT"),
        .scheme = size % 2 == 0 ? SLICE("http") : SLICE("https"),
        .host = SLICE("abc.bcd"),
        .path = { target.ptr, mark },
        .query = mark == target.len
                     ? SLICE_NONE
                     : (struct slice){ target.ptr + mark + 1, target.len - mark - 1 },
        .headers = &h,
        .client = size % 5 == 0 ? NULL : &peer,
    };
    struct rule_effects effects;
    arena_init(&a);
    rules_on_request(site(), &request, &effects);
    check_request(&effects, &request, &h, &a);
    check_answer(&effects, &request, &a);
    rules_on_response(&request, &response, &effects);
    check_answer(&effects, &request, &a);
    response.status = 503;
    rules_on_response(&request, &response, &effects);
    check_answer(&effects, &request, &a);
    arena_fini(&a);
    return 0;
}
