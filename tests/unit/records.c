/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads' records (thread.c, included for its counts): thousands of threads share few records; a
 * signal handler has its thread's; nested locks get distinct nodes; a child has its parent's
 * records but not its threads; a vfork child leaves nothing behind.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>

/* Called before each step that publishes something in thread.c; NULL: nothing is checked. */
static void (*at_step)(void);

#define W_STEP() (at_step ? at_step() : (void)0)

#include "../../world/user/thread.c"
#include "../forks.h"
#include "unit.h"

#define BATCH 40
#define THREADS 4000
#define NESTED 100
/*
 * Dead records are searched for at twice the living plus 32; then each new thread may add a chunk.
 */
#define MOST (2 * (BATCH + 1) + 32 + BATCH * (CHUNK / sizeof(struct w_self)))

static pthread_barrier_t attached;

/* Each thread still owns its record when all of the batch have one. */
static void *attach_in_batch(void *id)
{
	EXPECT((uint32_t)atomic_load(&w_self()->owner) == thread_id());
	pthread_barrier_wait(&attached);
	EXPECT((uint32_t)atomic_load(&w_self()->owner) == thread_id(),
	       "two threads have one record");
	*(uint32_t *)id = thread_id();
	return NULL;
}

/* Joined, and gone for the kernel too, which may take much longer on a busy machine. */
static void start_and_join(void)
{
	pthread_t threads[BATCH];
	uint32_t ids[BATCH];

	for (int i = 0; i < BATCH; i++)
		EXPECT(!pthread_create(&threads[i], NULL, attach_in_batch, &ids[i]));
	for (int i = 0; i < BATCH; i++) {
		EXPECT(!pthread_join(threads[i], NULL));
		while (!syscall(SYS_tgkill, getpid(), ids[i], 0))
			w_yield();
	}
}

static void threads_by_the_thousand(void)
{
	for (int i = 0; i < THREADS / BATCH; i++)
		start_and_join();
	EXPECT(atomic_load(&record_count) < MOST, "%u records for %d threads at once",
	       atomic_load(&record_count), BATCH);
}

static void listed_have_ids(void)
{
	for (struct w_self *self = atomic_load(&records); self; self = self->next)
		EXPECT(self->id, "a record that can be claimed has no id");
}

/* A reader known to BRAVO by the id 0 would never leave. */
static void no_record_without_id(void)
{
	at_step = listed_have_ids;
	EXPECT(new_record(thread_id()));
	at_step = NULL;
	listed_have_ids();
}

static struct w_self *handlers;

static void get_in_handler(int number)
{
	(void)number;
	handlers = w_self();
}

static void interrupt(void)
{
	at_step = NULL;
	EXPECT(!raise(SIGUSR1));
}

static void *attach_interrupted(void *unused)
{
	at_step = interrupt;
	EXPECT(w_self() == handlers,
	       "a handler that interrupts the search for a record has got another");
	return unused;
}

/* A new record is made, since none is free or looked for. Its addition to the list is a step. */
static void interrupted(void)
{
	struct sigaction action = {.sa_handler = get_in_handler};
	uint32_t normal = atomic_exchange(&scan_at, UINT32_MAX);
	pthread_t thread;

	EXPECT(!sigaction(SIGUSR1, &action, NULL));
	while (find_free(owner_of(UINT32_MAX >> 1)))
		;
	EXPECT(!pthread_create(&thread, NULL, attach_interrupted, NULL));
	EXPECT(!pthread_join(thread, NULL));
	EXPECT(handlers, "no signal has interrupted it");
	atomic_store(&scan_at, normal);
}

/*
 * A status takes a node, the status 0 frees it, in any order; afterwards no more memory is needed.
 */
static void nested_nodes(void)
{
	struct w_node *nodes[NESTED];
	struct w_more_nodes *first = NULL;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < NESTED; i++) {
			nodes[i] = w_node_choose();
			EXPECT(!atomic_load(&nodes[i]->status), "a node in use was given out");
			EXPECT((uintptr_t)nodes[i] % 64 == 0);
			atomic_store(&nodes[i]->status, 1);
			w_node_settle(nodes[i]);
		}
		EXPECT(!round || atomic_load(&w_self()->more) == first,
		       "nodes that were given back are not used again");
		first = atomic_load(&w_self()->more);
		for (int i = 0; i < NESTED; i++)
			atomic_store(&nodes[i * 37 % NESTED]->status, 0);
	}
}

/* ---- Children ---- */

static bool is_ours(struct w_self *self, uint32_t generation)
{
	return atomic_load(&self->owner) == ((uint64_t)generation << 32 | thread_id());
}

static void *take_node(void *unused)
{
	struct w_node *node = w_node_get();

	(void)unused;
	atomic_store(&node->status, 1);
	return node;
}

static struct w_node *take_node_elsewhere(void)
{
	pthread_t thread;
	void *node;

	EXPECT(!pthread_create(&thread, NULL, take_node, NULL));
	EXPECT(!pthread_join(thread, &node));
	return node;
}

/*
 * Nodes of threads that do not exist in the child keep their state: locks may still refer to them.
 */
static void child_main(struct w_node *theirs, struct w_node *ours, uint32_t parents)
{
	struct w_self *self = w_self_or_null;

	limit();
	EXPECT(w_fork_generation() == parents + 1);
	EXPECT(w_process() == (uint32_t)getpid());
	EXPECT(w_self() == self && is_ours(self, parents + 1),
	       "the thread that forked has lost its record");
	for (self = atomic_load(&records); self; self = self->next)
		EXPECT(self == w_self() || is_vacant(atomic_load(&self->owner)),
		       "a thread that is not in the child has a record");
	start_and_join();
	EXPECT(take_node_elsewhere() != theirs, "a node in use was given out");
	EXPECT(atomic_load(&theirs->status) == 1 && atomic_load(&ours->status) == 1);
	_exit(0);
}

static void in_a_child(void)
{
	struct w_node *ours = take_node(NULL), *theirs = take_node_elsewhere();
	uint32_t generation = w_fork_generation(), count = atomic_load(&record_count);
	pid_t child;

	for (int way = 0; way < FORKS; way++) {
		child = fork_by(way);
		if (!child)
			child_main(theirs, ours, generation);
		reap(child);
	}
	EXPECT(w_fork_generation() == generation && count == atomic_load(&record_count));
	atomic_store(&ours->status, 0);
}

/* Each thread of the batch has a record of its own, distinct from the forking thread's. */
static void *attach_beside(void *forker)
{
	EXPECT(w_self() != forker, "two threads have one record");
	pthread_barrier_wait(&attached);
	return NULL;
}

/* The child's new threads begin its generation, before the forking thread uses its record. */
static void others_come_first(void)
{
	struct w_self *forker = w_self();
	pthread_t threads[BATCH];
	pid_t child = fork_by(FORK_RAW);

	if (!child) {
		limit();
		for (int round = 0; round < 3; round++) {
			for (int i = 0; i < BATCH; i++)
				EXPECT(!pthread_create(&threads[i], NULL, attach_beside, forker));
			for (int i = 0; i < BATCH; i++)
				EXPECT(!pthread_join(threads[i], NULL));
		}
		EXPECT(w_self() == forker);
		_exit(0);
	}
	reap(child);
}

/* ---- Guests ---- */

static struct w_self *guests;
static char guest_stack[65536] __attribute__((aligned(64)));

static int guest_main(void *unused)
{
	(void)unused;
	guests = w_self();
	EXPECT(w_self() == guests, "a guest has two records");
	EXPECT(atomic_load(&guests->owner) && guests->id);
	free_dead(0);
	EXPECT(w_self() == guests && atomic_load(&guests->owner),
	       "a living guest's record was freed");
	return 0;
}

static void *has_guests(void *unused)
{
	uint32_t count = 0;

	for (int i = 0; i < 100; i++) {
		reap(clone(guest_main, guest_stack + sizeof(guest_stack),
			   CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
		EXPECT(!w_self_or_null, "a vfork child has left its record behind");
		free_dead(0);
		EXPECT(is_vacant(atomic_load(&guests->owner)),
		       "a guest that has ended has a record");
		count = i ? count : atomic_load(&record_count);
	}
	EXPECT(count == atomic_load(&record_count), "guests leave their records behind");
	EXPECT(is_ours(w_self(), w_fork_generation()));
	reap(clone(guest_main, guest_stack + sizeof(guest_stack), CLONE_VM | CLONE_VFORK | SIGCHLD,
		   NULL));
	EXPECT(guests == w_self(),
	       "a guest does not use the record of the thread that it is a guest of");
	return unused;
}

/* A vfork child shares the thread-local storage of its sleeping parent thread. */
static void guests_leave_nothing(void)
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, has_guests, NULL));
	EXPECT(!pthread_join(thread, NULL));
}

static int begin_as_guest(void *unused)
{
	(void)unused;
	(void)w_fork_generation();
	return 0;
}

/* A vfork child is the first in a forked process to need the generation. */
static void guest_begins(void)
{
	pid_t child;

	(void)w_self();
	child = fork();
	if (!child) {
		reap(clone(begin_as_guest, guest_stack + sizeof(guest_stack),
			   CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
		EXPECT(w_process() == (uint32_t)getpid(), "the process has its guest's id");
		EXPECT((uint32_t)atomic_load(&w_self()->owner) == (uint32_t)getpid(),
		       "the thread that forked has a guest's record");
		_exit(0);
	}
	reap(child);
}

int main(void)
{
	w_process_watch();
	EXPECT(!pthread_barrier_init(&attached, NULL, BATCH));
	RUN(threads_by_the_thousand);
	RUN(no_record_without_id);
	RUN(interrupted);
	RUN(nested_nodes);
	RUN(in_a_child);
	RUN(others_come_first);
	RUN(guests_leave_nothing);
	RUN(guest_begins);
	return 0;
}
