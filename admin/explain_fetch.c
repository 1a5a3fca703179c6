/* admin/explain_fetch.c: the origin asked once, for explain's "fetch": a GET as a fill sends it, on
 * a connection of its own that is closed as soon as the head has come. See explain.h.
 *
 * Life     explain_fetch() -> the head, a failure, or the time is over: the request is answered.
 *          explain_fetches_free(): those under way are given up, unanswered.
 * Threads  the admin thread; at most a few at a time. evhttp reads nothing from a client that waits
 *          for its answer, so one that leaves is noticed when it is answered: evhttp_send_reply()
 *          copes with that.
 */
#include "admin/explain.h"

#include "base/clock.h"

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdlib.h>

enum { HEAD_MAX = 256 << 10 };

struct asking {
    struct explain *e;
    struct evhttp_request *req;
    struct explain_fetches *all;
    struct asking *next, **prev;
    struct bufferevent *b;
    struct event *timer;
    json_t *fetch; /* borrowed: the explanation's member */
    int64_t begun_ms;
    bool is_connected, is_refused;
};

struct explain_fetches {
    struct event_base *base;
    struct asking *first;
    unsigned count;
};

struct explain_fetches *explain_fetches_new(struct event_base *base)
{
    struct explain_fetches *all = xcalloc(1, sizeof *all);
    all->base = base;
    return all;
}

static void asking_free(struct asking *a)
{
    *a->prev = a->next;
    if (a->next != NULL)
        a->next->prev = a->prev;
    a->all->count--;
    bufferevent_free(a->b);
    event_free(a->timer);
    explain_free(&a->e);
    free(a);
}

void explain_fetches_free(struct explain_fetches **fetches)
{
    struct explain_fetches *all = *fetches;
    *fetches = NULL;
    while (all->first != NULL) {
        struct asking *a = all->first;
        if (evhttp_request_get_connection(a->req) == NULL)
            evhttp_request_free(a->req); /* its client has gone: it is ours alone */
        asking_free(a);
    }
    free(all);
}

/* ---- the end ----------------------------------------------------------------------------------
 */

static void finish(struct asking *a)
{
    admin_reply_json(a->req, 200, json_incref(a->e->out));
    asking_free(a);
}

static void fail(struct asking *a, enum reason why)
{
    explain_failed(a->e, a->fetch, why);
    finish(a);
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct asking *a = arg;
    fail(a, a->is_refused     ? REASON_ORIGIN_REFUSED
            : a->is_connected ? REASON_ORIGIN_SLOW
                              : REASON_ORIGIN_CONNECT_SLOW);
}

static void on_read(struct bufferevent *b, void *arg)
{
    struct asking *a = arg;
    struct evbuffer *in = bufferevent_get_input(b);
    size_t length = evbuffer_get_length(in);
    struct slice bytes = { (const char *)evbuffer_pullup(in, -1), length };
    const struct admin_hooks *hooks = &a->e->context->hooks;
    struct admin_response *r = arena_alloc(&a->e->arena, sizeof *r);
    switch (hooks->read_response(hooks->arg, bytes, r)) {
    case ADMIN_READ_MORE:
        if (length < HEAD_MAX)
            return;
        break;
    case ADMIN_READ_WHOLE:
        explain_judge(a->e, a->fetch, r, clock_mono_ms() - a->begun_ms);
        finish(a);
        return;
    case ADMIN_READ_BAD:
        json_object_set_new(a->fetch, "detail", explain_text(slice_of(r->why)));
        break;
    }
    fail(a, REASON_ORIGIN_MALFORMED);
}

static void on_event(struct bufferevent *b, short what, void *arg)
{
    (void)b;
    struct asking *a = arg;
    if ((what & BEV_EVENT_CONNECTED) != 0)
        a->is_connected = true;
    else
        fail(a, a->is_connected ? REASON_ORIGIN_CLOSED : REASON_ORIGIN_REFUSED);
}

/* ---- the request ------------------------------------------------------------------------------
 */

/* What a fill leaves out: hop-by-hop fields, conditions and ranges (it asks for the whole), and
 * what is written anew. */
static bool goes_on(const struct headers *h, const struct header *f)
{
    if (header_is_hop_by_hop(f->id) || headers_is_nominated(h, f->name))
        return false;
    switch ((enum header_id)f->id) {
    case HEADER_HOST:
    case HEADER_CONTENT_LENGTH:
    case HEADER_EXPECT:
    case HEADER_X_FORWARDED_FOR:
    case HEADER_FORWARDED:
    case HEADER_RANGE:
    case HEADER_IF_RANGE:
    case HEADER_IF_NONE_MATCH:
    case HEADER_IF_MODIFIED_SINCE: return false;
    default: return true;
    }
}

static void put(struct evbuffer *out, struct slice s)
{
    evbuffer_add(out, s.ptr, s.len);
}

static void put_field(struct evbuffer *out, struct slice name, struct slice value)
{
    put(out, name);
    put(out, SLICE(": "));
    put(out, value);
    put(out, SLICE("\r\n"));
}

static struct slice authority_of(struct explain *e, const struct admin_target *t)
{
    const struct admin_request *r = &e->request;
    struct slice host = { r->host, r->host_length };
    if (e->plan.origin->host_header != NULL)
        return slice_of(e->plan.origin->host_header);
    if (host.len == 0)
        return slice_of(t->host);
    return r->port == 0 ? host : arena_printf(&e->arena, SLICE_FMT ":%u", SLICE_ARG(host), r->port);
}

static void write_request(struct explain *e, const struct admin_target *t, struct evbuffer *out)
{
    const struct headers *h = &e->request.headers;
    put(out, SLICE("GET "));
    put(out, e->plan.path);
    if (e->plan.query.ptr != NULL) {
        put(out, SLICE("?"));
        put(out, e->plan.query);
    }
    put(out, SLICE(" HTTP/1.1\r\n"));
    put_field(out, SLICE("Host"), authority_of(e, t));
    for (unsigned i = 0; i < h->count; i++)
        if (goes_on(h, &h->at[i]))
            put_field(out, h->at[i].name, h->at[i].value);
    char text[PEER_TEXT];
    if (e->question.has_client)
        put_field(out, SLICE("X-Forwarded-For"),
                  (struct slice){ text, peer_text(&e->client, text) });
    if (!headers_has(h, HEADER_X_FORWARDED_PROTO))
        put_field(out, SLICE("X-Forwarded-Proto"), e->scheme);
    if (e->plan.origin->sends_via)
        put_field(out, SLICE("Via"), SLICE("1.1 larder"));
    put(out, SLICE("Connection: close\r\n\r\n"));
}

/* ---- the beginning ----------------------------------------------------------------------------
 */

static void not_asked(struct explain *e, const char *why)
{
    json_object_set_new(e->out, "fetch", json_pack("{s:b,s:s}", "asked", 0, "why", why));
}

/* NULL, or why nothing can be asked. */
static const char *obstacle(const struct explain *e)
{
    if (e->plan.origin == NULL || e->verdict.outcome == OUTCOME_LOCAL ||
        e->verdict.outcome == OUTCOME_REFUSED)
        return "no origin is asked for this";
    if (!e->request.is_get && !e->request.is_head)
        return "only GET and HEAD are tried: another method might change something";
    if (e->plan.origin->kind == ORIGIN_FILES)
        return "the origin is a directory: there is no answer to explain; a file is kept for "
               "check_interval and then looked at";
    if (e->context->fetches->count >= EXPLAIN_FETCHES_MAX)
        return "several origins are being asked already; try again";
    return NULL;
}

static void begin(struct asking *a, const struct admin_target *t)
{
    struct timeval most = { .tv_sec = EXPLAIN_FETCH_MS / 1000 };
    a->b =
        bufferevent_socket_new(a->all->base, -1, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    a->timer = event_new(a->all->base, -1, 0, on_time, a);
    CHECK(a->b != NULL && a->timer != NULL && event_add(a->timer, &most) == 0);
    bufferevent_setcb(a->b, on_read, NULL, on_event, a);
    bufferevent_setwatermark(a->b, EV_READ, 0, HEAD_MAX);
    write_request(a->e, t, bufferevent_get_output(a->b));
    bufferevent_enable(a->b, EV_READ | EV_WRITE);
    if (bufferevent_socket_connect(a->b, (const struct sockaddr *)&t->address, (int)t->length) == 0)
        return;
    a->is_refused = true; /* told from the loop: the caller still holds on to what it gave */
    event_active(a->timer, EV_TIMEOUT, 0);
}

bool explain_fetch(struct explain *e, struct evhttp_request *req)
{
    struct admin_target t;
    const struct admin_hooks *hooks = &e->context->hooks;
    const char *why = obstacle(e);
    if (why != NULL) {
        not_asked(e, why);
        return false;
    }
    json_t *fetch = json_object();
    json_object_set_new(e->out, "fetch", fetch);
    if (!hooks->choose_server(hooks->arg, e->plan.origin, &t)) {
        json_object_set_new(fetch, "asked", json_false());
        explain_failed(e, fetch, REASON_ORIGIN_UNRESOLVED);
        return false;
    }
    json_object_set_new(fetch, "asked", json_true());
    json_object_set_new(fetch, "server", explain_text(slice_of(t.name)));
    struct explain_fetches *all = e->context->fetches;
    struct asking *a = xcalloc(1, sizeof *a);
    *a = (struct asking){ .e = e,
                          .req = req,
                          .all = all,
                          .next = all->first,
                          .prev = &all->first,
                          .fetch = fetch,
                          .begun_ms = clock_mono_ms() };
    if (all->first != NULL)
        all->first->prev = &a->next;
    all->first = a;
    all->count++;
    begin(a, &t);
    return true;
}
