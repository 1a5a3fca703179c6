/* proxy/accesslog_internal.h: what the two halves of the access log share: accesslog.c moves
 * records and bytes, accesslog_format.c turns a record into a line. Not for other files.
 */
#ifndef PROXY_ACCESSLOG_INTERNAL_H
#define PROXY_ACCESSLOG_INTERNAL_H
#include "proxy/accesslog.h"

/* Bytes that grow at the end. */
struct line_buffer {
    char *ptr;
    size_t length, capacity;
};
void line_buffer_add(struct line_buffer *b, const char *bytes, size_t length);
void line_buffer_fini(struct line_buffer *b);

/* A format that was read. It remembers the last second it wrote as text, so a format belongs to one
 * thread. */
struct access_format;
/* NULL and a sentence in `why`. */
struct access_format *access_format_new(const char *format, char why[256]);
void access_format_free(struct access_format **f);
/* Adds one line with its newline. Whatever the record holds, the line holds no other newline and no
 * control byte. */
void access_format_write(struct access_format *f, const struct access_record *r,
                         struct line_buffer *out);
#endif
