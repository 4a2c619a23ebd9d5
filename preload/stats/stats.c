/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The counting. stats.h and file.h say what is counted where.
 *
 * A thread's rows are a cache: a lock's counts that lose their row to another lock are added to the lock's item, those of
 * a thread that has ended when another thread takes its place. So what is shared is written once in a while, and threads
 * without number and locks without number fit into what there is.
 *
 * An acquisition is tried first, so that it is known whether it has to wait; then the time is looked at, before and after
 * the wait. Of holds, the time is looked at for the first of each lock, and then for one in many, at random.
 *
 * A lock's item has the number of those who wait for it. A holder that releases the lock and sees one leaves its domain
 * there, and the next waiter to get the lock takes it away: that is a hand-over.
 *
 * What a thread does while it waits, looks for a row, or unwinds its stack, is not observed: signal handlers that lock,
 * and what the unwinder may lock.
 */
#include "stats.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config.h"
#include "observer.h"
#include "poundlock.h"
#include "preload.h"
#include "part/generation.h"
#include "shfl_mutex.h"
#include "rw/shfl_rw.h"
#include "region.h"
#include "stack.h"

bool stats_on;

struct any_ops stats_inner;
static struct any_rw_ops inner_rw;
static uint32_t hold_every;
static bool profile;

static struct stats_thread no_table;
static struct stats_row no_row;

#define SELF_BEGINS                                              \
	{                                                        \
		.table = &no_table, .last = { &no_row, &no_row } \
	}

static __thread struct self {
	struct stats_thread *table; /* no_table: not observed now */
	struct stats_row *last[2];  /* of the mutex, and of the readers-writer lock, taken last: often released next */
	struct stats_row *observed; /* the lock's that an operation is going on with */
	struct stats_thread *own;   /* the table, if there is one */
	uint32_t generation;        /* the fork generation of the process whose file this is about */
	uint32_t until_timed;       /* acquisitions until the next hold that is timed */
	uint32_t random;
	bool inside;
	bool refused; /* there was no room for a table */
} self __attribute__((tls_model("initial-exec"))) = SELF_BEGINS;

/* Where those count that are not observed. */
static struct stats_row *nowhere(void)
{
	_Static_assert(sizeof(struct stats_row) <= sizeof(w_block()->embedder), "it has no room");
	return (struct stats_row *)w_block()->embedder;
}

uint32_t stats_hold_every(bool all)
{
	return all ? 1 : 256;
}

/* What the calling thread does from here on is not observed, until it has its table again. */
static inline void unobserve(void)
{
	self.inside = true;
	self.table = &no_table;
	self.last[false] = &no_row;
	self.last[true] = &no_row;
}

static inline void raise_to(uint64_t *most, uint64_t value)
{
	if (*most < value)
		*most = value;
}

static uint32_t thread_now(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

W_SLOW static void leave_to_parent(void);

/*
 * Every operation begins with this: a child, however it was forked, must not count in its parent's file. What a vfork
 * child does is counted as its parent's thread's, whose memory it shares.
 */
static inline void see_to_fork(void)
{
	if (w_unlikely(self.generation != w_fork_generation()))
		leave_to_parent();
}

/* ---- A lock's item ---- */

#define PROBES 64u
/* Of the items, so many are for locks that somebody had to wait for. */
#define SPARE (STATS_LOCKS_MOST / 4)
/* How many locks in turn at one address have items of their own. */
#define LIVES_APART 8

/* Locks often lie in arrays. Of some strides a product's highest bits are but a few, and the next ones differ. */
static inline uint32_t hash(uint64_t key, int bits)
{
	uint64_t product = key * 0x9e3779b97f4a7c15;

	return (uint32_t)((product ^ product << bits) >> (64 - bits));
}

#define LOCK_SLOTS_BITS 15
_Static_assert(STATS_LOCK_SLOTS == 1u << LOCK_SLOTS_BITS, "a hash is a slot");

static uint32_t add_lock(uint64_t key, bool rw, bool contended)
{
	uint32_t index;
	struct stats_lock *item = stats_take(STATS_LOCKS, contended ? 0 : SPARE, &index);

	if (!item)
		return 0;
	item->address = key;
	item->kind = rw ? STATS_READERS_WRITER : 0;
	item->lives = 1;
	stats_module_note(key);
	/* release: pairs with the acquire in lock_of(); the rest of the item */
	w_store_release(&item->key, key);
	return index;
}

/* The index of the item of @key, made if there is none and room for one, which @contended locks find more of. Else 0. */
static uint32_t lock_of(uint64_t key, bool rw, bool contended)
{
	uint32_t start = hash(key, LOCK_SLOTS_BITS), ours = 0, seen;

	for (uint32_t i = 0; i < PROBES; i++) {
		W_ATOMIC(uint32_t) *slot = &stats_private->locks[(start + i) % STATS_LOCK_SLOTS];

		/* acquire: pairs with the release of the compare-exchange */
		seen = w_load_acquire(slot);
		if (!seen) {
			ours = ours ? ours : add_lock(key, rw, contended);
			if (!ours)
				break;
			if (w_compare_exchange_release(slot, &seen, ours + 1))
				return ours;
		}
		/* acquire: pairs with the release in add_lock() */
		if (w_load_acquire(&stats_lock_item(seen - 1)->key) == key)
			break;
		seen = 0;
	}
	if (ours) /* another thread was faster */
		w_store_relaxed(&stats_lock_item(ours)->key, 0);
	if (seen)
		return seen - 1;
	(void)w_fetch_add_relaxed(&stats_region->locks_unobserved, 1);
	return 0;
}

#define WAYS 4

/* Where few bits of a hash are used: what follows one another in an array has rows of its own, at the strides of locks. */
static inline struct stats_row *row_at(struct stats_thread *table, uint64_t key, uint32_t way)
{
	uint32_t row = (uint32_t)(key >> 4 ^ key * 0x9e3779b97f4a7c15 >> 57);

	return &table->rows[(row + way) % STATS_ROWS];
}

/* Marks all threads' rows of @key, whose lock is no more. */
static void forget_rows(uint64_t key)
{
	for (uint32_t i = 0; i < stats_used(STATS_THREADS); i++) {
		for (uint32_t way = 0; way < WAYS; way++) {
			uint64_t seen = key;

			(void)w_compare_exchange_relaxed(&row_at(stats_item(STATS_THREADS, i), key, way)->key, &seen,
							 key | STATS_STALE);
		}
	}
}

/* Leaves the item of @key to the past, if anybody has waited for the lock and it is not one of many at its address. */
static void forget(uint64_t key)
{
	uint32_t start = hash(key, LOCK_SLOTS_BITS), seen, lives = 0;
	struct stats_lock *item;

	for (uint32_t i = 0; i < PROBES; i++) {
		seen = w_load_acquire(&stats_private->locks[(start + i) % STATS_LOCK_SLOTS]);
		if (!seen)
			return;
		item = stats_lock_item(seen - 1);
		lives += item->address == key;
		if (w_load_acquire(&item->key) != key)
			continue;
		if (!w_load_relaxed(&item->stack))
			return;
		if (lives < LIVES_APART) {
			w_store_relaxed(&item->key, 0);
			forget_rows(key);
		} else {
			item->lives++;
		}
		return;
	}
}

void stats_forget_slow(const void *lock)
{
	see_to_fork();
	forget((uintptr_t)lock);
	forget((uintptr_t)lock + STATS_READERS);
}

/* ---- A row's end ---- */

static void add_to_sum(W_ATOMIC(uint64_t) *sum, uint64_t more)
{
	(void)w_fetch_add_relaxed(sum, more);
}

static void add_to_max(W_ATOMIC(uint64_t) *most, uint64_t value)
{
	uint64_t seen = w_load_relaxed(most);

	while (seen < value && !w_compare_exchange_relaxed(most, &seen, value))
		;
}

/* Keeps how often @thread took the lock of @row, which others wanted, too. */
static void keep_share(struct stats_thread *thread, struct stats_row *row)
{
	struct stats_share *share;
	uint32_t index;

	share = stats_take(STATS_SHARES, 0, &index);
	if (!share) {
		(void)w_fetch_add_relaxed(&stats_region->shares_unobserved, 1);
		return;
	}
	share->lock = row->lock;
	share->acquisitions = row->counts[STATS_acquisitions];
	/* release: for readers of the file */
	w_store_release(&share->thread, w_load_relaxed(&thread->serial));
}

/* Adds the counts of @row to its lock's, and frees it. */
static void merge(struct stats_thread *thread, struct stats_row *row)
{
	struct stats_lock *item = stats_lock_item(row->lock);
	uint64_t count;

	/* release, both: for readers of the file, who look at it before and after */
	w_store_release(&thread->merges, w_load_relaxed(&thread->merges) + 1);
	if (row->lock && w_load_relaxed(&item->stack) && row->counts[STATS_acquisitions])
		keep_share(thread, row);
	for (int i = 0; i < STATS_COUNTS; i++) {
		count = row->counts[i];
		if (!count)
			continue;
		switch (i) {
#define SUM add_to_sum
#define MAX add_to_max
#define COUNTER(name, how)                    \
	case STATS_##name:                    \
		how(&item->counts[i], count); \
		break;
			STATS_COUNTERS(COUNTER)
#undef COUNTER
#undef SUM
#undef MAX
		}
		row->counts[i] = 0;
	}
	row->since = 0;
	w_store_relaxed(&row->key, 0);
	w_store_release(&thread->merges, w_load_relaxed(&thread->merges) + 1);
}

/* ---- A thread's table ---- */

#define NOBODY UINT32_MAX

static W_ATOMIC(uint32_t) free_tables;
static W_ATOMIC(uint32_t) scan_at; /* how many tables there may be before those of dead threads are looked for */
static W_ATOMIC(uint32_t) scanning;
static W_ATOMIC(uint32_t) process;

#define SCAN_AT_LEAST 64u

static bool is_dead(uint32_t tid, uint32_t caller)
{
	/* relaxed: set before the first table is */
	return tid == caller || (syscall(SYS_tgkill, w_load_relaxed(&process), tid, 0) < 0 && errno == ESRCH);
}

/* Frees the tables of threads that have ended; the @caller has none, so that one with its number is a dead thread's. */
static void free_dead(uint32_t caller)
{
	uint32_t alive = 0, tid;

	if (w_exchange_acquire(&scanning, 1))
		return;
	for (uint32_t i = 0; i < stats_used(STATS_THREADS); i++) {
		struct stats_thread *thread = stats_item(STATS_THREADS, i);

		tid = w_load_relaxed(&thread->tid);
		if (!tid || tid == NOBODY)
			continue;
		if (!is_dead(tid, caller)) {
			alive++;
			continue;
		}
		if (!w_compare_exchange_acquire(&thread->tid, &tid, NOBODY))
			continue;
		for (int row = 0; row < STATS_ROWS; row++)
			if (w_load_relaxed(&thread->rows[row].key))
				merge(thread, &thread->rows[row]);
		stats_private->pending[i].key = 0;
		/* release: pairs with the acquire in find_free(); an empty table */
		w_store_release(&thread->tid, 0);
		(void)w_fetch_add_relaxed(&free_tables, 1);
	}
	w_store_relaxed(&scan_at, 2 * alive + SCAN_AT_LEAST);
	w_store_release(&scanning, 0);
}

static struct stats_thread *find_free(uint32_t tid)
{
	uint32_t none;

	if (!w_load_relaxed(&free_tables))
		return NULL;
	for (uint32_t i = 0; i < stats_used(STATS_THREADS); i++) {
		struct stats_thread *thread = stats_item(STATS_THREADS, i);

		none = 0;
		/* A table that was taken, but had no memory, looks free: its serial says that it never was used. */
		if (w_load_relaxed(&thread->serial) && !w_load_relaxed(&thread->tid) &&
		    w_compare_exchange_acquire(&thread->tid, &none, tid)) {
			(void)w_fetch_add_relaxed(&free_tables, (uint32_t)-1);
			return thread;
		}
	}
	return NULL;
}

static struct stats_thread *new_table(uint32_t tid)
{
	struct stats_thread *thread;
	uint32_t index;

	if (stats_used(STATS_THREADS) >= w_load_relaxed(&scan_at))
		return NULL;
	thread = stats_take(STATS_THREADS, 0, &index);
	if (thread)
		w_store_relaxed(&thread->tid, tid);
	return thread;
}

/* A table for a thread that has none; NULL if there is no room. */
static struct stats_thread *get_table(uint32_t tid)
{
	struct stats_thread *thread = find_free(tid);

	thread = thread ? thread : new_table(tid);
	if (thread)
		return thread;
	free_dead(tid);
	thread = find_free(tid);
	return thread ? thread : new_table(tid);
}

static uint32_t random_number(void)
{
	uint32_t x = self.random;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return self.random = x;
}

/* How many acquisitions it is to the next one that is timed: hold_every in the mean. */
static uint32_t next_timed(void)
{
	return 1 + random_number() % (2 * hold_every - 1);
}

static void begin_process(void)
{
	/* relaxed, both: the same whoever does it */
	w_store_relaxed(&process, (uint32_t)syscall(SYS_getpid));
	if (!w_load_relaxed(&scan_at))
		w_store_relaxed(&scan_at, SCAN_AT_LEAST);
}

/* Gives the calling thread its table. False if it has none for good. */
static bool attach(void)
{
	uint64_t serial;

	if (self.refused)
		return false;
	if (stats_region_open(false)) {
		begin_process();
		self.own = get_table(thread_now());
	}
	if (!self.own) {
		self.refused = true;
		(void)w_fetch_add_relaxed(&stats_region->threads_unobserved, 1);
		return false;
	}
	serial = w_fetch_add_relaxed(&stats_region->threads, 1) + 1;
	w_store_relaxed(&self.own->serial, serial);
	self.random = (uint32_t)serial * 2654435761u | 1;
	self.until_timed = next_timed();
	self.table = self.own;
	return true;
}

/* ---- A row ---- */

/* The first acquisitions of each lock are all timed: chance alone would hardly ever time a lock that is taken rarely. */
#define FIRST 256

/* How many of a new row's acquisitions are among the first of the lock @index. */
static uint16_t first_of(uint32_t index)
{
	uint64_t taken = index ? w_load_relaxed(&stats_lock_item(index)->counts[STATS_acquisitions]) : FIRST;

	return taken < FIRST ? (uint16_t)(FIRST - taken) : 0;
}

/* A row for a lock that has none: a free one, or that of the lock which was taken least, or is no more. */
static struct stats_row *make_row(struct stats_thread *table, uint64_t key, bool rw)
{
	struct stats_row *least = NULL, *row;
	uint64_t least_taken = UINT64_MAX, taken, there;

	for (uint32_t way = 0; way < WAYS; way++) {
		row = row_at(table, key, way);
		there = w_load_relaxed(&row->key);
		taken = !there || (there & STATS_STALE) ? 0 : row->counts[STATS_acquisitions] + 1;
		if (taken < least_taken) {
			least = row;
			least_taken = taken;
		}
	}
	if (w_load_relaxed(&least->key))
		merge(table, least);
	least->lock = lock_of(key, rw, false);
	least->item = stats_lock_item(least->lock);
	least->readers_writer = rw;
	least->first = first_of(least->lock);
	/* release: for readers of the file, and who makes the lock another's */
	w_store_release(&least->key, key);
	return least;
}

/* Neither the unwinder's locks nor those of signal handlers may come in between. */
W_SLOW static struct stats_row *row_slow(uint64_t key, bool rw)
{
	struct stats_row *row;
	int saved = errno;

	if (self.inside)
		return nowhere();
	self.inside = true;
	row = self.table != &no_table || attach() ? make_row(self.table, key, rw) : nowhere();
	self.inside = false;
	errno = saved;
	return row;
}

__attribute__((noinline)) static struct stats_row *row_elsewhere(struct stats_thread *table, uint64_t key)
{
	for (uint32_t way = 1; way < WAYS; way++)
		if (w_load_relaxed(&row_at(table, key, way)->key) == key)
			return row_at(table, key, way);
	return NULL;
}

/* The calling thread's row of the lock @key; NULL if it has none. */
static inline struct stats_row *row_if_any(uint64_t key)
{
	struct stats_thread *table = self.table;
	struct stats_row *row = row_at(table, key, 0);

	return w_likely(w_load_relaxed(&row->key) == key) ? row : row_elsewhere(table, key);
}

/* The calling thread's row of the lock @key, made if there is none. */
static inline struct stats_row *row_of(uint64_t key, bool rw)
{
	struct stats_row *row;

	see_to_fork();
	row = row_if_any(key);
	return w_likely(row) ? row : row_slow(key, rw);
}

/* ---- Events ---- */

static void hear(enum w_event event)
{
	see_to_fork();
	if (self.own)
		self.own->events[event]++;
	if (!self.observed)
		return;
	if (event == W_EVENT_park)
		self.observed->counts[STATS_parks]++;
	else if (event == W_EVENT_wake_in_cs)
		self.observed->counts[STATS_wakeups_in_section]++;
}

/* ---- Acquiring ---- */

W_SLOW static void time_hold(struct stats_row *row)
{
	self.until_timed = next_timed();
	row->since_taken = row->counts[STATS_acquisitions];
	row->since = w_now();
}

static inline void count_acquisition(struct stats_row *row, bool rw)
{
	uint64_t taken = ++row->counts[STATS_acquisitions];

	self.last[rw] = row;
	if (w_unlikely(!--self.until_timed) || w_unlikely(taken <= row->first))
		time_hold(row);
}

/* What is wanted of a lock, and how to wait for it. */
struct want {
	bool (*wait)(const struct want *want);
	void *lock;
	bool again;
	const struct w_deadline *deadline;
	void *caller;
};

static struct stats_pending *pending_of(struct stats_thread *table)
{
	return &stats_private->pending[table - (struct stats_thread *)stats_item(STATS_THREADS, 0)];
}

/* Who waits names a lock that nobody has waited for before, and is remembered in a profile. */
static void note_waiter(struct stats_thread *table, struct stats_row *row, void *caller)
{
	struct stats_pending *pending = pending_of(table);
	struct stats_lock *item = row->item;
	struct stats_frames stack;
	uint32_t none = 0, name;

	if (!row->lock) {
		/* There may be room for a lock that somebody waits for. */
		row->lock = lock_of(w_load_relaxed(&row->key), row->readers_writer, true);
		item = row->item = stats_lock_item(row->lock);
	}
	if (!profile && (w_load_relaxed(&item->stack) || !row->lock))
		return;
	stats_stack_capture(&stack, caller);
	if (row->lock && !w_load_relaxed(&item->stack)) {
		name = stats_stack_count(&stack, STATS_FIRST, row->lock, 0);
		/* A lock without a name has been contended, too. */
		(void)w_compare_exchange_relaxed(&item->stack, &none, name ? name : UINT32_MAX);
	}
	if (profile && !pending->key) {
		pending->stack.depth = stack.depth;
		memcpy(pending->stack.frames, stack.frames, stack.depth * sizeof(stack.frames[0]));
	}
}

/* Counts whether the lock, which @item is of, came from a holder of this domain or another, if it was handed over. */
static void count_handover(struct stats_lock *item, struct stats_row *row)
{
	/* relaxed, both: only holders write it */
	uint32_t from = w_load_relaxed(&item->domain);

	if (!from)
		return;
	w_store_relaxed(&item->domain, 0);
	row->counts[from == (uint32_t)w_domain() + 1 ? STATS_handovers_local : STATS_handovers_remote]++;
}

static void count_arrival(struct stats_lock *item, struct stats_row *row)
{
	uint32_t queue;

	row->counts[STATS_contended]++;
	if (!row->lock)
		return;
	queue = w_fetch_add_relaxed(&item->waiting, 1) + 1;
	row->counts[STATS_queue_sum] += queue;
	raise_to(&row->counts[STATS_queue_max], queue);
}

/* Waits for a lock that was not free a moment ago. False at the deadline. */
W_SLOW static bool wait_observed(struct stats_row *row, const struct want *want)
{
	struct stats_thread *table = self.table;
	struct stats_lock *item;
	uint64_t from, took;
	bool taken;

	if (row == nowhere())
		return want->wait(want);
	unobserve();
	note_waiter(table, row, want->caller);
	item = row->item;
	count_arrival(item, row);
	self.observed = row;
	from = w_now();
	taken = want->wait(want);
	took = w_now() - from;
	self.observed = NULL;
	if (row->lock)
		(void)w_fetch_add_relaxed(&item->waiting, (uint32_t)-1);
	if (taken && row->lock)
		count_handover(item, row);
	row->counts[STATS_wait_ns] += took;
	raise_to(&row->counts[STATS_wait_max_ns], took);
	if (taken)
		count_acquisition(row, row->readers_writer);
	else
		row->counts[STATS_timeouts]++;
	if (profile && taken && !pending_of(table)->key) {
		pending_of(table)->ns = took;
		pending_of(table)->key = w_load_relaxed(&row->key);
	}
	self.table = table;
	self.inside = false;
	return taken;
}

static inline bool count_try(struct stats_row *row, bool rw, bool taken)
{
	if (w_likely(taken))
		count_acquisition(row, rw);
	else
		row->counts[STATS_trylock_failures]++;
	return taken;
}

/* ---- Releasing ---- */

/* After the release: the holder that was waited for, for @ns, and what it itself had waited. */
static void note_stacks(struct stats_row *row, uint64_t key, uint64_t ns, bool waited_for)
{
	struct stats_thread *table = self.table;
	struct stats_pending *pending = pending_of(table);
	struct stats_frames stack;

	unobserve();
	if (pending->key == key) {
		stats_stack_count(&pending->stack, STATS_WAITER, row->lock, pending->ns);
		pending->key = 0;
	}
	if (waited_for) {
		stats_stack_capture(&stack, __builtin_return_address(0));
		stats_stack_count(&stack, STATS_HOLDER, row->lock, ns);
	}
	self.table = table;
	self.inside = false;
}

/* Releases a lock that is timed or waited for. */
W_SLOW static bool release_observed(struct stats_row *row, uint64_t key, bool (*unlock)(void *lock), void *lock)
{
	/* A lock that another thread released has left a beginning behind. */
	uint64_t since = row->since_taken == row->counts[STATS_acquisitions] ? row->since : 0, took = 0;
	bool waited_for = w_load_relaxed(&row->item->waiting), released;
	uint32_t domain;

	row->since = 0;
	if (waited_for && row->lock) {
		domain = (uint32_t)w_domain() + 1;
		if (w_load_relaxed(&row->item->domain) != domain)
			w_store_relaxed(&row->item->domain, domain);
	}
	if (since)
		took = w_now() - since;
	self.observed = row;
	released = unlock(lock);
	self.observed = NULL;
	if (since) {
		row->counts[STATS_holds_timed]++;
		row->counts[STATS_hold_timed_ns] += took;
		raise_to(&row->counts[STATS_hold_timed_max_ns], took);
		if (row->since_taken <= row->first) {
			row->counts[STATS_holds_first]++;
			row->counts[STATS_hold_first_ns] += took;
		}
	}
	if (profile && (waited_for || pending_of(self.own)->key))
		note_stacks(row, key, took, waited_for);
	return released;
}

/* Whether nothing of the release of the lock of @row is to be observed. */
static inline bool is_quiet(const struct stats_row *row)
{
	return w_likely(!(row->since | w_load_relaxed(&row->item->waiting)));
}

static inline bool release(uint64_t key, bool rw, bool (*unlock)(void *lock), void *lock)
{
	struct stats_row *row;

	see_to_fork();
	row = self.last[rw];
	if (w_load_relaxed(&row->key) != key)
		row = row_if_any(key);
	return !row || is_quiet(row) ? unlock(lock) : release_observed(row, key, unlock, lock);
}

/* Whether the lock @key is the one taken last, and nothing of its release is to be observed. */
static inline bool last_and_quiet(uint64_t key, bool rw)
{
	struct stats_row *row;

	see_to_fork();
	row = self.last[rw];
	return w_likely(w_load_relaxed(&row->key) == key) && is_quiet(row);
}

/* ---- Mutexes ---- */

static bool wait_mutex(const struct want *want)
{
	if (want->deadline)
		return stats_inner.timedlock(want->lock, want->deadline);
	(void)stats_inner.lock(want->lock);
	return true;
}

W_SLOW static int lock_taken(struct stats_row *row, void *lock, void *caller)
{
	(void)wait_observed(row, &(struct want){.wait = wait_mutex, .lock = lock, .caller = caller});
	return 0;
}

__attribute__((noinline)) static int observed_lock(void *lock)
{
	struct stats_row *row = row_of((uintptr_t)lock, false);

	if (w_unlikely(!stats_inner.trylock(lock)))
		return lock_taken(row, lock, __builtin_return_address(0));
	count_acquisition(row, false);
	return 0;
}

/* The same of the default lock, without a call while it is free and its row is one of those that are looked at first. */
static int observed_default_lock(void *lock)
{
	struct stats_row *row;
	uint32_t seen;

	see_to_fork();
	row = row_at(self.table, (uintptr_t)lock, 0);
	if (w_unlikely(w_load_relaxed(&row->key) != (uintptr_t)lock))
		row = row_at(self.table, (uintptr_t)lock, 1);
	if (w_unlikely(w_load_relaxed(&row->key) != (uintptr_t)lock))
		return observed_lock(lock);
	if (w_unlikely(!shfl_mutex_take_free(lock, &seen)))
		return lock_taken(row, lock, __builtin_return_address(0));
	count_acquisition(row, false);
	return 0;
}

static bool observed_trylock(void *lock)
{
	struct stats_row *row = row_of((uintptr_t)lock, false);

	return count_try(row, false, stats_inner.trylock(lock));
}

/* Its caller has tried in vain before: that was no trylock of the program's. */
static bool observed_timedlock(void *lock, const struct w_deadline *deadline)
{
	struct stats_row *row = row_of((uintptr_t)lock, false);

	if (row->counts[STATS_trylock_failures])
		row->counts[STATS_trylock_failures]--;
	return wait_observed(row, &(struct want){.wait = wait_mutex,
						 .lock = lock,
						 .deadline = deadline,
						 .caller = __builtin_return_address(0)});
}

__attribute__((noinline)) static bool observed_unlock(void *lock)
{
	return release((uintptr_t)lock, false, stats_inner.unlock, lock);
}

static bool observed_default_unlock(void *lock)
{
	if (!last_and_quiet((uintptr_t)lock, false))
		return observed_unlock(lock);
	return shfl_mutex_release(lock, (struct shfl_mutex_policy){.wait = WAIT_PARK});
}

/* ---- Readers-writer locks ---- */

static uint64_t readers_of(void *lock)
{
	return (uintptr_t)lock + STATS_READERS;
}

static bool wait_reader(const struct want *want)
{
	if (want->deadline)
		return inner_rw.timedrdlock(want->lock, want->again, want->deadline);
	return inner_rw.rdlock(want->lock, want->again);
}

static bool wait_writer(const struct want *want)
{
	if (want->deadline)
		return inner_rw.timedwrlock(want->lock, want->deadline);
	inner_rw.wrlock(want->lock);
	return true;
}

/* Apart, so that who need not wait makes no room for what is wanted. */
W_SLOW static bool reader_waits(struct stats_row *row, void *lock, bool again, const struct w_deadline *deadline,
				void *caller)
{
	return wait_observed(row, &(struct want){.wait = wait_reader,
						 .lock = lock,
						 .again = again,
						 .deadline = deadline,
						 .caller = caller});
}

W_SLOW static bool writer_waits(struct stats_row *row, void *lock, const struct w_deadline *deadline, void *caller)
{
	return wait_observed(row,
			     &(struct want){.wait = wait_writer, .lock = lock, .deadline = deadline, .caller = caller});
}

static inline bool read_by(void *lock, bool again, const struct w_deadline *deadline, void *caller)
{
	struct stats_row *row = row_of(readers_of(lock), true);

	if (w_unlikely(!inner_rw.tryrdlock(lock, again)))
		return reader_waits(row, lock, again, deadline, caller);
	count_acquisition(row, true);
	return true;
}

static inline bool write_by(void *lock, const struct w_deadline *deadline, void *caller)
{
	struct stats_row *row = row_of((uintptr_t)lock, true);

	if (w_unlikely(!inner_rw.trywrlock(lock)))
		return writer_waits(row, lock, deadline, caller);
	count_acquisition(row, true);
	return true;
}

__attribute__((noinline)) static bool observed_rdlock(void *lock, bool again)
{
	return read_by(lock, again, NULL, __builtin_return_address(0));
}

/* The same of the default lock, without a call while it is free for readers and the one taken last. */
static bool observed_default_rdlock(void *lock, bool again)
{
	struct stats_row *row;
	uint32_t seen;

	see_to_fork();
	row = self.last[true];
	if (w_unlikely(w_load_relaxed(&row->key) != readers_of(lock)) ||
	    w_unlikely(!rw_enter(&((struct shfl_rw *)lock)->word, false, shfl_rw_against(false, again), 0, &seen)))
		return observed_rdlock(lock, again);
	count_acquisition(row, true);
	return true;
}

static bool observed_timedrdlock(void *lock, bool again, const struct w_deadline *deadline)
{
	return read_by(lock, again, deadline, __builtin_return_address(0));
}

static bool observed_tryrdlock(void *lock, bool again)
{
	struct stats_row *row = row_of(readers_of(lock), true);

	return count_try(row, true, inner_rw.tryrdlock(lock, again));
}

__attribute__((noinline)) static bool observed_rdunlock(void *lock)
{
	return release(readers_of(lock), true, inner_rw.rdunlock, lock);
}

static bool observed_default_rdunlock(void *lock)
{
	if (!last_and_quiet(readers_of(lock), true))
		return observed_rdunlock(lock);
	return shfl_rw_release_read(lock, (struct shfl_rw_policy){.wait = WAIT_PARK});
}

static void observed_wrlock(void *lock)
{
	(void)write_by(lock, NULL, __builtin_return_address(0));
}

static bool observed_timedwrlock(void *lock, const struct w_deadline *deadline)
{
	return write_by(lock, deadline, __builtin_return_address(0));
}

static bool observed_trywrlock(void *lock)
{
	struct stats_row *row = row_of((uintptr_t)lock, true);

	return count_try(row, true, inner_rw.trywrlock(lock));
}

static bool observed_wrunlock(void *lock)
{
	return release((uintptr_t)lock, true, inner_rw.wrunlock, lock);
}

/* ---- Locks of the program's own use of poundlock.h ---- */

/* Functions that count, and the lock's own, which are in another library. */
struct api_ops {
	struct any_ops ops;
	W_ATOMIC(const struct any_ops *) inner;
};

struct api_rw_ops {
	struct any_rw_ops ops;
	W_ATOMIC(const struct any_rw_ops *) inner;
};

/* As many as there are locks, and ways of waiting. */
#define API_MOST 256u

static struct api_ops api_ops[API_MOST];
static struct api_rw_ops api_rw_ops[API_MOST];

/* relaxed, both: a lock has the table since it was initialised, by a thread that hands the lock on */
static const struct any_ops *api_inner(const void *lock)
{
	return w_load_relaxed(&((const struct api_ops *)((const pound_lock_t *)lock)->pound_ops)->inner);
}

static const struct any_rw_ops *api_rw_inner(const void *lock)
{
	return w_load_relaxed(&((const struct api_rw_ops *)((const pound_rwlock_t *)lock)->pound_ops)->inner);
}

static struct stats_row *api_row(uint64_t key, bool rw)
{
	struct stats_row *row = row_of(key, rw);

	if (row->lock && row->counts[STATS_acquisitions] == 0) /* all threads that make a row store the same */
		stats_lock_item(row->lock)->kind = (rw ? STATS_READERS_WRITER : 0) | STATS_API;
	return row;
}

static bool api_wait(const struct want *want)
{
	const struct any_ops *inner = api_inner(want->lock);

	if (want->deadline)
		return inner->timedlock(want->lock, want->deadline);
	(void)inner->lock(want->lock);
	return true;
}

static int api_lock(void *lock)
{
	struct stats_row *row = api_row((uintptr_t)lock, false);

	if (api_inner(lock)->trylock(lock))
		count_acquisition(row, false);
	else
		(void)wait_observed(row, &(struct want){.wait = api_wait,
							.lock = lock,
							.caller = __builtin_return_address(0)});
	return 0;
}

static bool api_trylock(void *lock)
{
	return count_try(api_row((uintptr_t)lock, false), false, api_inner(lock)->trylock(lock));
}

/* Its caller has tried before: that was no trylock of the program's. */
static bool api_timedlock(void *lock, const struct w_deadline *deadline)
{
	struct stats_row *row = api_row((uintptr_t)lock, false);

	if (row->counts[STATS_trylock_failures])
		row->counts[STATS_trylock_failures]--;
	return wait_observed(row, &(struct want){.wait = api_wait,
						 .lock = lock,
						 .deadline = deadline,
						 .caller = __builtin_return_address(0)});
}

static bool api_unlock(void *lock)
{
	return release((uintptr_t)lock, false, api_inner(lock)->unlock, lock);
}

static bool api_wait_reader(const struct want *want)
{
	const struct any_rw_ops *inner = api_rw_inner(want->lock);

	if (want->deadline)
		return inner->timedrdlock(want->lock, want->again, want->deadline);
	return inner->rdlock(want->lock, want->again);
}

static bool api_wait_writer(const struct want *want)
{
	const struct any_rw_ops *inner = api_rw_inner(want->lock);

	if (want->deadline)
		return inner->timedwrlock(want->lock, want->deadline);
	inner->wrlock(want->lock);
	return true;
}

/* As poundlock.h's functions for a deadline have tried already, so has this one, and counts no failed trylock. */
static bool api_take(struct stats_row *row, const struct want *want, bool taken)
{
	if (!taken)
		return wait_observed(row, want);
	count_acquisition(row, true);
	return true;
}

static bool api_rdlock(void *lock, bool again)
{
	const struct want want = {.wait = api_wait_reader,
				  .lock = lock,
				  .again = again,
				  .caller = __builtin_return_address(0)};

	return api_take(api_row(readers_of(lock), true), &want, api_rw_inner(lock)->tryrdlock(lock, again));
}

static bool api_tryrdlock(void *lock, bool again)
{
	return count_try(api_row(readers_of(lock), true), true, api_rw_inner(lock)->tryrdlock(lock, again));
}

static bool api_timedrdlock(void *lock, bool again, const struct w_deadline *deadline)
{
	struct stats_row *row = api_row(readers_of(lock), true);

	if (row->counts[STATS_trylock_failures])
		row->counts[STATS_trylock_failures]--;
	return wait_observed(row, &(struct want){.wait = api_wait_reader,
						 .lock = lock,
						 .again = again,
						 .deadline = deadline,
						 .caller = __builtin_return_address(0)});
}

static bool api_full(void *lock)
{
	return api_rw_inner(lock)->full(lock);
}

static bool api_rdunlock(void *lock)
{
	return release(readers_of(lock), true, api_rw_inner(lock)->rdunlock, lock);
}

static void api_wrlock(void *lock)
{
	const struct want want = {.wait = api_wait_writer, .lock = lock, .caller = __builtin_return_address(0)};

	(void)api_take(api_row((uintptr_t)lock, true), &want, api_rw_inner(lock)->trywrlock(lock));
}

static bool api_trywrlock(void *lock)
{
	return count_try(api_row((uintptr_t)lock, true), true, api_rw_inner(lock)->trywrlock(lock));
}

static bool api_timedwrlock(void *lock, const struct w_deadline *deadline)
{
	struct stats_row *row = api_row((uintptr_t)lock, true);

	if (row->counts[STATS_trylock_failures])
		row->counts[STATS_trylock_failures]--;
	return wait_observed(row, &(struct want){.wait = api_wait_writer,
						 .lock = lock,
						 .deadline = deadline,
						 .caller = __builtin_return_address(0)});
}

static bool api_wrunlock(void *lock)
{
	return release((uintptr_t)lock, true, api_rw_inner(lock)->wrunlock, lock);
}

/* The table of @inner: one that has it, or a free one. @inner itself if there is neither, or there are no statistics. */
static const struct any_ops *observe_lock(const struct any_ops *inner)
{
	initialise();
	for (uint32_t i = 0; stats_on && i < API_MOST; i++) {
		const struct any_ops *seen = NULL;

		/* relaxed: the functions are constant */
		if (w_compare_exchange_relaxed(&api_ops[i].inner, &seen, inner) || seen == inner) {
			api_ops[i].ops = (struct any_ops){.name = inner->name,
							  .wait = inner->wait,
							  .lock = api_lock,
							  .trylock = api_trylock,
							  .timedlock = api_timedlock,
							  .unlock = api_unlock,
							  .destroy = inner->destroy};
			return &api_ops[i].ops;
		}
	}
	return inner;
}

static const struct any_rw_ops *observe_rwlock(const struct any_rw_ops *inner)
{
	initialise();
	for (uint32_t i = 0; stats_on && i < API_MOST; i++) {
		const struct any_rw_ops *seen = NULL;

		if (w_compare_exchange_relaxed(&api_rw_ops[i].inner, &seen, inner) || seen == inner) {
			api_rw_ops[i].ops = (struct any_rw_ops){.name = inner->name,
								.wait = inner->wait,
								.rdlock = api_rdlock,
								.tryrdlock = api_tryrdlock,
								.timedrdlock = api_timedrdlock,
								.full = api_full,
								.rdunlock = api_rdunlock,
								.wrlock = api_wrlock,
								.trywrlock = api_trywrlock,
								.timedwrlock = api_timedwrlock,
								.wrunlock = api_wrunlock};
			return &api_rw_ops[i].ops;
		}
	}
	return inner;
}

/* A wait for a pound_mutex_t, with what waits. */
struct mutex_want {
	struct want want;
	bool (*wait)(void *mutex, const struct w_deadline *deadline);
};

static bool wait_api_mutex(const struct want *want)
{
	return ((const struct mutex_want *)want)->wait(want->lock, want->deadline);
}

static bool observe_mutex_wait(void *mutex, const struct w_deadline *deadline,
			       bool (*wait)(void *mutex, const struct w_deadline *deadline))
{
	struct mutex_want want = {.want = {.wait = wait_api_mutex,
					   .lock = mutex,
					   .deadline = deadline,
					   .caller = __builtin_return_address(0)},
				  .wait = wait};

	struct stats_row *row;
	bool taken;

	initialise();
	if (!stats_on)
		return wait(mutex, deadline);
	row = api_row((uintptr_t)mutex, false);
	taken = wait_observed(row, &want.want);
	row->since = 0; /* the release may be one that is not observed */
	return taken;
}

static bool observe_mutex_release(void *mutex, bool (*unlock)(void *mutex))
{
	return stats_on ? release((uintptr_t)mutex, false, unlock, mutex) : unlock(mutex);
}

extern const struct pound_observer POUND_OBSERVER __attribute__((visibility("default")));

const struct pound_observer POUND_OBSERVER = {
	.lock = observe_lock,
	.rwlock = observe_rwlock,
	.mutex_wait = observe_mutex_wait,
	.mutex_release = observe_mutex_release,
};

/* ---- Fork ---- */

/* The first thread that comes here leaves the file, and all others what they know of it. */
W_SLOW static void leave_to_parent(void)
{
	static W_ATOMIC(uint32_t) left;

	self = (struct self)SELF_BEGINS;
	self.generation = w_fork_generation();
	if (!generation_claim(&left))
		return;
	stats_region_leave();
	/* relaxed, all: generation_settle() publishes them */
	w_store_relaxed(&free_tables, 0);
	w_store_relaxed(&scan_at, 0);
	w_store_relaxed(&scanning, 0);
	generation_settle(&left);
}

/* ---- Start ---- */

static struct any_ops observed = {
	.lock = observed_lock,
	.trylock = observed_trylock,
	.timedlock = observed_timedlock,
	.unlock = observed_unlock,
};

static struct any_rw_ops observed_rw = {
	.rdlock = observed_rdlock,
	.tryrdlock = observed_tryrdlock,
	.timedrdlock = observed_timedrdlock,
	.rdunlock = observed_rdunlock,
	.wrlock = observed_wrlock,
	.trywrlock = observed_trywrlock,
	.timedwrlock = observed_timedwrlock,
	.wrunlock = observed_wrunlock,
};

void stats_start(const char *folder, bool with_stacks, const struct any_ops **ops, const struct any_rw_ops **rw_ops)
{
	profile = with_stacks;
	hold_every = stats_hold_every(profile);
	if (!stats_region_reserve(folder, profile, (*ops)->name, *rw_ops ? (*rw_ops)->name : "native") ||
	    !stats_region_open(true))
		return;
	stats_stack_start();
	if (*ops == any_default) {
		observed.lock = observed_default_lock;
		observed.unlock = observed_default_unlock;
	}
	stats_inner = **ops;
	observed.name = stats_inner.name;
	observed.wait = stats_inner.wait;
	observed.leaves_middle = stats_inner.leaves_middle;
	observed.destroy = stats_inner.destroy;
	*ops = &observed;
	if (*rw_ops == any_rw_default) {
		observed_rw.rdlock = observed_default_rdlock;
		observed_rw.rdunlock = observed_default_rdunlock;
	}
	if (*rw_ops) {
		inner_rw = **rw_ops;
		observed_rw.name = inner_rw.name;
		observed_rw.wait = inner_rw.wait;
		observed_rw.full = inner_rw.full;
		*rw_ops = &observed_rw;
	}
	w_listener = hear;
	w_listening = true;
	stats_on = true;
}
