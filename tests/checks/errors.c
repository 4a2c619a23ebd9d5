/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program with errors in its use of locks, which never blocks: errors.c is built with pthread's
 * locks, for the preload library, and with -DAPI and -DPOUNDLOCK_DEBUG with poundlock.h's. The
 * argument selects one error, or `none`: correct code that looks like an error. CMakeLists.txt has
 * the reports.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef API
#include "poundlock.h"

typedef pound_mutex_t mutex_t;
typedef pound_rwlock_t rwlock_t;
typedef pound_cond_t cond_t;
#define LOCK(m) pound_mutex_lock(m)
#define TRYLOCK(m) pound_mutex_trylock(m)
#define UNLOCK(m) pound_mutex_unlock(m)
#define TIMEDLOCK(m, at) pound_mutex_timedlock(m, CLOCK_REALTIME, at)
#define RDLOCK(l) pound_rwlock_rdlock(l)
#define RDLOCK_AGAIN(l) pound_rwlock_rdlock_again(l)
#define WRLOCK(l) pound_rwlock_wrlock(l)
#define RDUNLOCK(l) pound_rwlock_rdunlock(l)
#define WRUNLOCK(l) pound_rwlock_wrunlock(l)
#define WAIT(c, m) pound_cond_wait(c, m)
#define SIGNAL(c) pound_cond_signal(c)
#define RW_INIT(l) EXPECT(!pound_rwlock_init(l, "shfl_rw", NULL, 0))
#define RW_DESTROY(l) (void)(l) /* needs none */
/* A lock that has to be destroyed. */
typedef pound_lock_t made_t;
#define INIT(l) EXPECT(!pound_lock_init(l, "c_bo_mcs", NULL, 0))
#define DESTROY(l) pound_lock_destroy(l)
#else
typedef pthread_mutex_t mutex_t;
typedef pthread_rwlock_t rwlock_t;
typedef pthread_cond_t cond_t;
#define LOCK(m) pthread_mutex_lock(m)
#define TRYLOCK(m) (!pthread_mutex_trylock(m))
#define UNLOCK(m) pthread_mutex_unlock(m)
#define TIMEDLOCK(m, at) pthread_mutex_timedlock(m, at)
#define RDLOCK(l) pthread_rwlock_rdlock(l)
#define RDLOCK_AGAIN(l) pthread_rwlock_rdlock(l)
#define WRLOCK(l) pthread_rwlock_wrlock(l)
#define RDUNLOCK(l) pthread_rwlock_unlock(l)
#define WRUNLOCK(l) pthread_rwlock_unlock(l)
#define WAIT(c, m) pthread_cond_wait(c, m)
#define SIGNAL(c) pthread_cond_signal(c)
#define RW_INIT(l) EXPECT(!pthread_rwlock_init(l, NULL))
#define RW_DESTROY(l) EXPECT(!pthread_rwlock_destroy(l))
typedef pthread_mutex_t made_t;
#define INIT(l) EXPECT(!pthread_mutex_init(l, NULL))
#define DESTROY(l) EXPECT(!pthread_mutex_destroy(l))
#endif

#include "../expect.h"

mutex_t lock_a, lock_b, lock_c;
rwlock_t table;
made_t made;
static cond_t changed;
static bool ready;
static const struct timespec far_future = {1L << 32, 0};

static void in_a_thread(void *(*work)(void *))
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, work, NULL));
	EXPECT(!pthread_join(thread, NULL));
}

/* The sites that reports name. Never inlined, and never the last call. */
#define SITE(name, call)                           \
	__attribute__((noinline)) void name(void); \
	void name(void)                            \
	{                                          \
		call;                              \
		__asm__ __volatile__("");          \
	}

SITE(site_lock_a, LOCK(&lock_a))
SITE(site_lock_b, LOCK(&lock_b))
SITE(site_lock_c, LOCK(&lock_c))
SITE(site_lock_a_second, LOCK(&lock_a))
SITE(site_lock_b_second, LOCK(&lock_b))
SITE(site_unlock_a, UNLOCK(&lock_a))
SITE(site_read, RDLOCK(&table))
SITE(site_write, WRLOCK(&table))
SITE(site_init, INIT(&made))
SITE(site_init_second, INIT(&made))
SITE(site_init_table, RW_INIT(&table))

static void *lock_ab(void *unused)
{
	site_lock_a();
	site_lock_b_second();
	UNLOCK(&lock_b);
	UNLOCK(&lock_a);
	return unused;
}

static void *lock_ba(void *unused)
{
	site_lock_b();
	site_lock_a_second();
	UNLOCK(&lock_a);
	UNLOCK(&lock_b);
	return unused;
}

static void *lock_bc(void *unused)
{
	site_lock_b();
	site_lock_c();
	UNLOCK(&lock_c);
	UNLOCK(&lock_b);
	return unused;
}

static void *lock_ca(void *unused)
{
	site_lock_c();
	site_lock_a_second();
	UNLOCK(&lock_a);
	UNLOCK(&lock_c);
	return unused;
}

static void *read_under_a(void *unused)
{
	site_lock_a();
	site_read();
	RDUNLOCK(&table);
	UNLOCK(&lock_a);
	return unused;
}

static void *a_under_write(void *unused)
{
	site_write();
	site_lock_a_second();
	UNLOCK(&lock_a);
	WRUNLOCK(&table);
	return unused;
}

static void *unlock_a(void *unused)
{
	site_unlock_a();
	return unused;
}

static void *keep_a(void *unused)
{
	site_lock_a();
	return unused;
}

/* Would wait indefinitely: another thread unlocks. */
static void *release_later(void *unused)
{
	while (!TRYLOCK(&lock_b)) {
	}
	UNLOCK(&lock_b);
	usleep(50000);
	UNLOCK(&lock_a);
	return unused;
}

static void relock(void)
{
	pthread_t thread;

	LOCK(&lock_b);
	EXPECT(!pthread_create(&thread, NULL, release_later, NULL));
	site_lock_a();
	UNLOCK(&lock_b);
	site_lock_a_second();
	UNLOCK(&lock_a);
	EXPECT(!pthread_join(thread, NULL));
}

#ifdef API
static void relock_named(void)
{
	EXPECT(!pound_set_name(&lock_a, "accounts"));
	relock();
}
#endif

/* ---- Correct code ---- */

static pthread_key_t key;

static void unlock_at_end(void *lock)
{
	UNLOCK((mutex_t *)lock);
}

static void *held_until_destructors(void *unused)
{
	LOCK(&lock_a);
	EXPECT(!pthread_setspecific(key, &lock_a));
	return unused;
}

static void *consumer(void *unused)
{
	LOCK(&lock_a);
	while (!ready)
		WAIT(&changed, &lock_a);
	UNLOCK(&lock_a);
	return unused;
}

static void wait_for_it(void)
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, consumer, NULL));
	LOCK(&lock_a);
	ready = true;
	SIGNAL(&changed);
	UNLOCK(&lock_a);
	EXPECT(!pthread_join(thread, NULL));
}

/* Tries in the opposite order, which cannot deadlock. */
static void *try_ba(void *unused)
{
	LOCK(&lock_b);
	if (TRYLOCK(&lock_a))
		UNLOCK(&lock_a);
	EXPECT(!TIMEDLOCK(&lock_a, &far_future));
	UNLOCK(&lock_a);
	UNLOCK(&lock_b);
	return unused;
}

/* The child has the forking thread's locks, and is checked. */
static void in_a_child(void)
{
	int status;
	pid_t child;

	LOCK(&lock_a);
	child = fork();
	EXPECT(child >= 0);
	UNLOCK(&lock_a);
	if (!child) {
		in_a_thread(lock_ab);
		exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && !status);
}

/* As fork handlers of libraries do. */
static void initialised_in_a_child(void)
{
	int status;
	pid_t child;

	INIT(&made);
	RW_INIT(&table);
	WRLOCK(&table);
	child = fork();
	EXPECT(child >= 0);
	if (!child) {
		INIT(&made);
		RW_INIT(&table);
		DESTROY(&made);
		RW_DESTROY(&table);
		exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && !status);
	WRUNLOCK(&table);
	RW_DESTROY(&table);
	DESTROY(&made);
	INIT(&made);
	DESTROY(&made);
}

static void unlock_b(void)
{
	UNLOCK(&lock_b);
}

static void held_until_exit(void)
{
	EXPECT(!atexit(unlock_b));
	LOCK(&lock_b);
}

static void correct(void)
{
#ifdef API
	static pound_recursive_mutex_t recursive;

#endif
	EXPECT(!pthread_key_create(&key, unlock_at_end));
	in_a_thread(lock_ab);
	in_a_thread(lock_ab);
	in_a_thread(try_ba);
	in_a_thread(held_until_destructors);
	wait_for_it();
	RDLOCK(&table);
	RDLOCK_AGAIN(&table);
	RDUNLOCK(&table);
	RDUNLOCK(&table);
	EXPECT(TRYLOCK(&lock_a));
	UNLOCK(&lock_a);
	in_a_child();
	initialised_in_a_child();
#ifdef API
	RW_INIT(&table); /* needs no destroying */
	LOCK(&lock_a);
	pound_mutex_assert_held(&lock_a);
	UNLOCK(&lock_a);
	RDLOCK(&table);
	pound_rwlock_assert_held(&table);
	RDUNLOCK(&table);
	EXPECT(!pound_recursive_mutex_lock(&recursive) && !pound_recursive_mutex_lock(&recursive));
	pound_recursive_mutex_unlock(&recursive);
	pound_recursive_mutex_unlock(&recursive);
#endif
	held_until_exit();
}

static void in_child(void)
{
	int status;
	pid_t child;

	in_a_thread(lock_ab);
	child = fork();
	EXPECT(child >= 0);
	if (!child) {
		in_a_thread(lock_ba);
		exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && !status);
}

static void destroy_held(void)
{
#ifdef API
	static pound_lock_t boxed;

	EXPECT(!pound_lock_init(&boxed, "c_bo_mcs", NULL, 0));
	pound_lock_lock(&boxed);
	pound_lock_destroy(&boxed);
#else
	site_lock_a();
	EXPECT(pthread_mutex_destroy(&lock_a) == EBUSY);
	UNLOCK(&lock_a);
#endif
}

static void init_over_held(void)
{
	site_write();
	site_init_table();
	WRLOCK(&table);
	WRUNLOCK(&table);
}

static void init_twice(void)
{
	site_init();
	site_init_second();
	DESTROY(&made);
}

#ifdef API
SITE(site_assert, pound_mutex_assert_held(&lock_a))

static void *assert_a(void *unused)
{
	site_assert();
	return unused;
}

static void assert_not_held(void)
{
	site_lock_a();
	in_a_thread(assert_a);
	UNLOCK(&lock_a);
}

static void assert_write_of_reader(void)
{
	site_read();
	pound_rwlock_assert_wrheld(&table);
	RDUNLOCK(&table);
}

static void read_twice(void)
{
	site_read();
	RDLOCK(&table);
	RDUNLOCK(&table);
	RDUNLOCK(&table);
}
#endif

static void order(void)
{
	in_a_thread(lock_ab);
	in_a_thread(lock_ba);
	in_a_thread(lock_ba); /* reported once */
}

static void cycle(void)
{
	in_a_thread(lock_ab);
	in_a_thread(lock_bc);
	in_a_thread(lock_ca);
}

static void readers(void)
{
	in_a_thread(read_under_a);
	in_a_thread(a_under_write);
}

static void stranger(void)
{
	site_lock_a();
	in_a_thread(unlock_a);
}

static void free_lock(void)
{
	LOCK(&lock_a);
	UNLOCK(&lock_a);
	site_unlock_a();
}

static void ends(void)
{
	in_a_thread(keep_a);
}

static void exits(void)
{
	site_lock_a();
}

static void *keep_a_and_stay(void *kept)
{
	site_lock_a();
	pthread_barrier_wait(kept);
	pause();
	return NULL;
}

static void other_holds(void)
{
	static pthread_barrier_t kept;
	pthread_t thread;

	EXPECT(!pthread_barrier_init(&kept, NULL, 2));
	EXPECT(!pthread_create(&thread, NULL, keep_a_and_stay, &kept));
	pthread_barrier_wait(&kept);
}

static void leaks(void)
{
	site_init();
}

/* The child has not initialised it. */
static void leaks_before_fork(void)
{
	int status;
	pid_t child;

	INIT(&made);
	child = fork();
	EXPECT(child >= 0);
	if (!child)
		exit(0);
	EXPECT(waitpid(child, &status, 0) == child && !status);
	DESTROY(&made);
}

static const struct {
	const char *name;
	void (*make)(void);
} errors[] = {
	{"none", correct},
	{"order", order},
	{"cycle", cycle},
	{"readers", readers},
	{"child", in_child},
	{"relock", relock},
	{"stranger", stranger},
	{"free", free_lock},
	{"end", ends},
	{"destroy", destroy_held},
	{"init", init_over_held},
	{"init-twice", init_twice},
	{"exit", exits},
	{"held", other_holds},
	{"leak", leaks},
	{"leak-before-fork", leaks_before_fork},
#ifdef API
	{"assertion", assert_not_held},
	{"assert-write", assert_write_of_reader},
	{"read-twice", read_twice},
	{"named", relock_named},
#endif
};

static void aborted(int signal)
{
	(void)signal;
	puts("aborted");
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	expect_part = "errors";
	limit();
	signal(SIGABRT, aborted);
	for (size_t i = 0; argc > 1 && i < sizeof(errors) / sizeof(errors[0]); i++)
		if (!strcmp(argv[1], errors[i].name)) {
			errors[i].make();
			puts("done");
			return 0;
		}
	return 2;
}
