/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of the preload library's control page (preload/control_table.h) and of the words that
 * carry a lock's settings (lib/live.h). Another process writes any words at any moment: a thread
 * waits by its lock's own settings or by valid ones of one word, and never by those of a lock that
 * was destroyed or has another address. A child has a page of its own. locks/shfl_mutex.c and
 * locks/shfl_rw.c have the locks themselves under settings that change.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define W_HIDDEN
#define CONTROL_LOCKS_BITS 1
#include "check.h"
#include "entry.h"

/* All locks: lib/settings.h has their settings. */
#pragma GCC diagnostic ignored "-Wunused-function"
#include "all.h"

/* As in wait.h: lib/any.h checks its fields. */
struct user_deadline {
	clockid_t clock;
	struct timespec at;
};

#define w_deadline user_deadline
#include "../../lib/live.c"
#include "../../preload/control.h"
#include "../../preload/control_page.h"
#include "../../preload/hash.h"

/* Of a size with which both have the same place in the table. */
struct mutex {
	struct ttas lock;
	uint64_t site;
};

struct memory {
	struct control_page page;
	W_ATOMIC(uint64_t) addresses[CONTROL_LOCKS];
	W_ATOMIC(uint32_t) adding, made, tried, sandboxed;
	struct mutex mutexes[2];
	uint32_t entered[2]; /* under the mutex */
};

struct notes {
	uint32_t entered[2];
	uint32_t pages[2]; /* made, by fork generation */
	bool changes[2];   /* by mutex: another process may have changed its settings */
	bool invalid[3];   /* by settings: that process writes another word in their place */
	int error_number;
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)
#define SHARED_BYTES sizeof(struct memory)

#define page (&M->page)
#define addresses M->addresses
#define adding M->adding
#define made M->made
#define tried M->tried
#define sandboxed M->sandboxed
#undef errno
#define errno NOTES->error_number

/* ---- The environment that control_table.h and live.c require ---- */

static bool make(void)
{
	NOTES->pages[w_fork_generation()]++;
	w_store_relaxed(&page->wanted, 0);
	w_store_relaxed(&page->rw_wanted, 0);
	for (uint32_t i = 0; i < CONTROL_LOCKS; i++) {
		w_store_relaxed(&page->locks[i].address, 0);
		w_store_relaxed(&page->locks[i].wanted, 0);
		w_store_relaxed(&page->locks[i].waiting, 0);
	}
	return true;
}

static int lock_default(void *lock, const struct any_ops *ops)
{
	(void)lock, (void)ops;
	return 0;
}

enum { OWN, GIVEN, OF_ALL };

/* By OWN, GIVEN and OF_ALL: no two have a value in common. */
static const struct any_ops tables[] = {
	{.name = "shfl_mutex", .lock = lock_default, .settings = {4, POLICY_NUMA, 1024, 1}},
	{.name = "shfl_mutex", .lock = lock_default, .settings = {0, POLICY_FIFO, 1, 0}},
	{.name = "shfl_mutex",
	 .lock = lock_default,
	 .settings = {1000000000, POLICY_ROUTE, 1000000, 31}},
};

const struct any_ops *const any_default = &tables[OWN];

bool any_is_inlined(const struct any_ops *ops)
{
	return any_is_default(ops);
}

const struct any_ops *any_find(const char *spec, char *error, size_t size)
{
	(void)spec, (void)error, (void)size;
	return NULL;
}

const struct any_rw_ops *const any_rw_default = NULL;

const struct any_rw_ops *any_rw_find(const char *spec, char *error, size_t size)
{
	(void)spec, (void)error, (void)size;
	return NULL;
}

bool any_rw_names(const char *spec)
{
	(void)spec;
	return false;
}

bool spec_wrong(char *error, size_t size, const char *format, ...)
{
	(void)error, (void)size, (void)format;
	return false;
}

/* The index of these settings. */
static uint32_t whose(const uint32_t *settings)
{
	for (uint32_t i = OWN; i <= OF_ALL; i++)
		if (!memcmp(settings, tables[i].settings, sizeof(tables[i].settings)))
			return i;
	check_assert(!"settings of one word");
	return OWN;
}

#include "../../preload/control_table.h"
#undef w_deadline

/* ---- Threads ---- */

/* As rules_wait() of preload/rules.c. The lock itself is not of interest. */
static bool wait_controlled(uint32_t i)
{
	static const struct ttas_policy policy = {.wait = WAIT_SPIN};
	struct mutex *m = &M->mutexes[i];
	const struct control_subject subject = {.address = (uintptr_t)m,
						.site = m->site,
						.own = live_word(&tables[OWN]),
						.lock = tables[OWN].name,
						.is_rw = i == 1};
	uint32_t settings[SPEC_SETTINGS], by;
	struct control_wait wait;
	bool changed, taken;

	memcpy(settings, tables[OWN].settings, sizeof(settings));
	changed = control_begin(&wait, &subject, settings);
	by = whose(settings);
	check_assert(by == OWN || (NOTES->changes[i] && !NOTES->invalid[by]));
	check_assert(changed || by == OWN);
	check_outcome(0, by);
	taken = ttas_acquire(&m->lock, policy, NULL);
	control_end(&wait);
	return taken;
}

static bool is_listed(struct mutex *m)
{
	uint32_t at;

	if (w_load_acquire(&made) != w_fork_generation() + 1)
		return false;
	at = find((uintptr_t)m);
	if (at == CONTROL_LOCKS)
		return false;
	check_assert(w_load_relaxed(&page->locks[at].address) == (uintptr_t)m);
	return true;
}

/* Waits for the mutex, and returns whether the page has it. */
static bool lock_and_unlock(uint32_t i)
{
	static const struct ttas_policy policy = {.wait = WAIT_SPIN};
	struct mutex *m = &M->mutexes[i];
	bool listed;

	check_assert(wait_controlled(i));
	M->entered[i]++;
	(void)check_add(&NOTES->entered[i], 1);
	listed = is_listed(m);
	check_assert(ttas_release(&m->lock, policy));
	return listed;
}

static void same_mutex(uint32_t self)
{
	(void)self;
	lock_and_unlock(0);
}

static void two_mutexes(uint32_t self)
{
	lock_and_unlock(self % 2);
	lock_and_unlock(0);
}

/* As another process, gives all mutexes of the page the settings of @word. */
static void give_all(uint64_t word)
{
	for (uint32_t i = 0; i < CONTROL_LOCKS; i++)
		w_store_relaxed(&page->locks[i].wanted, word);
}

/* The word of settings, or an invalid one. */
static uint64_t any_word(uint32_t whose)
{
	uint64_t word = live_word(&tables[whose]);
	const uint64_t words[] = {
		word,
		0,
		~UINT64_C(0),
		word & ~PRESENT,
		word & ~(((UINT64_C(1) << BITS_batch) - 1) << SHIFT_batch),
		word | ((UINT64_C(1) << BITS_batch) - 1) << SHIFT_batch,
		word | ((UINT64_C(1) << BITS_patience) - 1) << SHIFT_patience,
		word | (uint64_t)POLICY_FAIR << SHIFT_policy,
		word | (uint64_t)POLICY_OWN << SHIFT_policy,
	};
	const uint32_t count = sizeof(words) / sizeof(words[0]);
	uint64_t chosen = CHECK_DO("word", CHECK_CHOOSE, CHECK_RELAXED, NULL, count, 0);

	NOTES->invalid[whose] = chosen != 0;
	return words[chosen];
}

/* Thread 0 is another process, which may write any words. */
static void be_changed(uint32_t self)
{
	if (self) {
		lock_and_unlock(0);
		lock_and_unlock(0);
		return;
	}
	give_all(any_word(GIVEN));
	w_store_relaxed(&page->wanted, any_word(OF_ALL));
}

/* Thread 0 is another process, which changes the settings of all mutexes; lock 1 is none. */
static void change_kinds(uint32_t self)
{
	if (self) {
		lock_and_unlock(1);
		lock_and_unlock(0);
		return;
	}
	w_store_relaxed(&page->wanted, live_word(&tables[GIVEN]));
}

/*
 * Thread 0 destroys its mutex, whose settings another process has changed, and makes a new one in
 * its memory. Thread 1 uses another mutex, which may get the place of the first one in the page.
 */
static void destroy(uint32_t self)
{
	if (self) {
		lock_and_unlock(1);
		lock_and_unlock(1);
		return;
	}
	if (lock_and_unlock(0))
		w_store_relaxed(&page->locks[find((uintptr_t)M->mutexes)].wanted,
				live_word(&tables[GIVEN]));
	NOTES->changes[0] = false;
	control_forget_slow(&M->mutexes[0]);
	lock_and_unlock(0);
}

/*
 * Thread 0 forks, where settings of all mutexes have been changed, while thread 1 may be adding a
 * mutex. Returns whether its mutex is listed in the child.
 */
static bool fork_and_lock(void)
{
	lock_and_unlock(0);
	give_all(live_word(&tables[GIVEN]));
	check_fork();
	check_create_threads();
	NOTES->changes[0] = NOTES->changes[1] = false;
	return lock_and_unlock(0);
}

static void forked(uint32_t self)
{
	if (!self)
		(void)fork_and_lock();
	else if (self == 1)
		lock_and_unlock(1);
	else {
		check_wait_to_be_created();
		lock_and_unlock(0);
	}
}

static void forked_alone(uint32_t self)
{
	if (self)
		lock_and_unlock(1);
	else
		check_assert(fork_and_lock());
}

/* The parent is in a sandbox, where its child may not make a page. */
static void forked_in_sandbox(uint32_t self)
{
	if (self)
		lock_and_unlock(1);
	else
		check_assert(!fork_and_lock());
}

/* ---- Starts and ends ---- */

static void prepare(void)
{
	check_assert(make_once());
}

static void prepare_changes(void)
{
	prepare();
	NOTES->changes[0] = NOTES->changes[1] = true;
}

/* Of the two locks, only the first is one that another process knows. */
static void prepare_destroy(void)
{
	prepare();
	NOTES->changes[0] = true;
}

static void prepare_sandbox(void)
{
	prepare_changes();
	w_store_relaxed(&sandboxed, true);
}

/* Each mutex has at most one place, and nobody waits. */
static void finish(void)
{
	for (uint32_t i = 0; i < 2; i++)
		check_assert(M->entered[i] == NOTES->entered[i]);
	for (uint32_t i = 0; i < CONTROL_LOCKS; i++)
		check_assert(!w_load_relaxed(&page->locks[i].waiting));
	check_assert(w_load_relaxed(&addresses[0]) <= FREED ||
		     w_load_relaxed(&addresses[0]) != w_load_relaxed(&addresses[1]));
	check_assert(NOTES->pages[0] == 1 && NOTES->pages[1] <= 1);
}

/* A thread of the parent may have been in the critical section. */
static void finish_fork(void)
{
	check_assert(NOTES->pages[1] == 1);
}

static void finish_sandbox(void)
{
	check_assert(!NOTES->pages[1]);
}

#define FORKS .flags = CHECK_CLIENT_FORKS

const struct check_client check_clients[] = {
	ENTRY("same/2", same_mutex, 2, NULL, "0", prepare, finish),
	ENTRY("same/3", same_mutex, 3, NULL, "0", prepare, finish, .bound = 2),
	ENTRY("two/2", two_mutexes, 2, NULL, "0", prepare, finish),
	ENTRY("changed/2", be_changed, 2, NULL, "0 1 2", prepare_changes, finish),
	ENTRY("kinds/2", change_kinds, 2, NULL, "0 1", prepare_destroy, finish),
	ENTRY("destroyed/2", destroy, 2, NULL, "0", prepare_destroy, finish),
	ENTRY("fork/2", forked_alone, 2, NULL, "0", prepare_changes, finish_fork, FORKS),
	ENTRY("fork/3", forked, 3, NULL, "0", prepare_changes, finish_fork, FORKS),
	ENTRY("fork/sandboxed/2", forked_in_sandbox, 2, NULL, "0", prepare_sandbox, finish_sandbox,
	      FORKS),
	{.name = NULL},
};
