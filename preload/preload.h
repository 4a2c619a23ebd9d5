/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the families of interposed functions share: the lock that was chosen, and the library's initialisation.
 */
#ifndef POUNDLOCK_PRELOAD_H
#define POUNDLOCK_PRELOAD_H

#include "any_rw.h"
#include "poundlock.h"

/* The interposed functions, and the table of lib/observer.h, are all that is visible. They carry no version: references
 * to any bind to them. */
#define EXPORT __attribute__((visibility("default")))

/* What our mutexes are made of. NULL until initialise(), and for good if everything is to be native. */
extern W_HIDDEN W_ATOMIC(const struct any_ops *) chosen_ops;
/* NULL if that is not any_default itself. Else the fast paths have it inline, and this is where w_alone() is found. */
extern W_HIDDEN W_ATOMIC(const char *) chosen_default;
/* Whether recursive and error-checking mutexes are ours: the lock has room for an owner. Else they are glibc's. */
extern W_HIDDEN W_ATOMIC(bool) chosen_owners;
/* The same where recursive and error-checking mutexes are ours, too. */
extern W_HIDDEN W_ATOMIC(const char *) chosen_default_owners;
/* What our readers-writer locks are made of. The same. */
extern W_HIDDEN W_ATOMIC(const struct any_rw_ops *) chosen_rw_ops;
/* NULL if that is not any_rw_default itself. */
extern W_HIDDEN W_ATOMIC(const char *) chosen_rw_default;

/*
 * poundlock.h's pound_word_change(), for a word of a lock. @alone points to what w_alone() returns. The constants let the
 * compiler lay the paths out for a process of one thread, whose locks are cheap enough for a jump to count.
 */
#define CHANGES(alone, word, seen, to, order)                                                         \
	(w_likely(*(alone)) ? pound_word_change((uint32_t *)(word), seen, to, __ATOMIC_##order, true) \
			    : pound_word_change((uint32_t *)(word), seen, to, __ATOMIC_##order, false))

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

#endif
