/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A lock's specification: valid forms, and the one line that names an error. */
#include "any.h"

#include <errno.h>
#include <pthread.h>

#include "any_rw.h"
#include "built.h"
#include "poundlock.h"
#include "shfl_mutex.h"
#include "spec.h"
#include "unit.h"

static const struct {
	const char *spec, *error;
} wrong[] = {
	{"", "there is no lock ''"},
	{"pthread", "there is no lock 'pthread'"},
	{"mc", "there is no lock 'mc'"},
	{"mcsx,wait=park", "there is no lock 'mcsx'"},
	{"mcs,", "'' of lock mcs is not key=value"},
	{"mcs,wait", "'wait' of lock mcs is not key=value"},
	{"mcs,wait=sleep", "wait=sleep: not one of spin, yield, park"},
	{"mcs,wait=", "wait=: not one of spin, yield, park"},
	{"mcs,threshold=1", "lock mcs has no key 'threshold'"},
	{"ttas,wait=park,color=red", "lock ttas has no key 'color'"},
	{"cna,threshold=0", "threshold=0: not a number from 1 to 4294967294"},
	{"cna,threshold=4294967295", "threshold=4294967295: not a number from 1 to 4294967294"},
	{"cna,threshold=99999999999999999999999",
	 "threshold=99999999999999999999999: not a number from 1 to 4294967294"},
	{"cna,threshold=1x", "threshold=1x: not a number from 1 to 4294967294"},
	{"cna,reduction=-1", "reduction=-1: not a number from 0 to 4294967294"},
	{"ttas,backoff= 5", "backoff= 5: not a number from 0 to 1000000"},
	{"shfl_mutex,patience=", "patience=: not a number from 0 to 1000000000"},
	{"shfl,policy=", "policy=: not one of fifo, numa, route, group, fair, occupancy, own"},
	{"shfl_spin,policy=rout",
	 "policy=rout: not one of fifo, numa, route, group, fair, occupancy, own"},
	{"shfl_spin,policy=routes",
	 "policy=routes: not one of fifo, numa, route, group, fair, occupancy, own"},
	{"shfl_spin,policy=fifo numa",
	 "policy=fifo numa: not one of fifo, numa, route, group, fair, occupancy, own"},
	{"shfl,policy=own", "policy=own: the program has registered no policy (pound_policy_use)"},
	{"shfl,batch=0", "batch=0: not a number from 1 to 1000000"},
};

static void wrong_specs(void)
{
	char error[128];

	for (int i = 0; i < COUNT(wrong); i++) {
		if (!built(wrong[i].spec))
			continue;
		errno = 77;
		EXPECT(!any_find(wrong[i].spec, error, sizeof(error)), "'%s'", wrong[i].spec);
		EXPECT(!strcmp(error, wrong[i].error), "'%s' gives: %s", wrong[i].spec, error);
		EXPECT(errno == 77, "'%s' changes errno", wrong[i].spec);
		EXPECT(!any_find(wrong[i].spec, NULL, 0));
		EXPECT(!any_find(wrong[i].spec, error, 8) && strlen(error) == 7);
	}
}

static void long_spec(void)
{
	char spec[2000], error[64];

	memset(spec, 'x', sizeof(spec) - 1);
	spec[sizeof(spec) - 1] = 0;
	EXPECT(!any_find(spec, error, sizeof(error)) &&
	       !strncmp(error, "there is no lock 'xxx", 21));
	memcpy(spec, "shfl,", 5);
	EXPECT(!any_find(spec, error, sizeof(error)) && strstr(error, "too long"), "%s", error);
}

/* A specification with an error in its second half changes nothing by its first half. */
static void wrong_specs_change_nothing(void)
{
	pound_lock_t lock;

	EXPECT(pound_lock_init(&lock, "shfl,batch=5,foo=1", NULL, 0) == EINVAL);
	EXPECT(pound_lock_init(&lock, "shfl,batch=7,wait=no", NULL, 0) == EINVAL);
	EXPECT(any_find("shfl", NULL, 0));
}

/* The effect of a specification, shown by a lock whose functions depend on its policy. */
static void a_check_sets_nothing(void)
{
	const struct any_ops *before = any_find("shfl_mutex,policy=numa", NULL, 0), *measuring;
	char error[128];

	EXPECT(any_check("shfl_mutex,policy=fair", NULL, 0) &&
	       any_find("shfl_mutex", NULL, 0) == before);
	EXPECT(!any_check("shfl_mutex,policy=fair,foo=1", error, sizeof(error)));
	EXPECT(!strcmp(error, "lock shfl_mutex has no key 'foo'"), "%s", error);
	EXPECT(any_find("shfl_mutex", NULL, 0) == before);
	measuring = any_find("shfl_mutex,policy=fair", NULL, 0);
	EXPECT(measuring != before && any_find("shfl_mutex", NULL, 0) == measuring);
	EXPECT(any_find("shfl_mutex,policy=numa", NULL, 0) == before);
	EXPECT(any_rw_check("shfl_rw,patience=3", NULL, 0) &&
	       !any_rw_check("shfl_rw,foo=1", error, sizeof(error)));
}

/* A setting that a specification does not name keeps a value that another thread sets meanwhile. */
static void only_what_is_named_is_set(void)
{
	W_ATOMIC(uint32_t) named = 1, other = 2, stranger = 3;
	const struct setting settings[] = {{"lock", "named", &named, 0, 100, ""},
					   {"lock", "other", &other, 0, 100, ""},
					   {"stranger", "named", &stranger, 0, 100, ""}};
	struct given given[COUNT(settings)];
	enum wait wait = WAIT_YIELD;

	EXPECT(spec_parse("lock", "named=10", settings, 3, &wait, given, NULL, 0) &&
	       wait == WAIT_YIELD);
	EXPECT(spec_value(&named) == 1, "parsing has set it");
	atomic_store(&other, 20);
	atomic_store(&stranger, 30);
	spec_set(settings, 3, given);
	EXPECT(spec_value(&named) == 10 && spec_value(&other) == 20 && spec_value(&stranger) == 30);
	EXPECT(spec_parse("lock", "wait=park", settings, 3, &wait, given, NULL, 0) &&
	       wait == WAIT_PARK);
	spec_set(settings, 3, given);
	EXPECT(spec_value(&named) == 10 && spec_value(&other) == 20 && spec_value(&stranger) == 30);
}

/* Settings change while locks are created and waited for, without a race for ThreadSanitizer. */
static void *sets_and_locks(void *argument)
{
	static pound_mutex_t mutex;
	const char *spec = argument;
	pound_lock_t lock;

	for (int i = 0; i < 1000; i++) {
		EXPECT(!pound_lock_init(&lock, spec, NULL, 0) && !pound_lock_check(spec, NULL, 0));
		pound_lock_lock(&lock);
		pound_lock_unlock(&lock);
		pound_lock_destroy(&lock);
		pound_mutex_lock(&mutex);
		pound_mutex_unlock(&mutex);
	}
	return NULL;
}

static void by_many_threads(void)
{
	static const char *const specs[] = {"shfl_mutex,batch=7", "shfl_mutex,patience=2",
					    "ticket,backoff=9", "mcs", "cfl_mutex,bypass=9"};
	pthread_t threads[COUNT(specs)];
	int started = 0;

	for (int i = 0; i < COUNT(specs); i++)
		if (built(specs[i]))
			EXPECT(!pthread_create(&threads[started++], NULL, sets_and_locks,
					       (void *)specs[i]));
	while (started)
		EXPECT(!pthread_join(threads[--started], NULL));
}

static void every_lock_every_way(void)
{
	static const char *const ways[] = {
		[WAIT_SPIN] = "spin", [WAIT_YIELD] = "yield", [WAIT_PARK] = "park"};
	const struct pound_lock_info *info;
	char spec[64];
	size_t count;

	for (count = 0; (info = pound_lock_info(count)); count++) {
		const struct any_ops *ops = any_find(info->name, NULL, 0);

		EXPECT(ops && !strcmp(ops->name, info->name), "%s", info->name);
		EXPECT(!strcmp(ways[ops->wait], info->wait), "%s", info->name);
		EXPECT(*info->promise && *info->paper && info->bytes_per_lock, "%s", info->name);
		for (enum wait way = WAIT_SPIN; way <= WAIT_PARK; way++) {
			snprintf(spec, sizeof(spec), "%s,wait=%s", info->name, ways[way]);
			ops = any_find(spec, NULL, 0);
			EXPECT(ops && ops->wait == way && !strcmp(ops->name, info->name), "%s",
			       spec);
		}
	}
	EXPECT(count > 0);
}

/* Each key takes a number, or each of the names that the error about a wrong one lists. */
static void every_value(const char *lock, const char *key)
{
	char error[256], list[256], spec[128], *names, *rest;

	snprintf(spec, sizeof(spec), "%s,%s=100", lock, key);
	if (any_find(spec, list, sizeof(list)))
		return;
	names = strstr(list, "not one of ");
	EXPECT(names, "%s", list);
	for (char *name = strtok_r(names + 11, ", ", &rest); name;
	     name = strtok_r(NULL, ", ", &rest)) {
		snprintf(spec, sizeof(spec), "%s,%s=%s", lock, key, name);
		EXPECT(any_find(spec, error, sizeof(error)) || !strcmp(name, "own"), "%s", spec);
	}
}

static void every_key(void)
{
	char keys[64];

	for (size_t i = 0; pound_lock_info(i); i++) {
		strcpy(keys, pound_lock_info(i)->keys);
		for (char *key = strtok(keys, ","); key; key = strtok(NULL, ","))
			every_value(pound_lock_info(i)->name, key);
	}
}

/* A lock does not change the bytes that any.h reserves for the embedder. */
static void embedders_bytes(void)
{
	struct {
		_Alignas(8) unsigned char bytes[ANY_LOCK_SIZE];
	} lock;

	for (size_t i = 0; pound_lock_info(i); i++) {
		const struct any_ops *ops = any_find(pound_lock_info(i)->name, NULL, 0);
		struct w_deadline past = {.clock = CLOCK_MONOTONIC};

		memset(&lock, 0, sizeof(lock));
		memset(lock.bytes + 16, 0xa5, 4);
		EXPECT(!ops->lock(&lock));
		EXPECT(!ops->trylock(&lock) && !ops->timedlock(&lock, &past));
		EXPECT(ops->unlock(&lock) && !ops->unlock(&lock));
		for (size_t byte = 16; byte < 20; byte++)
			EXPECT(lock.bytes[byte] == 0xa5, "%s, byte %zu", ops->name, byte);
	}
}

/* From every state, poundlock.h's fast path does the same with one thread and with several. */
static void fast_path(void)
{
	const uint32_t states = 2 * SHFL_MUTEX_CLOSED;

	for (uint32_t state = 0; state < states; state++) {
		pound_mutex_t one = {.pound_state = state}, several = {.pound_state = state};
		uint32_t seen, expected;

		EXPECT(pound_mutex_take_free(&one, &seen, true) == !state);
		EXPECT(pound_mutex_take_free(&several, &expected, false) == !state);
		EXPECT(seen == expected && one.pound_state == several.pound_state, "from %u",
		       state);
		one.pound_state = several.pound_state = state;
		EXPECT(pound_mutex_release_alone(&one, true) ==
		       pound_mutex_release_alone(&several, false));
		EXPECT(one.pound_state == several.pound_state, "from %u", state);
		EXPECT(several.pound_state == (state == SHFL_MUTEX_LOCKED ? 0 : state), "from %u",
		       state);
	}
}

int main(void)
{
	RUN(wrong_specs);
	RUN(long_spec);
	RUN(wrong_specs_change_nothing);
	RUN(a_check_sets_nothing);
	RUN(only_what_is_named_is_set);
	RUN(by_many_threads);
	RUN(every_lock_every_way);
	RUN(every_key);
	RUN(embedders_bytes);
	RUN(fast_path);
	return 0;
}
