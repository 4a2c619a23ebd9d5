/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The interface of a lock under test, and the measurements. Each contestant is a type with
 * init(spec), lock() and unlock(); contestant<Lock>() compiles every measurement for it, so that
 * whatever a program would inline is inlined, and every contestant pays for the same calls. Each
 * file registers its contestant.
 */
#ifndef BENCH_CONTESTANT_H
#define BENCH_CONTESTANT_H

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace bench
{

constexpr std::size_t cache_line = 64;

inline std::uint64_t now_ns()
{
	return std::chrono::duration_cast<std::chrono::nanoseconds>(
		       std::chrono::steady_clock::now().time_since_epoch())
		.count();
}

inline double cpu_seconds(const rusage &usage)
{
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* The options of the command line. */
struct Setting {
	std::string spec; /* after the colon of the contestant's name */
	unsigned threads = 2;
	double seconds = 1;
	std::uint64_t section_steps = 0;
	std::uint64_t outside_steps = 0; /* the mean; uniform from 0 to twice this */
	std::uint64_t operations = 0;
	std::size_t count = 0;
	unsigned producers = 0, consumers = 0; /* of the queue */
	std::size_t capacity = 1;
	bool sleeping_thread = false;
	bool pin = false; /* see Pins */
};

struct Contended {
	struct Thread {
		std::uint64_t operations = 0;   /* acquisitions before the end of the run */
		std::uint64_t acquisitions = 0; /* including those pending at its end */
		std::uint64_t longest_wait_ns = 0;
	};
	double seconds = 0;
	std::uint64_t counted = 0; /* acquisitions, counted by the holders without atomics */
	std::vector<Thread> threads;
};

struct Memory {
	std::size_t resident_bytes = 0;
	std::size_t bytes_per_lock = 0;
};

/* The outcome of a run of the queue. */
struct Queued {
	double seconds = 0;
	std::uint64_t put = 0, taken = 0; /* sums of the items */
	long sleeps = 0;                  /* voluntary context switches */
	double cpu_seconds = 0;
};

struct Contestant {
	const char *name;
	const char *what;
	double (*uncontended_ns)(const Setting &setting);
	void (*operate)(const Setting &setting);
	Contended (*contended)(const Setting &setting);
	Memory (*memory)(const Setting &setting);
	Queued (*queued)(const Setting &setting); /* nullptr: it has no condition variable here */
};

inline std::vector<Contestant> &contestants()
{
	static std::vector<Contestant> all;

	return all;
}

/* Performs @steps dependent steps that access no memory. */
inline void compute(std::uint64_t steps)
{
	std::uint64_t x = steps;

	while (steps--) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		asm volatile("" : "+r"(x));
	}
}

inline void compiler_barrier()
{
	asm volatile("" ::: "memory");
}

/*
 * A cheap clock: the main thread writes it about once per millisecond, the others read a shared
 * line. So every wait can be timed, with that resolution.
 */
class Ticker
{
      public:
	std::uint64_t read() const
	{
		return now_.load(std::memory_order_relaxed);
	}
	/* Runs the clock until @end_ns and returns the time at which it stopped. */
	std::uint64_t run(std::uint64_t end_ns)
	{
		std::uint64_t start = now_ns(), now;

		do {
			std::this_thread::sleep_for(std::chrono::milliseconds(1));
			now = now_ns() - start;
			now_.store(now, std::memory_order_relaxed);
		} while (now < end_ns);
		return now;
	}

      private:
	alignas(cache_line) std::atomic<std::uint64_t> now_{0};
};

class Barrier
{
      public:
	explicit Barrier(unsigned threads)
	{
		pthread_barrier_init(&barrier_, nullptr, threads);
	}
	~Barrier()
	{
		pthread_barrier_destroy(&barrier_);
	}
	void wait()
	{
		pthread_barrier_wait(&barrier_);
	}

      private:
	pthread_barrier_t barrier_;
};

/*
 * A second thread that sleeps while @wanted: since 2.34 glibc's mutex uses no atomic instruction in
 * a single-threaded process.
 */
class SleepingThread
{
      public:
	explicit SleepingThread(bool wanted)
	{
		if (wanted)
			thread_ = std::thread([this] { end_.wait(); });
	}
	~SleepingThread()
	{
		if (!thread_.joinable())
			return;
		end_.wait();
		thread_.join();
	}

      private:
	Barrier end_{2};
	std::thread thread_;
};

/*
 * The CPUs that the process may use, for pinned threads, which get them in turn. The kernel's
 * placement of a few threads differs from run to run, and may decide a measurement.
 */
class Pins
{
      public:
	explicit Pins(bool wanted)
	{
		cpu_set_t set;

		if (!wanted)
			return;
		if (sched_getaffinity(0, sizeof(set), &set) != 0)
			throw std::system_error(errno, std::generic_category(),
						"sched_getaffinity");
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &set))
				cpus_.push_back(cpu);
	}
	/* Pins the calling thread, the @index-th, if that is wanted. */
	void pin(unsigned index) const
	{
		cpu_set_t set;

		if (cpus_.empty())
			return;
		CPU_ZERO(&set);
		CPU_SET(cpus_[index % cpus_.size()], &set);
		if (int error = pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
			throw std::system_error(error, std::generic_category(),
						"pthread_setaffinity_np");
	}

      private:
	std::vector<int> cpus_;
};

/*
 * The shared state: the lock, the line that it protects and the clock, in separate cache lines.
 */
template <class Lock> struct Arena {
	explicit Arena(const Setting &s)
	    : setting(s), pins(s.pin), start(s.threads + 1), end_ns(s.seconds * 1e9),
	      results(s.threads)
	{
		lock.init(s.spec);
	}

	const Setting &setting;
	const Pins pins;
	Barrier start;
	const std::uint64_t end_ns;
	std::vector<Contended::Thread> results;
	std::atomic<unsigned> ready{0};
	Ticker clock;
	alignas(cache_line) Lock lock;
	alignas(cache_line) std::uint64_t line[cache_line / sizeof(std::uint64_t)] = {};
};

/*
 * The critical section: increments four words of one shared line and performs @steps. The first
 * word is read at the begin and written at the end, so that overlapping holders lose a count.
 */
inline void section(std::uint64_t *line, std::uint64_t steps)
{
	std::uint64_t count = line[0];

	for (std::size_t i = 1; i < 4; i++) {
		line[i]++;
		compiler_barrier();
	}
	compute(steps);
	line[0] = count + 1;
}

template <class Lock> void contend(Arena<Lock> &arena, unsigned index)
{
	const std::uint64_t section_steps = arena.setting.section_steps;
	const std::uint64_t outside_range = 2 * arena.setting.outside_steps + 1;
	const std::uint64_t end_ns = arena.end_ns;
	std::uint64_t random = index + 1;
	Contended::Thread mine;

	arena.pins.pin(index);
	arena.ready++;
	arena.start.wait();
	for (std::uint64_t before = 0; before < end_ns; before = arena.clock.read()) {
		arena.lock.lock();
		std::uint64_t after = arena.clock.read();
		section(arena.line, section_steps);
		arena.lock.unlock();
		mine.acquisitions++;
		mine.operations += after < end_ns;
		mine.longest_wait_ns = std::max(mine.longest_wait_ns, after - before);
		if (outside_range > 1) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			compute((random >> 32) % outside_range);
		}
	}
	arena.results[index] = mine;
}

template <class Lock> Contended contended(const Setting &setting)
{
	auto arena = std::make_unique<Arena<Lock>>(setting);
	std::vector<std::thread> threads;
	Contended result;

	for (unsigned i = 0; i < setting.threads; i++)
		threads.emplace_back([&arena, i] { contend(*arena, i); });
	while (arena->ready < setting.threads)
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
	arena->start.wait();
	result.seconds = arena->clock.run(arena->end_ns) / 1e9;
	for (auto &thread : threads)
		thread.join();
	result.counted = arena->line[0];
	result.threads = arena->results;
	return result;
}

template <class Lock> void lock_and_unlock(Lock &lock, std::uint64_t operations)
{
	while (operations--) {
		lock.lock();
		compiler_barrier();
		lock.unlock();
		compiler_barrier();
	}
}

/* The median over many short batches, so that interrupted batches do not matter. */
template <class Lock> double uncontended_ns(const Setting &setting)
{
	constexpr std::uint64_t batch = 10000;
	SleepingThread second(setting.sleeping_thread);
	auto arena = std::make_unique<Arena<Lock>>(setting);
	std::vector<std::uint64_t> times;
	std::uint64_t end = now_ns() + arena->end_ns, before, after;

	lock_and_unlock(arena->lock, batch);
	do {
		before = now_ns();
		lock_and_unlock(arena->lock, batch);
		after = now_ns();
		times.push_back(after - before);
	} while (after < end);
	std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
	return double(times[times.size() / 2]) / batch;
}

/* A given number of operations, for a tool that counts instructions. */
template <class Lock> void operate(const Setting &setting)
{
	SleepingThread second(setting.sleeping_thread);
	auto arena = std::make_unique<Arena<Lock>>(setting);

	lock_and_unlock(arena->lock, setting.operations);
}

/* Exact; VmRSS is an estimate that may be a hundred pages off. */
inline std::size_t resident_bytes()
{
	std::ifstream status("/proc/self/smaps_rollup");
	std::string word;
	std::size_t kib = 0;

	while (status >> word)
		if (word == "Rss:" && status >> kib)
			return kib * 1024;
	throw std::runtime_error("/proc/self/smaps_rollup has no Rss");
}

/* The resident memory of @setting.count locks in an array, each initialised and locked once. */
template <class Lock> Memory memory(const Setting &setting)
{
	std::size_t size = setting.count * sizeof(Lock);
	void *map = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	std::size_t before = resident_bytes();

	if (map == MAP_FAILED)
		throw std::system_error(errno, std::generic_category(), "mmap");
	/* Base pages, so that the result does not depend on the kernel's use of huge ones. */
	if (madvise(map, size, MADV_NOHUGEPAGE) != 0 && errno != EINVAL)
		throw std::system_error(errno, std::generic_category(), "madvise");

	Lock *locks = static_cast<Lock *>(map);
	for (std::size_t i = 0; i < setting.count; i++) {
		new (&locks[i]) Lock;
		locks[i].init(setting.spec);
		locks[i].lock();
		locks[i].unlock();
	}
	Memory result = {resident_bytes() - before, sizeof(Lock)};
	munmap(map, size);
	return result;
}

/* Registers a lock: static const Register<Lock> entry("name", "what it is"). */
template <class Lock> struct Register {
	Register(const char *name, const char *what)
	{
		contestants().push_back({name, what, uncontended_ns<Lock>, operate<Lock>,
					 contended<Lock>, memory<Lock>, nullptr});
	}
};

/* For locks without options: a spec is an error. */
inline void no_spec(const std::string &spec)
{
	if (!spec.empty())
		throw std::invalid_argument("this lock takes no settings: '" + spec + "'");
}

} // namespace bench

#endif
