/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WALKS_4 10000
#define WHEN_3 "pass_over"
#define WHEN_5 "pass_over"
/* Also explored under a bound: these detect mutants quickly, and four threads are random walks. */
#define MORE_CLIENTS                                                                           \
	ENTRY("bounded/3x1/spin", lock_1_spin, 3, "contended pass_over", "3", prepare, finish, \
	      .bound = 2),                                                                     \
		ENTRY("bounded/3x1/park", lock_1_park, 3, "contended pass_over park", "3",     \
		      prepare, finish, .bound = 2),                                            \
		BOUNDED_4(park),                                                               \
		ENTRY("bounded/timed/3/yield", timed_yield, 3, "pass_over", "2 3", prepare,    \
		      finish, .bound = 2),
