// SPDX-License-Identifier: MIT OR Apache-2.0
#include <mutex>
#include <poundlock.hpp>

int main()
{
	static pound::mutex mutex;
	pound::any_mutex any("shfl_mutex");
	std::scoped_lock both(mutex, any);

	return mutex.try_lock();
}
