/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Watches the threads of one process: how long each runs, waits for a CPU, and waits in the kernel,
 * for which futex and where in the code. Everything is added up here; the command reads the maps
 * at the end. Hooks are the scheduler's trace points and a timer, so a system call that does not
 * sleep costs nothing. In Go programs, hooks at two functions of the runtime follow goroutines that
 * sleep without their thread.
 *
 * When a thread leaves its CPU to sleep, its saved registers name the system call and the futex.
 * A hash of the return addresses near the top of its stack names the code that waits. The first
 * time that a hash is seen, the top of the stack is copied, for the command to unwind.
 *
 * Thread records are written by the scheduler's hooks alone, which run in order for each thread:
 * it leaves the CPU, is woken, enters a CPU. Their times are those of scheduler_clock().
 */
#include "kernel.h"

/* Helpers that read memory require a licence that the kernel knows as compatible. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* ---- Settings: written by the command before it attaches ---- */

/* The process, by its number in the command's PID namespace. */
const volatile s32 TARGET = 0;
/* The inode of the command's PID namespace; 0 if that is the initial one. */
const volatile u32 NAMESPACE = 0;

enum { CODE_RANGES = 4, STACK_WORDS = 64, CHUNK = 1024, CHUNKS = 16 };

/* The addresses of the process's code. The command widens them as libraries are loaded. */
struct range {
	u64 start;
	u64 end;
};

struct ranges {
	struct range code[CODE_RANGES];
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct ranges);
} ranges SEC(".maps");

/* Whether the command has ended its watch: to detach all hooks may take it seconds. */
struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u32);
} ended SEC(".maps");

/* ---- Records, read by the command: src/watch/records.rs has the same layouts ---- */

enum kind { OTHER, FUTEX, STOPPED };
enum state { RUNNING, RUNNABLE, BLOCKED };

/* A place of waiting. OTHER: @word and @stack are 0. */
struct place {
	u64 word;
	u64 stack;
	u32 kind;
	s32 syscall;
};

struct waits {
	u64 count;
	/* Until woken. */
	u64 blocked_ns;
	/* From woken to running. */
	u64 delayed_ns;
	u64 longest_ns;
};

/* Two cache lines: most of a hook's time is that of fetching its data. */
struct thread {
	/* 0: the record is free. */
	u32 number;
	u32 state;
	/* The start of the present state. */
	u64 since;
	/* The kernel's count of its waiting for CPUs, in ns, without that before it last ran. */
	u64 run_delay;
	u64 running_ns;
	u64 runnable_ns;
	/* The last time off the CPU, and whether it slept. */
	u64 off;
	u64 on;
	u8 slept;
	/* Whether it counts among the waiters of its word. */
	u8 counted;
	/* Whether another thread has woken it from the present sleep by a futex call. */
	u8 granted;
	u8 unused[5];

	struct place place;
	/* Its waits at @place that are not in the map: it often waits there again. */
	struct waits pending;
	u64 more_unused;
};

/* A futex. The holder is the thread that was woken last, until a waiter is woken; 0: not known. */
struct word {
	u32 waiters;
	u32 holder;
};

/* A sleeping goroutine. */
struct goroutine {
	u64 since;
	struct place place;
};

/* A place that wakes waiters of a futex: in most locks, the release. Or where the holder runs. */
struct release {
	u64 word;
	u64 stack;
};

struct releases {
	u64 count;
	/* The time that the woken threads had slept. */
	u64 waited_ns;
	/* The part of it in which the releasing thread was off its CPU, at least. */
	u64 off_ns;
};

struct sample {
	u64 stack;
	u64 instruction;
	u64 stack_pointer;
	u64 frame_pointer;
	u64 link;
	u64 size;
	u8 bytes[CHUNKS * CHUNK];
};

/* Time of threads that have ended, and the counts of what found no room. */
struct sums {
	u64 ended_threads;
	u64 running_ns;
	u64 runnable_ns;
	u64 lost_threads;
	u64 lost_places;
	u64 lost_waits_ns;
	u64 lost_releases;
	u64 lost_samples;
	u64 lost_goroutines;
	/* The depth of the command's PID namespace, plus 1; 0: not yet known. */
	u64 level;
	/* When the command began to watch; written by the command. */
	u64 begin;
	/* The time of the waits for futexes that have ended. */
	u64 futex_ns;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct sums);
} sums SEC(".maps");

/* An open-addressed table, since a map of the kernel's own type costs a hook twice as much. */
enum { THREAD_BITS = 15, THREADS = 1 << THREAD_BITS, PROBES = 16 };

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, THREADS);
	/* Aligns the records with pages, and so with cache lines. */
	NUMBER(map_flags, MMAPABLE);
	TYPE(key, u32);
	TYPE(value, struct thread);
} threads SEC(".maps");

/*
 * The threads that slept when the watch began, by number; written by the command. They have a
 * record from when they run.
 */
struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, THREADS);
	TYPE(key, u32);
	TYPE(value, struct place);
} sleepers SEC(".maps");

struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 65536);
	TYPE(key, struct place);
	TYPE(value, struct waits);
} places SEC(".maps");

struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 32768);
	TYPE(key, struct release);
	TYPE(value, struct releases);
} releases SEC(".maps");

/* The places where holders ran, by the number of samples. */
struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 16384);
	TYPE(key, struct release);
	TYPE(value, u64);
} holds SEC(".maps");

struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 65536);
	TYPE(key, u64);
	TYPE(value, struct word);
} words SEC(".maps");

/* By the address of the goroutine. */
struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 65536);
	TYPE(key, u64);
	TYPE(value, struct goroutine);
} goroutines SEC(".maps");

struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 16384);
	TYPE(key, struct place);
	TYPE(value, struct waits);
} goroutine_places SEC(".maps");

/* The hashes of stacks that were copied. */
struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 16384);
	TYPE(key, u64);
	TYPE(value, u8);
} copied SEC(".maps");

struct {
	NUMBER(type, MAP_RINGBUF);
	NUMBER(max_entries, 8 << 20);
} samples SEC(".maps");

struct stack_top {
	u64 word[STACK_WORDS];
};

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct stack_top);
} scratch SEC(".maps");

/* Maintained by the switches of all threads; the command reads the offset. */
struct clocks {
	/* CLOCK_MONOTONIC less the scheduler's clock. */
	u64 offset;
	/* When it was compared last, in the scheduler's time; 0: not yet. */
	u64 compared;
};

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct clocks);
} clocks SEC(".maps");

static const u32 ZERO = 0;

/* ---- The threads of the process ---- */

INLINE struct sums *the_sums(void)
{
	return map_lookup(&sums, &ZERO);
}

INLINE void add(u64 *to, u64 amount)
{
	__sync_fetch_and_add(to, amount);
}

/* The number of @pid in the PID namespace at depth @level; 0: it has none. */
INLINE s32 number_at(struct pid *pid, u32 level)
{
	u64 offset = __builtin_preserve_field_info(pid->numbers, 0 /* byte offset */);
	struct upid found = {};

	if (!pid || pid->level < level)
		return 0;
	read_kernel(&found.nr, sizeof(found.nr), (char *)pid + offset + level * 16);
	return found.nr;
}

enum { DEEPEST = 32 };

/* The depth of NAMESPACE, found in the numbers of @pid, plus 1; 0: @pid is not in it. */
INLINE u32 find_level(struct pid *pid)
{
	u64 offset = __builtin_preserve_field_info(pid->numbers, 0);

	if (!pid)
		return 0;
	for (u32 level = 0; level <= DEEPEST; level++) {
		struct pid_namespace *namespace = 0;
		u32 inode = 0;
		if (level > pid->level)
			return 0;
		read_kernel(&namespace, sizeof(namespace), (char *)pid + offset + level * 16 + 8);
		read_kernel(&inode, sizeof(inode), &namespace->ns.inum);
		if (inode == NAMESPACE)
			return level + 1;
	}
	return 0;
}

/* The number of @task in the command's PID namespace if it is a thread of the process, or 0. */
INLINE u32 number_if_thread(struct task_struct *task)
{
	if (NAMESPACE == 0)
		return task->tgid == TARGET ? task->pid : 0;
	struct sums *sum = the_sums();
	if (!sum)
		return 0;
	if (sum->level == 0)
		sum->level = find_level(task->thread_pid);
	u32 level = sum->level;
	if (level == 0 || number_at(task->group_leader->thread_pid, level - 1) != TARGET)
		return 0;
	return number_at(task->thread_pid, level - 1);
}

INLINE int is_over(void)
{
	u32 *over = map_lookup(&ended, &ZERO);

	return !over || *over;
}

/* The number of @task if it is a thread of the process and the watch goes on, or 0. */
INLINE u32 watched(struct task_struct *task)
{
	u32 number = number_if_thread(task);

	return number && !is_over() ? number : 0;
}

/* ---- Clocks ---- */

enum { COMPARISON_NS = 10000000 };

/* Clocks of several CPUs may differ a little. */
INLINE u64 between(u64 start, u64 end)
{
	return end > start ? end - start : 0;
}

/*
 * The time at a switch from or to @task, in ns. The scheduler has just read its clock: to read that
 * of CLOCK_MONOTONIC as well would take a third of this program's time.
 */
INLINE u64 scheduler_clock(struct task_struct *task)
{
	return EXISTS(task->se.cfs_rq) ? task->se.cfs_rq->rq->clock : now_ns();
}

/* Compares the clocks at a switch at @now, unless that was done shortly before. */
INLINE void compare_clocks(u64 now)
{
	struct clocks *both = map_lookup(&clocks, &ZERO);

	if (!both || (both->compared && between(both->compared, now) < COMPARISON_NS))
		return;
	both->offset = now_ns() - now;
	both->compared = now;
}

/* A time of CLOCK_MONOTONIC in the scheduler's time. */
INLINE u64 in_scheduler_time(u64 time)
{
	struct clocks *both = map_lookup(&clocks, &ZERO);

	return both ? time - both->offset : time;
}

/* ---- Records of threads ---- */

/* The record at a distance from the first one in which a thread of this number may be. */
INLINE struct thread *record_of(u32 number, u32 distance)
{
	u32 slot = ((number * 0x9e3779b1u >> (32 - THREAD_BITS)) + distance) & (THREADS - 1);

	return map_lookup(&threads, &slot);
}

/* The record of the thread of this number, or NULL. */
INLINE struct thread *find_thread(u32 number)
{
	if (number == 0)
		return 0;
	for (u32 distance = 0; distance < PROBES; distance++) {
		struct thread *thread = record_of(number, distance);
		if (!thread || thread->number == number)
			return thread;
	}
	return 0;
}

/*
 * A new record: the thread of this number is in @state since @since. NULL: there is no room. Only
 * the switches of a thread add its record, so that it has one at most.
 */
INLINE struct thread *add_thread(u32 number, u32 state, u64 since)
{
	for (u32 distance = 0; distance < PROBES; distance++) {
		struct thread *thread = record_of(number, distance);
		if (!thread)
			return 0;
		if (thread->number || __sync_val_compare_and_swap(&thread->number, 0, number))
			continue;
		thread->state = state;
		thread->since = since;
		thread->run_delay = 0;
		thread->running_ns = 0;
		thread->runnable_ns = 0;
		thread->off = since;
		thread->on = since;
		thread->slept = 0;
		thread->counted = 0;
		thread->granted = 0;
		thread->place = (struct place){};
		thread->pending = (struct waits){};
		return thread;
	}
	struct sums *sum = the_sums();
	if (sum)
		add(&sum->lost_threads, 1);
	return 0;
}

/* ---- Stacks ---- */

INLINE int is_code(const struct ranges *known, u64 word)
{
	for (int i = 0; i < CODE_RANGES; i++)
		if (word >= known->code[i].start && word < known->code[i].end)
			return 1;
	return 0;
}

/* The registers by which a stack is unwound. */
struct position {
	u64 instruction;
	u64 stack_pointer;
	u64 frame_pointer;
	u64 link;
};

INLINE struct position position_of(struct task_struct *task)
{
	struct pt_regs *regs = registers_of(task);

	return (struct position){INSTRUCTION(regs), STACK_POINTER(regs), FRAME_POINTER(regs),
				 LINK(regs)};
}

/* A copy of the stack for the command to unwind. Fails if the command has not kept up. */
INLINE int copy_stack(const struct position *at, u64 stack)
{
	struct sample *sample = ringbuf_reserve(&samples, sizeof(*sample), 0);
	u64 size = 0;

	if (!sample)
		return -1;
	sample->stack = stack;
	sample->instruction = at->instruction;
	sample->stack_pointer = at->stack_pointer;
	sample->frame_pointer = at->frame_pointer;
	sample->link = at->link;
	for (int i = 0; i < CHUNKS; i++) {
		if (read_user(sample->bytes + i * CHUNK, CHUNK,
			      (void *)(at->stack_pointer + i * CHUNK)))
			break;
		size += CHUNK;
	}
	sample->size = size;
	ringbuf_submit(sample, RB_NO_WAKEUP);
	return 0;
}

/* The hash of the code addresses near the top of a stack, never 0. */
INLINE u64 stack_of(struct position at)
{
	struct stack_top *top = map_lookup(&scratch, &ZERO);
	struct ranges *known = map_lookup(&ranges, &ZERO);
	u64 stack = at.instruction;

	if (!top || !known)
		return stack | 1;
	if (read_user(top, sizeof(*top), (void *)at.stack_pointer) == 0)
		for (int i = 0; i < STACK_WORDS; i++) {
			u64 word = CODE_ADDRESS(top->word[i]);
			if (is_code(known, word))
				stack = (stack ^ word) * 0x9e3779b97f4a7c15ull;
		}
	stack |= 1;

	u8 one = 1;
	if (!map_lookup(&copied, &stack)) {
		struct sums *sum = the_sums();
		if (map_update(&copied, &stack, &one, NOEXIST) == 0) {
			if (copy_stack(&at, stack)) {
				/* The next wait tries again. */
				map_delete(&copied, &stack);
				if (sum)
					add(&sum->lost_samples, 1);
			}
		} else if (sum) {
			add(&sum->lost_samples, 1);
		}
	}
	return stack;
}

/* ---- Time ---- */

enum { FUTEX_COMMAND = 0x7f };
enum { TASK_STOPPED_OR_TRACED = 0xc, TASK_DEAD = 0x80 };

/* Whether a futex command sleeps: WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2. */
INLINE int sleeps(u32 command)
{
	return command == 0 || command == 6 || command == 9 || command == 11 || command == 13;
}

/* Sets @place to where the present thread, which leaves its CPU to sleep, waits. */
INLINE void locate(struct task_struct *task, struct place *place)
{
	struct pt_regs *regs = registers_of(task);
	s32 syscall = SYSCALL(regs);
	u64 word = ARGUMENT_1(regs);

	place->word = 0;
	place->stack = 0;
	place->kind = OTHER;
	place->syscall = syscall;
	if (task->__state & TASK_STOPPED_OR_TRACED) {
		place->kind = STOPPED;
		place->syscall = -1;
		return;
	}
	if (syscall == SYS_FUTEX_WAITV) {
		/* The address follows the value in the first struct futex_waitv. */
		if (read_user(&word, sizeof(word), (void *)(word + 8)))
			word = 0;
	} else if (syscall != SYS_FUTEX_WAIT &&
		   !(syscall == SYS_FUTEX && sleeps(ARGUMENT_2(regs) & FUTEX_COMMAND))) {
		return;
	}
	place->kind = FUTEX;
	place->word = word;
	place->stack = stack_of(position_of(task));
}

/* ---- Holders ---- */

/* The present thread begins to wait: it is no holder. */
INLINE void begin_wait(struct thread *thread, u32 number)
{
	u64 key = thread->place.word;
	struct word none = {}, *word = map_lookup(&words, &key);

	if (!word) {
		map_update(&words, &key, &none, NOEXIST);
		word = map_lookup(&words, &key);
	}
	if (!word)
		return;
	__sync_fetch_and_add(&word->waiters, 1);
	if (word->holder == number)
		word->holder = 0;
	thread->counted = 1;
}

/*
 * A waiter runs: if it was woken, it has the lock, or soon sleeps again. While others wait, it must
 * wake one to release it. Once none waits, a release is not seen.
 */
INLINE void end_wait(struct thread *thread, u32 number)
{
	struct word *word = thread->counted ? map_lookup(&words, &thread->place.word) : 0;

	thread->counted = 0;
	if (!word)
		return;
	__sync_fetch_and_add(&word->waiters, -1);
	if ((s32)word->waiters <= 0)
		word->holder = 0;
	else if (thread->granted)
		word->holder = number;
}

/* Adds waits that have ended to @map. */
INLINE void add_waits(void *map, const struct place *place, const struct waits *more)
{
	struct waits *known = map_lookup(map, place);

	if (!known) {
		struct waits none = {};
		map_update(map, place, &none, NOEXIST);
		known = map_lookup(map, place);
	}
	if (!known) {
		struct sums *sum = the_sums();
		if (sum) {
			add(&sum->lost_places, more->count);
			add(&sum->lost_waits_ns, more->blocked_ns + more->delayed_ns);
		}
		return;
	}
	add(&known->count, more->count);
	add(&known->blocked_ns, more->blocked_ns);
	add(&known->delayed_ns, more->delayed_ns);
	if (more->longest_ns > known->longest_ns)
		known->longest_ns = more->longest_ns;
}

/* Adds the thread's wait, which has ended, to its record. */
INLINE void charge(struct thread *thread, u64 now)
{
	u64 time = between(thread->since, now);

	thread->pending.count++;
	thread->pending.blocked_ns += time;
	if (time > thread->pending.longest_ns)
		thread->pending.longest_ns = time;
}

/* How long the kernel has let @task wait for CPUs, in ns; 0: it does not count. */
INLINE u64 run_delay(struct task_struct *task)
{
	return EXISTS(task->sched_info.run_delay) ? task->sched_info.run_delay : 0;
}

/*
 * Separates the time from woken to running from the wait before the thread ran. The kernel has
 * counted it when the thread entered its CPU, after the hook.
 */
INLINE void separate_delay(struct thread *thread, struct task_struct *task)
{
	u64 delay = run_delay(task) - thread->run_delay, most = between(thread->off, thread->on);

	if (!thread->slept)
		return;
	if (delay > most)
		delay = most;
	thread->pending.blocked_ns -= delay;
	thread->pending.delayed_ns += delay;
}

/* Moves the waits in the thread's record to the map. */
INLINE void settle(struct thread *thread)
{
	if (thread->pending.count == 0)
		return;
	add_waits(&places, &thread->place, &thread->pending);
	thread->pending = (struct waits){};
}

INLINE int is_same(const struct place *one, const struct place *other)
{
	return one->word == other->word && one->stack == other->stack && one->kind == other->kind &&
	       one->syscall == other->syscall;
}

/* The thread begins to wait at @place. */
INLINE void move(struct thread *thread, const struct place *place)
{
	if (is_same(&thread->place, place))
		return;
	settle(thread);
	thread->place = *place;
}

/* The record of a thread that enters a CPU for the first time since the watch began. */
INLINE struct thread *add_enterer(struct task_struct *task, u32 number, u64 now)
{
	struct sums *sum = the_sums();

	/* A thread without a record may have had no room for it before. */
	if (!sum || sum->lost_threads)
		return add_thread(number, RUNNABLE, now);
	/* A new thread has waited for a CPU since it was made. */
	if (task->start_time > sum->begin)
		return add_thread(number, RUNNABLE, in_scheduler_time(task->start_time));
	struct place *place = map_lookup(&sleepers, &number);
	if (!place)
		return add_thread(number, RUNNABLE, now);
	struct thread *thread = add_thread(number, BLOCKED, in_scheduler_time(sum->begin));
	if (thread) {
		thread->place = *place;
		thread->slept = 1;
	}
	return thread;
}

/* RUNNING -> RUNNABLE, BLOCKED or ended */
INLINE void leave(struct task_struct *task, u32 number, int preempted, u64 now)
{
	struct thread *thread = find_thread(number);
	struct sums *sum = the_sums();
	u32 state = task->__state;

	if (!sum)
		return;
	/* It has run since the beginning, or it found no room when it entered. */
	if (!thread)
		thread = add_thread(number, RUNNING,
				    sum->lost_threads ? now : in_scheduler_time(sum->begin));
	if (!thread)
		return;
	thread->running_ns += between(thread->since, now);
	separate_delay(thread, task);
	if (state & TASK_DEAD) {
		add(&sum->ended_threads, 1);
		add(&sum->running_ns, thread->running_ns);
		add(&sum->runnable_ns, thread->runnable_ns);
		settle(thread);
		map_delete(&sleepers, &number);
		thread->number = 0;
		return;
	}
	thread->since = now;
	thread->off = now;
	thread->granted = 0;
	thread->slept = state != 0 && !preempted;
	if (thread->slept) {
		struct place place;
		locate(task, &place);
		move(thread, &place);
		if (thread->place.kind == FUTEX)
			begin_wait(thread, number);
	}
	thread->state = thread->slept ? BLOCKED : RUNNABLE;
}

/* RUNNABLE or BLOCKED -> RUNNING */
INLINE void enter(struct task_struct *task, u32 number, u64 now)
{
	struct thread *thread = find_thread(number);
	struct sums *sum = the_sums();

	if (!thread)
		thread = add_enterer(task, number, now);
	if (!thread)
		return;
	if (thread->state == RUNNABLE) {
		thread->runnable_ns += between(thread->since, now);
	} else if (thread->state == BLOCKED) {
		charge(thread, now);
		end_wait(thread, number);
		if (sum && thread->place.kind == FUTEX)
			add(&sum->futex_ns, between(thread->since, now));
	}
	thread->state = RUNNING;
	thread->since = now;
	thread->on = now;
	thread->run_delay = run_delay(task);
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *context)
{
	int preempted = context[0];
	struct task_struct *previous = (void *)context[1], *next = (void *)context[2];
	u32 leaver = number_if_thread(previous), enterer = number_if_thread(next);
	u64 now = scheduler_clock(next);

	compare_clocks(now);
	if ((!leaver && !enterer) || is_over())
		return 0;
	if (leaver)
		leave(previous, leaver, preempted & 1, now);
	if (enterer)
		enter(next, enterer, now);
	return 0;
}

/* ---- Releases ---- */

/*
 * The time since @since in which @holder was off its CPU, other than to wait for the lock itself:
 * its last absence alone, therefore a lower bound.
 */
INLINE u64 absence(struct thread *holder, u64 word, u64 since)
{
	u64 off = holder->off > since ? holder->off : since;

	if (holder->slept && holder->place.kind == FUTEX && holder->place.word == word)
		return 0;
	return holder->on > off ? holder->on - off : 0;
}

/* @task, the present thread, wakes @woken from a futex: adds the wait to where it does. */
INLINE void release(struct task_struct *task, struct thread *holder, struct thread *woken)
{
	struct pt_regs *regs = registers_of(task);

	if (SYSCALL(regs) != SYS_FUTEX || sleeps(ARGUMENT_2(regs) & FUTEX_COMMAND))
		return;
	u64 now = in_scheduler_time(now_ns());
	woken->granted = 1;
	struct word *word = map_lookup(&words, &woken->place.word);
	if (word)
		word->holder = 0;
	struct release key = {.word = woken->place.word, .stack = stack_of(position_of(task))};
	struct releases none = {}, *known = map_lookup(&releases, &key);
	if (!known) {
		map_update(&releases, &key, &none, NOEXIST);
		known = map_lookup(&releases, &key);
	}
	if (!known) {
		struct sums *sum = the_sums();
		if (sum)
			add(&sum->lost_releases, 1);
		return;
	}
	add(&known->count, 1);
	add(&known->waited_ns, between(woken->since, now));
	add(&known->off_ns, absence(holder, key.word, woken->since));
}

/*
 * Attached once threads wait for futexes: it runs at all wake-ups of the machine. Most of them
 * concern other processes, and fetch no record.
 */
SEC("tp_btf/sched_waking")
int on_waking(u64 *context)
{
	u32 number = number_if_thread((void *)context[0]);
	struct task_struct *task = number ? current_task() : 0;
	struct thread *holder = task ? find_thread(watched(task)) : 0;
	struct thread *woken = holder ? find_thread(number) : 0;

	if (woken && woken->state == BLOCKED && woken->place.kind == FUTEX && !woken->granted)
		release(task, holder, woken);
	return 0;
}

/* ---- Samples of running holders ---- */

/* Called by a timer on each CPU. */
SEC("perf_event")
int on_sample(void *context)
{
	(void)context;
	struct task_struct *task = current_task();
	u32 number = watched(task);
	struct thread *thread = find_thread(number);

	if (!thread || thread->place.kind != FUTEX)
		return 0;
	struct word *word = map_lookup(&words, &thread->place.word);
	if (!word || word->holder != number || (s32)word->waiters <= 0)
		return 0;
	struct release key = {.word = thread->place.word, .stack = stack_of(position_of(task))};
	u64 none = 0, *known = map_lookup(&holds, &key);
	if (!known) {
		map_update(&holds, &key, &none, NOEXIST);
		known = map_lookup(&holds, &key);
	}
	if (known)
		add(known, 1);
	return 0;
}

/* ---- Goroutines: their semaphores, on which sync.Mutex and its like wait ---- */

/* runtime.(*semaRoot).queue(root, address, ...): the goroutine sleeps next. */
SEC("uprobe")
int on_goroutine_sleep(struct pt_regs *regs)
{
	u64 goroutine = GOROUTINE(regs), word = GO_ARGUMENT_2(regs);
	struct position at = {0, STACK_POINTER(regs), FRAME_POINTER(regs), LINK(regs)};
	struct goroutine new = {.place.kind = FUTEX};

	if (!watched(current_task()))
		return 0;
	/* The caller's position. The call precedes its return address. */
	if (at.link) {
		at.instruction = at.link;
		at.link = 0;
	} else {
		read_user(&at.instruction, sizeof(at.instruction), (void *)at.stack_pointer);
		at.stack_pointer += sizeof(u64);
	}
	at.instruction--;
	new.place.word = word;
	new.place.stack = stack_of(at);
	new.since = now_ns();
	if (map_update(&goroutines, &goroutine, &new, ANY)) {
		struct sums *sum = the_sums();
		if (sum)
			add(&sum->lost_goroutines, 1);
	}
	return 0;
}

/* runtime.ready(goroutine, ...): it sleeps no longer, for whatever reason it did. */
SEC("uprobe")
int on_goroutine_ready(struct pt_regs *regs)
{
	u64 key = GO_ARGUMENT_1(regs);
	struct goroutine *goroutine = map_lookup(&goroutines, &key);
	struct sums *sum = the_sums();

	if (!goroutine || !sum || !watched(current_task()))
		return 0;
	/* Attached before the beginning, when this is 0. */
	u64 begin = sum->begin;
	u64 since = goroutine->since > begin ? goroutine->since : begin;
	if (begin) {
		u64 time = now_ns() - since;
		struct waits one = {.count = 1, .blocked_ns = time, .longest_ns = time};
		add_waits(&goroutine_places, &goroutine->place, &one);
	}
	map_delete(&goroutines, &key);
	return 0;
}

/* ---- Locks of the kernel, with --kernel ---- */

enum { KERNEL_FRAMES = 127 };

struct {
	NUMBER(type, MAP_STACK_TRACE);
	NUMBER(max_entries, 4096);
	TYPE(key, u32);
	NUMBER(value_size, KERNEL_FRAMES * 8);
} kernel_stacks SEC(".maps");

/* A place where the kernel waits for a lock of its own: the stack's number, or an error, and the
 * lock's kind. */
struct kernel_place {
	s32 stack;
	u32 flags;
};

struct contention {
	u64 since;
	struct kernel_place place;
};

struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 32768);
	TYPE(key, u32);
	TYPE(value, struct contention);
} contentions SEC(".maps");

struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 8192);
	TYPE(key, struct kernel_place);
	TYPE(value, struct waits);
} kernel_places SEC(".maps");

/* An interrupt handler's wait inside of another one is part of that. */
SEC("tp_btf/contention_begin")
int on_contention(u64 *context)
{
	u32 number = watched(current_task());
	struct contention new = {.place.flags = context[1]};

	if (!number || map_lookup(&contentions, &number))
		return 0;
	new.place.stack = stack_id(context, &kernel_stacks, 0);
	new.since = now_ns();
	map_update(&contentions, &number, &new, NOEXIST);
	return 0;
}

SEC("tp_btf/contention_end")
int on_acquisition(u64 *context)
{
	(void)context;
	u32 number = watched(current_task());
	struct contention *contention = number ? map_lookup(&contentions, &number) : 0;
	struct waits none = {};

	if (!contention)
		return 0;
	u64 time = now_ns() - contention->since;
	struct kernel_place place = contention->place;
	map_delete(&contentions, &number);
	struct waits *known = map_lookup(&kernel_places, &place);
	if (!known) {
		map_update(&kernel_places, &place, &none, NOEXIST);
		known = map_lookup(&kernel_places, &place);
	}
	if (!known) {
		struct sums *sum = the_sums();
		if (sum)
			add(&sum->lost_places, 1);
		return 0;
	}
	add(&known->count, 1);
	add(&known->blocked_ns, time);
	if (time > known->longest_ns)
		known->longest_ns = time;
	return 0;
}
