/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Spinning, yielding and sleeping. Implemented by futex.c.
 */
#ifndef POUNDLOCK_WORLD_WAIT_H
#define POUNDLOCK_WORLD_WAIT_H

#include <time.h>

#include "place.h"
#include "thread.h"

/* An absolute time on CLOCK_REALTIME or CLOCK_MONOTONIC. */
struct w_deadline {
	clockid_t clock;
	struct timespec at;
};

static inline struct w_deadline w_deadline_at(uint64_t time)
{
	return (struct w_deadline){.clock = CLOCK_MONOTONIC,
				   .at = {.tv_sec = (time_t)(time / 1000000000),
					  .tv_nsec = (long)(time % 1000000000)}};
}

/* The pauses of a whole bounded spin, and how many threads may be in one (w_spinners_limit()). */
extern W_HIDDEN uint32_t w_spin_pauses;
extern W_HIDDEN uint32_t w_spinners_most;
/* The history that the thread which finished a spin last has, by kind. */
extern W_HIDDEN W_ATOMIC(struct w_spin_history) w_last_spin_history[W_SPIN_HISTORIES];
/* Sets both, by the number of CPUs of the process and the duration of a pause. */
W_HIDDEN void w_spin_calibrate(void);

W_HIDDEN bool w_expired_slow(const struct w_deadline *deadline);
/* Sleeps briefly, so that any other thread may run, whatever its priority. */
W_HIDDEN void w_yield(void);
/* Lets other runnable threads of the same priority run. */
W_HIDDEN void w_sched_yield(void);
/* Whether threads yield when they are away for long. Not once the process enters a sandbox. */
extern W_HIDDEN W_ATOMIC(bool) w_streaks_yield;
W_HIDDEN void w_park(W_ATOMIC(uint32_t) *p, uint32_t expected, const struct w_deadline *deadline);
W_HIDDEN void w_unpark(W_ATOMIC(uint32_t) *p);
W_HIDDEN void w_unpark_all(W_ATOMIC(uint32_t) *p);

static inline bool w_expired(const struct w_deadline *deadline)
{
	return deadline && w_expired_slow(deadline);
}

static inline void w_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb" ::: "memory");
#endif
}

#define W_OWN_LINE _Alignas(64)
#define w_prefetch(p) __builtin_prefetch((const void *)(p))

static inline void w_pause_for(uint32_t pauses)
{
	while (pauses--)
		w_pause();
}

/*
 * A pause while *@p, of @size bytes, is probably still @seen. On arm64, WFE sleeps until the line
 * moves, which clears the exclusive monitor that LDXR has set, or until the kernel's event stream
 * wakes it, after at most 0.1 ms.
 */
static inline void w_pause_on(const volatile void *p, size_t size, uint64_t seen)
{
#if defined(__aarch64__)
	uint64_t now;

	if (size == 8)
		__asm__ __volatile__("ldxr %0, [%1]" : "=r"(now) : "r"(p) : "memory");
	else
		__asm__ __volatile__("ldxr %w0, [%1]" : "=r"(now) : "r"(p) : "memory");
	if (now == seen)
		__asm__ __volatile__("wfe" ::: "memory");
#else
	(void)p, (void)size, (void)seen;
	w_pause();
#endif
}

/* The length of some @parts of a bounded spin, of W_SPIN_PARTS, in pauses. */
static inline uint32_t w_spin_part(uint32_t parts)
{
	return w_spin_pauses * parts / W_SPIN_PARTS + 1;
}

/* The length of the next bounded spin of @how, which adapts, in pauses. */
static inline uint32_t w_spin_pauses_now(enum w_how how)
{
	uint32_t kind = w_spin_kind(how);
	struct w_spin_history *history = &w_own.spin_history[kind];

	/* relaxed, here and below: a stale value costs a little time */
	if (w_unlikely(!(w_own.spin_histories & 1u << kind)))
		*history = atomic_load_explicit(&w_last_spin_history[kind], memory_order_relaxed);
	w_own.spin_histories |= (uint8_t)(1u << kind);
	return w_spin_part(w_spin_budget(history));
}

static inline void w_spin_note(enum w_how how, bool failed)
{
	uint32_t kind = w_spin_kind(how);

	w_spin_learn(&w_own.spin_history[kind], failed);
	atomic_store_explicit(&w_last_spin_history[kind], w_own.spin_history[kind],
			      memory_order_relaxed);
}

/*
 * A wait in progress: its remaining pauses, the length of the next one, the further rounds on an
 * own CPU, whether it is counted among the spinners, and the number of reads after its bounded
 * spin.
 */
struct w_spin {
	enum w_how how;
	uint32_t left;
	uint32_t next;
	uint32_t rounds;
	bool counted;
	uint32_t term;
	uint32_t turns;
};

/*
 * The count of spinners, in the bits below the number of a term. A thread that leaves a spin
 * without reaching its end (its signal handler jumps, or it is cancelled) remains counted. So if
 * there is no room, a new term occasionally begins with a count of 0, and a spin of an earlier term
 * ends without changing the count.
 */
#define W_TERM_SHIFT 16
#define W_SPINNERS ((1u << W_TERM_SHIFT) - 1)
#define W_REFUSALS 64 /* refusals per check of the time */

/* Begins a new term, after that of @spinners, if that began long ago. */
W_HIDDEN void w_spin_new_term(uint32_t spinners);

/* Counts the caller among the spinners of *@term. Returns false if there are enough. */
static inline bool w_spin_enter(uint32_t *term)
{
	/* relaxed, all here and below: a slightly wrong count costs a little time */
	uint32_t seen = atomic_load_explicit(&w_this_process.spinners, memory_order_relaxed);

	if ((seen & W_SPINNERS) < w_spinners_most) {
		seen = atomic_fetch_add_explicit(&w_this_process.spinners, 1, memory_order_relaxed);
		*term = seen >> W_TERM_SHIFT;
		return true;
	}
	if (w_unlikely(++w_own.refusals % W_REFUSALS == 0))
		w_spin_new_term(seen);
	return false;
}

static inline void w_spin_leave(uint32_t term)
{
	uint32_t seen = atomic_load_explicit(&w_this_process.spinners, memory_order_relaxed);

	while (seen >> W_TERM_SHIFT == term &&
	       !atomic_compare_exchange_weak_explicit(&w_this_process.spinners, &seen, seen - 1,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

/*
 * The thread that last waited on a CPU; NULL: none, or it has waited elsewhere since. CPUs with the
 * same seat seem shared.
 */
#define W_SEATS 1024
struct w_seat {
	_Alignas(64) W_ATOMIC(const struct w_self *) taken_by;
};
extern W_HIDDEN struct w_seat w_seats[W_SEATS];

/* Takes @seat, which was not the thread's, and leaves its former one. */
W_HIDDEN void w_take_seat(struct w_self *self, struct w_seat *seat);
/* Whether the thread is still assumed to share its CPU. */
W_HIDDEN bool w_shares_cpu(struct w_self *self);

/* Returns whether no other thread has waited on the caller's CPU recently. */
static inline bool w_has_own_cpu(void)
{
	struct w_seat *seat = &w_seats[w_cpu() % W_SEATS];
	struct w_self *self = w_self();

	/* relaxed, all, also in w_take_seat(): a stale value costs a little time */
	if (w_unlikely(atomic_load_explicit(&seat->taken_by, memory_order_relaxed) != self))
		w_take_seat(self, seat);
	return w_likely(!atomic_load_explicit(&self->sharing_until, memory_order_relaxed)) ||
	       !w_shares_cpu(self);
}

/* ---- The streak (../streak.h) ---- */

/* The thread's pace in nanoseconds; 0: unknown. None is long where threads do not yield. */
static inline uint64_t w_pace(const struct w_self *self)
{
	const uint64_t pace = atomic_load_explicit(&self->pace, memory_order_relaxed);

	if (!streak_is_long(pace) || atomic_load_explicit(&w_streaks_yield, memory_order_relaxed))
		return pace;
	return STREAK_LONG_NANOSECONDS - 1;
}

/* Since when it is measured; 0: it is not. */
static inline uint64_t w_pace_since(const struct w_self *self)
{
	return atomic_load_explicit(&self->pace_since, memory_order_relaxed);
}

/* Measures the pace from @now on; 0: no more. */
static inline void w_pace_begin(struct w_self *self, uint64_t now)
{
	atomic_store_explicit(&self->pace_since, now, memory_order_relaxed);
}

/* If the thread's pace is being measured, ends that @now. It has had @releases since then. */
static inline void w_pace_end(struct w_self *self, uint64_t now, uint32_t releases)
{
	const uint64_t since = w_pace_since(self);

	if (!since)
		return;
	atomic_store_explicit(&self->pace, streak_pace(w_pace(self), now - since, releases),
			      memory_order_relaxed);
	w_pace_begin(self, 0);
}

/* The thread has to wait, where turns are @long_turns. If its pace is being measured, ends that. */
static inline void w_streak_end(bool long_turns)
{
	struct w_self *self = w_self();

	w_own.long_turns = long_turns;
	if (w_unlikely(w_pace_since(self)))
		w_pace_end(self, w_now(), streak_first_look(w_pace(self)) - w_own.streak_left);
}

/* The thread had to wait. Counts its releases from now on, and sometimes measures its pace. */
static inline void w_streak_begin(void)
{
	struct w_self *self = w_self();
	const uint32_t waits = atomic_load_explicit(&self->waits, memory_order_relaxed);

	w_own.long_turns = false;
	w_own.streak_left = (uint16_t)streak_first_look(w_pace(self));
	atomic_store_explicit(&self->streak_since, 0, memory_order_relaxed);
	atomic_store_explicit(&self->waits, waits + 1, memory_order_relaxed);
	w_pace_begin(self, waits % STREAK_MEASURED == 0 ? w_now() : 0);
}

/* Whether the thread waits where turns are long. */
static inline bool w_turns_are_long(void)
{
	return w_own.long_turns;
}

/* From now on, they are short during this wait. */
static inline void w_turns_shorten(void)
{
	w_own.long_turns = false;
}

/* Counts a release. Returns whether it is time for a look. */
static inline bool w_streak_counts(void)
{
	return !--w_own.streak_left;
}

/* As w_streak_counts(), for a fast path: if it is time, the lock's own release looks. */
static inline bool w_streak_counts_first(void)
{
	if (w_likely(!w_streak_counts()))
		return false;
	w_own.streak_left = 1;
	return true;
}

/* At a look, of a thread that has had to wait. @long_turns: whether turns are. */
static inline bool w_self_streak_is_over(struct w_self *self, bool others_wait, bool long_turns)
{
	const uint64_t now = w_now();
	uint64_t since;
	bool over;

	w_pace_end(self, now, streak_first_look(w_pace(self)));
	w_own.streak_left = (uint16_t)streak_next_look(w_pace(self), others_wait);
	w_pace_begin(self, streak_is_long(w_pace(self)) ? now : 0);
	since = atomic_load_explicit(&self->streak_since, memory_order_relaxed);
	over = streak_is_over(&since, now, w_pace(self), others_wait, long_turns);
	atomic_store_explicit(&self->streak_since, since, memory_order_relaxed);
	return over;
}

/* At a look. A thread that never had to wait may have no record. */
static inline bool w_streak_is_over(bool others_wait, bool long_turns)
{
	if (w_self_or_null)
		return w_self_streak_is_over(w_self_or_null, others_wait, long_turns);
	w_own.streak_left = (uint16_t)streak_next_look(0, others_wait);
	return false;
}

/* After a release with a look that found others waiting: yields the CPU if the pace is long. */
static inline void w_streak_yield(void)
{
	struct w_self *self = w_self_or_null;

	if (!self || !streak_is_long(w_pace(self)))
		return;
	w_sched_yield();
	w_pace_begin(self, w_now());
}

/* Until when the thread races as a newcomer; 0: not at all. */
static inline uint64_t w_race_end(void)
{
	const uint64_t race = streak_race(w_pace(w_self()));

	return race ? w_now() + race : 0;
}

/* ---- Bounded spins ---- */

static inline struct w_spin w_spin_begin(enum w_how how)
{
	struct w_spin spin = {.how = how, .left = 0, .next = 1};

	if (!w_how_spins(how))
		return spin;
	spin.rounds = w_spin_rounds(how, w_spinners_most);
	if (spin.rounds && w_has_own_cpu()) {
		spin.left = w_spin_pauses;
		return spin;
	}
	spin.rounds = 0;
	if (!w_spin_enter(&spin.term))
		return spin;
	spin.left = w_spin_adapts(how) ? w_spin_pauses_now(how) : w_spin_part(w_spin_parts(how));
	/* A thread without a record has never counted releases. */
	spin.next =
		streak_first_pauses(how, w_self_or_null ? w_pace(w_self_or_null) : 0, spin.left);
	spin.counted = true;
	return spin;
}

static inline void w_spin_end(struct w_spin *spin, bool failed)
{
	if (spin->counted) {
		w_spin_leave(spin->term);
		if (w_spin_adapts(spin->how))
			w_spin_note(spin->how, failed);
	}
	spin->counted = false;
	spin->left = 0;
}

static inline void w_go_on(struct w_spin *spin, enum w_how how, const volatile void *p, size_t size,
			   uint64_t seen)
{
	switch (w_spin_next(how, ++spin->turns)) {
	case W_NEXT_PAUSE:
		w_pause_on(p, size, seen);
		break;
	case W_NEXT_SCHED_YIELD:
		w_sched_yield();
		break;
	case W_NEXT_SLEEP:
		w_yield();
		break;
	}
}

/* After a read of *@p returned @seen, which did not end the wait: returns whether to read again. */
static inline bool w_read_again(struct w_spin *spin, enum w_how how,
				const struct w_deadline *deadline, const volatile void *p,
				size_t size, uint64_t seen)
{
	if (spin->left) {
		w_pause_for(spin->next);
		spin->left -= spin->next < spin->left ? spin->next : spin->left;
		spin->next = w_spin_longer(how, spin->next);
		return true;
	}
	if (spin->rounds && --spin->rounds && w_has_own_cpu()) {
		spin->left = w_spin_pauses;
		return !w_expired(deadline);
	}
	w_spin_end(spin, true);
	if (w_how_returns(how))
		return false;
	w_go_on(spin, how, p, size, seen);
	return !w_expired(deadline);
}

#define w_wait_acquire(p, COND, how, deadline)                                              \
	({                                                                                  \
		__auto_type w_p_ = (p);                                                     \
		__typeof__(atomic_load_explicit(w_p_, memory_order_relaxed)) VAL =          \
			w_load_acquire(w_p_);                                               \
		if (!(COND)) {                                                              \
			struct w_spin w_spin_ = w_spin_begin(how);                          \
			while (w_read_again(&w_spin_, (how), (deadline), w_p_, sizeof(VAL), \
					    (uint64_t)VAL)) {                               \
				VAL = w_load_acquire(w_p_);                                 \
				if (COND)                                                   \
					break;                                              \
			}                                                                   \
			w_spin_end(&w_spin_, false);                                        \
		}                                                                           \
		VAL;                                                                        \
	})

#define w_await_acquire(p, COND) w_wait_acquire(p, COND, W_SPIN, NULL)

#endif
