/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The library has the locks that the build chose (POUNDLOCK_LOCKS), and names those it lacks. */
#include "poundlock.h"
#include "unit.h"

static const char *const locks[] = {
#define LOCK(name, kind, wait, promise, paper) #name,
#include "locks.def"
};

static const char *const rwlocks[] = {
#define RWLOCK(name, wait, promise, paper) #name,
#include "locks.def"
};

static const char *const omitted[] = {
#define OMITTED_LOCK(name) #name,
#define OMITTED_RWLOCK(name) #name,
#include "locks.def"
	NULL,
};

static void built_locks_are_listed(void)
{
	for (int i = 0; i < COUNT(locks); i++)
		EXPECT(!strcmp(pound_lock_info(i)->name, locks[i]), "%s", locks[i]);
	EXPECT(!pound_lock_info(COUNT(locks)));
	for (int i = 0; i < COUNT(rwlocks); i++)
		EXPECT(!strcmp(pound_rwlock_info(i)->name, rwlocks[i]), "%s", rwlocks[i]);
	EXPECT(!pound_rwlock_info(COUNT(rwlocks)));
}

static void expect_absent(const char *name, int check(const char *, char *, size_t))
{
	char spec[64], error[64], expected[64];

	snprintf(spec, sizeof(spec), "%s,wait=park", name);
	snprintf(expected, sizeof(expected), "this build has no %s", name);
	EXPECT(check(spec, error, sizeof(error)), "%s", spec);
	EXPECT(!strcmp(error, expected), "%s: %s", spec, error);
}

static void omitted_locks_are_named(void)
{
	for (const char *const *name = omitted; *name; name++) {
		expect_absent(*name, pound_lock_check);
		expect_absent(*name, pound_rwlock_check);
	}
}

/* An alias of a lock that is not built, and a lock above another one. */
static void other_names_lead_to_omitted_locks(void)
{
#ifdef WITHOUT_c_bo_mcs
	char error[64];

	EXPECT(pound_lock_check("cohort", error, sizeof(error)));
	EXPECT(!strcmp(error, "this build has no c_bo_mcs"), "%s", error);
#endif
#ifdef WITHOUT_bravo_fair_rw
	EXPECT(pound_rwlock_check("bravo,under=fair_rw", error, sizeof(error)));
	EXPECT(!strcmp(error, "this build has no bravo_fair_rw"), "%s", error);
#endif
}

/* The defaults need no name. */
static void defaults_are_built(void)
{
	pound_mutex_t mutex = POUND_MUTEX_INIT;
	pound_rwlock_t rwlock = POUND_RWLOCK_INIT;

	pound_mutex_lock(&mutex);
	pound_mutex_unlock(&mutex);
	pound_rwlock_wrlock(&rwlock);
	pound_rwlock_wrunlock(&rwlock);
}

int main(void)
{
	RUN(built_locks_are_listed);
	RUN(omitted_locks_are_named);
	RUN(other_names_lead_to_omitted_locks);
	RUN(defaults_are_built);
	return 0;
}
