// SPDX-License-Identifier: MIT OR Apache-2.0
// tenants: a request runs as a tenant, whose weight decides its share of a lock's time.
#include <iostream>
#include <mutex>
#include <poundlock.hpp>
#include <thread>

static pound::any_mutex mutex("cfl_mutex");
static long served[2];

static void serve(unsigned customer, unsigned weight)
{
	pound::tenant tenant(customer, weight); // until the end of the scope

	for (int i = 0; i < 1000; i++) {
		std::lock_guard guard(mutex);
		served[customer]++;
	}
}

int main()
{
	std::thread paying(serve, 0, 4096), free_of_charge(serve, 1, 1024);

	paying.join();
	free_of_charge.join();
	std::cout << served[0] << ", " << served[1] << "\n";
	return served[0] != 1000 || served[1] != 1000;
}
