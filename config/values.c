/* config/values.c: sizes, durations, addresses, servers, hosts and networks: from text and back.
 * Pure; any thread. */
#include "config/config_internal.h"

#include <arpa/inet.h>
#include <sys/un.h>

enum { HOST_MAX_BYTES = 253, LABEL_MAX_BYTES = 63 }; /* RFC 1035 2.3.4, without the final dot */

static bool refuse(const char **why, const char *sentence)
{
    *why = sentence;
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes the digits at the start off `*rest`. */
static bool take_number(struct slice *rest, uint64_t *number, const char **why)
{
    size_t len = 0;
    while (len < rest->len && is_digit(rest->ptr[len]))
        len++;
    if (len == 0)
        return refuse(why, "does not begin with a number");
    if (!slice_to_u64((struct slice){ rest->ptr, len }, number))
        return refuse(why, "is too large a number");
    *rest = (struct slice){ rest->ptr + len, rest->len - len };
    return true;
}

bool config_parse_bytes(struct slice text, uint64_t *bytes, const char **why)
{
    static const struct {
        struct slice name;
        uint64_t factor;
    } units[] = {
        { SLICE_INIT(""), 1 },         { SLICE_INIT("B"), 1 },        { SLICE_INIT("K"), KiB(1) },
        { SLICE_INIT("KiB"), KiB(1) }, { SLICE_INIT("M"), MiB(1) },   { SLICE_INIT("MiB"), MiB(1) },
        { SLICE_INIT("G"), GiB(1) },   { SLICE_INIT("GiB"), GiB(1) }, { SLICE_INIT("T"), TiB(1) },
        { SLICE_INIT("TiB"), TiB(1) },
    };
    struct slice rest = slice_trim(text);
    uint64_t number;
    if (!take_number(&rest, &number, why))
        return false;
    rest = slice_trim(rest);
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        if (!slice_equal_nocase(rest, units[i].name))
            continue;
        if (__builtin_mul_overflow(number, units[i].factor, bytes))
            return refuse(why, "is too large a number");
        return true;
    }
    /* MB is a million to some and 2^20 to others: a budget that is 5 % off is found only when
     * memory runs out. */
    if (rest.len == 2 && ascii_lower(rest.ptr[1]) == 'b')
        return refuse(why, "has a unit of two meanings; write KiB, MiB, GiB or TiB");
    if (rest.ptr[0] == '.')
        return refuse(why, "is not a whole number; write it in a smaller unit");
    return refuse(why, "has an unknown unit; units are KiB, MiB, GiB and TiB");
}

static bool take_duration_unit(struct slice *rest, uint64_t *factor)
{
    static const struct {
        struct slice name;
        uint64_t ms;
    } units[] = {
        /* ms before m */
        { SLICE_INIT("ms"), 1 },      { SLICE_INIT("s"), 1000 },     { SLICE_INIT("m"), 60000 },
        { SLICE_INIT("h"), 3600000 }, { SLICE_INIT("d"), 86400000 },
    };
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        if (!slice_has_prefix(*rest, units[i].name))
            continue;
        *factor = units[i].ms;
        rest->ptr += units[i].name.len;
        rest->len -= units[i].name.len;
        return true;
    }
    return false;
}

bool config_parse_duration(struct slice text, uint64_t *ms, const char **why)
{
    struct slice rest = slice_trim(text);
    uint64_t sum = 0, last = UINT64_MAX;
    do {
        uint64_t number, factor, part;
        if (!take_number(&rest, &number, why))
            return false;
        if (rest.len == 0 && number == 0 && last == UINT64_MAX)
            break; /* 0 is 0 in every unit */
        if (rest.len == 0)
            return refuse(why, "has no unit; units are ms, s, m, h and d");
        if (rest.ptr[0] == '.')
            return refuse(why, "is not a whole number; write it in a smaller unit");
        if (!take_duration_unit(&rest, &factor))
            return refuse(why, "has an unknown unit; units are ms, s, m, h and d");
        if (factor >= last)
            return refuse(why, "has its units out of order; write 1h30m");
        last = factor;
        if (__builtin_mul_overflow(number, factor, &part) ||
            __builtin_add_overflow(sum, part, &sum))
            return refuse(why, "is too large a number");
    } while (rest.len > 0);
    *ms = sum;
    return true;
}

bool config_parse_bool(struct slice text, bool *value)
{
    static const char *const yes[] = { "true", "yes", "on" };
    static const char *const no[] = { "false", "no", "off" };
    for (size_t i = 0; i < ARRAY_COUNT(yes); i++) {
        if (slice_equal_nocase(text, slice_of(yes[i])))
            return *value = true;
        if (slice_equal_nocase(text, slice_of(no[i]))) {
            *value = false;
            return true;
        }
    }
    return false;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* An IPv4 or IPv6 address without brackets; its family, or 0. */
static int address_family(struct slice text, unsigned char bytes[16])
{
    char copy[INET6_ADDRSTRLEN + 1];
    if (text.len == 0 || text.len >= sizeof copy)
        return 0;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    if (inet_pton(AF_INET, copy, bytes) == 1)
        return AF_INET;
    return inet_pton(AF_INET6, copy, bytes) == 1 ? AF_INET6 : 0;
}

static bool is_label_char(char c)
{
    char low = ascii_lower(c);
    return (low >= 'a' && low <= 'z') || is_digit(c) || c == '-' || c == '_';
}

/* Names as they stand in DNS and in /etc/hosts; the underscore is common in private names. */
static bool is_host_name(struct slice name, const char **why)
{
    if (name.len == 0)
        return refuse(why, "has no host");
    if (name.len > HOST_MAX_BYTES)
        return refuse(why, "is longer than 253 bytes");
    size_t label = 0;
    for (size_t i = 0; i <= name.len; i++) {
        if (i == name.len || name.ptr[i] == '.') {
            if (label == 0)
                return refuse(why, "has an empty part between dots");
            if (label > LABEL_MAX_BYTES)
                return refuse(why, "has a part longer than 63 bytes between dots");
            label = 0;
            continue;
        }
        if ((unsigned char)name.ptr[i] >= 0x80)
            return refuse(why, "is not ASCII; write the name in its xn-- form");
        if (!is_label_char(name.ptr[i]))
            return refuse(why, "is not a host name");
        label++;
    }
    return true;
}

/* "name", "10.0.0.1", "[::1]": `*host` is without brackets. */
static bool read_host(struct slice text, struct slice *host, const char **why)
{
    unsigned char bytes[16];
    *host = text;
    if (text.len > 0 && text.ptr[0] == '[') {
        if (text.len < 3 || text.ptr[text.len - 1] != ']')
            return refuse(why, "has a bracket that is not closed");
        *host = (struct slice){ text.ptr + 1, text.len - 2 };
        if (address_family(*host, bytes) != AF_INET6)
            return refuse(why, "has no IPv6 address between its brackets");
        return true;
    }
    if (address_family(text, bytes) == AF_INET6)
        return refuse(why, "has an IPv6 address without brackets; write [::1]:80");
    return is_host_name(text, why);
}

/* Where the ":PORT" of the text begins; its length when there is none. */
static size_t port_position(struct slice text)
{
    size_t from = 0;
    if (text.len > 0 && text.ptr[0] == '[')
        from = slice_find(text, ']');
    struct slice rest = { text.ptr + from, text.len - from };
    return from + slice_find(rest, ':');
}

static bool read_port(struct slice text, uint16_t *port, const char **why)
{
    uint64_t number;
    if (!slice_to_u64(text, &number) || number > 65535)
        return refuse(why, "has a port that is not a number up to 65535");
    *port = (uint16_t)number;
    return true;
}

static bool read_unix(struct arena *a, struct slice text, struct config_address *address,
                      const char **why)
{
    struct slice path = { text.ptr + 5, text.len - 5 };
    if (path.len == 0 || path.ptr[0] != '/')
        return refuse(why, "has no absolute path after unix:");
    if (path.len >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
        return refuse(why, "has a path longer than 107 bytes, which a unix socket cannot have");
    *address = (struct config_address){ .kind = ADDRESS_UNIX,
                                        .text = arena_string(a, text),
                                        .host = arena_string(a, SLICE_NONE),
                                        .path = arena_string(a, path) };
    return true;
}

static bool is_number(struct slice text)
{
    uint64_t ignored;
    return slice_to_u64(text, &ignored);
}

bool config_parse_address(struct arena *a, struct slice text, struct config_address *address,
                          const char **why)
{
    unsigned char bytes[16];
    if (slice_has_prefix(text, SLICE("unix:")))
        return read_unix(a, text, address, why);
    if (slice_find(text, '/') < text.len)
        return refuse(why, "is not an address, which has neither scheme nor path");
    if (address_family(text, bytes) == AF_INET6)
        return refuse(why, "has an IPv6 address without brackets; write [::1]:80");
    size_t colon = port_position(text);
    if (colon == text.len)
        return refuse(why, is_number(text) ? "is a number alone; a port has a colon before it"
                                           : "has no port");
    struct slice host = { text.ptr, colon };
    struct slice port_text = { text.ptr + colon + 1, text.len - colon - 1 };
    uint16_t port;
    if (slice_equal(host, SLICE("*")))
        host.len = 0;
    if (!read_port(port_text, &port, why) || (host.len > 0 && !read_host(host, &host, why)))
        return false;
    *address = (struct config_address){ .kind = ADDRESS_TCP,
                                        .text = arena_string(a, text),
                                        .host = arena_string(a, host),
                                        .port = port };
    return true;
}

/* What stands between "http://" and the path. */
static bool read_authority(struct slice text, struct slice *host, uint16_t *port, const char **why)
{
    if (slice_find(text, '@') < text.len)
        return refuse(why, "has a user or password, which is not supported");
    if (slice_find(text, '?') < text.len || slice_find(text, '#') < text.len)
        return refuse(why, "has a query; a server is a scheme, a host and a port");
    size_t colon = port_position(text);
    *port = 80;
    if (colon < text.len) {
        struct slice port_text = { text.ptr + colon + 1, text.len - colon - 1 };
        if (!read_port(port_text, port, why))
            return false;
        if (*port == 0)
            return refuse(why, "has port 0, where no server can be");
    }
    return read_host((struct slice){ text.ptr, colon }, host, why);
}

bool config_parse_server(struct arena *a, struct slice text, struct config_address *address,
                         const char **why)
{
    if (slice_has_prefix(text, SLICE("unix:")))
        return read_unix(a, text, address, why);
    if (slice_has_prefix_nocase(text, SLICE("https://")))
        return refuse(why, "is https, which is not supported to origins in this version; use "
                           "http:// or unix:");
    if (!slice_has_prefix_nocase(text, SLICE("http://")))
        return refuse(why, "begins with neither http:// nor unix:");
    struct slice authority = { text.ptr + 7, text.len - 7 };
    size_t slash = slice_find(authority, '/');
    if (slash + 1 < authority.len)
        return refuse(why, "has a path; a server gets the path that the client asked for");
    if (slash < authority.len)
        text.len--; /* "http://host/" and "http://host" are one name in stats */
    authority.len = slash;
    struct slice host;
    uint16_t port;
    if (!read_authority(authority, &host, &port, why))
        return false;
    *address = (struct config_address){ .kind = ADDRESS_TCP,
                                        .text = arena_string(a, text),
                                        .host = arena_string(a, host),
                                        .port = port };
    return true;
}

bool config_is_token(struct slice text)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < text.len; i++) {
        char c = ascii_lower(text.ptr[i]);
        bool is_alphanumeric = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!is_alphanumeric && (c == '\0' || strchr(marks, c) == NULL))
            return false;
    }
    return text.len > 0;
}

bool config_address_is_loopback(const struct config_address *address)
{
    unsigned char bytes[16];
    struct slice host = slice_of(address->host);
    if (address->kind == ADDRESS_UNIX || slice_equal_nocase(host, SLICE("localhost")))
        return true;
    switch (address_family(host, bytes)) {
    case AF_INET: return bytes[0] == 127;
    case AF_INET6: return memcmp(bytes, &in6addr_loopback, sizeof bytes) == 0;
    default: return false;
    }
}

bool config_address_equal(const struct config_address *a, const struct config_address *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == ADDRESS_UNIX)
        return strcmp(a->path, b->path) == 0;
    return a->port == b->port && slice_equal_nocase(slice_of(a->host), slice_of(b->host));
}

/* ---- hosts of sites, networks ---------------------------------------------------------------- */

bool config_parse_site_host(struct arena *a, struct slice text, char **host, const char **why)
{
    if (slice_equal(text, SLICE("*"))) {
        *host = arena_string(a, text);
        return true;
    }
    if (slice_find(text, '/') < text.len)
        return refuse(why, "is not a host, which has neither scheme nor path");
    struct slice name = text;
    if (slice_has_prefix(name, SLICE("*.")))
        name = (struct slice){ name.ptr + 2, name.len - 2 };
    if (slice_find(name, '*') < name.len)
        return refuse(why, "has a * that is not the whole first part");
    if (port_position(name) < name.len)
        return refuse(why, "has a port; a host is served on every port");
    if (name.len > 1 && name.ptr[name.len - 1] == '.') {
        name.len--;
        text.len--;
    }
    struct slice bare;
    if (!read_host(name, &bare, why))
        return false;
    *host = arena_string(a, text);
    for (char *c = *host; *c != '\0'; c++)
        *c = ascii_lower(*c);
    return true;
}

static bool has_bits_after(const unsigned char *bytes, size_t byte_count, uint64_t prefix)
{
    for (uint64_t bit = prefix; bit < byte_count * 8; bit++)
        if (bytes[bit / 8] & (0x80 >> (bit % 8)))
            return true;
    return false;
}

bool config_parse_network(struct arena *a, struct slice text, char **network, const char **why)
{
    unsigned char bytes[16];
    size_t slash = slice_find(text, '/');
    int family = address_family((struct slice){ text.ptr, slash }, bytes);
    if (family == 0)
        return refuse(why, "is not a network");
    size_t byte_count = family == AF_INET ? 4 : 16;
    if (slash == text.len) {
        struct slice whole = arena_printf(a, SLICE_FMT "/%zu", SLICE_ARG(text), byte_count * 8);
        *network = arena_string(a, whole);
        return true;
    }
    uint64_t prefix;
    if (!slice_to_u64((struct slice){ text.ptr + slash + 1, text.len - slash - 1 }, &prefix) ||
        prefix > byte_count * 8)
        return refuse(why, family == AF_INET ? "has a prefix that is not a number up to 32"
                                             : "has a prefix that is not a number up to 128");
    if (has_bits_after(bytes, byte_count, prefix))
        return refuse(why, "has bits set after its prefix");
    *network = arena_string(a, text);
    return true;
}

/* ---- back to text ---------------------------------------------------------------------------- */

struct unit {
    const char *name;
    uint64_t factor;
};

/* In the largest unit that loses nothing. */
static void print_in_units(uint64_t value, const struct unit *units, FILE *out)
{
    while (value == 0 ? units->factor != 1 : value % units->factor != 0)
        units++;
    fprintf(out, "%llu%s", (unsigned long long)(value / units->factor), units->name);
}

void config_print_bytes(uint64_t bytes, FILE *out)
{
    static const struct unit units[] = {
        { "TiB", TiB(1) }, { "GiB", GiB(1) }, { "MiB", MiB(1) }, { "KiB", KiB(1) }, { "", 1 },
    };
    print_in_units(bytes, units, out);
}

void config_print_duration(uint64_t ms, FILE *out)
{
    static const struct unit units[] = {
        { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },
    };
    if (ms == 0)
        fputs("0s", out);
    else
        print_in_units(ms, units, out);
}
