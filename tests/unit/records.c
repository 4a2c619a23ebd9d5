/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads' records (thread.c, included for its counts): threads by the thousand share few, nested locks get nodes of
 * their own, a child has its parent's records but not its threads.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "../../world/user/thread.c"
#include "unit.h"

#define BATCH 40
#define THREADS 4000
#define NESTED 100
/* The dead ones are looked for when there are twice the living and 32; then each that begins may make a chunk. */
#define MOST (2 * (BATCH + 1) + 32 + BATCH * (CHUNK / sizeof(struct w_self)))

static pthread_barrier_t attached;

/* The record is still its thread's own when all of the batch have theirs. */
static void *attach(void *id)
{
	EXPECT(atomic_load(&w_self()->tid) == thread_id());
	pthread_barrier_wait(&attached);
	EXPECT(atomic_load(&w_self()->tid) == thread_id(), "two threads have one record");
	*(uint32_t *)id = thread_id();
	return NULL;
}

/* Joined, and gone for the kernel too: on a busy machine it lets go of threads much later. */
static void start_and_join(void)
{
	pthread_t threads[BATCH];
	uint32_t ids[BATCH];

	for (int i = 0; i < BATCH; i++)
		EXPECT(!pthread_create(&threads[i], NULL, attach, &ids[i]));
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
	EXPECT(atomic_load(&record_count) < MOST, "%u records for %d threads at once", atomic_load(&record_count),
	       BATCH);
}

/* A node is taken by giving it a status, and free again with the status 0, in any order; then no more memory is needed. */
static void nested_nodes(void)
{
	struct w_node *nodes[NESTED];
	struct w_more_nodes *first = NULL;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < NESTED; i++) {
			nodes[i] = w_node_get();
			EXPECT(!atomic_load(&nodes[i]->status), "a node in use was given out");
			EXPECT((uintptr_t)nodes[i] % 64 == 0);
			atomic_store(&nodes[i]->status, 1);
		}
		EXPECT(!round || atomic_load(&w_self()->more) == first,
		       "nodes that were given back are not used again");
		first = atomic_load(&w_self()->more);
		for (int i = 0; i < NESTED; i++)
			atomic_store(&nodes[i * 37 % NESTED]->status, 0);
	}
}

/* The nodes of threads that are not in the child stay as they are: locks of theirs may still lead to them. */
static void *take_node(void *unused)
{
	struct w_node *node = w_node_get();

	(void)unused;
	atomic_store(&node->status, 1);
	return node;
}

static void child_main(struct w_node *theirs, struct w_node *ours)
{
	uint32_t generation = w_fork_generation();

	w_after_fork_in_child();
	EXPECT(w_fork_generation() == generation + 1);
	EXPECT(atomic_load(&theirs->status) == 1 && atomic_load(&ours->status) == 1);
	EXPECT(atomic_load(&w_self()->tid) == thread_id(), "the child's record has its parent's id");
	for (struct w_self *self = atomic_load(&records); self; self = self->next)
		EXPECT(self == w_self() || !atomic_load(&self->tid), "a thread that is not in the child has a record");
	start_and_join();
	_exit(0);
}

static void in_a_child(void)
{
	struct w_node *ours = take_node(NULL);
	pthread_t thread;
	void *theirs;
	int status;
	pid_t child;

	EXPECT(!pthread_create(&thread, NULL, take_node, NULL));
	EXPECT(!pthread_join(thread, &theirs));
	child = fork();
	if (!child)
		child_main(theirs, ours);
	EXPECT(child > 0 && waitpid(child, &status, 0) == child);
	EXPECT(WIFEXITED(status) && !WEXITSTATUS(status), "the child failed");
}

int main(void)
{
	EXPECT(!pthread_barrier_init(&attached, NULL, BATCH));
	RUN(threads_by_the_thousand);
	RUN(nested_nodes);
	RUN(in_a_child);
	return 0;
}
