/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * POUNDLOCK_RULES that give single mutexes other locks. argv[1] is the library, and the names of
 * all locks follow. A child of this program runs under the library: the mutexes that the rules name
 * have the lock, which their kind shows, and behave as mutexes of their types; all others have the
 * default lock.
 */
#include <mutex>
#include <sys/prctl.h>
#include <threads.h>

#include "ruled.h"

#define THREADS 4
#define ROUNDS 500

struct table {
	long before[5];
	pthread_mutex_t mutex;
};

/* Not static: the compiler must not merge or rename them. */
extern "C" {
pthread_mutex_t named = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t named_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_mutex_t named_errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
pthread_mutex_t named_adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
pthread_mutex_t without_rule = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t native = {};
struct table by_offset = {{}, PTHREAD_MUTEX_INITIALIZER};
struct table without_offset = {{}, PTHREAD_MUTEX_INITIALIZER};
pthread_mutex_t by_pattern = PTHREAD_MUTEX_INITIALIZER;
/* Of a mutex's size, and no unused mutex. */
long in_use[sizeof(pthread_mutex_t) / sizeof(long)] = {1};
extern const long constant[sizeof(pthread_mutex_t) / sizeof(long)];
const long constant[sizeof(pthread_mutex_t) / sizeof(long)] = {};
}

namespace tenant
{
std::mutex cxx_mutex;
}

extern "C" __attribute__((noinline)) void initialise(pthread_mutex_t *mutex, int type)
{
	init_mutex(mutex, type);
	__asm__ __volatile__("");
}

extern "C" __attribute__((noinline)) void initialise_c11(pthread_mutex_t *mutex)
{
	EXPECT(mtx_init((mtx_t *)mutex, mtx_plain) == thrd_success, "mtx_init");
	__asm__ __volatile__("");
}

static std::string rules_for(const std::string &spec)
{
	std::string text;

	for (const char *pattern :
	     {"symbol = \"named\"", "symbol = \"named_recursive\"", "symbol = \"named_errorcheck\"",
	      "symbol = \"named_adaptive\"", "symbol = \"by_offset+0x28\"",
	      "symbol = \"without_offset\"", "symbol = \"by_patter?\"", "symbol = \"in_use\"",
	      "symbol = \"constant\"", "symbol = \"_ZN6tenant9cxx_mutexE\"",
	      "site = \"initialise*\""})
		text += std::string("[[rule]]\n") + pattern + "\nlock = \"" + spec + "\"\n";
	return text;
}

/* The lines of two rules above that do not apply, up to the lock that is kept. */
#define WITHOUT_OFFSET ":16: without_offset+0x28 keeps "
#define BY_PATTERN ":19: an object that 'by_patter?' matches keeps "

/* ---- In the child ---- */

/* preload/layout.h: the flag of a kind. */
static bool has_other(const pthread_mutex_t *mutex)
{
	return mutex->__data.__kind & 0x8000;
}

static int type_of(const pthread_mutex_t *mutex)
{
	return mutex->__data.__kind & 3;
}

struct counted {
	pthread_mutex_t *mutex;
	pthread_cond_t cond;
	long count, waited;
};

/* Every other round waits for the count of another thread. */
static void *count(void *argument)
{
	struct counted *counted = (struct counted *)argument;

	for (int i = 0; i < ROUNDS; i++) {
		struct timespec soon = from_now(CLOCK_REALTIME, 1);
		int error = i % 3 ? pthread_mutex_lock(counted->mutex)
				  : pthread_mutex_timedlock(counted->mutex, &soon);

		if (error == ETIMEDOUT)
			EXPECT_OK(pthread_mutex_lock(counted->mutex));
		else
			EXPECT_OK(error);
		counted->count++;
		if (i % 64 == 1) {
			soon = from_now(CLOCK_REALTIME, 1);
			error = pthread_cond_timedwait(&counted->cond, counted->mutex, &soon);
			EXPECT(!error || error == ETIMEDOUT, "%d", error);
			counted->waited++;
		}
		EXPECT_OK(pthread_cond_signal(&counted->cond));
		EXPECT_OK(pthread_mutex_unlock(counted->mutex));
	}
	return NULL;
}

/* Mutual exclusion, with timed waits and a condition variable. */
static void expect_exclusion(pthread_mutex_t *mutex)
{
	struct counted counted = {mutex, PTHREAD_COND_INITIALIZER, 0, 0};
	pthread_t threads[THREADS];

	for (pthread_t &thread : threads)
		thread = start(count, &counted);
	for (pthread_t &thread : threads)
		finish(thread);
	EXPECT(counted.count == (long)THREADS * ROUNDS, "%ld", counted.count);
	EXPECT(counted.waited == (long)THREADS * (ROUNDS / 64 + 1), "%ld", counted.waited);
	EXPECT_OK(pthread_cond_destroy(&counted.cond));
}

static int timed_in_past(pthread_mutex_t *mutex)
{
	struct timespec past = {.tv_sec = 1, .tv_nsec = 0};

	return pthread_mutex_timedlock(mutex, &past);
}

/* While this thread holds @mutex. */
static void expect_held(pthread_mutex_t *mutex)
{
	EXPECT_RESULT(elsewhere(pthread_mutex_trylock, mutex), EBUSY);
	EXPECT_RESULT(elsewhere(timed_in_past, mutex), ETIMEDOUT);
	EXPECT_RESULT(elsewhere(pthread_mutex_destroy, mutex), EBUSY);
	if (type_of(mutex) == PTHREAD_MUTEX_RECURSIVE) {
		EXPECT_OK(pthread_mutex_lock(mutex));
		EXPECT_OK(pthread_mutex_trylock(mutex));
		EXPECT_OK(pthread_mutex_unlock(mutex));
		EXPECT_OK(pthread_mutex_unlock(mutex));
	} else {
		EXPECT_RESULT(pthread_mutex_trylock(mutex), EBUSY);
	}
	if (type_of(mutex) == PTHREAD_MUTEX_ERRORCHECK)
		EXPECT_RESULT(pthread_mutex_lock(mutex), EDEADLK);
	if (type_of(mutex) == PTHREAD_MUTEX_ERRORCHECK || type_of(mutex) == PTHREAD_MUTEX_RECURSIVE)
		EXPECT_RESULT(elsewhere(pthread_mutex_unlock, mutex), EPERM);
}

static void expect_works(pthread_mutex_t *mutex)
{
	EXPECT_OK(pthread_mutex_trylock(mutex));
	expect_held(mutex);
	EXPECT_OK(pthread_mutex_unlock(mutex));
	EXPECT_OK(pthread_mutex_lock(mutex));
	EXPECT_OK(pthread_mutex_unlock(mutex));
	expect_exclusion(mutex);
}

/* @owners: whether the lock has room for an owner. */
static void expect_lock(pthread_mutex_t *mutex, bool other, bool owners, const char *name)
{
	int type = type_of(mutex);

	if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK)
		other = other && owners;
	EXPECT(has_other(mutex) == other, "%s: kind %x", name, mutex->__data.__kind);
	expect_works(mutex);
	EXPECT(has_other(mutex) == other, "%s: kind %x", name, mutex->__data.__kind);
}

static void initialised(bool other, bool owners)
{
	pthread_mutex_t *memory = (pthread_mutex_t *)calloc(1, sizeof(*memory)), copy;

	for (int type : {(int)PTHREAD_MUTEX_NORMAL, (int)PTHREAD_MUTEX_RECURSIVE,
			 (int)PTHREAD_MUTEX_ERRORCHECK, (int)PTHREAD_MUTEX_ADAPTIVE_NP}) {
		initialise(memory, type);
		expect_lock(memory, other, owners, "initialised");
		memcpy(&copy, memory, sizeof(copy));
		expect_lock(&copy, other, owners, "copied");
		EXPECT_OK(pthread_mutex_destroy(&copy));
		EXPECT_OK(pthread_mutex_destroy(memory));
		EXPECT_RESULT(pthread_mutex_lock(memory), EINVAL);
	}
	initialise_c11(memory);
	expect_lock(memory, other, owners, "mtx_init");
	/* Initialised elsewhere, without having been destroyed. */
	EXPECT_OK(pthread_mutex_init(memory, NULL));
	expect_lock(memory, false, owners, "initialised elsewhere");
	EXPECT_OK(pthread_mutex_destroy(memory));
	free(memory);
}

static void all_mutexes(bool other, bool owners)
{
	expect_lock(&named, other, owners, "named");
	expect_lock(&named_recursive, other, owners, "named_recursive");
	expect_lock(&named_errorcheck, other, owners, "named_errorcheck");
	expect_lock(&named_adaptive, other, owners, "named_adaptive");
	expect_lock(&by_offset.mutex, other, owners, "by_offset");
	expect_lock(tenant::cxx_mutex.native_handle(), other, owners, "cxx_mutex");
	expect_lock(&without_rule, false, owners, "without_rule");
	expect_lock(&without_offset.mutex, false, owners, "without_offset");
	expect_lock(&by_pattern, false, owners, "by_pattern");
	initialised(other, owners);
}

static void expect_data_unchanged(void)
{
	EXPECT(in_use[0] == 1, "%ld", in_use[0]);
	for (size_t i = 1; i < sizeof(in_use) / sizeof(long); i++)
		EXPECT(!in_use[i], "%zu: %ld", i, in_use[i]);
}

/* A native mutex stays native, whatever initialises it. */
static void native_mutex(void)
{
	pthread_mutexattr_t attr;

	EXPECT_OK(pthread_mutexattr_init(&attr));
	EXPECT_OK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	EXPECT_OK(pthread_mutex_init(&native, &attr));
	EXPECT(!has_other(&native), "kind %x", native.__data.__kind);
	expect_works(&native);
	EXPECT_OK(pthread_mutex_destroy(&native));
	EXPECT_OK(pthread_mutexattr_destroy(&attr));
}

/* A child has the mutexes of its parent, those that are held included. */
static void forked(bool other, bool owners)
{
	pid_t child;
	int status;

	EXPECT_OK(pthread_mutex_lock(&named));
	child = fork();
	EXPECT(child >= 0, "fork");
	if (!child) {
		expect_held(&named);
		EXPECT_OK(pthread_mutex_unlock(&named));
		all_mutexes(other, owners);
		_exit(0);
	}
	EXPECT_OK(pthread_mutex_unlock(&named));
	EXPECT(waitpid(child, &status, 0) == child && !status, "the forked child: %x", status);
	expect_works(&named);
}

static int child(bool other, bool owners)
{
	expect_data_unchanged();
	all_mutexes(other, owners);
	native_mutex();
	forked(other, owners);
	expect_data_unchanged();
	return 0;
}

/* With checks, which report nothing. */
static int be_checked(void)
{
	for (pthread_mutex_t *mutex : {&named, &named_adaptive, &by_offset.mutex}) {
		EXPECT(has_other(mutex), "kind %x", mutex->__data.__kind);
		expect_exclusion(mutex);
		EXPECT_OK(pthread_mutex_destroy(mutex));
	}
	return 0;
}

/* From a sandbox on, nothing is reported: the filter might end the process. */
static int be_quiet(void)
{
	EXPECT(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl");
	expect_lock(&without_offset.mutex, false, true, "without_offset");
	return 0;
}

/* ---- In the parent ---- */

static size_t count_of(const std::string &text, const std::string &part)
{
	size_t found = 0;

	for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at++)
		found++;
	return found;
}

/*
 * Expects a line about each rule that does not apply to a static mutex, which keeps @own, and @more
 * lines.
 */
static void expect_reports(const std::string &errors, size_t more,
			   const std::string &own = "shfl_ron")
{
	for (const char *part : {WITHOUT_OFFSET, BY_PATTERN})
		EXPECT(count_of(errors, file + part + own + ", not ") == 1, "'%s' in: %s", part,
		       errors.c_str());
	EXPECT(count_of(errors, "\n") == 2 + more, "%s", errors.c_str());
}

/* In each process, a rule that does not apply is reported once: here, in two. */
static void apply(const std::string &spec, std::initializer_list<std::string> settings,
		  const std::string &own = "shfl_ron")
{
	write_rules(rules_for(spec));
	expect_part = spec.c_str();
	limit();
	expect_reports(run(settings, "other"), 0, own);
}

static void apply_all(char **locks)
{
	for (; *locks; locks++) {
		const std::string lock = *locks;

		/* Without room for owners, which is reported for each rule that meets one. */
		if (lock == "adaptive" || lock == "hapax") {
			std::string errors;

			write_rules(rules_for(lock));
			errors = run({variable(file)}, "ownerless");
			expect_reports(errors, 3);
			EXPECT(count_of(errors, lock + " has no room for its owner") == 3, "%s",
			       errors.c_str());
		} else if (lock == "shfl_ron") {
			apply(lock, {variable(file), "POUNDLOCK_LOCK=shfl_mutex"}, "shfl_mutex");
		} else if (lock != "shfl_mutex") {
			apply(lock, {variable(file)});
		}
	}
}

int main(int argc, char **argv)
{
	EXPECT(argc >= 2, "usage: rules_locks LIBRARY LOCK...");
	limit();
	if (!strcmp(argv[1], "other"))
		return child(true, true);
	if (!strcmp(argv[1], "ownerless"))
		return child(true, false);
	if (!strcmp(argv[1], "plain"))
		return child(false, true);
	if (!strcmp(argv[1], "quiet"))
		return be_quiet();
	if (!strcmp(argv[1], "checked"))
		return be_checked();
	begin(argv[1]);
	apply_all(argv + 2);
	apply("mcs,wait=spin", {variable(file)});
	apply("shfl_mutex,wait=yield", {variable(file)});
	apply("shfl_mutex,policy=fair", {variable(file)});
	apply("shfl_mutex,policy=occupancy", {variable(file)});
	for (const char *lock : {"mcs", "cfl_mutex,grace_period=1000", "c_bo_mcs"}) {
		apply(lock, {variable(file), std::string("POUNDLOCK_STATS=") + folder});
		apply(lock, {variable(file), std::string("POUNDLOCK_CONTROL=") + folder});
		EXPECT(run({variable(file), "POUNDLOCK_DEBUG=1"}, "checked").empty(), "%s", lock);
		apply(lock, {variable(file), "POUNDLOCK_LOCK=shfl_ron,patience=0"});
		apply(lock, {variable(file), "POUNDLOCK_LOCK=shfl_mutex"}, "shfl_mutex");
	}
	EXPECT(run({variable(file)}, "quiet").empty(), "a report from a sandbox");
	EXPECT(run({variable("")}, "plain").empty(), "a report without rules");
	for (const char *lock : {"shfl_ron,patience=0", "shfl_mutex,patience=0"}) {
		write_rules(rules_for(lock));
		EXPECT(run({variable(file)}, "plain").empty(), "a report of settings: %s", lock);
	}
	EXPECT(run({variable(file), "POUNDLOCK_LOCK=shfl_mutex"}, "plain").empty(),
	       "a report of settings for the waiters of shfl_mutex");
	end();
	return 0;
}
