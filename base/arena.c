/* base/arena.c: bump allocation in chunks; see arena.h. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHUNK_BYTES = 4096, ALIGN = 16 };

struct arena_chunk {
    struct arena_chunk *older;
    size_t used, size;
    _Alignas(ALIGN) char bytes[];
};

struct arena_undo {
    struct arena_undo *older;
    void (*undo)(void *ptr);
    void *ptr;
};

void arena_init(struct arena *a)
{
    *a = (struct arena){ 0 };
}

void arena_fini(struct arena *a)
{
    for (struct arena_undo *u = a->undos; u != NULL; u = u->older)
        u->undo(u->ptr);
    while (a->chunks != NULL) {
        struct arena_chunk *older = a->chunks->older;
        free(a->chunks);
        a->chunks = older;
    }
    *a = (struct arena){ 0 };
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    CHECK(bytes < SIZE_MAX / 2);
    size_t need = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    struct arena_chunk *c = a->chunks;
    if (c == NULL || c->size - c->used < need) {
        size_t usual = CHUNK_BYTES - sizeof *c;
        size_t size = need > usual ? need : usual;
        c = xmalloc(sizeof *c + size);
        *c = (struct arena_chunk){ .older = a->chunks, .size = size };
        a->chunks = c;
    }
    void *ptr = c->bytes + c->used;
    c->used += need;
    a->used_bytes += need;
    return ptr;
}

struct slice arena_copy(struct arena *a, struct slice s)
{
    char *copy = arena_alloc(a, s.len);
    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    return (struct slice){ copy, s.len };
}

char *arena_string(struct arena *a, struct slice s)
{
    char *copy = arena_alloc(a, s.len + 1);
    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return copy;
}

struct slice arena_printf(struct arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    CHECK(len >= 0);
    char *text = arena_alloc(a, (size_t)len + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)len + 1, format, args);
    va_end(args);
    return (struct slice){ text, (size_t)len };
}

void arena_own(struct arena *a, void *ptr, void (*undo)(void *ptr))
{
    struct arena_undo *u = arena_alloc(a, sizeof *u);
    *u = (struct arena_undo){ .older = a->undos, .undo = undo, .ptr = ptr };
    a->undos = u;
}
