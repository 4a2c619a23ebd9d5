// SPDX-License-Identifier: MIT OR Apache-2.0
// queue: producers and consumers of a bounded queue under a pound::mutex, with two
// pound::condition_variables. A consumer gives up when nothing has come for a while.
#include <deque>
#include <iostream>
#include <mutex>
#include <optional>
#include <poundlock.hpp>
#include <thread>
#include <vector>

template <class T> class bounded_queue
{
      public:
	explicit bounded_queue(std::size_t most) : most(most)
	{
	}

	void put(T item)
	{
		std::unique_lock lock(mutex);
		not_full.wait(lock, [this] { return items.size() < most; });
		items.push_back(std::move(item));
		lock.unlock();
		not_empty.notify_one();
	}

	template <class Duration> std::optional<T> take(Duration timeout)
	{
		std::unique_lock lock(mutex);
		if (!not_empty.wait_for(lock, timeout, [this] { return !items.empty(); }))
			return std::nullopt;
		T item = std::move(items.front());
		items.pop_front();
		lock.unlock();
		not_full.notify_one();
		return item;
	}

      private:
	pound::mutex mutex;
	pound::condition_variable not_full, not_empty;
	std::deque<T> items;
	const std::size_t most;
};

int main()
{
	constexpr int threads = 4, items = 10000;
	bounded_queue<long> queue(16);
	std::vector<std::thread> producers, consumers;
	std::vector<long> sums(threads);
	long sum = 0;

	for (int i = 0; i < threads; i++) {
		producers.emplace_back([&] {
			for (long item = 1; item <= items; item++)
				queue.put(item);
		});
		consumers.emplace_back([&, i] {
			for (int taken = 0; taken < items; taken++)
				sums[i] += queue.take(std::chrono::hours(1)).value();
		});
	}
	for (int i = 0; i < threads; i++) {
		producers[i].join();
		consumers[i].join();
		sum += sums[i];
	}
	std::cout << sum << "\n";
	return sum != threads * (items * (items + 1L) / 2) ||
	       queue.take(std::chrono::milliseconds(1));
}
