/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * BRAVO: readers of any readers-writer lock write to a place of their own instead of the lock, while no writer comes.
 *
 * From: Dice and Kogan, "BRAVO: Biased Locking for Reader-Writer Locks", USENIX ATC'19.
 * Changed, and why:
 *  - An entry of the table also names the reader, once it is inside. A thread that leaves finds by it whether the entry is
 *    its own, instead of remembering it in its caller; one that enters again counts in its entry, and so never waits for
 *    a writer that waits for it; and in a forked child entries of readers that were not yet inside can be told and freed.
 *  - A writer that is about to wait says so first: as long as one does readers neither enter by the bias nor give it.
 *    In the paper, where only the writer that has the lock under it takes the bias back, readers that keep entering
 *    without that pass it for as long as it waits; and a reader inside gives the bias though a writer waits for it.
 *  - An entry names the bias by which its reader entered, not the lock: whenever the bias is given it gets a number of its
 *    own. A lock may be initialised again, or another one made in its memory, without destroying the first: readers that
 *    the first never let go, whose guards were forgotten or whose threads a fork did not copy, are none of the new one's.
 *  - A revoking writer may sleep until the reader of an entry leaves, or give up at a deadline; the bias then stays.
 *  - The fences that the paper leaves to x86's atomic instructions are written.
 *
 * Promises: what the lock under it does (bravo_LOCK is over LOCK), but that a writer pays for revoking: a walk through the
 * table, which readers may not make it do again before `inhibit` times as long has passed. A try to write that finds
 * biased readers holds the lock under it for a moment, in which another's try to read may fail. 48 bytes with the lock
 * under it, which has 24 at most; of the lock's waiters and holders no more. Atomic read-modify-writes of a reader: 2 and
 * a fence, none of them on the lock's own memory; of a writer: those of the lock under it, 2 more if it waits or revokes.
 *
 * state = the bias's number << 23 | writers that wait or walk << 1 | BIASED. Readers enter by the bias while no writer waits
 *
 *   0 ──reader, inside the lock under it──▶ n, BIASED ──writer──▶ n, BIASED, 1 writer ──writer, inside it, after the walk──▶ 0
 *                                             ▲                   │
 *                                             └──────deadline─────┘
 *   any ──writer that is about to wait──▶ any + 1 writer ──it is inside the lock under it, or its deadline──▶ any
 *
 * An entry, of bias B and thread T, as bias, reader. While one of B is inside, its lock's state has B's number and BIASED:
 *
 *   0, 0 ──T──▶ B, 0 ──state is B's still──▶ B, T ──whoever leaves──▶ B, T|CLAIMED ──▶ B, 0 ──▶ 0, 0
 *                 └──it is not──▶ 0, 0        │ ▲                      │    ▲
 *                                             │ └──depth was not 0─────┘    │ then unpark
 *                                             └─────writer──▶ B, T|WATCHED ─┘
 */
#ifndef POUNDLOCK_BRAVO_H
#define POUNDLOCK_BRAVO_H

#include "part/generation.h"
#include "part/wait.h"

#define BRAVO_BIASED UINT64_C(1)
#define BRAVO_WRITER UINT64_C(2)
#define BRAVO_NUMBER 23 /* where the number begins: there are fewer threads than 2^22 that could wait */
#define BRAVO_WRITERS ((UINT64_C(1) << BRAVO_NUMBER) - BRAVO_WRITER)

#define BRAVO_WATCHED (1u << 31)
#define BRAVO_CLAIMED (1u << 30)
#define BRAVO_ID (BRAVO_CLAIMED - 1)

/* How many times as long as revoking took readers do without bias, where nobody says: the paper's N. */
#define BRAVO_INHIBIT 9

/* Behind the lock under it. */
struct bravo {
	W_ATOMIC(uint32_t) generation;
	uint32_t embedder;
	W_ATOMIC(uint64_t) state;
	uint64_t inhibited_until; /* written by writers, read by readers, inside the lock under it */
};

/* ---- Readers ---- */

_Static_assert(W_VISIBLE <= 1u << 16, "entries are told apart by 16 bits");

/* The entry that this thread may use for @lock. */
static inline struct w_visible *bravo_entry(const struct bravo *lock)
{
	uint64_t hash = ((uintptr_t)lock >> 3 ^ (uint64_t)w_self_id() << 40) * 0x9e3779b97f4a7c15;

	/* The highest bits: no bit below the 40th depends on the thread, and few of the next. */
	return w_visible((uint32_t)(hash >> 48) % W_VISIBLE);
}

/*
 * What the entries of @lock's readers carry while its state is @state; 0: without the bias there are none. Where the state
 * counts writers it has bits of the lock's address: a lock that was copied while it was free has readers of its own.
 */
static inline uint64_t bravo_of(const struct bravo *lock, uint64_t state)
{
	const uintptr_t at = (uintptr_t)lock;

	if (!(state & BRAVO_BIASED))
		return 0;
	return (state & ~BRAVO_WRITERS) | ((at >> 3 ^ at >> 25) * BRAVO_WRITER & BRAVO_WRITERS);
}

/* The same, for who is inside as a reader, or as the writer in the lock under it. */
static inline uint64_t bravo_now(struct bravo *lock)
{
	/* relaxed: the bias by which a reader is inside stays, and no writer means one that came after it */
	return bravo_of(lock, w_load_relaxed(&lock->state));
}

static inline void bravo_vacate(struct w_visible *entry)
{
	/* [BRAVO-1] release: pairs with [BRAVO-5], [BRAVO-10]; our critical section, and the
	 * entry's fields */
	w_store_release(&entry->bias, 0);
}

/* Gives a claimed @entry back to its reader, and to whoever else leaves for it. */
static inline void bravo_unclaim(struct w_visible *entry, uint32_t reader)
{
	/* [BRAVO-2] release: pairs with [BRAVO-4]; the entry's depth */
	w_store_release(&entry->reader, reader);
}

/*
 * Claims @entry, so that nobody else changes it, if the reader @who (0: any) is inside by it and @bias. *@reader: what the
 * entry said of it. The thread itself must do that, too, since another may leave in its stead.
 */
static inline bool bravo_claim(uint64_t bias, struct w_visible *entry, uint32_t who, uint32_t *reader)
{
	/* relaxed, both: a reader wrote them itself, or has come to the one who leaves for it;
	 * [BRAVO-4] decides */
	while (w_load_relaxed(&entry->bias) == bias) {
		*reader = w_load_relaxed(&entry->reader);
		if (!*reader || (who && (*reader & BRAVO_ID) != who))
			return false;
		if (*reader & BRAVO_CLAIMED)
			/* [BRAVO-3] acquire: pairs with nothing; it is read again */
			(void)w_wait_acquire(&entry->reader, !(VAL & BRAVO_CLAIMED), W_YIELD, NULL);
		/* [BRAVO-4] acquire: pairs with [BRAVO-2], [BRAVO-8]; the entry's depth, and whose
		 * it is */
		else if (w_compare_exchange_acquire(&entry->reader, reader, *reader | BRAVO_CLAIMED)) {
			/* relaxed: [BRAVO-4] orders it. The reader may have left, and come to
			 * another lock by the same entry */
			if (w_load_relaxed(&entry->bias) == bias)
				return true;
			bravo_unclaim(entry, *reader);
		}
	}
	return false;
}

/*
 * Enters beside the reader @who (0: any), in its @entry. False if it is not inside by that and @bias, or has entered so
 * often that the entry cannot count it.
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
 * Enters again, for a thread that is a reader by an entry which another has made, and given it. A writer that is inside
 * the lock under it waits for that one. False if there is no reader.
 */
static W_SLOW bool bravo_enter_beside_another(struct bravo *lock)
{
	const uint64_t bias = bravo_now(lock);

	for (uint32_t i = 0; bias && i < W_VISIBLE; i++)
		if (bravo_enter_beside(bias, w_visible(i), 0))
			return true;
	return false;
}

/* Enters without touching the lock under it. @again: as in locks.def. */
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
	/* [BRAVO-5] acquire: pairs with [BRAVO-1]; the entry's fields */
	if (barred || !w_compare_exchange_acquire(&entry->bias, &nobody, bias))
		return false;
	/* [BRAVO-6] fence: with [BRAVO-12]: either we see that the bias is revoked, or the writer
	 * sees our entry */
	w_fence_seq_cst();
	/* [BRAVO-7] acquire: pairs with [BRAVO-9], also by what writers have made of it; the
	 * critical sections of those before it */
	if (w_load_acquire(&lock->state) == state) {
		/* [BRAVO-8] release: pairs with [BRAVO-4]; whose the entry is, and its depth */
		w_store_release(&entry->reader, w_self_id());
		return true;
	}
	bravo_vacate(entry);
	return false;
}

/* Leaves by @entry, if the reader @who (0: any) is inside by it and @bias. The lock is not touched. */
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
	/* relaxed: bravo_vacate() publishes it. A claimed entry is not made WATCHED */
	w_store_relaxed(&entry->reader, 0);
	bravo_vacate(entry);
	if (reader & BRAVO_WATCHED) {
		w_event(wake_late);
		w_unpark_all(&entry->reader);
	}
	return true;
}

/* Leaves, if this thread is inside by its entry. */
static inline bool bravo_leave(struct bravo *lock)
{
	const uint64_t bias = bravo_now(lock);

	return bias && bravo_leave_entry(bias, bravo_entry(lock), w_self_id());
}

/*
 * Leaves in the stead of a reader that has entered by its entry, for a thread that is none itself: the program has given
 * it the other's hold. False if there is no such reader.
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
 * As a reader inside the lock under it, lets the next ones do without it, unless a writer waits, or that was revoked a
 * moment ago.
 */
static inline void bravo_bias(struct bravo *lock)
{
	uint64_t seen = 0;

	/* relaxed: the compare-exchange decides; no writer is inside */
	if (w_load_relaxed(&lock->state) || w_now() < lock->inhibited_until)
		return;
	/* [BRAVO-9] release: pairs with [BRAVO-7]; the critical sections of the writers before us.
	 * A number of 41 bits */
	if (w_compare_exchange_release(&lock->state, &seen, w_unique() << BRAVO_NUMBER | BRAVO_BIASED))
		w_event(bias);
}

/* ---- Writers ---- */

/* Sleeps until the reader of @entry leaves. May wake early. */
static inline void bravo_watch(struct w_visible *entry, const struct w_deadline *deadline)
{
	/* relaxed, both: only whether the reader is still the same matters */
	uint32_t reader = w_load_relaxed(&entry->reader);

	if (!reader || (reader & BRAVO_CLAIMED)) {
		/* It enters or leaves at this moment. */
		w_yield();
		return;
	}
	if (!(reader & BRAVO_WATCHED) && !w_compare_exchange_relaxed(&entry->reader, &reader, reader | BRAVO_WATCHED))
		return;
	w_event(park);
	w_park(&entry->reader, reader | BRAVO_WATCHED, deadline);
}

/* Waits until @entry is no reader's by @bias. False if it would be later than @deadline; @patient: if it would at all. */
static inline bool bravo_await(uint64_t bias, struct w_visible *entry, enum wait wait, bool patient,
			       const struct w_deadline *deadline)
{
	/* [BRAVO-10] acquire: pairs with [BRAVO-1]; the reader's critical section */
	while (w_load_acquire(&entry->bias) == bias) {
		if (!patient || w_expired(deadline))
			return false;
		/* [BRAVO-11] acquire: pairs with nothing; [BRAVO-10] reads again */
		if (w_wait_acquire(&entry->bias, VAL != bias, wait_turn(wait), deadline) == bias && wait == WAIT_PARK)
			bravo_watch(entry, deadline);
	}
	return true;
}

/* As a writer that is about to wait, lets no more readers in without the lock under it. */
static inline void bravo_announce(struct bravo *lock)
{
	/* relaxed: readers that miss it are met by the walk, which [BRAVO-12] orders */
	(void)w_fetch_add_relaxed(&lock->state, BRAVO_WRITER);
}

/* As that writer, which gives up, or is inside the lock under it, takes that back, and @with it. */
static inline void bravo_withdraw(struct bravo *lock, uint64_t with)
{
	/* relaxed: if the bias is still there, no writer has been inside since [BRAVO-9]; else
	 * readers go through the lock under it */
	(void)w_fetch_add_relaxed(&lock->state, 0 - BRAVO_WRITER - with);
}

/* Whether no reader is inside by @bias, waiting for that if @patient, up to @deadline. */
static inline bool bravo_walk(uint64_t bias, enum wait wait, bool patient, const struct w_deadline *deadline)
{
	for (uint32_t i = 0; i < W_VISIBLE; i++)
		if (!bravo_await(bias, w_visible(i), wait, patient, deadline))
			return false;
	return true;
}

/*
 * As the writer inside the lock under it, which has @announced itself or not, waits until the readers who entered without
 * that have left. False, and they may go on, if that would be later than @deadline, or, not @patient, if there are any.
 * @inhibit: how many times as long as it took readers are not to be let in so again.
 */
static inline bool bravo_revoke(struct bravo *lock, bool announced, enum wait wait, uint32_t inhibit, bool patient,
				const struct w_deadline *deadline)
{
	/* relaxed: who gave the bias was a reader inside the lock under it, before us. Nobody but us takes it back */
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

/* In a forked child, before any thread uses a lock there: frees entries of readers that were not yet inside, and claimed ones. */
static inline void bravo_after_fork(void)
{
	for (uint32_t i = 0; i < W_VISIBLE; i++) {
		/* relaxed, all: there is one thread only */
		uint32_t reader = w_load_relaxed(&w_visible(i)->reader);

		if (!reader)
			w_store_relaxed(&w_visible(i)->bias, 0);
		else if (reader & BRAVO_CLAIMED)
			w_store_relaxed(&w_visible(i)->reader, reader & BRAVO_ID);
	}
}

/*
 * In a forked child, for who repairs @lock: forgets the writers that do not exist here. Whether the lock under it may be
 * held by one of them that was not inside yet: one that is inside has revoked the bias.
 */
static inline bool bravo_drop_writers(struct bravo *lock)
{
	/* relaxed: [GENERATION-3] publishes it, and nobody enters the lock under it until then */
	return w_fetch_and_relaxed(&lock->state, ~BRAVO_WRITERS) & BRAVO_BIASED;
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
		if (bravo_drop_writers(&lock->bravo))                                                               \
			(void)under##_release_write(&lock->lock, bravo_##under##_under(policy));                    \
		generation_settle(&lock->bravo.generation);                                                         \
	}                                                                                                           \
                                                                                                                    \
	static inline bool bravo_##under##_try_read(struct bravo_##under *lock, bool again)                         \
	{                                                                                                           \
		if (bravo_enter(&lock->bravo, again))                                                               \
			return true;                                                                                \
		bravo_##under##_repair(lock, (struct bravo_##under##_policy){.wait = WAIT_PARK});                   \
		if (under##_try_read(&lock->lock, again)) {                                                         \
			bravo_bias(&lock->bravo);                                                                   \
			return true;                                                                                \
		}                                                                                                   \
		return again && bravo_enter_beside_another(&lock->bravo);                                           \
	}                                                                                                           \
                                                                                                                    \
	/* False if @deadline (NULL: never) passed first, or bravo_UNDER_full(). */                                 \
	static inline bool bravo_##under##_read(struct bravo_##under *lock, bool again,                             \
						struct bravo_##under##_policy policy,                               \
						const struct w_deadline *deadline)                                  \
	{                                                                                                           \
		if (again ? bravo_##under##_try_read(lock, true) : bravo_enter(&lock->bravo, false))                \
			return true;                                                                                \
		bravo_##under##_repair(lock, policy);                                                               \
		if (!under##_read(&lock->lock, again, bravo_##under##_under(policy), deadline))                     \
			return false;                                                                               \
		bravo_bias(&lock->bravo);                                                                           \
		return true;                                                                                        \
	}                                                                                                           \
                                                                                                                    \
	/* Whether a reader is refused: the lock under it has too many. */                                          \
	static inline bool bravo_##under##_full(struct bravo_##under *lock)                                         \
	{                                                                                                           \
		return under##_full(&lock->lock);                                                                   \
	}                                                                                                           \
                                                                                                                    \
	static inline bool bravo_##under##_release_read(struct bravo_##under *lock,                                 \
							struct bravo_##under##_policy policy)                       \
	{                                                                                                           \
		return bravo_leave(&lock->bravo) ||                                                                 \
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
		if (bravo_revoke(&lock->bravo, false, policy.wait, BRAVO_INHIBIT, false, NULL))                     \
			return true;                                                                                \
		(void)under##_release_write(&lock->lock, bravo_##under##_under(policy));                            \
		return false;                                                                                       \
	}                                                                                                           \
                                                                                                                    \
	static inline bool bravo_##under##_write(struct bravo_##under *lock, struct bravo_##under##_policy policy,  \
						 const struct w_deadline *deadline)                                 \
	{                                                                                                           \
		bool announced;                                                                                     \
                                                                                                                    \
		bravo_##under##_repair(lock, policy);                                                               \
		announced = !under##_try_write(&lock->lock);                                                        \
		if (announced) {                                                                                    \
			bravo_announce(&lock->bravo);                                                               \
			if (!under##_write(&lock->lock, bravo_##under##_under(policy), deadline)) {                 \
				bravo_withdraw(&lock->bravo, 0);                                                    \
				return false;                                                                       \
			}                                                                                           \
		}                                                                                                   \
		if (bravo_revoke(&lock->bravo, announced, policy.wait, policy.inhibit, true, deadline))             \
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
