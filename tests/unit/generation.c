/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Forked children, simulated by one thread: a lock with a parent's waiters is repaired once, by the
 * first thread that uses it; what the parent's thread held stays held; an unfinished repair of the
 * parent blocks nobody.
 */
#include "part/generation.h"
#include "shfl_mutex.h"
#include "shfl_spin.h"
#include "ticket.h"
#include "unit.h"

static struct shfl_node gone; /* a waiter that does not exist in the child */

/* The generation of a grandchild continues its parent's count. */
static void fork_here(void)
{
	fork_generation_set(w_fork_generation() + 1);
	script_clear();
}

static bool settles(void *generation)
{
	generation_settle(generation);
	return true;
}

static void claimed_once(void)
{
	W_ATOMIC(uint32_t) generation = 0;

	fork_generation_set(0);
	script_clear();
	EXPECT(!generation_claim(&generation), "a lock without a fork was repaired");
	for (int child = 0; child < 3; child++) {
		fork_here();
		EXPECT(generation_claim(&generation));
		script_clear();
		script_at(3, settles, &generation);
		EXPECT(!generation_claim(&generation), "two repaired at once");
		EXPECT(!generation_claim(&generation), "repaired twice");
	}
}

static void unfinished_repair_is_taken_over(void)
{
	W_ATOMIC(uint32_t) generation = 0;

	fork_generation_set(0);
	fork_here();
	EXPECT(generation_claim(&generation));
	fork_here();
	EXPECT(generation_claim(&generation), "a repair that a parent began holds up its child");
	generation_settle(&generation);
	EXPECT(!generation_claim(&generation));
}

static void shfl_spin_in_a_child(void)
{
	struct shfl_spin_policy policy = {.wait = WAIT_YIELD, .batch = 2};

	for (int held = 0; held < 2; held++) {
		for (int tries = 0; tries < 2; tries++) {
			struct shfl_spin lock = {.tail = NULL};

			fork_generation_set(0);
			EXPECT(shfl_enter(&lock.tail, &gone, 0));
			atomic_store(&lock.locked, (uint32_t)held);
			fork_here();
			if (held)
				EXPECT(!shfl_spin_try_acquire(&lock));
			if (held)
				EXPECT(shfl_spin_release(&lock, policy));
			if (tries)
				EXPECT(shfl_spin_try_acquire(&lock),
				       "trylock failed on a free lock");
			else
				EXPECT(shfl_spin_acquire(&lock, policy, NULL));
			EXPECT(shfl_spin_release(&lock, policy));
		}
	}
}

static void shfl_mutex_in_a_child(void)
{
	struct shfl_mutex_policy policy = {.wait = WAIT_PARK,
					   .patience = 4,
					   .batch = 2,
					   .spins = 1};

	for (uint32_t state = 0; state < 16; state++) {
		for (int tries = 0; tries < 2; tries++) {
			struct shfl_mutex lock = {.heir = disguise(&gone.status)};

			fork_generation_set(0);
			EXPECT(shfl_enter(&lock.tail, &gone, 0));
			atomic_store(&lock.state, state);
			fork_here();
			if (state & SHFL_MUTEX_LOCKED) {
				EXPECT(!shfl_mutex_try_acquire(&lock));
				EXPECT(shfl_mutex_release(&lock, policy));
			}
			if (tries)
				EXPECT(shfl_mutex_try_acquire(&lock),
				       "trylock failed on a free lock: %u", state);
			else
				EXPECT(shfl_mutex_acquire(&lock, policy, NULL));
			EXPECT(shfl_mutex_release(&lock, policy));
			EXPECT(!atomic_load(&lock.state), "state %u is left behind",
			       atomic_load(&lock.state));
		}
	}
}

/*
 * A held lock had issued @waiters more numbers: they are taken back, also across the wrap-around.
 */
static void ticket_in_a_child(void)
{
	struct ticket_policy policy = {.wait = WAIT_PARK};

	for (uint32_t given = 0; given < 4; given++) {
		for (uint32_t sleepers = 0; sleepers <= (given > 1 ? TICKETS_SLEEPERS : 0);
		     sleepers++) {
			struct ticket lock = {0};

			fork_generation_set(0);
			atomic_store(&lock.tickets.next, UINT32_MAX - 1 + given * TICKETS_STEP);
			atomic_store(&lock.tickets.serving, (UINT32_MAX - 1) | sleepers);
			fork_here();
			EXPECT(ticket_try_acquire(&lock) == !given);
			EXPECT(ticket_release(&lock, policy));
			EXPECT(!ticket_release(&lock, policy),
			       "numbers of waiters that have gone are still out");
			EXPECT(ticket_try_acquire(&lock));
		}
	}
}

int main(void)
{
	RUN(claimed_once);
	RUN(unfinished_repair_is_taken_over);
	RUN(shfl_spin_in_a_child);
	RUN(shfl_mutex_in_a_child);
	RUN(ticket_in_a_child);
	return 0;
}
