// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * A QEMU plugin (QEMU 10, one thread for all CPUs) that counts cache-line transfers between CPUs
 * inside a lock's calls. The model is MSI: caches never evict, and hold lines modified, shared or
 * invalid. These are transfers:
 *
 *   a read of a line without a valid copy on this CPU, of which another CPU has one
 *   a write to a line of which another CPU has a valid copy, or which it wrote last
 *
 * A transfer is remote if no CPU of the same node had the line. Only accesses between the module's
 * marks count (kernel/torture.c), so those of critical sections do not; the lines' places are
 * followed during the whole run.
 *
 *   transfers.so,each=8   8 CPUs per node, node by node; at most 64 CPUs
 *
 * At the end of each run it prints a line on stderr, also in the middle of a line of the console:
 * `transfers: runs=N enters=N local=N remote=N`.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- QEMU's plugin interface, version 4: Debian ships no header for it ---- */

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
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
					   void (*translated)(plugin_id id, struct block *block));
void qemu_plugin_register_vcpu_insn_exec_cb(struct instruction *instruction,
					    void (*executed)(unsigned int, void *), int flags,
					    void *argument);
void qemu_plugin_register_vcpu_mem_cb(struct instruction *instruction,
				      void (*accessed)(unsigned int, access_info, uint64_t, void *),
				      int flags, int which, void *argument);

/*
 * With one thread for all CPUs, QEMU passes a callback the CPU for which the code was translated,
 * not the one that runs it. So the plugin asks for the current CPU.
 */
extern __thread void *current_cpu;
int gdb_get_cpu_index(void *cpu); /* counts from 1 */

static unsigned int this_cpu(void)
{
	return gdb_get_cpu_index(current_cpu) - 1;
}

/* ---- Lines ---- */

#define LINE_BITS 6
#define MAX_CPUS 64u
#define LINES (1u << 26) /* for 4 GiB of physical addresses; pages are touched on first use */

struct line {
	uint64_t valid; /* the CPUs with a copy */
	uint32_t run;   /* the run in which this was recorded */
};

static struct line *lines;
static unsigned int each = 1; /* CPUs of a node */
static uint32_t runs;
static bool running;
static bool inside[MAX_CPUS]; /* between the marks of a lock's call */
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

/* ---- Marks: no-operations of 8 bytes; the last byte identifies the mark ---- */

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
			(unsigned long long)enters, (unsigned long long)local,
			(unsigned long long)remote);
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
		/* Only the kernel's half of the address space. */
		if (!(qemu_plugin_insn_vaddr(instruction) >> 63))
			continue;
		if (qemu_plugin_insn_size(instruction) == sizeof(bytes) &&
		    qemu_plugin_insn_data(instruction, bytes, sizeof(bytes)) == sizeof(bytes) &&
		    !memcmp(bytes, mark, sizeof(mark)))
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_mark, NO_REGISTERS,
							       (void *)(uintptr_t)
								       bytes[sizeof(mark)]);
		qemu_plugin_register_vcpu_mem_cb(instruction, on_access, NO_REGISTERS,
						 READS_AND_WRITES, NULL);
	}
}

/* ---- Entry point ---- */

EXPORTED int qemu_plugin_version = API;
EXPORTED int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);

int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	int i;

	(void)info;
	for (i = 0; i < argc; i++) {
		each = !strncmp(argv[i], "each=", 5) ? (unsigned int)strtoul(argv[i] + 5, NULL, 10)
						     : 0;
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
