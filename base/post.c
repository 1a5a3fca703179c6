/* base/post.c: a lock-free stack that the owner takes whole and turns round; an eventfd wakes it.
 * See post.h. */
#include "base/post.h"

#include <event2/event.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct mailbox {
    _Atomic(struct post *) newest;
    int fd;
    struct event *event;
};

static void on_mail(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof count);
    (void)got; /* the eventfd only wakes; the stack says what there is */
    mailbox_run(arg);
}

struct mailbox *mailbox_new(struct event_base *base)
{
    struct mailbox *m = xcalloc(1, sizeof *m);
    m->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    CHECK(m->fd >= 0);
    m->event = event_new(base, m->fd, EV_READ | EV_PERSIST, on_mail, m);
    CHECK(m->event != NULL && event_add(m->event, NULL) == 0);
    return m;
}

void mailbox_free(struct mailbox **m)
{
    if (*m == NULL)
        return;
    mailbox_run(*m);
    event_free((*m)->event);
    close((*m)->fd);
    free(*m);
    *m = NULL;
}

void mailbox_post(struct mailbox *m, struct post *p)
{
    struct post *newest = atomic_load_explicit(&m->newest, memory_order_relaxed);
    do
        p->next = newest;
    while (!atomic_compare_exchange_weak_explicit(&m->newest, &newest, p, memory_order_release,
                                                  memory_order_relaxed));
    if (newest != NULL)
        return; /* whoever made it non-empty has rung already */
    uint64_t one = 1;
    ssize_t sent = write(m->fd, &one, sizeof one);
    (void)sent; /* full means that it is ringing */
}

bool mailbox_post_once(struct mailbox *m, struct post *p)
{
    if (atomic_exchange(&p->is_posted, true))
        return false;
    mailbox_post(m, p);
    return true;
}

void mailbox_run(struct mailbox *m)
{
    struct post *p = atomic_exchange_explicit(&m->newest, NULL, memory_order_acquire);
    struct post *oldest = NULL;
    while (p != NULL) {
        struct post *next = p->next;
        p->next = oldest;
        oldest = p;
        p = next;
    }
    while (oldest != NULL) {
        struct post *next = oldest->next;
        atomic_store(&oldest->is_posted,
                     false); /* before run: it may free the post, or be posted anew */
        oldest->run(oldest);
        oldest = next;
    }
}
