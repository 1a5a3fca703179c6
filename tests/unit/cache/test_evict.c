/* The budget and who goes when it is reached: it is kept, what is used stays, what is held is
 * passed by. */
#include "tests/unit/cache/store_help.h"

static void touch(struct store *s, unsigned number, unsigned times)
{
    cache_read_begin();
    for (unsigned i = 0; i < times; i++)
        assert_non_null(find(s, number));
    cache_read_end();
}

static unsigned stored_count(struct store *s, unsigned from, unsigned to)
{
    unsigned count = 0;
    for (unsigned i = from; i < to; i++)
        count += is_stored(s, i);
    return count;
}

static void the_budget_is_kept_whatever_comes(void **state)
{
    static const uint64_t lengths[] = { 0, 100, 4000, 60000, 70000, 500000 };
    (void)state;
    for (unsigned l = 0; l < ARRAY_COUNT(lengths); l++) {
        struct store s;
        store_open(&s, MiB(4), 0, 8);
        uint64_t enough = lengths[l] < 4000 ? 12000 : MiB(12) / lengths[l];
        for (unsigned i = 0; i < enough; i++) {
            assert_true(put(&s, i, lengths[l], i % 2 == 0));
            if (i % (lengths[l] < 4000 ? 2000 : 8) == 0)
                assert_true(usage_settled(&s).used_bytes <= MiB(4));
        }
        struct cache_usage u = usage_settled(&s);
        assert_true(u.used_bytes <= u.budget_bytes);
        assert_true(u.used_bytes > u.budget_bytes / 2); /* and used */
        assert_true(u.evicted > 0 && u.objects + u.evicted == enough);
        assert_true(u.evicted_bytes >= u.evicted * lengths[l]);
        store_close(&s);
    }
}

/* One that is nearly an eighth of the budget makes room for itself, and only that. */
static void a_large_object_makes_just_its_room(void **state)
{
    (void)state;
    struct store s;
    store_open(&s, MiB(16), 0, 8);
    for (unsigned i = 0; i < 6000; i++)
        put(&s, i, 4000, true);
    uint64_t before = usage_settled(&s).objects;
    assert_true(put(&s, 9000, MiB(2), true));
    struct cache_usage u = usage_settled(&s);
    assert_true(u.used_bytes <= u.budget_bytes);
    assert_true(before - u.objects < MiB(2) / 4000 * 3 / 2); /* what is dying was counted */
    store_close(&s);
}

/* A crawler asks once for each of very many pages: what is asked for again and again stays. */
static void a_scan_does_not_flush_what_is_used(void **state)
{
    (void)state;
    enum { HOT = 200 };
    struct store s;
    store_open(&s, MiB(4), 0, 8);
    for (unsigned i = 0; i < HOT; i++) {
        put(&s, i, 4000, true);
        touch(&s, i, 2);
    }
    for (unsigned i = 0; i < 10000; i++) {
        put(&s, 1000 + i, 4000, true);
        if (i % 500 == 0)
            for (unsigned hot = 0; hot < HOT; hot++)
                if (is_stored(&s, hot))
                    touch(&s, hot, 1);
    }
    assert_true(stored_count(&s, 0, HOT) > HOT * 9 / 10);
    store_close(&s);
}

/* One that went and comes back soon goes to the main queue at once. */
static void a_ghost_is_known(void **state)
{
    (void)state;
    struct store s;
    struct key_text k;
    store_open(&s, MiB(4), 0, 8);
    unsigned gone = 0;
    for (unsigned i = 0; i < 2000; i++)
        put(&s, i, 4000, true);
    for (unsigned i = 1999; i > 0 && gone == 0; i--)
        gone = is_stored(&s, i) ? 0 : i;
    assert_true(gone > 0);
    cache_settle(); /* else what was evicted still waits for its grace period, and nothing new is taken */
    put(&s, gone, 4000, true);
    cache_settle();
    put(&s, 5000, 4000, true);
    cache_read_begin();
    assert_int_equal(find(&s, gone)->queue, QUEUE_MAIN);
    assert_int_equal(find(&s, 5000)->queue, QUEUE_SMALL);
    cache_read_end();
    cache_purge_key(s.cache, key_make(&s, &k, gone));
    cache_settle();
    put(&s, gone, 4000, true);
    cache_read_begin();
    assert_int_equal(find(&s, gone)->queue, QUEUE_SMALL); /* a ghost serves once */
    cache_read_end();
    store_close(&s);
}

/* A hit on a hot object writes nothing. */
static void the_use_counter_saturates(void **state)
{
    (void)state;
    struct store s;
    store_open(&s, MiB(4), 0, 8);
    put(&s, 1, 10, true);
    cache_read_begin();
    struct cache_object *o = find(&s, 1);
    assert_int_equal(atomic_load(&o->used), 1);
    for (unsigned i = 0; i < 1000; i++)
        assert_ptr_equal(find(&s, 1), o);
    assert_int_equal(atomic_load(&o->used), USED_MAX);
    assert_int_equal(atomic_load(&o->refs), 1);
    cache_read_end();
    store_close(&s);
}

/* Everything is held: new bodies pass through, nothing that is held goes, and it is over when they
 * are let go. */
static void what_is_held_is_passed_by(void **state)
{
    enum { HELD = 60 };
    struct cache_object *held[HELD];
    (void)state;
    struct store s;
    store_open(&s, MiB(4), 0, 8);
    unsigned count = 0;
    for (unsigned i = 0; i < HELD; i++) {
        if (!put(&s, i, 100000, true))
            break;
        cache_read_begin();
        held[count] = find(&s, i);
        assert_true(cache_object_try_ref(held[count++]));
        cache_read_end();
    }
    assert_true(count > 30 && count < HELD);
    assert_false(put(&s, 1000, 400000, true));
    assert_false(put(&s, 1001, 400000, false));
    assert_int_equal(stored_count(&s, 0, count), count);
    struct cache_usage u = usage_settled(&s);
    assert_true(u.used_bytes <= u.budget_bytes);
    for (unsigned i = 0; i < count; i++) {
        assert_true(body_is_right(held[i], i, 0, 100000));
        cache_object_unref(&held[i]);
    }
    assert_true(put(&s, 1000, 400000, true));
    assert_true(usage_settled(&s).used_bytes <= u.budget_bytes);
    store_close(&s);
}

/* Bodies in flight are counted while they come, page by page. */
static void what_is_filling_is_counted(void **state)
{
    (void)state;
    struct store s;
    struct key_text k;
    struct request none;
    struct watcher w;
    struct cache_fill *f;
    store_open(&s, MiB(16), 0, 8);
    uint64_t before = usage_settled(&s).filling_bytes;
    watcher_init(&w, s.mailbox);
    cache_fill_begin(s.cache, key_make(&s, &k, 1), request_make(&none, NULL, NULL), NULL, &w.reader,
                     &f);
    struct object_facts facts = facts_make((int64_t)MiB(1), SLICE_NONE);
    cache_fill_head(f, &facts);
    append_bytes(f, 1, 0, 1);
    struct cache_usage u;
    cache_usage_read(s.cache, &u);
    assert_int_equal(u.filling_bytes, before + 4096);
    assert_int_equal(u.fills, 1);
    append_bytes(f, 1, 1, 99999);
    cache_usage_read(s.cache, &u);
    assert_int_equal(u.filling_bytes, before + 102400);
    cache_fill_fail(f, REASON_ORIGIN_CUT);
    watcher_done(&s, &w);
    cache_fill_done(&f);
    assert_int_equal(usage_settled(&s).filling_bytes, before);
    store_close(&s);
}

static void the_live_settings_change(void **state)
{
    (void)state;
    struct store s;
    store_open(&s, MiB(16), KiB(100), 8);
    assert_false(put(&s, 1, 200000, true));
    struct cache_settings settings = { .memory_bytes = MiB(16),
                                       .object_max_bytes = KiB(300),
                                       .variants_max = 8 };
    cache_change(s.cache, &settings);
    assert_true(put(&s, 1, 200000, true));
    assert_true(put(&s, 2, 200000, false));
    store_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_budget_is_kept_whatever_comes),
        cmocka_unit_test(a_large_object_makes_just_its_room),
        cmocka_unit_test(a_scan_does_not_flush_what_is_used),
        cmocka_unit_test(a_ghost_is_known),
        cmocka_unit_test(the_use_counter_saturates),
        cmocka_unit_test(what_is_held_is_passed_by),
        cmocka_unit_test(what_is_filling_is_counted),
        cmocka_unit_test(the_live_settings_change),
    };
    return cmocka_run_group_tests(tests, thread_setup, thread_teardown);
}
