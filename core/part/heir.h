/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The heir: the next head of a queue, asleep on its own node when the head before it leaves the
 * queue with the lock. The new holder does not wake it in its critical section. It names the heir
 * in the lock, and its release wakes the heir when the lock's word is free.
 */
#ifndef POUNDLOCK_HEIR_H
#define POUNDLOCK_HEIR_H

#include "world.h"

/* As the holder: names the heir at *@heir, and sets @flag in *@word for the release. */
static inline void heir_name(W_ATOMIC(uint32_t) **heir, W_ATOMIC(uint32_t) *sleeper,
			     W_ATOMIC(uint32_t) *word, uint32_t flag)
{
	*heir = sleeper;
	/*
	 * relaxed: read only by our own release, or by the release of a thread that we synchronise
	 * with
	 */
	(void)w_fetch_or_relaxed(word, flag);
}

/* After the release: wakes the heir, and the head that sleeps on @head, the word. NULL: none. */
static inline void heir_wake(W_ATOMIC(uint32_t) *heir, W_ATOMIC(uint32_t) *head)
{
	if (w_unlikely(heir)) {
		w_event(wake_late);
		w_unpark(heir);
	}
	if (w_unlikely(head)) {
		w_event(wake_late);
		w_unpark(head);
	}
}

#endif
