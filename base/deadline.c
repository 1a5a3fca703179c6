/* base/deadline.c: see deadline.h. A deadline beyond one round waits in its slot for the right
 * round. */
#include "base/deadline.h"

static struct deadline *slot_at(struct wheel *w, int64_t ms)
{
    return &w->slots[(uint64_t)(ms / WHEEL_STEP_MS) % WHEEL_SLOTS];
}

void wheel_init(struct wheel *w, int64_t now_ms)
{
    for (size_t i = 0; i < WHEEL_SLOTS; i++)
        w->slots[i].next = w->slots[i].prev = &w->slots[i];
    w->turned_ms = now_ms - now_ms % WHEEL_STEP_MS;
}

void deadline_clear(struct deadline *d)
{
    if (d->next == NULL)
        return;
    d->next->prev = d->prev;
    d->prev->next = d->next;
    d->next = d->prev = NULL;
}

static void link_before(struct deadline *head, struct deadline *d)
{
    d->next = head;
    d->prev = head->prev;
    head->prev->next = d;
    head->prev = d;
}

void deadline_set(struct wheel *w, struct deadline *d, int64_t at_ms)
{
    deadline_clear(d);
    d->at_ms = at_ms;
    /* What is past goes into the next step's slot: never into one that this round has passed, nor into one that the turn
     * under way is still to visit (it would run twice in one turn). */
    int64_t place_ms = at_ms < w->turned_ms ? w->turned_ms + WHEEL_STEP_MS : at_ms;
    link_before(slot_at(w, place_ms), d);
}

static void run_slot(struct deadline *head, int64_t now_ms)
{
    /* Moved to a ring of our own first: what on_due() sets anew lands in the wheel, not before us
     * again. */
    struct deadline ring = { .next = &ring, .prev = &ring };
    if (head->next == head)
        return;
    ring.next = head->next;
    ring.prev = head->prev;
    ring.next->prev = ring.prev->next = &ring;
    head->next = head->prev = head;
    while (ring.next != &ring) {
        struct deadline *d = ring.next;
        deadline_clear(d);
        if (d->at_ms > now_ms)
            link_before(head, d); /* a later round, or later in this step */
        else
            d->on_due(d);
    }
}

void wheel_turn(struct wheel *w, int64_t now_ms)
{
    int64_t last = now_ms - now_ms % WHEEL_STEP_MS;
    int64_t from = w->turned_ms;
    if (last - from >= (int64_t)WHEEL_SLOTS * WHEEL_STEP_MS)
        from = last - (int64_t)(WHEEL_SLOTS - 1) * WHEEL_STEP_MS;
    w->turned_ms = last; /* before running: what is set meanwhile must not land behind us */
    for (int64_t ms = from; ms <= last; ms += WHEEL_STEP_MS)
        run_slot(slot_at(w, ms), now_ms);
}
