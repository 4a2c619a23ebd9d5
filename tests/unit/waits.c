/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ttas.h, ticket.h, mcs.h and wait.h: numbers that wrap around; deadlines, releases and sleeps that
 * coincide in every way, without a lost wake-up or a missed free lock.
 */
#include "mcs.h"
#include "ticket.h"
#include "ttas.h"
#include "unit.h"

#define STEPS 40
#define NEVER 100000

/* ---- ttas ---- */

static struct ttas ttas;

static bool ttas_releases(void *unused)
{
	(void)unused;
	EXPECT(ttas_release(&ttas, (struct ttas_policy){.wait = WAIT_PARK}));
	return true;
}

/* Another thread sleeps too: after we give up, it must have a wake-up, or one must be due. */
static void ttas_loses_no_wake_up(void)
{
	struct ttas_policy policy = {.wait = WAIT_PARK};

	for (long step = 1; step < STEPS; step++) {
		for (long end = 1; end < STEPS; end++) {
			struct w_deadline deadline = script_deadline(end);
			bool taken;

			script_clear();
			atomic_store(&ttas.word, TTAS_HELD_SLEEPERS);
			script_at(step, ttas_releases, NULL);
			taken = ttas_acquire(&ttas, policy, &deadline);
			if (taken)
				EXPECT(atomic_load(&ttas.word) == TTAS_HELD_SLEEPERS ||
					       script_unparks(&ttas.word),
				       "taken with sleepers forgotten");
			else
				EXPECT(atomic_load(&ttas.word) == TTAS_HELD_SLEEPERS,
				       "gave up on a free lock, and the other sleepers sleep on");
		}
	}
}

static void ttas_anyhow(void)
{
	for (enum wait wait = WAIT_SPIN; wait <= WAIT_PARK; wait++) {
		for (uint32_t backoff = 0; backoff < 8; backoff += 4) {
			struct ttas_policy policy = {.wait = wait, .backoff = backoff};

			for (long step = 1; step < STEPS; step++) {
				script_clear();
				atomic_store(&ttas.word, TTAS_HELD);
				EXPECT(!ttas_try_acquire(&ttas));
				script_at(step, ttas_releases, NULL);
				EXPECT(ttas_acquire(&ttas, policy, NULL));
				EXPECT(!ttas_try_acquire(&ttas));
				EXPECT(ttas_release(&ttas, policy));
				EXPECT(!ttas_release(&ttas, policy), "a free lock was released");
				EXPECT(ttas_try_acquire(&ttas));
			}
		}
	}
}

/* ---- ticket ---- */

static struct ticket ticket;

static bool ticket_releases(void *policy)
{
	EXPECT(ticket_release(&ticket, *(struct ticket_policy *)policy));
	return true;
}

static void ticket_begin(uint32_t number)
{
	script_clear();
	memset((void *)&ticket, 0, sizeof(ticket));
	atomic_store(&ticket.generation, 2 * w_fork_generation());
	atomic_store(&ticket.tickets.next, number);
	atomic_store(&ticket.tickets.serving, number);
}

static const uint32_t starts[] = {0, UINT32_MAX - 1, UINT32_MAX - 3, UINT32_MAX / 2 - 1};

static void ticket_wraps_around(void)
{
	struct ticket_policy policy;

	for (policy.wait = WAIT_SPIN; policy.wait <= WAIT_PARK; policy.wait++) {
		for (int start = 0; start < COUNT(starts); start++) {
			for (long step = 1; step < STEPS; step++) {
				policy.backoff = (uint32_t)step % 2;
				ticket_begin(starts[start]);
				EXPECT(ticket_try_acquire(&ticket));
				EXPECT(!ticket_try_acquire(&ticket));
				script_clear();
				script_at(step, ticket_releases, &policy);
				EXPECT(ticket_acquire(&ticket, policy, NULL));
				EXPECT(ticket_release(&ticket, policy));
				EXPECT(!ticket_release(&ticket, policy),
				       "a free lock was released");
				EXPECT(atomic_load(&ticket.tickets.next) ==
				       starts[start] + 2 * TICKETS_STEP);
				EXPECT(ticket_try_acquire(&ticket));
			}
		}
	}
}

/*
 * The lock becomes free at any moment of a timed wait, which does not miss it; no number is lost.
 */
static void ticket_polls(void)
{
	struct ticket_policy policy;

	for (policy.wait = WAIT_SPIN; policy.wait <= WAIT_PARK; policy.wait++) {
		for (long step = 1; step < STEPS; step++) {
			struct w_deadline late = script_deadline(NEVER),
					  soon = script_deadline(step / 2);

			ticket_begin(UINT32_MAX - 1);
			EXPECT(ticket_try_acquire(&ticket));
			script_clear();
			EXPECT(!ticket_acquire(&ticket, policy, &soon));
			script_clear();
			script_at(step, ticket_releases, &policy);
			EXPECT(ticket_acquire(&ticket, policy, &late), "a free lock was missed");
			EXPECT(ticket_release(&ticket, policy));
			EXPECT(ticket_try_acquire(&ticket));
		}
	}
}

/* ---- mcs, and wait.h with it ---- */

static struct mcs mcs;
static struct mcs_node held, waits;

static bool mcs_releases(void *policy)
{
	if (atomic_load(&mcs.tail) != &held && !atomic_load(&held.next))
		return false;
	mcs_release(&mcs, &held, *(struct mcs_policy *)policy);
	return true;
}

static void mcs_against_release(struct mcs_policy policy, long step, long end)
{
	struct w_deadline deadline = script_deadline(end);
	bool taken;

	memset((void *)&waits, 0, sizeof(waits));
	script_clear();
	EXPECT(mcs_try_acquire(&mcs, &held));
	script_clear();
	script_at(step, mcs_releases, &policy);
	taken = mcs_acquire(&mcs, &waits, policy, end == NEVER ? NULL : &deadline);
	EXPECT(taken || script_time >= end, "gave up before its deadline");
	script_finish();
	if (taken)
		mcs_release(&mcs, &waits, policy);
	EXPECT(!atomic_load(&mcs.tail), "the lock is not free in the end");
	EXPECT(atomic_load(&held.status) == NODE_FREE && atomic_load(&waits.status) == NODE_FREE);
}

static void mcs_anyhow(void)
{
	for (enum wait wait = WAIT_SPIN; wait <= WAIT_PARK; wait++)
		for (long step = 1; step < STEPS; step++)
			for (long end = 1; end <= STEPS; end++)
				mcs_against_release((struct mcs_policy){.wait = wait}, step,
						    end == STEPS ? NEVER : end);
}

/*
 * A node's status against a grant: only a sleeping waiter is woken, only an abandoned node refuses.
 */
static void grants_by_status(void)
{
	static W_ATOMIC(uint32_t) status;

	for (uint32_t before = NODE_WAITING; before <= NODE_ABANDONED; before++) {
		script_clear();
		atomic_store(&status, before);
		EXPECT(node_grant(&status, WAIT_PARK) == (before != NODE_ABANDONED), "from %u",
		       before);
		EXPECT(atomic_load(&status) == NODE_GRANTED, "from %u", before);
		EXPECT(script_unparks(&status) == (before == NODE_PARKED), "from %u", before);
	}
}

int main(void)
{
	RUN(ttas_anyhow);
	RUN(ttas_loses_no_wake_up);
	RUN(ticket_wraps_around);
	RUN(ticket_polls);
	RUN(mcs_anyhow);
	RUN(grants_by_status);
	return 0;
}
