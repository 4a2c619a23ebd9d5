/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The environment. Nothing here allocates: it runs before the first lock, which may be an
 * allocator's. Each line goes to stderr by one plain system call: write() is a cancellation point,
 * which a lock must not be.
 */
#define _GNU_SOURCE
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "control.h"
#include "locks.def" /* the locks that this build lacks */
#include "spec.h"
#include "spin.h"
#include "stats/stats.h"
#include "stats/region.h"

#ifndef WITHOUT_shfl_ron
#define DEFAULT_LOCK "shfl_ron"
#else
#define DEFAULT_LOCK "shfl_mutex"
#endif
#define DEFAULT_RWLOCK "shfl_rw"
#define LIBRARY "libpoundlock-preload.so"
#define SHARED_MEMORY "/dev/shm"

void config_say(const char *format, ...)
{
	char line[512];
	va_list arguments;
	size_t length;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	length = strlen(line);
	line[length++] = '\n';
	syscall(SYS_write, STDERR_FILENO, line, length);
}

static void make_native(struct config *config)
{
	config->native = false;
	config->ops = NULL;
	config->rw_ops = NULL;
	config->spin = false;
}

/* The switch @name: 0, 1 or @unset. Any other value is reported, and makes @config native. */
static bool read_switch(struct config *config, const char *name, bool unset)
{
	const char *value = secure_getenv(name);

	if (!value || !*value)
		return unset;
	if (!strcmp(value, "0") || !strcmp(value, "1"))
		return *value == '1';
	config_say("poundlock: %s=%s is neither 0 nor 1; using native locks", name, value);
	make_native(config);
	return unset;
}

/* The value of @name; @unset if it is empty; NULL if it is "native". */
static const char *read_spec(const char *name, const char *unset)
{
	const char *spec = secure_getenv(name);

	if (!spec || !*spec)
		return unset;
	return strcmp(spec, NATIVE) ? spec : NULL;
}

/*
 * Reads which locks to use. Returns NULL, or the variable that is wrong, with the reason in @error.
 */
static const char *read_locks(struct config *config, char *error, size_t size)
{
	const char *spec = secure_getenv("POUNDLOCK_LOCK");

	if (spec && !strcmp(spec, NATIVE)) {
		config->native = true;
		return NULL;
	}
	any_route_waits = true;
	config->ops = any_find(spec && *spec ? spec : DEFAULT_LOCK, error, size);
	if (!config->ops)
		return "POUNDLOCK_LOCK";
	spec = read_spec("POUNDLOCK_RWLOCK", DEFAULT_RWLOCK);
	if (spec && !(config->rw_ops = any_rw_find(spec, error, size)))
		return "POUNDLOCK_RWLOCK";
	spec = read_spec("POUNDLOCK_SPINLOCK", SPIN_DEFAULT);
	if (spec && !(config->spin = spin_find(spec, error, size)))
		return "POUNDLOCK_SPINLOCK";
	return NULL;
}

/* Reads which file has the rules. */
static void read_rules(struct config *config)
{
	const char *file = secure_getenv("POUNDLOCK_RULES");

	if (file && *file)
		config->rules = file;
}

/* The folder that @name requests for files. NULL: none. A wrong value makes @config native. */
static const char *read_folder(struct config *config, const char *name)
{
	const char *value = secure_getenv(name), *runtime = secure_getenv("XDG_RUNTIME_DIR");

	if (!value || !*value || !strcmp(value, "0"))
		return NULL;
	if (*value == '/')
		return value;
	if (!strcmp(value, "1"))
		return runtime && *runtime == '/' ? runtime : SHARED_MEMORY;
	config_say("poundlock: %s=%s is neither 0, 1 nor a folder's path from the root; using "
		   "native locks",
		   name, value);
	make_native(config);
	return NULL;
}

/* Reads whether there are statistics and a control page, and in which folders. */
static void read_folders(struct config *config)
{
	config->profile = read_switch(config, "POUNDLOCK_PROFILE", false);
	config->stats = read_folder(config, "POUNDLOCK_STATS");
	config->control = read_folder(config, "POUNDLOCK_CONTROL");
}

/* Whether @entry, of @length bytes, is the path of this library, in any directory. */
static bool is_us(const char *entry, size_t length)
{
	size_t name = strlen(LIBRARY);

	return length >= name && !memcmp(entry + length - name, LIBRARY, name) &&
	       (length == name || entry[length - name - 1] == '/');
}

/* Removes this library from @list, the value of LD_PRELOAD, in place. */
static void remove_us(char *list)
{
	char *from = list, *to = list;

	while (*from) {
		size_t length = strcspn(from, ": ");

		if (length && !is_us(from, length)) {
			if (to != list)
				*to++ = ':';
			memmove(to, from, length);
			to += length;
		}
		from += length + (from[length] != 0);
	}
	*to = 0;
}

/* Removes this library and its variables from the environment that children inherit. */
static void disinherit(void)
{
	char *preload = getenv("LD_PRELOAD");

	if (preload)
		remove_us(preload);
	if (preload && !*preload)
		unsetenv("LD_PRELOAD");
	for (char **variable = environ; variable && *variable;) {
		size_t length = strcspn(*variable, "=");
		char name[64];

		if (strncmp(*variable, "POUNDLOCK_", strlen("POUNDLOCK_")) ||
		    length >= sizeof(name)) {
			variable++;
			continue;
		}
		memcpy(name, *variable, length);
		name[length] = 0;
		unsetenv(name); /* and moves the rest of the list here */
	}
}

struct config config_read(void)
{
	struct config config = {0};
	char error[256];
	const char *wrong = read_locks(&config, error, sizeof(error));

	if (wrong) {
		config_say("poundlock: %s: %s; using native locks", wrong, error);
		make_native(&config);
	}
	if (read_switch(&config, "POUNDLOCK_DISABLE", false))
		make_native(&config);
	config.verbose = read_switch(&config, "POUNDLOCK_VERBOSE", false);
	read_rules(&config);
	read_folders(&config);
	if (!read_switch(&config, "POUNDLOCK_INHERIT", true))
		disinherit();
	return config;
}

void config_refuse(struct config *config, const char *what, const char *is)
{
	config_say("poundlock: %s %s; %s", what, is,
		   config->native ? "no statistics" : "using native locks");
	make_native(config);
}

void config_announce(const struct config *config)
{
	const char *statistics = stats_on ? stats_region_path() : NULL,
		   *control = control_on ? control_path() : NULL;

	if (!config->verbose)
		return;
	if (config->ops)
		config_say("poundlock: lock=%s wait=%s rwlock=%s spinlock=%s pid=%ld%s%s%s%s",
			   config->ops->name, spec_wait_name(config->ops->wait),
			   config->rw_ops ? config->rw_ops->name : NATIVE,
			   config->spin ? SPIN_DEFAULT : NATIVE, (long)getpid(),
			   statistics ? " statistics=" : "", statistics ? statistics : "",
			   control ? " control=" : "", control ? control : "");
	else
		config_say("poundlock: lock=" NATIVE " pid=%ld%s%s", (long)getpid(),
			   statistics ? " statistics=" : "", statistics ? statistics : "");
}
