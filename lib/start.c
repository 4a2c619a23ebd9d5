/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The start of the library in a process: its environment, and the statistics' observer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "any.h"
#include "observer.h"
#include "route.h"
#include "shares.h"
#include "topology.h"

/* ---- The environment ---- */

/* Prints a line to stderr: an environment variable has a wrong value. */
static void complain(const char *variable, const char *value, const char *expected)
{
	char line[256];
	int length = snprintf(line, sizeof(line), "poundlock: %s=%s: not one of %s\n", variable,
			      value, expected);

	syscall(SYS_write, STDERR_FILENO, line,
		(size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1);
}

/* Reads POUNDLOCK_DOMAIN. False if its value is wrong. */
static bool choose_domain(void)
{
	const char *name = secure_getenv("POUNDLOCK_DOMAIN");
	enum w_domain_kind kind;

	if (!name || !*name)
		return true;
	if (!w_domain_kind_by_name(name, &kind)) {
		complain("POUNDLOCK_DOMAIN", name, "l3, die, node, package, core");
		return false;
	}
	w_domain_choose(kind);
	return true;
}

/* Reads POUNDLOCK_SHARES. False if its value is wrong. */
static bool choose_shares(void)
{
	const char *name = secure_getenv("POUNDLOCK_SHARES");

	if (!name || !*name || !strcmp(name, "thread"))
		return true;
	if (strcmp(name, "process")) {
		complain("POUNDLOCK_SHARES", name, "thread, process");
		return false;
	}
	w_shares_of_process();
	return true;
}

bool any_start(void)
{
	static W_ATOMIC(uint32_t) started;
	static bool valid = true;

	if (atomic_exchange(&started, 1))
		return valid;
	valid = choose_domain();
	valid = choose_shares() && valid;
	/* Calls functions that the preload library interposes, which may call any_start() again. */
	w_process_watch();
	w_route_start();
	w_spin_calibrate();
	(void)w_domains_load();
	return valid;
}

/* ---- Statistics ---- */

const struct pound_observer *any_observer;

/* Weak: a static program has no loader, and must not have to link one. */
#pragma weak dlsym

#define NAME_OF(symbol) #symbol
#define STRING_OF(symbol) NAME_OF(symbol)

static void find_observer(void)
{
	const char *asked = secure_getenv("POUNDLOCK_STATS");

	if (asked && dlsym)
		any_observer = dlsym(RTLD_DEFAULT, STRING_OF(POUND_OBSERVER));
}

__attribute__((constructor)) static void start(void)
{
	(void)any_start();
	find_observer();
}
