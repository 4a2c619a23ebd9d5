/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A cgroup with a fifth of a CPU, as containers have: waiters do not use up the holder's quota.
 * While a holder sleeps, the group is never throttled; while holders work, nearly all of the
 * group's CPU time is their work. Measured by the kernel's counts of throttled periods and of CPU
 * time.
 *
 * Skipped, with a line that gives the reason, if such a group cannot be made: without root, or
 * without the controller.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "waiters.h"

#define SKIPPED 77
#define THREADS 8
#define HELD_MS 1000
#define WORK_US 2000 /* of CPU time in a critical section */
#define ROUNDS 10

static char group[128];

/* ---- The group ---- */

static const struct version {
	const char *root, *limit, *text;
} versions[] = {
	/*
	 * The hierarchy's root, the quota file and its contents; version 1's period is 100 ms by
	 * default.
	 */
	{"/sys/fs/cgroup", "cpu.max", "20000 100000"},
	{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000"},
};

static void in_group(char *path, size_t size, const char *file)
{
	EXPECT((size_t)snprintf(path, size, "%s/%s", group, file) < size, "%s/%s", group, file);
}

static bool write_in_group(const char *file, const char *text)
{
	char path[192];
	bool done;
	int fd;

	in_group(path, sizeof(path), file);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return false;
	done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return done;
}

static bool make_group(void)
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		snprintf(group, sizeof(group), "%s/poundlock-quota-%ld", versions[i].root,
			 (long)getpid());
		if (mkdir(group, 0700))
			continue;
		if (write_in_group(versions[i].limit, versions[i].text))
			return true;
		rmdir(group);
	}
	return false;
}

/* The number of periods in which the group was throttled. */
static long throttled(void)
{
	char path[192], name[64];
	long value, found = -1;
	FILE *file;

	in_group(path, sizeof(path), "cpu.stat");
	file = fopen(path, "r");
	EXPECT(file, "%s", path);
	while (fscanf(file, "%63s %ld", name, &value) == 2)
		if (!strcmp(name, "nr_throttled"))
			found = value;
	fclose(file);
	EXPECT(found >= 0, "%s does not tell nr_throttled", path);
	return found;
}

/* ---- CPU time ---- */

static long used_us(void)
{
	struct rusage usage;

	EXPECT(!getrusage(RUSAGE_SELF, &usage), "getrusage");
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
	       usage.ru_stime.tv_usec;
}

static long thread_us(void)
{
	struct timespec used;

	EXPECT(!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), "clock_gettime");
	return used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

/* ---- A sleeping holder ---- */

/* Starts threads that @wait for a lock that the caller holds. */
static void expect_quota_left(void *(*wait)(void *), const char *what, pthread_t *threads)
{
	long before;

	for (size_t i = 0; i < THREADS; i++)
		threads[i] = start(wait, i % 2 ? threads : NULL);
	sleep_ms(HELD_MS / 2); /* starting threads takes CPU time too */
	before = throttled();
	sleep_ms(HELD_MS);
	EXPECT(throttled() == before, "waiters for a %s used the quota up in %ld periods", what,
	       throttled() - before);
}

static void finish_all(pthread_t *threads)
{
	for (size_t i = 0; i < THREADS; i++)
		finish(threads[i]);
}

static void sleep_as_holder(void)
{
	pthread_t threads[THREADS];

	EXPECT_OK(pthread_mutex_lock(&mutex));
	expect_quota_left(lock_mutex, "mutex", threads);
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	finish_all(threads);
	EXPECT_OK(pthread_rwlock_wrlock(&rwlock));
	expect_quota_left(read_or_write, "readers-writer lock", threads);
	EXPECT_OK(pthread_rwlock_unlock(&rwlock));
	finish_all(threads);
}

/* ---- Working holders ---- */

static void *work(void *argument)
{
	for (int i = 0; i < ROUNDS; i++) {
		long from;

		EXPECT_OK(pthread_mutex_lock(&mutex));
		for (from = thread_us(); thread_us() - from < WORK_US;)
			;
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	}
	return argument;
}

static void work_as_holders(void)
{
	long before = used_us(), used, due = THREADS * ROUNDS * WORK_US;
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		threads[i] = start(work, NULL);
	finish_all(threads);
	used = used_us() - before;
	EXPECT(used < due + due / 2, "%ld us of CPU time were used for %ld us of work", used, due);
}

/* The group cannot be removed while its process lives. */
int main(void)
{
	pid_t child;
	int status;

	if (!make_group()) {
		printf("skipped: no group with a quota can be made here\n");
		return SKIPPED;
	}
	child = fork();
	if (!child) {
		EXPECT(write_in_group("cgroup.procs", "0"), "could not enter %s", group);
		sleep_as_holder();
		work_as_holders();
		return 0;
	}
	EXPECT(child > 0 && waitpid(child, &status, 0) == child, "fork");
	EXPECT(!rmdir(group), "could not remove %s", group);
	EXPECT(!status, "ended with %x", status);
	return 0;
}
