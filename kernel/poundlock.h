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
 * As with spin_lock(), preemption is off while a lock is held, a holder must not sleep, and the CPU
 * that took the lock releases it. If interrupt handlers take a lock, all others take it with
 * interrupts off.
 *
 * Some locks also exist as "park:NAME", for tasks only: waiters sleep, and holders may.
 */
#ifndef POUNDLOCK_KERNEL_H
#define POUNDLOCK_KERNEL_H

#include <linux/gfp.h>
#include <linux/irqflags.h>
#include <linux/types.h>

struct pound_spin;

/* Creates a free lock. ERR_PTR(-ENOENT): no lock has that name; ERR_PTR(-ENOMEM): no memory. */
struct pound_spin *pound_spin_create(const char *name, gfp_t gfp);
/* Destroys a free lock without users. NULL is allowed. */
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
