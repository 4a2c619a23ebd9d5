/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a client of the model checker is made of. A client is a small program of 1 to 8 threads; the checker runs it in
 * all ways that the memory model allows, and reports the first one in which something fails, a thread races, memory
 * is used after its life, or a thread can never come to its end.
 */
#ifndef POUNDLOCK_CHECK_H
#define POUNDLOCK_CHECK_H

#include "world.h"

struct check_client {
	const char *name;
	size_t shared; /* bytes at check_shared: zero at the start, and checked for races */
	size_t ghost;  /* bytes at check_ghost: zero at the start, the client's own notes, no memory of the threads */
	uint32_t threads;
	uint32_t flags;
	uint32_t bound;    /* the most switches away from a thread that could have gone on; 0: any number */
	uint32_t spurious; /* how often a sleep may end for no reason, in an execution */
	uint32_t domains;  /* the threads' locality domains go round so many; 0: 2 */
	uint32_t cpus;  /* w_cpu_count(): the threads' positions on the route go round so many; 0: as many as threads */
	uint32_t walks; /* so many random walks of each kind, instead of all states; 0: all states */
	void (*setup)(void); /* before the threads, may be NULL */
	void (*thread)(uint32_t self);
	void (*finish)(void);  /* after them, sees all they did; may be NULL */
	const char *demands;   /* events that must have happened, separated by spaces */
	const char *allowed;   /* all outcomes that must be found, a digit for each; NULL where none are noted */
	const char *forbidden; /* those of interest that must not be */
	const char *fails;     /* a piece of the message that this client must fail with; NULL: it must not fail */
};

/* Each access to an atomic object is remembered, and check_ended() must be ordered after it. */
#define CHECK_CLIENT_FREES 1u

/* The clients of a file, up to one without a name. */
extern const struct check_client check_clients[];

#define check_shared(T) ((T *)0x100000000000)
#define check_ghost(T) ((T *)0x100000008000)

#define check_assert(condition) \
	((condition) ? (void)0 : check_engine->fail(__FILE__, __LINE__, "does not hold: " #condition))

/* To be called once a function whose frame was visible to other threads has returned. */
__attribute__((noinline)) void check_returned(void);

/* Ends the life of the object: who accesses it later, or has not been seen to be done with it, is at fault. */
#define check_ended(p) check_engine->ended(p, sizeof(*(p)))
#define check_renew_deadline() check_engine->renewed()
/* How many nodes of all threads are in use. */
#define check_busy_nodes() check_engine->busy_nodes()
#define check_outcome(slot, value) check_engine->outcome(slot, value)

/* Forks: goes on as the child's one thread. The others are gone, but for those that wait to be created. */
#define check_fork() ((void)CHECK_DO("fork", CHECK_FORK, CHECK_RELAXED, NULL, 0, 0))
#define check_create_threads() ((void)CHECK_DO("create threads", CHECK_CREATE, CHECK_RELAXED, NULL, 0, 0))
#define check_wait_to_be_created() ((void)CHECK_DO("begin", CHECK_CREATED, CHECK_RELAXED, NULL, 0, 0))

/* Fences that locks do not use but litmus tests do. */
#define check_fence_acquire() ((void)CHECK_DO("fence_acquire", CHECK_FENCE, CHECK_ACQUIRE, NULL, 0, 0))
#define check_fence_release() ((void)CHECK_DO("fence_release", CHECK_FENCE, CHECK_RELEASE, NULL, 0, 0))

#endif
