/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The mapped statistics file: region.h has the contract. */
#define _GNU_SOURCE
#include "region.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "shared_file.h"
#include "stats.h"

#define PAGE 4096u
#define ALIGNED(bytes) (((bytes) + PAGE - 1) / PAGE * PAGE)

struct stats_header *stats_region;
struct stats_private *stats_private;

/* @chunk: items that are allocated at a time, about. */
#define AREAS(AREA)                                                     \
	AREA(STATS_LOCKS, struct stats_lock, STATS_LOCKS_MOST, 64)      \
	AREA(STATS_MODULES, struct stats_module, 512, 16)               \
	AREA(STATS_STACKS, struct stats_stack, 4096, 32)                \
	AREA(STATS_THREADS, struct stats_thread, STATS_THREADS_MOST, 4) \
	AREA(STATS_SHARES, struct stats_share, 16384, 170)

static const struct {
	uint32_t bytes, most, chunk;
} kinds[STATS_AREAS] = {
#define AREA(name, type, most, chunk) [name] = {sizeof(type), most, chunk},
	AREAS(AREA)
#undef AREA
};

#define AREA_BYTES(name, type, most, chunk) +ALIGNED(sizeof(type) * (most))
#define REGION_BYTES (STATS_LOCKS_OFFSET AREAS(AREA_BYTES))
#define ALL_BYTES (REGION_BYTES + ALIGNED(sizeof(struct stats_private)))

static size_t offsets[STATS_AREAS];
static W_ATOMIC(uint32_t) populated[STATS_AREAS]; /* items allocated in the file */
static struct {
	char folder[PATH_MAX - 64], path[PATH_MAX];
	char lock[64], rwlock[64];
	bool profile;
} options;

enum { NONE, OPENING, OPEN, FAILED };
static W_ATOMIC(uint32_t) state;

const char *stats_region_path(void)
{
	return options.path;
}

void *stats_item(enum stats_area_name area, uint32_t index)
{
	return (char *)stats_region + offsets[area] + (size_t)index * kinds[area].bytes;
}

uint32_t stats_used(enum stats_area_name area)
{
	/* relaxed: each item has a field that publishes it */
	uint32_t used = w_load_relaxed(&stats_region->areas[area].used);

	return used < kinds[area].most ? used : kinds[area].most;
}

/* ---- Growing ---- */

/* Allocates the bytes from @from to @to of the region in the file. */
static bool populate(size_t from, size_t to)
{
	return shared_file_populate((char *)stats_region + from, (char *)stats_region + to);
}

/* Allocates the item @index in the file. False if there is no room. */
static bool make_room(enum stats_area_name area, uint32_t index)
{
	/* acquire: pairs with the release below; the file's pages */
	uint32_t there = w_load_acquire(&populated[area]), more;
	int saved = errno;

	while (w_unlikely(there <= index)) {
		more = there + kinds[area].chunk;
		more = more < kinds[area].most ? more : kinds[area].most;
		if (!populate(offsets[area] + (size_t)there * kinds[area].bytes,
			      offsets[area] + (size_t)more * kinds[area].bytes)) {
			errno = saved;
			return false;
		}
		/* release: pairs with the acquire above */
		if (w_compare_exchange_release(&populated[area], &there, more))
			there = more;
	}
	return true;
}

void *stats_take(enum stats_area_name area, uint32_t spare, uint32_t *index)
{
	W_ATOMIC(uint32_t) *used = &stats_region->areas[area].used;

	/* relaxed, both: a thread that has taken an index is alone with its item */
	if (w_load_relaxed(used) + spare >= kinds[area].most)
		return NULL;
	*index = w_fetch_add_relaxed(used, 1);
	if (*index >= kinds[area].most || !make_room(area, *index))
		return NULL;
	return stats_item(area, *index);
}

/* ---- Making ---- */

/* Allocates the header; all of the file if the kernel (before 5.14) cannot allocate it later. */
static bool begin(int fd)
{
	if (populate(0, sizeof(struct stats_header)))
		return true;
	if (errno != EINVAL || !shared_file_allocate(fd, REGION_BYTES))
		return false;
	for (int area = 0; area < STATS_AREAS; area++)
		w_store_relaxed(&populated[area], kinds[area].most);
	return true;
}

static void write_header(void)
{
	struct stats_header *header = stats_region;
	struct timespec now;
	uint32_t others;

	clock_gettime(CLOCK_REALTIME, &now);
	header->bytes = sizeof(*header);
	header->pid = (uint32_t)syscall(SYS_getpid);
	header->profile = options.profile;
	header->start_ns = w_now();
	header->start_s = (uint64_t)now.tv_sec;
	header->hold_every = stats_hold_every(options.profile);
	header->rows = STATS_ROWS;
	for (int area = 0; area < STATS_AREAS; area++) {
		header->areas[area].offset = offsets[area];
		header->areas[area].bytes = kinds[area].bytes;
		header->areas[area].most = kinds[area].most;
	}
	strcpy(header->lock, options.lock);
	strcpy(header->rwlock, options.rwlock);
	snprintf(header->program, sizeof(header->program), "%s", program_invocation_short_name);
#define COUNTER(name, how) strcat(header->counters, #name " ");
	STATS_COUNTERS(COUNTER)
#undef COUNTER
#define EVENT(name, meaning) strcat(header->events, #name " ");
#include "events.def"
#undef EVENT
	(void)stats_take(STATS_LOCKS, 0, &others);
	header->version = STATS_VERSION;
	memcpy(header->magic, STATS_MAGIC, sizeof(STATS_MAGIC));
}

static bool make(void)
{
	int fd = shared_file_new(options.folder, "stats", options.path, sizeof(options.path));
	bool made = fd >= 0 && shared_file_map(fd, stats_region, REGION_BYTES) && begin(fd);

	if (made)
		write_header();
	else
		shared_file_unmap(stats_region, ALL_BYTES);
	shared_file_close(fd, options.path, made);
	return made;
}

bool stats_region_is_open(void)
{
	/* acquire: as in stats_region_open() */
	return w_load_acquire(&state) == OPEN;
}

bool stats_region_open(bool report)
{
	uint32_t none = NONE;
	int saved = errno;
	bool made;

	/* acquire: pairs with the release below; the header, and the mapping itself */
	while (w_load_acquire(&state) < OPEN) {
		if (!w_compare_exchange_relaxed(&state, &none, OPENING)) {
			w_yield();
			none = NONE;
			continue;
		}
		made = make();
		if (!made && report)
			config_say("poundlock: POUNDLOCK_STATS: cannot make a file in '%s': %s; no "
				   "statistics",
				   options.folder, strerror(errno));
		w_store_release(&state, made ? OPEN : FAILED);
	}
	errno = saved;
	return stats_region_is_open();
}

void stats_region_leave(void)
{
	shared_file_unmap(stats_region, ALL_BYTES);
	for (int area = 0; area < STATS_AREAS; area++)
		w_store_relaxed(&populated[area], 0);
	w_store_relaxed(&state, NONE);
}

bool stats_region_reserve(const char *folder, bool profile, const char *lock, const char *rwlock)
{
	size_t offset = STATS_LOCKS_OFFSET;
	void *memory;

	memory = mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
#define AREA(name, type, most, chunk) \
	offsets[name] = offset;       \
	offset += ALIGNED(sizeof(type) * (size_t)(most));
	AREAS(AREA)
#undef AREA
	snprintf(options.folder, sizeof(options.folder), "%s", folder);
	snprintf(options.lock, sizeof(options.lock), "%s", lock);
	snprintf(options.rwlock, sizeof(options.rwlock), "%s", rwlock);
	options.profile = profile;
	stats_region = memory;
	stats_private = (struct stats_private *)((char *)memory + REGION_BYTES);
	return true;
}
