/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What core/ takes of C's stdint.h, which the kernel does not have: its types are in linux/types.h under the same names.
 */
#ifndef POUNDLOCK_WORLD_KERNEL_STDINT_H
#define POUNDLOCK_WORLD_KERNEL_STDINT_H

#include <linux/limits.h>
#include <linux/types.h>

#define UINT32_MAX U32_MAX
#define UINT64_MAX U64_MAX
#define UINT32_C(x) x##U
#define UINT64_C(x) x##ULL

#endif
