/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What shares.c is made of, for its test.
 */
#ifndef POUNDLOCK_WORLD_SHARES_H
#define POUNDLOCK_WORLD_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "world.h"

/* A thread's cgroup: that of the cpu controller where version 1 has it, else that of version 2. */
struct w_cgroup {
	const char *path;
	const char *v1_controllers; /* the name of the hierarchy; NULL: version 2 */
};

/* Reads the @text of /proc/thread-self/cgroup, which it cuts to pieces. False if there is none. */
W_HIDDEN bool w_cgroup_parse(char *text, struct w_cgroup *found);

/* From now on all threads are of the process's weight and group, as they are now: neither is read again. */
W_HIDDEN void w_shares_of_process(void);

/* The weight of a nice value. */
W_HIDDEN uint32_t w_weight_of_nice(int nice);

#endif
