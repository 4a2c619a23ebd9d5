/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Stacks and modules: stack.h has the contract. */
#define _GNU_SOURCE
#include "stack.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include "region.h"

/* ---- Modules ---- */

static char program[STATS_PATH];

static bool is_known(uint64_t start, const char *path)
{
	struct stats_module *module;

	/* The latest first: a module may be loaded where another one was unloaded. */
	for (uint32_t i = stats_used(STATS_MODULES); i-- > 0;) {
		module = stats_item(STATS_MODULES, i);
		/* acquire: pairs with the release below; the rest of the item */
		if (w_load_acquire(&module->start) == start)
			return !strncmp(module->path, path, STATS_PATH - 1);
	}
	return false;
}

static void note(uint64_t start, uint64_t end, uint64_t bias, const char *path)
{
	struct stats_module *module;
	uint32_t index;

	path = *path ? path : program;
	if (is_known(start, path) || !(module = stats_take(STATS_MODULES, 0, &index)))
		return;
	module->end = end;
	module->bias = bias;
	snprintf(module->path, STATS_PATH, "%s", path);
	/* release: pairs with the acquire above */
	w_store_release(&module->start, start);
}

static void find_program(void)
{
	if (syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", program, sizeof(program) - 1) < 0)
		snprintf(program, sizeof(program), "%s", program_invocation_name);
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE

void stats_module_note(uint64_t address)
{
	struct dl_find_object object;

	if (!_dl_find_object((void *)address, &object))
		note((uintptr_t)object.dlfo_map_start, (uintptr_t)object.dlfo_map_end,
		     object.dlfo_link_map->l_addr, object.dlfo_link_map->l_name);
}

static void note_all(void)
{
}

#else

static int note_one(struct dl_phdr_info *info, size_t size, void *unused)
{
	uint64_t start = UINT64_MAX, end = 0;

	(void)size, (void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type != PT_LOAD)
			continue;
		start = start < part->p_vaddr ? start : part->p_vaddr;
		end = end > part->p_vaddr + part->p_memsz ? end : part->p_vaddr + part->p_memsz;
	}
	if (end)
		note(info->dlpi_addr + start, info->dlpi_addr + end, info->dlpi_addr,
		     info->dlpi_name);
	return 0;
}

static void note_all(void)
{
	dl_iterate_phdr(note_one, NULL);
}

void stats_module_note(uint64_t address)
{
	(void)address;
}

#endif

/* ---- Stacks ---- */

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *argument)
{
	struct stats_frames *stack = argument;
	uint64_t address = _Unwind_GetIP(context);

	if (!address || stack->depth == STATS_DEPTH)
		return _URC_END_OF_STACK;
	stack->frames[stack->depth++] = address;
	return _URC_NO_REASON;
}

void stats_stack_capture(struct stats_frames *stack, void *caller)
{
	stack->depth = 0;
#ifdef DLFO_STRUCT_HAS_EH_DBASE
	_Unwind_Backtrace(add_frame, stack);
#else
	(void)add_frame;
#endif
	if (stack->depth)
		return;
	stack->frames[0] = (uintptr_t)caller;
	stack->depth = 1;
}

void stats_stack_start(void)
{
	struct stats_frames stack;

	find_program();
	note_all();
	stats_stack_capture(&stack, __builtin_return_address(0));
}

/* ---- Items of stacks ---- */

#define PROBES 64u

static uint32_t hash_of(const struct stats_frames *stack, uint32_t kind, uint32_t lock)
{
	uint64_t hash = (uint64_t)kind << 32 | lock;

	for (uint32_t i = 0; i < stack->depth; i++)
		hash = (hash ^ stack->frames[i]) * 0x9e3779b97f4a7c15, hash ^= hash >> 29;
	return (uint32_t)(hash >> 32);
}

static bool is_it(struct stats_stack *item, const struct stats_frames *stack, uint32_t kind,
		  uint32_t lock)
{
	/* acquire: pairs with the release below; the rest of the item */
	return w_load_acquire(&item->depth) == stack->depth && item->kind == kind &&
	       item->lock == lock &&
	       !memcmp(item->frames, stack->frames, stack->depth * sizeof(stack->frames[0]));
}

static uint32_t add_stack(const struct stats_frames *stack, uint32_t kind, uint32_t lock,
			  uint32_t hash)
{
	uint32_t index;
	struct stats_stack *item = stats_take(STATS_STACKS, 0, &index);

	if (!item)
		return 0;
	item->kind = kind;
	item->lock = lock;
	item->hash = hash;
	memcpy(item->frames, stack->frames, stack->depth * sizeof(stack->frames[0]));
	for (uint32_t i = 0; i < stack->depth; i++)
		stats_module_note(stack->frames[i]);
	/* release: pairs with the acquire above */
	w_store_release(&item->depth, stack->depth);
	return index + 1;
}

static uint32_t find_or_add(const struct stats_frames *stack, uint32_t kind, uint32_t lock)
{
	uint32_t hash = hash_of(stack, kind, lock), ours = 0, seen;

	for (uint32_t i = 0; i < PROBES; i++) {
		W_ATOMIC(uint32_t) *slot = &stats_private->stacks[(hash + i) % STATS_STACK_SLOTS];

		/* acquire: pairs with the release of the compare-exchange */
		seen = w_load_acquire(slot);
		if (!seen) {
			ours = ours ? ours : add_stack(stack, kind, lock, hash);
			/* Added by two threads at once: one of the items stays without a count. */
			if (!ours || w_compare_exchange_release(slot, &seen, ours))
				return ours;
		}
		if (is_it(stats_item(STATS_STACKS, seen - 1), stack, kind, lock))
			return seen;
	}
	return 0;
}

uint32_t stats_stack_count(const struct stats_frames *stack, enum stats_stack_kind kind,
			   uint32_t lock, uint64_t ns)
{
	uint32_t found = find_or_add(stack, kind, lock);
	struct stats_stack *item;

	if (!found) {
		(void)w_fetch_add_relaxed(&stats_region->stacks_unobserved, 1);
		return 0;
	}
	item = stats_item(STATS_STACKS, found - 1);
	/* relaxed, both: sums */
	(void)w_fetch_add_relaxed(&item->count, 1);
	(void)w_fetch_add_relaxed(&item->ns, ns);
	return found;
}
