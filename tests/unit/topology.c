/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * topology.h on simulated machines: interleaved sockets, missing CPUs and files, many CPUs, nodes
 * without CPUs. A domain computed by dividing CPU numbers would be wrong on most of them.
 */
#define _GNU_SOURCE
#include "topology.h"

#include "machine.h"
#include "unit.h"

#define CPUS 2048

static uint16_t domains[CPUS];

static size_t read_domains(enum w_domain_kind kind)
{
	memset(domains, 0xff, sizeof(domains));
	return w_topology_read(root, kind, domains, CPUS);
}

/* ---- Tests ---- */

static const int even[] = {0, 2, 4, 6}, odd[] = {1, 3, 5, 7};

static void interleaved_sockets(void)
{
	static const char *const files[][2] = {{"package_cpus_list", "die_cpus_list"},
					       {"core_siblings_list", "core_siblings_list"}};

	for (int names = 0; names < 2; names++) {
		begin();
		for (int file = 0; file < 2; file++) {
			share("0,2,4,6", files[names][file], even, 4);
			share("1,3,5,7", files[names][file], odd, 4);
		}
		for (enum w_domain_kind kind = W_DOMAIN_L3; kind <= W_DOMAIN_PACKAGE; kind++) {
			if (kind == W_DOMAIN_NODE)
				continue;
			EXPECT(read_domains(kind) == 2, "kind %d", kind);
			for (int cpu = 0; cpu < 8; cpu++)
				EXPECT(domains[cpu] == cpu % 2, "kind %d, CPU %d", kind, cpu);
		}
		end();
	}
}

static void interleaved_nodes(void)
{
	begin();
	put("0,4", "devices/system/node/has_cpu");
	put("0-1,4-5", "devices/system/node/node0/cpulist");
	put("", "devices/system/node/node1/cpulist"); /* memory only */
	put("2-3,6-7", "devices/system/node/node4/cpulist");
	EXPECT(read_domains(W_DOMAIN_NODE) == 2);
	for (int cpu = 0; cpu < 8; cpu++)
		EXPECT(domains[cpu] == cpu / 2 % 2, "CPU %d", cpu);
	end();
}

/*
 * The last cache level counts, whatever the order of the files; a machine may lack a third level.
 */
static void last_level_cache(void)
{
	static const char *const lists[] = {"0-1", "0-1", "2,5", "3-4", "3-4", "2,5"};
	static const int expected[] = {0, 0, 1, 2, 2, 1};

	begin();
	for (int cpu = 0; cpu < COUNT(lists); cpu++) {
		cache(cpu, 0, "1", "0-5");
		cache(cpu, 1, "3", lists[cpu]);
		cache(cpu, 2, "2", "0-5");
	}
	EXPECT(read_domains(W_DOMAIN_L3) == 3);
	for (int cpu = 0; cpu < COUNT(lists); cpu++)
		EXPECT(domains[cpu] == expected[cpu], "CPU %d", cpu);
	end();
}

static void cores(void)
{
	static const char *const names[] = {"core_cpus_list", "thread_siblings_list"};

	for (int name = 0; name < COUNT(names); name++) {
		begin();
		for (int cpu = 0; cpu < 8; cpu++) {
			char list[16];

			snprintf(list, sizeof(list), "%d,%d", cpu % 4, cpu % 4 + 4);
			share(list, names[name], &cpu, 1);
		}
		EXPECT(read_domains(W_DOMAIN_CORE) == 4);
		for (int cpu = 0; cpu < 8; cpu++)
			EXPECT(domains[cpu] == cpu % 4, "CPU %d", cpu);
		end();
	}
}

/*
 * Missing CPUs, in short and long gaps and more than 256 in total, do not hide the CPUs behind
 * them.
 */
static void holes(void)
{
	static const int present[] = {3, 10, 200, 390, 580};

	begin();
	for (int i = 0; i < COUNT(present); i++) {
		char list[16];

		snprintf(list, sizeof(list), "%d", present[i]);
		share(list, "core_cpus_list", &present[i], 1);
	}
	EXPECT(read_domains(W_DOMAIN_CORE) == (size_t)COUNT(present));
	for (int i = 0; i < COUNT(present); i++)
		EXPECT(domains[present[i]] == i, "CPU %d", present[i]);
	EXPECT(domains[0] == 0 && domains[100] == 0);
	end();
}

/* The kernel's list of possible CPUs bounds the search, and no gap ends it earlier. */
static void possible(void)
{
	static const int present[] = {0, 900, 901};
	static const struct {
		const char *list;
		size_t domains;
	} said[] = {{"0-900", 2}, {"0,900-901", 3}, {"0-5000", 3}, {"0", 1}};

	for (int i = 0; i < COUNT(said); i++) {
		begin();
		share("0", "core_cpus_list", &present[0], 1);
		share("900", "core_cpus_list", &present[1], 1);
		share("901", "core_cpus_list", &present[2], 1);
		EXPECT(read_domains(W_DOMAIN_CORE) == 1, "a gap too long to look behind it");
		put(said[i].list, "devices/system/cpu/possible");
		EXPECT(read_domains(W_DOMAIN_CORE) == said[i].domains, "of '%s'", said[i].list);
		end();
	}
}

static void many_cpus(void)
{
	begin();
	for (int cpu = 0; cpu < 512; cpu++)
		share(cpu % 2 ? "64-127,192-255,320-383,448-511" : "0-63,128-191,256-319,384-447",
		      "package_cpus_list", (int[]){cpu / 64 % 2 == cpu % 2 ? cpu : cpu ^ 64}, 1);
	EXPECT(read_domains(W_DOMAIN_PACKAGE) == 2);
	for (int cpu = 0; cpu < 512; cpu++)
		EXPECT(domains[cpu] == cpu / 64 % 2, "CPU %d", cpu);
	end();
}

/* Packages of two L3 groups; packages that equal an L3 group or the machine add no level. */
static void parents(void)
{
	static const char *const lists[] = {"0-1", "2-3", "4-5", "6-7"};
	static uint16_t by_cpu[W_CPUS], above[W_CPUS];
	uint32_t count;

	begin();
	for (int cpu = 0; cpu < 8; cpu++) {
		share(lists[cpu / 2], "die_cpus_list", &cpu, 1);
		share(cpu < 4 ? "0-3" : "4-7", "package_cpus_list", &cpu, 1);
	}
	count = (uint32_t)w_topology_read(root, W_DOMAIN_DIE, by_cpu, W_CPUS);
	EXPECT(count == 4 && w_topology_parents(root, W_DOMAIN_PACKAGE, by_cpu, count, above) == 2);
	for (int die = 0; die < 4; die++)
		EXPECT(above[die] == die / 2, "die %d", die);
	EXPECT(!w_topology_parents(root, W_DOMAIN_PACKAGE, by_cpu, 2, above) && above[3] == 1);
	EXPECT(!w_topology_parents(root, W_DOMAIN_NODE, by_cpu, count, above));
	end();
}

/* An empty or nonsensical tree gives one domain; a list never reaches beyond the requested CPUs. */
static void no_sense(void)
{
	static const char *const lists[] = {
		"", ",", "x", "0-", "-", "7-3", "0-18446744073709551615", "0,,1"};

	begin();
	for (enum w_domain_kind kind = W_DOMAIN_L3; kind <= W_DOMAIN_CORE; kind++) {
		EXPECT(read_domains(kind) == 1, "kind %d", kind);
		for (int cpu = 0; cpu < CPUS; cpu++)
			EXPECT(domains[cpu] == 0, "CPU %d", cpu);
	}
	for (int i = 0; i < COUNT(lists); i++) {
		put(lists[i], "devices/system/cpu/cpu0/topology/package_cpus_list");
		domains[4] = 77;
		EXPECT(w_topology_read(root, W_DOMAIN_PACKAGE, domains, 4) == 1, "list '%s'",
		       lists[i]);
		EXPECT(domains[0] == 0 && domains[3] == 0 && domains[4] == 77, "list '%s'",
		       lists[i]);
	}
	end();
}

static void names(void)
{
	static const char *const expected[] = {"l3", "die", "node", "package", "core"};
	enum w_domain_kind kind;

	for (int i = 0; i < COUNT(expected); i++)
		EXPECT(w_domain_kind_by_name(expected[i], &kind) && kind == (enum w_domain_kind)i);
	EXPECT(!w_domain_kind_by_name("socket", &kind) && !w_domain_kind_by_name("", &kind));
}

int main(void)
{
	RUN(interleaved_sockets);
	RUN(parents);
	RUN(interleaved_nodes);
	RUN(last_level_cache);
	RUN(cores);
	RUN(holes);
	RUN(possible);
	RUN(many_cpus);
	RUN(no_sense);
	RUN(names);
	return 0;
}
