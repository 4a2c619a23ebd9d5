/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counts of the library's events, by name. */
#ifndef POUNDLOCK_TESTS_EVENTS_H
#define POUNDLOCK_TESTS_EVENTS_H

#include "expect.h"
#include "poundlock.h"

static inline uint64_t count_of(const char *event)
{
	for (size_t i = 0; pound_event_name(i); i++) {
		EXPECT(*pound_event_meaning(i));
		if (!strcmp(pound_event_name(i), event))
			return pound_event_count(i);
	}
	EXPECT(!"no such event", "%s", event);
	return 0;
}

#endif
