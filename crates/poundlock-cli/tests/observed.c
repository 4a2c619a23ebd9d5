/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program whose argument selects a known sequence of lock operations. tests/stats.rs contains the
 * expected numbers.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t names = PTHREAD_RWLOCK_INITIALIZER;

static void lock_often(pthread_mutex_t *mutex, int times)
{
	for (int i = 0; i < times; i++) {
		pthread_mutex_lock(mutex);
		pthread_mutex_unlock(mutex);
	}
}

static void start(pthread_t *thread, void *(*body)(void *), void *argument)
{
	if (pthread_create(thread, NULL, body, argument))
		abort();
}

/* ---- Counts ---- */

static void *try_in_vain(void *unused)
{
	const struct timespec past = {0};

	for (int i = 0; i < 5; i++)
		if (!pthread_mutex_trylock(&table))
			abort();
	for (int i = 0; i < 3; i++)
		if (!pthread_mutex_timedlock(&table, &past))
			abort();
	return unused;
}

static _Atomic pid_t waiter;

__attribute__((noinline)) static void wait_for_table(void)
{
	pthread_mutex_lock(&table);
	pthread_mutex_unlock(&table);
}

static void *wait_once(void *unused)
{
	atomic_store(&waiter, gettid());
	wait_for_table();
	return unused;
}

/* Whether thread @tid sleeps, according to the kernel. */
static int sleeps(pid_t tid)
{
	char path[64], line[512], *name;
	FILE *file;
	size_t length;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	length = fread(line, 1, sizeof(line) - 1, file);
	line[length] = 0;
	fclose(file);
	name = strrchr(line, ')');
	return name && name[2] == 'S';
}

__attribute__((noinline)) static void hold_until_it_sleeps(pthread_t *thread)
{
	pthread_mutex_lock(&table);
	start(thread, wait_once, NULL);
	while (!atomic_load(&waiter) || !sleeps(atomic_load(&waiter)))
		usleep(1000);
	pthread_mutex_unlock(&table);
}

static void counts(void)
{
	pthread_t thread;

	lock_often(&table, 1000);
	pthread_mutex_lock(&table);
	start(&thread, try_in_vain, NULL);
	pthread_join(thread, NULL);
	pthread_mutex_unlock(&table);
	hold_until_it_sleeps(&thread);
	pthread_join(thread, NULL);
	for (int i = 0; i < 20; i++) {
		pthread_rwlock_rdlock(&names);
		pthread_rwlock_unlock(&names);
	}
	for (int i = 0; i < 7; i++) {
		pthread_rwlock_wrlock(&names);
		pthread_rwlock_unlock(&names);
	}
}

/* ---- The rest ---- */

/* @raw: forks like _Fork(), which calls no fork handlers. */
static void forked(bool raw)
{
	pid_t child;

	lock_often(&table, 20);
	child = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
	if (!child) {
		lock_often(&table, 10);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void killed(void)
{
	lock_often(&table, 50);
	raise(SIGKILL);
}

static void many(void)
{
	size_t count = 100000;
	pthread_mutex_t *mutexes = calloc(count, sizeof(*mutexes));
	pthread_t thread;

	for (size_t i = 0; i < count; i++)
		lock_often(&mutexes[i], 1);
	hold_until_it_sleeps(&thread);
	pthread_join(thread, NULL);
	free(mutexes);
}

static void rarely(void)
{
	for (int i = 0; i < 10; i++) {
		pthread_mutex_lock(&table);
		usleep(2000);
		pthread_mutex_unlock(&table);
	}
}

/* Spin locks, relocking, and the returns from waits on a condition variable. */
pthread_spinlock_t turn;
pthread_mutex_t nested = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void others(void)
{
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	const struct timespec past = {0};

	pthread_spin_init(&turn, PTHREAD_PROCESS_PRIVATE);
	for (int n = 0; n < 6; n++) {
		pthread_spin_lock(&turn);
		if (pthread_spin_trylock(&turn) != EBUSY)
			abort();
		pthread_spin_unlock(&turn);
	}
	for (int n = 0; n < 4; n++) {
		pthread_mutex_lock(&nested);
		lock_often(&nested, 1);
		pthread_mutex_unlock(&nested);
	}
	pthread_mutex_lock(&table);
	for (int n = 0; n < 3; n++)
		if (pthread_cond_timedwait(&cond, &table, &past) != ETIMEDOUT)
			abort();
	pthread_mutex_unlock(&table);
}

/* ---- Many threads ---- */

#define CROWD 4
#define EACH 20000

static unsigned long entered;

static void *enter_often(void *unused)
{
	for (int n = 0; n < EACH; n++) {
		pthread_mutex_lock(&table);
		entered++;
		if (n % 10)
			pthread_rwlock_rdlock(&names);
		else
			pthread_rwlock_wrlock(&names);
		/* Not in the order of a stack. */
		pthread_mutex_unlock(&table);
		pthread_rwlock_unlock(&names);
	}
	return unused;
}

static void crowd(void)
{
	pthread_t threads[CROWD];

	for (int n = 0; n < CROWD; n++)
		start(&threads[n], enter_often, NULL);
	for (int n = 0; n < CROWD; n++)
		pthread_join(threads[n], NULL);
	if (entered != CROWD * EACH)
		abort();
}

/* ---- The mutex after a condition variable ---- */

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
pthread_mutex_t robust;

/* Whether thread @tid sleeps on a futex, and that is within the condition variable. */
static bool sleeps_on(pid_t tid, bool *within)
{
	char path[64], line[512] = "";
	unsigned long number, address;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	file = fopen(path, "r");
	if (!file)
		abort();
	if (!fgets(line, sizeof(line), file))
		line[0] = 0;
	fclose(file);
	*within = false;
	if (sscanf(line, "%lu %lx", &number, &address) != 2 || number != SYS_futex || !sleeps(tid))
		return false;
	*within = address - (uintptr_t)&changed < sizeof(changed);
	return true;
}

static void until_sleeps_on(bool condition)
{
	bool within;

	while (!atomic_load(&waiter) || !sleeps_on(atomic_load(&waiter), &within) ||
	       within != condition)
		usleep(1000);
}

static const struct timespec never = {.tv_sec = INT32_MAX};

static void wait_by(int way, pthread_mutex_t *mutex)
{
	if (way == 0)
		pthread_cond_wait(&changed, mutex);
	else if (way == 1)
		pthread_cond_timedwait(&changed, mutex, &never);
	else
		pthread_cond_clockwait(&changed, mutex, CLOCK_MONOTONIC, &never);
}

struct wait {
	pthread_mutex_t *mutex;
	int way;
	bool over;
};

static void *wait_until_over(void *argument)
{
	struct wait *wait = argument;

	pthread_mutex_lock(wait->mutex);
	atomic_store(&waiter, gettid());
	while (!wait->over)
		wait_by(wait->way, wait->mutex);
	pthread_mutex_unlock(wait->mutex);
	return NULL;
}

/* Each waiter finds its mutex held for 100 ms after it was woken. */
static void signalled(void)
{
	pthread_mutexattr_t attr;
	pthread_t thread;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &attr);
	for (int n = 0; n < 6; n++) {
		struct wait wait = {.mutex = n < 3 ? &table : &robust, .way = n % 3};

		atomic_store(&waiter, 0);
		start(&thread, wait_until_over, &wait);
		until_sleeps_on(true);
		pthread_mutex_lock(wait.mutex);
		wait.over = true;
		pthread_cond_broadcast(&changed);
		until_sleeps_on(false);
		usleep(100000);
		pthread_mutex_unlock(wait.mutex);
		pthread_join(thread, NULL);
	}
}

/* ---- Waiting that is known ---- */

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static _Atomic uint64_t waited, lived;

/* Waits for the table, and then sleeps without it. */
static void *wait_and_sleep(void *unused)
{
	uint64_t began = now();

	atomic_store(&waiter, gettid());
	wait_for_table();
	atomic_fetch_add(&waited, now() - began);
	usleep(150000);
	atomic_fetch_add(&lived, now() - began);
	return unused;
}

/* Prints how long threads waited, and how long they lived. */
static void planted(void)
{
	uint64_t began = now();
	pthread_t thread;

	for (int n = 0; n < 3; n++) {
		atomic_store(&waiter, 0);
		pthread_mutex_lock(&table);
		start(&thread, wait_and_sleep, NULL);
		while (!atomic_load(&waiter) || !sleeps(atomic_load(&waiter)))
			usleep(1000);
		usleep(300000);
		pthread_mutex_unlock(&table);
		pthread_join(thread, NULL);
	}
	printf("%llu %llu\n", (unsigned long long)waited,
	       (unsigned long long)(lived + (now() - began)));
}

/* Plain C names that a demangler for C++ takes for types. */
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, i = PTHREAD_MUTEX_INITIALIZER,
		St = PTHREAD_MUTEX_INITIALIZER;

static void named(void)
{
	lock_often(&m, 3);
	lock_often(&i, 2);
	lock_often(&St, 1);
}

static atomic_bool ending;

static void *go_on(void *unused)
{
	while (!atomic_load(&ending)) {
		lock_often(&table, 10);
		usleep(100);
	}
	return unused;
}

static void live(void)
{
	pthread_t thread;

	lock_often(&table, 1);
	start(&thread, go_on, NULL);
	puts("ready");
	fflush(stdout);
	(void)getchar();
	atomic_store(&ending, 1);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	if (!strcmp(what, "counts"))
		counts();
	else if (!strcmp(what, "forked"))
		forked(false);
	else if (!strcmp(what, "forked_raw"))
		forked(true);
	else if (!strcmp(what, "killed"))
		killed();
	else if (!strcmp(what, "many"))
		many();
	else if (!strcmp(what, "rarely"))
		rarely();
	else if (!strcmp(what, "others"))
		others();
	else if (!strcmp(what, "planted"))
		planted();
	else if (!strcmp(what, "signalled"))
		signalled();
	else if (!strcmp(what, "crowd"))
		crowd();
	else if (!strcmp(what, "named"))
		named();
	else if (!strcmp(what, "live"))
		live();
	else
		return 2;
	return strncmp(what, "forked", 6) ? 0 : 5;
}
