/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A client: a small program of 1 to 8 threads that tests a property of a lock. The model checker
 * explores all its executions under the memory model (check.h). world/c11 compiles it as a C11
 * program, and world/sim runs it on simulated machines.
 */
#ifndef POUNDLOCK_CHECK_CLIENT_H
#define POUNDLOCK_CHECK_CLIENT_H

#include <stddef.h>
#include <stdint.h>

struct check_client {
	const char *name;
	/* Bytes at check_shared(), the threads' memory: initially zero, and checked for races. */
	size_t shared;
	/*
	 * Bytes at check_ghost(), the client's own records: initially zero, outside of the memory
	 * model.
	 */
	size_t ghost;
	uint32_t threads;
	uint32_t flags;
	uint32_t bound;      /* most preemptions of threads that could continue; 0: unlimited */
	uint32_t spurious;   /* most spurious wake-ups per execution */
	uint32_t domains;    /* domains: CPU n is in domain n modulo this; 0: 2 */
	uint32_t cpus;       /* CPUs: thread n starts on CPU n modulo this; 0: one per thread */
	uint32_t moves;      /* most migrations per execution, at reads of the thread's CPU */
	uint32_t bypass;     /* CHECK_CLIENT_ORDER: most later arrivals that bypass a waiter */
	uint32_t since;      /* 1 + the waiter's event that starts the count; 0: its arrival */
	uint32_t walks;      /* random walks of each kind; 0: explore all states instead */
	void (*setup)(void); /* runs before the threads; may be NULL */
	void (*thread)(uint32_t self);
	void (*finish)(void);    /* runs after the threads and sees all their stores; may be NULL */
	void (*invariant)(void); /* runs after each step, on the newest values; may be NULL */
	const char *demands;     /* events that must occur in some execution, separated by spaces */
	const char *allowed;     /* the exact set of outcomes to find, a digit per slot; or NULL */
	const char *forbidden;   /* outcomes of interest that must not be found */
	const char *fails;       /* part of the expected error; NULL: the client must hold */
	const char *promised;    /* outcomes that are found with promises, and only then */
	const char *promised_fails; /* .fails with promises, if that differs */
};

/*
 * No waiter is bypassed by more than .bypass later arrivals. Explored under sequential consistency:
 * under weak memory, an arrival that is not yet visible could be bypassed.
 */
#define CHECK_CLIENT_ORDER 1u

/* The client forks, so it cannot run as a C11 program. */
#define CHECK_CLIENT_FORKS 2u

/* Explored a second time under the model with load buffering, as promises/NAME. */
#define CHECK_CLIENT_PROMISES 4u

/* Explored completely even if that takes minutes. */
#define CHECK_CLIENT_COMPLETE 8u

/*
 * Threads sleep by the specification of sleeping (src/machine/sleep.rs of the checker) where all
 * states are explored: a park is a wait, and each change that ends it needs a wake-up. At most one
 * thread may sleep on an object, except for wake-ups of all.
 */
#define CHECK_CLIENT_COMPOSED 16u

/* The clients of a file, up to one without a name. */
extern const struct check_client check_clients[];

#endif
