/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Threads' records: their owners, and the list in which a thread without a record finds one.
 * Included by thread.c, and by the model checker's clients of records (tests/check/records.c). The
 * including file defines struct w_self, w_self_or_null and w_this_process as in thread.h, the
 * variables of the list, and:
 *
 *   CHUNK, w_keep()              the bytes of records allocated at a time, and their allocation
 *   SCAN_SLACK                   records beyond twice the living threads that are not scanned for
 *   thread_id(), process_id()    the caller's, asked of the kernel
 *   kernel_marks, life_word()    whether the kernel marks the ends of threads; a record's mark
 *   hold_life()                  has the calling thread's end marked in its record; may fail
 *   is_known()                   whether the kernel knows a thread, of this process or a guest
 *   settle_nodes()               frees what a record's previous thread was choosing as it ended
 */

/* ---- A record's owner: its thread's id, and the generation of that thread's process ---- */

/*
 * A vfork child, or another process that shares our memory, has threads that are not ours: guests.
 * A guest that finds no record in the thread-local storage, which it shares with the thread that
 * created it, does not store one there.
 */
#define OWNER_GUEST (1u << 31)

static uint64_t owner_of(uint32_t tid)
{
	return (uint64_t)w_fork_generation() << 32 | tid;
}

static uint64_t caller_as_owner(void)
{
	uint32_t tid = thread_id();

	/*
	 * Not w_fork_generation(): a new thread is ordered after what was done before the process
	 * began.
	 */
	(void)w_process_begin();
	return owner_of(process_id() == w_process() ? tid : tid | OWNER_GUEST);
}

static bool is_guest(uint64_t owner)
{
	return owner & OWNER_GUEST;
}

static bool is_of_another_process(uint64_t owner)
{
	return owner >> 32 != w_fork_generation();
}

/* Returns whether a record of @owner is free. */
static bool is_vacant(uint64_t owner)
{
	return !owner || (is_of_another_process(owner) && atomic_load(&w_this_process.orphaned));
}

/*
 * Returns whether @owner, the owner of @self, has ended. @caller is a thread of this process
 * without a record: a record with its id belongs to a dead thread.
 */
static bool is_dead(struct w_self *self, uint64_t owner, uint64_t caller)
{
	if (owner == caller)
		return true;
	/* It may be the thread that forked. */
	if (is_of_another_process(owner))
		return false;
	if (!kernel_marks || is_guest(owner))
		return !is_known((uint32_t)owner & ~OWNER_GUEST, is_guest(owner));
	return atomic_load(&self->held_by) == owner && (life_word(self) & FUTEX_OWNER_DIED);
}

/* ---- The list ---- */

static bool claim(struct w_self *self, uint64_t from, uint64_t owner)
{
	return atomic_compare_exchange_strong(&self->owner, &from, owner);
}

/* Claims a free record for @owner, or returns NULL. */
static struct w_self *find_free(uint64_t owner)
{
	struct w_self *start = atomic_load(&cursor), *self;
	uint32_t steps = atomic_load(&record_count);
	uint64_t seen;

	if (!atomic_load(&free_count))
		return NULL;
	for (self = start; steps--; self = self->next ? self->next : atomic_load(&records)) {
		/* The list may lack counted records, which threads were adding at a fork. */
		if (!self && !(self = atomic_load(&records)))
			return NULL;
		seen = atomic_load(&self->owner);
		if (is_vacant(seen) && claim(self, seen, owner)) {
			atomic_fetch_sub(&free_count, 1);
			atomic_store(&cursor, self->next);
			return self;
		}
	}
	return NULL;
}

/*
 * Frees the records of threads that have ended. @caller has none. Returns false if another thread
 * is already doing it.
 */
static bool free_dead(uint64_t caller)
{
	uint32_t alive = 0;
	uint64_t owner;

	if (atomic_exchange(&w_this_process.scanning, 1))
		return false;
	for (struct w_self *self = atomic_load(&records); self; self = self->next) {
		owner = atomic_load(&self->owner);
		if (is_vacant(owner))
			continue;
		if (!is_dead(self, owner, caller)) {
			alive++;
			continue;
		}
		/* A new owner with the same id must not seem to have ended before it begins. */
		atomic_store(&self->held_by, 0);
		if (claim(self, owner, 0))
			atomic_fetch_add(&free_count, 1);
	}
	atomic_store(&scan_at, 2 * alive + SCAN_SLACK);
	atomic_store(&w_this_process.scanning, 0);
	return true;
}

/*
 * Adds the record @self to the list. Sets its id first: a free record may be claimed once it is in.
 */
static void add(struct w_self *self)
{
	struct w_self *first = atomic_load(&records);

	/* relaxed: ids only have to differ */
	self->id = w_fetch_add_relaxed(&record_count, 1) + 1;
	do
		self->next = first;
	/* release: the id, and the link; the list is read by seq_cst loads */
	while (!w_compare_exchange_release(&records, &first, self));
}

/*
 * Makes a record in a chunk of new memory, whose other records are free. Returns NULL without
 * memory.
 */
static struct w_self *new_record(uint64_t owner)
{
	struct w_self *chunk = w_keep(CHUNK);

	if (!chunk)
		return NULL;
	atomic_store(&chunk[0].owner, owner);
	add(&chunk[0]);
	for (size_t i = 1; i < CHUNK / sizeof(*chunk); i++) {
		add(&chunk[i]);
		atomic_fetch_add(&free_count, 1);
	}
	return chunk;
}

/* If there is no memory for a record, the end of a thread may free one. */
static void wait_for_memory(uint64_t owner)
{
	(void)free_dead(owner);
	w_yield();
}

/* Claims a record of a thread that has ended, if it is time to look for them, or returns NULL. */
static struct w_self *find_dead(uint64_t owner)
{
	/* Do not wait for another thread's scan: this thread may keep it from its CPU. */
	return atomic_load(&record_count) >= atomic_load(&scan_at) && free_dead(owner)
		       ? find_free(owner)
		       : NULL;
}

static struct w_self *get_record(uint64_t owner)
{
	struct w_self *self;

	while (!(self = find_free(owner)) && !(self = find_dead(owner)) &&
	       !(self = new_record(owner)))
		wait_for_memory(owner);
	return self;
}

/* ---- The caller's record ---- */

/* The record of @owner, or NULL. */
static struct w_self *find_own(uint64_t owner)
{
	struct w_self *self = atomic_load(&records);

	while (self && atomic_load(&self->owner) != owner)
		self = self->next;
	return self;
}

/* The caller is the owner of @self from now on, until the kernel marks its end there. */
static void begin_life(struct w_self *self, uint64_t owner)
{
	if (hold_life(self, owner))
		atomic_store(&self->held_by, owner);
}

static struct w_self *attach(void)
{
	uint64_t owner = caller_as_owner();
	struct w_self *self = is_guest(owner) ? find_own(owner) : NULL;

	if (!self) {
		self = get_record(owner);
		settle_nodes(self);
	}
	if (!is_guest(owner)) {
		w_self_or_null = self;
		begin_life(self, owner);
	}
	return self;
}
