/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The deadline of the kernel's tasks, a signal. Included after check.h, before a lock. */
#ifndef POUNDLOCK_CHECK_KERNEL_SIGNAL_H
#define POUNDLOCK_CHECK_KERNEL_SIGNAL_H

/* As in world/kernel/world.h. The checker decides when the signal arrives. */
struct kernel_deadline {
	unsigned int state;
};
#define w_deadline kernel_deadline

#define MOST_TASKS 4

#endif
