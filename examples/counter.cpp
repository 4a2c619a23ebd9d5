// SPDX-License-Identifier: MIT OR Apache-2.0
// counter: threads that count under a pound::mutex, the default lock, with std::lock_guard.
#include <iostream>
#include <mutex>
#include <poundlock.hpp>
#include <thread>
#include <vector>

static pound::mutex mutex;
static long count;

static void work()
{
	for (int i = 0; i < 10000; i++) {
		std::lock_guard guard(mutex);
		count++;
	}
}

int main()
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 8; i++)
		threads.emplace_back(work);
	for (std::thread &thread : threads)
		thread.join();
	std::cout << count << "\n";
	return count != 80000;
}
