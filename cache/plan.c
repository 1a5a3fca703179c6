/* cache/plan.c: what a request asks for, before look-up; see policy.h. Pure but for the arena; any
 * thread; on the hit path: without rules it is a few comparisons and the writing of the key.
 *
 * The order: the rules speak about the request as it came; their edits then make the request that
 * the origin, the key and Vary see; what that one is decides whether the store is asked. A request
 * that passes has a key, too: what it changes is made invalid by it (RFC 9111 4.4).
 */
#include "cache/policy.h"

#include "config/config.h"

enum { QUERY_ROOM = 1024, EXTRA_ROOM = 512 }; /* on the stack; longer ones are in the arena */

/* ---- the key
 * ------------------------------------------------------------------------------------- */

struct key_room {
    char *buffer;
    size_t capacity;
    struct arena *arena;
};

static struct slice write_key(const struct key_parts *parts, const struct key_room *room)
{
    size_t length = cache_key_write(parts, room->buffer, room->capacity);
    if (likely(length > 0))
        return (struct slice){ room->buffer, length };
    enum { MARKS = 16 };
    size_t most = parts->site.len + parts->host.len + parts->path.len + parts->query.len +
                  parts->extra.len + MARKS;
    if (most < room->capacity) /* it is not the room that was missing */
        return SLICE_NONE;
    char *to = arena_alloc(room->arena, most);
    length = cache_key_write(parts, to, most);
    return length == 0 ? SLICE_NONE : (struct slice){ to, length };
}

static struct slice key_query(const struct plan *p, char room[QUERY_ROOM], struct arena *a,
                              rules_dropped_f *dropped, void *arg)
{
    if (p->query.ptr == NULL)
        return SLICE_NONE;
    char *to = p->query.len <= QUERY_ROOM ? room : arena_alloc(a, p->query.len);
    bool has_query;
    size_t length = rules_key_query(&p->effects, p->query, to, &has_query, dropped, arg);
    return has_query ? (struct slice){ to, length } : SLICE_NONE;
}

static struct slice key_extra(const struct plan_request *in, const struct plan *p,
                              char room[EXTRA_ROOM], struct arena *a)
{
    size_t length = rules_key_extra(&p->effects, &in->rule, room, EXTRA_ROOM);
    if (length <= EXTRA_ROOM)
        return (struct slice){ room, length };
    char *to = arena_alloc(a, length);
    return (struct slice){ to, rules_key_extra(&p->effects, &in->rule, to, length) };
}

static void edit_and_write_key(const struct plan_request *in, struct key_parts *parts,
                               const struct key_room *room, struct plan *out,
                               rules_dropped_f *dropped, void *arg)
{
    char query[QUERY_ROOM], extra[EXTRA_ROOM];
    parts->query = key_query(out, query, room->arena, dropped, arg);
    parts->extra = key_extra(in, out, extra, room->arena);
    parts->ignores_case = rules_key_ignores_case(&out->effects);
    out->key = write_key(parts, room);
}

/* ---- the way
 * ------------------------------------------------------------------------------------- */

static void go(struct plan *p, enum plan_way way, enum reason why)
{
    p->way = way;
    p->why = why;
}

/* What the request itself says; the headers are those after the edits. */
static void judge_request(const struct plan_request *in, struct plan *p)
{
    if (!in->is_get && !in->is_head)
        go(p, PLAN_PASS, REASON_METHOD);
    else if (in->has_body) /* RFC 9110 9.3.1: the answer may depend on it, and the key does not */
        go(p, PLAN_PASS, REASON_BODY);
    else if (cache_request_has_precondition(in->headers)) /* RFC 9110 13.1.1: of the current one */
        go(p, PLAN_PASS, REASON_PRECONDITION);
    else
        go(p, PLAN_LOOKUP, REASON_ABSENT);
}

/* False: the way has ended here. */
static bool apply_rules(const struct plan_request *in, struct arena *a, struct plan *out)
{
    struct rule_effects *e = &out->effects;
    rules_on_request(in->site, &in->rule, e);
    if (e->origin != NULL)
        out->origin = e->origin;
    if (e->end != RULE_GO_ON) {
        go(out, PLAN_LOCAL, REASON_RULE);
        return false;
    }
    if ((e->rewrites && !rules_rewrite(e, &in->rule, a, &out->path, &out->query)) ||
        ((e->edits_request || e->edits_cookies) &&
         !rules_edit_request(e, &in->rule, in->headers, a))) {
        go(out, PLAN_BROKEN, REASON_RULE_BROKEN);
        return false;
    }
    return true;
}

void cache_plan_traced(const struct plan_request *in, char *buffer, size_t capacity,
                       struct arena *a, struct plan *out, rules_dropped_f *dropped, void *arg)
{
    bool has_rules = rules_has_any(in->site);
    out->origin = in->site->origin;
    out->path = in->rule.path;
    out->query = in->rule.query;
    out->key = SLICE_NONE;
    if (has_rules && !apply_rules(in, a, out))
        return;
    struct key_parts parts = { .site = slice_of(in->site->name),
                               .host = in->rule.host,
                               .port = in->port,
                               .path = out->path,
                               .query = out->query };
    const struct key_room room = { buffer, capacity, a };
    judge_request(in, out);
    if (has_rules && out->way == PLAN_LOOKUP && out->effects.bypassed_by != NULL)
        go(out, PLAN_PASS, REASON_BYPASS);
    if (has_rules && out->effects.edits_key)
        edit_and_write_key(in, &parts, &room, out, dropped, arg);
    else
        out->key = write_key(&parts, &room);
    if (unlikely(out->key.len == 0)) /* no path: whoever made it, nothing can be asked for */
        go(out, PLAN_BROKEN, REASON_RULE_BROKEN);
}

void cache_plan(const struct plan_request *in, char *buffer, size_t capacity, struct arena *a,
                struct plan *out)
{
    cache_plan_traced(in, buffer, capacity, a, out, NULL, NULL);
}
