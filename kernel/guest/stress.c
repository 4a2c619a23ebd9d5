// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Stresses the kernel's file system and memory management by many threads of one process, and
 * checks the results:
 *
 *	stress TEST THREADS COUNT    each thread runs COUNT rounds of TEST
 *	stress TEST THREADS TIMEms   each thread runs rounds of TEST for that many milliseconds
 *	stress list                  prints the names of the tests
 *
 * The working directory must be empty, and is empty again at the end. Succeeds if every file and
 * byte is as expected, else prints one line. Modelled on FxMark's MWCM, MWRM, MRDM and MWRL, and on
 * will-it-scale's lock1, lock2, open1, open2, mmap1, page_fault1, pipe1 and futex4.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

static long threads;
static long count;        /* rounds of each thread; 0: until `over` */
static long milliseconds; /* until `over` */
static atomic_bool over;
static const char *test;
static pthread_barrier_t all_there;

static void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

static void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("lock=%s ", test);
	vprintf(format, arguments);
	printf(" FAILED\n");
	va_end(arguments);
	fflush(stdout);
	_exit(1);
}

static void check(bool is_right, const char *what, const char *path)
{
	if (!is_right)
		die("%s %s: %s", what, path, strerror(errno));
}

/* ---- Rounds ---- */

/* A thread's account of its work, in a cache line of its own. */
static struct {
	_Alignas(64) long rounds;
	long owes; /* what it has written to the pipe and not read */
} * done;

/* Whether thread @me, after that many @rounds, runs another one. */
static bool goes_on(long me, long rounds)
{
	done[me].rounds = rounds;
	return count ? rounds < count : !atomic_load_explicit(&over, memory_order_relaxed);
}

static long all_rounds(void)
{
	long rounds = 0;

	for (long thread = 0; thread < threads; thread++)
		rounds += done[thread].rounds;
	return rounds;
}

/* ---- Files ---- */

struct path {
	char text[64];
};

static struct path path_of(const char *folder, const char *kind, long a, long b)
{
	struct path path;

	if (snprintf(path.text, sizeof(path.text), "%s/%s%ld.%ld", folder, kind, a, b) >=
	    (int)sizeof(path.text))
		die("a path is too long");
	return path;
}

static struct path folder_of(long thread)
{
	struct path path;

	snprintf(path.text, sizeof(path.text), "own%ld", thread);
	return path;
}

/* Creates a file with the content @number. */
static void create(struct path path, long number)
{
	int file = open(path.text, O_CREAT | O_EXCL | O_RDWR, 0600);

	check(file >= 0, "create", path.text);
	check(write(file, &number, sizeof(number)) == sizeof(number), "write", path.text);
	close(file);
}

static void check_file(struct path path, long number)
{
	int file = open(path.text, O_RDONLY);
	long seen;

	check(file >= 0, "open", path.text);
	check(read(file, &seen, sizeof(seen)) == sizeof(seen), "read", path.text);
	if (seen != number)
		die("%s has %ld, not %ld", path.text, seen, number);
	close(file);
}

static void move(struct path from, struct path to)
{
	check(!rename(from.text, to.text), "rename", from.text);
}

static void discard(struct path path)
{
	check(!unlink(path.text), "unlink", path.text);
}

/* The number of files in @folder whose names begin with @kind. */
static long files_in(const char *folder, const char *kind)
{
	DIR *directory = opendir(folder);
	struct dirent *entry;
	long files = 0;

	check(directory, "opendir", folder);
	while ((entry = readdir(directory)))
		files += !strncmp(entry->d_name, kind, strlen(kind));
	closedir(directory);
	return files;
}

static void expect_files(const char *folder, const char *kind, long files)
{
	long seen = files_in(folder, kind);

	if (seen != files)
		die("%s has %ld files %s*, not %ld", folder, seen, kind, files);
}

/* ---- The tests: each thread's rounds, and the steps before and after them ---- */

static void nothing(void)
{
}

#define MOST_CREATED 1000 /* files of a thread at a time */

static long number_of(long thread, long round)
{
	return round * threads + thread;
}

/* The first of a thread's files that it has not deleted. */
static long first_created(long rounds)
{
	return rounds > MOST_CREATED ? rounds - MOST_CREATED : 0;
}

static void create_in_shared(long me)
{
	for (long i = 0; goes_on(me, i); i++) {
		create(path_of("shared", "f", me, i), number_of(me, i));
		if (i >= MOST_CREATED)
			discard(path_of("shared", "f", me, i - MOST_CREATED));
	}
}

static void check_created(void)
{
	long files = 0;

	for (long thread = 0; thread < threads; thread++)
		files += done[thread].rounds - first_created(done[thread].rounds);
	expect_files("shared", "f", files);
	for (long thread = 0; thread < threads; thread++)
		for (long i = first_created(done[thread].rounds); i < done[thread].rounds; i++) {
			check_file(path_of("shared", "f", thread, i), number_of(thread, i));
			discard(path_of("shared", "f", thread, i));
		}
}

static void create_own(void)
{
	for (long thread = 0; thread < threads; thread++)
		create(path_of(folder_of(thread).text, "f", thread, 0), thread);
}

static void check_own(void)
{
	expect_files("shared", "f", 0);
	for (long thread = 0; thread < threads; thread++) {
		expect_files(folder_of(thread).text, "f", 1);
		check_file(path_of(folder_of(thread).text, "f", thread, 0), thread);
		discard(path_of(folder_of(thread).text, "f", thread, 0));
	}
}

/* From the thread's folder to the shared one, then through the next thread's and back. */
static void rename_across(long me)
{
	struct path home = path_of(folder_of(me).text, "f", me, 0),
		    shared = path_of("shared", "f", me, 0);
	struct path away = path_of(folder_of((me + 1) % threads).text, "g", me, 0);

	for (long i = 0; goes_on(me, i); i++) {
		move(home, shared);
		move(shared, away);
		move(away, home);
	}
}

static void rename_within(long me)
{
	struct path one = path_of(folder_of(me).text, "f", me, 0),
		    other = path_of(folder_of(me).text, "g", me, 0);

	for (long i = 0; goes_on(me, i); i++) {
		move(one, other);
		move(other, one);
	}
}

#define STAYING 40

static void create_staying(void)
{
	for (long i = 0; i < STAYING; i++)
		create(path_of("shared", "stays", i, 0), i);
}

/*
 * Odd threads read the folder while even ones create and delete files there: files that nobody
 * deletes must be seen every time.
 */
static void read_shared(long me)
{
	for (long i = 0; goes_on(me, i); i++) {
		if (me % 2) {
			create(path_of("shared", "goes", me, i), i);
			discard(path_of("shared", "goes", me, i));
		} else {
			expect_files("shared", "stays", STAYING);
		}
	}
}

static void check_staying(void)
{
	expect_files("shared", "goes", 0);
	for (long i = 0; i < STAYING; i++) {
		check_file(path_of("shared", "stays", i, 0), i);
		discard(path_of("shared", "stays", i, 0));
	}
}

/* Takes or releases the lock of a file, in the name of the open file, not of the process. */
static void lock_file(int file, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_len = 4};

	check(!fcntl(file, F_OFD_SETLKW, &lock), "fcntl", "lock");
}

static void lock_own(long me)
{
	struct path path = path_of(folder_of(me).text, "f", me, 0);
	int file = open(path.text, O_RDWR);

	check(file >= 0, "open", path.text);
	for (long i = 0; goes_on(me, i); i++) {
		lock_file(file, F_WRLCK);
		lock_file(file, F_UNLCK);
	}
	close(file);
}

static void create_counter(void)
{
	create(path_of("shared", "f", 0, 0), 0);
}

static void check_counter(void)
{
	check_file(path_of("shared", "f", 0, 0), all_rounds());
	discard(path_of("shared", "f", 0, 0));
}

/* Increments the number in the file under the file's lock. */
static void lock_shared(long me)
{
	int file = open(path_of("shared", "f", 0, 0).text, O_RDWR);
	long number;

	check(file >= 0, "open", "the counter");
	for (long i = 0; goes_on(me, i); i++) {
		lock_file(file, F_WRLCK);
		check(pread(file, &number, sizeof(number), 0) == sizeof(number), "read",
		      "the counter");
		number++;
		check(pwrite(file, &number, sizeof(number), 0) == sizeof(number), "write",
		      "the counter");
		lock_file(file, F_UNLCK);
	}
	close(file);
}

static void open_own(long me)
{
	for (long i = 0; goes_on(me, i); i++)
		check_file(path_of(folder_of(me).text, "f", me, 0), me);
}

static void open_shared(long me)
{
	for (long i = 0; goes_on(me, i); i++)
		check_file(path_of(folder_of((me + i) % threads).text, "f", (me + i) % threads, 0),
			   (me + i) % threads);
}

#define MAPPED 8

/* Maps memory, checks that it is zero, writes to each page, and unmaps it. */
static void map_and_unmap(long me)
{
	for (long i = 0; goes_on(me, i); i++) {
		long *bytes = mmap(NULL, MAPPED * PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		check(bytes != MAP_FAILED, "mmap", "");
		for (long page = 0; page < MAPPED; page++) {
			long *word = bytes + page * PAGE / sizeof(long);

			if (*word)
				die("a new page has %ld", *word);
			*word = me;
		}
		for (long page = 0; page < MAPPED; page++)
			if (bytes[page * PAGE / sizeof(long)] != me)
				die("page %ld of thread %ld has %ld", page, me,
				    bytes[page * PAGE / sizeof(long)]);
		check(!munmap(bytes, MAPPED * PAGE), "munmap", "");
	}
}

static char *region;

static void map_region(void)
{
	region = mmap(NULL, threads * MAPPED * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(region != MAP_FAILED, "mmap", "the region");
}

static void unmap_region(void)
{
	check(!munmap(region, threads * MAPPED * PAGE), "munmap", "the region");
}

/*
 * Touches its pages of the common region, then discards them. Changes their protection in between
 * in every other round.
 */
static void fault(long me)
{
	char *mine = region + me * MAPPED * PAGE;

	for (long i = 0; goes_on(me, i); i++) {
		for (long page = 0; page < MAPPED; page++) {
			if (mine[page * PAGE])
				die("a page that was given back has %d", mine[page * PAGE]);
			mine[page * PAGE] = 1;
		}
		if (i % 2) {
			check(!mprotect(mine, MAPPED * PAGE, PROT_READ), "mprotect", "");
			check(!mprotect(mine, MAPPED * PAGE, PROT_READ | PROT_WRITE), "mprotect",
			      "");
		}
		check(!madvise(mine, MAPPED * PAGE, MADV_DONTNEED), "madvise", "");
	}
}

/* Children that share memory copy-on-write. */
static void fork_and_wait(long me)
{
	for (long i = 0; goes_on(me, i); i++) {
		volatile long mine = i;
		pid_t child = fork();
		int status;

		check(child >= 0, "fork", "");
		if (!child) {
			mine += me;
			_exit(mine == i + me ? 7 : 8);
		}
		check(waitpid(child, &status, 0) == child, "waitpid", "");
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 7 || mine != i)
			die("a child ended with status %d", status);
	}
}

static int ends[2];

static void make_pipe(void)
{
	check(!pipe(ends), "pipe", "");
}

/*
 * Writes a word to the pipe of all threads, then reads one: there are as many words as readers.
 */
static void write_and_read(long me)
{
	for (long i = 0; goes_on(me, i); i++) {
		long word = number_of(me, i), seen;

		check(write(ends[1], &word, sizeof(word)) == sizeof(word), "write", "the pipe");
		check(read(ends[0], &seen, sizeof(seen)) == sizeof(seen), "read", "the pipe");
		done[me].owes += word - seen;
	}
}

/* Every word was read, once. */
static void check_pipe(void)
{
	long owed = 0;

	for (long thread = 0; thread < threads; thread++)
		owed += done[thread].owes;
	if (owed)
		die("the words that were read differ by %ld from those written", owed);
	check(!close(ends[0]) && !close(ends[1]), "close", "the pipe");
}

/* Waits for a shared futex that has another value: the kernel locks it, and returns. */
static void wait_for_other_value(long me)
{
	static uint32_t word = 1;

	for (long i = 0; goes_on(me, i); i++)
		check(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) == -1 &&
			      errno == EAGAIN,
		      "futex", "");
}

static const struct {
	const char *name;
	void (*before)(void);
	void (*work)(long me);
	void (*after)(void);
} tests[] = {
	{"create", nothing, create_in_shared, check_created},
	{"rename_across", create_own, rename_across, check_own},
	{"rename_within", create_own, rename_within, check_own},
	{"readdir", create_staying, read_shared, check_staying},
	{"lock1", create_own, lock_own, check_own},
	{"lock2", create_counter, lock_shared, check_counter},
	{"open1", create_own, open_own, check_own},
	{"open2", create_own, open_shared, check_own},
	{"mmap", nothing, map_and_unmap, nothing},
	{"fault", map_region, fault, unmap_region},
	{"fork", nothing, fork_and_wait, nothing},
	{"pipe", make_pipe, write_and_read, check_pipe},
	{"futex", nothing, wait_for_other_value, nothing},
};

#define TESTS (sizeof(tests) / sizeof(*tests))

static void (*work)(long me);

static void *work_of(void *argument)
{
	pthread_barrier_wait(&all_there);
	work((long)argument);
	return NULL;
}

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Runs all threads. Returns the nanoseconds that they took. */
static long run(void)
{
	pthread_t *all = calloc(threads, sizeof(*all));
	long began;

	check(all && !pthread_barrier_init(&all_there, NULL, threads + 1), "start", "");
	for (long i = 0; i < threads; i++)
		if (pthread_create(&all[i], NULL, work_of, (void *)i))
			die("thread %ld cannot be made", i);
	began = now();
	pthread_barrier_wait(&all_there);
	if (milliseconds)
		usleep(milliseconds * 1000);
	atomic_store(&over, true);
	for (long i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	free(all);
	return now() - began;
}

/* The index of the test @name; TESTS if there is none. */
static size_t find(const char *name)
{
	size_t i;

	for (i = 0; i < TESTS && strcmp(tests[i].name, name); i++)
		;
	return i;
}

static void list(void)
{
	for (size_t i = 0; i < TESTS; i++)
		puts(tests[i].name);
}

/* Reads the arguments. Returns the index of the test. */
static size_t parse(int argc, char **argv)
{
	size_t found = TESTS;
	char *unit = "";

	test = "?";
	if (argc == 4) {
		test = argv[1];
		found = find(test);
		threads = atol(argv[2]);
		count = strtol(argv[3], &unit, 10);
	}
	if (found == TESTS || threads < 1 || count < 1 || (*unit && strcmp(unit, "ms")))
		die("usage: stress TEST THREADS COUNT, or TIMEms instead of COUNT; stress list");
	if (*unit) {
		milliseconds = count;
		count = 0;
	}
	return found;
}

int main(int argc, char **argv)
{
	long nanoseconds;
	size_t i;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		list();
		return 0;
	}
	i = parse(argc, argv);
	done = aligned_alloc(64, threads * sizeof(*done));
	check(done, "start", "");
	memset(done, 0, threads * sizeof(*done));
	check(!mkdir("shared", 0700), "mkdir", "shared");
	for (long thread = 0; thread < threads; thread++)
		check(!mkdir(folder_of(thread).text, 0700), "mkdir", folder_of(thread).text);
	work = tests[i].work;
	tests[i].before();
	nanoseconds = run();
	tests[i].after();
	for (long thread = 0; thread < threads; thread++)
		check(!rmdir(folder_of(thread).text), "rmdir", folder_of(thread).text);
	check(!rmdir("shared"), "rmdir", "shared");
	printf("lock=%s threads=%ld rounds=%ld nanoseconds=%ld ok\n", test, threads, all_rounds(),
	       nanoseconds);
	return 0;
}
