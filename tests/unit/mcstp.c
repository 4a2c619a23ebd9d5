/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mcstp.h: for every pattern of waiters that poll, do not poll, sleep or left: the next holder, the
 * waiters that must re-enter, and no node is lost.
 */
#include "mcstp.h"
#include "unit.h"

#define MOST 5

static struct mcstp lock;
static struct mcstp_node nodes[MOST + 1];

enum { LOOKS, DOES_NOT_LOOK, SLEEPS, HAS_GONE, STATES };

static void enter(struct mcstp_node *node, int state)
{
	static const uint32_t statuses[] = {NODE_WAITING, NODE_WAITING, NODE_PARKED,
					    NODE_ABANDONED};
	struct mcs_node *previous;

	mcs_node_init(&node->mcs);
	atomic_store(&node->time, state == LOOKS ? w_now() : 0);
	atomic_store(&node->mcs.status, statuses[state]);
	previous = atomic_exchange(&lock.tail, &node->mcs);
	if (previous)
		atomic_store(&previous->next, &node->mcs);
}

/*
 * The expected state of the waiter in @state after a release reached it; returns whether it got the
 * lock.
 */
static bool expect_seen(struct mcstp_node *node, int state)
{
	uint32_t status = atomic_load(&node->mcs.status);

	switch (state) {
	case LOOKS:
	case SLEEPS:
		EXPECT(status == NODE_GRANTED);
		EXPECT(script_unparks(&node->mcs.status) == (state == SLEEPS));
		return true;
	case DOES_NOT_LOOK:
		EXPECT(status == MCSTP_SKIPPED);
		return false;
	default:
		EXPECT(status == NODE_FREE);
		return false;
	}
}

static void all_patterns(void)
{
	/* Long enough that a slow machine does not make a waiter stale that has just polled. */
	struct mcstp_policy policy = {WAIT_PARK, 1000000};

	for (int pattern = 0; pattern < power(STATES, MOST); pattern++) {
		bool granted = false;

		memset((void *)&lock, 0, sizeof(lock));
		memset((void *)nodes, 0, sizeof(nodes));
		script_clear();
		enter(&nodes[0], LOOKS);
		for (int i = 1; i <= MOST; i++)
			enter(&nodes[i], digit(pattern, STATES, i - 1));
		mcstp_release(&lock, &nodes[0], policy);
		EXPECT(atomic_load(&nodes[0].mcs.status) == NODE_FREE);
		for (int i = 1; i <= MOST && !granted; i++)
			granted = expect_seen(&nodes[i], digit(pattern, STATES, i - 1));
		EXPECT(granted == !!atomic_load(&lock.tail),
		       "nobody has the lock, but it is not free");
	}
}

static bool releases(void *policy)
{
	if (atomic_load(&lock.tail) != &nodes[0].mcs && !atomic_load(&nodes[0].mcs.next))
		return false;
	/* A machine that has just booted shows less time than that: our waiter is skipped once. */
	atomic_store(&nodes[1].time, 0);
	mcstp_release(&lock, &nodes[0], *(struct mcstp_policy *)policy);
	return true;
}

/*
 * A waiter that is skipped at any moment of its wait re-enters, or returns its node at its
 * deadline.
 */
static void passed_over_at_any_moment(void)
{
	struct mcstp_policy policy = {.stale = 1};
	int waits = 0;

	for (policy.wait = WAIT_YIELD; policy.wait <= WAIT_PARK; policy.wait++)
		for (long step = 1; step < 40; step++)
			for (long end = 1; end < 40; end++) {
				struct w_deadline deadline = script_deadline(end);
				bool timed = end % 2;

				memset((void *)&lock, 0, sizeof(lock));
				memset((void *)nodes, 0, sizeof(nodes));
				enter(&nodes[0], LOOKS);
				script_clear();
				script_at(step, releases, &policy);
				if (mcstp_acquire(&lock, &nodes[1], policy,
						  timed ? &deadline : NULL))
					mcstp_release(&lock, &nodes[1], policy);
				else
					waits++;
				script_finish();
				EXPECT(!atomic_load(&lock.tail));
				EXPECT(atomic_load(&nodes[1].mcs.status) == NODE_FREE);
			}
	EXPECT(waits, "no deadline passed");
}

int main(void)
{
	RUN(all_patterns);
	RUN(passed_over_at_any_moment);
	return 0;
}
