/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* hint.h in user space: what a thread remembers of locks, and that the next thread does not. */
#include "hint.h"

#include <pthread.h>

#include "unit.h"
#include "world.h"

static char locks[W_HINTS + 1][W_HINT_LINE] __attribute__((aligned(W_HINT_LINE)));

/* From nothing to nothing. */
static void *remembers(void *argument)
{
	for (uint32_t i = 0; i <= W_HINTS; i++)
		EXPECT(!w_remembers(locks[i]) && !w_hint_lock(locks[i]), "lock %u", i);
	(void)w_self();
	for (uint32_t i = 0; i < W_HINTS; i++)
		EXPECT(w_remember(locks[i], i));
	w_note_set(locks[1], 7);
	for (uint32_t i = 0; i < W_HINTS; i++)
		EXPECT(w_remembers(locks[i]) && w_note(locks[i]) == (i == 1 ? 7 : i), "lock %u", i);
	EXPECT(!w_remembers(&locks[2][8]), "another lock of the line");
	w_forget(&locks[2][8]);
	EXPECT(w_remembers(locks[2]), "forgotten for another lock of the line");
	return argument;
}

static void *remembers_the_last(void *argument)
{
	(void)remembers(NULL);
	EXPECT(w_hint_lock(locks[W_HINTS]) == locks[0], "the lock in whose place it comes");
	EXPECT(w_remember(locks[W_HINTS], 9));
	EXPECT(w_remembers(locks[W_HINTS]) && w_note(locks[W_HINTS]) == 9, "the last lock");
	EXPECT(!w_remembers(locks[0]), "a lock in whose place is another one");
	w_forget(locks[0]);
	EXPECT(w_remembers(locks[W_HINTS]), "forgotten for the former lock");
	return argument;
}

static void *forgets(void *argument)
{
	(void)remembers(NULL);
	for (uint32_t i = 0; i < W_HINTS; i++) {
		EXPECT(w_own.hints == W_HINTS - i, "%u locks", w_own.hints);
		w_forget(locks[i]);
		EXPECT(!w_remembers(locks[i]), "lock %u", i);
	}
	EXPECT(!w_own.hints, "%u locks", w_own.hints);
	return argument;
}

static void in_thread(void *(*does)(void *))
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, does, NULL), "a thread");
	EXPECT(!pthread_join(thread, NULL), "its end");
}

/* More threads than an unused process has records: some have that of an ended one. */
static void one_after_another(void)
{
	for (uint32_t i = 0; i < 100; i++) {
		in_thread(remembers);
		in_thread(remembers_the_last);
		in_thread(forgets);
	}
}

int main(void)
{
	RUN(one_after_another);
	return 0;
}
