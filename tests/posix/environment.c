/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How the preload library reacts to environment variables. argv[1] is the library, argv[2...] are
 * the names of all locks. A child of this program runs under the library and prints the environment
 * that it would pass on.
 */
#include <sys/wait.h>

#include "posix.h"

static const char *library;

struct run {
	char output[4096], errors[4096];
	int status;
};

static void read_all(int from, char *text, size_t size)
{
	size_t used = 0;
	ssize_t length;

	while (used < size - 1 && (length = read(from, text + used, size - 1 - used)) > 0)
		used += (size_t)length;
	text[used] = 0;
	close(from);
}

/* Runs `env` under LD_PRELOAD=@preload and the variables @settings, NULL-terminated. */
static struct run run(const char *preload, const char *const *settings)
{
	int output[2], errors[2];
	struct run run;
	pid_t child;

	EXPECT(!pipe(output) && !pipe(errors), "pipe");
	child = fork();
	EXPECT(child >= 0, "fork");
	if (!child) {
		dup2(output[1], STDOUT_FILENO);
		dup2(errors[1], STDERR_FILENO);
		clearenv();
		setenv("LD_PRELOAD", preload, 1);
		setenv("OTHER", "kept", 1);
		for (; *settings; settings++)
			putenv((char *)*settings);
		execl("/usr/bin/env", "env", (char *)NULL);
		_exit(127);
	}
	close(output[1]);
	close(errors[1]);
	read_all(output[0], run.output, sizeof(run.output));
	read_all(errors[0], run.errors, sizeof(run.errors));
	EXPECT(waitpid(child, &run.status, 0) == child, "waitpid");
	EXPECT(!run.status, "env ended with %x: %s", run.status, run.errors);
	EXPECT(strstr(run.output, "OTHER=kept\n"), "%s", run.output);
	return run;
}

#define RUN(...) run(library, (const char *const[]){__VA_ARGS__, NULL})

static void expect_lines(const struct run *run, unsigned lines)
{
	unsigned seen = 0;

	for (const char *c = run->errors; *c; c++)
		seen += *c == '\n';
	EXPECT(seen == lines, "%u lines: %s", seen, run->errors);
	EXPECT(!strstr(run->output, "poundlock: "), "on stdout: %s", run->output);
}

/* Expects one line about the variable and one that names the active lock. */
static void expect_refused(struct run run, const char *about)
{
	expect_lines(&run, 2);
	EXPECT(strstr(run.errors, about), "'%s' in: %s", about, run.errors);
	EXPECT(strstr(run.errors, "lock=native "), "%s", run.errors);
}

static void expect_active(struct run run, const char *lock)
{
	char expected[128];

	expect_lines(&run, 1);
	snprintf(expected, sizeof(expected), "poundlock: lock=%s ", lock);
	EXPECT(!strncmp(run.errors, expected, strlen(expected)), "'%s' in: %s", expected,
	       run.errors);
}

static void locks(char **names)
{
	char setting[128];

	expect_active(RUN("POUNDLOCK_VERBOSE=1"), "shfl_ron");
	expect_active(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_LOCK="), "shfl_ron");
	expect_active(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_LOCK=mcs,wait=yield"),
		      "mcs wait=yield");
	expect_active(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_DISABLE=1"), "native");
	for (; *names; names++) {
		snprintf(setting, sizeof(setting), "POUNDLOCK_LOCK=%s", *names);
		expect_active(RUN("POUNDLOCK_VERBOSE=1", setting), *names);
	}
}

/* The line that names the active lock names the readers-writer lock too. */
static void expect_rwlock(struct run run, const char *lock)
{
	char expected[128];

	expect_lines(&run, 1);
	snprintf(expected, sizeof(expected), " rwlock=%s ", lock);
	EXPECT(strstr(run.errors, expected), "'%s' in: %s", expected, run.errors);
}

static void rwlocks(void)
{
	expect_rwlock(RUN("POUNDLOCK_VERBOSE=1"), "shfl_rw");
	expect_rwlock(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_RWLOCK="), "shfl_rw");
	expect_rwlock(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_RWLOCK=fair_rw,wait=yield"), "fair_rw");
	expect_rwlock(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_RWLOCK=native"), "native");
}

static void spinlocks(void)
{
	const char *const specs[] = {"", "qspin", "qspin,patience=3,wait=park", "native"};
	char setting[128];

	for (size_t i = 0; i < 4; i++) {
		struct run seen;

		snprintf(setting, sizeof(setting), "POUNDLOCK_SPINLOCK=%s", specs[i]);
		seen = RUN("POUNDLOCK_VERBOSE=1", setting);
		expect_lines(&seen, 1);
		EXPECT(strstr(seen.errors, i == 3 ? " spinlock=native " : " spinlock=qspin "), "%s",
		       seen.errors);
	}
}

static void silence(void)
{
	struct run quiet = RUN("POUNDLOCK_LOCK=mcs");

	expect_lines(&quiet, 0);
	quiet = RUN("POUNDLOCK_VERBOSE=0", "POUNDLOCK_DISABLE=0");
	expect_lines(&quiet, 0);
}

static void wrong_values(void)
{
	expect_refused(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_LOCK=nosuch"), "nosuch");
	expect_refused(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_LOCK=mcs,speed=9"), "speed");
	expect_refused(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_LOCK=mcs,wait=never"), "never");
	expect_refused(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_RWLOCK=mcs"),
		       "readers-writer lock 'mcs'");
	expect_refused(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_RWLOCK=shfl_rw,speed=9"), "speed");
	expect_refused(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_SPINLOCK=mcs"), "spin lock 'mcs'");
	expect_refused(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_SPINLOCK=qspin,speed=9"), "speed");
	expect_refused(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_DOMAIN=village"), "village");
	expect_refused(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_SHARES=none"),
		       "POUNDLOCK_SHARES=none");
	expect_refused(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_CONTROL=here"),
		       "POUNDLOCK_CONTROL=here");
	expect_refused(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_DISABLE=yes"),
		       "POUNDLOCK_DISABLE=yes");
	expect_refused(RUN("POUNDLOCK_VERBOSE=1", "POUNDLOCK_INHERIT=2"), "POUNDLOCK_INHERIT=2");
}

static void expect_environment(const char *preload, const char *inherit, const char *expected)
{
	struct run seen = run(preload, (const char *const[]){inherit, "POUNDLOCK_LOCK=mcs", NULL});
	const char *found = strstr(seen.output, "LD_PRELOAD=");
	char line[4096] = "";

	if (found)
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(found, "\n"), found);
	EXPECT(!strcmp(line, expected), "'%s', expected '%s'", line, expected);
	EXPECT(!strstr(seen.output, "POUNDLOCK_") == !strcmp(inherit, "POUNDLOCK_INHERIT=0"), "%s",
	       seen.output);
}

static void inheritance(void)
{
	char all[4096], rest[4096];

	snprintf(rest, sizeof(rest), "LD_PRELOAD=%s", library);
	expect_environment(library, "POUNDLOCK_INHERIT=1", rest);
	expect_environment(library, "POUNDLOCK_INHERIT=0", "");
	snprintf(all, sizeof(all), "libm.so.6:%s libdl.so.2", library);
	expect_environment(all, "POUNDLOCK_INHERIT=0", "LD_PRELOAD=libm.so.6:libdl.so.2");
	snprintf(all, sizeof(all), "%s:libm.so.6", library);
	expect_environment(all, "POUNDLOCK_INHERIT=0", "LD_PRELOAD=libm.so.6");
}

int main(int argc, char **argv)
{
	EXPECT(argc > 2, "usage: environment LIBRARY LOCK...");
	library = argv[1];
	locks(argv + 2);
	rwlocks();
	spinlocks();
	silence();
	wrong_values();
	inheritance();
	return 0;
}
