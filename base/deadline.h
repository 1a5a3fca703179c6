/* base/deadline.h: many deadlines of any length at the cost of a linked list: a wheel of slots.
 *
 * Life     deadline_set() puts one in or moves it, deadline_clear() takes it out; wheel_turn() runs those that are due.
 * Threads  a wheel and its deadlines belong to one thread. `on_due` may set, clear or free any deadline, its own included.
 */
#ifndef BASE_DEADLINE_H
#define BASE_DEADLINE_H
#include "base/base.h"

enum { WHEEL_SLOTS = 1024, WHEEL_STEP_MS = 100 };

struct deadline {
    struct deadline *next, *prev; /* NULL when not set */
    int64_t at_ms;
    void (*on_due)(struct deadline *d);
};

struct wheel {
    struct deadline slots[WHEEL_SLOTS]; /* heads of rings */
    int64_t turned_ms;                  /* everything due before this has run */
};

void wheel_init(struct wheel *w, int64_t now_ms);
/* `at_ms` in the past is due at the next turn. */
void deadline_set(struct wheel *w, struct deadline *d, int64_t at_ms);
void deadline_clear(struct deadline *d);
static inline bool deadline_is_set(const struct deadline *d)
{
    return d->next != NULL;
}
/* Runs what is due; called every WHEEL_STEP_MS or so. A clock that jumped ahead costs one round of
 * the wheel. */
void wheel_turn(struct wheel *w, int64_t now_ms);
#endif
