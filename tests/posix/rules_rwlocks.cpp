/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * POUNDLOCK_RULES that give single readers-writer locks another lock, or other settings. argv[1] is
 * the library; the names of all readers-writer locks follow. In a child of this program the locks
 * that the rules name have the lock, and all others that of the process. rwlock.c is run by such
 * rules as well.
 */
#include <atomic>

#include "ruled.h"

#define THREADS 4
#define ROUNDS 1000

struct table {
	long before[5];
	pthread_rwlock_t lock;
};

/* Not static: the compiler must not merge or rename them. */
extern "C" {
pthread_rwlock_t named = PTHREAD_RWLOCK_INITIALIZER;
pthread_rwlock_t named_nonrecursive = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
pthread_rwlock_t without_rule = PTHREAD_RWLOCK_INITIALIZER;
struct table by_offset = {{}, PTHREAD_RWLOCK_INITIALIZER};
struct table without_offset = {{}, PTHREAD_RWLOCK_INITIALIZER};
/* Of a lock's size, and no unused lock. */
long in_use[sizeof(pthread_rwlock_t) / sizeof(long)] = {1};
/* The rule for it is for mutexes. */
pthread_rwlock_t no_mutex = PTHREAD_RWLOCK_INITIALIZER;
}

extern "C" __attribute__((noinline)) void initialise(pthread_rwlock_t *lock, int shared)
{
	pthread_rwlockattr_t attr;

	EXPECT_OK(pthread_rwlockattr_init(&attr));
	EXPECT_OK(pthread_rwlockattr_setpshared(&attr, shared));
	EXPECT_OK(pthread_rwlock_init(lock, &attr));
	EXPECT_OK(pthread_rwlockattr_destroy(&attr));
}

static std::string rules_for(const std::string &spec)
{
	std::string text;

	for (const char *pattern : {"symbol = \"named\"", "symbol = \"named_nonrecursive\"",
				    "symbol = \"by_offset+0x28\"", "symbol = \"without_offset\"",
				    "symbol = \"in_use\"", "site = \"initialise\""})
		text += std::string("[[rule]]\n") + pattern + "\nrwlock = \"" + spec + "\"\n";
	return text + "[[rule]]\nsymbol = \"no_mutex\"\nlock = \"mcs,wait=yield\"\n";
}

#define WITHOUT_OFFSET ":10: without_offset+0x28 keeps "

/* ---- In the child ---- */

/* preload/layout.h: the lock's byte 28. */
static unsigned char flag_of(const pthread_rwlock_t *lock)
{
	return ((const unsigned char *)lock)[28];
}

struct counted {
	pthread_rwlock_t *lock;
	long counts[2];
};

static void *count(void *argument)
{
	struct counted *counted = (struct counted *)argument;

	for (int i = 0; i < ROUNDS; i++) {
		struct timespec soon = from_now(CLOCK_REALTIME, 1);

		if (i % 2) {
			EXPECT_OK(pthread_rwlock_wrlock(counted->lock));
			counted->counts[0]++;
			counted->counts[1]++;
			EXPECT_OK(pthread_rwlock_unlock(counted->lock));
		} else if (i % 4 || !pthread_rwlock_timedrdlock(counted->lock, &soon)) {
			if (i % 4)
				EXPECT_OK(pthread_rwlock_rdlock(counted->lock));
			EXPECT(counted->counts[0] == counted->counts[1], "a writer is inside");
			EXPECT_OK(pthread_rwlock_unlock(counted->lock));
		}
	}
	return NULL;
}

static void expect_lock(pthread_rwlock_t *lock, unsigned char flag, const char *name)
{
	struct counted counted = {lock, {0, 0}};
	pthread_t threads[THREADS];

	EXPECT(flag_of(lock) == flag, "%s: %d", name, flag_of(lock));
	for (pthread_t &thread : threads)
		thread = start(count, &counted);
	for (pthread_t &thread : threads)
		finish(thread);
	EXPECT(counted.counts[0] == (long)THREADS * ROUNDS / 2, "%s: %ld", name, counted.counts[0]);
	EXPECT(flag_of(lock) == flag, "%s: %d", name, flag_of(lock));
}

static std::atomic<pid_t> reader_id;

static void *wait_and_read(void *lock)
{
	reader_id = kernel_id();
	EXPECT_OK(pthread_rwlock_rdlock((pthread_rwlock_t *)lock));
	EXPECT_OK(pthread_rwlock_unlock((pthread_rwlock_t *)lock));
	return NULL;
}

/* A wait for @lock, which reports a rule that does not apply. */
static void wait_for(pthread_rwlock_t *lock)
{
	pthread_t reader;

	reader_id = 0;
	EXPECT_OK(pthread_rwlock_wrlock(lock));
	reader = start(wait_and_read, lock);
	while (!reader_id)
		sched_yield();
	until_asleep(reader_id);
	EXPECT_OK(pthread_rwlock_unlock(lock));
	finish(reader);
}

static void check_locks(unsigned char ruled)
{
	pthread_rwlock_t *memory = (pthread_rwlock_t *)calloc(1, sizeof(*memory));

	expect_lock(&named, ruled, "named");
	expect_lock(&named_nonrecursive, ruled, "named_nonrecursive");
	expect_lock(&by_offset.lock, ruled, "by_offset");
	expect_lock(&without_rule, 0, "without_rule");
	expect_lock(&without_offset.lock, 0, "without_offset");
	expect_lock(&no_mutex, 0, "no_mutex");
	initialise(memory, PTHREAD_PROCESS_PRIVATE);
	expect_lock(memory, ruled, "initialised");
	EXPECT_OK(pthread_rwlock_destroy(memory));
	initialise(memory, PTHREAD_PROCESS_SHARED);
	EXPECT(flag_of(memory) == 1, "%d", flag_of(memory));
	EXPECT_OK(pthread_rwlock_destroy(memory));
	EXPECT_OK(pthread_rwlock_init(memory, NULL));
	expect_lock(memory, 0, "initialised elsewhere");
	EXPECT_OK(pthread_rwlock_destroy(memory));
	free(memory);
	EXPECT(in_use[0] == 1 && !in_use[3], "%ld, %ld", in_use[0], in_use[3]);
}

static int child(unsigned char ruled)
{
	pid_t forked;
	int status;

	wait_for(&without_offset.lock);
	check_locks(ruled);
	forked = fork();
	EXPECT(forked >= 0, "fork");
	if (!forked) {
		check_locks(ruled);
		_exit(0);
	}
	EXPECT(waitpid(forked, &status, 0) == forked && !status, "the forked child: %x", status);
	return 0;
}

/* ---- Settings of the process's lock, in the child ---- */

/* core/part/rw_word.h: flags of the word, bytes 16 to 19. */
enum { CLOSED = 2, PARKED = 4 };

/* Whether a waiter for @lock closes it to newcomers before it sleeps, as with patience=0. */
static bool closes(pthread_rwlock_t *lock)
{
	pthread_t reader;
	uint32_t word;

	EXPECT_OK(pthread_rwlock_wrlock(lock));
	reader = start(wait_and_read, lock);
	while (!((word = __atomic_load_n((uint32_t *)lock + 4, __ATOMIC_ACQUIRE)) & PARKED))
		sched_yield();
	EXPECT_OK(pthread_rwlock_unlock(lock));
	finish(reader);
	return word & CLOSED;
}

/* Any lock of an object, also by a pattern or without its offset: all keep the process's words. */
static int set()
{
	pthread_rwlock_t memory;

	EXPECT(closes(&named) && closes(&named_nonrecursive), "by name");
	EXPECT(closes(&by_offset.lock) && closes(&without_offset.lock), "in an object");
	EXPECT(!closes(&without_rule), "by no rule");
	initialise(&memory, PTHREAD_PROCESS_PRIVATE);
	EXPECT(closes(&memory) && !flag_of(&memory), "by site");
	EXPECT_OK(pthread_rwlock_destroy(&memory));
	EXPECT_OK(pthread_rwlock_init(&memory, NULL));
	EXPECT(!closes(&memory), "initialised elsewhere");
	return 0;
}

/* ---- In the parent ---- */

static void apply_rules(const std::string &spec, const std::string &setting)
{
	std::string errors;

	write_rules(rules_for(spec));
	expect_part = spec.c_str();
	limit();
	errors = run({variable(file), setting}, "ruled");
	EXPECT(errors.find(file + WITHOUT_OFFSET) == strlen("poundlock: ") &&
		       errors.find('\n') == errors.size() - 1,
	       "%s", errors.c_str());
}

/* Without another algorithm, nothing is given and every rule applies. */
static void apply_settings(const std::string &spec, const std::string &setting, const char *child)
{
	std::string errors;

	write_rules(rules_for(spec));
	expect_part = spec.c_str();
	limit();
	errors = run({variable(file), setting}, child);
	EXPECT(errors.empty(), "%s", errors.c_str());
}

static void refuse_rules(const std::string &text, const std::string &setting, const char *why)
{
	std::string errors;

	write_rules(text);
	errors = run({variable(file), setting}, "plain");
	EXPECT(errors.find(why) != std::string::npos && errors.find('\n') == errors.size() - 1,
	       "'%s' in: %s", why, errors.c_str());
}

int main(int argc, char **argv)
{
	EXPECT(argc >= 2, "usage: rules_rwlocks LIBRARY LOCK...");
	limit();
	if (!strcmp(argv[1], "ruled"))
		return child(2);
	if (!strcmp(argv[1], "plain"))
		return child(0);
	if (!strcmp(argv[1], "set"))
		return set();
	begin(argv[1]);
	for (char **lock = argv + 2; *lock; lock++)
		if (strcmp(*lock, "shfl_rw"))
			apply_rules(*lock, "");
	apply_settings("shfl_rw", "", "plain");
	apply_settings("shfl_rw,patience=0", "", "set");
	apply_settings("shfl_rw,patience=0,policy=fifo,batch=2,spins=3", "", "set");
	apply_settings("shfl_rw,patience=0", std::string("POUNDLOCK_STATS=") + folder, "set");
	apply_settings("shfl_rw,patience=0", std::string("POUNDLOCK_CONTROL=") + folder, "set");
	apply_settings("bravo_shfl_rw,patience=0", "POUNDLOCK_RWLOCK=bravo_shfl_rw", "set");
	apply_rules("fair_rw,wait=yield", "POUNDLOCK_RWLOCK=shfl_rw,patience=0");
	apply_rules("shfl_rw", "POUNDLOCK_RWLOCK=fair_rw");
	apply_rules("fair_rw", std::string("POUNDLOCK_STATS=") + folder);
	apply_rules("fair_rw", std::string("POUNDLOCK_CONTROL=") + folder);
	apply_rules("fair_rw", "POUNDLOCK_DEBUG=1");
	refuse_rules(rules_for("fair_rw"), "POUNDLOCK_RWLOCK=native",
		     "line 1: all readers-writer locks are native; no rule applies");
	refuse_rules("[[rule]]\nsymbol = \"named\"\nrwlock = \"mcs\"\n", "",
		     "line 3: there is no readers-writer lock 'mcs'; no rule applies");
	refuse_rules("[[rule]]\nsymbol = \"named\"\nrwlock = \"fair_rw\"\nlock = \"mcs\"\n", "",
		     "line 4: the rule has a lock already; no rule applies");
	end();
	return 0;
}
