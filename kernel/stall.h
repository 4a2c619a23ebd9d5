/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* debugfs's poundlock_stall: creation and removal. */
#ifndef POUNDLOCK_KERNEL_STALL_H
#define POUNDLOCK_KERNEL_STALL_H

void stall_start(void);
void stall_end(void);

#endif
