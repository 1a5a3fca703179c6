/* Purges: what each mode finds, hard, soft and dry; fills and revalidations under way; nothing left
 * behind. */
#include "tests/unit/cache/purge_help.h"

/* ---- what is found --------------------------------------------------------------------------- */

static const struct stored {
    const char *key, *tags;
} stored[] = {
    /* 0 */ { "site|www.example.com/", "home|" },
    /* 1 */ { "site|www.example.com/blog", "blog|" },
    /* 2 */ { "site|www.example.com/blog|theme=dark", "blog|dark|" },
    /* 3 */ { "site|www.example.com/blog|theme=light", "blog|" },
    /* 4 */ { "site|www.example.com/blog/1", "blog|post-1|" },
    /* 5 */ { "site|www.example.com/blog/1?page=2", "blog|post-1|" },
    /* 6 */ { "site|www.example.com/blogger", "" },
    /* 7 */ { "site|www.example.com:8080/blog", "" },
    /* 8 */ { "site|www.example.com0/blog", "" },
    /* 9 */ { "other|www.example.com/blog/1", "post-1|" },
    /* a */ { "site|example.com/a.css", "" },
    /* b */ { "site|example.com/css/a.css", "" },
    /* c */ { "site|example.com/css/deep/a.css?v=1", "" },
    /* d */ { "|/no-host", "" },
    /* e */ { "site|[::1]:8080/x", "" },
};
enum { STORED = ARRAY_COUNT(stored) };

static void put_all(struct store *s)
{
    for (unsigned i = 0; i < STORED; i++)
        put_tagged(s, stored[i].key, stored[i].tags);
}

static const struct found {
    enum purge_what what;
    const char *text;
    const char *gone; /* of the above */
} found[] = {
    { PURGE_URL, "site|www.example.com/blog", "123" },
    { PURGE_URL, "site|www.example.com/blog|theme=dark", "123" }, /* a request's own key */
    { PURGE_URL, "site|www.example.com/blog/1", "4" },
    { PURGE_URL, "other|www.example.com/blog/1", "9" },
    { PURGE_URL, "site|www.example.com/nothing", "" },
    { PURGE_URL, "site|www.example.com/blog/1?page=2", "5" },
    { PURGE_URL, "site|www.example.com/b", "" },
    { PURGE_PREFIX, "site|www.example.com/blog", "123456" },
    { PURGE_PREFIX, "site|www.example.com/blog/", "45" },
    { PURGE_PREFIX, "site|www.example.com/blog/1?", "5" },
    { PURGE_PREFIX, "site|www.example.com/", "0123456" },
    { PURGE_PREFIX, "other|www.example.com/", "9" },
    { PURGE_PREFIX, "site|", "012345678abce" },
    { PURGE_PREFIX, "nobody|www.example.com/", "" },
    { PURGE_HOST, "www.example.com", "012345679" },
    { PURGE_HOST, "www.example.com:8080", "7" },
    { PURGE_HOST, "www.example.com:80", "" },
    { PURGE_HOST, "example.com", "abc" },
    { PURGE_HOST, "www.example.co", "" },
    { PURGE_HOST, "[::1]", "e" },
    { PURGE_HOST, "[::1]:8080", "e" },
    { PURGE_HOST, "", "d" },
    { PURGE_GLOB, "example.com/*.css", "a" },
    { PURGE_GLOB, "example.com/**.css", "ab" },
    { PURGE_GLOB, "example.com/**.css*", "abc" },
    { PURGE_GLOB, "*.com/*/a.css", "b" },
    { PURGE_GLOB, "**/a.css**", "abc" },
    { PURGE_GLOB, "www.example.com/blog", "123" }, /* whatever else is in the key */
    { PURGE_GLOB, "www.example.com*/blog", "12378" },
    { PURGE_GLOB, "**", "0123456789abcde" },
    { PURGE_GLOB, "no pattern", "" },
    { PURGE_TAG, "blog", "12345" },
    { PURGE_TAG, "post-1", "459" },
    { PURGE_TAG, "dark", "2" },
    { PURGE_TAG, "dark|post-1|home|", "02459" },
    { PURGE_TAG, "dark|blog|dark|", "12345" },
    { PURGE_TAG, "blo", "" },
    { PURGE_TAG, "", "" },
    { PURGE_EVERYTHING, "", "0123456789abcde" },
};

static bool is_gone(const struct found *row, unsigned i)
{
    return strchr(row->gone, "0123456789abcdef"[i]) != NULL;
}

static void check_counts(const struct found *row, const struct cache_purged *p)
{
    if (p->objects != strlen(row->gone) || p->keys != strlen(row->gone) ||
        (p->bytes == 0) != (row->gone[0] == '\0'))
        fail_msg("%d %s: %llu objects, %llu keys", row->what, row->text,
                 (unsigned long long)p->objects, (unsigned long long)p->keys);
    assert_int_equal(p->fills, 0);
}

static void each_mode_finds_what_it_says(void **state)
{
    (void)state;
    struct store s;
    store_open(&s, MiB(16), 0, 8);
    uint64_t before = usage_settled(&s).used_bytes;
    for (unsigned r = 0; r < ARRAY_COUNT(found); r++) {
        const struct found *row = &found[r];
        put_all(&s);
        struct cache_purged dry = purge_at(&s, row->what, PURGE_DRY, row->text, 1000);
        struct cache_purged soft = purge_at(&s, row->what, PURGE_SOFT, row->text, 1000);
        check_counts(row, &dry);
        check_counts(row, &soft);
        for (unsigned i = 0; i < STORED; i++) {
            struct cache_object *o = take_text(&s, stored[i].key);
            if ((cache_object_outdated_ms(o) != 0) != is_gone(row, i))
                fail_msg("%s, soft: %s", row->text, stored[i].key);
            cache_object_unref(&o);
        }
        struct cache_purged hard = purge(&s, row->what, row->text);
        check_counts(row, &hard);
        assert_int_equal(hard.bytes, dry.bytes);
        for (unsigned i = 0; i < STORED; i++)
            if (has_text(&s, stored[i].key) == is_gone(row, i))
                fail_msg("%s: %s", row->text, stored[i].key);
        purge(&s, PURGE_EVERYTHING, "");
        assert_int_equal(usage_settled(&s).used_bytes, before);
    }
    store_close(&s);
}

static void variants_count_one_by_one(void **state)
{
    (void)state;
    struct store s;
    store_open(&s, MiB(16), 0, 8);
    for (unsigned i = 0; i < 3; i++) {
        struct request r;
        char value[2] = { (char)('a' + i), '\0' }, selecting[16];
        int n = snprintf(selecting, sizeof selecting, "x-kind%c=%s%c", 0, value, 0);
        assert_true(put_variant(&s, 1, 10, true, (struct slice){ selecting, (size_t)n },
                                request_make(&r, "X-Kind", value)));
    }
    struct cache_purged p = purge_at(&s, PURGE_HOST, PURGE_DRY, "host.example", 1000);
    assert_true(p.objects == 3 && p.keys == 1);
    p = purge(&s, PURGE_URL, "site|host.example/object/1");
    assert_true(p.objects == 3 && p.keys == 1);
    store_close(&s);
}

/* One key with two objects of a tag is one key. */
static void keys_of_a_tag_are_counted_once(void **state)
{
    (void)state;
    struct store s;
    struct request r;
    struct watcher w;
    struct key_text k;
    struct cache_fill *f;
    struct text tags;
    store_open(&s, MiB(16), 0, 8);
    for (unsigned i = 0; i < 2; i++) {
        char selecting[16];
        int n = snprintf(selecting, sizeof selecting, "x-kind%c=%u%c", 0, i, 0);
        struct object_facts facts = facts_make(0, (struct slice){ selecting, (size_t)n });
        facts.tags = text_make(&tags, "t|");
        watcher_init(&w, s.mailbox);
        cache_fill_begin(s.cache, key_make(&s, &k, 1),
                         request_make(&r, "X-Kind", i == 0 ? "0" : "1"), NULL, &w.reader, &f);
        cache_fill_head(f, &facts);
        assert_true(cache_fill_seal(f));
        watcher_done(&s, &w);
        cache_fill_done(&f);
    }
    struct cache_purged p = purge_at(&s, PURGE_TAG, PURGE_SOFT, "t", 1000);
    assert_true(p.objects == 2 && p.keys == 1);
    p = purge(&s, PURGE_TAG, "t");
    assert_true(p.objects == 2 && p.keys == 1);
    store_close(&s);
}

/* ---- against the obvious way ----------------------------------------------------------------- */

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Short keys of few letters, so that many are beginnings of others. */
static void random_text(unsigned *seed, char *out, unsigned max)
{
    static const char letters[] = "ab/:|?";
    unsigned length = 1 + next_random(seed) % (max - 1);
    for (unsigned i = 0; i < length; i++)
        out[i] = letters[next_random(seed) % 6];
    out[length] = '\0';
}

static bool obviously_fits(enum purge_what what, const char *key, const char *text)
{
    const char *rest = strchr(key, '|'), *wanted = strchr(text, '|');
    size_t site = rest == NULL ? 0 : (size_t)(rest - key);
    size_t wanted_site = wanted == NULL ? 0 : (size_t)(wanted - text);
    bool same_site =
        (rest == NULL) == (wanted == NULL) && site == wanted_site && strncmp(key, text, site) == 0;
    rest = rest == NULL ? key : rest + 1;
    wanted = wanted == NULL ? text : wanted + 1;
    size_t n = strlen(wanted);
    if (what == PURGE_PREFIX)
        return same_site && strncmp(rest, wanted, n) == 0;
    if (what == PURGE_URL) {
        n = strcspn(wanted, "|");
        return same_site && strcspn(rest, "|") == n && strncmp(rest, wanted, n) == 0;
    }
    n = strlen(text);
    return strncmp(rest, text, n) == 0 && (rest[n] == '/' || rest[n] == ':');
}

static void random_keys_go_as_the_obvious_way_says(void **state)
{
    (void)state;
    enum { KEYS = 300, ROUNDS = 60 };
    static char keys[KEYS][12];
    static const enum purge_what modes[] = { PURGE_URL, PURGE_PREFIX, PURGE_HOST };
    struct store s;
    unsigned seed = 7;
    store_open(&s, MiB(16), 0, 8);
    for (unsigned round = 0; round < ROUNDS; round++) {
        char text[12];
        unsigned fits = 0, different = 0;
        for (unsigned i = 0; i < KEYS; i++) {
            random_text(&seed, keys[i], sizeof keys[i]);
            put_tagged(&s, keys[i], "");
        }
        enum purge_what what = modes[round % 3];
        random_text(&seed, text, what == PURGE_URL ? 5 : 4);
        for (unsigned i = 0; i < KEYS; i++) {
            bool is_new = true;
            for (unsigned j = 0; j < i; j++)
                is_new &= strcmp(keys[i], keys[j]) != 0;
            different += is_new;
            fits += is_new && obviously_fits(what, keys[i], text);
        }
        assert_int_equal(usage_settled(&s).objects, different);
        struct cache_purged p = purge(&s, what, text);
        assert_int_equal(p.keys, fits);
        for (unsigned i = 0; i < KEYS; i++)
            if (has_text(&s, keys[i]) == obviously_fits(what, keys[i], text))
                fail_msg("mode %d, \"%s\": \"%s\"", what, text, keys[i]);
        purge(&s, PURGE_EVERYTHING, "");
    }
    store_close(&s);
}

/* ---- fills under way ------------------------------------------------------------------------- */

static const struct against {
    enum purge_what what;
    const char *text;
    bool fits; /* "site|www.example.com/a/b.css|theme=dark", tags "t|u|" */
} against[] = {
    { PURGE_URL, "site|www.example.com/a/b.css", true },
    { PURGE_URL, "site|www.example.com/a/b.css|theme=light", true },
    { PURGE_URL, "site|www.example.com/a", false },
    { PURGE_PREFIX, "site|www.example.com/a/", true },
    { PURGE_PREFIX, "other|www.example.com/a/", false },
    { PURGE_HOST, "www.example.com", true },
    { PURGE_HOST, "example.com", false },
    { PURGE_GLOB, "**.css", true },
    { PURGE_GLOB, "*.css", false },
    { PURGE_TAG, "u", true },
    { PURGE_TAG, "v|t|", true },
    { PURGE_TAG, "v", false },
    { PURGE_EVERYTHING, "", true },
};
static const char against_key[] = "site|www.example.com/a/b.css|theme=dark";

static void a_purge_beats_a_fill(void **state)
{
    (void)state;
    struct store s;
    struct fetch f;
    store_open(&s, MiB(16), 0, 8);
    for (unsigned i = 0; i < ARRAY_COUNT(against); i++) {
        const struct against *row = &against[i];
        for (int how = PURGE_HARD; how <= PURGE_DRY; how++) {
            bool stays = !row->fits || how == PURGE_DRY;
            fetch_begin(&s, &f, against_key, NULL);
            fetch_head(&f, "t|u|");
            struct cache_purged p = purge_at(&s, row->what, (enum purge_how)how, row->text, 1000);
            assert_true(p.objects == 0 && p.fills == row->fits);
            /* who comes after the purge does not follow it */
            struct cache_fill *other;
            struct request none;
            struct watcher w;
            watcher_init(&w, s.mailbox);
            enum fill_begun begun = cache_fill_begin(
                s.cache, &f.key, request_make(&none, NULL, NULL), NULL, &w.reader, &other);
            assert_int_equal(begun, stays ? FILL_FOLLOW : FILL_LEAD);
            watcher_done(&s, &w);
            if (begun == FILL_LEAD) {
                cache_fill_fail(other, REASON_CLIENT_LEFT);
                cache_fill_done(&other);
            }
            assert_int_equal(fetch_end(&s, &f), stays);
            assert_int_equal(has_text(&s, against_key), stays);
            purge(&s, PURGE_EVERYTHING, "");
        }
    }
    store_close(&s);
}

#ifdef LARDER_TEST_HOOKS
static struct store *between_store;
static struct fetch *between_fetch;
static unsigned between_left;

static void end_between(void)
{
    if (between_left > 0 && --between_left == 0)
        assert_false(fetch_end(between_store, between_fetch));
}

/* It began before the purge, and ends when the purge has walked past its place. */
static void a_purge_beats_a_fill_that_ends_between_two_slices(void **state)
{
    (void)state;
    struct store s;
    struct fetch f;
    store_open(&s, MiB(16), 0, 8);
    for (unsigned i = 0; i < ARRAY_COUNT(against); i++) {
        const struct against *row = &against[i];
        if (!row->fits)
            continue;
        put_tagged(&s, "site|www.example.com/other", "t|u|");
        fetch_begin(&s, &f, against_key, NULL);
        fetch_head(&f, "t|u|");
        between_store = &s;
        between_fetch = &f;
        between_left = row->what == PURGE_TAG ? 1 : SHARD_COUNT;
        cache_test_between_slices = end_between;
        purge(&s, row->what, row->text);
        cache_test_between_slices = NULL;
        assert_int_equal(between_left, 0);
        assert_false(has_text(&s, against_key));
        purge(&s, PURGE_EVERYTHING, "");
    }
    store_close(&s);
}
#endif

/* Its head, with the tags, comes after the purge. */
static void a_purge_beats_a_fill_without_a_head(void **state)
{
    (void)state;
    struct store s;
    struct fetch f;
    store_open(&s, MiB(16), 0, 8);
    for (unsigned i = 0; i < ARRAY_COUNT(against); i++) {
        const struct against *row = &against[i];
        fetch_begin(&s, &f, against_key, NULL);
        struct cache_purged p = purge(&s, row->what, row->text);
        assert_int_equal(p.fills, row->fits && row->what != PURGE_TAG);
        fetch_head(&f, "t|u|");
        assert_int_equal(fetch_end(&s, &f), !row->fits);
        purge(&s, PURGE_EVERYTHING, "");
    }
    store_close(&s);
}

static void a_fill_remembers_few_tags_and_then_gives_up(void **state)
{
    (void)state;
    struct store s;
    struct fetch f;
    store_open(&s, MiB(16), 0, 8);
    for (unsigned purges = 3; purges <= 6; purges++) {
        fetch_begin(&s, &f, against_key, NULL);
        for (unsigned i = 0; i < 2 * purges; i++) { /* each twice */
            char tag[16];
            snprintf(tag, sizeof tag, "x%u", i / 2);
            purge(&s, PURGE_TAG, tag);
        }
        purge_at(&s, PURGE_TAG, PURGE_DRY, "t", 1000); /* changes nothing */
        fetch_head(&f, "t|u|");
        assert_int_equal(fetch_end(&s, &f), purges <= 4);
        purge(&s, PURGE_EVERYTHING, "");
    }
    store_close(&s);
}

static void a_purge_beats_a_revalidation(void **state)
{
    (void)state;
    struct store s;
    struct fetch f;
    store_open(&s, MiB(16), 0, 8);
    for (unsigned i = 0; i < ARRAY_COUNT(against); i++) {
        const struct against *row = &against[i];
        for (int how = PURGE_HARD; how <= PURGE_SOFT; how++) {
            put_tagged(&s, against_key, "t|");
            struct cache_object *stale = take_text(&s, against_key), *now;
            fetch_begin(&s, &f, against_key, stale);
            purge_at(&s, row->what, (enum purge_how)how, row->text, 1000);
            fetch_revalidated(&s, &f, "u|");
            /* "u" is a tag that only what the 304 made has: what was stored has it not, and stays
             */
            bool is_met = row->fits && strcmp(row->text, "u") != 0;
            assert_int_equal(has_text(&s, against_key), !(is_met && how == PURGE_HARD));
            if (!is_met || how == PURGE_SOFT) {
                now = take_text(&s, against_key);
                assert_int_equal(now == stale, row->fits);
                assert_int_equal(cache_object_outdated_ms(now) != 0, is_met);
                cache_object_unref(&now);
            }
            cache_object_unref(&stale);
            purge(&s, PURGE_EVERYTHING, "");
        }
    }
    store_close(&s);
}

/* ---- soft ------------------------------------------------------------------------------------ */

static void a_soft_purge_ends_the_lifetime(void **state)
{
    (void)state;
    static const struct {
        int32_t lifetime_s, initial_age_s;
        int64_t purged_ms, now_ms;
        int32_t age_s;
    } rows[] = {
        /* received at 10 s */
        { 100, 0, 0, 30000, 20 },       { 100, 0, 20000, 20000, 100 },
        { 100, 0, 20000, 20999, 100 },  { 100, 0, 20000, 27000, 107 },
        { 100, 0, 20000, 19000, 100 },  /* another thread's clock is behind */
        { 100, 90, 50000, 55000, 135 }, /* was past it already: nothing gets younger */
        { 0, 0, 20000, 25000, 15 },     { INT32_MAX, 0, 20000, 90000, INT32_MAX },
    };
    for (unsigned i = 0; i < ARRAY_COUNT(rows); i++) {
        struct store s;
        struct fetch f;
        store_open(&s, MiB(16), 0, 8);
        fetch_begin(&s, &f, against_key, NULL);
        f.facts = facts_make(10, SLICE_NONE);
        f.facts.received_ms = 10000;
        f.facts.freshness.lifetime_s = rows[i].lifetime_s;
        f.facts.freshness.initial_age_s = rows[i].initial_age_s;
        cache_fill_head(f.fill, &f.facts);
        assert_true(fetch_end(&s, &f));
        if (rows[i].purged_ms > 0) {
            purge_at(&s, PURGE_HOST, PURGE_SOFT, "www.example.com", rows[i].purged_ms);
            /* the first counts, or it would never be old */
            purge_at(&s, PURGE_HOST, PURGE_SOFT, "www.example.com", rows[i].purged_ms + 5000);
        }
        struct cache_object *o = take_text(&s, against_key);
        assert_int_equal(cache_object_outdated_ms(o), rows[i].purged_ms);
        assert_int_equal(cache_object_age_s(o, rows[i].now_ms), rows[i].age_s);
        cache_object_unref(&o);
        store_close(&s);
    }
}

static void a_304_after_a_soft_purge_is_fresh_again(void **state)
{
    (void)state;
    struct store s;
    struct fetch f;
    store_open(&s, MiB(16), 0, 8);
    put_tagged(&s, against_key, "t|");
    purge_at(&s, PURGE_TAG, PURGE_SOFT, "t", 1000);
    struct cache_object *stale = take_text(&s, against_key);
    assert_int_equal(cache_object_outdated_ms(stale), 1000);
    fetch_begin(&s, &f, against_key, stale);
    fetch_revalidated(&s, &f, "t|");
    struct cache_object *fresh = take_text(&s, against_key);
    assert_true(fresh != stale && cache_object_outdated_ms(fresh) == 0);
    cache_object_unref(&fresh);
    cache_object_unref(&stale);
    assert_int_equal(purge(&s, PURGE_TAG, "t").objects, 1);
    store_close(&s);
}

/* ---- many ------------------------------------------------------------------------------------ */

/* More than a slice, with fills coming in between would be another test: here all of it is met. */
static void a_purge_of_many_meets_each_once(void **state)
{
    (void)state;
    enum { MANY = 6000 };
    struct store s;
    char key[64], tags[32];
    store_open(&s, MiB(64), 0, 8);
    uint64_t before = usage_settled(&s).used_bytes;
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "site|host%u.example/page/%u", i % 3, i);
        snprintf(tags, sizeof tags, "all|third-%u|own-%u|", i % 3, i);
        put_tagged(&s, key, tags);
    }
    assert_int_equal(usage_settled(&s).tags, MANY + 4);
    static const struct {
        enum purge_what what;
        const char *text;
        unsigned count;
    } rows[] = { { PURGE_HOST, "host0.example", MANY / 3 },
                 { PURGE_PREFIX, "site|host1.example/page/1", 370 },
                 { PURGE_GLOB, "host*.example/page/*5", MANY / 10 },
                 { PURGE_TAG, "all", MANY },
                 { PURGE_TAG, "third-1|all|", MANY },
                 { PURGE_EVERYTHING, "", MANY } };
    for (unsigned i = 0; i < ARRAY_COUNT(rows); i++)
        for (int how = PURGE_SOFT; how <= PURGE_DRY; how++)
            if (rows[i].what != PURGE_PREFIX)
                assert_int_equal(
                    purge_at(&s, rows[i].what, (enum purge_how)how, rows[i].text, 1000).objects,
                    rows[i].count);
    assert_int_equal(purge(&s, PURGE_TAG, "third-2").objects, MANY / 3);
    assert_int_equal(usage_settled(&s).tags, MANY / 3 * 2 + 3);
    assert_int_equal(purge(&s, PURGE_TAG, "all").objects, MANY / 3 * 2);
    struct cache_usage u = usage_settled(&s);
    assert_true(u.tags == 0 && u.objects == 0);
    assert_int_equal(u.used_bytes, before);
    store_close(&s);
}

static void purges_leave_nothing_behind(void **state)
{
    (void)state;
    struct store s;
    char text[64];
    store_open(&s, MiB(16), 0, 8);
    put_all(&s);
    uint64_t before = usage_settled(&s).used_bytes;
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(text, sizeof text, "site|www.example.com/none/%u", i);
        purge(&s, PURGE_URL, text);
        purge(&s, PURGE_PREFIX, text);
        purge(&s, PURGE_TAG, text + 5);
        snprintf(text, sizeof text, "none%u.example/**", i);
        purge(&s, PURGE_GLOB, text);
        text[strlen(text) - 3] = '\0';
        purge(&s, PURGE_HOST, text);
    }
    assert_int_equal(usage_settled(&s).used_bytes, before);
    assert_int_equal(usage_settled(&s).objects, STORED);
    store_close(&s);
}

static void an_object_has_so_many_tags(void **state)
{
    (void)state;
    struct store s;
    struct fetch f;
    static char tags[TAGS_MAX * 8 + 64];
    size_t length = 0;
    store_open(&s, MiB(16), 0, 8);
    for (unsigned i = 0; i < TAGS_MAX + 5; i++)
        length += (size_t)sprintf(tags + length, "t%u", i) + 1;
    fetch_begin(&s, &f, against_key, NULL);
    f.facts = facts_make(10, SLICE_NONE);
    f.facts.tags = (struct slice){ tags, length };
    cache_fill_head(f.fill, &f.facts);
    assert_true(fetch_end(&s, &f));
    assert_int_equal(usage_settled(&s).tags, TAGS_MAX);
    assert_int_equal(purge(&s, PURGE_TAG, "t255").objects, 1);
    assert_int_equal(usage_settled(&s).tags, 0);
    store_close(&s);
}

/* ---- walks that meet --------------------------------------------------------------------------
 */

static void a_walk_of_a_tag_meets_what_was_there(void **state)
{
    (void)state;
    struct store s;
    struct tag_walk w, other;
    struct cache_object *at[4];
    char key[32];
    store_open(&s, MiB(16), 0, 8);
    for (unsigned i = 0; i < 6; i++) {
        snprintf(key, sizeof key, "site|h/%u", i);
        put_tagged(&s, key, "t|");
    }
    assert_false(tag_walk_begin(s.cache, SLICE("u"), &w));
    assert_true(tag_walk_begin(s.cache, SLICE("t"), &w));
    assert_true(tag_walk_begin(s.cache, SLICE("t"), &other));
    assert_int_equal(tag_walk_next(&w, at, 4), 4); /* the newest first: 5, 4, 3, 2 */
    for (unsigned i = 0; i < 4; i++)
        cache_object_unref(&at[i]);
    put_tagged(&s, "site|h/6", "t|"); /* not met: it came later */
    purge(&s, PURGE_URL, "site|h/1"); /* the next one goes */
    assert_int_equal(tag_walk_next(&w, at, 4), 1);
    cache_object_unref(&at[0]);
    assert_int_equal(tag_walk_next(&w, at, 4), 0);
    tag_walk_end(&w);
    purge(&s, PURGE_EVERYTHING, "");
    assert_int_equal(usage_settled(&s).tags, 1); /* somebody walks it still */
    assert_int_equal(tag_walk_next(&other, at, 4), 0);
    tag_walk_end(&other);
    assert_int_equal(usage_settled(&s).tags, 0);
    store_close(&s);
}

static void gather_key(void *arg, struct cache_object *o)
{
    struct slice key = cache_object_key(o);
    char *to = arg;
    memcpy(to + strlen(to), key.ptr + key.len - 1, 1);
}

static void all_keys_of_a_url_are_visited(void **state)
{
    (void)state;
    struct store s;
    struct text t;
    char ends[16] = "";
    store_open(&s, MiB(16), 0, 8);
    put_all(&s);
    struct cache_key k =
        cache_key_of(s.cache, text_make(&t, "site|www.example.com/blog|theme=blue"));
    cache_read_begin();
    cache_visit_url(s.cache, &k, gather_key, ends);
    cache_read_end();
    assert_int_equal(strlen(ends), 3);
    assert_true(strchr(ends, 'g') && strchr(ends, 'k') && strchr(ends, 't'));
    store_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mode_finds_what_it_says),
        cmocka_unit_test(variants_count_one_by_one),
        cmocka_unit_test(keys_of_a_tag_are_counted_once),
        cmocka_unit_test(random_keys_go_as_the_obvious_way_says),
        cmocka_unit_test(a_purge_beats_a_fill),
#ifdef LARDER_TEST_HOOKS
        cmocka_unit_test(a_purge_beats_a_fill_that_ends_between_two_slices),
#endif
        cmocka_unit_test(a_purge_beats_a_fill_without_a_head),
        cmocka_unit_test(a_fill_remembers_few_tags_and_then_gives_up),
        cmocka_unit_test(a_purge_beats_a_revalidation),
        cmocka_unit_test(a_soft_purge_ends_the_lifetime),
        cmocka_unit_test(a_304_after_a_soft_purge_is_fresh_again),
        cmocka_unit_test(a_purge_of_many_meets_each_once),
        cmocka_unit_test(purges_leave_nothing_behind),
        cmocka_unit_test(an_object_has_so_many_tags),
        cmocka_unit_test(a_walk_of_a_tag_meets_what_was_there),
        cmocka_unit_test(all_keys_of_a_url_are_visited),
    };
    return cmocka_run_group_tests(tests, thread_setup, thread_teardown);
}
