/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* nsync's nsync_mu. */
#include <nsync.h>

#include "../contestant.h"

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

const bench::Register<Nsync> entry("nsync", "nsync_mu");

} // namespace
