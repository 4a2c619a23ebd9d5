/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Bounded spins of world/user: a thread whose spins fail repeatedly spins for less, but sometimes
 * for the whole bound; one whose spins succeed does so again. Only polite spins, queue spins and
 * those for a signal learn, each separately; and a new thread inherits the history of another one.
 * A signal that reaches a waiter of a condition variable in its spin makes no system call.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>

#include "cond.h"
#include "unit.h"
#include "world.h"

static W_ATOMIC(uint32_t) word;

/* Waits for an event that never comes. */
static void failed_spin(enum w_how how)
{
	EXPECT(!w_wait_acquire(&word, VAL, how, NULL), "it came");
}

/* Waits for an event after the first read. */
static void successful_spin(void)
{
	unsigned looks = 0;

	(void)w_wait_acquire(&word, looks++, W_POLITE, NULL);
	EXPECT(looks == 2, "%u looks", looks);
}

static void one_read_is_no_spin(void)
{
	unsigned looks = 0;

	(void)w_wait_acquire(&word, looks++ > 1, W_ONCE, NULL);
	EXPECT(looks == 1, "%u looks", looks);
	EXPECT(!w_spin_begin(W_ONCE).counted);
}

/* How many of W_SPINS_WHOLE spins in a row use the whole bound. */
static unsigned whole_spins(enum w_how how)
{
	unsigned whole = 0;

	for (unsigned i = 0; i < W_SPINS_WHOLE; i++)
		whole += w_spin_pauses_now(how) >= w_spin_pauses;
	return whole;
}

static void failed_spins_shrink(void)
{
	EXPECT(whole_spins(W_POLITE) == W_SPINS_WHOLE, "a thread begins with whole spins");
	for (unsigned i = 0; i < 2 * W_SPIN_PARTS; i++)
		failed_spin(W_POLITE);
	EXPECT(whole_spins(W_POLITE) == 1, "after failed spins %u of %u are whole",
	       whole_spins(W_POLITE), W_SPINS_WHOLE);
	EXPECT(whole_spins(W_QUEUED) == W_SPINS_WHOLE, "others learn from them");
	for (unsigned i = 0; i < 2 * W_SPIN_PARTS; i++)
		failed_spin(W_QUEUED);
	EXPECT(whole_spins(W_QUEUED) == 1, "in a queue %u of %u are whole", whole_spins(W_QUEUED),
	       W_SPINS_WHOLE);
	EXPECT(whole_spins(W_SIGNAL) == W_SPINS_WHOLE, "those for a signal learn from both");
}

static void *count_whole_spins(void *whole)
{
	*(unsigned *)whole = whole_spins(W_POLITE);
	return NULL;
}

static void new_threads_know(void)
{
	unsigned whole = 0;
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, count_whole_spins, &whole),
	       "a thread cannot be made");
	EXPECT(!pthread_join(thread, NULL), "it cannot be joined");
	EXPECT(whole == 1, "of the first spins of a thread %u of %u are whole", whole,
	       W_SPINS_WHOLE);
}

static void successful_spins_grow(void)
{
	successful_spin();
	EXPECT(w_spin_pauses_now(W_POLITE) >= w_spin_pauses / 2,
	       "one that paid brings back half of what was lost");
	for (unsigned i = 0; i < W_SPIN_PARTS; i++)
		successful_spin();
	EXPECT(whole_spins(W_POLITE) == W_SPINS_WHOLE, "%u of %u are whole", whole_spins(W_POLITE),
	       W_SPINS_WHOLE);
}

static void other_spins_stay(void)
{
	for (unsigned i = 0; i < 2 * W_SPIN_PARTS; i++)
		failed_spin(W_BRIEF);
	EXPECT(whole_spins(W_POLITE) == W_SPINS_WHOLE, "%u of %u are whole", whole_spins(W_POLITE),
	       W_SPINS_WHOLE);
}

static struct w_seat *seat(void)
{
	return &w_seats[w_cpu() % W_SEATS];
}

/* The number of whole spins of a failed wait in a queue in order. */
static unsigned rounds(void)
{
	struct w_spin spin = w_spin_begin(W_ORDERED);
	unsigned pauses = 0;

	for (; w_read_again(&spin, W_ORDERED, NULL, &word, sizeof(word), 0); pauses++)
		EXPECT(!spin.counted || !spin.rounds, "an own CPU needs no permission to spin");
	return pauses / w_spin_pauses;
}

static void a_glance_is_a_short_spin(void)
{
	struct w_spin spin = w_spin_begin(W_GLANCE);
	uint32_t pauses = 0;

	for (; w_read_again(&spin, W_GLANCE, NULL, &word, sizeof(word), 0); pauses++)
		EXPECT(spin.next == 1, "it reads after each pause");
	EXPECT(pauses == w_spin_pauses * W_GLANCE_PARTS / W_SPIN_PARTS + 1, "%u pauses", pauses);
}

static void ordered_spins_on_an_own_cpu_are_repeated(void)
{
	static struct w_self other;

	w_self()->sharing_until = 0;
	EXPECT(rounds() == W_SPIN_ROUNDS * w_spinners_most, "%u rounds", rounds());
	atomic_store(&seat()->taken_by, &other);
	for (unsigned i = 0; i < 2 * W_SPIN_PARTS; i++)
		EXPECT(rounds() == 1, "on a CPU shared recently, each wait is one whole spin");
	w_self()->sharing_until = 1;
	EXPECT(rounds() == W_SPIN_ROUNDS * w_spinners_most, "%u rounds", rounds());
}

static void a_deadline_ends_an_ordered_spin(void)
{
	struct w_deadline past = w_deadline_at(0);
	struct w_spin spin = w_spin_begin(W_ORDERED);
	unsigned pauses = 0;

	while (w_read_again(&spin, W_ORDERED, &past, &word, sizeof(word), 0))
		pauses++;
	EXPECT(pauses <= w_spin_pauses, "%u pauses", pauses);
	w_spin_end(&spin, true);
}

static void a_thread_that_moves_leaves_its_seat(void)
{
	struct w_seat elsewhere = {NULL};

	w_take_seat(w_self(), &elsewhere);
	EXPECT(atomic_load(&elsewhere.taken_by) == w_self());
	w_self()->sharing_until = 0;
	atomic_store(&seat()->taken_by, NULL);
	w_take_seat(w_self(), seat());
	EXPECT(!atomic_load(&elsewhere.taken_by), "its former CPU seems shared");
	EXPECT(!w_self()->sharing_until, "its new CPU seems shared");
}

/* As a signal handler that jumps out of a wait. */
static void abandoned_spins_do_not_count_for_ever(void)
{
	struct w_spin abandoned = w_spin_begin(W_BRIEF), next = {.counted = false};
	uint64_t end = w_now() + UINT64_C(100000000000);

	EXPECT(abandoned.counted && !w_spin_begin(W_BRIEF).counted);
	while (!next.counted) {
		EXPECT(w_now() < end, "nobody may spin any more");
		next = w_spin_begin(W_BRIEF);
	}
	w_spin_end(&abandoned, true);
	EXPECT(atomic_load(&w_this_process.spinners) & W_SPINNERS,
	       "a spin of a former term has ended another one");
	w_spin_end(&next, true);
	EXPECT(!(atomic_load(&w_this_process.spinners) & W_SPINNERS));
}

static struct cond cond;

static void nothing(void *lock)
{
	(void)lock;
}

/* The waiter's sleeps, into *@sleeps. */
static void *wait_for_signal(void *sleeps)
{
	struct cond_lock lock = {.lock = &cond, .release = nothing, .acquire = nothing};
	uint64_t before = w_self()->events[W_EVENT_park];

	EXPECT(cond_wait(&cond, lock, NULL) == COND_SIGNALLED);
	*(uint64_t *)sleeps = w_self()->events[W_EVENT_park] - before;
	return NULL;
}

static void a_signal_to_a_spinning_waiter_makes_no_system_call(void)
{
	uint64_t sleeps, wakeups = w_self()->events[W_EVENT_unpark];
	uint32_t pauses = w_spin_pauses;
	pthread_t thread;

	w_spinners_most = 2; /* this thread may spin meanwhile, for the list of waiters */
	w_spin_pauses = UINT32_MAX / W_SPIN_PARTS; /* seconds, until the signal */
	w_listening = true;
	EXPECT(!pthread_create(&thread, NULL, wait_for_signal, &sleeps), "a thread cannot be made");
	while (!cond_signal(&cond))
		w_yield();
	EXPECT(!pthread_join(thread, NULL), "it cannot be joined");
	EXPECT(!sleeps, "it slept");
	EXPECT(w_self()->events[W_EVENT_unpark] == wakeups, "the signal woke it");
	w_spin_pauses = pauses;
	w_spinners_most = 1;
}

/* So that the CPU's seat remains the same. */
static void stay_on_one_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(w_cpu(), &one);
	EXPECT(!sched_setaffinity(0, sizeof(one), &one), "it cannot be bound to its CPU");
}

int main(void)
{
	w_spinners_most = 1; /* as on two CPUs: on one CPU, waiters do not spin */
	w_spin_pauses = W_SPIN_PARTS * 4;
	RUN(one_read_is_no_spin);
	RUN(failed_spins_shrink);
	RUN(new_threads_know);
	RUN(successful_spins_grow);
	RUN(other_spins_stay);
	RUN(a_signal_to_a_spinning_waiter_makes_no_system_call);
	stay_on_one_cpu();
	RUN(a_glance_is_a_short_spin);
	RUN(ordered_spins_on_an_own_cpu_are_repeated);
	RUN(a_deadline_ends_an_ordered_spin);
	RUN(a_thread_that_moves_leaves_its_seat);
	RUN(abandoned_spins_do_not_count_for_ever);
	return 0;
}
