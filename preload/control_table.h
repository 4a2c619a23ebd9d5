/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The table of a control page's locks, and waits by its settings. Included by control.c, and by
 * the model checker's clients (tests/check/control.c). The including file defines:
 *
 *   page       the mapped page
 *   addresses  of the locks of the page, in the same order
 *   adding     a thread adds a lock to the table
 *   sandboxed  children make no page
 *   made       1 + the fork generation of the process that made the page; 0: none
 *   tried      the same of the last process that tried to
 *   make()     as in control.c
 */

#define PROBES 64u
/* Addresses in the table that are no locks'. */
enum { NEVER_USED, FREED };

/* ---- The page ---- */

/* Makes the page of this process, unless a thread has tried. False if there is none yet. */
static bool make_once(void)
{
	uint32_t self = w_fork_generation() + 1, seen = w_load_relaxed(&tried);

	/* relaxed: one thread of the process succeeds, and nothing else depends on it */
	if (seen == self || !w_compare_exchange_relaxed(&tried, &seen, self) || !make())
		return false;
	for (uint32_t i = 0; i < CONTROL_LOCKS; i++)
		w_store_relaxed(&addresses[i], NEVER_USED);
	w_store_relaxed(&adding, 0);
	/* release: pairs with the acquire in has_page() */
	w_store_release(&made, self);
	return true;
}

/* Whether the process has a page, which a forked child makes now. */
static bool has_page(void)
{
	int saved = errno;
	bool has;

	/* acquire: pairs with the release in make_once(); the mapping, and an empty table */
	if (w_likely(w_load_acquire(&made) == w_fork_generation() + 1))
		return true;
	has = !w_load_relaxed(&sandboxed) && make_once();
	errno = saved;
	return has;
}

/* ---- The table ---- */

static uint32_t place(uint64_t address, uint32_t probe)
{
	return (address_hash(address, CONTROL_LOCKS_BITS) + probe) % CONTROL_LOCKS;
}

/* Finds the lock at @address. CONTROL_LOCKS: it is not in the table. */
static uint32_t find(uint64_t address)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t at = place(address, i);
		/* acquire: pairs with the release in add(); what the page has about it */
		uint64_t seen = w_load_acquire(&addresses[at]);

		if (seen == address)
			return at;
		if (seen == NEVER_USED)
			break;
	}
	return CONTROL_LOCKS;
}

/* Finds a place for a lock at @address. CONTROL_LOCKS: there is none. */
static uint32_t find_place(uint64_t address)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t at = place(address, i);
		/* acquire: pairs with the release in control_forget_slow(); the page without it */
		uint64_t seen = w_load_acquire(&addresses[at]);

		if (seen == NEVER_USED || seen == FREED)
			return at;
	}
	return CONTROL_LOCKS;
}

/* As the only thread that adds: adds @subject, unless another thread has. Returns its place. */
static uint32_t add(const struct control_subject *subject)
{
	uint32_t at = find(subject->address);
	struct control_lock *added;

	if (at != CONTROL_LOCKS)
		return at;
	at = find_place(subject->address);
	if (at == CONTROL_LOCKS) {
		(void)w_fetch_add_relaxed(&page->unlisted, 1);
		return at;
	}
	added = &page->locks[at];
	added->site = subject->site;
	added->own = subject->own;
	added->rule = subject->rule_line;
	snprintf(added->lock, sizeof(added->lock), "%s", subject->lock);
	added->is_rw = subject->is_rw;
	w_store_relaxed(&added->wanted, 0);
	w_store_relaxed(&added->waits, 0);
	w_store_relaxed(&added->waiting, 0);
	/* release: for readers of the page, which see the address last */
	w_store_release(&added->address, subject->address);
	/* release: pairs with the acquire in find() */
	w_store_release(&addresses[at], subject->address);
	return at;
}

/*
 * Finds or adds @subject. Returns its place; CONTROL_LOCKS: there is none, or another thread adds a
 * lock, and this one enters the table at a later wait.
 */
static uint32_t enter(const struct control_subject *subject)
{
	uint32_t at = find(subject->address);

	/* acquire: pairs with the release below; what the last thread has added */
	if (w_likely(at != CONTROL_LOCKS) || w_exchange_acquire(&adding, 1))
		return at;
	at = add(subject);
	w_store_release(&adding, 0);
	return at;
}

void control_forget_slow(const void *lock)
{
	uint32_t at;

	if (w_load_acquire(&made) != w_fork_generation() + 1)
		return;
	at = find((uintptr_t)lock);
	if (at == CONTROL_LOCKS)
		return;
	/* relaxed: a reader of the page may still see the lock */
	w_store_relaxed(&page->locks[at].address, 0);
	/* release: pairs with the acquire in find_place(); the address in the page */
	w_store_release(&addresses[at], FREED);
}

/* ---- Waits ---- */

/* Reads the settings of @known (NULL: not in the page), or of all locks like @subject. */
static bool read_settings(const struct control_subject *subject, struct control_lock *known,
			  uint32_t *settings)
{
	/* relaxed, both: one word, which is checked and not followed */
	uint64_t wanted = known ? w_load_relaxed(&known->wanted) : 0,
		 of_all = w_load_relaxed(subject->is_rw ? &page->rw_wanted : &page->wanted);

	return live_settings(wanted, settings) ||
	       (!subject->rule_line && live_settings(of_all, settings));
}

bool control_begin(struct control_wait *wait, const struct control_subject *subject,
		   uint32_t *settings)
{
	uint32_t at;

	wait->generation = w_fork_generation();
	wait->known = NULL;
	if (!has_page())
		return false;
	at = enter(subject);
	if (at != CONTROL_LOCKS) {
		wait->known = &page->locks[at];
		/* relaxed, both: figures */
		(void)w_fetch_add_relaxed(&wait->known->waits, 1);
		(void)w_fetch_add_relaxed(&wait->known->waiting, 1);
	}
	return subject->own && read_settings(subject, wait->known, settings);
}

void control_end(const struct control_wait *wait)
{
	/* relaxed: a figure. A signal handler may have forked: the page is another one then. */
	if (wait->known && w_likely(wait->generation == w_fork_generation()))
		(void)w_fetch_add_relaxed(&wait->known->waiting, (uint32_t)-1);
}
