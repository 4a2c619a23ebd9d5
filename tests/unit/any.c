/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A lock's specification: valid forms, and the one line that names an error. */
#include "any.h"

#include <errno.h>
#include <pthread.h>

#include "../events.h"
#include "any_rw.h"
#include "built.h"
#include "poundlock.h"
#include "shfl_ron.h"
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
	{"shfl,policy=", "policy=: not one of fifo, numa, route, group, fair, occupancy"},
	{"shfl_spin,policy=rout",
	 "policy=rout: not one of fifo, numa, route, group, fair, occupancy"},
	{"shfl_spin,policy=routes",
	 "policy=routes: not one of fifo, numa, route, group, fair, occupancy"},
	{"shfl_spin,policy=fifo numa",
	 "policy=fifo numa: not one of fifo, numa, route, group, fair, occupancy"},
	{"shfl,policy=own", "policy=own: not one of fifo, numa, route, group, fair, occupancy"},
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

/* The same specification, however it is written, leads to the same table; another one does not. */
static void one_table_for_a_specification(void)
{
	const struct any_ops *some = any_find("shfl_mutex,patience=7,batch=9", NULL, 0);

	EXPECT(some && some == any_find("shfl,batch=9,wait=park,patience=7", NULL, 0));
	EXPECT(some != any_find("shfl_mutex,patience=7", NULL, 0));
	EXPECT(some != any_find("shfl_mutex,patience=7,batch=9,wait=spin", NULL, 0));
	EXPECT(any_find("shfl_mutex", NULL, 0) == any_default);
	EXPECT(any_find("shfl,patience=4,policy=numa", NULL, 0) == any_default);
	EXPECT(any_find("shfl_mutex,policy=fair", NULL, 0)->lock !=
	       any_find("shfl_mutex,policy=numa", NULL, 0)->lock);
	EXPECT(any_rw_find("shfl_rw,patience=3", NULL, 0) ==
	       any_rw_find("shfl_rw,wait=park,patience=3", NULL, 0));
	EXPECT(any_rw_find("shfl_rw,patience=3", NULL, 0) != any_rw_find("shfl_rw", NULL, 0));
	EXPECT(any_rw_find("shfl_rw,patience=4", NULL, 0) == any_rw_default);
}

static void a_check(void)
{
	char error[128];

	EXPECT(any_check("shfl_mutex,policy=fair", NULL, 0));
	EXPECT(!any_check("shfl_mutex,policy=fair,foo=1", error, sizeof(error)));
	EXPECT(!strcmp(error, "lock shfl_mutex has no key 'foo'"), "%s", error);
	EXPECT(any_rw_check("shfl_rw,patience=3", NULL, 0) &&
	       !any_rw_check("shfl_rw,foo=1", error, sizeof(error)));
}

/* Only what a specification names, of its lock, is read into the settings. */
static void only_what_is_named_is_set(void)
{
	static const struct setting settings[] = {{"lock", "named", 0, 0, 0, 100, ""},
						  {"lock", "other", 1, 0, 0, 100, ""},
						  {"stranger", "named", 0, 0, 0, 100, ""}};
	uint32_t values[SPEC_SETTINGS] = {1, 2, 3};
	enum wait wait = WAIT_YIELD;

	EXPECT(spec_parse("lock", "named=10", settings, 3, &wait, values, NULL, 0));
	EXPECT(wait == WAIT_YIELD && values[0] == 10 && values[1] == 2 && values[2] == 3);
	EXPECT(spec_parse("lock", "wait=park", settings, 3, &wait, values, NULL, 0));
	EXPECT(wait == WAIT_PARK && values[0] == 10 && values[1] == 2 && values[2] == 3);
}

/* ---- A lock's settings are its own ---- */

static const struct timespec past = {0, 0};

/*
 * How often the queue head closes @lock to newcomers, having found it held: as the setting
 * `patience` has it, at once if that is 0.
 */
static uint64_t closes(pound_lock_t *lock)
{
	uint64_t before = count_of("close");

	pound_lock_lock(lock);
	EXPECT(pound_lock_timedlock(lock, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
	pound_lock_unlock(lock);
	return count_of("close") - before;
}

static uint64_t rw_closes(pound_rwlock_t *lock)
{
	uint64_t before = count_of("close");

	pound_rwlock_wrlock(lock);
	EXPECT(pound_rwlock_timedwrlock(lock, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
	pound_rwlock_wrunlock(lock);
	return count_of("close") - before;
}

static uint64_t mutex_closes(pound_mutex_t *mutex)
{
	uint64_t before = count_of("close");

	pound_mutex_lock(mutex);
	EXPECT(pound_mutex_timedlock(mutex, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
	pound_mutex_unlock(mutex);
	return count_of("close") - before;
}

static void settings_are_the_locks_own(void)
{
	static pound_mutex_t mutex;
	pound_lock_t before, hasty, patient, after;

	pound_events_start();
	EXPECT(!pound_lock_init(&before, "shfl_mutex", NULL, 0));
	EXPECT(!pound_lock_init(&hasty, "shfl_mutex,patience=0", NULL, 0));
	EXPECT(!pound_lock_init(&patient, "shfl_mutex,patience=1000000", NULL, 0));
	EXPECT(!pound_lock_init(&after, "shfl_mutex", NULL, 0));
	for (int i = 0; i < 3; i++) {
		EXPECT(closes(&hasty) == 1, "a lock has not the setting that it was given");
		EXPECT(!closes(&before) && !closes(&patient) && !closes(&after) &&
			       !mutex_closes(&mutex),
		       "a lock has the setting of another one");
	}
}

static void rw_settings_are_the_locks_own(void)
{
	static pound_rwlock_t zeroed;
	pound_rwlock_t hasty, patient;

	EXPECT(!pound_rwlock_init(&hasty, "shfl_rw,patience=0", NULL, 0));
	EXPECT(!pound_rwlock_init(&patient, "shfl_rw,patience=1000000", NULL, 0));
	for (int i = 0; i < 3; i++)
		EXPECT(rw_closes(&hasty) == 1 && !rw_closes(&patient) && !rw_closes(&zeroed));
}

/* ---- By many threads ---- */

/* Locks are initialised and used at once, without a race for ThreadSanitizer. */
static void *initialises_and_locks(void *argument)
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
			EXPECT(!pthread_create(&threads[started++], NULL, initialises_and_locks,
					       (void *)specs[i]));
	while (started)
		EXPECT(!pthread_join(threads[--started], NULL));
}

/* Threads that intern the same specifications at once get the same tables. */
#define THREADS 4
#define TOGETHER 100

static const struct any_ops *found[THREADS][TOGETHER];
static pthread_barrier_t barrier;

static void *finds(void *argument)
{
	const struct any_ops **tables = argument;
	char spec[64];

	for (int i = 0; i < TOGETHER; i++) {
		snprintf(spec, sizeof(spec), "shfl_mutex,batch=%d", 1000 + i);
		pthread_barrier_wait(&barrier);
		tables[i] = any_find(spec, NULL, 0);
	}
	return NULL;
}

static void the_same_at_once(void)
{
	pthread_t threads[THREADS];

	EXPECT(!pthread_barrier_init(&barrier, NULL, THREADS));
	for (int i = 0; i < THREADS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, finds, found[i]));
	for (int i = 0; i < THREADS; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	for (int i = 0; i < TOGETHER; i++)
		for (int thread = 0; thread < THREADS; thread++)
			EXPECT(found[thread][i] && found[thread][i] == found[0][i]);
	EXPECT(found[0][0] != found[0][1]);
}

/*
 * A process may use many specifications, but not any number; those that it has used, and the
 * defaults, remain. Called last.
 */
static void many_specifications(void)
{
	char spec[64], error[128];
	pound_rwlock_t rwlock;
	pound_lock_t lock;
	int used = 0, result;

	do {
		snprintf(spec, sizeof(spec), "shfl_mutex,patience=%d", ++used);
		result = pound_lock_init(&lock, spec, error, sizeof(error));
	} while (!result);
	EXPECT(result == ENOSPC && used > 500, "%d after %d", result, used);
	EXPECT(!strcmp(error, "the process has used 1024 other specifications, the most"), "%s",
	       error);
	EXPECT(pound_lock_init(&lock, "shfl_mutex,patience=x", NULL, 0) == EINVAL);
	EXPECT(!pound_lock_init(&lock, "shfl_mutex,patience=1", NULL, 0));
	EXPECT(!pound_lock_init(&lock, "shfl_mutex,wait=spin", NULL, 0));
	for (used = 1; !result || used == 1; used++) {
		snprintf(spec, sizeof(spec), "shfl_rw,patience=%d", 100 + used);
		result = pound_rwlock_init(&rwlock, spec, error, sizeof(error));
	}
	EXPECT(result == ENOSPC && used > 500, "%d after %d", result, used);
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

/* Whether @lock, of either kind, accepts @key=@value. */
static bool accepts(const char *lock, const char *key, const char *value)
{
	char spec[128];

	snprintf(spec, sizeof(spec), "%s,%s=%s", lock, key, value);
	return any_check(spec, NULL, 0) || any_rw_check(spec, NULL, 0);
}

static bool accepts_number(const char *lock, const char *key, int64_t value)
{
	char number[32];

	snprintf(number, sizeof(number), "%lld", (long long)value);
	return accepts(lock, key, number);
}

/* The name of value @number of @setting, among @choices, a copy of its names. */
static const char *choice(const struct pound_setting *setting, char *choices, uint32_t number)
{
	char *rest;
	const char *name = strtok_r(strcpy(choices, setting->choices), " ", &rest);

	while (name && number--)
		name = strtok_r(NULL, " ", &rest);
	return name;
}

/* The values that @setting of @lock reports are those that a specification may have. */
static void values(const char *lock, const struct pound_setting *setting)
{
	char choices[128];

	EXPECT(setting->least <= setting->by_default && setting->by_default <= setting->most);
	if (!*setting->choices) {
		EXPECT(accepts_number(lock, setting->key, setting->least));
		EXPECT(accepts_number(lock, setting->key, setting->most));
		EXPECT(!accepts_number(lock, setting->key, (int64_t)setting->least - 1));
		EXPECT(!accepts_number(lock, setting->key, (int64_t)setting->most + 1));
		return;
	}
	EXPECT(!setting->least && !choice(setting, choices, setting->most + 1));
	for (uint32_t i = 0; i <= setting->most; i++) {
		const char *name = choice(setting, choices, i);

		EXPECT(accepts(lock, setting->key, name), "%s", name);
	}
	EXPECT(!accepts(lock, setting->key, "0"));
}

/* A lock whose specification names the default has the same table as one that does not name it. */
static void default_value(const char *lock, const struct pound_setting *setting)
{
	char spec[128], number[32], choices[128];

	snprintf(number, sizeof(number), "%u", setting->by_default);
	snprintf(spec, sizeof(spec), "%s,%s=%s", lock, setting->key,
		 *setting->choices ? choice(setting, choices, setting->by_default) : number);
	EXPECT(any_check(spec, NULL, 0) ? any_find(spec, NULL, 0) == any_find(lock, NULL, 0)
					: any_rw_find(spec, NULL, 0) == any_rw_find(lock, NULL, 0),
	       "%s", spec);
}

/* The settings of the lock called @lock are its @keys, after `wait`. */
static void settings_of(const char *lock, const char *keys)
{
	const struct pound_setting *setting;
	char list[64] = "wait";

	for (size_t i = 0; (setting = pound_lock_setting(lock, i)); i++) {
		strcat(strcat(list, ","), setting->key);
		values(lock, setting);
		default_value(lock, setting);
	}
	EXPECT(!strcmp(list, keys), "%s: %s, not %s", lock, keys, list);
}

static void every_setting(void)
{
	const struct pound_lock_info *info;

	for (size_t i = 0; (info = pound_lock_info(i)); i++)
		settings_of(info->name, info->keys);
	for (size_t i = 0; (info = pound_rwlock_info(i)); i++)
		settings_of(info->name, info->keys);
	EXPECT(!pound_lock_setting("no_lock", 0));
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
		EXPECT(!ops->lock(&lock, ops));
		EXPECT(!ops->trylock(&lock) && !ops->timedlock(&lock, &past, ops));
		EXPECT(ops->unlock(&lock, ops) && !ops->unlock(&lock, ops));
		for (size_t byte = 16; byte < 20; byte++)
			EXPECT(lock.bytes[byte] == 0xa5, "%s, byte %zu", ops->name, byte);
	}
}

/* poundlock.h's fast path takes the lock of @ops, and any_wait() does the rest. */
static void taken_inline(const struct any_ops *ops)
{
	struct {
		_Alignas(8) unsigned char bytes[ANY_LOCK_SIZE];
	} lock = {{0}};
	pound_mutex_t *mutex = (pound_mutex_t *)&lock;
	struct w_deadline past = {.clock = CLOCK_MONOTONIC};
	uint32_t seen;

	EXPECT(pound_mutex_take_free(mutex, &seen, false) && !ops->trylock(&lock));
	EXPECT(!pound_mutex_take_free(mutex, &seen, false));
	EXPECT(!any_wait(&lock, seen, &past, ops));
	EXPECT(ops->unlock(&lock, ops) && !ops->unlock(&lock, ops));
	EXPECT(any_wait(&lock, seen, NULL, ops) && !ops->trylock(&lock));
	EXPECT(pound_mutex_release_alone(mutex, false) || ops->unlock(&lock, ops));
	EXPECT(ops->trylock(&lock) && ops->unlock(&lock, ops));
	if (ops->destroy)
		ops->destroy(&lock);
}

static void inlined_locks(void)
{
	for (size_t i = 0; pound_lock_info(i); i++) {
		const char *name = pound_lock_info(i)->name;
		const struct any_ops *ops = any_find(name, NULL, 0);
		bool is_inlined = !strcmp(name, "shfl_mutex") || !strcmp(name, "shfl_ron");

		EXPECT(any_is_inlined(ops) == is_inlined, "%s", name);
		if (is_inlined)
			taken_inline(ops);
	}
	if (built("shfl_ron"))
		EXPECT(any_is_inlined(any_find("shfl_ron,patience=0,policy=fifo", NULL, 0)));
	EXPECT(!any_is_inlined(any_find("shfl_ron,wait=spin", NULL, 0)));
	EXPECT(!any_is_inlined(any_find("shfl_mutex,policy=fair", NULL, 0)));
	EXPECT(!any_is_inlined(NULL));
}

/* One may wait for a shfl_ron as for a shfl_mutex, but not the other way around. */
static void waits_for_inlined_locks(void)
{
	const struct any_ops *mutex = any_find("shfl_mutex,patience=0", NULL, 0),
			     *gated = any_find("shfl_ron,patience=0", NULL, 0);

	EXPECT(any_waits_for(any_default, mutex));
	EXPECT(!any_waits_for(any_default, gated) && !any_waits_for(any_default, NULL));
	if (!gated)
		return;
	EXPECT(any_waits_for(gated, mutex));
	EXPECT(any_waits_for(any_find("shfl_ron", NULL, 0), gated));
	EXPECT(!any_waits_for(gated, any_find("mcs", NULL, 0)));
	EXPECT(!any_waits_for(gated, any_find("shfl_mutex,policy=fair", NULL, 0)));
}

/* From every state, poundlock.h's fast path does the same with one thread and with several. */
static void fast_path(void)
{
	const uint32_t states = 2 * SHFL_RON_GATE;

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
	RUN(one_table_for_a_specification);
	RUN(a_check);
	RUN(only_what_is_named_is_set);
	RUN(settings_are_the_locks_own);
	RUN(rw_settings_are_the_locks_own);
	RUN(by_many_threads);
	RUN(the_same_at_once);
	RUN(every_lock_every_way);
	RUN(every_setting);
	RUN(embedders_bytes);
	RUN(inlined_locks);
	RUN(waits_for_inlined_locks);
	RUN(fast_path);
	RUN(many_specifications);
	return 0;
}
