/* config/config.h: YAML in, one checked immutable snapshot out. The front door of the floor.
 *
 * Life     config_load_file() or config_load_text() or config_from_options() -> a snapshot with one reference
 *          -> config_ref()/config_unref(); freed with the last. Nothing in a snapshot changes after it was made.
 * Threads  loading: one thread; a snapshot: any number of readers that hold references.
 *
 * Every item is one row of a table in config/items.c (path, type, bounds, unit, default, reload or restart, help),
 * from which parsing, checking, `larder config` and the manual come.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H
#include "base/base.h"
#include <stdio.h>

/* Where something listens, or where a server is. */
enum address_kind { ADDRESS_TCP, ADDRESS_UNIX };
struct config_address {
    enum address_kind kind;
    char *text;    /* as written: what messages show */
    char *host;    /* TCP: name or address without brackets; "" is every address (IPv4 and IPv6) */
    uint16_t port; /* TCP */
    char *path;    /* UNIX */
};

enum origin_kind { ORIGIN_SERVERS, ORIGIN_FILES };

struct config_origin {
    char *name;
    enum origin_kind kind;
    /* ORIGIN_SERVERS */
    struct config_address *servers; /* "http://host[:port]" or "unix:/path" */
    size_t server_count;
    char *host_header;                /* sent as Host; NULL passes the client's on */
    uint32_t connect_timeout_ms;      /* origins.*.connect_timeout        default 3s */
    uint32_t first_byte_timeout_ms;   /* origins.*.first_byte_timeout     default 60s */
    uint32_t between_bytes_timeout_ms;/* origins.*.between_bytes_timeout  default 30s */
    uint32_t idle_timeout_ms;         /* origins.*.idle_timeout: kept-alive connections  default 4s (Apache, Node: 5 s) */
    uint32_t idle_count;              /* origins.*.idle_connections per worker  default 64 */
    uint32_t resolve_ttl_ms;          /* origins.*.resolve_ttl  default 30s */
    bool sends_via;                   /* origins.*.send_via default true */
    /* ORIGIN_FILES */
    char *root;            /* directory */
    char **index_names;    /* origins.*.index: NULL-terminated  default index.html */
    bool follows_symlinks; /* origins.*.follow_symlinks: links that leave the root  default false */
    uint32_t check_ms;     /* origins.*.check_interval: how long a stored file is served before it is looked at  default 1s */
};

struct config_ttl {
    uint16_t status;
    uint32_t ttl_s;
};

struct config_rule;
struct config_rule_test;
struct rule_gate;

struct config_site {
    char **hosts; /* NULL-terminated: "www.example.com", "*.example.com", "*"; lower case, no port */
    struct config_origin *origin; /* points into the snapshot */
    char *name;   /* its first host: what the key and the stats call it */
    struct config_rule *rules; /* rules.h: those of its presets, then its own */
    size_t rule_count;
    struct rule_gate *gates;   /* rules_internal.h: one for each rule */
    char **presets;            /* sites.*.presets: NULL-terminated */
    size_t preset_count;
    struct config_rule_test *tests; /* rules_internal.h */
    size_t test_count;
};

struct config {
    /* restart needed */
    uint32_t worker_count; /* workers: auto (0 here) or 1..256 */
    struct config_address *listen; /* listen: one or a list  default :8080; port 0 is the kernel's choice */
    size_t listen_count;
    char *user;                   /* user: rights dropped to after binding; NULL keeps */
    bool has_admin;               /* admin: off */
    struct config_address admin;  /* admin.listen  default 127.0.0.1:6081 */
    char *admin_token;            /* admin.token; needed when admin.listen is not loopback or a unix socket */
    uint64_t memory_bytes;        /* cache.memory  default 512MiB, 16MiB..4TiB */
    /* cache, live */
    uint64_t object_max_bytes;    /* cache.max_object  default: an eighth of cache.memory (0 here = that) */
    bool has_heuristic;           /* cache.heuristic  default true: 10 % of the age of Last-Modified (RFC 9111 4.2.2) */
    uint32_t heuristic_max_s;     /* cache.heuristic_max  default 1d */
    struct config_ttl *ttls;      /* cache.default_ttl: { 200: 5m, 404: 10s }: for answers without explicit freshness */
    size_t ttl_count;
    bool honours_client;          /* cache.honour_client_directives  default false: requests' Cache-Control is ignored */
    uint32_t variants_max;        /* cache.max_variants per key  default 32 */
    uint32_t uncacheable_ms;      /* cache.remember_uncacheable  default 10s */
    uint32_t collapse_timeout_ms; /* cache.collapse_timeout: longest wait for another's fill  default 30s */
    uint32_t collapse_max;        /* cache.collapse_max: requests that wait for one fill; more fetch for themselves  default 10000 */
    uint32_t stale_while_revalidate_s; /* cache.stale_while_revalidate: for answers that do not say  default 0s */
    uint32_t stale_if_error_s;    /* cache.stale_if_error: the same, for errors and unreachable origins  default 0s */
    uint32_t stale_if_unreachable_s; /* cache.stale_if_unreachable: the same, for no answer at all (RFC 9111 4.2.4)  default 1d */
    uint32_t keep_s;              /* cache.keep: how long past all that an object is kept to be asked about  unlimited (0 here) */
    bool shares_set_cookie;       /* cache.unsafe_share_set_cookie  default false */
    char **targeted;              /* cache.targeted_fields  default CDN-Cache-Control; NULL-terminated too */
    size_t targeted_count;
    bool sends_tags;              /* cache.send_tags: Cache-Tag, Surrogate-Key, xkey go on to clients  default false */
    uint64_t range_whole_bytes;   /* cache.range_whole: a range of an answer up to this long is fetched whole and cut  default 8MiB */
    uint64_t slice_bytes;         /* cache.slice: larger ones are fetched and kept in slices of this size; 0 here = off: the range goes through  default 1MiB */
    bool tells_key;               /* cache.tell_key: Cache-Status says the key to clients of cache.purge_from… never by default  default false */
    char **purge_from;            /* cache.purge_from: networks that may use the PURGE method; none by default; NULL-terminated too */
    size_t purge_from_count;
    /* clients, live */
    uint32_t head_timeout_ms;     /* clients.head_timeout  default 10s, absolute, from the first byte */
    uint32_t body_timeout_ms;     /* clients.body_timeout  default 30s without progress */
    uint32_t idle_timeout_ms;     /* clients.idle_timeout  default 65s between requests */
    uint32_t send_timeout_ms;     /* clients.send_timeout  default 60s without progress */
    uint32_t head_max_bytes;      /* clients.max_head  default 32KiB, 1KiB..256KiB */
    uint32_t target_max_bytes;    /* clients.max_target  default 8KiB */
    uint32_t field_max_count;     /* clients.max_fields  default 100, ..250 */
    uint64_t body_max_bytes;      /* clients.max_body  default unlimited (0 here) */
    uint32_t connection_max;      /* clients.max_connections  default auto (0 here): what the descriptor limit allows */
    uint32_t address_connection_max; /* clients.max_connections_per_address  default unlimited (0 here) */
    char **trusted;               /* clients.trusted_proxies: networks whose X-Forwarded-* are kept, always with a prefix: "10.0.0.0/8", "::1/128"; NULL-terminated too */
    size_t trusted_count;
    bool sends_forwarded;         /* clients.send_forwarded: RFC 7239's Forwarded too  default false */
    uint32_t shutdown_timeout_ms; /* shutdown_timeout  default 30s */
    /* log, live */
    bool has_access_log;          /* access_log: off is the default */
    char *access_log_path;        /* access_log.path; "-" is standard output */
    char *access_log_format;      /* access_log.format: combined | json | a string with {fields} */
    uint32_t log_level;           /* log_level: error warn info debug (enum log_level) */
    /* who serves what */
    struct config_origin *origins;
    size_t origin_count;
    struct config_site *sites;
    size_t site_count;
    char *path;                   /* the file it came from; NULL when from options */
    uint64_t generation;          /* 1, 2, … as published; set by the publisher before it publishes */
    struct config_private *own;   /* the memory behind all of this; the floor's */
};

/* Mistakes of one load, all of them: "larder.yaml:12:5: cache.memroy: unknown item; did you mean cache.memory?" */
struct config_mistakes {
    char **lines; /* each a whole message */
    size_t count;
};
void config_mistakes_free(struct config_mistakes *m);

/* NULL with at least one mistake, or a snapshot with one reference and none. */
must_check struct config *config_load_file(const char *path, struct config_mistakes *mistakes);
must_check struct config *config_load_text(const char *name, struct slice yaml, struct config_mistakes *mistakes);

/* What the command line says instead of a file; NULL members are not given. Each is the text of the same item. */
struct config_options {
    const char *const *listen; /* NULL-terminated */
    const char *origin;        /* URL or unix:/path */
    const char *root;          /* directory */
    const char *workers, *memory, *admin; /* admin: address or "off" */
};
must_check struct config *config_from_options(const struct config_options *options, struct config_mistakes *mistakes);
/* `larder serve -c FILE --workers 1`: options override items of a file that was read; --origin and --root beside a file
 * are mistakes. `options` may be NULL. NULL and mistakes on error. */
must_check struct config *config_load_file_with(const char *path, const struct config_options *options,
                                                struct config_mistakes *mistakes);

struct config *config_ref(struct config *c);
void config_unref(struct config **c);

/* The site for a canonical host (lower case, no port, no trailing dot): exact, then the longest "*.suffix", then "*".
 * NULL when no site serves it. No allocation; on the hit path. */
const struct config_site *config_site_find(const struct config *c, struct slice host);

/* What changed between two snapshots that a reload cannot change ("listen: needs a restart; … stays in force"), one line each; empty
 * when all of it took effect. */
struct config_mistakes config_restart_items(const struct config *running, const struct config *loaded);

/* The snapshot as YAML, secrets as "***"; every item with its value. It reads back to the same snapshot, except that a
 * file with a printed secret in it is refused. */
void config_print(const struct config *c, FILE *out);
/* Every item with type, unit, bounds, default, reload or restart, and help: `larder config --defaults`. */
void config_print_items(FILE *out);
/* The same as the table of docs/configuration.md: a test holds the page against it. */
void config_print_manual(FILE *out);

/* Also for the command line and the admin side. False and a sentence in `why` when it does not read as one. */
must_check bool config_parse_bytes(struct slice text, uint64_t *bytes, const char **why);
must_check bool config_parse_duration(struct slice text, uint64_t *ms, const char **why);
#endif
