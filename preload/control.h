/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * POUNDLOCK_CONTROL: the settings of single mutexes are changed while they are used, by other
 * processes of the same user, through a mapped file (control_page.h).
 *
 * Only a thread that has to wait reads the file: one word, which holds all settings of the mutex.
 * It waits by these settings to the end, whatever is changed meanwhile. A word that has no valid
 * settings counts as none.
 */
#ifndef POUNDLOCK_PRELOAD_CONTROL_H
#define POUNDLOCK_PRELOAD_CONTROL_H

#include "layout.h"
#include "rule.h"

extern W_HIDDEN bool control_on;

/*
 * Makes the file in @folder, for a process with the lock @ops (NULL: native). If it cannot, prints
 * a line to stderr and returns false. Called before a second thread is started.
 */
W_HIDDEN bool control_start(const char *folder, const struct any_ops *ops);

/* The path of the file. */
W_HIDDEN const char *control_path(void);

/*
 * Locks @m, which was held a moment ago, by the settings that the file has for it, or else by those
 * of @ops, which are of @rule (NULL: the process's). Only settings of the default lock change.
 * False if @deadline (NULL: none) passes first.
 */
W_HIDDEN bool control_wait(struct mutex *m, const struct w_deadline *deadline,
			   const struct any_ops *ops, const struct rule *rule);

/*
 * The process enters a sandbox, which may not allow to make files: its children make none.
 */
W_HIDDEN void control_stay(void);

W_HIDDEN void control_forget_slow(const struct mutex *m);

/* Ends the settings of @m: from now on there is another mutex at its address, or none. */
static inline void control_forget(const struct mutex *m)
{
	if (w_unlikely(control_on))
		control_forget_slow(m);
}

#endif
