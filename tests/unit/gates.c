/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * part/gates.h: a gate is one lock's at a time, the same for one lock, and another lock's after
 * the first one is destroyed.
 */
#include "part/gates.h"
#include "unit.h"

enum { LOCKS = 8 * GATES_SETS * GATES_WAYS };

static uint64_t locks[LOCKS];

static void is_one_locks(void)
{
	uint32_t gates = 0;

	for (uint32_t i = 0; i < LOCKS; i++) {
		struct gate *gate = gates_claim(&locks[i]);

		EXPECT(gates_find(&locks[i]) == gate);
		gates += gate != NULL;
	}
	for (uint32_t i = 0; i < LOCKS; i++) {
		struct gate *gate = gates_find(&locks[i]);

		if (!gate)
			continue;
		EXPECT(!gate->lock.tour.own.holds, "two locks have a gate");
		gate->lock.tour.own.holds = true;
	}
	EXPECT(gates == GATES_SETS * GATES_WAYS, "%u of %u gates are used", gates,
	       GATES_SETS * GATES_WAYS);
	for (uint32_t i = 0; i < LOCKS; i++)
		gates_forget(&locks[i]);
	for (uint32_t i = 0; i < LOCKS; i++)
		EXPECT(!gates_find(&locks[i]), "a destroyed lock has a gate");
}

static void is_given_back(void)
{
	for (uint32_t i = 0; i < LOCKS; i++) {
		EXPECT(gates_claim(&locks[i]), "no room after %u locks are destroyed", i);
		gates_forget(&locks[i]);
	}
}

/* A program may destroy a lock that is held: another lock must not find its gate taken. */
static void is_kept_while_held(void)
{
	struct gate *gate = gates_claim(&locks[0]);

	EXPECT(ron_ticket_try_acquire(&gate->lock));
	gates_forget(&locks[0]);
	EXPECT(gates_find(&locks[0]) == gate);
	EXPECT(ron_ticket_release(&gate->lock, (struct ron_ticket_policy){WAIT_PARK}));
	gates_forget(&locks[0]);
	EXPECT(!gates_find(&locks[0]));
}

int main(void)
{
	RUN(is_one_locks);
	RUN(is_given_back);
	RUN(is_kept_while_held);
	return 0;
}
