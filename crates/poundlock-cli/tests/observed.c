/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program whose argument selects a known sequence of lock operations. tests/stats.rs contains the
 * expected numbers.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
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
	else if (!strcmp(what, "named"))
		named();
	else if (!strcmp(what, "live"))
		live();
	else
		return 2;
	return strncmp(what, "forked", 6) ? 0 : 5;
}
