/* proxy/h1_framing.c: what the fields of a head say about body and connection (RFC 9112 6 and 9);
 * see h1.h. Pure.
 *
 * Everything that two readers could take differently is refused here: it is where requests are
 * smuggled.
 */
#include "proxy/h1_internal.h"

/* A comma list whose elements hold no quoted strings, element by element, the empty ones too. */
struct list {
    struct slice rest;
    bool has_more;
};

static inline struct list list_of(struct slice value)
{
    return (struct list){ value, true };
}

static inline bool list_next(struct list *l, struct slice *element)
{
    if (!l->has_more)
        return false;
    size_t comma = slice_find(l->rest, ',');
    *element = slice_trim((struct slice){ l->rest.ptr, comma });
    l->has_more = comma < l->rest.len;
    if (l->has_more)
        l->rest = slice_from(l->rest.ptr + comma + 1, l->rest.ptr + l->rest.len);
    return true;
}

/* What Connection says, over all its fields. */
struct connection {
    bool close, keep_alive, upgrade;
};

static struct connection read_connection(const struct headers *h)
{
    struct connection c = { .close = false };
    for (const struct header *f = headers_find(h, HEADER_CONNECTION); f != NULL;
         f = headers_next(h, f)) {
        struct list l = list_of(f->value);
        struct slice option;
        while (list_next(&l, &option)) {
            switch (option.len) {
            case 5: c.close = c.close || slice_equal_nocase(option, SLICE("close")); break;
            case 7: c.upgrade = c.upgrade || slice_equal_nocase(option, SLICE("upgrade")); break;
            case 10:
                c.keep_alive = c.keep_alive || slice_equal_nocase(option, SLICE("keep-alive"));
                break;
            }
        }
    }
    return c;
}

/* RFC 9112 9.3: close wins, 1.1 stays open, 1.0 stays open when it says so. */
static inline bool stays_open(struct connection c, unsigned minor)
{
    return !c.close && (minor >= 1 || c.keep_alive);
}

/* A length above INT64_MAX is refused as an overflow: it would be one to any peer that counts in
 * off_t, and two that disagree on a length disagree on where the next message begins. */
static bool read_length(struct slice value, uint64_t *length)
{
    return slice_to_u64(value, length) && *length <= INT64_MAX;
}

/* How a Transfer-Encoding that is not plainly "chunked" is wrong. chunked twice, or before another
 * coding, or with parameters, or an empty element says nothing sure about the body's end:
 * CHUNKED_PLACE. Codings that we merely do not know are CODING (RFC 9112 6.1). */
static enum h1_cause coding_fault(const struct headers *h)
{
    bool seen_chunked = false, seen_other = false;
    for (const struct header *f = headers_find(h, HEADER_TRANSFER_ENCODING); f != NULL;
         f = headers_next(h, f)) {
        struct list l = list_of(f->value);
        struct slice coding;
        while (list_next(&l, &coding)) {
            struct slice name = { coding.ptr, slice_find(coding, ';') };
            const char *name_end = name.ptr + name.len;
            if (seen_chunked || name.len == 0 ||
                skip_class(name.ptr, name_end, BYTE_TOKEN) != name_end)
                return H1_CHUNKED_PLACE;
            seen_chunked = slice_equal_nocase(name, SLICE("chunked"));
            if (seen_chunked && name.len < coding.len)
                return H1_CHUNKED_PLACE;
            seen_other = seen_other || !seen_chunked;
        }
    }
    return seen_other ? H1_CODING : H1_OK;
}

/* Transfer-Encoding is there. */
static enum h1_cause check_coding(const struct headers *h, unsigned minor)
{
    if (headers_has(h,
                    HEADER_CONTENT_LENGTH)) /* RFC 9112 6.3 (3): ought to be handled as an error */
        return H1_LENGTH_AND_CHUNKED;
    if (minor == 0) /* RFC 9112 6.1: the framing is faulty */
        return H1_CHUNKED_PLACE;
    return coding_fault(h);
}

/* RFC 9112 3.2: exactly one from 1.1, at most one from 1.0, well-formed, and empty only where the
 * target has no host to name. RFC 9112 3.2.2: a target that brings an authority wins over Host,
 * which must be right all the same. */
static bool settle_host(struct h1_request *r)
{
    const struct header *host = headers_find(&r->headers, HEADER_HOST);
    struct authority parts;
    if (host == NULL)
        return r->minor == 0;
    if (host->next != 0)
        return false;
    if (host->value.len > 0 ? !h1_authority_split(host->value, &parts)
                            : r->minor >= 1 && r->form == FORM_ORIGIN)
        return false;
    if (r->authority.ptr == NULL)
        r->authority = host->value;
    return true;
}

static inline enum h1_cause settle_request_body(struct h1_request *r)
{
    r->framing = FRAMING_NONE;
    r->length = 0;
    if (headers_has(&r->headers, HEADER_TRANSFER_ENCODING)) {
        r->framing = FRAMING_CHUNKED;
        return check_coding(&r->headers, r->minor);
    }
    const struct header *length = headers_find(&r->headers, HEADER_CONTENT_LENGTH);
    if (length == NULL)
        return H1_OK;
    r->framing = FRAMING_LENGTH;
    return length->next == 0 && read_length(length->value, &r->length) ? H1_OK : H1_LENGTH;
}

/* RFC 9110 10.1.1: a 1.0 client's 100-continue is ignored. */
static void settle_expect(struct h1_request *r)
{
    for (const struct header *f = headers_find(&r->headers, HEADER_EXPECT); f != NULL;
         f = headers_next(&r->headers, f)) {
        struct slice rest = f->value, expectation;
        while (slice_next_in_list(&rest, &expectation)) {
            if (!slice_equal_nocase(expectation, SLICE("100-continue")))
                r->has_unknown_expect = true;
            else if (r->minor >= 1)
                r->expects_continue = true;
        }
    }
}

enum h1_cause h1_request_settle(struct h1_request *r)
{
    if (!settle_host(r))
        return H1_HOST;
    enum h1_cause cause = settle_request_body(r);
    if (cause != H1_OK)
        return cause;
    r->keeps_alive = r->minor >= 1;
    r->is_upgrade = r->expects_continue = r->has_unknown_expect = false;
    if (headers_has(&r->headers, HEADER_EXPECT))
        settle_expect(r);
    if (!headers_has(&r->headers, HEADER_CONNECTION))
        return H1_OK;
    struct connection c = read_connection(&r->headers);
    r->keeps_alive = stays_open(c, r->minor);
    /* RFC 9110 7.8: Upgrade in HTTP/1.0 is ignored. */
    r->is_upgrade = c.upgrade && r->minor >= 1 && headers_has(&r->headers, HEADER_UPGRADE);
    return H1_OK;
}

/* Equal repeats count as one (RFC 9110 8.6): "5, 5", or the same field twice. */
static enum h1_cause read_response_length(struct h1_response *r)
{
    bool seen = false;
    const struct headers *h = &r->headers;
    for (const struct header *f = headers_find(h, HEADER_CONTENT_LENGTH); f != NULL;
         f = headers_next(h, f)) {
        struct list l = list_of(f->value);
        struct slice element;
        while (list_next(&l, &element)) {
            uint64_t length;
            if (!read_length(element, &length) || (seen && length != r->length))
                return H1_LENGTH;
            r->length = length;
            seen = true;
        }
    }
    return H1_OK;
}

/* RFC 9112 6.3 (1): no body whatever the fields say. */
static bool is_always_bodiless(unsigned status, enum h1_method request_method)
{
    return status < 200 || status == 204 || status == 304 || request_method == METHOD_HEAD;
}

/* An origin that announces a body with 204 may well send it, into what we read as its next
 * response. */
static bool may_be_followed_by_stray_body(const struct h1_response *r)
{
    return r->status == 204 &&
           (headers_has(&r->headers, HEADER_TRANSFER_ENCODING) || r->length > 0);
}

enum h1_cause h1_response_settle(struct h1_response *r, enum h1_method request_method)
{
    struct connection c = read_connection(&r->headers);
    r->keeps_alive = stays_open(c, r->minor);
    r->framing = FRAMING_NONE;
    r->length = 0;
    if (request_method == METHOD_CONNECT && r->status / 100 == 2) {
        r->keeps_alive = false; /* RFC 9112 6.3 (2): a tunnel; Content-Length and Transfer-Encoding
                                   are ignored */
        return H1_OK;
    }
    bool has_coding = headers_has(&r->headers, HEADER_TRANSFER_ENCODING);
    enum h1_cause cause =
        has_coding ? check_coding(&r->headers, r->minor) : read_response_length(r);
    if (cause != H1_OK)
        return cause;
    if (is_always_bodiless(r->status, request_method)) {
        r->keeps_alive = r->keeps_alive && !may_be_followed_by_stray_body(r);
        r->length = 0;
        return H1_OK;
    }
    r->framing = has_coding                                        ? FRAMING_CHUNKED
                 : headers_has(&r->headers, HEADER_CONTENT_LENGTH) ? FRAMING_LENGTH
                                                                   : FRAMING_CLOSE;
    if (r->framing == FRAMING_CLOSE)
        r->keeps_alive = false;
    return H1_OK;
}
