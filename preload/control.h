/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * POUNDLOCK_CONTROL: the settings of single mutexes and readers-writer locks are changed while they
 * are used, by other processes of the same user, through a mapped file (control_page.h).
 *
 * Only a thread that has to wait reads the file: one word, which holds all settings of the lock.
 * It waits by these settings to the end, whatever is changed meanwhile. A word that has no valid
 * settings counts as none.
 */
#ifndef POUNDLOCK_PRELOAD_CONTROL_H
#define POUNDLOCK_PRELOAD_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "world.h"

extern W_HIDDEN bool control_on;

/*
 * Makes the file in @folder, for a process with the lock @ops (NULL: native). If it cannot, prints
 * a line to stderr and returns false. Called before a second thread is started.
 */
struct any_ops;
W_HIDDEN bool control_start(const char *folder, const struct any_ops *ops);

/* The path of the file. */
W_HIDDEN const char *control_path(void);

/* A lock for which a thread has to wait. */
struct control_subject {
	uint64_t address;
	uint64_t site;    /* to which the call returned that initialised it; 0: unknown */
	uint64_t own;     /* its settings (lib/live.h) without the file's; 0: they cannot change */
	const char *lock; /* the name of its algorithm */
	uint32_t rule_line; /* of the rule that applies to it; 0: none */
	bool is_rw;
};

struct control_lock;

/* A wait that has begun. */
struct control_wait {
	struct control_lock *known; /* NULL: the file has no room for the lock */
	uint32_t generation;
};

/*
 * Begins @wait, for @subject. Returns whether the file has settings for it, which it reads into
 * @settings: its own ones, or else, without a rule, those of all locks of its kind.
 */
W_HIDDEN bool control_begin(struct control_wait *wait, const struct control_subject *subject,
			    uint32_t *settings);
W_HIDDEN void control_end(const struct control_wait *wait);

/*
 * The process enters a sandbox, which may not allow to make files: its children make none.
 */
W_HIDDEN void control_stay(void);

W_HIDDEN void control_forget_slow(const void *lock);

/* Ends the settings of @lock: from now on there is another one at its address, or none. */
static inline void control_forget(const void *lock)
{
	if (w_unlikely(control_on))
		control_forget_slow(lock);
}

#endif
