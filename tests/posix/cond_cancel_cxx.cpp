/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A cancelled wait unwinds through C++: destructors run with the mutex held, and the exception can
 * be caught and rethrown. The standard library's mutexes and condition variables work.
 */
#include <chrono>
#include <condition_variable>
#include <cxxabi.h>
#include <mutex>
#include <thread>
#include <vector>

#include "posix.h"

namespace
{

pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
unsigned waiting, destroyed, caught;

struct holding {
	holding()
	{
		EXPECT_OK(pthread_mutex_lock(&mutex));
	}
	~holding()
	{
		destroyed++;
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	}
};

void *wait_for_ever(void *)
{
	holding held;

	waiting++;
	try {
		for (;;)
			EXPECT_OK(pthread_cond_wait(&cond, &mutex));
	} catch (abi::__forced_unwind &) {
		caught++;
		throw;
	}
}

void cancel_one()
{
	pthread_t thread;
	void *result;
	bool waits;

	EXPECT_OK(pthread_create(&thread, nullptr, wait_for_ever, nullptr));
	do {
		EXPECT_OK(pthread_mutex_lock(&mutex));
		waits = waiting;
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	} while (!waits);
	EXPECT_OK(pthread_cancel(thread));
	EXPECT_OK(pthread_join(thread, &result));
	EXPECT(result == PTHREAD_CANCELED, "ended by %p", result);
	EXPECT(caught == 1 && destroyed == 1, "caught %u, destroyed %u", caught, destroyed);
}

void standard_library()
{
	std::mutex one;
	std::recursive_timed_mutex other;
	std::condition_variable changed;
	std::vector<std::thread> threads;
	unsigned turn = 0, total = 0;

	for (unsigned i = 0; i < 8; i++) {
		threads.emplace_back([&, i] {
			for (unsigned round = 0; round < 50; round++) {
				std::unique_lock<std::mutex> lock(one);
				changed.wait(lock, [&] { return turn == i; });
				turn = (turn + 1) % 8;
				changed.notify_all();
				lock.unlock();
				std::lock_guard<std::recursive_timed_mutex> outer(other);
				EXPECT(other.try_lock_for(std::chrono::seconds(1)), "recursive");
				total++;
				other.unlock();
			}
		});
	}
	for (auto &thread : threads)
		thread.join();
	EXPECT(total == 8 * 50, "%u", total);
	std::unique_lock<std::mutex> lock(one);
	EXPECT(!changed.wait_for(lock, std::chrono::milliseconds(5), [] { return false; }),
	       "wait_for");
}

} // namespace

int main()
{
	cancel_one();
	standard_library();
	return 0;
}
