/* base/log.h: the program's own log (not the access log): one line an event, to standard error.
 *
 * Each line: time, level, sentence. One write() a line, so lines of several threads never mix; a storm of the same
 * call site is held to a few lines a second, with a count of what was left out. Any thread.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H
#include "base/base.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

struct log_site { /* one per call site, static */
    _Atomic int64_t second;
    _Atomic uint32_t count, dropped;
};

void log_set_level(enum log_level level);
void log_write(struct log_site *site, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define LOG_AT(level, ...)                                                                         \
    do {                                                                                           \
        static struct log_site log_site_here;                                                      \
        log_write(&log_site_here, (level), __VA_ARGS__);                                           \
    } while (0)
#define log_error(...) LOG_AT(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  LOG_AT(LOG_WARN, __VA_ARGS__)
#define log_info(...)  LOG_AT(LOG_INFO, __VA_ARGS__)
#define log_debug(...) LOG_AT(LOG_DEBUG, __VA_ARGS__)
#endif
