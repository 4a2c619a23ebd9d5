// SPDX-License-Identifier: MIT OR Apache-2.0
// readers: a map that many threads look up and one changes, under a pound::shared_mutex.
#include <iostream>
#include <map>
#include <mutex>
#include <poundlock.hpp>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

static pound::shared_mutex mutex("bravo"); // readers that meet no writer share no cache line
static std::map<int, std::string> names;

static void look_up(size_t &found)
{
	for (int i = 0; i < 10000; i++) {
		std::shared_lock guard(mutex);
		found += names.count(i % 100);
	}
}

int main()
{
	std::vector<size_t> found(4);
	std::vector<std::thread> readers;

	for (size_t &each : found)
		readers.emplace_back(look_up, std::ref(each));
	for (int i = 0; i < 100; i++) {
		std::lock_guard guard(mutex);
		names[i] = std::to_string(i);
	}
	for (std::thread &reader : readers)
		reader.join();
	std::cout << names.size() << "\n";
	return names.size() != 100;
}
