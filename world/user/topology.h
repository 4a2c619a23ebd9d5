/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Which CPUs share a domain, from sysfs.
 */
#ifndef POUNDLOCK_TOPOLOGY_H
#define POUNDLOCK_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum w_domain_kind { W_DOMAIN_L3, W_DOMAIN_DIE, W_DOMAIN_NODE, W_DOMAIN_PACKAGE, W_DOMAIN_CORE };

/* The kind called @name ("l3", "die", "node", "package", "core") into @kind; false if there is none. */
bool w_domain_kind_by_name(const char *name, enum w_domain_kind *kind);

/* Chooses the kind of domain; without effect once a domain has been asked for. The default is the last-level cache. */
void w_domain_choose(enum w_domain_kind kind);

/*
 * Fills @domains, by CPU, with the number of each CPU's domain of @kind, counted from 0 in the order of their first
 * CPUs (of the nodes, for W_DOMAIN_NODE), as the sysfs at @root (usually "/sys") tells; 0 for a CPU of which it tells
 * nothing. Returns how many domains there are. Not for two threads at once.
 */
size_t w_topology_read(const char *root, enum w_domain_kind kind, uint16_t *domains, size_t cpus);

/*
 * Fills @parents, by domain, with the number of what of @kind each is in, as @root tells. @domains are @count, by CPU. Returns
 * how many of @kind there are; 0, and @parents is as it was, if that is one, or as many as domains. As w_topology_read().
 */
uint32_t w_topology_parents(const char *root, enum w_domain_kind kind, const uint16_t *domains, uint32_t count,
			    uint16_t *parents);

/* Makes the caller the one thread that reads the topology; false if another is at it. To be released. */
bool w_topology_claim(void);
void w_topology_release(void);

/* Reads the file at @path, less its first line's end and what follows, into @text. False if there is none. */
bool w_topology_text(const char *path, char *text, size_t size);

/* Takes the next range off @list ("0-3,8,10-11"); false at its end, or where it makes no sense. */
bool w_topology_range(const char **list, size_t *first, size_t *last);

#endif
