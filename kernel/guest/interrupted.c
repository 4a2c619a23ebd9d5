// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Interrupts waits for a lock of the kernel whose holder stays, until a user has no node left for
 * its waits, and finds out whose waits a signal can end then:
 *
 *	interrupted LOCK USER ROUNDS
 *
 * LOCK   tty      a terminal's mutex of readers: an interval timer interrupts their reads
 *        mutex    killed waiters for a mutex of the module's stall.c
 *        folder   killed processes that list a folder, whose rwsem stall.c holds
 * USER   user     the user 1000
 *        space    a user namespace of the user 1000, with many user numbers
 *        rooted   the same of root
 *
 * Prints one line. `total` waits were interrupted, at least `least` and at most `most` in a round.
 * Until the lock is released no signal ends a wait of the same user for another lock: in `emptied`
 * rounds. `deaf` are such waits of other users, and `later` those of the same user after the
 * release, in all rounds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define STALL "/sys/kernel/debug/poundlock_stall"
#define OWNER 1000
/* In the same list of nodes as OWNER (world/kernel/park.c), and once in the same share of them. */
#define ALIKE 1034
#define FIRST_NUMBER 100000
#define NUMBERS 64   /* user numbers of a namespace that wait */
#define PLACES 100   /* processes that wait for one lock at a time */
#define BATCH 32     /* of these, interrupted together */
#define POLL 10000   /* us */
#define SHORT 200    /* polls without progress, after which a wait counts as deaf */
#define LONG 2000    /* the same, where that is a failure */
#define TIMERS 32    /* processes with an interval timer */
#define TICK 3000    /* us */
#define ENOUGH 20000 /* interrupted reads */

static const char *lock, *user;
static int ask;              /* the file of stall.c */
static int files[2][PLACES]; /* of each lock; folders: one each, since a file has a mutex itself */
static int numbers;          /* of users that wait */
static long *reads;          /* interrupted, by all processes */

static void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

static void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("lock=%s %s ", lock, user);
	vprintf(format, arguments);
	printf(": %s FAILED\n", strerror(errno));
	va_end(arguments);
	fflush(stdout);
	_exit(1);
}

static bool is(const char *word, const char *other)
{
	return !strcmp(word, other);
}

/* ---- One wait ---- */

static void tell(const char *verb, int which)
{
	char line[64];
	int length = snprintf(line, sizeof(line), "%s %d %s", verb, which, lock);

	/* Not write(), which would take the mutex of the file. */
	(void)!pwrite(ask, line, length, 0);
}

/* Waits for the lock @which. Returns after a signal, or when it had the lock. */
static void wait_once(int which, int place)
{
	char bytes[1024];

	if (is(lock, "tty"))
		(void)!read(files[which][0], bytes, 1);
	else if (is(lock, "folder"))
		(void)!syscall(SYS_getdents64, files[which][place], bytes, sizeof(bytes));
	else
		tell("wait", which);
}

static void hold_lock(int which)
{
	if (is(lock, "tty"))
		wait_once(which, 0);
	else
		tell("hold", which);
}

/* Waits in front of those that are interrupted. */
static void head(int which)
{
	if (is(lock, "tty"))
		wait_once(which, 0);
	else
		tell("queue", which);
}

static void become(int number)
{
	if (setuid(number))
		die("setuid %d", number);
}

static void count_read(int signal)
{
	(void)signal;
}

/* Reads until it has input, interrupted by a timer. */
static void read_by_timer(void)
{
	const struct sigaction action = {.sa_handler = count_read};
	const struct itimerval often = {{0, TICK}, {0, TICK}};
	char byte;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (read(files[0][0], &byte, 1) < 0 && errno == EINTR)
		__atomic_fetch_add(reads, 1, __ATOMIC_RELAXED);
}

/* ---- Processes ---- */

/* Whether @child sleeps. */
static bool sleeps(pid_t child)
{
	char name[64], text[512] = "", *end;
	int file;

	snprintf(name, sizeof(name), "/proc/%d/stat", child);
	file = open(name, O_RDONLY);
	if (file < 0)
		return false;
	(void)!read(file, text, sizeof(text) - 1);
	close(file);
	end = strrchr(text, ')');
	return end && (end[2] == 'S' || end[2] == 'D');
}

static void await_sleep(pid_t child)
{
	while (!sleeps(child))
		usleep(POLL / 10);
}

/* As fork(), which must not fail. */
static pid_t split(void)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	return child;
}

/* Starts @work(@which) as a process, and waits until it sleeps. */
static pid_t start(void (*work)(int), int which)
{
	pid_t child = split();

	if (!child) {
		work(which);
		_exit(0);
	}
	await_sleep(child);
	return child;
}

/* Starts the wait of the user @number for the lock @which. */
static pid_t start_wait(int which, int place, int number)
{
	pid_t child = split();

	if (!child) {
		become(number);
		wait_once(which, place);
		_exit(0);
	}
	return child;
}

/* Whether @child, which sleeps, survives its SIGKILL. Else it is gone. */
static bool is_deaf(pid_t child, int polls)
{
	await_sleep(child);
	kill(child, SIGKILL);
	while (polls--) {
		if (waitpid(child, NULL, WNOHANG) == child)
			return false;
		usleep(POLL);
	}
	return true;
}

static void reap(pid_t child)
{
	kill(child, SIGKILL);
	if (waitpid(child, NULL, 0) != child)
		die("waitpid");
}

/* ---- The user that interrupts its waits ---- */

static pid_t deaf[PLACES]; /* waiters by place; 0: none */

/* The waits of a batch, by its places. Returns how many were interrupted. */
static int interrupt_batch(const int *places, const int *of, int count, bool *exhausted)
{
	pid_t children[BATCH];
	int i, left = 0, polls = 0;

	for (i = 0; i < count; i++)
		children[i] = start_wait(0, places[i], of[i]);
	for (i = 0; i < count; i++)
		await_sleep(children[i]);
	for (i = 0; i < count; i++)
		kill(children[i], SIGKILL);
	while (left < count && polls < SHORT) {
		int before = left;

		for (i = 0; i < count; i++) {
			if (!children[i] || waitpid(children[i], NULL, WNOHANG) != children[i])
				continue;
			children[i] = 0;
			left++;
		}
		polls = left == before ? polls + 1 : 0;
		if (left < count)
			usleep(POLL / 4);
	}
	for (i = 0; i < count; i++) {
		if (!children[i])
			continue;
		deaf[places[i]] = children[i];
		exhausted[of[i] % NUMBERS] = true;
	}
	return left;
}

/* The number of the user that waits next. -1: all have deaf waits. */
static int next_number(const bool *exhausted)
{
	static int last;
	int i, number;

	if (numbers == 1)
		return exhausted[OWNER % NUMBERS] ? -1 : OWNER;
	for (i = 1; i <= numbers; i++) {
		number = (last + i) % numbers;
		if (exhausted[number])
			continue;
		last = number;
		return number;
	}
	return -1;
}

/* Kills waiters until none of the user's numbers has a wait that a signal ends. */
static long kill_waiters(void)
{
	bool exhausted[NUMBERS] = {false};
	int places[BATCH], of[BATCH], count, place;
	long left = 0;

	do {
		for (count = place = 0; place < PLACES && count < BATCH; place++) {
			if (deaf[place])
				continue;
			places[count] = place;
			of[count] = next_number(exhausted);
			if (of[count] < 0)
				break;
			count++;
		}
		left += interrupt_batch(places, of, count, exhausted);
	} while (count && left < ENOUGH);
	return left;
}

/* Interrupts readers until no read is interrupted. */
static long interrupt_readers(void)
{
	long before = -1, now;
	int i, polls = 0;

	__atomic_store_n(reads, 0, __ATOMIC_RELAXED);
	for (i = 0; i < TIMERS; i++) {
		deaf[i] = split();
		if (!deaf[i]) {
			become(numbers == 1 ? OWNER : i);
			read_by_timer();
			_exit(0);
		}
	}
	while (polls < 2 * SHORT) {
		now = __atomic_load_n(reads, __ATOMIC_RELAXED);
		if (now >= ENOUGH)
			break;
		polls = now == before ? polls + 1 : 0;
		before = now;
		usleep(POLL);
	}
	return before;
}

struct round {
	long left;
	bool emptied, later;
};

static void send_all(int to, const void *bytes, size_t size)
{
	if (write(to, bytes, size) != (ssize_t)size)
		die("write");
}

static void receive(int from, void *bytes, size_t size)
{
	if (read(from, bytes, size) != (ssize_t)size)
		die("a process ended early");
}

/* A round of the user, by orders @from the first process, with reports @to it. */
static void attack(int from, int to)
{
	struct round round = {0};
	int number = numbers == 1 ? OWNER : 1, i;
	pid_t probe;
	char go;

	if (numbers > 1) {
		if (is(user, "space"))
			become(OWNER);
		if (unshare(CLONE_NEWUSER))
			die("unshare");
		send_all(to, "", 1);
		receive(from, &go, 1); /* it has numbers */
		become(0);
	}
	round.left = is(lock, "tty") ? interrupt_readers() : kill_waiters();
	probe = start_wait(1, 0, number);
	round.emptied = is_deaf(probe, SHORT);
	send_all(to, &round, sizeof(round));
	receive(from, &go, 1); /* the first lock is free */
	for (i = 0; i < PLACES; i++)
		if (deaf[i])
			reap(deaf[i]);
	i = start_wait(1, 1, number);
	round.later = is_deaf(i, LONG);
	send_all(to, &round, sizeof(round));
	receive(from, &go, 1); /* the second one is, too */
	if (round.emptied)
		reap(probe);
	if (round.later)
		reap(i);
}

/* ---- Others ---- */

static void write_map(pid_t child, const char *map)
{
	char name[64], line[64];
	int file, length = snprintf(line, sizeof(line), "0 %d 65536", FIRST_NUMBER);

	snprintf(name, sizeof(name), "/proc/%d/%s", child, map);
	file = open(name, O_WRONLY);
	if (file < 0 || write(file, line, length) != length)
		die("%s", name);
	close(file);
}

/* Frees the lock @which, whose @holder and @first waiter, if any, are the processes. */
static void free_lock(int which, pid_t holder, pid_t first)
{
	if (!is(lock, "tty"))
		tell("answer", which);
	reap(holder);
	if (first)
		reap(first);
}

/* Counts the deaf waits of users that have not interrupted any. */
static int count_deaf(pid_t *waiters)
{
	const int others[] = {0, OWNER, OWNER + 1, ALIKE, FIRST_NUMBER + 1};
	int i, count = 0;

	for (i = 0; i < (int)(sizeof(others) / sizeof(*others)); i++) {
		/* Root's namespaces are not root. */
		if (others[i] == OWNER && !is(user, "rooted"))
			continue;
		waiters[count] = start_wait(1, PLACES - 1 - i, others[i]);
		count += is_deaf(waiters[count], LONG);
	}
	return count;
}

static int run_round(struct round *round)
{
	pid_t holder = start(hold_lock, 0), first = start(head, 0);
	pid_t other_holder = start(hold_lock, 1), child, waiters[8];
	int orders[2], reports[2], count, i;
	char word;

	if (pipe(orders) || pipe(reports))
		die("pipe");
	child = split();
	if (!child) {
		attack(orders[0], reports[1]);
		_exit(0);
	}
	if (numbers > 1) {
		receive(reports[0], &word, 1);
		write_map(child, "uid_map");
		send_all(orders[1], "", 1);
	}
	receive(reports[0], round, sizeof(*round));
	count = count_deaf(waiters);
	free_lock(0, holder, first);
	send_all(orders[1], "", 1);
	receive(reports[0], round, sizeof(*round));
	free_lock(1, other_holder, 0);
	send_all(orders[1], "", 1);
	for (i = 0; i < count; i++)
		reap(waiters[i]);
	if (waitpid(child, NULL, 0) != child)
		die("waitpid");
	for (i = 0; i < 2; i++) {
		close(orders[i]);
		close(reports[i]);
	}
	return count;
}

/* A terminal's file to read from. */
static int open_terminal(void)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), unlocked = 0, terminal;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked))
		die("/dev/ptmx");
	terminal = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	if (terminal < 0)
		die("a terminal");
	return terminal;
}

static void open_files(void)
{
	char name[64];
	int which, place;

	ask = open(STALL "/ask", O_WRONLY);
	if (ask < 0)
		die(STALL);
	for (which = 0; which < 2; which++) {
		if (is(lock, "tty"))
			files[which][0] = open_terminal();
		snprintf(name, sizeof(name), STALL "/%d", which);
		for (place = 0; is(lock, "folder") && place < PLACES; place++) {
			files[which][place] = open(name, O_RDONLY | O_DIRECTORY);
			if (files[which][place] < 0)
				die("%s", name);
		}
	}
}

int main(int count, char **words)
{
	long total = 0, least = ENOUGH * 2, most = 0;
	int emptied = 0, others = 0, later = 0, rounds, i;

	if (count != 4)
		return 2;
	lock = words[1];
	user = words[2];
	rounds = atoi(words[3]);
	numbers = is(user, "user") ? 1 : NUMBERS;
	reads = mmap(NULL, sizeof(*reads), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (reads == MAP_FAILED)
		die("mmap");
	open_files();
	for (i = 0; i < rounds; i++) {
		struct round round;

		others += run_round(&round);
		total += round.left;
		least = round.left < least ? round.left : least;
		most = round.left > most ? round.left : most;
		emptied += round.emptied;
		later += round.later;
	}
	printf("lock=%s %s total=%ld least=%ld most=%ld emptied=%d deaf=%d later=%d ok\n", lock,
	       user, total, least, most, emptied, others, later);
	return 0;
}
