/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A thread's share (world/user/shares.c): its cgroup from the kernel's files, of both versions and
 * of both at once; its weight by nice value, as in the kernel's table; tenants; the ranks of the
 * policy that orders by time held; and the process's, for a sandbox.
 */
#include "shares.h"

#include <errno.h>
#include <sys/resource.h>

#include "policy/fair.h"
#include "unit.h"

/* ---- Cgroups ---- */

static const struct {
	const char *text, *path, *v1_controllers; /* a cgroup without path */
} cgroups[] = {
	{"", NULL, NULL},
	{"\n", NULL, NULL},
	{"nonsense\n", NULL, NULL},
	{"1:name=systemd\n", NULL, NULL},
	{"1:name=systemd:/a\n", NULL, NULL},
	{"0::/\n", "/", NULL},
	{"0::/user.slice/session-1.scope\n", "/user.slice/session-1.scope", NULL},
	{"0::/no/newline", "/no/newline", NULL},
	{"0::/a:b\n", "/a:b", NULL},
	{"4:cpu:/a\n", "/a", "cpu"},
	{"4:cpu,cpuacct:/docker/1\n", "/docker/1", "cpu,cpuacct"},
	{"4:cpuacct,cpu:/docker/2\n", "/docker/2", "cpuacct,cpu"},
	/* Other controllers whose names begin or end in the same way. */
	{"5:cpuset:/b\n4:cpuacct:/c\n6:xcpu:/d\n", NULL, NULL},
	/*
	 * Both versions, in either order: the controller of version 1 counts, else version 2's
	 * cgroup.
	 */
	{"12:cpuset:/b\n4:cpu,cpuacct:/a\n0::/two\n", "/a", "cpu,cpuacct"},
	{"0::/two\n4:cpu,cpuacct:/a\n", "/a", "cpu,cpuacct"},
	{"12:cpuset:/b\n1:name=systemd:/x\n0::/two\n", "/two", NULL},
};

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static void cgroups_of_both_versions(void)
{
	for (int i = 0; i < COUNT(cgroups); i++) {
		struct w_cgroup found;
		char text[256];
		bool is_found;

		strcpy(text, cgroups[i].text);
		is_found = w_cgroup_parse(text, &found);
		EXPECT(is_found == !!cgroups[i].path, "'%s' %s", cgroups[i].text,
		       is_found ? "has one" : "has none");
		EXPECT(same(found.path, cgroups[i].path), "'%s' gives '%s'", cgroups[i].text,
		       found.path);
		EXPECT(same(found.v1_controllers, cgroups[i].v1_controllers), "'%s'",
		       cgroups[i].text);
	}
}

/* ---- Weights ---- */

static void weights_of_nice_values(void)
{
	EXPECT(w_weight_of_nice(0) == 1024);
	EXPECT(w_weight_of_nice(-20) == 88761 && w_weight_of_nice(19) == 15);
	EXPECT(w_weight_of_nice(-21) == 88761 && w_weight_of_nice(20) == 15);
	/*
	 * The rule behind the kernel's table: a factor of 1.25 per level, rounded more coarsely for
	 * small weights.
	 */
	for (int nice = -20; nice < 19; nice++) {
		double ratio = (double)w_weight_of_nice(nice) / w_weight_of_nice(nice + 1);
		double rounding = 1.0 / w_weight_of_nice(nice + 1);

		EXPECT(ratio > 1.25 * (0.97 - rounding) && ratio < 1.25 * (1.03 + rounding),
		       "from nice %d to the next the weight falls by %.3f", nice, ratio);
	}
}

static void weight_of_this_thread(void)
{
	int first = getpriority(PRIO_PROCESS, 0), second = first < 19 ? 19 : 18;

	errno = 77;
	w_weight_set(0);
	EXPECT(w_weight() == w_weight_of_nice(first));
	EXPECT(!setpriority(PRIO_PROCESS, 0, second));
	EXPECT(w_weight() == w_weight_of_nice(first), "it is read again each time");
	w_weight_set(0);
	EXPECT(w_weight() == w_weight_of_nice(second));
	w_weight_set(4096);
	EXPECT(w_weight() == 4096);
	EXPECT(errno == 77);
	w_weight_set(0);
}

/* ---- Groups ---- */

static void tenants(void)
{
	uint32_t own, first;

	errno = 77;
	own = w_group();
	EXPECT(own < W_GROUPS && w_group_weight(own) >= 1);
	EXPECT(w_tenant_set(7, 2048));
	first = w_group();
	EXPECT(first && first != own && w_group_weight(first) == 2048);
	EXPECT(w_tenant_set(8, 1024) && w_group() != first && w_group() != own);
	EXPECT(w_tenant_set(7, 512) && w_group() == first && w_group_weight(first) == 512);
	w_tenant_clear();
	EXPECT(w_group() == own, "a thread that is of no tenant any more is of its cgroup again");
	for (uint32_t id = 100; id < 100 + W_GROUPS; id++)
		(void)w_tenant_set(id, 1024);
	EXPECT(!w_tenant_set(100 + W_GROUPS, 1024) && !w_group(),
	       "there are too many: they are of group 0");
	EXPECT(w_tenant_set(7, 1024) && w_group() == first);
	EXPECT(errno == 77);
}

/* ---- The policy that orders by time ---- */

static void ranks_by_time(void)
{
	static const uint32_t shufflers[] = {0, 5, 1u << 31, UINT32_MAX - 3};

	for (int i = 0; i < COUNT(shufflers); i++) {
		uint32_t shuffler = shufflers[i], before = 0;

		for (uint32_t less = 1u << 31; less; less /= 2) {
			uint32_t rank = policy_fair_rank(shuffler, shuffler - less);

			EXPECT(rank != POLICY_STAY && (less == 1u << 31 || rank > before),
			       "%u less ranks %u", less, rank);
			before = rank;
			EXPECT(less == 1u << 31 ||
			       policy_fair_rank(shuffler, shuffler + less) == POLICY_STAY);
		}
		EXPECT(policy_fair_rank(shuffler, shuffler) > before &&
		       policy_fair_rank(shuffler, shuffler) != POLICY_STAY);
	}
}

/* ---- Shares of the process ---- */

static void *read_weight(void *nice)
{
	EXPECT(!setpriority(PRIO_PROCESS, 0, *(int *)nice), "setpriority");
	return (void *)(uintptr_t)w_weight();
}

/* The weight that a new thread of @nice has. */
static uint32_t weight_in_thread(int nice)
{
	pthread_t thread;
	void *weight;

	EXPECT(!pthread_create(&thread, NULL, read_weight, &nice));
	EXPECT(!pthread_join(thread, &weight));
	return (uint32_t)(uintptr_t)weight;
}

/* Those of the thread that enters the sandbox, for threads that have not read theirs. */
static void in_a_sandbox(void)
{
	const uint32_t own = w_weight();

	w_weight_set(7);
	EXPECT(w_shares_keep());
	EXPECT(!w_shares_keep(), "entered twice");
	EXPECT(w_weight() == 7, "chosen by the program");
	EXPECT(weight_in_thread(19) == own, "read in the sandbox");
	w_shares_of_threads();
	EXPECT(weight_in_thread(19) == w_weight_of_nice(19));
	w_weight_set(0);
}

int main(void)
{
	RUN(cgroups_of_both_versions);
	RUN(weights_of_nice_values);
	RUN(in_a_sandbox);
	RUN(weight_of_this_thread);
	RUN(tenants);
	RUN(ranks_by_time);
	return 0;
}
