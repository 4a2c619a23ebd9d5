/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Raw system calls: open() and others are cancellation points. */
#define _GNU_SOURCE
#include "shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define PAGE 4096u
#define FILES_MOST 1000 /* per process id */

int shared_file_new(const char *folder, const char *ending, char *path, size_t size)
{
	int fd = -1, flags = O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW;

	/* Earlier programs of this process, and other processes of this id, have left files. */
	for (int i = 0; i < FILES_MOST && fd < 0; i++) {
		snprintf(path, size, "%s/poundlock.%ld.%d.%s", folder, (long)syscall(SYS_getpid), i,
			 ending);
		fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
		if (fd < 0 && errno != EEXIST)
			return -1;
	}
	return fd;
}

/* Whether RLIMIT_FSIZE allows @bytes: exceeding it would end the process by SIGXFSZ. */
static bool may_have(size_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= bytes)
		return true;
	errno = EFBIG;
	return false;
}

bool shared_file_map(int fd, void *at, size_t bytes)
{
	return may_have(bytes) && !syscall(SYS_ftruncate, fd, (long)bytes) &&
	       mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
}

bool shared_file_populate(void *from, void *to)
{
	uintptr_t first = (uintptr_t)from / PAGE * PAGE,
		  end = ((uintptr_t)to + PAGE - 1) / PAGE * PAGE;

	return !syscall(SYS_madvise, first, end - first, MADV_POPULATE_WRITE);
}

bool shared_file_allocate(int fd, size_t bytes)
{
	return !syscall(SYS_fallocate, fd, 0, 0L, (long)bytes);
}

void shared_file_close(int fd, const char *path, bool keep)
{
	int saved = errno;

	if (fd < 0)
		return;
	if (!keep)
		syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	syscall(SYS_close, fd);
	errno = saved;
}

void shared_file_unmap(void *at, size_t bytes)
{
	int saved = errno;

	(void)mmap(at, bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	errno = saved;
}
