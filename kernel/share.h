/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* debugfs's poundlock_torture/share: creation and removal. */
#ifndef POUNDLOCK_KERNEL_SHARE_H
#define POUNDLOCK_KERNEL_SHARE_H

void share_start(void);
void share_end(void);

#endif
