/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The page's mutexes are found by a hash table of addresses, which is the process's own: nothing
 * that others can write decides where it reads or writes. A mutex enters it when a thread first
 * waits for it.
 *
 * A forked child does not use its parent's page: the first thread that has to wait there makes the
 * child's, at the same addresses. Until then, and if that fails, nothing can be changed in it.
 */
#define _GNU_SOURCE
#include "control.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config.h"
#include "control_page.h"
#include "hash.h"
#include "live.h"
#include "rules.h"
#include "shared_file.h"

#define PROBES 64u
/* Addresses in the table that are no mutexes'. */
enum { NEVER_USED, FREED };

bool control_on;

static struct control_page *page;
/* Of the mutexes of the page, in the same order. */
static W_ATOMIC(uint64_t) addresses[CONTROL_MUTEXES];
static char folder[PATH_MAX - 64], path[PATH_MAX];
static W_ATOMIC(uint32_t) adding; /* a thread adds a mutex to the table */
static W_ATOMIC(bool) sandboxed;
/*
 * 1 + the fork generation of the process that made the page, and of the last one that tried to; 0:
 * none.
 */
static W_ATOMIC(uint32_t) made, tried;

const char *control_path(void)
{
	return path;
}

/* ---- The page ---- */

static void write_header(void)
{
	page->version = CONTROL_VERSION;
	page->bytes = sizeof(*page);
	page->pid = (uint32_t)syscall(SYS_getpid);
	page->mutexes_most = CONTROL_MUTEXES;
	snprintf(page->program, sizeof(page->program), "%s", program_invocation_short_name);
	memcpy(page->magic, CONTROL_MAGIC, sizeof(CONTROL_MAGIC));
}

/* Makes the file, and maps it in place of the parent's. Sets errno on failure. */
static bool make(void)
{
	int fd = shared_file_new(folder, "control", path, sizeof(path));
	bool is_made =
		fd >= 0 && shared_file_map(fd, page, sizeof(*page)) &&
		(shared_file_populate(page, page + 1) || shared_file_allocate(fd, sizeof(*page)));

	if (is_made)
		write_header();
	else
		shared_file_unmap(page, sizeof(*page));
	shared_file_close(fd, path, is_made);
	return is_made;
}

/* Makes the page of this process, unless a thread has tried. False if there is none yet. */
static bool make_once(void)
{
	uint32_t self = w_fork_generation() + 1, seen = w_load_relaxed(&tried);

	/* relaxed: one thread of the process succeeds, and nothing else depends on it */
	if (seen == self || !w_compare_exchange_relaxed(&tried, &seen, self) || !make())
		return false;
	for (uint32_t i = 0; i < CONTROL_MUTEXES; i++)
		w_store_relaxed(&addresses[i], NEVER_USED);
	w_store_relaxed(&adding, 0);
	/* release: pairs with the acquire in has_page() */
	w_store_release(&made, self);
	return true;
}

/* Whether the process has a page, which a forked child makes now. */
static bool has_page(void)
{
	int saved = errno;
	bool has;

	/* acquire: pairs with the release in make_once(); the mapping, and an empty table */
	if (w_likely(w_load_acquire(&made) == w_fork_generation() + 1))
		return true;
	has = !w_load_relaxed(&sandboxed) && make_once();
	errno = saved;
	return has;
}

void control_stay(void)
{
	/* relaxed: a child sees what the thread that forked has seen */
	w_store_relaxed(&sandboxed, true);
}

/* ---- The table ---- */

static uint32_t place(uint64_t address, uint32_t probe)
{
	return (address_hash(address, CONTROL_MUTEXES_BITS) + probe) % CONTROL_MUTEXES;
}

/* Finds the mutex at @address. CONTROL_MUTEXES: it is not in the table. */
static uint32_t find(uint64_t address)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t at = place(address, i);
		/* acquire: pairs with the release in add(); what the page has about it */
		uint64_t seen = w_load_acquire(&addresses[at]);

		if (seen == address)
			return at;
		if (seen == NEVER_USED)
			break;
	}
	return CONTROL_MUTEXES;
}

/* Finds a place for a mutex at @address. CONTROL_MUTEXES: there is none. */
static uint32_t find_place(uint64_t address)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t at = place(address, i);
		/* acquire: pairs with the release in control_forget_slow(); the page without it */
		uint64_t seen = w_load_acquire(&addresses[at]);

		if (seen == NEVER_USED || seen == FREED)
			return at;
	}
	return CONTROL_MUTEXES;
}

/* As the only thread that adds: adds @m, unless another thread has. Returns its place. */
static uint32_t add(const struct mutex *m, const struct any_ops *ops, const struct rule *rule)
{
	uint64_t address = (uintptr_t)m;
	uint32_t at = find(address);
	struct control_mutex *added;

	if (at != CONTROL_MUTEXES)
		return at;
	at = find_place(address);
	if (at == CONTROL_MUTEXES) {
		(void)w_fetch_add_relaxed(&page->unlisted, 1);
		return at;
	}
	added = &page->mutexes[at];
	added->site = mutex_is_plain(m) ? m->site : 0;
	added->own = any_is_default(ops) ? live_word(ops->settings) : 0;
	added->rule = rule ? rule->line : 0;
	snprintf(added->lock, sizeof(added->lock), "%s", ops->name);
	w_store_relaxed(&added->wanted, 0);
	w_store_relaxed(&added->waits, 0);
	w_store_relaxed(&added->waiting, 0);
	/* release: for readers of the page, which see the address last */
	w_store_release(&added->address, address);
	/* release: pairs with the acquire in find() */
	w_store_release(&addresses[at], address);
	return at;
}

/*
 * Finds or adds @m. Returns its place; CONTROL_MUTEXES: there is none, or another thread adds a
 * mutex, and this one enters the table at a later wait.
 */
static uint32_t enter(const struct mutex *m, const struct any_ops *ops, const struct rule *rule)
{
	uint32_t at = find((uintptr_t)m);

	/* acquire: pairs with the release below; what the last thread has added */
	if (w_likely(at != CONTROL_MUTEXES) || w_exchange_acquire(&adding, 1))
		return at;
	at = add(m, ops, rule);
	w_store_release(&adding, 0);
	return at;
}

void control_forget_slow(const struct mutex *m)
{
	uint32_t at;

	if (w_load_acquire(&made) != w_fork_generation() + 1)
		return;
	at = find((uintptr_t)m);
	if (at == CONTROL_MUTEXES)
		return;
	/* relaxed: a reader of the page may still see the mutex */
	w_store_relaxed(&page->mutexes[at].address, 0);
	/* release: pairs with the acquire in find_place(); the address in the page */
	w_store_release(&addresses[at], FREED);
}

/* ---- Waits ---- */

/*
 * Waits by the settings of @known (NULL: not in the page), or else without a @rule by those of all
 * mutexes, or else by those of @ops.
 */
static bool wait_controlled(struct mutex *m, const struct w_deadline *deadline,
			    const struct any_ops *ops, const struct rule *rule,
			    struct control_mutex *known)
{
	/* relaxed, both: one word, which is checked and not followed */
	uint64_t wanted = known ? w_load_relaxed(&known->wanted) : 0,
		 of_all = rule ? 0 : w_load_relaxed(&page->wanted);
	struct any_ops changed;

	if ((wanted || of_all) && any_is_default(ops)) {
		changed = *ops;
		if (!live_settings(wanted, changed.settings))
			(void)live_settings(of_all, changed.settings);
		ops = &changed;
	}
	return rules_wait_by(ops, m, deadline);
}

bool control_wait(struct mutex *m, const struct w_deadline *deadline, const struct any_ops *ops,
		  const struct rule *rule)
{
	uint32_t generation = w_fork_generation(), at;
	struct control_mutex *known;
	bool taken;

	if (!has_page())
		return rules_wait_by(ops, m, deadline);
	at = enter(m, ops, rule);
	if (at == CONTROL_MUTEXES)
		return wait_controlled(m, deadline, ops, rule, NULL);
	known = &page->mutexes[at];
	/* relaxed, all: figures */
	(void)w_fetch_add_relaxed(&known->waits, 1);
	(void)w_fetch_add_relaxed(&known->waiting, 1);
	taken = wait_controlled(m, deadline, ops, rule, known);
	/* A signal handler may have forked. */
	if (w_likely(generation == w_fork_generation()))
		(void)w_fetch_add_relaxed(&known->waiting, (uint32_t)-1);
	return taken;
}

/* ---- The start ---- */

/* Reports why there is no control. Returns false. */
static bool refuse(const char *why)
{
	config_say("poundlock: POUNDLOCK_CONTROL: %s; no control", why);
	return false;
}

bool control_start(const char *in, const struct any_ops *ops)
{
	void *memory;

	if (!any_is_default(ops))
		return refuse("needs shfl_mutex as the lock of the process, which parks and has no "
			      "policy that measures holds");
	/* Now: a sandbox that is entered later may not allow it (policy=route). */
	(void)w_route_position();
	memory = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return refuse("no memory");
	page = memory;
	snprintf(folder, sizeof(folder), "%s", in);
	if (!make_once()) {
		char why[sizeof(folder) + 128];

		snprintf(why, sizeof(why), "cannot make a file in '%s': %s", folder,
			 strerror(errno));
		return refuse(why);
	}
	control_on = true;
	return true;
}
