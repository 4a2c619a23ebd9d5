/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Sleeping: w_park_start() precedes the use of any lock whose waiters sleep. */
#ifndef POUNDLOCK_WORLD_KERNEL_PARK_H
#define POUNDLOCK_WORLD_KERNEL_PARK_H

void w_park_start(void);

/*
 * A node for a waiter that may leave it in its queue, from the pool of the current task's user
 * (nodes.h). Any task may return it. NULL if the user has no more: the waiter then keeps its node
 * on its stack, and must not leave. Not in modules, whose waiters do not leave.
 */
void *w_node_claim(void);

#endif
