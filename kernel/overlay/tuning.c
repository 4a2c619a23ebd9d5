// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The settings of the kernel's ShflLocks (tuning.h), as boot parameters and files of debugfs's
 * poundlock/; included by qspinlock.c. KIND is spin, mutex or rwsem:
 *
 *	KIND_policy    the order of the waiters: fifo, numa, route or group (core/policy/), or a
 *	               loaded one (bpf_policy.c)
 *	KIND_batch     the bound on bypasses, from 1 to 1,000,000
 *	locks          settings of single locks, one line each: ADDRESS [policy=NAME] [batch=N]
 *
 * A line that is written to `locks` replaces the lock's settings. What it does not name is that of
 * the lock's kind. "ADDRESS remove" removes them. `locks` has no boot parameter.
 *
 * Errors of a write, each with a line in the log: EINVAL for an invalid line or value, ENOSPC for
 * one lock more than TUNED_MOST, ENOENT for the removal of a lock without settings. Lines before
 * the refused one have been obeyed.
 */
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "choice.h"
#include "own_policy.h"
#include "tuning.h"

#include "part/shuffle.h"

#define BATCH_MOST 1000000u

static_assert(TUNED_MOST < TUNED_PLACES, "a search ends at a free place");
static_assert(BATCH_MOST < 1u << (32 - TUNING_BATCH_SHIFT));

/* numa and SHFL_MAX_BATCH */
#define BY_DEFAULT ((u32)(POLICY_NUMA + 1) | (u32)SHFL_MAX_BATCH << TUNING_BATCH_SHIFT)

u32 tunings[TUNED_KINDS] __read_mostly = {BY_DEFAULT, BY_DEFAULT, BY_DEFAULT};
struct tuned_table tuned_locks;

/* Changes of `tunings`, `list` and `listed`. */
static DEFINE_MUTEX(tuning);

/* The locks of the table. */
static struct tuned_lock list[TUNED_MOST];
static u32 listed;

/* ---- Values ---- */

/* Without those whose holders measure their holds, which the kernel's fast paths do not. */
static const char *const policies[] = {
	[POLICY_FIFO] = "fifo",
	[POLICY_NUMA] = "numa",
	[POLICY_ROUTE] = "route",
	[POLICY_GROUP] = "group",
};

/* The bits of the policy @name; 0 if there is none. */
static u32 policy_bits_of(const char *name)
{
	int found = match_string(policies, ARRAY_SIZE(policies), name);

#ifdef OWN_POLICIES
	if (found < 0 && own_policy_number(name) >= 0)
		found = POLICY_OWN + own_policy_number(name);
#endif
	return found < 0 ? 0 : tuning_policy_bits((enum policy)found);
}

static const char *policy_name(enum policy policy)
{
#ifdef OWN_POLICIES
	if (policy >= POLICY_OWN)
		return own_policy_name(policy - POLICY_OWN);
#endif
	return policies[policy];
}

/* The bits of the batch @text; 0 if it is none. */
static u32 batch_bits_of(const char *text)
{
	u32 batch;

	return kstrtou32(text, 10, &batch) || batch > BATCH_MOST ? 0 : tuning_batch_bits(batch);
}

/* Reports that @what, as the value of @name, is refused. */
static int refuse(const char *name, const char *what, int error, const char *why)
{
	pr_err("poundlock: %s: '%s': %s\n", name, what, why);
	return error;
}

#define NO_POLICY "there is no such policy (fifo, numa, route, group, or a loaded one)"
#define NO_BATCH "a batch is from 1 to 1000000"

/* ---- Settings of a kind ---- */

/* A setting of a kind: its file and boot parameter. */
struct knob {
	const char *name;
	enum tuned kind;
	bool is_policy;
};

static int knob_set(const struct knob *knob, const char *text)
{
	const u32 mask = knob->is_policy ? TUNING_POLICY_MASK : ~TUNING_POLICY_MASK;
	u32 bits = knob->is_policy ? policy_bits_of(text) : batch_bits_of(text);

	if (!bits)
		return refuse(knob->name, text, -EINVAL, knob->is_policy ? NO_POLICY : NO_BATCH);
	WRITE_ONCE(tunings[knob->kind], (tunings[knob->kind] & ~mask) | bits);
	return 0;
}

static ssize_t knob_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	const struct knob *knob = file_inode(file)->i_private;
	char buffer[LONGEST_NAME], *text;
	int error = choice_read(buffer, from, size, &text);

	if (error == -EINVAL)
		return refuse(knob->name, "...", error, knob->is_policy ? NO_POLICY : NO_BATCH);
	if (error)
		return error;
	mutex_lock(&tuning);
	error = knob_set(knob, text);
	mutex_unlock(&tuning);
	return error ? error : (ssize_t)size;
}

static int knob_show(struct seq_file *file, void *unused)
{
	const struct knob *knob = file->private;
	struct tuning now = tuning_from(0, READ_ONCE(tunings[knob->kind]));

	if (knob->is_policy)
		seq_printf(file, "%s\n", policy_name(now.policy));
	else
		seq_printf(file, "%u\n", now.batch);
	return 0;
}

static int knob_open(struct inode *inode, struct file *file)
{
	return single_open(file, knob_show, inode->i_private);
}

static const struct file_operations knob_fops = {
	.owner = THIS_MODULE,
	.open = knob_open,
	.read = seq_read,
	.write = knob_write,
	.llseek = seq_lseek,
	.release = single_release,
};

#define KNOBS_OF(DO, kind, tuned) DO(kind##_policy, tuned, true) DO(kind##_batch, tuned, false)
#define KNOBS(DO)                        \
	KNOBS_OF(DO, spin, TUNED_SPIN)   \
	KNOBS_OF(DO, mutex, TUNED_MUTEX) \
	KNOBS_OF(DO, rwsem, TUNED_RWSEM)

#define KNOB(name, kind, is_policy)                                      \
	static const struct knob knob_##name = {#name, kind, is_policy}; \
	static int __init choose_##name(char *text)                      \
	{                                                                \
		(void)knob_set(&knob_##name, text ? text : "");          \
		return 0;                                                \
	}                                                                \
	early_param("poundlock." #name, choose_##name);
KNOBS(KNOB)

/* ---- Settings of single locks ---- */

#define LONGEST_LINE 80
#define MOST_BYTES (TUNED_MOST * LONGEST_LINE)

/* The index of @address in `list`; `listed` if it is not there. */
static u32 find_listed(unsigned long address)
{
	u32 i;

	for (i = 0; i < listed && list[i].address != address; i++)
		;
	return i;
}

/* Gives the lock at @address the settings @word. Returns an error with *@why. */
static int list_lock(unsigned long address, u32 word, const char **why)
{
	u32 i = find_listed(address);

	if (i == TUNED_MOST) {
		*why = "256 other locks have settings of their own";
		return -ENOSPC;
	}
	list[i] = (struct tuned_lock){address, word};
	if (i == listed)
		listed++;
	tuned_publish(&tuned_locks, list, listed);
	return 0;
}

/* Removes the settings of the lock at @address. Returns an error with *@why. */
static int unlist_lock(unsigned long address, const char **why)
{
	u32 i = find_listed(address);

	if (i == listed) {
		*why = "this lock has no settings of its own";
		return -ENOENT;
	}
	list[i] = list[--listed];
	tuned_publish(&tuned_locks, list, listed);
	return 0;
}

/* Adds the setting @text to *@word. NULL, or why not. */
static const char *add_setting(char *text, u32 *word)
{
	const char *key = strsep(&text, "=");
	bool is_policy = !strcmp(key, "policy");
	u32 mask = is_policy ? TUNING_POLICY_MASK : ~TUNING_POLICY_MASK, bits;

	if (!text || (!is_policy && strcmp(key, "batch")))
		return "the settings are policy=NAME and batch=N, and the word remove";
	if (*word & mask)
		return "a setting is there twice";
	bits = is_policy ? policy_bits_of(text) : batch_bits_of(text);
	*word |= bits;
	return bits ? NULL : is_policy ? NO_POLICY : NO_BATCH;
}

/* Obeys @line, which it cuts up. Returns an error with *@why. */
static int obey(char *line, const char **why)
{
	char *text = strsep(&line, " \t");
	unsigned long address;
	u32 word = 0;

	*why = "the first word is no address of a lock in the kernel";
	if (kstrtoul(text, 16, &address) || address < TASK_SIZE_MAX || address % sizeof(u32))
		return -EINVAL;
	line = line ? skip_spaces(line) : "";
	if (!strcmp(line, "remove"))
		return unlist_lock(address, why);
	*why = "a setting is missing: policy=NAME, batch=N, or remove";
	if (!*line)
		return -EINVAL;
	while ((text = strsep(&line, " \t"))) {
		*why = *text ? add_setting(text, &word) : NULL;
		if (*why)
			return -EINVAL;
	}
	return list_lock(address, word, why);
}

/* Obeys @line, and reports it if that fails. */
static int obey_line(char *line)
{
	char cut[LONGEST_LINE];
	const char *why = "a line has less than 80 characters";
	int error = strscpy(cut, line, sizeof(cut)) < 0 ? -EINVAL : obey(cut, &why);

	return error ? refuse("locks", line, error, why) : 0;
}

static ssize_t locks_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	char *text, *rest, *line;
	int error = 0;

	if (size > MOST_BYTES)
		return refuse("locks", "...", -EINVAL, "a write is longer than the table");
	text = memdup_user_nul(from, size);
	if (IS_ERR(text))
		return PTR_ERR(text);
	mutex_lock(&tuning);
	rest = text;
	while (!error && (line = strsep(&rest, "\n"))) {
		line = strim(line);
		if (*line)
			error = obey_line(line);
	}
	mutex_unlock(&tuning);
	kfree(text);
	return error ? error : (ssize_t)size;
}

static int locks_show(struct seq_file *file, void *unused)
{
	u32 i, word;

	mutex_lock(&tuning);
	for (i = 0; i < listed; i++) {
		word = list[i].word;
		seq_printf(file, "%lx", list[i].address);
		if (word & TUNING_POLICY_MASK)
			seq_printf(file, " policy=%s", policy_name(tuning_from(word, word).policy));
		if (word >> TUNING_BATCH_SHIFT)
			seq_printf(file, " batch=%u", word >> TUNING_BATCH_SHIFT);
		seq_puts(file, "\n");
	}
	mutex_unlock(&tuning);
	return 0;
}

static int locks_open(struct inode *inode, struct file *file)
{
	return single_open(file, locks_show, NULL);
}

static const struct file_operations locks_fops = {
	.owner = THIS_MODULE,
	.open = locks_open,
	.read = seq_read,
	.write = locks_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static int __init show_tuning(void)
{
#define SHOW(name, kind, is_policy) choice_show(#name, &knob_fops, 0600, (void *)&knob_##name);
	KNOBS(SHOW)
	choice_show("locks", &locks_fops, 0600, NULL);
	return 0;
}
late_initcall(show_tuning);
