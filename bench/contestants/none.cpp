/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * No lock at all: what the loops themselves cost, and proof that the driver notices when a lock
 * does not exclude.
 */
#include "../contestant.h"

namespace
{

struct None {
	void init(const std::string &spec)
	{
		bench::no_spec(spec);
	}
	void lock()
	{
		bench::compiler_barrier();
	}
	void unlock()
	{
		bench::compiler_barrier();
	}
};

const bench::Register<None> entry("none",
				  "no lock: the cost of the loops; fails where threads contend");

} // namespace
