/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Signal handlers that use a lock get other nodes than the thread that they interrupt: for every
 * lock whose holder keeps a node, at each instruction of each operation. Handlers that draw unique
 * numbers get other ones. A thread and its handlers have one block. No post to a semaphore is lost.
 * The trap flag of x86-64 single-steps the thread.
 */
#define _GNU_SOURCE
#include <time.h>
#include <ucontext.h>

#include "../expect.h"
#include "any.h"
#include "poundlock.h"

#define TRAP_FLAG 0x100
#define STEPS 120 /* enough for each operation to have put its node into a queue, or to have none */

struct memory {
	_Alignas(8) char bytes[ANY_LOCK_SIZE];
};

/* The locks whose holders keep a node; a build may have none. */
static const char *const names[] = {
#define BARE(name)
#define BOXED_BARE(name)
#define NODE(name) #name,
#define BOXED_NODE(name) #name,
#define LOCK(name, kind, wait, promise, paper) kind(name)
#include "locks.def"
	NULL,
};

/* The thread's lock, and its handler's. */
static struct memory ours, theirs;
static const struct any_ops *ops;

/* ---- Operations ---- */

static bool locks(struct memory *lock)
{
	return !ops->lock(lock, ops);
}

static bool tries(struct memory *lock)
{
	return ops->trylock(lock);
}

static bool waits(struct memory *lock)
{
	static const struct w_deadline late = {.clock = CLOCK_MONOTONIC, .at.tv_sec = INT32_MAX};

	return ops->timedlock(lock, &late, ops);
}

static bool gives_up(struct memory *lock)
{
	static const struct w_deadline past = {.clock = CLOCK_MONOTONIC};

	return ops->timedlock(lock, &past, ops);
}

/* ---- Interruptions ---- */

static volatile struct {
	bool (*handler)(struct memory *theirs);
	long at, step;
	bool result;
} interruption;

static void on_trap(int signal, siginfo_t *info, void *context)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

	(void)signal, (void)info;
	if (++interruption.step != interruption.at)
		return;
	*flags &= ~TRAP_FLAG;
	interruption.result = interruption.handler(&theirs);
}

/* Sets or clears the trap flag. Skips the red zone of the caller's frame. */
static __attribute__((always_inline)) inline void step_from_here(bool on)
{
	__asm__ __volatile__("leaq -128(%%rsp), %%rsp\n\t"
			     "pushfq\n\t"
			     "andq %0, (%%rsp)\n\t"
			     "orq %1, (%%rsp)\n\t"
			     "popfq\n\t"
			     "leaq 128(%%rsp), %%rsp"
			     :
			     : "r"(~(uint64_t)TRAP_FLAG), "r"(on ? (uint64_t)TRAP_FLAG : 0)
			     : "memory", "cc");
}

/*
 * Returns the result of @operation, whose @at-th instruction @handler follows; the end if there are
 * fewer.
 */
static __attribute__((noinline)) bool interrupt(bool (*operation)(struct memory *ours),
						bool (*handler)(struct memory *theirs), long at)
{
	bool result;

	interruption.handler = handler;
	interruption.at = at;
	interruption.step = 0;
	step_from_here(true);
	result = operation(&ours);
	step_from_here(false);
	if (interruption.step < at)
		interruption.result = handler(&theirs);
	return result;
}

/* ---- Checks ---- */

static void expect_all_nodes_free(void)
{
	for (int i = 0; i < W_NODES; i++) {
		EXPECT(!atomic_load(&w_self()->nodes[i].status), "%s: node %d is lost", ops->name,
		       i);
		EXPECT(!atomic_load(&w_self()->nodes[i].chosen), "%s: node %d stays chosen",
		       ops->name, i);
	}
}

/* Both locks are held, by different nodes; after a release they are free. */
static void expect_both_held(void)
{
	EXPECT(memcmp(ours.bytes + 8, theirs.bytes + 8, 8),
	       "%s,wait=%d: one node for both, step %ld", ops->name, (int)ops->wait,
	       interruption.at);
	EXPECT(!tries(&ours) && !tries(&theirs));
	EXPECT(ops->unlock(&ours, ops));
	EXPECT(!tries(&theirs));
	EXPECT(tries(&ours));
	EXPECT(ops->unlock(&theirs, ops) && ops->unlock(&ours, ops));
	EXPECT(tries(&ours) && tries(&theirs));
	EXPECT(ops->unlock(&ours, ops) && ops->unlock(&theirs, ops));
	expect_all_nodes_free();
}

/* The thread takes its lock; the handler takes the other one and keeps it. */
static void both_take(bool (*operation)(struct memory *ours))
{
	for (long at = 1; at <= STEPS; at++) {
		EXPECT(interrupt(operation, locks, at), "%s", ops->name);
		expect_both_held();
	}
}

/* The thread's lock is held, so it fails; the handler takes the other lock, or fails too. */
static void one_fails(bool (*operation)(struct memory *ours),
		      bool (*handler)(struct memory *theirs))
{
	for (long at = 1; at <= STEPS; at++) {
		EXPECT(locks(&ours));
		if (handler == gives_up)
			EXPECT(locks(&theirs));
		EXPECT(!interrupt(operation, handler, at), "%s", ops->name);
		EXPECT(interruption.result == (handler == locks), "%s", ops->name);
		expect_both_held();
	}
}

static void test(const char *spec)
{
	char error[256];

	ops = any_find(spec, error, sizeof(error));
	EXPECT(ops, "%s", error);
	memset(&ours, 0, sizeof(ours));
	memset(&theirs, 0, sizeof(theirs));
	/* First-use initialisation happens here. */
	EXPECT(locks(&ours) && locks(&theirs));
	EXPECT(!gives_up(&ours) && !gives_up(&theirs));
	expect_both_held();
	both_take(locks);
	both_take(tries);
	both_take(waits);
	one_fails(tries, locks);
	one_fails(gives_up, locks);
	one_fails(gives_up, gives_up);
	if (ops->destroy) {
		ops->destroy(&ours);
		ops->destroy(&theirs);
	}
}

/* ---- Unique numbers ---- */

#define DRAWN (sizeof(struct memory) / sizeof(uint64_t)) /* by the thread or its handler */

static bool draws(struct memory *numbers)
{
	for (size_t i = 0; i < DRAWN; i++) {
		uint64_t number = w_unique();

		memcpy(&numbers->bytes[i * sizeof(number)], &number, sizeof(number));
	}
	return true;
}

static void expect_unique(void)
{
	uint64_t all[2 * DRAWN];

	memcpy(&all[0], &ours, sizeof(ours));
	memcpy(&all[DRAWN], &theirs, sizeof(theirs));
	for (size_t i = 0; i < 2 * DRAWN; i++) {
		EXPECT(all[i]);
		for (size_t j = 0; j < i; j++)
			EXPECT(all[i] != all[j], "step %ld: twice %#llx", interruption.at,
			       (unsigned long long)all[i]);
	}
}

/* The thread has drawn @before numbers of its block, and draws more. */
static void draw_after(uint64_t before)
{
	for (long at = 1; at <= STEPS; at++) {
		w_own.unique = 0;
		for (uint64_t i = 0; i < before; i++)
			(void)w_unique();
		(void)interrupt(draws, draws, at);
		expect_unique();
	}
}

static void test_numbers(void)
{
	expect_part = "unique numbers";
	limit();
	draw_after(0);
	draw_after(1);
	for (uint64_t left = 0; left <= 2 * DRAWN; left++)
		draw_after(W_UNIQUE_BLOCK - left);
}

/* ---- The thread's block ---- */

#define MARKED 7

/* Writes the address of the thread's block to @found. */
static bool finds_block(struct memory *found)
{
	struct w_block *block = w_block();

	memcpy(found->bytes, &block, sizeof(block));
	return true;
}

static bool finds_and_marks_block(struct memory *found)
{
	w_block()->account_uses = MARKED;
	return finds_block(found);
}

/*
 * The thread makes its block, and the handler after its @at-th instruction, in a record with the
 * block @left of its last owner, or NULL. Returns false if there are fewer instructions.
 */
static bool make_block_interrupted(struct w_block *left, long at)
{
	w_own.block = NULL;
	atomic_store(&w_self()->block, left);
	(void)interrupt(finds_block, finds_and_marks_block, at);
	EXPECT(!memcmp(&ours, &theirs, sizeof(struct w_block *)), "step %ld: two blocks", at);
	EXPECT(w_block()->account_uses == MARKED, "step %ld: the handler's data is lost", at);
	EXPECT(atomic_load(&w_self()->block) == w_block(), "step %ld: not the record's", at);
	return interruption.step >= at;
}

static void test_block(void)
{
	struct w_block *left = w_block();

	expect_part = "a thread's block";
	limit();
	for (long at = 1; make_block_interrupted(NULL, at); at++)
		;
	for (long at = 1; make_block_interrupted(left, at); at++)
		;
}

/* ---- Semaphores, in a process of one thread ---- */

static pound_sem_t sem;

static bool posts(struct memory *unused)
{
	(void)unused;
	return !pound_sem_post(&sem, 1);
}

static bool takes(struct memory *unused)
{
	(void)unused;
	return pound_sem_trywait(&sem);
}

/* The handler posts after the @at-th instruction. Returns false if there are fewer. */
static bool post_interrupted(bool (*operation)(struct memory *unused), uint32_t left, long at)
{
	EXPECT(!pound_sem_init(&sem, 1));
	EXPECT(interrupt(operation, posts, at) && interruption.result);
	EXPECT(pound_sem_value(&sem) == left, "step %ld: %u left, not %u", at,
	       pound_sem_value(&sem), left);
	return interruption.step >= at;
}

static void test_posts(void)
{
	expect_part = "posts";
	limit();
	for (long at = 1; post_interrupted(posts, 3, at); at++)
		;
	for (long at = 1; post_interrupted(takes, 1, at); at++)
		;
}

int main(void)
{
	static const char *const ways[] = {"spin", "park"};
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	char spec[64];

	EXPECT(!sigaction(SIGTRAP, &action, NULL));
	EXPECT(any_start());
	w_spin_pauses = 1; /* since a spin is many steps */
	test_numbers();
	test_block();
	test_posts();
	for (size_t i = 0; names[i]; i++) {
		for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
			snprintf(spec, sizeof(spec), "%s,wait=%s", names[i], ways[way]);
			expect_part = names[i];
			limit();
			test(spec);
		}
	}
	return 0;
}
