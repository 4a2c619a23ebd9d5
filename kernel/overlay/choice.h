/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the files of the overlay share: which locks are chosen can be read in debugfs, poundlock/NAME; and the choice itself of those that are
 * stock's or a ShflLock.
 */
#ifndef POUNDLOCK_KERNEL_CHOICE_H
#define POUNDLOCK_KERNEL_CHOICE_H

#include <linux/dcache.h>
#include <linux/debugfs.h>
#include <linux/seq_file.h>

/* Makes the file @name of @mode, which @operations read, or write. */
static inline void choice_show(const char *name, const struct file_operations *operations, umode_t mode)
{
	struct dentry *folder = debugfs_lookup("poundlock", NULL);

	if (folder)
		dput(folder);
	else
		folder = debugfs_create_dir("poundlock", NULL);
	debugfs_create_file(name, mode, folder, NULL, operations);
}

/*
 * Makes by_shfl what the boot parameter poundlock.@what says, while there is one task yet, and shows it. The file knows
 * park.h.
 */
#define CHOICE_OF_SHFL(what)                                                                                         \
	static int __init choose(char *name)                                                                         \
	{                                                                                                            \
		if (!strcmp(name, "shfl")) {                                                                         \
			w_park_start();                                                                              \
			static_branch_enable(&by_shfl);                                                              \
		} else if (strcmp(name, "stock")) {                                                                  \
			pr_err("poundlock." #what "=%s: there is no such " #what "; the stock one is used\n", name); \
		}                                                                                                    \
		return 0;                                                                                            \
	}                                                                                                            \
	early_param("poundlock." #what, choose);                                                                     \
                                                                                                                     \
	static int what##_show(struct seq_file *file, void *unused)                                                  \
	{                                                                                                            \
		seq_printf(file, "%s\n", static_key_enabled(&by_shfl) ? "shfl" : "stock");                           \
		return 0;                                                                                            \
	}                                                                                                            \
	DEFINE_SHOW_ATTRIBUTE(what);                                                                                 \
                                                                                                                     \
	static int __init show(void)                                                                                 \
	{                                                                                                            \
		choice_show(#what, &what##_fops, 0400);                                                              \
		return 0;                                                                                            \
	}                                                                                                            \
	late_initcall(show);

#endif
