// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The CPUs of each locality domain, by a boot parameter and a file of debugfs's poundlock/;
 * included by qspinlock.c, behind tuning.c:
 *
 *	poundlock.domain=node|llc|cluster|auto
 *
 *	node     the CPUs of a NUMA node (default)
 *	llc      the CPUs that share a last-level cache
 *	cluster  the CPUs that share what the kernel calls a cluster: on x86, an L2 cache
 *	auto     the smallest of these of which the machine has more than one, with more than one
 *	         core each. Where there is none, cna and shfl are replaced by the stock spin lock
 *
 * `domains` has the CPUs of each domain in use, a line each.
 *
 * The masks are the architecture's. The scheduler's sd_llc_id follows from them, but a CPU that a
 * cpuset isolates shares it with no other.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/topology.h>

#include "choice.h"

/* From the smallest domains to the largest ones. */
enum level { LEVEL_CLUSTER, LEVEL_LLC, LEVEL_NODE, LEVEL_AUTO };

static const char *const levels[] = {
	[LEVEL_CLUSTER] = "cluster",
	[LEVEL_LLC] = "llc",
	[LEVEL_NODE] = "node",
	[LEVEL_AUTO] = "auto",
};

#define NO_LEVEL "there is no such domain (node, llc, cluster, auto)"

static enum level level = LEVEL_NODE;

/* Changes of `level` and of the CPUs' domains. Taken inside the lock of CPU hotplug. */
static DEFINE_MUTEX(laying);

/* ---- Domains of a level; LEVEL_AUTO: the machine ---- */

static bool share_domain(enum level by, int a, int b)
{
	switch (by) {
	case LEVEL_CLUSTER:
		return cpumask_test_cpu(b, topology_cluster_cpumask(a));
	case LEVEL_LLC:
		return cpumask_test_cpu(b, cpu_coregroup_mask(a));
	case LEVEL_NODE:
		return cpu_to_node(a) == cpu_to_node(b);
	default:
		return true;
	}
}

/* The first online CPU of the domain of @cpu, which is online. */
static int leader_of(enum level by, int cpu)
{
	int first;

	for_each_online_cpu(first) if (first == cpu || share_domain(by, first, cpu)) break;
	return first;
}

/* Whether @by divides the machine into domains, of which one has several cores. */
static bool divides(enum level by)
{
	bool has_two = false, has_cores = false;
	int cpu, leader;

	for_each_online_cpu(cpu)
	{
		leader = leader_of(by, cpu);
		has_two |= leader != cpumask_first(cpu_online_mask);
		has_cores |= !cpumask_test_cpu(cpu, topology_sibling_cpumask(leader));
	}
	return has_two && has_cores;
}

/* The level that `auto` stands for. */
static enum level fitting_level(void)
{
	enum level by = LEVEL_CLUSTER;

	while (by < LEVEL_AUTO && !divides(by))
		by++;
	return by;
}

/*
 * Numbers the domains, and writes to each CPU the one that it is in. Concurrent waiters may use the
 * numbers of before, which costs locality only. The caller prevents CPU hotplug.
 */
static void lay_domains(void)
{
	const enum level by = level == LEVEL_AUTO ? fitting_level() : level;
	u32 count = 0, domain;
	int cpu, leader;

	lockdep_assert_held(&laying);
	for_each_online_cpu(cpu)
	{
		leader = leader_of(by, cpu);
		domain = leader == cpu ? count++ : per_cpu(w_selves, leader).domain;
		WRITE_ONCE(per_cpu_ptr(&w_selves, cpu)->domain, domain);
	}
	WRITE_ONCE(w_domains, count);
}

/* Whether there is nothing to order by domains. */
static bool has_one_domain(void)
{
	return READ_ONCE(level) == LEVEL_AUTO && READ_ONCE(w_domains) == 1;
}

/* A CPU that comes online may be in a domain that had no CPU. */
static int lay_for(unsigned int cpu)
{
	mutex_lock(&laying);
	lay_domains();
	mutex_unlock(&laying);
	return 0;
}

/* ---- poundlock.domain ---- */

static int __init choose_domain(char *name)
{
	int found = match_string(levels, ARRAY_SIZE(levels), name);

	if (found < 0)
		(void)refuse("domain", name, -EINVAL, NO_LEVEL);
	else
		level = (enum level)found;
	return 0;
}
early_param("poundlock.domain", choose_domain);

static void set_level(enum level wanted)
{
	cpus_read_lock();
	mutex_lock(&laying);
	WRITE_ONCE(level, wanted);
	lay_domains();
	mutex_unlock(&laying);
	cpus_read_unlock();
}

static int domain_show(struct seq_file *file, void *unused)
{
	seq_printf(file, "%s\n", levels[READ_ONCE(level)]);
	return 0;
}

static int domain_open(struct inode *inode, struct file *file)
{
	return single_open(file, domain_show, NULL);
}

/* The online CPUs of @domain. */
static void collect_domain(u32 domain, struct cpumask *cpus)
{
	int cpu;

	cpumask_clear(cpus);
	for_each_online_cpu(cpu) if (per_cpu(w_selves, cpu).domain == domain)
		cpumask_set_cpu(cpu, cpus);
}

static int domains_show(struct seq_file *file, void *unused)
{
	cpumask_var_t cpus;
	u32 domain;

	if (!alloc_cpumask_var(&cpus, GFP_KERNEL))
		return -ENOMEM;
	cpus_read_lock();
	mutex_lock(&laying);
	for (domain = 0; domain < w_domains; domain++) {
		collect_domain(domain, cpus);
		seq_printf(file, "%*pbl\n", cpumask_pr_args(cpus));
	}
	mutex_unlock(&laying);
	cpus_read_unlock();
	free_cpumask_var(cpus);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(domains);
