/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Holders and waiters are stopped and continued at any moment, by signals to the process and by a
 * debugger that seizes one thread after the other: nothing is lost, and everything ends. Processes
 * are killed while holding and waiting: processes that share no lock with them lose nothing.
 */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "posix.h"

#define THREADS 4
#define STOPS 500
#define SEIZURES 1000
#define KILLS 20
#define LEAST 2000 /* rounds of each thread */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned long count, written;

/* Shared with the process that causes the storm. */
static struct {
	atomic_bool begun, over;
} * storm;

static void *contend(void *argument)
{
	unsigned long *rounds = argument;

	for (*rounds = 0; *rounds < LEAST || !atomic_load(&storm->over); ++*rounds) {
		struct timespec soon = from_now(CLOCK_REALTIME, 1);

		if (*rounds % 16) {
			EXPECT_OK(pthread_mutex_lock(&mutex));
		} else {
			while (pthread_mutex_timedlock(&mutex, &soon))
				soon = from_now(CLOCK_REALTIME, 1);
		}
		count++;
		EXPECT_OK(pthread_cond_signal(&cond));
		if (*rounds % 64 == 0)
			(void)pthread_cond_timedwait(&cond, &mutex, &soon);
		EXPECT_OK(pthread_mutex_unlock(&mutex));
		write_and_read(&rwlock, &written);
	}
	return argument;
}

/* The work of the process in the storm. */
static void endure(void)
{
	unsigned long rounds[THREADS], sum = 0;
	pthread_t threads[THREADS];

	/* Needed where only descendants may be traced. */
	prctl(PR_SET_PTRACER, getppid(), 0, 0, 0);
	for (size_t i = 0; i < THREADS; i++)
		threads[i] = start(contend, &rounds[i]);
	atomic_store(&storm->begun, true);
	for (size_t i = 0; i < THREADS; i++)
		sum += *(unsigned long *)finish(threads[i]);
	EXPECT(count == sum && written == sum, "%lu and %lu of %lu", count, written, sum);
	_exit(0);
}

static void stop_and_continue(pid_t victim)
{
	for (unsigned i = 0; i < STOPS; i++) {
		int status;

		EXPECT(!kill(victim, SIGSTOP), "SIGSTOP");
		EXPECT(waitpid(victim, &status, WUNTRACED) == victim && WIFSTOPPED(status),
		       "it ended: %x", status);
		EXPECT(!kill(victim, SIGCONT), "SIGCONT");
		sched_yield();
	}
}

/* Stops one running thread for a moment. False if tracing is forbidden. */
static bool seize(pid_t thread)
{
	int status;

	if (ptrace(PTRACE_SEIZE, thread, NULL, NULL)) {
		EXPECT(errno == EPERM, "seize: %s", strerror(errno));
		return false;
	}
	EXPECT(!ptrace(PTRACE_INTERRUPT, thread, NULL, NULL), "interrupt");
	EXPECT(waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status), "it ended: %x",
	       status);
	sched_yield();
	EXPECT(!ptrace(PTRACE_DETACH, thread, NULL, NULL), "detach");
	return true;
}

static void debug(pid_t victim)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/task", (long)victim);
	for (unsigned seizures = 0; seizures < SEIZURES;) {
		DIR *threads = opendir(path);
		unsigned before = seizures;

		EXPECT(threads, "%s", path);
		for (struct dirent *entry; (entry = readdir(threads));)
			if (*entry->d_name != '.')
				seizures += seize((pid_t)atoi(entry->d_name));
		closedir(threads);
		if (seizures == before)
			return;
	}
}

/* A process that must survive, and has started. */
static pid_t begin_to_endure(void)
{
	pid_t child;

	atomic_store(&storm->begun, false);
	child = fork();
	if (!child)
		endure();
	EXPECT(child > 0, "fork");
	while (!atomic_load(&storm->begun))
		sched_yield();
	return child;
}

/* Kills processes that do the same work as @survivor with locks of their own. */
static void kill_others(pid_t survivor)
{
	(void)survivor;
	for (unsigned i = 0; i < KILLS; i++) {
		pid_t victim = begin_to_endure();
		int status;

		EXPECT(!kill(victim, SIGKILL), "SIGKILL");
		EXPECT(waitpid(victim, &status, 0) == victim && WIFSIGNALED(status), "it ended: %x",
		       status);
	}
}

static void in_storm(void (*cause)(pid_t victim))
{
	pid_t child;
	int status;

	atomic_store(&storm->over, false);
	child = begin_to_endure();
	cause(child);
	atomic_store(&storm->over, true);
	EXPECT(waitpid(child, &status, 0) == child && !status, "ended with %x", status);
}

int main(void)
{
	storm = mmap(NULL, sizeof(*storm), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	EXPECT(storm != MAP_FAILED, "mmap");
	in_storm(stop_and_continue);
	in_storm(debug);
	in_storm(kill_others);
	return 0;
}
