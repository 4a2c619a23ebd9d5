/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A process becomes another program, by exec and by posix_spawn, after fork and after vfork, while
 * its threads hold locks and wait for them: the new program starts with locks of its own, and the
 * parent continues.
 */
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "posix.h"

#define ROUNDS 20

extern char **environ;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_bool stop;
static unsigned long count;
static char *self;

static void *contend(void *argument)
{
	while (!atomic_load(&stop)) {
		EXPECT_OK(pthread_mutex_lock(&mutex));
		count++;
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	}
	return argument;
}

static void *wait_for_stop(void *argument)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	while (!atomic_load(&stop))
		EXPECT_OK(pthread_cond_wait(&cond, &mutex));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return argument;
}

/* The new program: uses its locks in two threads. */
static int be_new(void)
{
	pthread_t thread = start(contend, NULL);
	unsigned long seen;

	do {
		EXPECT_OK(pthread_mutex_lock(&mutex));
		seen = count;
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	} while (seen < 100);
	atomic_store(&stop, true);
	finish(thread);
	return 42;
}

static void expect_new(pid_t child)
{
	int status;

	EXPECT(child > 0 && waitpid(child, &status, 0) == child, "no child");
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 42, "ended with %x", status);
}

static void become_new(void)
{
	execl(self, self, "new", (char *)NULL);
	_exit(1);
}

static pid_t by_fork(void)
{
	pid_t child = fork();

	if (!child)
		become_new();
	return child;
}

/* The child borrows this thread and all locks until it becomes another program. */
static pid_t by_vfork(void)
{
	pid_t child = vfork();

	if (!child)
		become_new();
	return child;
}

static pid_t by_spawn(void)
{
	char *arguments[] = {self, "new", NULL};
	pid_t child;

	EXPECT_OK(posix_spawn(&child, self, NULL, NULL, arguments, environ));
	return child;
}

static void each_way(void)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		expect_new(by_fork());
		expect_new(by_vfork());
		expect_new(by_spawn());
		EXPECT_OK(pthread_mutex_lock(&mutex));
		expect_new(by_vfork());
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	}
}

/* The whole process becomes the new program while its threads use locks. */
static void become_new_in_child(void)
{
	pid_t child = fork();

	if (!child) {
		pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

		mutex = fresh; /* natively its holder in the parent would keep it */
		for (size_t i = 0; i < 2; i++)
			start(contend, NULL);
		EXPECT_OK(pthread_mutex_lock(&mutex));
		become_new();
	}
	expect_new(child);
}

int main(int argc, char **argv)
{
	pthread_t threads[3];

	self = argv[0];
	if (argc > 1)
		return be_new();
	threads[0] = start(wait_for_stop, NULL);
	for (size_t i = 1; i < 3; i++)
		threads[i] = start(contend, NULL);
	each_way();
	become_new_in_child();
	EXPECT_OK(pthread_mutex_lock(&mutex));
	atomic_store(&stop, true);
	EXPECT_OK(pthread_cond_broadcast(&cond));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	for (size_t i = 0; i < 3; i++)
		finish(threads[i]);
	return 0;
}
