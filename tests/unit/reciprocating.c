/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * reciprocating.h: the order of waiters over several segments, for every set that left; the bound
 * on bypass.
 */
#include "reciprocating.h"
#include "unit.h"

#define MOST 7

static const struct reciprocating_policy policy = {WAIT_YIELD};
static struct reciprocating lock;
static struct reciprocating_node nodes[MOST + 1];

static void enter(struct reciprocating_node *node)
{
	struct reciprocating_node *seen;

	atomic_store(&node->status, NODE_WAITING);
	seen = atomic_exchange(&lock.arrivals, node);
	if (!seen)
		reciprocating_begin(node);
	else
		node->next = seen == RECIPROCATING_EMPTY ? NULL : seen;
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

/* The waiter that received the lock, or NULL if it is free. */
static struct reciprocating_node *granted(int waiters)
{
	struct reciprocating_node *holder = NULL;

	for (int i = 0; i <= waiters; i++) {
		if (atomic_load(&nodes[i].status) == NODE_GRANTED) {
			EXPECT(!holder, "two waiters have the lock");
			holder = &nodes[i];
		}
	}
	EXPECT(!holder == !atomic_load(&lock.arrivals), "the lock was lost");
	return holder;
}

/*
 * The order in which they get the lock, as digits; @again arrive again after the first hand-over.
 */
static const char *order_of(int waiters, const char *again)
{
	static char order[4 * MOST];
	struct reciprocating_node *holder = &nodes[0];
	int grants = 0;

	memset(order, 0, sizeof(order));
	for (reciprocating_release(&lock, holder, policy); (holder = granted(waiters));
	     reciprocating_release(&lock, holder, policy)) {
		order[grants++] = (char)('0' + (holder - nodes));
		for (; *again; again++)
			enter(&nodes[*again - '0']);
	}
	return order;
}

static void orders(void)
{
	begin(1);
	EXPECT(!strcmp(order_of(1, ""), "1"));
	begin(4);
	EXPECT(!strcmp(order_of(4, ""), "4321"), "a stack");
	begin(3);
	EXPECT(!strcmp(order_of(5, "045"), "321540"),
	       "two segments, the second with the first one's end in it");
}

static void some_have_gone(void)
{
	for (int gone = 0; gone < power(2, MOST); gone++) {
		begin(MOST);
		for (int i = 0; i < MOST; i++)
			if (digit(gone, 2, i))
				atomic_store(&nodes[i + 1].status, NODE_ABANDONED);
		EXPECT((int)strlen(order_of(MOST, "")) ==
		       MOST - __builtin_popcount((unsigned)gone));
		for (int i = 0; i <= MOST; i++)
			EXPECT(atomic_load(&nodes[i].status) == NODE_FREE);
	}
}

/*
 * All always want the lock: each other thread passes a waiter at most once, and all together once.
 */
static void bypass(void)
{
	int passed[MOST + 1][MOST + 1] = {{0}}, most = 0;
	struct reciprocating_node *holder = &nodes[0], *next;

	begin(MOST);
	for (int turn = 0; turn < 2000; turn++, holder = next) {
		bool waited[MOST + 1];

		for (int i = 0; i <= MOST; i++)
			waited[i] = &nodes[i] != holder;
		reciprocating_release(&lock, holder, policy);
		next = granted(MOST);
		EXPECT(next);
		for (int i = 0; i <= MOST; i++)
			if (waited[i] && &nodes[i] != next)
				passed[i][next - nodes]++;
		memset(passed[next - nodes], 0, sizeof(passed[0]));
		enter(holder);
		for (int i = 0; i <= MOST; i++)
			for (int j = 0; j <= MOST; j++)
				most = passed[i][j] > most ? passed[i][j] : most;
	}
	/* Once as a predecessor, which is no bypass, and once after its return. */
	EXPECT(most == 2, "%d", most);
}

static bool releases(void *unused)
{
	(void)unused;
	reciprocating_release(&lock, &nodes[0], policy);
	return true;
}

/* A deadline and the release coincide in every way. */
static void timed_against_release(void)
{
	for (enum wait wait = WAIT_YIELD; wait <= WAIT_PARK; wait++)
		for (long step = 1; step < 30; step++)
			for (long end = 1; end < 30; end++) {
				struct w_deadline deadline = script_deadline(end);
				struct reciprocating_policy waits = {wait};

				begin(0);
				script_at(step, releases, NULL);
				if (reciprocating_acquire(&lock, &nodes[1], waits, &deadline))
					reciprocating_release(&lock, &nodes[1], waits);
				script_finish();
				EXPECT(!atomic_load(&lock.arrivals));
				EXPECT(atomic_load(&nodes[1].status) == NODE_FREE);
			}
}

int main(void)
{
	RUN(orders);
	RUN(some_have_gone);
	RUN(bypass);
	RUN(timed_against_release);
	return 0;
}
