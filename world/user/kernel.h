/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * System calls that leave errno unchanged, as the paths of waiters must.
 */
#ifndef POUNDLOCK_WORLD_USER_KERNEL_H
#define POUNDLOCK_WORLD_USER_KERNEL_H

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "world.h"

/* Performs a system call. Returns its result, or a negative error number. */
static inline long w_system_call(long number, long first, long second, long third, long fourth,
				 long fifth, long sixth)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = fourth, r8 __asm__("r8") = fifth,
			  r9 __asm__("r9") = sixth;
	long result;

	__asm__ __volatile__("syscall"
			     : "=a"(result)
			     : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8),
			       "r"(r9)
			     : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = first,
			 x1 __asm__("x1") = second;
	register long x2 __asm__("x2") = third, x3 __asm__("x3") = fourth, x4 __asm__("x4") = fifth;
	register long x5 __asm__("x5") = sixth;

	__asm__ __volatile__("svc 0"
			     : "+r"(x0)
			     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			     : "memory");
	return x0;
#else
	int saved = errno;
	long result = syscall(number, first, second, third, fourth, fifth, sixth);

	if (result < 0)
		result = -errno;
	errno = saved;
	return result;
#endif
}

/* Returns whether @process has a thread @tid. */
static inline bool w_has_thread(uint32_t process, uint32_t tid)
{
	return w_system_call(SYS_tgkill, process, tid, 0, 0, 0, 0) != -ESRCH;
}

#include "park.h"

#endif
