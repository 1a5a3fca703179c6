/* Keys, variants, dropping, the memory for uncacheable keys, the figures; and all of it at once
 * from four threads. */
#include "tests/unit/cache/store_help.h"

#include <pthread.h>

static struct slice selecting_of(const char *value)
{
    /* as cache_vary_make() would, so that the format is its business */
    static _Thread_local struct arena a;
    static _Thread_local bool is_used;
    struct request response, request;
    if (is_used)
        arena_fini(&a);
    is_used = true;
    arena_init(&a);
    return cache_vary_make(&a, request_make(&response, "Vary", "Accept-Language"),
                           request_make(&request, "Accept-Language", value));
}

static bool put_language(struct store *s, unsigned number, unsigned content, const char *language)
{
    struct request r;
    struct key_text k;
    struct watcher w;
    struct cache_fill *f;
    char selecting[256];
    struct slice made = selecting_of(language);
    assert_true(made.len < sizeof selecting);
    memcpy(selecting, made.ptr, made.len);
    struct object_facts facts = facts_make(100, (struct slice){ selecting, made.len });
    watcher_init(&w, s->mailbox);
    const struct headers *h = request_make(&r, "Accept-Language", language);
    assert_int_equal(cache_fill_begin(s->cache, key_make(s, &k, number), h, NULL, &w.reader, &f),
                     FILL_LEAD);
    cache_fill_head(f, &facts);
    append_bytes(f, content, 0, 100);
    bool stored = cache_fill_seal(f);
    watcher_done(s, &w);
    cache_fill_done(&f);
    return stored;
}

/* The number whose bytes this request is given; -1 nothing stored, -2 another variant only. */
static int content_for(struct store *s, unsigned number, const char *language)
{
    struct request r;
    struct key_text k;
    struct cache_object *o;
    int content = -3;
    cache_read_begin();
    enum cache_found found = cache_find(s->cache, key_make(s, &k, number),
                                        request_make(&r, "Accept-Language", language), &o);
    if (found != CACHE_FOUND)
        content = found == CACHE_MISS ? -1 : -2;
    for (int i = 0; content == -3 && i < 100; i++)
        if (body_is_right(o, (unsigned)i, 0, 100))
            content = i;
    cache_read_end();
    return content;
}

static void what_is_put_is_found(void **state)
{
    (void)state;
    struct store s;
    store_open(&s, MiB(16), 0, 8);
    for (unsigned i = 0; i < 500; i++)
        assert_true(put(&s, i, 10 + i, i % 2 == 0));
    for (unsigned i = 0; i < 500; i++) {
        cache_read_begin();
        struct cache_object *o = find(&s, i);
        assert_non_null(o);
        assert_true(body_is_right(o, i, 0, 10 + i));
        struct key_text k;
        key_make(&s, &k, i);
        assert_true(slice_equal(cache_object_key(o), k.key.bytes));
        assert_true(slice_equal(cache_object_facts(o)->validators.etag, SLICE("\"v1\"")));
        assert_true(slice_equal(cache_object_facts(o)->content_type, SLICE("text/plain")));
        assert_int_equal(cache_object_facts(o)->content_encoding.len, 0);
        cache_read_end();
    }
    assert_false(is_stored(&s, 500));
    store_close(&s);
}

/* RFC 9111 4: only what the key names; a hash that is the same is not enough. */
static void bytes_of_the_key_are_compared(void **state)
{
    (void)state;
    struct store s;
    struct key_text k;
    struct request none;
    struct cache_object *o;
    store_open(&s, MiB(16), 0, 8);
    assert_true(put(&s, 1, 10, true));
    struct cache_key forged = *key_make(&s, &k, 1);
    forged.bytes = SLICE("another key of the same hash");
    cache_read_begin();
    assert_int_equal(cache_find(s.cache, &forged, request_make(&none, NULL, NULL), &o), CACHE_MISS);
    cache_read_end();
    store_close(&s);
}

/* RFC 9111 4.1 */
static void variants_are_told_apart(void **state)
{
    (void)state;
    struct store s;
    store_open(&s, MiB(16), 0, 8);
    assert_true(put_language(&s, 1, 10, "de"));
    assert_int_equal(content_for(&s, 1, "de"), 10);
    assert_int_equal(content_for(&s, 1, "fr"), -2);
    assert_true(put_language(&s, 1, 11, "fr"));
    assert_true(put_language(&s, 1, 12, "en"));
    assert_int_equal(content_for(&s, 1, "de"), 10);
    assert_int_equal(content_for(&s, 1, "fr"), 11);
    assert_int_equal(content_for(&s, 1, "en"), 12);
    assert_true(put_language(&s, 1, 13, "fr")); /* takes the place of its like */
    assert_int_equal(content_for(&s, 1, "fr"), 13);
    struct cache_usage u = usage_settled(&s);
    assert_int_equal(u.objects, 3);
    assert_int_equal(u.variants, 3);
    assert_int_equal(content_for(&s, 2, "fr"), -1);
    store_close(&s);
}

static void variants_are_bounded(void **state)
{
    (void)state;
    struct store s;
    char language[8];
    store_open(&s, MiB(16), 0, 4);
    for (unsigned i = 0; i < 4; i++) {
        snprintf(language, sizeof language, "l%u", i);
        put_language(&s, 1, i, language);
    }
    assert_int_equal(content_for(&s, 1, "l0"), 0); /* used: it stays */
    put_language(&s, 1, 4, "l4");
    assert_int_equal(content_for(&s, 1, "l0"), 0);
    assert_int_equal(content_for(&s, 1, "l1"), -2); /* the oldest that was not used */
    assert_int_equal(content_for(&s, 1, "l4"), 4);
    struct cache_usage u = usage_settled(&s);
    assert_int_equal(u.objects, 4);
    assert_int_equal(u.variant_cap_hits, 1);
    for (unsigned i = 5; i < 60; i++) {
        snprintf(language, sizeof language, "l%u", i);
        put_language(&s, 1, i, language);
    }
    assert_int_equal(usage_settled(&s).objects, 4);
    store_close(&s);
}

static void purge_takes_all_variants(void **state)
{
    (void)state;
    struct store s;
    struct key_text k;
    store_open(&s, MiB(16), 0, 8);
    put_language(&s, 1, 1, "de");
    put_language(&s, 1, 2, "fr");
    put_language(&s, 2, 3, "fr");
    assert_int_equal(cache_purge_key(s.cache, key_make(&s, &k, 1)), 2);
    assert_int_equal(cache_purge_key(s.cache, key_make(&s, &k, 1)), 0);
    assert_int_equal(content_for(&s, 1, "de"), -1);
    assert_int_equal(content_for(&s, 2, "fr"), 3);
    store_close(&s);
}

static void one_object_is_dropped_once(void **state)
{
    (void)state;
    struct store s;
    struct request r;
    struct key_text k;
    struct cache_object *o;
    store_open(&s, MiB(16), 0, 8);
    put_language(&s, 1, 1, "de");
    put_language(&s, 1, 2, "fr");
    cache_read_begin();
    cache_find(s.cache, key_make(&s, &k, 1), request_make(&r, "Accept-Language", "de"), &o);
    assert_true(cache_object_try_ref(o));
    cache_read_end();
    cache_drop(s.cache, o);
    assert_int_equal(content_for(&s, 1, "de"), -2);
    put_language(&s, 1, 3, "de");
    cache_drop(s.cache, o); /* no longer the one stored: its successor stays */
    assert_int_equal(content_for(&s, 1, "de"), 3);
    assert_true(body_is_right(o, 1, 0, 100)); /* ours still */
    cache_object_unref(&o);
    assert_null(o);
    assert_int_equal(usage_settled(&s).objects, 2);
    store_close(&s);
}

static void the_last_reference_is_the_last(void **state)
{
    (void)state;
    struct store s;
    struct key_text k;
    store_open(&s, MiB(16), 0, 8);
    put(&s, 1, 10, true);
    cache_read_begin();
    struct cache_object *o = find(&s, 1);
    cache_purge_key(s.cache, key_make(&s, &k, 1));
    assert_false(cache_object_try_ref(o));
    assert_true(body_is_right(o, 1, 0, 10)); /* borrowed: readable until the section ends */
    cache_read_end();
    store_close(&s);
}

static void uncacheable_keys_are_remembered_for_a_while(void **state)
{
    (void)state;
    struct store s;
    struct key_text k, other;
    store_open(&s, MiB(16), 0, 8);
    key_make(&s, &k, 1);
    key_make(&s, &other, 2);
    int64_t now_ms = 5000000;
    assert_false(cache_is_uncacheable(s.cache, &k.key, now_ms));
    cache_remember_uncacheable(s.cache, &k.key, now_ms);
    assert_true(cache_is_uncacheable(s.cache, &k.key, now_ms));
    assert_true(cache_is_uncacheable(s.cache, &k.key, now_ms + 999));
    assert_false(cache_is_uncacheable(s.cache, &k.key, now_ms + 1200));
    assert_false(cache_is_uncacheable(s.cache, &other.key, now_ms));
    struct cache_settings none = { .memory_bytes = MiB(16),
                                   .variants_max = 8,
                                   .uncacheable_ms = 0 };
    cache_change(s.cache, &none);
    cache_remember_uncacheable(s.cache, &other.key, now_ms);
    assert_false(cache_is_uncacheable(s.cache, &other.key, now_ms));
    store_close(&s);
}

static uint64_t sum_of(const struct cache_usage *u)
{
    return u->body_memory_bytes + u->body_file_bytes + u->head_bytes + u->index_bytes +
           u->filling_bytes + u->other_bytes;
}

static void figures_return_to_where_they_were(void **state)
{
    (void)state;
    struct store s;
    struct key_text k;
    store_open(&s, MiB(64), 0, 8);
    struct cache_usage before = usage_settled(&s);
    assert_true(before.used_bytes > 0 && before.used_bytes < MiB(1));
    for (unsigned i = 0; i < 200; i++)
        put(&s, i, i * 1000, i % 3 == 0);
    struct cache_usage full = usage_settled(&s);
    assert_int_equal(full.used_bytes, sum_of(&full));
    assert_int_equal(full.used_bytes, atomic_load(&s.cache->memory.used_bytes));
    assert_int_equal(full.objects, 200);
    assert_true(full.body_memory_bytes > MiB(2) && full.body_file_bytes > MiB(8));
    assert_true(full.head_bytes > 200 * 100 && full.index_bytes > before.index_bytes);
    assert_int_equal(full.filling_bytes, 0);
    for (unsigned i = 0; i < 200; i++)
        cache_purge_key(s.cache, key_make(&s, &k, i));
    struct cache_usage after = usage_settled(&s);
    assert_int_equal(full.evicted, 0);
    assert_memory_equal(&after, &before, sizeof after);
    store_close(&s);
}

/* ---- all at once ----------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 6000, KEYS = 300 };
struct stress {
    struct store *shared;
    unsigned seed;
    unsigned wrong, hits, fills;
};

static uint32_t next_random(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static uint64_t length_of(unsigned number)
{
    return number % 7 == 0 ? 65536 + number * 300 : number * 61 % 20000;
}

/* Reads it in the section, or keeps it beyond. */
static void stress_find(struct stress *t, unsigned number)
{
    cache_read_begin();
    struct cache_object *o = find(t->shared, number);
    bool is_kept = o != NULL && number % 2 == 0 && cache_object_try_ref(o);
    if (o != NULL) {
        t->hits++;
        t->wrong += !body_is_right(o, number, 0, length_of(number));
    }
    cache_read_end();
    if (!is_kept)
        return;
    t->wrong += !body_is_right(o, number, 0, length_of(number));
    cache_object_unref(&o);
}

static void stress_fill(struct stress *t, struct store *own, unsigned number)
{
    struct key_text k;
    struct request none;
    struct watcher w;
    struct cache_fill *f;
    uint64_t length = length_of(number);
    struct object_facts facts = facts_make(number % 3 == 0 ? -1 : (int64_t)length, SLICE_NONE);
    watcher_init(&w, own->mailbox);
    enum fill_begun begun = cache_fill_begin(own->cache, key_make(own, &k, number),
                                             request_make(&none, NULL, NULL), NULL, &w.reader, &f);
    if (begun == FILL_LEAD) {
        t->fills++;
        cache_fill_head(f, &facts);
        append_bytes(f, number, 0, length / 2);
        append_bytes(f, number, length / 2, length - length / 2);
        (void)cache_fill_seal(f);
        watcher_done(own, &w);
        cache_fill_done(&f);
        return;
    }
    struct cache_object *o = cache_fill_object(f);
    if (o != NULL) {
        uint64_t arrived = cache_object_arrived(o);
        t->wrong += !body_is_right(o, number, 0, arrived);
        cache_reader_took(&w.reader, arrived);
    }
    watcher_done(own, &w);
}

static void *stress_run(void *arg)
{
    struct stress *t = arg;
    struct store own = { .cache = t->shared->cache, .base = event_base_new() };
    struct key_text k;
    own.mailbox = mailbox_new(own.base);
    cache_thread_register();
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned number = next_random(&t->seed) % KEYS;
        unsigned what = next_random(&t->seed) % 20;
        if (what == 0)
            cache_purge_key(own.cache, key_make(&own, &k, number));
        else if (what < 8)
            stress_fill(t, &own, number);
        else
            stress_find(t, number);
    }
    cache_thread_unregister();
    mailbox_free(&own.mailbox);
    event_base_free(own.base);
    return NULL;
}

static void four_threads_never_see_a_wrong_byte(void **state)
{
    (void)state;
    struct store s;
    struct key_text k;
    pthread_t threads[THREADS];
    struct stress tasks[THREADS];
    store_open(&s, MiB(3), KiB(512), 8); /* a fraction of what the keys would take */
    struct cache_usage before = usage_settled(&s);
    for (unsigned i = 0; i < THREADS; i++) {
        tasks[i] = (struct stress){ .shared = &s, .seed = i + 1 };
        assert_int_equal(pthread_create(&threads[i], NULL, stress_run, &tasks[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(tasks[i].wrong, 0);
        assert_true(tasks[i].hits > 0 && tasks[i].fills > 0);
    }
    struct cache_usage u = usage_settled(&s);
    assert_true(u.used_bytes <= u.budget_bytes);
    assert_int_equal(u.used_bytes, atomic_load(&s.cache->memory.used_bytes));
    assert_int_equal(u.fills, 0);
    assert_true(u.evicted > 0);
    for (unsigned i = 0; i < KEYS; i++)
        cache_purge_key(s.cache, key_make(&s, &k, i));
    struct cache_usage after = usage_settled(&s);
    assert_int_equal(after.used_bytes, before.used_bytes);
    assert_int_equal(after.objects, 0);
    store_close(&s);
}

int main(void)
{
    evthread_use_pthreads();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_is_found),
        cmocka_unit_test(bytes_of_the_key_are_compared),
        cmocka_unit_test(variants_are_told_apart),
        cmocka_unit_test(variants_are_bounded),
        cmocka_unit_test(purge_takes_all_variants),
        cmocka_unit_test(one_object_is_dropped_once),
        cmocka_unit_test(the_last_reference_is_the_last),
        cmocka_unit_test(uncacheable_keys_are_remembered_for_a_while),
        cmocka_unit_test(figures_return_to_where_they_were),
        cmocka_unit_test(four_threads_never_see_a_wrong_byte),
    };
    return cmocka_run_group_tests(tests, thread_setup, thread_teardown);
}
