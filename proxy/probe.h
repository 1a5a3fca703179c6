/* proxy/probe.h: questions about requests that nobody has sent, for the operator's side: they are
 * read, routed and keyed as those of clients are. Pure but for the arena; any thread.
 */
#ifndef PROXY_PROBE_H
#define PROXY_PROBE_H
#include "base/arena.h"
#include "config/config.h"
#include "proxy/faults.h"
#include "proxy/h1.h"

struct probe {
    struct header storage[HEADERS_MAX];
    struct h1_request request;
    char host[256]; /* canonical */
    size_t host_length;
    uint16_t port; /* 0: none, or 80 */
    /* It ends here, whatever the site's rules say: refused before its site is known, or answered
     * once that is. */
    bool is_refused, is_answered;
    enum fault fault; /* how */
    enum reason reason;
    uint16_t status; /* 0: not known here */
    const char *why;
};
/* `head` is a whole one, with its empty line, and outlives `out`. */
void probe_read(const struct config *config, struct slice head, struct probe *out);

/* The head of an origin's answer to a GET, as a fetch reads it; 1xx before it are passed over.
 * `storage`: HEADERS_MAX of them. */
enum h1_result probe_response(struct slice bytes, struct header *storage, struct h1_response *out,
                              enum h1_cause *cause);

/* "http://host/path?query", or "/path?query" together with a host, as the head of a GET without
 * other fields. Empty and a sentence in *why when it is no URL. */
struct slice probe_head_of_url(struct arena *a, struct slice url, struct slice host,
                               const char **why);
/* The key that a plain GET of this URL has under the site's rules. Length, or 0 and a sentence. */
size_t probe_key_of_url(const struct config *config, struct slice url, struct slice host, char *out,
                        size_t capacity, const char **why);
#endif
