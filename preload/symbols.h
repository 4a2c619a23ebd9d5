/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The symbols of the program and of its libraries, from their files. */
#ifndef POUNDLOCK_PRELOAD_SYMBOLS_H
#define POUNDLOCK_PRELOAD_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "world.h"

/* A function or an object: the addresses from @from to before @to. */
struct symbol {
	const char *name; /* as the linker knows it: mangled, in C++ */
	uintptr_t from, to;
	bool is_function;
	bool is_writable; /* all of it lies in memory that the program may change */
};

/*
 * Calls @with for each function and object of every loaded file: those of its symbol table, or if
 * that was stripped those that it exports. Files that cannot be read or are damaged are skipped.
 * Does not allocate.
 */
W_HIDDEN void symbols_each(void (*with)(const struct symbol *symbol));

#endif
