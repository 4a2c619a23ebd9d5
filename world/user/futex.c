/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Giving up the CPU: yielding, and sleeping on a futex until an absolute deadline. Keeps errno. */
#define _GNU_SOURCE
#include "kernel.h"

/* Length of a spinners' term: much longer than a spin, so that few spins outlive it. */
#define TERM_NANOSECONDS 100000000

uint32_t w_spin_pauses = 100;
uint32_t w_spinners_most = 1;
W_ATOMIC(struct w_spin_history) w_last_spin_history[W_SPIN_HISTORIES];
struct w_seat w_seats[W_SEATS];

void w_spin_new_term(uint32_t spinners)
{
	static W_ATOMIC(uint64_t) begun;
	uint64_t now = w_now(), last = atomic_load(&begun);

	if (now - last >= TERM_NANOSECONDS && atomic_compare_exchange_strong(&begun, &last, now))
		atomic_compare_exchange_strong(&w_this_process.spinners, &spinners,
					       (spinners | W_SPINNERS) + 1);
}

void w_take_seat(struct w_self *self, struct w_seat *seat)
{
	struct w_seat *former = atomic_load_explicit(&self->seat, memory_order_relaxed);

	if (former && atomic_load_explicit(&former->taken_by, memory_order_relaxed) == self)
		atomic_store_explicit(&former->taken_by, NULL, memory_order_relaxed);
	if (atomic_exchange_explicit(&seat->taken_by, self, memory_order_relaxed))
		atomic_store_explicit(&self->sharing_until, w_now() + W_SHARING_NANOSECONDS,
				      memory_order_relaxed);
	atomic_store_explicit(&self->seat, seat, memory_order_relaxed);
}

bool w_shares_cpu(struct w_self *self)
{
	if (w_now() < atomic_load_explicit(&self->sharing_until, memory_order_relaxed))
		return true;
	atomic_store_explicit(&self->sharing_until, 0, memory_order_relaxed);
	return false;
}

void w_spin_calibrate(void)
{
	uint64_t start, took, best = UINT64_MAX;
	int saved = errno;

	w_spinners_most = w_spinners_limit(w_cpu_count());
	for (int i = 0; i < 4; i++) {
		start = w_now();
		w_pause_for(32);
		took = w_now() - start;
		best = took < best ? took : best;
	}
	w_spin_pauses = (uint32_t)(W_SPIN_NANOSECONDS * 32 / (best + 1)) + 1;
	errno = saved;
}

/*
 * Not sched_yield(), which lets no thread of lower priority run. And a sandbox that allows what
 * glibc's own locks need may allow no other system call than futex. Nobody wakes this one.
 */
void w_yield(void)
{
	struct timespec moment = {.tv_nsec = W_YIELD_NANOSECONDS};
	uint32_t nothing = 0;

	(void)w_system_call(SYS_futex, (long)&nothing, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, nothing,
			    (long)&moment, 0, 0);
}

W_ATOMIC(bool) w_streaks_yield = true;

void w_sched_yield(void)
{
	(void)w_system_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

bool w_expired_slow(const struct w_deadline *deadline)
{
	struct timespec now;

	if (deadline->at.tv_sec < 0)
		return true;
	clock_gettime(deadline->clock, &now);
	return now.tv_sec != deadline->at.tv_sec ? now.tv_sec > deadline->at.tv_sec
						 : now.tv_nsec >= deadline->at.tv_nsec;
}

void w_park(W_ATOMIC(uint32_t) *p, uint32_t expected, const struct w_deadline *deadline)
{
	w_futex_park(p, expected, deadline);
}

void w_unpark(W_ATOMIC(uint32_t) *p)
{
	w_event(unpark);
	w_futex_wake(p, 1);
}

void w_unpark_all(W_ATOMIC(uint32_t) *p)
{
	w_event(unpark);
	w_futex_wake(p, INT32_MAX);
}
