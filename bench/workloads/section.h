/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The critical sections of the papers' benchmarks: the accesses of a holder, and nothing else.
 * Plain C without libc, clock or threads, so that the native benchmark and the simulator compile
 * the same accesses. The driver provides memory, lock, threads and the work outside of the lock.
 * docs/benchmarks.md names the papers.
 *
 * A driver initialises the data once (section_size, section_fill). Each thread has its own random
 * state; it repeatedly draws an operation outside of the lock (section_draw) and performs it under
 * the lock (section_do). At the end, the driver checks the invariants (section_check).
 */
#ifndef BENCH_SECTION_H
#define BENCH_SECTION_H

#include <stddef.h>
#include <stdint.h>

#define SECTION_LINE 64 /* bytes; the data must be aligned to it */

enum section_kind {
	SECTION_NONE,  /* touches nothing */
	SECTION_WORDS, /* increments every element of an array of 4-byte integers */
	SECTION_MAP,   /* looks a key up in an AVL tree, inserts it, or removes it */
	SECTION_HASH,  /* looks up a key of a hash table with chains, or moves an entry */
};

struct section_settings {
	uint32_t kind;
	uint32_t words;   /* WORDS: the array's elements */
	uint32_t keys;    /* MAP, HASH: keys are from 0 to keys - 1; half are present at first */
	uint32_t buckets; /* HASH */
	uint32_t writes;  /* MAP, HASH: writes per 10,000 operations */
};

enum section_verb { SECTION_LOOK, SECTION_INSERT, SECTION_REMOVE, SECTION_MOVE, SECTION_INCREMENT };

struct section_operation {
	uint32_t verb;
	uint32_t key;
	uint32_t to; /* of a move */
};

/* The size of the data in bytes: more than 0. */
size_t section_size(const struct section_settings *settings);

/* Initialises the data in zeroed memory. The same seed gives the same data. */
void section_fill(const struct section_settings *settings, void *data, uint64_t seed);

/* The next operation of a thread whose random state, never 0, is @random. */
struct section_operation section_draw(const struct section_settings *settings, uint64_t *random);

/*
 * Performs the operation, under the lock. Returns the change of the number of entries: 1, 0 or -1.
 */
int section_do(const struct section_settings *settings, void *data,
	       struct section_operation operation);

/*
 * Checks the data after @operations operations that changed the number of entries by @net. Returns
 * the violated invariant, or NULL.
 */
const char *section_check(const struct section_settings *settings, const void *data,
			  uint64_t operations, int64_t net);

/* Uniform in @length ± @spread * @length; @spread is from 0 to 1, @length below 2^40. */
uint64_t section_vary(uint64_t length, double spread, uint64_t *random);

/* 64 pseudo-random bits (xorshift64*: Vigna, TOMS 2016); the state is never 0. */
static inline uint64_t section_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

/* Uniform from 0 to @below - 1, with a bias below @below / 2^32. */
static inline uint32_t section_below(uint64_t *state, uint32_t below)
{
	return (uint32_t)((section_random(state) >> 32) * below >> 32);
}

#endif
