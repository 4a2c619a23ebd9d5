/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Waits by the lock's own functions. */
#include "observe.h"

static bool wait_lock(const struct stats_wait *wait)
{
	const struct any_ops *own = wait->own;

	if (wait->deadline)
		return own->timedlock(wait->lock, wait->deadline, own);
	(void)own->lock(wait->lock, own);
	return true;
}

static bool wait_read(const struct stats_wait *wait)
{
	const struct any_rw_ops *own = wait->own;

	if (wait->deadline)
		return own->timedrdlock(wait->lock, wait->again, wait->deadline, own);
	return own->rdlock(wait->lock, wait->again, own);
}

static bool wait_write(const struct stats_wait *wait)
{
	const struct any_rw_ops *own = wait->own;

	if (wait->deadline)
		return own->timedwrlock(wait->lock, wait->deadline, own);
	own->wrlock(wait->lock, own);
	return true;
}

W_SLOW bool stats_wait_lock(struct stats_row *row, const struct any_ops *own, void *lock,
			    const struct w_deadline *deadline, void *caller)
{
	return stats_wait(row, &(struct stats_wait){.wait = wait_lock,
						    .own = own,
						    .lock = lock,
						    .deadline = deadline,
						    .caller = caller});
}

W_SLOW bool stats_wait_read(struct stats_row *row, const struct any_rw_ops *own, void *lock,
			    bool again, const struct w_deadline *deadline, void *caller)
{
	return stats_wait(row, &(struct stats_wait){.wait = wait_read,
						    .own = own,
						    .lock = lock,
						    .again = again,
						    .deadline = deadline,
						    .caller = caller});
}

W_SLOW bool stats_wait_write(struct stats_row *row, const struct any_rw_ops *own, void *lock,
			     const struct w_deadline *deadline, void *caller)
{
	return stats_wait(row, &(struct stats_wait){.wait = wait_write,
						    .own = own,
						    .lock = lock,
						    .deadline = deadline,
						    .caller = caller});
}
