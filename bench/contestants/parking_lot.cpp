/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * parking_lot's mutex and condition variable through a C interface: their fast paths, which Rust
 * inlines, cost a call here, like glibc's.
 */
#include <cstdint>

#include "../queue.h"

extern "C" {
extern const std::size_t bench_parking_lot_size;
void bench_parking_lot_init(std::uint8_t *mutex);
void bench_parking_lot_lock(std::uint8_t *mutex);
void bench_parking_lot_unlock(std::uint8_t *mutex);
extern const std::size_t bench_parking_lot_cond_size;
void bench_parking_lot_cond_init(void **cond);
void bench_parking_lot_wait(void **cond, std::uint8_t *mutex);
void bench_parking_lot_signal(void **cond);
}

namespace
{

struct ParkingLot {
	std::uint8_t mutex;

	void init(const std::string &spec)
	{
		bench::no_spec(spec);
		if (bench_parking_lot_size != sizeof(mutex))
			throw std::logic_error("parking_lot's Mutex is no longer one byte");
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

struct ParkingLotCond {
	void *cond;

	void init()
	{
		if (bench_parking_lot_cond_size != sizeof(cond))
			throw std::logic_error("parking_lot's Condvar is no longer a pointer");
		bench_parking_lot_cond_init(&cond);
	}
	void wait(ParkingLot &lock)
	{
		bench_parking_lot_wait(&cond, &lock.mutex);
	}
	void signal()
	{
		bench_parking_lot_signal(&cond);
	}
};

const bench::Register<ParkingLot> entry("parking_lot", "parking_lot::Mutex");
const bench::RegisterQueue<ParkingLot, ParkingLotCond> queue_entry("parking_lot");

} // namespace
