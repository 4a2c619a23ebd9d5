/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The only place that knows how glibc lays out pthread_mutex_t, pthread_cond_t and pthread_rwlock_t, and where in
 * them our own objects lie. All-zero memory, but for the kind that a static initialiser names, is an unlocked lock resp.
 * a condition variable without waiters.
 *
 *   pthread_mutex_t   bytes  0 to 15, 20 to 31  the lock (lib/any.h)
 *                     bytes 16 to 19            glibc's __kind: part of the ABI, since static initialisers set it
 *                     bytes 32 to 35            holds beyond the first      } recursive and
 *                     bytes 36 to 39            the owner's thread_id()     } error-checking mutexes only
 *                     the rest                  unused
 *
 *   pthread_cond_t    bytes  0 to 3             the sequence word, a futex
 *                     bytes  8 to 15            waiters and their fork generation
 *                     glibc's word of flags     pshared and clock, as glibc's own pthread_cond_init leaves them. It has
 *                                               moved between glibc versions, so that layout_probe() asks glibc for it
 *
 *   pthread_rwlock_t  bytes  0 to 27, 32 to 47  the lock (lib/any_rw.h)
 *                     bytes 28 to 31            glibc's __shared: not 0 if it is process-shared
 *                     bytes 48 to 51            glibc's __flags: the kind, part of the ABI as static initialisers set it
 *                     bytes 52 to 55            the thread_id() of the writer inside
 */
#ifndef POUNDLOCK_LAYOUT_H
#define POUNDLOCK_LAYOUT_H

#include <pthread.h>
#include <stddef.h>

#include "any_rw.h"

struct mutex {
	unsigned char lock_head[16];
	int kind;
	unsigned char lock_tail[12];
	uint32_t holds;
	W_ATOMIC(uint32_t) owner;
};

_Static_assert(offsetof(struct mutex, kind) == offsetof(pthread_mutex_t, __data.__kind), "the kind is glibc's");
_Static_assert(offsetof(struct mutex, holds) == ANY_LOCK_SIZE, "our fields begin where the lock ends");
_Static_assert(sizeof(struct mutex) <= sizeof(pthread_mutex_t), "a mutex fits in place");
_Static_assert(_Alignof(struct mutex) <= 8 && _Alignof(pthread_mutex_t) == 8, "a lock is aligned to 8");

/* glibc's bits of __kind. A destroyed mutex is -1: native, so that glibc refuses it. */
#define KIND_TYPE 0x03
#define KIND_NATIVE 0xf0 /* robust, priority-inheriting, priority-protecting, process-shared */
#define KIND_DESTROYED (-1)

enum { TYPE_NORMAL, TYPE_RECURSIVE, TYPE_ERRORCHECK, TYPE_ADAPTIVE };

static inline struct mutex *mutex_of(pthread_mutex_t *mutex)
{
	return (struct mutex *)mutex;
}

static inline bool mutex_is_native(const struct mutex *m)
{
	return m->kind & KIND_NATIVE;
}

/* Whether @m is ours and has no owner to look after: normal (0) or adaptive (3), the types whose + 1 clears bit 1. */
static inline bool mutex_is_plain(const struct mutex *m)
{
	return w_likely(!((m->kind & KIND_NATIVE) | ((m->kind + 1) & 2)));
}

struct cond {
	W_ATOMIC(uint32_t) sequence;
	uint32_t unused;
	/* Low half: how many threads are inside a wait, and COND_DESTROYING. High half: their fork generation. */
	W_ATOMIC(uint64_t) waiters;
};

_Static_assert(sizeof(struct cond) <= sizeof(pthread_cond_t), "a condition variable fits in place");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "destroyers sleep on the low half of waiters");

#define COND_DESTROYING 0x80000000u

static inline struct cond *cond_of(pthread_cond_t *cond)
{
	return (struct cond *)cond;
}

/* Where glibc keeps a condition variable's flags. All zero until layout_probe(): no flag is ever seen set. */
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
	int shared;
	unsigned char lock_tail[16];
	unsigned int kind;
	W_ATOMIC(uint32_t) writer;
};

_Static_assert(offsetof(struct rwlock, shared) == offsetof(pthread_rwlock_t, __data.__shared), "glibc's");
_Static_assert(offsetof(struct rwlock, kind) == offsetof(pthread_rwlock_t, __data.__flags), "glibc's");
_Static_assert(offsetof(struct rwlock, kind) == ANY_RW_SIZE, "glibc's begins where the lock ends");
_Static_assert(sizeof(struct rwlock) <= sizeof(pthread_rwlock_t), "a readers-writer lock fits in place");
_Static_assert(_Alignof(struct rwlock) <= 8 && _Alignof(pthread_rwlock_t) == 8, "a lock is aligned to 8");

static inline struct rwlock *rwlock_of(pthread_rwlock_t *lock)
{
	return (struct rwlock *)lock;
}

/* Fills cond_layout from what glibc's pthread_cond_init does. False if that is not one flag in a word we leave alone. */
W_HIDDEN bool layout_probe(void);

#endif
