// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * A plugin of QEMU (10, one thread for all CPUs) that counts how often a cache line goes from one CPU to another while these are in
 * the calls of a lock, as caches that never evict and keep lines modified, shared or invalid (MSI) would move it:
 *
 *   a read of a line that this CPU has no valid copy of, and another one has
 *   a write to a line that another CPU has a valid copy of, or wrote last
 *
 * is a transfer; a remote one if no CPU of the own node had it. Only accesses between the module's marks count (kernel/torture.c),
 * so that what a critical section touches does not; what lines are where is followed all the time that a run lasts.
 *
 *   transfers.so,each=8   8 CPUs a node, one node after the other. At most 64 CPUs
 *
 * At the end of each run there is one line on stderr, whatever the console has begun: `transfers: runs=N enters=N local=N remote=N`.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- QEMU's side: Debian has no header of it. Version 4 of its plugins' interface ---- */

#define API 4

#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t plugin_id;
typedef uint32_t access_info;
struct block;
struct instruction;
struct place;

enum { NO_REGISTERS = 0, READS_AND_WRITES = 3 };

size_t qemu_plugin_tb_n_insns(const struct block *block);
struct instruction *qemu_plugin_tb_get_insn(const struct block *block, size_t index);
size_t qemu_plugin_insn_size(const struct instruction *instruction);
size_t qemu_plugin_insn_data(const struct instruction *instruction, void *bytes, size_t length);
uint64_t qemu_plugin_insn_vaddr(const struct instruction *instruction);
bool qemu_plugin_mem_is_store(access_info info);
struct place *qemu_plugin_get_hwaddr(access_info info, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct place *place);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct place *place);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*translated)(plugin_id id, struct block *block));
void qemu_plugin_register_vcpu_insn_exec_cb(struct instruction *instruction, void (*executed)(unsigned int, void *),
					    int flags, void *argument);
void qemu_plugin_register_vcpu_mem_cb(struct instruction *instruction,
				      void (*accessed)(unsigned int, access_info, uint64_t, void *), int flags,
				      int which, void *argument);

/*
 * Where one thread runs all CPUs, QEMU hands a callback the number of the CPU that the code was translated for, whichever
 * runs it: so it is asked itself.
 */
extern __thread void *current_cpu;
int gdb_get_cpu_index(void *cpu); /* from 1 */

static unsigned int this_cpu(void)
{
	return gdb_get_cpu_index(current_cpu) - 1;
}

/* ---- Lines ---- */

#define LINE_BITS 6
#define MAX_CPUS 64u
#define LINES (1u << 26) /* of 4 GiB of physical addresses; touched where used */

struct line {
	uint64_t valid; /* which CPUs have a copy */
	uint32_t run;   /* in which this was noted */
};

static struct line *lines;
static unsigned int each = 1; /* CPUs of a node */
static uint32_t runs;
static bool running;
static bool inside[MAX_CPUS]; /* between marks of a lock's call */
static uint64_t enters, local, remote;

static uint64_t node_of(unsigned int cpu)
{
	return (each == MAX_CPUS ? UINT64_MAX : (1ull << each) - 1) << (cpu / each * each);
}

static void count(unsigned int cpu, uint64_t others)
{
	if (!inside[cpu] || !others)
		return;
	if (others & node_of(cpu))
		local++;
	else
		remote++;
}

static void on_access(unsigned int wrong, access_info info, uint64_t address, void *unused)
{
	unsigned int cpu = this_cpu();
	uint64_t me = 1ull << cpu, number;
	struct place *place;
	struct line *line;

	(void)wrong;
	(void)unused;
	if (!running)
		return;
	place = qemu_plugin_get_hwaddr(info, address);
	if (!place || qemu_plugin_hwaddr_is_io(place))
		return;
	number = qemu_plugin_hwaddr_phys_addr(place) >> LINE_BITS;
	if (number >= LINES)
		return;
	line = &lines[number];
	if (line->run != runs)
		*line = (struct line){.run = runs};
	if (qemu_plugin_mem_is_store(info)) {
		count(cpu, line->valid & ~me);
		line->valid = me;
	} else if (!(line->valid & me)) {
		count(cpu, line->valid);
		line->valid |= me;
	}
}

/* ---- Marks: no-operations of 8 bytes, whose last tells what they mean ---- */

static const unsigned char mark[7] = {0x0f, 0x1f, 0x84, 0x00, 'P', 'L', 'K'};
enum { RUN = 'R', DONE = 'D', ENTER = 'E', LEAVE = 'L' };

static void on_mark(unsigned int wrong, void *what)
{
	(void)wrong;
	switch ((uintptr_t)what) {
	case RUN:
		runs++;
		enters = local = remote = 0;
		running = true;
		break;
	case DONE:
		running = false;
		fprintf(stderr, "\ntransfers: runs=%u enters=%llu local=%llu remote=%llu\n", runs,
			(unsigned long long)enters, (unsigned long long)local, (unsigned long long)remote);
		break;
	case ENTER:
		inside[this_cpu()] = true;
		enters += running;
		break;
	case LEAVE:
		inside[this_cpu()] = false;
		break;
	}
}

static void on_translated(plugin_id id, struct block *block)
{
	size_t n = qemu_plugin_tb_n_insns(block), i;
	unsigned char bytes[sizeof(mark) + 1];
	struct instruction *instruction;

	(void)id;
	for (i = 0; i < n; i++) {
		instruction = qemu_plugin_tb_get_insn(block, i);
		/* The kernel's half of the addresses alone. */
		if (!(qemu_plugin_insn_vaddr(instruction) >> 63))
			continue;
		if (qemu_plugin_insn_size(instruction) == sizeof(bytes) &&
		    qemu_plugin_insn_data(instruction, bytes, sizeof(bytes)) == sizeof(bytes) &&
		    !memcmp(bytes, mark, sizeof(mark)))
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_mark, NO_REGISTERS,
							       (void *)(uintptr_t)bytes[sizeof(mark)]);
		qemu_plugin_register_vcpu_mem_cb(instruction, on_access, NO_REGISTERS, READS_AND_WRITES, NULL);
	}
}

/* ---- Its entry ---- */

EXPORTED int qemu_plugin_version = API;
EXPORTED int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);

int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	int i;

	(void)info;
	for (i = 0; i < argc; i++) {
		each = !strncmp(argv[i], "each=", 5) ? (unsigned int)strtoul(argv[i] + 5, NULL, 10) : 0;
		if (!each || each > MAX_CPUS) {
			fprintf(stderr, "transfers: '%s' is none of its arguments\n", argv[i]);
			return 1;
		}
	}
	lines = calloc(LINES, sizeof(*lines));
	if (!lines)
		return 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
	return 0;
}
