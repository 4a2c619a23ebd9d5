/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The list of threads' records. Included by thread.c, and by the model checker's clients of it
 * (tests/check/records.c). The including file defines struct w_self with owner, id and next; the
 * variables of the list; CHUNK, the bytes of records allocated at a time; w_keep(); and is_vacant()
 * of an owner, and is_dead() of a record's owner.
 */

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
		if (!self)
			self = atomic_load(&records);
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
		if (!is_dead(self, owner, caller))
			alive++;
		else if (claim(self, owner, 0))
			atomic_fetch_add(&free_count, 1);
	}
	atomic_store(&scan_at, 2 * alive + 32);
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

static struct w_self *get_record(uint64_t owner)
{
	struct w_self *self;

	while (!(self = find_free(owner))) {
		/* Do not wait for another thread's scan: this thread may keep it from its CPU. */
		if (atomic_load(&record_count) >= atomic_load(&scan_at) && free_dead(owner))
			continue;
		if ((self = new_record(owner)))
			break;
		wait_for_memory(owner);
	}
	return self;
}
