/* proxy/main.c: the program: its commands, and `serve`, which puts the floors together. The only
 * file that sees both sides.
 *
 * Threads of a running Larder: this one (waits for signals), the workers, the admin side's, the
 * access log's, the resolver's.
 */
#include "admin/admin.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/rules.h"
#include "cache/policy.h"
#include "proxy/listener.h"
#include "proxy/probe.h"
#include "proxy/worker.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, LISTEN_MAX = 16, DESCRIPTORS_OWN = 64 };

static const char usage[] =
    "larder " LARDER_VERSION ": a caching reverse proxy\n"
    "\n"
    "  larder serve -c FILE\n"
    "  larder serve --listen ADDR (--origin URL | --root DIR) [--workers N] [--memory SIZE] "
    "[--admin ADDR|off]\n"
    "  larder check -c FILE          read the configuration, say what is wrong with it; run its rule "
    "tests\n"
    "  larder config [-c FILE]       every item with its value; --defaults: with type, bounds and "
    "help;\n"
    "                                --preset NAME: the rules of a preset\n"
    "  larder stat [--watch [S]]     the main figures of a running Larder\n"
    "  larder reload                 read the configuration anew\n"
    "  larder purge URL              drop what is stored: URL, host, prefix, pattern, tag\n"
    "  larder explain URL            why it would be a hit, a miss or a pass now, and what would "
    "change it\n"
    "  larder version\n"
    "\n"
    "ADDR is \":8080\", \"127.0.0.1:8080\", \"[::1]:8080\" or \"unix:/path\"; --listen may be "
    "given several times.\n";

/* ---- serve
 * -------------------------------------------------------------------------------------------------------
 */

struct server {
    struct house house;
    struct worker **workers;
    unsigned worker_count;
    struct shared_snapshot *shared; /* in force; main and admin threads, under `lock` */
    struct config *started;         /* what the items that want a restart run with */
    pthread_mutex_t lock;
    struct admin *admin;
    const char *path; /* NULL when started from options */
    struct config_options options;
    uint64_t generation;
};

static void print_mistakes(struct config_mistakes *m)
{
    for (size_t i = 0; i < m->count; i++)
        fprintf(stderr, "%s\n", m->lines[i]);
    config_mistakes_free(m);
}

static struct config *load(struct server *s, struct config_mistakes *m)
{
    struct config *c = s->path != NULL ? config_load_file_with(s->path, &s->options, m)
                                       : config_from_options(&s->options, m);
    char why[256];
    if (c == NULL || !c->has_access_log || accesslog_format_check(c->access_log_format, why))
        return c;
    m->lines = xrealloc(m->lines, (m->count + 1) * sizeof *m->lines);
    if (asprintf(&m->lines[m->count], "%s: access_log.format: %s",
                 s->path == NULL ? "options" : s->path, why) >= 0)
        m->count++;
    config_unref(&c);
    return NULL;
}

static struct cache_settings cache_settings_of(const struct config *c)
{
    return (struct cache_settings){ .memory_bytes = c->memory_bytes,
                                    .object_max_bytes = c->object_max_bytes,
                                    .variants_max = c->variants_max,
                                    .uncacheable_ms = c->uncacheable_ms,
                                    .collapse_max = c->collapse_max };
}

static struct config *hook_config(void *arg)
{
    struct server *s = arg;
    pthread_mutex_lock(&s->lock);
    struct config *c = config_ref(s->shared->config);
    pthread_mutex_unlock(&s->lock);
    return c;
}

/* A whole new snapshot, or the old one stays. */
static bool reload(void *arg, struct config_mistakes *m)
{
    struct server *s = arg;
    *m = (struct config_mistakes){ 0 };
    pthread_mutex_lock(&s->lock);
    struct config *c = load(s, m);
    if (c == NULL) {
        pthread_mutex_unlock(&s->lock);
        stat_add(&stats_mine()->reloads_refused, 1);
        log_error("reload refused, the configuration in force stays: %s",
                  m->count > 0 ? m->lines[0] : "unreadable");
        return false;
    }
    c->generation = ++s->generation;
    *m = config_restart_items(s->started,
                              c); /* not with the file read last: it may not be in force whole */
    struct shared_snapshot *old = s->shared;
    s->shared = shared_snapshot_new(c, old->origins);
    struct cache_settings settings = cache_settings_of(c);
    cache_change(s->house.cache, &settings);
    log_set_level((enum log_level)c->log_level);
    char why[256];
    if (!accesslog_change(s->house.log, c->has_access_log ? c->access_log_path : NULL,
                          c->has_access_log ? c->access_log_format : NULL, why))
        log_error("access_log: %s; the old one stays", why);
    for (unsigned i = 0; i < s->worker_count; i++)
        worker_publish(s->workers[i], s->shared);
    shared_snapshot_unref(&old);
    log_info("configuration %llu is in force", (unsigned long long)c->generation);
    for (size_t i = 0; i < m->count; i++)
        log_warn("%s", m->lines[i]);
    pthread_mutex_unlock(&s->lock);
    stat_add(&stats_mine()->reloads, 1);
    return true;
}

struct visit {
    void (*visit)(void *to, const struct admin_server_state *s);
    void *to;
};

static void visit_one(void *to, const struct origin_figures *f)
{
    struct visit *v = to;
    struct admin_server_state s = { .origin = f->origin,
                                    .server = f->server,
                                    .state = f->state,
                                    .why = f->why,
                                    .requests = f->requests,
                                    .faults = f->faults,
                                    .open = f->open,
                                    .idle = f->idle,
                                    .head_us_sum = f->head_us_sum,
                                    .head_count = f->head_count,
                                    .last_fault_wall_s = f->last_fault_wall_s };
    v->visit(v->to, &s);
}

static void hook_servers(void *arg, void (*visit)(void *to, const struct admin_server_state *s),
                         void *to)
{
    struct server *s = arg;
    struct visit v = { visit, to };
    pthread_mutex_lock(&s->lock);
    struct shared_snapshot *held = shared_snapshot_ref(s->shared);
    pthread_mutex_unlock(&s->lock);
    origins_visit(held->origins, visit_one, &v);
    shared_snapshot_unref(&held);
}

/* "http://host:port/path?query" cut into an authority and a target. */
static bool split_url(struct slice url, struct slice *authority, struct slice *target)
{
    if (!slice_has_prefix_nocase(url, SLICE("http://")) &&
        !slice_has_prefix_nocase(url, SLICE("https://")))
        return false;
    size_t from = slice_find(url, '/') + 2, end = from;
    while (end < url.len && url.ptr[end] != '/' && url.ptr[end] != '?' && url.ptr[end] != '#')
        end++;
    *authority = (struct slice){ url.ptr + from, end - from };
    *target = (struct slice){ url.ptr + end, url.len - end };
    return true;
}

static size_t hook_key_of_url(void *arg, struct slice url, struct slice host, char *out,
                              size_t capacity, const char **why)
{
    struct config *c = hook_config(arg);
    size_t length = probe_key_of_url(c, url, host, out, capacity, why);
    config_unref(&c);
    return length;
}

/* Whether the site's rules put a path that begins so into the key in lower case. */
static bool ignores_case(const struct config_site *site, struct slice host, struct slice path)
{
    struct headers none;
    headers_init(&none, NULL, 0);
    struct rule_request r = { .method = SLICE("GET"),
                              .scheme = SLICE("http"),
                              .host = host,
                              .path = path,
                              .headers = &none };
    struct rule_effects effects;
    if (!rules_has_any(site))
        return false;
    rules_on_request(site, &r, &effects);
    return rules_key_ignores_case(&effects);
}

/* A prefix is of the path that the origin gets and of the query that the key has: what rules drop,
 * sort and rewrite is not done to a part of a URL. */
static size_t hook_prefix_of_url(void *arg, struct slice prefix, struct slice host, char *out,
                                 size_t capacity, const char **why)
{
    struct slice authority = host, target = prefix;
    char canonical[256];
    size_t host_length = 0, length = 0;
    uint16_t port = 0;
    bool has_authority = split_url(prefix, &authority, &target);
    if (target.len == 0 && has_authority)
        target = SLICE("/");
    *why = "a prefix is http://host/path, or /path together with a host";
    if (target.len == 0 || target.ptr[0] != '/')
        return 0;
    *why = "the host is missing or malformed";
    if (authority.len == 0 || !h1_canonical_host(authority, canonical, &host_length, &port))
        return 0;
    struct config *c = hook_config(arg);
    const struct config_site *site =
        config_site_find(c, (struct slice){ canonical, host_length });
    *why = site == NULL ? "no site serves this host" : "the prefix is too long";
    if (site != NULL) {
        struct key_parts parts = { .site = slice_of(site->name),
                                   .host = { canonical, host_length },
                                   .port = port == 80 ? 0 : port,
                                   .path = { target.ptr, slice_find(target, '?') } };
        parts.ignores_case = ignores_case(site, parts.host, parts.path);
        if (parts.path.len < target.len)
            parts.query = slice_from(parts.path.ptr + parts.path.len + 1, target.ptr + target.len);
        length = cache_key_write(&parts, out, capacity);
    }
    config_unref(&c);
    return length;
}

static bool hook_read_request(void *arg, const struct config *config, struct slice head,
                              struct admin_request *out)
{
    struct probe *p = xmalloc(sizeof *p);
    (void)arg;
    probe_read(config, head, p);
    const struct h1_request *r = &p->request;
    out->headers = r->headers;
    out->headers.at = out->storage;
    memcpy(out->storage, p->storage, r->headers.count * sizeof p->storage[0]);
    out->method = r->method_text;
    out->path = r->path;
    out->query = r->query;
    memcpy(out->host, p->host, p->host_length);
    out->host_length = p->host_length;
    out->port = p->port;
    out->is_get = r->method == METHOD_GET;
    out->is_head = r->method == METHOD_HEAD;
    out->is_purge = r->method == METHOD_PURGE;
    out->has_body = r->framing != FRAMING_NONE;
    out->is_answered = p->is_answered;
    out->status = p->status;
    out->outcome = fault_row(p->fault)->outcome;
    out->reason = p->reason;
    out->why = p->why;
    bool is_read = !p->is_refused;
    free(p);
    return is_read;
}

static bool hook_choose_server(void *arg, const struct config_origin *origin,
                               struct admin_target *out)
{
    struct server *s = arg;
    pthread_mutex_lock(&s->lock);
    struct shared_snapshot *held = shared_snapshot_ref(s->shared);
    pthread_mutex_unlock(&s->lock);
    struct origin *o = origins_find(held->origins, origin);
    struct origin_server *server = o == NULL ? NULL : origin_choose(o, NULL);
    out->length = 0;
    if (server != NULL) {
        struct origin_address address = origin_server_address(server);
        memcpy(&out->address, &address.at, sizeof address.at);
        out->length = address.length;
        snprintf(out->name, sizeof out->name, "%s", origin_server_name(server));
        snprintf(out->host, sizeof out->host, "%s", origin_server_host(server));
        origin_server_unref(&server);
    }
    shared_snapshot_unref(&held);
    return out->length > 0;
}

static enum admin_read hook_read_response(void *arg, struct slice bytes, struct admin_response *out)
{
    struct h1_response r;
    enum h1_cause cause = H1_OK;
    enum h1_result result = probe_response(bytes, out->storage, &r, &cause);
    (void)arg;
    if (result == H1_MORE)
        return ADMIN_READ_MORE;
    out->headers = r.headers;
    out->status = r.status;
    out->length_bytes = r.framing == FRAMING_LENGTH ? (int64_t)r.length : -1;
    out->why = h1_cause_text(cause);
    return result == H1_DONE ? ADMIN_READ_WHOLE : ADMIN_READ_BAD;
}

static const char *hook_h1_cause_word(unsigned cause)
{
    static const char *const names[] = { "ok",
#define X(id, status, text) #id,
                                         H1_CAUSES(X)
#undef X
    };
    static_assert(ARRAY_COUNT(names) <= STATS_CAUSES, "base/stats.h keeps too few causes");
    return cause < ARRAY_COUNT(names) ? names[cause] : NULL;
}

/* All the descriptors that we may have; how many of them clients may take. */
static uint32_t client_limit(unsigned worker_count)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0)
        return 512;
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
    getrlimit(RLIMIT_NOFILE, &r);
    uint64_t all = r.rlim_cur > 1 << 24 ? 1 << 24 : r.rlim_cur;
    uint64_t own =
        DESCRIPTORS_OWN + 8u * worker_count + all / 10; /* a tenth for origins and files */
    return (uint32_t)(all > own + 16 ? all - own : 16);
}

static bool drop_rights(const struct config *c)
{
    if (c->user == NULL || geteuid() != 0)
        return true;
    const struct passwd *p = getpwnam(c->user);
    if (p == NULL) {
        fprintf(stderr, "larder: user: there is no user \"%s\"\n", c->user);
        return false;
    }
    if (initgroups(p->pw_name, p->pw_gid) != 0 || setgid(p->pw_gid) != 0 ||
        setuid(p->pw_uid) != 0) {
        fprintf(stderr, "larder: user: cannot become %s: %s\n", c->user, strerror(errno));
        return false;
    }
    prctl(PR_SET_DUMPABLE, 1);
    return true;
}

/* Under systemd (Type=notify): one datagram, the whole protocol. */
static void tell_systemd(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    if (path == NULL || strlen(path) >= sizeof to.sun_path)
        return;
    strcpy(to.sun_path, path);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (path[0] == '@')
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const void *)&to, length);
    (void)sent;
    close(fd);
}

static unsigned worker_count_of(const struct config *c)
{
    if (c->worker_count > 0)
        return c->worker_count;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors < 1 ? 1 : processors > 256 ? 256 : (unsigned)processors;
}

static void say_where(const struct server *s, const struct config *c)
{
    char line[1024];
    size_t at = 0;
    for (size_t i = 0; i < c->listen_count && at < sizeof line; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, "%s%s", i > 0 ? ", " : "",
                               c->listen[i].text);
    log_info("larder " LARDER_VERSION " listens on %s, admin on %s, %u worker%s", line,
             c->has_admin ? c->admin.text : "no port", s->worker_count,
             s->worker_count == 1 ? "" : "s");
}

static bool bind_all(struct server *s, const struct config *c, struct listener **lists)
{
    char why[256] = "";
    for (unsigned i = 0; i < s->worker_count; i++)
        if (!listener_bind(c, i == 0 ? NULL : lists[0], &lists[i], why)) {
            fprintf(stderr, "larder: %s\n", why);
            return false;
        }
    return true;
}

static bool start_log(struct server *s, const struct config *c)
{
    char why[256] = "";
    s->house.log = accesslog_start(c->has_access_log ? c->access_log_path : NULL,
                                   c->has_access_log ? c->access_log_format : NULL, why);
    if (s->house.log == NULL)
        fprintf(stderr, "larder: access_log: %s\n", why);
    return s->house.log != NULL;
}

static bool start_admin(struct server *s, const struct config *c)
{
    char why[256] = "";
    struct admin_hooks hooks = { .arg = s,
                                 .cache = s->house.cache,
                                 .config = hook_config,
                                 .servers = hook_servers,
                                 .reload = reload,
                                 .key_of_url = hook_key_of_url,
                                 .prefix_of_url = hook_prefix_of_url,
                                 .read_request = hook_read_request,
                                 .choose_server = hook_choose_server,
                                 .read_response = hook_read_response,
                                 .h1_cause_word = hook_h1_cause_word,
                                 .worker_count = s->worker_count,
                                 .started_wall_s = clock_wall_s() };
    if (!c->has_admin)
        return true;
    s->admin = admin_start(c, &hooks, why);
    if (s->admin == NULL)
        fprintf(stderr, "larder: admin.listen: %s\n", why);
    return s->admin != NULL;
}

/* Until SIGTERM or SIGINT. */
static void serve_signals(struct server *s, const sigset_t *signals)
{
    for (;;) {
        int signal = 0;
        sigwait(signals, &signal);
        if (signal == SIGTERM || signal == SIGINT)
            return;
        if (signal == SIGHUP) {
            struct config_mistakes m;
            reload(s, &m);
            config_mistakes_free(&m);
        }
        if (signal == SIGUSR1)
            accesslog_reopen(s->house.log);
    }
}

static void stop(struct server *s)
{
    log_info("draining");
    tell_systemd("STOPPING=1");
    pthread_mutex_lock(&s->lock);
    int64_t until = clock_mono_ms() + s->shared->config->shutdown_timeout_ms;
    pthread_mutex_unlock(&s->lock);
    admin_stop(&s->admin);
    for (unsigned i = 0; i < s->worker_count; i++)
        worker_drain(s->workers[i], until);
    for (unsigned i = 0; i < s->worker_count; i++)
        worker_join(&s->workers[i]);
    shared_snapshot_unref(&s->shared);
    config_unref(&s->started);
    cache_free(&s->house.cache);
    address_table_free(&s->house.addresses);
    accesslog_stop(&s->house.log);
    free(s->workers);
    log_info("stopped");
}

static int serve(struct server *s)
{
    struct config_mistakes mistakes = { 0 };
    struct config *c = load(s, &mistakes);
    print_mistakes(&mistakes);
    if (c == NULL)
        return EXIT_USAGE;

    /* Signals are the main thread's: blocked before any other thread is made. */
    sigset_t signals;
    sigemptyset(&signals);
    for (size_t i = 0; i < 4; i++)
        sigaddset(&signals, (int[]){ SIGTERM, SIGINT, SIGHUP, SIGUSR1 }[i]);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    clock_setup();
    log_set_level((enum log_level)c->log_level);

    s->worker_count = worker_count_of(c);
    s->house.client_limit = client_limit(s->worker_count);
    s->house.addresses = address_table_new();
    c->generation = s->generation = 1;
    struct listener **lists = xcalloc(s->worker_count, sizeof *lists);
    /* what needs rights or can fail comes before the first thread */
    if (!bind_all(s, c, lists) || !drop_rights(c) || !start_log(s, c)) {
        for (unsigned i = 0; i < s->worker_count; i++)
            listener_free_list(&lists[i]);
        return EXIT_FAILURE;
    }
    struct cache_settings settings = cache_settings_of(c);
    s->house.cache = cache_new(&settings);
    s->started = config_ref(c);
    s->shared = shared_snapshot_new(c, NULL);
    s->workers = xcalloc(s->worker_count, sizeof *s->workers);
    for (unsigned i = 0; i < s->worker_count; i++)
        s->workers[i] = worker_new(i, &s->house, s->shared, lists[i]);
    free(lists);
    bool has_admin = start_admin(s, c);
    for (unsigned i = 0; i < s->worker_count; i++)
        worker_start(s->workers[i]);
    if (has_admin) {
        say_where(s, c);
        tell_systemd("READY=1");
        serve_signals(s, &signals);
    }
    stop(s);
    return has_admin ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int command_serve(int argc, char **argv)
{
    static const struct option options[] = {
        { "config", required_argument, NULL, 'c' },  { "listen", required_argument, NULL, 'l' },
        { "origin", required_argument, NULL, 'o' },  { "root", required_argument, NULL, 'r' },
        { "workers", required_argument, NULL, 'w' }, { "memory", required_argument, NULL, 'm' },
        { "admin", required_argument, NULL, 'a' },   { 0 },
    };
    static const char *listen[LISTEN_MAX + 1];
    struct server s = { .lock = PTHREAD_MUTEX_INITIALIZER };
    size_t listens = 0;
    int option;
    while ((option = getopt_long(argc, argv, "c:l:o:r:w:m:a:", options, NULL)) != -1)
        switch (option) {
        case 'c': s.path = optarg; break;
        case 'l':
            if (listens == LISTEN_MAX) {
                fprintf(stderr, "larder serve: --listen: at most %d times\n", LISTEN_MAX);
                return EXIT_USAGE;
            }
            listen[listens++] = optarg;
            break;
        case 'o': s.options.origin = optarg; break;
        case 'r': s.options.root = optarg; break;
        case 'w': s.options.workers = optarg; break;
        case 'm': s.options.memory = optarg; break;
        case 'a': s.options.admin = optarg; break;
        default: fputs(usage, stderr); return EXIT_USAGE;
        }
    if (optind < argc) {
        fprintf(stderr, "larder serve: what is \"%s\"? Options begin with --\n", argv[optind]);
        return EXIT_USAGE;
    }
    if (listens > 0)
        s.options.listen = listen;
    if (s.path == NULL && s.options.origin == NULL && s.options.root == NULL) {
        fprintf(stderr, "larder serve: give a file with -c, or --listen with --origin or --root\n");
        return EXIT_USAGE;
    }
    return serve(&s);
}

/* ---- check, config, version ------------------------------------------------------------------ */

/* `tests:` of the sites. False when one of them fails: what it expected is said. */
static bool rules_keep_their_word(const struct config *c)
{
    struct rule_test_result result;
    cache_rule_tests_run(c, stderr, &result);
    if (result.failed > 0)
        fprintf(stderr, "%u of %u rule tests failed\n", result.failed,
                result.passed + result.failed);
    else if (result.passed > 0)
        printf("%u rule test%s passed\n", result.passed, result.passed == 1 ? "" : "s");
    return result.failed == 0;
}

static int command_check(int argc, char **argv)
{
    struct server s = { .lock = PTHREAD_MUTEX_INITIALIZER };
    int option;
    while ((option = getopt(argc, argv, "c:")) != -1)
        if (option == 'c')
            s.path = optarg;
        else
            return EXIT_USAGE;
    if (s.path == NULL && optind < argc)
        s.path = argv[optind++];
    if (s.path == NULL || optind < argc) {
        fprintf(stderr, "larder check -c FILE\n");
        return EXIT_USAGE;
    }
    struct config_mistakes mistakes = { 0 };
    struct config *c = load(&s, &mistakes);
    print_mistakes(&mistakes);
    if (c == NULL)
        return EXIT_FAILURE;
    bool good = rules_keep_their_word(c);
    if (good)
        printf("%s: good: %zu site%s, %zu origin%s\n", s.path, c->site_count,
               c->site_count == 1 ? "" : "s", c->origin_count, c->origin_count == 1 ? "" : "s");
    config_unref(&c);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int print_preset(const char *name)
{
    const char *text = rules_preset_text(slice_of(name));
    if (text != NULL) {
        fputs(text, stdout);
        return EXIT_SUCCESS;
    }
    fprintf(stderr, "larder config: there is no preset \"%s\"; there are", name);
    for (const char *const *n = rules_preset_names; *n != NULL; n++)
        fprintf(stderr, " %s", *n);
    fputc('\n', stderr);
    return EXIT_USAGE;
}

static int command_config(int argc, char **argv)
{
    static const struct option options[] = { { "defaults", no_argument, NULL, 'd' },
                                             { "manual", no_argument, NULL, 'M' },
                                             { "preset", required_argument, NULL, 'p' },
                                             { "config", required_argument, NULL, 'c' },
                                             { 0 } };
    struct server s = { .lock = PTHREAD_MUTEX_INITIALIZER };
    int option;
    while ((option = getopt_long(argc, argv, "c:d", options, NULL)) != -1)
        switch (option) {
        case 'd': config_print_items(stdout); return EXIT_SUCCESS;
        case 'M': config_print_manual(stdout); return EXIT_SUCCESS;
        case 'p': return print_preset(optarg);
        case 'c': s.path = optarg; break;
        default: return EXIT_USAGE;
        }
    if (s.path == NULL) {
        config_print_items(stdout);
        return EXIT_SUCCESS;
    }
    struct config_mistakes mistakes = { 0 };
    struct config *c = load(&s, &mistakes);
    print_mistakes(&mistakes);
    if (c == NULL)
        return EXIT_FAILURE;
    config_print(c, stdout);
    config_unref(&c);
    return EXIT_SUCCESS;
}

static int command_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("larder " LARDER_VERSION);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {
        { "serve", command_serve },       { "check", command_check },
        { "config", command_config },     { "version", command_version },
        { "stat", admin_command_stat },   { "reload", admin_command_reload },
        { "purge", admin_command_purge }, { "explain", admin_command_explain },
    };
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    bool asked =
        strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0;
    if (name[0] != '\0' && !asked)
        fprintf(stderr, "larder: there is no command \"%s\"\n\n", name);
    fputs(usage, asked ? stdout : stderr);
    return asked ? EXIT_SUCCESS : EXIT_USAGE;
}
