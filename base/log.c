/* base/log.c: see log.h. */
#include "base/log.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { LINES_PER_SECOND = 10, LINE_BYTES = 2048 };
static _Atomic int level_shown = LOG_INFO;

void log_set_level(enum log_level level)
{
    level_shown = (int)level;
}

/* Whether this line may be written; sets how many were left out before it. */
static bool admit(struct log_site *site, uint32_t *left_out)
{
    int64_t now = clock_wall_s();
    *left_out = 0;
    if (atomic_exchange(&site->second, now) != now) {
        atomic_store(&site->count, 0);
        *left_out = atomic_exchange(&site->dropped, 0);
    }
    if (atomic_fetch_add(&site->count, 1) < LINES_PER_SECOND)
        return true;
    atomic_fetch_add(&site->dropped, 1);
    return false;
}

void log_write(struct log_site *site, enum log_level level, const char *format, ...)
{
    static const char *const names[] = { "error", "warn", "info", "debug" };
    uint32_t left_out;
    if ((int)level > level_shown || !admit(site, &left_out))
        return;

    char line[LINE_BYTES];
    time_t now = (time_t)clock_wall_s();
    struct tm tm;
    gmtime_r(&now, &tm);
    size_t len = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%SZ ", &tm);
    len += (size_t)snprintf(line + len, sizeof line - len, "%s ", names[level]);
    if (left_out > 0)
        len += (size_t)snprintf(line + len, sizeof line - len, "(%u lines like this left out) ",
                                left_out);

    va_list args;
    va_start(args, format);
    int more = vsnprintf(line + len, sizeof line - len - 1, format, args);
    va_end(args);
    if (more > 0)
        len += (size_t)more;
    if (len > sizeof line - 2)
        len = sizeof line - 2;
    for (size_t i = 0; i < len;
         i++) /* what a peer sent must not forge lines or move the terminal */
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    line[len++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, len);
    (void)written; /* there is nowhere left to complain */
}
