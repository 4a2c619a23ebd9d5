/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * CFL's walk back, alone. The last of three waiters in one batch walks back over the others while
 * they leave. The first leaves as queue head. The second leaves as queue head or at a deadline; in
 * that case the first acts on its behalf. Each thread reuses its node as soon as it gets it. The
 * client checks only which thread frees a node, and that all accesses to it come before.
 */
#include "adapter.h"

struct walk {
	W_ATOMIC(uint32_t) entered; /* number of waiters in the queue so far */
	struct cfl lock;
};

#define WALK check_shared(struct walk)

/* A batch has room for one more waiter, so that the last of the three has the shuffler's role. */
static const struct cfl_policy walk_policy = {.wait = WAIT_SPIN, .bypass = 4};

/* Enters the queue after @number other waiters. */
static struct cfl_node *enter_as(uint32_t number)
{
	struct cfl_node *node = w_node_get();

	(void)w_await_acquire(&WALK->entered, VAL == number);
	w_store_relaxed(&node->before, NULL);
	node->node.where = 0;
	check_assert(shfl_enter(&WALK->lock.tail, &node->node, 0) == !number);
	w_store_release(&WALK->entered, number + 1);
	return node;
}

static void leave_and_use_again(struct cfl_node *node, bool is_head)
{
	if (is_head)
		check_assert(!shfl_leave_by(&WALK->lock.tail, &node->node, WAIT_SPIN, cfl_retire,
					    &WALK->lock));
	node = w_node_get();
	node->node.note = 1;
}

static void walk(uint32_t self)
{
	static const struct w_deadline deadline;
	struct shfl_stop never = {.word = &WALK->lock.state, .mask = 0, .value = 1};
	struct cfl_node *node = enter_as(self);
	bool is_head = true, slept = false;

	if (self == 0) {
		(void)w_await_acquire(&WALK->entered, VAL == 3);
		cfl_shuffle(&WALK->lock, node, never, true, false, walk_policy);
	} else {
		is_head = cfl_wait_turn(&WALK->lock, node, walk_policy,
					self == 1 ? &deadline : NULL, &slept);
	}
	leave_and_use_again(node, is_head);
}

static void walk_finish(void)
{
	check_assert(check_busy_nodes() == 0);
}

#define WALK_ENTRY                                                                      \
	ENTRY("walk/3", walk, 3, "look_back free_for abandon", NULL, NULL, walk_finish, \
	      .domains = 1)
