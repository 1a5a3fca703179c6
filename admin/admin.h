/* admin/admin.h: the operator's side: an evhttp server on a thread of its own, and the command line that speaks to it.
 *
 * The admin floor does not see proxy/: what it needs from there comes as functions in `struct admin_hooks`, given by main.c.
 * Nothing here ever stops or locks a worker.
 */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H
#include "cache/cache.h"
#include "config/config.h"

#include <stdio.h>
#include <sys/socket.h>

struct admin_server_state {      /* one server of one origin, summed over workers */
    const char *origin, *server; /* "app", "http://10.0.0.5:8080" */
    const char
        *state; /* "up", "directory": asked; "failing", "down", "unresolved": left out for now */
    const char *why; /* last fault's sentence, or "" */
    uint64_t requests, faults, open, idle;
    uint64_t head_us_sum, head_count; /* time to the head */
    int64_t last_fault_wall_s;        /* 0: none */
};

/* One request as the public side would have it, for explain. Big: on the heap. */
struct admin_request {
    struct header storage[HEADERS_MAX];
    struct headers headers; /* as sent, Host among them */
    struct slice method, path, query;
    char host[256]; /* canonical; not terminated */
    size_t host_length;
    uint16_t port; /* 0: none, or the default one */
    bool is_get, is_head, is_purge, has_body;
    uint64_t body_bytes; /* Content-Length's; 0 when there is none */
    /* It is answered as soon as its site is known, whatever the site says: OPTIONS *, TRACE, an
     * unknown Expect. */
    bool is_answered;
    /* of the above, and of one that is refused */
    uint16_t status;
    enum outcome outcome;
    enum reason reason;
    const char *why;
};

/* A server of an origin, as a fetch would choose it now. */
struct admin_target {
    struct sockaddr_storage address;
    socklen_t length;
    char name[288]; /* "http://10.0.0.5:8080" */
    char host[288]; /* its own Host: "10.0.0.5:8080" */
};

/* The head of an origin's answer. */
struct admin_response {
    struct header storage[HEADERS_MAX];
    struct headers headers;
    uint16_t status;
    int64_t length_bytes; /* of the body; -1: not known */
    const char *why;
};
enum admin_read { ADMIN_READ_WHOLE, ADMIN_READ_MORE, ADMIN_READ_BAD };

struct admin_hooks {
    void *arg;
    struct cache *cache; /* may be asked from any thread */
    struct config *(*config)(
        void *arg); /* the snapshot in force, with a reference for the caller */
    /* Calls `visit` for each server; the strings live during the call. */
    void (*servers)(void *arg, void (*visit)(void *to, const struct admin_server_state *s),
                    void *to);
    /* Reads the file anew and publishes. False: mistakes holds why, the old snapshot stays. True:
     * mistakes may hold items that want a restart. */
    bool (*reload)(void *arg, struct config_mistakes *mistakes);
    /* The key for a URL ("http://host/path?query" or "/path" with a Host): the same canonical form
     * as a request's. Length or 0 and a sentence in *why. */
    size_t (*key_of_url)(void *arg, struct slice url, struct slice host, char *out, size_t capacity,
                         const char **why);
    /* How the keys of all URLs begin that begin so: the same, but the site's rules change nothing
     * of it save the path's case. */
    size_t (*prefix_of_url)(void *arg, struct slice prefix, struct slice host, char *out,
                            size_t capacity, const char **why);
    /* Reads the head of a request just as the public side does. False: it would be refused, with
     * what is in `out`. Slices point into `head`. */
    bool (*read_request)(void *arg, const struct config *config, struct slice head,
                         struct admin_request *out);
    /* False: no server of this origin has an address. */
    bool (*choose_server)(void *arg, const struct config_origin *origin, struct admin_target *out);
    /* As a fetch reads it. Slices point into `bytes`, which begins with the head; 1xx are passed
     * over. BAD says why. */
    enum admin_read (*read_response)(void *arg, struct slice bytes, struct admin_response *out);
    const char *(*h1_cause_word)(
        unsigned cause); /* name of stats.h1_cause[cause], NULL past the last */
    unsigned worker_count;
    int64_t started_wall_s;
};

struct admin;
/* Binds and starts the thread. NULL and a sentence in `why` (a buffer of at least 256 bytes) when
 * it cannot. */
struct admin *admin_start(const struct config *config, const struct admin_hooks *hooks,
                          char why[256]);
/* Drains and joins. */
void admin_stop(struct admin **a);

/* Where it listens: "127.0.0.1:6081" (the real port when the configured one was 0) or "unix:/path".
 * As long as the server. */
const char *admin_where(const struct admin *a);

/* The commands that speak to the admin port. argv[0] is the command's name. The exit status: 0
 * done, 1 refused (or a purge that found nothing), 2 wrong arguments or nobody answers. */
int admin_command_stat(int argc, char **argv);
int admin_command_reload(int argc, char **argv);
int admin_command_purge(int argc, char **argv);
int admin_command_explain(int argc, char **argv);
#endif
