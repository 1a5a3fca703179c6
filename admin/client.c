/* admin/client.c: `larder stat | reload | purge`: the commands that ask a running Larder over its
 * admin port.
 *
 * Exit status: 0 done; 1 refused, or a purge that found nothing; 2 wrong arguments, or nobody
 * answers.
 */
#include "admin/admin.h"
#include "admin/client_internal.h"
#include "admin/client_stat.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    EXIT_DONE = 0,
    EXIT_REFUSED = 1,
    EXIT_TROUBLE = 2,
    ANSWER_MS = 5000,
    RELOAD_MS = 60000,
    PURGE_MS = 60000,
    WATCH_S = 2,
    WATCH_MAX_S = 3600
};

static const char stat_usage[] =
    "usage: larder stat [--admin ADDRESS] [--token TOKEN] [--json | --watch [SECONDS]]\n"
    "  the main figures of a running Larder; --json all of them; --watch again and again, with "
    "rates per second\n";
static const char reload_usage[] =
    "usage: larder reload [--admin ADDRESS] [--token TOKEN]\n"
    "  a running Larder reads its configuration anew; a wrong one is refused and told\n";
static const char purge_usage[] =
    "usage: larder purge [--soft | --dry-run] [--json] WHAT [--admin ADDRESS] [--token TOKEN]\n"
    "  drops what is stored; --soft makes it stale instead, --dry-run only counts it. WHAT is one "
    "of\n"
    "  URL               http://host/path?query, all variants; or /path with --host HOST\n"
    "  --host HOST       everything of a host; HOST:PORT only what was asked for with that port\n"
    "  --prefix URL      every URL that begins so\n"
    "  --glob PATTERN    host/path by pattern: * is anything but /, ** anything\n"
    "  --tag TAG         what has that tag (Cache-Tag, Surrogate-Key, xkey); or one of several\n"
    "  --everything\n";
static const char common_usage[] = "  ADDRESS is admin.listen: 127.0.0.1:6081 when not given, or "
                                   "LARDER_ADMIN in the environment; unix:/path too\n"
                                   "  TOKEN is admin.token, or LARDER_ADMIN_TOKEN in the "
                                   "environment (which other users cannot see)\n";

struct arguments {
    const char *usage;
    const char *where, *token;
    bool wants_json, wants_watch;
    uint64_t watch_s;
    json_t *purge;   /* what is to be asked for; NULL: the command is another */
    bool takes_stat; /* --json and --watch */
};

/* ---- arguments ------------------------------------------------------------------------------- */

static void print_usage(const struct arguments *a, FILE *out)
{
    fputs(a->usage, out);
    fputs(common_usage, out);
}

/* "--name value" or "--name=value". 1 and *value, 0 when it is another argument, -1 when the value
 * is missing. */
static int option_value(int argc, char **argv, int *i, const char *name, const char **value)
{
    size_t length = strlen(name);
    if (strncmp(argv[*i], name, length) != 0 ||
        (argv[*i][length] != '\0' && argv[*i][length] != '='))
        return 0;
    if (argv[*i][length] == '=')
        *value = argv[*i] + length + 1;
    else if (*i + 1 < argc)
        *value = argv[++*i];
    else
        return -1;
    return 1;
}

static bool read_seconds(const char *text, uint64_t *seconds)
{
    return slice_to_u64(slice_of(text), seconds) && *seconds >= 1 && *seconds <= WATCH_MAX_S;
}

/* --watch, --watch 5, --watch=5. */
static bool read_watch(struct arguments *a, int argc, char **argv, int *i)
{
    a->wants_watch = true;
    a->watch_s = WATCH_S;
    if (argv[*i][strlen("--watch")] == '=')
        return read_seconds(argv[*i] + strlen("--watch="), &a->watch_s);
    uint64_t seconds;
    if (*i + 1 < argc && slice_to_u64(slice_of(argv[*i + 1]), &seconds))
        return read_seconds(argv[++*i], &a->watch_s);
    return true;
}

/* False: it was given before, or is nothing that JSON can say. */
static bool set_member(struct arguments *a, const char *name, json_t *value)
{
    bool is_new = json_object_get(a->purge, name) == NULL;
    return json_object_set_new(a->purge, name, value) == 0 && is_new;
}

static json_t *text_of(const char *text)
{
    json_t *value = json_string(text);
    if (value == NULL)
        fprintf(stderr, "larder: this is not UTF-8; write other bytes of a URL as %%XX\n");
    return value;
}

/* One is a tag, several are tags. */
static bool add_tag(struct arguments *a, const char *tag)
{
    json_t *one = json_object_get(a->purge, "tag"), *tags = json_object_get(a->purge, "tags");
    if (one == NULL && tags == NULL)
        return set_member(a, "tag", text_of(tag));
    if (tags == NULL) {
        tags = json_pack("[O]", one);
        json_object_del(a->purge, "tag");
        (void)set_member(a, "tags", tags);
    }
    return json_array_append_new(tags, text_of(tag)) == 0;
}

static bool read_purge_argument(struct arguments *a, int argc, char **argv, int *i)
{
    static const char *const texts[] = { "--host", "--prefix", "--glob" };
    static const char *const flags[][2] = { { "--soft", "soft" },
                                            { "--dry-run", "dry_run" },
                                            { "--everything", "everything" } };
    const char *arg = argv[*i], *value;
    int got;
    for (size_t n = 0; n < ARRAY_COUNT(texts); n++)
        if ((got = option_value(argc, argv, i, texts[n], &value)) != 0)
            return got > 0 && set_member(a, texts[n] + 2, text_of(value));
    if ((got = option_value(argc, argv, i, "--tag", &value)) != 0)
        return got > 0 && add_tag(a, value);
    for (size_t n = 0; n < ARRAY_COUNT(flags); n++)
        if (strcmp(arg, flags[n][0]) == 0)
            return set_member(a, flags[n][1], json_true());
    if (strcmp(arg, "--json") == 0)
        return a->wants_json = true;
    return arg[0] != '-' && set_member(a, "url", text_of(arg));
}

static bool read_argument(struct arguments *a, int argc, char **argv, int *i)
{
    const char *arg = argv[*i];
    int got;
    if ((got = option_value(argc, argv, i, "--admin", &a->where)) != 0 ||
        (got = option_value(argc, argv, i, "--token", &a->token)) != 0)
        return got > 0;
    if (a->purge != NULL)
        return read_purge_argument(a, argc, argv, i);
    if (a->takes_stat && strcmp(arg, "--json") == 0)
        return a->wants_json = true;
    if (a->takes_stat && (strcmp(arg, "--watch") == 0 || strncmp(arg, "--watch=", 8) == 0))
        return read_watch(a, argc, argv, i);
    return false;
}

/* -1: go on. Otherwise the exit status: help was asked for, or the arguments are wrong. */
static int read_arguments(struct arguments *a, int argc, char **argv)
{
    a->where = getenv("LARDER_ADMIN");
    a->token = getenv("LARDER_ADMIN_TOKEN");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_usage(a, stdout);
            return EXIT_DONE;
        }
        const char *arg = argv[i];
        if (read_argument(a, argc, argv, &i))
            continue;
        fprintf(stderr, "larder %s: cannot use \"%s\"\n", argv[0], arg);
        print_usage(a, stderr);
        return EXIT_TROUBLE;
    }
    if (a->where == NULL || a->where[0] == '\0')
        a->where = "127.0.0.1:6081";
    if (a->token != NULL && a->token[0] == '\0')
        a->token = NULL;
    bool asks_nothing = a->purge != NULL && json_object_size(a->purge) == 0;
    if (!(a->wants_json && a->wants_watch) && !asks_nothing)
        return -1;
    print_usage(a, stderr);
    return EXIT_TROUBLE;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static bool ask(const struct client_request *r, struct client_answer *answer)
{
    char why[CLIENT_WHY_BYTES];
    if (client_ask(r, answer, why))
        return true;
    fprintf(stderr, "larder: %s\n", why);
    return false;
}

/* The sentence in {"error": …}, or the status. */
static void print_refusal(const struct client_answer *answer)
{
    json_t *body = json_loads(answer->body, 0, NULL);
    const char *error = json_string_value(json_object_get(body, "error"));
    if (error != NULL)
        fprintf(stderr, "larder: %s\n", error);
    else
        fprintf(stderr, "larder: the admin port answered with status %d\n", answer->status);
    if (answer->status == 401)
        fprintf(stderr, "larder: give the token with --token or LARDER_ADMIN_TOKEN\n");
    json_decref(body);
}

static json_t *body_of(const struct client_answer *answer)
{
    json_error_t error;
    json_t *body = json_loads(answer->body, 0, &error);
    if (body == NULL)
        fprintf(stderr, "larder: the admin port's answer is not JSON: %s\n", error.text);
    return body;
}

/* ---- stat ------------------------------------------------------------------------------------ */

/* One look. *status is the exit status so far; NULL ends the command. */
static json_t *look(const struct arguments *a, int *status)
{
    struct client_request r = { .where = a->where,
                                .token = a->token,
                                .method = "GET",
                                .path = "/stats",
                                .deadline_ms = ANSWER_MS };
    struct client_answer answer;
    json_t *stats = NULL;
    *status = EXIT_TROUBLE;
    if (!ask(&r, &answer))
        return NULL;
    if (answer.status != 200) {
        print_refusal(&answer);
        *status = EXIT_REFUSED;
    } else if (a->wants_json) {
        fputs(answer.body, stdout);
        *status = fflush(stdout) == 0 ? EXIT_DONE : EXIT_TROUBLE;
    } else if ((stats = body_of(&answer)) != NULL) {
        *status = EXIT_DONE;
    }
    free(answer.body);
    return stats;
}

static int watch(const struct arguments *a)
{
    int status;
    json_t *before = NULL, *now;
    struct timespec wait = { .tv_sec = (time_t)a->watch_s };
    while ((now = look(a, &status)) != NULL) {
        if (isatty(STDOUT_FILENO))
            fputs("\033[H\033[2J", stdout);
        client_print_stat(now, before, stdout);
        if (!isatty(STDOUT_FILENO))
            fputc('\n', stdout);
        json_decref(before);
        before = now;
        if (fflush(stdout) != 0)
            break; /* whoever reads this has gone */
        nanosleep(&wait, NULL);
    }
    json_decref(before);
    return status;
}

int admin_command_stat(int argc, char **argv)
{
    struct arguments a = { .usage = stat_usage, .takes_stat = true };
    int status = read_arguments(&a, argc, argv);
    if (status >= 0)
        return status;
    if (a.wants_watch)
        return watch(&a);
    json_t *stats = look(&a, &status);
    if (stats != NULL)
        client_print_stat(stats, NULL, stdout);
    json_decref(stats);
    return status;
}

/* ---- reload ---------------------------------------------------------------------------------- */

static void print_lines(const json_t *lines, FILE *out, const char *before)
{
    size_t i;
    json_t *line;
    json_array_foreach(lines, i, line) if (json_is_string(line))
        fprintf(out, "%s%s\n", before, json_string_value(line));
}

static int tell_reload(const struct client_answer *answer)
{
    json_t *body = body_of(answer);
    if (body == NULL)
        return EXIT_TROUBLE;
    int status = EXIT_REFUSED;
    if (json_is_true(json_object_get(body, "reloaded"))) {
        printf("configuration %lld is in force\n",
               (long long)json_integer_value(json_object_get(body, "generation")));
        print_lines(json_object_get(body, "restart_needed"), stdout, "not in force yet: ");
        status = EXIT_DONE;
    } else {
        fprintf(stderr, "larder: refused; the configuration of before stays in force:\n");
        print_lines(json_object_get(body, "mistakes"), stderr, "");
    }
    json_decref(body);
    return status;
}

int admin_command_reload(int argc, char **argv)
{
    struct arguments a = { .usage = reload_usage };
    int status = read_arguments(&a, argc, argv);
    if (status >= 0)
        return status;
    /* a reload may look up names */
    struct client_request r = { .where = a.where,
                                .token = a.token,
                                .method = "POST",
                                .path = "/reload",
                                .deadline_ms = RELOAD_MS };
    struct client_answer answer;
    if (!ask(&r, &answer))
        return EXIT_TROUBLE;
    status = EXIT_REFUSED;
    if (answer.status == 200 || answer.status == 422)
        status = tell_reload(&answer);
    else
        print_refusal(&answer);
    free(answer.body);
    return status;
}

/* ---- purge ----------------------------------------------------------------------------------- */

static json_int_t figure(const json_t *body, const char *name)
{
    return json_integer_value(json_object_get(body, name));
}

static void print_purge(const json_t *body)
{
    static const char *const done[][3] = { { "hard", "purged", "will" },
                                           { "soft", "made stale", "will" },
                                           { "dry_run", "would be purged", "would" } };
    const char *how = json_string_value(json_object_get(body, "how"));
    json_int_t objects = figure(body, "objects"), fills = figure(body, "fills");
    size_t n = 0;
    while (n + 1 < ARRAY_COUNT(done) && how != NULL && strcmp(how, done[n][0]) != 0)
        n++;
    printf("%lld object%s %s", (long long)objects, objects == 1 ? "" : "s", done[n][1]);
    if (fills > 0)
        printf("; %lld fetch%s under way %s not be stored", (long long)fills,
               fills == 1 ? "" : "es", done[n][2]);
    putchar('\n');
}

static int tell_purge(const struct arguments *a, const struct client_answer *answer)
{
    json_t *body = json_loads(answer->body, 0, NULL);
    int status = EXIT_REFUSED;
    if (!json_is_integer(json_object_get(body, "objects"))) {
        print_refusal(answer);
    } else {
        status = answer->status == 200 ? EXIT_DONE : EXIT_REFUSED;
        if (a->wants_json)
            fputs(answer->body, stdout);
        else
            print_purge(body);
    }
    json_decref(body);
    return status;
}

static int ask_purge(const struct arguments *a)
{
    char *body = json_dumps(a->purge, JSON_COMPACT);
    /* one of everything may take seconds */
    struct client_request r = { .where = a->where,
                                .token = a->token,
                                .method = "POST",
                                .path = "/purge",
                                .body = body,
                                .deadline_ms = PURGE_MS };
    struct client_answer answer;
    bool answered = ask(&r, &answer);
    free(body);
    if (!answered)
        return EXIT_TROUBLE;
    int status = tell_purge(a, &answer);
    free(answer.body);
    return status;
}

int admin_command_purge(int argc, char **argv)
{
    struct arguments a = { .usage = purge_usage, .purge = json_object() };
    int status = read_arguments(&a, argc, argv);
    if (status < 0)
        status = ask_purge(&a);
    json_decref(a.purge);
    return status;
}
