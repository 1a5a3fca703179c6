/* cache/ordered.c: the entries of each store shard in the order of their keys, so that a purge
 * finds what has a host, a URL or a beginning in common without looking at anything else.
 *
 * A red-black tree of libbsd's in every shard; its links lie in the entries, so that it costs no
 * memory of its own and nothing on a hit. The order begins behind the key's site: see struct
 * key_place.
 *
 * Threads  any, with the shard's lock held.
 */
#include "cache/cache_internal.h"

struct key_place key_place_of(struct slice key)
{
    size_t end = slice_find(key, '\0');
    if (end == key.len)
        return (struct key_place){ .rest = key };
    return (struct key_place){ .rest = { key.ptr + end + 1, key.len - end - 1 },
                               .site = { key.ptr, end } };
}

static int compare_places(const struct key_place *a, const struct key_place *b)
{
    int order = slice_compare(a->rest, b->rest);
    if (order == 0)
        order = slice_compare(a->site, b->site);
    if (order == 0) /* "\0x" and "x" are two keys */
        order = (a->site.ptr != NULL) - (b->site.ptr != NULL);
    return order;
}

static int compare_entries(const struct entry *a, const struct entry *b)
{
    struct key_place at = key_place_of(entry_key(a)), other = key_place_of(entry_key(b));
    return compare_places(&at, &other);
}

RB_GENERATE_INTERNAL(order, entry, order, compare_entries, static __attribute__((unused)))

void ordered_insert_locked(struct shard *s, struct entry *e)
{
    struct entry *equal = RB_INSERT(order, &s->order, e);
    CHECK(equal == NULL);
}

void ordered_remove_locked(struct shard *s, struct entry *e)
{
    RB_REMOVE(order, &s->order, e);
}

struct entry *ordered_from_locked(struct shard *s, struct slice rest)
{
    struct entry *found = NULL;
    for (struct entry *e = RB_ROOT(&s->order); e != NULL;) {
        bool is_before = slice_compare(key_place_of(entry_key(e)).rest, rest) < 0;
        found = is_before ? found : e;
        e = is_before ? RB_RIGHT(e, order) : RB_LEFT(e, order);
    }
    return found;
}

struct entry *ordered_behind_locked(struct shard *s, struct slice key)
{
    struct key_place wanted = key_place_of(key);
    struct entry *found = NULL;
    for (struct entry *e = RB_ROOT(&s->order); e != NULL;) {
        struct key_place at = key_place_of(entry_key(e));
        bool is_behind = compare_places(&at, &wanted) > 0;
        found = is_behind ? e : found;
        e = is_behind ? RB_LEFT(e, order) : RB_RIGHT(e, order);
    }
    return found;
}

struct entry *ordered_next_locked(struct entry *e)
{
    return RB_NEXT(order, &s->order, e);
}
