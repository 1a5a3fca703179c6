/* Purges of every mode against finds, fills and revalidations on four threads: no wrong byte,
 * nothing stored that a purge had beaten, and every byte accounted for at the end. */
#include "tests/unit/cache/purge_help.h"

#include <sched.h>

enum { THREADS = 4, ROUNDS = 4000, PAGES = 120 };

struct task {
    struct store *shared;
    unsigned seed;
    unsigned hits, stored, revalidated, purges, wrong;
    uint64_t objects;
};

/* An editor saves a page (`saved`: what the origin would say), purges it, and once that is done
 * nothing older may be found (`purged`), unless it says that it is outdated. */
static _Atomic uint32_t saved[PAGES], purged[PAGES];

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void page_key(char *out, size_t size, unsigned page)
{
    snprintf(out, size, "site|host%u.example/dir%u/%u%s", page % 3, page % 5, page,
             page % 4 == 0 ? "|cookie=1" : "");
}

static void page_tags(char *out, size_t size, unsigned page)
{
    snprintf(out, size, "all|third-%u|page-%u|", page % 3, page);
}

/* The version that a stored head says. */
static uint32_t version_of(const struct cache_object *o)
{
    return cache_object_facts(o)->validators.etag.len == 0
               ? 0
               : (uint32_t)atoi(cache_object_facts(o)->validators.etag.ptr);
}

static void do_find(struct task *t, unsigned page)
{
    char key[64];
    page_key(key, sizeof key, page);
    uint32_t least = atomic_load(&purged[page]);
    cache_read_begin();
    struct cache_object *o = find_text(t->shared, key);
    if (o != NULL) {
        t->hits++;
        t->wrong += !body_is_right(o, page, 0, 100 + page);
        /* purged before we looked: it must not be there, nor have come back */
        t->wrong += version_of(o) < least && cache_object_outdated_ms(o) == 0;
        t->wrong += cache_object_age_s(o, 5000) < 0;
    }
    cache_read_end();
}

static void do_fill(struct task *t, struct store *own, unsigned page, bool revalidates)
{
    char key[64], tags[64], etag[16];
    struct text tag_text, key_text;
    struct watcher w;
    struct request none;
    struct cache_fill *f;
    struct cache_object *stale = NULL;
    page_key(key, sizeof key, page);
    page_tags(tags, sizeof tags, page);
    struct cache_key k = cache_key_of(own->cache, text_make(&key_text, key));
    watcher_init(&w, own->mailbox);
    cache_read_begin();
    if (revalidates)
        stale = find_text(own, key);
    enum fill_begun begun =
        cache_fill_begin(own->cache, &k, request_make(&none, NULL, NULL), stale, &w.reader, &f);
    cache_read_end();
    if (begun != FILL_LEAD) {
        watcher_done(own, &w);
        return;
    }
    snprintf(etag, sizeof etag, "%u ", atomic_load(&saved[page])); /* asked after it began */
    sched_yield();
    struct object_facts facts = facts_make(100 + page, SLICE_NONE);
    facts.tags = text_make(&tag_text, tags);
    facts.validators.etag = slice_of(etag);
    if (cache_fill_stale(f) != NULL) {
        cache_fill_revalidated(f, &facts);
        t->revalidated++;
    } else {
        cache_fill_head(f, &facts);
        append_bytes(f, page, 0, 50);
        sched_yield();
        append_bytes(f, page, 50, 50 + page);
        t->stored += cache_fill_seal(f);
    }
    watcher_done(own, &w);
    cache_fill_done(&f);
}

static void do_purge(struct task *t, unsigned page, unsigned mode, enum purge_how how)
{
    char text[64];
    enum purge_what what = PURGE_EVERYTHING;
    page_key(text, sizeof text, page);
    uint32_t version = how == PURGE_DRY ? 0 : atomic_fetch_add(&saved[page], 1) + 1;
    switch (mode) {
    case 0: what = PURGE_URL; break;
    case 1: what = PURGE_PREFIX; break;
    case 2: what = PURGE_TAG, snprintf(text, sizeof text, "page-%u", page); break;
    case 3: what = PURGE_GLOB, snprintf(text, sizeof text, "*/dir%u/%u", page % 5, page); break;
    case 4: what = PURGE_HOST, snprintf(text, sizeof text, "host%u.example", page % 3); break;
    case 5: what = PURGE_TAG, snprintf(text, sizeof text, "third-%u|none|", page % 3); break;
    default: text[0] = '\0'; break;
    }
    t->objects += purge_at(t->shared, what, how, text, 4000).objects;
    t->purges++;
    uint32_t known = atomic_load(&purged[page]);
    while (known < version && !atomic_compare_exchange_weak(&purged[page], &known, version))
        continue;
}

static void *run(void *arg)
{
    struct task *t = arg;
    struct store own = { .cache = t->shared->cache, .base = event_base_new() };
    own.mailbox = mailbox_new(own.base);
    cache_thread_register();
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned page = next_random(&t->seed) % PAGES, what = next_random(&t->seed) % 20;
        if (what == 0)
            do_purge(t, page, next_random(&t->seed) % 7,
                     (enum purge_how)(next_random(&t->seed) % 3));
        else if (what < 8)
            do_fill(t, &own, page, what < 4);
        else
            do_find(t, page);
    }
    cache_thread_unregister();
    mailbox_free(&own.mailbox);
    event_base_free(own.base);
    return NULL;
}

static void purges_of_all_modes_meet_finds_and_fills(void **state)
{
    (void)state;
    struct store s;
    pthread_t threads[THREADS];
    struct task tasks[THREADS];
    store_open(&s, MiB(16), 0, 8);
    struct cache_usage before = usage_settled(&s);
    for (unsigned i = 0; i < THREADS; i++) {
        tasks[i] = (struct task){ .shared = &s, .seed = i + 1 };
        assert_int_equal(pthread_create(&threads[i], NULL, run, &tasks[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(tasks[i].wrong, 0);
        assert_true(tasks[i].hits > 0 && tasks[i].stored > 0 && tasks[i].revalidated > 0);
        assert_true(tasks[i].purges > 0 && tasks[i].objects > 0);
    }
    struct cache_usage u = usage_settled(&s);
    assert_int_equal(u.used_bytes, atomic_load(&s.cache->memory.used_bytes));
    assert_int_equal(u.fills, 0);
    assert_int_equal(purge(&s, PURGE_TAG, "all").objects, u.objects);
    struct cache_usage after = usage_settled(&s);
    assert_true(after.objects == 0 && after.tags == 0);
    assert_int_equal(after.used_bytes, before.used_bytes);
    store_close(&s);
}

/* The same objects walked by several purges at once: whoever comes first has them. */
static void *run_everything(void *arg)
{
    struct task *t = arg;
    cache_thread_register();
    t->objects = purge(t->shared, t->seed % 2 == 0 ? PURGE_TAG : PURGE_EVERYTHING,
                       t->seed % 2 == 0 ? "all" : "")
                     .objects;
    cache_thread_unregister();
    return NULL;
}

static void each_object_goes_once(void **state)
{
    (void)state;
    enum { MANY = 2000 };
    struct store s;
    char key[64];
    pthread_t threads[THREADS];
    struct task tasks[THREADS];
    uint64_t sum = 0;
    store_open(&s, MiB(64), 0, 8);
    uint64_t before = usage_settled(&s).used_bytes;
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "site|h/%u", i);
        put_tagged(&s, key, "all|");
    }
    for (unsigned i = 0; i < THREADS; i++) {
        tasks[i] = (struct task){ .shared = &s, .seed = i };
        assert_int_equal(pthread_create(&threads[i], NULL, run_everything, &tasks[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += tasks[i].objects;
    }
    assert_int_equal(sum, MANY);
    assert_int_equal(usage_settled(&s).used_bytes, before);
    store_close(&s);
}

int main(void)
{
    evthread_use_pthreads();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(purges_of_all_modes_meet_finds_and_fills),
        cmocka_unit_test(each_object_goes_once),
    };
    return cmocka_run_group_tests(tests, thread_setup, thread_teardown);
}
