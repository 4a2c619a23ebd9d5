/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cohort.h: a domain passes the lock on within itself up to its bound, and never without waiters; a
 * trylock neither takes nor leaves a place; numbers and slots wrap around; a waiter for a back-off
 * lock polls less and less often; a forked child finds a working lock.
 */
#include "c_bo_mcs.h"
#include "c_ptl_tkt.h"
#include "c_tkt_tkt.h"
#include "unit.h"

#define DOMAINS 2

static struct {
	union {
		struct cohort cohort;
		struct c_tkt_tkt tkt;
		struct c_ptl_tkt ptl;
		struct c_bo_mcs bo;
	};
	struct cohort_place places[DOMAINS];
} memory;

static struct cohort *const lock = &memory.cohort;

static void begin(void)
{
	script_clear();
	script_domain = 0;
	memset((void *)&memory, 0, sizeof(memory));
	EXPECT(cohort_size() == sizeof(memory));
	cohort_init(lock, cohort_size());
	EXPECT(lock->domains == DOMAINS);
}

/* A waiter arrives at the local lock of the current domain. */
static void arrive(void)
{
	atomic_fetch_add(&memory.places[script_domain].tickets.next, TICKETS_STEP);
}

/*
 * The waiter that received the local lock of domain 0 completes its acquisition. Whether it holds
 * the lock.
 */
static bool owns(void)
{
	bool owns = memory.places[0].owns;

	memory.places[0].owns = false;
	return owns;
}

static void tkt_batch_is_exact(void)
{
	for (uint32_t batch = 1; batch < 6; batch++) {
		struct c_tkt_tkt_policy policy = {WAIT_YIELD, batch};
		uint32_t passed = 0;

		begin();
		EXPECT(c_tkt_tkt_acquire(&memory.tkt, policy, NULL));
		for (arrive(); c_tkt_tkt_release(&memory.tkt, policy), owns(); arrive())
			EXPECT(++passed <= batch, "passed on more than %u times", batch);
		EXPECT(passed == batch, "%u of %u", passed, batch);
		EXPECT(!tickets_count(&lock->tkt),
		       "the global lock was kept at the end of the batch");
		EXPECT(!memory.places[0].passed, "the next turn does not begin anew");
	}
}

static void tkt_alone_passes_to_nobody(void)
{
	struct c_tkt_tkt_policy policy = {WAIT_PARK, 64};

	begin();
	for (int i = 0; i < 5; i++) {
		script_domain = i % DOMAINS;
		EXPECT(c_tkt_tkt_acquire(&memory.tkt, policy, NULL));
		EXPECT(lock->holder == &memory.places[script_domain]);
		script_domain = 1; /* the holder migrates */
		EXPECT(c_tkt_tkt_release(&memory.tkt, policy));
		EXPECT(!c_tkt_tkt_release(&memory.tkt, policy), "a free lock was released");
		for (int domain = 0; domain < DOMAINS; domain++)
			EXPECT(!memory.places[domain].owns &&
			       !tickets_count(&memory.places[domain].tickets));
	}
}

/*
 * The local lock is released before the global one, whose release is the last access to the lock.
 */
static bool global_still_held(void *unused)
{
	(void)unused;
	if (tickets_count(&memory.places[0].tickets))
		return false;
	EXPECT(tickets_count(&lock->tkt) == 1, "the global lock was released first");
	return true;
}

static void tkt_releases_the_global_lock_last(void)
{
	struct c_tkt_tkt_policy policy = {WAIT_YIELD, 1};

	begin();
	EXPECT(c_tkt_tkt_acquire(&memory.tkt, policy, NULL));
	script_clear();
	script_at(1, global_still_held, NULL);
	EXPECT(c_tkt_tkt_release(&memory.tkt, policy));
	script_finish();
}

static void ptl_wraps_around(void)
{
	struct c_ptl_tkt_policy policy;

	for (policy = (struct c_ptl_tkt_policy){WAIT_SPIN, 1}; policy.wait <= WAIT_PARK;
	     policy.wait++) {
		begin();
		lock->domains = 1; /* the slots of a number and its successor, for any number */
		atomic_store(&lock->ptl.next, UINT32_MAX - 5);
		atomic_store(&lock->ptl.own, UINT32_MAX - 5);
		atomic_store(&memory.places[0].slot, UINT32_MAX - 5);
		for (int i = 0; i < 6; i++) {
			EXPECT(c_ptl_tkt_acquire(&memory.ptl, policy, NULL));
			EXPECT(!c_ptl_tkt_try_acquire(&memory.ptl));
			EXPECT(c_ptl_tkt_release(&memory.ptl, policy));
			EXPECT(!c_ptl_tkt_release(&memory.ptl, policy), "a free lock was released");
		}
		EXPECT(c_ptl_tkt_try_acquire(&memory.ptl));
		EXPECT(c_ptl_tkt_release(&memory.ptl, policy));
	}
}

static void trylock_has_no_place(void)
{
	struct c_bo_mcs_policy policy = {WAIT_YIELD, 64, 0};
	struct c_bo_mcs_node nodes[2];

	begin();
	EXPECT(c_bo_mcs_try_acquire(&memory.bo, &nodes[0]));
	EXPECT(!lock->holder && !atomic_load(&memory.places[0].mcs.tail));
	/* A waiter arrives at the domain's lock meanwhile: the trylock cannot release it. */
	EXPECT(mcs_try_acquire(&memory.places[0].mcs, &nodes[1].mcs));
	c_bo_mcs_release(&memory.bo, &nodes[0], policy);
	EXPECT(atomic_load(&nodes[0].mcs.status) == NODE_FREE);
	EXPECT(atomic_load(&memory.places[0].mcs.tail) == &nodes[1].mcs && !memory.places[0].owns);
	EXPECT(c_bo_mcs_try_acquire(&memory.bo, &nodes[0]), "the lock is not free");
}

/*
 * In the parent, others wait in both domains, locally and for the global lock, and one may just
 * receive the lock; the holder holds it with a place or by trylock, or the lock is free and a
 * waiter is arriving.
 */
static void child_is_served(bool ptl, int pattern)
{
	struct c_tkt_tkt_policy tkt = {WAIT_PARK, 64};
	struct c_ptl_tkt_policy partitioned = {WAIT_PARK, 64};
	bool held = digit(pattern, 3, 0), with_place = digit(pattern, 3, 0) == 2;

	begin();
	fork_generation_set(0);
	if (held && with_place)
		ptl ? c_ptl_tkt_acquire(&memory.ptl, partitioned, NULL)
		    : c_tkt_tkt_acquire(&memory.tkt, tkt, NULL);
	else if (held)
		EXPECT(ptl ? c_ptl_tkt_try_acquire(&memory.ptl)
			   : c_tkt_tkt_try_acquire(&memory.tkt));
	for (script_domain = 0; script_domain < DOMAINS; script_domain++)
		for (int i = 0; i < digit(pattern, 3, 1 + script_domain); i++)
			arrive();
	if (held) /* the global lock's waiter; the holder if the lock is free */
		for (int i = 0; i < digit(pattern, 3, 3); i++)
			atomic_fetch_add(ptl ? &lock->ptl.next : &lock->tkt.next, TICKETS_STEP);
	fork_generation_set(1);
	script_domain = digit(pattern, 3, 4) % DOMAINS;
	if (held)
		EXPECT(ptl ? c_ptl_tkt_release(&memory.ptl, partitioned)
			   : c_tkt_tkt_release(&memory.tkt, tkt));
	for (script_domain = 0; script_domain < DOMAINS; script_domain++) {
		EXPECT(ptl ? c_ptl_tkt_acquire(&memory.ptl, partitioned, NULL)
			   : c_tkt_tkt_acquire(&memory.tkt, tkt, NULL));
		EXPECT(ptl ? c_ptl_tkt_release(&memory.ptl, partitioned)
			   : c_tkt_tkt_release(&memory.tkt, tkt));
	}
	EXPECT(ptl ? c_ptl_tkt_try_acquire(&memory.ptl) : c_tkt_tkt_try_acquire(&memory.tkt));
	fork_generation_set(0);
}

static void every_child_is_served(void)
{
	for (int pattern = 0; pattern < power(3, 5); pattern++) {
		child_is_served(false, pattern);
		child_is_served(true, pattern);
	}
}

/* The same for queues, with and without a place of the holder. */
static void queues_of_a_child_are_empty(void)
{
	struct c_bo_mcs_policy policy = {WAIT_YIELD, 64, 0};
	struct c_bo_mcs_node nodes[1 + DOMAINS];

	for (int with_place = 0; with_place < 2; with_place++) {
		begin();
		EXPECT(with_place ? c_bo_mcs_acquire(&memory.bo, &nodes[0], policy, NULL)
				  : c_bo_mcs_try_acquire(&memory.bo, &nodes[0]));
		for (int domain = 0; domain < DOMAINS; domain++)
			(void)mcs_enter(&memory.places[domain].mcs, &nodes[1 + domain].mcs);
		c_bo_mcs_drop_waiters(&memory.bo, &nodes[0]);
		c_bo_mcs_release(&memory.bo, &nodes[0], policy);
		for (int domain = 0; domain < DOMAINS; domain++)
			EXPECT(!atomic_load(&memory.places[domain].mcs.tail),
			       "domain %d waits for the parent's", domain);
		EXPECT(c_bo_mcs_try_acquire(&memory.bo, &nodes[0]), "the lock is not free");
	}
}

static bool bo_is_released(void *unused)
{
	(void)unused;
	EXPECT(ttas_release(&lock->bo, (struct ttas_policy){.wait = WAIT_SPIN}));
	return true;
}

/*
 * Each failed poll doubles the pause, up to a limit. A waiter that yields or sleeps does not pause
 * as well.
 */
static void bo_backs_off(void)
{
	const uint32_t longest[] = {1, COHORT_FIRST_PAUSE, 3 * COHORT_FIRST_PAUSE, 1 << 20};

	for (int i = 0; i < COUNT(longest); i++) {
		for (int failed = 0; failed < 14; failed++) {
			struct cohort_policy policy = {.global = COHORT_BO,
						       .batch = 1,
						       .backoff = longest[i]};
			uint64_t paused = 0;

			for (int look = 0; look < failed; look++) {
				uint64_t pause = (uint64_t)COHORT_FIRST_PAUSE << look;

				paused += pause < longest[i] ? pause : longest[i];
			}
			begin();
			EXPECT(ttas_try_acquire(&lock->bo));
			script_clear();
			script_at(failed + 2, bo_is_released, NULL);
			cohort_global_acquire(lock, policy);
			EXPECT(script_paused == paused,
			       "%d failed looks, paused %llu times instead of %llu", failed,
			       (unsigned long long)script_paused, (unsigned long long)paused);
		}
	}
	for (enum wait wait = WAIT_YIELD; wait <= WAIT_PARK; wait++) {
		begin();
		EXPECT(ttas_try_acquire(&lock->bo));
		script_clear();
		script_at(2, bo_is_released, NULL);
		cohort_global_acquire(lock, (struct cohort_policy){.global = COHORT_BO,
								   .wait = wait,
								   .backoff = 4096});
		EXPECT(!script_paused);
	}
}

int main(void)
{
	RUN(tkt_batch_is_exact);
	RUN(tkt_alone_passes_to_nobody);
	RUN(tkt_releases_the_global_lock_last);
	RUN(ptl_wraps_around);
	RUN(trylock_has_no_place);
	RUN(bo_backs_off);
	RUN(every_child_is_served);
	RUN(queues_of_a_child_are_empty);
	return 0;
}
