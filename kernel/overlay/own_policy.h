/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The locks' side of policies that an operator loads as BPF programs (bpf_policy.c), on kernels
 * that support these; included before world.h, whose hooks for policies of the program it
 * implements.
 *
 * A waiter calls the program once, before it queues, and gets its note: a number. From then on
 * shufflers only compare numbers, so a queue outlives the program that ordered it.
 *
 *   bits  31      30        29 .. 0
 *         urgent  together  rank
 *
 *   urgent    no later waiter bypasses it; the program was not called
 *   together  waiters of the shuffler's rank follow it; otherwise those of smaller ranks do, the
 *             smallest first, or if there are none, those of its rank
 */
#ifndef POUNDLOCK_KERNEL_OWN_POLICY_H
#define POUNDLOCK_KERNEL_OWN_POLICY_H

#include <linux/jump_label.h>
#include <linux/types.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0) && defined(CONFIG_BPF_JIT) && \
	defined(CONFIG_BPF_EVENTS) && defined(CONFIG_DEBUG_INFO_BTF)
#define OWN_POLICIES
#endif

#ifdef OWN_POLICIES

/* Most names of policies, from boot to shutdown. */
#define OWN_POLICY_MOST 16u
/* Length of a name, with its end. */
#define OWN_POLICY_NAME 15

#define OWN_POLICY_URGENT (1u << 31)
#define OWN_POLICY_TOGETHER (1u << 30)
#define OWN_POLICY_RANK_MOST (OWN_POLICY_TOGETHER - 1)

/* Whether policy @number has a program. If not, waiters use another policy. */
bool own_policy_is_loaded(u32 number);

/*
 * The calling waiter's note for @lock by policy @number; @held is the average time of its holds, in
 * nanoseconds, or 0. Preemption is off.
 */
u32 own_policy_note(u32 number, const void *lock, u32 held);

/* Begins a wait by policy @number. Returns the period to end it with. */
u32 own_policy_wait(u32 number);

/*
 * Ends a wait that began in @period, and the policy @number if the caller, which has waited since
 * @since, waited for too long.
 */
void own_policy_waited(u32 number, u32 period, u64 since);

/* The number of the policy @name, or -1; and the name of a policy. */
int own_policy_number(const char *name);
const char *own_policy_name(u32 number);

static inline u32 own_policy_rank(u32 shuffler, u32 waiter)
{
	const u32 before = shuffler & OWN_POLICY_RANK_MOST, rank = waiter & OWN_POLICY_RANK_MOST;

	if (waiter & OWN_POLICY_URGENT)
		return 0;
	if (waiter & OWN_POLICY_TOGETHER ? rank != before : rank > before)
		return U32_MAX;
	return rank + 1;
}

/* Whether a policy needs times of holds. A file that measures them defines own_policy_held(). */
DECLARE_STATIC_KEY_FALSE(own_policy_measures);

#ifndef own_policy_held
#define own_policy_held(lock) 0u
#endif

#define w_own_policy_note(number, lock) own_policy_note(number, lock, own_policy_held(lock))
#define w_own_policy_rank(number, shuffler, waiter) \
	((void)(number), own_policy_rank(shuffler, waiter))
#define w_own_policy_strict(number, note) ((void)(number), !((note)&OWN_POLICY_TOGETHER))

#endif

#endif
