/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* nsync's nsync_mu and nsync_cv. */
#include <nsync.h>

#include "../queue.h"

namespace
{

struct Nsync {
	nsync::nsync_mu mutex;

	void init(const std::string &spec)
	{
		bench::no_spec(spec);
		nsync::nsync_mu_init(&mutex);
	}
	void lock()
	{
		nsync::nsync_mu_lock(&mutex);
	}
	void unlock()
	{
		nsync::nsync_mu_unlock(&mutex);
	}
};

struct NsyncCond {
	nsync::nsync_cv cond;

	void init()
	{
		nsync::nsync_cv_init(&cond);
	}
	void wait(Nsync &lock)
	{
		nsync::nsync_cv_wait(&cond, &lock.mutex);
	}
	void signal()
	{
		nsync::nsync_cv_signal(&cond);
	}
};

const bench::Register<Nsync> entry("nsync", "nsync_mu");
const bench::RegisterQueue<Nsync, NsyncCond> queue_entry("nsync");

} // namespace
