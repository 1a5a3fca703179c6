/* proxy/faults.h: every way to go wrong, in one table: the status the client sees, the outcome and reason that are counted and
 * logged, and whether the request may be sent once more on a fresh connection.
 */
#ifndef PROXY_FAULTS_H
#define PROXY_FAULTS_H
#include "base/verdict.h"

enum retry { RETRY_NO, RETRY_FRESH }; /* FRESH: idempotent, sent on a kept-alive connection, no byte of answer yet */

/*    fault                status  retry        outcome   reason              what the page and the log say             */
#define FAULTS(X)                                                                                                          \
    X(NONE,                200,    RETRY_NO,    LOCAL,    ANSWERED,            "")                                         \
    X(BAD_REQUEST,         400,    RETRY_NO,    REFUSED,  BAD_REQUEST,         "The request is malformed.")                \
    X(NO_SITE,             421,    RETRY_NO,    REFUSED,  NO_SITE,             "No site here serves this host.")           \
    X(NOT_FOUND,           404,    RETRY_NO,    LOCAL,    ANSWERED,            "There is nothing at this address.")        \
    X(FORBIDDEN,           403,    RETRY_NO,    LOCAL,    ANSWERED,            "This may not be read.")                    \
    X(METHOD,              405,    RETRY_NO,    LOCAL,    ANSWERED,            "This method is not allowed here.")         \
    X(PURGE,               405,    RETRY_NO,    REFUSED,  PURGE_ASKED,         "PURGE is not allowed from here.")          \
    X(NOT_TUNNELLED,       501,    RETRY_NO,    REFUSED,  BAD_REQUEST,         "CONNECT is not served here.")              \
    X(EXPECTATION,         417,    RETRY_NO,    REFUSED,  BAD_REQUEST,         "The expectation cannot be met.")           \
    X(BODY_LARGE,          413,    RETRY_NO,    REFUSED,  TOO_LARGE,           "The request's body is above clients.max_body.") \
    X(HEAD_SLOW,           408,    RETRY_NO,    REFUSED,  TOO_SLOW,            "The request did not arrive in time.")      \
    X(BODY_SLOW,           408,    RETRY_NO,    REFUSED,  TOO_SLOW,            "The request's body did not arrive in time.") \
    X(OVERLOADED,          503,    RETRY_NO,    REFUSED,  OVERLOADED,          "Too many connections; try again soon.")    \
    X(ONLY_IF_CACHED,      504,    RETRY_NO,    LOCAL,    ONLY_IF_CACHED,      "Nothing is stored that could answer this, and the origin was not to be asked.") \
    X(RULE_BROKEN,         500,    RETRY_NO,    LOCAL,    RULE_BROKEN,         "A rule of this site's configuration gave no valid request.") \
    X(FILE_FAILED,         500,    RETRY_NO,    FAULT,    ORIGIN_CUT,          "A file could not be read.")                \
    X(ORIGIN_UNRESOLVED,   502,    RETRY_NO,    FAULT,    ORIGIN_UNRESOLVED,   "The site's server has no address.")        \
    X(ORIGIN_REFUSED,      502,    RETRY_NO,    FAULT,    ORIGIN_REFUSED,      "The site's server refused the connection.") \
    X(ORIGIN_CONNECT_SLOW, 504,    RETRY_NO,    FAULT,    ORIGIN_CONNECT_SLOW, "The site's server did not take the connection in time.") \
    X(ORIGIN_SLOW,         504,    RETRY_NO,    FAULT,    ORIGIN_SLOW,         "The site's server did not answer in time.") \
    X(ORIGIN_STALLED,      504,    RETRY_NO,    FAULT,    ORIGIN_STALLED,      "The site's server stopped in the middle of its answer.") \
    X(ORIGIN_CLOSED,       502,    RETRY_FRESH, FAULT,    ORIGIN_CLOSED,       "The site's server closed the connection without an answer.") \
    X(ORIGIN_CUT,          502,    RETRY_NO,    FAULT,    ORIGIN_CUT,          "The site's server broke off its answer.")  \
    X(ORIGIN_MALFORMED,    502,    RETRY_NO,    FAULT,    ORIGIN_MALFORMED,    "The site's server gave an answer that is not HTTP/1.") \
    X(ORIGIN_ERROR,        502,    RETRY_NO,    FAULT,    ORIGIN_ERROR,        "The site's server answered with an error.") \
    X(ORIGIN_CHANGED,      502,    RETRY_NO,    FAULT,    ORIGIN_CHANGED,      "The site's file changed while it was being sent.") \
    X(ORIGIN_BUSY,         503,    RETRY_NO,    FAULT,    ORIGIN_BUSY,         "Larder has no room for another connection to the site's server.")

enum fault {
#define X(id, status, retry, outcome, reason, text) FAULT_##id,
    FAULTS(X)
#undef X
        FAULT_COUNT
};

struct fault_row {
    const char *name; /* in lower case, as the tests name it */
    uint16_t status;
    enum retry retry;
    enum outcome outcome;
    enum reason reason;
    const char *text;
};
const struct fault_row *fault_row(enum fault f);
/* The fault for an origin's reason; FAULT_NONE when it is not one. */
enum fault fault_of_reason(enum reason r);
#endif
