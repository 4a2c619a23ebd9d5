/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* C11 mutexes and condition variables exclude threads of both interfaces, C11's and POSIX's. */
#include <threads.h>

#include "posix.h"

#define EXPECT_THRD(call, result) EXPECT((call) == (result), "C11")

static mtx_t mutex;
static cnd_t cond;
static unsigned long count;
static unsigned ready;

static int increment(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < 5000; i++) {
		EXPECT_THRD(mtx_lock(&mutex), thrd_success);
		count++;
		EXPECT_THRD(mtx_unlock(&mutex), thrd_success);
	}
	EXPECT_THRD(mtx_lock(&mutex), thrd_success);
	ready++;
	EXPECT_THRD(ready == 1 ? cnd_signal(&cond) : cnd_broadcast(&cond), thrd_success);
	EXPECT_THRD(mtx_unlock(&mutex), thrd_success);
	return 7;
}

static int try_it(void *argument)
{
	struct timespec past = {.tv_sec = 1}, soon = from_now(CLOCK_REALTIME, 5);

	EXPECT_THRD(mtx_trylock(argument), thrd_busy);
	EXPECT_THRD(mtx_timedlock(argument, &past), thrd_timedout);
	EXPECT_THRD(mtx_timedlock(argument, &soon), thrd_timedout);
	return 0;
}

static void in_thread(int (*run)(void *), void *argument, int expected)
{
	thrd_t thread;
	int result;

	EXPECT_THRD(thrd_create(&thread, run, argument), thrd_success);
	EXPECT_THRD(thrd_join(thread, &result), thrd_success);
	EXPECT(result == expected, "%d", result);
}

static void types(void)
{
	static const int all[] = {mtx_plain, mtx_timed, mtx_plain | mtx_recursive,
				  mtx_timed | mtx_recursive};
	mtx_t one;

	for (size_t i = 0; i < 4; i++) {
		memset(&one, 0x5a, sizeof(one));
		EXPECT_THRD(mtx_init(&one, all[i]), thrd_success);
		EXPECT_THRD(mtx_lock(&one), thrd_success);
		in_thread(try_it, &one, 0);
		EXPECT_THRD(mtx_trylock(&one), all[i] & mtx_recursive ? thrd_success : thrd_busy);
		if (all[i] & mtx_recursive)
			EXPECT_THRD(mtx_unlock(&one), thrd_success);
		in_thread(try_it, &one, 0);
		EXPECT_THRD(mtx_unlock(&one), thrd_success);
		mtx_destroy(&one);
	}
}

static void conditions(void)
{
	struct timespec far = from_now(CLOCK_REALTIME, 3600 * 1000), past = {.tv_sec = 1},
			wrong = {.tv_nsec = -1};
	thrd_t threads[4];

	EXPECT_THRD(mtx_init(&mutex, mtx_plain), thrd_success);
	EXPECT_THRD(cnd_init(&cond), thrd_success);
	for (size_t i = 0; i < 4; i++)
		EXPECT_THRD(thrd_create(&threads[i], increment, NULL), thrd_success);
	EXPECT_THRD(mtx_lock(&mutex), thrd_success);
	while (ready < 2)
		EXPECT_THRD(cnd_wait(&cond, &mutex), thrd_success);
	while (ready < 4)
		EXPECT_THRD(cnd_timedwait(&cond, &mutex, &far), thrd_success);
	EXPECT(count == 4 * 5000, "%lu", count);
	EXPECT_THRD(cnd_timedwait(&cond, &mutex, &past), thrd_timedout);
	EXPECT_THRD(cnd_timedwait(&cond, &mutex, &wrong), thrd_error);
	EXPECT_RESULT(elsewhere(pthread_mutex_trylock, (pthread_mutex_t *)&mutex), EBUSY);
	EXPECT_THRD(mtx_unlock(&mutex), thrd_success);
	for (size_t i = 0; i < 4; i++)
		EXPECT_THRD(thrd_join(threads[i], NULL), thrd_success);
	cnd_destroy(&cond);
	mtx_destroy(&mutex);
}

int main(void)
{
	types();
	conditions();
	return 0;
}
