/* admin/client_stat.h: how `larder stat` prints what GET /stats said. */
#ifndef ADMIN_CLIENT_STAT_H
#define ADMIN_CLIENT_STAT_H
#include <jansson.h>
#include <stdio.h>

/* `before` is an earlier reading, for rates per second; or NULL. Members that are missing are shown
 * as zero. */
void client_print_stat(const json_t *now, const json_t *before, FILE *out);
#endif
