/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * instructions LIBRARY: no operation that need not wait executes more instructions with the default
 * locks of LIBRARY preloaded than natively, in a process with one thread and in one with several,
 * also if `poundlock control` can change the settings of its mutexes, and if rules give other locks
 * another algorithm. Counted by single steps; a system call counts as SYSTEM_CALL instructions.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "kept.h"
#include "posix.h"

#define SYSTEM_CALL 1000
#define SKIPPED 77

/* ---- Operations ---- */

static pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER, explicit, by_default;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, waited = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static mtx_t plain, repeated;

static void prepare(void)
{
	init_mutex(&explicit, PTHREAD_MUTEX_NORMAL);
	init_mutex(&by_default, PTHREAD_MUTEX_DEFAULT);
	EXPECT_OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
	EXPECT(mtx_init(&plain, mtx_plain) == thrd_success, "mtx_init");
	EXPECT(mtx_init(&repeated, mtx_recursive) == thrd_success, "mtx_init");
}

/*
 * MEASURED(name, call, more): in this order, each after those before it. @more: the instructions
 * allowed beyond the native count. docs/preload.md has the reasons.
 */
#define MUTEX(mutex)                                                \
	MEASURED(mutex##_lock, pthread_mutex_lock(&mutex), 0)       \
	MEASURED(mutex##_unlock, pthread_mutex_unlock(&mutex), 0)   \
	MEASURED(mutex##_trylock, pthread_mutex_trylock(&mutex), 0) \
	MEASURED(mutex##_busy, pthread_mutex_trylock(&mutex), 0)    \
	MEASURED(mutex##_unlock_2, pthread_mutex_unlock(&mutex), 0)

#define OPERATIONS                                                        \
	MUTEX(normal)                                                     \
	MUTEX(explicit)                                                   \
	MUTEX(by_default)                                                 \
	MUTEX(errorcheck)                                                 \
	MUTEX(adaptive)                                                   \
	MUTEX(recursive)                                                  \
	MEASURED(recursive_unlock_3, pthread_mutex_unlock(&recursive), 0) \
	MEASURED(mtx_lock, mtx_lock(&plain), 0)                           \
	MEASURED(mtx_unlock, mtx_unlock(&plain), 0)                       \
	MEASURED(mtx_trylock, mtx_trylock(&plain), 0)                     \
	MEASURED(mtx_unlock_2, mtx_unlock(&plain), 0)                     \
	MEASURED(mtx_recursive_lock, mtx_lock(&repeated), 0)              \
	MEASURED(mtx_recursive_unlock, mtx_unlock(&repeated), 0)          \
	MEASURED(rwlock_rdlock, pthread_rwlock_rdlock(&rwlock), 0)        \
	MEASURED(rwlock_rdunlock, pthread_rwlock_unlock(&rwlock), 0)      \
	MEASURED(rwlock_tryrdlock, pthread_rwlock_tryrdlock(&rwlock), 3)  \
	MEASURED(rwlock_rdunlock_2, pthread_rwlock_unlock(&rwlock), 0)    \
	MEASURED(rwlock_wrlock, pthread_rwlock_wrlock(&rwlock), 0)        \
	MEASURED(rwlock_wrunlock, pthread_rwlock_unlock(&rwlock), 0)      \
	MEASURED(rwlock_trywrlock, pthread_rwlock_trywrlock(&rwlock), 0)  \
	MEASURED(rwlock_wrunlock_2, pthread_rwlock_unlock(&rwlock), 0)    \
	MEASURED(spin_lock, pthread_spin_lock(&spin), 2)                  \
	MEASURED(spin_unlock, pthread_spin_unlock(&spin), 3)              \
	MEASURED(spin_trylock, pthread_spin_trylock(&spin), 0)            \
	MEASURED(spin_unlock_2, pthread_spin_unlock(&spin), 3)            \
	MEASURED(cond_signal, pthread_cond_signal(&cond), 0)              \
	MEASURED(cond_broadcast, pthread_cond_broadcast(&cond), 0)        \
	MEASURED(cond_timedwait, wait_in_past(), 0)                       \
	MEASURED(woken_signal, pthread_cond_signal(&waited), 0)           \
	MEASURED(woken_broadcast, pthread_cond_broadcast(&waited), 0)

/* A wait that sleeps until a deadline in the past, and its mutex. */
static int wait_in_past(void)
{
	struct timespec past = {.tv_sec = 1};

	pthread_mutex_lock(&normal);
	(void)pthread_cond_timedwait(&cond, &normal, &past);
	return pthread_mutex_unlock(&normal);
}

#define MEASURED(name, call, more)       \
	static void measure_##name(void) \
	{                                \
		(void)call;              \
	}
OPERATIONS
#undef MEASURED

static const struct {
	const char *name;
	void (*run)(void);
	long more;
} operations[] = {
#define MEASURED(name, call, more) {#name, measure_##name, more},
	OPERATIONS
#undef MEASURED
};

#define COUNT (sizeof(operations) / sizeof(operations[0]))

static void mark(void)
{
	__asm__ __volatile__("int3" ::: "memory");
}

/* Runs once for the loader and for first-use initialisation, then traced. */
static void run_operations(void)
{
	for (size_t i = 0; i < COUNT; i++)
		operations[i].run();
	EXPECT(!ptrace(PTRACE_TRACEME, 0, NULL, NULL), "ptrace: %s", strerror(errno));
	for (size_t i = 0; i < COUNT; i++) {
		mark();
		operations[i].run();
		mark();
	}
}

/* ---- A signalled waiter that does not run before the end: a signal handler keeps it ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned waiting, tokens;

static void *wait_once(void *argument)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	waiting = 1;
	while (!tokens)
		EXPECT_OK(pthread_cond_wait(&waited, &mutex));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return argument;
}

static pthread_t begin_waiter(void)
{
	struct sigaction action = {.sa_handler = keep};
	pthread_t waiter = start(wait_once, NULL);

	EXPECT(!sigaction(SIGUSR1, &action, NULL), "sigaction");
	until_is(&mutex, &waiting, 1);
	EXPECT_OK(pthread_kill(waiter, SIGUSR1));
	while (!atomic_load(&kept))
		sched_yield();
	EXPECT_OK(pthread_mutex_lock(&mutex));
	tokens = 1;
	EXPECT_OK(pthread_cond_signal(&waited));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return waiter;
}

/* Those that the rules name. */
pthread_mutex_t ruled = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t ruled_rw = PTHREAD_RWLOCK_INITIALIZER;

static int be_measured(const char *way)
{
	bool among_threads = !strcmp(way, "threads");
	pthread_t waiter = 0;

	prepare();
	EXPECT(!is_replaced() || !getenv("POUNDLOCK_RULES") ||
		       (ruled.__data.__kind && ruled_rw.__data.__shared),
	       "the rules apply");
	if (among_threads)
		waiter = begin_waiter();
	run_operations();
	atomic_store(&released, true);
	if (among_threads)
		finish(waiter);
	return 0;
}

/* ---- Measurement ---- */

static pid_t begin(const char *way, const char *library)
{
	pid_t child = fork();

	if (child)
		return child;
	if (library)
		setenv("LD_PRELOAD", library, 1);
	execl("/proc/self/exe", "instructions", "--measured", way, NULL);
	_exit(SKIPPED);
}

/* The cost of the next instruction. */
static long weight(pid_t child)
{
	struct user_regs_struct registers;
	long code;

	ptrace(PTRACE_GETREGS, child, NULL, &registers);
	code = ptrace(PTRACE_PEEKTEXT, child, (void *)registers.rip, NULL);
	return (code & 0xffff) == 0x050f ? SYSTEM_CALL : 1;
}

/* Whether @child stopped at a mark rather than after a step. */
static bool is_marked(pid_t child)
{
	siginfo_t info;

	EXPECT(!ptrace(PTRACE_GETSIGINFO, child, NULL, &info), "PTRACE_GETSIGINFO: %s",
	       strerror(errno));
	return info.si_code == SI_KERNEL;
}

static void measure(const char *way, const char *library, long *counts)
{
	pid_t child = begin(way, library);
	size_t marks = 0;
	int status;

	EXPECT(child > 0, "fork: %s", strerror(errno));
	memset(counts, 0, COUNT * sizeof(*counts));
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		EXPECT(WSTOPSIG(status) == SIGTRAP, "%s by signal %d", way, WSTOPSIG(status));
		marks += is_marked(child);
		if (marks % 2)
			counts[marks / 2] += weight(child);
		ptrace(marks % 2 ? PTRACE_SINGLESTEP : PTRACE_CONT, child, NULL, NULL);
	}
	EXPECT(WIFEXITED(status) && !WEXITSTATUS(status) && marks == 2 * COUNT,
	       "%s: %#x after %zu marks", way, (unsigned)status, marks);
}

static bool compare(const char *way, const char *library)
{
	long native[COUNT], ours[COUNT];
	bool holds = true;

	measure(way, NULL, native);
	measure(way, library, ours);
	for (size_t i = 0; i < COUNT; i++) {
		bool more = ours[i] > native[i] + operations[i].more;

		printf("%s %-22s %5ld natively %5ld%s\n", way, operations[i].name, native[i],
		       ours[i], more ? "  TOO MANY" : "");
		holds = holds && !more;
	}
	return holds;
}

static bool can_trace(void)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? 1 : 0);
	return waitpid(child, &status, 0) == child && !status;
}

/* With control pages and a file of rules in a folder of their own. */
static bool compare_controlled(const char *library)
{
	char folder[] = "/tmp/poundlock-instructions-XXXXXX", command[3 * sizeof(folder) + 64],
	     rules[sizeof(folder) + 16];
	FILE *file;
	bool holds;

	EXPECT(mkdtemp(folder), "%s", folder);
	setenv("POUNDLOCK_CONTROL", folder, 1);
	snprintf(rules, sizeof(rules), "%s/rules.toml", folder);
	file = fopen(rules, "w");
	EXPECT(file &&
		       fputs("[[rule]]\nsymbol = \"ruled\"\nlock = \"mcs\"\n"
			     "[[rule]]\nsymbol = \"ruled_rw\"\nrwlock = \"fair_rw\"\n",
			     file) >= 0 &&
		       !fclose(file),
	       "%s", rules);
	setenv("POUNDLOCK_RULES", rules, 1);
	holds = compare("alone", library);
	holds = compare("threads", library) && holds;
	snprintf(command, sizeof(command), "rm %s/*.control %s && rmdir %s", folder, rules, folder);
	EXPECT(!system(command), "there was no control page: %s", command);
	return holds;
}

int main(int argc, char **argv)
{
	bool holds;

	EXPECT(argc > 1, "the library's path is missing");
	if (!strcmp(argv[1], "--measured"))
		return be_measured(argv[2]);
	if (!can_trace())
		return SKIPPED;
	holds = compare("alone", argv[1]);
	holds = compare("threads", argv[1]) && holds;
	holds = compare_controlled(argv[1]) && holds;
	fflush(stdout);
	EXPECT(holds, "more instructions than natively");
	return 0;
}
