/* admin/explain_store.c: what is stored under the URL, its clocks as sums, and what a request would
 * find of it. See explain.h.
 *
 * cache_find() would mark what it finds as used; so we look at all that is stored under the URL,
 * and choose as it does: the newest variant that the request selects.
 */
#include "admin/explain.h"

#include "base/clock.h"
#include "base/dates.h"

#include <stdarg.h>
#include <stdio.h>

enum { OBJECTS_MAX = 256, SHOWN_MAX = 32 };

struct found {
    struct cache_object *at[OBJECTS_MAX];
    size_t count, all;
};

/* Under a lock of the store's: only notes them. They stay until the read section ends. */
static void on_object(void *arg, struct cache_object *o)
{
    struct found *f = arg;
    f->all++;
    if (f->count < OBJECTS_MAX)
        f->at[f->count++] = o;
}

/* ---- the clocks ------------------------------------------------------------------------------ */

static void say(json_t *lines, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(json_t *lines, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_array_append_new(lines, json_string(text));
}

static int32_t seconds_since(int64_t then_ms, int64_t now_ms)
{
    return now_ms <= then_ms ? 0 : (int32_t)((now_ms - then_ms) / 1000);
}

/* RFC 9111 4.2.3 */
static void say_age(json_t *lines, const struct explain_clocks *c)
{
    const struct freshness *f = c->freshness;
    int32_t age_s = cache_age_s(f, c->received_ms, c->now_ms);
    int32_t here_s = seconds_since(c->received_ms, c->now_ms);
    if (f->initial_age_s == 0)
        say(lines, "age %d = %d in the store + 0 on arrival", age_s, here_s);
    else if (f->apparent_age_s > f->age_value_s + f->delay_s)
        say(lines, "age %d = %d in the store + %d on arrival (now - Date)", age_s, here_s,
            f->apparent_age_s);
    else
        say(lines, "age %d = %d in the store + %d on arrival (Age %d + delay %d)", age_s, here_s,
            f->initial_age_s, f->age_value_s, f->delay_s);
}

static void say_lifetime(json_t *lines, const struct explain_clocks *c)
{
    const struct freshness *f = c->freshness;
    const char *word = lifetime_word(f->source);
    int64_t left_s = (int64_t)f->lifetime_s - c->age_s;
    if (f->must_ask)
        say(lines, "the origin is asked each time: no-cache");
    if (c->outdated_ms != 0)
        say(lines, "made stale by a soft purge %d s ago: counts as age %d",
            seconds_since(c->outdated_ms, c->now_ms), c->age_s);
    else if (f->source == LIFETIME_NONE)
        say(lines, "never fresh: the answer said nothing about how long; kept to be asked about");
    else if (left_s > 0)
        say(lines, "fresh for %lld more of %d s (%s)", (long long)left_s, f->lifetime_s, word);
    else
        say(lines, "stale for %lld s: the lifetime was %d s (%s)", (long long)-left_s,
            f->lifetime_s, word);
}

/* A time that begins where the lifetime ends. */
static void say_stale_until(json_t *lines, const struct explain_clocks *c, int32_t length_s,
                            const char *what)
{
    int64_t until_s = (int64_t)c->freshness->lifetime_s + length_s;
    if (length_s <= 0)
        return;
    if (length_s == CONTROL_MAX_S)
        say(lines, "%s without an end", what);
    else
        say(lines, "%s until age %lld%s", what, (long long)until_s,
            c->age_s >= until_s ? ": that is over" : "");
}

static void say_stale(json_t *lines, const struct explain_clocks *c)
{
    const struct freshness *f = c->freshness;
    if (f->must_ask || (f->must_revalidate && !f->stale_by_rule)) {
        say(lines, "never served stale: %s",
            f->must_ask ? "no-cache" : "must-revalidate, proxy-revalidate or s-maxage");
        return;
    }
    say_stale_until(lines, c, f->stale_while_revalidate_s,
                    "stale-while-revalidate: served while it is refreshed");
    say_stale_until(lines, c, f->stale_if_error_s, "stale-if-error: served when the origin fails");
    say_stale_until(lines, c, f->stale_if_unreachable_s,
                    "stale-if-unreachable: served when the origin gives no answer");
}

json_t *explain_clocks(const struct explain_clocks *c)
{
    json_t *lines = json_array();
    say_age(lines, c);
    say_lifetime(lines, c);
    say_stale(lines, c);
    if (c->is_paused)
        say(lines, "the last try to refresh it failed; the next one waits");
    if (!cache_is_kept(c->freshness, c->age_s))
        say(lines, "no longer kept: it counts as not stored");
    else if (c->freshness->keep_s == CONTROL_MAX_S)
        say(lines, "kept as long as there is room");
    else
        say(lines, "kept until age %lld",
            (long long)c->freshness->lifetime_s + c->freshness->keep_s);
    return lines;
}

/* ---- an object ------------------------------------------------------------------------------- */

static struct explain_clocks clocks_of(const struct explain *e, const struct cache_object *o)
{
    const struct object_facts *facts = cache_object_facts(o);
    return (struct explain_clocks){ .freshness = &facts->freshness,
                                    .received_ms = facts->received_ms,
                                    .now_ms = e->now_ms,
                                    .outdated_ms = cache_object_outdated_ms(o),
                                    .age_s = cache_object_age_s(o, e->now_ms),
                                    .is_paused = cache_object_is_paused(o, e->now_ms) };
}

static void add_numbers(json_t *out, const struct explain_clocks *c)
{
    const struct freshness *f = c->freshness;
    json_object_set_new(out, "age_s", json_integer(c->age_s));
    json_object_set_new(out, "lifetime_s", json_integer(f->lifetime_s));
    json_object_set_new(out, "lifetime_from", json_string(lifetime_word(f->source)));
    json_object_set_new(out, "stale_while_revalidate_s", json_integer(f->stale_while_revalidate_s));
    json_object_set_new(out, "stale_if_error_s", json_integer(f->stale_if_error_s));
    json_object_set_new(out, "stale_if_unreachable_s", json_integer(f->stale_if_unreachable_s));
    json_object_set_new(out, "must_ask", json_boolean(f->must_ask));
    json_object_set_new(out, "must_revalidate", json_boolean(f->must_revalidate));
    json_object_set_new(out, "outdated", json_boolean(c->outdated_ms != 0));
    json_object_set_new(out, "refresh_paused", json_boolean(c->is_paused));
}

/* Tags as the operator wrote them: those of cache groups begin with a mark of ours. */
static json_t *tags_json(struct slice tags)
{
    json_t *out = json_array();
    struct slice tag;
    while (cache_tags_next(&tags, &tag))
        if (tag.len > 0 && tag.ptr[0] != '\1')
            json_array_append_new(out, explain_text(tag));
    return out;
}

static json_t *object_json(struct explain *e, const struct cache_object *o, bool is_selected)
{
    static const char *const states[] = { "filling", "complete", "failed" };
    const struct object_facts *facts = cache_object_facts(o);
    struct explain_clocks c = clocks_of(e, o);
    struct slice key = cache_object_key(o);
    bool is_this_key = slice_equal(key, e->plan.key);
    json_t *out = json_pack("{s:b,s:b,s:s,s:i,s:I}", "selected", is_selected, "same_key",
                            is_this_key, "state", states[cache_object_state(o)], "status",
                            (int)facts->status, "bytes", (json_int_t)cache_object_length(o));
    if (!is_this_key) {
        size_t site = slice_find(key, '\0'), from = site < key.len ? site + 1 : key.len;
        size_t url = slice_find((struct slice){ key.ptr + from, key.len - from }, '\0');
        from = from + url < key.len ? from + url + 1 : key.len;
        json_object_set_new(out, "key_extra",
                            explain_list((struct slice){ key.ptr + from, key.len - from }));
    }
    if (cache_facts_are_sliced(facts)) {
        json_object_set_new(out, "sliced", json_true());
    } else if (facts->status == 206) {
        struct slice part =
            arena_printf(&e->arena, "%llu-%llu of %lld", (unsigned long long)facts->part.first,
                         (unsigned long long)facts->part.last, (long long)facts->part.complete);
        json_object_set_new(out, "part", explain_text(part));
    }
    json_object_set_new(out, "type", explain_text(facts->content_type));
    json_object_set_new(out, "coding", explain_text(facts->content_encoding));
    json_object_set_new(out, "etag", explain_text(facts->validators.etag));
    json_object_set_new(out, "selecting", explain_selecting(facts->selecting));
    json_object_set_new(out, "tags", tags_json(facts->tags));
    json_object_set_new(out, "stored_s_ago",
                        json_integer(seconds_since(facts->received_ms, e->now_ms)));
    add_numbers(out, &c);
    json_object_set_new(out, "clocks", explain_clocks(&c));
    return out;
}

/* ---- what a request finds -------------------------------------------------------------------- */

static enum cache_found choose(struct explain *e, const struct found *f, struct cache_object **out)
{
    enum cache_found found = CACHE_MISS;
    *out = NULL;
    for (size_t i = 0; i < f->count; i++) {
        const struct object_facts *facts = cache_object_facts(f->at[i]);
        if (!slice_equal(cache_object_key(f->at[i]), e->plan.key))
            continue;
        if (found == CACHE_MISS)
            found = CACHE_OTHER_VARIANT;
        bool selects =
            facts->selecting.len == 0 || cache_vary_matches(facts->selecting, &e->request.headers);
        bool is_newer = *out == NULL || facts->received_ms > cache_object_facts(*out)->received_ms;
        if (selects && is_newer) {
            found = CACHE_FOUND;
            *out = f->at[i];
        }
    }
    if (*out != NULL &&
        !cache_object_has_coding_for(cache_object_facts(*out), &e->request.headers)) {
        *out = NULL;
        return CACHE_OTHER_VARIANT;
    }
    return found;
}

static void decide(struct explain *e, enum cache_found found, const struct cache_object *o)
{
    struct cache_control asked;
    struct lookup_facts facts = { .found = found };
    if (e->config->honours_client) {
        cache_control_read_request(&e->request.headers, &asked);
        facts.request = &asked;
    }
    if (found == CACHE_FOUND) {
        const struct object_facts *of = cache_object_facts(o);
        facts.freshness = &of->freshness;
        facts.age_s = cache_object_age_s(o, e->now_ms);
        facts.is_outdated = cache_object_outdated_ms(o) != 0;
        facts.is_paused = cache_object_is_paused(o, e->now_ms);
        facts.lacks_part = !cache_object_has_part_for(of, &e->request.headers, clock_wall_s()) ||
                           (e->request.is_head && of->status == 206 && !cache_facts_are_sliced(of));
        e->stored = (struct explain_stored){
            .is_there = cache_is_kept(&of->freshness, facts.age_s) && !facts.lacks_part,
            .freshness = of->freshness,
            .age_s = facts.age_s,
            .etag = arena_copy(&e->arena, of->validators.etag),
        };
    }
    if (e->plan.origin->kind == ORIGIN_SERVERS)
        facts.is_uncacheable = cache_is_uncacheable(e->context->hooks.cache, &e->key, e->now_ms);
    json_object_set_new(e->out, "uncacheable", json_boolean(facts.is_uncacheable));
    struct explain_verdict *v = &e->verdict;
    v->way = cache_lookup_decide(&facts, &v->outcome, &v->reason);
    v->asks_origin = v->way == LOOKUP_FETCH || v->way == LOOKUP_REVALIDATE;
    v->status = v->way == LOOKUP_GATEWAY_TIMEOUT ? 504 : 0;
    /* whatever the answer will be */
    if (v->way == LOOKUP_FETCH && v->outcome == OUTCOME_MISS && !e->request.is_head &&
        e->plan.effects.unstored_by != NULL) {
        v->outcome = OUTCOME_PASS;
        v->reason = REASON_RULE_NO_STORE;
    }
}

static void add_stored(struct explain *e, const struct found *f, const struct cache_object *chosen)
{
    json_t *stored = json_array();
    if (chosen != NULL)
        json_array_append_new(stored, object_json(e, chosen, true));
    for (size_t i = 0; i < f->count && json_array_size(stored) < SHOWN_MAX; i++)
        if (f->at[i] != chosen)
            json_array_append_new(stored, object_json(e, f->at[i], false));
    json_object_set_new(e->out, "stored", stored);
    json_object_set_new(e->out, "stored_count", json_integer((json_int_t)f->all));
}

/* What this request has in the fields that a stored variant was chosen by: its own values. */
static void add_variant(struct explain *e, const struct found *f)
{
    struct header field;
    struct headers vary;
    char names[2048];
    size_t length = 0;
    for (size_t i = 0; i < f->count; i++) {
        struct slice rest = cache_object_facts(f->at[i])->selecting;
        if (!slice_equal(cache_object_key(f->at[i]), e->plan.key))
            continue;
        for (bool is_name = true; rest.len > 0; is_name = !is_name) {
            size_t n = slice_find(rest, '\0');
            if (is_name && length + n + 1 < sizeof names) {
                names[length++] = ',';
                memcpy(names + length, rest.ptr, n);
                length += n;
            }
            n += n < rest.len;
            rest = (struct slice){ rest.ptr + n, rest.len - n };
        }
    }
    headers_init(&vary, &field, 1);
    if (length > 0 && headers_add(&vary, SLICE("Vary"), (struct slice){ names, length }))
        json_object_set_new(
            e->out, "variant",
            explain_selecting(cache_vary_make(&e->arena, &vary, &e->request.headers)));
}

/* What would wait for another's fetch. */
static void look_for_fill(struct explain *e)
{
    unsigned readers = 0;
    enum fill_begun would_be =
        cache_fill_peek(e->context->hooks.cache, &e->key, &e->request.headers, &readers);
    bool is_under_way = would_be != FILL_LEAD;
    json_object_set_new(e->out, "fill",
                        is_under_way ? json_pack("{s:i}", "readers", (int)readers) : json_null());
    struct explain_verdict *v = &e->verdict;
    if (is_under_way && v->reason == REASON_RULE_NO_STORE)
        v->reason = REASON_UNCACHEABLE; /* it will be let go by the other's fill */
    if (!is_under_way || !v->asks_origin || v->outcome != OUTCOME_MISS || e->request.is_head)
        return;
    v->outcome = OUTCOME_COLLAPSED;
    if (would_be == FILL_FULL) {
        v->outcome = OUTCOME_PASS;
        v->reason = REASON_QUEUE_FULL;
    }
}

void explain_store(struct explain *e)
{
    struct found *f = arena_alloc(&e->arena, sizeof *f);
    struct cache_object *chosen;
    f->count = f->all = 0;
    cache_read_begin();
    cache_visit_url(e->context->hooks.cache, &e->key, on_object, f);
    enum cache_found found = choose(e, f, &chosen);
    add_stored(e, f, chosen);
    add_variant(e, f);
    if (e->plan.way == PLAN_LOOKUP)
        decide(e, found, chosen);
    cache_read_end();
    if (e->plan.way == PLAN_LOOKUP && e->plan.origin->kind == ORIGIN_SERVERS)
        look_for_fill(e);
}
