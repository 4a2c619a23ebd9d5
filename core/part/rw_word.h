/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The indicator of the readers-writer locks: one word that says who is inside, and what the head of the queue of those
 * who are not has asked for. How the queue is ordered is the lock's (shfl_rw.h, fair_rw.h).
 *
 * From: ShflLock (SOSP'19) section 4.2.3, which has it from Linux's queued rwlock (Long, 2013).
 * Changed, and why: readers enter by compare-exchange. The paper's add first and take back what was not theirs: in the
 * meantime a writer's try would fail on a lock that nobody holds.
 *
 *   word = readers << 4 | CLOSED | PARKED | HEIR | WRITER
 *     readers  how many are inside, 2^27 at most. Legal to raise if !WRITER and !FULL; newcomers only if !CLOSED, too
 *     FULL     the topmost bit of readers: set by the 2^27th. Each further reader is refused until one leaves. Guards
 *              that a program forgets add up; a count that wrapped would let a writer in beside readers
 *     WRITER   one is inside. Legal to set if no reader and no writer is inside; newcomers only if !CLOSED, too
 *     CLOSED   the paper's WWb: only the head of the queue may enter, and who is a reader already. The head's
 *     PARKED   the head sleeps on the word. The head's to set; cleared by it, or by the writer's release, which wakes it.
 *              The last reader's release wakes it, too, and leaves the flag to it
 *     HEIR     the next head sleeps elsewhere. The writer's to set; cleared by its release, which wakes it
 *
 *   0 ──newcomer──▶ WRITER ──release──▶ 0 ──newcomers──▶ readers ──releases──▶ 0
 *   any ──head──▶ any|CLOSED|PARKED ──the last inside leaves, unpark──▶ CLOSED ──head──▶ WRITER, or a reader
 */
#ifndef POUNDLOCK_RW_WORD_H
#define POUNDLOCK_RW_WORD_H

#include "part/wait.h"

#define RW_WRITER 1u
#define RW_CLOSED 2u
#define RW_PARKED 4u
#define RW_HEIR 8u
#define RW_READER 16u
#define RW_READERS (~15u)
#define RW_FULL (1u << 31)

typedef W_ATOMIC(uint32_t) rw_word;

/* What keeps a reader, or a writer, from entering, whatever its place in the queue. */
static inline uint32_t rw_against(bool writes)
{
	return writes ? RW_WRITER | RW_READERS : RW_WRITER;
}

/* Whether a reader that saw @seen is refused: no wait makes room, unless another reader leaves. */
static inline bool rw_refuses(bool writes, uint32_t seen)
{
	return !writes && (seen & RW_FULL);
}

static inline bool rw_full(rw_word *word)
{
	/* relaxed: for a message, or to refuse; rw_enter() decides */
	return rw_refuses(false, w_load_relaxed(word));
}

/* Enters, and clears @clear, unless one of @against is set, or a reader is refused. *@seen is what the word was. */
static inline bool rw_enter(rw_word *word, bool writes, uint32_t against, uint32_t clear, uint32_t *seen)
{
	if (!writes)
		against |= RW_FULL;
	/* relaxed: the compare-exchange decides */
	*seen = w_load_relaxed(word);
	while (!(*seen & against))
		/* [RW_WORD-1] acquire: pairs with [RW_WORD-2], [RW_WORD-3]; the critical sections
		 * of those who have left */
		if (w_compare_exchange_acquire(word, seen, (*seen & ~clear) + (writes ? RW_WRITER : RW_READER)))
			return true;
	return false;
}

/* As the head of the queue, sleeps until those inside have left, having last seen @seen. May wake early. */
static inline void rw_park(rw_word *word, uint32_t seen, const struct w_deadline *deadline)
{
	/* relaxed: publishes nothing; the releaser learns only that there is somebody to wake */
	if (!(seen & RW_PARKED) && !w_compare_exchange_relaxed(word, &seen, seen | RW_PARKED))
		return;
	w_event(park);
	w_park(word, seen | RW_PARKED, deadline);
}

/* As the head of the queue, takes back what it has asked for: it gives up. */
static inline void rw_give_up(rw_word *word)
{
	w_event(abandon);
	/* relaxed: opens to newcomers, publishes nothing. The next head closes for itself */
	(void)w_fetch_and_relaxed(word, ~(RW_CLOSED | RW_PARKED));
}

/* A reader leaves. False, and nothing is changed, if there was none: BRAVO asks before it looks for it elsewhere. */
static inline bool rw_leave_read(rw_word *word)
{
	/* relaxed: the compare-exchange decides */
	uint32_t seen = w_load_relaxed(word);

	do {
		if (w_unlikely(!(seen & RW_READERS)))
			return false;
		/* [RW_WORD-2] release: pairs with [RW_WORD-1]; our critical section comes before
		 * the next writer's */
	} while (!w_compare_exchange_release(word, &seen, seen - RW_READER));
	if (w_unlikely((seen & RW_PARKED) && (seen & RW_READERS) == RW_READER)) {
		w_event(wake_late);
		w_unpark(word);
	}
	return true;
}

/* The writer leaves, and wakes whoever sleeps at *@heir. False, and nothing is changed, if there was none. */
static inline bool rw_leave_write(rw_word *word, W_ATOMIC(uint32_t) **heir)
{
	/* relaxed: only the writer can clear WRITER and set HEIR, so it reads its own doing; the compare-exchange decides */
	uint32_t seen = w_load_relaxed(word);
	W_ATOMIC(uint32_t) *sleeper = NULL;

	do {
		if (w_unlikely(!(seen & RW_WRITER)))
			return false;
		if (w_unlikely(seen & RW_HEIR))
			sleeper = *heir;
		/* [RW_WORD-3] release: pairs with [RW_WORD-1]; our critical section */
	} while (!w_compare_exchange_release(word, &seen, seen & ~(RW_WRITER | RW_HEIR | RW_PARKED)));
	if (w_unlikely(sleeper)) {
		w_event(wake_late);
		w_unpark(sleeper);
	}
	if (w_unlikely(seen & RW_PARKED)) {
		w_event(wake_late);
		w_unpark(word);
	}
	return true;
}

/* In a forked child: forgets what waiters that do not exist here had asked for. */
static inline void rw_drop_waiters(rw_word *word)
{
	/* relaxed: publishes nothing */
	(void)w_fetch_and_relaxed(word, RW_WRITER | RW_READERS);
}

#endif
