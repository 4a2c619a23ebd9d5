/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * ShflLock's readers-writer lock: a centralised state word, and a shuffled queue of waiters.
 *
 * From: Kashyap et al., "Scalable and practical locking with shuffling" (ShflLock), SOSP'19,
 * section 4.2.3.
 *
 * Order: barging until the head of the queue closes the lock, then the head.
 *
 * Promise: readers run together, at most 2^27; a writer runs alone. Newcomers may overtake waiters
 * until the head closes the lock, and while a waiter that has given up is leaving. A fair release
 * by the writer or the last reader leaves the lock to the head. Within the queue, the bound is
 * `batch` (part/shuffle.h). Waiters sleep under wait=park. 24 bytes per lock, one node per
 * waiter, none per holder. Atomic read-modify-writes: 2 uncontended, for readers and writers.
 *
 * part/rw_word.h describes the word, its states and transitions.
 *
 * Departures from the paper:
 *  - The paper places the state word beside a complete blocking lock ("wlock"), which a waiter
 *    holds while it waits for the state word. Only the head of wlock's queue can hold it, so
 *    wlock's own word adds nothing to the queue. Here the head of the queue is that waiter, and the
 *    lock is 24 bytes.
 *  - A waiting head closes the lock to newcomers at once only if it is a writer and finds readers
 *    inside: readers overlap, and might never all be out. Against writers, which leave, it first
 *    makes `patience` attempts, as in shfl_mutex.h: a closed lock whose head sleeps is idle until
 *    the head wakes. In the kernel it closes the lock at the first failed attempt after 4 ms.
 *  - The head sleeps too, on the word, after `spins` bounded spins. The first one adapts
 *    (world/spin.h), the others are whole. With 0, no waiter spins.
 *  - Behind a reader, the shuffler gathers readers, which then enter together; behind a writer,
 *    writers in the order of `policy`. The paper moves writers only. Under policy=fifo all waiters
 *    keep their order.
 *  - In the kernel, a reader that enters wakes the sleeping readers right behind it.
 *  - A reader that is inside may enter again whatever a waiting writer has requested (@again),
 *    because that writer waits for it.
 */
#ifndef POUNDLOCK_SHFL_RW_H
#define POUNDLOCK_SHFL_RW_H

#include "part/generation.h"
#include "part/heir.h"
#include "part/rw_word.h"
#include "part/shuffle.h"

#ifndef LOCK_LAYOUT /* locks.def */
struct shfl_rw {
	shfl_tail tail;
	/* Written by the writer. An address to unpark, never dereferenced */
	W_ATOMIC(uint32_t) *heir;
	rw_word word;
	W_ATOMIC(uint32_t) generation;
};
#endif

struct shfl_rw_policy {
	enum wait wait;
	uint32_t patience;  /* failed attempts of a head before it closes the lock to newcomers */
	enum policy policy; /* order of the writers in the queue */
	/* most waiters in one batch, and most times that one waiter is bypassed */
	uint32_t batch;
	uint32_t spins; /* under WAIT_PARK, bounded spins before the head sleeps */
};

#define shfl_rw_settings(S)                                                                \
	S(shfl_rw, patience, 4, 0, 1000000000)                                             \
	S(shfl_rw, policy, POLICY_NUMA, 0, POLICY_UNMEASURED - 1, POLICY_NAMES_UNMEASURED) \
	S(shfl_rw, batch, SHFL_MAX_BATCH, 1, 1000000)                                      \
	S(shfl_rw, spins, 1, 0, 31)
#define shfl_rw_bytes sizeof(struct shfl_rw), sizeof(struct shfl_node), 0

/* ---- The order of the queue ---- */

/* The note of all readers, besides that they are urgent: a domain of their own. */
#define SHFL_RW_READERS (~POLICY_NUMA_URGENT)

static inline uint32_t shfl_rw_note(struct shfl_rw *lock, bool writes, enum policy policy)
{
	return writes ? policy_note(policy, lock) : policy_numa_note_in(SHFL_RW_READERS);
}

/* A writer may have the note of readers, under policy=group: that costs nothing but its place. */
static inline bool shfl_rw_is_reader(uint32_t note)
{
	return (note & ~POLICY_NUMA_URGENT) == SHFL_RW_READERS;
}

/*
 * The rank of a waiter by *@context, an enum policy. Waiters may have their notes by other policies
 * than the shuffler, if the settings have changed: the order then means little, and the bound holds
 * whatever it is.
 */
static inline uint32_t shfl_rw_rank(const void *context, const struct shfl_node *shuffler,
				    const struct shfl_node *waiter)
{
	const enum policy policy = *(const enum policy *)context;

	if (policy != POLICY_FIFO &&
	    (shfl_rw_is_reader(shuffler->note) || shfl_rw_is_reader(waiter->note)))
		return policy_numa_rank(shuffler->note, waiter->note);
	return policy_rank(policy, shuffler->note, waiter->note);
}

static inline uint32_t shfl_rw_limit(const void *context, const struct shfl_node *shuffler)
{
	return shfl_rw_is_reader(shuffler->note) ? POLICY_STAY : shfl_limit(context, shuffler);
}

static inline struct shfl_order shfl_rw_order(const struct shfl_rw_policy *policy)
{
	return (struct shfl_order){.rank = shfl_rw_rank,
				   .context = &policy->policy,
				   .limit = shfl_rw_limit,
				   .bound = policy->batch,
				   .timed = true};
}

/* ---- Readers together ---- */

/* Whether a reader that enters wakes the readers behind it. The kernel defines it before. */
#ifndef SHFL_RW_TOGETHER
#define SHFL_RW_TOGETHER false
#endif

/*
 * As the head, a reader that is inside: wakes the readers right behind it, at most @most. Each
 * enters when it is the head, and then need not wake up first. Ends at a reader that is awake by
 * such a walk, which has been further.
 */
static inline void shfl_rw_wake_readers(struct shfl_node *node, uint32_t most)
{
	/* [SHFL_RW-4] acquire: pairs with [SHUFFLE-7], [SHUFFLE-4]; the node behind */
	while (most-- && (node = w_load_acquire(&node->next)) && shfl_rw_is_reader(node->note) &&
	       /* relaxed: a hint; does not take the line from a waiter that spins on it */
	       w_load_relaxed(&node->status) != SHFL_AWAKE)
		shfl_wake_early(node);
}

/* ---- Entering ---- */

/* In a forked child, discards the parent's waiters. Returns true if it did. */
static inline bool shfl_rw_drop_waiters(struct shfl_rw *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return false;
	/* relaxed: [GENERATION-3] publishes it; nobody queues before that */
	w_store_relaxed(&lock->tail, NULL);
	rw_drop_waiters(&lock->word);
	generation_settle(&lock->generation);
	return true;
}

/*
 * The bits that keep a newcomer out. A thread that may be a reader already (@again) only waits for
 * a writer that is inside.
 */
static inline uint32_t shfl_rw_against(bool writes, bool again)
{
	return rw_conflicts(writes) | (again ? 0 : RW_CLOSED);
}

/* Enters if nothing keeps the caller out. *@seen: the word last read. */
static inline bool shfl_rw_enter(struct shfl_rw *lock, bool writes, bool again, uint32_t *seen)
{
	return rw_enter(&lock->word, writes, shfl_rw_against(writes, again), 0, seen);
}

/* The same, also if the lock was closed for a head that exists only in the parent. */
static inline bool shfl_rw_try(struct shfl_rw *lock, bool writes, bool again)
{
	uint32_t seen;

	if (w_likely(shfl_rw_enter(lock, writes, again, &seen)))
		return true;
	return !(seen & rw_conflicts(writes)) && shfl_rw_drop_waiters(lock) &&
	       shfl_rw_enter(lock, writes, again, &seen);
}

/*
 * The time, as of wait_clock(), after which a head closes the lock, whatever its patience. The
 * kernel defines it before; 0: none.
 */
#ifndef SHFL_RW_HAND_OFF
#define SHFL_RW_HAND_OFF 0
#endif

/*
 * Whether a head is out of patience, after @attempts to enter that failed. @since: when it became
 * the head.
 */
static inline bool shfl_rw_out_of_patience(uint32_t attempts, uint32_t since,
					   struct shfl_rw_policy policy)
{
	if (attempts >= policy.patience)
		return true;
	/* Signed: clocks of CPUs may differ a little. */
	return SHFL_RW_HAND_OFF && (int32_t)(wait_clock() - since) >= SHFL_RW_HAND_OFF;
}

/*
 * As the head: * -> CLOSED if @out_of_patience or if readers are inside. @seen: the word last read.
 */
static inline void shfl_rw_close(struct shfl_rw *lock, uint32_t seen, bool out_of_patience)
{
	if ((seen & RW_CLOSED) || !(out_of_patience || rw_is_read(seen)))
		return;
	/* relaxed: closes the lock to newcomers; publishes nothing */
	(void)w_fetch_or_relaxed(&lock->word, RW_CLOSED);
	w_event(close);
}

/*
 * CLOSED -> 0 if nobody queues: after the last waiter has left the queue without entering, and
 * after a fair release has closed the lock, which may have seen that waiter. The next head, if any,
 * keeps CLOSED.
 */
static inline void shfl_rw_reopen(struct shfl_rw *lock)
{
	uint32_t seen;

	/*
	 * relaxed, both: our own changes or later ones. A thread that has queued since then clears
	 * CLOSED when it enters or gives up
	 */
	if (w_load_relaxed(&lock->tail))
		return;
	seen = w_load_relaxed(&lock->word);
	do {
		/* Such a thread sleeps: it would not notice that the lock is open. */
		if (seen & RW_PARKED)
			return;
		/* [SHFL_RW-2] release: pairs with [SHFL_RW-3]; the queue has ended */
	} while (!w_compare_exchange_release(&lock->word, &seen, seen & ~RW_CLOSED));
}

/*
 * Whether the writer inside is known not to run, so that spinning is useless. For a world whose
 * locks name their writers, which defines it before.
 */
#ifndef shfl_rw_writer_sleeps
#define shfl_rw_writer_sleeps(lock) ((void)(lock), false)
#endif

/*
 * Whether the head has something to do: the lock is free for it, or has readers and is open, and
 * has to be closed.
 */
static inline bool shfl_rw_calls(uint32_t seen, uint32_t against)
{
	return !(seen & against) || (rw_is_read(seen) && !(seen & RW_CLOSED));
}

/*
 * Whether the head stops spinning: it has something to do, or must sleep until the writer runs.
 * @seen: the word last read.
 */
static inline bool shfl_rw_spun(struct shfl_rw *lock, uint32_t seen, uint32_t against)
{
	return shfl_rw_calls(seen, against) || shfl_rw_writer_sleeps(lock);
}

/*
 * As the head, spins until there is something to do, the spin budget of @policy is exhausted, or
 * the writer inside does not run. Returns the word last read.
 */
static inline uint32_t shfl_rw_watch(struct shfl_rw *lock, uint32_t against,
				     struct shfl_rw_policy policy,
				     const struct w_deadline *deadline)
{
	const enum w_how how = wait_spins(wait_written(policy.wait), policy.wait, policy.spins);
	uint32_t seen, spins = 0;

	do
		/* [SHFL_RW-1] acquire: pairs with nothing; [RW_WORD-1] reads the word again */
		seen = w_wait_acquire(&lock->word, shfl_rw_spun(lock, VAL, against),
				      spins ? W_BRIEF : how, deadline);
	while (++spins < policy.spins && !shfl_rw_spun(lock, seen, against) &&
	       !w_expired(deadline));
	return seen;
}

/*
 * As the head of the queue, enters. Returns false if @deadline passes first or the reader is
 * refused.
 */
static inline bool shfl_rw_enter_as_head(struct shfl_rw *lock, struct shfl_node *node, bool writes,
					 struct shfl_rw_policy policy,
					 const struct w_deadline *deadline, bool slept)
{
	const uint32_t against = rw_conflicts(writes), since = SHFL_RW_HAND_OFF ? wait_clock() : 0;
	uint32_t seen, attempts = 0;

	while (!rw_enter(&lock->word, writes, against, RW_CLOSED | RW_PARKED, &seen)) {
		if (w_unlikely(rw_refuses(writes, seen))) {
			rw_give_up(&lock->word);
			return false;
		}
		if (shfl_head_shuffles(node))
			shfl_shuffle(node, (struct shfl_stop){&lock->word, against, 0}, !slept,
				     shfl_rw_order(&policy));
		shfl_rw_close(lock, seen, shfl_rw_out_of_patience(attempts++, since, policy));
		seen = shfl_rw_watch(lock, against, policy, deadline);
		if (!(seen & against))
			continue;
		if (w_expired(deadline)) {
			rw_give_up(&lock->word);
			return false;
		}
		if (shfl_rw_calls(seen, against))
			continue;
		slept = true;
		rw_park(&lock->word, seen, deadline);
	}
	return true;
}

static W_SLOW bool shfl_rw_queue(struct shfl_rw *lock, struct shfl_node *node, bool writes,
				 struct shfl_rw_policy policy, const struct w_deadline *deadline)
{
	W_ATOMIC(uint32_t) *sleeper;
	bool entered, slept = false;

	(void)shfl_rw_drop_waiters(lock);
	if (!shfl_enter(&lock->tail, node, shfl_rw_note(lock, writes, policy.policy)) &&
	    !shfl_wait_turn(node,
			    wait_spins(wait_overtaken(policy.wait), policy.wait, policy.spins),
			    policy.wait, deadline, &slept, shfl_rw_order(&policy)))
		return false;
	entered = shfl_rw_enter_as_head(lock, node, writes, policy, deadline, slept);
	if (SHFL_RW_TOGETHER && entered && !writes && policy.wait == WAIT_PARK)
		shfl_rw_wake_readers(node, policy.batch);
	sleeper = shfl_leave(&lock->tail, node, policy.wait);
	/*
	 * If the next head is a reader, it can enter beside a reader; behind a writer it sleeps on.
	 */
	if (sleeper && entered && writes)
		heir_name(&lock->heir, sleeper, &lock->word, RW_HEIR);
	else if (sleeper)
		w_unpark(sleeper);
	if (!entered)
		shfl_rw_reopen(lock);
	return entered;
}

/* As shfl_rw_slow(), by settings in registers. */
static W_SLOW bool shfl_rw_slow_by(struct shfl_rw *lock, bool writes, enum wait wait,
				   struct shfl_tuning by, const struct w_deadline *deadline)
{
	const struct shfl_rw_policy policy = {wait, by.patience, by.policy, by.batch, by.spins};
	W_OWN_LINE struct shfl_node node;

	/*
	 * Refused at once: a reader that enters again must not wait for a writer that waits for it.
	 */
	if (!writes && rw_full(&lock->word))
		return false;
	return shfl_rw_queue(lock, w_waiter_node(&node, deadline), writes, policy, deadline);
}

/*
 * Slow path: the lock was taken. Returns false if @deadline (NULL: none) passes first or the reader
 * is refused.
 */
static inline bool shfl_rw_slow(struct shfl_rw *lock, bool writes, struct shfl_rw_policy policy,
				const struct w_deadline *deadline)
{
	return shfl_rw_slow_by(lock, writes, policy.wait, SHFL_TUNING(policy), deadline);
}

/* ---- The lock ---- */

/*
 * @again, here and below: the caller may be a reader of @lock already, and overtakes waiting
 * writers.
 */
static inline bool shfl_rw_try_read(struct shfl_rw *lock, bool again)
{
	return shfl_rw_try(lock, false, again);
}

/*
 * As shfl_rw_try_read(), by one fetch-and-add. Beside a writer, or while the lock is closed, it
 * counts as a reader for a moment. Not where processes fork.
 */
static inline bool shfl_rw_add_reader(struct shfl_rw *lock)
{
	return rw_add_reader(&lock->word, shfl_rw_against(false, false));
}

/* Returns false if @deadline (NULL: none) passes first, or if shfl_rw_full(). */
static inline bool shfl_rw_read(struct shfl_rw *lock, bool again, struct shfl_rw_policy policy,
				const struct w_deadline *deadline)
{
	uint32_t seen;

	return w_likely(shfl_rw_enter(lock, false, again, &seen)) ||
	       shfl_rw_slow(lock, false, policy, deadline);
}

/* Returns whether a reader is refused because there are too many. */
static inline bool shfl_rw_full(struct shfl_rw *lock)
{
	return rw_full(&lock->word);
}

/* Returns false, and changes nothing, if there was no reader. */
static inline bool shfl_rw_release_read(struct shfl_rw *lock, struct shfl_rw_policy policy)
{
	(void)policy;
	return rw_leave_read(&lock->word);
}

/* As shfl_rw_release_read(), by one fetch-and-add. Returns false, too late, if there was none. */
static inline bool shfl_rw_subtract_reader(struct shfl_rw *lock)
{
	return rw_subtract_reader(&lock->word) & RW_READERS;
}

/* Returns whether a fair release closes the lock, last seen as @seen: there is a waiter. */
static inline bool shfl_rw_closes(struct shfl_rw *lock, uint32_t seen)
{
	/* relaxed: shfl_rw_reopen() reads it again */
	return !(seen & RW_CLOSED) && w_load_relaxed(&lock->tail) && !shfl_rw_drop_waiters(lock);
}

/*
 * As the only thread inside: * -> CLOSED, if the word is *@seen. If the last waiter gives up at the
 * same time, either we see that the queue has ended, or the waiter clears CLOSED after us. Not
 * beside other readers: one of them may be the head, which has entered but not left the queue, and
 * would not clear CLOSED.
 */
static inline void shfl_rw_close_for_head(struct shfl_rw *lock, uint32_t *seen)
{
	/* [SHFL_RW-3] acquire: pairs with [SHFL_RW-2]; the end of the queue */
	if (!w_compare_exchange_acquire(&lock->word, seen, *seen | RW_CLOSED))
		return;
	*seen |= RW_CLOSED;
	shfl_rw_reopen(lock);
}

/*
 * As shfl_rw_release_read(), but the last reader leaves the lock to the head of the queue, if there
 * is one: newcomers do not overtake it. A waiter may be overtaken if the queue has just ended
 * before it came, by a thread that gave up.
 */
static inline bool shfl_rw_release_read_fair(struct shfl_rw *lock, struct shfl_rw_policy policy)
{
	/* relaxed: the compare-exchange decides */
	uint32_t seen = w_load_relaxed(&lock->word);

	(void)policy;
	while (seen & RW_READERS)
		if (rw_one_reader(seen) && shfl_rw_closes(lock, seen))
			shfl_rw_close_for_head(lock, &seen);
		else if (rw_leave_read_of(&lock->word, &seen))
			return true;
	return false;
}

static inline bool shfl_rw_try_write(struct shfl_rw *lock)
{
	return shfl_rw_try(lock, true, false);
}

static inline bool shfl_rw_write(struct shfl_rw *lock, struct shfl_rw_policy policy,
				 const struct w_deadline *deadline)
{
	uint32_t seen;

	return w_likely(shfl_rw_enter(lock, true, false, &seen)) ||
	       shfl_rw_slow(lock, true, policy, deadline);
}

/* Returns false, and changes nothing, if there was no writer. */
static inline bool shfl_rw_release_write(struct shfl_rw *lock, struct shfl_rw_policy policy)
{
	(void)policy;
	return rw_leave_write(&lock->word, &lock->heir);
}

/* As shfl_rw_release_write(), fair as shfl_rw_release_read_fair(). */
static inline bool shfl_rw_release_write_fair(struct shfl_rw *lock, struct shfl_rw_policy policy)
{
	/* relaxed: the compare-exchange decides */
	uint32_t seen = w_load_relaxed(&lock->word);

	while ((seen & RW_WRITER) && shfl_rw_closes(lock, seen))
		shfl_rw_close_for_head(lock, &seen);
	return shfl_rw_release_write(lock, policy);
}

#endif
