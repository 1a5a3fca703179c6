/* proxy/listener.h: listening sockets: one per worker and address (SO_REUSEPORT); a unix socket is shared by all.
 *
 * Life     listener_bind() per worker on the main thread, before rights are dropped -> worker_new() takes the list ->
 *          listener_open()/_close() on the worker's thread.
 */
#ifndef PROXY_LISTENER_H
#define PROXY_LISTENER_H
#include "config/config.h"

struct worker;
struct listener;

/* Appends to *list a socket bound to each address of the snapshot. `first` is worker 0's list when
 * this is another worker: unix sockets are duplicated from it. False and a sentence in `why`. */
must_check bool listener_bind(const struct config *config, const struct listener *first,
                              struct listener **list, char why[256]);
void listener_free_list(struct listener **list);
void listener_open(struct worker *w);
/* Takes what waits in the queues first, so that a drain loses nobody. */
void listener_close(struct worker *w);
/* Ten times a second: listeners that were paused (no descriptors) try again. */
void listener_tick(struct worker *w);

/* Connections per client address; only kept while clients.max_connections_per_address is set. */
struct peer;
struct address_table;
struct address_table *address_table_new(void);
void address_table_free(struct address_table **t);
/* False when this address has `max` already. */
must_check bool address_table_add(struct address_table *t, const struct peer *p, uint32_t max);
void address_table_remove(struct address_table *t, const struct peer *p);
#endif
