/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The beginning of a process: it gets its fork generation, and the records of its parent's other
 * threads become free. Included by thread.c, and by the model checker's clients of records
 * (tests/check/records.c). The including file defines struct w_self, w_self_or_null and
 * w_this_process as in thread.h; the variables of the list of records; generations, the number of
 * generations begun by this process and its ancestors; process_id(); tell(), called before records
 * become free; and wake_all().
 */

#define NO_RECORD ((struct w_self *)UINTPTR_MAX)

enum { BEGINNING = 1, AWAITED = 2, BEGUN = 4 };

/*
 * The record of the thread that forked, or NO_RECORD; NULL if that thread is unknown. A thread with
 * a record that finds its process not begun is that thread: all others get their records later.
 */
static struct w_self *forker(void)
{
	struct w_self *noted = atomic_load(&w_this_process.forker);

	return noted ? noted : w_self_or_null;
}

/*
 * Frees all records but @record, that of the thread which has begun the process, in @generation.
 * Their used nodes stay used: a lock held by such a thread still contains them.
 */
static void orphan(uint32_t generation, struct w_self *record)
{
	uint32_t count = atomic_load(&record_count);

	tell();
	if (record != NO_RECORD) {
		count--;
		atomic_store(&record->owner,
			     (uint64_t)generation << 32 | atomic_load(&w_this_process.number));
	}
	atomic_store(&free_count, count);
	atomic_store(&w_this_process.orphaned, 1);
}

static uint32_t begin(void)
{
	/* relaxed: no other thread of the process adds to it */
	uint32_t generation = w_fetch_add_relaxed(&generations, 1), unknown = 0;
	struct w_self *record = forker();

	atomic_compare_exchange_strong(&w_this_process.number, &unknown, process_id());
	if (generation && record)
		orphan(generation, record);
	atomic_store(&w_this_process.generation, generation + 1);
	/* An exchange: a thread that it does not find waiting sees the generation. */
	if (atomic_exchange(&w_this_process.beginning, BEGUN) & AWAITED)
		wake_all(&w_this_process.generation);
	return generation;
}

/* Sleeps until another thread has begun the process. */
static uint32_t await_beginning(void)
{
	uint32_t generation;

	(void)atomic_fetch_or(&w_this_process.beginning, AWAITED);
	while (!(generation = atomic_load(&w_this_process.generation)))
		w_park(&w_this_process.generation, 0, NULL);
	return generation - 1;
}

/* Begins the process unless another thread has or does. Returns the generation. */
static uint32_t begin_once(void)
{
	uint32_t none = 0;

	return atomic_compare_exchange_strong(&w_this_process.beginning, &none, BEGINNING)
		       ? begin()
		       : await_beginning();
}
