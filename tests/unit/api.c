/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * poundlock.h from a C program: both kinds of lock, deadlines, errors, events; errno never changes.
 */
#define _GNU_SOURCE
#include "poundlock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "../events.h"

static pound_mutex_t mutex = POUND_MUTEX_INIT;

static const struct timespec past = {0, 0}, invalid = {0, 1000000000};

static void *in_thread(void *run)
{
	((void (*)(void))run)();
	return NULL;
}

static void elsewhere(void (*run)(void))
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, in_thread, (void *)run));
	EXPECT(!pthread_join(thread, NULL));
}

static void mutex_is_held(void)
{
	errno = 77;
	EXPECT(!pound_mutex_trylock(&mutex));
	EXPECT(pound_mutex_timedlock(&mutex, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
	EXPECT(pound_mutex_timedlock(&mutex, CLOCK_REALTIME, &past) == ETIMEDOUT);
	EXPECT(pound_mutex_timedlock(&mutex, CLOCK_MONOTONIC, &invalid) == EINVAL);
	EXPECT(pound_mutex_timedlock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &past) == EINVAL);
	EXPECT(errno == 77);
}

static void mutex_is_free(void)
{
	errno = 77;
	pound_mutex_lock(&mutex);
	pound_mutex_unlock(&mutex);
	EXPECT(pound_mutex_trylock(&mutex));
	pound_mutex_unlock(&mutex);
	EXPECT(pound_mutex_timedlock(&mutex, CLOCK_MONOTONIC, &past) == 0,
	       "a free mutex is taken past the deadline, too");
	pound_mutex_unlock(&mutex);
	EXPECT(pound_mutex_timedlock(&mutex, CLOCK_MONOTONIC, &invalid) == 0);
	pound_mutex_unlock(&mutex);
	EXPECT(errno == 77);
}

static void mutexes(void)
{
	mutex_is_free();
	mutex.embedder = 5;
	pound_mutex_lock(&mutex);
	elsewhere(mutex_is_held);
	pound_mutex_unlock(&mutex);
	elsewhere(mutex_is_free);
	EXPECT(mutex.embedder == 5);
}

static bool served;

static pound_lock_t lock;
static pound_rwlock_t rwlock;

/* A lock that is released fairly while a thread waits for it. */
struct fair {
	void *lock;
	void (*hold)(void *lock);
	void (*unlock_fair)(void *lock);
	/* The waiter's. */
	void (*wait)(void *lock);
	void (*unlock)(void *lock);
};

static void *wait_once(void *context)
{
	const struct fair *fair = context;

	fair->wait(fair->lock);
	served = true;
	fair->unlock(fair->lock);
	return NULL;
}

/* The waiter locks the lock before the thread that releases it fairly and locks it again. */
static void serves_the_waiter(const struct fair *fair)
{
	pthread_t thread;

	for (int i = 0; i < 100; i++) {
		served = false;
		fair->hold(fair->lock);
		EXPECT(!pthread_create(&thread, NULL, wait_once, (void *)fair));
		/* The queue's tail is a lock's first word. */
		while (!__atomic_load_n((void **)fair->lock, __ATOMIC_RELAXED))
			sched_yield();
		fair->unlock_fair(fair->lock);
		fair->hold(fair->lock);
		EXPECT(served, "the waiter was overtaken");
		fair->unlock_fair(fair->lock);
		EXPECT(!pthread_join(thread, NULL));
	}
}

#define CALL(name)                      \
	static void name(void *of)      \
	{                               \
		(void)pound_##name(of); \
	}
CALL(mutex_lock)
CALL(mutex_unlock)
CALL(mutex_unlock_fair)
CALL(lock_lock)
CALL(lock_unlock)
CALL(lock_unlock_fair)
CALL(rwlock_rdlock)
CALL(rwlock_rdunlock)
CALL(rwlock_rdunlock_fair)
CALL(rwlock_wrlock)
CALL(rwlock_wrunlock)
CALL(rwlock_wrunlock_fair)

static void fair_unlocks(void)
{
	static const struct fair fair[] = {
		{&mutex, mutex_lock, mutex_unlock_fair, mutex_lock, mutex_unlock},
		{&lock, lock_lock, lock_unlock_fair, lock_lock, lock_unlock},
		{&rwlock, rwlock_rdlock, rwlock_rdunlock_fair, rwlock_wrlock, rwlock_wrunlock},
		{&rwlock, rwlock_wrlock, rwlock_wrunlock_fair, rwlock_wrlock, rwlock_wrunlock},
		{&rwlock, rwlock_wrlock, rwlock_wrunlock_fair, rwlock_rdlock, rwlock_rdunlock},
	};

	for (size_t i = 0; i < sizeof(fair) / sizeof(fair[0]); i++)
		serves_the_waiter(&fair[i]);
	mutex_is_free();
}

static void lock_is_held(void)
{
	errno = 77;
	EXPECT(!pound_lock_trylock(&lock));
	EXPECT(pound_lock_timedlock(&lock, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
	EXPECT(pound_lock_timedlock(&lock, CLOCK_REALTIME, &invalid) == EINVAL);
	EXPECT(errno == 77);
}

static void lock_is_free(void)
{
	errno = 77;
	pound_lock_lock(&lock);
	pound_lock_unlock(&lock);
	EXPECT(pound_lock_trylock(&lock));
	pound_lock_unlock(&lock);
	EXPECT(pound_lock_timedlock(&lock, CLOCK_REALTIME, &past) == 0);
	pound_lock_unlock(&lock);
	EXPECT(errno == 77);
}

static void locks(void)
{
	char error[128];

	for (size_t i = 0; pound_lock_info(i); i++) {
		EXPECT(!pound_lock_init(&lock, pound_lock_info(i)->name, error, sizeof(error)));
		lock_is_free();
		pound_lock_lock(&lock);
		elsewhere(lock_is_held);
		pound_lock_unlock(&lock);
		elsewhere(lock_is_free);
		pound_lock_lock(&lock);
		pound_lock_unlock_fair(&lock);
		elsewhere(lock_is_free);
	}
	/* Zeroed: the default. */
	lock = (pound_lock_t)POUND_LOCK_INIT;
	lock_is_free();
	pound_lock_lock(&lock);
	elsewhere(lock_is_held);
	pound_lock_unlock(&lock);
	elsewhere(lock_is_free);
	pound_lock_destroy(&lock);
	EXPECT(pound_lock_init(&lock, "nosuch", error, sizeof(error)) == EINVAL);
	EXPECT(!strcmp(error, "there is no lock 'nosuch'"));
	EXPECT(pound_lock_init(&lock, "nosuch", NULL, 0) == EINVAL);
}

static void rwlock_is_written(void)
{
	EXPECT(pound_rwlock_timedrdlock(&rwlock, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
	EXPECT(pound_rwlock_timedrdlock_again(&rwlock, CLOCK_REALTIME, &invalid) == EINVAL);
	EXPECT(!pound_rwlock_tryrdlock(&rwlock) && !pound_rwlock_trywrlock(&rwlock));
}

/* Readers that never leave: another one is refused before their count wraps. */
static void rwlocks_are_full(void)
{
	static const struct timespec far = {.tv_sec = 1 << 30};
	uint32_t readers = 0;

	while (readers <= 1u << 28 && !pound_rwlock_rdlock(&rwlock))
		readers++;
	EXPECT(readers == 1u << 27, "%u readers", readers);
	EXPECT(pound_rwlock_rdlock(&rwlock) == EAGAIN &&
	       pound_rwlock_rdlock_again(&rwlock) == EAGAIN);
	EXPECT(pound_rwlock_timedrdlock(&rwlock, CLOCK_MONOTONIC, &far) == EAGAIN);
	EXPECT(pound_rwlock_timedrdlock_again(&rwlock, CLOCK_MONOTONIC, &far) == EAGAIN);
	EXPECT(!pound_rwlock_tryrdlock(&rwlock) && !pound_rwlock_tryrdlock_again(&rwlock));
	EXPECT(!pound_rwlock_trywrlock(&rwlock), "a writer beside readers");
	pound_rwlock_rdunlock(&rwlock);
	EXPECT(!pound_rwlock_rdlock(&rwlock) && !pound_rwlock_tryrdlock(&rwlock));
}

static void rwlocks(void)
{
	for (size_t i = 0; pound_rwlock_info(i); i++) {
		EXPECT(!pound_rwlock_init(&rwlock, pound_rwlock_info(i)->name, NULL, 0));
		EXPECT(!pound_rwlock_rdlock(&rwlock) && pound_rwlock_tryrdlock(&rwlock));
		EXPECT(!pound_rwlock_rdlock_again(&rwlock) && !pound_rwlock_trywrlock(&rwlock));
		for (int held = 0; held < 3; held++)
			pound_rwlock_rdunlock(&rwlock);
		pound_rwlock_wrlock(&rwlock);
		elsewhere(rwlock_is_written);
		pound_rwlock_wrunlock(&rwlock);
	}
	EXPECT(pound_rwlock_init(&rwlock, "mcs", NULL, 0) == EINVAL);
	EXPECT(!pound_rwlock_init(&rwlock, "shfl_rw", NULL, 0));
	rwlocks_are_full();
}

static void events(void)
{
	EXPECT(count_of("abandon") == 0, "counted before anybody listened");
	pound_events_start();
	pound_mutex_lock(&mutex);
	elsewhere(mutex_is_held);
	pound_mutex_unlock(&mutex);
	EXPECT(count_of("abandon") == 2 && count_of("contended") == 2);
}

/* A policy of the program's own: youngest first, by a count of arrivals. */
static uint32_t count_up(void *context, const void *lock_bytes)
{
	(void)lock_bytes;
	return __atomic_fetch_add((uint32_t *)context, 1, __ATOMIC_RELAXED);
}

static uint32_t youngest_first(void *context, uint32_t shuffler, uint32_t waiter)
{
	(void)context, (void)shuffler;
	return UINT32_MAX - 1 - waiter;
}

/* Its notes count the arrivals; the order is the library's business. */
static uint32_t in_order(void *context, uint32_t shuffler, uint32_t waiter)
{
	(void)context, (void)shuffler, (void)waiter;
	return POUND_STAY;
}

/* Whether exactly @asked, of two counts, grows by a wait for @contended. */
static void expect_asked(pound_lock_t *contended, const uint32_t *asked, const uint32_t *other)
{
	const uint32_t before = *asked, before_other = *other;

	pound_lock_lock(contended);
	EXPECT(pound_lock_timedlock(contended, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
	pound_lock_unlock(contended);
	EXPECT(*asked == before + 1 && *other == before_other, "the lock has another policy");
}

static void own_policies(void)
{
	static uint32_t arrivals, others;
	static const struct pound_policy youngest = {count_up, youngest_first, &arrivals},
					 in_turn = {count_up, in_order, &others};
	pound_lock_t first, second;
	char error[128];

	EXPECT(pound_lock_init(&lock, "shfl,policy=mine", error, sizeof(error)) == EINVAL);
	EXPECT(!strcmp(error, "policy=mine: not one of fifo, numa, route, group, fair, occupancy"),
	       "%s", error);
	EXPECT(pound_policy_unregister("mine") == ENOENT);
	EXPECT(!pound_policy_register("mine", &in_turn) &&
	       !pound_policy_register("mine", &youngest) &&
	       !pound_policy_register("yours", &in_turn));
	EXPECT(!pound_lock_init(&first, "shfl,policy=mine", error, sizeof(error)), "%s", error);
	EXPECT(!pound_lock_init(&second, "shfl,policy=yours", error, sizeof(error)), "%s", error);
	expect_asked(&first, &arrivals, &others);
	expect_asked(&second, &others, &arrivals);
	/* Replaced and removed only when no lock has it. */
	EXPECT(pound_policy_register("mine", &in_turn) == EBUSY);
	EXPECT(pound_policy_unregister("mine") == EBUSY);
	pound_lock_destroy(&first);
	EXPECT(!pound_policy_register("mine", &in_turn));
	EXPECT(!pound_lock_init(&first, "shfl,policy=mine", NULL, 0));
	expect_asked(&first, &others, &arrivals);
	pound_lock_destroy(&first);
	pound_lock_destroy(&second);
	EXPECT(!pound_policy_unregister("mine") && pound_policy_unregister("mine") == ENOENT);
	EXPECT(pound_lock_init(&first, "shfl,policy=mine", NULL, 0) == EINVAL);
	EXPECT(!pound_policy_unregister("yours"));
}

static void wrong_policies(void)
{
	static const struct pound_policy policy = {count_up, in_order, NULL};
	static const char *const names[] = {
		"", "numa", "fifo", "a,b", "a=b", "a b", "a-name-that-is-longer-than-31-bytes"};
	char name[32];
	int count = 0, result;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		EXPECT(pound_policy_register(names[i], &policy) == EINVAL, "'%s'", names[i]);
	do {
		snprintf(name, sizeof(name), "policy-%d", count++);
		result = pound_policy_register(name, &policy);
	} while (!result && count < 100);
	EXPECT(result == ENOSPC && count > 16, "%d after %d", result, count);
}

static void shares(void)
{
	uint32_t outer, own = pound_thread_group();

	errno = 77;
	EXPECT(!pound_thread_tenant(1, 1));
	outer = pound_thread_group();
	EXPECT(!pound_thread_tenant(2, 1) && pound_thread_group() != outer);
	pound_thread_return(outer);
	EXPECT(pound_thread_group() == outer);
	pound_thread_return(UINT32_MAX); /* no group */
	pound_thread_return(own);
	EXPECT(pound_thread_group() == own);
	EXPECT(pound_thread_tenant(1, 0) == EINVAL);
	for (uint64_t id = 0; id < 62; id++)
		EXPECT(!pound_thread_tenant(id, 1 + (uint32_t)id) &&
		       !pound_thread_tenant(id, 1024));
	while (!pound_thread_tenant(UINT64_MAX, 1) && !pound_thread_tenant(UINT64_MAX - 1, 1))
		EXPECT(!pound_thread_tenant(1u << 20, 1), "tenants have no end");
	pound_thread_leave_tenant();
	pound_thread_weight(1);
	pound_thread_weight(0);
	EXPECT(errno == 77);
}

static void domain(void)
{
	/* As many domains as CPUs, and no more. */
	EXPECT(pound_domain() < (unsigned)sysconf(_SC_NPROCESSORS_CONF));
}

/* All CPUs that the process may use, each once. */
static void route(void)
{
	unsigned cpus[1024];
	cpu_set_t usable;
	size_t count = pound_route(cpus, sizeof(cpus) / sizeof(cpus[0]));

	EXPECT(!sched_getaffinity(0, sizeof(usable), &usable) &&
	       count == (size_t)CPU_COUNT(&usable));
	for (size_t i = 0; i < count; i++) {
		EXPECT(CPU_ISSET(cpus[i], &usable), "CPU %u", cpus[i]);
		CPU_CLR(cpus[i], &usable);
	}
	cpus[1] = 4711;
	EXPECT(pound_route(cpus, 1) == count && cpus[1] == 4711);
	(void)pound_route_file();
}

int main(void)
{
	limit();
	expect_part = "api";
	mutexes();
	fair_unlocks();
	locks();
	rwlocks();
	events();
	own_policies();
	wrong_policies();
	shares();
	domain();
	route();
	return 0;
}
