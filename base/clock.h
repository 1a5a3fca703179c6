/* base/clock.h: the two clocks. Monotonic milliseconds for timers and ages, wall seconds for dates only: the wall
 * clock jumps (NTP), ages and timers must not.
 *
 * Threads  any. In builds with LARDER_TEST_HOOKS the monotonic clock is moved forward by what the file named by the
 *          environment's LARDER_TEST_CLOCK holds (a native int64_t of milliseconds, mapped shared): tests own time. The wall
 *          clock is not moved: real origins' dates would all seem to lie in the past.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H
#include "base/base.h"

int64_t clock_mono_ms(void); /* milliseconds since some start; never goes back */
int64_t clock_mono_us(void); /* the same in microseconds, for latencies */
int64_t clock_wall_s(void);  /* seconds since 1970 UTC */
int64_t clock_wall_ms(void);
/* Once, before other threads: maps the test clock when the build and the environment have one. */
void clock_setup(void);
#endif
