/* config/items.c: the one table of configuration items. Defaults, reading, checks of bounds,
 * `larder config` and the manual's table all come from these rows; a new item is one row here and
 * one field in config.h. Pure data and the questions about it; any thread.
 */
#include "base/log.h"
#include "base/verdict.h"
#include "config/config_internal.h"
#include "config/rules_internal.h"

#define FIELD(type, member)                                                                        \
    .offset = offsetof(struct type, member), .bytes = sizeof(((struct type *)NULL)->member)
#define AT(member)        .where = IN_CONFIG, FIELD(config, member), .count_offset = NO_COUNT
#define AT_ORIGIN(member) .where = IN_ORIGIN, FIELD(config_origin, member), .count_offset = NO_COUNT
#define AT_SITE(member)   .where = IN_SITE, FIELD(config_site, member), .count_offset = NO_COUNT
#define LIST(member, count)                                                                        \
    .where = IN_CONFIG, FIELD(config, member), .count_offset = offsetof(struct config, count)
#define LIST_ORIGIN(member, count)                                                                 \
    .where = IN_ORIGIN, FIELD(config_origin, member),                                              \
    .count_offset = offsetof(struct config_origin, count)
#define LIST_SITE(member, count)                                                                   \
    .where = IN_SITE, FIELD(config_site, member),                                                  \
    .count_offset = offsetof(struct config_site, count)
#define AT_RULE(member)  .where = IN_RULE, FIELD(config_rule, member), .count_offset = NO_COUNT
#define AT_MATCH(member) .where = IN_MATCH, FIELD(rule_match, member), .count_offset = NO_COUNT
#define AT_TEST(member)  .where = IN_TEST, FIELD(config_rule_test, member), .count_offset = NO_COUNT
#define LIST_RULE(member, count)                                                                   \
    .where = IN_RULE, FIELD(config_rule, member),                                                  \
    .count_offset = offsetof(struct config_rule, count)

enum { SECOND_MS = 1000, HOUR_MS = 3600 * SECOND_MS, DAY_MS = 24 * HOUR_MS, YEAR_S = 365 * 86400 };
#define TIMEOUT                                                                                    \
    .min = 10, .max = DAY_MS /* 10ms keeps a slip of the unit from closing                         \
                                everything at once */

static const char *const levels[] = { "error", "warn", "info", "debug", NULL };
static const char *const schemes[] = { "http", "https", NULL };
static const char *const cache_words[] = { "bypass", "no_store", NULL };
static const char *const ignores[] = { "cache-control", "set-cookie", "vary", "authorization",
                                       NULL };
static const char *const no_yes[] = { "false", "true", NULL };
static const char *const outcomes[] = {
#define X(id, word, help) word,
    OUTCOMES(X)
#undef X
        NULL
};
static_assert(RULE_CACHE_BYPASS == 0 && RULE_CACHE_NO_STORE == 1, "order of cache_words");
static_assert(LOG_ERROR == 0 && LOG_WARN == 1 && LOG_INFO == 2 && LOG_DEBUG == 3,
              "order of levels");

/* clang-format off */
const struct config_item config_items[] = {
    { "workers", CONFIG_COUNT, AT(worker_count), .min = 1, .max = 256, .zero = "auto", .unit = "threads",
      .initial = "auto", .reload = RESTART,
      .help = "Worker threads; auto is one for each processor." },
    { "listen", CONFIG_ADDRESSES, LIST(listen, listen_count),
      .initial = ":8080", .reload = RESTART,
      .help = "Where clients connect: one address or a list." },
    { "user", CONFIG_TEXT, AT(user), .reload = RESTART,
      .help = "The user whose rights Larder keeps after it has bound its addresses." },
    { "shutdown_timeout", CONFIG_MS, AT(shutdown_timeout_ms), .min = 0, .max = DAY_MS,
      .initial = "30s", .reload = LIVE,
      .help = "How long exchanges that are running may take to finish when Larder stops." },
    { "log_level", CONFIG_CHOICE, AT(log_level), .choices = levels,
      .initial = "info", .reload = LIVE,
      .help = "How much the program's own log says on standard error." },

    { "admin", CONFIG_SWITCH, AT(has_admin),
      .initial = "true", .shown_initial = "on", .reload = RESTART,
      .help = "The admin port: status page, stats, metrics, purge; off closes it." },
    { "admin.listen", CONFIG_ADDRESS, AT(admin),
      .initial = "127.0.0.1:6081", .reload = RESTART,
      .help = "Where the admin port listens; anything but loopback or a unix socket needs a token." },
    { "admin.token", CONFIG_SECRET, AT(admin_token), .reload = RESTART,
      .help = "What an admin request must show as `Authorization: Bearer TOKEN`." },

    { "cache.memory", CONFIG_BYTES, AT(memory_bytes), .min = MiB(16), .max = TiB(4),
      .initial = "512MiB", .reload = RESTART,
      .help = "Memory for everything the cache holds: bodies, heads, keys, index, bodies on their way in." },
    { "cache.max_object", CONFIG_BYTES, AT(object_max_bytes), .min = KiB(1), .max = TiB(4), .zero = "auto",
      .initial = "auto", .shown_initial = "auto: an eighth of cache.memory", .reload = LIVE,
      .help = "The largest body that is stored; larger ones pass through." },
    { "cache.heuristic", CONFIG_BOOL, AT(has_heuristic),
      .initial = "true", .reload = LIVE,
      .help = "Answers without explicit freshness stay fresh for a tenth of their age by Last-Modified (RFC 9111, 4.2.2)." },
    { "cache.heuristic_max", CONFIG_S, AT(heuristic_max_s), .min = 0, .max = YEAR_S,
      .initial = "1d", .reload = LIVE,
      .help = "The longest freshness that the heuristic gives." },
    { "cache.default_ttl", CONFIG_TTLS, LIST(ttls, ttl_count), .min = 0, .max = YEAR_S,
      .initial = "", .shown_initial = "{}", .reload = LIVE,
      .help = "Freshness by status for answers that bring none of their own: `{ 200: 5m, 404: 10s }`." },
    { "cache.honour_client_directives", CONFIG_BOOL, AT(honours_client),
      .initial = "false", .reload = LIVE,
      .help = "Whether a request's Cache-Control and Pragma may force a fetch." },
    { "cache.max_variants", CONFIG_COUNT, AT(variants_max), .min = 1, .max = 1024, .unit = "variants",
      .initial = "32", .reload = LIVE,
      .help = "Variants kept for one key; the one that was used longest ago gives way." },
    { "cache.remember_uncacheable", CONFIG_MS, AT(uncacheable_ms), .min = 0, .max = DAY_MS,
      .initial = "10s", .reload = LIVE,
      .help = "How long a key whose answer could not be stored is fetched without waiting for another's fill." },
    { "cache.collapse_timeout", CONFIG_MS, AT(collapse_timeout_ms), TIMEOUT,
      .initial = "30s", .reload = LIVE,
      .help = "The longest that a request waits for another's fill before it fetches for itself." },
    { "cache.collapse_max", CONFIG_COUNT, AT(collapse_max), .min = 1, .max = 10000000, .unit = "requests",
      .initial = "10000", .reload = LIVE,
      .help = "Requests that wait for one fill; more are fetched for themselves." },
    { "cache.stale_while_revalidate", CONFIG_S, AT(stale_while_revalidate_s), .min = 0, .max = YEAR_S,
      .initial = "0s", .reload = LIVE,
      .help = "How long past its lifetime an object is still served while it is refreshed behind it, for answers that do not say (RFC 5861)." },
    { "cache.stale_if_error", CONFIG_S, AT(stale_if_error_s), .min = 0, .max = YEAR_S,
      .initial = "0s", .reload = LIVE,
      .help = "How long past its lifetime an object is served when the origin answers 500, 502, 503 or 504, or not at all, for answers that do not say (RFC 5861)." },
    { "cache.stale_if_unreachable", CONFIG_S, AT(stale_if_unreachable_s), .min = 0, .max = YEAR_S,
      .initial = "1d", .reload = LIVE,
      .help = "The same when the origin gives no answer at all, which needs nobody's leave (RFC 9111, 4.2.4); must-revalidate still forbids it." },
    { "cache.keep", CONFIG_S, AT(keep_s), .min = 1, .max = YEAR_S, .zero = "unlimited",
      .initial = "unlimited", .reload = LIVE,
      .help = "How long past all that an object is kept so that the origin can be asked whether it still holds; unlimited is as long as there is room." },
    { "cache.unsafe_share_set_cookie", CONFIG_BOOL, AT(shares_set_cookie),
      .initial = "false", .reload = LIVE,
      .help = "Whether an answer with Set-Cookie and explicit freshness is stored and its cookie given to everybody: one visitor's session may end at another's." },
    { "cache.targeted_fields", CONFIG_FIELD_NAMES, LIST(targeted, targeted_count),
      .initial = "CDN-Cache-Control", .reload = LIVE,
      .help = "Fields that speak to this cache before Cache-Control does, the first that is there counts (RFC 9213)." },
    { "cache.send_tags", CONFIG_BOOL, AT(sends_tags),
      .initial = "false", .reload = LIVE,
      .help = "Whether clients see Cache-Tag, Surrogate-Key and xkey." },
    { "cache.range_whole", CONFIG_BYTES, AT(range_whole_bytes), .min = 0, .max = TiB(4),
      .initial = "8MiB", .reload = LIVE,
      .help = "A part of an answer up to this long is asked for by fetching the whole, of which the part is cut." },
    { "cache.slice", CONFIG_BYTES, AT(slice_bytes), .min = KiB(64), .max = GiB(1), .zero = "off",
      .initial = "1MiB", .reload = LIVE,
      .help = "Parts of longer answers are fetched and kept in slices of this size; off passes the client's range through." },
    { "cache.tell_key", CONFIG_BOOL, AT(tells_key),
      .initial = "false", .reload = LIVE,
      .help = "Whether Cache-Status tells clients the key." },
    { "cache.purge_from", CONFIG_NETWORKS, LIST(purge_from, purge_from_count),
      .initial = "", .shown_initial = "[]", .reload = LIVE,
      .help = "Networks whose clients may use the PURGE method on the public side; nobody else may." },

    { "clients.head_timeout", CONFIG_MS, AT(head_timeout_ms), TIMEOUT,
      .initial = "10s", .reload = LIVE,
      .help = "From a request's first byte to the end of its head, however slowly it comes." },
    { "clients.body_timeout", CONFIG_MS, AT(body_timeout_ms), TIMEOUT,
      .initial = "30s", .reload = LIVE,
      .help = "The longest pause while a request's body comes in." },
    { "clients.idle_timeout", CONFIG_MS, AT(idle_timeout_ms), TIMEOUT,
      .initial = "65s", .reload = LIVE,
      .help = "How long a connection may wait for its next request." },
    { "clients.send_timeout", CONFIG_MS, AT(send_timeout_ms), TIMEOUT,
      .initial = "60s", .reload = LIVE,
      .help = "The longest that a client may take nothing of a response." },
    { "clients.max_head", CONFIG_BYTES, AT(head_max_bytes), .min = KiB(1), .max = KiB(256),
      .initial = "32KiB", .reload = LIVE,
      .help = "The largest request head, request line included; above it 431." },
    { "clients.max_target", CONFIG_BYTES, AT(target_max_bytes), .min = 256, .max = KiB(256),
      .initial = "8KiB", .reload = LIVE,
      .help = "The longest request target; above it 414." },
    { "clients.max_fields", CONFIG_COUNT, AT(field_max_count), .min = 10, .max = 250, .unit = "fields",
      .initial = "100", .reload = LIVE,
      .help = "Header fields in one request; above it 431." },
    { "clients.max_body", CONFIG_BYTES, AT(body_max_bytes), .min = 1, .max = TiB(4), .zero = "unlimited",
      .initial = "unlimited", .reload = LIVE,
      .help = "The largest request body; above it 413." },
    { "clients.max_connections", CONFIG_COUNT, AT(connection_max), .min = 1, .max = 10000000, .zero = "auto",
      .unit = "connections", .initial = "auto", .shown_initial = "auto: what the descriptor limit allows", .reload = LIVE,
      .help = "Clients connected at one time." },
    { "clients.max_connections_per_address", CONFIG_COUNT, AT(address_connection_max), .min = 1, .max = 10000000,
      .zero = "unlimited", .unit = "connections", .initial = "unlimited", .reload = LIVE,
      .help = "Clients connected at one time from one address." },
    { "clients.trusted_proxies", CONFIG_NETWORKS, LIST(trusted, trusted_count),
      .initial = "", .shown_initial = "[]", .reload = LIVE,
      .help = "Networks whose X-Forwarded-For, -Proto and -Host are believed and added to; others' are replaced." },
    { "clients.send_forwarded", CONFIG_BOOL, AT(sends_forwarded),
      .initial = "false", .reload = LIVE,
      .help = "Whether origins get RFC 7239's Forwarded beside X-Forwarded-*." },

    { "access_log", CONFIG_SWITCH, AT(has_access_log),
      .initial = "false", .shown_initial = "off", .reload = LIVE,
      .help = "One line for each exchange; off writes none." },
    { "access_log.path", CONFIG_PATH, AT(access_log_path),
      .initial = "-", .reload = LIVE,
      .help = "The file; - is standard output." },
    { "access_log.format", CONFIG_TEXT, AT(access_log_format),
      .initial = "combined", .reload = LIVE,
      .help = "combined, json, or a text with {fields}." },

    { "origins", CONFIG_ORIGINS, LIST(origins, origin_count), .shown_initial = "must be given", .reload = LIVE,
      .help = "Where content comes from: a name for each origin, with either servers or root." },
    { "origins.*.servers", CONFIG_SERVERS, LIST_ORIGIN(servers, server_count), .shown_initial = "this or root must be given",
      .reload = LIVE, .fits = FITS_SERVERS,
      .help = "HTTP servers, asked in turn: one or a list." },
    { "origins.*.host", CONFIG_HOST, AT_ORIGIN(host_header), .reload = LIVE, .fits = FITS_SERVERS,
      .help = "The Host that the servers are sent; not set passes the client's on." },
    { "origins.*.connect_timeout", CONFIG_MS, AT_ORIGIN(connect_timeout_ms), TIMEOUT,
      .initial = "3s", .reload = LIVE, .fits = FITS_SERVERS,
      .help = "The longest wait for a connection to a server." },
    { "origins.*.first_byte_timeout", CONFIG_MS, AT_ORIGIN(first_byte_timeout_ms), TIMEOUT,
      .initial = "60s", .reload = LIVE, .fits = FITS_SERVERS,
      .help = "From the request sent to the response's head." },
    { "origins.*.between_bytes_timeout", CONFIG_MS, AT_ORIGIN(between_bytes_timeout_ms), TIMEOUT,
      .initial = "30s", .reload = LIVE, .fits = FITS_SERVERS,
      .help = "The longest pause while a response's body comes in." },
    { "origins.*.idle_timeout", CONFIG_MS, AT_ORIGIN(idle_timeout_ms), TIMEOUT,
      .initial = "4s", .reload = LIVE, .fits = FITS_SERVERS,
      .help = "How long a connection is kept for the next request; keep it below the server's own (Apache and Node: 5s)." },
    { "origins.*.idle_connections", CONFIG_COUNT, AT_ORIGIN(idle_count), .min = 0, .max = 10000, .unit = "connections",
      .initial = "64", .reload = LIVE, .fits = FITS_SERVERS,
      .help = "Connections kept for later requests by each worker to each server." },
    { "origins.*.resolve_ttl", CONFIG_MS, AT_ORIGIN(resolve_ttl_ms), .min = 100, .max = DAY_MS,
      .initial = "30s", .reload = LIVE, .fits = FITS_SERVERS,
      .help = "How long the addresses of a server's name are used before it is looked up again." },
    { "origins.*.send_via", CONFIG_BOOL, AT_ORIGIN(sends_via),
      .initial = "true", .reload = LIVE, .fits = FITS_SERVERS,
      .help = "Whether requests to the servers carry Via." },
    { "origins.*.root", CONFIG_PATH, AT_ORIGIN(root), .shown_initial = "this or servers must be given", .reload = LIVE, .fits = FITS_FILES,
      .help = "A directory whose files are served." },
    { "origins.*.index", CONFIG_FILE_NAMES, AT_ORIGIN(index_names),
      .initial = "index.html", .reload = LIVE, .fits = FITS_FILES,
      .help = "Files that answer for a directory: one name or a list, the first that is there." },
    { "origins.*.follow_symlinks", CONFIG_BOOL, AT_ORIGIN(follows_symlinks),
      .initial = "false", .reload = LIVE, .fits = FITS_FILES,
      .help = "Whether symbolic links may lead out of the root." },
    { "origins.*.check_interval", CONFIG_MS, AT_ORIGIN(check_ms), .min = 0, .max = DAY_MS,
      .initial = "1s", .reload = LIVE, .fits = FITS_FILES,
      .help = "How long a stored file is served before it is looked at again." },

    { "sites", CONFIG_SITES, LIST(sites, site_count), .shown_initial = "with one origin: that, for every host",
      .reload = LIVE,
      .help = "Which hosts are served from which origin: a list." },
    { "sites.*.hosts", CONFIG_HOSTS, AT_SITE(hosts), .shown_initial = "must be given", .reload = LIVE,
      .help = "Host names: exact, `*.example.com` for all below one, `*` for all others." },
    { "sites.*.origin", CONFIG_ORIGIN_NAME, AT_SITE(origin), .shown_initial = "must be given", .reload = LIVE,
      .help = "The name of an origin." },
    { "sites.*.presets", CONFIG_WORDS, LIST_SITE(presets, preset_count), .choices = rules_preset_names, .reload = LIVE,
      .help = "Rules that Larder brings for well-known applications; they come before the site's own (docs/rules.md)." },

    { "sites.*.rules", CONFIG_RULES, LIST_SITE(rules, rule_count), .reload = LIVE,
      .help = "What is to be done with which requests and answers: a list, in order (docs/rules.md)." },
    { "sites.*.rules.*.name", CONFIG_TEXT, AT_RULE(name), .reload = LIVE,
      .help = "What messages and tests call the rule." },
    { "sites.*.rules.*.match.host", CONFIG_HOST_GLOBS, AT_MATCH(host), .reload = LIVE,
      .help = "Hosts of the site for which the rule holds." },
    { "sites.*.rules.*.match.path", CONFIG_PATH_GLOBS, AT_MATCH(path), .reload = LIVE,
      .help = "Paths: `*` is anything but a slash, `**` anything." },
    { "sites.*.rules.*.match.path_regex", CONFIG_REGEXES, AT_MATCH(path_regex), .reload = LIVE,
      .help = "Paths by PCRE2; what its groups take is `$1` and so on in redirects, rewrites, tags and fields." },
    { "sites.*.rules.*.match.ignore_case", CONFIG_BOOL, AT_MATCH(ignores_case), .shown_initial = "false", .reload = LIVE,
      .help = "Whether path and path_regex take A for a." },
    { "sites.*.rules.*.match.method", CONFIG_METHODS, AT_MATCH(method), .reload = LIVE,
      .help = "Request methods." },
    { "sites.*.rules.*.match.scheme", CONFIG_WORDS, AT_MATCH(scheme), .choices = schemes, .reload = LIVE,
      .help = "How the client came." },
    { "sites.*.rules.*.match.query", CONFIG_CONDITIONS, AT_MATCH(query), .reload = LIVE,
      .help = "Parameters of the query, by name." },
    { "sites.*.rules.*.match.fields", CONFIG_CONDITIONS, AT_MATCH(fields), .reload = LIVE,
      .help = "Header fields of the request, by name." },
    { "sites.*.rules.*.match.cookies", CONFIG_CONDITIONS, AT_MATCH(cookies), .reload = LIVE,
      .help = "Cookies of the request, by name." },
    { "sites.*.rules.*.match.client", CONFIG_NETWORKS, AT_MATCH(client), .reload = LIVE,
      .help = "Networks that the client is in." },
    { "sites.*.rules.*.match.status", CONFIG_STATUSES, AT_MATCH(status), .reload = LIVE,
      .help = "Status of the answer; the rule then waits for it." },
    { "sites.*.rules.*.match.response_fields", CONFIG_CONDITIONS, AT_MATCH(response_fields), .reload = LIVE,
      .help = "Header fields of the answer; the rule then waits for it." },
    { "sites.*.rules.*.match.not", CONFIG_MATCH, AT_MATCH(opposite), .reload = LIVE,
      .help = "A mapping like match: the rule holds for what that one does not match." },
    { "sites.*.rules.*.cache", CONFIG_RULE_CACHE, AT_RULE(cache.word), .choices = cache_words, .reload = LIVE,
      .help = "bypass neither looks up nor stores, no_store does not store; or the items below." },
    { "sites.*.rules.*.cache.ttl", CONFIG_S, AT_RULE(cache.ttl_s), .min = 0, .max = YEAR_S, .reload = LIVE,
      .help = "Lifetime of what may be stored, instead of what the origin says." },
    { "sites.*.rules.*.cache.default_ttl", CONFIG_TTLS, LIST_RULE(cache.ttls, cache.ttl_count), .min = 0, .max = YEAR_S, .reload = LIVE,
      .help = "Lifetime by status for answers that bring none of their own." },
    { "sites.*.rules.*.cache.grace", CONFIG_S, AT_RULE(cache.grace_s), .min = 0, .max = YEAR_S, .reload = LIVE,
      .help = "stale_while_revalidate and stale_if_error at once." },
    { "sites.*.rules.*.cache.stale_while_revalidate", CONFIG_S, AT_RULE(cache.stale_while_revalidate_s), .min = 0, .max = YEAR_S, .reload = LIVE,
      .help = "How long past its lifetime it is still served while it is refreshed behind it." },
    { "sites.*.rules.*.cache.stale_if_error", CONFIG_S, AT_RULE(cache.stale_if_error_s), .min = 0, .max = YEAR_S, .reload = LIVE,
      .help = "How long past its lifetime it is served when the origin is in trouble." },
    { "sites.*.rules.*.cache.keep", CONFIG_S, AT_RULE(cache.keep_s), .min = 0, .max = YEAR_S, .reload = LIVE,
      .help = "How long past all that it is kept so that the origin can be asked whether it still holds." },
    { "sites.*.rules.*.cache.ignore", CONFIG_WORDS, AT_RULE(cache.ignore), .choices = ignores, .reload = LIVE,
      .help = "What origin or request say that is taken as not said; each can show one visitor what is meant for another." },
    { "sites.*.rules.*.key.ignore", CONFIG_NAME_GLOBS, AT_RULE(key.ignore), .reload = LIVE,
      .help = "Parameters that the key is without; the origin still gets them." },
    { "sites.*.rules.*.key.keep", CONFIG_NAME_GLOBS, AT_RULE(key.keep), .reload = LIVE,
      .help = "The only parameters that the key has." },
    { "sites.*.rules.*.key.sort", CONFIG_BOOL, AT_RULE(key.sorts), .shown_initial = "false", .reload = LIVE,
      .help = "Whether the key has its parameters in the order of their names." },
    { "sites.*.rules.*.key.fields", CONFIG_FIELD_NAMES, AT_RULE(key.fields), .reload = LIVE,
      .help = "Request fields whose values the key has, too." },
    { "sites.*.rules.*.key.cookies", CONFIG_NAMES, AT_RULE(key.cookies), .reload = LIVE,
      .help = "Cookies whose values the key has, too." },
    { "sites.*.rules.*.key.ignore_case", CONFIG_BOOL, AT_RULE(key.ignores_case), .shown_initial = "false", .reload = LIVE,
      .help = "Whether the key has the path in lower case." },
    { "sites.*.rules.*.cookies.drop", CONFIG_NAME_GLOBS, AT_RULE(cookies.drop), .reload = LIVE,
      .help = "Cookies taken off the request before look-up and forwarding." },
    { "sites.*.rules.*.cookies.keep", CONFIG_NAME_GLOBS, AT_RULE(cookies.keep), .reload = LIVE,
      .help = "The only cookies that are left on the request." },
    { "sites.*.rules.*.request.set", CONFIG_FIELDS, AT_RULE(request.set), .reload = LIVE,
      .help = "Request fields, instead of what the client sent." },
    { "sites.*.rules.*.request.append", CONFIG_FIELDS, AT_RULE(request.append), .reload = LIVE,
      .help = "Request fields, beside what the client sent." },
    { "sites.*.rules.*.request.remove", CONFIG_NAME_GLOBS, AT_RULE(request.remove), .reload = LIVE,
      .help = "Request fields that are taken off." },
    { "sites.*.rules.*.response.set", CONFIG_FIELDS, AT_RULE(response.set), .reload = LIVE,
      .help = "Fields that clients get, instead of what was stored or came." },
    { "sites.*.rules.*.response.append", CONFIG_FIELDS, AT_RULE(response.append), .reload = LIVE,
      .help = "Fields that clients get, beside what was stored or came." },
    { "sites.*.rules.*.response.remove", CONFIG_NAME_GLOBS, AT_RULE(response.remove), .reload = LIVE,
      .help = "Fields that clients do not get." },
    { "sites.*.rules.*.redirect.to", CONFIG_TEMPLATE, AT_RULE(redirect.to), .reload = LIVE,
      .help = "Where the client is sent: `https://$host$path$query`." },
    { "sites.*.rules.*.redirect.status", CONFIG_STATUS, AT_RULE(redirect.status), .min = 301, .max = 308, .shown_initial = "302", .reload = LIVE,
      .help = "301, 302, 303, 307 or 308." },
    { "sites.*.rules.*.answer.status", CONFIG_STATUS, AT_RULE(answer.status), .min = 200, .max = 599, .shown_initial = "200", .reload = LIVE,
      .help = "Status of an answer that Larder gives itself." },
    { "sites.*.rules.*.answer.body", CONFIG_BODY, AT_RULE(answer.body), .reload = LIVE,
      .help = "Its body." },
    { "sites.*.rules.*.answer.type", CONFIG_TEXT, AT_RULE(answer.type), .shown_initial = "text/plain; charset=utf-8", .reload = LIVE,
      .help = "Its Content-Type." },
    { "sites.*.rules.*.deny", CONFIG_DENY, AT_RULE(deny), .min = 400, .max = 599, .reload = LIVE,
      .help = "Refuses the request: with 403, or with the status given." },
    { "sites.*.rules.*.origin", CONFIG_ORIGIN_NAME, AT_RULE(origin), .reload = LIVE,
      .help = "Another origin than the site's." },
    { "sites.*.rules.*.rewrite.path", CONFIG_TEMPLATE, AT_RULE(rewrite.path), .reload = LIVE,
      .help = "The path that the origin is asked for and the key has." },
    { "sites.*.rules.*.rewrite.regex", CONFIG_REGEX, AT_RULE(rewrite.regex), .reload = LIVE,
      .help = "Where `$1` and so on come from, instead of path_regex; no match, no rewrite." },
    { "sites.*.rules.*.rewrite.query", CONFIG_TEMPLATE, AT_RULE(rewrite.query), .shown_initial = "stays as it is", .reload = LIVE,
      .help = "The query that goes with it, without its `?`; an empty one takes it off." },
    { "sites.*.rules.*.tags", CONFIG_TAGS, AT_RULE(tags), .reload = LIVE,
      .help = "Tags by which what is stored can be purged." },
    { "sites.*.rules.*.stop", CONFIG_BOOL, AT_RULE(stops), .shown_initial = "false", .reload = LIVE,
      .help = "Whether the rules behind this one are left out." },

    { "sites.*.tests", CONFIG_TESTS, LIST_SITE(tests, test_count), .reload = LIVE,
      .help = "Requests and answers, and what is expected of them: `larder check` tries them." },
    { "sites.*.tests.*.name", CONFIG_TEXT, AT_TEST(name), .reload = LIVE,
      .help = "What it shows." },
    { "sites.*.tests.*.request.url", CONFIG_URL, AT_TEST(request.url), .shown_initial = "must be given", .reload = LIVE,
      .help = "What is asked for." },
    { "sites.*.tests.*.request.method", CONFIG_METHOD, AT_TEST(request.method), .shown_initial = "GET", .reload = LIVE,
      .help = "How." },
    { "sites.*.tests.*.request.fields", CONFIG_FIELDS, AT_TEST(request.fields), .reload = LIVE,
      .help = "Header fields of the request." },
    { "sites.*.tests.*.request.client", CONFIG_CLIENT_ADDRESS, AT_TEST(request.client), .reload = LIVE,
      .help = "Who asks." },
    { "sites.*.tests.*.response.status", CONFIG_STATUS, AT_TEST(response.status), .min = 200, .max = 599, .shown_initial = "200", .reload = LIVE,
      .help = "Status of the origin's answer." },
    { "sites.*.tests.*.response.fields", CONFIG_FIELDS, AT_TEST(response.fields), .reload = LIVE,
      .help = "Its header fields." },
    { "sites.*.tests.*.expect.outcome", CONFIG_CHOICE, AT_TEST(expect.outcome), .choices = outcomes, .reload = LIVE,
      .help = "How it ends, with nothing stored before." },
    { "sites.*.tests.*.expect.key", CONFIG_TEXT, AT_TEST(expect.key), .reload = LIVE,
      .help = "The key: `www.example.com/a?b=c`." },
    { "sites.*.tests.*.expect.ttl", CONFIG_S, AT_TEST(expect.ttl_s), .min = 0, .max = YEAR_S, .reload = LIVE,
      .help = "The lifetime of what is stored." },
    { "sites.*.tests.*.expect.stored", CONFIG_CHOICE, AT_TEST(expect.stored), .choices = no_yes, .reload = LIVE,
      .help = "Whether it is." },
    { "sites.*.tests.*.expect.rule", CONFIG_TEXT, AT_TEST(expect.rule), .reload = LIVE,
      .help = "The name of a rule that matches." },
    { "sites.*.tests.*.expect.why", CONFIG_TEXT, AT_TEST(expect.why), .reload = LIVE,
      .help = "The reason, as the log says it; or why it is not stored." },
    { "sites.*.tests.*.expect.status", CONFIG_STATUS, AT_TEST(expect.status), .min = 200, .max = 599, .reload = LIVE,
      .help = "The status that the client gets." },
    { "sites.*.tests.*.expect.location", CONFIG_TEXT, AT_TEST(expect.location), .reload = LIVE,
      .help = "Where it is sent." },
    { "sites.*.tests.*.expect.origin", CONFIG_TEXT, AT_TEST(expect.origin), .reload = LIVE,
      .help = "The name of the origin that is asked." },
    { "sites.*.tests.*.expect.tags", CONFIG_TAGS, AT_TEST(expect.tags), .reload = LIVE,
      .help = "The tags that rules give." },
};
/* clang-format on */
const size_t config_item_count = ARRAY_COUNT(config_items);

const struct config_item *config_item_find(struct slice path)
{
    for (size_t i = 0; i < config_item_count; i++)
        if (slice_equal(path, slice_of(config_items[i].path)))
            return &config_items[i];
    return NULL;
}

bool config_item_is_group(struct slice path)
{
    for (size_t i = 0; i < config_item_count; i++) {
        struct slice item = slice_of(config_items[i].path);
        if (item.len > path.len && slice_has_prefix(item, path) && item.ptr[path.len] == '.')
            return true;
    }
    return false;
}

bool config_type_is_list(enum config_type type)
{
    switch (type) {
    case CONFIG_ADDRESSES:
    case CONFIG_SERVERS:
    case CONFIG_FILE_NAMES:
    case CONFIG_NETWORKS:
    case CONFIG_FIELD_NAMES:
    case CONFIG_HOSTS:
    case CONFIG_WORDS:
    case CONFIG_HOST_GLOBS:
    case CONFIG_PATH_GLOBS:
    case CONFIG_NAME_GLOBS:
    case CONFIG_NAMES:
    case CONFIG_REGEXES:
    case CONFIG_METHODS:
    case CONFIG_STATUSES:
    case CONFIG_TAGS: return true;
    default:
        return false; /* few of many: the others hold one value or are read by their own kind */
    }
}

bool config_item_is_optional_number(const struct config_item *item)
{
    bool is_number = item->type == CONFIG_S || item->type == CONFIG_COUNT ||
                     item->type == CONFIG_CHOICE || item->type == CONFIG_RULE_CACHE ||
                     item->type == CONFIG_STATUS || item->type == CONFIG_DENY;
    return is_number && (item->where == IN_RULE || item->where == IN_TEST);
}

static void print_bound(const struct config_item *item, uint64_t bound, FILE *out)
{
    switch (item->type) {
    case CONFIG_BYTES: config_print_bytes(bound, out); return;
    case CONFIG_MS: config_print_duration(bound, out); return;
    case CONFIG_S:
    case CONFIG_TTLS: config_print_duration(bound * 1000, out); return;
    default: fprintf(out, "%llu", (unsigned long long)bound); return;
    }
}

static void print_range(const struct config_item *item, const char *what, FILE *out)
{
    if (item->zero != NULL)
        fprintf(out, "%s or ", item->zero);
    fprintf(out, "%s from ", what);
    print_bound(item, item->min, out);
    fputs(" to ", out);
    print_bound(item, item->max, out);
}

static void print_choices(const struct config_item *item, FILE *out)
{
    for (const char *const *c = item->choices; *c != NULL; c++)
        fprintf(out, "%s%s", c == item->choices ? "" : c[1] == NULL ? " or " : ", ", *c);
}

void config_item_print_allowed(const struct config_item *item, FILE *out)
{
    switch (item->type) {
    case CONFIG_COUNT: print_range(item, "a number", out); return;
    case CONFIG_BYTES: print_range(item, "a size", out); return;
    case CONFIG_MS: print_range(item, "a duration", out); return;
    case CONFIG_S:
    case CONFIG_TTLS: print_range(item, "a duration in whole seconds", out); return;
    case CONFIG_BOOL: fputs("true or false", out); return;
    case CONFIG_WORDS:
    case CONFIG_CHOICE: print_choices(item, out); return;
    case CONFIG_TEXT: fputs("a text", out); return;
    case CONFIG_SECRET: fputs("a text without spaces", out); return;
    case CONFIG_PATH: fputs("a path", out); return;
    case CONFIG_HOST: fputs("a host name, with :PORT or without", out); return;
    case CONFIG_ADDRESS:
    case CONFIG_ADDRESSES: fputs("HOST:PORT, :PORT or unix:/PATH", out); return;
    case CONFIG_ORIGIN_NAME: fputs("the name of an origin", out); return;
    case CONFIG_SERVERS: fputs("http://HOST[:PORT] or unix:/PATH", out); return;
    case CONFIG_FILE_NAMES: fputs("a file name", out); return;
    case CONFIG_NETWORKS: fputs("a network such as 10.0.0.0/8", out); return;
    case CONFIG_HOSTS: fputs("a host name, *.DOMAIN or *", out); return;
    case CONFIG_FIELD_NAMES: fputs("the name of a header field", out); return;
    case CONFIG_SWITCH: fputs("on, off or a mapping of its items", out); return;
    case CONFIG_ORIGINS: fputs("a mapping of a name to an origin", out); return;
    case CONFIG_SITES: fputs("a list of { hosts, origin }", out); return;
    case CONFIG_HOST_GLOBS: fputs("a host name, with * for any part of it", out); return;
    case CONFIG_PATH_GLOBS: fputs("a pattern that begins with / or *", out); return;
    case CONFIG_NAME_GLOBS: fputs("a name, with * for any part of it", out); return;
    case CONFIG_NAMES: fputs("a name", out); return;
    case CONFIG_VALUE_GLOB: fputs("a pattern", out); return;
    case CONFIG_REGEX:
    case CONFIG_REGEXES: fputs("a regular expression (PCRE2)", out); return;
    case CONFIG_METHOD:
    case CONFIG_METHODS: fputs("a method such as GET", out); return;
    case CONFIG_STATUSES: fputs("a status such as 404, or a class such as 5xx", out); return;
    case CONFIG_TAGS: fputs("a tag without spaces and commas", out); return;
    case CONFIG_TEMPLATE:
        fputs("a text with $host, $path, $query, $args, $scheme, $method, $client, "
              "$0 to $9",
              out);
        return;
    case CONFIG_BODY: fputs("a text", out); return;
    case CONFIG_STATUS: print_range(item, "a status", out); return;
    case CONFIG_DENY: print_range(item, "true or a status", out); return;
    case CONFIG_CLIENT_ADDRESS: fputs("an address such as 192.0.2.1", out); return;
    case CONFIG_URL: fputs("http://HOST[:PORT]/PATH or https://…", out); return;
    case CONFIG_CONDITIONS:
        fputs("a mapping of a name to a pattern, a list of patterns, true, false "
              "or { regex: … }; or "
              "a list of names",
              out);
        return;
    case CONFIG_FIELDS:
        fputs("a mapping of a field's name to a text, or a list of them", out);
        return;
    case CONFIG_RULE_CACHE:
        print_choices(item, out);
        fputs(", or a mapping of its items", out);
        return;
    case CONFIG_MATCH: fputs("a mapping of the items of match", out); return;
    case CONFIG_RULES: fputs("a list of { match, … }", out); return;
    case CONFIG_TESTS: fputs("a list of { request, response, expect }", out); return;
    }
    UNREACHABLE();
}

void config_item_print_shape(const struct config_item *item, FILE *out)
{
    if (item->type == CONFIG_TTLS)
        fputs("a mapping of a status to ", out);
    config_item_print_allowed(item, out);
    if (config_type_is_list(item->type))
        fputs(", or a list of them", out);
}

const char *config_item_name(const struct config_item *item)
{
    const char *dot = strrchr(item->path, '.');
    return dot == NULL ? item->path : dot + 1;
}

void config_item_print_path(const struct config_item *item, FILE *out)
{
    bool is_list = slice_has_prefix(slice_of(item->path), SLICE("sites."));
    for (const char *at = item->path; *at != '\0'; at++) {
        if (is_list && at[0] == '.' && at[1] == '*') {
            fputs("[]", out);
            at++;
        } else if (at[0] == '*')
            fputs("NAME", out);
        else
            fputc(*at, out);
    }
}
