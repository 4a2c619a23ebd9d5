/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The route: a closed tour over the CPUs that the process may use, on which neighbours are close. It comes from a file
 * (docs/route.md), else from what sysfs tells of the machine.
 */
#ifndef POUNDLOCK_ROUTE_H
#define POUNDLOCK_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "world.h"

/* A file of this size, or a larger one, is no route. */
#define W_ROUTE_BYTES 65536

struct w_cpus {
	uint64_t words[W_CPUS / 64];
};

static inline bool w_cpus_has(const struct w_cpus *cpus, size_t cpu)
{
	return cpu < W_CPUS && cpus->words[cpu / 64] >> cpu % 64 & 1;
}

static inline void w_cpus_add(struct w_cpus *cpus, size_t cpu)
{
	cpus->words[cpu / 64] |= (uint64_t)1 << cpu % 64;
}

/*
 * Notes, once, which CPUs the process may use and where its environment says that a route is: later a thread may have
 * bound itself to one CPU, and another may be changing the environment.
 */
W_HIDDEN void w_route_start(void);

/*
 * Both fill @positions, by CPU, with places from 0 to one less than there are CPUs in @usable: each of those has a place
 * of its own, and any other CPU shares one, of a neighbour if the route has it. Not for two threads at once, nor while
 * another reads the topology.
 */

/* The route that follows from the sysfs at @root: SMT siblings, L3, node, die and package stay together. */
W_HIDDEN void w_route_derive(const char *root, const struct w_cpus *usable, uint16_t positions[W_CPUS]);

enum w_route_file { W_ROUTE_MISSING, W_ROUTE_REFUSED, W_ROUTE_READ };

/* The route in the file at @path. If it does not fit the machine at @root or @usable, why not is written into @error. */
W_HIDDEN enum w_route_file w_route_read(const char *path, const char *root, const struct w_cpus *usable,
					uint16_t positions[W_CPUS], char *error, size_t size);

/* The process's route: up to @size of its CPUs in order, into @list. Returns how many there are. Waits for who reads it. */
W_HIDDEN size_t w_route_list(unsigned *list, size_t size);

/* The file that the process's route, once w_route_list() has been called, comes from; NULL if from the topology. */
W_HIDDEN const char *w_route_file(void);

#endif
