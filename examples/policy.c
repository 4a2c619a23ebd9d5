/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* policy: a lock whose waiters of the smallest rank come first, by a policy of the program. */
#include <poundlock.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define THREADS 4
#define ROUNDS 20000

static _Thread_local uint32_t thread_rank;
static atomic_uint asked; /* how often the policy was asked for a note: waits */
static pound_lock_t lock;
static long counter; /* written by the lock's holder */

static uint32_t note(void *context, const void *of)
{
	(void)context, (void)of;
	atomic_fetch_add(&asked, 1);
	return thread_rank;
}

static uint32_t rank(void *context, uint32_t shuffler, uint32_t waiter)
{
	(void)context, (void)shuffler;
	return waiter;
}

static void *work(void *argument)
{
	thread_rank = (uint32_t)(size_t)argument;
	for (int i = 0; i < ROUNDS; i++) {
		pound_lock_lock(&lock);
		counter++;
		pound_lock_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	static const struct pound_policy by_rank = {.note = note, .rank = rank};
	pthread_t threads[THREADS];
	char error[128];

	if (pound_policy_register("by_rank", &by_rank))
		return 1;
	if (pound_lock_init(&lock, "shfl,policy=by_rank", error, sizeof(error))) {
		fprintf(stderr, "policy: %s\n", error);
		return 1;
	}
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 1;
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pound_lock_destroy(&lock);
	printf("%ld, %u waits ordered by rank\n", counter, atomic_load(&asked));
	/* No lock has the policy any more. */
	return counter != (long)THREADS * ROUNDS || pound_policy_unregister("by_rank");
}
