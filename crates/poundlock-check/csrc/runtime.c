/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The runtime that is linked into each library of clients: the functions that world.h and check.h
 * declare, and the hooks that the compiler calls for plain accesses. Compiled without
 * -fsanitize=thread.
 */
#include "check.h"

const struct check_engine *check_engine;

/* Compared with the size of the checker's own table, before it calls check_bind(). */
const size_t check_engine_size = sizeof(struct check_engine);
void check_bind(const struct check_engine *engine);

void check_bind(const struct check_engine *engine)
{
	check_engine = engine;
}

void *w_node_get(void)
{
	struct w_node *node;

	/*
	 * acquire: pairs with the release that freed the node, so the last accesses to it are over
	 */
	for (uint32_t i = 0; (node = check_engine->node(i)); i++)
		if (!w_load_acquire(&node->status))
			return node;
	check_engine->fail(__FILE__, __LINE__, "the thread's nodes are all in use");
	return check_engine->node(0);
}

void check_returned(void)
{
	check_engine->returned(__builtin_frame_address(0));
}

#define PLAIN(kind, name, size, write)                                           \
	void __tsan_##kind##name(const void *p);                                 \
	void __tsan_##kind##name(const void *p)                                  \
	{                                                                        \
		check_engine->plain(p, size, write, __builtin_frame_address(0)); \
	}
#define PLAIN_SIZES(kind, write) \
	PLAIN(kind, 1, 1, write) \
	PLAIN(kind, 2, 2, write) \
	PLAIN(kind, 4, 4, write) \
	PLAIN(kind, 8, 8, write) \
	PLAIN(kind, 16, 16, write)
PLAIN_SIZES(read, false)
PLAIN_SIZES(write, true)
PLAIN_SIZES(unaligned_read, false)
PLAIN_SIZES(unaligned_write, true)

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_read_range(const void *p, size_t size);
void __tsan_read_range(const void *p, size_t size)
{
	check_engine->plain(p, size, false, __builtin_frame_address(0));
}

void __tsan_write_range(const void *p, size_t size);
void __tsan_write_range(const void *p, size_t size)
{
	check_engine->plain(p, size, true, __builtin_frame_address(0));
}

/* The compiler calls these for large objects, and no hook. */
void *memset(void *p, int value, size_t size);
void *memset(void *p, int value, size_t size)
{
	check_engine->plain(p, size, true, __builtin_frame_address(0));
	for (size_t i = 0; i < size; i++)
		((volatile unsigned char *)p)[i] = (unsigned char)value;
	return p;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	check_engine->plain(from, size, false, __builtin_frame_address(0));
	check_engine->plain(to, size, true, __builtin_frame_address(0));
	for (size_t i = 0; i < size; i++)
		((volatile unsigned char *)to)[i] = ((const volatile unsigned char *)from)[i];
	return to;
}
