/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * box.h: boxes are zeroed, aligned, disjoint and reused, also by many threads at once; getting one
 * costs the same however many exist; and no more exist than were in use at a time.
 */
#include "box.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "unit.h"

#define BOXES 300
#define THREADS 4
#define ROUNDS 2000
#define BOX_OF_ONE 500 /* a size that no other test uses */

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
			boxes[j] = box_get(sizes[i], boxes);
			EXPECT((uintptr_t)boxes[j] % 64 == 0);
			expect_zero(boxes[j], sizes[i]);
			memset(boxes[j], j + 1, sizes[i]);
		}
		for (int j = 0; j < BOXES; j++) {
			EXPECT(boxes[j][0] == (unsigned char)(j + 1) &&
			       boxes[j][sizes[i] - 1] == (unsigned char)(j + 1));
			box_put(boxes[j]);
		}
	}
}

static void used_again(void)
{
	unsigned char *first = box_get(100, &first), *second;

	memset(first, 1, 100);
	box_put(first);
	second = box_get(100, &first);
	EXPECT(second == first, "a box that was given back lies idle");
	EXPECT(box_owner(second) == &first);
	expect_zero(second, 100);
	box_put(second);
}

/* A box has one owner: what it writes there stays. */
static void *gets_and_puts(void *number)
{
	uintptr_t mark = (uintptr_t)number, *boxes[3];

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < COUNT(boxes); i++) {
			boxes[i] = box_get(sizeof(**boxes), boxes);
			EXPECT(!*boxes[i]);
			*boxes[i] = mark + (uintptr_t)i;
		}
		for (int i = 0; i < COUNT(boxes); i++) {
			EXPECT(*boxes[i] == mark + (uintptr_t)i, "two threads have one box");
			box_put(boxes[i]);
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

/* ---- Cost with many boxes ---- */

#define FEW 4
#define MANY 4000
#define STOP SIGUSR1

/* Frees @count boxes, then gets and puts one between two signals. */
static void get_and_put_among(int count)
{
	static void *boxes[MANY];
	void *box;

	for (int i = 0; i < count; i++)
		boxes[i] = box_get(200, boxes);
	for (int i = 0; i < count; i++)
		box_put(boxes[i]);
	(void)raise(STOP);
	box = box_get(200, boxes);
	box_put(box);
	(void)raise(STOP);
}

/* Continues the traced and stopped @child until the signal stops it. */
static void go_on(pid_t child)
{
	int status;

	EXPECT(!ptrace(PTRACE_CONT, child, NULL, NULL) && waitpid(child, &status, 0) == child);
	EXPECT(WIFSTOPPED(status) && WSTOPSIG(status) == STOP);
}

/* The same by single steps; returns their number. */
static long steps(pid_t child)
{
	long count = 0;
	int status;

	do {
		EXPECT(!ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) &&
		       waitpid(child, &status, 0) == child);
		EXPECT(WIFSTOPPED(status));
		count++;
	} while (WSTOPSIG(status) != STOP);
	return count;
}

/*
 * The instructions of get_and_put_among(@count) and of two signals; 0 without tracing (an
 * emulator).
 */
static long instructions_among(int count)
{
	pid_t child = fork();
	int status;
	long result;

	if (!child) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(0);
		(void)raise(STOP);
		get_and_put_among(count);
		_exit(0);
	}
	EXPECT(child > 0 && waitpid(child, &status, 0) == child);
	if (WIFEXITED(status))
		return 0;
	EXPECT(WIFSTOPPED(status) && WSTOPSIG(status) == STOP);
	go_on(child);
	result = steps(child);
	EXPECT(!kill(child, SIGKILL) && waitpid(child, &status, 0) == child);
	return result;
}

/* As many instructions among many boxes as among few. */
static void as_fast_among_many(void)
{
	long few = instructions_among(FEW), many = instructions_among(MANY);

	EXPECT(many <= few + few / 4, "%ld instructions among %d boxes, %ld among %d", few, FEW,
	       many, MANY);
}

/* ---- Number of boxes ---- */

#define KNOWN_MOST (4 * THREADS)

struct known {
	void *boxes[KNOWN_MOST];
	int count;
};

static void note(struct known *known, void *box)
{
	for (int i = 0; i < known->count; i++)
		if (known->boxes[i] == box)
			return;
	EXPECT(known->count < KNOWN_MOST, "there are ever more boxes");
	known->boxes[known->count++] = box;
}

static void *gets_one(void *known)
{
	for (int round = 0; round < 100 * ROUNDS; round++) {
		void *box = box_get(BOX_OF_ONE, known);

		note(known, box);
		box_put(box);
	}
	return NULL;
}

/* Threads that have one box at a time need at most two each. */
static void no_more_than_needed(void)
{
	static struct known known[THREADS], all;
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, gets_one, &known[i]));
	for (int i = 0; i < THREADS; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	for (int i = 0; i < THREADS; i++)
		for (int j = 0; j < known[i].count; j++)
			note(&all, known[i].boxes[j]);
	EXPECT(all.count <= 2 * THREADS, "%d boxes", all.count);
}

int main(void)
{
	RUN(zeroed_aligned_and_apart);
	RUN(used_again);
	RUN(by_many_threads);
	RUN(as_fast_among_many);
	RUN(no_more_than_needed);
	return 0;
}
