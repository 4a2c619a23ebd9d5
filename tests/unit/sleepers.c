/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A hand-over wakes only the thread that gets the lock, however many others sleep. Tested in
 * counted time, for the locks whose sleepers share words.
 */
#include "c_ptl_tkt.h"
#include "c_tkt_tkt.h"
#include "hapax.h"
#include "ron_ticket.h"
#include "ticket.h"
#include "turns.h"

#define HOLD (10 * UINT64_C(1000)) /* several times a bounded spin, so that all waiters sleep */

static union {
	struct ticket ticket;
	struct hapax hapax;
	struct c_tkt_tkt c_tkt_tkt;
	struct c_ptl_tkt c_ptl_tkt;
	struct ron_ticket ron_ticket;
	_Alignas(64) char box[16384];
} lock;

#define DEFAULT(name, key, default_, ...) .key = default_,
#define POLICY(name) ((struct name##_policy){.wait = WAIT_PARK, name##_settings(DEFAULT)})
#define BY(name)                                                         \
	static void name##_is_taken(void)                                \
	{                                                                \
		EXPECT(name##_acquire(&lock.name, POLICY(name), NULL));  \
	}                                                                \
	static bool name##_is_left(void)                                 \
	{                                                                \
		return name##_release(&lock.name, POLICY(name));         \
	}                                                                \
	static void name(void)                                           \
	{                                                                \
		hand_over(name##_make, name##_is_taken, name##_is_left); \
	}

static void hand_over(void (*make_lock)(void), void (*acquire)(void), bool (*release)(void))
{
	static const int threads[] = {4, 12, MOST};

	for (int i = 0; i < COUNT(threads); i++) {
		uint32_t turns = 0;

		memset((void *)&lock, 0, sizeof(lock));
		clear_machine(acquire, release);
		make_lock();
		for (int j = 0; j < threads[i]; j++)
			add(HOLD, 0)->domain = j % 2;
		run_machine(20 * MILLISECOND);
		for (int j = 0; j < threads[i]; j++)
			turns += machine.threads[j].turns;
		EXPECT(turns > 500, "%u turns", turns);
		EXPECT(machine.woken >= turns / 2, "%u wake-ups in %u turns: they do not sleep",
		       machine.woken, turns);
		/* At most one wake-up per turn, and some more to wake all at the end. */
		EXPECT(machine.woken <= turns + turns / 10, "%u of %d threads woken in %u turns",
		       machine.woken, threads[i], turns);
	}
}

/* Of zeroed bytes; a lock of a box needs more. */
static void ticket_make(void)
{
	atomic_store(&lock.ticket.generation, 2 * w_fork_generation());
}

static void hapax_make(void)
{
	atomic_store(&lock.hapax.generation, 2 * w_fork_generation());
}

#define MAKE_BOXED(name)                                \
	static void name##_make(void)                   \
	{                                               \
		EXPECT(name##_size() <= sizeof(lock));  \
		name##_init(&lock.name, name##_size()); \
	}

MAKE_BOXED(c_tkt_tkt)
MAKE_BOXED(c_ptl_tkt)
MAKE_BOXED(ron_ticket)
BY(ticket)
BY(hapax)
BY(c_tkt_tkt)
BY(c_ptl_tkt)
BY(ron_ticket)

int main(void)
{
	RUN(ticket);
	RUN(hapax);
	RUN(c_tkt_tkt);
	RUN(c_ptl_tkt);
	RUN(ron_ticket);
	return 0;
}
