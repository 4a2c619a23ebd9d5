/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the families of interposed functions share: the lock that was chosen, and the library's initialisation.
 */
#ifndef POUNDLOCK_PRELOAD_H
#define POUNDLOCK_PRELOAD_H

#include "any_rw.h"

/* The interposed functions, and nothing else, are visible. They carry no version: references to any bind to them. */
#define EXPORT __attribute__((visibility("default")))

/* What our mutexes are made of. NULL until initialise(), and for good if everything is to be native. */
extern W_HIDDEN W_ATOMIC(const struct any_ops *) chosen_ops;
/* NULL if that is not any_default itself. Else the fast paths have it inline, and this is where w_alone() is found. */
extern W_HIDDEN W_ATOMIC(const char *) chosen_default;
/* What our readers-writer locks are made of. The same. */
extern W_HIDDEN W_ATOMIC(const struct any_rw_ops *) chosen_rw_ops;

extern W_HIDDEN W_ATOMIC(uint32_t) initialised;
W_HIDDEN void initialise_slow(void);

/*
 * Called by every interposed function before anything else, but for fast paths that find chosen_ops set: other
 * libraries' constructors, which may run before ours, lock too. Inside the initialisation itself it does nothing.
 */
static inline void initialise(void)
{
	/* acquire: pairs with the release at the end of initialise_slow(); all that it has set */
	if (w_unlikely(!w_load_acquire(&initialised)))
		initialise_slow();
}

extern W_HIDDEN __thread uint32_t thread_id_known __attribute__((tls_model("initial-exec")));
W_HIDDEN W_SLOW uint32_t thread_id_make(void);

/* This thread's id: never 0, the same in a forked child, and not another thread's for 2^32 threads. */
static inline uint32_t thread_id(void)
{
	return w_likely(thread_id_known) ? thread_id_known : thread_id_make();
}

#endif
