/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Looks up glibc's own functions. real.h has what they do before that. */
#define _GNU_SOURCE
#include "real.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* Returned by the functions below: 0 before the look-up, ENOSYS for those it has not found. */
static int unresolved;

/*
 * Fork handlers registered before the look-up: those of an allocator that initialises itself when
 * the loader allocates, a sanitizer's, and our own, which go first.
 */
#define EARLY_HANDLERS 8
static struct {
	void (*prepare)(void), (*parent)(void), (*child)(void);
	void *object;
} early_handlers[EARLY_HANDLERS];
static size_t early_handlers_count;

/* The object that this library's own pthread_atfork() passes. */
extern char __dso_handle __attribute__((visibility("hidden")));

static int early_register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
				 void *object)
{
	size_t at = object == &__dso_handle ? 0 : early_handlers_count;

	if (unresolved || early_handlers_count == EARLY_HANDLERS)
		return ENOMEM;
	memmove(&early_handlers[at + 1], &early_handlers[at],
		(early_handlers_count++ - at) * sizeof(early_handlers[0]));
	early_handlers[at].prepare = prepare;
	early_handlers[at].parent = parent;
	early_handlers[at].child = child;
	early_handlers[at].object = object;
	return 0;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define REAL(name, version, parameters)    \
	static int early_##name parameters \
	{                                  \
		return unresolved;         \
	}
REAL_FUNCTIONS(REAL)
#undef REAL
#pragma GCC diagnostic pop

struct real real = {
#define REAL(name, version, parameters) .name = early_##name,
	REAL_FUNCTIONS(REAL)
#undef REAL
		.register_atfork = early_register_atfork,
};

/* ThreadSanitizer's; NULL without it. */
extern void __tsan_init(void) __attribute__((weak));

bool real_has_sanitizer(void)
{
	return &__tsan_init;
}

/* A sanitizer's interceptors, which must see the calls, have no symbol versions. */
static void *find(const char *name, const char *version)
{
	void *function = version && !real_has_sanitizer() ? dlvsym(RTLD_NEXT, name, version) : NULL;

	return function ? function : dlsym(RTLD_NEXT, name);
}

const char *real_resolve(void)
{
	const char *missing = NULL;
	struct real found = real;
	void *function;
	size_t i;

#define FIND(field, name, version)                 \
	function = find(name, version);            \
	if (function)                              \
		*(void **)&found.field = function; \
	else                                       \
		missing = name;
#define REAL(name, version, parameters) FIND(name, #name, version)
	REAL_FUNCTIONS(REAL)
#undef REAL
	FIND(register_atfork, "__register_atfork", NULL)
#undef FIND
	unresolved = ENOSYS;
	real = found;
	for (i = 0; i < early_handlers_count; i++)
		real.register_atfork(early_handlers[i].prepare, early_handlers[i].parent,
				     early_handlers[i].child, early_handlers[i].object);
	return missing;
}
