/* What the tests of purges share: keys and tags written with '|' for NUL, objects under them. */
#ifndef TESTS_PURGE_HELP_H
#define TESTS_PURGE_HELP_H
#include "tests/unit/cache/store_help.h"

struct text {
    char bytes[256];
    struct slice slice;
};

/* "site|www.example.com/path|cookie=1", tags "a|b|". */
static inline struct slice text_make(struct text *t, const char *from)
{
    size_t length = strlen(from);
    assert_true(length < sizeof t->bytes);
    for (size_t i = 0; i < length; i++)
        t->bytes[i] = from[i] == '|' ? '\0' : from[i];
    return t->slice = (struct slice){ t->bytes, length };
}

struct fetch { /* one fill, with its leader */
    struct watcher w;
    struct text key_text, tag_text;
    struct cache_key key;
    struct object_facts facts;
    struct cache_fill *fill;
};

static inline void fetch_begin(struct store *s, struct fetch *f, const char *key,
                               struct cache_object *stale)
{
    struct request none;
    memset(f, 0, sizeof *f);
    watcher_init(&f->w, s->mailbox);
    f->key = cache_key_of(s->cache, text_make(&f->key_text, key));
    assert_int_equal(cache_fill_begin(s->cache, &f->key, request_make(&none, NULL, NULL), stale,
                                      &f->w.reader, &f->fill),
                     FILL_LEAD);
}

static inline void fetch_head(struct fetch *f, const char *tags)
{
    f->facts = facts_make(10, SLICE_NONE);
    f->facts.tags = text_make(&f->tag_text, tags);
    f->facts.freshness.lifetime_s = 100;
    cache_fill_head(f->fill, &f->facts);
}

/* Whether it is stored then. */
static inline bool fetch_end(struct store *s, struct fetch *f)
{
    append_bytes(f->fill, 1, 0, 10);
    bool is_stored = cache_fill_seal(f->fill);
    assert_int_equal(cache_fill_state(f->fill), FILL_COMPLETE); /* delivered in any case */
    watcher_done(s, &f->w);
    cache_fill_done(&f->fill);
    return is_stored;
}

/* The origin says 304. */
static inline void fetch_revalidated(struct store *s, struct fetch *f, const char *tags)
{
    f->facts = facts_make(-1, SLICE_NONE);
    f->facts.tags = text_make(&f->tag_text, tags);
    f->facts.freshness.lifetime_s = 100;
    cache_fill_revalidated(f->fill, &f->facts);
    assert_int_equal(cache_fill_state(f->fill), FILL_COMPLETE);
    watcher_done(s, &f->w);
    cache_fill_done(&f->fill);
}

static inline void put_tagged(struct store *s, const char *key, const char *tags)
{
    struct fetch f;
    fetch_begin(s, &f, key, NULL);
    fetch_head(&f, tags);
    assert_true(fetch_end(s, &f));
}

/* In a read section. */
static inline struct cache_object *find_text(struct store *s, const char *key)
{
    struct request none;
    struct text t;
    struct cache_object *o;
    struct cache_key k = cache_key_of(s->cache, text_make(&t, key));
    cache_find(s->cache, &k, request_make(&none, NULL, NULL), &o);
    return o;
}

static inline bool has_text(struct store *s, const char *key)
{
    cache_read_begin();
    bool found = find_text(s, key) != NULL;
    cache_read_end();
    return found;
}

/* With a reference for the caller. */
static inline struct cache_object *take_text(struct store *s, const char *key)
{
    cache_read_begin();
    struct cache_object *o = find_text(s, key);
    assert_non_null(o);
    cache_object_ref(o);
    cache_read_end();
    return o;
}

static inline struct cache_purged purge_at(struct store *s, enum purge_what what,
                                           enum purge_how how, const char *text, int64_t now_ms)
{
    struct text t;
    struct cache_purge p = { .what = what, .how = how, .text = text_make(&t, text) };
    struct cache_purged purged;
    cache_purge(s->cache, &p, now_ms, &purged);
    return purged;
}

static inline struct cache_purged purge(struct store *s, enum purge_what what, const char *text)
{
    return purge_at(s, what, PURGE_HARD, text, 1000);
}
#endif
