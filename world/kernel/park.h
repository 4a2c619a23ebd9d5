/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Sleeping: w_park_start() precedes the use of any lock whose waiters sleep. */
#ifndef POUNDLOCK_WORLD_KERNEL_PARK_H
#define POUNDLOCK_WORLD_KERNEL_PARK_H

void w_park_start(void);

/*
 * A node for a waiter that may leave it in its queue, from a pool for all tasks, any of which may
 * return it. NULL if the pool is empty: the waiter then keeps its node on its stack, and must not
 * leave.
 */
void *w_node_claim(void);

#endif
