/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What all C and C++ tests check with: a test says on stderr, in one line, what did not hold and where, and aborts. One
 * that hangs is ended by limit(), which says which part of the test it was in.
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

/* The part of the test that runs now. */
static const char *volatile expect_part = "?";

static void expect_alarm(int signal)
{
	(void)signal;
	(void)!write(STDERR_FILENO, expect_part, strlen(expect_part));
	(void)!write(STDERR_FILENO, ": did not end\n", 14);
	_exit(1);
}

/*
 * Seconds after which a part of a test counts as hung: many times what the longest takes, so that a busy machine only takes
 * longer, and less than CTest's own 1,500.
 */
#define HANG_SECONDS 1200

/* Ends the process as failed unless the test ends, or calls this again, within HANG_SECONDS. */
static inline void limit(void)
{
	signal(SIGALRM, expect_alarm);
	alarm(HANG_SECONDS);
}

#endif
