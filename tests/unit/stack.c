/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The stack that a contended acquisition needs, also a thread's first, when its record, weight,
 * group and machine are read: a thread with the smallest stack (16 KiB, of which a signal may need
 * a quarter and thread-local data more) can take any lock.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "any.h"
#include "poundlock.h"
#include "unit.h"

#define STACK (256 << 10)
#define PAINT 0xa5
#define MOST 4096

static struct {
	const struct any_ops *ops;
	_Alignas(8) char lock[ANY_LOCK_SIZE];
} held;

static void *need_nothing(void *none)
{
	struct w_deadline deadline = {.clock = CLOCK_MONOTONIC};

	(void)w_expired(&deadline);
	return none;
}

/*
 * The lock is held, so this waits for a while, in the queue where the way of waiting allows
 * deadlines.
 */
static void *need_lock(void *none)
{
	struct w_deadline deadline = {.clock = CLOCK_MONOTONIC};

	EXPECT(!clock_gettime(deadline.clock, &deadline.at));
	deadline.at.tv_nsec += 2000000;
	deadline.at.tv_sec += deadline.at.tv_nsec / 1000000000;
	deadline.at.tv_nsec %= 1000000000;
	EXPECT(!held.ops->timedlock(held.lock, &deadline, held.ops));
	return none;
}

/* The number of stack bytes that a new thread writes during @run. */
static size_t stack_of(void *(*run)(void *none))
{
	unsigned char *stack =
		mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t untouched = 0;
	pthread_attr_t attr;
	pthread_t thread;

	EXPECT(stack != MAP_FAILED);
	memset(stack, PAINT, STACK);
	EXPECT(!pthread_attr_init(&attr) && !pthread_attr_setstack(&attr, stack, STACK));
	EXPECT(!pthread_create(&thread, &attr, run, NULL) && !pthread_join(thread, NULL));
	EXPECT(!pthread_attr_destroy(&attr));
	while (stack[untouched] == PAINT)
		untouched++;
	munmap(stack, STACK);
	return STACK - untouched;
}

static void every_lock(void)
{
	size_t nothing = stack_of(need_nothing);
	const struct pound_lock_info *info;
	char error[128];

	for (size_t i = 0; (info = pound_lock_info(i)); i++) {
		size_t needed;

		memset(held.lock, 0, sizeof(held.lock));
		held.ops = any_find(info->name, error, sizeof(error));
		EXPECT(held.ops, "%s", error);
		held.ops->lock(held.lock, held.ops);
		needed = stack_of(need_lock);
		EXPECT(held.ops->unlock(held.lock, held.ops));
		EXPECT(needed <= nothing + MOST, "%s needs %zu bytes of stack", info->name,
		       needed - nothing);
	}
}

int main(void)
{
	RUN(every_lock);
	return 0;
}
