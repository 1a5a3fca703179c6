/* tests/fuzz/fuzz_probe.c: a URL and a host, between them a NUL: whatever the operator types, it is
 * refused with a sentence, or has a key in one canonical form: the URL that the key spells out has
 * the same key.
 */
#include "proxy/probe.h"

#include <stdlib.h>

enum { ROOM = 16 << 10 };

static struct config *some_config(void)
{
    struct config_mistakes m = { 0 };
    struct config *c = config_load_text(
        "fuzz.yaml",
        SLICE("origins: { app: { servers: [ \"http://127.0.0.1:1\" ] } }\n"
              "sites: [ { hosts: [ \"a.test\", \"*.test\" ], origin: app }, { hosts: [ \"b\" ], "
              "origin: app } ]\n"),
        &m);
    CHECK(c != NULL);
    return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct config *config;
    static char key[ROOM], again[ROOM], url[ROOM + 8];
    const char *why = NULL;
    if (config == NULL)
        config = some_config();
    struct slice all = { (const char *)data, size }, first = { all.ptr, slice_find(all, '\0') },
                 host = SLICE_NONE;
    if (first.len < all.len)
        host = slice_from(all.ptr + first.len + 1, all.ptr + all.len);
    size_t length = probe_key_of_url(config, first, host, key, sizeof key, &why);
    if (length == 0) {
        CHECK(why != NULL && why[0] != '\0');
        return 0;
    }
    struct slice k = { key, length };
    size_t site = slice_find(k, '\0');
    CHECK(site < length && length - site - 1 < ROOM);
    struct slice rest = { key + site + 1, length - site - 1 };
    CHECK(slice_find(rest, '\0') == rest.len && slice_find(rest, '\n') == rest.len);
    memcpy(url, "http://", 7);
    memcpy(url + 7, rest.ptr, rest.len);
    size_t same = probe_key_of_url(config, (struct slice){ url, rest.len + 7 }, SLICE_NONE, again,
                                   sizeof again, &why);
    CHECK(same == length && memcmp(key, again, length) == 0);
    return 0;
}
