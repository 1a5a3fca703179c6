/* cache/storable.c: may this response be stored (RFC 9111 3, 3.5); see decide.h. Pure; any thread.
 */
#include "cache/decide.h"

const char *storable_word(enum storable s)
{
    return s == STORABLE_YES ? "yes" : reason_word(storable_reason(s));
}

const char *storable_text(enum storable s)
{
    switch (s) {
    case STORABLE_YES: return "the answer may be stored";
    case STORABLE_NO_STORE: return "no-store was said";
    case STORABLE_PRIVATE: return "the answer is private: meant for one user";
    case STORABLE_AUTHORIZATION:
        return "the request had Authorization, and the answer says none of public, "
               "must-revalidate, s-maxage";
    case STORABLE_SET_COOKIE: return "the answer sets a cookie";
    case STORABLE_STATUS: return "answers with this status are not stored";
    case STORABLE_NO_LIFETIME:
        return "the answer would never be fresh, and has no validator to ask the origin with";
    case STORABLE_VARY_ALL: return "the answer varies on everything (Vary: *)";
    case STORABLE_METHOD: return "only answers to GET are stored";
    case STORABLE_PART:
        return "a part of an answer (206) without a Content-Range and a strong validator to use it "
               "by";
    case STORABLE_RULE: return "a rule says not to store it";
    case STORABLE_TOO_LARGE: return "the answer is larger than cache.max_object";
    case STORABLE_COUNT: break;
    }
    UNREACHABLE();
}

enum reason storable_reason(enum storable s)
{
    switch (s) {
    case STORABLE_YES: return REASON_ABSENT;
    case STORABLE_NO_STORE: return REASON_NO_STORE;
    case STORABLE_PRIVATE: return REASON_PRIVATE;
    case STORABLE_AUTHORIZATION: return REASON_AUTHORIZATION;
    case STORABLE_SET_COOKIE: return REASON_SET_COOKIE;
    case STORABLE_STATUS: return REASON_STATUS;
    case STORABLE_NO_LIFETIME: return REASON_NO_LIFETIME;
    case STORABLE_VARY_ALL: return REASON_VARY_ALL;
    case STORABLE_METHOD: return REASON_METHOD;
    case STORABLE_PART: return REASON_PART;
    case STORABLE_RULE: return REASON_RULE_NO_STORE;
    case STORABLE_TOO_LARGE: return REASON_OBJECT_LARGE;
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
    case 304: /* understood, but only as the answer to a condition of our own */
    case 402: /* reserved */
    case 418: return false;
    case 308:
    case 421:
    case 422:
    case 426:
    case 451: return true;
    default: /* RFC 9110 15.3 to 15.6 */
        return (status >= 200 && status <= 206) || (status >= 300 && status <= 303) ||
               status == 305 || status == 307 || (status >= 400 && status <= 417) ||
               (status >= 500 && status <= 505);
    }
}

static bool is_status_stored(uint16_t status)
{
    if (status < 200 || status > 599)
        return false; /* interim, or none of HTTP's classes (RFC 9110 15) */
    switch (status) {
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

/* A private="set-cookie" or a rule takes the cookie out of what is stored; the operator may
 * also have said that cookies are shared, and then what the origin itself gave a lifetime is. */
static bool sets_cookie(const struct storable_facts *f)
{
    if (!headers_has(f->response, HEADER_SET_COOKIE) || f->ignores_set_cookie)
        return false;
    enum lifetime_source source = f->freshness->source;
    bool is_explicit =
        source == LIFETIME_S_MAXAGE || source == LIFETIME_MAX_AGE || source == LIFETIME_EXPIRES;
    return !(f->shares_set_cookie && is_explicit);
}

/* RFC 9111 3.3: a part may be stored. One without a strong validator could be joined with no other
 * (3.4), and nobody could tell whether it is still part of what is there now. */
static bool is_part_usable(const struct storable_facts *f)
{
    struct content_range range;
    uint64_t length;
    if (!f->wants_part || f->validators == NULL || !cache_content_range_read(f->response, &range))
        return false;
    if (!cache_validators_strongly_equal(f->validators, f->validators))
        return false;
    const struct header *said = headers_find(f->response, HEADER_CONTENT_LENGTH);
    return said == NULL ||
           (slice_to_u64(said->value, &length) && length == range.last - range.first + 1);
}

/* The last condition of RFC 9111 3. The operator's default and rules are an arrangement outside of
 * the protocol. */
static bool is_allowed_by_lifetime(const struct storable_facts *f)
{
    switch (f->freshness->source) {
    case LIFETIME_S_MAXAGE:
    case LIFETIME_MAX_AGE:
    case LIFETIME_EXPIRES:
    case LIFETIME_DEFAULT:
    case LIFETIME_RULE: return true;
    case LIFETIME_HEURISTIC:
    case LIFETIME_NONE: break;
    }
    return f->response_control->is_public || cache_status_is_heuristic(f->status);
}

/* Worth keeping: it will be fresh for a while, or the origin can be asked whether it still holds,
 * or it says that it may be given stale. That it could be given when the origin is out of reach is
 * not enough: what is stale on arrival would then fill the memory. */
static bool is_useful(const struct storable_facts *f)
{
    const struct freshness *its = f->freshness;
    if (!its->must_ask && its->lifetime_s > its->initial_age_s)
        return true;
    if (headers_has(f->response, HEADER_ETAG) || headers_has(f->response, HEADER_LAST_MODIFIED))
        return true;
    return cache_may_refresh_behind(its, its->initial_age_s) ||
           cache_may_serve_broken(its, its->initial_age_s, STALE_ERROR, NULL);
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
    if (headers_has(f->request, HEADER_AUTHORIZATION) && !f->ignores_authorization &&
        !may_share_authorized(f->response_control))
        return STORABLE_AUTHORIZATION;
    if (sets_cookie(f))
        return STORABLE_SET_COOKIE;
    if (!f->ignores_vary && cache_vary_is_all(f->response))
        return STORABLE_VARY_ALL;
    if (f->status == 206 && !is_part_usable(f))
        return STORABLE_PART;
    if (!is_allowed_by_lifetime(f) || !is_useful(f))
        return STORABLE_NO_LIFETIME;
    return STORABLE_YES;
}
