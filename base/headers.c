/* base/headers.c: header lists and the table of known names; see headers.h. Any thread. */
#include "base/headers.h"

static const struct slice names[HEADER_ID_COUNT] = { [HEADER_OTHER] = SLICE_INIT(""),
#define X(id, name) [HEADER_##id] = SLICE_INIT(name),
                                                     HEADER_NAMES(X)
#undef X
};

/* A name as four words, so that comparing and hashing are a few instructions: the first and last
 * bytes of it, read overlapping. Which bytes are where follows from the length, so equal lengths
 * and equal words are equal names. */
enum { WORDS = 4, KNOWN_MAX = 8 * WORDS };
struct words {
    uint64_t at[WORDS];
};

static uint64_t load(const char *p, size_t bytes)
{
    uint64_t word = 0;
    memcpy(&word, p, bytes);
    return word;
}

/* `name` has 1 to KNOWN_MAX bytes; nothing outside it is read. */
static inline struct words words_of(struct slice name)
{
    const char *p = name.ptr, *end = name.ptr + name.len;
    if (name.len > 16)
        return (
            struct words){ { load(p, 8), load(end - 8, 8), load(p + 8, 8), load(end - 16, 8) } };
    if (name.len >= 8)
        return (struct words){ { load(p, 8), load(end - 8, 8) } };
    if (name.len >= 4)
        return (struct words){ { load(p, 4), load(end - 4, 4) } };
    return (struct words){ { load(p, 1) | load(p + name.len / 2, 1) << 8, load(end - 1, 1) } };
}

/* A known name in lower case; `mask` has the case bit of each letter. What it has of '-' must match
 * as it is. */
struct known {
    struct words lower, mask;
};
static struct known known[HEADER_ID_COUNT];

/* Open addressing; filled once before main(), read only afterwards. */
enum { SLOT_BITS = 9, SLOTS = 1 << SLOT_BITS };
static uint8_t slots[SLOTS];
static_assert(HEADER_ID_COUNT < 200, "known names must leave the slot table sparse and fit a byte");

static inline unsigned slot_of(const struct words *w, size_t len)
{
    const uint64_t letters =
        0x2020202020202020; /* case folded; that some other bytes fall together does no harm */
    uint64_t mixed = (w->at[0] | letters) * 0x9e3779b97f4a7c15 +
                     ((w->at[1] | letters) ^ len) * 0xc2b2ae3d27d4eb4f;
    return (unsigned)(mixed >> (64 - SLOT_BITS));
}

static void learn(enum header_id id)
{
    char lower[KNOWN_MAX], mask[KNOWN_MAX];
    struct slice name = names[id];
    CHECK(name.len > 0 && name.len <= KNOWN_MAX);
    for (size_t i = 0; i < name.len; i++) {
        lower[i] = ascii_lower(name.ptr[i]);
        mask[i] = lower[i] >= 'a' && lower[i] <= 'z' ? 0x20 : 0;
    }
    known[id].lower = words_of((struct slice){ lower, name.len });
    known[id].mask = words_of((struct slice){ mask, name.len });
}

__attribute__((constructor)) static void fill_slots(void)
{
    for (unsigned id = 1; id < HEADER_ID_COUNT; id++) {
        learn(id);
        unsigned slot = slot_of(&known[id].lower, names[id].len);
        while (slots[slot] != 0)
            slot = (slot + 1) % SLOTS;
        slots[slot] = (uint8_t)id;
    }
}

static inline bool is_known(const struct known *k, const struct words *w)
{
    uint64_t differs = 0;
    for (int i = 0; i < WORDS; i++)
        differs |= (w->at[i] | k->mask.at[i]) ^ k->lower.at[i];
    return differs == 0;
}

enum header_id header_id_of(struct slice name)
{
    if (name.len == 0 || name.len > KNOWN_MAX)
        return HEADER_OTHER;
    struct words w = words_of(name);
    for (unsigned slot = slot_of(&w, name.len); slots[slot] != 0; slot = (slot + 1) % SLOTS) {
        unsigned id = slots[slot];
        if (names[id].len == name.len && is_known(&known[id], &w))
            return id;
    }
    return HEADER_OTHER;
}

struct slice header_name(enum header_id id)
{
    CHECK(id > HEADER_OTHER && id < HEADER_ID_COUNT);
    return names[id];
}

bool header_is_hop_by_hop(enum header_id id)
{
    switch (id) {
    case HEADER_CONNECTION:
    case HEADER_KEEP_ALIVE:
    case HEADER_PROXY_AUTHENTICATE:
    case HEADER_PROXY_AUTHENTICATION_INFO:
    case HEADER_PROXY_AUTHORIZATION:
    case HEADER_PROXY:
    case HEADER_PROXY_CONNECTION:
    case HEADER_TE:
    case HEADER_TRAILER:
    case HEADER_TRANSFER_ENCODING:
    case HEADER_UPGRADE: return true;
    default: return false;
    }
}

void headers_init(struct headers *h, struct header *storage, size_t capacity)
{
    CHECK(capacity <= HEADERS_MAX);
    h->at = storage;
    h->count = 0;
    h->capacity = (uint16_t)capacity;
    memset(h->first, 0, sizeof h->first);
}

bool headers_add(struct headers *h, struct slice name, struct slice value)
{
    if (h->count == h->capacity)
        return false;
    enum header_id id = header_id_of(name);
    h->at[h->count++] = (struct header){ .name = name, .value = value, .id = (uint8_t)id };
    if (id == HEADER_OTHER)
        return true;
    if (h->first[id] == 0) {
        h->first[id] = (uint8_t)h->count;
        h->at[h->count - 1].last = (uint8_t)h->count;
        return true;
    }
    /* by the first one's `last`: walking the chain would let a peer's many repeats cost their
     * square */
    struct header *first = &h->at[h->first[id] - 1];
    h->at[first->last - 1].next = (uint8_t)h->count;
    first->last = (uint8_t)h->count;
    return true;
}

void headers_drop(struct headers *h, enum header_id id)
{
    if (h->first[id] == 0)
        return;
    uint16_t count = h->count;
    h->count = 0;
    memset(h->first, 0, sizeof h->first);
    for (uint16_t i = 0; i < count; i++) {
        struct header one = h->at[i]; /* what is kept moves down, never past itself */
        if (one.id != id)
            CHECK(headers_add(h, one.name, one.value));
    }
}

int headers_find_name(const struct headers *h, struct slice name, int from)
{
    for (int i = from; i < h->count; i++)
        if (slice_equal_nocase(h->at[i].name, name))
            return i;
    return -1;
}

bool headers_has_token(const struct headers *h, enum header_id id, struct slice token)
{
    for (const struct header *f = headers_find(h, id); f != NULL; f = headers_next(h, f)) {
        struct slice rest = f->value, element;
        while (slice_next_in_list(&rest, &element)) {
            element.len = slice_find(element, ';');
            if (slice_equal_nocase(slice_trim(element), token))
                return true;
        }
    }
    return false;
}

bool headers_is_nominated(const struct headers *h, struct slice name)
{
    return headers_has(h, HEADER_CONNECTION) && headers_has_token(h, HEADER_CONNECTION, name);
}
