/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Clients of the kernel's rwsem with ShflLock's readers-writer lock in a struct rw_semaphore
 * (kernel/overlay/task_rwsem.h), in the kernel's world (world/kernel/objects.h). The data are
 * plain: a reader beside a writer, or a writer beside another, is a race.
 */
#define CHECK_OBJECTS "../../tests/check/kernel.h"
#define W_TAIL_IN_LIST
/*
 * Times that lie further apart than SHFL_RW_HAND_OFF, in any order; one time where settings change.
 */
#define CHECK_NOW() \
	(KERNEL_CHANGES ? 0 : (u64)CHECK_DO("now", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0) << 40)
#define KERNEL_INTS 0
#define KERNEL_PLACES 0
#include "check.h"
#include "entry.h"
#include "kernel_tasks.h"

/* As in the kernel, with the part of debugging that is used. */
struct rw_semaphore {
	atomic_long_t count, owner;
	u32 osq, wait_lock;
	struct list_head wait_list;
	void *magic;
};

#define PID_MAX_LIMIT (4 * 1024 * 1024)

struct memory {
	struct rw_semaphore sem;
	uint32_t written; /* under the rwsem */
	W_ATOMIC(uint32_t) inside;
};

struct notes {
	struct task_notes tasks;
	uint32_t written, users;
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)
#define SHARED_BYTES sizeof(struct memory)

#define RWSEM_WARN_ON(condition) check_assert(!(condition))

/* Of stock's file: the owner is a thread's number + 1, and whether it reads. */
#define OWNER(reads) ((s64)(check_self() + 1) << 1 | (reads))
#define SET_OWNER(sem, value) WRITE_ONCE((sem)->owner.counter, value)
#define rwsem_set_owner(sem) (task_acquired(true), SET_OWNER(sem, OWNER(false)))
#define rwsem_set_reader_owned(sem) (task_acquired(true), SET_OWNER(sem, OWNER(true)))
#define rwsem_clear_owner(sem) SET_OWNER(sem, 0)
#define rwsem_clear_reader_owned(sem) ((void)(sem))

#include "../../kernel/overlay/task_rwsem.h"

/* ---- Threads ---- */

/* As down_read(), down_write() and the functions beside them. */
static int down(bool writes, unsigned int state)
{
	int error;

	task_acquires();
	error = enter(&M->sem, writes, state, 0);
	check_returned();
	task_acquired(!error);
	check_assert(!UNPREEMPTIBLE);
	return error;
}

static void up(bool writes)
{
	leave(&M->sem, writes);
	check_assert(!UNPREEMPTIBLE);
}

static void write_data(void)
{
	M->written++;
	(void)check_add(&NOTES->written, 1);
}

/* A writer finds itself; a reader any reader that has entered since the last writer left. */
static void check_owner(bool writes)
{
	const s64 owner = READ_ONCE(M->sem.owner.counter);

	check_assert(writes ? owner == OWNER(false) : owner & 1);
}

/* Another thread may write between both readings only by a fault, which is a race. */
static void read_data(void)
{
	uint32_t seen = M->written;

	(void)w_load_relaxed(&M->inside); /* a step at which other threads may run */
	check_assert(M->written == seen);
}

static void use_data(bool writes)
{
	check_owner(writes);
	if (writes)
		write_data();
	else
		read_data();
}

static void uses_once(bool writes)
{
	check_assert(!down(writes, TASK_UNINTERRUPTIBLE));
	use_data(writes);
	up(writes);
}

/* As downgrade_write(). */
static void downgrades(void)
{
	preempt_disable();
	downgrade(&M->sem);
	preempt_enable();
}

static void writers(uint32_t self)
{
	(void)self;
	uses_once(true);
	uses_once(true);
}

static void writer_and_readers(uint32_t self)
{
	uses_once(!self);
}

static void reader_and_writers(uint32_t self)
{
	uses_once(self);
}

static void twice(uint32_t self)
{
	writer_and_readers(self % 2);
	writer_and_readers(self % 2);
}

static void downgraded(uint32_t self)
{
	if (self) {
		writer_and_readers(self - 1);
		return;
	}
	check_assert(!down(true, TASK_UNINTERRUPTIBLE));
	write_data();
	downgrades();
	use_data(false);
	up(false);
}

/* Thread 0 remains inside as a reader until thread 1, which may have waited, is also inside. */
static void together(uint32_t self)
{
	check_assert(!down(!self, TASK_UNINTERRUPTIBLE));
	if (self) {
		w_store_relaxed(&M->inside, 1);
	} else {
		downgrades();
		(void)w_await_acquire(&M->inside, VAL);
	}
	up(false);
}

static void or_try(uint32_t self)
{
	const bool writes = self != 1;

	if (!self) {
		uses_once(true);
	} else if (enter_free(&M->sem, writes, true)) {
		use_data(writes);
		up(writes);
	}
}

/* Threads other than the first may be interrupted: a reader and, with three, a writer. */
static void interrupted(uint32_t self)
{
	const bool writes = self != 1;

	if (down(writes, self ? TASK_INTERRUPTIBLE : TASK_UNINTERRUPTIBLE)) {
		check_assert(self);
		(void)check_add(&TASK_NOTES->interrupted, 1);
		return;
	}
	use_data(writes);
	up(writes);
}

/* A writer, which closes the rwsem, may be interrupted while a reader is inside. */
static void interrupted_writer(uint32_t self)
{
	if (!self) {
		uses_once(false);
		uses_once(false);
	} else {
		interrupted(2);
	}
}

/* The last of @all users, which is alone inside, frees the rwsem right after it has left. */
static void uses_and_frees(bool writes, uint32_t all)
{
	uint32_t users;

	check_assert(!down(writes, TASK_UNINTERRUPTIBLE));
	use_data(writes);
	users = check_add(&NOTES->users, 1);
	up(writes);
	if (users == all)
		check_ended(&M->sem);
}

static void freed(uint32_t self)
{
	(void)self;
	uses_and_frees(true, 2);
}

static void freed_both(uint32_t self)
{
	uses_and_frees(!self, 2);
}

/* Only the writer is certain to be alone. */
static void freed_readers(uint32_t self)
{
	uses_and_frees(!self, self ? UINT32_MAX : 3);
}

/* ---- Starts and ends ---- */

static void prepare(void)
{
	check_queue(&shfl_of(&M->sem)->tail);
	w_init(&M->sem.wait_list.next, &M->sem.wait_list);
	M->sem.magic = &M->sem;
}

static void finish(void)
{
	check_assert(M->written == NOTES->written);
	finish_tasks();
}

/* Nobody is inside or waits: no writer is named, and to stock's code the list is empty. */
static void finish_free(void)
{
	const s64 owner = READ_ONCE(M->sem.owner.counter);

	finish();
	check_assert(!owner || owner & 1);
	check_assert(READ_ONCE(M->sem.wait_list.next) == &M->sem.wait_list);
	check_assert(shfl_rw_try(shfl_of(&M->sem), true, false));
}

const struct check_client check_clients[] = {
	ENTRY("writers/2", writers, 2, "park close", "0", prepare, finish_free, .bound = 3),
	ENTRY("readers/2", writer_and_readers, 2, "park", "0", prepare, finish_free),
	ENTRY("readers/3", writer_and_readers, 3, "park", "0", prepare, finish_free, .bound = 2),
	ENTRY("writers/3", reader_and_writers, 3, "close", "0", prepare, finish_free, .bound = 2),
	ENTRY("downgraded/3", downgraded, 3, "park", "0", prepare, finish_free, .bound = 2),
	ENTRY("downgraded/together/2", together, 2, "park", "0", prepare, finish_free),
	ENTRY("trylock/3", or_try, 3, NULL, "0", prepare, finish_free),
	ENTRY("interrupted/2", interrupted, 2, "abandon", "0 1", prepare, finish_free),
	ENTRY("interrupted/3", interrupted, 3, "abandon skip", "0 1 2", prepare, finish_free,
	      .bound = 2),
	ENTRY("interrupted/writer/2", interrupted_writer, 2, "abandon close", "0 1", prepare,
	      finish_free),
	ENTRY("interrupted/empty/2", interrupted, 2, "abandon", "0 1", prepare_empty, finish_free),
	ENTRY("freed/2", freed, 2, NULL, "0", prepare, finish),
	ENTRY("freed/both/2", freed_both, 2, "park", "0", prepare, finish),
	ENTRY("freed/readers/3", freed_readers, 3, "park", "0", prepare, finish, .bound = 2),
	ENTRY("order/2", writers, 2, "close", "0", prepare, finish_free, ORDERED),
	ENTRY("order/3", twice, 3, "close", "0", prepare, finish_free, ORDERED, .bound = 2),
	ENTRY("changed/readers/3", writer_and_readers, 3, "park", "0", prepare_changes, finish_free,
	      .bound = 2),
	ENTRY("changed/writers/3", reader_and_writers, 3, "close", "0", prepare_changes,
	      finish_free, .bound = 2),
	ENTRY("changed/twice/4", twice, 4, "shuffle", NULL, prepare_changes, finish_free,
	      .walks = 20000),
	ENTRY("changed/interrupted/3", interrupted, 3, "abandon", "0 1 2", prepare_changes,
	      finish_free, .bound = 2),
	ENTRY("changed/order/3", reader_and_writers, 3, "close", "0", prepare_changes, finish_free,
	      ORDERED, .bound = 2),
	{.name = NULL},
};
