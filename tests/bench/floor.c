/* tests/bench/floor.c: what the sockets alone cost: an epoll loop that answers every request with the same bytes.
 *
 * It reads nothing but the empty line, looks nothing up and keeps no time. What a real server needs beyond this is its own work, so
 * tests/bench/compare prints every server's processor time as a multiple of it.
 *
 * usage: floor PORT BODY_BYTES [close] [sendfile]
 *   close     ends the connection after each answer
 *   sendfile  the body goes out of a memory file, uncopied: the cheaper way for large ones
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 1 << 17, EVENTS = 256, BACKLOG = 4096 };

static struct {
    char head[256];
    char *body;
    size_t head_bytes, body_bytes;
    int file; /* -1: from memory */
    bool closes;
} answer = { .file = -1 };

/* By descriptor. `sent` is not 0 while an answer is under way. */
static struct {
    size_t sent;
    bool watches_write;
} connections[CONNECTIONS_MAX];

static int loop;

static void watch(int fd, uint32_t events, int how)
{
    struct epoll_event e = { .events = events, .data.fd = fd };
    epoll_ctl(loop, how, fd, &e);
}

static ssize_t send_some(int fd, size_t from)
{
    size_t all = answer.head_bytes + answer.body_bytes;
    if (answer.file >= 0 && from < answer.head_bytes)
        return send(fd, answer.head + from, answer.head_bytes - from, MSG_MORE | MSG_NOSIGNAL);
    size_t into_body = from < answer.head_bytes ? 0 : from - answer.head_bytes;
    if (answer.file >= 0) {
        off_t at = (off_t)into_body;
        return sendfile(fd, answer.file, &at, all - from);
    }
    struct iovec parts[2] = { { answer.head + from, from < answer.head_bytes ? answer.head_bytes - from : 0 },
                              { answer.body + into_body, answer.body_bytes - into_body } };
    bool has_head = from < answer.head_bytes;
    struct msghdr message = { .msg_iov = has_head ? parts : parts + 1, .msg_iovlen = has_head ? 2 : 1 };
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

/* False when the connection is to be closed. */
static bool go_on_sending(int fd)
{
    size_t all = answer.head_bytes + answer.body_bytes;
    while (connections[fd].sent < all) {
        ssize_t n = send_some(fd, connections[fd].sent);
        if (n > 0) {
            connections[fd].sent += (size_t)n;
            continue;
        }
        if (n < 0 && errno != EAGAIN)
            return false;
        if (!connections[fd].watches_write)
            watch(fd, EPOLLIN | EPOLLOUT | EPOLLET, EPOLL_CTL_MOD);
        connections[fd].watches_write = true;
        return true;
    }
    connections[fd].sent = 0;
    return !answer.closes;
}

static bool serve(int fd)
{
    char request[16384];
    if (connections[fd].sent > 0 && !go_on_sending(fd))
        return false;
    if (connections[fd].sent > 0)
        return true;
    ssize_t n = recv(fd, request, sizeof request, 0);
    if (n < 0)
        return errno == EAGAIN;
    if (n == 0)
        return false;
    return memmem(request, (size_t)n, "\r\n\r\n", 4) == NULL || go_on_sending(fd);
}

static void accept_all(int listener)
{
    int fd, on = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        if (fd >= CONNECTIONS_MAX) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        connections[fd].sent = 0;
        connections[fd].watches_write = false;
        watch(fd, EPOLLIN | EPOLLET, EPOLL_CTL_ADD);
    }
}

static int listen_on(uint16_t port)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, BACKLOG) != 0) {
        perror("floor");
        exit(1);
    }
    return fd;
}

static void make_answer(size_t body_bytes, bool from_file)
{
    answer.body_bytes = body_bytes;
    answer.body = malloc(body_bytes + 1);
    if (answer.body == NULL)
        exit(1);
    memset(answer.body, 'x', body_bytes);
    answer.head_bytes = (size_t)snprintf(answer.head, sizeof answer.head,
                                         "HTTP/1.1 200 OK\r\nServer: floor\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: text/html\r\n"
                                         "Content-Length: %zu\r\nCache-Control: max-age=3600\r\nAge: 1\r\n%s\r\n",
                                         body_bytes, answer.closes ? "Connection: close\r\n" : "");
    if (!from_file)
        return;
    answer.file = memfd_create("body", 0);
    if (answer.file < 0 || write(answer.file, answer.body, body_bytes) != (ssize_t)body_bytes) {
        perror("floor");
        exit(1);
    }
}

int main(int argc, char **argv)
{
    bool from_file = false;
    if (argc < 3) {
        fputs("usage: floor PORT BODY_BYTES [close] [sendfile]\n", stderr);
        return 2;
    }
    for (int i = 3; i < argc; i++) {
        answer.closes |= strcmp(argv[i], "close") == 0;
        from_file |= strcmp(argv[i], "sendfile") == 0;
    }
    make_answer(strtoul(argv[2], NULL, 10), from_file);
    loop = epoll_create1(0);
    int listener = listen_on((uint16_t)atoi(argv[1]));
    watch(listener, EPOLLIN, EPOLL_CTL_ADD);
    for (;;) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(loop, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                accept_all(fd);
            else if (!serve(fd))
                close(fd);
        }
    }
}
