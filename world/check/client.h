/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a client is made of: a small program of 1 to 8 threads that asks something of a lock. The model checker runs it in
 * all ways that the memory model allows (check.h); world/c11 makes a plain C11 program of it.
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
	uint32_t bound;    /* the most switches away from a thread that could have gone on; 0: any number */
	uint32_t spurious; /* how often a sleep may end for no reason, in an execution */
	uint32_t domains;  /* the CPUs' locality domains go round so many; 0: 2 */
	uint32_t cpus;   /* w_cpu_count(), also their places on the route: threads go round so many; 0: one for each */
	uint32_t moves;  /* how often threads move to another CPU, in an execution, as they ask where they are */
	uint32_t bypass; /* with CHECK_CLIENT_ORDER: how many later arrivals may acquire before a waiter */
	uint32_t since;  /* 1 + the event of a waiter from which on they count; 0: from its arrival on */
	uint32_t walks;  /* so many random walks of each kind, instead of all states; 0: all states */
	void (*setup)(void); /* before the threads, may be NULL */
	void (*thread)(uint32_t self);
	void (*finish)(void);    /* after them, sees all they did; may be NULL */
	void (*invariant)(void); /* holds after each step, of the newest values; may be NULL */
	const char *demands;     /* events that must have happened, separated by spaces */
	const char *allowed;     /* all outcomes that must be found, a digit for each; NULL where none are noted */
	const char *forbidden;   /* those of interest that must not be */
	const char *fails;       /* a piece of the message that this client must fail with; NULL: it must not fail */
};

/*
 * Waiters are passed by no more later arrivals than .bypass says. Explored with sequential consistency: who can yet not be
 * seen has not arrived.
 */
#define CHECK_CLIENT_ORDER 1u

/* Forks: no program of threads alone. */
#define CHECK_CLIENT_FORKS 2u

/* The clients of a file, up to one without a name. */
extern const struct check_client check_clients[];

#endif
