/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* readers: a pair that a writer changes and readers always find whole. */
#include <poundlock.h>
#include <pthread.h>
#include <stdio.h>

#define READERS 4
#define ROUNDS 10000

static struct {
	pound_rwlock_t lock; /* all zero: the default, shfl_rw */
	long first, second;
} shared;

static void *read_pairs(void *torn)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (pound_rwlock_rdlock(&shared.lock))
			continue; /* EAGAIN: 2^27 readers are inside */
		if (shared.first != shared.second)
			*(bool *)torn = true;
		pound_rwlock_rdunlock(&shared.lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[READERS];
	bool torn[READERS] = {false}, any_torn = false;

	for (int i = 0; i < READERS; i++)
		if (pthread_create(&threads[i], NULL, read_pairs, &torn[i]))
			return 1;
	for (int i = 0; i < ROUNDS; i++) {
		pound_rwlock_wrlock(&shared.lock);
		shared.first++;
		shared.second++;
		pound_rwlock_wrunlock(&shared.lock);
	}
	for (int i = 0; i < READERS; i++) {
		pthread_join(threads[i], NULL);
		any_torn |= torn[i];
	}
	printf("%ld, %s\n", shared.first, any_torn ? "torn" : "always whole");
	return any_torn || shared.first != ROUNDS;
}
