/* base/stats.c: see stats.h. Registration takes a lock; counting and reading do not. */
#include "base/stats.h"

#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct stats *) first;
static struct stats *last; /* under registry_lock */
static _Thread_local struct stats *mine;

const struct stat_row stat_rows[] = {
#define X(name, kind, unit, help) \
    { #name, STAT_##kind, STAT_##unit, help, offsetof(struct stats_sum, name) },
    STATS(X)
#undef X
};
const size_t stat_row_count = ARRAY_COUNT(stat_rows);

struct stats *stats_new(const char *thread)
{
    /* a cache line and more of its own: no two threads write the same line */
    size_t bytes = (sizeof(struct stats) + 255) & ~(size_t)255;
    struct stats *s = xcalloc(1, bytes);
    s->thread = xstrdup(thread);
    pthread_mutex_lock(&registry_lock);
    if (last == NULL)
        atomic_store(&first, s);
    else
        __atomic_store_n(&last->next, s, __ATOMIC_RELEASE);
    last = s;
    pthread_mutex_unlock(&registry_lock);
    return s;
}

struct stats *stats_mine(void)
{
    if (mine == NULL)
        mine = stats_new("other");
    return mine;
}

void stats_use(struct stats *s)
{
    mine = s;
}

const struct stats *stats_first(void)
{
    return atomic_load(&first);
}

static void add_array(int64_t *sum, const _Atomic int64_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += atomic_load_explicit(&from[i], memory_order_relaxed);
}

void stats_sum_all(struct stats_sum *sum)
{
    *sum = (struct stats_sum){ 0 };
    for (const struct stats *s = stats_first(); s != NULL; s = __atomic_load_n(&s->next, __ATOMIC_ACQUIRE)) {
#define X(name, kind, unit, help) sum->name += atomic_load_explicit(&s->name, memory_order_relaxed);
        STATS(X)
#undef X
        add_array(sum->outcome, s->outcome, OUTCOME_COUNT);
        add_array(sum->reason, s->reason, REASON_COUNT);
        add_array(sum->status_class, s->status_class, STATUS_CLASSES);
        add_array(sum->h1_cause, s->h1_cause, STATS_CAUSES);
        add_array(sum->unstored, s->unstored, STATS_UNSTORED);
    }
}
