// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Five contexts of one CPU wait for five spin locks at once, through the module's parameter `deep`:
 *
 *	echo "native ROUNDS" >/sys/module/poundlock_torture/parameters/deep
 *	cat /sys/module/poundlock_torture/parameters/deep
 *
 * A CPU has four nodes for the queues of the kernel's own spin lock, since a task, a softirq, an
 * interrupt handler and an NMI may wait at once. Here the interrupt handler enables interrupts
 * while it waits, and another one interrupts it. The NMI is the fifth waiter and has no node.
 *
 *	task ──▶ softirq ──▶ interrupt ──▶ interrupt ──▶ NMI
 *
 * In each round the conductor holds all locks. A rival waits for each, so that no waiter of the
 * nested CPU is the pending one. The conductor sends the next interrupt when the tail of the lock
 * shows that the waiter before has queued. Then it releases all locks, and the rivals take the
 * NMI's lock repeatedly.
 *
 * The write returns when all rounds are over. It fails with EILSEQ if a lock admitted two holders
 * or lost an update, or if a round did not nest; and with ETIMEDOUT if a waiter does not proceed,
 * or does not queue, as under a hypervisor's test-and-set lock.
 */
#include <linux/errno.h>
#include <linux/moduleparam.h>

#if defined(CONFIG_X86_LOCAL_APIC) && defined(CONFIG_QUEUED_SPINLOCKS)
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/interrupt.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nmi.h>
#include <linux/preempt.h>
#include <linux/sched/clock.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include <asm/apic.h>
#include <asm/nmi.h>

#define HOLD 16     /* pauses of a critical section */
#define ENTRY 1000  /* pauses in which the fifth waiter, which no tail shows, begins to wait */
#define TURNS 16    /* of each rival for the NMI's lock, beside the NMI */
#define PATIENCE 60 /* seconds for one step of a round */
#define MOST_ROUNDS 100000 /* of one write */

enum { IN_TASK, IN_SOFTIRQ, IN_IRQ, IN_NESTED_IRQ, IN_NMI, LEVELS };
#define CPUS (LEVELS + 2) /* the rivals', the conductor's and the nested one */

struct level {
	arch_spinlock_t lock;
	const void *holder; /* NULL while the lock is free */
	u64 before, after;  /* acquisitions, counted at its begin and end */
	u64 overlaps;       /* acquisitions that found another holder inside */
} ____cacheline_aligned;

static struct level levels[LEVELS];

static struct {
	int cpu;          /* the nested one */
	u32 round, begun; /* the rivals' round; the nested CPU's */
	u32 rounds, nested;
	bool waits[LEVELS]; /* the nested CPU's waiters; written by them alone */
	bool struck;        /* the NMI of this round has come */
	atomic_t working;   /* rivals and task of this round that have not finished it */
	bool stuck;
} deep;

static void relax(unsigned int pauses)
{
	while (pauses--)
		cpu_relax();
}

static void enter(struct level *level, const void *me)
{
	if (READ_ONCE(level->holder))
		WRITE_ONCE(level->overlaps, level->overlaps + 1);
	WRITE_ONCE(level->holder, me);
	WRITE_ONCE(level->before, level->before + 1);
}

static void leave(struct level *level, const void *me)
{
	if (READ_ONCE(level->holder) != me)
		WRITE_ONCE(level->overlaps, level->overlaps + 1);
	WRITE_ONCE(level->after, level->after + 1);
	WRITE_ONCE(level->holder, NULL);
}

/* Preemption is off. */
static void take(struct level *level, const void *me)
{
	arch_spin_lock(&level->lock);
	enter(level, me);
	relax(HOLD);
	leave(level, me);
	arch_spin_unlock(&level->lock);
}

/* ---- The nested CPU ---- */

static bool is_in(int level)
{
	switch (level) {
	case IN_TASK:
		return in_task();
	case IN_SOFTIRQ:
		return in_serving_softirq() && !in_hardirq();
	case IN_IRQ:
	case IN_NESTED_IRQ:
		return in_hardirq() && !in_nmi();
	default:
		return in_nmi();
	}
}

/* Takes the lock of @level, whose context is that of the caller. */
static void wait_at(int level)
{
	bool nests = is_in(level);
	int i;

	for (i = 0; i < level; i++)
		nests &= READ_ONCE(deep.waits[i]);
	WRITE_ONCE(deep.waits[level], nests);
	take(&levels[level], &deep.waits[level]);
	WRITE_ONCE(deep.waits[level], false);
}

static void in_tasklet(struct tasklet_struct *unused)
{
	wait_at(IN_SOFTIRQ);
}
static DECLARE_TASKLET(tasklet, in_tasklet);

static void raise_softirq_here(void *unused)
{
	tasklet_hi_schedule(&tasklet);
}

static void in_irq_that_nests(void *unused)
{
	local_irq_enable();
	wait_at(IN_IRQ);
	local_irq_disable();
}

static void in_nested_irq(void *unused)
{
	wait_at(IN_NESTED_IRQ);
}

static call_single_data_t calls[LEVELS] = {
	[IN_SOFTIRQ] = {.func = raise_softirq_here},
	[IN_IRQ] = {.func = in_irq_that_nests},
	[IN_NESTED_IRQ] = {.func = in_nested_irq},
};

static void do_nothing(void *unused)
{
}

static int strike(unsigned int type, struct pt_regs *regs)
{
	if (raw_smp_processor_id() != deep.cpu || READ_ONCE(deep.struck))
		return NMI_DONE;
	smp_store_release(&deep.struck, true); /* pairs with the acquire in has_struck() */
	wait_at(IN_NMI);
	return NMI_HANDLED;
}

static int nested_task(void *unused)
{
	u32 round = 0;

	while (!kthread_should_stop()) {
		if (smp_load_acquire(&deep.begun) == round) { /* pairs with run_round() */
			schedule_timeout_idle(1);
			continue;
		}
		round++;
		preempt_disable();
		wait_at(IN_TASK);
		preempt_enable();
		atomic_dec(&deep.working);
	}
	return 0;
}

/* ---- The other CPUs ---- */

static int rival(void *argument)
{
	struct level *level = argument;
	u32 round = 0, turns;

	while (!kthread_should_stop()) {
		if (smp_load_acquire(&deep.round) == round) { /* pairs with run_round() */
			schedule_timeout_idle(1);
			continue;
		}
		round++;
		preempt_disable();
		take(level, level);
		for (turns = 0; turns < TURNS; turns++)
			take(&levels[IN_NMI], level);
		preempt_enable();
		atomic_dec(&deep.working);
	}
	return 0;
}

static u32 word_of(int level)
{
	return (u32)atomic_read(&levels[level].lock.val);
}

static bool has_waiter(int level)
{
	return word_of(level) & ~(u32)_Q_LOCKED_MASK;
}

static u32 tails[LEVELS]; /* before the nested CPU's waiter came */

static bool has_queued(int level)
{
	return word_of(level) >> _Q_TAIL_OFFSET != tails[level] && READ_ONCE(deep.waits[level]);
}

static bool has_struck(int level)
{
	return smp_load_acquire(&deep.struck) && READ_ONCE(deep.waits[level]);
}

static bool has_finished(int unused)
{
	return !atomic_read(&deep.working);
}

/* Spins, since the conductor may hold the locks. */
static bool await(bool (*is_done)(int level), int level)
{
	u64 end = local_clock() + PATIENCE * (u64)NSEC_PER_SEC;

	while (!is_done(level)) {
		if (local_clock() > end)
			return false;
		cpu_relax();
	}
	return true;
}

/* Lets the nested CPU wait at all levels. Returns whether it does. */
static bool nest(void)
{
	int level;

	for (level = IN_TASK; level < LEVELS; level++) {
		if (!await(has_waiter, level))
			return false;
		tails[level] = word_of(level) >> _Q_TAIL_OFFSET;
	}
	smp_store_release(&deep.begun, deep.round); /* pairs with nested_task() */
	if (!await(has_queued, IN_TASK))
		return false;
	for (level = IN_SOFTIRQ; level < IN_NMI; level++) {
		if (smp_call_function_single_async(deep.cpu, &calls[level]) ||
		    !await(has_queued, level))
			return false;
	}
	WRITE_ONCE(deep.struck, false);
	apic->send_IPI_mask(cpumask_of(deep.cpu), NMI_VECTOR);
	if (!await(has_struck, IN_NMI))
		return false;
	relax(ENTRY);
	for (level = IN_TASK; level < LEVELS; level++)
		if (!READ_ONCE(deep.waits[level]))
			return false;
	return true;
}

static DECLARE_COMPLETION(over); /* all rounds, or those until one failed */

/* Returns whether the round nested. */
static bool run_round(void)
{
	bool nested;
	int level;

	preempt_disable();
	for (level = IN_TASK; level < LEVELS; level++) {
		arch_spin_lock(&levels[level].lock);
		enter(&levels[level], &deep);
	}
	atomic_set(&deep.working, LEVELS + 1);
	smp_store_release(&deep.round, deep.round + 1); /* pairs with rival() */
	nested = nest();
	/* After a failure, the nested CPU's task still has its turn. */
	smp_store_release(&deep.begun, deep.round);
	for (level = IN_TASK; level < LEVELS; level++) {
		leave(&levels[level], &deep);
		arch_spin_unlock(&levels[level].lock);
	}
	preempt_enable();
	return nested;
}

static int conduct(void *unused)
{
	bool nests = true;

	while (nests && !deep.stuck && deep.nested < deep.rounds) {
		nests = run_round();
		deep.nested += nests;
		deep.stuck = !await(has_finished, 0);
		/* The next round begins without pending softirqs of this one. */
		schedule_timeout_idle(1);
	}
	complete(&over);
	while (!kthread_should_stop())
		schedule_timeout_idle(1);
	return 0;
}

/* ---- The parameter ---- */

static char result[160] = "lock=native rounds=0";
static DEFINE_MUTEX(running);

/* Counts of all levels, if each of @rounds was complete. Returns 0 if they are right. */
static int judge(u32 rounds)
{
	u64 lost = 0, overlaps = 0, taken = 0, due;
	bool failed;
	int level;

	for (level = IN_TASK; level < LEVELS; level++) {
		due = rounds * (level == IN_NMI ? 3ull + LEVELS * TURNS : 3);
		taken += levels[level].before;
		overlaps += levels[level].overlaps;
		lost += max(due, levels[level].before) - min(due, levels[level].before);
		lost += max(due, levels[level].after) - min(due, levels[level].after);
	}
	failed = deep.stuck || lost || overlaps || deep.nested != rounds;
	scnprintf(result, sizeof(result),
		  "lock=native rounds=%u nested=%u acquisitions=%llu lost=%llu overlaps=%llu %s",
		  rounds, deep.nested, taken, lost, overlaps,
		  deep.stuck ? "HUNG" : (failed ? "FAILED" : "ok"));
	return failed ? -EILSEQ : 0;
}

/* Ends the first @count of @threads. */
static void end(struct task_struct **threads, int count)
{
	while (count--)
		kthread_stop(threads[count]);
}

/* The threads, one per CPU; the conductor's is the last, and starts last. */
static int begin(struct task_struct **threads)
{
	int i, cpu = -1;

	for (i = 0; i < CPUS; i++) {
		if (i < LEVELS)
			threads[i] = kthread_create(rival, &levels[i], "deep/%d", i);
		else
			threads[i] = kthread_create(i == LEVELS ? nested_task : conduct, NULL,
						    "deep/%d", i);
		if (IS_ERR(threads[i])) {
			end(threads, i);
			return PTR_ERR(threads[i]);
		}
		cpu = cpumask_next(cpu, cpu_online_mask);
		kthread_bind(threads[i], cpu);
		if (i == LEVELS)
			deep.cpu = cpu;
	}
	for (i = 0; i < CPUS; i++)
		wake_up_process(threads[i]);
	return 0;
}

static int run(u32 rounds)
{
	struct task_struct *threads[CPUS];
	int error;

	memset(levels, 0, sizeof(levels));
	memset(&deep, 0, sizeof(deep));
	deep.rounds = rounds;
	deep.struck = true;
	reinit_completion(&over);
	error = register_nmi_handler(NMI_LOCAL, strike, 0, "poundlock_deep");
	if (error)
		return error;
	error = begin(threads);
	if (!error) {
		/* In parts, since the kernel reports tasks that wait for two minutes. */
		while (!wait_for_completion_timeout(&over, HZ))
			;
		if (deep.stuck) {
			/* Waiters that never proceed keep using the module. */
			__module_get(THIS_MODULE);
			(void)judge(rounds);
			return -ETIMEDOUT;
		}
		end(threads, CPUS);
		error = judge(rounds);
	}
	unregister_nmi_handler(NMI_LOCAL, "poundlock_deep");
	/* Calls of a failed round, which come late, are over after this one. */
	(void)smp_call_function_single(deep.cpu, do_nothing, NULL, true);
	tasklet_kill(&tasklet);
	return error;
}

static int deep_set(const char *value, const struct kernel_param *param)
{
	u32 rounds;
	int error;

	if (THIS_MODULE->state != MODULE_STATE_LIVE)
		return -EAGAIN;
	if (sscanf(value, "native %u", &rounds) != 1 || !rounds || rounds > MOST_ROUNDS)
		return -EINVAL;
	mutex_lock(&running);
	cpus_read_lock();
	error = num_online_cpus() < CPUS ? -EOPNOTSUPP : run(rounds);
	cpus_read_unlock();
	mutex_unlock(&running);
	return error;
}

static int deep_get(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%s\n", result);
}

#else

static int deep_set(const char *value, const struct kernel_param *param)
{
	return -EOPNOTSUPP;
}

static int deep_get(char *buffer, const struct kernel_param *param)
{
	return 0;
}

#endif

static const struct kernel_param_ops deep_ops = {.set = deep_set, .get = deep_get};
module_param_cb(deep, &deep_ops, NULL, 0644);
MODULE_PARM_DESC(deep, "native ROUNDS: five contexts of a CPU wait for spin locks at once");
