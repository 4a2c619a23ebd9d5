/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Reports: text on stderr, by one plain system call, since write() is a cancellation point. Names
 * come from the loader, whose lock the caller's lock may wait for: the mutex is not held here.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checks.h"
#include "names.h"

/* Weak: a static program has no loader. */
#pragma weak dladdr1

static const char *const first_lines[] = {
#define ERROR(name, line) line,
	DEBUG_ERRORS(ERROR)
#undef ERROR
};

/* One report at a time is written into it. */
static struct {
	char text[1 << 14];
	size_t length;
} output;

static struct debug_mutex writing;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
	size_t room = sizeof(output.text) - output.length;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(output.text + output.length, room, format, arguments);
	va_end(arguments);
	if (length > 0)
		output.length += (size_t)length < room ? (size_t)length : room - 1;
}

/* The module of @address, and what it knows of it. NULL: none. */
static const struct link_map *module_of(uintptr_t address, Dl_info *info)
{
	struct link_map *module = NULL;

	if (!dladdr1 || !dladdr1((void *)address, info, (void **)&module, RTLD_DL_LINKMAP))
		return NULL;
	return info->dli_fname ? module : NULL;
}

/* NAME or SYMBOL, if it has one; its address; then FILE+OFFSET as addr2line expects it. */
static void add_lock(uintptr_t lock)
{
	Dl_info info;
	const struct link_map *module = module_of(lock, &info);
	char name[NAME_SIZE];

	if (names_find((const void *)lock, name))
		add("%s, ", name);
	else if (module && info.dli_saddr == (void *)lock)
		add("%s, ", info.dli_sname);
	add("0x%zx", lock);
	if (module)
		add(" (%s+0x%zx)", info.dli_fname, lock - (uintptr_t)module->l_addr);
}

static void add_frame(uint32_t index, uintptr_t address)
{
	Dl_info info;
	const struct link_map *module = module_of(address, &info);

	add("    #%-2u 0x%zx", index, address);
	if (module && info.dli_sname)
		add(" %s+0x%zx", info.dli_sname, address - (uintptr_t)info.dli_saddr);
	if (module)
		add(" (%s+0x%zx)", info.dli_fname, address - (uintptr_t)module->l_addr);
	add("\n");
}

static void add_site(const struct debug_site *site)
{
	add("  Thread %u %s ", site->tid, site->did);
	add_lock(site->lock);
	if (site->held) {
		add("\n  while it %s ", strcmp(site->did, "locks") ? "held" : "holds");
		add_lock(site->held);
	}
	add(":\n");
	/* Of a call, not of the instruction after it. */
	for (uint32_t i = 0; site->stack && i < site->stack->depth; i++)
		add_frame(i, site->stack->frames[i] - 1);
}

static void begin_writing(void)
{
	debug_mutex_lock(&writing);
	output.length = 0;
}

static void end_writing(void)
{
	syscall(SYS_write, STDERR_FILENO, output.text, output.length);
	debug_mutex_unlock(&writing);
}

void debug_add_site(struct debug_report *report, struct debug_site site)
{
	if (report->sites < DEBUG_SITES)
		report->site[report->sites++] = site;
}

void debug_print(const struct debug_report *report)
{
	int saved = errno;

	begin_writing();
	add("poundlock: process %u: %s\n", w_process(), first_lines[report->error]);
	for (uint32_t i = 0; i < report->sites; i++)
		add_site(&report->site[i]);
	end_writing();
	errno = saved;
}

void debug_say(const char *line)
{
	int saved = errno;

	begin_writing();
	add("poundlock: %s\n", line);
	end_writing();
	errno = saved;
}
