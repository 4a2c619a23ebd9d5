/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * pthread_atfork, of which every object has its own copy that calls __register_atfork. Child handlers run in the order
 * of registration, and may lock: the core's own, which drops the waiters that the fork left behind, must be the first,
 * so it is registered before any other's is.
 */
#include "preload.h"
#include "real.h"

EXPORT int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object);

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object)
{
	initialise();
	return real.register_atfork(prepare, parent, child, object);
}
