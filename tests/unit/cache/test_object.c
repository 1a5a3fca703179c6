/* What changes about a stored object: who may refresh it, and when after a failure. And what is
 * kept of its facts. */
#include "tests/unit/cache/purge_help.h"

static void facts_are_copied(void **state)
{
    (void)state;
    struct store s;
    struct fetch f;
    store_open(&s, MiB(16), 0, 8);
    fetch_begin(&s, &f, "site|h/a", NULL);
    f.facts = facts_make(10, SLICE_NONE);
    f.facts.status = 206;
    f.facts.tags = text_make(&f.tag_text, "a|b|");
    f.facts.part = (struct content_range){ .first = 5, .last = 14, .complete = 100 };
    cache_fill_head(f.fill, &f.facts);
    memset(f.tag_text.bytes, 'x', sizeof f.tag_text.bytes);
    assert_true(fetch_end(&s, &f));
    struct cache_object *o = take_text(&s, "site|h/a");
    const struct object_facts *kept = cache_object_facts(o);
    assert_int_equal(kept->tags.len, 4);
    assert_memory_equal(kept->tags.ptr, "a\0b\0", 4);
    assert_true(kept->part.first == 5 && kept->part.last == 14 && kept->part.complete == 100);
    cache_object_unref(&o);
    store_close(&s);
}

enum act { CLAIM, CLAIM_NOT, FAIL, PAUSED, PAUSED_NOT };

static void one_refreshes_at_a_time_and_pauses_after_a_failure(void **state)
{
    (void)state;
    static const struct {
        int64_t now_ms;
        enum act act;
    } rows[] = {
        { 1000, PAUSED_NOT },  { 1000, CLAIM },      { 1000, CLAIM_NOT },   { 60999, CLAIM_NOT },
        { 61000, CLAIM },                                             /* it lapsed */
        { 62000, FAIL },       { 62000, PAUSED },    { 62000, FAIL }, /* another who waited for the
                                                                         same fetch: counts once */
        { 62999, PAUSED },     { 62999, CLAIM_NOT }, { 63000, PAUSED_NOT }, { 63000, CLAIM },
        { 63000, PAUSED_NOT }, { 64000, FAIL },                       /* 2 s */
        { 65999, CLAIM_NOT },  { 66000, CLAIM },     { 66000, FAIL }, /* 4 s */
        { 69999, PAUSED },     { 70000, FAIL },  /* without a claim: a client waited for it; 8 s */
        { 77999, PAUSED },     { 78000, FAIL },  /* 16 s */
        { 94000, FAIL },                         /* 32 s */
        { 125999, PAUSED },    { 126000, FAIL }, /* a minute, and never more */
        { 185999, PAUSED },    { 186000, FAIL },     { 245999, PAUSED },    { 246000, PAUSED_NOT },
        { 246000, CLAIM },
    };
    struct store s;
    store_open(&s, MiB(16), 0, 8);
    put_tagged(&s, "site|h/a", "");
    struct cache_object *o = take_text(&s, "site|h/a");
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        bool is_right = true;
        switch (rows[i].act) {
        case CLAIM: is_right = cache_object_claim_refresh(o, rows[i].now_ms); break;
        case CLAIM_NOT: is_right = !cache_object_claim_refresh(o, rows[i].now_ms); break;
        case FAIL: cache_object_refresh_failed(o, rows[i].now_ms); break;
        case PAUSED: is_right = cache_object_is_paused(o, rows[i].now_ms); break;
        case PAUSED_NOT: is_right = !cache_object_is_paused(o, rows[i].now_ms); break;
        }
        if (!is_right)
            fail_msg("row %zu", i);
    }
    cache_object_unref(&o);
    store_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_copied),
        cmocka_unit_test(one_refreshes_at_a_time_and_pauses_after_a_failure),
    };
    return cmocka_run_group_tests(tests, thread_setup, thread_teardown);
}
