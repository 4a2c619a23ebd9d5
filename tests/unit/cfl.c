/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cfl_spin and cfl_mutex in simulated time: the share of each thread for all lengths of holds,
 * weights, groups and numbers of threads; newcomers' shares; work conservation, and
 * strict_guarantee without it; grace_period, which keeps the lock in a domain, but no longer; the
 * bound on bypass; and the number of clock readings. First, with one thread: the data that
 * shufflers and holders leave in the lock for others.
 */
#include "cfl_mutex.h"
#include "cfl_spin.h"
#include "turns.h"

static struct cfl_policy policy;
static struct cfl lock;

static void acquire(void)
{
	cfl_acquire_by(&lock, policy, NULL);
}

static bool release(void)
{
	return cfl_release_by(&lock, policy);
}

static void begin(bool spins)
{
	memset((void *)&lock, 0, sizeof(lock));
	atomic_store(&lock.generation, 2 * w_fork_generation());
	policy = (struct cfl_policy){.wait = WAIT_PARK, .sleeps = !spins, .bypass = SHFL_MAX_BATCH};
	clear_machine(acquire, release);
}

static void run(uint64_t end)
{
	run_machine(end);
	EXPECT(!atomic_load(&lock.state) && !atomic_load(&lock.tail));
}

/* ---- Data left in the lock for others ---- */

/* @n units of time. */
#define UNITS(n) ((uint64_t)(n) << CFL_UNIT)

static struct cfl_node waiters[4];

/* Makes this thread another one, of @group, that first uses the lock at @time. */
static void stand_for(uint32_t group, uint64_t time)
{
	w_own = (struct w_own){.weight = 1024, .group = group + 1, .random = 1};
	atomic_store(&w_group_weights[group], 1024);
	machine.running = 0;
	machine.threads[0].time = time;
	machine.threads[0].domain = 0;
}

/* Enters a waiter into the queue that has held the lock for @held. */
static void enter(int waiter, uint32_t group, uint32_t domain, uint64_t held)
{
	struct cfl_node *node = &waiters[waiter];

	atomic_store(&node->before, NULL);
	node->node.where = group * CFL_DOMAINS + domain;
	shfl_enter(&lock.tail, &node->node, cfl_units(held));
}

static void shuffle_by(int waiter, bool head)
{
	struct shfl_stop never = {.word = &lock.state, .mask = 0, .value = 1};

	cfl_shuffle(&lock, &waiters[waiter], never, head, false, policy);
}

/* A group is away since its last hold ended or one of its threads arrived. */
static void time_away(void)
{
	stand_for(1, 1000);
	cfl_arrive(&lock, 1000);
	EXPECT(cfl_arrive(&lock, 1500).away == 500);
	cfl_begin(&lock);
	machine.threads[0].time = 2000;
	cfl_charge(&lock);
	EXPECT(cfl_arrive(&lock, 2100).away == 100);
}

/* The head alone is of group 1 and domain 2; group 0 has had less than its group, group 2 more. */
static void announce_one_of_group_1(void)
{
	struct cfl_node node = {.node = {.note = 1000, .where = 1 * CFL_DOMAINS + 2}};

	stand_for(1, 1000);
	atomic_store(&lock.ledger.held[0], 4000);
	atomic_store(&lock.ledger.held[1], 5000);
	atomic_store(&lock.ledger.held[2], 6000);
	cfl_announce_alone(&lock, &node.node);
}

/*
 * Newcomers may pass a head that, or whose group, has had more time; their time is a sample of
 * their group's.
 */
static void head(void)
{
	announce_one_of_group_1();
	EXPECT(cfl_may_overtake(&lock, 1, 2, UNITS(999)) &&
	       !cfl_may_overtake(&lock, 1, 2, UNITS(1000)));
	EXPECT(cfl_may_overtake(&lock, 0, 2, UNITS(2000)) &&
	       !cfl_may_overtake(&lock, 2, 2, UNITS(1)));
	EXPECT(cfl_arrive(&lock, 1000).held == UNITS(500), "half way to it from 0");
}

/*
 * Nobody passes a group that arrived and has had less, until a shuffler sees that it waits no more.
 */
static void due(void)
{
	announce_one_of_group_1();
	stand_for(2, 1000);
	cfl_arrive(&lock, 1000);
	EXPECT(cfl_may_overtake(&lock, 1, 2, UNITS(999)));
	stand_for(0, 1000);
	cfl_arrive(&lock, 1000);
	EXPECT(!cfl_may_overtake(&lock, 1, 2, UNITS(999)) &&
	       cfl_may_overtake(&lock, 0, 2, UNITS(2000)));
	stand_for(1, 1000);
	cfl_arrive(&lock, 1000);
	EXPECT(!cfl_may_overtake(&lock, 1, 2, UNITS(999)));
	enter(0, 1, 2, UNITS(1000));
	enter(1, 1, 2, UNITS(1000));
	shuffle_by(0, true);
	EXPECT(cfl_may_overtake(&lock, 1, 2, UNITS(999)));
}

/* Newcomers of the chosen domain are compared with the average of all, others with the domain's. */
static void averages(void)
{
	stand_for(1, 1000);
	enter(0, 1, 2, UNITS(400));
	enter(1, 1, 2, UNITS(1600));
	enter(2, 1, 3, UNITS(3000));
	enter(3, 1, 3, UNITS(3000));
	cfl_announce(&lock, &waiters[0].node);
	shuffle_by(0, true);
	EXPECT(cfl_may_overtake(&lock, 1, 2, UNITS(1999)) &&
	       !cfl_may_overtake(&lock, 1, 2, UNITS(2000)));
	EXPECT(cfl_may_overtake(&lock, 1, 3, UNITS(999)) &&
	       !cfl_may_overtake(&lock, 1, 3, UNITS(1000)));
}

/* When the turn changes to another group, its waiters that the walk has passed are found. */
static void turns(void)
{
	stand_for(1, 1000);
	enter(0, 1, 0, 0);
	enter(1, 0, 0, 0);
	enter(2, 1, 0, 0);
	enter(3, 2, 0, 0); /* the last is never moved */
	atomic_store(&lock.ledger.held[0], 1000);
	atomic_store(&lock.ledger.held[2], 3000);
	shuffle_by(0, true);
	EXPECT(waiters[2].node.batch == 2 && atomic_load(&waiters[2].node.shuffler) &&
	       !waiters[1].node.batch);
	atomic_store(&lock.ledger.held[1], 2000);
	shuffle_by(2, false);
	EXPECT(waiters[1].node.batch == 3 && atomic_load(&waiters[1].node.shuffler));
}

/* A thread's nodes serve other locks too: pointers left in one by another lock are not followed. */
static void used_node(void)
{
	static const struct w_deadline passed = {.at = {.tv_nsec = 1}};
	struct cfl_node *node;

	stand_for(1, 1000);
	node = w_node_get();
	waiters[0] = (struct cfl_node){
		.node = {.next = &node->node, .note = 1000, .where = 2 * CFL_DOMAINS}};
	atomic_store(&node->before, &waiters[0]);
	node_free(&node->node.status);
	EXPECT(cfl_take(&lock) && !cfl_acquire_by(&lock, policy, &passed));
	EXPECT(!atomic_load(&lock.ledger.average[2]), "the walk back came to another lock's node");
}

/* In a forked child the holder has no waiter to wake, and no thread is waited for. */
static void forked(void)
{
	stand_for(1, 1000);
	enter(0, 1, 0, 0);
	atomic_store(&lock.state, CFL_LOCKED | CFL_PARKED | CFL_HEIR);
	atomic_fetch_add(&lock.generation, 2);
	EXPECT(cfl_drop_waiters(&lock) && atomic_load(&lock.state) == CFL_LOCKED &&
	       !atomic_load(&lock.tail));
	EXPECT(!cfl_drop_waiters(&lock));
}

/* Under strict_guarantee newcomers are compared with the last holder if there are no waiters. */
static void last_holder(void)
{
	stand_for(1, 1000);
	policy.strict_guarantee = 1;
	atomic_store(&lock.ledger.average[1], 3000);
	w_account(&lock)->held = 5001;
	EXPECT(cfl_take_free(&lock) && release());
	stand_for(1, 1000);
	EXPECT(cfl_arrive(&lock, 1000).held == 4000);
	cfl_track_average(&lock, 1002);
	EXPECT(atomic_load(&lock.ledger.average[1]) == (4000 + w_account(&lock)->held + 1002) / 2,
	       "a hold more is counted");
}

static void (*const white_tests[])(void) = {time_away, head,      due,    averages,
					    turns,     used_node, forked, last_holder};

static void white(void)
{
	for (int test = 0; test < COUNT(white_tests); test++) {
		begin(false);
		white_tests[test]();
	}
}

/* ---- Tests of both locks ---- */

static void long_and_short_holds(bool spins)
{
	static const uint64_t longest[] = {10000, 100000, 1000000};

	for (int i = 0; i < COUNT(longest); i++) {
		for (int threads = 2; threads <= 8; threads *= 2) {
			begin(spins);
			for (int j = 0; j < threads; j++)
				add(j % 2 ? longest[i] : longest[i] / 10, 0);
			run(longest[i] * 2000);
			EXPECT(jain(threads) >= 0.98,
			       "spins %d, %d threads, %llu ns: Jain's index is %.4f", spins,
			       threads, (unsigned long long)longest[i], jain(threads));
		}
	}
}

static void weights_of(bool spins, int each, uint64_t think)
{
	static const uint32_t shares[] = {1, 2, 8};
	int threads = each * COUNT(shares);

	begin(spins);
	for (int i = 0; i < threads; i++)
		add(10000, think)->weight = 1024 * shares[i % COUNT(shares)];
	run(200 * MILLISECOND);
	for (int i = 0; i < threads; i++) {
		double share = (double)machine.threads[i].held / total(0, threads) * 11 * each /
			       shares[i % 3];

		EXPECT(share > 0.95 && share < 1.05,
		       "spins %d, %d threads: weight %u has %.3f of its share", spins, threads,
		       shares[i % 3], share);
	}
}

/* Also for threads that pause between, for less time than a head yields to them. */
static void weights(bool spins)
{
	for (int each = 1; each <= 3; each++)
		for (uint64_t think = 0; think < TURNS_BRIEF * TURNS_LOOK; think += 1500)
			weights_of(spins, each, think);
}

/*
 * If all sleep and nobody returns at once, the order of the queue decides, and a waiter maintains
 * it.
 */
static void weights_of_sleepers(bool spins)
{
	for (uint64_t think = 5000; think <= 20000; think += 5000)
		weights_of(spins, 4, think);
}

static void groups(bool spins)
{
	double share;

	begin(spins);
	for (int i = 0; i < 36; i++)
		add(10000, 0)->group = i < 32 ? 1 : 2;
	atomic_store(&w_group_weights[1], 1024);
	atomic_store(&w_group_weights[2], 1024);
	run(200 * MILLISECOND);
	share = total(0, 32) / total(0, 36);
	EXPECT(share > 0.475 && share < 0.525, "spins %d: 32 threads have %.3f, 4 the rest", spins,
	       share);
}

static void newcomer(bool spins)
{
	double late = 0, share;

	begin(spins);
	for (int i = 0; i < 4; i++)
		add(10000, 0);
	add(10000, 0)->begin = 100 * MILLISECOND;
	machine.watched = 100 * MILLISECOND;
	run(110 * MILLISECOND);
	for (int i = 0; i < 5; i++)
		late += (double)machine.threads[i].late;
	share = (double)machine.threads[4].late / late;
	EXPECT(share > 0.15 && share < 0.25, "spins %d: the newcomer has %.3f", spins, share);
}

/* A thread that returns is owed only a bounded part of what it did not take while away. */
static void one_that_was_away(bool spins)
{
	uint64_t span = 20 * MILLISECOND, late;

	begin(spins);
	for (int i = 0; i < 4; i++)
		add(10000, 0);
	add(10000, 0)->leaves = 10 * MILLISECOND;
	machine.threads[4].returns = machine.watched = 200 * MILLISECOND;
	run(200 * MILLISECOND + span);
	late = machine.threads[4].late;
	EXPECT(late > span / 8 && late < CFL_BEHIND + (span - CFL_BEHIND) / 4,
	       "spins %d: one that was away had the lock for %llu ns", spins,
	       (unsigned long long)late);
}

/* The same for a group. */
static void a_group_that_was_away(bool spins)
{
	uint64_t span = 20 * MILLISECOND, late;

	begin(spins);
	atomic_store(&w_group_weights[1], 1024);
	atomic_store(&w_group_weights[2], 1024);
	for (int i = 0; i < 4; i++)
		add(10000, 0)->group = 1;
	add(10000, 0)->group = 2;
	machine.threads[4].leaves = 10 * MILLISECOND;
	machine.threads[4].returns = machine.watched = 200 * MILLISECOND;
	run(200 * MILLISECOND + span);
	late = machine.threads[4].late;
	EXPECT(late > span / 3 && late < CFL_BEHIND + (span - CFL_BEHIND) / 2,
	       "spins %d: a group that was away had the lock for %llu ns", spins,
	       (unsigned long long)late);
}

/* A lone thread gets the lock at every request; a contended lock is hardly ever free. */
static void no_time_is_wasted(bool spins)
{
	begin(spins);
	add(1000, 1000);
	run(10 * MILLISECOND);
	EXPECT(machine.threads[0].turns > 4500, "spins %d: a thread that is alone got it %u times",
	       spins, machine.threads[0].turns);
	begin(spins);
	for (int i = 0; i < 4; i++)
		add(i % 2 ? 40 * TURNS_WAKE : 20 * TURNS_WAKE, 0);
	run(500 * MILLISECOND);
	/* At most one wake-up and one entry into the lock per hold. */
	EXPECT(machine.busy > 450 * MILLISECOND,
	       "spins %d: the lock was held for %llu ns of 500 ms", spins,
	       (unsigned long long)machine.busy);
}

/* A thread that has had much gets a free lock at once, except under strict_guarantee. */
static void strict_guarantee(bool spins)
{
	uint32_t turns[2];

	for (uint32_t strict = 0; strict < 2; strict++) {
		begin(spins);
		policy.strict_guarantee = strict;
		add(100000, 100000);
		add(1000, 199000);
		run(200 * MILLISECOND);
		turns[strict] = machine.threads[0].turns;
	}
	EXPECT(turns[1] < turns[0] * 3 / 4, "spins %d: %u turns without it, %u with it", spins,
	       turns[0], turns[1]);
}

/* Threads with equal holds, or with longer but rarer ones, do not idle at the same time. */
static void strict_guarantee_works(bool spins)
{
	for (int others = 1; others < 4; others++) {
		begin(spins);
		policy.strict_guarantee = 1;
		for (int i = 0; i <= others; i++)
			add(10000 << i % 2, 10000);
		run(200 * MILLISECOND);
		EXPECT(machine.busy > 100 * MILLISECOND,
		       "spins %d, %d others: the lock was held for %llu ns of 200 ms", spins,
		       others, (unsigned long long)machine.busy);
	}
}

static const uint64_t graces[] = {200000, 1000000, 5000000}; /* in ns */

/*
 * Eight threads, the first @few in one domain and the others in another; each domain keeps the lock
 * for a grace period.
 */
static void run_with_grace(bool spins, int first, uint64_t grace)
{
	begin(spins);
	policy.grace_period = (uint32_t)(grace / 1000);
	machine.limit = grace + 40000;
	for (int i = 0; i < 8; i++)
		add(10000, 0)->domain = i >= first;
	run(200 * MILLISECOND);
	EXPECT(jain(8) >= 0.98, "spins %d, %d of 8, grace %llu: Jain's index is %.4f", spins, first,
	       (unsigned long long)grace, jain(8));
}

/*
 * A domain keeps the lock for its grace period plus a few holds; then the domain with less time
 * gets it, so that shares are equal. Between two equal domains, turns alternate, except once at the
 * start, when the second has had less at the end of its turn.
 */
static void grace_period(bool spins)
{
	uint32_t without;

	run_with_grace(spins, 4, 0);
	without = machine.crossings;
	for (int i = 0; i < COUNT(graces); i++) {
		run_with_grace(spins, 4, graces[i]);
		EXPECT(machine.crossings * 3 < without,
		       "spins %d, grace %llu: %u crossings, %u without", spins,
		       (unsigned long long)graces[i], machine.crossings, without);
		EXPECT(machine.longest >= graces[i] && machine.longest <= 2 * graces[i] + 40000 &&
			       machine.overstays <= 1,
		       "spins %d, grace %llu: %llu ns in a domain, %u times longer than it should "
		       "be",
		       spins, (unsigned long long)graces[i], (unsigned long long)machine.longest,
		       machine.overstays);
	}
}

/*
 * A domain with three times the threads gets two graces in a row: after the first, its threads
 * still have less each.
 */
static void grace_of_many(bool spins)
{
	for (int i = 0; i < COUNT(graces); i++) {
		run_with_grace(spins, 2, graces[i]);
		EXPECT(machine.overstays && machine.longest < 3 * graces[i],
		       "spins %d, grace %llu: %llu ns in a domain, %u times longer than a grace",
		       spins, (unsigned long long)graces[i], (unsigned long long)machine.longest,
		       machine.overstays);
	}
}

static void bypasses(bool spins)
{
	for (uint32_t bypass = 1; bypass <= 64; bypass *= 4) {
		begin(spins);
		policy.bypass = bypass;
		for (int i = 0; i < 8; i++)
			add(i ? 1000 : 1000000, 0);
		run(100 * MILLISECOND);
		/*
		 * The waiters before it, the moves, and the thefts before and during its turn as
		 * head.
		 */
		for (int i = 0; i < 8; i++)
			EXPECT(machine.threads[i].most_passed <= 8 + 3 * bypass,
			       "spins %d: passed %u times, %u allowed", spins,
			       machine.threads[i].most_passed, bypass);
	}
}

static void clock_readings(bool spins)
{
	begin(spins);
	add(1000, 1000);
	turns_readings = 0;
	run(1 * MILLISECOND);
	EXPECT(turns_readings == machine.threads[0].turns, "spins %d: %llu readings for %u turns",
	       spins, (unsigned long long)turns_readings, machine.threads[0].turns);
	begin(spins);
	add(1000, 0);
	add(1000, 0);
	turns_readings = 0;
	run(1 * MILLISECOND);
	EXPECT(turns_readings <= 3 * (machine.threads[0].turns + machine.threads[1].turns));
}

static void (*const tests[])(bool spins) = {
	a_group_that_was_away,
	groups,
	newcomer,
	one_that_was_away,
	no_time_is_wasted,
	strict_guarantee,
	strict_guarantee_works,
	grace_period,
	grace_of_many,
	bypasses,
	clock_readings,
	long_and_short_holds,
	weights,
	weights_of_sleepers,
};

static void all(void)
{
	for (int test = 0; test < COUNT(tests); test++) {
		limit(); /* per thread */
		for (int spins = 0; spins < 2; spins++)
			tests[test](spins);
	}
}

int main(void)
{
	RUN(white);
	RUN(all);
	return 0;
}
