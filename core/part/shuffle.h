/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shuffling: a queue of waiters that one of the waiters, the shuffler, re-orders while it waits. Only the order is here;
 * what the head of the queue waits for is the lock's (shfl_spin.h, shfl_mutex.h).
 *
 * From: Kashyap, Calciu, Cheng, Min, Kim, "Scalable and practical locking with shuffling", SOSP'19, figure 4 (lines
 * 44-108), figure 6 and the qlast optimisation of section 4.2.1.
 * Changed, and why:
 *  - The role of shuffler is a field of its own, and the status only wakes its new holder up (ROLE): a status that
 *    carried the role would lose it to the READY that a predecessor writes meanwhile.
 *  - Figure 6 leaves the transitions from PARKED to others; below they are all compare-exchanges or exchanges, so that a
 *    wake-up cannot fall between two of them.
 *  - A woken waiter (AWAKE, the paper's S_SPINNING) spins for one more budget and then sleeps again: on over-subscribed
 *    cores a waiter that spins without end takes the CPU that the holder needs.
 *  - A shuffler in the middle of the queue that finds nobody to move keeps the role until it is the head, instead of
 *    walking again and again.
 *  - Waiters can leave at a deadline.
 *  - The order is an argument (shfl_order): a policy of policy/policy.h, or CFL's. Those brought forward are sorted by rank,
 *    not only gathered.
 *  - How often a waiter is passed is counted for each, not only how long a batch is.
 *
 * The queue is MCS's: tail names the last waiter, next links lead to it. The invariants (section 4.2.1): a head keeps
 * its place; there is one shuffler at a time; only a head starts shuffling; the role goes only to waiters behind. The
 * second follows from: between the head that started and the waiter that has the role, all have batch > 0.
 *
 * The status of a node:
 *
 *   WAITING ──shuffler──▶ AWAKE ──shuffler──▶ ROLE       (WAITING ──▶ ROLE too)
 *      │ ▲                  │                  │
 *      │ └ (never again)    │                  │
 *      └──────── waiter, its spinning over: any of the three ──▶ PARKED ──shuffler, unpark──▶ AWAKE
 *
 *   any ──predecessor──▶ READY   its waiter is now the head
 *   any but READY ──waiter, at its deadline──▶ ABANDONED ──predecessor, which then acts for it──▶ READY
 *   any ──waiter, or who acts for it, when it leaves the queue──▶ FREE
 *
 * Who may write a node's fields: next its thread's successor once (from NULL), then the shuffler; batch and seen the
 * shuffler; moves the shuffler, and a head that leaves the next one to begin; note its thread, before it is linked.
 *
 * The bound. Waiters are brought forward over those that stay behind the batch. The moves are counted for as long as there
 * is a queue, and each waiter that stays remembers the count when it was first walked past; the one in front of them has
 * been passed most. Once that one has been passed `bound` times, the batch is over, and nobody passes it any more. In the
 * batch, the last is passed by those of the same walk that rank before it, and a batch has `bound` waiters at most. So a
 * waiter is passed at most twice `bound` times, whatever the policy says; once `bound` times if equals are all it knows.
 */
#ifndef POUNDLOCK_SHUFFLE_H
#define POUNDLOCK_SHUFFLE_H

#include "policy/policy.h"
#include "part/wait.h"

/* How many waiters may follow one another because of shuffling, and pass another one (figure 4, line 55); a test has less. */
#ifndef SHFL_MAX_BATCH
#define SHFL_MAX_BATCH 1024
#endif

enum {
	SHFL_FREE,
	SHFL_WAITING,
	SHFL_PARKED,
	SHFL_AWAKE,
	SHFL_ROLE,
	SHFL_READY,
	SHFL_ABANDONED,
};

/* On a stack (w_waiter_node()) it has a line of its own: others access it while its thread uses the stack around it. */
struct shfl_node {
	W_ATOMIC(uint32_t) status;
	W_ATOMIC(uint32_t) shuffler; /* whether this waiter has the role */
	W_ATOMIC(struct shfl_node *) next;
	struct shfl_node *seen; /* how far the role's holders have walked; NULL: to this node */
	uint32_t batch;         /* how many its batch had when it was placed; 0: in none */
	uint32_t note;          /* what the policy wants to know */
	uint32_t where;         /* more of it: CFL's */
	uint32_t moves; /* of a batch's last: how many there have been; of one in none: when it was passed by, or 0 */
};

typedef W_TAIL(struct shfl_node) shfl_tail;

/* What orders the waiters. */
struct shfl_order {
	/* As a policy's rank() (policy/policy.h), of @waiter, as @shuffler sees it. */
	uint32_t (*rank)(const void *context, const struct shfl_node *shuffler, const struct shfl_node *waiter);
	const void *context;
	uint32_t bound;
};

/* When a shuffler has better things to do: when *@word, less the bits outside @mask, is @value. */
struct shfl_stop {
	W_ATOMIC(uint32_t) *word;
	uint32_t mask, value;
};

static inline uint32_t shfl_rank(const void *context, const struct shfl_node *shuffler, const struct shfl_node *waiter)
{
	return policy_rank(*(const enum policy *)context, shuffler->note, waiter->note);
}

/* The order of @policy. */
static inline struct shfl_order shfl_by(const enum policy *policy, uint32_t bound)
{
	return (struct shfl_order){.rank = shfl_rank, .context = policy, .bound = bound};
}

/* ---- The shuffler ---- */

/* Makes @node's waiter look up from its sleep, off anybody's critical path. Figure 6, line 41. */
static inline void shfl_wake_early(struct shfl_node *node)
{
	uint32_t seen = SHFL_WAITING;

	/* relaxed, both: the waiter learns only that it should not sleep */
	if (w_compare_exchange_relaxed(&node->status, &seen, SHFL_AWAKE) || seen != SHFL_PARKED)
		return;
	if (w_compare_exchange_relaxed(&node->status, &seen, SHFL_AWAKE)) {
		w_event(wake_early);
		w_unpark(&node->status);
	}
}

/* Hands the role to @node, which finds it when it next looks: at once if it spins. */
static inline void shfl_pass_role(struct shfl_node *node)
{
	uint32_t seen = SHFL_WAITING;

	w_event(shuffle_pass);
	/* [SHUFFLE-1] release: pairs with [SHUFFLE-2]; the queue as we leave it, and node's batch
	 * and seen */
	w_store_release(&node->shuffler, 1);
	/* relaxed, both: only a nudge; the role is in `shuffler` */
	if (!w_compare_exchange_relaxed(&node->status, &seen, SHFL_ROLE) && seen == SHFL_AWAKE)
		(void)w_compare_exchange_relaxed(&node->status, &seen, SHFL_ROLE);
}

/* Whether @node's waiter is to shuffle. */
static inline bool shfl_has_role(struct shfl_node *node)
{
	/* [SHUFFLE-2] acquire: pairs with [SHUFFLE-1]; the last shuffler's work */
	return w_load_acquire(&node->shuffler);
}

/* Moves @current from behind @previous to behind @last. False if it is the last in the queue, where others link. */
static inline bool shfl_move(struct shfl_node *last, struct shfl_node *previous, struct shfl_node *current)
{
	/* [SHUFFLE-3] acquire: pairs with [SHUFFLE-7], [SHUFFLE-4]; the node behind */
	struct shfl_node *next = w_load_acquire(&current->next);

	if (!next)
		return false;
	/* [SHUFFLE-4] release: pairs with [SHUFFLE-3], [SHUFFLE-5], [SHUFFLE-12], [CFL_ORDER-4];
	 * each link publishes the node that it leads to. relaxed: our own view of a link that only
	 * we change */
	w_store_release(&previous->next, next);
	w_store_release(&current->next, w_load_relaxed(&last->next));
	w_store_release(&last->next, current);
	w_event(shuffle_move);
	return true;
}

/* Behind which of the batch from @node to @last a waiter of @rank goes: behind those that rank with it or before it. */
static inline struct shfl_node *shfl_place(struct shfl_order order, struct shfl_node *node, struct shfl_node *last,
					   uint32_t rank)
{
	struct shfl_node *place = node, *next;

	if (last == node || order.rank(order.context, node, last) <= rank)
		return last;
	while (place != last) {
		/* relaxed: a link of the batch, which only we change */
		next = w_load_relaxed(&place->next);
		if (order.rank(order.context, node, next) > rank)
			break;
		place = next;
	}
	return place;
}

/* Whether somebody may be brought forward to behind @last over those that stay there, if @passes any. */
static inline bool shfl_may_pass(struct shfl_node *last, bool passes, uint32_t bound)
{
	/* relaxed: the one in front, which we have walked past: we see it, and when that was */
	return !passes || last->moves - w_load_relaxed(&last->next)->moves < bound;
}

/* Notes that @current was placed behind @place in the batch that ends at @last, after so many @moves: the new last. */
static inline struct shfl_node *shfl_placed(struct shfl_node *last, struct shfl_node *place, struct shfl_node *current,
					    uint32_t moves)
{
	uint32_t batch = last->batch + 1;

	current->batch = batch;
	current->moves = moves;
	if (place == last)
		return current;
	last->batch = batch;
	last->moves = moves;
	return last;
}

/* Whether the batch that ends at @last may grow, and its shuffler has the time. */
static inline bool shfl_goes_on(struct shfl_node *last, struct shfl_stop stop, struct shfl_order order)
{
	/* relaxed: only a hint that walking has become a delay */
	return last->batch < order.bound && (w_load_relaxed(stop.word) & stop.mask) != stop.value;
}

/*
 * As the shuffler, walks the queue from where the last one stopped and brings the waiters that the order wants behind
 * @node, in a batch; ends at the end of the queue, or when it is told to stop. Returns the last of the batch, which knows
 * how far the walk went. @wake: wake the waiter that is placed right behind @node while there is none, too.
 */
static inline struct shfl_node *shfl_walk(struct shfl_node *node, struct shfl_stop stop, bool wake,
					  struct shfl_order order)
{
	struct shfl_node *last = node, *previous = node->seen ? node->seen : node, *current, *place;
	uint32_t rank;
	bool moves;

	while (shfl_goes_on(last, stop, order)) {
		/* [SHUFFLE-5] acquire: pairs with [SHUFFLE-7], [SHUFFLE-4]; the node there */
		current = w_load_acquire(&previous->next);
		if (!current)
			break;
		rank = order.rank(order.context, node, current);
		if (rank == POLICY_STAY) {
			if (!current->moves)
				current->moves = last->moves;
			previous = current;
			continue;
		}
		place = shfl_place(order, node, last, rank);
		moves = place != previous;
		if (!moves)
			previous = current;
		else if (!shfl_may_pass(last, previous != last, order.bound) || !shfl_move(place, previous, current))
			break;
		if (wake && last == node)
			shfl_wake_early(current);
		last = shfl_placed(last, place, current, last->moves + moves);
	}
	last->seen = previous == last ? NULL : previous;
	return last;
}

/* As the shuffler, begins. */
static inline void shfl_begin(struct shfl_node *node)
{
	/* relaxed: the role is ours; [SHUFFLE-1] passes it on */
	w_store_relaxed(&node->shuffler, 0);
	if (!node->batch)
		node->batch = 1;
	if (!node->moves)
		node->moves = 1;
	w_event(shuffle);
}

/* As the shuffler, ends: passes the role to the last of the batch, unless that is over. */
static inline void shfl_end(struct shfl_node *node, struct shfl_node *last, struct shfl_order order)
{
	if (last->batch >= order.bound)
		return;
	if (last != node)
		shfl_pass_role(last);
	else
		/* relaxed: kept, not passed */
		w_store_relaxed(&node->shuffler, 1);
}

/* As the shuffler, does all of its work. */
static inline void shfl_shuffle(struct shfl_node *node, struct shfl_stop stop, bool wake, struct shfl_order order)
{
	shfl_begin(node);
	shfl_end(node, shfl_walk(node, stop, wake, order), order);
}

/* Whether @node, the head, is to shuffle: it has the role, or nobody has batched it yet. Figure 4, line 23. */
static inline bool shfl_head_shuffles(struct shfl_node *node)
{
	return shfl_has_role(node) || !node->batch;
}

/* ---- The queue ---- */

/* Enters the queue with @node, of which the policy wants to know @note. True if it is the head. Figure 4, lines 10-14, 45. */
static inline bool shfl_enter(shfl_tail *tail, struct shfl_node *node, uint32_t note)
{
	struct shfl_node *previous;

	node->seen = NULL;
	node->batch = 0;
	node->note = note;
	node->moves = 0;
	/* relaxed, all: [SHUFFLE-6] and [SHUFFLE-7] publish them */
	w_store_relaxed(&node->status, SHFL_WAITING);
	w_store_relaxed(&node->shuffler, 0);
	w_store_relaxed(&node->next, NULL);
	w_event(contended);
	/* [SHUFFLE-6] acq_rel: acquire and release pair with [SHUFFLE-6]: the predecessor's node,
	 * which we write. Acquire pairs with [SHUFFLE-13] too: the queue has ended before it begins
	 * again */
	previous = w_exchange_acq_rel(tail, node);
	if (!previous)
		return true;
	/* [SHUFFLE-7] release: pairs with [SHUFFLE-3], [SHUFFLE-5], [SHUFFLE-12], [SHUFFLE-14],
	 * [CFL_ORDER-4]; our node's fields */
	w_store_release(&previous->next, node);
	return false;
}

/* Sleeps on @node, last seen with status @seen, until that changes: the new status; or to the deadline: PARKED. */
static inline uint32_t shfl_park(struct shfl_node *node, uint32_t seen, const struct w_deadline *deadline)
{
	/* relaxed: publishes nothing; the waker learns only that there is somebody to wake */
	if (!w_compare_exchange_relaxed(&node->status, &seen, SHFL_PARKED))
		/* [SHUFFLE-8] acquire: pairs with [SHUFFLE-15], as [SHUFFLE-10] */
		return w_load_acquire(&node->status);
	w_event(park);
	do {
		w_park(&node->status, SHFL_PARKED, deadline);
		/* [SHUFFLE-9] acquire: pairs with [SHUFFLE-15], as [SHUFFLE-10] */
		seen = w_load_acquire(&node->status);
	} while (seen == SHFL_PARKED && !w_expired(deadline));
	return seen;
}

/* What a waiter is told. */
enum shfl_turn { SHFL_TURN_HEAD, SHFL_TURN_SHUFFLER, SHFL_TURN_GONE };

/*
 * Waits until @node is the head or is to shuffle, its status having been *@seen before; at the deadline leaves it to its
 * predecessor to remove (SHFL_TURN_GONE). *@slept: whether the waiter ever slept. Figure 4, line 44; figure 6, line 13.
 */
static inline enum shfl_turn shfl_wait(struct shfl_node *node, uint32_t *seen, enum wait wait,
				       const struct w_deadline *deadline, bool *slept)
{
	enum w_how how = wait == WAIT_PARK ? W_QUEUED : wait_turn(wait);
	uint32_t now;

	for (;;) {
		/* [SHUFFLE-10] acquire: pairs with [SHUFFLE-15]; the order of the queue, and batch
		 * and role given to us */
		now = w_wait_acquire(&node->status, VAL != *seen, how, deadline);
		if (now == *seen && wait == WAIT_PARK && !w_expired(deadline)) {
			*slept = true;
			now = shfl_park(node, *seen, deadline);
		}
		if (now == SHFL_READY)
			return SHFL_TURN_HEAD;
		if (w_expired(deadline))
			break;
		*seen = now;
		if (shfl_has_role(node))
			return SHFL_TURN_SHUFFLER;
	}
	/* [SHUFFLE-11] acq_rel: release pairs with [SHUFFLE-15]: our links, for whoever acts for
	 * us; acquire pairs with [SHUFFLE-15]: we may have become the head in the last moment */
	if (w_exchange_acq_rel(&node->status, SHFL_ABANDONED) == SHFL_READY)
		return SHFL_TURN_HEAD;
	w_event(abandon);
	return SHFL_TURN_GONE;
}

/* Waits until @node is the head, shuffling when it is to: true. False at the deadline. As shfl_wait. */
static inline bool shfl_wait_turn(struct shfl_node *node, enum wait wait, const struct w_deadline *deadline,
				  bool *slept, struct shfl_order order)
{
	struct shfl_stop stop = {.word = &node->status, .mask = ~0u, .value = SHFL_READY};
	uint32_t seen = SHFL_WAITING;
	enum shfl_turn turn;

	while ((turn = shfl_wait(node, &seen, wait, deadline, slept)) == SHFL_TURN_SHUFFLER)
		shfl_shuffle(node, stop, false, order);
	return turn == SHFL_TURN_HEAD;
}

/*
 * Takes @node, the head, and the abandoned ones behind it out of the queue and makes the next waiter the head. Returns
 * the status to unpark if that one sleeps, else NULL. @part (NULL: none) is told, with @context, of the one behind each
 * node that goes, and says whether the node is to be freed. Figure 4, lines 33-42.
 */
static inline W_ATOMIC(uint32_t) *shfl_leave_by(shfl_tail *tail, struct shfl_node *node, enum wait wait,
						bool (*part)(void *context, struct shfl_node *next), void *context)
{
	bool ours;
	struct shfl_node *next, *last;
	uint32_t seen;

	do {
		/* [SHUFFLE-12] acquire: pairs with [SHUFFLE-7], [SHUFFLE-4]; the node behind */
		next = w_load_acquire(&node->next);
		if (!next) {
			last = node;
			/* [SHUFFLE-13] release: pairs with [SHUFFLE-6]; our last accesses to the
			 * queue */
			if (w_compare_exchange_release(tail, &last, NULL)) {
				node_free(&node->status);
				return NULL;
			}
			/* [SHUFFLE-14] acquire: pairs with [SHUFFLE-7], as [SHUFFLE-12] */
			next = w_wait_acquire(&node->next, VAL != NULL, wait_soon(wait), NULL);
		}
		/* Nobody shuffles now: the batch, if there is one, ends with us. */
		if (!next->batch)
			next->moves = node->moves;
		ours = !part || part(context, next);
		/* [SHUFFLE-15] acq_rel: release pairs with [SHUFFLE-8], [SHUFFLE-10], [SHUFFLE-9],
		 * [SHUFFLE-11]: the queue's order so far. Acquire pairs with [SHUFFLE-11]: the
		 * links of one that has gone */
		seen = w_exchange_acq_rel(&next->status, SHFL_READY);
		if (ours)
			node_free(&node->status);
		node = next;
		if (seen == SHFL_ABANDONED)
			w_event(skip);
	} while (seen == SHFL_ABANDONED);
	return seen == SHFL_PARKED ? &next->status : NULL;
}

static inline W_ATOMIC(uint32_t) *shfl_leave(shfl_tail *tail, struct shfl_node *node, enum wait wait)
{
	return shfl_leave_by(tail, node, wait, NULL, NULL);
}

#endif
