// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The state of the kernel's world between lock operations; and the route: a tour over the nodes,
 * from each to the nearest one not visited yet, and within a node over its CPUs in order.
 */
#include <linux/nodemask.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "world.h"

DEFINE_PER_CPU_ALIGNED(struct w_self, w_selves);
DEFINE_STATIC_KEY_FALSE(w_listening);
bool w_heeds_urgency __read_mostly = true;
u32 w_domains __read_mostly = 1;
struct w_node w_queue_nodes[W_QUEUE_NODES];
struct w_visible w_visible_readers[W_VISIBLE];
W_ATOMIC(uint32_t) w_slots[W_SLOTS] ____cacheline_aligned;

/*
 * Enough for core/ron_shared.h, the only lock that needs it: slots of two words for each CPU's
 * contexts, at least 64, and their marks.
 */
#define COMMON_BYTES (PAGE_SIZE + (size_t)(nr_cpu_ids * W_CONTEXTS + 64) * 4 * sizeof(u64))

static void *common;

void *w_common(size_t bytes)
{
	BUG_ON(bytes > COMMON_BYTES);
	return common;
}

struct w_account *w_account_open(struct w_account *accounts, const void *lock)
{
	struct w_account *oldest = accounts, fresh = {};
	u32 i;

	for (i = 1; i < W_ACCOUNTS; i++)
		if ((s32)(accounts[i].used - oldest->used) < 0)
			oldest = &accounts[i];
	fresh.lock = lock;
	fresh.task = get_current();
	/*
	 * A charge to its last owner may arrive concurrently. It is lost, or charged to the new
	 * one.
	 */
	data_race(*oldest = fresh);
	return oldest;
}

u64 w_counted(enum w_event event)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu) sum += READ_ONCE(per_cpu_ptr(&w_selves, cpu)->events[event]);
	return sum;
}

/* The node nearest to @from that is not in @seen, or NUMA_NO_NODE. */
static int nearest_node(int from, const nodemask_t *seen)
{
	int node, nearest = NUMA_NO_NODE;

	for_each_node(node)
	{
		if (node_isset(node, *seen))
			continue;
		if (nearest == NUMA_NO_NODE ||
		    node_distance(from, node) < node_distance(from, nearest))
			nearest = node;
	}
	return nearest;
}

static void lay_route(void)
{
	nodemask_t seen = NODE_MASK_NONE;
	int node = first_node(node_possible_map), cpu;
	u32 position = 0;

	for (; node != NUMA_NO_NODE; node = nearest_node(node, &seen)) {
		node_set(node, seen);
		for_each_possible_cpu(cpu) if (cpu_to_node(cpu) == node) per_cpu_ptr(&w_selves, cpu)
			->position = position++;
	}
	/* CPUs without a known node come last, so that no two share a position. */
	for_each_possible_cpu(cpu) if (cpu_to_node(cpu) == NUMA_NO_NODE) per_cpu_ptr(&w_selves, cpu)
		->position = position++;
}

static void lay_domains_by_node(void)
{
	int cpu;

	for_each_possible_cpu(cpu) per_cpu_ptr(&w_selves, cpu)->domain = max(cpu_to_node(cpu), 0);
	w_domains = nr_node_ids;
}

bool w_start(void)
{
	int cpu;

	common = vzalloc(COMMON_BYTES);
	if (!common)
		return false;
	for_each_possible_cpu(cpu)
	{
		per_cpu_ptr(&w_selves, cpu)->random = get_random_u32() | 1;
		per_cpu_ptr(&w_selves, cpu)->unique = (u64)(cpu + 1) << 48;
	}
	lay_route();
	lay_domains_by_node();
	return true;
}

void w_end(void)
{
	vfree(common);
}
