/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cna.h: for all patterns of domains and of waiters that left, each waiter gets the lock once; the
 * secondary queue is created, appended to and spliced back; the bound on local hand-overs holds and
 * is reached.
 */
#include "cna.h"
#include "unit.h"

#define DOMAINS 3
#define MOST 7

static struct cna lock;
static struct cna_node nodes[MOST + 1]; /* the first is the holder's */

static void enter(struct cna_node *node, int domain)
{
	struct mcs_node *previous;

	cna_node_init(&node->mcs);
	node->mcs.domain = domain;
	previous = atomic_exchange(&lock.tail, &node->mcs);
	if (previous)
		atomic_store(&previous->next, &node->mcs);
}

static void begin(int waiters, int pattern)
{
	atomic_store(&lock.tail, NULL);
	script_clear();
	for (int i = 0; i <= waiters; i++)
		enter(&nodes[i], digit(pattern, DOMAINS, i));
}

/* The waiter that now holds the lock; NULL if the lock is free. */
static struct cna_node *granted(int waiters)
{
	struct cna_node *holder = NULL;

	for (int i = 0; i <= waiters; i++) {
		if (atomic_load(&nodes[i].mcs.status) == NODE_GRANTED) {
			EXPECT(!holder, "two waiters have the lock");
			holder = &nodes[i];
		}
	}
	EXPECT(!holder == !atomic_load(&lock.tail), "the lock was lost");
	return holder;
}

/* Releases until there are no waiters; returns the number of holders after the first. */
static int drain(int waiters, struct cna_policy policy)
{
	struct cna_node *holder = &nodes[0];
	int grants = 0;

	for (;;) {
		cna_release(&lock, holder, policy);
		EXPECT(atomic_load(&holder->mcs.status) == NODE_FREE);
		holder = granted(waiters);
		if (!holder)
			return grants;
		grants++;
		EXPECT(grants <= waiters, "a waiter had the lock twice");
	}
}

static void all_patterns(void)
{
	static const struct cna_policy policies[] = {
		{WAIT_SPIN, 1, 0},    {WAIT_YIELD, 1, 0}, {WAIT_PARK, 2, 0},
		{WAIT_YIELD, 100, 0}, {WAIT_YIELD, 3, 2},
	};

	for (int policy = 0; policy < COUNT(policies); policy++)
		for (int waiters = 0; waiters <= MOST; waiters++)
			for (int pattern = 0; pattern < power(DOMAINS, waiters + 1); pattern++) {
				begin(waiters, pattern);
				EXPECT(drain(waiters, policies[policy]) == waiters);
			}
}

static void all_patterns_with_some_gone(void)
{
	struct cna_policy policy = {WAIT_YIELD, 2, 0};
	enum { WAITERS = 5 };

	for (int gone = 0; gone < power(2, WAITERS); gone++)
		for (int pattern = 0; pattern < power(DOMAINS, WAITERS + 1); pattern++) {
			begin(WAITERS, pattern);
			for (int i = 0; i < WAITERS; i++)
				if (digit(gone, 2, i))
					atomic_store(&nodes[i + 1].mcs.status, NODE_ABANDONED);
			EXPECT(drain(WAITERS, policy) ==
			       WAITERS - __builtin_popcount((unsigned)gone));
			for (int i = 0; i <= WAITERS; i++)
				EXPECT(atomic_load(&nodes[i].mcs.status) == NODE_FREE);
		}
}

static int place(const char *order, int waiter)
{
	return (int)(strchr(order, '0' + waiter) - order);
}

/*
 * The order in which the waiters of @pattern (domains, the holder's first) get the lock, as digits.
 */
static const char *order_of(const char *pattern, struct cna_policy policy)
{
	static char order[MOST + 1];
	int waiters = (int)strlen(pattern) - 1, grants = 0;
	struct cna_node *holder = &nodes[0];

	begin(0, 0);
	nodes[0].mcs.domain = pattern[0];
	for (int i = 1; i <= waiters; i++)
		enter(&nodes[i], pattern[i]);
	memset(order, 0, sizeof(order));
	for (cna_release(&lock, holder, policy); (holder = granted(waiters));
	     cna_release(&lock, holder, policy))
		order[grants++] = (char)('0' + (holder - nodes));
	return order;
}

/*
 * The secondary queue is created, appended to, and spliced before a main queue without local
 * waiters, or in place of an empty one.
 */
static void second_queue(void)
{
	struct cna_policy policy = {WAIT_YIELD, 1000000, 0};
	uint64_t flushes;

	w_listening = true;
	flushes = w_counted(W_EVENT_flush);
	EXPECT(!strcmp(order_of("ab", policy), "1"));
	EXPECT(!strcmp(order_of("abbcc", policy), "1234"));
	EXPECT(w_counted(W_EVENT_flush) == flushes,
	       "nobody was local, but a secondary queue was made");
	EXPECT(!strcmp(order_of("aba", policy), "21"),
	       "emptied: the secondary queue takes the main one's place");
	EXPECT(w_counted(W_EVENT_flush) == ++flushes);
	EXPECT(!strcmp(order_of("abaca", policy), "2413"), "appended in order");
	EXPECT(w_counted(W_EVENT_flush) == ++flushes);
	EXPECT(!strcmp(order_of("abac", policy), "213"), "flushed before those that came later");
	EXPECT(w_counted(W_EVENT_flush) == ++flushes);
	EXPECT(place(order_of("abbaccab", policy), 3) == 0);
	w_listening = false;
}

/* With threshold=1, a flush follows each local hand-over that passed a waiter. */
static void threshold_of_one(void)
{
	struct cna_policy policy = {WAIT_YIELD, 1, 0};

	EXPECT(!strcmp(order_of("abaa", policy), "213"));
	EXPECT(!strcmp(order_of("abaaa", policy), "2134"));
}

/*
 * With an endless supply of local waiters, a remote one is passed at most, and sometimes,
 * `threshold` times.
 */
static void bound_is_exact(void)
{
	for (uint32_t threshold = 1; threshold <= 5; threshold++) {
		struct cna_policy policy = {WAIT_YIELD, threshold, 0};
		uint32_t passed, most = 0;

		for (int run = 0; run < 500; run++) {
			struct cna_node *holder = &nodes[0], *next;

			begin(0, 0);
			enter(&nodes[1], 1);
			enter(&nodes[2], 0);
			enter(&nodes[3], 0);
			for (passed = 0;; passed++, holder = next) {
				EXPECT(passed <= threshold, "passed more often than %u times",
				       threshold);
				cna_release(&lock, holder, policy);
				next = granted(3);
				if (next == &nodes[1])
					break;
				enter(holder, 0);
			}
			most = passed > most ? passed : most;
		}
		EXPECT(most == threshold, "%u of %u", most, threshold);
	}
}

/* With `reduction`, the order is FIFO for at most that many hand-overs after a flush. */
static void reduction_is_bounded(void)
{
	struct cna_policy policy = {WAIT_YIELD, 1, 4};
	uint32_t most = 0;

	for (int run = 0; run < 500; run++) {
		begin(0, 0);
		enter(&nodes[1], 1);
		cna_release(&lock, &nodes[0], policy);
		EXPECT(nodes[1].skip <= policy.reduction);
		most = nodes[1].skip > most ? nodes[1].skip : most;
	}
	EXPECT(most == policy.reduction);
}

int main(void)
{
	RUN(all_patterns);
	RUN(all_patterns_with_some_gone);
	RUN(second_queue);
	RUN(threshold_of_one);
	RUN(bound_is_exact);
	RUN(reduction_is_bounded);
	return 0;
}
