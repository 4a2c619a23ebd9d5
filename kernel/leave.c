// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Interrupted waits behind a holder that stays, and what they leave to others: leave.h. */
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "leave.h"
#include "poundlock.h"
#include "spin.h"

/* A thread that takes @lock once and releases it. */
struct waiter {
	struct pound_spin *lock;
	unsigned int state; /* in which it sleeps; a signal that this admits restarts its wait */
	bool reads;
	bool foreign; /* not root's */
	u32 waits;    /* begun */
	u32 interrupted;
	struct task_struct *task;
};

/* Threads that are interrupted repeatedly. */
#define LEAVERS 32u

struct leaving {
	struct pound_spin *lock;
	struct waiter head; /* stays at the head of the queue; a head that leaves frees its node */
	struct waiter leavers[LEAVERS];
	struct left left;
};

/* Returns 0, or -EINTR after a signal. */
static int take(const struct waiter *waiter)
{
	const struct spin_kind *kind = spin_kind_of(waiter->lock);
	void *lock = spin_bytes_of(waiter->lock);

	if (waiter->reads)
		return kind->read_state(lock, waiter->state);
	if (waiter->state != TASK_UNINTERRUPTIBLE)
		return kind->lock_state(lock, waiter->state);
	kind->lock(lock);
	return 0;
}

static void release(const struct waiter *waiter)
{
	const struct spin_kind *kind = spin_kind_of(waiter->lock);

	(waiter->reads ? kind->unread : kind->unlock)(spin_bytes_of(waiter->lock));
}

/* Makes the current thread another user's. Returns false if there is no memory. */
static bool become_foreign(void)
{
	struct cred *cred = prepare_creds();

	if (!cred)
		return false;
	cred->uid = make_kuid(&init_user_ns, 1000);
	return !commit_creds(cred);
}

static int work(void *argument)
{
	struct waiter *waiter = argument;

	if (waiter->foreign && !become_foreign())
		pr_warn("poundlock: no memory for credentials\n");
	allow_signal(SIGKILL);
	do {
		flush_signals(current);
		WRITE_ONCE(waiter->waits, waiter->waits + 1);
	} while (take(waiter));
	release(waiter);
	while (!kthread_should_stop())
		schedule_timeout_idle(1);
	return 0;
}

static bool start(struct waiter *waiter)
{
	waiter->task = kthread_run(work, waiter, "poundlock/wait");
	return !IS_ERR(waiter->task);
}

/* Waits until @waiter sleeps in a wait that was not interrupted yet. Returns the sleep's state. */
static unsigned int await_sleep(const struct waiter *waiter)
{
	unsigned int state = TASK_RUNNING;

	while (READ_ONCE(waiter->waits) == waiter->interrupted ||
	       !(state = READ_ONCE(waiter->task->__state)))
		schedule_timeout_uninterruptible(1);
	return state;
}

/* Ends @waiter, which has had the lock. Returns whether its pid is referred to after its end. */
static bool end(struct waiter *waiter)
{
	struct pid *pid = get_task_pid(waiter->task, PIDTYPE_PID);
	bool pinned;

	kthread_stop(waiter->task);
	while (!hlist_empty(&pid->tasks[PIDTYPE_PID]))
		schedule_timeout_uninterruptible(1);
	/* A grace period after the end of its task, the kernel drops its own reference. */
	rcu_barrier();
	pinned = refcount_read(&pid->count) > 1;
	put_pid(pid);
	return pinned;
}

/* How a thread waits for a lock. */
struct place {
	bool queued; /* in its queue */
	bool deaf;   /* until it has the lock, whatever signals come */
};

/* Lets @waiter wait for a lock of the kind @name, and returns how it does. */
static struct place try_wait(const char *name, struct waiter waiter)
{
	struct place place = {.deaf = true};

	waiter.lock = pound_spin_create(name, GFP_KERNEL);
	if (IS_ERR(waiter.lock))
		return place;
	pound_spin_lock(waiter.lock);
	if (start(&waiter)) {
		place.deaf = !(await_sleep(&waiter) & TASK_WAKEKILL);
		place.queued = spin_find(name)->has_queue(spin_bytes_of(waiter.lock));
	}
	pound_spin_unlock(waiter.lock);
	if (!IS_ERR(waiter.task))
		(void)end(&waiter);
	pound_spin_destroy(waiter.lock);
	return place;
}

/* Counts the placeless and the deaf waits for a lock of the kind @name. */
static void count_waits(const char *name, struct left *left)
{
	const struct waiter waiters[] = {
		{.state = TASK_KILLABLE},
		{.state = TASK_UNINTERRUPTIBLE},
		{.state = TASK_KILLABLE, .foreign = true},
		{.state = TASK_KILLABLE, .reads = true},
		{.state = TASK_KILLABLE, .reads = true, .foreign = true},
	};
	struct place place;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(waiters); i++) {
		if (waiters[i].reads && !spin_find(name)->read)
			continue;
		place = try_wait(name, waiters[i]);
		left->placeless += !place.queued;
		left->deaf += waiters[i].foreign && place.deaf;
	}
}

/* Interrupts the wait of each leaver whose sleep a signal can end. Returns how many there were. */
static u32 interrupt(struct leaving *leaving)
{
	struct waiter *waiter = leaving->leavers;
	u32 interrupted = 0;

	for (; waiter < leaving->leavers + LEAVERS; waiter++) {
		if (!(await_sleep(waiter) & TASK_WAKEKILL))
			continue;
		waiter->interrupted++;
		send_sig(SIGKILL, waiter->task, 1);
		interrupted++;
	}
	return interrupted;
}

/* Starts the threads that wait for @leaving's lock, which the caller holds. */
static bool start_all(struct leaving *leaving)
{
	u32 i;

	leaving->head = (struct waiter){.lock = leaving->lock, .state = TASK_UNINTERRUPTIBLE};
	if (!start(&leaving->head))
		return false;
	(void)await_sleep(&leaving->head);
	for (i = 0; i < LEAVERS; i++) {
		leaving->leavers[i] =
			(struct waiter){.lock = leaving->lock, .state = TASK_KILLABLE};
		if (!start(&leaving->leavers[i]))
			return false;
	}
	return true;
}

struct leaving *leave_begin(const char *name, u32 waits)
{
	struct leaving *leaving = kzalloc(sizeof(*leaving), GFP_KERNEL);
	u32 interrupted;

	if (!leaving)
		return NULL;
	leaving->lock = pound_spin_create(name, GFP_KERNEL);
	if (IS_ERR(leaving->lock)) {
		kfree(leaving);
		return NULL;
	}
	pound_spin_lock(leaving->lock);
	if (!start_all(leaving)) {
		(void)leave_end(leaving);
		return NULL;
	}
	do {
		interrupted = interrupt(leaving);
		leaving->left.waits += interrupted;
	} while (interrupted && leaving->left.waits < waits);
	count_waits(name, &leaving->left);
	return leaving;
}

struct left leave_end(struct leaving *leaving)
{
	struct left left = leaving->left;
	u32 i;

	pound_spin_unlock(leaving->lock);
	for (i = 0; i < LEAVERS; i++)
		if (!IS_ERR_OR_NULL(leaving->leavers[i].task))
			left.pinned += end(&leaving->leavers[i]);
	if (!IS_ERR_OR_NULL(leaving->head.task))
		left.pinned += end(&leaving->head);
	pound_spin_destroy(leaving->lock);
	kfree(leaving);
	return left;
}
