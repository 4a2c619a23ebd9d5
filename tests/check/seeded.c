/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Small locks with and without a seeded bug. The checker must find each bug, and report nothing for
 * the locks without one.
 */
#include "check.h"

struct node {
	W_ATOMIC(struct node *) next;
	W_ATOMIC(uint32_t) locked;
};

struct memory {
	W_ATOMIC(struct node *) tail;
	W_ATOMIC(uint32_t) word[2];
	uint32_t cell;
	struct node nodes[3];
};

#define M check_shared(struct memory)

/* The seeded bugs. */
enum bug {
	NONE,
	RELAXED_HANDOVER,
	RELAXED_LINK,
	NODE_AFTER_HANDOVER,
	NO_FENCE,
	WAKE_WITHOUT_LOOK,
	SLEEPERS_FORGOTTEN,
	WORD_AFTER_RELEASE,
	PLAIN_RELEASE,
	FRAME_AFTER_RETURN,
	RELAXED_DONE,
	BOTH_RETREAT,
	PASS_BACK,
	RELAXED_ANNOUNCE,
	HINT_TRUSTED,
	HINT_AWAITED,
	WAKE_NEVER,
	WAKE_FIRST,
	WAKE_AFTER_WAIT,
	WAKE_AFTER_POLL,
	WAKE_ONE_OF_TWO,
};

static void mcs_acquire(struct node *node, enum bug bug)
{
	struct node *previous;

	w_store_relaxed(&node->next, NULL);
	w_store_relaxed(&node->locked, 1);
	previous = w_exchange_acq_rel(&M->tail, node);
	if (!previous)
		return;
	if (bug == RELAXED_LINK)
		w_store_relaxed(&previous->next, node);
	else
		w_store_release(&previous->next, node);
	(void)w_await_acquire(&node->locked, !VAL);
}

static void mcs_release(struct node *node, enum bug bug)
{
	struct node *next = w_load_acquire(&node->next), *last = node;

	if (!next) {
		if (w_compare_exchange_release(&M->tail, &last, NULL))
			return;
		next = w_await_acquire(&node->next, VAL != NULL);
	}
	if (bug == RELAXED_HANDOVER)
		w_store_relaxed(&next->locked, 0);
	else
		w_store_release(&next->locked, 0);
	if (bug == NODE_AFTER_HANDOVER)
		(void)w_load_relaxed(&next->next);
}

static __attribute__((noinline)) void mcs_on_stack(enum bug bug)
{
	struct node node = {0};

	mcs_acquire(&node, bug);
	M->cell++;
	mcs_release(&node, bug);
}

static void mcs(uint32_t self, enum bug bug)
{
	(void)self;
	mcs_on_stack(bug);
	check_returned();
}

/* Nodes have no plain initialisation, so that a lost hand-over shows as a deadlock, not a race. */
static void mcs_static(uint32_t self, enum bug bug)
{
	mcs_acquire(&M->nodes[self], bug);
	mcs_release(&M->nodes[self], bug);
}

/* Two threads set their flags and read the other's: at most one may find it clear. */
static void dekker(uint32_t self, enum bug bug)
{
	w_store_relaxed(&M->word[self], 1);
	if (bug != NO_FENCE)
		w_fence_seq_cst();
	if (!w_load_acquire(&M->word[1 - self]))
		M->cell++;
}

/* A futex mutex: 0 free, 1 held, 2 held and perhaps with sleepers. */
static void futex_lock(enum bug bug)
{
	uint32_t seen = 0, held = 2;

	if (w_compare_exchange_acquire(&M->word[0], &seen, 1))
		return;
	while (w_exchange_acquire(&M->word[0], held)) {
		w_park(&M->word[0], held, NULL);
		if (bug == SLEEPERS_FORGOTTEN)
			held = 1;
	}
}

static void futex_unlock(enum bug bug)
{
	uint32_t seen;

	if (bug == WAKE_WITHOUT_LOOK) {
		seen = w_load_relaxed(&M->word[0]);
		w_store_release(&M->word[0], 0);
	} else {
		seen = w_exchange_release(&M->word[0], 0);
	}
	if (seen == 2)
		w_unpark(&M->word[0]);
}

static void futex(uint32_t self, enum bug bug)
{
	(void)self;
	futex_lock(bug);
	M->cell++;
	futex_unlock(bug);
}

/* The last of two users frees the word right after its unlock. */
static void freed(uint32_t self, enum bug bug)
{
	uint32_t users;

	(void)self;
	while (w_exchange_acquire(&M->word[0], 1))
		(void)w_await_acquire(&M->word[0], !VAL);
	users = ++M->cell;
	w_store_release(&M->word[0], 0);
	if (bug == WORD_AFTER_RELEASE)
		(void)w_load_relaxed(&M->word[0]);
	if (users == 2)
		check_ended(&M->word[0]);
}

/* A lock whose release is an ordinary assignment. */
static void plain_release(uint32_t self, enum bug bug)
{
	(void)self;
	while (w_exchange_acquire(&M->word[0], 1))
		(void)w_await_acquire(&M->word[0], !VAL);
	M->cell++;
	if (bug == PLAIN_RELEASE)
		*(volatile uint32_t *)&M->word[0] = 0;
	else
		w_store_release(&M->word[0], 0);
}

static __attribute__((noinline)) uint32_t *own_frame(enum bug bug)
{
	uint32_t mine[8] = {0}, *volatile outside = &M->cell, *volatile inside = mine;

	return bug == FRAME_AFTER_RETURN ? inside : outside;
}

/* Writes to the cell, or to a variable of a function that has returned. */
static void frame(uint32_t self, enum bug bug)
{
	(void)self;
	(*own_frame(bug))++;
}

/* Lends a variable in its frame to the other thread until that reports that it is done. */
static __attribute__((noinline)) void lend(void)
{
	struct node mine;

	w_init(&mine.locked, 1);
	w_store_release(&M->tail, &mine);
	(void)w_await_acquire(&M->word[0], VAL);
}

static void lent(uint32_t self, enum bug bug)
{
	struct node *node;

	if (self == 0) {
		lend();
		check_returned();
	} else if ((node = w_load_acquire(&M->tail))) {
		(void)w_load_relaxed(&node->locked);
		if (bug == RELAXED_DONE)
			w_store_relaxed(&M->word[0], 1);
		else
			w_store_release(&M->word[0], 1);
	} else {
		w_store_relaxed(&M->word[0], 1);
	}
}

/*
 * Two flags: a thread that finds the other's flag set clears its own and waits. If both do that,
 * each execution can still end, but a fair scheduler may let them retreat indefinitely.
 */
static void flags(uint32_t self, enum bug bug)
{
	const uint32_t other = 1 - self;

	for (;;) {
		w_store_relaxed(&M->word[self], 1);
		w_fence_seq_cst();
		if (!w_load_acquire(&M->word[other]))
			break;
		if (self == 0 && bug != BOTH_RETREAT) {
			(void)w_await_acquire(&M->word[other], !VAL);
			break;
		}
		w_store_relaxed(&M->word[self], 0);
		(void)w_await_acquire(&M->word[other], !VAL);
	}
	M->cell++;
	w_store_release(&M->word[self], 0);
}

/*
 * A token that thread 0 has at the start. A thread that passes it to a waiter instead of using it
 * may get it back from there, indefinitely.
 */
static void token(uint32_t self, enum bug bug)
{
	const uint32_t other = 1 - self;
	bool has = self == 0;

	for (;; has = false) {
		w_store_relaxed(&M->nodes[self].locked, 1);
		if (!has)
			(void)w_await_acquire(&M->word[self], VAL);
		w_store_relaxed(&M->word[self], 0);
		w_store_relaxed(&M->nodes[self].locked, 0);
		if (bug != PASS_BACK || !w_load_relaxed(&M->nodes[other].locked))
			break;
		w_store_release(&M->word[other], 1);
	}
	M->cell++;
	w_store_release(&M->word[other], 1);
}

/* Loops that end because the scheduler, the memory, random numbers and deadlines are fair. */
static void loops(uint32_t self, enum bug bug)
{
	static const struct w_deadline deadline;

	(void)bug;
	if (self == 1) {
		w_store_relaxed(&M->word[0], 1);
		(void)w_fetch_add_relaxed(&M->word[1], 1);
		return;
	}
	while (!w_load_relaxed(&M->word[0]))
		w_yield();
	while (!w_load_relaxed(&M->word[1]))
		;
	while (!w_random())
		;
	while (!w_expired(&deadline))
		;
}

/*
 * Thread 0 reads a counter, announces its sleep, and sleeps unless the counter has changed. Thread
 * 1 changes the counter once it has seen the announcement. An announcement that is performed before
 * the read lets the read return the changed counter: load buffering.
 */
static void announced(uint32_t self, enum bug bug)
{
	uint32_t before;

	if (self == 1) {
		(void)w_await_acquire(&M->word[0], VAL);
		(void)w_fetch_add_relaxed(&M->word[1], 1);
		w_unpark(&M->word[1]);
		return;
	}
	before = w_load_relaxed(&M->word[1]);
	if (bug == RELAXED_ANNOUNCE)
		w_store_relaxed(&M->word[0], 1);
	else
		w_store_release(&M->word[0], 1);
	w_park(&M->word[1], before, NULL);
}

/* The client's own records, outside of the memory model. */
struct notes {
	bool stored;
};

#define NOTES check_ghost(struct notes)

/*
 * Steps that are independent in the memory, but not in the client's records: thread 1 may look
 * before thread 0 has stored.
 */
static void noted(uint32_t self, enum bug bug)
{
	(void)bug;
	w_store_relaxed(&M->word[self], 1);
	if (self == 0)
		NOTES->stored = true;
	else
		check_assert(NOTES->stored);
}

/* The same for the time between a read and another step: thread 1 may look in between. */
static void noted_between(uint32_t self, enum bug bug)
{
	(void)bug;
	if (self == 0) {
		(void)w_load_relaxed(&M->word[0]);
		NOTES->stored = true;
	}
	(void)w_fetch_add_relaxed(&M->word[self], 1);
	if (self == 0)
		NOTES->stored = false;
	else
		check_assert(!NOTES->stored);
}

/* A store that a sleeper misses: nobody wakes it. */
static void slept(uint32_t self, enum bug bug)
{
	(void)bug;
	if (self == 0)
		w_store_relaxed(&M->word[0], 1);
	else
		w_park(&M->word[0], 0, NULL);
}

/* Sleeps on a word until another thread changes it, and then answers. */
static void sleep_and_answer(void)
{
	uint32_t seen = 0;

	(void)w_compare_exchange_relaxed(&M->word[0], &seen, 1);
	while (w_load_acquire(&M->word[0]) == 1)
		w_park(&M->word[0], 1, NULL);
	w_store_relaxed(&M->word[1], 1);
}

/*
 * Thread 1 sleeps until thread 0 changes the word. The wake-up is missing, or comes before the
 * change, or only after the answer.
 */
static void woken(uint32_t self, enum bug bug)
{
	uint32_t seen;

	if (self == 1) {
		sleep_and_answer();
		return;
	}
	if (bug == WAKE_FIRST && w_load_relaxed(&M->word[0]) == 1)
		w_unpark(&M->word[0]);
	seen = w_exchange_release(&M->word[0], 2);
	if (bug == WAKE_AFTER_WAIT)
		(void)w_await_acquire(&M->word[1], VAL);
	while (bug == WAKE_AFTER_POLL && !w_load_acquire(&M->word[1]))
		;
	if (seen == 1 && bug != WAKE_FIRST && bug != WAKE_NEVER)
		w_unpark(&M->word[0]);
}

/*
 * Threads 1 and 2 sleep on one word until it is not 1, and until it is 3. Thread 0 lets thread 1
 * continue first. A wake-up of one thread may reach the other, which sleeps on.
 */
static void woken_apart(uint32_t self, enum bug bug)
{
	if (self == 1) {
		sleep_and_answer();
		return;
	}
	if (self == 2) {
		(void)w_await_acquire(&M->word[0], VAL >= 2);
		while (w_load_acquire(&M->word[0]) == 2)
			w_park(&M->word[0], 2, NULL);
		return;
	}
	w_exchange_release(&M->word[0], 2);
	if (bug == WAKE_ONE_OF_TWO)
		w_unpark(&M->word[0]);
	else
		w_unpark_all(&M->word[0]);
	(void)w_await_acquire(&M->word[1], VAL);
	w_exchange_release(&M->word[0], 3);
	w_unpark_all(&M->word[0]);
}

/* A hint decides only how much a thread reads; or which thread writes, or when a loop ends. */
static void hinted(uint32_t self, enum bug bug)
{
	W_ATOMIC(uint32_t) *hint = &M->word[0];
	bool seen;

	w_store_relaxed(hint, 1);
	do
		seen = w_load_relaxed(hint);
	while (!seen && bug == HINT_AWAITED);
	if (!seen)
		(void)w_load_relaxed(&M->word[1]);
	if (self == 0 || (!seen && bug == HINT_TRUSTED))
		M->cell++;
}

static void hint(void)
{
	check_hint(&M->word[0]);
}

#define THREAD(name, body, bug)         \
	static void name(uint32_t self) \
	{                               \
		body(self, bug);        \
	}

THREAD(mcs_right, mcs, NONE)
THREAD(mcs_relaxed_handover, mcs, RELAXED_HANDOVER)
THREAD(mcs_relaxed_link, mcs, RELAXED_LINK)
THREAD(mcs_static_relaxed_link, mcs_static, RELAXED_LINK)
THREAD(mcs_node_after_handover, mcs, NODE_AFTER_HANDOVER)
THREAD(dekker_right, dekker, NONE)
THREAD(dekker_no_fence, dekker, NO_FENCE)
THREAD(futex_right, futex, NONE)
THREAD(futex_wake_without_look, futex, WAKE_WITHOUT_LOOK)
THREAD(freed_right, freed, NONE)
THREAD(freed_word_after_release, freed, WORD_AFTER_RELEASE)
THREAD(release_right, plain_release, NONE)
THREAD(release_plain, plain_release, PLAIN_RELEASE)
THREAD(frame_right, frame, NONE)
THREAD(frame_after_return, frame, FRAME_AFTER_RETURN)
THREAD(lent_right, lent, NONE)
THREAD(lent_relaxed_done, lent, RELAXED_DONE)
THREAD(flags_right, flags, NONE)
THREAD(flags_both_retreat, flags, BOTH_RETREAT)
THREAD(token_right, token, NONE)
THREAD(token_pass_back, token, PASS_BACK)
THREAD(loops_right, loops, NONE)
THREAD(announced_right, announced, NONE)
THREAD(announced_relaxed, announced, RELAXED_ANNOUNCE)
THREAD(hinted_right, hinted, NONE)
THREAD(hint_trusted, hinted, HINT_TRUSTED)
THREAD(hint_awaited, hinted, HINT_AWAITED)
THREAD(futex_forgets, futex, SLEEPERS_FORGOTTEN)
THREAD(woken_right, woken, NONE)
THREAD(woken_never, woken, WAKE_NEVER)
THREAD(woken_first, woken, WAKE_FIRST)
THREAD(woken_after_wait, woken, WAKE_AFTER_WAIT)
THREAD(woken_after_poll, woken, WAKE_AFTER_POLL)
THREAD(woken_apart_right, woken_apart, NONE)
THREAD(woken_one_of_two, woken_apart, WAKE_ONE_OF_TWO)
THREAD(noted_late, noted, NONE)
THREAD(noted_after_read, noted_between, NONE)
THREAD(slept_through, slept, NONE)

#define ENTRY(body, count, what)                                                                \
	{                                                                                       \
		.name = #body, .shared = sizeof(struct memory), .ghost = sizeof(struct notes),  \
		.threads = count, .thread = body, .flags = CHECK_CLIENT_PROMISES, .fails = what \
	}
#define ENTRY_HINT(body, what)                                                                \
	{                                                                                     \
		.name = #body, .shared = sizeof(struct memory), .threads = 3, .thread = body, \
		.setup = hint, .fails = what                                                  \
	}
#define ENTRY_COMPOSED(body, count, what)                                        \
	{                                                                        \
		.name = "composed/" #body, .shared = sizeof(struct memory),      \
		.ghost = sizeof(struct notes), .threads = count, .thread = body, \
		.flags = CHECK_CLIENT_COMPOSED, .fails = what                    \
	}
/* A bug that only promises show. */
#define ENTRY_LB(body, count, what)                                                               \
	{                                                                                         \
		.name = #body, .shared = sizeof(struct memory), .threads = count, .thread = body, \
		.flags = CHECK_CLIENT_PROMISES, .promised_fails = what                            \
	}

const struct check_client check_clients[] = {
	ENTRY(mcs_right, 3, NULL),
	ENTRY(mcs_relaxed_handover, 2, "data race"),
	ENTRY(mcs_relaxed_link, 2, "data race"),
	ENTRY(mcs_static_relaxed_link, 2, "deadlock"),
	ENTRY(mcs_node_after_handover, 2, "data race"),
	ENTRY(dekker_right, 2, NULL),
	ENTRY(dekker_no_fence, 2, "data race"),
	ENTRY(futex_right, 3, NULL),
	ENTRY(futex_wake_without_look, 2, "lost wake-up"),
	ENTRY(futex_forgets, 3, "lost wake-up"),
	ENTRY(freed_right, 2, NULL),
	ENTRY(freed_word_after_release, 2, "the end of its lifetime"),
	ENTRY(release_right, 2, NULL),
	ENTRY(release_plain, 2, "data race"),
	ENTRY(frame_right, 1, NULL),
	ENTRY(frame_after_return, 1, "lifetime is over"),
	ENTRY(lent_right, 2, NULL),
	ENTRY(lent_relaxed_done, 2, "data race"),
	ENTRY(flags_right, 2, NULL),
	ENTRY(flags_both_retreat, 2, "livelock under a fair scheduler"),
	ENTRY(token_right, 2, NULL),
	ENTRY(token_pass_back, 2, "livelock under a fair scheduler"),
	ENTRY(loops_right, 2, NULL),
	ENTRY(announced_right, 2, NULL),
	ENTRY_LB(announced_relaxed, 2, "lost wake-up"),
	ENTRY_HINT(hinted_right, NULL),
	ENTRY_HINT(hint_trusted, "data race"),
	ENTRY_HINT(hint_awaited, "livelock under a fair scheduler"),
	ENTRY(noted_late, 2, "assertion failed"),
	ENTRY(noted_after_read, 2, "assertion failed"),
	ENTRY(slept_through, 2, "lost wake-up"),
	ENTRY(woken_right, 2, NULL),
	ENTRY(woken_never, 2, "lost wake-up"),
	ENTRY(woken_first, 2, "lost wake-up"),
	ENTRY(woken_after_wait, 2, "lost wake-up"),
	ENTRY(woken_after_poll, 2, "livelock"),
	ENTRY(woken_apart_right, 3, NULL),
	ENTRY(woken_one_of_two, 3, "lost wake-up"),
	ENTRY_COMPOSED(woken_right, 2, NULL),
	ENTRY_COMPOSED(woken_never, 2, "owes a wake-up"),
	ENTRY_COMPOSED(woken_first, 2, "owes a wake-up"),
	ENTRY_COMPOSED(woken_after_wait, 2, "owes a wake-up"),
	ENTRY_COMPOSED(woken_after_poll, 2, "livelock under a fair scheduler"),
	ENTRY_COMPOSED(slept_through, 2, "owes a wake-up"),
	ENTRY_COMPOSED(futex_wake_without_look, 2, "owes a wake-up"),
	ENTRY_COMPOSED(futex_right, 3, NULL),
	ENTRY_COMPOSED(futex_forgets, 3, "owes a wake-up"),
	ENTRY_COMPOSED(woken_apart_right, 3, NULL),
	ENTRY_COMPOSED(woken_one_of_two, 3, "owes a wake-up"),
	{.name = NULL},
};
