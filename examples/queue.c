/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* queue: producers and consumers of a bounded queue: a mutex and two condition variables. */
#include <poundlock.h>
#include <pthread.h>
#include <stdio.h>

#define THREADS 4   /* producers, and as many consumers */
#define ITEMS 10000 /* of each producer */
#define SLOTS 16

/* All-zero memory is ready for use. */
static struct {
	pound_mutex_t mutex;
	pound_cond_t not_full, not_empty;
	long slots[SLOTS];
	int first, count;
} queue;

static void put(long item)
{
	pound_mutex_lock(&queue.mutex);
	while (queue.count == SLOTS)
		pound_cond_wait(&queue.not_full, &queue.mutex);
	queue.slots[(queue.first + queue.count++) % SLOTS] = item;
	pound_mutex_unlock(&queue.mutex);
	pound_cond_signal(&queue.not_empty);
}

static long take(void)
{
	long item;

	pound_mutex_lock(&queue.mutex);
	while (!queue.count)
		pound_cond_wait(&queue.not_empty, &queue.mutex);
	item = queue.slots[queue.first];
	queue.first = (queue.first + 1) % SLOTS;
	queue.count--;
	pound_mutex_unlock(&queue.mutex);
	pound_cond_signal(&queue.not_full);
	return item;
}

static void *produce(void *unused)
{
	for (long i = 1; i <= ITEMS; i++)
		put(i);
	return unused;
}

static void *consume(void *sum)
{
	for (int i = 0; i < ITEMS; i++)
		*(long *)sum += take();
	return NULL;
}

int main(void)
{
	pthread_t producers[THREADS], consumers[THREADS];
	long sums[THREADS] = {0}, sum = 0;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&producers[i], NULL, produce, NULL) ||
		    pthread_create(&consumers[i], NULL, consume, &sums[i]))
			return 1;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(producers[i], NULL);
		pthread_join(consumers[i], NULL);
		sum += sums[i];
	}
	printf("%ld\n", sum);
	return sum != THREADS * (ITEMS * (ITEMS + 1L) / 2);
}
