/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The inline functions of poundlock.h, for the test that compares those of lib.rs with them. */
#include "poundlock.h"

bool poundlock_sys_trylock(pound_mutex_t *mutex);
void poundlock_sys_lock(pound_mutex_t *mutex);
void poundlock_sys_unlock(pound_mutex_t *mutex);
bool poundlock_sys_cond_idle(pound_cond_t *cond);

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

bool poundlock_sys_cond_idle(pound_cond_t *cond)
{
	return pound_cond_idle(cond);
}
