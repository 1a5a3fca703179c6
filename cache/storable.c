/* cache/storable.c: may this response be stored (RFC 9111 3, 3.5); see decide.h. Pure; any thread.
 */
#include "cache/decide.h"

const char *storable_word(enum storable s)
{
    switch (s) {
    case STORABLE_YES: return "yes";
    case STORABLE_NO_STORE: return "no-store";
    case STORABLE_PRIVATE: return "private";
    case STORABLE_AUTHORIZATION: return "authorization";
    case STORABLE_SET_COOKIE: return "set-cookie";
    case STORABLE_STATUS: return "status";
    case STORABLE_NO_LIFETIME: return "no-lifetime";
    case STORABLE_VARY_ALL: return "vary-all";
    case STORABLE_METHOD: return "method";
    case STORABLE_PART: return "part";
    case STORABLE_RULE: return "rule";
    case STORABLE_TOO_LARGE: return "too-large";
    case STORABLE_COUNT: break;
    }
    UNREACHABLE();
}

bool cache_status_is_heuristic(uint16_t status)
{
    switch (status) { /* RFC 9110 15.1; 451: RFC 7725 3 */
    case 200:
    case 203:
    case 204:
    case 206:
    case 300:
    case 301:
    case 308:
    case 404:
    case 405:
    case 410:
    case 414:
    case 451:
    case 501: return true;
    default: return false;
    }
}

bool cache_status_is_understood(uint16_t status)
{
    switch (status) {
    case 206: /* understood, but not stored here */
    case 304:
    case 402: /* reserved */
    case 418: return false;
    case 308:
    case 421:
    case 422:
    case 426:
    case 451: return true;
    default: /* RFC 9110 15.3 to 15.6 */
        return (status >= 200 && status <= 205) || (status >= 300 && status <= 303) ||
               status == 305 || status == 307 || (status >= 400 && status <= 417) ||
               (status >= 500 && status <= 505);
    }
}

static bool is_status_stored(uint16_t status)
{
    if (status < 200 || status > 599)
        return false; /* interim, or none of HTTP's classes (RFC 9110 15) */
    switch (status) {
    case 206: /* a part is no answer to another request (RFC 9111 3.3) */
    case 304: return false;
    case 412: /* these judge fields of the one request that are not in the key: preconditions,
                 Range, Expect */
    case 416:
    case 417: return false;
    case 428: /* RFC 6585 3 to 6: "MUST NOT be stored by a cache" */
    case 429:
    case 431:
    case 511: return false;
    default: return true;
    }
}

/* RFC 9111 5.2.2.3: must-understand stands in for no-store where the status is understood. */
static bool forbids_store(const struct storable_facts *f)
{
    if (f->request_control != NULL && f->request_control->no_store)
        return true;
    return f->response_control->no_store && !f->response_control->must_understand;
}

static bool is_status_refused(const struct storable_facts *f)
{
    if (!is_status_stored(f->status))
        return true;
    return f->response_control->must_understand && !cache_status_is_understood(f->status);
}

/* RFC 9111 3.5: said outright, and said well: a directive found in something malformed restricts,
 * but permits nothing. */
static bool may_share_authorized(const struct cache_control *c)
{
    if (c->has_malformed)
        return false;
    return c->is_public || c->must_revalidate || c->s_maxage_s != CONTROL_NONE;
}

static bool has_explicit_lifetime(const struct storable_facts *f)
{
    const struct cache_control *c = f->response_control;
    return c->is_public || c->max_age_s != CONTROL_NONE || c->s_maxage_s != CONTROL_NONE ||
           headers_has(f->response, HEADER_EXPIRES);
}

/* The last condition of RFC 9111 3. The operator's default is an arrangement outside of the
 * protocol. */
static bool is_allowed_by_lifetime(const struct storable_facts *f)
{
    return has_explicit_lifetime(f) || f->freshness->source == LIFETIME_DEFAULT ||
           cache_status_is_heuristic(f->status);
}

/* Worth keeping: it will be fresh for a while, or the origin can be asked whether it still holds.
 */
static bool is_useful(const struct storable_facts *f)
{
    if (!f->freshness->must_ask && f->freshness->lifetime_s > f->freshness->initial_age_s)
        return true;
    return headers_has(f->response, HEADER_ETAG) || headers_has(f->response, HEADER_LAST_MODIFIED);
}

enum storable cache_is_storable(const struct storable_facts *f)
{
    if (!f->is_get)
        return STORABLE_METHOD;
    if (is_status_refused(f))
        return STORABLE_STATUS;
    if (forbids_store(f))
        return STORABLE_NO_STORE;
    if (f->response_control->is_private)
        return STORABLE_PRIVATE;
    if (headers_has(f->request, HEADER_AUTHORIZATION) && !may_share_authorized(f->response_control))
        return STORABLE_AUTHORIZATION;
    if (headers_has(f->response, HEADER_SET_COOKIE))
        return STORABLE_SET_COOKIE;
    if (cache_vary_is_all(f->response))
        return STORABLE_VARY_ALL;
    if (!is_allowed_by_lifetime(f) || !is_useful(f))
        return STORABLE_NO_LIFETIME;
    return STORABLE_YES;
}
