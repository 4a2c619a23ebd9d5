/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The common part of the worlds that execute clients, world/check and world/c11. Each defines
 * check_self(), the number of the running thread, and CHECK_MEMORY, the client's shared memory, as
 * an array of char.
 */
#ifndef POUNDLOCK_CHECK_WORLDS_H
#define POUNDLOCK_CHECK_WORLDS_H

#include "hint.h"

#define w_likely(x) (x)
#define w_unlikely(x) (x)
#define W_SLOW __attribute__((unused))

/* Expires at a time that the world chooses, until check_renew_deadline(). */
struct w_deadline {
	char unused;
};

#define w_deadline_at(time) ((void)(time), (struct w_deadline){0})

/* ---- Place and thread ---- */

#define W_CONTEXTS 1u
/* A client with urgent waiters, or with a threshold of time, defines these itself. */
#ifndef W_URGENCY
#define W_URGENCY 0
#define w_urgent() false
#endif
#ifndef W_THRESHOLD
#define W_THRESHOLD 0u
#endif
/* Clients have at most two domains. */
#define w_domain_count() 2u
/* Both domains have the same parent, so a lock with one more level takes all its paths. */
#define W_LEVELS 2
#define w_domain_parents(level) ((void)(level), 1u)
#define w_domain_parent(level, domain) ((void)(level), (void)(domain), 0u)

#define w_self_id() (check_self() + 1)
#define w_weight() 1024u
#define W_GROUPS 2
#define w_group() (check_self() % 2)
#define w_group_weight(group) ((void)(group), 1024u)
#define w_own_policy_note(number, lock) ((void)(number), (void)(lock), 0u)

/* ---- Memory ---- */

/* A waiter's node; free if its status is 0. */
struct w_node {
	_Alignas(64) W_ATOMIC(uint32_t) status;
	char rest[60];
};

#define W_NODES 5

void *w_node_get(void);

#define w_node_choose() w_node_get()
#define w_node_settle(node) ((void)(node))
#define w_waiter_node(on_stack, may_leave) ((may_leave) ? w_node_get() : (void *)(on_stack))

/*
 * The entries of visible readers are at the start of the client's shared memory. A client of locks
 * that use them keeps it free.
 */
struct w_visible {
	W_ATOMIC(uint64_t) bias;
	W_ATOMIC(uint32_t) reader;
	uint32_t depth;
};

#define W_VISIBLE 2u
#define w_visible(i) (&((struct w_visible *)(void *)CHECK_MEMORY)[i])

/* The offset of the locks' common block in the shared memory, after the client's own data. */
#ifndef CHECK_COMMON
#define CHECK_COMMON 512
#endif
#define w_common(bytes) ((void)(bytes), (void *)(CHECK_MEMORY + CHECK_COMMON))

/*
 * A hint may be any: of another lock, or wrong. A client may have threads that remember nothing,
 * and may define the notes that a thread finds.
 */
#ifndef CHECK_REMEMBERS
#define CHECK_REMEMBERS() (w_random() != 0)
#endif
#ifndef CHECK_NOTE
#define CHECK_NOTE() w_random()
#endif

#define w_remembers(lock) ((void)(lock), CHECK_REMEMBERS())
#define w_hint_lock(lock) ((void)(lock), (const void *)NULL)
#define w_note(lock) ((void)(lock), CHECK_NOTE())
#define w_note_set(lock, its_note) ((void)(lock), (void)(its_note))
#define w_remember(lock, its_note) ((void)(lock), (void)(its_note), false)
#define w_forget(lock) ((void)(lock))

/* No release looks. If a client does, the streak is over. Nobody races for long. */
#define w_streak_end(long_turns) ((void)(long_turns))
#define w_streak_begin() ((void)0)
#define w_streak_counts() false
#define w_streak_is_over(others_wait, long_turns) ((void)(long_turns), (others_wait))
#define w_streak_yield() ((void)0)
#ifndef CHECK_RACE_END
#define CHECK_RACE_END() UINT64_C(0)
#endif
#define w_race_end() CHECK_RACE_END()
#ifndef CHECK_TURNS_ARE_LONG
#define CHECK_TURNS_ARE_LONG() false
#endif
#define w_turns_shorten() ((void)0)
#define w_turns_are_long() CHECK_TURNS_ARE_LONG()

/* The gates lie behind the common block. */
#ifndef CHECK_GATES
#define CHECK_GATES (CHECK_COMMON + 512)
#endif
#define w_gates(bytes) ((void)(bytes), (void *)(CHECK_MEMORY + CHECK_GATES))

/*
 * The common block contains one slot for all numbers, which is the worst case, and the count of
 * unique numbers that each thread has drawn.
 */
#define w_slot(number) ((void)(number), (W_ATOMIC(uint32_t) *)w_common(0))
#define w_unique() ((uint64_t)check_self() << 32 | ++((uint32_t *)w_common(0))[1 + check_self()])

/* Also at the start of the common block: no lock uses both. */
#define W_QUEUE_NODES 3u
#define w_queue_node(i) (&((struct w_node *)w_common(0))[i])

#endif
