/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Destructors of thread-local objects contend for locks, wait for a condition and create thread-
 * local objects whose destructors do the same, after the library's own data about the thread may be
 * gone. Destructors of static objects run last.
 */
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "posix.h"

namespace
{

constexpr unsigned threads = 16, rounds = 25;

std::mutex mutex;
std::shared_mutex shared;
std::condition_variable turned;
unsigned turn, late, latest;

void lock_all(unsigned &counted)
{
	for (unsigned i = 0; i < rounds; i++) {
		std::lock_guard<std::mutex> held(mutex);
		unsigned seen = counted;
		std::this_thread::yield();
		counted = seen + 1;
	}
	std::shared_lock<std::shared_mutex> reader(shared);
}

struct made_by_destructor {
	unsigned times = rounds;
	~made_by_destructor()
	{
		lock_all(latest);
	}
};

struct last_wish {
	unsigned index = 0;
	~last_wish()
	{
		static thread_local made_by_destructor another;

		lock_all(late);
		EXPECT(another.times == rounds, "constructed");
		std::unique_lock<std::mutex> held(mutex);
		turned.wait(held, [this] { return turn == index; });
		turn++;
		turned.notify_all();
		held.unlock();
		std::unique_lock<std::shared_mutex> writer(shared);
	}
};

struct last_of_all {
	~last_of_all()
	{
		lock_all(late);
		EXPECT(late == (threads + 1) * rounds && latest == threads * rounds, "%u and %u",
		       late, latest);
	}
};

last_of_all at_exit; /* destroyed before the objects that it uses, which were created earlier */

void live(unsigned index)
{
	static thread_local last_wish wish;

	wish.index = index;
}

} // namespace

int main()
{
	std::vector<std::thread> all;

	for (unsigned i = 0; i < threads; i++)
		all.emplace_back(live, i);
	for (auto &thread : all)
		thread.join();
	EXPECT(turn == threads, "%u had their turns", turn);
	return 0;
}
