/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * neighbour [SECONDS]: three tenants serve requests, and a noisy neighbour takes their mutex again
 * and again. Knows nothing about Poundlock: docs/scenario.md finds its lock and tunes it. Prints a
 * line per second, and at the end the mean; SECONDS is 3 by default, and 0 for no end.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TENANTS = 3 };
static const double request = 100e-6, pause_between = 1e-3, noise = 2e-3; /* seconds */

pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t served[TENANTS], taken;
static atomic_bool ended;

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void pause_for(double seconds)
{
	nanosleep(&(struct timespec){(time_t)seconds, (long)(1e9 * (seconds - (time_t)seconds))},
		  NULL);
}

/* Uses the cache for that time, in which it waits for a disk. */
static void use_cache(double seconds)
{
	pthread_mutex_lock(&cache);
	pause_for(seconds);
	pthread_mutex_unlock(&cache);
}

static void *tenant(void *number)
{
	while (!ended) {
		use_cache(request);
		served[(uintptr_t)number]++;
		pause_for(pause_between);
	}
	return NULL;
}

static void *neighbour(void *unused)
{
	(void)unused;
	while (!ended) {
		use_cache(noise);
		taken++;
	}
	return NULL;
}

/* Prints the rates since @before, a time at which the counts were @counts, and updates both. */
static void report(double *before, uint64_t counts[TENANTS + 1])
{
	double at = now(), slowest = 1e300, rate;

	for (uintptr_t i = 0; i <= TENANTS; i++) {
		uint64_t count = i < TENANTS ? served[i] : taken;

		rate = (double)(count - counts[i]) / (at - *before);
		counts[i] = count;
		if (i < TENANTS && rate < slowest)
			slowest = rate;
	}
	printf("slowest tenant: %.1f requests/s, neighbour: %.1f holds/s\n", slowest, rate);
	fflush(stdout);
	*before = at;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 3, start = now(), last = start;
	uint64_t zero[TENANTS + 1] = {0}, counts[TENANTS + 1] = {0};
	pthread_t threads[TENANTS + 1];

	for (uintptr_t i = 0; i <= TENANTS; i++)
		if (pthread_create(&threads[i], NULL, i < TENANTS ? tenant : neighbour, (void *)i))
			return 1;
	for (double left; (left = seconds ? start + seconds - now() : 1) > 0;) {
		pause_for(left < 1 ? left : 1);
		if (left >= 1)
			report(&last, counts);
	}
	ended = true;
	for (int i = 0; i <= TENANTS; i++)
		pthread_join(threads[i], NULL);
	report(&start, zero);
	return 0;
}
