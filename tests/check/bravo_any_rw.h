/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* BRAVO over the specification of a readers-writer lock. */
#ifndef POUNDLOCK_CHECK_BRAVO_ANY_RW_H
#define POUNDLOCK_CHECK_BRAVO_ANY_RW_H

#include "any_rw.h"
#include "rw/bravo.h"

struct bravo_any_rw_policy {
	enum wait wait;
	uint32_t inhibit;
};

#define SMALL_bravo_any_rw_inhibit 1
#define bravo_any_rw_settings(S) S(bravo_any_rw, inhibit)

static inline struct any_rw_policy bravo_any_rw_under(struct bravo_any_rw_policy policy)
{
	return (struct any_rw_policy){policy.wait};
}

BRAVO_OVER(any_rw)

#endif
