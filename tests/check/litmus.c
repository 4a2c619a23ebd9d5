/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Litmus tests of the model checker's memory against RC11. Each test lists all allowed outcomes,
 * one digit for each register, and forbidden ones of interest. The explorer must meet exactly the
 * allowed outcomes, and those of load buffering as well with promises (ENTRY_LB). A comment marks
 * each test in which this memory differs from RC11.
 */
#include <stddef.h>

#include "check.h"

struct memory {
	W_ATOMIC(uint32_t) x, y, z;
	uint32_t plain;
	W_ATOMIC(uint32_t) word; /* of mixed sizes in the tests mixed_ */
};

#define m check_shared(struct memory)
#define X (&m->x)
#define Y (&m->y)
#define Z (&m->z)
#define WORD (&m->word)
#define LOW ((uint8_t *)WORD)
#define HIGH ((uint16_t *)WORD + 1)

#define WRITE(p, v) w_store_relaxed(p, v)
#define PUBLISH(p, v) w_store_release(p, v)
#define READ(slot, p) check_outcome(slot, w_load_relaxed(p))
#define ACQUIRE(slot, p) check_outcome(slot, w_load_acquire(p))
#define FINALLY(slot, p) check_outcome(slot, w_load_relaxed(p))
#define FENCE w_fence_seq_cst()
#define RELEASE_FENCE check_fence_release()
#define ACQUIRE_FENCE check_fence_acquire()
#define SWAP(slot, p, v) check_outcome(slot, w_exchange_relaxed(p, v))
#define CAS(slot, p, old, new, order)                                              \
	({                                                                         \
		uint32_t seen_ = (old);                                            \
		check_outcome(slot, w_compare_exchange_##order(p, &seen_, (new))); \
	})
#define PLAINLY(p) (*(p))
/* The value of the word with these parts, and the parts of one. */
#define PARTS(low, high) ((uint32_t)(low) | (uint32_t)(high) << 16)
#define READ_PARTS(slot_low, slot_high, read)            \
	({                                               \
		uint32_t word_ = (read);                 \
		check_outcome(slot_low, (uint8_t)word_); \
		check_outcome(slot_high, (word_ >> 16)); \
	})

/*
 * TEST(name, t0, t1, t2, t3) defines a test's function from the statements of up to four threads;
 * unused threads are empty. ENTRY defines its client.
 */
#define TEST(test, t0, t1, t2, t3)      \
	static void test(uint32_t self) \
	{                               \
		switch (self) {         \
		case 0: {               \
			t0;             \
		} break;                \
		case 1: {               \
			t1;             \
		} break;                \
		case 2: {               \
			t2;             \
		} break;                \
		case 3: {               \
			t3;             \
		} break;                \
		}                       \
	}
#define ENTRY(test, count, allows, forbids)                                                       \
	{                                                                                         \
		.name = #test, .shared = sizeof(struct memory), .threads = count, .thread = test, \
		.flags = CHECK_CLIENT_PROMISES, .allowed = allows, .forbidden = forbids           \
	}
#define ENTRY_END(test, count, last, allows, forbids)                                             \
	{                                                                                         \
		.name = #test, .shared = sizeof(struct memory), .threads = count, .thread = test, \
		.flags = CHECK_CLIENT_PROMISES, .finish = last, .allowed = allows,                \
		.forbidden = forbids                                                              \
	}
#define ENTRY_FAILS(test, count, what)                                                            \
	{                                                                                         \
		.name = #test, .shared = sizeof(struct memory), .threads = count, .thread = test, \
		.flags = CHECK_CLIENT_PROMISES, .fails = what                                     \
	}

/* A test that has the outcomes @cycles of load buffering with promises, and only then. */
#define ENTRY_LB(test, count, allows, cycles)                                                     \
	{                                                                                         \
		.name = #test, .shared = sizeof(struct memory), .threads = count, .thread = test, \
		.flags = CHECK_CLIENT_PROMISES, .allowed = allows, .promised = cycles             \
	}
#define ENTRY_MIXED(test, count, last, allows, forbids)                                           \
	{                                                                                         \
		.name = #test, .shared = sizeof(struct memory), .threads = count, .thread = test, \
		.setup = mix, .finish = last, .allowed = allows, .forbidden = forbids             \
	}
/* As ENTRY_LB, of a word of mixed sizes. */
#define ENTRY_MIXED_LB(test, count, allows, cycles)                                               \
	{                                                                                         \
		.name = #test, .shared = sizeof(struct memory), .threads = count, .thread = test, \
		.setup = mix, .flags = CHECK_CLIENT_PROMISES, .allowed = allows,                  \
		.promised = cycles                                                                \
	}
#define ENTRY_HINT(test, count, allows, what)                                                     \
	{                                                                                         \
		.name = #test, .shared = sizeof(struct memory), .threads = count, .thread = test, \
		.setup = hint, .allowed = allows, .fails = what                                   \
	}

/* Store buffering. */
TEST(sb, WRITE(X, 1); READ(0, Y), WRITE(Y, 1); READ(1, X), , )
TEST(sb_release_acquire, PUBLISH(X, 1); ACQUIRE(0, Y), PUBLISH(Y, 1); ACQUIRE(1, X), , )
TEST(sb_fences, WRITE(X, 1); FENCE; READ(0, Y), WRITE(Y, 1); FENCE; READ(1, X), , )
TEST(sb_weak_fences, WRITE(X, 1); w_fence_acq_rel(); READ(0, Y), WRITE(Y, 1); w_fence_acq_rel();
     READ(1, X), , )
TEST(sb_one_fence, WRITE(X, 1); FENCE; READ(0, Y), WRITE(Y, 1); READ(1, X), , )
/* Read-modify-writes are not fences: the outcomes of acquire-release fences. */
TEST(sb_updates, (void)w_exchange_acq_rel(X, 1); READ(0, Y), (void)w_exchange_acq_rel(Y, 1);
     READ(1, X), , )

/* Message passing. */
TEST(mp, WRITE(X, 1); WRITE(Y, 1), READ(0, Y); READ(1, X), , )
TEST(mp_release_only, WRITE(X, 1); PUBLISH(Y, 1), READ(0, Y); READ(1, X), , )
TEST(mp_acquire_only, WRITE(X, 1); WRITE(Y, 1), ACQUIRE(0, Y); READ(1, X), , )
TEST(mp_release_acquire, WRITE(X, 1); PUBLISH(Y, 1), ACQUIRE(0, Y); READ(1, X), , )
TEST(mp_fences, WRITE(X, 1); check_fence_release(); WRITE(Y, 1), READ(0, Y); check_fence_acquire();
     READ(1, X), , )
TEST(mp_release_fence_acquire, WRITE(X, 1); check_fence_release(); WRITE(Y, 1), ACQUIRE(0, Y);
     READ(1, X), , )
TEST(mp_release_acquire_fence, WRITE(X, 1); PUBLISH(Y, 1), READ(0, Y); check_fence_acquire();
     READ(1, X), , )
TEST(mp_sc_fences, WRITE(X, 1); FENCE; WRITE(Y, 1), READ(0, Y); FENCE; READ(1, X), , )
TEST(mp_weak_fences, WRITE(X, 1); w_fence_acq_rel(); WRITE(Y, 1), READ(0, Y); w_fence_acq_rel();
     READ(1, X), , )
TEST(mp_fence_too_early, check_fence_release(); WRITE(X, 1); WRITE(Y, 1), ACQUIRE(0, Y);
     READ(1, X), , )

/*
 * Load buffering. RC11 forbids 11, since program order and reads-from may have no cycle; C++ allows
 * it, and so does the model with promises.
 */
TEST(lb, READ(0, Y); WRITE(X, 1), READ(1, X); WRITE(Y, 1), , )
/* One thread's order is not enough: the other may perform its store first. */
TEST(lb_one_acquire, ACQUIRE(0, Y); WRITE(X, 1), READ(1, X); WRITE(Y, 1), , )
TEST(lb_one_release, READ(0, Y); PUBLISH(X, 1), READ(1, X); WRITE(Y, 1), , )
TEST(lb_one_fence, READ(0, Y); ACQUIRE_FENCE; WRITE(X, 1), READ(1, X); WRITE(Y, 1), , )
TEST(lb_acquires, ACQUIRE(0, Y); WRITE(X, 1), ACQUIRE(1, X); WRITE(Y, 1), , )
TEST(lb_releases, READ(0, Y); PUBLISH(X, 1), READ(1, X); PUBLISH(Y, 1), , )
TEST(lb_release_acquire, READ(0, Y); PUBLISH(X, 1), ACQUIRE(1, X); WRITE(Y, 1), , )
TEST(lb_fences, READ(0, Y); ACQUIRE_FENCE; WRITE(X, 1), READ(1, X); RELEASE_FENCE; WRITE(Y, 1), , )
/* A store of the value that was read, in one thread or in both: out of thin air. */
TEST(lb_data, uint32_t seen = w_load_relaxed(Y); check_outcome(0, seen); WRITE(X, seen), READ(1, X);
     WRITE(Y, 1), , )
TEST(lb_data_both, uint32_t seen = w_load_relaxed(Y); check_outcome(0, seen);
     WRITE(X, seen), uint32_t seen = w_load_relaxed(X); check_outcome(1, seen); WRITE(Y, seen), , )
/* Stores that only some values lead to, and one that all values lead to. */
TEST(lb_control_both, uint32_t seen = w_load_relaxed(Y); check_outcome(0, seen);
     if (seen) WRITE(X, 1), uint32_t seen = w_load_relaxed(X); check_outcome(1, seen);
     if (seen) WRITE(Y, 1), , )
TEST(lb_control, uint32_t seen = w_load_relaxed(Y); check_outcome(0, seen);
     if (seen) WRITE(X, 1), READ(1, X); WRITE(Y, 1), , )
TEST(lb_always, uint32_t seen = w_load_relaxed(Y); check_outcome(0, seen); if (seen) WRITE(X, 1);
     else WRITE(X, 1), uint32_t seen = w_load_relaxed(X); check_outcome(1, seen);
     WRITE(Y, seen), , )
/* A store that passes two reads. */
TEST(lb_two_reads, READ(0, Y); READ(1, Z); WRITE(X, 1), READ(2, X); WRITE(Z, 1); PUBLISH(Y, 1), , )
/* A read of the stored location stays before the store: it does not read the store's value. */
TEST(lb_coherent, READ(0, Y); READ(2, X); WRITE(X, 1), READ(1, X); PUBLISH(Y, 1), , )
/* Three threads in a cycle. */
TEST(lb_three, READ(0, Z); WRITE(X, 1), READ(1, X); WRITE(Y, 1), READ(2, Y); WRITE(Z, 1), )
/* A read-modify-write is performed first, or passed. */
TEST(lb_swap, READ(0, Y); SWAP(2, X, 1), READ(1, X); PUBLISH(Y, 1), , )
TEST(lb_cas, READ(0, Y); CAS(2, X, 0, 1, acquire), READ(1, X); PUBLISH(Y, 1), , )
TEST(lb_after_add, check_outcome(0, w_fetch_add_relaxed(Y, 1)); WRITE(X, 1), READ(1, X);
     PUBLISH(Y, 1), , )

/* Coherence. */
TEST(corr, WRITE(X, 1), WRITE(X, 2), READ(0, X); READ(1, X), READ(2, X); READ(3, X))
TEST(corr_one, WRITE(X, 1); WRITE(X, 2), READ(0, X); READ(1, X), , )
TEST(cowr, WRITE(X, 1); READ(0, X), WRITE(X, 2), , )
TEST(corw, READ(0, X); WRITE(X, 1), WRITE(X, 2), , )
TEST(coww, WRITE(X, 1); WRITE(X, 2), , , )
/* A store inserted before one that was made earlier. */
TEST(two_plus_two_w, WRITE(X, 1); WRITE(Y, 2), WRITE(Y, 1); WRITE(X, 2), , )
TEST(two_plus_two_w_release, PUBLISH(X, 1); PUBLISH(Y, 2), PUBLISH(Y, 1); PUBLISH(X, 2), , )
TEST(two_plus_two_w_fences, WRITE(X, 1); FENCE; WRITE(Y, 2), WRITE(Y, 1); FENCE; WRITE(X, 2), , )

/* Independent reads of independent writes. */
TEST(iriw, WRITE(X, 1), WRITE(Y, 1), ACQUIRE(0, X); READ(1, Y), ACQUIRE(2, Y); READ(3, X))
TEST(iriw_release, PUBLISH(X, 1), PUBLISH(Y, 1), ACQUIRE(0, X); ACQUIRE(1, Y), ACQUIRE(2, Y);
     ACQUIRE(3, X))
TEST(iriw_fences, WRITE(X, 1), WRITE(Y, 1), READ(0, X); FENCE; READ(1, Y), READ(2, Y); FENCE;
     READ(3, X))

/* Write-to-read causality, and ISA2: release and acquire are transitive. */
TEST(wrc, WRITE(X, 1), READ(0, X); PUBLISH(Y, 1), ACQUIRE(1, Y); READ(2, X), )
TEST(wrc_release, PUBLISH(X, 1), ACQUIRE(0, X); PUBLISH(Y, 1), ACQUIRE(1, Y); READ(2, X), )
TEST(wrc_relaxed, WRITE(X, 1), READ(0, X); WRITE(Y, 1), READ(1, Y); READ(2, X), )
TEST(isa2, WRITE(X, 1); PUBLISH(Y, 1), ACQUIRE(0, Y); PUBLISH(Z, 1), ACQUIRE(1, Z); READ(2, X), )
TEST(isa2_relaxed, WRITE(X, 1); PUBLISH(Y, 1), ACQUIRE(0, Y); WRITE(Z, 1), ACQUIRE(1, Z);
     READ(2, X), )
/* R and S: a store against a fence, and against an acquire. */
TEST(r_fences, WRITE(X, 1); FENCE; WRITE(Y, 1), WRITE(Y, 2); FENCE; READ(0, X), , )
TEST(s_release_acquire, WRITE(X, 2); PUBLISH(Y, 1), ACQUIRE(0, Y); WRITE(X, 1), , )
TEST(s_relaxed, WRITE(X, 2); WRITE(Y, 1), READ(0, Y); WRITE(X, 1), , )

/* Release sequences. A read-modify-write of any order and any thread continues one. */
TEST(sequence_update, WRITE(X, 1); PUBLISH(Y, 1), (void)w_fetch_add_relaxed(Y, 1), ACQUIRE(0, Y);
     READ(1, X), )
/* A store of the same thread continues one in C11 and RC11, but not in C++20, C23 and here. */
TEST(sequence_store, WRITE(X, 1); PUBLISH(Y, 1); WRITE(Y, 2), ACQUIRE(0, Y); READ(1, X), , )
/* A store of another thread ends a release sequence. */
TEST(sequence_broken, WRITE(X, 1); PUBLISH(Y, 1), WRITE(Y, 2), ACQUIRE(0, Y); READ(1, X), )
/* The second update continues the first's sequence: a thread that reads it acquires both. */
TEST(sequence_two, WRITE(X, 1); (void)w_fetch_add_release(Y, 1), WRITE(Z, 1);
     (void)w_fetch_add_release(Y, 1), ACQUIRE(0, Y); READ(1, X); READ(2, Z), )

TEST(sequence_of_three, WRITE(X, 1);
     PUBLISH(Y, 1), (void)w_fetch_add_relaxed(Y, 1), (void)w_fetch_add_relaxed(Y, 1), ACQUIRE(0, Y);
     READ(1, X))
/* As sequence_store: C11 and RC11 forbid 30; C++20 and C23 allow it. */
TEST(sequence_store_update, WRITE(X, 1); PUBLISH(Y, 1);
     WRITE(Y, 2), (void)w_fetch_add_relaxed(Y, 1), ACQUIRE(0, Y); READ(1, X), )
TEST(sequence_fences, WRITE(X, 1); RELEASE_FENCE;
     WRITE(Y, 1), (void)w_fetch_add_relaxed(Y, 1), READ(0, Y); ACQUIRE_FENCE; READ(1, X), )
TEST(sequence_two_heads, WRITE(X, 1); PUBLISH(Y, 1), WRITE(Z, 1);
     CAS(3, Y, 1, 2, release), ACQUIRE(0, Y); READ(1, X); READ(2, Z), )

/* Fences in tests of three and four threads. */
TEST(rwc_fences, WRITE(X, 1), READ(0, X); FENCE; READ(1, Y), WRITE(Y, 1); FENCE; READ(2, X), )
TEST(w_rwc_fences, WRITE(X, 1); PUBLISH(Z, 1), ACQUIRE(0, Z); FENCE; READ(1, Y), WRITE(Y, 1); FENCE;
     READ(2, X), )
TEST(w_rwc_relaxed, WRITE(X, 1); WRITE(Z, 1), READ(0, Z); FENCE; READ(1, Y), WRITE(Y, 1); FENCE;
     READ(2, X), )
TEST(sb_three_fences, WRITE(X, 1); FENCE; READ(0, Y), WRITE(Y, 1); FENCE; READ(1, Z), WRITE(Z, 1);
     FENCE; READ(2, X), )
TEST(sb_two_of_three_fences, WRITE(X, 1); FENCE; READ(0, Y), WRITE(Y, 1); READ(1, Z), WRITE(Z, 1);
     FENCE; READ(2, X), )
TEST(r_one_fence, WRITE(X, 1); FENCE; WRITE(Y, 1), WRITE(Y, 2); READ(0, X), , )
TEST(s_fences, WRITE(X, 2); FENCE; WRITE(Y, 1), READ(0, Y); FENCE; WRITE(X, 1), , )
TEST(iriw_one_fence, WRITE(X, 1), WRITE(Y, 1), ACQUIRE(0, X); FENCE; READ(1, Y), ACQUIRE(2, Y);
     READ(3, X))
TEST(isa2_fences, WRITE(X, 1); RELEASE_FENCE; WRITE(Y, 1), READ(0, Y); ACQUIRE_FENCE; RELEASE_FENCE;
     WRITE(Z, 1), READ(1, Z); ACQUIRE_FENCE; READ(2, X), )
TEST(isa2_no_acquire_fence, WRITE(X, 1); RELEASE_FENCE; WRITE(Y, 1), READ(0, Y); RELEASE_FENCE;
     WRITE(Z, 1), READ(1, Z); ACQUIRE_FENCE; READ(2, X), )
TEST(mp_sc_and_acquire_fence, WRITE(X, 1); FENCE; WRITE(Z, 1); WRITE(Y, 1), READ(0, Y);
     ACQUIRE_FENCE; READ(1, X); READ(2, Z), , )
TEST(fences_in_a_row, WRITE(X, 1); FENCE; FENCE, FENCE; READ(0, X); FENCE; READ(1, Y), WRITE(Y, 1);
     FENCE; READ(2, X), )
/* A store after a fence comes after all stores that the fence has made visible. */
TEST(store_after_fence, WRITE(X, 1); FENCE; READ(0, Y), WRITE(Y, 1); FENCE; WRITE(X, 2);
     READ(1, X), , )
/* Z6 with a relaxed store after an update: nothing orders the two stores to X. */
TEST(z6_update, WRITE(X, 1); PUBLISH(Y, 1), (void)w_fetch_add_relaxed(Y, 2);
     WRITE(Z, 1), ACQUIRE(0, Z); FENCE; WRITE(X, 2); READ(1, X), )

/* Read-modify-writes. */
TEST(store_before_swap, WRITE(X, 1), SWAP(0, X, 3), WRITE(X, 2), )
TEST(stores_and_two_swaps, WRITE(X, 1), SWAP(0, X, 3), SWAP(1, X, 4), WRITE(X, 2))
TEST(compare_exchange_of_store, CAS(0, X, 0, 1, relaxed), WRITE(X, 2), CAS(1, X, 2, 3, relaxed), )
TEST(compare_exchange_stale, WRITE(X, 1); PUBLISH(Y, 1), READ(0, Y); CAS(1, X, 0, 2, relaxed), , )
TEST(compare_exchange_acquires, WRITE(X, 1); PUBLISH(Y, 1), CAS(0, Y, 1, 2, acquire);
     READ(1, X), , )
TEST(swap_one_fence, SWAP(2, X, 1); FENCE; READ(0, Y), SWAP(3, Y, 1); READ(1, X), , )
TEST(lb_updates, READ(0, Y); (void)w_fetch_add_relaxed(X, 1), READ(1, X);
     (void)w_fetch_add_relaxed(Y, 1), , )
TEST(corw_three, WRITE(X, 1); READ(0, X), WRITE(X, 2); READ(1, X), WRITE(X, 3); READ(2, X), )
TEST(updates, (void)w_fetch_add_relaxed(X, 1), (void)w_fetch_add_relaxed(X, 1),
     (void)w_fetch_add_relaxed(X, 1), )
TEST(updates_read, check_outcome(0, w_fetch_add_relaxed(X, 1)),
     check_outcome(1, w_fetch_add_relaxed(X, 1)), , )
/* No store comes between an update and the store that it read. */
TEST(update_atomic, check_outcome(0, w_exchange_relaxed(X, 1)), WRITE(X, 2); READ(1, X), , )
static void compare_exchange(uint32_t self)
{
	uint32_t seen = 0;

	check_outcome(2 * self, w_compare_exchange_acq_rel(X, &seen, self + 1));
	check_outcome(2 * self + 1, seen);
}
/* A failed compare-exchange is a relaxed load: it does not acquire. */
static void compare_exchange_failed(uint32_t self)
{
	uint32_t seen = 0;

	if (self == 0) {
		WRITE(X, 1);
		PUBLISH(Y, 1);
	} else {
		check_outcome(0, w_compare_exchange_acquire(Y, &seen, 2));
		READ(1, X);
	}
}
TEST(bits, (void)w_fetch_or_relaxed(X, 1), (void)w_fetch_or_relaxed(X, 2),
     (void)w_fetch_and_relaxed(X, ~1u), )

/* Waits. A wait may miss values that are overwritten, and is a deadlock if no store can end it. */
TEST(wait_acquires, WRITE(X, 1); PUBLISH(Y, 1), check_outcome(0, w_await_acquire(Y, VAL != 0));
     READ(1, X), , )
TEST(wait_misses, WRITE(X, 1); WRITE(X, 2), (void)w_await_acquire(X, VAL == 1), , )
TEST(wait_for_nothing, WRITE(X, 1), (void)w_await_acquire(X, VAL == 2), , )
TEST(wait_brief, WRITE(X, 1), check_outcome(0, w_wait_acquire(X, VAL == 1, W_BRIEF, NULL)), , )
TEST(livelock, WRITE(X, 1), while (!w_load_relaxed(Y)) w_yield(), , )
TEST(yielding, WRITE(X, 1), while (!w_load_relaxed(X)) w_yield(), , )
static struct w_deadline deadline;
TEST(wait_deadline, WRITE(X, 1), check_outcome(0, w_wait_acquire(X, VAL == 2, W_SPIN, &deadline));
     check_outcome(1, w_expired(&deadline)), , )

/* Sleeping. */
TEST(park, WRITE(X, 1); w_unpark(X), while (!w_load_relaxed(X)) w_park(X, 0, NULL), , )
TEST(park_not_woken, WRITE(X, 1), while (!w_load_relaxed(X)) w_park(X, 0, NULL), , )
TEST(park_one_of_two, WRITE(X, 1); w_unpark(X), while (!w_load_relaxed(X)) w_park(X, 0, NULL),
				   while (!w_load_relaxed(X)) w_park(X, 0, NULL), )
TEST(park_all, WRITE(X, 1); w_unpark_all(X), while (!w_load_relaxed(X)) w_park(X, 0, NULL),
			    while (!w_load_relaxed(X)) w_park(X, 0, NULL), )
/* A thread that wakes only sleepers it has seen needs a fence between its store and its look. */
TEST(park_announced, WRITE(X, 1); FENCE; if (w_load_relaxed(Y)) w_unpark(X), WRITE(Y, 1); FENCE;
     while (!w_load_relaxed(X)) w_park(X, 0, NULL), , )
TEST(park_announced_unfenced, WRITE(X, 1); if (w_load_relaxed(Y)) w_unpark(X), WRITE(Y, 1); FENCE;
     while (!w_load_relaxed(X)) w_park(X, 0, NULL), , )
TEST(park_deadline, WRITE(Y, 1), w_park(X, 0, &deadline), , )

/* Plain objects. */
TEST(plain_ordered, m->plain = 1;
     PUBLISH(X, 1), if (w_load_acquire(X)) check_outcome(0, m->plain), , )
TEST(plain_race, m->plain = 1; WRITE(X, 1), if (w_load_acquire(X)) check_outcome(0, m->plain), , )
TEST(plain_race_after, if (w_load_acquire(X)) m->plain = 1, check_outcome(0, m->plain);
     WRITE(X, 1), , )
TEST(plain_after_read, if (w_load_acquire(X)) m->plain = 1, check_outcome(0, m->plain);
     PUBLISH(X, 1), , )
/* The fences are ordered, but that order is not happens-before. */
TEST(plain_race_fences, m->plain = 1; FENCE; if (!w_load_relaxed(Y)) WRITE(Z, 1), WRITE(Y, 1);
     FENCE; if (w_load_relaxed(Z)) check_outcome(0, m->plain), , )
TEST(
	plain_fences, m->plain = 1; FENCE; WRITE(Z, 1),
					   if (w_load_relaxed(Z)) {
						   FENCE;
						   check_outcome(0, m->plain);
					   },
					   , )
TEST(plain_fence_too_early, m->plain = 1; FENCE; WRITE(Z, 1), FENCE;
     if (w_load_relaxed(Z)) check_outcome(0, m->plain), , )
/* The fences let only one of the two threads write. */
TEST(plain_exclusive, WRITE(X, 1); FENCE; if (!w_load_relaxed(Y)) m->plain = 1, WRITE(Y, 1); FENCE;
     if (!w_load_relaxed(X)) m->plain = 2, , )
TEST(initialised, w_init(X, 1); PUBLISH(Y, 1), if (w_load_acquire(Y)) READ(0, X), , )
TEST(initialised_race, w_init(X, 1); WRITE(Y, 1), if (w_load_acquire(Y)) READ(0, X), , )
/* A plain access to an atomic object races with atomic ones that happens-before does not order. */
TEST(initialised_after_load, READ(0, X); PUBLISH(Y, 1), if (w_load_acquire(Y)) w_init(X, 5), , )
TEST(initialised_after_load_race, READ(0, X); WRITE(Y, 1), if (w_load_relaxed(Y)) w_init(X, 5), , )
TEST(initialised_after_store_race, WRITE(X, 1), if (w_load_relaxed(X)) w_init(X, 5), , )
TEST(initialised_fences_race, w_init(X, 1); FENCE; if (!w_load_relaxed(Y)) WRITE(Z, 1), WRITE(Y, 1);
     FENCE; if (w_load_relaxed(Z)) READ(0, X), , )
TEST(plain_read_of_atomic, PUBLISH(X, 1), if (w_load_acquire(X)) check_outcome(0, PLAINLY(X)), , )
TEST(plain_read_of_atomic_race, WRITE(X, 1), if (w_load_relaxed(X)) check_outcome(0, PLAINLY(X)),
     , )
TEST(plain_read_before_store, READ(0, X); check_outcome(0, PLAINLY(X));
     PUBLISH(Y, 1), if (w_load_acquire(Y)) WRITE(X, 1), , )
TEST(plain_read_before_store_race, READ(0, X); check_outcome(0, PLAINLY(X));
     WRITE(Y, 1), if (w_load_relaxed(Y)) WRITE(X, 1), , )
TEST(plain_read_and_load, READ(0, X); check_outcome(0, PLAINLY(X)), READ(1, X), , )
TEST(mixed_sizes, WRITE(X, 1), w_store_relaxed((uint64_t *)X, 1), , )

/* A hint has any value, also after a store; with two threads it is an object like others. */
TEST(hint_values, WRITE(X, 1); READ(0, X); READ(1, X), , , )
TEST(hint_exact, WRITE(X, 1); READ(0, X); READ(1, X), , , )
TEST(hint_swapped, (void)w_exchange_relaxed(X, 1), , , )
TEST(hint_acquired, (void)w_load_acquire(X), , , )
TEST(hint_released, PUBLISH(X, 1), , , )

static void hint(void)
{
	check_hint(X);
}

/* One word of mixed sizes. A store to a part leaves the other parts as they are. */
TEST(mixed_store_and_swap, WRITE(LOW, 1), SWAP(0, HIGH, 2), , )
TEST(mixed_two_stores, WRITE(LOW, 1), WRITE(HIGH, 2), , )
TEST(mixed_store_and_compare_exchange, WRITE(LOW, 1), CAS(0, WORD, 0, PARTS(0, 2), relaxed), , )
TEST(mixed_swap_and_compare_exchange, SWAP(1, HIGH, 2), CAS(0, WORD, 0, PARTS(0, 3), relaxed), , )
/* A store to the word replaces all parts. */
TEST(mixed_word_store_and_swap, WRITE(WORD, PARTS(1, 0)), SWAP(0, HIGH, 2), , )
/* A word is written and read at once. */
TEST(mixed_word_at_once, WRITE(WORD, PARTS(1, 1)), READ_PARTS(0, 1, w_load_relaxed(WORD)), , )
TEST(mixed_coherence, WRITE(LOW, 1), READ_PARTS(0, 2, w_load_relaxed(WORD)); READ(1, LOW), , )
TEST(mixed_word_later, WRITE(WORD, PARTS(1, 1)), READ(0, HIGH); READ(1, LOW), , )
TEST(mixed_word_later_acquire, WRITE(WORD, PARTS(1, 1)), ACQUIRE(0, HIGH); READ(1, LOW), , )
TEST(mixed_word_later_fence, WRITE(WORD, PARTS(1, 1)), READ(0, HIGH); ACQUIRE_FENCE;
     READ(1, LOW), , )
/* Different parts are like different locations, as in mp and sb. */
TEST(mixed_mp, WRITE(LOW, 1); WRITE(HIGH, 1), READ(0, HIGH); READ(1, LOW), , )
TEST(mixed_mp_word, WRITE(LOW, 1); WRITE(HIGH, 1), READ_PARTS(1, 0, w_load_relaxed(WORD)), , )
TEST(mixed_mp_release_acquire, WRITE(LOW, 1); PUBLISH(HIGH, 1), ACQUIRE(0, HIGH); READ(1, LOW), , )
TEST(mixed_mp_word_release, WRITE(LOW, 1);
     PUBLISH(HIGH, 1), READ_PARTS(1, 0, w_load_relaxed(WORD)), , )
TEST(mixed_mp_word_fence, WRITE(LOW, 1); RELEASE_FENCE;
     WRITE(HIGH, 1), READ_PARTS(1, 0, w_load_relaxed(WORD)), , )
/* The first access to the word comes after one to an object that a thread uses later. */
TEST(mixed_mp_begun_late, READ_PARTS(1, 0, w_load_relaxed(WORD)); WRITE(X, 1), READ(2, X);
     WRITE(LOW, 1); PUBLISH(HIGH, 1), , )
/* A store may be forwarded to its thread's load of the word before others see it. */
TEST(mixed_sb, WRITE(LOW, 1); READ_PARTS(2, 0, w_load_relaxed(WORD)), WRITE(HIGH, 1);
     READ_PARTS(1, 3, w_load_relaxed(WORD)), , )
TEST(mixed_sb_fences, WRITE(LOW, 1); FENCE; READ(0, HIGH), WRITE(HIGH, 1); FENCE; READ(1, LOW), , )
/* An acquire pairs with the releases of the parts that it reads. */
TEST(mixed_acquire_part, WRITE(X, 1); PUBLISH(WORD, PARTS(1, 1)), ACQUIRE(0, LOW); READ(1, X), , )
TEST(mixed_acquire_word, WRITE(X, 1);
     PUBLISH(LOW, 1), READ_PARTS(0, 2, w_exchange_acquire(WORD, PARTS(0, 0))); READ(1, X), , )
TEST(mixed_acquire_other_part, WRITE(X, 1); PUBLISH(LOW, 1), (void)w_exchange_acquire(HIGH, 1);
     READ(0, LOW); READ(1, X), , )
/* A read-modify-write of the word continues the release sequence of each part. */
TEST(mixed_sequence, WRITE(X, 1);
     PUBLISH(LOW, 1), READ_PARTS(0, 3, w_fetch_or_relaxed(WORD, PARTS(0, 1))), ACQUIRE(1, HIGH);
     READ(2, X), )
TEST(mixed_sequence_other_part, WRITE(X, 1); PUBLISH(LOW, 1), READ(0, LOW);
     (void)w_fetch_or_relaxed(HIGH, 1), ACQUIRE(1, HIGH); READ(2, X), )
TEST(mixed_wait, WRITE(HIGH, 1); PUBLISH(LOW, 1), (void)w_await_acquire(LOW, VAL);
     READ(0, HIGH), , )
TEST(mixed_undeclared, WRITE(LOW, 1), , , )
__attribute__((no_sanitize("thread"))) static void crash(uint32_t self)
{
	WRITE(X, 1);
	*(volatile uint32_t *)(uintptr_t)(self * 4) = 1;
}

static void mix(void)
{
	check_mixed(WORD);
}

static void final_parts(void)
{
	FINALLY(2, LOW);
	FINALLY(3, HIGH);
}

static void final_x(void)
{
	FINALLY(0, X);
}

static void final_x_second(void)
{
	FINALLY(1, X);
}

static void final_x_third(void)
{
	FINALLY(2, X);
}

static void final_x_fourth(void)
{
	FINALLY(3, X);
}

static void final_y_second(void)
{
	FINALLY(1, Y);
}

static void final_xy(void)
{
	FINALLY(0, X);
	FINALLY(1, Y);
}

#define ALL_OF_3 "000 001 010 011 100 101 110 111"
#define ALL_OF_4 "0000 0001 0010 0011 0100 0101 0110 0111 1000 1001 1010 1011 1100 1101 1110 1111"
/* All but the outcome in which the readers see the two writes in opposite orders. */
#define IRIW_BUT_OPPOSITE \
	"0000 0001 0010 0011 0100 0101 0110 0111 1000 1001 1011 1100 1101 1110 1111"

/* The outcomes, of 81, in which both readers see the values in one order of the stores. */
#define COHERENT                                                                                \
	"0000 0001 0002 0011 0012 0021 0022 0100 0101 0102 0111 0112 0121 0122 0200 0201 0202 " \
	"0211 "                                                                                 \
	"0212 0221 0222 1100 1101 1102 1111 1112 1121 1122 1200 1201 1202 1211 1212 1222 2100 " \
	"2101 "                                                                                 \
	"2102 2111 2121 2122 2200 2201 2202 2211 2212 2221 2222"

const struct check_client check_clients[] = {
	ENTRY(sb, 2, "00 01 10 11", NULL),
	ENTRY(sb_release_acquire, 2, "00 01 10 11", NULL),
	ENTRY(sb_fences, 2, "01 10 11", "00"),
	ENTRY(sb_weak_fences, 2, "00 01 10 11", NULL),
	ENTRY(sb_one_fence, 2, "00 01 10 11", NULL),
	ENTRY(sb_updates, 2, "00 01 10 11", NULL),
	ENTRY(mp, 2, "00 01 10 11", NULL),
	ENTRY(mp_release_only, 2, "00 01 10 11", NULL),
	ENTRY(mp_acquire_only, 2, "00 01 10 11", NULL),
	ENTRY(mp_release_acquire, 2, "00 01 11", "10"),
	ENTRY(mp_fences, 2, "00 01 11", "10"),
	ENTRY(mp_release_fence_acquire, 2, "00 01 11", "10"),
	ENTRY(mp_release_acquire_fence, 2, "00 01 11", "10"),
	ENTRY(mp_sc_fences, 2, "00 01 11", "10"),
	ENTRY(mp_weak_fences, 2, "00 01 11", "10"),
	ENTRY(mp_fence_too_early, 2, "00 01 10 11", NULL),
	ENTRY_LB(lb, 2, "00 01 10", "11"),
	ENTRY_LB(lb_one_acquire, 2, "00 01 10", "11"),
	ENTRY_LB(lb_one_release, 2, "00 01 10", "11"),
	ENTRY_LB(lb_one_fence, 2, "00 01 10", "11"),
	ENTRY(lb_acquires, 2, "00 01 10", "11"),
	ENTRY(lb_releases, 2, "00 01 10", "11"),
	ENTRY(lb_release_acquire, 2, "00 01 10", "11"),
	ENTRY(lb_fences, 2, "00 01 10", "11"),
	ENTRY_LB(lb_data, 2, "00 10", "11"),
	ENTRY(lb_data_both, 2, "00", "11"),
	ENTRY(lb_control_both, 2, "00", "11"),
	ENTRY_LB(lb_control, 2, "00 10", "11"),
	ENTRY_LB(lb_always, 2, "00 01", "11"),
	ENTRY_LB(lb_two_reads, 2, "000 001 010 100 110", "011 101 111"),
	ENTRY_LB(lb_coherent, 2, "000 010 100", "110"),
	ENTRY_LB(lb_three, 3, "000 001 010 011 100 101 110", "111"),
	ENTRY_LB(lb_swap, 2, "000 010 100", "110"),
	ENTRY_LB(lb_cas, 2, "001 011 101", "111"),
	ENTRY_LB(lb_after_add, 2, "00 01 10", "11"),
	ENTRY(corr_one, 2, "00 01 02 11 12 22", "10 20 21"),
	ENTRY(corr, 4, COHERENT, "1221 2112"),
	ENTRY_END(cowr, 2, final_x_second, "11 12 22", "21"),
	ENTRY_END(corw, 2, final_x_second, "01 02 21", "22"),
	ENTRY_END(coww, 1, final_x, "2", "1"),
	ENTRY_END(two_plus_two_w, 2, final_xy, "11 12 21 22", NULL),
	ENTRY_END(two_plus_two_w_release, 2, final_xy, "11 12 21 22", NULL),
	ENTRY_END(two_plus_two_w_fences, 2, final_xy, "12 21 22", "11"),
	ENTRY(iriw, 4, ALL_OF_4, NULL),
	ENTRY(iriw_release, 4, ALL_OF_4, NULL),
	ENTRY(iriw_fences, 4, IRIW_BUT_OPPOSITE, "1010"),
	ENTRY(wrc, 3, "000 001 010 011 100 101 111", "110"),
	ENTRY(wrc_release, 3, "000 001 010 011 100 101 111", "110"),
	ENTRY(wrc_relaxed, 3, ALL_OF_3, NULL),
	ENTRY(isa2, 3, "000 001 010 011 100 101 111", "110"),
	ENTRY(isa2_relaxed, 3, ALL_OF_3, NULL),
	ENTRY_END(r_fences, 2, final_y_second, "01 11 12", "02"),
	ENTRY_END(s_release_acquire, 2, final_x_second, "01 02 11", "12"),
	ENTRY_END(s_relaxed, 2, final_x_second, "01 02 11 12", NULL),
	ENTRY(sequence_update, 3, "00 01 10 11 21", "20"),
	ENTRY(sequence_store, 2, "00 01 11 20 21", "10"),
	ENTRY(sequence_broken, 3, "00 01 11 20 21", "10"),
	ENTRY(sequence_two, 3, "000 001 010 011 101 110 111 211", "100 200 201 210"),
	ENTRY(sequence_of_three, 4, "00 01 10 11 20 21 31", "30"),
	ENTRY(sequence_store_update, 3, "00 01 10 11 20 21 30 31", NULL),
	ENTRY(sequence_fences, 3, "00 01 10 11 21", "20"),
	ENTRY(sequence_two_heads, 3,
	      "0000 0001 0010 0011 0100 0101 0110 0111 1100 1101 1110 1111 2111", "2001"),
	ENTRY(rwc_fences, 3, "000 001 010 011 101 110 111", "100"),
	ENTRY(w_rwc_fences, 3, "000 001 010 011 101 110 111", "100"),
	ENTRY(w_rwc_relaxed, 3, ALL_OF_3, NULL),
	ENTRY(sb_three_fences, 3, "001 010 011 100 101 110 111", "000"),
	ENTRY(sb_two_of_three_fences, 3, ALL_OF_3, NULL),
	ENTRY_END(r_one_fence, 2, final_y_second, "01 02 11 12", NULL),
	ENTRY_END(s_fences, 2, final_x_second, "01 02 11", "12"),
	ENTRY(iriw_one_fence, 4, ALL_OF_4, NULL),
	ENTRY(isa2_fences, 3, "000 001 010 011 100 101 111", "110"),
	ENTRY(isa2_no_acquire_fence, 3, ALL_OF_3, NULL),
	ENTRY(mp_sc_and_acquire_fence, 2, "000 001 010 011 110 111", "100"),
	ENTRY(fences_in_a_row, 3, "000 001 010 011 101 110 111", "100"),
	ENTRY_END(store_after_fence, 2, final_x_third, "022 111 121 122", "021"),
	ENTRY_END(z6_update, 3, final_x_third, "011 021 022 111 121 122", NULL),
	ENTRY_END(store_before_swap, 3, final_x_second, "01 02 12 13 21 23", NULL),
	ENTRY_END(stores_and_two_swaps, 4, final_x_third,
		  "0120 0140 0210 0240 0310 0320 1020 1030 1230 1240 1320 1340 2010 2030 2130 2140 "
		  "2310 2340 4010 4020 "
		  "4120 4130 4210 4230",
		  NULL),
	ENTRY_END(compare_exchange_of_store, 3, final_x_third, "002 013 102 113", NULL),
	ENTRY_END(compare_exchange_stale, 2, final_x_third, "001 011 101 111", NULL),
	ENTRY(compare_exchange_acquires, 2, "00 01 11", "10"),
	ENTRY(swap_one_fence, 2, "0000 0100 1000 1100", NULL),
	ENTRY_LB(lb_updates, 2, "00 01 10", "11"),
	ENTRY_END(corw_three, 3, final_x_fourth,
		  "1111 1121 1131 1133 1211 1212 1221 1222 1231 1232 1233 1311 1331 1333 2212 2222 "
		  "2232 2233 2333 3133 "
		  "3222 3232 3233 3333",
		  NULL),
	ENTRY_END(updates, 3, final_x, "3", "1 2"),
	ENTRY(updates_read, 2, "01 10", "00 11"),
	ENTRY(update_atomic, 2, "02 21 22", "01"),
	ENTRY(compare_exchange, 2, "1001 0210", "1010"),
	ENTRY(compare_exchange_failed, 2, "00 01 10 11", NULL),
	ENTRY_END(bits, 3, final_x, "2 3", "0 1"),
	ENTRY(wait_acquires, 2, "11", "10 00 01"),
	ENTRY_FAILS(wait_misses, 2, "deadlock"),
	ENTRY_FAILS(wait_for_nothing, 2, "deadlock"),
	ENTRY(wait_brief, 2, "0 1", NULL),
	ENTRY_FAILS(livelock, 2, "livelock"),
	ENTRY_END(yielding, 2, final_x, "1", "0"),
	ENTRY(wait_deadline, 2, "01 11", "00 10"),
	ENTRY_END(park, 2, final_x, "1", "0"),
	ENTRY_FAILS(park_not_woken, 2, "lost wake-up"),
	ENTRY_FAILS(park_one_of_two, 3, "lost wake-up"),
	ENTRY_END(park_all, 3, final_x, "1", "0"),
	ENTRY_END(park_announced, 2, final_x, "1", "0"),
	ENTRY_FAILS(park_announced_unfenced, 2, "lost wake-up"),
	ENTRY_END(park_deadline, 2, final_y_second, "01", "00"),
	ENTRY(plain_ordered, 2, "0 1", NULL),
	ENTRY_FAILS(plain_race, 2, "data race"),
	ENTRY_FAILS(plain_race_after, 2, "data race"),
	ENTRY(plain_after_read, 2, "0", "1"),
	ENTRY_FAILS(plain_race_fences, 2, "data race"),
	ENTRY(plain_fences, 2, "0 1", NULL),
	ENTRY_FAILS(plain_fence_too_early, 2, "data race"),
	ENTRY(plain_exclusive, 2, NULL, NULL),
	ENTRY(initialised, 2, "0 1", NULL),
	ENTRY_FAILS(initialised_race, 2, "data race"),
	ENTRY(initialised_after_load, 2, "0", "5"),
	ENTRY_FAILS(initialised_after_load_race, 2, "data race"),
	ENTRY_FAILS(initialised_after_store_race, 2, "data race"),
	ENTRY_FAILS(initialised_fences_race, 2, "data race"),
	ENTRY(plain_read_of_atomic, 2, "0 1", NULL),
	ENTRY_FAILS(plain_read_of_atomic_race, 2, "data race"),
	ENTRY(plain_read_before_store, 2, "0", "1"),
	ENTRY_FAILS(plain_read_before_store_race, 2, "data race"),
	ENTRY(plain_read_and_load, 2, "00", NULL),
	ENTRY_FAILS(mixed_sizes, 2, "mixed sizes"),
	ENTRY_MIXED(mixed_store_and_swap, 2, final_parts, "0012", NULL),
	ENTRY_MIXED(mixed_two_stores, 2, final_parts, "0012", NULL),
	ENTRY_MIXED(mixed_store_and_compare_exchange, 2, final_parts, "0010 1012", "0012 1002"),
	ENTRY_MIXED(mixed_swap_and_compare_exchange, 2, final_parts, "0002 1302", "1002 1003"),
	ENTRY_MIXED(mixed_word_store_and_swap, 2, final_parts, "0010 0012", "0002"),
	ENTRY_MIXED(mixed_word_at_once, 2, NULL, "00 11", "01 10"),
	ENTRY_MIXED(mixed_word_later, 2, NULL, "00 01 10 11", NULL),
	ENTRY_MIXED(mixed_word_later_acquire, 2, NULL, "00 01 11", "10"),
	ENTRY_MIXED(mixed_word_later_fence, 2, NULL, "00 01 11", "10"),
	ENTRY_MIXED(mixed_coherence, 2, NULL, "000 010 110", "100"),
	ENTRY_MIXED(mixed_mp, 2, NULL, "00 01 10 11", NULL),
	ENTRY_MIXED(mixed_mp_word, 2, NULL, "00 01 10 11", NULL),
	ENTRY_MIXED(mixed_mp_word_release, 2, NULL, "00 01 11", "10"),
	ENTRY_MIXED_LB(mixed_mp_begun_late, 2, "000 010 110 001", "011 111"),
	ENTRY_MIXED(mixed_mp_word_fence, 2, NULL, "00 01 11", "10"),
	ENTRY_MIXED(mixed_mp_release_acquire, 2, NULL, "00 01 11", "10"),
	ENTRY_MIXED(mixed_sb, 2, NULL, "0011 0111 1011 1111", NULL),
	ENTRY_MIXED(mixed_sb_fences, 2, NULL, "01 10 11", "00"),
	ENTRY_MIXED(mixed_acquire_part, 2, NULL, "00 01 11", "10"),
	ENTRY_MIXED(mixed_acquire_word, 2, NULL, "000 010 110", "100"),
	ENTRY_MIXED(mixed_acquire_other_part, 2, NULL, "00 01 10 11", NULL),
	ENTRY_MIXED(mixed_sequence, 3, NULL, "0000 0010 0100 0110 1000 1010 1110", "1100"),
	ENTRY_MIXED(mixed_sequence_other_part, 3, NULL, ALL_OF_3, NULL),
	ENTRY_MIXED(mixed_wait, 2, NULL, "1", "0"),
	ENTRY_FAILS(mixed_undeclared, 1, "not an atomic object"),
	ENTRY_HINT(hint_values, 3, "00 01 10 11", NULL),
	ENTRY_HINT(hint_exact, 2, "11", NULL),
	ENTRY_HINT(hint_swapped, 3, NULL, "a hint is only loaded and stored"),
	ENTRY_HINT(hint_acquired, 3, NULL, "a hint is only loaded and stored"),
	ENTRY_HINT(hint_released, 3, NULL, "a hint is only loaded and stored"),
	ENTRY_FAILS(crash, 1, "crash"),
	{.name = NULL},
};
