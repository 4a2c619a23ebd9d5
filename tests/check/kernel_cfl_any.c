/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Clients of the kernel's spin lock with CFL, with any order (cfl_any_order.h). */
#define IS_STILL true
#define SHFL_MAX_BATCH 3
#include "kernel_ledgers.h"
#include "kernel_spin.h"

#include "cfl_any_order.h"

/* That a hold took no time is the same as that its owner may not return. */
#define hold_time(start, now) ((void)(start), (void)(now), UINT64_C(1))
#define hold_virtual(time, weight) ((void)(time), (void)(weight), UINT64_C(0))

#include "kernel_cfl.h"

/* The first thread holds the lock at the start, and does not come again. */
static void begun(uint32_t self)
{
	if (self)
		once(self);
	else
		enter();
}

/* The same, and only the second thread queues. Others take the lock if they can steal it. */
static void or_steal(uint32_t self)
{
	struct cfl *lock = (struct cfl *)&M->lock;

	if (self < 2) {
		begun(self);
		return;
	}
	cfl_await_head(lock);
	if (cfl_steal(lock, cfl_arrive_billed(lock)))
		enter();
}

static void begin_any(void)
{
	begin();
	any_hints(cfl_ledger((struct cfl *)&M->lock));
}

/* The hold has an owner, so that the head may open the lock after it. */
static void begin_signed(void)
{
	struct hold *hold = hold_of((struct cfl *)&M->lock);

	begin_any();
	M->lock.val.counter = TAKEN;
	hold->lock = (struct cfl *)&M->lock;
	hold->account = (void *)account_of(0);
}

const struct check_client check_clients[] = {
	ENTRY("2x1", once, 2, "contended", NULL, begin_any, finish_free, PROMISES),
	ENTRY("2x2", twice, 2, "contended steal", NULL, begin_any, finish_free),
	ENTRY("3x1", once, 3, "contended", NULL, begin_any, finish_free),
	ENTRY("trylock/3", or_try, 3, NULL, NULL, begin_any, finish_free),
	ENTRY("signed/3", begun, 3, "shuffle steal look_back", NULL, begin_signed, finish_free),
	ENTRY("steal/3", or_steal, 3, "steal", NULL, begin_signed, finish_free),
	ENTRY("steal/4", or_steal, 4, "steal", NULL, begin_signed, finish_free),
	{.name = NULL},
};
