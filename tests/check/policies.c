/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of the program's own policies (lib/policies.c) and of the tables of names that they are
 * in (lib/intern.c): policies are registered, replaced and removed while locks begin and end to use
 * them. A policy's data are plain, and written again once it is removed, so that a lock which uses
 * it then is a data race.
 */
#include <errno.h>
#include <string.h>

#include "c11_names.h"

#include "entry.h"

/* ---- The library's objects, in the client's shared memory ---- */

#define OWN_POLICIES_AT 64
#define STATES_AT 192
#define NAMES_AT 256
#define NAME_BLOCKS_AT 384
#define SHARED_BYTES 1024
#define AT(T, offset) ((T *)(0x100000000000 + (offset)))

#define W_OWN_POLICIES 2
struct w_own_policy {
	uint32_t (*note)(void *context, const void *lock);
	uint32_t (*rank)(void *context, uint32_t shuffler, uint32_t waiter);
	void *context;
};
#define w_own_policies AT(struct w_own_policy, OWN_POLICIES_AT)

/* Like the C library's, whose accesses the checker does not see. */
static int compare_bytes(const void *left, const void *right, size_t size)
{
	const char *a = left, *b = right;

	for (size_t i = 0; i < size; i++)
		if (a[i] != b[i])
			return 1;
	return 0;
}

static int compare_names(const char *left, const char *right)
{
	while (*left && *left == *right)
		left++, right++;
	return *left != *right;
}

#define memcmp compare_bytes
#define strcmp compare_names

#include "../../lib/intern.c"

#undef INTERN
#define INTERN(name, type, count) _Static_assert((count) > 0, #name)
#define names (*AT(struct intern, NAMES_AT))
/* Its declaration becomes that of a function, which returns its place. */
#define policies (*policies_at())

#include "../../lib/policies.c"

static __typeof__(policies_at()) policies_at()
{
	return AT(void, STATES_AT);
}

bool spec_wrong(char *error, size_t size, const char *format, ...)
{
	(void)error, (void)size, (void)format;
	return false;
}

/* ---- The clients ---- */

struct memory {
	uint32_t data[2]; /* of a policy */
};

struct notes {
	uint32_t used, registered;
	uint32_t numbers[2];
	const void *tables[3];
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)

_Static_assert(sizeof(struct memory) <= OWN_POLICIES_AT, "the library's objects are behind it");

static uint32_t note(void *context, const void *lock)
{
	(void)lock;
	return *(const uint32_t *)context;
}

static int begin_policy(const char *name, uint32_t *data)
{
	const struct pound_policy policy = {.note = note, .context = data};
	int error;

	error = pound_policy_register(name, &policy);
	check_assert(!error || error == EBUSY);
	if (!error)
		(void)check_add(&NOTES->registered, 1);
	return error;
}

/* Removes a policy, and writes its data if nobody can use them. */
static void end_policy(const char *name, uint32_t *data)
{
	int error = pound_policy_unregister(name);

	/* ENOENT: another thread has replaced and removed it. */
	check_assert(!error || error == EBUSY || error == ENOENT);
	if (!error)
		*data = 0;
}

/* A lock with the policy @name is initialised, used and destroyed. */
static void use(const char *name)
{
	uint32_t number;

	if (!policies_find(name, &number) || !policies_hold(number))
		return;
	const struct w_own_policy *policy = &w_own_policies[number - POLICY_OWN];
	check_assert(policy->note(policy->context, NULL) == 7);
	(void)check_add(&NOTES->used, 1);
	policies_drop(number);
}

/* Thread 0 registers and removes a policy, which the others may use. */
static void removed(uint32_t self)
{
	if (self) {
		use("a");
		return;
	}
	check_assert(!begin_policy("a", &M->data[0]));
	end_policy("a", &M->data[0]);
}

/* Thread 0 replaces a policy, and may then write the data of the former one. */
static void replaced(uint32_t self)
{
	if (self) {
		use("a");
		return;
	}
	check_assert(!begin_policy("a", &M->data[0]));
	if (!begin_policy("a", &M->data[1]))
		M->data[0] = 0;
}

/* Threads register and remove policies of one name. Thread 2 may use them. */
static void same_name(uint32_t self)
{
	if (self == 2)
		use("a");
	else if (!begin_policy("a", &M->data[self]))
		end_policy("a", &M->data[self]);
}

/* Threads register different names, which get different numbers. */
static void two_names(uint32_t self)
{
	const char *name = self ? "b" : "a";

	check_assert(!begin_policy(name, &M->data[self]));
	check_assert(policies_find(name, &NOTES->numbers[self]));
}

/* Thread 0 interns one table, the others another. */
static void tables(uint32_t self)
{
	const struct name own = {{self ? 'b' : 'a'}};

	NOTES->tables[self] = intern(&names, &own);
	check_assert(!compare_bytes(NOTES->tables[self], &own, sizeof(own)));
}

/* The child of a fork can register a policy, whatever another thread of its parent was doing. */
static void forked(uint32_t self)
{
	if (self) {
		(void)begin_policy("a", &M->data[1]);
		return;
	}
	check_fork();
	check_assert(!begin_policy("a", &M->data[0]));
	use("a");
}

static void prepare(void)
{
	M->data[0] = M->data[1] = 7;
	names = (struct intern){.size = sizeof(struct name),
				.stride = sizeof(struct interned) + sizeof(struct name),
				.memory = AT(void, NAME_BLOCKS_AT),
				.most = 2 * W_OWN_POLICIES};
}

static void finish(void)
{
	check_outcome(0, NOTES->registered);
	check_outcome(1, NOTES->used);
}

static void finish_two_names(void)
{
	check_assert(NOTES->numbers[0] != NOTES->numbers[1]);
	finish();
}

/* There is one table of each content. One block may be left. */
static void finish_tables(void)
{
	check_assert(NOTES->tables[1] == NOTES->tables[2]);
	check_assert(NOTES->tables[1] != NOTES->tables[0]);
	check_outcome(0, names.used);
}

const struct check_client check_clients[] = {
	ENTRY("removed/2", removed, 2, NULL, "10 11", prepare, finish),
	ENTRY("removed/3", removed, 3, NULL, "10 11 12", prepare, finish),
	ENTRY("replaced/2", replaced, 2, NULL, "11 20 21", prepare, finish),
	ENTRY("same_name/2", same_name, 2, NULL, "10 20", prepare, finish),
	ENTRY("same_name/3", same_name, 3, NULL, "10 11 20 21", prepare, finish),
	ENTRY("two_names/2", two_names, 2, NULL, "20", prepare, finish_two_names),
	ENTRY("tables/3", tables, 3, NULL, "2 3", prepare, finish_tables),
	ENTRY("fork/2", forked, 2, NULL, "11 21", prepare, finish, .flags = CHECK_CLIENT_FORKS),
	{.name = NULL},
};
