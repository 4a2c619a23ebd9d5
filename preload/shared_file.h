/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Files that this process maps and others read: FOLDER/poundlock.PID.N.ENDING, readable and
 * writable by their owner only, and never removed.
 *
 * Nothing here calls malloc or takes a lock. Functions that fail set errno.
 */
#ifndef POUNDLOCK_PRELOAD_SHARED_FILE_H
#define POUNDLOCK_PRELOAD_SHARED_FILE_H

#include <stddef.h>

#include "world.h"

/*
 * Makes a new file in @folder, and writes its path to @path (@size bytes). Returns its descriptor;
 * -1: it cannot be made.
 */
W_HIDDEN int shared_file_new(const char *folder, const char *ending, char *path, size_t size);

/* Gives the file @bytes, and maps it at @at in place of what is mapped there. */
W_HIDDEN bool shared_file_map(int fd, void *at, size_t bytes);

/*
 * Allocates the pages from @from to @to of a mapped file, so that no access to them fails. EINVAL:
 * the kernel is older than 5.14.
 */
W_HIDDEN bool shared_file_populate(void *from, void *to);

/* Allocates the first @bytes of the file, on any kernel. */
W_HIDDEN bool shared_file_allocate(int fd, size_t bytes);

/* Closes @fd unless it is -1, and removes the file at @path unless @keep. Keeps errno. */
W_HIDDEN void shared_file_close(int fd, const char *path, bool keep);

/*
 * Maps memory that belongs to no file at @at. If even this fails, the earlier mapping stays. Keeps
 * errno.
 */
W_HIDDEN void shared_file_unmap(void *at, size_t bytes);

#endif
