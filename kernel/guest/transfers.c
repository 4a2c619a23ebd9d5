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
 * Of the transfers, and of the executed instructions, those after the lock was taken are counted a
 * second time: they delay whatever waits for the holder. A call takes the lock by its last store to
 * the byte at which its first instruction with a lock prefix points, as the kernel's own spin locks
 * do. Calls without such an instruction, such as releases, do not count.
 *
 * The instructions up to the entry into the queue are counted as well, in calls that queue: up to
 * the first store to the upper half of the lock's word of 4 bytes, the tail.
 *
 *   transfers.so,each=8   8 CPUs per node, node by node; at most 64 CPUs
 *
 * At the end of each run it prints a line on stderr, also in the middle of a line of the console:
 * `transfers: runs=N enters=N local=N remote=N taken_local=N taken_remote=N taken_instructions=N
 * queued=N queued_instructions=N`.
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

#define LOCK_PREFIX 0xf0

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
void qemu_plugin_register_vcpu_tb_exec_cb(struct block *block,
					  void (*executed)(unsigned int, void *), int flags,
					  void *argument);
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
static uint64_t enters;

struct moved {
	uint64_t local, remote;
};

static struct moved moved;

/* Counts since the lock was taken: of one call, or of all. */
struct taken {
	struct moved moved;
	uint64_t instructions;
};

static struct taken taken;

/* Calls that have queued, and their instructions up to that. */
static uint64_t queued, queued_instructions;

static struct call {
	bool inside;   /* between the marks of a lock's call */
	uint64_t word; /* the lock's; 0: not yet known */
	uint64_t instructions;
	bool queued;
	struct taken taken;
} calls[MAX_CPUS];

static uint64_t node_of(unsigned int cpu)
{
	return (each == MAX_CPUS ? UINT64_MAX : (1ull << each) - 1) << (cpu / each * each);
}

static void move(struct moved *moved, bool near)
{
	if (near)
		moved->local++;
	else
		moved->remote++;
}

static void count(unsigned int cpu, uint64_t others)
{
	bool near = others & node_of(cpu);

	if (!calls[cpu].inside || !others)
		return;
	move(&moved, near);
	move(&calls[cpu].taken.moved, near);
}

/* An instruction: how many follow in its block, and whether it has a lock prefix. */
struct position {
	uint32_t behind;
	bool locked;
};

_Static_assert(sizeof(struct position) <= sizeof(void *), "a position is a callback's argument");

/*
 * Begins the count of @call again if the store at @address may have taken the lock; and notes the
 * entry into the queue.
 */
static void note_store(struct call *call, uint64_t address, struct position position)
{
	if (!call->inside)
		return;
	if (!call->word && position.locked)
		call->word = address;
	if (call->word == address)
		call->taken = (struct taken){.instructions = position.behind};
	if (!call->word || call->queued || (address & ~1ull) != call->word + 2)
		return;
	call->queued = true;
	queued++;
	queued_instructions += call->instructions - position.behind;
}

static void on_access(unsigned int wrong, access_info info, uint64_t address, void *argument)
{
	unsigned int cpu = this_cpu();
	uint64_t me = 1ull << cpu, number;
	struct position position;
	struct place *place;
	struct line *line;

	(void)wrong;
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
		memcpy(&position, &argument, sizeof(position));
		note_store(&calls[cpu], qemu_plugin_hwaddr_phys_addr(place), position);
	} else if (!(line->valid & me)) {
		count(cpu, line->valid);
		line->valid |= me;
	}
}

/* ---- Marks: no-operations of 8 bytes; the last byte identifies the mark ---- */

static const unsigned char mark[7] = {0x0f, 0x1f, 0x84, 0x00, 'P', 'L', 'K'};
enum { RUN = 'R', DONE = 'D', ENTER = 'E', LEAVE = 'L' };

static void report(void)
{
	fprintf(stderr,
		"\ntransfers: runs=%u enters=%llu local=%llu remote=%llu taken_local=%llu "
		"taken_remote=%llu taken_instructions=%llu queued=%llu queued_instructions=%llu\n",
		runs, (unsigned long long)enters, (unsigned long long)moved.local,
		(unsigned long long)moved.remote, (unsigned long long)taken.moved.local,
		(unsigned long long)taken.moved.remote, (unsigned long long)taken.instructions,
		(unsigned long long)queued, (unsigned long long)queued_instructions);
}

/* Ends @call. Its block has @behind more instructions, which were counted as the block began. */
static void leave(struct call *call, uint32_t behind)
{
	if (running && call->word) {
		taken.moved.local += call->taken.moved.local;
		taken.moved.remote += call->taken.moved.remote;
		taken.instructions += call->taken.instructions - behind - 1;
	}
	*call = (struct call){.inside = false};
}

/* A mark in the code. */
struct mark {
	uint32_t behind; /* instructions in its block */
	uint8_t what;
};

_Static_assert(sizeof(struct mark) <= sizeof(void *), "a mark is a callback's argument");

static void on_mark(unsigned int wrong, void *argument)
{
	struct mark found;

	(void)wrong;
	memcpy(&found, &argument, sizeof(found));
	switch (found.what) {
	case RUN:
		runs++;
		enters = 0;
		moved = (struct moved){0};
		taken = (struct taken){0};
		queued = queued_instructions = 0;
		running = true;
		break;
	case DONE:
		running = false;
		report();
		break;
	case ENTER:
		calls[this_cpu()] = (struct call){.inside = true, .instructions = found.behind};
		enters += running;
		break;
	case LEAVE:
		leave(&calls[this_cpu()], found.behind);
		break;
	}
}

static void on_block(unsigned int wrong, void *size)
{
	struct call *call = &calls[this_cpu()];

	(void)wrong;
	call->instructions += (uintptr_t)size;
	call->taken.instructions += (uintptr_t)size;
}

/* Reports accesses of @instruction, which @behind more of its block follow, and marks. */
static void watch(struct instruction *instruction, uint32_t behind)
{
	unsigned char bytes[sizeof(mark) + 1] = {0};
	size_t size = qemu_plugin_insn_data(instruction, bytes, sizeof(bytes));
	struct position position = {behind, size && bytes[0] == LOCK_PREFIX};
	struct mark found = {behind, bytes[sizeof(mark)]};
	void *argument = NULL;

	memcpy(&argument, &position, sizeof(position));
	qemu_plugin_register_vcpu_mem_cb(instruction, on_access, NO_REGISTERS, READS_AND_WRITES,
					 argument);
	if (qemu_plugin_insn_size(instruction) != sizeof(bytes) || size != sizeof(bytes) ||
	    memcmp(bytes, mark, sizeof(mark)))
		return;
	memcpy(&argument, &found, sizeof(found));
	qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_mark, NO_REGISTERS, argument);
}

static void on_translated(plugin_id id, struct block *block)
{
	size_t n = qemu_plugin_tb_n_insns(block), i;

	(void)id;
	/* Only the kernel's half of the address space. */
	if (!n || !(qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(block, 0)) >> 63))
		return;
	qemu_plugin_register_vcpu_tb_exec_cb(block, on_block, NO_REGISTERS, (void *)n);
	for (i = 0; i < n; i++)
		watch(qemu_plugin_tb_get_insn(block, i), (uint32_t)(n - i - 1));
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
