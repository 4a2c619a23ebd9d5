/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Sleeping: w_park_start() precedes the use of any lock whose waiters sleep. */
#ifndef POUNDLOCK_WORLD_KERNEL_PARK_H
#define POUNDLOCK_WORLD_KERNEL_PARK_H

void w_park_start(void);

struct w_deadline;

/* Sleeps for a tick, or until @deadline. */
void w_nap(const struct w_deadline *deadline);

/*
 * A node for a waiter that may leave it in its queue, from a pool for all tasks, any of which may
 * return it. NULL if the pool is empty.
 */
void *w_node_claim(void);

#endif
