/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* pound_sem_t: the semaphore of core/sema.h. */
#include <errno.h>

/* A signal handler may post, also in a process of one thread. */
#define W_NEVER_ALONE

#include "any.h"
#include "poundlock.h"
#include "sema.h"

_Static_assert(sizeof(pound_sem_t) == sizeof(struct sema), "the same struct");
_Static_assert(POUND_SEM_MAX == SEMA_MOST, "the same value");

int pound_sem_init(pound_sem_t *sem, uint32_t value)
{
	if (value > POUND_SEM_MAX)
		return EINVAL;
	*sem = (pound_sem_t)POUND_SEM_INIT(value);
	return 0;
}

bool pound_sem_trywait(pound_sem_t *sem)
{
	return sema_try((struct sema *)sem);
}

void pound_sem_wait(pound_sem_t *sem)
{
	if (!pound_sem_trywait(sem))
		(void)sema_wait_slow((struct sema *)sem, NULL);
}

int pound_sem_timedwait(pound_sem_t *sem, clockid_t clock, const struct timespec *deadline)
{
	struct w_deadline until = {.clock = clock, .at = *deadline};

	if (pound_sem_trywait(sem))
		return 0;
	if (!any_deadline_valid(&until))
		return EINVAL;
	return sema_wait_slow((struct sema *)sem, &until) ? 0 : ETIMEDOUT;
}

int pound_sem_post(pound_sem_t *sem, uint32_t count)
{
	return sema_post((struct sema *)sem, count) ? 0 : EOVERFLOW;
}

uint32_t pound_sem_value(const pound_sem_t *sem)
{
	return sema_value((struct sema *)sem);
}
