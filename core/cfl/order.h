/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The order of CFL: hold times by thread and by group, who may overtake whom because of them, and
 * the shuffling of the queue by them. It is independent of the lock's word: cfl.h has the word of
 * locks that have room for it.
 *
 * From: Park and Eom, "Locks as a resource: fairly scheduling lock occupation with CFL", PPoPP'24,
 * section 3.
 *
 * What the paper leaves open, and departures from it:
 *  - Virtual lock hold time (vLHT) is kept per thread and lock, in the thread's account
 *    (w_account). The paper shares one variable among all locks, so a thread that holds one for
 *    long is kept from the others.
 *  - The start of a hold is stored in the lock and written by its holder (`start`): nested locks
 *    would overwrite a variable of the thread.
 *  - A hold is charged if a thread waits when it ends, to the thread that ends it. Nobody is hurt
 *    by other holds. They cost one reading of the clock instead of two, and an uncontended thread
 *    accumulates no debt.
 *  - The reverse walk (section 3.2.2) pins each node before it reads it (`before`, below). The
 *    walker frees a node that has left in the meantime, and nobody waits for the walker.
 *  - The averages cover all waiters, and are computed before anybody is moved by them, not after.
 *    Only the moving resumes where the previous shuffler stopped.
 *  - If no waiter meets all criteria, the head places one: of the group with the least time behind
 *    it, in that group's domain with the lowest average, and at or below that average.
 *  - A newcomer starts at its group's average, as in section 3.4.3. "Much lower" is defined as
 *    follows. A thread's vLHT advances in real time while it is away from the lock, until it is no
 *    more than CFL_BEHIND behind the average. Up to that it is owed what others had in the
 *    meantime: to return, to wake another thread and to be preempted take time, which must not cost
 *    it its share.
 *  - A group's time is the sum of its holds, kept in the lock, and advances likewise. The sum over
 *    the current waiters would measure the number of a group's threads, not its holds.
 *  - Bypasses are counted against `bypass`: moves per node (part/shuffle.h), and thefts since the
 *    last head entered the queue that was not moved forward. A head that was would allow more
 *    overtaking of the waiters that it overtook.
 *  - If all waiters sleep, none can shuffle: a head that slept does it once it has the lock.
 *  - Under grace_period, the waiters of the chosen domain are compared with its own average: they
 *    soon exceed the average of all.
 *  - A newcomer that has had less than the head may overtake it as well: the averages are old when
 *    no waiter is awake to compute them.
 *  - Nobody overtakes a group that wants the lock and has had less (`least_group`), which may not
 *    be the head's.
 *  - A head briefly yields to the last holder if that is still owed more, and backs off if it does
 *    not come back.
 *  - A newcomer of another domain than the chosen one may steal the lock if it is below that
 *    domain's average: its own domain would be the chosen one if it waited.
 */
#ifndef POUNDLOCK_CFL_ORDER_H
#define POUNDLOCK_CFL_ORDER_H

#include "cfl/charge.h"
#include "cfl/choose.h"
#include "cfl/walk.h"

/*
 * Records, from @node to @last, the node before each, for the reverse walk, and which were moved
 * forward.
 */
static inline void cfl_link_back(struct shfl_node *node, struct shfl_node *last)
{
	struct shfl_node *next;

	for (; node != last; node = next) {
		/* relaxed, both: written by the shuffler; [SHUFFLE-1] publishes them */
		next = w_load_relaxed(&node->next);
		w_store_relaxed(&cfl_node(next)->before, cfl_node(node));
		if (next->moves != node->moves)
			next->where |= CFL_MOVED;
	}
}

/*
 * As the head, if nobody meets all criteria, brings the best one of the others forward. Fills
 * @tally again.
 */
static inline struct shfl_node *cfl_place_one(struct cfl *lock, struct shfl_node *node,
					      struct shfl_stop stop, bool wake,
					      struct cfl_policy policy, struct cfl_tally *tally)
{
	struct shfl_order order = {.rank = cfl_rank, .bound = node->batch + 1};
	struct cfl_target target;

	tally->present = 0;
	cfl_look_ahead(lock, node, tally);
	if (node->batch >= policy.bypass || !tally->present)
		return node;
	target = cfl_choose_fallback(lock, tally);
	order.context = &target;
	node->seen = NULL;
	return shfl_walk(node, stop, wake, order, POLICY_STAY);
}

/* As the shuffler, does one turn of its work. Section 3.2.2, figure 4. */
static inline void cfl_shuffle(struct cfl *lock, struct cfl_node *self, struct shfl_stop stop,
			       bool head, bool wake, struct cfl_policy policy)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	struct shfl_node *node = &self->node, *last = node;
	struct cfl_tally tally;
	struct cfl_target target;
	struct shfl_order order = {.rank = cfl_rank, .context = &target, .bound = policy.bypass};
	/* relaxed, both: written by the shuffler */
	uint32_t where = w_load_relaxed(&ledger->group) * CFL_DOMAINS +
			 w_load_relaxed(&ledger->domain) % CFL_DOMAINS;

	tally.present = 0;
	shfl_begin(node);
	cfl_look_back(lock, self, &tally);
	cfl_look_ahead(lock, node, &tally);
	target = cfl_choose(lock, &tally, policy);
	if (target.where != where)
		node->seen = NULL;
	last = shfl_walk(node, stop, wake, order, POLICY_STAY);
	if (head && last == node)
		last = cfl_place_one(lock, node, stop, wake, policy, &tally);
	cfl_link_back(node, last);
	shfl_end(node, last, order);
}

/* Waits until @node is the head, and shuffles when it has the role. Returns false at @deadline. */
static inline bool cfl_wait_turn(struct cfl *lock, struct cfl_node *node, struct cfl_policy policy,
				 const struct w_deadline *deadline, bool *slept)
{
	struct shfl_stop stop = {.word = &node->node.status, .mask = ~0u, .value = SHFL_READY};
	uint32_t seen = SHFL_WAITING;
	enum shfl_turn turn;

	while ((turn = shfl_wait(&node->node, &seen, wait_overtaken(policy.wait), policy.wait,
				 deadline, slept)) == SHFL_TURN_SHUFFLER)
		cfl_shuffle(lock, node, stop, false, false, policy);
	return turn == SHFL_TURN_HEAD;
}

#endif
