/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The real-time writers that wait, and the priorities of real-time threads.
 *
 * A thread asks the kernel for its policy and priority when it is about to wait, and again only
 * after a call that may have changed them. Those calls are interposed for that purpose alone. They
 * do not see a raw system call, nor another process (chrt -p, RealtimeKit) that makes the first
 * thread of this process real-time.
 */
#define _GNU_SOURCE
#include "realtime.h"

#include <pthread.h>
#include <sched.h>

#include "kernel.h"
#include "real.h"

W_ATOMIC(uint32_t) realtime_changes;

/* ---- The calling thread's priority ---- */

#define PRIORITY_BITS 7 /* Linux has 1 to 99 */
#define PRIORITY ((1u << PRIORITY_BITS) - 1)

/* realtime_changes at the last question << PRIORITY_BITS | the answer; 0: never asked. */
static __thread uint32_t known __attribute__((tls_model("initial-exec")));

static bool is_realtime(long policy)
{
	policy &= ~SCHED_RESET_ON_FORK;
	return policy == SCHED_FIFO || policy == SCHED_RR;
}

static bool caller_is_realtime(void)
{
	return is_realtime(w_system_call(SYS_sched_getscheduler, 0, 0, 0, 0, 0, 0));
}

/* 0 if the thread is not real-time, or the kernel does not answer. */
static uint32_t ask_priority(void)
{
	struct sched_param param = {0};

	if (!caller_is_realtime() || w_system_call(SYS_sched_getparam, 0, (long)&param, 0, 0, 0, 0))
		return 0;
	return (uint32_t)param.sched_priority & PRIORITY;
}

static uint32_t own_priority(void)
{
	/* relaxed: as in realtime_is_possible() */
	uint32_t changes = w_load_relaxed(&realtime_changes) << PRIORITY_BITS;

	if (w_unlikely((known & ~PRIORITY) != changes))
		known = changes | ask_priority();
	return known & PRIORITY;
}

/* ---- The writers ---- */

#define WRITERS 64
#define LISTED (1u << PRIORITY_BITS)

/*
 * @who = fork generation << 32 | LISTED | priority. An entry of another generation is free: its
 * thread does not exist here. The priority is 0 until @lock is set.
 */
struct realtime_writer {
	W_ATOMIC(uint64_t) who;
	W_ATOMIC(uintptr_t) lock;
};

static struct realtime_writer writers[WRITERS];
/* Fork generation << 32 | the number of writers that found no free entry. */
static W_ATOMIC(uint64_t) unlisted;
static struct realtime_writer an_unlisted;

static uint64_t this_generation(void)
{
	return (uint64_t)w_fork_generation() << 32;
}

static bool is_of(uint64_t word, uint64_t generation)
{
	return (word ^ generation) >> 32 == 0;
}

static void count_unlisted(int by)
{
	uint64_t generation = this_generation(), seen = atomic_load(&unlisted), next;

	do
		next = (is_of(seen, generation) ? seen : generation) + (uint64_t)(int64_t)by;
	while (!atomic_compare_exchange_weak(&unlisted, &seen, next));
}

static bool claim(struct realtime_writer *writer, uint64_t generation)
{
	uint64_t seen = atomic_load(&writer->who);

	return !((seen & LISTED) && is_of(seen, generation)) &&
	       atomic_compare_exchange_strong(&writer->who, &seen, generation | LISTED);
}

struct realtime_writer *realtime_list(const void *lock)
{
	uint64_t generation = this_generation();
	uint32_t priority = own_priority();

	if (!priority)
		return NULL;
	for (struct realtime_writer *writer = writers; writer < writers + WRITERS; writer++) {
		if (!claim(writer, generation))
			continue;
		atomic_store(&writer->lock, (uintptr_t)lock);
		atomic_store(&writer->who, generation | LISTED | priority);
		return writer;
	}
	count_unlisted(1);
	return &an_unlisted;
}

void realtime_remove(struct realtime_writer *writer)
{
	if (writer == &an_unlisted)
		count_unlisted(-1);
	else
		atomic_store(&writer->who, 0);
}

/* Read twice: the entry may become another writer's in between. */
static bool bars(struct realtime_writer *writer, uintptr_t lock, uint64_t generation,
		 uint32_t priority)
{
	uint64_t who = atomic_load(&writer->who);

	return (who & PRIORITY) >= priority && is_of(who, generation) &&
	       atomic_load(&writer->lock) == lock && atomic_load(&writer->who) == who;
}

bool realtime_outranks(const void *lock)
{
	uint64_t generation = this_generation(), more = atomic_load(&unlisted);
	uint32_t priority = own_priority();

	/* Those without an entry may wait for this lock. */
	if (!priority || ((uint32_t)more && is_of(more, generation)))
		return false;
	for (struct realtime_writer *writer = writers; writer < writers + WRITERS; writer++)
		if (bars(writer, (uintptr_t)lock, generation, priority))
			return false;
	return true;
}

/* ---- Changes of the scheduling ---- */

static void note_change(void)
{
	/* relaxed, both: as in realtime_is_possible() */
	(void)w_fetch_add_relaxed(&realtime_changes, 2);
	(void)w_fetch_or_relaxed(&realtime_changes, 1);
}

/* A thread has, or is created with, @policy. */
static void note_policy(int policy)
{
	if (is_realtime(policy) || realtime_is_possible())
		note_change();
}

static void note_priority(void)
{
	if (realtime_is_possible())
		note_change();
}

void realtime_start(void)
{
	if (caller_is_realtime())
		note_change();
}

EXPORT int pthread_attr_setschedpolicy(pthread_attr_t *attr, int policy)
{
	int result;

	initialise();
	result = real.pthread_attr_setschedpolicy(attr, policy);
	if (!result)
		note_policy(policy);
	return result;
}

EXPORT int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *param)
{
	int result;

	initialise();
	result = real.pthread_setschedparam(thread, policy, param);
	if (!result)
		note_policy(policy);
	return result;
}

EXPORT int pthread_setschedprio(pthread_t thread, int priority)
{
	int result;

	initialise();
	result = real.pthread_setschedprio(thread, priority);
	if (!result)
		note_priority();
	return result;
}

EXPORT int sched_setscheduler(pid_t id, int policy, const struct sched_param *param)
{
	int result;

	initialise();
	result = real.sched_setscheduler(id, policy, param);
	if (!result)
		note_policy(policy);
	return result;
}

EXPORT int sched_setparam(pid_t id, const struct sched_param *param)
{
	int result;

	initialise();
	result = real.sched_setparam(id, param);
	if (!result)
		note_priority();
	return result;
}
