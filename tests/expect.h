/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Checks for all C and C++ tests: a failing check prints one line on stderr, with the condition and
 * its place, and aborts. limit() ends a test that hangs, and names the part of the test it was in.
 */
#ifndef POUNDLOCK_TESTS_EXPECT_H
#define POUNDLOCK_TESTS_EXPECT_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPECT(condition, ...)                                                        \
	do {                                                                          \
		if (!(condition)) {                                                   \
			fprintf(stderr, "%s:%d: %s", __FILE__, __LINE__, #condition); \
			fprintf(stderr, "  " __VA_ARGS__);                            \
			fputc('\n', stderr);                                          \
			abort();                                                      \
		}                                                                     \
	} while (0)

/* The current part of the test. */
static const char *volatile expect_part = "?";

static void expect_alarm(int signal)
{
	(void)signal;
	(void)!write(STDERR_FILENO, expect_part, strlen(expect_part));
	(void)!write(STDERR_FILENO, ": did not end\n", 14);
	_exit(1);
}

/*
 * Seconds until a part of a test counts as hung: many times the duration of the longest part, so
 * that a busy machine only takes longer, and less than CTest's own 1,500.
 */
#define HANG_SECONDS 1200

/* Fails the process unless it ends, or calls this again, within HANG_SECONDS. */
static inline void limit(void)
{
	signal(SIGALRM, expect_alarm);
	alarm(HANG_SECONDS);
}

#endif
