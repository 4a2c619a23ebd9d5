/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The rules of waiting: how long a bounded spin lasts, what a thread learns from its spins, and how
 * a wait goes on afterwards. world/user and the simulator (world/sim) follow the same ones.
 *
 * Plain functions: no atomics, and no time.
 */
#ifndef POUNDLOCK_SPIN_H
#define POUNDLOCK_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#include "how.h"

/* The length of a bounded spin: about what it takes to sleep and be woken. */
#define W_SPIN_NANOSECONDS 5000
/* How long w_yield() sleeps; the kernel adds its timer slack, 50 us by default. */
#define W_YIELD_NANOSECONDS 50000

/* Whether a wait begins with a bounded spin; and whether it ends with that. */
static inline bool w_how_spins(enum w_how how)
{
	return how != W_SPIN && how != W_ONCE;
}

static inline bool w_how_returns(enum w_how how)
{
	return how >= W_BRIEF;
}

/*
 * How many threads of a process may be in a bounded spin at a time, of @cpus CPUs. More of them
 * would only keep holders from running.
 */
static inline uint32_t w_spinners_limit(uint32_t cpus)
{
	return cpus - 1;
}

/*
 * Spins of W_ORDERED. In a queue in order, a sleeper delays all waiters behind it by the time of a
 * wake-up. If they spin no longer than that, they sleep too: once one sleeps, all do. So a thread
 * that has its CPU to itself repeats its spin for each thread that may be before it, on another
 * CPU: a queue of sleepers then reaches it while it spins, and soon nobody sleeps. It does so twice
 * for each, since in a queue that prefers a domain others overtake it. Such a thread takes CPU time
 * from no other waiter, and is not counted among the spinners.
 *
 * A thread shares its CPU if another one has waited there since its own last wait. Since threads
 * alternate after whole time slices, it is assumed to share for W_SHARING_NANOSECONDS.
 */
#define W_SHARING_NANOSECONDS 100000000
#define W_SPIN_ROUNDS 2

/*
 * The number of bounded spins that a wait of @how has on an own CPU; 0: it is a counted one.
 * @spinners: w_spinners_limit().
 */
static inline uint32_t w_spin_rounds(enum w_how how, uint32_t spinners)
{
	return how == W_ORDERED ? W_SPIN_ROUNDS * spinners : 0;
}

/* The number of pauses after @pauses of them: a polite spin backs off, a rare one is one pause. */
static inline uint32_t w_spin_longer(enum w_how how, uint32_t pauses)
{
	return how == W_POLITE || how == W_RARE ? pauses + pauses / 2 + 1 : pauses;
}

/*
 * Spin history. A failed spin, for a lock whose holder does not run, costs as much as to sleep at
 * once, and keeps the CPU from threads with work. So a thread adapts its polite spins, those in a
 * queue and those for a signal, each kind separately: every failed spin shortens the budget by 1 /
 * W_SPIN_PARTS; a success restores half of the loss, so that spins that pay now and then remain
 * long.
 *
 * One in W_SPINS_WHOLE spins is whole, since a short spin cannot show whether a long one would have
 * succeeded. It is rare, since it costs most where it never pays: where holders give the CPU up, as
 * in stress-ng's mutex stressor. A new thread starts with the history of the thread that last
 * finished a spin, since many threads are too short-lived to learn. Other kinds of spins do not
 * adapt: their length matters to their locks. With W_ORDERED spins that adapt, ron_plock with 4
 * threads on 2 CPUs had a hundredth of its throughput.
 */
#define W_SPIN_PARTS 16
#define W_GLANCE_PARTS 1
#define W_SPINS_WHOLE 256
#define W_SPIN_HISTORIES 3 /* of W_POLITE, of W_QUEUED, and of W_SIGNAL */

struct w_spin_history {
	uint8_t parts_lost;
	uint8_t spins; /* modulo W_SPINS_WHOLE */
};

static inline bool w_spin_adapts(enum w_how how)
{
	return how >= W_POLITE;
}

/* The length of a spin of @how that does not adapt, in parts of W_SPIN_PARTS. */
static inline uint32_t w_spin_parts(enum w_how how)
{
	return how == W_GLANCE ? W_GLANCE_PARTS : W_SPIN_PARTS;
}

/* Index of the history that spins of @how have. */
static inline uint32_t w_spin_kind(enum w_how how)
{
	return (uint32_t)how - W_POLITE;
}

/* The budget of the next spin, in parts of W_SPIN_PARTS. */
static inline uint32_t w_spin_budget(struct w_spin_history *history)
{
	return W_SPIN_PARTS - (++history->spins % W_SPINS_WHOLE ? history->parts_lost : 0);
}

static inline void w_spin_learn(struct w_spin_history *history, bool failed)
{
	if (!failed)
		history->parts_lost /= 2;
	else if (history->parts_lost < W_SPIN_PARTS)
		history->parts_lost++;
}

/*
 * How a wait goes on after its bounded spin, between two reads. A real-time thread that spins or
 * calls sched_yield() keeps its CPU from every thread of lower priority; if the thread that it
 * waits for was preempted on that CPU, it would wait indefinitely. So each wait sleeps now and
 * then: a spinning one after W_SPIN_ROW pauses, which take milliseconds, and a yielding one every
 * time after W_YIELD_ROW yields. A world where a pause may be longer defines its own W_SPIN_ROW.
 */
#ifndef W_SPIN_ROW
#define W_SPIN_ROW (1u << 16)
#endif
#define W_YIELD_ROW (1u << 10)

enum w_next { W_NEXT_PAUSE, W_NEXT_SCHED_YIELD, W_NEXT_SLEEP };

/* @turns: how often it has gone on, this time included. */
static inline enum w_next w_spin_next(enum w_how how, uint32_t turns)
{
	if (how == W_SPIN && turns % W_SPIN_ROW)
		return W_NEXT_PAUSE;
	return how == W_TURN && turns < W_YIELD_ROW ? W_NEXT_SCHED_YIELD : W_NEXT_SLEEP;
}

#endif
