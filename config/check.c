/* config/check.c: what no item can know alone: names that others define, things that exclude or
 * need each other, and what must be there on this machine. Runs after everything was read, so that
 * `larder check` says what a start would run into. One thread, within a load.
 */
#include "config/config_internal.h"

#include <errno.h>
#include <pwd.h>
#include <sys/stat.h>

/* ---- origins --------------------------------------------------------------------------------- */

static bool was_given(const struct config_loader *l, const void *field, size_t first_place)
{
    for (size_t i = first_place; i < l->place_count; i++)
        if (l->places[i].field == field)
            return true;
    return false;
}

static void check_fits(struct config_loader *l, struct config_origin *o, size_t first_place)
{
    for (size_t i = 0; i < config_item_count; i++) {
        const struct config_item *item = &config_items[i];
        enum config_fits here = o->kind == ORIGIN_SERVERS ? FITS_SERVERS : FITS_FILES;
        const void *field = (const char *)o + item->offset;
        if (item->where != IN_ORIGIN || item->fits == FITS_ALL || item->fits == here ||
            !was_given(l, field, first_place))
            continue;
        config_mistake(l, config_place_find(l, field), "goes with %s, and this origin has %s",
                       here == FITS_SERVERS ? "root" : "servers",
                       here == FITS_SERVERS ? "servers" : "root");
    }
}

static void check_root(struct config_loader *l, const struct config_origin *o)
{
    struct config_place at = config_place_or(l, &o->root, "origins.*.root");
    struct stat st;
    if (o->root == NULL)
        return;
    if (stat(o->root, &st) != 0)
        config_mistake(l, &at, "%s cannot be used: %s", config_shown(l, at.text), strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        config_mistake(l, &at, "%s is not a directory", config_shown(l, at.text));
}

void config_check_origin(struct config_loader *l, struct config_origin *o, size_t first_place)
{
    bool has_servers = was_given(l, &o->servers, first_place);
    bool has_root = was_given(l, &o->root, first_place);
    o->kind = has_root ? ORIGIN_FILES : ORIGIN_SERVERS;
    if (has_servers != has_root) {
        check_fits(l, o, first_place);
        check_root(l, o);
        return;
    }
    struct config_place at = config_place_or(l, &o->name, "origins");
    config_mistake(l, &at,
                   has_root ? "has servers and root; an origin is one of the two"
                            : "has neither servers nor root");
}

/* ---- sites ----------------------------------------------------------------------------------- */

static struct config_origin *origin_find(const struct config *c, struct slice name)
{
    for (size_t i = 0; i < c->origin_count; i++)
        if (slice_equal(slice_of(c->origins[i].name), name))
            return &c->origins[i];
    return NULL;
}

static void mistake_unknown_origin(struct config_loader *l, const struct config_place *at)
{
    struct config_nearest near;
    config_nearest_init(&near, at->text);
    for (size_t i = 0; i < l->config->origin_count; i++)
        config_nearest_offer(&near, slice_of(l->config->origins[i].name));
    config_mistake(l, at, "%s is no origin of this file%s", config_shown(l, at->text),
                   config_nearest_question(l, &near, ""));
}

void config_origin_resolve(struct config_loader *l, size_t place,
                           const struct config_origin **origin)
{
    struct config_place at = l->places[place];
    if (at.is_wrong || config_place_is_wrong(l, &l->config->origins))
        return;
    *origin = origin_find(l->config, at.text);
    if (*origin == NULL)
        mistake_unknown_origin(l, &at);
}

static void resolve_origin(struct config_loader *l, struct config_site *s)
{
    const struct config_place *name = config_place_find(l, &s->origin);
    const struct config_place *site = config_place_find(l, &s->name);
    if (name == NULL) {
        config_mistake(l, site, "has no origin");
        return;
    }
    const struct config_origin *found = NULL;
    config_origin_resolve(l, (size_t)(name - l->places), &found);
    s->origin = (struct config_origin *)found;
}

static void add_host(struct config_loader *l, const struct config_site *s, const char *host)
{
    struct config *c = l->config;
    const struct config_site *other = config_hosts_add(c->own, slice_of(host), s);
    if (other == NULL)
        return;
    struct config_place at = config_place_or(l, host, "sites");
    if (other == s)
        config_mistake(l, &at, "%s is in this list already", config_shown(l, slice_of(host)));
    else
        config_mistake(l, &at, "%s is a host of sites[%zu] already",
                       config_shown(l, slice_of(host)), (size_t)(other - c->sites));
}

static void check_site(struct config_loader *l, struct config_site *s)
{
    const struct config_place *site = config_place_find(l, &s->name);
    if (site->is_wrong)
        return;
    resolve_origin(l, s);
    if (config_place_find(l, &s->hosts) == NULL) {
        config_mistake(l, site, "has no hosts");
        return;
    }
    if (s->hosts == NULL || s->hosts[0] == NULL)
        return; /* told */
    s->name = s->hosts[0];
    for (char **host = s->hosts; *host != NULL; host++)
        add_host(l, s, *host);
}

/* One origin and no sites: that origin, for every host. */
static void imply_site(struct config_loader *l)
{
    struct config *c = l->config;
    struct config_site *s = arena_alloc(l->arena, sizeof *s);
    char **hosts = arena_alloc(l->arena, 2 * sizeof *hosts);
    hosts[0] = arena_string(l->arena, SLICE("*"));
    hosts[1] = NULL;
    *s = (struct config_site){ .hosts = hosts, .origin = &c->origins[0], .name = hosts[0] };
    c->sites = s;
    c->site_count = 1;
    config_hosts_init(c->own, 1);
    CHECK(config_hosts_add(c->own, slice_of(hosts[0]), s) == NULL);
}

static void check_sites(struct config_loader *l)
{
    struct config *c = l->config;
    const struct config_place *given = config_place_find(l, &c->sites);
    const struct config_place nowhere = { .path = "sites" };
    if (given == NULL && c->origin_count == 1) {
        imply_site(l);
        return;
    }
    if (given == NULL && c->origin_count > 1)
        config_mistake(l, &nowhere, "not given, and there is more than one origin to choose from");
    if (given != NULL && c->site_count == 0 && !given->is_wrong)
        config_mistake(l, given, "is an empty list; it needs at least one");
    size_t host_count = 0;
    for (size_t i = 0; i < c->site_count; i++)
        for (char **host = c->sites[i].hosts; host != NULL && *host != NULL; host++)
            host_count++;
    config_hosts_init(c->own, host_count);
    for (size_t i = 0; i < c->site_count; i++)
        check_site(l, &c->sites[i]);
    for (size_t i = 0; i < c->site_count; i++) { /* all hosts are known */
        if (c->sites[i].name == NULL)
            continue; /* told */
        config_site_rules_check(l, &c->sites[i]);
        config_site_tests_check(l, &c->sites[i]);
    }
}

static void check_origins(struct config_loader *l)
{
    const struct config_place *given = config_place_find(l, &l->config->origins);
    const struct config_place nowhere = { .path = "origins" };
    if (l->config->origin_count > 0)
        return;
    if (given == NULL)
        config_mistake(l, &nowhere, "not given; it says where content comes from");
    else if (!given->is_wrong)
        config_mistake(l, given, "is empty; it needs at least one");
}

/* ---- the process ----------------------------------------------------------------------------- */

/* Port 0 is a port of the kernel's choice, never the same one. */
static bool is_same_place(const struct config_address *a, const struct config_address *b)
{
    return config_address_equal(a, b) && (a->kind == ADDRESS_UNIX || a->port != 0);
}

static void check_listen(struct config_loader *l)
{
    const struct config *c = l->config;
    for (size_t i = 0; i < c->listen_count; i++) {
        struct config_place at = config_place_or(l, c->listen[i].text, "listen");
        for (size_t j = 0; j < i; j++)
            if (is_same_place(&c->listen[i], &c->listen[j]))
                config_mistake(l, &at, "%s is in this list already",
                               config_shown(l, slice_of(c->listen[i].text)));
        if (c->has_admin && is_same_place(&c->listen[i], &c->admin))
            config_mistake(l, &at, "%s is where admin.listen is",
                           config_shown(l, slice_of(c->listen[i].text)));
    }
}

static void check_admin(struct config_loader *l)
{
    const struct config *c = l->config;
    if (!c->has_admin || c->admin_token != NULL || config_place_is_wrong(l, &c->admin_token) ||
        config_address_is_loopback(&c->admin))
        return;
    struct config_place at = config_place_or(l, &c->admin, "admin.listen");
    config_mistake(l, &at, "%s can be reached from other machines, which needs admin.token%s",
                   config_shown(l, slice_of(c->admin.text)), l->name == NULL ? " in a file" : "");
}

static void check_sizes(struct config_loader *l)
{
    const struct config *c = l->config;
    struct config_place at;
    if (c->object_max_bytes > c->memory_bytes && !config_place_is_wrong(l, &c->memory_bytes)) {
        at = config_place_or(l, &c->object_max_bytes, "cache.max_object");
        config_mistake(l, &at, "%s is more than cache.memory", config_shown(l, at.text));
    }
}

static void check_user(struct config_loader *l)
{
    enum { ROOM = 16384 };
    const struct config *c = l->config;
    struct passwd entry, *found = NULL;
    if (c->user == NULL)
        return;
    char *room = arena_alloc(&l->own, ROOM);
    int error = getpwnam_r(c->user, &entry, room, ROOM, &found);
    struct config_place at = config_place_or(l, &c->user, "user");
    if (found == NULL)
        config_mistake(l, &at, "%s is no user of this machine%s%s",
                       config_shown(l, slice_of(c->user)), error == 0 ? "" : ": ",
                       error == 0 ? "" : strerror(error));
}

/* The file itself is made when it is not there; its directory is not. */
static void check_access_log(struct config_loader *l)
{
    const struct config *c = l->config;
    struct config_place at = config_place_or(l, &c->access_log_path, "access_log.path");
    const char *slash = strrchr(c->access_log_path, '/');
    struct stat st;
    if (!c->has_access_log)
        return;
    if (stat(c->access_log_path, &st) == 0 && S_ISDIR(st.st_mode)) {
        config_mistake(l, &at, "%s is a directory; it must name a file", config_shown(l, at.text));
        return;
    }
    if (slash == NULL || slash == c->access_log_path)
        return;
    const char *folder = arena_string(&l->own, slice_from(c->access_log_path, slash));
    if (stat(folder, &st) != 0)
        config_mistake(l, &at, "the directory %s cannot be used: %s",
                       config_shown(l, slice_of(folder)), strerror(errno));
}

void config_check(struct config_loader *l)
{
    if (l->is_unreadable)
        return;
    check_origins(l);
    check_sites(l);
    check_listen(l);
    check_admin(l);
    check_sizes(l);
    check_user(l);
    check_access_log(l);
}
