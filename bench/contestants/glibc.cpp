/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* glibc's default mutex; under the preload library, whichever lock POUNDLOCK_LOCK names. */
#include <pthread.h>

#include "../queue.h"

namespace
{

struct Glibc {
	pthread_mutex_t mutex;

	void init(const std::string &spec)
	{
		bench::no_spec(spec);
		pthread_mutex_init(&mutex, nullptr);
	}
	void lock()
	{
		pthread_mutex_lock(&mutex);
	}
	void unlock()
	{
		pthread_mutex_unlock(&mutex);
	}
};

struct GlibcCond {
	pthread_cond_t cond;

	void init()
	{
		pthread_cond_init(&cond, nullptr);
	}
	void wait(Glibc &lock)
	{
		pthread_cond_wait(&cond, &lock.mutex);
	}
	void signal()
	{
		pthread_cond_signal(&cond);
	}
};

const bench::Register<Glibc> entry("glibc", "pthread_mutex_t, or what is preloaded in its place");
const bench::RegisterQueue<Glibc, GlibcCond> queue_entry("glibc");

} // namespace
