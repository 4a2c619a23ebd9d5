/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * box.h: boxes are zeroed, aligned, apart from one another and used again, also by many threads at once.
 */
#include "box.h"

#include <pthread.h>
#include <stdint.h>

#include "unit.h"

#define BOXES 300
#define THREADS 4
#define ROUNDS 2000

static const size_t sizes[] = {1, 64, 65, 1000, 4096, 70000, 200000};

static void expect_zero(const unsigned char *box, size_t size)
{
	for (size_t i = 0; i < size; i++)
		EXPECT(!box[i], "byte %zu of %zu is %d", i, size, box[i]);
}

static void zeroed_aligned_and_apart(void)
{
	for (int i = 0; i < COUNT(sizes); i++) {
		unsigned char *boxes[BOXES];

		for (int j = 0; j < BOXES; j++) {
			boxes[j] = box_get(sizes[i]);
			EXPECT((uintptr_t)boxes[j] % 64 == 0);
			expect_zero(boxes[j], sizes[i]);
			memset(boxes[j], j + 1, sizes[i]);
		}
		for (int j = 0; j < BOXES; j++) {
			EXPECT(boxes[j][0] == (unsigned char)(j + 1) &&
			       boxes[j][sizes[i] - 1] == (unsigned char)(j + 1));
			box_put(boxes[j], sizes[i]);
		}
	}
}

static void used_again(void)
{
	unsigned char *first = box_get(100), *second;

	memset(first, 1, 100);
	box_put(first, 100);
	second = box_get(100);
	EXPECT(second == first, "a box that was given back lies idle");
	expect_zero(second, 100);
	box_put(second, 100);
}

/* Whoever has a box has it alone: what it writes there stays. */
static void *gets_and_puts(void *number)
{
	uintptr_t mark = (uintptr_t)number, *boxes[3];

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < COUNT(boxes); i++) {
			boxes[i] = box_get(sizeof(**boxes));
			EXPECT(!*boxes[i]);
			*boxes[i] = mark + (uintptr_t)i;
		}
		for (int i = 0; i < COUNT(boxes); i++) {
			EXPECT(*boxes[i] == mark + (uintptr_t)i, "two threads have one box");
			box_put(boxes[i], sizeof(**boxes));
		}
	}
	return NULL;
}

static void by_many_threads(void)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, gets_and_puts, (void *)(1 + i * 16)));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	RUN(zeroed_aligned_and_apart);
	RUN(used_again);
	RUN(by_many_threads);
	return 0;
}
