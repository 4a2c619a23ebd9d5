/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The route: a closed tour over the CPUs that the process may use, on which neighbours are close.
 * It comes from a file (docs/route.md), or from sysfs.
 */
#ifndef POUNDLOCK_ROUTE_H
#define POUNDLOCK_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "world.h"

/* A file of this size or larger is rejected. */
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
 * Records once which CPUs the process may use and which route its environment names: later, a
 * thread may be bound to one CPU, and another may be changing the environment.
 */
W_HIDDEN void w_route_start(void);

/*
 * Both functions fill @positions, by CPU, with positions from 0 to the number of CPUs in @usable
 * minus one. Each of these CPUs has a position of its own; any other CPU shares that of a neighbour
 * if the route contains it. Not thread-safe, nor while another thread reads the topology.
 */

/*
 * Derives the route from the sysfs at @root: SMT siblings, L3, node, die and package stay together.
 */
W_HIDDEN void w_route_derive(const char *root, const struct w_cpus *usable,
			     uint16_t positions[W_CPUS]);

enum w_route_file { W_ROUTE_MISSING, W_ROUTE_REFUSED, W_ROUTE_READ };

/*
 * Reads the route from the file at @path. If it does not fit the machine at @root or @usable,
 * writes the reason into @error.
 */
W_HIDDEN enum w_route_file w_route_read(const char *path, const char *root,
					const struct w_cpus *usable, uint16_t positions[W_CPUS],
					char *error, size_t size);

/*
 * Writes up to @size CPUs of the process's route, in order, into @list. Returns how many there are.
 * Waits for a thread that reads it.
 */
W_HIDDEN size_t w_route_list(unsigned *list, size_t size);

/*
 * The file of the process's route, after w_route_list(); NULL if it was derived from the topology.
 */
W_HIDDEN const char *w_route_file(void);

#endif
