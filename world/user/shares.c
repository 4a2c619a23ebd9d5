/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shares of a lock's time: a thread's accounts with the locks that it uses; its weight, by its nice
 * value; and its group, by its cgroup or as the program chooses.
 *
 * Accounts. A thread has W_ACCOUNTS. If it uses more locks at a time, it loses the least recently
 * used account, with the debt or claim in it, and returns to that lock as a newcomer.
 *
 * Groups. The first W_GROUPS - 1 different ones of a process get a number. Threads of further
 * groups, or of unknown ones, belong to group 0. A cgroup is read once per thread, at its first
 * wait; later changes go unnoticed.
 *
 * A sandbox may forbid threads to read these. Then those that have not read theirs share the
 * process's (w_shares_of_process(), w_shares_keep()).
 *
 * Nothing here calls malloc or changes errno.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shares.h"
#include "world.h"

struct w_own_policy w_own_policies[W_OWN_POLICIES];

/* ---- Accounts ---- */

struct w_account *w_account_open(const void *lock)
{
	struct w_block *block = w_block();
	struct w_account *oldest = &block->accounts[0];

	for (int i = 1; i < W_ACCOUNTS; i++)
		if ((int32_t)(block->accounts[i].used - oldest->used) < 0)
			oldest = &block->accounts[i];
	*oldest = (struct w_account){.lock = lock, .used = ++block->account_uses};
	return oldest;
}

/* ---- Process-wide shares ---- */

#define NICE_0_WEIGHT 1024

/* As in w_own, for threads that have not read their own; 0: they read it. */
static W_ATOMIC(uint32_t) process_weight, process_group;
/* A thread has read its own. */
static W_ATOMIC(bool) is_used;

static void share(uint32_t weight, uint32_t group)
{
	atomic_store_explicit(&process_weight, weight, memory_order_relaxed);
	atomic_store_explicit(&process_group, group, memory_order_relaxed);
}

void w_shares_of_process(void)
{
	const uint32_t own_weight = w_own.weight, own_group = w_own.group;
	uint32_t weight = w_weight_read(), group = w_group_read() + 1;

	/* The program may have chosen these. */
	if (own_weight)
		w_own.weight = own_weight;
	if (own_group)
		w_own.group = (uint16_t)own_group;
	share(weight, group);
}

bool w_shares_keep(void)
{
	if (atomic_load_explicit(&process_weight, memory_order_relaxed))
		return false;
	if (atomic_load_explicit(&is_used, memory_order_relaxed))
		w_shares_of_process();
	else
		share(NICE_0_WEIGHT, 1);
	return true;
}

void w_shares_of_threads(void)
{
	share(0, 0);
}

/* ---- Weights ---- */

#define NICE_LEAST (-20)

/*
 * The kernel's (CFS): one nice level up costs a quarter of the CPU time, beside a thread that
 * stays.
 */
static const uint32_t nice_weights[40] = {
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
	9548,  7620,  6100,  4904,  3906,  3121,  2501,  1991,  1586,  1277,
	1024,  820,   655,   526,   423,   335,   272,   215,   172,   137,
	110,   87,    70,    56,    45,    36,    29,    23,    18,    15,
};

uint32_t w_weight_of_nice(int nice)
{
	int index = nice - NICE_LEAST,
	    last = (int)(sizeof(nice_weights) / sizeof(nice_weights[0])) - 1;

	return nice_weights[index < 0 ? 0 : index > last ? last : index];
}

uint32_t w_weight_read(void)
{
	uint32_t shared = atomic_load_explicit(&process_weight, memory_order_relaxed);
	int saved = errno;

	if (shared)
		return w_own.weight = shared;
	atomic_store_explicit(&is_used, true, memory_order_relaxed);
	errno = 0;
	/* Linux: of the thread; -1 on error. */
	w_own.weight = w_weight_of_nice(getpriority(PRIO_PROCESS, 0));
	if (errno)
		w_own.weight = NICE_0_WEIGHT;
	errno = saved;
	return w_own.weight;
}

void w_weight_set(uint32_t weight)
{
	w_own.weight = weight;
}

/* ---- Groups ---- */

#define CGROUP_WEIGHT 100 /* the default cpu.weight of a cgroup */

W_ATOMIC(uint32_t) w_group_weights[W_GROUPS] = {NICE_0_WEIGHT};
static W_ATOMIC(uint64_t) ids[W_GROUPS]; /* 0: free; number 0 is not used */

/* The number of the group @id, which is not 0. Returns 0 if there are too many groups. */
static uint32_t number_of(uint64_t id)
{
	uint64_t seen;

	for (uint32_t number = 1; number < W_GROUPS; number++) {
		seen = 0;
		if (atomic_compare_exchange_strong(&ids[number], &seen, id) || seen == id)
			return number;
	}
	return 0;
}

_Static_assert(W_GROUPS <= UINT16_MAX, "w_own.group");

static uint32_t join(uint64_t id, uint32_t weight)
{
	uint32_t number = number_of(id);

	if (number)
		atomic_store_explicit(&w_group_weights[number], weight, memory_order_relaxed);
	w_own.group = (uint16_t)(number + 1);
	return number;
}

bool w_tenant_set(uint64_t id, uint32_t weight)
{
	return join(id << 1 | 1, weight); /* odd: not a cgroup's */
}

void w_tenant_clear(void)
{
	w_own.group = 0;
}

uint32_t w_group_save(void)
{
	return w_own.group;
}

void w_group_restore(uint32_t saved)
{
	w_own.group = saved <= W_GROUPS ? saved : 0;
}

/* FNV-1a. */
static uint64_t hash(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return hash << 1 ? hash << 1 : 2; /* even: not a tenant's */
}

/*
 * Reads the beginning of the file at @path into @text, as a string. Raw system calls are not
 * cancellation points.
 */
static bool read_text(const char *path, char *text, size_t size)
{
	long file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), got, length = 0;

	if (file < 0)
		return false;
	while ((size_t)length < size - 1 &&
	       (got = syscall(SYS_read, file, text + length, size - 1 - (size_t)length)) > 0)
		length += got;
	syscall(SYS_close, file);
	text[length] = 0;
	return length > 0;
}

/* Returns whether the comma-separated @list contains @name. */
static bool lists(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (!strncmp(list, name, length) && (!list[length] || list[length] == ','))
			return true;
	return false;
}

bool w_cgroup_parse(char *text, struct w_cgroup *found)
{
	char *next, *controllers, *path;

	*found = (struct w_cgroup){0};
	for (char *line = text; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		controllers = strchr(line, ':');
		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		controllers++;
		if (!*controllers)
			found->path = found->path ? found->path : path; /* 0::PATH: version 2 */
		else if (lists(controllers, "cpu"))
			*found = (struct w_cgroup){.path = path, .v1_controllers = controllers};
		if (found->v1_controllers)
			break;
	}
	return found->path;
}

/* Parses the number at the start of @text, up to 2^20. Returns @otherwise if there is none. */
static uint32_t number_in(const char *text, uint32_t otherwise)
{
	uint32_t number = 0;

	for (; *text >= '0' && *text <= '9' && number < 1u << 20; text++)
		number = number * 10 + (uint32_t)(*text - '0');
	return number ? number : otherwise;
}

/*
 * Buffers for reading a cgroup, off the stack: a thread's stack may have 16 KiB, of which a signal
 * may need a quarter.
 */
struct scratch {
	char text[4096];
	char path[4096 + 64]; /* room for any path in @text, and its prefix and suffix */
};

static uint32_t cgroup_weight(const struct w_cgroup *cgroup, char *path)
{
	bool v1 = cgroup->v1_controllers;
	char text[32], *end = stpcpy(path, "/sys/fs/cgroup");

	if (v1)
		end = stpcpy(stpcpy(end, "/"), cgroup->v1_controllers);
	stpcpy(stpcpy(end, cgroup->path), v1 ? "/cpu.shares" : "/cpu.weight");
	if (!read_text(path, text, sizeof(text)))
		return NICE_0_WEIGHT;
	if (v1)
		return number_in(text, NICE_0_WEIGHT);
	return (number_in(text, CGROUP_WEIGHT) * NICE_0_WEIGHT + CGROUP_WEIGHT - 1) / CGROUP_WEIGHT;
}

uint32_t w_group_read(void)
{
	uint32_t shared = atomic_load_explicit(&process_group, memory_order_relaxed), number = 0;
	int saved = errno;
	struct scratch *scratch;
	struct w_cgroup cgroup;

	if (shared)
		return (w_own.group = shared) - 1;
	atomic_store_explicit(&is_used, true, memory_order_relaxed);
	w_own.group = 1;
	scratch = w_map(sizeof(*scratch));
	if (!scratch)
		return 0;
	if (read_text("/proc/thread-self/cgroup", scratch->text, sizeof(scratch->text)) &&
	    w_cgroup_parse(scratch->text, &cgroup))
		number = join(hash(cgroup.path), cgroup_weight(&cgroup, scratch->path));
	munmap(scratch, sizeof(*scratch));
	errno = saved;
	return number;
}
