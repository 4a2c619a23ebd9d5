// SPDX-License-Identifier: MIT OR Apache-2.0
//
// poundlock.hpp without exceptions: what would throw prints a line and aborts.
#include "poundlock.hpp"

#include <csignal>

#include "../expect.h"

#ifdef __cpp_exceptions
#error build it with -fno-exceptions
#endif

static void aborted(int)
{
	_exit(0);
}

int main()
{
	pound::mutex mutex;
	pound::any_mutex any("mcs");
	pound::shared_mutex shared;
	pound::recursive_mutex recursive;
	pound::binary_semaphore semaphore(0);
	pound::once_flag flag;

	pound::call_once(flag, [&] { semaphore.release(); });
	semaphore.acquire();
	recursive.lock();
	recursive.unlock();
	{
		pound::lock_guard guard(mutex);
		pound::lock_guard other(any);
		pound::shared_lock_guard reader(shared);
		EXPECT(!mutex.try_lock() && !shared.try_lock_for(std::chrono::nanoseconds(1)));
	}
	EXPECT(mutex.try_lock());
	mutex.unlock();
	signal(SIGABRT, aborted);
	pound::any_mutex unknown("nosuch");
	return 1;
}
