/* base/base.c: checks, allocation and slices; see base.h. Any thread. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

void base_check_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "larder: %s:%d: internal check failed: %s\n", file, line, what);
    abort();
}

static void *checked(void *ptr)
{
    if (unlikely(ptr == NULL)) {
        fputs("larder: out of memory\n", stderr);
        abort();
    }
    return ptr;
}

void *xmalloc(size_t bytes)
{
    return checked(malloc(bytes == 0 ? 1 : bytes));
}

void *xcalloc(size_t count, size_t bytes)
{
    return checked(calloc(count == 0 ? 1 : count, bytes == 0 ? 1 : bytes));
}

void *xrealloc(void *ptr, size_t bytes)
{
    return checked(realloc(ptr, bytes == 0 ? 1 : bytes));
}

char *xstrdup(const char *text)
{
    return checked(strdup(text));
}

static bool equal_nocase(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (ascii_lower(a[i]) != ascii_lower(b[i]))
            return false;
    return true;
}

bool slice_equal_nocase(struct slice a, struct slice b)
{
    return a.len == b.len && equal_nocase(a.ptr, b.ptr, a.len);
}

bool slice_has_prefix(struct slice s, struct slice prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

bool slice_has_prefix_nocase(struct slice s, struct slice prefix)
{
    return s.len >= prefix.len && equal_nocase(s.ptr, prefix.ptr, prefix.len);
}

bool slice_has_suffix(struct slice s, struct slice suffix)
{
    return s.len >= suffix.len &&
           (suffix.len == 0 || memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct slice slice_trim(struct slice s)
{
    while (s.len > 0 && is_blank(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

size_t slice_find(struct slice s, char c)
{
    const char *at = s.len == 0 ? NULL : memchr(s.ptr, c, s.len);
    return at == NULL ? s.len : (size_t)(at - s.ptr);
}

/* Length up to the next comma that is not inside a quoted string (RFC 9110 5.6.4). */
static size_t element_length(struct slice s)
{
    bool quoted = false;
    for (size_t i = 0; i < s.len; i++) {
        if (quoted && s.ptr[i] == '\\')
            i++;
        else if (s.ptr[i] == '"')
            quoted = !quoted;
        else if (s.ptr[i] == ',' && !quoted)
            return i;
    }
    return s.len;
}

bool slice_next_in_list(struct slice *rest, struct slice *element)
{
    while (rest->len > 0) {
        size_t len = element_length(*rest);
        *element = slice_trim((struct slice){ rest->ptr, len });
        size_t taken = len < rest->len ? len + 1 : len;
        rest->ptr += taken;
        rest->len -= taken;
        if (element->len > 0)
            return true;
    }
    return false;
}

bool slice_to_u64(struct slice s, uint64_t *value)
{
    uint64_t sum = 0;
    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
        if (__builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)(s.ptr[i] - '0'), &sum))
            return false;
    }
    *value = sum;
    return true;
}

char *slice_to_string(struct slice s)
{
    char *text = xmalloc(s.len + 1);
    if (s.len > 0)
        memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    return text;
}

int slice_compare(struct slice a, struct slice b)
{
    size_t least = a.len < b.len ? a.len : b.len;
    int order = least == 0 ? 0 : memcmp(a.ptr, b.ptr, least);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}
