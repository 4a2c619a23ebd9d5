/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Locality domains of CPUs, from sysfs. */
#ifndef POUNDLOCK_TOPOLOGY_H
#define POUNDLOCK_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum w_domain_kind { W_DOMAIN_L3, W_DOMAIN_DIE, W_DOMAIN_NODE, W_DOMAIN_PACKAGE, W_DOMAIN_CORE };

/*
 * Looks up the kind called @name ("l3", "die", "node", "package", "core"). Returns false if there
 * is none.
 */
bool w_domain_kind_by_name(const char *name, enum w_domain_kind *kind);

/*
 * Chooses the kind of domain. Without effect once a domain has been read. The default is the
 * last-level cache.
 */
void w_domain_choose(enum w_domain_kind kind);

/*
 * Fills @domains, by CPU, with the number of each CPU's domain of @kind, from the sysfs at @root
 * (usually "/sys"). Domains are numbered from 0 in the order of their first CPUs; for
 * W_DOMAIN_NODE, of the nodes. 0 for a CPU that sysfs does not describe. Returns the number of
 * domains. Not thread-safe.
 */
size_t w_topology_read(const char *root, enum w_domain_kind kind, uint16_t *domains, size_t cpus);

/*
 * Fills @parents, by domain, with the number of the part of @kind that each is in. @domains has
 * @count domains, by CPU. Returns the number of parts; 0, with @parents unchanged, if there is one,
 * or as many as domains. Not thread-safe.
 */
uint32_t w_topology_parents(const char *root, enum w_domain_kind kind, const uint16_t *domains,
			    uint32_t count, uint16_t *parents);

/*
 * Makes the caller the only thread that reads the topology, until w_topology_release(). Returns
 * false if another thread is reading it.
 */
bool w_topology_claim(void);
void w_topology_release(void);

/*
 * Reads the first line of the file at @path into @text, without its end. Returns false if it fails.
 */
bool w_topology_text(const char *path, char *text, size_t size);

/*
 * Removes the next range from @list ("0-3,8,10-11"). Returns false at its end or if it is
 * malformed.
 */
bool w_topology_range(const char **list, size_t *first, size_t *last);

#endif
