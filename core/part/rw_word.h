/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The state word of the readers-writer locks: who is inside, and what the head of the queue has
 * requested. The lock defines the order of the queue (shfl_rw.h, fair_rw.h).
 *
 * From: Kashyap et al. (ShflLock), SOSP'19, section 4.2.3, which takes it from Linux's queued
 * rwlock (Long, 2013).
 *
 *   word = readers << 4 | CLOSED | PARKED | HEIR | WRITER
 *     readers  readers inside, at most 2^27. Incremented if !WRITER and !FULL; by newcomers only if
 *              also !CLOSED
 *     FULL     topmost bit of readers, set by the 2^27th. Further readers are refused until one
 *              leaves. A program that leaks read locks must not wrap the count, which would admit a
 *              writer beside readers
 *     WRITER   a writer is inside. Set if no reader and no writer is inside; by newcomers only if
 *              also !CLOSED
 *     CLOSED   the paper's WWb: only the head of the queue, and threads that are readers already,
 *              may enter. Set by the head, and in a fair release by the writer or the last reader;
 *              cleared by the head that enters, or after the last waiter gave up
 *     PARKED   the head sleeps on the word. Set by the head; cleared by the head, or by the
 *              writer's release, which wakes it. The last reader's release also wakes it, and
 *              keeps the flag
 *     HEIR     the next head sleeps on its node. Set by the writer; cleared by its release, which
 *              wakes that waiter
 *
 *   0 ──newcomer──▶ WRITER ──release──▶ 0 ──newcomers──▶ readers ──releases──▶ 0
 *   any ──head──▶ any|CLOSED|PARKED ──the last inside leaves, unpark──▶ CLOSED
 *   CLOSED ──head──▶ WRITER, or readers
 *
 * Departure from the paper: readers enter by compare-exchange. The paper's readers add first and
 * subtract again if they may not enter; meanwhile a writer's trylock fails on a lock that nobody
 * holds. Readers of the kernel's rwsem, whose own trylock fails in this way too, do so
 * (rw_add_reader()). The count may thus include readers that are about to subtract themselves,
 * beside WRITER as well.
 */
#ifndef POUNDLOCK_RW_WORD_H
#define POUNDLOCK_RW_WORD_H

#include "part/heir.h"
#include "part/wait.h"

#define RW_WRITER 1u
#define RW_CLOSED 2u
#define RW_PARKED 4u
#define RW_HEIR 8u
#define RW_READER 16u
#define RW_READERS (~15u)
#define RW_FULL (1u << 31)

typedef W_ATOMIC(uint32_t) rw_word;

/* Bits that keep a reader, or a writer, out, whatever its place in the queue. */
static inline uint32_t rw_conflicts(bool writes)
{
	return writes ? RW_WRITER | RW_READERS : RW_WRITER;
}

/*
 * Returns whether a reader that read @seen is refused: waiting does not help until a reader leaves.
 */
static inline bool rw_refuses(bool writes, uint32_t seen)
{
	return !writes && (seen & RW_FULL);
}

static inline bool rw_full(rw_word *word)
{
	/* relaxed: for a message, or to refuse; rw_enter() decides */
	return rw_refuses(false, w_load_relaxed(word));
}

/*
 * Enters and clears @clear, unless a bit in @against is set or a reader is refused. *@seen is the
 * word that was read.
 */
static inline bool rw_enter(rw_word *word, bool writes, uint32_t against, uint32_t clear,
			    uint32_t *seen)
{
	if (!writes)
		against |= RW_FULL;
	/* relaxed: the compare-exchange decides */
	*seen = w_load_relaxed(word);
	while (!(*seen & against))
		/*
		 * [RW_WORD-1] acquire: pairs with [RW_WORD-2], [RW_WORD-3], [RW_WORD-4]; the
		 * critical sections of the threads that have left
		 */
		if (w_compare_exchange_acquire(word, seen,
					       (*seen & ~clear) + (writes ? RW_WRITER : RW_READER)))
			return true;
	return false;
}

/*
 * As the head of the queue: any -> any|PARKED, then sleeps until the threads inside have left. May
 * wake early. @seen: the word last read.
 */
static inline void rw_park(rw_word *word, uint32_t seen, const struct w_deadline *deadline)
{
	/* relaxed: publishes nothing; it only tells the releaser to wake a sleeper */
	if (!(seen & RW_PARKED) && !w_compare_exchange_relaxed(word, &seen, seen | RW_PARKED))
		return;
	w_event(park);
	w_park(word, seen | RW_PARKED, deadline);
}

/* As the head of the queue, which gives up: PARKED -> 0. */
static inline void rw_give_up(rw_word *word)
{
	w_event(abandon);
	/* relaxed: publishes nothing */
	(void)w_fetch_and_relaxed(word, ~RW_PARKED);
}

/*
 * Returns whether @seen has readers inside. Those beside a writer are not: they subtract themselves
 * again.
 */
static inline bool rw_is_read(uint32_t seen)
{
	return (seen & RW_READERS) && !(seen & RW_WRITER);
}

/* Returns whether @seen has exactly one reader inside. */
static inline bool rw_one_reader(uint32_t seen)
{
	return (seen & (RW_READERS | RW_WRITER)) == RW_READER;
}

/* After a reader has left the word @seen: wakes the head if that was the last one inside. */
static inline void rw_wake_after_read(rw_word *word, uint32_t seen)
{
	if (w_unlikely((seen & RW_PARKED) && rw_one_reader(seen))) {
		w_event(wake_late);
		w_unpark(word);
	}
}

/*
 * Removes one of the readers, and wakes the head if it was the last one. Returns false, with *@seen
 * read again, if the word is not *@seen.
 */
static inline bool rw_leave_read_of(rw_word *word, uint32_t *seen)
{
	/*
	 * [RW_WORD-2] release: pairs with [RW_WORD-1]; our critical section comes before the next
	 * writer's
	 */
	if (!w_compare_exchange_release(word, seen, *seen - RW_READER))
		return false;
	rw_wake_after_read(word, *seen);
	return true;
}

/*
 * Removes one reader. Returns false, and changes nothing, if there is none: BRAVO then looks for it
 * in its table.
 */
static inline bool rw_leave_read(rw_word *word)
{
	/* relaxed: the compare-exchange decides */
	uint32_t seen = w_load_relaxed(word);

	do {
		if (w_unlikely(!(seen & RW_READERS)))
			return false;
	} while (!rw_leave_read_of(word, &seen));
	return true;
}

/*
 * Removes one reader by one fetch-and-add, and wakes the head if it was the last one inside. There
 * must be one. Returns the word before.
 */
static inline uint32_t rw_subtract_reader(rw_word *word)
{
	/*
	 * [RW_WORD-4] release: pairs with [RW_WORD-1]; our critical section comes before the next
	 * writer's
	 */
	const uint32_t seen = w_fetch_add_release(word, (uint32_t)0 - RW_READER);

	rw_wake_after_read(word, seen);
	return seen;
}

/*
 * As a newcomer, enters as a reader by one fetch-and-add. Returns false, and has subtracted itself
 * again, if a bit in @against is set or the reader is refused.
 */
static inline bool rw_add_reader(rw_word *word, uint32_t against)
{
	/* [RW_WORD-5] acquire: pairs with [RW_WORD-3]; the critical section of the last writer */
	if (w_likely(!(w_fetch_add_acquire(word, RW_READER) & (against | RW_FULL))))
		return true;
	(void)rw_subtract_reader(word);
	return false;
}

/*
 * WRITER -> 0, then wakes the sleeper at *@heir. Returns false, and changes nothing, if there was
 * no writer.
 */
static inline bool rw_leave_write(rw_word *word, W_ATOMIC(uint32_t) **heir)
{
	/*
	 * relaxed: only the writer clears WRITER and sets HEIR, so it reads its own writes; the
	 * compare-exchange decides
	 */
	uint32_t seen = w_load_relaxed(word);
	W_ATOMIC(uint32_t) *sleeper = NULL;

	do {
		if (w_unlikely(!(seen & RW_WRITER)))
			return false;
		if (w_unlikely(seen & RW_HEIR))
			sleeper = *heir;
		/* [RW_WORD-3] release: pairs with [RW_WORD-1], [RW_WORD-5]; our critical section */
	} while (!w_compare_exchange_release(word, &seen,
					     seen & ~(RW_WRITER | RW_HEIR | RW_PARKED)));
	heir_wake(sleeper, seen & RW_PARKED ? word : NULL);
	return true;
}

/* In a forked child, clears the requests of the parent's waiters. */
static inline void rw_drop_waiters(rw_word *word)
{
	/* relaxed: publishes nothing */
	(void)w_fetch_and_relaxed(word, RW_WRITER | RW_READERS);
}

#endif
