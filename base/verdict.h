/* base/verdict.h: how an exchange can end: one outcome, one reason. One table: the access log, Cache-Status, the
 * counters and the admin side all say these words, and every request that was read is counted in exactly one outcome
 * and one reason.
 */
#ifndef BASE_VERDICT_H
#define BASE_VERDICT_H
#include "base/base.h"

/*    outcome      word           help */
#define OUTCOMES(X)                                                                                      \
    X(HIT,         "hit",         "Answered from the store, without asking the origin.")                 \
    X(REVALIDATED, "revalidated", "The origin confirmed the stored object (304); answered from the store.") \
    X(STALE,       "stale",       "Answered from the store past its freshness lifetime.")                \
    X(MISS,        "miss",        "Fetched from the origin; a fill was begun.")                          \
    X(COLLAPSED,   "collapsed",   "Followed a fill that another request had begun.")                     \
    X(PASS,        "pass",        "Sent through to the origin and back; nothing was stored.")           \
    X(LOCAL,       "local",       "Answered by Larder itself (redirect, 417, OPTIONS *).")               \
    X(REFUSED,     "refused",     "The client's request was refused (malformed, too large, too many).") \
    X(FAULT,       "fault",       "The origin could not give a whole answer; an error was sent or the connection cut.") \
    X(ABORTED,     "aborted",     "The client left before it had its answer.")

enum outcome {
#define X(id, word, help) OUTCOME_##id,
    OUTCOMES(X)
#undef X
        OUTCOME_COUNT
};

/*    reason             word              Cache-Status fwd (RFC 9211 2.2), or ""  sentence */
#define REASONS(X)                                                                                        \
    X(FRESH,             "fresh",            "",         "a fresh object is stored")                       \
    X(VALIDATED,         "validated",        "stale",    "the stored object was stale; the origin answered 304") \
    X(REFRESHING,        "refreshing",       "",         "stale, within stale-while-revalidate: a refresh runs behind it") \
    X(PAUSED,            "refresh-failed",   "",         "stale; the last try to refresh it failed, and the pause after that is not over") \
    X(CLIENT_TAKES_STALE, "max-stale",       "",         "stale, and the client's max-stale takes it")     \
    X(ABSENT,            "absent",           "uri-miss", "nothing is stored under this key")               \
    X(OUTDATED,          "purged",           "stale",    "the stored object was made stale by a soft purge") \
    X(ONLY_IF_CACHED,    "only-if-cached",   "",         "the client wants nothing but a stored answer, and there is none") \
    X(OTHER_VARIANT,     "other-variant",    "vary-miss", "only other variants are stored (Vary)")         \
    X(EXPIRED,           "expired",          "stale",    "the stored object is past its freshness lifetime") \
    X(MUST_ASK,          "must-ask",         "stale",    "the stored object says no-cache")                \
    X(CLIENT_ASKED,      "client-asked",     "request",  "the client's Cache-Control asks for a newer answer") \
    X(NO_STORE,          "no-store",         "uri-miss", "the answer (or the honoured request) says no-store") \
    X(PRIVATE,           "private",          "uri-miss", "the answer says private")                        \
    X(AUTHORIZATION,     "authorization",    "uri-miss", "the request has Authorization, and the answer does not say that it may be shared") \
    X(SET_COOKIE,        "set-cookie",       "uri-miss", "the answer sets a cookie")                       \
    X(STATUS,            "status",           "uri-miss", "an answer with this status may not be stored")   \
    X(NO_LIFETIME,       "no-lifetime",      "uri-miss", "the answer does not say how long it is fresh, and has nothing to ask with") \
    X(VARY_ALL,          "vary-all",         "uri-miss", "the answer varies on everything (Vary: *)")      \
    X(PART,              "part",             "uri-miss", "the answer is a part that cannot be used again") \
    X(RULE_NO_STORE,     "rule-no-store",    "uri-miss", "a rule says not to store it")                    \
    X(OBJECT_LARGE,      "object-large",     "uri-miss", "the answer is above cache.max_object")           \
    X(METHOD,            "method",           "method",   "the method is not one that a cache answers")     \
    X(UNCACHEABLE,       "uncacheable",      "uri-miss", "the last answer for this key could not be shared") \
    X(BYPASS,            "bypass",           "bypass",   "a rule says not to look it up")                  \
    X(BODY,              "request-body",     "bypass",   "a GET with a body may have another answer")      \
    X(PRECONDITION,      "precondition",     "bypass",   "If-Match and If-Unmodified-Since are the origin's to judge") \
    X(RULE,              "rule",             "",         "a rule answers this: redirect, answer or deny")  \
    X(RULE_BROKEN,       "rule-broken",      "",         "a rule's edits gave no valid request")           \
    X(PURGE_ASKED,       "purge-asked",      "",         "a PURGE request")                                \
    X(QUEUE_FULL,        "collapse-max",     "uri-miss", "cache.collapse_max requests wait for this fill already") \
    X(FILE,              "file",             "bypass",   "sent from a file too large to store")            \
    X(ANSWERED,          "answered",         "",         "Larder answers this itself")                     \
    X(BAD_REQUEST,       "bad-request",      "",         "the request is malformed")                       \
    X(TOO_LARGE,         "too-large",        "",         "the request is above a limit")                   \
    X(TOO_SLOW,          "too-slow",         "",         "the request did not arrive in time")             \
    X(NO_SITE,           "no-site",          "",         "no site serves this host")                       \
    X(OVERLOADED,        "overloaded",       "",         "Larder is at a limit and sheds new work")        \
    X(CLIENT_LEFT,       "client-left",      "",         "the client closed its connection")               \
    X(CLIENT_STALLED,    "client-stalled",   "",         "the client took no bytes for clients.send_timeout") \
    X(ORIGIN_UNRESOLVED, "origin-unresolved", "uri-miss", "the origin's name has no address")              \
    X(ORIGIN_REFUSED,    "origin-refused",   "uri-miss", "the origin refused the connection")              \
    X(ORIGIN_CONNECT_SLOW, "origin-connect-slow", "uri-miss", "no connection within connect_timeout")      \
    X(ORIGIN_SLOW,       "origin-slow",      "uri-miss", "no head within first_byte_timeout")              \
    X(ORIGIN_STALLED,    "origin-stalled",   "uri-miss", "the body stopped for between_bytes_timeout")     \
    X(ORIGIN_CLOSED,     "origin-closed",    "uri-miss", "the origin closed before it sent a head")        \
    X(ORIGIN_CUT,        "origin-cut",       "uri-miss", "the origin closed in the middle of the body")    \
    X(ORIGIN_MALFORMED,  "origin-malformed", "uri-miss", "the origin's answer is not HTTP/1")              \
    X(ORIGIN_ERROR,      "origin-error",     "stale",    "the origin answered 500, 502, 503 or 504")       \
    X(ORIGIN_CHANGED,    "origin-changed",   "stale",    "the origin's file changed while it was sent in slices") \
    X(RANGE,             "range",            "uri-miss", "too large to be fetched whole for a part: the range goes to the origin as it is") \
    X(ORIGIN_BUSY,       "origin-busy",      "uri-miss", "no descriptor or memory left for a connection")  \
    X(FILL_SLOW,         "fill-slow",        "uri-miss", "another's fill took longer than cache.collapse_timeout")

enum reason {
#define X(id, word, fwd, text) REASON_##id,
    REASONS(X)
#undef X
        REASON_COUNT
};

const char *outcome_word(enum outcome o);
const char *outcome_help(enum outcome o);
const char *reason_word(enum reason r);
const char *reason_fwd(enum reason r);
const char *reason_text(enum reason r);
#endif
