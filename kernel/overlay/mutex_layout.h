/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The members of our locks in the bytes of a struct mutex, for mutex.c, which describes them, and
 * the model checker's clients.
 */
#ifndef POUNDLOCK_KERNEL_MUTEX_LAYOUT_H
#define POUNDLOCK_KERNEL_MUTEX_LAYOUT_H

#ifndef CONFIG_MUTEX_SPIN_ON_OWNER
#error "a struct mutex without osq has no room for our locks: build with MUTEX_SPIN_ON_OWNER"
#endif

/* The bytes between 4 at stock's member @from and its member @to; none without lock debugging. */
#define MUTEX_GAP(from, to) (offsetof(struct mutex, to) - offsetof(struct mutex, from) - 4)

/* @in_owner: the declaration of a member of 8 bytes; @in_osq: the name of one of 4 */
#define MUTEX_MEMBERS(in_owner, in_osq)           \
	in_owner;                                 \
	W_ATOMIC(uint32_t) state;                 \
	char unused_1[MUTEX_GAP(wait_lock, osq)]; \
	W_ATOMIC(uint32_t) in_osq;                \
	char unused_2[MUTEX_GAP(osq, wait_list)]; \
	shfl_tail tail;                           \
	W_ATOMIC(uint32_t) *heir

#define MUTEX_MEMBERS_FIT(type, in_osq)                                                \
	static_assert(offsetof(type, state) == offsetof(struct mutex, wait_lock));     \
	static_assert(offsetof(type, in_osq) == offsetof(struct mutex, osq));          \
	static_assert(offsetof(type, tail) == offsetof(struct mutex, wait_list.next)); \
	static_assert(sizeof(type) <= sizeof(struct mutex), "no larger than stock's")

#endif
