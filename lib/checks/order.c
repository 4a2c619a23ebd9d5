/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The graph of the locks' order: an edge from each lock that a thread held to each lock that it
 * then waited for. A new edge that closes a cycle is an inversion, even if the threads never met.
 *
 * A search goes along edges in the order of distance, so that the reported cycle is a shortest one.
 */
#include "checks.h"

static struct debug_edge *free_edges;

static struct debug_edge *new_edge(void)
{
	struct debug_edge *edge = free_edges;

	if (!edge)
		return debug_take(sizeof(*edge));
	free_edges = edge->next;
	return edge;
}

static void free_edge(struct debug_edge *edge)
{
	edge->next = free_edges;
	free_edges = edge;
}

/* The edge from @from to @to, or NULL. Frees edges to destroyed locks on the way. */
static const struct debug_edge *edge_to(struct debug_lock *from, const struct debug_lock *to)
{
	struct debug_edge **link = &from->edges, *edge;

	while ((edge = *link)) {
		if (edge->to_life != edge->to->life) {
			*link = edge->next;
			free_edge(edge);
		} else if (edge->to == to)
			return edge;
		else
			link = &edge->next;
	}
	return NULL;
}

/*
 * Whether there is a path from @from to @to. Then each lock on it, from @to back, has the edge
 * `by` that leads to it from `previous`.
 */
static bool find_path(struct debug_lock *from, struct debug_lock *to)
{
	static uint32_t search;
	struct debug_lock *last = from;

	from->search = ++search;
	from->next_found = NULL;
	for (struct debug_lock *lock = from; lock; lock = lock->next_found) {
		(void)edge_to(lock, NULL);
		for (const struct debug_edge *edge = lock->edges; edge; edge = edge->next) {
			struct debug_lock *found = edge->to;

			if (found->search == search)
				continue;
			found->search = search;
			found->previous = lock;
			found->by = edge;
			found->next_found = NULL;
			last = last->next_found = found;
			if (found == to)
				return true;
		}
	}
	return false;
}

/* Describes that @hold's thread waits for @lock at @stack, and the path from @lock to @hold's. */
static void describe(const struct debug_hold *hold, const struct debug_lock *lock,
		     const struct debug_stack *stack, struct debug_report *report)
{
	uint32_t tid = hold->thread->tid;

	report->error = DEBUG_order;
	debug_add_site(report, (struct debug_site){tid, "locks", lock->address, hold->lock->address,
						   stack});
	debug_add_site(report,
		       (struct debug_site){tid, "had locked", hold->lock->address, 0, hold->stack});
	for (struct debug_lock *to = hold->lock; to != lock; to = to->previous) {
		debug_add_site(report,
			       (struct debug_site){to->by->tid, "locked", to->address,
						   to->previous->address, to->by->locked_at});
		debug_add_site(report,
			       (struct debug_site){to->by->tid, "had locked", to->previous->address,
						   0, to->by->held_at});
	}
}

void debug_order(struct debug_thread *self, struct debug_lock *lock, struct debug_stack *stack,
		 struct debug_report *report)
{
	for (struct debug_hold *hold = self->holds; hold; hold = hold->next_of_thread) {
		struct debug_edge *edge;

		if (hold->lock == lock || edge_to(hold->lock, lock))
			continue;
		if (!report->sites && !(stack->reported >> DEBUG_order & 1) &&
		    find_path(lock, hold->lock)) {
			stack->reported |= 1u << DEBUG_order;
			describe(hold, lock, stack, report);
		}
		edge = new_edge();
		if (!edge)
			return;
		*edge = (struct debug_edge){.next = hold->lock->edges,
					    .to = lock,
					    .to_life = lock->life,
					    .tid = self->tid,
					    .held_at = hold->stack,
					    .locked_at = stack};
		hold->lock->edges = edge;
	}
}

void debug_order_forget(struct debug_lock *lock)
{
	while (lock->edges) {
		struct debug_edge *edge = lock->edges;

		lock->edges = edge->next;
		free_edge(edge);
	}
}
