/* config/rules_internal.h: what a rule and a rule's test are made of, for the files of this floor that read, compile,
 * match and print them. Nobody else looks inside.
 *
 * A rule has two halves. What was written (texts, lists, numbers: what the table of items fills and config_print()
 * prints), and what rules_compile.c makes of it: globs, regular expressions, networks, templates. Nothing of either
 * changes after the load.
 */
#ifndef CONFIG_RULES_INTERNAL_H
#define CONFIG_RULES_INTERNAL_H
#include "config/rule_test.h"
#include "config/rules.h"

/* ---- what is compared (rules_glob.c, rules_regex.c, rules_path.c) -------------------------------- */

enum glob_kind {
    GLOB_VALUE, /* '*' is anything: names and values */
    GLOB_PATH,  /* '*' stops at '/', '**' does not */
};
enum { GLOB_MAX_BYTES = 512 };

/* '\\' takes the next character as it is; every other one stands for itself. */
struct rule_glob {
    struct slice prefix, suffix; /* literal, before the first and behind the last '*' */
    const uint16_t *middle;      /* from the first to the last '*': characters, GLOB_STAR, GLOB_ANY */
    struct slice needle;         /* when the middle is that text between two GLOB_ANY; empty */
    uint16_t middle_count;       /* 0: no '*' at all, the prefix is the whole */
    bool folds;                  /* ASCII case does not count; literals are in lower case */
};
enum { GLOB_STAR = 256, GLOB_ANY };
struct glob_options {
    enum glob_kind kind;
    bool folds;
};
/* False and a sentence in `why` when it is none. */
must_check bool rule_glob_compile(struct arena *a, struct slice text, const struct glob_options *options,
                                  struct rule_glob *out, const char **why);
/* Time is bounded by the product of the two lengths, whatever they hold. */
bool rule_glob_matches(const struct rule_glob *g, struct slice text);
static inline bool rule_glob_is_literal(const struct rule_glob *g)
{
    return g->middle_count == 0;
}

enum { RULE_CAPTURES = 10 }; /* $0 .. $9 */
struct rule_captures {
    struct slice at[RULE_CAPTURES]; /* ptr NULL: did not take part */
};
struct rule_regex; /* one for all threads */
/* NULL and a sentence in `why` (in `a`), with the place in the pattern, when it does not compile. */
struct rule_regex *rule_regex_compile(struct arena *a, struct slice text, bool folds, const char **why);
unsigned rule_regex_capture_count(const struct rule_regex *r);
enum regex_result { REGEX_NO, REGEX_YES, REGEX_LIMIT /* too much work: said once in the log */ };
/* `captures` may be NULL: they point into `text`. */
enum regex_result rule_regex_match(const struct rule_regex *r, struct slice text, struct rule_captures *captures);

/* The one form in which paths are compared: "//" and dot segments resolved, what need not be percent-encoded is not, the
 * rest is %XX in upper case. Points into `path` when that is in this form (nearly always), else into `room` (freed by
 * _fini when it had to grow). */
struct rule_path {
    struct slice text;
    char *grown; /* NULL, or to be freed */
    char room[1024];
};
void rule_path_init(struct rule_path *p, struct slice path);
void rule_path_fini(struct rule_path *p);
/* Whether it stands in a path as it is, '/' not counted. */
bool rule_path_is_plain(char c);

/* ---- templates (rules_template.c): "https://$host$path", "page-$1" -------------------------------- */

struct template_part;
struct rule_template {
    struct slice text; /* as written */
    struct template_part *parts;
    size_t part_count;
    unsigned capture_max; /* the highest $N in it */
    bool has_variables, has_captures;
};
must_check bool rule_template_compile(struct arena *a, struct slice text, struct rule_template *out, const char **why);
/* The text before its first variable; empty when it begins with one. */
struct slice rule_template_first(const struct rule_template *t);
struct template_input {
    const struct rule_request *request;
    const struct rule_captures *captures; /* may be NULL */
};
/* The length; at most `capacity` bytes are written. `in` may be NULL when there are no variables. */
size_t rule_template_write(const struct rule_template *t, const struct template_input *in, char *out, size_t capacity);
struct slice rule_template_make(const struct rule_template *t, const struct template_input *in, struct arena *a);

/* ---- conditions ---------------------------------------------------------------------------------- */

enum condition_kind { CONDITION_PRESENT, CONDITION_ABSENT, CONDITION_GLOBS, CONDITION_REGEX };
struct rule_condition {
    char *name; /* a glob */
    enum condition_kind kind;
    char **values; /* NULL-terminated: globs, any of them; or one regular expression */
    /* compiled */
    struct rule_glob name_glob;
    uint64_t first, first_mask; /* cookies and parameters: of the name's first eight bytes */
    enum header_id id;          /* fields: of a literal name; HEADER_OTHER */
    struct rule_glob *globs;
    size_t glob_count;
    const struct rule_regex *regex;
};
struct rule_conditions {
    struct rule_condition *rows;
    size_t count;
    bool is_any; /* given as a list of names: any of them; else all */
};

struct status_range {
    uint16_t first, last;
};

struct rule_match {
    /* as written; lists are NULL-terminated, NULL when not given */
    char **host, **path, **path_regex, **method, **scheme, **client, **status;
    struct rule_conditions query, fields, cookies, response_fields;
    bool ignores_case;        /* of path and path_regex */
    struct rule_match *opposite; /* not; NULL */
    /* compiled */
    struct rule_glob *hosts, *paths;
    struct path_gate *path_gates; /* one for each of paths */
    const struct rule_regex **regexes;
    struct network *clients;
    struct status_range *statuses;
    uint16_t host_count, path_count, regex_count, client_count, status_count;
    uint32_t refuses;      /* bits of struct rule_gate that cannot match */
    bool has_other_method; /* one that has no bit of its own: compared in full */
    bool asks_request, asks_response;
};

/* ---- rules --------------------------------------------------------------------------------------- */

enum rule_cache_word { RULE_CACHE_BYPASS, RULE_CACHE_NO_STORE };

struct rule_edits { /* request, response */
    struct rule_fields set, append;
    char **remove; /* globs */
    /* compiled: one for each row of set and append */
    struct rule_template *set_values, *append_values; /* of requests */
    struct rule_glob *removes;
    size_t remove_count;
};

struct rule_names { /* of a NULL-terminated list of globs */
    struct rule_glob *globs;
    size_t count;
};

/* Whether Larder alone writes that field of requests, or of answers. */
bool rule_field_is_ours(enum header_id id, bool in_request);
/* GATE_GET …, below. */
uint32_t rule_method_bit(struct slice method);

struct config_rule {
    /* as written */
    char *name;
    struct rule_match match;
    struct {
        uint32_t word; /* enum rule_cache_word */
        uint32_t ttl_s, grace_s, stale_while_revalidate_s, stale_if_error_s, keep_s;
        struct config_ttl *ttls; /* default_ttl */
        size_t ttl_count;
        char **ignore;
    } cache;
    struct {
        char **ignore, **keep, **fields, **cookies;
        bool sorts, ignores_case;
    } key;
    struct {
        char **drop, **keep;
    } cookies;
    struct rule_edits request, response;
    struct {
        char *to;
        uint32_t status;
    } redirect;
    struct {
        uint32_t status;
        char *body, *type;
    } answer;
    uint32_t deny; /* status */
    struct {
        char *path, *query, *regex;
    } rewrite;
    char **tags;
    bool stops;

    /* made of it */
    const struct config_origin *origin;
    const char *preset; /* whose rule it is; NULL: the site's own */
    const char *where, *summary;
    enum rule_end end;
    uint32_t does; /* RULE_DOES_… */
    uint32_t ignores;
    struct rule_names key_ignore, key_keep, drop_cookies, keep_cookies;
    struct rule_template redirect_to, rewrite_path, rewrite_query, *tag_templates;
    size_t tag_count;
    const struct rule_regex *rewrite_regex;
    bool awaits_response;
    /* while loading: where it and its origin are remembered, from 1; 0: not given */
    size_t place, origin_place;
};

enum {
    RULE_DOES_KEY = 1,
    RULE_DOES_COOKIES = 2,
    RULE_DOES_REQUEST = 4,
    RULE_DOES_RESPONSE = 8,
    RULE_DOES_REWRITE = 16,
    RULE_DOES_TAGS = 32,
    RULE_DOES_DEFAULT_TTLS = 64,
    RULE_DOES_CACHE = 128, /* any item of it */
    RULE_DOES_ORIGIN = 256,
};

/* What is looked at first, for all rules of a site in a row: a request passes when (its bits & refuses) is 0 and the
 * first and last eight bytes of its path agree where the masks say. */
struct path_gate {
    uint64_t first, first_mask, last, last_mask;
};
struct rule_gate {
    struct path_gate path;
    uint32_t refuses;
};
enum {
    GATE_GET = 1,
    GATE_HEAD = 2,
    GATE_POST = 4,
    GATE_PUT = 8,
    GATE_DELETE = 16,
    GATE_OPTIONS = 32,
    GATE_PATCH = 64,
    GATE_OTHER_METHOD = 128,
    GATE_METHODS = 255,
    GATE_HTTP = 256,
    GATE_HTTPS = 512,
    GATE_NO_QUERY = 1024,
    GATE_NO_COOKIE = 2048,
    GATE_NO_CLIENT = 4096,
};

/* ---- shared by those who walk (rules_match.c, rules_edit.c, rules_key.c) ------------------------- */

/* Takes the next one off `*rest`, empty ones too; NULL is the end. */
bool rules_next_parameter(struct slice *rest, struct slice *parameter);
struct rule_cookie {
    struct slice whole;       /* between the semicolons */
    struct slice name, value; /* trimmed; without a '=' all is name */
};
bool rules_next_cookie(struct slice *rest, struct rule_cookie *cookie);
/* %XX and '+' of a query; the length, at most that of `text`. */
size_t rules_decode(struct slice text, char *out);
struct rule_decoded {
    struct slice text;
    char *grown; /* NULL, or to be freed */
    char room[256];
};
void rule_decoded_init(struct rule_decoded *d, struct slice text);
void rule_decoded_fini(struct rule_decoded *d);

/* ---- a request as it is matched (rules_view.c) ---------------------------------------------------- */

struct view_entry { /* a parameter or a cookie */
    struct slice name, value; /* the name decoded, the value not */
    uint64_t first;           /* bytes of the name */
};
struct view_rest { /* those that a view has no room for */
    struct slice text;
    const struct headers *fields; /* cookies; NULL: parameters */
    const struct header *field;   /* the next one */
    struct rule_decoded name;     /* of the latest entry, until rule_decoded_fini() */
};
enum { VIEW_ENTRIES = 24 };
struct view_entries {
    bool is_read, has_more;
    unsigned count;
    struct view_entry at[VIEW_ENTRIES];
    struct view_rest rest;
    size_t room_used;
    char room[256]; /* decoded names */
};
struct rule_view {
    const struct rule_request *request;
    uint64_t first, last; /* bytes of the path */
    uint32_t bits;        /* GATE_… */
    bool has_broken;      /* a regular expression was too costly: the rule does not match, whatever it says */
    struct rule_path path;
    struct view_entries query, cookies;
};
/* rule_path_fini() of its path ends it. */
void rule_view_init(struct rule_view *v, const struct rule_request *request);
struct view_entries *rule_view_query(struct rule_view *v);
struct view_entries *rule_view_cookies(struct rule_view *v);
bool rule_view_next(struct view_rest *rest, struct view_entry *entry);
/* The first eight; a shorter text has zeros behind it. */
uint64_t rule_first_bytes(struct slice text);
static inline bool rule_gate_lets_path(const struct path_gate *g, const struct rule_view *v)
{
    return (((v->first ^ g->first) & g->first_mask) | ((v->last ^ g->last) & g->last_mask)) == 0;
}

/* The next rule that matched, from `*index` on; NULL at the end. */
const struct config_rule *rules_next_matched(const struct rule_effects *e, size_t *index);
/* What the first of its path_regex that matches takes; `path` in the form of rule_path_init(). */
void rules_captures_of(const struct config_rule *r, struct slice path, struct rule_captures *out);
/* What cannot be in a tag (spaces, commas, control characters) goes, in place; the length. */
size_t rules_clean_tag(char *text, size_t len);
#endif
