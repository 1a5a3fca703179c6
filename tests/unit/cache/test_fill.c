/* Fills: who leads, who follows, what readers see in each state, purges under way, fills that
 * outgrow, what breaks. */
#include "tests/unit/cache/store_help.h"

struct play { /* one key, one leader, up to four more who ask */
    struct store s;
    struct key_text k;
    struct request none;
    const struct headers *plain;
    struct watcher leader, other[4];
    struct cache_fill *fill;
    struct post room;
};

static unsigned rooms;

static void on_room(struct post *post)
{
    (void)post;
    rooms++;
}

static void play_open(struct play *p, uint64_t memory_bytes, uint64_t object_max)
{
    memset(p, 0, sizeof *p);
    rooms = 0;
    store_open(&p->s, memory_bytes, object_max, 8);
    key_make(&p->s, &p->k, 1);
    p->plain = request_make(&p->none, NULL, NULL);
    watcher_init(&p->leader, p->s.mailbox);
    for (unsigned i = 0; i < ARRAY_COUNT(p->other); i++)
        watcher_init(&p->other[i], p->s.mailbox);
    p->room.run = on_room;
}

static void play_lead(struct play *p, struct cache_object *stale)
{
    assert_int_equal(
        cache_fill_begin(p->s.cache, &p->k.key, p->plain, stale, &p->leader.reader, &p->fill),
        FILL_LEAD);
    assert_true(p->leader.reader.is_leader);
    cache_fill_on_room(p->fill, p->s.mailbox, &p->room);
}

static enum fill_begun play_ask(struct play *p, unsigned i, struct cache_fill **f)
{
    return cache_fill_begin(p->s.cache, &p->k.key, p->plain, NULL, &p->other[i].reader, f);
}

static void play_head(struct play *p, int64_t length)
{
    struct object_facts facts = facts_make(length, SLICE_NONE);
    cache_fill_head(p->fill, &facts);
}

static void play_close(struct play *p)
{
    for (unsigned i = 0; i < ARRAY_COUNT(p->other); i++)
        watcher_done(&p->s, &p->other[i]);
    watcher_done(&p->s, &p->leader);
    if (p->fill != NULL)
        cache_fill_done(&p->fill);
    store_close(&p->s);
}

static unsigned woken(struct play *p, unsigned i)
{
    mailbox_run(p->s.mailbox);
    return p->other[i].woken;
}

static void one_leads_the_others_follow(void **state)
{
    (void)state;
    struct play p;
    struct cache_fill *f;
    play_open(&p, MiB(16), 0);
    play_lead(&p, NULL);
    assert_int_equal(play_ask(&p, 0, &f), FILL_FOLLOW);
    assert_ptr_equal(f, p.fill);
    assert_false(p.other[0].reader.is_leader);
    assert_int_equal(cache_fill_state(f), FILL_WAITING);
    assert_null(cache_fill_object(f));
    assert_true(slice_equal(cache_fill_key(f), p.k.key.bytes));
    assert_int_equal(cache_fill_reader_count(f), 2);

    play_head(&p, 10000);
    assert_int_equal(woken(&p, 0), 1);
    assert_int_equal(cache_fill_state(f), FILL_STREAMING);
    struct cache_object *o = cache_fill_object(f);
    assert_int_equal(cache_object_state(o), OBJECT_FILLING);
    assert_int_equal(cache_object_piece(o, 0).length, 0);

    append_bytes(p.fill, 1, 0, 3000);
    append_bytes(p.fill, 1, 3000, 1000);
    assert_int_equal(woken(&p, 0), 2); /* two appends, one wake-up */
    assert_int_equal(cache_object_arrived(o), 4000);
    assert_true(body_is_right(o, 1, 0, 4000));
    assert_int_equal(play_ask(&p, 1, &f), FILL_FOLLOW); /* joins in the middle */
    assert_false(is_stored(&p.s, 1));                   /* not before it is whole */

    append_bytes(p.fill, 1, 4000, 6000);
    assert_true(cache_fill_seal(p.fill));
    assert_int_equal(woken(&p, 1), 1);
    assert_int_equal(cache_fill_state(f), FILL_COMPLETE);
    assert_int_equal(cache_object_state(o), OBJECT_COMPLETE);
    assert_true(body_is_right(o, 1, 0, 10000));
    assert_true(is_stored(&p.s, 1));
    assert_int_equal(play_ask(&p, 2, &f), FILL_LEAD); /* it is over: no one joins */
    assert_ptr_not_equal(f, p.fill);
    cache_fill_fail(f, REASON_ORIGIN_CLOSED);
    cache_fill_done(&f);
    play_close(&p);
}

static void the_fill_lives_while_anyone_holds_it(void **state)
{
    (void)state;
    struct play p;
    struct cache_fill *f;
    play_open(&p, MiB(16), 0);
    play_lead(&p, NULL);
    play_ask(&p, 0, &f);
    assert_int_equal(cache_reader_detach(&p.leader.reader), 1); /* its client left */
    play_head(&p, -1);
    append_bytes(p.fill, 1, 0, 9000);
    assert_true(cache_fill_seal(p.fill));
    cache_fill_done(&p.fill);
    assert_int_equal(cache_purge_key(p.s.cache, &p.k.key), 1);
    cache_settle();
    assert_true(body_is_right(cache_fill_object(f), 1, 0, 9000));
    assert_int_equal(cache_reader_detach(&p.other[0].reader), 0);
    assert_int_equal(usage_settled(&p.s).fills, 0);
    play_close(&p);
}

static void a_released_fill_lets_all_go(void **state)
{
    (void)state;
    struct play p;
    struct cache_fill *f;
    play_open(&p, MiB(16), 0);
    play_lead(&p, NULL);
    play_ask(&p, 0, &f);
    cache_fill_release(p.fill);
    assert_int_equal(woken(&p, 0), 1);
    assert_int_equal(cache_fill_state(f), FILL_RELEASED);
    assert_null(cache_fill_object(f));
    struct cache_fill *own;
    assert_int_equal(play_ask(&p, 1, &own), FILL_LEAD);
    cache_fill_release(own);
    cache_fill_done(&own);
    play_close(&p);
}

static void a_broken_fill_is_seen_and_never_stored(void **state)
{
    (void)state;
    for (unsigned after_head = 0; after_head < 2; after_head++) {
        struct play p;
        struct cache_fill *f;
        play_open(&p, MiB(16), 0);
        play_lead(&p, NULL);
        play_ask(&p, 0, &f);
        if (after_head) {
            play_head(&p, 10000);
            append_bytes(p.fill, 1, 0, 5000);
        }
        cache_fill_fail(p.fill, REASON_ORIGIN_STALLED);
        assert_true(woken(&p, 0) > 0);
        assert_int_equal(cache_fill_state(f), FILL_FAILED);
        assert_int_equal(cache_fill_fault(f), REASON_ORIGIN_STALLED);
        struct cache_object *o = cache_fill_object(f);
        assert_int_equal(o != NULL, after_head);
        if (o != NULL) {
            assert_int_equal(cache_object_state(o), OBJECT_FAILED);
            assert_true(body_is_right(o, 1, 0, 5000)); /* what came is there */
        }
        assert_false(is_stored(&p.s, 1));
        play_close(&p);
    }
}

/* RFC 9112 8: a message whose length is not the announced one is incomplete. */
static void a_body_of_another_length_is_not_stored(void **state)
{
    static const struct {
        uint64_t announced, came;
        enum reason fault;
    } cases[] = { { 10000, 9999, REASON_ORIGIN_CUT },
                  { 100000, 99999, REASON_ORIGIN_CUT },
                  { 10000, 10001, REASON_ORIGIN_MALFORMED },
                  { 100000, 100001, REASON_ORIGIN_MALFORMED },
                  { 0, 1, REASON_ORIGIN_MALFORMED } };
    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(cases); i++) {
        struct play p;
        play_open(&p, MiB(16), 0);
        play_lead(&p, NULL);
        play_head(&p, (int64_t)cases[i].announced);
        append_bytes(p.fill, 1, 0, cases[i].came);
        assert_false(cache_fill_seal(p.fill));
        assert_int_equal(cache_fill_state(p.fill), FILL_FAILED);
        assert_int_equal(cache_fill_fault(p.fill), cases[i].fault);
        assert_int_equal(cache_object_state(cache_fill_object(p.fill)), OBJECT_FAILED);
        assert_false(is_stored(&p.s, 1));
        play_close(&p);
    }
}

static void a_purge_beats_a_fill_under_way(void **state)
{
    (void)state;
    struct play p;
    struct cache_fill *f;
    play_open(&p, MiB(16), 0);
    play_lead(&p, NULL);
    play_head(&p, 10000);
    append_bytes(p.fill, 1, 0, 5000);
    assert_int_equal(cache_purge_key(p.s.cache, &p.k.key), 0);
    assert_int_equal(play_ask(&p, 0, &f),
                     FILL_LEAD); /* asked after the purge: not the old answer */
    append_bytes(p.fill, 1, 5000, 5000);
    assert_false(cache_fill_seal(p.fill)); /* delivered, not stored */
    assert_int_equal(cache_fill_state(p.fill), FILL_COMPLETE);
    assert_true(body_is_right(cache_fill_object(p.fill), 1, 0, 10000));
    assert_false(is_stored(&p.s, 1));
    cache_fill_fail(f, REASON_ORIGIN_CLOSED);
    cache_fill_done(&f);
    play_close(&p);
}

static struct cache_object *stored_ref(struct play *p)
{
    cache_read_begin();
    struct cache_object *o = find(&p->s, 1);
    assert_true(o != NULL && cache_object_try_ref(o));
    cache_read_end();
    return o;
}

/* RFC 9111 4.3.4 */
static void a_304_makes_a_new_head_over_the_same_body(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct play p;
        uint64_t length = i == 0 ? 20000 : 200000;
        play_open(&p, MiB(16), 0);
        assert_true(put(&p.s, 1, length, true));
        struct cache_usage before = usage_settled(&p.s);
        struct cache_object *stale = stored_ref(&p);
        play_lead(&p, stale);
        assert_ptr_equal(cache_fill_stale(p.fill), stale);
        struct object_facts facts = facts_make(-1, SLICE_NONE);
        facts.head = SLICE("HTTP/1.1 200 OK\r\nX-Fresh: 1\r\n");
        cache_fill_revalidated(p.fill, &facts);
        assert_int_equal(cache_fill_state(p.fill), FILL_COMPLETE);
        struct cache_object *fresh = cache_fill_object(p.fill);
        assert_ptr_not_equal(fresh, stale);
        assert_int_equal(cache_object_state(fresh), OBJECT_COMPLETE);
        assert_int_equal(cache_object_length(fresh), length);
        assert_int_equal(cache_object_facts(fresh)->length_bytes, length);
        assert_true(cache_object_piece(fresh, 0).mem == cache_object_piece(stale, 0).mem);
        assert_true(cache_object_piece(fresh, 0).at == cache_object_piece(stale, 0).at);
        cache_object_unref(&stale);
        watcher_done(&p.s, &p.leader);
        cache_fill_done(&p.fill);
        cache_settle();
        struct cache_object *now = stored_ref(&p);
        assert_true(slice_equal(cache_object_facts(now)->head, facts.head));
        assert_true(body_is_right(now, 1, 0, length)); /* the old head is gone, its body is not */
        cache_object_unref(&now);
        struct cache_usage after = usage_settled(&p.s);
        assert_int_equal(after.objects, 1);
        assert_int_equal(after.body_memory_bytes, before.body_memory_bytes);
        assert_int_equal(after.body_file_bytes, before.body_file_bytes);
        play_close(&p);
    }
}

static void a_purge_beats_a_revalidation_under_way(void **state)
{
    (void)state;
    struct play p;
    play_open(&p, MiB(16), 0);
    assert_true(put(&p.s, 1, 5000, true));
    struct cache_object *stale = stored_ref(&p);
    play_lead(&p, stale);
    cache_object_unref(&stale);
    assert_int_equal(cache_purge_key(p.s.cache, &p.k.key), 1);
    struct object_facts facts = facts_make(-1, SLICE_NONE);
    cache_fill_revalidated(p.fill, &facts);
    assert_true(body_is_right(cache_fill_object(p.fill), 1, 0, 5000));
    assert_false(is_stored(&p.s, 1));
    play_close(&p);
}

/* The old body must not take the place of one that came later. */
static void a_late_304_does_not_undo_a_newer_object(void **state)
{
    (void)state;
    struct play p;
    play_open(&p, MiB(16), 0);
    assert_true(put(&p.s, 1, 5000, true));
    struct cache_object *stale = stored_ref(&p);
    play_lead(&p, stale);
    cache_object_unref(&stale);
    cache_drop(p.s.cache, cache_fill_stale(p.fill));
    struct object_facts facts = facts_make(7000, SLICE_NONE);
    struct cache_object *newer =
        object_new(p.s.cache, &p.k.key, &facts, body_ref(cache_fill_stale(p.fill)->body));
    object_set_state(newer, OBJECT_COMPLETE);
    assert_true(index_publish(p.s.cache, newer, NULL));
    cache_fill_revalidated(p.fill, &facts);
    struct cache_object *now = stored_ref(&p);
    assert_ptr_equal(now, newer);
    cache_object_unref(&now);
    cache_object_unref(&newer);
    play_close(&p);
}

static struct object_facts facts_varying(struct arena *a, const char *language)
{
    struct request response, request;
    return facts_make(10, cache_vary_make(a, request_make(&response, "Vary", "Accept-Language"),
                                          request_make(&request, "Accept-Language", language)));
}

/* RFC 9111 4.1: known when the head comes. */
static void who_selects_another_variant_goes_apart(void **state)
{
    (void)state;
    struct play p;
    struct request german, french;
    struct cache_fill *first, *second;
    struct arena a;
    arena_init(&a);
    play_open(&p, MiB(16), 0);
    const struct headers *de = request_make(&german, "Accept-Language", "de");
    const struct headers *fr = request_make(&french, "Accept-Language", "fr");
    struct cache *c = p.s.cache;
    assert_int_equal(cache_fill_begin(c, &p.k.key, de, NULL, &p.leader.reader, &p.fill), FILL_LEAD);
    /* nothing is known yet: assumed to suit */
    assert_int_equal(cache_fill_begin(c, &p.k.key, fr, NULL, &p.other[0].reader, &first),
                     FILL_FOLLOW);
    assert_true(cache_fill_suits(first, fr));
    struct object_facts facts = facts_varying(&a, "de");
    cache_fill_head(p.fill, &facts);
    assert_true(cache_fill_suits(first, de));
    assert_false(cache_fill_suits(first, fr));
    cache_reader_detach(&p.other[0].reader);
    assert_int_equal(cache_fill_begin(c, &p.k.key, fr, NULL, &p.other[0].reader, &second),
                     FILL_LEAD);
    assert_int_equal(cache_fill_begin(c, &p.k.key, de, NULL, &p.other[1].reader, &first),
                     FILL_FOLLOW);
    assert_ptr_equal(first, p.fill);
    append_bytes(p.fill, 1, 0, 10);
    assert_true(cache_fill_seal(p.fill));
    cache_fill_fail(second, REASON_ORIGIN_CLOSED);
    cache_reader_detach(&p.other[0].reader);
    cache_reader_detach(&p.other[1].reader);
    cache_fill_done(&second);

    /* From now on the key's Vary is known before a head: others are told apart at once. */
    struct cache_fill *third, *fourth;
    struct request italian;
    const struct headers *it = request_make(&italian, "Accept-Language", "it");
    assert_int_equal(cache_fill_begin(c, &p.k.key, fr, NULL, &p.other[0].reader, &third),
                     FILL_LEAD);
    assert_int_equal(cache_fill_begin(c, &p.k.key, it, NULL, &p.other[1].reader, &fourth),
                     FILL_LEAD);
    assert_int_equal(cache_fill_begin(c, &p.k.key, fr, NULL, &p.other[2].reader, &first),
                     FILL_FOLLOW);
    assert_ptr_equal(first, third);
    cache_fill_release(third);
    cache_fill_release(fourth);
    cache_fill_done(&third);
    cache_fill_done(&fourth);
    play_close(&p);
    arena_fini(&a);
}

/* ---- outgrown -------------------------------------------------------------------------------- */

/* Reads `r` on to what has arrived. */
static void drink(struct play *p, struct watcher *w)
{
    struct cache_object *o = cache_fill_object(p->fill);
    uint64_t arrived = cache_object_arrived(o);
    assert_true(body_is_right(o, 1, w->reader.position, arrived));
    cache_reader_took(&w->reader, arrived);
}

static const struct {
    int64_t length; /* announced */
    uint64_t object_max;
} outgrown[] = {
    { -1, MiB(1) },
    { -1, KiB(100) },
    { -1, KiB(20) },
    { (int64_t)MiB(20), MiB(1) },
    { (int64_t)MiB(20), KiB(20) },
};

static void an_outgrown_fill_is_delivered_in_bounded_memory(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(outgrown); i++) {
        struct play p;
        struct cache_fill *f;
        play_open(&p, MiB(16), outgrown[i].object_max);
        play_lead(&p, NULL);
        assert_int_equal(play_ask(&p, 0, &f), FILL_FOLLOW);
        play_head(&p, outgrown[i].length);
        uint64_t at = 0, most = 0, total = MiB(20);
        unsigned pauses = 0;
        while (at < total) {
            enum fill_result result = append_bytes(p.fill, 1, at, KiB(64));
            at += KiB(64);
            struct cache_usage u;
            cache_usage_read(p.s.cache, &u);
            most = u.filling_bytes > most ? u.filling_bytes : most;
            drink(&p, &p.leader);
            if (result == FILL_PAUSE) {
                mailbox_run(p.s.mailbox);
                unsigned before = rooms;
                pauses++;
                drink(&p, &p.other[0]); /* the slow one: only when nothing else helps */
                mailbox_run(p.s.mailbox);
                assert_int_equal(rooms, before + 1);
            }
        }
        assert_true(cache_fill_is_outgrown(p.fill));
        assert_true(pauses >= 5 && pauses < 40);
        assert_true(most <= outgrown[i].object_max + MiB(1) + KiB(256));
        struct cache_fill *apart;
        assert_int_equal(play_ask(&p, 1, &apart), FILL_LEAD);
        cache_fill_release(apart);
        cache_fill_done(&apart);
        assert_false(cache_fill_seal(p.fill));
        assert_int_equal(cache_fill_state(f), FILL_COMPLETE);
        drink(&p, &p.other[0]);
        assert_int_equal(p.other[0].reader.position, total);
        assert_false(is_stored(&p.s, 1));
        play_close(&p);
    }
}

static void room_comes_when_the_slowest_leaves(void **state)
{
    (void)state;
    struct play p;
    struct cache_fill *f;
    play_open(&p, MiB(16), KiB(100));
    play_lead(&p, NULL);
    play_ask(&p, 0, &f);
    play_head(&p, -1);
    uint64_t at = 0;
    while (append_bytes(p.fill, 1, at, KiB(16)) == FILL_OK) {
        at += KiB(16);
        drink(&p, &p.leader);
        assert_true(at < MiB(2));
    }
    drink(&p, &p.leader);
    mailbox_run(p.s.mailbox);
    assert_int_equal(rooms, 0);
    watcher_done(&p.s, &p.other[0]);
    assert_int_equal(rooms, 1);
    cache_fill_fail(p.fill, REASON_CLIENT_LEFT);
    play_close(&p);
}

/* ---- what breaks ----------------------------------------------------------------------------- */

/* A refresh behind the clients: nobody reads it, who misses meanwhile follows it, and there is one. */
static void a_fill_behind_has_no_reader_until_somebody_follows(void **state)
{
    (void)state;
    struct play p;
    struct cache_fill *f;
    play_open(&p, MiB(16), 0);
    uint64_t before = usage_settled(&p.s).used_bytes;
    assert_true(put(&p.s, 1, 10, true));
    struct cache_object *stale = stored_ref(&p);
    assert_true(cache_fill_begin_behind(p.s.cache, &p.k.key, p.plain, stale, &p.fill));
    assert_ptr_equal(cache_fill_stale(p.fill), stale);
    assert_int_equal(cache_fill_reader_count(p.fill), 0);
    f = p.fill;
    assert_false(cache_fill_begin_behind(p.s.cache, &p.k.key, p.plain, stale, &f));
    assert_null(f);
    assert_int_equal(play_ask(&p, 0, &f), FILL_FOLLOW);
    assert_ptr_equal(f, p.fill);
    assert_int_equal(cache_fill_reader_count(p.fill), 1);
    play_head(&p, 20);
    append_bytes(p.fill, 1, 0, 20);
    assert_true(cache_fill_seal(p.fill));
    cache_fill_done(&p.fill);
    assert_true(body_is_right(cache_fill_object(f), 1, 0, 20));
    watcher_done(&p.s, &p.other[0]);
    assert_int_equal(p.other[0].woken, 1);
    /* without anybody, and by a 304 */
    struct cache_object *now = stored_ref(&p);
    assert_true(cache_fill_begin_behind(p.s.cache, &p.k.key, p.plain, now, &p.fill));
    struct object_facts facts = facts_make(-1, SLICE_NONE);
    cache_fill_revalidated(p.fill, &facts);
    cache_fill_done(&p.fill);
    assert_true(is_stored(&p.s, 1));
    cache_object_unref(&now);
    cache_object_unref(&stale);
    cache_purge_key(p.s.cache, &p.k.key);
    assert_int_equal(usage_settled(&p.s).used_bytes, before);
    play_close(&p);
}

static void so_many_wait_for_one_fill(void **state)
{
    (void)state;
    struct play p;
    struct cache_fill *f;
    play_open(&p, MiB(16), 0);
    struct cache_settings settings = { .variants_max = 8, .collapse_max = 2 };
    cache_change(p.s.cache, &settings);
    play_lead(&p, NULL);
    assert_int_equal(play_ask(&p, 0, &f), FILL_FOLLOW);
    assert_int_equal(play_ask(&p, 1, &f), FILL_FOLLOW);
    assert_int_equal(play_ask(&p, 2, &f), FILL_FULL);
    assert_null(f);
    assert_null(p.other[2].reader.fill);
    watcher_done(&p.s, &p.other[0]); /* one leaves, there is a place */
    assert_int_equal(play_ask(&p, 2, &f), FILL_FOLLOW);
    watcher_done(&p.s, &p.leader); /* the leader's was none of them */
    assert_int_equal(play_ask(&p, 3, &f), FILL_FULL);
    settings.collapse_max = 0;
    cache_change(p.s.cache, &settings);
    assert_int_equal(play_ask(&p, 3, &f), FILL_FOLLOW);
    cache_fill_fail(p.fill, REASON_CLIENT_LEFT);
    cache_fill_done(&p.fill);
    play_close(&p);
}

#ifdef LARDER_TEST_HOOKS
/* Goes through a whole delivery with a reader that keeps up; whether it came whole and right, and
 * is then stored. */
static bool deliver(struct play *p, int64_t announced, uint64_t length, bool *is_whole)
{
    play_lead(p, NULL);
    play_head(p, announced);
    for (uint64_t at = 0; at < length; at += 10000) {
        append_bytes(p->fill, 1, at, length - at < 10000 ? length - at : 10000);
        if (cache_fill_object(p->fill) != NULL)
            drink(p, &p->leader);
    }
    bool stored = cache_fill_seal(p->fill);
    *is_whole = cache_fill_state(p->fill) == FILL_COMPLETE && p->leader.reader.position == length;
    if (!*is_whole)
        assert_int_equal(cache_fill_state(p->fill), FILL_FAILED);
    watcher_done(&p->s, &p->leader);
    cache_fill_done(&p->fill);
    return stored;
}

static void without_a_memfd_large_bodies_pass_through(void **state)
{
    (void)state;
    static const int64_t announced[] = { -1, 300000 };
    for (unsigned i = 0; i < ARRAY_COUNT(announced); i++) {
        struct play p;
        bool is_whole;
        atomic_store(&cache_test_faults[CACHE_FAULT_MEMFD], -1);
        play_open(&p, MiB(16), 0);
        faults_clear();
        assert_false(deliver(&p, announced[i], 300000, &is_whole));
        assert_true(is_whole);
        assert_true(put(&p.s, 2, 60000, true)); /* small ones are stored as ever */
        play_close(&p);
    }
}

static void a_memfd_that_takes_no_more_costs_only_the_storing(void **state)
{
    (void)state;
    static const int64_t announced[] = { -1, 300000 };
    for (unsigned i = 0; i < ARRAY_COUNT(announced); i++) {
        for (int nth = 1; nth < 25; nth += 3) {
            struct play p;
            bool is_whole;
            play_open(&p, MiB(16), 0);
            struct cache_usage before = usage_settled(&p.s);
            atomic_store(&cache_test_faults[CACHE_FAULT_WRITE], nth);
            assert_false(deliver(&p, announced[i], 300000, &is_whole));
            faults_clear();
            assert_true(is_whole);
            assert_int_equal(usage_settled(&p.s).used_bytes, before.used_bytes);
            assert_true(put(&p.s, 1, 300000, true));
            play_close(&p);
        }
    }
}

/* Each allocation fails in its turn: delivered whole, or failed and seen to be; never stored wrong,
 * nothing lost. */
static void any_allocation_may_fail(void **state)
{
    (void)state;
    static const struct {
        int64_t announced;
        uint64_t length;
    } cases[] = {
        { 5000, 5000 }, { -1, 50000 }, { 300000, 300000 }, { -1, 300000 }, { -1, MiB(3) }
    };
    for (unsigned i = 0; i < ARRAY_COUNT(cases); i++) {
        for (int nth = 1; nth < 40; nth++) {
            struct play p;
            bool is_whole;
            play_open(&p, MiB(16), 0);
            struct cache_usage before = usage_settled(&p.s);
            atomic_store(&cache_test_faults[CACHE_FAULT_ALLOC], nth);
            bool stored = deliver(&p, cases[i].announced, cases[i].length, &is_whole);
            faults_clear();
            assert_true(is_whole || !stored);
            assert_int_equal(is_stored(&p.s, 1), stored);
            if (stored) {
                struct cache_object *o = stored_ref(&p);
                assert_true(body_is_right(o, 1, 0, cases[i].length));
                cache_object_unref(&o);
            }
            cache_purge_key(p.s.cache, &p.k.key);
            assert_int_equal(usage_settled(&p.s).used_bytes, before.used_bytes);
            play_close(&p);
        }
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_leads_the_others_follow),
        cmocka_unit_test(the_fill_lives_while_anyone_holds_it),
        cmocka_unit_test(a_released_fill_lets_all_go),
        cmocka_unit_test(a_broken_fill_is_seen_and_never_stored),
        cmocka_unit_test(a_body_of_another_length_is_not_stored),
        cmocka_unit_test(a_purge_beats_a_fill_under_way),
        cmocka_unit_test(a_304_makes_a_new_head_over_the_same_body),
        cmocka_unit_test(a_purge_beats_a_revalidation_under_way),
        cmocka_unit_test(a_late_304_does_not_undo_a_newer_object),
        cmocka_unit_test(who_selects_another_variant_goes_apart),
        cmocka_unit_test(an_outgrown_fill_is_delivered_in_bounded_memory),
        cmocka_unit_test(room_comes_when_the_slowest_leaves),
        cmocka_unit_test(a_fill_behind_has_no_reader_until_somebody_follows),
        cmocka_unit_test(so_many_wait_for_one_fill),
#ifdef LARDER_TEST_HOOKS
        cmocka_unit_test(without_a_memfd_large_bodies_pass_through),
        cmocka_unit_test(a_memfd_that_takes_no_more_costs_only_the_storing),
        cmocka_unit_test(any_allocation_may_fail),
#endif
    };
    return cmocka_run_group_tests(tests, thread_setup, thread_teardown);
}
