/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The layout of glibc's pthread_mutex_t, pthread_cond_t and pthread_rwlock_t, and of our own
 * objects in them; no other file knows it. All-zero memory is an unlocked lock or a condition
 * variable without waiters, whatever kind a static initialiser sets.
 *
 *   pthread_mutex_t
 *     0 to 15, 20 to 31  the lock (lib/any.h)
 *     16 to 19           glibc's __kind: part of the ABI, since static initialisers set it
 *     of recursive and error-checking mutexes also, while they are held:
 *     8 to 11            glibc's __owner: the kernel's id of the thread
 *     12 to 15           glibc's __nusers: how often the owner holds it; 1 in glibc
 *     32 to 39           the lock's own bytes 8 to 15 (lib/any.h: leaves_middle)
 *     of normal and adaptive mutexes:
 *     32                 1 + the index of the rule of the function that initialised it, if that
 *                        rule changes settings of the process's lock only; 0: none
 *     33 to 39           the address to which the call returned that initialised it; 0: unknown
 *     glibc's __count, bytes 4 to 7, is the lock's
 *
 *   pthread_cond_t
 *     0 to 7             the state; its halves are futexes (cond_word.h)
 *     8 to 11            the fork generation of its waiters (core/part/generation.h)
 *     a word of flags    pshared and clock, as left by glibc's pthread_cond_init(). It has moved
 *                        between versions of glibc: layout_probe() finds it
 *
 *   pthread_rwlock_t
 *     0 to 27, 32 to 47  the lock (lib/any_rw.h)
 *     28                 glibc's __shared: not 0 if it is process-shared. Here also SHARED_RULED
 *     29                 in that case the index of the rule that gave it its lock; else 1 + that
 *                        of the rule of the function that initialised it, if that rule changes
 *                        settings only; 0: none
 *     30 to 31           1 + the index of the call that initialised it (rules.c); 0: unknown
 *     48 to 51           glibc's __flags: the kind, part of the ABI as in a mutex
 *     52 to 55           the writer's thread id
 */
#ifndef POUNDLOCK_LAYOUT_H
#define POUNDLOCK_LAYOUT_H

#include <pthread.h>
#include <stddef.h>

#include "any_rw.h"

struct mutex {
	unsigned char lock_head[8];
	union {
		W_ATOMIC(uint64_t) middle; /* of the lock, unless a mutex with an owner is held */
		struct {
			W_ATOMIC(uint32_t) owner;
			uint32_t holds;
		};
	};
	int kind;
	unsigned char lock_tail[12];
	union {
		uint64_t aside; /* meanwhile: the lock's middle */
		struct {        /* without an owner, written by rules_initialised() only */
			uint64_t rule : 8; /* 1 + the index of a rule (rules.h); 0: none */
			uint64_t site : 56;
		};
	};
};

_Static_assert(offsetof(struct mutex, kind) == offsetof(pthread_mutex_t, __data.__kind),
	       "the kind is glibc's");
_Static_assert(offsetof(struct mutex, owner) == offsetof(pthread_mutex_t, __data.__owner),
	       "the owner is glibc's");
_Static_assert(offsetof(struct mutex, aside) == ANY_LOCK_SIZE,
	       "our own field begins where the lock ends");
_Static_assert(sizeof(struct mutex) <= sizeof(pthread_mutex_t), "a mutex fits in place");
_Static_assert(_Alignof(struct mutex) <= 8 && _Alignof(pthread_mutex_t) == 8,
	       "a lock is aligned to 8");

/* glibc's bits of __kind. A destroyed mutex is -1: native, so that glibc refuses it. */
#define KIND_TYPE 0x03
#define KIND_NATIVE 0xf0 /* robust, priority-inheriting, priority-protecting, process-shared */
#define KIND_DESTROYED (-1)
/*
 * Our own bits, which glibc ignores: a rule gives the mutex another lock than the process's, and
 * the index of that rule (rules.h). So it is on no fast path.
 */
#define KIND_RULED 0x8000
#define KIND_RULE_SHIFT 16

enum { TYPE_NORMAL, TYPE_RECURSIVE, TYPE_ERRORCHECK, TYPE_ADAPTIVE };

static inline struct mutex *mutex_of(pthread_mutex_t *mutex)
{
	return (struct mutex *)mutex;
}

/*
 * Whether @m is ours and has no owner: normal (0) or adaptive (3), the types with + 1 clearing bit
 * 1.
 */
static inline bool mutex_is_plain(const struct mutex *m)
{
	return w_likely(!((m->kind & KIND_NATIVE) | ((m->kind + 1) & 2)));
}

/* ---- The thread's id, as glibc knows it ---- */

/* From the thread pointer to the id in glibc's struct pthread. */
extern W_HIDDEN ptrdiff_t tid_offset;

/*
 * The calling thread's id in the kernel as glibc knows it, and writes it into __owner. After a raw
 * clone() it is the parent's until the child changes it: the sandboxes of Firefox and Chromium find
 * the field by means of a recursive mutex.
 */
static inline uint32_t own_tid(void)
{
	uint32_t tid;

#ifdef __x86_64__
	__asm__ __volatile__("movl %%fs:(%1), %0" : "=r"(tid) : "r"(tid_offset));
#else
	tid = *(const volatile uint32_t *)((const char *)__builtin_thread_pointer() + tid_offset);
#endif
	return tid;
}

/* ---- pthread_cond_t ---- */

struct cond; /* cond_word.h */

static inline struct cond *cond_of(pthread_cond_t *cond)
{
	return (struct cond *)cond;
}

/* glibc's flags of a condition variable. All zero until layout_probe(): no flag appears set. */
struct cond_layout {
	size_t flags_offset;
	uint32_t pshared;
	uint32_t monotonic;
};

extern W_HIDDEN struct cond_layout cond_layout;

static inline W_ATOMIC(uint32_t) *cond_flags(struct cond *c)
{
	return (W_ATOMIC(uint32_t) *)((char *)c + cond_layout.flags_offset);
}

struct rwlock {
	unsigned char lock_head[28];
	unsigned char shared; /* its low byte: compared in memory by one instruction */
	unsigned char rule;
	uint16_t site;
	unsigned char lock_tail[16];
	unsigned int kind;
	W_ATOMIC(uint32_t) writer;
};

_Static_assert(offsetof(struct rwlock, shared) == offsetof(pthread_rwlock_t, __data.__shared),
	       "glibc's");
_Static_assert(offsetof(struct rwlock, kind) == offsetof(pthread_rwlock_t, __data.__flags),
	       "glibc's");
_Static_assert(offsetof(struct rwlock, kind) == ANY_RW_SIZE, "glibc's begins where the lock ends");
_Static_assert(sizeof(struct rwlock) <= sizeof(pthread_rwlock_t),
	       "a readers-writer lock fits in place");
_Static_assert(_Alignof(struct rwlock) <= 8 && _Alignof(pthread_rwlock_t) == 8,
	       "a lock is aligned to 8");

/* A rule gave the lock another algorithm: it is on no fast path. glibc uses 0 and 1. */
#define SHARED_RULED 2

static inline struct rwlock *rwlock_of(pthread_rwlock_t *lock)
{
	return (struct rwlock *)lock;
}

/*
 * Determines cond_layout from the effect of glibc's pthread_cond_init(), and tid_offset from what
 * glibc exports for debuggers. Returns NULL, or the name of the type whose layout is unknown.
 */
W_HIDDEN const char *layout_probe(void);

#endif
