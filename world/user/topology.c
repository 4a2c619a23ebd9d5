/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The current CPU, by rseq if glibc has registered it, otherwise by the vDSO; and its domain, by
 * the lists of CPUs in sysfs. CPU numbers are never divided: sockets are often interleaved, and
 * CPUs missing.
 *
 * Everything is read when the process starts, before it may enter a sandbox that forbids it. So few
 * files are read: three per last-level cache.
 *
 * Files are read by raw system calls: libc's open() and read() are cancellation points, which a
 * lock must not be.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "topology.h"
#include "world.h"

/* ---- The CPU ---- */

/* glibc's, since 2.35: the offset of the thread's struct rseq from the thread pointer. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

#define RSEQ_CPU_ID 4 /* offsetof(struct rseq, cpu_id) */

unsigned w_cpu(void)
{
	int cpu = -1;

	if (&__rseq_size && __rseq_size)
		cpu = *(const volatile int *)(w_thread_pointer() + __rseq_offset + RSEQ_CPU_ID);
	if (cpu < 0) {
		int saved = errno;

		cpu = sched_getcpu();
		errno = saved;
	}
	return cpu < 0 ? 0 : (unsigned)cpu;
}

/* ---- Its domain ---- */

/* If the kernel does not report a maximum, this many missing CPUs in a row mean the end. */
#define MAX_GAP 256
#define MAX_NODES 1024

/* Not on the stack, which may be small. */
static struct {
	unsigned caches;  /* number of caches of the CPU examined last */
	unsigned highest; /* the one of the highest level, and its level */
	long level;
	bool known[W_CPUS];
	char list[4096];
	char nodes[1024];
} scratch;

static enum w_domain_kind chosen = W_DOMAIN_L3;
static uint16_t table[W_CPUS];
static const uint16_t one_domain[W_CPUS];
W_ATOMIC(const uint16_t *) w_domains;
W_ATOMIC(uint32_t) w_domains_known = 1;

static const char *const kind_names[] = {
	[W_DOMAIN_L3] = "l3",           [W_DOMAIN_DIE] = "die",   [W_DOMAIN_NODE] = "node",
	[W_DOMAIN_PACKAGE] = "package", [W_DOMAIN_CORE] = "core",
};

bool w_domain_kind_by_name(const char *name, enum w_domain_kind *kind)
{
	for (size_t i = 0; i < sizeof(kind_names) / sizeof(kind_names[0]); i++) {
		if (!strcmp(name, kind_names[i])) {
			*kind = (enum w_domain_kind)i;
			return true;
		}
	}
	return false;
}

void w_domain_choose(enum w_domain_kind kind)
{
	chosen = kind;
}

bool w_topology_text(const char *path, char *text, size_t size)
{
	long file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), length;

	if (file < 0)
		return false;
	length = syscall(SYS_read, file, text, size - 1);
	syscall(SYS_close, file);
	if (length <= 0)
		return false;
	text[length] = 0;
	text[strcspn(text, "\n")] = 0;
	return true;
}

bool w_topology_range(const char **list, size_t *first, size_t *last)
{
	char *end;

	*first = *last = strtoul(*list, &end, 10);
	if (end == *list)
		return false;
	if (*end == '-')
		*last = strtoul(end + 1, &end, 10);
	*list = *end == ',' ? end + 1 : end;
	return true;
}

/* Assigns @domain to the CPUs of @list. Domain 0 is not written, as in clear(). */
static void assign(const char *list, uint16_t domain, uint16_t *domains, size_t cpus)
{
	size_t first, last;

	while (w_topology_range(&list, &first, &last)) {
		for (size_t cpu = first; cpu <= last && cpu < cpus; cpu++) {
			if (domains[cpu] != domain)
				domains[cpu] = domain;
			scratch.known[cpu] = true;
		}
	}
}

/* Reads the file @name of cache @index of @cpu. */
static bool cache_text(const char *root, size_t cpu, unsigned index, const char *name, char *text,
		       size_t size)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%zu/cache/index%u/%s", root, cpu,
		 index, name);
	return w_topology_text(path, text, size);
}

/* The level of cache @index of @cpu; 0: no such cache. */
static long cache_level(const char *root, size_t cpu, unsigned index)
{
	char text[32];

	return cache_text(root, cpu, index, "level", text, sizeof(text)) ? strtol(text, NULL, 10)
									 : 0;
}

/*
 * Finds @cpu's caches, into scratch. Most CPUs of a machine have the same, which takes two files to
 * verify.
 */
static void find_caches(const char *root, size_t cpu)
{
	long level;

	if (scratch.level && cache_level(root, cpu, scratch.highest) == scratch.level &&
	    !cache_level(root, cpu, scratch.caches))
		return;
	scratch.level = 0;
	for (scratch.caches = 0; (level = cache_level(root, cpu, scratch.caches)) > 0;
	     scratch.caches++) {
		if (level > scratch.level) {
			scratch.level = level;
			scratch.highest = scratch.caches;
		}
	}
}

/* The list of CPUs that share @cpu's last-level cache. */
static bool cache_list(const char *root, size_t cpu, char *list, size_t size)
{
	find_caches(root, cpu);
	return scratch.level &&
	       cache_text(root, cpu, scratch.highest, "shared_cpu_list", list, size);
}

/* The list of CPUs in @cpu's domain. @newer, @older: names of the file in different kernels. */
static bool topology_list(const char *root, size_t cpu, const char *newer, const char *older,
			  char *list, size_t size)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%zu/topology/%s", root, cpu, newer);
	if (w_topology_text(path, list, size))
		return true;
	snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%zu/topology/%s", root, cpu, older);
	return w_topology_text(path, list, size);
}

static bool cpu_list(const char *root, enum w_domain_kind kind, size_t cpu, char *list, size_t size)
{
	switch (kind) {
	case W_DOMAIN_DIE:
		return topology_list(root, cpu, "die_cpus_list", "core_siblings_list", list, size);
	case W_DOMAIN_PACKAGE:
		return topology_list(root, cpu, "package_cpus_list", "core_siblings_list", list,
				     size);
	case W_DOMAIN_CORE:
		return topology_list(root, cpu, "core_cpus_list", "thread_siblings_list", list,
				     size);
	default:
		return cache_list(root, cpu, list, size) ||
		       topology_list(root, cpu, "package_cpus_list", "core_siblings_list", list,
				     size);
	}
}

/* Assigns the next domain, @domain, to the CPUs of @node. Returns whether it has any. */
static bool read_node(const char *root, size_t node, uint16_t domain, uint16_t *domains,
		      size_t cpus)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/devices/system/node/node%zu/cpulist", root, node);
	if (!w_topology_text(path, scratch.list, sizeof(scratch.list)) || !*scratch.list)
		return false;
	assign(scratch.list, domain, domains, cpus);
	return true;
}

/* NUMA nodes are listed by node. Their numbers may have gaps, and some have memory but no CPUs. */
static size_t read_nodes(const char *root, uint16_t *domains, size_t cpus)
{
	const char *nodes = scratch.nodes;
	size_t node, last;
	uint16_t domain = 0;
	char path[256];

	snprintf(path, sizeof(path), "%s/devices/system/node/has_cpu", root);
	if (!w_topology_text(path, scratch.nodes, sizeof(scratch.nodes)))
		return 0;
	while (w_topology_range(&nodes, &node, &last))
		for (; node <= last && node < MAX_NODES; node++)
			domain += read_node(root, node, domain, domains, cpus);
	return domain;
}

/* The highest possible CPU number + 1, at most @cpus; 0 if the kernel does not report it. */
static size_t read_possible(const char *root, size_t cpus)
{
	const char *list = scratch.list;
	size_t first, last, most = 0;
	char path[256];

	snprintf(path, sizeof(path), "%s/devices/system/cpu/possible", root);
	if (!w_topology_text(path, scratch.list, sizeof(scratch.list)))
		return 0;
	while (w_topology_range(&list, &first, &last))
		most = last < cpus ? last + 1 : cpus;
	return most;
}

static size_t read_by_cpu(const char *root, enum w_domain_kind kind, uint16_t *domains, size_t cpus)
{
	size_t missing = 0, possible = read_possible(root, cpus), end = possible ? possible : cpus;
	uint16_t domain = 0;

	/* Finding the caches of a CPU again costs a few files. */
	for (size_t cpu = 0; cpu < end && (possible || missing < MAX_GAP); cpu++) {
		missing++;
		if (!scratch.known[cpu] &&
		    cpu_list(root, kind, cpu, scratch.list, sizeof(scratch.list)))
			assign(scratch.list, domain++, domains, cpus);
		if (scratch.known[cpu])
			missing = 0;
	}
	return domain;
}

/*
 * Zeroes @size bytes without writing to those that are zero: a fork copies every written page.
 */
static void clear(void *memory, size_t size)
{
	static const char zeros[256];
	char *at = memory;

	for (size_t length; size; size -= length, at += length) {
		length = size < sizeof(zeros) ? size : sizeof(zeros);
		if (memcmp(at, zeros, length))
			memset(at, 0, length);
	}
}

size_t w_topology_read(const char *root, enum w_domain_kind kind, uint16_t *domains, size_t cpus)
{
	size_t count;

	cpus = cpus < W_CPUS ? cpus : W_CPUS;
	clear(domains, cpus * sizeof(*domains));
	clear(scratch.known, sizeof(scratch.known));
	scratch.level = 0;
	if (kind == W_DOMAIN_NODE)
		count = read_nodes(root, domains, cpus);
	else
		count = read_by_cpu(root, kind, domains, cpus);
	return count ? count : 1;
}

/* ---- Levels above domains ---- */

uint16_t w_parents[W_LEVELS][W_CPUS];
uint32_t w_parent_counts[W_LEVELS];

/*
 * The kind of the level above domains of @kind, or @kind if there is none. Dies and nodes count as
 * L3s here.
 */
static enum w_domain_kind kind_above(enum w_domain_kind kind)
{
	return kind == W_DOMAIN_CORE ? W_DOMAIN_L3 : W_DOMAIN_PACKAGE;
}

uint32_t w_topology_parents(const char *root, enum w_domain_kind kind, const uint16_t *domains,
			    uint32_t count, uint16_t *parents)
{
	static uint16_t above[W_CPUS];
	uint32_t found = (uint32_t)w_topology_read(root, kind, above, W_CPUS);

	if (found <= 1 || found >= count)
		return 0;
	for (size_t cpu = 0; cpu < W_CPUS; cpu++)
		if (scratch.known[cpu])
			parents[domains[cpu]] = above[cpu];
	return found;
}

/* @count: number of domains. */
static void read_parents(const uint16_t *domains, uint32_t count)
{
	enum w_domain_kind kind = chosen;

	for (uint32_t level = 1; level < W_LEVELS && count > 1 && kind != kind_above(kind);
	     level++) {
		kind = kind_above(kind);
		w_parent_counts[level] =
			w_topology_parents("/sys", kind, domains, count, w_parents[level]);
		if (w_parent_counts[level])
			count = w_parent_counts[level];
	}
}

/* ---- One reader at a time ---- */

/*
 * 0, or the fork generation of the reader + 1: a reader that does not exist in a forked child is
 * not waited for.
 */
static W_ATOMIC(uint32_t) reader;

bool w_topology_claim(void)
{
	uint32_t own = w_fork_generation() + 1, seen = atomic_load(&reader);

	return seen != own && atomic_compare_exchange_strong(&reader, &seen, own);
}

void w_topology_release(void)
{
	atomic_store(&reader, 0);
}

/* While one thread reads, all CPUs belong to one domain for the others. */
const uint16_t *w_domains_load(void)
{
	const uint16_t *domains = one_domain;
	int saved = errno;
	uint32_t count;

	if (w_topology_claim()) {
		domains = atomic_load(&w_domains);
		if (!domains) {
			count = (uint32_t)w_topology_read("/sys", chosen, table, W_CPUS);
			read_parents(table, count);
			atomic_store(&w_domains_known, count);
			domains = table;
			atomic_store(&w_domains, domains);
		}
		w_topology_release();
	}
	errno = saved;
	return domains;
}
