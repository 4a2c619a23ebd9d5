/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * prctl(), by which a process enters a sandbox: PR_SET_NO_NEW_PRIVS, without which only privileged
 * processes may install a filter for system calls, and PR_SET_SECCOMP. From then on, threads no
 * longer read their nice value and cgroup, those that are away for long no longer yield, and
 * children make no control page. Before, the route is read if the lock of the process may need it.
 */
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "any.h"
#include "control.h"
#include "preload.h"
#include "rules.h"
#include "world.h"

EXPORT int prctl(int option, ...);

/* Whether the shares are now the process's. A vfork child must not change its parent. */
static bool prepare(int option)
{
	if (option != PR_SET_NO_NEW_PRIVS && option != PR_SET_SECCOMP)
		return false;
	if ((uint32_t)getpid() != w_process())
		return false;
	any_read_route();
	w_store_relaxed(&w_streaks_yield, false);
	control_stay();
	rules_be_quiet();
	return w_shares_keep();
}

/* glibc's passes all arguments on, too, whether the caller has given them or not. */
int prctl(int option, ...)
{
	unsigned long values[4];
	va_list arguments;
	bool changed;
	long result;

	va_start(arguments, option);
	for (int i = 0; i < 4; i++)
		values[i] = va_arg(arguments, unsigned long);
	va_end(arguments);
	changed = prepare(option);
	result = syscall(SYS_prctl, option, values[0], values[1], values[2], values[3]);
	if (changed && result < 0)
		w_shares_of_threads();
	return (int)result;
}
