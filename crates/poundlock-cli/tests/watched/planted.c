/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A process whose waiting is known: four threads sleep 2 ms with a mutex and 2 ms without it. Each
 * thread measures its own waits, and how much of them it slept: on a busy machine the rest is time
 * in which it was ready to run. One thread idles on a condition variable, and one is woken from
 * another by work.
 *
 * With the argument `busy`, holders compute instead of sleeping.
 *
 * For each line of input, prints so far: the waiting time and the time of all threads, the slept
 * part of the former and the longest wait, in ns, and the number of waits. Ends with the input.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 4, THREADS = WORKERS + 3 };

pthread_mutex_t planted_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, never = PTHREAD_COND_INITIALIZER;
static atomic_long waited, slept, longest, waits;
static int holders_compute;

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000l + time.tv_nsec;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

__attribute__((noinline)) void compute(void)
{
	for (long start = now(); now() - start < 2000000;)
		;
}

/* The time, and the part of it in which the calling thread was ready to run. */
struct moment {
	long time;
	long ready;
};

static struct moment moment(void)
{
	static __thread int file = -1;
	char text[64] = "";
	long on_cpu = 0, queued = 0;

	if (file < 0)
		file = open("/proc/thread-self/schedstat", O_RDONLY);
	if (pread(file, text, sizeof(text) - 1, 0) > 0)
		sscanf(text, "%ld %ld", &on_cpu, &queued);
	return (struct moment){now(), on_cpu + queued};
}

static void count_wait(struct moment start)
{
	struct moment end = moment();
	long time = end.time - start.time, asleep = time - (end.ready - start.ready);
	long most = atomic_load(&longest);

	atomic_fetch_add(&waited, time);
	atomic_fetch_add(&slept, asleep > 0 ? asleep : 0);
	while (time > most && !atomic_compare_exchange_weak(&longest, &most, time))
		;
	atomic_fetch_add(&waits, 1);
}

__attribute__((noinline)) void planted_site(void)
{
	struct moment start = moment();

	pthread_mutex_lock(&planted_lock);
	count_wait(start);
	if (holders_compute)
		compute();
	else
		pause_ms(2);
	pthread_mutex_unlock(&planted_lock);
}

static void *worker(void *unused)
{
	for (;;) {
		planted_site();
		pause_ms(2);
		pthread_cond_signal(&work);
	}
	return unused;
}

static void *consumer(void *condition)
{
	pthread_mutex_lock(&queue_lock);
	for (;;)
		pthread_cond_wait(condition, &queue_lock);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	long start = now();

	holders_compute = argc > 1 && !strcmp(argv[1], "busy");

	for (int i = 0; i < WORKERS; i++)
		pthread_create(&thread, NULL, worker, NULL);
	pthread_create(&thread, NULL, consumer, &work);
	pthread_create(&thread, NULL, consumer, &never);
	while (getchar() != EOF) {
		printf("%ld %ld %ld %ld %ld\n", atomic_load(&waited), (now() - start) * THREADS,
		       atomic_load(&slept), atomic_load(&longest), atomic_load(&waits));
		fflush(stdout);
	}
	return 0;
}
