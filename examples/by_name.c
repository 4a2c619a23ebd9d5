/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* by_name [LOCK]: the same count under a lock that the user names, as in `by_name mcs`. */
#include <poundlock.h>
#include <pthread.h>
#include <stdio.h>

#define THREADS 8
#define ROUNDS 10000

static struct {
	pound_lock_t lock;
	long count;
} shared;

static void *work(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		pound_lock_lock(&shared.lock);
		shared.count++;
		pound_lock_unlock(&shared.lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "cna";
	pthread_t threads[THREADS];
	char error[256];

	if (pound_lock_init(&shared.lock, name, error, sizeof(error))) {
		fprintf(stderr, "by_name: %s\n", error);
		return 2;
	}
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pound_lock_destroy(&shared.lock); /* large locks have memory of their own */
	printf("%s: %ld\n", name, shared.count);
	return shared.count != (long)THREADS * ROUNDS;
}
