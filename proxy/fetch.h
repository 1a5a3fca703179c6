/* proxy/fetch.h: one request to an origin and its answer, for an exchange (a pass) or for a fill (which outlives its clients).
 *
 * Life     fetch_pass() or fetch_fill() -> events drive it
 *            pass: the exchange pulls: fetch_advance() until the head is there, then fetch_pull(); fetch_free() at the end
 *            fill: it feeds the fill by itself and frees itself when that ends or nobody wants it any more; when the head says "not
 *                  shareable" and the leader is still there, the leader's exchange takes it over as a pass (x->fetch).
 * Threads  its worker's.
 */
#ifndef PROXY_FETCH_H
#define PROXY_FETCH_H
#include "proxy/exchange.h"

struct fetch;
struct origin_conn;

/* Sends the exchange's request (its body too, as it comes) and lets the exchange pull the answer.
 * Sets x->fetch. */
void fetch_pass(struct exchange *x);
/* Begins the fetch for a fill that `x` leads: GET, without the client's range and conditions, with
 * the stale object's validators. x->fetch is set, but belongs to the fill until that is released.
 */
void fetch_fill(struct exchange *x, struct cache_fill *fill);
/* The fetch of a slice of what `record` tells of, for a fill under the slice's key that `x` leads; `ahead`: that nobody
 * waits for yet. */
void fetch_slice(struct exchange *x, struct cache_fill *fill, struct cache_object *record,
                 const struct byte_range *range);
void fetch_slice_ahead(struct exchange *x, struct cache_fill *fill, struct cache_object *record,
                       const struct byte_range *range);
/* The same for a refresh that nobody waits for: the fill is the fetch's alone. `x` only lends its request. */
void fetch_behind(struct exchange *x, struct cache_fill *fill);
/* The head that answers a HEAD is about x->stale, or shows that this has changed (RFC 9111 4.3.5): freshens or drops it. */
void fetch_freshen(struct exchange *x);
/* The leader's client left or went its own way: the fill goes on if anyone follows or little is
 * left. */
void fetch_leader_left(struct fetch **f);

enum fetch_progress { FETCH_WAITS, FETCH_HAS_HEAD, FETCH_FAULTED };
/* Goes on until the final head is there; interim ones (1xx) are queued for the client. */
enum fetch_progress fetch_advance(struct fetch *f);
const struct h1_response *
fetch_response(const struct fetch *f); /* slices live as long as the fetch */
enum fault fetch_fault(const struct fetch *f);
/* Whether it asked with the stored object's validators: its 304 is then no answer for the client.
 */
bool fetch_is_conditional(const struct fetch *f);
/* Interim responses to be sent before the answer; empty when there are none. They are the caller's
 * after this: valid until the next call. */
struct slice fetch_take_interim(struct fetch *f);

enum fetch_pulled { PULLED_WAIT, PULLED_DATA, PULLED_END, PULLED_FAULT };
/* A piece of the answer's body, decoded, in the worker's scratch: to be used or copied before
 * anything else is pulled with `may_read`. With FETCH_BUFFERED only what was read already is handed
 * out. */
enum fetch_read { FETCH_READ, FETCH_BUFFERED };
enum fetch_pulled fetch_pull(struct fetch *f, enum fetch_read how, struct slice *piece);
/* Decoded bytes that were read but not pulled must outlive this turn. */
void fetch_settle(struct fetch *f);
void fetch_free(struct fetch **f);
/* The worker ends: whatever is under way fails. */
void fetch_end_all(struct worker *w);
/* While the answer comes: the request's body may have come, or the origin may take more of it. */
void fetch_client_readable(struct fetch *f);
/* Whether it is the client whom the request's body waits for, not the origin. */
bool fetch_takes_body(const struct fetch *f);
#endif
