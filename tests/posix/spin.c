/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Spin locks: exclusion among threads, more than a queue has places for, and among processes,
 * whatever the attribute is; trylock; unlocked by another thread, unmapped at once, copied, re-
 * initialised; in a forked child; and memory that was set to glibc's value of a free lock without
 * initialisation.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "posix.h"

struct shared {
	pthread_spinlock_t lock;
	unsigned long count;
	atomic_uint inside;
};

static void increment(struct shared *shared, unsigned rounds, unsigned yields)
{
	for (unsigned i = 0; i < rounds; i++) {
		if (i % 7)
			EXPECT_OK(pthread_spin_lock(&shared->lock));
		else
			while (pthread_spin_trylock(&shared->lock))
				sched_yield();
		EXPECT(!atomic_fetch_add(&shared->inside, 1), "two inside");
		shared->count++;
		if (i < yields)
			sched_yield(); /* so that others wait meanwhile */
		atomic_fetch_sub(&shared->inside, 1);
		EXPECT_OK(pthread_spin_unlock(&shared->lock));
	}
}

/* ---- In another thread ---- */

struct other {
	int (*call)(pthread_spinlock_t *lock);
	pthread_spinlock_t *lock;
	int result;
};

static void *other_run(void *argument)
{
	struct other *other = argument;

	other->result = other->call(other->lock);
	return NULL;
}

static int in_other(int (*call)(pthread_spinlock_t *lock), pthread_spinlock_t *lock)
{
	struct other other = {.call = call, .lock = lock, .result = -1};

	finish(start(other_run, &other));
	return other.result;
}

static int lock_and_unlock(pthread_spinlock_t *lock)
{
	EXPECT_OK(pthread_spin_lock(lock));
	return pthread_spin_unlock(lock);
}

/* ---- All rules on one lock ---- */

static void use(pthread_spinlock_t *lock)
{
	EXPECT_OK(in_other(lock_and_unlock, lock));
	EXPECT_OK(pthread_spin_lock(lock));
	EXPECT_RESULT(pthread_spin_trylock(lock), EBUSY);
	EXPECT_RESULT(in_other(pthread_spin_trylock, lock), EBUSY);
	EXPECT_OK(in_other(pthread_spin_unlock, lock));
	EXPECT_OK(in_other(pthread_spin_trylock, lock));
	EXPECT_RESULT(pthread_spin_trylock(lock), EBUSY);
	EXPECT_OK(pthread_spin_unlock(lock));
	EXPECT_OK(in_other(lock_and_unlock, lock));
}

static void initialised(int pshared)
{
	struct {
		pthread_spinlock_t before, lock, after;
	} one;
	pthread_spinlock_t copy;

	memset(&one, 0x5a, sizeof(one));
	EXPECT_OK(pthread_spin_init(&one.lock, pshared));
	use(&one.lock);
	memcpy((void *)&copy, (void *)&one.lock, sizeof(copy));
	use(&copy);
	EXPECT_OK(pthread_spin_lock(&one.lock));
	EXPECT_OK(pthread_spin_init(&one.lock, pshared));
	use(&one.lock);
	EXPECT_OK(pthread_spin_destroy(&one.lock));
	EXPECT_OK(pthread_spin_destroy(&copy));
	EXPECT(one.before == 0x5a5a5a5a && one.after == 0x5a5a5a5a, "wrote beside the lock");
}

#ifdef __x86_64__
#define FREE 1
#else
#define FREE 0
#endif
static pthread_spinlock_t never_initialised = FREE;

/* ---- Threads ---- */

static struct shared many;

static void *increments(void *argument)
{
	increment(&many, (unsigned)(uintptr_t)argument, 1);
	return NULL;
}

static void threads(size_t count, unsigned rounds)
{
	pthread_t *started = calloc(count, sizeof(*started));

	EXPECT_OK(pthread_spin_init(&many.lock, PTHREAD_PROCESS_PRIVATE));
	many.count = 0;
	/* All but one wait at first. */
	EXPECT_OK(pthread_spin_lock(&many.lock));
	for (size_t i = 0; i < count; i++)
		started[i] = start(increments, (void *)(uintptr_t)rounds);
	sleep_ms(2);
	EXPECT_OK(pthread_spin_unlock(&many.lock));
	for (size_t i = 0; i < count; i++)
		finish(started[i]);
	EXPECT(many.count == count * rounds, "%lu", many.count);
	EXPECT_OK(pthread_spin_trylock(&many.lock));
	EXPECT_OK(pthread_spin_unlock(&many.lock));
	EXPECT_OK(pthread_spin_destroy(&many.lock));
	free(started);
}

/* The second of two holders unmaps the object. */
struct dropped {
	pthread_spinlock_t lock;
	unsigned users;
};

static void *drop(void *argument)
{
	struct dropped *dropped = argument;
	bool last;

	EXPECT_OK(pthread_spin_lock(&dropped->lock));
	last = !--dropped->users;
	EXPECT_OK(pthread_spin_unlock(&dropped->lock));
	if (last)
		EXPECT(!munmap(dropped, sizeof(*dropped)));
	return NULL;
}

static void unmap_after_unlock(void)
{
	for (unsigned round = 0; round < 300; round++) {
		struct dropped *dropped = mmap(NULL, sizeof(*dropped), PROT_READ | PROT_WRITE,
					       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pthread_t both[2];

		EXPECT(dropped != MAP_FAILED);
		dropped->users = 2;
		EXPECT_OK(pthread_spin_init(&dropped->lock, PTHREAD_PROCESS_PRIVATE));
		for (size_t i = 0; i < 2; i++)
			both[i] = start(drop, dropped);
		for (size_t i = 0; i < 2; i++)
			finish(both[i]);
	}
}

/* ---- Processes ---- */

static void expect_ends_well(pid_t child)
{
	int status;

	EXPECT(child > 0, "fork");
	EXPECT(waitpid(child, &status, 0) == child && !status, "the child ended with %x", status);
}

#define PROCESSES 3
#define EACH 2000

static struct shared *between;

static void *increments_between(void *argument)
{
	increment(between, EACH, 3);
	return argument;
}

/*
 * Two threads of each process. A lock initialised as process-private works between processes, as
 * glibc's does.
 */
static void processes(int pshared)
{
	pid_t children[PROCESSES];

	between = mmap(NULL, sizeof(*between), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	EXPECT(between != MAP_FAILED);
	EXPECT_OK(pthread_spin_init(&between->lock, pshared));
	for (size_t i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		if (!children[i]) {
			pthread_t thread = start(increments_between, NULL);

			increment(between, EACH, 3);
			finish(thread);
			_exit(0);
		}
	}
	increment(between, EACH, 3);
	for (size_t i = 0; i < PROCESSES; i++)
		expect_ends_well(children[i]);
	EXPECT(between->count == (2 * PROCESSES + 1) * EACH, "%lu", between->count);
	EXPECT_OK(pthread_spin_trylock(&between->lock));
	EXPECT_OK(pthread_spin_destroy(&between->lock));
	EXPECT(!munmap(between, sizeof(*between)));
}

/* The forking thread holds a lock that others wait for: the child unlocks it and continues. */
static void fork_holding(void)
{
	pthread_t waiters[3];
	pid_t child;

	EXPECT_OK(pthread_spin_init(&many.lock, PTHREAD_PROCESS_PRIVATE));
	many.count = 0;
	EXPECT_OK(pthread_spin_lock(&many.lock));
	for (size_t i = 0; i < 3; i++)
		waiters[i] = start(increments, (void *)100);
	sleep_ms(5);
	child = fork();
	if (!child) {
		EXPECT_RESULT(pthread_spin_trylock(&many.lock), EBUSY);
		EXPECT_OK(pthread_spin_unlock(&many.lock));
		EXPECT_OK(pthread_spin_trylock(&many.lock));
		EXPECT_OK(pthread_spin_unlock(&many.lock));
		for (size_t i = 0; i < 3; i++)
			waiters[i] = start(increments, (void *)100);
		for (size_t i = 0; i < 3; i++)
			finish(waiters[i]);
		EXPECT(many.count == 300, "%lu", many.count);
		_exit(0);
	}
	expect_ends_well(child);
	EXPECT_OK(pthread_spin_unlock(&many.lock));
	for (size_t i = 0; i < 3; i++)
		finish(waiters[i]);
	EXPECT(many.count == 300, "%lu", many.count);
}

/* Not natively: checks the word of a lock that was initialised as process-private. */
static void is_the_librarys(void)
{
	const char *kind = getenv("POUNDLOCK_SPINLOCK");
	bool expected = is_replaced() && !(kind && !strcmp(kind, "native"));
	pthread_spinlock_t own, other;

	EXPECT_OK(pthread_spin_init(&own, PTHREAD_PROCESS_PRIVATE));
	EXPECT_OK(pthread_spin_init(&other, PTHREAD_PROCESS_SHARED));
	EXPECT(other == FREE, "%x", (unsigned)other);
	EXPECT((own != FREE) == expected, "%x", (unsigned)own);
}

int main(void)
{
	is_the_librarys();
	initialised(PTHREAD_PROCESS_PRIVATE);
	initialised(PTHREAD_PROCESS_SHARED);
	use(&never_initialised);
	threads(6, 3000);
	threads(90, 20);
	unmap_after_unlock();
	processes(PTHREAD_PROCESS_SHARED);
	processes(PTHREAD_PROCESS_PRIVATE);
	fork_holding();
	return 0;
}
