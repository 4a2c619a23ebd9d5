/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Stacks of callers, and the modules (program and libraries) of their addresses, for readers of the
 * statistics.
 *
 * Nothing here calls malloc, or takes a lock of ours or of the loader: addresses are looked up by
 * _dl_find_object(), as the unwinder that is linked into this library does. In a C library without
 * it (before 2.35) a stack has one address, and the modules are those loaded at the start.
 */
#ifndef POUNDLOCK_STATS_STACK_H
#define POUNDLOCK_STATS_STACK_H

#include "file.h"

struct stats_frames {
	uint32_t depth;
	uint64_t frames[STATS_DEPTH];
};

/* Notes the loaded modules, and makes the unwinder do its one-time work now. */
W_HIDDEN void stats_stack_start(void);

/* Captures the caller's stack. @caller: the return address of the program's call. */
W_HIDDEN void stats_stack_capture(struct stats_frames *stack, void *caller);

/* Adds one use of @ns nanoseconds to @stack. Returns its index + 1; 0 if there is no room. */
W_HIDDEN uint32_t stats_stack_count(const struct stats_frames *stack, enum stats_stack_kind kind,
				    uint32_t lock, uint64_t ns);

/* Notes the module that contains @address, if there is one. */
W_HIDDEN void stats_module_note(uint64_t address);

#endif
