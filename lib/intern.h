/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The tables of locks whose settings are not the defaults: one for each specification that the
 * process has used. A table never changes and is never freed, so locks may point to it and threads
 * may read it indefinitely. Any thread may intern a table at any time, in a forked child as well:
 * nothing here allocates or waits.
 */
#ifndef POUNDLOCK_INTERN_H
#define POUNDLOCK_INTERN_H

#include <stddef.h>

#include "world.h"

/* The most specifications that a process can use, of locks and of readers-writer locks. */
#define INTERN_MOST 1024

/* Before each table. */
struct interned {
	W_ATOMIC(struct interned *) next;
};

/* The interned tables of one type. */
struct intern {
	size_t size;   /* bytes of a table */
	size_t stride; /* the same with what is before it */
	void *memory;  /* for @most of them */
	uint32_t most; /* tables */
	W_ATOMIC(uint32_t) used;
	W_ATOMIC(struct interned *) first;
	W_ATOMIC(struct interned *) spare; /* one that is used, but not interned; NULL: none */
};

/* Defines @name, for @count tables of @type, whose padding is zero. */
#define INTERN(name, type, count)                                                                \
	static struct {                                                                          \
		struct interned before;                                                          \
		type table;                                                                      \
	} name##_memory[count];                                                                  \
	_Static_assert(offsetof(__typeof__(name##_memory[0]), table) == sizeof(struct interned), \
		       "intern.c finds a table behind what is before it");                       \
	static struct intern name = {.size = sizeof(type),                                       \
				     .stride = sizeof(name##_memory[0]),                         \
				     .memory = name##_memory,                                    \
				     .most = (count)}

/* Returns the interned copy of @table, made if there is none. NULL: there is no room for it. */
W_HIDDEN const void *intern(struct intern *tables, const void *table);

/* Reports in @error (@size bytes) that intern() found no room. Returns false. */
W_HIDDEN bool intern_full(char *error, size_t size);

#endif
