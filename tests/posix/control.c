/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * POUNDLOCK_CONTROL. argv[1] is the library. Runs itself as children under the library, which
 * write into their own control pages as `poundlock control` does. The settings of a mutex are
 * visible in its word: with patience=0 a waiter that is the queue head closes the mutex to
 * newcomers before it sleeps, and by default not before its fifth failed attempt. So does a waiter
 * for a readers-writer lock behind a writer.
 */
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../preload/control_page.h"
#include "posix.h"

/* lib/live.h: the words of settings. */
#define WORD(patience, policy, batch)                                       \
	(UINT64_C(1) << 63 | UINT64_C(1) << 58 | (uint64_t)(policy) << 50 | \
	 (uint64_t)(batch) << 30 | (patience))
#define CLOSING WORD(0, 1, 1024)
#define OPEN 0

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* ---- The page ---- */

/* The control page @number of this process; NULL: there is none. */
static struct control_page *find_page(int number)
{
	struct control_page *page;
	struct stat status;
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/poundlock.%d.%d.control", getenv("POUNDLOCK_CONTROL"),
		 (int)getpid(), number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	EXPECT(!fstat(fd, &status) && (status.st_mode & 07777) == 0600, "%o", status.st_mode);
	EXPECT(status.st_uid == geteuid() && status.st_size == sizeof(*page), "%s", path);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(page != MAP_FAILED, "mmap");
	close(fd);
	EXPECT(!strcmp(page->magic, CONTROL_MAGIC) && page->pid == (uint32_t)getpid(), "%s", path);
	return page;
}

/* The item of @lock; NULL: no thread has waited for it. */
static struct control_lock *item_of(struct control_page *page, const void *lock)
{
	for (uint32_t i = 0; i < CONTROL_LOCKS; i++)
		if (atomic_load(&page->locks[i].address) == (uintptr_t)lock)
			return &page->locks[i];
	return NULL;
}

static struct control_lock *known(struct control_page *page, const void *lock)
{
	struct control_lock *item = item_of(page, lock);

	EXPECT(item, "a thread has waited for the lock");
	return item;
}

/* ---- A mutex's settings ---- */

/* core/shfl_mutex.h: flags of the state, bytes 20 to 23. */
enum { LOCKED = 1, PARKED = 2, CLOSED = 8 };

static uint32_t state_of(const pthread_mutex_t *lock)
{
	return __atomic_load_n((const uint32_t *)lock + 5, __ATOMIC_ACQUIRE);
}

static void *lock_and_unlock(void *lock)
{
	EXPECT_OK(pthread_mutex_lock(lock));
	EXPECT_OK(pthread_mutex_unlock(lock));
	return NULL;
}

static void *lock_in_time_and_unlock(void *lock)
{
	struct timespec at = from_now(CLOCK_REALTIME, 1000000);

	EXPECT_OK(pthread_mutex_timedlock(lock, &at));
	EXPECT_OK(pthread_mutex_unlock(lock));
	return NULL;
}

static void wait_and_expect(void *(*waiter)(void *), pthread_mutex_t *lock, bool closed, int line)
{
	pthread_t thread;
	uint32_t state;

	EXPECT_OK(pthread_mutex_lock(lock));
	thread = start(waiter, lock);
	while (!((state = state_of(lock)) & PARKED))
		sched_yield();
	EXPECT((state & LOCKED) && !(state & CLOSED) == !closed, "line %d: state %x, expected %s",
	       line, state, closed ? "closed" : "open");
	EXPECT_OK(pthread_mutex_unlock(lock));
	finish(thread);
}

static void expect_closed_at(pthread_mutex_t *lock, bool closed, int line)
{
	wait_and_expect(lock_and_unlock, lock, closed, line);
	wait_and_expect(lock_in_time_and_unlock, lock, closed, line);
}

#define EXPECT_CLOSED(lock, closed) expect_closed_at(lock, closed, __LINE__)

/* A wait of this thread for a mutex that it holds, until a deadline in the past. */
static void wait_in_past(pthread_mutex_t *lock)
{
	struct timespec past = {.tv_sec = 1};

	EXPECT_OK(pthread_mutex_lock(lock));
	EXPECT_RESULT(pthread_mutex_timedlock(lock, &past), ETIMEDOUT);
	EXPECT_OK(pthread_mutex_unlock(lock));
}

/* ---- Children under the library ---- */

static const uint64_t invalid[] = {1,
				   ~UINT64_C(0),
				   CLOSING & ~(UINT64_C(1) << 63),
				   WORD(0, 1, 0),
				   WORD(1000000001, 1, 1024),
				   WORD(0, 1, 1000001),
				   WORD(0, 4, 1024),
				   WORD(0, 6, 1024),
				   WORD(0, 255, 1024)};

static int change(void)
{
	struct control_page *page = find_page(0);
	struct control_lock *item;

	EXPECT(page && !item_of(page, &mutex), "the page is made at the start");
	EXPECT_CLOSED(&mutex, false);
	item = known(page, &mutex);
	EXPECT(item->own == WORD(4, 1, 1024) && !item->wanted && item->waits == 2 && !item->waiting,
	       "%llx", (unsigned long long)item->own);
	for (uint64_t policy = 0; policy < 4; policy++) {
		atomic_store(&item->wanted, WORD(0, policy, 1 + policy));
		EXPECT_CLOSED(&mutex, true);
	}
	EXPECT_CLOSED(&other, false);
	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
		atomic_store(&item->wanted, invalid[i]);
		EXPECT_CLOSED(&mutex, false);
	}
	atomic_store(&item->wanted, CLOSING);
	EXPECT_CLOSED(&mutex, true);
	atomic_store(&item->wanted, OPEN);
	EXPECT_CLOSED(&mutex, false);
	EXPECT_CLOSED(&recursive, false);
	atomic_store(&known(page, &recursive)->wanted, CLOSING);
	EXPECT_CLOSED(&recursive, true);
	return 0;
}

/* The settings of all mutexes count for those without settings of their own. */
static int change_all(void)
{
	struct control_page *page = find_page(0);
	pthread_mutex_t *memory = calloc(2 * CONTROL_LOCKS, sizeof(*memory)), *unlisted = memory;

	EXPECT_CLOSED(&mutex, false);
	atomic_store(&page->wanted, CLOSING);
	EXPECT_CLOSED(&mutex, true);
	EXPECT_CLOSED(&other, true);
	EXPECT_CLOSED(&recursive, true);
	atomic_store(&known(page, &mutex)->wanted, WORD(4, 1, 1024));
	EXPECT_CLOSED(&mutex, false);
	EXPECT_CLOSED(&other, true);
	atomic_store(&known(page, &mutex)->wanted, WORD(0, 255, 1024));
	EXPECT_CLOSED(&mutex, true);
	atomic_store(&page->wanted, WORD(0, 255, 1024));
	EXPECT_CLOSED(&mutex, false);
	atomic_store(&page->wanted, CLOSING);
	for (int i = 0; i < 2 * (int)CONTROL_LOCKS; i++) {
		EXPECT_OK(pthread_mutex_init(&memory[i], NULL));
		wait_in_past(&memory[i]);
	}
	while (item_of(page, unlisted))
		unlisted++;
	EXPECT_CLOSED(unlisted, true);
	atomic_store(&page->wanted, OPEN);
	EXPECT_CLOSED(unlisted, false);
	EXPECT_CLOSED(&other, false);
	free(memory);
	return 0;
}

/* The item of a mutex ends with it, and its place is used again. */
static int destroy(void)
{
	struct control_page *page = find_page(0);
	pthread_mutex_t *memory = calloc(2 * CONTROL_LOCKS, sizeof(*memory));

	for (int i = 0; i < 2 * (int)CONTROL_LOCKS; i++) {
		EXPECT_OK(pthread_mutex_init(&memory[i], NULL));
		wait_in_past(&memory[i]);
		atomic_store(&known(page, &memory[i])->wanted, CLOSING);
		EXPECT(known(page, &memory[i])->site, "the site is known");
		EXPECT_OK(pthread_mutex_destroy(&memory[i]));
		EXPECT(!item_of(page, &memory[i]), "the mutex is destroyed");
	}
	EXPECT_OK(pthread_mutex_init(memory, NULL));
	EXPECT_CLOSED(memory, false);
	/* Initialised again, without having been destroyed. */
	atomic_store(&known(page, memory)->wanted, CLOSING);
	EXPECT_OK(pthread_mutex_init(memory, NULL));
	EXPECT_CLOSED(memory, false);
	/* More than have room: they work, and are counted. */
	for (int i = 1; i < 2 * (int)CONTROL_LOCKS; i++) {
		EXPECT_OK(pthread_mutex_init(&memory[i], NULL));
		wait_in_past(&memory[i]);
	}
	EXPECT(page->unlisted >= CONTROL_LOCKS, "%llu", (unsigned long long)page->unlisted);
	free(memory);
	return 0;
}

static void expect_child(pid_t child)
{
	int status;

	EXPECT(child > 0 && waitpid(child, &status, 0) == child && !status, "%x", status);
}

/* A child does not use its parent's page, however it is forked. */
static void run_child(pid_t child)
{
	struct control_page *page;

	if (child)
		return;
	EXPECT(!find_page(0), "a child has no page before its first wait");
	EXPECT_CLOSED(&mutex, false);
	page = find_page(0);
	EXPECT(page, "a child makes a page");
	atomic_store(&known(page, &mutex)->wanted, CLOSING);
	EXPECT_CLOSED(&mutex, true);
	_exit(0);
}

static int fork_and_exec(void)
{
	struct control_page *page = find_page(0);
	struct control_lock *item;
	pid_t child;

	EXPECT_CLOSED(&mutex, false);
	item = known(page, &mutex);
	atomic_store(&item->wanted, CLOSING);
	atomic_store(&page->wanted, CLOSING);
	child = fork();
	run_child(child);
	expect_child(child);
	EXPECT(item->waits == 2, "the child's waits are not the parent's");
	atomic_store(&item->wanted, OPEN);
	atomic_store(&page->wanted, OPEN);
	child = fork();
	run_child(child);
	expect_child(child);
	EXPECT_CLOSED(&mutex, false);
	execl("/proc/self/exe", "control", "executed", (char *)NULL);
	return 1;
}

static int executed(void)
{
	struct control_page *page = find_page(1);

	EXPECT(find_page(0) && page, "the earlier program's page is left, and a new one made");
	EXPECT_CLOSED(&mutex, false);
	atomic_store(&known(page, &mutex)->wanted, CLOSING);
	EXPECT_CLOSED(&mutex, true);
	return 0;
}

/* From a sandbox on, children make no page: the filter might end them. */
static int enter_sandbox(void)
{
	struct control_page *page = find_page(0);
	pid_t child;

	EXPECT(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl");
	EXPECT_CLOSED(&mutex, false);
	atomic_store(&known(page, &mutex)->wanted, CLOSING);
	EXPECT_CLOSED(&mutex, true);
	child = fork();
	if (!child) {
		EXPECT_CLOSED(&mutex, false);
		EXPECT(!find_page(0), "no page in a sandbox");
		_exit(0);
	}
	expect_child(child);
	return 0;
}

/* ---- Readers-writer locks ---- */

static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;

/* core/part/rw_word.h: flags of the word, bytes 16 to 19. */
enum { RW_CLOSED = 2, RW_PARKED = 4 };

static uint32_t word_of(const pthread_rwlock_t *lock)
{
	return __atomic_load_n((const uint32_t *)lock + 4, __ATOMIC_ACQUIRE);
}

static void *read_and_unlock(void *lock)
{
	EXPECT_OK(pthread_rwlock_rdlock(lock));
	EXPECT_OK(pthread_rwlock_unlock(lock));
	return NULL;
}

static void *write_and_unlock(void *lock)
{
	EXPECT_OK(pthread_rwlock_wrlock(lock));
	EXPECT_OK(pthread_rwlock_unlock(lock));
	return NULL;
}

static void *read_in_time_and_unlock(void *lock)
{
	struct timespec at = from_now(CLOCK_REALTIME, 1000000);

	EXPECT_OK(pthread_rwlock_timedrdlock(lock, &at));
	EXPECT_OK(pthread_rwlock_unlock(lock));
	return NULL;
}

static void *write_in_time_and_unlock(void *lock)
{
	struct timespec at = from_now(CLOCK_REALTIME, 1000000);

	EXPECT_OK(pthread_rwlock_timedwrlock(lock, &at));
	EXPECT_OK(pthread_rwlock_unlock(lock));
	return NULL;
}

static void *(*const rw_waiters[])(void *) = {read_and_unlock, write_and_unlock,
					      read_in_time_and_unlock, write_in_time_and_unlock};
#define RW_WAITERS (sizeof(rw_waiters) / sizeof(rw_waiters[0]))

/* One wait of each of these, while this thread is the writer inside. */
static void expect_rw_closed_at(pthread_rwlock_t *lock, bool closed, int line)
{
	for (size_t i = 0; i < RW_WAITERS; i++) {
		pthread_t thread;
		uint32_t word;

		EXPECT_OK(pthread_rwlock_wrlock(lock));
		thread = start(rw_waiters[i], lock);
		while (!((word = word_of(lock)) & RW_PARKED))
			sched_yield();
		EXPECT(!(word & RW_CLOSED) == !closed, "line %d, waiter %zu: word %x, expected %s",
		       line, i, word, closed ? "closed" : "open");
		EXPECT_OK(pthread_rwlock_unlock(lock));
		finish(thread);
	}
}

#define EXPECT_RW_CLOSED(lock, closed) expect_rw_closed_at(lock, closed, __LINE__)

static int change_rw(void)
{
	struct control_page *page = find_page(0);
	const char *name = getenv("POUNDLOCK_RWLOCK");
	struct control_lock *item;

	EXPECT_RW_CLOSED(&rw, false);
	item = known(page, &rw);
	EXPECT(item->is_rw && !strcmp(item->lock, name ? name : "shfl_rw"), "%s", item->lock);
	EXPECT(item->own == WORD(4, 1, 1024) && !item->wanted, "%llx",
	       (unsigned long long)item->own);
	EXPECT(item->waits == RW_WAITERS && !item->waiting && !item->site, "%llu waits",
	       (unsigned long long)item->waits);
	for (uint64_t policy = 0; policy < 4; policy++) {
		atomic_store(&item->wanted, WORD(0, policy, 1 + policy));
		EXPECT_RW_CLOSED(&rw, true);
	}
	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
		atomic_store(&item->wanted, invalid[i]);
		EXPECT_RW_CLOSED(&rw, false);
	}
	atomic_store(&item->wanted, OPEN);
	atomic_store(&page->wanted, CLOSING);
	EXPECT_RW_CLOSED(&rw, false);
	EXPECT_CLOSED(&mutex, true);
	atomic_store(&page->rw_wanted, CLOSING);
	atomic_store(&page->wanted, OPEN);
	EXPECT_RW_CLOSED(&rw, true);
	EXPECT_CLOSED(&mutex, false);
	EXPECT(!known(page, &mutex)->is_rw, "a mutex");
	return 0;
}

static int destroy_rw(void)
{
	struct control_page *page = find_page(0);
	pthread_rwlock_t *lock = malloc(sizeof(*lock));

	for (int i = 0; i < 2; i++) {
		EXPECT_OK(pthread_rwlock_init(lock, NULL));
		EXPECT_RW_CLOSED(lock, false);
		EXPECT(known(page, lock)->site, "the site is known");
		atomic_store(&known(page, lock)->wanted, CLOSING);
		EXPECT_RW_CLOSED(lock, true);
		EXPECT_OK(pthread_rwlock_destroy(lock));
		EXPECT(!item_of(page, lock), "the lock is destroyed");
	}
	free(lock);
	return 0;
}

/* A lock whose settings cannot change is listed all the same. */
static int list_rw(void)
{
	struct control_page *page = find_page(0);
	struct timespec past = {.tv_sec = 1};

	EXPECT_OK(pthread_rwlock_rdlock(&rw));
	EXPECT_RESULT(pthread_rwlock_timedwrlock(&rw, &past), ETIMEDOUT);
	EXPECT_OK(pthread_rwlock_unlock(&rw));
	EXPECT(!known(page, &rw)->own && !strcmp(known(page, &rw)->lock, "fair_rw"), "%s",
	       known(page, &rw)->lock);
	atomic_store(&known(page, &rw)->wanted, CLOSING);
	for (size_t i = 0; i < RW_WAITERS; i++)
		rw_waiters[i](&rw);
	return 0;
}

/* ---- A page with any content ---- */

#define THREADS 4
#define ROUNDS 5000

static unsigned long counts[3];
static atomic_bool done;

static void *count(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_t *lock = i % 2 ? &other : &mutex;

		EXPECT_OK(pthread_mutex_lock(lock));
		counts[i % 2]++;
		if (!(i % 64))
			sched_yield();
		EXPECT_OK(pthread_mutex_unlock(lock));
		EXPECT_OK(i % 4 ? pthread_rwlock_wrlock(&rw) : pthread_rwlock_rdlock(&rw));
		counts[2] += i % 4 != 0;
		EXPECT_OK(pthread_rwlock_unlock(&rw));
	}
	return unused;
}

/* Overwrites the page with random words. */
static void *scribble(void *memory)
{
	_Atomic(uint64_t) *words = memory;
	uint64_t state = 88172645463325252u;

	while (!atomic_load(&done)) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		atomic_store(&words[state % (sizeof(struct control_page) / 8)], state * state);
	}
	return NULL;
}

static int survive(void)
{
	struct control_page *page = find_page(0);
	pthread_t scribbler = start(scribble, page), threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		threads[i] = start(count, NULL);
	for (int i = 0; i < THREADS; i++)
		finish(threads[i]);
	atomic_store(&done, true);
	finish(scribbler);
	EXPECT(counts[0] + counts[1] == THREADS * ROUNDS, "%lu", counts[0] + counts[1]);
	EXPECT(counts[2] == THREADS * ROUNDS * 3 / 4, "%lu", counts[2]);
	return 0;
}

/* Without a page, nothing can be changed, and all works. */
static int do_without(void)
{
	EXPECT(!find_page(0), "there is no page");
	if (getenv("POUNDLOCK_LOCK") || getenv("POUNDLOCK_DISABLE"))
		return 0;
	EXPECT_CLOSED(&mutex, false);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} children[] = {
	{"change", change},         {"all", change_all},     {"destroy", destroy},
	{"fork", fork_and_exec},    {"executed", executed},  {"sandbox", enter_sandbox},
	{"survive", survive},       {"without", do_without}, {"change_rw", change_rw},
	{"destroy_rw", destroy_rw}, {"list_rw", list_rw},
};

/* ---- The parent ---- */

static const char *library;
static char folder[] = "/tmp/poundlock-control-XXXXXX";

/*
 * Runs this program as child @name with POUNDLOCK_CONTROL=@control and @setting (NULL: none).
 * Expects that it succeeds, and writes nothing on stderr, or one line that contains @line.
 */
static void run(const char *name, const char *control, char *setting, const char *line)
{
	char errors[4096] = "";
	int ends[2], status;
	size_t length = 0;
	ssize_t got;
	pid_t pid;

	EXPECT(!pipe(ends), "pipe");
	pid = fork();
	if (!pid) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		setenv("LD_PRELOAD", library, 1);
		setenv("POUNDLOCK_CONTROL", control, 1);
		if (setting)
			putenv(setting);
		execl("/proc/self/exe", "control", name, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	while ((got = read(ends[0], errors + length, sizeof(errors) - 1 - length)) > 0)
		length += (size_t)got;
	close(ends[0]);
	EXPECT(waitpid(pid, &status, 0) == pid && !status, "%s: %x: %s", name, status, errors);
	if (!line)
		EXPECT(!length, "%s: %s", name, errors);
	else
		EXPECT(strstr(errors, line) && strchr(errors, '\n') == errors + length - 1,
		       "%s: no '%s' in: %s", name, line, errors);
}

static int run_named(const char *name)
{
	for (size_t i = 0; i < sizeof(children) / sizeof(children[0]); i++)
		if (!strcmp(children[i].name, name))
			return children[i].run();
	return 127;
}

int main(int argc, char **argv)
{
	char statistics[sizeof(folder) + 32], debug[] = "POUNDLOCK_DEBUG=1",
					      batch[] = "POUNDLOCK_LOCK=shfl_mutex,batch=1024",
					      gated[] = "POUNDLOCK_LOCK=shfl_ron";
	char command[sizeof(folder) + 16];

	EXPECT(argc == 2, "usage: control LIBRARY");
	limit();
	if (argv[1][0] != '/')
		return run_named(argv[1]);
	library = argv[1];
	EXPECT(mkdtemp(folder), "%s", folder);
	snprintf(statistics, sizeof(statistics), "POUNDLOCK_STATS=%s", folder);
	run("change", folder, NULL, NULL);
	run("change", folder, statistics, NULL);
	run("change", folder, debug, NULL);
	run("change", folder, batch, NULL);
	run("change", folder, gated, NULL);
	run("all", folder, NULL, NULL);
	run("all", folder, statistics, NULL);
	run("all", folder, gated, NULL);
	run("destroy", folder, NULL, NULL);
	run("fork", folder, NULL, NULL);
	run("fork", folder, statistics, NULL);
	run("fork", folder, gated, NULL);
	run("sandbox", folder, NULL, NULL);
	run("survive", folder, NULL, NULL);
	run("change_rw", folder, NULL, NULL);
	run("change_rw", folder, statistics, NULL);
	run("change_rw", folder, debug, NULL);
	run("change_rw", folder, (char[]){"POUNDLOCK_RWLOCK=bravo_shfl_rw"}, NULL);
	run("destroy_rw", folder, NULL, NULL);
	run("list_rw", folder, (char[]){"POUNDLOCK_RWLOCK=fair_rw"}, NULL);
	run("without", "", NULL, NULL);
	run("without", "0", NULL, NULL);
	run("without", "/no/such/folder", NULL, "cannot make a file in '/no/such/folder'");
	run("without", folder, (char[]){"POUNDLOCK_LOCK=mcs"}, "needs shfl_mutex");
	run("without", folder, (char[]){"POUNDLOCK_LOCK=shfl_mutex,policy=fair"},
	    "needs shfl_mutex");
	run("without", folder, (char[]){"POUNDLOCK_LOCK=native"}, "needs shfl_mutex");
	run("without", folder, (char[]){"POUNDLOCK_DISABLE=1"}, NULL);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	EXPECT(!system(command), "%s", command);
	return 0;
}
