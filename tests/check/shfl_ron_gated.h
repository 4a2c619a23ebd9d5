/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For clients of shfl_ron that have a gate from the start, and no other lock (shfl_ron_steady.c,
 * shfl_ron_parts.c): the table of one gate, and the notes of the threads. The including file
 * defines which threads remember the lock (w_remembers(), w_remember()), and includes lock.c.
 */
#ifndef POUNDLOCK_CHECK_SHFL_RON_GATED_H
#define POUNDLOCK_CHECK_SHFL_RON_GATED_H

#define LOCK shfl_ron
#define LOCK_HEADER "shfl_ron.h"
#define LOCK_TRAITS "none.h"
#define LOCK_BARE
#define GATES_WAYS 1u
#define GATES_SETS 1u
#define CHECK_COMMON 256
#define CHECK_GATES (CHECK_COMMON + 64)
#define COMMON_ROOM 1024
#define UNCHECKED_QUEUE
#define MADE(lock) shfl_ron_turn(lock, shfl_ron_open(lock), SHFL_RON_AT_GATE)
/* These clients use only some of lock.c's functions. */
#pragma GCC diagnostic ignored "-Wunused-function"

#include "check.h"

/* The notes of the threads, behind what else is in the common block; 0: none. */
static inline uint32_t *note_of_thread(void)
{
	return (uint32_t *)w_common(0) + 8 + check_self();
}

#undef w_note
#define w_note(lock) ((void)(lock), *note_of_thread())
/* Only whether the thread came through the gate is kept, and at which place. */
#undef w_note_set
#define w_note_set(lock, note) \
	((void)(lock), *note_of_thread() = (note)&SHFL_RON_NOTE_GATED ? (note) : 0)

#endif
