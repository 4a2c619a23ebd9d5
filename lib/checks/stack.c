/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Call stacks: captured by an unwinder that the process has, or else by the C library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <string.h>
#include <unwind.h>

#include "checks.h"

/* Weak: the library needs neither. The C library's function loads an unwinder when it is called. */
#pragma weak _Unwind_Backtrace
#pragma weak _Unwind_GetIP
#pragma weak backtrace

#define BUCKETS 1024

uintptr_t debug_skip_from, debug_skip_to;

static struct debug_stack **buckets;

struct capture {
	struct debug_stack *stack;
	uintptr_t caller;
	bool reached; /* the caller's frame */
};

static bool add_frame(struct capture *capture, uintptr_t address)
{
	struct debug_stack *stack = capture->stack;

	capture->reached |= address == capture->caller;
	if (!capture->reached || (address >= debug_skip_from && address < debug_skip_to))
		return true;
	if (!address || stack->depth == DEBUG_DEPTH)
		return false;
	stack->frames[stack->depth++] = address;
	return true;
}

static _Unwind_Reason_Code add_unwound(struct _Unwind_Context *context, void *argument)
{
	return add_frame(argument, _Unwind_GetIP(context)) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void add_by_library(struct capture *capture)
{
	void *frames[DEBUG_DEPTH + 8];
	int depth = backtrace(frames, sizeof(frames) / sizeof(frames[0]));

	for (int i = 0; i < depth && add_frame(capture, (uintptr_t)frames[i]); i++)
		;
}

void debug_capture(struct debug_stack *stack, void *caller)
{
	struct capture capture = {.stack = stack, .caller = (uintptr_t)caller};

	stack->depth = 0;
/* Unwinders of older C libraries take the loader's lock, for which the caller's lock may wait. */
#ifdef DLFO_STRUCT_HAS_EH_DBASE
	if (_Unwind_Backtrace && _Unwind_GetIP)
		_Unwind_Backtrace(add_unwound, &capture);
	else if (backtrace)
		add_by_library(&capture);
#else
	(void)add_unwound, (void)add_by_library;
#endif
	if (stack->depth)
		return;
	stack->frames[0] = (uintptr_t)caller;
	stack->depth = 1;
}

void debug_stack_start(void)
{
	struct debug_stack stack;

	debug_capture(&stack, __builtin_return_address(0));
	buckets = debug_take(BUCKETS * sizeof(*buckets));
}

struct debug_stack *debug_stack_keep(const struct debug_stack *captured)
{
	size_t bytes = captured->depth * sizeof(captured->frames[0]);
	struct debug_stack **bucket, *stack;
	uint64_t hash = captured->depth;

	for (uint32_t i = 0; i < captured->depth; i++)
		hash = (hash ^ captured->frames[i]) * 0x9e3779b97f4a7c15, hash ^= hash >> 29;
	bucket = &buckets[hash % BUCKETS];
	for (stack = *bucket; stack; stack = stack->next)
		if (stack->depth == captured->depth &&
		    !memcmp(stack->frames, captured->frames, bytes))
			return stack;
	stack = debug_take(offsetof(struct debug_stack, frames) + bytes);
	if (!stack)
		return NULL;
	stack->depth = captured->depth;
	memcpy(stack->frames, captured->frames, bytes);
	stack->next = *bucket;
	*bucket = stack;
	return stack;
}
