/* base/arena.h: memory that dies together, in one go.
 *
 * Life     arena_init() -> arena_alloc() … -> arena_fini(), which also undoes what arena_own() tied to it, newest first.
 * Threads  one owner.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H
#include "base/base.h"

struct arena_chunk;
struct arena_undo;
struct arena {
    struct arena_chunk *chunks; /* newest first */
    struct arena_undo *undos;   /* newest first; live in the arena */
    size_t used_bytes;          /* asked for since init: what a caller bounds */
};

void arena_init(struct arena *a);
void arena_fini(struct arena *a);
/* Aligned for anything; not cleared. */
void *arena_alloc(struct arena *a, size_t bytes) __attribute__((malloc, returns_nonnull));
/* Copies that live as long as the arena. */
struct slice arena_copy(struct arena *a, struct slice s);
char *arena_string(struct arena *a, struct slice s);
struct slice arena_printf(struct arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Calls undo(ptr) at arena_fini(). */
void arena_own(struct arena *a, void *ptr, void (*undo)(void *ptr));
#endif
