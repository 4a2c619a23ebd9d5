/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Rounds of NMIs, in each of which all CPUs but one take a lock that only NMIs take. The last CPU
 * of a round begins the next one inside its NMI, so that rounds also go on while stop_machine() has
 * stopped everything else.
 */
#ifndef POUNDLOCK_KERNEL_NMI_H
#define POUNDLOCK_KERNEL_NMI_H

#include <linux/types.h>

struct struck {
	u64 nmis;     /* that took the lock */
	u64 lost;     /* updates */
	u64 overlaps; /* acquisitions that found another holder inside */
};

/*
 * Begins rounds that take a spin lock of the kind @name; CPU hotplug is excluded until nmi_end().
 * Returns 0, -ENOMEM, or -EOPNOTSUPP on one CPU or another architecture than x86.
 */
int nmi_begin(const char *name);

/* Ends the rounds, and returns what was counted. */
struct struck nmi_end(void);

#endif
