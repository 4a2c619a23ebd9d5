/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The rules of readers-writer locks, one by one: POSIX's, and glibc's where POSIX leaves a choice.
 * Each kind from its static initialiser, from pthread_rwlock_init(), copied and re-initialised.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "posix.h"

static const int kinds[] = {PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NP,
			    PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};

static pthread_rwlock_t plain = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t nonrecursive = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static void init_kind(pthread_rwlock_t *lock, int kind, int shared)
{
	pthread_rwlockattr_t attr;

	EXPECT_OK(pthread_rwlockattr_init(&attr));
	EXPECT_OK(pthread_rwlockattr_setkind_np(&attr, kind));
	EXPECT_OK(pthread_rwlockattr_setpshared(&attr, shared));
	EXPECT_OK(pthread_rwlock_init(lock, &attr));
	EXPECT_OK(pthread_rwlockattr_destroy(&attr));
}

/* ---- In another thread ---- */

struct other {
	int (*call)(pthread_rwlock_t *lock);
	pthread_rwlock_t *lock;
	int result;
};

static void *other_run(void *argument)
{
	struct other *other = argument;

	other->result = other->call(other->lock);
	return NULL;
}

/* The result of @call for @lock in another thread. */
static int in_other(int (*call)(pthread_rwlock_t *lock), pthread_rwlock_t *lock)
{
	struct other other = {.call = call, .lock = lock, .result = -1};

	finish(start(other_run, &other));
	return other.result;
}

static int read_and_unlock(pthread_rwlock_t *lock)
{
	int result = pthread_rwlock_tryrdlock(lock);

	if (!result)
		EXPECT_OK(pthread_rwlock_unlock(lock));
	return result;
}

static int write_and_unlock(pthread_rwlock_t *lock)
{
	int result = pthread_rwlock_trywrlock(lock);

	if (!result)
		EXPECT_OK(pthread_rwlock_unlock(lock));
	return result;
}

static int wait_and_write(pthread_rwlock_t *lock)
{
	EXPECT_OK(pthread_rwlock_wrlock(lock));
	return pthread_rwlock_unlock(lock);
}

static int read_briefly(pthread_rwlock_t *lock)
{
	struct timespec at = from_now(CLOCK_REALTIME, 2);

	return pthread_rwlock_timedrdlock(lock, &at);
}

static int write_briefly(pthread_rwlock_t *lock)
{
	struct timespec at = from_now(CLOCK_REALTIME, 2);

	return pthread_rwlock_timedwrlock(lock, &at);
}

static void expect_free(pthread_rwlock_t *lock)
{
	EXPECT_OK(in_other(write_and_unlock, lock));
	EXPECT_OK(in_other(read_and_unlock, lock));
}

/* ---- Readers share, a writer is alone; results of relocking ---- */

static void while_read(pthread_rwlock_t *lock)
{
	EXPECT_OK(pthread_rwlock_rdlock(lock));
	EXPECT_OK(pthread_rwlock_tryrdlock(lock));
	EXPECT_OK(pthread_rwlock_rdlock(lock));
	EXPECT_OK(read_briefly(lock));
	for (int i = 0; i < 4; i++) {
		EXPECT_OK(in_other(read_and_unlock, lock));
		EXPECT_RESULT(in_other(write_and_unlock, lock), EBUSY);
		EXPECT_RESULT(in_other(write_briefly, lock), ETIMEDOUT);
		EXPECT_RESULT(pthread_rwlock_trywrlock(lock), EBUSY);
		EXPECT_OK(pthread_rwlock_unlock(lock));
	}
	expect_free(lock);
}

static void while_written(pthread_rwlock_t *lock)
{
	struct timespec at = from_now(CLOCK_MONOTONIC, 1000);

	EXPECT_OK(pthread_rwlock_wrlock(lock));
	EXPECT_RESULT(in_other(read_and_unlock, lock), EBUSY);
	EXPECT_RESULT(in_other(write_and_unlock, lock), EBUSY);
	EXPECT_RESULT(in_other(read_briefly, lock), ETIMEDOUT);
	EXPECT_RESULT(in_other(write_briefly, lock), ETIMEDOUT);
	EXPECT_RESULT(pthread_rwlock_wrlock(lock), EDEADLK);
	EXPECT_RESULT(pthread_rwlock_rdlock(lock), EDEADLK);
	EXPECT_RESULT(read_briefly(lock), EDEADLK);
	EXPECT_RESULT(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &at), EDEADLK);
	EXPECT_RESULT(pthread_rwlock_tryrdlock(lock), EBUSY);
	EXPECT_RESULT(pthread_rwlock_trywrlock(lock), EBUSY);
	EXPECT_OK(pthread_rwlock_unlock(lock));
	expect_free(lock);
}

/* A reader that another thread unblocks. */
static void unlocked_elsewhere(pthread_rwlock_t *lock)
{
	EXPECT_OK(pthread_rwlock_rdlock(lock));
	EXPECT_OK(in_other(pthread_rwlock_unlock, lock));
	expect_free(lock);
}

static void deadlines(pthread_rwlock_t *lock)
{
	struct timespec past = {.tv_sec = 1}, before = {.tv_sec = -1},
			invalid = {.tv_nsec = 1000000000};

	EACH_CLOCK(clock)
	{
		EXPECT_OK(pthread_rwlock_clockwrlock(lock, *clock, &past));
		EXPECT_OK(pthread_rwlock_unlock(lock));
		EXPECT_OK(pthread_rwlock_clockrdlock(lock, *clock, &past));
		EXPECT_RESULT(pthread_rwlock_clockwrlock(lock, *clock, &past), ETIMEDOUT);
		EXPECT_RESULT(pthread_rwlock_clockwrlock(lock, *clock, &before), ETIMEDOUT);
		EXPECT_OK(pthread_rwlock_unlock(lock));
		EXPECT_RESULT(pthread_rwlock_clockrdlock(lock, *clock, &invalid), EINVAL);
		EXPECT_RESULT(pthread_rwlock_clockwrlock(lock, *clock, &invalid), EINVAL);
	}
	EXPECT_RESULT(pthread_rwlock_clockrdlock(lock, CLOCK_PROCESS_CPUTIME_ID, &past), EINVAL);
	EXPECT_RESULT(pthread_rwlock_clockwrlock(lock, 1234, &past), EINVAL);
	EXPECT_RESULT(pthread_rwlock_timedrdlock(lock, &invalid), EINVAL);
	EXPECT_RESULT(pthread_rwlock_timedwrlock(lock, &invalid), EINVAL);
	expect_free(lock);
}

/* ---- While a writer waits ---- */

/* A reader enters again. If it had to wait for the writer, both would wait indefinitely. */
static void recursive_read(pthread_rwlock_t *lock)
{
	struct other writer = {.call = wait_and_write, .lock = lock};
	struct timespec at = from_now(CLOCK_MONOTONIC, 3600 * 1000);
	pthread_t thread;

	EXPECT_OK(pthread_rwlock_rdlock(lock));
	thread = start(other_run, &writer);
	for (int i = 0; i < 20; i++) {
		sleep_ms(1);
		EXPECT_OK(pthread_rwlock_rdlock(lock));
		EXPECT_OK(pthread_rwlock_tryrdlock(lock));
		EXPECT_OK(pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &at));
		for (int held = 0; held < 3; held++)
			EXPECT_OK(pthread_rwlock_unlock(lock));
	}
	EXPECT_OK(pthread_rwlock_unlock(lock));
	finish(thread);
	EXPECT_OK(writer.result);
	expect_free(lock);
}

/* The same while the lock is held more often than a byte can count, and then held only once. */
static void recursive_read_often(void)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	struct other writer = {.call = wait_and_write, .lock = &lock};
	pthread_t thread;

	for (int i = 0; i < 512; i++)
		EXPECT_OK(pthread_rwlock_rdlock(&lock));
	thread = start(other_run, &writer);
	sleep_ms(20);
	EXPECT_OK(pthread_rwlock_rdlock(&lock));
	for (int i = 0; i < 512; i++)
		EXPECT_OK(pthread_rwlock_unlock(&lock));
	EXPECT_OK(pthread_rwlock_rdlock(&lock));
	for (int i = 0; i < 2; i++)
		EXPECT_OK(pthread_rwlock_unlock(&lock));
	finish(thread);
	EXPECT_OK(writer.result);
	expect_free(&lock);
}

/* The same with more locks than a thread has read counters for. */
static void recursive_read_of_many(void)
{
	static pthread_rwlock_t locks[300];
	struct other writer = {.call = wait_and_write, .lock = &locks[150]};
	pthread_t thread;

	for (int i = 0; i < 300; i++)
		EXPECT_OK(pthread_rwlock_rdlock(&locks[i]));
	thread = start(other_run, &writer);
	sleep_ms(20);
	for (int i = 0; i < 300; i++)
		EXPECT_OK(pthread_rwlock_rdlock(&locks[i]));
	for (int i = 0; i < 600; i++)
		EXPECT_OK(pthread_rwlock_unlock(&locks[i % 300]));
	finish(thread);
	EXPECT_OK(writer.result);
}

/*
 * With writer preference, a new reader waits for a waiting writer; the test can observe that
 * eventually.
 */
static void writer_preference(pthread_rwlock_t *lock)
{
	struct other writer = {.call = wait_and_write, .lock = lock};
	pthread_t thread;

	EXPECT_OK(pthread_rwlock_rdlock(lock));
	thread = start(other_run, &writer);
	while (in_other(read_and_unlock, lock) != EBUSY)
		sleep_ms(1);
	EXPECT_RESULT(in_other(read_briefly, lock), ETIMEDOUT);
	EXPECT_OK(pthread_rwlock_unlock(lock));
	finish(thread);
	EXPECT_OK(writer.result);
	expect_free(lock);
}

/* ---- Many threads ---- */

#define THREADS 6
#define ROUNDS 150
static struct {
	pthread_rwlock_t lock;
	bool again; /* readers enter again */
	uint64_t first, second;
	_Atomic uint64_t writes;
} many;

static void *reads_and_writes(void *argument)
{
	uintptr_t number = (uintptr_t)argument;

	for (uintptr_t i = 0; i < ROUNDS; i++) {
		struct timespec at = from_now(clocks[i % 2], (long)(i % 3));

		if ((i + number) % 4) {
			if ((i + number) % 4 == 1 &&
			    pthread_rwlock_clockrdlock(&many.lock, clocks[i % 2], &at))
				continue;
			if ((i + number) % 4 != 1)
				EXPECT_OK(pthread_rwlock_rdlock(&many.lock));
			EXPECT(many.first == many.second, "a reader beside a writer");
			if (many.again && i % 3 == 0) {
				EXPECT_OK(pthread_rwlock_rdlock(&many.lock));
				EXPECT_OK(pthread_rwlock_unlock(&many.lock));
			}
		} else {
			if (i % 2 && pthread_rwlock_clockwrlock(&many.lock, clocks[i % 2], &at))
				continue;
			if (i % 2 == 0)
				EXPECT_OK(pthread_rwlock_wrlock(&many.lock));
			many.first++;
			if (i % 16 == 0)
				sched_yield();
			many.second++;
			many.writes++;
		}
		EXPECT_OK(pthread_rwlock_unlock(&many.lock));
	}
	return NULL;
}

static void by_many(int kind)
{
	pthread_t threads[THREADS];

	memset(&many, 0, sizeof(many));
	many.again = kind != PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
	init_kind(&many.lock, kind, PTHREAD_PROCESS_PRIVATE);
	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = start(reads_and_writes, (void *)i);
	for (size_t i = 0; i < THREADS; i++)
		finish(threads[i]);
	EXPECT(many.first == many.writes && many.second == many.writes, "lost writes");
	expect_free(&many.lock);
	EXPECT_OK(pthread_rwlock_destroy(&many.lock));
}

/* ---- Processes ---- */

static int exit_status(pid_t child)
{
	int status;

	EXPECT(waitpid(child, &status, 0) == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A process-shared lock excludes another process. */
static void shared_by_processes(void)
{
	pthread_rwlock_t *lock = mmap(NULL, sizeof(*lock), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	EXPECT(lock != MAP_FAILED);
	init_kind(lock, PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_PROCESS_SHARED);
	EXPECT_OK(pthread_rwlock_wrlock(lock));
	child = fork();
	if (!child)
		_exit(pthread_rwlock_tryrdlock(lock));
	EXPECT(exit_status(child) == EBUSY);
	EXPECT_OK(pthread_rwlock_unlock(lock));
	EXPECT_OK(pthread_rwlock_rdlock(lock));
	child = fork();
	if (!child)
		_exit(pthread_rwlock_trywrlock(lock) == EBUSY ? pthread_rwlock_tryrdlock(lock)
							      : 99);
	EXPECT(exit_status(child) == 0);
	EXPECT_RESULT(pthread_rwlock_trywrlock(lock), EBUSY);
	EXPECT_OK(pthread_rwlock_unlock(lock));
	EXPECT_OK(pthread_rwlock_unlock(lock));
	EXPECT_OK(pthread_rwlock_trywrlock(lock));
	EXPECT_OK(pthread_rwlock_unlock(lock));
	EXPECT_OK(pthread_rwlock_destroy(lock));
}

/* A forked child can use a lock with waiters that do not exist there. glibc leaves them counted. */
static void forked(pthread_rwlock_t *lock, int (*enter)(pthread_rwlock_t *lock))
{
	struct other writer = {.call = wait_and_write, .lock = lock};
	pthread_t thread;
	pid_t child;

	EXPECT_OK(enter(lock));
	thread = start(other_run, &writer);
	sleep_ms(10);
	child = fork();
	if (!child) {
		EXPECT_OK(pthread_rwlock_unlock(lock));
		EXPECT_OK(pthread_rwlock_trywrlock(lock));
		EXPECT_OK(pthread_rwlock_unlock(lock));
		EXPECT_OK(pthread_rwlock_rdlock(lock));
		EXPECT_OK(pthread_rwlock_unlock(lock));
		_exit(0);
	}
	EXPECT(exit_status(child) == 0);
	EXPECT_OK(pthread_rwlock_unlock(lock));
	finish(thread);
	EXPECT_OK(writer.result);
}

/* ---- All rules ---- */

static void use(pthread_rwlock_t *lock, int kind)
{
	expect_free(lock);
	while_read(lock);
	while_written(lock);
	unlocked_elsewhere(lock);
	deadlines(lock);
	if (kind == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP)
		writer_preference(lock);
	else
		recursive_read(lock);
}

static void initialised(int kind)
{
	pthread_rwlock_t lock, copy;

	memset(&lock, 0x5a, sizeof(lock));
	init_kind(&lock, kind, PTHREAD_PROCESS_PRIVATE);
	use(&lock, kind);
	memcpy(&copy, &lock, sizeof(copy));
	use(&copy, kind);
	EXPECT_OK(pthread_rwlock_destroy(&lock));
	init_kind(&lock, kind, PTHREAD_PROCESS_PRIVATE);
	use(&lock, kind);
	EXPECT_OK(pthread_rwlock_destroy(&lock));
	EXPECT_OK(pthread_rwlock_destroy(&copy));
}

int main(void)
{
	use(&plain, PTHREAD_RWLOCK_PREFER_READER_NP);
	use(&nonrecursive, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		initialised(kinds[i]);
		by_many(kinds[i]);
	}
	recursive_read_often();
	recursive_read_of_many();
	shared_by_processes();
	if (is_replaced()) {
		forked(&plain, pthread_rwlock_rdlock);
		forked(&plain, pthread_rwlock_wrlock);
	}
	return 0;
}
