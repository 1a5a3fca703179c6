/* config/print.c: the snapshot as YAML, and the table of items for `larder config --defaults` and
 * the manual. Any thread that holds a reference.
 */
#include "config/config_internal.h"
#include "config/rules_internal.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- values ---------------------------------------------------------------------------------- */

/* One UTF-8 character off the text; 0 bytes when it is not one. */
static size_t decode(struct slice text, uint32_t *code)
{
    unsigned char first = (unsigned char)text.ptr[0];
    size_t len = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 0;
    if (len == 0 || len > text.len)
        return 0;
    *code = len == 1 ? first : first & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if (((unsigned char)text.ptr[i] & 0xC0) != 0x80)
            return 0;
        *code = *code << 6 | ((unsigned char)text.ptr[i] & 0x3F);
    }
    return len;
}

/* What YAML takes for a line break, for no character, or what a terminal would obey. */
static bool needs_escape(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 ||
           code == 0xFEFF || (code >= 0xD800 && code < 0xE000) || code == 0xFFFE || code == 0xFFFF;
}

void config_print_quoted(const char *string, FILE *out)
{
    struct slice rest = slice_of(string);
    fputc('"', out);
    while (rest.len > 0) {
        uint32_t code = 0;
        size_t len = decode(rest, &code);
        if (len == 0) {
            len = 1;
            fprintf(out, "\\x%02X", (unsigned char)rest.ptr[0]);
        } else if (code == '"' || code == '\\')
            fprintf(out, "\\%c", (int)code);
        else if (needs_escape(code))
            fprintf(out, "\\u%04X", code);
        else
            fwrite(rest.ptr, 1, len, out);
        rest = (struct slice){ rest.ptr + len, rest.len - len };
    }
    fputc('"', out);
}

static uint64_t load_number(const struct config_item *item, const void *field)
{
    uint64_t wide;
    uint32_t narrow;
    if (item->bytes == sizeof wide) {
        memcpy(&wide, field, sizeof wide);
        return wide;
    }
    CHECK(item->bytes == sizeof narrow);
    memcpy(&narrow, field, sizeof narrow);
    return narrow;
}

static void *load_pointer(const void *field)
{
    void *ptr;
    memcpy(&ptr, field, sizeof ptr);
    return ptr;
}

static size_t load_count(const struct config_item *item, const void *base)
{
    size_t count;
    CHECK(item->count_offset != NO_COUNT);
    memcpy(&count, (const char *)base + item->count_offset, sizeof count);
    return count;
}

static void print_number(const struct config_item *item, uint64_t value, FILE *out)
{
    if (item->zero != NULL && value == 0)
        fputs(item->zero, out);
    else if (item->type == CONFIG_BYTES)
        config_print_bytes(value, out);
    else if (item->type == CONFIG_COUNT || item->type == CONFIG_STATUS)
        fprintf(out, "%llu", (unsigned long long)value);
    else
        config_print_duration(item->type == CONFIG_S ? value * 1000 : value, out);
}

static void print_addresses(const struct config_item *item, const void *base, FILE *out)
{
    const struct config_address *list = load_pointer((const char *)base + item->offset);
    size_t count = load_count(item, base);
    fputc('[', out);
    for (size_t i = 0; i < count; i++) {
        fputs(i == 0 ? " " : ", ", out);
        config_print_quoted(list[i].text, out);
    }
    fputs(count > 0 ? " ]" : "]", out);
}

void config_print_strings(char *const *list, FILE *out)
{
    fputc('[', out);
    for (char *const *string = list; *string != NULL; string++) {
        fputs(string == list ? " " : ", ", out);
        config_print_quoted(*string, out);
    }
    fputs(*list != NULL ? " ]" : "]", out);
}

static bool print_origin_name(const struct config_origin *o, FILE *out)
{
    if (o != NULL)
        config_print_quoted(o->name, out);
    return o != NULL;
}

static bool print_ttls(const struct config_item *item, const void *base, FILE *out)
{
    const struct config_ttl *list = load_pointer((const char *)base + item->offset);
    size_t count = load_count(item, base);
    if (count == 0 && item->where == IN_RULE)
        return false;
    fputc('{', out);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s%u: ", i == 0 ? " " : ", ", list[i].status);
        config_print_duration(list[i].ttl_s * UINT64_C(1000), out);
    }
    fputs(count > 0 ? " }" : "}", out);
    return true;
}

static bool print_list(char *const *list, FILE *out)
{
    if (list == NULL)
        return false;
    config_print_strings(list, out);
    return true;
}

static bool print_string(const char *string, FILE *out)
{
    if (string == NULL)
        return false;
    config_print_quoted(string, out);
    return true;
}

bool config_item_print_value(const struct config_item *item, const void *base, FILE *out)
{
    const void *field = (const char *)base + item->offset;
    if (config_item_is_optional_number(item) && load_number(item, field) == RULE_NOT_GIVEN)
        return false;
    switch (item->type) {
    case CONFIG_COUNT:
    case CONFIG_STATUS:
    case CONFIG_BYTES:
    case CONFIG_MS:
    case CONFIG_S: print_number(item, load_number(item, field), out); return true;
    case CONFIG_SWITCH: fputs(*(const bool *)field ? "on" : "off", out); return true;
    case CONFIG_BOOL: fputs(*(const bool *)field ? "true" : "false", out); return true;
    case CONFIG_CHOICE: fputs(item->choices[load_number(item, field)], out); return true;
    case CONFIG_TEXT:
    case CONFIG_REGEX:
    case CONFIG_METHOD:
    case CONFIG_TEMPLATE:
    case CONFIG_BODY:
    case CONFIG_CLIENT_ADDRESS:
    case CONFIG_URL:
    case CONFIG_PATH:
    case CONFIG_HOST: return print_string(load_pointer(field), out);
    case CONFIG_SECRET: return print_string(load_pointer(field) == NULL ? NULL : "***", out);
    case CONFIG_ADDRESS: return print_string(((const struct config_address *)field)->text, out);
    case CONFIG_ADDRESSES:
    case CONFIG_SERVERS: print_addresses(item, base, out); return true;
    case CONFIG_FILE_NAMES:
    case CONFIG_FIELD_NAMES:
    case CONFIG_NETWORKS:
    case CONFIG_WORDS:
    case CONFIG_HOST_GLOBS:
    case CONFIG_PATH_GLOBS:
    case CONFIG_NAME_GLOBS:
    case CONFIG_NAMES:
    case CONFIG_VALUE_GLOB:
    case CONFIG_REGEXES:
    case CONFIG_METHODS:
    case CONFIG_STATUSES:
    case CONFIG_TAGS:
    case CONFIG_HOSTS: return print_list(load_pointer(field), out);
    case CONFIG_TTLS: return print_ttls(item, base, out);
    case CONFIG_ORIGIN_NAME: return print_origin_name(load_pointer(field), out);
    case CONFIG_CONDITIONS:
    case CONFIG_FIELDS:
    case CONFIG_RULE_CACHE:
    case CONFIG_DENY: return config_item_print_rule_value(item, field, out);
    case CONFIG_MATCH:
    case CONFIG_RULES:
    case CONFIG_TESTS:
    case CONFIG_ORIGINS:
    case CONFIG_SITES: return false;
    }
    UNREACHABLE();
}

/* ---- the snapshot ---------------------------------------------------------------------------- */

static void print_line(const struct config_item *item, const void *base, const char *indent,
                       FILE *out)
{
    char *value = NULL;
    size_t size;
    FILE *held = open_memstream(&value, &size);
    CHECK(held != NULL);
    bool is_set = config_item_print_value(item, base, held);
    CHECK(fclose(held) == 0);
    if (is_set)
        fprintf(out, "%s%s: %s\n", indent, config_item_name(item), value);
    else
        fprintf(out, "%s# %s: not set\n", indent, config_item_name(item));
    free(value);
}

static void print_origin(const struct config_origin *o, FILE *out)
{
    enum config_fits here = o->kind == ORIGIN_SERVERS ? FITS_SERVERS : FITS_FILES;
    fputs("  ", out);
    config_print_quoted(o->name, out);
    fputs(":\n", out);
    for (size_t i = 0; i < config_item_count; i++) {
        const struct config_item *item = &config_items[i];
        if (item->where == IN_ORIGIN && (item->fits == FITS_ALL || item->fits == here))
            print_line(item, o, "    ", out);
    }
}

static void print_site(const struct config_site *s, FILE *out)
{
    const char *indent = "  - ";
    for (size_t i = 0; i < config_item_count; i++) {
        const struct config_item *item = &config_items[i];
        if (item->where != IN_SITE || item->type == CONFIG_RULES || item->type == CONFIG_TESTS)
            continue;
        print_line(item, s, indent, out);
        indent = "    ";
    }
    config_print_rules(s, out);
}

/* "cache" of "cache.memory"; empty for an item at the top. */
static struct slice group_of(const struct config_item *item)
{
    struct slice path = slice_of(item->path);
    size_t dot = slice_find(path, '.');
    return dot == path.len ? SLICE_NONE : (struct slice){ path.ptr, dot };
}

static void print_item(const struct config *c, const struct config_item *item, struct slice *group,
                       FILE *out)
{
    struct slice mine = group_of(item);
    if (item->type == CONFIG_SWITCH) {
        bool is_on = *(const bool *)((const char *)c + item->offset);
        fprintf(out, is_on ? "%s:\n" : "%s: off\n", item->path);
        *group = is_on ? slice_of(item->path) : SLICE_NONE;
        return;
    }
    const struct config_item *owner = mine.len == 0 ? NULL : config_item_find(mine);
    if (owner != NULL && !*(const bool *)((const char *)c + owner->offset))
        return; /* what is off has no items */
    if (mine.len > 0 && !slice_equal(mine, *group))
        fprintf(out, SLICE_FMT ":\n", SLICE_ARG(mine));
    *group = mine;
    print_line(item, c, mine.len > 0 ? "  " : "", out);
}

void config_print(const struct config *c, FILE *out)
{
    struct slice group = SLICE_NONE;
    for (size_t i = 0; i < config_item_count; i++) {
        const struct config_item *item = &config_items[i];
        if (item->where == IN_CONFIG && item->type != CONFIG_ORIGINS && item->type != CONFIG_SITES)
            print_item(c, item, &group, out);
    }
    fputs("origins:\n", out);
    for (size_t i = 0; i < c->origin_count; i++)
        print_origin(&c->origins[i], out);
    fputs("sites:\n", out);
    for (size_t i = 0; i < c->site_count; i++)
        print_site(&c->sites[i], out);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const char *default_of(const struct config_item *item)
{
    return item->shown_initial != NULL ? item->shown_initial
           : item->initial != NULL     ? item->initial
                                       : "not set";
}

static const char *reload_of(const struct config_item *item)
{
    return item->reload == LIVE ? "reload" : "restart";
}

static void print_allowed(const struct config_item *item, FILE *out)
{
    config_item_print_shape(item, out);
    if (item->unit != NULL)
        fprintf(out, " (%s)", item->unit);
}

void config_print_items(FILE *out)
{
    for (size_t i = 0; i < config_item_count; i++) {
        const struct config_item *item = &config_items[i];
        config_item_print_path(item, out);
        fprintf(out, "\n    %s\n    Allowed: ", item->help);
        print_allowed(item, out);
        fprintf(out, "\n    Default: %s. Changes by %s.\n", default_of(item), reload_of(item));
    }
}

/* No text of the table holds a bar, which would end a cell (a test looks). */
void config_print_manual(FILE *out)
{
    fputs("| Item | Meaning | Allowed | Default | Changes by "
          "|\n|---|---|---|---|---|\n",
          out);
    for (size_t i = 0; i < config_item_count; i++) {
        const struct config_item *item = &config_items[i];
        fputs("| `", out);
        config_item_print_path(item, out);
        fprintf(out, "` | %s | ", item->help);
        print_allowed(item, out);
        fprintf(out, " | %s | %s |\n", default_of(item), reload_of(item));
    }
}
