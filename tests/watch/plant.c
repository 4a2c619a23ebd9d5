/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Plants a hot lock in an unmodified program, and measures how long its threads wait for it.
 *
 * Preloaded. With PLANT=mutex, the first mutex that threads have acquired often is held for 2 ms
 * longer from then on; mutexes of condition variables are none of them. With PLANT=cond, it is the
 * mutex of the first condition variable that a thread waits for. With PLANT=wal, each write at a
 * position takes 2 ms longer, and waits for semaphores are measured: PostgreSQL holds its lock of
 * the log meanwhile.
 *
 * Each process writes its figures to PLANT_FOLDER/PID, for the test to read while it runs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MUTEXES = 1 << 14, PROBES = 8, OFTEN = 500 };
enum { HOLD_NS = 2000000 };

/* Read by tests/watch/run.py. */
struct figures {
	_Atomic(uint64_t) mutex;
	_Atomic(uint64_t) waited_ns;
};

struct seen {
	_Atomic(uintptr_t) mutex;
	_Atomic(uintptr_t) last_thread;
	atomic_uint hand_overs;
	atomic_bool has_condition;
};

static enum { NOTHING, MUTEX, CONDITION, WAL } plant;
static struct seen table[MUTEXES];
static struct figures none, *_Atomic figures = &none;
static _Atomic(pthread_mutex_t *) planted;

/*
 * Of the planted mutex's condition variable, which is signalled under the mutex: the times of
 * signals that no waiter has returned from. A waiter waits for the mutex from its signal on.
 */
enum { SIGNALS = 256 };
static pthread_cond_t *condition_of_planted;
static uint64_t signals[SIGNALS];
static unsigned int signalled, returned, sleepers;

static int (*next_lock)(pthread_mutex_t *);
static int (*next_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*next_signal)(pthread_cond_t *);
static int (*next_sem_wait)(sem_t *);
static ssize_t (*next_pwrite)(int, const void *, size_t, off_t);

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void hold(void)
{
	nanosleep(&(struct timespec){.tv_nsec = HOLD_NS}, NULL);
}

static void find_next(void)
{
	next_lock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
	next_wait =
		(int (*)(pthread_cond_t *, pthread_mutex_t *))dlvsym(RTLD_NEXT, "pthread_cond_wait",
								     "GLIBC_2.3.2");
	next_signal =
		(int (*)(pthread_cond_t *))dlvsym(RTLD_NEXT, "pthread_cond_signal", "GLIBC_2.3.2");
	next_sem_wait = (int (*)(sem_t *))dlsym(RTLD_NEXT, "sem_wait");
	next_pwrite = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
}

/* Maps the file of this process's figures: in a child, its own. */
static void map_figures(void)
{
	const char *folder = getenv("PLANT_FOLDER");
	char path[256];

	if (!folder)
		return;
	snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
	int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (file < 0 || ftruncate(file, sizeof(struct figures)))
		abort();
	void *page =
		mmap(NULL, sizeof(struct figures), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (page == MAP_FAILED)
		abort();
	atomic_store(&figures, page);
}

__attribute__((constructor)) static void begin(void)
{
	const char *what = getenv("PLANT");

	find_next();
	if (!what)
		return;
	map_figures();
	pthread_atfork(NULL, NULL, map_figures);
	plant = !strcmp(what, "wal") ? WAL : !strcmp(what, "cond") ? CONDITION : MUTEX;
}

/* The entry of @mutex, which is made if there is room. */
static struct seen *seen(pthread_mutex_t *mutex)
{
	uintptr_t key = (uintptr_t)mutex;
	size_t start = (key >> 3) * 0x9e3779b97f4a7c15ull >> 50;

	for (size_t i = 0; i < PROBES; i++) {
		struct seen *entry = &table[(start + i) % MUTEXES];
		uintptr_t other = 0;
		if (atomic_compare_exchange_strong(&entry->mutex, &other, key) || other == key)
			return entry;
	}
	return NULL;
}

static void plant_at(pthread_mutex_t *mutex)
{
	pthread_mutex_t *nothing = NULL;

	if (atomic_compare_exchange_strong(&planted, &nothing, mutex))
		atomic_store(&figures->mutex, (uintptr_t)mutex);
}

/* Counts an acquisition. The first mutex that often passes between threads is planted. */
static void count(pthread_mutex_t *mutex)
{
	struct seen *entry = seen(mutex);
	uintptr_t thread = (uintptr_t)pthread_self();

	if (!entry || atomic_exchange(&entry->last_thread, thread) == thread)
		return;
	if (atomic_fetch_add(&entry->hand_overs, 1) >= OFTEN && !entry->has_condition)
		plant_at(mutex);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (!next_lock)
		find_next();
	if (plant != MUTEX && plant != CONDITION)
		return next_lock(mutex);
	if (mutex != atomic_load_explicit(&planted, memory_order_relaxed)) {
		int error = next_lock(mutex);
		if (plant == MUTEX && !atomic_load_explicit(&planted, memory_order_relaxed))
			count(mutex);
		return error;
	}
	uint64_t start = now();
	int error = next_lock(mutex);
	atomic_fetch_add(&figures->waited_ns, now() - start);
	hold();
	return error;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	struct seen *entry = plant == MUTEX ? seen(mutex) : NULL;

	if (entry)
		atomic_store(&entry->has_condition, true);
	if (plant == CONDITION)
		plant_at(mutex);
	if (plant != CONDITION || mutex != planted)
		return next_wait(condition, mutex);
	condition_of_planted = condition;
	sleepers++;
	int error = next_wait(condition, mutex);
	sleepers--;
	if (returned != signalled)
		atomic_fetch_add(&figures->waited_ns, now() - signals[returned++ % SIGNALS]);
	return error;
}

int pthread_cond_signal(pthread_cond_t *condition)
{
	if (!next_signal)
		find_next();
	if (plant == CONDITION && condition == condition_of_planted &&
	    signalled - returned < sleepers)
		signals[signalled++ % SIGNALS] = now();
	return next_signal(condition);
}

int sem_wait(sem_t *semaphore)
{
	if (plant != WAL)
		return next_sem_wait(semaphore);
	uint64_t start = now();
	int error = next_sem_wait(semaphore);
	atomic_fetch_add(&figures->waited_ns, now() - start);
	return error;
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t at)
{
	if (plant == WAL)
		hold();
	return next_pwrite(file, bytes, size, at);
}
