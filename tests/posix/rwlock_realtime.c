/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rwlock_realtime [ours park|yield]: POSIX's order of readers-writer locks for threads of
 * SCHED_FIFO and SCHED_RR. A reader does not acquire the lock while writers of its priority or a
 * higher one are blocked on it, and otherwise does, unless a writer holds it. glibc keeps the first
 * half under PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP only; by default its readers enter. Our
 * locks, which wait in the way given, keep it under each kind, and the second half under the
 * others.
 *
 * Returns 77 where SCHED_FIFO is not permitted.
 */
#include "forks.h"
#include "posix.h"

#define SKIPPED 77
#define READER 10 /* a priority */
#define CROWD 70  /* more blocked writers than the library lists */

static pthread_rwlock_t lock;
static atomic_uint turns;

struct waiter {
	int (*acquire)(pthread_rwlock_t *lock);
	int priority; /* 0: not real-time */
	int policy;   /* 0: SCHED_FIFO */
	atomic_int tid;
	int result;
	atomic_uint turn; /* from 1: when it acquired the lock */
	atomic_bool ended;
	pthread_t thread;
};

static void *wait_for_lock(void *argument)
{
	struct waiter *waiter = argument;

	atomic_store(&waiter->tid, (int)syscall(SYS_gettid));
	waiter->result = waiter->acquire(&lock);
	if (!waiter->result) {
		atomic_store(&waiter->turn, atomic_fetch_add(&turns, 1) + 1);
		EXPECT_OK(pthread_rwlock_unlock(&lock));
	}
	atomic_store(&waiter->ended, true);
	return NULL;
}

static bool is_asleep(int tid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0; /* it has just ended */
	fclose(file);
	return state == 'S';
}

/*
 * Until it has had the lock, or was seen asleep 20 times: no wait sleeps that long before it is
 * queued. Not 20 times in a row: a waiter that yields wakes for a moment again and again, and may
 * keep step with us.
 */
static void until_blocked(struct waiter *waiter)
{
	for (int asleep = 0; asleep < 20 && !atomic_load(&waiter->ended); sleep_ms(1))
		asleep += atomic_load(&waiter->tid) && is_asleep(atomic_load(&waiter->tid));
}

static void start_waiter(struct waiter *waiter)
{
	struct sched_param param = {.sched_priority = waiter->priority};
	int policy = waiter->policy ? waiter->policy : SCHED_FIFO;
	pthread_attr_t attr;

	EXPECT_OK(pthread_attr_init(&attr));
	EXPECT_OK(pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN)));
	EXPECT_OK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED));
	EXPECT_OK(pthread_attr_setschedpolicy(&attr, waiter->priority ? policy : SCHED_OTHER));
	EXPECT_OK(pthread_attr_setschedparam(&attr, &param));
	EXPECT_OK(pthread_create(&waiter->thread, &attr, wait_for_lock, waiter));
	EXPECT_OK(pthread_attr_destroy(&attr));
	until_blocked(waiter);
}

static void init_lock(int kind)
{
	pthread_rwlockattr_t attr;

	EXPECT_OK(pthread_rwlockattr_init(&attr));
	EXPECT_OK(pthread_rwlockattr_setkind_np(&attr, kind));
	EXPECT_OK(pthread_rwlock_init(&lock, &attr));
	EXPECT_OK(pthread_rwlockattr_destroy(&attr));
	atomic_store(&turns, 0);
}

/*
 * A reader arrives while another is inside, and the @count @writers have arrived in this order.
 * Does it acquire the lock before all of them? Each waiter that gets the lock has a turn then.
 */
static bool reader_enters(int kind, struct waiter *writers, size_t count, struct waiter *reader)
{
	bool enters;

	init_lock(kind);
	EXPECT_OK(pthread_rwlock_rdlock(&lock));
	for (size_t i = 0; i < count; i++)
		start_waiter(&writers[i]);
	start_waiter(reader);
	enters = atomic_load(&reader->turn) == 1;
	for (size_t i = 0; i < count; i++)
		EXPECT(!atomic_load(&writers[i].turn), "a writer is inside with a reader");
	EXPECT_OK(pthread_rwlock_unlock(&lock));
	finish(reader->thread);
	for (size_t i = 0; i < count; i++)
		finish(writers[i].thread);
	EXPECT_OK(pthread_rwlock_destroy(&lock));
	return enters;
}

/* ---- Ways to acquire the lock ---- */

#define LONG_MS 1000000

static int timed_read(pthread_rwlock_t *rw)
{
	struct timespec at = from_now(CLOCK_REALTIME, LONG_MS);

	return pthread_rwlock_timedrdlock(rw, &at);
}

static int clocked_read(pthread_rwlock_t *rw)
{
	struct timespec at = from_now(CLOCK_MONOTONIC, LONG_MS);

	return pthread_rwlock_clockrdlock(rw, CLOCK_MONOTONIC, &at);
}

static int timed_write(pthread_rwlock_t *rw)
{
	struct timespec at = from_now(CLOCK_REALTIME, LONG_MS);

	return pthread_rwlock_timedwrlock(rw, &at);
}

static int clocked_write(pthread_rwlock_t *rw)
{
	struct timespec at = from_now(CLOCK_MONOTONIC, LONG_MS);

	return pthread_rwlock_clockwrlock(rw, CLOCK_MONOTONIC, &at);
}

static int write_until_deadline(pthread_rwlock_t *rw)
{
	struct timespec at = from_now(CLOCK_MONOTONIC, 1);
	int result = pthread_rwlock_clockwrlock(rw, CLOCK_MONOTONIC, &at);

	EXPECT_RESULT(result, ETIMEDOUT);
	return result;
}

static int read_after_setschedparam(pthread_rwlock_t *rw)
{
	struct sched_param param = {.sched_priority = READER};

	EXPECT_OK(pthread_setschedparam(pthread_self(), SCHED_RR, &param));
	return pthread_rwlock_rdlock(rw);
}

static int read_after_setscheduler(pthread_rwlock_t *rw)
{
	struct sched_param param = {.sched_priority = READER};

	EXPECT(!sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param), "%d", errno);
	return pthread_rwlock_rdlock(rw);
}

/* The priority changes after the library may have asked for it. */
static int read_after_setschedprio(pthread_rwlock_t *rw)
{
	(void)pthread_rwlock_trywrlock(rw);
	EXPECT_OK(pthread_setschedprio(pthread_self(), READER - 2));
	if (!pthread_rwlock_tryrdlock(rw))
		return 0;
	EXPECT_OK(pthread_setschedprio(pthread_self(), READER));
	return pthread_rwlock_rdlock(rw);
}

static int read_after_setparam(pthread_rwlock_t *rw)
{
	struct sched_param param = {.sched_priority = READER};

	if (!pthread_rwlock_tryrdlock(rw))
		return 0;
	EXPECT(!sched_setparam(0, &param), "%d", errno);
	return pthread_rwlock_rdlock(rw);
}

/* ---- Each case with each kind of lock ---- */

static bool ours;
static int kind;

/* Whether readers of @kind never pass writers, also under glibc. */
static bool prefers_writers(void)
{
	return kind == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}

/* Writers of the priorities @first and @second (0: none) are blocked: the reader waits. */
static void expect_wait(struct waiter reader, int first, int second)
{
	struct waiter writers[] = {{.acquire = pthread_rwlock_wrlock, .priority = first},
				   {.acquire = clocked_write, .priority = second}};
	bool enters = reader_enters(kind, writers, second ? 2 : 1, &reader);

	EXPECT(!enters || !(ours || prefers_writers()),
	       "a reader of priority %d overtook writers of %d and %d", reader.priority, first,
	       second);
	EXPECT(reader.acquire != pthread_rwlock_tryrdlock || enters || reader.result == EBUSY, "%d",
	       reader.result);
}

/* All blocked writers have lower priorities: the reader enters. */
static void expect_entry(struct waiter reader, struct waiter *writers, size_t count)
{
	bool enters = reader_enters(kind, writers, count, &reader);

	EXPECT(enters != prefers_writers(), "a reader %s", enters ? "enters" : "waits");
}

static void read_in_each_way(void)
{
	int (*const reads[])(pthread_rwlock_t *) = {pthread_rwlock_rdlock, pthread_rwlock_tryrdlock,
						    timed_read, clocked_read};
	int (*const writes[])(pthread_rwlock_t *) = {pthread_rwlock_wrlock, timed_write,
						     clocked_write};

	for (size_t i = 0; i < sizeof(reads) / sizeof(*reads); i++) {
		struct waiter reader = {.acquire = reads[i], .priority = READER};
		struct waiter lower = {.acquire = writes[i % 3], .priority = READER - 1};

		expect_wait(reader, READER, 0);
		expect_wait(reader, READER + 1, 0);
		expect_wait(reader, READER - 1, READER + 1);
		expect_wait(reader, READER + 1, READER - 1);
		expect_entry(reader, &lower, 1);
	}
}

static void become_realtime_in_each_way(void)
{
	struct waiter readers[] = {
		{.acquire = pthread_rwlock_rdlock, .priority = READER, .policy = SCHED_RR},
		{.acquire = read_after_setschedparam},
		{.acquire = read_after_setscheduler},
		{.acquire = read_after_setschedprio, .priority = READER},
		{.acquire = read_after_setparam, .priority = READER - 1},
	};

	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++) {
		struct waiter lower = {.acquire = pthread_rwlock_wrlock, .priority = READER - 1};

		expect_wait(readers[i], READER, 0);
		expect_entry(readers[i], &lower, 1);
	}
}

/* A writer that is not real-time, and one that has given up. */
static void meet_other_writers(void)
{
	struct waiter reader = {.acquire = pthread_rwlock_rdlock, .priority = READER};
	struct waiter writers[] = {{.acquire = write_until_deadline, .priority = READER + 1},
				   {.acquire = pthread_rwlock_wrlock}};

	expect_entry(reader, writers, 2);
	reader.priority = 0;
	expect_wait(reader, READER, 0);
	expect_wait(reader, 1, 0);
}

/*
 * More writers than the library lists: the reader finds also those that it does not list. Not with
 * waiters that yield, which as real-time threads leave the test itself too little time.
 */
static void meet_a_crowd(void)
{
	struct waiter reader = {.acquire = pthread_rwlock_rdlock, .priority = READER};
	static struct waiter writers[CROWD];
	bool enters;

	memset(writers, 0, sizeof(writers));
	for (size_t i = 0; i < CROWD; i++) {
		writers[i].acquire = pthread_rwlock_wrlock;
		writers[i].priority = i == CROWD - 1 ? READER + 1 : READER - 1;
	}
	enters = reader_enters(kind, writers, CROWD, &reader);
	EXPECT(!enters || !(ours || prefers_writers()), "a reader overtook the last writer");
	memset(writers, 0, sizeof(*writers));
	writers->acquire = pthread_rwlock_wrlock;
	writers->priority = READER - 1;
	atomic_store(&reader.turn, 0);
	expect_entry((struct waiter){.acquire = pthread_rwlock_rdlock, .priority = READER}, writers,
		     1);
}

/* The parent's blocked writer does not exist in a child, where the reader inside does. */
static void fork_beside_writer(void)
{
	struct waiter higher = {.acquire = pthread_rwlock_wrlock, .priority = READER + 1};
	struct waiter lower = {.acquire = pthread_rwlock_wrlock, .priority = READER - 1};
	struct waiter reader = {.acquire = pthread_rwlock_rdlock, .priority = READER};
	pid_t child;

	init_lock(kind);
	EXPECT_OK(pthread_rwlock_rdlock(&lock));
	start_waiter(&higher);
	child = fork();
	if (!child) {
		start_waiter(&lower);
		start_waiter(&reader);
		EXPECT((atomic_load(&reader.turn) == 1) != prefers_writers(), "reader %u",
		       atomic_load(&reader.turn));
		_exit(0);
	}
	reap(child);
	EXPECT_OK(pthread_rwlock_unlock(&lock));
	finish(higher.thread);
	EXPECT_OK(pthread_rwlock_destroy(&lock));
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

	ours = count > 1 && !strcmp(arguments[1], "ours");
	if (!may_be_fifo()) {
		fprintf(stderr, "skipped: SCHED_FIFO is not permitted\n");
		return SKIPPED;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		kind = kinds[i];
		read_in_each_way();
		become_realtime_in_each_way();
		meet_other_writers();
		if (count < 3 || strcmp(arguments[2], "yield"))
			meet_a_crowd();
		fork_beside_writer();
	}
	return 0;
}
