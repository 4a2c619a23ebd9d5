/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What clients (world/check/client.h) ask for, of a program of threads that runs: asserts.
 */
#ifndef POUNDLOCK_C11_CHECK_H
#define POUNDLOCK_C11_CHECK_H

#include <assert.h>
#include <stdlib.h>

#include "client.h"
#include "unseen.h"
#include "world.h"

#define C11_MEMORY 4096

extern _Alignas(64) char c11_shared[C11_MEMORY], c11_ghost[C11_MEMORY];

#define check_shared(T) ((T *)(void *)c11_shared)
#define check_ghost(T) ((T *)(void *)c11_ghost)
#define check_assert(condition) assert(condition)
#define check_renew_deadline() ((void)(c11_expired = false))
/* relaxed: orders nothing that the lock should */
#define check_add(p, value) (__atomic_add_fetch((p), (uint32_t)(value), __ATOMIC_RELAXED))

uint32_t check_busy_nodes(void);

/* Clients of CHECK_CLIENT_FORKS are not run here. */
#define check_fork() abort()
#define check_create_threads() abort()
#define check_wait_to_be_created() abort()

/* The names of events, which clients know. */
enum w_event {
#define EVENT(name, meaning) W_EVENT_##name,
#include "events.def"
#undef EVENT
	W_EVENTS
};

#endif
