/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * POSIX's order of readers-writer locks for threads of SCHED_FIFO: a reader does not acquire the
 * lock while writers of its priority or a higher one are blocked on it. glibc keeps that under
 * PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP only; by default its readers enter. Our locks keep
 * it under each kind ("ours" is the argument then).
 *
 * Returns 77 where SCHED_FIFO is not permitted.
 */
#include "posix.h"

#define SKIPPED 77
#define READER 10 /* a priority */

static pthread_rwlock_t lock;
static atomic_uint turns;

struct waiter {
	int (*acquire)(pthread_rwlock_t *lock);
	int priority;
	atomic_int tid;
	unsigned turn; /* from 1: when it acquired the lock */
	atomic_bool has;
};

static void *wait_for_lock(void *argument)
{
	struct waiter *waiter = argument;

	atomic_store(&waiter->tid, (int)syscall(SYS_gettid));
	EXPECT_OK(waiter->acquire(&lock));
	waiter->turn = atomic_fetch_add(&turns, 1) + 1;
	atomic_store(&waiter->has, true);
	EXPECT_OK(pthread_rwlock_unlock(&lock));
	return NULL;
}

static bool is_asleep(int tid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	if (file) {
		EXPECT(fscanf(file, "%*d (%*[^)]) %c", &state) == 1, "%s", path);
		fclose(file);
	}
	return state == 'S';
}

/* Until it has the lock, or sleeps for 20 ms: no wait sleeps that long before it is queued. */
static void until_blocked(struct waiter *waiter)
{
	for (int asleep = 0; asleep < 20 && !atomic_load(&waiter->has); sleep_ms(1))
		asleep = atomic_load(&waiter->tid) && is_asleep(atomic_load(&waiter->tid))
				 ? asleep + 1
				 : 0;
}

static pthread_t start_fifo(struct waiter *waiter)
{
	struct sched_param param = {.sched_priority = waiter->priority};
	pthread_attr_t attr;
	pthread_t thread;

	EXPECT_OK(pthread_attr_init(&attr));
	EXPECT_OK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED));
	EXPECT_OK(pthread_attr_setschedpolicy(&attr, SCHED_FIFO));
	EXPECT_OK(pthread_attr_setschedparam(&attr, &param));
	EXPECT_OK(pthread_create(&thread, &attr, wait_for_lock, waiter));
	EXPECT_OK(pthread_attr_destroy(&attr));
	return thread;
}

/* A reader arrives while another is inside and a writer waits. Is the writer first? */
static bool writer_is_first(int kind, int writers_priority)
{
	struct waiter writer = {.acquire = pthread_rwlock_wrlock, .priority = writers_priority};
	struct waiter reader = {.acquire = pthread_rwlock_rdlock, .priority = READER};
	pthread_rwlockattr_t attr;
	pthread_t threads[2];

	EXPECT_OK(pthread_rwlockattr_init(&attr));
	EXPECT_OK(pthread_rwlockattr_setkind_np(&attr, kind));
	EXPECT_OK(pthread_rwlock_init(&lock, &attr));
	EXPECT_OK(pthread_rwlockattr_destroy(&attr));
	atomic_store(&turns, 0);
	EXPECT_OK(pthread_rwlock_rdlock(&lock));
	threads[0] = start_fifo(&writer);
	until_blocked(&writer);
	threads[1] = start_fifo(&reader);
	until_blocked(&reader);
	EXPECT(!writer.turn, "a writer is inside with a reader");
	EXPECT_OK(pthread_rwlock_unlock(&lock));
	for (size_t i = 0; i < 2; i++)
		finish(threads[i]);
	EXPECT_OK(pthread_rwlock_destroy(&lock));
	EXPECT(writer.turn + reader.turn == 3, "%u and %u", writer.turn, reader.turn);
	return writer.turn == 1;
}

static bool may_be_fifo(void)
{
	struct sched_param param = {.sched_priority = READER + 1}, before;
	int policy;

	EXPECT_OK(pthread_getschedparam(pthread_self(), &policy, &before));
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		return false;
	EXPECT_OK(pthread_setschedparam(pthread_self(), policy, &before));
	return true;
}

int main(int count, char **arguments)
{
	static const int kinds[] = {PTHREAD_RWLOCK_PREFER_READER_NP,
				    PTHREAD_RWLOCK_PREFER_WRITER_NP,
				    PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
	bool ours = count > 1 && !strcmp(arguments[1], "ours"), first;

	if (!may_be_fifo()) {
		fprintf(stderr, "skipped: SCHED_FIFO is not permitted\n");
		return SKIPPED;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		for (int priority = READER; priority <= READER + 1; priority++) {
			first = writer_is_first(kinds[i], priority);
			printf("kind %d, a writer of priority %d, a reader of %d: the %s is "
			       "first\n",
			       kinds[i], priority, READER, first ? "writer" : "reader");
			EXPECT(first || !(ours ||
					  kinds[i] == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP),
			       "a reader overtook a writer of priority %d", priority);
		}
	return 0;
}
