/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Counts the cache lines that code touches which is compiled with -fsanitize=thread, by the hooks of that.
 */
#ifndef POUNDLOCK_UNIT_LINES_H
#define POUNDLOCK_UNIT_LINES_H

#include <stddef.h>
#include <stdint.h>

/* Watches nothing, and has counted nothing. */
void lines_begin(void);

/* Counts the lines of these @size bytes, too, from now on. */
void lines_watch(const void *memory, size_t size);

/* How many different lines have been touched since lines_begin(). */
uint32_t lines_end(void);

#endif
