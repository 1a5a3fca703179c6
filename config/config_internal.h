/* config/config_internal.h: what the files of this floor share and no other floor sees.
 *
 * A load goes: defaults (set.c) -> the file (parse.c) -> options (config.c) -> cross checks
 * (check.c) -> host table (site.c). All of them write through a loader, which gathers every mistake
 * and remembers the place of every value, so that a check that runs at the end still names file,
 * line and column. One thread; gone when the load ends.
 */
#ifndef CONFIG_CONFIG_INTERNAL_H
#define CONFIG_CONFIG_INTERNAL_H
#include "base/arena.h"
#include "config/config.h"

/* ---- the table (items.c) --------------------------------------------------------------------- */
enum config_type {
    CONFIG_COUNT,
    CONFIG_BYTES,
    CONFIG_MS,
    CONFIG_S,
    CONFIG_BOOL,
    CONFIG_CHOICE,
    CONFIG_TEXT,
    CONFIG_SECRET,
    CONFIG_PATH,
    CONFIG_HOST, /* a Host field's value */
    CONFIG_ADDRESS,
    CONFIG_ORIGIN_NAME, /* resolved to a pointer by check.c */
    /* one text, or a list of them */
    CONFIG_ADDRESSES,
    CONFIG_SERVERS,
    CONFIG_FILE_NAMES,
    CONFIG_NETWORKS,
    CONFIG_HOSTS,
    CONFIG_FIELD_NAMES, /* of header fields */
    /* mappings and lists of their own kind */
    CONFIG_TTLS,
    CONFIG_SWITCH, /* `off`, or a mapping of the items below it */
    CONFIG_ORIGINS,
    CONFIG_SITES,
    /* what rules and their tests have; one text, or a list of them */
    CONFIG_WORDS, /* of the choices */
    CONFIG_HOST_GLOBS,
    CONFIG_PATH_GLOBS,
    CONFIG_NAME_GLOBS, /* of parameters, cookies, fields */
    CONFIG_NAMES,      /* of cookies */
    CONFIG_REGEXES,
    CONFIG_METHODS,
    CONFIG_STATUSES, /* 404, 5xx */
    CONFIG_TAGS,
    /* one text */
    CONFIG_VALUE_GLOB, /* of a condition */
    CONFIG_REGEX,
    CONFIG_METHOD,
    CONFIG_TEMPLATE,
    CONFIG_BODY, /* may have line breaks */
    CONFIG_STATUS,
    CONFIG_DENY, /* true, or a status */
    CONFIG_CLIENT_ADDRESS,
    CONFIG_URL,
    /* of their own kind */
    CONFIG_CONDITIONS,
    CONFIG_FIELDS,
    CONFIG_RULE_CACHE, /* a word, or a mapping of the items below it */
    CONFIG_MATCH,
    CONFIG_RULES,
    CONFIG_TESTS,
};
enum config_where { IN_CONFIG, IN_ORIGIN, IN_SITE, IN_RULE, IN_MATCH, IN_TEST };
enum config_reload { LIVE, RESTART };
enum config_fits { FITS_ALL, FITS_SERVERS, FITS_FILES }; /* which kind of origin has the item */

struct config_item {
    const char *path; /* "*" stands for a name or a list entry */
    enum config_type type;
    enum config_where where;
    size_t offset, bytes; /* of the field */
    size_t count_offset;  /* of a list's count; NO_COUNT when it has none */
    uint64_t min, max;    /* CONFIG_COUNT, _BYTES, _MS, _S (in seconds) */
    const char *zero;     /* the word for 0, which may be written as well: "auto", "unlimited" */
    const char *unit;     /* CONFIG_COUNT: what is counted */
    const char *initial;  /* the default, as it would be written; NULL: not set */
    const char *shown_initial;  /* how the manual says it, when `initial` alone does not */
    const char *const *choices; /* CONFIG_CHOICE, _WORDS: NULL-terminated, in the order of the enum */
    enum config_reload reload;
    enum config_fits fits;
    const char *help;
};
#define NO_COUNT SIZE_MAX

extern const struct config_item config_items[];
extern const size_t config_item_count;
/* By its path in the table ("origins.*.root"); NULL when there is none. */
const struct config_item *config_item_find(struct slice path);
/* Whether items lie below the path. */
bool config_item_is_group(struct slice path);
bool config_type_is_list(enum config_type type);
/* A number or choice of a rule or test: RULE_NOT_GIVEN when it was left out. */
bool config_item_is_optional_number(const struct config_item *item);
/* As it is shown: "origins.NAME.root", "sites[].rules[].match.path". */
void config_item_print_path(const struct config_item *item, FILE *out);
/* One value: "a size from 16MiB to 4TiB". */
void config_item_print_allowed(const struct config_item *item, FILE *out);
/* The whole of it: "a host name, or a list of them". */
void config_item_print_shape(const struct config_item *item, FILE *out);
/* The value as YAML on one line; secrets as "***". False, and nothing printed, when it is not set.
 */
bool config_item_print_value(const struct config_item *item, const void *base, FILE *out);

/* ---- a load, its places and mistakes (loader.c) ---------------------------------------------- */
struct config_place {
    const void
        *field;       /* the value's address in the snapshot; NULL for a place that is only shown */
    const char *path; /* "origins.app.servers[1]" */
    const char *option;  /* "--memory" when the command line gave it */
    struct slice text;   /* as written; secrets empty */
    size_t line, column; /* from 1; 0: nowhere */
    bool is_wrong;       /* its mistake is told already: checks that build on it are left out */
};

struct config_mistake_row {
    char *line;
    size_t at_line, at_column;
};

struct config_loader {
    struct config *config;
    struct arena *arena; /* the snapshot's */
    struct arena own;    /* dies with the load */
    const char *name;    /* of the file; NULL when only options speak */
    bool is_unreadable;  /* no YAML, or no mapping: what is missing is no mistake of its own then */
    struct config_mistake_row *mistakes;
    size_t mistake_count, mistake_room;
    struct config_place *places;
    size_t place_count, place_room;
    struct config_warning *warnings, *last_warning; /* in the arena of the load */
};
struct config_warning {
    struct config_warning *next;
    const char *line;
};

void config_loader_init(struct config_loader *l, struct config *c, const char *name);
/* Gives the mistakes away, in the order of the file, and frees the rest. */
void config_loader_fini(struct config_loader *l, struct config_mistakes *mistakes);
/* Adds "FILE:LINE:COLUMN: PATH: …", or "--OPTION: …". */
void config_mistake(struct config_loader *l, const struct config_place *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with the value seen before (`at->text`), and what is allowed and a question ("" or ";
 * did you mean X?") after. */
struct config_wrong {
    const struct config_item *item;
    const char *why, *question;
};
void config_mistake_value(struct config_loader *l, const struct config_place *at,
                          const struct config_wrong *wrong);
/* Copies. Valid until the next one is remembered. */
struct config_place *config_place_remember(struct config_loader *l, const struct config_place *p);
/* The latest with that field; NULL when the value was not given. */
struct config_place *config_place_find(const struct config_loader *l, const void *field);
/* As found, or one that shows the path alone. */
struct config_place config_place_or(const struct config_loader *l, const void *field,
                                    const char *path);
bool config_place_is_wrong(const struct config_loader *l, const void *field);
/* config_item_print_path() as a text; lives as long as the load. */
const char *config_item_shown_path(struct config_loader *l, const struct config_item *item);
/* In double quotes, control characters escaped, cut when long. Lives as long as the load. */
const char *config_shown(struct config_loader *l, struct slice text);
const char *config_format(struct config_loader *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Near misses: how many letters must change (adjacent ones that trade places count one), and
 * whether that is near. */
unsigned config_edit_distance(struct slice a, struct slice b);
struct config_nearest {
    struct slice text, best;
    unsigned distance;
};
void config_nearest_init(struct config_nearest *n, struct slice text);
void config_nearest_offer(struct config_nearest *n, struct slice candidate);
/* "" or "; did you mean X?" with the prefix before X. */
const char *config_nearest_question(struct config_loader *l, const struct config_nearest *n,
                                    const char *prefix);

/* ---- values (values.c): text to value and back. `why` is a sentence without subject: "has no
 * unit" ---- */
must_check bool config_parse_address(struct arena *a, struct slice text,
                                     struct config_address *address, const char **why);
must_check bool config_parse_server(struct arena *a, struct slice text,
                                    struct config_address *address, const char **why);
/* In lower case and without a trailing dot. */
must_check bool config_parse_site_host(struct arena *a, struct slice text, char **host,
                                       const char **why);
must_check bool config_parse_network(struct arena *a, struct slice text, char **network,
                                     const char **why);
must_check bool config_parse_bool(struct slice text, bool *value);
/* RFC 9110 5.1: the name of a field. */
bool config_is_token(struct slice text);
bool config_address_is_loopback(const struct config_address *address);
bool config_address_equal(const struct config_address *a, const struct config_address *b);
void config_print_bytes(uint64_t bytes, FILE *out);
void config_print_duration(uint64_t ms, FILE *out);

/* ---- setting fields (set.c) ------------------------------------------------------------------ */
struct config_text {
    struct slice text;
    size_t line, column;
};
struct config_input {
    const char *path;   /* as shown */
    const char *option; /* or NULL */
    size_t line, column;
    const struct config_text *texts; /* CONFIG_TTLS: status and duration in turn */
    size_t count;
    bool is_sequence; /* texts are shown with [0], [1] … */
};
/* Writes the item's field in `base`, or adds mistakes and leaves the field. */
void config_set(struct config_loader *l, const struct config_item *item, void *base,
                const struct config_input *in);
/* Every item of that place gets its default. */
void config_set_defaults(struct config_loader *l, enum config_where where, void *base);

/* Whether one text of the item's kind reads as one; `why` as for values. */
must_check bool config_check_text(struct config_loader *l, const struct config_item *item, struct slice text,
                                  const char **why);

/* ---- printing (print.c, print_rules.c) ------------------------------------------------------- */
void config_print_quoted(const char *string, FILE *out);
void config_print_strings(char *const *list, FILE *out);
void config_print_rules(const struct config_site *s, FILE *out);
bool config_item_print_rule_value(const struct config_item *item, const void *field, FILE *out);
/* The last part of an item's path. */
const char *config_item_name(const struct config_item *item);

/* ---- rules ------------------------------------------------------------------------------------ */
struct config_rule;
struct config_rule_test;
/* rules_compile.c: right after its items were read. `first_mistake`: how many there were before that. */
void config_rule_compile(struct config_loader *l, struct config_rule *r, const struct config_place *at,
                         size_t first_mistake);
void config_rule_check(struct config_loader *l, struct config_rule *r, const struct config_place *at,
                       size_t first_mistake); /* rules_check.c */
void config_rule_test_compile(struct config_loader *l, struct config_rule_test *t, const struct config_place *at,
                              size_t first_mistake); /* rules_tests.c */
/* What needs the other rules, sites and origins of the file. */
void config_site_rules_check(struct config_loader *l, struct config_site *s); /* rules_check.c */
void config_site_tests_check(struct config_loader *l, const struct config_site *s); /* rules_tests.c */
void config_rules_open_gates(struct config_loader *l, struct config_site *s); /* rules_compile.c */
const char *config_rule_summary(struct config_loader *l, const struct config_rule *r); /* rules_say.c */
/* check.c: the origin whose name was remembered at that place, or a mistake. */
void config_origin_resolve(struct config_loader *l, size_t place, const struct config_origin **origin);
/* Says at the load's end, if it had no mistake, what an operator should know ("FILE:LINE: PATH: …"). */
void config_warn(struct config_loader *l, const struct config_place *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- the rest -------------------------------------------------------------------------------- */
void config_parse_yaml(struct config_loader *l, struct slice yaml); /* parse.c */
void config_check_origin(struct config_loader *l, struct config_origin *o,
                         size_t first_place); /* check.c */
void config_check(struct config_loader *l);   /* check.c */

struct config_host_slot {
    struct slice host; /* "www.example.com", or ".example.com" for "*.example.com" */
    const struct config_site *site;
};
struct config_private {
    struct arena arena; /* everything the snapshot points to */
    _Atomic uint32_t refs;
    struct config_host_slot *slots; /* open addressing; fixed after the load */
    uint32_t slot_mask;
    bool has_wildcards;
    const struct config_site *any_site; /* "*" */
};
/* site.c: before the first add, room for `host_count` hosts. */
void config_hosts_init(struct config_private *own, size_t host_count);
/* NULL when added; else the site that had the host already. */
const struct config_site *config_hosts_add(struct config_private *own, struct slice host,
                                           const struct config_site *site);
#endif
