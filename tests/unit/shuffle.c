/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shuffle.h: the order after shuffling for all patterns of domains and batches; the shuffler role
 * and where its next owner continues; the end of a batch; each status of a node against each
 * writer.
 */
#include "part/shuffle.h"
#include "unit.h"

#define DOMAINS 3
#define MOST 8

static struct shfl_node nodes[SHFL_MAX_BATCH * 2];
static int domains[SHFL_MAX_BATCH * 2];
static shfl_tail tail;
static W_ATOMIC(uint32_t) word; /* 1: continue shuffling; 0: stop */

static void enter(int first, int last)
{
	for (int i = first; i < last; i++) {
		EXPECT(shfl_enter(&tail, &nodes[i], (uint32_t)domains[i]) == (i == 0));
	}
}

static void begin(int count, int pattern)
{
	script_clear();
	atomic_store(&tail, NULL);
	atomic_store(&word, 1);
	for (int i = 0; i < count; i++)
		domains[i] = digit(pattern, DOMAINS, i);
}

static const enum policy numa = POLICY_NUMA;
static const struct shfl_stop when_free = {.word = &word, .mask = ~0u, .value = 0};

static void shuffle(struct shfl_node *node)
{
	EXPECT(node, "nobody has the role");
	shfl_shuffle(node, when_free, false, shfl_by(&numa, SHFL_MAX_BATCH));
}

/* The expected order and batch: the head's domain first, except that the last waiter stays. */
static int expected_order(int count, int *order)
{
	int placed = 1, batch;

	order[0] = 0;
	for (int i = 1; i < count - 1; i++)
		if (domains[i] == domains[0])
			order[placed++] = i;
	batch = placed;
	for (int i = 1; i < count - 1; i++)
		if (domains[i] != domains[0])
			order[placed++] = i;
	if (count > 1)
		order[placed++] = count - 1;
	return batch == count - 1 && domains[count - 1] == domains[0] ? count : batch;
}

static void expect_order(int count)
{
	int order[COUNT(nodes)], batch = expected_order(count, order);
	struct shfl_node *node = &nodes[0];

	for (int i = 0; i < count; i++, node = atomic_load(&node->next)) {
		EXPECT(node == &nodes[order[i]], "place %d of %d", i, count);
		EXPECT(node->batch == (i < batch ? (uint32_t)i + 1 : 0), "place %d of %d has %u", i,
		       count, node->batch);
		EXPECT(atomic_load(&node->shuffler) == (i == batch - 1), "place %d of %d", i,
		       count);
	}
	EXPECT(!node, "the queue has more than its %d waiters", count);
	EXPECT(atomic_load(&tail) == &nodes[count - 1], "the last waiter was moved");
}

static struct shfl_node *role_holder(int count)
{
	for (int i = 0; i < count; i++)
		if (atomic_load(&nodes[i].shuffler))
			return &nodes[i];
	return NULL;
}

/* The place where the next shuffler continues: behind all waiters that were walked. */
static void expect_seen(int count)
{
	int order[COUNT(nodes)], batch = expected_order(count, order);
	int walked = domains[count - 1] == domains[0] ? count - 1 : count;

	EXPECT(nodes[order[batch - 1]].seen == (batch < walked ? &nodes[order[walked - 1]] : NULL));
}

static void all_patterns(void)
{
	for (int count = 1; count <= MOST; count++) {
		for (int pattern = 0; pattern < power(DOMAINS, count); pattern++) {
			begin(count, pattern);
			enter(0, count);
			shuffle(&nodes[0]);
			expect_order(count);
			expect_seen(count);
		}
	}
}

/* After more arrivals, the next shuffler continues as if one had walked all the way. */
static void all_patterns_in_two_walks(void)
{
	for (int first = 1; first < MOST; first++) {
		for (int pattern = 0; pattern < power(DOMAINS, MOST); pattern++) {
			begin(MOST, pattern);
			enter(0, first);
			shuffle(&nodes[0]);
			enter(first, MOST);
			shuffle(role_holder(first));
			expect_order(MOST);
			expect_seen(MOST);
		}
	}
}

/*
 * Heads come and go and shuffle in their turn: each waiter becomes the head once, and none is left.
 */
static void all_patterns_drained(void)
{
	for (int pattern = 0; pattern < power(DOMAINS, MOST); pattern++) {
		struct shfl_node *head = &nodes[0], *next;
		int heads = 0;

		begin(MOST, pattern);
		enter(0, MOST);
		for (; head; head = next, heads++) {
			if (shfl_head_shuffles(head))
				shuffle(head);
			next = atomic_load(&head->next);
			EXPECT(!shfl_leave(&tail, head, WAIT_YIELD));
			EXPECT(atomic_load(&head->status) == SHFL_FREE);
			EXPECT(!next || atomic_load(&next->status) == SHFL_READY);
		}
		EXPECT(heads == MOST);
		EXPECT(!atomic_load(&tail));
	}
}

/* A batch ends at its bound, as does the role: the next head begins another one. */
static void batch_ends(void)
{
	int count = 2 * SHFL_MAX_BATCH - 1, place = 0;
	struct shfl_node *node;

	script_clear();
	atomic_store(&tail, NULL);
	atomic_store(&word, 1);
	for (int i = 0; i < count; i++)
		domains[i] = i == 1;
	enter(0, count);
	shuffle(&nodes[0]);
	EXPECT(!role_holder(count), "the role outlived the batch");
	for (node = &nodes[0]; node->note == (uint32_t)domains[0]; node = atomic_load(&node->next))
		EXPECT(node->batch == (uint32_t)++place);
	EXPECT(place == SHFL_MAX_BATCH, "%d waiters passed", place - 1);
	EXPECT(node == &nodes[1]);
	EXPECT(shfl_head_shuffles(node));
	EXPECT(!shfl_head_shuffles(&nodes[0]), "a head in a finished batch shuffles");
}

static void stops_at_once_when_the_lock_is_free(void)
{
	begin(3, 0);
	enter(0, 3);
	atomic_store(&word, 0);
	shuffle(&nodes[0]);
	EXPECT(nodes[0].batch == 1 && !nodes[1].batch);
	EXPECT(role_holder(3) == &nodes[0]);
	atomic_store(&word, 5);
	shfl_shuffle(&nodes[0], (struct shfl_stop){.word = &word, .mask = 2, .value = 0}, false,
		     shfl_by(&numa, SHFL_MAX_BATCH));
	EXPECT(!nodes[1].batch, "bits outside the mask were looked at");
}

static bool stop(void *unused)
{
	(void)unused;
	atomic_store(&word, 0);
	return true;
}

/* Wherever the walk is cut short, no waiter is lost and one has the role. */
static void stops_anywhere(void)
{
	for (int pattern = 0; pattern < power(DOMAINS, 6); pattern++) {
		for (long step = 1; step < 24; step++) {
			struct shfl_node *node = &nodes[0];
			int found = 0, roles = 0;

			begin(6, pattern);
			enter(0, 6);
			script_clear();
			script_at(step, stop, NULL);
			shuffle(&nodes[0]);
			for (; node; node = atomic_load(&node->next), found++)
				roles += atomic_load(&node->shuffler) != 0;
			EXPECT(found == 6 && roles == 1);
			EXPECT(atomic_load(&tail) == &nodes[5]);
		}
	}
}

/* ---- Policies ---- */

/*
 * The order in which the waiters are served, as heads come and go and waiters shuffle in their
 * turn.
 */
static void drain(int count, struct shfl_order order, int *served)
{
	struct shfl_node *head = &nodes[0], *shuffler;
	int heads = 0;

	for (; head; heads++) {
		served[heads] = (int)(head - nodes);
		if (shfl_head_shuffles(head))
			shfl_shuffle(head, when_free, false, order);
		for (int walks = 0;
		     walks < 2 && (shuffler = role_holder(count)) && shuffler != head; walks++)
			shfl_shuffle(shuffler, when_free, false, order);
		struct shfl_node *next = atomic_load(&head->next);

		EXPECT(!shfl_leave(&tail, head, WAIT_YIELD));
		atomic_store(&head->shuffler, 0);
		head = next;
	}
	EXPECT(heads == count, "%d of %d waiters were served", heads, count);
	EXPECT(!atomic_load(&tail));
}

/* How often @waiter was passed; checks that it is within the bound. */
static void expect_bound(int count, const int *served, uint32_t bound)
{
	for (int place = 0; place < count; place++) {
		uint32_t passed = 0;

		for (int before = 0; before < place; before++)
			passed += served[before] > served[place];
		EXPECT(passed <= bound, "waiter %d was passed by %u", served[place], passed);
	}
}

/*
 * Waiters at all positions: the tour from the head's on, each once; but the last, to which
 * newcomers link, stays.
 */
static void route_is_a_tour(void)
{
	static const enum policy route = POLICY_ROUTE;
	static const int positions[] = {5, 2, 7, 0, 6, 1, 4, 3, 5};
	static const int tour[] = {5, 6, 7, 0, 1, 2, 3, 4, 5};
	int served[COUNT(positions)];

	begin(COUNT(positions), 0);
	script_cpus = 8;
	for (int i = 0; i < COUNT(positions); i++)
		domains[i] = positions[i];
	enter(0, COUNT(positions));
	drain(COUNT(positions), shfl_by(&route, SHFL_MAX_BATCH), served);
	for (int i = 0; i < COUNT(positions); i++)
		EXPECT(positions[served[i]] == tour[i], "stop %d is at %d", i,
		       positions[served[i]]);
	script_cpus = 1;
}

static void fifo_moves_nobody(void)
{
	static const enum policy fifo = POLICY_FIFO;
	int served[MOST];

	for (int pattern = 0; pattern < power(DOMAINS, MOST); pattern += 7) {
		begin(MOST, pattern);
		enter(0, MOST);
		drain(MOST, shfl_by(&fifo, SHFL_MAX_BATCH), served);
		for (int i = 0; i < MOST; i++)
			EXPECT(served[i] == i);
	}
}

/*
 * Waiters with less time than the head come first, the least first; times that wrap compare
 * correctly.
 */
static void least_first(void)
{
	static const enum policy policies[] = {POLICY_FAIR, POLICY_OCCUPANCY};
	static const int times[] = {50, 70, 40, 60, 20, 50, 10, 90};
	static const int order[] = {0, 6, 4, 2, 5, 1, 3, 7};

	for (int policy = 0; policy < COUNT(policies); policy++) {
		for (int base = 0; base <= 55 && !(base && policies[policy] == POLICY_OCCUPANCY);
		     base += 55) {
			begin(COUNT(times), 0);
			for (int i = 0; i < COUNT(times); i++)
				domains[i] = times[i] - base;
			enter(0, COUNT(times));
			shfl_shuffle(&nodes[0], when_free, false,
				     shfl_by(&policies[policy], SHFL_MAX_BATCH));
			struct shfl_node *node = &nodes[0];

			for (int i = 0; i < COUNT(times); i++, node = atomic_load(&node->next))
				EXPECT(node == &nodes[order[i]], "place %d, policy %d", i,
				       policies[policy]);
		}
	}
}

static uint32_t any_note(void *context, const void *anything)
{
	(void)context, (void)anything;
	return w_random();
}

static uint32_t at_most(void *context, uint32_t shuffler, uint32_t waiter)
{
	(void)context;
	return waiter <= shuffler ? waiter : POLICY_STAY;
}

/* As the examples of the documentation: an order that ignores who shuffles. */
static uint32_t of_waiter(void *context, uint32_t shuffler, uint32_t waiter)
{
	(void)context, (void)shuffler;
	return waiter;
}

/*
 * Waiters of ranks 0 and 1 that sleep, so that only heads walk, and return at once. The one that
 * had its turn returns while the head waits. Of @turns, returns how many rank 1 has.
 */
static int turns_of_last(uint32_t (*rank)(void *, uint32_t, uint32_t), int count, int first,
			 int turns)
{
	static const enum policy own = POLICY_OWN;
	const struct shfl_order order = shfl_by(&own, SHFL_MAX_BATCH);
	struct shfl_node *head = &nodes[0], *before = NULL;
	int last = 0;

	w_own_policies[0] = (struct w_own_policy){.note = any_note, .rank = rank};
	begin(count, 0);
	/* Those of rank 1 enter as numbers @first and @first + 1. */
	domains[first] = domains[first + 1] = 1;
	enter(0, count);
	for (int i = 0; i < turns; i++) {
		if (shfl_head_shuffles(head))
			shfl_shuffle(head, when_free, false, order);
		if (before)
			EXPECT(!shfl_enter(&tail, before, before->note));
		before = head;
		last += head->note == 1;
		head = atomic_load(&head->next);
		EXPECT(!shfl_leave(&tail, before, WAIT_YIELD));
	}
	return last;
}

/*
 * Whoever is the first head: the waiters that rank last do not pass the role to each other, and
 * are not gathered by others.
 */
static void last_rank_does_not_keep_the_role(void)
{
	for (int first = 0; first < MOST - 1; first++) {
		int last = turns_of_last(at_most, MOST, first, 400);

		EXPECT(last == !first, "%d turns if the first is %d", last, first);
		last = turns_of_last(of_waiter, MOST, first, 400);
		EXPECT(last == !first, "%d turns of all ranks if the first is %d", last, first);
	}
}

/* Waiters of the shuffler's rank come forward, unless one ranks before it. */
static void equal_ranks_stay_behind_better_ones(void)
{
	static const enum policy own = POLICY_OWN;
	static const int ranks[][MOST] = {{1, 1, 2, 1, 2, 1, 2, 2}, {1, 1, 2, 1, 0, 1, 0, 2}};
	static const int order[][MOST] = {{0, 1, 3, 5, 2, 4, 6, 7}, {0, 4, 6, 1, 2, 3, 5, 7}};

	w_own_policies[0] = (struct w_own_policy){.note = any_note, .rank = at_most};
	for (int i = 0; i < COUNT(ranks); i++) {
		struct shfl_node *node = &nodes[0];

		begin(MOST, 0);
		memcpy(domains, ranks[i], sizeof(ranks[i]));
		enter(0, MOST);
		shfl_shuffle(&nodes[0], when_free, false, shfl_by(&own, SHFL_MAX_BATCH));
		for (int j = 0; j < MOST; j++, node = atomic_load(&node->next))
			EXPECT(node == &nodes[order[i][j]], "place %d of %d", j, i);
		EXPECT(role_holder(MOST) == &nodes[i ? 6 : 5]);
	}
}

/* For each policy, including one with random answers, no waiter is lost or passed too often. */
static uint32_t any_rank(void *context, uint32_t shuffler, uint32_t waiter)
{
	static const uint32_t extremes[] = {0, 1, POLICY_STAY - 1, POLICY_STAY};
	uint32_t random = w_random();

	(void)context, (void)shuffler, (void)waiter;
	return random % 2 ? extremes[random / 2 % 4] : random;
}

static const struct w_own_policy hostile = {.note = any_note, .rank = any_rank};

/*
 * More waiters arrive whenever there are few, so that the queue never ends before all have arrived.
 */
static void expect_all_served(enum policy policy, uint32_t bound, int most)
{
	static int served[COUNT(nodes)];
	struct shfl_order order = shfl_by(&policy, bound);
	struct shfl_node *head = &nodes[0], *shuffler;
	int entered = 0, heads = 0;

	while (heads < most) {
		int more = entered + (int)(w_random() % 24);

		for (; entered < (more < most ? more : most) &&
		       (entered - heads < 40 || entered == heads);
		     entered++) {
			uint32_t note = w_random() % 4;

			if (shfl_enter(&tail, &nodes[entered], note))
				head = &nodes[entered];
		}
		if (entered == heads)
			continue;
		EXPECT(head, "the queue has lost %d waiters", entered - heads);
		served[heads++] = (int)(head - nodes);
		if (shfl_head_shuffles(head))
			shfl_shuffle(head, when_free, w_random() % 2, order);
		shuffler = NULL;
		for (struct shfl_node *node = head; node; node = atomic_load(&node->next))
			if (atomic_load(&node->shuffler))
				shuffler = node;
		if (shuffler && shuffler != head && w_random() % 2)
			shfl_shuffle(shuffler, when_free, false, order);
		struct shfl_node *next = atomic_load(&head->next);

		(void)shfl_leave(&tail, head, WAIT_YIELD);
		head = next;
	}
	EXPECT(!atomic_load(&tail));
	expect_bound(most, served, 2 * bound);
}

static void every_policy_has_its_bound(void)
{
	w_own_policies[0] = hostile;
	script_cpus = 4;
	for (enum policy policy = POLICY_FIFO; policy <= POLICY_OWN; policy++) {
		for (uint32_t bound = 1; bound <= 16; bound *= 2) {
			for (int round = 0; round < 8; round++) {
				begin(0, 0);
				expect_all_served(policy, bound, 500);
			}
		}
	}
	script_cpus = 1;
}

/* ---- Statuses ---- */

static void set_status(struct shfl_node *node, uint32_t status)
{
	script_clear();
	memset((void *)node, 0, sizeof(*node));
	atomic_store(&node->status, status);
}

static void wake_early_by_status(void)
{
	for (uint32_t status = SHFL_FREE; status <= SHFL_ABANDONED; status++) {
		bool wakes = status == SHFL_WAITING || status == SHFL_PARKED;

		set_status(&nodes[0], status);
		shfl_wake_early(&nodes[0]);
		EXPECT(atomic_load(&nodes[0].status) == (wakes ? SHFL_AWAKE : status), "from %u",
		       status);
		EXPECT(script_unparks(&nodes[0].status) == (status == SHFL_PARKED), "from %u",
		       status);
	}
}

static void wakes_as_many_ahead_as_asked(void)
{
	for (uint32_t count = 0; count < 5; count++) {
		begin(4, 0);
		enter(0, 4);
		for (int i = 0; i < 4; i++)
			atomic_store(&nodes[i].status, i == 2 ? SHFL_READY : SHFL_PARKED);
		shfl_wake_ahead(&nodes[0], count);
		EXPECT(!script_unparks(&nodes[0].status), "the head itself");
		EXPECT(script_unparks(&nodes[1].status) == (count >= 1), "of %u", count);
		EXPECT(!script_unparks(&nodes[2].status), "not asleep");
		EXPECT(script_unparks(&nodes[3].status) == (count >= 3), "of %u", count);
		shfl_wake_ahead(&nodes[0], count);
		EXPECT(script_unparks(&nodes[1].status) == (count >= 1), "once only");
	}
}

/* Only a waiter that was woken early waits otherwise than its lock asks. */
static void woken_early_spins_for_the_whole_budget(void)
{
	for (uint32_t status = SHFL_WAITING; status <= SHFL_READY; status++)
		for (enum w_how how = W_SPIN; how <= W_SIGNAL; how++)
			EXPECT(shfl_wait_how(how, status) ==
				       (status == SHFL_AWAKE && how == W_QUEUED ? W_BRIEF : how),
			       "status %u, how %u", status, how);
}

static void wakes_only_the_next_in_line(void)
{
	for (uint32_t status = SHFL_WAITING; status <= SHFL_PARKED; status++) {
		begin(4, 0);
		domains[1] = 1;
		enter(0, 4);
		for (int i = 1; i < 4; i++)
			atomic_store(&nodes[i].status, status);
		shfl_shuffle(&nodes[0], when_free, true, shfl_by(&numa, SHFL_MAX_BATCH));
		EXPECT(atomic_load(&nodes[2].status) != status, "the next in line was not woken");
		EXPECT(script_unparks(&nodes[2].status) == (status == SHFL_PARKED));
		EXPECT(atomic_load(&nodes[1].status) == status &&
		       !script_unparks(&nodes[1].status));
		EXPECT(atomic_load(&nodes[3].status) == status &&
		       !script_unparks(&nodes[3].status));
	}
}

static void pass_role_by_status(void)
{
	for (uint32_t status = SHFL_FREE; status <= SHFL_ABANDONED; status++) {
		bool nudged = status == SHFL_WAITING || status == SHFL_AWAKE;

		set_status(&nodes[0], status);
		shfl_pass_role(&nodes[0]);
		EXPECT(atomic_load(&nodes[0].status) == (nudged ? SHFL_ROLE : status), "from %u",
		       status);
		EXPECT(shfl_has_role(&nodes[0]), "from %u", status);
		EXPECT(!script_unparks(&nodes[0].status));
	}
}

/*
 * A leaving head makes the first remaining waiter the head, in whatever state, and frees abandoned
 * nodes.
 */
static void leave_by_statuses(void)
{
	enum { BEHIND = 4, STATUSES = SHFL_ABANDONED };

	for (int pattern = 0; pattern < power(STATUSES, BEHIND); pattern++) {
		int heir = 1;

		begin(BEHIND + 1, 0);
		enter(0, BEHIND + 1);
		for (int i = 0; i < BEHIND; i++)
			atomic_store(&nodes[i + 1].status,
				     (uint32_t)digit(pattern, STATUSES, i) + 1);
		while (heir <= BEHIND && atomic_load(&nodes[heir].status) == SHFL_ABANDONED)
			heir++;
		bool sleeps = heir <= BEHIND && atomic_load(&nodes[heir].status) == SHFL_PARKED;

		EXPECT(shfl_leave(&tail, &nodes[0], WAIT_PARK) ==
		       (sleeps ? &nodes[heir].status : NULL));
		for (int i = 0; i < heir; i++)
			EXPECT(atomic_load(&nodes[i].status) == SHFL_FREE);
		if (heir <= BEHIND)
			EXPECT(atomic_load(&nodes[heir].status) == SHFL_READY);
		else
			EXPECT(!atomic_load(&tail));
	}
}

/* ---- A waiter, and its neighbours' steps at any moment ---- */

static bool head_leaves(void *unused)
{
	W_ATOMIC(uint32_t) *sleeper = shfl_leave(&tail, &nodes[0], WAIT_PARK);

	(void)unused;
	if (sleeper)
		w_unpark(sleeper);
	return true;
}

static bool head_wakes_early(void *unused)
{
	(void)unused;
	shfl_wake_early(&nodes[1]);
	return true;
}

static bool head_passes_role(void *unused)
{
	(void)unused;
	shfl_pass_role(&nodes[1]);
	return true;
}

#define NEVER 100000

static void wait_between(enum wait wait, bool (*first)(void *), long first_step, long leave_step,
			 long deadline_step)
{
	struct w_deadline deadline = script_deadline(deadline_step);
	bool head, slept = false;

	begin(2, 0);
	enter(0, 2);
	script_clear();
	script_at(first_step, first, NULL);
	script_at(leave_step, head_leaves, NULL);
	head = shfl_wait_turn(&nodes[1], wait_overtaken(wait), wait,
			      deadline_step == NEVER ? NULL : &deadline, &slept,
			      shfl_by(&numa, SHFL_MAX_BATCH));
	EXPECT(head || script_time >= deadline_step, "gave up before its deadline");
	script_finish();
	if (head)
		EXPECT(!shfl_leave(&tail, &nodes[1], wait));
	EXPECT(!atomic_load(&tail), "the queue is not empty in the end");
	EXPECT(atomic_load(&nodes[0].status) == SHFL_FREE &&
	       atomic_load(&nodes[1].status) == SHFL_FREE);
}

static void wait_turn_anyhow(void)
{
	static bool (*const firsts[])(void *) = {head_wakes_early, head_passes_role};
	static const long deadlines[] = {1, 4, 9, 16, 25, NEVER};

	for (int first = 0; first < COUNT(firsts); first++)
		for (int deadline = 0; deadline < COUNT(deadlines); deadline++)
			for (long step = 1; step < 30; step++)
				for (long leave = step; leave < 40; leave++)
					for (enum wait wait = WAIT_SPIN; wait <= WAIT_PARK; wait++)
						wait_between(wait, firsts[first], step, leave,
							     deadlines[deadline]);
}

int main(void)
{
	RUN(all_patterns);
	RUN(all_patterns_in_two_walks);
	RUN(all_patterns_drained);
	RUN(batch_ends);
	RUN(stops_at_once_when_the_lock_is_free);
	RUN(stops_anywhere);
	RUN(route_is_a_tour);
	RUN(fifo_moves_nobody);
	RUN(least_first);
	RUN(last_rank_does_not_keep_the_role);
	RUN(equal_ranks_stay_behind_better_ones);
	RUN(every_policy_has_its_bound);
	RUN(wake_early_by_status);
	RUN(wakes_as_many_ahead_as_asked);
	RUN(woken_early_spins_for_the_whole_budget);
	RUN(wakes_only_the_next_in_line);
	RUN(pass_role_by_status);
	RUN(leave_by_statuses);
	RUN(wait_turn_anyhow);
	return 0;
}
