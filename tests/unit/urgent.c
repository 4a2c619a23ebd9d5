/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Urgent waiters and the threshold of time, which only the kernel's world has: for all patterns of
 * domains and urgent waiters of CNA and of a shuffled queue, no later waiter bypasses an urgent
 * one; RON serves it next, and then returns to its tour; bypassing ends with the threshold, and not
 * before.
 */
#include "world.h"

#undef W_URGENCY
#define W_URGENCY 1
#undef w_urgent
#define w_urgent() is_urgent
#undef W_THRESHOLD
#define W_THRESHOLD patience
#undef w_now
#define w_now() ((uint64_t)now << 10)

#include <stdbool.h>
#include <stdint.h>

static bool is_urgent;         /* the calling thread */
static uint32_t patience, now; /* of the world, in units of 1,024 ns */

#include "cna.h"
#include "part/shuffle.h"
#include "ron_shared.h"
#include "unit.h"

#define KINDS 4 /* domain 0 or 1, and urgent or not */
#define MOST 6
#define LONG 1000u

/* The position of each served waiter, in the order of service. */
struct service {
	int count, order[MOST];
};

/* Whether @first, a waiter that came before @second, is served after it. */
static bool bypassed(const struct service *service, int first, int second)
{
	for (int i = 0; i < service->count; i++) {
		if (service->order[i] == first)
			return false;
		if (service->order[i] == second)
			return true;
	}
	return false;
}

/* Counts the pairs of waiters in the wrong order; none has an urgent one at its head. */
static int bypasses(const struct service *service, int waiters, int pattern)
{
	int count = 0;

	EXPECT(service->count == waiters, "%d of %d were served", service->count, waiters);
	for (int first = 0; first < waiters; first++) {
		for (int second = first + 1; second < waiters; second++) {
			if (!bypassed(service, first, second))
				continue;
			count++;
			EXPECT(digit(pattern, KINDS, first) < 2,
			       "pattern %d: %d bypassed %d, which is urgent", pattern, second,
			       first);
		}
	}
	return count;
}

/* ---- CNA ---- */

static struct cna lock;
static struct cna_node nodes[MOST + 1];
static const struct cna_policy by_time = {.threshold = 1};

static void cna_enter(struct cna_node *node, int kind)
{
	struct mcs_node *previous;

	cna_node_init(&node->mcs);
	node->mcs.domain = kind < 2 ? kind : CNA_URGENT;
	previous = atomic_exchange(&lock.tail, &node->mcs);
	if (previous)
		atomic_store(&previous->next, &node->mcs);
}

/* The index of the node that holds the lock; 0: it is free. */
static int cna_holder(int waiters)
{
	for (int i = 1; i <= waiters; i++)
		if (atomic_load(&nodes[i].mcs.status) == NODE_GRANTED)
			return i;
	return 0;
}

static void cna_begin(int waiters, int pattern)
{
	atomic_store(&lock.tail, NULL);
	script_clear();
	cna_enter(&nodes[0], 0);
	for (int i = 0; i < waiters; i++)
		cna_enter(&nodes[i + 1], digit(pattern, KINDS, i));
}

/* Serves all waiters; each holds the lock for @hold. */
static struct service cna_serve(int waiters, uint32_t hold)
{
	struct service service = {0};
	int holder = 0;

	do {
		now += hold;
		cna_release(&lock, &nodes[holder], by_time);
		holder = cna_holder(waiters);
		if (holder)
			service.order[service.count++] = holder - 1;
	} while (holder);
	return service;
}

static void cna_never_defers_urgent_waiters(void)
{
	int moved = 0;

	patience = LONG;
	for (int pattern = 0; pattern < power(KINDS, MOST); pattern++) {
		struct service service;

		cna_begin(MOST, pattern);
		service = cna_serve(MOST, 1);
		moved += bypasses(&service, MOST, pattern);
	}
	EXPECT(moved, "no waiter bypassed another");
}

/* Waiters of domain 1, 0, 1, 0, 1, 0: those of domain 0 bypass the first for the threshold. */
static void cna_defers_for_the_threshold(void)
{
	static const int bypassing[] = {3, 2, 1}; /* by the holds within the threshold */
	int pattern = 0, before;

	for (int i = 0; i < MOST; i += 2)
		pattern += power(KINDS, i);
	patience = 6;
	for (int i = 0; i < COUNT(bypassing); i++) {
		struct service service;

		now = UINT32_MAX - 3; /* the clock wraps */
		cna_begin(MOST, pattern);
		service = cna_serve(MOST, (uint32_t[]){1, 3, 6}[i]);
		for (before = 0; service.order[before] != 0; before++)
			;
		EXPECT(before == bypassing[i], "%d waiters passed, not %d", before, bypassing[i]);
	}
}

/* ---- The shuffled queue ---- */

static struct shfl_node waiters[MOST];
static shfl_tail tail;
static W_ATOMIC(uint32_t) word = 1;
static const enum policy numa = POLICY_NUMA;
static const struct shfl_stop when_free = {.word = &word, .mask = ~0u, .value = 0};

static void shfl_come(int waiter, int kind)
{
	script_domain = kind % 2;
	is_urgent = kind >= 2;
	EXPECT(shfl_enter(&tail, &waiters[waiter], policy_note(numa, NULL)) == (waiter == 0));
}

/* Serves all waiters. Each head shuffles, at one moment. */
static struct service shfl_serve(int bound)
{
	struct service service = {0};
	struct shfl_node *head = &waiters[0], *next;

	for (; head; head = next) {
		if (shfl_head_shuffles(head))
			shfl_shuffle(head, when_free, false, shfl_by(&numa, (uint32_t)bound));
		service.order[service.count++] = (int)(head - waiters);
		next = atomic_load(&head->next);
		(void)shfl_leave(&tail, head, WAIT_SPIN);
	}
	return service;
}

static void shuffling_never_passes_urgent_waiters(void)
{
	int moved = 0;

	patience = LONG;
	for (int bound = 1; bound <= MOST; bound++) {
		for (int pattern = 0; pattern < power(KINDS, MOST); pattern++) {
			struct service service;

			script_clear();
			for (int i = 0; i < MOST; i++)
				shfl_come(i, digit(pattern, KINDS, i));
			service = shfl_serve(bound);
			moved += bypasses(&service, MOST, pattern);
		}
	}
	EXPECT(moved, "no waiter was moved");
}

/* Returns how many waiters of the head's domain a walk gathers @later than it first passed one. */
static uint32_t gathered(uint32_t since, uint32_t later)
{
	struct shfl_order order = shfl_by(&numa, SHFL_MAX_BATCH);
	struct shfl_node *last;

	script_clear();
	now = since;
	for (int i = 0; i < 4; i++)
		shfl_come(i, i == 1);
	last = shfl_walk(&waiters[0], when_free, false, order, POLICY_STAY);
	now += later;
	shfl_come(4, 0);
	shfl_come(5, 0);
	atomic_store(&last->shuffler, 1);
	last = shfl_walk(last, when_free, false, order, POLICY_STAY);
	atomic_store(&tail, NULL);
	return last->batch;
}

static void shuffling_passes_for_the_threshold(void)
{
	static const uint32_t begins[] = {1, UINT32_MAX - 1};

	patience = 10;
	for (int i = 0; i < COUNT(begins); i++) {
		EXPECT(gathered(begins[i], 0) > gathered(begins[i], 12));
		EXPECT(gathered(begins[i], 6) == gathered(begins[i], 0));
		/* A clock that is behind the other one's. */
		EXPECT(gathered(begins[i], (uint32_t)-4) == gathered(begins[i], 0));
	}
}

/* ---- RON ---- */

#define CPUS 8u

static struct ron_shared route;

/* A thread on the CPU @position waits; returns its slot. */
static uint32_t ron_come(uint32_t position, bool urgent)
{
	struct ron_shared_array *array = ron_shared_array();
	uint32_t slot = ron_shared_claim(array, &route, position * ron_shared_each());

	EXPECT(!ron_shared_announce(array, &route, slot, urgent), "the lock was free");
	return slot;
}

/* Releases the lock, and returns the position of the next holder, whose slot is returned. */
static uint32_t ron_next(bool holder_is_urgent, bool next_is_urgent)
{
	struct ron_shared_array *array = ron_shared_array();

	is_urgent = holder_is_urgent;
	EXPECT(ron_shared_release(&route, (struct ron_shared_policy){0}));
	for (uint32_t slot = 0; slot < ron_shared_slots(); slot++) {
		if (atomic_load(&ron_shared_slot(array, slot)->lock) !=
		    ron_shared_of(&route, RON_SHARED_GRANTED))
			continue;
		ron_shared_leave(array, slot, next_is_urgent);
		return slot / ron_shared_each();
	}
	return CPUS;
}

static void ron_serves_urgent_waiters_next(void)
{
	script_clear();
	script_cpus = CPUS;
	script_position = 0;
	EXPECT(ron_shared_try_acquire(&route));
	for (uint32_t position = 1; position < 4; position++)
		(void)ron_come(position, false);
	(void)ron_come(5, true);
	(void)ron_come(6, true);
	EXPECT(ron_next(false, true) == 5, "an urgent waiter is served ahead of the tour");
	EXPECT(ron_next(true, false) == 1, "after an urgent holder the tour goes on");
	EXPECT(ron_next(false, true) == 6);
	EXPECT(ron_next(true, false) == 2);
	EXPECT(ron_next(false, false) == 3);
	EXPECT(ron_next(false, false) == CPUS, "the lock is free");
}

/* Without others, urgent waiters are served by the tour. */
static void ron_tours_urgent_waiters(void)
{
	script_clear();
	script_position = 3;
	EXPECT(ron_shared_try_acquire(&route));
	for (uint32_t position = 0; position < CPUS; position += 2)
		(void)ron_come(position, true);
	for (uint32_t turn = 0; turn < CPUS / 2; turn++)
		EXPECT(ron_next(true, true) == (4 + 2 * turn) % CPUS);
	EXPECT(ron_next(true, true) == CPUS);
	for (uint32_t word = 0; word < ron_shared_sets() * ron_shared_words(); word++)
		EXPECT(!atomic_load(ron_shared_marks(ron_shared_array(), word)), "a mark was left");
}

int main(void)
{
	RUN(cna_never_defers_urgent_waiters);
	RUN(cna_defers_for_the_threshold);
	RUN(shuffling_never_passes_urgent_waiters);
	RUN(shuffling_passes_for_the_threshold);
	RUN(ron_serves_urgent_waiters_next);
	RUN(ron_tours_urgent_waiters);
	return 0;
}
