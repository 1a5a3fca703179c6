/* admin/explain.h: one answer of POST /explain while it is made. It goes through the files in the
 * order of a request:
 *
 *   explain.c          the body as a question; the whole from beginning to end
 *   explain_request.c  the question as a request's head; the client, and what it is trusted with
 *   explain_plan.c     site, rules, key, what rules change
 *   explain_store.c    what is stored, its clocks; hit, stale, miss …
 *   explain_why.c      the sentences: why, and what would change it
 *   explain_fetch.c    the origin, asked once
 *   explain_judge.c    what would become of its answer
 *
 * Each part adds a member to `out`. Nothing here changes the store, and without "fetch" nothing
 * reaches an origin. Admin thread only.
 */
#ifndef ADMIN_EXPLAIN_H
#define ADMIN_EXPLAIN_H
#include "admin/admin_internal.h"
#include "base/peer.h"
#include "cache/policy.h"

enum { EXPLAIN_FETCH_MS = 10000, EXPLAIN_FETCHES_MAX = 4 };

struct explain_question {
    struct slice url, method;
    json_t *fields; /* array of "Name: value", borrowed; NULL: none */
    struct peer client;
    bool has_client, wants_fetch;
};

/* What a request now would end in, as far as this can be known without the origin. */
struct explain_verdict {
    enum outcome outcome;
    enum reason reason;
    enum lookup_way way;  /* when the store was asked */
    bool asks_origin;     /* the origin's answer decides how it really ends */
    const char *sentence; /* instead of reason_text(); in the arena, or NULL */
    uint16_t status;      /* of an answer of our own; 0: not known */
};

struct explain {
    const struct admin_context *context;
    struct config *config;
    json_t *body; /* what the question's slices point into */
    struct arena arena; /* all slices below */
    json_t *out;
    struct explain_question question;
    struct slice scheme;
    struct admin_request request;
    struct header sent_storage[HEADERS_MAX];
    struct headers sent; /* the fields before rules edited them */
    struct peer client;  /* behind trusted proxies */
    const struct config_site *site;
    struct plan_request plan_in;
    struct plan plan;
    char key_buffer[512];
    struct cache_key key;
    int64_t now_ms;
    struct explain_verdict verdict;
    struct explain_stored {
        bool is_there;
        struct freshness freshness;
        int32_t age_s;
        struct slice etag;
    } stored; /* what this request selects */
};

/* ---- explain_request.c ----------------------------------------------------------------------- */

/* False: refused, the verdict says why; or the question is malformed and *why says so. */
must_check bool explain_read_request(struct explain *e, const char **why);

/* ---- explain_plan.c -------------------------------------------------------------------------- */

/* False: it ends here, and the verdict says how. */
must_check bool explain_site(struct explain *e);
must_check bool explain_plan(struct explain *e);

/* ---- explain_store.c ------------------------------------------------------------------------- */

void explain_store(struct explain *e);
/* The clocks as sentences, for its test: `paused` and `outdated_ms` (0: not) as of the object. */
struct explain_clocks {
    const struct freshness *freshness;
    int64_t received_ms, now_ms, outdated_ms;
    int32_t age_s; /* cache_object_age_s() */
    bool is_paused;
};
json_t *explain_clocks(const struct explain_clocks *c);

/* ---- explain_why.c --------------------------------------------------------------------------- */

void explain_why(struct explain *e);

/* ---- explain_fetch.c ------------------------------------------------------------------------- */

/* Asks, and answers `req` some time later; takes `e` over. False: `e` is the caller's still, and
 * member "fetch" says why nothing was asked. */
must_check bool explain_fetch(struct explain *e, struct evhttp_request *req);

/* ---- explain_judge.c ------------------------------------------------------------------------- */

/* What would become of this answer, into member "fetch". */
void explain_judge(struct explain *e, json_t *fetch, const struct admin_response *r,
                   int64_t delay_ms);
/* What a request would end in when this went wrong with the origin. */
void explain_failed(struct explain *e, json_t *fetch, enum reason why);

/* ---- explain.c ------------------------------------------------------------------------------- */

void explain_free(struct explain **e);
/* Text from outside as JSON; bytes that are not UTF-8 as \xNN. */
json_t *explain_text(struct slice s);
/* "name NUL value NUL …" of cache_vary_make() as [{"field", "value"}]; value null: none. */
json_t *explain_selecting(struct slice selecting);
/* "a", "b" … of a list with a NUL behind each. */
json_t *explain_list(struct slice list);
#endif
