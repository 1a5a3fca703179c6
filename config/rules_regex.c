/* config/rules_regex.c: regular expressions of rules: PCRE2, compiled at load
 * (JIT where the system lets us), bounded in what one match may cost; see
 * rules_internal.h.
 *
 * An expression with nested repeats can take exponential time on a text that a
 * client chose. The bound makes that a match that did not happen: the rule does
 * not match, and the log says once for each expression that it is too costly.
 *
 * Threads  compiled ones are read by all; what a match writes to belongs to the
 * thread, made at its first match and freed with the thread.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/log.h"
#include "config/rules_internal.h"

#include <pcre2.h>
#include <pthread.h>

enum {
    MATCH_LIMIT = 100000, /* about a millisecond of the interpreter */
    DEPTH_LIMIT = 1000,
    HEAP_LIMIT_KIB = 1024,
};

struct rule_regex {
    pcre2_code *code;
    const char *text;
    unsigned captures;
    _Atomic bool is_limit_told;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;           /* only for its destructor */
static pcre2_match_context *limits; /* fixed after `once` */
static _Thread_local pcre2_match_data *mine;

static void free_match_data(void *data)
{
    pcre2_match_data_free(data);
}

static void init_once(void)
{
    CHECK(pthread_key_create(&key, free_match_data) == 0);
    limits = pcre2_match_context_create(NULL);
    CHECK(limits != NULL);
    pcre2_set_match_limit(limits, MATCH_LIMIT);
    pcre2_set_depth_limit(limits, DEPTH_LIMIT);
    pcre2_set_heap_limit(limits, HEAP_LIMIT_KIB);
}

static void undo_code(void *code)
{
    pcre2_code_free(code);
}

struct rule_regex *rule_regex_compile(struct arena *a, struct slice text, bool folds,
                                      const char **why)
{
    int error;
    size_t offset;
    uint32_t options = PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C |
                       PCRE2_DOLLAR_ENDONLY | (folds ? PCRE2_CASELESS : 0);
    pthread_once(&once, init_once);
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)text.ptr, text.len, options, &error, &offset, NULL);
    if (code == NULL) {
        char message[128];
        pcre2_get_error_message(error, (PCRE2_UCHAR *)message, sizeof message);
        *why = arena_printf(a, "is no regular expression: %s at offset %zu", message, offset).ptr;
        return NULL;
    }
    arena_own(a, code, undo_code);
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* without, it is interpreted */
    uint32_t captures = 0;
    pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &captures);
    struct rule_regex *r = arena_alloc(a, sizeof *r);
    *r = (struct rule_regex){ .code = code, .text = arena_string(a, text), .captures = captures };
    return r;
}

unsigned rule_regex_capture_count(const struct rule_regex *r)
{
    return r->captures;
}

static pcre2_match_data *match_data(void)
{
    if (likely(mine != NULL))
        return mine;
    mine = pcre2_match_data_create(RULE_CAPTURES, NULL);
    CHECK(mine != NULL);
    CHECK(pthread_setspecific(key, mine) == 0);
    return mine;
}

static void tell_limit(const struct rule_regex *r)
{
    _Atomic bool *told = (_Atomic bool *)&r->is_limit_told; /* all that ever changes of it */
    if (!atomic_exchange(told, true))
        log_warn("the regular expression %s took too much work on a request and "
                 "was taken as not "
                 "matching; nested repeats such as (a+)+ do that",
                 r->text);
}

static void read_captures(const struct rule_regex *r, struct slice text, int count,
                          struct rule_captures *captures)
{
    const size_t *ends = pcre2_get_ovector_pointer(mine);
    *captures = (struct rule_captures){ 0 };
    unsigned known = count == 0 ? RULE_CAPTURES : (unsigned)count; /* 0: more than there is room */
    if (known > r->captures + 1)
        known = r->captures + 1;
    for (unsigned i = 0; i < known && i < RULE_CAPTURES; i++)
        if (ends[2 * i] != PCRE2_UNSET && ends[2 * i] <= ends[2 * i + 1]) /* \K can turn it round */
            captures->at[i] =
                (struct slice){ text.ptr + ends[2 * i], ends[2 * i + 1] - ends[2 * i] };
}

enum regex_result rule_regex_match(const struct rule_regex *r, struct slice text,
                                   struct rule_captures *captures)
{
    const char *subject = text.ptr == NULL ? "" : text.ptr;
    int count = pcre2_match(r->code, (PCRE2_SPTR)subject, text.len, 0, 0, match_data(), limits);
    if (count == PCRE2_ERROR_NOMATCH)
        return REGEX_NO;
    if (count < 0) {
        tell_limit(r);
        return REGEX_LIMIT;
    }
    if (captures != NULL)
        read_captures(r, (struct slice){ subject, text.len }, count, captures);
    return REGEX_YES;
}
