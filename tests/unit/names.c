/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names of locks: what is kept of them, the room for them, and readers while a name changes. */
#include "names.h"

#include <pthread.h>
#include <stdatomic.h>

#include "../forks.h"
#include "poundlock.h"
#include "unit.h"

#define ROUNDS 100000
#define MOST 10000 /* more than there is room for */

static void expect_name(const void *lock, const char *expected)
{
	char name[NAME_SIZE];

	EXPECT(names_find(lock, name) == !!*expected, "'%s'", name);
	EXPECT(!strcmp(name, expected), "'%s' instead of '%s'", name, expected);
}

static void cut_and_harmless(void)
{
	static const struct {
		const char *given, *kept;
	} names[] = {
		{"cache", "cache"},
		{"exactly 31 bytes in this string", "exactly 31 bytes in this string"},
		{"a name of more than thirty-one bytes", "a name of more than thirty-one "},
		{"a\nb\x1b[2J\x7f", "a?b?[2J?"},
		{"short", "short"},
	};
	pound_mutex_t mutex = POUND_MUTEX_INIT;

	expect_name(&mutex, "");
	for (int i = 0; i < COUNT(names); i++) {
		EXPECT(!pound_set_name(&mutex, names[i].given));
		expect_name(&mutex, names[i].kept);
	}
	EXPECT(!pound_set_name(&mutex, NULL));
	expect_name(&mutex, "");
	EXPECT(!pound_set_name(&mutex, "again"));
	expect_name(&mutex, "again");
	EXPECT(!pound_set_name(&mutex, ""));
	expect_name(&mutex, "");
}

static void removed_with_the_lock(void)
{
	pound_lock_t lock = POUND_LOCK_INIT;
	pound_rwlock_t rwlock = POUND_RWLOCK_INIT;

	EXPECT(!pound_set_name(&lock, "first") && !pound_set_name(&rwlock, "table"));
	EXPECT(!pound_lock_init(&lock, "shfl_mutex", NULL, 0) &&
	       !pound_rwlock_init(&rwlock, "shfl_rw", NULL, 0));
	expect_name(&lock, "");
	expect_name(&rwlock, "");
	EXPECT(!pound_set_name(&lock, "second"));
	expect_name(&lock, "second");
	pound_lock_destroy(&lock);
	expect_name(&lock, "");
}

/* Many locks have names, removed names make room, and the names stay those of their locks. */
static void bounded_room(void)
{
	static pound_mutex_t mutexes[MOST];
	char name[NAME_SIZE];
	int named = 0;

	while (named < MOST) {
		snprintf(name, sizeof(name), "session %d", named);
		if (pound_set_name(&mutexes[named], name))
			break;
		named++;
	}
	EXPECT(named >= 1000 && named < MOST, "%d", named);
	expect_name(&mutexes[named], "");
	for (int i = 0; i < named; i++) {
		snprintf(name, sizeof(name), "session %d", i);
		expect_name(&mutexes[i], name);
		if (i % 2)
			EXPECT(!pound_set_name(&mutexes[i], NULL));
	}
	for (int i = 0; i < named; i++) {
		snprintf(name, sizeof(name), "session %d", i);
		expect_name(&mutexes[i], i % 2 ? "" : name);
		EXPECT(!pound_set_name(&mutexes[i], NULL));
	}
	EXPECT(!pound_set_name(&mutexes[named], "at last"));
	expect_name(&mutexes[named], "at last");
	EXPECT(!pound_set_name(&mutexes[named], NULL));
}

/* ---- While a name changes ---- */

static pound_mutex_t renamed, other;
static atomic_bool done;

static void *renames(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		EXPECT(!pound_set_name(&renamed, i % 2 ? "aaaaaaaaaaaaaaaaaaaaaaaaaaa" : "b"));
		if (i % 3 == 0) {
			EXPECT(!pound_set_name(&renamed, NULL));
			/* It may take the slot. */
			EXPECT(!pound_set_name(&other, "of the other lock"));
			EXPECT(!pound_set_name(&other, NULL));
		}
	}
	atomic_store(&done, true);
	return NULL;
}

static bool is_possible(const char *name)
{
	return !strcmp(name, "") || !strcmp(name, "b") ||
	       !strcmp(name, "aaaaaaaaaaaaaaaaaaaaaaaaaaa");
}

static void whole_or_none(void)
{
	pthread_t thread;
	char name[NAME_SIZE];

	EXPECT(!pthread_create(&thread, NULL, renames, NULL));
	while (!atomic_load(&done)) {
		(void)names_find(&renamed, name);
		EXPECT(is_possible(name), "'%s'", name);
	}
	EXPECT(!pthread_join(thread, NULL));
}

/* A child has the name for itself, wherever its parent's thread was. */
static void forked_meanwhile(void)
{
	pthread_t thread;

	atomic_store(&done, false);
	EXPECT(!pthread_create(&thread, NULL, renames, NULL));
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();

		if (!child) {
			char name[NAME_SIZE];

			(void)names_find(&renamed, name);
			EXPECT(is_possible(name), "'%s'", name);
			EXPECT(!pound_set_name(&renamed, "child's"));
			expect_name(&renamed, "child's");
			_exit(0);
		}
		reap(child);
	}
	EXPECT(!pthread_join(thread, NULL));
}

int main(void)
{
	RUN(cut_and_harmless);
	RUN(removed_with_the_lock);
	RUN(bounded_room);
	RUN(whole_or_none);
	RUN(forked_meanwhile);
	return 0;
}
