/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* poundlock.h's inline functions, for the test that compares lib.rs's with them. */
#include "poundlock.h"

bool poundlock_sys_trylock(pound_mutex_t *mutex);
void poundlock_sys_lock(pound_mutex_t *mutex);
void poundlock_sys_unlock(pound_mutex_t *mutex);

bool poundlock_sys_trylock(pound_mutex_t *mutex)
{
	return pound_mutex_trylock(mutex);
}

void poundlock_sys_lock(pound_mutex_t *mutex)
{
	pound_mutex_lock(mutex);
}

void poundlock_sys_unlock(pound_mutex_t *mutex)
{
	pound_mutex_unlock(mutex);
}
