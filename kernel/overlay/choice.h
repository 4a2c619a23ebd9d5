/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the files of the overlay share: which locks are chosen can be read in debugfs, poundlock/NAME.
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

#endif
