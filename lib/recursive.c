/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* pound_recursive_mutex_t: core/recursive.h over a pound_mutex_t. */
#include <errno.h>

#include "poundlock.h"
#include "recursive.h"

_Static_assert(sizeof(struct pound_recursion) == sizeof(struct recursive), "the same struct");

static struct recursive *recursion(pound_recursive_mutex_t *mutex)
{
	return (struct recursive *)&mutex->pound_recursion;
}

int pound_recursive_mutex_lock(pound_recursive_mutex_t *mutex)
{
	enum recursive_entry entry = recursive_enter(recursion(mutex));

	if (entry == RECURSIVE_FULL)
		return EAGAIN;
	if (entry == RECURSIVE_NEW) {
		pound_mutex_lock(&mutex->pound_mutex);
		recursive_own(recursion(mutex));
	}
	return 0;
}

bool pound_recursive_mutex_trylock(pound_recursive_mutex_t *mutex)
{
	enum recursive_entry entry = recursive_enter(recursion(mutex));

	if (entry != RECURSIVE_NEW)
		return entry == RECURSIVE_AGAIN;
	if (!pound_mutex_trylock(&mutex->pound_mutex))
		return false;
	recursive_own(recursion(mutex));
	return true;
}

int pound_recursive_mutex_timedlock(pound_recursive_mutex_t *mutex, clockid_t clock,
				    const struct timespec *deadline)
{
	enum recursive_entry entry = recursive_enter(recursion(mutex));
	int error;

	if (entry != RECURSIVE_NEW)
		return entry == RECURSIVE_AGAIN ? 0 : EAGAIN;
	error = pound_mutex_timedlock(&mutex->pound_mutex, clock, deadline);
	if (!error)
		recursive_own(recursion(mutex));
	return error;
}

void pound_recursive_mutex_unlock(pound_recursive_mutex_t *mutex)
{
	if (recursive_leave(recursion(mutex)))
		pound_mutex_unlock(&mutex->pound_mutex);
}
