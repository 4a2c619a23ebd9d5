/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * BRAVO: readers of any readers-writer lock write to a place of their own instead of the lock, while no writer comes.
 *
 * From: Dice and Kogan, "BRAVO: Biased Locking for Reader-Writer Locks", USENIX ATC'19.
 * Changed, and why:
 *  - An entry of the table also names the reader, once it is inside. A thread that leaves finds by it whether the entry is
 *    its own, instead of remembering it in its caller; one that enters again counts in its entry, and so never waits for
 *    a writer that waits for it; and in a forked child entries of readers that were not yet inside can be told and freed.
 *  - A writer takes the bias back before it waits for the lock under it, not only when it has it: readers that kept entering
 *    without that would pass it for as long as it waits.
 *  - A revoking writer may sleep until the reader of an entry leaves, or give up at a deadline; the bias then stays.
 *  - The fences that the paper leaves to x86's atomic instructions are written.
 *
 * Promises: what the lock under it does (bravo_LOCK is over LOCK), but that a writer pays for revoking: a walk through the
 * table, which readers may not make it do again before `inhibit` times as long has passed. A try to write that finds biased readers
 * holds the lock under it for a moment, in which another's try to read may fail. 48 bytes with the lock under it, which has 24 at most; of the lock's waiters and holders no more. Atomic
 * read-modify-writes of a reader: 1 and a fence (2 under wait=park), none of them on the lock's own memory.
 *
 * state: 0 ──reader, inside the lock under it──▶ BIASED ──writer──▶ REVOKING ──writer, inside the lock under it──▶ 0
 *                                                  ▲                   │
 *                                                  └──────deadline─────┘ inside the lock under it; before, it stays
 *
 * An entry, of lock L and thread T:
 *
 *   0, 0 ──T──▶ L, 0 ──state is BIASED──▶ L, T ──leaves──▶ L, 0 ──▶ 0, 0
 *                 └──state is not──▶ 0, 0    └──writer──▶ L, T|WATCHED ──leaves, unpark──▶ L, 0 ──▶ 0, 0
 */
#ifndef POUNDLOCK_BRAVO_H
#define POUNDLOCK_BRAVO_H

#include "generation.h"
#include "wait.h"

enum { BRAVO_UNBIASED, BRAVO_BIASED, BRAVO_REVOKING };

#define BRAVO_WATCHED (1u << 31)

/* How many times as long as revoking took readers do without bias, where nobody says: the paper's N. */
#define BRAVO_INHIBIT 9

/* Behind the lock under it. */
struct bravo {
	W_ATOMIC(uint32_t) state;
	uint32_t embedder;
	uint64_t inhibited_until; /* written by writers, read by readers, inside the lock under it */
	W_ATOMIC(uint32_t) generation;
};

/* ---- Readers ---- */

/* The entry that this thread may use for @lock. */
static inline struct w_visible *bravo_entry(const struct bravo *lock)
{
	uint64_t hash = ((uintptr_t)lock >> 3 ^ (uint64_t)w_self_id() << 40) * 0x9e3779b97f4a7c15;

	return w_visible((uint32_t)(hash >> 32) % W_VISIBLE);
}

/* Whether this thread is inside @lock by its @entry. */
static inline bool bravo_is_inside(const struct bravo *lock, struct w_visible *entry)
{
	/* relaxed, both: only the thread itself writes its id there, after and before it writes the lock */
	return w_load_relaxed(&entry->lock) == (uintptr_t)lock &&
	       (w_load_relaxed(&entry->reader) & ~BRAVO_WATCHED) == w_self_id();
}

static inline void bravo_vacate(struct w_visible *entry)
{
	/* [B1] release: pairs with [B2], [B5], [B7]; our critical section, and the entry's fields */
	w_store_release(&entry->lock, 0);
}

/* Enters without touching the lock under it. @again: as in locks.def. */
static inline bool bravo_enter(struct bravo *lock, bool again)
{
	struct w_visible *entry;
	uintptr_t nobody = 0;

	/* relaxed: a hint; read again below */
	if (w_load_relaxed(&lock->state) != BRAVO_BIASED && !again)
		return false;
	entry = bravo_entry(lock);
	if (again && bravo_is_inside(lock, entry)) {
		entry->depth++;
		return true;
	}
	/* [B2] acquire: pairs with [B1]; the entry's fields */
	if (!w_compare_exchange_acquire(&entry->lock, &nobody, (uintptr_t)lock))
		return false;
	/* [B3] fence: with [B6]: either we see that the bias is revoked, or the writer sees our entry */
	w_fence_seq_cst();
	/* [B4] acquire: pairs with [B8], [B9]; the critical sections of the writers before */
	if (w_load_acquire(&lock->state) == BRAVO_BIASED) {
		/* relaxed: only we, and who watches us, act on it */
		w_store_relaxed(&entry->reader, w_self_id());
		return true;
	}
	bravo_vacate(entry);
	return false;
}

/* Leaves, if the thread is inside by its entry. The lock is not touched. */
static inline bool bravo_leave(const struct bravo *lock, enum wait wait)
{
	struct w_visible *entry = bravo_entry(lock);
	uint32_t seen = 0;

	if (!bravo_is_inside(lock, entry))
		return false;
	if (entry->depth) {
		entry->depth--;
		return true;
	}
	/* relaxed, both: bravo_vacate() publishes it */
	if (wait == WAIT_PARK)
		seen = w_exchange_relaxed(&entry->reader, 0);
	else
		w_store_relaxed(&entry->reader, 0);
	bravo_vacate(entry);
	if (seen & BRAVO_WATCHED) {
		w_event(wake_late);
		w_unpark_all(&entry->reader);
	}
	return true;
}

/*
 * Leaves in the stead of a reader that has entered by its entry, for a thread that is none itself: the program has given
 * it the other's hold. False if there is no such reader.
 */
static W_SLOW bool bravo_leave_for_another(const struct bravo *lock)
{
	struct w_visible *entry;
	uint32_t reader;

	for (uint32_t i = 0; i < W_VISIBLE; i++) {
		entry = w_visible(i);
		/* relaxed, all: the program has ordered the reader before us; bravo_vacate() publishes */
		if (w_load_relaxed(&entry->lock) != (uintptr_t)lock)
			continue;
		reader = w_load_relaxed(&entry->reader);
		if (!reader || !w_compare_exchange_relaxed(&entry->reader, &reader, 0))
			continue;
		if (entry->depth) {
			entry->depth--;
			w_store_relaxed(&entry->reader, reader);
			return true;
		}
		bravo_vacate(entry);
		if (reader & BRAVO_WATCHED) {
			w_event(wake_late);
			w_unpark_all(&entry->reader);
		}
		return true;
	}
	return false;
}

/* As a reader inside the lock under it, lets the next ones do without it, unless that was revoked a moment ago. */
static inline void bravo_bias(struct bravo *lock)
{
	/* relaxed: no writer is inside, so it changes to BIASED only */
	if (w_load_relaxed(&lock->state) != BRAVO_UNBIASED || w_now() < lock->inhibited_until)
		return;
	w_event(bias);
	/* [B8] release: pairs with [B4]; the critical sections of the writers before us */
	w_store_release(&lock->state, BRAVO_BIASED);
}

/* ---- Writers ---- */

/* Sleeps until the reader of @entry leaves. May wake early. */
static inline void bravo_watch(struct w_visible *entry, const struct w_deadline *deadline)
{
	/* relaxed, both: only whether the reader is still the same matters */
	uint32_t reader = w_load_relaxed(&entry->reader);

	if (!reader) {
		/* It enters or leaves at this moment. */
		w_yield();
		return;
	}
	if (!(reader & BRAVO_WATCHED) && !w_compare_exchange_relaxed(&entry->reader, &reader, reader | BRAVO_WATCHED))
		return;
	w_event(park);
	w_park(&entry->reader, reader | BRAVO_WATCHED, deadline);
}

/* Waits until @entry is no reader's of @lock. False if it would be later than @deadline; @patient: if it would at all. */
static inline bool bravo_await(const struct bravo *lock, struct w_visible *entry, enum wait wait, bool patient,
			       const struct w_deadline *deadline)
{
	/* [B5] acquire: pairs with [B1]; the reader's critical section */
	while (w_load_acquire(&entry->lock) == (uintptr_t)lock) {
		if (!patient || w_expired(deadline))
			return false;
		/* [B7] acquire: pairs with [B1], as [B5] */
		if (w_wait_acquire(&entry->lock, VAL != (uintptr_t)lock, wait_turn(wait), deadline) ==
			    (uintptr_t)lock &&
		    wait == WAIT_PARK)
			bravo_watch(entry, deadline);
	}
	return true;
}

/* As a writer that is about to wait for the lock under it, lets no more readers in without that. */
static inline void bravo_announce(struct bravo *lock)
{
	uint32_t biased = BRAVO_BIASED;

	/* relaxed, both: whoever becomes the writer finds it changed, or biased again, and walks */
	if (w_load_relaxed(&lock->state) == BRAVO_BIASED)
		(void)w_compare_exchange_relaxed(&lock->state, &biased, BRAVO_REVOKING);
}

/*
 * As the writer inside the lock under it, waits until the readers who entered without that have left. False, and they
 * may go on, if that would be later than @deadline, or, not @patient, if there are any. @inhibit: how many times as long
 * as it took readers are not to be let in so again.
 */
static inline bool bravo_revoke(struct bravo *lock, enum wait wait, uint32_t inhibit, bool patient,
				const struct w_deadline *deadline)
{
	uint64_t start, end;

	/* relaxed: who changed it was a reader or a writer inside the lock under it, before us */
	if (w_likely(w_load_relaxed(&lock->state) == BRAVO_UNBIASED))
		return true;
	w_event(revoke);
	/* relaxed: the fence orders it before the walk; nothing is published */
	w_store_relaxed(&lock->state, BRAVO_REVOKING);
	/* [B6] fence: with [B3], as there */
	w_fence_seq_cst();
	start = w_now();
	for (uint32_t i = 0; i < W_VISIBLE; i++) {
		if (bravo_await(lock, w_visible(i), wait, patient, deadline))
			continue;
		/* [B9] release: pairs with [B4]; the critical sections of the writers before us */
		w_store_release(&lock->state, BRAVO_BIASED);
		return false;
	}
	end = w_now();
	lock->inhibited_until = end + (end - start) * inhibit;
	/* relaxed: whoever acts on it comes after us, through the lock under it */
	w_store_relaxed(&lock->state, BRAVO_UNBIASED);
	return true;
}

/* ---- Fork ---- */

/* In a forked child, before any thread uses a lock there: frees the entries of readers that were not yet inside. */
static inline void bravo_after_fork(void)
{
	for (uint32_t i = 0; i < W_VISIBLE; i++) {
		/* relaxed, both: there is one thread only */
		if (!w_load_relaxed(&w_visible(i)->reader))
			w_store_relaxed(&w_visible(i)->lock, 0);
	}
}

/*
 * In a forked child, for who repairs @lock: whether the lock under it may be held by a writer of the parent that was not
 * inside yet. One that is inside has revoked the bias.
 */
static inline bool bravo_has_no_writer(struct bravo *lock)
{
	/* relaxed, both: [G4] publishes it, and nobody enters the lock under it until then */
	if (w_load_relaxed(&lock->state) == BRAVO_UNBIASED)
		return false;
	w_store_relaxed(&lock->state, BRAVO_BIASED);
	return true;
}

/* ---- Over a lock ---- */

_Static_assert(offsetof(struct bravo, embedder) == 28 - 24, "bytes 28 to 31 are the embedder's");

/*
 * Defines bravo_UNDER over UNDER, with the functions of locks.def. struct bravo_UNDER_policy and bravo_UNDER_under(policy),
 * which makes UNDER's policy of it, are there already.
 */
#define BRAVO_OVER(under)                                                                                           \
	struct bravo_##under {                                                                                      \
		union {                                                                                             \
			struct under lock;                                                                          \
			char room[24];                                                                              \
		};                                                                                                  \
		struct bravo bravo;                                                                                 \
	};                                                                                                          \
                                                                                                                    \
	static inline void bravo_##under##_repair(struct bravo_##under *lock, struct bravo_##under##_policy policy) \
	{                                                                                                           \
		if (w_likely(!generation_claim(&lock->bravo.generation)))                                           \
			return;                                                                                     \
		if (bravo_has_no_writer(&lock->bravo))                                                              \
			(void)under##_release_write(&lock->lock, bravo_##under##_under(policy));                    \
		generation_settle(&lock->bravo.generation);                                                         \
	}                                                                                                           \
                                                                                                                    \
	static inline bool bravo_##under##_try_read(struct bravo_##under *lock, bool again)                         \
	{                                                                                                           \
		if (bravo_enter(&lock->bravo, again))                                                               \
			return true;                                                                                \
		bravo_##under##_repair(lock, (struct bravo_##under##_policy){.wait = WAIT_PARK});                   \
		if (!under##_try_read(&lock->lock, again))                                                          \
			return false;                                                                               \
		bravo_bias(&lock->bravo);                                                                           \
		return true;                                                                                        \
	}                                                                                                           \
                                                                                                                    \
	static inline bool bravo_##under##_read(struct bravo_##under *lock, bool again,                             \
						struct bravo_##under##_policy policy,                               \
						const struct w_deadline *deadline)                                  \
	{                                                                                                           \
		if (bravo_enter(&lock->bravo, again))                                                               \
			return true;                                                                                \
		bravo_##under##_repair(lock, policy);                                                               \
		if (!under##_read(&lock->lock, again, bravo_##under##_under(policy), deadline))                     \
			return false;                                                                               \
		bravo_bias(&lock->bravo);                                                                           \
		return true;                                                                                        \
	}                                                                                                           \
                                                                                                                    \
	static inline bool bravo_##under##_release_read(struct bravo_##under *lock,                                 \
							struct bravo_##under##_policy policy)                       \
	{                                                                                                           \
		return bravo_leave(&lock->bravo, policy.wait) ||                                                    \
		       under##_release_read(&lock->lock, bravo_##under##_under(policy)) ||                          \
		       bravo_leave_for_another(&lock->bravo);                                                       \
	}                                                                                                           \
                                                                                                                    \
	static inline bool bravo_##under##_try_write(struct bravo_##under *lock)                                    \
	{                                                                                                           \
		struct bravo_##under##_policy policy = {.wait = WAIT_PARK};                                         \
                                                                                                                    \
		bravo_##under##_repair(lock, policy);                                                               \
		if (!under##_try_write(&lock->lock))                                                                \
			return false;                                                                               \
		if (bravo_revoke(&lock->bravo, policy.wait, BRAVO_INHIBIT, false, NULL))                            \
			return true;                                                                                \
		(void)under##_release_write(&lock->lock, bravo_##under##_under(policy));                            \
		return false;                                                                                       \
	}                                                                                                           \
                                                                                                                    \
	static inline bool bravo_##under##_write(struct bravo_##under *lock, struct bravo_##under##_policy policy,  \
						 const struct w_deadline *deadline)                                 \
	{                                                                                                           \
		bravo_##under##_repair(lock, policy);                                                               \
		bravo_announce(&lock->bravo);                                                                       \
		if (!under##_write(&lock->lock, bravo_##under##_under(policy), deadline))                           \
			return false;                                                                               \
		if (bravo_revoke(&lock->bravo, policy.wait, policy.inhibit, true, deadline))                        \
			return true;                                                                                \
		w_event(abandon);                                                                                   \
		(void)under##_release_write(&lock->lock, bravo_##under##_under(policy));                            \
		return false;                                                                                       \
	}                                                                                                           \
                                                                                                                    \
	static inline bool bravo_##under##_release_write(struct bravo_##under *lock,                                \
							 struct bravo_##under##_policy policy)                      \
	{                                                                                                           \
		return under##_release_write(&lock->lock, bravo_##under##_under(policy));                           \
	}

#endif
