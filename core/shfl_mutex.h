/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The blocking ShflLock: a test-and-set word that allows barging, and a shuffled queue of waiters
 * that sleep.
 *
 * From: Kashyap et al., "Scalable and practical locking with shuffling" (ShflLock), SOSP'19,
 * section 4.2.2, figures 6 and 7.
 *
 * Order: barging until the head of the queue has waited for long, then the head.
 *
 * Promise: mutual exclusion. Newcomers may overtake waiters until the queue head has failed
 * `patience` attempts; after that nobody overtakes the head, except while a waiter that has given
 * up is leaving. A fair release leaves the lock to the head. Within the queue, the bound is `batch`
 * (part/shuffle.h). Waiters sleep under wait=park. 24 bytes per lock in a frame of 32, of which the
 * embedder uses 4; one node per waiter, none per holder. Atomic read-modify-writes: 2 uncontended,
 * 5 contended (two exchanges: the tail, the next head's status; three compare-exchanges: the word
 * twice, the tail).
 *
 *   state = LOCKED | PARKED | HEIR | CLOSED
 *     LOCKED  the lock is held. Set by a newcomer if state == 0, by the head if !LOCKED; cleared by
 *             the holder
 *     PARKED  the head sleeps on state. Set by the head if LOCKED; cleared by the release, which
 *             wakes the head
 *     HEIR    the next head sleeps on its own status, at `heir`. Set by the holder; cleared by the
 *             release, which wakes it
 *     CLOSED  only the head may take the lock. Set by the head, and by the holder in a fair
 *             release; cleared by the head that takes the lock, or after the last waiter gave up
 *
 *   0 ──newcomer──▶ LOCKED ──release──▶ 0
 *   LOCKED ──head──▶ LOCKED|PARKED ──release, unpark──▶ 0
 *   LOCKED ──head──▶ LOCKED|CLOSED ──head──▶ LOCKED|CLOSED|PARKED ──release, unpark──▶ CLOSED
 *   CLOSED ──head──▶ LOCKED
 *   LOCKED ──holder that has seen a waiter──▶ LOCKED|CLOSED ──release──▶ CLOSED
 *   LOCKED ──head that became the holder──▶ LOCKED|HEIR ──release, unpark──▶ 0
 *
 * Departures from the paper:
 *  - The lock and its flags are one word that is always accessed whole. Figures 3 and 4 access its
 *    bytes separately.
 *  - The head sleeps too, on that word (PARKED). A head that only spins takes a CPU that the holder
 *    needs when threads outnumber CPUs, and wastes one when critical sections are long.
 *  - Section 4.2.2 lets newcomers barge without bound. Here a head whose attempts fail `patience`
 *    times (one attempt each time it wakes, sees the lock free, or exhausts its spin budget) closes
 *    the lock to newcomers (CLOSED) and is the next to hold it.
 *  - A newcomer spins on the word for a bounded time before it queues, and once more if another
 *    thread was faster when the lock became free (SHFL_MUTEX_RACES). Behind sleepers it would only
 *    fall asleep as well, and the program would use fewer CPUs than it has. Without `patience` it
 *    queues at once.
 *  - The head and newcomers have `spins` bounded spins before they sleep or queue. The first one
 *    adapts (world/spin.h), the others are whole. With 0, no waiter spins.
 *  - A head that takes the lock while its successor sleeps makes the successor the head at once,
 *    but leaves the wake-up to its own release (HEIR), after the word is free. So no thread waits
 *    for a wake-up while holding the lock. A head that has not slept itself wakes waiters early, as
 *    in figure 7: in that case there are idle CPUs.
 *  - A head that has slept, on a CPU where no other thread waits, wakes its successor before it
 *    tries to take the lock, and one more waiter if it fails (SHFL_MUTEX_AHEAD in all). Otherwise
 *    each hand-over includes a wake-up, during which the lock is free and CPUs are idle. The order
 *    of the queue does not change.
 */
#ifndef POUNDLOCK_SHFL_MUTEX_H
#define POUNDLOCK_SHFL_MUTEX_H

#include "part/disguise.h"
#include "part/generation.h"
#include "part/heir.h"
#include "part/shuffle.h"

#define SHFL_MUTEX_LOCKED 1u
#define SHFL_MUTEX_PARKED 2u
#define SHFL_MUTEX_HEIR 4u
#define SHFL_MUTEX_CLOSED 8u
/*
 * Flags above these belong to shfl_ron.h. They stay when the lock is released, so that a newcomer's
 * first attempt fails. Only the holder changes them.
 */
#define SHFL_MUTEX_STANDING (~15u)

/*
 * How many waiters behind itself a waiting head wakes ahead. While these take their turns, the next
 * ones wake up.
 */
#define SHFL_MUTEX_AHEAD 2u

/*
 * How often a newcomer that spins may find the lock free before it queues. If threads are away for
 * a short time only, the former holder often wins the race, although the lock is free most of the
 * time: with one race, threads sleep while CPUs are idle. With four, a lock without work outside
 * moves between CPUs more often.
 */
#define SHFL_MUTEX_RACES 2u

/*
 * By what a head's patience is multiplied where turns are long, divided by the number of waiters;
 * twice that if they are fewer than FEW. So all of them have their turns in a few milliseconds, by
 * default. With MANY waiters turns are short: each would have too small a share of the time, or
 * wait for too long.
 */
#ifndef SHFL_MUTEX_LONG_TURN
#define SHFL_MUTEX_LONG_TURN 40u
#define SHFL_MUTEX_FEW 5u
#define SHFL_MUTEX_MANY 16u
#endif

#ifndef LOCK_LAYOUT /* locks.def: with the function */
struct shfl_mutex {
	shfl_tail tail;
	/* Written by the holder. An address to unpark, never dereferenced; disguised */
	W_ATOMIC(uint32_t) *heir;
	uint32_t embedder; /* overlays __kind in a pthread_mutex_t */
	W_ATOMIC(uint32_t) state;
	W_ATOMIC(uint32_t) generation;
};

static inline W_ATOMIC(uint32_t) *shfl_mutex_generation(struct shfl_mutex *lock)
{
	return &lock->generation;
}
#endif

struct shfl_mutex_policy {
	enum wait wait;
	uint32_t patience;  /* failed attempts of a head before it closes the lock to newcomers */
	enum policy policy; /* order of the queue */
	/* most waiters in one batch, and most times that one waiter is bypassed */
	uint32_t batch;
	uint32_t spins; /* under WAIT_PARK, bounded spins before the head or a newcomer goes on */
};

#define shfl_mutex_settings(S)                                              \
	S(shfl_mutex, patience, 4, 0, 1000000000)                           \
	S(shfl_mutex, policy, POLICY_NUMA, 0, POLICY_OWN - 1, POLICY_NAMES) \
	S(shfl_mutex, batch, SHFL_MAX_BATCH, 1, 1000000)                    \
	S(shfl_mutex, spins, 1, 0, 31)
/* Excludes the embedder's field, and as many bytes of padding. */
#define shfl_mutex_bytes \
	sizeof(struct shfl_mutex) - 2 * sizeof(uint32_t), sizeof(struct shfl_node), 0

/* In a forked child, discards the parent's waiters. Returns true if it did. */
static inline bool shfl_mutex_drop_waiters(struct shfl_mutex *lock)
{
	if (w_likely(!generation_claim(shfl_mutex_generation(lock))))
		return false;
	/* relaxed, both: [GENERATION-3] publishes them; nobody queues before that */
	w_store_relaxed(&lock->tail, NULL);
	(void)w_fetch_and_relaxed(&lock->state, SHFL_MUTEX_LOCKED | SHFL_MUTEX_STANDING);
	generation_settle(shfl_mutex_generation(lock));
	return true;
}

/* 0 -> LOCKED. On failure, *@seen is the state that was read. */
static inline bool shfl_mutex_take_free(struct shfl_mutex *lock, uint32_t *seen)
{
	*seen = 0;
	/*
	 * [SHFL_MUTEX-1] acquire: pairs with [SHFL_MUTEX-5], [SHFL_MUTEX-4]; the previous critical
	 * section
	 */
	return w_compare_exchange_acquire(&lock->state, seen, SHFL_MUTEX_LOCKED);
}

/* Takes @lock, last seen as @seen, if no other flags are set than those that stay. */
static inline bool shfl_mutex_take_standing(struct shfl_mutex *lock, uint32_t seen)
{
	while (!(seen & ~SHFL_MUTEX_STANDING))
		/* [SHFL_MUTEX-8] acquire: pairs with [SHFL_MUTEX-4], as [SHFL_MUTEX-1] */
		if (w_compare_exchange_acquire(&lock->state, &seen, seen | SHFL_MUTEX_LOCKED))
			return true;
	return false;
}

/*
 * Takes @lock, last seen as @seen, if it is free, or was closed for a head that exists only in the
 * parent.
 */
static W_SLOW bool shfl_mutex_try_acquire_slow(struct shfl_mutex *lock, uint32_t seen)
{
	if (shfl_mutex_take_standing(lock, seen))
		return true;
	return !(seen & SHFL_MUTEX_LOCKED) && shfl_mutex_drop_waiters(lock) &&
	       shfl_mutex_take_standing(lock, seen & SHFL_MUTEX_STANDING);
}

/* 0 -> LOCKED. Figure 4, line 6. */
static inline bool shfl_mutex_try_acquire(struct shfl_mutex *lock)
{
	uint32_t seen;

	return w_likely(shfl_mutex_take_free(lock, &seen)) ||
	       shfl_mutex_try_acquire_slow(lock, seen);
}

/* As the head: * -> LOCKED, one attempt. Clears CLOSED, which was set for the head. */
static inline bool shfl_mutex_take(struct shfl_mutex *lock, uint32_t *seen)
{
	/* relaxed: the compare-exchange decides */
	*seen = w_load_relaxed(&lock->state);
	/* [SHFL_MUTEX-2] acquire: pairs with [SHFL_MUTEX-5], [SHFL_MUTEX-4], as [SHFL_MUTEX-1] */
	while (!(*seen & SHFL_MUTEX_LOCKED))
		if (w_compare_exchange_acquire(&lock->state, seen,
					       (*seen & SHFL_MUTEX_STANDING) | SHFL_MUTEX_LOCKED))
			return true;
	return false;
}

/* As the head: LOCKED -> LOCKED|PARKED, then sleeps until a release. @seen: the state last read. */
static inline void shfl_mutex_park(struct shfl_mutex *lock, uint32_t seen,
				   const struct w_deadline *deadline)
{
	/* relaxed: publishes nothing; it only tells the releaser to wake a sleeper */
	if (!(seen & SHFL_MUTEX_PARKED) &&
	    !w_compare_exchange_relaxed(&lock->state, &seen, seen | SHFL_MUTEX_PARKED))
		return;
	w_event(park);
	w_park(&lock->state, seen | SHFL_MUTEX_PARKED, deadline);
}

/*
 * Whether the holder is known not to run, so that spinning is useless. For a world whose locks name
 * their holders, which defines it before.
 */
#ifndef shfl_mutex_holder_sleeps
#define shfl_mutex_holder_sleeps(lock) ((void)(lock), false)
#endif

/* Whether a waiter may go on: the lock is free, or a flag in @until is set. */
static inline bool shfl_mutex_calls(uint32_t seen, uint32_t until)
{
	return !(seen & SHFL_MUTEX_LOCKED) || (seen & until);
}

/* Whether a waiter stops spinning: it may go on, or must sleep until the holder runs. */
static inline bool shfl_mutex_spun(struct shfl_mutex *lock, uint32_t seen, uint32_t until)
{
	return shfl_mutex_calls(seen, until) || shfl_mutex_holder_sleeps(lock);
}

/*
 * Spins until the lock is free, a flag in @until is set, the spin budget of @policy is exhausted,
 * or the holder does not run. Returns the state last read.
 */
static inline uint32_t shfl_mutex_watch(struct shfl_mutex *lock, uint32_t until,
					struct shfl_mutex_policy policy,
					const struct w_deadline *deadline)
{
	const enum w_how how = wait_spins(wait_written(policy.wait), policy.wait, policy.spins);
	uint32_t seen, spins = 0;

	do {
		/*
		 * [SHFL_MUTEX-3] acquire: pairs with nothing; [SHFL_MUTEX-1] and [SHFL_MUTEX-2]
		 * read the word again
		 */
		seen = w_wait_acquire(&lock->state, shfl_mutex_spun(lock, VAL, until),
				      spins ? W_BRIEF : how, deadline);
	} while (++spins < policy.spins && !shfl_mutex_spun(lock, seen, until) &&
		 !w_expired(deadline));
	return seen;
}

/* Whether the thread waits where turns are long, and has its CPU to itself. */
static inline bool shfl_mutex_turns_are_long(void)
{
	return w_unlikely(w_turns_are_long()) && w_has_own_cpu();
}

/* Returns by what the patience of a head with @waiters is multiplied where turns are long. */
static inline uint32_t shfl_mutex_long_turn(uint32_t waiters)
{
	return SHFL_MUTEX_LONG_TURN * (waiters < SHFL_MUTEX_FEW ? 2u : 1u) / waiters;
}

/* As the head of the queue: returns after how many failed attempts it closes the lock. */
static inline uint64_t shfl_mutex_patience(struct shfl_node *node, struct shfl_mutex_policy policy)
{
	uint32_t waiters;

	if (!shfl_mutex_turns_are_long())
		return policy.patience;
	waiters = 1 + shfl_count_behind(node, SHFL_MUTEX_MANY - 1);
	if (waiters < SHFL_MUTEX_MANY)
		return (uint64_t)policy.patience * shfl_mutex_long_turn(waiters);
	w_turns_shorten();
	return policy.patience;
}

/*
 * As the head of the queue: whether it leaves @lock to others for now, since turns are long. A spin
 * later they hold it, or soon take it again. *@seen is then the state last read.
 */
static inline bool shfl_mutex_sits_out(struct shfl_mutex *lock, const struct w_deadline *deadline,
				       uint32_t *seen)
{
	if (!shfl_mutex_turns_are_long() || w_expired(deadline))
		return false;
	/* [SHFL_MUTEX-9] acquire: pairs with nothing; [SHFL_MUTEX-2] reads the word again */
	*seen = w_wait_acquire(&lock->state, false, W_RARE, deadline);
	if (!(*seen & SHFL_MUTEX_LOCKED))
		/* [SHFL_MUTEX-10] acquire: pairs with nothing, as [SHFL_MUTEX-9] */
		*seen = w_wait_acquire(&lock->state, VAL & SHFL_MUTEX_LOCKED, W_GLANCE, deadline);
	return *seen & SHFL_MUTEX_LOCKED;
}

/* As the head of the queue, takes @lock. Returns false if @deadline passes first. */
static inline bool shfl_mutex_take_as_head(struct shfl_mutex *lock, struct shfl_node *node,
					   struct shfl_mutex_policy policy,
					   const struct w_deadline *deadline, bool slept)
{
	const bool ahead = slept && w_has_own_cpu();
	const uint64_t patience = shfl_mutex_patience(node, policy);
	uint32_t seen, attempts = 0;

	if (ahead)
		shfl_wake_ahead(node, 1);
	while ((attempts < patience && shfl_mutex_sits_out(lock, deadline, &seen)) ||
	       !shfl_mutex_take(lock, &seen)) {
		if (ahead && !attempts)
			shfl_wake_ahead(node, SHFL_MUTEX_AHEAD);
		if (shfl_head_shuffles(node))
			shfl_shuffle(node, (struct shfl_stop){&lock->state, SHFL_MUTEX_LOCKED, 0},
				     !slept, shfl_by(&policy.policy, policy.batch));
		if (attempts++ >= patience && !(seen & SHFL_MUTEX_CLOSED)) {
			/* relaxed: closes the lock to newcomers; publishes nothing */
			(void)w_fetch_or_relaxed(&lock->state, SHFL_MUTEX_CLOSED);
			w_event(close);
		}
		if (attempts < patience && shfl_mutex_turns_are_long() && !w_expired(deadline))
			continue;
		seen = shfl_mutex_watch(lock, 0, policy, deadline);
		if (!(seen & SHFL_MUTEX_LOCKED))
			continue;
		if (w_expired(deadline)) {
			w_event(abandon);
			return false;
		}
		slept = true;
		shfl_mutex_park(lock, seen, deadline);
	}
	return true;
}

/*
 * CLOSED -> 0 after the head has left the queue at its deadline, if nobody queues. Not before: a
 * fair release closes the lock while it sees a waiter. The next head, if any, keeps CLOSED.
 */
static inline void shfl_mutex_reopen(struct shfl_mutex *lock)
{
	/*
	 * relaxed: our own change or a later one. A thread that has queued since then clears CLOSED
	 * when it takes the lock or gives up
	 */
	if (!w_load_relaxed(&lock->tail))
		/* [SHFL_MUTEX-6] release: pairs with [SHFL_MUTEX-7]; the queue has ended */
		(void)w_fetch_and_release(&lock->state, ~SHFL_MUTEX_CLOSED);
}

static inline bool shfl_mutex_acquire_queued(struct shfl_mutex *lock, struct shfl_node *node,
					     struct shfl_mutex_policy policy,
					     const struct w_deadline *deadline)
{
	W_ATOMIC(uint32_t) *sleeper;
	bool taken, slept = false;

	(void)shfl_mutex_drop_waiters(lock);
	if (!shfl_enter(&lock->tail, node, policy_note(policy.policy, lock)) &&
	    !shfl_wait_turn(node,
			    wait_spins(wait_overtaken(policy.wait), policy.wait, policy.spins),
			    policy.wait, deadline, &slept, shfl_by(&policy.policy, policy.batch)))
		return false;
	taken = shfl_mutex_take_as_head(lock, node, policy, deadline, slept);
	sleeper = shfl_leave(&lock->tail, node, policy.wait);
	if (sleeper && taken)
		heir_name(&lock->heir, disguise(sleeper), &lock->state, SHFL_MUTEX_HEIR);
	else if (sleeper)
		w_unpark(sleeper);
	if (!taken)
		shfl_mutex_reopen(lock);
	return taken;
}

/*
 * As a newcomer, spins for a bounded time, then tries to take @lock. Returns true if it did. If
 * not, *@late is whether another thread was faster when the lock became free.
 */
static inline bool shfl_mutex_race(struct shfl_mutex *lock, struct shfl_mutex_policy policy,
				   const struct w_deadline *deadline, bool *late)
{
	const uint32_t seen = shfl_mutex_watch(lock, SHFL_MUTEX_CLOSED, policy, deadline);

	*late = !(seen & (SHFL_MUTEX_LOCKED | SHFL_MUTEX_CLOSED));
	return shfl_mutex_try_acquire(lock);
}

/* Whether newcomers spin. Not if the order of the queue is to decide (no patience). */
static inline bool shfl_mutex_races(struct shfl_mutex_policy policy)
{
	return policy.wait == WAIT_PARK && policy.spins && policy.patience;
}

/*
 * As a newcomer, races for @lock a few times, but not where it would shorten the turn of another
 * thread. Returns true if it took it.
 */
static inline bool shfl_mutex_spin(struct shfl_mutex *lock, struct shfl_mutex_policy policy,
				   const struct w_deadline *deadline)
{
	bool late = shfl_mutex_races(policy) && !shfl_mutex_turns_are_long();

	for (uint32_t races = 0; late && races < SHFL_MUTEX_RACES; races++)
		if (shfl_mutex_race(lock, policy, deadline, &late))
			return true;
	return false;
}

/* As shfl_mutex_acquire_slow(), by settings in registers. */
static W_SLOW bool shfl_mutex_acquire_by(struct shfl_mutex *lock, enum wait wait,
					 struct shfl_tuning by, const struct w_deadline *deadline)
{
	const struct shfl_mutex_policy policy = {wait, by.patience, by.policy, by.batch, by.spins};
	W_OWN_LINE struct shfl_node node;

	if (shfl_mutex_spin(lock, policy, deadline))
		return true;
	return shfl_mutex_acquire_queued(lock, w_waiter_node(&node, deadline), policy, deadline);
}

/* Slow path: @lock was not free. Returns false if @deadline (NULL: none) passes first. */
static inline bool shfl_mutex_acquire_slow(struct shfl_mutex *lock, struct shfl_mutex_policy policy,
					   const struct w_deadline *deadline)
{
	return shfl_mutex_acquire_by(lock, policy.wait, SHFL_TUNING(policy), deadline);
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool shfl_mutex_acquire(struct shfl_mutex *lock, struct shfl_mutex_policy policy,
				      const struct w_deadline *deadline)
{
	uint32_t seen;

	return w_likely(shfl_mutex_take_free(lock, &seen)) ||
	       shfl_mutex_acquire_slow(lock, policy, deadline);
}

/*
 * * -> 0 or CLOSED, then wakes the sleeper that a flag names. Returns false, and changes nothing,
 * if @lock was not held.
 */
static W_SLOW bool shfl_mutex_release_slow(struct shfl_mutex *lock)
{
	/*
	 * relaxed: only the holder clears LOCKED, so it reads its own write; the compare-exchange
	 * decides
	 */
	uint32_t seen = w_load_relaxed(&lock->state);
	W_ATOMIC(uint32_t) *heir = NULL;

	do {
		if (!(seen & SHFL_MUTEX_LOCKED))
			return false;
		if (seen & SHFL_MUTEX_HEIR)
			heir = disguise(lock->heir);
		/*
		 * [SHFL_MUTEX-4] release: pairs with [SHFL_MUTEX-1], [SHFL_MUTEX-2],
		 * [SHFL_MUTEX-8]; our critical section
		 */
	} while (!w_compare_exchange_release(&lock->state, &seen,
					     seen & (SHFL_MUTEX_CLOSED | SHFL_MUTEX_STANDING)));
	heir_wake(heir, seen & SHFL_MUTEX_PARKED ? &lock->state : NULL);
	return true;
}

/* LOCKED -> 0. Returns false if another flag is set, or @lock was not held. */
static inline bool shfl_mutex_free(struct shfl_mutex *lock)
{
	uint32_t seen = SHFL_MUTEX_LOCKED;

	/* [SHFL_MUTEX-5] release: pairs with [SHFL_MUTEX-1], [SHFL_MUTEX-2]; our critical
	 * section */
	return w_compare_exchange_release(&lock->state, &seen, 0);
}

/* LOCKED -> 0. Returns false, and changes nothing, if @lock was not held. */
static inline bool shfl_mutex_release(struct shfl_mutex *lock, struct shfl_mutex_policy policy)
{
	(void)policy;
	return w_likely(shfl_mutex_free(lock)) || shfl_mutex_release_slow(lock);
}

/*
 * As the holder, closes the lock to newcomers if there is a waiter: LOCKED -> LOCKED|CLOSED. If the
 * last waiter gives up at the same time, either we see that the queue has ended, or the waiter
 * clears CLOSED after us.
 */
static inline void shfl_mutex_close_for_head(struct shfl_mutex *lock)
{
	/* relaxed: decides whether to close the lock; read again below */
	if (!w_load_relaxed(&lock->tail) || shfl_mutex_drop_waiters(lock))
		return;
	/* [SHFL_MUTEX-7] acquire: pairs with [SHFL_MUTEX-6]; the end of the queue */
	(void)w_fetch_or_acquire(&lock->state, SHFL_MUTEX_CLOSED);
	/* relaxed, both: [SHFL_MUTEX-7] orders the load; the word publishes nothing */
	if (!w_load_relaxed(&lock->tail))
		(void)w_fetch_and_relaxed(&lock->state, ~SHFL_MUTEX_CLOSED);
}

/*
 * As shfl_mutex_release(), but leaves the lock to the head of the queue, if there is one: newcomers
 * do not overtake it. A waiter may be overtaken if the queue has just ended before it came, by a
 * thread that gave up.
 */
static inline bool shfl_mutex_release_fair(struct shfl_mutex *lock, struct shfl_mutex_policy policy)
{
	/* relaxed: only the holder clears LOCKED, so it reads its own write */
	if (w_load_relaxed(&lock->state) & SHFL_MUTEX_LOCKED)
		shfl_mutex_close_for_head(lock);
	return shfl_mutex_release(lock, policy);
}

#endif
