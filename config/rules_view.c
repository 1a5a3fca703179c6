/* config/rules_view.c: a request as rules look at it: what many of them ask for is worked out once,
 * and only when the first one asks. Lives on the stack of one walk; see rules_internal.h. Any
 * thread.
 */
#include "config/rules_internal.h"

#include <stdlib.h>

/* ---- percent-encoded names and values of a query -----------------------------------------------
 */

static int hex_of(char c)
{
    char low = ascii_lower(c);
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

static bool is_encoded(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '%' || text.ptr[i] == '+')
            return true;
    return false;
}

size_t rules_decode(struct slice text, char *out)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%' && i + 2 < text.len && hex_of(text.ptr[i + 1]) >= 0 &&
            hex_of(text.ptr[i + 2]) >= 0) {
            c = (char)(hex_of(text.ptr[i + 1]) << 4 | hex_of(text.ptr[i + 2]));
            i += 2;
        } else if (c == '+')
            c = ' ';
        out[len++] = c;
    }
    return len;
}

void rule_decoded_init(struct rule_decoded *d, struct slice text)
{
    d->text = text;
    d->grown = NULL;
    if (!is_encoded(text))
        return;
    char *to = d->room;
    if (text.len > sizeof d->room) /* bounded by clients.max_target */
        to = d->grown = xmalloc(text.len);
    d->text = (struct slice){ to, rules_decode(text, to) };
}

void rule_decoded_fini(struct rule_decoded *d)
{
    free(d->grown);
    d->grown = NULL;
}

/* ---- lists ------------------------------------------------------------------------------------
 */

bool rules_next_parameter(struct slice *rest, struct slice *parameter)
{
    if (rest->ptr == NULL)
        return false;
    size_t len = slice_find(*rest, '&');
    *parameter = (struct slice){ rest->ptr, len };
    if (len == rest->len)
        *rest = SLICE_NONE;
    else
        *rest = (struct slice){ rest->ptr + len + 1, rest->len - len - 1 };
    return true;
}

bool rules_next_cookie(struct slice *rest, struct rule_cookie *cookie)
{
    if (rest->ptr == NULL)
        return false;
    size_t len = slice_find(*rest, ';');
    cookie->whole = (struct slice){ rest->ptr, len };
    struct slice pair = slice_trim(cookie->whole);
    size_t equals = slice_find(pair, '=');
    cookie->name = slice_trim((struct slice){ pair.ptr, equals });
    cookie->value =
        equals == pair.len
            ? SLICE_NONE
            : slice_trim((struct slice){ pair.ptr + equals + 1, pair.len - equals - 1 });
    if (len == rest->len)
        *rest = SLICE_NONE;
    else
        *rest = (struct slice){ rest->ptr + len + 1, rest->len - len - 1 };
    return true;
}

/* ---- entries ----------------------------------------------------------------------------------
 */

uint64_t rule_first_bytes(struct slice text)
{
    uint64_t word = 0;
    if (text.len >= sizeof word)
        memcpy(&word, text.ptr, sizeof word);
    else if (text.len > 0)
        memcpy(&word, text.ptr, text.len);
    return word;
}

/* The one place where a short text ends: its last bytes are the word's last. */
static uint64_t last_bytes(struct slice text)
{
    uint64_t word = 0;
    size_t len = text.len < sizeof word ? text.len : sizeof word;
    if (len > 0)
        memcpy((char *)&word + sizeof word - len, text.ptr + text.len - len, len);
    return word;
}

static bool next_parameter(struct view_rest *rest, struct view_entry *entry)
{
    struct slice parameter;
    do
        if (!rules_next_parameter(&rest->text, &parameter))
            return false;
    while (parameter.len == 0);
    size_t equals = slice_find(parameter, '=');
    size_t value = equals < parameter.len ? equals + 1 : equals;
    rule_decoded_init(&rest->name, (struct slice){ parameter.ptr, equals });
    entry->name = rest->name.text;
    entry->value = (struct slice){ parameter.ptr + value, parameter.len - value };
    return true;
}

static bool next_cookie(struct view_rest *rest, struct view_entry *entry)
{
    struct rule_cookie cookie;
    rest->name.grown = NULL;
    for (;;) {
        if (rules_next_cookie(&rest->text, &cookie)) {
            if (cookie.name.len == 0)
                continue;
            entry->name = cookie.name;
            entry->value = cookie.value;
            return true;
        }
        if (rest->field == NULL)
            return false;
        rest->text = rest->field->value; /* the next Cookie field */
        rest->field = headers_next(rest->fields, rest->field);
    }
}

bool rule_view_next(struct view_rest *rest, struct view_entry *entry)
{
    bool has_next = rest->fields == NULL ? next_parameter(rest, entry) : next_cookie(rest, entry);
    if (has_next)
        entry->first = rule_first_bytes(entry->name);
    return has_next;
}

/* As many as there is room for; `rest` is then where the others begin. */
static void read_entries(struct view_entries *e)
{
    e->is_read = e->has_more = true;
    while (e->count < VIEW_ENTRIES) {
        struct slice text = e->rest.text;
        const struct header *field = e->rest.field;
        struct view_entry *entry = &e->at[e->count];
        if (!rule_view_next(&e->rest, entry)) {
            e->has_more = false;
            return;
        }
        size_t room = sizeof e->room - e->room_used;
        bool is_decoded = entry->name.ptr == e->rest.name.room || e->rest.name.grown != NULL;
        if (is_decoded && entry->name.len > room) {
            rule_decoded_fini(&e->rest.name);
            e->rest.text = text;
            e->rest.field = field;
            return;
        }
        if (is_decoded) {
            char *to = e->room + e->room_used;
            if (entry->name.len > 0)
                memcpy(to, entry->name.ptr, entry->name.len);
            entry->name.ptr = to;
            e->room_used += entry->name.len;
            rule_decoded_fini(&e->rest.name);
        }
        e->count++;
    }
}

struct view_entries *rule_view_query(struct rule_view *v)
{
    if (v->query.is_read)
        return &v->query;
    v->query.rest.text = v->request->query;
    v->query.rest.fields = NULL;
    read_entries(&v->query);
    return &v->query;
}

struct view_entries *rule_view_cookies(struct rule_view *v)
{
    if (v->cookies.is_read)
        return &v->cookies;
    v->cookies.rest.text = SLICE_NONE;
    v->cookies.rest.fields = v->request->headers;
    v->cookies.rest.field = headers_find(v->request->headers, HEADER_COOKIE);
    read_entries(&v->cookies);
    return &v->cookies;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static void forget(struct view_entries *e)
{
    e->is_read = false;
    e->count = 0;
    e->room_used = 0;
}

void rule_view_init(struct rule_view *v, const struct rule_request *request)
{
    v->request = request;
    v->has_broken = false;
    rule_path_init(&v->path, request->path);
    v->first = rule_first_bytes(v->path.text);
    v->last = last_bytes(v->path.text);
    v->bits = rule_method_bit(request->method) |
              (slice_equal(request->scheme, SLICE("https")) ? GATE_HTTPS : GATE_HTTP) |
              (request->query.len == 0 ? GATE_NO_QUERY : 0) |
              (headers_has(request->headers, HEADER_COOKIE) ? 0 : GATE_NO_COOKIE) |
              (request->client == NULL ? GATE_NO_CLIENT : 0);
    forget(&v->query);
    forget(&v->cookies);
}
