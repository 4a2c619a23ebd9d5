/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Empty versions of the model checker's functions (check.h) for worlds that execute clients and
 * cannot check them, such as the end of an object's lifetime.
 */
#ifndef POUNDLOCK_CHECK_UNSEEN_H
#define POUNDLOCK_CHECK_UNSEEN_H

#define check_returned() ((void)0)
#define check_ended(p) ((void)(p))
#define check_hint(p) ((void)(p))
#define check_mixed(p) ((void)(p))
#define check_queue(p) ((void)(p))
#define check_acquires() ((void)0)
#define check_acquired(has) ((void)(has))
#define check_arrival(thread) ((uint64_t)((thread)&0))

#endif
