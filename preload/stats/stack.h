/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Who called: return addresses, and the files that addresses are of, kept for readers of the statistics.
 *
 * Nothing here allocates or takes a lock, ours or the loader's: addresses are looked up by _dl_find_object, which the
 * unwinder, linked into this library, uses too. Where the C library lacks it (before 2.35), a stack is one address deep,
 * and the files are those that were there at the start.
 */
#ifndef POUNDLOCK_STATS_STACK_H
#define POUNDLOCK_STATS_STACK_H

#include "file.h"

struct stats_frames {
	uint32_t depth;
	uint64_t frames[STATS_DEPTH];
};

/* What is done once by the unwinder is done now; and the files that are there are noted. */
W_HIDDEN void stats_stack_start(void);

/* The caller's stack. @caller: where the innermost function that is not ours will go on. */
W_HIDDEN void stats_stack_capture(struct stats_frames *stack, void *caller);

/* Counts @ns once more for @stack. One more than its index among the stacks; 0: no room. */
W_HIDDEN uint32_t stats_stack_count(const struct stats_frames *stack, enum stats_stack_kind kind, uint32_t lock,
				    uint64_t ns);

/* Keeps the file that @address is of, if it is of one and that is not known yet. */
W_HIDDEN void stats_module_note(uint64_t address);

#endif
