/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ron_lines [FILE]: the cache lines of a lock and its waiters that a hand-over touches, with one
 * waiter at each place and holders at about 64 places: mean and maximum, as rows of
 * docs/locks/ron.md. With a file name, fails if the file lacks a row. Nothing depends on time.
 *
 * Compiled with -fsanitize=thread but without its runtime: lines.c implements the hooks and sees
 * every access.
 */
#include <stdio.h>

#include "lines.h"
#include "ron.h"
#include "ron_plock.h"
#include "ron_shared.h"
#include "ron_ticket.h"
#include "unit.h"

#define MOST_CPUS 1024

/* The world's replacement of a fence under that option; the library is compiled without it. */
W_ATOMIC(uint32_t) w_fence_word;

#define STRIDE(cpus) ((cpus) / 64 + 1) /* odd, so as not to meet only borders of lines */

static _Alignas(64) char memory[1 << 17];
static _Alignas(64) struct ron_node node;

static uint32_t lines_of_release(bool (*release)(void))
{
	lines_begin();
	lines_watch(memory, sizeof(memory));
	lines_watch(&node, sizeof(node));
	EXPECT(release());
	return lines_end();
}

struct count {
	uint64_t sum, pairs;
	uint32_t most;
};

static void add(struct count *count, uint32_t lines)
{
	count->sum += lines;
	count->pairs++;
	count->most = lines > count->most ? lines : count->most;
}

/*
 * Counts for a lock of @cpus places; a waiter arrives by @arrive and receives the lock by @taken.
 */
#define COUNTED(lock, arrive, taken)                                                               \
	static bool lock##_unlock(void)                                                            \
	{                                                                                          \
		return lock##_release((struct lock *)memory, (struct lock##_policy){WAIT_PARK});   \
	}                                                                                          \
	static struct count lock##_count(uint32_t cpus)                                            \
	{                                                                                          \
		struct tour *tour = (struct tour *)memory;                                         \
		struct count count = {0};                                                          \
                                                                                                   \
		script_clear();                                                                    \
		script_cpus = cpus;                                                                \
		memset(memory, 0, sizeof(memory));                                                 \
		EXPECT(lock##_size() <= sizeof(memory));                                           \
		lock##_init((struct lock *)memory, lock##_size());                                 \
		for (uint32_t at = 0; at < cpus; at += STRIDE(cpus)) {                             \
			for (uint32_t place = 0; place < cpus; place++) {                          \
				script_time = 0;                                                   \
				script_position = at;                                              \
				EXPECT(lock##_try_acquire((struct lock *)memory));                 \
				arrive(tour_place(tour, place));                                   \
				EXPECT(!tour_mark(tour, place));                                   \
				add(&count, lines_of_release(lock##_unlock));                      \
				EXPECT(taken(tour_place(tour, place)), #lock ": not handed over"); \
				EXPECT(lock##_unlock());                                           \
			}                                                                          \
		}                                                                                  \
		return count;                                                                      \
	}

static void ron_arrive(void *place)
{
	ron_come(place, &node);
}

static bool ron_taken(void *place)
{
	(void)place;
	return atomic_load(&node.status) == NODE_GRANTED;
}

static void ron_ticket_arrive(struct tickets *place)
{
	atomic_fetch_add(&place->next, TICKETS_STEP);
}

static bool ron_ticket_taken(struct tickets *place)
{
	return atomic_load(&place->next) == atomic_load(&place->serving);
}

static void ron_plock_arrive(struct ron_plock_place *place)
{
	atomic_fetch_add(&place->word, 1);
}

static bool ron_plock_taken(struct ron_plock_place *place)
{
	return ron_plock_leave(place, true);
}

COUNTED(ron, ron_arrive, ron_taken)
COUNTED(ron_ticket, ron_ticket_arrive, ron_ticket_taken)
COUNTED(ron_plock, ron_plock_arrive, ron_plock_taken)

/* ---- Waiters in the process's array ---- */

static struct ron_shared shared;

static bool shared_unlock(void)
{
	return ron_shared_release(&shared, (struct ron_shared_policy){WAIT_PARK});
}

static struct count ron_shared_count(uint32_t cpus)
{
	struct ron_shared_array *array;
	struct count count = {0};

	script_clear();
	script_cpus = MOST_CPUS; /* the array is made once, for the most CPUs */
	array = ron_shared_array();
	script_cpus = cpus;
	for (uint32_t at = 0; at < cpus; at += STRIDE(cpus)) {
		for (uint32_t place = 0; place < cpus; place++) {
			uint32_t slot;

			script_time = 0;
			script_position = at;
			EXPECT(ron_shared_try_acquire(&shared));
			slot = ron_shared_claim(array, &shared, place);
			EXPECT(!ron_shared_announce(array, &shared, slot, false));
			lines_begin();
			lines_watch(&shared, sizeof(shared));
			lines_watch(array,
				    RON_SHARED_HEAD + ron_shared_words() * sizeof(uint64_t) +
					    ron_shared_slots() * sizeof(struct ron_shared_slot));
			EXPECT(shared_unlock());
			add(&count, lines_end());
			EXPECT(atomic_load(&ron_shared_slot(array, slot)->lock) ==
			       ron_shared_of(&shared, RON_SHARED_GRANTED));
			ron_shared_leave(array, slot, false);
			EXPECT(shared_unlock());
		}
	}
	return count;
}

/* ---- The paper's, for comparison: algorithm 1, lines 17 to 22 ---- */

static uint32_t scan_cpus, scan_at;

static bool scan(void)
{
	W_ATOMIC(int) *waits = (W_ATOMIC(int) *)memory;

	for (uint32_t i = 1; i < scan_cpus; i++) {
		if (w_load_relaxed(&waits[(i + scan_at) % scan_cpus]) == 1) {
			w_store_release(&waits[(i + scan_at) % scan_cpus], 0);
			return true;
		}
	}
	return false;
}

static struct count scan_count(uint32_t cpus)
{
	struct count count = {0};

	memset(memory, 0, sizeof(memory));
	scan_cpus = cpus;
	for (scan_at = 0; scan_at < cpus; scan_at += STRIDE(cpus)) {
		for (uint32_t place = 0; place < cpus; place++) {
			if (place == scan_at)
				continue;
			script_time = 0;
			atomic_store((W_ATOMIC(int) *)memory + place, 1);
			add(&count, lines_of_release(scan));
		}
	}
	return count;
}

/* ---- Output ---- */

static int cell(char *text, size_t size, struct count count)
{
	return snprintf(text, size, " %.1f, at most %u |", (double)count.sum / (double)count.pairs,
			count.most);
}

static bool file_has(const char *path, const char *row)
{
	FILE *file = fopen(path, "r");
	char line[256];
	bool found = false;

	EXPECT(file, "cannot read %s", path);
	while (!found && fgets(line, sizeof(line), file))
		found = !strcmp(line, row);
	fclose(file);
	if (!found)
		fprintf(stderr, "ron_lines: %s lacks %s", path, row);
	return found;
}

int main(int count, char **arguments)
{
	static struct count (*const counted[])(uint32_t) = {ron_count, ron_ticket_count,
							    ron_plock_count, ron_shared_count,
							    scan_count};
	static const uint32_t cpus[] = {64, 256, MOST_CPUS};
	bool same = true;
	char row[256];
	size_t used;

	for (int size = 0; size < COUNT(cpus); size++) {
		used = (size_t)snprintf(row, sizeof(row), "| %u |", cpus[size]);
		for (int lock = 0; lock < COUNT(counted); lock++)
			used += (size_t)cell(row + used, sizeof(row) - used,
					     counted[lock](cpus[size]));
		snprintf(row + used, sizeof(row) - used, "\n");
		if (count > 1)
			same &= file_has(arguments[1], row);
		else
			fputs(row, stdout);
	}
	return !same;
}
