/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fork_cost [LIBRARY]: the page faults of a child that exits at once measure the library's cost for
 * a fork: with LIBRARY preloaded, at most MORE than without it. The program calls itself both ways.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "forks.h"
#include "posix.h"

#define CHILDREN 50
#define RUNS 16
/* The code of the child's handler; and one that varies with the library's address. */
#define MORE 2

/* The minimum over the children: the kernel may have reclaimed a page of the others. */
static int print_faults(void)
{
	struct rusage before, after;
	long least = LONG_MAX;

	for (int i = 0; i < CHILDREN; i++) {
		pid_t child;

		EXPECT(!getrusage(RUSAGE_CHILDREN, &before));
		child = fork();
		if (!child)
			_exit(0);
		reap(child);
		EXPECT(!getrusage(RUSAGE_CHILDREN, &after));
		if (after.ru_minflt - before.ru_minflt < least)
			least = after.ru_minflt - before.ru_minflt;
	}
	return printf("%ld\n", least) < 0;
}

static long faults_with(const char *library)
{
	char command[PATH_MAX + 64], self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	FILE *pipe;
	long faults;

	EXPECT(length > 0);
	self[length] = 0;
	EXPECT(!setenv("FORK_COST", self, 1) && !setenv("FORK_COST_LIBRARY", library, 1));
	snprintf(command, sizeof(command), "LD_PRELOAD=\"$FORK_COST_LIBRARY\" exec \"$FORK_COST\"");
	pipe = popen(command, "r");
	EXPECT(pipe && fscanf(pipe, "%ld", &faults) == 1);
	EXPECT(!pclose(pipe));
	return faults;
}

/* The minimum over runs: a fault also maps nearby pages, and random addresses decide how many. */
static long least_with(const char *library)
{
	long least = LONG_MAX;

	for (int i = 0; i < RUNS; i++) {
		long faults = faults_with(library);

		least = faults < least ? faults : least;
	}
	return least;
}

int main(int count, char **arguments)
{
	long without, with;

	if (count < 2)
		return print_faults();
	without = least_with("");
	with = least_with(arguments[1]);
	EXPECT(with <= without + MORE, "a child has %ld page faults, natively %ld", with, without);
	return 0;
}
