/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Layout of the control page, a file that a process maps and by which others change the settings of
 * its mutexes and readers-writer locks. docs/control.md documents it.
 *
 * A header, then an array of locks. The process writes all fields except all `wanted`, and reads
 * none of them except these: a hostile page cannot lead it anywhere. Byte order is the machine's.
 */
#ifndef POUNDLOCK_PRELOAD_CONTROL_PAGE_H
#define POUNDLOCK_PRELOAD_CONTROL_PAGE_H

#include "world.h"

#define CONTROL_MAGIC "poundlock control"
#define CONTROL_VERSION 4

#ifndef CONTROL_LOCKS_BITS /* the model checker has fewer */
#define CONTROL_LOCKS_BITS 10
#endif
#define CONTROL_LOCKS (1u << CONTROL_LOCKS_BITS)

struct control_lock {
	W_ATOMIC(uint64_t) address; /* 0: unused, or the lock is destroyed */
	uint64_t site;              /* to which the call returned that initialised it; 0: unknown */
	uint64_t own;               /* settings (lib/live.h) without `wanted`; 0: cannot change */
	W_ATOMIC(uint64_t) wanted;  /* settings, written by other processes; 0: none */
	W_ATOMIC(uint64_t) waits;   /* begun */
	W_ATOMIC(uint32_t) waiting;
	uint32_t rule; /* the line of the rule that applies to it; 0: none */
	char lock[15]; /* the name of its algorithm */
	uint8_t is_rw; /* 1: it is a readers-writer lock */
};

struct control_page {
	char magic[24];
	uint32_t version;
	uint32_t bytes; /* of the file */
	uint32_t pid;
	uint32_t locks_most;
	W_ATOMIC(uint64_t) unlisted; /* waits for locks without room */
	/*
	 * Settings of all mutexes, and of all readers-writer locks, without a rule and without
	 * settings in their own `wanted`, written by other processes; 0: none
	 */
	W_ATOMIC(uint64_t) wanted, rw_wanted;
	char program[64];
	_Alignas(64) struct control_lock locks[CONTROL_LOCKS];
};

#endif
