/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The model checker's functions for clients (client.h). The checker explores all executions that
 * the memory model allows. It reports the first one with a failed assertion, a data race, a use of
 * memory after its lifetime, a state from which the threads cannot end, or a fair execution without
 * an end.
 */
#ifndef POUNDLOCK_CHECK_H
#define POUNDLOCK_CHECK_H

#include "client.h"
#include "world.h"

#define check_shared(T) ((T *)(void *)CHECK_MEMORY)
#define check_ghost(T) ((T *)0x100000008000)

#define check_assert(condition) \
	((condition) ? (void)0  \
		     : check_engine->fail(__FILE__, __LINE__, "assertion failed: " #condition))

/*
 * Call this after the return of a function whose frame other threads could access. An access by
 * another thread that does not happen before this call is an error.
 */
__attribute__((__noinline__)) void check_returned(void);

/* Ends the lifetime of *@p. All accesses by other threads must happen before this call. */
#define check_ended(p) check_engine->ended(p, sizeof(*(p)))
#define check_renew_deadline() check_engine->renewed()
/* The number of nodes in use by all threads. */
#define check_busy_nodes() check_engine->busy_nodes()
#define check_outcome(slot, value) check_engine->outcome(slot, value)
/*
 * For numbers in check_ghost() that several threads change concurrently. check_add() returns the
 * new value; check_most() raises *@p to at least @value.
 */
#define check_add(p, value) (*(p) += (value))
static inline void check_most(uint32_t *p, uint32_t value)
{
	if (*p < value)
		*p = value;
}

/*
 * Declares *@p, of 4 or 8 bytes, as an object of which operations may access some bytes; call it
 * before the threads start. All other objects are always accessed at one size.
 */
#define check_mixed(p) check_engine->mixed(p, sizeof(*(p)))

/*
 * Declares *@p, which is 0 or 1 and only loaded and stored, relaxed, as a hint: no promise of the
 * lock may depend on its value. Call it before the threads start. Where all states of more than two
 * threads are explored, each load of it returns 0 or 1, whatever was stored, and stores to it are
 * no steps. These clients have all executions that the object itself allows, and more, in fewer
 * states. An access to *@p after its lifetime is not detected there.
 */
#define check_hint(p) check_engine->hint(p)

/*
 * Declares *@p as a queue; call it before the threads start. The first change of *@p by a thread
 * between its calls of check_acquires() and check_acquired() is its arrival among the waiters.
 */
#define check_queue(p) check_engine->queue(p)
#define check_acquires() check_engine->acquires()
#define check_acquired(has) check_engine->acquired(has)
/*
 * The value that the thread's arrival wrote, e.g. the address of its node; 0 if it does not wait.
 */
#define check_arrival(thread) check_engine->arrival(thread)

/*
 * Forks, and continues as the only thread of the child. The other threads are gone, except those
 * that wait to be created.
 */
#define check_fork() ((void)CHECK_DO("fork", CHECK_FORK, CHECK_RELAXED, NULL, 0, 0))
#define check_create_threads() \
	((void)CHECK_DO("create threads", CHECK_CREATE, CHECK_RELAXED, NULL, 0, 0))
#define check_wait_to_be_created() \
	((void)CHECK_DO("begin", CHECK_CREATED, CHECK_RELAXED, NULL, 0, 0))

/* Fences for litmus tests; locks do not use them. */
#define check_fence_acquire() \
	((void)CHECK_DO("fence_acquire", CHECK_FENCE, CHECK_ACQUIRE, NULL, 0, 0))
#define check_fence_release() \
	((void)CHECK_DO("fence_release", CHECK_FENCE, CHECK_RELEASE, NULL, 0, 0))

#endif
