/* config/set.c: texts into fields, by the type of the item. Files, options and defaults all come
 * through here. One thread, within a load.
 */
#include "config/config_internal.h"
#include "config/rules_internal.h"

#include <stdlib.h>

enum { TEXT_MAX_BYTES = 4096, BODY_MAX_BYTES = 64 << 10 };

struct setting {
    struct config_loader *l;
    const struct config_item *item;
    const struct config_input *in;
    void *base;
    size_t place; /* of the field, in the loader's places */
};

static void *field_of(const struct setting *s)
{
    return (char *)s->base + s->item->offset;
}

static void store_count(const struct setting *s, size_t count)
{
    if (s->item->count_offset != NO_COUNT)
        memcpy((char *)s->base + s->item->count_offset, &count, sizeof count);
}

static void store_number(const struct setting *s, uint64_t value)
{
    uint32_t narrow = (uint32_t)value;
    CHECK(s->item->bytes == sizeof value || (s->item->bytes == sizeof narrow && narrow == value));
    if (s->item->bytes == sizeof value)
        memcpy(field_of(s), &value, sizeof value);
    else
        memcpy(field_of(s), &narrow, sizeof narrow);
}

static void store_pointer(const struct setting *s, void *ptr)
{
    CHECK(s->item->bytes == sizeof ptr);
    memcpy(field_of(s), &ptr, sizeof ptr);
}

static struct config_place place_of_text(const struct setting *s, size_t i)
{
    const struct config_text *t = &s->in->texts[i];
    struct config_place p = { .path = s->in->path,
                              .option = s->in->option,
                              .text = t->text,
                              .line = t->line,
                              .column = t->column };
    if (s->in->is_sequence)
        p.path = config_format(s->l, "%s[%zu]", s->in->path, i);
    return p;
}

static void wrong_at(const struct setting *s, const struct config_place *at, const char *why)
{
    s->l->places[s->place].is_wrong = true;
    config_mistake_value(s->l, at, &(struct config_wrong){ .item = s->item, .why = why });
}

static void wrong(const struct setting *s, size_t i, const char *why)
{
    struct config_place at = place_of_text(s, i);
    wrong_at(s, &at, why);
}

/* ---- one text -------------------------------------------------------------------------------- */

static bool read_amount(const struct config_item *item, struct slice text, uint64_t *value,
                        const char **why)
{
    if (item->type == CONFIG_BYTES)
        return config_parse_bytes(text, value, why);
    if (item->type == CONFIG_MS)
        return config_parse_duration(text, value, why);
    if (item->type == CONFIG_COUNT || item->type == CONFIG_STATUS) {
        *why = "is not a number";
        return slice_to_u64(text, value);
    }
    if (!config_parse_duration(text, value, why)) /* CONFIG_S and CONFIG_TTLS */
        return false;
    *why = "is not in whole seconds";
    bool is_whole = *value % 1000 == 0;
    *value /= 1000;
    return is_whole;
}

static bool is_within(const struct config_item *item, uint64_t value, const char **why)
{
    if (value == 0 && item->zero != NULL)
        return true;
    *why = value < item->min ? "is too small" : "is too large";
    return value >= item->min && value <= item->max;
}

static void set_amount(const struct setting *s, struct slice text)
{
    uint64_t value;
    const char *why;
    if (s->item->zero != NULL && slice_equal_nocase(text, slice_of(s->item->zero)))
        store_number(s, 0);
    else if (!read_amount(s->item, text, &value, &why) || !is_within(s->item, value, &why))
        wrong(s, 0, why);
    else
        store_number(s, value);
}

static void set_bool(const struct setting *s, struct slice text)
{
    bool value;
    if (!config_parse_bool(text, &value))
        wrong(s, 0, "is neither");
    else
        memcpy(field_of(s), &value, sizeof value);
}

/* Which of the choices text number `i` is; -1 with a mistake. */
static int read_choice(const struct setting *s, size_t i)
{
    struct slice text = s->in->texts[i].text;
    struct config_nearest near;
    config_nearest_init(&near, text);
    for (int choice = 0; s->item->choices[choice] != NULL; choice++) {
        if (slice_equal(text, slice_of(s->item->choices[choice])))
            return choice;
        config_nearest_offer(&near, slice_of(s->item->choices[choice]));
    }
    struct config_place at = place_of_text(s, i);
    s->l->places[s->place].is_wrong = true;
    config_mistake_value(
        s->l, &at,
        &(struct config_wrong){ .item = s->item,
                                .why = "is none of them",
                                .question = config_nearest_question(s->l, &near, "") });
    return -1;
}

static void set_choice(const struct setting *s)
{
    int choice = read_choice(s, 0);
    if (choice >= 0)
        store_number(s, (uint64_t)choice);
}

static void set_text(const struct setting *s, struct slice text)
{
    bool may_be_empty = s->item->type == CONFIG_BODY || s->item->type == CONFIG_TEMPLATE;
    const char *why;
    if (slice_trim(text).len == 0 && !may_be_empty)
        wrong(s, 0, "is empty");
    else if (!config_check_text(s->l, s->item, text, &why))
        wrong(s, 0, why);
    else
        store_pointer(s, arena_string(s->l->arena, text));
}

/* deny: true */
static void set_deny(const struct setting *s, struct slice text)
{
    bool is_on;
    uint64_t status;
    const char *why = "is neither";
    if (config_parse_bool(text, &is_on) && is_on)
        store_number(s, 403);
    else if (!slice_to_u64(text, &status) || !is_within(s->item, status, &why))
        wrong(s, 0, why);
    else
        store_number(s, status);
}

static bool is_visible_ascii(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~')
            return false;
    return text.len > 0;
}

static void set_secret(const struct setting *s, struct slice text)
{
    if (slice_equal(text,
                    SLICE("***"))) /* a printed file that is used again must not open the door */
        wrong(s, 0, "is what is printed in place of the secret, not the secret");
    else if (!is_visible_ascii(text))
        wrong(s, 0, "is empty or has a space or a character beyond ASCII");
    else
        store_pointer(s, arena_string(s->l->arena, text));
}

static void set_host(const struct setting *s, struct slice text)
{
    struct config_address ignored;
    const char *why;
    struct slice url = arena_printf(&s->l->own, "http://" SLICE_FMT, SLICE_ARG(text));
    if (slice_find(text, '/') < text.len)
        wrong(s, 0, "is not a host, which has neither scheme nor path");
    else if (!config_parse_server(&s->l->own, url, &ignored, &why))
        wrong(s, 0, why);
    else
        store_pointer(s, arena_string(s->l->arena, text));
}

static void set_address(const struct setting *s, struct slice text)
{
    struct config_address address;
    const char *why;
    if (!config_parse_address(s->l->arena, text, &address, &why))
        wrong(s, 0, why);
    else
        memcpy(field_of(s), &address, sizeof address);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void set_addresses(const struct setting *s)
{
    size_t count = 0;
    struct config_address *list =
        arena_alloc(s->l->arena, s->in->count * sizeof(struct config_address));
    for (size_t i = 0; i < s->in->count; i++) {
        const char *why;
        struct slice text = s->in->texts[i].text;
        bool ok = s->item->type == CONFIG_SERVERS
                      ? config_parse_server(s->l->arena, text, &list[count], &why)
                      : config_parse_address(s->l->arena, text, &list[count], &why);
        if (!ok) {
            wrong(s, i, why);
            continue;
        }
        struct config_place p = place_of_text(s, i);
        p.field = list[count++].text;
        config_place_remember(s->l, &p);
    }
    store_pointer(s, list);
    store_count(s, count);
}

static bool read_file_name(struct arena *a, struct slice text, char **name, const char **why)
{
    *why = "is not the name of a file in the directory";
    if (text.len == 0 || slice_find(text, '/') < text.len || slice_equal(text, SLICE(".")) ||
        slice_equal(text, SLICE("..")))
        return false;
    *name = arena_string(a, text);
    return true;
}

static bool read_field_name(struct arena *a, struct slice text, char **name, const char **why)
{
    *why = "is not the name of a header field (RFC 9110, 5.1)";
    *name = arena_string(a, text);
    return config_is_token(text);
}

static bool read_string(const struct setting *s, struct slice text, char **string, const char **why)
{
    switch (s->item->type) {
    case CONFIG_FILE_NAMES: return read_file_name(s->l->arena, text, string, why);
    case CONFIG_NETWORKS: return config_parse_network(s->l->arena, text, string, why);
    case CONFIG_HOSTS: return config_parse_site_host(s->l->arena, text, string, why);
    case CONFIG_FIELD_NAMES: return read_field_name(s->l->arena, text, string, why);
    default:
        *string = arena_string(s->l->arena, text);
        return config_check_text(s->l, s->item, text, why);
    }
}

/* Of rules and presets; hosts and addresses are compared by what they mean
 * (check.c). */
static bool is_repeated(const struct setting *s, char **list, size_t count)
{
    if (s->item->where < IN_RULE && s->item->type != CONFIG_WORDS)
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], list[count]) == 0)
            return true;
    return false;
}

static void set_strings(const struct setting *s)
{
    size_t count = 0;
    char **list = arena_alloc(s->l->arena, (s->in->count + 1) * sizeof(char *));
    for (size_t i = 0; i < s->in->count; i++) {
        const char *why;
        if (s->item->choices != NULL && read_choice(s, i) < 0)
            continue;
        if (!read_string(s, s->in->texts[i].text, &list[count], &why)) {
            wrong(s, i, why);
            continue;
        }
        if (is_repeated(s, list, count)) {
            struct config_place at = place_of_text(s, i);
            config_mistake(s->l, &at, "%s is in this list already", config_shown(s->l, at.text));
            continue;
        }
        struct config_place p = place_of_text(s, i);
        p.field = list[count++];
        config_place_remember(s->l, &p);
    }
    list[count] = NULL;
    store_pointer(s, list);
    store_count(s, count);
}

static bool read_status(struct slice text, uint16_t *status)
{
    uint64_t number;
    if (!slice_to_u64(text, &number) || number < 200 || number > 599)
        return false;
    *status = (uint16_t)number;
    return true;
}

static void set_ttls(const struct setting *s)
{
    size_t count = 0;
    struct config_ttl *list = arena_alloc(s->l->arena, s->in->count * sizeof(struct config_ttl));
    for (size_t i = 0; i + 1 < s->in->count; i += 2) {
        struct slice key = s->in->texts[i].text;
        struct config_place at = place_of_text(s, i);
        if (!read_status(key, &list[count].status)) {
            config_mistake(s->l, &at, "%s is not a status from 200 to 599",
                           config_shown(s->l, key));
            continue;
        }
        at = place_of_text(s, i + 1);
        at.path = config_format(s->l, "%s." SLICE_FMT, s->in->path, SLICE_ARG(key));
        uint64_t ttl;
        const char *why;
        if (!read_amount(s->item, at.text, &ttl, &why) || !is_within(s->item, ttl, &why)) {
            wrong_at(s, &at, why);
            continue;
        }
        list[count++].ttl_s = (uint32_t)ttl;
    }
    store_pointer(s, list);
    store_count(s, count);
}

/* ---- by type --------------------------------------------------------------------------------- */

/* What no item can hold: strings end at a NUL, and a line break would forge a line of a log. */
static bool is_clean(const struct setting *s, size_t i)
{
    struct slice text = s->in->texts[i].text;
    bool is_body = s->item->type == CONFIG_BODY;
    if (text.len > (is_body ? BODY_MAX_BYTES : TEXT_MAX_BYTES)) {
        wrong(s, i, is_body ? "is longer than 64KiB" : "is longer than 4096 bytes");
        return false;
    }
    for (size_t at = 0; at < text.len; at++) {
        unsigned char c = (unsigned char)text.ptr[at];
        if ((c >= 0x20 && c != 0x7f) || (c == '\t' && s->item->type == CONFIG_TEXT))
            continue;
        if (is_body && (c == '\t' || c == '\n' || c == '\r'))
            continue;
        wrong(s, i, "has a control character");
        return false;
    }
    return true;
}

static void set_field(const struct setting *s)
{
    struct slice text = s->in->count > 0 ? s->in->texts[0].text : SLICE_NONE;
    switch (s->item->type) {
    case CONFIG_COUNT:
    case CONFIG_STATUS:
    case CONFIG_BYTES:
    case CONFIG_MS:
    case CONFIG_S: set_amount(s, text); return;
    case CONFIG_SWITCH:
    case CONFIG_BOOL: set_bool(s, text); return;
    case CONFIG_RULE_CACHE:
    case CONFIG_CHOICE: set_choice(s); return;
    case CONFIG_TEXT:
    case CONFIG_REGEX:
    case CONFIG_METHOD:
    case CONFIG_TEMPLATE:
    case CONFIG_BODY:
    case CONFIG_CLIENT_ADDRESS:
    case CONFIG_URL:
    case CONFIG_PATH: set_text(s, text); return;
    case CONFIG_DENY: set_deny(s, text); return;
    case CONFIG_SECRET: set_secret(s, text); return;
    case CONFIG_HOST: set_host(s, text); return;
    case CONFIG_ADDRESS: set_address(s, text); return;
    case CONFIG_ADDRESSES:
    case CONFIG_SERVERS: set_addresses(s); return;
    case CONFIG_FILE_NAMES:
    case CONFIG_NETWORKS:
    case CONFIG_FIELD_NAMES:
    case CONFIG_WORDS:
    case CONFIG_HOST_GLOBS:
    case CONFIG_PATH_GLOBS:
    case CONFIG_NAME_GLOBS:
    case CONFIG_NAMES:
    case CONFIG_REGEXES:
    case CONFIG_METHODS:
    case CONFIG_STATUSES:
    case CONFIG_TAGS:
    case CONFIG_HOSTS: set_strings(s); return;
    case CONFIG_TTLS: set_ttls(s); return;
    case CONFIG_ORIGIN_NAME: return; /* the place holds the name until all origins are known */
    case CONFIG_ORIGINS:
    case CONFIG_SITES:
    case CONFIG_VALUE_GLOB:
    case CONFIG_CONDITIONS:
    case CONFIG_FIELDS:
    case CONFIG_MATCH:
    case CONFIG_RULES:
    case CONFIG_TESTS: break; /* parse.c and parse_rules.c make them */
    }
    UNREACHABLE();
}

void config_set(struct config_loader *l, const struct config_item *item, void *base,
                const struct config_input *in)
{
    struct setting s = { .l = l, .item = item, .in = in, .base = base, .place = l->place_count };
    config_place_remember(
        l,
        &(struct config_place){
            .field = field_of(&s),
            .path = in->path,
            .option = in->option,
            .text = in->count > 0 && item->type != CONFIG_SECRET ? in->texts[0].text : SLICE_NONE,
            .line = in->line,
            .column = in->column,
        });
    bool needs_one = item->type == CONFIG_ADDRESSES || item->type == CONFIG_SERVERS ||
                     item->type == CONFIG_HOSTS || item->where == IN_RULE ||
                     item->where == IN_MATCH;
    if (in->count == 0 && needs_one) {
        l->places[s.place].is_wrong = true;
        config_mistake(l, &l->places[s.place], "is an empty list; it needs at least one");
        return;
    }
    bool is_clean_all = true;
    for (size_t i = 0; i < in->count; i++)
        is_clean_all = is_clean(&s, i) && is_clean_all;
    if (is_clean_all)
        set_field(&s);
}

void config_set_defaults(struct config_loader *l, enum config_where where, void *base)
{
    size_t place_count = l->place_count;
    for (size_t i = 0; i < config_item_count; i++) {
        const struct config_item *item = &config_items[i];
        if (item->where != where || item->initial == NULL)
            continue;
        struct config_text text = { .text = slice_of(item->initial) };
        struct config_input in = { .path = item->path, .texts = &text, .count = text.text.len > 0 };
        config_set(l, item, base, &in);
    }
    l->place_count = place_count; /* a default was not given: it has no place */
}
