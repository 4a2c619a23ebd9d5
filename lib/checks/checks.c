/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The checks: checks.h has an overview, docs/debugging.md what is reported. */
#define _GNU_SOURCE
#include "checks.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BUCKETS 4096
#define CHUNK ((size_t)1 << 16)
#define THREADS (1u << 16) /* at once; further ones are not checked */
#define UNKNOWN UINT32_MAX /* a lock's generation: its unlock is not checked */
/* Keys below this need no memory of malloc. */
#define KEYS_IN_PLACE 32

enum state { STATE_NEW, STATE_STARTING, STATE_OFF, STATE_ON };

static W_ATOMIC(uint32_t) state;
static struct debug_mutex mutex; /* guards all that follows, but for the settings and the key */
static struct debug_lock **buckets;
static struct debug_hold *free_holds;
static struct debug_thread **threads; /* by number, from 1 */
static uint32_t thread_count;
static struct debug_thread *free_threads;

static bool aborts;
/* Bits: enum debug_error. By default those that correct programs often cause. */
static uint32_t excluded = 1u << DEBUG_held | 1u << DEBUG_leak;
static pthread_key_t key;
static bool has_key;

/* A thread's w_own.checks: twice the number of its record, if it has one, and INSIDE. */
#define INSIDE 1u

static struct debug_thread *self_or_null(void)
{
	return w_own.checks > INSIDE ? threads[w_own.checks / 2] : NULL;
}

static void go_out(void)
{
	w_own.checks &= ~INSIDE;
}

/* ---- Memory ---- */

void *debug_take(size_t size)
{
	static char *chunk;
	static size_t left;

	size = (size + 15) / 16 * 16;
	if (size > left) {
		left = size > CHUNK ? size : CHUNK;
		chunk = w_keep(left);
	}
	if (!chunk) {
		left = 0;
		/* relaxed: the checks end at some time */
		w_store_relaxed(&state, STATE_OFF);
		return NULL;
	}
	left -= size;
	return chunk + left;
}

/* ---- POUNDLOCK_DEBUG ---- */

static const char *const error_names[] = {
#define ERROR(name, line) #name,
	DEBUG_ERRORS(ERROR)
#undef ERROR
};

/* Whether @word, of @length characters, is @expected. */
static bool is(const char *word, size_t length, const char *expected)
{
	return length == strlen(expected) && !memcmp(word, expected, length);
}

/* Reads one word of the variable. False if it is unknown. */
static bool read_word(const char *word, size_t length)
{
	if (is(word, length, "1"))
		return true;
	if (is(word, length, "abort"))
		return aborts = true;
	for (unsigned i = 0; i < DEBUG_ERROR_KINDS; i++)
		if (is(word, length, error_names[i])) {
			excluded &= ~(1u << i);
			return true;
		} else if (length > 3 && !memcmp(word, "no-", 3) &&
			   is(word + 3, length - 3, error_names[i])) {
			excluded |= 1u << i;
			return true;
		}
	return false;
}

/* Reads the variable. Returns whether it asks for checks; @unset if it is empty. */
static bool read_environment(bool unset)
{
	const char *word = secure_getenv("POUNDLOCK_DEBUG");

	if (!word || !*word)
		return unset;
	if (!strcmp(word, "0"))
		return false;
	for (size_t length; *word; word += length + (word[length] == ',')) {
		length = strcspn(word, ",");
		if (!read_word(word, length)) {
			debug_say(
				"POUNDLOCK_DEBUG is 0, 1, or a list of abort, CHECK and no-CHECK; "
				"nothing is checked");
			return false;
		}
	}
	return true;
}

bool debug_is_asked(void)
{
	return read_environment(false);
}

/* ---- Threads ---- */

static void thread_ends(void *thread);

static void start(void)
{
	bool asked = read_environment(true);

	debug_mutex_lock(&mutex);
	buckets = asked ? debug_take(BUCKETS * sizeof(*buckets)) : NULL;
	threads = buckets ? debug_take(THREADS * sizeof(*threads)) : NULL;
	if (threads) {
		has_key = !pthread_key_create(&key, thread_ends) && key < KEYS_IN_PLACE;
		debug_stack_start();
	}
	debug_mutex_unlock(&mutex);
	/* release: pairs with the acquire in is_on(); all of the above */
	w_store_release(&state, threads ? STATE_ON : STATE_OFF);
}

static bool is_on(void)
{
	uint32_t seen = w_load_acquire(&state);

	if (w_unlikely(seen == STATE_NEW) &&
	    w_compare_exchange_relaxed(&state, &seen, STATE_STARTING))
		start();
	while (w_unlikely((seen = w_load_acquire(&state)) == STATE_STARTING))
		w_yield();
	return seen == STATE_ON;
}

/* A record that no thread has. NULL: there is no room. Called with the mutex. */
static struct debug_thread *take_thread(void)
{
	struct debug_thread *thread = free_threads;

	if (thread) {
		free_threads = thread->next_free;
		return thread;
	}
	if (thread_count + 1 == THREADS || !(thread = debug_take(sizeof(*thread))))
		return NULL;
	thread->number = ++thread_count;
	return threads[thread->number] = thread;
}

static struct debug_thread *begin_thread(void)
{
	struct debug_thread *self;

	debug_mutex_lock(&mutex);
	self = take_thread();
	debug_mutex_unlock(&mutex);
	if (!self)
		return NULL;
	/* A generation that is none: check_fork() sets it, and the thread's id. */
	*self = (struct debug_thread){.number = self->number, .generation = UNKNOWN};
	if (has_key)
		(void)pthread_setspecific(key, self);
	w_own.checks = self->number * 2 | INSIDE;
	return self;
}

static void check_fork(struct debug_thread *self)
{
	uint32_t generation = w_fork_generation();

	if (w_likely(self->generation == generation))
		return;
	self->generation = generation;
	self->tid = (uint32_t)syscall(SYS_gettid);
}

/* Enters the checks. NULL: there are none, or the thread is inside. */
static struct debug_thread *enter(void)
{
	struct debug_thread *self = self_or_null();

	if (w_unlikely(w_own.checks & INSIDE))
		return NULL;
	w_own.checks |= INSIDE;
	if (!is_on() || (!self && !(self = begin_thread()))) {
		go_out();
		return NULL;
	}
	check_fork(self);
	return self;
}

/* Prints what was found, if anything. The caller does not hold the mutex. */
static void publish(const struct debug_report *report)
{
	if (w_likely(!report->sites) || excluded >> report->error & 1)
		return;
	debug_print(report);
	if (aborts)
		abort();
}

/* Reports what was found, and leaves. */
static void leave(const struct debug_report *report)
{
	publish(report);
	go_out();
}

/* ---- Locks and holds ---- */

/* The record of the lock at @address, made if there is none. NULL without memory. */
static struct debug_lock *lock_at(const void *address)
{
	uintptr_t number = (uintptr_t)address;
	struct debug_lock **bucket = &buckets[(number >> 3) * 0x9e3779b97f4a7c15 >> 52], *lock;

	for (lock = *bucket; lock; lock = lock->next)
		if (lock->address == number)
			return lock;
	lock = debug_take(sizeof(*lock));
	if (!lock)
		return NULL;
	lock->address = number;
	lock->generation = w_fork_generation();
	lock->next = *bucket;
	*bucket = lock;
	return lock;
}

static void add_hold(struct debug_lock *lock, struct debug_thread *self, struct debug_stack *stack,
		     unsigned flags)
{
	struct debug_hold *hold = free_holds;

	if (hold)
		free_holds = hold->next_of_lock;
	else if (!(hold = debug_take(sizeof(*hold))))
		return;
	*hold = (struct debug_hold){lock, self, stack, flags, lock->holds, self->holds};
	lock->holds = self->holds = hold;
	lock->generation = self->generation;
}

static void remove_hold(struct debug_hold *hold)
{
	struct debug_hold **link = &hold->lock->holds;

	while (*link != hold)
		link = &(*link)->next_of_lock;
	*link = hold->next_of_lock;
	link = &hold->thread->holds;
	while (*link != hold)
		link = &(*link)->next_of_thread;
	*link = hold->next_of_thread;
	hold->next_of_lock = free_holds;
	free_holds = hold;
}

/* Removes the holds of a parent's threads, which do not exist in this process. */
static void drop_orphans(struct debug_lock *lock)
{
	struct debug_hold *next;

	for (struct debug_hold *hold = lock->holds; hold; hold = next) {
		next = hold->next_of_lock;
		if (hold->thread->generation != w_fork_generation())
			remove_hold(hold);
	}
}

/* The hold of @lock in the mode of @flags by @thread, or by any other thread than @not. */
static struct debug_hold *find_hold(const struct debug_lock *lock, unsigned flags,
				    const struct debug_thread *thread)
{
	for (struct debug_hold *hold = lock->holds; hold; hold = hold->next_of_lock)
		if ((!thread || hold->thread == thread) &&
		    !((hold->flags ^ flags) & POUND_WATCH_READ))
			return hold;
	return NULL;
}

static struct debug_hold *hold_of(const struct debug_lock *lock, const struct debug_thread *thread)
{
	for (struct debug_hold *hold = lock->holds; hold; hold = hold->next_of_lock)
		if (hold->thread == thread)
			return hold;
	return NULL;
}

/* ---- Reports ---- */

/*
 * Begins a report that the thread does something with @lock at @stack. False if that site has been
 * reported already.
 */
static bool begin_report(struct debug_report *report, enum debug_error error,
			 const struct debug_thread *self, const char *does,
			 const struct debug_lock *lock, struct debug_stack *stack)
{
	if (stack->reported >> error & 1)
		return false;
	stack->reported |= 1u << error;
	report->error = error;
	debug_add_site(report, (struct debug_site){self->tid, does, lock->address, 0, stack});
	return true;
}

static void add_holder(struct debug_report *report, const struct debug_hold *hold)
{
	if (hold)
		debug_add_site(report, (struct debug_site){hold->thread->tid,
							   hold->flags & POUND_WATCH_READ
								   ? "had locked for reading"
								   : "had locked",
							   hold->lock->address, 0, hold->stack});
}

static void add_maker(struct debug_report *report, const struct debug_lock *lock)
{
	if (lock->made_at)
		debug_add_site(report, (struct debug_site){lock->made_by, "had initialised",
							   lock->address, 0, lock->made_at});
}

static void add_release(struct debug_report *report, const struct debug_lock *lock)
{
	if (lock->released_at)
		debug_add_site(report, (struct debug_site){lock->released_by, "had unlocked",
							   lock->address, 0, lock->released_at});
}

/* ---- The checks ---- */

/* The objects of one check, while it holds the mutex. */
struct look {
	struct debug_thread *self;
	struct debug_lock *lock;
	struct debug_stack *stack; /* of the call */
	struct debug_report report;
};

/* False: there is nothing to check. Otherwise holds the mutex until end(). */
static bool begin(struct look *look, const void *address, void *caller)
{
	struct debug_stack captured;

	look->self = enter();
	if (!look->self)
		return false;
	look->report.sites = 0;
	debug_capture(&captured, caller);
	debug_mutex_lock(&mutex);
	look->lock = lock_at(address);
	look->stack = debug_stack_keep(&captured);
	if (w_likely(look->lock && look->stack)) {
		drop_orphans(look->lock);
		return true;
	}
	debug_mutex_unlock(&mutex);
	go_out();
	return false;
}

static void end(struct look *look)
{
	debug_mutex_unlock(&mutex);
	leave(&look->report);
}

/* Whether the holder may lock it again, which never waits. */
static bool is_again(const struct debug_hold *own, unsigned flags)
{
	return (flags & POUND_WATCH_RECURSIVE) ||
	       (own->flags & flags & POUND_WATCH_READ && flags & POUND_WATCH_AGAIN);
}

static const char *does(unsigned flags)
{
	return flags & POUND_WATCH_READ ? "locks for reading" : "locks";
}

void pound_debug_wait(const void *lock, unsigned flags)
{
	struct debug_hold *own;
	struct look look;

	if ((flags & POUND_WATCH_TRY) || !begin(&look, lock, __builtin_return_address(0)))
		return;
	own = hold_of(look.lock, look.self);
	if (!own)
		debug_order(look.self, look.lock, look.stack, &look.report);
	else if (!is_again(own, flags) && begin_report(&look.report, DEBUG_relock, look.self,
						       does(flags), look.lock, look.stack))
		add_holder(&look.report, own);
	end(&look);
}

void pound_debug_locked(const void *lock, unsigned flags)
{
	struct look look;

	if ((flags & POUND_WATCH_FAILED) || !begin(&look, lock, __builtin_return_address(0)))
		return;
	add_hold(look.lock, look.self, look.stack, flags);
	end(&look);
}

/* Reports an unlock by a thread that does not hold the lock. */
static void check_unlock(struct look *look, unsigned flags)
{
	struct debug_hold *other = find_hold(look->lock, flags, NULL);

	if (look->lock->generation != look->self->generation)
		return;
	if (begin_report(&look->report, other ? DEBUG_stranger : DEBUG_free, look->self, "unlocks",
			 look->lock, look->stack)) {
		if (look->lock->holds)
			add_holder(&look->report, other ? other : look->lock->holds);
		else
			add_release(&look->report, look->lock);
	}
	if (other)
		remove_hold(other);
}

void pound_debug_unlock(const void *lock, unsigned flags)
{
	struct debug_hold *own;
	struct look look;

	if (!begin(&look, lock, __builtin_return_address(0)))
		return;
	own = find_hold(look.lock, flags, look.self);
	if (own)
		remove_hold(own);
	else if (!(flags & POUND_WATCH_MAYBE && look.lock->holds &&
		   !find_hold(look.lock, flags, NULL)))
		check_unlock(&look, flags);
	look.lock->released_at = look.stack;
	look.lock->released_by = look.self->tid;
	end(&look);
}

/* The memory is another lock's from now on. */
static void forget(struct debug_lock *lock)
{
	while (lock->holds)
		remove_hold(lock->holds);
	debug_order_forget(lock);
	lock->life++;
	lock->made_at = lock->released_at = NULL;
	lock->generation = w_fork_generation();
}

/* Reports that the memory has a lock that is held, or that was never destroyed and has to be. */
static void check_create(struct look *look)
{
	const struct debug_lock *lock = look->lock;

	/* A child of fork() may initialise its parent's locks. */
	if ((!lock->holds && !lock->made_at) || lock->generation != look->self->generation)
		return;
	if (!begin_report(&look->report, DEBUG_init, look->self, "initialises", lock, look->stack))
		return;
	add_maker(&look->report, lock);
	add_holder(&look->report, lock->holds);
}

void pound_debug_create(const void *lock, unsigned flags)
{
	struct look look;

	if (!begin(&look, lock, __builtin_return_address(0)))
		return;
	check_create(&look);
	forget(look.lock);
	if (!(flags & POUND_WATCH_STATIC)) {
		look.lock->made_at = look.stack;
		look.lock->made_by = look.self->tid;
		look.lock->made_in = look.self->generation;
	}
	end(&look);
}

void pound_debug_destroy(const void *lock)
{
	struct look look;
	bool held;

	if (!begin(&look, lock, __builtin_return_address(0)))
		return;
	held = look.lock->holds;
	if (held &&
	    begin_report(&look.report, DEBUG_destroy, look.self, "destroys", look.lock, look.stack))
		add_holder(&look.report, look.lock->holds);
	forget(look.lock);
	/* The holder may still unlock it, if pthread_mutex_destroy() refuses. */
	if (held)
		look.lock->generation = UNKNOWN;
	end(&look);
}

void pound_debug_assert(const void *lock, unsigned flags)
{
	struct debug_hold *own;
	struct look look;

	if (!begin(&look, lock, __builtin_return_address(0)))
		return;
	own = hold_of(look.lock, look.self);
	if (!own || (own->flags & ~flags & POUND_WATCH_READ))
		if (begin_report(&look.report, DEBUG_assertion, look.self, "should hold", look.lock,
				 look.stack))
			add_holder(&look.report, look.lock->holds);
	end(&look);
}

/* ---- The end of a thread ---- */

/* Describes @hold, unless its site has been reported already. */
static void report_hold(struct debug_report *report, enum debug_error error,
			const struct debug_hold *hold)
{
	if (hold->stack->reported >> error & 1)
		return;
	hold->stack->reported |= 1u << error;
	report->error = error;
	add_holder(report, hold);
}

/* Removes the holds of @self, and describes them. */
static void end_holds(struct debug_thread *self, struct debug_report *report)
{
	while (self->holds) {
		struct debug_hold *hold = self->holds;

		report_hold(report, DEBUG_end, hold);
		/* Another thread may unlock it: a lock that was never locked is not checked. */
		hold->lock->generation = UNKNOWN;
		remove_hold(hold);
	}
}

/* Called again after the other destructors, which may unlock, as often as the C library does. */
static void thread_ends(void *argument)
{
	struct debug_thread *self = argument;
	struct debug_report report = {.sites = 0};

	if (++self->rounds < PTHREAD_DESTRUCTOR_ITERATIONS && !pthread_setspecific(key, self))
		return;
	w_own.checks = INSIDE;
	debug_mutex_lock(&mutex);
	end_holds(self, &report);
	self->next_free = free_threads;
	free_threads = self;
	debug_mutex_unlock(&mutex);
	leave(&report);
}

/* ---- The end of the process ---- */

/* Describes one hold of @lock whose site has not been reported. */
static void check_held(struct debug_lock *lock, struct debug_report *report)
{
	drop_orphans(lock);
	for (struct debug_hold *hold = lock->holds; hold && !report->sites;
	     hold = hold->next_of_lock)
		report_hold(report, DEBUG_held, hold);
}

/* Describes the initialisation of @lock if this process has made it and not destroyed it. */
static void check_leak(struct debug_lock *lock, struct debug_report *report)
{
	if (!lock->made_at || lock->made_in != w_fork_generation() ||
	    lock->made_at->reported >> DEBUG_leak & 1)
		return;
	lock->made_at->reported |= 1u << DEBUG_leak;
	report->error = DEBUG_leak;
	add_maker(report, lock);
}

typedef void check_of_lock(struct debug_lock *lock, struct debug_report *report);

/* Calls @check for each lock of @bucket, again after a report. Records are never freed. */
static void check_bucket(struct debug_lock **bucket, check_of_lock *check)
{
	struct debug_report report;
	struct debug_lock *lock;

	debug_mutex_lock(&mutex);
	lock = *bucket;
	while (lock) {
		report.sites = 0;
		check(lock, &report);
		if (w_likely(!report.sites)) {
			lock = lock->next;
			continue;
		}
		debug_mutex_unlock(&mutex);
		publish(&report);
		debug_mutex_lock(&mutex);
	}
	debug_mutex_unlock(&mutex);
}

static void check_all(enum debug_error error, check_of_lock *check)
{
	if (excluded >> error & 1)
		return;
	for (uint32_t i = 0; i < BUCKETS; i++)
		check_bucket(&buckets[i], check);
}

/*
 * At exit(), after the program's own functions for that. The lowest priority that programs can
 * have: these functions run in the order of falling numbers.
 */
__attribute__((destructor(101))) static void process_ends(void)
{
	/* acquire: as in is_on(), which would begin the checks */
	if (w_load_acquire(&state) != STATE_ON || !enter())
		return;
	check_all(DEBUG_held, check_held);
	check_all(DEBUG_leak, check_leak);
	go_out();
}
