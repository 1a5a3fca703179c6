/* config/loader.c: one load's mistakes and places, and the suggestions for near misses; see
 * config_internal.h. One thread.
 */
#include "base/log.h"
#include "config/config_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MISTAKES_MAX =
        100, /* a file of another program's would fill screens; nobody reads more at one time */
    SHOWN_MAX_BYTES = 60,
    COMPARED_MAX_BYTES = 64,
};

void config_loader_init(struct config_loader *l, struct config *c, const char *name)
{
    *l = (struct config_loader){ .config = c, .arena = &c->own->arena, .name = name };
    arena_init(&l->own);
}

static int compare_rows(const void *a, const void *b)
{
    const struct config_mistake_row *x = a, *y = b;
    /* line 0 is "nowhere": after all that have a place */
    size_t x_line = x->at_line - 1, y_line = y->at_line - 1;
    if (x_line != y_line)
        return x_line < y_line ? -1 : 1;
    return (x->at_column > y->at_column) - (x->at_column < y->at_column);
}

/* Stable, which qsort is not: mistakes at one place stay in the order they were found. */
static void sort_rows(struct config_mistake_row *rows, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct config_mistake_row row = rows[i];
        size_t at = i;
        for (; at > 0 && compare_rows(&rows[at - 1], &row) > 0; at--)
            rows[at] = rows[at - 1];
        rows[at] = row;
    }
}

void config_loader_fini(struct config_loader *l, struct config_mistakes *mistakes)
{
    for (struct config_warning *w = l->warnings; w != NULL && l->mistake_count == 0; w = w->next)
        log_warn("%s", w->line);
    sort_rows(l->mistakes, l->mistake_count);
    *mistakes = (struct config_mistakes){ .count = l->mistake_count };
    if (l->mistake_count > 0)
        mistakes->lines = xcalloc(l->mistake_count, sizeof *mistakes->lines);
    for (size_t i = 0; i < l->mistake_count; i++)
        mistakes->lines[i] = l->mistakes[i].line;
    free(l->mistakes);
    free(l->places);
    arena_fini(&l->own);
}

static void print_place(const struct config_loader *l, const struct config_place *at, FILE *out)
{
    if (at->option != NULL) {
        fprintf(out, "%s: ", at->option);
        return;
    }
    if (l->name != NULL && at->line > 0)
        fprintf(out, "%s:%zu:%zu: ", l->name, at->line, at->column);
    else if (l->name != NULL)
        fprintf(out, "%s: ", l->name);
    if (at->path != NULL && at->path[0] != '\0')
        fprintf(out, "%s: ", at->path);
}

/* A stream for one mistake's line, closed by end_mistake(); NULL when enough are told. */
static FILE *begin_mistake(struct config_loader *l, const struct config_place *at, size_t *size)
{
    if (l->mistake_count == MISTAKES_MAX)
        return NULL;
    if (l->mistake_count == l->mistake_room) {
        l->mistake_room = l->mistake_room == 0 ? 8 : l->mistake_room * 2;
        l->mistakes = xrealloc(l->mistakes, l->mistake_room * sizeof *l->mistakes);
    }
    struct config_mistake_row *row = &l->mistakes[l->mistake_count];
    *row = (struct config_mistake_row){ .at_line = at->line, .at_column = at->column };
    FILE *out = open_memstream(&row->line, size);
    CHECK(out != NULL);
    print_place(l, at, out);
    return out;
}

static void end_mistake(struct config_loader *l, FILE *out)
{
    CHECK(fclose(out) == 0);
    l->mistake_count++;
}

void config_mistake(struct config_loader *l, const struct config_place *at, const char *format, ...)
{
    size_t size;
    FILE *out = begin_mistake(l, at, &size);
    if (out == NULL)
        return;
    va_list args;
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    end_mistake(l, out);
}

void config_warn(struct config_loader *l, const struct config_place *at, const char *format, ...)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    CHECK(out != NULL);
    print_place(l, at, out);
    va_list args;
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    CHECK(fclose(out) == 0);
    struct config_warning *w = arena_alloc(&l->own, sizeof *w);
    *w = (struct config_warning){ .line = text };
    arena_own(&l->own, text, free);
    *(l->last_warning == NULL ? &l->warnings : &l->last_warning->next) = w;
    l->last_warning = w;
}

void config_mistake_value(struct config_loader *l, const struct config_place *at,
                          const struct config_wrong *wrong)
{
    size_t size;
    FILE *out = begin_mistake(l, at, &size);
    if (out == NULL)
        return;
    if (wrong->item->type != CONFIG_SECRET)
        fprintf(out, "%s ", config_shown(l, at->text));
    fprintf(out, "%s; allowed: ", wrong->why);
    config_item_print_allowed(wrong->item, out);
    fputs(wrong->question == NULL ? "" : wrong->question, out);
    end_mistake(l, out);
}

struct config_place *config_place_remember(struct config_loader *l, const struct config_place *p)
{
    if (l->place_count == l->place_room) {
        l->place_room = l->place_room == 0 ? 64 : l->place_room * 2;
        l->places = xrealloc(l->places, l->place_room * sizeof *l->places);
    }
    l->places[l->place_count] = *p;
    return &l->places[l->place_count++];
}

struct config_place *config_place_find(const struct config_loader *l, const void *field)
{
    for (size_t i = l->place_count; i > 0; i--)
        if (l->places[i - 1].field == field)
            return &l->places[i - 1];
    return NULL;
}

struct config_place config_place_or(const struct config_loader *l, const void *field,
                                    const char *path)
{
    const struct config_place *found = config_place_find(l, field);
    return found != NULL ? *found : (struct config_place){ .path = path };
}

bool config_place_is_wrong(const struct config_loader *l, const void *field)
{
    const struct config_place *found = config_place_find(l, field);
    return found != NULL && found->is_wrong;
}

const char *config_format(struct config_loader *l, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    CHECK(len >= 0);
    arena_own(&l->own, text, free);
    return text;
}

const char *config_item_shown_path(struct config_loader *l, const struct config_item *item)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    CHECK(out != NULL);
    config_item_print_path(item, out);
    CHECK(fclose(out) == 0);
    arena_own(&l->own, text, free);
    return text;
}

const char *config_shown(struct config_loader *l, struct slice text)
{
    size_t len = text.len;
    if (len > SHOWN_MAX_BYTES) {
        len = SHOWN_MAX_BYTES;
        while (len > 0 && ((unsigned char)text.ptr[len] & 0xC0) == 0x80)
            len--; /* not in the middle of a UTF-8 character */
    }
    char *shown = arena_alloc(&l->own, len * 4 + 8);
    char *to = shown;
    *to++ = '"';
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < 0x20 || c == 0x7f)
            to += sprintf(to, "\\x%02x", c);
        else
            *to++ = (char)c;
    }
    strcpy(to, len < text.len ? "…\"" : "\"");
    return shown;
}

/* ---- near misses ----------------------------------------------------------------------------- */

/* Optimal string alignment: insert, delete, replace, or swap two neighbours. */
unsigned config_edit_distance(struct slice a, struct slice b)
{
    if (a.len > COMPARED_MAX_BYTES || b.len > COMPARED_MAX_BYTES)
        return UINT32_MAX;
    unsigned rows[3][COMPARED_MAX_BYTES + 1];
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b.len; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= a.len; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.len; j++) {
            unsigned best = last[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        unsigned *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[b.len];
}

void config_nearest_init(struct config_nearest *n, struct slice text)
{
    /* a third of the letters wrong is still a slip; more is another word */
    unsigned near = text.len < 3 ? 1 : (unsigned)(text.len + 2) / 3;
    *n = (struct config_nearest){ .text = text, .distance = (near > 3 ? 3 : near) + 1 };
}

void config_nearest_offer(struct config_nearest *n, struct slice candidate)
{
    enum { STEM = 3 }; /* "warning" for "warn", "max_obj" for "max_object" */
    unsigned distance = config_edit_distance(n->text, candidate);
    bool is_stem = (n->text.len >= STEM && slice_has_prefix(candidate, n->text)) ||
                   (candidate.len >= STEM && slice_has_prefix(n->text, candidate));
    if (distance >= candidate.len)
        return; /* nothing of it was kept */
    if (distance < n->distance || (is_stem && n->best.ptr == NULL)) {
        n->best = candidate;
        n->distance = distance < n->distance ? distance : n->distance;
    }
}

const char *config_nearest_question(struct config_loader *l, const struct config_nearest *n,
                                    const char *prefix)
{
    if (n->best.ptr == NULL)
        return "";
    return config_format(l, "; did you mean %s" SLICE_FMT "?", prefix, SLICE_ARG(n->best));
}
