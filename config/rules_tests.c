/* config/rules_tests.c: the tests that a site has in its configuration: their
 * URLs taken apart, what they expect checked. They are run by cache/ruletest.c.
 * One thread, within a load.
 */
#include "config/config_internal.h"
#include "config/rules_internal.h"

static bool is_target(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~' || text.ptr[i] == '#')
            return false;
    return true;
}

static bool has_port(struct slice authority)
{
    size_t close = slice_find(authority, ']');
    size_t from = close < authority.len ? close : 0;
    return slice_find((struct slice){ authority.ptr + from, authority.len - from }, ':') <
           authority.len - from;
}

static bool read_authority(struct config_loader *l, struct config_rule_test *t,
                           struct slice authority, const char **why)
{
    struct config_address address;
    struct slice server = arena_printf(&l->own, "http://" SLICE_FMT, SLICE_ARG(authority));
    if (!config_parse_server(&l->own, server, &address, why))
        return false;
    bool is_v6 = strchr(address.host, ':') != NULL;
    t->host = arena_printf(l->arena, is_v6 ? "[%s]" : "%s", address.host);
    char *host = (char *)t->host.ptr;
    for (size_t i = 0; i < t->host.len; i++)
        host[i] = ascii_lower(host[i]);
    if (t->host.len > 1 && host[t->host.len - 1] == '.')
        t->host.len--;
    uint16_t usual = slice_equal(t->scheme, SLICE("https")) ? 443 : 80;
    t->port = !has_port(authority) || address.port == usual ? 0 : address.port;
    return true;
}

/* `why` is a sentence without subject. */
static bool read_url(struct config_loader *l, struct config_rule_test *t, const char **why)
{
    struct slice url = slice_of(t->request.url);
    bool is_https = slice_has_prefix_nocase(url, SLICE("https://"));
    size_t scheme_len = is_https ? 8 : 7;
    *why = "begins with neither http:// nor https://";
    if (!is_https && !slice_has_prefix_nocase(url, SLICE("http://")))
        return false;
    *why = "has a space, a # or a character beyond ASCII";
    if (!is_target(url))
        return false;
    t->scheme = is_https ? SLICE("https") : SLICE("http");
    struct slice rest = { url.ptr + scheme_len, url.len - scheme_len };
    size_t slash = slice_find(rest, '/'), mark = slice_find(rest, '?');
    size_t end = slash < mark ? slash : mark;
    t->path = slash < mark ? (struct slice){ rest.ptr + slash, mark - slash } : SLICE("/");
    t->query =
        mark == rest.len ? SLICE_NONE : (struct slice){ rest.ptr + mark + 1, rest.len - mark - 1 };
    return read_authority(l, t, (struct slice){ rest.ptr, end }, why);
}

static bool expects_anything(const struct config_rule_test *t)
{
    return t->expect.outcome != RULE_NOT_GIVEN || t->expect.ttl_s != RULE_NOT_GIVEN ||
           t->expect.stored != RULE_NOT_GIVEN || t->expect.status != RULE_NOT_GIVEN ||
           t->expect.key != NULL || t->expect.rule != NULL || t->expect.why != NULL ||
           t->expect.location != NULL || t->expect.origin != NULL || t->expect.tags != NULL;
}

void config_rule_test_compile(struct config_loader *l, struct config_rule_test *t,
                              const struct config_place *at, size_t first_mistake)
{
    const char *why;
    struct network client;
    const struct config_place *url = config_place_find(l, &t->request.url);
    if (t->request.url == NULL && l->mistake_count == first_mistake)
        config_mistake(l, at, "has no request.url");
    else if (t->request.url != NULL && !read_url(l, t, &why))
        config_mistake(l, url, "%s %s", config_shown(l, slice_of(t->request.url)), why);
    if (t->request.client != NULL && network_parse(t->request.client, &client)) {
        memcpy(t->peer.bytes, client.bytes, sizeof t->peer.bytes);
        t->has_peer = true;
    }
    if (!expects_anything(t) && l->mistake_count == first_mistake)
        config_mistake(l, at, "expects nothing; give it expect: { outcome: … }");
}

static void check_rule_name(struct config_loader *l, const struct config_site *s,
                            const struct config_rule_test *t)
{
    struct config_nearest near;
    if (t->expect.rule == NULL)
        return;
    config_nearest_init(&near, slice_of(t->expect.rule));
    for (size_t i = 0; i < s->rule_count; i++) {
        const struct config_rule *r = &s->rules[i];
        if (strcmp(r->where, t->expect.rule) == 0 ||
            (r->name != NULL && strcmp(r->name, t->expect.rule) == 0))
            return;
        if (r->name != NULL)
            config_nearest_offer(&near, slice_of(r->name));
    }
    const struct config_place at = config_place_or(l, &t->expect.rule, "sites");
    config_mistake(l, &at, "%s is no rule of this site%s",
                   config_shown(l, slice_of(t->expect.rule)),
                   config_nearest_question(l, &near, ""));
}

static void check_origin(struct config_loader *l, const struct config_rule_test *t)
{
    const struct config *c = l->config;
    for (size_t i = 0; i < c->origin_count; i++)
        if (t->expect.origin == NULL || strcmp(c->origins[i].name, t->expect.origin) == 0)
            return;
    const struct config_place at = config_place_or(l, &t->expect.origin, "sites");
    if (t->expect.origin != NULL)
        config_mistake(l, &at, "%s is no origin of this file",
                       config_shown(l, slice_of(t->expect.origin)));
}

void config_site_tests_check(struct config_loader *l, const struct config_site *s)
{
    for (size_t i = 0; i < s->test_count; i++) {
        const struct config_rule_test *t = &s->tests[i];
        struct config_place at = config_place_or(l, &t->request.url, "sites");
        if (t->host.len > 0 && config_site_find(l->config, t->host) != s)
            config_mistake(l, &at, "%s is no URL of this site, whose hosts are others",
                           config_shown(l, slice_of(t->request.url)));
        check_rule_name(l, s, t);
        check_origin(l, t);
    }
}
