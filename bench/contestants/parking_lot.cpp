/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * parking_lot's RawMutex through a C interface: its fast path, which Rust inlines, costs a call
 * here, like glibc's.
 */
#include <cstdint>

#include "../contestant.h"

extern "C" {
extern const std::size_t bench_parking_lot_size;
void bench_parking_lot_init(std::uint8_t *mutex);
void bench_parking_lot_lock(std::uint8_t *mutex);
void bench_parking_lot_unlock(std::uint8_t *mutex);
}

namespace
{

struct ParkingLot {
	std::uint8_t mutex;

	void init(const std::string &spec)
	{
		bench::no_spec(spec);
		if (bench_parking_lot_size != sizeof(mutex))
			throw std::logic_error("parking_lot's RawMutex is no longer one byte");
		bench_parking_lot_init(&mutex);
	}
	void lock()
	{
		bench_parking_lot_lock(&mutex);
	}
	void unlock()
	{
		bench_parking_lot_unlock(&mutex);
	}
};

const bench::Register<ParkingLot> entry("parking_lot", "parking_lot::RawMutex");

} // namespace
