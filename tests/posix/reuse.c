/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Unused objects are plain memory: they may be copied, also over others, moved with the structure
 * that contains them, and re-initialised without destruction, as the same type and as another one.
 */
#include <stdlib.h>

#include "posix.h"

#define TIMES 100
#define THREADS 3

/* Objects that a program might have in a block that it moves. */
struct block {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	pthread_rwlock_t rwlock;
	pthread_spinlock_t spin;
	unsigned long count, written;
	unsigned ready;
};

static void *use(void *argument)
{
	struct block *block = argument;

	for (unsigned i = 0; i < TIMES; i++) {
		EXPECT_OK(pthread_mutex_lock(&block->mutex));
		block->count++;
		EXPECT_OK(pthread_mutex_unlock(&block->mutex));
		write_and_read(&block->rwlock, &block->written);
		EXPECT_OK(pthread_spin_lock(&block->spin));
		EXPECT_OK(pthread_spin_unlock(&block->spin));
	}
	/* All wait for the last one. */
	EXPECT_OK(pthread_mutex_lock(&block->mutex));
	if (++block->ready == THREADS)
		EXPECT_OK(pthread_cond_broadcast(&block->cond));
	while (block->ready < THREADS)
		EXPECT_OK(pthread_cond_wait(&block->cond, &block->mutex));
	EXPECT_OK(pthread_mutex_unlock(&block->mutex));
	return NULL;
}

static void by_all(struct block *block)
{
	pthread_t threads[THREADS];

	block->count = block->written = block->ready = 0;
	for (size_t i = 0; i < THREADS; i++)
		threads[i] = start(use, block);
	for (size_t i = 0; i < THREADS; i++)
		finish(threads[i]);
	EXPECT(block->count == THREADS * TIMES, "%lu", block->count);
	EXPECT(block->written == THREADS * TIMES, "%lu", block->written);
}

static void initialise(struct block *block, int type)
{
	init_mutex(&block->mutex, type);
	EXPECT_OK(pthread_cond_init(&block->cond, NULL));
	EXPECT_OK(pthread_rwlock_init(&block->rwlock, NULL));
	EXPECT_OK(pthread_spin_init(&block->spin, PTHREAD_PROCESS_PRIVATE));
}

static void copied(struct block *from)
{
	struct block copy = *from, *moved;

	by_all(&copy);
	by_all(from);
	/* Over a used object. */
	copy = *from;
	by_all(&copy);
	moved = malloc(sizeof(*moved));
	EXPECT(moved, "malloc");
	*moved = copy;
	memset(&copy, 0x5a, sizeof(copy));
	by_all(moved);
	moved = realloc(moved, 1 << 20);
	EXPECT(moved, "realloc");
	by_all(moved);
	free(moved);
}

int main(void)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
	struct block block = {.mutex = PTHREAD_MUTEX_INITIALIZER,
			      .cond = PTHREAD_COND_INITIALIZER,
			      .rwlock = PTHREAD_RWLOCK_INITIALIZER};

	EXPECT_OK(pthread_spin_init(&block.spin, PTHREAD_PROCESS_PRIVATE));
	copied(&block);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		initialise(&block, types[i]);
		copied(&block);
	}
	return 0;
}
