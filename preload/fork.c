/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * pthread_atfork, of which every object has its own copy that calls __register_atfork. Child
 * handlers run in the order of registration, and may lock: the core's own, which drops the waiters
 * that the fork left behind, must be the first. Those that come before the library is initialised
 * are kept until then (real.c). They do not initialise it: a sanitizer registers its handlers in
 * the middle of its own initialisation, before any function that it intercepts may be called.
 */
#include "preload.h"
#include "real.h"

EXPORT int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
			     void *object);

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
		      void *object)
{
	int error = real.register_atfork(prepare, parent, child, object);

	if (!error || w_load_acquire(&initialised))
		return error;
	/* There is room for no more. */
	initialise();
	return real.register_atfork(prepare, parent, child, object);
}
