/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Reads rules line by line. Each accepted file is TOML with the same meaning; of TOML it accepts
 * tables [[rule]], keys with strings without escapes, comments and empty lines. The file may be
 * damaged: no byte of it is read past its end, and every error is one line.
 */
#include "rule.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The longest specification, its end included. */
#define LONGEST_SPEC 256

/* The part of a line that has not been read yet. */
struct rest {
	const char *at, *end;
};

/* The rules read so far, and where errors are reported. */
struct reader {
	struct rules *rules;
	uint32_t line;
	char *error;
	size_t size;
};

/* Writes one line that begins with the current line's number, and returns false. */
__attribute__((format(printf, 2, 3))) static bool wrong(const struct reader *reader,
							const char *format, ...)
{
	char why[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	return spec_wrong(reader->error, reader->size, "line %" PRIu32 ": %s", reader->line, why);
}

/* ---- Characters of a line ---- */

static void skip_blanks(struct rest *rest)
{
	while (rest->at < rest->end && (*rest->at == ' ' || *rest->at == '\t'))
		rest->at++;
}

/* Skips @text if it comes next. */
static bool skip(struct rest *rest, const char *text)
{
	size_t length = strlen(text);

	if ((size_t)(rest->end - rest->at) < length || memcmp(rest->at, text, length))
		return false;
	rest->at += length;
	return true;
}

static bool is_printable(char c)
{
	return c >= ' ' && c <= '~';
}

static bool is_key(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

/* Whether only blanks and a comment, without control characters, are left. */
static bool is_at_end(struct rest *rest)
{
	skip_blanks(rest);
	if (rest->at == rest->end)
		return true;
	if (*rest->at != '#')
		return false;
	for (; rest->at < rest->end; rest->at++)
		if ((unsigned char)*rest->at < ' ' ? *rest->at != '\t' : *rest->at == 0x7f)
			return false;
	return true;
}

/* Copies a string in quotes to @value (@size bytes). */
static bool read_string(struct reader *reader, struct rest *rest, char *value, size_t size)
{
	size_t length = 0;

	if (!skip(rest, "\""))
		return wrong(reader, "the value is not a string in double quotes");
	for (; rest->at < rest->end && *rest->at != '"'; rest->at++) {
		if (!is_printable(*rest->at) || *rest->at == '\\')
			return wrong(reader, "a string has printable ASCII only, and no backslash");
		if (length == size - 1)
			return wrong(reader, "the string has more than %zu characters", size - 1);
		value[length++] = *rest->at;
	}
	value[length] = 0;
	if (!skip(rest, "\""))
		return wrong(reader, "the string has no end");
	return length ? true : wrong(reader, "the string is empty");
}

/* ---- Rules ---- */

/* Reads the hexadecimal number @text, which is all of a string. */
static bool read_hexadecimal(const char *text, uint64_t *number)
{
	const char *digits = "0123456789abcdef";
	size_t count = 0;

	for (*number = 0; *text; text++, count++) {
		const char *digit = strchr(digits, *text | 0x20);

		if (!digit || count == 16)
			return false;
		*number = *number << 4 | (uint64_t)(digit - digits);
	}
	return count;
}

/* Reads SYMBOL+0xOFFSET: cuts the offset from the name. */
static bool read_offset(struct reader *reader, struct rule *rule)
{
	char *plus = strchr(rule->name, '+');

	if (!plus)
		return true;
	if (plus == rule->name || strncmp(plus, "+0x", 3) ||
	    !read_hexadecimal(plus + 3, &rule->offset))
		return wrong(reader, "'%s' is not SYMBOL+0xOFFSET", rule->name);
	*plus = 0;
	rule->exact = true;
	return true;
}

static bool read_pattern(struct reader *reader, struct rest *rest, struct rule *rule,
			 enum rule_by by)
{
	if (rule->by)
		return wrong(reader, "the rule has a symbol or a site already");
	rule->by = by;
	return read_string(reader, rest, rule->name, sizeof(rule->name)) &&
	       (by == RULE_BY_SITE || read_offset(reader, rule));
}

static bool has_lock(const struct rule *rule)
{
	return rule->ops || rule->rw_ops;
}

/* @readers_writer: it is a readers-writer lock. */
static bool read_lock(struct reader *reader, struct rest *rest, struct rule *rule,
		      bool readers_writer)
{
	char spec[LONGEST_SPEC], why[256];

	if (has_lock(rule))
		return wrong(reader, "the rule has a lock already");
	if (!read_string(reader, rest, spec, sizeof(spec)))
		return false;
	if (readers_writer)
		rule->rw_ops = any_rw_find(spec, why, sizeof(why));
	else
		rule->ops = any_find(spec, why, sizeof(why));
	return has_lock(rule) || wrong(reader, "%s", why);
}

/* Reads KEY = "VALUE". */
static bool read_pair(struct reader *reader, struct rest *rest)
{
	struct rules *rules = reader->rules;
	struct rule *rule = rules->count ? &rules->rule[rules->count - 1] : NULL;
	struct rest key = *rest;

	while (rest->at < rest->end && is_key(*rest->at))
		rest->at++;
	key.end = rest->at;
	skip_blanks(rest);
	if (key.at == key.end || !skip(rest, "="))
		return wrong(reader, "neither [[rule]] nor KEY = \"VALUE\"");
	if (!rule)
		return wrong(reader, "no [[rule]] comes before it");
	skip_blanks(rest);
	if (skip(&key, "symbol") && key.at == key.end)
		return read_pattern(reader, rest, rule, RULE_BY_SYMBOL);
	if (skip(&key, "site") && key.at == key.end)
		return read_pattern(reader, rest, rule, RULE_BY_SITE);
	if (skip(&key, "lock") && key.at == key.end)
		return read_lock(reader, rest, rule, false);
	if (skip(&key, "rwlock") && key.at == key.end)
		return read_lock(reader, rest, rule, true);
	return wrong(reader, "the keys of a rule are symbol, site, lock and rwlock");
}

/* Whether the last rule, if any, is whole. */
static bool end_rule(struct reader *reader)
{
	struct rules *rules = reader->rules;
	const struct rule *rule = rules->count ? &rules->rule[rules->count - 1] : NULL;

	if (!rule || (rule->by && has_lock(rule)))
		return true;
	reader->line = rule->line;
	return rule->by ? wrong(reader, "the rule has no lock")
			: wrong(reader, "the rule has neither a symbol nor a site");
}

static bool begin_rule(struct reader *reader)
{
	struct rules *rules = reader->rules;
	uint32_t line = reader->line;

	if (!end_rule(reader))
		return false;
	if (rules->count == RULES_MOST)
		return wrong(reader, "there are more than %d rules", RULES_MOST);
	rules->rule[rules->count++] = (struct rule){.line = line};
	return true;
}

/* Skips [[rule]], with blanks inside as in TOML. */
static bool skip_header(struct rest *rest)
{
	struct rest at = *rest;

	if (!skip(&at, "[["))
		return false;
	skip_blanks(&at);
	if (!skip(&at, "rule"))
		return false;
	skip_blanks(&at);
	if (!skip(&at, "]]"))
		return false;
	*rest = at;
	return true;
}

static bool read_line(struct reader *reader, struct rest rest)
{
	skip_blanks(&rest);
	if (rest.at < rest.end && *rest.at != '#' &&
	    !(skip_header(&rest) ? begin_rule(reader) : read_pair(reader, &rest)))
		return false;
	return is_at_end(&rest) || wrong(reader, "unexpected characters at its end");
}

bool rules_read(struct rules *rules, const char *text, size_t length, char *error, size_t size)
{
	struct reader reader = {.rules = rules, .error = error, .size = size};
	const char *end = text + length;

	rules->count = 0;
	if (length > RULES_TEXT)
		return spec_wrong(error, size, "has more than %d bytes", RULES_TEXT);
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *last = newline ? newline : end;

		reader.line++;
		if (newline && last > text && last[-1] == '\r')
			last--;
		if (!read_line(&reader, (struct rest){text, last}))
			return false;
		text = newline ? newline + 1 : end;
	}
	return end_rule(&reader);
}

bool rules_allow(const struct any_ops *ops, char *error, size_t size)
{
	return any_is_inlined(ops) ||
	       spec_wrong(
		       error, size,
		       "rules need shfl_mutex or shfl_ron as the lock of the process, which parks "
		       "and has no policy that measures holds");
}

bool rules_check(const char *text, size_t length, const char *spec, char *error, size_t size)
{
	static struct rules rules;
	const struct any_ops *ops = any_find(spec, error, size);

	return ops && rules_read(&rules, text, length, error, size) &&
	       rules_allow(ops, error, size);
}

/* ---- Patterns ---- */

/* On a mismatch, the last `*` takes one character more. */
bool rule_matches(const struct rule *rule, const char *name)
{
	const char *pattern = rule->name, *star = NULL, *resumed = NULL;

	while (*name) {
		if (*pattern == '*') {
			star = ++pattern;
			resumed = name;
		} else if (*pattern == *name || *pattern == '?') {
			pattern++;
			name++;
		} else if (star) {
			pattern = star;
			name = ++resumed;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}
