/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The services that clients (world/check/client.h) need, for a C11 program with threads. A failed
 * check_assert() is a failed assert().
 */
#ifndef POUNDLOCK_C11_CHECK_H
#define POUNDLOCK_C11_CHECK_H

#include <assert.h>
#include <stdlib.h>

#include "client.h"
#include "unseen.h"
#include "world.h"

#define C11_MEMORY 4096
#define C11_OUTCOMES 8

extern _Alignas(64) char c11_ghost[C11_MEMORY];

#define check_shared(T) ((T *)(void *)CHECK_MEMORY)
#define check_ghost(T) ((T *)(void *)c11_ghost)
#define check_assert(condition) assert(condition)
#define check_renew_deadline() ((void)(c11_expired = false))
/* relaxed: must not provide an order that the lock has to provide */
#define check_add(p, value) (__atomic_add_fetch((p), (uint32_t)(value), __ATOMIC_RELAXED))

static inline void check_most(uint32_t *p, uint32_t value)
{
	uint32_t seen = __atomic_load_n(p, __ATOMIC_RELAXED);

	/* relaxed: as above */
	while (seen < value && !__atomic_compare_exchange_n(p, &seen, value, false,
							    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* The outcome of the run. main.c compares it with those that the client allows. */
extern uint64_t c11_outcomes[C11_OUTCOMES];
#define check_outcome(slot, value) ((void)(c11_outcomes[slot] = (value)))

uint32_t check_busy_nodes(void);

/* Clients with CHECK_CLIENT_FORKS are excluded here. */
#define check_fork() abort()
#define check_create_threads() abort()
#define check_wait_to_be_created() abort()

/* Clients refer to events by these names. */
enum w_event {
#define EVENT(name, meaning) W_EVENT_##name,
#include "events.def"
#undef EVENT
	W_EVENTS
};

#endif
