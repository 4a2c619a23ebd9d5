/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <poundlock.h>
#include <stdio.h>

_Static_assert(POUNDLOCK_VERSION >= 100, "a number that can be compared");

/* A program may have names that are private to the library. */
int box_get(void);
int box_get(void)
{
	return 0;
}

/* Prints the version of its header. */
int main(void)
{
	static pound_mutex_t mutex = POUND_MUTEX_INIT;
	pound_lock_t lock;

	pound_mutex_lock(&mutex);
	if (pound_mutex_trylock(&mutex) || pound_lock_init(&lock, "shfl_mutex", NULL, 0) ||
	    box_get())
		return 1;
	pound_lock_lock(&lock);
	pound_lock_unlock(&lock);
	pound_mutex_unlock(&mutex);
	printf("%d.%d.%d\n", POUNDLOCK_VERSION_MAJOR, POUNDLOCK_VERSION_MINOR,
	       POUNDLOCK_VERSION_PATCH);
	return 0;
}
