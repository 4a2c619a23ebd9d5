/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For tests of POUNDLOCK_RULES: a file of rules, and runs of the test itself as a child process
 * under the library.
 */
#ifndef POUNDLOCK_TESTS_RULED_H
#define POUNDLOCK_TESTS_RULED_H

#include <filesystem>
#include <string>
#include <sys/wait.h>

#include "posix.h"

static const char *library;
static char folder[] = "/tmp/poundlock-rules-XXXXXX";
static std::string file;

/* Makes the folder of the file. */
static void begin(const char *of_library)
{
	library = of_library;
	EXPECT(mkdtemp(folder), "%s", folder);
	file = std::string(folder) + "/rules.toml";
}

static void end()
{
	std::filesystem::remove_all(folder);
}

static void write_rules(const std::string &text)
{
	FILE *out = fopen(file.c_str(), "w");

	EXPECT(out && fwrite(text.data(), 1, text.size(), out) == text.size() && !fclose(out), "%s",
	       file.c_str());
}

/*
 * Runs this program with the argument @child and the variables @settings. Returns what it writes on
 * stderr.
 */
static std::string run(std::initializer_list<std::string> settings, const char *child)
{
	char buffer[1024];
	std::string errors;
	int ends[2], status;
	ssize_t got;
	pid_t pid;

	EXPECT(!pipe(ends), "pipe");
	pid = fork();
	EXPECT(pid >= 0, "fork");
	if (!pid) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		setenv("LD_PRELOAD", library, 1);
		for (const std::string &setting : settings)
			putenv(strdup(setting.c_str()));
		execl("/proc/self/exe", "rules", child, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	while ((got = read(ends[0], buffer, sizeof(buffer))) > 0)
		errors.append(buffer, (size_t)got);
	close(ends[0]);
	EXPECT(waitpid(pid, &status, 0) == pid && !status, "%x: %s", status, errors.c_str());
	return errors;
}

/* A variable with the file, or another one. */
static std::string variable(const std::string &path)
{
	return "POUNDLOCK_RULES=" + path;
}

#endif
