/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A lock whose holder stays while many waits for it are interrupted. The kernel's own ShflLock and
 * CFL keep a node for each of these in the queue until leave_end(). So root has no node for its
 * other waiters, of any lock.
 */
#ifndef POUNDLOCK_KERNEL_LEAVE_H
#define POUNDLOCK_KERNEL_LEAVE_H

#include <linux/types.h>

struct leaving;

struct left {
	u32 waits;     /* interrupted in the queue */
	u32 placeless; /* waits for another lock that began later and slept outside its queue */
	u32 deaf;      /* waits of another user that a signal could not end */
	u32 pinned;    /* threads that have ended and whose pids are still referred to */
};

/*
 * Takes a lock of the kind @name, and interrupts @waits waits for it, or as many as signals can
 * interrupt; then counts the placeless and the deaf waits of another lock. The calling thread
 * holds the lock until leave_end(). Returns NULL if there is no memory.
 */
struct leaving *leave_begin(const char *name, u32 waits);

/* Returns what was counted. */
struct left leave_end(struct leaving *leaving);

#endif
