/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* libpoundlock as a program that links it uses it: the inline mutex, and any lock by name. */
#include <poundlock.h>

#include "../queue.h"

namespace
{

struct PoundMutex {
	pound_mutex_t mutex;

	void init(const std::string &spec)
	{
		bench::no_spec(spec);
		mutex = POUND_MUTEX_INIT;
	}
	void lock()
	{
		pound_mutex_lock(&mutex);
	}
	void unlock()
	{
		pound_mutex_unlock(&mutex);
	}
};

struct PoundCond {
	pound_cond_t cond;

	void init()
	{
		cond = POUND_COND_INIT;
	}
	void wait(PoundMutex &lock)
	{
		pound_cond_wait(&cond, &lock.mutex);
	}
	void signal()
	{
		pound_cond_signal(&cond);
	}
};

struct PoundLock {
	pound_lock_t mutex;

	void init(const std::string &spec)
	{
		char error[200];

		if (pound_lock_init(&mutex, spec.c_str(), error, sizeof(error)) != 0)
			throw std::invalid_argument(error);
	}
	void lock()
	{
		pound_lock_lock(&mutex);
	}
	void unlock()
	{
		pound_lock_unlock(&mutex);
	}
};

const bench::Register<PoundMutex> mutex_entry("pound_mutex",
					      "libpoundlock's pound_mutex_t, inline");
const bench::RegisterQueue<PoundMutex, PoundCond> queue_entry("pound_mutex");
const bench::Register<PoundLock>
	lock_entry("pound", "libpoundlock's pound_lock_t: pound:NAME[,KEY=VALUE...]");

} // namespace
