/* cache/directives.h: the floor's own: what the readers of Cache-Control (control.c) and of its like (targeted.c) share.
 * Pure; any thread.
 */
#ifndef CACHE_DIRECTIVES_H
#define CACHE_DIRECTIVES_H
#include "cache/decide.h"

enum directive {
    DIRECTIVE_UNKNOWN,
    DIRECTIVE_NO_STORE,
    DIRECTIVE_NO_CACHE,
    DIRECTIVE_PRIVATE,
    DIRECTIVE_PUBLIC,
    DIRECTIVE_MUST_REVALIDATE,
    DIRECTIVE_PROXY_REVALIDATE,
    DIRECTIVE_NO_TRANSFORM,
    DIRECTIVE_ONLY_IF_CACHED,
    DIRECTIVE_IMMUTABLE,
    DIRECTIVE_MUST_UNDERSTAND,
    DIRECTIVE_MAX_AGE,
    DIRECTIVE_S_MAXAGE,
    DIRECTIVE_MAX_STALE,
    DIRECTIVE_MIN_FRESH,
    DIRECTIVE_STALE_WHILE_REVALIDATE,
    DIRECTIVE_STALE_IF_ERROR,
    DIRECTIVE_COUNT
};
/* Any case. */
enum directive cache_directive_of(struct slice name);

struct directive_argument {
    bool is_present;
    struct slice text; /* without quotes; escapes are left in: no number and no field name has any */
};
/* cache-directive = token [ "=" ( token / quoted-string ) ], and nothing else. */
bool cache_directive_split(struct slice element, struct slice *name, struct directive_argument *a);
/* The same directive said before: the most restrictive of the two counts (RFC 9111 4.2.1). */
void cache_directive_apply(struct cache_control *c, enum directive d, const struct directive_argument *a);

/* Nothing said. */
void cache_control_clear(struct cache_control *c);
/* Something that does not read as a directive: its words are searched, those that restrict are obeyed. */
void cache_control_doubt(struct cache_control *c, struct slice text);
/* Whether the argument of private or no-cache names the field (RFC 9111 5.2.2.4, 5.2.2.7). */
bool cache_directive_lists(struct slice argument, struct slice field);

static inline bool is_token_char(char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return true;
    return c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static inline size_t token_length(struct slice s)
{
    size_t len = 0;
    while (len < s.len && is_token_char(s.ptr[len]))
        len++;
    return len;
}

static inline bool is_token(struct slice s)
{
    return s.len > 0 && token_length(s) == s.len;
}
#endif
