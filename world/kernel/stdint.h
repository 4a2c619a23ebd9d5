/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The part of C's stdint.h that core/ uses. The kernel has none; linux/types.h defines its types
 * under the same names.
 */
#ifndef POUNDLOCK_WORLD_KERNEL_STDINT_H
#define POUNDLOCK_WORLD_KERNEL_STDINT_H

#include <linux/limits.h>
#include <linux/types.h>

#define UINT16_MAX U16_MAX
#define UINT32_MAX U32_MAX
#define UINT64_MAX U64_MAX
#define UINT32_C(x) x##U
#define UINT64_C(x) x##ULL

#endif
