/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The table of a control page's mutexes, and waits by its settings. Included by control.c, and by
 * the model checker's clients (tests/check/control.c). The including file defines:
 *
 *   page       the mapped page
 *   addresses  of the mutexes of the page, in the same order
 *   adding     a thread adds a mutex to the table
 *   sandboxed  children make no page
 *   made       1 + the fork generation of the process that made the page; 0: none
 *   tried      the same of the last process that tried to
 *   make()     as in control.c
 */

#define PROBES 64u
/* Addresses in the table that are no mutexes'. */
enum { NEVER_USED, FREED };

/* ---- The page ---- */

/* Makes the page of this process, unless a thread has tried. False if there is none yet. */
static bool make_once(void)
{
	uint32_t self = w_fork_generation() + 1, seen = w_load_relaxed(&tried);

	/* relaxed: one thread of the process succeeds, and nothing else depends on it */
	if (seen == self || !w_compare_exchange_relaxed(&tried, &seen, self) || !make())
		return false;
	for (uint32_t i = 0; i < CONTROL_MUTEXES; i++)
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
	return (address_hash(address, CONTROL_MUTEXES_BITS) + probe) % CONTROL_MUTEXES;
}

/* Finds the mutex at @address. CONTROL_MUTEXES: it is not in the table. */
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
	return CONTROL_MUTEXES;
}

/* Finds a place for a mutex at @address. CONTROL_MUTEXES: there is none. */
static uint32_t find_place(uint64_t address)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t at = place(address, i);
		/* acquire: pairs with the release in control_forget_slow(); the page without it */
		uint64_t seen = w_load_acquire(&addresses[at]);

		if (seen == NEVER_USED || seen == FREED)
			return at;
	}
	return CONTROL_MUTEXES;
}

/* As the only thread that adds: adds @m, unless another thread has. Returns its place. */
static uint32_t add(const struct mutex *m, const struct any_ops *ops, const struct rule *rule)
{
	uint64_t address = (uintptr_t)m;
	uint32_t at = find(address);
	struct control_mutex *added;

	if (at != CONTROL_MUTEXES)
		return at;
	at = find_place(address);
	if (at == CONTROL_MUTEXES) {
		(void)w_fetch_add_relaxed(&page->unlisted, 1);
		return at;
	}
	added = &page->mutexes[at];
	added->site = mutex_is_plain(m) ? m->site : 0;
	added->own = any_is_default(ops) ? live_word(ops->settings) : 0;
	added->rule = rule ? rule->line : 0;
	snprintf(added->lock, sizeof(added->lock), "%s", ops->name);
	w_store_relaxed(&added->wanted, 0);
	w_store_relaxed(&added->waits, 0);
	w_store_relaxed(&added->waiting, 0);
	/* release: for readers of the page, which see the address last */
	w_store_release(&added->address, address);
	/* release: pairs with the acquire in find() */
	w_store_release(&addresses[at], address);
	return at;
}

/*
 * Finds or adds @m. Returns its place; CONTROL_MUTEXES: there is none, or another thread adds a
 * mutex, and this one enters the table at a later wait.
 */
static uint32_t enter(const struct mutex *m, const struct any_ops *ops, const struct rule *rule)
{
	uint32_t at = find((uintptr_t)m);

	/* acquire: pairs with the release below; what the last thread has added */
	if (w_likely(at != CONTROL_MUTEXES) || w_exchange_acquire(&adding, 1))
		return at;
	at = add(m, ops, rule);
	w_store_release(&adding, 0);
	return at;
}

void control_forget_slow(const struct mutex *m)
{
	uint32_t at;

	if (w_load_acquire(&made) != w_fork_generation() + 1)
		return;
	at = find((uintptr_t)m);
	if (at == CONTROL_MUTEXES)
		return;
	/* relaxed: a reader of the page may still see the mutex */
	w_store_relaxed(&page->mutexes[at].address, 0);
	/* release: pairs with the acquire in find_place(); the address in the page */
	w_store_release(&addresses[at], FREED);
}

/* ---- Waits ---- */

/*
 * Waits by the settings of @known (NULL: not in the page), or else without a @rule by those of all
 * mutexes, or else by those of @ops.
 */
static bool wait_controlled(struct mutex *m, const struct w_deadline *deadline,
			    const struct any_ops *ops, const struct rule *rule,
			    struct control_mutex *known)
{
	/* relaxed, both: one word, which is checked and not followed */
	uint64_t wanted = known ? w_load_relaxed(&known->wanted) : 0,
		 of_all = rule ? 0 : w_load_relaxed(&page->wanted);
	struct any_ops changed;

	if ((wanted || of_all) && any_is_default(ops)) {
		changed = *ops;
		if (!live_settings(wanted, changed.settings))
			(void)live_settings(of_all, changed.settings);
		ops = &changed;
	}
	return rules_wait_by(ops, m, deadline);
}

bool control_wait(struct mutex *m, const struct w_deadline *deadline, const struct any_ops *ops,
		  const struct rule *rule)
{
	uint32_t generation = w_fork_generation(), at;
	struct control_mutex *known;
	bool taken;

	if (!has_page())
		return rules_wait_by(ops, m, deadline);
	at = enter(m, ops, rule);
	if (at == CONTROL_MUTEXES)
		return wait_controlled(m, deadline, ops, rule, NULL);
	known = &page->mutexes[at];
	/* relaxed, all: figures */
	(void)w_fetch_add_relaxed(&known->waits, 1);
	(void)w_fetch_add_relaxed(&known->waiting, 1);
	taken = wait_controlled(m, deadline, ops, rule, known);
	/* A signal handler may have forked. */
	if (w_likely(generation == w_fork_generation()))
		(void)w_fetch_add_relaxed(&known->waiting, (uint32_t)-1);
	return taken;
}
