/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fork_cost LIBRARY: the library's cost for a fork, counted with LIBRARY preloaded and without it:
 *
 *   page faults of a child that exits at once
 *   mappings that the fork copies, and written pages in them
 *   system calls of both processes, from the fork to the child's end
 *
 * and its system calls at the start of the program.
 *
 * fork_cost count|fork: what the program executes for that, both ways.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

#include "forks.h"
#include "posix.h"

#define CHILDREN 50
#define RUNS 16

struct cost {
	long faults, mappings, pages, calls, start;
};

/*
 * How much more than natively. Faults: on the code of the child's handler, and on a page that
 * varies with the library's address. Mappings: code, constants that the loader has written,
 * variables with an initial value and without, and the page that the kernel wipes; and one that the
 * loader's are split into, unless they lie next to the library's. Pages: of constants (5), of
 * variables (6), of the loader (3), and those that depend on the machine's topology. Start: the
 * loader's, and those that read the environment and the topology: nine per last-level cache, of
 * which there are at most as many as CPUs.
 */
static struct cost more = {.faults = 2, .mappings = 6, .pages = 17, .calls = 0, .start = 60};
#define START_BY_CPU 9

/* ---- The program that forks ---- */

#define MARK SYS_getsid

static void fork_and_reap(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	reap(child);
}

/* The minimum over the children: the kernel may have reclaimed a page of the others. */
static long count_faults(void)
{
	struct rusage before, after;
	long least = LONG_MAX, faults;

	for (int i = 0; i < CHILDREN; i++) {
		EXPECT(!getrusage(RUSAGE_CHILDREN, &before));
		fork_and_reap();
		EXPECT(!getrusage(RUSAGE_CHILDREN, &after));
		faults = after.ru_minflt - before.ru_minflt;
		least = faults < least ? faults : least;
	}
	return least;
}

static void count_memory(struct cost *cost)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	char line[PATH_MAX + 256];
	long kilobytes;

	EXPECT(file);
	while (fgets(line, sizeof(line), file)) {
		cost->mappings += !strncmp(line, "VmFlags:", 8);
		if (sscanf(line, "Anonymous: %ld", &kilobytes) == 1)
			cost->pages += kilobytes * 1024 / sysconf(_SC_PAGESIZE);
	}
	fclose(file);
}

static int print_cost(void)
{
	struct cost cost = {.faults = count_faults()};

	count_memory(&cost);
	return printf("%ld %ld %ld\n", cost.faults, cost.mappings, cost.pages) < 0;
}

static int fork_between_marks(void)
{
	syscall(MARK, 0);
	fork_and_reap();
	syscall(MARK, 0);
	return 0;
}

/* ---- The program that counts ---- */

static const char *self_path(void)
{
	static char self[PATH_MAX];

	EXPECT(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	return self;
}

static struct cost cost_with(const char *library)
{
	char command[PATH_MAX + 64];
	struct cost cost = {0};
	FILE *pipe;

	EXPECT(!setenv("FORK_COST", self_path(), 1) && !setenv("FORK_COST_LIBRARY", library, 1));
	snprintf(command, sizeof(command),
		 "LD_PRELOAD=\"$FORK_COST_LIBRARY\" exec \"$FORK_COST\" count");
	pipe = popen(command, "r");
	EXPECT(pipe && fscanf(pipe, "%ld %ld %ld", &cost.faults, &cost.mappings, &cost.pages) == 3);
	EXPECT(!pclose(pipe));
	return cost;
}

static long least(long one, long other)
{
	return one < other ? one : other;
}

/* The minimum over runs: a fault also maps nearby pages, and random addresses decide how many. */
static struct cost least_with(const char *library)
{
	struct cost least_cost = cost_with(library);

	for (int i = 1; i < RUNS; i++) {
		struct cost cost = cost_with(library);

		least_cost.faults = least(least_cost.faults, cost.faults);
		least_cost.mappings = least(least_cost.mappings, cost.mappings);
		least_cost.pages = least(least_cost.pages, cost.pages);
	}
	return least_cost;
}

static void run_traced(const char *library)
{
	EXPECT(!setenv("LD_PRELOAD", library, 1));
	if (ptrace(PTRACE_TRACEME, 0, 0, 0))
		_exit(77);
	raise(SIGSTOP);
	execl(self_path(), self_path(), "fork", NULL);
	abort();
}

/* Whether the stopped process @pid begins a system call, and which. */
static bool begins_call(pid_t pid, unsigned long *number)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0 ||
	    info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return false;
	*number = info.entry.nr;
	return true;
}

/*
 * Counts the system calls of all processes, before the first mark and from there to the second;
 * both are -1 if processes may not be traced.
 */
static void count_calls(const char *library, struct cost *cost)
{
	pid_t first = fork(), pid = first;
	unsigned long number;
	long calls[3] = {0};
	int marks = 0, status;

	if (!first)
		run_traced(library);
	EXPECT(waitpid(first, &status, 0) == first);
	cost->calls = cost->start = -1;
	if (WIFEXITED(status))
		return;
	ptrace(PTRACE_SETOPTIONS, first, 0,
	       PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL);
	do {
		if (WIFSTOPPED(status)) {
			if (begins_call(pid, &number) && number == MARK)
				EXPECT(++marks < 3);
			else if (WSTOPSIG(status) == (SIGTRAP | 0x80))
				calls[marks]++;
			ptrace(PTRACE_SYSCALL, pid, 0, 0);
		}
		pid = waitpid(-1, &status, __WALL);
		EXPECT(pid > 0);
	} while (pid != first || WIFSTOPPED(status));
	EXPECT(WIFEXITED(status) && !WEXITSTATUS(status) && marks == 2, "%x", status);
	/* A call stops its process twice, at its begin and at its end. */
	cost->start = calls[0] / 2;
	cost->calls = calls[1] / 2;
}

int main(int count, char **arguments)
{
	struct cost without, with;

	EXPECT(count == 2);
	if (!strcmp(arguments[1], "count"))
		return print_cost();
	if (!strcmp(arguments[1], "fork"))
		return fork_between_marks();
	without = least_with("");
	with = least_with(arguments[1]);
	more.start += START_BY_CPU * sysconf(_SC_NPROCESSORS_CONF);
	count_calls("", &without);
	count_calls(arguments[1], &with);
#define COMPARE(what)                                                                         \
	printf(#what ": %ld, natively %ld\n", with.what, without.what);                       \
	EXPECT(with.what <= without.what + more.what, #what ": %ld, natively %ld", with.what, \
	       without.what)
	COMPARE(faults);
	COMPARE(mappings);
	COMPARE(pages);
	COMPARE(calls);
	COMPARE(start);
	return 0;
}
