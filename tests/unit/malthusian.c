/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * malthusian.h: which waiter gets the lock next, for every subset that has left; the bound on
 * culling.
 */
#include "malthusian.h"
#include "unit.h"

#define MOST 8

static struct malthusian lock;
static struct malthusian_node nodes[MOST + 1];

static void enter(struct malthusian_node *node)
{
	struct mcs_node *previous;

	malthusian_node_init(&node->mcs);
	previous = atomic_exchange(&lock.tail, &node->mcs);
	if (previous)
		atomic_store(&previous->next, &node->mcs);
}

/* Node 0 holds the lock, and @waiters wait behind it. */
static void begin(int waiters)
{
	memset((void *)&lock, 0, sizeof(lock));
	memset((void *)nodes, 0, sizeof(nodes));
	script_clear();
	for (int i = 0; i <= waiters; i++)
		enter(&nodes[i]);
}

/* The waiter that received the lock, or NULL. */
static struct malthusian_node *granted(int waiters)
{
	for (int i = 0; i <= waiters; i++)
		if (atomic_load(&nodes[i].mcs.status) == NODE_GRANTED)
			return &nodes[i];
	return NULL;
}

/* The order in which @waiters get the lock, without newcomers, as digits. */
static const char *order_of(int waiters, struct malthusian_policy policy)
{
	static char order[MOST + 1];
	struct malthusian_node *holder = &nodes[0];
	int grants = 0;

	memset(order, 0, sizeof(order));
	for (malthusian_release(&lock, holder, policy); (holder = granted(waiters));
	     malthusian_release(&lock, holder, policy)) {
		EXPECT(grants < waiters, "a waiter had the lock twice");
		order[grants++] = (char)('0' + (holder - nodes));
	}
	EXPECT(!atomic_load(&lock.tail));
	return order;
}

/*
 * Two threads circulate; a culled one returns youngest first if no other waits, or eldest first at
 * the bound.
 */
static void orders(void)
{
	struct malthusian_policy patient = {WAIT_YIELD, 1000}, impatient = {WAIT_YIELD, 1};

	begin(1);
	EXPECT(!strcmp(order_of(1, patient), "1"));
	begin(2);
	EXPECT(!strcmp(order_of(2, patient), "21"));
	begin(6);
	EXPECT(!strcmp(order_of(6, patient), "246531"));
	begin(6);
	EXPECT(!strcmp(order_of(6, impatient), "241635"),
	       "the eldest comes back after each other hand-over");
}

/* Each remaining waiter gets the lock once, and every node is returned. */
static void some_have_gone(void)
{
	for (uint32_t patience = 1; patience < 5; patience++)
		for (int gone = 0; gone < power(2, MOST); gone++) {
			struct malthusian_policy policy = {WAIT_YIELD, patience};
			int there = MOST - __builtin_popcount((unsigned)gone);

			begin(MOST);
			for (int i = 0; i < MOST; i++)
				if (digit(gone, 2, i))
					atomic_store(&nodes[i + 1].mcs.status, NODE_ABANDONED);
			EXPECT((int)strlen(order_of(MOST, policy)) == there);
			for (int i = 0; i <= MOST; i++)
				EXPECT(atomic_load(&nodes[i].mcs.status) == NODE_FREE);
		}
}

/*
 * The most hand-overs that pass a culled waiter with @elder culled before it, among @threads that
 * always want the lock.
 */
static void bound_holds(void)
{
	for (uint32_t patience = 1; patience < 6; patience++) {
		for (int threads = 3; threads <= MOST; threads++) {
			struct malthusian_policy policy = {WAIT_YIELD, patience};
			struct malthusian_node *holder = &nodes[0], *next;
			uint32_t passed[MOST + 1] = {0}, most = 0;

			begin(threads);
			for (int turn = 0; turn < 2000; turn++, holder = next) {
				malthusian_release(&lock, holder, policy);
				next = granted(threads);
				EXPECT(next);
				enter(holder);
				for (int i = 0; i <= threads; i++) {
					passed[i] = next == &nodes[i] || holder == &nodes[i]
							    ? 0
							    : passed[i] + 1;
					most = passed[i] > most ? passed[i] : most;
				}
			}
			/*
			 * One more waiter in the main queue before it is culled, and the holder
			 * before it.
			 */
			EXPECT(most <= (uint32_t)threads * (patience + 1) + 1,
			       "%u of %d, patience %u", most, threads, patience);
			EXPECT(most >= patience, "nobody was set aside");
		}
	}
}

static bool released(void *policy)
{
	if (atomic_load(&lock.tail) != &nodes[0].mcs && !atomic_load(&nodes[0].mcs.next))
		return false;
	malthusian_release(&lock, &nodes[0], *(struct malthusian_policy *)policy);
	return true;
}

/* A deadline and the release coincide in every way. */
static void timed_against_release(void)
{
	struct malthusian_policy policy = {.patience = 1};

	for (policy.wait = WAIT_YIELD; policy.wait <= WAIT_PARK; policy.wait++)
		for (long step = 1; step < 40; step++)
			for (long end = 1; end < 40; end++) {
				struct w_deadline deadline = script_deadline(end);

				begin(0);
				script_at(step, released, &policy);
				if (malthusian_acquire(&lock, &nodes[1], policy, &deadline))
					malthusian_release(&lock, &nodes[1], policy);
				script_finish();
				EXPECT(!atomic_load(&lock.tail));
				EXPECT(atomic_load(&nodes[1].mcs.status) == NODE_FREE);
			}
}

static bool enters(void *node)
{
	enter(node);
	return true;
}

/* A waiter arrives while the holder, which saw no successor, brings a culled waiter back. */
static void arrival_against_revival(void)
{
	int between = 0;

	for (long step = 1; step < 20; step++) {
		struct malthusian_policy policy = {WAIT_YIELD, 1000};
		struct malthusian_node *holder;
		int grants = 0;

		begin(2);
		malthusian_release(&lock, &nodes[0], policy);
		EXPECT(granted(2) == &nodes[2] && nodes[2].passive == &nodes[1]);
		script_clear();
		script_at(step, enters, &nodes[3]);
		malthusian_release(&lock, &nodes[2], policy);
		between +=
			granted(3) == &nodes[1] && atomic_load(&nodes[1].mcs.next) == &nodes[3].mcs;
		script_finish();
		for (; (holder = granted(3)); grants++)
			malthusian_release(&lock, holder, policy);
		EXPECT(grants == 2 && !atomic_load(&lock.tail));
	}
	EXPECT(between, "nobody entered in the middle");
}

int main(void)
{
	RUN(orders);
	RUN(some_have_gone);
	RUN(bound_holds);
	RUN(timed_against_release);
	RUN(arrival_against_revival);
	return 0;
}
