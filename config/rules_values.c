/* config/rules_values.c: whether one text reads as what a rule or a test wants
 * in that place. What is made of it comes later (rules_compile.c), when nothing
 * can be wrong with it any more. One thread, within a load.
 */
#include "config/rules_internal.h"

#include "config/config_internal.h"

enum { TAG_MAX_BYTES = 256 };

static bool refuse(const char **why, const char *sentence)
{
    *why = sentence;
    return false;
}

static bool contains(struct slice text, const char *what)
{
    return memmem(text.ptr, text.len, what, strlen(what)) != NULL;
}

static bool check_glob(struct config_loader *l, struct slice text, enum glob_kind kind,
                       const char **why)
{
    struct rule_glob ignored;
    return rule_glob_compile(&l->own, text, &(struct glob_options){ .kind = kind }, &ignored, why);
}

static bool check_host(struct config_loader *l, struct slice text, const char **why)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = ascii_lower(text.ptr[i]);
        bool is_fine =
            (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || strchr("-_.*[]:", c) != NULL;
        if ((unsigned char)c >= 0x80)
            return refuse(why, "is not ASCII; write the name in its xn-- form");
        if (c == '/')
            return refuse(why, "is not a host, which has neither scheme nor path");
        if (!is_fine)
            return refuse(why, "is not a host name");
    }
    if (text.len > 0 && text.ptr[0] != '[' && slice_find(text, ':') < text.len)
        return refuse(why, "has a port; a host is served on every port");
    if (text.len > 0 && text.ptr[text.len - 1] == '.')
        return refuse(why, "has a dot at its end, which no host has here");
    if (text.len == 0)
        return refuse(why, "is empty");
    return check_glob(l, text, GLOB_VALUE, why);
}

/* What no path has once it is in the form in which they are compared. */
static bool check_path(struct config_loader *l, struct slice text, const char **why)
{
    if (text.len == 0 || (text.ptr[0] != '/' && text.ptr[0] != '*'))
        return refuse(why, "begins with neither / nor *");
    if (slice_find(text, '?') < text.len)
        return refuse(why, "has a ?, which no path has; match the query with query");
    if (slice_find(text, '#') < text.len)
        return refuse(why, "has a #, which is never sent");
    if (contains(text, "//"))
        return refuse(why, "can never match: paths are compared with // made /");
    if (contains(text, "/./") || contains(text, "/../") || slice_has_suffix(text, SLICE("/..")) ||
        slice_has_suffix(text, SLICE("/.")))
        return refuse(why, "can never match: paths are compared with . and .. resolved");
    return check_glob(l, text, GLOB_PATH, why);
}

static bool check_name(struct config_loader *l, struct slice text, const char **why)
{
    if (text.len == 0)
        return refuse(why, "is empty");
    return check_glob(l, text, GLOB_VALUE, why);
}

static bool check_plain_name(struct slice text, const char **why)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~' || strchr(";=,\"*", text.ptr[i]) != NULL)
            return refuse(why, text.ptr[i] == '*'
                                   ? "has a *; the key has cookies by their full name"
                                   : "is not the name of a cookie");
    return text.len > 0 || refuse(why, "is empty");
}

static bool check_regex(struct config_loader *l, struct slice text, const char **why)
{
    if (text.len == 0)
        return refuse(why, "is empty");
    return rule_regex_compile(&l->own, text, false, why) != NULL;
}

static bool check_method(struct slice text, const char **why)
{
    static const char *const known[] = { "GET",    "HEAD",    "POST",  "PUT",
                                         "DELETE", "OPTIONS", "PATCH", "TRACE" };
    if (!config_is_token(text))
        return refuse(why, "is no method");
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        if (slice_equal_nocase(text, slice_of(known[i])) && !slice_equal(text, slice_of(known[i])))
            return refuse(why, "is not in capitals, in which this method is sent");
    return true;
}

static bool check_status(struct slice text, const char **why)
{
    uint64_t status;
    bool is_class = text.len == 3 && text.ptr[0] >= '2' && text.ptr[0] <= '5' &&
                    ascii_lower(text.ptr[1]) == 'x' && ascii_lower(text.ptr[2]) == 'x';
    if (is_class || (slice_to_u64(text, &status) && status >= 200 && status <= 599))
        return true;
    return refuse(why, "is no status from 200 to 599");
}

static bool check_template(struct config_loader *l, struct slice text, const char **why)
{
    struct rule_template ignored;
    return rule_template_compile(&l->own, text, &ignored, why);
}

static bool check_tag(struct config_loader *l, struct slice text, const char **why)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~' || text.ptr[i] == ',')
            return refuse(why, "has a space, a comma or a character beyond ASCII");
    if (text.len == 0 || text.len > TAG_MAX_BYTES)
        return refuse(why, text.len == 0 ? "is empty" : "is longer than 256 bytes");
    return check_template(l, text, why);
}

static bool check_client(struct config_loader *l, struct slice text, const char **why)
{
    struct network ignored;
    const char *string = arena_string(&l->own, text);
    if (slice_find(text, '/') < text.len)
        return refuse(why, "is a network; a client has one address");
    return network_parse(string, &ignored) || refuse(why, "is no address");
}

bool config_check_text(struct config_loader *l, const struct config_item *item, struct slice text,
                       const char **why)
{
    switch (item->type) {
    case CONFIG_HOST_GLOBS: return check_host(l, text, why);
    case CONFIG_PATH_GLOBS: return check_path(l, text, why);
    case CONFIG_NAME_GLOBS: return check_name(l, text, why);
    case CONFIG_VALUE_GLOB: return check_glob(l, text, GLOB_VALUE, why);
    case CONFIG_NAMES: return check_plain_name(text, why);
    case CONFIG_REGEX:
    case CONFIG_REGEXES: return check_regex(l, text, why);
    case CONFIG_METHOD:
    case CONFIG_METHODS: return check_method(text, why);
    case CONFIG_STATUSES: return check_status(text, why);
    case CONFIG_TAGS: return check_tag(l, text, why);
    case CONFIG_TEMPLATE: return check_template(l, text, why);
    case CONFIG_CLIENT_ADDRESS: return check_client(l, text, why);
    default: return true; /* any text will do */
    }
}
