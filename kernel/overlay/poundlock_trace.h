/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The trace points of our locks, poundlock:*. They cost a jump while they are off.
 *
 *   poundlock_handover   a waiter has taken @lock; its CPU is among the fields of each event
 *   poundlock_event      an event of core/events.def, such as shuffle_move: a waiter bypasses
 *                        others. The events of a waiter are between its lock:contention_begin and
 *                        lock:contention_end, which have the lock's address
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM poundlock

#if !defined(POUNDLOCK_KERNEL_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define POUNDLOCK_KERNEL_TRACE_H

#include <linux/string.h>
#include <linux/tracepoint.h>

/* clang-format off */
TRACE_EVENT(poundlock_handover,
	TP_PROTO(const void *lock),
	TP_ARGS(lock),
	TP_STRUCT__entry(
		__field(const void *, lock)
	),
	TP_fast_assign(
		__entry->lock = lock;
	),
	TP_printk("%p", __entry->lock)
);

TRACE_EVENT(poundlock_event,
	TP_PROTO(const char *name),
	TP_ARGS(name),
	TP_STRUCT__entry(
		__array(char, name, 16)
	),
	TP_fast_assign(
		strscpy(__entry->name, name, sizeof(__entry->name));
	),
	TP_printk("%s", __entry->name)
);
/* clang-format on */

/* For world.h. */
#define w_trace(name) trace_poundlock_event(#name)

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE poundlock_trace
#include <trace/define_trace.h>
