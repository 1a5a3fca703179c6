/* admin/client_internal.h: the small HTTP client of the command line. Blocking, with a deadline;
 * one request a connection. */
#ifndef ADMIN_CLIENT_INTERNAL_H
#define ADMIN_CLIENT_INTERNAL_H
#include "base/base.h"

enum { CLIENT_ANSWER_MAX = 8 << 20, CLIENT_WHY_BYTES = 512 };

struct client_request {
    const char
        *where; /* "127.0.0.1:6081", "[::1]:6081", "http://host:port", "unix:/path", "/path" */
    const char *token; /* NULL: none */
    const char *method, *path;
    const char *body; /* JSON, or NULL */
    int deadline_ms;  /* for all of it */
};

struct client_answer {
    int status;
    char *body; /* terminated; the caller frees it */
    size_t length;
};

/* False and a sentence in `why` when no whole answer came. */
must_check bool client_ask(const struct client_request *r, struct client_answer *answer,
                           char why[CLIENT_WHY_BYTES]);
/* For its own test: cuts an answer that has come so far. 1: whole, `answer` points into `bytes`
 * (which is terminated); 0: more has to come; -1 and a sentence: not an answer that we understand.
 * `at_end`: nothing more will come. */
int client_read_answer(char *bytes, size_t length, bool at_end, struct client_answer *answer,
                       char why[CLIENT_WHY_BYTES]);
#endif
