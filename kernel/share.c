// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Measures how user-space tasks in cgroups share the time of one kernel lock, through debugfs's
 * poundlock_torture/share:
 *
 *	echo "begin TASKS MILLISECONDS LOCK" >share     LOCK: mutex, rwsem or spin
 *	echo "CLASS MICROSECONDS" >share                by each of the tasks
 *	cat share
 *
 * A task's write starts when all TASKS have written, and returns after MILLISECONDS: meanwhile it
 * takes the lock repeatedly and holds it for MICROSECONDS each time. Reading shows, for classes 0
 * and 1, the number of acquisitions and the time held, and class 0's share in 1,000.
 */
#include <linux/atomic.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "share.h"

#define CLASSES 2
#define LONGEST_LINE 64

static DEFINE_MUTEX(shared_mutex);
static DECLARE_RWSEM(shared_rwsem);
static DEFINE_SPINLOCK(shared_spin);

static void take_mutex(void)
{
	mutex_lock(&shared_mutex);
}

static void give_mutex(void)
{
	mutex_unlock(&shared_mutex);
}

static void take_rwsem(void)
{
	down_write(&shared_rwsem);
}

static void give_rwsem(void)
{
	up_write(&shared_rwsem);
}

static void take_spin(void) __acquires(&shared_spin)
{
	spin_lock(&shared_spin);
}

static void give_spin(void) __releases(&shared_spin)
{
	spin_unlock(&shared_spin);
}

static const struct shared {
	const char *name;
	void (*take)(void), (*give)(void);
} locks[] = {
	{"mutex", take_mutex, give_mutex},
	{"rwsem", take_rwsem, give_rwsem},
	{"spin", take_spin, give_spin},
};

static struct dentry *folder;
static struct {
	const struct shared *lock;
	unsigned int tasks, milliseconds;
	atomic_t come;
	u64 end; /* of the run, set by the last task to arrive; 0: tasks are missing */
	/* Written by the holder. */
	u64 held[CLASSES], taken[CLASSES];
} run;

/* Waits for all tasks. Returns the run's end, or 0 after a signal. */
static u64 wait_for_all(void)
{
	u64 end;

	if (atomic_inc_return(&run.come) == run.tasks)
		smp_store_release(&run.end, local_clock() + run.milliseconds * (u64)NSEC_PER_MSEC);
	while (!(end = smp_load_acquire(&run.end)) && !signal_pending(current))
		schedule_timeout_interruptible(1);
	return end;
}

static void hold(unsigned int class, u64 nanoseconds, u64 end)
{
	u64 begin = local_clock();

	while (local_clock() - begin < nanoseconds)
		cpu_relax();
	if (begin >= end)
		return;
	run.held[class] += local_clock() - begin;
	run.taken[class]++;
}

static int work(unsigned int class, unsigned int microseconds)
{
	u64 end = wait_for_all();

	if (!end)
		return -EINTR;
	while (local_clock() < end) {
		run.lock->take();
		hold(class, microseconds * (u64)NSEC_PER_USEC, end);
		run.lock->give();
		cond_resched();
	}
	return 0;
}

/* False if no lock has that @name. */
static bool begin(unsigned int tasks, unsigned int milliseconds, const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(locks) && strcmp(locks[i].name, name); i++)
		;
	if (i == ARRAY_SIZE(locks))
		return false;
	memset(&run, 0, sizeof(run));
	run.lock = &locks[i];
	run.tasks = tasks;
	run.milliseconds = milliseconds;
	return true;
}

static ssize_t share_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	char line[LONGEST_LINE], name[LONGEST_LINE];
	unsigned int first, second;
	ssize_t length = simple_write_to_buffer(line, sizeof(line) - 1, at, from, size);
	int error;

	if (length < 0)
		return length;
	line[length] = '\0';
	if (sscanf(line, "begin %u %u %s", &first, &second, name) == 3)
		return begin(first, second, name) ? size : -EINVAL;
	if (sscanf(line, "%u %u", &first, &second) != 2 || first >= CLASSES || !run.tasks)
		return -EINVAL;
	error = work(first, second);
	return error ? error : size;
}

static int share_show(struct seq_file *file, void *unused)
{
	u64 all = run.held[0] + run.held[1];

	seq_printf(file,
		   "tasks=%u ms=%u taken_0=%llu taken_1=%llu held_us_0=%llu held_us_1=%llu "
		   "share_per_1000=%llu\n",
		   run.tasks, run.milliseconds, run.taken[0], run.taken[1],
		   run.held[0] / NSEC_PER_USEC, run.held[1] / NSEC_PER_USEC,
		   all ? div64_u64(run.held[0] * 1000, all) : 0);
	return 0;
}

static int share_open(struct inode *inode, struct file *file)
{
	return single_open(file, share_show, NULL);
}

static const struct file_operations share_fops = {
	.owner = THIS_MODULE,
	.open = share_open,
	.read = seq_read,
	.write = share_write,
	.llseek = seq_lseek,
	.release = single_release,
};

void share_start(void)
{
	folder = debugfs_create_dir("poundlock_torture", NULL);
	debugfs_create_file("share", 0600, folder, NULL, &share_fops);
}

void share_end(void)
{
	debugfs_remove_recursive(folder);
}
