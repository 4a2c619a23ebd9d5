/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The page's locks are found by a hash table of addresses, which is the process's own: nothing
 * that others can write decides where it reads or writes. A lock enters it when a thread first
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

#include "any.h"
#include "config.h"
#include "control_page.h"
#include "hash.h"
#include "live.h"
#include "shared_file.h"

bool control_on;

static struct control_page *page;
/* Of the locks of the page, in the same order. */
static W_ATOMIC(uint64_t) addresses[CONTROL_LOCKS];
static char folder[PATH_MAX - 64], path[PATH_MAX];
static W_ATOMIC(uint32_t) adding; /* a thread adds a lock to the table */
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
	page->locks_most = CONTROL_LOCKS;
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

void control_stay(void)
{
	/* relaxed: a child sees what the thread that forked has seen */
	w_store_relaxed(&sandboxed, true);
}

#include "control_table.h"

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

	if (!any_is_inlined(ops))
		return refuse("needs shfl_mutex or shfl_ron as the lock of the process, which "
			      "parks and has no policy that measures holds");
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
