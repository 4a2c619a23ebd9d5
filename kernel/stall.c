// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Locks whose holder waits for an answer from user space, as a file system of FUSE does, through
 * debugfs's poundlock_stall/ask:
 *
 *	echo "hold N LOCK" >ask      takes the lock, and returns when it is answered, or killed
 *	echo "wait N LOCK" >ask      takes the lock once; a fatal signal ends the wait
 *	echo "queue N LOCK" >ask     the same; no signal ends the wait
 *	echo "answer N LOCK" >ask    lets the holder go on
 *
 * LOCK is `mutex`; or `folder`, the rwsem of the inode of the folder poundlock_stall/N, which
 * readers take to list it. N is 0 or 1.
 */
#include <linux/dcache.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/wait.h>

#include "stall.h"

#define EACH 2
#define LONGEST_LINE 64

static DEFINE_MUTEX(first_mutex);
static DEFINE_MUTEX(second_mutex);
static DECLARE_WAIT_QUEUE_HEAD(answers);
static struct dentry *folder, *folders[EACH];
static bool answered[2 * EACH];

static struct mutex *mutex_of(unsigned int lock)
{
	return lock ? &second_mutex : &first_mutex;
}

static int take(unsigned int lock, bool is_folder, bool killable)
{
	struct rw_semaphore *sem = &d_inode(folders[lock])->i_rwsem;

	if (killable)
		return is_folder ? down_write_killable(sem) : mutex_lock_killable(mutex_of(lock));
	if (is_folder)
		down_write(sem);
	else
		mutex_lock(mutex_of(lock));
	return 0;
}

static void give(unsigned int lock, bool is_folder)
{
	if (is_folder)
		inode_unlock(d_inode(folders[lock]));
	else
		mutex_unlock(mutex_of(lock));
}

static int hold(unsigned int lock, bool is_folder)
{
	bool *answer = &answered[lock + EACH * is_folder];
	int error;

	WRITE_ONCE(*answer, false);
	(void)take(lock, is_folder, false);
	error = wait_event_killable(answers, READ_ONCE(*answer));
	give(lock, is_folder);
	return error;
}

static int queue(unsigned int lock, bool is_folder, bool killable)
{
	int error = take(lock, is_folder, killable);

	if (!error)
		give(lock, is_folder);
	return error;
}

static ssize_t ask_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	char line[LONGEST_LINE], verb[LONGEST_LINE], name[LONGEST_LINE];
	ssize_t length = simple_write_to_buffer(line, sizeof(line) - 1, at, from, size);
	unsigned int lock;
	bool is_folder;
	int error = 0;

	if (length < 0)
		return length;
	line[length] = '\0';
	if (sscanf(line, "%s %u %s", verb, &lock, name) != 3 || lock >= EACH)
		return -EINVAL;
	is_folder = !strcmp(name, "folder");
	if (!is_folder && strcmp(name, "mutex"))
		return -EINVAL;
	if (!strcmp(verb, "hold")) {
		error = hold(lock, is_folder);
	} else if (!strcmp(verb, "wait") || !strcmp(verb, "queue")) {
		error = queue(lock, is_folder, verb[0] == 'w');
	} else if (!strcmp(verb, "answer")) {
		WRITE_ONCE(answered[lock + EACH * is_folder], true);
		wake_up_all(&answers);
	} else {
		error = -EINVAL;
	}
	return error ? error : size;
}

static const struct file_operations ask_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = ask_write,
};

void stall_start(void)
{
	folder = debugfs_create_dir("poundlock_stall", NULL);
	folders[0] = debugfs_create_dir("0", folder);
	folders[1] = debugfs_create_dir("1", folder);
	if (!IS_ERR_OR_NULL(folders[0]) && !IS_ERR_OR_NULL(folders[1]))
		debugfs_create_file("ask", 0600, folder, NULL, &ask_fops);
}

void stall_end(void)
{
	debugfs_remove_recursive(folder);
}
