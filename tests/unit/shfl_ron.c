/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shfl_ron.h in user space: a thread that holds two locks through their gates, and can remember
 * only one of them, leaves the place of the other one at its gate.
 */
#include "shfl_ron.h"

#include "unit.h"

static const struct shfl_mutex_policy policy = {.wait = WAIT_PARK, .patience = 4};

/* In two cache lines with the same hint. */
static struct {
	struct shfl_ron lock;
	_Alignas(W_HINT_LINE) char others[(W_HINTS - 1) * W_HINT_LINE];
} pair[2] __attribute__((aligned(W_HINT_LINE)));

/* Takes @lock through a gate. Its place is not left there. */
static struct gate *take(struct shfl_ron *lock)
{
	struct gate *gate = shfl_ron_open(lock);
	bool handed = true;

	EXPECT(gate, "no gate");
	shfl_ron_turn(lock, gate, true);
	EXPECT(shfl_ron_enter(lock, gate, policy, &handed) != TOUR_NOBODY && !handed);
	gate->lock.tour.at = TOUR_NOBODY;
	return gate;
}

/* As take(), and remembers @place. */
static struct gate *take_at(struct shfl_ron *lock, uint32_t place)
{
	struct gate *gate = take(lock);

	shfl_ron_remember(lock, gate, place);
	return gate;
}

static void replaces_what_it_remembers(void)
{
	struct shfl_ron *outer = &pair[0].lock, *inner = &pair[1].lock;
	struct gate *gates[2];

	(void)w_self();
	EXPECT(w_hint_index(outer) == w_hint_index(inner));
	gates[0] = take_at(outer, 3);
	EXPECT(w_remembers(outer) && gates[0]->lock.tour.at == TOUR_NOBODY);
	gates[1] = take_at(inner, 5);
	EXPECT(w_remembers(inner) && gates[1]->lock.tour.at == TOUR_NOBODY);
	EXPECT(gates[0]->lock.tour.at == 3, "%u", gates[0]->lock.tour.at);
	EXPECT(shfl_ron_release(inner, (struct shfl_ron_policy){.wait = WAIT_PARK}));
	EXPECT(gates[1]->lock.tour.at == 5, "%u", gates[1]->lock.tour.at);
	EXPECT(shfl_ron_release(outer, (struct shfl_ron_policy){.wait = WAIT_PARK}));
	EXPECT(!gate_own(gates[0])->holds && !gate_own(gates[1])->holds);
	shfl_ron_destroy(outer);
	shfl_ron_destroy(inner);
}

/* A released lock that is still remembered leaves nothing: its gate may be another thread's. */
static void forgets_a_released_lock(void)
{
	struct shfl_ron *first = &pair[0].lock, *second = &pair[1].lock;
	struct gate *gate = take_at(first, 3);

	EXPECT(shfl_ron_release(first, (struct shfl_ron_policy){.wait = WAIT_PARK}));
	gate->lock.tour.at = TOUR_NOBODY;
	(void)take_at(second, 5);
	EXPECT(gate->lock.tour.at == TOUR_NOBODY, "%u", gate->lock.tour.at);
	EXPECT(shfl_ron_release(second, (struct shfl_ron_policy){.wait = WAIT_PARK}));
	shfl_ron_destroy(first);
	shfl_ron_destroy(second);
}

/* A guest has no record in which it could remember anything. */
static void leaves_the_place_of_a_guest(void)
{
	struct shfl_ron *lock = &pair[0].lock;
	struct gate *gate = take(lock);
	struct w_self *const self = w_self_or_null;

	w_self_or_null = NULL;
	w_own.hints = 0;
	shfl_ron_remember(lock, gate, 3);
	EXPECT(gate->lock.tour.at == 3, "%u", gate->lock.tour.at);
	w_self_or_null = self;
	EXPECT(shfl_ron_release(lock, (struct shfl_ron_policy){.wait = WAIT_PARK}));
	EXPECT(!gate_own(gate)->holds);
	shfl_ron_destroy(lock);
}

int main(void)
{
	RUN(replaces_what_it_remembers);
	RUN(forgets_a_released_lock);
	RUN(leaves_the_place_of_a_guest);
	return 0;
}
