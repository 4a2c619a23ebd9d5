/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Libraries opened while threads use their locks: one that shares the program's mutexes and
 * condition variables, and one that binds to itself first (RTLD_DEEPBIND) and uses locks of its
 * own. argv[1] is the library.
 */
#include <dlfcn.h>

#include "late.h"
#include "posix.h"

#define ROUNDS 1000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned long count;
static atomic_bool stop;

static void *contend(void *argument)
{
	while (!atomic_load(&stop)) {
		EXPECT_OK(pthread_mutex_lock(&mutex));
		count++;
		EXPECT_OK(pthread_cond_broadcast(&cond));
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	}
	return argument;
}

static void *function(void *library, const char *name)
{
	void *found = dlsym(library, name);

	EXPECT(found, "%s", dlerror());
	return found;
}

static void *run_own(void *run)
{
	late_own *own = (late_own *)(uintptr_t)run;

	own(ROUNDS);
	return NULL;
}

/* Two threads in the library use the library's own locks. */
static void own(void *library)
{
	void *run = function(library, "late_own_run");
	late_count *counted = (late_count *)(uintptr_t)function(library, "late_own_count");
	unsigned long before = counted();
	pthread_t thread = start(run_own, run);

	run_own(run);
	finish(thread);
	EXPECT(counted() == before + 2 * ROUNDS, "%lu", counted());
}

/* The library uses the program's lock and waits for its condition variable. */
static void shared(void *library)
{
	late_shared *run = (late_shared *)(uintptr_t)function(library, "late_shared_run");

	run(&mutex, &cond, &count, ROUNDS);
}

int main(int argc, char **argv)
{
	pthread_t thread = start(contend, NULL);
	void *library;

	EXPECT(argc == 2, "no library");
	for (unsigned round = 0; round < 3; round++) {
		library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		EXPECT(library, "%s", dlerror());
		own(library);
		shared(library);
		EXPECT(!dlclose(library), "dlclose");
		library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
		EXPECT(library, "%s", dlerror());
		own(library);
		EXPECT(!dlclose(library), "dlclose");
	}
	atomic_store(&stop, true);
	finish(thread);
	return 0;
}
