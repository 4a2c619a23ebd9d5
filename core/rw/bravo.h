/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * BRAVO: while no writer comes, readers of any readers-writer lock write to an entry of a table
 * instead of the lock.
 *
 * From: Dice and Kogan, "BRAVO: Biased Locking for Reader-Writer Locks", USENIX ATC'19.
 *
 * Promise: that of the underlying lock (bravo_LOCK is over LOCK). In addition, a writer pays for
 * revocation: a walk through the table, which readers cannot cause again before `inhibit` times its
 * duration has passed. A write trylock that finds biased readers holds the underlying lock for a
 * moment, during which another thread's read trylock may fail. 48 bytes including the underlying
 * lock, which has at most 24; nothing more per waiter or holder; a table of 4,096 entries (64 KiB)
 * per process. Atomic read-modify-writes of a reader: 2 and a fence, none of them on the lock's own
 * memory; of a writer: those of the underlying lock, and 2 more if it waits or revokes.
 *
 *   state = number of the bias << 23 | writers that wait or walk << 1 | BIASED
 *
 *   0 ──reader inside the underlying lock──▶ n, BIASED ──writer──▶ n, BIASED, 1 writer
 *   n, BIASED, 1 writer ──writer inside, after the walk──▶ 0
 *   n, BIASED, 1 writer ──deadline──▶ n, BIASED
 *   any ──writer that is about to wait──▶ any + 1 writer
 *   any + 1 writer ──it is inside the underlying lock, or at its deadline──▶ any
 *
 * Readers enter by the bias while the state counts no writer.
 *
 * An entry of bias B and thread T is a pair (bias, reader). While a reader of B is inside, its
 * lock's state has B's number and BIASED:
 *
 *   0, 0 ──T──▶ B, 0 ──state is still B's──▶ B, T ──leaving thread──▶ B, T|CLAIMED ──▶ B, 0
 *                 └──it is not──▶ 0, 0        │ ▲                      │    ▲
 *                                             │ └──depth was not 0─────┘    │ then unpark
 *                                             └─────writer──▶ B, T|WATCHED ─┘
 *   B, 0 ──leaving thread──▶ 0, 0
 *
 * Departures from the paper:
 *  - An entry also names its reader, once that is inside. A thread that leaves uses it to find out
 *    whether the entry is its own, so its caller need not remember it. A reader that enters again
 *    is counted in its entry, and never waits for a writer that waits for it. In a forked child,
 *    entries of readers that were not inside yet can be recognised and freed.
 *  - A writer that is about to wait announces it first: until it is done, readers neither enter by
 *    the bias nor set it. In the paper, only the writer that holds the underlying lock revokes the
 *    bias. Readers that keep entering by the bias overtake a waiting writer for as long as it
 *    waits, and a reader inside sets the bias although a writer waits for it.
 *  - An entry names the bias by which its reader entered, not the lock. Each time the bias is set,
 *    it gets a new number. A lock may be initialised again, or another lock created in its memory,
 *    without destroying the first: readers that never left it, because their guards were leaked or
 *    a fork did not copy their threads, do not count as readers of the new one. Their entries stay
 *    taken: a reader that hashes to one enters the underlying lock.
 *  - A thread may leave for another one. Two may try to by the same entry: the first claims it.
 *  - A revoking writer may sleep until the reader of an entry leaves, or give up at a deadline; the
 *    bias then remains.
 *  - The fences that the paper leaves to x86's atomic instructions are explicit.
 */
#ifndef POUNDLOCK_BRAVO_H
#define POUNDLOCK_BRAVO_H

#include "part/generation.h"
#include "part/wait.h"

#define BRAVO_BIASED UINT64_C(1)
#define BRAVO_WRITER UINT64_C(2)
#define BRAVO_NUMBER 23 /* shift of the number: fewer than 2^22 threads can wait */
#define BRAVO_WRITERS ((UINT64_C(1) << BRAVO_NUMBER) - BRAVO_WRITER)

#define BRAVO_WATCHED (1u << 31)
#define BRAVO_CLAIMED (1u << 30)
#define BRAVO_ID (BRAVO_CLAIMED - 1)

/*
 * Default `inhibit`, the paper's N: multiple of the time of a revocation for which the bias stays
 * off.
 */
#define BRAVO_INHIBIT 9

/* Follows the underlying lock. */
struct bravo {
	W_ATOMIC(uint32_t) generation;
	uint32_t embedder;
	W_ATOMIC(uint64_t) state;
	/* written by writers and read by readers, inside the underlying lock */
	uint64_t inhibited_until;
};

/* ---- Readers ---- */

_Static_assert(W_VISIBLE <= 1u << 16, "entries are told apart by 16 bits");

/* The entry that this thread uses for @lock. */
static inline struct w_visible *bravo_entry(const struct bravo *lock)
{
	uint64_t hash = ((uintptr_t)lock >> 3 ^ (uint64_t)w_self_id() << 40) * 0x9e3779b97f4a7c15;

	/* The highest bits: none below bit 40 depends on the thread, and few of the next ones. */
	return w_visible((uint32_t)(hash >> 48) % W_VISIBLE);
}

/*
 * The bias that the entries of @lock's readers contain while its state is @state; 0 if there is no
 * bias. Its bits for the count of writers are bits of the lock's address instead, so that a lock
 * that was copied while it was free has readers of its own.
 */
static inline uint64_t bravo_of(const struct bravo *lock, uint64_t state)
{
	const uintptr_t at = (uintptr_t)lock;

	if (!(state & BRAVO_BIASED))
		return 0;
	return (state & ~BRAVO_WRITERS) | ((at >> 3 ^ at >> 25) * BRAVO_WRITER & BRAVO_WRITERS);
}

/* As bravo_of(), for a thread that is a reader, or the writer of the underlying lock. */
static inline uint64_t bravo_now(struct bravo *lock)
{
	/*
	 * relaxed: the bias by which a reader is inside does not change, and a number newer than a
	 * writer's critical section does not exist
	 */
	return bravo_of(lock, w_load_relaxed(&lock->state));
}

static inline void bravo_vacate(struct w_visible *entry)
{
	/*
	 * [BRAVO-1] release: pairs with [BRAVO-5], [BRAVO-10]; our critical section, and the fields
	 * of the entry
	 */
	w_store_release(&entry->bias, 0);
}

/* CLAIMED -> @reader. */
static inline void bravo_unclaim(struct w_visible *entry, uint32_t reader)
{
	/* [BRAVO-2] release: pairs with [BRAVO-4]; the depth of the entry */
	w_store_release(&entry->reader, reader);
}

/*
 * T -> T|CLAIMED: claims @entry if reader @who (0: any) is inside by it and @bias. *@reader is the
 * entry's reader. The reader itself has to do this too, because another thread may leave on its
 * behalf.
 */
static inline bool bravo_claim(uint64_t bias, struct w_visible *entry, uint32_t who,
			       uint32_t *reader)
{
	/*
	 * relaxed, both: written by this reader itself, or handed to the thread that leaves on its
	 * behalf; [BRAVO-4] decides
	 */
	while (w_load_relaxed(&entry->bias) == bias) {
		*reader = w_load_relaxed(&entry->reader);
		if (!*reader || (who && (*reader & BRAVO_ID) != who))
			return false;
		if (*reader & BRAVO_CLAIMED)
			/* [BRAVO-3] acquire: pairs with nothing; the loop reads it again */
			(void)w_wait_acquire(&entry->reader, !(VAL & BRAVO_CLAIMED), W_YIELD, NULL);
		/*
		 * [BRAVO-4] acquire: pairs with [BRAVO-2], [BRAVO-8]; the depth and the reader of
		 * the entry
		 */
		else if (w_compare_exchange_acquire(&entry->reader, reader,
						    *reader | BRAVO_CLAIMED)) {
			/*
			 * relaxed: [BRAVO-4] orders it. The reader may have left and entered
			 * another lock by the same entry
			 */
			if (w_load_relaxed(&entry->bias) == bias)
				return true;
			bravo_unclaim(entry, *reader);
		}
	}
	return false;
}

/*
 * Enters again by @entry, beside the reader @who (0: any). Returns false if that reader is not
 * inside by it and @bias, or if the depth would overflow.
 */
static inline bool bravo_enter_beside(uint64_t bias, struct w_visible *entry, uint32_t who)
{
	uint32_t reader;
	bool counted;

	if (!bravo_claim(bias, entry, who, &reader))
		return false;
	counted = entry->depth < UINT32_MAX;
	entry->depth += counted;
	bravo_unclaim(entry, reader);
	return counted;
}

/*
 * Enters again, for a thread that is a reader by an entry that another thread made and handed to
 * it. A writer inside the underlying lock waits for that reader. Returns false if there is no
 * reader.
 */
static W_SLOW bool bravo_enter_beside_another(struct bravo *lock)
{
	const uint64_t bias = bravo_now(lock);

	for (uint32_t i = 0; bias && i < W_VISIBLE; i++)
		if (bravo_enter_beside(bias, w_visible(i), 0))
			return true;
	return false;
}

/* Enters without touching the underlying lock. @again: as in locks.def. */
static inline bool bravo_enter(struct bravo *lock, bool again)
{
	/* relaxed: a hint; read again below */
	const uint64_t state = w_load_relaxed(&lock->state), bias = bravo_of(lock, state);
	const bool barred = state & BRAVO_WRITERS;
	struct w_visible *entry;
	uint64_t nobody = 0;

	if (!bias || (barred && !again))
		return false;
	entry = bravo_entry(lock);
	if (again && bravo_enter_beside(bias, entry, w_self_id()))
		return true;
	/* [BRAVO-5] acquire: pairs with [BRAVO-1]; the fields of the entry */
	if (barred || !w_compare_exchange_acquire(&entry->bias, &nobody, bias))
		return false;
	/*
	 * [BRAVO-6] fence: with [BRAVO-12]: either we see that the bias is revoked, or the writer
	 * sees our entry
	 */
	w_fence_seq_cst();
	/*
	 * [BRAVO-7] acquire: pairs with [BRAVO-9], also through the changes that writers made to
	 * it; the critical sections of the writers before it
	 */
	if (w_load_acquire(&lock->state) == state) {
		/* [BRAVO-8] release: pairs with [BRAVO-4]; the reader and the depth of the entry */
		w_store_release(&entry->reader, w_self_id());
		return true;
	}
	bravo_vacate(entry);
	return false;
}

/* Leaves by @entry if reader @who (0: any) is inside by it and @bias. Does not touch the lock. */
static inline bool bravo_leave_entry(uint64_t bias, struct w_visible *entry, uint32_t who)
{
	uint32_t reader;

	if (!bravo_claim(bias, entry, who, &reader))
		return false;
	if (entry->depth) {
		entry->depth--;
		bravo_unclaim(entry, reader);
		return true;
	}
	/* relaxed: bravo_vacate() publishes it. A claimed entry does not become WATCHED */
	w_store_relaxed(&entry->reader, 0);
	bravo_vacate(entry);
	if (reader & BRAVO_WATCHED) {
		w_event(wake_late);
		w_unpark_all(&entry->reader);
	}
	return true;
}

/* Leaves if this thread is inside by its own entry. */
static inline bool bravo_leave(struct bravo *lock)
{
	const uint64_t bias = bravo_now(lock);

	return bias && bravo_leave_entry(bias, bravo_entry(lock), w_self_id());
}

/*
 * Leaves on behalf of a reader that entered by its entry, for a thread that is not a reader itself:
 * the program has handed it the other thread's hold. Returns false if there is no such reader.
 */
static W_SLOW bool bravo_leave_for_another(struct bravo *lock)
{
	const uint64_t bias = bravo_now(lock);

	for (uint32_t i = 0; bias && i < W_VISIBLE; i++)
		if (bravo_leave_entry(bias, w_visible(i), 0))
			return true;
	return false;
}

/*
 * As a reader inside the underlying lock: 0 -> BIASED, so that the next readers bypass the lock,
 * unless a writer waits or the bias was revoked recently.
 */
static inline void bravo_bias(struct bravo *lock)
{
	uint64_t seen = 0;

	/* relaxed: the compare-exchange decides; no writer is inside */
	if (w_load_relaxed(&lock->state) || w_now() < lock->inhibited_until)
		return;
	/*
	 * [BRAVO-9] release: pairs with [BRAVO-7]; the critical sections of the writers before us.
	 * The number has 41 bits
	 */
	if (w_compare_exchange_release(&lock->state, &seen,
				       w_unique() << BRAVO_NUMBER | BRAVO_BIASED))
		w_event(bias);
}

/* ---- Writers ---- */

/* reader -> reader|WATCHED, then sleeps until the reader of @entry leaves. May wake early. */
static inline void bravo_watch(struct w_visible *entry, const struct w_deadline *deadline)
{
	/* relaxed, both: only the reader's identity matters */
	uint32_t reader = w_load_relaxed(&entry->reader);

	if (!reader || (reader & BRAVO_CLAIMED)) {
		/* It is entering or leaving. */
		w_yield();
		return;
	}
	if (!(reader & BRAVO_WATCHED) &&
	    !w_compare_exchange_relaxed(&entry->reader, &reader, reader | BRAVO_WATCHED))
		return;
	w_event(park);
	w_park(&entry->reader, reader | BRAVO_WATCHED, deadline);
}

/*
 * Waits until no reader is inside by @entry and @bias. Returns false if @deadline passes first, or,
 * without @patient, if it would have to wait.
 */
static inline bool bravo_await(uint64_t bias, struct w_visible *entry, enum wait wait, bool patient,
			       const struct w_deadline *deadline)
{
	/* [BRAVO-10] acquire: pairs with [BRAVO-1]; the reader's critical section */
	while (w_load_acquire(&entry->bias) == bias) {
		if (!patient || w_expired(deadline))
			return false;
		/* [BRAVO-11] acquire: pairs with nothing; [BRAVO-10] reads the word again */
		if (w_wait_acquire(&entry->bias, VAL != bias, wait_turn(wait), deadline) == bias &&
		    wait == WAIT_PARK)
			bravo_watch(entry, deadline);
	}
	return true;
}

/* As a writer that is about to wait, stops readers from entering by the bias. */
static inline void bravo_announce(struct bravo *lock)
{
	/* relaxed: the walk, which [BRAVO-12] orders, finds readers that miss it */
	(void)w_fetch_add_relaxed(&lock->state, BRAVO_WRITER);
}

/*
 * As that writer, which gives up or is inside the underlying lock: undoes bravo_announce() and
 * subtracts @with.
 */
static inline void bravo_withdraw(struct bravo *lock, uint64_t with)
{
	/*
	 * relaxed: if the bias is still set, no writer has been inside since [BRAVO-9]; otherwise
	 * readers use the underlying lock
	 */
	(void)w_fetch_add_relaxed(&lock->state, 0 - BRAVO_WRITER - with);
}

/*
 * Waits, if @patient, until no reader is inside by @bias. Returns false if there is one, or at
 * @deadline.
 */
static inline bool bravo_walk(uint64_t bias, enum wait wait, bool patient,
			      const struct w_deadline *deadline)
{
	for (uint32_t i = 0; i < W_VISIBLE; i++)
		if (!bravo_await(bias, w_visible(i), wait, patient, deadline))
			return false;
	return true;
}

/*
 * As the writer inside the underlying lock, revokes the bias and waits until the readers that
 * entered by it have left. Returns false, and keeps the bias, if @deadline passes first, or,
 * without @patient, if there are such readers. @announced: the writer has called bravo_announce().
 * @inhibit: multiple of the time that this takes for which the bias stays off.
 */
static inline bool bravo_revoke(struct bravo *lock, bool announced, enum wait wait,
				uint32_t inhibit, bool patient, const struct w_deadline *deadline)
{
	/*
	 * relaxed: the bias was set by a reader inside the underlying lock, before us. Only we
	 * revoke it
	 */
	const uint64_t state = w_load_relaxed(&lock->state);
	uint64_t start, end;

	if (w_likely(!(state & BRAVO_BIASED))) {
		if (announced)
			bravo_withdraw(lock, 0);
		return true;
	}
	w_event(revoke);
	if (!announced)
		bravo_announce(lock);
	/* [BRAVO-12] fence: with [BRAVO-6], as there */
	w_fence_seq_cst();
	start = w_now();
	if (!bravo_walk(bravo_of(lock, state), wait, patient, deadline)) {
		bravo_withdraw(lock, 0);
		return false;
	}
	end = w_now();
	lock->inhibited_until = end + (end - start) * inhibit;
	bravo_withdraw(lock, state & ~BRAVO_WRITERS);
	return true;
}

/* ---- Fork ---- */

/*
 * In a forked child, before any thread uses a lock: frees the entries of readers that were not
 * inside yet, and claimed ones.
 */
static inline void bravo_after_fork(void)
{
	for (uint32_t i = 0; i < W_VISIBLE; i++) {
		/* relaxed, all: there is only one thread */
		uint32_t reader = w_load_relaxed(&w_visible(i)->reader);

		if (!reader)
			w_store_relaxed(&w_visible(i)->bias, 0);
		else if (reader & BRAVO_CLAIMED)
			w_store_relaxed(&w_visible(i)->reader, reader & BRAVO_ID);
	}
}

/*
 * In a forked child, for the thread that repairs @lock: discards the parent's waiting writers.
 * Returns whether one of them may hold the underlying lock without being inside yet; a writer that
 * is inside has revoked the bias.
 */
static inline bool bravo_drop_writers(struct bravo *lock)
{
	/* relaxed: [GENERATION-3] publishes it; nobody enters the underlying lock before that */
	return w_fetch_and_relaxed(&lock->state, ~BRAVO_WRITERS) & BRAVO_BIASED;
}

/* ---- Over a lock ---- */

_Static_assert(offsetof(struct bravo, embedder) == 28 - 24, "bytes 28 to 31 are the embedder's");

/*
 * Defines the releases of bravo_UNDER by those of UNDER. @how is appended to their names: nothing,
 * or _fair.
 */
#define BRAVO_RELEASES(under, how)                                                                 \
	static inline bool bravo_##under##_release_read##how(struct bravo_##under *lock,           \
							     struct bravo_##under##_policy policy) \
	{                                                                                          \
		return bravo_leave(&lock->bravo) ||                                                \
		       under##_release_read##how(&lock->lock, bravo_##under##_under(policy)) ||    \
		       bravo_leave_for_another(&lock->bravo);                                      \
	}                                                                                          \
                                                                                                   \
	static inline bool bravo_##under##_release_write##how(                                     \
		struct bravo_##under *lock, struct bravo_##under##_policy policy)                  \
	{                                                                                          \
		return under##_release_write##how(&lock->lock, bravo_##under##_under(policy));     \
	}

/*
 * Defines bravo_UNDER over UNDER, with the functions of locks.def. Requires struct
 * bravo_UNDER_policy and bravo_UNDER_under(policy), which converts it to UNDER's policy. A reader
 * fails if the deadline passes first, or if it is refused: bravo_UNDER_full().
 */
#define BRAVO_OVER(under)                                                                         \
	struct bravo_##under {                                                                    \
		union {                                                                           \
			struct under lock;                                                        \
			char room[24];                                                            \
		};                                                                                \
		struct bravo bravo;                                                               \
	};                                                                                        \
                                                                                                  \
	static inline void bravo_##under##_repair(struct bravo_##under *lock,                     \
						  struct bravo_##under##_policy policy)           \
	{                                                                                         \
		if (w_likely(!generation_claim(&lock->bravo.generation)))                         \
			return;                                                                   \
		if (bravo_drop_writers(&lock->bravo))                                             \
			(void)under##_release_write(&lock->lock, bravo_##under##_under(policy));  \
		generation_settle(&lock->bravo.generation);                                       \
	}                                                                                         \
                                                                                                  \
	static inline bool bravo_##under##_try_read(struct bravo_##under *lock, bool again)       \
	{                                                                                         \
		if (bravo_enter(&lock->bravo, again))                                             \
			return true;                                                              \
		bravo_##under##_repair(lock, (struct bravo_##under##_policy){.wait = WAIT_PARK}); \
		if (under##_try_read(&lock->lock, again)) {                                       \
			bravo_bias(&lock->bravo);                                                 \
			return true;                                                              \
		}                                                                                 \
		return again && bravo_enter_beside_another(&lock->bravo);                         \
	}                                                                                         \
                                                                                                  \
	static inline bool bravo_##under##_read(struct bravo_##under *lock, bool again,           \
						struct bravo_##under##_policy policy,             \
						const struct w_deadline *deadline)                \
	{                                                                                         \
		if (again ? bravo_##under##_try_read(lock, true)                                  \
			  : bravo_enter(&lock->bravo, false))                                     \
			return true;                                                              \
		bravo_##under##_repair(lock, policy);                                             \
		if (!under##_read(&lock->lock, again, bravo_##under##_under(policy), deadline))   \
			return false;                                                             \
		bravo_bias(&lock->bravo);                                                         \
		return true;                                                                      \
	}                                                                                         \
                                                                                                  \
	static inline bool bravo_##under##_full(struct bravo_##under *lock)                       \
	{                                                                                         \
		return under##_full(&lock->lock);                                                 \
	}                                                                                         \
                                                                                                  \
	static inline bool bravo_##under##_try_write(struct bravo_##under *lock)                  \
	{                                                                                         \
		struct bravo_##under##_policy policy = {.wait = WAIT_PARK};                       \
                                                                                                  \
		bravo_##under##_repair(lock, policy);                                             \
		if (!under##_try_write(&lock->lock))                                              \
			return false;                                                             \
		if (bravo_revoke(&lock->bravo, false, policy.wait, BRAVO_INHIBIT, false, NULL))   \
			return true;                                                              \
		(void)under##_release_write(&lock->lock, bravo_##under##_under(policy));          \
		return false;                                                                     \
	}                                                                                         \
                                                                                                  \
	static inline bool bravo_##under##_write(struct bravo_##under *lock,                      \
						 struct bravo_##under##_policy policy,            \
						 const struct w_deadline *deadline)               \
	{                                                                                         \
		bool announced;                                                                   \
                                                                                                  \
		bravo_##under##_repair(lock, policy);                                             \
		announced = !under##_try_write(&lock->lock);                                      \
		if (announced) {                                                                  \
			bravo_announce(&lock->bravo);                                             \
			if (!under##_write(&lock->lock, bravo_##under##_under(policy),            \
					   deadline)) {                                           \
				bravo_withdraw(&lock->bravo, 0);                                  \
				return false;                                                     \
			}                                                                         \
		}                                                                                 \
		if (bravo_revoke(&lock->bravo, announced, policy.wait, policy.inhibit, true,      \
				 deadline))                                                       \
			return true;                                                              \
		w_event(abandon);                                                                 \
		(void)under##_release_write(&lock->lock, bravo_##under##_under(policy));          \
		return false;                                                                     \
	}                                                                                         \
                                                                                                  \
	BRAVO_RELEASES(under, )                                                                   \
	BRAVO_RELEASES(under, _fair)

#endif
