/* cache/cache.h: what is kept and for how long. The front door of the floor (with cache/decide.h).
 *
 * One `struct cache` per process. Objects are immutable once sealed; a reader finds them in a lock-free table inside an RCU
 * read section (cache_read_begin/_end) and takes a reference only to keep one beyond it. A fill (the fetch that makes an object)
 * belongs to the cache: one per key and variant, shared by all workers.
 *
 *   hit     cache_read_begin -> cache_find -> send -> cache_read_end            no shared cache line is written
 *   miss    cache_fill_begin -> LEAD: fetch, then cache_fill_head/_append/_seal or _release or _fail
 *                            -> FOLLOW: wait to be woken, then read the fill's object while it grows
 *
 * Lock order: fill shard, then store shard, then tag shard; never the other way, and none while calling out.
 */
#ifndef CACHE_CACHE_H
#define CACHE_CACHE_H
#include "base/post.h"
#include "base/verdict.h"
#include "cache/decide.h"

struct cache;
struct cache_object; /* one stored response: a head and a share in a body */
struct cache_fill;

struct cache_settings {
    uint64_t memory_bytes;     /* one budget: objects, heads, keys, index, and bodies in flight */
    uint64_t object_max_bytes; /* 0: an eighth of memory_bytes */
    uint32_t variants_max;     /* per key */
    uint32_t uncacheable_ms;   /* how long a key is remembered as uncacheable */
    uint32_t collapse_max;     /* readers that may wait for one fill; 0: no bound */
};
struct cache *cache_new(const struct cache_settings *settings);
/* No reader, fill or reference is left. */
void cache_free(struct cache **c);
/* The live items after a reload (memory_bytes is not among them). Any thread. */
void cache_change(struct cache *c, const struct cache_settings *settings);

/* Each thread that calls anything here but cache_usage_read(): once at its start and end. Around
 * everything that uses borrowed objects: begin/end; nothing in between may wait. */
void cache_thread_register(void);
void cache_thread_unregister(void);
void cache_read_begin(void);
void cache_read_end(void);

/* ---- keys ------------------------------------------------------------------------------------ */

struct cache_key {
    struct slice bytes; /* canonical; cache_key_write() */
    uint64_t high, low; /* 128-bit XXH3 of bytes, seeded per process */
};
/* `bytes` are borrowed. */
struct cache_key cache_key_of(struct cache *c, struct slice bytes);

/* ---- lookup ---------------------------------------------------------------------------------- */

enum cache_found {
    CACHE_MISS,          /* nothing under this key */
    CACHE_OTHER_VARIANT, /* something, but no variant that this request selects */
    CACHE_FOUND,         /* *object: borrowed until cache_read_end() */
};
/* Within a read section. Marks the object as used. Freshness is the caller's to judge. */
enum cache_found cache_find(struct cache *c, const struct cache_key *key,
                            const struct headers *request, struct cache_object **object);
/* Whether the last answer for this key could not be shared (remembered for uncacheable_ms in a few
 * bytes, lossy). */
bool cache_is_uncacheable(struct cache *c, const struct cache_key *key, int64_t now_ms);
void cache_remember_uncacheable(struct cache *c, const struct cache_key *key, int64_t now_ms);

/* ---- objects --------------------------------------------------------------------------------- */

/* What is known of a stored response besides its bytes. Copied in by cache_object_new(). */
struct object_facts {
    uint16_t status;
    struct freshness freshness;
    int64_t received_ms; /* monotonic */
    struct slice
        head; /* status line and fields ready to send, each line with CRLF, without the empty line,
                 without Age, Connection, Content-Length, Transfer-Encoding, Cache-Status */
    struct slice selecting;                      /* cache_vary_make() */
    struct validators validators;                /* its etag is copied too */
    struct slice content_encoding, content_type; /* empty when none */
    int64_t length_bytes; /* of the body, -1 when not known yet (chunked, until close) */
    struct slice tags;    /* cache_tags_make(); each with a NUL behind it; empty: none */
    struct content_range part; /* status 206: which bytes of the representation; complete -1: unknown */
};
/* Whether it is only a record: of a representation that is kept in slices, under keys of their own. Its head is that of
 * the whole answer, its part has no bytes (`first` behind `last`) but the complete length, its body is empty. */
static inline bool cache_facts_are_sliced(const struct object_facts *o)
{
    return o->status == 206 && o->part.first > o->part.last;
}
/* The facts, for as long as the object is. `length_bytes` is -1 until a body of unknown length is
 * sealed: use cache_object_length. */
const struct object_facts *cache_object_facts(const struct cache_object *o);
struct slice cache_object_key(const struct cache_object *o);

enum object_state { OBJECT_FILLING, OBJECT_COMPLETE, OBJECT_FAILED };
enum object_state cache_object_state(const struct cache_object *o);
/* Bytes of body that have arrived; acquire. All of it when COMPLETE. Read the state first, then the
 * length. */
uint64_t cache_object_arrived(const struct cache_object *o);
/* Total length or -1 while not known. */
int64_t cache_object_length(const struct cache_object *o);

/* A stretch of body at `offset`, within what has arrived: in memory (mem != NULL), or in a file for
 * sendfile. It may be shorter than what has arrived; empty (length 0) only at the end of what has
 * arrived. Borrowed like the object; but of an object that was FILLING when it was asked for, only
 * until the reader says cache_reader_took() beyond it or detaches: ask anew for each send. */
struct object_piece {
    const char *mem;
    int fd;
    uint64_t at; /* offset in fd */
    size_t length;
};
struct object_piece cache_object_piece(const struct cache_object *o, uint64_t offset);

/* From borrowed (in a read section) to kept: false when its last reference has just gone: treat as
 * a miss. */
must_check bool cache_object_try_ref(struct cache_object *o);
struct cache_object *cache_object_ref(struct cache_object *o); /* the caller holds one already */
void cache_object_unref(struct cache_object **o);

/* What changes about an object that is stored, in one word each; any thread, no lock. */

/* When a soft purge made it stale (monotonic), 0: it did not. Its lifetime counts as over since then, and nothing
 * forbids to serve it within its stale_… times. */
int64_t cache_object_outdated_ms(const struct cache_object *o);
/* The age to judge it by: as cache_age_s(), but never below the lifetime when it was outdated. Seconds past the lifetime
 * then count from the purge. */
int32_t cache_object_age_s(const struct cache_object *o, int64_t now_ms);
/* One refresh behind the clients at a time, over all workers: true for the one who is to begin it. False while one is
 * under way, or within the pause after one that failed. A claim lapses after a minute. */
must_check bool cache_object_claim_refresh(struct cache_object *o, int64_t now_ms);
/* The refresh that was claimed came to nothing: the next one may be begun after a pause, 1 s at first, doubled each time
 * up to a minute. Also after a failed revalidation that a client waited for. */
void cache_object_refresh_failed(struct cache_object *o, int64_t now_ms);
/* Whether the last try failed and its pause is not over: what is stale may be served without asking. */
bool cache_object_is_paused(const struct cache_object *o, int64_t now_ms);

/* ---- fills ----------------------------------------------------------------------------------- */

/* One who waits for a fill or reads from it. Embedded in the waiter; woken by a post to its
 * mailbox, coalesced. */
struct cache_reader {
    struct post post; /* run() is the waiter's: it looks at cache_fill_state() and at the object */
    struct mailbox *mailbox;
    struct cache_fill *fill;           /* NULL when not attached */
    struct cache_reader *next, **prev; /* under the fill's lock */
    uint64_t position; /* body bytes taken so far: cache_reader_took(); bounds what an outgrown fill
                          keeps */
    bool is_leader;
};

enum fill_state {
    FILL_WAITING,   /* no head yet */
    FILL_STREAMING, /* cache_fill_object() grows */
    FILL_COMPLETE,  /* the object is COMPLETE (a 304 comes here straight from WAITING, with a new
                       head over the old body) */
    FILL_RELEASED,  /* the answer cannot be shared: fetch on your own, in parallel */
    FILL_FAILED,    /* broke: before the head, there is no object; after it, the object is FAILED */
};

enum fill_begun {
    FILL_LEAD,   /* *fill is new: the caller fetches. The reader is attached as the leader. */
    FILL_FOLLOW, /* *fill is another's; the reader is attached */
    FILL_FULL,   /* collapse_max requests wait for it already: nothing is attached, *fill is NULL */
};
/* Looks for a fill that would answer this request, or begins one. With `stale` (may be NULL), the
 * fill revalidates that object: the fill takes a reference of its own (cache_fill_stale() is NULL
 * when the last one had just gone: fetch it whole). After FILL_LEAD, look again with cache_find():
 * a fill that ended between the caller's look and this call has stored what is wanted. Attaches
 * `reader` (its post and mailbox set) in both cases. Any thread. */
enum fill_begun cache_fill_begin(struct cache *c, const struct cache_key *key,
                                 const struct headers *request, struct cache_object *stale,
                                 struct cache_reader *reader, struct cache_fill **fill);
/* A request that would follow, but whose own selecting values turn out to differ from the object's
 * (Vary, known since the head came): detach, then cache_fill_begin() again: it will not be given
 * the same fill. */
bool cache_fill_suits(struct cache_fill *f, const struct headers *request);
/* A fill beside all others that nobody else joins: of an answer that goes to one client at that client's own pace, and is
 * kept besides. Nobody reads it; the caller feeds and ends it as one who got FILL_LEAD. */
struct cache_fill *cache_fill_begin_alone(struct cache *c, const struct cache_key *key,
                                          const struct headers *request);
/* The same for a refresh behind the clients: a fill that nobody reads (yet: who misses meanwhile follows it). False: one
 * is under way already; *fill is NULL. */
must_check bool cache_fill_begin_behind(struct cache *c, const struct cache_key *key,
                                        const struct headers *request, struct cache_object *stale,
                                        struct cache_fill **fill);

/* What cache_fill_begin() would say, and how many read from the fill that is under way: for explain.
 * Only looks. Any thread. */
enum fill_begun cache_fill_peek(struct cache *c, const struct cache_key *key,
                                const struct headers *request, unsigned *reader_count);

enum fill_state cache_fill_state(struct cache_fill *f);
/* The reason given to cache_fill_fail(). */
enum reason cache_fill_fault(struct cache_fill *f);
/* STREAMING, COMPLETE, FAILED after the head: the object, borrowed as long as the reader is
 * attached. Else NULL. */
struct cache_object *cache_fill_object(struct cache_fill *f);
struct cache_object *cache_fill_stale(struct cache_fill *f);
struct slice cache_fill_key(const struct cache_fill *f);
/* Detaches; how many readers are left. A post under way still runs: the waiter's memory must last
 * until then (reader.post.is_posted). The fill itself lives while its leader's fetch or any reader
 * holds it. */
unsigned cache_reader_detach(struct cache_reader *r);
unsigned cache_fill_reader_count(struct cache_fill *f);
/* Delivered, but not to be stored: above object_max_bytes, or there was no memory for it. */
bool cache_fill_is_outgrown(struct cache_fill *f);
/* What this reader has taken; may let a fill that outgrew the memory go on (its `on_room` is
 * posted). */
void cache_reader_took(struct cache_reader *r, uint64_t position);

/* The fetch's side: one thread, the one that got FILL_LEAD. Exactly one of release, seal,
 * revalidated, fail ends it; then _done. When the system has no memory at all, the fill fails by
 * itself (ORIGIN_BUSY): later calls then do nothing. */
enum fill_result {
    FILL_OK,
    FILL_PAUSE, /* taken, but it outgrew the memory: read no more from the origin until `on_room`
                   runs */
};
/* Followers may begin. Not storable after all? Then cache_fill_release() instead. */
void cache_fill_head(struct cache_fill *f, const struct object_facts *facts);
/* Copies; at most 1 MiB at a time. A body above cache.object_max_bytes, or for which no memory can
 * be had, is no longer stored: the fill is taken off the index, goes on for those who follow it,
 * and keeps no more than what the slowest of them has yet to take, within a bound (PAUSE). */
must_check enum fill_result cache_fill_append(struct cache_fill *f, struct slice bytes);
/* Posted to the leader's mailbox when a paused fill may go on. Set before append. */
void cache_fill_on_room(struct cache_fill *f, struct mailbox *m, struct post *post);
/* The whole body came: published, unless it was outgrown or purged meanwhile. True when it is
 * stored now. A body that is shorter than its announced length is a cut one: the fill is FAILED
 * then (ORIGIN_CUT). */
bool cache_fill_seal(struct cache_fill *f);
/* Objects under this key that have a strong ETag, newest first, each with a reference for the caller; how many. Within a read
 * section. */
unsigned cache_find_tagged(struct cache *c, const struct cache_key *key, struct cache_object **at,
                           unsigned most);
/* Before cache_fill_revalidated() of a fill that began without a stale object: the other variant that the origin's 304 is
 * about. It stays stored, beside the new one. */
void cache_fill_adopt(struct cache_fill *f, struct cache_object *o);
/* 304: a new head over the stale object's body, published (unless purged, or a newer object took
 * the stale one's place). `facts` as for cache_fill_head (length_bytes ignored). */
void cache_fill_revalidated(struct cache_fill *f, const struct object_facts *facts);
void cache_fill_release(struct cache_fill *f);
void cache_fill_fail(struct cache_fill *f, enum reason why);
/* The fetch lets go of the fill. */
void cache_fill_done(struct cache_fill **f);

/* ---- getting rid of -------------------------------------------------------------------------- */

/* All variants under this key; a fill under way is delivered but not stored. How many objects went.
 * Any thread. */
unsigned cache_purge_key(struct cache *c, const struct cache_key *key);

enum purge_what {
    PURGE_URL,    /* `text` is a key: that key, and every key with the same URL and other fields or cookies in it */
    PURGE_PREFIX, /* `text` is a key's beginning: "site NUL host[:port]/path…" */
    PURGE_HOST,   /* `text` is "host" or "host:port" (without: every port), whatever the site */
    PURGE_GLOB,   /* `text` is a pattern for "host[:port]/path[?query]": '*' is anything but '/', '**' anything, '?' stands
                     for itself, '\\' takes the next character as it is */
    PURGE_TAG,    /* `text` is a tag, or several as cache_tags_make() writes them: what has one of them */
    PURGE_EVERYTHING,
};
enum purge_how { PURGE_HARD, PURGE_SOFT, PURGE_DRY };
struct cache_purge {
    enum purge_what what;
    enum purge_how how;
    struct slice text;
};
struct cache_purged {
    uint64_t objects; /* went, or were made stale, or would have been; variants count one by one */
    uint64_t keys;
    uint64_t bytes;   /* of bodies and heads */
    uint64_t fills;   /* under way, whose result will not be stored */
};
/* Any thread; a large one better not within a read section. Costs what it finds (a glob: what its literal beginning
 * finds), in slices, so that no lock is held for long. What a fill that began before would publish is caught; what began
 * later is new, and stays unless the purge comes past it. Objects that a soft purge met before count, too. */
void cache_purge(struct cache *c, const struct cache_purge *p, int64_t now_ms, struct cache_purged *out);
/* For `larder purge` and configuration checks: false and a sentence when it is no pattern. */
must_check bool cache_glob_check(struct slice pattern, const char **why);
bool cache_glob_matches(struct slice pattern, struct slice text);

/* What is stored under a key and all keys of the same URL, for explain: within a read section. */
typedef void cache_visit_f(void *arg, struct cache_object *o);
void cache_visit_url(struct cache *c, const struct cache_key *key, cache_visit_f *visit, void *arg);
/* One object, if it is still the one stored. */
void cache_drop(struct cache *c, struct cache_object *o);

/* ---- figures --------------------------------------------------------------------------------- */

struct cache_usage {
    uint64_t budget_bytes, used_bytes;
    uint64_t body_memory_bytes, body_file_bytes, head_bytes, index_bytes, filling_bytes,
        other_bytes;   /* sum: used */
    uint64_t objects;  /* stored */
    uint64_t variants; /* of these, the ones that Vary tells apart */
    uint64_t fills, evicted, evicted_bytes, uncacheable_known;
    uint64_t variant_cap_hits;
    uint64_t tags; /* different ones that stored objects have */
};
void cache_usage_read(struct cache *c, struct cache_usage *out);
#endif
