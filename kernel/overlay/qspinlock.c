// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Replaces Linux's kernel/locking/qspinlock.c: the same four bytes and fast paths, with the slow
 * path that the boot parameter chooses:
 *
 *	poundlock.spin=stock|cna|shfl|ron|cfl
 *
 * stock is the replaced file, unchanged. The others are queues of core/ around the kernel's word.
 * Writing a name to debugfs's poundlock/spin changes the choice on the running machine. With the
 * boot parameter poundlock.events, poundlock/events counts the events of the overlay's locks
 * (core/events.def). Three more parameters are also files of debugfs, and can be changed there:
 *
 *	poundlock.threshold=MS    cna, shfl: milliseconds for which a waiter of another domain may
 *	                          be bypassed (default: 10)
 *	poundlock.domain=LEVEL    which CPUs form a domain, whose waiters cna and shfl keep
 *	                          together (domains.c; default: node)
 *	poundlock.urgent=0|1      1: no later waiter bypasses one that waits in an interrupt, with
 *	                          interrupts off or at a real-time priority (default); 0: as others
 *
 * The word under cna and shfl:
 *
 *   bits  31 .. 18    17 16     15 .. 8   7 .. 0
 *         CPU + 1     context   pending   locked
 *         ╰────── tail ─────╯
 *
 *   tail     the name of the last waiter's node; 0: no waiters in the queue
 *   pending  a waiter without a node, which is before the queue; as stock's. cfl's is OPEN
 *   locked   set by a newcomer only if the whole word is 0, else by the pending waiter or, if there
 *            is none, by the queue head; cleared by the holder
 *
 *   0 ──newcomer──▶ locked ──second contender──▶ pending|locked ──release──▶ pending ──it──▶ locked
 *   pending|locked ──waiter──▶ tail|pending|locked ──release──▶ tail|pending ──▶ tail|locked
 *   tail|locked ──release──▶ tail ──head──▶ tail|locked, or locked if the head is the last waiter
 *
 * Under ron, tail is the word of core/ron_shared.h: 0 exactly if there are no waiters, but no
 * node's name.
 *
 * Promises: mutual exclusion. Only cfl admits barging (cfl_qspinlock.h). Order and bypass bound of
 * the queue are those of core/cna.h, core/part/shuffle.h, core/cfl/order.h and
 * core/ron_shared.h, except that the queue heads of cna and ron choose their successors while they
 * wait, and that cna and shfl bound bypassing by `threshold`. The pending waiter came before all
 * waiters of the queue, and is served before them. cfl knows no urgent waiters. Waiters spin. 4
 * bytes per lock. Nodes and slots belong to CPUs, one per context; a fifth waiter of one CPU polls.
 */
#include <linux/spinlock.h> /* declares the slow paths, which are renamed below */

/*
 * The original, under another name. With PARAVIRT_SPINLOCKS its file also has a slow path for
 * hypervisors, to which another release belongs; both stay stock's.
 */
void stock_spin_lock_slowpath(struct qspinlock *lock, u32 val);

#ifdef CONFIG_PARAVIRT_SPINLOCKS
#define REPLACED native_queued_spin_lock_slowpath
#define native_queued_spin_lock_slowpath stock_spin_lock_slowpath
#else
#define REPLACED queued_spin_lock_slowpath
#define queued_spin_lock_slowpath stock_spin_lock_slowpath
#endif

#include <../kernel/locking/qspinlock.c>

#undef native_queued_spin_lock_slowpath
#undef queued_spin_lock_slowpath
/*
 * The hypervisors' slow path has renamed it: that one takes a free lock past the queue, whose head
 * must be pending then. Our heads are not.
 */
#undef queued_spin_trylock

#include "own_policy.h"

#ifdef OWN_POLICIES
#include <linux/bpf.h>
#include <linux/bpf_verifier.h>
#include <linux/btf.h>
#endif
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/static_call.h>
#include <linux/stop_machine.h>
#include <linux/string.h>

#include "choice.h"

#define CREATE_TRACE_POINTS
#include "poundlock_trace.h"
#undef CREATE_TRACE_POINTS

#if _Q_TAIL_OFFSET != 16
#error "a tail of 16 bits knows fewer than 16,383 CPUs"
#endif

/* A pointer to the last node in core/ is the node's 16-bit name here. */
#define W_TAIL(T) u16
#define W_SHORT u16
static inline u16 w_name_of(const void *node);
static inline void *w_named(u16 name);

/* Bypassing ends by time, not by count. Never 0. */
#define W_THRESHOLD READ_ONCE(threshold_time)

#define W_SHARES
/* Also defines the world's functions: in the kernel, this is their only file. */
#include "world.c"

static u32 threshold_time __read_mostly = W_THRESHOLD_TIME(W_THRESHOLD_MS);

#include "tuning.c"
#ifdef OWN_POLICIES
#include "bpf_policy.c"
#endif

#include "domains.c"

#include "pending.h"
#include "spin_queues.h"

/* ---- CFL ---- */

#include "cfl_qspinlock.h"

/* ---- The choice ---- */

DEFINE_STATIC_CALL(spin_slowpath, stock_spin_lock_slowpath);

void __lockfunc REPLACED(struct qspinlock *lock, u32 val);

void __lockfunc REPLACED(struct qspinlock *lock, u32 val)
{
	/* On a hypervisor whose CPUs may be preempted: stock's test-and-set, without a queue. */
	if (virt_spin_lock(lock))
		return;
	static_call(spin_slowpath)(lock, val);
}
EXPORT_SYMBOL(REPLACED);

static const struct {
	const char *name;
	void (*slowpath)(struct qspinlock *lock, u32 val);
	bool needs_domains; /* it has no advantage over stock's where there is one domain */
} choices[] = {
	{"stock", stock_spin_lock_slowpath, false}, {"cna", cna_spin_lock_slowpath, true},
	{"shfl", shfl_spin_lock_slowpath, true},    {"ron", ron_spin_lock_slowpath, false},
	{"cfl", cfl_spin_lock_slowpath, false},
};

static unsigned int choice; /* in use */
static unsigned int wanted;

static bool has_memory; /* the world's */

/*
 * In a guest, the kernel may use another lock than any choice: one that its hypervisor provides, or
 * stock's test-and-set lock on hypervisors that provide none (virt_spin_lock()). That is settled
 * before begin().
 */
static const struct foreign {
	const char *name, *reason;
} paravirtual = {"paravirt", "this hypervisor's CPUs use its own spin lock"},
  test_and_set = {"test-and-set", "this hypervisor's CPUs use stock's test-and-set spin lock"};

/* The lock that is used instead of any choice; NULL: none. */
static const struct foreign *foreign_lock(void)
{
#ifdef CONFIG_PARAVIRT_SPINLOCKS
	if (!pv_is_native_spin_unlock())
		return &paravirtual;
#endif
#ifdef virt_spin_lock
	if (static_key_enabled(&virt_spin_lock_key))
		return &test_and_set;
#endif
	return NULL;
}

/* The reason why the machine cannot use the choice; NULL: it can. */
static const char *reason_against(unsigned int which)
{
	const struct foreign *foreign = foreign_lock();

	if (choices[which].slowpath == stock_spin_lock_slowpath)
		return NULL;
	if (foreign)
		return foreign->reason;
	if (!has_memory)
		return "there is no memory for it";
	/* The slots that ron's word can tell apart are limited. */
	if (choices[which].slowpath == ron_spin_lock_slowpath &&
	    ron_shared_slots() > RON_SHARED_MOST)
		return "there are too many CPUs";
	return NULL;
}

/* The name of the spin lock in use. */
static const char *name_in_use(void)
{
	const struct foreign *foreign = foreign_lock();

	return foreign ? foreign->name : choices[READ_ONCE(choice)].name;
}

/* The index of the choice @name; ARRAY_SIZE(choices) if there is none. */
static unsigned int find_choice(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(choices) && strcmp(choices[i].name, name); i++)
		;
	return i;
}

static int __init choose(char *name)
{
	unsigned int found = find_choice(name);

	if (found < ARRAY_SIZE(choices))
		wanted = found;
	else
		pr_err("poundlock.spin=%s: there is no such spin lock; the stock one is used\n",
		       name);
	return 0;
}
early_param("poundlock.spin", choose);

/* Runs before the other CPUs start, while there are no waiters. */
static int __init begin(void)
{
	const char *reason;

	has_memory = w_start();
	reason = reason_against(wanted);
	if (reason) {
		pr_err("poundlock.spin=%s: not used: %s\n", choices[wanted].name, reason);
		wanted = 0;
	}
	choice = wanted;
	static_call_update(spin_slowpath, choices[choice].slowpath);
	pr_info("poundlock: spin locks by %s\n", name_in_use());
	return 0;
}
early_initcall(begin);

/* ---- Changing the choice on a running machine ---- */

static void (*chosen_slowpath)(struct qspinlock *lock, u32 val);

/*
 * The slow path during a change. Nothing stops NMIs: they poll, as a fifth waiter does. That uses
 * no node, and is the same under each choice.
 */
static void chosen_spin_lock_slowpath(struct qspinlock *lock, u32 val)
{
	if (in_nmi()) {
		while (!queued_spin_trylock(lock))
			cpu_relax();
		return;
	}
	READ_ONCE(chosen_slowpath)(lock, val);
}

/*
 * The other CPUs are stopped with interrupts off. Waiters have preemption off, so only NMIs can be
 * waiting, and these poll. The nodes are cleared, since CFL's nodes carry a free mark where CNA's
 * carry other data.
 */
static int switch_slowpath(void *slowpath)
{
	int cpu;

	for_each_possible_cpu(cpu) memset(per_cpu_ptr(places, cpu), 0, sizeof(places));
	WRITE_ONCE(chosen_slowpath, slowpath);
	return 0;
}

/*
 * A static call cannot change while the machine is stopped, since that sleeps, nor while there are
 * waiters. So during the change it calls through a pointer, which changes at one moment for all.
 */
static void switch_choice(unsigned int next)
{
	chosen_slowpath = choices[choice].slowpath;
	static_call_update(spin_slowpath, chosen_spin_lock_slowpath);
	/* Ends with the last NMI that may wait in the former slow path. */
	synchronize_rcu();
	(void)stop_machine(switch_slowpath, choices[next].slowpath, NULL);
	static_call_update(spin_slowpath, choices[next].slowpath);
	choice = next;
}

static DEFINE_MUTEX(switching); /* changes of `choice` and `wanted` */

/* Uses the wanted spin lock, or stock's if that one needs domains and there is only one. */
static void apply_choice(void)
{
	const unsigned int next = choices[wanted].needs_domains && has_one_domain() ? 0 : wanted;

	lockdep_assert_held(&switching);
	if (next == choice)
		return;
	switch_choice(next);
	pr_info("poundlock: spin locks by %s\n", choices[choice].name);
}

/* ---- debugfs: poundlock/spin ---- */

static ssize_t spin_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	char buffer[LONGEST_NAME], *name;
	int error = choice_read(buffer, from, size, &name);
	const char *reason;
	unsigned int found;

	if (error)
		return error;
	found = find_choice(name);
	reason =
		found == ARRAY_SIZE(choices) ? "there is no such spin lock" : reason_against(found);
	if (reason)
		return refuse("spin", name, -EINVAL, reason);
	mutex_lock(&switching);
	wanted = found;
	apply_choice();
	mutex_unlock(&switching);
	return size;
}

static int spin_show(struct seq_file *file, void *unused)
{
	seq_printf(file, "%s\n", name_in_use());
	return 0;
}

static int spin_open(struct inode *inode, struct file *file)
{
	return single_open(file, spin_show, NULL);
}

static const struct file_operations spin_fops = {
	.owner = THIS_MODULE,
	.open = spin_open,
	.read = seq_read,
	.write = spin_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* ---- poundlock.domain ---- */

static ssize_t domain_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	char buffer[LONGEST_NAME], *name;
	int error = choice_read(buffer, from, size, &name), found;

	if (error)
		return error;
	found = match_string(levels, ARRAY_SIZE(levels), name);
	if (found < 0)
		return refuse("domain", name, -EINVAL, NO_LEVEL);
	mutex_lock(&switching);
	set_level((enum level)found);
	apply_choice();
	mutex_unlock(&switching);
	return size;
}

static const struct file_operations domain_fops = {
	.owner = THIS_MODULE,
	.open = domain_open,
	.read = seq_read,
	.write = domain_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* Lays the domains of the parameter, when the CPUs are online and their caches known. */
static int __init begin_domains(void)
{
	int state =
		cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "poundlock:domain", lay_for, NULL);

	if (state < 0)
		pr_err("poundlock: domains do not follow CPU hotplug: error %d\n", state);
	mutex_lock(&switching);
	set_level(level);
	apply_choice();
	mutex_unlock(&switching);
	pr_info("poundlock: %u domains by %s\n", w_domains, levels[level]);
	return 0;
}
late_initcall(begin_domains);

/* ---- poundlock.threshold and poundlock.urgent ---- */

static unsigned int threshold = W_THRESHOLD_MS;

static int threshold_set(void *unused, u64 milliseconds)
{
	if (!milliseconds || milliseconds > W_THRESHOLD_MOST)
		return -EINVAL;
	WRITE_ONCE(threshold, milliseconds);
	WRITE_ONCE(threshold_time, W_THRESHOLD_TIME(milliseconds));
	return 0;
}

static int threshold_get(void *unused, u64 *milliseconds)
{
	*milliseconds = READ_ONCE(threshold);
	return 0;
}
DEFINE_SIMPLE_ATTRIBUTE(threshold_fops, threshold_get, threshold_set, "%llu\n");

static int urgent_set(void *unused, u64 urgent)
{
	if (urgent > 1)
		return -EINVAL;
	WRITE_ONCE(w_heeds_urgency, urgent);
	return 0;
}

static int urgent_get(void *unused, u64 *urgent)
{
	*urgent = READ_ONCE(w_heeds_urgency);
	return 0;
}
DEFINE_SIMPLE_ATTRIBUTE(urgent_fops, urgent_get, urgent_set, "%llu\n");

static int __init set_number(const char *name, const char *text,
			     int (*set)(void *unused, u64 number))
{
	u64 number;

	if (!text || kstrtou64(text, 10, &number) || set(NULL, number))
		pr_err("poundlock.%s=%s: out of range; the default is used\n", name, text);
	return 0;
}

static int __init choose_threshold(char *text)
{
	return set_number("threshold", text, threshold_set);
}
early_param("poundlock.threshold", choose_threshold);

static int __init choose_urgent(char *text)
{
	return set_number("urgent", text, urgent_set);
}
early_param("poundlock.urgent", choose_urgent);

/* ---- poundlock.events: counts of the locks' events, in debugfs ---- */

static int __init count_events(char *unused)
{
	static_branch_enable(&w_listening);
	return 0;
}
early_param("poundlock.events", count_events);

static int events_show(struct seq_file *file, void *unused)
{
	static const char *const names[W_EVENTS] = {
#define EVENT(name, meaning) [W_EVENT_##name] = #name,
#include "events.def"
#undef EVENT
	};
	unsigned int i;

	for (i = 0; i < W_EVENTS; i++)
		seq_printf(file, "%s=%llu\n", names[i], w_counted(i));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(events);

static int __init show(void)
{
	choice_show("spin", &spin_fops, 0600, NULL);
	choice_show("domain", &domain_fops, 0600, NULL);
	choice_show("domains", &domains_fops, 0400, NULL);
	choice_show("events", &events_fops, 0400, NULL);
	choice_show("threshold", &threshold_fops, 0600, NULL);
	choice_show("urgent", &urgent_fops, 0600, NULL);
	return 0;
}
late_initcall(show);
