/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The lock of a list of sleepers: one word, held for a few instructions. Its waiters yield the CPU,
 * and sleep occasionally, so that the holder runs whatever its priority. The unlock is one store,
 * the last access to the word.
 */
#ifndef POUNDLOCK_LIST_LOCK_H
#define POUNDLOCK_LIST_LOCK_H

#include "world.h"

/* 0 -> 1. */
static inline void list_lock(W_ATOMIC(uint32_t) *lock)
{
	/* [LIST_LOCK-1] acquire: pairs with [LIST_LOCK-3]; the list */
	while (w_exchange_acquire(lock, 1))
		/* [LIST_LOCK-2] acquire: pairs with nothing; [LIST_LOCK-1] reads the word again */
		(void)w_wait_acquire(lock, !VAL, W_YIELD, NULL);
}

/* 1 -> 0. */
static inline void list_unlock(W_ATOMIC(uint32_t) *lock)
{
	/* [LIST_LOCK-3] release: pairs with [LIST_LOCK-1], [COND-3]; the list */
	w_store_release(lock, 0);
}

#endif
