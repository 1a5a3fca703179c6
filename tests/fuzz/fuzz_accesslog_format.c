/* tests/fuzz/fuzz_accesslog_format.c: a format, a NUL, then bytes of a request: whatever comes, a
 * line is one line. */
#include "proxy/accesslog_internal.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *format = slice_to_string((struct slice){ (const char *)data, size });
    size_t used = strlen(format);
    struct slice rest =
        used < size ? (struct slice){ (const char *)data + used + 1, size - used - 1 } : SLICE_NONE;
    struct access_record r = { .method = rest,
                               .target = rest,
                               .host = rest,
                               .user_agent = rest,
                               .client = rest,
                               .status = 200,
                               .age_s = -1,
                               .first_byte_us = -1,
                               .total_us = (int64_t)size };
    char why[256] = "";
    struct access_format *f = access_format_new(format, why);
    if (f == NULL) {
        CHECK(why[0] != '\0' && memchr(why, '\0', sizeof why) != NULL);
        free(format);
        return 0;
    }
    struct line_buffer b = { 0 };
    access_format_write(f, &r, &b);
    CHECK(memchr(b.ptr, '\n', b.length) == b.ptr + b.length - 1);
    line_buffer_fini(&b);
    access_format_free(&f);
    free(format);
    return 0;
}
