/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The driver: measures one contestant once and prints one line of JSON. bench/run.py calls it for
 * the tables of docs/benchmarks.md. Example: lockbench --lock glibc --threads 16 --cs short. Exits
 * 0; 1 if the lock failed to exclude; 2 for a wrong argument.
 */
#include <getopt.h>
#include <gnu/libc-version.h>

#include <charconv>
#include <cinttypes>
#include <cmath>
#include <map>
#include <numeric>

#include <absl/base/config.h>

#include "contestant.h"

namespace
{

using bench::Contended;
using bench::Contestant;
using bench::Setting;

const char usage[] =
	R"(Measures one lock and prints one line of JSON.

usage: lockbench --lock LOCK [--measure contended] [--threads N] [--cs TIME] [--outside TIME]
                 [--pin] [--seconds S]
       lockbench --lock LOCK --measure uncontended [--second-thread] [--seconds S]
       lockbench --lock LOCK --measure operations --operations N [--second-thread]
       lockbench --lock LOCK --measure memory [--count N]
       lockbench --lock LOCK --measure queue [--operations N] [--capacity N]
                 [--producers N --consumers N [--pin]] [--second-thread]
       lockbench --list | --versions | --calibrate

TIME is 'short' (increments of one shared cache line; as --outside: nothing), 'long' (1 us more) or
a number of nanoseconds of computing in addition. --outside is a mean: each time is drawn from 0 to
twice as much. --pin pins the threads to the process's CPUs in turn. --step-ns X is the time
of a step of computing, which --calibrate prints; by default lockbench measures it.
)";

struct Arguments {
	Setting setting;
	std::string lock;
	std::string measure = "contended";
	double section_ns = 0;
	double outside_ns = 0;
	double step_ns = 0;
};

/* Parses a number of at least @minimum; an error names the option. */
template <class T> T number(const std::string &option, const std::string &text, T minimum)
{
	T value{};
	auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);

	if (error != std::errc() || end != text.data() + text.size() || !(value >= minimum))
		throw std::invalid_argument("--" + option + ": '" + text +
					    "' is not a number of at least " +
					    std::to_string(minimum));
	return value;
}

double nanoseconds(const std::string &option, const std::string &text)
{
	if (text == "short")
		return 0;
	if (text == "long")
		return 1000;
	return number<double>(option, text, 0);
}

/* The time of one step on an idle CPU: the least of many measurements. */
double calibrate()
{
	constexpr std::uint64_t steps = 20000;
	std::uint64_t least = UINT64_MAX;

	for (int i = 0; i < 200; i++) {
		std::uint64_t before = bench::now_ns();
		bench::compute(steps);
		least = std::min(least, bench::now_ns() - before);
	}
	return double(least) / steps;
}

const Contestant &find(const std::string &name)
{
	for (const Contestant &contestant : bench::contestants())
		if (name == contestant.name)
			return contestant;
	throw std::invalid_argument("there is no lock '" + name + "': see lockbench --list");
}

void list()
{
	for (const Contestant &contestant : bench::contestants())
		std::printf("%-12s %s\n", contestant.name, contestant.what);
}

void versions()
{
	std::printf("{\"compiler\":\"%s %s\",\"glibc\":\"%s\",\"absl\":\"%d.%d\"}\n",
#ifdef __clang__
		    "clang",
#else
		    "gcc",
#endif
		    __VERSION__, gnu_get_libc_version(), ABSL_LTS_RELEASE_VERSION,
		    ABSL_LTS_RELEASE_PATCH_LEVEL);
}

/*
 * The share of the faster half of the threads in all operations: 0.5 is even, 1 is starvation (CNA,
 * section 7).
 */
double fairness_factor(std::vector<double> operations)
{
	auto half = operations.begin() + operations.size() / 2;
	double total = std::accumulate(operations.begin(), operations.end(), 0.0);

	std::sort(operations.begin(), operations.end(), std::greater<>());
	return std::accumulate(operations.begin(), half, 0.0) / total;
}

/* Jain's index: 1 is even, 1 / threads means that one thread has all. */
double jain_index(const std::vector<double> &operations)
{
	double total = std::accumulate(operations.begin(), operations.end(), 0.0);
	double squares =
		std::inner_product(operations.begin(), operations.end(), operations.begin(), 0.0);

	return total * total / (operations.size() * squares);
}

int print_contended(const std::string &lock, const Contended &result)
{
	std::vector<double> operations;
	std::uint64_t acquisitions = 0, longest = 0;
	rusage usage;

	for (const Contended::Thread &thread : result.threads) {
		operations.push_back(thread.operations);
		acquisitions += thread.acquisitions;
		longest = std::max(longest, thread.longest_wait_ns);
	}
	if (acquisitions != result.counted) {
		std::fprintf(stderr,
			     "lockbench: %s does not exclude: %" PRIu64 " acquisitions, %" PRIu64
			     " counted\n",
			     lock.c_str(), acquisitions, result.counted);
		return 1;
	}
	getrusage(RUSAGE_SELF, &usage);
	double total = std::accumulate(operations.begin(), operations.end(), 0.0);
	if (total == 0)
		throw std::runtime_error(
			"no thread got the lock before the end: --seconds is too short");
	std::printf("{\"lock\":\"%s\",\"threads\":%zu,\"seconds\":%.3f,\"operations\":%.0f,\"per_"
		    "second\":%.0f,"
		    "\"fairness\":%.4f,\"jain\":%.4f,\"longest_wait_ms\":%.1f,\"cpu_seconds\":%.3f,"
		    "\"sleeps\":%ld,"
		    "\"preemptions\":%ld}\n",
		    lock.c_str(), operations.size(), result.seconds, total, total / result.seconds,
		    fairness_factor(operations), jain_index(operations), longest / 1e6,
		    bench::cpu_seconds(usage), usage.ru_nvcsw, usage.ru_nivcsw);
	return 0;
}

int print_queued(const std::string &lock, const Setting &setting, const bench::Queued &result)
{
	if (result.put != result.taken) {
		std::fprintf(stderr, "lockbench: %s: the queue lost items, or had some twice\n",
			     lock.c_str());
		return 1;
	}
	std::printf("{\"lock\":\"%s\",\"items\":%" PRIu64 ",\"seconds\":%.6f,\"per_second\":%.0f,"
		    "\"sleeps_per_item\":%.4f,\"cpu_us_per_item\":%.4f}\n",
		    lock.c_str(), setting.operations, result.seconds,
		    setting.operations / result.seconds, double(result.sleeps) / setting.operations,
		    result.cpu_seconds * 1e6 / setting.operations);
	return 0;
}

int measure(Arguments &arguments)
{
	std::size_t colon = arguments.lock.find(':');
	const Contestant &contestant = find(arguments.lock.substr(0, colon));
	Setting &setting = arguments.setting;

	if (colon != std::string::npos)
		setting.spec = arguments.lock.substr(colon + 1);
	if (arguments.measure == "uncontended") {
		std::printf("{\"lock\":\"%s\",\"ns\":%.3f}\n", arguments.lock.c_str(),
			    contestant.uncontended_ns(setting));
	} else if (arguments.measure == "operations") {
		contestant.operate(setting);
		std::printf("{\"lock\":\"%s\",\"operations\":%" PRIu64 "}\n",
			    arguments.lock.c_str(), setting.operations);
	} else if (arguments.measure == "memory") {
		bench::Memory memory = contestant.memory(setting);
		std::printf("{\"lock\":\"%s\",\"count\":%zu,\"resident_bytes\":%zu,\"bytes_per_"
			    "lock\":%zu}\n",
			    arguments.lock.c_str(), setting.count, memory.resident_bytes,
			    memory.bytes_per_lock);
	} else if (arguments.measure == "queue") {
		if (!contestant.queued)
			throw std::invalid_argument(arguments.lock + " has no condition variable");
		if (!setting.producers != !setting.consumers)
			throw std::invalid_argument("--producers needs --consumers");
		return print_queued(arguments.lock, setting, contestant.queued(setting));
	} else if (arguments.measure == "contended") {
		double step_ns = arguments.step_ns > 0 ? arguments.step_ns : calibrate();
		setting.section_steps = std::lround(arguments.section_ns / step_ns);
		setting.outside_steps = std::lround(arguments.outside_ns / step_ns);
		return print_contended(arguments.lock, contestant.contended(setting));
	} else {
		throw std::invalid_argument("--measure: there is no '" + arguments.measure + "'");
	}
	return 0;
}

int run(int argc, char **argv)
{
	enum {
		LOCK,
		MEASURE,
		THREADS,
		CS,
		OUTSIDE,
		SECONDS,
		STEP,
		OPERATIONS,
		COUNT,
		PRODUCERS,
		CONSUMERS,
		CAPACITY,
		SECOND,
		PIN,
		LIST,
		VERSIONS,
		CALIBRATE,
		HELP
	};
	static const option options[] = {
		{"lock", required_argument, nullptr, LOCK},
		{"measure", required_argument, nullptr, MEASURE},
		{"threads", required_argument, nullptr, THREADS},
		{"cs", required_argument, nullptr, CS},
		{"outside", required_argument, nullptr, OUTSIDE},
		{"seconds", required_argument, nullptr, SECONDS},
		{"step-ns", required_argument, nullptr, STEP},
		{"operations", required_argument, nullptr, OPERATIONS},
		{"count", required_argument, nullptr, COUNT},
		{"producers", required_argument, nullptr, PRODUCERS},
		{"consumers", required_argument, nullptr, CONSUMERS},
		{"capacity", required_argument, nullptr, CAPACITY},
		{"second-thread", no_argument, nullptr, SECOND},
		{"pin", no_argument, nullptr, PIN},
		{"list", no_argument, nullptr, LIST},
		{"versions", no_argument, nullptr, VERSIONS},
		{"calibrate", no_argument, nullptr, CALIBRATE},
		{"help", no_argument, nullptr, HELP},
		{},
	};
	Arguments arguments;
	int which, index = 0;

	arguments.setting.count = 1000000;
	arguments.setting.operations = 1;
	opterr = 0;
	while ((which = getopt_long(argc, argv, "", options, &index)) != -1) {
		switch (which) {
		case LOCK:
			arguments.lock = optarg;
			break;
		case MEASURE:
			arguments.measure = optarg;
			break;
		case THREADS:
			arguments.setting.threads = number<unsigned>("threads", optarg, 1);
			break;
		case CS:
			arguments.section_ns = nanoseconds("cs", optarg);
			break;
		case OUTSIDE:
			arguments.outside_ns = nanoseconds("outside", optarg);
			break;
		case SECONDS:
			arguments.setting.seconds = number<double>("seconds", optarg, 0.001);
			break;
		case STEP:
			arguments.step_ns = number<double>("step-ns", optarg, 1e-6);
			break;
		case OPERATIONS:
			arguments.setting.operations =
				number<std::uint64_t>("operations", optarg, 1);
			break;
		case COUNT:
			arguments.setting.count = number<std::size_t>("count", optarg, 1);
			break;
		case PRODUCERS:
			arguments.setting.producers = number<unsigned>("producers", optarg, 1);
			break;
		case CONSUMERS:
			arguments.setting.consumers = number<unsigned>("consumers", optarg, 1);
			break;
		case CAPACITY:
			arguments.setting.capacity = number<std::size_t>("capacity", optarg, 1);
			break;
		case SECOND:
			arguments.setting.sleeping_thread = true;
			break;
		case PIN:
			arguments.setting.pin = true;
			break;
		case LIST:
			list();
			return 0;
		case VERSIONS:
			versions();
			return 0;
		case CALIBRATE:
			std::printf("{\"step_ns\":%.4f}\n", calibrate());
			return 0;
		case HELP:
			std::fputs(usage, stdout);
			return 0;
		default:
			throw std::invalid_argument(
				std::string("no such option, or no value for it: '") +
				argv[optind - 1] + "'; see lockbench --help");
		}
	}
	if (optind < argc)
		throw std::invalid_argument(std::string("unexpected argument '") + argv[optind] +
					    "'");
	if (arguments.lock.empty())
		throw std::invalid_argument("--lock is missing; see lockbench --list");
	return measure(arguments);
}

} // namespace

int main(int argc, char **argv)
{
	try {
		return run(argc, argv);
	} catch (const std::exception &error) {
		std::fprintf(stderr, "lockbench: %s\n", error.what());
		return 2;
	}
}
