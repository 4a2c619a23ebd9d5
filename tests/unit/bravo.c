/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * bravo.h: readers of one lock have distinct entries, as have the locks of one reader. A new lock
 * in reused memory meets no entry of the old one, and a count of entries never wraps.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "all.h"
#include "unit.h"

#define MANY 256

static struct bravo locks[MANY];
static struct w_visible *entries[MANY];
static pthread_barrier_t all_live;

static void *find_entry(void *entry)
{
	*(struct w_visible **)entry = bravo_entry(&locks[0]);
	(void)pthread_barrier_wait(&all_live);
	return NULL;
}

static uint32_t different(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		bool seen = false;

		for (uint32_t j = 0; j < i; j++)
			seen = seen || entries[j] == entries[i];
		count += !seen;
	}
	return count;
}

/* Entries drawn at random would be 248 distinct ones of 256. */
static void threads_have_their_own(void)
{
	pthread_t threads[MANY];

	EXPECT(!pthread_barrier_init(&all_live, NULL, MANY));
	for (uint32_t i = 0; i < MANY; i++)
		EXPECT(!pthread_create(&threads[i], NULL, find_entry, &entries[i]));
	for (uint32_t i = 0; i < MANY; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	EXPECT(!pthread_barrier_destroy(&all_live));
	EXPECT(different() >= 240, "%u entries of %d threads", different(), MANY);
}

static void locks_have_their_own(void)
{
	for (uint32_t i = 0; i < MANY; i++)
		entries[i] = bravo_entry(&locks[i]);
	EXPECT(different() >= 240, "%u entries of %d locks", different(), MANY);
}

/* ---- Entries that outlive their lock ---- */

static const struct bravo_shfl_rw_policy policy = {.wait = WAIT_PARK};

/*
 * Gives the free, unbiased @lock a reader by its entry, never to be released. All other entries are
 * free.
 */
static void read_by_entry(struct bravo_shfl_rw *lock)
{
	memset(w_visible_readers, 0, sizeof(w_visible_readers));
	EXPECT(bravo_shfl_rw_try_read(lock, false) && bravo_shfl_rw_release_read(lock, policy));
	EXPECT(bravo_shfl_rw_try_read(lock, false));
	EXPECT(!w_load_relaxed(&lock->lock.word), "the reader has no entry");
	EXPECT(!bravo_shfl_rw_try_write(lock), "a writer beside a reader");
}

/* Checks that @lock has no reader and works. */
static void expect_free(struct bravo_shfl_rw *lock)
{
	EXPECT(!bravo_shfl_rw_release_read(lock, policy),
	       "a reader that another lock had is let go");
	EXPECT(bravo_shfl_rw_try_write(lock), "a reader that another lock had keeps a writer out");
	EXPECT(!bravo_shfl_rw_try_read(lock, true), "a reader beside the writer");
	EXPECT(bravo_shfl_rw_release_write(lock, policy));
	/* With the bias. */
	lock->bravo.inhibited_until = 0;
	EXPECT(bravo_shfl_rw_try_read(lock, false) && bravo_shfl_rw_release_read(lock, policy));
	EXPECT(w_load_relaxed(&lock->bravo.state) & BRAVO_BIASED);
	EXPECT(!bravo_shfl_rw_release_read(lock, policy),
	       "a reader that another lock had is let go");
	EXPECT(bravo_shfl_rw_try_write(lock), "a reader that another lock had keeps a writer out");
	EXPECT(bravo_shfl_rw_release_write(lock, policy));
}

/* The memory of a lock that is still read becomes another lock. */
static void memory_used_again(void)
{
	static struct bravo_shfl_rw lock;

	read_by_entry(&lock);
	memset(&lock, 0, sizeof(lock));
	expect_free(&lock);
}

/* A lock copied while it was free has readers of its own. */
static void copied(void)
{
	static struct bravo_shfl_rw lock, copy;

	EXPECT(bravo_shfl_rw_try_read(&lock, false) && bravo_shfl_rw_release_read(&lock, policy));
	copy = lock;
	EXPECT(bravo_shfl_rw_try_read(&lock, false));
	EXPECT(w_load_relaxed(&copy.bravo.state) & BRAVO_BIASED);
	expect_free(&copy);
	EXPECT(bravo_shfl_rw_release_read(&lock, policy));
	expect_free(&lock);
}

/*
 * In a child, the lock that a thread of the parent reads is re-initialised, as atfork handlers do.
 */
static void initialised_in_a_child(void)
{
	static struct bravo_shfl_rw lock;
	int status;
	pid_t child;

	read_by_entry(&lock);
	child = fork();
	if (!child) {
		memset(&lock, 0, sizeof(lock));
		expect_free(&lock);
		_exit(0);
	}
	EXPECT(child > 0 && waitpid(child, &status, 0) == child && !status);
	EXPECT(!bravo_shfl_rw_try_write(&lock), "the parent's reader is lost");
	EXPECT(bravo_shfl_rw_release_read(&lock, policy));
	expect_free(&lock);
}

/* A reader that re-enters more often than its entry can count uses the lock below. */
static void deep(void)
{
	static struct bravo_shfl_rw lock;
	struct w_visible *entry = bravo_entry(&lock.bravo);

	read_by_entry(&lock);
	entry->depth = UINT32_MAX - 1;
	EXPECT(bravo_shfl_rw_try_read(&lock, true) && entry->depth == UINT32_MAX);
	EXPECT(bravo_shfl_rw_try_read(&lock, true) && entry->depth == UINT32_MAX);
	EXPECT(w_load_relaxed(&lock.lock.word) == RW_READER);
	EXPECT(bravo_shfl_rw_release_read(&lock, policy) && entry->depth == UINT32_MAX - 1);
	entry->depth = 0;
	EXPECT(bravo_shfl_rw_release_read(&lock, policy));
	EXPECT(!bravo_shfl_rw_try_write(&lock), "a writer beside a reader");
	EXPECT(bravo_shfl_rw_release_read(&lock, policy));
	expect_free(&lock);
}

int main(void)
{
	RUN(threads_have_their_own);
	RUN(locks_have_their_own);
	RUN(memory_used_again);
	RUN(copied);
	RUN(initialised_in_a_child);
	RUN(deep);
	return 0;
}
