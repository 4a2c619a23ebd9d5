/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* counter: threads that count under a pound_mutex_t, the default lock. */
#include <poundlock.h>
#include <pthread.h>
#include <stdio.h>

#define THREADS 8
#define ROUNDS 10000

/* All-zero memory is an unlocked mutex: neither needs an initialisation, nor a destruction. */
static struct {
	pound_mutex_t mutex;
	long count;
} shared;

static void *work(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		pound_mutex_lock(&shared.mutex);
		shared.count++;
		pound_mutex_unlock(&shared.mutex);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\n", shared.count);
	return shared.count != (long)THREADS * ROUNDS;
}
