/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Input from elsewhere that the preload library reads, rules, ELF files and the words of control
 * pages: damage does no harm. The mutations of valid files end where a page begins that cannot be
 * read.
 */
#include "../../preload/symbols.c"

#include "live.h"
#include "rule.h"
#include "settings.h"
#include "unit.h"

#define ROUNDS_OF_RULES 100000
#define ROUNDS_OF_ELF 1000
#define ROUNDS_OF_WORDS 200000
#define TEXTS 500 /* fewer specifications than a process can use */
#define MOST_MUTATIONS 8
/* The bytes of an ELF file where its headers are, at either end. */
#define ELF_HEADERS 4096
#define WORD sizeof(uint64_t) /* an ELF file is aligned to it */

/* ---- Mutations ---- */

static uint64_t random_below(uint64_t most)
{
	static uint64_t state = 0x9e3779b97f4a7c15;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % most;
}

/* Memory of at least @size bytes, before a page that cannot be read. Returns its end. */
static unsigned char *guarded(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
	unsigned char *memory = mmap(NULL, whole + page, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(memory != MAP_FAILED);
	EXPECT(!mprotect(memory + whole, page, PROT_NONE));
	return memory + whole;
}

/* Changes the @size bytes at @text: a byte, a bit, a number of 8 bytes, or a part by another. */
static void mutate(unsigned char *text, size_t size)
{
	size_t at = random_below(size), from = random_below(size),
	       length = random_below(size - (at > from ? at : from)) % 64;

	uint64_t number = random_below(UINT64_C(1) << random_below(32));

	switch (random_below(size < WORD ? 3 : 4)) {
	case 0:
		text[at] = (unsigned char)random_below(256);
		break;
	case 1:
		text[at] ^= (unsigned char)(1 << random_below(8));
		break;
	case 2:
		memmove(text + at, text + from, length);
		break;
	default:
		memcpy(text + at % (size / WORD) * WORD, &number, WORD);
	}
}

/* ---- Rules ---- */

static const char valid[] = "# comment\n"
			    "[[rule]]\n"
			    "symbol = \"cache*+0x40\" # another\n"
			    "lock = \"shfl_mutex,patience=0,policy=fifo\"\r\n"
			    "\n"
			    "\t[[ rule ]]\n"
			    "lock=\"shfl_mutex,batch=7\"\n"
			    "site = \"queue_?nit\"\n"
			    "[[rule]]\n"
			    "site = \"*\"\n"
			    "rwlock = \"shfl_rw,wait=yield\"";

static struct rules rules;

static void expect_whole_rules(void)
{
	EXPECT(rules.count <= RULES_MOST);
	for (uint32_t i = 0; i < rules.count; i++) {
		const struct rule *rule = &rules.rule[i];

		EXPECT(rule->by && !rule->ops == !!rule->rw_ops && rule->line);
		EXPECT(*rule->name && memchr(rule->name, 0, sizeof(rule->name)));
		(void)rule_matches(rule, "cache_of_queue_init");
	}
}

static void expect_one_line(const char *error)
{
	EXPECT(*error);
	for (; *error; error++)
		EXPECT((unsigned char)*error >= ' ' && *error != 0x7f, "%x", *error);
}

static void damaged_rules_are_refused_in_a_line(void)
{
	unsigned char *end = guarded(sizeof(valid));
	char error[256];
	int accepted = 0;

	EXPECT(rules_read(&rules, valid, strlen(valid), error, sizeof(error)), "%s", error);
	EXPECT(rules.count == 3 && rules.rule[2].rw_ops && rules.rule[0].exact &&
	       rules.rule[0].offset == 0x40);
	for (int i = 0; i < ROUNDS_OF_RULES; i++) {
		size_t size = strlen(valid) - (random_below(4) ? 0 : random_below(strlen(valid)));
		unsigned char *text = end - size;

		memcpy(text, valid, size);
		for (uint64_t count = random_below(MOST_MUTATIONS); count; count--)
			mutate(text, size);
		if (rules_read(&rules, (const char *)text, size, error, sizeof(error))) {
			expect_whole_rules();
			accepted++;
		} else {
			expect_one_line(error);
		}
	}
	EXPECT(accepted && accepted < ROUNDS_OF_RULES, "%d", accepted);
}

/* ---- Symbols ---- */

static uint32_t mains, symbols, writable;
/* The program, without a place in memory; of its parts, this one is writable. */
static const ElfW(Phdr) parts[] = {
	{.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = 0x1000, .p_memsz = 0x100000},
	{.p_type = PT_GNU_RELRO, .p_flags = PF_R, .p_vaddr = 0x1000, .p_memsz = 0x1000},
	{.p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = 0x200000, .p_memsz = 0x100000},
};
static const struct dl_phdr_info loaded = {.dlpi_phdr = parts, .dlpi_phnum = 3};

static void count_symbol(const struct symbol *symbol)
{
	symbols++;
	writable += symbol->is_writable;
	EXPECT(!symbol->is_writable ||
	       (symbol->from >= 0x2000 && symbol->from <= symbol->to && symbol->to <= 0x101000));
	mains += strlen(symbol->name) == 4 && !strcmp(symbol->name, "main") && symbol->is_function;
}

/* This program's file, in whole words: its section headers may be the last bytes. */
static unsigned char *own_file(size_t *size)
{
	FILE *file = fopen("/proc/self/exe", "r");
	unsigned char *bytes;

	EXPECT(file && !fseek(file, 0, SEEK_END));
	*size = (size_t)ftell(file) / WORD * WORD;
	rewind(file);
	bytes = malloc(*size);
	EXPECT(bytes && fread(bytes, *size, 1, file) == 1);
	fclose(file);
	return bytes;
}

static void damaged_programs_are_read_within_their_bounds(void)
{
	size_t size;
	unsigned char *bytes = own_file(&size), *end = guarded(size);
	struct file file = {.bytes = bytes, .size = size};

	each_of(&file, &loaded, count_symbol);
	EXPECT(mains == 1 && symbols > 1, "%u, %u", mains, symbols);
	EXPECT(writable && writable < symbols, "%u of %u", writable, symbols);
	for (int i = 0; i < ROUNDS_OF_ELF; i++) {
		size_t rest = random_below(2) ? size : (1 + random_below(size / WORD)) * WORD;
		size_t headers = rest < ELF_HEADERS ? rest : ELF_HEADERS;
		unsigned char *copy = end - rest;

		memcpy(copy, bytes, rest);
		for (uint64_t count = random_below(MOST_MUTATIONS); count; count--)
			mutate(random_below(8) ? end - headers : copy, headers);
		file = (struct file){.bytes = copy, .size = rest};
		each_of(&file, &loaded, count_symbol);
	}
	free(bytes);
}

/* ---- Settings of a running lock ---- */

static void expect_in_range(const uint32_t *settings)
{
	EXPECT(settings[shfl_mutex_patience_place] <= 1000000000);
	EXPECT(settings[shfl_mutex_batch_place] >= 1 &&
	       settings[shfl_mutex_batch_place] <= 1000000);
	/* Those that need other functions of the lock are not among them. */
	EXPECT(settings[shfl_mutex_policy_place] <= POLICY_GROUP);
	EXPECT(settings[shfl_mutex_spins_place] <= 31);
}

/* The text of @word is a specification with the same settings. */
static void expect_text(uint64_t word)
{
	char text[LIVE_TEXT], spec[2 * LIVE_TEXT] = "shfl_mutex,", error[256];

	EXPECT(live_text(word, text) && strlen(text) < LIVE_TEXT - 1, "%s", text);
	strcat(spec, text);
	EXPECT(live_word_of(spec, error, sizeof(error)) == word, "%s: %s", spec, error);
}

/* The word of these settings, which is the same for a mutex and a readers-writer lock. */
static uint64_t word_of(const uint32_t *settings)
{
	struct any_ops mutex = *any_default;
	struct any_rw_ops rw = *any_rw_default;

	memcpy(mutex.settings, settings, sizeof(mutex.settings));
	memcpy(rw.settings, settings, sizeof(rw.settings));
	EXPECT(live_word(&mutex) == live_rw_word(&rw));
	return live_word(&mutex);
}

/* A whole word of settings, with a few of its bits changed. */
static uint64_t random_word(void)
{
	const uint32_t settings[SPEC_SETTINGS] = {
		[shfl_mutex_patience_place] = (uint32_t)random_below(1000000001),
		[shfl_mutex_batch_place] = 1 + (uint32_t)random_below(1000000),
		[shfl_mutex_policy_place] = (uint32_t)random_below(4),
		[shfl_mutex_spins_place] = (uint32_t)random_below(32),
	};
	uint64_t word = word_of(settings);

	for (uint64_t count = random_below(4); count; count--)
		word ^= UINT64_C(1) << random_below(64);
	return random_below(8) ? word : random_below(UINT64_MAX);
}

static void words_have_valid_settings_or_none(void)
{
	const uint32_t untouched[SPEC_SETTINGS] = {11, 22, 33, 44, 55};
	uint32_t settings[SPEC_SETTINGS];
	char text[LIVE_TEXT];
	int accepted = 0;

	for (int i = 0; i < ROUNDS_OF_WORDS; i++) {
		uint64_t word = i ? random_word() : 0;

		memcpy(settings, untouched, sizeof(settings));
		if (!live_settings(word, settings)) {
			EXPECT(!memcmp(settings, untouched, sizeof(settings)) &&
			       !live_text(word, text));
			continue;
		}
		expect_in_range(settings);
		EXPECT(word_of(settings) == word);
		EXPECT(settings[4] == 55, "a setting that is in no word stays");
		if (accepted++ < TEXTS)
			expect_text(word);
	}
	EXPECT(accepted > ROUNDS_OF_WORDS / 10 && accepted < ROUNDS_OF_WORDS, "%d", accepted);
}

int main(void)
{
	RUN(words_have_valid_settings_or_none);
	RUN(damaged_rules_are_refused_in_a_line);
	RUN(damaged_programs_are_read_within_their_bounds);
	return 0;
}
