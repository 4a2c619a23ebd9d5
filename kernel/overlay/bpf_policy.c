// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Policies as BPF programs: an operator loads a struct_ops map of the type struct pound_policy, and
 * names it in debugfs's poundlock/spin_policy, mutex_policy, rwsem_policy or locks; included by
 * qspinlock.c. poundlock/policies lists what has been loaded since boot.
 *
 * Where a program is called: by a task that is about to queue for a contended lock, with preemption
 * off, and interrupts on. Thus an interrupt handler may run at the same instruction. All locks that
 * the task holds or waits for are locks that no interrupt handler takes. So whatever is safe in an
 * interrupt handler is safe in the program and in its trampoline, also if they wait for a lock.
 * Elsewhere the program is not called, and the waiter is urgent: no program delays a waiter that
 * has interrupts off or is an interrupt handler. This excludes the locks of the scheduler and of
 * printk, and most of BPF's own. A CPU whose program is running calls none, so that a lock that BPF
 * takes does not recurse.
 *
 * Nothing that a program returns can break a lock: the bound on bypass is part/shuffle.h's.
 *
 * The longest wait: each wait is counted in the period of its policy in which it begins. A timer
 * ends the periods, and the policy if a wait has lasted for OWN_POLICY_PERIODS whole ones and goes
 * on. Waits that end are compared with the limit at once.
 *
 * A policy's name is found in a slot that is never reused for another name, so that settings that
 * have its number stay valid. Without a program its locks use numa.
 *
 *   unnamed ──registration──▶ loaded ──removal of the map──▶ unloaded
 *                               │ ▲                              │
 *                               │ └─────── registration ─────────┤
 *                               └──the kernel, own_policy_stop()──▶ stopped, then as unloaded
 */
#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/irq_work.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/timer.h>

#include "accounts.h"
#include "choice.h"
#include "own_policy.h"

/* The data of a waiter that its program reads. */
struct pound_waiter {
	u64 lock; /* the address */
	u32 cpu;
	u32 domain;
	u32 held; /* with `measures`: the average time of its holds of a mutex, ns; 0: unknown */
};

/* The type of the struct_ops maps. */
struct pound_policy {
	/*
	 * Returns the rank of the calling task as a waiter: smaller ones come first. More than
	 * OWN_POLICY_RANK_MOST count as that.
	 */
	u32 (*rank)(struct pound_waiter *waiter);
	u32 together; /* 1: waiters of the shuffler's rank follow it, and no others */
	u32 measures; /* 1: mutexes measure their holds while it is loaded, for pound_waiter.held */
	u32 timeout_ms; /* the longest wait for a lock; 0: OWN_POLICY_TIMEOUT */
	u32 limit_us;   /* the longest call of `rank`; 0: OWN_POLICY_LIMIT */
	char name[OWN_POLICY_NAME];
};

#define OWN_POLICY_TIMEOUT 30000u
#define OWN_POLICY_LIMIT 1000u
/* Calls in succession that last too long before the policy ends: interrupts lengthen calls too. */
#define OWN_POLICY_STRIKES 8u
/* Periods in the longest wait, and those whose waits are counted apart: a power of two. */
#define OWN_POLICY_PERIODS 4u
#define OWN_POLICY_COUNTED 8u

struct own_policy_slot {
	struct pound_policy __rcu *policy; /* NULL: none is loaded */
	const char *stopped;               /* why the kernel ended the last one; NULL: it did not */
	u32 strikes;
	u32 period; /* written by the timer */
	struct timer_list timer;
	struct irq_work report;
	char name[OWN_POLICY_NAME]; /* constant once the slot is named */
};

static struct own_policy_slot own_policies[OWN_POLICY_MOST];
static u32 own_policies_named; /* the first of them */
static DEFINE_PER_CPU(u64, own_policy_calls[OWN_POLICY_MOST]);
/*
 * Waits that began on this CPU, less those that ended here, by the periods in which they began.
 * Only the sums of all CPUs mean something.
 */
static DEFINE_PER_CPU(u32, own_policy_waits[OWN_POLICY_MOST][OWN_POLICY_COUNTED]);
static DEFINE_PER_CPU(bool, own_policy_runs);
DEFINE_STATIC_KEY_FALSE(own_policy_measures);

static const char own_policy_waited_long[] = "a waiter waited for too long";

/* Registrations. Not `tuning`: a registration must not wait for a write to debugfs. */
static DEFINE_MUTEX(own_policy_loading);

/* ---- For the locks ---- */

bool own_policy_is_loaded(u32 number)
{
	return READ_ONCE(own_policies[number].policy);
}

/* loaded -> stopped. Callable where a program is. @policy is compared, and not accessed. */
static void own_policy_stop(struct own_policy_slot *slot, struct pound_policy *policy,
			    const char *why)
{
	if (cmpxchg((struct pound_policy **)&slot->policy, policy, NULL) != policy)
		return;
	WRITE_ONCE(slot->stopped, why);
	/* A waiter for a lock of printk's must not print. */
	irq_work_queue(&slot->report);
}

/* The longest call or wait for which 0 stands for @otherwise. */
static u32 own_policy_limit(u32 limit, u32 otherwise)
{
	return limit ? limit : otherwise;
}

/* Whether the caller may call a program; see above. */
static bool own_policy_may_run(void)
{
	return !irqs_disabled() && !interrupt_context_level() && rcu_is_watching() &&
	       !__this_cpu_read(own_policy_runs);
}

/* Ends a policy whose calls last too long; this one lasted @time. */
static void own_policy_lasted(struct own_policy_slot *slot, struct pound_policy *policy, u64 time)
{
	if (time <= own_policy_limit(policy->limit_us, OWN_POLICY_LIMIT) * (u64)NSEC_PER_USEC) {
		if (READ_ONCE(slot->strikes))
			WRITE_ONCE(slot->strikes, 0);
		return;
	}
	/* Calls that end at the same time may count as one. */
	WRITE_ONCE(slot->strikes, READ_ONCE(slot->strikes) + 1);
	if (READ_ONCE(slot->strikes) >= OWN_POLICY_STRIKES)
		own_policy_stop(slot, policy, "its rank() takes too long");
}

u32 own_policy_note(u32 number, const void *lock, u32 held)
{
	struct pound_waiter waiter = {.lock = (unsigned long)lock,
				      .cpu = w_cpu(),
				      .domain = w_domain(),
				      .held = held};
	struct own_policy_slot *slot = &own_policies[number];
	struct pound_policy *policy;
	u64 since;
	u32 rank;

	if (w_urgent() || !own_policy_may_run())
		return OWN_POLICY_URGENT;
	/* Preemption is off, which protects RCU's readers. */
	policy = rcu_dereference_sched(slot->policy);
	if (!policy)
		return 0;
	__this_cpu_inc(own_policy_calls[number]);
	__this_cpu_write(own_policy_runs, true);
	since = w_now();
	rank = policy->rank(&waiter);
	own_policy_lasted(slot, policy, w_now() - since);
	__this_cpu_write(own_policy_runs, false);
	return min(rank, OWN_POLICY_RANK_MOST) | (policy->together ? OWN_POLICY_TOGETHER : 0);
}

u32 own_policy_wait(u32 number)
{
	/* A caller that is delayed here has been waiting since that period, too. */
	const u32 period = READ_ONCE(own_policies[number].period) % OWN_POLICY_COUNTED;

	this_cpu_inc(own_policy_waits[number][period]);
	return period;
}

void own_policy_waited(u32 number, u32 period, u64 since)
{
	struct own_policy_slot *slot = &own_policies[number];
	const u64 waited = w_now() - since;
	struct pound_policy *policy;
	u32 limit;

	this_cpu_dec(own_policy_waits[number][period]);
	/* As own_policy_note(); a task that does not watch RCU does not see the policy end. */
	if (!rcu_is_watching())
		return;
	preempt_disable();
	policy = rcu_dereference_sched(slot->policy);
	if (policy) {
		limit = own_policy_limit(policy->timeout_ms, OWN_POLICY_TIMEOUT);
		if ((s64)waited > (s64)limit * NSEC_PER_MSEC)
			own_policy_stop(slot, policy, own_policy_waited_long);
	}
	preempt_enable();
}

/* The jiffies of a period of @policy. */
static unsigned long own_policy_jiffies(const struct pound_policy *policy)
{
	u32 limit = own_policy_limit(policy->timeout_ms, OWN_POLICY_TIMEOUT);

	return DIV_ROUND_UP(msecs_to_jiffies(limit), OWN_POLICY_PERIODS);
}

/* Waits by policy @number that began in @period and go on. */
static u32 own_policy_waiting(u32 number, u32 period)
{
	u32 sum = 0;
	int cpu;

	period %= OWN_POLICY_COUNTED;
	for_each_possible_cpu(cpu) sum += READ_ONCE(per_cpu(own_policy_waits, cpu)[number][period]);
	return sum;
}

/*
 * Begins the next period, and ends a policy with a wait that began before the last
 * OWN_POLICY_PERIODS. That may also be a wait by a former policy of the same name.
 */
static void own_policy_watch(struct timer_list *timer)
{
	struct own_policy_slot *slot = container_of(timer, struct own_policy_slot, timer);
	/* The timer's interrupt protects RCU's readers. */
	struct pound_policy *policy = rcu_dereference_sched(slot->policy);
	const u32 period = slot->period + 1;

	if (!policy)
		return;
	WRITE_ONCE(slot->period, period);
	if (own_policy_waiting(slot - own_policies, period - OWN_POLICY_PERIODS - 1))
		own_policy_stop(slot, policy, own_policy_waited_long);
	else
		mod_timer(timer, jiffies + own_policy_jiffies(policy));
}

int own_policy_number(const char *name)
{
	/* acquire: pairs with the release of own_policy_slot_of(); the names */
	const u32 named = smp_load_acquire(&own_policies_named);
	u32 i;

	for (i = 0; i < named; i++)
		if (!strcmp(own_policies[i].name, name))
			return (int)i;
	return -1;
}

const char *own_policy_name(u32 number)
{
	return own_policies[number].name;
}

/* ---- Reports ---- */

static void own_policy_report(struct irq_work *work)
{
	struct own_policy_slot *slot = container_of(work, struct own_policy_slot, report);

	pr_err("poundlock: the policy %s is stopped, and numa is used: %s\n", slot->name,
	       READ_ONCE(slot->stopped));
}

static u64 own_policy_called(u32 number)
{
	u64 calls = 0;
	int cpu;

	for_each_possible_cpu(cpu) calls += READ_ONCE(per_cpu(own_policy_calls, cpu)[number]);
	return calls;
}

static int policies_show(struct seq_file *file, void *unused)
{
	const struct own_policy_slot *slot;
	const char *stopped;
	/* acquire: as in own_policy_number() */
	const u32 named = smp_load_acquire(&own_policies_named);
	u32 i;

	for (i = 0; i < named; i++) {
		slot = &own_policies[i];
		stopped = READ_ONCE(slot->stopped);
		seq_printf(file, "%s %s calls=%llu%s%s\n", slot->name,
			   own_policy_is_loaded(i) ? "loaded"
			   : stopped               ? "stopped"
						   : "unloaded",
			   own_policy_called(i), stopped ? " " : "", stopped ? stopped : "");
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(policies);

/* ---- For the verifier ---- */

/* Helpers that take no lock and change nothing. Maps are read, whatever their kind, without one. */
static const struct bpf_func_proto *own_policy_helper(enum bpf_func_id id,
						      const struct bpf_prog *prog)
{
	switch (id) {
	case BPF_FUNC_map_lookup_elem:
	case BPF_FUNC_map_lookup_percpu_elem:
	case BPF_FUNC_get_smp_processor_id:
	case BPF_FUNC_get_numa_node_id:
	case BPF_FUNC_get_current_task_btf:
	case BPF_FUNC_ktime_get_ns:
	case BPF_FUNC_jiffies64:
		return bpf_base_func_proto(id, prog);
	default:
		return NULL;
	}
}

static bool own_policy_may_access(int off, int size, enum bpf_access_type type,
				  const struct bpf_prog *prog, struct bpf_insn_access_aux *info)
{
	return bpf_tracing_btf_ctx_access(off, size, type, prog, info);
}

static const struct bpf_verifier_ops own_policy_verifier = {
	.get_func_proto = own_policy_helper,
	.is_valid_access = own_policy_may_access,
};

/*
 * Whether @insn is admitted. Functions of the kernel (kfuncs) take locks and allocate memory.
 * `may_goto` is a loop that only a count of 2^23 ends.
 */
static bool own_policy_admits(const struct bpf_insn *insn)
{
	bool calls = insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_KFUNC_CALL;

	return !calls && insn->code != (BPF_JMP | BPF_JCOND);
}

static int own_policy_check_member(const struct btf_type *type, const struct btf_member *member,
				   const struct bpf_prog *prog)
{
	u32 i;

	if (prog->sleepable)
		return -EINVAL;
	for (i = 0; i < prog->len; i++)
		if (!own_policy_admits(&prog->insnsi[i]))
			return -EACCES;
	return 0;
}

/* ---- Registration ---- */

/* Copies a member that is no function from @from to @to. 0: it is copied as others are. */
static int own_policy_init_member(const struct btf_type *type, const struct btf_member *member,
				  void *to, const void *from)
{
	const struct pound_policy *given = from;
	struct pound_policy *policy = to;

	switch (__btf_member_bit_offset(type, member) / BITS_PER_BYTE) {
	case offsetof(struct pound_policy, together):
		policy->together = given->together;
		return 1;
	case offsetof(struct pound_policy, measures):
		policy->measures = given->measures;
		return 1;
	case offsetof(struct pound_policy, timeout_ms):
		policy->timeout_ms = given->timeout_ms;
		return 1;
	case offsetof(struct pound_policy, limit_us):
		policy->limit_us = given->limit_us;
		return 1;
	case offsetof(struct pound_policy, name):
		return bpf_obj_name_cpy(policy->name, given->name, OWN_POLICY_NAME) > 0 ? 1
											: -EINVAL;
	}
	return 0;
}

/* A policy needs a function, and a name that no policy of the kernel has. */
static int own_policy_validate(void *data)
{
	const struct pound_policy *policy = data;
	bool known = match_string(policies, ARRAY_SIZE(policies), policy->name) >= 0;

	return policy->rank && policy->together <= 1 && policy->measures <= 1 && !known ? 0
											: -EINVAL;
}

/* The slot of @name, which becomes its own if it had none; NULL if there is none left. */
static struct own_policy_slot *own_policy_slot_of(const char *name)
{
	struct own_policy_slot *slot;
	int found = own_policy_number(name);

	if (found >= 0)
		return &own_policies[found];
	if (own_policies_named == OWN_POLICY_MOST)
		return NULL;
	slot = &own_policies[own_policies_named];
	init_irq_work(&slot->report, own_policy_report);
	timer_setup(&slot->timer, own_policy_watch, 0);
	strscpy(slot->name, name, OWN_POLICY_NAME);
	/* release: pairs with the acquire of own_policy_number(); the name */
	smp_store_release(&own_policies_named, own_policies_named + 1);
	return slot;
}

/* unnamed, unloaded or stopped -> loaded */
static int own_policy_register(void *data, struct bpf_link *link)
{
	struct pound_policy *policy = data;
	struct own_policy_slot *slot;
	int error = 0;

	mutex_lock(&own_policy_loading);
	if (policy->measures)
		w_accounts_start();
	slot = own_policy_slot_of(policy->name);
	if (!slot) {
		error = -ENOSPC;
	} else if (rcu_access_pointer(slot->policy)) {
		error = -EEXIST;
	} else {
		WRITE_ONCE(slot->stopped, NULL);
		WRITE_ONCE(slot->strikes, 0);
		rcu_assign_pointer(slot->policy, policy);
		mod_timer(&slot->timer, jiffies + own_policy_jiffies(policy));
	}
	mutex_unlock(&own_policy_loading);
	if (!error && policy->measures)
		static_branch_inc(&own_policy_measures);
	return error;
}

/*
 * loaded -> unloaded, unless the policy was stopped. Its programs may still run: the map waits for
 * RCU before it frees them.
 */
static void own_policy_unregister(void *data, struct bpf_link *link)
{
	struct pound_policy *policy = data;
	int found = own_policy_number(policy->name);

	cmpxchg((struct pound_policy **)&own_policies[found].policy, policy, NULL);
	if (policy->measures)
		static_branch_dec(&own_policy_measures);
}

static int own_policy_init(struct btf *btf)
{
	return 0;
}

/* For kernels that check the types of indirect calls. */
static u32 own_policy_no_rank(struct pound_waiter *waiter)
{
	return 0;
}

static struct pound_policy own_policy_stubs = {.rank = own_policy_no_rank};

static struct bpf_struct_ops own_policy_ops = {
	.verifier_ops = &own_policy_verifier,
	.init = own_policy_init,
	.check_member = own_policy_check_member,
	.init_member = own_policy_init_member,
	.validate = own_policy_validate,
	.reg = own_policy_register,
	.unreg = own_policy_unregister,
	.cfi_stubs = &own_policy_stubs,
	.name = "pound_policy",
	.owner = THIS_MODULE,
};

static int __init own_policy_begin(void)
{
	int error = register_bpf_struct_ops(&own_policy_ops, pound_policy);

	if (error)
		pr_err("poundlock: policies cannot be loaded as BPF programs: error %d\n", error);
	choice_show("policies", &policies_fops, 0400, NULL);
	return error;
}
late_initcall(own_policy_begin);
