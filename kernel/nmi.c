// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Locks taken in NMIs: nmi.h. */
#include <linux/errno.h>

#include "nmi.h"

#ifdef CONFIG_X86_LOCAL_APIC
#include <linux/atomic.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/nmi.h>
#include <linux/percpu.h>
#include <linux/preempt.h>

#include <asm/apic.h>
#include <asm/nmi.h>

#include "poundlock.h"

/* Pauses of a critical section, and between two rounds, in which the other CPUs proceed. */
#define HOLD 16
#define PACE 256

static struct {
	struct pound_spin *lock;
	int strikes; /* of a round */
	const void *holder;
	u64 before, after; /* acquisitions, counted at begin and end of each */
	u64 overlaps;
	u32 round;
	atomic_t struck; /* CPUs of this round that have released the lock */
	atomic64_t nmis;
	bool ending, ended;
} storm;

static DEFINE_PER_CPU(u32, last_round); /* that this CPU knows */

static void relax(unsigned int pauses)
{
	while (pauses--)
		cpu_relax();
}

/* The other CPUs have served all rounds before. */
static void begin_round(void)
{
	u32 round = storm.round + 1;

	__this_cpu_write(last_round, round);
	atomic_set(&storm.struck, 0);
	smp_store_release(&storm.round, round); /* pairs with the acquire in strike() */
	apic->send_IPI_allbutself(NMI_VECTOR);
}

static void take(const void *me)
{
	pound_spin_lock(storm.lock);
	if (READ_ONCE(storm.holder))
		storm.overlaps++;
	WRITE_ONCE(storm.holder, me);
	storm.before++;
	relax(HOLD);
	if (READ_ONCE(storm.holder) != me)
		storm.overlaps++;
	storm.after++;
	WRITE_ONCE(storm.holder, NULL);
	pound_spin_unlock(storm.lock);
}

static int strike(unsigned int type, struct pt_regs *regs)
{
	u32 round = smp_load_acquire(&storm.round); /* pairs with begin_round() */

	if (__this_cpu_read(last_round) == round)
		return NMI_DONE;
	__this_cpu_write(last_round, round);
	take(this_cpu_ptr(&last_round));
	atomic64_inc(&storm.nmis);
	/* Full order: all of the round is before the next one. */
	if (atomic_inc_return(&storm.struck) < storm.strikes)
		return NMI_HANDLED;
	if (READ_ONCE(storm.ending)) {
		smp_store_release(&storm.ended, true); /* pairs with the acquire in nmi_end() */
		return NMI_HANDLED;
	}
	relax(PACE);
	begin_round();
	return NMI_HANDLED;
}

int nmi_begin(const char *name)
{
	struct pound_spin *lock;
	int error;

	cpus_read_lock();
	if (num_online_cpus() < 2) {
		error = -EOPNOTSUPP;
		goto unlock;
	}
	lock = pound_spin_create(name, GFP_KERNEL);
	if (IS_ERR(lock)) {
		error = PTR_ERR(lock);
		goto unlock;
	}
	/* Rounds count on: CPUs know the last one of the storm before. */
	memset(&storm, 0, offsetof(typeof(storm), round));
	storm.ending = storm.ended = false;
	atomic64_set(&storm.nmis, 0);
	storm.lock = lock;
	storm.strikes = (int)num_online_cpus() - 1;
	error = register_nmi_handler(NMI_LOCAL, strike, 0, "poundlock");
	if (error) {
		pound_spin_destroy(lock);
		goto unlock;
	}
	preempt_disable();
	begin_round();
	preempt_enable();
	return 0;
unlock:
	cpus_read_unlock();
	return error;
}

struct struck nmi_end(void)
{
	u64 taken;

	WRITE_ONCE(storm.ending, true);
	while (!smp_load_acquire(&storm.ended)) /* pairs with strike() */
		msleep(1);
	/* Also waits for NMIs that are still in strike(). */
	unregister_nmi_handler(NMI_LOCAL, "poundlock");
	pound_spin_destroy(storm.lock);
	cpus_read_unlock();
	taken = (u64)atomic64_read(&storm.nmis);
	return (struct struck){
		.nmis = taken,
		.lost = max(taken, storm.before) - min(taken, storm.before) +
			max(taken, storm.after) - min(taken, storm.after),
		.overlaps = storm.overlaps,
	};
}

#else

int nmi_begin(const char *name)
{
	return -EOPNOTSUPP;
}

struct struck nmi_end(void)
{
	return (struct struck){0};
}

#endif
