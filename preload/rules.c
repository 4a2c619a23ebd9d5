/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The patterns become ranges of addresses at the start, so that later neither files nor the loader
 * are asked, which might hold a lock. A waiter compares its mutex's address with all ranges: few,
 * and off the critical path.
 */
#include "rules.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config.h"
#include "control.h"
#include "rule.h"
#include "symbols.h"

/* The most objects, and functions, that the patterns of a file match. */
#define RANGES_MOST 256

struct range {
	uintptr_t from, to;
	uint32_t rule;
};

struct ranges {
	uint32_t count;
	struct range range[RANGES_MOST];
};

bool rules_on;

static struct rules rules;
static struct ranges objects, functions;
static uint32_t matches[RULES_MOST]; /* by rule */
static bool too_many;
/* The process's lock, and the table in its place. */
static const struct any_ops *own;
static struct any_ops ruled;

/* ---- From an address to a rule ---- */

/* The first rule with a range in which @address is; RULES_MOST: none. */
static uint32_t find_rule(const struct ranges *ranges, uintptr_t address)
{
	uint32_t first = RULES_MOST;

	for (uint32_t i = 0; i < ranges->count; i++) {
		const struct range *range = &ranges->range[i];

		if (address >= range->from && address < range->to && range->rule < first)
			first = range->rule;
	}
	return first;
}

/* The lock with the settings of the first rule that applies to @m, or the process's. */
static const struct any_ops *ops_of(const struct mutex *m)
{
	uint32_t rule = find_rule(&objects, (uintptr_t)m);

	if (mutex_is_plain(m) && m->rule && m->rule <= rule)
		rule = (uint32_t)m->rule - 1;
	return rule < rules.count ? rules.rule[rule].ops : own;
}

void rules_initialised_slow(struct mutex *m, const void *site)
{
	uint32_t rule = find_rule(&functions, (uintptr_t)site - 1); /* in the call instruction */

	_Static_assert(RULES_MOST < 1 << 8, "a rule's number fits in a mutex");
	if (!mutex_is_plain(m))
		return;
	m->rule = rule < rules.count ? rule + 1 : 0;
	m->site = (uintptr_t)site;
}

/* ---- The table ---- */

bool rules_wait(struct mutex *m, const struct w_deadline *deadline)
{
	const struct any_ops *ops = ops_of(m);

	return control_on ? control_wait(m, deadline, ops) : rules_wait_by(ops, m, deadline);
}

static int ruled_lock(void *lock, const struct any_ops *ops)
{
	(void)ops;
	if (w_unlikely(!own->trylock(lock)))
		(void)rules_wait(lock, NULL);
	return 0;
}

static bool ruled_timedlock(void *lock, const struct w_deadline *deadline,
			    const struct any_ops *ops)
{
	(void)ops;
	return rules_wait(lock, deadline);
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
	ruled.timedlock = ruled_timedlock;
	*ops = &ruled;
	rules_on = true;
}

/* ---- The start ---- */

static void add_range(struct ranges *ranges, uintptr_t from, uintptr_t to, uint32_t rule)
{
	matches[rule]++;
	if (ranges->count == RANGES_MOST)
		too_many = true;
	else
		ranges->range[ranges->count++] = (struct range){from, to, rule};
}

static void match_symbol(const struct symbol *symbol)
{
	for (uint32_t i = 0; i < rules.count; i++) {
		const struct rule *rule = &rules.rule[i];

		if (symbol->is_function != (rule->by == RULE_BY_SITE) ||
		    !rule_matches(rule, symbol->name))
			continue;
		if (symbol->is_function)
			add_range(&functions, symbol->from, symbol->to, i);
		else if (!rule->exact)
			add_range(&objects, symbol->from, symbol->to, i);
		else if (rule->offset < symbol->to - symbol->from)
			add_range(&objects, symbol->from + rule->offset,
				  symbol->from + rule->offset + 1, i);
	}
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

void rules_start(const char *file, bool verbose, const struct any_ops **ops)
{
	char error[640];

	if (!rules_allow(*ops, error, sizeof(error)) || !read_rules(file, error, sizeof(error)) ||
	    !match_rules(error, sizeof(error))) {
		config_say("poundlock: POUNDLOCK_RULES=%s: %s; no rule applies", file, error);
		return;
	}
	if (verbose)
		report_matches(file);
	rules_replace(ops);
}
