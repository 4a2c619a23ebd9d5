/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program linked with glibc 2.31, one linked with 2.36, and objects of both in one process use
 * the same locks: every symbol version of every interposed name is the same function, which is ours
 * if the preload library is loaded. This includes the older condition variables, whose layout
 * differs.
 */
#include <dlfcn.h>
#include <threads.h>

#include "posix.h"

/* The reference NAME@VERSION under a name of its own. */
#define REFERENCE(name, version, alias) \
	extern __typeof__(name) alias;  \
	__asm__(".symver " #alias ", " #name "@" version)

/*
 * Names that moved from libpthread to libc in 2.34 as their only version, and kept their older one.
 */
#define MOVED(DO)                                     \
	DO(pthread_mutex_trylock, "GLIBC_2.2.5")      \
	DO(pthread_mutex_timedlock, "GLIBC_2.2.5")    \
	DO(pthread_mutex_clocklock, "GLIBC_2.30")     \
	DO(pthread_cond_clockwait, "GLIBC_2.30")      \
	DO(pthread_rwlock_init, "GLIBC_2.2.5")        \
	DO(pthread_rwlock_destroy, "GLIBC_2.2.5")     \
	DO(pthread_rwlock_rdlock, "GLIBC_2.2.5")      \
	DO(pthread_rwlock_tryrdlock, "GLIBC_2.2.5")   \
	DO(pthread_rwlock_timedrdlock, "GLIBC_2.2.5") \
	DO(pthread_rwlock_clockrdlock, "GLIBC_2.30")  \
	DO(pthread_rwlock_wrlock, "GLIBC_2.2.5")      \
	DO(pthread_rwlock_trywrlock, "GLIBC_2.2.5")   \
	DO(pthread_rwlock_timedwrlock, "GLIBC_2.2.5") \
	DO(pthread_rwlock_clockwrlock, "GLIBC_2.30")  \
	DO(pthread_rwlock_unlock, "GLIBC_2.2.5")      \
	DO(pthread_spin_init, "GLIBC_2.2.5")          \
	DO(pthread_spin_destroy, "GLIBC_2.2.5")       \
	DO(pthread_spin_lock, "GLIBC_2.2.5")          \
	DO(pthread_spin_trylock, "GLIBC_2.2.5")       \
	DO(pthread_spin_unlock, "GLIBC_2.2.5")        \
	DO(mtx_init, "GLIBC_2.28")                    \
	DO(mtx_destroy, "GLIBC_2.28")                 \
	DO(mtx_lock, "GLIBC_2.28")                    \
	DO(mtx_trylock, "GLIBC_2.28")                 \
	DO(mtx_timedlock, "GLIBC_2.28")               \
	DO(mtx_unlock, "GLIBC_2.28")                  \
	DO(cnd_init, "GLIBC_2.28")                    \
	DO(cnd_destroy, "GLIBC_2.28")                 \
	DO(cnd_wait, "GLIBC_2.28")                    \
	DO(cnd_timedwait, "GLIBC_2.28")               \
	DO(cnd_signal, "GLIBC_2.28")                  \
	DO(cnd_broadcast, "GLIBC_2.28")

#define DECLARE_MOVED(name, version)            \
	REFERENCE(name, version, name##_older); \
	REFERENCE(name, "GLIBC_2.34", name##_newer);
MOVED(DECLARE_MOVED)

/* Names with two versions of different layouts. */
#define TWICE(DO)                  \
	DO(pthread_cond_init)      \
	DO(pthread_cond_destroy)   \
	DO(pthread_cond_wait)      \
	DO(pthread_cond_timedwait) \
	DO(pthread_cond_signal)    \
	DO(pthread_cond_broadcast)

#define DECLARE_TWICE(name)                           \
	REFERENCE(name, "GLIBC_2.2.5", name##_older); \
	REFERENCE(name, "GLIBC_2.3.2", name##_newer);
TWICE(DECLARE_TWICE)

/* Names with one version. */
#define ONCE(DO)                  \
	DO(pthread_mutex_init)    \
	DO(pthread_mutex_destroy) \
	DO(pthread_mutex_lock)    \
	DO(pthread_mutex_unlock)

/* Names that only objects linked before 2.34 use. */
#define OBSOLETE(DO)                   \
	DO(__pthread_mutex_init)       \
	DO(__pthread_mutex_destroy)    \
	DO(__pthread_mutex_lock)       \
	DO(__pthread_mutex_trylock)    \
	DO(__pthread_mutex_unlock)     \
	DO(__pthread_rwlock_init)      \
	DO(__pthread_rwlock_destroy)   \
	DO(__pthread_rwlock_rdlock)    \
	DO(__pthread_rwlock_tryrdlock) \
	DO(__pthread_rwlock_wrlock)    \
	DO(__pthread_rwlock_trywrlock) \
	DO(__pthread_rwlock_unlock)

#define DECLARE_OBSOLETE(name)         \
	extern int name##_older(void); \
	__asm__(".symver " #name "_older, " #name "@GLIBC_2.2.5");
OBSOLETE(DECLARE_OBSOLETE)

static bool preloaded;

static const char *object_of(void *function)
{
	Dl_info info;

	EXPECT(dladdr(function, &info), "unknown address %p", function);
	return strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
}

static void expect_object(void *function, const char *name)
{
	const char *object = object_of(function);

	EXPECT(!preloaded || !strcmp(object, "libpoundlock-preload.so"), "%s is of %s", name,
	       object);
}

/* Excludes other threads, whichever version locks and whichever looks. */
static void exclusion(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	EXPECT_OK(pthread_mutex_trylock_older(&mutex));
	EXPECT_RESULT(pthread_mutex_trylock_newer(&mutex), EBUSY);
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	EXPECT_OK(pthread_mutex_trylock_newer(&mutex));
	EXPECT_RESULT(pthread_mutex_trylock_older(&mutex), EBUSY);
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	EXPECT_OK(pthread_mutex_lock(&mutex));
	EXPECT_RESULT(pthread_mutex_trylock_older(&mutex), EBUSY);
	EXPECT_OK(pthread_mutex_unlock(&mutex));
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool ready;

static void *make_ready(void *argument)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	ready = true;
	EXPECT_OK(pthread_cond_signal_older(&cond));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return argument;
}

static void older_conditions(void)
{
	pthread_t thread;

	EXPECT_OK(pthread_mutex_lock(&mutex));
	thread = start(make_ready, NULL);
	while (!ready)
		EXPECT_OK(pthread_cond_wait_older(&cond, &mutex));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	finish(thread);
	EXPECT_OK(pthread_cond_broadcast_older(&cond));
	EXPECT_OK(pthread_cond_destroy_older(&cond));
}

int main(void)
{
	const char *preload = getenv("LD_PRELOAD");

	preloaded = preload && strstr(preload, "libpoundlock-preload.so");
#define CHECK_PAIR(name, ...)                                \
	expect_object((void *)name##_older, #name " older"); \
	expect_object((void *)name##_newer, #name " newer");
#define CHECK_ONE(name) expect_object((void *)name, #name);
#define CHECK_OBSOLETE(name) expect_object((void *)name##_older, #name);
	MOVED(CHECK_PAIR)
	TWICE(CHECK_PAIR)
	ONCE(CHECK_ONE)
	OBSOLETE(CHECK_OBSOLETE)
	exclusion();
	older_conditions();
	return 0;
}
