/* tests/fuzz/fuzz_config.c: any bytes as a configuration file. It loads or says why, never both;
 * what loaded prints, the print loads, and prints the same.
 */
#include "config/config.h"

#include <stdlib.h>

static struct config *load(struct slice yaml)
{
    struct config_mistakes mistakes;
    struct config *c = config_load_text("fuzz", yaml, &mistakes);
    CHECK((c == NULL) == (mistakes.count > 0));
    for (size_t i = 0; i < mistakes.count; i++)
        CHECK(strncmp(mistakes.lines[i], "fuzz:", 5) == 0 &&
              strchr(mistakes.lines[i], '\n') == NULL);
    config_mistakes_free(&mistakes);
    return c;
}

static struct slice printed(const struct config *c)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    CHECK(out != NULL);
    config_print(c, out);
    CHECK(fclose(out) == 0);
    return (struct slice){ text, bytes };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config *c = load((struct slice){ (const char *)data, size });
    if (c == NULL)
        return 0;
    (void)config_site_find(c, (struct slice){ (const char *)data, size });
    struct slice first = printed(c);
    if (c->admin_token == NULL) { /* a printed secret is refused, by intent */
        struct config *back = load(first);
        CHECK(back != NULL);
        struct slice second = printed(back);
        CHECK(slice_equal(first, second));
        struct config_mistakes items = config_restart_items(c, back);
        CHECK(items.count == 0);
        config_mistakes_free(&items);
        free((char *)second.ptr);
        config_unref(&back);
    }
    free((char *)first.ptr);
    config_unref(&c);
    return 0;
}
