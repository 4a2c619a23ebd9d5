/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Settings that change while the lock is used, as by preload/control.h: CHANGED(settings) changes
 * them. A thread reads the settings once per wait, so another thread that changes them at any
 * moment is the explorer, which chooses them at each wait.
 *
 * Included by clients that have defined NOTES, with a field `changes`: whether they change.
 */
#ifndef POUNDLOCK_CHECK_CHANGES_H
#define POUNDLOCK_CHECK_CHANGES_H

static void change(struct LOCK_FUNCTION(policy) * policy)
{
	if (NOTES->changes && CHECK_DO("settings", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0))
		CHANGED(*policy);
}

#endif
