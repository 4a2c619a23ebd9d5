/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Finds the route, when a lock that uses it is chosen or first needs it, in whichever thread that
 * is. Until then, all CPUs share position 0.
 *
 * A saved route is untrusted input: whatever it contains, the positions are dense and below
 * w_cpu_count().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "route.h"
#include "topology.h"

#define FIRST_LINE "poundlock-route 1"
#define OWN_FILE "poundlock/route"
#define COMMON_FILE "/etc/poundlock/route"

W_ATOMIC(uint32_t) w_cpus_usable;
W_ATOMIC(const uint16_t *) w_route;

/* Recorded by w_route_start(). */
static struct w_cpus usable;
static char named[PATH_MAX + 1]; /* by POUNDLOCK_ROUTE, or empty */
static char own[PATH_MAX];       /* the user's, or empty */

static uint16_t table[W_CPUS];
static uint16_t cpu_at[W_CPUS]; /* by position in `table` */
static const char *source;      /* the file that the table comes from; NULL: none */
static const uint16_t one_place[W_CPUS];

/* Not on the stack, which may be small. */
static struct {
	char text[W_ROUTE_BYTES];
	char present[4096];
	uint16_t tour[W_CPUS];
	uint16_t sorted[W_CPUS];
	uint16_t domains[W_CPUS];
	uint16_t ends[W_CPUS];
} work;

/* ---- Start ---- */

/* The value of @name in the environment, or "". Always "" in a privileged (setuid) program. */
static const char *environment(const char *name)
{
	const char *value = secure_getenv(name);

	return value ? value : "";
}

static void find_own_file(void)
{
	const char *config = environment("XDG_CONFIG_HOME"), *home = environment("HOME");
	int length = 0;

	if (*config == '/')
		length = snprintf(own, sizeof(own), "%s/" OWN_FILE, config);
	else if (*home == '/')
		length = snprintf(own, sizeof(own), "%s/.config/" OWN_FILE, home);
	if ((size_t)length >= sizeof(own))
		*own = 0;
}

/*
 * Absolute, since the program may change its directory. A name that is cut here is still too long
 * for the kernel.
 */
static void find_named_file(void)
{
	const char *name = environment("POUNDLOCK_ROUTE");
	size_t length = 0;

	if (!*name)
		return;
	if (*name != '/' && syscall(SYS_getcwd, named, sizeof(named) - 1) > 0) {
		length = strlen(named);
		named[length++] = '/';
	}
	snprintf(named + length, sizeof(named) - length, "%s", name);
}

static void find_cpus(void)
{
	/* The kernel requires room for all CPUs that it was built for. */
	uint64_t mask[8192 / 64] = {0};
	long length = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);
	uint32_t count = 0;

	for (size_t cpu = 0; (long)(cpu / 8) < length && cpu < W_CPUS; cpu++) {
		if (mask[cpu / 64] >> cpu % 64 & 1) {
			w_cpus_add(&usable, cpu);
			count++;
		}
	}
	if (!count)
		w_cpus_add(&usable, 0);
	/* relaxed: users of the set go through w_route_start() */
	atomic_store_explicit(&w_cpus_usable, count ? count : 1, memory_order_relaxed);
}

static void start(void)
{
	int saved = errno;

	find_cpus();
	find_named_file();
	find_own_file();
	errno = saved;
}

void w_route_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start);
}

uint32_t w_cpu_count_slow(void)
{
	w_route_start();
	return atomic_load_explicit(&w_cpus_usable, memory_order_relaxed);
}

/* ---- From a tour to positions ---- */

/*
 * A CPU that the process may not use shares the position of the last one before it that it may: the
 * process may be allowed to use it later.
 */
static void place(const uint16_t *tour, size_t length, const struct w_cpus *among,
		  uint16_t positions[W_CPUS])
{
	uint16_t count = 0;

	memset(positions, 0, W_CPUS * sizeof(*positions));
	for (size_t i = 0; i < length; i++) {
		if (w_cpus_has(among, tour[i]))
			positions[tour[i]] = count++;
		else
			positions[tour[i]] = count ? count - 1 : 0;
	}
}

/* ---- The derived route ---- */

/* Stable sort of the tour by the domains of its CPUs, of which there are @count. */
static void sort_by_domain(size_t count)
{
	uint16_t place_of_domain = 0;

	memset(work.ends, 0, count * sizeof(*work.ends));
	for (size_t cpu = 0; cpu < W_CPUS; cpu++)
		work.ends[work.domains[cpu]]++;
	for (size_t domain = 0; domain < count; domain++) {
		uint16_t members = work.ends[domain];

		work.ends[domain] = place_of_domain;
		place_of_domain += members;
	}
	for (size_t i = 0; i < W_CPUS; i++)
		work.sorted[work.ends[work.domains[work.tour[i]]]++] = work.tour[i];
	memcpy(work.tour, work.sorted, sizeof(work.tour));
}

void w_route_derive(const char *root, const struct w_cpus *among, uint16_t positions[W_CPUS])
{
	static const enum w_domain_kind innermost_first[] = {W_DOMAIN_CORE, W_DOMAIN_L3,
							     W_DOMAIN_NODE, W_DOMAIN_DIE,
							     W_DOMAIN_PACKAGE};

	for (size_t cpu = 0; cpu < W_CPUS; cpu++)
		work.tour[cpu] = (uint16_t)cpu;
	for (size_t i = 0; i < sizeof(innermost_first) / sizeof(innermost_first[0]); i++)
		sort_by_domain(w_topology_read(root, innermost_first[i], work.domains, W_CPUS));
	place(work.tour, W_CPUS, among, positions);
}

/* ---- The saved route ---- */

/* Writes one line, without its end, into @error. Returns W_ROUTE_REFUSED. */
__attribute__((format(printf, 3, 4))) static enum w_route_file refuse(char *error, size_t size,
								      const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, size, format, arguments);
	va_end(arguments);
	return W_ROUTE_REFUSED;
}

/*
 * Reads @file, possibly in pieces, into work.text. Returns its size, the size of the buffer if it
 * is larger, or -1.
 */
static long read_all(long file)
{
	size_t length = 0;
	long piece;

	do {
		piece = syscall(SYS_read, file, work.text + length, sizeof(work.text) - length);
		if (piece > 0)
			length += (size_t)piece;
	} while ((piece > 0 && length < sizeof(work.text)) || (piece < 0 && errno == EINTR));
	return piece < 0 ? -1 : (long)length;
}

/*
 * Reads the file at @path into work.text as a string. Refuses all but regular files, which might
 * not end, or wait for a writer.
 */
static enum w_route_file read_text(const char *path, char *error, size_t size)
{
	long file = syscall(SYS_openat, AT_FDCWD, path,
			    O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY),
	     length = -1;
	struct stat status;
	bool regular;

	if (file < 0 && (errno == ENOENT || errno == ENOTDIR))
		return W_ROUTE_MISSING;
	if (file < 0)
		return refuse(error, size, "cannot be read (error %d)", errno);
	regular = !fstat((int)file, &status) && S_ISREG(status.st_mode);
	if (regular)
		length = read_all(file);
	syscall(SYS_close, file);
	if (!regular)
		return refuse(error, size, "is not a regular file");
	if (length < 0)
		return refuse(error, size, "cannot be read (error %d)", errno);
	if ((size_t)length == sizeof(work.text))
		return refuse(error, size, "is larger than a route can be");
	work.text[length] = 0;
	if (strlen(work.text) != (size_t)length)
		return refuse(error, size, "is not a text");
	return W_ROUTE_READ;
}

/* State while the lines of a route are read. */
struct reading {
	struct w_cpus on_it;
	size_t length;
	long announced; /* number of CPUs that it announces; -1: none yet */
	unsigned line;
	char *error;
	size_t size;
};

/*
 * Parses the number at *@text, and advances *@text past it and the spaces around. Returns -1 if
 * there is none below @limit.
 */
static long next_number(const char **text, long limit)
{
	long number = 0;
	const char *digit;

	*text += strspn(*text, " ");
	for (digit = *text; *digit >= '0' && *digit <= '9' && number < limit; digit++)
		number = number * 10 + (*digit - '0');
	if (digit == *text || number >= limit || (*digit && *digit != ' '))
		return -1;
	*text = digit + strspn(digit, " ");
	return number;
}

static enum w_route_file read_cpus(struct reading *reading, const char *rest)
{
	do {
		long cpu = next_number(&rest, W_CPUS);

		if (cpu < 0)
			return refuse(reading->error, reading->size,
				      "line %u has a word that is not a CPU", reading->line);
		if (w_cpus_has(&reading->on_it, (size_t)cpu))
			return refuse(reading->error, reading->size, "has CPU %ld twice", cpu);
		w_cpus_add(&reading->on_it, (size_t)cpu);
		work.tour[reading->length++] = (uint16_t)cpu;
	} while (*rest);
	return W_ROUTE_READ;
}

static enum w_route_file read_count(struct reading *reading, const char *rest)
{
	reading->announced = next_number(&rest, W_CPUS + 1);
	if (reading->announced < 0 || *rest)
		return refuse(reading->error, reading->size, "line %u is not a number of CPUs",
			      reading->line);
	return W_ROUTE_READ;
}

/* The CPUs of a machine identify it. Without sysfs, they are unknown. */
static enum w_route_file read_present(struct reading *reading, const char *rest)
{
	if (rest[strspn(rest, "0123456789,-")])
		return refuse(reading->error, reading->size, "line %u is not a list of CPUs",
			      reading->line);
	if (*work.present && strcmp(rest, work.present))
		return refuse(reading->error, reading->size,
			      "is for a machine with the CPUs %.60s; this one has %.60s", rest,
			      work.present);
	return W_ROUTE_READ;
}

static enum w_route_file ignore(struct reading *reading, const char *rest)
{
	(void)reading, (void)rest;
	return W_ROUTE_READ;
}

static const struct {
	const char *word;
	enum w_route_file (*read)(struct reading *reading, const char *rest);
} line_kinds[] = {
	{"machine ", ignore},       {"measured ", ignore}, {"length ", ignore},
	{"present ", read_present}, {"cpus ", read_count}, {"route ", read_cpus},
};

static enum w_route_file read_line(struct reading *reading, const char *line)
{
	if (!*line || *line == '#')
		return W_ROUTE_READ;
	for (size_t i = 0; i < sizeof(line_kinds) / sizeof(line_kinds[0]); i++) {
		size_t length = strlen(line_kinds[i].word);

		if (!strncmp(line, line_kinds[i].word, length))
			return line_kinds[i].read(reading, line + length);
	}
	return refuse(reading->error, reading->size, "line %u is of no known kind", reading->line);
}

static enum w_route_file read_lines(struct reading *reading)
{
	enum w_route_file result = W_ROUTE_READ;
	char *line = work.text, *next;

	for (; line && result == W_ROUTE_READ; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		if (reading->line++)
			result = read_line(reading, line);
		else if (strcmp(line, FIRST_LINE))
			result = refuse(reading->error, reading->size,
					"does not begin with the line '" FIRST_LINE "'");
	}
	return result;
}

/* Returns whether this machine has all CPUs of the route. Without sysfs, assumes so. */
static enum w_route_file check_known(const struct reading *reading)
{
	struct w_cpus known = {0};
	const char *list = work.present;
	size_t first, last;

	if (!*list)
		return W_ROUTE_READ;
	while (w_topology_range(&list, &first, &last))
		for (size_t cpu = first; cpu <= last && cpu < W_CPUS; cpu++)
			w_cpus_add(&known, cpu);
	for (size_t i = 0; i < reading->length; i++)
		if (!w_cpus_has(&known, work.tour[i]))
			return refuse(reading->error, reading->size,
				      "has CPU %u, which this machine has not", work.tour[i]);
	return W_ROUTE_READ;
}

static enum w_route_file check(const struct reading *reading, const struct w_cpus *among)
{
	if (reading->announced < 0)
		return refuse(reading->error, reading->size, "does not say how many CPUs it has");
	if ((size_t)reading->announced != reading->length)
		return refuse(reading->error, reading->size, "has %zu CPUs instead of %ld",
			      reading->length, reading->announced);
	for (size_t cpu = 0; cpu < W_CPUS; cpu++)
		if (w_cpus_has(among, cpu) && !w_cpus_has(&reading->on_it, cpu))
			return refuse(reading->error, reading->size,
				      "lacks CPU %zu, which the process may use", cpu);
	return check_known(reading);
}

enum w_route_file w_route_read(const char *path, const char *root, const struct w_cpus *among,
			       uint16_t positions[W_CPUS], char *error, size_t size)
{
	struct reading reading = {.announced = -1, .error = error, .size = size};
	enum w_route_file result = read_text(path, error, size);
	char present[256];

	if (result != W_ROUTE_READ)
		return result;
	snprintf(present, sizeof(present), "%s/devices/system/cpu/present", root);
	if (!w_topology_text(present, work.present, sizeof(work.present)))
		*work.present = 0;
	result = read_lines(&reading);
	if (result == W_ROUTE_READ)
		result = check(&reading, among);
	if (result == W_ROUTE_READ)
		place(work.tour, reading.length, among, positions);
	return result;
}

/* ---- Search for a saved route ---- */

static void complain(const char *path, const char *error)
{
	int length = snprintf(work.text, sizeof(work.text),
			      "poundlock: the route in '%s' %s: one by the topology is used\n",
			      path, error);

	syscall(SYS_write, STDERR_FILENO, work.text, (size_t)length);
}

/*
 * The first existing file decides; so does one that the environment names, even if it is missing.
 */
static bool find_saved(const char *root)
{
	const char *const places[] = {*named ? named : own, *named ? "" : COMMON_FILE};
	enum w_route_file result = W_ROUTE_MISSING;
	char error[256] = "is not there";
	size_t i;

	for (i = 0; i < 2 && result == W_ROUTE_MISSING; i++)
		if (*places[i])
			result =
				w_route_read(places[i], root, &usable, table, error, sizeof(error));
	if (result == W_ROUTE_REFUSED || (result == W_ROUTE_MISSING && *named))
		complain(*named ? named : places[i - 1], error);
	if (result == W_ROUTE_READ)
		source = places[i - 1];
	return result == W_ROUTE_READ;
}

const uint16_t *w_route_load(void)
{
	const uint16_t *route = one_place;
	int saved = errno;

	if (w_topology_claim()) {
		route = atomic_load(&w_route);
		if (!route) {
			w_route_start();
			if (!find_saved("/sys"))
				w_route_derive("/sys", &usable, table);
			for (uint16_t cpu = 0; cpu < W_CPUS; cpu++)
				if (w_cpus_has(&usable, cpu))
					cpu_at[table[cpu]] = cpu;
			route = table;
			atomic_store(&w_route, route);
		}
		w_topology_release();
	}
	errno = saved;
	return route;
}

int32_t w_domain_at(uint32_t position)
{
	const uint16_t *domains = atomic_load(&w_domains);

	if (!atomic_load(&w_route) && w_route_load() == one_place)
		return 0;
	if (!domains)
		domains = w_domains_load();
	return domains[cpu_at[position]];
}

size_t w_route_list(unsigned *list, size_t size)
{
	const size_t count = w_cpu_count();

	while (!atomic_load(&w_route))
		if (w_route_load() == one_place)
			w_yield();
	for (size_t position = 0; position < count && position < size; position++)
		list[position] = cpu_at[position];
	return count;
}

const char *w_route_file(void)
{
	return source;
}
