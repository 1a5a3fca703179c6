/* tests/fuzz/fuzz_decide.c: any fields into every decision of cache/decide.h, and what must then be
 * true.
 *
 * Input: the request's fields, one a line, "Name: value"; a line "="; the response's; then, after
 * another "=", a third request's, which is compared with the variant of the first. As the reader
 * does, lines with bytes that no field can have are left out, and values lose the white space at
 * their ends.
 */
#include "base/dates.h"
#include "cache/decide.h"

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

static void check_freshness(const struct headers *response, uint16_t status,
                            const struct cache_control *control,
                            const struct cache_control *request, struct freshness *f)
{
    static const struct freshness_policy policy = { true, 86400, CONTROL_NONE };
    static const struct response_times times = { NOW, 1 };
    cache_freshness_read(response, status, control, &times, &policy, f);
    CHECK(f->lifetime_s >= 0 && f->initial_age_s >= times.delay_s);
    CHECK(f->source != LIFETIME_NONE || f->lifetime_s == 0);
    CHECK(f->source != LIFETIME_HEURISTIC || f->lifetime_s <= policy.heuristic_max_s);
    int32_t before = -1;
    bool was_expired = false;
    for (int64_t resident_ms = -1000; resident_ms < INT64_MAX / 8;
         resident_ms = resident_ms * 8 + 9500) {
        int32_t age = cache_age_s(f, 0, resident_ms);
        CHECK(age >= f->initial_age_s && age >= before);
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
    const struct storable_facts facts = { request, response, request_control, control, f,
                                          status,  true };
    enum storable verdict = cache_is_storable(&facts);
    CHECK(storable_word(verdict) != NULL);
    if (verdict != STORABLE_YES)
        return;
    CHECK(!control->is_private && !request_control->no_store);
    CHECK(!control->no_store || control->must_understand);
    CHECK(!headers_has(response, HEADER_SET_COOKIE) && !cache_vary_is_all(response));
    CHECK(!headers_has(request, HEADER_AUTHORIZATION) || control->is_public ||
          control->must_revalidate || control->s_maxage_s != CONTROL_NONE);
    CHECK(status >= 200 && status <= 599 && status != 206 && status != 304);
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
        check_freshness(response, statuses[i], &control, &request_control, &f);
        check_storable(request, response, statuses[i], &request_control, &control, &f);
    }
    check_vary(request, response, &lists[2].headers);
    check_codings(request, response);
    check_conditional(request, response);
    check_dates(request);
    check_dates(response);
    check_key(request);
    return 0;
}
