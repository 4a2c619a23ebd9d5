// SPDX-License-Identifier: MIT OR Apache-2.0

// A program whose waiting is known: four threads hold a mutex of Abseil for 2 ms each and sleep
// 2 ms between. For each line of input, prints how long they have waited so far, and the time, in
// ns. Ends with the input.
#include <absl/synchronization/mutex.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

using clock_type = std::chrono::steady_clock;

static constexpr std::chrono::milliseconds rest{2};
static absl::Mutex planted;
static std::atomic<long> waited;

static long since(clock_type::time_point start)
{
	return std::chrono::nanoseconds(clock_type::now() - start).count();
}

__attribute__((noinline)) void planted_site()
{
	const auto start = clock_type::now();

	planted.Lock();
	waited += since(start);
	std::this_thread::sleep_for(rest);
	planted.Unlock();
}

int main()
{
	const auto began = clock_type::now();

	for (int i = 0; i < 4; i++)
		std::thread([] {
			for (;;) {
				planted_site();
				std::this_thread::sleep_for(rest);
			}
		}).detach();
	while (std::getchar() != EOF) {
		std::printf("%ld %ld\n", waited.load(), since(began));
		std::fflush(stdout);
	}
	std::_Exit(0);
}
