/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The clients of every lock of core/locks.def, tests/check/lock.c and rw.c, compiled for the
 * simulator: a table.
 */
#include "check.h"

void *sim_client_memory, *sim_client_ghost;
uint32_t sim_client_threads;

#define LOCK(lock, kind, way, promise, paper) \
	extern const struct check_client sim_clients_of_##lock[];
#define RWLOCK(lock, way, promise, paper) LOCK(lock, , way, promise, paper)
#include "locks.def"

/* The locks' names and clients; a name of NULL is the end. */
extern const struct sim_clients {
	const char *lock;
	const struct check_client *clients;
} sim_clients[];

#define LOCK(name, kind, way, promise, paper) {.lock = #name, .clients = sim_clients_of_##name},
#define RWLOCK(name, way, promise, paper) LOCK(name, , way, promise, paper)
const struct sim_clients sim_clients[] = {
#include "locks.def"
	{.lock = NULL},
};
