/* proxy/files_internal.h: what files.c, files_path.c, types.c and their tests share. */
#ifndef PROXY_FILES_INTERNAL_H
#define PROXY_FILES_INTERNAL_H
#include "proxy/files.h"

bool files_type_is_packed(struct slice name); /* compressed already */
bool files_types_are_sorted(void);

/* ---- files_path.c ---------------------------------------------------------------------------- */

/* A request's path as a name beneath the root: decoded, single slashes, none in front. */
struct files_name {
    char *text; /* terminated, with room for FILES_ENDING_ROOM more; "" is the root itself */
    size_t length;
    bool has_slash; /* the path ended with one: a directory is meant */
};
enum { FILES_ENDING_ROOM = 8 };
/* 0, or the status that refuses it. */
uint16_t files_name_read(struct slice path, struct arena *a, struct files_name *out);
/* The path with a slash at its end, safe as a Location: it cannot be read as another host's (no
 * "//" or "/\" in front), and what is not allowed in a URI is encoded. */
struct slice files_location(struct slice path, struct arena *a);

/* How a name is opened: links out of the root refused, or followed (the operator's choice). */
enum files_links { FILES_LINKS_WITHIN, FILES_LINKS_ALL };
/* A descriptor, or -1 and errno: EXDEV is a link that leaves the root. `flags` as for open(); never
 * waits for a FIFO. */
int files_open_beneath(int root, const char *name, int flags, enum files_links links);
/* The same without openat2(), as on a kernel that has none. */
int files_open_walking(int root, const char *name, int flags, enum files_links links);
#endif
