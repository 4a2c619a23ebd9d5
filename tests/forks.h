/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The ways to fork. Only fork() calls the handlers of pthread_atfork(). */
#ifndef POUNDLOCK_TESTS_FORKS_H
#define POUNDLOCK_TESTS_FORKS_H

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

enum { FORK, FORK_RAW, FORKS };

static inline pid_t fork_by(int way)
{
	return way == FORK ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* Waits for the end of @child, which must succeed. */
static inline void reap(pid_t child)
{
	int status;

	EXPECT(child > 0, "fork");
	EXPECT(waitpid(child, &status, 0) == child, "waitpid");
	EXPECT(WIFEXITED(status) && !WEXITSTATUS(status), "the child ended with status %x", status);
}

#endif
