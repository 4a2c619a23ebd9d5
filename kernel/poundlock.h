/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Poundlock's spin locks for other modules, by the names of core/locks.def.
 *
 *	struct pound_spin *lock = pound_spin_create("cna", GFP_KERNEL);
 *
 *	pound_spin_lock(lock);
 *	...
 *	pound_spin_unlock(lock);
 *
 * As with spin_lock() preemption is off while a lock is held, a holder does not sleep, and releases are by the CPU that took
 * the lock. Where a handler of an interrupt takes a lock, others take it with interrupts off.
 *
 * A few locks are there as "park:NAME", too: for tasks alone, which sleep while they wait, and may while they hold it.
 */
#ifndef POUNDLOCK_KERNEL_H
#define POUNDLOCK_KERNEL_H

#include <linux/gfp.h>
#include <linux/irqflags.h>
#include <linux/types.h>

struct pound_spin;

/* A free lock. ERR_PTR(-ENOENT): there is no lock of that name; ERR_PTR(-ENOMEM): no memory. */
struct pound_spin *pound_spin_create(const char *name, gfp_t gfp);
/* Of a free lock that nobody uses; NULL: nothing is done. */
void pound_spin_destroy(struct pound_spin *lock);

void pound_spin_lock(struct pound_spin *lock);
bool pound_spin_trylock(struct pound_spin *lock);
void pound_spin_unlock(struct pound_spin *lock);

#define pound_spin_lock_irqsave(lock, flags) \
	do {                                 \
		local_irq_save(flags);       \
		pound_spin_lock(lock);       \
	} while (0)
#define pound_spin_unlock_irqrestore(lock, flags) \
	do {                                      \
		pound_spin_unlock(lock);          \
		local_irq_restore(flags);         \
	} while (0)

#endif
