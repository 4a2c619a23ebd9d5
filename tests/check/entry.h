/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * An entry of check_clients[]. The includer defines SHARED_BYTES, the size of a client's shared
 * memory, and struct notes, its private notes.
 */
#ifndef POUNDLOCK_CHECK_ENTRY_H
#define POUNDLOCK_CHECK_ENTRY_H

/* @wanted: events that must occur. @outcomes: the outcomes that must be met, and no others. */
#define ENTRY(title, body, count, wanted, outcomes, first, last, ...)                 \
	{                                                                             \
		.name = title, .shared = SHARED_BYTES, .ghost = sizeof(struct notes), \
		.threads = count, .setup = first, .thread = body, .finish = last,     \
		.demands = wanted, .allowed = outcomes, __VA_ARGS__                   \
	}

#endif
