/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define LOCK cfl_mutex
#define LOCK_HEADER "cfl_mutex.h"
/* Waiters that spin do the same in cfl_spin. */
#define MORE_CLIENTS                                                                               \
	ENTRY("4x1/spin", lock_1_spin, 4, "contended shuffle look_back", "4", prepare_any, finish, \
	      .bound = 2),
#include "cfl_any.h"
