/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The hooks that compilers call under -fsanitize=thread: each notes the cache line and performs the
 * atomic operation. Memory orders do not matter, since there is one thread.
 */
#include "lines.h"

#include <stdbool.h>

#include "../expect.h"

#define LINE 64
#define MOST 256 /* lines */
#define AREAS 4

static struct {
	struct {
		uintptr_t begin, end;
	} areas[AREAS];
	uint32_t watched;
	uintptr_t lines[MOST];
	uint32_t count;
} state;

void lines_begin(void)
{
	state.watched = state.count = 0;
}

void lines_watch(const void *memory, size_t size)
{
	EXPECT(state.watched < AREAS);
	state.areas[state.watched].begin = (uintptr_t)memory;
	state.areas[state.watched++].end = (uintptr_t)memory + size;
}

uint32_t lines_end(void)
{
	state.watched = 0;
	return state.count;
}

static bool watched(uintptr_t at)
{
	for (uint32_t i = 0; i < state.watched; i++)
		if (at >= state.areas[i].begin && at < state.areas[i].end)
			return true;
	return false;
}

static void note(const volatile void *p)
{
	uintptr_t line = (uintptr_t)p / LINE;

	if (!watched((uintptr_t)p))
		return;
	for (uint32_t i = 0; i < state.count; i++)
		if (state.lines[i] == line)
			return;
	EXPECT(state.count < MOST);
	state.lines[state.count++] = line;
}

/* Functions that compilers call and no header declares. */
#define HOOK(name) __tsan_##name

#define NOTES(name)               \
	void HOOK(name)(void *p); \
	void HOOK(name)(void *p)  \
	{                         \
		note(p);          \
	}

NOTES(read1)
NOTES(read2)
NOTES(read4)
NOTES(read8)
NOTES(read16)
NOTES(write1)
NOTES(write2)
NOTES(write4)
NOTES(write8)
NOTES(write16)
NOTES(unaligned_read2)
NOTES(unaligned_read4)
NOTES(unaligned_read8)
NOTES(unaligned_read16)
NOTES(unaligned_write2)
NOTES(unaligned_write4)
NOTES(unaligned_write8)
NOTES(unaligned_write16)

void HOOK(init)(void);
void HOOK(func_entry)(void *caller);
void HOOK(func_exit)(void);

void HOOK(init)(void)
{
}

void HOOK(func_entry)(void *caller)
{
	(void)caller;
}

void HOOK(func_exit)(void)
{
}

#define MODIFIES(bits, name, T)                                            \
	T HOOK(atomic##bits##_##name)(volatile T * p, T value, int order); \
	T HOOK(atomic##bits##_##name)(volatile T * p, T value, int order)  \
	{                                                                  \
		(void)order;                                               \
		note(p);                                                   \
		return __atomic_##name##_OF(p, value);                     \
	}

#define __atomic_exchange_OF(p, value) __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST)
#define __atomic_fetch_add_OF(p, value) __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST)
#define __atomic_fetch_or_OF(p, value) __atomic_fetch_or(p, value, __ATOMIC_SEQ_CST)
#define __atomic_fetch_and_OF(p, value) __atomic_fetch_and(p, value, __ATOMIC_SEQ_CST)

#define ATOMICS(bits, T)                                                                 \
	MODIFIES(bits, exchange, T)                                                      \
	MODIFIES(bits, fetch_add, T)                                                     \
	MODIFIES(bits, fetch_or, T)                                                      \
	MODIFIES(bits, fetch_and, T)                                                     \
	T HOOK(atomic##bits##_load)(const volatile T *p, int order);                     \
	T HOOK(atomic##bits##_load)(const volatile T *p, int order)                      \
	{                                                                                \
		(void)order;                                                             \
		note(p);                                                                 \
		return __atomic_load_n(p, __ATOMIC_SEQ_CST);                             \
	}                                                                                \
	void HOOK(atomic##bits##_store)(volatile T * p, T value, int order);             \
	void HOOK(atomic##bits##_store)(volatile T * p, T value, int order)              \
	{                                                                                \
		(void)order;                                                             \
		note(p);                                                                 \
		__atomic_store_n(p, value, __ATOMIC_SEQ_CST);                            \
	}                                                                                \
	int HOOK(atomic##bits##_compare_exchange_strong)(volatile T * p, T * old, T new, \
							 int order, int fail);           \
	int HOOK(atomic##bits##_compare_exchange_strong)(volatile T * p, T * old, T new, \
							 int order, int fail)            \
	{                                                                                \
		(void)order, (void)fail;                                                 \
		note(p);                                                                 \
		return __atomic_compare_exchange_n(p, old, new, false, __ATOMIC_SEQ_CST, \
						   __ATOMIC_SEQ_CST);                    \
	}

ATOMICS(8, uint8_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)
