/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel's interface, as far as watch.bpf.c uses it: helpers of BPF, and the fields of kernel
 * types. The loader moves each field access to the running kernel's offset (CO-RE), so that this
 * file neither needs nor copies the headers of any kernel.
 */
#ifndef POUNDLOCK_BPF_KERNEL_H
#define POUNDLOCK_BPF_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

/* Fields of maps, which the loader reads from their types. */
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, type) typeof(type) *name

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PERCPU_ARRAY = 6, MAP_STACK_TRACE = 7, MAP_RINGBUF = 27 };
enum { ANY = 0, NOEXIST = 1 };
enum { MMAPABLE = 1 << 10 };
enum { RB_NO_WAKEUP = 1 };

/* ---- Helpers ---- */

struct task_struct;
struct pt_regs;

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value,
				u64 flags) = (void *)2;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u64 (*const now_ns)(void) = (void *)5;
static long (*const stack_id)(void *context, void *map, u64 flags) = (void *)27;
static long (*const read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*const read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static void *(*const ringbuf_reserve)(void *ringbuf, u64 size, u64 flags) = (void *)131;
static void (*const ringbuf_submit)(void *data, u64 flags) = (void *)132;
static struct task_struct *(*const current_task)(void) = (void *)158;
static struct pt_regs *(*const registers_of)(struct task_struct *task) = (void *)175;

/* ---- Types ---- */

/* Whether the running kernel has a field. */
#define EXISTS(field) __builtin_preserve_field_info(field, 2)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	u32 inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	u32 level;
	struct upid numbers[1];
};

struct rq {
	u64 clock;
};

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct sched_info {
	unsigned long long run_delay;
};

struct task_struct {
	u32 __state;
	struct sched_entity se;
	struct sched_info sched_info;
	s32 pid;
	s32 tgid;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	u64 start_time;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r14, bp, bx, ax, dx, si, di, orig_ax, ip, sp;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31];
	u64 sp;
	u64 pc;
	u64 orig_x0;
	s32 syscallno;
};
#else
#error "watch needs x86-64 or arm64"
#endif

#pragma clang attribute pop

/*
 * ---- Registers of a thread in a system call, and of Go's functions at their beginning ----
 *
 * Go passes arguments and the goroutine by its ABIInternal, since Go 1.17 (arm64: 1.18).
 */

#if defined(__TARGET_ARCH_x86)
#define SYSCALL(regs) ((s32)(regs)->orig_ax)
#define ARGUMENT_1(regs) ((regs)->di)
#define ARGUMENT_2(regs) ((regs)->si)
#define STACK_POINTER(regs) ((regs)->sp)
#define INSTRUCTION(regs) ((regs)->ip)
#define FRAME_POINTER(regs) ((regs)->bp)
#define LINK(regs) 0
#define GO_ARGUMENT_1(regs) ((regs)->ax)
#define GO_ARGUMENT_2(regs) ((regs)->bx)
#define GOROUTINE(regs) ((regs)->r14)
#define CODE_ADDRESS(word) (word)
enum { SYS_FUTEX = 202 };
#else
#define SYSCALL(regs) ((regs)->syscallno)
#define ARGUMENT_1(regs) ((regs)->orig_x0)
#define ARGUMENT_2(regs) ((regs)->regs[1])
#define STACK_POINTER(regs) ((regs)->sp)
#define INSTRUCTION(regs) ((regs)->pc)
#define FRAME_POINTER(regs) ((regs)->regs[29])
#define LINK(regs) ((regs)->regs[30])
#define GO_ARGUMENT_1(regs) ((regs)->regs[0])
#define GO_ARGUMENT_2(regs) ((regs)->regs[1])
#define GOROUTINE(regs) ((regs)->regs[28])
/* Without the signature of pointer authentication. */
#define CODE_ADDRESS(word) ((word) & ((1ull << 48) - 1))
enum { SYS_FUTEX = 98 };
#endif

enum { SYS_FUTEX_WAITV = 449, SYS_FUTEX_WAIT = 455 };

#endif
