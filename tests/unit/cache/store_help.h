/* What the tests of the memory store share: a store with a loop, objects whose every byte follows
 * from their number, and a reader that counts its wake-ups. Each byte is derived, so one byte of
 * another body shows. */
#ifndef TESTS_STORE_HELP_H
#define TESTS_STORE_HELP_H
#include "cache/cache_internal.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these first */
#include <cmocka.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct store {
    struct cache *cache;
    struct event_base *base;
    struct mailbox *mailbox;
};

struct watcher {
    struct cache_reader reader;
    unsigned woken;
};

struct key_text {
    char text[64];
    struct cache_key key;
};

static inline void store_open(struct store *s, uint64_t memory_bytes, uint64_t object_max,
                              uint32_t variants_max)
{
    struct cache_settings settings = { .memory_bytes = memory_bytes,
                                       .object_max_bytes = object_max,
                                       .variants_max = variants_max,
                                       .uncacheable_ms = 1000 };
    s->cache = cache_new(&settings);
    s->base = event_base_new();
    s->mailbox = mailbox_new(s->base);
}

static inline void store_close(struct store *s)
{
    mailbox_free(&s->mailbox);
    event_base_free(s->base);
    cache_free(&s->cache);
}

static inline const struct cache_key *key_make(struct store *s, struct key_text *k, unsigned number)
{
    int n = snprintf(k->text, sizeof k->text, "site%chost.example/object/%u", 0, number);
    k->key = cache_key_of(s->cache, (struct slice){ k->text, (size_t)n });
    return &k->key;
}

static inline uint64_t word_at(unsigned number, uint64_t index)
{
    uint64_t x = (index + 1) * 0x9e3779b97f4a7c15ull ^ (number + 1ull) * 0xd6e8feb86659fd93ull;
    return x ^ x >> 29;
}

static inline char byte_at(unsigned number, uint64_t offset)
{
    return (char)(word_at(number, offset / 8) >> offset % 8 * 8);
}

static inline void bytes_make(char *to, unsigned number, uint64_t offset, size_t length)
{
    size_t i = 0;
    while (i < length) {
        if (offset % 8 == 0 && length - i >= 8) {
            uint64_t word = word_at(number, offset / 8);
            memcpy(to + i, &word, 8);
            i += 8;
            offset += 8;
        } else {
            to[i++] = byte_at(number, offset++);
        }
    }
}

static inline void on_watcher(struct post *post)
{
    CONTAINER_OF(post, struct watcher, reader.post)->woken++;
}

static inline void watcher_init(struct watcher *w, struct mailbox *m)
{
    memset(w, 0, sizeof *w);
    w->reader.post.run = on_watcher;
    w->reader.mailbox = m;
}

/* Requests with up to two fields. */
struct request {
    struct header storage[2];
    struct headers headers;
};

static inline const struct headers *request_make(struct request *r, const char *name,
                                                 const char *value)
{
    headers_init(&r->headers, r->storage, 2);
    if (name != NULL && !headers_add(&r->headers, slice_of(name), slice_of(value)))
        abort();
    return &r->headers;
}

static inline struct object_facts facts_make(int64_t length, struct slice selecting)
{
    return (struct object_facts){
        .status = 200,
        .head = SLICE("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"),
        .selecting = selecting,
        .validators = { .etag = SLICE("\"v1\""), .last_modified_s = -1, .date_s = -1 },
        .content_type = SLICE("text/plain"),
        .length_bytes = length
    };
}

/* Adds `length` bytes of object `number` from `offset`; the last result. */
static inline enum fill_result append_bytes(struct cache_fill *f, unsigned number, uint64_t offset,
                                            uint64_t length)
{
    static _Thread_local char chunk[16384];
    enum fill_result result = FILL_OK;
    while (length > 0) {
        size_t n = length < sizeof chunk ? (size_t)length : sizeof chunk;
        bytes_make(chunk, number, offset, n);
        result = cache_fill_append(f, (struct slice){ chunk, n });
        offset += n;
        length -= n;
    }
    return result;
}

/* The mail that is waiting is run, so that nothing points at the watcher any more. */
static inline void watcher_done(struct store *s, struct watcher *w)
{
    cache_reader_detach(&w->reader);
    mailbox_run(s->mailbox);
}

/* A whole fill. True when it is stored. */
static inline bool put_variant(struct store *s, unsigned number, uint64_t length, bool is_known,
                               struct slice selecting, const struct headers *headers)
{
    struct key_text k;
    struct watcher w;
    struct cache_fill *f;
    struct object_facts facts = facts_make(is_known ? (int64_t)length : -1, selecting);
    watcher_init(&w, s->mailbox);
    if (cache_fill_begin(s->cache, key_make(s, &k, number), headers, NULL, &w.reader, &f) !=
        FILL_LEAD)
        abort();
    cache_fill_head(f, &facts);
    append_bytes(f, number, 0, length);
    bool is_stored = cache_fill_seal(f);
    watcher_done(s, &w);
    cache_fill_done(&f);
    return is_stored;
}

static inline bool put(struct store *s, unsigned number, uint64_t length, bool is_known)
{
    struct request none;
    return put_variant(s, number, length, is_known, SLICE_NONE, request_make(&none, NULL, NULL));
}

/* Whether the bytes from `offset` up to `end` are the ones of object `number`. */
static inline bool body_is_right(const struct cache_object *o, unsigned number, uint64_t offset,
                                 uint64_t end)
{
    static _Thread_local char got[65536], want[65536];
    while (offset < end) {
        struct object_piece p = cache_object_piece(o, offset);
        if (p.length == 0)
            return false;
        size_t n = p.length < sizeof got ? p.length : sizeof got;
        n = n < end - offset ? n : (size_t)(end - offset);
        bytes_make(want, number, offset, n);
        const char *at = p.mem;
        if (at == NULL) {
            if (pread(p.fd, got, n, (off_t)p.at) != (ssize_t)n)
                return false;
            at = got;
        }
        if (memcmp(at, want, n) != 0)
            return false;
        offset += n;
    }
    return true;
}

/* In a read section: the object, or NULL. */
static inline struct cache_object *find(struct store *s, unsigned number)
{
    struct key_text k;
    struct request none;
    struct cache_object *o;
    cache_find(s->cache, key_make(s, &k, number), request_make(&none, NULL, NULL), &o);
    return o;
}

static inline bool is_stored(struct store *s, unsigned number)
{
    cache_read_begin();
    bool found = find(s, number) != NULL;
    cache_read_end();
    return found;
}

/* After everything that was dropped is freed. */
static inline struct cache_usage usage_settled(struct store *s)
{
    struct cache_usage u;
    cache_settle();
    cache_usage_read(s->cache, &u);
    return u;
}

static inline void faults_clear(void)
{
#ifdef LARDER_TEST_HOOKS
    for (unsigned i = 0; i < CACHE_FAULT_COUNT; i++)
        atomic_store(&cache_test_faults[i], 0);
#endif
}

static inline int thread_setup(void **state)
{
    (void)state;
    cache_thread_register();
    return 0;
}

static inline int thread_teardown(void **state)
{
    (void)state;
    cache_thread_unregister();
    return 0;
}
#endif
