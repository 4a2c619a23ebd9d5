/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Sleeping, for locks of tasks. Sleepers are in lists by the address on which they sleep. A sleeper
 * compares the value with its list locked, and a waker locks the list after it has changed the
 * value: either the sleeper sees the change, or the waker finds the sleeper. Locks may be released
 * in interrupt handlers.
 *
 * Included by park.c, and by the model checker's clients (tests/check/kernel_park.c). The including
 * file defines struct bucket and buckets[], BUCKET_BITS, nodes_start(), prepare_to_sleep() and
 * sleep_for().
 */

/* On its task's stack; in a list until it is woken. */
struct sleeper {
	struct list_head link;
	const void *address;
	struct task_struct *task;
};

void w_park_start(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(buckets); i++) {
		raw_spin_lock_init(&buckets[i].lock);
		INIT_LIST_HEAD(&buckets[i].sleepers);
	}
	nodes_start();
}

static struct bucket *bucket_of(const void *address)
{
	return &buckets[hash_ptr(address, BUCKET_BITS)];
}

static unsigned int state_of(const struct w_deadline *deadline)
{
	return deadline ? deadline->state : TASK_UNINTERRUPTIBLE;
}

void __sched w_park(W_ATOMIC(uint32_t) *p, uint32_t expected, const struct w_deadline *deadline)
{
	struct bucket *bucket = bucket_of(p);
	struct sleeper sleeper = {.address = p, .task = get_current()};
	unsigned long flags;

	raw_spin_lock_irqsave(&bucket->lock, flags);
	if (READ_ONCE(*p) != expected) {
		raw_spin_unlock_irqrestore(&bucket->lock, flags);
		return;
	}
	list_add_tail(&sleeper.link, &bucket->sleepers);
	/* Before the list is unlocked, so that a waker that finds us makes schedule() return. */
	prepare_to_sleep(state_of(deadline));
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	sleep_for(MAX_SCHEDULE_TIMEOUT);
	raw_spin_lock_irqsave(&bucket->lock, flags);
	list_del_init(&sleeper.link);
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
}

/*
 * Asserts that the caller is not preempted between a release and the wake-up: the lock would be
 * idle meanwhile. The module's locks are preemptible, since they wait for tasks of their CPU.
 */
static void expect_no_preemption(void)
{
#ifndef MODULE
	lockdep_assert_preemption_disabled();
#endif
}

/* Wakes one sleeper on @address. A woken sleeper is out of the list, and may vanish at once. */
static bool wake_one(const void *address)
{
	struct bucket *bucket = bucket_of(address);
	struct task_struct *task = NULL;
	struct sleeper *sleeper;
	unsigned long flags;

	raw_spin_lock_irqsave(&bucket->lock, flags);
	list_for_each_entry(sleeper, &bucket->sleepers, link)
	{
		if (sleeper->address != address)
			continue;
		list_del_init(&sleeper->link);
		task = get_task_struct(sleeper->task);
		break;
	}
	raw_spin_unlock_irqrestore(&bucket->lock, flags);
	if (!task)
		return false;
	wake_up_process(task);
	put_task_struct(task);
	return true;
}

void w_unpark(W_ATOMIC(uint32_t) *p)
{
	w_event(unpark);
	expect_no_preemption();
	(void)wake_one(p);
}

void w_unpark_all(W_ATOMIC(uint32_t) *p)
{
	w_event(unpark);
	expect_no_preemption();
	while (wake_one(p))
		;
}
