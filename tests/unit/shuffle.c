/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shuffle.h: the order after shuffling for all patterns of domains, batches, the role and where its next holder goes on,
 * the end of a batch; each status of a node against each writer.
 */
#include "shuffle.h"
#include "unit.h"

#define DOMAINS 3
#define MOST 8

static struct shfl_node nodes[SHFL_MAX_BATCH * 2];
static int domains[SHFL_MAX_BATCH * 2];
static shfl_tail tail;
static W_ATOMIC(uint32_t) word; /* 1: shuffle on; 0: stop */

static void enter(int first, int last)
{
	for (int i = first; i < last; i++) {
		script_domain = domains[i];
		EXPECT(shfl_enter(&tail, &nodes[i]) == (i == 0));
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

static void shuffle(struct shfl_node *node)
{
	shfl_shuffle(node, &word, ~0u, 0, false);
}

/* What the order is to be, and how many belong to the batch: those of the head's domain first, but the last stays. */
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
		EXPECT(node->batch == (i < batch ? (uint32_t)i + 1 : 0), "place %d of %d has %u", i, count,
		       node->batch);
		EXPECT(atomic_load(&node->shuffler) == (i == batch - 1), "place %d of %d", i, count);
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

/* Where the next shuffler goes on: behind all that were walked. */
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

/* The next shuffler, when more have come, goes on as if one had walked all the way. */
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

/* Heads come and go, shuffling where they are to: each waiter becomes the head once, and nobody is left. */
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

/* A batch ends at its bound, and with it the role: the next head begins another one. */
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
	for (node = &nodes[0]; node->domain == domains[0]; node = atomic_load(&node->next))
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
	shfl_shuffle(&nodes[0], &word, 2, 0, false);
	EXPECT(!nodes[1].batch, "bits outside the mask were looked at");
}

static bool stop(void *unused)
{
	(void)unused;
	atomic_store(&word, 0);
	return true;
}

/* Wherever the walk is cut short, nobody is lost and one waiter has the role. */
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
		EXPECT(atomic_load(&nodes[0].status) == (wakes ? SHFL_AWAKE : status), "from %u", status);
		EXPECT(script_unparks(&nodes[0].status) == (status == SHFL_PARKED), "from %u", status);
	}
}

static void wakes_only_the_next_in_line(void)
{
	for (uint32_t status = SHFL_WAITING; status <= SHFL_PARKED; status++) {
		begin(4, 0);
		domains[1] = 1;
		enter(0, 4);
		for (int i = 1; i < 4; i++)
			atomic_store(&nodes[i].status, status);
		shfl_shuffle(&nodes[0], &word, ~0u, 0, true);
		EXPECT(atomic_load(&nodes[2].status) != status, "the next in line was not woken");
		EXPECT(script_unparks(&nodes[2].status) == (status == SHFL_PARKED));
		EXPECT(atomic_load(&nodes[1].status) == status && !script_unparks(&nodes[1].status));
		EXPECT(atomic_load(&nodes[3].status) == status && !script_unparks(&nodes[3].status));
	}
}

static void pass_role_by_status(void)
{
	for (uint32_t status = SHFL_FREE; status <= SHFL_ABANDONED; status++) {
		bool nudged = status == SHFL_WAITING || status == SHFL_AWAKE;

		set_status(&nodes[0], status);
		shfl_pass_role(&nodes[0]);
		EXPECT(atomic_load(&nodes[0].status) == (nudged ? SHFL_ROLE : status), "from %u", status);
		EXPECT(shfl_has_role(&nodes[0]), "from %u", status);
		EXPECT(!script_unparks(&nodes[0].status));
	}
}

/* A leaving head makes the first that is still there the head, whatever it is doing, and frees those that have gone. */
static void leave_by_statuses(void)
{
	enum { BEHIND = 4, STATUSES = SHFL_ABANDONED };

	for (int pattern = 0; pattern < power(STATUSES, BEHIND); pattern++) {
		int heir = 1;

		begin(BEHIND + 1, 0);
		enter(0, BEHIND + 1);
		for (int i = 0; i < BEHIND; i++)
			atomic_store(&nodes[i + 1].status, (uint32_t)digit(pattern, STATUSES, i) + 1);
		while (heir <= BEHIND && atomic_load(&nodes[heir].status) == SHFL_ABANDONED)
			heir++;
		bool sleeps = heir <= BEHIND && atomic_load(&nodes[heir].status) == SHFL_PARKED;

		EXPECT(shfl_leave(&tail, &nodes[0], WAIT_PARK) == (sleeps ? &nodes[heir].status : NULL));
		for (int i = 0; i < heir; i++)
			EXPECT(atomic_load(&nodes[i].status) == SHFL_FREE);
		if (heir <= BEHIND)
			EXPECT(atomic_load(&nodes[heir].status) == SHFL_READY);
		else
			EXPECT(!atomic_load(&tail));
	}
}

/* ---- A waiter, and what its neighbours do at any moment ---- */

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

static void wait_between(enum wait wait, bool (*first)(void *), long first_step, long leave_step, long deadline_step)
{
	struct w_deadline deadline = script_deadline(deadline_step);
	bool head, slept = false;

	begin(2, 0);
	enter(0, 2);
	script_clear();
	script_at(first_step, first, NULL);
	script_at(leave_step, head_leaves, NULL);
	head = shfl_wait_turn(&nodes[1], wait, deadline_step == NEVER ? NULL : &deadline, &slept);
	EXPECT(head || script_time >= deadline_step, "gave up before its deadline");
	script_finish();
	if (head)
		EXPECT(!shfl_leave(&tail, &nodes[1], wait));
	EXPECT(!atomic_load(&tail), "the queue is not empty in the end");
	EXPECT(atomic_load(&nodes[0].status) == SHFL_FREE && atomic_load(&nodes[1].status) == SHFL_FREE);
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
						wait_between(wait, firsts[first], step, leave, deadlines[deadline]);
}

int main(void)
{
	RUN(all_patterns);
	RUN(all_patterns_in_two_walks);
	RUN(all_patterns_drained);
	RUN(batch_ends);
	RUN(stops_at_once_when_the_lock_is_free);
	RUN(stops_anywhere);
	RUN(wake_early_by_status);
	RUN(wakes_only_the_next_in_line);
	RUN(pass_role_by_status);
	RUN(leave_by_statuses);
	RUN(wait_turn_anyhow);
	return 0;
}
