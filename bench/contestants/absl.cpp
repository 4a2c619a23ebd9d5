/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* absl::Mutex, without the search for deadlocks that builds with assertions turn on. */
#include <absl/synchronization/mutex.h>

#include "../contestant.h"

namespace
{

struct Absl {
	absl::Mutex mutex;

	void init(const std::string &spec)
	{
		bench::no_spec(spec);
		absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
	}
	void lock()
	{
		mutex.Lock();
	}
	void unlock()
	{
		mutex.Unlock();
	}
};

const bench::Register<Absl> entry("absl", "absl::Mutex");

} // namespace
