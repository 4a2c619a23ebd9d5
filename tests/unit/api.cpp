// SPDX-License-Identifier: MIT OR Apache-2.0
//
// poundlock.hpp in a C++17 program: the standard library's locks, timed functions, condition
// variables, and a static mutex that works before any constructor has run.
#include "poundlock.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <type_traits>

#include "../expect.h"

using namespace std::chrono_literals;

extern pound::mutex ready_early;

// Runs before the initialisers below, and would lock a mutex with an initialiser too early.
static const bool locked_early = [] {
	ready_early.lock();
	return true;
}();

#if defined(__clang__)
[[clang::require_constant_initialization]]
#endif
pound::mutex ready_early;

static constexpr bool constant = (pound::mutex(), pound::shared_mutex(), true);
static_assert(constant);
static_assert(!std::is_copy_constructible_v<pound::mutex> &&
	      !std::is_copy_assignable_v<pound::mutex>);
static_assert(std::is_same_v<pound::mutex::native_handle_type, pound_mutex_t *>);

template <class Mutex> static bool elsewhere(Mutex &mutex, bool (*take)(Mutex &))
{
	bool taken = false;

	std::thread([&] {
		taken = take(mutex);
		if (taken)
			mutex.unlock();
	}).join();
	return taken;
}

template <class Mutex> static bool take_by_try(Mutex &mutex)
{
	return mutex.try_lock();
}

template <class Mutex> static bool take_for(Mutex &mutex)
{
	return mutex.try_lock_for(1ms);
}

// A clock that is neither of the two system clocks.
struct odd_clock {
	using duration = std::chrono::milliseconds;
	using rep = duration::rep;
	using period = duration::period;
	using time_point = std::chrono::time_point<odd_clock>;
	static constexpr bool is_steady = true;
	static time_point now()
	{
		return time_point(std::chrono::duration_cast<duration>(
			std::chrono::steady_clock::now().time_since_epoch() + 1h));
	}
};

template <class Clock, class Mutex> static bool take_until(Mutex &mutex)
{
	return mutex.try_lock_until(Clock::now() + 1ms);
}

template <class Mutex> static void expect_each_way(Mutex &mutex, bool free)
{
	EXPECT(elsewhere(mutex, take_by_try<Mutex>) == free);
	EXPECT(elsewhere(mutex, take_for<Mutex>) == free);
	EXPECT((elsewhere(mutex, take_until<std::chrono::steady_clock, Mutex>)) == free);
	EXPECT((elsewhere(mutex, take_until<std::chrono::system_clock, Mutex>)) == free);
	EXPECT((elsewhere(mutex, take_until<odd_clock, Mutex>)) == free);
}

template <class Mutex> static void lockable(Mutex &mutex)
{
	expect_each_way(mutex, true);
	{
		std::lock_guard guard(mutex);
		expect_each_way(mutex, false);
	}
	expect_each_way(mutex, true);
	std::unique_lock lock(mutex, 1ms);
	EXPECT(lock.owns_lock());
}

// Waits for the longest times of each type until the mutex is released.
template <class Mutex> static void outlast(Mutex &mutex)
{
	bool (*const ways[])(Mutex &) = {
		[](Mutex &mutex) { return mutex.try_lock_for(std::chrono::nanoseconds::max()); },
		[](Mutex &mutex) { return mutex.try_lock_for(std::chrono::hours::max()); },
		[](Mutex &mutex) {
			return mutex.try_lock_for(std::chrono::duration<double>(1e300));
		},
		[](Mutex &mutex) {
			return mutex.try_lock_until(std::chrono::steady_clock::time_point::max());
		},
		[](Mutex &mutex) {
			return mutex.try_lock_until(
				std::chrono::time_point<std::chrono::system_clock,
							std::chrono::hours>::max());
		},
		[](Mutex &mutex) { return mutex.try_lock_until(odd_clock::time_point::max()); },
	};

	for (auto way : ways) {
		std::atomic<bool> ended = false;
		bool taken = false;

		mutex.lock();
		std::thread other([&] {
			taken = way(mutex);
			ended = true;
			if (taken)
				mutex.unlock();
		});
		// Time for a wait that ends too early.
		for (int i = 0; i < 20 && !ended; i++)
			std::this_thread::sleep_for(1ms);
		mutex.unlock();
		other.join();
		EXPECT(taken);
	}
}

// Times in the past, of types whose conversion would overflow.
template <class Mutex> static void too_late(Mutex &mutex)
{
	using days = std::chrono::duration<long long, std::ratio<86400>>;

	std::lock_guard guard(mutex);
	EXPECT(!elsewhere(
		mutex, +[](Mutex &m) { return m.try_lock_for(days::min()); }));
	EXPECT(!elsewhere(
		mutex, +[](Mutex &m) {
			return m.try_lock_until(
				std::chrono::time_point<std::chrono::steady_clock, days>::min());
		}));
}

template <class Condition, class Mutex> static void take_turns(Mutex &mutex)
{
	Condition changed;
	int turn = 0;
	std::thread other([&] {
		std::unique_lock lock(mutex);
		changed.wait(lock, [&] { return turn == 1; });
		turn = 2;
		changed.notify_all();
	});
	{
		std::unique_lock lock(mutex);
		turn = 1;
		changed.notify_all();
		changed.wait(lock, [&] { return turn == 2; });
	}
	other.join();
}

template <class Mutex> static void condition(Mutex &mutex)
{
	take_turns<std::condition_variable_any>(mutex);
	take_turns<pound::condition_variable>(mutex);
}

// ---- Condition variables ----

static constexpr bool constant_condition = (pound::condition_variable(), true);
static_assert(constant_condition && sizeof(pound::condition_variable) == 16);
static_assert(!std::is_copy_constructible_v<pound::condition_variable> &&
	      !std::is_copy_assignable_v<pound::condition_variable>);
static_assert(std::is_same_v<pound::condition_variable::native_handle_type, pound_cond_t *>);

// Nobody notifies: each function times out, with the lock locked.
template <class Clock, class Lock>
static void times_out_at(pound::condition_variable &changed, Lock &lock)
{
	auto time = Clock::now() + 2ms;
	int asked = 0;

	EXPECT(!changed.wait_until(lock, time, [&] { return asked++ > 1000; }));
	EXPECT(Clock::now() >= time && asked >= 2, "asked %d times", asked);
	EXPECT(changed.wait_until(lock, time) == std::cv_status::timeout);
	EXPECT(changed.wait_until(lock, Clock::now() - 1h) == std::cv_status::timeout);
	EXPECT(changed.wait_until(lock, time, [] { return true; }), "it holds already");
}

template <class Lock> static void times_out(pound::condition_variable &changed, Lock &lock)
{
	times_out_at<std::chrono::steady_clock>(changed, lock);
	times_out_at<std::chrono::system_clock>(changed, lock);
	times_out_at<odd_clock>(changed, lock);
	EXPECT(changed.wait_for(lock, 1ms) == std::cv_status::timeout);
	EXPECT(changed.wait_for(lock, -1ms) == std::cv_status::timeout);
	EXPECT(changed.wait_for(lock, std::chrono::hours::min()) == std::cv_status::timeout);
	EXPECT(!changed.wait_for(lock, 1ms, [] { return false; }));
	EXPECT(changed.wait_for(lock, 1ms, [] { return true; }));
}

// Notified in time, however late that is: the longest durations do not overflow.
template <class Lock, class Wait> static void in_time(Lock &lock, Wait wait)
{
	pound::condition_variable changed;
	bool done = false;
	std::thread other([&] {
		Lock own(*lock.mutex());
		done = true;
		own.unlock();
		changed.notify_one();
	});

	while (!done)
		EXPECT(wait(changed));
	lock.unlock();
	other.join();
	lock.lock();
}

template <class Lock> static void notified(Lock &lock)
{
	in_time(lock, [&](pound::condition_variable &changed) {
		return changed.wait_for(lock, std::chrono::hours::max()) ==
		       std::cv_status::no_timeout;
	});
	in_time(lock, [&](pound::condition_variable &changed) {
		return changed.wait_for(lock, std::chrono::duration<double>(1e30)) ==
		       std::cv_status::no_timeout;
	});
	in_time(lock, [&](pound::condition_variable &changed) {
		return changed.wait_until(lock, std::chrono::steady_clock::time_point::max()) ==
		       std::cv_status::no_timeout;
	});
	in_time(lock, [&](pound::condition_variable &changed) {
		return changed.wait_until(lock, odd_clock::now() + 1h) ==
		       std::cv_status::no_timeout;
	});
}

// A wait by a clock that steady_clock overtakes ends without a notification, but not as a timeout:
// the caller must test its condition before another wait.
struct slow_clock {
	using duration = std::chrono::nanoseconds;
	using rep = duration::rep;
	using period = duration::period;
	using time_point = std::chrono::time_point<slow_clock>;
	static constexpr bool is_steady = true;
	static time_point now()
	{
		return time_point(std::chrono::steady_clock::now().time_since_epoch() / 16);
	}
};

static void slow_clocks(std::unique_lock<pound::mutex> &lock)
{
	pound::condition_variable changed;
	auto time = slow_clock::now() + 5ms;
	int waits = 0;

	while (changed.wait_until(lock, time) == std::cv_status::no_timeout)
		waits++;
	EXPECT(waits && slow_clock::now() >= time);
}

static void conditions()
{
	pound::condition_variable changed;
	pound::mutex mutex;
	pound::any_mutex any("shfl_mutex");
	pound::shared_mutex shared;
	std::unique_lock lock(mutex);
	std::unique_lock any_lock(any);
	std::unique_lock writer(shared);

	times_out(changed, lock);
	times_out(changed, any_lock);
	times_out(changed, writer);
	times_out(changed, mutex); // any BasicLockable
	notified(lock);
	notified(any_lock);
	notified(writer);
	slow_clocks(lock);
	EXPECT(lock.owns_lock() && any_lock.owns_lock() && writer.owns_lock());
	writer.unlock();
	{
		std::shared_lock reader(shared);
		times_out(changed, reader);
	}
	EXPECT(mutex.try_lock_for(std::chrono::hours::min()) == false);
}

template <class One, class Two> static void both(One &one, Two &two)
{
	int count = 0;
	auto count_up = [&](bool swapped) {
		for (int i = 0; i < 1000; i++) {
			if (swapped) {
				std::scoped_lock lock(two, one);
				count++;
			} else {
				std::scoped_lock lock(one, two);
				count++;
			}
		}
	};
	std::thread other(count_up, true);
	count_up(false);
	other.join();
	EXPECT(count == 2000, "%d", count);
}

// ---- Readers and writers ----

static bool reads_by_try(pound::shared_mutex &mutex)
{
	return mutex.try_lock_shared();
}

static bool reads_for(pound::shared_mutex &mutex)
{
	return mutex.try_lock_shared_for(1ms);
}

template <class Clock> static bool reads_until(pound::shared_mutex &mutex)
{
	return mutex.try_lock_shared_until(Clock::now() + 1ms);
}

// Whether another thread can read; tries each function.
static void expect_readable(pound::shared_mutex &mutex, bool readable)
{
	bool (*const ways[])(pound::shared_mutex &) = {
		reads_by_try,
		reads_for,
		reads_until<std::chrono::steady_clock>,
		reads_until<std::chrono::system_clock>,
		reads_until<odd_clock>,
	};

	for (auto way : ways) {
		bool read = false;

		std::thread([&] {
			read = way(mutex);
			if (read)
				mutex.unlock_shared();
		}).join();
		EXPECT(read == readable);
	}
}

static void shared_lockable(pound::shared_mutex &mutex)
{
	{
		std::shared_lock reader(mutex);
		std::shared_lock other(mutex, 1ms);
		EXPECT(reader.owns_lock() && other.owns_lock());
		expect_readable(mutex, true);
		expect_each_way(mutex, false);
	}
	{
		std::unique_lock writer(mutex);
		expect_readable(mutex, false);
	}
	std::shared_lock reader(mutex, std::try_to_lock);
	EXPECT(reader.owns_lock());
}

// A reader re-enters while a writer waits: it would wait indefinitely if it did not declare that it
// is a reader.
static void read_again(pound::shared_mutex &mutex)
{
	std::shared_lock reader(mutex);
	std::thread writer([&] { std::lock_guard guard(mutex); });

	while (mutex.try_lock_shared()) {
		mutex.unlock_shared();
		std::this_thread::yield();
	}
	mutex.lock_shared_again();
	EXPECT(mutex.try_lock_shared_again());
	mutex.unlock_shared();
	mutex.unlock_shared();
	reader.unlock();
	writer.join();
}

static void read_and_write(pound::shared_mutex &mutex)
{
	int one = 0, other = 0;
	auto work = [&] {
		for (int i = 0; i < 1000; i++) {
			if (i % 4) {
				std::shared_lock lock(mutex);
				EXPECT(one == other);
			} else {
				std::lock_guard lock(mutex);
				one++;
				other++;
			}
		}
	};
	std::thread second(work);
	work();
	second.join();
	EXPECT(one == 500, "%d", one);
}

template <class Mutex> static void unlock_fairly(Mutex &mutex)
{
	mutex.lock();
	mutex.unlock_fair();
	EXPECT(mutex.try_lock());
	mutex.unlock_fair();
}

static void shared(pound::shared_mutex &mutex)
{
	lockable(mutex);
	unlock_fairly(mutex);
	mutex.lock_shared();
	mutex.unlock_shared_fair();
	EXPECT(mutex.try_lock());
	mutex.unlock();
	shared_lockable(mutex);
	condition(mutex);
	read_again(mutex);
	read_and_write(mutex);
}

static void shared_by_name()
{
	for (size_t i = 0; pound_rwlock_info(i); i++) {
		pound::shared_mutex mutex(pound_rwlock_info(i)->name);

		shared(mutex);
	}
	try {
		pound::shared_mutex mutex("shfl_mutex");
		EXPECT(!"an unknown lock was made");
	} catch (const std::invalid_argument &error) {
		EXPECT(!strcmp(error.what(), "there is no readers-writer lock 'shfl_mutex'"));
	}
}

static void nested_tenants()
{
	const std::uint32_t own = pound_thread_group();
	bool refused = false;

	{
		pound::tenant first(1);
		const std::uint32_t outer = pound_thread_group();
		{
			pound::tenant second(2);
			EXPECT(pound_thread_group() != outer);
		}
		EXPECT(pound_thread_group() == outer);
		try {
			pound::tenant none(3, 0);
		} catch (const std::invalid_argument &) {
			refused = true;
		}
		EXPECT(refused && pound_thread_group() == outer);
	}
	EXPECT(pound_thread_group() == own);
}

int main()
{
	pound::shared_mutex shared_mutex;
	pound::mutex mutex;
	static pound::any_mutex zeroed;

	expect_part = "api";
	limit();
	EXPECT(pound::set_name(mutex, "mutex") && pound::set_name(zeroed, "any") &&
	       pound::set_name(shared_mutex, "shared") &&
	       pound::set_name(pound::recursive_mutex(), "") && pound::set_name(mutex, ""));
	EXPECT(locked_early && !ready_early.try_lock(),
	       "a static mutex lost its state to a constructor");
	ready_early.unlock();
	nested_tenants();
	lockable(mutex);
	outlast(mutex);
	too_late(mutex);
	condition(mutex);
	conditions();
	unlock_fairly(mutex);
	lockable(zeroed);
	outlast(shared_mutex);
	for (size_t i = 0; pound_lock_info(i); i++) {
		pound::any_mutex any(pound_lock_info(i)->name);

		lockable(any);
		condition(any);
		both(mutex, any);
		unlock_fairly(any);
	}
	shared(shared_mutex);
	shared_by_name();
	try {
		pound::any_mutex any("nosuch");
		EXPECT(!"an unknown lock was made");
	} catch (const std::invalid_argument &error) {
		EXPECT(!strcmp(error.what(), "there is no lock 'nosuch'"));
	}
	return 0;
}
