/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The process's gates, in a table by the lock's address: a tour and a trial for a lock of a few
 * bytes, which needs them only while threads contend (shfl_ron.h).
 *
 * Promise: a gate is one lock's from gates_claim() until gates_forget(), and only the holder of the
 * lock claims it. Otherwise waiters of two locks could meet at one gate, and each wait for the
 * other's holder. A lock whose memory is reused without gates_forget() leaves its gate, as it is,
 * to the next lock at that address. A lock for which there is no room in its part of the table has
 * no gate.
 *
 *   owner = NULL: free | the table: claimed, not initialised yet | a lock: that lock's
 *
 *   NULL ──gates_claim()──▶ the table ──gates_claim(), initialised──▶ a lock
 *   a lock ──gates_forget()──▶ NULL
 */
#ifndef POUNDLOCK_GATES_H
#define POUNDLOCK_GATES_H

#include "part/stay.h"
#include "ron_ticket.h"
#include "trial.h"

/* Places in the table for the locks whose addresses have the same hash: a cache line of owners. */
#ifndef GATES_WAYS
#define GATES_WAYS 8u
#define GATES_SETS 64u
#endif
#define GATES_NOWHERE UINT32_MAX

struct gate {
	/* Written by the holder, rarely. */
	_Alignas(64) W_ATOMIC(uint32_t) mask; /* of `trial` */
	W_ATOMIC(uint32_t) long_turns;        /* whether threads take them */
	_Alignas(64) struct trial trial;      /* the holder's */
	_Alignas(64) struct ron_ticket lock;
};

struct gates {
	_Alignas(64) W_ATOMIC(const void *) owners[GATES_SETS * GATES_WAYS];
};

static inline size_t gate_size(void)
{
	return (offsetof(struct gate, lock) + ron_ticket_size() + 63) / 64 * 64;
}

/* The table; NULL if no lock had a gate yet. */
static inline struct gates *gates_table(void)
{
	return w_gates(0);
}

/* The table, made if there is none; NULL if there is no memory for it. */
static inline struct gates *gates_make(void)
{
	return w_gates(sizeof(struct gates) + (size_t)GATES_SETS * GATES_WAYS * gate_size());
}

static inline struct gate *gates_at(struct gates *gates, uint32_t place)
{
	return (struct gate *)((char *)(gates + 1) + place * gate_size());
}

/* The first of the places at which a gate of @lock may be. */
static inline uint32_t gates_first(const void *lock)
{
	return (uint32_t)(((uintptr_t)lock >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 40) %
	       GATES_SETS * GATES_WAYS;
}

/* Returns the place of @lock's gate in @gates, which may be NULL; GATES_NOWHERE if it has none. */
static inline uint32_t gates_place(struct gates *gates, const void *lock)
{
	const uint32_t first = gates_first(lock);

	for (uint32_t i = first; gates && i < first + GATES_WAYS; i++)
		/* [GATES-1] acquire: pairs with [GATES-3]; the gate as it was initialised */
		if (w_load_acquire(&gates->owners[i]) == lock)
			return i;
	return GATES_NOWHERE;
}

/* The gate of @lock, or NULL. */
static inline struct gate *gates_find(const void *lock)
{
	struct gates *gates = gates_table();
	const uint32_t place = gates_place(gates, lock);

	return place == GATES_NOWHERE ? NULL : gates_at(gates, place);
}

/* NULL -> the table. Returns whether the place was free. */
static inline bool gates_reserve(struct gates *gates, W_ATOMIC(const void *) *owner)
{
	const void *seen = NULL;

	/*
	 * relaxed: avoids taking the line that others read. [GATES-2] acquire: pairs with
	 * [GATES-4]; the former lock's use of the gate
	 */
	return !w_load_relaxed(owner) && w_compare_exchange_acquire(owner, &seen, gates);
}

/* As the holder of @lock, which has no gate: gives it one. NULL if there is no room. */
static W_SLOW struct gate *gates_claim(const void *lock)
{
	struct gates *gates = gates_make();
	const uint32_t first = gates_first(lock);
	struct gate *gate;

	for (uint32_t i = first; gates && i < first + GATES_WAYS; i++) {
		if (!gates_reserve(gates, &gates->owners[i]))
			continue;
		gate = gates_at(gates, i);
		ron_ticket_init(&gate->lock, ron_ticket_size());
		stay_init(&gate->lock.tour);
		gate->lock.tour.own = (struct tour_own){0};
		/* [GATES-3] release: pairs with [GATES-1] */
		w_store_release(&gates->owners[i], lock);
		return gate;
	}
	return NULL;
}

/*
 * Gives back the gate of @lock, which nobody uses any more. A gate that is held stays @lock's: the
 * program destroys a held lock, or one that a thread of the parent process held at a fork.
 */
static inline void gates_forget(const void *lock)
{
	struct gates *gates = gates_table();
	const uint32_t place = gates_place(gates, lock);

	/* relaxed: no other thread uses a lock that is being destroyed */
	if (place != GATES_NOWHERE && !w_load_relaxed(&gates_at(gates, place)->lock.tour.word))
		/* [GATES-4] release: pairs with [GATES-2] */
		w_store_release(&gates->owners[place], NULL);
}

#endif
