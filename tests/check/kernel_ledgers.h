/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shared by the clients of the kernel's locks with CFL: the ledger and the clock. To be included
 * first. There is one ledger, since there is one lock. Its object NAME is in the client's shared
 * memory at AT_NAME. The includer defines AT_NAME, and IS_STILL: whether time stands still.
 */
#ifndef POUNDLOCK_CHECK_KERNEL_LEDGERS_H
#define POUNDLOCK_CHECK_KERNEL_LEDGERS_H

#define DEFINE_PER_LEDGER(type, name) __attribute__((unused)) type name
#define per_ledger(name, lock) \
	((void)(lock), (__typeof__(name) *)(void *)(CHECK_MEMORY + AT_##name))
#define hash_ptr(address, bits) ((void)(address), 0)

/* Holds have several lengths, unless time stands still. */
#define CHECK_NOW()            \
	(IS_STILL              \
		 ? UINT64_C(0) \
		 : CHECK_DO("now", CHECK_CHOOSE, CHECK_RELAXED, NULL, 4, 0) * (uint64_t)(1 << 20))

#endif
