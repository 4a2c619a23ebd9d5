/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A sandbox that forbids what a lock might ask the kernel for: getcpu and membarrier are refused, or kill the process,
 * from its main function on; and refused from the start, with rseq and sched_getaffinity.
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
			(void)pthread_cond_timedwait(&cond, &mutex, &past); /* or the signal of another thread */
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

/* All of the process's threads to come get the answer @action to the calls. */
static void forbid(uint32_t action)
{
#define FORBIDDEN(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, action)
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

/* The same for a program that is yet to begin: its loader opens files, and its threads may not have rseq either. */
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

static void in_child(void (*run)(void *), void *argument)
{
	pid_t child = fork();
	int status;

	if (!child) {
		run(argument);
		_exit(0);
	}
	EXPECT(child > 0 && waitpid(child, &status, 0) == child && !status, "ended with %x", status);
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
	in_child(refused_from_the_start, argv[0]);
	return 0;
}
