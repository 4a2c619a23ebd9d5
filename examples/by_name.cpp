// SPDX-License-Identifier: MIT OR Apache-2.0
// by_name [LOCK]: a lock that the user names, with a deadline and a condition variable.
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <poundlock.hpp>
#include <thread>

int main(int argc, char **argv)
try {
	pound::any_mutex mutex(argc > 1 ? argv[1] : "mcs,wait=park");
	std::condition_variable_any ready;
	bool is_ready = false;

	std::thread producer([&] {
		std::lock_guard guard(mutex);
		is_ready = true;
		ready.notify_one();
	});
	{
		std::unique_lock guard(mutex);
		ready.wait(guard, [&] { return is_ready; });
	}
	producer.join();

	std::unique_lock guard(mutex, std::defer_lock);
	bool locked = guard.try_lock_for(std::chrono::seconds(10));
	std::cout << (locked ? "locked\n" : "timed out\n");
	return !locked;
} catch (const std::invalid_argument &wrong) {
	std::cerr << "by_name: " << wrong.what() << "\n";
	return 2;
}
