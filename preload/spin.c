/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * pthread_spin_*: a spin lock that was initialised as process-private is ours (core/qspin.h), in
 * its 4 bytes. A process-shared one is glibc's, since other processes may use it without this
 * library. So is one that was never initialised: memory that the program set to 0 or 1 itself.
 *
 * The two highest bits, the embedder's in core/qspin.h, tell them apart at each call: 01 in ours.
 * glibc's are small numbers of either sign (on x86 a free lock is 1, and each waiter subtracts 1;
 * elsewhere 0 and 1), whose highest bits are 00 or 11.
 *
 * glibc's work between processes whatever their attribute is, and programs that put one into shared
 * memory before they fork rely on it. So do ours: the queue belongs to one process, and the threads
 * of others poll the word. No operation here takes the shortcut for a process of one thread.
 *
 * Error codes are glibc's: EBUSY from trylock, else 0.
 */
#define W_NEVER_ALONE
#include "spin.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "preload.h"
#include "qspin.h"
#include "real.h"
#include "spec.h"

#define OURS (1u << 30)

_Static_assert((OURS & ~QSPIN_EMBEDDER) == 0, "our mark is in the embedder's bits");
_Static_assert(sizeof(struct qspin) == sizeof(pthread_spinlock_t), "a spin lock fits in place");
_Static_assert(_Alignof(struct qspin) <= _Alignof(pthread_spinlock_t), "and is aligned");

/* ---- Settings ---- */

static enum wait spin_wait = WAIT_YIELD;

SETTING_PLACES(qspin);

static const struct setting settings[] = {qspin_settings(SETTING_ROW)};
static uint32_t values[] = {qspin_settings(SETTING_DEFAULT)};

static W_ATOMIC(uint32_t) enabled;

static struct qspin_policy policy(void)
{
	return LOCK_POLICY(qspin, spin_wait, values);
}

bool spin_find(const char *spec, char *error, size_t size)
{
	size_t length;
	const char *pairs = spec_split(spec, &length);
	enum wait wait = spin_wait;
	uint32_t given[qspin_SETTINGS];

	if (length != strlen(SPIN_DEFAULT) || memcmp(spec, SPIN_DEFAULT, length))
		return spec_wrong(error, size, "there is no spin lock '%.*s'", (int)length, spec);
	memcpy(given, values, sizeof(given));
	if (!spec_parse(SPIN_DEFAULT, pairs, settings, qspin_SETTINGS, &wait, given, error, size))
		return false;
	memcpy(values, given, sizeof(values));
	spin_wait = wait;
	return true;
}

void spin_enable(bool enable)
{
	/* release: pairs with the acquire in spin_init(); the settings */
	w_store_release(&enabled, enable);
}

/* ---- pthread_spin_* ---- */

static struct qspin *qspin_of(pthread_spinlock_t *lock)
{
	return (struct qspin *)lock;
}

/* Whether @lock is ours: marked by pthread_spin_init(), before any other thread can use it. */
static bool is_ours(pthread_spinlock_t *lock)
{
	/* relaxed: our mark never changes while the lock is used */
	return w_likely((w_load_relaxed(&qspin_of(lock)->word) & QSPIN_EMBEDDER) == OURS);
}

EXPORT int pthread_spin_init(pthread_spinlock_t *lock, int pshared)
{
	initialise();
	/* acquire: pairs with the release in spin_enable(); the settings */
	if (!w_load_acquire(&enabled) || pshared == PTHREAD_PROCESS_SHARED)
		return real.pthread_spin_init(lock, pshared);
	/* relaxed: the program publishes the lock */
	w_store_relaxed(&qspin_of(lock)->word, OURS);
	return 0;
}

EXPORT int pthread_spin_destroy(pthread_spinlock_t *lock)
{
	initialise();
	return is_ours(lock) ? 0 : real.pthread_spin_destroy(lock);
}

/* Locks @lock if it is ours, free and without waiters. */
static inline bool take_free(pthread_spinlock_t *lock)
{
	uint32_t seen = OURS;

	/* acquire: as [QSPIN-1] */
	return w_likely(
		w_compare_exchange_acquire(&qspin_of(lock)->word, &seen, OURS | QSPIN_LOCKED));
}

/* Unlocks @lock if it is ours and without waiters. */
static inline bool release_alone(pthread_spinlock_t *lock)
{
	uint32_t seen = OURS | QSPIN_LOCKED;

	/* release: as [QSPIN-8] */
	return w_likely(w_compare_exchange_release(&qspin_of(lock)->word, &seen, OURS));
}

__attribute__((noinline)) static int lock_slow(pthread_spinlock_t *lock)
{
	if (is_ours(lock)) {
		(void)qspin_acquire(qspin_of(lock), policy(), NULL);
		return 0;
	}
	initialise();
	return real.pthread_spin_lock(lock);
}

__attribute__((noinline)) static int trylock_slow(pthread_spinlock_t *lock)
{
	if (is_ours(lock))
		return qspin_try_acquire(qspin_of(lock)) ? 0 : EBUSY;
	initialise();
	return real.pthread_spin_trylock(lock);
}

__attribute__((noinline)) static int unlock_slow(pthread_spinlock_t *lock)
{
	if (is_ours(lock)) {
		(void)qspin_release(qspin_of(lock), policy());
		return 0;
	}
	initialise();
	return real.pthread_spin_unlock(lock);
}

EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
	return take_free(lock) ? 0 : lock_slow(lock);
}

EXPORT int pthread_spin_trylock(pthread_spinlock_t *lock)
{
	return take_free(lock) ? 0 : trylock_slow(lock);
}

EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	return release_alone(lock) ? 0 : unlock_slow(lock);
}
