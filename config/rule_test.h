/* config/rule_test.h: the tests that rules carry in the configuration file: as read and checked by this floor, run by
 * cache/ruletest.c. Immutable with the snapshot.
 */
#ifndef CONFIG_RULE_TEST_H
#define CONFIG_RULE_TEST_H
#include "base/peer.h"

#define RULE_NOT_GIVEN UINT32_MAX /* a number or choice that was left out */

/* ---- the tests of a site ----------------------------------------------------------------------- */

/* One line of a head. A name that was given a list of values is several rows, in order. */
struct rule_field {
    char *name, *value;
};
struct rule_fields {
    struct rule_field *rows;
    size_t count;
};

/* sites.*.tests: a request and the origin's answer to it, and what Larder is to make of them. Every member of `expect`
 * may be left out (NULL, RULE_NOT_GIVEN), but not all of them. */
struct config_rule_test {
    const char *where; /* "larder.yaml:40" */
    char *name;        /* NULL: it has none */
    struct {
        char *url;    /* as written: "https://www.example.com/a?b" */
        char *method; /* NULL: GET */
        struct rule_fields fields;
        char *client; /* an address; NULL: none */
    } request;
    struct {
        uint32_t status; /* RULE_NOT_GIVEN: 200 */
        struct rule_fields fields;
    } response;
    struct {
        uint32_t outcome; /* enum outcome */
        uint32_t ttl_s;   /* the lifetime of what is stored */
        uint32_t stored;  /* 0: false, 1: true */
        uint32_t status;  /* that the client gets */
        char *key;        /* as shown: "host/path?query" and what rules add, each after a space */
        char *rule;       /* name, or where, of a rule that matches */
        char *why;        /* a word: of enum reason, or of enum storable */
        char *location;   /* of a redirect */
        char *origin;     /* name */
        char **tags;      /* all of them, in any order; NULL-terminated; NULL: not given */
    } expect;
    /* made of them */
    struct slice scheme, host, path, query; /* of the URL: host canonical; query.ptr NULL: no '?' */
    uint16_t port;                          /* 0: none, or the scheme's default */
    struct peer peer;                       /* of `client` */
    bool has_peer;
};
#endif
