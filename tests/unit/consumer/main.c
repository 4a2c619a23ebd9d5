/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <poundlock.h>

int main(void)
{
	static pound_mutex_t mutex = POUND_MUTEX_INIT;
	const struct timespec past = {0, 0};
	pound_lock_t lock;

	pound_mutex_lock(&mutex);
	if (!pound_mutex_timedlock(&mutex, CLOCK_MONOTONIC, &past) || pound_lock_init(&lock, "mcs", NULL, 0))
		return 1;
	pound_lock_lock(&lock);
	pound_lock_unlock(&lock);
	pound_mutex_unlock(&mutex);
	return 0;
}
