/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shared by the clients of the kernel's locks with CFL, before the files that have ledgers: one
 * ledger, that of the only lock. The object NAME of a ledger is in the client's shared memory at
 * AT_NAME, which the includer defines.
 */
#ifndef POUNDLOCK_CHECK_KERNEL_LEDGERS_H
#define POUNDLOCK_CHECK_KERNEL_LEDGERS_H

#define DEFINE_PER_LEDGER(type, name) __attribute__((unused)) type name
#define per_ledger(name, lock) \
	((void)(lock), (__typeof__(name) *)(void *)(CHECK_MEMORY + AT_##name))
#define hash_ptr(address, bits) ((void)(address), 0)

/* Holds of several lengths, unless time stands still: IS_STILL, which the includer defines. */
#define CHECK_NOW()            \
	(IS_STILL              \
		 ? UINT64_C(0) \
		 : CHECK_DO("now", CHECK_CHOOSE, CHECK_RELAXED, NULL, 4, 0) * (uint64_t)(1 << 20))

#endif
