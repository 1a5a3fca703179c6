/* tests/fuzz/fuzz_admin_answer.c: what the command line reads from whoever answers, and what the
 * guards read of a request's fields. */
#include "admin/admin_internal.h"
#include "admin/client_internal.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = slice_to_string((struct slice){ (const char *)data, size });
    char why[CLIENT_WHY_BYTES] = "";
    struct client_answer answer = { 0 };
    (void)admin_host_is_local(text, "127.0.0.1");
    (void)admin_token_matches(text, "secret");
    CHECK(!admin_origin_is_own("null", text));
    (void)admin_origin_is_own(text, "localhost:6081");
    int early = client_read_answer(text, size, false, &answer, why);
    CHECK(early != 1 || (answer.body >= text && answer.body + answer.length <= text + size));
    CHECK(early != -1 || why[0] != '\0');
    free(text);

    text = slice_to_string((struct slice){ (const char *)data, size });
    CHECK(client_read_answer(text, size, true, &answer, why) != 0); /* at the end it is decided */
    free(text);
    return 0;
}
