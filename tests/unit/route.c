/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * route.h on simulated machines, also for restricted sets of CPUs: the positions are one tour over
 * the usable CPUs that leaves each domain as seldom as possible; a file that is not such a tour is
 * refused with the reason; and the files are searched in order, by a child for each environment,
 * without the library, whose constructor would read the parent's.
 */
#define _GNU_SOURCE
#include "route.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include "machine.h"
#include "topology.h"
#include "unit.h"

static uint16_t positions[W_CPUS];
static struct w_cpus usable;
static size_t count; /* of usable CPUs */

static void use(bool (*may)(size_t cpu), size_t cpus)
{
	memset(&usable, 0, sizeof(usable));
	count = 0;
	for (size_t cpu = 0; cpu < cpus; cpu++) {
		if (may(cpu)) {
			w_cpus_add(&usable, cpu);
			count++;
		}
	}
}

static bool any(size_t cpu)
{
	return cpu < W_CPUS;
}

static bool every_third(size_t cpu)
{
	return cpu % 3 == 1;
}

static bool one(size_t cpu)
{
	return cpu == 5;
}

static bool the_last(size_t cpu)
{
	return cpu >= 60;
}

static bool pseudo_random(size_t cpu)
{
	return (uint32_t)(cpu * 2654435761u) >> 31;
}

static bool (*const sets[])(size_t cpu) = {any, every_third, one, the_last, pseudo_random};

/* Writes the CPU at each position into @tour. Checks that each usable CPU has one, and no other. */
static void expect_tour(uint16_t tour[W_CPUS])
{
	memset(tour, 0xff, W_CPUS * sizeof(*tour));
	for (size_t cpu = 0; cpu < W_CPUS; cpu++) {
		EXPECT(positions[cpu] < count || (!count && !positions[cpu]),
		       "CPU %zu at %u of %zu", cpu, positions[cpu], count);
		if (!w_cpus_has(&usable, cpu))
			continue;
		EXPECT(tour[positions[cpu]] == 0xffff, "CPUs %u and %zu share a place",
		       tour[positions[cpu]], cpu);
		tour[positions[cpu]] = (uint16_t)cpu;
	}
}

/* ---- The derived route ---- */

/*
 * A machine: CPUs, threads per core, cores per L3, L3s per die, dies per package; and its
 * numbering.
 */
struct made {
	int threads, cores, caches, dies, packages;
	/* CPU numbers alternate between packages, then dies; hardware threads come last. */
	bool interleaved;
};

static int cpus_of(const struct made *made)
{
	return made->threads * made->cores * made->caches * made->dies * made->packages;
}

/* The number of the CPU at @place, counted along the hierarchy. */
static int number(const struct made *made, int place)
{
	const int sizes[] = {made->threads, made->cores, made->caches, made->dies, made->packages};
	int reversed = 0;

	if (!made->interleaved)
		return place;
	for (int level = 0; level < COUNT(sizes); place /= sizes[level++])
		reversed = reversed * sizes[level] + place % sizes[level];
	return reversed;
}

/* The list of the @size CPUs from @place on. */
static void list_from(const struct made *made, int place, int size, char *list, size_t room)
{
	size_t used = 0;

	for (int i = 0; i < size; i++)
		used += (size_t)snprintf(list + used, room - used, "%s%d", i ? "," : "",
					 number(made, place + i));
	EXPECT(used < room);
}

static void make(const struct made *made)
{
	int sizes[] = {made->threads, made->cores, made->caches, made->dies};
	static const char *const files[] = {"core_cpus_list", NULL, "die_cpus_list",
					    "package_cpus_list"};
	static char list[8192];

	for (int place = 0; place < cpus_of(made); place++) {
		int cpu = number(made, place), size = 1;

		for (int level = 0; level < COUNT(sizes); level++) {
			size *= sizes[level];
			list_from(made, place / size * size, size, list, sizeof(list));
			if (files[level])
				put(list, "devices/system/cpu/cpu%d/topology/%s", cpu,
				    files[level]);
			else
				cache(cpu, 0, "3", list);
		}
	}
}

/* The number of steps of the tour to another domain of @kind; and the number of domains visited. */
static int changes(enum w_domain_kind kind, const uint16_t *tour, int *visited)
{
	static uint16_t domains[W_CPUS];
	static bool seen[W_CPUS];
	int changed = 0;

	memset(seen, 0, sizeof(seen));
	w_topology_read(root, kind, domains, W_CPUS);
	*visited = 0;
	for (size_t i = 0; i < count; i++) {
		changed += domains[tour[i]] != domains[tour[(i + 1) % count]];
		*visited += !seen[domains[tour[i]]];
		seen[domains[tour[i]]] = true;
	}
	return changed;
}

static void derived(void)
{
	static const struct made machines[] = {
		{1, 2, 1, 1, 1, false}, {2, 4, 2, 2, 2, false},  {2, 4, 2, 2, 2, true},
		{2, 2, 4, 2, 4, true},  {1, 24, 1, 1, 4, false},
	};
	static const enum w_domain_kind kinds[] = {W_DOMAIN_CORE, W_DOMAIN_L3, W_DOMAIN_DIE,
						   W_DOMAIN_PACKAGE};
	static uint16_t tour[W_CPUS];
	int visited, changed;

	for (int machine = 0; machine < COUNT(machines); machine++) {
		begin();
		make(&machines[machine]);
		for (int set = 0; set < COUNT(sets); set++) {
			use(sets[set], (size_t)cpus_of(&machines[machine]));
			w_route_derive(root, &usable, positions);
			expect_tour(tour);
			for (int kind = 0; kind < COUNT(kinds); kind++) {
				changed = changes(kinds[kind], tour, &visited);
				EXPECT(changed == (visited > 1 ? visited : 0),
				       "%d of machine %d, set %d: %d changes, %d domains", kind,
				       machine, set, changed, visited);
			}
		}
		end();
	}
}

/* An unusable CPU has the place of a preceding CPU of its core or cache, not one at the far end. */
static void not_usable(void)
{
	static const struct made made = {2, 4, 2, 1, 2, true};

	begin();
	make(&made);
	memset(&usable, 0, sizeof(usable));
	for (int cache = 0; cache < 4; cache++)
		w_cpus_add(&usable, (size_t)number(&made, cache * 8));
	w_route_derive(root, &usable, positions);
	for (int place = 0; place < cpus_of(&made); place++)
		EXPECT(positions[number(&made, place)] == place / 8, "place %d", place);
	end();
}

/* Without sysfs, with CPUs unknown to it, and without CPUs. */
static void no_topology(void)
{
	static uint16_t tour[W_CPUS];

	begin();
	for (int set = 0; set < COUNT(sets); set++) {
		use(sets[set], W_CPUS);
		w_route_derive(root, &usable, positions);
		expect_tour(tour);
	}
	use(any, 0);
	w_route_derive(root, &usable, positions);
	expect_tour(tour);
	end();
}

/* ---- A saved route ---- */

static char error[256];

/* Reads a file of the @size bytes @bytes, on a machine of 8 CPUs. */
static enum w_route_file read_bytes(const char *bytes, size_t size)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/route", root);
	file = fopen(path, "w");
	EXPECT(file && fwrite(bytes, 1, size, file) == size && !fclose(file), "%s", path);
	memset(positions, 0, sizeof(positions));
	strcpy(error, "no error");
	return w_route_read(path, root, &usable, positions, error, sizeof(error));
}

static enum w_route_file read_string(const char *text)
{
	return read_bytes(text, strlen(text));
}

static void begin_machine_of_8(bool (*may)(size_t cpu))
{
	begin();
	put("0-7", "devices/system/cpu/present");
	use(may, 8);
}

#define HEAD "poundlock-route 1\npresent 0-7\ncpus 8\n"
#define WHOLE HEAD "route 3 0 1 2\nroute 5 6 7 4\n"

#define COMMENTED                                                                                  \
	"poundlock-route 1\n# a comment\n\nmachine A \x1b[31m machine\nmeasured now\nlength 12.5 " \
	"ns\ncpus 8\n"                                                                             \
	"route  3 0  1 2 5 6 7 4 \n"

static void accepted(void)
{
	static const char *const texts[] = {
		WHOLE,
		HEAD "route 3 0 1 2 5 6 7 4",
		COMMENTED,
	};
	static const uint16_t expected[] = {1, 2, 3, 0, 7, 4, 5, 6};

	begin_machine_of_8(any);
	for (int i = 0; i < COUNT(texts); i++) {
		EXPECT(read_string(texts[i]) == W_ROUTE_READ, "text %d: %s", i, error);
		EXPECT(!memcmp(positions, expected, sizeof(expected)), "text %d", i);
	}
	end();
}

/* Only usable CPUs have a place of their own; unplugged CPUs need none. */
static void contracted(void)
{
	static uint16_t tour[W_CPUS];
	static const uint16_t expected[] = {1, 2, 7};

	begin_machine_of_8(any);
	memset(&usable, 0, sizeof(usable));
	for (count = 0; count < COUNT(expected); count++)
		w_cpus_add(&usable, expected[count]);
	EXPECT(read_string(WHOLE) == W_ROUTE_READ, "%s", error);
	expect_tour(tour);
	EXPECT(!memcmp(tour, expected, sizeof(expected)));
	EXPECT(positions[0] == 0 && positions[5] == 1 && positions[4] == 2);
	EXPECT(read_string("poundlock-route 1\ncpus 3\nroute 7 2 1\n") == W_ROUTE_READ, "%s",
	       error);
	expect_tour(tour);
	EXPECT(tour[0] == 7 && tour[1] == 2 && tour[2] == 1);
	end();
}

static void refused(void)
{
	static const struct {
		const char *text, *reason;
	} bad[] = {
		{"", "does not begin"},
		{"\n" WHOLE, "does not begin"},
		{"poundlock-route 2\ncpus 0\n", "does not begin"},
		{"poundlock-route 1\r\n", "does not begin"},
		{"poundlock-route 1", "does not say how many"},
		{HEAD, "has 0 CPUs instead of 8"},
		{HEAD "route 3 0 1 2 5 6 7\n", "has 7 CPUs instead of 8"},
		{HEAD "route 3 0 1 2 5 6 7 4 8\n", "has 9 CPUs instead of 8"},
		{HEAD "route 3 0 1 2 5 6 7 7\n", "has CPU 7 twice"},
		{HEAD "route 3 0 1 2 5 6 7 8\n", "lacks CPU 4"},
		{"poundlock-route 1\ncpus 9\nroute 0 1 2 3 4 5 6 7 8\n",
		 "has CPU 8, which this machine has not"},
		{"poundlock-route 1\npresent 0-15\ncpus 8\n",
		 "with the CPUs 0-15; this one has 0-7"},
		{"poundlock-route 1\npresent \x1b[31m\n", "line 2 is not a list"},
		{"poundlock-route 1\ncpus eight\n", "line 2 is not a number"},
		{"poundlock-route 1\ncpus 8 8\n", "line 2 is not a number"},
		{"poundlock-route 1\ncpus -1\n", "line 2 is not a number"},
		{"poundlock-route 1\ncpus 4097\n", "line 2 is not a number"},
		{"poundlock-route 1\ncpus 18446744073709551624\n", "line 2 is not a number"},
		{HEAD "route \n", "line 4 has a word"},
		{HEAD "route 1 x\n", "line 4 has a word"},
		{HEAD "route 1,2\n", "line 4 has a word"},
		{HEAD "route -1\n", "line 4 has a word"},
		{HEAD "route 4096\n", "line 4 has a word"},
		{HEAD "route 4294967296\n", "line 4 has a word"},
		{HEAD "route 99999999999999999999999999\n", "line 4 has a word"},
		{HEAD "route\n", "line 4 is of no known kind"},
		{HEAD "detour 1\n", "line 4 is of no known kind"},
	};

	begin_machine_of_8(any);
	for (int i = 0; i < COUNT(bad); i++) {
		EXPECT(read_string(bad[i].text) == W_ROUTE_REFUSED, "text %d", i);
		EXPECT(strstr(error, bad[i].reason), "text %d: %s", i, error);
		EXPECT(strspn(error, "'-;, ()abcdefghijklmnopqrstuvwxyzCPU0123456789") ==
			       strlen(error),
		       "text %d: %s", i, error);
	}
	EXPECT(read_bytes(WHOLE, sizeof(WHOLE)) == W_ROUTE_REFUSED && strstr(error, "not a text"),
	       "%s", error);
	end();
}

/* Truncated files, and files with a few changed bytes, are refused or are tours. */
static void damaged(void)
{
	static uint16_t tour[W_CPUS];
	uint32_t random = 1;
	int read = 0;

	begin_machine_of_8(every_third);
	for (size_t size = 0; size < strlen(WHOLE) - 2; size++)
		EXPECT(read_bytes(WHOLE, size) == W_ROUTE_REFUSED, "%zu bytes", size);
	for (int i = 0; i < 1000; i++) {
		char text[] = WHOLE;

		for (int change = 0; change < 1 + i % 3; change++) {
			random = random * 1664525 + 1013904223;
			text[(random >> 16) % strlen(WHOLE)] = "0123456789 \n,-\0x"[random >> 28];
		}
		if (read_bytes(text, sizeof(text) - 1) == W_ROUTE_READ) {
			expect_tour(tour);
			read++;
		}
	}
	EXPECT(read, "all were refused");
	end();
}

/* The largest route; larger files, non-files and missing files. */
static void files(void)
{
	static char text[W_ROUTE_BYTES + 1];
	static uint16_t tour[W_CPUS];
	size_t used = 0;
	char path[256];

	begin();
	use(any, W_CPUS);
	used += (size_t)sprintf(text, "poundlock-route 1\ncpus %d\n", W_CPUS);
	for (int cpu = 0; cpu < W_CPUS; cpu++)
		used += (size_t)sprintf(text + used, "%s%d%s", cpu % 16 ? "" : "route ",
					W_CPUS - 1 - cpu, cpu % 16 == 15 ? "\n" : " ");
	EXPECT(used < W_ROUTE_BYTES && read_string(text) == W_ROUTE_READ, "%zu bytes: %s", used,
	       error);
	expect_tour(tour);
	EXPECT(tour[0] == W_CPUS - 1 && tour[W_CPUS - 1] == 0);

	memset(text + used, '#', sizeof(text) - used);
	text[W_ROUTE_BYTES - 1] = 0;
	EXPECT(read_string(text) == W_ROUTE_READ, "%s", error);
	text[W_ROUTE_BYTES - 1] = '#';
	EXPECT(read_bytes(text, W_ROUTE_BYTES) == W_ROUTE_REFUSED && strstr(error, "larger"), "%s",
	       error);

	snprintf(path, sizeof(path), "%s/fifo", root);
	EXPECT(!mkfifo(path, 0600));
	EXPECT(w_route_read(path, root, &usable, positions, error, sizeof(error)) ==
	       W_ROUTE_REFUSED);
	EXPECT(strstr(error, "not a regular file"), "%s", error);
	EXPECT(w_route_read(root, root, &usable, positions, error, sizeof(error)) ==
	       W_ROUTE_REFUSED);
	EXPECT(strstr(error, "not a regular file"), "%s", error);
	snprintf(path, sizeof(path), "%s/loop", root);
	EXPECT(!symlink("loop", path));
	EXPECT(w_route_read(path, root, &usable, positions, error, sizeof(error)) ==
	       W_ROUTE_REFUSED);
	EXPECT(strstr(error, "cannot be read"), "%s", error);
	for (int folder = 0; folder < 2; folder++) {
		snprintf(path, sizeof(path), "%s%s/none", root, folder ? "/route" : "");
		EXPECT(w_route_read(path, root, &usable, positions, error, sizeof(error)) ==
		       W_ROUTE_MISSING);
	}
	end();
}

/* ---- Concurrent readers ---- */

static void claims(void)
{
	const uint16_t *route;

	EXPECT(w_topology_claim() && !w_topology_claim());
	route = w_route_load();
	for (int cpu = 0; cpu < W_CPUS; cpu++)
		EXPECT(!route[cpu]);
	EXPECT(!atomic_load(&w_route) && w_domains_load()[0] == 0 && !atomic_load(&w_domains));
	/* As in a forked child, where the other reader does not exist. */
	fork_generation_set(w_fork_generation() + 1);
	EXPECT(w_topology_claim());
	w_topology_release();
	route = w_route_load();
	EXPECT(route == atomic_load(&w_route) && w_route_load() == route);
	EXPECT(w_domains_load() == atomic_load(&w_domains));

	memset(&usable, 0, sizeof(usable));
	memcpy(positions, route, sizeof(positions));
	count = w_cpu_count();
	EXPECT(count >= 1);
	for (size_t cpu = 0; cpu < W_CPUS; cpu++)
		EXPECT(positions[cpu] < count);
}

/* The domain at a position is that of the CPU there. */
static void domains_on_the_route(void)
{
	unsigned list[W_CPUS];
	const size_t cpus = w_route_list(list, W_CPUS);

	for (size_t position = 0; position < cpus; position++) {
		EXPECT(atomic_load(&w_route)[list[position]] == position);
		EXPECT(w_domain_at((uint32_t)position) == w_domains_load()[list[position]]);
	}
}

/* ---- Search order ---- */

/*
 * The child prints the place of each usable CPU. It binds itself before it waits, as programs do.
 */
static void print_places(void)
{
	cpu_set_t all, bound;

	EXPECT(!sched_getaffinity(0, sizeof(all), &all));
	w_route_start();
	CPU_ZERO(&bound);
	for (int cpu = 0; !CPU_COUNT(&bound); cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &bound);
	EXPECT(!sched_setaffinity(0, sizeof(bound), &bound));
	EXPECT(!chdir("/") && !clearenv());
	EXPECT(w_cpu_count() == (uint32_t)CPU_COUNT(&all), "%u CPUs", w_cpu_count());
	EXPECT(w_route_position() < w_cpu_count());
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all))
			printf("%d:%u ", cpu, atomic_load(&w_route)[cpu]);
	fflush(stdout);
}

struct run {
	char output[16384], errors[8192];
};

static void read_pipe(int from, char *text, size_t size)
{
	size_t used = 0;
	ssize_t length;

	while (used < size - 1 && (length = read(from, text + used, size - 1 - used)) > 0)
		used += (size_t)length;
	text[used] = 0;
	close(from);
}

/* Runs the child in the machine's folder, with the environment @settings, NULL-terminated. */
static const struct run *run(const char *const *settings)
{
	static struct run run;
	int output[2], errors[2], status;
	pid_t child;

	EXPECT(!pipe(output) && !pipe(errors));
	child = fork();
	EXPECT(child >= 0);
	if (!child) {
		dup2(output[1], STDOUT_FILENO);
		dup2(errors[1], STDERR_FILENO);
		clearenv();
		for (; *settings; settings++)
			putenv((char *)*settings);
		EXPECT(!chdir(root));
		print_places();
		_exit(0);
	}
	close(output[1]);
	close(errors[1]);
	read_pipe(output[0], run.output, sizeof(run.output));
	read_pipe(errors[0], run.errors, sizeof(run.errors));
	EXPECT(waitpid(child, &status, 0) == child && !status, "%x: %s", status, run.errors);
	return &run;
}

#define RUN_WITH(...) run((const char *const[]){__VA_ARGS__, NULL})

/* The tour by CPU number, rotated by @by: the places as the child prints them, and a file of it. */
static void save_rotated(const char *name, uint32_t by, const cpu_set_t *all, char *expected)
{
	uint32_t cpus = (uint32_t)CPU_COUNT(all), place = 0;
	char text[16384];
	size_t used = (size_t)sprintf(text, "poundlock-route 1\ncpus %u\nroute", cpus);

	for (uint32_t want = 0; want < cpus; want++) {
		place = 0;
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, all) && (place++ + by) % cpus == want)
				used += (size_t)sprintf(text + used, " %d", cpu);
	}
	put(text, "%s", name);
	used = 0;
	place = 0;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, all))
			used += (size_t)sprintf(expected + used, "%d:%u ", cpu,
						(place++ + by) % cpus);
}

/* Checks that @run reported no error and has the route @expected. */
static void expect_route(const struct run *run, const char *expected)
{
	EXPECT(!strcmp(run->output, expected) && !*run->errors, "'%s', not '%s': %s", run->output,
	       expected, run->errors);
}

/* Checks that @run printed one line about the file, with @words, and has the derived route. */
static void expect_complaint(const struct run *run, const char *words, const char *derived)
{
	const char *end = strchr(run->errors, '\n');

	EXPECT(end && !end[1] && strstr(run->errors, words) &&
		       !strncmp(run->errors, "poundlock: the route in '", 25),
	       "%s", run->errors);
	EXPECT(!strcmp(run->output, derived), "%s", run->output);
}

/*
 * /etc/poundlock/route belongs to the machine: without other files, its route is the expected one.
 */
static void search(void)
{
	static char first[16384], second[16384], third[16384], none[16384];
	char in_config[512], in_home[512], named[512], wrong[512], too_long[8192];
	cpu_set_t all;

	begin();
	EXPECT(!sched_getaffinity(0, sizeof(all), &all));
	save_rotated("named", 1, &all, first);
	save_rotated("config/poundlock/route", 0, &all, second);
	save_rotated("home/.config/poundlock/route", 1, &all, third);
	put("nonsense", "wrong");
	put("nonsense", "bad/poundlock/route");
	sprintf(named, "POUNDLOCK_ROUTE=%s/named", root);
	sprintf(in_config, "XDG_CONFIG_HOME=%s/config", root);
	sprintf(in_home, "HOME=%s/home", root);
	sprintf(wrong, "XDG_CONFIG_HOME=%s/bad", root);
	sprintf(too_long, "POUNDLOCK_ROUTE=/%08000d", 0);

	expect_route(RUN_WITH(named, in_config, in_home), first);
	expect_route(RUN_WITH("POUNDLOCK_ROUTE=named", in_config, in_home), first);
	expect_route(RUN_WITH("POUNDLOCK_ROUTE=", in_config, in_home), second);
	expect_route(RUN_WITH(in_config, in_home), second);
	expect_route(RUN_WITH(in_home), third);
	expect_route(RUN_WITH("XDG_CONFIG_HOME=config", in_home), third);
	expect_route(RUN_WITH("XDG_CONFIG_HOME=", in_home), third);
	if (access("/etc/poundlock/route", F_OK)) {
		strcpy(none, RUN_WITH("HOME=home")->output);
		expect_route(RUN_WITH("HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent"), none);
		expect_complaint(RUN_WITH("POUNDLOCK_ROUTE=none", in_config), "/none' is not there",
				 none);
		expect_complaint(RUN_WITH("POUNDLOCK_ROUTE=wrong", in_config),
				 "/wrong' does not begin", none);
		expect_complaint(RUN_WITH("POUNDLOCK_ROUTE=/dev/zero"),
				 "'/dev/zero' is not a regular file", none);
		expect_complaint(RUN_WITH(too_long), "cannot be read", none);
		expect_complaint(RUN_WITH(wrong, in_home), "/bad/poundlock/route' does not begin",
				 none);
	}
	end();
}

int main(void)
{
	RUN(derived);
	RUN(not_usable);
	RUN(no_topology);
	RUN(accepted);
	RUN(contracted);
	RUN(refused);
	RUN(damaged);
	RUN(files);
	RUN(search);
	RUN(claims);
	RUN(domains_on_the_route);
	return 0;
}
