/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * ShflLock's readers-writer lock in a struct rw_semaphore; included by rwsem.c, which describes the
 * layout, and by the model checker's clients (tests/check/kernel_rwsem.c). The including file has
 * defined LOCK_LAYOUT and W_TAIL_IN_LIST, SET(), the initialiser of a setting, and RWSEM_WARN_ON().
 */
#ifndef POUNDLOCK_KERNEL_TASK_RWSEM_H
#define POUNDLOCK_KERNEL_TASK_RWSEM_H

struct shfl_rw {
#ifdef __LITTLE_ENDIAN
	rw_word word;
	W_ATOMIC(uint32_t) generation; /* always 0: the kernel does not fork */
#else
	W_ATOMIC(uint32_t) generation;
	rw_word word;
#endif
	char unused[offsetof(struct rw_semaphore, wait_list) - 2 * sizeof(uint32_t)];
	shfl_tail tail;
	W_ATOMIC(uint32_t) *heir;
};

static_assert(offsetof(struct rw_semaphore, count) == 0);
static_assert(offsetof(struct shfl_rw, tail) == offsetof(struct rw_semaphore, wait_list.next));
static_assert(sizeof(struct shfl_rw) <= sizeof(struct rw_semaphore), "no larger than stock's");

/* As under stock: a wake-up takes long, and readers do not compete for the lock. */
#define SHFL_RW_TOGETHER true
/* 4 ms, stock's timeout, in units of wait_clock(). Stock's begins when the waiter queues. */
#define SHFL_RW_HAND_OFF (4 * 1000000 >> 10)

#include "rw/shfl_rw.h"
#include "tuning.h"

static_assert(PID_MAX_LIMIT < RW_FULL / RW_READER, "down_read() has no error for too many readers");

/* The settings of a release; settings_by() has those of a waiter. */
static const struct shfl_rw_policy settings = {.wait = WAIT_PARK, shfl_rw_settings(SET)};

/* The settings @by for an rwsem. */
static inline struct shfl_rw_policy settings_by(struct tuning by)
{
	struct shfl_rw_policy chosen = settings;

	chosen.policy = by.policy;
	chosen.batch = by.batch;
	return chosen;
}

static __always_inline struct shfl_rw *shfl_of(struct rw_semaphore *sem)
{
	return (struct shfl_rw *)sem;
}

/*
 * Names the caller, which has just entered, in @sem's owner, as stock does: for waiters that spin,
 * and for tools. Preemption is off since before it entered.
 */
static __always_inline void name_owner(struct rw_semaphore *sem, bool writes)
{
	if (writes)
		rwsem_set_owner(sem);
	else
		rwsem_set_reader_owned(sem);
}

/* Waits interruptibly for @lock, by the settings @by; false after a signal. */
static bool wait_or_leave(struct shfl_rw *lock, bool writes, struct shfl_rw_policy by,
			  const struct w_deadline *deadline)
{
	struct shfl_node *node;

	if (w_expired(deadline))
		return false;
	node = w_node_claim();
	return node ? shfl_rw_queue(lock, node, writes, by, deadline)
		    : shfl_rw_slow(lock, writes, by, NULL);
}

/* Enters @sem, which a fast path could not: 0, or -EINTR after a signal that @state admits. */
static noinline int __sched wait_for(struct rw_semaphore *sem, bool writes, unsigned int state,
				     unsigned long ip)
{
	const struct w_deadline deadline = {.state = state};
	const struct tuning tuned = tuning_of(TUNED_RWSEM, sem);
	const struct shfl_rw_policy by = settings_by(tuned);
	bool entered;

	lock_contended(&sem->dep_map, ip);
	trace_contention_begin(sem, writes ? LCB_F_WRITE : LCB_F_READ);
	/* A waiter is not preempted before its node is linked: its successor waits for the link. */
	preempt_disable();
	entered = state == TASK_UNINTERRUPTIBLE
			  ? shfl_rw_slow(shfl_of(sem), writes, by, NULL)
			  : wait_or_leave(shfl_of(sem), writes, by, &deadline);
	if (entered)
		name_owner(sem, writes);
	preempt_enable();
	tuning_end(tuned);
	if (entered)
		trace_poundlock_handover(sem);
	trace_contention_end(sem, entered ? 0 : -EINTR);
	return entered ? 0 : -EINTR;
}

/*
 * Enters @sem if nothing keeps the caller out. A reader does so by one fetch-and-add, unless it
 * only @tries: a trylock that fails does not keep writers out meanwhile. No reader is preempted
 * before it has subtracted itself again, since no writer can enter before.
 */
static __always_inline bool enter_free(struct rw_semaphore *sem, bool writes, bool tries)
{
	bool entered;

	preempt_disable();
	entered = writes || tries ? shfl_rw_try(shfl_of(sem), writes, false)
				  : shfl_rw_add_reader(shfl_of(sem));
	if (entered)
		name_owner(sem, writes);
	preempt_enable();
	return entered;
}

/* The rest of an acquisition, after lockdep's hook. */
static __always_inline int enter(struct rw_semaphore *sem, bool writes, unsigned int state,
				 unsigned long ip)
{
	RWSEM_WARN_ON(sem->magic != sem);
	return likely(enter_free(sem, writes, false)) ? 0 : wait_for(sem, writes, state, ip);
}

/*
 * Releases @sem, and is not preempted before the wake-up: meanwhile nobody would be inside, and
 * newcomers could not enter a closed one.
 */
static __always_inline void leave(struct rw_semaphore *sem, bool writes)
{
	bool held;

	preempt_disable();
	if (writes)
		rwsem_clear_owner(sem);
	else
		rwsem_clear_reader_owned(sem);
	held = writes ? shfl_rw_release_write(shfl_of(sem), settings)
		      : shfl_rw_subtract_reader(shfl_of(sem));
	preempt_enable();
	RWSEM_WARN_ON(!held);
}

/*
 * Turns the writer into a reader and wakes sleepers, since readers may enter now. Preemption is
 * off, as in leave().
 */
static void downgrade(struct rw_semaphore *sem)
{
	struct shfl_rw *lock = shfl_of(sem);
	/*
	 * relaxed: only the writer clears WRITER and sets HEIR, so it reads its own stores; the
	 * compare-exchange decides
	 */
	uint32_t seen = w_load_relaxed(&lock->word);
	W_ATOMIC(uint32_t) *heir = NULL;

	do {
		if (seen & RW_HEIR)
			heir = lock->heir;
		/* release: as in rw_leave_write(); publishes the writes to readers that enter */
	} while (!w_compare_exchange_release(&lock->word, &seen,
					     (seen & ~(RW_WRITER | RW_HEIR | RW_PARKED)) +
						     RW_READER));
	rwsem_set_reader_owned(sem);
	if (heir)
		w_unpark(heir);
	if (seen & RW_PARKED)
		w_unpark(&lock->word);
}

#endif
