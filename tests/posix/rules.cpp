/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * POUNDLOCK_RULES. argv[1] is the library. The settings of a mutex are visible in its word: with
 * patience=0 a waiter that is the queue head closes the mutex to newcomers before it sleeps, and by
 * default not before its fifth failed attempt. A child of this program runs under the library, and
 * checks the mutexes below.
 */
#include <mutex>
#include <regex>
#include <threads.h>

#include "ruled.h"

/* Not static: the compiler must not merge or rename them. */
extern "C" {
pthread_mutex_t by_symbol = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t by_offset[3];
pthread_mutex_t without_rule = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t recursive_by_symbol = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_mutex_t first_rule_wins = PTHREAD_MUTEX_INITIALIZER;
}

namespace tenant
{
std::mutex cxx_mutex;
}

extern "C" __attribute__((noinline)) void initialise_eager(pthread_mutex_t *mutex, int type)
{
	pthread_mutexattr_t attr;

	EXPECT_OK(pthread_mutexattr_init(&attr));
	EXPECT_OK(pthread_mutexattr_settype(&attr, type));
	EXPECT_OK(pthread_mutex_init(mutex, &attr));
	EXPECT_OK(pthread_mutexattr_destroy(&attr));
}

extern "C" __attribute__((noinline)) void initialise_c11(pthread_mutex_t *mutex)
{
	EXPECT(mtx_init((mtx_t *)mutex, mtx_plain) == thrd_success, "mtx_init");
}

extern "C" __attribute__((noinline)) void initialise_other(pthread_mutex_t *mutex)
{
	EXPECT_OK(pthread_mutex_init(mutex, NULL));
}

static const char rules[] = "# The mutexes of this test\n"
			    "[[rule]]\n"
			    "symbol = \"*by_symbol\"\n"
			    "lock = \"shfl_mutex,patience=0\"\n"
			    "\n"
			    "[[rule]] # the second of three\n"
			    "lock = \"shfl_mutex,patience=0\"\n"
			    "symbol = \"by_offset+0x28\"\n"
			    "[[rule]]\n"
			    "symbol = \"*tenant*cxx_mute?E\"\n"
			    "lock = \"shfl_mutex,patience=0,policy=fifo\"\n"
			    "[[ rule ]]\r\n"
			    "\tsite=\"initialise_[ec]*\"\n"
			    "lock = \"shfl_mutex,patience=7\"\n"
			    "[[rule]]\n"
			    "site = \"initialise_eager\"\n"
			    "lock = \"shfl_mutex,patience=0\"\n"
			    "[[rule]]\n"
			    "site = \"initialise_c11\"\n"
			    "lock = \"shfl_mutex,patience=0\"\n"
			    "[[rule]]\n"
			    "symbol = \"first_rule_wins\"\n"
			    "lock = \"shfl_mutex,patience=9\"\n"
			    "[[rule]]\n"
			    "symbol = \"first*\"\n"
			    "lock = \"shfl_mutex,patience=0\"";

/* ---- In the child ---- */

/* core/shfl_mutex.h: flags of the state, bytes 20 to 23. */
enum { LOCKED = 1, PARKED = 2, CLOSED = 8 };

static uint32_t state_of(const pthread_mutex_t *mutex)
{
	return __atomic_load_n((const uint32_t *)mutex + 5, __ATOMIC_ACQUIRE);
}

static void *lock_and_unlock(void *mutex)
{
	EXPECT_OK(pthread_mutex_lock((pthread_mutex_t *)mutex));
	EXPECT_OK(pthread_mutex_unlock((pthread_mutex_t *)mutex));
	return NULL;
}

static void *lock_in_time_and_unlock(void *mutex)
{
	struct timespec at = from_now(CLOCK_REALTIME, 1000000);

	EXPECT_OK(pthread_mutex_timedlock((pthread_mutex_t *)mutex, &at));
	EXPECT_OK(pthread_mutex_unlock((pthread_mutex_t *)mutex));
	return NULL;
}

static void expect_closed_by(void *(*waiter)(void *), pthread_mutex_t *mutex, bool closed,
			     const char *name)
{
	pthread_t thread;
	uint32_t state;

	EXPECT_OK(pthread_mutex_lock(mutex));
	EXPECT_OK(pthread_create(&thread, NULL, waiter, mutex));
	while (!((state = state_of(mutex)) & PARKED))
		sched_yield();
	EXPECT((state & LOCKED) && !(state & CLOSED) == !closed, "%s: state %x, expected %s", name,
	       state, closed ? "closed" : "open");
	EXPECT_OK(pthread_mutex_unlock(mutex));
	EXPECT_OK(pthread_join(thread, NULL));
}

static void expect_closed(pthread_mutex_t *mutex, bool closed, const char *name)
{
	expect_closed_by(lock_and_unlock, mutex, closed, name);
	expect_closed_by(lock_in_time_and_unlock, mutex, closed, name);
}

static void check_mutexes(bool ruled)
{
	pthread_mutex_t *memory = (pthread_mutex_t *)calloc(1, sizeof(*memory));

	expect_closed(&by_symbol, ruled, "by_symbol");
	expect_closed(&recursive_by_symbol, ruled, "recursive_by_symbol");
	expect_closed(&by_offset[0], false, "by_offset[0]");
	expect_closed(&by_offset[1], ruled, "by_offset[1]");
	expect_closed(&by_offset[2], false, "by_offset[2]");
	expect_closed(tenant::cxx_mutex.native_handle(), ruled, "cxx_mutex");
	expect_closed(&without_rule, false, "without_rule");
	expect_closed(&first_rule_wins, false, "first_rule_wins");
	initialise_eager(memory, PTHREAD_MUTEX_NORMAL);
	expect_closed(memory, ruled, "normal");
	EXPECT_OK(pthread_mutex_destroy(memory));
	initialise_eager(memory, PTHREAD_MUTEX_ADAPTIVE_NP);
	expect_closed(memory, ruled, "adaptive");
	EXPECT_OK(pthread_mutex_destroy(memory));
	initialise_eager(memory, PTHREAD_MUTEX_RECURSIVE);
	expect_closed(memory, false, "recursive");
	EXPECT_OK(pthread_mutex_destroy(memory));
	initialise_c11(memory);
	expect_closed(memory, ruled, "mtx_init");
	EXPECT_OK(pthread_mutex_destroy(memory));
	initialise_other(memory);
	expect_closed(memory, false, "initialised elsewhere");
	EXPECT_OK(pthread_mutex_destroy(memory));
	free(memory);
}

static int child(bool ruled)
{
	pid_t forked;
	int status;

	check_mutexes(ruled);
	forked = fork();
	EXPECT(forked >= 0, "fork");
	if (!forked) {
		check_mutexes(ruled);
		_exit(0);
	}
	EXPECT(waitpid(forked, &status, 0) == forked && !status, "the forked child: %x", status);
	return 0;
}

/* ---- In the parent ---- */

/* Expects that the rules do not apply, and one line about @why. */
static void expect_refused(const std::string &errors, const std::string &why)
{
	EXPECT(errors.find(why) != std::string::npos, "'%s' in: %s", why.c_str(), errors.c_str());
	EXPECT(errors.find("; no rule applies\n") == errors.size() - 18 &&
		       errors.find('\n') == errors.size() - 1,
	       "%s", errors.c_str());
}

static void apply()
{
	std::string errors;

	expect_part = "apply";
	write_rules(rules);
	errors = run({variable(file)}, "ruled");
	EXPECT(errors.empty(), "%s", errors.c_str());
	errors = run({variable(file), "POUNDLOCK_LOCK=shfl_mutex,batch=7"}, "ruled");
	EXPECT(errors.empty(), "%s", errors.c_str());
	errors = run({variable(file), std::string("POUNDLOCK_STATS=") + folder}, "ruled");
	EXPECT(errors.empty(), "%s", errors.c_str());
	errors = run({variable(file), "POUNDLOCK_LOCK=shfl_ron"}, "ruled");
	EXPECT(errors.empty(), "%s", errors.c_str());
	errors = run({variable(file), "POUNDLOCK_DEBUG=1"}, "ruled");
	EXPECT(errors.empty(), "%s", errors.c_str());
	errors = run({variable("")}, "plain");
	EXPECT(errors.empty(), "%s", errors.c_str());
	write_rules(std::regex_replace(rules, std::regex("shfl_mutex"), "shfl_ron"));
	errors = run({variable(file), "POUNDLOCK_LOCK=shfl_ron"}, "ruled");
	EXPECT(errors.empty(), "%s", errors.c_str());
	write_rules("");
	errors = run({variable(file)}, "plain");
	EXPECT(errors.empty(), "%s", errors.c_str());
}

/* POUNDLOCK_VERBOSE reports how many symbols a pattern matches. */
static void report()
{
	std::string errors;

	expect_part = "report";
	write_rules(std::string(rules) + "\n[[rule]]\nsymbol = \"no_such_symbol\"\n"
					 "lock = \"shfl_mutex\"\n");
	errors = run({variable(file), "POUNDLOCK_VERBOSE=1"}, "ruled");
	for (const char *line :
	     {":2: '*by_symbol' matches 2 objects\n", ":6: 'by_offset' matches 1 object\n",
	      ":15: 'initialise_eager' matches 1 function\n",
	      ":27: 'no_such_symbol' matches 0 objects\n"})
		EXPECT(errors.find(file + line) != std::string::npos, "'%s' in: %s", line,
		       errors.c_str());
}

static void refuse()
{
	const std::string rule = "[[rule]]\nsymbol = \"without_rule\"\n",
			  lock = "lock = \"shfl_mutex,patience=0\"\n";
	const struct {
		std::string text, why;
	} wrong[] = {
		{rule, "line 1: the rule has no lock"},
		{"\n[[rule]]\n" + lock, "line 2: the rule has neither a symbol nor a site"},
		{rule + "lock = \"shfl_mutex,patience=x\"", "line 3: patience=x"},
		{rule + "lock = \"nosuch\"", "line 3: there is no lock 'nosuch'"},
		{rule + "lock = \"mcs,wait=x\"", "line 3: wait=x"},
		{rule + "lock = \"cfl_mutex,patience=1\"", "line 3: lock cfl_mutex has no key"},
		{rule + "lock = \"native\"", "line 3: there is no lock 'native'"},
		{rule + lock + lock, "line 4: the rule has a lock already"},
		{rule + "site = \"main\"", "line 3: the rule has a symbol or a site already"},
		{rule + lock + "colour = \"red\"", "line 4: the keys of a rule"},
		{lock, "line 1: no [[rule]] comes before it"},
		{rule + "lock = shfl_mutex", "line 3: the value is not a string"},
		{rule + "lock = 'shfl_mutex'", "line 3: the value is not a string"},
		{rule + "lock = \"shfl_mutex", "line 3: the string has no end"},
		{rule + "lock = \"\"", "line 3: the string is empty"},
		{rule + "lock = \"shfl\\u005fmutex\"", "line 3: a string has printable ASCII"},
		{rule + "lock = \"" + std::string(300, 'x') + "\"", "line 3: the string has more"},
		{rule + lock + "\"", "line 4: neither"},
		{rule + lock + std::string(1, '\0'), "line 4: neither"},
		{rule + "lock = \"shfl_mutex\" x", "line 3: unexpected characters"},
		{"[[rule]] [[rule]]", "line 1: unexpected characters"},
		{"[rule]", "line 1: neither"},
		{"# \x01", "line 1: unexpected characters"},
		{"[[rule]]\nsymbol = \"a+12\"\n", "line 2: 'a+12' is not SYMBOL+0xOFFSET"},
		{"[[rule]]\nsymbol = \"a+0x\"\n", "line 2: 'a+0x' is not"},
		{"[[rule]]\nsymbol = \"a+0x11112222333344445\"\n", "line 2: 'a+0x1111"},
		{std::string(70000, '\n'), "has more than 65536 bytes"},
	};
	std::string many;

	for (const auto &each : wrong) {
		expect_part = each.why.c_str();
		write_rules(each.text);
		expect_refused(run({variable(file)}, "plain"), each.why);
	}
	expect_part = "refuse";
	for (int i = 0; i < 65; i++)
		many += rule + lock;
	write_rules(many);
	expect_refused(run({variable(file)}, "plain"), "line 193: there are more than 64 rules");
	write_rules("[[rule]]\nsymbol = \"*\"\n" + lock);
	expect_refused(run({variable(file)}, "plain"), "match more than 256 symbols");
	write_rules(rules);
	expect_refused(run({variable("/no/such/file")}, "plain"), "cannot be read");
	expect_refused(run({variable("/tmp")}, "plain"), "cannot be read");
}

int main(int argc, char **argv)
{
	EXPECT(argc == 2, "usage: rules LIBRARY");
	limit();
	if (!strcmp(argv[1], "ruled") || !strcmp(argv[1], "plain"))
		return child(!strcmp(argv[1], "ruled"));
	begin(argv[1]);
	apply();
	report();
	refuse();
	end();
	return 0;
}
