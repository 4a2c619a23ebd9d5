/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Simulated machines: a directory in the form of /sys, between begin() and end(). */
#ifndef POUNDLOCK_UNIT_MACHINE_H
#define POUNDLOCK_UNIT_MACHINE_H

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "../expect.h"

static char root[64];

static inline void make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		EXPECT(!mkdir(path, 0700) || errno == EEXIST, "%s", path);
		*slash = '/';
	}
}

/* Writes @text into the file below the root that the format names. */
__attribute__((format(printf, 2, 3))) static inline void put(const char *text, const char *format,
							     ...)
{
	char name[128], path[256];
	va_list arguments;
	FILE *file;

	va_start(arguments, format);
	vsnprintf(name, sizeof(name), format, arguments);
	va_end(arguments);
	snprintf(path, sizeof(path), "%s/%s", root, name);
	make_folders(path);
	file = fopen(path, "w");
	EXPECT(file, "%s", path);
	fprintf(file, "%s\n", text);
	EXPECT(!fclose(file));
}

static inline int remove_one(const char *path, const struct stat *status, int flag,
			     struct FTW *walk)
{
	(void)status, (void)flag, (void)walk;
	return remove(path);
}

static inline void begin(void)
{
	/* In memory if possible: a machine is thousands of files. */
	snprintf(root, sizeof(root), "%s/poundlock-machine-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	EXPECT(mkdtemp(root), "%s", root);
}

static inline void end(void)
{
	EXPECT(!nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS));
}

/* Declares that the CPUs of @list share the topology @file. */
static inline void share(const char *list, const char *file, const int *cpus, int count)
{
	for (int i = 0; i < count; i++)
		put(list, "devices/system/cpu/cpu%d/topology/%s", cpus[i], file);
}

static inline void cache(int cpu, int index, const char *level, const char *list)
{
	put(level, "devices/system/cpu/cpu%d/cache/index%d/level", cpu, index);
	put(list, "devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list", cpu, index);
}

#endif
