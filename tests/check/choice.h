/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A choice of the explorer, which takes both ways. */
#ifndef POUNDLOCK_CHECK_CHOICE_H
#define POUNDLOCK_CHECK_CHOICE_H

#include "check.h"

static inline bool any_choice(void)
{
	return CHECK_DO("choice", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0);
}

#endif
