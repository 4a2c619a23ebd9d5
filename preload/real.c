/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Looks glibc's own functions up. real.h says what they do before that. */
#define _GNU_SOURCE
#include "real.h"

#include <dlfcn.h>
#include <errno.h>

/* What the functions below return: they have not been looked up yet (0), or could not be found. */
static int unresolved;

/* Fork handlers that came while the look-up ran: an allocator's, which initialises itself when the loader allocates. */
#define EARLY_HANDLERS 8
static struct {
	void (*prepare)(void), (*parent)(void), (*child)(void);
	void *object;
} early_handlers[EARLY_HANDLERS];
static size_t early_handlers_count;

static int early_register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object)
{
	if (unresolved || early_handlers_count == EARLY_HANDLERS)
		return ENOMEM;
	early_handlers[early_handlers_count].prepare = prepare;
	early_handlers[early_handlers_count].parent = parent;
	early_handlers[early_handlers_count].child = child;
	early_handlers[early_handlers_count++].object = object;
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

static void *find(const char *name, const char *version)
{
	void *function = version ? dlvsym(RTLD_NEXT, name, version) : NULL;

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
		real.register_atfork(early_handlers[i].prepare, early_handlers[i].parent, early_handlers[i].child,
				     early_handlers[i].object);
	return missing;
}
