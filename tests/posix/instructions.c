/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * instructions LIBRARY: what operations that need not wait execute. Counted by single steps, in a
 * process with one thread and in one with several; a system call counts as SYSTEM_CALL
 * instructions.
 *
 *   - With the default locks of LIBRARY preloaded, no more than natively, also if `poundlock
 *     control` can change the settings of its mutexes, if rules give other locks another algorithm,
 *     and with shfl_ron.
 *   - With the C library's locks, little more than without LIBRARY.
 *   - With statistics, of the default locks or of the C library's, little more than without.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "kept.h"
#include "posix.h"

#define SYSTEM_CALL 1000
#define SKIPPED 77
#define FIRST_ROUNDS 400 /* statistics time the first 256 acquisitions of each lock */
#define ROUNDS 3

/* ---- Operations ---- */

/*
 * At an address at which no two of them have the same first row in the statistics: what an
 * operation executes does not depend on where a build puts its objects.
 */
static struct objects {
	pthread_mutex_t normal, explicit, by_default, recursive, errorcheck, adaptive, mutex;
	pthread_rwlock_t rwlock;
	pthread_cond_t cond, waited;
	pthread_spinlock_t spin;
	mtx_t plain, repeated;
} *const o = (struct objects *)0x200000000000;

static void prepare(void)
{
	static const struct objects initial = {
		.normal = PTHREAD_MUTEX_INITIALIZER,
		.recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
		.errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
		.adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
		.mutex = PTHREAD_MUTEX_INITIALIZER,
		.rwlock = PTHREAD_RWLOCK_INITIALIZER,
		.cond = PTHREAD_COND_INITIALIZER,
		.waited = PTHREAD_COND_INITIALIZER,
	};

	EXPECT(mmap(o, sizeof(*o), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == o,
	       "mmap: %s", strerror(errno));
	memcpy(o, &initial, sizeof(*o));
	init_mutex(&o->explicit, PTHREAD_MUTEX_NORMAL);
	init_mutex(&o->by_default, PTHREAD_MUTEX_DEFAULT);
	EXPECT_OK(pthread_spin_init(&o->spin, PTHREAD_PROCESS_PRIVATE));
	EXPECT(mtx_init(&o->plain, mtx_plain) == thrd_success, "mtx_init");
	EXPECT(mtx_init(&o->repeated, mtx_recursive) == thrd_success, "mtx_init");
}

/*
 * MEASURED(name, call, more, passed_on, native, ours): in this order, each after those before it.
 * The instructions allowed beyond the native count (docs/preload.md has the reasons), with our
 * locks and with the C library's, and those that statistics may add: beyond the native count to the
 * C library's locks, and beyond the library's own count to ours.
 */
#define MUTEX(mutex, lock_native, unlock_native, lock_ours, unlock_ours)                    \
	MEASURED(mutex##_lock, pthread_mutex_lock(&o->mutex), 0, 5, lock_native, lock_ours) \
	MEASURED(mutex##_unlock, pthread_mutex_unlock(&o->mutex), 0, 5, unlock_native,      \
		 unlock_ours)                                                               \
	MEASURED(mutex##_trylock, pthread_mutex_trylock(&o->mutex), 0, 5, 100, 120)         \
	MEASURED(mutex##_busy, pthread_mutex_trylock(&o->mutex), 0, 5, 100, 120)            \
	MEASURED(mutex##_unlock_2, pthread_mutex_unlock(&o->mutex), 0, 5, unlock_native,    \
		 unlock_ours)

#define OPERATIONS                                                                        \
	MUTEX(normal, 10, 8, 24, 14)                                                      \
	MUTEX(explicit, 10, 8, 24, 14)                                                    \
	MUTEX(by_default, 10, 8, 24, 14)                                                  \
	MUTEX(errorcheck, 110, 30, 120, 83)                                               \
	MUTEX(adaptive, 100, 30, 70, 50)                                                  \
	MUTEX(recursive, 110, 30, 120, 83)                                                \
	MEASURED(recursive_unlock_3, pthread_mutex_unlock(&o->recursive), 0, 5, 60, 83)   \
	MEASURED(mtx_lock, mtx_lock(&o->plain), 0, 5, 10, 24)                             \
	MEASURED(mtx_unlock, mtx_unlock(&o->plain), 0, 5, 8, 14)                          \
	MEASURED(mtx_trylock, mtx_trylock(&o->plain), 0, 5, 100, 120)                     \
	MEASURED(mtx_unlock_2, mtx_unlock(&o->plain), 0, 5, 8, 14)                        \
	MEASURED(mtx_recursive_lock, mtx_lock(&o->repeated), 0, 5, 110, 120)              \
	MEASURED(mtx_recursive_unlock, mtx_unlock(&o->repeated), 0, 5, 60, 83)            \
	MEASURED(rwlock_rdlock, pthread_rwlock_rdlock(&o->rwlock), 0, 5, 50, 35)          \
	MEASURED(rwlock_rdunlock, pthread_rwlock_unlock(&o->rwlock), 0, 5, 0, 13)         \
	MEASURED(rwlock_rdlock_2, pthread_rwlock_rdlock(&o->rwlock), 0, 5, 5, 17)         \
	MEASURED(rwlock_rdunlock_2, pthread_rwlock_unlock(&o->rwlock), 0, 5, 0, 13)       \
	MEASURED(rwlock_tryrdlock, pthread_rwlock_tryrdlock(&o->rwlock), 3, 50, 100, 150) \
	MEASURED(rwlock_rdunlock_3, pthread_rwlock_unlock(&o->rwlock), 0, 5, 0, 13)       \
	MEASURED(rwlock_wrlock, pthread_rwlock_wrlock(&o->rwlock), 0, 5, 5, 24)           \
	MEASURED(rwlock_wrunlock, pthread_rwlock_unlock(&o->rwlock), 0, 5, 40, 40)        \
	MEASURED(rwlock_trywrlock, pthread_rwlock_trywrlock(&o->rwlock), 0, 50, 100, 120) \
	MEASURED(rwlock_wrunlock_2, pthread_rwlock_unlock(&o->rwlock), 0, 5, 40, 40)      \
	MEASURED(spin_lock, pthread_spin_lock(&o->spin), 2, 20, 80, 0)                    \
	MEASURED(spin_unlock, pthread_spin_unlock(&o->spin), 3, 20, 40, 0)                \
	MEASURED(spin_trylock, pthread_spin_trylock(&o->spin), 0, 20, 80, 0)              \
	MEASURED(spin_unlock_2, pthread_spin_unlock(&o->spin), 3, 20, 40, 0)              \
	MEASURED(cond_signal, pthread_cond_signal(&o->cond), 0, 30, 30, 0)                \
	MEASURED(cond_broadcast, pthread_cond_broadcast(&o->cond), 0, 30, 30, 0)          \
	MEASURED(cond_timedwait, wait_in_past(), 0, 55, 100, 100)                         \
	MEASURED(woken_signal, pthread_cond_signal(&o->waited), 0, 30, 30, 0)             \
	MEASURED(woken_broadcast, pthread_cond_broadcast(&o->waited), 0, 30, 30, 0)

/* A wait that sleeps until a deadline in the past, and its mutex. */
static int wait_in_past(void)
{
	struct timespec past = {.tv_sec = 1};

	pthread_mutex_lock(&o->normal);
	(void)pthread_cond_timedwait(&o->cond, &o->normal, &past);
	return pthread_mutex_unlock(&o->normal);
}

#define MEASURED(name, call, more, passed_on, native, ours) \
	static void measure_##name(void)                    \
	{                                                   \
		(void)call;                                 \
	}
OPERATIONS
#undef MEASURED

static const struct {
	const char *name;
	void (*run)(void);
	long more, passed_on, native, ours;
} operations[] = {
#define MEASURED(name, call, more, passed_on, native, ours) \
	{#name, measure_##name, more, passed_on, native, ours},
	OPERATIONS
#undef MEASURED
};

#define COUNT (sizeof(operations) / sizeof(operations[0]))

static void mark(void)
{
	__asm__ __volatile__("int3" ::: "memory");
}

static void run_all(size_t rounds, void (*around)(void))
{
	for (size_t i = 0; i < rounds * COUNT; i++) {
		around();
		operations[i % COUNT].run();
		around();
	}
}

static void nothing(void)
{
}

/*
 * Runs for the loader, for first-use initialisation, and past the holds that statistics time; then
 * traced.
 */
static void run_operations(void)
{
	run_all(FIRST_ROUNDS, nothing);
	EXPECT(!ptrace(PTRACE_TRACEME, 0, NULL, NULL), "ptrace: %s", strerror(errno));
	run_all(ROUNDS, mark);
}

/* ---- A signalled waiter that does not run before the end: a signal handler keeps it ---- */

static unsigned waiting, tokens;

static void *wait_once(void *argument)
{
	EXPECT_OK(pthread_mutex_lock(&o->mutex));
	waiting = 1;
	while (!tokens)
		EXPECT_OK(pthread_cond_wait(&o->waited, &o->mutex));
	EXPECT_OK(pthread_mutex_unlock(&o->mutex));
	return argument;
}

static pthread_t begin_waiter(void)
{
	struct sigaction action = {.sa_handler = keep};
	pthread_t waiter = start(wait_once, NULL);

	EXPECT(!sigaction(SIGUSR1, &action, NULL), "sigaction");
	until_is(&o->mutex, &waiting, 1);
	EXPECT_OK(pthread_kill(waiter, SIGUSR1));
	while (!atomic_load(&kept))
		sched_yield();
	EXPECT_OK(pthread_mutex_lock(&o->mutex));
	tokens = 1;
	EXPECT_OK(pthread_cond_signal(&o->waited));
	EXPECT_OK(pthread_mutex_unlock(&o->mutex));
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

static void keep_least(long *least, long count)
{
	if (count < *least)
		*least = count;
}

/* The least count of each operation: a few holds are timed. */
static void measure(const char *way, const char *library, long *counts)
{
	pid_t child = begin(way, library);
	size_t marks = 0;
	long count = 0;
	int status;

	EXPECT(child > 0, "fork: %s", strerror(errno));
	for (size_t i = 0; i < COUNT; i++)
		counts[i] = LONG_MAX;
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		EXPECT(WSTOPSIG(status) == SIGTRAP, "%s by signal %d", way, WSTOPSIG(status));
		if (is_marked(child) && ++marks % 2 == 0) {
			keep_least(&counts[(marks / 2 - 1) % COUNT], count);
			count = 0;
		}
		if (marks % 2)
			count += weight(child);
		ptrace(marks % 2 ? PTRACE_SINGLESTEP : PTRACE_CONT, child, NULL, NULL);
	}
	EXPECT(WIFEXITED(status) && !WEXITSTATUS(status) && marks == 2 * ROUNDS * COUNT,
	       "%s: %#x after %zu marks", way, (unsigned)status, marks);
}

/* The bounds of a comparison. */
enum bound { MORE, PASSED_ON, NATIVE_STATISTICS, OUR_STATISTICS };

static long allowed(size_t operation, enum bound bound)
{
	switch (bound) {
	case MORE:
		return operations[operation].more;
	case PASSED_ON:
		return operations[operation].passed_on;
	case NATIVE_STATISTICS:
		return operations[operation].native;
	default:
		return operations[operation].ours;
	}
}

static bool compare(const char *way, const char *title, const long *before, const long *after,
		    enum bound bound)
{
	bool holds = true;

	for (size_t i = 0; i < COUNT; i++) {
		bool more = after[i] > before[i] + allowed(i, bound);

		printf("%s %-20s %-22s %5ld %5ld%s\n", way, title, operations[i].name, before[i],
		       after[i], more ? "  TOO MANY" : "");
		holds = holds && !more;
	}
	return holds;
}

/* With statistics in a folder of their own. */
static bool compare_counted(const char *way, const char *library, const long *native,
			    const long *ours)
{
	char folder[] = "/tmp/poundlock-instructions-XXXXXX", command[2 * sizeof(folder) + 32];
	long counted[COUNT];
	bool holds;

	EXPECT(mkdtemp(folder), "%s", folder);
	setenv("POUNDLOCK_STATS", folder, 1);
	measure(way, library, counted);
	holds = compare(way, "default, counted", ours, counted, OUR_STATISTICS);
	setenv("POUNDLOCK_LOCK", "native", 1);
	measure(way, library, counted);
	holds = compare(way, "native, counted", native, counted, NATIVE_STATISTICS) && holds;
	unsetenv("POUNDLOCK_LOCK");
	unsetenv("POUNDLOCK_STATS");
	snprintf(command, sizeof(command), "rm %s/*.stats && rmdir %s", folder, folder);
	EXPECT(!system(command), "there were no statistics: %s", command);
	return holds;
}

/* With a control page and a file of rules in a folder of their own. */
static bool compare_controlled(const char *way, const char *library, const long *native)
{
	char folder[] = "/tmp/poundlock-instructions-XXXXXX", command[3 * sizeof(folder) + 64],
	     rules[sizeof(folder) + 16];
	long controlled[COUNT];
	FILE *file;

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
	measure(way, library, controlled);
	unsetenv("POUNDLOCK_CONTROL");
	unsetenv("POUNDLOCK_RULES");
	snprintf(command, sizeof(command), "rm %s/*.control %s && rmdir %s", folder, rules, folder);
	EXPECT(!system(command), "there was no control page: %s", command);
	return compare(way, "native, controlled", native, controlled, MORE);
}

/* With the C library's locks, which nothing counts. */
static bool compare_passed_on(const char *way, const char *library, const long *native)
{
	long passed_on[COUNT];

	setenv("POUNDLOCK_LOCK", "native", 1);
	measure(way, library, passed_on);
	unsetenv("POUNDLOCK_LOCK");
	return compare(way, "native, passed on", native, passed_on, PASSED_ON);
}

static bool compare_gated(const char *way, const char *library, const long *native)
{
	long gated[COUNT];

	setenv("POUNDLOCK_LOCK", "shfl_ron", 1);
	measure(way, library, gated);
	unsetenv("POUNDLOCK_LOCK");
	return compare(way, "native, shfl_ron", native, gated, MORE);
}

static bool compare_all(const char *way, const char *library)
{
	long native[COUNT], ours[COUNT];
	bool holds;

	measure(way, NULL, native);
	measure(way, library, ours);
	holds = compare(way, "native, default", native, ours, MORE);
	holds = compare_passed_on(way, library, native) && holds;
	holds = compare_controlled(way, library, native) && holds;
	holds = compare_gated(way, library, native) && holds;
	return compare_counted(way, library, native, ours) && holds;
}

static bool can_trace(void)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? 1 : 0);
	return waitpid(child, &status, 0) == child && !status;
}

int main(int argc, char **argv)
{
	bool holds;

	EXPECT(argc > 1, "the library's path is missing");
	if (!strcmp(argv[1], "--measured"))
		return be_measured(argv[2]);
	if (!can_trace())
		return SKIPPED;
	holds = compare_all("alone", argv[1]);
	holds = compare_all("threads", argv[1]) && holds;
	fflush(stdout);
	EXPECT(holds, "more instructions than allowed");
	return 0;
}
