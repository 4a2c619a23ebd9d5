/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sleeping for a number (core/part/tickets.h): thread n waits until number n is served, and serves
 * the next one. All numbers have been issued, and all waiters sleep on one slot.
 *
 * In a lock the numbers are issued to whichever thread comes first. That multiplies the states, and
 * a waiter does not depend on it: it knows its own number only.
 */
#include "part/tickets.h"

#include "check.h"
#include "entry.h"

struct memory {
	W_ATOMIC(uint32_t) serving;
	uint32_t cell;
};

struct notes {
	uint32_t count;
};

#define SLOT_BYTES sizeof(uint32_t)
#define SHARED_BYTES (sizeof(struct memory) + SLOT_BYTES)
#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)

static void take_turn(uint32_t self)
{
	if (self)
		tickets_wait(&M->serving, self * TICKETS_STEP, WAIT_PARK, 0);
	M->cell++;
	NOTES->count++;
	tickets_serve(&M->serving, (self + 1) * TICKETS_STEP, NULL, WAIT_PARK);
}

static void finish(void)
{
	check_outcome(0, NOTES->count);
	check_assert(M->cell == NOTES->count);
}

#define COMPOSED .flags = CHECK_CLIENT_COMPOSED | CHECK_CLIENT_COMPLETE

const struct check_client check_clients[] = {
	ENTRY("2", take_turn, 2, "park", "2", NULL, finish, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("3", take_turn, 3, "park wake_in_cs", "3", NULL, finish, .spurious = 1),
	ENTRY("composed/3", take_turn, 3, "park wake_in_cs", "3", NULL, finish, COMPOSED),
	ENTRY("composed/4", take_turn, 4, "park wake_in_cs", "4", NULL, finish, COMPOSED),
	{.name = NULL},
};
