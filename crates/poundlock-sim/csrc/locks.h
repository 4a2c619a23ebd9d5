/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The table of locks, and the records of their threads: mirrored in the crate's abi.rs, change both
 * together.
 */
#ifndef POUNDLOCK_SIM_LOCKS_H
#define POUNDLOCK_SIM_LOCKS_H

#include <stddef.h>
#include <stdint.h>

/* A key of a lock's specification: a uint32_t of its policy. */
struct sim_setting {
	const char *name; /* NULL: there are no more */
	size_t offset;
	uint32_t value, least, most;
	const char *names; /* of the values from 0 on, separated by spaces; empty: numbers */
};

/* One way of waiting. A node is what a holder keeps, or NULL. */
struct sim_ops {
	void *(*lock)(void *lock);
	void (*unlock)(void *lock, void *node);
	void (*lock_shared)(void *lock); /* NULL: no readers-writer lock */
	void (*unlock_shared)(void *lock);
};

struct sim_lock {
	const char *name;  /* NULL: there are no more */
	const char *alias; /* the lock that is meant; NULL: this one */
	size_t (*size)(void);
	void (*init)(void *lock, size_t size);
	struct sim_ops ops[3]; /* spin, yield, park */
	uint32_t wait;         /* index of the default */
	void *policy;
	const struct sim_setting *settings;
};

extern const struct sim_lock sim_locks[];
/* Up to a NULL. */
extern const char *const sim_event_names[];
extern const size_t sim_self_size;

/* Initialises a thread's record, of sim_self_size zeroed bytes. */
void sim_self_make(void *memory, uint32_t random, uint32_t weight, uint32_t group);
void sim_group_weight_set(uint32_t group, uint32_t weight);

#endif
