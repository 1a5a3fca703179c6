/* admin/client_explain.c: `larder explain URL`: asks POST /explain and says it in words.
 *
 * Exit status: 0 explained; 1 refused (the question is malformed, the token is wrong); 2 wrong
 * arguments, or nobody answers.
 */
#include "admin/client_explain.h"
#include "admin/admin.h"
#include "admin/client_internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { EXIT_EXPLAINED = 0, EXIT_REFUSED = 1, EXIT_TROUBLE = 2, EXPLAIN_ANSWER_MS = 15000 };

static const char usage[] =
    "usage: larder explain URL [-H \"Field: value\"]... [-X METHOD] [--client ADDRESS] [--fetch] "
    "[--json]\n"
    "                      [--admin ADDRESS] [--token TOKEN]\n"
    "  why a request for http://host/path would now be a hit, a miss, a pass, and what would "
    "change "
    "it;\n"
    "  neither the store nor the origin is touched. A field Host stands in for the URL's.\n"
    "  --client   the request comes from this IP address: for rules on networks\n"
    "  --fetch    asks the origin once, too, and says what would be stored\n"
    "  --json     everything, for programs\n"
    "  ADDRESS is admin.listen: 127.0.0.1:6081 when not given, or LARDER_ADMIN in the environment; "
    "unix:/path too\n"
    "  TOKEN is admin.token, or LARDER_ADMIN_TOKEN in the environment (which other users cannot "
    "see)\n";

/* ---- arguments ------------------------------------------------------------------------------- */

struct explain_arguments {
    const char *where, *token, *url, *method, *client;
    json_t *headers;
    bool wants_json, wants_fetch, is_wrong;
};

/* "-X value", "-Xvalue", "--method value" or "--method=value"; NULL when it is another argument.
 * A missing value is wrong. */
static const char *value_of(struct explain_arguments *a, int argc, char **argv, int *i,
                            const char *letter, const char *name)
{
    const char *arg = argv[*i];
    size_t length = strlen(name);
    if (letter != NULL && strncmp(arg, letter, 2) == 0 && arg[2] != '\0')
        return arg + 2;
    if (strncmp(arg, name, length) == 0 && arg[length] == '=')
        return arg + length + 1;
    if (strcmp(arg, name) != 0 && (letter == NULL || strcmp(arg, letter) != 0))
        return NULL;
    if (*i + 1 < argc)
        return argv[++*i];
    a->is_wrong = true;
    return "";
}

static bool add_header(struct explain_arguments *a, const char *line)
{
    json_t *text = json_string(line);
    if (text == NULL || strchr(line, ':') == NULL) {
        json_decref(text);
        fprintf(stderr, "larder explain: \"%s\" is no field; it is written \"Name: value\"\n",
                line);
        return false;
    }
    json_array_append_new(a->headers, text);
    return true;
}

static bool read_argument(struct explain_arguments *a, int argc, char **argv, int *i)
{
    const char *arg = argv[*i], *value;
    if ((value = value_of(a, argc, argv, i, "-H", "--header")) != NULL)
        return !a->is_wrong && add_header(a, value);
    if ((value = value_of(a, argc, argv, i, "-X", "--method")) != NULL)
        a->method = value;
    else if ((value = value_of(a, argc, argv, i, NULL, "--client")) != NULL)
        a->client = value;
    else if ((value = value_of(a, argc, argv, i, NULL, "--admin")) != NULL)
        a->where = value;
    else if ((value = value_of(a, argc, argv, i, NULL, "--token")) != NULL)
        a->token = value;
    else if (strcmp(arg, "--json") == 0)
        a->wants_json = true;
    else if (strcmp(arg, "--fetch") == 0)
        a->wants_fetch = true;
    else if (arg[0] != '-' && a->url == NULL)
        a->url = arg;
    else
        return false;
    return !a->is_wrong;
}

/* -1: go on. Otherwise the exit status. */
static int read_arguments(struct explain_arguments *a, int argc, char **argv)
{
    a->where = getenv("LARDER_ADMIN");
    a->token = getenv("LARDER_ADMIN_TOKEN");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            return EXIT_EXPLAINED;
        }
        const char *arg = argv[i];
        if (read_argument(a, argc, argv, &i))
            continue;
        fprintf(stderr, "larder explain: cannot use \"%s\"\n%s", arg, usage);
        return EXIT_TROUBLE;
    }
    if (a->where == NULL || a->where[0] == '\0')
        a->where = "127.0.0.1:6081";
    if (a->token != NULL && a->token[0] == '\0')
        a->token = NULL;
    if (a->url != NULL)
        return -1;
    fputs(usage, stderr);
    return EXIT_TROUBLE;
}

/* NULL when something in it is not UTF-8. */
static char *compose(const struct explain_arguments *a)
{
    json_t *question = json_object();
    bool is_text = json_object_set_new(question, "url", json_string(a->url)) == 0;
    if (a->method != NULL)
        is_text &= json_object_set_new(question, "method", json_string(a->method)) == 0;
    if (a->client != NULL)
        is_text &= json_object_set_new(question, "client", json_string(a->client)) == 0;
    if (json_array_size(a->headers) > 0)
        json_object_set(question, "headers", a->headers);
    if (a->wants_fetch)
        json_object_set_new(question, "fetch", json_true());
    char *body = is_text ? json_dumps(question, JSON_COMPACT) : NULL;
    json_decref(question);
    return body;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int tell(const struct explain_arguments *a, const struct client_answer *answer)
{
    if (answer->status == 200 && a->wants_json) {
        fputs(answer->body, stdout);
        return fflush(stdout) == 0 ? EXIT_EXPLAINED : EXIT_TROUBLE;
    }
    json_error_t error;
    json_t *body = json_loads(answer->body, 0, &error);
    int status = EXIT_REFUSED;
    const char *why = json_string_value(json_object_get(body, "error"));
    if (body == NULL) {
        fprintf(stderr, "larder: the admin port's answer is not JSON: %s\n", error.text);
        status = EXIT_TROUBLE;
    } else if (answer->status == 200) {
        client_print_explanation(body, stdout);
        status = fflush(stdout) == 0 ? EXIT_EXPLAINED : EXIT_TROUBLE;
    } else if (why != NULL) {
        fprintf(stderr, "larder: %s\n", why);
    } else {
        fprintf(stderr, "larder: the admin port answered with status %d\n", answer->status);
    }
    if (answer->status == 401)
        fprintf(stderr, "larder: give the token with --token or LARDER_ADMIN_TOKEN\n");
    json_decref(body);
    return status;
}

static int ask_and_tell(const struct explain_arguments *a)
{
    char why[CLIENT_WHY_BYTES], *body = compose(a);
    if (body == NULL) {
        fprintf(stderr, "larder: the URL is not UTF-8; write other bytes as %%XX\n");
        return EXIT_TROUBLE;
    }
    struct client_request r = { .where = a->where,
                                .token = a->token,
                                .method = "POST",
                                .path = "/explain",
                                .body = body,
                                .deadline_ms = EXPLAIN_ANSWER_MS };
    struct client_answer answer;
    bool answered = client_ask(&r, &answer, why);
    free(body);
    if (!answered) {
        fprintf(stderr, "larder: %s\n", why);
        return EXIT_TROUBLE;
    }
    int status = tell(a, &answer);
    free(answer.body);
    return status;
}

int admin_command_explain(int argc, char **argv)
{
    struct explain_arguments a = { .headers = json_array() };
    int status = read_arguments(&a, argc, argv);
    if (status < 0)
        status = ask_and_tell(&a);
    json_decref(a.headers);
    return status;
}
