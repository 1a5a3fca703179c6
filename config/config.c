/* config/config.c: loading from a file, a text or options; references; what a reload cannot change.
 * See config.h. */
#include "config/config_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILE_MAX_BYTES = 4 << 20 };

/* ---- life ------------------------------------------------------------------------------------ */

static struct config *config_new(void)
{
    struct config *c = xcalloc(1, sizeof *c);
    c->own = xcalloc(1, sizeof *c->own);
    arena_init(&c->own->arena);
    atomic_init(&c->own->refs, 1);
    return c;
}

struct config *config_ref(struct config *c)
{
    uint32_t before = atomic_fetch_add_explicit(&c->own->refs, 1, memory_order_relaxed);
    CHECK(before > 0 && before < UINT32_MAX);
    return c;
}

void config_unref(struct config **ptr)
{
    struct config *c = *ptr;
    *ptr = NULL;
    if (c == NULL)
        return;
    uint32_t before = atomic_fetch_sub_explicit(&c->own->refs, 1, memory_order_acq_rel);
    CHECK(before > 0);
    if (before > 1)
        return;
    arena_fini(&c->own->arena);
    free(c->own);
    free(c);
}

void config_mistakes_free(struct config_mistakes *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->lines[i]);
    free(m->lines);
    *m = (struct config_mistakes){ 0 };
}

/* ---- options --------------------------------------------------------------------------------- */

static void set_option(struct config_loader *l, const char *option, const char *path,
                       const char *value)
{
    if (value == NULL)
        return;
    struct config_text text = { .text = slice_of(value) };
    config_set(
        l, config_item_find(slice_of(path)), l->config,
        &(struct config_input){ .path = path, .option = option, .texts = &text, .count = 1 });
}

static void set_listen(struct config_loader *l, const char *const *listen)
{
    size_t count = 0;
    while (listen != NULL && listen[count] != NULL)
        count++;
    if (count == 0)
        return;
    struct config_text *texts = arena_alloc(&l->own, count * sizeof(struct config_text));
    for (size_t i = 0; i < count; i++)
        texts[i] = (struct config_text){ .text = slice_of(listen[i]) };
    config_set(l, config_item_find(SLICE("listen")), l->config,
               &(struct config_input){
                   .path = "listen", .option = "--listen", .texts = texts, .count = count });
}

static void set_admin(struct config_loader *l, const char *admin)
{
    bool is_on;
    if (admin == NULL)
        return;
    if (config_parse_bool(slice_of(admin), &is_on)) {
        set_option(l, "--admin", "admin", admin);
        return;
    }
    set_option(l, "--admin", "admin", "on");
    set_option(l, "--admin", "admin.listen", admin);
}

static void add_option_origin(struct config_loader *l, const struct config_options *options)
{
    bool is_files = options->root != NULL;
    const char *option = is_files ? "--root" : "--origin";
    struct config_origin *o = arena_alloc(l->arena, sizeof *o);
    *o = (struct config_origin){ .name = arena_string(l->arena, is_files ? SLICE("files")
                                                                         : SLICE("origin")) };
    l->config->origins = o;
    l->config->origin_count = 1;
    config_set_defaults(l, IN_ORIGIN, o);
    size_t first_place = l->place_count;
    struct config_text text = { .text = slice_of(is_files ? options->root : options->origin) };
    const char *path = is_files ? "origins.*.root" : "origins.*.servers";
    config_set(
        l, config_item_find(slice_of(path)), o,
        &(struct config_input){ .path = path, .option = option, .texts = &text, .count = 1 });
    config_check_origin(l, o, first_place);
}

static void set_options(struct config_loader *l, const struct config_options *options)
{
    set_listen(l, options->listen);
    set_option(l, "--workers", "workers", options->workers);
    set_option(l, "--memory", "cache.memory", options->memory);
    set_admin(l, options->admin);
    const char *content = options->root != NULL ? "--root" : "--origin";
    struct config_place at = { .option = content };
    bool is_given = options->origin != NULL || options->root != NULL;
    if (l->name != NULL && is_given)
        config_mistake(l, &at, "the file %s says where content comes from; give one of the two",
                       l->name);
    else if (l->name == NULL && options->origin != NULL && options->root != NULL)
        config_mistake(l, &at, "--origin is given too; give one of the two");
    else if (l->name == NULL && is_given)
        add_option_origin(l, options);
}

/* ---- loading --------------------------------------------------------------------------------- */

struct source {
    const char *name; /* NULL: options only */
    struct slice yaml;
    const struct config_options *options; /* may be NULL */
};

/* Options alone with no content at all: said in the words of the command line. */
static bool has_content(struct config_loader *l, const struct source *from)
{
    if (from->name != NULL || from->options->origin != NULL || from->options->root != NULL)
        return true;
    struct config_place at = { .option = "--origin" };
    config_mistake(l, &at,
                   "not given; say where content comes from: --origin URL, --root DIR or -c FILE");
    return false;
}

static struct config *load(const struct source *from, struct config_mistakes *mistakes)
{
    struct config *c = config_new();
    struct config_loader l;
    config_loader_init(&l, c, from->name);
    config_set_defaults(&l, IN_CONFIG, c);
    if (from->name != NULL) {
        c->path = arena_string(&c->own->arena, slice_of(from->name));
        config_parse_yaml(&l, from->yaml);
    }
    if (from->options != NULL)
        set_options(&l, from->options);
    bool is_origin_refused = l.mistake_count > 0 && c->origin_count == 0 && from->name == NULL;
    if (has_content(&l, from) && !is_origin_refused)
        config_check(&l);
    config_loader_fini(&l, mistakes);
    if (mistakes->count > 0)
        config_unref(&c);
    return c;
}

struct config *config_load_text(const char *name, struct slice yaml,
                                struct config_mistakes *mistakes)
{
    return load(&(struct source){ .name = name, .yaml = yaml }, mistakes);
}

struct config *config_from_options(const struct config_options *options,
                                   struct config_mistakes *mistakes)
{
    CHECK(options != NULL);
    return load(&(struct source){ .options = options }, mistakes);
}

static void one_mistake(struct config_mistakes *mistakes, const char *path, const char *sentence)
{
    *mistakes = (struct config_mistakes){ .count = 1, .lines = xcalloc(1, sizeof(char *)) };
    size_t bytes = strlen(path) + strlen(sentence) + 3;
    mistakes->lines[0] = xmalloc(bytes);
    snprintf(mistakes->lines[0], bytes, "%s: %s", path, sentence);
}

/* The caller frees `*text`. False with a mistake. */
static bool read_whole(const char *path, char **text, size_t *bytes,
                       struct config_mistakes *mistakes)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        one_mistake(mistakes, path, strerror(errno));
        return false;
    }
    *text = xmalloc(FILE_MAX_BYTES + 1);
    errno = 0;
    *bytes = fread(*text, 1, FILE_MAX_BYTES + 1, file);
    int error = ferror(file) ? errno : 0;
    fclose(file);
    if (error == 0 && *bytes <= FILE_MAX_BYTES)
        return true;
    one_mistake(mistakes, path,
                error != 0 ? strerror(error) : "larger than 4MiB, which no configuration is");
    free(*text);
    return false;
}

struct config *config_load_file_with(const char *path, const struct config_options *options,
                                     struct config_mistakes *mistakes)
{
    char *text;
    size_t bytes;
    if (!read_whole(path, &text, &bytes, mistakes))
        return NULL;
    struct source from = { .name = path, .yaml = { text, bytes }, .options = options };
    struct config *c = load(&from, mistakes);
    free(text);
    return c;
}

struct config *config_load_file(const char *path, struct config_mistakes *mistakes)
{
    return config_load_file_with(path, NULL, mistakes);
}

/* ---- what a reload cannot change ------------------------------------------------------------- */

/* NULL when it is not set or does not matter. The caller frees it. */
static char *value_text(const struct config_item *item, const struct config *c)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    CHECK(out != NULL);
    bool is_idle = !c->has_admin && slice_has_prefix(slice_of(item->path), SLICE("admin."));
    bool is_set = !is_idle && config_item_print_value(item, c, out);
    CHECK(fclose(out) == 0);
    if (is_set)
        return text;
    free(text);
    return NULL;
}

/* Secrets print alike. */
static bool is_token_changed(const struct config *a, const struct config *b)
{
    if (!a->has_admin || !b->has_admin || a->admin_token == NULL || b->admin_token == NULL)
        return false;
    return strcmp(a->admin_token, b->admin_token) != 0;
}

struct config_mistakes config_restart_items(const struct config *running,
                                            const struct config *loaded)
{
    struct config_mistakes list = { .lines = xcalloc(config_item_count, sizeof(char *)) };
    for (size_t i = 0; i < config_item_count; i++) {
        const struct config_item *item = &config_items[i];
        if (item->where != IN_CONFIG || item->reload == LIVE)
            continue;
        char *before = value_text(item, running), *after = value_text(item, loaded);
        bool is_same =
            before == NULL || after == NULL ? before == after : strcmp(before, after) == 0;
        if (item->type == CONFIG_SECRET && is_token_changed(running, loaded))
            is_same = false;
        if (!is_same) {
            size_t size;
            FILE *out = open_memstream(&list.lines[list.count++], &size);
            CHECK(out != NULL);
            fprintf(out, "%s: needs a restart; %s stays in force", item->path,
                    before == NULL ? "what runs" : before);
            CHECK(fclose(out) == 0);
        }
        free(before);
        free(after);
    }
    return list;
}
