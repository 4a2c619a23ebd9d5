/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program that tests/tune.rs tunes. It can see by which settings a thread waits for its lock:
 * with patience=0 a waiter closes the lock to newcomers before it sleeps. One thread holds the lock
 * until the other one sleeps.
 *
 *   score        prints "score: 130" if the mutex was closed, else "score: 100"; under native locks
 *                the number in $NATIVE_SCORE, or 100; if a rule gave it another algorithm, the
 *                number in $OTHER_SCORE, or 100
 *   heap         the same of a mutex that the function queue_init initialised
 *   readers      the same of a readers-writer lock, for which a reader waits
 *   same         prints "score: 100"
 *   idle         acquires the mutex once, and nobody waits
 *   serve        prints "ready", and goes on until it is killed. Both threads acquire the mutex 40
 *                times more after each wait in which it was closed
 *   serve_readers  the same of the readers-writer lock
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HOLD_US = 3000, MORE = 40 };
/* core/shfl_mutex.h: a flag of bytes 20 to 23; core/part/rw_word.h: a flag of bytes 16 to 19. */
enum { CLOSED = 8, RW_CLOSED = 2 };
/* preload/layout.h: a flag of the mutex's kind, bytes 16 to 19. */
enum { RULED = 0x8000 };

pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t *mutex = &cache;
static bool readers; /* of the two locks, the table is used */
static sem_t begin, end;
static int more;   /* written while the other thread waits */
static int waiter; /* its thread ID, once it is about to wait */

__attribute__((noinline)) void queue_init(pthread_mutex_t *made)
{
	if (pthread_mutex_init(made, NULL))
		abort();
	__asm__ __volatile__("");
}

static void take(void)
{
	(void)(readers ? pthread_rwlock_wrlock(&table) : pthread_mutex_lock(mutex));
}

static void leave(void)
{
	(void)(readers ? pthread_rwlock_unlock(&table) : pthread_mutex_unlock(mutex));
}

static void acquire(int times)
{
	for (int i = 0; i < times; i++) {
		take();
		leave();
	}
}

static void *help(void *unused)
{
	(void)unused;
	for (;;) {
		sem_wait(&begin);
		__atomic_store_n(&waiter, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
		(void)(readers ? pthread_rwlock_rdlock(&table) : pthread_mutex_lock(mutex));
		leave();
		acquire(more);
		sem_post(&end);
	}
	return NULL;
}

/* Whether the waiter sleeps, whatever algorithm the lock has. */
static bool sleeps(void)
{
	int id = __atomic_load_n(&waiter, __ATOMIC_ACQUIRE), file;
	char path[64], text[128] = "";
	const char *name_end;

	if (!id)
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", id);
	file = open(path, O_RDONLY);
	if (file < 0 || read(file, text, sizeof(text) - 1) < 0)
		abort();
	close(file);
	name_end = strrchr(text, ')');
	return name_end && name_end[2] == 'S';
}

static uint32_t word(const void *lock, int index)
{
	return __atomic_load_n((const uint32_t *)lock + index, __ATOMIC_ACQUIRE);
}

static bool is_other(void)
{
	return !readers && word(mutex, 4) & RULED;
}

static bool is_closed(void)
{
	if (readers)
		return word(&table, 4) & RW_CLOSED;
	return !is_other() && word(mutex, 5) & CLOSED;
}

/* Lets the other thread wait once. Returns whether it closed the lock. */
static bool wait_once(bool native)
{
	bool closed;

	take();
	__atomic_store_n(&waiter, 0, __ATOMIC_RELAXED);
	sem_post(&begin);
	while (!native && !sleeps())
		usleep(100);
	usleep(HOLD_US);
	closed = !native && is_closed();
	more = closed ? MORE : 0;
	leave();
	sem_wait(&end);
	return closed;
}

static int number_in(const char *variable)
{
	const char *text = getenv(variable);

	return text ? atoi(text) : 100;
}

static int score(bool native)
{
	if (wait_once(native))
		return 130;
	if (native)
		return number_in("NATIVE_SCORE");
	return is_other() ? number_in("OTHER_SCORE") : 100;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "score";
	bool native = !getenv("POUNDLOCK_LOCK") || !strcmp(getenv("POUNDLOCK_LOCK"), "native");
	pthread_t helper;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(mode, "idle")) {
		acquire(1);
		return 0;
	}
	if (!strcmp(mode, "heap")) {
		mutex = malloc(sizeof(*mutex));
		queue_init(mutex);
	}
	readers = !strcmp(mode, "readers") || !strcmp(mode, "serve_readers");
	sem_init(&begin, 0, 0);
	sem_init(&end, 0, 0);
	if (pthread_create(&helper, NULL, help, NULL))
		return 1;
	if (!strncmp(mode, "serve", strlen("serve"))) {
		puts("ready");
		for (;;) {
			wait_once(native);
			acquire(more);
		}
	}
	printf("score: %d\n", !strcmp(mode, "same") ? 100 + 0 * score(native) : score(native));
	return 0;
}
