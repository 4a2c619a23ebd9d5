/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A signalled waiter that does not run yet, since a signal handler keeps it, consumes no signal
 * that is meant for later waiters. Skipped natively: glibc's pthread_cond_signal() waits for such a
 * waiter before it wakes later ones.
 */
#include <signal.h>

#include "kept.h"
#include "posix.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned waiting, wanted;

#define LATER 40

/* Leaves only when its own turn comes. */
static void *wait_for_turn(void *argument)
{
	unsigned turn = (unsigned)(uintptr_t)argument;

	EXPECT_OK(pthread_mutex_lock(&mutex));
	waiting++;
	while (wanted < turn)
		EXPECT_OK(pthread_cond_wait(&cond, &mutex));
	waiting--;
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return NULL;
}

static void let_out(unsigned turn)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	wanted = turn;
	EXPECT_OK(pthread_cond_signal(&cond));
	EXPECT_OK(pthread_cond_signal(&cond));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
}

int main(void)
{
	struct sigaction action = {.sa_handler = keep};
	pthread_t first, later;

	EXPECT(!sigaction(SIGUSR1, &action, NULL), "sigaction");
	first = start(wait_for_turn, (void *)1);
	until_is(&mutex, &waiting, 1);
	EXPECT_OK(pthread_kill(first, SIGUSR1));
	while (!atomic_load(&kept))
		sched_yield();
	let_out(1);
	for (uintptr_t turn = 2; turn < LATER; turn++) {
		later = start(wait_for_turn, (void *)turn);
		until_is(&mutex, &waiting, 2);
		if (turn % 2)
			sleep_ms(1); /* so that it is asleep in half of the rounds */
		let_out((unsigned)turn);
		finish(later);
	}
	atomic_store(&released, true);
	finish(first);
	EXPECT_OK(pthread_cond_destroy(&cond));
	return 0;
}
