/* The wheel: what is due runs, once, in time; what is not stays. */
#include "base/deadline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

struct timer {
    struct deadline deadline;
    unsigned runs;
    struct timer *clears;
    struct wheel *again;
    int64_t again_at;
};

static void on_due(struct deadline *d)
{
    struct timer *t = CONTAINER_OF(d, struct timer, deadline);
    t->runs++;
    if (t->clears != NULL)
        deadline_clear(&t->clears->deadline);
    if (t->again != NULL)
        deadline_set(t->again, d, t->again_at);
}

static void runs_when_due_and_not_before(void **state)
{
    (void)state;
    static const int64_t delays[] = { 0, 1, 99, 100, 101, 999, 65000, 102399, 102400, 102401, 500000 };
    for (size_t i = 0; i < ARRAY_COUNT(delays); i++) {
        struct wheel w;
        struct timer t = { .deadline.on_due = on_due };
        wheel_init(&w, 1000007);
        deadline_set(&w, &t.deadline, 1000007 + delays[i]);
        int64_t now = 1000007;
        for (; now < 1000007 + delays[i]; now += 50) {
            wheel_turn(&w, now);
            assert_int_equal(t.runs, 0);
        }
        wheel_turn(&w, now + WHEEL_STEP_MS);
        assert_int_equal(t.runs, 1);
        wheel_turn(&w, now + 300000);
        assert_int_equal(t.runs, 1);
    }
}

static void a_jump_of_the_clock_runs_all_that_is_due(void **state)
{
    (void)state;
    struct wheel w;
    struct timer t[50] = { 0 };
    wheel_init(&w, 0);
    for (size_t i = 0; i < ARRAY_COUNT(t); i++) {
        t[i].deadline.on_due = on_due;
        deadline_set(&w, &t[i].deadline, (int64_t)i * 7919);
    }
    wheel_turn(&w, 10000000);
    for (size_t i = 0; i < ARRAY_COUNT(t); i++)
        assert_int_equal(t[i].runs, 1);
}

static void may_clear_and_set_others_while_running(void **state)
{
    (void)state;
    struct wheel w;
    struct timer second = { .deadline.on_due = on_due };
    struct timer first = { .deadline.on_due = on_due, .clears = &second };
    struct timer repeats = { .deadline.on_due = on_due, .again = &w, .again_at = 10 };
    wheel_init(&w, 0);
    deadline_set(&w, &first.deadline, 10);
    deadline_set(&w, &second.deadline, 10);
    deadline_set(&w, &repeats.deadline, 10);
    wheel_turn(&w, 20);
    assert_int_equal(first.runs, 1);
    assert_int_equal(second.runs, 0);
    assert_int_equal(repeats.runs, 1); /* set anew in the past: due at the next turn, not in an endless one */
    wheel_turn(&w, 120);
    assert_int_equal(repeats.runs, 2);
    wheel_turn(&w, 120);
    assert_int_equal(repeats.runs, 2);
    deadline_clear(&repeats.deadline);
    assert_false(deadline_is_set(&repeats.deadline));
}

static void moving_forgets_the_old_place(void **state)
{
    (void)state;
    struct wheel w;
    struct timer t = { .deadline.on_due = on_due };
    wheel_init(&w, 0);
    deadline_set(&w, &t.deadline, 100);
    deadline_set(&w, &t.deadline, 5000);
    wheel_turn(&w, 4000);
    assert_int_equal(t.runs, 0);
    wheel_turn(&w, 5100);
    assert_int_equal(t.runs, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_when_due_and_not_before),
        cmocka_unit_test(a_jump_of_the_clock_runs_all_that_is_due),
        cmocka_unit_test(may_clear_and_set_others_while_running),
        cmocka_unit_test(moving_forgets_the_old_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
