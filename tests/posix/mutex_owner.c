/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The fields of a recursive or error-checking mutex that debuggers and sandboxes read: while it is
 * held, however acquired, __owner is the owner's thread id as glibc knows it, and __nusers is not
 * 0. After a raw clone() that id is the parent's until the child changes it in glibc's struct
 * pthread; Firefox and Chromium find that place by this field.
 */
#include "forks.h"
#include "posix.h"

static const int types[] = {PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
#define EACH_TYPE(type) for (const int *type = types; type < types + 2; type++)

static pid_t tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static void expect_owner(pthread_mutex_t *mutex)
{
	EXPECT(mutex->__data.__owner == tid(), "%d instead of %d", mutex->__data.__owner, tid());
	EXPECT(mutex->__data.__nusers, "no user");
}

static int lock_in_time(pthread_mutex_t *mutex)
{
	struct timespec at = from_now(CLOCK_REALTIME, 3600 * 1000);

	return pthread_mutex_timedlock(mutex, &at);
}

static int (*const ways[])(pthread_mutex_t *mutex) = {pthread_mutex_lock, pthread_mutex_trylock,
						      lock_in_time};

static void alone(int type)
{
	pthread_mutex_t mutex;

	init_mutex(&mutex, type);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		EXPECT_OK(ways[i](&mutex));
		expect_owner(&mutex);
		if (type == PTHREAD_MUTEX_RECURSIVE) {
			EXPECT_OK(ways[i](&mutex));
			expect_owner(&mutex);
			EXPECT_OK(pthread_mutex_unlock(&mutex));
			expect_owner(&mutex);
		}
		EXPECT_OK(pthread_mutex_unlock(&mutex));
		EXPECT(!mutex.__data.__owner, "%d owns a free mutex", mutex.__data.__owner);
	}
	EXPECT_OK(pthread_mutex_destroy(&mutex));
}

/* ---- Contended: the owner replaces the lock's data about waiters, which come back later ---- */

#define MOST_THREADS 8
#define ROUNDS 400

struct contended {
	pthread_mutex_t mutex;
	unsigned long held;
};

static void *contend(void *argument)
{
	struct contended *contended = argument;

	for (unsigned i = 0; i < ROUNDS; i++) {
		EXPECT_OK((i % 2 ? pthread_mutex_lock : lock_in_time)(&contended->mutex));
		expect_owner(&contended->mutex);
		contended->held++;
		sched_yield();
		expect_owner(&contended->mutex);
		EXPECT_OK(pthread_mutex_unlock(&contended->mutex));
		EXPECT_RESULT(pthread_mutex_unlock(&contended->mutex), EPERM);
	}
	return NULL;
}

/* @count threads run @body with one mutex, and each holds it @rounds times. */
static void together(int type, unsigned count, void *(*body)(void *contended), unsigned long rounds)
{
	struct contended contended = {.held = 0};
	pthread_t threads[MOST_THREADS];

	init_mutex(&contended.mutex, type);
	for (size_t i = 0; i < count; i++)
		threads[i] = start(body, &contended);
	for (size_t i = 0; i < count; i++)
		finish(threads[i]);
	EXPECT(contended.held == count * rounds, "%lu", contended.held);
	EXPECT_OK(pthread_mutex_destroy(&contended.mutex));
}

/* ---- The steps of sandboxes in the child of a raw clone() ---- */

static pid_t owner_found(void)
{
	pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	pid_t found;

	EXPECT_OK(pthread_mutex_lock(&mutex));
	found = mutex.__data.__owner;
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	EXPECT_OK(pthread_mutex_destroy(&mutex));
	return found;
}

/* The place of the thread's id, @known, in glibc's data. */
static pid_t *place_of(pid_t known)
{
	pid_t *word = (pid_t *)pthread_self();

	for (size_t i = 0; i < 1024 / sizeof(*word); i++)
		if (word[i] == known)
			return word + i;
	EXPECT(false, "%d is not in struct pthread", known);
	return NULL;
}

static void in_child(pid_t parent)
{
	pid_t found = owner_found();

	EXPECT(found == parent, "%d instead of %d", found, parent);
	*place_of(found) = tid();
	EXPECT(owner_found() == tid(), "%d instead of %d", owner_found(), tid());
}

static void after_clone(void)
{
	pid_t parent = tid(), child = fork_by(FORK_RAW);

	if (!child) {
		in_child(parent);
		_exit(0);
	}
	reap(child);
}

/* ---- Waiters of a forked process, which read the place of the owner as a pointer ---- */

#define FORKED_ROUNDS 5000

static void *lock_often(void *argument)
{
	struct contended *contended = argument;

	for (unsigned i = 0; i < FORKED_ROUNDS; i++) {
		EXPECT_OK(pthread_mutex_lock(&contended->mutex));
		contended->held++;
		EXPECT_OK(pthread_mutex_unlock(&contended->mutex));
	}
	return NULL;
}

static void after_fork(void)
{
	pid_t child = fork();

	if (!child) {
		EACH_TYPE(type)
		together(*type, 4, lock_often, FORKED_ROUNDS);
		_exit(0);
	}
	reap(child);
}

int main(void)
{
	EACH_TYPE(type)
	{
		alone(*type);
		together(*type, MOST_THREADS, contend, ROUNDS);
	}
	after_clone();
	after_fork();
	return 0;
}
