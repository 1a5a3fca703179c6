/* proxy/h1_chunks.c: the chunked coding (RFC 9112 7.1), byte by byte over its lines and in place
 * over its data; see h1.h.
 *
 *   SIZE --';'--> EXTENSION --.
 *     '----------CR----------> SIZE_LF --size > 0--> DATA -> DATA_CR -> DATA_LF --> SIZE
 *                                 '-----size 0-----> TRAILER --CR--> END_LF --> DONE
 *                                                      '-> NAME -> VALUE -> VALUE_LF -> TRAILER
 *
 * Extensions and trailers are checked and dropped (RFC 9112 7.1.1, 9110 6.5.1). Pure, one reader at
 * a time.
 */
#include "proxy/h1_internal.h"

enum state {
    SIZE,
    EXTENSION,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER,
    NAME,
    VALUE,
    VALUE_LF,
    END_LF,
    DONE,
    BAD
};

enum {
    DIGITS_MAX = 16,
    EXTENSION_MAX = 1024, /* of one chunk */
    /* RFC 9112 7.1.1: their total ought to be bounded too. What data pays for is free, as
     * signatures over large chunks are; a body of a byte a chunk behind a kilobyte of extension is
     * not. */
    EXTENSION_DEBT_MAX = 16 * 1024
};

void h1_chunks_init(struct h1_chunks *c, uint32_t trailer_max_bytes)
{
    *c = (struct h1_chunks){ .state = SIZE, .trailer_max = trailer_max_bytes };
}

static enum h1_cause go(struct h1_chunks *c, enum state next)
{
    c->state = (uint8_t)next;
    return H1_OK;
}

/* A byte that fits nowhere: a line end of the wrong kind has its own name. */
static enum h1_cause wrong(char byte, enum h1_cause cause)
{
    return byte == '\n' ? H1_BARE_LINE_END : cause;
}

static enum h1_cause want_lf(struct h1_chunks *c, char byte, enum state next)
{
    return byte == '\n' ? go(c, next) : H1_BARE_LINE_END;
}

static int hex_digit(char byte)
{
    if (byte_is_digit(byte))
        return byte - '0';
    char lower = ascii_lower(byte);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Hex digits and nothing else: no sign, no 0x, no space on either side (the grammar's BWS before
 * ';' is refused as well). Above INT64_MAX is refused as an overflow, as with Content-Length. */
static enum h1_cause step_size(struct h1_chunks *c, char byte)
{
    int digit = hex_digit(byte);
    if (digit >= 0) {
        if (c->digit_count == DIGITS_MAX || c->left > (uint64_t)INT64_MAX >> 4)
            return H1_CHUNK;
        c->left = c->left << 4 | (unsigned)digit;
        c->digit_count++;
        return H1_OK;
    }
    if (c->digit_count == 0)
        return wrong(byte, H1_CHUNK);
    if (byte == '\r')
        return go(c, SIZE_LF);
    return byte == ';' ? go(c, EXTENSION) : wrong(byte, H1_CHUNK);
}

static enum h1_cause step_extension(struct h1_chunks *c, char byte)
{
    if (byte == '\r')
        return go(c, SIZE_LF);
    if (!byte_is(byte, BYTE_EXTENSION))
        return wrong(byte, H1_CHUNK);
    return ++c->extension_bytes > EXTENSION_MAX ? H1_CHUNK : H1_OK;
}

static enum h1_cause step_size_lf(struct h1_chunks *c, char byte)
{
    if (byte != '\n')
        return H1_BARE_LINE_END;
    uint64_t debt = (uint64_t)c->extension_debt + c->extension_bytes;
    debt = debt > c->left ? debt - c->left : 0;
    if (debt > EXTENSION_DEBT_MAX)
        return H1_CHUNK;
    c->extension_debt = (uint32_t)debt;
    c->extension_bytes = 0;
    c->digit_count = 0;
    return go(c, c->left > 0 ? DATA : TRAILER);
}

/* A trailer line is a field line (RFC 9112 7.1.2). */
static enum h1_cause step_trailer(struct h1_chunks *c, char byte)
{
    if (byte == '\r')
        return go(c, END_LF);
    return byte_is(byte, BYTE_TOKEN) ? go(c, NAME) : wrong(byte, H1_TRAILER);
}

static enum h1_cause step_name(struct h1_chunks *c, char byte)
{
    if (byte == ':')
        return go(c, VALUE);
    return byte_is(byte, BYTE_TOKEN) ? H1_OK : wrong(byte, H1_TRAILER);
}

static enum h1_cause step_value(struct h1_chunks *c, char byte)
{
    if (byte == '\r')
        return go(c, VALUE_LF);
    return byte_is(byte, BYTE_VALUE) ? H1_OK : wrong(byte, H1_TRAILER);
}

/* Counts what the trailer lines take, the last empty line not. */
static enum h1_cause step_trailers(struct h1_chunks *c, char byte)
{
    enum state before = c->state;
    enum h1_cause cause = before == TRAILER ? step_trailer(c, byte)
                          : before == NAME  ? step_name(c, byte)
                          : before == VALUE ? step_value(c, byte)
                                            : want_lf(c, byte, TRAILER);
    if (cause != H1_OK || c->state == END_LF)
        return cause;
    return c->trailer_bytes++ < c->trailer_max ? H1_OK : H1_TRAILER;
}

/* One byte that is not data. */
static enum h1_cause step(struct h1_chunks *c, char byte)
{
    switch ((enum state)c->state) {
    case SIZE: return step_size(c, byte);
    case EXTENSION: return step_extension(c, byte);
    case SIZE_LF: return step_size_lf(c, byte);
    case DATA_CR: return byte == '\r' ? go(c, DATA_LF) : wrong(byte, H1_CHUNK);
    case DATA_LF: return want_lf(c, byte, SIZE);
    case TRAILER:
    case NAME:
    case VALUE:
    case VALUE_LF: return step_trailers(c, byte);
    case END_LF: return want_lf(c, byte, DONE);
    case DATA:
    case DONE:
    case BAD: break;
    }
    UNREACHABLE();
}

static struct slice take(struct slice *in, uint64_t bytes)
{
    struct slice taken = { in->ptr, bytes < in->len ? (size_t)bytes : in->len };
    in->ptr += taken.len;
    in->len -= taken.len;
    return taken;
}

enum h1_result h1_chunks_read(struct h1_chunks *c, struct slice *in, struct slice *data,
                              enum h1_cause *cause)
{
    *data = SLICE_NONE;
    *cause = H1_OK;
    while (in->len > 0 && c->state < DONE) {
        if (c->state == DATA) {
            *data = take(in, c->left);
            c->left -= data->len;
            if (c->left == 0)
                go(c, DATA_CR);
            return H1_MORE;
        }
        *cause = step(c, *take(in, 1).ptr);
        if (*cause != H1_OK) {
            c->state = BAD;
            c->cause = (uint8_t)*cause;
        }
    }
    *cause = c->cause;
    return c->state == DONE ? H1_DONE : c->state == BAD ? H1_BAD : H1_MORE;
}
