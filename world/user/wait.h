/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Spinning, yielding and sleeping. Implemented by futex.c.
 */
#ifndef POUNDLOCK_WORLD_WAIT_H
#define POUNDLOCK_WORLD_WAIT_H

#include <time.h>

#include "how.h"
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
				   .at = {.tv_sec = (time_t)(time / 1000000000), .tv_nsec = (long)(time % 1000000000)}};
}

/*
 * The number of pauses in a bounded spin, and the number of threads that may be in one at a time:
 * one less than the process has CPUs. Further threads would only keep holders from running, so they
 * do not spin.
 */
extern W_HIDDEN uint32_t w_spin_pauses;
extern W_HIDDEN uint32_t w_spinners_most;
/* The history that the thread which finished a spin last has, by kind. */
extern W_HIDDEN W_ATOMIC(struct w_spin_history) w_last_spin_history[W_SPIN_KINDS];
/* Sets both, by the number of CPUs of the process and the duration of a pause. */
W_HIDDEN void w_spin_calibrate(void);

W_HIDDEN bool w_expired_slow(const struct w_deadline *deadline);
/* Sleeps briefly, so that any other thread may run, whatever its priority. */
W_HIDDEN void w_yield(void);
/* Lets other runnable threads of the same priority run. */
W_HIDDEN void w_sched_yield(void);
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

/*
 * The length of the next bounded spin of kind @how, in pauses.
 *
 * A failed spin costs as much time as sleeping at once, and keeps a CPU from threads that have work
 * to do. So each failed polite spin, or spin in a queue, shortens the thread's next ones of its
 * kind by 1/16; a success restores half of the loss, so that spins which succeed occasionally stay
 * long. One in W_SPINS_WHOLE has full length whatever the history, since a short spin cannot tell
 * what a long one would have seen; the spins after it confirm or lose what it restores. It is rare
 * because it costs most where it never succeeds: where holders give up the CPU, as in stress-ng's
 * mutex stressor. A thread starts with the history of another one, because many threads do not live
 * long enough to learn: those of stress-ng's pthread stressor spin once or twice. Spins of other
 * kinds always have full length; their locks depend on it.
 */
#define W_SPIN_PARTS 16
#define W_SPINS_WHOLE 256

static inline bool w_learns(enum w_how how)
{
	return how >= W_POLITE;
}

static inline uint32_t w_spin_pauses_now(enum w_how how)
{
	uint32_t kind = how - W_POLITE, lost;
	struct w_spin_history *history = &w_own.spin_history[kind];

	/* relaxed, here and below: a stale value costs a little time */
	if (w_unlikely(!w_own.has_spin_history[kind]))
		*history = atomic_load_explicit(&w_last_spin_history[kind], memory_order_relaxed);
	w_own.has_spin_history[kind] = true;
	lost = ++history->spins % W_SPINS_WHOLE ? history->parts_lost : 0;
	return w_spin_pauses * (W_SPIN_PARTS - lost) / W_SPIN_PARTS + 1;
}

static inline void w_spin_note(enum w_how how, bool failed)
{
	uint32_t kind = how - W_POLITE;
	struct w_spin_history *history = &w_own.spin_history[kind];

	if (!failed)
		history->parts_lost /= 2;
	else if (history->parts_lost < W_SPIN_PARTS)
		history->parts_lost++;
	atomic_store_explicit(&w_last_spin_history[kind], *history, memory_order_relaxed);
}

/*
 * A wait in progress: its remaining pauses, the length of the next one, whether it is counted among
 * the spinners, and the number of reads after its bounded spin.
 */
struct w_spin {
	enum w_how how;
	uint32_t left;
	uint32_t next;
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
	       !atomic_compare_exchange_weak_explicit(&w_this_process.spinners, &seen, seen - 1, memory_order_relaxed,
						      memory_order_relaxed))
		;
}

static inline struct w_spin w_spin_begin(enum w_how how)
{
	struct w_spin spin = {.how = how, .left = 0, .next = 1};

	if (how == W_SPIN || !w_spin_enter(&spin.term))
		return spin;
	spin.left = w_learns(how) ? w_spin_pauses_now(how) : w_spin_pauses;
	spin.counted = true;
	return spin;
}

static inline void w_spin_end(struct w_spin *spin, bool failed)
{
	if (spin->counted) {
		w_spin_leave(spin->term);
		if (w_learns(spin->how))
			w_spin_note(spin->how, failed);
	}
	spin->counted = false;
	spin->left = 0;
}

/*
 * A real-time thread that spins, or calls sched_yield(), keeps its CPU from all threads of lower
 * priority. If it waits for such a thread, which was preempted on that CPU, it waits indefinitely.
 * So each wait sleeps from time to time: a spinning one after W_SPIN_ROW pauses, which take
 * milliseconds; a yielding one after W_YIELD_ROW yields, and then each time.
 */
#ifdef __aarch64__
#define W_SPIN_ROW (1u << 10) /* pauses that may each last until the kernel's next event */
#else
#define W_SPIN_ROW (1u << 16)
#endif
#define W_YIELD_ROW (1u << 10)

static inline void w_go_on(struct w_spin *spin, enum w_how how, const volatile void *p, size_t size, uint64_t seen)
{
	spin->turns++;
	if (how == W_SPIN && spin->turns % W_SPIN_ROW)
		w_pause_on(p, size, seen);
	else if (how == W_TURN && spin->turns < W_YIELD_ROW)
		w_sched_yield();
	else
		w_yield();
}

/* After a read of *@p returned @seen, which did not end the wait: returns whether to read again. */
static inline bool w_read_again(struct w_spin *spin, enum w_how how, const struct w_deadline *deadline,
				const volatile void *p, size_t size, uint64_t seen)
{
	if (spin->left) {
		w_pause_for(spin->next);
		spin->left -= spin->next < spin->left ? spin->next : spin->left;
		if (how == W_POLITE)
			spin->next += spin->next / 2 + 1;
		return true;
	}
	w_spin_end(spin, true);
	if (how >= W_BRIEF)
		return false;
	w_go_on(spin, how, p, size, seen);
	return !w_expired(deadline);
}

#define w_wait_acquire(p, COND, how, deadline)                                                                \
	({                                                                                                    \
		__auto_type w_p_ = (p);                                                                       \
		__typeof__(atomic_load_explicit(w_p_, memory_order_relaxed)) VAL = w_load_acquire(w_p_);      \
		if (!(COND)) {                                                                                \
			struct w_spin w_spin_ = w_spin_begin(how);                                            \
			while (w_read_again(&w_spin_, (how), (deadline), w_p_, sizeof(VAL), (uint64_t)VAL)) { \
				VAL = w_load_acquire(w_p_);                                                   \
				if (COND)                                                                     \
					break;                                                                \
			}                                                                                     \
			w_spin_end(&w_spin_, false);                                                          \
		}                                                                                             \
		VAL;                                                                                          \
	})

#define w_await_acquire(p, COND) w_wait_acquire(p, COND, W_SPIN, NULL)

#endif
