/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shfl_ron.h in user space: a thread that holds two locks through their gates, and can remember
 * only one of them, leaves the place of the other one at its gate. A thread whose streak is over
 * leaves the lock to the head of the queue. A newcomer races if it is usually away for long. A head
 * is patient where turns are long, unless many wait.
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
	shfl_ron_turn(lock, gate, SHFL_RON_AT_GATE);
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

/* Takes the lock @times in a row, as far as that is possible, while @waiter waits. */
static uint32_t take_in_a_row(struct shfl_ron *lock, struct shfl_node *waiter, uint32_t times)
{
	uint32_t taken = 0;

	while (taken < times && shfl_ron_try_acquire(lock)) {
		/* relaxed: there is one thread */
		w_store_relaxed(&lock->mutex.tail, waiter);
		EXPECT(shfl_ron_release(lock, (struct shfl_ron_policy){.wait = WAIT_PARK}));
		taken++;
	}
	return taken;
}

static void initialise(struct shfl_ron *lock)
{
	memset((void *)lock, 0, sizeof(*lock));
	/* relaxed: there is one thread */
	w_store_relaxed(&lock->mutex.generation, 2 * w_fork_generation());
}

static void streak_ends_while_others_wait(void)
{
	const uint32_t many = 2 * STREAK_LOOK + STREAK_IDLE;
	struct shfl_node waiter = {.next = NULL};
	struct shfl_ron lock;

	initialise(&lock);
	w_streak_begin();
	EXPECT(take_in_a_row(&lock, NULL, many) == many, "nobody waits");
	EXPECT(!atomic_load(&w_self()->streak_since));
	w_streak_begin();
	EXPECT(take_in_a_row(&lock, &waiter, STREAK_LOOK) == STREAK_LOOK, "at the first look");
	atomic_fetch_sub(&w_self()->streak_since, STREAK_NANOSECONDS);
	EXPECT(take_in_a_row(&lock, &waiter, many) == STREAK_LOOK, "at the second look");
	/* relaxed: there is one thread */
	EXPECT(w_load_relaxed(&lock.mutex.state) == SHFL_MUTEX_CLOSED);
}

/* A look closes only a lock that is held, and for which waiters do not go to the gate. */
static void streak_ends_by_state(void)
{
	for (uint32_t state = 0; state <= (SHFL_MUTEX_LOCKED | SHFL_RON_GATE); state++) {
		const bool closes = state & SHFL_MUTEX_LOCKED && !(state & SHFL_RON_GATE);
		struct shfl_node waiter = {.next = NULL};
		struct shfl_ron lock;
		uint32_t after;

		initialise(&lock);
		/* relaxed, all: there is one thread */
		w_store_relaxed(&lock.mutex.tail, &waiter);
		w_store_relaxed(&lock.mutex.state, state);
		w_streak_begin();
		atomic_store(&w_self()->streak_since, w_now() - STREAK_NANOSECONDS);
		EXPECT(shfl_ron_look(&lock) == closes, "state %u", state);
		after = w_load_relaxed(&lock.mutex.state);
		EXPECT(after == (closes ? state | SHFL_MUTEX_CLOSED : state), "state %u", state);
	}
}

/* In long turns, a streak as long as the longest elsewhere goes on. */
static void streak_is_longer_in_long_turns(void)
{
	struct shfl_node waiter = {.next = NULL};
	struct shfl_ron lock;
	uint64_t before;

	initialise(&lock);
	EXPECT(shfl_ron_try_acquire(&lock));
	shfl_ron_turn(&lock, shfl_ron_open(&lock), SHFL_RON_LONG_TURNS);
	/* relaxed, both: there is one thread */
	w_store_relaxed(&lock.mutex.tail, &waiter);
	do {
		w_store_relaxed(&lock.mutex.state, SHFL_MUTEX_LOCKED);
		w_streak_begin();
		before = w_now();
		atomic_store(&w_self()->streak_since, before - STREAK_NANOSECONDS);
		EXPECT(shfl_ron_look(&lock));
	} while (w_now() - before >= (STREAK_LONG_TURN - 1) * STREAK_NANOSECONDS);
	/* relaxed: there is one thread */
	EXPECT(w_load_relaxed(&lock.mutex.state) == SHFL_MUTEX_LOCKED);
	shfl_ron_destroy(&lock);
}

static struct shfl_ron yielding;
static uint32_t yields;

void __wrap_w_sched_yield(void);
void __wrap_w_sched_yield(void)
{
	yields++;
	/* relaxed: there is one thread */
	EXPECT(!w_load_relaxed(&yielding.mutex.state), "after the release, and nobody is to wait");
}

/* How often a thread with a long pace yields at its first look. */
static uint32_t yields_while(struct shfl_node *waiter)
{
	yields = 0;
	initialise(&yielding);
	atomic_store(&w_self()->pace, STREAK_LONG_NANOSECONDS);
	w_streak_begin();
	EXPECT(take_in_a_row(&yielding, waiter, STREAK_LONG_LOOK) == STREAK_LONG_LOOK);
	return yields;
}

static void yields_at_a_long_pace(void)
{
	struct shfl_node waiter = {.next = NULL};

	EXPECT(!yields_while(NULL));
	EXPECT(yields_while(&waiter) == 1);
}

/* Whether a newcomer to a free lock, usually away for @pace, takes it in a race. */
static bool races(uint64_t pace, struct shfl_mutex_policy by)
{
	struct shfl_ron lock;

	initialise(&lock);
	atomic_store(&w_self()->pace, pace);
	atomic_store(&w_self()->pace_since, 0);
	return shfl_ron_race(&lock, by, NULL);
}

static void races_if_it_was_away(void)
{
	const struct shfl_mutex_policy by = {.wait = WAIT_PARK, .patience = 4, .spins = 1};
	const struct shfl_mutex_policy others[] = {
		{.wait = WAIT_YIELD, .patience = 4, .spins = 1},
		{.wait = WAIT_PARK, .spins = 1},
		{.wait = WAIT_PARK, .patience = 4},
	};

	EXPECT(!races(0, by), "its pace is not known");
	EXPECT(races(W_SPIN_NANOSECONDS, by));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		EXPECT(!races(W_SPIN_NANOSECONDS, others[i]), "setting %zu", i);
}

static void runs_in_three_ways(void)
{
	struct shfl_ron lock;
	struct gate *gate;

	initialise(&lock);
	EXPECT(shfl_ron_try_acquire(&lock));
	gate = shfl_ron_open(&lock);
	for (uint32_t i = 0; i < TRIAL_WAYS * TRIAL_WAYS; i++) {
		const enum shfl_ron_way way = i * 2 % TRIAL_WAYS;

		shfl_ron_turn(&lock, gate, way);
		EXPECT(shfl_ron_way(gate) == way, "%u", way);
		EXPECT(shfl_ron_turns_are_long(gate) == (way == SHFL_RON_LONG_TURNS));
		EXPECT(!(atomic_load(&lock.mutex.state) & SHFL_RON_GATE) ==
		       (way != SHFL_RON_AT_GATE));
	}
	shfl_ron_turn(&lock, gate, SHFL_RON_LONG_TURNS);
	EXPECT(shfl_ron_release(&lock, (struct shfl_ron_policy){.wait = WAIT_PARK}));
	shfl_ron_destroy(&lock);
	EXPECT(shfl_ron_way(shfl_ron_open(&lock)) == SHFL_RON_SHORT_TURNS, "of the former lock");
	shfl_ron_destroy(&lock);
}

/* A thread that gave up where turns are long does not wait so for other locks. */
static void gives_up_in_a_long_turn(void)
{
	const struct shfl_ron_policy by = {.wait = WAIT_PARK, .patience = 4, .batch = 1};
	const struct w_deadline past = w_deadline_at(1);
	struct shfl_ron lock;

	initialise(&lock);
	EXPECT(shfl_ron_try_acquire(&lock));
	shfl_ron_turn(&lock, shfl_ron_open(&lock), SHFL_RON_LONG_TURNS);
	EXPECT(!shfl_ron_acquire(&lock, by, &past));
	EXPECT(!w_turns_are_long(), "it still waits");
	EXPECT(shfl_ron_release(&lock, by));
	shfl_ron_destroy(&lock);
}

/* The patience of a head with @waiters, itself among them, where turns are long. */
static uint64_t patience_with(uint32_t waiters)
{
	struct shfl_node nodes[SHFL_MUTEX_MANY] = {0};

	for (uint32_t i = 0; i + 1 < waiters; i++)
		atomic_store(&nodes[i].next, &nodes[i + 1]);
	w_streak_end(true);
	return shfl_mutex_patience(&nodes[0], policy);
}

static void is_patient_where_turns_are_long(void)
{
	struct shfl_node node = {0};

	script_own_cpu = true;
	for (uint32_t waiters = 1; waiters < SHFL_MUTEX_MANY; waiters++) {
		EXPECT(patience_with(waiters) == policy.patience * shfl_mutex_long_turn(waiters));
		EXPECT(w_turns_are_long());
	}
	EXPECT(shfl_mutex_long_turn(1) == 2 * SHFL_MUTEX_LONG_TURN, "one waiter is few");
	EXPECT(shfl_mutex_long_turn(SHFL_MUTEX_FEW) == SHFL_MUTEX_LONG_TURN / SHFL_MUTEX_FEW);
	EXPECT(patience_with(SHFL_MUTEX_MANY) == policy.patience);
	EXPECT(!w_turns_are_long(), "too many wait");
	EXPECT(shfl_mutex_patience(&node, policy) == policy.patience);
	script_own_cpu = false;
	EXPECT(patience_with(1) == policy.patience, "its CPU is shared");
	w_turns_shorten();
}

static void sits_out_a_long_turn(void)
{
	struct shfl_ron ron;
	struct shfl_mutex *const lock = &ron.mutex;
	uint32_t seen = 0;

	initialise(&ron);
	script_own_cpu = true;
	EXPECT(shfl_mutex_try_acquire(lock));
	EXPECT(!shfl_mutex_sits_out(lock, NULL, &seen), "turns are short");
	w_streak_end(true);
	EXPECT(shfl_mutex_sits_out(lock, NULL, &seen) && seen & SHFL_MUTEX_LOCKED);
	EXPECT(shfl_mutex_release(lock, policy));
	EXPECT(!shfl_mutex_sits_out(lock, NULL, &seen), "nobody has a turn");
	EXPECT(shfl_mutex_try_acquire(lock));
	script_own_cpu = false;
	EXPECT(!shfl_mutex_sits_out(lock, NULL, &seen), "its CPU is shared");
	EXPECT(shfl_mutex_release(lock, policy));
	w_turns_shorten();
}

static void does_not_race_where_turns_are_long(void)
{
	const struct shfl_mutex_policy by = {.wait = WAIT_PARK, .patience = 4, .spins = 1};
	struct shfl_ron ron;
	struct shfl_mutex *const lock = &ron.mutex;

	initialise(&ron);
	script_own_cpu = true;
	w_streak_end(true);
	EXPECT(!shfl_mutex_spin(lock, by, NULL));
	w_turns_shorten();
	EXPECT(shfl_mutex_spin(lock, by, NULL));
	EXPECT(shfl_mutex_release(lock, by));
	script_own_cpu = false;
}

int main(void)
{
	RUN(replaces_what_it_remembers);
	RUN(forgets_a_released_lock);
	RUN(leaves_the_place_of_a_guest);
	RUN(streak_ends_while_others_wait);
	RUN(streak_ends_by_state);
	RUN(streak_is_longer_in_long_turns);
	RUN(yields_at_a_long_pace);
	RUN(races_if_it_was_away);
	RUN(runs_in_three_ways);
	RUN(gives_up_in_a_long_turn);
	RUN(is_patient_where_turns_are_long);
	RUN(sits_out_a_long_turn);
	RUN(does_not_race_where_turns_are_long);
	return 0;
}
