/* base/dates.h: HTTP dates (RFC 9110 5.6.7). Pure; any thread. */
#ifndef BASE_DATES_H
#define BASE_DATES_H
#include "base/base.h"

enum { DATE_LENGTH = 29 }; /* "Sun, 06 Nov 1994 08:49:37 GMT" */

/* IMF-fixdate, rfc850 (two-digit years within 50 years of `now_s`) and asctime, names in any case;
 * anything else is refused: other zones, dashes in IMF-fixdate, one-digit hours, impossible days.
 * Seconds since 1970 UTC. */
must_check bool date_parse(struct slice text, int64_t now_s, int64_t *seconds);
/* Writes exactly DATE_LENGTH bytes, not terminated. */
void date_format(int64_t seconds, char out[DATE_LENGTH]);
#endif
