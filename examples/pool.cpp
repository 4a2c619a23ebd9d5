// SPDX-License-Identifier: MIT OR Apache-2.0
// pool: connections that are opened once, and shared by more threads than there are connections.
#include <poundlock.hpp>

#include <cstdio>
#include <thread>
#include <vector>

constexpr int count = 3;      // connections
constexpr int users = 8;      // threads
constexpr int queries = 1000; // of each thread

struct connection {
	long queries = 0;
};

static pound::once_flag opened;
static pound::counting_semaphore<> available(count);
static pound::mutex mutex;
static std::vector<connection *> free_ones; // under the mutex
static connection connections[count];

static void open_all(const char *name)
{
	std::printf("opening %d connections to %s\n", count, name);
	for (auto &each : connections)
		free_ones.push_back(&each);
}

// Waits until a connection is free.
static connection *take()
{
	available.acquire();
	pound::lock_guard guard(mutex);
	connection *taken = free_ones.back();
	free_ones.pop_back();
	return taken;
}

static void give_back(connection *taken)
{
	{
		pound::lock_guard guard(mutex);
		free_ones.push_back(taken);
	}
	available.release();
}

static void query()
{
	pound::call_once(opened, open_all, "orders");
	for (int i = 0; i < queries; i++) {
		connection *taken = take();
		taken->queries++;
		give_back(taken);
	}
}

int main()
{
	std::vector<std::thread> threads;
	long sum = 0;

	for (int i = 0; i < users; i++)
		threads.emplace_back(query);
	for (auto &thread : threads)
		thread.join();
	for (const auto &each : connections)
		sum += each.queries;
	std::printf("%ld queries\n", sum);
	return sum != long(users) * queries;
}
