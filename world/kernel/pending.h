/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The pending bit of the kernel's spin lock, which all of our slow paths use as stock's does: the
 * overlay's (kernel/overlay/spin_queues.h) and the hook's (kernel/hook/queue.h). The includer has
 * the kernel's spin lock, and a pending byte of its own in the word.
 */
#ifndef POUNDLOCK_WORLD_KERNEL_PENDING_H
#define POUNDLOCK_WORLD_KERNEL_PENDING_H

/*
 * Waits on the word itself if nobody else waits, as stock's slow path does: the second of two
 * contenders needs no node. @val: the word that the caller saw. Returns false if others wait: the
 * caller then queues.
 *
 * PENDING -> LOCKED: a hand-over from a pending waiter, awaited for a bounded time
 * LOCKED -> PENDING|LOCKED -> PENDING -> LOCKED; 0 -> PENDING -> LOCKED
 * tail|* -> tail|PENDING|* -> tail|*: taken back, by the waiter that set it
 */
static __always_inline bool take_pending(struct qspinlock *lock, u32 val)
{
	int loops;

	for (loops = _Q_PENDING_LOOPS; val == _Q_PENDING_VAL && loops; loops--) {
		cpu_relax();
		val = (u32)READ_ONCE(lock->val.counter);
	}
	if (val & ~_Q_LOCKED_MASK)
		return false;
	val = queued_fetch_set_pending_acquire(lock);
	if (unlikely(val & ~_Q_LOCKED_MASK)) {
		if (!(val & _Q_PENDING_MASK))
			WRITE_ONCE(lock->pending, 0);
		return false;
	}
	/* acquire: pairs with the release of the kernel's spin lock; the last critical section */
	if (val & _Q_LOCKED_MASK)
		(void)smp_cond_load_acquire(&lock->locked, !VAL);
	WRITE_ONCE(lock->locked_pending, _Q_LOCKED_VAL);
	return true;
}

#endif
