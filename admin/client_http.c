/* admin/client_http.c: see client_internal.h. What it talks to is Larder's own admin port, so it
 * understands what that sends (Content-Length, or until the close) and says so when something else
 * answers.
 */
#include "admin/client_internal.h"

#include "base/clock.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct target {
    bool is_unix;
    char host[256], port[8];
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

/* ---- where ----------------------------------------------------------------------------------- */

static bool read_unix(struct slice text, struct target *t)
{
    if (slice_has_prefix(text, SLICE("unix:")))
        text = (struct slice){ text.ptr + 5, text.len - 5 };
    if (slice_is_empty(text) || text.len >= sizeof t->path)
        return false;
    t->is_unix = true;
    memcpy(t->path, text.ptr, text.len);
    return true;
}

static bool read_where(const char *where, struct target *t)
{
    struct slice text = slice_of(where);
    uint64_t port;
    *t = (struct target){ 0 };
    if (slice_has_prefix(text, SLICE("unix:")) || slice_has_prefix(text, SLICE("/")))
        return read_unix(text, t);
    if (slice_has_prefix_nocase(text, SLICE("http://")))
        text = (struct slice){ text.ptr + 7, text.len - 7 };
    if (slice_has_suffix(text, SLICE("/")))
        text.len--;
    const char *colon = memrchr(text.ptr, ':', text.len);
    if (colon == NULL)
        return false;
    struct slice host = slice_from(text.ptr, colon),
                 number = slice_from(colon + 1, text.ptr + text.len);
    if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
        host = (struct slice){ host.ptr + 1, host.len - 2 };
    else if (slice_find(host, ':') < host.len)
        return false;
    if (!slice_to_u64(number, &port) || port == 0 || port > UINT16_MAX ||
        host.len >= sizeof t->host)
        return false;
    snprintf(t->host, sizeof t->host, SLICE_FMT, SLICE_ARG(host));
    if (slice_is_empty(host)) /* ":6081" */
        strcpy(t->host, "127.0.0.1");
    snprintf(t->port, sizeof t->port, "%u", (unsigned)port);
    return true;
}

/* ---- sockets, with a deadline ---------------------------------------------------------------- */

/* 0, or an errno. */
static int wait_for(int fd, short events, int64_t until_ms)
{
    struct pollfd p = { .fd = fd, .events = events };
    for (;;) {
        int64_t left = until_ms - clock_mono_ms();
        int n = left <= 0 ? 0 : poll(&p, 1, (int)left);
        if (n > 0)
            return 0;
        if (n == 0)
            return ETIMEDOUT;
        if (errno != EINTR)
            return errno;
    }
}

/* A socket, or minus an errno. */
static int connect_to(const struct sockaddr *address, socklen_t length, int64_t until_ms)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int error = connect(fd, address, length) < 0 ? errno : 0;
    if (error == EINPROGRESS) {
        socklen_t size = sizeof error;
        error = wait_for(fd, POLLOUT, until_ms);
        if (error == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
            error = errno;
    }
    if (error == 0)
        return fd;
    close(fd);
    return -error;
}

static int connect_tcp(const struct target *t, int64_t until_ms, const char **why)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV },
                    *list = NULL;
    int error = getaddrinfo(t->host, t->port, &hints, &list);
    if (error != 0) {
        *why = gai_strerror(error);
        return -1;
    }
    int fd = -ECONNREFUSED;
    for (const struct addrinfo *i = list; i != NULL && fd < 0; i = i->ai_next)
        fd = connect_to(i->ai_addr, i->ai_addrlen, until_ms);
    freeaddrinfo(list);
    if (fd < 0)
        *why = strerror(-fd);
    return fd;
}

static int connect_unix(const struct target *t, int64_t until_ms, const char **why)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    strcpy(at.sun_path, t->path);
    int fd = connect_to((const struct sockaddr *)(const void *)&at, sizeof at, until_ms);
    if (fd < 0)
        *why = strerror(-fd);
    return fd;
}

static int send_all(int fd, const char *bytes, size_t length, int64_t until_ms)
{
    while (length > 0) {
        ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
        if (n > 0) {
            bytes += n;
            length -= (size_t)n;
            continue;
        }
        int error = errno == EAGAIN ? wait_for(fd, POLLOUT, until_ms) : errno == EINTR ? 0 : errno;
        if (error != 0)
            return error;
    }
    return 0;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static struct slice next_line(struct slice *rest)
{
    struct slice line = { rest->ptr, slice_find(*rest, '\n') };
    size_t taken = line.len < rest->len ? line.len + 1 : line.len;
    *rest = (struct slice){ rest->ptr + taken, rest->len - taken };
    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    return line;
}

static int not_ours(const char *what, char why[CLIENT_WHY_BYTES])
{
    snprintf(why, CLIENT_WHY_BYTES, "what answers there is not Larder's admin port (%s)", what);
    return -1;
}

int client_read_answer(char *bytes, size_t length, bool at_end, struct client_answer *answer,
                       char why[CLIENT_WHY_BYTES])
{
    const char *end = length < 4 ? NULL : memmem(bytes, length, "\r\n\r\n", 4);
    if (end == NULL)
        return at_end || length > (64 << 10) ? not_ours("its answer has no end of its head", why)
                                             : 0;
    struct slice head = slice_from(bytes, end), line = next_line(&head);
    uint64_t status = 0, body_length = UINT64_MAX;
    if (!slice_has_prefix(line, SLICE("HTTP/1.")) || line.len < 12 || line.ptr[8] != ' ' ||
        !slice_to_u64((struct slice){ line.ptr + 9, 3 }, &status) || status < 100)
        return not_ours("its first line is not HTTP", why);
    while (!slice_is_empty(head)) {
        line = next_line(&head);
        size_t colon = slice_find(line, ':');
        if (colon == line.len)
            continue;
        struct slice name = { line.ptr, colon },
                     value =
                         slice_trim((struct slice){ line.ptr + colon + 1, line.len - colon - 1 });
        if (slice_equal_nocase(name, SLICE("Transfer-Encoding")))
            return not_ours("it sends in chunks", why);
        if (slice_equal_nocase(name, SLICE("Content-Length")) && !slice_to_u64(value, &body_length))
            return not_ours("its Content-Length is no number", why);
    }
    size_t from = (size_t)(end + 4 - bytes), have = length - from;
    if (body_length != UINT64_MAX && body_length > CLIENT_ANSWER_MAX)
        return not_ours("its answer is above 8 MiB", why);
    if (!at_end && (body_length == UINT64_MAX || have < body_length))
        return 0;
    if (body_length != UINT64_MAX && have < body_length) {
        snprintf(why, CLIENT_WHY_BYTES, "the admin port closed in the middle of its answer");
        return -1;
    }
    *answer = (struct client_answer){ (int)status, bytes + from,
                                      body_length == UINT64_MAX ? have : (size_t)body_length };
    answer->body[answer->length] = '\0';
    return 1;
}

/* 1, or -1 and a sentence. `*bytes` grows with what comes. */
static int receive(int fd, int64_t until_ms, char **bytes, struct client_answer *answer,
                   char why[CLIENT_WHY_BYTES])
{
    size_t length = 0, capacity = 0;
    for (;;) {
        if (length + 1 >= capacity) {
            if (length > CLIENT_ANSWER_MAX)
                return not_ours("its answer is above 8 MiB", why);
            capacity = capacity == 0 ? 64 << 10 : capacity * 2;
            *bytes = xrealloc(*bytes, capacity);
        }
        ssize_t n = recv(fd, *bytes + length, capacity - length - 1, 0);
        int error = n >= 0            ? 0
                    : errno == EAGAIN ? wait_for(fd, POLLIN, until_ms)
                    : errno == EINTR  ? 0
                                      : errno;
        if (error != 0) {
            snprintf(why, CLIENT_WHY_BYTES, "no answer from the admin port: %s",
                     error == ETIMEDOUT ? "it took too long" : strerror(error));
            return -1;
        }
        if (n < 0)
            continue;
        length += (size_t)n;
        int state = client_read_answer(*bytes, length, n == 0, answer, why);
        if (state != 0)
            return state;
    }
}

static char *compose(const struct client_request *r, const struct target *t)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    CHECK(out != NULL);
    bool is_v6 = strchr(t->host, ':') != NULL;
    fprintf(out, "%s %s HTTP/1.1\r\nHost: ", r->method, r->path);
    if (t->is_unix)
        fprintf(out, "localhost\r\n");
    else
        fprintf(out, is_v6 ? "[%s]:%s\r\n" : "%s:%s\r\n", t->host, t->port);
    fprintf(out, "User-Agent: larder/" LARDER_VERSION "\r\nConnection: close\r\n");
    if (r->token != NULL)
        fprintf(out, "Authorization: Bearer %s\r\n", r->token);
    if (r->body != NULL)
        fprintf(out, "Content-Type: application/json\r\n");
    fprintf(out, "Content-Length: %zu\r\n\r\n%s", r->body == NULL ? 0 : strlen(r->body),
            r->body == NULL ? "" : r->body);
    fclose(out);
    return text;
}

static bool converse(int fd, const struct client_request *r, const struct target *t,
                     int64_t until_ms, struct client_answer *answer, char why[CLIENT_WHY_BYTES])
{
    char *request = compose(r, t), *bytes = NULL;
    int error = send_all(fd, request, strlen(request), until_ms);
    free(request);
    /* a server that refuses may close before it has read all: its answer is there all the same */
    bool is_whole = (error == 0 || error == EPIPE || error == ECONNRESET) &&
                    receive(fd, until_ms, &bytes, answer, why) > 0;
    if (is_whole)
        answer->body = xstrdup(answer->body);
    else if (error != 0 && error != EPIPE && error != ECONNRESET)
        snprintf(why, CLIENT_WHY_BYTES, "cannot send to the admin port: %s", strerror(error));
    free(bytes);
    return is_whole;
}

bool client_ask(const struct client_request *r, struct client_answer *answer,
                char why[CLIENT_WHY_BYTES])
{
    struct target t;
    int64_t until_ms = clock_mono_ms() + r->deadline_ms;
    const char *cause = "";
    for (const char *c = r->token; c != NULL && *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            snprintf(why, CLIENT_WHY_BYTES, "the token holds a line break or another control byte");
            return false;
        }
    if (!read_where(r->where, &t)) {
        snprintf(why, CLIENT_WHY_BYTES,
                 "\"%.200s\" is no address; it looks like 127.0.0.1:6081, [::1]:6081 or "
                 "unix:/run/larder/admin.sock",
                 r->where);
        return false;
    }
    int fd = t.is_unix ? connect_unix(&t, until_ms, &cause) : connect_tcp(&t, until_ms, &cause);
    if (fd < 0) {
        snprintf(why, CLIENT_WHY_BYTES,
                 "cannot reach the admin port at %.200s: %s; is larder running, and is "
                 "admin.listen the same?",
                 r->where, cause);
        return false;
    }
    bool is_whole = converse(fd, r, &t, until_ms, answer, why);
    close(fd);
    return is_whole;
}
