/* tests/unit/cache/decide_rows.h: header lists out of the text of a row, for the tests of
 * cache/decide.h.
 *
 * Fields are written as on the wire, "Name: value", one a line; the value loses the white space at
 * its ends as the reader's does.
 */
#ifndef TESTS_UNIT_CACHE_DECIDE_ROWS_H
#define TESTS_UNIT_CACHE_DECIDE_ROWS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/dates.h"
#include "base/headers.h"
#include "cache/decide.h"

#include <stdio.h>

struct row_headers {
    struct header storage[HEADERS_MAX];
    struct headers list;
};

static inline const struct headers *row_headers(struct row_headers *h, const char *text)
{
    headers_init(&h->list, h->storage, HEADERS_MAX);
    for (struct slice rest = slice_of(text); rest.len > 0;) {
        size_t len = slice_find(rest, '\n');
        struct slice line = { rest.ptr, len };
        size_t colon = slice_find(line, ':');
        assert_true(colon < line.len);
        struct slice value =
            slice_trim((struct slice){ line.ptr + colon + 1, line.len - colon - 1 });
        assert_true(headers_add(&h->list, (struct slice){ line.ptr, colon }, value));
        size_t taken = len < rest.len ? len + 1 : len;
        rest.ptr += taken;
        rest.len -= taken;
    }
    return &h->list;
}

/* Says which row it was before the assertion says what. */
#define ROW_CHECK(row_text, got, expected)                                                         \
    do {                                                                                           \
        intmax_t got_ = (intmax_t)(got), expected_ = (intmax_t)(expected);                         \
        if (got_ != expected_)                                                                     \
            fail_msg("row %zu \"%s\": %s is %jd, not %jd", i, (row_text), #got, got_, expected_);  \
    } while (0)
#endif
