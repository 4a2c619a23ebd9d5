/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Helpers of the POSIX tests. The tests use only pthread: a native run tests the test itself, a run
 * under the preload library tests the library. No test depends on the duration of anything, except
 * where POSIX forbids an early end.
 */
#ifndef POUNDLOCK_TESTS_POSIX_H
#define POUNDLOCK_TESTS_POSIX_H

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include "expect.h"

/* Checks that @call returns the error number @number. */
#define EXPECT_RESULT(call, number)                                                             \
	do {                                                                                    \
		int result_ = (call);                                                           \
		EXPECT(result_ == (number), "%s returned %d (%s), expected %d", #call, result_, \
		       strerror(result_), (int)(number));                                       \
	} while (0)

#define EXPECT_OK(call) EXPECT_RESULT(call, 0)

static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
#define EACH_CLOCK(clock) for (const clockid_t *clock = clocks; clock < clocks + 2; clock++)

/* Whether the library is preloaded, and replaces locks. */
static inline bool is_replaced(void)
{
	const char *preload = getenv("LD_PRELOAD"), *lock = getenv("POUNDLOCK_LOCK");

	return preload && strstr(preload, "libpoundlock-preload.so") &&
	       !(lock && !strcmp(lock, "native"));
}

/* The time on @clock in @milliseconds, which may be negative. */
static inline struct timespec from_now(clockid_t clock, long milliseconds)
{
	struct timespec at;

	clock_gettime(clock, &at);
	at.tv_sec += milliseconds / 1000;
	at.tv_nsec += milliseconds % 1000 * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	} else if (at.tv_nsec < 0) {
		at.tv_sec--;
		at.tv_nsec += 1000000000;
	}
	return at;
}

static inline bool has_come(clockid_t clock, struct timespec at)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec != at.tv_sec ? now.tv_sec > at.tv_sec : now.tv_nsec >= at.tv_nsec;
}

static inline void sleep_ms(long milliseconds)
{
	struct timespec time = {.tv_sec = milliseconds / 1000,
				.tv_nsec = milliseconds % 1000 * 1000000};

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

/* Starts a thread with the smallest stack that glibc allows. */
static inline pthread_t start(void *(*run)(void *), void *argument)
{
	pthread_attr_t attr;
	pthread_t thread;

	EXPECT_OK(pthread_attr_init(&attr));
	EXPECT_OK(pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN)));
	EXPECT_OK(pthread_create(&thread, &attr, run, argument));
	EXPECT_OK(pthread_attr_destroy(&attr));
	return thread;
}

static inline void *finish(pthread_t thread)
{
	void *result;

	EXPECT_OK(pthread_join(thread, &result));
	return result;
}

/* Increments the protected count and downgrades to a reader. */
static inline void write_and_read(pthread_rwlock_t *rwlock, unsigned long *written)
{
	EXPECT_OK(pthread_rwlock_wrlock(rwlock));
	++*written;
	EXPECT_OK(pthread_rwlock_unlock(rwlock));
	EXPECT_OK(pthread_rwlock_rdlock(rwlock));
	EXPECT_OK(pthread_rwlock_unlock(rwlock));
}

/* The result of @call for @mutex in another thread. */
struct elsewhere {
	int (*call)(pthread_mutex_t *mutex);
	pthread_mutex_t *mutex;
	int result;
};

static inline void *elsewhere_run(void *argument)
{
	struct elsewhere *elsewhere = (struct elsewhere *)argument;

	elsewhere->result = elsewhere->call(elsewhere->mutex);
	return NULL;
}

static inline int elsewhere(int (*call)(pthread_mutex_t *mutex), pthread_mutex_t *mutex)
{
	struct elsewhere elsewhere = {.call = call, .mutex = mutex, .result = -1};

	finish(start(elsewhere_run, &elsewhere));
	return elsewhere.result;
}

static inline void init_mutex(pthread_mutex_t *mutex, int type)
{
	pthread_mutexattr_t attr;

	EXPECT_OK(pthread_mutexattr_init(&attr));
	EXPECT_OK(pthread_mutexattr_settype(&attr, type));
	EXPECT_OK(pthread_mutex_init(mutex, &attr));
	EXPECT_OK(pthread_mutexattr_destroy(&attr));
}

/*
 * Waits until @number, which @mutex protects, is @wanted. Sleeps between reads: a yielding thread
 * would keep the CPU and the lock from the threads that it waits for.
 */
static inline void until_is(pthread_mutex_t *mutex, const unsigned *number, unsigned wanted)
{
	unsigned seen;

	for (;;) {
		EXPECT_OK(pthread_mutex_lock(mutex));
		seen = *number;
		EXPECT_OK(pthread_mutex_unlock(mutex));
		if (seen == wanted)
			return;
		sleep_ms(1);
	}
}

/* The kernel's id of the calling thread, for until_asleep(). */
static inline pid_t kernel_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* Waits until this process's thread with the kernel's id @id sleeps in the kernel. */
static inline void until_asleep(pid_t id)
{
	char path[64], line[256], *name_end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)id);
	for (;;) {
		file = fopen(path, "r");
		EXPECT(file && fgets(line, sizeof(line), file), "%s cannot be read", path);
		fclose(file);
		name_end = strrchr(line, ')');
		EXPECT(name_end && name_end[1] == ' ', "%s has no state", path);
		if (name_end[2] == 'S')
			return;
		sleep_ms(1);
	}
}

#endif
