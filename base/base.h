/* base/base.h: the ground every file stands on: checks, slices, sizes, allocation.
 *
 * Errors come in three kinds (never mixed): our own mistake is CHECK and stops the program; theirs (a peer, a
 * file) is an enum result marked must_check; exhaustion of small fixed sizes stops in xmalloc, while sizes that a
 * peer chooses are bounded before anything is allocated.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H
#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define must_check __attribute__((warn_unused_result))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define KiB(n) ((uint64_t)(n) << 10)
#define MiB(n) ((uint64_t)(n) << 20)
#define GiB(n) ((uint64_t)(n) << 30)
#define TiB(n) ((uint64_t)(n) << 40)
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

_Noreturn void base_check_failed(const char *file, int line, const char *what);
#define CHECK(cond) (likely(cond) ? (void)0 : base_check_failed(__FILE__, __LINE__, #cond))
#define CHECK_OBJ(ptr, magic_value) CHECK((ptr) != NULL && (ptr)->magic == (magic_value))
#define UNREACHABLE() base_check_failed(__FILE__, __LINE__, "unreachable")
#ifdef LARDER_TEST_HOOKS
#define CHECK_SLOW(cond) CHECK(cond)
#else
#define CHECK_SLOW(cond) ((void)sizeof(cond))
#endif

/* For small sizes that we choose. Never returns NULL; stops the program when there is no memory. */
void *xmalloc(size_t bytes) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t bytes) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *ptr, size_t bytes) __attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));

/* Bytes that somebody else owns: not terminated, valid as long as the owner says. */
struct slice {
    const char *ptr;
    size_t len;
};
#define SLICE(literal) ((struct slice){ (literal), sizeof(literal) - 1 })
#define SLICE_INIT(literal) { (literal), sizeof(literal) - 1 }
#define SLICE_NONE ((struct slice){ NULL, 0 })
#define SLICE_FMT "%.*s"
#define SLICE_ARG(s) (int)(s).len, (s).ptr

static inline struct slice slice_of(const char *text)
{
    return (struct slice){ text, text == NULL ? 0 : strlen(text) };
}

static inline struct slice slice_from(const char *ptr, const char *end)
{
    return (struct slice){ ptr, (size_t)(end - ptr) };
}

static inline bool slice_is_empty(struct slice s)
{
    return s.len == 0;
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

bool slice_equal_nocase(struct slice a, struct slice b);   /* ASCII only */
bool slice_has_prefix(struct slice s, struct slice prefix);
bool slice_has_prefix_nocase(struct slice s, struct slice prefix);
bool slice_has_suffix(struct slice s, struct slice suffix);
struct slice slice_trim(struct slice s);                   /* without SP and HTAB at either end (OWS) */
/* Position of `c`, or `s.len`. */
size_t slice_find(struct slice s, char c);
/* Takes the next element of a comma list (RFC 9110 5.6.1) off `*rest`: trimmed, commas within quoted strings kept,
 * empty elements skipped. False at the end. */
bool slice_next_in_list(struct slice *rest, struct slice *element);
/* The whole slice as decimal digits only. False when empty, not digits, or above UINT64_MAX. */
must_check bool slice_to_u64(struct slice s, uint64_t *value);
/* A terminated copy that the caller frees. */
char *slice_to_string(struct slice s);
/* Compares as strcmp does. */
int slice_compare(struct slice a, struct slice b);
#endif
