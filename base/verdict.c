/* base/verdict.c: the words of verdict.h. Any thread. */
#include "base/verdict.h"

static const struct {
    const char *word, *help;
} outcomes[] = {
#define X(id, word, help) { word, help },
    OUTCOMES(X)
#undef X
};

static const struct {
    const char *word, *fwd, *text;
} reasons[] = {
#define X(id, word, fwd, text) { word, fwd, text },
    REASONS(X)
#undef X
};

const char *outcome_word(enum outcome o)
{
    CHECK(o < OUTCOME_COUNT);
    return outcomes[o].word;
}

const char *outcome_help(enum outcome o)
{
    CHECK(o < OUTCOME_COUNT);
    return outcomes[o].help;
}

const char *reason_word(enum reason r)
{
    CHECK(r < REASON_COUNT);
    return reasons[r].word;
}

const char *reason_fwd(enum reason r)
{
    CHECK(r < REASON_COUNT);
    return reasons[r].fwd;
}

const char *reason_text(enum reason r)
{
    CHECK(r < REASON_COUNT);
    return reasons[r].text;
}
