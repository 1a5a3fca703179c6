/* admin/purge.c: POST /purge: what is to go, in JSON; how much went, in JSON.
 *
 *   body -> read_purge(): one of the modes, and how -> the text that cache_purge() wants -> answer
 *
 * Runs on the admin thread: a purge of everything keeps the admin port busy for its second or two,
 * and nobody else.
 */
#include "admin/admin_internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>

enum { KEY_BYTES_MAX = 64 << 10, HOST_BYTES_MAX = 300 };

enum takes { TAKES_STRING, TAKES_LIST, TAKES_TRUE };
static const struct mode {
    const char *name; /* of the member */
    enum purge_what what;
    enum takes takes;
} modes[] = {
    { "url", PURGE_URL, TAKES_STRING },
    { "host", PURGE_HOST, TAKES_STRING },
    { "prefix", PURGE_PREFIX, TAKES_STRING },
    { "glob", PURGE_GLOB, TAKES_STRING },
    { "tag", PURGE_TAG, TAKES_STRING },
    { "tags", PURGE_TAG, TAKES_LIST },
    { "everything", PURGE_EVERYTHING, TAKES_TRUE },
};
#define MODE_WORDS "url, host, prefix, glob, tag, tags, everything"

struct order { /* what a body says */
    const struct mode *mode;
    const json_t *value;
    struct slice host; /* of a url or prefix that is a path */
    enum purge_how how;
};

/* ---- reading --------------------------------------------------------------------------------- */

/* The body as JSON; NULL after a refusal was sent. */
static json_t *read_body(struct evhttp_request *req)
{
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    size_t length = evbuffer_get_length(in);
    if (length == 0) {
        admin_reply_error(req, 400,
                          "the body is empty; it is a JSON object such as {\"url\": "
                          "\"http://www.example.com/path\"}");
        return NULL;
    }
    json_error_t error;
    json_t *body =
        json_loadb((const char *)evbuffer_pullup(in, -1), length, JSON_REJECT_DUPLICATES, &error);
    if (body == NULL)
        admin_reply_error(req, 400, "the body is not JSON: line %d, column %d: %s", error.line,
                          error.column, error.text);
    return body;
}

static struct slice string_of(const json_t *value)
{
    return value == NULL ? SLICE_NONE
                         : (struct slice){ json_string_value(value), json_string_length(value) };
}

static const struct mode *mode_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++)
        if (strcmp(modes[i].name, name) == 0)
            return &modes[i];
    return NULL;
}

static bool is_text(const json_t *value)
{
    if (!json_is_string(value) || json_string_length(value) == 0)
        return false;
    for (size_t i = 0; i < json_string_length(value); i++) {
        unsigned char c = (unsigned char)json_string_value(value)[i];
        if (c < ' ' || c == 127)
            return false;
    }
    return true;
}

static bool is_text_list(const json_t *value)
{
    size_t count = json_array_size(value);
    for (size_t i = 0; i < count; i++)
        if (!is_text(json_array_get(value, i)))
            return false;
    return count > 0 && count <= TAGS_MAX;
}

static const char *check_member(const char *name, const json_t *value)
{
    const struct mode *mode = mode_of(name);
    if (strcmp(name, "soft") == 0 || strcmp(name, "dry_run") == 0)
        return json_is_boolean(value) ? NULL : "this is true or false";
    if (mode == NULL)
        return "unknown member; a purge has one of " MODE_WORDS
               ", and may have soft or dry_run; a url or prefix that is a path has a host, too";
    switch (mode->takes) {
    case TAKES_STRING:
        return is_text(value) ? NULL
                              : "this is a string, and not empty, without control characters";
    case TAKES_LIST:
        return is_text_list(value) ? NULL : "this is a list of 1 to 256 strings, none empty";
    case TAKES_TRUE: return json_is_true(value) ? NULL : "this is true";
    }
    UNREACHABLE();
}

/* host stands beside a url or prefix that is a path: then it is no mode of its own. */
static const char *choose_mode(const json_t *body, struct order *order, const char **name)
{
    const json_t *host = json_object_get(body, "host");
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        const json_t *value = json_object_get(body, modes[i].name);
        if (value == NULL || value == host)
            continue;
        *name = modes[i].name;
        if (order->mode != NULL)
            return "a purge has one of " MODE_WORDS " at a time";
        order->mode = &modes[i];
        order->value = value;
    }
    *name = "";
    if (order->mode == NULL && host == NULL)
        return "a purge has one of " MODE_WORDS;
    if (host == NULL)
        return NULL;
    if (order->mode == NULL) {
        order->mode = mode_of("host");
        order->value = host;
        return NULL;
    }
    bool is_path = (order->mode->what == PURGE_URL || order->mode->what == PURGE_PREFIX) &&
                   json_string_value(order->value)[0] == '/';
    *name = "host";
    order->host = string_of(host);
    return is_path ? NULL : "it goes with a url or prefix that is a path, or stands alone";
}

/* NULL, or why this is no purge. `name` is set to the member that it is about. */
static const char *read_order(json_t *body, struct order *order, const char **name)
{
    const char *key, *why;
    json_t *value;
    *order = (struct order){ .how = PURGE_HARD };
    *name = "";
    if (!json_is_object(body))
        return "the body is a JSON object such as {\"url\": \"http://www.example.com/path\"}";
    json_object_foreach(body, key, value)
    {
        *name = key;
        if ((why = check_member(key, value)) != NULL)
            return why;
    }
    why = choose_mode(body, order, name);
    if (why != NULL)
        return why;
    bool is_soft = json_is_true(json_object_get(body, "soft"));
    bool is_dry = json_is_true(json_object_get(body, "dry_run"));
    *name = "soft";
    if (is_soft && is_dry)
        return "a purge is soft, or a dry_run, or neither";
    order->how = is_dry ? PURGE_DRY : is_soft ? PURGE_SOFT : PURGE_HARD;
    return NULL;
}

/* ---- from what operators write to what keys have --------------------------------------------- */

static struct slice without_scheme(struct slice s)
{
    static const struct slice schemes[] = { SLICE_INIT("http://"), SLICE_INIT("https://") };
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++)
        if (slice_has_prefix_nocase(s, schemes[i]))
            return (struct slice){ s.ptr + schemes[i].len, s.len - schemes[i].len };
    return s;
}

/* As keys have it: in lower case, without a dot at the end, without the default port. */
static size_t write_host(struct slice host, char *out)
{
    if (slice_has_suffix(host, SLICE(":80")))
        host.len -= 3;
    size_t length = 0;
    for (size_t i = 0; i < host.len; i++) {
        bool is_end = i + 1 == host.len || host.ptr[i + 1] == ':';
        if (host.ptr[i] != '.' || !is_end)
            out[length++] = ascii_lower(host.ptr[i]);
    }
    return length;
}

static size_t host_text(struct slice host, char *out, const char **why)
{
    *why = "this is a host such as www.example.com, or host:port";
    for (size_t i = 0; i < host.len; i++)
        if (host.ptr[i] == '/' || host.ptr[i] == ' ' || host.ptr[i] == '*')
            return 0;
    return host.len > HOST_BYTES_MAX ? 0 : write_host(host, out);
}

static size_t glob_text(struct slice pattern, char *out, const char **why)
{
    pattern = without_scheme(pattern);
    if (!cache_glob_check(pattern, why)) /* it bounds the length, too */
        return 0;
    struct slice host = { pattern.ptr, slice_find(pattern, '/') };
    size_t length = write_host(host, out);
    memcpy(out + length, pattern.ptr + host.len, pattern.len - host.len);
    return length + pattern.len - host.len;
}

static size_t tags_text(const json_t *value, char *out, const char **why)
{
    size_t count = json_is_array(value) ? json_array_size(value) : 1, length = 0;
    for (size_t i = 0; i < count; i++) {
        struct slice tag = string_of(json_is_array(value) ? json_array_get(value, i) : value);
        if (tag.len + 1 > KEY_BYTES_MAX - length) {
            *why = "too long: 64 KiB at most";
            return 0;
        }
        memcpy(out + length, tag.ptr, tag.len);
        out[length + tag.len] = '\0';
        length += tag.len + 1;
    }
    return length;
}

/* Length, or 0 and a sentence in *why. Everything has no text. */
static size_t write_text(const struct admin_context *c, const struct order *order, char *out,
                         const char **why)
{
    const struct admin_hooks *h = &c->hooks;
    struct slice text = string_of(order->value);
    switch (order->mode->what) {
    case PURGE_URL: return h->key_of_url(h->arg, text, order->host, out, KEY_BYTES_MAX, why);
    case PURGE_PREFIX: return h->prefix_of_url(h->arg, text, order->host, out, KEY_BYTES_MAX, why);
    case PURGE_HOST: return host_text(text, out, why);
    case PURGE_GLOB: return glob_text(text, out, why);
    case PURGE_TAG: return tags_text(order->value, out, why);
    case PURGE_EVERYTHING: break;
    }
    return 0;
}

/* ---- doing it -------------------------------------------------------------------------------- */

static const char *how_word(enum purge_how how)
{
    return how == PURGE_HARD ? "hard" : how == PURGE_SOFT ? "soft" : "dry_run";
}

static void tell(struct evhttp_request *req, const struct order *order,
                 const struct cache_purged *p)
{
    struct slice text = string_of(order->value);
    if (text.ptr == NULL)
        text = SLICE("all");
    log_info("purge by %s (%s) of " SLICE_FMT ": %llu objects, %llu fills", order->mode->name,
             how_word(order->how), SLICE_ARG(text), (unsigned long long)p->objects,
             (unsigned long long)p->fills);
    admin_reply_json(req, p->objects + p->fills > 0 ? 200 : 404,
                     json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:I}", "mode", order->mode->name, "how",
                               how_word(order->how), "objects", (json_int_t)p->objects, "keys",
                               (json_int_t)p->keys, "fills", (json_int_t)p->fills, "bytes",
                               (json_int_t)p->bytes, "purged",
                               (json_int_t)(order->how == PURGE_DRY ? 0 : p->objects)));
}

static void purge(const struct admin_context *c, struct evhttp_request *req,
                  const struct order *order)
{
    const char *why = "it is malformed";
    char *text = xmalloc(KEY_BYTES_MAX);
    size_t length = write_text(c, order, text, &why);
    if (length == 0 && order->mode->what != PURGE_EVERYTHING) {
        admin_reply_error(req, 400, "%s: %s", order->mode->name, why);
    } else {
        struct cache_purge ask = { .what = order->mode->what,
                                   .how = order->how,
                                   .text = { text, length } };
        struct cache_purged purged;
        cache_purge(c->hooks.cache, &ask, clock_mono_ms(), &purged);
        if (order->how != PURGE_DRY) {
            stat_add(&stats_mine()->purges, 1);
            stat_add(&stats_mine()->purged, (int64_t)purged.objects);
        }
        tell(req, order, &purged);
    }
    free(text);
}

void admin_purge(const struct admin_context *c, struct evhttp_request *req)
{
    json_t *body = read_body(req);
    if (body == NULL)
        return;
    struct order order;
    const char *name, *why = read_order(body, &order, &name);
    if (why == NULL)
        purge(c, req, &order);
    else if (name[0] == '\0')
        admin_reply_error(req, 400, "%s", why);
    else
        admin_reply_error(req, 400, "%.200s: %s", name, why);
    json_decref(body);
}
