/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sandboxes that forbid system calls which a lock might use. getcpu() and membarrier() fail, or
 * kill the process, from main() on; or they fail from the start, with rseq() and
 * sched_getaffinity(). In a strict sandbox, from main() on, every call kills the process that
 * neither glibc's threads and locks need nor docs/preload.md lists.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "posix.h"

#define THREADS 4
#define ROUNDS 2000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned long count;

static void *use(void *argument)
{
	struct timespec past = {.tv_sec = 1};

	for (unsigned i = 0; i < ROUNDS; i++) {
		EXPECT_OK(pthread_mutex_lock(&mutex));
		count++;
		if (i % 100 == 0)
			/* Or the signal of another thread. */
			(void)pthread_cond_timedwait(&cond, &mutex, &past);
		EXPECT_OK(pthread_cond_signal(&cond));
		EXPECT_OK(pthread_mutex_unlock(&mutex));
		EXPECT_OK(i % 10 ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock));
		EXPECT_OK(pthread_rwlock_unlock(&rwlock));
	}
	return argument;
}

static void use_locks(void)
{
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		threads[i] = start(use, NULL);
	for (size_t i = 0; i < THREADS; i++)
		finish(threads[i]);
	EXPECT(count == THREADS * ROUNDS, "%lu", count);
}

/* Makes @action the result of the calls, for all threads from now on. */
static void forbid(uint32_t action)
{
#define FORBIDDEN(number) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, action)
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		FORBIDDEN(SYS_getcpu),
		FORBIDDEN(SYS_membarrier),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	EXPECT(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
	EXPECT(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

/* The same for a new program: its loader opens files, and its threads may not use rseq() either. */
static void forbid_from_the_start(void)
{
	uint32_t action = SECCOMP_RET_ERRNO | EPERM;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		FORBIDDEN(SYS_rseq),
		FORBIDDEN(SYS_sched_getaffinity),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	forbid(action);
	EXPECT(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

/*
 * The calls of glibc's threads, locks and allocator; and docs/preload.md's gettid() and getpid().
 */
static const int needed[] = {SYS_futex,        SYS_clone,
			     SYS_clone3,       SYS_set_robust_list,
			     SYS_rseq,         SYS_rt_sigprocmask,
			     SYS_rt_sigaction, SYS_clock_gettime,
			     SYS_getrandom,    SYS_mmap,
			     SYS_munmap,       SYS_mprotect,
			     SYS_madvise,      SYS_brk,
			     SYS_gettid,       SYS_getpid,
			     SYS_exit,         SYS_exit_group};

static void allow_what_is_needed(void)
{
	enum { CALLS = sizeof(needed) / sizeof(needed[0]) };
	struct sock_filter filter[2 * CALLS + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = {.len = 2 * CALLS + 2, .filter = filter};

	for (size_t i = 0; i < CALLS; i++) {
		filter[1 + 2 * i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
								 (uint32_t)needed[i], 0, 1);
		filter[2 + 2 * i] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	filter[1 + 2 * CALLS] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	EXPECT(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
	EXPECT(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

static void in_child(void (*run)(void *), void *argument)
{
	pid_t child = fork();
	int status;

	if (!child) {
		run(argument);
		_exit(0);
	}
	EXPECT(child > 0 && waitpid(child, &status, 0) == child && !status, "ended with %x",
	       status);
}

static void refused(void *unused)
{
	(void)unused;
	forbid(SECCOMP_RET_ERRNO | EPERM);
	use_locks();
}

static void deadly(void *unused)
{
	(void)unused;
	forbid(SECCOMP_RET_KILL_PROCESS);
	use_locks();
}

/* ---- More threads than the library records before it looks for those that have ended ---- */

#define BATCH 20
#define BATCHES 12

static void *lock_once(void *argument)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return argument;
}

/* All wait for the mutex, lock it once, and end. */
static void sleep_together(void)
{
	struct timespec until = from_now(CLOCK_REALTIME, 5);
	pthread_t threads[BATCH];

	EXPECT_OK(pthread_mutex_lock(&mutex));
	for (size_t i = 0; i < BATCH; i++)
		threads[i] = start(lock_once, NULL);
	EXPECT(pthread_mutex_timedlock(&mutex, &until), "locked twice");
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	for (size_t i = 0; i < BATCH; i++)
		finish(threads[i]);
}

/* ---- Threads that contend for a while ---- */

#define CONTENTION_MS 50
#define CROWD 8

struct contention {
	struct timespec until;
	int inside, outside; /* how much a thread does */
};

static void work(int amount)
{
	for (volatile int i = 0; i < amount; i++)
		;
}

static void *contend(void *argument)
{
	const struct contention *contention = argument;

	do {
		for (int i = 0; i < 100; i++) {
			EXPECT_OK(pthread_mutex_lock(&mutex));
			work(contention->inside);
			EXPECT_OK(pthread_mutex_unlock(&mutex));
			work(contention->outside);
		}
	} while (!has_come(CLOCK_REALTIME, contention->until));
	return NULL;
}

/* @count threads, at most CROWD. */
static void contend_together(size_t count, int inside, int outside)
{
	struct contention contention = {from_now(CLOCK_REALTIME, CONTENTION_MS), inside, outside};
	pthread_t threads[CROWD];

	for (size_t i = 0; i < count; i++)
		threads[i] = start(contend, &contention);
	for (size_t i = 0; i < count; i++)
		finish(threads[i]);
}

/* Holds the mutex until all others sleep; then as many threads use everything. */
static void strict(void *unused)
{
	pthread_t sleepers[THREADS];
	struct timespec until;

	(void)unused;
	allow_what_is_needed();
	/* As many as CPUs: shfl_ron tries its tour, which needs the route. */
	contend_together(2, 100, 0);
	/* They are away for long: outside a sandbox, those of shfl_ron would yield. */
	contend_together(CROWD, 4000, 10000);
	EXPECT_OK(pthread_mutex_lock(&mutex));
	for (size_t i = 0; i < THREADS; i++)
		sleepers[i] = start(use, NULL);
	EXPECT(!clock_gettime(CLOCK_REALTIME, &until), "now");
	until.tv_sec++;
	EXPECT(pthread_mutex_timedlock(&mutex, &until), "locked twice");
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	for (size_t i = 0; i < THREADS; i++)
		finish(sleepers[i]);
	EXPECT(count == THREADS * ROUNDS, "%lu", count);
	for (int batch = 0; batch < BATCHES; batch++)
		sleep_together();
}

static void refused_from_the_start(void *self)
{
	forbid_from_the_start();
	execl(self, self, "inside", (char *)NULL);
	_exit(1);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		use_locks();
		return 0;
	}
	in_child(refused, NULL);
	in_child(deadly, NULL);
	in_child(strict, NULL);
	in_child(refused_from_the_start, argv[0]);
	return 0;
}
