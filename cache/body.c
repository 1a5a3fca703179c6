/* cache/body.c: the bytes of one body, shared by all heads over it (a 304 makes a new head over the
 * same body).
 *
 * Where bytes lie
 *   length known, below 64 KiB    one block of exactly that size
 *   length known, 64 KiB or more  a range of the memfd; a page is counted when its first byte comes
 *   length unknown                segments of 4, 4, 8, 16, 32 KiB, which never move, so readers may
 * follow; then a range of the memfd. At the end the segments become one exact block. outgrown (not
 * to be stored)   what had come stays where it is and is freed from the front as readers take it;
 * what comes now goes to a window, a ring of blocks
 *
 * Life     body_new -> body_append … -> body_seal -> body_stored -> last body_unref
 *                 '-> body_outgrow -> body_window_append / body_forget … -> last body_unref
 * Threads  one writer. Readers on any thread look by body_piece(), never past `arrived`, which is
 * released after the bytes and everything needed to find them. An outgrown body changes under its
 * fill's lock.
 */
#include "cache/cache_internal.h"

/* ---- places ---------------------------------------------------------------------------------- */

static unsigned segment_index(uint64_t offset)
{
    uint64_t unit = offset / BODY_SEGMENT_MIN;
    return unit == 0 ? 0 : 64 - (unsigned)__builtin_clzll(unit);
}

static uint64_t segment_start(unsigned i)
{
    return i == 0 ? 0 : (uint64_t)BODY_SEGMENT_MIN << (i - 1);
}

static uint64_t segment_size(unsigned i)
{
    return i == 0 ? BODY_SEGMENT_MIN : segment_start(i);
}

static_assert(BODY_SEGMENT_MIN << (BODY_SEGMENTS - 1) == BODY_MEMORY_MAX,
              "the segments together are the part of a body that lies in memory");

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t window_start(const struct body_growth *g)
{
    return g == NULL ? UINT64_MAX : atomic_load_explicit(&g->window_from, memory_order_relaxed);
}

static struct object_piece memory_piece(const char *mem, uint64_t length)
{
    return (struct object_piece){ .mem = mem, .fd = -1, .length = (size_t)length };
}

static struct object_piece window_piece(const struct body_growth *g, uint64_t offset, uint64_t end)
{
    uint64_t at = offset - window_start(g);
    uint64_t within = at % BODY_WINDOW_CHUNK;
    const char *chunk = g->window[at / BODY_WINDOW_CHUNK % BODY_WINDOW_SLOTS];
    return memory_piece(chunk + within, least(end - offset, BODY_WINDOW_CHUNK - within));
}

static struct object_piece segment_piece(const struct body_growth *g, uint64_t offset, uint64_t end)
{
    unsigned i = segment_index(offset);
    uint64_t within = offset - segment_start(i);
    return memory_piece(g->segments[i] + within, least(end - offset, segment_size(i) - within));
}

struct object_piece body_piece(const struct cache *c, const struct cache_body *b, uint64_t offset)
{
    uint64_t end = atomic_load_explicit(&b->arrived, memory_order_acquire);
    if (offset >= end)
        return memory_piece(NULL, 0);
    const char *whole = atomic_load_explicit(&b->whole, memory_order_acquire);
    const struct body_growth *g = atomic_load_explicit(&b->growth, memory_order_acquire);
    /* Relaxed is enough: the start was set before any byte beyond it was released. */
    if (offset >= window_start(g))
        return window_piece(g, offset, end);
    end = least(end, window_start(g));
    if (offset >= b->memory_end)
        return (struct object_piece){ .fd = c->extents.fd,
                                      .at = b->file_at + offset - b->memory_end,
                                      .length = (size_t)(end - offset) };
    end = least(end, b->memory_end);
    if (whole == NULL && g == NULL) /* sealed between the two loads: the block was set first */
        whole = atomic_load_explicit(&b->whole, memory_order_acquire);
    if (whole != NULL)
        return memory_piece(whole + offset, end - offset);
    return segment_piece(g, offset, end);
}

/* ---- life ------------------------------------------------------------------------------------ */

static struct cache_body *body_empty(struct cache *c, int64_t length)
{
    struct cache_body *b = memory_block_beyond(c, MEMORY_HEAD, sizeof *b);
    if (b == NULL)
        return NULL;
    memset(b, 0, sizeof *b);
    atomic_init(&b->refs, 1);
    atomic_init(&b->length, length);
    return b;
}

static struct body_growth *growth_new(struct cache *c)
{
    struct body_growth *g = memory_block_beyond(c, MEMORY_FILLING, sizeof *g);
    if (g == NULL)
        return NULL;
    memset(g, 0, sizeof *g);
    atomic_init(&g->window_from, UINT64_MAX);
    return g;
}

static bool place_small(struct cache *c, struct cache_body *b, uint64_t length)
{
    if (length == 0)
        return true;
    char *whole = memory_block(c, MEMORY_FILLING, (size_t)length);
    if (whole == NULL)
        return false;
    atomic_init(&b->whole, whole);
    b->memory_end = length;
    return true;
}

static bool place_large(struct cache *c, struct cache_body *b, uint64_t length)
{
    b->file_capacity = length;
    return extent_reserve(&c->extents, length, &b->file_at);
}

static bool place_unknown(struct cache *c, struct cache_body *b, uint64_t max)
{
    b->memory_end = BODY_MEMORY_MAX;
    b->file_capacity = max > BODY_MEMORY_MAX ? max - BODY_MEMORY_MAX : 0;
    struct body_growth *g = growth_new(c);
    atomic_init(&b->growth, g);
    return g != NULL;
}

struct cache_body *body_new(struct cache *c, int64_t length, uint64_t max)
{
    struct cache_body *b = body_empty(c, length);
    if (b == NULL)
        return NULL;
    bool placed;
    if (length < 0)
        placed = place_unknown(c, b, max);
    else if (length < BODY_MEMORY_MAX)
        placed = place_small(c, b, (uint64_t)length);
    else
        placed = place_large(c, b, (uint64_t)length);
    if (placed)
        return b;
    body_unref(c, b);
    return NULL;
}

struct cache_body *body_new_window(struct cache *c, int64_t length)
{
    struct cache_body *b = body_empty(c, length);
    if (b != NULL && !body_outgrow(c, b)) {
        body_unref(c, b);
        return NULL;
    }
    return b;
}

struct cache_body *body_ref(struct cache_body *b)
{
    uint32_t before = atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    CHECK(before > 0);
    return b;
}

/* Gives back pages at the front of what the memfd holds. */
static void file_free(struct cache *c, struct cache_body *b, uint64_t from, uint64_t bytes)
{
    b->file_bytes -= bytes;
    if (extent_punch(&c->extents, b->file_at + from, bytes))
        memory_give(c, b->is_stored ? MEMORY_FILE : MEMORY_FILLING, bytes);
}

/* Readers can reach a body only through a head, and a head waits for its grace period before it
 * lets go: no second one. */
void body_unref(struct cache *c, struct cache_body *b)
{
    uint32_t before = atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel);
    CHECK(before > 0);
    if (before > 1)
        return;
    enum memory_kind kind = b->is_stored ? MEMORY_BODY : MEMORY_FILLING;
    struct body_growth *g = atomic_load_explicit(&b->growth, memory_order_relaxed);
    file_free(c, b, g == NULL ? 0 : g->file_punched, b->file_bytes);
    memory_block_free(c, kind, atomic_load_explicit(&b->whole, memory_order_relaxed));
    body_growth_free(c, g, kind);
    memory_block_free(c, MEMORY_HEAD, b);
}

void body_growth_free(struct cache *c, struct body_growth *g, enum memory_kind kind)
{
    if (g == NULL)
        return;
    for (unsigned i = 0; i < BODY_SEGMENTS; i++)
        memory_block_free(c, kind, g->segments[i]);
    for (unsigned i = 0; i < BODY_WINDOW_SLOTS; i++)
        memory_block_free(c, kind, g->window[i]);
    memory_block_free(c, kind, g);
}

static uint64_t memory_bytes(struct cache_body *b)
{
    struct body_growth *g = atomic_load_explicit(&b->growth, memory_order_relaxed);
    uint64_t sum = memory_block_bytes(atomic_load_explicit(&b->whole, memory_order_relaxed));
    if (g == NULL)
        return sum;
    for (unsigned i = 0; i < BODY_SEGMENTS; i++)
        sum += memory_block_bytes(g->segments[i]);
    for (unsigned i = 0; i < BODY_WINDOW_SLOTS; i++)
        sum += memory_block_bytes(g->window[i]);
    return sum + memory_block_bytes(g);
}

uint64_t body_bytes(struct cache_body *b)
{
    return memory_bytes(b) + b->file_bytes + memory_block_bytes(b);
}

/* ---- growing --------------------------------------------------------------------------------- */

static void arrive(struct cache_body *b, uint64_t arrived)
{
    atomic_store_explicit(&b->arrived, arrived, memory_order_release);
}

/* Room in memory at `offset`, NULL when there is none. */
static char *memory_room(struct cache *c, struct cache_body *b, uint64_t offset, uint64_t *room)
{
    char *whole = atomic_load_explicit(&b->whole, memory_order_relaxed);
    if (whole != NULL) {
        *room = b->memory_end - offset;
        return whole + offset;
    }
    struct body_growth *g = atomic_load_explicit(&b->growth, memory_order_relaxed);
    unsigned i = segment_index(offset);
    if (g->segments[i] == NULL)
        g->segments[i] = memory_block(c, MEMORY_FILLING, (size_t)segment_size(i));
    if (g->segments[i] == NULL)
        return NULL;
    uint64_t within = offset - segment_start(i);
    *room = segment_size(i) - within;
    return g->segments[i] + within;
}

static bool file_append(struct cache *c, struct cache_body *b, uint64_t offset, struct slice bytes)
{
    uint64_t within = offset - b->memory_end;
    if (bytes.len > b->file_capacity - within)
        return false;
    bool is_first_of_unknown = within == 0 && b->memory_end > 0;
    if (is_first_of_unknown && !extent_reserve(&c->extents, b->file_capacity, &b->file_at))
        return false;
    uint64_t pages = extent_round(within + bytes.len);
    if (pages > b->file_bytes) {
        if (!memory_take(c, MEMORY_FILLING, pages - b->file_bytes))
            return false;
        b->file_bytes = pages;
    }
    return extent_write(&c->extents, b->file_at + within, bytes);
}

size_t body_append(struct cache *c, struct cache_body *b, struct slice bytes)
{
    uint64_t arrived = atomic_load_explicit(&b->arrived, memory_order_relaxed);
    size_t taken = 0;
    while (taken < bytes.len && arrived < b->memory_end) {
        uint64_t room = 0;
        char *to = memory_room(c, b, arrived, &room);
        if (to == NULL)
            return taken;
        size_t n = (size_t)least(room, bytes.len - taken);
        memcpy(to, bytes.ptr + taken, n);
        taken += n;
        arrived += n;
        arrive(b, arrived);
    }
    struct slice rest = { bytes.ptr + taken, bytes.len - taken };
    if (rest.len == 0 || !file_append(c, b, arrived, rest))
        return taken;
    arrive(b, arrived + rest.len);
    return bytes.len;
}

struct body_growth *body_seal(struct cache *c, struct cache_body *b)
{
    uint64_t arrived = atomic_load_explicit(&b->arrived, memory_order_relaxed);
    atomic_store_explicit(&b->length, (int64_t)arrived, memory_order_release);
    struct body_growth *g = atomic_load_explicit(&b->growth, memory_order_relaxed);
    if (g == NULL || window_start(g) != UINT64_MAX)
        return NULL;
    uint64_t in_memory = least(arrived, b->memory_end);
    if (in_memory > 0) {
        char *whole = memory_block(c, MEMORY_FILLING, (size_t)in_memory);
        if (whole == NULL)
            return NULL; /* stays in segments: right, only larger */
        for (uint64_t at = 0; at < in_memory;) {
            struct object_piece piece = segment_piece(g, at, in_memory);
            memcpy(whole + at, piece.mem, piece.length);
            at += piece.length;
        }
        atomic_store_explicit(&b->whole, whole, memory_order_release);
    }
    /* After the block: a reader that sees no segments then sees the block. */
    atomic_store_explicit(&b->growth, NULL, memory_order_release);
    return g;
}

void body_stored(struct cache *c, struct cache_body *b)
{
    CHECK(!b->is_stored);
    b->is_stored = true;
    memory_move(c, MEMORY_FILLING, MEMORY_BODY, memory_bytes(b));
    memory_move(c, MEMORY_FILLING, MEMORY_FILE, b->file_bytes);
}

/* ---- outgrown -------------------------------------------------------------------------------- */

bool body_outgrow(struct cache *c, struct cache_body *b)
{
    struct body_growth *g = atomic_load_explicit(&b->growth, memory_order_relaxed);
    if (g == NULL) {
        g = growth_new(c);
        if (g == NULL)
            return false;
        atomic_store_explicit(&b->growth, g, memory_order_release);
    }
    uint64_t arrived = atomic_load_explicit(&b->arrived, memory_order_relaxed);
    atomic_store_explicit(&g->window_from, arrived, memory_order_release);
    return true;
}

/* The chunk for the byte `at` of the window; NULL when the ring is full or the system has no
 * memory. Beyond the budget if need be: it is for delivery, as a connection's buffers are, and
 * bounded. */
static char *window_chunk(struct cache *c, struct body_growth *g, uint64_t at)
{
    char **slot = &g->window[at / BODY_WINDOW_CHUNK % BODY_WINDOW_SLOTS];
    if (at % BODY_WINDOW_CHUNK != 0)
        return *slot;
    if (*slot != NULL)
        return NULL;
    *slot = memory_block(c, MEMORY_FILLING, BODY_WINDOW_CHUNK);
    if (*slot == NULL)
        *slot = memory_block_beyond(c, MEMORY_FILLING, BODY_WINDOW_CHUNK);
    return *slot;
}

bool body_window_append(struct cache *c, struct cache_body *b, struct slice bytes)
{
    struct body_growth *g = atomic_load_explicit(&b->growth, memory_order_relaxed);
    uint64_t arrived = atomic_load_explicit(&b->arrived, memory_order_relaxed);
    while (bytes.len > 0) {
        uint64_t at = arrived - window_start(g);
        char *chunk = window_chunk(c, g, at);
        if (chunk == NULL)
            return false;
        uint64_t within = at % BODY_WINDOW_CHUNK;
        size_t n = (size_t)least(bytes.len, BODY_WINDOW_CHUNK - within);
        memcpy(chunk + within, bytes.ptr, n);
        bytes.ptr += n;
        bytes.len -= n;
        arrived += n;
        arrive(b, arrived);
    }
    return true;
}

static void forget_segments(struct cache *c, struct body_growth *g, uint64_t until, uint64_t window)
{
    for (unsigned i = 0; i < BODY_SEGMENTS; i++) {
        uint64_t end = least(segment_start(i) + segment_size(i), window);
        if (g->segments[i] == NULL || end > until)
            continue;
        memory_block_free(c, MEMORY_FILLING, g->segments[i]);
        g->segments[i] = NULL;
    }
}

static void forget_file(struct cache *c, struct cache_body *b, struct body_growth *g,
                        uint64_t until, uint64_t window)
{
    if (until <= b->memory_end || b->file_bytes == 0)
        return;
    uint64_t pages = b->file_bytes;
    if (until < window) {
        uint64_t whole = (until - b->memory_end) & ~(uint64_t)(EXTENT_PAGE - 1);
        pages = whole - g->file_punched;
    }
    file_free(c, b, g->file_punched, pages);
    g->file_punched += pages;
}

static void forget_window(struct cache *c, struct body_growth *g, uint64_t until, uint64_t window)
{
    if (until <= window)
        return;
    uint64_t first = g->forgotten <= window ? 0 : (g->forgotten - window) / BODY_WINDOW_CHUNK;
    for (uint64_t i = first; i < (until - window) / BODY_WINDOW_CHUNK; i++) {
        char **slot = &g->window[i % BODY_WINDOW_SLOTS];
        memory_block_free(c, MEMORY_FILLING, *slot);
        *slot = NULL;
    }
}

void body_forget(struct cache *c, struct cache_body *b, uint64_t until)
{
    struct body_growth *g = atomic_load_explicit(&b->growth, memory_order_relaxed);
    if (until <= g->forgotten)
        return;
    uint64_t window = window_start(g);
    forget_segments(c, g, until, window);
    forget_file(c, b, g, until, window);
    forget_window(c, g, until, window);
    g->forgotten = until;
}
