/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Sleeping on process-private futexes. The includer provides w_system_call() and struct w_deadline.
 * tests/check/futex.c explores it.
 */
#ifndef POUNDLOCK_WORLD_USER_PARK_H
#define POUNDLOCK_WORLD_USER_PARK_H

/*
 * Sleeps on *@word if it is @expected. Returns 0 after a wake-up, ETIMEDOUT at @deadline, EINTR
 * after a signal, and EAGAIN if *@word is not @expected.
 */
static inline int w_futex_wait(const volatile void *word, uint32_t expected,
			       const struct w_deadline *deadline)
{
	int operation = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;

	if (deadline && deadline->clock == CLOCK_REALTIME)
		operation |= FUTEX_CLOCK_REALTIME;
	return (int)-w_system_call(SYS_futex, (long)word, operation, expected,
				   deadline ? (long)&deadline->at : 0, 0, FUTEX_BITSET_MATCH_ANY);
}

/* Wakes at most @count threads that sleep on @word, which may be gone. */
static inline void w_futex_wake(const volatile void *word, int count)
{
	(void)w_system_call(SYS_futex, (long)word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, 0, 0, 0);
}

/* w_park(): the kernel refuses negative times, which have passed. */
static inline void w_futex_park(const volatile void *word, uint32_t expected,
				const struct w_deadline *deadline)
{
	if (!deadline || deadline->at.tv_sec >= 0)
		(void)w_futex_wait(word, expected, deadline);
}

#endif
