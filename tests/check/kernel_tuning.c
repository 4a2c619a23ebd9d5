/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Clients of the table of single locks' settings (kernel/overlay/tuning.h): one thread replaces the
 * table while others look locks up. A lock whose settings do not change is found each time, with
 * them; others have the settings of one of their lists, or none. All addresses collide, so a change
 * moves locks to other places.
 */
#define CHECK_OBJECTS "../../tests/check/kernel.h"
#define KERNEL_CHANGES false
#define KERNEL_INTS 0
#define KERNEL_PLACES 0
#define TUNED_PLACE_BITS 2
#include "check.h"
#include "entry.h"
#include "part/shuffle.h"

#include "../../kernel/overlay/tuning.h"

/* No lock has a name here. */
static inline u16 w_name_of(const void *node)
{
	return 0;
}

static inline void *w_named(u16 name)
{
	return NULL;
}

/* Addresses, and the settings of the one that stays. */
#define STAYS 8ul
#define COMES 16ul
#define NEVER 24ul
#define KEPT 7u

struct memory {
	struct tuned_table table;
};

struct notes {
	uint32_t seen; /* by readers: the sum of the settings of COMES */
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)
#define SHARED_BYTES sizeof(struct memory)

static void publish(const struct tuned_lock *list, u32 count)
{
	tuned_publish(&M->table, list, count);
}

/* COMES comes before STAYS, changes its settings, and goes. */
static void replaces(void)
{
	const struct tuned_lock both[] = {{COMES, 1}, {STAYS, KEPT}},
				changed[] = {{STAYS, KEPT}, {COMES, 2}};

	publish(both, 2);
	publish(changed, 2);
	publish(both + 1, 1);
}

static void looks_up(void)
{
	u32 word = tuned_find(&M->table, COMES);

	check_assert(word <= 2);
	(void)check_add(&NOTES->seen, word);
	check_assert(tuned_find(&M->table, STAYS) == KEPT);
}

static void replaced(uint32_t self)
{
	if (self)
		looks_up();
	else
		replaces();
}

/* A reader that sees an event finds the table that was published before it. */
static void published(uint32_t self)
{
	const struct tuned_lock list[] = {{STAYS, KEPT}, {COMES, 1}};

	if (!self) {
		publish(list, 2);
		w_store_release(&M->table.used, 3u);
	} else if (w_load_acquire(&M->table.used) == 3u) {
		check_assert(tuned_find(&M->table, COMES) == 1);
		check_assert(!tuned_find(&M->table, NEVER));
	}
}

static void prepare(void)
{
	M->table.copies[0][0] = (struct tuned_lock){STAYS, KEPT};
	M->table.used = 1;
}

static void finish(void)
{
	check_assert(tuned_find(&M->table, STAYS) == KEPT);
	check_assert(!tuned_find(&M->table, NEVER));
}

static void finish_replaced(void)
{
	finish();
	check_assert(!tuned_find(&M->table, COMES));
	check_outcome(0, NOTES->seen);
}

const struct check_client check_clients[] = {
	ENTRY("replaced/2", replaced, 2, NULL, "0 1 2", prepare, finish_replaced),
	ENTRY("replaced/3", replaced, 3, NULL, NULL, prepare, finish_replaced, .bound = 2),
	ENTRY("published/2", published, 2, NULL, NULL, prepare, finish),
	{.name = NULL},
};
