/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counts the cache lines that code compiled with -fsanitize=thread touches. */
#ifndef POUNDLOCK_UNIT_LINES_H
#define POUNDLOCK_UNIT_LINES_H

#include <stddef.h>
#include <stdint.h>

/* Forgets the watched lines and the counts. */
void lines_begin(void);

/* From now on also watches the lines of these @size bytes. */
void lines_watch(const void *memory, size_t size);

/* The number of distinct watched lines touched since lines_begin(). */
uint32_t lines_end(void);

#endif
