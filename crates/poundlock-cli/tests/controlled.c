/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program whose locks tests/control.rs changes. A thread waits for each mutex once; then it
 * prints "ready" and obeys the letters of its input:
 *
 *   c, t, q  a thread waits for the mutex of this letter. Prints "closed" if it closes the mutex to
 *            newcomers before it sleeps, as with patience=0, else "open"
 *   r, w      a reader or a writer waits for the readers-writer lock `shared`, behind a writer;
 *            prints as c
 *   f        the same for c in a forked child
 *   s        a thread waits for another mutex until a deadline in the past
 *   i        forks a child that uses no mutex, and prints its number
 *   d, n     destroys q, or initialises it again
 *   x        executes the program again
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;
struct {
	long before[5];
	pthread_mutex_t lock;
	pthread_mutex_t second;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .second = PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t *queue;
pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;

__attribute__((noinline)) void queue_init(pthread_mutex_t *mutex)
{
	if (pthread_mutex_init(mutex, NULL))
		abort();
	__asm__ __volatile__("");
}

static void *lock_and_unlock(void *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
	return NULL;
}

/* core/shfl_mutex.h: flags of the state, bytes 20 to 23. */
enum { PARKED = 2, CLOSED = 8 };

static const char *await(pthread_mutex_t *mutex)
{
	pthread_t thread;
	uint32_t state;

	pthread_mutex_lock(mutex);
	if (pthread_create(&thread, NULL, lock_and_unlock, mutex))
		abort();
	while (!((state = __atomic_load_n((uint32_t *)mutex + 5, __ATOMIC_ACQUIRE)) & PARKED))
		sched_yield();
	pthread_mutex_unlock(mutex);
	pthread_join(thread, NULL);
	return state & CLOSED ? "closed" : "open";
}

static void *read_and_unlock(void *lock)
{
	pthread_rwlock_rdlock(lock);
	pthread_rwlock_unlock(lock);
	return NULL;
}

static void *write_and_unlock(void *lock)
{
	pthread_rwlock_wrlock(lock);
	pthread_rwlock_unlock(lock);
	return NULL;
}

/* core/part/rw_word.h: flags of the word, bytes 16 to 19. */
enum { RW_CLOSED = 2, RW_PARKED = 4 };

static const char *await_shared(void *(*waiter)(void *))
{
	pthread_t thread;
	uint32_t word;

	pthread_rwlock_wrlock(&shared);
	if (pthread_create(&thread, NULL, waiter, &shared))
		abort();
	while (!((word = __atomic_load_n((uint32_t *)&shared + 4, __ATOMIC_ACQUIRE)) & RW_PARKED))
		sched_yield();
	pthread_rwlock_unlock(&shared);
	pthread_join(thread, NULL);
	return word & RW_CLOSED ? "closed" : "open";
}

static void *lock_in_past(void *mutex)
{
	struct timespec past = {.tv_sec = 1};

	if (pthread_mutex_timedlock(mutex, &past) != ETIMEDOUT)
		abort();
	return NULL;
}

static void wait_in_past(pthread_mutex_t *mutex)
{
	pthread_t thread;

	pthread_mutex_lock(mutex);
	if (pthread_create(&thread, NULL, lock_in_past, mutex))
		abort();
	pthread_join(thread, NULL);
	pthread_mutex_unlock(mutex);
}

static void obey(int letter, char **arguments)
{
	pid_t parent, child;

	switch (letter) {
	case 'c':
		puts(await(&cache));
		break;
	case 't':
		puts(await(&table.lock));
		break;
	case 'q':
		puts(await(queue));
		break;
	case 'r':
		puts(await_shared(read_and_unlock));
		break;
	case 'w':
		puts(await_shared(write_and_unlock));
		break;
	case 'd':
		puts(pthread_mutex_destroy(queue) ? "busy" : "destroyed");
		break;
	case 'n':
		queue_init(queue);
		puts("initialised");
		break;
	case 's':
		wait_in_past(&table.second);
		puts("waited");
		break;
	case 'f':
		if (!fork()) {
			puts(await(&cache));
			exit(0);
		}
		wait(NULL);
		break;
	case 'i':
		parent = getpid();
		child = fork();
		while (!child && getppid() == parent)
			usleep(1000);
		if (!child)
			_exit(0);
		printf("%d\n", (int)child);
		break;
	case 'x':
		execv("/proc/self/exe", arguments);
	}
}

int main(int argc, char **arguments)
{
	(void)argc;
	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	queue = malloc(sizeof(*queue));
	queue_init(queue);
	await(&cache);
	await(&cache);
	await(&table.lock);
	await(queue);
	printf("ready %p\n", (void *)queue);
	for (int letter; (letter = getchar()) != EOF;)
		obey(letter, arguments);
	return 0;
}
