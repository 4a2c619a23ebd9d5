/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* pound_once_t: the calls of core/once.h that find the function not completed. */
#include <pthread.h>

#include "once.h"
#include "poundlock.h"

_Static_assert(sizeof(pound_once_t) == sizeof(struct once), "the same struct");
_Static_assert(POUND_ONCE_DONE == ONCE_DONE, "the same state");

bool pound_once_begin_slow(pound_once_t *once)
{
	return once_begin((struct once *)once);
}

void pound_once_end(pound_once_t *once, bool completed)
{
	once_end((struct once *)once, completed);
}

/* The thread ends within the function. */
static void abandon(void *once)
{
	pound_once_end(once, false);
}

void pound_once_slow(pound_once_t *once, void (*function)(void *argument), void *argument)
{
	if (!pound_once_begin_slow(once))
		return;
	pthread_cleanup_push(abandon, once);
	function(argument);
	pthread_cleanup_pop(0);
	pound_once_end(once, true);
}
