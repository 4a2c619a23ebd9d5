/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Shared by the clients of locks (lock.c) and of readers-writer locks (rw.c): the lock's function
 * names, its settings, and entries for each way of waiting. LOCK must be defined and the lock's
 * header included. The includer defines SHARED_BYTES, the size of a client's shared memory, and
 * struct notes, its private notes.
 */
#ifndef POUNDLOCK_CHECK_CLIENTS_H
#define POUNDLOCK_CHECK_CLIENTS_H

#include "check.h"
#include "entry.h"
#include "small.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define LOCK_FUNCTION(name) PASTE(LOCK, PASTE(_, name))

/* The policy of waiting in @way, with the settings of small.h. */
#define SMALL(lock, key, ...) .key = SMALL_##lock##_##key,
#define POLICY(way) \
	adjusted((struct LOCK_FUNCTION(policy)){.wait = (way), LOCK_FUNCTION(settings)(SMALL)})

#ifdef CHANGED
static void change(struct LOCK_FUNCTION(policy) * policy);
#endif

static inline struct LOCK_FUNCTION(policy) adjusted(struct LOCK_FUNCTION(policy) policy)
{
#ifdef ADJUST
	ADJUST(policy);
#endif
#ifdef CHANGED
	change(&policy);
#endif
	return policy;
}

/* Flags of a client in which each waiter is bypassed at most @bypasses times since the event. */
#define ORDERED_SINCE(event, bypasses) \
	.flags = CHECK_CLIENT_ORDER, .bypass = (bypasses), .since = 1 + W_EVENT_##event

#define TWICE(what) \
	what;       \
	what

#define WAYS(name, body)                                                \
	static __attribute__((unused)) void name##_spin(uint32_t self)  \
	{                                                               \
		const enum wait wait = WAIT_SPIN;                       \
		(void)self;                                             \
		body;                                                   \
	}                                                               \
	static __attribute__((unused)) void name##_yield(uint32_t self) \
	{                                                               \
		const enum wait wait = WAIT_YIELD;                      \
		(void)self;                                             \
		body;                                                   \
	}                                                               \
	static __attribute__((unused)) void name##_park(uint32_t self)  \
	{                                                               \
		const enum wait wait = WAIT_PARK;                       \
		(void)self;                                             \
		body;                                                   \
	}

#define ENTRIES(title, body, count, wanted, outcomes, first, last, ...)                       \
	ENTRY(title "/spin", body##_spin, count, wanted, outcomes, first, last, __VA_ARGS__), \
		ENTRY(title "/yield", body##_yield, count, wanted, outcomes, first, last,     \
		      __VA_ARGS__),                                                           \
		ENTRY(title "/park", body##_park, count, wanted, outcomes, first, last,       \
		      __VA_ARGS__)

#endif
