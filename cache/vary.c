/* cache/vary.c: selecting fields and the variant that a request selects (RFC 9111 4.1); see
 * decide.h. Pure; any thread.
 *
 * A request's value of a selecting field is put in a canonical form as a stream of bytes, which
 * goes to one of three ends: it is counted, written (a variant is made), or compared with what is
 * stored (a variant is looked for: on the hit path, so nothing is allocated or written). The form
 * of a form is itself; the fuzz entry holds that.
 *
 *   Accept-Encoding   the codings that we tell apart, in our order: two requests that accept the
 *                     same ones are the same, and what browsers or attackers put beside them makes
 *                     no variant. Their preferences are the origin's to weigh; whichever coding it
 *                     chose is one that all of these clients accept.
 *   Accept-Language   members in lower case, by weight and then by name (RFC 9110 12.5.4: order
 *                     carries no meaning).
 *   other fields      white space around commas becomes ", " after them; text in quotes is left
 *                     alone.
 */
#include "cache/directives.h"

/* ---- the end of the stream ------------------------------------------------------------------- */

struct sink {
    char *out;           /* write here; NULL does not */
    struct slice expect; /* compare with this */
    bool compares;
    bool differs;
    size_t length; /* so far */
};

static void put(struct sink *k, struct slice s)
{
    if (k->out != NULL && s.len > 0)
        memcpy(k->out + k->length, s.ptr, s.len);
    if (k->compares && !k->differs)
        k->differs = s.len > k->expect.len - k->length ||
                     (s.len > 0 && memcmp(k->expect.ptr + k->length, s.ptr, s.len) != 0);
    if (!k->differs)
        k->length += s.len;
}

static void put_lower(struct sink *k, struct slice s)
{
    char some[64];
    while (s.len > 0) {
        size_t len = s.len < sizeof some ? s.len : sizeof some;
        for (size_t i = 0; i < len; i++)
            some[i] = ascii_lower(s.ptr[i]);
        put(k, (struct slice){ some, len });
        s.ptr += len;
        s.len -= len;
    }
}

/* ---- weights (RFC 9110 12.4.2) --------------------------------------------------------------- */

enum { WEIGHT_MAX = 1000, WEIGHT_MALFORMED = -1 };

/* qvalue = ( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] ), in thousandths. */
static int read_qvalue(struct slice s)
{
    if (s.len == 0 || s.len > 5 || (s.ptr[0] != '0' && s.ptr[0] != '1'))
        return WEIGHT_MALFORMED;
    if (s.len > 1 && s.ptr[1] != '.')
        return WEIGHT_MALFORMED;
    int sum = (s.ptr[0] - '0') * WEIGHT_MAX, unit = 100;
    for (size_t i = 2; i < s.len; i++, unit /= 10) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return WEIGHT_MALFORMED;
        sum += (s.ptr[i] - '0') * unit;
    }
    return sum <= WEIGHT_MAX ? sum : WEIGHT_MALFORMED;
}

/* Splits `name [OWS ; OWS q=value]`. */
static int read_weighted(struct slice member, struct slice *name)
{
    size_t at = slice_find(member, ';');
    *name = slice_trim((struct slice){ member.ptr, at });
    if (at == member.len)
        return WEIGHT_MAX;
    struct slice weight = slice_trim((struct slice){ member.ptr + at + 1, member.len - at - 1 });
    if (!slice_has_prefix_nocase(weight, SLICE("q=")))
        return WEIGHT_MALFORMED;
    return read_qvalue((struct slice){ weight.ptr + 2, weight.len - 2 });
}

/* ---- Accept-Encoding (RFC 9110 12.5.3) ------------------------------------------------------- */

enum { CODING_IDENTITY = 16, CODING_ANY = 32, CODINGS = 4 };

static const struct {
    struct slice name;
    unsigned bit;
} codings[] = {
    { SLICE_INIT("gzip"),
      CODING_GZIP }, /* the first four are ours, in the order in which browsers send them */
    { SLICE_INIT("deflate"), CODING_DEFLATE },
    { SLICE_INIT("br"), CODING_BR },
    { SLICE_INIT("zstd"), CODING_ZSTD },
    { SLICE_INIT("identity"), CODING_IDENTITY },
    { SLICE_INIT("*"), CODING_ANY },
    { SLICE_INIT("x-gzip"), CODING_GZIP }, /* 8.4.1.3: the same */
};

static unsigned coding_bit(struct slice name)
{
    for (unsigned i = 0; i < ARRAY_COUNT(codings); i++)
        if (codings[i].name.len == name.len && slice_equal_nocase(codings[i].name, name))
            return codings[i].bit;
    return 0;
}

/* Named by the field with a weight above 0, and named at all. A weight that is malformed is not
 * believed: not accepted. */
struct accepted {
    unsigned yes, named;
};

static void read_coding_line(struct slice line, struct accepted *a)
{
    struct slice member, name;
    while (slice_next_in_list(&line, &member)) {
        int weight = read_weighted(member, &name);
        unsigned bit = coding_bit(name);
        a->named |= bit;
        if (weight > 0)
            a->yes |= bit;
    }
}

/* All of ours that are acceptable, identity included. "*" stands for those that are not named;
 * identity is acceptable unless it, or a "*" without it, is refused. */
static unsigned codings_acceptable(const struct header *f, const struct headers *request)
{
    struct accepted a = { 0 };
    for (; f != NULL; f = headers_next(request, f))
        read_coding_line(f->value, &a);
    const unsigned ours = CODING_GZIP | CODING_BR | CODING_ZSTD | CODING_DEFLATE;
    unsigned unnamed = ~a.named;
    unsigned set = a.yes & (ours | CODING_IDENTITY);
    if (a.yes & CODING_ANY)
        set |= unnamed & (ours | CODING_IDENTITY);
    if (!(a.named & CODING_ANY))
        set |= unnamed & CODING_IDENTITY;
    return set;
}

unsigned cache_codings_accepted(const struct headers *request)
{
    const struct header *f = headers_find(request, HEADER_ACCEPT_ENCODING);
    return f == NULL ? 0 : codings_acceptable(f, request) & ~(unsigned)CODING_IDENTITY;
}

/* For codings that are not ours: whether a member names it, or "*" stands for it. */
static bool is_other_coding_accepted(const struct header *f, const struct headers *request,
                                     struct slice coding)
{
    bool any = false;
    for (; f != NULL; f = headers_next(request, f)) {
        struct slice line = f->value, member, name;
        while (slice_next_in_list(&line, &member)) {
            int weight = read_weighted(member, &name);
            if (slice_equal_nocase(name, coding))
                return weight > 0;
            if (slice_equal(name, SLICE("*")))
                any = weight > 0;
        }
    }
    return any;
}

bool cache_coding_is_acceptable(struct slice content_encoding, const struct headers *request)
{
    const struct header *f = headers_find(request, HEADER_ACCEPT_ENCODING);
    if (f == NULL || content_encoding.len == 0)
        return true; /* without the field any coding will do (RFC 9110 12.5.3) */
    unsigned acceptable = codings_acceptable(f, request);
    struct slice coding;
    while (slice_next_in_list(&content_encoding, &coding)) {
        unsigned bit = coding_bit(coding);
        if (bit == 0 ? !is_other_coding_accepted(f, request, coding) : !(acceptable & bit))
            return false;
    }
    return true;
}

/* As a field that says the same: identity goes without saying unless it is refused. */
static void put_codings(struct sink *k, const struct header *f, const struct headers *request)
{
    unsigned set = codings_acceptable(f, request);
    bool is_first = true;
    for (unsigned i = 0; i < CODINGS; i++) {
        if (!(set & codings[i].bit))
            continue;
        if (!is_first)
            put(k, SLICE(", "));
        put(k, codings[i].name);
        is_first = false;
    }
    if (!(set & CODING_IDENTITY))
        put(k, is_first ? SLICE("identity;q=0") : SLICE(", identity;q=0"));
}

/* ---- Accept-Language (RFC 9110 12.5.4) ------------------------------------------------------- */

enum { LANGUAGES_MAX = 16 };
struct languages {
    size_t count;
    struct language {
        struct slice range;
        int weight;
    } at[LANGUAGES_MAX];
};

static int compare_nocase(struct slice a, struct slice b)
{
    size_t least = a.len < b.len ? a.len : b.len;
    for (size_t i = 0; i < least; i++) {
        int order = (unsigned char)ascii_lower(a.ptr[i]) - (unsigned char)ascii_lower(b.ptr[i]);
        if (order != 0)
            return order;
    }
    return (a.len > b.len) - (a.len < b.len);
}

static bool comes_before(const struct language *a, const struct language *b)
{
    if (a->weight != b->weight)
        return a->weight > b->weight;
    return compare_nocase(a->range, b->range) < 0;
}

static void insert_language(struct languages *l, struct language one)
{
    size_t at = l->count++;
    for (; at > 0 && comes_before(&one, &l->at[at - 1]); at--)
        l->at[at] = l->at[at - 1];
    l->at[at] = one;
}

/* False when it does not read as a short list of language ranges: it is then taken as any other
 * field. */
static bool read_languages(const struct header *f, const struct headers *request,
                           struct languages *l)
{
    l->count = 0;
    for (; f != NULL; f = headers_next(request, f)) {
        struct slice line = f->value, member;
        while (slice_next_in_list(&line, &member)) {
            struct language one;
            one.weight = read_weighted(member, &one.range);
            if (one.weight == WEIGHT_MALFORMED || !is_token(one.range) || l->count == LANGUAGES_MAX)
                return false;
            insert_language(l, one);
        }
    }
    return l->count > 0;
}

static void put_weight(struct sink *k, int weight)
{
    char text[] = ";q=0.000";
    size_t len = sizeof text - 1;
    text[5] = (char)('0' + weight / 100);
    text[6] = (char)('0' + weight / 10 % 10);
    text[7] = (char)('0' + weight % 10);
    while (text[len - 1] == '0')
        len--;
    if (text[len - 1] == '.')
        len--;
    put(k, (struct slice){ text, len });
}

static void put_languages(struct sink *k, const struct languages *l)
{
    for (size_t i = 0; i < l->count; i++) {
        if (i > 0)
            put(k, SLICE(", "));
        put_lower(k, l->at[i].range);
        if (l->at[i].weight < WEIGHT_MAX)
            put_weight(k, l->at[i].weight);
    }
}

/* ---- other fields ---------------------------------------------------------------------------- */

/* Up to the next comma outside of quotes (RFC 9110 5.6.4). Empty members are kept: the field may
 * not be a list. A quote that is left open at the end of a line goes on in the next: together they
 * are one value (RFC 9110 5.2). */
static size_t member_length(struct slice s, bool *quoted)
{
    for (size_t i = 0; i < s.len; i++) {
        if (*quoted && s.ptr[i] == '\\')
            i++;
        else if (s.ptr[i] == '"')
            *quoted = !*quoted;
        else if (s.ptr[i] == ',' && !*quoted)
            return i;
    }
    return s.len;
}

static void put_folded(struct sink *k, struct slice line, bool *quoted)
{
    for (;;) {
        size_t len = member_length(line, quoted);
        put(k, slice_trim((struct slice){ line.ptr, len }));
        if (len == line.len)
            return;
        put(k, SLICE(", "));
        line.ptr += len + 1;
        line.len -= len + 1;
    }
}

/* The next field of that name after `f`, or the first for NULL; `id` is the name's. */
static const struct header *next_named(const struct headers *h, struct slice name,
                                       enum header_id id, const struct header *f)
{
    if (id != HEADER_OTHER)
        return f == NULL ? headers_find(h, id) : headers_next(h, f);
    int at = headers_find_name(h, name, f == NULL ? 0 : (int)(f - h->at) + 1);
    return at < 0 ? NULL : &h->at[at];
}

/* The first one as the origin gets it: what Connection names is not sent on (RFC 9110 7.6.1), and
 * the answer must not be kept for a value that the origin has not seen. */
static const struct header *first_sent(const struct headers *request, struct slice name,
                                       enum header_id id)
{
    return headers_is_nominated(request, name) ? NULL : next_named(request, name, id, NULL);
}

static void put_other(struct sink *k, const struct headers *request, struct slice name,
                      enum header_id id, const struct header *f)
{
    bool quoted = false;
    put_folded(k, f->value, &quoted);
    while ((f = next_named(request, name, id, f)) != NULL) {
        put(k, SLICE(", "));
        put_folded(k, f->value, &quoted);
    }
}

/* ---- one selecting field --------------------------------------------------------------------- */

static void put_value(struct sink *k, const struct headers *request, struct slice name,
                      enum header_id id, const struct header *f)
{
    struct languages languages;
    if (f == NULL) { /* RFC 9111 4.1: absent matches only absent */
        put(k, SLICE("-"));
        return;
    }
    put(k, SLICE("="));
    if (id == HEADER_ACCEPT_ENCODING)
        put_codings(k, f, request);
    else if (id == HEADER_ACCEPT_LANGUAGE && read_languages(f, request, &languages))
        put_languages(k, &languages);
    else
        put_other(k, request, name, id, f);
}

/* ---- making ---------------------------------------------------------------------------------- */

struct selecting {
    size_t count;
    struct slice names[VARY_FIELDS_MAX]; /* sorted, without repeats */
};

/* False when it is too much or no name. */
static bool add_name(struct selecting *s, struct slice name)
{
    if (!is_token(name) || slice_equal(name, SLICE("*")))
        return false;
    size_t at = s->count;
    for (; at > 0; at--) {
        int order = compare_nocase(name, s->names[at - 1]);
        if (order == 0)
            return true;
        if (order > 0)
            break;
    }
    if (s->count == VARY_FIELDS_MAX)
        return false;
    memmove(&s->names[at + 1], &s->names[at], (s->count - at) * sizeof s->names[0]);
    s->names[at] = name;
    s->count++;
    return true;
}

static bool read_vary(const struct headers *response, struct selecting *s)
{
    s->count = 0;
    for (const struct header *f = headers_find(response, HEADER_VARY); f != NULL;
         f = headers_next(response, f)) {
        struct slice rest = f->value, name;
        while (slice_next_in_list(&rest, &name))
            if (!add_name(s, name))
                return false;
    }
    return true;
}

bool cache_vary_is_all(const struct headers *response)
{
    struct selecting s;
    return !read_vary(response, &s);
}

static void put_all(struct sink *k, const struct selecting *s, const struct headers *request)
{
    for (size_t i = 0; i < s->count; i++) {
        enum header_id id = header_id_of(s->names[i]);
        put_lower(k, s->names[i]);
        put(k, (struct slice){ "", 1 });
        put_value(k, request, s->names[i], id, first_sent(request, s->names[i], id));
        put(k, (struct slice){ "", 1 });
    }
}

struct slice cache_vary_make(struct arena *a, const struct headers *response,
                             const struct headers *request)
{
    struct selecting s;
    if (!read_vary(response, &s))
        return arena_copy(a,
                          SLICE("*\0*\0")); /* no value is ever "*": fails to match, as 4.1 asks */
    if (s.count == 0)
        return SLICE_NONE;
    struct sink counting = { 0 };
    put_all(&counting, &s, request);
    struct sink writing = { .out = arena_alloc(a, counting.length) };
    put_all(&writing, &s, request);
    return (struct slice){ writing.out, writing.length };
}

/* ---- matching: on the hit path --------------------------------------------------------------- */

static bool take_text(struct slice *s, struct slice *text)
{
    size_t len = slice_find(*s, '\0');
    if (len == s->len)
        return false;
    *text = (struct slice){ s->ptr, len };
    s->ptr += len + 1;
    s->len -= len + 1;
    return true;
}

/* Most requests send the very bytes that are stored: the form of a form is itself. */
static bool is_same_bytes(struct slice stored, const struct header *f)
{
    return stored.len == f->value.len + 1 && stored.ptr[0] == '=' &&
           memcmp(stored.ptr + 1, f->value.ptr, f->value.len) == 0;
}

static bool value_matches(struct slice name, struct slice stored, const struct headers *request)
{
    enum header_id id = header_id_of(name);
    const struct header *f = first_sent(request, name, id);
    if (f != NULL && is_same_bytes(stored, f) && next_named(request, name, id, f) == NULL)
        return true;
    struct sink comparing = { .expect = stored, .compares = true };
    put_value(&comparing, request, name, id, f);
    return !comparing.differs && comparing.length == stored.len;
}

bool cache_vary_matches(struct slice selecting, const struct headers *request)
{
    struct slice name, value;
    while (selecting.len > 0) {
        if (!take_text(&selecting, &name) || !take_text(&selecting, &value))
            return false;
        if (!value_matches(name, value, request))
            return false;
    }
    return true;
}
