/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shared by the files of the overlay: debugfs files poundlock/NAME that show the choice, and the
 * choice of a lock for tasks.
 */
#ifndef POUNDLOCK_KERNEL_CHOICE_H
#define POUNDLOCK_KERNEL_CHOICE_H

#include <linux/dcache.h>
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "park.h"

/* A later version may have functions that the overlay does not replace (kernel/own.py). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#error "Poundlock's overlay supports Linux 6.1 to 6.12; this kernel is a later one"
#endif

/* Kernel stacks are small, and a waiter's callers may have used most of its stack. */
#ifdef CONFIG_CC_IS_GCC
#pragma GCC diagnostic error "-Wframe-larger-than=768"
#endif

#define LONGEST_NAME 16

/*
 * Copies a word that is written to a file to @buffer, of LONGEST_NAME bytes, and sets *@name to it,
 * without the white space around it.
 */
static inline int choice_read(char *buffer, const char __user *from, size_t size, char **name)
{
	if (size >= LONGEST_NAME)
		return -EINVAL;
	if (copy_from_user(buffer, from, size))
		return -EFAULT;
	buffer[size] = '\0';
	*name = strim(buffer);
	return 0;
}

/* Creates the debugfs file @name with @mode, @operations and their @data. */
static inline void choice_show(const char *name, const struct file_operations *operations,
			       umode_t mode, void *data)
{
	struct dentry *folder = debugfs_lookup("poundlock", NULL);

	if (folder)
		dput(folder);
	else
		folder = debugfs_create_dir("poundlock", NULL);
	debugfs_create_file(name, mode, folder, data, operations);
}

/* A lock for tasks that can be chosen; enabling its keys chooses it. */
struct choice {
	const char *name;
	struct static_key *ours, *which; /* NULL: none */
};

/* Enables the keys of the choice @name, while there is only one task; stock if there is none. */
static inline const struct choice *choice_make(const char *what, const struct choice *choices,
					       size_t count, const char *name)
{
	size_t i;

	for (i = 0; i < count && strcmp(choices[i].name, name); i++)
		;
	if (i == count) {
		pr_err("poundlock.%s=%s: there is no such %s; the stock one is used\n", what, name,
		       what);
		return choices;
	}
	if (choices[i].ours) {
		w_park_start();
		static_key_enable(choices[i].ours);
	}
	if (choices[i].which)
		static_key_enable(choices[i].which);
	return &choices[i];
}

/*
 * Applies the boot parameter poundlock.@what to `choices`, whose first entry is stock, and shows
 * the result. A choice other than stock is final.
 */
#define CHOICE(what)                                                                     \
	static const struct choice *chosen = choices;                                    \
                                                                                         \
	static int __init choose(char *name)                                             \
	{                                                                                \
		if (chosen == choices)                                                   \
			chosen = choice_make(#what, choices, ARRAY_SIZE(choices), name); \
		return 0;                                                                \
	}                                                                                \
	early_param("poundlock." #what, choose);                                         \
                                                                                         \
	static int what##_show(struct seq_file *file, void *unused)                      \
	{                                                                                \
		seq_printf(file, "%s\n", chosen->name);                                  \
		return 0;                                                                \
	}                                                                                \
	DEFINE_SHOW_ATTRIBUTE(what);                                                     \
                                                                                         \
	static int __init show(void)                                                     \
	{                                                                                \
		choice_show(#what, &what##_fops, 0400, NULL);                            \
		return 0;                                                                \
	}                                                                                \
	late_initcall(show);

#endif
