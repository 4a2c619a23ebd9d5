// SPDX-License-Identifier: MIT OR Apache-2.0
// pound::call_once, pound::counting_semaphore and pound::recursive_mutex: the interfaces of std's.
#include <poundlock.hpp>

#include <atomic>
#include <pthread.h>
#include <thread>
#include <vector>

#include "../expect.h"

using namespace std::chrono_literals;

// Runs @run in another thread. Returns its result.
template <class Run> static auto elsewhere(Run run)
{
	decltype(run()) result{};
	std::thread([&] { result = run(); }).join();
	return result;
}

// ---- Once ----

static constexpr bool constant_flag = (pound::once_flag(), true);
static_assert(constant_flag && sizeof(pound::once_flag) == 4);
static_assert(!std::is_copy_constructible_v<pound::once_flag> &&
	      !std::is_copy_assignable_v<pound::once_flag>);

static void arguments_are_forwarded()
{
	pound::once_flag flag;
	auto moved = std::make_unique<int>(5);
	int seen = 0;
	auto take = [&](std::unique_ptr<int> value, int &result, int add) {
		result = *value + add;
	};

	pound::call_once(flag, take, std::move(moved), seen, 2);
	EXPECT(seen == 7 && !moved);
	moved = std::make_unique<int>(9);
	pound::call_once(flag, take, std::move(moved), seen, 2);
	EXPECT(seen == 7 && moved, "a call that does not run its function took its arguments");
}

static void exceptions_leave_it_uncalled()
{
	pound::once_flag flag;
	int runs = 0;

	for (int i = 0; i < 3; i++) {
		try {
			pound::call_once(flag, [&] {
				runs++;
				if (i < 2)
					throw i;
			});
			EXPECT(i == 2, "the exception is lost");
		} catch (int thrown) {
			EXPECT(thrown == i && i < 2);
		}
	}
	pound::call_once(flag, [&] { runs++; });
	EXPECT(runs == 3);
}

// One thread's function throws while others wait for it: one of those runs its own.
static void exceptions_pass_it_on()
{
	pound::once_flag flag;
	std::atomic<int> inside{0}, may_end{0};
	int runs = 0, thrown = 0;
	std::vector<std::thread> threads;

	std::thread first([&] {
		try {
			pound::call_once(flag, [&] {
				inside = 1;
				while (!may_end)
					std::this_thread::yield();
				throw 1;
			});
		} catch (int) {
			thrown++;
		}
	});
	while (!inside)
		std::this_thread::yield();
	for (int i = 0; i < 4; i++)
		threads.emplace_back([&] {
			pound::call_once(flag, [&] { runs++; });
			EXPECT(runs == 1);
		});
	may_end = 1;
	first.join();
	for (auto &thread : threads)
		thread.join();
	EXPECT(thrown == 1 && runs == 1);
}

// pthread_exit() unwinds the stack in C++.
static void *exit_inside(void *flag)
{
	pound::call_once(*static_cast<pound::once_flag *>(flag), [] { pthread_exit(nullptr); });
	return flag;
}

static void threads_end_inside()
{
	pound::once_flag flag;
	pthread_t thread;
	int runs = 0;

	EXPECT(!pthread_create(&thread, nullptr, exit_inside, &flag));
	EXPECT(!pthread_join(thread, nullptr));
	pound::call_once(flag, [&] { runs++; });
	EXPECT(runs == 1);
}

// ---- The semaphore ----

static constexpr bool constant_semaphore = (pound::binary_semaphore(1), true);
static_assert(constant_semaphore && sizeof(pound::counting_semaphore<>) == 8);
static_assert(!std::is_copy_constructible_v<pound::counting_semaphore<>> &&
	      !std::is_copy_assignable_v<pound::counting_semaphore<>>);
static_assert(pound::counting_semaphore<5>::max() >= 5 && pound::binary_semaphore::max() >= 1);

static void values()
{
	pound::counting_semaphore<> semaphore(2);

	semaphore.acquire();
	EXPECT(semaphore.try_acquire() && !semaphore.try_acquire());
	semaphore.release();
	semaphore.release(2);
	EXPECT(pound_sem_value(semaphore.native_handle()) == 3);
	semaphore.release(semaphore.max() - 3);
	for (std::ptrdiff_t count : {std::ptrdiff_t(1), semaphore.max(), PTRDIFF_MAX}) {
		try {
			semaphore.release(count);
			EXPECT(!"the value overflows");
		} catch (const std::system_error &error) {
			EXPECT(error.code().value() == EOVERFLOW);
		}
	}
}

static void semaphore_times_out()
{
	pound::binary_semaphore semaphore(1);

	EXPECT(semaphore.try_acquire_for(0s));
	EXPECT(!semaphore.try_acquire_for(1ms));
	EXPECT(!semaphore.try_acquire_for(-1h));
	EXPECT(!semaphore.try_acquire_until(std::chrono::steady_clock::now() + 1ms));
	EXPECT(!semaphore.try_acquire_until(std::chrono::system_clock::now() + 1ms));
	semaphore.release();
	EXPECT(semaphore.try_acquire_until(std::chrono::system_clock::now() - 1h));
	std::thread poster([&] { semaphore.release(); });
	EXPECT(semaphore.try_acquire_for(std::chrono::hours::max()));
	poster.join();
}

// Turns between two threads.
static void semaphores_alternate()
{
	pound::binary_semaphore ping(0), pong(0);
	int turns = 0;
	std::thread other([&] {
		for (int i = 0; i < 1000; i++) {
			ping.acquire();
			turns++;
			pong.release();
		}
	});

	for (int i = 0; i < 1000; i++) {
		ping.release();
		pong.acquire();
		EXPECT(turns == i + 1);
	}
	other.join();
}

// ---- The recursive mutex ----

static constexpr bool constant_mutex = (pound::recursive_mutex(), true);
static_assert(constant_mutex && sizeof(pound::recursive_mutex) == 40);
static_assert(!std::is_copy_constructible_v<pound::recursive_mutex>);

static void owners_lock_again()
{
	pound::recursive_mutex mutex;
	auto try_elsewhere = [&] {
		return elsewhere([&] {
			std::unique_lock lock(mutex, std::try_to_lock);
			std::unique_lock timed(mutex, 1ms);
			EXPECT(lock.owns_lock() == timed.owns_lock());
			return lock.owns_lock();
		});
	};

	EXPECT(try_elsewhere());
	{
		std::lock_guard first(mutex);
		std::unique_lock second(mutex, std::try_to_lock);
		std::unique_lock third(mutex, 1ms);
		EXPECT(second.owns_lock() && third.owns_lock() && !try_elsewhere());
		second.unlock();
		third.unlock();
		EXPECT(!try_elsewhere());
	}
	EXPECT(try_elsewhere());
}

static void depth_is_bounded()
{
	pound::recursive_mutex mutex;
	std::lock_guard guard(mutex);
	uint32_t &depth = mutex.native_handle()->pound_recursion.pound_depth;

	depth = UINT32_MAX;
	try {
		mutex.lock();
		EXPECT(!"the depth overflows");
	} catch (const std::system_error &error) {
		EXPECT(error.code().value() == EAGAIN);
	}
	EXPECT(!mutex.try_lock() && !mutex.try_lock_for(1h));
	depth = 0;
}

int main()
{
	expect_part = "sync";
	limit();
	arguments_are_forwarded();
	exceptions_leave_it_uncalled();
	exceptions_pass_it_on();
	threads_end_inside();
	values();
	semaphore_times_out();
	semaphores_alternate();
	owners_lock_again();
	depth_is_bounded();
	return 0;
}
