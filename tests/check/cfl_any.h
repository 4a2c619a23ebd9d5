/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of cfl_spin and cfl_mutex with any order (cfl_any_order.h). The includer defines LOCK,
 * LOCK_HEADER and MORE_CLIENTS, further entries.
 */
#define LOCK_TRAITS "none.h"
#define LOCK_BOXED_BARE
#define ARRIVAL cfl.tail
#define CHECK_NOW() UINT64_C(0)
/* As in adapter.h, which comes later than the queue here. */
#define SHFL_MAX_BATCH 3

#include "check.h"

#include "cfl_any_order.h"

static void prepare_any(void);

#define COMPOSED .flags = CHECK_CLIENT_COMPOSED | CHECK_CLIENT_COMPLETE
/* These clients use only some of lock.c's functions. */
#pragma GCC diagnostic ignored "-Wunused-function"
#define CLIENTS                                                                                  \
	ENTRY("2x1/spin", lock_1_spin, 2, "contended shuffle", "2", prepare_any, finish,         \
	      .flags = CHECK_CLIENT_PROMISES),                                                   \
		ENTRY("2x1/park", lock_1_park, 2, "contended shuffle", "2", prepare_any, finish, \
		      .spurious = 1),                                                            \
		ENTRY("2x2/spin", lock_2_spin, 2, "contended shuffle steal", "4", prepare_any,   \
		      finish, .flags = CHECK_CLIENT_PROMISES),                                   \
		ENTRY("3x1/spin", lock_1_spin, 3, "contended shuffle look_back steal", "3",      \
		      prepare_any, finish),                                                      \
		ENTRY("composed/3x1/park", lock_1_park, 3,                                       \
		      "contended shuffle look_back steal park", "3", prepare_any, finish,        \
		      COMPOSED),                                                                 \
		ENTRY("trylock/3/spin", try_spin, 3, "steal", "1 2 3", prepare_any, finish),     \
		ENTRY("timed/3/yield", timed_yield, 3, "abandon", "2 3", prepare_any, finish),   \
		ENTRY("timed/two_of_3/yield", timed_both_yield, 3, "abandon", "1 2 3",           \
		      prepare_any, finish),                                                      \
		ENTRY("composed/timed/3/park", timed_park, 3, "abandon", "2 3", prepare_any,     \
		      finish, COMPOSED),                                                         \
		ENTRY("composed/timed/two_of_3/park", timed_both_park, 3, "abandon", "1 2 3",    \
		      prepare_any, finish, COMPOSED),                                            \
		MORE_CLIENTS

#include "lock.c"

static void prepare_any(void)
{
	prepare();
	any_hints(&M->lock.cfl.ledger);
}
