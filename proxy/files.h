/* proxy/files.h: a directory as an origin (`root:`): which file answers a path, and with which head. Opens files, sends
 * nothing. Any thread; blocking only as open() and fstat() are.
 */
#ifndef PROXY_FILES_H
#define PROXY_FILES_H
#include "base/arena.h"
#include "base/headers.h"
#include "config/config.h"

struct files_answer {
    uint16_t status; /* 200, 301 (a directory without its slash), 304, 400, 403, 404 or 500; 405 is
                        the caller's */
    int fd;          /* status 200: open for reading, the caller closes it; else -1 */
    uint64_t length; /* bytes, status 200 */
    struct slice type;   /* Content-Type */
    struct slice coding; /* Content-Encoding of a precompressed sibling, or empty */
    struct slice etag;   /* quoted, differs between codings */
    int64_t modified_s;
    struct slice location; /* 301 */
    bool varies;           /* a precompressed sibling exists: Vary: Accept-Encoding */
};
/* `path` begins with '/', still percent-encoded, without query. `request` for Accept-Encoding,
 * If-None-Match, If-Modified-Since. The slices live in `a`. Never leaves the root: dot-dot (encoded
 * or not), NUL, and links out unless follows_symlinks; resolved by openat2(RESOLVE_BENEATH) where
 * the kernel has it. Names that begin with a dot are 404, /.well-known/ excepted. No listing. */
void files_open(const struct config_origin *origin, struct slice path,
                const struct headers *request, struct arena *a, struct files_answer *out);
/* Content-Type for a file name, by its ending: "text/html; charset=utf-8" …;
 * application/octet-stream when not known. */
struct slice files_type_of(struct slice name);
#endif
