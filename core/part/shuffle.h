/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shuffling: a queue of waiters that one of them, the shuffler, reorders while it waits. This
 * header decides the order only; shfl_spin.h and shfl_mutex.h define what the head of the queue
 * waits for.
 *
 * From: Kashyap, Calciu, Cheng, Min, Kim, "Scalable and practical locking with shuffling", SOSP'19,
 * figure 4 (lines 44-108), figure 6 and the qlast optimisation of section 4.2.1.
 *
 * The queue is MCS's: the tail points to the last waiter, and next links lead to it. Invariants
 * (section 4.2.1): the head keeps its place; there is at most one shuffler; only a head starts
 * shuffling; the role passes only to waiters behind. The second follows from this: from the head
 * that started to the waiter that has the role, all waiters have batch > 0.
 *
 * The bound on bypass. A walk brings waiters forward over those that stay behind the batch. The
 * moves are counted for the lifetime of the queue, and each waiter that stays records the count
 * when a walk first passes it; the one right behind the batch has been bypassed most. Once it has
 * been bypassed `bound` times, the batch ends, and nobody overtakes it any more. Within the batch,
 * a waiter is overtaken by those of the same walk that rank before it, and a batch has at most
 * `bound` waiters. So a waiter is bypassed at most twice `bound` times, whatever the policy
 * returns, and at most `bound` times if the policy knows only one rank besides POLICY_STAY. If the
 * order has a time instead (`timed`, in a world with a threshold), a waiter that stays records when
 * a walk first passes it, and the batch ends that much later; it still has at most `bound` waiters.
 *
 * The status of a node:
 *
 *   WAITING ──shuffler──▶ AWAKE ──shuffler──▶ ROLE       (also WAITING ──▶ ROLE)
 *      │ ▲                  │                  │
 *      │ └ (never again)    │                  │
 *      └──────── waiter, its spinning over: any of the three ──▶ PARKED ──shuffler, unpark──▶ AWAKE
 *
 *   any ──predecessor──▶ READY   the waiter is now the head
 *   any but READY ──waiter, at its deadline──▶ ABANDONED ──predecessor──▶ READY
 *                         (the predecessor then acts for the waiter that has left)
 *   any ──waiter, or the thread that acts for it, when it leaves the queue──▶ FREE
 *
 * Writers of a node's fields: next, once from NULL, the successor's thread, then the shuffler;
 * batch and seen, the shuffler; moves, the shuffler, and a head that leaves when the next one has
 * to begin; note, the waiter, before the node is linked.
 *
 * Departures from the paper:
 *  - The shuffler's role is a field of its own; the status only wakes its new owner (ROLE). A
 *    status that carried the role would lose it when a predecessor writes READY.
 *  - Figure 6 leaves PARKED by plain stores. Below, all transitions of PARKED are compare-exchanges
 *    or exchanges, so that no wake-up is lost between two of them.
 *  - A woken waiter (AWAKE, the paper's S_SPINNING) spins for one more budget and then sleeps
 *    again. On over-subscribed cores a waiter that spins indefinitely takes the CPU that the holder
 *    needs.
 *  - A shuffler inside the queue that finds nobody to move keeps the role until it is the head,
 *    instead of repeating the walk.
 *  - Waiters can leave at a deadline.
 *  - The order is an argument (shfl_order): a policy of policy/policy.h, or CFL's. Waiters that are
 *    brought forward are sorted by rank, not only gathered.
 *  - Bypasses are counted per waiter, not only the length of a batch.
 */
#ifndef POUNDLOCK_SHUFFLE_H
#define POUNDLOCK_SHUFFLE_H

#include "policy/policy.h"
#include "part/wait.h"

/*
 * Default `batch`: most waiters in one batch, and most times that one waiter is bypassed (figure 4,
 * line 55). Tests set less.
 */
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

/*
 * Waiter's node. On a stack (w_waiter_node()) it has a cache line of its own: other threads access
 * it while its thread uses the stack around it.
 */
struct shfl_node {
	W_ATOMIC(uint32_t) status;
	W_ATOMIC(uint32_t) shuffler; /* 1: this waiter has the role */
	W_ATOMIC(struct shfl_node *) next;
	struct shfl_node *seen; /* how far the role's owners have walked; NULL: to this node */
	uint32_t batch;         /* its number in its batch when it was placed; 0: in none */
	uint32_t note;          /* for the policy */
	uint32_t where;         /* for CFL */
	/*
	 * last of a batch: moves so far; in no batch: moves when a walk first passed it, or the
	 * time of that if the order is timed; 0: no walk has
	 */
	uint32_t moves;
};

typedef W_TAIL(struct shfl_node) shfl_tail;

/* The order of the waiters. */
struct shfl_order {
	/* Rank of @waiter as @shuffler sees it, as rank() of policy/policy.h. */
	uint32_t (*rank)(const void *context, const struct shfl_node *shuffler,
			 const struct shfl_node *waiter);
	const void *context;
	/* The rank from which on waiters stay while others come forward; NULL: POLICY_STAY. */
	uint32_t (*limit)(const void *context, const struct shfl_node *shuffler);
	uint32_t bound;
	bool timed; /* by the world's threshold, if it has one */
};

/*
 * The settings of a lock whose waiters shuffle and sleep, in two registers: its fast path passes
 * them on without storing them, and without an instruction for each. Each waits by the settings
 * that it got, to the end, whatever is changed meanwhile.
 */
struct shfl_tuning {
	uint32_t patience;
	enum policy policy;
	uint32_t batch, spins;
};

/* Those of a lock's @policy, a struct with these fields. */
#define SHFL_TUNING(of) ((struct shfl_tuning){(of).patience, (of).policy, (of).batch, (of).spins})

/* When a shuffler stops walking: when *@word & @mask is @value. */
struct shfl_stop {
	W_ATOMIC(uint32_t) *word;
	uint32_t mask, value;
};

static inline uint32_t shfl_rank(const void *context, const struct shfl_node *shuffler,
				 const struct shfl_node *waiter)
{
	return policy_rank(*(const enum policy *)context, shuffler->note, waiter->note);
}

/* The shuffler's own rank in a strict order. */
static inline uint32_t shfl_limit(const void *context, const struct shfl_node *shuffler)
{
	const enum policy policy = *(const enum policy *)context;

	return policy_is_strict(policy, shuffler->note)
		       ? policy_rank(policy, shuffler->note, shuffler->note)
		       : POLICY_STAY;
}

/* The order of @policy. */
static inline struct shfl_order shfl_by(const enum policy *policy, uint32_t bound)
{
	return (struct shfl_order){.rank = shfl_rank,
				   .context = policy,
				   .limit = shfl_limit,
				   .bound = bound,
				   .timed = true};
}

/* ---- The shuffler ---- */

/* WAITING or PARKED -> AWAKE. Wakes @node's waiter off the critical path. Figure 6, line 41. */
static inline void shfl_wake_early(struct shfl_node *node)
{
	uint32_t seen = SHFL_WAITING;

	/* relaxed, both: only tells the waiter not to sleep */
	if (w_compare_exchange_relaxed(&node->status, &seen, SHFL_AWAKE) || seen != SHFL_PARKED)
		return;
	if (w_compare_exchange_relaxed(&node->status, &seen, SHFL_AWAKE)) {
		w_event(wake_early);
		w_unpark(&node->status);
	}
}

/*
 * As the head @node, wakes the sleepers among the first @count waiters behind it. A shuffler may
 * move waiters meanwhile, so others may be met instead, but each is in the queue: a node behind the
 * head stays there until the head leaves, also when its waiter has given up.
 */
static inline void shfl_wake_ahead(struct shfl_node *node, uint32_t count)
{
	/* [SHUFFLE-16] acquire: pairs with [SHUFFLE-7], [SHUFFLE-4]; the node behind */
	while (count-- && (node = w_load_acquire(&node->next)))
		/* relaxed: a hint; does not take the line from a waiter that spins on it */
		if (w_load_relaxed(&node->status) != SHFL_AWAKE)
			shfl_wake_early(node);
}

/* As the head @node: returns how many waiters there are behind it, at most @most. */
static inline uint32_t shfl_count_behind(struct shfl_node *node, uint32_t most)
{
	uint32_t count = 0;

	/* [SHUFFLE-17] acquire: pairs with [SHUFFLE-7], [SHUFFLE-4], as [SHUFFLE-16] */
	while (count < most && (node = w_load_acquire(&node->next)))
		count++;
	return count;
}

/* Passes the role to @node, then WAITING or AWAKE -> ROLE so that a spinning waiter notices. */
static inline void shfl_pass_role(struct shfl_node *node)
{
	uint32_t seen = SHFL_WAITING;

	w_event(shuffle_pass);
	/*
	 * [SHUFFLE-1] release: pairs with [SHUFFLE-2]; the queue as we leave it, and the batch and
	 * seen fields of @node
	 */
	w_store_release(&node->shuffler, 1);
	/* relaxed, both: only a nudge; the role is in `shuffler` */
	if (!w_compare_exchange_relaxed(&node->status, &seen, SHFL_ROLE) && seen == SHFL_AWAKE)
		(void)w_compare_exchange_relaxed(&node->status, &seen, SHFL_ROLE);
}

/* Returns whether @node's waiter has the role. */
static inline bool shfl_has_role(struct shfl_node *node)
{
	/* [SHUFFLE-2] acquire: pairs with [SHUFFLE-1]; the previous shuffler's work */
	return w_load_acquire(&node->shuffler);
}

/*
 * Moves @current from behind @previous to behind @last. Returns false if @current is the last of
 * the queue, where newcomers link themselves.
 */
static inline bool shfl_move(struct shfl_node *last, struct shfl_node *previous,
			     struct shfl_node *current)
{
	/* [SHUFFLE-3] acquire: pairs with [SHUFFLE-7], [SHUFFLE-4]; the node behind */
	struct shfl_node *next = w_load_acquire(&current->next);

	if (!next)
		return false;
	/*
	 * [SHUFFLE-4] release: pairs with [SHUFFLE-3], [SHUFFLE-5], [SHUFFLE-12], [SHUFFLE-16],
	 * [SHUFFLE-17], [WALK-4], [SHFL_RW-4]; each link publishes the node that it points to.
	 * relaxed: a link that only the shuffler changes
	 */
	w_store_release(&previous->next, next);
	w_store_release(&current->next, w_load_relaxed(&last->next));
	w_store_release(&last->next, current);
	w_event(shuffle_move);
	return true;
}

/*
 * Finds the insertion point for @rank in the batch from @node to @last; equal ranks keep their
 * order.
 */
static inline struct shfl_node *shfl_insertion_point(struct shfl_order order,
						     struct shfl_node *node, struct shfl_node *last,
						     uint32_t rank)
{
	struct shfl_node *place = node, *next;

	if (last == node || order.rank(order.context, node, last) <= rank)
		return last;
	while (place != last) {
		/* relaxed: a link inside the batch; only the shuffler changes it */
		next = w_load_relaxed(&place->next);
		if (order.rank(order.context, node, next) > rank)
			break;
		place = next;
	}
	return place;
}

/* Returns the time, or number of moves so far, for the `moves` of a waiter that stays; not 0. */
static inline uint32_t shfl_moment(struct shfl_node *last, struct shfl_order order)
{
	return W_THRESHOLD && order.timed ? wait_clock() | 1 : last->moves;
}

/*
 * Returns whether a waiter may be brought forward to behind @last. @passes: it would overtake the
 * waiters that stay behind the batch.
 */
static inline bool shfl_may_pass(struct shfl_node *last, bool passes, struct shfl_order order)
{
	uint32_t passed;

	if (!passes)
		return true;
	/* relaxed: the first waiter behind the batch; we have walked past it and see its `moves` */
	passed = shfl_moment(last, order) - w_load_relaxed(&last->next)->moves;
	/* Signed: clocks of CPUs may differ a little. */
	return W_THRESHOLD && order.timed ? (int32_t)passed < (int32_t)W_THRESHOLD
					  : passed < order.bound;
}

/*
 * Records that @current was placed behind @place in the batch that ends at @last. Returns the
 * batch's last.
 */
static inline struct shfl_node *shfl_record_place(struct shfl_node *last, struct shfl_node *place,
						  struct shfl_node *current, uint32_t moves)
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

/* Returns whether the batch that ends at @last may grow and the shuffler may go on walking. */
static inline bool shfl_may_grow(struct shfl_node *last, struct shfl_stop stop,
				 struct shfl_order order)
{
	/* relaxed: only a hint that walking has become a delay */
	return last->batch < order.bound && (w_load_relaxed(stop.word) & stop.mask) != stop.value;
}

/*
 * As the shuffler, walks the queue from where the previous walk stopped, and gathers the waiters
 * that @order ranks behind @node and before @limit, in a batch. Stops at the end of the queue, at
 * @stop or at a bound. Returns the last of the batch, which records how far the walk got. @wake:
 * also wake the waiter that becomes the first behind @node.
 */
static inline struct shfl_node *shfl_walk(struct shfl_node *node, struct shfl_stop stop, bool wake,
					  struct shfl_order order, uint32_t limit)
{
	struct shfl_node *last = node, *previous = node->seen ? node->seen : node, *current, *place;
	uint32_t rank;
	bool moves;

	while (shfl_may_grow(last, stop, order)) {
		/* [SHUFFLE-5] acquire: pairs with [SHUFFLE-7], [SHUFFLE-4]; the node there */
		current = w_load_acquire(&previous->next);
		if (!current)
			break;
		rank = order.rank(order.context, node, current);
		if (rank >= limit) {
			if (!current->moves)
				current->moves = shfl_moment(last, order);
			previous = current;
			continue;
		}
		place = shfl_insertion_point(order, node, last, rank);
		moves = place != previous;
		if (!moves)
			previous = current;
		else if (!shfl_may_pass(last, previous != last, order) ||
			 !shfl_move(place, previous, current))
			break;
		if (wake && last == node)
			shfl_wake_early(current);
		last = shfl_record_place(last, place, current, last->moves + moves);
	}
	last->seen = previous == last ? NULL : previous;
	return last;
}

/* Takes up the shuffler's work. */
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

/* Ends the shuffler's work: passes the role to the last of the batch, unless the batch is full. */
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

/*
 * As the shuffler, does one turn of its work. In an order with a limit, waiters from the limit on
 * come forward only if no others do: the role then passes to a waiter before the limit. Otherwise
 * those of the last rank would pass it to each other, each with all other waiters in its batch, and
 * take their turn in every batch.
 */
static inline void shfl_shuffle(struct shfl_node *node, struct shfl_stop stop, bool wake,
				struct shfl_order order)
{
	struct shfl_node *const seen = node->seen, *last = node;
	uint32_t limit = order.limit ? order.limit(order.context, node) : POLICY_STAY;

	shfl_begin(node);
	if (limit != POLICY_STAY) {
		last = shfl_walk(node, stop, wake, order, limit);
		if (last == node)
			node->seen = seen;
	}
	if (last == node)
		last = shfl_walk(node, stop, wake, order, POLICY_STAY);
	shfl_end(node, last, order);
}

/*
 * Returns whether @node, the head, shuffles: it has the role, or is in no batch. Figure 4, line 23.
 */
static inline bool shfl_head_shuffles(struct shfl_node *node)
{
	return shfl_has_role(node) || !node->batch;
}

/* ---- The queue ---- */

/*
 * Enters the queue with @node; @note is for the policy. Returns true if @node is the head. Figure
 * 4, lines 10-14 and 45.
 */
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
	/*
	 * [SHUFFLE-6] acq_rel: acquire and release pair with [SHUFFLE-6]: the predecessor's node,
	 * which we write. Acquire pairs with [SHUFFLE-13] as well: the queue has ended before it
	 * begins again
	 */
	previous = w_exchange_acq_rel(tail, node);
	if (!previous)
		return true;
	/*
	 * [SHUFFLE-7] release: pairs with [SHUFFLE-3], [SHUFFLE-5], [SHUFFLE-12], [SHUFFLE-14],
	 * [SHUFFLE-16], [SHUFFLE-17], [WALK-4], [SHFL_RW-4]; our node's fields
	 */
	w_store_release(&previous->next, node);
	return false;
}

/*
 * Any -> PARKED, then sleeps until the status changes. @seen: the status last read. Returns the new
 * status, or PARKED if @deadline passed.
 */
static inline uint32_t shfl_park(struct shfl_node *node, uint32_t seen,
				 const struct w_deadline *deadline)
{
	/* relaxed: publishes nothing; it only tells the waker to wake us */
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

/* Outcome of a wait in the queue. */
enum shfl_turn { SHFL_TURN_HEAD, SHFL_TURN_SHUFFLER, SHFL_TURN_GONE };

/*
 * How a waiter whose status is @seen waits, by default @how. The turn of one that was woken early
 * is near, so it spins for the whole budget, whatever its history.
 */
static inline enum w_how shfl_wait_how(enum w_how how, uint32_t seen)
{
	return how == W_QUEUED && seen == SHFL_AWAKE ? W_BRIEF : how;
}

/*
 * Waits until @node is the head or has the role. *@seen: the status last read. At the deadline, the
 * status becomes ABANDONED, and the predecessor removes the node (SHFL_TURN_GONE). Sets *@slept if
 * the waiter sleeps. @how: how to wait before sleeping. Figure 4, line 44; figure 6, line 13.
 */
static inline enum shfl_turn shfl_wait(struct shfl_node *node, uint32_t *seen, enum w_how how,
				       enum wait wait, const struct w_deadline *deadline,
				       bool *slept)
{
	uint32_t now;

	for (;;) {
		/*
		 * [SHUFFLE-10] acquire: pairs with [SHUFFLE-15]; the order of the queue, and the
		 * batch and role given to us
		 */
		now = w_wait_acquire(&node->status, VAL != *seen, shfl_wait_how(how, *seen),
				     deadline);
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
	/*
	 * [SHUFFLE-11] acq_rel: release pairs with [SHUFFLE-15]: our links, for the thread that
	 * acts for us; acquire pairs with [SHUFFLE-15]: we may have become the head at the last
	 * moment
	 */
	if (w_exchange_acq_rel(&node->status, SHFL_ABANDONED) == SHFL_READY)
		return SHFL_TURN_HEAD;
	w_event(abandon);
	return SHFL_TURN_GONE;
}

/*
 * Waits until @node is the head, and shuffles when it has the role. Returns false at the deadline.
 * @how: how to wait before sleeping.
 */
static inline bool shfl_wait_turn(struct shfl_node *node, enum w_how how, enum wait wait,
				  const struct w_deadline *deadline, bool *slept,
				  struct shfl_order order)
{
	struct shfl_stop stop = {.word = &node->status, .mask = ~0u, .value = SHFL_READY};
	uint32_t seen = SHFL_WAITING;
	enum shfl_turn turn;

	while ((turn = shfl_wait(node, &seen, how, wait, deadline, slept)) == SHFL_TURN_SHUFFLER)
		shfl_shuffle(node, stop, false, order);
	return turn == SHFL_TURN_HEAD;
}

/*
 * Removes @node, the head, and the abandoned nodes right behind it, and makes the next waiter the
 * head: any -> READY. Returns the status to unpark if that waiter sleeps, else NULL. For each
 * removed node, @part (may be NULL) is called with @context and the node behind it; it returns
 * whether the removed node is to be freed here. Figure 4, lines 33-42.
 */
static inline W_ATOMIC(uint32_t) *shfl_leave_by(shfl_tail *tail, struct shfl_node *node,
						enum wait wait,
						bool (*part)(void *context, struct shfl_node *next),
						void *context)
{
	bool ours;
	struct shfl_node *next, *last;
	uint32_t seen;

	do {
		/* [SHUFFLE-12] acquire: pairs with [SHUFFLE-7], [SHUFFLE-4]; the node behind */
		next = w_load_acquire(&node->next);
		if (!next) {
			last = node;
			/*
			 * [SHUFFLE-13] release: pairs with [SHUFFLE-6]; our last accesses to the
			 * queue
			 */
			if (w_compare_exchange_release(tail, &last, NULL)) {
				node_free(&node->status);
				return NULL;
			}
			/* [SHUFFLE-14] acquire: pairs with [SHUFFLE-7], as [SHUFFLE-12] */
			next = w_wait_acquire(&node->next, VAL != NULL, wait_soon(wait), NULL);
		}
		/* There is no shuffler now: the batch, if any, ends with us. */
		if (!next->batch)
			next->moves = node->moves;
		ours = !part || part(context, next);
		/*
		 * [SHUFFLE-15] acq_rel: release pairs with [SHUFFLE-8], [SHUFFLE-10], [SHUFFLE-9],
		 * [SHUFFLE-11]: the queue's order so far. Acquire pairs with [SHUFFLE-11]: the
		 * links of a waiter that has left
		 */
		seen = w_exchange_acq_rel(&next->status, SHFL_READY);
		if (ours)
			node_free(&node->status);
		node = next;
		if (seen == SHFL_ABANDONED)
			w_event(skip);
	} while (seen == SHFL_ABANDONED);
	return seen == SHFL_PARKED ? &next->status : NULL;
}

static inline W_ATOMIC(uint32_t) *shfl_leave(shfl_tail *tail, struct shfl_node *node,
					     enum wait wait)
{
	return shfl_leave_by(tail, node, wait, NULL, NULL);
}

#endif
