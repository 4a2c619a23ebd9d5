/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A client: a small program of 1 to 8 threads that tests a property of a lock. The model checker
 * explores all its executions under the memory model (check.h); world/c11 makes it a C11 program.
 */
#ifndef POUNDLOCK_CHECK_CLIENT_H
#define POUNDLOCK_CHECK_CLIENT_H

#include <stddef.h>
#include <stdint.h>

struct check_client {
	const char *name;
	size_t shared; /* bytes at check_shared: zero at the start, and checked for races */
	size_t ghost;  /* bytes at check_ghost: zero at the start, the client's own notes, no memory of the threads */
	uint32_t threads;
	uint32_t flags;
	uint32_t bound;    /* the most preemptions of threads that could continue; 0: unlimited */
	uint32_t spurious; /* the most spurious wake-ups in an execution */
	uint32_t domains;  /* number of domains: CPU n is in domain n modulo this; 0: 2 */
	uint32_t cpus;   /* w_cpu_count(), also their places on the route: threads go round so many; 0: one for each */
	uint32_t moves;  /* how often threads move to another CPU, in an execution, as they ask where they are */
	uint32_t bypass; /* with CHECK_CLIENT_ORDER: how many later arrivals may acquire before a waiter */
	uint32_t since;  /* 1 + the event of a waiter from which on they count; 0: from its arrival on */
	uint32_t walks;  /* so many random walks of each kind, instead of all states; 0: all states */
	void (*setup)(void); /* before the threads, may be NULL */
	void (*thread)(uint32_t self);
	void (*finish)(void);    /* after them, sees all they did; may be NULL */
	void (*invariant)(void); /* holds after each step, of the newest values; may be NULL */
	const char *demands;     /* events that must occur in some execution, separated by spaces */
	const char *allowed;     /* exactly the outcomes that must be found, a digit per figure; or NULL */
	const char *forbidden;   /* outcomes of interest that must not be found */
	const char *fails;       /* part of the error that must be reported; NULL: the client must hold */
};

/*
 * No waiter is bypassed by more than .bypass later arrivals. Explored under sequential consistency:
 * under weak memory, an arrival that is not yet visible could be bypassed.
 */
#define CHECK_CLIENT_ORDER 1u

/* The client forks, so it cannot run as a C11 program. */
#define CHECK_CLIENT_FORKS 2u

/* The clients of a file, up to one without a name. */
extern const struct check_client check_clients[];

#endif
