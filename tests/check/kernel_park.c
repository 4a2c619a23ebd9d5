/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Clients of the kernel's sleeping (world/kernel/sleepers.h) on a model of the scheduler, by a lock
 * and a semaphore whose waiters sleep: core/ttas.h wakes one, core/sema.h one or all. A wake-up may
 * come before, during or after a sleep, together with a signal, or after the memory of the lock was
 * freed. All addresses are in one list.
 *
 * As in the kernel, a task sleeps from schedule() on, unless its state is running again. A wake-up
 * sets the state; a signal ends an interruptible sleep, and is the deadline.
 */
#define CHECK_OBJECTS "../../tests/check/kernel.h"
#define W_TAIL_IN_LIST
#define KERNEL_INTS 0
#define KERNEL_PLACES 0
#include "check.h"
#include "entry.h"
#include "kernel_signal.h"

#undef w_park
#undef w_unpark
#undef w_unpark_all
void w_park_start(void);
void w_park(W_ATOMIC(uint32_t) *p, uint32_t expected, const struct w_deadline *deadline);
void w_unpark(W_ATOMIC(uint32_t) *p);
void w_unpark_all(W_ATOMIC(uint32_t) *p);
void *w_node_claim(void);

#include "sema.h"
#include "ttas.h"

#define BUCKET_BITS 0
#define CHUNK_NODES 2u
static u32 most_chunks(void);
#define MOST_CHUNKS most_chunks()
#define TASK_RUNNING 0u

#include "../../world/kernel/nodes.h"

struct bucket {
	raw_spinlock_t lock;
	struct list_head sleepers;
};

struct task_struct {
	u32 state;
};

struct memory {
	struct bucket buckets[1 << BUCKET_BITS];
	struct node_list nodes;
	struct node_chunk chunks[3]; /* the first one is in the list from the start */
	u32 chunks_used;             /* with the list locked */
	struct task_struct tasks[MOST_TASKS];
	struct ttas lock;
	struct sema sema;
	u32 entered; /* under the lock */
	u32 data;    /* plain */
	u32 gone;    /* thread 1 has given up */
	u32 words[2];
};

struct notes {
	uint32_t entered, interrupted, users, sleeps;
	bool interruptible[MOST_TASKS]; /* the state of its task, by thread */
	uint32_t other;                 /* the thread of another user; 0: none */
	uint32_t most_chunks, memory;   /* of a user; of all */
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)
#define SHARED_BYTES sizeof(struct memory)
#define SELF check_self()

/* ---- The scheduler ---- */

#define buckets M->buckets
#define get_current() (&M->tasks[SELF])
#define hash_ptr(address, bits) ((void)(address), 0)
#define MAX_SCHEDULE_TIMEOUT 0

static u64 node_user(void)
{
	return SELF && SELF == NOTES->other;
}

static u32 most_chunks(void)
{
	return NOTES->most_chunks;
}

/* All users collide. */
static struct node_list *node_list_of(u64 user)
{
	return &M->nodes;
}

static struct node_chunk *new_chunk(void)
{
	return M->chunks_used < NOTES->memory ? &M->chunks[M->chunks_used++] : NULL;
}

static void nodes_start(void)
{
	chunk_add(&M->nodes, &M->chunks[M->chunks_used++], NOBODY);
}

static void prepare_to_sleep(unsigned int state)
{
	NOTES->interruptible[SELF] = state != TASK_UNINTERRUPTIBLE;
	WRITE_ONCE(get_current()->state, state);
	smp_mb();
}

static void sleep_for(long ticks)
{
	static const struct w_deadline signal;
	struct task_struct *task = get_current();

	(void)ticks;
	(void)check_add(&NOTES->sleeps, 1);
	(void)CHECK_WAIT_SITE("task->state", "schedule", CHECK_ACQUIRE, &task->state,
			      VAL == TASK_RUNNING, W_SPIN,
			      NOTES->interruptible[SELF] ? &signal : NULL);
	(void)xchg(&task->state, TASK_RUNNING);
}

static void wake_up_process(struct task_struct *task)
{
	smp_mb();
	(void)xchg(&task->state, TASK_RUNNING);
}

#include "../../world/kernel/sleepers.h"

/* ---- Threads ---- */

static const struct ttas_policy policy = {.wait = WAIT_PARK};

static void enter(void)
{
	M->entered++;
	(void)check_add(&NOTES->entered, 1);
}

/* Not inlined: other threads access its frame while it sleeps. */
static __attribute__((__noinline__)) bool acquire_in_frame(const struct w_deadline *signal)
{
	return ttas_acquire(&M->lock, policy, signal);
}

static bool acquire(const struct w_deadline *signal)
{
	bool acquired = acquire_in_frame(signal);

	check_returned();
	return acquired;
}

static void once(uint32_t self)
{
	(void)self;
	check_assert(acquire(NULL));
	enter();
	check_assert(ttas_release(&M->lock, policy));
}

static void twice(uint32_t self)
{
	once(self);
	once(self);
}

/* Threads other than the first may be interrupted. */
static void interrupted(uint32_t self)
{
	static const struct w_deadline signal = {.state = TASK_INTERRUPTIBLE};

	if (!self) {
		once(self);
	} else if (acquire(&signal)) {
		enter();
		check_assert(ttas_release(&M->lock, policy));
	} else {
		(void)check_add(&NOTES->interrupted, 1);
	}
}

/* Thread 0 holds the lock until thread 1 has given up. */
static void outlasted(uint32_t self)
{
	static const struct w_deadline signal = {.state = TASK_INTERRUPTIBLE};

	if (self) {
		check_assert(!acquire(&signal));
		WRITE_ONCE(M->gone, 1);
	} else {
		(void)w_await_acquire(&M->gone, VAL);
		check_assert(ttas_release(&M->lock, policy));
	}
}

/* The last user frees the lock right after its unlock. The other may wake by the address. */
static void freed(uint32_t self)
{
	bool last;

	(void)self;
	check_assert(acquire(NULL));
	enter();
	last = M->entered == NOTES->users;
	check_assert(ttas_release(&M->lock, policy));
	if (last)
		check_ended(&M->lock);
}

/* Thread 0 lets all others in, by one post that wakes all. */
static void post_to_all(uint32_t self)
{
	if (!self) {
		M->data = 1;
		check_assert(sema_post(&M->sema, 2));
		return;
	}
	if (!sema_try(&M->sema))
		check_assert(sema_wait_slow(&M->sema, NULL));
	check_assert(M->data == 1);
}

static void set_and_wake(u32 *word)
{
	w_store_release(word, 1);
	w_unpark(word);
}

/* The others sleep at two addresses, of which thread 0 wakes the one and then the other. */
static void two_addresses(uint32_t self)
{
	if (!self) {
		set_and_wake(&M->words[0]);
		set_and_wake(&M->words[1]);
		return;
	}
	while (!w_load_acquire(&M->words[self - 1]))
		w_park(&M->words[self - 1], 0, NULL);
}

/* Each uses a node of its user's alone. */
static void claim(uint32_t self)
{
	struct w_node *node = w_node_claim();
	const struct node_chunk *chunk = M->chunks;

	(void)self;
	if (!node) {
		(void)check_add(&NOTES->interrupted, 1);
		return;
	}
	while (node < chunk->nodes || node >= chunk->nodes + CHUNK_NODES)
		chunk++;
	check_assert(READ_ONCE(chunk->user) == node_user());
	node->rest[0] = (char)SELF;
	check_assert(node->rest[0] == (char)SELF);
	pool_free(node);
}

static void claim_twice(uint32_t self)
{
	claim(self);
	claim(self);
}

/* ---- Starts and ends ---- */

static void prepare(void)
{
	w_park_start();
	NOTES->users = 2;
	NOTES->most_chunks = 1;
	NOTES->memory = 3;
}

static void prepare_users(void)
{
	prepare();
	NOTES->other = 2;
}

static void prepare_two_users(void)
{
	prepare();
	NOTES->other = 1;
}

/* Users take over each other's chunk. */
static void prepare_poor(void)
{
	prepare_two_users();
	NOTES->memory = 1;
}

static void prepare_rich(void)
{
	prepare();
	NOTES->most_chunks = 2;
}

static void prepare_held(void)
{
	prepare();
	w_init(&M->lock.word, TTAS_HELD);
}

/* Nobody is in the list. A sleep is met in some execution. */
static void finish(void)
{
	struct list_head *sleepers = &buckets[0].sleepers;

	check_assert(M->entered == NOTES->entered);
	check_assert(sleepers->next == sleepers && sleepers->prev == sleepers);
	check_outcome(0, NOTES->sleeps != 0);
	check_outcome(1, NOTES->interrupted);
}

const struct check_client check_clients[] = {
	ENTRY("2x1", once, 2, "unpark", "00 10", prepare, finish),
	ENTRY("2x2", twice, 2, "unpark", "00 10", prepare, finish),
	ENTRY("3x1", once, 3, "unpark", "00 10", prepare, finish),
	ENTRY("interrupted/2", interrupted, 2, "abandon", "00 01 10 11", prepare, finish),
	ENTRY("interrupted/3", interrupted, 3, "abandon", "00 01 02 10 11 12", prepare, finish,
	      .bound = 3),
	ENTRY("outlasted/2", outlasted, 2, "abandon", "00 10", prepare_held, finish),
	ENTRY("two/3", two_addresses, 3, "unpark", "00 10", prepare, finish),
	ENTRY("freed/2", freed, 2, "unpark", "00 10", prepare, finish),
	ENTRY("all/3", post_to_all, 3, "unpark", "00 10", prepare, finish, .bound = 2),
	ENTRY("pool/2", claim, 2, NULL, "00", prepare, finish),
	ENTRY("pool/3", claim, 3, NULL, "00 01", prepare, finish),
	ENTRY("pool/rich/3", claim, 3, NULL, "00", prepare_rich, finish),
	ENTRY("pool/users/2", claim_twice, 2, NULL, "00", prepare_two_users, finish),
	ENTRY("pool/users/3", claim, 3, NULL, "00", prepare_users, finish),
	ENTRY("pool/poor/2", claim_twice, 2, NULL, "00 01 02", prepare_poor, finish),
	ENTRY("pool/poor/3", claim, 3, NULL, "00 01 02", prepare_poor, finish),
	{.name = NULL},
};
