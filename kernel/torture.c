// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The module poundlock_torture: tortures Poundlock's locks, counts events, and offers the spin
 * locks to other modules (poundlock.h).
 *
 *	echo "cna threads=8 count=20000" >/sys/module/poundlock_torture/parameters/run
 *
 * The write returns when the run ends, and succeeds if the lock kept its promise. The counts are
 * one line of the kernel log and the value of the parameter `result`; `events` holds the run's
 * events (core/events.def); `locks` lists the names of the locks. A run may set the lock's own
 * settings (docs/locks.md), which persist. `address` is that of the lock of the last run, if it
 * was one of the kernel's own; the next run of that lock uses it again.
 *
 * park:NAME is a lock whose waiters sleep; native, native:mutex and native:rwsem are the kernel's
 * own locks. Holders of sleeping locks sometimes sleep too, or exceed their time slice. If signals
 * can end waits of the lock, threads send each other signals and retry after an interruption. If
 * the lock has readers, `reads` percent of the turns are read sections, in which no writer may be
 * seen, and writers sometimes downgrade. `together` counts readers that found another reader
 * inside.
 *
 * `most_passed` is the maximum of acquisitions by others during one wait, `most_urgent_passed` that
 * of waits with interrupts off. `most_late` counts only those more than `late` milliseconds after
 * the first 2 * `threads` acquisitions of a wait.
 *
 * `named` counts reads of a held mutex by another thread that found the holder in its `owner`,
 * `misnamed` those that found another value.
 *
 * `left`, `placeless`, `deaf` and `pinned` are counts of `leave` (leave.h). The last three must be
 * 0.
 *
 * If CPUs go offline during the run, their threads are migrated: `driven` counts migrations outside
 * the lock, `driven_waiting` migrations of waiters, which spinning waiters never suffer.
 *
 * Of 1,000 acquisitions, `same_per_1000` were on the previous holder's CPU and `remote_per_1000` on
 * another node. Of 1,000 hand-overs to another CPU, `crossed_per_1000` crossed nodes.
 *
 * Of 1,000 acquisitions, `off_route_per_1000` were off the route: on the tour from the lock's
 * previous place, the lock skipped a thread that had been waiting since before the last two
 * acquisitions. This is counted with irq=0 and for spinning waiters only.
 *
 * The amount of work is fixed: each of `threads` threads, bound to one CPU each, takes the lock
 * `count` times. Holders update plain variables, so a lock that admits two holders loses updates.
 *
 *   hold, pause  the most pauses of a critical section, and between two
 *   try          1: every eighth acquisition polls trylock
 *   nest         1: some holders take a second lock, and a third inside it
 *   irq          1: interrupt handlers take a lock too, and interrupt waiters and holders;
 *                0: they do not; most_passed and off_route_per_1000 are exact for waiters with
 *                interrupts off
 *   urgent       the percentage of turns that wait for a spinning lock with interrupts off, and
 *                thus are urgent; 0: no waiter is, and with irq=0 all wait with interrupts off. The
 *                kernel's own locks take them for urgent by poundlock.urgent
 *   late         milliseconds before most_late counts; 0: it does not
 *   stay, signal 1: some holders sleep or stay longer; threads interrupt each other's waits
 *   leave        the number of waits for another lock that signals interrupt before the run; its
 *                holder stays until the end of the run (leave.h)
 *   nmi          1: NMIs on all CPUs take a lock of the same kind meanwhile (nmi.h), if it spins
 *   reads        the percentage of turns that are read sections
 *   fifo         1: the first half of the threads is of SCHED_FIFO
 *   move         1: threads sometimes migrate to another CPU, including CPUs that came back
 *   part         CPUs of consecutive numbers that count as one node, 0: those of a NUMA node
 *   stall        seconds without an acquisition after which the lock counts as hung
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/irq_work.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "leave.h"
#include "nmi.h"
#include "park.h"
#include "poundlock.h"
#include "share.h"
#include "spin.h"
#include "stall.h"
#include "world.h"

#undef pr_fmt
#define pr_fmt(fmt) "poundlock: " fmt

/* ---- A run ---- */

/*
 * A no-operation that marks the program's position for guest/transfers.c, which counts cache-line
 * transfers.
 */
#ifdef CONFIG_X86_64
#define MARK(what) \
	asm volatile(".byte 0x0f, 0x1f, 0x84, 0x00\n\t.ascii \"PLK" what "\"" ::: "memory")
#else
#define MARK(what) barrier()
#endif
/* Begin and end of a run; begin and end of a call of the lock under test. */
#define MARK_RUN() MARK("R")
#define MARK_DONE() MARK("D")
#define MARK_ENTER() MARK("E")
#define MARK_LEAVE() MARK("L")

struct settings {
	u32 threads, count, hold, pause, try, nest, irq, urgent, late, stay, signal, leave, nmi,
		reads, fifo, move, part, stall;
};

/* The data that one lock protects. */
struct guarded {
	struct pound_spin *lock;
	void *holder;      /* NULL while the lock is free */
	u64 before, after; /* acquisitions, counted at its begin and end */
	u64 overlaps;      /* acquisitions that found another holder inside */
};

struct run {
	const char *name;
	struct settings set;
	bool sleeps;  /* a lock for tasks: no interrupts, and holders may sleep */
	bool signals; /* signals end its waits */
	bool reads;   /* it has readers */
	struct guarded outer, inner, innermost, in_irq;
	/* Of the outer lock; written by its holder. */
	int last_cpu, last_part;
	u64 same, local, remote; /* relative to the previous holder's CPU and part */
	u32 last_place;          /* on the route */
	u64 off_route;
	u64 most_passed, most_urgent_passed, most_late;
	u64 *times; /* of all acquisitions, if `late` is set */
	u64 late;
	/* readers: inside now; seen_by_readers: writers that they saw */
	atomic_t ready, started, working, readers, seen_by_readers;
	struct left left;
	struct struck struck;
	bool go;
	struct completion done;
	struct worker *workers;
};

struct worker {
	struct run *run;
	struct task_struct *task;
	struct irq_work irq;
	u64 taken, inner, irqs_queued, interrupted;
	u64 reads, together, downgrades; /* together: another reader was inside */
	int cpu;                         /* the CPU it is bound to; -1 after a forced migration */
	u64 driven, driven_waiting;
	u64 waits; /* 1 + acquisitions before its undisturbed wait; 0: no wait */
	u32 place; /* on the route */
	atomic_t irqs;
	u32 random;
};

static u32 draw(struct worker *worker)
{
	worker->random ^= worker->random << 13;
	worker->random ^= worker->random >> 17;
	worker->random ^= worker->random << 5;
	return worker->random;
}

static void relax(u32 pauses)
{
	while (pauses--)
		cpu_relax();
}

static void relax_up_to(struct worker *worker, u32 most)
{
	relax(most ? draw(worker) % (most + 1) : 0);
}

static void enter(struct guarded *guarded, void *me)
{
	if (READ_ONCE(guarded->holder))
		WRITE_ONCE(guarded->overlaps, guarded->overlaps + 1);
	WRITE_ONCE(guarded->holder, me);
	smp_store_release(&guarded->before, guarded->before + 1); /* pairs with read_owner() */
}

static void leave(struct guarded *guarded, void *me)
{
	if (READ_ONCE(guarded->holder) != me)
		WRITE_ONCE(guarded->overlaps, guarded->overlaps + 1);
	WRITE_ONCE(guarded->after, guarded->after + 1);
	smp_wmb(); /* before the release: pairs with read_owner()'s smp_rmb() */
	WRITE_ONCE(guarded->holder, NULL);
}

static void note_place(struct run *run)
{
	int cpu = raw_smp_processor_id();
	int part = run->set.part ? cpu / (int)run->set.part : cpu_to_node(cpu);

	if (run->last_cpu == cpu)
		run->same++;
	else if (run->last_part == part)
		run->local++;
	else
		run->remote++;
	run->last_cpu = cpu;
	run->last_part = part;
}

/* The distance of @place on the tour that begins after @last. */
static u32 tour_to(u32 place, u32 last)
{
	return (place + w_cpu_count() - last - 1) % w_cpu_count();
}

/* Counts an acquisition off the route. The holder @worker calls it after a wait. */
static void note_route(struct worker *worker)
{
	struct run *run = worker->run;
	u32 far = tour_to(worker->place, run->last_place), i;
	u64 waits;

	for (i = 0; i < run->set.threads; i++) {
		waits = READ_ONCE(run->workers[i].waits);
		if (waits && waits + 2 <= run->outer.before &&
		    tour_to(READ_ONCE(run->workers[i].place), run->last_place) < far)
			break;
	}
	run->off_route += i < run->set.threads;
	run->last_place = worker->place;
}

/* Increments @times if the thread was migrated away from its CPU. */
static void note_driven(struct worker *worker, u64 *times)
{
	if (worker->cpu < 0 || (int)raw_smp_processor_id() == worker->cpu)
		return;
	++*times;
	worker->cpu = -1;
}

/* Binds the thread to a random online CPU. */
static void move(struct worker *worker)
{
	unsigned int cpu = draw(worker) % nr_cpu_ids;

	if (cpu_online(cpu) && !set_cpus_allowed_ptr(get_current(), cpumask_of(cpu)))
		worker->cpu = cpu;
}

static void take_in_irq(struct irq_work *work)
{
	struct worker *worker = container_of(work, struct worker, irq);
	struct guarded *guarded = &worker->run->in_irq;

	pound_spin_lock(guarded->lock);
	enter(guarded, worker);
	leave(guarded, worker);
	pound_spin_unlock(guarded->lock);
	atomic_inc(&worker->irqs);
}

/* Takes the lock that interrupt handlers take. */
static void take_with_irqs_off(struct worker *worker)
{
	struct guarded *guarded = &worker->run->in_irq;
	unsigned long flags;

	pound_spin_lock_irqsave(guarded->lock, flags);
	enter(guarded, &flags);
	relax_up_to(worker, 8);
	leave(guarded, &flags);
	pound_spin_unlock_irqrestore(guarded->lock, flags);
	worker->inner++;
}

static void take_nested(struct worker *worker)
{
	struct run *run = worker->run;

	pound_spin_lock(run->inner.lock);
	enter(&run->inner, worker);
	pound_spin_lock(run->innermost.lock);
	enter(&run->innermost, worker);
	/* Released in the order of acquisition, which a stack of nodes could not do. */
	leave(&run->inner, worker);
	pound_spin_unlock(run->inner.lock);
	leave(&run->innermost, worker);
	pound_spin_unlock(run->innermost.lock);
}

/* Of the last run. Not in its data, whose places in cache lines exact counts depend on. */
static atomic64_t named, misnamed;

/*
 * Reads whom the lock names as its holder, and compares that if the same thread was
 * inside all the time: its hold was counted as begun before the read, and not as ended after it.
 */
static void read_owner(struct worker *worker)
{
	const struct guarded *outer = &worker->run->outer;
	const struct spin_kind *kind = spin_kind_of(outer->lock);
	const struct worker *holder;
	unsigned long owner;
	u64 ended;

	if (!kind->owner)
		return;
	ended = smp_load_acquire(&outer->after);
	if (smp_load_acquire(&outer->before) != ended + 1)
		return;
	holder = READ_ONCE(outer->holder);
	owner = kind->owner(spin_bytes_of(outer->lock));
	smp_rmb(); /* pairs with leave()'s smp_wmb() */
	if (!holder || READ_ONCE(outer->after) != ended)
		return;
	atomic64_inc(owner == (unsigned long)holder->task ? &named : &misnamed);
}

/* Takes the outer lock in @state; retries after each signal. */
static void take_or_be_interrupted(struct worker *worker, unsigned int state)
{
	const struct spin_kind *kind = spin_kind_of(worker->run->outer.lock);

	read_owner(worker);
	while (kind->lock_state(spin_bytes_of(worker->run->outer.lock), state)) {
		worker->interrupted++;
		flush_signals(get_current());
	}
}

/* Sends a random thread a signal, half of them fatal. */
static void disturb(struct worker *worker)
{
	struct worker *other = &worker->run->workers[draw(worker) % worker->run->set.threads];

	send_sig(draw(worker) % 2 ? SIGKILL : SIGINT, other->task, 1);
}

static void take_outer(struct worker *worker)
{
	struct run *run = worker->run;

	if (run->signals && draw(worker) % 2) {
		take_or_be_interrupted(worker,
				       draw(worker) % 2 ? TASK_KILLABLE : TASK_INTERRUPTIBLE);
		return;
	}
	if (!run->set.try || draw(worker) % 8) {
		pound_spin_lock(run->outer.lock);
		return;
	}
	while (!pound_spin_trylock(run->outer.lock)) {
		cpu_relax();
		if (run->sleeps)
			w_yield_task();
	}
}

/* Some holders that may sleep stay longer. */
static void stay(struct worker *worker)
{
	unsigned long end = jiffies + 2;

	if (!worker->run->set.stay)
		return;
	if (!(draw(worker) % 64))
		schedule_timeout_uninterruptible(1);
	if (!(draw(worker) % 256))
		while (time_before(jiffies, end))
			cpu_relax();
}

static void downgrade_turn(struct worker *worker);

/* Whether a turn waits with interrupts off. */
static bool waits_masked(struct worker *worker)
{
	const struct run *run = worker->run;

	if (run->sleeps)
		return false;
	return run->set.urgent ? draw(worker) % 100 < run->set.urgent : !run->set.irq;
}

/*
 * Counts the acquisitions by others of a wait that began after the first @came. The holder calls it
 * before enter(). By the acquisition @first, those that came before this waiter have had their turn
 * twice, so that whoever passes it later is preferred to it.
 */
static void note_passed(struct run *run, u64 came, bool masked)
{
	u64 now = run->outer.before, first = came + 2 * run->set.threads, i = now;

	run->most_passed = max(run->most_passed, now - came);
	if (masked)
		run->most_urgent_passed = max(run->most_urgent_passed, now - came);
	if (!run->times)
		return;
	run->times[now] = local_clock();
	if (now <= first)
		return;
	while (i > first && run->times[i - 1] > run->times[first] + run->late)
		i--;
	run->most_late = max(run->most_late, now - i);
}

static void one_turn(struct worker *worker)
{
	struct run *run = worker->run;
	bool undisturbed = !run->set.irq && !run->sleeps, masked = waits_masked(worker);
	unsigned long flags = 0;
	u64 came;

	/*
	 * With interrupts off, every acquisition counted during the wait really passed this waiter.
	 */
	if (masked)
		local_irq_save(flags);
	came = READ_ONCE(run->outer.before);
	WRITE_ONCE(worker->place, w_route_position());
	WRITE_ONCE(worker->waits, undisturbed ? came + 1 : 0);
	MARK_ENTER();
	take_outer(worker);
	MARK_LEAVE();
	WRITE_ONCE(worker->waits, 0);
	note_passed(run, came, masked);
	note_driven(worker, &worker->driven_waiting);
	if (masked)
		local_irq_restore(flags);
	enter(&run->outer, worker);
	if (undisturbed)
		note_route(worker);
	if (atomic_read(&run->readers))
		run->outer.overlaps++;
	note_place(run);
	relax_up_to(worker, run->set.hold);
	if (run->set.nest && !(draw(worker) % 32))
		take_nested(worker);
	if (run->sleeps)
		stay(worker);
	leave(&run->outer, worker);
	worker->taken++;
	MARK_ENTER();
	if (run->reads && !(draw(worker) % 8))
		downgrade_turn(worker);
	else
		pound_spin_unlock(run->outer.lock);
	MARK_LEAVE();
}

/* ---- Readers ---- */

static void take_as_reader(struct worker *worker, const struct spin_kind *kind, void *lock)
{
	unsigned int state = draw(worker) % 2 ? TASK_KILLABLE : TASK_INTERRUPTIBLE;

	switch (draw(worker) % 4) {
	case 0:
		while (!kind->tryread(lock))
			schedule_timeout_uninterruptible(1);
		break;
	case 1:
		while (kind->read_state(lock, state)) {
			worker->interrupted++;
			flush_signals(get_current());
		}
		break;
	default:
		kind->read(lock);
	}
}

/* A read section of the outer lock: no writer is inside or enters. */
static void look(struct worker *worker)
{
	struct guarded *guarded = &worker->run->outer;
	u64 before = READ_ONCE(guarded->before), overlaps = 0;
	int readers = atomic_inc_return(&worker->run->readers);

	overlaps += READ_ONCE(guarded->holder) || READ_ONCE(guarded->after) != before;
	relax_up_to(worker, worker->run->set.hold);
	stay(worker);
	overlaps += READ_ONCE(guarded->holder) || READ_ONCE(guarded->before) != before;
	atomic_add(overlaps, &worker->run->seen_by_readers);
	worker->together += readers > 1;
	atomic_dec(&worker->run->readers);
	worker->reads++;
}

static void read_turn(struct worker *worker)
{
	const struct spin_kind *kind = spin_kind_of(worker->run->outer.lock);
	void *lock = spin_bytes_of(worker->run->outer.lock);

	take_as_reader(worker, kind, lock);
	note_driven(worker, &worker->driven_waiting);
	look(worker);
	kind->unread(lock);
}

/* Downgrades the writer, whose own work is done, to a reader. */
static void downgrade_turn(struct worker *worker)
{
	const struct spin_kind *kind = spin_kind_of(worker->run->outer.lock);
	void *lock = spin_bytes_of(worker->run->outer.lock);

	kind->downgrade(lock);
	look(worker);
	kind->unread(lock);
	worker->downgrades++;
}

/* Some threads pause longer, as if interrupted; otherwise a FIFO order repeats itself forever. */
static void be_away(struct worker *worker)
{
	const struct settings *set = &worker->run->set;

	relax_up_to(worker, draw(worker) % 16 ? set->pause : set->pause + 16 * set->hold);
}

/* Real-time for its turns: a task that preempts waiters and holders, and must not starve them. */
static bool is_fifo(const struct worker *worker)
{
	const struct run *run = worker->run;

	return run->set.fifo && worker < run->workers + run->set.threads / 2;
}

static int work(void *argument)
{
	struct worker *worker = argument;
	struct run *run = worker->run;
	u32 i;

	allow_signal(SIGINT);
	allow_signal(SIGKILL);
	atomic_inc(&run->ready);
	while (!READ_ONCE(run->go))
		schedule_timeout_uninterruptible(1);
	/* Those that woke up a tick earlier would have no rivals. */
	atomic_inc(&run->started);
	while (atomic_read(&run->started) < run->set.threads) {
		cpu_relax();
		cond_resched();
	}
	if (is_fifo(worker))
		sched_set_fifo(get_current());
	for (i = 0; i < run->set.count; i++) {
		if (run->set.move && !(draw(worker) % 32))
			move(worker);
		note_driven(worker, &worker->driven);
		if (run->set.irq && !(draw(worker) % 16))
			worker->irqs_queued += irq_work_queue(&worker->irq);
		if (run->signals && !(draw(worker) % 4))
			disturb(worker);
		if (run->reads && draw(worker) % 100 < run->set.reads)
			read_turn(worker);
		else
			one_turn(worker);
		if (run->set.irq && !(draw(worker) % 16))
			take_with_irqs_off(worker);
		be_away(worker);
		if (!(i % 64))
			cond_resched();
	}
	sched_set_normal(get_current(), 0);
	irq_work_sync(&worker->irq);
	if (atomic_dec_and_test(&run->working)) {
		MARK_DONE();
		complete(&run->done);
	}
	while (!kthread_should_stop())
		schedule_timeout_idle(HZ);
	return 0;
}

/* ---- Events ---- */

static const char *const event_names[W_EVENTS] = {
#define EVENT(name, meaning) [W_EVENT_##name] = #name,
#include "events.def"
#undef EVENT
};

static u64 events[W_EVENTS]; /* of the last run */

/* Brackets a run. */
static void begin_events(void)
{
	unsigned int i;

	for (i = 0; i < W_EVENTS; i++)
		events[i] = w_counted(i);
	static_branch_enable(&w_listening);
}

static void end_events(void)
{
	unsigned int i;

	static_branch_disable(&w_listening);
	for (i = 0; i < W_EVENTS; i++)
		events[i] = w_counted(i) - events[i];
}

/* ---- The result ---- */

#define RESULT 768

static char result[RESULT];

/* The difference between the updates made and the updates counted under the lock. */
static u64 lost_of(const struct guarded *guarded, u64 done)
{
	u64 before = guarded->before > done ? guarded->before - done : done - guarded->before;
	u64 after = guarded->after > done ? guarded->after - done : done - guarded->after;

	return max(before, after);
}

static bool judge(struct run *run, u64 nanoseconds)
{
	u64 taken = 0, inner = 0, irqs = 0, interrupted = 0, reads = 0, together = 0,
	    downgrades = 0, lost, overlaps;
	u64 driven = 0, driven_waiting = 0;
	bool failed;
	u32 i;

	for (i = 0; i < run->set.threads; i++) {
		taken += run->workers[i].taken;
		inner += run->workers[i].inner;
		irqs += atomic_read(&run->workers[i].irqs);
		interrupted += run->workers[i].interrupted;
		reads += run->workers[i].reads;
		together += run->workers[i].together;
		downgrades += run->workers[i].downgrades;
		driven += run->workers[i].driven;
		driven_waiting += run->workers[i].driven_waiting;
	}
	lost = lost_of(&run->outer, taken) + lost_of(&run->in_irq, inner + irqs) +
	       lost_of(&run->inner, run->innermost.before) + run->struck.lost;
	overlaps = run->outer.overlaps + run->inner.overlaps + run->innermost.overlaps +
		   run->in_irq.overlaps + run->struck.overlaps + atomic_read(&run->seen_by_readers);
	failed = lost || overlaps || run->left.placeless || run->left.deaf || run->left.pinned;
	scnprintf(result, sizeof(result),
		  "lock=%s threads=%u acquisitions=%llu lost=%llu overlaps=%llu irqs=%llu "
		  "nmis=%llu same_per_1000=%llu "
		  "remote_per_1000=%llu crossed_per_1000=%llu off_route_per_1000=%llu "
		  "most_passed=%llu most_urgent_passed=%llu most_late=%llu parks=%llu "
		  "interrupted=%llu reads=%llu together=%llu downgrades=%llu driven=%llu "
		  "driven_waiting=%llu named=%llu misnamed=%llu left=%u placeless=%u deaf=%u "
		  "pinned=%u ms=%llu %s",
		  run->name, run->set.threads, taken, lost, overlaps, irqs, run->struck.nmis,
		  run->same * 1000 / max(taken, 1ULL), run->remote * 1000 / max(taken, 1ULL),
		  run->remote * 1000 / max(run->local + run->remote, 1ULL),
		  run->off_route * 1000 / max(taken, 1ULL), run->most_passed,
		  run->most_urgent_passed, run->most_late, events[W_EVENT_park], interrupted, reads,
		  together, downgrades, driven, driven_waiting, (u64)atomic64_read(&named),
		  (u64)atomic64_read(&misnamed), run->left.waits, run->left.placeless,
		  run->left.deaf, run->left.pinned, nanoseconds / 1000000,
		  failed ? "FAILED" : "ok");
	return !failed;
}

/* ---- Start and end of a run ---- */

/*
 * The outer lock of the last run of one of the kernel's own locks, which the next run of that lock
 * uses as well: its address lasts, and can have settings of its own.
 */
static struct pound_spin *lasting;

static void forget_lasting(void)
{
	if (lasting)
		pound_spin_destroy(lasting);
	lasting = NULL;
}

/* The outer lock of a run of the lock @name; a run that fails or hangs does not give it back. */
static struct pound_spin *outer_lock(const char *name)
{
	struct pound_spin *lock = lasting;

	if (lock && spin_kind_of(lock) == spin_find(name)) {
		lasting = NULL;
		return lock;
	}
	forget_lasting();
	return pound_spin_create(name, GFP_KERNEL);
}

static void destroy(struct run *run)
{
	struct guarded *all[] = {&run->outer, &run->inner, &run->innermost, &run->in_irq};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		if (!IS_ERR_OR_NULL(all[i]->lock))
			pound_spin_destroy(all[i]->lock);
	kvfree(run->times);
	kfree(run->workers);
	kfree(run);
}

/* Tells lockdep which of a run's locks @lock is. */
static void nest(struct pound_spin *lock, unsigned int depth)
{
	if (spin_kind_of(lock)->nest)
		spin_kind_of(lock)->nest(spin_bytes_of(lock), depth);
}

static struct run *create(const char *name, const struct settings *set)
{
	struct run *run = kzalloc(sizeof(*run), GFP_KERNEL);
	struct guarded *all[SPIN_DEPTHS];
	unsigned int i;
	int error = 0;

	if (!run)
		return ERR_PTR(-ENOMEM);
	*run = (struct run){.name = name,
			    .set = *set,
			    .sleeps = spin_find(name)->sleeps,
			    .signals = spin_find(name)->lock_state && set->signal,
			    .reads = spin_find(name)->read && set->reads,
			    .last_cpu = -1,
			    .last_part = NUMA_NO_NODE};
	if (run->sleeps)
		run->set.irq = run->set.nmi = 0;
	init_completion(&run->done);
	atomic_set(&run->working, set->threads);
	run->workers = kcalloc(set->threads, sizeof(*run->workers), GFP_KERNEL);
	run->late = (u64)set->late * NSEC_PER_MSEC;
	if (set->late)
		run->times = kvcalloc(set->threads, (size_t)set->count * sizeof(u64), GFP_KERNEL);
	if (!run->workers || (set->late && !run->times))
		error = -ENOMEM;
	all[0] = &run->outer;
	all[1] = &run->inner;
	all[2] = &run->innermost;
	all[3] = &run->in_irq;
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		all[i]->lock = i ? pound_spin_create(name, GFP_KERNEL) : outer_lock(name);
		if (IS_ERR(all[i]->lock))
			error = PTR_ERR(all[i]->lock);
		else
			nest(all[i]->lock, i);
	}
	if (!error)
		return run;
	destroy(run);
	return ERR_PTR(error);
}

static int begin(struct run *run)
{
	struct worker *worker;
	int cpu = -1;
	u32 i;

	for (i = 0; i < run->set.threads; i++) {
		worker = &run->workers[i];
		worker->run = run;
		worker->random = 2654435769u * (i + 1);
		init_irq_work(&worker->irq, take_in_irq);
		worker->task = kthread_create(work, worker, "poundlock/%u", i);
		if (IS_ERR(worker->task))
			return PTR_ERR(worker->task);
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
		kthread_bind(worker->task, cpu);
		worker->cpu = cpu;
	}
	for (i = 0; i < run->set.threads; i++)
		wake_up_process(run->workers[i].task);
	while (atomic_read(&run->ready) < run->set.threads)
		msleep(20);
	MARK_RUN();
	WRITE_ONCE(run->go, true);
	return 0;
}

/* Ends the threads that begin() made. Threads that were never woken end at once. */
static void end(struct run *run)
{
	u32 i;

	for (i = 0; i < run->set.threads; i++)
		if (!IS_ERR_OR_NULL(run->workers[i].task))
			kthread_stop(run->workers[i].task);
}

/* Waits for all threads. Returns false if the lock was not acquired for `stall` seconds. */
static bool finish(struct run *run)
{
	u64 seen;

	do {
		seen = READ_ONCE(run->outer.before);
		if (wait_for_completion_timeout(&run->done, run->set.stall * HZ))
			return true;
	} while (READ_ONCE(run->outer.before) != seen);
	return false;
}

static int torture(const char *name, const struct settings *set)
{
	struct run *run = create(name, set);
	struct leaving *leaving = NULL;
	int error;
	u64 began;

	if (IS_ERR(run))
		return PTR_ERR(run);
	if (set->leave && spin_find(name)->has_queue) {
		leaving = leave_begin(name, set->leave);
		if (!leaving) {
			destroy(run);
			return -ENOMEM;
		}
	}
	if (run->set.nmi) {
		error = nmi_begin(name);
		if (error) {
			if (leaving)
				(void)leave_end(leaving);
			destroy(run);
			return error;
		}
	}
	w_heeds_urgency = set->urgent;
	atomic64_set(&named, 0);
	atomic64_set(&misnamed, 0);
	begin_events();
	began = local_clock();
	error = begin(run);
	if (!error && !finish(run)) {
		scnprintf(result, sizeof(result),
			  "lock=%s threads=%u acquisitions=%llu of %llu, then none for %u s HUNG",
			  name, set->threads, run->outer.before, (u64)set->threads * set->count,
			  set->stall);
		pr_err("%s\n", result);
		/*
		 * Threads of a hung run never leave the lock, so the module and the run's memory
		 * stay for good.
		 */
		__module_get(THIS_MODULE);
		return -ETIMEDOUT;
	}
	began = local_clock() - began;
	end(run);
	end_events();
	if (run->set.nmi)
		run->struck = nmi_end();
	if (leaving)
		run->left = leave_end(leaving);
	if (!error) {
		error = judge(run, began) ? 0 : -EILSEQ;
		pr_info("%s\n", result);
	}
	if (!error && strstarts(name, "native")) {
		lasting = run->outer.lock;
		run->outer.lock = NULL;
	}
	destroy(run);
	return error;
}

/* ---- The parameters ---- */

static DEFINE_MUTEX(running);

static bool set_one(struct settings *set, const char *key, size_t length, u32 value)
{
	const struct {
		const char *key;
		u32 *value, least, most;
	} keys[] = {
		{"threads", &set->threads, 1, 4096},
		{"count", &set->count, 1, U32_MAX},
		{"hold", &set->hold, 0, 1000000},
		{"pause", &set->pause, 0, 1000000},
		{"try", &set->try, 0, 1},
		{"nest", &set->nest, 0, 1},
		{"irq", &set->irq, 0, 1},
		{"urgent", &set->urgent, 0, 100},
		{"late", &set->late, 0, 60000},
		{"stay", &set->stay, 0, 1},
		{"signal", &set->signal, 0, 1},
		{"leave", &set->leave, 0, 1000000},
		{"nmi", &set->nmi, 0, 1},
		{"reads", &set->reads, 0, 100},
		{"fifo", &set->fifo, 0, 1},
		{"move", &set->move, 0, 1},
		{"part", &set->part, 0, 4096},
		{"stall", &set->stall, 1, 3600},
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(keys); i++)
		if (strlen(keys[i].key) == length && !memcmp(keys[i].key, key, length))
			break;
	if (i == ARRAY_SIZE(keys) || value < keys[i].least || value > keys[i].most)
		return false;
	*keys[i].value = value;
	return true;
}

/* Parses KEY=VALUE, a setting of the run or of the lock @name. */
static int parse_one(const char *name, const char *word, struct settings *set)
{
	size_t length = strcspn(word, "=");
	u32 value;

	if (word[length] && !kstrtou32(word + length + 1, 10, &value) &&
	    (set_one(set, word, length, value) || spin_set(name, word, length, value)))
		return 0;
	pr_err("'%s' is no setting of a run or of %s\n", word, name);
	return -EINVAL;
}

/* Splits @words into the lock's name, which it returns, and the settings. */
static const char *parse(char *words, struct settings *set)
{
	const char *name = strsep(&words, " ");
	char *word;
	int error;

	if (!spin_find(name)) {
		pr_err("there is no lock '%s'\n", name);
		return ERR_PTR(-ENOENT);
	}
	while ((word = strsep(&words, " "))) {
		error = *word ? parse_one(name, word, set) : 0;
		if (error)
			return ERR_PTR(error);
	}
	return name;
}

static int run_set(const char *value, const struct kernel_param *param)
{
	struct settings set = {.threads = num_online_cpus(),
			       .count = 10000,
			       .hold = 16,
			       .pause = 64,
			       .try = 1,
			       .nest = 1,
			       .irq = 1,
			       .urgent = 25,
			       .stay = 1,
			       .signal = 1,
			       .reads = 75,
			       .stall = 20};
	char *words;
	const char *name;
	int error;

	/* The parameter may be written before the module is ready. */
	if (THIS_MODULE->state != MODULE_STATE_LIVE)
		return -EAGAIN;
	words = kstrdup(value, GFP_KERNEL);
	if (!words)
		return -ENOMEM;
	name = parse(strim(words), &set);
	mutex_lock(&running);
	error = IS_ERR(name) ? PTR_ERR(name) : torture(name, &set);
	mutex_unlock(&running);
	/* A hung run keeps using its name. */
	if (error != -ETIMEDOUT)
		kfree(words);
	return error;
}

static int result_get(char *buffer, const struct kernel_param *param)
{
	int length;

	mutex_lock(&running);
	length = scnprintf(buffer, PAGE_SIZE, "%s\n", result);
	mutex_unlock(&running);
	return length;
}

static int events_get(char *buffer, const struct kernel_param *param)
{
	unsigned int i;
	int length = 0;

	mutex_lock(&running);
	for (i = 0; i < W_EVENTS; i++)
		if (events[i])
			length += scnprintf(buffer + length, PAGE_SIZE - length, "%s %llu\n",
					    event_names[i], events[i]);
	mutex_unlock(&running);
	return length;
}

static int locks_get(char *buffer, const struct kernel_param *param)
{
	unsigned int i;
	int length = 0;

	for (i = 0; i < spin_kinds_count; i++)
		length +=
			scnprintf(buffer + length, PAGE_SIZE - length, "%s\n", spin_kinds[i].name);
	return length;
}

/* For poundlock/locks of debugfs; root reads it. */
static int address_get(char *buffer, const struct kernel_param *param)
{
	int length;

	mutex_lock(&running);
	length = scnprintf(buffer, PAGE_SIZE, "%lx\n",
			   lasting ? (unsigned long)spin_bytes_of(lasting) : 0);
	mutex_unlock(&running);
	return length;
}

static const struct kernel_param_ops run_ops = {.set = run_set};
static const struct kernel_param_ops result_ops = {.get = result_get};
static const struct kernel_param_ops events_ops = {.get = events_get};
static const struct kernel_param_ops locks_ops = {.get = locks_get};
static const struct kernel_param_ops address_ops = {.get = address_get};

module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "LOCK [KEY=VALUE...]: tortures that lock");
module_param_cb(result, &result_ops, NULL, 0444);
MODULE_PARM_DESC(result, "what the last run counted");
module_param_cb(events, &events_ops, NULL, 0444);
MODULE_PARM_DESC(events, "how often each event of core/events.def happened in the last run");
module_param_cb(locks, &locks_ops, NULL, 0444);
MODULE_PARM_DESC(locks, "the locks there are");
module_param_cb(address, &address_ops, NULL, 0400);
MODULE_PARM_DESC(address, "of the kernel's own lock that the last run used, and the next one uses");

static int __init poundlock_init(void)
{
	if (!w_start())
		return -ENOMEM;
	w_park_start();
	share_start();
	stall_start();
	return 0;
}

static void __exit poundlock_exit(void)
{
	stall_end();
	share_end();
	forget_lasting();
	w_end();
}

module_init(poundlock_init);
module_exit(poundlock_exit);
MODULE_DESCRIPTION("Poundlock's spin locks, and their torture");
MODULE_LICENSE("Dual MIT/GPL");
