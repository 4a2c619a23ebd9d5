/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The world of the simulator: every operation takes the time of its cache line's transfer on the
 * simulated machine (docs/simulator.md). world/README.md is the contract. Plain accesses reach the
 * engine through the compiler's -fsanitize=thread.
 *
 * The machine is sequentially consistent except for its store buffers, as x86 is: memory orders do
 * nothing here. Threads wait by the rules of world/spin.h.
 */
#ifndef POUNDLOCK_WORLD_SIM_H
#define POUNDLOCK_WORLD_SIM_H

#include "../sizes.h"
#include "../spin.h"
#include "../streak.h"
#include "engine.h"
#include "hint.h"

#define w_likely(x) __builtin_expect(!!(x), 1)
#define w_unlikely(x) __builtin_expect(!!(x), 0)
#define W_SLOW __attribute__((noinline, cold, unused))

/* ---- Objects ---- */

#define W_ATOMIC(T) __typeof__(T)
#define W_TAIL(T) W_ATOMIC(T *)
#define W_SHORT uint32_t

#define w_init(p, v) ((void)(*(p) = (v)))
#define SIM_LOAD(p)                                         \
	({                                                  \
		__auto_type p_ = (p);                       \
		(__typeof__(*p_))sim_load(p_, sizeof(*p_)); \
	})
#define SIM_STORE(p, v)                                    \
	({                                                 \
		__auto_type p_ = (p);                      \
		sim_store(p_, sizeof(*p_), (uint64_t)(v)); \
	})
/* The old value, of the object's type. */
#define SIM_UPDATE(operation, p, v)                                         \
	({                                                                  \
		__auto_type p_ = (p);                                       \
		(__typeof__(*p_))operation(p_, sizeof(*p_), (uint64_t)(v)); \
	})
#define SIM_CAS(p, old, new)                                                         \
	({                                                                           \
		__auto_type p_ = (p);                                                \
		__auto_type old_ = (old);                                            \
		__typeof__(*old_) expected_ = *old_;                                 \
		__typeof__(*old_) seen_ =                                            \
			(__typeof__(*old_))sim_compare_exchange(p_, sizeof(*p_),     \
								(uint64_t)expected_, \
								(uint64_t)(new));    \
		bool done_ = seen_ == expected_;                                     \
		*old_ = seen_;                                                       \
		done_;                                                               \
	})

#define w_load_relaxed(p) SIM_LOAD(p)
#define w_load_acquire(p) SIM_LOAD(p)
#define w_store_relaxed(p, v) SIM_STORE(p, v)
#define w_store_release(p, v) SIM_STORE(p, v)
#define w_exchange_relaxed(p, v) SIM_UPDATE(sim_exchange, p, v)
#define w_exchange_acquire(p, v) SIM_UPDATE(sim_exchange, p, v)
#define w_exchange_release(p, v) SIM_UPDATE(sim_exchange, p, v)
#define w_exchange_acq_rel(p, v) SIM_UPDATE(sim_exchange, p, v)
#define w_compare_exchange_relaxed(p, old, new) SIM_CAS(p, old, new)
#define w_compare_exchange_acquire(p, old, new) SIM_CAS(p, old, new)
#define w_compare_exchange_release(p, old, new) SIM_CAS(p, old, new)
#define w_compare_exchange_acq_rel(p, old, new) SIM_CAS(p, old, new)
#define w_fetch_add_relaxed(p, v) SIM_UPDATE(sim_fetch_add, p, v)
#define w_fetch_add_acquire(p, v) SIM_UPDATE(sim_fetch_add, p, v)
#define w_fetch_add_release(p, v) SIM_UPDATE(sim_fetch_add, p, v)
#define w_fetch_add_acq_rel(p, v) SIM_UPDATE(sim_fetch_add, p, v)
#define w_fetch_or_relaxed(p, v) SIM_UPDATE(sim_fetch_or, p, v)
#define w_fetch_or_acquire(p, v) SIM_UPDATE(sim_fetch_or, p, v)
#define w_fetch_or_release(p, v) SIM_UPDATE(sim_fetch_or, p, v)
#define w_fetch_or_acq_rel(p, v) SIM_UPDATE(sim_fetch_or, p, v)
#define w_fetch_and_relaxed(p, v) SIM_UPDATE(sim_fetch_and, p, v)
#define w_fetch_and_acquire(p, v) SIM_UPDATE(sim_fetch_and, p, v)
#define w_fetch_and_release(p, v) SIM_UPDATE(sim_fetch_and, p, v)
#define w_fetch_and_acq_rel(p, v) SIM_UPDATE(sim_fetch_and, p, v)
#define w_fence_seq_cst() sim_fence()

/* ---- Waiting ---- */

/* An absolute time of w_now(). */
struct w_deadline {
	uint64_t at;
};

static inline uint64_t sim_deadline(const struct w_deadline *deadline)
{
	return deadline ? deadline->at : UINT64_MAX;
}

static inline struct w_deadline w_deadline_at(uint64_t time)
{
	return (struct w_deadline){.at = time};
}

static inline bool w_expired(const struct w_deadline *deadline)
{
	return deadline && sim_now() >= deadline->at;
}

#define w_wait_acquire(p, COND, how, deadline)                           \
	({                                                               \
		__auto_type w_p_ = (p);                                  \
		__typeof__(*w_p_) VAL = SIM_LOAD(w_p_);                  \
		if (!(COND)) {                                           \
			sim_wait_begin(how, w_self()->pace);             \
			while (sim_wait_again(sim_deadline(deadline))) { \
				VAL = SIM_LOAD(w_p_);                    \
				if (COND)                                \
					break;                           \
			}                                                \
			sim_wait_end();                                  \
		}                                                        \
		VAL;                                                     \
	})
#define w_await_acquire(p, COND) w_wait_acquire(p, COND, W_SPIN, NULL)
#define w_has_own_cpu() sim_has_own_cpu()

#define W_OWN_LINE _Alignas(64)
#define w_prefetch(p) sim_prefetch((const void *)(p))
#define w_pause_for(pauses) sim_pause(pauses)
#define w_yield() sim_yield()

static inline void w_park(W_ATOMIC(uint32_t) *p, uint32_t expected,
			  const struct w_deadline *deadline)
{
	sim_park(p, expected, sim_deadline(deadline));
}

#define w_unpark(p) sim_unpark(p, false)
#define w_unpark_all(p) sim_unpark(p, true)

/* ---- The thread's record ---- */

enum w_event {
#define EVENT(name, meaning) W_EVENT_##name,
#include "events.def"
#undef EVENT
	W_EVENTS
};

#define w_event(name) sim_event(W_EVENT_##name)

struct w_node {
	_Alignas(64) W_ATOMIC(uint32_t) status;
	char rest[60];
};

struct w_account {
	const void *lock;
	uint64_t held, until, since;
	uint32_t recent;
	uint32_t used;
};

/* As many as world/user has in a page. */
#define SIM_MORE_NODES 63

/* The layout of world/user, since access to it is part of a lock's cost. */
struct sim_self {
	struct w_node nodes[W_NODES];
	uint32_t random;
	uint32_t account_uses;
	uint32_t weight;
	uint32_t group;
	uint64_t unique; /* the last number drawn from the thread's range */
	const void *hint_locks[W_HINTS];
	uint32_t hint_notes[W_HINTS];
	uint32_t streak_left;
	bool long_turns;
	uint32_t waits;
	uint64_t streak_since;
	uint64_t pace_since;
	uint64_t pace;
	struct w_account accounts[W_ACCOUNTS];
	struct sim_more_nodes *more;
};

/* Further nodes of a thread, made when all others are taken. */
struct sim_more_nodes {
	struct sim_more_nodes *next;
	struct w_node nodes[SIM_MORE_NODES];
};

static inline struct sim_self *w_self(void)
{
	return sim_self();
}

static inline uint32_t w_self_id(void)
{
	return sim_number() + 1;
}

static inline struct w_node *sim_free_node(struct w_node *nodes, int count)
{
	for (int i = 0; i < count; i++)
		if (!w_load_acquire(&nodes[i].status))
			return &nodes[i];
	return NULL;
}

/* A waiter that leaves a queue leaves its node to another thread, which may free it much later. */
static W_SLOW void *sim_node_get_slow(struct sim_self *self)
{
	struct sim_more_nodes *more = self->more;
	struct w_node *node = NULL;

	for (; !node && more; more = more->next)
		node = sim_free_node(more->nodes, SIM_MORE_NODES);
	if (node)
		return node;
	more = sim_keep(sizeof(*more));
	more->next = self->more;
	self->more = more;
	return &more->nodes[0];
}

static inline void *w_node_get(void)
{
	struct sim_self *self = w_self();
	struct w_node *node = sim_free_node(self->nodes, W_NODES);

	return w_likely(node) ? node : sim_node_get_slow(self);
}

#define w_node_choose() w_node_get()
#define w_node_settle(node) ((void)(node))
#define w_waiter_node(on_stack, may_leave) ((may_leave) ? w_node_get() : (void *)(on_stack))

static inline uint32_t w_random(void)
{
	struct sim_self *self = w_self();
	uint32_t x = self->random;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return self->random = x;
}

static inline const void *w_hint_lock(const void *lock)
{
	return w_self()->hint_locks[w_hint_index(lock)];
}

static inline bool w_remembers(const void *lock)
{
	return w_hint_lock(lock) == lock;
}

static inline uint32_t w_note(const void *lock)
{
	return w_self()->hint_notes[w_hint_index(lock)];
}

static inline void w_note_set(const void *lock, uint32_t note)
{
	w_self()->hint_notes[w_hint_index(lock)] = note;
}

static inline bool w_remember(const void *lock, uint32_t note)
{
	w_self()->hint_locks[w_hint_index(lock)] = lock;
	w_note_set(lock, note);
	return true;
}

static inline void w_forget(const void *lock)
{
	if (w_remembers(lock))
		w_self()->hint_locks[w_hint_index(lock)] = NULL;
}

static W_SLOW struct w_account *sim_account_open(struct sim_self *self, const void *lock)
{
	struct w_account *account = &self->accounts[0];

	for (int i = 1; i < W_ACCOUNTS; i++)
		if (self->accounts[i].used < account->used)
			account = &self->accounts[i];
	*account = (struct w_account){.lock = lock, .used = ++self->account_uses};
	return account;
}

static inline struct w_account *w_account(const void *lock)
{
	struct sim_self *self = w_self();

	for (int i = 0; i < W_ACCOUNTS; i++) {
		if (self->accounts[i].lock == lock) {
			self->accounts[i].used = ++self->account_uses;
			return &self->accounts[i];
		}
	}
	return sim_account_open(self, lock);
}

/* The weight of each group; constant after the threads start. */
extern uint32_t sim_group_weights[W_GROUPS];

#define w_weight() (w_self()->weight)
#define w_group() (w_self()->group)
#define w_group_weight(group) (sim_group_weights[group])

/* Simulated programs have no policy of their own. */
#define w_own_policy_note(number, lock) ((void)(number), (void)(lock), 0u)
#define w_own_policy_rank(number, shuffler, waiter) \
	((void)(number), (void)(shuffler), (void)(waiter), UINT32_MAX)

/* ---- Place and time ---- */

#define w_cpu() sim_cpu()
#define w_domain() ((int32_t)sim_domain())
#define w_route_position() sim_route_position()
#define w_domain_at(position) ((int32_t)sim_domain_at(position))
#define w_cpu_count() sim_cpu_count()
#define W_CONTEXTS 1u
/* No waiter is urgent, and bounds on bypassing are counts. */
#define W_URGENCY 0
#define w_urgent() false
#define W_THRESHOLD 0u
#define w_domain_count() sim_domain_count()
#define W_LEVELS 2
#define w_domain_parents(level) ((void)(level), sim_domain_parents())
#define w_domain_parent(level, domain) ((void)(level), sim_domain_parent((uint32_t)(domain)))
#define w_now() sim_now()

static inline void sim_pace_end(struct sim_self *self, uint64_t now, uint32_t releases)
{
	if (!self->pace_since)
		return;
	self->pace = streak_pace(self->pace, now - self->pace_since, releases);
	self->pace_since = 0;
}

static inline void w_streak_end(bool long_turns)
{
	struct sim_self *self = w_self();

	self->long_turns = long_turns;
	if (self->pace_since)
		sim_pace_end(self, w_now(), streak_first_look(self->pace) - self->streak_left);
}

static inline void w_streak_begin(void)
{
	struct sim_self *self = w_self();

	self->long_turns = false;
	self->streak_left = streak_first_look(self->pace);
	self->streak_since = 0;
	self->pace_since = self->waits++ % STREAK_MEASURED == 0 ? w_now() : 0;
}

static inline bool w_turns_are_long(void)
{
	return w_self()->long_turns;
}

static inline void w_turns_shorten(void)
{
	w_self()->long_turns = false;
}

/* Takes no time: a core goes on while it counts in a line of its own. */
static inline __attribute__((no_sanitize("thread"))) bool w_streak_counts(void)
{
	return !--w_self()->streak_left;
}

static inline bool w_streak_is_over(bool others_wait, bool long_turns)
{
	struct sim_self *self = w_self();
	const uint64_t now = w_now();

	sim_pace_end(self, now, streak_first_look(self->pace));
	self->streak_left = streak_next_look(self->pace, others_wait);
	self->pace_since = streak_is_long(self->pace) ? now : 0;
	return streak_is_over(&self->streak_since, now, self->pace, others_wait, long_turns);
}

static inline void w_streak_yield(void)
{
	struct sim_self *self = w_self();

	if (!streak_is_long(self->pace))
		return;
	sim_sched_yield();
	self->pace_since = w_now();
}

static inline uint64_t w_race_end(void)
{
	const uint64_t race = streak_race(w_self()->pace);

	return race ? w_now() + race : 0;
}

/* There is one process, which never forks. */
#define w_fork_generation() 0u
#define w_process() 1u

struct w_visible {
	W_ATOMIC(uint64_t) bias;
	W_ATOMIC(uint32_t) reader;
	uint32_t depth;
};

#define w_visible(i) \
	(&((struct w_visible *)sim_block(SIM_VISIBLE, W_VISIBLE * sizeof(struct w_visible)))[i])
#define w_common(bytes) sim_block(SIM_COMMON, bytes)
#define w_gates(bytes) sim_block(SIM_GATES, bytes)
#define w_queue_node(i) \
	(&((struct w_node *)sim_block(SIM_QUEUE_NODES, W_QUEUE_NODES * sizeof(struct w_node)))[i])

/* BRAVO uses the lowest 41 bits. */
static inline uint64_t w_unique(void)
{
	return (uint64_t)w_self_id() << 32 | ++w_self()->unique;
}

static inline W_ATOMIC(uint32_t) *w_slot(uint64_t number)
{
	uint32_t *slots = sim_block(SIM_SLOTS, W_SLOTS * sizeof(*slots));

	return &slots[w_slot_index(number)];
}

#endif
