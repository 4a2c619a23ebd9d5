/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * How a waiter waits (w_wait_acquire() of world/README.md). The order matters: waits from W_BRIEF
 * on are bounded.
 */
#ifndef POUNDLOCK_HOW_H
#define POUNDLOCK_HOW_H

enum w_how {
	W_SPIN,    /* only pause */
	W_YIELD,   /* spin for a bounded time, then yield the CPU between reads */
	W_TURN,    /* as W_YIELD, for a waiter that others wait for: it must return at once */
	W_BRIEF,   /* spin for a bounded time */
	W_ONCE,    /* read once */
	W_ORDERED, /* as W_BRIEF, where a sleeper delays the others; longer on an own CPU */
	W_GLANCE,  /* as W_BRIEF, for a small part of the time */
	W_RARE,    /* as W_BRIEF, but reads only at the beginning and at the end */
	W_POLITE,  /* as W_BRIEF with growing pauses, for a word that its holder writes; adaptive */
	W_QUEUED,  /* as W_BRIEF, for a waiter with others before it; adaptive */
	W_SIGNAL,  /* as W_BRIEF, for a condition that another thread will make true; adaptive */
};

#endif
