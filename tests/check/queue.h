/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The invariant of a shuffled queue (core/part/shuffle.h), checked in every state on the newest
 * values:
 *
 * - a queued node links only to queued nodes, and the links have no cycle;
 * - at most one node links to a node, except to the one that is being moved;
 * - only a head that is leaving precedes the queue head;
 * - at most one waiter has the shuffler's role.
 *
 * A lost node needs no check here: its waiter would never finish.
 */
#ifndef POUNDLOCK_CHECK_QUEUE_H
#define POUNDLOCK_CHECK_QUEUE_H

#include "check.h"
#include "part/shuffle.h"

#define QUEUE_THREADS 8

/* The thread's node, if it is in the queue. */
static struct shfl_node *queued(uint32_t thread)
{
	struct shfl_node *node = (struct shfl_node *)check_arrival(thread);

	return node && w_load_relaxed(&node->status) != SHFL_FREE ? node : NULL;
}

static bool is_queued(const struct shfl_node *node)
{
	for (uint32_t thread = 0; thread < QUEUE_THREADS; thread++)
		if (queued(thread) == node)
			return true;
	return false;
}

/* The number of queued nodes that link to @node. */
static uint32_t ways_to(const struct shfl_node *node)
{
	uint32_t ways = 0;

	for (uint32_t thread = 0; thread < QUEUE_THREADS; thread++) {
		struct shfl_node *before = queued(thread);

		ways += before && w_load_relaxed(&before->next) == node;
	}
	return ways;
}

/* Whether no node links to @node, except a head that is leaving. */
static bool is_foremost(const struct shfl_node *node)
{
	for (uint32_t thread = 0; thread < QUEUE_THREADS; thread++) {
		struct shfl_node *before = queued(thread);

		if (before && w_load_relaxed(&before->next) == node && ways_to(before))
			return false;
	}
	return true;
}

/* Whether @node can no longer pass the shuffler's role: it is alone in the queue, or is leaving. */
static bool is_last_or_leaving(struct shfl_node *node)
{
	struct shfl_node *next = w_load_relaxed(&node->next);

	return !ways_to(node) && (!next || w_load_relaxed(&next->status) == SHFL_READY);
}

static bool ends(struct shfl_node *node)
{
	for (uint32_t steps = 0; node && steps <= QUEUE_THREADS; steps++)
		node = w_load_relaxed(&node->next);
	return !node;
}

static void queue_invariant(void)
{
	uint32_t shufflers = 0, doubled = 0;

	for (uint32_t thread = 0; thread < QUEUE_THREADS; thread++) {
		struct shfl_node *node = queued(thread), *next;
		uint32_t ways;

		if (!node)
			continue;
		next = w_load_relaxed(&node->next);
		ways = ways_to(node);
		check_assert(!next || is_queued(next));
		check_assert(ends(node));
		check_assert(ways <= 2);
		check_assert(w_load_relaxed(&node->status) != SHFL_READY || is_foremost(node));
		doubled += ways == 2;
		shufflers += w_load_relaxed(&node->shuffler) && !is_last_or_leaving(node);
	}
	check_assert(doubled <= 1);
	check_assert(shufflers <= 1);
}

#endif
