/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Finds the nodes of stock's spin lock queue, which no symbol exports, and proves by a waiter of
 * another CPU that they are what is expected. Complaints are in the log.
 */
#ifndef POUNDLOCK_KERNEL_HOOK_PROBE_H
#define POUNDLOCK_KERNEL_HOOK_PROBE_H

#include <linux/percpu.h>
#include <linux/types.h>

#define PROBE_NODES 4 /* per CPU */
#define PROBE_NODE_BYTES 32
#define PROBE_COUNT_OFFSET 12 /* in a CPU's first node: its nodes in use */

/* The nodes of each CPU; NULL if they are not found or not what is expected. */
void __percpu *probe_nodes(void);

/* Whether a waiter of another CPU enters a queue of the nodes @nodes, and gets the lock. */
bool probe_waits(const void __percpu *nodes);

#endif
