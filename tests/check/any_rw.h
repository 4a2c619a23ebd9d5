/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The specification of a readers-writer lock: the word of core/part/rw_word.h, at which each waiter
 * polls. Any waiter may be the next to enter, so an order of a lock that has one is among those
 * explored, and what such a lock does to keep it adds no states.
 */
#ifndef POUNDLOCK_CHECK_ANY_RW_H
#define POUNDLOCK_CHECK_ANY_RW_H

#include "part/rw_word.h"
#include "part/wait.h"

struct any_rw {
	rw_word word;
};

struct any_rw_policy {
	enum wait wait;
};

static inline bool any_rw_enter(struct any_rw *lock, bool writes, struct any_rw_policy policy,
				const struct w_deadline *deadline)
{
	const uint32_t against = rw_conflicts(writes);
	uint32_t seen;

	while (!rw_enter(&lock->word, writes, against, 0, &seen)) {
		w_event(contended);
		if (rw_refuses(writes, seen))
			return false;
		/* acquire: the wait has no weaker order; rw_enter() reads the word again */
		seen = w_wait_acquire(&lock->word, !(VAL & against), wait_soon(policy.wait),
				      deadline);
		if ((seen & against) && w_expired(deadline)) {
			w_event(abandon);
			return false;
		}
	}
	return true;
}

static inline bool any_rw_try_read(struct any_rw *lock, bool again)
{
	uint32_t seen;

	(void)again;
	return rw_enter(&lock->word, false, rw_conflicts(false), 0, &seen);
}

static inline bool any_rw_read(struct any_rw *lock, bool again, struct any_rw_policy policy,
			       const struct w_deadline *deadline)
{
	(void)again;
	return any_rw_enter(lock, false, policy, deadline);
}

static inline bool any_rw_full(struct any_rw *lock)
{
	return rw_full(&lock->word);
}

static inline bool any_rw_release_read(struct any_rw *lock, struct any_rw_policy policy)
{
	(void)policy;
	return rw_leave_read(&lock->word);
}

static inline bool any_rw_try_write(struct any_rw *lock)
{
	uint32_t seen;

	return rw_enter(&lock->word, true, rw_conflicts(true), 0, &seen);
}

static inline bool any_rw_write(struct any_rw *lock, struct any_rw_policy policy,
				const struct w_deadline *deadline)
{
	return any_rw_enter(lock, true, policy, deadline);
}

static inline bool any_rw_release_write(struct any_rw *lock, struct any_rw_policy policy)
{
	W_ATOMIC(uint32_t) *nobody = NULL;

	(void)policy;
	return rw_leave_write(&lock->word, &nobody);
}

#define any_rw_release_read_fair any_rw_release_read
#define any_rw_release_write_fair any_rw_release_write

#endif
