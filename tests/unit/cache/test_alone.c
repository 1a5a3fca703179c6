/* Fills that stand beside all others (an answer that is kept while it goes to one client), and
 * records of what is kept in slices. */
#include "tests/unit/cache/store_help.h"

#include "cache/policy.h"
#include "tests/unit/cache/decide_rows.h"

struct play {
    struct store s;
    struct key_text k;
    struct request none;
    const struct headers *plain;
    struct watcher other;
    struct cache_fill *alone;
};

static void play_open(struct play *p)
{
    memset(p, 0, sizeof *p);
    store_open(&p->s, MiB(16), 0, 8);
    key_make(&p->s, &p->k, 1);
    p->plain = request_make(&p->none, NULL, NULL);
    watcher_init(&p->other, p->s.mailbox);
    p->alone = cache_fill_begin_alone(p->s.cache, &p->k.key, p->plain);
    assert_non_null(p->alone);
}

static void play_head(struct play *p, int64_t length)
{
    struct object_facts facts = facts_make(length, SLICE_NONE);
    cache_fill_head(p->alone, &facts);
}

static void play_close(struct play *p)
{
    watcher_done(&p->s, &p->other);
    if (p->alone != NULL)
        cache_fill_done(&p->alone);
    store_close(&p->s);
}

static void nobody_joins_it(void **state)
{
    (void)state;
    struct play p;
    struct cache_fill *f;
    play_open(&p);
    for (unsigned with_head = 0; with_head < 2; with_head++) {
        assert_int_equal(cache_fill_begin(p.s.cache, &p.k.key, p.plain, NULL, &p.other.reader, &f),
                         FILL_LEAD);
        assert_ptr_not_equal(f, p.alone);
        cache_fill_fail(f, REASON_CLIENT_LEFT);
        cache_reader_detach(&p.other.reader);
        cache_fill_done(&f);
        if (with_head == 0)
            play_head(&p, 1000);
    }
    append_bytes(p.alone, 1, 0, 1000);
    assert_true(cache_fill_seal(p.alone));
    assert_true(is_stored(&p.s, 1));
    play_close(&p);
}

static void what_broke_is_not_kept(void **state)
{
    (void)state;
    struct play p;
    play_open(&p);
    play_head(&p, 1000);
    append_bytes(p.alone, 1, 0, 500);
    cache_fill_fail(p.alone, REASON_CLIENT_LEFT);
    assert_false(is_stored(&p.s, 1));
    play_close(&p);
}

static void a_purge_beats_it(void **state)
{
    (void)state;
    struct play p;
    struct cache_purged purged;
    play_open(&p);
    play_head(&p, 1000);
    struct cache_purge ask = { .what = PURGE_URL, .how = PURGE_HARD, .text = p.k.key.bytes };
    cache_purge(p.s.cache, &ask, 1, &purged);
    assert_int_equal(purged.fills, 1);
    append_bytes(p.alone, 1, 0, 1000);
    assert_false(cache_fill_seal(p.alone));
    assert_false(is_stored(&p.s, 1));
    play_close(&p);
}

/* RFC 9111 3.3: a part answers for its own bytes; a record stands for the whole. */
static void records_are_told_from_parts(void **state)
{
    (void)state;
    static const struct {
        struct content_range part;
        uint16_t status;
        bool is_sliced, has_it;
    } rows[] = {
        { { 0, 0, 0 }, 200, false, true },         { { 0, 99, 1000 }, 206, false, true },
        { { 10, 99, 1000 }, 206, false, false },   { { 0, 0, 1000 }, 206, false, false },
        { { 1, 0, 1000 }, 206, true, true },       { { 1, 0, 1 << 30 }, 206, true, true },
        { { 500, 999, 1000 }, 206, false, false }, { { 0, 49, -1 }, 206, false, true },
    };
    struct row_headers text;
    const struct headers *request = row_headers(&text, "Range: bytes=5-49");
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct object_facts facts = { .status = rows[i].status, .part = rows[i].part };
        assert_int_equal(cache_facts_are_sliced(&facts), rows[i].is_sliced);
        assert_int_equal(cache_object_has_part_for(&facts, request, 0), rows[i].has_it);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_joins_it),
        cmocka_unit_test(what_broke_is_not_kept),
        cmocka_unit_test(a_purge_beats_it),
        cmocka_unit_test(records_are_told_from_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
