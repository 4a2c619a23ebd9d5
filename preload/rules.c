/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The patterns become ranges of addresses at the start, so that later neither files nor the loader
 * are asked, which might hold a lock. A waiter compares its lock's address with all ranges: few,
 * and off the critical path.
 */
#include "rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config.h"
#include "control.h"
#include "hash.h"
#include "live.h"
#include "rule.h"
#include "symbols.h"

/* The most objects, and functions, that the patterns of a file match. */
#define RANGES_MOST 256

struct range {
	uintptr_t from, to;
	uint32_t rule;
	bool is_lock; /* the rule says that a lock is at @from, in memory that may be changed */
};

struct ranges {
	uint32_t count;
	struct range range[RANGES_MOST];
};

bool rules_on, rules_other;

static struct rules rules;
static struct ranges objects, functions;
static uint32_t matches[RULES_MOST]; /* by rule */
static bool too_many;
/* The process's lock, and the table in its place. */
static const struct any_ops *own;
static struct any_ops ruled;

/* Return addresses of calls that initialised readers-writer locks, which have 1 + its index. */
#define SITES_BITS 10
#define SITES (1u << SITES_BITS)
static W_ATOMIC(uint64_t) sites[SITES];

/* For reports: the file, whether they are unwanted, and the rules that have one. */
static char path[256];
static W_ATOMIC(bool) quiet, reported[RULES_MOST];

/* ---- Reports ---- */

void rules_be_quiet(void)
{
	/* relaxed: as in control_stay() */
	w_store_relaxed(&quiet, true);
}

/* Reports the file, the line of @rule, and why it does not apply; once for each rule. */
__attribute__((format(printf, 2, 3))) static void report(const struct rule *rule,
							 const char *format, ...)
{
	char why[256];
	va_list arguments;
	int saved = errno;

	/* relaxed, both: one thread reports it */
	if (w_load_relaxed(&quiet) || w_exchange_relaxed(&reported[rule - rules.rule], true))
		return;
	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	config_say("poundlock: %s:%u: %s", path, rule->line, why);
	errno = saved;
}

/* ---- From an address to a rule ---- */

const struct rule *rules_at(uint32_t index)
{
	return &rules.rule[index];
}

/*
 * The first of @ranges, by its rule, that contains @address and is for readers-writer locks, or for
 * mutexes. NULL: none.
 */
static const struct range *find_range(const struct ranges *ranges, uintptr_t address,
				      bool readers_writer)
{
	const struct range *first = NULL;

	for (uint32_t i = 0; i < ranges->count; i++) {
		const struct range *range = &ranges->range[i];

		if (address >= range->from && address < range->to &&
		    !rules.rule[range->rule].rw_ops == !readers_writer &&
		    (!first || range->rule < first->rule))
			first = range;
	}
	return first;
}

/* As find_range(), of the function with the call that returns to @site. */
static const struct range *find_site(const void *site, bool readers_writer)
{
	return find_range(&functions, (uintptr_t)site - 1, readers_writer);
}

/* The one of two ranges whose rule comes first. NULL: none. */
static const struct range *earlier(const struct range *one, const struct range *other)
{
	return !one || (other && other->rule < one->rule) ? other : one;
}

/* The rule that gave @m another lock than the process's. NULL: none. */
static inline const struct rule *rule_of_other(const struct mutex *m)
{
	_Static_assert(RULES_MOST <= 1 << (31 - KIND_RULE_SHIFT), "a rule's index fits in a kind");
	if (w_likely(!(m->kind & KIND_RULED)))
		return NULL;
	return &rules.rule[(uint32_t)m->kind >> KIND_RULE_SHIFT];
}

static bool has_pattern(const struct rule *rule)
{
	return strpbrk(rule->name, "*?");
}

/* Reports why the static object @address in @range has the process's lock @kept. */
static void report_static(uintptr_t address, const struct range *range, const char *kept)
{
	const struct rule *rule = &rules.rule[range->rule];
	uintptr_t offset = address - range->from + (rule->exact ? rule->offset : 0);
	const char *lock = rule->ops ? rule->ops->name : rule->rw_ops->name;

	if (has_pattern(rule))
		report(rule,
		       "an object that '%s' matches keeps %s, not %s: a rule changes a static lock "
		       "only if it names it without * and ?",
		       rule->name, kept, lock);
	else
		report(rule,
		       "%s+0x%lx keeps %s, not %s: a rule changes a static lock only by its "
		       "offset, and only if it is unused at the start",
		       rule->name, offset, kept, lock);
}

/*
 * Whether @rule changes only how one waits for the process's lock: @rw, or that of mutexes (NULL).
 */
static bool is_of_settings(const struct rule *rule, const struct any_rw_ops *rw)
{
	return rw ? any_rw_same(rule->rw_ops, rw) : any_waits_for(own, rule->ops);
}

/*
 * The first rule that applies to the lock at @address, which has the process's algorithm. @of_site:
 * 1 + the index of a rule of the function that initialised it; 0: none. @rw: as in
 * is_of_settings(). NULL: none, or it asks for another algorithm.
 */
static const struct rule *rule_of_settings(uintptr_t address, uint32_t of_site,
					   const struct any_rw_ops *rw)
{
	const struct range *range = find_range(&objects, address, rw);
	uint32_t rule = range ? range->rule : RULES_MOST;

	if (of_site && of_site <= rule)
		return &rules.rule[of_site - 1];
	if (!range)
		return NULL;
	if (is_of_settings(&rules.rule[rule], rw))
		return &rules.rule[rule];
	report_static(address, range, rw ? rw->name : own->name);
	return NULL;
}

/* The first rule that applies to @m. NULL: none, or it asks for a lock that @m cannot have. */
static const struct rule *rule_of(const struct mutex *m)
{
	const struct rule *other = rule_of_other(m);

	return other ? other
		     : rule_of_settings((uintptr_t)m, mutex_is_plain(m) ? m->rule : 0, NULL);
}

const struct rule *rules_rw_of(const struct rwlock *rw, const struct any_rw_ops *of_process)
{
	return rw->shared == SHARED_RULED ? &rules.rule[rw->rule]
					  : rule_of_settings((uintptr_t)rw, rw->rule, of_process);
}

/* Gives the free mutex @m the lock of rule @index if that has room for its owner. */
static void give_other(struct mutex *m, uint32_t index)
{
	const struct rule *rule = &rules.rule[index];

	if (mutex_is_plain(m) || rule->ops->leaves_middle)
		m->kind |= (int)(KIND_RULED | index << KIND_RULE_SHIFT);
	else
		report(rule,
		       "a recursive or error-checking mutex keeps %s: %s has no room for its "
		       "owner",
		       own->name, rule->ops->name);
}

void rules_initialised_slow(struct mutex *m, const void *site)
{
	const struct range *function = find_site(site, false),
			   *first = earlier(find_range(&objects, (uintptr_t)m, false), function);

	_Static_assert(RULES_MOST < 1 << 8, "a rule's number fits in a mutex");
	if (first && !is_of_settings(&rules.rule[first->rule], NULL))
		give_other(m, first->rule);
	if (!mutex_is_plain(m))
		return;
	if (function && is_of_settings(&rules.rule[function->rule], NULL))
		m->rule = function->rule + 1;
	m->site = (uintptr_t)site;
}

/* 1 + the index of @site, which is added; 0: there is no room. */
static uint16_t number_of_site(uint64_t site)
{
	for (uint32_t i = 0; i < SITES; i++) {
		uint32_t at = (address_hash(site, SITES_BITS) + i) % SITES;
		/* relaxed, both: each is one number, and nothing else depends on it */
		uint64_t seen = w_load_relaxed(&sites[at]);

		if (seen == site ||
		    (!seen && w_compare_exchange_relaxed(&sites[at], &seen, site)) || seen == site)
			return (uint16_t)(at + 1);
	}
	return 0;
}

uint64_t rules_rw_site(const struct rwlock *rw)
{
	return rw->site ? w_load_relaxed(&sites[rw->site - 1]) : 0;
}

void rules_rw_initialised_slow(struct rwlock *rw, const void *site)
{
	const struct any_rw_ops *of_process = rules_rw_own();
	const struct range *function = find_site(site, true),
			   *first = earlier(find_range(&objects, (uintptr_t)rw, true), function);

	if (first && !is_of_settings(&rules.rule[first->rule], of_process))
		rules_rw_give(rw, first->rule);
	else if (function && is_of_settings(&rules.rule[function->rule], of_process))
		rw->rule = (unsigned char)(function->rule + 1);
	rw->site = number_of_site((uintptr_t)site);
}

/* ---- The table ---- */

/* The lock of @m: the process's, or another one by a rule. */
static inline const struct any_ops *ops_of(const struct mutex *m)
{
	const struct rule *other = rule_of_other(m);

	return w_unlikely(other) ? other->ops : own;
}

/* Waits for @m by the settings of @ops. */
static bool wait_by(const struct any_ops *ops, struct mutex *m, const struct w_deadline *deadline)
{
	if (deadline)
		return ops->timedlock(m, deadline, ops);
	(void)ops->lock(m, ops);
	return true;
}

bool rules_wait(struct mutex *m, const struct w_deadline *deadline)
{
	const struct rule *rule = rule_of(m);
	const struct any_ops *ops = rule ? rule->ops : own;
	struct control_subject subject;
	struct control_wait wait;
	struct any_ops changed;
	bool taken;

	if (!control_on)
		return wait_by(ops, m, deadline);
	subject = (struct control_subject){.address = (uintptr_t)m,
					   .site = mutex_is_plain(m) ? m->site : 0,
					   .own = live_word(ops),
					   .lock = ops->name,
					   .rule_line = rule ? rule->line : 0};
	changed = *ops;
	if (control_begin(&wait, &subject, changed.settings))
		ops = &changed;
	taken = wait_by(ops, m, deadline);
	control_end(&wait);
	return taken;
}

static int ruled_lock(void *lock, const struct any_ops *ops)
{
	const struct any_ops *by = ops_of(lock);

	(void)ops;
	/* Not tried first: its own order of operations is faster. */
	if (by != own && !control_on)
		return by->lock(lock, by);
	if (w_unlikely(!by->trylock(lock)))
		(void)rules_wait(lock, NULL);
	return 0;
}

static bool ruled_trylock(void *lock)
{
	return ops_of(lock)->trylock(lock);
}

static bool ruled_timedlock(void *lock, const struct w_deadline *deadline,
			    const struct any_ops *ops)
{
	(void)ops;
	return rules_wait(lock, deadline);
}

static bool ruled_unlock(void *lock, const struct any_ops *ops)
{
	const struct any_ops *by = ops_of(lock);

	(void)ops;
	return by->unlock(lock, by);
}

static bool ruled_unlock_fair(void *lock, const struct any_ops *ops)
{
	const struct any_ops *by = ops_of(lock);

	(void)ops;
	return by->unlock_fair(lock, by);
}

static void ruled_destroy(void *lock)
{
	const struct any_ops *by = ops_of(lock);

	if (by->destroy)
		by->destroy(lock);
}

const struct any_ops *rules_unruled(const struct any_ops *ops)
{
	return ops == &ruled ? own : ops;
}

void rules_replace(const struct any_ops **ops)
{
	if (rules_on)
		return;
	own = *ops;
	ruled = *own;
	ruled.lock = ruled_lock;
	ruled.trylock = ruled_trylock;
	ruled.timedlock = ruled_timedlock;
	ruled.unlock = ruled_unlock;
	ruled.unlock_fair = ruled_unlock_fair;
	ruled.destroy = ruled_destroy;
	*ops = &ruled;
	rules_on = true;
}

/* ---- The start ---- */

static void add_range(struct ranges *ranges, struct range range)
{
	matches[range.rule]++;
	if (ranges->count == RANGES_MOST)
		too_many = true;
	else
		ranges->range[ranges->count++] = range;
}

/* The part of @symbol, an object, to which rule @index applies. */
static struct range range_of_object(const struct symbol *symbol, uint32_t index)
{
	const struct rule *rule = &rules.rule[index];
	const size_t size = symbol->to - symbol->from;
	struct range range = {.from = symbol->from, .to = symbol->to, .rule = index};
	const size_t needed = rule->ops ? sizeof(pthread_mutex_t) : sizeof(pthread_rwlock_t);
	bool is_one = size == needed;

	if (rule->exact) {
		is_one = size - rule->offset >= needed;
		range.from += rule->offset;
		range.to = range.from + 1;
	}
	range.is_lock = is_one && symbol->is_writable && !has_pattern(rule) &&
			!(range.from % _Alignof(struct mutex));
	return range;
}

static void match_symbol(const struct symbol *symbol)
{
	for (uint32_t i = 0; i < rules.count; i++) {
		const struct rule *rule = &rules.rule[i];

		if (symbol->is_function != (rule->by == RULE_BY_SITE) ||
		    !rule_matches(rule, symbol->name))
			continue;
		if (symbol->is_function)
			add_range(&functions, (struct range){symbol->from, symbol->to, i, false});
		else if (!rule->exact || rule->offset < symbol->to - symbol->from)
			add_range(&objects, range_of_object(symbol, i));
	}
}

/* Whether a lock is as a static initialiser has left it. */
static bool is_unused(const struct mutex *m)
{
	static const pthread_mutex_t zero;
	pthread_mutex_t copy;

	memcpy(&copy, m, sizeof(copy));
	mutex_of(&copy)->kind &= ~KIND_TYPE;
	return !memcmp(&copy, &zero, sizeof(copy));
}

static bool is_rw_unused(const struct rwlock *rw)
{
	static const pthread_rwlock_t zero;
	pthread_rwlock_t copy;

	memcpy(&copy, rw, sizeof(copy));
	rwlock_of(&copy)->kind = 0;
	return rw->kind <= PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP &&
	       !memcmp(&copy, &zero, sizeof(copy));
}

/* Gives the static lock at @range its lock, if no earlier rule applies to it. */
static void give_to_static(const struct range *range)
{
	const struct rule *rule = &rules.rule[range->rule];
	void *at = (void *)range->from;

	if (!range->is_lock || find_range(&objects, range->from, rule->rw_ops) != range)
		return;
	if (rule->rw_ops && !is_of_settings(rule, rules_rw_own()) && is_rw_unused(at))
		rules_rw_give(at, range->rule);
	else if (rule->ops && !is_of_settings(rule, NULL) && is_unused(at))
		give_other(at, range->rule);
}

/* Replaces the tables of the process. Before the first lock: all static locks are free. */
static void apply(const struct any_ops **ops, const struct any_rw_ops **rw_ops)
{
	bool rw = false;

	rules_replace(ops);
	for (uint32_t i = 0; i < rules.count; i++) {
		const struct rule *rule = &rules.rule[i];

		rules_other |= rule->ops && !is_of_settings(rule, NULL);
		rw |= rule->rw_ops != NULL;
	}
	if (rw)
		rules_rw_replace(rw_ops);
	for (uint32_t i = 0; i < objects.count; i++)
		give_to_static(&objects.range[i]);
}

/*
 * Reads the first RULES_TEXT + 1 bytes of @file, one more than may be there, into @text. Returns
 * their number; -1: @error says why.
 */
static long read_text(const char *file, char *text, char *error, size_t size)
{
	/* Not blocking: it may be a pipe. Raw calls: open() and read() are cancellation points. */
	long opened = syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	long got = opened, length = 0;

	while (opened >= 0 && length <= RULES_TEXT &&
	       (got = syscall(SYS_read, opened, text + length, RULES_TEXT + 1 - length)) > 0)
		length += got;
	if (got < 0)
		(void)spec_wrong(error, size, "cannot be read: error %d", errno);
	if (opened >= 0)
		syscall(SYS_close, opened);
	return got < 0 ? -1 : length;
}

static bool read_rules(const char *file, char *error, size_t size)
{
	char *text = mmap(NULL, RULES_TEXT + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	long length;
	bool is_right;

	if (text == MAP_FAILED)
		return spec_wrong(error, size, "no memory to read it");
	length = read_text(file, text, error, size);
	is_right = length >= 0 && rules_read(&rules, text, (size_t)length, error, size);
	munmap(text, RULES_TEXT + 1);
	return is_right;
}

/* Whether rules can apply to readers-writer locks of the process's lock @rw_ops (NULL: native). */
static bool allow_rw(const struct any_rw_ops *rw_ops, char *error, size_t size)
{
	for (uint32_t i = 0; i < rules.count && !rw_ops; i++)
		if (rules.rule[i].rw_ops)
			return spec_wrong(error, size,
					  "line %u: all readers-writer locks are native",
					  rules.rule[i].line);
	return true;
}

static bool match_rules(char *error, size_t size)
{
	symbols_each(match_symbol);
	return !too_many ||
	       spec_wrong(error, size, "its patterns match more than %d symbols", RANGES_MOST);
}

static void report_matches(const char *file)
{
	for (uint32_t i = 0; i < rules.count; i++) {
		const struct rule *rule = &rules.rule[i];

		config_say("poundlock: %s:%u: '%s' matches %u %s%s", file, rule->line, rule->name,
			   matches[i], rule->by == RULE_BY_SITE ? "function" : "object",
			   matches[i] == 1 ? "" : "s");
	}
}

void rules_start(const char *file, bool verbose, const struct any_ops **ops,
		 const struct any_rw_ops **rw_ops)
{
	char error[640];

	if (!rules_allow(*ops, error, sizeof(error)) || !read_rules(file, error, sizeof(error)) ||
	    !allow_rw(*rw_ops, error, sizeof(error)) || !match_rules(error, sizeof(error))) {
		config_say("poundlock: POUNDLOCK_RULES=%s: %s; no rule applies", file, error);
		return;
	}
	if (verbose)
		report_matches(file);
	snprintf(path, sizeof(path), "%s", file);
	apply(ops, rw_ops);
}
