/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The parts of shares.c, for its test. */
#ifndef POUNDLOCK_WORLD_SHARES_H
#define POUNDLOCK_WORLD_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "world.h"

/* A thread's cgroup: in version 1, that of the cpu controller; otherwise in version 2. */
struct w_cgroup {
	const char *path;
	const char *v1_controllers; /* the name of the hierarchy; NULL: version 2 */
};

/* Parses @text, the content of /proc/thread-self/cgroup, in place. Returns false if it has none. */
W_HIDDEN bool w_cgroup_parse(char *text, struct w_cgroup *found);

/* From now on, all threads have the process's current weight and group; neither is read again. */
W_HIDDEN void w_shares_of_process(void);

/* The weight of a nice value. */
W_HIDDEN uint32_t w_weight_of_nice(int nice);

#endif
