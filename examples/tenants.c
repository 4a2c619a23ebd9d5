/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* tenants: two tenants share the time of a cfl_mutex by weight: about 75 % and 25 % if alone. */
#define _GNU_SOURCE
#include <poundlock.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define TENANTS 2
#define THREADS 2 /* per tenant */
#define SECONDS 0.5

static const uint32_t weights[TENANTS] = {3072, 1024};
static pound_lock_t lock;
static double held[TENANTS]; /* seconds; written by the lock's holder */
static double end;

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void *work(void *argument)
{
	size_t tenant = (size_t)argument;
	double since, until;

	if (pound_thread_tenant(tenant, weights[tenant]))
		return NULL;
	do {
		pound_lock_lock(&lock);
		since = now();
		while ((until = now()) < since + 1e-5)
			; /* a critical section of 10 us */
		held[tenant] += until - since;
		pound_lock_unlock(&lock);
	} while (until < end);
	return NULL;
}

int main(void)
{
	pthread_t threads[TENANTS * THREADS];

	if (pound_lock_init(&lock, "cfl_mutex", NULL, 0))
		return 1;
	end = now() + SECONDS;
	for (size_t i = 0; i < TENANTS * THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(i % TENANTS)))
			return 1;
	for (size_t i = 0; i < TENANTS * THREADS; i++)
		pthread_join(threads[i], NULL);
	pound_lock_destroy(&lock);
	for (size_t i = 0; i < TENANTS; i++)
		printf("tenant %zu, weight %u: %.0f %% of the time\n", i, weights[i],
		       100 * held[i] / (held[0] + held[1]));
	return held[0] <= 0 || held[1] <= 0;
}
