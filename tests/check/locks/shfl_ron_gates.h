/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bodies of clients of shfl_ron's gates (shfl_ron.c, ../shfl_ron_steady.c); for ../lock.c. */

/* Locks; the second user destroys the lock, which gives its gate back. */
static void lock_and_destroy(enum wait wait)
{
	holding kept;
	const uint32_t users = lock_as_user(&kept, wait);

	release(&M->lock, kept, wait);
	check_returned();
	if (users == 2)
		shfl_ron_destroy(&M->lock);
}

/* Opens a gate for the other lock, which has none until the first one has given back its own. */
static void open_other(enum wait wait)
{
	holding kept;

	check_assert(acquire(&M->other, &kept, wait, NULL));
	check_returned();
	if (!gates_find(&M->other))
		(void)shfl_ron_open(&M->other);
	release(&M->other, kept, wait);
	check_returned();
}

WAYS(
	used_twice, if (self == 0) { TWICE(lock_and_destroy(wait)); } else TWICE(open_other(wait)))
WAYS(destroyed, if (self < 2) lock_and_destroy(wait); else TWICE(open_other(wait)))

static void finish_destroyed(void)
{
	holding kept;

	check_assert(M->cell == 2);
	check_assert(try_acquire(&M->other, &kept));
	release(&M->other, kept, WAIT_YIELD);
	check_assert(check_busy_nodes() == 0);
}

/* The lock is held from the start by a thread that came through the gate; its word is @state. */
static void hold_gate(uint32_t state)
{
	struct gate *gate;

	make(&M->lock);
	gate = gates_find(&M->lock);
	check_assert(ron_ticket_try_acquire(&gate->lock));
	gate_own(gate)->holds = true;
	/* relaxed: nobody else has the lock yet */
	w_store_relaxed(&M->lock.mutex.state, state);
}

/* The lock's memory became a new lock while it was held through the gate. */
static void reuse(void)
{
	hold_gate(0);
}

static void hold_gated(void)
{
	hold_gate(SHFL_MUTEX_LOCKED | SHFL_RON_GATE);
}

/* As the holder from the start: hands the lock over once it is closed. */
static void unlock_closed(enum wait wait)
{
	(void)w_wait_acquire(&M->lock.mutex.state, VAL & SHFL_MUTEX_CLOSED, W_YIELD, NULL);
	critical_section();
	release(&M->lock, NULL, wait);
	check_returned();
}

WAYS(closed, if (self == 1) unlock_closed(wait); else lock_and_unlock(wait);
     if (self != 0) lock_and_unlock(wait))
