/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The services that clients (world/check/client.h) need, for threads of the simulated machine.
 * Every deadline of a client has expired when the client starts.
 */
#ifndef POUNDLOCK_SIM_CHECK_H
#define POUNDLOCK_SIM_CHECK_H

#include "client.h"
#include "unseen.h"
#include "world.h"

/* Enough for locks with a slot per CPU of a large machine. */
#define CHECK_BOX_ROOM 131072
/* As in world/check. The simulator keeps the common block elsewhere: behind any box here. */
#undef CHECK_COMMON
#define CHECK_COMMON (512 + CHECK_BOX_ROOM)

/* The memory of the running client. Ghost memory is outside of the simulated machine. */
extern void *sim_client_memory, *sim_client_ghost;
extern uint32_t sim_client_threads;

#define check_shared(T) ((T *)sim_client_memory)
#define check_ghost(T) ((T *)sim_client_ghost)
#define SIM_TEXT_(line) #line
#define SIM_TEXT(line) SIM_TEXT_(line)
#define check_assert(condition)                                            \
	((condition) ? (void)0                                             \
		     : sim_fail("does not hold: " #condition " (" __FILE__ \
				":" SIM_TEXT(__LINE__) ")"))
#define check_renew_deadline() ((void)0)
#define check_add(p, value) (*(p) += (value))
#define check_most(p, value) ((void)(p), (void)(value))
#define check_outcome(slot, value) ((void)(value))

static inline uint32_t check_busy_nodes(void)
{
	uint32_t busy = 0;

	for (uint32_t thread = 0; thread < sim_client_threads; thread++) {
		struct sim_self *self = sim_self_of(thread);

		for (uint32_t i = 0; i < W_NODES; i++)
			busy += w_load_relaxed(&self->nodes[i].status) != 0;
		for (struct sim_more_nodes *more = self->more; more; more = more->next)
			for (uint32_t i = 0; i < SIM_MORE_NODES; i++)
				busy += w_load_relaxed(&more->nodes[i].status) != 0;
	}
	return busy;
}

/* Clients with CHECK_CLIENT_FORKS are excluded here. */
#define check_fork() sim_fail("no client forks")
#define check_create_threads() ((void)0)
#define check_wait_to_be_created() ((void)0)

#endif
