/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cst.h and hmcs.h: for all patterns of sleeping waiters and all bounds, each waiter gets the lock
 * once, sleepers in order; the bound on bypass holds and is reached; a turn ends at its bound, and
 * the leaf is released before the root.
 */
#include "cst.h"
#include "unit.h"

#define DOMAINS 2
#define MOST 8

static struct {
	struct cst lock;
	struct hmcs_place leaves[DOMAINS];
} memory;

static struct hmcs *const tree = &memory.lock.tree;
static struct hmcs_place *const leaf = memory.leaves;
static struct cst_node nodes[MOST + 1]; /* the first is the holder's */
static struct mcs_node up;              /* the leaf's node in the root's queue */
static struct mcs_node *newcomer_first; /* that arrived at a free leaf */

static void enter_root(void)
{
	EXPECT(mcs_try_acquire(&tree->root, &up), "the root was not released");
	leaf->up = &up;
	leaf->above = NULL;
}

static void enter(struct cst_node *node, bool asleep)
{
	struct mcs_node *mine = &node->tree.mcs, *previous;

	node->tree.leaf = leaf;
	mcs_node_init(mine);
	if (asleep)
		atomic_store(&mine->status, NODE_PARKED);
	previous = atomic_exchange(&leaf->queue.tail, mine);
	if (previous)
		atomic_store(&previous->next, mine);
}

/* The first node holds the lock, @waiters wait, and those of @pattern sleep. */
static void begin(int waiters, int pattern)
{
	script_clear();
	memset((void *)&memory, 0, sizeof(memory));
	EXPECT(cst_size() == sizeof(memory));
	cst_init(&memory.lock, cst_size());
	EXPECT(tree->places[0] == DOMAINS);
	enter_root();
	enter(&nodes[0], false);
	for (int i = 1; i <= waiters; i++)
		enter(&nodes[i], digit(pattern, 2, i - 1));
}

/*
 * Releases by @node; returns the next holder, which acquired the root itself after the domain's
 * turn; NULL: none.
 */
static struct cst_node *release(struct cst_node *node, struct cst_policy policy)
{
	struct cst_node *holder = NULL;

	cst_release(&memory.lock, node, policy);
	EXPECT(atomic_load(&node->tree.mcs.status) == NODE_FREE);
	for (int i = 0; i <= MOST; i++) {
		if (atomic_load(&nodes[i].tree.mcs.status) == NODE_GRANTED) {
			EXPECT(!holder, "two waiters have the lock");
			holder = &nodes[i];
		}
	}
	EXPECT(!holder == (!atomic_load(&leaf->queue.tail) ||
			   atomic_load(&leaf->queue.tail) == newcomer_first),
	       "the leaf was lost");
	EXPECT(leaf->owns == !!atomic_load(&tree->root.tail), "the root was lost, or kept");
	if (holder && !leaf->owns)
		enter_root();
	leaf->owns = false;
	return holder;
}

static void every_waiter_once(void)
{
	for (uint32_t batch = 1; batch <= MOST; batch++) {
		struct cst_policy policy = {WAIT_PARK, batch};

		for (int waiters = 0; waiters <= MOST; waiters++) {
			for (int pattern = 0; pattern < power(2, waiters); pattern++) {
				struct cst_node *holder = &nodes[0], *asleep = NULL;
				int grants = 0;

				begin(waiters, pattern);
				while ((holder = release(holder, policy))) {
					grants++;
					if (!digit(pattern, 2, (int)(holder - nodes) - 1))
						continue;
					EXPECT(holder > asleep,
					       "a sleeper was overtaken by one that came later");
					EXPECT(script_unparks(&holder->tree.mcs.status) == 1);
					asleep = holder;
				}
				EXPECT(grants == waiters);
				EXPECT(!leaf->asleep.first && !atomic_load(&tree->root.tail));
			}
		}
	}
}

/* A sleeper behind the holder, and an endless supply of awake waiters. */
static void bound_is_exact(void)
{
	for (uint32_t batch = 1; batch <= 6; batch++) {
		struct cst_policy policy = {WAIT_PARK, batch};
		struct cst_node *holder = &nodes[0], *before;
		uint32_t passed = 0;

		begin(3, 1);
		for (;;) {
			before = holder;
			holder = release(holder, policy);
			if (holder == &nodes[1])
				break;
			EXPECT(++passed <= batch, "passed more than %u times", batch);
			enter(before, false);
		}
		EXPECT(passed == batch, "%u of %u", passed, batch);
	}
}

/* A newcomer takes the place of the last sleeper during a hand-over. */
static bool newcomer_enters(void *newcomer)
{
	if (!atomic_load(&leaf->queue.tail))
		newcomer_first = &((struct cst_node *)newcomer)->tree.mcs;
	enter(newcomer, false);
	return true;
}

static void newcomer_meets_the_sleepers(void)
{
	struct cst_policy policy = {WAIT_PARK, 100};

	for (long step = 1; step < 30; step++) {
		struct cst_node *holder = &nodes[0];
		int grants = 0;

		begin(2, 1); /* a sleeper, and an awake waiter */
		holder = release(holder, policy);
		EXPECT(holder == &nodes[2] && leaf->asleep.first == &nodes[1].tree.mcs);
		newcomer_first = NULL;
		script_clear();
		script_at(step, newcomer_enters, &nodes[3]);
		for (; holder; holder = release(holder, policy))
			grants++;
		script_finish();
		EXPECT(grants == (newcomer_first ? 2 : 3) && !leaf->asleep.first);
		atomic_store(&nodes[3].tree.mcs.status, NODE_FREE);
	}
	newcomer_first = NULL;
}

/* hmcs.h: reaches the bound and stays within it; at the end of a turn the root is released last. */
static bool root_still_held(void *unused)
{
	(void)unused;
	if (atomic_load(&leaf->queue.tail))
		return false;
	EXPECT(atomic_load(&tree->root.tail) == &up, "the root was released first");
	return true;
}

static void hmcs_turns(void)
{
	for (uint32_t batch = 1; batch < 6; batch++) {
		struct hmcs_policy policy = {WAIT_YIELD, batch, 2};
		uint32_t passed = 0;
		int i = 0;

		begin(1, 0);
		for (hmcs_release(tree, &nodes[i].tree, policy); leaf->owns;
		     hmcs_release(tree, &nodes[i].tree, policy)) {
			leaf->owns = false;
			EXPECT(++passed <= batch);
			enter(&nodes[i], false);
			i = !i;
		}
		EXPECT(passed == batch && !leaf->passed && !atomic_load(&tree->root.tail));
	}
	begin(0, 0);
	script_at(1, root_still_held, NULL);
	hmcs_release(tree, &nodes[0].tree, (struct hmcs_policy){WAIT_YIELD, 1, 2});
	script_finish();
}

/*
 * hmcs.h with three levels: after a domain's turn, the sibling domain gets the lock with the root,
 * up to the bound.
 */
static void three_levels(void)
{
	static union {
		struct hmcs lock;
		char bytes[sizeof(struct hmcs) + (DOMAINS + 1) * sizeof(struct hmcs_place)];
	} memory;
	struct hmcs *lock = &memory.lock;
	struct hmcs_node nodes[2];
	struct mcs_node near = {0};
	struct hmcs_policy policy = {WAIT_YIELD, 1, 4};
	struct hmcs_place *places = hmcs_places(lock), *part = &places[DOMAINS];

	script_clear();
	script_parents[1] = 1;
	memset((void *)&memory, 0, sizeof(memory));
	EXPECT(hmcs_size() == sizeof(memory));
	hmcs_init(lock, hmcs_size());
	EXPECT(lock->places[0] == DOMAINS && lock->places[1] == 1 && !lock->places[2]);
	EXPECT(hmcs_acquire(lock, &nodes[0], policy, NULL) && nodes[0].leaf == &places[0]);
	EXPECT(places[0].above == part && !part->above &&
	       atomic_load(&part->queue.tail) == places[0].up);
	EXPECT(atomic_load(&lock->root.tail) == part->up);

	/* A waiter of the other domain queues. */
	mcs_node_init(&near);
	atomic_store(&part->queue.tail, &near);
	atomic_store(&places[0].up->next, &near);
	hmcs_release(lock, &nodes[0], policy);
	EXPECT(atomic_load(&near.status) == NODE_GRANTED && part->owns &&
	       atomic_load(&lock->root.tail) == part->up);
	EXPECT(!atomic_load(&places[0].queue.tail) && part->passed == 1);

	/* It gets the lock; after its turn, no waiter passes the root, which is free. */
	part->owns = false;
	places[1] = (struct hmcs_place){.up = &near, .above = part};
	mcs_node_init(&nodes[1].mcs);
	nodes[1].leaf = &places[1];
	atomic_store(&places[1].queue.tail, &nodes[1].mcs);
	EXPECT(hmcs_stands(&nodes[1], &places[0]) == NULL &&
	       hmcs_stands(&nodes[1], &places[1]) == &nodes[1].mcs);
	EXPECT(hmcs_stands(&nodes[1], part) == &near && hmcs_stands(&nodes[1], NULL) == part->up);
	hmcs_release(lock, &nodes[1], policy);
	EXPECT(!part->owns && !part->passed && !atomic_load(&part->queue.tail) &&
	       !atomic_load(&lock->root.tail));

	/* In a child, only the holder's nodes are in the queues, whichever path it took. */
	EXPECT(hmcs_acquire(lock, &nodes[0], policy, NULL));
	atomic_store(&part->queue.tail, &near);
	atomic_store(&places[0].up->next, &near);
	atomic_store(&places[1].queue.tail, &nodes[1].mcs);
	hmcs_drop_waiters(lock, &nodes[0]);
	EXPECT(atomic_load(&part->queue.tail) == places[0].up && !atomic_load(&places[0].up->next));
	EXPECT(!atomic_load(&places[1].queue.tail) && atomic_load(&lock->root.tail) == part->up);
	hmcs_release(lock, &nodes[0], policy);
	EXPECT(!atomic_load(&places[0].queue.tail) && !atomic_load(&part->queue.tail) &&
	       !atomic_load(&lock->root.tail));

	/* With two levels, this one is absent. */
	policy.levels = 2;
	EXPECT(hmcs_acquire(lock, &nodes[0], policy, NULL) && !places[0].above &&
	       !atomic_load(&part->queue.tail));
	hmcs_release(lock, &nodes[0], policy);
	script_parents[1] = 0;
}

/* In a child, the waiters of all leaves and of the root are gone, including those set aside. */
static void child_is_served(void)
{
	struct cst_policy policy = {WAIT_PARK, 100};
	struct mcs_node others[2];

	begin(3, 1);
	EXPECT(release(&nodes[0], policy) == &nodes[2] && leaf->asleep.first);
	mcs_node_init(&others[0]);
	mcs_node_init(&others[1]);
	atomic_store(&memory.leaves[1].queue.tail, &others[0]);
	atomic_store(&up.next, &others[1]);
	atomic_store(&tree->root.tail, &others[1]);
	cst_drop_waiters(&memory.lock, &nodes[2]);
	cst_release(&memory.lock, &nodes[2], policy);
	for (script_domain = 0; script_domain < DOMAINS; script_domain++) {
		EXPECT(cst_acquire(&memory.lock, &nodes[0], policy, NULL));
		EXPECT(!cst_try_acquire(&memory.lock, &nodes[1]));
		cst_release(&memory.lock, &nodes[0], policy);
	}
	EXPECT(cst_try_acquire(&memory.lock, &nodes[0]));
	script_domain = 0;
}

int main(void)
{
	RUN(every_waiter_once);
	RUN(bound_is_exact);
	RUN(newcomer_meets_the_sleepers);
	RUN(hmcs_turns);
	RUN(three_levels);
	RUN(child_is_served);
	return 0;
}
