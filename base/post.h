/* base/post.h: messages between threads that each run an event loop.
 *
 * A mailbox belongs to one event_base. mailbox_post() may be called from any thread, the owner's included; run() is
 * called on the owner's loop, soon, in the order posted. The message's memory is the sender's until run() is called;
 * run() may free it or post it again. A post that is under way must not be posted a second time: senders that may
 * repeat keep a flag (see post_once).
 */
#ifndef BASE_POST_H
#define BASE_POST_H
#include "base/base.h"

struct event_base;
struct mailbox;
struct post {
    struct post *next;              /* mailbox only */
    void (*run)(struct post *post); /* on the owner's thread */
    _Atomic bool is_posted;         /* post_once only */
};

struct mailbox *mailbox_new(struct event_base *base);
/* The loop has ended; posts that wait are run first. */
void mailbox_free(struct mailbox **m);
void mailbox_post(struct mailbox *m, struct post *p);
/* Posts unless it is waiting already; run() sees every change made before the last call. True when
 * it was posted. */
bool mailbox_post_once(struct mailbox *m, struct post *p);
/* On the owner's thread: runs what is waiting now. The loop does this by itself; a worker calls it
 * before it sleeps to save a turn. */
void mailbox_run(struct mailbox *m);
#endif
