/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The parts of the Linux kernel that the clients' files of kernel/overlay/ and
 * world/kernel/objects.h use, by the operations of world/check/world.h: the explorer chooses the
 * result of each. world/c11 has the same operations, on atomics. Thread n is CPU n.
 *
 * The orders are C11's. An operation without a suffix is fully ordered in the kernel, and acq_rel
 * here, which is less.
 */
#ifndef POUNDLOCK_CHECK_KERNEL_H
#define POUNDLOCK_CHECK_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel is built without these warnings. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wpointer-sign"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"

typedef uint8_t u8;
typedef uint16_t u16;
typedef int32_t s32;
typedef uint32_t u32;
typedef int64_t s64;
typedef uint64_t u64;
#define U32_MAX UINT32_MAX
typedef struct {
	int counter;
} atomic_t;
typedef struct {
	s64 counter;
} atomic64_t;

#define likely(x) (x)
#define unlikely(x) (x)
#define noinline __attribute__((__noinline__))
#define __lockfunc
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define ____cacheline_aligned __attribute__((aligned(64)))
#undef static_assert
#define static_assert(condition, ...) _Static_assert(condition, #condition)
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define container_of(p, type, member) \
	((type *)(uintptr_t)((const char *)(p)-offsetof(type, member)))
#define barrier() __asm__ __volatile__("" ::: "memory")
#define cpu_relax() w_yield()
#define lockevent_inc(event) ((void)0)
#define trace_contention_begin(lock, flags) ((void)(lock))
#define trace_contention_end(lock, result) ((void)(lock))
#define trace_poundlock_handover(lock) ((void)(lock))

/* ---- Operations ---- */

#define READ_ONCE(x) CHECK_OPERATE(#x, "READ_ONCE", CHECK_LOAD, CHECK_RELAXED, &(x), 0, 0)
#define WRITE_ONCE(x, v) \
	((void)CHECK_OPERATE(#x, "WRITE_ONCE", CHECK_STORE, CHECK_RELAXED, &(x), v, 0))
#define smp_load_acquire(p) \
	CHECK_OPERATE(#p, "smp_load_acquire", CHECK_LOAD, CHECK_ACQUIRE, p, 0, 0)
#define smp_store_release(p, v) \
	((void)CHECK_OPERATE(#p, "smp_store_release", CHECK_STORE, CHECK_RELEASE, p, v, 0))
#define smp_mb() ((void)CHECK_DO("smp_mb", CHECK_FENCE, CHECK_SEQ_CST, NULL, 0, 0))
#define smp_cond_load_acquire(p, COND)                                                           \
	CHECK_WAIT_SITE(#p, "smp_cond_load_acquire (" #COND ")", CHECK_ACQUIRE, p, COND, W_SPIN, \
			NULL)

#define smp_cond_load_relaxed(p, COND)                                                           \
	CHECK_WAIT_SITE(#p, "smp_cond_load_relaxed (" #COND ")", CHECK_RELAXED, p, COND, W_SPIN, \
			NULL)

#define KERNEL_XCHG(name, order, p, v) CHECK_OPERATE(#p, name, CHECK_EXCHANGE, order, p, v, 0)
#define xchg_relaxed(p, v) KERNEL_XCHG("xchg_relaxed", CHECK_RELAXED, p, v)
#define xchg_acquire(p, v) KERNEL_XCHG("xchg_acquire", CHECK_ACQUIRE, p, v)
#define xchg_release(p, v) KERNEL_XCHG("xchg_release", CHECK_RELEASE, p, v)
#define xchg(p, v) KERNEL_XCHG("xchg", CHECK_ACQ_REL, p, v)

#define cmpxchg_acquire(p, old, new) \
	CHECK_OPERATE(#p, "cmpxchg_acquire", CHECK_COMPARE_EXCHANGE, CHECK_ACQUIRE, p, new, old)
#define try_cmpxchg_relaxed(p, old, new) \
	CHECK_CAS(#p, "try_cmpxchg_relaxed", CHECK_RELAXED, p, old, new)
#define try_cmpxchg_acquire(p, old, new) \
	CHECK_CAS(#p, "try_cmpxchg_acquire", CHECK_ACQUIRE, p, old, new)
#define try_cmpxchg_release(p, old, new) \
	CHECK_CAS(#p, "try_cmpxchg_release", CHECK_RELEASE, p, old, new)
#define try_cmpxchg(p, old, new) CHECK_CAS(#p, "try_cmpxchg", CHECK_ACQ_REL, p, old, new)

#define KERNEL_FETCH(name, kind, order, v, p) \
	CHECK_OPERATE(#p, name, kind, order, &(p)->counter, v, 0)
#define KERNEL_FETCH_ORDERS(size, operation, kind)                                     \
	static inline __attribute__((unused))                                          \
	s64 size##_fetch_##operation##_relaxed(s64 v, size##_t *p)                     \
	{                                                                              \
		return KERNEL_FETCH(#operation "_relaxed", kind, CHECK_RELAXED, v, p); \
	}                                                                              \
	static inline __attribute__((unused))                                          \
	s64 size##_fetch_##operation##_acquire(s64 v, size##_t *p)                     \
	{                                                                              \
		return KERNEL_FETCH(#operation "_acquire", kind, CHECK_ACQUIRE, v, p); \
	}                                                                              \
	static inline __attribute__((unused))                                          \
	s64 size##_fetch_##operation##_release(s64 v, size##_t *p)                     \
	{                                                                              \
		return KERNEL_FETCH(#operation "_release", kind, CHECK_RELEASE, v, p); \
	}                                                                              \
	static inline s64 size##_fetch_##operation(s64 v, size##_t *p)                 \
	{                                                                              \
		return KERNEL_FETCH(#operation, kind, CHECK_ACQ_REL, v, p);            \
	}
KERNEL_FETCH_ORDERS(atomic, add, CHECK_FETCH_ADD)
KERNEL_FETCH_ORDERS(atomic, or, CHECK_FETCH_OR)
KERNEL_FETCH_ORDERS(atomic, and, CHECK_FETCH_AND)
KERNEL_FETCH_ORDERS(atomic64, add, CHECK_FETCH_ADD)
KERNEL_FETCH_ORDERS(atomic64, or, CHECK_FETCH_OR)
KERNEL_FETCH_ORDERS(atomic64, and, CHECK_FETCH_AND)

/* ---- Per-CPU objects, which are in the client's shared memory ---- */

#define smp_processor_id() check_self()
#define raw_smp_processor_id() smp_processor_id()
#define DEFINE_PER_CPU(type, name) __attribute__((unused)) type name
#define DEFINE_PER_CPU_ALIGNED(type, name) DEFINE_PER_CPU(type, name)
/* @p points into `places`, whose copy of CPU n is the n-th at KERNEL_PLACES. */
#define per_cpu_ptr(p, cpu)                                                              \
	((__typeof__(p))(void *)(CHECK_MEMORY + KERNEL_PLACES + (cpu) * sizeof(places) + \
				 ((uintptr_t)(p) - (uintptr_t)places)))
#define this_cpu_ptr(p) per_cpu_ptr(p, smp_processor_id())
/* An int. The name is that of a file's only one. */
#define KERNEL_INT ((int *)(void *)(CHECK_MEMORY + KERNEL_INTS) + smp_processor_id())
#define this_cpu_inc_return(name) (++*KERNEL_INT)
#define this_cpu_dec(name) ((void)--*KERNEL_INT)

/* ---- The spin lock: as in asm-generic/qspinlock_types.h and asm-generic/qspinlock.h ---- */

struct qspinlock {
	union {
		atomic_t val;
		struct {
			u8 locked, pending;
		};
		struct {
			u16 locked_pending, tail;
		};
	};
};

#define MAX_NODES 1 /* no thread is interrupted */
#define _Q_LOCKED_VAL 1u
#define _Q_LOCKED_MASK 0xffu
#define _Q_PENDING_OFFSET 8
#define _Q_PENDING_VAL (1u << _Q_PENDING_OFFSET)
#define _Q_PENDING_MASK 0xff00u
#define _Q_LOCKED_PENDING_MASK (_Q_LOCKED_MASK | _Q_PENDING_MASK)
#define _Q_PENDING_LOOPS 1
#define _Q_TAIL_OFFSET 16
#define _Q_TAIL_MASK 0xffff0000u
#define _Q_TAIL_IDX_OFFSET _Q_TAIL_OFFSET
#define _Q_TAIL_IDX_MASK (3u << _Q_TAIL_IDX_OFFSET)
#define _Q_TAIL_CPU_OFFSET (_Q_TAIL_IDX_OFFSET + 2)

static inline u32 encode_tail(u32 cpu, u32 index)
{
	return (cpu + 1) << _Q_TAIL_CPU_OFFSET | index << _Q_TAIL_IDX_OFFSET;
}

#define atomic_read(p) READ_ONCE((p)->counter)
#define atomic_inc(p) ((void)atomic_fetch_add_relaxed(1, p))
#define atomic_dec(p) ((void)atomic_fetch_add_relaxed(-1, p))
#define atomic_try_cmpxchg_acquire(p, old, new) try_cmpxchg_acquire(&(p)->counter, old, new)
#define atomic_try_cmpxchg_relaxed(p, old, new) try_cmpxchg_relaxed(&(p)->counter, old, new)

static inline bool queued_spin_trylock(struct qspinlock *lock)
{
	int seen = READ_ONCE(lock->val.counter);

	return !seen && atomic_try_cmpxchg_acquire(&lock->val, &seen, (int)_Q_LOCKED_VAL);
}

static inline void queued_spin_unlock(struct qspinlock *lock)
{
	smp_store_release(&lock->locked, 0);
}

/* PENDING -> LOCKED */
static inline void clear_pending_set_locked(struct qspinlock *lock)
{
	WRITE_ONCE(lock->locked_pending, _Q_LOCKED_VAL);
}

/*
 * * -> PENDING|*. Returns the old PENDING, and the other bits as they are a moment later, as on
 * x86. That includes what other machines do, whose operation returns the old word: the moment may
 * be the same.
 */
static inline u32 queued_fetch_set_pending_acquire(struct qspinlock *lock)
{
	u32 old = atomic_fetch_or_acquire(_Q_PENDING_VAL, &lock->val);

	return (old & _Q_PENDING_MASK) |
	       ((u32)smp_load_acquire(&lock->val.counter) & ~_Q_PENDING_MASK);
}

/* ---- Lists ---- */

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline void list_add_tail(struct list_head *added, struct list_head *head)
{
	added->next = head;
	added->prev = head->prev;
	head->prev->next = added;
	head->prev = added;
}

static inline void list_del_init(struct list_head *entry)
{
	entry->next->prev = entry->prev;
	entry->prev->next = entry->next;
	INIT_LIST_HEAD(entry);
}

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define list_entry_at(pos, link, member) container_of(link, __typeof__(*(pos)), member)
#define list_for_each_entry(pos, head, member)                                         \
	for (pos = list_entry_at(pos, (head)->next, member); &(pos)->member != (head); \
	     pos = list_entry_at(pos, (pos)->member.next, member))

/* ---- Tasks ---- */

typedef struct {
	u32 locked;
} raw_spinlock_t;

#define raw_spin_lock_init(lock) ((void)((lock)->locked = 0))

/* No interrupt handler runs. */
#define raw_spin_lock_irqsave(lock, flags)                                  \
	do {                                                                \
		(flags) = 0;                                                \
		while (xchg_acquire(&(lock)->locked, 1))                    \
			(void)smp_cond_load_acquire(&(lock)->locked, !VAL); \
	} while (0)
#define raw_spin_unlock_irqrestore(lock, flags) \
	((void)(flags), smp_store_release(&(lock)->locked, 0))

typedef raw_spinlock_t spinlock_t;

#define spin_lock_init(lock) raw_spin_lock_init(lock)
#define spin_lock(lock)                              \
	do {                                         \
		unsigned long flags_;                \
		raw_spin_lock_irqsave(lock, flags_); \
		(void)flags_;                        \
	} while (0)
#define spin_unlock(lock) smp_store_release(&(lock)->locked, 0)

typedef atomic64_t atomic_long_t;
#define atomic_long_read(p) READ_ONCE((p)->counter)

#ifndef __LITTLE_ENDIAN
#define __LITTLE_ENDIAN
#endif
#define __sched
#define TASK_INTERRUPTIBLE 1u
#define TASK_UNINTERRUPTIBLE 2u
#define might_sleep() ((void)0)
#define get_task_struct(task) (task)
#define put_task_struct(task) ((void)(task))
#define lockdep_assert_preemption_disabled() ((void)0)
#define static_branch_unlikely(key) false
#define lock_contended(map, ip) ((void)0)
#define lock_acquired(map, ip) ((void)0)

/* ---- Settings ---- */

/* All addresses collide. */
#define hash_long(value, bits) ((void)(value), (void)(bits), 0)

/*
 * Those of the kernel by default. With KERNEL_CHANGES, the explorer chooses others for some
 * waiters: a thread that changes them at any moment.
 */
#define tuning_of(kind, lock)                                                           \
	(KERNEL_CHANGES && CHECK_DO("changed", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0) \
		 ? (struct tuning){.policy = POLICY_FIFO, .batch = 1}                   \
		 : (struct tuning){.policy = POLICY_NUMA, .batch = SHFL_MAX_BATCH})

/* ---- The world's objects ---- */

#ifndef W_TAIL_IN_LIST
#define W_TAIL(T) u16
#define W_SHORT u16
static inline u16 w_name_of(const void *node);
static inline void *w_named(u16 name);
#endif

#include "../../world/kernel/objects.h"

#endif
