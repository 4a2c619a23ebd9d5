/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * bravo.h: readers of one lock have entries of their own, however many they are, and so do the locks of one reader.
 */
#include <pthread.h>

#include "bravo.h"
#include "unit.h"

#define MANY 256

static struct bravo locks[MANY];
static struct w_visible *entries[MANY];
static pthread_barrier_t all_live;

static void *find_entry(void *entry)
{
	*(struct w_visible **)entry = bravo_entry(&locks[0]);
	(void)pthread_barrier_wait(&all_live);
	return NULL;
}

static uint32_t different(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		bool seen = false;

		for (uint32_t j = 0; j < i; j++)
			seen = seen || entries[j] == entries[i];
		count += !seen;
	}
	return count;
}

/* Entries drawn by lot would be 248 different ones of 256. */
static void threads_have_their_own(void)
{
	pthread_t threads[MANY];

	EXPECT(!pthread_barrier_init(&all_live, NULL, MANY));
	for (uint32_t i = 0; i < MANY; i++)
		EXPECT(!pthread_create(&threads[i], NULL, find_entry, &entries[i]));
	for (uint32_t i = 0; i < MANY; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	EXPECT(!pthread_barrier_destroy(&all_live));
	EXPECT(different() >= 240, "%u entries of %d threads", different(), MANY);
}

static void locks_have_their_own(void)
{
	for (uint32_t i = 0; i < MANY; i++)
		entries[i] = bravo_entry(&locks[i]);
	EXPECT(different() >= 240, "%u entries of %d locks", different(), MANY);
}

int main(void)
{
	threads_have_their_own();
	locks_have_their_own();
	return 0;
}
