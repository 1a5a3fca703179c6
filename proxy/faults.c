/* proxy/faults.c: the table of faults.h as data. */
#include "proxy/faults.h"

static const struct fault_row rows[] = {
#define X(id, code, again, ends, why, sentence)                                                           \
    { .name = #id, .status = code, .retry = again, .outcome = OUTCOME_##ends, .reason = REASON_##why, \
      .text = sentence },
    FAULTS(X)
#undef X
};

const struct fault_row *fault_row(enum fault f)
{
    CHECK(f < FAULT_COUNT);
    return &rows[f];
}

enum fault fault_of_reason(enum reason r)
{
    for (enum fault f = FAULT_ORIGIN_UNRESOLVED; f < FAULT_COUNT; f++)
        if (rows[f].reason == r)
            return f;
    return FAULT_NONE;
}
