/* tests/fuzz/fuzz_decide.c: any fields into every decision of cache/decide.h, and what must then be
 * true.
 *
 * Input: the request's fields, one a line, "Name: value"; a line "="; the response's; then, after
 * another "=", a third request's, which is compared with the variant of the first. As the reader
 * does, lines with bytes that no field can have are left out, and values lose the white space at
 * their ends.
 */
#include "base/dates.h"
#include "cache/policy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { NOW = 1750000000, LISTS = 3, FIELDS = 100 };

struct list {
    struct header storage[FIELDS];
    struct headers headers;
};

static bool is_field_text(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (((unsigned char)s.ptr[i] < 0x20 && s.ptr[i] != '\t') || s.ptr[i] == 0x7f)
            return false;
    return true;
}

static void add_line(struct headers *h, struct slice line)
{
    size_t colon = slice_find(line, ':');
    if (colon == 0 || colon == line.len || !is_field_text(line))
        return;
    struct slice value = slice_trim((struct slice){ line.ptr + colon + 1, line.len - colon - 1 });
    (void)!headers_add(h, (struct slice){ line.ptr, colon }, value);
}

static void read_lists(struct slice in, struct list lists[LISTS])
{
    for (int i = 0; i < LISTS; i++)
        headers_init(&lists[i].headers, lists[i].storage, FIELDS);
    for (int at = 0; in.len > 0;) {
        size_t len = slice_find(in, '\n');
        struct slice line = { in.ptr, len };
        if (slice_equal(line, SLICE("=")))
            at = at < LISTS - 1 ? at + 1 : at;
        else
            add_line(&lists[at].headers, line);
        size_t taken = len < in.len ? len + 1 : len;
        in.ptr += taken;
        in.len -= taken;
    }
}

static void check_seconds(int32_t seconds)
{
    CHECK(seconds >= CONTROL_NONE);
}

static void check_control(const struct headers *h, struct cache_control *c)
{
    cache_control_read_request(h, c);
    check_seconds(c->max_age_s);
    check_seconds(c->s_maxage_s);
    check_seconds(c->max_stale_s);
    check_seconds(c->min_fresh_s);
    check_seconds(c->stale_while_revalidate_s);
    check_seconds(c->stale_if_error_s);
    cache_control_read(h, HEADER_CACHE_CONTROL, c);
}

static const struct response_times times = { .now_wall_s = NOW, .delay_s = 1 };

static const struct freshness_policy policies[] = {
    { .has_heuristic = true, .heuristic_max_s = 86400, .default_ttl_s = CONTROL_NONE },
    { .default_ttl_s = 300,
      .stale_while_revalidate_s = 10,
      .stale_if_error_s = 20,
      .stale_if_unreachable_s = 30,
      .keep_s = 1000 },
    { .default_ttl_s = CONTROL_NONE,
      .has_ttl = true,
      .ttl_s = 60,
      .stale_if_error_s = INT32_MAX,
      .keep_s = INT32_MAX,
      .overrides_revalidate = true,
      .ignores_expires = true },
};

/* What may be given stale now could be given stale before; nothing is given that was forbidden. */
static void check_stale(const struct freshness *f, int32_t before, int32_t age,
                        const struct cache_control *request)
{
    bool forbids = f->must_ask || (f->must_revalidate && !f->stale_by_rule);
    bool behind = cache_may_refresh_behind(f, age);
    CHECK(!behind || (age >= f->lifetime_s && !forbids));
    for (enum stale_cause why = STALE_UNREACHABLE; why <= STALE_ERROR; why++) {
        bool may = cache_may_serve_broken(f, age, why, NULL);
        CHECK(!may || age < f->lifetime_s || !forbids);
        CHECK(!may || cache_may_serve_broken(f, before, why, NULL));
        CHECK(!may || cache_may_serve_broken(f, age, why, request));
        CHECK(!may || cache_is_kept(f, age));
    }
    CHECK(!cache_may_serve_broken(f, age, STALE_ERROR, NULL) ||
          cache_may_serve_broken(f, age, STALE_UNREACHABLE, NULL));
    CHECK(!behind || cache_is_kept(f, age));
}

static void check_lifetime(const struct freshness *f, const struct freshness_policy *policy)
{
    CHECK(f->lifetime_s >= 0 && f->initial_age_s >= times.delay_s);
    CHECK(f->initial_age_s >= f->apparent_age_s && f->initial_age_s >= f->age_value_s);
    CHECK(f->source != LIFETIME_NONE || f->lifetime_s == 0);
    CHECK(f->source != LIFETIME_HEURISTIC || f->lifetime_s <= policy->heuristic_max_s);
    CHECK((f->source == LIFETIME_RULE) == policy->has_ttl);
    CHECK(f->stale_while_revalidate_s >= 0 && f->stale_if_error_s >= 0);
    CHECK(f->stale_if_unreachable_s >= 0 && f->keep_s >= policy->keep_s);
    CHECK(lifetime_word(f->source) != NULL);
}

static void check_freshness(const struct headers *response, uint16_t status,
                            const struct cache_control *control,
                            const struct cache_control *request,
                            const struct freshness_policy *policy, struct freshness *f)
{
    cache_freshness_read(response, status, control, &times, policy, f);
    check_lifetime(f, policy);
    int32_t before = -1;
    bool was_expired = false;
    for (int64_t resident_ms = -1000; resident_ms < INT64_MAX / 8;
         resident_ms = resident_ms * 8 + 9500) {
        int32_t age = cache_age_s(f, 0, resident_ms);
        CHECK(age >= f->initial_age_s && age >= before);
        check_stale(f, before, age, request);
        before = age;
        enum fresh_verdict verdict = cache_is_fresh(f, age, NULL);
        CHECK(verdict != FRESH_YES || (age < f->lifetime_s && !was_expired && !control->no_cache));
        was_expired = verdict == FRESH_EXPIRED;
        CHECK(verdict == FRESH_YES || cache_is_fresh(f, age, request) != FRESH_YES ||
              !f->must_revalidate);
    }
}

static void check_storable(const struct headers *request, const struct headers *response,
                           uint16_t status, const struct cache_control *request_control,
                           const struct cache_control *control, const struct freshness *f)
{
    const struct storable_facts facts = { .request = request,
                                          .response = response,
                                          .request_control = request_control,
                                          .response_control = control,
                                          .freshness = f,
                                          .status = status,
                                          .is_get = true };
    enum storable verdict = cache_is_storable(&facts);
    CHECK(storable_word(verdict) != NULL && storable_text(verdict) != NULL);
    if (verdict != STORABLE_YES)
        return;
    CHECK(!control->is_private && !request_control->no_store);
    CHECK(!control->no_store || control->must_understand);
    CHECK(!headers_has(response, HEADER_SET_COOKIE) && !cache_vary_is_all(response));
    CHECK(!headers_has(request, HEADER_AUTHORIZATION) || control->is_public ||
          control->must_revalidate || control->s_maxage_s != CONTROL_NONE);
    CHECK(status >= 200 && status <= 599 && status != 206 && status != 304);
}

/* Each field goes to one place, and what is one user's is never stored for others. */
static void check_fields(const struct judge_request *in, const struct judgement *j)
{
    for (unsigned i = 0; i < in->response->count; i++) {
        const struct header *f = &in->response->at[i];
        enum field_goes goes = cache_field_goes(in, j, f);
        CHECK(goes != FIELD_STORED || !header_is_hop_by_hop(f->id));
        CHECK(goes != FIELD_STORED || f->id != HEADER_SET_COOKIE || !j->drops_set_cookie);
        CHECK(goes != FIELD_STORED || j->control_source != CONTROL_FROM_CACHE_CONTROL ||
              !cache_control_names(in->response, f->name));
    }
}

static void check_judge(const struct headers *request, const struct headers *response,
                        uint16_t status)
{
    static char *targeted[] = { (char *)"CDN-Cache-Control", NULL };
    const struct config config = { .has_heuristic = true,
                                   .heuristic_max_s = 86400,
                                   .targeted = targeted,
                                   .honours_client = true,
                                   .stale_if_unreachable_s = 86400 };
    const struct judge_request in = { .config = &config,
                                      .request = request,
                                      .response = response,
                                      .status = status,
                                      .is_get = true,
                                      .wants_part = headers_has(request, HEADER_RANGE),
                                      .times = times };
    struct judgement out;
    cache_judge(&in, &out);
    CHECK((out.control_source == CONTROL_FROM_NOTHING) == (out.control_field == NULL));
    CHECK(out.storable != STORABLE_YES || status != 206 || out.validators.etag.len > 0 ||
          out.validators.last_modified_s >= 0);
    CHECK(out.storable != STORABLE_YES || !headers_has(response, HEADER_SET_COOKIE) ||
          out.drops_set_cookie);
    check_fields(&in, &out);
}

/* The request that the stored values themselves would be: the form of a form is itself. */
static void check_form_of_form(struct arena *a, const struct headers *response,
                               struct slice selecting)
{
    struct list again;
    headers_init(&again.headers, again.storage, FIELDS);
    for (struct slice rest = selecting; rest.len > 0;) {
        size_t name_len = slice_find(rest, '\0');
        struct slice value = { rest.ptr + name_len + 1, rest.len - name_len - 1 };
        value.len = slice_find(value, '\0');
        CHECK(value.len > 0);
        struct slice text = { value.ptr + 1, value.len - 1 };
        if (slice_trim(text).len != text.len)
            return; /* an empty line was joined: no request has such a value in one line */
        if (value.ptr[0] == '=' &&
            !headers_add(&again.headers, (struct slice){ rest.ptr, name_len }, text))
            return;
        rest = slice_from(value.ptr + value.len + 1, rest.ptr + rest.len);
    }
    CHECK(slice_equal(cache_vary_make(a, response, &again.headers), selecting));
    CHECK(cache_vary_matches(selecting, &again.headers));
}

static void check_vary(const struct headers *request, const struct headers *response,
                       const struct headers *other)
{
    struct arena a;
    arena_init(&a);
    struct slice selecting = cache_vary_make(&a, response, request);
    bool is_all = cache_vary_is_all(response);
    CHECK(cache_vary_matches(selecting, request) == !is_all);
    if (is_all) {
        CHECK(!cache_vary_matches(selecting, other));
    } else {
        check_form_of_form(&a, response, selecting);
        bool is_same = slice_equal(cache_vary_make(&a, response, other), selecting);
        CHECK(cache_vary_matches(selecting, other) == is_same);
    }
    arena_fini(&a);
}

static void check_codings(const struct headers *request, const struct headers *response)
{
    unsigned codings = cache_codings_accepted(request);
    CHECK(codings < 16);
    if (!headers_has(request, HEADER_ACCEPT_ENCODING))
        CHECK(codings == 0);
    else
        CHECK(cache_coding_is_acceptable(SLICE("gzip"), request) == ((codings & CODING_GZIP) != 0));
    (void)cache_coding_is_acceptable(headers_value(response, HEADER_CONTENT_ENCODING), request);
}

static void check_ranges(const struct headers *request, const struct validators *v, uint64_t length)
{
    struct ranges r;
    enum range_verdict verdict = cache_ranges(request, v, length, NOW, &r);
    CHECK((verdict == RANGE_PARTS) == (r.count > 0) && r.count <= RANGES_MAX);
    uint64_t sum = 0;
    for (size_t i = 0; i < r.count; i++) {
        CHECK(r.at[i].first <= r.at[i].last && r.at[i].last < length);
        sum += r.at[i].last - r.at[i].first + 1;
    }
    CHECK(sum <= length);
}

static void check_conditional(const struct headers *request, const struct headers *response)
{
    struct validators v;
    cache_validators_read(response, NOW, &v);
    CHECK(v.last_modified_s >= -1 && v.date_s >= -1);
    enum conditional verdict = cache_conditional(request, &v, NOW);
    CHECK(verdict != CONDITIONAL_FAILED);
    if (!headers_has(request, HEADER_IF_NONE_MATCH) &&
        !headers_has(request, HEADER_IF_MODIFIED_SINCE))
        CHECK(verdict == CONDITIONAL_NONE);
    static const uint64_t lengths[] = { 0, 1, 100, 5000000, UINT64_MAX };
    for (size_t i = 0; i < ARRAY_COUNT(lengths); i++)
        check_ranges(request, &v, lengths[i]);
}

/* What reads as a date and is within what can be written reads back the same. */
static void check_dates(const struct headers *h)
{
    for (unsigned i = 0; i < h->count; i++) {
        int64_t seconds, again;
        char text[DATE_LENGTH];
        if (!date_parse(h->at[i].value, NOW, &seconds) || seconds < 0)
            continue;
        date_format(seconds, text);
        CHECK(date_parse((struct slice){ text, sizeof text }, NOW, &again) &&
              (again == seconds || seconds > 253402300799));
    }
}

static void check_key(const struct headers *request)
{
    char key[256];
    struct key_parts parts = { .site = SLICE("s"),
                               .host = headers_value(request, HEADER_HOST),
                               .port = (uint16_t)request->count,
                               .path = headers_value(request, HEADER_REFERER),
                               .query = headers_value(request, HEADER_ORIGIN) };
    size_t length = cache_key_write(&parts, key, sizeof key);
    CHECK(length <= sizeof key);
    CHECK(length == 0 || slice_has_prefix((struct slice){ key, length }, SLICE("s\0")));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const uint16_t statuses[] = { 100, 200, 204, 206, 302, 304, 404, 503, 599, 700 };
    struct list lists[LISTS];
    struct cache_control request_control, control;
    read_lists((struct slice){ (const char *)bytes, len }, lists);
    const struct headers *request = &lists[0].headers, *response = &lists[1].headers;
    check_control(request, &request_control);
    check_control(response, &control);
    for (size_t i = 0; i < ARRAY_COUNT(statuses); i++) {
        struct freshness f;
        for (size_t p = 0; p < ARRAY_COUNT(policies); p++) {
            check_freshness(response, statuses[i], &control, &request_control, &policies[p], &f);
            check_storable(request, response, statuses[i], &request_control, &control, &f);
        }
        check_judge(request, response, statuses[i]);
    }
    check_vary(request, response, &lists[2].headers);
    check_codings(request, response);
    check_conditional(request, response);
    check_dates(request);
    check_dates(response);
    check_key(request);
    return 0;
}
